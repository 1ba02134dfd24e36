"""Charts: TFLOPS stage by stage, and the roofline. Matplotlib, as PNG."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator
from PIL import Image

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture

_DPI = 150  # twice what is shown, so that letters stay crisp on a fine screen
_WIDTH = 6.4  # inches; shown _WIDTH * 100 pixels wide
_NOTE = 84  # letters of a note that fit in a line
_LEFT, _LOW, _HIGH = 0.03, 0.1, 200  # FLOP a byte, TFLOPS: where the roofline's axes begin and end
_STYLE = {"fontsize": 11, "color": colours.INK}
_CLEAR = {
    "facecolor": colours.PAPER,
    "edgecolor": "none",
    "alpha": 0.8,
    "pad": 1,
}  # behind a label that crosses a line


@dataclass(frozen=True)
class Bar:
    """One kernel's TFLOPS. ``highlight`` marks the kernel that the chapter is about."""

    label: str
    tflops: float
    highlight: bool = False


@dataclass(frozen=True)
class Roof:
    """A slanted roof: a memory that gives ``terabytes_per_second``."""

    label: str
    terabytes_per_second: float


@dataclass(frozen=True)
class Point:
    """A kernel on the roofline: ``intensity`` in FLOP a byte, ``tflops`` measured, or None where only the
    roof is known.
    """

    label: str
    intensity: float
    tflops: float | None
    now: bool = False


def _figure(height: float) -> Figure:
    return Figure(figsize=(_WIDTH, height), dpi=_DPI, facecolor=colours.PAPER, layout="constrained")


def _short(value: float) -> str:
    """Three digits, two below 1."""
    return f"{value:.3g}" if value >= 1 else f"{value:.2g}"


def _finish(figure: Figure, alt: str) -> Picture:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", facecolor=colours.PAPER)
    return Picture(buffer.getvalue(), alt, round(_WIDTH * 100))


def tflops(bars: Sequence[Bar], title: str, note: str, *, lines: Sequence[tuple[str, float]] = ()) -> Picture:
    """Draw TFLOPS as bars from zero. ``note`` names GPU, size, dtype and source; ``lines`` are marks such as
    cuBLAS.
    """
    figure = _figure(1.5 + 0.42 * max(len(bars), 3))
    axes = figure.add_subplot()
    fills = [colours.NOW if bar.highlight else "#AEB6C1" for bar in bars]
    drawn = axes.barh(
        [bar.label for bar in bars],
        [bar.tflops for bar in bars],
        color=fills,
        edgecolor=colours.INK,
        linewidth=0.8,
    )
    for patch, bar in zip(drawn, bars, strict=True):
        patch.set_hatch("//" if bar.highlight else "")
        axes.annotate(
            _short(bar.tflops),
            (bar.tflops, patch.get_y() + patch.get_height() / 2),
            (4, 0),
            textcoords="offset points",
            va="center",
            bbox=_CLEAR,
            **_STYLE,
        )
    highest = max([bar.tflops for bar in bars] + [value for _, value in lines])
    for label, value in lines:
        axes.axvline(value, color=colours.INK, linestyle="--", linewidth=1)
        axes.annotate(
            f"{label} {value:.3g}",
            (value, 1),
            (4, -2),
            xycoords=("data", "axes fraction"),
            rotation=90,
            textcoords="offset points",
            ha="left",
            va="top",
            **_STYLE,
        )
    axes.set_xlim(0, highest * 1.2)
    axes.invert_yaxis()
    axes.tick_params(labelsize=11)
    axes.set_xlabel("TFLOPS", **_STYLE)
    axes.set_title(title, loc="left", fontsize=13, fontweight="bold", color=colours.INK, wrap=True)
    figure.supxlabel(textwrap.fill(note, _NOTE), fontsize=10, color=colours.QUIET)
    axes.spines[["top", "right"]].set_visible(False)
    spoken = ", ".join(f"{bar.label} {_short(bar.tflops)}" for bar in bars)
    marks = "".join(f"; {label} {value:.3g}" for label, value in lines)
    return _finish(figure, f"{title}. TFLOPS: {spoken}{marks}. {note}")


def roofline(
    roofs: Sequence[Roof],
    peak: float,
    points: Sequence[Point],
    title: str,
    note: str,
    *,
    axis: str = "FLOP per byte that warps ask of L1",
    ceilings: Sequence[tuple[str, float]] = (),
    under_title: str = "",
) -> Picture:
    """Draw TFLOPS over arithmetic intensity, with a roof for every memory and a trail of kernels in order.

    ``axis`` says which bytes the intensity counts; a point that was not measured is a line. ``ceilings``
    are limits in TFLOPS that do not depend on the intensity, such as shared memory's.
    """
    right = 300 if all(point.intensity < 250 for point in points) else 6000
    sheet = _sheet(tuple(roofs), peak, axis, tuple(ceilings), right)
    png = sheet.with_(_moving(sheet, points, title, note, under_title))
    spoken = "; ".join(_spoken(point) for point in points)
    names = ", ".join(f"{roof.label} {roof.terabytes_per_second:.3g} TB/s" for roof in roofs)
    limits = "".join(f" {label}: {value:.3g} TFLOPS." for label, value in ceilings)
    told = f"{title}. {under_title}." if under_title else f"{title}."
    alt = f"{told} Roofs: {names}, peak {peak:.3g} TFLOPS.{limits} Points: {spoken}. {note}"
    return Picture(png, alt, round(_WIDTH * 100))


