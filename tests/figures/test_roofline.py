"""Rooflines: names can be read, no mark is hidden, the point comes from where the last stage stands."""

import math
import re
import xml.etree.ElementTree as ElementTree
from itertools import combinations, pairwise

import pytest

from gemm_course import widgets as see
from gemm_course.figures import colours, roofline
from gemm_course.figures.placing import Box, apart, faults, first_free, meet
from gemm_course.figures.roofline import Lines, Point, Roof
from gemm_course.kernels import LADDER
from gemm_course.widgets import _roofline, _tiles
from tests.figures.page import SVG, width_of

TRAILS = (
    ("naive_uncoalesced", "naive_coalesced"),
    ("naive_uncoalesced", "naive_coalesced", "block_tiled"),
    ("naive_coalesced", "block_tiled", "thread_tiled_1d"),
    ("block_tiled", "thread_tiled_1d", "thread_tiled_2d"),
    ("thread_tiled_1d", "thread_tiled_2d", "vectorized"),
    ("thread_tiled_2d", "vectorized", "warp_tiled"),
    ("warp_tiled", "wmma"),
)
STATES = [(trail, name) for trail in TRAILS for name in trail]
H200 = Lines([Roof("DRAM", 4.8), Roof("L1", 33)], 67, ceilings=[("issue slots", 30.0)], lowest="issue slots")


@pytest.fixture(params=STATES, ids=lambda state: f"{state[1]} of {len(state[0])} in {state[0][-1]}")
def picture(request):
    return _roofline.moved(*request.param)


def shapes(picture):
    return ElementTree.fromstring(picture.data)


def names(picture):
    """Each text with its place, turned as it is."""
    for text in shapes(picture).iter(f"{SVG}text"):
        words, size = "".join(text.itertext()), float(text.get("font-size"))
        wide = width_of(words, size, text.get("font-weight") == "bold")
        x, y = float(text.get("x")), float(text.get("y"))
        x += {"start": wide / 2, "middle": 0, "end": -wide / 2}[text.get("text-anchor")]
        turned = float(re.findall(r"[-\d.]+", text.get("transform", "0"))[0])
        along = math.radians(turned)
        up = 0.35 * size  # from the baseline to the middle of a small letter
        yield words, Box(x + up * math.sin(along), y - up * math.cos(along), wide, 0.7 * size, turned)


def roofs(picture):
    """The roofs, the lines from names to marks, the path of the point, and the frame."""
    strokes = (colours.QUIET, colours.INK, colours.LIMIT)
    for path in shapes(picture).iter(f"{SVG}path"):
        if path.get("stroke") in strokes:
            spots = [tuple(map(float, spot.split())) for spot in path.get("d")[1:].split("L")]
            yield from pairwise(spots)
    for line in shapes(picture).iter(f"{SVG}line"):
        if line.get("stroke") in strokes:
            yield tuple((float(line.get(f"x{end}")), float(line.get(f"y{end}"))) for end in (1, 2))


def marks(picture):
    return [
        (float(mark.get("cx")), float(mark.get("cy")), float(mark.get("r")), mark)
        for mark in shapes(picture).iter(f"{SVG}circle")
    ]


@pytest.mark.many(one_in=4)
def test_no_name_lies_over_a_line_a_mark_or_another_name(picture):
    written = list(names(picture))
    for words, box in written:
        assert not [line for line in roofs(picture) if meet(box.corners, line)], words
        for x, y, radius, _ in marks(picture):
            assert not meet(box.corners, Box(x, y, 2 * radius, 2 * radius).corners), words
    for (one, box), (other, place) in combinations(written, 2):
        assert not meet(box.corners, place.corners), (one, other)


@pytest.mark.many(one_in=4)
def test_no_mark_hides_another(picture):
    """A disc inside a ring leaves the ring to be seen."""
    for (x1, y1, r1, one), (x2, y2, r2, other) in combinations(marks(picture), 2):
        ring = {mark.get("fill") for mark in (one, other)} == {"none", colours.NOW}
        assert (ring and abs(r1 - r2) >= 3) or math.dist((x1, y1), (x2, y2)) > r1 + r2


@pytest.mark.many(one_in=4)
def test_every_name_is_on_the_page(picture):
    width, height = (float(side) for side in shapes(picture).get("viewBox").split()[2:])
    for words, box in names(picture):
        assert all(0 <= x <= width and 0 <= y <= height for x, y in box.corners), words


@pytest.mark.parametrize("trail", TRAILS, ids=lambda trail: trail[-1])
def test_the_pictures_of_a_trail_are_equally_high_and_to_the_same_scale(trail):
    pictures = [_roofline.moved(trail, name) for name in trail]
    assert len({shapes(each).get("viewBox") for each in pictures}) == 1
    here = {name: marks(each)[-1][:2] for name, each in zip(trail, pictures, strict=True)}
    for before, after, each in zip(trail, trail[1:], pictures[1:], strict=False):
        assert marks(each)[0][:2] == here[before] and marks(each)[-1][:2] == here[after]


