"""Threads that work together the right way: barriers, warps, atomics, tiles."""

import numpy as np
from numba import cuda, float32, int32

from lockstep_tests.corpus import noise, ramp, sound_case, zeros

FULL = 0xFFFFFFFF


@sound_case(
    grid=(2, 2),
    block=(32, 8),
    args=lambda: (ramp(50, 40), zeros(40, 50)),
    expected=lambda a, out: (None, a.T),
)
@cuda.jit
def transpose_through_a_padded_tile(a, out):
    tile = cuda.shared.array((32, 33), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col = cuda.blockIdx.x * 32 + tx
    for r in range(0, 32, 8):
        row = cuda.blockIdx.y * 32 + ty + r
        if row < a.shape[0] and col < a.shape[1]:
            tile[ty + r, tx] = a[row, col]
    cuda.syncthreads()
    col = cuda.blockIdx.y * 32 + tx
    for r in range(0, 32, 8):
        row = cuda.blockIdx.x * 32 + ty + r
        if row < out.shape[0] and col < out.shape[1]:
            out[row, col] = tile[tx, ty + r]


@sound_case(
    grid=2,
    block=96,
    args=lambda: (noise(192), zeros(2)),
    expected=lambda x, out: (None, x.reshape(2, 96).sum(axis=1)),
    rtol=1e-4,
)
@cuda.jit
def tree_reduction_of_ninety_six(x, out):
    partial = cuda.shared.array(96, float32)
    t = cuda.threadIdx.x
    partial[t] = x[cuda.grid(1)]
    cuda.syncthreads()
    width = 96
    while width > 1:
        half = (width + 1) // 2
        if t + half < width:
            partial[t] += partial[t + half]
        cuda.syncthreads()
        width = half
    if t == 0:
        out[cuda.blockIdx.x] = partial[0]


@sound_case(
    grid=1,
    block=64,
    args=lambda: (noise(64), zeros(2)),
    expected=lambda x, out: (None, x.reshape(2, 32).sum(axis=1)),
    rtol=1e-4,
)
@cuda.jit
def warp_reduction_with_syncwarp(x, out):
    partial = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    lane = t % 32
    partial[t] = x[t]
    cuda.syncwarp()
    stride = 16
    while stride > 0:
        value = partial[t ^ stride]
        cuda.syncwarp()
        partial[t] += value
        cuda.syncwarp()
        stride //= 2
    if lane == 0:
        out[t // 32] = partial[t]


@sound_case(
    grid=2,
    block=64,
    args=lambda: (noise(128), zeros(4)),
    expected=lambda x, out: (None, x.reshape(4, 32).sum(axis=1)),
    rtol=1e-4,
)
@cuda.jit
def reduction_by_shuffling_down(x, out):
    i = cuda.grid(1)
    value = x[i]
    offset = 16
    while offset > 0:
        value += cuda.shfl_down_sync(FULL, value, offset)
        offset //= 2
    if cuda.laneid == 0:
        out[i // 32] = value


@sound_case(
    grid=1,
    block=64,
    args=lambda: (ramp(64), zeros(64), zeros(64), zeros(64)),
    expected=lambda x, mirrored, broadcast, up: (
        None,
        x.reshape(2, 32)[:, ::-1].ravel(),
        np.repeat(x[[5, 37]], 32),
        np.concatenate([np.r_[half[:2], half[:-2]] for half in (x[:32], x[32:])]),
    ),
)
@cuda.jit
def shuffles_of_three_sorts(x, mirrored, broadcast, up):
    t = cuda.threadIdx.x
    value = x[t]
    mirrored[t] = cuda.shfl_xor_sync(FULL, value, 31)
    broadcast[t] = cuda.shfl_sync(FULL, value, 5)
    up[t] = cuda.shfl_up_sync(FULL, value, 2)


@sound_case(
    grid=4,
    block=48,
    args=lambda: (np.random.default_rng(0).integers(0, 10, 192), zeros(10, dtype=np.int32)),
    expected=lambda values, bins: (None, np.bincount(values, minlength=10).astype(np.int32)),
)
@cuda.jit
def histogram_with_atomics_at_both_levels(values, bins):
    mine = cuda.shared.array(10, int32)
    t = cuda.threadIdx.x
    if t < 10:
        mine[t] = 0
    cuda.syncthreads()
    cuda.atomic.add(mine, values[cuda.grid(1)], 1)
    cuda.syncthreads()
    if t < 10:
        cuda.atomic.add(bins, t, mine[t])


@sound_case(
    grid=2,
    block=40,
    args=lambda: (
        np.random.default_rng(1).permutation(80).astype(np.int32),
        np.array([1000, -1000, 0], np.int32),
    ),
    expected=lambda values, out: (None, np.array([0, 79, 80], np.int32)),
)
@cuda.jit
def atomic_minimum_maximum_and_count(values, out):
    value = values[cuda.grid(1)]
    cuda.atomic.min(out, 0, value)
    cuda.atomic.max(out, 1, value)
    cuda.atomic.add(out, 2, 1)


@sound_case(
    grid=2,
    block=32,
    args=lambda: (zeros(1, dtype=np.int32), zeros(64, dtype=np.int32)),
    expected=lambda counter, taken: (np.array([64], np.int32), np.ones(64, np.int32)),
)
@cuda.jit
def tickets_from_an_atomic_counter(counter, taken):
    ticket = cuda.atomic.add(counter, 0, 1)
    taken[ticket] = 1


@sound_case(
    grid=1,
    block=64,
    args=lambda: (ramp(64), zeros(64)),
    expected=lambda x, out: (None, x[::-1]),
    shared_bytes=256,
)
@cuda.jit
def dynamic_shared_memory(x, out):
    tile = cuda.shared.array(0, float32)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    cuda.syncthreads()
    out[t] = tile[63 - t]


@sound_case(
    grid=(3, 2),
    block=(8, 8),
    args=lambda: (noise(13, 21), noise(21, 19, seed=1), zeros(13, 19)),
    expected=lambda a, b, c: (None, None, a @ b),
    rtol=1e-4,
)
@cuda.jit
def tiled_product_of_odd_sizes(a, b, c):
    As = cuda.shared.array((8, 8), float32)
    Bs = cuda.shared.array((8, 8), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col, row = cuda.grid(2)
    acc = float32(0)
    for k0 in range(0, a.shape[1], 8):
        As[ty, tx] = a[row, k0 + tx] if row < a.shape[0] and k0 + tx < a.shape[1] else float32(0)
        Bs[ty, tx] = b[k0 + ty, col] if k0 + ty < b.shape[0] and col < b.shape[1] else float32(0)
        cuda.syncthreads()
        for p in range(8):
            acc += As[ty, p] * Bs[p, tx]
        cuda.syncthreads()
    if row < c.shape[0] and col < c.shape[1]:
        c[row, col] = acc


@sound_case(
    grid=1,
    block=64,
    args=lambda: (ramp(5, 64), zeros(64)),
    expected=lambda x, out: (None, x[:, ::-1].sum(axis=0)),
)
@cuda.jit
def double_buffer_with_one_barrier_a_step(x, out):
    buffers = cuda.shared.array((2, 64), float32)
    t = cuda.threadIdx.x
    buffers[0, t] = x[0, t]
    cuda.syncthreads()
    total = float32(0)
    for step in range(5):
        if step < 4:
            buffers[(step + 1) % 2, t] = x[step + 1, t]
        total += buffers[step % 2, 63 - t]
        cuda.syncthreads()
    out[t] = total


@sound_case(
    grid=1,
    block=50,
    args=lambda: (ramp(50), zeros(50)),
    expected=lambda x, out: (None, np.cumsum(x)),
)
@cuda.jit
def running_sum_between_two_buffers(x, out):
    buffers = cuda.shared.array((2, 50), float32)
    t = cuda.threadIdx.x
    source = 0
    buffers[0, t] = x[t]
    cuda.syncthreads()
    offset = 1
    while offset < 50:
        value = buffers[source, t]
        if t >= offset:
            value += buffers[source, t - offset]
        buffers[1 - source, t] = value
        source = 1 - source
        cuda.syncthreads()
        offset *= 2
    out[t] = buffers[source, t]


@sound_case(
    grid=3,
    block=64,
    args=lambda: (ramp(192), zeros(192)),
    expected=lambda x, out: (None, np.concatenate([x[:64], x[64:128][::-1], x[128:]])),
)
@cuda.jit
def barrier_in_the_middle_block_only(x, out):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    tile[t] = x[i]
    if cuda.blockIdx.x == 1:
        cuda.syncthreads()
        out[i] = tile[63 - t]
    else:
        out[i] = tile[t]


@sound_case(
    grid=3,
    block=40,
    args=lambda: (zeros(120),),
    expected=lambda out: (
        np.repeat(np.float32([1, 2, 3]), 40) * np.tile(np.arange(40, dtype=np.float32), 3),
    ),
)
@cuda.jit
def as_many_barriers_as_the_block_index(out):
    tile = cuda.shared.array(40, float32)
    t = cuda.threadIdx.x
    total = float32(0)
    for _ in range(cuda.blockIdx.x + 1):
        tile[39 - t] = float32(39 - t)
        cuda.syncthreads()
        total += tile[t]
        cuda.syncthreads()
    out[cuda.grid(1)] = total


@sound_case(grid=1, block=64, args=lambda: (ramp(64), zeros(64)), expected=lambda x, out: (None, x + x))
@cuda.jit
def own_shared_element_needs_no_barrier(x, out):
    mine = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    mine[t] = x[t]
    mine[t] += x[t]
    out[t] = mine[t]


@sound_case(
    grid=1,
    block=64,
    args=lambda: (ramp(64), zeros(64)),
    expected=lambda x, out: (None, x.reshape(2, 32)[:, ::-1].ravel()),
)
@cuda.jit
def each_warp_in_its_own_part_of_a_tile(x, out):
    tile = cuda.shared.array((2, 32), float32)
    t = cuda.threadIdx.x
    warp, lane = t // 32, t % 32
    tile[warp, lane] = x[t]
    cuda.syncwarp()
    out[t] = tile[warp, 31 - lane]


@sound_case(grid=2, block=64, args=lambda: (ramp(128), zeros(128)), expected=lambda x, out: (None, x * 2))
@cuda.jit
def early_return_of_a_whole_block_before_a_barrier(x, out):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    if cuda.blockIdx.x == 0:
        out[i] = x[i] + x[i]
        return
    tile[t] = x[i]
    cuda.syncthreads()
    out[cuda.blockIdx.x * 64 + 63 - t] = tile[63 - t] * float32(2)


@sound_case(grid=2, block=64, args=lambda: (ramp(100), zeros(100)), expected=lambda x, out: (None, x))
@cuda.jit
def return_before_the_barrier(x, out):
    tile = cuda.shared.array(64, float32)
    i = cuda.grid(1)
    if i >= x.shape[0]:
        return
    tile[cuda.threadIdx.x] = x[i]
    cuda.syncthreads()
    out[i] = tile[cuda.threadIdx.x]


@sound_case(
    grid=2,
    block=64,
    args=lambda: (ramp(128), zeros(128)),
    expected=lambda x, out: (x + 1, (x + 1).reshape(2, 64)[:, ::-1].ravel()),
)
@cuda.jit
def barrier_orders_global_memory_within_a_block(x, out):
    i = cuda.grid(1)
    x[i] += float32(1)
    cuda.syncthreads()
    out[i] = x[cuda.blockIdx.x * 64 + 63 - cuda.threadIdx.x]


@sound_case(
    grid=1,
    block=64,
    args=lambda: (ramp(64), zeros(64)),
    expected=lambda x, out: (None, np.full(64, x[0] + x[63], np.float32)),
)
@cuda.jit
def one_slot_reused_between_barriers(x, out):
    slot = cuda.shared.array(1, float32)
    t = cuda.threadIdx.x
    if t == 0:
        slot[0] = x[0]
    cuda.syncthreads()
    first = slot[0]
    cuda.syncthreads()
    if t == 63:
        slot[0] = x[63]
    cuda.syncthreads()
    out[t] = first + slot[0]


@sound_case(
    grid=(1, 1, 4),
    block=(8, 8),
    args=lambda: (noise(8, 32), noise(32, 8, seed=1), zeros(8, 8)),
    expected=lambda a, b, c: (None, None, a @ b),
    rtol=1e-4,
)
@cuda.jit
def split_k_with_atomics(a, b, c):
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    first = cuda.blockIdx.z * 8
    acc = float32(0)
    for p in range(first, first + 8):
        acc += a[ty, p] * b[p, tx]
    cuda.atomic.add(c, (ty, tx), acc)


@sound_case(
    grid=2,
    block=32,
    args=lambda: (ramp(50), zeros(64)),
    expected=lambda x, out: (None, np.concatenate([x[:32][::-1], np.zeros(14), x[32:][::-1]])),
)
@cuda.jit
def edge_of_the_tile_zeroed(x, out):
    tile = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    if i < x.shape[0]:
        tile[t] = x[i]
    else:
        tile[t] = float32(0)
    cuda.syncthreads()
    out[i] = tile[31 - t]


@sound_case(
    grid=1,
    block=(6, 5, 3),
    args=lambda: (ramp(90), zeros(90)),
    expected=lambda x, out: (None, x[::-1]),
)
@cuda.jit
def tile_of_a_three_dimensional_block(x, out):
    tile = cuda.shared.array((3, 5, 6), float32)
    tx, ty, tz = cuda.threadIdx.x, cuda.threadIdx.y, cuda.threadIdx.z
    i = (tz * 5 + ty) * 6 + tx
    tile[tz, ty, tx] = x[i]
    cuda.syncthreads()
    out[i] = tile[2 - tz, 4 - ty, 5 - tx]


@sound_case(
    grid=1,
    block=96,
    args=lambda: (noise(96), zeros(3), zeros(1)),
    expected=lambda x, warps, total: (None, x.reshape(3, 32).max(axis=1), np.array([x.max()])),
)
@cuda.jit
def maximum_by_warps_then_by_the_first(x, warps, total):
    best = cuda.shared.array(3, float32)
    t = cuda.threadIdx.x
    value = x[t]
    offset = 16
    while offset > 0:
        value = max(value, cuda.shfl_xor_sync(FULL, value, offset))
        offset //= 2
    if t % 32 == 0:
        best[t // 32] = value
        warps[t // 32] = value
    cuda.syncthreads()
    if t == 0:
        total[0] = max(max(best[0], best[1]), best[2])
