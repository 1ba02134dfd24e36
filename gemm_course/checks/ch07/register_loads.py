"""Exercise 07.5: what a thread reads of flat As and Bs in one step along k, with TM = 1."""

from collections.abc import Callable

import numpy as np

from gemm_course.checks.core import Refused
from gemm_course.checks.engines.tables import Part, Slip, table_exercise
from gemm_course.checks.engines.tiles import Tiles, tile_choices
from gemm_course.model.formulas import document_003 as document

from .warp_layout import lane, step, steps_down, thread_named, threads, warp

BK = 8
TILES = tile_choices(
    "BM BN WM WN TN WNITER",
    (64, 64, 32, 32, 8, 1),
    (64, 128, 32, 64, 8, 2),
    (128, 64, 64, 32, 4, 1),
    (64, 128, 64, 64, 4, 1),
)
STEPS = (0, 1, 5)  # p
CASES = [(tid, p, *tiles.values) for tiles in TILES for tid in range(threads(tiles)) for p in STEPS]
CHOICE = {tiles.values: tiles for tiles in TILES}


def _read(answer) -> tuple[list[int], list[int]]:
    if not isinstance(answer, (tuple, list)) or len(answer) != 2:
        raise Refused(f"Return two lists, `(a, b)`: indices into As, and into Bs; not `{str(answer)[:60]}`.")
    return tuple(_indices(part, name) for part, name in zip(answer, "ab"))


def _indices(part, name: str) -> list[int]:
    if isinstance(part, (str, bytes, dict)) or not hasattr(part, "__iter__"):
        raise Refused(f"`{name}` must be a list of indices, not `{part!r}`.")
    numbers = list(part)
    if not all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in numbers):
        raise Refused(
            f"`{name}` must hold whole numbers: the tiles lie flat here, one row after the other, so an "
            "element has one index."
        )
    return [int(n) for n in numbers]


def _difference(case: tuple, answer: list[int], right: list[int]) -> str:
    tid, p, *sizes = case
    place = next((i for i, (a, b) in enumerate(zip(answer, right)) if a != b), min(len(answer), len(right)))
    got = f"is {answer[place]}" if place < len(answer) else "is missing"
    needed = f"{right[place]} is needed" if place < len(right) else f"there are only {len(right)}"
    return (
        f"First difference: index {place} for {thread_named(tid)} in step p = {p} {got}; {needed}. "
        f"{CHOICE[tuple(sizes)]}."
    )


# ---- likely mistakes, as functions of (tiles, thread, p) ---------------------------------------------------


def _of_a(row: Callable, count: Callable = steps_down, width: Callable = lambda t: t.BM):
    """Indices into As from the row of the tile, row(t, tid, i)."""
    return lambda t, tid, p: [p * width(t) + row(t, tid, i) for i in range(count(t))]


def _of_b(column: Callable, width: Callable = lambda t: t.BN):
    """Indices into Bs from the column of the tile, column(t, tid, j, e)."""
    return lambda t, tid, p: [
        p * width(t) + column(t, tid, j, e) for j in range(t.WNITER) for e in range(t.TN)
    ]


def _row(t: Tiles, tid: int, i: int) -> int:
    return warp(t, tid)[0] * t.WM + i * step(t)[0] + lane(t, tid)[0]


def _column(t: Tiles, tid: int, j: int, e: int) -> int:
    return warp(t, tid)[1] * t.WN + j * step(t)[1] + lane(t, tid)[1] * t.TN + e


