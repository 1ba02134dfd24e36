"""Loops in which few lanes are left go on with those alone: same values, same counts, same findings."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from numba import cuda, float32

from lockstep import emulate
from lockstep.machine.machine import Machine
from lockstep_tests.random_kernels import divergent_kernels
from lockstep_tests.sampling import examples
from lockstep_tests.scalar import Launch
from lockstep_tests.tables import compare_tables, emulated_table

BLOCKS, WIDTH = 24, 70  # the last warp of each block has idle lanes
THREADS = BLOCKS * WIDTH


@cuda.jit
def trial_division(out):
    i = cuda.grid(1)
    if i < out.shape[0]:
        prime = 1 if i > 1 else 0
        d = 2
        while d * d <= i:
            if i % d == 0:
                prime = 0
                break
            d += 1
        out[i] = prime


@cuda.jit
def collatz(out):
    i = cuda.grid(1)
    n, steps = i + 1, 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    out[i] = steps


@cuda.jit(device=True)
def escape(x, y, most):
    """Returns from inside its loop."""
    zx = zy = 0.0
    for step in range(most):
        zx, zy = zx * zx - zy * zy + x, 2 * zx * zy + y
        if zx * zx + zy * zy > 4:
            return step
    return most


@cuda.jit
def mandelbrot(out):
    i = cuda.grid(1)
    if i < out.shape[0]:
        out[i] = escape(-2 + 3 * (i % 40) / 40, -1 + 2 * (i // 40) / 42, 60)


@cuda.jit
def binary_search(x, wanted, out):
    i = cuda.grid(1)
    low, high = 0, x.shape[0]
    while low < high:
        middle = (low + high) // 2
        if x[middle] < wanted[i]:
            low = middle + 1
        elif x[middle] == wanted[i]:
            low = middle
            break
        else:
            high = middle
    out[i] = low


@cuda.jit
def sparse_rows(starts, values, out):
    """Rows of very different length, each a lane's own range."""
    i = cuda.grid(1)
    if i < out.shape[0]:
        total = float32(0)
        for j in range(starts[i], starts[i + 1]):
            if values[j] < 0:
                continue
            total += values[j]
        out[i] = total


@cuda.jit
def loop_in_a_loop(out):
    i = cuda.grid(1)
    total = 0
    j = 0
    while j < i % 23:
        k = j
        while k % 11 < i % 9:
            k += 1
            if k > 100:
                break
            total += k % 3
        out[i] += total  # a store in every iteration
        j += 1


@cuda.jit
def newton(x, out):
    i = cuda.grid(1)
    root, steps = x[i], 0
    while abs(root * root - x[i]) > 1e-9 * x[i] and steps < 100:
        root = 0.5 * (root + x[i] / root)
        steps += 1
    out[i] = root + math.floor(steps / 1000)


def primes(count):
    return np.array([n > 1 and all(n % d for d in range(2, math.isqrt(n) + 1)) for n in range(count)])


def collatz_steps(n):
    steps = 0
    while n != 1:
        n, steps = n // 2 if n % 2 == 0 else 3 * n + 1, steps + 1
    return steps


