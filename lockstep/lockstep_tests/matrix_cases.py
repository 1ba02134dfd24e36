"""One warp and one ldmatrix per case: rows of a tile without padding, padded, swizzled or anywhere.

`python -m measuring counters --module lockstep/lockstep_tests/matrix_cases.py` records a GPU's counts.
"""

import numpy as np
from numba import cuda
from numba.types import float16

from lockstep.intrinsics import ldmatrix_x2, ldmatrix_x4, ldmatrix_x4_trans, unroll
from lockstep_tests.counter_cases import CounterCase

SIZE = 64 * 128  # float16 elements of shared memory
LANES = np.arange(32)


def kernel_for(load, size):
    """A kernel whose lanes pass rows[lane], counted in float16 elements, to one ldmatrix."""

    @cuda.jit
    def matrix_load(rows, out):
        tile = cuda.shared.array(0, float16, 16)
        fragment = cuda.local.array(size, float16)
        lane = cuda.threadIdx.x
        for i in range(lane, SIZE, 32):
            tile[i] = float16(1)
        cuda.syncwarp()
        load(fragment, tile, rows[lane])
        for e in unroll(range(size)):
            out[lane, e] = fragment[e]

    return matrix_load


def rows_of(width):
    """Where 16 rows of a tile `width` float16 wide start, and the places 8 elements after that."""
    return LANES % 16 * width + LANES // 16 * 8


def swizzled(width, number):
    """The same rows swizzled: chunk c of row r is at c ^ number(r)."""
    return LANES % 16 * width + ((LANES // 16) ^ number(LANES % 16)) * 8


RANDOM = np.random.default_rng(7)
LAYOUTS = {
    "plain rows of 16": rows_of(16),
    "plain rows of 32": rows_of(32),
    "plain rows of 64": rows_of(64),
    "plain rows of 128": rows_of(128),
    "rows of 32 padded by 8": rows_of(40),
    "rows of 64 padded by 8": rows_of(72),
    "rows of 64 padded by 16": rows_of(80),
    "rows of 128 padded by 8": rows_of(136),
    "rows of 64 swizzled": swizzled(64, lambda row: row % 8),
    "rows of 32 swizzled": swizzled(32, lambda row: row // 2 % 4),
    "rows of 16 swizzled": swizzled(16, lambda row: row // 4 % 2),
    "the same row": LANES * 0,
    "rows anywhere": RANDOM.integers(0, SIZE // 8, 32) * 8,
    "rows anywhere among 16": RANDOM.integers(0, 16, 32) * 8,
}
LOADS = {"x4": (ldmatrix_x4, 8), "x4 transposed": (ldmatrix_x4_trans, 8), "x2": (ldmatrix_x2, 4)}
KERNELS = {name: kernel_for(*load) for name, load in LOADS.items()}


def _case(layout, load):
    rows, (_, size) = LAYOUTS[layout].astype(np.int64), LOADS[load]
    return CounterCase(
        f"{layout}, {load}",
        KERNELS[load],
        (1,),
        (32,),
        lambda: (rows, np.zeros((32, size), np.float16)),
        shared_bytes=2 * SIZE,
    )


CASES = [_case(layout, load) for layout in LAYOUTS for load in LOADS]