def _spoken(point: Point) -> str:
    reached = f"{_short(point.tflops)} TFLOPS" if point.tflops is not None else "not measured"
    return f"{point.label}: {point.intensity:.3g} FLOP per byte, {reached}"


class _Sheet:
    """A figure whose fixed part is drawn once; what moves is drawn on top of it, as often as it moves."""

    def __init__(self, roofs: Sequence[Roof], peak: float, axis: str, ceilings, right: float):
        self.figure = Figure(figsize=(_WIDTH, 4.4), dpi=_DPI, facecolor=colours.PAPER)
        self.canvas = FigureCanvasAgg(self.figure)
        self.axes = self.figure.add_subplot()
        self.figure.subplots_adjust(left=0.11, bottom=0.21, right=0.98, top=0.88)
        self._scales(axis, right)
        self._lines(roofs, peak, ceilings, right)
        self.axes.legend(fontsize=10, loc="lower right", framealpha=1)
        self.canvas.draw()
        self._fixed = self.canvas.copy_from_bbox(self.figure.bbox)

    def _scales(self, axis: str, right: float) -> None:
        self.axes.set(xscale="log", yscale="log", xlim=(_LEFT, right), ylim=(_LOW, _HIGH))
        for each in (self.axes.xaxis, self.axes.yaxis):
            marks = [mark for mark in (0.1, 1, 10, 100, 1000) if mark <= right or each is self.axes.yaxis]
            each.set_minor_locator(NullLocator())
            each.set_major_locator(FixedLocator(marks))
            each.set_major_formatter(FixedFormatter([f"{mark:g}" for mark in marks]))
        self.axes.set_xlabel(axis, **_STYLE)
        self.axes.set_ylabel("TFLOPS", **_STYLE)
        self.axes.tick_params(labelsize=11)
        self.axes.grid(True, color="#E3E6EA")

    def _lines(self, roofs: Sequence[Roof], peak: float, ceilings, right: float) -> None:
        for place, roof in enumerate(roofs):
            speed = roof.terabytes_per_second
            xs, ys = [_LEFT, peak / speed, right], [_LEFT * speed, peak, peak]
            style = ("-", "--", "-.", ":")[place % 4]
            label = f"{roof.label}: {speed:.3g} TB/s"
            self.axes.plot(xs, ys, color=colours.QUIET, linewidth=1.4, linestyle=style, label=label)
        self.axes.axhline(peak, color=colours.INK, linewidth=1.6, label=f"FP32 peak: {peak:.3g} TFLOPS")
        for place, (label, value) in enumerate(ceilings):
            style = ("--", ":")[place % 2]
            self.axes.axhline(
                value, color=colours.B, linewidth=1.4, linestyle=style, label=f"{label}: {value:.3g}"
            )

    def with_(self, artists: Sequence) -> bytes:
        """Draw ``artists`` over the fixed part, take a PNG of it, and take them off again."""
        self.canvas.restore_region(self._fixed)
        for artist in artists:
            self.figure.draw_artist(artist)
        buffer = io.BytesIO()
        Image.fromarray(np.asarray(self.canvas.buffer_rgba())).convert("RGB").save(
            buffer, "png", compress_level=3
        )
        for artist in artists:
            artist.remove()
        return buffer.getvalue()


_sheet = lru_cache(16)(_Sheet)


def _moving(sheet: _Sheet, points: Sequence[Point], title: str, note: str, under_title: str) -> list:
    """Make the artists of one picture: its title and note, the trail, and a marker and a label for every
    point.
    """
    axes, wrapped = sheet.axes, textwrap.fill(note, _NOTE)
    artists = [
        sheet.figure.text(0.02, 0.95, title, fontsize=13, fontweight="bold", color=colours.INK),
        sheet.figure.text(0.02, 0.9, under_title, fontsize=10.5, color=colours.QUIET),
        sheet.figure.text(0.5, 0.02, wrapped, fontsize=10, color=colours.QUIET, ha="center"),
    ]
    measured = [point for point in points if point.tflops]
    xs, ys = [point.intensity for point in measured], [point.tflops for point in measured]
    artists += axes.plot(xs, ys, color=colours.C, linewidth=1, linestyle=":")
    for place, point in enumerate(points):
        neighbours = [p.intensity for p in points if point.intensity < p.intensity < 10 * point.intensity]
        to_the_left = point.intensity > 8 or (point.intensity > 0.5 and bool(neighbours))
        artists += _marked(axes, point, place, to_the_left) if point.tflops else _unmeasured(axes, point)
    return artists


def _unmeasured(axes, point: Point) -> list:
    line = axes.axvline(point.intensity, color=colours.B, linewidth=1.6, linestyle="--")
    label = axes.annotate(
        f"{point.label}: not measured",
        (point.intensity, 0.97),
        (-5, 0),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="right",
        va="top",
        bbox=_CLEAR,
        **_STYLE,
    )
    return [line, label]


def _marked(axes, point: Point, place: int, to_the_left: bool) -> list:
    (dot,) = axes.plot(
        point.intensity,
        point.tflops,
        marker="osD^vP*X<>"[place % 10],
        markersize=11 if point.now else 8,
        linestyle="none",
        color=colours.NOW if point.now else colours.C,
        markeredgecolor=colours.INK,
    )
    label = axes.annotate(
        f"{point.label} {_short(point.tflops)}",
        (point.intensity, point.tflops),
        (-9 if to_the_left else 9, 8 if point.now else -12),
        textcoords="offset points",
        ha="right" if to_the_left else "left",
        fontweight="bold" if point.now else "normal",
        bbox=_CLEAR,
        **_STYLE,
    )
    return [dot, label]
