"""Charts: TFLOPS stage by stage. Matplotlib, as PNG."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture

DPI = 150  # twice the size shown, so that text stays crisp on a high-resolution screen
WIDTH = 6.4  # inches; shown WIDTH * 100 pixels wide
NOTE = 84  # characters of a note that fit on a line
STYLE = {"fontsize": 11, "color": colours.INK}
# Behind a label that crosses a line.
CLEAR = {"facecolor": colours.PAPER, "edgecolor": "none", "alpha": 0.8, "pad": 1}


@dataclass(frozen=True)
class Bar:
    """One kernel's TFLOPS, None if it was not measured. ``highlight`` marks the chapter's kernel."""

    label: str
    tflops: float | None
    highlight: bool = False


def _figure(height: float) -> Figure:
    return Figure(figsize=(WIDTH, height), dpi=DPI, facecolor=colours.PAPER, layout="constrained")


def short(value: float) -> str:
    """Return TFLOPS with three significant digits, two below 1."""
    return f"{value:.3g}" if value >= 1 else f"{value:.2g}"


def _reached(bar: Bar) -> str:
    return "not measured yet" if bar.tflops is None else short(bar.tflops)


def _finish(figure: Figure, alt: str) -> Picture:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", facecolor=colours.PAPER)
    return Picture(buffer.getvalue(), alt, round(WIDTH * 100))


def tflops(bars: Sequence[Bar], title: str, note: str, *, lines: Sequence[tuple[str, float]] = ()) -> Picture:
    """Draw TFLOPS as bars from zero.

    ``note`` names GPU, size, dtype and source; ``lines`` are reference lines such as cuBLAS.
    """
    passed = [value for _, value in lines if any((bar.tflops or 0) > value for bar in bars)]
    figure = _figure(1.5 + 0.42 * max(len(bars), 3) + (0.35 if passed else 0))
    axes = figure.add_subplot()
    fills = [colours.NOW if bar.highlight else colours.OTHER for bar in bars]
    drawn = axes.barh(
        [bar.label for bar in bars],
        [bar.tflops or 0 for bar in bars],
        color=fills,
        edgecolor=colours.INK,
        linewidth=[2 if bar.highlight else 0.8 for bar in bars],
    )
    for patch, bar in zip(drawn, bars, strict=True):
        axes.annotate(
            _reached(bar),
            (bar.tflops or 0, patch.get_y() + patch.get_height() / 2),
            (4, 0),
            textcoords="offset points",
            va="center",
            zorder=5,
            bbox=CLEAR,
            **STYLE,
        )
    highest = max([bar.tflops or 0 for bar in bars] + [value for _, value in lines]) or 1
    for label, value in lines:
        axes.axvline(value, color=colours.INK, linestyle="--", linewidth=1)
        above = value in passed  # a bar that passes the line leaves no room for its label there
        axes.annotate(
            f"{label} {value:.3g}",
            (value, 1),
            (0, 2) if above else (4, -2),
            xycoords=("data", "axes fraction"),
            rotation=0 if above else 90,
            textcoords="offset points",
            ha="left" if value < highest / 2 else "right" if above else "left",
            va="bottom" if above else "top",
            **STYLE,
        )
    axes.set_xlim(0, highest * 1.2)
    axes.invert_yaxis()
    axes.tick_params(labelsize=11)
    for name, bar in zip(axes.get_yticklabels(), bars, strict=True):
        name.set_fontweight("bold" if bar.highlight else "normal")
    axes.set_xlabel("TFLOPS", **STYLE)
    room = 22 if passed else None  # points above the axes
    axes.set_title(title, loc="left", fontsize=13, fontweight="bold", color=colours.INK, wrap=True, pad=room)
    figure.supxlabel(textwrap.fill(note, NOTE), fontsize=10, color=colours.QUIET)
    axes.spines[["top", "right"]].set_visible(False)
    spoken = ", ".join(f"{bar.label} {_reached(bar)}" for bar in bars)
    marks = "".join(f"; {label} {value:.3g}" for label, value in lines)
    return _finish(figure, f"{title}. TFLOPS: {spoken}{marks}. {note}")
