"""Draws TFLOPS over two tile sizes. Each cell shows its number, or why there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import Drawing, wrap

# The cells begin at _LEFT, and end at _PAGE at the latest.
_LEFT, _PAGE = 76.0, 552.0
# A cell is at most this wide.
_MOST = 86.0
# Each shade begins at a share of the map's best speed. The steps are small near the top, where tiles are
# chosen.
_SHADES = tuple(zip((0.95, 0.9, 0.8, 0.7, 0.5, 0.25, 0.0), reversed(colours.SCALE), strict=True))


@dataclass(frozen=True)
class Cell:
    """A choice of tiles.

    ``tflops`` is None if the speed was not measured, and ``legal`` is False if the choice cannot run.
    """

    tflops: float | None = None
    legal: bool = True


@dataclass(frozen=True)
class Axis:
    """A tile size, and the values that it takes along one side of the map."""

    name: str
    values: Sequence[int]


def heatmap(
    down: Axis,
    across: Axis,
    cell: Callable[[int, int], Cell],
    title: str,
    *,
    chosen: tuple[int, int] | None = None,
    notes: Sequence[str] = (),
) -> Picture:
    """Draw ``cell(down value, across value)`` for every pair. The best is starred, and ``chosen`` is framed.

    Only cells that were measured are shaded. The closer a cell is to the best of the map, the darker it is.
    """
    cells = {(d, a): cell(d, a) for d in down.values for a in across.values}
    known = {place: each.tflops for place, each in cells.items() if each.tflops is not None}
    best = max(known, key=known.get, default=None)
    drawing = Drawing(title, title_lines=2)
    wide = min((_PAGE - _LEFT) / len(across.values), _MOST)
    high, top = min(wide * 0.62, 46.0), drawing.top + 44
    _labels(drawing, down, across, wide, high, top)
    for row, d in enumerate(down.values):
        for column, a in enumerate(across.values):
            frame = _LEFT + column * wide, top + row * high, wide, high
            _cell(drawing, cells[d, a], frame, known.get(best), (d, a) == best)
    if chosen in cells:
        row, column = down.values.index(chosen[0]), across.values.index(chosen[1])
        _frame(drawing, _LEFT + column * wide, top + row * high, wide, high)
    y = _legend(drawing, cells, chosen in cells, top + high * len(down.values) + 12)
    for words in notes:
        for line in wrap(words, 14, 544):
            drawing.text(8, y + 14, line, fill=colours.QUIET)
            y += 18
        y += 4
    return drawing.picture(_in_words(down, across, cells, best, chosen, notes))


def _labels(drawing: Drawing, down: Axis, across: Axis, wide: float, high: float, top: float) -> None:
    middle = _LEFT + wide * len(across.values) / 2
    drawing.text(middle, top - 26, f"{across.name} →", anchor="middle", bold=True)
    drawing.text(8, top - 8, f"{down.name} ↓", bold=True)
    for column, value in enumerate(across.values):
        drawing.text(_LEFT + (column + 0.5) * wide, top - 8, value, anchor="middle")
    for row, value in enumerate(down.values):
        drawing.text(_LEFT - 10, top + (row + 0.5) * high + 5, value, anchor="end")


def _cell(drawing: Drawing, cell: Cell, frame: tuple, highest: float | None, best: bool) -> None:
    x, y, wide, high = frame
    if cell.tflops is not None:
        fill = _shade(cell.tflops, highest)
        drawing.rect(x, y, wide, high, fill, stroke=colours.PAPER, line=2)
        words = f"{cell.tflops:.3g}" + (" ★" if best else "")
        drawing.text(
            x + wide / 2, y + high / 2 + 5, words, anchor="middle", bold=best, fill=colours.text_on(fill)
        )
        return
    hue = colours.QUIET if cell.legal else colours.WARN
    drawing.rect(x + 1, y + 1, wide - 2, high - 2, colours.PAPER, stroke=colours.EDGE)
    drawing.hatch(x + 1, y + 1, wide - 2, high - 2, hue)
    drawing.rect(x + wide / 2 - 9, y + high / 2 - 10, 18, 20, colours.PAPER)
    drawing.text(x + wide / 2, y + high / 2 + 5, "?" if cell.legal else "✗", anchor="middle", fill=hue)


def _shade(tflops: float, highest: float) -> str:
    return next(shade for share, shade in _SHADES if tflops >= share * highest)


def _frame(drawing: Drawing, x: float, y: float, wide: float, high: float) -> None:
    """Frame the chosen cell with a blue line between dark ones, which is visible on any shade."""
    drawing.rect(x + 1, y + 1, wide - 2, high - 2, "none", stroke=colours.INK, line=6)
    drawing.rect(x + 1, y + 1, wide - 2, high - 2, "none", stroke=colours.NOW, line=3)


def _legend(drawing: Drawing, cells: dict, framed: bool, y: float) -> float:
    """Explain the marks that occur in this map, in one row. Return where the next line begins."""
    present = {_kind(each) for each in cells.values()}
    marks = [("★", "best here", colours.INK)] if "measured" in present else []
    marks += [("▢", "these tiles", colours.INK)] if framed else []
    marks += [("?", "not measured", colours.QUIET)] if "not measured" in present else []
    marks += [("✗", "cannot run", colours.WARN)] if "cannot run" in present else []
    for place, (mark, words, hue) in enumerate(marks):
        drawing.text(8 + 138 * place, y + 14, mark, fill=hue, bold=True)
        drawing.text(26 + 138 * place, y + 14, words, fill=colours.QUIET)
    return y + 26


def _kind(cell: Cell) -> str:
    return "cannot run" if not cell.legal else "not measured" if cell.tflops is None else "measured"


def _in_words(down: Axis, across: Axis, cells: dict, best, chosen, notes: Sequence[str]) -> str:
    rows = []
    for d in down.values:
        said = ", ".join(
            f"{a}: {_kind(cells[d, a]) if cells[d, a].tflops is None else f'{cells[d, a].tflops:.3g}'}"
            for a in across.values
        )
        rows.append(f"{down.name} {d}: {across.name} {said}.")
    marked = [f"The best here is {down.name} {best[0]}, {across.name} {best[1]}."] if best else []
    marked += [f"Chosen: {down.name} {chosen[0]}, {across.name} {chosen[1]}."] if chosen in cells else []
    return " ".join([f"TFLOPS over {down.name} (down) and {across.name} (across).", *rows, *marked, *notes])
