"""Pictures say in words what they show, are well-formed, and follow their data."""

import xml.etree.ElementTree as ElementTree
from functools import partial
from itertools import pairwise

import pytest

from gemm_course.figures import (
    charts,
    colours,
    counts,
    latency,
    memory,
    overlap,
    scatter,
    warp_memory,
    wavefronts,
)
from gemm_course.figures.banks import Tile
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import SMALL, Drawing, wrap
from gemm_course.model.requests import Request

SVG = "{http://www.w3.org/2000/svg}"


def request(array, op, place, leading_dimension, space="global", bits=32):
    """Make the request of a warp whose lane i touches place(i) = (row, column)."""
    lanes = [(lane, place(lane)) for lane in range(32)]
    size = bits // 8
    return Request(
        array,
        op,
        space,
        1,
        bits,
        tuple((lane, (r, c), (r * leading_dimension + c) * size) for lane, (r, c) in lanes),
    )


DOWN = request("A", "load", lambda lane: (lane, 5), 1024)
ALONG = request("B", "load", lambda lane: (7, lane), 1024)
SAME = request("B", "load", lambda lane: (7, 3), 1024)
SHIFTED = request("B", "load", lambda lane: (1, lane), 333)

FOURS = request("A", "load", lambda lane: (lane // 4, lane % 4), 4, bits=128)
SIDEWAYS = request("As", "store", lambda lane: (lane % 4 * 4, lane // 4), 20, "shared")
TILE = scatter.Tile(16, 16, 4, 32)
SCATTER = scatter.steps(
    [FOURS, SIDEWAYS], [{}, {lane: lane // 4 * 16 + lane % 4 * 4 for lane in range(32)}], TILE
)

CELLS = {
    "wavefronts of a wide load": partial(
        wavefronts.draw,
        request("Bs", "load", lambda i: (0, 2 * i), 32, "shared", 128),
        "load4(Bs, ...)",
        Tile("Bs", 8, 128),
    ),
    "wavefronts, misaligned": partial(
        wavefronts.draw,
        Request("As", "load", "shared", 1, 128, ((0, (1, 0), 520),)),
        "load4(As, ...)",
        Tile("As", 8, 130, 2),
    ),
    "wavefronts of a scatter": partial(wavefronts.draw, SIDEWAYS, "As[c + e, r]", Tile("As", 16, 20, 4)),
    "scatter, the load": partial(scatter.draw, SCATTER, 0, 5, TILE),
    "scatter, a store": partial(scatter.draw, SCATTER, 1, 31, TILE),
    "one request down": partial(warp_memory.draw, warp_memory.View("mine", DOWN, {}, 32, ())),
    "one request along": partial(warp_memory.draw, warp_memory.View("mine", ALONG, {}, 12, ("A fact.",))),
    "one request shifted": partial(warp_memory.draw, warp_memory.View("mine", SHIFTED, {}, 4, ())),
    "one request of fours": partial(warp_memory.draw, warp_memory.View("mine", FOURS, {}, 32, ())),
    "no request": partial(warp_memory.nothing, "mine", "load", "A"),
    "row major": partial(memory.row_major, (5, 13), 16, (2, 5)),
    "last element": partial(memory.row_major, (5, 13), 13, (4, 12)),
    "overlap": partial(overlap.timeline, 4, 12, 4),
    "counts": partial(
        counts.side_by_side, [("loads", {"formula": 8, "emulator": 8, "hardware": "not recorded"})], "Counted"
    ),
}


def sizes_of_letters(picture: Picture) -> list[float]:
    return [float(text.get("font-size")) for text in ElementTree.fromstring(picture.data).iter(f"{SVG}text")]


@pytest.mark.parametrize("name", CELLS)
def test_cell_pictures_are_well_formed_and_say_what_they_show(name):
    picture = CELLS[name]()
    root = ElementTree.fromstring(picture.data)
    title, description = root.find(f"{SVG}title").text, root.find(f"{SVG}desc").text
    assert title and description and len(description) > 20
    assert picture.alt.startswith(title)
    assert root.find(f"{SVG}rect").get("fill") == colours.PAPER
    assert min(sizes_of_letters(picture)) >= 12


@pytest.mark.parametrize("name", CELLS)
def test_cell_pictures_stay_on_the_page(name):
    root = ElementTree.fromstring(CELLS[name]().data)
    _, _, width, height = (float(v) for v in root.get("viewBox").split())
    for rect in root.iter(f"{SVG}rect"):
        if rect.get("x") is None:
            continue
        x, y, w, h = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
        assert -2 <= x and x + w <= width + 2 and -2 <= y and y + h <= height + 2


def test_requests_count_sectors_and_bytes():
    assert (len(DOWN.sectors), DOWN.moved_bytes, DOWN.useful_bytes) == (32, 1024, 128)
    assert (len(ALONG.sectors), ALONG.percent_used) == (4, 100)
    assert (len(SAME.sectors), SAME.useful_bytes) == (1, 4)
    assert len(SHIFTED.sectors) == 5
    assert len(request("A", "load", lambda lane: (0, lane), 64, bits=64).sectors) == 8


def test_an_address_is_computed_from_the_leading_dimension():
    picture = memory.row_major((5, 13), 16, (2, 5))
    assert "byte 148: sector 4, line 1" in picture.alt


@pytest.mark.parametrize(("warps", "busy"), [(1, 8 / 64), (8, 1.0), (16, 1.0)])
def test_the_schedule_issues_one_instruction_per_clock(warps, busy):
    clocks = 64
    story = latency.schedule(warps, 4, 28, clocks)
    for clock in range(clocks):
        assert sum(row[clock] == "work" for row in story) <= 1
    issued = sum(any(row[clock] == "work" for row in story) for clock in range(clocks))
    assert issued / clocks == pytest.approx(busy, abs=0.02)


def test_a_warp_waits_as_long_as_memory_takes():
    row = latency.schedule(1, 4, 28, 64)[0]
    assert row[:32] == ["work"] * 4 + ["wait"] * 28


@pytest.mark.parametrize(("slots", "copy", "busy"), [(1, 6, 0.4), (2, 6, 0.8), (4, 12, 1.0), (2, 4, 1.0)])
def test_copies_and_products_overlap_as_far_as_slots_allow(slots, copy, busy):
    story = overlap.schedule(slots, copy, 4)
    assert all(later.begun >= tile.done for tile, later in pairwise(story))
    assert all(later.asked >= tile.done for tile, later in zip(story, story[slots:]))
    whole = story[slots:-slots]
    assert 4 * len(whole) / (story[-slots].begun - whole[0].begun) == pytest.approx(busy, abs=0.02)
    assert overlap.share(slots, copy, 4) == busy


def test_tflops_start_at_zero_and_name_what_they_show():
    bars = [charts.Bar("v00", 0.5), charts.Bar("v01", 2.87, True)]
    picture = charts.tflops(bars, "5.7 times", "NVIDIA H200", lines=[("cuBLAS", 51.4)])
    assert "<text" in picture.data and ">v01<" in picture.data
    for part in ("v00 0.5", "v01 2.87", "cuBLAS 51.4", "NVIDIA H200"):
        assert part in picture.alt


def test_counts_say_whether_they_agree():
    equal = counts.side_by_side([("loads", {"formula": 8, "emulator": 8})], "t").data
    other = counts.side_by_side([("loads", {"formula": 8, "emulator": 9})], "t").data
    assert "equal" in equal and "they differ" in other


def test_html_keeps_the_alt_text_and_needs_no_script():
    html = Picture("<svg/>", 'a "quoted" <alt>').html()
    assert 'alt="a &quot;quoted&quot; &lt;alt&gt;"' in html and "data:image/svg+xml;base64," in html


def test_text_is_wrapped_to_the_page():
    lines = wrap("one two three four five six seven eight nine ten", SMALL, 120)
    assert (
        len(lines) > 1
        and " ".join(lines).split() == "one two three four five six seven eight nine ten".split()
    )


def test_a_drawing_grows_with_what_is_drawn():
    drawing = Drawing("title")
    drawing.rect(0, 500, 10, 10, "#000000")
    assert float(ElementTree.fromstring(drawing.picture("d").data).get("viewBox").split()[3]) > 500


@pytest.mark.parametrize("fill", [colours.A, colours.B, colours.C, colours.IDLE, colours.NOW, colours.MOVED])
def test_text_can_be_read_on_every_colour(fill):
    assert colours.text_on(fill) in (colours.INK, colours.PAPER)
