"""Draws a multiprocessor as four tanks that blocks fill: registers, shared memory, warp and block slots."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import SMALL, Drawing, wrap
from gemm_course.figures.tank_words import Contents, amount, bounded, in_words, label, nth, sentence, title
from gemm_course.model import Tank

# A tank is _HEIGHT units high and _WIDE units wide, and has _HEADROOM units of room above it.
_HEADROOM, _HEIGHT, _WIDE = 34.0, 150.0, 66.0
# The names of the table's rows take this width.
_NAMES = 96.0
_LINE, _ROW = 19.0, 21.0
# These numbers of lines are reserved, so that all pictures are equally high.
_ABOUT, _ROWS, _SENTENCES, _NOTES = 3, 5, 3, 10
# A block that is lower than this gets no outline.
_FAINT = 3.0


def tanks(contents: Contents) -> Picture:
    """Draw the four tanks with their blocks, what is left, and what the next block would need."""
    drawing = Drawing(title(contents), title_lines=2)
    floor = _floor(drawing)
    _write(drawing, [contents.about], drawing.top)
    for place, tank in enumerate(contents.ordered):
        _tank(drawing, contents, tank, _middle(drawing, place), floor)
    _table(drawing, contents, floor + 10)
    below = floor + 10 + _ROWS * _ROW + 8
    _write(drawing, [sentence(contents)], below, bold=True)
    _write(drawing, contents.notes, below + _SENTENCES * _LINE + 4)
    _reserve(drawing)
    return drawing.picture(in_words(contents))


def refused(heading: str, about: str, reasons: Sequence[str]) -> Picture:
    """Draw a page of the usual height that says why no block can fill the tanks."""
    drawing = Drawing(heading, title_lines=2)
    _write(drawing, [about], drawing.top)
    _write(drawing, reasons, drawing.top + (_ABOUT + 1) * _LINE, bold=True)
    _reserve(drawing)
    return drawing.picture(f"{about} {' '.join(reasons)}")


def _floor(drawing: Drawing) -> float:
    """Return the height on the page at which the tanks stand."""
    return drawing.top + _ABOUT * _LINE + 26 + _HEADROOM + _HEIGHT


def _reserve(drawing: Drawing) -> None:
    """Make the page as high as the one with the most lines."""
    bottom = _floor(drawing) + 10 + _ROWS * _ROW + 8 + (_SENTENCES + _NOTES) * _LINE + 4
    drawing.rect(0, bottom - 1, 1, 1, colours.PAPER)


def _write(drawing: Drawing, paragraphs: Sequence[str], top: float, *, bold: bool = False) -> None:
    lines = (line for words in paragraphs for line in wrap(words, SMALL, drawing.width - 16, bold=bold))
    for place, line in enumerate(lines):
        fill = colours.INK if bold else colours.QUIET
        drawing.text(8, top + 14 + place * _LINE, line, fill=fill, bold=bold)


def _middle(drawing: Drawing, place: int) -> float:
    """Return the middle of a tank's column."""
    return 8 + _NAMES + (place + 0.5) * (drawing.width - 16 - _NAMES) / 4


# ---- a tank ------------------------------------------------------------------------------------------------


def _tank(drawing: Drawing, contents: Contents, tank: Tank, middle: float, floor: float) -> None:
    """Draw a tank with its blocks, the next block dashed above them, and its walls."""
    left, block = middle - _WIDE / 2, tank.per_block / tank.size * _HEIGHT
    drawing.text(middle, floor - _HEIGHT - _HEADROOM - 8, label(tank), anchor="middle", bold=True)
    drawing.rect(left, floor - _HEIGHT, _WIDE, _HEIGHT, colours.IDLE)
    for number in range(1, contents.blocks + 1):
        newest = number == contents.blocks
        _block(drawing, left, floor - number * block, block, colours.NOW if newest else colours.EDGE, number)
    if block:
        top = floor - contents.blocks * block
        _next(drawing, left, top, block, floor - _HEIGHT, tank in contents.short, contents.blocks + 1)
    walls = [(left, -_HEIGHT, left, 0), (left, 0, left + _WIDE, 0), (left + _WIDE, -_HEIGHT, left + _WIDE, 0)]
    for x1, y1, x2, y2 in walls:
        drawing.line(x1, floor + y1, x2, floor + y2, width=2)


def _block(drawing: Drawing, x: float, y: float, height: float, fill: str, number: int) -> None:
    edge = {"stroke": colours.INK, "line": 0.8} if height >= _FAINT else {}
    drawing.rect(x, y, _WIDE, height, fill, **edge)
    if height >= SMALL + 2:
        drawing.text(x + _WIDE / 2, y + height / 2 + 5, number, anchor="middle")


def _next(drawing: Drawing, x: float, y: float, height: float, rim: float, short: bool, number: int) -> None:
    """Draw the next block dashed, and hatched where there is no room. Cut it off if it is too high."""
    top = max(y - height, rim - _HEADROOM)
    colour = colours.WARN if short else colours.QUIET
    if short:
        drawing.hatch(x, top, _WIDE, min(y, max(rim, top)) - top if top < rim else y - top, colours.WARN)
    if height >= _FAINT or short:
        drawing.rect(x, top, _WIDE, max(y - top, _FAINT), "none", stroke=colour, line=1.6, dash="4 3")
    if y - top >= SMALL + 4:
        if short:
            drawing.rect(x + _WIDE / 2 - 13, (y + top) / 2 - 8, 26, 16, colours.PAPER)
        drawing.text(x + _WIDE / 2, (y + top) / 2 + 5, number, anchor="middle", fill=colour)


# ---- the table ---------------------------------------------------------------------------------------------


def _table(drawing: Drawing, contents: Contents, top: float) -> None:
    for row, (name, words) in enumerate(_rows(contents)):
        y = top + (row + 1) * _ROW - 6
        drawing.text(8, y, name, fill=colours.QUIET)
        for place, (tank, said) in enumerate(zip(contents.ordered, words, strict=True)):
            warned = row == _ROWS - 1 and tank in contents.short
            fill = colours.WARN if warned else colours.INK
            drawing.text(_middle(drawing, place), y, said, anchor="middle", fill=fill, bold=warned)
    drawing.line(8, top + 3 * _ROW, drawing.width - 8, top + 3 * _ROW, stroke=colours.EDGE)


def _rows(contents: Contents) -> Iterator[tuple[str, list[str]]]:
    known, blocks = contents.ordered, contents.blocks
    held = f"{blocks} block{'' if blocks == 1 else 's'}"
    yield "an SM has", [amount(tank, tank.size) for tank in known]
    yield "one block", [bounded(contents, tank, tank.per_block, "up to") for tank in known]
    yield held, [bounded(contents, tank, blocks * tank.per_block, "up to") for tank in known]
    yield "left", [bounded(contents, tank, tank.left(blocks), "at least") for tank in known]
    yield f"{nth(blocks + 1).split()[1]} block", [_room(contents, tank) for tank in known]


def _room(contents: Contents, tank: Tank) -> str:
    if tank not in contents.short:
        return "fits"
    return "not known" if contents.at_most and tank.name == "registers" else "no room"
