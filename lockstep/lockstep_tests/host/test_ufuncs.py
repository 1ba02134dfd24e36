"""``vectorize(target="cuda")`` and ``cuda.reduce`` on the emulator, against NumPy."""

import math

import numba
import numpy as np
import pytest
from numba import cuda, vectorize
from numba.cuda.deviceufunc import UFuncMechanism

from lockstep import KernelTypeError, LaunchError, UnsupportedKernel, emulated


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

    result = scaled(ramp(3, 500), ramp(1, 500))
    assert isinstance(result, np.ndarray) and result.dtype == np.float32
    assert (result == ramp(3, 500) * ramp(500) + 1).all()
    (launch,) = session.launches
    assert launch.kernel == "scaled" and session.ok
    # The table has the place of the program's function.
    assert (launch.file, launch.line) == (__file__, scaled.py_func.__code__.co_firstlineno)


def test_arrays_of_the_device_stay_there():
    @numba.vectorize("int64(int64, int64)", target="cuda")
    def added(a, b):
        return a + b

    there = added(cuda.to_device(ramp(100, dtype=np.int64)), 5)
    assert not isinstance(there, np.ndarray)
    assert (there.copy_to_host() == np.arange(100) + 5).all()
    out = cuda.device_array(100, np.int64)
    assert added(there, there, out=out).gpu_data.device_pointer == out.gpu_data.device_pointer
    assert (out.copy_to_host() == 2 * (np.arange(100) + 5)).all()
    assert added(2, 3) == 5


def test_what_numba_does_not_compile_is_refused_at_the_definition():
    def length(a):
        return len(a)

    with pytest.raises(KernelTypeError, match="an int64 value has no length"):
        vectorize(["int64(int64)"], target="cuda")(length)


def test_arrays_that_are_none_are_refused_in_numpys_words():
    @vectorize(["int64(int64)"], target="cuda")
    def doubled(a):
        return 2 * a

    with pytest.raises(ValueError, match="inhomogeneous") as refused:
        doubled([[1, 2], [3]])
    assert isinstance(refused.value, LaunchError)


def test_a_kernel_calls_no_ufunc():
    @vectorize(["float64(float64)"], target="cuda")
    def half(a):
        return a / 2

    @cuda.jit
    def kernel(x):
        x[0] = half(x[0])

    with pytest.raises(UnsupportedKernel, match="half is a ufunc"):
        kernel[1, 1](np.ones(1))


def test_the_signature_is_the_one_of_the_arrays():
    @vectorize(["float32(float32)", "float64(float64)"], target="cuda")
    def half(a):
        return a / 2

    assert half(ramp(4)).dtype == np.float32 and half(ramp(4, dtype=np.float64)).dtype == np.float64
    assert half(3.0) == 1.5 and half(np.float32(3)).dtype == np.float32
    for wrong in (ramp(4, dtype=np.int32), 3):
        with pytest.raises(TypeError, match="half has"):
            half(wrong)
    with pytest.raises(TypeError, match="half takes 1 argument, not 2"):
        half(ramp(4), ramp(4))


@pytest.mark.parametrize("order", [1, -1])
def test_a_real_and_a_complex_signature(order):
    @vectorize(["float64(float64)", "complex128(complex128)"][::order], target="cuda")
    def twice(z):
        return z * 2

    for dtype in (np.float64, np.complex128):
        x = ramp(3, dtype=np.float64) * dtype(1.5)
        assert (twice(x) == 2 * x).all() and twice(x).dtype == dtype


@pytest.fixture
def sub():
    @vectorize(["float64(float64, float64)", "int32(int32, int32)"], target="cuda")
    def sub(a, b):
        return a - b

    return sub


def test_out(sub):
    x, out = ramp(3, dtype=np.float64), np.zeros(3)
    assert np.shares_memory(sub(x, 1.0, out=out), out) and (out == x - 1).all()
    wide = cuda.to_device(np.zeros((1, 3)))
    assert (sub(x, 1.0, out=wide).copy_to_host() == x - 1).all()
    assert (wide.copy_to_host() == x - 1).all()
    single = cuda.to_device(np.zeros(3, np.float32))
    assert sub(x, 1.0, out=single).dtype == np.float32


