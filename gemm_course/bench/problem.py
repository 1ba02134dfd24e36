"""One matrix multiplication on the GPU: inputs, the right answer in float64, and cuBLAS to compare with."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable

import numpy as np

from gemm_course.device.buffers import leading_dimension, padded

ROW_BYTES = 64  # rows start at multiples of this, as in document 004; a multiple of what any stage needs


class NoCublas(RuntimeError):
    """CuPy, which brings cuBLAS, is missing; the message is one sentence."""


class WrongResult(ArithmeticError):
    """A kernel computed something else than alpha * A @ B + beta * C."""


class Problem:
    """C = alpha * A @ B + beta * C of one size with random numbers, on the GPU.

    Rows are padded to 64 bytes, and by `spare` such steps more; the padding holds NaN.
    """

    def __init__(self, m: int, n: int, k: int, seed: int = 0, spare: int = 0):
        cp = cupy()
        self.shape = (m, n, k)
        random = np.random.default_rng(seed)
        made = (random.standard_normal(size, dtype=np.float32) for size in ((m, k), (k, n), (m, n)))
        self.A, self.B, self._old = (
            cp.asarray(padded(matrix, _row_length(matrix.shape[1], spare))) for matrix in made
        )
        self.C = cp.empty_like(self._old)
        self._plain = tuple(cp.ascontiguousarray(part) for part in (self.A[:, :k], self.B[:, :n]))
        self._cublas_c = cp.empty((m, n), cp.float32)

    @functools.cached_property
    def product(self):
        """A @ B in float64, (m, n), by cuBLAS."""
        cp = cupy()
        a, b = (part.astype(cp.float64) for part in self._plain)
        return a @ b

    def arguments(self, alpha: float = 1.0, beta: float = 0.0) -> list:
        """A stage's arguments, as Numba takes them."""
        from numba import cuda

        m, n, k = self.shape
        a, b, c = (cuda.as_cuda_array(matrix) for matrix in (self.A, self.B, self.C))
        return [m, n, k, np.float32(alpha), a, b, np.float32(beta), c]

    def cublas(self) -> None:
        """Queue the same multiplication in cuBLAS: FP32 with TF32 off."""
        cupy().matmul(*self._plain, out=self._cublas_c)

    def cublas_error(self) -> float:
        """cuBLAS's own relative Frobenius error against float64."""
        self.cublas()
        return self._error(self._cublas_c, self.product, 1.0, 0.0)

    def error_of(
        self, launch: Callable[[float, float], None], alpha: float = 1.0, beta: float = 0.0
    ) -> float:
        """Launch a kernel on a poisoned C and return its relative Frobenius error against float64.

        launch(alpha, beta) queues the kernel on `arguments(alpha, beta)`. Raises WrongResult if an element
        was not written, if C's padding was, or if the error is above what FP32 accumulation explains.
        """
        cp = cupy()
        _, n, k = self.shape
        self.C[...] = cp.nan
        if beta != 0:
            self.C[:, :n] = self._old[:, :n]
        launch(alpha, beta)
        cp.cuda.Device().synchronize()
        if not bool(cp.isnan(self.C[:, n:]).all()):
            raise WrongResult("it wrote beyond the columns of C")
        error = self._error(self.C[:, :n], self.product, alpha, beta)
        if not error <= tolerance(k):
            raise WrongResult(f"its relative error is {error:.2g}; FP32 explains {tolerance(k):.2g}")
        return error

    def _error(self, found, product, alpha: float, beta: float) -> float:
        """|found - right| / |right|, right = alpha AB + beta C; what cancels does not shrink the scale."""
        cp = cupy()
        right = alpha * product
        scale = cp.linalg.norm(right) ** 2
        if beta != 0:
            old = beta * self._old[:, : self.shape[1]].astype(cp.float64)
            right = right + old
            scale = scale + cp.linalg.norm(old) ** 2
        return float(cp.linalg.norm(found - right) / cp.sqrt(scale))


def tolerance(k: int) -> float:
    """The relative error that k FP32 additions may have; a random walk comes to about a third of it."""
    return 6e-8 * math.sqrt(k + 16)


def _row_length(columns: int, spare: int) -> int:
    return leading_dimension(columns, ROW_BYTES) + spare * ROW_BYTES // 4


@functools.cache
def cupy():
    """CuPy with TF32 off. Raises NoCublas where it is not installed."""
    os.environ["CUPY_TF32"] = "0"
    try:
        import cupy
    except ImportError:
        raise NoCublas(
            "CuPy is missing, which brings cuBLAS to compare with: install the course's gpu extra."
        ) from None
    return cupy


def cublas_version() -> str:
    """cuBLAS's version, "13.1.1"."""
    cupy()
    from cupy.cuda import device
    from cupy_backends.cuda.libs import cublas

    number = cublas.getVersion(device.get_cublas_handle())
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"
