"""Holds one matrix multiplication on the GPU: its inputs, its product in float64, and cuBLAS's product."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np

from gemm_course.bench.cublas import cupy, multiplication
from gemm_course.device.buffers import leading_dimension, padded

# Rows start at multiples of this many bytes, as in document 004. Every stage's alignment divides them.
ROW_BYTES = {"float32": 64, "float16": 32}
# Rounding once causes at most this relative error.
HALF_ULP = {"float32": 2**-24, "float16": 2**-11}


class WrongResult(ArithmeticError):
    """The error for a kernel that computed something other than alpha * A @ B + beta * C."""


class Problem:
    """A multiplication C = alpha * A @ B + beta * C of random matrices of one dtype, on the GPU.

    ``dtype`` is "float32" or "float16", for A, B and C. Rows are padded to multiples of 64 bytes (32 for
    float16), then by `spare` times 64 (32) bytes and by `extra` elements. The padding holds NaN.
    """

    def __init__(
        self, m: int, n: int, k: int, seed: int = 0, spare: int = 0, dtype: str = "float32", extra: int = 0
    ):
        cp = cupy()
        self.shape, self.dtype = (m, n, k), dtype
        random = np.random.default_rng(seed)
        made = (
            random.standard_normal(size, dtype=np.float32).astype(dtype) for size in ((m, k), (k, n), (m, n))
        )
        self.A, self.B, self._old = (
            cp.asarray(padded(matrix, _row_length(matrix, spare) + extra)) for matrix in made
        )
        self.C = cp.empty_like(self._old)
        self._plain = tuple(cp.ascontiguousarray(part) for part in (self.A[:, :k], self.B[:, :n]))
        self._cublas_c = cp.empty((m, n), dtype)

    @functools.cached_property
    def product(self):
        """The product A @ B in float64, (m, n), of the matrices after rounding to `dtype`."""
        cp = cupy()
        a, b = (part.astype(cp.float64) for part in self._plain)
        return a @ b

    def arguments(self, alpha: float = 1.0, beta: float = 0.0) -> list:
        """Return a stage's arguments, as Numba takes them."""
        from numba import cuda

        m, n, k = self.shape
        a, b, c = (cuda.as_cuda_array(matrix) for matrix in (self.A, self.B, self.C))
        return [m, n, k, np.float32(alpha), a, b, np.float32(beta), c]

    @functools.cache  # noqa: B019  a problem lives as long as what is measured with it
    def cublas(self, accumulate: str = "float32") -> Callable[[], None]:
        """Return a function that queues the same product in cuBLAS, with TF32 off.

        ``accumulate`` is the dtype of its accumulators.
        """
        return multiplication(*self._plain, self._cublas_c, accumulate)

    def cublas_error(self, accumulate: str = "float32") -> float:
        """Return cuBLAS's own relative Frobenius error against float64."""
        self.cublas(accumulate)()
        return self._error(self._cublas_c, self.product, 1.0, 0.0)

    def error_of(
        self,
        launch: Callable[[float, float], None],
        alpha: float = 1.0,
        beta: float = 0.0,
        accumulate: str = "float32",
        finished: Callable = lambda product: product,
    ) -> float:
        """Launch a kernel on a poisoned C and return its relative Frobenius error against float64.

        ``launch(alpha, beta)`` queues the kernel on `arguments(alpha, beta)`. ``finished`` computes the right
        result from alpha * A @ B + beta * C, for a kernel that does more than multiply. Raise WrongResult if
        an element of C was not written, if C's padding was, or if the error is larger than `tolerance`
        allows.
        """
        cp = cupy()
        _, n, k = self.shape
        self.C[...] = cp.nan
        if beta != 0:
            self.C[:, :n] = self._old[:, :n]
        launch(alpha, beta)
        cp.cuda.Device().synchronize()
        if not bool(cp.isnan(self.C[:, n:]).all()):
            raise WrongResult("it wrote past the columns of C")
        error = self._error(self.C[:, :n], self.product, alpha, beta, finished)
        allowed = tolerance(k, self.dtype, accumulate)
        if not error <= allowed:
            raise WrongResult(
                f"its relative error is {error:.2g}; with {accumulate} accumulators and {self.dtype} results "
                f"it may be {allowed:.2g}"
            )
        return error

    def _error(self, found, product, alpha: float, beta: float, finished=lambda product: product) -> float:
        """Return |found - right| / scale.

        The scale is |right|, or more if alpha AB and beta C nearly cancel.
        """
        cp = cupy()
        right = alpha * product
        scale = cp.linalg.norm(right) ** 2
        if beta != 0:
            old = beta * self._old[:, : self.shape[1]].astype(cp.float64)
            right = right + old
            scale = cp.maximum(scale + cp.linalg.norm(old) ** 2, cp.linalg.norm(right) ** 2)
        return float(cp.linalg.norm(found - finished(right)) / cp.sqrt(scale))


def tolerance(k: int, dtype: str = "float32", accumulate: str = "float32") -> float:
    """Return the relative error that sums of k products may have.

    cuBLAS's own error is about a third to a half of it. ``dtype`` is that of A, B and C, and ``accumulate``
    that of the accumulators. FP32 accumulation errs like a random walk. Rounding a result to FP16 costs at
    most half a unit in the last place. FP16 accumulators are rounded each time that a Tensor Core has added 8
    products, and three more times with alpha and beta.
    """
    drift = 6e-8 * math.sqrt(k + 16)
    if dtype == "float32":
        return drift
    rounded = HALF_ULP[dtype]
    return drift + rounded * (1 if accumulate == "float32" else math.sqrt(k / 8 + 9))


def _row_length(matrix: np.ndarray, spare: int) -> int:
    row_bytes = ROW_BYTES[str(matrix.dtype)]
    return (
        leading_dimension(matrix.shape[1], row_bytes, matrix.itemsize) + spare * row_bytes // matrix.itemsize
    )
