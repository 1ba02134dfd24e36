"""Finds a warp's reads of As and Bs in a step along k, for any layout of its lanes, by emulation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numba import cuda, float32

from gemm_course.model.requests import Request, requests
from lockstep import Watch, emulate
from lockstep.intrinsics import load4

WARP = 32
# A lane owns results in this many rows, and in as many columns, of C.
RESULTS = 8


def request(rows: int, columns: int, run: int, bits: int, array: str) -> Request:
    """Return the first read of As or Bs by a warp of rows × columns lanes, from the emulator's trace.

    ``run`` is how many of a lane's rows, and columns, are neighbours. ``bits`` is 32 or 128 per lane.
    """
    return requests(_trace(rows, columns, run, bits), array=array, op="load", space="shared")[0]


def words(rows: int, columns: int, run: int, bits: int, array: str) -> dict[int, list[int]]:
    """Return the words of As or Bs that each lane reads in a step along k.

    They are its rows or its columns of the warp's tile.
    """
    found: dict[int, list[int]] = defaultdict(list)
    for asked in requests(_trace(rows, columns, run, bits), array=array, op="load", space="shared"):
        for lane, (_, word), _ in asked.lanes:
            found[lane] += range(word, word + bits // 32)
    return found


@lru_cache(64)
def _trace(rows: int, columns: int, run: int, bits: int):
    out = np.zeros((WARP, 2), np.float32)
    return emulate(_kernel(rows, columns, run, bits), 1, WARP, out, watch=Watch()).trace


def _kernel(rows: int, columns: int, run: int, bits: int) -> Callable:
    """Return a kernel whose warp reads one row of As and of Bs as a warp-tiled kernel does."""
    HIGH, WIDE = rows * RESULTS, columns * RESULTS

    @cuda.jit
    def by_ones(out):
        As = cuda.shared.array((1, HIGH), float32, 16)
        Bs = cuda.shared.array((1, WIDE), float32, 16)
        lane = cuda.threadIdx.x
        for i in range(lane, HIGH, WARP):
            As[0, i] = 0
        for i in range(lane, WIDE, WARP):
            Bs[0, i] = 0
        cuda.syncthreads()
        for i in range(RESULTS):
            out[lane, 0] = As[0, lane // columns * run + i // run * (run * rows) + i % run]
            out[lane, 1] = Bs[0, lane % columns * run + i // run * (run * columns) + i % run]

    @cuda.jit
    def by_fours(out):
        As = cuda.shared.array((1, HIGH), float32, 16)
        Bs = cuda.shared.array((1, WIDE), float32, 16)
        lane = cuda.threadIdx.x
        for i in range(lane, HIGH, WARP):
            As[0, i] = 0
        for i in range(lane, WIDE, WARP):
            Bs[0, i] = 0
        cuda.syncthreads()
        for i in range(0, RESULTS, 4):
            out[lane, 0] = load4(As, (0, lane // columns * run + i // run * (run * rows) + i % run))[0]
            out[lane, 1] = load4(Bs, (0, lane % columns * run + i // run * (run * columns) + i % run))[0]

    return by_ones if bits == 32 else by_fours
