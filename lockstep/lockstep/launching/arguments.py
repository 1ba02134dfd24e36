"""Places the arrays of a launch in memory as on a GPU, where arrays that overlap share their bytes.

Every argument keeps its dtype, shape and strides. Nothing is written to the caller's memory before the kernel
has finished. Until then the kernel works on a copy of each array that it may store to. Arguments that overlap
share one copy.
"""

from math import gcd

import numpy as np

from lockstep.memory.storage import Block, DeviceArray, GlobalStorage, flat_view, layout_of, upwards
from lockstep.races.shadow import GlobalRaces


class Arguments:
    """The arrays among the arguments of one launch.

    ``races``: number of a memory block -> its :class:`GlobalRaces`. ``results``: (caller's memory, copy) of
    each array that the kernel may store to.
    """

    def __init__(self, counts_only: bool):
        self.counts_only = counts_only
        self.races: dict[int, GlobalRaces] = {}
        self.results: list[tuple[np.ndarray, np.ndarray]] = []
        # `_given` maps a key to (array, whether the kernel may store to it).
        self._given: dict = {}
        self._storages: dict = {}

    def add(self, array: np.ndarray, stored: bool):
        """Add an argument. ``stored``: whether the kernel may store to it."""
        known = self._given.get(_key(array))
        self._given[_key(array)] = array, stored or (known is not None and known[1])

    def bytes_needed(self) -> int:
        """Return the number of bytes of the copies and of their shadow memory."""
        return sum(a.nbytes + a.size * GlobalRaces.BYTES for a, stored in self._given.values() if stored)

    def place(self):
        """Find out which arguments overlap, and give each argument its memory."""
        for members in _overlapping([array for array, _ in self._given.values()]):
            self._place_together(members)

    def device_array(self, name: str, array: np.ndarray) -> DeviceArray:
        """Return an argument as the kernel sees it."""
        storage = GlobalStorage(array, True) if self.counts_only else self._storages[_key(array)]
        if self.counts_only:
            storage.origin = _origin(array)
        return DeviceArray(
            name, storage, array.dtype, array.shape, storage.strides, None, storage.first, layout_of(array)
        )

    def _place_together(self, members: list):
        """Give one memory to arrays that overlap, each directly or through others."""
        low = min(map(_address, members))
        block = None
        if len(members) > 1:
            starts = [_address(array) - low for array in members]
            nbytes = max(start + _span(array) for start, array in zip(starts, members))
            unit = gcd(*starts, *(array.itemsize for array in members))
            block = Block(unit, nbytes)
        storages = [
            GlobalStorage(array, False, block, 0 if block is None else _address(array) - low)
            for array in members
        ]
        for array, storage in zip(members, storages):
            storage.origin = _origin(array)
            self._storages[_key(array)] = storage
        if any(self._given[_key(array)][1] for array in members):
            self._copy(members, storages)

    def _copy(self, members, storages):
        block = storages[0].block
        memory = _bytes_of(members, storages, block).copy()
        for array, storage in zip(members, storages):
            original = storage.data
            end = storage.lead + storage.size * storage.dtype.itemsize
            storage.data = memory[storage.lead : end].view(storage.dtype)
            if self._given[_key(array)][1] and storage.writeable:
                self.results.append((original, storage.data))
        self.races[block.serial] = GlobalRaces(block)


def _bytes_of(members, storages, block) -> np.ndarray:
    """Return the bytes of a block in the caller's memory."""
    lowest = min(range(len(members)), key=lambda position: storages[position].lead)
    first = storages[lowest].data.view(np.uint8)
    return first if len(members) == 1 else flat_view(first, block.nbytes)


def _key(array: np.ndarray) -> tuple:
    address = array.__array_interface__["data"][0]
    return address, array.shape, array.strides, array.dtype, array.flags.writeable


def _address(array: np.ndarray) -> int:
    """Return the address of an array's lowest byte."""
    return upwards(array).__array_interface__["data"][0]


def _span(array: np.ndarray) -> int:
    """Return the number of bytes from an array's lowest to its highest address, gaps included."""
    if not array.size:
        return 0
    reach = sum((extent - 1) * abs(step) for extent, step in zip(array.shape, array.strides))
    return reach + array.itemsize


def _origin(array: np.ndarray) -> int:
    """Return the distance in bytes of an array from the start of the memory that it is a view of.

    A GPU's allocator aligns that start.
    """
    owner = array
    while hasattr(getattr(owner, "base", None), "__array_interface__"):
        owner = owner.base
    start = owner.__array_interface__["data"][0]
    return max(_address(array) - start, 0)


def _overlapping(arrays: list) -> list[list]:
    """Return the arrays in groups. Arrays whose bytes overlap, directly or through others, share a group."""
    groups, end = [], -1
    for array in sorted(filter(_span, arrays), key=_address):
        start = _address(array)
        if start < end:
            groups[-1].append(array)
        else:
            groups.append([array])
        end = max(end, start + _span(array))
    return groups + [[array] for array in arrays if not _span(array)]
