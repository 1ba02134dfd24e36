"""What a block of a stage computes at a time, whatever the stage calls the sizes of its tiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import SimpleNamespace

from gemm_course.kernels.parts.base import Stage

LONGEST_SIDE, UNKNOWN_SIDE, LONGEST_STEP = 512, 32, 128  # of a block's tile, where its names do not say


def tile_of(stage: Stage, tiles: Mapping[str, int]) -> tuple[int, int, int]:
    """Rows and columns of C that a block computes, and at least as many steps along k as it takes at a time.

    By their names, BM, BN and BK, or else by what the stage says of its launch: a learner may call them
    anything, or nothing. A k that is too long does no harm.
    """
    t, chosen = SimpleNamespace(**tiles), dict(tiles)
    rows = chosen.get("BM") or _covered(lambda m: stage.blocks(m, 1, t))
    columns = chosen.get("BN") or _covered(lambda n: stage.blocks(1, n, t))
    return rows, columns, chosen.get("BK") or min(max(8, *tiles.values(), rows, columns), LONGEST_STEP)


def named(stage: Stage, tiles: Mapping[str, int]) -> Mapping[str, int]:
    """The tiles, with BM and BN among them, and BK where the stage does not name BM and BN itself."""
    if {"BM", "BN"} <= tiles.keys():
        return tiles
    return dict(zip(("BM", "BN", "BK"), tile_of(stage, tiles), strict=True)) | dict(tiles)


def _covered(blocks: Callable[[int], tuple[int, ...]]) -> int:
    """How long one side of C may be before there are more blocks; UNKNOWN_SIDE if that never changes them."""
    try:
        one = math.prod(blocks(1))
        return next(side for side in range(1, LONGEST_SIDE) if math.prod(blocks(side + 1)) > one)
    except Exception:  # StopIteration, or whatever the learner's geometry raises: the launch will tell
        return UNKNOWN_SIDE
