"""Checks ``owner_map``: the elements of C that a thread owns, in the order of its results."""

from collections.abc import Callable, Sequence
from functools import cache, partial

import numpy as np

from gemm_course.checks.engines.tables import Slip, places, table_exercise
from gemm_course.checks.engines.tiles import Tiles, tile_choices
from gemm_course.model.owner_maps import traced

from .warp_layout import Place, lane, step, steps_down, thread_named, threads, warp

TILES = tile_choices(
    "BM BN WM WN TN WNITER",
    (64, 64, 32, 32, 8, 1),
    (64, 128, 32, 64, 8, 2),
    (128, 64, 64, 32, 4, 2),
    (64, 32, 32, 16, 4, 1),
    (64, 128, 64, 64, 4, 1),
)
CASES = [(tid, *tiles.values[1:]) for tiles in TILES for tid in range(threads(tiles))]
# The keys are the arguments that follow tid.
CHOICE = {tiles.values[1:]: tiles for tiles in TILES}


def _difference(case: tuple, answer: list[Place], right: list[Place]) -> str:
    place = next((i for i, (a, b) in enumerate(zip(answer, right)) if a != b), min(len(answer), len(right)))
    got = f"is {answer[place]}" if place < len(answer) else "is missing"
    truth = f"the kernel stores C{list(right[place])}" if place < len(right) else "the kernel has no more"
    return f"First difference: result {place} of {thread_named(case[0])} {got}; {truth}. {CHOICE[case[1:]]}."


def _coverage(cases: Sequence[tuple], answers: Sequence[list[Place]]) -> str:
    """Return the first element of C that is outside the tile, owned twice, or owned by no thread."""
    given = dict(zip(cases, answers))
    for case, answer in given.items():
        if len(answer) != (expected := len(owner_map.right(*case))):
            if len(answer) == expected * case[-1]:
                # There are WNITER times as many elements as a thread has.
                return WITHOUT_WNITER
            return (
                f"{len(answer)} elements where {expected} are expected, of {thread_named(case[0])}: TN "
                "neighbours in each of the WMITER · WNITER sub-tiles."
            )
    for tiles in TILES:
        owner: dict[Place, int] = {}
        for tid in range(threads(tiles)):
            for place in given.get((tid, *tiles.values[1:]), ()):
                if not (0 <= place[0] < tiles.BM and 0 <= place[1] < tiles.BN):
                    return f"C{list(place)} of thread {tid} lies outside a tile of {tiles.BM} × {tiles.BN}."
                if place in owner and owner[place] != tid:
                    return f"C{list(place)} is owned twice, by thread {owner[place]} and by thread {tid}."
                owner[place] = tid
        for place in np.ndindex(tiles.BM, tiles.BN):
            if place not in owner:
                return f"C{list(place)} is owned by no thread; each element of the tile needs one."
    if all(sorted(answer) == sorted(owner_map.right(*case)) for case, answer in given.items()):
        return (
            "Each thread has the right elements, in another order. Result i is that of row `i // "
            "(WNITER·TN)`; within a row, sub-tile by sub-tile, TN columns each."
        )
    return (
        "Each element has one owner, but not the one that document 003 gives it. Warps and lanes are "
        "numbered row by row: 0 and 1 lie side by side."
    )


# ---- likely mistakes, as functions of (tiles, thread) ------------------------------------------------------


def _row(t: Tiles, tid: int, i: int, warp=warp, lane=lane) -> int:
    return warp(t, tid)[0] * t.WM + i * step(t)[0] + lane(t, tid)[0]


def _column(t: Tiles, tid: int, j: int, e: int, warp=warp, lane=lane) -> int:
    return warp(t, tid)[1] * t.WN + j * step(t)[1] + lane(t, tid)[1] * t.TN + e


def _elements(t: Tiles, tid: int, rows: Callable = _row, columns: Callable = _column) -> list[Place]:
    return [
        (rows(t, tid, i), columns(t, tid, j, e))
        for i in range(steps_down(t))
        for j in range(t.WNITER)
        for e in range(t.TN)
    ]


def _places(rows: Callable, columns: Callable) -> Callable:
    """Return the elements from wrong rows, (tiles, tid, step), and columns, (tiles, tid, step, column)."""
    return partial(_elements, rows=rows, columns=columns)


def _placed(**place: Callable) -> Callable:
    """Return the elements from a wrong place of the warp, or of the lane."""
    return _places(partial(_row, **place), partial(_column, **place))


