"""Where paths come together, a variable has Numba's type, whichever of the paths the threads take."""

import numpy as np
import pytest
from numba import cuda, float32, int8, int32, uint32

from lockstep import KernelTypeError, emulate

numba_types = pytest.importorskip(
    "lockstep_tests.numba_types",
    reason="asks numba-cuda's type inference, which the built-in numba.cuda lacks",
    exc_type=ImportError,
)

X = np.array([0.1, 0.7, 3.3, 1e-3], np.float32)
WIDE = X.astype(np.float64)
YES, NO = True, False


def run(kernel, n):
    out = np.zeros(len(X))
    report = emulate(kernel, 1, len(X), n, X.copy(), out)
    return out, report


def check_types(kernel, report, n):
    """Every float operation that the emulator counted has the type that Numba gives one in its line."""
    typed = {}
    for found in numba_types.binary_operations(kernel.py_func, n, X, np.zeros(4)):
        typed.setdefault(found.line, set()).add(found.dtype)
    frame = report.arithmetic
    for line, dtype in zip(frame["line"], frame["dtype"].astype(str), strict=True):
        if line in typed and dtype.startswith("float"):
            assert dtype in typed[line], f"line {line} computes in {dtype}, Numba in {typed[line]}"


# Each kernel with what it computes for n = 0 and for n = 5.


@cuda.jit
def branch(n, x, out):
    i = cuda.grid(1)
    v = 0.0
    if n > 3:
        v = x[i]
    out[i] = v * v


@cuda.jit
def inside_the_branch(n, x, out):
    i = cuda.grid(1)
    v = 0.5
    if n > 3:
        v = x[i]
        out[i] = v * v
    else:
        out[i] = v


@cuda.jit
def both_branches(n, x, out):
    i = cuda.grid(1)
    if n > 3:
        v = x[i]
    else:
        v = 2
    out[i] = v * v


@cuda.jit
def divergent_branch(n, x, out):
    i = cuda.grid(1)
    v = 1.0
    if i < n - 3:
        v = x[i]
        v = v * v
    out[i] = v


@cuda.jit
def loop(n, x, out):
    i = cuda.grid(1)
    v = x[i]
    for _ in range(n):
        v = v * 1.0
    out[i] = v * v


@cuda.jit
def first_iteration(n, x, out):
    i = cuda.grid(1)
    v = x[i]
    for _ in range(n - 4):
        out[i] = v * x[i]
        v = v + 0.5


@cuda.jit
def while_loop(n, x, out):
    i = cuda.grid(1)
    v, j = x[i], 0
    while j < n:
        v = v + 0.0
        j += 1
    out[i] = v * v


@cuda.jit
def left_early(n, x, out):
    i = cuda.grid(1)
    v = x[i]
    for j in range(n):
        if j == 2:
            v = 0.5
            break
        if j == 7:
            continue
        v = x[i]
    out[i] = v * x[i]


@cuda.jit
def ternary(n, x, out):
    i = cuda.grid(1)
    v = x[i] if n > 3 else 1.0
    out[i] = v * v


@cuda.jit
def either(n, x, out):
    i = cuda.grid(1)
    v = x[i] and n
    out[i] = v * x[i]


@cuda.jit
def grown_by_a_loop(n, x, out):
    i = cuda.grid(1)
    v = uint32(3)
    for _ in range(n):
        v = v * int8(2)
    out[i] = (v << v) / 3  # Numba finds a uint64 first, then an int64: it makes room for both, a float64


@cuda.jit
def constants(n, x, out):
    i = cuda.grid(1)
    v = (2.0 and x[i]) * x[i]
    out[i] = v * (~True + 3)


@cuda.jit
def tuples(n, x, out):
    i = cuda.grid(1)
    pair = (x[i], 1.0)
    if n > 3:
        pair = (1.0, x[i])
    out[i] = pair[0] * x[i] + pair[1] * pair[1]


@cuda.jit
def unrelated_use(n, x, out):
    i = cuda.grid(1)
    v = 0.5
    out[i] = v
    if i < n - 3:
        v = x[i]
        out[i] = v * v


@cuda.jit
def dropped_branch(n, x, out):
    i = cuda.grid(1)
    v = x[i]
    if NO:
        v = 0.5
    if not YES and n > 3:
        v = 0.5
    out[i] = v * v


@cuda.jit(device=True)
def two_returns(n, x):
    if n > 3:
        return x
    return 1.0


