"""Statements and calls that Numba compiles besides the usual: match, global, nonlocal, slice, np.ndindex."""

import enum

import numpy as np
import pytest
from numba import cuda

from lockstep import EmulatorError, emulate

LIMIT, TWO = 3, 2
VALUES = np.array([0, 1, 2, 3, 4, 7, -1, 100])


class Kind(enum.IntEnum):
    LOW = 1
    HIGH = 7


# ---- match, global and nonlocal: what Python says ----


def literals(v):
    match v:
        case 0:
            return 10
        case 1 | 2 | -1:
            return 20
        case _:
            return 30


def without_default(v):
    found = 5
    match v + 1:
        case 1:
            found = 1
        case 2.0:
            found += 2
    return found


def captures(v):
    match v * 2:
        case 0:
            return -1
        case twice:
            return twice + 1


def guards(v):
    match v:
        case n if n > LIMIT:
            return n
        case 0 | 1 as small if small < 1:
            return small - 100
        case n if n < 0:
            return -n
        case other:
            return n * 1000 + other


def named_values(v):
    match v:
        case Kind.LOW:
            return 1
        case Kind.HIGH:
            return 2
    return 3


def booleans(v):
    match v > LIMIT:
        case True:
            return 1
        case False:
            return 2


def nested_in_a_loop(v):
    total = 0
    for k in range(6):
        match k:
            case 0:
                continue
            case 5:
                break
            case n if n == v:
                match v % 2:
                    case 0:
                        return total - 1000
                    case 1:
                        total += 100
            case _:
                total += k
    return total


def reads_a_global(v):
    global LIMIT
    match v:
        case n if n == LIMIT:
            return LIMIT
    return LIMIT + TWO


def _closure():
    factor = 6

    def reads_nonlocal(v):
        nonlocal factor
        return v * factor

    return reads_nonlocal


SAME = [literals, without_default, captures, guards, named_values, booleans, nested_in_a_loop, reads_a_global]
SAME.append(_closure())


@pytest.mark.parametrize("function", SAME, ids=lambda function: function.__name__)
def test_statements_mean_what_python_says(function):
    on_device = cuda.jit(device=True)(function)

    @cuda.jit
    def kernel(values, out):
        i = cuda.grid(1)
        out[i] = on_device(values[i])

    out = np.zeros(len(VALUES))
    assert emulate(kernel, 2, 4, VALUES, out).ok
    assert out.tolist() == [function(int(v)) for v in VALUES]


def test_match_of_an_element_reads_it_once():
    @cuda.jit
    def kernel(values, out):
        i = cuda.grid(1)
        match values[i]:
            case 0 | 1:
                out[i] = 1
            case 2 | 3:
                out[i] = 2

    out = np.zeros(8)
    report = emulate(kernel, 1, 8, VALUES, out)
    assert out.tolist() == [1, 1, 2, 2, 0, 0, 0, 0]
    assert report.total("requests", array="values") == 1


def test_a_barrier_in_a_case():
    @cuda.jit
    def kernel(out):
        match cuda.threadIdx.x % 2:
            case 0:
                cuda.syncthreads()
                out[cuda.threadIdx.x] = 1
            case _:
                cuda.syncthreads()

    assert "barrier_divergence" in {found.kind for found in emulate(kernel, 1, 64, np.zeros(64)).errors}


# ---- np.ndindex, np.ndenumerate, slice ----


def loops():
    def over_a_shape(x, out):
        for p in np.ndindex(x.shape):
            out[p] = x[p] * 2 + p[0]

    def over_numbers(x, out):
        for i, j in np.ndindex(2, 3):
            out[i, j] = x[i, j] + 10 * i + j

    def counted(x, out):
        for k, p in enumerate(np.ndindex((x.shape[0], x.shape[1]))):
            out[p] = k

    def enumerated(x, out):
        for (i, j), value in np.ndenumerate(x):
            out[i, j] = value + i * j

    def triangle(x, out):
        t = cuda.threadIdx.x
        for i, j in np.ndindex(t, t):
            out[i, j] += 1

    def leaves_early(x, out):
        for p in np.ndindex(x.shape):
            if x[p] > 3:
                break
            out[p] = 1

    def side_by_side(x, out):
        for (i, j), k in zip(np.ndindex(2, 3), range(4)):
            out[i, j] = k + 1

    return list(locals().values())


