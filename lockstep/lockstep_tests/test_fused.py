"""``cuda.fma``, libdevice's and float16's round once, as on a GPU."""

from fractions import Fraction

import numpy as np
import pytest
from numba import cuda, float32
from numba.types import float16

from lockstep import emulate
from lockstep.values.fused import multiply_add

RANGES = [
    (np.float64, -5, 5),
    (np.float64, -60, 60),
    (np.float64, -540, 500),
    (np.float32, -5, 5),
    (np.float32, -40, 40),
    (np.float16, -5, 4),
    (np.float16, -12, 6),
]


def numbers(dtype, low, high, count=3_000):
    random = np.random.default_rng(7)
    return (random.uniform(-1, 1, count) * 2.0 ** random.integers(low, high, count)).astype(dtype)


def nearest(exact: Fraction, dtype):
    if dtype == np.float64:
        return float(exact)
    near = dtype(float(exact))
    beside = [near, np.nextafter(near, dtype(np.inf)), np.nextafter(near, dtype(-np.inf))]
    last_bit = lambda number: int(number.view(f"u{number.itemsize}")) & 1  # noqa: E731
    return min(beside, key=lambda number: (abs(Fraction(float(number)) - exact), last_bit(number)))


@pytest.mark.parametrize(("dtype", "low", "high"), RANGES)
def test_it_rounds_the_exact_result(dtype, low, high):
    x, y, z = numbers(dtype, low, high), numbers(dtype, low, high)[::-1], numbers(dtype, low, high)[7:]
    z = np.append(z, z[:7])
    z[::3] = -x[::3] * y[::3]  # Here the two cancel each other but for what the product lost.
    wanted = [
        nearest(Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c)), dtype)
        for a, b, c in zip(x, y, z)
    ]
    assert multiply_add(x, y, z).tolist() == [float(number) for number in wanted]
    assert (x * y + z != wanted).any()


SPECIAL = {
    (0.0, -1.0, -0.0): -0.0,
    (0.0, 1.0, -0.0): 0.0,
    (1.0, 1.0, -1.0): 0.0,
    (np.inf, 0.0, 1.0): np.nan,
    (1e308, 10.0, -1e308): np.inf,
    (1e308, 10.0, -np.inf): -np.inf,
    (-1e-300, 1e-300, 0.0): -0.0,
    (1e300, -1e300, 1e-300): -np.inf,
    (5e-324, 0.5, 5e-324): 1e-323,
    (2.0**-537, 2.0**-537, -(2.0**-1074)): 0.0,
}


@pytest.mark.parametrize("given", SPECIAL)
def test_zeros_infinities_and_tiny_numbers(given):
    with np.errstate(all="ignore"):
        assert repr(float(multiply_add(*map(np.float64, given)))) == repr(SPECIAL[given])


def test_kernels_find_the_error_of_a_product():
    @cuda.jit
    def kernel(out):
        x = 1 + 2.0**-30
        product = x * x
        out[0] = cuda.fma(x, x, -product)
        out[1] = cuda.libdevice.fma(x, x, -product)
        y = float32(1 + 2.0**-12)
        out[2] = cuda.fma(y, y, -(y * y))
        h = float16(1 + 2.0**-6)
        out[3] = float32(cuda.fp16.hfma(h, h, -cuda.fp16.hmul(h, h)))

    out = np.zeros(4)
    assert emulate(kernel, 1, 1, out).ok
    assert out.tolist() == [2.0**-60, 2.0**-60, 2.0**-24, 2.0**-12]
