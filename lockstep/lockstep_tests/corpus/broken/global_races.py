"""One element of a global array written by one thread and touched by another, in a block or across blocks."""

import numpy as np
from numba import cuda, float32

from lockstep_tests.corpus import broken_case, noise, ramp, zeros


@broken_case("global_race", grid=1, block=64, args=lambda: (ramp(64), zeros(1)))
@cuda.jit
def all_threads_store_one_element(x, out):
    out[0] = x[cuda.threadIdx.x]  # <- global_race out


@broken_case("global_race", grid=2, block=32, args=lambda: (ramp(64), zeros(64)))
@cuda.jit
def block_index_forgotten(x, out):
    out[cuda.threadIdx.x] = x[cuda.grid(1)]  # <- global_race out


@broken_case("global_race", grid=2, block=64, args=lambda: (ramp(128), zeros(1)))
@cuda.jit
def sum_without_atomics(x, out):
    out[0] += x[cuda.grid(1)]  # <- global_race out


@broken_case("global_race", grid=1, block=(32, 8), args=lambda: (ramp(8, 32), zeros(4, 32)))
@cuda.jit
def two_rows_stored_into_one(a, out):
    col, row = cuda.grid(2)
    out[row // 2, col] = a[row, col]  # <- global_race out


@broken_case("global_race", grid=3, block=32, args=lambda: (ramp(96), zeros(92)))
@cuda.jit
def blocks_overlap_by_two(x, out):
    i = cuda.blockIdx.x * 30 + cuda.threadIdx.x
    out[i] = x[cuda.grid(1)]  # <- global_race out


@broken_case("global_race", grid=2, block=32, args=lambda: (np.arange(64) // 3, ramp(64), zeros(64)))
@cuda.jit
def scatter_with_repeated_indices(index, x, out):
    i = cuda.grid(1)
    out[index[i]] = x[i]  # <- global_race out


@broken_case(
    "global_race",
    grid=(1, 1, 4),
    block=(8, 8),
    args=lambda: (noise(8, 32), noise(32, 8, seed=1), zeros(8, 8)),
)
@cuda.jit
def split_k_without_atomics(a, b, c):
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    first = cuda.blockIdx.z * 8
    acc = float32(0)
    for p in range(first, first + 8):
        acc += a[ty, p] * b[p, tx]
    c[ty, tx] += acc  # <- global_race c


@broken_case(
    "global_race", grid=4, block=32, args=lambda: (ramp(128), zeros(4)), blocks=((2, 0, 0), (3, 0, 0))
)
@cuda.jit
def last_blocks_share_a_result(x, out):
    b = cuda.blockIdx.x
    if cuda.threadIdx.x == 0:
        out[min(b, 2)] = x[b * 32]  # <- global_race out


@broken_case("global_race", grid=1, block=64, args=lambda: (ramp(64),))
@cuda.jit
def array_reversed_in_place(x):
    i = cuda.grid(1)
    x[63 - i] = x[i]  # <- global_race x


@broken_case("global_race", grid=2, block=32, args=lambda: (ramp(64), zeros(64)))
@cuda.jit
def result_of_another_block_read_at_once(x, out):
    i = cuda.grid(1)
    x[i] = x[i] * x[i]
    out[i] = x[63 - i]  # <- global_race x
