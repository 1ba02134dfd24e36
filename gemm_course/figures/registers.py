"""Draws a thread's tile of results in registers, and what it and its warp read in one step along k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import Drawing

WARP = 32
Element = tuple[int, ...]
# This axis of a shared tile runs along k.
K_AXIS = {"As": 1, "Bs": 0}
_LEFT, _GAP = 40.0, 8.0
# A row of reads and multiply-adds is at most this wide.
_TOKENS = 372.0


@dataclass(frozen=True)
class Work:
    """The work of one thread on a pair of tiles.

    ``results`` are the elements of C that the thread stores. ``reads`` maps a step p along k to the elements
    that the thread reads for this step, by shared array: ``{3: {"As": [(0, 3), (1, 3)], "Bs": [(3, 5)]}}``.
    """

    results: Sequence[Element]
    reads: Mapping[int, Mapping[str, Sequence[Element]]]

    def read_at(self, p: int, array: str) -> list[Element]:
        """Return the elements of ``array`` read for step ``p``, in order, with one entry per read."""
        return list(self.reads.get(p, {}).get(array, ()))


def work_of_threads(trace) -> dict[int, Work]:
    """Return what every thread of a block reads and stores, from ``report.trace``.

    The tiles are ``As`` (rows along m) and ``Bs`` (rows along k).
    """
    results: dict[int, list[Element]] = {}
    reads: dict[int, dict[int, dict[str, list[Element]]]] = {}
    kept = trace[trace["array"].isin(("As", "Bs", "C"))]
    for thread, array, op, element in zip(kept["thread"], kept["array"], kept["op"], kept["element"]):
        if array == "C" and op == "store":
            results.setdefault(thread, []).append(tuple(element))
        elif array in K_AXIS and op == "load":
            steps = reads.setdefault(thread, {})
            steps.setdefault(element[K_AXIS[array]], {}).setdefault(array, []).append(tuple(element))
    return {thread: Work(results.get(thread, ()), steps) for thread, steps in reads.items()}


def one_step(work: Mapping[int, Work], thread: int, p: int, tiles: Mapping[str, int]) -> Picture:
    """Draw step ``p`` of ``thread``: its results, what it reads, and what its warp reads with it.

    ``work`` has the threads of the thread's warp or of its whole block, whose tile of C begins at C[0, 0].
    ``tiles`` has BM, BN and BK.
    """
    mine = work[thread]
    a, b = mine.read_at(p, "As"), mine.read_at(p, "Bs")
    count, results = len(a) + len(b), len(mine.results)
    ratio = f"{count / results:.4g} per multiply-add"
    drawing = Drawing(
        f"Thread {thread}, step p = {p}: {count} reads for {results} multiply-adds, {ratio}",
        title_lines=2,
    )
    lanes = _warp_of(work, thread)
    bottom = _plan(drawing, lanes, mine, p, tiles)
    shared = _said_of_neighbours(lanes, mine, p)
    for place, words in enumerate(shared):
        drawing.text(8, bottom + 18 + 19 * place, words, fill=colours.QUIET)
    _strip(drawing, len(a), len(b), results, bottom + 18 + 19 * len(shared) + 8)
    return drawing.picture(
        f"Thread {thread} keeps {results} results of C in registers: {_span(mine.results)}. "
        f"For p = {p} it reads {_span(a)} of As and {_span(b)} of Bs. {' '.join(shared)} "
        f"With one result per thread the same multiply-adds take {2 * results} reads."
    )


def _warp_of(work: Mapping[int, Work], thread: int) -> list[Work]:
    first = thread // WARP * WARP
    return [work[lane] for lane in range(first, first + WARP) if lane in work]


def _span(elements: Sequence[Element]) -> str:
    """Return the places of elements in words: "[2, 5]" for one, "[0, 3] to [7, 3]" for more."""
    if not elements:
        return "nothing"
    first, last = (str(list(element)) for element in (min(elements), max(elements)))
    return first if first == last else f"{first} to {last}"


# ---- the tiles ---------------------------------------------------------------------------------------------


def _plan(drawing: Drawing, lanes: Sequence[Work], mine: Work, p: int, tiles: Mapping[str, int]) -> float:
    """Draw As at the left, Bs on top and C in the corner between them. Return the lower edge."""
    BM, BN, BK = tiles["BM"], tiles["BN"], tiles["BK"]
    cell = min(14.0, (drawing.width - 16 - _LEFT - _GAP) / (BK + BN), 400 / (BK + BM))
    top = drawing.top + 20
    corner = _LEFT + BK * cell + _GAP, top + BK * cell + _GAP
    places = {"As": (_LEFT, corner[1]), "Bs": (corner[0], top), "C": corner}
    for array, shape in (("As", (BM, BK)), ("Bs", (BK, BN)), ("C", (BM, BN))):
        _tile(drawing, places[array], shape, cell)
        with_me = {e for lane in lanes for e in _touched(lane, p, array)}
        _cells(drawing, places[array], with_me, cell, colours.PALE[colours.of_array(array)])
        _cells(drawing, places[array], set(_touched(mine, p, array)), cell, colours.of_array(array), True)
    bottom = corner[1] + BM * cell
    drawing.text(corner[0] + BN * cell / 2, top - 6, "Bs", anchor="middle", bold=True)
    drawing.text(_LEFT - 30, corner[1] + BM * cell / 2 + 5, "As", bold=True)
    drawing.text(8, top + (p + 0.5) * cell + 5, f"p = {p}")
    drawing.text(_LEFT + (p + 0.5) * cell, corner[1] - 5, "↓", anchor="middle", bold=True)
    _legend(drawing, bottom + 8)
    return bottom + 26


def _touched(work: Work, p: int, array: str) -> Sequence[Element]:
    return work.results if array == "C" else work.read_at(p, array)


def _tile(drawing: Drawing, at: tuple[float, float], shape: tuple[int, int], cell: float) -> None:
    (x, y), (rows, columns) = at, shape
    drawing.rect(x, y, columns * cell, rows * cell, colours.IDLE, stroke=colours.QUIET, line=0.8)
    for row in range(1, rows):
        drawing.line(x, y + row * cell, x + columns * cell, y + row * cell, stroke=colours.EDGE, width=0.5)
    for column in range(1, columns):
        drawing.line(x + column * cell, y, x + column * cell, y + rows * cell, stroke=colours.EDGE, width=0.5)


def _cells(
    drawing: Drawing, at: tuple[float, float], elements: set, cell: float, fill: str, mine: bool = False
) -> None:
    edge = {"stroke": colours.INK, "line": 1.4} if mine else {}
    for row, column in elements:
        drawing.rect(at[0] + column * cell, at[1] + row * cell, cell, cell, fill, **edge)


def _legend(drawing: Drawing, y: float) -> None:
    """Explain the cells of a tile: those of this thread are dark and outlined, those of its warp are pale."""
    for place, hue in enumerate((colours.A, colours.B, colours.C)):
        drawing.rect(8 + 18 * place, y, 12, 12, hue, stroke=colours.INK, line=1.4)
        drawing.rect(312 + 18 * place, y, 12, 12, colours.PALE[hue], stroke=colours.EDGE, line=1)
    drawing.text(62, y + 11, "this thread: reads and results", fill=colours.QUIET)
    drawing.text(366, y + 11, "other threads of its warp", fill=colours.QUIET)


# ---- what the neighbours share -----------------------------------------------------------------------------


def _said_of_neighbours(lanes: Sequence[Work], mine: Work, p: int) -> list[str]:
    """Return a sentence for each tile on how many lanes of the warp read the same elements of it."""
    return [
        _shared_with(array, sum(lane.read_at(p, array) == mine.read_at(p, array) for lane in lanes), lanes)
        for array in ("As", "Bs")
    ]


def _shared_with(array: str, same: int, lanes: Sequence[Work]) -> str:
    if same == len(lanes) > 1:
        return f"{array}: all {same} lanes of the warp read the same elements, a broadcast."
    if same > 1:
        return f"{array}: {same} of the warp's {len(lanes)} lanes read the same elements."
    return f"{array}: no other lane of the warp reads the same elements."


# ---- reads and multiply-adds -------------------------------------------------------------------------------


def _strip(drawing: Drawing, a: int, b: int, results: int, y: float) -> None:
    """Draw the reads and multiply-adds of one step, and below them those of threads with one result each."""
    drawing.text(8, y + 14, "One step of this thread (tall: reads, short: multiply-adds):", bold=True)
    longest = 3 * results
    wide = min(16.0, _TOKENS / longest)
    own = [*("a" * a), *("b" * b), *("+" * results)]
    _tokens(drawing, own, y + 24, wide, f"{a + b} reads, {results} multiply-adds")
    drawing.text(8, y + 66, "The same results, one per thread:", bold=True)
    _tokens(drawing, list("ab+" * results), y + 76, wide, f"{2 * results} reads, {results} multiply-adds")


def _tokens(drawing: Drawing, tokens: Sequence[str], y: float, wide: float, words: str) -> None:
    """Draw reads as tall boxes and multiply-adds as short ones, so that they differ without their colours."""
    hues = {"a": colours.A, "b": colours.B, "+": colours.C}
    gap = 1.0 if wide > 3 else 0.0
    for place, token in enumerate(tokens):
        low = token == "+"
        x, top, high = 8 + place * wide, y + (8 if low else 0), 10 if low else 18
        drawing.rect(x, top, wide - gap, high, hues[token])
        if wide >= 12 and not low:
            drawing.text(
                x + (wide - gap) / 2, y + 14, token, size=12, anchor="middle", fill=colours.PAPER, bold=True
            )
    drawing.text(8 + _TOKENS + 8, y + 14, words.split(",")[0] + ",", fill=colours.INK)
    drawing.text(8 + _TOKENS + 8, y + 31, words.split(", ")[1], fill=colours.INK)
