"""Places A, B and C in corner layout: a row of A at the left and a column of B above meet in C."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gemm_course.figures import colours
from gemm_course.figures.svg import Drawing

Element = tuple[int, int]
_GAP = 8.0
# The line between two cells takes this share of a cell's side, but at most one unit of the page.
_LINES = 0.1


@dataclass(frozen=True)
class Corner:
    """A corner layout, which places the cells of C (m by n), A (m by k) and B (k by n) on the page.

    ``left`` and ``top`` are the corner of the whole layout, and ``side`` is its largest width and height. All
    are in units of the page.
    """

    m: int
    n: int
    k: int
    left: float
    top: float
    side: float

    @property
    def cell(self) -> float:
        """The side of a cell, in units of the page."""
        return (self.side - _GAP) / (self.k + max(self.m, self.n))

    @property
    def right(self) -> float:
        return self.left + (self.k + self.n) * self.cell + _GAP

    @property
    def bottom(self) -> float:
        return self.top + (self.k + self.m) * self.cell + _GAP

    def shape(self, array: str) -> tuple[int, int]:
        """Return the rows and columns of "A", "B" or "C"."""
        return {"A": (self.m, self.k), "B": (self.k, self.n), "C": (self.m, self.n)}[array]

    def box(self, array: str, at: Element = (0, 0), size: Element | None = None) -> tuple[float, ...]:
        """Return left, top, width and height of a rectangle of cells.

        The rectangle begins at the cell ``at``. ``size`` is (rows, columns), by default the whole matrix.
        """
        rows, columns = size or self.shape(array)
        beside, below = self.left + self.k * self.cell + _GAP, self.top + self.k * self.cell + _GAP
        x, y = {"A": (self.left, below), "B": (beside, self.top), "C": (beside, below)}[array]
        cell = self.cell
        return x + at[1] * cell, y + at[0] * cell, columns * cell, rows * cell

    def middle(self, array: str, at: Element) -> Element:
        """Return the middle of a cell on the page."""
        x, y, wide, high = self.box(array, at, (1, 1))
        return x + wide / 2, y + high / 2

    def light(self, drawing: Drawing, array: str, elements: Iterable[Element], fill: str) -> None:
        """Fill the cells of ``elements``."""
        runs = [self.box(array, at, (1, length)) for at, length in _runs(elements)]
        if runs:
            drawing.area([tuple(round(value, 2) for value in run) for run in runs], fill)

    def rule(self, drawing: Drawing, array: str, every: int = 1) -> None:
        """Draw lines between cells, or between groups of ``every`` cells.

        Fill the cells before, because filled cells cover the lines.
        """
        rows, columns = self.shape(array)
        x, y, wide, high = self.box(array)
        thin = min(1.0, _LINES * self.cell * every)
        below = (y + row * self.cell - thin / 2 for row in range(every, rows, every))
        beside = (x + column * self.cell - thin / 2 for column in range(every, columns, every))
        lines = [*((x, at, wide, thin) for at in below), *((at, y, thin, high) for at in beside)]
        drawing.area([tuple(round(value, 2) for value in line) for line in lines], colours.PAPER)

    def outline(self, drawing: Drawing, array: str, elements: Iterable[Element], **style) -> None:
        """Draw a frame around all of ``elements``."""
        elements = list(elements)
        if elements:
            at, size = bounds(elements)
            x, y, wide, high = self.box(array, at, size)
            style = {"stroke": colours.INK, "line": 2.0, **style}
            drawing.rect(x - 1, y - 1, wide + 2, high + 2, "none", **style)


def bounds(elements: Iterable[Element]) -> tuple[Element, Element]:
    """Return the rectangle around ``elements``: its first row and column, and its rows and columns."""
    rows, columns = zip(*elements, strict=True)
    at = min(rows), min(columns)
    return at, (max(rows) - at[0] + 1, max(columns) - at[1] + 1)


def fills_a_rectangle(elements: Iterable[Element]) -> bool:
    """Tell whether ``elements`` fill the rectangle around them. An empty set does not."""
    elements = set(elements)
    if not elements:
        return False
    rows, columns = bounds(elements)[1]
    return rows * columns == len(elements)


def patches(elements: Iterable[Element]) -> list[list[Element]]:
    """Divide ``elements`` into rectangles, each made of equally long runs that lie below one another."""
    found: dict[tuple[int, int], list[list[Element]]] = {}
    for (row, column), length in _runs(elements):
        patches = found.setdefault((column, length), [])
        if not patches or patches[-1][-1][0] != row - 1:
            patches.append([])
        patches[-1] += [(row, column + i) for i in range(length)]
    return [patch for of_one_width in found.values() for patch in of_one_width]


def _runs(elements: Iterable[Element]) -> list[tuple[Element, int]]:
    """Return the runs of cells that lie side by side, each as (its first cell, its length)."""
    found: list[tuple[Element, int]] = []
    for row, column in sorted(elements):
        if found and found[-1][0][0] == row and found[-1][0][1] + found[-1][1] == column:
            found[-1] = found[-1][0], found[-1][1] + 1
        else:
            found.append(((row, column), 1))
    return found
