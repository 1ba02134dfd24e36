"""Shared memory touched by two threads with no barrier between them, in every order."""

import numpy as np
from numba import cuda, float32, int32

from lockstep_tests.corpus import broken_case, noise, ramp, zeros

# --- written, then read ----------------------------------------------------------------------------------


@broken_case("shared_race", grid=1, block=64, args=lambda: (ramp(64), zeros(64)))
@cuda.jit
def neighbour_read_without_barrier(x, out):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    out[t] = tile[(t + 1) % 64]  # <- shared_race tile


@broken_case("shared_race", grid=1, block=32, args=lambda: (ramp(32), zeros(32)))
@cuda.jit
def reversed_inside_one_warp(x, out):
    tile = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    out[t] = tile[31 - t]  # <- shared_race tile


@broken_case("shared_race", grid=1, block=128, args=lambda: (ramp(128), zeros(1)))
@cuda.jit
def tree_reduction_without_barriers(x, out):
    partial = cuda.shared.array(128, float32)
    t = cuda.threadIdx.x
    partial[t] = x[t]
    cuda.syncthreads()
    stride = 64
    while stride > 0:
        if t < stride:
            partial[t] += partial[t + stride]  # <- shared_race partial
        stride //= 2
    cuda.syncthreads()
    if t == 0:
        out[0] = partial[0]


@broken_case("shared_race", grid=1, block=32, args=lambda: (ramp(32), zeros(1)))
@cuda.jit
def warp_reduction_without_syncwarp(x, out):
    partial = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    partial[t] = x[t]
    cuda.syncwarp()
    stride = 16
    while stride > 0:
        if t < stride:
            partial[t] += partial[t + stride]  # <- shared_race partial
        stride //= 2
    cuda.syncwarp()
    if t == 0:
        out[0] = partial[0]


