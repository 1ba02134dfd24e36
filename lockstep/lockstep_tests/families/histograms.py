"""Histograms: with counters of the grid, of each block and of each warp; weighted; in two dimensions."""

import numpy as np
from numba import cuda, int32

from lockstep_tests.families import floats, integers, program, zeros

BINS = 61


def _counts(values, bins):
    return None, np.bincount(values, minlength=bins.size)


@program(6, 80, lambda: (integers(0, BINS, 457), zeros(BINS, dtype=np.int32)), _counts)
@cuda.jit
def histogram_with_global_counters(values, bins):
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.add(bins, values[i], 1)


@program(3, 96, lambda: (integers(0, BINS, 1511), zeros(BINS, dtype=np.int32)), _counts)
@cuda.jit
def histogram_private_to_each_block(values, bins):
    mine = cuda.shared.array(BINS, int32)
    for b in range(cuda.threadIdx.x, BINS, cuda.blockDim.x):
        mine[b] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(mine, values[i], 1)
    cuda.syncthreads()
    for b in range(cuda.threadIdx.x, BINS, cuda.blockDim.x):
        if mine[b] > 0:
            cuda.atomic.add(bins, b, mine[b])


@program(2, 128, lambda: (integers(0, BINS, 1023, seed=1), zeros(BINS, dtype=np.int32)), _counts)
@cuda.jit
def histogram_private_to_each_warp(values, bins):
    mine = cuda.shared.array((4, BINS), int32)
    t = cuda.threadIdx.x
    warp, lane = t >> 5, t & 31
    for b in range(lane, BINS, 32):
        mine[warp, b] = 0
    cuda.syncwarp()
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(mine, (warp, values[i]), 1)
    cuda.syncthreads()
    if t < BINS:
        total = mine[0, t] + mine[1, t] + mine[2, t] + mine[3, t]
        cuda.atomic.add(bins, t, total)


@program(
    4,
    96,
    lambda: (integers(0, 256, 383, dtype=np.uint8), floats(383), zeros(256)),
    lambda values, weights, bins: (
        None,
        None,
        np.bincount(values, weights, minlength=256).astype(np.float32),
    ),
)
@cuda.jit
def weighted_histogram_of_bytes(values, weights, bins):
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.add(bins, values[i], weights[i])


def _joint(x, y, bins):
    bins = bins.copy()
    np.add.at(bins, ((x * np.float32(8)).astype(int), (y * np.float32(4)).astype(int)), 1)
    return None, None, bins


@program(
    5,
    64,
    lambda: (
        floats(313, seed=2) - np.float32(0.5),
        floats(313, seed=3) - np.float32(0.5),
        zeros(8, 4, dtype=np.int32),
    ),
    _joint,
)
@cuda.jit
def joint_histogram_of_two_floats(x, y, bins):
    i = cuda.grid(1)
    if i < x.size:
        row = int(x[i] * 8)
        column = int(y[i] * 4)
        cuda.atomic.add(bins, (row, column), 1)
