"""What Python's syntax means in a kernel: Python itself is the reference, and Numba says what it compiles.

Each case is a device function of a thread's number and a float; Python runs the same function.
"""

import enum
import itertools
import math
import operator
from collections import namedtuple
from operator import rshift

import numpy as np
import pytest
from numba import cuda, float32

from lockstep import (
    ArgumentError,
    EmulatorError,
    KernelRaised,
    KernelTypeError,
    UnsupportedKernel,
    emulate,
)
from lockstep_tests.corpus import ramp, zeros

THREADS = 12
CASES = {}
SHAPE = (4, 8)
Point = namedtuple("Point", "x y")
ORIGIN = Point(3, 4)


class Kind(enum.IntEnum):
    WIDE = 2
    TALL = 5


class Colour(enum.Enum):
    RED, GREEN = 1, 2


class Share(enum.Enum):
    HALF, WHOLE = 0.5, 1.0


class Letter(enum.Enum):
    A = "a"


class Config:
    TILE = 8


TALL = Kind.TALL
SHORT = np.dtype("int16")
MARK, REAL = "#", "float32"


def case(function):
    CASES[function.__name__] = cuda.jit(device=True)(function)
    return CASES[function.__name__]


@cuda.jit(device=True)
def scaled(value, factor=2.0, offset=1):
    return value * factor + offset


@cuda.jit(device=True)
def added_up(first, *others):
    total = first
    for other in others:
        total = total + other
    return total


@cuda.jit(device=True)
def how_many(*values):
    return len(values) * 10 + values[0]


@cuda.jit(device=True)
def or_nothing(value, other=None):
    if other is None:
        return value
    return value + other


@cuda.jit(device=True)
def positional(a, b, /, c=2):
    return a - b + c


@cuda.jit(device=True)
def fibonacci(n):
    if n < 2:
        return n
    return fibonacci(n - 1) + fibonacci(n - 2)


@cuda.jit(device=True)
def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)


@case
def operators_as_functions(i, x):
    whole = operator.xor(operator.rshift(i * 8, 1), operator.mod(7, 4)) + rshift(operator.invert(i), 1)
    return whole + operator.truediv(operator.sub(x, 1.5), 4) + operator.neg(operator.le(i, 3) and x)


@case
def default_arguments(i, x):
    return scaled(x) + scaled(x, 3.0) + scaled(x, 3.0, 4)


@case
def keyword_arguments(i, x):
    return scaled(x, offset=i) + scaled(factor=x, value=4.0) + scaled(offset=5, value=x)


@case
def many_arguments(i, x):
    return added_up(i, 2, 3) + how_many(i, 4)


@case
def starred_argument(i, x):
    values = (i, 3)
    return how_many(*values) + scaled(*(x, 2.0))


@case
def none_as_default(i, x):
    return or_nothing(x) + or_nothing(x, 1.0) + or_nothing(x, other=None)


@cuda.jit(device=True)
def applied(function, value):
    return function(value) + 1


@case
def functions_as_arguments(i, x):
    chosen = scaled
    return applied(chosen, x) + 100 * applied(or_nothing, i)


@case
def positional_only(i, x):
    return positional(x, 1.0) + positional(x, 1.0, c=4)


@case
def recursion(i, x):
    return fibonacci(i)


@case
def recursion_in_an_expression(i, x):
    return factorial(i)


@case
def steps_of_each_thread(i, x):
    total = 0
    for k in range(i * i, 60, i + 1):
        total += k
    for k in range(40, i, -(i + 2)):
        total -= 3 * k
    return total


@case
def a_variable_in_its_own_step(i, x):
    values = (x, 3.0, x + 1)
    y = values[0]
    for k in range(3):
        y += 0.5 * (values[k] - y)
    while y > 3.0:
        y = y + 0.25 * (1.0 - y)
    return y


@case
def members_of_a_list(i, x):
    inside = x in [1.0, 2.5] or i not in [2, 3]
    return 1 if inside else 0


@case
def leading_underscores(_i, _x):
    _a, __b = _i, _x
    for _j in range(3):
        _a += _j
    u_a = 5
    return _a * __b + u_a


@case
def a_lambda(i, x):
    k = 3
    twice = lambda value: value + value * k  # noqa: E731
    return twice(x) + (lambda value: value - 1)(i)


@case
def a_lambda_in_a_loop(i, x):
    total = 0
    for k in range(3):
        times_k = lambda value: value * k  # noqa: B023, E731
        total += times_k(i)
    return total


