"""Variables that only some threads have set: each thread has its own value, and reading none is a finding.

`python -m lockstep_tests.test_unset 2000` tries so many random kernels, and shows one that fails.
"""

import inspect
import re
import sys
from collections import Counter

import numpy as np
import pytest
from numba import cuda, float32

from lockstep import KernelStopped, KernelTypeError, emulate
from lockstep.machine.machine import Machine
from lockstep.machine.unset import garbage
from lockstep_tests.partial_kernels import BLOCK, SLOTS, THREADS, Alone, kernel, source

LANES = 8
UNSET = garbage(np.int64)
HARMLESS = ("unset_variable", "float64_arithmetic", "dynamic_local_index")
RACES = ("global_race", "equal_stores")  # some kernels have them, and they are not what is tested here

# Each kernel with what it stores in its eight threads; `<- unset v` marks the reads of what is not set.


@cuda.jit
def two_guards(x, n, out):
    i = cuda.grid(1)
    if i < 5:
        v = x[i]
    cuda.syncthreads()
    if i < 5:
        out[i] = v


@cuda.jit
def one_guard(x, n, out):
    i = cuda.grid(1)
    if i < 5:
        v = x[i]
    out[i] = v  # <- unset v


@cuda.jit
def set_by_none(x, n, out):
    i = cuda.grid(1)
    if n > 90:
        v = x[i]
    out[i] = v  # <- unset v


@cuda.jit
def a_loop_that_some_never_enter(x, n, out):
    i = cuda.grid(1)
    for k in range(i % 3):
        last = 10 * k
    if i % 3:
        out[i] = last + k
    else:
        out[i] = last  # <- unset last


@cuda.jit
def a_loop_left_early(x, n, out):
    i = cuda.grid(1)
    for k in range(n):
        if k == i:
            break
        found = k
    else:
        found = 50
    out[i] = found if i > 0 else 7


@cuda.jit
def from_an_earlier_iteration_of_other_lanes(x, n, out):
    i = cuda.grid(1)
    for j in range(4):
        if (i + j) % 2 == 0:
            if j < 2:
                v = i * 10 + j
            else:
                out[i] = v


@cuda.jit
def a_loop_variable_that_others_use(x, n, out):
    i = cuda.grid(1)
    k = t = 5
    if i % 2 == 0:
        for k in range(3):
            t = x[k]
            out[k] = t
        k = t = i
    out[i] = k + t


@cuda.jit
def a_counter_that_others_use(x, n, out):
    i = cuda.grid(1)
    k = 0
    if i % 2 == 0:
        while k < 4:
            out[k] = x[k]
            k += 1
    cuda.syncthreads()
    out[i] = k


@cuda.jit
def several_types(x, n, out):
    i = cuda.grid(1)
    if i % 2 == 0:
        v = 1
    if i % 4 == 1:
        v = 2.5
    if i % 4 < 3:
        out[i] = v
    else:
        v += 1  # <- unset v
        out[i] = v


@cuda.jit
def a_tuple(x, n, out):
    i = cuda.grid(1)
    if i < 4:
        pair = x[i], True
    a, b = pair  # <- unset pair
    out[i] = a + b


@cuda.jit
def a_shuffle(x, n, out):
    i = cuda.grid(1)
    if i < 4:
        v = x[i]
    out[i] = 3
    if i < 4:
        out[i] = cuda.shfl_xor_sync(15, v, 1)


@cuda.jit(device=True)
def first_above(x, limit):
    for k in range(limit):
        if x[k] > 6:
            return k
        seen = k
    return seen  # <- unset seen


@cuda.jit
def in_a_device_function(x, n, out):
    i = cuda.grid(1)
    out[i] = first_above(x, i)


@cuda.jit
def in_a_function_inside(x, n, out):
    i = cuda.grid(1)
    if i < 6:
        v = x[i]

    def tripled(a):
        if a > 2:
            w = 3 * v
        return w  # <- unset w

    out[i] = tripled(i)  # <- unset v


@cuda.jit
def an_early_return(x, n, out):
    i = cuda.grid(1)
    if i < 3:
        v = 4
    elif i < 7:
        return
    else:
        v = 5
    out[i] = v


@cuda.jit
def the_other_branch_updates(x, n, out):
    i = cuda.grid(1)
    if i == 0:
        v = 1.5
    elif i < 3:
        v = v + 1  # <- unset v
    else:
        v = 2
    out[i] = v


