"""A finding in a given function is told by the learner's line that calls it: tried in real files."""

import re

import numpy as np
import pytest
from numba import float32

from gemm_course.checks.core.elsewhere import line_of, name_given_functions
from lockstep import emulate
from tests.checks.cells import IMPORTS
from tests.wrong_solutions.altering import changed, solution

BARRIER, WARP = "cuda.syncthreads()", "cuda.syncwarp()"


def run(path, source: str, **names) -> dict:
    """Return the names that a file with this source defines. names: what is defined before."""
    path.write_text(source)
    space = {"__name__": path.stem, **names}
    exec(compile(source, str(path), "exec"), space)
    return space


def verdict_in(path, source: str):
    """Return what a cell's last line, a call of its checker, says of the cell as a file."""
    *cell, call = (IMPORTS + source).rstrip().split("\n")
    return run(path, "\n".join([*cell, f"verdict = {call}", ""]))["verdict"]


def without(text: str, source: str, place: int) -> str:
    """Return the source with `pass` instead of one of the calls of a barrier."""
    parts = source.split(text)
    head, tail = text.join(parts[: place + 1]), text.join(parts[place + 1 :])
    return f"{head}pass{tail}"


def line_with(path, text: str) -> int:
    return next(n for n, line in enumerate(path.read_text().splitlines(), 1) if text in line)


def test_several_warps_names_the_call_of_fetch(tmp_path):
    path = tmp_path / "mine.py"
    verdict = verdict_in(path, without(BARRIER, solution("several_warps"), 1))
    call, load = line_with(path, "fetch(As"), line_with(path, "wmma_load_a(")
    assert f"in line {load} and thread (1, 0, 0) writes it in `fetch` (called in line {call})" in (
        verdict.message
    )
    assert verdict.where.startswith(f"Line {call}: `fetch(As")


def test_ring_and_swizzle_names_both_calls_of_fetch_swizzled(tmp_path):
    path = tmp_path / "mine.py"
    verdict = verdict_in(path, without(WARP, solution("ring_and_swizzle"), 0))
    calls = [n for n, line in enumerate(path.read_text().splitlines(), 1) if "fetch_swizzled(" in line]
    assert f"in `fetch_swizzled` (called in lines {calls[0]} and {calls[1]})" in verdict.message
    assert f"reads it in line {line_with(path, 'ldmatrix_x4(a')}" in verdict.message


def test_reads_ahead_names_functions_under_the_learners_own_names(tmp_path):
    path = tmp_path / "mine.py"
    source = changed(solution("reads_ahead"), ("read_step", "read"), ("fetch", "ask"))
    verdict = verdict_in(path, without(BARRIER, source, 1))
    assert re.search(r"in `fetch` \(called in lines \d+ and \d+\)", verdict.message), verdict
    assert re.search(r"in `read_step` \(called in lines \d+ and \d+\)", verdict.message), verdict
    assert "in line" not in verdict.message.replace("called in line", "")


GIVEN = """from numba import cuda
@cuda.jit(device=True)
def fill(tile, x):
    tile[cuda.threadIdx.x] = x[cuda.threadIdx.x]
"""
# The read stands in line 4, as the store does in the other file.
OWN = """@cuda.jit
def own(x):
    tile = cuda.shared.array(32, float32); fill(tile, x)
    x[cuda.threadIdx.x] = tile[31 - cuda.threadIdx.x]
"""


@pytest.fixture
def found(tmp_path):
    """Return the report of a launch whose race is between two files, and the kernel."""
    given = run(tmp_path / "given.py", GIVEN)
    own = run(tmp_path / "own.py", OWN, float32=float32, **given)["own"]
    return emulate(own, 1, 32, np.zeros(32, np.float32)), own


def test_lines_of_two_files_with_one_number_are_told_apart(found):
    report, own = found
    race = next(finding for finding in report.errors if finding.kind == "shared_race")
    assert "in the same line" not in race.message
    name_given_functions(report, own)
    assert "writes tile[0] in `fill` (called in line 3) and" in race.message, race
    assert "reads it in line 4" in race.message
    assert line_of(report, race, own) == "Line 4: `x[cuda.threadIdx.x] = tile[31 - cuda.threadIdx.x]`"
