"""A problem's checks and its cuBLAS, with NumPy instead of CuPy: what they accept, refuse and call."""

import ctypes
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from gemm_course.bench import cublas, problem
from gemm_course.bench.problem import Problem, WrongResult, tolerance


class NumPyAsCuPy(ModuleType):
    """NumPy, with the little of CuPy that NumPy lacks."""

    cuda = SimpleNamespace(Device=lambda: SimpleNamespace(synchronize=lambda: None))

    def __getattr__(self, name):
        return getattr(np, name)


@pytest.fixture(autouse=True)
def without_a_gpu(monkeypatch):
    monkeypatch.setattr(problem, "cupy", lambda: NumPyAsCuPy("cupy"))


def by(product, made):
    """A launcher that puts alpha * product + beta * C into the problem's C, rounded to its dtype."""
    n = made.shape[1]

    def launch(alpha, beta):
        old = made.C[:, :n].astype(np.float64) if beta else 0
        made.C[:, :n] = (alpha * product + beta * old).astype(made.dtype)

    return launch


def accumulated_in(dtype, made, at_once=1):
    """A @ B with accumulators rounded to a dtype each time that `at_once` products have been added."""
    a, b = (part.astype(np.float64) for part in made._plain)
    acc = np.zeros(made.product.shape, dtype)
    for p in range(0, made.shape[2], at_once):
        acc = (acc + a[:, p : p + at_once] @ b[p : p + at_once]).astype(dtype)
    return acc.astype(np.float64)


def test_fp16_matrices_are_rounded_before_the_exact_product_is_computed():
    made = Problem(40, 30, 50, dtype="float16")
    assert {part.dtype for part in (made.A, made.B, made.C)} == {np.dtype(np.float16)}
    a, b = made.A[:, :50].astype(np.float64), made.B[:, :30].astype(np.float64)
    np.testing.assert_allclose(made.product, a @ b, rtol=1e-12)


@pytest.mark.parametrize(("dtype", "row_bytes"), [("float32", 64), ("float16", 32)])
def test_rows_are_padded_as_the_dtype_needs(dtype, row_bytes):
    for spare in (0, 1):
        made = Problem(7, 33, 17, dtype=dtype, spare=spare)
        for matrix, columns in ((made.A, 17), (made.B, 33), (made.C, 33)):
            row = matrix.shape[1] * matrix.itemsize
            assert row % row_bytes == 0
            assert (
                columns * matrix.itemsize <= row - spare * row_bytes < columns * matrix.itemsize + row_bytes
            )
        assert np.isnan(made.A[:, 17:]).all()


@pytest.mark.parametrize("k", [1, 64, 1024])
def test_fp32_accumulation_errs_about_half_as_much_as_fp16_results_may(k):
    made = Problem(64, 64, k, dtype="float16")
    error = made.error_of(by(accumulated_in(np.float32, made), made))
    assert tolerance(k, "float16") / 4 < error < tolerance(k, "float16") / 1.5
    assert (
        made.error_of(by(accumulated_in(np.float32, made), made), 1.25, -0.5) < tolerance(k, "float16") / 1.5
    )


@pytest.mark.parametrize("k", [256, 1024])
def test_fp16_accumulation_is_accepted_only_where_it_is_asked_for(k):
    made = Problem(64, 64, k, dtype="float16")
    launch = by(accumulated_in(np.float16, made, at_once=8), made)
    with pytest.raises(WrongResult, match="with float32 accumulators and float16 results it may be"):
        made.error_of(launch)
    error = made.error_of(launch, accumulate="float16")
    assert tolerance(k, "float16", "float16") / 6 < error < tolerance(k, "float16", "float16") / 1.5


def test_a_forgotten_product_is_wrong_in_any_precision():
    made = Problem(64, 64, 256, dtype="float16")
    a, b = (part.astype(np.float64) for part in made._plain)
    without_the_last = made.product - np.outer(a[:, -1], b[-1])
    with pytest.raises(WrongResult):
        made.error_of(by(without_the_last, made))
    with pytest.raises(WrongResult):
        made.error_of(by(without_the_last, made), accumulate="float16")


def test_one_element_may_be_off_by_half_an_ulp_whatever_is_added_to_it():
    made = Problem(1, 1, 1, dtype="float16")
    for alpha, beta in ((1.0, 0.0), (1.25, 1.25), (1.25, -1.25)):
        made.error_of(by(made.product, made), alpha, beta)


class OnTheHost:
    """A NumPy matrix that has its address where CuPy's arrays have it."""

    def __init__(self, matrix):
        self.matrix, self.shape, self.dtype = matrix, matrix.shape, matrix.dtype
        self.data = SimpleNamespace(ptr=matrix.ctypes.data)


def gemm_by_columns(handle, ta, tb, m, n, k, alpha, a, kind, lda, b, _, ldb, beta, c, __, ldc, compute, algo):
    """cublasGemmEx on the host: C = alpha * A @ B + beta * C, with column-major matrices."""
    assert (ta, tb, algo) == (0, 0, -1)
    dtype = {0: np.float32, 2: np.float16}[kind]
    scale = {64: np.float16, 68: np.float32}[compute]

    def matrix(address, rows, columns, leading):
        size = np.dtype(dtype).itemsize * leading * columns
        buffer = (ctypes.c_char * size).from_address(address)
        return np.frombuffer(buffer, dtype).reshape(columns, leading).T[:rows]

    def number(address):
        return np.frombuffer((ctypes.c_char * np.dtype(scale).itemsize).from_address(address), scale)[0]

    result = matrix(c, m, n, ldc)
    result[...] = number(alpha) * (matrix(a, m, k, lda) @ matrix(b, k, n, ldb)) + number(beta) * 0
    assert number(beta) == 0


@pytest.mark.parametrize(
    ("dtype", "accumulate"), [("float32", "float32"), ("float16", "float32"), ("float16", "float16")]
)
def test_cublas_is_called_for_this_product(monkeypatch, dtype, accumulate):
    backend = SimpleNamespace(gemmEx=gemm_by_columns, setMathMode=lambda handle, mode: None)
    for name, module in {
        "cupy": ModuleType("cupy"),
        "cupy.cuda": SimpleNamespace(device=SimpleNamespace(get_cublas_handle=lambda: 1)),
        "cupy_backends.cuda.libs": SimpleNamespace(cublas=backend),
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(cublas, "cupy", lambda: None)
    random = np.random.default_rng(0)
    a, b = (random.integers(-3, 4, size).astype(dtype) for size in ((5, 4), (4, 7)))
    c = np.full((5, 7), 9, dtype)
    cublas.multiplication(*map(OnTheHost, (a, b, c)), accumulate=accumulate)()
    np.testing.assert_array_equal(c, a @ b)


def test_rows_can_be_longer_by_any_number_of_elements():
    made = Problem(7, 33, 17, extra=3)
    assert [matrix.shape[1] for matrix in (made.A, made.B, made.C)] == [35, 51, 51]
    assert np.isnan(made.A[:, 17:]).all() and np.isnan(made.B[:, 33:]).all()
