"""The picture of a fragment is what a kernel finds, and rows fall in the banks that the emulator counts."""

from math import gcd

import numpy as np
import pytest

from gemm_course.figures.fragments import SIDE
from gemm_course.widgets import _fragments


@pytest.mark.parametrize("matrix", "ABC")
def test_every_element_is_held_by_one_lane(matrix):
    fragment = _fragments.held(matrix)
    everywhere = sorted(element for lane in range(32) for element in fragment.distinct(lane))
    assert everywhere == list(np.ndindex(SIDE, SIDE))
    assert {len(fragment.distinct(lane)) for lane in range(32)} == {8}


@pytest.mark.parametrize(("matrix", "elements"), [("A", 16), ("B", 16), ("C", 8)])
def test_lanes_hold_operands_twice_and_accumulators_once(matrix, elements):
    held = _fragments.held(matrix).held
    assert {len(mine) for mine in held.values()} == {elements}
    if elements == 16:
        assert all(mine[:8] == mine[8:] for mine in held.values())


def test_an_element_names_its_lane_and_the_lane_its_elements():
    assert "A[3, 5] is in lane 14, register 0 of its 4" in _fragments.draw("A", 3, 5).alt
    assert "A[3, 5] is in lane 14" in _fragments.draw_lane("A", 14, 1).alt
    assert "C[11, 13] is in lane 14, register 7 of its 8" in _fragments.draw_lane("C", 14, 7).alt
    assert "[2, 5], [3, 5], [10, 5], [11, 5]" in _fragments.draw("B", 3, 5).alt


@pytest.mark.parametrize("width", _fragments.WIDTHS)
@pytest.mark.parametrize("padding", _fragments.PADS)
def test_the_distance_of_rows_decides_their_wavefronts(width, padding):
    ways = gcd((width + padding) // 8, 8)
    plural = "wavefront" if ways == 1 else "wavefronts"
    assert f"eight take {ways} {plural}" in _fragments.draw_rows(width, padding).alt


def test_a_fragment_is_chosen_by_element_or_by_lane():
    with pytest.raises(ValueError, match='"element", "lane" or "mma"'):
        _fragments.fragment(by="colour")
