"""Defines where threads are: the blocks that run together, and the position of every thread in them."""

from itertools import product

import numpy as np

from .lanes import Lanes, Mask, Pattern

WARP = 32
INT32 = np.dtype(np.int32)


class Geometry:
    """A geometry of ``rows`` x ``columns`` blocks of ``block`` (x, y, z) threads, which run in lock-step.

    Threads are numbered with x fastest; the thread axis is padded to whole warps with lanes that belong to no
    thread and are never active.
    """

    def __init__(self, block: tuple, rows: int, columns: int):
        self.block, self.rows, self.columns = block, rows, columns
        self.threads = block[0] * block[1] * block[2]
        self.width = -(-self.threads // WARP) * WARP
        self.shape = (rows, columns, self.width)
        self.lanes = rows * columns * self.width
        self.no_threads = Mask(self, np.zeros((1, 1, 1), bool))
        exists = (np.arange(self.width, dtype=np.int64) < self.threads).reshape(1, 1, -1)
        self.all_threads = Mask(self, None if exists.all() else exists)
        self.linear = np.arange(self.width, dtype=np.int64).reshape(1, 1, -1)
        self.thread = Coordinates(*(Lanes(Pattern(axis), 0, INT32) for axis in self._thread_axes()))
        self.row = Pattern(np.arange(rows, dtype=np.int64).reshape(-1, 1, 1))
        self.column = Pattern(np.arange(columns, dtype=np.int64).reshape(1, -1, 1))
        self.lane = Lanes(Pattern(self.linear % WARP), 0, INT32)
        self._batches = {}
        self.units: dict = {}  # The masks of single warps and of single lanes are made when they are needed.

    def _thread_axes(self):
        x, y, _ = self.block
        return self.linear % x, self.linear // x % y, self.linear // (x * y)

    def mask(self, array: np.ndarray) -> Mask:
        """Return a mask of these booleans. ``no_threads`` and ``all_threads`` are always the same objects."""
        if not array.any():
            return self.no_threads
        if array.all() and self.all_threads.array is None:
            return self.all_threads
        return Mask(self, array)

    def batch(self, length: int, level: int) -> Pattern:
        """Return 0..length-1 along the axis of the batched loop at nesting level ``level`` (0 is the
        outermost).
        """
        found = self._batches.get((length, level))
        if found is None:
            axis = np.arange(length, dtype=np.int64).reshape((length,) + (1,) * (3 + level))
            found = self._batches[length, level] = Pattern(axis)
        return found

    def places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return for every lane the row and column of its block, and its number in the block."""
        parts = self.row.array, self.column.array, self.linear
        return tuple(np.broadcast_to(part, self.shape).reshape(-1) for part in parts)

    def place(self, row, column, lane) -> tuple[int, int, int]:
        """Return what :meth:`places` says of the one lane at this position along each axis."""
        return int(row), int(column), int(lane)

    def warps(self, values: np.ndarray, active: np.ndarray | None) -> tuple:
        """Return the values of all lanes, and which are active (None: all), both with one row per warp."""
        return values.reshape(-1, WARP), None if active is None else active.reshape(-1, WARP)

    def thread_coordinates(self, linear: int) -> tuple[int, int, int]:
        x, y, _ = self.block
        return int(linear % x), int(linear // x % y), int(linear // (x * y))


class Coordinates:
    """An object with x, y and z, such as ``threadIdx`` and ``blockIdx``."""

    __slots__ = ("x", "y", "z")

    def __init__(self, x, y, z):
        self.x, self.y, self.z = x, y, z


def chunks(grid: tuple, rows: int, columns: int):
    """Cut a grid into rectangles of at most ``rows`` x ``columns`` blocks: (z, y, x, rows, columns) each."""
    for z, y, x in product(range(grid[2]), range(0, grid[1], rows), range(0, grid[0], columns)):
        yield z, y, x, min(rows, grid[1] - y), min(columns, grid[0] - x)
