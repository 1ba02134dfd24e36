"""A plane with two logarithmic axes, from FLOP per byte to TFLOPS, inside a drawing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from gemm_course.figures import colours
from gemm_course.figures.placing import Box
from gemm_course.figures.svg import Drawing

_MARKS = (1, 2, 5)  # of each decade, where there is room for all of them
_NEAR = 28.0  # marks that are closer than this, in units of the page, are too many
_TICK = 13
_CLEAR = 4.0


@dataclass(frozen=True)
class Span:
    """Where the axes begin and end: FLOP per byte, and TFLOPS."""

    left: float
    right: float
    low: float
    high: float


@dataclass(frozen=True)
class Plane:
    """A span in a frame of a drawing, in units of the page."""

    span: Span
    left: float
    top: float
    width: float
    height: float

    @property
    def right(self) -> float:
        return self.left + self.width

    @property
    def bottom(self) -> float:
        return self.top + self.height

    @property
    def inner(self) -> Box:
        """Where labels may stand: inside the frame, and clear of it."""
        middle = self.left + self.width / 2, self.top + self.height / 2
        return Box(*middle, self.width - 2 * _CLEAR, self.height - 2 * _CLEAR)

    def x(self, intensity: float) -> float:
        """Where an intensity lies, in units of the page."""
        return self.left + self.width * _part(intensity, self.span.left, self.span.right)

    def y(self, tflops: float) -> float:
        """Where TFLOPS lie, in units of the page."""
        return self.bottom - self.height * _part(tflops, self.span.low, self.span.high)

    def draw(self, drawing: Drawing, axis: str) -> None:
        """Draw the frame, a grid with its numbers, and what the axes mean."""
        for mark in _marks(self.span.left, self.span.right, self.width):
            x = self.x(mark)
            drawing.line(x, self.top, x, self.bottom, stroke=colours.EDGE, width=0.7)
            drawing.text(x, self.bottom + 16, f"{mark:g}", size=_TICK, anchor="middle")
        for mark in _marks(self.span.low, self.span.high, self.height):
            y = self.y(mark)
            drawing.line(self.left, y, self.right, y, stroke=colours.EDGE, width=0.7)
            drawing.text(self.left - 6, y + 5, f"{mark:g}", size=_TICK, anchor="end")
        drawing.rect(self.left, self.top, self.width, self.height, "none", stroke=colours.QUIET)
        drawing.text(self.left - 40, self.top - 9, "TFLOPS")
        drawing.text(self.left + self.width / 2, self.bottom + 35, axis, anchor="middle")


def _part(value: float, low: float, high: float) -> float:
    return math.log(value / low) / math.log(high / low)


def _marks(low: float, high: float, length: float) -> Iterator[float]:
    """The numbers of an axis: 1, 2 and 5 of every decade, or 1 alone where they would be too close."""
    decade = length / math.log10(high / low)
    many = _MARKS if decade * math.log10(2) > _NEAR else (1,)
    for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        yield from (mark * 10**power for mark in many if low <= mark * 10**power <= high)