@case
def an_inner_function(i, x):
    def clipped(value):
        if value > 3:
            return value * 2.0
        return 1.0

    def both(value):
        return clipped(value) + clipped(value - 4)

    return both(x) + both(x - 2)


@case
def an_inner_function_sees_later_values(i, x):
    k = 1

    def plus_k(value):
        return value + k

    k = i
    return plus_k(3)


@case
def an_inner_function_has_its_own_variables(i, x):
    total = 5

    def squared(value):
        total = value * value
        return total

    return squared(i) + total


@case
def nested_targets(i, x):
    a, (b, c) = i, (x, 2)
    (d, e), f = (a, b), c
    return a + b * c + d * e * f


@case
def loop_over_a_tuple(i, x):
    total = 0
    for value in (1, i, 5):
        total += value * i
    return total


@case
def loop_over_a_list(i, x):
    total = 0
    for value in [1, i, 5]:
        total += value * i
    return total


@case
def loop_over_pairs(i, x):
    total = 0
    for a, b in ((1, 2), (i, 4)):
        total += a * b
    return total


@case
def enumerated(i, x):
    total = 0.0
    for position, value in enumerate((x, 2.0)):
        total += position * value
    for position, value in enumerate((x, 2.0), i):
        total += position * value
    return total


@case
def zipped(i, x):
    total = 0
    for a, b in zip((1, 2, 3), range(5)):
        total += a * b * i
    for k, (a, b) in enumerate(zip((1, 2, 3), (4, 5, i))):
        total += k * a * b
    return total


@case
def zipped_ranges_that_differ_between_threads(i, x):
    total = 0
    for a, b in zip(range(i), range(20, 10, -2)):
        total += a * b
    for k, a in enumerate(range(3, i, 2)):
        total += k * a + 1
    return total


@case
def else_after_for(i, x):
    result = 0
    for k in range(8):
        if k == i:
            result += 100
            break
        result += k
    else:
        result = -result
    return result


@case
def else_after_while(i, x):
    k = 0
    while k < 5:
        if k == i:
            break
        k += 1
    else:
        k = 100
    return k


@case
def jump_from_the_else_of_a_loop(i, x):
    total = 0
    for j in range(4):
        for k in range(j):
            if k == i:
                break
        else:
            if j == 2:
                continue
            total += 10
        total += j
    return total


@case
def return_from_the_else_of_a_loop(i, x):
    for k in range(5):
        if k == i:
            break
    else:
        return -1
    return i


@case
def is_none(i, x):
    nothing = None
    return (1 if nothing is None else 2) + (10 if nothing is not None else 20)


@case
def in_a_tuple(i, x):
    return (1 if i in (1, 3, 5) else 2) + (10 if i not in (3, 4) else 20)


@case
def long_comparisons(i, x):
    return (1 if 0 < i < 5 <= 9 - i < 9 else 2) + (1 if 1 <= i <= i + 1 != 4 > i else 0)


@case
def whole_and_rest(i, x):
    a, b = divmod(i, 3)
    c, d = divmod(-x, 3.0)
    return a + 10 * b + 100 * c + 1000 * d


@case
def sum_of_a_tuple(i, x):
    return sum((1, i, 3)) + sum((i, 2), 5) + sum((x, 2.0))


@case
def tuples_compared_and_joined(i, x):
    joined = (1, 2) + (i,)
    total = joined[2] + len(joined)
    total += 10 if (1, i) < (1, 3) else 20
    total += 100 if (1, i) == (1, 3) else 200
    total += 1000 if (i, 2, 3) >= (4, 2, 2) else 2000
    return total + (10000 if (1, 2) != (1, 2, i) else 0)


@case
def named_tuples(i, x):
    p = Point(i, x)
    q = Point(y=x, x=3)
    return p.x + p.y * q[0] + q.y + ORIGIN.x + ORIGIN[1]


@case
def enums_of_integers(i, x):
    return Kind.TALL + i * Kind.WIDE.value + (1 if i == TALL else 0)


@case
def condition_over_tuples(i, x):
    a, b = (1, i) if i > 3 else (i, 4)
    return a * 10 + b


@case
def assertions_that_hold(i, x):
    """And a docstring."""
    assert i >= 0
    assert i < 100, "too many threads"
    if i > 100:
        raise ValueError("too large")
    pass
    return i


def kernel_of(function):
    @cuda.jit
    def kernel(x, out):
        i = cuda.grid(1)
        out[i] = function(i, x[i])

    return kernel


def inputs():
    return ramp(THREADS).astype(np.float64) * 1.25, zeros(THREADS, dtype=np.float64)


