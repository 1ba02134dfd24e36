"""Whatever a learner passes, the answer is a verdict and never an exception."""

import functools
from itertools import count

import numpy as np
import pytest
from numba import cuda, float32

from gemm_course import check
from gemm_course.checks import Verdict
from gemm_course.checks.core import Refused
from gemm_course.checks.core.learner import call, plain


@cuda.jit
def touches_nothing(a):
    pass


@cuda.jit
def gemm_that_stumbles(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < missing:  # noqa: F821
        C[row, col] = float32(0)


@cuda.jit
def gemm_without_end(m, n, k, alpha, A, B, beta, C):
    p = 0
    while p < k:
        C[0, 0] = float32(0)


class Odd:
    def __call__(self, *args):
        raise RuntimeError("odd")

    def __repr__(self):
        return "odd\n" * 100


def raises(*args):
    raise KeyError("nothing there")


def odd_result(*args):
    return Odd()


def never_the_same(*args):
    return np.random.default_rng().normal(size=4)


ANYTHING = {
    "none": None,
    "dots": ...,
    "number": 3,
    "not a number": float("nan"),
    "infinity": float("inf"),
    "text": "32",
    "list": [],
    "tuple": (1, 2),
    "nested": [("A", 1), 5, None],
    "dict in a list": [{}],
    "array": np.ones((2, 2)),
    "class": Odd,
    "object": Odd(),
    "lambda": lambda *args: 1,
    "builtin": max,
    "raises": raises,
    "odd result": odd_result,
    "changing result": never_the_same,
    "kernel": touches_nothing,
    "configured kernel": touches_nothing[1024, 128],
    "kernel with an unknown name": gemm_that_stumbles,
    "kernel without end": gemm_without_end,
}

KEYWORDS = {
    "naive_sectors": "ABC",
    "smallest_failing_shape": "abcd",
    "scatter_padding": ("wavefronts", "take"),
    "stray_read": ("access", "shape"),
}


@pytest.mark.many(one_in=5, with_all=5)
@pytest.mark.parametrize("what", ANYTHING)
@pytest.mark.parametrize("exercise", check.exercises())
def test_anything_gets_a_verdict(exercise, what):
    checker = getattr(check, exercise)
    keywords = KEYWORDS.get(exercise)
    answer = ANYTHING[what]
    verdict = checker(**dict.fromkeys(keywords, answer)) if keywords else checker(answer)
    assert isinstance(verdict, Verdict) and not verdict.passed
    assert verdict.message and "Traceback" not in verdict._repr_html_() + str(verdict)


@pytest.mark.many(one_in=3, with_all=2)
@pytest.mark.parametrize("exercise", [name for name in check.exercises() if getattr(check, name).right])
def test_an_answer_to_some_cases_only_is_no_stub(exercise):
    right, calls = getattr(check, exercise).right, count()

    @functools.wraps(right)
    def answers_once(*case):
        return right(*case) if next(calls) == 0 else None

    verdict = getattr(check, exercise)(answers_once)
    assert not verdict.passed and not verdict.message.startswith("Not yet")
    assert "returned None" in verdict.message and verdict.where


@pytest.mark.parametrize("exercise", check.exercises())
def test_calling_a_checker_without_an_answer_is_not_yet(exercise):
    assert getattr(check, exercise)().message.startswith("Not yet")


def test_a_checker_called_with_other_arguments_says_how_it_is_called():
    for verdict in (
        check.best_block((16, 16), 4),
        check.naive_sectors(32, 1, D=32),
        check.best_block(lanes=28),
    ):
        assert not verdict.passed and "The call is `check." in verdict.message


class Lies(int):
    """A number that equals every other."""

    __hash__ = int.__hash__

    def __eq__(self, other):
        return True

    def __ne__(self, other):
        return False


def test_values_are_taken_as_plain_numbers():
    assert plain(Lies(3)) != 4 and plain((Lies(3), [Lies(1)], {"a": Lies(2)})) == (3, [1], {"a": 2})
    kept = True, np.float32(0.5), np.arange(2), touches_nothing
    assert all(given is taken for given, taken in zip(kept, plain(kept), strict=True))
    assert not check.l1_queue(lambda addresses: Lies(1))


def test_a_value_of_a_class_of_the_notebook_is_refused():
    class Anything:
        pass

    Anything.__module__ = "__main__"
    with pytest.raises(Refused, match="a value of your class `Anything`"):
        plain([Anything()])


def counted_one_by_one(m):
    total = 0
    for _ in range(m):
        for _ in range(m):
            total += 1
    return total


def never_done(m):
    total = 0
    while total < m:
        m += 1
    return total


@pytest.mark.parametrize(
    ("function", "told"),
    [(counted_one_by_one, "too large to count one by one"), (never_done, "does not come to an end")],
)
def test_a_slow_loop_is_not_called_endless(function, told):
    with pytest.raises(Refused, match=told):
        call(function, 4096)
    assert call(counted_one_by_one, 64) == 64 * 64
