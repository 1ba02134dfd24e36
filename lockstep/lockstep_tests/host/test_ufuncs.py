"""``vectorize(target="cuda")`` and ``cuda.reduce`` on the emulator, against NumPy."""

import math

import numba
import numpy as np
import pytest
from numba import cuda, vectorize

from lockstep import emulated


@pytest.fixture(autouse=True)
def session():
    with emulated() as session:
        yield session


def ramp(*shape, dtype=np.float32):
    return np.arange(math.prod(shape), dtype=dtype).reshape(shape)


def test_arrays_of_the_host(session):
    @vectorize(["float32(float32, float32)"], target="cuda")
    def scaled(a, b):
        return a * b + np.float32(1)

    result = scaled(ramp(3, 500), ramp(500))
    assert isinstance(result, np.ndarray) and result.dtype == np.float32
    assert (result == ramp(3, 500) * ramp(500) + 1).all()
    (launch,) = session.launches
    assert launch.kernel == "scaled" and session.ok


def test_arrays_of_the_device_stay_there():
    @numba.vectorize("int64(int64, int64)", target="cuda")
    def added(a, b):
        return a + b

    there = added(cuda.to_device(ramp(100, dtype=np.int64)), 5)
    assert not isinstance(there, np.ndarray)
    assert (there.copy_to_host() == np.arange(100) + 5).all()
    out = cuda.device_array(100, np.int64)
    assert added(there, there, out=out) is out
    assert (out.copy_to_host() == 2 * (np.arange(100) + 5)).all()
    assert added(2, 3) == 5


def test_the_signature_is_the_one_of_the_arrays():
    @vectorize(["float32(float32)", "float64(float64)"], target="cuda")
    def half(a):
        return a / 2

    assert half(ramp(4)).dtype == np.float32 and half(ramp(4, dtype=np.float64)).dtype == np.float64
    assert half(3.0) == 1.5 and half(np.float32(3)).dtype == np.float32
    for wrong in (ramp(4, dtype=np.int32), 3):
        with pytest.raises(TypeError, match="half has"):
            half(wrong)


def test_a_function_of_the_program_with_its_line(session):
    pytest.importorskip("numba_cuda", reason="the built-in numba.cuda has no cuda.vectorize")

    @cuda.jit(device=True)
    def squared(a):
        return a * a

    @cuda.vectorize(["float64(float64)"])
    def length(a):
        return math.sqrt(squared(a))

    @cuda.vectorize(["float32(float32)"])
    def wide(a):
        return a * 2.5

    assert (length(-ramp(40, dtype=np.float64)) == np.arange(40)).all()
    assert (wide(ramp(40)) == np.arange(40) * 2.5).all()
    (found,) = session.findings
    assert (found.kind, found.file) == ("float64_arithmetic", __file__)


def test_other_targets_are_numbas():
    @vectorize(["float32(float32)"])
    def doubled(a):
        return 2 * a

    assert isinstance(doubled, np.ufunc) or type(doubled).__module__.startswith("numba")
    assert (doubled(ramp(4)) == 2 * ramp(4)).all()


def test_a_bare_decorator_is_numbas():
    @numba.vectorize
    def halved(a):
        return a / 2

    assert (halved(ramp(4)) == ramp(4) / 2).all()


def test_what_is_refused():
    with pytest.raises(NotImplementedError, match="types"):
        vectorize(target="cuda")(lambda a: a)
    general = numba.guvectorize(["void(float32[:], float32[:])"], "(n)->(n)", target="cuda")(
        lambda a, b: None
    )
    with pytest.raises(NotImplementedError, match="generalised"):  # only if it is called
        general(ramp(4))


@pytest.mark.parametrize("size", [1, 31, 127, 128, 1000])
def test_reduce(session, size):
    @cuda.reduce
    def summed(a, b):
        return a + b

    biggest = cuda.Reduce(lambda a, b: max(a, b))
    values = np.random.default_rng(size).integers(-1000, 1000, size)
    assert summed(values) == values.sum() and summed(values, init=7) == values.sum() + 7
    result = cuda.device_array(1, np.int64)
    biggest(cuda.to_device(values), init=-5000, res=result)
    assert result[0] == values.max() and session.ok
    assert biggest(values, size=size // 2 + 1, init=-5000) == values[: size // 2 + 1].max()


def test_a_ufunc_reduces():
    @vectorize(["int64(int64, int64)"], target="cuda")
    def added(a, b):
        return a + b

    assert added.reduce(np.arange(100)) == 4950
