"""The roofline: TFLOPS over arithmetic intensity, under a roof for every memory. Matplotlib, as PNG."""

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
from gemm_course.figures.charts import CLEAR, DPI, NOTE, STYLE, WIDTH, short
from gemm_course.figures.picture import Picture

_LEFT, _LOW, _HIGH = 0.03, 0.1, 200  # FLOP per byte, TFLOPS: where the axes begin and end
_HIGH_WITH_TENSOR_CORES = 2000
_HEIGHT = 4.4  # inches
_NOTE_LINES = 2  # for which there is always room
_AXIS = "FLOP per byte that warps ask of L1"


@dataclass(frozen=True)
class Roof:
    """A slanted roof: a memory with its bandwidth."""

    label: str
    terabytes_per_second: float


@dataclass(frozen=True)
class Point:
    """A kernel on the roofline: ``intensity`` in FLOP per byte, ``tflops`` as measured, or None if only the
    roof is known.
    """

    label: str
    intensity: float
    tflops: float | None
    now: bool = False


def roofline(
    roofs: Sequence[Roof],
    peak: float,
    points: Sequence[Point],
    title: str,
    note: str,
    *,
    axis: str = _AXIS,
    ceilings: Sequence[tuple[str, float]] = (),
    under_title: str = "",
    tensor_peak: float | None = None,
) -> Picture:
    """Draw TFLOPS over arithmetic intensity, with a roof for every memory and a trail of kernels in order.

    ``axis`` says which bytes the intensity counts; a point that was not measured is a vertical line.
    ``ceilings`` are limits in TFLOPS that do not depend on the intensity, such as shared memory's.
    ``tensor_peak`` is the peak of FP16 on Tensor Cores, if kernels use them.
    """
    right = 300 if all(point.intensity < 250 for point in points) else 6000
    sheet = _sheet(tuple(roofs), peak, axis, tuple(ceilings), right, tensor_peak, below=_room_for(note))
    png = sheet.render(_moving(sheet, points, title, note, under_title))
    spoken = "; ".join(_spoken(point) for point in points)
    limits = "".join(f" {label}: {value:.3g} TFLOPS." for label, value in ceilings)
    told = f"{title}. {under_title}." if under_title else f"{title}."
    alt = f"{told} {_roofs_in_words(roofs, peak, tensor_peak)}{limits} Points: {spoken}. {note}"
    return Picture(png, alt, round(WIDTH * 100))


