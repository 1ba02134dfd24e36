"""Draws what more steps that are written out do to a thread's registers and memory, and to the speed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gemm_course.figures import colours, plots
from gemm_course.figures.picture import Picture
from gemm_course.figures.rows import paragraph
from gemm_course.figures.svg import Drawing

_ROW = 34.0
# Each column of bars begins here.
_COLUMNS, _WIDE = (84.0, 246.0, 408.0), 96.0
# So many lines are reserved for the words.
_LINES = 9


@dataclass(frozen=True)
class Case:
    """A kernel with ``steps`` steps written out, as it was compiled and measured.

    ``local_bytes`` are bytes of local memory per thread.
    """

    steps: int
    registers: int
    local_bytes: int
    tflops: float


def unrolled(cases: Sequence[Case], now: int, most: int, code: str, notes: Sequence[str]) -> Picture:
    """Draw the cases up to the one with ``now`` steps, in order, and leave room for the others.

    ``most`` is the number of registers that a thread may have. ``code`` names the kernel and its tiles. All
    pictures of the same cases are equally high.
    """
    shown = [case for case in cases if case.steps <= now]
    here = shown[-1]
    drawing = Drawing(
        f"{here.steps} steps written out: {here.local_bytes:,} bytes of local memory, "
        f"{plots.three_digits(here.tflops)}\u00a0TFLOPS",
        title_lines=2,
    )
    top = drawing.top + 44
    drawing.text(8, drawing.top + 10, code, fill=colours.QUIET)
    _steps(drawing, cases, now, top)
    columns = (
        (f"registers (at most {most})", [case.registers for case in cases], colours.COUNTED),
        ("→ bytes of local memory", [case.local_bytes for case in cases], colours.COUNTED),
        ("→ TFLOPS", [case.tflops for case in cases], colours.OTHER),
    )
    for left, (name, values, fill) in zip(_COLUMNS, columns, strict=True):
        drawing.text(left, top - 8, name, size=12)
        _bars(drawing, left, top, values, len(shown), fill)
    y = top + _ROW * len(cases) + 8
    for note in notes:
        y = paragraph(drawing, note, y + 4)
    drawing.rect(0, top + _ROW * len(cases) + 8 + 18 * _LINES, 1, 1, colours.PAPER)
    return drawing.picture(" ".join([_in_words(shown), *notes]))


def _steps(drawing: Drawing, cases: Sequence[Case], now: int, top: float) -> None:
    drawing.text(8, top - 8, "steps", size=12)
    for place, case in enumerate(cases):
        y = top + place * _ROW + _ROW / 2 + 5
        drawing.text(44, y, case.steps, anchor="end", bold=case.steps == now)
        if case.steps <= now:
            drawing.text(52, y, "→", fill=colours.QUIET)


def _bars(drawing: Drawing, left: float, top: float, values: Sequence[float], shown: int, fill: str) -> None:
    """Draw one bar for each value that is shown, the last of them as the one that is looked at."""
    with plots.axes(drawing, left, top, _WIDE, _ROW * len(values)) as axes:
        axes.set_xlim(0, max(values) or 1)
        axes.set_ylim(len(values) - 0.5, -0.5)
        for place, value in enumerate(values[:shown]):
            look = plots.BAR_NOW if place == shown - 1 else {"color": fill, **plots.BAR}
            axes.barh(place, value, 0.6, **look)
            words = f"{value:,}" if isinstance(value, int) else plots.three_digits(value)
            axes.annotate(words, (value, place), (6, 0), textcoords="offset points", va="center_baseline")
        axes.xaxis.set_visible(False)
        axes.spines["bottom"].set_visible(False)
        axes.set_yticks([])


def _in_words(shown: Sequence[Case]) -> str:
    told = "; ".join(
        f"{case.steps} steps: {case.registers} registers, {case.local_bytes:,} bytes of local memory, "
        f"{plots.three_digits(case.tflops)} TFLOPS"
        for case in shown
    )
    return f"Per thread, by the steps along k that are written out: {told}."
