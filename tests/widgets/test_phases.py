"""The phases: every state is drawn and stored, and each mistake's consequence is shown and named."""

import re
from itertools import product

import pytest

from gemm_course import widgets as see
from gemm_course.figures import colours
from gemm_course.model import phases as model
from gemm_course.widgets import _phases
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
        (("producer does not wait", 2, "slow"), "Undefined: a second arrival at full[0] within one phase"),
        (("expects fewer bytes", 3, "quick"), "Read too early: B of tile 0 has not come"),
        (("producer starts with parity 0", 3, "slow"), "A standstill"),
    ],
    ids=str,
)
def test_the_consequence_is_named(state, title):
    assert last(*state).alt.startswith(title)


def test_a_standstill_says_who_waits_for_what():
    said = last("consumer 1 does not arrive", 3, "quick").alt
    assert "The producer waits for phase 0 of empty[0], which still needs 1 arrival; both consumers" in said
    assert "wait for phase 1 of full[0], which still needs 1 arrival. Consumer 1 never arrives" in said
    assert "which still needs 4,096 bytes" in last("expects more bytes", 3, "quick").alt


def test_the_words_say_what_the_picture_says():
    said = _phases.draw(4, "none", 2, "quick").alt
    barriers = _phases.run("none", 2, "quick")[4].barriers
    for (kind, slot), barrier in barriers.items():
        assert f"{kind}[{slot}]: phase {barrier.phase}, bit {barrier.parity}, {barrier.pending} of" in said
    assert "Slot 0 holds A of tile 0, B of no tile yet." in said


def test_every_wait_that_returns_and_every_phase_that_ends_is_told():
    for step, moment in enumerate(_phases.run("none", 3, "slow")[:-1]):
        said = _phases.draw(step, "none", 3, "slow").alt
        for kind, slot in moment.completed:
            assert f"{kind}[{slot}]: " in said and "is over, the bit is" in said
        passing = sum(warp.passed for warp in moment.warps)
        assert said.count("is over, go on") == passing


@pytest.mark.parametrize(("mistake", "slots", "copies"), RUNS)
def test_a_wait_names_a_phase_of_its_parity(mistake, slots, copies):
    for step in range(1, len(_phases.run(mistake, slots, copies))):
        said = _phases.draw(step, mistake, slots, copies).alt
        for parity, phase in re.findall(r"parity (\d): phase (\d+) ", said):
            assert int(phase) % 2 == int(parity)


def height(picture):
    return float(re.search(r' height="([\d.]+)" role', picture.data).group(1))
