"""Bars of a warp's time: as long as was measured, each part explained, legible however many there are."""

import random
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemm_course.figures import colours, waits
from gemm_course.figures.picture import Picture
from gemm_course.figures.waits import DETAILED, GOOD, OTHER, SHOWN, Bar, percent
from gemm_course.kernels import LADDER, tiles_text
from gemm_course.profiles import WAITS
from tests.figures.page import SVG, faults

BAR = Bar(
    "mine",
    "BM=16",
    {
        "issuing": 0.05,
        "another warp's turn": 0.2,
        "queue to shared memory": 0.6,
        "barrier": 0.14,
        "dispatch": 0.01,
    },
    15.3,
    warps=15.9,
    issues=0.56,
    units=0.2,
    busiest=("L1 and shared memory", 0.91),
)
FIGURES = st.lists(st.floats(0, 1), min_size=len(WAITS), max_size=len(WAITS)).filter(
    lambda row: sum(row) > 0.1
)


def made_up(label: str, seed: int, tiles: str = "") -> Bar:
    numbers = random.Random(seed)
    found = {name: numbers.random() ** 4 for name in WAITS}
    shares = {name: value / sum(found.values()) for name, value in found.items()}
    return Bar(label, tiles, shares, 999.6, 16.0, 1.0, "Tensor Cores", 1.0, ("L1's way to registers", 1.0))


def parts_of(picture: Picture) -> dict[str, float]:
    """The drawn parts of bars and their widths, by tooltip."""
    rects = ElementTree.fromstring(picture.data).iter(f"{SVG}rect")
    return {
        title.text: float(rect.get("width"))
        for rect in rects
        if (title := rect.find(f"{SVG}title")) is not None
    }


@given(FIGURES)
def test_the_parts_of_a_bar_are_the_whole_and_none_is_small(row):
    shares = dict(zip(WAITS, (value / sum(row) for value in row), strict=True))
    parts = Bar("mine", "", shares).parts
    assert sum(parts.values()) == pytest.approx(1)
    assert all(share >= SHOWN and share == shares[name] for name, share in parts.items() if name != OTHER)
    small = sum(share for name, share in shares.items() if share < SHOWN and name != OTHER)
    assert parts.get(OTHER, 0) == pytest.approx(shares[OTHER] + small)


def test_parts_are_as_wide_as_they_were_long():
    widths = parts_of(waits.waits([BAR], "t", "n"))
    whole = sum(widths.values())
    expected = {"issuing 5": 0.05, "queue to shared memory 60": 0.6, "barrier 14": 0.14, "other 1": 0.01}
    for words, share in expected.items():
        assert widths[f"{words}\u00a0%"] / whole == pytest.approx(share, abs=1e-4)
    assert not any(name.startswith("dispatch") for name in widths)


def test_what_is_waiting_and_what_is_not():
    assert GOOD == ("issuing", "another warp's turn")
    assert BAR.waiting == pytest.approx(0.75)


def test_the_scheduler_stands_below_the_warp_and_the_time_beside():
    picture = waits.waits([BAR], "t", "n")
    assert (
        "scheduler (15.9 warps): 56\u00a0%" in picture.data
        and "L1 and shared memory: 91\u00a0%" in picture.data
    )
    assert ">15.3 ms<" in picture.data
    assert "its scheduler with 15.9 warps issues in 56 % of the clocks" in picture.alt
    assert "A warp's time is not the kernel's" in re.sub(r"<[^>]*>", " ", picture.data).replace("&#x27;", "'")


def test_what_was_not_measured_is_left_out():
    bare = Bar("mine", "", BAR.shares)
    for count in (1, DETAILED + 1):
        picture = waits.waits([bare] * count, "t", "n")
        assert "None" not in picture.data and "None" not in picture.alt and " ms" not in picture.alt
        assert not faults(picture)


@pytest.mark.parametrize("count", [1, 2, DETAILED, DETAILED + 1, len(LADDER)])
@pytest.mark.parametrize("tiles", [False, True])
def test_any_number_of_bars_is_legible(count, tiles):
    longest = max((tiles_text(stage.complete()) for stage in LADDER), key=len)
    stages = list(LADDER)[-count:]
    bars = [made_up(stage.name, seed, longest if tiles else "") for seed, stage in enumerate(stages)]
    picture = waits.waits(bars, "A title " * 12, "A note " * 20)
    assert not faults(picture)
    for bar in bars:
        assert f">{bar.label}<" in picture.data and bar.label in picture.alt
        assert bar.tiles in picture.alt


@pytest.mark.parametrize("count", [1, 2, DETAILED + 1])
def test_a_label_with_tiles_is_legible(count):
    label = "stream_k_fp16 BM=128 SLOTS=4 PARTS=4"
    assert not faults(waits.waits([made_up(label, 1, "BM=128 BN=256 BK=64 WM=64 SLOTS=4")] * count, "t", "n"))


def test_only_what_occurs_is_explained_the_largest_first():
    said = waits.waits([BAR, replace(BAR, label="other one")], "t", "n").alt.split("What it means: ")[1]
    order = "issuing", "another warp's turn", "queue to shared memory", "barrier", "other"
    places = [said.index(f"{name}: ") for name in order]
    assert places == sorted(places)
    assert "fixed delay:" not in said and "dispatch:" not in said
    assert "and all that is under 2 %" in said


def test_a_kind_too_small_to_draw_is_not_told_as_none():
    without = replace(BAR, shares={**BAR.shares, "barrier": 0.01, "global memory": 0.13})
    picture = waits.waits([BAR, without], "t", "n").data
    assert ">14\u00a0% → under 2\u00a0%<" in picture and ">none → 13\u00a0%<" in picture


def test_with_many_bars_the_largest_is_named():
    most = replace(BAR, label="worst", shares={"barrier": 0.9, "issuing": 0.1})
    picture = waits.waits([BAR, most, BAR], "t", "n").data
    assert ">most: 90\u00a0%, worst<" in picture


@pytest.mark.parametrize("name", WAITS)
def test_each_wait_has_a_colour_of_its_own_on_which_its_letter_can_be_read(name):
    fill = colours.OF_WAIT[name]
    assert list(colours.OF_WAIT.values()).count(fill) == 1
    light, dark = sorted((luminance(fill), luminance(colours.text_on(fill))), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def luminance(colour: str) -> float:
    """As WCAG 2 defines it."""
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("wait", WAITS.values(), ids=lambda wait: wait.name)
def test_every_wait_is_explained(wait):
    assert set(colours.OF_WAIT) == set(WAITS)
    assert len(wait.meaning) > 15 and not wait.meaning.endswith(".")
    assert wait.help or wait.name == OTHER
    assert wait.waits.startswith(("for ", "at ")) or wait.name in GOOD
    told = waits.explained(wait.name)
    assert told.endswith(".") and ("Helps: " in told) == (wait.name not in (*GOOD, OTHER))


def test_percentages_do_not_break_and_small_ones_are_not_zero():
    assert [percent(share) for share in (0, 0.004, 0.2449, 1)] == [
        "0\u00a0%",
        "0.4\u00a0%",
        "24\u00a0%",
        "100\u00a0%",
    ]
