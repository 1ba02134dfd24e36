"""The changed kernels whose steps are written out a few at a time: all compute the product."""

import numpy as np
import pytest

from gemm_course import run
from measuring.one_change import questions

CASES = [case for question, _, cases in questions() if question == "steps written out" for case in cases]


@pytest.mark.parametrize(("stage", "change", "tiles"), CASES, ids=lambda value: str(value))
def test_a_kernel_is_right_however_many_steps_it_writes_out(stage, change, tiles):
    random = np.random.default_rng(5)
    A, B = (random.standard_normal(shape).astype(np.float32) for shape in ((70, 40), (40, 90)))
    assert np.allclose(run(stage, A, B, tiles=tiles, backend="emulator").C, A @ B, atol=1e-4)


@pytest.mark.compiler
def test_only_all_steps_at_once_need_much_local_memory():
    from gemm_course import compiled

    local = [compiled(stage, tiles=tiles).local_bytes for stage, _, tiles in CASES]
    assert max(local[:-1]) < 100 < local[-1]
