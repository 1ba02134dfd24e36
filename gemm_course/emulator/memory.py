"""Global, shared and local memory: where the values are, and how lanes read and write them."""

from itertools import count

import numpy as np

from .lanes import Pattern

_serials = count(1)


class DeviceArray:
    """An array as a kernel sees it, or a view of one: ``acc[i]`` of a two-dimensional ``acc``.

    ``pattern`` and ``offset`` locate its first element inside the storage, counted in elements.
    """

    __slots__ = ("name", "storage", "dtype", "shape", "strides", "pattern", "offset")

    def __init__(self, name, storage, dtype, shape, strides=None, pattern=None, offset=0):
        self.name, self.storage, self.dtype, self.shape = name, storage, np.dtype(dtype), tuple(shape)
        self.strides = row_major(self.shape) if strides is None else strides
        self.pattern, self.offset = pattern, offset

    @property
    def space(self) -> str:
        return self.storage.space

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    def __len__(self):
        return self.shape[0]

    def element(self, flat: int) -> tuple:
        """The index of an element, given its position in the storage of the whole array."""
        storage = self.storage
        index = [0] * len(storage.shape)
        for axis in sorted(range(len(index)), key=lambda axis: -storage.strides[axis]):
            index[axis], flat = divmod(flat, storage.strides[axis]) if storage.strides[axis] else (0, flat)
        return tuple(map(int, index))


def row_major(shape: tuple) -> tuple:
    """Strides in elements."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


class Unknown(np.ndarray):
    """Data that was never loaded: counting without running knows types, not values."""


class Unbound:
    """The value of a variable before its first assignment."""


def unknown(dtype) -> Unknown:
    return np.zeros((), dtype).view(Unknown)


def affine(pattern: Pattern) -> tuple | None:
    """(start, steps along the batch axes) of a pattern that differs only between batched iterations."""
    return pattern.remember("affine", lambda: _affine(pattern.array))


def _affine(array: np.ndarray) -> tuple | None:
    if array.shape[-3:] != (1, 1, 1):
        return None
    grid = array[..., 0, 0, 0]
    start = int(grid.flat[0])
    steps = tuple(
        int(np.take(grid, 1, axis).flat[0]) - start if n > 1 else 0 for axis, n in enumerate(grid.shape)
    )
    rebuilt = np.full(grid.shape, start)
    for axis, step in enumerate(steps):
        along_axis = [-1 if a == axis else 1 for a in range(grid.ndim)]
        rebuilt = rebuilt + (np.arange(grid.shape[axis]) * step).reshape(along_axis)
    return (start, steps) if (rebuilt == grid).all() else None


def flat_view(array: np.ndarray, size: int) -> np.ndarray:
    """The memory of an array from its first to its last element, gaps included."""
    return np.lib.stride_tricks.as_strided(array, (size,), (array.itemsize,))


class Storage:
    """What all memories have in common. ``serial`` is unique; ``shape`` is that of the declared array."""

    space = ""

    def __init__(self, dtype, shape):
        self.serial = next(_serials)
        self.dtype, self.shape = np.dtype(dtype), tuple(shape)
        self.strides = row_major(self.shape)
        self.size = int(np.prod(self.shape, dtype=np.int64))
        self.slot = self.serial  # the same when the array is declared again for other blocks
        self.alignment = self.dtype.itemsize  # in bytes: the start is at a multiple of this


class GlobalStorage(Storage):
    """Global memory: one NumPy array for the whole grid, flat as in memory."""

    space = "global"

    def __init__(self, array: np.ndarray, counts_only: bool):
        super().__init__(array.dtype, array.shape)
        self.data = None
        if not array.flags.c_contiguous and any(array.strides):
            self.strides = tuple(step // array.itemsize for step in array.strides)
            reach = sum((extent - 1) * step for extent, step in zip(self.shape, self.strides))
            self.size = 1 + reach if array.size else 0
        if not counts_only:
            self.data = flat_view(array, self.size)

    def gather(self, pattern: Pattern | None, offset: int):
        if self.data is None:
            return unknown(self.dtype)
        if self.size == 0:
            return self.dtype.type(0)
        if pattern is None:
            return self.data[min(max(offset, 0), self.size - 1)]
        if 0 <= offset < self.size and pattern.low >= 0:
            return self.data[offset:].take(pattern.array, mode="clip")
        return self.data.take(pattern.array + offset, mode="clip")

    def scatter(self, pattern: Pattern | None, offset: int, value, mask):
        if self.data is None:
            return
        if pattern is None and mask.array is None and np.ndim(value) == 0:
            self.data[offset] = value
            return
        lanes = mask.geometry.shape
        index = offset if pattern is None else pattern.array + offset
        if mask.array is None:
            index, value = np.broadcast_arrays(index, np.broadcast_to(value, _joint(lanes, index, value)))
            self.data[index] = value
        else:
            index, value, active = np.broadcast_arrays(index, value, mask.array)
            self.data[index[active]] = value[active]

    def cells(self, geometry) -> np.ndarray:
        """All elements, for updates lane by lane; :meth:`cell` gives the position of a lane's element."""
        return self.data

    def cell(self, lane, index):
        return index


