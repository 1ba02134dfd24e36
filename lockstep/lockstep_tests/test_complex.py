"""Complex numbers: Numba's types, NumPy's values, counts of both parts, and what is refused."""

import cmath
import linecache
import math
import operator
from unittest.mock import patch

import numpy as np
import pytest
from numba import complex64, complex128, cuda, float32, vectorize

from lockstep import EmulatorError, KernelRaised, KernelTypeError, emulate, emulated
from lockstep.machine.machine import Machine
from lockstep.values.dtypes import dtype_of, promote, promote_division, promote_power, unify

try:
    from lockstep_tests import numba_types
except ImportError:  # the built-in numba.cuda has no such inference
    numba_types = None

LANES = 8
UNIT = np.complex64(1j)
TABLE = np.array([1 + 2j, 3 - 1j], np.complex64)
NUMBERS = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64".split()
COMPLEX = ["complex64", "complex128"]


def random_complex(*shape, dtype=np.complex64):
    random = np.random.default_rng(3)
    return (random.normal(size=shape) + 1j * random.normal(size=shape)).astype(dtype)


# --- types ----------------------------------------------------------------------------------------------

EXPRESSIONS = """
z + w; z - w; z * w; z / w; z ** w; -z; +z; z + 1; z * 2.0; 1j * f; z - f; f / z; z * n; z ** 2
z ** 0.5; n ** z
z * f + w; w - z * f; z * w - f; UNIT * z; UNIT.real * f; TABLE[1] * z; abs(z); abs(w); z.real; w.imag; f.real
f.imag; n.imag; z.conjugate(); w.conjugate().imag; f.conjugate(); complex(z); complex(f); complex(f, f)
complex(f, 1); complex(n, f); complex64(w); complex128(f); np.complex64(0); bool(z); not z; z == w; z != 1
z == f
z if f > 0 else 0; z and f; z or w; pow(z, w); 0.0 + 0.0j; cmath.exp(z); cmath.sqrt(f); cmath.log(z)
cmath.log(z, 2); cmath.log10(z); cmath.phase(w); cmath.polar(z)[0]; cmath.rect(f, f); cmath.acosh(z)
cmath.sinh(z); cmath.tanh(z); cmath.isnan(z); cmath.pi * z; np.sin(z); np.conj(z); sum((z, w)); (z, f)[0]
""".replace("\n", ";")


def stored_by(source, *arguments):
    """(the kernel, [(type, values) of everything that it stores])."""
    file = f"<complex {hash(source)}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    space = dict(globals())
    exec(compile(source, file, "exec"), space)
    found = []

    def note(machine, site, base, index, value):
        if machine.only_types:
            return
        values = np.broadcast_to(machine.plain(value), machine.chunk.geometry.shape)[0, 0]
        found.append((dtype_of(value).name, values))

    with patch.object(Machine, "assign_element", note):
        emulate(space["kernel"], 1, LANES, *arguments)
    return space["kernel"], found


def test_expressions_have_numbas_types_and_numpys_values():
    expressions = [text.strip() for text in EXPRESSIONS.split(";") if text.strip()]
    source = "def kernel(x, y, g, n, out):\n    i = cuda.grid(1)\n    z, w, f = x[i], y[i], g[i]\n"
    source += "".join(f"    out[i, {row}] = {text}\n" for row, text in enumerate(expressions))
    x, y = random_complex(LANES), random_complex(2 * LANES, dtype=np.complex128)[LANES:]
    g = np.arange(1, LANES + 1, dtype=np.float32) / 4
    n = np.int32(3)
    out = np.zeros((LANES, len(expressions)), np.complex128)
    kernel, found = stored_by(source, x, y, g, n, out)
    assert len(found) == len(expressions)
    for lane in range(LANES):
        names = {"z": x[lane].item(), "w": y[lane].item(), "f": g[lane].item(), "n": 3}
        for text, (_, values) in zip(expressions, found):
            wanted = eval(text, globals(), names)
            assert values[lane] == pytest.approx(wanted, rel=2e-5, abs=2e-6), text
    if numba_types is None:
        return
    typemap, _, ir = numba_types.infer(kernel, x, y, g, n, out)
    stores = [s for block in ir.blocks.values() for s in block.body if type(s).__name__ == "SetItem"]
    wanted = [str(typemap[store.value.name]) for store in stores]
    assert [(t, k.replace("bool_", "bool")) for t, (k, _) in zip(expressions, found)] == [
        (text, kind.split("(")[0].replace("Literal[bool]", "bool")) for text, kind in zip(expressions, wanted)
    ]