X = np.arange(6.0).reshape(2, 3)
INDICES = {
    "over_a_shape": 2 * X + [[0], [1]],
    "over_numbers": X + [[0, 1, 2], [10, 11, 12]],
    "counted": X,
    "enumerated": X + [[0, 0, 0], [0, 1, 2]],
    "triangle": [[1, 0, 0], [0, 0, 0]],
    "leaves_early": [[1, 1, 1], [1, 0, 0]],
    "side_by_side": [[1, 2, 3], [4, 0, 0]],
}


@pytest.mark.parametrize("kernel", loops(), ids=lambda kernel: kernel.__name__)
def test_ndindex(kernel):
    out = np.zeros((2, 3))
    threads = 2 if kernel.__name__ == "triangle" else 1
    assert emulate(kernel, 1, threads, X, out).ok
    assert out.tolist() == np.asarray(INDICES[kernel.__name__]).tolist()


def slices():
    def held(x, out):
        part = slice(1, 4)
        out[part] = x[part][2]

    def with_a_step(x, out):
        part = slice(1, x.size, 2)
        out[part][0] = x[part].size + part.start + part.stop + part.step

    def at_once(x, out):
        out[slice(3)] = 7
        out[slice(None, None, 4)] = 8

    def of_a_matrix(x, out):
        rows, column = slice(0, 2), 1
        whole = out.reshape(2, 4)
        whole[rows, column] = 5
        out[0] = whole[rows, column].size

    def of_each_thread(x, out):
        t = cuda.grid(1)
        part = slice(2 * t, 2 * t + 2)
        if t == 3:
            part = slice(0, 2)
        mine = x[part]
        out[2 * t + 1] = mine[0] + mine[1]

    def bounds(x, out):
        out[0] = slice(5).start + slice(2, 5).step + slice(None).start
        out[1] = slice(5).stop

    return list(locals().values())


def _with(**numbers) -> list:
    out = [0] * 8
    for place, number in numbers.items():
        out[int(place[1:])] = number
    return out


SLICED = {
    "held": [0, 3, 3, 3, 0, 0, 0, 0],
    "with_a_step": _with(_1=4 + 1 + 8 + 2),
    "at_once": [8, 7, 7, 0, 8, 0, 0, 0],
    "of_a_matrix": _with(_0=2, _1=5, _5=5),
    "of_each_thread": _with(_1=1, _3=5, _5=9, _7=1),
    "bounds": _with(_0=1, _1=5),
}


@pytest.mark.parametrize("kernel", slices(), ids=lambda kernel: kernel.__name__)
def test_slices(kernel):
    out = np.zeros(8)
    threads = 4 if kernel.__name__ == "of_each_thread" else 1
    assert emulate(kernel, 1, threads, np.arange(8.0), out).ok
    assert out.tolist() == SLICED[kernel.__name__]


# ---- what is refused ----


def refused_kernels():
    factor = 2

    def stores_a_global(x):
        global LIMIT
        LIMIT = 4
        x[0] = LIMIT

    def stores_nonlocal(x):
        nonlocal factor
        factor = 4
        x[0] = factor

    def inner_nonlocal(x):
        count = 0

        def more():
            nonlocal count
            count = 2

        more()
        x[0] = count

    def a_sequence(x):
        match (1, 2):
            case (1, n):
                x[0] = n

    def a_class(x):
        match x[0]:
            case float():
                x[0] = 1

    def indices_in_a_variable(x):
        indices = np.ndindex(3)
        for (i,) in indices:
            x[i] = 1

    def iterator(x):
        for value in np.nditer(x):
            x[0] += value

    def a_float_slice(x):
        x[slice(0.5)] = 1

    return [kernel for kernel in locals().values() if callable(kernel)]


REFUSED = {
    "stores_a_global": "Numba compiles no store to a global variable",
    "stores_nonlocal": "in Numba no later read of it changes; use a name of its own",
    "inner_nonlocal": "changes no variable outside more: let more return the new value",
    "a_sequence": "match is not supported in a kernel with sequences, mappings or classes",
    "a_class": "match is not supported in a kernel with sequences, mappings or classes",
    "indices_in_a_variable": "the emulator supports np.ndindex() only in the first line of a for loop",
    "iterator": "the emulator does not support np.nditer in a kernel",
    "a_float_slice": "slice() takes integers and None, not a float",
}


@pytest.mark.parametrize("kernel", refused_kernels(), ids=lambda kernel: kernel.__name__)
def test_what_is_refused(kernel):
    with pytest.raises(EmulatorError) as refused:
        emulate(kernel, 1, 1, np.zeros(4))
    assert REFUSED[kernel.__name__] in str(refused.value)
