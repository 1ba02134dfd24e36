"""Numba's typing rules, not NumPy's: the type in which each operation of a kernel computes.

The reference is Numba itself: its type inference for CUDA is plain Python and needs no GPU.
"""

import itertools
import math
import operator
from fractions import Fraction

import numpy as np
import pytest
from numba import cuda, float32, uint64

from lockstep import KernelTypeError, emulate
from lockstep.intrinsics import u32
from lockstep.types.inference import Types
from lockstep.values.dtypes import range_type
from lockstep_tests import corpus, scalar
from lockstep_tests.corpus import noise, ramp, zeros

numba_types = pytest.importorskip(
    "lockstep_tests.numba_types",
    reason="asks numba-cuda's type inference, which the built-in numba.cuda lacks",
    exc_type=ImportError,
)

INTEGERS = ["int8", "int32", "int64", "uint8", "uint32", "uint64"]
FLOATS = ["float16", "float32", "float64"]


@cuda.jit
def added(x, y, out):
    i = cuda.grid(1)
    out[i] = x[i] + y[i]


@cuda.jit
def subtracted(x, y, out):
    i = cuda.grid(1)
    out[i] = x[i] - y[i]


@cuda.jit
def multiplied(x, y, out):
    i = cuda.grid(1)
    out[i] = x[i] * y[i]


@cuda.jit
def divided(x, y, out):
    i = cuda.grid(1)
    out[i] = x[i] / y[i]


@cuda.jit
def floor_divided(x, y, out):
    i = cuda.grid(1)
    out[i] = x[i] // y[i]


@cuda.jit
def remainder(x, y, out):
    i = cuda.grid(1)
    out[i] = x[i] % y[i]


@cuda.jit
def common_bits(x, y, out):
    i = cuda.grid(1)
    out[i] = x[i] & y[i]


@cuda.jit
def shifted_left(x, y, out):
    i = cuda.grid(1)
    out[i] = x[i] << y[i]


@cuda.jit
def shifted_right(x, y, out):
    i = cuda.grid(1)
    out[i] = x[i] >> y[i]


@cuda.jit
def less_than(x, y, out):
    i = cuda.grid(1)
    out[i] = x[i] < y[i]


ARITHMETIC = {
    operator.add: added,
    operator.sub: subtracted,
    operator.mul: multiplied,
    operator.truediv: divided,
    operator.floordiv: floor_divided,
    operator.mod: remainder,
    operator.lt: less_than,
}
BITWISE = {operator.and_: common_bits, operator.lshift: shifted_left, operator.rshift: shifted_right}