@pytest.mark.parametrize("name", CASES)
def test_as_in_python(name, monkeypatch):
    x, out = inputs()
    report = emulate(kernel_of(CASES[name]), 1, THREADS, x, out)
    assert report.ok, [str(finding) for finding in report.findings]
    for helper in (scaled, applied, added_up, how_many, or_nothing, positional, fibonacci, factorial):
        monkeypatch.setitem(globals(), helper.py_func.__name__, helper.py_func)
    np.testing.assert_allclose(out, [CASES[name].py_func(i, x[i]) for i in range(THREADS)], rtol=1e-14)


@pytest.mark.many(one_in=6)
@pytest.mark.parametrize(
    "name", sorted(CASES.keys() - {"assertions_that_hold"})
)  # pytest rewrites assertions
def test_numba_compiles_it(name):
    numba_types = pytest.importorskip("lockstep_tests.numba_types", exc_type=ImportError)
    numba_types.infer(kernel_of(CASES[name]).py_func, *inputs())


# --- kernels --------------------------------------------------------------------------------------------


@cuda.jit
def with_a_default(x, out, factor=3):
    i = cuda.grid(1)
    out[i] = x[i] * factor


@cuda.jit
def with_any_number_of_arrays(out, *arrays):
    out[0] = len(arrays)


@cuda.jit
def with_a_tuple_of_arrays(arrays, out):
    i = cuda.grid(1)
    first, second = arrays
    out[i] = first[i] + second[i]
    arrays[0][i] = 7


@cuda.jit
def with_an_optional_array(x, weights, out):
    i = cuda.grid(1)
    if weights is None:
        out[i] = x[i]
    else:
        out[i] = x[i] * weights[i]


def test_numba_uses_no_default_of_a_kernel():
    out = zeros(8)
    emulate(with_a_default, 1, 8, ramp(8), out, 5)
    assert (out == 5 * ramp(8)).all()
    with pytest.raises(ArgumentError, match="not 2; the defaults of a kernel are not used"):
        emulate(with_a_default, 1, 8, ramp(8), out)


def test_a_kernel_of_any_number_of_arrays_is_refused():
    with pytest.raises(UnsupportedKernel, match=r"the emulator does not support a kernel with \*args"):
        emulate(with_any_number_of_arrays, 1, 8, zeros(8), ramp(8))


def _divide(a, b, out):
    i = cuda.threadIdx.x
    if i != 1:
        out[i] = a[i] / b[i]
        out[i] = a[i] // b[i]
        out[i] = a[i] % b[i]


@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float32])
def test_a_division_by_zero_raises_with_debug_alone(dtype):
    a, b, out = (np.full(8, n, dtype) for n in (3, 2, 9))
    b[1] = 0  # of a thread that does not divide
    emulate(cuda.jit(_divide, debug=True, opt=False), 1, 8, a, b, out)
    assert (np.delete(out, 1) == 1).all()
    b[5] = 0
    emulate(cuda.jit(_divide), 1, 8, a, b, out)
    assert out[5] == 0 if dtype != np.float32 else np.isnan(out[5])
    with pytest.raises(
        KernelRaised, match=r"Thread \(5, 0, 0\) .* raises ZeroDivisionError: division by zero"
    ):
        emulate(cuda.jit(_divide, debug=True, opt=False), 1, 8, a, b, out)


@pytest.mark.parametrize(
    "operation, number, text",
    [
        (operator.floordiv, 1, "integer division by zero"),
        (operator.mod, 1, "integer modulo by zero"),
        (operator.floordiv, 1.0, "division by zero"),
        (operator.mod, 1.0, "modulo by zero"),
    ],
)
def test_what_a_division_by_zero_raises(operation, number, text):
    @cuda.jit
    def kernel(a, b, out):
        out[0] = operation(a, b)

    out = np.zeros(1)
    with pytest.raises(KernelRaised, match=f"ZeroDivisionError: {text} in line"):
        emulate(kernel, 1, 1, number, number - 1, out, debug=True)
    emulate(kernel, 1, 1, number, number - 1, out)


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_narrow_integers_are_negated_and_inverted_in_their_own_type(bits):
    @cuda.jit
    def kernel(x, y, number, out):
        i = cuda.threadIdx.x
        out[i, 0], out[i, 1], out[i, 2] = -x[i], ~x[i], -y[i]
        out[i, 3], out[i, 4], out[i, 5] = (-x[i]) >> 1, -number, ~y[i]

    values = np.array([7, 0, 2 ** (bits - 1)], np.uint64)
    x, out = values.astype(f"u{bits // 8}"), np.zeros((3, 6), np.uint64)
    emulate(kernel, 1, 3, x, x.view(f"i{bits // 8}"), x[0], out)
    wide = out.view(np.int64)
    for i, value in enumerate(map(int, values)):
        negated = -value % 2**bits
        assert out[i].tolist()[:2] == [negated, 2**bits - 1 - value], (i, out[i])
        signed = [-value, -1 - value] if i < 2 else [-value, value - 1]
        assert [wide[i, 2], wide[i, 5]] == signed and out[i, 3] == negated // 2
        assert out[i, 4] == 2**bits - 7


