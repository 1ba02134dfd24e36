"""Finds the tile that a block of a stage computes, whatever the stage calls the sizes of its tiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import SimpleNamespace

from gemm_course.kernels.parts.base import Stage

LONGEST_SIDE, UNKNOWN_SIDE, LONGEST_STEP = 512, 32, 128  # if no sizes are called BM, BN and BK


def tile_of(stage: Stage, tiles: Mapping[str, int]) -> tuple[int, int, int]:
    """Return the rows and columns of C that a block computes, and the steps along k that it takes at a time.

    These are the sizes called BM, BN and BK. A learner may use other names, or none. Then rows and columns
    follow from how many blocks the stage launches, and the steps are a guess: too many do no harm.
    """
    t, chosen = SimpleNamespace(**tiles), dict(tiles)
    rows = chosen.get("BM") or _covered(lambda m: stage.blocks(m, 1, t))
    columns = chosen.get("BN") or _covered(lambda n: stage.blocks(1, n, t))
    return rows, columns, chosen.get("BK") or min(max(8, *tiles.values(), rows, columns), LONGEST_STEP)


def named(stage: Stage, tiles: Mapping[str, int]) -> Mapping[str, int]:
    """Return the tiles. If BM or BN is missing, add those of BM, BN and BK that are missing."""
    if {"BM", "BN"} <= tiles.keys():
        return tiles
    return dict(zip(("BM", "BN", "BK"), tile_of(stage, tiles), strict=True)) | dict(tiles)


def _covered(blocks: Callable[[int], tuple[int, ...]]) -> int:
    """Return how long a side of C may be before a second block is needed, or UNKNOWN_SIDE if none ever is."""
    try:
        one = math.prod(blocks(1))
        return next(side for side in range(1, LONGEST_SIDE) if math.prod(blocks(side + 1)) > one)
    except Exception:  # StopIteration, or whatever the learner's geometry raises: the launch will tell
        return UNKNOWN_SIDE
