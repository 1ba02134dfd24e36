"""Rows of busy parts: as long as was measured, the limit and the next marked, legible in any number."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from gemm_course.figures import limits
from gemm_course.figures.limits import DETAILED, HEADS, Row
from gemm_course.figures.picture import Picture
from gemm_course.kernels import LADDER, tiles_text
from gemm_course.profiles import WAITS, Verdict
from gemm_course.profiles.verdict import PARTS
from tests.figures.page import SVG, faults

SHARES = {"L1 and shared memory": 0.912, "issue slots": 0.557, "L2": 0.31, "DRAM": 0.006, "Tensor Cores": 0.0}
COUNTS = [1, DETAILED, DETAILED + 1, len(LADDER)]


def row(shares=SHARES, label="mine", tiles="", tflops=9.0, wait="barrier", waited=0.24, idle=0.0) -> Row:
    busy = dict(sorted(shares.items(), key=lambda one: -one[1]))
    return Row(label, tiles, tflops, Verdict(label, busy, "multiply-add units", wait, waited, 0.6, idle))


WAITING = row({part: share / 2 for part, share in SHARES.items()}, "idler")


def rects(picture: Picture) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(picture.data).iter(f"{SVG}rect"))


def frames(picture: Picture) -> tuple[list[float], list[float]]:
    """The left edges of thick and of dashed frames, without the two of the key above."""
    key, thick, dashed = 26, [], []
    for one in rects(picture):
        if one.get("fill") == "none" and float(one.get("width")) != key:
            if float(one.get("stroke-width")) > 2:
                thick.append(float(one.get("x")))
            elif one.get("stroke-dasharray"):
                dashed.append(float(one.get("x")))
    return thick, dashed


def bars(picture: Picture) -> dict[str, tuple[float, float]]:
    """The left edge and the width of each bar by its tooltip."""
    found = {}
    for one in rects(picture):
        if (title := one.find(f"{SVG}title")) is not None:
            found[title.text.replace("\u00a0", " ")] = float(one.get("x")), float(one.get("width"))
    return found


@pytest.mark.parametrize("count", COUNTS)
def test_bars_are_as_long_as_parts_were_busy(count):
    picture = limits.limits([row(dict.fromkeys(PARTS, 1.0) | SHARES)] * count, "t", "n")
    found = bars(picture)
    full = found["integer units 100 %"][1]
    assert found["L1 and shared memory 91 %"][1] / full == pytest.approx(0.912, abs=1e-3)
    assert found["L2 31 %"][1] / full == pytest.approx(0.31, abs=1e-3)
    assert found["Tensor Cores 0 %"][1] == 0


@pytest.mark.parametrize("count", COUNTS)
def test_the_limit_and_the_next_are_marked_by_more_than_colour(count):
    picture = limits.limits([row()] * count, "t", "n")
    found = bars(picture)
    thick, dashed = frames(picture)
    assert thick == [found["L1 and shared memory 91 %"][0]] * count
    assert dashed == [found["issue slots 56 %"][0]] * count
    texts = ElementTree.fromstring(picture.data).iter(f"{SVG}text")
    assert [text.get("font-weight") for text in texts if text.text == "91"] == ["bold"] * count


@pytest.mark.parametrize("count", COUNTS)
def test_waiting_has_no_thick_frame_and_says_for_what(count):
    picture = limits.limits([WAITING] * count, "t", "n")
    thick, dashed = frames(picture)
    assert not thick and dashed == [bars(picture)["L1 and shared memory 46 %"][0]] * count
    told = (
        "A warp waits 24\u00a0% of its time at barriers"
        if count <= DETAILED
        else ">waits 24\u00a0% of its time at barriers"
    )
    assert picture.data.replace("&#x27;", "'").count(told) == count
    assert picture.alt.count("24 % of its time" if count <= DETAILED else "24 % of a warp's time") == count


def test_a_share_above_one_stays_in_its_cell():
    found = bars(limits.limits([row({**SHARES, "DRAM": 1.02, "L2": 1.0})], "t", "n"))
    assert found["DRAM 102 %"][1] == found["L2 100 %"][1]


def test_a_wait_with_the_name_of_a_part_marks_no_part():
    busy = dict.fromkeys(PARTS, 0.3) | {"Tensor Cores": 0.6}
    picture = limits.limits([row(busy, wait="Tensor Cores")], "t", "n")
    assert frames(picture) == ([], [bars(picture)["Tensor Cores 60 %"][0]])


def test_few_have_sentences_and_many_have_figures():
    few, many = (limits.limits([row(idle=0.05)] * count, "t", "n") for count in (DETAILED, DETAILED + 1))
    sentence = "Next: issue slots, 56\u00a0%, so at most 1.80 times as fast."
    assert few.data.count(f">{sentence}<") == DETAILED and sentence not in many.data
    assert many.data.count(">1.80<") == DETAILED + 1 and ">1.80<" not in few.data
    assert few.alt.count("Multiprocessors have no work for 5 % of the launch.") == DETAILED
    assert many.alt.count("Busiest: L1 and shared memory; next issue slots; at most 1.80 times as fast.") == 7


@pytest.mark.parametrize("count", COUNTS)
def test_the_reader_is_told_what_the_words_mean(count):
    picture = limits.limits([row()] * count, "t", "n")
    written = " ".join(text.text for text in ElementTree.fromstring(picture.data).iter(f"{SVG}text"))
    for words in (
        "all others still needed their clocks",
        "the busiest, if 70\u00a0% or more",
    ):
        assert words in written
    assert "while one warp waits, others keep it busy" in written
    assert "Without a thick frame" not in written and "if they were always busy" not in written
    assert ("TC = Tensor Cores" in written) == (count > DETAILED)
    for words in ("all others still needed their clocks", "in percent of the clocks"):
        assert words in picture.alt


def test_only_marks_and_doubts_that_occur_are_told():
    waiting = limits.limits([WAITING], "t", "n")
    assert "thick frame" not in waiting.alt and ">the busiest, if" not in waiting.data
    assert "Without a thick frame" in limits.limits([WAITING, row()], "t", "n").alt
    working = limits.limits([row(SHARES | {"multiply-add units": 0.95})], "t", "n").alt
    assert "Where multiply-add units are the busiest, the figure is: if they were always busy." in working
    assert "At most: " not in working


@pytest.mark.parametrize("count", [1, DETAILED + 1])
def test_what_was_not_measured_has_a_dash(count):
    picture = limits.limits([row(tflops=None)] * count, "t", "n")
    missing = set(PARTS) - set(SHARES)
    assert picture.data.count(">–<") == count * len(missing) + (count if count > DETAILED else 0)
    assert "None" not in picture.data + picture.alt and "TFLOPS:" not in picture.alt
    assert not any(part in picture.alt for part in missing)


@pytest.mark.many(one_in=4)
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("tiles", [False, True])
def test_any_number_of_rows_is_legible(count, wait, tiles):
    text = max((tiles_text(stage.complete()) for stage in LADDER), key=len) if tiles else ""
    full = dict.fromkeys(PARTS, 1.0)
    half = dict.fromkeys(PARTS, 0.69)
    shown = [
        row(half if place % 2 else full, stage.name, text, 0.498, wait, 0.77, 0.05)
        for place, stage in enumerate(list(LADDER)[-count:])
    ]
    picture = limits.limits(shown, "A title " * 12, "A note " * 20)
    assert not faults(picture)
    for one in shown:
        assert (
            f">{one.label}<" in picture.data
            and f"{one.label}{f' ({text})' if tiles else ''}, 0.498" in picture.alt
        )


@pytest.mark.many(one_in=4)
@pytest.mark.parametrize("count", [1, DETAILED + 1])
@pytest.mark.parametrize("stage", LADDER, ids=lambda stage: stage.name)
def test_a_name_and_its_tiles_are_legible(count, stage):
    tiles = tiles_text(stage.complete())
    shown = [row(label=stage.name, tiles=tiles), row(label=f"{stage.name} BM=128 SLOTS=4", tiles=tiles)]
    assert not faults(limits.limits(shown * count, "t", "n"))


def test_every_part_has_a_column():
    assert list(HEADS) == list(PARTS)
    found = bars(limits.limits([row(dict.fromkeys(PARTS, 0.5))], "t", "n"))
    places = [found[f"{part} 50 %"][0] for part in PARTS]
    assert places == sorted(places) and len(set(places)) == len(PARTS)


def test_figures_are_told_the_busiest_first():
    told = limits.limits([replace(row(), tiles="BM=16")], "t", "n").alt
    assert (
        "mine (BM=16), 9.00 TFLOPS: L1 and shared memory 91 %, issue slots 56 %, L2 31 %, DRAM 0.6 %, Tensor "
        "Cores 0 %. Busiest: L1 and shared memory, busy in 91 % of the clocks." in told
    )