def all_on_one(
    roofs: Sequence[Roof],
    peak: float,
    points: Sequence[Point],
    title: str,
    note: str,
    *,
    tensor_peak: float | None = None,
) -> Picture:
    """Draw many kernels on one roofline: numbered dots, and a key below with their names and TFLOPS.

    A kernel that was not measured is in the key only.
    """
    lines = -(-len(points) // 2)
    sheet = _Sheet(roofs, peak, _AXIS, (), 300, tensor_peak, below=0.2 * lines + 0.1)
    places = _spread(sheet, points)
    artists = [*_headings(sheet, title, note, ""), *_key(sheet, points, lines)]
    for number, point in enumerate(points, 1):
        if point.tflops:
            artists += _numbered(sheet.axes, point, number, places[number - 1])
    spoken = "; ".join(f"{number} {_spoken(point)}" for number, point in enumerate(points, 1))
    alt = f"{title}. {_roofs_in_words(roofs, peak, tensor_peak)} Points: {spoken}. {note}"
    return Picture(sheet.render(artists), alt, round(WIDTH * 100))


def _room_for(note: str) -> float:
    """Inches below the axes for the lines of a note that are more than usual."""
    return 0.17 * max(0, len(textwrap.wrap(note, NOTE)) - _NOTE_LINES)


def _roofs_in_words(roofs: Sequence[Roof], peak: float, tensor_peak: float | None) -> str:
    names = ", ".join(f"{roof.label} {roof.terabytes_per_second:.3g} TB/s" for roof in roofs)
    fp16 = f", FP16 peak on Tensor Cores {tensor_peak:.3g} TFLOPS" if tensor_peak else ""
    return f"Roofs: {names}, peak {peak:.3g} TFLOPS{fp16}."


def _spoken(point: Point) -> str:
    reached = f"{short(point.tflops)} TFLOPS" if point.tflops is not None else "not measured"
    return f"{point.label}: {point.intensity:.3g} FLOP per byte, {reached}"


class _Sheet:
    """A figure whose fixed part is drawn once; the moving part is drawn over it each time."""

    def __init__(
        self,
        roofs: Sequence[Roof],
        peak: float,
        axis: str,
        ceilings,
        right: float,
        tensor_peak: float | None,
        *,
        below: float = 0,
    ):
        self.below, self.height = below, _HEIGHT + below
        self.figure = Figure(figsize=(WIDTH, self.height), dpi=DPI, facecolor=colours.PAPER)
        self.canvas = FigureCanvasAgg(self.figure)
        self.axes = self.figure.add_subplot()
        bottom, top = (0.92 + below) / self.height, 1 - 0.53 / self.height
        left = 0.13 if tensor_peak else 0.11  # room for the label 1000
        self.figure.subplots_adjust(left=left, bottom=bottom, right=0.98, top=top)
        self._scales(axis, right, _HIGH_WITH_TENSOR_CORES if tensor_peak else _HIGH)
        self._lines(roofs, peak, ceilings, right, tensor_peak)
        self._flat = [value for _, value in ceilings]
        self.axes.legend(fontsize=10, loc="lower right", framealpha=1)
        self.canvas.draw()
        self._fixed = self.canvas.copy_from_bbox(self.figure.bbox)

    def _scales(self, axis: str, right: float, high: float) -> None:
        self.axes.set(xscale="log", yscale="log", xlim=(_LEFT, right), ylim=(_LOW, high))
        for each in (self.axes.xaxis, self.axes.yaxis):
            marks = [mark for mark in (0.1, 1, 10, 100, 1000) if mark <= right or each is self.axes.yaxis]
            each.set_minor_locator(NullLocator())
            each.set_major_locator(FixedLocator(marks))
            each.set_major_formatter(FixedFormatter([f"{mark:g}" for mark in marks]))
        self.axes.set_xlabel(axis, **STYLE)
        self.axes.set_ylabel("TFLOPS", **STYLE)
        self.axes.tick_params(labelsize=11)
        self.axes.grid(True, color="#E3E6EA")

    def _lines(
        self, roofs: Sequence[Roof], peak: float, ceilings, right: float, tensor_peak: float | None
    ) -> None:
        highest = tensor_peak or peak
        for place, roof in enumerate(roofs):
            speed = roof.terabytes_per_second
            xs, ys = [_LEFT, highest / speed, right], [_LEFT * speed, highest, highest]
            style = ("-", "--", "-.", ":")[place % 4]
            label = f"{roof.label}: {speed:.3g} TB/s"
            self.axes.plot(xs, ys, color=colours.QUIET, linewidth=1.4, linestyle=style, label=label)
        self.axes.axhline(peak, color=colours.INK, linewidth=1.6, label=f"FP32 peak: {peak:.3g} TFLOPS")
        if tensor_peak:
            label = f"FP16 Tensor Core peak: {tensor_peak:.3g}"
            self.axes.axhline(tensor_peak, color=colours.INK, linewidth=1.6, linestyle="--", label=label)
        for place, (label, value) in enumerate(ceilings):
            style = ("--", ":", "-.")[place % 3]
            self.axes.axhline(
                value, color=colours.B, linewidth=1.4, linestyle=style, label=f"{label}: {value:.3g}"
            )

    def just_above(self, point: Point) -> bool:
        """Whether a ceiling would run through a label above a point, and none through one beside it."""
        near = [value / point.tflops for value in self._flat]
        return any(1.08 < ratio < 2 for ratio in near) and not any(0.8 < ratio < 1.08 for ratio in near)

    def render(self, artists: Sequence) -> bytes:
        """Draw ``artists`` over the fixed part, return a PNG of both, and remove them again."""
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
    """Make the artists of one picture: title, note, the trail, and a marker and label for every point."""
    axes = sheet.axes
    artists = _headings(sheet, title, note, under_title)
    measured = [point for point in points if point.tflops]
    xs, ys = [point.intensity for point in measured], [point.tflops for point in measured]
    artists += axes.plot(xs, ys, color=colours.C, linewidth=1, linestyle=":")
    for place, point in enumerate(points):
        neighbours = [p.intensity for p in points if point.intensity < p.intensity < 10 * point.intensity]
        to_the_left = point.intensity > 8 or (point.intensity > 0.5 and bool(neighbours))
        if point.tflops:
            beside = sheet.just_above(point) and not _crowded(point, measured)
            artists += _marked(axes, point, place, to_the_left, beside)
        else:
            artists += _unmeasured(axes, point)
    return artists


def _crowded(point: Point, measured: Sequence[Point]) -> bool:
    """Whether the label of another point would stand where one beside this point would."""
    return any(other is not point and 0.75 < other.tflops / point.tflops < 1.3 for other in measured)


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
        bbox=CLEAR,
        **STYLE,
    )
    return [line, label]


