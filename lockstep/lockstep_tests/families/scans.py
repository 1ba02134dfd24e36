"""Prefix sums: Hillis and Steele's, Blelloch's, by warps, and the block sums that join them."""

import numpy as np
from numba import cuda, float32, int32

from lockstep_tests.families import floats, integers, program, zeros

FULL = 0xFFFFFFFF


def scan_of_blocks(x, size):
    """The inclusive scan of each run of `size` elements, in float64 or int64."""
    rows = np.zeros(-(-x.size // size) * size, np.float64 if x.dtype.kind == "f" else np.int64)
    rows[: x.size] = x
    return rows.reshape(-1, size).cumsum(axis=1)


@program(
    3,
    128,
    lambda: (floats(355), zeros(355)),
    lambda x, out: (None, scan_of_blocks(x, 128).ravel()[:355].astype(np.float32)),
)
@cuda.jit
def hillis_and_steele_with_two_buffers(x, out):
    buffer = cuda.shared.array((2, 128), float32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    now = 0
    buffer[now, t] = x[i] if i < x.size else float32(0)
    cuda.syncthreads()
    step = 1
    while step < 128:
        after = 1 - now
        if t >= step:
            buffer[after, t] = buffer[now, t] + buffer[now, t - step]
        else:
            buffer[after, t] = buffer[now, t]
        now = after
        cuda.syncthreads()
        step *= 2
    if i < x.size:
        out[i] = buffer[now, t]


@program(
    4,
    96,
    lambda: (integers(-20, 50, 371), zeros(371, dtype=np.int32)),
    lambda x, out: (None, scan_of_blocks(x, 96).ravel()[:371]),
)
@cuda.jit
def hillis_and_steele_in_place(x, out):
    buffer = cuda.shared.array(96, int32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    buffer[t] = x[i] if i < x.size else int32(0)
    cuda.syncthreads()
    step = 1
    while step < 96:
        below = int32(0)
        if t >= step:
            below = buffer[t - step]
        cuda.syncthreads()
        buffer[t] += below
        cuda.syncthreads()
        step *= 2
    if i < x.size:
        out[i] = buffer[t]


def _exclusive(x, out, sums):
    scan = scan_of_blocks(x, 128)
    wide = np.zeros(scan.shape)
    wide[:, 1:] = scan[:, :-1]
    return None, wide.ravel()[: x.size].astype(out.dtype), scan[:, -1].astype(sums.dtype)


@program(3, 64, lambda: (floats(339), zeros(339), zeros(3)), _exclusive)
@cuda.jit
def blelloch_exclusive_scan(x, out, sums):
    tree = cuda.shared.array(128, float32)
    t, first = cuda.threadIdx.x, cuda.blockIdx.x * 128
    for k in range(t, 128, 64):
        tree[k] = x[first + k] if first + k < x.size else float32(0)
    offset = 1
    active = 64
    while active > 0:
        cuda.syncthreads()
        if t < active:
            low = offset * (2 * t + 1) - 1
            high = offset * (2 * t + 2) - 1
            tree[high] += tree[low]
        offset *= 2
        active >>= 1
    cuda.syncthreads()
    if t == 0:
        sums[cuda.blockIdx.x] = tree[127]
        tree[127] = 0
    active = 1
    while active <= 64:
        offset >>= 1
        cuda.syncthreads()
        if t < active:
            low = offset * (2 * t + 1) - 1
            high = offset * (2 * t + 2) - 1
            left = tree[low]
            tree[low] = tree[high]
            tree[high] += left
        active *= 2
    cuda.syncthreads()
    for k in range(t, 128, 64):
        if first + k < x.size:
            out[first + k] = tree[k]


@cuda.jit(device=True)
def scan_of_a_warp(value):
    """The inclusive scan of the warp's values."""
    for step in (1, 2, 4, 8, 16):
        below = cuda.shfl_up_sync(FULL, value, step)
        if cuda.laneid >= step:
            value += below
    return value


@program(
    3,
    128,
    lambda: (integers(0, 9, 353), zeros(353, dtype=np.int32), zeros(3, dtype=np.int32)),
    lambda x, out, sums: (None, scan_of_blocks(x, 128).ravel()[:353], scan_of_blocks(x, 128)[:, -1]),
)
@cuda.jit
def scan_by_warps_and_the_sums_of_blocks(x, out, sums):
    of_warps = cuda.shared.array(4, int32)
    t, i = cuda.threadIdx.x, cuda.grid(1)
    warp = t // 32
    value = int32(0)
    if i < x.size:
        value = x[i]
    value = scan_of_a_warp(value)
    if cuda.laneid == 31:
        of_warps[warp] = value
    cuda.syncthreads()
    before = int32(0)
    for w in range(warp):
        before += of_warps[w]
    if i < x.size:
        out[i] = value + before
    if t == 127:
        sums[cuda.blockIdx.x] = value + before


@program(
    3,
    128,
    lambda: (integers(0, 99, 353), integers(0, 9, 3, seed=1)),
    lambda x, sums: (x + np.repeat(np.r_[0, sums[:2].cumsum()], 128)[:353], None),
)
@cuda.jit
def add_the_sums_of_the_blocks_before(x, sums):
    i = cuda.grid(1)
    before = int32(0)
    for b in range(cuda.blockIdx.x):
        before += sums[b]
    if i < x.size:
        x[i] += before