@pytest.mark.skipif(numba_types is None, reason="asks numba-cuda's type inference")
def test_operands_of_all_types():
    context = numba_types.contexts()[0]
    rules = {
        operator.add: promote, operator.mul: promote, operator.truediv: promote_division,
        operator.pow: promote_power,
    }  # fmt: skip
    for a, b in [(a, b) for a in NUMBERS + COMPLEX for b in COMPLEX]:
        names = [name.replace("bool", "boolean") for name in (a, b)]
        for pair in (names, names[::-1]):
            dtypes = [np.dtype(name.replace("boolean", "bool")) for name in pair]
            for op, rule in rules.items():
                assert rule(*dtypes).name == numba_types.result_type(op, *pair), (op, pair)
            unified = context.unify_pairs(*(getattr(numba_types.types, name) for name in pair))
            assert unify(*dtypes).name == str(unified)


# --- values ---------------------------------------------------------------------------------------------


@cuda.jit
def memory(x, y, m, out):
    tile = cuda.shared.array(LANES, complex64)
    own = cuda.local.array(2, complex128)
    table = cuda.const.array_like(TABLE)
    i = cuda.grid(1)
    tile[i] = x[i]
    own[0] = 1j
    own[1] = own[0] * 2
    own[1] += x[i] * y[i]
    old = own[0].real
    own[0] = 5
    cuda.syncthreads()
    row = m[i]
    row[:] = table[0]
    row[1:3] = x[:2]
    m.imag[i, 0] += 7
    m.real[i, 3] = 9
    out[i, 0] = tile[LANES - 1 - i]
    out[i, 1] = own[1] + old
    total = 0j
    for k in range(LANES):
        total += x[k] * y[i]
    out[i, 2] = total
    steps = 0
    z = 0j
    while abs(z) < 2 and steps < 20:
        z = z * z + x[i]
        steps += 1
    out[i, 3] = z
    out[i, 4] = -z if i % 2 else x[i].real
    out.real[i, 5], out.imag[i, 5] = x.view(np.float32)[2 * i], x[i].imag
    cuda.atomic.add(out.imag, (0, 6), x[i].imag)
    cuda.atomic.add(out.real, (0, 6), 1.0)


@pytest.mark.usefixtures("runtime")
def test_memory_of_every_space_loops_and_branches():
    x, y = random_complex(LANES), random_complex(2 * LANES)[LANES:]
    m, out = np.zeros((LANES, 4), np.complex128), np.zeros((LANES, 7), np.complex64)
    report = emulate(memory, 1, LANES, x, y, m, out)
    assert report.ok
    ends = []
    for c in x.astype(np.complex128):
        z, steps = 0j, 0
        while abs(z) < 2 and steps < 20:
            z, steps = z * z + c, steps + 1
        ends.append(z)
    other = [-z if i % 2 else x[i].real for i, z in enumerate(ends)]
    wanted = np.stack([x[::-1], 2j + x * y, x.sum() * y, ends, other, x], 1)
    np.testing.assert_allclose(out[:, :6], wanted, rtol=1e-4, atol=1e-5)
    assert out[0, 6] == pytest.approx(LANES + 1j * x.imag.sum(), rel=1e-5)
    row = [TABLE[0] + 7j, x[0], x[1], 9 + 2j]
    np.testing.assert_array_equal(m, np.broadcast_to(np.array(row, np.complex64), m.shape))


def test_products_and_quotients_round_in_their_own_precision():
    """The product of the parts, Smith's quotient and the square in polar form, each in float32."""

    @cuda.jit
    def kernel(x, y, out):
        i = cuda.grid(1)
        out[i, 0] = x[i] * y[i]
        out[i, 1] = x[i] / y[i]

    x, y, out = random_complex(64), random_complex(128)[64:], np.zeros((64, 2), np.complex64)
    emulate(kernel, 1, 64, x, y, out)
    a, b, c, d = x.real, x.imag, y.real, y.imag
    assert (out[:, 0].real == a * c - b * d).all() and (out[:, 0].imag == a * d + b * c).all()
    ratio = d / c
    by_real = np.abs(c) >= np.abs(d)
    assert (out[:, 1].real == (a + b * ratio) / (c + d * ratio))[by_real].all()


