"""Draws one kernel's speed on the same matrices with longer and longer rows, and where a warp reads."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from gemm_course.figures import colours, plots
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import SMALL, Drawing, wrap
from gemm_course.model.requests import LINE

# A line has this many floats.
PLACES = LINE // 4
_LEFT, _WIDTH = 60.0, 490.0
# The panel of the speeds is _BARS units high, and the panel of the places _TOWERS units.
_BARS, _TOWERS = 140.0, 120.0


def draw(
    kernel: str,
    n: int,
    extra: int,
    measured: Mapping[int, float],
    words: Sequence[int],
    note: str,
    only_this: bool = False,
) -> Picture:
    """Draw the speed and the reads for rows of n floats and ``extra`` more.

    ``measured`` has TFLOPS by extra floats, with 0 among them. ``words`` are the different floats of A that a
    warp reads in one request, counted from the first byte of A. ``note`` says what was measured where. With
    ``only_this``, only the bars of ``extra`` and of 0 are drawn.
    """
    shown = {more: value for more, value in measured.items() if not only_this or more in (0, extra)}
    drawing = Drawing(f"{kernel}, {_answer(n, extra, measured)}", title_lines=2)
    top = drawing.top + 18
    _speeds(drawing, top, extra, measured, shown)
    towers = Counter(word % PLACES for word in words)
    top += _BARS + 76
    _places(drawing, top, towers)
    for place, line in enumerate(wrap(note, SMALL, drawing.width - 16)):
        drawing.text(8, top + _TOWERS + 62 + 18 * place, line, fill=colours.QUIET)
    spoken = ", ".join(f"{more} more {value:.3g}" for more, value in sorted(shown.items()))
    return drawing.picture(f"TFLOPS by the length of a row, {n} floats and: {spoken}. {_told(towers)} {note}")


def _answer(n: int, extra: int, measured: Mapping[int, float]) -> str:
    here, plain = measured[extra], measured[0]
    told = f"rows of {n + extra} floats: {here:.3g}\u00a0TFLOPS"
    return f"{told}, {here / plain:.2f} times that of {n}" if extra else told


def _speeds(drawing: Drawing, top: float, extra: int, measured: Mapping[int, float], shown) -> None:
    """Draw bars from zero, with room for each length that was measured."""
    lengths = sorted(measured)
    drawing.text(8, top - 4, "TFLOPS", fill=colours.QUIET)
    with plots.axes(drawing, _LEFT, top + 18, _WIDTH, _BARS - 18) as axes:
        axes.set_ylim(0, _round_above(max(measured.values())))
        axes.set_xlim(-0.5, len(lengths) - 0.5)
        axes.locator_params(axis="y", nbins=4)
        axes.grid(axis="y")
        for place, more in enumerate(lengths):
            look = plots.BAR_NOW if more == extra else {"color": colours.OTHER, **plots.BAR}
            if more in shown:
                axes.bar(place, measured[more], 0.85, **look)
        axes.set_xticks(range(len(lengths)), lengths)
        axes.tick_params(axis="x", length=0)
        axes.get_xticklabels()[lengths.index(extra)].set_fontweight("bold")
        axes.set_xlabel("floats of padding at the end of each row", loc="left", color=colours.QUIET)


def _round_above(most: float) -> int:
    """Return the end of the axis, a round number that does not betray the highest bar before it is shown."""
    return next(end for end in (1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100) if end >= most)


def _places(drawing: Drawing, top: float, towers: Mapping[int, int]) -> None:
    """Plot how many words of one request lie at each place of a line."""
    drawing.text(8, top - 10, _told(towers), bold=True)
    with plots.axes(drawing, _LEFT, top + 6, _WIDTH, _TOWERS - 6) as axes:
        axes.set_xlim(-0.5, PLACES - 0.5)
        axes.set_ylim(0, PLACES)
        axes.grid(axis="y")
        axes.bar(list(towers), list(towers.values()), 0.85, color=colours.A, linewidth=0)
        axes.set_yticks(range(0, PLACES + 1, 8))
        axes.set_xticks(range(0, PLACES, 8))
        axes.set_xticks(range(PLACES), minor=True)
        axes.set_xlabel(f"place in its line of {PLACES} floats", loc="left", color=colours.QUIET)


def _told(towers: Mapping[int, int]) -> str:
    words, tallest = sum(towers.values()), max(towers.values())
    if words == 1:
        return "One request for A: one float, for all lanes."
    if len(towers) == 1:
        return f"One request for A: {words} floats, all at the same place in their lines."
    if tallest == 1:
        return f"One request for A: {words} floats, each at a place of its own."
    return f"One request for A: {words} floats, {words // len(towers)} at each of {len(towers)} places."
