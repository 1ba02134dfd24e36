"""Constants outside kernels: Numba compiles them in, for each combination of types when it first meets it."""

from contextlib import nullcontext

import numpy as np
import pytest
from numba import cuda

from lockstep import UndefinedName, UnsupportedKernel, emulate
from lockstep.host import emulated

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
        assert result(kernel, np.float32) == 10 + 20 + 100  # compiled anew, and so is its device function
        monkeypatch.setitem(globals(), "FACTOR", 1000)
        assert result(kernel, np.float32) == 10 + 20 + 100
        assert result(kernel) == 5
        assert result(define()) == 1000 + 20 + 100
    finally:
        TABLE[0] = 0


def test_a_kernel_that_was_refused_has_kept_nothing(monkeypatch):
    kernel = define()
    monkeypatch.setitem(globals(), "TERM", None)
    with pytest.raises(UnsupportedKernel):
        result(kernel)
    monkeypatch.setitem(globals(), "TERM", 4)
    assert result(kernel) == 6


@pytest.mark.parametrize("way", ["kernel", "device function", "closure", "session"])
def test_signatures_are_compiled_where_they_are_defined(way, monkeypatch):
    amount, calls = 2, way == "device function"

    def make():
        device, signed = (("float64(float64)",), ()) if calls else ((), ("void(float64[:])",))

        @cuda.jit(*device, device=True)
        def scaled(x):
            return x * FACTOR

        @cuda.jit(*signed)
        def kernel(out):
            out[0] = scaled(out[0]) if calls else FACTOR * amount

        return kernel

    with emulated() if way == "session" else nullcontext():
        kernel, out = make(), np.full(1, 2.0)
        monkeypatch.setitem(globals(), "FACTOR", 10)
        amount = 3 if way == "closure" else amount
        if way == "session":
            kernel[1, 1](out)
        else:
            emulate(kernel, 1, 1, out)
    assert out[0] == 4


def test_a_device_function_has_the_constants_of_each_combination_of_types(monkeypatch):
    @cuda.jit(device=True)
    def doubled(x, n):
        return x * FACTOR if n == 0 else doubled(x * FACTOR, n - 1)

    @cuda.jit
    def ones(out):
        out[0] = doubled(np.int64(1), np.int64(1))

    @cuda.jit
    def both(out):
        out[0] = doubled(np.int64(1), np.int64(1))
        out[1] = doubled(1.0, np.int64(1))

    emulate(ones, 1, 1, out := np.zeros(2))
    monkeypatch.setitem(globals(), "FACTOR", 10)
    emulate(both, 1, 1, out)
    assert out.tolist() == [4, 100]


def test_signatures_know_only_what_is_defined_above_them(monkeypatch):
    @cuda.jit("void(float64[:])")
    def kernel(out):
        out[0] = LATER  # noqa: F821

    monkeypatch.setitem(globals(), "LATER", 10)
    with pytest.raises(UndefinedName, match="LATER was not defined yet"):
        emulate(kernel, 1, 1, np.zeros(1))
