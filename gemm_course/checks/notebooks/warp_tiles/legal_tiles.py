"""Checks ``legal_tiles``: which tiles a block can be made of."""

from collections.abc import Sequence
from functools import cache
from itertools import product

import numpy as np

from gemm_course.checks.core import Refused
from gemm_course.checks.engines.tables import Slip, table_exercise
from lockstep.limits import MAX_THREADS

NAMES = ("BM", "BN", "WM", "WN", "TM", "TN", "WNITER")
SIZES = (64, 96, 256), (128, 160, 256), (16, 48, 64), (32, 64, 128), (1, 3, 4, 8), (2, 4, 8), (1, 2, 3, 4)
# Each of these breaks one rule only. They catch answers that begin with the lanes of a sub-tile's row.
FORGOTTEN = (
    (128, 96, 16, 48, 1, 4, 1),
    (64, 100, 16, 50, 1, 2, 3),
    (64, 136, 16, 34, 1, 4, 1),
    # WSUBN is 32, which is no multiple of TN.
    (3, 32, 3, 32, 1, 3, 1),
    # WSUBN is 4, which is no multiple of TN, although WN is one.
    (64, 32, 64, 32, 1, 8, 8),
    # WSUBN is 8, which is no multiple of TN, although WN is one.
    (24, 24, 24, 24, 1, 3, 3),
    # WSUBM is more than TM, but no multiple of TM.
    (4, 24, 4, 24, 3, 1, 1),
)
CASES = (*product(*SIZES), *FORGOTTEN)


def _read(answer) -> float:
    if isinstance(answer, (bool, np.bool_)) and not answer:
        return 0
    if isinstance(answer, (bool, np.bool_)) or not isinstance(answer, (int, float, np.number)):
        raise Refused(
            "Return the number of threads of a block, or 0 where the tiles cannot work; this is "
            f"`{answer!r}`."
        )
    return answer


def _difference(case: tuple, answer, right) -> str:
    named = ", ".join(f"{name} = {value}" for name, value in zip(NAMES, case))
    return (
        f"First wrong case: `legal({', '.join(map(str, case))})` gives {answer}, right is {right}. {named}."
    )


def _what_is_wrong(cases: Sequence[tuple], answers: Sequence) -> str:
    case, answer = next(
        (case, answer) for case, answer in zip(cases, answers) if answer != legal_tiles.right(*case)
    )
    if not legal_tiles.right(*case):
        return f"These tiles cannot work and are let through: {_broken(*case)}"
    if not answer:
        return "These tiles can work and are refused: the 32 threads of each warp cover its tile exactly."
    return "The tiles are legal, but the number of threads is another: 32 for each warp tile of the block."