@pytest.mark.parametrize(
    ("args", "out", "kind"),
    [
        ((np.ones(3), 1.0), np.ones(3, np.float32), AssertionError),
        ((np.ones(3), 1.0), np.ones(4), AssertionError),
        ((np.ones((2, 2)), 1.0), np.ones((2, 2)), AssertionError),  # Numba flattens the inputs alone
        ((np.ones(3), 1.0), [0, 0, 0], AttributeError),
        ((np.ones(3), np.ones(4)), None, ValueError),
        ((np.ones(6)[::2], 1.0), None, ValueError),
        ((np.array(1.0), np.array(2.0)), None, IndexError),
        ((np.ones(3), 1j), None, TypeError),
        ((np.ones((3, 4)), np.ones(4)), None, NotImplementedError),  # Numba would compute with its first one
    ],
)
def test_calls_that_fail_as_numbas_do(sub, args, out, kind):
    with pytest.raises(kind):
        sub(*args, out=out)


def test_numba_broadcasts_the_first_element_of_an_array_with_fewer_dimensions():
    """When this fails, Numba broadcasts as NumPy does, and the emulator need not refuse it any longer."""
    numbas = UFuncMechanism({}, ())._broadcast([np.zeros((3, 4)), np.arange(4) + 1])
    assert (numbas[1] == 1).all()


def test_unknown_keywords_are_warned_of(sub):
    with pytest.warns(UserWarning, match="unrecognized keywords: casting, where") as caught:
        sub(np.ones(3), 1.0, casting="no", where=True)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("options", "kind", "text"),
    [
        ({"fastmath": True}, KeyError, "does not support option: 'fastmath'"),
        ({"cache": True}, TypeError, "caching is not supported"),
        ({"identity": 2}, ValueError, "Invalid identity value 2"),
    ],
)
def test_options_that_numba_does_not_take(options, kind, text):
    decorated = vectorize(["float32(float32)"], target="cuda", **options)
    with pytest.raises(kind, match=text):
        decorated(lambda a: a)
    general = numba.guvectorize(["void(float32[:], float32[:])"], "(n)->(n)", target="cuda", **options)
    with pytest.raises(TypeError if kind is KeyError else kind):
        general(lambda a, b: None)


def test_nopython_is_redundant():
    with pytest.warns(RuntimeWarning, match="redundant") as caught:
        vectorize(("float32(float32)",), target="cuda", nopython=True)(math_half)
    assert caught[0].filename == __file__


def math_half(a):
    return a / 2


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
        vectorize(target="cuda")(math_half)
    with pytest.raises(NotImplementedError, match="lambda"):
        vectorize(["float32(float32)"], target="cuda")(lambda a: a)
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


def folded(x):
    """Return (what Numba's reduction by ``a - b`` returns, the array that it has folded in place)."""
    left = x.copy()

    def fold(n):
        if n % 2:
            fold(n - 1)
            left[0] -= left[n - 1]
        else:
            left[: n // 2] -= left[n // 2 : n]
            if n > 2:
                fold(n // 2)

    if x.size > 1:
        fold(x.size)
    return left[0], left


@pytest.mark.parametrize("size", [1, 2, 3, 7, 13, 64, 100])
def test_a_ufunc_folds_halves_in_place(session, sub, size):
    x = np.random.default_rng(size).integers(-9, 9, size).astype(np.float64)
    result, left = folded(x)
    there = cuda.to_device(x)
    assert sub.reduce(there, stream=cuda.stream()) == result
    assert (there.copy_to_host() == left).all()
    host = x.copy()
    assert sub.reduce(host) == result and (host == x).all() and session.ok


def test_a_reduction_has_no_initial_value():
    @vectorize(["int32(int32, int32)", "float64(float64, float64)"], target="cuda")
    def larger(a, b):
        return a if a > b else b

    result = larger.reduce(np.array([-5, -3, -9], np.int32))
    assert result == -3 and result.dtype == np.int32


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (np.zeros(0), TypeError),
        (np.zeros(4, np.float32), TypeError),
        (np.zeros((2, 2)), AssertionError),
        (np.zeros(8)[::2], ValueError),
    ],
)
def test_what_is_not_reduced(sub, array, kind):
    with pytest.raises(kind):
        sub.reduce(array)


def test_an_elementwise_function_of_one_number_reduces_nothing():
    with pytest.raises(AssertionError, match="two numbers"):
        vectorize(["float64(float64)"], target="cuda")(math_half).reduce(np.zeros(4))
