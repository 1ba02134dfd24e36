"""Exercise 07.2: the elements of C that a thread owns, in the order of its results."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from gemm_course.checks.core import Refused, call, function_of
from gemm_course.figures.owners import traced
from gemm_course.model.formulas import document_003 as document

PARAMETERS = ("tid", "BN", "WM", "WN", "TN", "WNITER")
Elements = list[tuple[int, int]]


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
    def asked(self) -> tuple[int, ...]:
        """What the learner's function is called with behind tid."""
        return self.BN, self.WM, self.WN, self.TN, self.WNITER

    @property
    def threads(self) -> int:
        return self.BM * self.BN // (self.WM * self.WN) * 32

    def __str__(self) -> str:
        return ", ".join(f"{name} = {value}" for name, value in vars(self).items())


CASES = (
    Tiles(BM=64, BN=64, WM=32, WN=32, TN=8, WNITER=1),
    Tiles(BM=64, BN=128, WM=32, WN=64, TN=8, WNITER=2),
    Tiles(BM=128, BN=64, WM=64, WN=32, TN=4, WNITER=2),
    Tiles(BM=64, BN=32, WM=32, WN=16, TN=4, WNITER=1),
    Tiles(BM=64, BN=128, WM=64, WN=64, TN=4, WNITER=1),
)


def prove_owner_map(given) -> str:
    """What was proved of the learner's function; raises Refused with the first thing wrong."""
    function = function_of(given, PARAMETERS)
    answers = {}
    for tiles in CASES:
        for tid in range(tiles.threads):
            answers[tiles, tid] = _elements(call(function, tid, *tiles.asked), tiles, tid)
    wrong = next((who for who, answer in answers.items() if answer != stored(*who)), None)
    if wrong is None:
        return (
            f"Right for all threads of {len(CASES)} choices of tiles: the emulator's stores are the same, "
            f"in the same order, and each of the {CASES[0].BM} × {CASES[0].BN} elements of the first is "
            "owned once."
        )
    where = _where(*wrong, answers[wrong])
    for message, slip in SLIPS:
        if all(answer == slip(tid, tiles) for (tiles, tid), answer in answers.items()):
            raise Refused(message, where)
    raise Refused(_coverage(answers) or "These are not this thread's elements.", where)


def stored(tiles: Tiles, tid: int) -> Elements:
    """(row, column) of the elements that the course's kernel stores, in its order, from the trace."""
    sizes = {**vars(tiles), "BK": 16, "TM": 1}
    return [tuple(place) for place in traced("warp_tiled_tm1", tuple(sizes.items())).elements(tid).tolist()]


def _elements(answer, tiles: Tiles, tid: int) -> Elements:
    where = f"`elements({', '.join(map(str, (tid, *tiles.asked)))})`"
    if isinstance(answer, (str, bytes, dict)) or not hasattr(answer, "__iter__"):
        raise Refused(f"Return a list of pairs, `[(row, column), ...]`, not `{answer!r}`.", where)
    try:
        pairs = [(row, column) for row, column in answer]
    except (TypeError, ValueError):
        raise Refused(
            f"Return a list of pairs, `[(row, column), ...]`; this is `{str(answer)[:60]}`.", where
        ) from None
    for pair in pairs:
        if not all(isinstance(number, (int, np.integer)) and not isinstance(number, bool) for number in pair):
            raise Refused(
                f"Rows and columns are whole numbers; here `{pair}` is among them. Divide by `//`.", where
            )
    return [(int(row), int(column)) for row, column in pairs]


# ---- what is wrong -----------------------------------------------------------------------------------------


def _where(tiles: Tiles, tid: int, answer: Elements) -> str:
    right = stored(tiles, tid)
    who = f"thread {tid} (warp {tid // 32}, lane {tid % 32})"
    place = next((i for i, (a, b) in enumerate(zip(answer, right)) if a != b), min(len(answer), len(right)))
    got = f"is {answer[place]}" if place < len(answer) else "is missing"
    truth = f"the kernel stores C{list(right[place])}" if place < len(right) else "the kernel has no more"
    return f"First difference: result {place} of {who} {got}; {truth}. {tiles}."


def _coverage(answers: dict) -> str:
    """The first element of C that is outside the tile, owned twice or by nobody."""
    for tiles in CASES:
        owner: dict[tuple[int, int], int] = {}
        for tid in range(tiles.threads):
            for place in answers[tiles, tid]:
                if not (0 <= place[0] < tiles.BM and 0 <= place[1] < tiles.BN):
                    return f"C{list(place)} of thread {tid} lies outside a tile of {tiles.BM} × {tiles.BN}."
                if place in owner and owner[place] != tid:
                    return f"C{list(place)} is owned twice, by thread {owner[place]} and by thread {tid}."
                owner[place] = tid
        for place in np.ndindex(tiles.BM, tiles.BN):
            if place not in owner:
                return f"C{list(place)} is owned by nobody; each element of the tile needs one thread."
    if all(sorted(answer) == sorted(stored(*who)) for who, answer in answers.items()):
        return (
            "Each thread has the right elements, in another order. Result i is that of row step `i // "
            "(WNITER·TN)`; within a row, step by step, TN columns each."
        )
    return "Each element has one owner, but not the one that document 003 gives it."


