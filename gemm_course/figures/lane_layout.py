"""Draws how a warp's lanes lie on its tile of C, and what the warp's read of As or Bs costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from gemm_course.figures import colours, wavefronts
from gemm_course.figures.corner import Corner
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import Drawing
from gemm_course.model.requests import Request

# The results of this lane are marked.
_LANE = 5
# One step along k is drawn this many cells deep, because one cell would be hard to see.
_STRIP = 5
_SIDE, _BESIDE = 146.0, 200.0
# This height is reserved for the lines of wavefronts.
_LINES = 298.0


def draw(
    asked: Request, rows: Mapping[int, Sequence], columns: Mapping[int, Sequence], title: str
) -> Picture:
    """Draw the lanes above the wavefronts of a read.

    ``asked`` is a warp's read of As or Bs. ``rows`` and ``columns`` map each lane to the rows and columns of
    the warp's tile of C that it computes.
    """
    drawing = Drawing(title)
    top = drawing.top + 18
    high, wide = 1 + max(map(max, rows.values())), 1 + max(map(max, columns.values()))
    _plan(drawing, Corner(high, wide, _STRIP, 30, top, _SIDE), asked, rows, columns)
    said = _in_words(rows, columns)
    for place, line in enumerate(said):
        drawing.text(_BESIDE, top + 12 + 19 * place, line, bold=place == 0)
    _legend(drawing, asked, top + 68)
    y = top + _SIDE + 28
    wavefronts.lines(drawing, asked, y)
    # This point, which has the colour of the page, makes all pictures equally high.
    drawing.rect(0, y + _LINES, 1, 1, colours.PAPER)
    return drawing.picture(f"{' '.join(said)} {wavefronts.in_words(asked)}")


def _plan(drawing: Drawing, corner: Corner, asked: Request, rows, columns) -> None:
    """Draw the tile of C with one lane's results. As at its left and Bs above show one step along k."""
    name, width = asked.array[0], asked.bits // 32
    words = {word + i for _, (_, word), _ in asked.lanes for i in range(width)}
    at_p = range(_STRIP)
    read = {(word, p) if name == "A" else (p, word) for word in words for p in at_p}
    for array in "AB":
        drawing.rect(*corner.box(array), colours.PALE[colours.of_array(array)])
    corner.light(drawing, name, read, colours.of_array(name))
    drawing.rect(*corner.box("C"), colours.PALE[colours.C])
    pieces = [(r, c) for r in _runs(rows[_LANE]) for c in _runs(columns[_LANE])]
    corner.light(drawing, "C", {(r, c) for r in rows[_LANE] for c in columns[_LANE]}, colours.NOW)
    corner.rule(drawing, "C", every=len(pieces[0][0]))
    for piece in pieces:
        corner.outline(drawing, "C", [(r, c) for r in piece[0] for c in piece[1]], line=1.5)
    for array, label in (("A", "As"), ("B", "Bs"), ("C", "C")):
        x, y, wide, high = corner.box(array)
        sides = {"A": (x - 13, y + high / 2), "B": (x + wide / 2, y - 5), "C": (x + wide + 12, y + high / 2)}
        drawing.text(*sides[array], label, bold=True, anchor="middle", fill=colours.of_array(array))


def _runs(numbers: Sequence[int]) -> list[range]:
    """Return runs of consecutive numbers as ranges."""
    cuts = np.flatnonzero(np.diff(sorted(numbers)) > 1) + 1
    return [range(part[0], part[-1] + 1) for part in np.split(np.array(sorted(numbers)), cuts)]


def _in_words(rows: Mapping[int, Sequence], columns: Mapping[int, Sequence]) -> list[str]:
    down, across = (len({tuple(each) for each in of.values()}) for of in (rows, columns))
    return [
        f"{down} × {across} lanes, {len(rows[_LANE])} × {len(columns[_LANE])} results each.",
        f"Lane {_LANE} has rows {_spoken(rows[_LANE])}",
        f"and columns {_spoken(columns[_LANE])}.",
    ]


def _spoken(numbers: Sequence[int]) -> str:
    return " and ".join(f"{run[0]}–{run[-1]}" for run in _runs(numbers))


def _legend(drawing: Drawing, asked: Request, y: float) -> None:
    hue = colours.of_array(asked.array)
    for fill, edge, words in (
        (colours.NOW, colours.INK, f"results of lane {_LANE}"),
        (colours.PALE[colours.C], colours.EDGE, "results of the other lanes"),
        (hue, colours.EDGE, f"words of {asked.array} in this read"),
        (colours.PALE[hue], colours.EDGE, "words of other reads"),
    ):
        drawing.rect(_BESIDE, y, 12, 12, fill, stroke=edge)
        drawing.text(_BESIDE + 18, y + 11, words, fill=colours.QUIET)
        y += 20
