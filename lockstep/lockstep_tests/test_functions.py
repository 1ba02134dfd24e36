"""Functions of numbers: types as Numba's inference gives them, values as NumPy or Python computes them."""

import cmath
import itertools
import math
from importlib import import_module

import numpy as np
import pytest
from numba import cuda

from lockstep import KernelTypeError, UnsupportedKernel, emulate
from lockstep.library.functions import (
    CMATH_FUNCTIONS,
    CUDA_FUNCTIONS,
    MATH_FUNCTIONS,
    NUMPY_FUNCTIONS,
    PYTHON_FUNCTIONS,
    conversions,
)

numba_types = pytest.importorskip(
    "lockstep_tests.numba_types",
    reason="asks numba-cuda's type inference, which the built-in numba.cuda lacks",
    exc_type=ImportError,
)

LETTERS = "bhiqBHIQfdFD"
TYPES = {letter: np.dtype(letter).name for letter in "?bhiqBHIQefdFD"}


def numba_object(name):
    """What a name of the tables stands for outside a kernel."""
    if name in PYTHON_FUNCTIONS:
        return {"round": round, "divmod": divmod}[name]
    space, _, member = name.rpartition(".")
    return getattr(import_module(f"numba.cuda.{space}") if space else cuda, member)


ALL = {f"math.{name}": (function, getattr(math, name)) for name, function in MATH_FUNCTIONS.items()}
ALL |= {f"cmath.{name}": (function, getattr(cmath, name)) for name, function in CMATH_FUNCTIONS.items()}
ALL |= {f"np.{name}": (function, getattr(np, name)) for name, function in NUMPY_FUNCTIONS.items()}
ALL |= {
    name: (function, numba_object(name)) for name, function in {**PYTHON_FUNCTIONS, **CUDA_FUNCTIONS}.items()
}


def numbers_taken(function):
    if hasattr(function, "ufunc"):
        return {function.ufunc.nin}
    return {len(wanted) for _, wanted in function.signatures}


def as_numba_names(results):
    names = [TYPES[letter] for letter in results]
    if len(names) == 1:
        return names[0]
    return f"UniTuple({names[0]} x {len(names)})" if len(set(names)) == 1 else f"Tuple({', '.join(names)})"


def emulated_type(function, letters):
    try:
        results, _ = function._choose(tuple(np.dtype(letter) for letter in letters))
    except KernelTypeError:
        return None
    return as_numba_names(results)


def numba_type(operation, letters):
    try:
        found = numba_types.result_type(operation, *(TYPES[letter] for letter in letters))
    except Exception:  # whatever it raises: it does not compile that
        return None
    return found.replace("bool_", "bool")


@pytest.mark.many(one_in=3, with_all=2)
@pytest.mark.parametrize("name", ALL)
def test_types_are_those_of_numba(name):
    function, operation = ALL[name]
    letters = "e" if name.startswith("fp16") else "iqIQ" if name == "ffs" else LETTERS
    different = {}
    for count in numbers_taken(function):
        for given in itertools.product(letters, repeat=count):
            ours, theirs = emulated_type(function, given), numba_type(operation, given)
            if ours != theirs:
                different["".join(given)] = ours, theirs
    assert not different


def test_conversions_are_those_of_numba():
    from numba.cuda import types
    from numba.cuda.typeconv import Conversion

    context, _ = numba_types.contexts()
    order = [Conversion.exact, Conversion.promote, Conversion.safe, Conversion.unsafe]
    for (a, b), ours in conversions().items():
        numba_a, numba_b = (getattr(types, TYPES[letter].replace("bool", "boolean")) for letter in (a, b))
        theirs = context.can_convert(numba_a, numba_b)
        assert ours == (4 if theirs is None else order.index(theirs)), (a, b)


# --- values ---------------------------------------------------------------------------------------------

NUMBERS = np.array([0.3, -0.7, 1.0, 0.0, 2.5, -3.5, 17.25, 0.999, np.inf, -np.inf, np.nan])


def as_math_says(function, *numbers):
    """The result of a function of ``math``, infinite or undefined where that raises an exception."""
    try:
        return function(*numbers)
    except OverflowError:
        return math.inf if all(map(math.isfinite, numbers)) else None
    except ValueError:
        return None  # a pole or outside the domain