MISTAKES_IN_A = (
    (
        "As: the stride WSUBM is missing; from one of the thread's rows to its next it is `i * WSUBM`.",
        _of_a(lambda t, tid, i: warp(t, tid)[0] * t.WM + i + lane(t, tid)[0]),
    ),
    (
        "As: BK is taken for the row length. As is transposed, BK rows of BM elements, so step p begins at "
        "`p * BM`.",
        _of_a(_row, width=lambda t: BK),
    ),
    (
        "As: this reads it untransposed, row by row of A. It lies transposed: the row of C is the position "
        "within row p.",
        lambda t, tid, p: [_row(t, tid, i) * BK + p for i in range(steps_down(t))],
    ),
    (
        "As: WNITER stands where WMITER is meant. A thread has WMITER rows, so it reads WMITER elements "
        "of As.",
        _of_a(_row, count=lambda t: t.WNITER),
    ),
    (
        "As: this reads one element for every product. Each of the WMITER elements is read once and then "
        "used WNITER·TN times from its register.",
        lambda t, tid, p: [
            p * t.BM + _row(t, tid, i) for i in range(steps_down(t)) for _ in range(t.WNITER * t.TN)
        ],
    ),
    (
        "As: the row of the lane is multiplied by TN. Rows go with TM, and that is 1 here.",
        _of_a(lambda t, tid, i: warp(t, tid)[0] * t.WM + i * step(t)[0] + lane(t, tid)[0] * t.TN),
    ),
    (
        "As: the warp is left out; its rows begin at `warp_row * WM`.",
        _of_a(lambda t, tid, i: i * step(t)[0] + lane(t, tid)[0]),
    ),
    (
        "As: the step p is left out; it begins at `p * BM`.",
        _of_a(_row, width=lambda t: 0),
    ),
    (
        "As: the columns of warp and lane are used. As has the rows of C.",
        _of_a(lambda t, tid, i: warp(t, tid)[1] * t.WM + i * step(t)[0] + lane(t, tid)[1]),
    ),
)
MISTAKES_IN_B = (
    (
        "Bs: the stride WSUBN is missing; from one run of TN columns to the next it is `j * WSUBN`.",
        _of_b(lambda t, tid, j, e: warp(t, tid)[1] * t.WN + j * t.TN + lane(t, tid)[1] * t.TN + e),
    ),
    (
        "Bs: BK is taken for the row length. Bs has BK rows of BN elements, so step p begins at `p * BN`.",
        _of_b(_column, width=lambda t: BK),
    ),
    (
        "Bs: BM is taken for the row length. Bs has BK rows of BN elements, so step p begins at `p * BN`.",
        _of_b(_column, width=lambda t: t.BM),
    ),
    (
        "Bs: the column of the lane counts threads; each has TN columns, so it is `lane_col * TN`.",
        _of_b(lambda t, tid, j, e: warp(t, tid)[1] * t.WN + j * step(t)[1] + lane(t, tid)[1] + e),
    ),
    (
        "Bs: only the first of each run of TN columns is there; a thread reads WNITER·TN elements of Bs.",
        lambda t, tid, p: [p * t.BN + _column(t, tid, j, 0) for j in range(t.WNITER)],
    ),
    (
        "Bs: the warp is left out; its columns begin at `warp_col * WN`.",
        _of_b(lambda t, tid, j, e: j * step(t)[1] + lane(t, tid)[1] * t.TN + e),
    ),
    (
        "Bs: the rows of warp and lane are used. Bs has the columns of C.",
        _of_b(lambda t, tid, j, e: warp(t, tid)[0] * t.WN + j * step(t)[1] + lane(t, tid)[0] * t.TN + e),
    ),
)


def _slips(mistakes: tuple) -> list[Slip]:
    return [
        Slip(message, lambda tid, p, *sizes, wrong=wrong: wrong(CHOICE[sizes], tid, p))
        for message, wrong in mistakes
    ]


def _passed(right: Callable) -> str:
    t = TILES[1]
    of_a, of_b = map(len, right(0, 0, *t.values))
    products = of_a * of_b
    return (
        f"Right for all threads of {len(TILES)} choices of tiles. With {t}: {of_a} + {of_b} = {of_a + of_b} "
        f"reads for {products} multiply-adds, {(of_a + of_b) / products:.3g} each."
    )


@table_exercise(
    "07.5",
    start="write down the thread's row for step i, as in the owner map; As is transposed and flat.",
    hints=(
        "As has BK rows of BM elements, so element (p, row) is at `p * BM + row`. Bs has BK rows of BN.",
        "The rows are those of the thread's elements of C: `warp_row * WM + i * WSUBM + lane_row` for i "
        "from 0 to WMITER - 1.",
        "The columns: `warp_col * WN + j * WSUBN + lane_col * TN + e` for each j below WNITER and e below "
        "TN.",
    ),
    cases=CASES,
    parts=(Part("As", 0, _slips(MISTAKES_IN_A)), Part("Bs", 1, _slips(MISTAKES_IN_B))),
    read=_read,
    difference=_difference,
    otherwise=lambda cases, answers: "These are not the elements that this thread needs.",
    passed=_passed,
)
def register_loads(tid, p, BM, BN, WM, WN, TN, WNITER):
    """loads(tid, p, BM, BN, WM, WN, TN, WNITER) -> (indices into flat As, indices into flat Bs); TM = 1."""
    t = CHOICE[BM, BN, WM, WN, TN, WNITER]
    a = [document.reg_m(tid, p, i, *t.values) for i in range(steps_down(t))]
    sizes = BN, WM, WN, TN, WNITER
    return a, [document.reg_n(tid, p, j, e, *sizes) for j in range(WNITER) for e in range(TN)]
