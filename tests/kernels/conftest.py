"""A GEMM on the emulator with everything that may go wrong made visible: padding and outputs full of NaN."""

import numpy as np
import pytest

from gemm_course.emulator import emulate


def padded(values: np.ndarray, alignment: int = 64) -> np.ndarray:
    """The matrix in rows that are a multiple of `alignment` bytes long, NaN behind each."""
    rows, columns = values.shape
    floats = alignment // 4
    buffer = np.full((rows, -(-columns // floats) * floats), np.nan, np.float32)
    buffer[:, :columns] = values
    return buffer


class Emulated:
    """One launch of a stage, or of a plain kernel with a stage's geometry, and what it left behind."""

    def __init__(self, stage, m, n, k, tiles=None, alpha=1.0, beta=0.0, kernel=None, alignment=64):
        random = np.random.default_rng([m, n, k])
        a, b, c = (random.standard_normal(shape, dtype=np.float32) for shape in ((m, k), (k, n), (m, n)))
        self.n = n
        self.expected = alpha * a.astype(np.float64) @ b.astype(np.float64) + beta * c.astype(np.float64)
        self.C = padded(c if beta else np.full((m, n), np.nan, np.float32), alignment)
        self.report = emulate(
            kernel or stage.kernel(tiles),
            stage.grid(m, n, tiles),
            stage.block(tiles),
            m, n, k, np.float32(alpha), padded(a, alignment), padded(b, alignment), np.float32(beta), self.C,
            shared_bytes=stage.shared_bytes(tiles),
        )  # fmt: skip

    @property
    def error(self) -> float:
        """The relative Frobenius error against float64; NaN where an element was not written."""
        difference = np.linalg.norm(self.C[:, : self.n] - self.expected)
        return difference / (np.linalg.norm(self.expected) or 1.0)

    @property
    def padding_untouched(self) -> bool:
        """Whether what lies behind the rows of C is still NaN."""
        return bool(np.isnan(self.C[:, self.n :]).all())

    def loads(self, array: str) -> int:
        """Elements read from one array."""
        accesses = self.report.accesses
        return int(accesses[(accesses["op"] == "load") & (accesses["array"] == array)]["bytes"].sum()) // 4


@pytest.fixture
def emulated():
    return Emulated
