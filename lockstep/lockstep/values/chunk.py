"""Holds the chunk that runs now: blocks in lock-step, and what each chunk has for itself.

:attr:`Machine.chunk` is the chunk that runs. Where units wait for each other, the scheduler sets the chunk of
the unit whose turn it is.
"""

import numpy as np

from .geometry import Coordinates, Geometry
from .lanes import Lanes

INT32 = np.dtype(np.int32)


class Chunk:
    """Blocks that run together: their place in the grid, their shared memory, and what has ordered them.

    ``grid``: blocks along x, y and z; ``origin``: (z, y, x) of the first block; ``epoch``: how many block
    barriers have been passed so far; ``memos``: what all chunks of this shape share.
    """

    def __init__(self, grid: tuple, geometry: Geometry, origin: tuple, epoch: int, memos: dict):
        z, y, x = origin
        self.grid, self.geometry, self.origin = grid, geometry, origin
        self.blocks = geometry.rows * geometry.columns
        self.thread_index = geometry.thread
        self.block_index = Coordinates(
            Lanes(geometry.column, x, INT32), Lanes(geometry.row, y, INT32), np.int32(z)
        )
        # thread_ids() makes the ids when they are needed. Narrowing replaces them together with the geometry.
        self.ids: np.ndarray | None = None
        self._memos = memos

        # `shared_arrays` maps a site, or "dynamic", to the array that is declared there.
        self.shared_arrays: dict = {}
        # `carved` maps a site to a part of the dynamic shared memory.
        self.carved: dict = {}
        # `written` maps the serial number of a storage to a record of which elements have been written.
        self.written: dict = {}
        # Where lanes differ, the epoch is an array (rows, columns, 1 or lanes).
        self.epoch: int | np.ndarray = epoch
        # Machine.start() sets the next three attributes for each chunk.
        self.shared_races = None
        self.absences = None
        self.async_copies = None
        # Only a block whose warps run in turns has mbarriers, copies by TMA and vector clocks.
        self.mbarriers = self.tensor_copies = self.clocks = None

        # `tracing` tells whether the watched block is among the blocks of this chunk.
        self.tracing = False
        # The watcher records the accesses of the watched block.
        self.watcher = None

    def memo(self, name) -> set:
        """Return a set that all chunks of this shape share."""
        return self._memos.setdefault(name, set())

    def thread_ids(self) -> np.ndarray:
        """Return a number for every thread of this chunk, counted from 1 over the whole grid."""
        if self.ids is None:
            z, y, x = self.origin
            gx, gy, _ = self.grid
            blocks = (z * gy + y + self.geometry.row.array) * gx + x + self.geometry.column.array
            self.ids = (blocks * self.geometry.threads + self.geometry.linear + 1).astype(np.uint32)
        return self.ids

    def thread_of(self, identity: int) -> tuple:
        """Return the (thread, block) coordinates of a number from :meth:`thread_ids`."""
        block, linear = divmod(identity - 1, self.geometry.threads)
        gx, gy, _ = self.grid
        return self.geometry.thread_coordinates(linear), (block % gx, block // gx % gy, block // (gx * gy))

    def block_coordinates(self, row, column) -> tuple:
        """Return (x, y, z) of the block in this row and column of the chunk."""
        z, y, x = self.origin
        return x + int(column), y + int(row), z
