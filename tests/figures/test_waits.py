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
    instructions=4.129,
    issues=0.56,
    units=0.2,
    limit="Busiest: L1 and shared memory, busy in 91\u00a0% of the clocks",
)
FIGURES = st.lists(st.floats(0, 1), min_size=len(WAITS), max_size=len(WAITS)).filter(
    lambda row: sum(row) > 0.1
)


def made_up(label: str, seed: int, tiles: str = "") -> Bar:
    numbers = random.Random(seed)
    found = {name: numbers.random() ** 4 for name in WAITS}
    shares = {name: value / sum(found.values()) for name, value in found.items()}
    limit = "waiting, 100\u00a0% of a warp's time for the result of an instruction just before"
    known = {
        "warps": 16.0,
        "instructions": 7.77,
        "issues": 1.0,
        "units": 1.0,
        "limit": limit,
        "precision": "FP16",
    }
    return Bar(label, tiles, shares, 999.6, **known, computing="Tensor Cores")


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
    parts = Bar("mine", "", shares).parts()
    assert sum(parts.values()) == pytest.approx(1)
    assert all(share >= SHOWN and share == shares[name] for name, share in parts.items() if name != OTHER)
    small = sum(share for name, share in shares.items() if share < SHOWN and name != OTHER)
    assert parts.get(OTHER, 0) == pytest.approx(shares[OTHER] + small, abs=1e-8)


def test_parts_are_as_wide_as_they_were_long():
    widths = parts_of(waits.waits([BAR], "t", [], "n"))
    whole = sum(widths.values())
    expected = {"issuing 5": 0.05, "queue to shared memory 60": 0.6, "barrier 14": 0.14, "other 1": 0.01}
    for words, share in expected.items():
        assert widths[f"{words}\u00a0%"] / whole == pytest.approx(share, abs=1e-4)
    assert not any(name.startswith("dispatch") for name in widths)


def test_what_is_waiting_and_what_is_not():
    assert GOOD == ("issuing", "another warp's turn")
    assert BAR.waiting == pytest.approx(0.75)


def test_the_scheduler_stands_below_the_warp_and_the_time_beside():
    picture = waits.waits([BAR], "t", [], "n")
    assert ">issue slots: 56\u00a0%<" in picture.data and ">multiply-add units: 20\u00a0%<" in picture.data
    assert ">15.3 ms<" in picture.data
    said = (
        "issue slots: 56 %; multiply-add units: 20 %; 4.13 instructions per multiply-add; 15.9 warps per "
        "scheduler; Busiest: L1 and shared memory, busy in 91 % of the clocks."
    )
    assert said in picture.alt


def test_a_part_of_a_warps_time_is_not_taken_for_speed():
    alone, pair = (waits.waits([BAR] * count, "t", [], "n").alt for count in (1, 2))
    assert "others may issue meanwhile" in alone and "More grey is not more speed" not in alone
    assert "More grey is not more speed" in pair and "on Tensor Cores few" not in pair
    products = replace(BAR, computing="Tensor Cores")
    assert "on Tensor Cores few instructions do much work" in waits.waits([BAR, products], "t", [], "n").alt


def test_what_was_not_measured_is_left_out():
    bare = Bar("mine", "", BAR.shares)
    for count in (1, DETAILED + 1):
        picture = waits.waits([bare] * count, "t", [], "n")
        assert (
            "None" not in picture.data
            and "None" not in picture.alt
            and re.search(r"[\d.] ms", picture.alt) is None
        )
        assert not faults(picture)


@pytest.mark.parametrize("count", [1, 2, DETAILED, DETAILED + 1, len(LADDER)])
@pytest.mark.parametrize("tiles", [False, True])
def test_any_number_of_bars_is_legible(count, tiles):
    longest = max((tiles_text(stage.complete()) for stage in LADDER), key=len)
    stages = list(LADDER)[-count:]
    bars = [made_up(stage.name, seed, longest if tiles else "") for seed, stage in enumerate(stages)]
    picture = waits.waits(bars, "A title " * 12, ["A remark " * 20], "A note " * 20)
    assert not faults(picture)
    for bar in bars:
        assert f">{bar.label}<" in picture.data and bar.label in picture.alt
        assert bar.tiles in picture.alt


