"""The slips of the table exercises: none is dead, none fails, and a failing one never reaches a learner."""

import pytest

from gemm_course import check, road
from gemm_course.checks.engines.tables import Slip, table_exercise

TABLES = [name for name in check.exercises() if getattr(check, name).slips]


@pytest.mark.parametrize("exercise", TABLES)
def test_each_slip_given_as_an_answer_gets_its_own_message(exercise, sample, subtests):
    checker = getattr(check, exercise)
    for slip in sample(checker.slips, one_in=12):
        with subtests.test(slip.message):
            verdict = checker(slip.answer)
            assert not verdict.passed
            assert verdict.message == road.numbered(slip.message)


BROKEN = (
    Slip("divided", lambda a, b: a // b),
    Slip("of one", lambda a: a),
    Slip("the sum", lambda a, b: a + b),
)


def test_a_slip_that_raises_is_passed_over():
    @table_exercise(
        "99.9", start="here.", hints=("one", "two"), cases=((4, 0), (4, 2)), slips=BROKEN, passed="Right."
    )
    def product(a, b):
        """product(a, b) -> a times b"""
        return a * b

    assert product(lambda a, b: a + b).message == "the sum"
    assert product(lambda a, b: 7).message == "Not all answers are right."
