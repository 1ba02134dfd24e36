"""Holds the values of global, shared and local memory, and reads and writes them for lanes."""

from functools import cache
from itertools import count

import numpy as np

from lockstep.values.lanes import Lanes, Pattern

_serials = count(1)


class DeviceArray:
    """An array as a kernel sees it, or a view of one: ``acc[i]`` of a two-dimensional ``acc``.

    ``pattern`` and ``offset`` locate its first element inside the storage, ``strides`` the others, counted in
    elements. An extent in ``shape`` is a Lanes where it differs from lane to lane. ``layout`` is Numba's:
    "C", "F" or, for anything else, "A". ``escapes``: see :class:`Escape`. ``rows``: the views that a kernel
    has taken of a thread's own array so far, by their index.
    """

    _GIVEN = ("name", "storage", "dtype", "shape", "strides", "pattern", "offset", "layout", "escapes")
    __slots__ = (*_GIVEN, "rows")

    def __init__(
        self, name, storage, dtype, shape, strides=None, pattern=None, offset=0, layout="C", escapes=()
    ):
        self.name, self.storage, self.dtype, self.shape = name, storage, np.dtype(dtype), tuple(shape)
        self.strides = row_major(self.shape) if strides is None else strides
        self.pattern, self.offset = pattern, offset
        self.layout, self.escapes, self.rows = layout, escapes, {}

    @property
    def space(self) -> str:
        return self.storage.space

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    def changed(self, **values) -> "DeviceArray":
        """Return the same array with other values of some attributes."""
        return DeviceArray(**({name: getattr(self, name) for name in self._GIVEN} | values))

    def in_each_lane(self, change) -> "DeviceArray":
        """Return the array with ``change(lanes)`` in place of everything that differs from lane to lane."""
        if self.pattern is None and not self.escapes and all(type(extent) is int for extent in self.shape):
            return self
        start = None if self.pattern is None else change(Lanes(self.pattern, self.offset))
        return self.changed(
            pattern=None if start is None else start.pattern,
            offset=self.offset if start is None else start.offset,
            shape=tuple(change(extent) if type(extent) is Lanes else extent for extent in self.shape),
            escapes=tuple(escape._replace(lanes=change(escape.lanes)) for escape in self.escapes),
        )


class ChosenArray:
    """A variable that holds one array in some lanes and another array in others: ``s = a if i % 2 else b``.

    ``which``: the position in ``arrays`` of each lane's array. An access goes to each of the arrays under the
    mask of the lanes that hold it, and is counted like that: one request per array and warp. On a GPU it is a
    single request of generic addresses, so where lanes of one warp hold different arrays, the emulator counts
    more requests than the hardware, and the same sectors.
    """

    __slots__ = ("arrays", "which")
    # The lanes may hold arrays of different storages.
    storage = None

    def __init__(self, arrays: tuple, which: Pattern):
        self.arrays, self.which = arrays, which

    @property
    def name(self) -> str:
        return " or ".join(dict.fromkeys(array.name for array in self.arrays))

    @property
    def dtype(self) -> np.dtype:
        return self.arrays[0].dtype

    @property
    def ndim(self) -> int:
        return self.arrays[0].ndim

    def lanes(self, position: int) -> Lanes:
        """Return which lanes hold the array at this position."""
        here = self.which.derive(("==", position), lambda: self.which.array == position)
        return Lanes(here, 0, np.dtype(np.bool_))


ARRAYS = (DeviceArray, ChosenArray)


class FlatView:
    """The ``flat`` of an array with gaps or in another order: its elements row by row, under one index."""

    __slots__ = ("array",)

    def __init__(self, array: DeviceArray):
        self.array = array


