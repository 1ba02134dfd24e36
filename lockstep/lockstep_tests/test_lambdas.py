"""Device functions written as lambdas, wherever in a statement they stand."""

import numpy as np
import pytest
from numba import cuda

from lockstep import UnsupportedKernel, emulate

first, second = cuda.jit(lambda a, b: a * b + 1, device=True), cuda.jit(lambda a, b: a - b, device=True)
over_lines = cuda.jit(
    device=True,
)(
    lambda a, b: (
        a  #
        + 2 * b
    )
)
chosen = {
    name: cuda.jit(device=True)(f) for name, f in {"max": lambda a, b: max(a, b), "1": lambda a, b: a}.items()
}
biggest, one = chosen["max"], chosen["1"]


def made(amount):
    return cuda.jit(lambda a, b: (lambda c: c + amount)(a) + b, device=True)


nested = made(5)


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (first, lambda a, b: a * b + 1),
        (second, np.subtract),
        (over_lines, lambda a, b: a + 2 * b),
        (biggest, np.maximum),
        (one, lambda a, b: a),
        (nested, lambda a, b: a + 5 + b),
    ],
)
def test_lambdas(function, expected):
    @cuda.jit
    def kernel(a, b, out):
        i = cuda.grid(1)
        out[i] = function(a[i], b[i])

    a, b, out = np.arange(32), np.arange(32)[::-1].copy(), np.zeros(32, np.int64)
    emulate(kernel, 1, 32, a, b, out)
    assert (out == expected(a, b)).all()


def test_a_lambda_without_source_is_refused():
    function = cuda.jit(eval("lambda a: a"), device=True)

    @cuda.jit
    def kernel(out):
        out[0] = function(out[0])

    with pytest.raises(UnsupportedKernel, match="source of this"):
        emulate(kernel, 1, 1, np.zeros(1))