INF, NAN = math.inf, math.nan
SPECIAL = [  # as numba-cuda's cmathimpl computes them
    (cmath.exp, (-INF, -INF), (0.0, 0.0)),
    (cmath.exp, (INF, NAN), (INF, NAN)),
    (cmath.exp, (INF, 0.0), (INF, 0.0)),
    (cmath.exp, (NAN, -0.0), (NAN, -0.0)),
    (cmath.log10, (0.0, INF), (INF, math.pi / 2 / math.log(10))),
    (cmath.log10, (-0.0, -INF), (INF, -math.pi / 2 / math.log(10))),
    (cmath.log10, (0.0, -0.0), (-INF, -0.0)),
    (cmath.rect, (0.0, INF), (0.0, 0.0)),
    (cmath.rect, (INF, 0.0), (INF, 0.0)),
    (cmath.rect, (-INF, 0.0), (-INF, -0.0)),
    (cmath.rect, (-INF, NAN), (-INF, NAN)),
    (cmath.cosh, (-INF, -0.0), (INF, 0.0)),
    (cmath.sinh, (INF, 0.0), (INF, 0.0)),
    (cmath.sinh, (0.0, INF), (NAN, NAN)),
    (cmath.tanh, (-INF, INF), (-1.0, 0.0)),
    (cmath.cos, (0.0, INF), (INF, -0.0)),
    (cmath.sin, (INF, 0.0), (NAN, NAN)),
    (cmath.tan, (1.0, INF), (0.0, 1.0)),
]


@pytest.mark.parametrize("function, given, expected", SPECIAL)
def test_functions_of_what_is_zero_or_not_finite(function, given, expected):
    @cuda.jit
    def of_polar(x, out):
        out[0] = function(x[0], x[1])

    @cuda.jit
    def of_complex(x, out):
        out[0] = function(complex(x[0], x[1]))

    out = np.zeros(1, np.complex128)
    emulate(of_polar if function is cmath.rect else of_complex, 1, 1, np.array(given), out)
    for got, wanted in zip((out[0].real, out[0].imag), expected):
        np.testing.assert_allclose(got, wanted, rtol=1e-15)
        assert wanted != 0 or np.signbit(got) == np.signbit(wanted)


@pytest.mark.parametrize("name", "cos cosh exp log10 sin sinh tan tanh".split())
def test_functions_of_ordinary_numbers(name):
    function = getattr(cmath, name)

    @cuda.jit
    def kernel(z, out):
        i = cuda.grid(1)
        out[i] = function(z[i])

    z, out = random_complex(256), np.zeros(256, np.complex64)
    emulate(kernel, 8, 32, z, out)
    np.testing.assert_allclose(out, [function(complex(each)) for each in z], rtol=3e-6)


def test_a_quotient_by_zero_ends_the_thread():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        if i < 2:
            out[i] = 1 / x[i]

    emulate(kernel, 1, LANES, np.array([1, 2] + [0] * 6, np.complex64), np.zeros(2, np.complex64))
    with pytest.raises(KernelRaised, match=r"Thread \(1, 0, 0\) .* ZeroDivisionError: complex division by"):
        emulate(kernel, 1, LANES, np.array([1, 0] + [0] * 6, np.complex64), np.zeros(2, np.complex64))


def test_numbers_given_to_a_kernel_and_counting_without_running():
    @cuda.jit("void(complex64[:], complex128, complex64)")
    def kernel(x, a, b):
        i = cuda.grid(1)
        x[i] = x[i] * b + a / 2

    x = random_complex(LANES)
    wanted = x * (1 - 1j) + 1j
    full = emulate(kernel, 1, LANES, x, 2j, 1 - 1j)
    np.testing.assert_allclose(x, wanted, rtol=1e-6)
    counted = emulate(kernel, 1, LANES, x, 2j, 1 - 1j, counts_only=True)
    assert counted.totals() == full.totals()


# --- counts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_a_number_is_accessed_part_by_part(dtype):
    """Compiled code has one instruction for each part; in shared memory, which is aligned, one for both."""

    @cuda.jit
    def kernel(x, out):
        tile = cuda.shared.array(32, dtype)
        i = cuda.grid(1)
        tile[i] = x[i] * x[i] + x[i]
        out[i] = tile[i]

    x, out = np.zeros(32, dtype), np.zeros(32, dtype)
    report = emulate(kernel, 1, 32, x, out)
    size = out.itemsize
    assert report.total("requests", array="out") == 2
    assert report.total("bytes", array="out") == 32 * size
    assert report.total("sectors", array="out") == 2 * 32 * size // 32  # each part touches every sector
    assert report.total("wavefronts", array="tile", op="load") == size // 4
    for space, bits in (("global", size * 4), ("shared", size * 8)):
        assert set(report.accesses.query(f"space == '{space}'")["bits"]) == {bits}
    assert report.flops == 32 * (6 + 2)


# --- findings and refusals ------------------------------------------------------------------------------


