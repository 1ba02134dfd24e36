"""Counts what a choice of tiles costs, with the emulator for one block, and caches it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from gemm_course.kernels import Stage
from gemm_course.kernels.parts.base import tiles_over
from gemm_course.kernels.parts.block_tile import named
from gemm_course.widgets._measured import SIZE
from lockstep import DataDependent, Report, emulate

# One block's accesses are counted in matrices with this many rows and columns.
WIDE = 1024
_KEPT = 4096
_SUMMED = ("requests", "bytes", "sectors", "wavefronts")
_KINDS = (("global", "load"), ("global", "store"), ("shared", "load"))

# For each of _KINDS there is the total of each of _SUMMED.
Counts = Mapping[tuple[str, str], Mapping[str, float]]


class Cost:
    """The cost of ``fma`` multiply-adds of one or more blocks.

    ``loads`` and ``shared_loads`` are elements per multiply-add, however wide the loads are. ``sectors`` are
    sectors per load request. ``wavefronts`` are shared-memory wavefronts per 32 multiply-adds, one for each
    lane of a warp. ``intensity`` is FLOP per byte that loads move out of L1. ``intensity_with_stores`` is
    FLOP per byte that these loads and C's stores move.
    """

    def __init__(self, counts: Counts, shared_bytes: int, fma: float, itemsize: int):
        self.shared_bytes = shared_bytes
        loads, stores, read = (counts[kind] for kind in _KINDS)
        self.loads = loads["bytes"] / itemsize / fma
        self.sectors = loads["sectors"] / loads["requests"]
        self.intensity = 2 * fma / (32 * loads["sectors"])
        self.intensity_with_stores = 2 * fma / (32 * (loads["sectors"] + stores["sectors"]))
        self.shared_loads = read["bytes"] / itemsize / fma
        self.wavefronts = 32 * read["wavefronts"] / fma


def _counts(report: Report) -> Counts:
    """Add up the accesses of each kind, with NumPy because a slider waits for it."""
    rows = report.accesses
    space, op = rows["space"].to_numpy(), rows["op"].to_numpy()
    columns = {name: rows[name].to_numpy() for name in _SUMMED}
    return {
        kind: {
            name: int(column[(space == kind[0]) & (op == kind[1])].sum()) for name, column in columns.items()
        }
        for kind in _KINDS
    }


def _after(steps: float, one: Counts, two: Counts) -> Counts:
    """Return the counts of a block after ``steps`` steps along k, from its counts after one and two steps.

    All steps but the first do the same. What happens before and after the steps happens once, such as storing
    results through shared memory, or reading tiles ahead.
    """
    return {
        kind: {name: first + (steps - 1) * (two[kind][name] - first) for name, first in one[kind].items()}
        for kind in _KINDS
    }


def cost(stage: Stage, tiles: Mapping[str, int]) -> Cost:
    """Return what a block with these tiles costs if k is SIZE. Raise IllegalTiles for illegal tiles."""
    return _cost(stage, tuple(tiles.items()))


def cost_of_squares(stage: Stage) -> Cost:
    """Return the cost of default tiles for square matrices of WIDE by WIDE.

    If the tiles divide WIDE, every block does the same, and one block is counted for all.
    """
    return _cost_of_squares(stage)


@lru_cache
def _cost_of_squares(stage: Stage) -> Cost:
    sizes = dict(stage.tiles)
    rows, columns, _ = _extents(stage, sizes)
    whole = WIDE % rows == WIDE % columns == 0
    m, n = (rows, columns) if whole else (WIDE, WIDE)
    report = _count(stage, sizes, m, n, WIDE)
    return Cost(_counts(report), report.shared_bytes, m * n * WIDE, stage.itemsize)


@lru_cache(_KEPT)
def _cost(stage: Stage, chosen: tuple[tuple[str, int], ...]) -> Cost:
    sizes = dict(chosen)
    report, one = _steps(stage, sizes, 1)
    two = _twice(one) if _reads_in_steps_only(stage) else _steps(stage, sizes, 2)[1]
    rows, columns, depth = _extents(stage, sizes)
    counts = _after(SIZE / depth, one, two)
    return Cost(counts, report.shared_bytes, rows * columns * SIZE, stage.itemsize)


def _extents(stage: Stage, sizes: Mapping[str, int]) -> tuple[int, int, int]:
    """Return the rows and columns of C per block, and the steps along k that one step of the stage takes."""
    tile = named(stage, sizes)
    return tile["BM"], tile["BN"], tile.get("BK", 8)


def _steps(stage: Stage, sizes: Mapping[str, int], steps: int) -> tuple[Report, Counts]:
    """Count the accesses of one block in a product of ``steps`` of the stage's steps along k."""
    rows, columns, depth = _extents(stage, sizes)
    report = _count(stage, sizes, rows, columns, steps * depth)
    return report, _counts(report)


def _twice(one: Counts) -> Counts:
    """Return the counts of two steps if all reads are part of a step and C is stored once."""
    factor = {"load": 2, "store": 1}
    return {kind: {name: factor[kind[1]] * n for name, n in counts.items()} for kind, counts in one.items()}


@lru_cache
def _reads_in_steps_only(stage: Stage) -> bool:
    """Tell whether a stage reads nothing before its first step and nothing after its last.

    The answer is the same for all tiles of a stage, and saves a slider half of the counting.
    """
    (_, one), (_, two) = (_steps(stage, stage.tiles, steps) for steps in (1, 2))
    return two == _twice(one)


def _count(stage: Stage, sizes: Mapping[str, int], m: int, n: int, k: int) -> Report:
    """Count the accesses of C (m by n) in matrices whose rows are WIDE elements long."""
    A, B, C = (_zeros(stage.dtype, name) for name in "ABC")
    # With one block per tile, no tile is cut.
    if "BLOCKS" in sizes:
        sizes = {**sizes, "BLOCKS": tiles_over(m, sizes["BM"]) * tiles_over(n, sizes["BN"])}
    launch = (stage.kernel(sizes), stage.grid(m, n, sizes), stage.block(sizes))
    standard = (m, n, k, np.float32(1), A, B, np.float32(0), C, *stage.example_extras(m, n))
    problem = stage.arguments(*standard, tiles=sizes)
    shared = stage.shared_bytes(sizes)
    try:
        return emulate(*launch, *problem, shared_bytes=shared, counts_only=True)
    except DataDependent:
        # An index is read from an array, so only a full run knows the index.
        return emulate(*launch, *problem, shared_bytes=shared)


@lru_cache
def _zeros(dtype: str, name: str) -> np.ndarray:
    return np.zeros((WIDE, WIDE), dtype)