def test_a_tuple_is_indexed_from_its_end_too():
    @cuda.jit
    def kernel(out):
        i = cuda.threadIdx.x
        out[i] = (10, 20, 30)[i - 3]

    out = np.zeros(6, np.int64)
    emulate(kernel, 1, 6, out)
    assert out.tolist() == [10, 20, 30] * 2


@pytest.mark.parametrize("least, thread", [(0, 3), (-4, 0)])
def test_a_thread_that_indexes_a_tuple_beyond_its_end_is_stopped(least, thread):
    @cuda.jit
    def kernel(out, least):
        i = cuda.threadIdx.x
        out[i] = (10, 20, 30)[i + least]

    out = np.zeros(5, np.int64)
    with pytest.raises(
        KernelRaised, match=rf"Thread \({thread}, 0, 0\).*IndexError: tuple index out of range"
    ):
        emulate(kernel, 1, 5, out, least)
    assert not out.any()


def test_a_shape_is_indexed_beyond_its_end():
    @cuda.jit
    def kernel(x, out):
        out[cuda.threadIdx.x] = x.shape[cuda.threadIdx.x]

    with pytest.raises(KernelRaised, match="IndexError"):
        emulate(kernel, 1, 3, zeros(2, 3), zeros(3))


def test_tuple_of_arrays():
    first, second, out = ramp(8), ramp(8) + 1, zeros(8)
    report = emulate(with_a_tuple_of_arrays, 1, 8, (first, second), out)
    assert (out == 2 * ramp(8) + 1).all() and (first == 7).all()
    assert {"arrays[0]", "arrays[1]"} <= set(report.accesses["array"])


def test_a_launch_passes_no_none():
    with pytest.raises(ArgumentError, match=r"weights is None, and numba\.cuda passes no None to a kernel"):
        emulate(with_an_optional_array, 1, 8, ramp(8), None, zeros(8))
    emulate(with_an_optional_array, 1, 8, ramp(8), ramp(8), out := zeros(8))
    assert (out == ramp(8) ** 2).all()