def _lane_of_the_block(t: Tiles, tid: int) -> Place:
    return divmod(tid, step(t)[1] // t.TN)


def _lanes_across(count: Callable, row: bool, column: bool) -> Callable:
    """Return the elements if the lane's row, its column or both come from a division by count(tiles)."""

    def other_lane(t: Tiles, tid: int) -> Place:
        return divmod(tid % 32, count(t))

    return _places(
        partial(_row, lane=other_lane) if row else _row,
        partial(_column, lane=other_lane) if column else _column,
    )


def _with_steps_down(count: Callable) -> Callable:
    """Return the elements if WMITER is count(tiles), and WSUBM what follows from it."""

    def elements(t: Tiles, tid: int) -> list[Place]:
        down, first = count(t), (_row(t, tid, 0), _column(t, tid, 0, 0))
        across = [j * step(t)[1] + e for j in range(t.WNITER) for e in range(t.TN)]
        return [(first[0] + i * (t.WM // down), first[1] + col) for i in range(down) for col in across]

    return elements


def _warps_by_rows(t: Tiles, tid: int) -> Place:
    return divmod(tid // 32, max(1, t.BN // t.WM))


WITHOUT_WNITER = (
    "WMITER counts too many sub-tiles down: WNITER is missing. One has 32·TN elements (TM is 1), and "
    "WNITER of them lie side by side: WMITER = WM·WN // (32·TN·WNITER)."
)
MISTAKES = (
    (
        "`//` and `%` are swapped for the lane: neighbouring lanes lie side by side, so the remainder "
        "of the division by WSUBN // TN is the column, the quotient the row.",
        _placed(lane=lambda t, tid: lane(t, tid)[::-1]),
    ),
    (
        "`//` and `%` are swapped for the lane, and the lanes go down first: the row is `lane // (WSUBN // "
        "TN)`, the column `lane % (WSUBN // TN)`. Neighbouring lanes lie side by side.",
        _placed(lane=lambda t, tid: divmod(tid % 32, step(t)[0])[::-1]),
    ),
    (
        "`//` and `%` are swapped for the warp: warps lie side by side first, so the remainder of the "
        "division by BN // WN is the column, the quotient the row.",
        _placed(warp=lambda t, tid: warp(t, tid)[::-1]),
    ),
    (
        "The thread's number in the block stands where its lane is meant: within a warp there are only 32, "
        "`tid % 32`.",
        _placed(lane=_lane_of_the_block),
    ),
    (
        "The warp is left out: all warps own the same elements. Its tile begins at row `warp_row * WM`, "
        "column `warp_col * WN`.",
        _placed(warp=lambda t, tid: (0, 0)),
    ),
    (
        "A thread's rows lie one below the other here, contiguous. In document 003 the *warp's* rows of a "
        "sub-tile lie together, and the thread's next row comes WSUBM further down.",
        _places(lambda t, tid, i: warp(t, tid)[0] * t.WM + lane(t, tid)[0] * steps_down(t) + i, _column),
    ),
    (
        "The thread's columns of all sub-tiles lie side by side here. Its next TN columns come WSUBN further "
        "right.",
        _places(
            _row,
            lambda t, tid, j, e: warp(t, tid)[1] * t.WN + (lane(t, tid)[1] * t.WNITER + j) * t.TN + e,
        ),
    ),
    (
        "All of a thread's elements lie together here, as in notebook [[thread_tiles_2d.ipynb]]. In document "
        "003 its next row is WSUBM further down, and its next TN columns are WSUBN further right: other "
        "lanes lie between.",
        _places(
            lambda t, tid, i: warp(t, tid)[0] * t.WM + lane(t, tid)[0] * steps_down(t) + i,
            lambda t, tid, j, e: warp(t, tid)[1] * t.WN + (lane(t, tid)[1] * t.WNITER + j) * t.TN + e,
        ),
    ),
    (
        "From sub-tile to sub-tile the row grows by 1 only: the stride WSUBM is missing, `i * WSUBM`.",
        _places(lambda t, tid, i: warp(t, tid)[0] * t.WM + i + lane(t, tid)[0], _column),
    ),
    (
        "From sub-tile to sub-tile the column grows by TN only: the stride WSUBN is missing, `j * WSUBN`.",
        _places(
            _row,
            lambda t, tid, j, e: warp(t, tid)[1] * t.WN + j * t.TN + lane(t, tid)[1] * t.TN + e,
        ),
    ),
    (
        "From sub-tile to sub-tile the row grows by WMITER, which counts them. It must grow by the height of "
        "one: `i * WSUBM`.",
        _places(lambda t, tid, i: _row(t, tid, 0) + i * steps_down(t), _column),
    ),
    (
        "From sub-tile to sub-tile the column grows by WNITER, which counts them. It must grow by the width "
        "of one: `j * WSUBN`.",
        _places(_row, lambda t, tid, j, e: _column(t, tid, 0, e) + j * t.WNITER),
    ),
    (
        "From sub-tile to sub-tile rows and columns grow by WMITER and WNITER, which count them. They must "
        "grow by the height and the width of one: `i * WSUBM`, `j * WSUBN`.",
        _places(
            lambda t, tid, i: _row(t, tid, 0) + i * steps_down(t),
            lambda t, tid, j, e: _column(t, tid, 0, e) + j * t.WNITER,
        ),
    ),
    (
        "The lane's column counts threads, not elements: it must be multiplied by TN.",
        _places(
            _row,
            lambda t, tid, j, e: warp(t, tid)[1] * t.WN + j * step(t)[1] + lane(t, tid)[1] + e,
        ),
    ),
    *(
        (
            f"{begin} lane is divided by {by}. {but} `WSUBN // TN` lanes lie side by side: divide by that.",
            _lanes_across(count, *at),
        )
        for by, but, count in (
            ("WSUBN", "But each lane has TN of these columns.", lambda t: step(t)[1]),
            (
                "WN // TN",
                "But the lanes cover one sub-tile at a time, WSUBN wide.",
                lambda t: t.WN // t.TN,
            ),
        )
        for begin, *at in (
            ("The", True, True),
            ("For the row, the", True, False),
            ("For the column, the", False, True),
        )
    ),
    (
        "Rows and columns are swapped in the pairs: `(row, column)`.",
        lambda t, tid: [place[::-1] for place in _elements(t, tid)],
    ),
    (
        "The warps of a block are counted along its columns: there are BN // WN side by side, not BN // WM.",
        _placed(warp=_warps_by_rows),
    ),
    (
        WITHOUT_WNITER,
        _with_steps_down(lambda t: t.WM * t.WN // (32 * t.TN)),
    ),
    (
        "WMITER counts too many sub-tiles down: in each not one thread but 32 have TN elements each, so "
        "WMITER = WM·WN // (32·TN·WNITER).",
        _with_steps_down(lambda t: t.WM * t.WN // (t.TN * t.WNITER)),
    ),
    (
        "Only the first sub-tile is there. The thread comes back WMITER times down and WNITER times across "
        "the warp's tile.",
        lambda t, tid: _elements(t, tid)[: t.TN],
    ),
)
SLIPS = [
    Slip(message, lambda tid, *sizes, wrong=wrong: wrong(CHOICE[sizes], tid)) for message, wrong in MISTAKES
]


@table_exercise(
    start="work out the warp, `tid // 32`, and the lane, `tid % 32`; then the row and column of each.",
    hints=(
        "First the sub-tiles: 32 lanes with TN elements each make one, WNITER of them lie side by side, and "
        "together they are WM · WN elements. So WMITER = WM·WN // (32·TN·WNITER) lie one below the other, "
        "WSUBM = WM // WMITER rows and WSUBN = WN // WNITER columns each.",
        "Then four questions: which warp tile of the block, which lane of the warp, which "
        "sub-tile, which of the TN columns? Each adds something to the row, to the column, or to both.",
        "BN // WN warps lie side by side, so the warp's row is `warp // (BN // WN)` and its column the "
        "remainder. In the same way WSUBN // TN lanes lie side by side.",
        "The row is `warp_row * WM + i * WSUBM + lane_row`, the column `warp_col * WN + j * WSUBN + "
        "lane_col * TN + e`. Order: `for i in range(WMITER) for j in range(WNITER) for e in range(TN)`, in "
        "which the document numbers threadResults.",
    ),
    cases=CASES,
    slips=SLIPS,
    read=places,
    difference=_difference,
    otherwise=_coverage,
    passed=f"Right for all threads of {len(TILES)} choices of tiles: the emulator's stores are the same, in "
    f"the same order, and each of the {TILES[0].BM} × {TILES[0].BN} elements of the first is owned once.",
)
@cache
def owner_map(tid, BN, WM, WN, TN, WNITER):
    """elements(tid, BN, WM, WN, TN, WNITER) -> [(row, column), ...] of a thread's results; TM = 1."""
    tiles = CHOICE[BN, WM, WN, TN, WNITER]
    sizes = {**dict(zip(tiles.names, tiles.values)), "BK": 16, "TM": 1}
    return [tuple(place) for place in traced("warp_tiled_tm1", tuple(sizes.items())).elements(tid).tolist()]
