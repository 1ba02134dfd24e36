"""Finds places for labels that cover no line, no mark and no other label."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

Spot = tuple[float, float]
# A shape is the corners of a convex polygon, or the two ends of a line.
Shape = Sequence[Spot]


@dataclass(frozen=True)
class Box:
    """A label's place: its middle, its size, and its angle in degrees, clockwise."""

    x: float
    y: float
    width: float
    height: float
    turned: float = 0.0

    @cached_property
    def corners(self) -> list[Spot]:
        along, down = math.cos(math.radians(self.turned)), math.sin(math.radians(self.turned))
        halves = [(i * self.width / 2, j * self.height / 2) for i, j in ((-1, -1), (1, -1), (1, 1), (-1, 1))]
        return [(self.x + a * along - b * down, self.y + a * down + b * along) for a, b in halves]


def first_free(candidates: Iterable[Box], *costs: Callable[[Box], int]) -> Box:
    """Return the first candidate that costs nothing, or else the cheapest.

    Raise ValueError if there is no candidate.
    """
    best, least = None, math.inf
    for each in candidates:
        found = 0
        for cost in costs:
            found += cost(each)
            if found >= least:
                break
        else:
            best, least = each, found
        if not least:
            break
    if best is None:
        raise ValueError("there is no candidate")
    return best


def faults(box: Box, frame: Box, taken: Sequence[Shape]) -> int:
    """Count the shapes that a box meets. Leaving the frame counts as 100 shapes."""
    return sum(meet(box.corners, shape) for shape in taken) + 100 * (not _inside(box, frame))


def apart(wanted: Sequence[float], heights: Sequence[float], lowest: float) -> list[float]:
    """Return the upper edges of labels in a column, in the same order (from top to bottom).

    Each label begins at its wanted place, or lower if the label above it reaches further down. If the last
    label would end below ``lowest``, it moves up, and so do the labels that it then meets.
    """
    edges: list[float] = []
    begin = -math.inf
    for edge, height in zip(wanted, heights, strict=True):
        edges.append(max(edge, begin))
        begin = edges[-1] + height
    for place in reversed(range(len(edges))):
        edges[place] = min(edges[place], lowest - heights[place])
        lowest = edges[place]
    return edges


def meet(one: Shape, other: Shape) -> bool:
    """Tell whether two convex shapes touch. If they do not, some line parallel to an edge separates them."""
    return not _apart_upright(one, other) and not any(
        _separates(edge, one, other) for edge in (*_edges(one), *_edges(other))
    )


def _apart_upright(one: Shape, other: Shape) -> bool:
    """Tell whether an upright or a level line separates two shapes.

    The test is quick, and true of most pairs.
    """
    xs, ys = zip(*one, strict=True)
    other_xs, other_ys = zip(*other, strict=True)
    return (
        max(xs) < min(other_xs)
        or max(other_xs) < min(xs)
        or max(ys) < min(other_ys)
        or max(other_ys) < min(ys)
    )


def _separates(edge: tuple[Spot, Spot], one: Shape, other: Shape) -> bool:
    (x1, y1), (x2, y2) = edge
    left, right = ([(y1 - y2) * x + (x2 - x1) * y for x, y in shape] for shape in (one, other))
    return max(left) < min(right) or max(right) < min(left)


def _edges(shape: Shape) -> list[tuple[Spot, Spot]]:
    if len(shape) == 2:
        (x1, y1), (x2, y2) = shape
        # The first edge runs along the line, and the second across it.
        return [((x1, y1), (x2, y2)), ((x1, y1), (x1 + y1 - y2, y1 + x2 - x1))]
    return [(shape[place - 1], shape[place]) for place in range(len(shape))]


def _inside(box: Box, frame: Box) -> bool:
    (left, top), _, (right, bottom), _ = frame.corners
    return all(left <= x <= right and top <= y <= bottom for x, y in box.corners)
