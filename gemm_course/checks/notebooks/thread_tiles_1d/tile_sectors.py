"""Checks ``tile_sectors``: the sectors of a warp's request for a tile of A."""

import numpy as np

from gemm_course.checks.engines.tables import Slip, a_number, table_exercise
from gemm_course.kernels import LADDER
from lockstep import emulate

DEPTHS = ((8,), (4,), (16,), (32,), (2,), (1,))
# A row of A has 1024 floats, and a block has 64 rows and columns of C.
ROW, WIDE = 1024, 64

SLIPS = (
    Slip(
        "Only the rows are counted. A row of the tile may reach over several sectors: one holds 8 floats.",
        lambda BK: 32 // BK,
    ),
    Slip(
        "That takes every row of the tile for a sector of its own, but a request has only 32 lanes: how many "
        "rows do they cover?",
        lambda BK: WIDE,
    ),
    Slip(
        "32 sectors would be one for each lane. Lanes that are neighbours fetch neighbours of a row.",
        lambda BK: 32,
    ),
    Slip(
        "4 sectors hold 32 floats, but only if rows fill their sectors. A row of fewer than 8 floats moves a "
        "whole sector all the same.",
        lambda BK: 4,
    ),
    Slip(
        "One request is asked for. That is the number of sectors in one row of the tile; how many rows do 32 "
        "lanes cover?",
        lambda BK: -(-BK // 8),
    ),
    Slip(
        "A deeper tile does not move more for the same 32 floats. The lanes cover 32 / BK rows, not BK.",
        lambda BK: BK,
    ),
    Slip(
        "That is for 32 rows of the tile. One request has 32 lanes, and they cover 32 / BK rows.",
        lambda BK: 32 * BK // 8,
    ),
    Slip(
        "That takes 4 sectors for each row. A row has BK floats, and a sector holds 8 of them.",
        lambda BK: 32 // BK * 4,
    ),
    Slip(
        "It is the other way round: from BK = 8 on the 32 floats fill 4 sectors. Below it more move, for a "
        "short row takes a whole sector.",
        lambda BK: max(4, BK),
    ),
    Slip(
        "`min` where `max` is meant: a row needs `BK // 8` sectors, and never fewer than one.",
        lambda BK: 32 // BK * min(1, BK // 8),
    ),
    Slip(
        "That is bytes of a row over the bytes of a line. What moves are sectors, 32 bytes each.",
        lambda BK: max(1, 4 * BK // 128),
    ),
)


def _passed(right) -> str:
    shown = ", ".join(f"BK = {BK}: {right(BK)}" for (BK,) in sorted(DEPTHS))
    return (
        f"The emulator counts the same when `thread_tiled_1d` loads its tile of A: {shown}. From BK = 8 on a "
        "deeper tile saves no sectors; below it sectors are wasted."
    )


@table_exercise(
    start="draw the 32 lanes of a warp over the rows of a tile that is BK floats wide.",
    hints=(
        "Lane t fetches row `t // BK`, column `t % BK` of the tile. So a warp covers `32 / BK` rows.",
        "In A these rows lie far apart, so no sector serves two of them. How many sectors does a row of BK "
        "floats need, with 8 floats in each?",
        "`32 // BK` rows, times `BK // 8` sectors, but at least one, for each.",
    ),
    cases=DEPTHS,
    slips=SLIPS,
    read=a_number,
    passed=_passed,
)
def tile_sectors(BK):
    """sectors(BK) -> the sectors of a warp's request for thread_tiled_1d's tile of A, at a sector."""
    stage, tiles = LADDER["thread_tiled_1d"], {"BM": WIDE, "BN": WIDE, "BK": BK, "TM": max(8, WIDE // BK)}
    A, B, C = (np.zeros(shape, np.float32) for shape in ((WIDE, ROW), (BK, ROW), (WIDE, ROW)))
    problem = (WIDE, WIDE, BK, np.float32(1), A, B, np.float32(0), C)
    report = emulate(stage.kernel(tiles), (1, 1), stage.block(tiles), *problem, counts_only=True)
    return report.total("sectors", array="A", op="load") // report.total("requests", array="A", op="load")
