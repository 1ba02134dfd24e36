"""Exercise 07.5: what a thread reads of flat As and Bs in one step along k, with TM = 1."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from gemm_course.checks.core import Refused, call, function_of
from gemm_course.model.formulas import document_003 as document

PARAMETERS = ("tid", "p", "BM", "BN", "WM", "WN", "TN", "WNITER")
BK = 8


@dataclass(frozen=True)
class Tiles:
    """One choice of tiles, with TM = 1."""

    BM: int
    BN: int
    WM: int
    WN: int
    TN: int
    WNITER: int

    @property
    def values(self) -> tuple[int, ...]:
        return tuple(vars(self).values())

    @property
    def threads(self) -> int:
        return self.BM * self.BN // (self.WM * self.WN) * 32

    @property
    def down(self) -> int:
        """WMITER."""
        return document.wmiter(self.WM, self.WN, 1, self.TN, self.WNITER)

    @property
    def sub(self) -> tuple[int, int]:
        """WSUBM, WSUBN."""
        return document.wsub(self.WM, self.WN, 1, self.TN, self.WNITER)

    def __str__(self) -> str:
        return ", ".join(f"{name} = {value}" for name, value in vars(self).items())


CASES = (
    Tiles(BM=64, BN=64, WM=32, WN=32, TN=8, WNITER=1),
    Tiles(BM=64, BN=128, WM=32, WN=64, TN=8, WNITER=2),
    Tiles(BM=128, BN=64, WM=64, WN=32, TN=4, WNITER=1),
    Tiles(BM=64, BN=128, WM=64, WN=64, TN=4, WNITER=1),
)
STEPS = (0, 1, 5)  # p


def prove_loads(given) -> str:
    """What was proved of the learner's function; raises Refused with the first thing wrong."""
    function = function_of(given, PARAMETERS)
    asked = [(t, tid, p) for t in CASES for tid in range(t.threads) for p in STEPS]
    answers = {who: _two_lists(call(function, who[1], who[2], *who[0].values), who) for who in asked}
    for part, name, slips in ((0, "As", SLIPS_OF_A), (1, "Bs", SLIPS_OF_B)):
        wrong = next((who for who in asked if answers[who][part] != right(part, *who)), None)
        if wrong is None:
            continue
        where = _where(name, answers[wrong][part], right(part, *wrong), wrong)
        for message, slip in slips:
            if all(answers[who][part] == slip(*who) for who in asked):
                raise Refused(message, where)
        raise Refused(f"These are not the elements of `{name}` that this thread needs.", where)
    t = CASES[1]
    reads, products = t.down + t.WNITER * t.TN, t.down * t.WNITER * t.TN
    return (
        f"Right for all threads of {len(CASES)} choices of tiles. With {t}: {t.down} + {t.WNITER * t.TN} = "
        f"{reads} reads for {products} multiply-adds, {reads / products:.3g} each."
    )


def right(part: int, t: Tiles, tid: int, p: int) -> list[int]:
    """The indices into flat As (part 0) or Bs (part 1), as document 003 has them."""
    if part == 0:
        return [document.reg_m(tid, p, i, *t.values) for i in range(t.down)]
    sizes = t.BN, t.WM, t.WN, t.TN, t.WNITER
    return [document.reg_n(tid, p, j, e, *sizes) for j in range(t.WNITER) for e in range(t.TN)]


def _two_lists(answer, who) -> tuple[list[int], list[int]]:
    t, tid, p = who
    where = f"`loads({', '.join(map(str, (tid, p, *t.values)))})`"
    if not isinstance(answer, (tuple, list)) or len(answer) != 2:
        raise Refused(
            f"Return two lists, `(a, b)`: indices into As, and into Bs; not `{str(answer)[:60]}`.", where
        )
    return tuple(_list(part, name, where) for part, name in zip(answer, "ab"))


def _list(part, name: str, where: str) -> list[int]:
    if isinstance(part, (str, bytes, dict)) or not hasattr(part, "__iter__"):
        raise Refused(f"`{name}` is to be a list of indices, not `{part!r}`.", where)
    numbers = list(part)
    if not all(isinstance(n, (int, np.integer)) and not isinstance(n, bool) for n in numbers):
        raise Refused(
            f"`{name}` is to hold whole numbers: the tiles lie flat here, one row after the other, so an "
            "element has one index.",
            where,
        )
    return [int(n) for n in numbers]


def _where(name: str, answer: list[int], truth: list[int], who) -> str:
    t, tid, p = who
    place = next((i for i, (a, b) in enumerate(zip(answer, truth)) if a != b), min(len(answer), len(truth)))
    got = f"is {answer[place]}" if place < len(answer) else "is missing"
    needed = f"{truth[place]} is needed" if place < len(truth) else f"there are only {len(truth)}"
    thread = f"thread {tid} (warp {tid // 32}, lane {tid % 32})"
    return f"First difference: number {place} of {name} for {thread} in step p = {p} {got}; {needed}. {t}."


