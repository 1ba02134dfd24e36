"""The turns of a wide read: together they take the wavefronts that the emulator counts."""

import re
from itertools import product

import pytest

from gemm_course import widgets as see
from gemm_course.model.requests import wavefronts_of
from gemm_course.widgets import _turns
from tests.figures.page import faults

LAYOUTS = list(product(_turns.LAYOUTS, _turns.RUNS, ("As", "Bs")))


def pictures(*layout):
    """The picture of every turn."""
    explorer = see.turns.makes_explorer()
    state = dict(zip(("layout", "run", "array"), layout, strict=True))
    steps = explorer.controls.by_name["step"].offered(state)
    return [explorer.picture({**state, "step": option.value}) for option in steps]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_turns_take_the_wavefronts_that_the_emulator_counts(layout):
    shown = pictures(*layout)
    total = wavefronts_of(_turns._asked(*layout))
    assert f"Turn {len(shown)} of {len(shown)}: " in shown[-1].alt
    assert f", {total} so far" in shown[-1].alt
    own = [int(re.search(r": (\d+) wavefront", each.alt)[1]) for each in shown]
    assert sum(own) == total


@pytest.mark.parametrize(
    ("layout", "turns", "words"),
    [
        (("2 × 16", "in one piece", "As"), 2, "the same 16 bytes as its neighbour, so turns join"),
        (("2 × 16", "in one piece", "Bs"), 4, "not every lane wants the same as its neighbour"),
        (("8 × 4", "runs of four", "Bs"), 4, "not every lane wants the same as its neighbour"),
        (("16 × 2", "in one piece", "Bs"), 2, "as the lane two places away, so turns join"),
    ],
)
def test_turns_join_where_neighbours_want_the_same(layout, turns, words):
    shown = pictures(*layout)
    assert len(shown) == turns
    assert all(words in each.alt for each in shown)


def test_links_stand_below_the_lanes_that_join_turns_only():
    def links(picture):
        return len(re.findall('<path d="M[^z]*?" fill="none" stroke', picture.data))

    assert links(pictures("2 × 16", "in one piece", "As")[0]) == 16
    assert links(pictures("16 × 2", "in one piece", "Bs")[0]) == 16
    assert links(pictures("2 × 16", "in one piece", "Bs")[0]) == 0


def test_it_opens_at_the_first_turn_and_keeps_the_others_back():
    explorer = see.turns.makes_explorer()
    alt = explorer.picture(explorer.controls.start()).alt
    assert alt.startswith("Turn 1 of 4: 2 wavefronts, 2 so far.")
    assert "turn 2" not in alt and "8 wavefronts" not in alt


def test_of_the_square_there_is_only_the_turn_to_choose():
    one, all_of_them = (see.turns.makes_explorer(only_bs=only) for only in (True, False))
    assert [*one.controls.by_name] == ["step"] and one.controls.start() == {"step": 0}
    assert one.picture({"step": 3}).alt == pictures("2 × 16", "in one piece", "Bs")[3].alt
    assert one.picture(one.controls.start()).alt == all_of_them.picture(all_of_them.controls.start()).alt


def test_nothing_lies_over_anything_and_all_are_equally_high():
    shown = [picture for layout in LAYOUTS for picture in pictures(*layout)]
    assert [fault for each in shown for fault in faults(each)] == []
    (height,) = {each.data.split('viewBox="')[1].split('"')[0].split()[3] for each in shown}
    assert float(height) * 1.2 < 640
