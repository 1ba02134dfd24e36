"""Vectors such as ``float32x2`` in variables that differ between threads."""

import numpy as np
import pytest
from numba import cuda
from numba.cuda import float32x2, float32x3, int32x2

from lockstep import EmulatorError, emulate


@cuda.jit(device=True)
def either(i):
    if i % 2:
        return float32x2(9, i)
    return float32x2(1, 2)


def kernels():
    def in_a_branch(i, n):
        v = float32x2(1, 2)
        if i % 2 == 1:
            v = float32x2(9, i)
        return v

    def in_both_branches(i, n):
        if i % 2:
            v = float32x2(9, i)
        else:
            v = float32x2(1, 2)
        return v

    def by_an_expression(i, n):
        return float32x2(9, i) if i % 2 else float32x2(1, 2)

    def of_a_function(i, n):
        return either(i)

    def of_another_vector(i, n):
        v, w = float32x2(1, 2), float32x2(9, i)
        if i % 2:
            v = w
        return v

    def in_a_tuple(i, n):
        both = (float32x2(1, 2), i)
        if i % 2:
            both = (float32x2(9, i), i)
        return both[0]

    def two_at_once(i, n):
        v, number = float32x2(1, 2), 2
        if i % 2:
            v, number = float32x2(9, 0), i
        return float32x2(v.x, number)

    def after_some_have_returned(i, n):
        v = float32x2(1, 2)
        if i % 2 == 0:
            return v
        v = float32x2(9, i)
        return v

    def in_a_loop(i, n):
        v = float32x2(1, 2)
        for k in range(n[i]):
            v = float32x2(9, k + i)
        return v

    def in_a_while_loop_that_is_left(i, n):
        v, k = float32x2(1, 2), 0
        while True:
            if k >= n[i]:
                break
            v = float32x2(9, i)
            k += 1
        return v

    return list(locals().values())


@pytest.mark.parametrize("compute", kernels(), ids=lambda kernel: kernel.__name__)
def test_each_thread_has_its_own(compute):
    compute = cuda.jit(compute, device=True)

    @cuda.jit
    def kernel(n, out):
        i = cuda.grid(1)
        v = compute(i, n)
        out[i, 0], out[i, 1] = v.x, v.y

    out = np.zeros((6, 2))
    assert emulate(kernel, 1, 6, np.array([0, 1] * 3), out).ok
    assert out.tolist() == [[9, i] if i % 2 else [1, 2] for i in range(6)]


def refused_kernels():
    def other_length(out):
        v = float32x2(1, 2)
        if cuda.grid(1):
            v = float32x3(1, 2, 3)
        out[0] = v.x

    def other_type(out):
        v = float32x2(1, 2)
        if cuda.grid(1):
            v = int32x2(1, 2)
        out[0] = v.x

    return list(locals().values())


@pytest.mark.parametrize("kernel", refused_kernels(), ids=lambda kernel: kernel.__name__)
def test_a_variable_has_one_type(kernel):
    with pytest.raises(EmulatorError, match="a value is a vector in some threads and something else"):
        emulate(kernel, 1, 2, np.zeros(2))
