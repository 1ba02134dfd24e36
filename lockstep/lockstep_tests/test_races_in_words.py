"""A race names both threads and both lines, and what would prevent it: a barrier, or an atomic operation."""

import inspect
import re

import numpy as np
import pytest
from numba import cuda, float32, int32

from lockstep import emulate
from lockstep_tests.corpus import zeros

ATOMIC = "Use an atomic operation, such as cuda.atomic."


@cuda.jit
def ordered_and_unordered_readers(x, out):
    block, t = cuda.blockIdx.x, cuda.threadIdx.x
    if block == 1 and t == 0:
        out[0] = x[0]  # nothing orders this load with the store
    cuda.syncthreads()
    if block == 0 and t > 0:
        out[t] = x[0]  # a barrier orders these
    cuda.syncthreads()
    if block == 0 and t == 0:
        x[0] = 5


@cuda.jit
def ordered_and_unordered_updates(x, out):
    block, t = cuda.blockIdx.x, cuda.threadIdx.x
    if block == 1 and t == 0:
        cuda.atomic.add(x, 0, 1)  # nothing orders this update with the load
    cuda.syncthreads()
    if block == 0 and t > 0:
        cuda.atomic.add(x, 0, 1)  # a barrier orders these
    cuda.syncthreads()
    if block == 0 and t == 0:
        out[0] = x[0]


@pytest.mark.parametrize("kernel", [ordered_and_unordered_readers, ordered_and_unordered_updates])
def test_the_other_thread_is_one_that_no_barrier_orders(kernel):
    (found,) = emulate(kernel, 2, 32, np.zeros(8), np.zeros(32)).errors
    assert "thread (0, 0, 0) of block (1, 0, 0)" in found.message
    lines = inspect.getsource(kernel.py_func).splitlines()
    first = kernel.py_func.__code__.co_firstlineno
    assert "nothing orders this" in lines[found.other_line - first]


@cuda.jit
def counter_in_shared_memory(out):
    box = cuda.shared.array(1, int32)
    if cuda.threadIdx.x == 0:
        box[0] = 0
    cuda.syncthreads()
    box[0] += 1
    cuda.syncthreads()
    if cuda.threadIdx.x == 0:
        out[0] = box[0]


@cuda.jit
def counter_in_global_memory(out):
    out[0] += 1


@cuda.jit
def counter_spelled_out(out):
    out[0] = out[0] + 1


@cuda.jit
def largest(out):
    out[0] = max(out[0], cuda.threadIdx.x)


@cuda.jit
def histogram(out):
    out[cuda.grid(1) % 4] += 1


@cuda.jit
def sum_in_a_loop(out):
    for i in range(4):
        out[i] += cuda.grid(1)


@cuda.jit
def counts_in_two_branches(out):
    if cuda.grid(1) % 2:
        out[0] += 1
    else:
        out[0] += 2


COUNTERS = [
    counter_in_shared_memory,
    counter_in_global_memory,
    counter_spelled_out,
    largest,
    histogram,
    sum_in_a_loop,
    counts_in_two_branches,
]


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize("kernel", COUNTERS, ids=lambda kernel: kernel.py_func.__name__)
def test_a_counter_needs_an_atomic(kernel, blocks):
    errors = emulate(kernel, blocks, 64, np.zeros(4, np.int32), allow="equal_stores").errors
    told = [found for found in errors if ATOMIC + ("max" if kernel is largest else "add") in found.message]
    assert told, list(map(str, errors))
    assert not any("barrier between" in found.message for found in told)


def updates():
    def sets_bits(x):
        x[0] |= 1 << cuda.threadIdx.x % 8

    def least(x):
        x[0] = min(cuda.threadIdx.x, x[0])

    def taken_away(x):
        x[0] = x[0] - 1 - cuda.threadIdx.x

    def doubled(x):
        x[0] *= 2

    def taken_from(x):
        x[0] = cuda.threadIdx.x - x[0]

    small = "Numba has no atomic operations on {}: give x elements of 32 bits and use cuda.atomic.{}(x, ...)"
    none = "No atomic operation does just that: let one thread do it"
    return [
        (sets_bits, np.uint32, ATOMIC + "or_(x"),
        (sets_bits, np.uint8, small.format("uint8", "or_")),
        (least, np.float32, ATOMIC + "min(x"),
        (least, np.int16, small.format("int16", "min")),
        (taken_away, np.int64, ATOMIC + "sub(x"),
        (doubled, np.int32, f"{none}, or repeat cuda.atomic.cas(x"),
        (doubled, np.float32, f"{none}."),
        (taken_from, np.float64, f"{none}."),
    ]


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize(("update", "dtype", "cure"), updates())
def test_the_atomic_that_is_named_exists(update, dtype, cure, shared):
    change = cuda.jit(device=True)(update)

    @cuda.jit
    def in_shared_memory(out):
        x = cuda.shared.array(1, dtype)
        if cuda.threadIdx.x == 0:
            x[0] = 1
        cuda.syncthreads()
        change(x)

    @cuda.jit
    def in_global_memory(x):
        change(x)

    kernel = in_shared_memory if shared else in_global_memory
    (found,) = emulate(kernel, 1, 64, np.ones(1, dtype), allow="equal_stores").errors
    assert cure in found.message, found.message


