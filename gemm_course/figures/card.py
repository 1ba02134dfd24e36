"""Draws a kernel's card, with its speed among the ladder's and its facts beside those of another kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.rows import paragraph
from gemm_course.figures.svg import Drawing, wrap

_NAMES, _BARS, _BARS_END = 168.0, 176.0, 480.0
_FACT, _OWN, _OTHER = 8.0, 262.0, 414.0
_ROW, _LINE = 20.0, 17.0


@dataclass(frozen=True)
class Speed:
    """A kernel's bar. ``tflops`` is None if it was not measured, and ``own`` marks the card's kernel."""

    label: str
    tflops: float | None
    own: bool = False


@dataclass(frozen=True)
class Fact:
    """A fact about the card's kernel and about the other kernel. ``how`` says where the fact comes from."""

    what: str
    own: str
    other: str
    how: str


@dataclass(frozen=True)
class Roof:
    """The TFLOPS that the card's kernel cannot exceed on a GPU, and the part of it that they belong to."""

    tflops: float
    part: str
    gpu: str


def card(
    title: str,
    speeds: Sequence[Speed],
    roof: Roof,
    facts: Sequence[Fact],
    names: tuple[str, str],
    notes: Sequence[str],
) -> Picture:
    """Draw speeds as bars from zero, a roof as a mark, then facts in two columns.

    ``names`` names the two kernels.
    """
    drawing = Drawing(title, title_lines=2)
    y = drawing.top + 4
    fastest = max([speed.tflops or 0 for speed in speeds] + [1e-9])
    # A roof far above all speeds would make stumps of them: its mark then stands at the edge.
    highest = max(fastest, min(roof.tflops, 1.25 * fastest))
    for speed in speeds:
        y = _bar(drawing, speed, highest, y)
    y = _mark(drawing, roof, highest, y) + 14
    for x, words in ((_OWN, names[0]), (_OTHER, names[1])):
        drawing.text(x, y + 14, words, bold=True)
    y += 22
    for fact in facts:
        y = _fact(drawing, fact, y)
    for note in notes:
        y = paragraph(drawing, note, y + 6)
    bars = "; ".join(f"{speed.label} {_value(speed)}" for speed in speeds)
    told = "; ".join(f"{fact.what}: {fact.own}, and {fact.other} ({fact.how})" for fact in facts)
    limit = f"The lowest roof of {names[0]}: {roof.tflops:.3g} on an {roof.gpu}, by its {roof.part}."
    return drawing.picture(
        f"TFLOPS: {bars}. {limit} Of {names[0]}, and of {names[1]} beside it: {told}. {' '.join(notes)}"
    )


def _value(speed: Speed) -> str:
    if speed.tflops is None:
        return "not measured"
    return f"{speed.tflops:.3g}"


def _bar(drawing: Drawing, speed: Speed, highest: float, y: float) -> float:
    wide = (speed.tflops or 0) / highest * (_BARS_END - _BARS)
    drawing.text(_NAMES, y + 14, speed.label, anchor="end", bold=speed.own)
    if speed.tflops is not None:
        fill, line = (colours.NOW, 2) if speed.own else (colours.OTHER, 0.8)
        drawing.rect(_BARS, y + 2, max(wide, 1), _ROW - 6, fill, stroke=colours.INK, line=line)
    drawing.text(_BARS + wide + 6, y + 14, _value(speed), bold=speed.own)
    return y + _ROW


def _mark(drawing: Drawing, roof: Roof, highest: float, y: float) -> float:
    """Mark a roof in a row of its own. It is no speed, so it gets no bar."""
    x = _BARS + min(1.0, roof.tflops / highest) * (_BARS_END - _BARS)
    drawing.text(_NAMES, y + 14, f"its roof, {roof.gpu}", anchor="end", fill=colours.QUIET)
    drawing.line(_BARS, y + _ROW / 2, x, y + _ROW / 2, stroke=colours.QUIET, width=1, dash="2 4")
    drawing.line(x, y + 2, x, y + _ROW - 4, stroke=colours.INK, width=3)
    beyond = " →" if roof.tflops > highest else ""
    drawing.text(x + 6, y + 14, f"{roof.tflops:.3g}{beyond}", bold=True)
    return y + _ROW


def _fact(drawing: Drawing, fact: Fact, y: float) -> float:
    columns = (
        (_FACT, wrap(fact.what, 14, _OWN - _FACT - 12), colours.QUIET, False),
        (_OWN, wrap(fact.own, 14, _OTHER - _OWN - 12, bold=True), colours.INK, True),
        (_OTHER, wrap(fact.other, 14, 552 - _OTHER), colours.INK, False),
    )
    for x, lines, fill, bold in columns:
        for place, line in enumerate(lines):
            drawing.text(x, y + 14 + place * _LINE, line, fill=fill, bold=bold)
    high = max(len(lines) for _, lines, _, _ in columns) * _LINE
    drawing.line(_FACT, y + high + 3, 552, y + high + 3, stroke=colours.EDGE)
    return y + high + 6