def emulated(operation, arguments, results=1):
    """The results, (results, numbers), of a function called by one thread per number."""
    first, second = (*arguments, arguments[0])[:2]
    out = np.zeros((results, len(first)))

    @cuda.jit
    def of_one(x, y, out):
        i = cuda.grid(1)
        out[0, i] = operation(x[i])

    @cuda.jit
    def of_two(x, y, out):
        i = cuda.grid(1)
        out[0, i] = operation(x[i], y[i])

    @cuda.jit
    def pair_of_one(x, y, out):
        i = cuda.grid(1)
        out[0, i], out[1, i] = operation(x[i])

    kernel = of_two if len(arguments) == 2 else of_one if results == 1 else pair_of_one
    emulate(kernel, 1, len(first), first, second, out)
    return out


def pairs_of(numbers):
    first, second = np.meshgrid(numbers, numbers)
    return first.ravel(), second.ravel()


@pytest.mark.parametrize("name", MATH_FUNCTIONS)
def test_values_are_those_of_math(name):
    function = getattr(math, name)
    results = 2 if name in ("modf", "frexp") else 1
    if name == "ldexp":
        arguments = NUMBERS, np.arange(len(NUMBERS), dtype=np.int32) - 3
    else:
        arguments = pairs_of(NUMBERS) if max(numbers_taken(MATH_FUNCTIONS[name])) == 2 else (NUMBERS,)
    got = emulated(function, arguments, results)
    compared = 0
    for position, given in enumerate(zip(*arguments)):
        wanted = as_math_says(function, *(v.item() for v in given))
        if wanted is not None:
            np.testing.assert_allclose(got[:, position], wanted, rtol=1e-13, atol=1e-300, err_msg=str(given))
            compared += 1
    assert compared > 2


@pytest.mark.parametrize("name, poles", [("gamma", [0.0, -0.0]), ("lgamma", [0.0, -1.0, -2.0])])
def test_poles_are_infinite(name, poles):
    got = emulated(getattr(math, name), (np.array(poles),))
    assert np.isinf(got).all()


def test_float32_stays_float32():
    x, out = np.array([0.1, 0.7], np.float32), np.zeros(2)

    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        out[i] = math.sin(x[i])

    report = emulate(kernel, 1, 2, x, out)
    assert (out == np.sin(x)).all()
    assert set(report.arithmetic["dtype"].astype(str)) == {"float32"}


@pytest.mark.parametrize("name", NUMPY_FUNCTIONS)
def test_values_are_those_of_numpy(name):
    function = getattr(np, name)
    whole = "i" in NUMPY_FUNCTIONS[name].letters and "d" not in NUMPY_FUNCTIONS[name].letters
    numbers = np.arange(7) if whole else NUMBERS
    arguments = pairs_of(numbers) if function.nin == 2 else (numbers,)
    with np.errstate(all="ignore"):
        wanted = function(*arguments).astype(np.float64)
    np.testing.assert_array_equal(emulated(function, arguments)[0], wanted)


def test_numpys_functions_that_numba_has_no_code_for_on_a_gpu():
    with pytest.raises(
        KernelTypeError, match=r"Numba cannot compile np.left_shift\(\) for float32 and int32"
    ):
        emulated(np.left_shift, (NUMBERS.astype(np.float32), np.arange(len(NUMBERS), dtype=np.int32)))
    with pytest.raises(UnsupportedKernel, match=r"Numba has no code of it for a GPU; use math\.exp"):
        emulated(np.exp, (NUMBERS,))


BITS = {
    cuda.popc: lambda n, bits: bin(n % 2**bits).count("1"),
    cuda.clz: lambda n, bits: bits - (n % 2**bits).bit_length(),
    cuda.ffs: lambda n, bits: (n & -n).bit_length() if n % 2**bits else 0,
}


