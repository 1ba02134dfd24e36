"""Arrays as values: variables that hold one of several, arguments over one memory, slices, loops, constants.

The references are NumPy and plain loops over the threads.
"""

import numba
import numpy as np
import pytest
from numba import cuda, float32, float64, uint8

from lockstep import EmulatorError, KernelTypeError, LaunchError, emulate
from lockstep_tests.corpus import ramp, zeros


def run(kernel, threads, *args, blocks=1, **options):
    """Run without errors in the findings; returns the report."""
    report = emulate(kernel, blocks, threads, *args, **options)
    assert report.ok, [str(finding) for finding in report.findings]
    return report


def errors(report):
    return {finding.kind for finding in report.errors}


# --- a variable that holds one array in some threads and another one in others ----------------------------


@cuda.jit
def reads_of_two(a, b, o):
    i = cuda.grid(1)
    if i % 2 == 0:
        s = a
    else:
        s = b
    o[i] = s[i]


@cuda.jit
def reads_of_two_by_a_ternary(a, b, o):
    i = cuda.grid(1)
    s = a if i % 2 == 0 else b
    o[i] = s[i]


@cuda.jit
def reads_of_a_ternary(a, b, o):
    i = cuda.grid(1)
    o[i] = (a if i % 2 == 0 else b)[i]


@cuda.jit
def reads_after_a_swap(a, b, o):
    i = cuda.grid(1)
    if i % 2 == 1:
        a, b = b, a
    o[i] = a[i]


@cuda.jit(device=True)
def even_or_odd(i, a, b):
    if i % 2 == 0:
        return a
    return b


@cuda.jit
def reads_of_what_a_function_returns(a, b, o):
    i = cuda.grid(1)
    s = even_or_odd(i, a, b)
    o[i] = s[i]


@cuda.jit
def reads_of_shared_arrays(a, b, o):
    i = cuda.grid(1)
    first = cuda.shared.array(64, float32)
    second = cuda.shared.array(64, float32)
    first[i] = a[i]
    second[i] = b[i]
    cuda.syncthreads()
    s = first if i % 2 == 0 else second
    o[i] = s[i]


@cuda.jit
def reads_of_local_arrays(a, b, o):
    i = cuda.grid(1)
    first = cuda.local.array(2, float32)
    second = cuda.local.array(2, float32)
    first[0], first[1] = a[i], float32(0)
    second[0], second[1] = b[i], float32(0)
    if i % 2 == 0:
        s = first
    else:
        s = second
    o[i] = s[0] + s[1]


@cuda.jit
def reads_of_shared_and_global(a, b, o):
    i = cuda.grid(1)
    tile = cuda.shared.array(64, float32)
    tile[i] = a[i]
    s = b
    if i % 2 == 0:
        s = tile
    o[i] = s[i]


@cuda.jit
def reads_of_two_of_three(a, b, o):
    i = cuda.grid(1)
    s = o
    if i % 2 == 0:
        s = a
    elif i < 10**6:
        s = b
    o[i] = s[i]


@pytest.mark.parametrize(
    "kernel",
    [
        reads_of_two,
        reads_of_two_by_a_ternary,
        reads_of_a_ternary,
        reads_after_a_swap,
        reads_of_what_a_function_returns,
        reads_of_shared_arrays,
        reads_of_local_arrays,
        reads_of_shared_and_global,
        reads_of_two_of_three,
    ],
    ids=lambda kernel: kernel.py_func.__name__,
)
def test_every_lane_reads_its_own_array(kernel):
    a, b, o = ramp(64), -ramp(64), zeros(64)
    run(kernel, 64, a, b, o)
    np.testing.assert_array_equal(o, np.where(np.arange(64) % 2 == 0, a, b))


@cuda.jit
def stores_to_two(x, a, b):
    i = cuda.grid(1)
    if i % 2 == 0:
        s = a
    else:
        s = b
    s[i] = x[i]
    s[i] += x[i]
    s[i] -= float32(1)


