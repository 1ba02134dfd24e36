"""The fixed, fair sample of what is many that a quick run takes; ``pytest --all`` takes nearly everything.

- ``@pytest.mark.many(one_in=4)`` on a parametrised test: a quarter of its cases runs.
- The fixture ``sample`` thins what a test loops over: ``for case in sample(cases, one_in=8)``.
- ``@settings(max_examples=examples(80, one_in=4))``: how many random cases Hypothesis makes.
- ``@pytest.mark.full(reason="...")``: the test runs with --all only.

What machines make by the hundred, such as mutants, has ``with_all=3`` as well: --all takes a third of it. A
test that is named on the command line takes everything.

A sample has one of each ``one_in`` consecutive cases, drawn with a fixed seed: it is spread evenly, it is the
same in every run, and no regular pattern of the cases can hide from it.
"""

import random
from collections.abc import Sequence
from itertools import groupby
from typing import TypeVar

import pytest

Case = TypeVar("Case")
everything = False  # whether this is a run with --all; set by conftest.py before any test is imported


def sample(cases: Sequence[Case], one_in: int, seed: str, with_all: int = 1) -> list[Case]:
    """Return one of each ``one_in`` consecutive cases, with --all of each ``with_all``, drawn by the seed."""
    cases = list(cases)
    if everything:
        one_in = with_all
    draw = random.Random(seed)
    return [draw.choice(cases[start : start + one_in]) for start in range(0, len(cases), one_in)]


def examples(number: int, one_in: int) -> int:
    """Return how many of ``number`` random cases this run makes."""
    return number if everything else -(-number // one_in)


def select(items: Sequence[pytest.Item]) -> set[pytest.Item]:
    """Return the tests to run: a sample of each one marked many, and those marked full with --all only."""
    quick = [item for item in items if everything or item.get_closest_marker("full") is None]
    kept = {item for item in quick if item.get_closest_marker("many") is None}
    of_many = [item for item in quick if item not in kept]
    for function, cases in groupby(of_many, key=lambda item: item.nodeid.split("[")[0]):
        cases = list(cases)
        kept |= set(sample(cases, **cases[0].get_closest_marker("many").kwargs, seed=function))
    return kept
