"""Draws plots with axes onto a `Drawing`, by means of Matplotlib and in one style.

Matplotlib draws the charts in which a reader measures, with marks or bars at the values of a scale. Its axes,
scales and ticks are better than any that we would write. Pictures of things that one counts or names
(threads, lanes, tiles, banks, registers, clocks, lines of code) are drawn by hand, with
`gemm_course.figures.svg`. In them a box stands for one thing, and axes would say nothing.

| chart | drawn by | why |
|---|---|---|
| `charts.tflops` | Matplotlib | bars over a scale in TFLOPS, with reference lines |
| `ladder` | Matplotlib | shares of cuBLAS, and loads per multiply-add over a logarithmic scale |
| `counts` | Matplotlib | counts as bars, over a scale of its own for each thing counted |
| `roofline` | Matplotlib | two logarithmic scales with roofs; `placing` finds room for the names |
| `unrolled` | Matplotlib | registers, bytes and TFLOPS as bars, over a scale of its own for each |
| `row_lengths` | Matplotlib | TFLOPS over the padding, and how many words share a place in a line |
| `heatmap` | by hand | a table: each cell is a choice of tiles with its figure, a mark or hatching |
| `limits`, `waits` | by hand | tables: a bar fills its cell from 0 to 100 %, with sentences between |
| `tanks` | by hand | a block is a box, and a tank holds a whole number of them |
| `overlap`, `schedule`, `race` | by hand | a box for each clock or step |
| all others | by hand | diagrams of threads, tiles, banks, memory and code |

Use `axes` like this, with places in units of the page and y downwards as in the drawing:

    with plots.axes(drawing, left, top, width, height) as axes:
        axes.barh(...)

The plot becomes part of the drawing. Its title, alt text, fonts and white ground are those of every other
picture, and its text stays text. Matplotlib's own SVG would bring a date, hashed names and a style sheet of
its own. Matplotlib takes a while to load, so nothing loads it before the first plot.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from gemm_course.figures import colours
from gemm_course.figures.svg import PAGE, SMALL, Drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# The letters at ticks and of labels in a plot have this size.
TICK = 13
STYLE = {
    "font.size": SMALL,
    "text.color": colours.INK,
    "axes.edgecolor": colours.QUIET,
    "axes.labelcolor": colours.INK,
    "axes.labelsize": SMALL,
    "axes.linewidth": 1.0,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "figure.facecolor": "none",
    # With this resolution, a point is a unit of the page.
    "figure.dpi": 72,
    "grid.color": colours.EDGE,
    "grid.linewidth": 0.7,
    "lines.scale_dashes": False,
    "text.usetex": False,
    "xtick.color": colours.QUIET,
    "xtick.labelcolor": colours.INK,
    "xtick.labelsize": TICK,
    "ytick.color": colours.QUIET,
    "ytick.labelcolor": colours.INK,
    "ytick.labelsize": TICK,
    "ytick.major.pad": 6,
}
# A bar of any colour has this edge.
BAR = {"edgecolor": colours.INK, "linewidth": 0.8}
# The bar that the picture is about stands out in this style.
BAR_NOW = {"color": colours.NOW, "edgecolor": colours.INK, "linewidth": 2}
DASHES = (0, (5, 4))


@contextmanager
def axes(drawing: Drawing, left: float, top: float, width: float, height: float) -> Iterator[Axes]:
    """Yield Matplotlib's axes in a frame of a drawing, and draw what they hold when the block ends.

    A learner's own settings of Matplotlib change nothing. Nothing is clipped, so what leaves the frame is
    drawn.
    """
    from gemm_course.figures.matplotlib_renderer import plotted

    with plotted(drawing, (left, top, width, height), STYLE) as made:
        yield made


def on_page(axes: Axes, x: float, y: float) -> tuple[float, float]:
    """Return the place on the page, with y downwards, of a point given in data coordinates."""
    across, up = axes.transData.transform((x, y))
    return float(across), float(PAGE - up)


def three_digits(value: float) -> str:
    """Return a figure such as TFLOPS with three significant digits, or with two below 1."""
    return f"{value:.3g}" if value >= 1 else f"{value:.2g}"


def in_thousands(count: float, _place: object = None) -> str:
    """Return a count with a space between thousands, "131 072".

    Matplotlib passes a second argument when the function labels ticks.
    """
    whole = int(count) if float(count).is_integer() else count
    return f"{whole:,}".replace(",", " ")
