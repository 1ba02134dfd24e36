"""What a choice of tiles costs, counted by the emulator for one block and remembered."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from gemm_course.emulator import DataDependent, Report, emulate
from gemm_course.kernels import LADDER, Stage

WIDE = 1024  # columns of the matrices that one block's accesses are counted on
_KEPT = 4096  # choices remembered
_SUMMED = ("requests", "bytes", "sectors", "wavefronts")


class Cost:
    """What a launch does for ``fma`` multiply-adds.

    ``loads`` and ``shared_loads`` are elements a multiply-add, whatever width they are read in; ``sectors``
    sectors a load request; ``wavefronts`` shared-memory wavefronts for 32 multiply-adds, one of each lane of
    a warp; ``intensity`` FLOP for each byte that loads move out of L1, ``intensity_with_stores`` for each
    byte that C's stores move in addition.
    """

    def __init__(self, report: Report, fma: int, itemsize: int):
        self.shared_bytes = report.shared_bytes
        loads = _sums(report, "global", "load")
        self.loads = loads["bytes"] / itemsize / fma
        self.sectors = loads["sectors"] / loads["requests"]
        self.intensity = 2 * fma / (32 * loads["sectors"])
        stored = _sums(report, "global", "store")["sectors"]
        self.intensity_with_stores = 2 * fma / (32 * (loads["sectors"] + stored))
        read = _sums(report, "shared", "load")
        self.shared_loads = read["bytes"] / itemsize / fma
        self.wavefronts = 32 * read["wavefronts"] / fma


def _sums(report: Report, space: str, op: str) -> dict[str, int]:
    """Add up the accesses of one kind; by arrays, as a slider waits for it."""
    rows = report.accesses
    chosen = (rows["space"].to_numpy() == space) & (rows["op"].to_numpy() == op)
    return {name: int(rows[name].to_numpy()[chosen].sum()) for name in _SUMMED}


def cost(stage: Stage, tiles: Mapping[str, int]) -> Cost:
    """Return what legal tiles cost: one block, one step along k. Raises IllegalTiles for others."""
    return _cost(stage.name, tuple(tiles.items()))


def cost_of_squares(stage: Stage) -> Cost:
    """Return what default tiles cost for square matrices of WIDE by WIDE.

    Where the tiles divide WIDE every block does the same, and one stands for all.
    """
    return _cost_of_squares(stage.name, tuple(stage.tiles.items()))


@lru_cache
def _cost_of_squares(name: str, chosen: tuple[tuple[str, int], ...]) -> Cost:
    stage, sizes = LADDER[name], dict(chosen)
    whole = all(WIDE % sizes[side] == 0 for side in ("BM", "BN"))
    m, n = (sizes["BM"], sizes["BN"]) if whole else (WIDE, WIDE)
    return Cost(_count(stage, sizes, m, n, WIDE), m * n * WIDE, stage.itemsize)


@lru_cache(_KEPT)
def _cost(name: str, chosen: tuple[tuple[str, int], ...]) -> Cost:
    stage, sizes = LADDER[name], dict(chosen)
    m, n, k = sizes["BM"], sizes["BN"], sizes.get("BK", 8)
    return Cost(_count(stage, sizes, m, n, k), m * n * k, stage.itemsize)


def _count(stage: Stage, sizes: dict[str, int], m: int, n: int, k: int) -> Report:
    """Count the accesses of C (m by n) in matrices whose rows are WIDE elements long."""
    A, B, C = (_zeros(stage.dtype, name) for name in "ABC")
    launch = (stage.kernel(sizes), stage.grid(m, n, sizes), stage.block(sizes))
    problem = stage.arguments(m, n, k, np.float32(1), A, B, np.float32(0), C, tiles=sizes)
    shared = stage.shared_bytes(sizes)
    try:
        return emulate(*launch, *problem, shared_bytes=shared, counts_only=True)
    except DataDependent:  # an index that was kept in an array: only a full run knows it
        return emulate(*launch, *problem, shared_bytes=shared)


@lru_cache
def _zeros(dtype: str, name: str) -> np.ndarray:
    return np.zeros((WIDE, WIDE), dtype)