@cache
def _covers(WM, WN, TM, TN, WNITER) -> bool:
    """Tell whether 32 lanes reach each element of a warp's tile exactly once, with C++'s divisions."""
    WMITER = WM * WN // (32 * TM * TN * WNITER)
    if not WMITER or not WN // WNITER // TN:
        return False
    WSUBM, WSUBN = WM // WMITER, WN // WNITER
    lane, i, r, j, c = np.ogrid[:32, :WMITER, :TM, :WNITER, :TN]
    rows = i * WSUBM + lane // (WSUBN // TN) * TM + r
    columns = j * WSUBN + lane % (WSUBN // TN) * TN + c
    rows, columns = (axis.ravel() for axis in np.broadcast_arrays(rows, columns))
    if rows.max() >= WM or columns.max() >= WN:
        return False
    return bool((np.bincount(rows * WN + columns, minlength=WM * WN) == 1).all())


def _broken(BM, BN, WM, WN, TM, TN, WNITER) -> str:
    """Return the first rule that illegal tiles break, in words."""
    step = 32 * TM * TN * WNITER
    WMITER = WM * WN // step
    rules = (
        (BM % WM == 0, f"BM = {BM} is not a whole number of warp tiles, WM = {WM}."),
        (BN % WN == 0, f"BN = {BN} is not a whole number of warp tiles, WN = {WN}."),
        (WM * WN % step == 0, f"WMITER = {WM} · {WN} / {step} is no whole number."),
        (WN % (WNITER * TN) == 0, f"WN = {WN} is not WNITER = {WNITER} sub-tiles of whole TN = {TN}."),
        (WMITER and WM % WMITER == 0, f"WM = {WM} is not WMITER = {WMITER} equal sub-tiles."),
        (
            WMITER and WM // WMITER % TM == 0,
            f"a sub-tile of WSUBM = {WM // max(WMITER, 1)} rows is not whole TM = {TM}.",
        ),
    )
    return next((words for holds, words in rules if not holds), f"a block may have {MAX_THREADS} threads.")


# ---- slips -------------------------------------------------------------------------------------------------


def _by_rules(
    *left_out: str,
    count=lambda BM, BN, WM, WN, TM, TN: BM * BN // (WM * WN) * 32,
    most=MAX_THREADS,
    rows_counted=True,
    others=lambda WN, TN, WNITER, WSUBM, TM: True,
):
    """Return the answer of someone who knows all rules but these, and ``others`` in their place.

    rows_counted: whether TM is part of WMITER.
    """

    def answer(BM, BN, WM, WN, TM, TN, WNITER):
        step = 32 * (TM if rows_counted else 1) * TN * WNITER
        WMITER = max(1, WM * WN // step)
        number = count(BM, BN, WM, WN, TM, TN)
        kept = {
            "BM": BM % WM == 0,
            "BN": BN % WN == 0,
            "WMITER": WM * WN % step == 0,
            "WSUBN": WN % (WNITER * TN) == 0,
            "WM": WM % WMITER == 0,
            "WSUBM": WM // WMITER % TM == 0,
            "threads": number <= most,
            "others": others(WN, TN, WNITER, WM // WMITER, TM),
        }
        return number if all(holds for name, holds in kept.items() if name not in left_out) else 0

    return answer


def _by_lanes(left_out: str):
    """Return the answer of someone who counts the lanes that fill a sub-tile's row, and leaves out a rule."""

    def answer(BM, BN, WM, WN, TM, TN, WNITER):
        WSUBN = WN // WNITER
        across = WSUBN // TN
        WSUBM = 32 // max(1, across) * TM
        threads = BM * BN // (WM * WN) * 32
        kept = {
            "BM": BM % WM == 0 and BN % WN == 0,
            "WN": WN % WNITER == 0,
            "TN": WSUBN % TN == 0,
            "lanes": across > 0 and 32 % across == 0,
            "WM": WSUBM > 0 and WM % WSUBM == 0,
            "threads": threads <= MAX_THREADS,
        }
        return threads if all(holds for name, holds in kept.items() if name != left_out) else 0

    return answer


SLIPS = (
    Slip(
        "The 32 lanes of a sub-tile must fill whole rows: 32 must be a multiple of WSUBN // TN, the lanes of "
        "a row.",
        _by_lanes("lanes"),
    ),
    Slip(
        "`WN % WNITER` is missing: WNITER sub-tiles, all of one width, must fill the warp's columns.",
        _by_lanes("WN"),
    ),
    Slip(
        "`WSUBN % TN` is missing: a sub-tile must be whole thread tiles wide.",
        _by_lanes("TN"),
    ),
    Slip(
        "WN is divided by WNITER and by TN one by one. But TN must go into the WN // WNITER columns of a "
        "sub-tile: WN must be a multiple of WNITER·TN.",
        _by_rules("WSUBN", others=lambda WN, TN, WNITER, *_: WN % WNITER == 0 and WN % TN == 0),
    ),
    Slip(
        "A sub-tile of WSUBM rows must not only have room for TM rows: it must be whole thread tiles high, "
        "`WSUBM % TM == 0`.",
        _by_rules("WSUBM", others=lambda WN, TN, WNITER, WSUBM, TM: WSUBM >= TM),
    ),
    Slip(
        "TM is missing in WMITER. In exercise [[owner_map]] it was 1; here a lane has TM rows of TN elements "
        "in each sub-tile, so WMITER = WM·WN / (32·TM·TN·WNITER).",
        _by_rules(rows_counted=False),
    ),
    Slip(
        "TM is nowhere: in exercise [[owner_map]] it was 1. Here it belongs into WMITER = WM·WN / "
        "(32·TM·TN·WNITER), and WSUBM, the height of a sub-tile, must be a multiple of it.",
        _by_rules("WSUBM", rows_counted=False),
    ),
    Slip(
        "`WSUBM % TM` is missing: a sub-tile must be whole thread tiles high. Where the lanes of a row would "
        "be more than 32, they do not even fill one row, and WSUBM comes out too small.",
        _by_rules("WSUBM"),
    ),
    Slip(
        "WMITER may be a fraction here: `//` rounds it down, and a part of the warp's tile is never "
        "computed. WM·WN must be a multiple of 32·TM·TN·WNITER.",
        _by_rules("WMITER"),
    ),
    Slip(
        "The number of threads is taken for BM·BN / (TM·TN), as in notebook [[thread_tiles_2d.ipynb]]. Here "
        "a thread computes WMITER·WNITER thread tiles; count warps, and 32 threads for each.",
        _by_rules(count=lambda BM, BN, WM, WN, TM, TN: BM * BN // (TM * TN)),
    ),
    Slip(
        "The most that a block may have, 1,024 threads, is not checked.",
        _by_rules("threads"),
    ),
    Slip(
        "1,024 threads are still allowed: `<=`, not `<`.",
        _by_rules(most=MAX_THREADS - 1),
    ),
    Slip("Rows of warp tiles: BM must be a multiple of WM.", _by_rules("BM")),
    Slip("Columns of warp tiles: BN must be a multiple of WN.", _by_rules("BN")),
    Slip(
        "Along the columns: WN must be WNITER sub-tiles, each of whole TN, a multiple of WNITER·TN.",
        _by_rules("WSUBN"),
    ),
    Slip(
        "Down the rows: WM must be WMITER equal sub-tiles.",
        _by_rules("WM"),
    ),
    Slip(
        "That is the number of warps. A block is launched with threads, 32 for each warp.",
        _by_rules(count=lambda BM, BN, WM, WN, TM, TN: BM * BN // (WM * WN)),
    ),
    Slip(
        "Everything is let through. When does a warp reach each element of its tile exactly once?",
        _by_rules("BM", "BN", "WMITER", "WSUBN", "WM", "WSUBM", "threads"),
    ),
)


def _passed(right) -> str:
    legal = sum(right(*case) > 0 for case in CASES)
    return f"Right for all {len(CASES):,} combinations; {legal} of them can run."


@table_exercise(
    start="ask of each division in the index formulas whether it comes out even. Begin with BM and WM.",
    hints=(
        "Three levels: warp tiles must fill the block's, sub-tiles must fill the warp's, and 32 thread tiles "
        "must fill a sub-tile.",
        "WMITER must be a whole number, WM a multiple of WMITER, WN a multiple of WNITER · TN. And WSUBM?",
        "A sub-tile is WSUBM rows high, in whole thread tiles of TM rows: WSUBM must be a multiple of TM.",
        "The number of threads is 32 for each of the BM · BN / (WM · WN) warps, and at most 1,024.",
    ),
    cases=CASES,
    slips=SLIPS,
    read=_read,
    difference=_difference,
    otherwise=_what_is_wrong,
    passed=_passed,
)
@cache
def legal_tiles(BM, BN, WM, WN, TM, TN, WNITER):
    """legal(BM, BN, WM, WN, TM, TN, WNITER) -> threads of a block, or 0 where the tiles cannot work."""
    if BM % WM or BN % WN or not _covers(WM, WN, TM, TN, WNITER):
        return 0
    count = BM * BN // (WM * WN) * 32
    return count if count <= MAX_THREADS else 0