def test_findings_in_complex_arrays():
    @cuda.jit
    def kernel(x, out):
        tile = cuda.shared.array(32, complex64)
        i = cuda.grid(1)
        out[i] = tile[i]
        out.real[0, 1] = x[i + 1].real

    report = emulate(kernel, 1, 4, np.zeros(4, np.complex64), np.zeros((4, 2), np.complex64)[:, :])
    found = {finding.kind: finding.message for finding in report.errors}
    assert set(found) == {"uninitialised_read", "out_of_bounds", "global_race"}
    assert "out[0, 1]" in found["global_race"]


REFUSED = {
    "out[i] = x[i] < x[0]": "< needs real numbers",
    "out[i] = x[i] // 2": "// needs real numbers",
    "out[i] = min(x[i], x[0])": r"min\(\) needs real numbers",
    "f[i] = x[i]": "Numba converts no complex64 to float32",
    "out[i] = float32(x[i])": "Numba converts no complex64 to float32",
    "cuda.atomic.add(f, i, x[i])": "Numba converts no complex64 to float32",
    "cuda.atomic.add(out, i, x[i])": "takes arrays of int32",
    "out[i] = complex(x[i], 1)": r"Numba has no complex\(\) of complex64 and int64",
    "out[i] = cmath.cosh(f[i])": r"Numba has no cmath.cosh\(\) of float32",
    "out[i] = abs(cmath.isclose(x[i], x[i]))": "does not support cmath.isclose",
    "out[i] = cuda.fma(x[i], x[i], x[i])": r"cuda.fma\(\) needs real numbers",
    "out[i] = cuda.selp(i > 0, x[i], x[0])": r"cuda.selp\(\) takes a condition and two numbers",
    "out[i] = x[i] & 1": "& needs integers",
    "print(x[i])": r"print\(\) on a GPU knows no complex numbers",
    "out[i] = f.imag[i]": "has no imaginary part",
    "out[i] = x.conjugate()[i]": r"no method .conjugate\(\)",
    "out[x[i]] = 1": "an index must be an integer",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_numba_refuses_is_refused(text):
    source = f"def kernel(x, f, out):\n    i = cuda.grid(1)\n    {text}\n"
    file = f"<refused {text}>"
    linecache.cache[file] = len(source), None, source.splitlines(True), file
    space = {"cuda": cuda, "cmath": cmath, "float32": float32}
    exec(compile(source, file, "exec"), space)
    error = KernelTypeError if "isclose" not in text else EmulatorError
    with pytest.raises(error, match=REFUSED[text]):
        emulate(space["kernel"], 1, 4, random_complex(4), np.zeros(4, np.float32), np.zeros(4, complex))


# --- the host side --------------------------------------------------------------------------------------


def test_the_host_side():
    with emulated():
        x = random_complex(100)
        there = cuda.to_device(x)
        fresh = cuda.device_array_like(there)
        assert fresh.dtype == x.dtype and np.isnan(fresh.copy_to_host().imag).all()
        assert np.isnan(cuda.managed_array(3, np.complex128).imag).all()

        @vectorize(["complex64(complex64, float32)"], target="cuda")
        def product(a, b):
            return a * b

        half = np.full(100, 0.5, np.float32)
        np.testing.assert_array_equal(product(there, half).copy_to_host(), x / 2)
        total = cuda.reduce(lambda a, b: a + b)(there)
        assert total == pytest.approx(x.sum(), rel=1e-5)


def test_a_float32_is_compared_with_a_float64_in_float64():
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        out[i] = x[i] == 0.1

    out = np.ones(2)
    emulate(kernel, 1, 2, np.full(2, 0.1, np.float32), out)
    assert (out == 0).all()


@cuda.jit
def parts_by_numpy(z, x, out):
    i = cuda.grid(1)
    out[i, 0] = np.real(z[i])
    out[i, 1] = np.imag(z[i])
    out[i, 2] = np.angle(z[i])
    out[i, 3] = np.angle(z[i], True)
    out[i, 4] = np.real(x[i]) + np.imag(x[i]) + np.angle(-x[i])


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_parts_and_angles_by_numpy(dtype):
    z, x = np.array([1 + 2j, -3 - 1j, -2 + 0j], dtype), np.array([1, 2, 3], np.float32)
    emulate(parts_by_numpy, 1, 3, z, x, out := np.zeros((3, 5)))
    wanted = [z.real, z.imag, np.angle(z), np.angle(z, True), x + np.float32(np.pi)]
    np.testing.assert_allclose(out, np.stack(wanted, axis=1), rtol=1e-6)


def test_float64_is_expected_where_arrays_are_complex128():
    @cuda.jit
    def kernel(z):
        z[cuda.threadIdx.x] *= 2

    assert emulate(kernel, 1, 32, np.ones(32, np.complex128)).findings == []
