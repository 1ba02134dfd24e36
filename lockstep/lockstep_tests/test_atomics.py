"""Atomic operations of many lanes: what each lane finds, and what is left, as if one went after another."""

import math

import numpy as np
import pytest
from numba import cuda, int32

from lockstep import KernelTypeError, emulate
from lockstep.memory.atomics import ATOMICS, one_after_another


def plain(name, memory, cells, values, compare):
    """One lane after another, as the CUDA C++ programming guide's section "Atomic functions" says."""
    found = []
    for cell, value, wanted in zip(cells, values, compare):
        old = memory[cell]
        found.append(old)
        if name in ("add", "sub", "and_", "or_", "xor"):
            operation = {
                "add": "__add__",
                "sub": "__sub__",
                "and_": "__and__",
                "or_": "__or__",
                "xor": "__xor__",
            }
            memory[cell] = getattr(old, operation[name])(value)
        elif name in ("max", "min", "nanmax", "nanmin"):
            better = value > old if name.endswith("max") else value < old
            memory[cell] = value if better else old
        elif name == "exch":
            memory[cell] = value
        elif name == "inc":
            memory[cell] = 0 if old >= value else old + memory.dtype.type(1)
        elif name == "dec":
            memory[cell] = value if old == 0 or old > value else old - memory.dtype.type(1)
        else:
            memory[cell] = value if old == wanted else old
    return np.array(found, memory.dtype)


BITS = ("and_", "or_", "xor", "inc", "dec")


INTEGERS = ("int32", "uint32", "int64", "uint64")
TYPED = [
    (name, t)
    for name in ATOMICS
    for t in (*INTEGERS, "float32", "float64")
    if t in INTEGERS or name not in BITS
]


@pytest.mark.many(one_in=4)
@pytest.mark.parametrize("elements", [1, 2, 50, 5000])
@pytest.mark.parametrize("name, dtype", TYPED)
def test_as_one_lane_after_another(name, dtype, elements):
    random = np.random.default_rng([elements, len(name)])
    memory = random.integers(0, 9, elements).astype(dtype)
    cells = random.integers(0, elements, 600)
    scale = 1 if name in (*BITS, "exch", "cas") else 0.37 if dtype.startswith("float") else 2**28 + 1
    values, compare = ((random.integers(0, 9, 600) * scale).astype(dtype) for _ in range(2))
    compare = np.where(random.random(600) < 0.5, memory[cells], compare)
    expected = memory.copy()
    with np.errstate(all="ignore"):
        wanted = plain(name, expected, cells, values, compare)
        found = one_after_another(name, memory, cells, values, compare)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(memory, expected)


@pytest.mark.parametrize("name", ["max", "min"])
def test_nan_changes_nothing(name):
    memory = np.array([1.0, np.nan], np.float32)
    found = one_after_another(name, memory, np.array([0, 1, 0]), np.array([np.nan, 5, np.nan]), np.zeros(3))
    np.testing.assert_array_equal(memory, [1.0, np.nan])
    np.testing.assert_array_equal(found, [1.0, np.nan, 1.0])


# ---- in kernels ----


@cuda.jit
def extremes(x, out):
    i = cuda.grid(1)
    cuda.atomic.max(out, 0, x[i])
    cuda.atomic.min(out, 1, x[i])
    cuda.atomic.nanmax(out, 2, x[i])
    cuda.atomic.nanmin(out, 3, x[i])


def test_maximum_and_minimum_with_nan():
    """By numba-cuda's loops: max and min leave an element as it is if it or the value is a NaN."""
    x = np.array([3, np.nan, -2, 5] * 8, np.float32)
    out = np.array([0, 0, np.nan, np.nan], np.float32)
    assert emulate(extremes, 1, 32, x, out).ok
    assert (out == [5, -2, 5, -2]).all()
    out = np.array([np.nan, 0, 0, 0], np.float32)
    emulate(extremes, 1, 32, np.full(32, np.nan, np.float32), out)
    assert np.isnan(out[0]) and not out[1:].any()
    numbers = np.zeros(4, np.int64)
    emulate(extremes, 1, 32, np.arange(-9, 23), numbers)
    assert (numbers == [22, -9, 22, -9]).all()


@pytest.mark.parametrize(("dtype", "loads"), [(np.float32, 2 * 4), (np.float64, 2 * 4), (np.int32, 0)])
def test_atomics_that_are_loops_load(dtype, loads):
    """Measured on an H200: atomic.max and min of floats load the element, once per warp if none is faster."""
    report = emulate(extremes, 2, 32, np.zeros(64, dtype), np.zeros(4, dtype))
    assert report.total("requests", array="out", op="load") == loads
    assert report.total("requests", array="out", op="atomic") == 8
    assert report.total("requests", array="x") == 8


