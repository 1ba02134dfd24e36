"""Draws Matplotlib's figures onto a `Drawing`, as a renderer in Matplotlib's sense.

It supports what the course's plots use, and writes the shapes of `gemm_course.figures.svg`: rectangles,
straight lines, circles and text. So a plot has the same fonts and sizes as all pictures, equal plots are
equal texts, and tests can read them. Round markers become circles, and all other curves become straight
lines. Mathematical text and images are not supported.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.path import Path

from gemm_course.figures.svg import PAGE, Drawing, text_width

# A line of text reaches this far above and below its baseline, as shares of the font's size.
_ASCENT, _DESCENT = 0.73, 0.2
_DEFAULTS = {name: value for name, value in matplotlib.rcParamsDefault.items() if "backend" not in name}
_ANCHORS = {"left": ("start", 0.0), "center": ("middle", 0.5), "right": ("end", 1.0)}


@contextmanager
def plotted(
    drawing: Drawing, frame: tuple[float, float, float, float], style: Mapping[str, Any]
) -> Iterator[Axes]:
    """Yield axes in a frame (left, top, width, height) of a drawing, and draw them when the block ends."""
    left, top, width, height = frame
    with matplotlib.rc_context({**_DEFAULTS, **style}):
        # The figure's upper edge is the page's. Its lower edge does not matter, because nothing is cut off.
        figure = Figure(figsize=(PAGE / 72, PAGE / 72))
        axes = figure.add_axes((left / PAGE, 1 - (top + height) / PAGE, width / PAGE, height / PAGE))
        yield axes
        figure.draw(_Renderer(drawing))


class _Renderer(RendererBase):
    """A Matplotlib renderer that writes shapes of a drawing. One point is one unit of the page."""

    def __init__(self, drawing: Drawing):
        super().__init__()
        self._drawing = drawing

    def get_canvas_width_height(self):
        return PAGE, PAGE

    def points_to_pixels(self, points):
        return points

    def draw_path(self, gc, path, transform, rgbFace=None):
        look = _look(gc, rgbFace)
        for polygon in path.to_polygons(transform, closed_only=False):
            points = [(float(x), float(PAGE - y)) for x, y in polygon]
            self._shape(points, closed=path.codes is not None and Path.CLOSEPOLY in path.codes, **look)

    def _shape(self, points, *, closed, fill, stroke, line, dash):
        if fill == stroke == "none" or len(points) < 2:
            return
        xs, ys = ({round(each, 3) for each in axis} for axis in zip(*points, strict=True))
        if closed and len(xs) == len(ys) == 2:
            x, y = min(xs), min(ys)
            self._drawing.rect(x, y, max(xs) - x, max(ys) - y, fill, stroke=stroke, line=line, dash=dash)
        elif len(points) == 2:
            self._drawing.line(*points[0], *points[1], stroke=stroke, width=line, dash=dash)
        else:
            self._drawing.path(points, fill=fill, stroke=stroke, line=line, dash=dash)

    def draw_markers(self, gc, marker_path, marker_trans, path, trans, rgbFace=None):
        if marker_path.codes is None or Path.CURVE4 not in marker_path.codes:
            super().draw_markers(gc, marker_path, marker_trans, path, trans, rgbFace)
            return
        radius, look = marker_path.get_extents(marker_trans).width / 2, _look(gc, rgbFace)
        for x, y in trans.transform(path.vertices):
            self._drawing.circle(float(x), float(PAGE - y), radius, **look)

    def draw_text(self, gc, x, y, s, prop, angle, ismath=False, mtext=None):
        if ismath:
            raise NotImplementedError(f"a plot has no mathematical text: {s}")
        size, bold = _font(prop)
        anchor, part = _ANCHORS[mtext.get_horizontalalignment() if mtext else "left"]
        if angle:
            anchor, part = "start", 0.0
        wide, along = part * text_width(s, size, bold=bold), math.radians(angle)
        self._drawing.text(
            float(x) + wide * math.cos(along),
            float(y) - wide * math.sin(along),
            s,
            size=f"{size:g}",
            fill=_hex(gc.get_rgb()),
            anchor=anchor,
            bold=bold,
            turned=-angle,
        )

    def get_text_width_height_descent(self, s, prop, ismath):
        size, bold = _font(prop)
        return text_width(s, size, bold=bold), (_ASCENT + _DESCENT) * size, _DESCENT * size


def _font(prop) -> tuple[float, bool]:
    return prop.get_size_in_points(), prop.get_weight() in ("bold", 700)


def _look(gc, face) -> dict[str, Any]:
    """Return fill, outline, line width and dashes with the names that `Drawing` gives them."""
    line, dashes = gc.get_linewidth(), gc.get_dashes()[1]
    return {
        "fill": "none" if face is None or (len(face) == 4 and not face[3]) else _hex(face),
        "stroke": _hex(gc.get_rgb()) if line and gc.get_rgb()[3] else "none",
        "line": line,
        "dash": " ".join(f"{each:g}" for each in dashes or ()),
    }


def _hex(colour) -> str:
    return to_hex(colour).upper()
