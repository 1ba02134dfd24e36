"""The picture of an SM's tanks: what it says and what it draws follow from the model."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemm_course.figures import colours
from gemm_course.figures.tank_words import Contents, nth, sentence, title
from gemm_course.figures.tanks import refused
from gemm_course.figures.tanks import tanks as draw
from gemm_course.model import GPUS, occupancy, tanks
from tests.figures.page import SVG

NOTES = ["As many words as a note of two lines needs, " * 4, "and another one. " * 6]


def contents(threads, registers, shared, gpu="H200", blocks=None, at_most=False):
    held = tanks(threads, registers, shared, GPUS[gpu].limits)
    full = min(tank.fits for tank in held)
    return Contents(held, full if blocks is None else blocks, f"A kernel, {gpu}.", NOTES, at_most)


TITLES = {
    "2 blocks fit: registers are full; 16 of 64 warps": contents(256, 128, 33280),
    "2 blocks fit: registers and warp slots are full; 64 of 64 warps": contents(1024, 32, 0),
    "1 block fits: too few registers and too little shared memory for a second; 12 of 64 warps": contents(
        384, 168, 197632
    ),
    "32 blocks fit: block slots are full; 32 of 64 warps": contents(32, 16, 0),
    "2 blocks fit: shared memory is full; 4 of 64 warps": contents(64, 32, 113 * 1024),
    "20 blocks fit: too few registers for a 21st; 20 of 64 warps": contents(32, 96, 0),
    "No block fits: too little shared memory": contents(128, 64, 128 * 1024, "RTX 3090"),
    "At least 2 blocks fit: registers may be full; 32 of 64 warps": contents(512, 64, 8192, at_most=True),
    "1 block fits: registers are full, too little shared memory for a second; 16 of 64 warps": contents(
        512, 128, 163840, at_most=True
    ),
    "1 block of 2: there is room for another; 8 of 64 warps": contents(256, 128, 33280, blocks=1),
    "1 block of at least 2: there is room for another; 16 of 64 warps": contents(
        512, 64, 0, blocks=1, at_most=True
    ),
    "An empty SM: there is room for a block; 0 of 64 warps": contents(256, 128, 33280, blocks=0),
}


@pytest.mark.parametrize("expected", TITLES)
def test_the_title_states_the_answer(expected):
    assert title(TITLES[expected]) == expected
    assert draw(TITLES[expected]).alt.startswith(f"{expected}. A kernel")


@pytest.mark.parametrize(
    ("filled", "words"),
    [
        (contents(256, 128, 33280), "A third block (dashed) would need 32,768 registers, and 0 are left."),
        (
            contents(256, 128, 33280, at_most=True),
            "A third block (dashed) would need up to 32,768 registers, and at least 0 are left.",
        ),
        (contents(256, 128, 33280, blocks=1), "A second block (dashed) would find room in every tank."),
        (
            contents(384, 168, 197632),
            "A second block (dashed) would need 64,512 registers, and 1,024 are left; "
            "194 KB of shared memory, and 34 KB is left.",
        ),
        (
            contents(64, 32, 100 * 1024 - 1024, "RTX 3090"),
            "A second block (dashed) would need 100 KB of shared memory",
        ),
        (
            contents(32, 96, 0),
            "A 21st block (dashed) would need 3,072 registers, and 4,096 are left, "
            "but a warp's must lie in one quarter of the SM.",
        ),
    ],
)
def test_the_sentence_says_what_the_next_block_would_need(filled, words):
    assert sentence(filled).startswith(words)


@pytest.mark.parametrize(
    ("shared", "said"), [(33280, " With at most 80 per thread it would fit."), (113 * 1024, "")]
)
def test_how_few_registers_would_do_is_said_where_registers_alone_are_short(shared, said):
    told = sentence(replace(contents(256, 128, shared), fewer_registers=80))
    assert told.endswith(f" left.{said}")


def test_the_next_block_has_its_number_where_there_is_room_for_it():
    data = draw(contents(256, 128, 33280)).data
    assert data.count(">3<") == 3  # registers, shared memory, warp slots; a block slot is too low


def test_ordinals():
    numbers = (1, 2, 8, 9, 11, 12, 13, 18, 21, 22, 23, 33)
    assert [nth(number) for number in numbers] == [
        "a first", "a second", "an eighth", "a 9th", "an 11th", "a 12th", "a 13th", "an 18th", "a 21st",
        "a 22nd", "a 23rd", "a 33rd",
    ]  # fmt: skip


@given(st.integers(1, 1024), st.integers(16, 255), st.integers(0, 220 * 1024), st.sampled_from(sorted(GPUS)))
def test_what_is_left_is_too_little_where_it_says_so_and_enough_elsewhere(threads, registers, shared, gpu):
    filled = contents(threads, registers, shared, gpu)
    assert filled.fits == occupancy(threads, registers, shared, GPUS[gpu]).blocks
    for tank in filled.ordered:
        assert tank.left(filled.blocks) >= 0
        if tank not in filled.short:
            assert tank.left(filled.blocks) >= tank.per_block
        elif tank.name != "registers":  # of those, a quarter may be left to each
            assert tank.left(filled.blocks) < tank.per_block


def rects(picture, fill):
    return [r for r in ElementTree.fromstring(picture.data).iter(f"{SVG}rect") if r.get("fill") == fill]


def test_a_block_is_as_high_as_its_share_and_the_newest_is_marked():
    filled = contents(256, 128, 33280)
    picture = draw(filled)
    newest, older, walls = (rects(picture, fill) for fill in (colours.NOW, colours.EDGE, colours.IDLE))
    assert len(newest) == len(older) == len(walls) == 4
    for tank, block, whole in zip(filled.ordered, newest, walls, strict=True):
        share = float(block.get("height")) / float(whole.get("height"))
        assert share == pytest.approx(tank.per_block / tank.size, abs=1e-3)


def test_only_the_tanks_that_are_short_are_hatched():
    for filled in TITLES.values():
        hatched = rects(draw(filled), f"url(#hatch-{colours.WARN[1:]})")
        assert len(hatched) == len(filled.short)


def pages():
    yield from map(draw, TITLES.values())
    yield refused("These tiles cannot run", "A kernel.", ["BM (3) must be a multiple of TM (2)"] * 3)


def test_all_pictures_are_equally_high_and_nothing_leaves_the_page():
    heights = set()
    for picture in pages():
        root = ElementTree.fromstring(picture.data)
        _, _, width, height = (float(v) for v in root.get("viewBox").split())
        heights.add(height)
        for rect in (each for each in root.iter(f"{SVG}rect") if each.get("x") is not None):
            x, y, w, h = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
            assert -1 <= x and x + w <= width + 1 and -1 <= y and y + h <= height + 1
        texts = list(root.iter(f"{SVG}text"))
        assert max(float(each.get("y")) for each in texts) < height
        assert min(float(each.get("font-size")) for each in texts) >= 14
    assert len(heights) == 1


def test_registers_that_are_not_known_are_bounds():
    data = draw(contents(512, 64, 8192, at_most=True)).data
    for words in ("up to 32,768", "up to 65,536", "at least 0", "not known"):
        assert f">{words}<" in data
    assert ">up to" not in draw(contents(512, 64, 8192)).data
    said = draw(contents(512, 64, 8192, at_most=True)).alt
    assert "A block takes at most 32,768 registers, 9" in said.replace("\u00a0", " ") and "at least 0" in said
