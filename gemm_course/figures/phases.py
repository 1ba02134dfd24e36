"""Draws a ring of slots with their mbarriers, and what each warp that uses it did in the last ticks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from gemm_course.figures import colours, phase_ring, phase_strips
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import PAGE, SMALL, Drawing, wrap
from gemm_course.model import phases as model
from gemm_course.model.phases import EMPTY, FULL, Moment

# The words that say what a warp does begin here.
DOES = 108.0
# The words about a warp are this many units high.
_WORDS = 18.0
_AGENT = _WORDS + phase_strips.HIGH + 3
# A line of the caption is _LINE units high, and _LINES lines are reserved for it.
_LINE, _LINES = 19.0, 3


class Said(NamedTuple):
    """The words of a picture.

    ``title`` is its answer and ``line`` the kernel's line. ``mistake`` tells whether something went wrong.
    ``warps`` pairs each warp with what it does. ``copies`` and ``caption`` are the words about the copies and
    below the picture.
    """

    title: str
    line: str
    mistake: bool
    warps: Sequence[tuple[str, str]]
    copies: str
    caption: str


def phases(moments: Sequence[Moment], said: Said) -> Picture:
    """Draw the last of the moments, and what happened in the moments before it."""
    now = moments[-1]
    drawing = Drawing(said.title, title_lines=2)
    top = _line(drawing, said, drawing.top - 4)
    top = phase_ring.draw(drawing, moments, top + 2)
    top = phase_strips.axis(drawing, now, top + 6)
    for name, does in said.warps:
        _agent(drawing, name, does, top)
        phase_strips.of_warp(drawing, name, moments, top + _WORDS)
        top += _AGENT
    _agent(drawing, "copies", said.copies, top)
    top = phase_strips.of_copies(drawing, moments, top + _WORDS) + 2
    for place, line in enumerate(wrap(said.caption, SMALL, PAGE - 16)):
        drawing.text(8, top + 14 + _LINE * place, line, fill=colours.WARN if now.broken else colours.INK)
    drawing.rect(0, top + _LINE * _LINES, 1, 1, colours.PAPER)
    return drawing.picture(_in_words(now, said))


def _agent(drawing: Drawing, name: str, does: str, top: float) -> None:
    drawing.text(8, top + 13, name, bold=True)
    drawing.text(DOES, top + 13, does)


def _line(drawing: Drawing, said: Said, top: float) -> float:
    ground = colours.WARN_PALE if said.mistake else colours.BAND
    drawing.rect(8, top, PAGE - 16, 22, ground)
    drawing.text(14, top + 16, said.line, mono=said.mistake)
    return top + 22


# ---- the same in words -------------------------------------------------------------------------------------


def _in_words(now: Moment, said: Said) -> str:
    told = [f"The line: {said.line}." if said.mistake else said.line]
    for slot, parts in enumerate(now.slots):
        holds = ", ".join(f"{part} of {_tile(tile)}" for part, tile in parts.items())
        told.append(f"Slot {slot} holds {holds}.")
        for kind in (FULL, EMPTY):
            told.append(f"{kind}[{slot}]: {_of_barrier(now.barriers[kind, slot], kind)}.")
    told += [f"{name[0].upper()}{name[1:]} {does}." for name, does in said.warps]
    told.append(f"Copies: {said.copies}.")
    return " ".join([*told, said.caption]).strip()


def _tile(tile: int | None) -> str:
    return "no tile yet" if tile is None else f"tile {tile}"


def _of_barrier(barrier: model.Barrier, kind: str) -> str:
    words = f"in phase {barrier.phase}, parity {barrier.parity}, "
    words += f"{barrier.arrived} of {barrier.arrivals} arrived"
    if kind == FULL:
        words += f", {barrier.came:,} of {barrier.expected:,} expected bytes came"
    return words
