"""Computes what a compiled kernel costs at least: the compiler may merge accesses or leave them out.

A report counts what the source says. A compiler may do less; following each thread shows the least:

* A thread may keep what it has loaded or stored in registers, until a barrier, ``syncwarp`` or a fence. Until
  then a further load of the same element costs nothing, and of several stores to it one is left.
* In shared memory, accesses of one thread to the same 16 bytes may become one; so may those to the last bytes
  of several arrays that do not fill 16. (Of arrays in global memory the compiler does not know where they
  start.)
* One access may serve lanes of a warp that are at different places of the source: both branches of an ``if``
  may end in one access. So between two barriers a warp costs at least as much as the dearest of its lanes.
* A load whose value is not needed, or only in a branch that it may be moved into, is left out: see
  :mod:`lockstep.reading.liveness`. So are stores to shared arrays that nothing reads.

Each of these can only lower the cost. So the result is a lower bound, as long as the lanes of a warp that
execute a line together in the source do so on the GPU.
"""

import math
from typing import NamedTuple

import numpy as np

from lockstep.errors import LaunchError
from lockstep.limits import WORD
from lockstep.values.geometry import WARP

from .counting import sectors_per_warp, wavefronts_per_warp

# At most MOST accesses of lanes are kept until the next barrier.
MOST = 1 << 24
# A thread accesses at most VECTOR bytes at once.
VECTOR = 16
COUNTS = ("requests", "sectors", "wavefronts")
# The hash of (memory, thread, epoch) is a sum of multiples of these random odd numbers, as good as unique.
_OF_MEMORY, _OF_THREAD, _OF_EPOCH = -0x61C8864680B583EB, -0x3D4D51C2D82B14B1, 0x165667B19E3779F9
# The last parts of shared arrays that fill no whole unit count as one unit, which has this number.
_OF_REMAINDERS = 0x27D4EB2F165667C5


class _Event(NamedTuple):
    """One access by several warps, with a row for each."""

    space: str
    op: str
    array: str
    # Each lane accesses `size` bytes.
    size: int
    # `family` is the serial number of the memory, and `nbytes` is the size of the memory.
    family: int
    nbytes: int
    # `addresses` (warps, 32) counts bytes from a multiple of 256, which decide the cost.
    addresses: np.ndarray
    # `places` (warps, 32) counts bytes from the start of the memory.
    places: np.ndarray
    # `keys` (warps, 32) has hashes of a thread and of the barriers that the thread has passed.
    keys: np.ndarray
    # `active` (warps, 32) tells which lanes make the access.
    active: np.ndarray
    # `warps` has the numbers of the warps, counted over the grid.
    warps: np.ndarray


