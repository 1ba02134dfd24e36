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
# So many lines are reserved for the words, with and without the registers.
_LINES, _LINES_OF_SPEEDS = 7, 4


@dataclass(frozen=True)
class Case:
    """A kernel with ``steps`` steps written out, as it was compiled and measured.

    ``local_bytes`` are bytes of local memory per thread.
    """

    steps: int
    registers: int
    local_bytes: int
    tflops: float


def unrolled(cases: Sequence[Case], now: int, most: int | None, code: str, notes: Sequence[str]) -> Picture:
    """Draw the cases up to the one with ``now`` steps, in order, and leave room for the others.

    ``most`` is the number of registers that a thread may have; with None, only the speeds are drawn. ``code``
    names the kernel and its tiles. All pictures of the same cases are equally high.
    """
    shown = [case for case in cases if case.steps <= now]
    drawing = Drawing(_title(shown[-1], most is not None), title_lines=2)
    top = drawing.top + 44
    drawing.text(8, drawing.top + 10, code, fill=colours.QUIET)
    _steps(drawing, cases, now, top)
    columns = [("TFLOPS", [case.tflops for case in cases], colours.OTHER)]
    if most is not None:
        columns[:0] = [
            (f"registers (at most {most})", [case.registers for case in cases], colours.COUNTED),
            ("bytes of local memory", [case.local_bytes for case in cases], colours.COUNTED),
        ]
    for left, (name, values, fill) in zip(_COLUMNS, columns, strict=False):
        drawing.text(left, top - 8, name, size=12)
        _bars(drawing, left, top, values, len(shown), fill)
    y = top + _ROW * len(cases) + 8
    for note in notes:
        y = paragraph(drawing, note, y + 4)
    lines = _LINES if most is not None else _LINES_OF_SPEEDS
    drawing.rect(0, top + _ROW * len(cases) + 8 + 18 * lines, 1, 1, colours.PAPER)
    return drawing.picture(" ".join([_in_words(shown, most is not None), *notes]))


def _title(here: Case, evidence: bool) -> str:
    stored = f"{here.local_bytes:,} bytes of local memory, " if evidence else ""
    return f"{_steps_of(here)} written out at a time: {stored}{plots.three_digits(here.tflops)}\u00a0TFLOPS"


def _steps_of(case: Case) -> str:
    return f"{case.steps} step{'s' if case.steps > 1 else ''}"


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


def _in_words(shown: Sequence[Case], evidence: bool) -> str:
    told = "; ".join(
        f"{_steps_of(case)}: "
        + (f"{case.registers} registers, {case.local_bytes:,} bytes of local memory, " if evidence else "")
        + f"{plots.three_digits(case.tflops)} TFLOPS"
        for case in shown
    )
    return f"By the steps along k that are written out at a time: {told}."