def row_major(shape: tuple) -> tuple:
    """Return the strides of a C-contiguous array, in elements."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


class Unknown(np.ndarray):
    """A number that was never loaded: counting without running knows types, not values."""


class Unbound:
    """The value of a variable before its first assignment."""


@cache
def unknown(dtype) -> Unknown:
    """Return the read-only number that stands for all numbers of which only this type is known."""
    number = np.zeros((), dtype).view(Unknown)
    number.flags.writeable = False
    return number


def affine(pattern: Pattern) -> tuple | None:
    """Return (start, steps along the batch axes) of a pattern differing only between batched iterations."""
    return pattern.remember("affine", lambda: _affine(pattern.array))


def _affine(array: np.ndarray) -> tuple | None:
    if array.shape[-3:] != (1, 1, 1):
        return None
    grid = array[..., 0, 0, 0]
    start = int(grid.flat[0])
    steps = tuple(
        int(np.take(grid, 1, axis).flat[0]) - start if n > 1 else 0 for axis, n in enumerate(grid.shape)
    )
    rebuilt = np.full(grid.shape, start, np.int64)
    for axis, step in enumerate(steps):
        along_axis = [-1 if a == axis else 1 for a in range(grid.ndim)]
        rebuilt = rebuilt + (np.arange(grid.shape[axis], dtype=np.int64) * step).reshape(along_axis)
    return (start, steps) if (rebuilt == grid).all() else None


def flat_view(array: np.ndarray, size: int) -> np.ndarray:
    """Return the memory of an array from its first to its last element, gaps included."""
    return np.lib.stride_tricks.as_strided(array, (size,), (array.itemsize,))


class Block:
    """The bytes behind one storage, or behind several that show the same memory with dtypes of their own.

    Shadow memory records accesses per cell of ``unit`` bytes. An element of any of the storages consists of
    whole cells, so accesses through different storages meet. ``serial`` identifies the memory.
    """

    __slots__ = ("serial", "unit", "nbytes")

    def __init__(self, unit: int, nbytes: int):
        self.serial = next(_serials)
        self.unit, self.nbytes = unit, nbytes

    @property
    def size(self) -> int:
        """Return the number of cells."""
        return self.nbytes // self.unit


class Storage:
    """A memory that holds an array. ``serial`` identifies the memory; ``shape`` is the declared array's.

    A storage starts ``lead`` bytes into its block, and ``origin`` bytes after a multiple of 256 bytes.
    """

    space = ""
    origin = 0
    # A storage that shows the memory of another storage with its own dtype has that storage as its base.
    base = None
    # If the last dimension of the declared array has the units of records, `record` is the records' dtype.
    record = None
    # `overlaps_itself` tells whether two indices of the declared array share an element.
    overlaps_itself = False

    def __init__(self, dtype, shape, strides=None, block=None, lead=0):
        self.dtype, self.shape = np.dtype(dtype), tuple(shape)
        self.strides = row_major(self.shape) if strides is None else strides
        self.size = _reach(self.shape, self.strides)
        self.block = block or Block(self.dtype.itemsize, self.size * self.dtype.itemsize)
        self.serial, self.lead = self.block.serial, lead
        # A kernel's own array has its site as its slot instead, in all blocks.
        self.slot = self.serial
        # The storage starts at a multiple of `alignment` bytes.
        self.alignment = self.dtype.itemsize
        self._retyped: dict = {}

    @property
    def family(self):
        """Return the slot of the declared array, whatever the dtype of this storage."""
        return self.slot

    def retyped(self, dtype: np.dtype) -> "Storage":
        """Return the same memory as elements of another dtype."""
        whole = self.base or self
        if dtype == whole.dtype:
            return whole
        if dtype not in whole._retyped:
            whole._retyped[dtype] = whole._alias(dtype)
        return whole._retyped[dtype]

    def element(self, position: int) -> tuple:
        """Return the index in the declared array of the element at a position in this storage."""
        return self.elements(np.array([position], np.int64))[0]

    def elements(self, positions: np.ndarray) -> list[tuple]:
        """Return the indices in the declared array of the elements at these positions in this storage."""
        if self.base is not None and self.base.record is not None:
            return self.base.elements(positions * self.dtype.itemsize // self.base.dtype.itemsize)
        rest, index = positions, [np.zeros_like(positions)] * len(self.shape)
        for axis in sorted(range(len(index)), key=lambda axis: -abs(self.strides[axis])):
            extent, step = self.shape[axis], self.strides[axis]
            if step:
                index[axis] = np.minimum(rest // abs(step), extent - 1)
                rest = rest - index[axis] * abs(step)
            if step < 0:
                index[axis] = extent - 1 - index[axis]
        found = [numbers.tolist() for numbers in index]
        if self.record is not None:
            found[-1] = [place_in_record(self.record, unit * self.dtype.itemsize) for unit in found[-1]]
        return list(zip(*found)) if found else [()] * len(positions)

    # ---- cells of the block ----

    @property
    def parts(self) -> int:
        """Return the number of cells per element."""
        return self.dtype.itemsize // self.block.unit

    def in_cells(self, elements: np.ndarray, threads: np.ndarray) -> tuple:
        """Return the cells of these elements, and for each the thread that accesses it."""
        parts = self.parts
        if parts == 1 and not self.lead:
            return elements, threads
        cells = elements * parts + self.lead // self.block.unit
        if parts > 1:
            cells = (cells[:, None] + np.arange(parts, dtype=np.int64)).reshape(-1)
            threads = np.repeat(threads, parts)
        return cells, threads

    def element_of_cell(self, cell: int) -> int:
        return (cell - self.lead // self.block.unit) // self.parts


def place_in_record(record: np.dtype, offset: int) -> str:
    """Return how a kernel writes the number at an offset in a record, after the record: ``.position.x``."""
    for name, (kind, start, *_) in record.fields.items():
        if start <= offset < start + kind.itemsize:
            position, inner = divmod(offset - start, kind.base.itemsize)
            index = f"[{', '.join(map(str, np.unravel_index(position, kind.shape)))}]" if kind.shape else ""
            return f".{name}{index}{place_in_record(kind.base, inner) if kind.base.names else ''}"
    return ""


def _reach(shape: tuple, strides: tuple) -> int:
    """Return the number of elements from the lowest to the highest address of an array, gaps included."""
    if 0 in shape:
        return 0
    return 1 + sum((extent - 1) * abs(step) for extent, step in zip(shape, strides))


def _overlaps_itself(shape: tuple, strides: tuple) -> bool:
    """Return whether two indices share an element, as in views from broadcast_to or as_strided."""
    reach = 0
    for step, extent in sorted((abs(step), extent) for step, extent in zip(strides, shape) if extent > 1):
        if step <= reach:
            return True
        reach += step * (extent - 1)
    return False


class GlobalStorage(Storage):
    """Global memory: one NumPy array for the whole grid, flat as in memory.

    ``first`` is the position of the first element. It is above 0 only if an axis runs backwards.
    """

    space = "global"

    def __init__(self, array: np.ndarray, counts_only: bool, block=None, lead=0):
        strides = None
        # A launch that only counts may get one number that stands for a whole array.
        virtual = counts_only and not any(array.strides)
        if not array.flags.c_contiguous and not virtual:
            strides = tuple(step // array.itemsize for step in array.strides)
        super().__init__(array.dtype, array.shape, strides, block, lead)
        steps = zip(self.shape, self.strides)
        self.first = sum((extent - 1) * -step for extent, step in steps if step < 0) if self.size else 0
        self.data = None if counts_only else flat_view(upwards(array), self.size)
        self.writeable = array.flags.writeable
        self.overlaps_itself = strides is not None and _overlaps_itself(self.shape, strides)

    def _alias(self, dtype):
        return RetypedGlobal(self, dtype)

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
        """Return all elements, to be updated lane by lane. :meth:`cell` gives a lane's element."""
        return self.data

    def cell(self, lane, index):
        return index


