"""Shared or local memory read before anything was written to it."""

import numpy as np
from numba import cuda, float32, int32

from lockstep_tests.corpus import broken_case, ramp, zeros


@broken_case("uninitialised_read", grid=1, block=32, args=lambda: (ramp(32), zeros(32)))
@cuda.jit
def half_a_tile_filled(x, out):
    tile = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    if t < 16:
        tile[t] = x[t]
    cuda.syncthreads()
    out[t] = tile[t]  # <- uninitialised_read tile


@broken_case("uninitialised_read", grid=1, block=32, args=lambda: (zeros(32),))
@cuda.jit
def tile_never_filled(out):
    tile = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    out[t] = tile[t]  # <- uninitialised_read tile


@broken_case("uninitialised_read", grid=2, block=32, args=lambda: (ramp(40), zeros(64)), blocks=((1, 0, 0),))
@cuda.jit
def edge_of_the_tile_not_zeroed(x, out):
    tile = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    if i < x.shape[0]:
        tile[t] = x[i]
    cuda.syncthreads()
    out[i] = tile[31 - t]  # <- uninitialised_read tile


@broken_case("uninitialised_read", grid=1, block=32, args=lambda: (ramp(34), zeros(32)))
@cuda.jit
def right_halo_forgotten(x, out):
    tile = cuda.shared.array(34, float32)
    t = cuda.threadIdx.x
    tile[t + 1] = x[t + 1]
    if t == 0:
        tile[0] = x[0]
    cuda.syncthreads()
    out[t] = tile[t] + tile[t + 1] + tile[t + 2]  # <- uninitialised_read tile


@broken_case("uninitialised_read", grid=1, block=32, args=lambda: (ramp(32), zeros(32)))
@cuda.jit
def added_to_shared_memory_never_zeroed(x, out):
    total = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    total[t] += x[t]  # <- uninitialised_read total
    out[t] = float32(1)


@broken_case("uninitialised_read", grid=1, block=64, args=lambda: (ramp(64), zeros(64)), shared_bytes=512)
@cuda.jit
def upper_half_of_dynamic_memory(x, out):
    tile = cuda.shared.array(0, float32)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    cuda.syncthreads()
    out[t] = tile[t + 64]  # <- uninitialised_read tile


@broken_case(
    "uninitialised_read", grid=1, block=32, args=lambda: (np.arange(32) % 4, zeros(4, dtype=np.int32))
)
@cuda.jit
def bins_never_zeroed(values, out):
    bins = cuda.shared.array(4, int32)
    t = cuda.threadIdx.x
    cuda.atomic.add(bins, values[t], 1)  # <- uninitialised_read bins
    cuda.syncthreads()
    if t < 4:
        out[t] = int32(t)


@broken_case(
    "uninitialised_read", grid=2, block=(8, 8), args=lambda: (ramp(8, 12), zeros(8, 16)), blocks=((1, 0, 0),)
)
@cuda.jit
def column_tail_of_a_tile(a, out):
    tile = cuda.shared.array((8, 8), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col = cuda.blockIdx.x * 8 + tx
    if col < a.shape[1]:
        tile[ty, tx] = a[ty, col]
    cuda.syncthreads()
    total = float32(0)
    for p in range(8):
        total += tile[ty, p]  # <- uninitialised_read tile
    out[ty, col] = total


@broken_case("uninitialised_read", grid=1, block=32, args=lambda: (ramp(32), zeros(32)))
@cuda.jit
def accumulators_never_zeroed(x, out):
    acc = cuda.local.array(4, float32)
    t = cuda.threadIdx.x
    for j in range(4):
        acc[j] += x[t]  # <- uninitialised_read acc
    out[t] = float32(0)


@broken_case("uninitialised_read", grid=1, block=32, args=lambda: (ramp(32), zeros(32)))
@cuda.jit
def last_local_element_missing(x, out):
    parts = cuda.local.array(4, float32)
    t = cuda.threadIdx.x
    for j in range(3):
        parts[j] = x[t]
    out[t] = parts[0] + parts[3]  # <- uninitialised_read parts


@broken_case("uninitialised_read", grid=1, block=32, args=lambda: (ramp(32), zeros(32)))
@cuda.jit
def local_array_filled_by_some_threads(x, out):
    parts = cuda.local.array(2, float32)
    t = cuda.threadIdx.x
    parts[0] = x[t]
    if x[t] > 10:
        parts[1] = x[t]
    out[t] = parts[0] + parts[1]  # <- uninitialised_read parts


@broken_case(
    "uninitialised_read", grid=3, block=32, args=lambda: (ramp(96), zeros(96)), blocks=((0, 0, 0), (1, 0, 0))
)
@cuda.jit
def local_array_filled_up_to_the_block_index(x, out):
    parts = cuda.local.array(2, float32)
    i = cuda.grid(1)
    for j in range(cuda.blockIdx.x):
        parts[j] = x[i]
    total = float32(0)
    for j in range(2):
        total += parts[j]  # <- uninitialised_read parts
    out[i] = total