def _joint(lanes: tuple, *arrays) -> tuple:
    return np.broadcast_shapes(lanes, *(np.shape(a) for a in arrays))


class SharedStorage(Storage):
    """One array per block, stored as (block_y, block_x, element).

    The block axes stay at length 1 while every block of a row (or column) holds the same values, as a tile
    of A does for all blocks in one row of C.
    """

    space = "shared"

    def __init__(self, dtype, shape, counts_only: bool):
        super().__init__(dtype, shape)
        garbage = np.nan if self.dtype.kind == "f" else 0
        self.data = None if counts_only else np.full((1, 1, max(self.size, 1)), garbage, self.dtype)

    def gather(self, pattern, offset):
        if self.data is None:
            return unknown(self.dtype)
        if pattern is None:
            return self.data[:, :, min(max(offset, 0), self.data.shape[2] - 1)][:, :, None]
        index = pattern.array
        if index.shape[-3] == 1 and index.shape[-2] == 1:
            return self._gather_alike(pattern, offset)
        rows = np.arange(self.data.shape[0]).reshape(-1, 1, 1)
        columns = np.arange(self.data.shape[1]).reshape(1, -1, 1)
        return self.data[rows, columns, np.clip(index + offset, 0, self.data.shape[2] - 1)]

    def _gather_alike(self, pattern, offset):
        """All blocks read the same elements."""
        index = pattern.array
        flat = index.reshape(index.shape[:-3] + index.shape[-1:])
        data = self.data
        if 0 <= offset < data.shape[2] and pattern.low >= 0:
            data = data[:, :, offset:]
        else:
            flat = flat + offset
        taken = data.take(flat, axis=2, mode="clip")
        for axis in range(flat.ndim - 1):  # the batch axes go to the front
            taken = np.moveaxis(taken, 2 + axis, axis)
        return taken

    def scatter(self, pattern, offset, value, mask):
        if self.data is None:
            return
        index = np.full((1, 1, 1), offset) if pattern is None else pattern.array + offset
        self._spread(np.shape(value), index.shape, np.shape(mask.array))
        if mask.array is None and index.shape[-3] == 1 and index.shape[-2] == 1 and index.shape[-1] > 1:
            self._scatter_alike(index, value)
            return
        everywhere = (1, 1, mask.geometry.width)
        shape = np.broadcast_shapes(
            index.shape, np.shape(value), np.shape(mask.array), everywhere, self.data.shape[:2] + (1,)
        )
        active = np.ones(shape, bool) if mask.array is None else np.broadcast_to(mask.array, shape)
        rows, columns = active.nonzero()[-3:-1]
        cells = rows, columns, np.broadcast_to(index, shape)[active]
        self.data[cells] = np.broadcast_to(value, shape)[active]

    def _spread(self, *shapes):
        """Give each of the blocks that are about to differ a copy."""
        lanes = np.broadcast_shapes(*(s[-3:-1] for s in shapes if len(s) >= 3), self.data.shape[:2])
        if lanes != self.data.shape[:2]:
            self.data = np.broadcast_to(self.data, lanes + self.data.shape[2:]).copy()

    def _scatter_alike(self, index, value):
        """All blocks write the same elements; if batched iterations write one element, the last one wins."""
        batch = max(index.ndim, np.ndim(value)) - 3
        flat = index.reshape((1,) * (batch + 3 - index.ndim) + index.shape[:-3] + index.shape[-1:])
        iterations = np.broadcast_shapes(flat.shape[:batch], np.shape(value)[:-3])
        flat = np.broadcast_to(flat, iterations + flat.shape[-1:])
        value = np.broadcast_to(value, flat.shape[:-1] + self.data.shape[:2] + flat.shape[-1:])
        self.data[:, :, flat] = np.moveaxis(value, range(batch), range(2, 2 + batch))

    def cells(self, geometry) -> np.ndarray:
        self._spread(geometry.shape)
        return self.data

    def cell(self, lane, index):
        return lane[-3], lane[-2], index


