"""Draws the floats that a warp asks L1 for, each falling into its place of a line, where it waits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import SMALL, Drawing, wrap

PLACES = 32
_LEFT, _PITCH = 84.0, 13.0
# A line of memory, and a float in a queue, are this high.
_LINE, _FLOAT = 4.0, 4.6
_GAP, _NOTES = 34.0, 4


def queue(asked: Mapping[int, Sequence[int]], of: str, code: str, length: int) -> Picture:
    """Draw floats of an array falling into the queues of their places.

    ``asked`` maps the number of each float in memory to the lanes that want it. ``of`` is the array, ``code``
    says what is read, and ``length`` is the number of floats in a row. All pictures are equally high.
    """
    queues = _queues(asked)
    longest = max(map(len, queues.values()))
    drawing = Drawing(f"{code}, rows of {length:,} floats: {_wavefronts(longest)}", title_lines=2)
    hue, lines = colours.of_array(of), sorted({word // PLACES for word in asked})
    top = drawing.top + 22
    drawing.text(_LEFT, top - 8, "the lines of memory that are touched, 32 places each", fill=colours.QUIET)
    _lines(drawing, asked, lines, hue, top)
    floor = top + PLACES * _LINE + _GAP + PLACES * _FLOAT
    _drops(drawing, queues, lines, top, floor)
    _bins(drawing, queues, hue, floor)
    notes = _notes(asked)
    for place, line in enumerate(wrap(" ".join(notes), SMALL, drawing.width - 16)):
        drawing.text(8, floor + 40 + 18 * place, line, fill=colours.QUIET)
    drawing.rect(0, floor + 28 + 18 * _NOTES, 1, 1, colours.PAPER)
    return drawing.picture(" ".join([_in_words(asked, queues), *notes]))


def _queues(asked: Mapping[int, Sequence[int]]) -> dict[int, list[int]]:
    """Return the floats that wait at each place, in order."""
    found = defaultdict(list)
    for word in sorted(asked):
        found[word % PLACES].append(word)
    return found


def _wavefronts(count: int) -> str:
    return "1 wavefront" if count == 1 else f"{count} wavefronts"


# ---- memory ------------------------------------------------------------------------------------------------


def _x(place: int) -> float:
    return _LEFT + place * _PITCH


def _lines(
    drawing: Drawing, asked: Mapping[int, Sequence[int]], lines: Sequence[int], hue: str, top: float
) -> None:
    """Draw each line of memory that is touched, with the floats that are wanted."""
    for row, line in enumerate(lines):
        y = top + row * _LINE
        drawing.rect(_LEFT, y, PLACES * _PITCH, _LINE - 1, colours.STRIPE)
        for word in asked:
            if word // PLACES == line:
                drawing.rect(_x(word % PLACES), y, _PITCH - 1, _LINE - 1, hue)
    for row in {0, len(lines) - 1}:
        y = top + row * _LINE + (10 if row == 0 else 4)
        drawing.text(_LEFT - 8, y, f"line {lines[row]}", size=12, anchor="end", fill=colours.QUIET)


def _drops(drawing: Drawing, queues: Mapping, lines: Sequence[int], top: float, floor: float) -> None:
    """Draw how the floats of each place fall to its queue."""
    last = {line: row for row, line in enumerate(lines)}
    for place, words in queues.items():
        x = _x(place) + _PITCH / 2
        begin = top + (max(last[word // PLACES] for word in words) + 1) * _LINE
        end = floor - len(words) * _FLOAT - 2
        drawing.line(x, begin, x, end, stroke=colours.QUIET, width=0.8, arrow=end - begin > 8)


# ---- queues ------------------------------------------------------------------------------------------------


def _bins(drawing: Drawing, queues: Mapping[int, Sequence[int]], hue: str, floor: float) -> None:
    """Draw the places with their queues, and the length of the longest."""
    longest = max(map(len, queues.values()))
    drawing.text(_LEFT - 8, floor + 16, "place", size=12, anchor="end")
    for place in range(PLACES):
        drawing.rect(_x(place), floor, _PITCH - 1, 3, colours.QUIET)
        if place % 8 == 0 or place == PLACES - 1:
            drawing.text(_x(place) + _PITCH / 2, floor + 16, place, size=12, anchor="middle")
        for number in range(len(queues.get(place, ()))):
            drawing.rect(_x(place), floor - (number + 1) * _FLOAT, _PITCH - 1, _FLOAT - 1, hue)
    for place, words in queues.items():
        if len(words) == longest > 1:
            high = longest * _FLOAT
            drawing.rect(
                _x(place) - 1, floor - high - 1, _PITCH + 1, high + 1, "none", stroke=colours.WARN, line=1.6
            )
    right, high = _x(PLACES) + 6, longest * _FLOAT
    drawing.line(right, floor, right, floor - high, width=1.6)
    for y in (floor, floor - high):
        drawing.line(right - 3, y, right + 3, y, width=1.6)
    drawing.text(right + 6, min(floor - high / 2 + 5, floor), longest, bold=True)


# ---- in words ----------------------------------------------------------------------------------------------


def _in_words(asked: Mapping[int, Sequence[int]], queues: Mapping[int, Sequence[int]]) -> str:
    places = ", ".join(f"{len(words)} at place {place}" for place, words in sorted(queues.items()))
    every = len(queues) == PLACES and len(asked) == PLACES
    lanes = sum(map(len, asked.values()))
    told = "one at each of the 32 places" if every else places
    floats = "1 different float" if len(asked) == 1 else f"{len(asked)} different floats"
    return f"{lanes} lanes want {floats}: {told}."


def _notes(asked: Mapping[int, Sequence[int]]) -> list[str]:
    """Return sentences on the queue, and on floats that lanes share."""
    shared = max(map(len, asked.values()))
    notes = []
    if shared > 1:
        notes.append(f"{shared} lanes want the same float, and get it together.")
    notes.append("In each clock a place gives one float: the longest queue is the number of wavefronts.")
    return notes
