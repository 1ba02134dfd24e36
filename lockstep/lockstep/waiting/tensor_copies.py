"""Carries out TMA's copies of whole boxes of a matrix between global and shared memory.

A load lands at the wait for the mbarrier that its bytes complete, no sooner; a store reads its tile at the
wait for the store, no sooner. So a kernel that does not wait computes wrong results here as well.
"""

from dataclasses import dataclass

import numpy as np

from lockstep.counts.tally import MovedKey
from lockstep.errors import KernelTypeError
from lockstep.findings import place
from lockstep.memory.storage import DeviceArray, wrong_number_of_indices

SECTOR, LINE = 32, 128
# A swizzle keeps CHUNK neighbouring bytes together.
CHUNK = 16


@dataclass(frozen=True)
class MatrixMap:
    """A matrix as TMA sees it: ``shape`` elements of the buffer ``array``, copied by the ``box``."""

    array: DeviceArray
    shape: tuple[int, int]
    box: tuple[int, int]

    @property
    def stored_columns(self) -> int:
        """Return the columns that a store may write, as it writes whole pieces of 16 bytes."""
        chunk = CHUNK // self.array.dtype.itemsize
        return -(-self.shape[1] // chunk) * chunk

    @property
    def bytes(self) -> int:
        return self.box[0] * self.box[1] * self.array.dtype.itemsize


def swizzled(addresses: np.ndarray, row_bytes: int) -> np.ndarray:
    """Return the swizzled addresses of the bytes of a tile with rows of 32, 64 or 128 bytes.

    The tile starts at a multiple of eight rows; within each, the low bits of the number of a 16-byte chunk
    (one for rows of 32 bytes, two for 64, three for 128) are XORed with those of its 128-byte line's number.
    """
    bits = row_bytes // CHUNK - 1
    return addresses ^ (addresses // LINE & bits) * CHUNK


class BoxLoad:
    """A copy from global to shared memory in flight, which one thread started."""

    def __init__(self, machine, values, cells, tile, token):
        self.machine, self.values, self.cells, self.tile, self.token = machine, values, cells, tile, token
        self.bytes = values.size * values.itemsize

    def land(self, agent, time):
        storage = self.tile.storage
        storage.data[0, 0, self.cells] = self.values
        self.machine.initialised(storage).mark(self.cells)
        self.machine.chunk.clocks.finish_writing(self.token, agent, time)


class BoxStore:
    """A copy from shared to global memory in flight, which one thread started."""

    def __init__(self, machine, tile, cells, matrix, corner, thread, site, token):
        self.machine, self.tile, self.cells, self.matrix = machine, tile, cells, matrix
        self.corner, self.thread, self.site, self.token = corner, thread, site, token

    def finish(self):
        """Write the tile, as it is now, to global memory."""
        rows, columns, inside = _inside(self.matrix, self.corner, self.matrix.stored_columns)
        storage, row_length = self.matrix.array.storage, self.matrix.array.strides[0]
        cells = (rows[:, None] * row_length + columns)[inside]
        storage.data[cells] = self.tile.storage.data[0, 0, self.cells][inside]
        self.machine.races.note_stores(self.matrix.array, cells, self.thread, self.site)
        self.machine.chunk.clocks.finish_reading(self.token)


class TensorCopies:
    """The copies by TMA that the threads of the running block make."""

    def __init__(self, machine):
        self.machine = machine
        # `open` maps a thread to its stores since its last commit.
        self.open: dict[int, list] = {}
        self.groups: dict[int, list] = {}

    # ---- what kernels call ----

    def load(self, site, tile, tile_index, matrix, corner, barriers, barrier):
        _check(matrix, tile)
        self._count(site, tile, matrix, corner, "load")
        if self.machine.log is not None:
            return
        for thread in self._threads():
            cells = self._cells(site, tile, tile_index, matrix, thread)
            if cells is None:
                continue
            values = _box_of(matrix, self._at(corner, thread))
            token = self.machine.chunk.clocks.begin_writing(tile, cells.reshape(-1), site)
            copy = BoxLoad(self.machine, values, cells, tile, token)
            self.machine.chunk.mbarriers.add_copy(site, barriers, barrier, copy)

    def store(self, site, matrix, corner, tile, tile_index):
        _check(matrix, tile)
        self._count(site, tile, matrix, corner, "store")
        if self.machine.log is not None:
            return
        for thread in self._threads():
            cells = self._cells(site, tile, tile_index, matrix, thread)
            if cells is None:
                continue
            self.machine.check_written(site, tile, cells.reshape(-1))
            token = self.machine.chunk.clocks.begin_reading(tile, cells.reshape(-1), site, "TMA")
            copy = BoxStore(self.machine, tile, cells, matrix, self._at(corner, thread), thread, site, token)
            self.open.setdefault(thread, []).append(copy)

    def commit(self):
        if self.machine.log is not None:
            return
        for thread in self._threads():
            self.groups.setdefault(thread, []).append(self.open.pop(thread, []))

    def wait(self, pending):
        if self.machine.log is not None:
            return
        for thread in self._threads():
            groups = self.groups.get(thread, [])
            finished = groups[: max(len(groups) - pending, 0)]
            self.groups[thread] = groups[len(finished) :]
            for copy in (copy for group in finished for copy in group):
                copy.finish()

    def end(self, threads: range):
        """End a warp with these threads, whose stores must have finished reading shared memory."""
        for thread in threads:
            groups = [*self.groups.pop(thread, []), self.open.pop(thread, [])]
            copies = [copy for group in groups for copy in group]
            if copies:
                self._report_unfinished(copies[0])
            for copy in copies:
                copy.finish()

    # ---- which elements a copy moves ----

    def _threads(self) -> list[int]:
        """Return the active threads, each of which makes a copy of its own."""
        mask = self.machine.unit.mask
        threads = np.arange(self.machine.chunk.geometry.threads, dtype=np.int64)
        if mask.array is None:
            return threads.tolist()
        return threads[
            np.broadcast_to(mask.array, (1, 1, self.machine.chunk.geometry.width))[0, 0, : len(threads)]
        ].tolist()

    def _at(self, index, thread) -> tuple:
        """Return an index as a tuple of integers, the values that one thread has."""
        index = index if isinstance(index, tuple) else (index,)
        return tuple(self._of_thread(part, thread) for part in index)

    def _of_thread(self, value, thread) -> int:
        numbers = np.asarray(self.machine.plain(value))
        if numbers.ndim == 0:
            return int(numbers)
        return int(
            np.broadcast_to(numbers, (*numbers.shape[:-1], self.machine.chunk.geometry.width))[0, 0, thread]
        )

    def _cells(self, site, tile, tile_index, matrix, thread):
        """Return the tile's elements that hold the box, (rows, columns), swizzled; None if too large."""
        index = self._at(tile_index, thread)
        if len(index) != tile.ndim:
            raise KernelTypeError(wrong_number_of_indices(tile, index))
        size = tile.dtype.itemsize
        row_bytes = matrix.box[1] * size
        first = tile.offset + sum(i * step for i, step in zip(index, tile.strides))
        count = matrix.box[0] * matrix.box[1]
        if first < 0 or first + count > tile.storage.size:
            self._report_outside(site, tile, index, matrix, thread)
            return None
        if first * size % (8 * row_bytes) or tile.storage.alignment % (8 * row_bytes):
            self._report_misaligned(site, tile, index, 8 * row_bytes, thread)
            return None
        cells = swizzled((first + np.arange(count, dtype=np.int64)) * size, row_bytes) // size
        return cells.reshape(matrix.box)

    # ---- what a copy costs ----

    def _count(self, site, tile, matrix, corner, op):
        """Count one request per thread, for the part of the matrix that exists and for the whole box of the
        tile.
        """
        machine = self.machine
        extents = (matrix.shape[0], matrix.stored_columns if op == "store" else matrix.shape[1])
        if machine.log is not None:
            for position, extent, box in zip(corner, extents, matrix.box):
                machine.compare("<=", machine.add(None, position, box), extent)
        rows, columns = (machine.active_values(part) for part in corner)
        if not len(rows):
            return
        size, row_length = matrix.array.dtype.itemsize, matrix.array.strides[0]
        height, width = (
            np.clip(np.minimum(at + box, extent) - np.maximum(at, 0), 0, None)
            for at, box, extent in zip((rows, columns), matrix.box, extents)
        )
        sectors = lines = 0
        for row, column, high, wide in zip(np.maximum(rows, 0), np.maximum(columns, 0), height, width):
            starts = ((row + np.arange(high, dtype=np.int64)) * row_length + column) * size
            ends = starts + wide * size - 1
            if wide:
                sectors += int((ends // SECTOR - starts // SECTOR + 1).sum(dtype=np.int64))
                lines += int((ends // LINE - starts // LINE + 1).sum(dtype=np.int64))
        bits = matrix.bytes * 8
        moved = int((height * width).sum(dtype=np.int64)) * size
        costs = (len(rows), len(rows), moved, sectors, lines, 0, 0)
        machine.tally(MovedKey(site, matrix.array.name, "global", op, bits, costs), None)
        across = "store" if op == "load" else "load"
        boxes = (len(rows), len(rows), len(rows) * matrix.bytes, 0, 0, 0, 0)
        machine.tally(MovedKey(site, tile.name, "shared", across, bits, boxes), None)

    # ---- what is wrong with a copy ----

    def _report_outside(self, site, tile, index, matrix, thread):
        rows, columns = matrix.box
        self.machine.reporter.thread(
            "out_of_bounds",
            site,
            f"A box of {rows} by {columns} elements that starts at {place(tile.name, index)} does not fit "
            f"into {tile.name}.",
            tile,
            index,
            thread=thread,
        )

    def _report_misaligned(self, site, tile, index, boundary, thread):
        self.machine.reporter.thread(
            "misaligned_access",
            site,
            f"A tile with rows of {boundary // 8} bytes must start at a multiple of {boundary} bytes, which "
            f"{place(tile.name, index)} does not: its swizzle would be a different one.",
            tile,
            index,
            thread=thread,
        )

    def _report_unfinished(self, copy):
        self.machine.reporter.thread(
            "missing_wait",
            copy.site,
            f"The thread that stores {copy.tile.name} with TMA ends without tma_wait_read(0): another block "
            "may get this shared memory while the copy is still reading it.",
            copy.tile,
            thread=copy.thread,
        )


def _check(matrix, tile):
    if not isinstance(matrix, MatrixMap):
        raise KernelTypeError(
            "TMA needs a tensor map of the matrix, made with tensor_map() before the launch"
        )
    if getattr(tile, "space", "") != "shared" or tile.dtype != matrix.array.dtype:
        raise KernelTypeError(f"TMA copies to and from a shared array of {matrix.array.dtype}")
    if tile.ndim > 1 and tile.shape[-1] != matrix.box[1]:
        raise KernelTypeError(
            f"a row of {tile.name} has {tile.shape[-1]} elements, a row of the box {matrix.box[1]}: they "
            "must be equal"
        )


def _inside(matrix, corner, width: int) -> tuple:
    """Return rows and columns of the box, clipped, and which elements lie in rows of length ``width``."""
    extents = (matrix.shape[0], width)
    rows, columns = (at + np.arange(box, dtype=np.int64) for at, box in zip(corner, matrix.box))
    row_is, column_is = ((n >= 0) & (n < extent) for n, extent in zip((rows, columns), extents))
    clipped = (np.clip(n, 0, max(extent - 1, 0)) for n, extent in zip((rows, columns), extents))
    return *clipped, row_is[:, None] & column_is


def _box_of(matrix, corner) -> np.ndarray:
    """Return the values of the box, with zeros outside the matrix."""
    rows, columns, inside = _inside(matrix, corner, matrix.shape[1])
    values = np.zeros(matrix.box, matrix.array.dtype)
    cells = rows[:, None] * matrix.array.strides[0] + columns
    values[inside] = matrix.array.storage.data[cells[inside]]
    return values
