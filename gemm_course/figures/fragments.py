"""Draws which lane of a warp holds which element of a 16 by 16 matrix, and the banks of its rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gemm_course.figures import colours
from gemm_course.figures.banks import BANKS, WORD
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import Drawing
from gemm_course.model.requests import Request

SIDE, LANES = 16, 32
Element = tuple[int, int]
_CELL = 20.0


@dataclass(frozen=True)
class Fragment:
    """The elements of one matrix that each lane of a warp holds.

    ``name`` is "A", "B" or "C". ``held`` lists, for every lane, the elements (row, column) of its fragment in
    order. The second half of the list may repeat the first. ``per_register`` is how many elements share a
    32-bit register.
    """

    name: str
    held: Mapping[int, Sequence[Element]]
    per_register: int

    def distinct(self, lane: int) -> list[Element]:
        """Return a lane's elements, each of them once."""
        return list(dict.fromkeys(self.held[lane]))

    def holder(self, element: Element) -> int:
        """Return the lane that holds an element. Raise KeyError if no lane does."""
        for lane in self.held:
            if element in self.held[lane]:
                return lane
        raise KeyError(f"no lane holds {element}")


def one_element(fragment: Fragment, element: Element) -> Picture:
    """Draw a matrix with the lane of every element. Mark ``element`` and the others that its lane holds."""
    lane = fragment.holder(element)
    held = fragment.distinct(lane)
    place = held.index(element)
    row, column = element
    register = place // fragment.per_register
    drawing = Drawing(
        f"{fragment.name}[{row}, {column}] is in lane {lane}, register {register} of its "
        f"{-(-len(held) // fragment.per_register)}"
    )
    _matrix(drawing, fragment, lane, element)
    _registers(drawing, fragment, lane, element)
    twice = len(fragment.held[lane]) > len(held)
    words = ", ".join(f"[{r}, {c}]" for r, c in held)
    return drawing.picture(
        f"The number in each cell is the lane that holds it. Lane {lane} holds the {len(held)} elements "
        f"{words}{', each of them twice' if twice else ''}; element {place} of its fragment is "
        f"[{row}, {column}]."
    )


def _matrix(drawing: Drawing, fragment: Fragment, mine: int, chosen: Element) -> None:
    left, top, hue = 26.0, drawing.top + 18, colours.of_array(fragment.name)
    columns = 1 + max(column for held in fragment.held.values() for _, column in held)
    for at in range(0, SIDE, 5):
        if at < columns:
            drawing.text(left + (at + 0.5) * _CELL, top - 5, at, size=12, anchor="middle", fill=colours.QUIET)
        drawing.text(left - 5, top + (at + 0.5) * _CELL + 4, at, size=12, anchor="end", fill=colours.QUIET)
    for lane in sorted(fragment.held):
        for row, column in fragment.distinct(lane):
            x, y = left + column * _CELL, top + row * _CELL
            fill = hue if lane == mine else colours.IDLE
            drawing.rect(x, y, _CELL - 1, _CELL - 1, fill)
            ink = colours.text_on(fill) if lane == mine else colours.QUIET
            drawing.text(x + _CELL / 2 - 0.5, y + 14, lane, size=12, anchor="middle", fill=ink)
    row, column = chosen
    x, y = left + column * _CELL, top + row * _CELL
    drawing.rect(x - 1.5, y - 1.5, _CELL + 2, _CELL + 2, "none", stroke=colours.INK, line=3)


def _registers(drawing: Drawing, fragment: Fragment, lane: int, chosen: Element) -> None:
    left, top, hue = 366.0, drawing.top + 8, colours.of_array(fragment.name)
    drawing.text(left, top + 14, f"Lane {lane}'s registers", bold=True)
    held, each = fragment.distinct(lane), fragment.per_register
    wide = 88.0
    for place, (row, column) in enumerate(held):
        x, y = left + place % each * (wide + 2), top + 26 + place // each * 28
        mine = (row, column) == chosen
        drawing.rect(x, y, wide, 24, hue if mine else colours.PALE[hue], stroke=hue, line=1)
        ink = colours.text_on(hue) if mine else colours.INK
        words = f"{fragment.name}[{row}, {column}]"
        drawing.text(x + wide / 2, y + 17, words, anchor="middle", fill=ink, bold=mine)
    y = top + 26 + -(-len(held) // each) * 28 + 14
    notes = ["A register has 32 bits:", "two FP16 values" if each == 2 else "one FP32 value"]
    if len(fragment.held[lane]) > len(held):
        notes += ["", "This lane holds each", "element twice: places", "8 to 15 repeat 0 to 7."]
    for line, words in enumerate(notes):
        drawing.text(left, y + 18 * line, words, fill=colours.QUIET)


def eight_rows(request: Request, wavefronts: int, row_bytes: int) -> Picture:
    """Draw the banks of the first 8 rows of 16 bytes that a load of a fragment reads.

    ``request`` has one lane per row of 8 FP16 values. ``wavefronts`` is the emulator's count for these 8
    rows. ``row_bytes`` is the distance from the start of one row to the next in shared memory.
    """
    rows = request.lanes[:8]
    asked = defaultdict(list)
    for row, (_, _, address) in enumerate(rows):
        for word in range(address // WORD, address // WORD + 4):
            asked[word % BANKS].append(row)
    most = max(len(who) for who in asked.values())
    plural = "wavefront" if wavefronts == 1 else "wavefronts"
    drawing = Drawing(f"Rows {row_bytes} bytes apart: eight take {wavefronts} {plural}")
    left, top, cell, high = 62.0, drawing.top + 22, 15.25, 22.0
    for bank in (0, 8, 16, 24, 31):
        drawing.text(left + (bank + 0.5) * cell, top - 6, bank, size=12, anchor="middle", fill=colours.QUIET)
    drawing.text(8, top - 6, "bank", fill=colours.QUIET)
    hue = colours.of_array(request.array)
    for row, (_, _, address) in enumerate(rows):
        y, first = top + row * high, address // WORD % BANKS
        drawing.text(8, y + 15, f"row {row}")
        drawing.rect(left, y, BANKS * cell, high - 3, colours.IDLE)
        drawing.rect(left + first * cell, y, 4 * cell - 1, high - 3, hue)
    for first in sorted({b // 4 * 4 for b, who in asked.items() if len(who) == most > 1}):
        x = left + first * cell
        drawing.rect(x - 1, top - 2, 4 * cell + 1, 8 * high + 1, "none", stroke=colours.WARN, line=2)
    words = _said(most)
    drawing.text(8, top + 8 * high + 18, words, fill=colours.QUIET)
    starts = ", ".join(str(address // WORD % BANKS) for _, _, address in rows)
    return drawing.picture(f"The rows start in banks {starts}. {words}")


def _said(most: int) -> str:
    if most == 1:
        return "The eight rows fill all 32 banks once: one wavefront."
    return f"{most} rows share the same banks (outlined), so it takes {most} wavefronts."
