"""Draws TFLOPS as bars, stage by stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gemm_course.figures import colours, plots
from gemm_course.figures.picture import Picture
from gemm_course.figures.plots import three_digits
from gemm_course.figures.svg import SMALL, Drawing, text_width, wrap

# _RIGHT is the scale's right edge. _ROW is the height of a bar with the space around it.
_RIGHT, _ROW = 536.0, 32.0


@dataclass(frozen=True)
class Bar:
    """A kernel's bar. ``tflops`` is None if it was not measured. ``highlight`` marks the chapter's kernel."""

    label: str
    tflops: float | None
    highlight: bool = False


def _reached(bar: Bar) -> str:
    return "not measured yet" if bar.tflops is None else three_digits(bar.tflops)


def tflops(bars: Sequence[Bar], title: str, note: str, *, lines: Sequence[tuple[str, float]] = ()) -> Picture:
    """Draw TFLOPS as bars from zero.

    ``note`` names GPU, size, dtype and source. ``lines`` are reference lines such as cuBLAS, each a label and
    its TFLOPS.
    """
    drawing = Drawing(title)
    left = 20 + max(text_width(bar.label, bold=bar.highlight) for bar in bars)
    top, high = drawing.top + (22 if lines else 0), _ROW * len(bars)
    places = range(len(bars))
    most = max([bar.tflops or 0 for bar in bars] + [value for _, value in lines]) or 1
    with plots.axes(drawing, left, top, _RIGHT - left, high) as axes:
        axes.set_xlim(0, 1.12 * most)
        axes.set_ylim(len(bars) - 0.5, -0.5)
        for place, bar in zip(places, bars, strict=True):
            look = plots.BAR_NOW if bar.highlight else {"color": colours.OTHER, **plots.BAR}
            axes.barh(place, bar.tflops or 0, 0.72, **look)
        for _, value in lines:
            axes.axvline(value, color=colours.INK, linewidth=1, linestyle=plots.DASHES)
        for place, bar in zip(places, bars, strict=True):
            _write(axes, place, bar, lines)
        for label, value in lines:
            side = "left" if value < most / 2 else "right"
            axes.annotate(
                f"{label} {value:.3g}",
                (value, -0.5),
                (0, 6),
                textcoords="offset points",
                ha=side,
                va="bottom",
            )
        axes.set_yticks(places, [bar.label for bar in bars], fontsize=SMALL)
        for name, bar in zip(axes.get_yticklabels(), bars, strict=True):
            name.set_fontweight("bold" if bar.highlight else "normal")
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel("TFLOPS")
    y = top + high + 46
    for line in wrap(note, SMALL, drawing.width - 16):
        drawing.text(8, y + 14, line, fill=colours.QUIET)
        y += 18
    spoken = ", ".join(f"{bar.label} {_reached(bar)}" for bar in bars)
    marks = "".join(f"; {label} {value:.3g}" for label, value in lines)
    return drawing.picture(f"TFLOPS: {spoken}{marks}. {note}")


def _write(axes, place: int, bar: Bar, lines: Sequence[tuple[str, float]]) -> None:
    """Write a bar's TFLOPS behind its end. If a reference line crosses the words, they stand on paper."""
    words, at = _reached(bar), bar.tflops or 0
    # One unit of the page stands for this many TFLOPS.
    unit = axes.get_xlim()[1] / axes.bbox.width
    ends = at + unit * (8 + text_width(words))
    ground = {"facecolor": colours.PAPER, "edgecolor": "none", "pad": 1}
    crossed = any(at < value < ends for _, value in lines)
    axes.annotate(
        words,
        (at, place),
        (5, 0),
        textcoords="offset points",
        va="center_baseline",
        bbox=ground if crossed else None,
    )
