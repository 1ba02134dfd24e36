"""Every checker refuses each of the wrong solutions that people write, with a message of its own."""

import inspect
import re
import statistics
import time
from importlib import import_module
from pathlib import Path

import pytest

from gemm_course import check

CHAPTERS = sorted(path.stem for path in (Path(__file__).parents[1] / "wrong_solutions").glob("chapter_*.py"))
MODULES = [import_module(f"tests.wrong_solutions.{chapter}") for chapter in CHAPTERS]
WRONG = {exercise: answers for module in MODULES for exercise, answers in module.WRONG.items()}
CASES = [(exercise, name) for exercise, answers in WRONG.items() for name in answers]
FOR_A_KERNEL, FOR_OTHERS = 5, 3
SLOWEST, MEDIAN = 5, 1  # seconds a check may take


def _check(exercise: str, answer):
    checker = getattr(check, exercise)
    return checker(**answer) if isinstance(answer, dict) else checker(answer)


def _asks_for_a_kernel(exercise: str) -> bool:
    """The learner writes a kernel, or a function that returns one."""
    answers = [answer for answer, _ in WRONG[exercise].values() if callable(answer)]
    return any("cuda.jit" in inspect.getsource(getattr(answer, "py_func", answer)) for answer in answers)


def test_every_exercise_has_wrong_solutions():
    assert set(WRONG) == set(check.exercises())


@pytest.mark.parametrize("exercise", WRONG)
def test_there_are_enough_wrong_solutions(exercise):
    assert len(WRONG[exercise]) >= (FOR_A_KERNEL if _asks_for_a_kernel(exercise) else FOR_OTHERS)


@pytest.mark.many(one_in=3)
@pytest.mark.parametrize("exercise, name", CASES, ids=map(": ".join, CASES))
def test_a_wrong_solution_is_refused_and_its_mistake_named(exercise, name):
    answer, words = WRONG[exercise][name]
    verdict = _check(exercise, answer)
    assert not verdict.passed
    assert words in verdict.message, str(verdict)
    assert not verdict.message.startswith("Not yet"), "this is no stub: the message should name the mistake"


@pytest.mark.full(reason="checks every wrong solution")
@pytest.mark.parametrize("exercise", WRONG)
def test_no_two_messages_are_alike(exercise):
    messages = [_without_numbers(_check(exercise, answer).message) for answer, _ in WRONG[exercise].values()]
    assert not {message for message in messages if messages.count(message) > 1}


def _without_numbers(message: str) -> str:
    return re.sub(r"-?\d[\d.,]*", "#", message)


@pytest.mark.timed
def test_checks_are_quick():
    seconds = []
    for exercise, name in CASES:
        start = time.perf_counter()
        _check(exercise, WRONG[exercise][name][0])
        seconds.append(time.perf_counter() - start)
    assert max(seconds) < SLOWEST
    assert statistics.median(seconds) < MEDIAN
