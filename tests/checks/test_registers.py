"""Local arrays in registers: the checkers say what the compiler says, where it is installed and elsewhere."""

import re

import pytest

from gemm_course.checks.engines import registers
from tests.checks.cells import verdict_of
from tests.checks.register_answers import CASES, answers_of

WRITTEN_OUT = (
    "A loop over p is written out, and p known, if it is short: 136 copies of the innermost body are, 352 "
    "are not. The emulator does not know the sizes when it translates a kernel."
)
DIFFERENT = {  # where the source alone does not tell what the compiler does, and why
    ("outer_product", "rows_rotated_by_the_step"): WRITTEN_OUT,
    ("warp_kernel", "rotated_by_the_step"): WRITTEN_OUT,
    ("runs_of_four", "rotated_by_the_step"): WRITTEN_OUT,
}


def _compiled(verdict) -> str:
    """What a message says about machine code, "" if it says nothing."""
    return "".join(re.findall(r"ompiled for compute capability 9\.0 with [A-Z]+ = ", verdict.message))


def test_there_are_thirty_of_each_kind():
    every = [answers_of(exercise)[name].stays for exercise, name in CASES]
    assert min(every.count(True), every.count(False)) >= 30
    assert len({exercise for exercise, _ in CASES}) >= 5
    assert DIFFERENT.keys() <= set(CASES)


@pytest.mark.compiler
@pytest.mark.long
@pytest.mark.many(one_in=12)
@pytest.mark.parametrize(("exercise", "name"), CASES)
def test_the_compiler_decides_where_it_is_installed(exercise, name):
    answer = answers_of(exercise)[name]
    verdict = verdict_of(answer.cell)
    assert verdict.passed == answer.stays, str(verdict)
    assert _compiled(verdict), str(verdict)
    if answer.stays:
        assert "no local memory" in verdict.message
    else:
        assert re.search(r"in local memory: \d+ bytes per thread", verdict.message)
        assert verdict.where.startswith("Line ")


@pytest.mark.many(one_in=12)
@pytest.mark.parametrize(("exercise", "name"), CASES)
def test_elsewhere_the_source_decides_alike(exercise, name, monkeypatch):
    monkeypatch.setattr(registers, "why_no_compiler", lambda: "It is not installed.")
    answer = answers_of(exercise)[name]
    verdict = verdict_of(answer.cell)
    assert verdict.passed == (answer.stays or (exercise, name) in DIFFERENT), str(verdict)
    assert not _compiled(verdict)
    if not verdict.passed:
        assert "may not stay in registers" in verdict.message and verdict.where.startswith("Line ")