@pytest.mark.parametrize("count", [1, 2, DETAILED + 1])
def test_a_label_with_tiles_is_legible(count):
    label = "stream_k_fp16 BM=128 SLOTS=4 PARTS=4"
    assert not faults(
        waits.waits([made_up(label, 1, "BM=128 BN=256 BK=64 WM=64 SLOTS=4")] * count, "t", [], "n")
    )


def test_only_what_occurs_is_explained_in_the_order_of_the_bars():
    picture = waits.waits([BAR, replace(BAR, label="other one")], "t", [], "n")
    said = picture.alt.split("What it means: ")[1]
    order = "issuing", "another warp's turn", "queue to shared memory", "barrier", "other"
    told = [name for name in WAITS if re.search(rf"(^|\. ){name}: ", said)]
    assert told == ["queue to shared memory", "barrier"]
    assert list(BAR.parts()) == list(order) == [name for name in WAITS if name in order]
    assert all(f">{name}<" in picture.data.replace("&#x27;", "'") for name in order)
    many = waits.waits([BAR] * 7, "t", [], "n").alt.split("What it means: ")[1]
    assert [name for name in WAITS if re.search(rf"(^|\. ){name}: ", many)] == list(order)


def test_a_wait_has_the_same_letter_in_every_picture():
    assert len(set(waits.LETTERS.values())) == len(WAITS) == len(waits.LETTERS)
    few = replace(BAR, shares={"barrier": 0.4, "fixed delay": 0.6})
    for bars in ([BAR], [few], [few] * 7):
        drawn = waits.waits(bars, "t", [], "n").data
        assert f">{waits.LETTERS['barrier']}" in drawn
    assert f">{waits.LETTERS['issuing']}<" not in waits.waits([few], "t", [], "n").data


def test_in_lines_every_part_has_its_letter_and_a_heading_says_what_computes():
    shares = {"issuing": 0.05, "copies": 0.049, "barrier": 0.901}
    slow, fast = (replace(BAR, shares=shares, precision=name) for name in ("FP32", "FP16"))
    fast = replace(fast, computing="Tensor Cores")
    picture = waits.waits([slow] * 4 + [fast] * 4, "t", [], "n")
    texts = re.findall(r">([^<>]*)</text>", picture.data)
    letters = waits.LETTERS
    assert texts.count(letters["issuing"]) == 8 + 1 and texts.count(letters["copies"]) == 0
    assert texts.index("FP32 on multiply-add units") < texts.index("FP16 on Tensor Cores")
    assert texts.count("4.13") == 8 and texts.count("instr.") == 2
    assert "and all that is under 5 %" in picture.alt and "Helps: fewer barriers" in picture.alt


def test_a_kind_too_small_to_draw_is_not_told_as_none():
    without = replace(BAR, shares={**BAR.shares, "barrier": 0.01, "global memory": 0.13})
    picture = waits.waits([BAR, without], "t", [], "n").data.replace("\u00a0", " ")
    assert ">14 → 1 %<" in picture and ">none → 13 %<" in picture


def test_a_unit_at_the_end_of_all_is_written_once():
    assert waits.arrows(["24\u00a0%", "13\u00a0%"]) == "24\u00a0→\u00a013\u00a0%"
    assert waits.arrows(["none", "13\u00a0%"]) == "none\u00a0→\u00a013\u00a0%"


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
    assert wait.waits.startswith(("for ", "at ", "with ")) or wait.name in GOOD
    told = waits.explained(wait.name)
    assert told.endswith(".") and ("Helps: " in told) == (wait.name not in (*GOOD, OTHER))


def test_percentages_do_not_break_and_small_ones_are_not_zero():
    assert [percent(share) for share in (0, 0.004, 0.2449, 1)] == [
        "0\u00a0%",
        "0.4\u00a0%",
        "24\u00a0%",
        "100\u00a0%",
    ]