@cuda.jit
def with_shapes_from_outside(out):
    t = cuda.threadIdx.x
    tile = cuda.shared.array(SHAPE, dtype="float32")
    mine = cuda.local.array(shape=SHAPE[0], dtype="i4")
    other = cuda.shared.array(SHAPE[1], SHORT)
    real = cuda.local.array(1, dtype=REAL)
    real[0] = 0.1
    tile[t // 8, t % 8] = t
    other[t % 8] = t % 8
    mine[t % 4] = t
    out[t] = tile[t // 8, t % 8] + other[t % 8] + mine[t % 4] + (real[0] == 0.1)


def test_shapes_and_dtypes_from_outside():
    out = zeros(32)
    report = emulate(with_shapes_from_outside, 1, 32, out)
    t = np.arange(32)
    assert (out == 2 * t + t % 8).all()
    assert report.shared_bytes == 4 * 32 + 16


# --- exceptions -----------------------------------------------------------------------------------------


@cuda.jit
def that_asserts(x, out):
    i = cuda.grid(1)
    out[i] = 1
    assert x[i] < 5, "too large"


@cuda.jit
def that_raises(x, out):
    i = cuda.grid(1)
    out[i] = 1
    if x[i] > 5:
        raise ValueError("unexpected value")


@pytest.mark.parametrize(
    "kernel, thread, what",
    [(that_asserts, 4, "AssertionError: too large"), (that_raises, 5, "ValueError: unexpected value")],
)
def test_an_exception_does_not_pass_silently(kernel, thread, what):
    out = zeros(8)
    with pytest.raises(KernelRaised) as raised:
        emulate(kernel, 1, 8, ramp(8), out)
    line = kernel.py_func.__code__.co_firstlineno + (4 if kernel is that_asserts else 5)
    assert str(raised.value).startswith(
        f"Thread ({thread}, 0, 0) of block (0, 0, 0) raises {what} in line {line}"
    )
    assert (out == 0).all()


@pytest.mark.parametrize("kernel", [that_asserts, that_raises])
def test_an_exception_that_no_thread_reaches(kernel):
    out = zeros(4)
    emulate(kernel, 1, 4, ramp(4), out)
    assert (out == 1).all()


# --- what Numba does not compile ------------------------------------------------------------------------


@cuda.jit(device=True)
def endless(n):
    return endless(n + 1) if n >= 0 else n


@cuda.jit(device=True)
def depth(low, high, level=0):
    if low >= high:
        return level
    return depth(low, (low + high) // 2, level + 1)


@cuda.jit(device=True)
def fill(x, i):
    if i < x.size:
        x[i] = 1
        fill(x, i + 1)


@cuda.jit(device=True)
def fill_from_the_start(x, i):
    fill(x, i)


SIZES = 3, 4


@cuda.jit(device=True)
def ping(n):
    return 0 if n == 0 else pong(n - 1)


@cuda.jit(device=True)
def pong(n):
    return ping(n)


def wrong_kernels():
    def missing(x, out):
        out[0] = scaled()

    def too_many(x, out):
        out[0] = scaled(1.0, 2.0, 3, 4)

    def unknown(x, out):
        out[0] = scaled(1.0, scale=3)

    def twice(x, out):
        out[0] = scaled(1.0, value=3)

    def mixed(x, out):
        for value in (1, 2.5):
            out[0] += value

    def number_starred(x, out):
        out[0] = how_many(*x[0])

    def forever(x, out):
        out[0] = endless(np.int64(3))

    def called_with_a_literal(x, out):
        out[0] = factorial(SIZES[1])

    def literal_passed_on(x, out):
        fill_from_the_start(out, 0)

    def default_inside(x, out):
        out[0] = depth(x.size, x.size + 9)

    def called_with_another_type(x, out):
        out[0] = factorial(cuda.threadIdx.x)

    def called_with_another_type_for_nothing(x, out):
        fill(out, cuda.threadIdx.x)

    def divides_an_integer_in_place(x, out):
        rest = x.size
        for _ in range(3):
            rest -= 1
            rest /= 2
        out[0] = rest

    def steps_of_zero(x, out):
        for k in range(0, 8, cuda.threadIdx.x % 2):
            out[k] = 1

    def misspelt_dtype(x, out):
        tile = cuda.shared.array(4, "int33")
        out[0] = tile[0]

    def used_above(x, out):
        for k in range(4):
            if k > 0:
                out[0] += last  # noqa: F821
            last = x[k]  # noqa: F841

    def sum_over_a_generator(x, out):
        out[0] = sum(x[k] for k in range(3))

    def updated_above(x, out):
        if x[0] > 2:
            count += 1  # noqa: F821
        count = 0
        out[0] = count

    def each_other(x, out):
        out[0] = ping(3)

    def function_as_value(x, out):
        twice = lambda value: 2 * value  # noqa: E731
        out[0] = scaled(twice)

    def defined_twice(x, out):
        if x[0] > 0:
            f = lambda value: 2 * value  # noqa: E731
        else:
            f = lambda value: 3 * value  # noqa: E731
        out[0] = f(3)

    def default_that_is_no_number(x, out):
        f = lambda value, factor=math.inf * 2: value * factor  # noqa: E731
        out[0] = f(3)

    def variable_set_below(x, out):
        f = lambda value: value * later  # noqa: E731
        later = 3
        out[0] = f(3)

    def recursion_inside(x, out):
        def f(value):
            return f(value - 1) if value else 0

        out[0] = f(3)

    def other_of_the_same_name(x, out):
        amount = 3

        def f(value):
            return value * amount

        def g(amount):
            return f(amount)

        out[0] = g(3)

    def calls_a_variable(x, out):
        y = x[0]
        out[0] = y(3)

    def walrus(x, out):
        out[0] = (y := x[0]) + y

    def raises_a_number(x, out):
        raise 3  # noqa: B016

    def iterates_over_a_number(x, out):
        for i in out[0]:
            out[0] = i

    def in_an_array(x, out):
        out[0] = 1.0 in x

    def empty(x, out):
        for value in ():
            out[0] = value

    def in_a_mixed_tuple(x, out):
        out[0] = 1 in (1, 2.5)

    def undefined_size(x, out):
        tile = cuda.shared.array(TILES, float32)  # noqa: F821
        out[0] = tile[0]

    def array_as_a_number(x, out):
        out[0] = math.sin(x)

    def number_as_an_array(x, out):
        out[0] = out[0][1]

    def launches_a_kernel(x, out):
        with_an_optional_array[1, 32](x, x, out)

    def keyword_of_print(x, out):
        print(1, sep="")

    def two_angles(x, out):
        out[0] = math.sin(x[0], x[1])

    def reads_a_class(x, out):
        out[0] = Config.TILE

    def uses_an_enum(x, out):
        out[0] = Letter.A.value

    def wrong_named_tuple(x, out):
        out[0] = Point(1, 2, 3).x

    def shape_from_a_named_tuple(x, out):
        tile = cuda.shared.array(ORIGIN, float32)
        out[0] = tile[0, 0]

    return list(locals().values())


SENTENCES = {
    "missing": "scaled(value, factor=2.0, offset=1) is called with other arguments: missing a required",
    "too_many": "too many positional arguments",
    "unknown": "unexpected keyword argument 'scale'",
    "twice": "multiple values for argument 'value'",
    "mixed": "Numba goes only over tuples whose values have one type, not float64 and int64",
    "number_starred": "only a tuple can be passed with *",
    "forever": "endless calls itself more than 200 times deep",
    "called_with_a_literal": "factorial calls itself with a value that is no literal as n, and was called "
    "with the literal 4; ",
    "literal_passed_on": "with the literal 0; for Numba a literal is a type of its own, and numba-cuda "
    "compiles a function that calls itself for one combination of types: write np.int64(0), which is no",
    "default_inside": "with a value that is no literal as level, and was called with its default",
    "called_with_another_type": "with a value of type int64 as n, and was called with a value of type int32",
    "called_with_another_type_for_nothing": "fill calls itself with a value of type int64 as i",
    "divides_an_integer_in_place": "`rest /= ...` makes a float of an integer",
    "steps_of_zero": "the step of range() is 0 in some threads",
    "misspelt_dtype": "such as float32 or boolean, and 'int33' is none",
    "used_above": "last is used above the line that first gives it a value",
    "sum_over_a_generator": "a generator is not supported in a kernel",
    "updated_above": "for Numba count is not defined here: set it further up",
    "each_other": "Numba supports only functions that call themselves",
    "function_as_value": "twice is defined inside the kernel, so it can only be called",
    "defined_twice": "f is defined twice",
    "calls_a_variable": "y is a variable, and holds no device function",
    "default_that_is_no_number": "as defaults only numbers",
    "variable_set_below": "f uses later, which is set only below it",
    "recursion_inside": "f calls itself; only a function outside the kernel can",
    "other_of_the_same_name": "f uses amount of the kernel, and there is another amount here",
    "walrus": "the emulator does not support the walrus operator",
    "raises_a_number": "3 is not an exception",
    "iterates_over_a_number": "a for loop runs over a range or a tuple, not over a float32 value",
    "empty": "Numba does not go over an empty tuple",
    "in_a_mixed_tuple": "Numba goes only over tuples whose values have one type",
    "undefined_size": "the name TILES is not defined",
    "array_as_a_number": "sin() takes numbers, not the array x",
    "number_as_an_array": "a float32 value cannot be indexed: a number was given where an array is needed",
    "launches_a_kernel": "a kernel cannot launch kernels in Numba: launch with_an_optional_array from",
    "keyword_of_print": "print() has no argument named sep",
    "two_angles": "sin() takes 1 argument, not 2",
    "reads_a_class": "Config is a class, and Numba reads neither classes nor their attributes",
    "uses_an_enum": "enums whose values are numbers of one type, and Letter has others",
    "wrong_named_tuple": "takes",
    "shape_from_a_named_tuple": "must be known when the kernel is compiled",
    "in_an_array": "the emulator supports `in` for tuples, not for the array x",
}


@pytest.mark.parametrize("kernel", wrong_kernels(), ids=lambda kernel: kernel.__name__)
def test_what_numba_does_not_compile_is_refused(kernel):
    out = zeros(4)
    with pytest.raises(EmulatorError) as refused:
        emulate(kernel, 1, 4, ramp(4), out)
    assert SENTENCES[kernel.__name__] in str(refused.value)
    assert (out == 0).all()


def test_enums_as_arguments_and_constants():
    @cuda.jit(device=True)
    def is_red(colour):
        return colour == Colour.RED

    @cuda.jit
    def kernel(kind, colour, share, out):
        out[0] = kind.value + TALL.value * 10
        out[1] = is_red(colour) + 10 * is_red(Colour["RED"])
        out[2] = colour != Colour.GREEN or colour is Colour.RED
        out[3] = share.value + Share.WHOLE.value
        out[4] = kind * 2 if kind is Kind.WIDE and share in (Share.HALF, Share.WHOLE) else 0
        chosen = kind
        if out[cuda.threadIdx.x] > 0:
            chosen = Kind.TALL
        out[5] = chosen.value
        later = colour
        for _ in range(kind):
            later = Colour.GREEN
        out[6] = later.value

    emulate(kernel, 1, 1, Kind.WIDE, Colour.GREEN, Share.HALF, out := zeros(7))
    assert out.tolist() == [52, 10, 0, 1.5, 4, 5, 2]


def kernels_with_enums():
    def index(kind, colour, out):
        out[kind] = 1

    def stored(kind, colour, out):
        out[0] = kind

    def other_enum(kind, colour, out):
        out[0] = colour == Share.HALF

    def number(kind, colour, out):
        out[0] = colour == 1

    def order(kind, colour, out):
        out[0] = colour < Colour.GREEN

    def name(kind, colour, out):
        out[0] = Kind.WIDE.name

    def arithmetic(kind, colour, out):
        out[0] = colour + 1

    def one_for_each_thread(kind, colour, out):
        mine = Colour.RED if cuda.threadIdx.x else Colour.GREEN
        out[0] = mine.value

    return [cuda.jit(function) for function in vars().values()]


ENUM_SENTENCES = {
    "index": "no member of an enum as an index",
    "stored": "stores no member of an enum in an array of float32",
    "other_enum": "here == compares a member of the enum Colour and a member of the enum Share",
    "number": "here == compares a member of the enum Colour and an int",
    "order": "here < compares",
    "name": "Numba has no .name of an enum's member, only .value",
    "arithmetic": "a number is needed here, not a member of the enum Colour",
    "one_for_each_thread": "one member of Colour in some threads and another in others",
}


@pytest.mark.parametrize("kernel", kernels_with_enums(), ids=lambda kernel: kernel.__name__)
def test_what_enums_cannot_do(kernel):
    with pytest.raises(EmulatorError, match=ENUM_SENTENCES[kernel.__name__]):
        emulate(kernel, 1, 2, Kind.WIDE, Colour.RED, zeros(4))


NUMPY_5, NUMPY_1, NUMPY_SHAPE = np.int64(5), np.uint8(1), (np.int64(4), 3)


@cuda.jit(device=True)
def with_an_array_of(size):
    return cuda.local.array(size, float32).shape[0]


def kernels_with_numpy_integers():
    def local_array(pair, out):
        mine = cuda.local.array(NUMPY_5, float32)
        mine[0] = out[0]

    def shared_array(pair, out):
        size = NUMPY_5
        tile = cuda.shared.array((2, size), dtype=float32)
        tile[0, 0] = out[0]

    def beside_another(pair, out):
        mine = cuda.local.array(NUMPY_SHAPE[1], float32)
        mine[0] = out[0]

    def in_a_function(pair, out):
        out[0] = with_an_array_of(NUMPY_5)

    def dimensions(pair, out):
        out[cuda.grid(NUMPY_1)] = 1

    def index_of_a_tuple(pair, out):
        out[0] = pair[NUMPY_1]

    return [cuda.jit(function) for function in vars().values()]


@pytest.mark.parametrize("kernel", kernels_with_numpy_integers(), ids=lambda kernel: kernel.__name__)
def test_a_numpy_integer_from_outside_is_no_literal(kernel):
    with pytest.raises(EmulatorError, match=r"NumPy integer.*int\(\.\.\.\)|int\(\.\.\.\) of a NumPy integer"):
        emulate(kernel, 1, 1, (1, 2.5), zeros(4))


def test_one_code_takes_an_int_and_not_a_numpy_integer():
    def made(size):
        @cuda.jit
        def kernel(pair, out):
            mine = cuda.local.array(size, float32)
            mine[0] = pair[:size][0]
            out[0] = mine[0] + size

        return kernel

    emulate(made(2), 1, 1, (1, 2.5), out := zeros(1))
    assert out[0] == 3
    with pytest.raises(UnsupportedKernel, match="size is a NumPy integer"):
        emulate(made(np.int64(2)), 1, 1, (1, 2.5), zeros(1))


def test_a_numpy_integer_bounds_a_slice_of_a_tuple():
    @cuda.jit
    def kernel(pair, out):
        out[0] = pair[:NUMPY_1][0] + NUMPY_5

    emulate(kernel, 1, 1, (1, 2.5), out := zeros(1))
    assert out[0] == 6


def test_arrays_are_the_same_or_not():
    @cuda.jit
    def kernel(x, y, out):
        z = x
        out[0] = x is z
        out[1] = x is y
        out[2] = x[1:] is x[1:]
        out[3] = x[1:] is not x[2:]

    emulate(kernel, 1, 1, ramp(4), ramp(4), out := zeros(4))
    assert out.tolist() == [1, 0, 1, 1]


def test_a_kernel_does_not_call_itself():
    with pytest.raises(UnsupportedKernel, match="a kernel cannot call itself"):
        emulate(calls_itself, 1, 4, zeros(4))


@cuda.jit
def calls_itself(out):
    calls_itself(out)


# --- print ----------------------------------------------------------------------------------------------


@cuda.jit
def that_prints(x):
    i = cuda.grid(1)
    if i < 2:
        print("thread", i, x[i], (i, 0.5), i > 0, cuda.threadIdx)


def test_print_takes_a_text_from_outside(capsys):
    label = "from outside"

    @cuda.jit
    def kernel():
        print(label, MARK, cuda.threadIdx.x)

    emulate(kernel, 1, 1)
    assert capsys.readouterr().out == "from outside # 0\n"


def test_print_writes_what_a_gpu_writes(capsys):
    emulate(that_prints, 1, 4, ramp(4))
    first, second = capsys.readouterr().out.splitlines()
    assert first == "thread 0 1.000000 (0, 0.500000) False (0, 0, 0)"
    assert second == "thread 1 2.000000 (1, 0.500000) True (1, 0, 0)"


# --- all at once, and many blocks -----------------------------------------------------------------------


@cuda.jit
def many_blocks(x, out):
    _row, _column = cuda.grid(2)
    pick = lambda value, other=3: value + other  # noqa: E731
    out[_row, _column] = pick(x[_row, _column])


def test_a_lambda_with_a_default_in_many_blocks():
    emulate(many_blocks, (2, 2), (4, 4), zeros(8, 8), out := zeros(8, 8))
    assert (out == 3).all()


@pytest.mark.parametrize("shape", list(itertools.product((1, 3), (8, 33))))
def test_recursion_in_many_blocks(shape):
    blocks, threads = shape

    @cuda.jit
    def kernel(out):
        i = cuda.grid(1)
        out[i] = factorial(i % 7)

    out = np.zeros(blocks * threads, np.int64)
    emulate(kernel, blocks, threads, out)
    assert out.tolist() == [int(np.prod(range(1, i % 7 + 1))) for i in range(len(out))]


def test_types_of_defaults_are_those_of_their_values():
    @cuda.jit
    def kernel(x, out):
        out[0] = scaled(x[0])

    x, out = np.array([0.1], np.float32), np.zeros(1)
    emulate(kernel, 1, 1, x, out)
    assert out[0] == np.float64(x[0]) * 2.0 + 1


def test_a_number_as_an_array_is_named():
    with pytest.raises(KernelTypeError, match="cannot be indexed"):
        emulate(with_a_tuple_of_arrays, 1, 8, (3.0, ramp(8)), zeros(8))


@cuda.jit
def takes_arrays_apart(rows, out):
    i = cuda.grid(1)
    x, y = rows[i, 1:3]
    (z,) = rows[i, -1:]
    first, second = rows
    out[i] = x + 10 * y + 100 * z + second[0] - first[0]


@cuda.jit
def takes_too_many(rows, out):
    x, y = rows[0]
    out[0] = x + y


@cuda.jit
def different_functions(rows, out):
    i = cuda.grid(1)
    function = scaled
    if i:
        function = or_nothing
    out[i] = function(rows[i, 0])


def test_an_array_on_the_right_of_several_targets():
    rows, out = np.arange(10.0).reshape(2, 5), np.zeros(2)
    assert emulate(takes_arrays_apart, 1, 2, rows, out).ok
    assert out.tolist() == [1 + 20 + 400 + 5, 6 + 70 + 900 + 5]


@pytest.mark.parametrize(
    "kernel, sentence",
    [
        (takes_too_many, "2 values are needed"),
        (different_functions, "Numba needs one function where paths meet, not or_nothing and scaled"),
    ],
)
def test_what_cannot_be_taken_apart_or_called(kernel, sentence):
    with pytest.raises(EmulatorError, match=sentence):
        emulate(kernel, 1, 2, np.ones((2, 5)), np.zeros(2))
