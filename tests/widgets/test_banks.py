"""The banks: towers are as high as the emulator counts wavefronts, and padding shears the rows."""

import re
from itertools import product
from xml.etree import ElementTree

import pytest

from gemm_course.figures import colours
from gemm_course.figures.banks import BANKS
from gemm_course.widgets import _banks, _tile_banks, _wavefronts
from tests.figures.page import SVG, faults

PLAIN = [(_banks.draw, state) for state in product(_banks.ACCESSES, _banks.BLOCKS, _banks.PADDING)]
KERNEL5 = [(_tile_banks.draw, s) for s in product(("As", "Bs"), _tile_banks.PADDING, _tile_banks.COLUMNS)]
WIDE = [(_wavefronts.draw, s) for s in product(_wavefronts.ACCESSES, (8, 16, 32), (0, 1, 2, 4, 8))]


def rects(picture):
    for rect in ElementTree.fromstring(picture.data).iter(f"{SVG}rect"):
        box = [float(rect.get(side, 0)) for side in ("x", "y", "width", "height")]
        yield rect, box


def towers(picture):
    """How many words lie in each bank, by its place from the left."""
    found = {}
    for rect, (x, _, _, _) in rects(picture):
        if rect.get("stroke") == colours.PAPER:
            found[x] = found.get(x, 0) + 1
    return found


def read(picture):
    """The words that are read, with their banks, as the cells of the tile say."""
    titles = [
        rect.find(f"{SVG}title").text for rect, _ in rects(picture) if rect.find(f"{SVG}title") is not None
    ]
    return [tuple(map(int, re.findall(r"\d+", title))) for title in titles]


@pytest.mark.parametrize(
    ("access", "block", "pad", "wavefronts"),
    [
        ("As[ty, p]", (32, 32), 0, 1),
        ("Bs[p, tx]", (32, 32), 0, 1),
        ("As[tx, p]", (32, 32), 0, 32),
        ("As[tx, p]", (8, 8), 0, 8),
        ("As[tx, p]", (32, 32), 1, 1),
        ("As[tx, p]", (32, 32), 2, 2),
        ("As[tx, p]", (32, 32), 8, 8),
    ],
)
def test_what_an_access_costs(access, block, pad, wavefronts):
    assert f"{access}: {wavefronts} wavefront" in _banks.draw(access, block, pad).alt


def shown(value) -> str:
    """A function's module, or a state: the same in every process, as pytest-xdist needs it."""
    return value.__module__ if callable(value) else str(value)


@pytest.mark.many(one_in=4)
@pytest.mark.parametrize(("draw", "state"), [*PLAIN, *KERNEL5], ids=shown)
def test_the_tallest_tower_is_what_the_emulator_counts(draw, state):
    picture = draw(*state)
    counted = int(re.search(r": (\d+) wavefront", picture.alt).group(1))
    assert max(towers(picture).values()) == counted
    assert sum(towers(picture).values()) == len(read(picture))
    assert all(bank == word % BANKS for word, bank in read(picture))
    conflicts = [rect for rect, _ in rects(picture) if rect.get("stroke") == colours.WARN]
    assert len(conflicts) == (0 if counted == 1 else list(towers(picture).values()).count(counted))


@pytest.mark.parametrize(("draw", "states"), [(d[0][0], [s for _, s in d]) for d in (PLAIN, KERNEL5, WIDE)])
def test_nothing_lies_over_anything_and_all_are_equally_high(draw, states):
    pictures = [draw(*state) for state in states]
    assert [fault for each in pictures for fault in faults(each)] == []
    assert len({each.data.split('viewBox="')[1].split('"')[0] for each in pictures}) == 1


@pytest.mark.parametrize("pad", _banks.PADDING)
def test_padding_shears_the_rows(pad):
    """Each row's gradient begins ``pad`` banks to the left of that of the row above."""
    data = _banks.draw("As[tx, p]", (32, 32), pad).data
    cell = float(re.search(r'id="banks\w+_0_(\w+)"', data).group(1).replace("p", "."))
    begins = {
        int(row): float(x) for row, x in re.findall(r'id="banks\w+?_(\d+)_\w+" [^>]*?x1="([-\d.]+)"', data)
    }
    assert sorted(begins) == sorted({row * (32 + pad) % BANKS for row in range(32)})
    assert all(begins[0] - x == pytest.approx(first * cell, abs=0.02) for first, x in begins.items())
    words = "Every row begins in bank 0" if not pad else f"Each row begins {pad} bank"
    assert words in _banks.draw("As[tx, p]", (32, 32), pad).alt


@pytest.mark.parametrize(("draw", "state"), WIDE[::7], ids=shown)
def test_a_wide_access_touches_words_of_the_tile(draw, state):
    """Each lane's words, once where lanes share them, as many as its access is wide."""
    asked = _wavefronts.request(*state)
    words = {place // 4 + more for _, _, place in asked.lanes for more in range(asked.bits // 32)}
    assert {word for word, _ in read(draw(*state))} == words