NAN, W = float("nan"), UNSET
KERNELS = [
    (two_guards, [0, 1, 2, 3, 4, -1, -1, -1]),
    (one_guard, [0, 1, 2, 3, 4, NAN, NAN, NAN]),
    (set_by_none, [NAN] * 8),
    (a_loop_that_some_never_enter, [W, 0, 11, W, 0, 11, W, 0]),
    (a_loop_left_early, [7, 0, 1, 2, 50, 50, 50, 50]),
    (from_an_earlier_iteration_of_other_lanes, [0, 11, 20, 31, 40, 51, 60, 71]),
    (a_loop_variable_that_others_use, [0, 10, 4, 10, 8, 10, 12, 10]),
    (a_counter_that_others_use, [4, 0, 4, 0, 4, 0, 4, 0]),
    (several_types, [1, 2.5, 1, NAN, 1, 2.5, 1, NAN]),
    (a_tuple, [1, 2, 3, 4, NAN, NAN, NAN, NAN]),
    (a_shuffle, [1, 0, 3, 2, 3, 3, 3, 3]),
    (in_a_device_function, [W, 0, 1, 2, 3, 4, 5, 6]),
    (the_other_branch_updates, [1.5, NAN, NAN, 2, 2, 2, 2, 2]),
    (an_early_return, [4, 4, 4, -1, -1, -1, -1, 5]),
]


def marked(*kernels):
    """(line, variable) of the marked lines."""
    found = set()
    for function in kernels:
        lines, start = inspect.getsourcelines(function.py_func)
        for number, text in enumerate(lines, start):
            if match := re.search(r"# <- unset (\w+)", text):
                found.add((number, match[1]))
    return found


def unset_reads(report):
    """How often each (line, variable) is found; there must be no other error."""
    found = Counter()
    for finding in report.findings:
        assert finding.kind in HARMLESS, finding
        if finding.kind == "unset_variable":
            assert finding.severity == "error"
            found[finding.line, re.search(r"reads (\w+) without", finding.message)[1]] += finding.count
    return found


@pytest.mark.parametrize(("tried", "expected"), KERNELS, ids=lambda v: getattr(v, "__name__", ""))
def test_each_thread_has_its_own_value(tried, expected):
    out = np.full(LANES, -1.0)
    report = emulate(tried, 1, LANES, np.arange(LANES, dtype=np.float32), 4, out, allow=RACES)
    np.testing.assert_array_equal(out, np.array(expected, float))
    used = (tried, first_above) if tried is in_a_device_function else (tried,)
    assert set(unset_reads(report)) == marked(*used)


def test_a_function_inside_reads_what_is_not_set():
    out = np.zeros(LANES)
    report = emulate(in_a_function_inside, 1, LANES, np.arange(LANES, dtype=np.float32), 4, out)
    np.testing.assert_array_equal(out[3:6], [9, 12, 15])
    assert np.isnan(out[[0, 1, 2, 6, 7]]).all()
    assert set(unset_reads(report)) == marked(in_a_function_inside)


@cuda.jit
def an_array(x, out):
    i = cuda.grid(1)
    if i < 5:
        s = x
    out[i] = s[i]


@cuda.jit
def a_row(x, out):
    i = cuda.grid(1)
    if i < 5:
        s = x[i:]
    elif i > 7:
        s = out
    s[0] = 9


@cuda.jit
def a_shared_array(x, out):
    i = cuda.grid(1)
    if i < 5:
        s = cuda.shared.array(8, float32)
        s[i] = 1
    cuda.syncthreads()
    out[i] = s[0]


@pytest.mark.parametrize("tried", [an_array, a_row, a_shared_array], ids=lambda k: k.__name__)
def test_an_array_that_is_not_set_is_never_that_of_another_thread(tried):
    x, out = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    with pytest.raises(
        KernelStopped, match=r"Thread \(5, 0, 0\) .* reads s without having set it: s is set in"
    ):
        emulate(tried, 1, LANES, x, out)
    assert x.tolist() == list(range(8)) and not out.any()


def test_the_finding_tells_who_reads_what_and_where_it_is_set():
    out = np.zeros(2 * LANES)
    x = np.arange(2 * LANES, dtype=np.float32)
    report = emulate(one_guard, 2, LANES, x, 4, out)
    (finding,) = report.findings
    assert (finding.threads, finding.block, finding.count) == ([(5, 0, 0)], (0, 0, 0), 11)
    assert finding.message == (
        "Thread (5, 0, 0) of block (0, 0, 0) reads v without having set it: v is set in line "
        f"{finding.line - 1}, which this thread has not run. On a GPU its value is undefined."
    )


