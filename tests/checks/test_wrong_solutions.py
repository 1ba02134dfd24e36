"""Every checker refuses each of the wrong solutions that people write, with a message of its own."""

import re
from importlib import import_module

import pytest

from gemm_course import check, road
from tests.checks.cells import checked_cells

MODULES = [import_module(f"tests.wrong_solutions.{notebook.topic}") for notebook in road.ROAD]
WRONG = {exercise: answers for module in MODULES for exercise, answers in module.WRONG.items()}
FOR_A_KERNEL, FOR_OTHERS = 5, 3


def test_every_exercise_has_wrong_solutions():
    assert set(WRONG) == set(check.exercises())


@pytest.mark.parametrize("exercise", WRONG)
def test_there_are_enough_wrong_solutions(exercise):
    is_kernel = "cuda.jit" in checked_cells("solution")[exercise]
    assert len(WRONG[exercise]) >= (FOR_A_KERNEL if is_kernel else FOR_OTHERS)


@pytest.mark.long
@pytest.mark.many(one_in=5)
@pytest.mark.parametrize("exercise", WRONG)
def test_wrong_solutions_are_refused_and_their_mistakes_named(exercise, sample, subtests):
    messages = []
    for name in sample(list(WRONG[exercise]), one_in=10, with_all=4):
        wrong = WRONG[exercise][name]
        with subtests.test(name):
            verdict = wrong.verdict()
            messages.append(re.sub(r"-?\d[\d.,]*", "#", verdict.message))
            assert not verdict.passed
            assert wrong.words in verdict.message, str(verdict)
            assert not verdict.message.startswith("Not yet"), "no stub: the message should name the mistake"
    assert len(set(messages)) == len(messages), "two mistakes get the same message"