@broken_case(
    "shared_race",
    grid=(2, 2),
    block=(8, 8),
    args=lambda: (noise(16, 16), noise(16, 16, seed=1), zeros(16, 16)),
)
@cuda.jit
def tiles_read_before_they_are_filled(a, b, c):
    As = cuda.shared.array((8, 8), float32)
    Bs = cuda.shared.array((8, 8), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    acc = float32(0)
    for k0 in range(0, 16, 8):
        As[ty, tx] = a[row, k0 + tx]
        Bs[ty, tx] = b[k0 + ty, col]
        for p in range(8):
            acc += As[ty, p] * Bs[p, tx]  # <- shared_race
        cuda.syncthreads()
    c[row, col] = acc


@broken_case("shared_race", grid=2, block=64, args=lambda: (ramp(128), zeros(128)), blocks=((1, 0, 0),))
@cuda.jit
def only_the_second_block_races(x, out):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    tile[(t + cuda.blockIdx.x) % 64] = x[cuda.grid(1)]
    out[cuda.grid(1)] = tile[t]  # <- shared_race tile


@broken_case("shared_race", grid=1, block=64, args=lambda: (ramp(2, 64), zeros(2, 64)))
@cuda.jit
def barrier_in_the_first_round_only(x, out):
    tile = cuda.shared.array((2, 64), float32)
    t = cuda.threadIdx.x
    for step in range(2):
        tile[step, t] = x[step, t]
        if step == 0:
            cuda.syncthreads()
        out[step, t] = tile[step, 63 - t]  # <- shared_race tile


@broken_case("shared_race", grid=1, block=64, args=lambda: (ramp(64), zeros(64)))
@cuda.jit
def syncwarp_where_the_partner_sits_in_another_warp(x, out):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    cuda.syncwarp()
    out[t] = tile[63 - t]  # <- shared_race tile


@broken_case("shared_race", grid=1, block=64, args=lambda: (zeros(64, dtype=np.int32),))
@cuda.jit
def count_read_while_others_still_count(out):
    count = cuda.shared.array(1, int32)
    t = cuda.threadIdx.x
    if t == 0:
        count[0] = 0
    cuda.syncthreads()
    cuda.atomic.add(count, 0, 1)
    out[t] = count[0]  # <- shared_race count


# --- read, then written ----------------------------------------------------------------------------------


@broken_case(
    "shared_race",
    grid=(2, 2),
    block=(8, 8),
    args=lambda: (noise(16, 16), noise(16, 16, seed=1), zeros(16, 16)),
)
@cuda.jit
def tiles_refilled_while_still_in_use(a, b, c):
    As = cuda.shared.array((8, 8), float32)
    Bs = cuda.shared.array((8, 8), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    acc = float32(0)
    for k0 in range(0, 16, 8):
        As[ty, tx] = a[row, k0 + tx]  # <- shared_race As
        Bs[ty, tx] = b[k0 + ty, col]  # <- shared_race Bs
        cuda.syncthreads()
        for p in range(8):
            acc += As[ty, p] * Bs[p, tx]
    c[row, col] = acc


@broken_case("shared_race", grid=1, block=64, args=lambda: (ramp(64), zeros(64)))
@cuda.jit
def shifted_in_place(x, out):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    cuda.syncthreads()
    value = tile[(t + 1) % 64]
    tile[t] = value  # <- shared_race tile
    cuda.syncthreads()
    out[t] = tile[t]


@broken_case("shared_race", grid=1, block=32, args=lambda: (ramp(32), zeros(32)))
@cuda.jit
def shifted_in_one_statement_in_one_warp(x, out):
    tile = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    cuda.syncwarp()
    tile[t] = tile[(t + 1) % 32]  # <- shared_race tile
    cuda.syncwarp()
    out[t] = tile[t]


@broken_case("shared_race", grid=1, block=64, args=lambda: (ramp(64), zeros(64)))
@cuda.jit
def scratch_reused_right_after_a_broadcast(x, out):
    scratch = cuda.shared.array(1, float32)
    t = cuda.threadIdx.x
    if t == 0:
        scratch[0] = x[0]
    cuda.syncthreads()
    first = scratch[0]
    if t == 40:
        scratch[0] = x[40]  # <- shared_race scratch
    cuda.syncthreads()
    out[t] = first + scratch[0]


# --- written twice ---------------------------------------------------------------------------------------


@broken_case("shared_race", grid=1, block=64, args=lambda: (ramp(64), zeros(64)))
@cuda.jit
def every_thread_writes_the_same_element(x, out):
    last = cuda.shared.array(1, float32)
    t = cuda.threadIdx.x
    last[0] = x[t]  # <- shared_race last
    cuda.syncthreads()
    out[t] = last[0]


@broken_case("shared_race", grid=1, block=64, args=lambda: (ramp(64), zeros(64)))
@cuda.jit
def two_threads_an_element(x, out):
    tile = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    tile[t // 2] = x[t]  # <- shared_race tile
    cuda.syncthreads()
    out[t] = tile[t // 2]


@broken_case("shared_race", grid=1, block=64, args=lambda: (ramp(64), zeros(48)))
@cuda.jit
def two_halves_that_overlap(x, out):
    tile = cuda.shared.array(48, float32)
    t = cuda.threadIdx.x
    if t < 32:
        tile[t] = x[t]
    else:
        tile[t - 16] = x[t]  # <- shared_race tile
    cuda.syncthreads()
    if t < 48:
        out[t] = tile[t]


@broken_case("shared_race", grid=1, block=64, args=lambda: (np.arange(64) % 5, zeros(8, dtype=np.int32)))
@cuda.jit
def histogram_without_atomics(values, out):
    bins = cuda.shared.array(8, int32)
    t = cuda.threadIdx.x
    if t < 8:
        bins[t] = 0
    cuda.syncthreads()
    bins[values[t]] += 1  # <- shared_race bins
    cuda.syncthreads()
    if t < 8:
        out[t] = bins[t]


@broken_case("shared_race", grid=3, block=32, args=lambda: (ramp(96), zeros(96)), blocks=((2, 0, 0),))
@cuda.jit
def rows_collide_in_the_last_block(x, out):
    tile = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    slot = t if cuda.blockIdx.x < 2 else t // 2 * 2
    tile[t] = float32(0)
    cuda.syncthreads()
    tile[slot] = x[cuda.grid(1)]  # <- shared_race tile
    cuda.syncthreads()
    out[cuda.grid(1)] = tile[t]


@broken_case("shared_race", grid=1, block=(16, 4), args=lambda: (ramp(4, 16), zeros(4, 16)))
@cuda.jit
def row_index_forgotten(a, out):
    line = cuda.shared.array(16, float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    line[tx] = a[ty, tx]  # <- shared_race line
    cuda.syncthreads()
    out[ty, tx] = line[tx]
