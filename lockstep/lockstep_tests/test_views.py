"""Slices, rows and views in kernels, loops over arrays, constants, tuples of arrays, odd shapes of arguments.

The reference is NumPy, or the same lines run by Python.
"""

import types
from collections import namedtuple

import numpy as np
import pytest
from numba import boolean, cuda, float32, int32

from lockstep import EmulatorError, KernelTypeError, UnsupportedKernel, emulate
from lockstep_tests.corpus import ramp, zeros

pytestmark = pytest.mark.usefixtures("runtime")  # many of these kernels assign arrays to slices


def run(kernel, threads, *args, blocks=1, **options):
    """Run without errors in the findings; returns the report."""
    report = emulate(kernel, blocks, threads, *args, **options)
    assert report.ok, [str(finding) for finding in report.findings]
    return report


def in_python(kernel, threads, *args):
    """Run the kernel's lines as Python, one thread after another."""

    function = kernel.py_func
    for thread in range(threads):
        fake = types.SimpleNamespace(
            grid=lambda _, thread=thread: thread, local=types.SimpleNamespace(array=_array)
        )
        space = {**function.__globals__, "cuda": fake}
        types.FunctionType(function.__code__, space, function.__name__, None, function.__closure__)(*args)


def _array(shape, dtype):
    return np.zeros(shape, np.dtype(str(dtype)))


# --- kernels whose lines mean the same in Python ---------------------------------------------------------


@cuda.jit
def rows_and_columns(a, o):
    i = cuda.grid(1)
    row, column = a[i, :], a[:, i]
    for j in range(row.shape[0]):
        o[i, j] = row[j] - column[j]


@cuda.jit
def windows(a, o):
    i = cuda.grid(1)
    if 0 < i < 7:
        window = a[i - 1 : i + 2, i - 1 : i + 2]
        for r in range(window.shape[0]):
            for c in range(window.shape[1]):
                o[i, 0] += window[r, c]


@cuda.jit
def steps(a, o):
    i = cuda.grid(1)
    part = a[i, ::2]
    back = a[i, ::-1]
    tail = a[i, -3:-1]
    every = a[i, 6:0:-3]
    o[i, 0], o[i, 1], o[i, 2] = part[1], back[0], tail[1]
    o[i, 3], o[i, 4] = every[1], len(part) + 10 * len(back) + 100 * len(tail) + 1000 * len(every)


@cuda.jit
def bounds_that_differ(a, o):
    i = cuda.grid(1)
    part = a[i][i : 2 * i]
    for j in range(len(part)):
        o[i, 0] += part[j]
    o[i, 1] = part.shape[0]
    o[i, 2] = part.size
    rest = part[1:]
    o[i, 3] = len(rest)
    for j in range(rest.shape[0]):
        o[i, 4] += rest[j]


@cuda.jit
def bounds_beyond_the_array(a, o):
    i = cuda.grid(1)
    o[i, 0] = len(a[i, 3 * i : 100])
    o[i, 1] = len(a[i, -100 : i - 4])
    o[i, 2] = len(a[i, 5:i])
    o[i, 3] = len(a[i, i - 20 :: -1])
    o[i, 4] = len(a[i, i::-2])


@cuda.jit
def assignments_to_slices(a, o):
    i = cuda.grid(1)
    o[i, :] = 1
    o[i, 2:4] = a[i, 4:6]
    o[i, 5:] = (7, 8, 9)
    part = o[i]
    part[:2] = 3


@cuda.jit
def assignments_that_overlap(a, o):
    i = cuda.grid(1)
    o[i] = a[i]
    o[i, 1:] = o[i, :-1]
    o[i, :4] = o[i, 3::-1]


@cuda.jit
def assignments_of_different_lengths(a, o):
    i = cuda.grid(1)
    o[i, :i] = 5
    o[i, i:] = a[i, i:]


