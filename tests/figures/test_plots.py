"""Plots by Matplotlib: part of the drawing, alike everywhere, and loaded only where one is drawn."""

import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import matplotlib
import pytest

from gemm_course.figures import charts, colours, plots
from gemm_course.figures.svg import SMALL, Drawing
from tests.figures.page import SVG, faults, texts

BARS = [charts.Bar("v00", 0.5), charts.Bar("v01", 2.87, True), charts.Bar("v02", None)]
LOADED = """
import sys
from gemm_course.widgets import _charts, _ladder, _roofline, _row_lengths, _tiles
print("matplotlib" in sys.modules)
"""


def chart():
    return charts.tflops(BARS, "title", "note", lines=[("cuBLAS", 2.0)])


def shapes(drawing, kind):
    return list(ElementTree.fromstring(drawing.picture("words").data).iter(f"{SVG}{kind}"))


def test_nothing_loads_matplotlib_before_a_plot_is_drawn():
    said = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True).stdout
    assert said.split() == ["False"]


def test_a_learners_own_settings_change_nothing_and_stay():
    before = chart().data
    with matplotlib.rc_context({"font.size": 40, "axes.grid": True, "axes.facecolor": "red"}):
        assert chart().data == before
        assert matplotlib.rcParams["font.size"] == 40


def test_a_plot_has_the_text_and_the_colours_of_all_pictures():
    picture = chart()
    words = {text for text, *_ in texts(picture)}
    assert {"title", "v00", "2.87", "not measured yet", "cuBLAS 2", "TFLOPS", "2.5"} <= words
    assert faults(picture) == []
    known = {value for value in vars(colours).values() if isinstance(value, str)}
    root = ElementTree.fromstring(picture.data)
    drawn = {shape.get(key) for shape in root.iter() for key in ("fill", "stroke")}
    assert drawn - {None, "none"} <= known
    assert not root.findall(f".//{SVG}style")


def test_values_are_where_the_scale_says():
    drawing = Drawing("title")
    with plots.axes(drawing, 100, 50, 200, 80) as axes:
        axes.set(xscale="log", xlim=(1, 100), ylim=(0, 8))
        axes.set_axis_off()
        axes.plot([10], [2], "o", color=colours.NOW, markeredgecolor=colours.INK, markersize=12)
        axes.barh(6, 9, 2, left=1, **plots.BAR_NOW)
        assert plots.on_page(axes, 10, 2) == pytest.approx((200, 110))
    (dot,) = shapes(drawing, "circle")
    assert [float(dot.get(key)) for key in ("cx", "cy", "r")] == [200, 110, 6]
    bar = next(rect for rect in shapes(drawing, "rect") if rect.get("fill") == colours.NOW)
    assert [float(bar.get(key)) for key in ("x", "y", "width", "height")] == [100, 60, 100, 20]
    assert (bar.get("stroke"), bar.get("stroke-width")) == (colours.INK, "2")


def test_text_keeps_its_anchor_and_its_angle():
    drawing = Drawing("title")
    with plots.axes(drawing, 100, 50, 200, 80) as axes:
        axes.set(xlim=(0, 1), ylim=(0, 1))
        axes.set_axis_off()
        for side in ("left", "center", "right"):
            axes.text(0.5, 0.5, side, ha=side, va="baseline")
        axes.text(0.5, 0.5, "turned", rotation=90, fontweight="bold")
    found = {"".join(text.itertext()): text for text in shapes(drawing, "text")}
    for side, anchor in (("left", "start"), ("center", "middle"), ("right", "end")):
        text = found[side]
        assert (text.get("x"), text.get("y"), text.get("text-anchor")) == ("200", "90", anchor)
        assert text.get("font-size") == str(SMALL)
    assert found["turned"].get("transform").startswith("rotate(-90 ")
    assert found["turned"].get("font-weight") == "bold"


def test_mathematical_text_is_refused():
    with (
        pytest.raises(NotImplementedError, match="no mathematical text"),
        plots.axes(Drawing("title"), 0, 0, 100, 100) as axes,
    ):
        axes.set_title("$x^2$")


@pytest.mark.parametrize(
    ("count", "words"), [(131072, "131 072"), (7.0, "7"), (2.5, "2.5"), (4294967296, "4 294 967 296")]
)
def test_counts_are_written_in_thousands(count, words):
    assert plots.in_thousands(count) == words


@pytest.mark.parametrize(("tflops", "words"), [(0.4982, "0.5"), (6.571, "6.57"), (756.3, "756")])
def test_figures_have_three_digits(tflops, words):
    assert plots.three_digits(tflops) == words
