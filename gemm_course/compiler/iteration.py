"""Tells what share of an iteration along k are multiply-adds, with the copies and barriers of a tile."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from gemm_course.compiler.result import Compiled, Loop
from gemm_course.kernels import Stage
from gemm_course.kernels.parts.block_tile import tile_of

BARRIER = "barrier and fence"


def share_of_iteration(code: Compiled, stage: Stage, tiles: Mapping[str, int]) -> float | None:
    """Return the share of an iteration along k that does the work, 0 to 1, or None without a loop.

    The compiler may keep the steps of a tile as a loop inside that iteration. Then this loop counts as often
    as it runs, and the rest, which copies the tile, counts once.
    """
    if code.loop is None:
        return None
    around = iteration_of(code)
    if around is None or around is code.loop:
        return code.loop.share
    BM, BN, BK = tile_of(stage, tiles)
    inner = code.loop
    wanted = BM * BN * BK / prod(stage.block(tiles))
    work, beside = inner.by_kind[code.work], around.by_kind[code.work] - inner.by_kind[code.work]
    times = max(1.0, (wanted - beside) / work)
    return (beside + times * work) / (len(around) - len(inner) + times * len(inner))


def iteration_of(code: Compiled) -> Loop | None:
    """Return the main loop, or the smallest loop around it, that has a barrier, or None."""
    if code.loop is None or code.loop.by_kind[BARRIER]:
        return code.loop
    around = [one for one in code.loops if one.addresses > code.loop.addresses and one.by_kind[BARRIER]]
    return min(around, key=len, default=None)
