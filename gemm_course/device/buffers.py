"""Matrices in buffers whose rows are longer than the matrix is wide, and on their way to the GPU."""

from collections.abc import Sequence

import numpy as np

from gemm_course.intrinsics.tma import TensorMap


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


def on_device(arguments: Sequence) -> list:
    """A launch's arguments for a GPU: a copy there of each NumPy array, one where two are the same array.

    A tensor map becomes one of the copy of its matrix, which is copied along if it is not an argument itself.
    """
    from numba import cuda

    copies: dict[int, object] = {}

    def copy(array):
        if id(array) not in copies:
            copies[id(array)] = cuda.to_device(array)
        return copies[id(array)]

    def sent(argument):
        if isinstance(argument, TensorMap):
            return argument.of(copy(argument.array))
        return copy(argument) if isinstance(argument, np.ndarray) else argument

    return [sent(argument) for argument in arguments]