def _marked(axes, point: Point, place: int, to_the_left: bool, beside: bool) -> list:
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
        f"{point.label} {short(point.tflops)}",
        (point.intensity, point.tflops),
        (-12 if to_the_left else 12, -4)
        if point.now and beside
        else (-9 if to_the_left else 9, 8 if point.now else -12),
        textcoords="offset points",
        ha="right" if to_the_left else "left",
        fontweight="bold" if point.now else "normal",
        bbox=CLEAR,
        **STYLE,
    )
    return [dot, label]


def _headings(sheet: _Sheet, title: str, note: str, under_title: str) -> list:
    """Write the title, a quiet line under it and the note at the bottom."""
    text, inch = sheet.figure.text, 1 / sheet.height
    return [
        text(0.02, 1 - 0.22 * inch, title, fontsize=13, fontweight="bold", color=colours.INK),
        text(0.02, 1 - 0.44 * inch, under_title, fontsize=10.5, color=colours.QUIET),
        text(0.5, 0.09 * inch, textwrap.fill(note, NOTE), fontsize=10, color=colours.QUIET, ha="center"),
    ]


def _key(sheet: _Sheet, points: Sequence[Point], lines: int) -> list:
    """Write what the numbers mean below the axes, in two columns."""
    top, inch = 0.27 + sheet.below, 1 / sheet.height
    artists = []
    for place, point in enumerate(points):
        reached = short(point.tflops) if point.tflops else "not measured yet"
        x, y = 0.05 + 0.48 * (place // lines), (top - 0.2 * (place % lines)) * inch
        weight = "bold" if point.now else "normal"
        words = f"{place + 1}  {point.label}: {reached}"
        artists.append(sheet.figure.text(x, y, words, fontsize=10.5, color=colours.INK, fontweight=weight))
    return artists


_ASIDE = [
    (radius * x, radius * y)
    for radius in (15, 24, 33, 42)
    for x, y in ((1, 0), (0.7, 0.7), (0.7, -0.7), (0, 1), (0, -1), (-0.7, 0.7), (-0.7, -0.7), (-1, 0))
]  # where a dot's number may stand, in points from it: the first free place is taken


def _spread(sheet: _Sheet, points: Sequence[Point]) -> list[tuple[float, float]]:
    """Return for every point where its number stands: beside its dot, clear of the others and the legend."""
    scale = 72 / DPI
    dots = [
        sheet.axes.transData.transform((point.intensity, point.tflops or _LOW)) * scale for point in points
    ]
    legend = sheet.axes.get_legend().get_window_extent().padded(8 / scale)
    taken, chosen = list(dots), []
    for dot in dots:
        free = (
            aside
            for aside in _ASIDE
            if all(np.hypot(*(dot + aside - other)) > 13 for other in taken)
            and not legend.contains(*((dot + aside) / scale))
        )
        aside = next(free, _ASIDE[-1])
        taken.append(dot + aside)
        chosen.append(aside)
    return chosen


def _numbered(axes, point: Point, number: int, aside: tuple[float, float]) -> list:
    fill = colours.NOW if point.now else colours.C
    (dot,) = axes.plot(
        point.intensity, point.tflops, marker="o", markersize=6, color=fill, markeredgecolor=colours.INK
    )
    label = axes.annotate(
        str(number),
        (point.intensity, point.tflops),
        aside,
        textcoords="offset points",
        ha="center",
        va="center",
        fontweight="bold" if point.now else "normal",
        arrowprops={"arrowstyle": "-", "color": colours.QUIET, "linewidth": 0.8, "shrinkA": 0, "shrinkB": 2},
        bbox=CLEAR,
        **STYLE,
    )
    return [label, dot]