@cuda.jit
def stored(x, n, out):
    i = cuda.grid(1)
    if i < n:
        v = x[i]
    out[i] = v


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint16", "int32", "uint64", "bool"])
def test_what_is_not_set_is_conspicuous(dtype):
    x, out = np.zeros(LANES, dtype), np.zeros(LANES, dtype)
    emulate(stored, 1, LANES, x, 3, out)
    np.testing.assert_array_equal(out[:3], 0)
    np.testing.assert_array_equal(out[3:], np.full(5, garbage(dtype), dtype))
    assert dtype == "bool" or not out[7] == 0


def check_random(seed, wide):
    """A random kernel does in each thread what the thread does alone."""
    text = source(seed, wide)
    x, n, out = np.random.default_rng(seed).integers(0, 9, 9), seed % 7, np.zeros((THREADS, SLOTS))
    alone = Alone(text)
    expected = alone.run(x, n)
    try:
        report = emulate(kernel(text), THREADS // BLOCK, BLOCK, x, n, out)
    except KernelTypeError as refused:  # no path at all sets what is read: it has no type
        assert "a variable is used before a value has been assigned to it" in str(refused), text
        return
    found = unset_reads(report)
    if wide:  # garbage depends on the type, and later findings on garbage
        rows = [thread for thread in range(THREADS) if thread not in alone.faulty]
        assert bool(found) == bool(alone.unset), text
        np.testing.assert_array_equal(out[rows], expected[rows], text)
    else:
        assert found == alone.unset, text
        np.testing.assert_array_equal(out, expected, text)


@pytest.mark.many(one_in=40, with_all=10)
@pytest.mark.parametrize("wide", [False, True], ids=["one_type", "several_types"])
@pytest.mark.parametrize("narrow", [False, True], ids=["all_lanes", "few_lanes"])
@pytest.mark.parametrize("seed", range(30))
def test_random_kernels_agree_with_each_thread_alone(seed, narrow, wide, monkeypatch):
    if narrow:
        monkeypatch.setattr(Machine, "fewest_lanes", 1)
        monkeypatch.setattr(Machine, "look_every", 1)
    check_random(seed, wide)


@cuda.jit
def none_at_first(x, n, out):
    i = cuda.grid(1)
    best = None
    for k in range(i):
        if x[k] > 3 and best is None:
            best = k
    if best is not None:
        out[i] = best
    else:
        out[i] = 70


@cuda.jit
def none_for_some(x, n, out):
    i = cuda.grid(1)
    v = 3
    if i % 2 == 0:
        v = None
    if i % 4 == 0:
        v = x[i]
    out[i] = 60 if v is None else v


@cuda.jit
def none_then_a_value(x, n, out):
    i = cuda.grid(1)
    v = None
    if i < 20:
        v = x[i]
    v += 1
    out[i] = v


@cuda.jit
def none_used_as_a_number(x, n, out):
    i = cuda.grid(1)
    v = None
    if i < 5:
        v = x[i]
    out[i] = v


@cuda.jit(device=True)
def half_or_none(a):
    if a > 3:
        return None
    return a / 2


@cuda.jit
def none_from_a_function(x, n, out):
    i = cuda.grid(1)
    out[i] = half_or_none(x[i])


@cuda.jit(device=True)
def half_or_the_end(a):
    if a < 4:
        return a / 2
    elif a >= 4:
        a += 1


@cuda.jit
def none_at_the_end_of_a_function(x, n, out):
    i = cuda.grid(1)
    out[i] = half_or_the_end(x[i])


NONE = [
    (none_at_the_end_of_a_function, "and so returns None in others: end it with a `return` of a number"),
    (none_at_first, [70, 70, 70, 70, 70, 4, 4, 4]),
    (none_for_some, [0, 3, 60, 3, 4, 3, 60, 3]),
    (none_then_a_value, [1, 2, 3, 4, 5, 6, 7, 8]),
    (
        none_used_as_a_number,
        r"v is None in thread \(5, 0, 0\) of block \(0, 0, 0\), which uses it in line \d+",
    ),
    (none_from_a_function, "None in some threads and not in others"),
]


@pytest.mark.parametrize(("tried", "expected"), NONE, ids=lambda v: getattr(v, "__name__", ""))
def test_none_in_some_threads_is_right_or_refused(tried, expected):
    out, x = np.full(LANES, -1.0), np.arange(LANES, dtype=np.float32)
    if isinstance(expected, str):
        with pytest.raises(KernelTypeError, match=expected):
            emulate(tried, 1, LANES, x, 4, out)
    else:
        assert not unset_reads(emulate(tried, 1, LANES, x, 4, out))
        np.testing.assert_array_equal(out, np.array(expected, float))


if __name__ == "__main__":
    for number in range(int(sys.argv[1])):
        check_random(number, number % 2 == 1)
