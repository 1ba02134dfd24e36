"""The picture of a change: bars to scale, what did not change in a line, legible with the longest names."""

import xml.etree.ElementTree as ElementTree

import pytest

from gemm_course.compiler import KINDS
from gemm_course.figures import code_change
from gemm_course.figures.code_change import Side, change, changes, draw, number, rows
from gemm_course.kernels import LADDER, tiles_text
from tests.figures.page import SVG, faults

FACTS = {"registers per thread": "128", "instructions in the loop": "2,821"}
BEFORE = Side("plain", "BM=16", {"multiply-add": 1000, "shared load": 80, "move": 40, "branch": 0.49}, FACTS)
AFTER = Side("wide", "", {"multiply-add": 1000, "shared load": 20, "branch": 0.4901, "atomic": 5}, FACTS)


def test_only_what_changed_the_largest_change_first():
    assert changes(BEFORE, AFTER) == {"shared load": -60, "move": -40, "atomic": 5}
    assert (BEFORE.all, AFTER.all) == (1120.49, 1025.4901)


def test_bars_have_one_scale_and_the_table_both_values():
    picture = draw(BEFORE, AFTER, "1,000 multiply-adds", "t", ["A remark."], "A note.")
    rects = ElementTree.fromstring(picture.data).iter(f"{SVG}rect")
    bars = [float(rect.get("width")) for rect in rects if float(rect.get("x", 0)) == code_change._BARS]
    numbers = 1120.49, 1025.4901, 1000, 1000, 80, 20, 40
    assert bars == pytest.approx([bars[0] * one / 1120.49 for one in numbers], abs=0.01)
    assert "Few: atomic 0 → 5, branch 0.49." in picture.alt
    assert (
        "Before: plain (BM=16); after: wide. Instructions in the main loop, per 1,000 multiply-adds: "
        "all 1,120 → 1,025, multiply-add 1,000 → 1,000, shared load 80 → 20, move 40 → 0." in picture.alt
    )
    assert "registers per thread: 128 → 128." in picture.alt and picture.alt.endswith("A remark. A note.")
    assert all(f">{words}<" in picture.data for words in ("−60", "−40", "same", "none", "−95"))


def test_a_change_is_that_of_the_numbers_as_shown():
    told = [change(*pair) for pair in ((1377.4, 1161.6), (23.44, 23.41), (0, 0.0078), (140.1, 23.4))]
    assert told == ["−215", "same", "+0.0078", "−117"]


def test_what_did_not_change_is_drawn_too_if_there_is_much_of_it():
    same = {"multiply-add": 1000, "shared load": 78, "branch": 1, "move": 50}
    large, small = rows(Side("a", "", same), Side("b", "", {**same, "move": 10}))
    assert large == ["multiply-add", "move", "shared load"] and small == ["branch"]


def test_the_longest_names_and_numbers_fit():
    longest = max((tiles_text(stage.complete()) for stage in LADDER), key=len)
    facts = {"of these, multiply-adds or products": "123,456", "shared memory per block, bytes": "232,448"}
    before = Side("stream_k_fp16 BM=128 SLOTS=4", longest, dict.fromkeys(KINDS, 98_765.0), facts)
    after = Side("overlapped_store", longest, dict.fromkeys(KINDS, 0.0078), facts)
    for pair in ((before, after), (after, before)):
        picture = draw(
            *pair, "million multiply-adds", "A title " * 12, ["A remark " * 20] * 3, "A note " * 20
        )
        assert not faults(picture)
    assert not faults(draw(before, before, "Tensor Core product", "t", [], "n"))


def test_numbers_have_three_digits_or_are_whole():
    assert [number(value) for value in (0, 0.0078125, 0.3906, 23.4375, 140.1, 1377.4)] == [
        "0",
        "0.0078",
        "0.391",
        "23.4",
        "140",
        "1,377",
    ]