@cuda.jit
def sum_of_a_tree(x, out):
    t = cuda.threadIdx.x
    part = cuda.shared.array(64, float32)
    part[t] = x[t]
    cuda.syncthreads()
    stride = 32
    while stride > 0:
        if t < stride:
            part[t] += part[t + stride]
        stride //= 2
    if t == 0:
        out[0] = part[0]


@cuda.jit
def shifted_in_place(x, out):
    i = cuda.grid(1)
    if i < x.shape[0] - 1:
        x[i] = x[i + 1] + 1
    out[0] = 0


@pytest.mark.parametrize(
    "kernel", [sum_of_a_tree, shifted_in_place], ids=lambda kernel: kernel.py_func.__name__
)
def test_other_races_are_told_nothing_of_atomics(kernel):
    errors = emulate(kernel, 1, 64, np.arange(64, dtype=np.float32), zeros(1)).errors
    assert errors and not any("atomic" in found.message for found in errors)


@cuda.jit
def read_then_overwritten(x):
    i = cuda.grid(1)
    if i >= 32:
        x[32] += x[0]
    if i == 0:
        x[0] = 5


@cuda.jit
def all_read_then_one_overwrites(x):
    i = cuda.grid(1)
    total = x[0] + i
    if i == 7:
        x[0] = total


@cuda.jit
def written_from_two_lines(x):
    i = cuda.grid(1)
    x[i] = i
    if i + 1 < x.shape[0]:
        x[i + 1] = -1


@cuda.jit
def added_to_and_read(x):
    cuda.atomic.add(x, 0, 1)
    x[1 + cuda.grid(1)] = x[0]


@cuda.jit
def read_by_the_last_adder(x):
    i = cuda.grid(1)
    cuda.atomic.add(x, 0, 1)
    if i == 127:
        x[1] = x[0]


@cuda.jit
def read_by_two_then_written_by_one_of_them(x):
    i = cuda.grid(1)
    if i == 0 or i == 64:
        x[1 + i] = x[0]
    if i == 64:
        x[0] = 3


ANY = [
    read_then_overwritten,
    all_read_then_one_overwrites,
    written_from_two_lines,
    added_to_and_read,
    read_by_the_last_adder,
    read_by_two_then_written_by_one_of_them,
    *COUNTERS[1:],
]


@pytest.mark.parametrize(("blocks", "threads"), [(2, 64), (1, 128), (4, 32)])
@pytest.mark.parametrize("kernel", ANY, ids=lambda kernel: kernel.py_func.__name__)
def test_every_race_in_global_memory_names_both_threads_and_lines(kernel, blocks, threads):
    races = [
        found
        for found in emulate(kernel, blocks, threads, np.zeros(200, np.int32), allow="equal_stores").errors
        if found.kind == "global_race"
    ]
    assert races
    for found in races:
        first, second = re.findall(r"[Tt]hread (\(\d+, 0, 0\) of block \(\d+, 0, 0\))", found.message)[:2]
        assert first != second, found.message
        assert re.search(r"in line \d+|in the same line", found.message) and found.other_line, found.message


@pytest.mark.parametrize("name", ["cuda.syncthreads", "cuda.syncwarp", "cuda.threadfence"])
def test_a_barrier_that_is_not_called(name, tmp_path):
    source = f"""
from numba import cuda, float32

@cuda.jit
def kernel(x):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    {name}
    x[t] = tile[63 - t]
"""
    file = tmp_path / "program.py"
    file.write_text(source)
    space = {}
    exec(compile(source, str(file), "exec"), space)
    (found,) = emulate(space["kernel"], 1, 64, zeros(64)).errors
    assert f"`{name}` in line 9 does nothing, because it is not called: write `{name}()`." in found.message


def test_equal_stores_beside_an_error_of_the_same_store_are_not_called_harmless():
    @cuda.jit
    def kernel(a):
        i = cuda.grid(1)
        if i == 1:
            a[0] += 1.0
            a[0] += 0.0
        if i == 0:
            a[0] -= 0.0

    report = emulate(kernel, 1, 2, np.zeros(1))
    assert {found.kind for found in report.findings} >= {"global_race"}
    assert "it does not matter" not in str(report)