@cuda.jit
def local_arrays(a, o):
    i = cuda.grid(1)
    acc = cuda.local.array((2, 4), float32)
    acc[:] = 0
    acc[1, 1:3] = a[i, :2]
    acc[0] = a[i, 4:8]
    for k in range(4):
        o[i, k] = acc[0, k]
        o[i, 4 + k] = acc[1, k]


@cuda.jit
def loops_over_arrays(a, o):
    i = cuda.grid(1)
    for value in a[i]:
        o[i, 0] += value
    k = 0
    for row in a:
        o[i, 1] += row[i]
        if k == i:
            break
        k += 1
    for j, value in enumerate(a[i]):
        o[i, 2] += j * value
    for x, y in zip(a[i], a[0]):
        o[i, 3] += x * y
    for value in a[i, :i]:
        o[i, 4] += value


@cuda.jit
def shapes(a, o):
    i = cuda.grid(1)
    turned = a.T
    flat = a.reshape(-1)
    folded = a.reshape(4, 16)
    wide = a.reshape((2, 2, 16))
    o[i, 0] = turned[0, i] + turned[i, 0] + turned[:, 1][i]
    o[i, 1] = flat[i] + folded[3, i] + wide[1, 0, i]
    o[i, 2] = a.reshape(a.size)[9] + a.flat[10] + a[i].flat[1]
    o[i, 3] = a.ndim + 10 * a.size + len(a)
    o[i, 4] = a.strides[0] + a.strides[1] + 1000 * a.itemsize + a.nbytes
    o[i, 5] = a.transpose()[2, i] + a[i : i + 1].T[3, 0]


