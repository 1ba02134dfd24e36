"""Reductions: trees, sequential addressing, grid-stride loops, a last block that finishes the sum."""

import numpy as np
from numba import cuda, float32, float64, int32

from lockstep_tests.families import floats, integers, program, zeros
from lockstep_tests.families.warps import warp_sum


def sums_of(x, size):
    """The sum of each run of `size` elements, rounded to float32 at the end."""
    return np.array([x[p : p + size].sum(dtype=np.float64) for p in range(0, x.size, size)], np.float32)


@program(4, 96, lambda: (floats(359), zeros(4)), lambda x, sums: (None, sums_of(x, 96)))
@cuda.jit
def tree_with_interleaved_threads(x, sums):
    part = cuda.shared.array(96, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    part[t] = x[i] if i < x.size else float32(0)
    cuda.syncthreads()
    step = 1
    while step < 96:
        if (t & (2 * step - 1)) == 0 and t + step < 96:
            part[t] += part[t + step]
        cuda.syncthreads()
        step *= 2
    if t == 0:
        sums[cuda.blockIdx.x] = part[0]


@program(3, 128, lambda: (floats(367), zeros(3)), lambda x, sums: (None, sums_of(x, 128)))
@cuda.jit
def tree_with_sequential_addresses(x, sums):
    part = cuda.shared.array(128, float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    part[t] = x[i] if i < x.size else float32(0)
    cuda.syncthreads()
    width = 64
    while width > 0:
        if t < width:
            part[t] += part[t + width]
        cuda.syncthreads()
        width >>= 1
    if t == 0:
        sums[cuda.blockIdx.x] = part[0]


@program(
    3,
    96,
    lambda: (floats(1409), zeros(1)),
    lambda x, total: (None, sums_of(x, 2000)),
)
@cuda.jit
def grid_stride_sum_by_warps(x, total):
    mine = float32(0)
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        mine += x[i]
    mine = warp_sum(mine)
    if cuda.laneid == 0:
        cuda.atomic.add(total, 0, mine)


@program(
    2,
    128,
    lambda: (floats(1021), floats(1021, seed=1), zeros(2)),
    lambda a, b, out: (
        None,
        None,
        [(a.astype(np.float64) * b)[np.arange(1021) % 256 // 128 == block].sum() for block in (0, 1)],
    ),
)
@cuda.jit
def dot_product_of_each_block(a, b, out):
    part = cuda.shared.array(4, float64)
    t = cuda.threadIdx.x
    mine = 0.0
    for i in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        mine += float64(a[i]) * b[i]
    mine = warp_sum(mine)
    if cuda.laneid == 0:
        part[t // 32] = mine
    cuda.syncthreads()
    if t == 0:
        out[cuda.blockIdx.x] = part[0] + part[1] + part[2] + part[3]


def _smallest(x, value, where):
    rows = [x[p : p + 64] for p in range(0, x.size, 64)]
    return None, [row.min() for row in rows], [p * 64 + row.argmin() for p, row in enumerate(rows)]


@program(5, 64, lambda: (integers(0, 90, 307), zeros(5, dtype=np.int32), zeros(5, dtype=np.int32)), _smallest)
@cuda.jit
def smallest_and_where_it_is(x, value, where):
    values = cuda.shared.array(64, int32)
    places = cuda.shared.array(64, int32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    values[t] = x[i] if i < x.size else int32(2147483647)
    places[t] = i
    cuda.syncthreads()
    width = 32
    while width > 0:
        if t < width:
            other, place = values[t + width], places[t + width]
            if other < values[t] or (other == values[t] and place < places[t]):
                values[t] = other
                places[t] = place
        cuda.syncthreads()
        width //= 2
    if t == 0:
        value[cuda.blockIdx.x] = values[0]
        where[cuda.blockIdx.x] = places[0]


@program(
    7,
    32,
    lambda: (floats(7, 83), zeros(7), zeros(7)),
    lambda a, mean, variance: (
        None,
        a.mean(axis=1, dtype=np.float64).astype(np.float32),
        a.var(axis=1, dtype=np.float64).astype(np.float32),
    ),
)
@cuda.jit
def mean_and_variance_of_rows(a, mean, variance):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    columns = a.shape[1]
    total = float32(0)
    for column in range(lane, columns, 32):
        total += a[row, column]
    middle = cuda.shfl_sync(0xFFFFFFFF, warp_sum(total), 0) * float32(1 / 83)
    total = float32(0)
    for column in range(lane, columns, 32):
        away = a[row, column] - middle
        total += away * away
    total = warp_sum(total)
    if lane == 0:
        mean[row] = middle
        variance[row] = total * float32(1 / 83)


@program(
    (3, 5),
    (16, 8),
    lambda: (floats(37, 45), zeros(45)),
    lambda a, sums: (None, a.sum(axis=0, dtype=np.float64).astype(np.float32)),
)
@cuda.jit
def column_sums_with_one_atomic_per_block(a, sums):
    part = cuda.shared.array((8, 16), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    x, y = cuda.grid(2)
    inside = y < a.shape[0] and x < a.shape[1]
    part[ty, tx] = a[y, x] if inside else float32(0)
    cuda.syncthreads()
    if ty == 0 and x < a.shape[1]:
        total = float32(0)
        for r in range(8):
            total += part[r, tx]
        cuda.atomic.add(sums, x, total)
