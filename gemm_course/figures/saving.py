"""Writes a picture into a file: as the SVG that it is, or as PNG for a place that shows no SVG."""

from __future__ import annotations

import io
from pathlib import Path
from xml.etree import ElementTree

from gemm_course.figures.picture import Picture

_SVG = "{http://www.w3.org/2000/svg}"
# Dots per unit of the page. A point is a unit at 72 dots per inch.
_DOTS = 3
_NOT_DRAWN = (f"{_SVG}title", f"{_SVG}desc")


def saveable(file: str | Path) -> Path:
    """Return the path of a file to save a picture in. Raise ValueError unless it is called .svg or .png."""
    path = Path(file)
    if path.suffix.lower() not in (".svg", ".png"):
        raise ValueError(f"a card is saved as .svg or .png, not as {path.name!r}")
    if not path.parent.is_dir():
        raise ValueError(f"there is no folder {path.parent} to save {path.name} in")
    return path


def save_picture(picture: Picture, file: str | Path) -> None:
    """Write a picture. Raise ValueError as `saveable` does, or for a PNG of other shapes than a card has."""
    path = saveable(file)
    if path.suffix.lower() == ".svg":
        path.write_text(picture.data, encoding="utf-8")
    else:
        path.write_bytes(_png(picture.data))


def _png(svg: str) -> bytes:
    """Draw the rectangles, lines and texts of an SVG by Matplotlib."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.patches import Rectangle

    root = ElementTree.fromstring(svg)
    width, height = map(float, root.get("viewBox").split()[2:])
    figure = Figure(figsize=(width / 72, height / 72), dpi=72 * _DOTS)
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    for order, shape in enumerate(root):
        given = shape.attrib
        if shape.tag == f"{_SVG}rect":
            x, y, wide, high = (float(given.get(name, 0)) for name in ("x", "y", "width", "height"))
            line = {
                "edgecolor": given.get("stroke", "none"),
                "linewidth": float(given.get("stroke-width", 1)),
            }
            axes.add_patch(Rectangle((x, y), wide, high, facecolor=given["fill"], zorder=order, **line))
        elif shape.tag == f"{_SVG}line":
            (x1, y1, x2, y2) = (float(given[name]) for name in ("x1", "y1", "x2", "y2"))
            line = {"color": given["stroke"], "linewidth": float(given["stroke-width"])}
            if dash := given.get("stroke-dasharray"):
                line["linestyle"] = (0, tuple(float(part) for part in dash.split()))
            axes.plot((x1, x2), (y1, y2), zorder=order, **line)
        elif shape.tag == f"{_SVG}text":
            side = {"start": "left", "middle": "center", "end": "right"}[given["text-anchor"]]
            letters = {"size": float(given["font-size"]), "weight": given.get("font-weight", "normal")}
            place = float(given["x"]), float(given["y"])
            words = axes.text(*place, shape.text, ha=side, va="baseline", color=given["fill"], **letters)
            words.set(zorder=order, parse_math=False, family="DejaVu Sans")
        elif shape.tag not in _NOT_DRAWN:
            raise ValueError(f"a PNG has no {shape.tag.removeprefix(_SVG)}: save the picture as .svg")
    found = io.BytesIO()
    figure.savefig(found, format="png")
    return found.getvalue()