class LowerBound:
    """A substitute for a watcher, which keeps all accesses up to a barrier and adds up the least they cost.

    ``least``: (space, op, array) -> the least requests, sectors and wavefronts. With None for the array it is
    the least of all arrays together, which may be less than the sum.
    """

    full = False

    def __init__(self, machine, needed: set):
        self._sites, self._needed = machine.sites, needed
        threads = math.prod(machine.grid) * math.prod(machine.block)
        self._epochs = np.zeros(threads + WARP + 1, np.int64)
        self._events: list[_Event] = []
        self._lanes = 0
        # `_sizes` maps the serial number of a memory to the sizes of the accesses to it.
        self._sizes: dict[int, set] = {}
        # `_read` has the names of the shared arrays that are read.
        self._read: set = set()
        self.least: dict[tuple, np.ndarray] = {}

    # ---- what the machine tells ----

    def record(self, machine, access, _):
        storage = access.storage
        if storage.space == "shared" and access.op != "store":
            self._read.add(access.name)
        if access.op not in ("load", "store") or storage.space not in ("global", "shared"):
            return
        site = self._sites[access.site]
        if (site.file, site.line, site.column) not in self._needed:
            return
        size = storage.dtype.itemsize * access.width
        parts = 1
        if storage.dtype.kind == "c" and storage.space == "global":
            parts, size = 2 * access.width, storage.dtype.itemsize // 2
        for part in range(parts):
            self._note(machine, access, size, part * size)

    def record_barrier(self, machine, site):
        """Do nothing, because barriers are counted elsewhere."""

    def ordered(self, machine):
        """Forget what the active lanes have loaded and stored, because they pass a barrier or a fence."""
        if machine.unit.mask is machine.chunk.geometry.all_threads and not machine.apart:
            self.settle()
            return
        self._epochs[machine.active_ids().astype(np.int64)] += 1

    # ---- what is kept until the next barrier ----

    def _note(self, machine, access, size, shift):
        geometry, storage = machine.chunk.geometry, access.storage
        active = np.broadcast_to(True if access.mask.array is None else access.mask.array, geometry.shape)
        active = active.reshape(-1, WARP)
        busy = active.any(axis=1)
        # Every lane was out of bounds, so there is nothing to note.
        if not busy.any():
            return
        offset = np.broadcast_to(access.pattern.array + access.offset, geometry.shape).reshape(-1, WARP)[busy]
        places = offset * storage.dtype.itemsize + shift
        threads = (
            np.broadcast_to(machine.chunk.thread_ids(), geometry.shape)
            .reshape(-1, WARP)[busy]
            .astype(np.int64)
        )
        keys = threads * _OF_THREAD + self._epochs[threads] * _OF_EPOCH
        event = _Event(
            *(storage.space, access.op, access.name, size, storage.serial, storage.block.nbytes),
            *(places + storage.origin, places + storage.lead, keys, active[busy], threads[:, 0]),
        )
        self._events.append(event)
        self._sizes.setdefault(storage.serial, set()).add(size)
        self._lanes += active.size
        if self._lanes > MOST:
            raise LaunchError(
                f"as_compiled follows up to {MOST:,} accesses of threads from one barrier to the next, and "
                "this launch has more: pass smaller arrays, or leave out as_compiled"
            )

    def settle(self):
        """Add up the least cost of all that has been kept."""
        for space in ("global", "shared"):
            events = [event for event in self._events if event.space == space]
            if events:
                self._add(events, self._left(events))
        self._events, self._lanes = [], 0

    def _add(self, events, left):
        ends = np.cumsum([len(event.warps) for event in events], dtype=np.int64)[:-1]
        charges: dict[tuple, list] = {}
        for event, lanes in zip(events, np.split(left, ends)):
            cost = _costs(event, lanes)
            for array in (event.array, None):
                charges.setdefault((event.space, event.op, array), []).append((event.warps, lanes, cost))
        for what, charged in charges.items():
            warps, lanes, costs = (np.concatenate(parts) for parts in zip(*charged))
            self.least[what] = self.least.get(what, 0) + _of_costliest_lanes(warps, lanes, costs)

    # ---- what the compiler cannot leave out ----

    def _left(self, events) -> np.ndarray:
        """Return which lanes must still access memory: booleans, (warps of all events, 32)."""
        active = np.concatenate([event.active for event in events])
        vectors = np.concatenate([self._units(event, vectors=event.space == "shared") for event in events])
        elements = np.concatenate([self._units(event) for event in events])
        stores = np.repeat([event.op == "store" for event in events], [len(e.warps) for e in events])
        where = np.flatnonzero(active)
        vectors, elements = vectors.reshape(-1)[where], elements.reshape(-1)[where]
        is_store = stores[where // WARP]
        stored, loaded = np.flatnonzero(is_store), np.flatnonzero(~is_store)
        loaded = loaded[~_found_before(elements, loaded, stored)]
        left = np.zeros(active.shape, bool)
        for those in (stored, loaded):
            first = np.unique(vectors[those], return_index=True)[1]
            left.reshape(-1)[where[those[first]]] = True
        return left

    def _units(self, event, vectors=False):
        """Return a number for each lane, the same where thread, epoch, memory and its unit are the same."""
        mixed = len(self._sizes[event.family]) > 1  # Accesses of several sizes may overlap.
        unit = max(VECTOR, event.size) if vectors or mixed else event.size
        units = event.places // unit + np.array([event.family], np.int64) * _OF_MEMORY
        # Another array may begin in the last unit of this memory, if the memory does not fill it.
        if vectors and event.nbytes % unit:
            units = np.where(event.places // unit == event.nbytes // unit, _OF_REMAINDERS, units)
        return event.keys + units

    def finish(self):
        """Settle what is left, and drop stores to shared arrays that nothing reads: all blocks have ended."""
        self.settle()
        stores = [what for what in self.least if what[:2] == ("shared", "store") and what[2] is not None]
        unread = [what for what in stores if what[2] not in self._read]
        for what in unread:
            del self.least[what]
        # All other arrays together cost at least as much as the costliest of them.
        if unread:
            rest = [self.least[what] for what in stores if what not in unread]
            self.least["shared", "store", None] = np.max([np.zeros(len(COUNTS), np.int64), *rest], axis=0)


def _found_before(codes, these, those):
    """Return for each of ``these`` positions whether its code is at an earlier one of ``those`` positions."""
    if not len(those):
        return np.zeros(len(these), bool)
    known, first = np.unique(codes[those], return_index=True)
    nearest = np.minimum(np.searchsorted(known, codes[these]), len(known) - 1)
    return (known[nearest] == codes[these]) & (those[first][nearest] < these)


def _costs(event, lanes) -> np.ndarray:
    """Return requests, sectors and wavefronts of each warp, (warps, 3)."""
    costs = np.zeros((len(lanes), len(COUNTS)), np.int64)
    busy = lanes.any(axis=1)
    costs[busy, 0] = 1
    if event.space == "global":
        costs[busy, 1] = sectors_per_warp(event.addresses[busy], lanes[busy], event.size)
    else:
        words = event.addresses[busy] // WORD
        costs[busy, 2] = wavefronts_per_warp(words, lanes[busy], event.size * 8, event.op)
    return costs


def _of_costliest_lanes(warps, lanes, costs) -> np.ndarray:
    """Return what the accesses of each warp's costliest lane cost, summed over the warps, for each count."""
    _, row = np.unique(warps, return_inverse=True)
    sums = np.zeros((len(COUNTS), row.max() + 1, WARP), np.int64)
    for count, cost in zip(sums, costs.T):
        np.add.at(count, row, cost[:, None] * lanes)
    return sums.max(axis=2).sum(axis=1, dtype=np.int64)
