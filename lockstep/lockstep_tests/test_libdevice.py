"""cuda.libdevice: its signatures as numba-cuda declares them, its values as NumPy or Python computes them."""

import math

import numpy as np
import pytest
from numba import cuda

from lockstep import UnsupportedKernel, emulate
from lockstep.library.libdevice import LIBDEVICE

libdevice = pytest.importorskip("numba.cuda.libdevice")
BESSEL = {"j0", "j1", "jn", "y0", "y1", "yn"}


def test_signatures_are_those_of_numba():
    declared = pytest.importorskip("numba.cuda.libdevicefuncs")
    missing, different = set(), {}
    for name, (returned, arguments) in declared.functions.items():
        name = name.removeprefix("__nv_")
        if f"libdevice.{name}" not in LIBDEVICE:
            missing.add(name.removesuffix("f"))
            continue
        signature = declared.create_signature(returned, arguments)
        results = getattr(signature.return_type, "types", (signature.return_type,))
        theirs = tuple(np.dtype(str(kind)).char.replace("l", "q") for kind in (*results, *signature.args))
        ((ours_results, ours),) = LIBDEVICE[f"libdevice.{name}"].signatures
        if (*ours_results, *ours) != theirs:
            different[name] = (ours_results, ours), theirs
    assert not different
    assert missing == BESSEL
    assert {name.removeprefix("libdevice.") for name in LIBDEVICE} <= {
        name.removeprefix("__nv_") for name in declared.functions
    }


def emulated(name, *arguments, results=1):
    function = getattr(libdevice, name)
    out = np.zeros((results, len(arguments[0])))
    first, second, third = (*arguments, *arguments[:1] * 2)[:3]

    @cuda.jit
    def one(x, y, z, out):
        i = cuda.grid(1)
        out[0, i] = function(x[i])

    @cuda.jit
    def two(x, y, z, out):
        i = cuda.grid(1)
        out[0, i] = function(x[i], y[i])

    @cuda.jit
    def three(x, y, z, out):
        i = cuda.grid(1)
        out[0, i] = function(x[i], y[i], z[i])

    @cuda.jit
    def pair(x, y, z, out):
        i = cuda.grid(1)
        out[0, i], out[1, i] = function(x[i])

    kernel = pair if results == 2 else (one, two, three)[len(arguments) - 1]
    emulate(kernel, 1, len(first), first, second, third, out)
    return out[0] if results == 1 else out


X = np.array([0.25, -0.5, 0.875, 1.5, -2.75, 12.0])
SAME = {
    "rsqrt": lambda x: 1 / math.sqrt(x) if x > 0 else math.nan,
    "exp10": lambda x: 10.0**x,
    "sinpi": lambda x: math.sin(math.pi * x),
    "cospi": lambda x: math.cos(math.pi * x),
    "normcdf": lambda x: math.erfc(-x / math.sqrt(2)) / 2,
    "erfcx": lambda x: math.exp(x * x) * math.erfc(x),
    "logb": lambda x: math.frexp(abs(x))[1] - 1,
    "round": lambda x: math.copysign(math.floor(abs(x) + 0.5), x),
    "rint": round,
    "tgamma": lambda x: math.gamma(x),
    "erf": math.erf,
    "cbrt": lambda x: math.copysign(abs(x) ** (1 / 3), x),
}


@pytest.mark.parametrize("name", SAME)
def test_values(name):
    np.testing.assert_allclose(emulated(name, X), [SAME[name](x) for x in X], rtol=1e-12, atol=1e-14)


def test_inverses():
    x = np.array([0.0, 1e-9, 0.1, -0.7, 0.999999, 0.5])
    np.testing.assert_allclose([math.erf(v) for v in emulated("erfinv", x)], x, rtol=1e-12)
    y = np.array([1e-12, 0.3, 1.0, 1.9])
    np.testing.assert_allclose([math.erfc(v) for v in emulated("erfcinv", y)], y, rtol=1e-9)
    p = np.array([0.5, 0.01, 0.99, 1e-10])
    np.testing.assert_allclose([math.erfc(-v / 2**0.5) / 2 for v in emulated("normcdfinv", p)], p, rtol=1e-9)