@cuda.jit
def three_dimensions(a, o):
    i = cuda.grid(1)
    cube = a.reshape(4, 4, 4)
    plane = cube[i // 2]
    line = cube[i // 2, 1]
    across = cube[..., i // 2]
    inner = cube[i // 2, ..., 3]
    extra = line[None, :]
    o[i, 0] = plane[2, 3] + line[2] + across[3, 2] + inner[1] + extra[0, 2]
    o[i, 1] = plane.ndim + 10 * line.ndim + 100 * across.ndim + 1000 * extra.ndim


@cuda.jit
def negative_indices(a, o):
    i = cuda.grid(1)
    row = a[-1 - i]
    o[i, 0] = row[-1]
    o[i, 1] = a[i - 8, 0]


ALIKE = [
    rows_and_columns,
    windows,
    steps,
    bounds_that_differ,
    bounds_beyond_the_array,
    assignments_to_slices,
    assignments_that_overlap,
    assignments_of_different_lengths,
    local_arrays,
    loops_over_arrays,
    shapes,
    three_dimensions,
    negative_indices,
]


@pytest.mark.parametrize("kernel", ALIKE, ids=lambda kernel: kernel.py_func.__name__)
def test_views_mean_what_they_mean_in_python(kernel):
    a, o, wanted = ramp(8, 8), zeros(8, 8), zeros(8, 8)
    in_python(kernel, 8, a.copy(), wanted)
    run(kernel, 8, a, o)
    np.testing.assert_array_equal(o, wanted)
    np.testing.assert_array_equal(a, ramp(8, 8))


@pytest.mark.parametrize("kernel", ALIKE, ids=lambda kernel: kernel.py_func.__name__)
def test_views_are_counted_the_same_without_running(kernel):
    a, o = ramp(8, 8), zeros(8, 8)
    counted = emulate(kernel, 1, 8, a, o, counts_only=True).accesses
    assert counted.equals(run(kernel, 8, a, o).accesses)


# --- slices passed on, and what is counted ---------------------------------------------------------------


@cuda.jit(device=True)
def total(values):
    result = float32(0)
    for i in range(len(values)):
        result += values[i]
    return result


@cuda.jit(device=True)
def cleared(values):
    values[:] = 0


@cuda.jit
def passes_slices(x, o):
    i = cuda.grid(1)
    if i < o.shape[0]:
        o[i] = total(x[5 * i : 5 * i + 5])
        cleared(x[5 * i + 1 : 5 * i + 3])


@cuda.jit(device=True)
def with_a_first_element(a, first):
    a[0] = first
    a[1] += 1
    return a


def test_a_function_returns_its_array_after_it_has_stored_to_it():
    @cuda.jit
    def kernel(a, out):
        i = cuda.grid(1)
        changed = with_a_first_element(a[4 * i : 4 * i + 4], 7.0)
        out[i] = changed[0] + changed[1]

    a, out = np.arange(8.0), np.zeros(2)
    emulate(kernel, 1, 2, a, out)
    assert out.tolist() == [9, 13] and a.tolist() == [7, 2, 2, 3, 7, 6, 6, 7]


@pytest.mark.parametrize("of", [np.asfortranarray, lambda a: np.repeat(a, 2, -1)[:, :, ::2], lambda a: a.T])
def test_flat_goes_row_by_row_whatever_lies_in_memory(of):
    @cuda.jit
    def kernel(a, out):
        i = cuda.grid(1)
        if i < a.size:
            out.flat[i] = 2 * a.flat[i]
            out.flat[i] += 1

    a = of(np.arange(24.0).reshape(2, 3, 4))
    out = of(np.zeros((2, 3, 4)))
    report = emulate(kernel, 1, 32, a, out)
    assert (out == 2 * a + 1).all() and not report.errors


@pytest.mark.parametrize("shared", [False, True])
def test_a_byte_of_a_boolean_is_loaded_as_0_or_1(shared):
    @cuda.jit
    def kernel(given, out, also):
        i = cuda.grid(1)
        tile = cuda.shared.array(8, boolean)
        tile[i] = given[i]
        out[i] = tile[i] if shared else given[i]
        also[i] = given[i] + given[i]

    given = np.array([0, 1, 2, 3, 128, 254, 0, 255], np.uint8)
    out, also = np.zeros(8, bool), np.zeros(8, np.int64)
    emulate(kernel, 1, 8, given.view(bool), out, also)
    assert out.view(np.uint8).tolist() == [0, 1, 1, 1, 1, 1, 0, 1] and (also == 2 * (given > 0)).all()


def test_slices_are_passed_to_functions():
    x, o = ramp(38), zeros(8)
    run(passes_slices, 32, x, o)
    np.testing.assert_array_equal(o, [ramp(38)[5 * i : 5 * i + 5].sum() for i in range(8)])
    wanted = ramp(38)
    for i in range(8):
        wanted[5 * i + 1 : 5 * i + 3] = 0
    np.testing.assert_array_equal(x, wanted)


@cuda.jit
def copies_rows(a, o):
    i = cuda.grid(1)
    o[i, :] = a[i, :]


def test_a_slice_costs_an_access_per_element():
    report = run(copies_rows, 32, ramp(32, 4), zeros(32, 4))
    for array, op in (("a", "load"), ("o", "store")):
        assert report.total("requests", array=array, op=op) == 4
        assert report.total("lanes", array=array, op=op) == 128
        assert report.total("sectors", array=array, op=op) == 4 * 16


def test_shared_slices():
    @cuda.jit
    def kernel(x, o):
        i = cuda.grid(1)
        tile = cuda.shared.array((2, 32), float32)
        if i == 0:
            tile[1, :] = x[:32]
        tile[0][i] = x[i]
        cuda.syncthreads()
        half = tile[:, 16:]
        o[i] = half[0, i % 16] + half[1, i // 2]

    x, o = ramp(32), zeros(32)
    run(kernel, 32, x, o)
    i = np.arange(32)
    np.testing.assert_array_equal(o, x[16 + i % 16] + x[16 + i // 2])


def test_a_race_through_slices_is_found():
    @cuda.jit
    def kernel(x, o):
        i = cuda.grid(1)
        o[i : i + 2] = x[i]

    report = emulate(kernel, 1, 8, ramp(8), zeros(9))
    assert {finding.kind for finding in report.errors} == {"global_race"}


# --- beyond the end -----------------------------------------------------------------------------------------


@cuda.jit
def rows_that_do_not_exist(a, o):
    i = cuda.grid(1)
    row = a[i]
    if i < o.shape[0]:
        o[i] = row[0]


def test_a_row_that_does_not_exist_may_be_named_but_not_read():
    run(rows_that_do_not_exist, 32, ramp(8, 4), zeros(8))
    report = emulate(rows_that_do_not_exist, 1, 32, ramp(8, 4), zeros(9))
    (found,) = report.errors
    assert (found.kind, found.array, found.count) == ("out_of_bounds", "a", 1)
    assert "reads an element of a[8], but a has 8 rows: the last row is 7" in found.message


def test_an_element_beyond_a_slice_is_reported():
    @cuda.jit
    def kernel(x, o):
        i = cuda.grid(1)
        part = x[:i]
        o[i] = part[3]

    (found,) = emulate(kernel, 1, 8, ramp(8), zeros(8)).errors
    assert (found.kind, found.array, found.count) == ("out_of_bounds", "x", 4)
    assert "beyond the end of this part of x" in found.message


# --- dtypes -------------------------------------------------------------------------------------------------


@cuda.jit
def dtypes(x, o):
    i = cuda.grid(1)
    acc = cuda.local.array(2, dtype=x.dtype)
    acc[0] = x.dtype.type(0)
    acc[0] += x[i]
    bits = x.view(np.int32)
    o[i] = bits[i] + int32(acc[0])


def test_the_dtype_of_an_array():
    x, o = ramp(32), np.zeros(32, np.int32)
    run(dtypes, 32, x, o)
    np.testing.assert_array_equal(o, x.view(np.int32) + x.astype(np.int32))


def test_views_of_another_size():
    @cuda.jit
    def kernel(x, o):
        i = cuda.grid(1)
        halves, pairs = x.view(np.int16), x.view(np.int64)
        o[i] = halves[2 * i + 1]
        halves[2 * i] = 1
        if i < 2:
            pairs[30 + i] = (3 << 32) + 2

    x = (np.arange(64, dtype=np.int32) + 5) << 16
    before, o = x.copy(), np.zeros(32, np.int64)
    run(kernel, 32, x, o)
    np.testing.assert_array_equal(o, before[:32] >> 16)
    assert (x[:32] == before[:32] + 1).all() and x[32:60].tolist() == before[32:60].tolist()
    assert x[60:].tolist() == [2, 3, 2, 3]


def test_shared_memory_of_two_dtypes():
    @cuda.jit
    def kernel(x, o):
        i = cuda.grid(1)
        floats = cuda.shared.array(0, float32)
        whole = cuda.shared.array(0, int32)
        floats[i] = x[i]
        whole[32 + i] = i
        cuda.syncthreads()
        o[i] = whole[31 - i] + whole[32 + i]

    x, o = ramp(32), np.zeros(32, np.int32)
    run(kernel, 32, x, o, shared_bytes=256)
    np.testing.assert_array_equal(o, x[::-1].view(np.int32) + np.arange(32))


def test_a_race_between_dtypes_in_shared_memory_is_found():
    @cuda.jit
    def kernel(x, o):
        i = cuda.grid(1)
        floats = cuda.shared.array(0, float32)
        halves = cuda.shared.array(0, np.int16)
        floats[i] = x[i]
        o[i] = halves[2 * (31 - i) + 1]

    report = emulate(kernel, 1, 32, ramp(32), zeros(32), shared_bytes=128)
    assert {finding.kind for finding in report.errors} == {"shared_race"}


# --- arrays from outside, tuples of arrays, odd shapes ----------------------------------------------------

TABLE = np.array([[2, 3, 5], [7, 11, 13]], np.float32)


@cuda.jit
def uses_a_table(o):
    i = cuda.grid(1)
    copy = cuda.const.array_like(TABLE)
    row = copy[i % 2]
    o[i] = TABLE[i % 2, i % 3] + row[0] + TABLE.shape[1] + len(TABLE)


def test_an_array_of_the_module_is_a_constant():
    o = zeros(32)
    report = run(uses_a_table, 32, o)
    i = np.arange(32)
    np.testing.assert_array_equal(o, TABLE[i % 2, i % 3] + TABLE[i % 2, 0] + 5)
    assert report.total("requests", space="constant") == 2
    assert report.total("sectors") == report.total("sectors", array="o")


def test_an_array_of_the_closure_is_a_constant():
    weights = np.arange(4)

    @cuda.jit
    def kernel(o):
        i = cuda.grid(1)
        for w in weights:
            o[i] += w * i

    o = np.zeros(8, np.int64)
    run(kernel, 8, o)
    assert o.tolist() == [6 * i for i in range(8)]


def test_a_constant_cannot_be_written():
    @cuda.jit
    def kernel(o):
        TABLE[0, 0] = o[0]

    with pytest.raises(KernelTypeError, match="TABLE is an array from outside the kernel"):
        emulate(kernel, 1, 8, zeros(8))
    assert TABLE[0, 0] == 2


Pair = namedtuple("Pair", "x y")


def test_tuples_of_arrays():
    @cuda.jit
    def kernel(arrays, pair, o):
        i = cuda.grid(1)
        arrays[1][i] = arrays[0][i] + 1
        pair.y[i] = pair.x[i] + 2
        for array in arrays:
            o[i] += array[i]

    a, b, x, y, o = ramp(8), zeros(8), ramp(8), zeros(8), zeros(8)
    report = run(kernel, 8, (a, b), Pair(x, y), o)
    assert (b == a + 1).all() and (y == x + 2).all() and (o == a + b).all()
    assert {"arrays[0]", "arrays[1]", "pair.x", "pair.y", "o"} == set(report.accesses["array"])


def test_an_array_without_dimensions():
    @cuda.jit
    def kernel(x, o):
        o[cuda.grid(1)] = x[()]
        if cuda.grid(1) == 0:
            x[()] = 5

    x, o = np.array(3, np.float32), zeros(1)
    run(kernel, 1, x, o)
    assert o[0] == 3 and x == 5


def test_empty_arrays():
    @cuda.jit
    def kernel(x, y, o):
        i = cuda.grid(1)
        for value in x:
            o[i] += value
        y[:] = 1
        o[i] += len(x) + y.size + x[2:].shape[0] + 1

    o = zeros(4)
    run(kernel, 4, zeros(0), zeros(0, 5), o)
    assert (o == 1).all()


# --- refused ----------------------------------------------------------------------------------------------


def adds_to_a_number(x, o):
    x[0] += 1


def a_number_by_index(x, o):
    o[0] = x[0]


def a_slice_with_another_length(x, o):
    o[0:3] = o[4:8]


def a_slice_changed_as_a_whole(x, o):
    o[:] += 1


def a_shape_with_other_elements(x, o):
    o[0] = o.reshape(3, 5)[0, 0]


def a_column_reshaped(x, o):
    o[0] = o.reshape(4, 2)[:, 0].reshape(2, 2)[0, 0]


def running_sums_of_an_array(x, o):
    o[0] = o.cumsum()[0]


def an_array_as_a_number(x, o):
    o[0] = o[1:2] + 1


def a_step_that_differs(x, o):
    o[0] = o[:: cuda.grid(1) + 1][0]


def an_array_as_index(x, o):
    o[0] = o[o][0]


@pytest.mark.parametrize(
    "function, words",
    [
        (adds_to_a_number, "cannot be assigned to by index"),
        (a_number_by_index, "cannot be indexed"),
        (a_slice_with_another_length, "the shapes of the two sides differ: an array of 4 elements"),
        (a_slice_changed_as_a_whole, "a slice cannot be changed as a whole"),
        (a_shape_with_other_elements, "o has 8 elements; it cannot be reshaped to 3 by 5"),
        (a_column_reshaped, "reshapes only arrays that lie in memory row by row"),
        (running_sums_of_an_array, r"does not support the method \.cumsum\(\)"),
        (an_array_as_a_number, "is a whole array"),
        (a_step_that_differs, "the step of a slice must be the same for all threads"),
        (an_array_as_index, "an index must be an integer"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_refused_is_refused_with_a_sentence(function, words):
    o = zeros(8)
    with pytest.raises((KernelTypeError, UnsupportedKernel), match=words) as refused:
        emulate(cuda.jit(function), 1, 8, 3, o)
    assert isinstance(refused.value, EmulatorError) and not o.any()


# --- unpacking ---------------------------------------------------------------------------------------------


@cuda.jit(device=True)
def swapped(pair):
    first, second = pair
    return second, first


@cuda.jit
def unpacks_arrays(a, o):
    i = cuda.grid(1)
    x, y = swapped(a[i, 2:4])
    row, other = a[i : i + 2]
    own = cuda.local.array(2, float32)
    own[0], own[1] = x, y
    u, v = own
    own[0] = 99
    o[i, 0], o[i, 1], o[i, 2], o[i, 3] = x - y, u, v, row[0] * other[1]


@cuda.jit
def array_then_tuple(a, o):
    i = cuda.grid(1)
    pair = a[i, 2:4]
    o[i, 0] = pair[0]
    if i > 1:
        for pair in [swapped(pair), swapped(pair)]:  # noqa: B020
            o[i, 1] += pair[0]


def test_an_array_is_unpacked_into_its_elements_or_rows_as_in_numba():
    a, o = ramp(8, 8), zeros(8, 4)
    run(unpacks_arrays, 7, a, o)
    expected = [a[:7, 3] - a[:7, 2], a[:7, 3], a[:7, 2], a[:7, 0] * a[1:, 1]]
    np.testing.assert_array_equal(o[:7], np.stack(expected, 1))

    @cuda.jit
    def of_another_length(a):
        _x, _y = a[0:3, 0]

    with pytest.raises(KernelTypeError, match="2 values are needed, and this part of a has not 2"):
        emulate(of_another_length, 1, 1, a)


def test_a_variable_may_be_an_array_here_and_a_tuple_there_if_nothing_uses_both():
    a, o = ramp(4, 8), zeros(4, 4)
    run(array_then_tuple, 4, a, o)
    np.testing.assert_array_equal(o[:, 0], a[:, 2])
    np.testing.assert_array_equal(o[:, 1], np.where(np.arange(4) > 1, 2 * a[:, 3], 0))


# --- whole arrays in one number ---------------------------------------------------------------------------


@cuda.jit
def reduce_rows(x, out):
    i = cuda.grid(1)
    if i < x.shape[0]:
        row = x[i, i:]  # Each thread has a row of another length.
        out[i, 0], out[i, 1], out[i, 2] = row.sum(), np.prod(row), row.mean()
        out[i, 3], out[i, 4] = np.var(row), row.std()
        out[i, 5], out[i, 6] = row.argmin(), np.argmax(row)
        out[i, 7], out[i, 8] = np.any(row), row.all()
        out[i, 9], out[i, 10] = np.nansum(row), np.count_nonzero(row)


def reduced(row) -> list:
    """Return what a thread computes of its row, one element after another, in Numba's types."""
    kind = row.dtype.kind
    whole = np.uint64 if kind == "u" else np.int64 if kind in "bi" else row.dtype.type
    total, product, filled = whole(0), whole(1), np.int64(0) if kind in "biu" else whole(0)
    mean = np.float64(0) if kind in "biu" else whole(0)
    for x in row:
        total, product, mean = total + whole(x), product * whole(x), mean + type(mean)(x)
        filled += type(filled)(0 if kind == "f" and np.isnan(x) else x)
    mean = np.float64(mean) / len(row)
    squares = np.float64(0)
    for x in row:
        squares += (np.float64(x) - mean) ** 2
    var = squares / len(row)
    places = [int(np.argmin(row)), int(np.argmax(row)), bool(row.any()), bool(row.all())]
    return [total, product, mean, var, var**0.5, *places, filled, np.count_nonzero(row)]


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint8, np.uint32, np.bool_])
def test_arrays_are_reduced_in_numbas_order_and_types(dtype):
    x = (np.random.default_rng(2).uniform(0, 4, (4, 9)) * (1 if dtype != np.uint8 else 60)).astype(dtype)
    x[1, 1:3], x[2] = 0, 0
    if dtype == np.float32:
        x[0, 4] = x[3, 3] = np.nan
    out = np.zeros((4, 11))
    run(reduce_rows, 32, x, out)
    with np.errstate(invalid="ignore", over="ignore"):
        want = [list(map(float, reduced(row[i:]))) for i, row in enumerate(x)]
    np.testing.assert_array_equal(out, want)


def test_an_array_of_layout_f_is_added_up_by_columns():
    @cuda.jit
    def kernel(x, y, out):
        out[0], out[1], out[2], out[3] = x.sum(), x.T.sum(), y.sum(), x.argmin()

    x = np.array([[1e8, -1e8], [1, 1]], np.float32)  # Added up by rows it is 2, by columns 1.
    run(kernel, 1, np.asfortranarray(x), x, out := zeros(4))
    assert out.tolist() == [1, 1, 2, 1]


def test_a_thread_that_has_found_one_reads_no_further():
    @cuda.jit
    def kernel(out):
        flags = cuda.local.array(4, int32)
        flags[0] = cuda.threadIdx.x
        flags[1] = 1
        out[cuda.threadIdx.x] = np.any(flags) + 10 * (flags[:1].all())

    run(kernel, 3, out := zeros(3))
    assert out.tolist() == [1, 11, 11]


def test_reductions_are_counted_without_running():
    x, out = np.ones((4, 9), np.float32), np.zeros((4, 11))
    ran, counted = (emulate(reduce_rows, 1, 4, x, out, counts_only=only) for only in (False, True))
    rows = [report.total("requests", space="global", array="x") for report in (ran, counted)]
    # Where no value is known, no thread leaves any() early.
    assert rows[0] < rows[1]
    np.testing.assert_array_equal(out[:, 10], [9, 8, 7, 6])


def test_what_numba_does_not_reduce():
    def of_halves(x, h, out):
        out[0] = h.sum()

    def by_axis(x, h, out):
        out[0] = x.sum(0)

    def of_a_number(x, h, out):
        out[0] = np.sum(x[0])

    def largest(x, h, out):
        out[0] = x.max()

    def place_of_nothing(x, h, out):
        out[0] = x[:0].argmax()

    words = ["of float16", "takes no arguments", "takes an array", "does not support the method .max()"]
    words.append("ValueError: attempt to get argmax of an empty sequence")
    for function, sentence in zip((of_halves, by_axis, of_a_number, largest, place_of_nothing), words):
        with pytest.raises(EmulatorError) as refused:
            emulate(cuda.jit(function), 1, 1, ramp(4), np.zeros(4, np.float16), zeros(1))
        assert sentence in str(refused.value)


def test_new_axes_and_items_of_numbers():
    @cuda.jit
    def kernel(x, out):
        i = cuda.threadIdx.x
        column = x[:, np.newaxis]
        out[np.newaxis, :][0, i] = column[i, 0].item() + column.ndim + x[i].item()
        out[4], out[5] = np.any(x[0]) + np.all(i < 0), np.count_nonzero(x[1])

    run(kernel, 4, ramp(4), out := zeros(6))
    assert out.tolist() == [4, 6, 8, 10, 1, 1]


@cuda.jit
def reshaped_to_an_argument(x, n, out):
    i = cuda.grid(1)
    rows = x.reshape(n, 2)
    total = 0.0
    for j in range(2):
        total += rows[i, j]
    out[i] = total


def test_a_shape_may_be_an_argument():
    out = np.zeros(4)
    assert emulate(reshaped_to_an_argument, 1, 4, np.arange(8.0), 4, out).ok
    assert out.tolist() == [1, 5, 9, 13]
    with pytest.raises(KernelTypeError, match=r"x has 8 elements; it cannot be reshaped to 3 by 2"):
        emulate(reshaped_to_an_argument, 1, 4, np.arange(8.0), 3, out)