@pytest.mark.parametrize("trail", TRAILS, ids=lambda trail: trail[-1])
def test_the_point_comes_from_where_the_stage_before_stands(trail):
    assert "animation" not in _roofline.moved(trail, trail[0]).data
    picture = _roofline.moved(trail, trail[-1])
    (x0, y0, _, ring), (x1, y1, _, disc) = marks(picture)
    moved = re.search(
        rf"@keyframes {disc.get('class')}{{from{{transform:translate\((.*?)px,(.*?)px", picture.data
    )
    assert [float(way) for way in moved.groups()] == pytest.approx([x0 - x1, y0 - y1], abs=0.02)
    assert ring.get("class") is None and "prefers-reduced-motion" in picture.data


@pytest.mark.many(one_in=4)
@pytest.mark.parametrize(("trail", "name"), STATES, ids=lambda each: each if isinstance(each, str) else "")
def test_the_title_names_the_lowest_roof_and_it_stands_out(trail, name):
    picture = _roofline.moved(trail, name)
    share, roof, height = re.match(
        rf"{name} reaches (\d+)\u00a0% of its lowest roof: (.*), ([\d.]+)\u00a0TFLOPS\.", picture.alt
    ).groups()
    reached = float(re.search(rf"{name}: [\d.]+ FLOP per byte, ([\d.]+) TFLOPS", picture.alt).group(1))
    assert abs(100 * reached / float(height) - int(share)) <= 1
    bold = " ".join(
        "".join(text.itertext())
        for text in shapes(picture).iter(f"{SVG}text")
        if text.get("font-weight") == "bold" and text.get("font-size") == "13"
    )
    assert roof in bold
    assert picture.data.count(colours.LIMIT) == 1


def test_a_stage_is_compared_with_the_one_before():
    alt = _roofline.moved(TRAILS[0], "naive_coalesced").alt
    assert "13.2 times as fast as naive_uncoalesced, with 6.6 times the FLOP per byte." in alt


def test_a_roofline_says_what_it_shows():
    points = [Point("v00", 0.06, 0.5), Point("yours", 8, None, True)]
    alt = roofline.roofline(H200, points, "Where it stands", "NVIDIA H200").alt
    for part in (
        "DRAM 4.8 TB/s",
        "issue slots: 30 TFLOPS",
        "v00: 0.06 FLOP per byte, 0.5 TFLOPS",
        "yours: 8 FLOP per byte, not measured",
    ):
        assert part in alt


def test_the_whole_ladder_has_a_number_for_each_dot():
    picture = see.roofline(until="wmma")
    numbers = [words for words, _ in names(picture) if words.isdigit() and len(words) < 3]
    dots = len(marks(picture))
    assert dots == len([stage for stage in LADDER if f" {stage.name}:" in picture.alt])
    assert {str(number) for number in range(1, dots + 1)} <= set(numbers)


def test_tiles_that_were_not_measured_are_a_line():
    legal = next(
        tiles
        for tiles in LADDER["vectorized"].legal_choices()
        if _tiles.sweep.speed(LADDER["vectorized"], tiles) is None
    )
    picture = _tiles.on_roofline(LADDER["vectorized"], legal)
    assert "these tiles:" in picture.alt and "not measured" in picture.alt
    assert len(marks(picture)) == 1 and "dasharray" in picture.data


# ---- finding places -------------------------------------------------------------------------------

SQUARE = Box(0, 0, 10, 10)


@pytest.mark.parametrize(
    ("other", "touch"),
    [
        (Box(9, 0, 10, 10).corners, True),
        (Box(11, 0, 10, 10).corners, False),
        (Box(9.5, 9.5, 8, 8, 45).corners, False),  # its upright box would touch
        (Box(7.5, 7.5, 8, 8, 45).corners, True),
        ([(-20, 0), (20, 0)], True),
        ([(-20, 14), (14, -20)], True),
        ([(-20, 31), (31, -20)], False),
    ],
)
def test_shapes_meet_or_do_not(other, touch):
    assert meet(SQUARE.corners, other) is touch and meet(other, SQUARE.corners) is touch


def test_a_label_goes_to_the_first_free_place():
    frame, taken = Box(0, 0, 100, 100), [Box(0, 0, 10, 10).corners]
    spots = [Box(48, 0, 10, 10), Box(5, 0, 10, 10), Box(20, 0, 10, 10), Box(30, 0, 10, 10)]
    assert first_free(spots, lambda box: faults(box, frame, taken)) is spots[2]
    assert first_free(spots[:2], lambda box: faults(box, frame, taken)) is spots[1]
    with pytest.raises(ValueError, match="no candidate"):
        first_free([], lambda box: 0)


def test_labels_in_a_column_stand_apart():
    assert apart([0, 5, 40], [10, 10, 10], 100) == [0, 10, 40]
    assert apart([80, 95, 96], [10, 10, 10], 100) == [70, 80, 90]
