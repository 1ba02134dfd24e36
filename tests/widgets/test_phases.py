"""The phases: every state is drawn and stored, and each mistake's consequence is shown and named."""

import re
from itertools import product

import pytest

from gemm_course import widgets as see
from gemm_course.figures import colours
from gemm_course.figures import phase_strips as strips
from gemm_course.figures.svg import PAGE
from gemm_course.model import phases as model
from gemm_course.widgets import _phases
from gemm_course.widgets import _phases_in_words as words
from tests.figures.page import faults

RUNS = list(product(model.MISTAKES, _phases.TILES, _phases.SPEEDS))


def last(mistake, slots, copies):
    return _phases.draw(len(_phases.run(mistake, slots, copies)) - 1, mistake, slots, copies)


def test_all_states_are_stored():
    explorer = see.phases.makes_explorer()
    states = explorer.states_to_store()
    assert len(states) == sum(len(_phases.run(*each)) for each in RUNS) <= 1000


@pytest.mark.parametrize(("mistake", "slots", "copies"), RUNS)
def test_nothing_lies_over_anything_and_all_are_equally_high_and_low_enough(mistake, slots, copies):
    for step in range(0, len(_phases.run(mistake, slots, copies)), 3):
        picture = _phases.draw(step, mistake, slots, copies)
        assert faults(picture) == []
        assert height(picture) == height(last("none", 2, "quick")) < 640
    assert faults(last(mistake, slots, copies)) == []
    assert height(last(mistake, slots, copies)) == height(last("none", 2, "quick"))


@pytest.mark.parametrize(("mistake", "slots", "copies"), RUNS)
def test_a_run_ends_with_a_consequence_and_only_a_mistake_has_one(mistake, slots, copies):
    moments = _phases.run(mistake, slots, copies)
    assert (moments[-1].outcome == model.RIGHT) == (mistake == model.NO_MISTAKE)
    for step in (0, len(moments) - 1):
        picture = _phases.draw(step, mistake, slots, copies)
        assert (colours.WARN in picture.data) == (step > 0 and mistake != model.NO_MISTAKE)
        assert (colours.WARN_PALE in picture.data) == (mistake != model.NO_MISTAKE)


@pytest.mark.parametrize(
    ("state", "title"),
    [
        (("none", 2, "quick"), "All 5 tiles are read by both consumers"),
        (
            ("consumers never flip parity", 2, "quick"),
            "Old tile read twice: consumer 0 takes B of tile 0 for tile 2",
        ),
        (("producer does not wait", 2, "quick"), "Tile 0 is overwritten while consumer 0 reads it"),
        (("producer does not wait", 2, "slow"), "Undefined: full[0] gets a second arrival within one phase"),
        (("expects fewer bytes", 3, "quick"), "Read too early: B of tile 0 has not come"),
        (("producer starts with parity 0", 3, "slow"), "Tick 1: a standstill"),
    ],
    ids=str,
)
def test_the_consequence_is_named(state, title):
    assert last(*state).alt.startswith(title)


@pytest.mark.parametrize("mistake", [each for each in model.MISTAKES if each != model.NO_MISTAKE])
def test_the_cause_comes_first_and_repeats_no_row(mistake):
    for slots, copies in product(_phases.TILES, _phases.SPEEDS):
        moments = _phases.run(mistake, slots, copies)
        said = words.said(moments[-1], mistake, _phases.TILES[slots])
        assert said.caption and not any(does in said.caption for _, does in said.warps)


def test_a_standstill_says_who_waits_for_what():
    said = last("consumer 1 does not arrive", 3, "quick").alt
    assert "Producer waits at empty[0], parity 0: phase 0 is not over." in said
    assert "empty[0]: in phase 0, parity 0, 1 of 2 arrived." in said
    assert "Consumer 1 never arrives, so empty[0] stays at 1 of 2: the producer waits for it" in said
    assert "4,096 bytes came, 8,192 are expected" in last("expects more bytes", 3, "quick").alt


def test_an_arrival_that_is_left_out_is_marked_and_no_other():
    for mistake, slots, copies in RUNS:
        picture = last(mistake, slots, copies)
        assert ("no arrive" in picture.data) == (mistake == model.NO_ARRIVAL)


def test_a_slot_without_a_wait_says_what_its_barrier_knew():
    said = last("producer does not wait", 4, "quick").alt
    assert "empty[1] says 1 of 2 arrived, but the producer never asked." in said
    assert "Copies: B of tile 4, A of tile 5 land; to come: B of tile 5." in said


def test_the_words_say_what_the_picture_says():
    said = _phases.draw(4, "none", 2, "quick").alt
    barriers = _phases.run("none", 2, "quick")[4].barriers
    for (kind, slot), barrier in barriers.items():
        assert (
            f"{kind}[{slot}]: in phase {barrier.phase}, parity {barrier.parity}, {barrier.arrived} of" in said
        )
    assert "Slot 0 holds A of tile 0, B of no tile yet." in said


def test_every_wait_that_returns_and_every_phase_that_ends_is_told():
    for step, moment in enumerate(_phases.run("none", 3, "slow")[:-1]):
        picture = _phases.draw(step, "none", 3, "slow")
        for kind, slot in moment.completed:
            barrier = moment.barriers[kind, slot]
            assert f"{kind}[{slot}]: " in picture.alt and f"so phase {barrier.phase} begins" in picture.alt
        passing = sum(warp.passed for warp in moment.warps)
        assert len(re.findall(r"(?:Producer|Consumer \d) passes \w+\[\d\], parity", picture.alt)) == passing


def test_a_phase_that_ends_is_shown_with_the_counts_it_ended_with():
    picture = _phases.draw(9, "none", 2, "quick")
    assert "0 → 1, parity 1" in picture.data and "2,048 → 4,096" in picture.data
    assert "0 → 1 of 2" in picture.data  # of empty[0], in the same tick
    assert picture.alt.startswith("Tick 9: phase 0 of full[1] is complete.")


def test_a_copy_is_on_its_way_from_its_order_to_its_landing():
    moments = _phases.run("none", 4, "slow")
    for flight in strips._flights(moments):
        ordered = next(each for each in moments if each.tick == flight.begin + 1)
        assert any((warp.op.kind, warp.op.tile) == (model.COPY, flight.tile) for warp in ordered.warps)
        lands = next(each for each in moments if each.tick == flight.end + 1)
        assert (flight.part, flight.tile) in [(each.part, each.tile) for each in lands.landed]


def test_no_text_is_smaller_than_nine_points_on_a_narrow_page():
    for each in RUNS:
        sizes = map(float, re.findall(r'font-size="([\d.]+)"', last(*each).data))
        assert min(sizes) * 360 / PAGE >= 9


@pytest.mark.parametrize(("mistake", "slots", "copies"), RUNS)
def test_a_wait_names_a_phase_of_its_parity(mistake, slots, copies):
    for step in range(1, len(_phases.run(mistake, slots, copies))):
        said = _phases.draw(step, mistake, slots, copies).alt
        for parity, phase in re.findall(r"parity (\d): phase (\d+) ", said):
            assert int(phase) % 2 == int(parity)


def height(picture):
    return float(re.search(r' height="([\d.]+)" role', picture.data).group(1))