@pytest.mark.parametrize("operation", BITS, ids=lambda operation: operation.__name__)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_bits(operation, dtype):
    if operation is cuda.ffs and dtype in ("int8", "uint8", "int16"):
        with pytest.raises(KernelTypeError, match=f"no code of ffs.* for {dtype} on a GPU"):
            emulated(operation, (np.ones(1, dtype),))
        return
    limits = np.iinfo(dtype)
    numbers = np.array([0, 1, 2, 3, 5, 40, limits.max, limits.max - 1, limits.min, limits.min // 2], dtype)
    got = emulated(operation, (numbers,))[0]
    assert got.tolist() == [BITS[operation](int(n), limits.bits) for n in numbers]


@pytest.mark.parametrize("dtype", ["uint32", "uint64"])
def test_reversed_bits(dtype):
    bits = np.iinfo(dtype).bits
    numbers = np.array([0, 1, 2, 0b1011, 2 ** (bits - 1), 2**bits - 1], dtype)

    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        out[i] = cuda.brev(x[i])

    out = np.zeros(len(numbers), dtype)
    emulate(kernel, 1, len(numbers), numbers, out)
    assert out.tolist() == [int(f"{int(n):0{bits}b}"[::-1], 2) for n in numbers]


def test_rounding_as_python_rounds():
    x = np.array([0.5, 1.5, 2.5, -0.5, -1.25, 3.14159, 1e15, 2.675])
    assert emulated(round, (x,))[0].tolist() == [round(v) for v in x.tolist()]
    for digits in (-1, 0, 1, 3):
        got = emulated(round, (x, np.full(len(x), digits)))[0]
        np.testing.assert_allclose(got, [round(v, digits) for v in x.tolist()], rtol=1e-14)


def rounded_by_numba(x, digits):
    """numba-cuda's ``round_to_impl``: in float64 whatever the type of x is, and by way of an int64."""
    if math.isinf(x) or math.isnan(x):
        return x
    first, second = (10.0 ** (digits - 22), 1e22) if digits > 22 else (10.0 ** abs(digits), 1.0)
    scaled = (x * first) * second if digits >= 0 else x / first
    if math.isinf(scaled):
        return x
    whole = min(max(round(scaled), -(2**63)), 2**63 - 1)
    if abs(scaled - whole) == 0.5:
        whole = 2.0 * round(scaled / 2.0)
    return (whole / second) / first if digits >= 0 else whole * first


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rounding_as_numba_rounds(dtype):
    @cuda.jit
    def kernel(x, digits, out):
        i = cuda.grid(1)
        if i < len(out):
            out[i] = round(x[i], digits[i])

    random = np.random.default_rng(1)
    halfway = np.round(random.random(3000) * 10, 4)  # many of them are, for three digits
    special = [0.3425, 0.5425, np.nan, np.inf, 0.0, 1e30]
    x = np.concatenate([special, halfway, random.normal(size=3000)])
    x = np.concatenate([x, -x]).astype(dtype)
    digits = random.integers(-3, 13, len(x))
    digits[::1000], digits[0] = 30, 3
    out = np.zeros(len(x), dtype)
    emulate(kernel, 100, 128, x, digits, out)
    expected = [rounded_by_numba(*pair) for pair in zip(x.tolist(), digits.tolist())]
    np.testing.assert_array_equal(out, np.array(expected, dtype))


def test_half_precision():
    @cuda.jit
    def kernel(x, y, out, truth):
        i = cuda.grid(1)
        out[i, 0] = cuda.fp16.hadd(x[i], y[i])
        out[i, 1] = cuda.fp16.hfma(x[i], y[i], x[i])
        out[i, 2] = cuda.fp16.hsqrt(x[i])
        out[i, 3] = cuda.fp16.hmax(x[i], y[i])
        truth[i] = cuda.fp16.hlt(x[i], y[i])

    x, y = np.array([1.5, 0.1, 2048], np.float16), np.array([0.25, 0.3, 1], np.float16)
    out, truth = np.zeros((3, 4), np.float16), np.zeros(3, np.bool_)
    emulate(kernel, 1, 3, x, y, out, truth)
    wide = x.astype(np.float64)
    wanted = np.stack([x + y, wide * y + wide, np.sqrt(x), np.maximum(x, y)], 1).astype(np.float16)
    assert (out == wanted).all() and (truth == (x < y)).all()


def test_the_bits_of_a_number_as_another_type():
    def kernel(x, exponents, cleared, n, as_float):
        i = cuda.grid(1)
        bits = x[i].view(np.int64)
        exponents[i] = (bits >> 52) & 0x7FF
        cleared[i] = (bits & ~np.int64(0xFF)).view(np.float64)
        as_float[i] = n[i].view(np.float32) + np.float32(1).view(np.int32)

    x, n = np.array([1.5, -2e-9, 0.1]), np.array([1, 2**30, -7], np.int32)
    exponents, cleared, as_float = np.zeros(3, np.int64), np.zeros(3), np.zeros(3)
    assert emulate(kernel, 1, 3, x, exponents, cleared, n, as_float).ok
    bits = x.view(np.int64)
    np.testing.assert_array_equal(exponents, (bits >> 52) & 0x7FF)
    np.testing.assert_array_equal(cleared, (bits & ~0xFF).view(np.float64))
    np.testing.assert_array_equal(as_float, n.view(np.float32).astype(np.float64) + 0x3F800000)

    def wider(x, o):
        o[0] = x[0].view(np.int32)

    with pytest.raises(
        KernelTypeError, match="a float64 value can be viewed as an integer or a float of 64 bits"
    ):
        emulate(wider, 1, 1, x, exponents)