# ---- slips -------------------------------------------------------------------------------------------------


def _of_a(row: Callable, count: Callable = lambda t: t.down, width: Callable = lambda t: t.BM):
    """Indices into As from the row of the tile, row(t, tid, i)."""
    return lambda t, tid, p: [p * width(t) + row(t, tid, i) for i in range(count(t))]


def _of_b(column: Callable, width: Callable = lambda t: t.BN):
    """Indices into Bs from the column of the tile, column(t, tid, j, e)."""
    return lambda t, tid, p: [
        p * width(t) + column(t, tid, j, e) for j in range(t.WNITER) for e in range(t.TN)
    ]


def _row(t: Tiles, tid: int, i: int) -> int:
    return _warp(t, tid)[0] * t.WM + i * t.sub[0] + _lane(t, tid)[0]


def _column(t: Tiles, tid: int, j: int, e: int) -> int:
    return _warp(t, tid)[1] * t.WN + j * t.sub[1] + _lane(t, tid)[1] * t.TN + e


def _warp(t: Tiles, tid: int) -> tuple[int, int]:
    return document.warp(tid, t.BN, t.WN)


def _lane(t: Tiles, tid: int) -> tuple[int, int]:
    return document.lane(tid, t.TN, t.sub[1])


SLIPS_OF_A = (
    (
        "As: the stride WSUBM is missing; from one of the thread's rows to its next it is `i * WSUBM`.",
        _of_a(lambda t, tid, i: _warp(t, tid)[0] * t.WM + i + _lane(t, tid)[0]),
    ),
    (
        "As: BK is taken for the row length. As is transposed, BK rows of BM elements, so step p begins at "
        "`p * BM`.",
        _of_a(_row, width=lambda t: BK),
    ),
    (
        "As: this reads it untransposed, row by row of A. It lies transposed: the row of C is the position "
        "within row p.",
        lambda t, tid, p: [_row(t, tid, i) * BK + p for i in range(t.down)],
    ),
    (
        "As: WNITER stands where WMITER is meant. A thread has WMITER rows, so it reads WMITER elements "
        "of As.",
        _of_a(_row, count=lambda t: t.WNITER),
    ),
    (
        "As: this reads one element for every product. Each of the WMITER elements is read once and then "
        "used WNITER·TN times from its register.",
        lambda t, tid, p: [p * t.BM + _row(t, tid, i) for i in range(t.down) for _ in range(t.WNITER * t.TN)],
    ),
    (
        "As: the row of the lane is multiplied by TN. Rows go with TM, and that is 1 here.",
        _of_a(lambda t, tid, i: _warp(t, tid)[0] * t.WM + i * t.sub[0] + _lane(t, tid)[0] * t.TN),
    ),
    (
        "As: the warp is left out; its rows begin at `warp_row * WM`.",
        _of_a(lambda t, tid, i: i * t.sub[0] + _lane(t, tid)[0]),
    ),
    (
        "As: the step p is left out; it begins at `p * BM`.",
        _of_a(_row, width=lambda t: 0),
    ),
    (
        "As: the columns of warp and lane are used. As has the rows of C.",
        _of_a(lambda t, tid, i: _warp(t, tid)[1] * t.WM + i * t.sub[0] + _lane(t, tid)[1]),
    ),
)
SLIPS_OF_B = (
    (
        "Bs: the stride WSUBN is missing; from one run of TN columns to the next it is `j * WSUBN`.",
        _of_b(lambda t, tid, j, e: _warp(t, tid)[1] * t.WN + j * t.TN + _lane(t, tid)[1] * t.TN + e),
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
        _of_b(lambda t, tid, j, e: _warp(t, tid)[1] * t.WN + j * t.sub[1] + _lane(t, tid)[1] + e),
    ),
    (
        "Bs: only the first of each run of TN columns is there; a thread reads WNITER·TN elements of Bs.",
        lambda t, tid, p: [p * t.BN + _column(t, tid, j, 0) for j in range(t.WNITER)],
    ),
    (
        "Bs: the warp is left out; its columns begin at `warp_col * WN`.",
        _of_b(lambda t, tid, j, e: j * t.sub[1] + _lane(t, tid)[1] * t.TN + e),
    ),
    (
        "Bs: the rows of warp and lane are used. Bs has the columns of C.",
        _of_b(lambda t, tid, j, e: _warp(t, tid)[0] * t.WN + j * t.sub[1] + _lane(t, tid)[0] * t.TN + e),
    ),
)