def _places(rows: Callable, columns: Callable) -> Callable[[int, Tiles], Elements]:
    """Elements from wrong rows and columns: functions of (tid, tiles, step, column in the step)."""

    def answer(tid: int, tiles: Tiles) -> Elements:
        return [(rows(tid, tiles, i), columns(tid, tiles, j, e)) for i, j, e in _results(tiles)]

    return answer


def _results(tiles: Tiles) -> Iterator[tuple[int, int, int]]:
    for i in range(_down(tiles)):
        for j in range(tiles.WNITER):
            for e in range(tiles.TN):
                yield i, j, e


def _down(t: Tiles) -> int:
    return document.wmiter(t.WM, t.WN, 1, t.TN, t.WNITER)


def _sub(t: Tiles) -> tuple[int, int]:
    return document.wsub(t.WM, t.WN, 1, t.TN, t.WNITER)


def _warp(tid: int, t: Tiles) -> tuple[int, int]:
    return document.warp(tid, t.BN, t.WN)


def _lane(tid: int, t: Tiles) -> tuple[int, int]:
    return document.lane(tid, t.TN, _sub(t)[1])


def _row(tid, t, i, warp=_warp, lane=_lane):
    return warp(tid, t)[0] * t.WM + i * _sub(t)[0] + lane(tid, t)[0]


def _column(tid, t, j, e, warp=_warp, lane=_lane):
    return warp(tid, t)[1] * t.WN + j * _sub(t)[1] + lane(tid, t)[1] * t.TN + e


def _both(warp=_warp, lane=_lane) -> Callable[[int, Tiles], Elements]:
    """Elements from a wrong place of the warp, or of the lane."""
    return _places(
        lambda tid, t, i: _row(tid, t, i, warp, lane), lambda tid, t, j, e: _column(tid, t, j, e, warp, lane)
    )


def _lane_of_the_block(tid: int, t: Tiles) -> tuple[int, int]:
    across = _sub(t)[1] // t.TN
    return tid // across, tid % across


def _warps_by_rows(tid: int, t: Tiles) -> tuple[int, int]:
    down = max(1, t.BN // t.WM)
    return tid // 32 // down, tid // 32 % down


SLIPS = (
    (
        "`//` and `%` are exchanged for the lane: neighbouring lanes lie side by side, so the remainder "
        "of the division by WSUBN // TN is the column, the quotient the row.",
        _both(lane=lambda tid, t: _lane(tid, t)[::-1]),
    ),
    (
        "`//` and `%` are exchanged for the warp: warps lie side by side first, so the remainder of the "
        "division by BN // WN is the column, the quotient the row.",
        _both(warp=lambda tid, t: _warp(tid, t)[::-1]),
    ),
    (
        "The thread's number in the block stands where its lane is meant: within a warp there are only 32, "
        "`tid % 32`.",
        _both(lane=_lane_of_the_block),
    ),
    (
        "The warp is left out: all warps own the same elements. Its tile begins at row `warp_row * WM`, "
        "column `warp_col * WN`.",
        _both(warp=lambda tid, t: (0, 0)),
    ),
    (
        "These steps are contiguous: a thread's rows lie one below the other. In document 003 the "
        "*warp's* rows of a step lie together, and the thread's next row comes WSUBM further down.",
        _places(lambda tid, t, i: _warp(tid, t)[0] * t.WM + _lane(tid, t)[0] * _down(t) + i, _column),
    ),
    (
        "The thread's columns of all steps lie side by side here. Its next TN columns come WSUBN further "
        "right.",
        _places(
            _row,
            lambda tid, t, j, e: _warp(tid, t)[1] * t.WN + (_lane(tid, t)[1] * t.WNITER + j) * t.TN + e,
        ),
    ),
    (
        "From step to step the row grows by 1 only: the stride WSUBM is missing, `i * WSUBM`.",
        _places(lambda tid, t, i: _warp(tid, t)[0] * t.WM + i + _lane(tid, t)[0], _column),
    ),
    (
        "From step to step the column grows by TN only: the stride WSUBN is missing, `j * WSUBN`.",
        _places(
            _row,
            lambda tid, t, j, e: _warp(tid, t)[1] * t.WN + j * t.TN + _lane(tid, t)[1] * t.TN + e,
        ),
    ),
    (
        "The lane's column counts threads, not elements: it has to be multiplied by TN.",
        _places(
            _row,
            lambda tid, t, j, e: _warp(tid, t)[1] * t.WN + j * _sub(t)[1] + _lane(tid, t)[1] + e,
        ),
    ),
    (
        "Rows and columns are exchanged in the pairs: `(row, column)`.",
        lambda tid, t: [place[::-1] for place in _both()(tid, t)],
    ),
    (
        "The warps of a block are counted along its columns: there are BN // WN side by side, not BN // WM.",
        _both(warp=_warps_by_rows),
    ),
    (
        "Only the first step is there. The thread comes back WMITER times down and WNITER times across the "
        "warp's tile.",
        lambda tid, t: _both()(tid, t)[: t.TN],
    ),
)