class RetypedGlobal(GlobalStorage):
    """Global memory as elements of another dtype: ``x.view(int32)``."""

    def __init__(self, base: GlobalStorage, dtype: np.dtype):
        count = base.size * base.dtype.itemsize // dtype.itemsize
        base.block.unit = int(np.gcd(base.block.unit, dtype.itemsize))
        Storage.__init__(self, dtype, (count,), None, base.block, base.lead)
        self.base, self.origin, self.writeable, self.first = base, base.origin, base.writeable, 0
        self.overlaps_itself = base.overlaps_itself
        self.data = None
        if base.data is not None:
            self.data = base.data.view(np.uint8)[: count * dtype.itemsize].view(dtype)

    def elements(self, positions):
        """Return the indices as in the base class, but for a part of a complex number that of the whole
        number.
        """
        if self.base.dtype.kind == "c" and self.dtype.itemsize * 2 == self.base.dtype.itemsize:
            return self.base.elements(positions // 2)
        return super().elements(positions)


def upwards(array: np.ndarray) -> np.ndarray:
    """Return a view in which no axis runs backwards, so that its first element has the lowest address."""
    if all(step >= 0 for step in array.strides):
        return array
    return array[tuple(slice(None, None, -1) if step < 0 else slice(None) for step in array.strides)]


class ConstantStorage(GlobalStorage):
    """Constant memory: an array of the module or of the closure, as it is when the kernel is launched."""

    space = "constant"


class Constant:
    """A NumPy array from outside a kernel, which Numba puts into constant memory."""

    __slots__ = ("array",)

    def __init__(self, array: np.ndarray):
        self.array = array

    def in_kernel(self, name: str, counts_only: bool = False) -> DeviceArray:
        array = self.array.copy(order="A")
        array.flags.writeable = False
        storage = ConstantStorage(array, counts_only)
        return DeviceArray(name, storage, array.dtype, array.shape, storage.strides, layout=layout_of(array))


def layout_of(array: np.ndarray) -> str:
    """Return Numba's layout of an argument: "C", "F" or "A"."""
    return "C" if array.flags.c_contiguous else "F" if array.flags.f_contiguous else "A"


def garbage_of(dtype: np.dtype):
    """Return what memory holds before anything is written to it: NaN where the dtype has one."""
    return {"f": np.nan, "c": complex(np.nan, np.nan)}.get(dtype.kind, 0)


def _joint(lanes: tuple, *arrays) -> tuple:
    return np.broadcast_shapes(lanes, *(np.shape(a) for a in arrays))


class SharedStorage(Storage):
    """Shared memory: one array per block, stored as (block_y, block_x, element).

    The block axes stay at length 1 while every block of a row (or column) holds the same values, as a tile
    of A does for all blocks in one row of C.
    """

    space = "shared"

    def __init__(self, dtype, shape, counts_only: bool):
        super().__init__(dtype, shape)
        garbage = garbage_of(self.dtype)
        self.data = None if counts_only else np.full((1, 1, max(self.size, 1)), garbage, self.dtype)

    def _alias(self, dtype):
        return RetypedShared(self, dtype)

    def gather(self, pattern, offset):
        if self.data is None:
            return unknown(self.dtype)
        if pattern is None:
            return self.data[:, :, min(max(offset, 0), self.data.shape[2] - 1)][:, :, None]
        index = pattern.array
        if index.shape[-3] == 1 and index.shape[-2] == 1:
            return self._gather_alike(pattern, offset)
        rows = np.arange(self.data.shape[0], dtype=np.int64).reshape(-1, 1, 1)
        columns = np.arange(self.data.shape[1], dtype=np.int64).reshape(1, -1, 1)
        return self.data[rows, columns, np.clip(index + offset, 0, self.data.shape[2] - 1)]

    def _gather_alike(self, pattern, offset):
        """Read the same elements for all blocks."""
        index = pattern.array
        flat = index.reshape(index.shape[:-3] + index.shape[-1:])
        data = self.data
        if 0 <= offset < data.shape[2] and pattern.low >= 0:
            data = data[:, :, offset:]
        else:
            flat = flat + offset
        taken = data.take(flat, axis=2, mode="clip")
        # The batch axes go in front of the block axes.
        for axis in range(flat.ndim - 1):
            taken = np.moveaxis(taken, 2 + axis, axis)
        return taken

    def scatter(self, pattern, offset, value, mask):
        if self.data is None:
            return
        index = np.full((1, 1, 1), offset, np.int64) if pattern is None else pattern.array + offset
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
        """Give each block a copy of its own along the axes on which values of these shapes differ."""
        lanes = np.broadcast_shapes(*(s[-3:-1] for s in shapes if len(s) >= 3), self.data.shape[:2])
        if lanes != self.data.shape[:2]:
            self.data = np.broadcast_to(self.data, lanes + self.data.shape[2:]).copy()

    def _scatter_alike(self, index, value):
        """Write the same elements for all blocks.

        If batched iterations write one element, the last one wins.
        """
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
    """A thread's own array (registers): (element, block_y, block_x, thread). The lane axes grow as needed."""

    space = "local"

    def __init__(self, dtype, shape, counts_only: bool):
        super().__init__(dtype, shape)
        garbage = garbage_of(self.dtype)
        self.data = None if counts_only else np.full((max(self.size, 1), 1, 1, 1), garbage, self.dtype)

    def view(self, pattern, offset) -> np.ndarray | None:
        """Return the elements without a copy, or None if lanes access different ones."""
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

    def _alias(self, dtype):
        return RetypedLocal(self, dtype)

    def gather(self, pattern, offset):
        if self.data is None:
            return unknown(self.dtype)
        view = self.view(pattern, offset)
        if view is not None:
            return view
        index = np.full((1, 1, 1), offset, np.int64) if pattern is None else pattern.array + offset
        index = np.clip(index, 0, len(self.data) - 1)
        if index.shape[-3:] == (1, 1, 1):
            return self.data[index[..., 0, 0, 0]]
        return self.data[(index, *self._lanes())]

    def _lanes(self):
        rows, columns, lanes = (np.arange(length, dtype=np.int64) for length in self.data.shape[1:])
        return rows.reshape(-1, 1, 1), columns.reshape(1, -1, 1), lanes

    def scatter(self, pattern, offset, value, mask):
        if self.data is None:
            return
        # NumPy refuses an integer that the dtype cannot hold; a GPU keeps the low bits.
        if type(value) is int:
            value = np.int64(value).astype(self.dtype)
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


class RetypedShared(SharedStorage):
    """Shared memory as elements of another dtype; the values are those of ``base``."""

    def __init__(self, base: SharedStorage, dtype: np.dtype):
        count = base.size * base.dtype.itemsize // dtype.itemsize
        base.block.unit = int(np.gcd(base.block.unit, dtype.itemsize))
        Storage.__init__(self, dtype, (count,), None, base.block, base.lead)
        self.base, self.alignment = base, base.alignment
        self.slot = (base.slot, dtype.char)

    @property
    def family(self):
        return self.base.family

    @property
    def data(self):
        values = self.base.data
        return values if values is None else values.view(self.dtype)

    @data.setter
    def data(self, values):
        self.base.data = values.view(self.base.dtype)


class RetypedLocal(LocalStorage):
    """A thread's local array as elements of another dtype of the same size."""

    def __init__(self, base: LocalStorage, dtype: np.dtype):
        Storage.__init__(self, dtype, base.shape, None, base.block, base.lead)
        self.base = base
        self.slot = (base.slot, dtype.char)

    @property
    def data(self):
        values = self.base.data
        return values if values is None else values.view(self.dtype)

    @data.setter
    def data(self, values):
        self.base.data = values.view(self.base.dtype)


def wrong_number_of_indices(array: DeviceArray, index: tuple) -> str:
    dimensions = f"{array.ndim} dimension" + "s" * (array.ndim != 1)
    given = "1 index is" if len(index) == 1 else f"{len(index)} indices are"
    few = ": that is a part of the array, and this needs one element" if len(index) < array.ndim else ""
    return f"{array.name} has {dimensions}, but {given} given{few}"