def values(name):
    """Numbers that distinguish types: they overflow narrow integers and are rounded by short floats."""
    if name.startswith("float"):
        return np.array([0.1, -3.3, 1000.25, 7.0, 0.7, -2.5], name)
    top = np.iinfo(name).max
    return np.array([1, 3, top, top - 5, top // 3, 2 if name[0] == "u" else -7 % 256 - 256], dtype=name)


def small(name):
    return np.array([1, 2, 3, 1, 4, 2], dtype=name)


def expected(operation, x, y):
    found = [scalar.apply(operation, a, b) for a, b in zip(x, y, strict=True)]
    if operation is operator.mod and isinstance(found[0], np.float64):
        return [remainder_on_an_h100(float(a), float(b)) for a, b in zip(x, y, strict=True)]
    return found


def remainder_on_an_h100(x: float, y: float) -> np.float64:
    """Return x % y as an H100 has it, bit for bit, also where x is too large for the quotient to be exact."""
    left = float(Fraction(x) - math.trunc(x / y) * Fraction(y))
    return np.float64(left + y if left and (left < 0) != (y < 0) else left)


def check(operation, kernel, x, y):
    try:
        wanted = expected(operation, x, y)
    except scalar.NotCovered:
        return 0  # Numba would not compile it
    out = np.zeros(len(x), "float64" if isinstance(wanted[0], np.floating) else wanted[0].dtype)
    emulate(kernel, 1, len(x), x.copy(), y.copy(), out)
    np.testing.assert_array_equal(
        out, np.array(wanted, out.dtype), err_msg=f"{operation.__name__} of {x.dtype} and {y.dtype}"
    )
    return 1


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_remainders_of_literals(dtype):
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        out[i, 0], out[i, 1], out[i, 2] = -2 % x[i], x[i] % 3, True % x[i]

    x, out = values(dtype), np.zeros((6, 3))
    emulate(kernel, 1, 6, x, out)
    for column, (a, b) in enumerate([(-2, x), (x, 3), (1, x)]):
        a, b = np.broadcast_arrays(np.asarray(a, np.float64), np.asarray(b, np.float64))
        np.testing.assert_allclose(out[:, column], a % b, rtol=2 * np.finfo(dtype).eps, atol=1e-15)


@pytest.mark.parametrize("operation", ARITHMETIC)
def test_arithmetic_of_any_two_types(operation):
    with np.errstate(all="ignore"):
        done = sum(
            check(operation, ARITHMETIC[operation], values(left), values(right))
            for left, right in itertools.product(INTEGERS + FLOATS, repeat=2)
        )
    assert done >= 60


@pytest.mark.parametrize("operation", BITWISE)
def test_bitwise_operations_of_any_two_integers(operation):
    done = sum(
        check(operation, BITWISE[operation], values(left), small(right))
        for left, right in itertools.product(INTEGERS, repeat=2)
    )
    assert done >= 25


# --- where types come together --------------------------------------------------------------------------


@cuda.jit
def grows_from_an_int(x, out):
    i = cuda.grid(1)
    acc = 0
    for j in range(3):
        acc += x[i]
        acc = acc * x[j]
    out[i] = acc


@cuda.jit
def widened_in_one_branch(x, out):
    i = cuda.grid(1)
    value = x[i]
    if i > 2:
        value = 0.5
    out[i] = value * x[i]


@cuda.jit
def widened_by_a_loop_that_may_not_run(x, out):
    i = cuda.grid(1)
    value = x[i]
    for _ in range(i - 2):
        value = value + 1.0
    out[i] = value * x[0]


@cuda.jit
def never_widened(x, out):
    i = cuda.grid(1)
    acc = float32(0)
    for j in range(3):
        acc += x[j] * x[i]
    out[i] = acc - x[i] if i > 1 else -acc


@cuda.jit
def widened_in_a_tuple(x, out):
    i = cuda.grid(1)
    a, b = x[i], 1.0
    a, b = b, a
    out[i] = a * x[i] + b * x[i]


@cuda.jit
def int_loop_counter_times_float(x, out):
    i = cuda.grid(1)
    for j in range(3):
        out[i] = j * x[i]
        out[i] = float32(j) * x[i]


@cuda.jit
def divided_by_its_length(x, out):
    i = cuda.grid(1)
    out[i] = x[i] / x.shape[0]
    out[i] = x[i] / float32(x.shape[0])


@cuda.jit
def literal_inside_a_ternary(x, out):
    i = cuda.grid(1)
    value = 1 if i > 2 else x[i]
    out[i] = value * x[i]


def wide(x):
    return x.astype(np.float64)


def products_of_sums(x):
    acc = np.zeros(8)
    for j in range(3):
        acc = (acc + x) * wide(x)[j]
    return acc


NUMBERS = np.arange(8)
IN_FLOAT64 = {
    grows_from_an_int: products_of_sums,
    widened_in_one_branch: lambda x: np.where(NUMBERS > 2, 0.5, wide(x)) * x,
    widened_by_a_loop_that_may_not_run: lambda x: (np.maximum(NUMBERS - 2, 0) + wide(x)) * x[0],
    widened_in_a_tuple: lambda x: x + wide(x * x),
    int_loop_counter_times_float: lambda x: wide(2 * x),
    literal_inside_a_ternary: lambda x: np.where(NUMBERS > 2, 1.0, wide(x)) * x,
}
UNIFIED = [*IN_FLOAT64, never_widened, divided_by_its_length]


def float_types_by_line(report):
    """{(line, type)} of the float arithmetic a report counted."""
    frame = report.arithmetic
    frame = frame[frame["dtype"].astype(str).str.startswith("float") & (frame["lanes"] > 0)]
    return set(zip(frame["line"], frame["dtype"].astype(str), strict=True))


def compare_with_numba(kernel, grid, block, args, shared_bytes=0):
    counted = ("add", "sub", "mul", "truediv", "iadd", "isub", "imul", "itruediv")
    typed = {
        (found.line, found.dtype)
        for found in numba_types.binary_operations(kernel.py_func, *args)
        if found.op in counted
    }
    lines = {line for line, _ in typed}
    report = emulate(kernel, grid, block, *args, shared_bytes=shared_bytes)
    emulated = {(line, dtype) for line, dtype in float_types_by_line(report) if line in lines}
    assert emulated == typed
    return typed


@pytest.mark.parametrize("kernel", UNIFIED, ids=lambda kernel: kernel.py_func.__name__)
def test_where_types_come_together(kernel):
    assert compare_with_numba(kernel, 1, 8, (ramp(8), zeros(8)))


@pytest.mark.parametrize("kernel", IN_FLOAT64, ids=lambda kernel: kernel.py_func.__name__)
def test_values_where_types_come_together(kernel):
    """Numbers that float32 would round: they are right only if the kernel computes in Numba's types."""
    x = noise(8) + np.float32(1 / 3)
    out = zeros(8, dtype=np.float64)
    emulate(kernel, 1, 8, x, out)
    np.testing.assert_allclose(out, IN_FLOAT64[kernel](x), rtol=1e-14)


CORPUS = {
    name: case
    for package in ("broken", "sound")
    for name, case in corpus.cases(package).items()
    if not case.helpers and (package == "sound" or case.kind in corpus.ADVICE)
}


@pytest.mark.many(one_in=9, with_all=2)
@pytest.mark.parametrize("name", CORPUS)
def test_float_types_of_the_corpus_line_by_line(name):
    case = CORPUS[name]
    compare_with_numba(case.kernel, case.grid, case.block, case.make_args(), case.shared_bytes)


@pytest.mark.many(one_in=3, with_all=2)
@pytest.mark.parametrize("name", CORPUS)
def test_float64_advice_where_numba_computes_in_float64(name):
    case = CORPUS[name]
    arguments = case.make_args()
    if any(getattr(argument, "dtype", None) == np.float64 for argument in arguments if np.ndim(argument)):
        pytest.skip("an array of float64 asks for float64 arithmetic")
    typed = {
        found.line
        for found in numba_types.binary_operations(case.kernel.py_func, *arguments)
        if found.dtype == "float64"
    }
    report = emulate(case.kernel, case.grid, case.block, *arguments, shared_bytes=case.shared_bytes)
    advised = {finding.line for finding in report.findings if finding.kind == "float64_arithmetic"}
    assert typed <= advised


def test_the_smaller_of_a_signed_and_an_unsigned_number_is_a_float64():
    """Numba types int64 with uint64 so, and a difference of two uint32 is a uint64."""

    @cuda.jit
    def rest_of(out, n, signed):
        i = u32(cuda.threadIdx.x)
        left = u32(n) - i
        out[i] = min(16, left) if signed else min(u32(16), u32(left))

    for signed in (True, False):
        out = np.zeros(32, np.int32)
        report = emulate(rest_of, 1, 32, out, 40, signed)
        assert out.tolist() == [min(16, 40 - i) for i in range(32)]
        assert ("float64_arithmetic" in {finding.kind for finding in report.findings}) == signed


# --- integers of 64 bits ----------------------------------------------------------------------------------


@cuda.jit
def wraps(n, i8, u32, whole, real):
    i = cuda.grid(1)
    s, t = n, i
    for _ in range(5):
        s = s * 6364136223846793005 + 1
        t = t * 6364136223846793005 + 1
    whole[i, 0] = s
    whole[i, 1] = t
    whole[i, 2] = uint64(1) << uint64(63)
    whole[i, 3] = (n > 1) - (i < 1)
    whole[i, 4] = n**-1
    whole[i, 5] = abs(i8[i])
    whole[i, 6] = n // (n - 3) + n % (n - 3)
    whole[i, 7] = (i + 1) << (n + 61)
    real[i, 0] = -u32[i]
    real[i, 1] = i8[i] or 7
    real[i, 2] = i8[i] and 7
    real[i, 3] = ~u32[i]
    real[i, 4] = float(u32[i] * n)


def test_integers_wrap_at_64_bits():
    i8, u32 = np.array([-128, 0], np.int8), np.array([3, 5], np.uint32)
    whole, real = np.zeros((2, 8), np.int64), np.zeros((2, 5))
    emulate(wraps, 1, 2, 3, i8, u32, whole, real)
    chaos = np.array([3, 3, 0, 1])
    with np.errstate(over="ignore"):
        for _ in range(5):
            chaos = chaos * 6364136223846793005 + 1
    smallest = -(2**63)
    assert whole[0].tolist() == [chaos[0], chaos[2], smallest, 0, 0, -128, 0, 0]
    assert whole[1].tolist() == [chaos[1], chaos[3], smallest, 1, 0, 0, 0, 0]
    assert real[0].tolist() == [2**32 - 3, -128, 7, 2**32 - 4, 9]
    assert real[1].tolist() == [2**32 - 5, 7, 0, 2**32 - 6, 15]


@cuda.jit
def compares_far_numbers(x, y, out):
    i = cuda.grid(1)
    out[i, 0] = x[i] < y[i]
    out[i, 1] = max(x[i], x[1 - i])


def test_numbers_that_are_far_apart_are_compared_exactly():
    x, y = np.array([-(2**63), 2**63 - 1]), np.array([2**64 - 1, 2**63 - 1], np.uint64)
    out = np.zeros((2, 2), np.int64)
    emulate(compares_far_numbers, 1, 2, x, y, out)
    assert out.tolist() == [[1, 2**63 - 1], [0, 2**63 - 1]]


# --- loops over ranges ------------------------------------------------------------------------------------


def test_the_type_of_every_range_is_numbas():
    context, _ = numba_types.contexts()
    names = ["boolean", *INTEGERS, "int16", "uint16", "float32", "float64"]
    for count in (1, 2, 3):
        for bounds in itertools.product(names, repeat=count):
            given = tuple(getattr(numba_types.types, name) for name in bounds)
            wanted = context.resolve_function_type(range, given, {}).return_type.dtype
            found = range_type(*(np.dtype(name.replace("boolean", "bool")) for name in bounds))
            assert found.name == str(wanted), bounds


@cuda.jit
def loops_over_typed_ranges(unsigned, narrow, by_type):
    i = cuda.grid(1)
    for j in range(unsigned[0]):
        by_type[i, 0] = -j
    for j in range(unsigned[i]):
        by_type[i, 1] = -j
    for j in range(narrow[0]):
        by_type[i, 2] += min(j, unsigned[i]) - j  # int64 for an int32 j, float64 for an int64
    for n, j in enumerate(range(unsigned[1])):
        by_type[i, 3] = n - j
    for j in range(i, 4, cuda.blockDim.x):
        by_type[i, 4] += min(j, unsigned[i])


def test_loops_run_over_numbas_types():
    """A negated uint64 is a large number: the differences show in float64 arrays."""
    by_type = np.zeros((2, 5))
    emulate(loops_over_typed_ranges, 1, 2, np.array([3, 2], np.uint64), np.array([4, 1], np.int16), by_type)
    assert by_type[:, :2].tolist() == [[2.0**64, 2.0**64]] * 2
    assert by_type[:, 3:].tolist() == [[0, 2], [0, 3]]
    assert by_type[:, 2].tolist() == [0, -1]


@cuda.jit
def loops_to_floats(bounds, out):
    i = cuda.grid(1)
    for _ in range(bounds[i]):
        out[i] += 1
    for _ in range(1, bounds[i] / 2, 1):
        out[i] += 10
    for _ in range(math.ceil(bounds[1] + 0.5)):
        out[i] += 100


def test_bounds_of_ranges_are_cut_off_to_integers():
    emulate(loops_to_floats, 1, 4, np.array([2.7, -1.5, 0.9, 6.0]), out := np.zeros(4))
    assert out.tolist() == [2, 0, 0, 26]


@cuda.jit
def types_of_the_launch(out):
    i = cuda.grid(1)
    for j in range(cuda.blockDim.x):
        out[i, 0] = cuda.popc(-1 - j + j)
    out[i, 1] = cuda.clz(cuda.blockDim.x) + cuda.clz(cuda.gridDim.y) + cuda.clz(cuda.blockIdx.z)
    out[i, 2] = cuda.clz(cuda.warpsize)


def test_sizes_of_a_launch_have_32_bits():
    out = np.zeros((1, 3))
    emulate(types_of_the_launch, 1, 1, out)
    assert out.tolist() == [[64, 31 + 31 + 32, 26]]


def test_selp_casts_nothing():
    @cuda.jit
    def selects(x, out):
        out[0] = cuda.selp(x[0] > 0, x[0], 1.0)

    with pytest.raises(KernelTypeError, match="of one type"):
        emulate(selects, 1, 1, ramp(1), zeros(1))
    emulate(selects, 1, 1, np.ones(1), out := np.zeros(1))
    assert out[0] == 1


@cuda.jit
def chained(x, out):
    out[0] = ((x[0] and 3.0) and True) + 2**53


def test_a_constant_inside_a_chain_of_ands_has_no_say_in_the_type():
    """Python's own code leaves it out; in float64 the last bit would be lost."""
    emulate(chained, 1, 1, np.ones(1, np.int32), out := np.zeros(1, np.int64))
    assert out[0] == 2**53 + 1


# --- where no type is found -------------------------------------------------------------------------------


@cuda.jit
def number_or_array(n, x, out):
    value = 1
    if n > 5:
        value = x
    out[0] = value


@cuda.jit
def number_or_nonsense(n, x, out):
    value = 1
    if n > 5:
        value = x[0] + x
    out[0] = value


@pytest.mark.parametrize(
    ("kernel", "says"), [(number_or_array, "something else"), (number_or_nonsense, "whole array")]
)
def test_a_variable_whose_type_is_not_found_is_refused_on_any_path(kernel, says):
    line = kernel.py_func.__code__.co_firstlineno + (3 if says == "something else" else 4)
    with pytest.raises(
        KernelTypeError, match=f"line {line}: .* that of value cannot be found here: .*{says}"
    ):
        emulate(kernel, 1, 1, 3, ramp(2), zeros(1))


def test_a_variable_that_only_an_endless_loop_sets():
    @cuda.jit
    def kernel(out):
        while out[0] > 1:
            while True:
                if out[0] > 2:
                    last = 1.0
                last *= out[0]
        out[0] = 2

    emulate(kernel, 1, 1, out := np.zeros(1))
    assert out[0] == 2


@cuda.jit(device=True)
def sum_or_value(value, other=None):
    if other is None:
        value = value * 2
    else:
        value = value + other
    return value


@cuda.jit
def without_an_argument(x, out):
    out[0] = sum_or_value(x[0])
    out[1] = sum_or_value(x[0], 0.5)


def test_numba_drops_the_branch_for_an_argument_that_is_none():
    emulate(without_an_argument, 1, 1, np.ones(1, np.float32), out := np.zeros(2))
    assert out.tolist() == [2, 1.5]


def squares(limit, narrow):
    """A kernel whose types a constant from outside decides: Numba drops the branch that is never taken."""

    def kernel(x, out, other):
        i = cuda.grid(1)
        value = narrow
        if limit > 3:
            value = x[i]
        if other > 0:
            value = other
        out[i] = value * value

    return kernel


def test_types_are_found_again_where_a_constant_or_an_argument_differs(monkeypatch):
    passes, run = [], Types.again
    monkeypatch.setattr(Types, "again", lambda types: passes.append(types) or run(types))
    x, single = np.ones(4, np.float64), np.float32(2)
    launches = [(5, single, single), (1, single, single), (1, 2.0, single), (1, single, 1.0)]
    found = []
    for *outside, other in [*launches, *launches]:
        found.append(emulate(squares(*outside), 1, 4, x, x.copy(), other).arithmetic["dtype"].tolist())
        if len(found) == len(launches):
            passes.clear()
    assert found == [["float64"], ["float32"], ["float64"], ["float64"]] * 2
    assert not passes  # what is known from an equal launch is not found again


@cuda.jit
def mixed_signs(unsigned, signed, out):
    i = cuda.grid(1)
    u, s = unsigned[i], signed[i]
    out[i, 0], out[i, 1], out[i, 2] = u >= s, u == s, u < s
    out[i, 3], out[i, 4] = u < 1721142608025344990, s in (u, u)
    out[i, 5], out[i, 6] = u > np.int32(-1), u > np.uint8(1)


def test_uint64_and_a_signed_integer_are_compared_as_float64():
    """Numba converts both. Two of these numbers differ, and are one float64."""
    unsigned = np.array([1721142608025344941, 2**64 - 1, 3], np.uint64)
    signed = np.array([1721142608025344990, -1, 3])
    out = np.zeros((3, 7), np.int32)
    assert emulate(mixed_signs, 1, 3, unsigned, signed, out).ok
    u, s = unsigned.astype(float), signed.astype(float)
    wanted = [u >= s, u == s, u < s, u < 1721142608025344990.0, u == s, u > -1, unsigned > 1]
    assert out.tolist() == np.array(wanted, np.int32).T.tolist()
    assert (out[0, :2] == 1).all()
