"""How a Tensor Core adds, on the cases that were tried on an H200 (`mma.sync`, CUDA 13.0)."""

import numpy as np
import pytest

from gemm_course.model.tensor_cores import adds

STEP = 2.0**-23  # from 1 to the next float32


@pytest.mark.parametrize(
    ("c", "products", "expected"),
    [
        (1, [0.5 * STEP, 0.25 * STEP], 1),
        (-1, [-0.5 * STEP, -0.25 * STEP], -1),
        (1, [STEP / 8] * 16, 1),
        (2.0**26, [-(2.0**26), 1], 0),
        (0, [0] * 16, 0),
        (1, [STEP], 1 + STEP),
    ],
)
def test_it_cuts(c, products, expected):
    assert float(adds(c, products)) == expected


def test_long_sums_of_positive_numbers_lose_as_much_as_on_an_h200():
    """There it was 2.4e-5 for k = 4096; a bit more or less that is kept gives 1.4e-5 or 4.3e-5."""
    x, y = np.random.default_rng(0).random((2, 4096, 200)).astype(np.float16).astype(float)
    found = np.zeros(200, np.float32)
    for p in range(0, 4096, 16):
        found = adds(found, x[p : p + 16] * y[p : p + 16])
    assert (found / (x * y).sum(0) - 1).mean() == pytest.approx(-2.4e-5, abs=0.1e-5)
