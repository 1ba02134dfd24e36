"""The likely mistakes of the factories of GEMM kernels: each can happen, and a wrong solution makes each."""

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np
import pytest

from gemm_course import check
from gemm_course.checks.engines.common_mistakes import COMMON_GUARD_MISTAKES, COMMON_MISTAKES
from gemm_course.checks.engines.gemm_factory import GemmFactory
from gemm_course.checks.engines.mistakes import along_k
from gemm_course.checks.engines.problem import Geometry, Problem, adversarial
from tests.checks.test_wrong_solutions import WRONG

BLOCKS = ((8, 4), (16, 8), (3, 5), (1, 32))


@pytest.mark.parametrize("block", BLOCKS)
def test_some_problems_end_inside_a_block_after_an_odd_and_some_after_an_even_number(block):
    problems = adversarial(Geometry(block, "rows"))
    for size, sizes in zip(block, ({q.m for q in problems}, {q.n for q in problems})):
        if size > 2:
            assert {number % 2 for number in sizes if number % size} == {0, 1}


def _factories() -> dict[str, GemmFactory]:
    modules = {name: sys.modules[getattr(check, name).__module__] for name in check.exercises()}
    return {name: module.FACTORY for name, module in modules.items() if hasattr(module, "FACTORY")}


FACTORIES = _factories()


# ---- each can happen: it is neither right nor what a mistake before it gives -------------------------------


@pytest.mark.parametrize("exercise", FACTORIES)
def test_each_wrong_result_differs_from_the_right_one_and_from_those_before(exercise):
    factory = FACTORIES[exercise]
    cases = [(tiles, q) for tiles in factory.tiles for q in factory.problems(tiles) if q.old_c != "nan"]
    mistakes = {tiles: factory.likely(tiles).results for tiles in factory.tiles}

    def results(tiles, q: Problem) -> Iterator[np.ndarray | None]:
        return (mistake.predict(q) for mistake in mistakes[tiles])

    dead = _never_first(cases, results, lambda tiles, q: q.expected)
    assert [mistakes[factory.tiles[0]][number].message for number in dead] == []


@pytest.mark.parametrize("exercise", FACTORIES)
def test_each_wrong_guard_differs_from_the_right_one_and_from_those_before(exercise):
    factory = FACTORIES[exercise]

    def stored(tiles) -> Iterator[np.ndarray]:
        geometry = factory.geometry(tiles)
        m, n = geometry.ragged()
        row, col = np.ogrid[: m + 2, : n + 2]
        launched = geometry.launched(m, n)
        inside = (row < launched[0]) & (col < launched[1])
        for mistake in factory.likely(tiles).guards:
            yield mistake.written(row, col, Problem(m, n, 5), geometry) & inside

    def right(tiles) -> np.ndarray:
        m, n = factory.geometry(tiles).ragged()
        row, col = np.ogrid[: m + 2, : n + 2]
        return (row < m) & (col < n)

    dead = _never_first([(tiles,) for tiles in factory.tiles], stored, right)
    assert [factory.likely(factory.tiles[0]).guards[number].message for number in dead] == []


def _never_first(cases: Sequence[tuple], predicted: Callable, right: Callable) -> list[int]:
    """The predictions that are, in all cases, nothing, or right, or the same as an earlier one."""
    seen, count = set(), 0
    for case in cases:
        earlier = [right(*case)]
        for number, prediction in enumerate(predicted(*case)):
            count = max(count, number + 1)
            if prediction is None or any(np.allclose(prediction, other) for other in earlier):
                continue
            earlier.append(prediction)
            seen.add(number)
    return sorted(set(range(count)) - seen)


# ---- a wrong solution makes each ---------------------------------------------------------------------------


def test_some_wrong_solution_makes_each_mistake_of_any_kernel(subtests):
    common = [each.message for each in (*COMMON_MISTAKES, *COMMON_GUARD_MISTAKES, *along_k(8, "BK"))]
    for message in common:
        with subtests.test(message):
            words = {wrong.words for answers in WRONG.values() for wrong in answers.values()}
            assert any(some in message.replace("`k // BK`", "`k // T`") for some in words)


@pytest.mark.parametrize("exercise", FACTORIES)
def test_some_wrong_solution_makes_each_mistake(exercise, subtests):
    """Its words are part of this mistake's message, and of no other's of the exercise."""
    makers = _sharing(exercise)
    for message, told in _messages(exercise).items():
        with subtests.test(message):
            assert any(_is_made(told, maker) for maker in makers if message in _messages(maker))


def _sharing(exercise: str) -> list[str]:
    """The exercises of the same chapter: they may have mistakes in common."""
    folder = getattr(check, exercise).__module__.rpartition(".")[0]
    return [name for name in FACTORIES if getattr(check, name).__module__.startswith(f"{folder}.")]


def _is_made(told: set[str], exercise: str) -> bool:
    others = set().union(*_messages(exercise).values()) - told
    return any(
        any(wrong.words in message for message in told) and not any(wrong.words in other for other in others)
        for wrong in WRONG[exercise].values()
    )


@cache
def _messages(exercise: str) -> dict[str, set[str]]:
    """Each mistake of an exercise: its message with the first choice of tiles, and with all choices."""
    factory = FACTORIES[exercise]
    choices = [factory.likely(tiles) for tiles in factory.tiles]
    each = [[mistake.message for mistake in (*likely.results, *likely.guards)] for likely in choices]
    return {told[0]: set(told) for told in zip(*each, strict=True)}
