"""A warp at an ``if``: what is issued, and for which lanes."""

from itertools import chain

import pytest

from gemm_course import widgets as see
from gemm_course.figures import colours
from gemm_course.widgets import _branch
from tests.figures.page import faults

STATES = [(step, numbers) for numbers in _branch.NUMBERS for step in range(len(_branch.walk(numbers).steps))]


@pytest.mark.parametrize("numbers", _branch.NUMBERS)
def test_each_lane_takes_its_own_branch_and_all_else_with_the_others(numbers):
    walk = _branch.walk(numbers)
    taking = {walk.lines[line].strip(): lanes for line, lanes in walk.steps}
    even = {lane for lane in range(32) if _branch.NUMBERS[numbers](lane) % 2 == 0}
    assert taking.pop("if x[i] % 2 == 0:") == taking.pop("x[i] = y[i]") == set(range(32))
    assert taking.pop("y[i] = x[i] // 2") == even
    assert taking == ({} if len(even) == 32 else {"y[i] = 3 * x[i] + 1": set(range(32)) - even})


def test_the_branches_come_one_after_the_other():
    alts = [_branch.draw(step, "31 even, one odd").alt for step in range(4)]
    titles = [alt.split(".")[0] for alt in alts]
    assert titles == [
        "Step 1: all 32 lanes take part",
        "Step 2: 31 lanes take part, 1 is masked",
        "Step 3: 1 lane takes part, 31 are masked",
        "Step 4: all 32 lanes take part",
    ]
    assert "The warp issued 4 lines, and each lane took part in 3." in alts[-1]


def test_a_branch_that_no_lane_needs_is_left_out():
    explorer = see.branch.makes_explorer()
    steps = explorer.controls.by_name["step"].offered({"numbers": "all even"})
    assert len(steps) == 3
    said = explorer.picture({"numbers": "all even", "step": 2}).alt
    assert "The warp issued 3 lines, and each lane took part in 3. No lane needs y[i] = 3 * x[i] + 1," in said


def test_later_lines_are_empty_until_they_are_issued():
    """A hatched box stands for a masked lane."""
    hatched = [
        _branch.draw(step, "even and odd in turn").data.count(f"url(#hatch-{colours.QUIET[1:]})")
        for step in range(4)
    ]
    in_the_key = 1
    assert hatched == [in_the_key, in_the_key + 16, in_the_key + 32, in_the_key + 32]


def test_nothing_lies_over_anything_and_all_are_equally_high():
    shown = [_branch.draw(*state) for state in STATES]
    assert list(chain.from_iterable(map(faults, shown))) == []
    assert len({each.data.split('viewBox="')[1].split('"')[0] for each in shown}) == 1