def test_compare_and_swap_swaps_the_first_element():
    @cuda.jit
    def kernel(box, old):
        old[cuda.threadIdx.x] = cuda.atomic.compare_and_swap(box, 0, cuda.threadIdx.x + 1)

    box, old = np.zeros(3, np.int32), np.zeros(4, np.int32)
    assert emulate(kernel, 1, 4, box, old).ok
    assert (box == [1, 0, 0]).all() and (old == [0, 1, 1, 1]).all()
    with pytest.raises(KernelTypeError, match="one dimension"):
        emulate(kernel, 1, 4, np.zeros((3, 3), np.int32), old)


def test_atomics_on_arrays_of_two_dimensions_in_both_memories():
    @cuda.jit
    def kernel(out):
        mine = cuda.shared.array((2, 4), int32)
        t = cuda.threadIdx.x
        if t < 8:
            mine[t // 4, t % 4] = 0
        cuda.syncthreads()
        cuda.atomic.add(mine, (t % 2, t % 4), 1)
        cuda.syncthreads()
        if t < 8:
            cuda.atomic.max(out, (t // 4, t % 4), mine[t // 4, t % 4])

    out = np.zeros((2, 4), np.int32)
    assert emulate(kernel, 3, 64, out).ok
    assert (out == [[16, 0, 16, 0], [0, 16, 0, 16]]).all()


@pytest.mark.parametrize(("name", "dtype"), [("add", np.int16), ("exch", np.float32), ("inc", np.int32)])
def test_dtypes_without_an_atomic_are_refused(name, dtype):
    operation = getattr(cuda.atomic, name)

    @cuda.jit
    def kernel(out):
        operation(out, 0, 1)

    with pytest.raises(KernelTypeError, match=rf"cuda\.atomic\.{name} takes arrays of .*out holds"):
        emulate(kernel, 1, 1, np.zeros(1, dtype))


@cuda.jit(device=True)
def one_more(operation, x, i, value):
    old = operation(x, i, value)
    return old + 1


def test_an_operation_passed_to_a_device_function():
    @cuda.jit
    def kernel(x, out):
        t = cuda.threadIdx.x
        out[t] = one_more(cuda.atomic.add, x, 0, 2)
        one_more(cuda.atomic.sub, x, 1, 3)

    x, out = np.zeros(2, np.int32), np.zeros(32, np.int64)
    report = emulate(kernel, 1, 32, x, out)
    assert x.tolist() == [64, -96] and (out == np.arange(0, 64, 2) + 1).all() and report.ok


def test_an_operation_with_a_name_in_the_kernel():
    @cuda.jit
    def kernel(lock, total):
        take = cuda.atomic.compare_and_swap
        while take(lock, 0, 1) != 0:
            pass
        cuda.threadfence()
        total[0] += 1
        cuda.threadfence()
        release = cuda.atomic.exch
        release(lock, 0, 0)

    lock, total = np.zeros(1, np.int32), np.zeros(1, np.int32)
    assert emulate(kernel, 3, 1, lock, total).ok
    assert total[0] == 3 and lock[0] == 0


def test_an_index_that_is_a_float_is_cut_off():
    @cuda.jit
    def kernel(x, line, plane, found):
        i = cuda.grid(1)
        found[i] = cuda.atomic.add(line, x[i], 1)
        cuda.atomic.add(line, math.floor(2.5), 10)
        cuda.atomic.max(plane, (x[i], np.float32(1.9)), i)
        cuda.atomic.cas(line, 3.7, 0, 5)

    x, line, plane = np.array([-0.9, 0.9, 1.0, 1.999]), np.zeros(4, np.int32), np.zeros((2, 2), np.int32)
    emulate(kernel, 1, 4, x, line, plane, found := np.zeros(4))
    assert line.tolist() == [2, 2, 40, 5] and found.tolist() == [0, 1, 0, 1]
    assert plane.tolist() == [[0, 1], [0, 3]]


def test_an_index_that_is_a_float_out_of_bounds():
    @cuda.jit
    def kernel(line):
        cuda.atomic.add(line, 4.5, 1)

    report = emulate(kernel, 1, 1, np.zeros(4, np.int32))
    assert [finding.kind for finding in report.errors] == ["out_of_bounds"]


@pytest.mark.parametrize("other", ["a complex index", "a store"])
def test_only_for_atomics_a_float_is_an_index(other):
    stores, index = other == "a store", 1.5 if other == "a store" else 1.5j

    @cuda.jit
    def kernel(line):
        if stores:
            line[index] = 1
        else:
            cuda.atomic.add(line, index, 1)

    with pytest.raises(KernelTypeError, match="an index must be an integer"):
        emulate(kernel, 1, 1, np.zeros(4, np.int32))