def test_pairs():
    sine, cosine = emulated("sincos", X, results=2)
    assert (sine == np.sin(X)).all() and (cosine == np.cos(X)).all()


def test_fast_functions_are_float32():
    x = X.astype(np.float32)
    sine, cosine = emulated("fast_sincosf", x, results=2)
    assert (sine == np.sin(x)).all() and (cosine == np.cos(x)).all()
    assert (emulated("fast_fdividef", x, x + 3) == x / (x + 3)).all()


@pytest.mark.parametrize("mode, wanted", [("rn", (1, 0)), ("rd", (1, -1)), ("ru", (2, 0)), ("rz", (1, 0))])
def test_directions_of_rounding(mode, wanted):
    """Results between two neighbouring float32, one above 1, one below 0."""
    step = np.float32(2) ** -23
    one, tiny = np.float32(1), np.float32(2) ** -25
    got = emulated(f"fadd_{mode}", np.array([one, -1], np.float32), np.array([tiny, -tiny], np.float32))
    above = {"rn": one, "rd": one, "rz": one, "ru": one + step}[mode]
    below = {"rn": -one, "rd": -one - step, "rz": -one, "ru": -one}[mode]
    assert got.tolist() == [above, below]
    tenth = emulated(f"ddiv_{mode}", np.array([1.0]), np.array([10.0]))[0]
    assert tenth == {"rn": 0.1, "ru": 0.1}.get(mode, np.nextafter(0.1, 0))
    whole = emulated(f"double2int_{mode}", np.array([1.5, -0.5]))
    assert whole.tolist() == {"rn": [2, 0], "rd": [1, -1], "ru": [2, 0], "rz": [1, 0]}[mode]


def test_square_roots_rounded_down_and_up():
    x = np.array([2.0, 3.0, 4.0, 10.0])
    low, high = emulated("dsqrt_rd", x), emulated("dsqrt_ru", x)
    assert low[2] == high[2] == 2
    assert (np.nextafter(low, 9)[[0, 1, 3]] == high[[0, 1, 3]]).all()


def test_conversions_stop_at_the_limits():
    x = np.array([3e9, -3e9, np.nan, 7.9], np.float32)
    assert emulated("float2int_rz", x).tolist() == [2**31 - 1, -(2**31), 0, 7]
    assert emulated("float2uint_rz", x).tolist()[1:] == [0, 0, 7]
    assert emulated("float_as_int", np.array([1.0], np.float32))[0] == 0x3F800000
    assert emulated("int_as_float", np.array([0x3F800000], np.int32))[0] == 1


def test_integers():
    a, b = np.array([7, -8, 2**31 - 1], np.int32), np.array([3, 5, 2**31 - 1], np.int32)
    assert emulated("hadd", a, b).tolist() == [5, -2, 2**31 - 1]
    assert emulated("mulhi", a, b).tolist() == [0, -1, (2**31 - 1) ** 2 >> 32]
    assert emulated("umax", a, b).tolist() == [7, -8, 2**31 - 1]
    assert emulated("clz", a).tolist() == [29, 0, 1]
    assert emulated("brev", np.array([1, 2], np.int32)).tolist() == [-(2**31), 2**30]
    assert emulated("sad", a, b, b).tolist() == [7, 18, 2**31 - 1]
    perm = emulated("byte_perm", *(np.array([n], np.int32) for n in (0x03020100, 0x07060504, 0x7531)))
    assert perm.tolist() == [0x07050301]


def test_bessel_functions_are_refused():
    with pytest.raises(UnsupportedKernel, match="the emulator does not know this function of libdevice"):
        emulated("j0", X)
