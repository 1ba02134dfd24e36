"""How a Tensor Core adds: the model gives what an H200 gave, by `data/h200/tensor_core_sums.csv`."""

import numpy as np
import pytest

from gemm_course import records
from gemm_course.model.tensor_cores import adds

STEP = 2.0**-23  # from 1 to the next float32
SUMS = records.tensor_core_sums()
SHORT = SUMS[SUMS["k"] == 16]


@pytest.mark.parametrize("row", SHORT.to_dict("records"), ids=SHORT["case"])
def test_it_cuts_as_an_h200_does(row):
    products = [float(product) for product in row["products"].split()]
    assert float(adds(row["accumulator"], products)) == float(row["result"])


@pytest.mark.parametrize(
    ("c", "products", "expected"), [(0, [0] * 16, 0), (1, [STEP], 1 + STEP), (1, [0.75 * STEP], 1)]
)
def test_it_cuts(c, products, expected):
    assert float(adds(c, products)) == expected


def test_long_sums_of_positive_numbers_lose_as_much_as_on_an_h200():
    """A bit more or less that is kept gives 1.4e-5 or 4.3e-5."""
    (row,) = SUMS[SUMS["k"] == 4096].to_dict("records")
    x, y = np.random.default_rng(0).random((2, 4096, 200)).astype(np.float16).astype(float)
    found = np.zeros(200, np.float32)
    for p in range(0, 4096, 16):
        found = adds(found, x[p : p + 16] * y[p : p + 16])
    assert (found / (x * y).sum(0) - 1).mean() == pytest.approx(row["mean_relative_error"], abs=0.1e-5)
