"""Answers to exercises, right and wrong: they compile, or Numba's reason against them is a sentence."""

import pytest

from tests.compiler.answers import ANSWERS, MISTAKEN, outcome


def test_there_are_thirty_right_and_wrong():
    assert len(ANSWERS) == len(set(ANSWERS)) >= 30
    assert {bool(mistake) for _, mistake in ANSWERS} == {True, False}


@pytest.mark.compiler
@pytest.mark.many(one_in=72, with_all=9)
@pytest.mark.parametrize(("exercise", "mistake"), ANSWERS, ids=lambda part: part or "right")
def test_an_answer_compiles_or_the_reason_is_a_sentence(exercise, mistake):
    words = MISTAKEN[exercise][mistake] if mistake else ""
    found = outcome(exercise, mistake)
    if not words:
        assert len(found) > 0 and 0 < found.registers <= 255
    else:
        said = str(found)
        assert words in said
        assert said.startswith("Numba cannot compile ") and ", line " in said and said.endswith(".")
        assert "\n" not in said and len(said) < 400
