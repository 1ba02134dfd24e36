"""Puts matrices into buffers with padded rows, and copies them to the GPU."""

from collections.abc import Sequence

import numpy as np

from lockstep.intrinsics import TensorMap


def leading_dimension(columns: int, alignment: int, itemsize: int = 4) -> int:
    """Return the elements from row to row with which every row starts at a multiple of `alignment` bytes."""
    step = max(1, alignment // itemsize)
    return max(-(-columns // step) * step, step)


def padded(matrix: np.ndarray, leading: int) -> np.ndarray:
    """Return a copy of a (rows, columns) matrix in a C-contiguous (rows, leading) buffer.

    The padding holds NaN.
    """
    rows, columns = matrix.shape
    buffer = np.full((rows, leading), np.nan, matrix.dtype)
    buffer[:, :columns] = matrix
    return buffer


def on_device(arguments: Sequence) -> list:
    """Return a launch's arguments with each NumPy array copied to the GPU.

    An array that is passed twice is copied once. A tensor map becomes a map of the copy of its matrix, which
    is copied even if it is not an argument.
    """
    from numba import cuda

    copies: dict[int, object] = {}

    def copy(array):
        if id(array) not in copies:
            copies[id(array)] = cuda.to_device(array)
        return copies[id(array)]

    def convert(argument):
        if isinstance(argument, TensorMap):
            return argument.of(copy(argument.array))
        return copy(argument) if isinstance(argument, np.ndarray) else argument

    return [convert(argument) for argument in arguments]
