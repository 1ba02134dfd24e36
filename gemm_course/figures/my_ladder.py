"""Draws a learner's own ladder: a place for each kernel, filled when the kernel has passed its check.

A speed is a mark on a scale of TFLOPS. A bound is a dashed line across that scale, and never a bar. The page
is narrower than other pictures' pages, so that it can be read on a phone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import SMALL, Drawing, text_width, wrap

_WIDE, _LEFT, _RIGHT = 440.0, 8.0, 432.0
# The scale begins at this speed, and ends at the first of these that lies above all speeds.
_LEAST, _ENDS = 0.25, (80.0, 1000.0)
_TICKS = {80.0: (0.5, 1, 2, 5, 10, 20, 50), 1000.0: (0.5, 1, 5, 10, 50, 100, 500)}
_LANE, _LINE, _EMPTY = 22.0, 18.0, 34.0
_BET, _MOST, _LADDER, _OWN = "bet", "at most", "ladder’s", "yours"


@dataclass(frozen=True)
class Place:
    """A place on the ladder; a figure is None if it is not known. Speeds and bounds are TFLOPS.

    ``stage`` names the ladder's kernel, and ``recorded`` is its speed. ``most`` bounds the learner's kernel
    as it is written. ``own`` is the learner's speed, on the GPU that ``gpu`` names. ``written`` and
    ``measured`` are wavefronts per multiply-add of a warp: of the learner's kernel, and of the ladder's.
    Without the first, ``why_not_counted`` says why. ``part_of`` says what the learner wrote a part of, where
    it is no whole kernel and has none of these figures.
    """

    name: str
    passed: bool = False
    stage: str = ""
    bet: float | None = None
    most: float | None = None
    recorded: float | None = None
    own: float | None = None
    gpu: str = ""
    written: float | None = None
    measured: float | None = None
    why_not_counted: str = ""
    part_of: str = ""


def my_ladder(places: Sequence[Place], gpu: str, notes: Sequence[str]) -> Picture:
    """Draw the places from the first notebook to the last. ``gpu`` is where the ladder's kernels ran."""
    passed = sum(place.passed for place in places)
    drawing = Drawing(f"My ladder: {passed or 'none'} of {len(places)} kernels passed", _WIDE)
    y, scale = drawing.top, _Scale(places)
    if any(place.passed and not place.part_of for place in places):
        y = scale.head(drawing, _legend(drawing, places, gpu, y))
    for place in places:
        draw = _empty if not place.passed else _part if place.part_of else partial(_filled, scale=scale)
        y = draw(drawing, place, y=y)
    for note in notes:
        y += 4
        for line in wrap(note, SMALL, _RIGHT - _LEFT):
            drawing.text(_LEFT, y + 14, line, fill=colours.QUIET)
            y += _LINE
    return drawing.picture(" ".join([*(_in_words(place, gpu) for place in places), *notes]))


class _Scale:
    """The scale of TFLOPS, from little to much by factors."""

    def __init__(self, places: Sequence[Place]):
        known = [speed for place in places for _, speed in _marks(place)]
        self.end = next((end for end in _ENDS if max(known, default=0) < end), _ENDS[-1])

    def at(self, tflops: float) -> float:
        """Return the place of a speed on the page. What lies beyond an end is drawn at that end."""
        share = math.log(tflops / _LEAST) / math.log(self.end / _LEAST)
        return _LEFT + 10 + min(max(share, 0), 1) * (_RIGHT - _LEFT - 20)

    def head(self, drawing: Drawing, y: float) -> float:
        """Write the scale's figures. Return the lower edge."""
        drawing.text(_LEFT, y + 14, "TFLOPS", bold=True)
        y += _LINE
        for tick in _TICKS[self.end]:
            drawing.text(self.at(tick), y + 14, f"{tick:g}", anchor="middle", fill=colours.QUIET)
        return y + _LINE

    def lane(self, drawing: Drawing, place: Place, y: float) -> None:
        """Draw a place's speeds, the bound behind them."""
        middle = y + _LANE / 2
        drawing.rect(_LEFT, y + 2, _RIGHT - _LEFT, _LANE - 4, colours.BAND)
        for tick in _TICKS[self.end]:
            x = self.at(tick)
            drawing.line(x, y + 2, x, y + _LANE - 2, stroke=colours.EDGE)
        for mark, tflops in sorted(_marks(place), key=lambda each: _BEHIND.index(each[0])):
            _mark(drawing, mark, self.at(tflops), middle, _LANE / 2)


_BEHIND = (_MOST, _LADDER, _OWN, _BET)


def _marks(place: Place) -> list[tuple[str, float]]:
    """Return the known speeds of a place, and its bound, in the order in which they are told."""
    figures = ((_BET, place.bet), (_MOST, place.most), (_LADDER, place.recorded), (_OWN, place.own))
    return [(mark, tflops) for mark, tflops in figures if tflops is not None]


