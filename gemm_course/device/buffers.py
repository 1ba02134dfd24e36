"""Matrices in buffers whose rows are longer than the matrix is wide."""

import numpy as np


def leading_dimension(columns: int, alignment: int, itemsize: int = 4) -> int:
    """Elements from one row to the next, so that every row starts at a multiple of `alignment` bytes."""
    step = max(1, alignment // itemsize)
    return max(-(-columns // step) * step, step)


def padded(matrix: np.ndarray, leading: int) -> np.ndarray:
    """A copy of a (rows, columns) matrix in a C-contiguous (rows, leading) buffer; the surplus holds NaN."""
    rows, columns = matrix.shape
    buffer = np.full((rows, leading), np.nan, matrix.dtype)
    buffer[:, :columns] = matrix
    return buffer
