"""Calls cuBLAS through CuPy, so that kernels can be compared with it."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable

import numpy as np

# These values have cuBLAS's type cudaDataType_t.
R_32F, R_16F = 0, 2
# These values have the type cublasComputeType_t. COMPUTE_32F is FP32 with TF32 off.
COMPUTE_16F, COMPUTE_32F = 64, 68
DEFAULT_ALGORITHM = -1
DEFAULT_MATH = 0
NOT_TRANSPOSED = 0


class NoCublas(RuntimeError):
    """The error for a missing CuPy, which provides cuBLAS. Its message is one sentence."""


def multiplication(a, b, c, accumulate: str = "float32") -> Callable[[], None]:
    """Return a function that queues c = a @ b in cuBLAS.

    ``a``, ``b`` and ``c`` are (m, k), (k, n) and (m, n), CuPy arrays without padding, all float32 or all
    float16. ``accumulate`` is the dtype of the accumulators, "float32", or "float16" for float16 matrices.
    """
    cupy()
    from cupy.cuda import device
    from cupy_backends.cuda.libs import cublas

    (m, k), n = a.shape, b.shape[1]
    kind = {"float32": R_32F, "float16": R_16F}[str(a.dtype)]
    compute = {"float32": COMPUTE_32F, "float16": COMPUTE_16F}[accumulate]
    one, zero = np.ones(1, accumulate), np.zeros(1, accumulate)
    handle = device.get_cublas_handle()

    def go() -> None:
        # cuBLAS is column-major, so a @ b in row-major order is b @ a for cuBLAS.
        cublas.setMathMode(handle, DEFAULT_MATH)
        cublas.gemmEx(
            handle, NOT_TRANSPOSED, NOT_TRANSPOSED, n, m, k,
            one.ctypes.data, b.data.ptr, kind, n, a.data.ptr, kind, k,
            zero.ctypes.data, c.data.ptr, kind, n, compute, DEFAULT_ALGORITHM,
        )  # fmt: skip

    return go


@functools.cache
def cupy():
    """Return CuPy with TF32 off. Raise NoCublas where it is not installed."""
    os.environ["CUPY_TF32"] = "0"
    try:
        import cupy
    except ImportError:
        raise NoCublas(
            "CuPy is missing, which provides cuBLAS to compare with: install the course's gpu extra."
        ) from None
    return cupy


def cublas_version() -> str:
    """Return cuBLAS's version, such as "13.1.1"."""
    cupy()
    from cupy.cuda import device
    from cupy_backends.cuda.libs import cublas

    number = cublas.getVersion(device.get_cublas_handle())
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"