def mandelbrot_steps(i):
    x, y = -2 + 3 * (i % 40) / 40, -1 + 2 * (i // 40) / 42
    zx = zy = 0.0
    for step in range(60):
        zx, zy = zx * zx - zy * zy + x, 2 * zx * zy + y
        if zx * zx + zy * zy > 4:
            return step
    return 60


def nested_total(i):
    total = result = 0
    for j in range(i % 23):
        k = j
        while k % 11 < i % 9:
            k += 1
            if k > 100:
                break
            total += k % 3
        result += total
    return result


SORTED = np.sort(np.random.default_rng(1).integers(0, 10**6, 5000))
STARTS = np.concatenate([[0], np.cumsum(np.where(np.arange(THREADS) % 97 == 5, 60, np.arange(THREADS) % 3))])
VALUES = np.random.default_rng(2).integers(-3, 9, STARTS[-1]).astype(np.float32)
WANTED = np.concatenate([SORTED[: THREADS // 2] + 1, np.arange(THREADS - THREADS // 2)])
NUMBERS = np.random.default_rng(3).uniform(1, 1e6, THREADS)

CASES = {
    "trial_division": (trial_division, (), np.int64, lambda: primes(THREADS)),
    "collatz": (collatz, (), np.int64, lambda: [collatz_steps(i + 1) for i in range(THREADS)]),
    "mandelbrot": (mandelbrot, (), np.int64, lambda: [mandelbrot_steps(i) for i in range(THREADS)]),
    "binary_search": (binary_search, (SORTED, WANTED), np.int64, lambda: np.searchsorted(SORTED, WANTED)),
    "sparse_rows": (
        sparse_rows,
        (STARTS, VALUES),
        np.float32,
        lambda: [VALUES[a:b].clip(0).sum() for a, b in itertools.pairwise(STARTS)],
    ),
    "loop_in_a_loop": (loop_in_a_loop, (), np.int64, lambda: [nested_total(i) for i in range(THREADS)]),
    "newton": (newton, (NUMBERS,), np.float64, lambda: np.sqrt(NUMBERS)),
}


def never(monkeypatch):
    monkeypatch.setattr(Machine, "fewest_lanes", 1 << 40)


def always(monkeypatch, fewest=1):
    """Narrow whenever half of the lanes have left; returns a list with an entry for each time."""
    narrowed, narrow = [], Machine.narrow
    monkeypatch.setattr(Machine, "fewest_lanes", fewest)
    monkeypatch.setattr(Machine, "look_every", 1)

    def noted(machine, loop, state):
        state = narrow(machine, loop, state)
        narrowed.extend([loop.line] * (loop.aside is not None))
        return state

    monkeypatch.setattr(Machine, "narrow", noted)
    return narrowed


@pytest.mark.many(one_in=4, with_all=2)
@pytest.mark.parametrize("name", CASES)
def test_values_counts_and_findings_stay_the_same(monkeypatch, name):
    kernel, inputs, dtype, expected = CASES[name]
    wide, few = np.zeros(THREADS, dtype), np.zeros(THREADS, dtype)
    with monkeypatch.context() as patched:
        never(patched)
        before = emulate(kernel, BLOCKS, WIDTH, *inputs, wide)
    narrowed = always(monkeypatch)
    after = emulate(kernel, BLOCKS, WIDTH, *inputs, few)
    assert narrowed, "the loop has been narrowed"
    np.testing.assert_array_equal(few, wide)
    np.testing.assert_allclose(few, expected())
    assert before.ok and list(map(str, after.findings)) == list(map(str, before.findings))
    assert after.accesses.equals(before.accesses) and after.arithmetic.equals(before.arithmetic)


# --- findings in a narrowed loop --------------------------------------------------------------------------


@cuda.jit
def beyond_the_end(x, out):
    i = cuda.grid(1)
    j = i
    while j % 64 > 3:
        j += 1
        out[i] += x[j]


@cuda.jit
def into_one_element(x, out):
    i = cuda.grid(1)
    j = i % 97
    while j > 30:
        j -= 7
        out[j] = x[i]


@pytest.mark.parametrize("kernel", [beyond_the_end, into_one_element], ids=lambda k: k.py_func.__name__)
def test_findings_name_the_same_thread_and_count_the_same_lanes(monkeypatch, kernel):
    x = np.arange(THREADS - 20, dtype=np.float32)
    with monkeypatch.context() as patched:
        never(patched)
        before = emulate(kernel, BLOCKS, WIDTH, x, np.zeros(THREADS, np.float32))
    narrowed = always(monkeypatch)
    after = emulate(kernel, BLOCKS, WIDTH, x, np.zeros(THREADS, np.float32))
    assert narrowed and before.errors
    assert after.findings == before.findings


# --- against the scalar interpreter -----------------------------------------------------------------------


def test_random_loops():
    pytest.importorskip("numba_cuda", reason="the interpreter asks numba-cuda's type inference")
    counts = []

    @settings(max_examples=examples(8, one_in=4), deadline=None, suppress_health_check=list(HealthCheck))
    @given(divergent_kernels())
    def check(random_kernel):
        plain, emulated = random_kernel.args(), random_kernel.args()
        launch = Launch(random_kernel.load(), random_kernel.grid, random_kernel.block, plain).run()
        with pytest.MonkeyPatch.context() as patched:
            narrowed = always(patched)
            report = emulate(random_kernel.load(), random_kernel.grid, random_kernel.block, *emulated)
        counts.append(len(narrowed))
        assert report.ok, f"{report.errors[0]}\n{random_kernel.source}"
        for wanted, got in zip(plain, emulated, strict=True):
            np.testing.assert_array_equal(got, wanted, err_msg=random_kernel.source)
        compare_tables(launch.table(), emulated_table(report))

    check()
    assert sum(count > 0 for count in counts) >= len(counts) / 3, "most of them have a loop that is narrowed"