@cuda.jit
def calls(n, x, out):
    i = cuda.grid(1)
    v = two_returns(n, x[i])
    out[i] = v * v


@cuda.jit(device=True)
def grown(n, v):
    for _ in range(n):
        v = v * 1.0
    return v


@cuda.jit
def calls_with_two_types(n, x, out):
    i = cuda.grid(1)
    v = grown(n, x[i])
    w = grown(n, i)
    out[i] = v * v + w * x[i]


@cuda.jit
def nested(n, x, out):
    i = cuda.grid(1)
    v = int32(1)
    for j in range(n):
        for _ in range(j):
            v = v + float32(1)
        if i < 2:
            v = v * x[i]
    out[i] = v * 3


def products(n):
    v = np.ones(4)
    for j in range(n):
        v = v + j
        v[:2] = v[:2] * WIDE[:2]
    return v * 3


SQUARE, WIDE_SQUARE = X * X, WIDE * WIDE
WIDE_SQUARE32 = SQUARE.astype(np.float64)
LOW = np.arange(4) < 2
CASES = {
    branch: (np.zeros(4), WIDE_SQUARE),
    inside_the_branch: (np.full(4, 0.5), SQUARE),
    both_branches: (np.full(4, 4.0), WIDE_SQUARE),
    divergent_branch: (np.ones(4), np.where(LOW, SQUARE, 1)),
    loop: (WIDE_SQUARE, WIDE_SQUARE),
    first_iteration: (np.zeros(4), WIDE_SQUARE),
    while_loop: (WIDE_SQUARE, WIDE_SQUARE),
    left_early: (WIDE_SQUARE, 0.5 * WIDE),
    ternary: (np.ones(4), WIDE_SQUARE),
    either: (np.zeros(4), 5 * WIDE),
    grown_by_a_loop: (np.full(4, 8.0), np.zeros(4)),
    constants: (WIDE_SQUARE32, WIDE_SQUARE32),
    tuples: (WIDE_SQUARE + 1, WIDE + WIDE_SQUARE),
    unrelated_use: (np.full(4, 0.5), np.where(LOW, SQUARE, 0.5)),
    dropped_branch: (SQUARE, SQUARE),
    calls: (np.ones(4), WIDE_SQUARE),
    calls_with_two_types: (WIDE_SQUARE + np.arange(4) * WIDE, WIDE_SQUARE + np.arange(4) * WIDE),
    nested: (np.full(4, 3.0), products(5)),
}


@pytest.mark.parametrize("kernel", CASES, ids=lambda kernel: kernel.py_func.__name__)
@pytest.mark.parametrize("n", [0, 5])
def test_types_where_paths_come_together(kernel, n):
    out, report = run(kernel, n)
    np.testing.assert_array_equal(out, CASES[kernel][n == 5])
    check_types(kernel, report, n)


@pytest.mark.parametrize("kernel", CASES, ids=lambda kernel: kernel.py_func.__name__)
def test_counted_arithmetic_is_that_of_a_full_run(kernel):
    _, report = run(kernel, 5)
    try:
        counted = emulate(kernel, 1, len(X), 5, X, np.zeros(len(X)), counts_only=True)
    except Exception as error:  # a condition on loaded data
        assert type(error).__name__ == "DataDependent"
        assert kernel is either
        return
    for name in ("arithmetic", "accesses"):
        assert getattr(counted, name).equals(getattr(report, name))


@cuda.jit
def one_of_two_arrays(x, y, n, out):
    s = x
    if n > 3:
        s = y
    out[0] = n
    if n == 3:
        out[0] = s[0]


@cuda.jit
def a_choice_of_two_arrays(x, y, n, out):
    out[0] = (x if n == 3 else y)[0]


@pytest.mark.parametrize("kernel", [one_of_two_arrays, a_choice_of_two_arrays], ids=lambda k: k.__name__)
@pytest.mark.parametrize("other", [np.ones(1, bool), np.ones(1), np.ones((1, 1), np.float32)], ids=str)
def test_arrays_of_two_types_are_refused_on_any_path(kernel, other):
    """As by Numba, whichever path the threads take."""
    x, out = np.ones(1, np.float32), np.zeros(1)
    for n in (3, 4):
        with pytest.raises(KernelTypeError, match="arrays of one type where paths meet"):
            emulate(kernel, 1, 1, x, other, n, out)
    emulate(kernel, 1, 1, x, x.copy(), 3, out)
    assert out[0] == 1
