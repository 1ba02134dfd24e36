"""Warp shuffles: reductions, scans, butterflies, broadcasts, segments."""

import numpy as np
from numba import cuda, float32, int32

from lockstep_tests.families import floats, integers, program, zeros

FULL = 0xFFFFFFFF


def by_warp(x, fill=0):
    """The elements in rows of 32; the last row is filled up."""
    rows = np.full(-(-x.size // 32) * 32, fill, x.dtype)
    rows[: x.size] = x
    return rows.reshape(-1, 32)


@cuda.jit(device=True)
def warp_sum(value):
    """The sum of the warp's values, in lane 0."""
    for step in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(FULL, value, step)
    return value


@program(
    5,
    64,
    lambda: (floats(301), zeros(10)),
    lambda x, sums: (None, by_warp(x).sum(axis=1, dtype=np.float64).astype(np.float32)),
)
@cuda.jit
def sums_of_warps(x, sums):
    i = cuda.grid(1)
    value = float32(0)
    if i < x.size:
        value = x[i]
    value = warp_sum(value)
    if cuda.laneid == 0:
        sums[i // 32] = value


@program(
    3,
    96,
    lambda: (integers(-500, 500, 277), zeros(277, dtype=np.int32)),
    lambda x, out: (None, np.repeat(by_warp(x, -(2**31)).max(axis=1), 32)[:277]),
)
@cuda.jit
def maximum_in_every_lane_by_a_butterfly(x, out):
    i = cuda.grid(1)
    value = x[i] if i < x.size else int32(-2147483648)
    bit = 16
    while bit > 0:
        other = cuda.shfl_xor_sync(FULL, value, bit)
        value = max(value, other)
        bit >>= 1
    if i < out.size:
        out[i] = value


@program(
    3,
    96,
    lambda: (integers(-9, 9, 271, dtype=np.int64), zeros(271, dtype=np.int64)),
    lambda x, out: (None, by_warp(x).cumsum(axis=1).ravel()[:271]),
)
@cuda.jit
def inclusive_scan_of_each_warp(x, out):
    i = cuda.grid(1)
    lane = cuda.laneid
    value = 0
    if i < x.size:
        value = x[i]
    step = 1
    while step < 32:
        below = cuda.shfl_up_sync(FULL, value, step)
        if lane >= step:
            value += below
        step *= 2
    if i < out.size:
        out[i] = value


@program(
    4,
    64,
    lambda: (floats(239), zeros(239)),
    lambda x, out: (None, (by_warp(x) - by_warp(x)[:, :1]).ravel()[:239]),
)
@cuda.jit
def difference_from_the_first_lane(x, out):
    i = cuda.grid(1)
    value = float32(0)
    if i < x.size:
        value = x[i]
    first = cuda.shfl_sync(FULL, value, 0)
    if i < out.size:
        out[i] = value - first


def _rotated(x, by, out):
    lane, warp = np.arange(x.size) % 32, np.arange(x.size) // 32
    return None, None, by_warp(x)[warp, (lane + by) % 32]


@program(
    4,
    64,
    lambda: (floats(256, dtype=np.float64), integers(0, 32, 256), zeros(256, dtype=np.float64)),
    _rotated,
)
@cuda.jit
def doubles_from_a_lane_of_their_own_choice(x, by, out):
    i = cuda.grid(1)
    out[i] = cuda.shfl_sync(FULL, x[i], (cuda.laneid + by[i]) % 32)


def _segments(x, head, out):
    out = np.zeros_like(x)
    for i in range(x.size):
        starts_here = head[i] or i % 32 == 0
        out[i] = x[i] if starts_here else out[i - 1] + x[i]
    return None, None, out


@program(
    3,
    96,
    lambda: (
        integers(1, 50, 275),
        (integers(0, 5, 275, seed=1) == 0).astype(np.int32),
        zeros(275, dtype=np.int32),
    ),
    _segments,
)
@cuda.jit
def segmented_scan_of_each_warp(x, head, out):
    i = cuda.grid(1)
    lane = cuda.laneid
    value, flag = int32(0), int32(1)
    if i < x.size:
        value, flag = x[i], head[i]
    for step in (1, 2, 4, 8, 16):
        before = cuda.shfl_up_sync(FULL, value, step)
        closed = cuda.shfl_up_sync(FULL, flag, step)
        if lane >= step:
            if flag == 0:
                value += before
            flag |= closed
    if i < x.size:
        out[i] = value


@program(
    2,
    128,
    lambda: (floats(251, seed=4), zeros(8), zeros(8, dtype=np.int32)),
    lambda x, best, where: (None, by_warp(x, -1).max(axis=1), by_warp(x, -1).argmax(axis=1)),
)
@cuda.jit
def largest_of_each_warp_and_its_lane(x, best, where):
    i = cuda.grid(1)
    value, lane = float32(-1), int32(cuda.laneid)
    if i < x.size:
        value = x[i]
    for step in (16, 8, 4, 2, 1):
        other = cuda.shfl_down_sync(FULL, value, step)
        place = cuda.shfl_down_sync(FULL, lane, step)
        if other > value or (other == value and place < lane):
            value, lane = other, place
    if cuda.laneid == 0:
        best[i // 32] = value
        where[i // 32] = lane


@program(
    3,
    64,
    lambda: (integers(0, 100, 192), zeros(192, dtype=np.int32)),
    lambda x, out: (None, np.sort(by_warp(x), axis=1).ravel()),
)
@cuda.jit
def bitonic_sort_of_each_warp(x, out):
    i = cuda.grid(1)
    lane = cuda.laneid
    value = x[i]
    size = 2
    while size <= 32:
        step = size >> 1
        while step > 0:
            other = cuda.shfl_xor_sync(FULL, value, step)
            ascending = (lane & size) == 0
            lower = (lane & step) == 0
            if ascending == lower:
                value = min(value, other)
            else:
                value = max(value, other)
            step >>= 1
        size <<= 1
    out[i] = value
