"""Taking barriers out of a kernel leaves everything else as it was."""

import inspect

import numpy as np
import pytest

from gemm_course.kernels import LADDER
from gemm_course.widgets._without_barriers import without_barriers
from lockstep import emulate

KERNEL = LADDER["penny_xu_tile"].kernel({"BM": 4, "BN": 4, "BK": 4})


def launched(kernel):
    A, B = (np.random.default_rng(seed).random((8, 8), np.float32) for seed in (1, 2))
    C = np.full((8, 8), np.nan, np.float32)
    report = emulate(kernel, (2, 2), (4, 4), 8, 8, 8, np.float32(1), A, B, np.float32(0), C)
    return report, A @ B, C


@pytest.mark.parametrize(("removed", "left"), [({0}, 1), ({1}, 1), ({0, 1}, 0), (set(), 2)])
def test_barriers_are_gone_and_numbers_stay(removed, left):
    report, expected, C = launched(without_barriers(KERNEL, removed))
    assert report.barriers == left * 2 * 4  # two tiles along k, four blocks
    assert np.allclose(C, expected, atol=1e-5)
    assert bool(removed) == any(found.kind == "shared_race" for found in report.findings)


def test_lines_keep_their_numbers():
    lines, first = inspect.getsourcelines(KERNEL.py_func)
    cut, second = inspect.getsourcelines(without_barriers(KERNEL, {0}))
    assert first == second
    changed = [place for place, (a, b) in enumerate(zip(lines, cut, strict=True)) if a.strip() != b.strip()]
    assert len(changed) == 1 and "syncthreads" in lines[changed[0]]


def test_a_barrier_that_is_not_there_cannot_be_removed():
    with pytest.raises(ValueError, match="has 2 barriers"):
        without_barriers(KERNEL, {2})
