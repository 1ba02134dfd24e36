"""Local arrays in registers: the checkers say what the compiler says, where it is installed and elsewhere."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numba import cuda, float32

from gemm_course import compiled
from gemm_course.checks.engines import registers
from gemm_course.checks.kits import make_strip
from gemm_course.checks.notebooks.thread_tiles_1d.in_registers import MOST
from gemm_course.compiler import CannotCompile
from gemm_course.compiler.nvidia import Usage
from tests.checks.cells import verdict_of
from tests.checks.register_answers import CASES, answers_of
from tests.wrong_solutions.altering import solution
from tests.wrong_solutions.thread_tiles_1d import WRONG

WRITTEN_OUT = (
    "A loop over p is written out, and p known, if it is short: 136 copies of the innermost body are, 352 "
    "are not. The emulator does not know the sizes when it translates a kernel."
)
DIFFERENT = {  # where the source alone does not tell what the compiler does, and why
    ("thread_columns", "rotated_by_the_step"): WRITTEN_OUT,
    ("outer_product", "rows_rotated_by_the_step"): WRITTEN_OUT,
    (
        "outer_product",
        "short_loop_that_stores_rows",
    ): "Two such loops, one inside the other, stay in registers, and so does one alone over a column.",
    ("runs_of_four", "rotated_by_the_step"): WRITTEN_OUT,
}


def _compiled(verdict) -> str:
    """What a message says about machine code, "" if it says nothing."""
    return "".join(
        re.findall(r"ompiled for an H200 \(compute capability 9\.0\) with [A-Z]+ = ", verdict.message)
    )


def test_there_are_thirty_of_each_kind():
    every = [answers_of(exercise)[name].stays for exercise, name in CASES]
    assert min(every.count(True), every.count(False)) >= 30
    assert len({exercise for exercise, _ in CASES}) >= 4
    assert DIFFERENT.keys() <= set(CASES)


@pytest.mark.compiler
@pytest.mark.long
@pytest.mark.many(one_in=96, with_all=24)
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


@pytest.mark.many(one_in=24, with_all=12)
@pytest.mark.parametrize(("exercise", "name"), CASES)
def test_elsewhere_the_source_decides_alike(exercise, name, monkeypatch):
    monkeypatch.setattr(registers, "why_no_compiler", lambda: "It is not installed.")
    answer = answers_of(exercise)[name]
    verdict = verdict_of(answer.cell)
    assert verdict.passed == (answer.stays or (exercise, name) in DIFFERENT), str(verdict)
    assert not _compiled(verdict)
    if not verdict.passed:
        assert "may not stay in registers" in verdict.message and verdict.where.startswith("Line ")


# ---- when the compiler is asked, and what else it may say -------------------------------------------------


@dataclass
class Asked:
    """Stands for `usage_of`: counts, and gives this answer."""

    answer: Any
    times: int = 0

    def __call__(self, kernel, *args, **options):
        self.times += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def asked(monkeypatch):
    def give(answer) -> Asked:
        one = Asked(answer)
        monkeypatch.setattr(registers, "why_no_compiler", lambda: None)
        monkeypatch.setattr(registers, "usage_of", one)
        return one

    return give


def used(local_bytes=0, spilled_bytes=0) -> Usage:
    return Usage(registers=64, local_bytes=local_bytes, spilled_bytes=spilled_bytes, shared_bytes=0)


@pytest.mark.full(reason="asks the compiler")
def test_it_is_asked_once_about_an_answer_and_never_about_a_wrong_one(asked):
    compiler = asked(used())
    assert verdict_of(solution("thread_columns")).passed and compiler.times == 1
    assert not WRONG["thread_columns"]["a_third_barrier"].verdict().passed
    assert not WRONG["in_registers"]["neighbours_r_apart"].verdict().passed
    assert compiler.times == 1


def test_spilled_values_are_no_array_in_local_memory(asked):
    asked(used(local_bytes=40, spilled_bytes=48))
    verdict = verdict_of(solution("in_registers"))
    assert verdict.passed and "40 bytes of local memory" in verdict.message


@pytest.mark.full(reason="compiles a kernel")
def test_an_array_is_in_local_memory_beside_spilled_values(asked):
    asked(used(local_bytes=64 + 40, spilled_bytes=48))
    verdict = verdict_of(solution("in_registers"))
    assert not verdict.passed and "`acc` is in local memory: 104 bytes per thread" in verdict.message


def test_what_numba_cannot_compile_is_refused_with_its_reason(asked):
    asked(CannotCompile("Numba cannot compile strip, line 3: there is no f(x)."))
    verdict = verdict_of(solution("in_registers"))
    assert not verdict.passed
    assert "On the emulator the result is right. But Numba cannot compile strip" in verdict.message


@pytest.mark.many(one_in=3, with_all=2)
@pytest.mark.full(reason="large kernels are compiled")
@pytest.mark.compiler
@pytest.mark.parametrize("name", ["rows_rotated_by_the_step", "columns_rotated_by_the_lane"])
def test_the_line_named_computes_the_address(name):
    verdict = verdict_of(answers_of("outer_product")[name].cell)
    assert re.search(r"acc\[(h, j|i, \(j \+ tx\) % TN)\]", verdict.where), verdict.where


def rotating(elements):
    """The kernel that a quiz of notebook 04 asks about."""

    @cuda.jit
    def kernel(x, y):
        acc = cuda.local.array(elements, float32)
        for i in range(elements):
            acc[i] = 0
        for j in range(x.size):
            acc[(cuda.threadIdx.x + j) % elements] += x[j]
        for i in range(elements):
            y[cuda.grid(1) * elements + i] = acc[i]

    return kernel


@pytest.mark.many(one_in=6)
@pytest.mark.compiler
@pytest.mark.parametrize("capability", [(8, 0), (8, 6), (9, 0)])
@pytest.mark.parametrize(("elements", "local_bytes"), [(8, 0), (16, 64)])
def test_the_quiz_is_right_about_local_memory(elements, local_bytes, capability):
    x = np.zeros(64, np.float32)
    found = compiled(rotating(elements), x, x, compute_capability=capability)
    assert (found.local_bytes, found.spilled_bytes) == (local_bytes, 0)


@pytest.mark.many(one_in=3, with_all=2)
@pytest.mark.compiler
@pytest.mark.parametrize("capability", [(8, 0), (8, 6), (9, 0)])
def test_the_kernel_as_handed_out_is_in_local_memory(capability):
    x, A = np.zeros(4, np.float32), np.zeros((4, 4), np.float32)
    given = compiled(make_strip(MOST), 4, 4, x, A, x, compute_capability=capability)
    assert given.local_bytes == 4 * MOST and given.spilled_bytes == 0
