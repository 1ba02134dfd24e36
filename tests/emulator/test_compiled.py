"""Constants outside kernels: Numba compiles them in, so a kernel keeps those of its first launch."""

import numpy as np
import pytest
from numba import cuda

from gemm_course.emulator import UnsupportedKernel, emulate

FACTOR, TERM, TABLE = 2, 3, np.arange(3.0)


def define():
    """The cell of a notebook with a device function and a kernel, run once more."""

    @cuda.jit(device=True)
    def scaled(x):
        return x * FACTOR

    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        out[i] = scaled(x[i]) + TERM + TABLE[i]

    return kernel


def result(kernel, dtype=np.float64):
    emulate(kernel, 1, 1, np.ones(1, dtype), out := np.zeros(1))
    return out[0]


def test_a_kernel_keeps_the_constants_of_its_first_launch(monkeypatch):
    kernel = define()
    assert result(kernel) == 5
    monkeypatch.setitem(globals(), "FACTOR", 10)
    monkeypatch.setitem(globals(), "TERM", 20)
    TABLE[0] = 100
    try:
        assert result(kernel) == 5
        assert result(kernel, np.float32) == 2 + 20 + 100  # compiled anew; its device function is not
        assert result(define()) == 10 + 20 + 100
    finally:
        TABLE[0] = 0


def test_a_kernel_that_was_refused_has_kept_nothing(monkeypatch):
    kernel = define()
    monkeypatch.setitem(globals(), "TERM", None)
    with pytest.raises(UnsupportedKernel):
        result(kernel)
    monkeypatch.setitem(globals(), "TERM", 4)
    assert result(kernel) == 6