class LocalStorage(Storage):
    """A thread's local array (registers): (element, block_y, block_x, thread); lane axes grow as needed."""

    space = "local"

    def __init__(self, dtype, shape, counts_only: bool):
        super().__init__(dtype, shape)
        garbage = np.nan if self.dtype.kind == "f" else 0
        self.data = None if counts_only else np.full((max(self.size, 1), 1, 1, 1), garbage, self.dtype)

    def view(self, pattern, offset) -> np.ndarray | None:
        """The elements without a copy, or None if lanes access different ones."""
        if pattern is None:
            return self.data[offset] if 0 <= offset < len(self.data) else None
        decoded = affine(pattern)
        if decoded is None or pattern.low + offset < 0 or pattern.high + offset >= len(self.data):
            return None
        start, steps = decoded
        element = self.data.strides[0]
        return np.ndarray(
            pattern.array.shape[:-3] + self.data.shape[1:],
            self.dtype,
            self.data,
            (start + offset) * element,
            tuple(step * element for step in steps) + self.data.strides[1:],
        )

    def gather(self, pattern, offset):
        if self.data is None:
            return unknown(self.dtype)
        view = self.view(pattern, offset)
        if view is not None:
            return view
        index = np.full((1, 1, 1), offset) if pattern is None else pattern.array + offset
        index = np.clip(index, 0, len(self.data) - 1)
        if index.shape[-3:] == (1, 1, 1):
            return self.data[index[..., 0, 0, 0]]
        return self.data[(index, *self._lanes())]

    def _lanes(self):
        _, rows, columns, width = self.data.shape
        return np.arange(rows).reshape(-1, 1, 1), np.arange(columns).reshape(1, -1, 1), np.arange(width)

    def scatter(self, pattern, offset, value, mask):
        if self.data is None:
            return
        self.spread(np.shape(value), np.shape(mask.array), () if pattern is None else pattern.array.shape)
        view = self.view(pattern, offset)
        if view is None:
            index = pattern.array + offset
            if mask.array is None and index.shape[-3:] == (1, 1, 1):
                self.data[index[..., 0, 0, 0]] = value
            else:
                self._scatter_apart(index, value, mask)
        elif mask.array is None:
            view[...] = value
        else:
            np.copyto(view, value, casting="unsafe", where=mask.array)

    def _scatter_apart(self, index, value, mask):
        self.spread(mask.geometry.shape)
        shape = np.broadcast_shapes(index.shape, np.shape(value), np.shape(mask.array), self.data.shape[1:])
        active = np.ones(shape, bool) if mask.array is None else np.broadcast_to(mask.array, shape)
        lanes = active.nonzero()[-3:]
        self.data[(np.broadcast_to(index, shape)[active], *lanes)] = np.broadcast_to(value, shape)[active]

    def spread(self, *shapes):
        """Grow the lane axes to hold values of these shapes."""
        lanes = np.broadcast_shapes(self.data.shape[1:], *(s[-3:] for s in shapes))
        if lanes != self.data.shape[1:]:
            self.data = np.broadcast_to(self.data, self.data.shape[:1] + lanes).copy()

    def cells(self, geometry) -> np.ndarray:
        self.spread(geometry.shape)
        return self.data

    def cell(self, lane, index):
        return index, *lane[-3:]
