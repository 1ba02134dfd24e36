"""Instructions of two codes of one kernel that correspond."""

import pytest

from gemm_course.compiler.alike import LONG, like_places


@pytest.mark.parametrize(
    ("ones", "others", "places"),
    [
        ("A B C", "A B C", [0, 1, 2]),
        ("A C B", "A B C", [0, 2, 1]),  # two have changed places
        ("A B A B", "B A B A", [1, 0, 3, 2]),  # the first A is the first A
        ("A B C", "A X B C", [0, 2, 3]),  # one more in the other
        ("A X B C", "A B C", [0, 0, 1, 2]),  # one without a counterpart goes with that before it
        ("X A", "A", [0, 0]),
        ("A A A B", "A A B", [0, 1, 1, 2]),
        ("", "A", []),
    ],
)
def test_instructions_correspond(ones, others, places):
    found = like_places(ones.split(), others.split())
    if ones == "A A A B":  # which of three equal ones has no counterpart cannot be told
        assert (found[0], found[-1]) == (0, 2) and found == sorted(found)
    else:
        assert found == places


def test_long_codes_are_compared_in_a_moment():
    ones = ["FFMA", "LDS", "FADD"] * LONG
    others = [*ones[:3000], "IADD", *ones[3000:]]
    assert like_places(ones, others)[-1] == len(others) - 1
