"""A GEMM on the emulator that makes mistakes visible: padding and outputs are full of NaN."""

import numpy as np
import pytest

from lockstep import emulate


def padded(values: np.ndarray, alignment: int = 64) -> np.ndarray:
    """The matrix in rows that are a multiple of `alignment` bytes long, padded with NaN."""
    rows, columns = values.shape
    elements = alignment // values.itemsize
    buffer = np.full((rows, -(-columns // elements) * elements), np.nan, values.dtype)
    buffer[:, :columns] = values
    return buffer


class Emulated:
    """One launch of a stage, or of a plain kernel with a stage's geometry, and its results."""

    def __init__(self, stage, m, n, k, tiles=None, alpha=1.0, beta=0.0, kernel=None, alignment=64):
        random = np.random.default_rng([m, n, k])
        dtype = np.dtype(stage.dtype)
        a, b, c = (random.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n), (m, n)))
        self.n = n
        self.expected = alpha * a.astype(np.float64) @ b.astype(np.float64) + beta * c.astype(np.float64)
        self.C = padded(c if beta else np.full((m, n), np.nan, dtype), alignment)
        a, b = padded(a, alignment), padded(b, alignment)
        arguments = stage.arguments(m, n, k, np.float32(alpha), a, b, np.float32(beta), self.C, tiles=tiles)
        self.report = emulate(
            kernel or stage.kernel(tiles),
            stage.grid(m, n, tiles),
            stage.block(tiles),
            *arguments,
            shared_bytes=stage.shared_bytes(tiles),
        )

    @property
    def error(self) -> float:
        """The relative Frobenius error against float64; NaN where an element was not written."""
        difference = np.linalg.norm(self.C[:, : self.n] - self.expected)
        return difference / (np.linalg.norm(self.expected) or 1.0)

    @property
    def padding_untouched(self) -> bool:
        """Whether the padding of C's rows is still NaN."""
        return bool(np.isnan(self.C[:, self.n :]).all())

    def loads(self, array: str) -> int:
        """Elements read from one array."""
        accesses = self.report.accesses
        loads = accesses[(accesses["op"] == "load") & (accesses["array"] == array)]
        return int(loads["bytes"].sum()) // self.C.itemsize


def allowed(stage) -> float:
    """The relative error allowed: that of rounding results to the stage's dtype, and some more.

    FP16 accumulators are rounded at every step, results of FP32 accumulators once, at the end.
    """
    return {("float32", "float32"): 1e-6, ("float16", "float32"): 5e-4, ("float16", "float16"): 3e-3}[
        stage.dtype, stage.accumulate
    ]


@pytest.fixture
def emulated():
    return Emulated
