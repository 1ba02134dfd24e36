"""Draws a matrix as it lies in memory: its rows one after another, cut into sectors and lines."""

from __future__ import annotations

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import Drawing, text_width
from gemm_course.model.requests import LINE, SECTOR

# A float has this many bytes.
_FLOAT = 4
# The strip shows this many elements, which are three sectors.
_STRIP = 24


def row_major(shape: tuple[int, int], leading_dimension: int, element: tuple[int, int]) -> Picture:
    """Draw a float32 matrix with its padding, and the stretch of memory around ``element`` = (row, column).

    ``shape`` is (rows, columns). ``leading_dimension`` is the number of elements from the start of one row to
    the start of the next.
    """
    row, column = element
    index = row * leading_dimension + column
    address = index * _FLOAT
    drawing = Drawing(
        f"A[{row}, {column}] starts at byte {address}: sector {address // SECTOR}, line {address // LINE}"
    )
    bottom = _matrix(drawing, shape, leading_dimension, element)
    bottom = _memory(drawing, shape, leading_dimension, index, bottom + 44)
    steps = (
        f"element {row} * {leading_dimension} + {column} = {index}",
        f"byte    {index} * 4 = {address}",
        f"sector  {address} // 32 = {address // SECTOR}      line  {address} // 128 = {address // LINE}",
    )
    for place, words in enumerate(steps):
        drawing.text(8, bottom + 28 + 20 * place, words, mono=True)
    return drawing.picture(
        f"A matrix of {shape[0]} rows and {shape[1]} columns, leading dimension {leading_dimension},"
        f" float32. " + "; ".join(" ".join(words.split()) for words in steps)
    )


def _matrix(drawing: Drawing, shape, leading_dimension: int, element) -> float:
    cell = min(26.0, 460 / leading_dimension)
    left, top = 70.0, drawing.top + 20
    drawing.text(left, top - 6, f"{shape[1]} columns", fill=colours.A, bold=True)
    if leading_dimension > shape[1]:
        drawing.text(left + leading_dimension * cell, top - 6, "padding", fill=colours.QUIET, anchor="end")
    for row in range(shape[0]):
        y = top + row * 20
        drawing.text(left - 8, y + 14, f"row {row}", anchor="end", bold=row == element[0])
        for column in range(leading_dimension):
            x = left + column * cell
            inside = column < shape[1]
            fill = colours.PALE[colours.A] if inside else colours.PAPER
            drawing.rect(x, y, cell - 1, 18, colours.A if (row, column) == element else fill)
            if not inside:
                drawing.hatch(x, y, cell - 1, 18)
    _mark(drawing, left + element[1] * cell, top + element[0] * 20, cell - 1)
    return top + shape[0] * 20


def _mark(drawing: Drawing, x: float, y: float, width: float) -> None:
    drawing.rect(x - 1.5, y - 1.5, width + 3, 21, "none", stroke=colours.INK, line=2.5)


def _memory(drawing: Drawing, shape, leading_dimension: int, index: int, top: float) -> float:
    """Draw three sectors of memory in a row.

    The sector of ``index`` is the second of them, or the first if no sector precedes it in memory.
    Return the lower edge.
    """
    per_sector = SECTOR // _FLOAT
    first = max(0, index // per_sector - 1) * per_sector
    left, cell = 70.0, 460 / _STRIP
    drawing.text(8, top - 8, "memory, one byte address after another", fill=colours.QUIET)
    _lines(drawing, range(first, min(first + _STRIP, shape[0] * leading_dimension)), index, left, cell, top)
    top += 22
    for place in range(_STRIP):
        at = first + place
        row, column = divmod(at, leading_dimension)
        if row >= shape[0]:
            continue
        x = left + place * cell
        mine = at // per_sector == index // per_sector
        inside = column < shape[1]
        fill = colours.MOVED if mine else _STRIPE[row % 2]
        edge = {"stroke": colours.QUIET, "line": 0.8} if mine else {}
        drawing.rect(x, top + 14, cell - 1, 22, colours.A if at == index else fill, **edge)
        if not inside:
            drawing.hatch(x, top + 14, cell - 1, 22)
        if at % per_sector == 0:
            drawing.line(x - 0.5, top + 2, x - 0.5, top + 44, stroke=colours.INK, width=2)
            words = f"sector {at // per_sector} · byte {at * _FLOAT}"
            drawing.text(x + 4, top + 10, words, size=12, fill=colours.QUIET)
        if column == 0:
            _row_begins(drawing, row, x, top + 52)
    _mark(drawing, left + (index - first) * cell, top + 15.5, cell - 1)
    return top + 54


def _lines(drawing: Drawing, shown: range, index: int, left: float, cell: float, top: float) -> None:
    """Draw a bar for each line over its elements in ``shown``. The line of ``index`` is in bold."""
    per_line = LINE // _FLOAT
    for line in range(shown[0] // per_line, shown[-1] // per_line + 1):
        first = max(shown[0], line * per_line) - shown[0]
        end = min(shown[-1] + 1, (line + 1) * per_line) - shown[0]
        mine = line == index // per_line
        edge = {"stroke": colours.QUIET, "line": 0.8}
        drawing.rect(left + first * cell, top, (end - first) * cell - 1, 17, colours.PAPER, **edge)
        words = f"line {line}"
        begin = first if (end - first) * cell > text_width(words, 12, bold=mine) + 4 else end
        drawing.text(left + begin * cell + 4, top + 13, words, size=12, bold=mine)


def _row_begins(drawing: Drawing, row: int, x: float, y: float) -> None:
    """Name the row that begins at x. Near the right margin the words end at x instead."""
    words = f"row {row} →"
    if x + text_width(words, 12, bold=True) > drawing.width - 4:
        drawing.text(x - 1, y, f"row {row} ↗", size=12, fill=colours.A, bold=True, anchor="end")
    else:
        drawing.text(x + 1, y, words, size=12, fill=colours.A, bold=True)


# Even and odd rows of the matrix differ in colour.
_STRIPE = (colours.PALE[colours.A], colours.mixed(colours.PALE[colours.A], 0.5))
