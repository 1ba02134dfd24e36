"""Draws a warp that goes through an ``if``: which lanes take part in each line, and which are masked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import SMALL, Drawing, wrap

WARP = 32
_CODE, _LANES, _CELL, _ROW = 8.0, 236.0, 9.8, 30.0
_NOTES = 2


@dataclass(frozen=True)
class Walk:
    """A warp's way through a kernel.

    ``lines`` maps the numbers of lines to their text, in order. ``steps`` are the lines that the warp issues,
    each with the lanes that take part. ``signs`` has a letter for each lane, which says how the lane decides.
    """

    lines: Mapping[int, str]
    steps: Sequence[tuple[int, frozenset[int]]]
    signs: Sequence[str]


def branch(walk: Walk, now: int) -> Picture:
    """Draw step ``now`` (from 0) of a warp, and the steps before it. All pictures are equally high."""
    line, _ = walk.steps[now]
    drawing = Drawing(_title(walk, now))
    top = drawing.top + 34
    _lane_numbers(drawing, walk.signs, top)
    issued = dict(walk.steps[: now + 1])
    for row, (number, text) in enumerate(walk.lines.items()):
        y = top + row * _ROW
        _code(drawing, text, y, number == line)
        if _can_be_issued(text):
            _mark_lanes(drawing, issued.get(number), number == line, y)
    bottom = top + len(walk.lines) * _ROW
    _legend(drawing, bottom + 10)
    notes = _notes(walk, now)
    for place, words in enumerate(wrap(" ".join(notes), SMALL, drawing.width - 16)):
        drawing.text(_CODE, bottom + 54 + 18 * place, words, fill=colours.QUIET)
    drawing.rect(0, bottom + 40 + 18 * _NOTES, 1, 1, colours.PAPER)
    return drawing.picture(" ".join([_in_words(walk, now), *notes]))


def _title(walk: Walk, now: int) -> str:
    _, lanes = walk.steps[now]
    masked = WARP - len(lanes)
    if not masked:
        return f"Step {now + 1}: all 32 lanes take part"
    taking = "1 lane takes part" if len(lanes) == 1 else f"{len(lanes)} lanes take part"
    return f"Step {now + 1}: {taking}, {masked} {'is' if masked == 1 else 'are'} masked"


def _can_be_issued(text: str) -> bool:
    """Tell whether a line does anything: an ``else`` alone does not."""
    return text.strip() != "else:"


def _x(lane: int) -> float:
    return _LANES + lane * _CELL


def _lane_numbers(drawing: Drawing, signs: Sequence[str], top: float) -> None:
    """Write some lanes' numbers, and below them the letter of each lane."""
    for lane in (0, 8, 16, 24, 31):
        drawing.text(_x(lane) + _CELL / 2, top - 20, lane, size=12, anchor="middle", fill=colours.QUIET)
    drawing.text(_LANES - 10, top - 20, "lane", size=12, anchor="end", fill=colours.QUIET)
    drawing.text(_LANES - 10, top - 5, "x is even or odd", size=12, anchor="end", fill=colours.QUIET)
    for lane, sign in enumerate(signs):
        drawing.text(_x(lane) + _CELL / 2, top - 5, sign, size=12, anchor="middle")


def _code(drawing: Drawing, text: str, y: float, now: bool) -> None:
    if now:
        wide = _LANES - 6 - _CODE
        drawing.rect(_CODE, y + 2, wide, _ROW - 4, colours.NOW_PALE, stroke=colours.INK, line=1.2)
    drawing.text(_CODE + 6, y + 20, text, size=13, mono=True, bold=now)


def _mark_lanes(drawing: Drawing, lanes: frozenset[int] | None, now: bool, y: float) -> None:
    """Draw a box for each lane: filled if it takes part, hatched if it is masked, empty before its turn."""
    for lane in range(WARP):
        box = _x(lane), y + 5, _CELL - 1.6, _ROW - 10
        if lanes is None:
            drawing.rect(*box, colours.PAPER, stroke=colours.EDGE, line=0.8)
        elif lane in lanes:
            drawing.rect(*box, colours.NOW, stroke=colours.INK, line=1.4 if now else 0.8)
        else:
            drawing.rect(*box, colours.STRIPE)
            drawing.hatch(*box)


def _legend(drawing: Drawing, y: float) -> None:
    x = _CODE
    for kind, words in enumerate(("takes part", "masked: waits", "not issued")):
        box = x, y, 12, 14
        if kind == 0:
            drawing.rect(*box, colours.NOW, stroke=colours.INK)
        elif kind == 1:
            drawing.rect(*box, colours.STRIPE)
            drawing.hatch(*box)
        else:
            drawing.rect(*box, colours.PAPER, stroke=colours.EDGE)
        drawing.text(x + 18, y + 12, words, fill=colours.QUIET)
        x += (130, 150, 0)[kind]


# ---- in words ----------------------------------------------------------------------------------------------


def _in_words(walk: Walk, now: int) -> str:
    line, lanes = walk.steps[now]
    return f"{walk.lines[line].strip()} is issued for {_named(lanes)}."


def _named(lanes: frozenset[int]) -> str:
    """Name lanes: "all lanes", "lanes 0 to 15", "lane 31" or "lanes 0, 2, …, 30"."""
    own = sorted(lanes)
    if len(own) == WARP:
        return "all lanes"
    if len(own) == 1:
        return f"lane {own[0]}"
    if own[-1] - own[0] == len(own) - 1:
        return f"lanes {own[0]} to {own[-1]}"
    return f"lanes {own[0]}, {own[1]}, …, {own[-1]}"


def _notes(walk: Walk, now: int) -> list[str]:
    """Return sentences: that masked lanes wait, and at the end what the ``if`` cost and what was left out."""
    _, lanes = walk.steps[now]
    notes = []
    if len(lanes) < WARP:
        notes.append("The warp issues this line once, whether one lane takes part or 32.")
    if now + 1 < len(walk.steps):
        return notes
    each = sum(len(taking) for _, taking in walk.steps) / WARP
    notes.append(f"The warp issued {len(walk.steps)} lines, and each lane took part in {each:g}.")
    issued = dict(walk.steps)
    for number, text in walk.lines.items():
        if number not in issued and _can_be_issued(text):
            notes.append(f"No lane needs {text.strip()}, so the warp need not issue it.")
    return notes
