"""Allocates the emulated GPU's global memory, full of garbage so that reads of unwritten elements show."""

import functools
import itertools
import operator
import os
import weakref
from collections.abc import Callable

import numpy as np

from lockstep.launching.launch import MEMORY_LIMIT
from lockstep.memory import garbage

from .errors import OUT_OF_MEMORY, DriverError, unsupported


class Heap:
    """An allocator of up to ``capacity`` bytes. Memory is free again when the last view of it is deleted.

    ``before_use`` is called before each allocation, and may refuse it.
    """

    def __init__(self, capacity: int, before_use: Callable[[], None] = lambda: None):
        self.capacity, self.before_use, self.taken = capacity, before_use, 0
        self._blocks: dict[int, weakref.ref] = {}

    @property
    def free(self) -> int:
        return self.capacity - self.taken

    def allocate(self, shape, dtype, strides=None, order: str = "C") -> np.ndarray:
        """Return an array of device memory. It holds garbage, which is NaN for a dtype that has NaN.

        shape: an int or integers. strides: in bytes, or None for a contiguous array in C or Fortran
        ``order``. Raises DriverError if the memory is too small.
        """
        self.before_use()
        shape, dtype = _shape(shape), np.dtype(dtype)
        if dtype.hasobject:
            raise TypeError(f"device memory holds numbers and records, no Python objects ({dtype})")
        strides = _strides(strides, shape, dtype, order)
        size = extent(shape, strides, dtype.itemsize)
        array = np.ndarray(shape, dtype, self._block(size, filled=dtype.kind in "fcb"), 0, strides)
        if dtype.kind in "fc":
            array.fill(garbage.garbage_float(dtype))
        elif dtype.kind == "b":
            array.fill(True)
        return array

    def _block(self, size: int, filled: bool) -> np.ndarray:
        """Return new memory. It holds garbage, unless the caller says that it will be ``filled``."""
        if size > self.free:
            raise DriverError(
                OUT_OF_MEMORY,
                f"{size:,} bytes do not fit: the emulated GPU has {self.capacity:,} bytes of memory, "
                f"of which {self.taken:,} are taken",
            )
        if size > MEMORY_LIMIT or self.taken + size > _half_of_this_machine():
            raise unsupported(
                f"another {size:,} bytes of device memory are too many to emulate: they would lie in this "
                f"machine's memory, where {self.taken:,} are taken already. An array may have "
                f"{MEMORY_LIMIT:,} bytes, and all together half of what the machine has"
            )
        whole = np.empty(max(size, 1), np.uint8)
        if not filled:
            whole.fill(garbage.BYTE)
        self.taken += size
        address = whole.ctypes.data
        self._blocks[address] = weakref.ref(whole)
        weakref.finalize(whole, self._release, address, size)
        return whole

    def _release(self, address: int, size: int):
        self.taken -= size
        self._blocks.pop(address, None)

    def from_address(self, address: int, dtype) -> np.ndarray:
        """Return what lies from an address to the end of its allocation, in one dimension.

        Raises UnsupportedCall if the address is not in this memory.
        """
        dtype = np.dtype(dtype)
        for start, block in list(self._blocks.items()):
            whole = block()
            if whole is not None and start <= address < start + whole.size:
                length = (start + whole.size - address) // dtype.itemsize
                return np.ndarray(length, dtype, whole, address - start)
        raise unsupported("this address is not in the emulated GPU's memory, so no kernel can reach it here")

    def at(self, address: int, shape, dtype, strides=None) -> np.ndarray:
        """Return the array at an address, described as in ``__cuda_array_interface__``.

        Raises UnsupportedCall if the address is not in this memory.
        """
        shape, dtype = _shape(shape), np.dtype(dtype)
        strides = _strides(strides, shape, dtype, "C")
        size = extent(shape, strides, dtype.itemsize)
        for start, block in list(self._blocks.items()):
            whole = block()
            if whole is not None and start <= address and address + size <= start + whole.size:
                return np.ndarray(shape, dtype, whole, address - start, strides)
        if size == 0:
            return np.empty(shape, dtype)
        raise unsupported(
            "the memory of this array is not the emulated GPU's, so no kernel can reach it here"
        )


@functools.cache
def _half_of_this_machine() -> float:
    """Return half of the bytes of this machine's memory, or infinity where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2
    except (AttributeError, OSError, ValueError):
        return float("inf")


def _shape(shape) -> tuple[int, ...]:
    try:
        extents = [shape] if isinstance(shape, (int, np.integer)) else list(shape)
        return tuple(operator.index(extent) for extent in extents)
    except TypeError:
        raise TypeError(f"shape must be an integer or integers, not {shape!r}") from None


def _strides(strides, shape, dtype, order) -> tuple[int, ...]:
    if strides:
        return (strides,) if isinstance(strides, int) else tuple(strides)
    if order not in ("C", "F"):
        raise ValueError(f"order must be C or F, not {order!r}")
    extents = shape[::-1] if order == "C" else shape
    steps = tuple(itertools.accumulate(extents[:-1], operator.mul, initial=dtype.itemsize))[: len(shape)]
    return steps[::-1] if order == "C" else steps


def extent(shape, strides, itemsize) -> int:
    """Return the number of bytes that an array spans. Raises ValueError for a negative stride."""
    if not functools.reduce(operator.mul, shape, 1):
        return 0
    if any(step < 0 for step in strides):
        raise ValueError("device memory cannot be allocated for an array that runs backwards")
    return itemsize + sum((extent - 1) * step for extent, step in zip(shape, strides))
