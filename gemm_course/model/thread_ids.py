"""Finds which element, warp and lane belong to each thread of a grid, by a kernel on the emulator."""

from __future__ import annotations

from functools import cache

import numpy as np
from numba import cuda

from lockstep import emulate


@cuda.jit
def who_am_i(ids):
    """Write each thread's own coordinates to ``ids[block y, block x, thread y, thread x]``."""
    mine = ids[cuda.blockIdx.y, cuda.blockIdx.x, cuda.threadIdx.y, cuda.threadIdx.x]
    linear = cuda.threadIdx.y * cuda.blockDim.x + cuda.threadIdx.x
    column, row = cuda.grid(2)
    mine[0] = row
    mine[1] = column
    mine[2] = linear
    mine[3] = linear // 32
    mine[4] = linear % 32


@cache
def coordinates(grid: tuple[int, int], block: tuple[int, int]) -> np.ndarray:
    """Run :func:`who_am_i` and return what the threads wrote.

    ``grid`` and ``block`` are (x, y). The result has the shape (grid y, grid x, block y, block x, 5). The
    last axis holds row, column, linear id in the block, warp, lane.
    """
    ids = np.zeros((grid[1], grid[0], block[1], block[0], 5), np.int32)
    emulate(who_am_i, grid, block, ids)
    return ids
