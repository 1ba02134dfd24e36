"""Every stage on the GPU against float64, at odd shapes: which the emulator cannot check."""

import numpy as np
import pytest

from gemm_course import run
from gemm_course.kernels import LADDER
from tests.kernels.conftest import allowed

pytestmark = pytest.mark.gpu
SHAPES = [
    (1, 1, 1),
    (5, 3, 0),
    (1, 4096, 1),
    (127, 255, 7),
    (257, 129, 17),
    (131, 521, 263),
    (1023, 517, 769),
]


@pytest.mark.parametrize("stage", LADDER, ids=lambda stage: stage.name)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_results_on_the_gpu(stage, shape):
    m, n, k = shape
    random = np.random.default_rng(shape)
    a, b, c = (random.standard_normal(size).astype(stage.dtype) for size in ((m, k), (k, n), (m, n)))
    for alpha, beta in ((1.0, 0.0), (1.25, -0.5)):
        expected = alpha * a.astype(np.float64) @ b.astype(np.float64) + beta * c.astype(np.float64)
        got = run(stage, a, b, c if beta else None, alpha=alpha, beta=beta, backend="gpu").C
        assert np.linalg.norm(got - expected) <= 3 * allowed(stage) * (np.linalg.norm(expected) or 1.0)