def test_every_lane_stores_to_its_own_array():
    x, a, b = ramp(64), zeros(64), zeros(64)
    run(stores_to_two, 64, x, a, b)
    even = np.arange(64) % 2 == 0
    np.testing.assert_array_equal(a, np.where(even, 2 * x - 1, 0))
    np.testing.assert_array_equal(b, np.where(even, 0, 2 * x - 1))


def test_arrays_stored_to_under_another_name_are_unchanged_after_an_error():
    @cuda.jit
    def fails(x, a, b):
        i = cuda.grid(1)
        s = a if i % 2 == 0 else b
        s[i] = x[i]
        row = s[0:4]
        row[0] = x[i, 0]

    a, b = zeros(64), zeros(64)
    with pytest.raises(KernelTypeError):
        emulate(fails, 1, 64, ramp(64), a, b)
    assert not a.any() and not b.any()


@cuda.jit
def adds_atomically(a, b):
    i = cuda.grid(1)
    s = a if i % 4 else b
    cuda.atomic.add(s, i % 2, 1)


def test_atomics_on_one_of_two():
    a, b = np.zeros(2, np.int32), np.zeros(2, np.int32)
    run(adds_atomically, 64, a, b)
    assert a.tolist() == [16, 32] and b.tolist() == [16, 0]


@cuda.jit
def ping_pong(x, scratch, n):
    i = cuda.grid(1)
    source, target = x, scratch
    for _ in range(n):
        target[i] = source[i] + float32(1)
        source, target = target, source


@pytest.mark.parametrize("n", [3, 4])
def test_buffers_swapped_in_a_loop(n):
    x, scratch = zeros(32), zeros(32)
    run(ping_pong, 32, x, scratch, n)
    assert (x == n - n % 2).all() and (scratch == n - 1 + n % 2).all()


@cuda.jit
def ping_pong_of_odd_threads(x, y, n):
    i = cuda.grid(1)
    source, target = x, y
    for _ in range(n):
        target[i] = source[i] + float32(1)
        if i % 2 == 1:
            source, target = target, source


def test_buffers_swapped_in_a_loop_by_some_threads():
    x, y = zeros(32), zeros(32)
    run(ping_pong_of_odd_threads, 32, x, y, 5)
    odd = np.arange(32) % 2 == 1
    np.testing.assert_array_equal(x, np.where(odd, 4, 0))
    np.testing.assert_array_equal(y, np.where(odd, 5, 1))


