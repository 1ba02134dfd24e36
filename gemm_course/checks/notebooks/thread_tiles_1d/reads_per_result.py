"""Checks ``reads_per_result``: how often a thread reads shared memory for one of its results."""

import numpy as np

from gemm_course.checks.engines.tables import Slip, a_number, table_exercise
from gemm_course.kernels import LADDER
from lockstep import emulate

# The cases are (BK, TM).
CASES = ((8, 8), (8, 4), (16, 8), (16, 2), (4, 16), (16, 16))
# BM and BN both have this size.
WIDE = 32

SLIPS = (
    Slip(
        "That is per multiply-add. One result takes BK multiply-adds from a pair of tiles.",
        lambda BK, TM: (TM + 1) / TM,
    ),
    Slip(
        "That is what a thread with one result reads: BK elements of As and BK of Bs. With TM results the "
        "reads of Bs are shared among them.",
        lambda BK, TM: 2 * BK,
    ),
    Slip(
        "That is what the whole thread reads from a pair of tiles. It has TM results: divide among them.",
        lambda BK, TM: BK * (TM + 1),
    ),
    Slip(
        "That divides all reads by TM. Only the element of Bs serves all TM results; each of them still "
        "needs its own element of As.",
        lambda BK, TM: 2 * BK / TM,
    ),
    Slip("The reads of Bs are missing: BK of them, shared among TM results.", lambda BK, TM: BK),
    Slip("The reads of As are missing: each result needs its own, BK of them.", lambda BK, TM: BK / TM),
    Slip(
        "Loads from global memory are counted in as well: they fill the tiles, and are not reads of shared "
        "memory.",
        lambda BK, TM: BK + BK / TM + 2 * BK / WIDE,
    ),
    Slip(
        "That is for one step along k of the whole thread: one element of Bs and TM of As.",
        lambda BK, TM: TM + 1,
    ),
    Slip(
        "In each of the BK steps a thread reads TM elements of As: BK * TM from a tile, not TM.",
        lambda BK, TM: (BK + TM) / TM,
    ),
    Slip(
        "`//` drops what is left over where TM does not divide: a result's share of the reads may be a "
        "fraction. Divide with `/`.",
        lambda BK, TM: BK * (TM + 1) // TM,
    ),
    Slip(
        "That shares one read of Bs among the TM results. A pair of tiles has BK steps, and each reads an "
        "element of Bs: share BK of them.",
        lambda BK, TM: BK + 1 / TM,
    ),
    Slip(
        "That has one read of Bs for each result. There are BK of them, one in each step, and TM results "
        "share them.",
        lambda BK, TM: BK + 1,
    ),
    Slip(
        "That is what the compiler makes of v03, in wavefronts. Count the elements that the source reads.",
        lambda BK, TM: BK / 2 + BK / TM,
    ),
    Slip(
        "The other way round: BK elements of Bs are read for all TM results, and BK of As for each.",
        lambda BK, TM: BK * TM + BK / TM,
    ),
    Slip(
        "BK and TM are swapped: a pair of tiles has BK steps, and TM results share what is read.",
        lambda BK, TM: TM + TM / BK,
    ),
)


def _passed(right) -> str:
    shown = "; ".join(f"BK = {k}, TM = {t}: {right(k, t):g} instead of {2 * k}" for k, t in CASES)
    return f"The emulator counts the same in v03: {shown}."


@table_exercise(
    start="count for one pair of tiles first: how many elements of Bs does a thread read, how many of As?",
    hints=(
        "In one step along k a thread reads one element of Bs and TM of As. A pair of tiles has BK steps.",
        "That makes `BK * (1 + TM)` reads, for TM results.",
        "Divide by TM: each result costs its own BK elements of As, and its share of BK elements of Bs.",
    ),
    cases=CASES,
    slips=SLIPS,
    read=a_number,
    passed=_passed,
)
def reads_per_result(BK, TM):
    """reads(BK, TM) -> elements of shared memory that a thread reads from a pair of tiles for one result."""
    stage, tiles = LADDER["thread_tiled_1d"], {"BM": WIDE, "BN": WIDE, "BK": BK, "TM": TM}
    A, B, C = (np.zeros(shape, np.float32) for shape in ((WIDE, BK), (BK, WIDE), (WIDE, WIDE)))
    problem = (WIDE, WIDE, BK, np.float32(1), A, B, np.float32(0), C)
    report = emulate(stage.kernel(tiles), (1, 1), stage.block(tiles), *problem, counts_only=True)
    return report.total("lanes", space="shared", op="load") / WIDE**2