def _mark(drawing: Drawing, mark: str, x: float, y: float, high: float = 7.0) -> None:
    """Draw a mark: a dashed line for a bound, and shapes of their own for speeds."""
    if mark == _MOST:
        drawing.line(x, y - high, x, y + high, stroke=colours.INK, width=2, dash="4 2")
    elif mark == _OWN:
        drawing.circle(x, y, 5.5, colours.NOW, stroke=colours.INK, line=1.2)
    else:
        points = {
            _LADDER: ((0, -7), (7, 0), (0, 7), (-7, 0), (0, -7)),
            _BET: ((-6, -6), (6, -6), (0, 6), (-6, -6)),
        }[mark]
        fill = colours.OTHER if mark == _LADDER else colours.PAPER
        drawing.path([(x + dx, y + dy) for dx, dy in points], fill=fill, stroke=colours.INK, line=1.2)


def _legend(drawing: Drawing, places: Sequence[Place], gpu: str, y: float) -> float:
    """Say what the marks mean that are drawn. Return the lower edge."""
    drawn = {mark for place in places if place.passed for mark, _ in _marks(place)}
    means = {
        _BET: f"your bet on the ladder’s kernel on {gpu}",
        _MOST: "at most, your kernel as written: a bound",
        _LADDER: f"the ladder’s kernel, not yours, on {gpu}",
        _OWN: f"your kernel, measured on {' and '.join(sorted({each.gpu for each in places if each.gpu}))}",
    }
    for mark, words in means.items():
        if mark in drawn:
            _mark(drawing, mark, _LEFT + 7, y + 9)
            for line in wrap(words, SMALL, _RIGHT - _LEFT - 22):
                drawing.text(_LEFT + 22, y + 14, line)
                y += _LINE + 2
    return y + 4


def _head(drawing: Drawing, place: Place, y: float) -> None:
    drawing.text(_LEFT, y + 16, place.name, bold=True)
    drawing.text(_RIGHT, y + 16, "✓ passed", anchor="end", fill=colours.PASSED)


def _part(drawing: Drawing, place: Place, y: float) -> float:
    """Draw the place of a part of a kernel that has passed. Return the lower edge."""
    _head(drawing, place, y)
    y += 20
    for line in wrap(place.part_of, SMALL, _RIGHT - _LEFT):
        drawing.text(_LEFT, y + 15, line, fill=colours.QUIET)
        y += _LINE
    return y + 8


def _filled(drawing: Drawing, place: Place, scale: _Scale, y: float) -> float:
    """Draw the place of a kernel that has passed. Return the lower edge."""
    _head(drawing, place, y)
    scale.lane(drawing, place, y + 20)
    y, x = y + 20 + _LANE, _LEFT
    told = [(mark, f"{mark} {_digits(tflops)}") for mark, tflops in _marks(place)]
    if place.bet is None:
        told.insert(0, ("", "no bet"))
    for mark, words in told:
        if mark:
            _mark(drawing, mark, x + 7, y + 10)
        x += 19 if mark else 0
        drawing.text(x, y + 15, words)
        x += text_width(words) + 8
    y += _LINE
    for line in wrap(_wavefronts(place), SMALL, _RIGHT - _LEFT):
        drawing.text(_LEFT, y + 15, line, fill=colours.QUIET)
        y += _LINE
    return y + 8


def _empty(drawing: Drawing, place: Place, y: float) -> float:
    """Draw the place of a kernel that has not passed yet. Return the lower edge."""
    drawing.rect(_LEFT, y + 2, _RIGHT - _LEFT, _EMPTY - 8, "none", stroke=colours.QUIET, dash="3 3", round_=4)
    drawing.text(_LEFT + 8, y + 20, place.name, fill=colours.QUIET)
    if place.bet is not None:
        drawing.text(_RIGHT - 8, y + 20, f"your bet: {_digits(place.bet)}", anchor="end")
    return y + _EMPTY


def _digits(tflops: float) -> str:
    """Return TFLOPS with two digits, or all before the point."""
    return f"{tflops:.0f}" if tflops >= 10 else f"{tflops:.2g}"


def _wavefronts(place: Place) -> str:
    written = f"{place.written:.3g} as written" if place.written else place.why_not_counted
    measured = f"{place.measured:.3g} measured" if place.measured else "none measured"
    return f"wavefronts: {written}, {measured}"


def _in_words(place: Place, gpu: str) -> str:
    """Say what a place shows."""
    bet = f"Your bet: {_digits(place.bet)} TFLOPS." if place.bet is not None else "No bet."
    if not place.passed:
        return f"{place.name}: not passed yet.{f' {bet}' if place.bet is not None else ''}"
    if place.part_of:
        return f"{place.name}: passed, {place.part_of}."
    told = [f"{place.name}: passed. {bet}"]
    if place.most is not None:
        told.append(f"Your kernel as written: at most {_digits(place.most)} TFLOPS, a bound and no speed.")
    if place.recorded is not None:
        told.append(f"The ladder’s {place.stage} on {gpu}: {_digits(place.recorded)} TFLOPS.")
    if place.own is not None:
        told.append(f"Your kernel on {place.gpu}: {_digits(place.own)} TFLOPS.")
    return " ".join([*told, f"{_wavefronts(place).capitalize()}."])