@cuda.jit
def rows_of_two(a, b, o):
    i = cuda.grid(1)
    if i % 2 == 0:
        row = a[i]
    else:
        row = b[i // 2]
    for j in range(row.shape[0]):
        o[i, j] = row[j]


def test_rows_of_two_arrays():
    a, b, o = ramp(32, 4), -ramp(16, 4), zeros(32, 4)
    run(rows_of_two, 32, a, b, o)
    wanted = a.copy()
    wanted[1::2] = b
    np.testing.assert_array_equal(o, wanted)


@cuda.jit
def rows_of_one(a, o):
    i = cuda.grid(1)
    row = a[0]
    if i % 3 == 0:
        row = a[i]
    o[i] = row[1]


def test_rows_of_one_array_are_one_request():
    a, o = ramp(32, 4), zeros(32)
    report = run(rows_of_one, 32, a, o)
    np.testing.assert_array_equal(o, [a[i if i % 3 == 0 else 0, 1] for i in range(32)])
    assert report.total("requests", array="a") == 1


@cuda.jit
def lengths_of_two(a, b, o):
    i = cuda.grid(1)
    s = a if i % 2 == 0 else b
    o[i] = s.shape[0] + 100 * len(s) + 10000 * s.size


def test_lengths_of_two_arrays():
    o = np.zeros(8, np.int64)
    run(lengths_of_two, 8, zeros(3), zeros(5), o)
    assert o.tolist() == [30303, 50505] * 4


def test_one_of_two_arrays_out_of_bounds_is_reported_for_that_one():
    report = emulate(reads_of_two, 1, 64, zeros(64), zeros(32), zeros(64))
    (found,) = report.errors
    assert (found.kind, found.array, found.count) == ("out_of_bounds", "b", 16)


def test_a_race_on_one_of_two_arrays_is_found():
    @cuda.jit
    def races(a, b):
        i = cuda.grid(1)
        s = a if i % 2 == 0 else b
        s[0 if i % 2 == 0 else i] = float32(i)

    report = emulate(races, 1, 64, zeros(64), zeros(64))
    assert [(f.kind, f.array) for f in report.errors] == [("global_race", "a")]


@pytest.mark.parametrize("other", [np.zeros(64), zeros(8, 8)])
def test_two_arrays_of_different_types_are_refused(other):
    o = zeros(64)
    with pytest.raises(KernelTypeError, match="arrays of one type where paths meet, not float32"):
        emulate(reads_of_two, 1, 64, zeros(64), other, o)
    assert not o.any()


@cuda.jit
def one_name_for_two_variables(a, b, o):
    i = cuda.grid(1)
    if i % 2 == 0:
        s = a
        o[i] = s[i]
    else:
        s = b
        o[i] = s[i, 0]
    if i == 3:
        s = 5
        o[i] = s


def test_one_name_for_arrays_that_never_meet():
    a, b, o = ramp(8), -ramp(8, 2), zeros(8)
    run(one_name_for_two_variables, 8, a, b, o)
    assert o.tolist() == [a[i] if i % 2 == 0 else b[i, 0] if i != 3 else 5 for i in range(8)]


def test_counts_of_one_of_two_arrays():
    """Whole warps with one array each: as many requests as on a GPU."""

    @cuda.jit
    def by_warp(a, b, o):
        i = cuda.grid(1)
        s = a if i // 32 % 2 == 0 else b
        o[i] = s[i]

    arrays = ramp(128), ramp(128), zeros(128)
    for counts_only in (False, True):
        report = emulate(by_warp, 1, 128, *arrays, counts_only=counts_only)
        for name in "ab":
            assert report.total("requests", array=name, op="load") == 2
            assert report.total("sectors", array=name, op="load") == 8


# --- several arguments over one memory --------------------------------------------------------------------


@cuda.jit
def writes_and_reads_back(x, y, o):
    """Each thread writes through one argument and reads through the other."""
    i = cuda.grid(1)
    x[i] = float32(i + 1)
    o[i] = y[i, 0]


def test_an_argument_and_its_reshaped_view():
    x, o = zeros(32), zeros(32)
    run(writes_and_reads_back, 32, x, x.reshape(32, 1), o)
    np.testing.assert_array_equal(o, ramp(32))
    np.testing.assert_array_equal(x, ramp(32))


@cuda.jit
def writes_both(x, y):
    i = cuda.grid(1)
    if i % 2 == 0:
        x[i] = 1.0
    else:
        y[i] = 0x40000000


def test_an_argument_and_a_view_of_another_dtype():
    x = zeros(32)
    run(writes_both, 32, x, x.view(np.int32))
    assert x.tolist() == [1, 2] * 16


@cuda.jit
def writes_low_halves(x, halves, o):
    i = cuda.grid(1)
    halves[2 * i] = 7
    o[i] = x[i]


def test_a_view_with_smaller_elements():
    x, o = np.full(16, 0x00050000, np.int32), np.zeros(16, np.int32)
    run(writes_low_halves, 16, x, x.view(np.int16), o)
    assert (x == 0x00050007).all() and (o == 0x00050007).all()


@cuda.jit
def shift(x, y):
    i = cuda.grid(1)
    if i < x.shape[0]:
        x[i] = y[i]


def test_an_in_place_shift_is_a_race():
    whole = ramp(65)
    report = emulate(shift, 1, 64, whole[1:], whole[:-1])
    assert errors(report) == {"global_race"}
    assert errors(emulate(shift, 1, 64, whole[:-1], whole[1:])) == {"global_race"}


def test_a_race_through_a_view_of_another_dtype_is_found():
    whole = ramp(64)
    assert errors(emulate(shift, 1, 63, whole.view(np.int32)[1:], whole)) == {"global_race"}


def test_halves_of_one_array_do_not_race():
    whole = ramp(64)
    run(shift, 32, whole[:32], whole[32:])
    np.testing.assert_array_equal(whole, np.tile(ramp(64)[32:], 2))


def test_interleaved_views_do_not_race():
    whole = ramp(64)
    run(shift, 32, whole[::2], whole[1::2])
    np.testing.assert_array_equal(whole, np.repeat(ramp(64)[1::2], 2))


def test_overlapping_views_of_which_one_is_written():
    whole, o = ramp(64), zeros(32)

    @cuda.jit
    def adds(x, y, o):
        i = cuda.grid(1)
        o[i] = x[i] + y[i]

    run(adds, 32, whole[:32], whole[8:40], o)
    np.testing.assert_array_equal(o, ramp(64)[:32] + ramp(64)[8:40])


@cuda.jit
def transposed(a, b):
    j, i = cuda.grid(2)
    if i < j:
        a[i, j], b[i, j] = b[i, j], a[i, j]


def test_an_array_and_its_transpose():
    a = ramp(8, 8)
    run(transposed, (8, 8), a, a.T)
    np.testing.assert_array_equal(a, ramp(8, 8).T)


LAYOUTS = {
    "backwards": lambda x: x[::-1],
    "every third": lambda x: x[::3],
    "every third, backwards": lambda x: x[-2::-3],
    "a column": lambda x: x.reshape(-1, 4)[:, 1],
    "a column from below": lambda x: x.reshape(-1, 4)[::-1, 1],
    "a diagonal": lambda x: np.lib.stride_tricks.as_strided(x, (9,), (x.itemsize * 11,)),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arrays_of_every_layout(layout):
    source, target, wanted = ramp(120), zeros(120), zeros(120)
    view, into = LAYOUTS[layout](source), LAYOUTS[layout](target)
    run(shift, 128, into, view)
    LAYOUTS[layout](wanted)[:] = view
    np.testing.assert_array_equal(target, wanted)
    np.testing.assert_array_equal(source, ramp(120))


MATRICES = {
    "Fortran order": lambda a: np.asfortranarray(a),
    "transposed": lambda a: a.T,
    "turned around": lambda a: a[::-1, ::-1],
    "from the right": lambda a: a[:, ::-1],
    "a part": lambda a: a[1:, 2:],
    "broadcast rows": lambda a: np.broadcast_to(a[0], a.shape),
}


@cuda.jit
def copies_matrix(a, o):
    j, i = cuda.grid(2)
    if i < a.shape[0] and j < a.shape[1]:
        o[i, j] = a[i, j]


@pytest.mark.parametrize("layout", MATRICES)
def test_matrices_of_every_layout(layout):
    a = MATRICES[layout](ramp(6, 7))
    for o in (np.zeros_like(a, order="C"), np.zeros_like(a, order="F"), zeros(9, 9)[::-1, ::-1][1:, 1:]):
        o = o[: a.shape[0], : a.shape[1]]
        report = run(copies_matrix, (8, 8), a, o)
        np.testing.assert_array_equal(o, a)
        addresses = [
            {(i * a.strides[0] + j * a.strides[1] + first_byte(a)) // 32 for i, j in warp}
            for warp in warps_of(a.shape)
        ]
        assert report.total("sectors", array="a") == sum(map(len, addresses))


def first_byte(a):
    """The distance of the first element from the start of the memory."""
    owner = a
    while owner.base is not None and hasattr(owner.base, "__array_interface__"):
        owner = owner.base
    return a.__array_interface__["data"][0] - owner.__array_interface__["data"][0]


def warps_of(shape):
    """The elements that each warp of an 8 by 8 block accesses, one per thread."""
    inside = [(i, j) for i in range(shape[0]) for j in range(shape[1])]
    return [[(i, j) for i, j in inside if first <= i < first + 4] for first in range(0, shape[0], 4)]


def test_sectors_of_a_view_that_begins_within_a_sector():
    """Its elements have the addresses that they have in the whole array."""
    whole, o = ramp(64), zeros(32)
    assert run(shift, 32, o, whole[:32]).total("sectors", array="y") == 4
    assert run(shift, 32, o, whole[1:33]).total("sectors", array="y") == 5
    assert run(shift, 32, o, whole[8:40]).total("sectors", array="y") == 4


def test_counts_of_overlapping_arguments_are_those_of_separate_ones():
    whole = ramp(96)
    for x, y in ((whole[:64], whole[32:]), (whole[:32], whole[32:64]), (whole[:32], whole[:32])):
        together = emulate(shift, 1, 32, x, y).accesses
        apart = emulate(shift, 1, 32, x.copy(), y.copy()).accesses
        assert together.drop(columns="site").equals(apart.drop(columns="site"))


def test_an_array_that_is_only_read_may_be_a_broadcast_number():
    o = zeros(32)
    run(shift, 32, o, np.broadcast_to(np.float32(3), (32,)))
    assert (o == 3).all()


def test_a_read_only_array_that_is_written_is_refused():
    x = zeros(32)
    x.flags.writeable = False
    with pytest.raises(LaunchError, match="x is read-only"):
        emulate(shift, 1, 32, x, ramp(32))


def test_elements_of_another_alignment_are_refused():
    records = np.zeros(8, np.dtype([("a", np.int8), ("b", np.float32)]))
    with pytest.raises(EmulatorError, match="y do not lie at multiples of their size"):
        emulate(shift, 1, 8, zeros(8), records["b"])


@cuda.jit
def sums_windows(windows, o):
    i = cuda.grid(1)
    for j in range(windows.shape[1]):
        windows[i, j] += float32(1)
    o[i] = windows[i, 0]


def test_windows_that_overlap_race():
    windows = np.lib.stride_tricks.sliding_window_view(zeros(34), 3, writeable=True)
    assert errors(emulate(sums_windows, 1, 32, windows, zeros(32))) == {"global_race"}


def test_windows_of_one_thread_that_overlap():
    windows = np.lib.stride_tricks.as_strided(zeros(4), (1, 4), (4, 0))
    o = zeros(1)
    run(sums_windows, 1, windows, o)
    assert o[0] == 4


@cuda.jit
def changes_arrays_in_a_while_loop(a, b, o):
    i = cuda.grid(1)
    s = a
    while s[i] < 5:
        s = b if i % 2 == 0 else s
        a[i] += 1
    o[i] = s[i]


def test_a_while_loop_whose_condition_reads_one_of_two_arrays():
    a, b, o = zeros(32), ramp(32) + 4, zeros(32)
    run(changes_arrays_in_a_while_loop, 32, a, b, o)
    np.testing.assert_array_equal(o, np.where(np.arange(32) % 2 == 0, b, 5))


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint64], ids=lambda dtype: dtype.__name__)
@pytest.mark.parametrize("number", [-2, 300, 1 << 40])
def test_an_integer_that_does_not_fit_is_stored_with_its_low_bits(dtype, number):
    kind = getattr(numba, dtype.__name__)

    @cuda.jit
    def kernel(out):
        one, row = cuda.local.array(2, kind), cuda.local.array((2, 2), kind)
        one[0] = number
        row[-1] = number
        out[cuda.threadIdx.x, 0], out[cuda.threadIdx.x, 1] = one[0], row[1, 1]

    out = np.zeros((4, 2), dtype)
    emulate(kernel, 1, 4, out)
    np.testing.assert_array_equal(out, np.full((4, 2), np.int64(number).astype(dtype)))


def test_arrays_in_place_of_the_grid_are_told_apart_and_not_printed():
    with pytest.raises(LaunchError, match=r"not an array: emulate\(kernel, grid, block, arguments"):
        emulate(lambda a, out: None, np.arange(120), np.zeros(120))


@cuda.jit
def dynamic_memory_of_two_types(out):
    doubles = cuda.shared.array(0, float64)
    tail = cuda.shared.array(0, uint8)[8 * 2 :]
    doubles[1] = 7
    tail[tail.size - 1] = 5
    out[0], out[1] = doubles.size, tail.size
    out[2], out[3] = doubles[1], tail[tail.size - 1]


@pytest.mark.parametrize("size", [17, 19, 24, 419])
def test_dynamic_memory_has_as_many_elements_of_each_type_as_fit(size):
    out = np.zeros(4, np.int64)
    assert emulate(dynamic_memory_of_two_types, 1, 1, out, shared_bytes=size).ok
    assert out.tolist() == [size // 8, size - 16, 7, 5]
