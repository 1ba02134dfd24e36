"""Counts how often each access and operation happened, and adds up requests, sectors and wavefronts."""

import math
from typing import NamedTuple

import numpy as np

from .counting import MATRIX_LOAD, WARP, WORD, global_cost, shared_cost

# With more than _SETTLE_AT different entries, costs are computed, so that old patterns can be freed.
_SETTLE_AT = 2048


class AccessKey(NamedTuple):
    """A key of what decides the cost of an access. ``pattern`` and ``mask`` are serial numbers."""

    space: str
    op: str
    site: int
    slot: object
    pattern: int
    # `residue` is the first address in bytes, modulo the period of the cost.
    residue: int
    mask: int
    # Each lane accesses `width` elements.
    width: int
    # `batch` has the lengths of the loops whose iterations run at once.
    batch: tuple


class OperationsKey(NamedTuple):
    """A key of what decides how many operations a line does. ``mask`` is a serial number."""

    site: int
    op: str
    dtype: str
    mask: int
    batch: tuple
    per_lane: int


class BarrierKey(NamedTuple):
    site: int
    mask: int
    batch: tuple


class MovedKey(NamedTuple):
    """A key of what TMA or wgmma moves, with the cost, which needs no addresses."""

    site: int
    array: str
    space: str
    op: str
    bits: int
    costs: tuple


class Accesses(NamedTuple):
    """Accesses that a report shows in one row."""

    site: int
    array: str
    space: str
    op: str
    bits: int


class Operations(NamedTuple):
    """Arithmetic that a report shows in one row."""

    site: int
    op: str
    dtype: str


class Tally:
    """A tally of accesses and arithmetic by what decides their cost, which computes each cost once.

    ``keep``: keep the entries, because skipped iterations may still be added to them.
    ``accesses``: :class:`Accesses` -> the counts of :func:`access_cost`, summed;
    ``arithmetic``: :class:`Operations` -> their number, summed over lanes; ``barriers``: site -> barriers
    executed, summed over blocks.
    """

    def __init__(self, keep=False):
        self._keep = keep
        self._pending: dict = {}
        self._costs: dict = {}
        self.accesses: dict = {}
        self.arithmetic: dict = {}
        self.barriers: dict = {}

    def add(self, key, payload):
        entry = self._pending.get(key)
        if entry is not None:
            entry[0] += 1
            return
        if len(self._pending) > _SETTLE_AT and not self._keep:
            self.settle()
        self._pending[key] = [1, payload]

    def add_again(self, key, weight):
        self._pending[key][0] += weight

    def finish(self):
        """Compute all costs and free the patterns and arrays: nothing more will be counted."""
        self.settle()
        self._pending.clear()
        self._costs.clear()

    def settle(self):
        """Compute the cost of everything tallied so far."""
        for key, entry in self._pending.items():
            times, payload = entry
            if not times:
                continue
            entry[0] = 0
            _SETTLE[type(key)](self, key, times, payload)
        if len(self._pending) > _SETTLE_AT and not self._keep:
            self._pending.clear()
            self._costs.clear()

    def _settle_moved(self, key: MovedKey, times, _):
        row = self.accesses.setdefault(Accesses(*key[:-1]), np.zeros(7, np.int64))
        row += np.multiply(key.costs, times, dtype=np.int64)

    def _settle_operations(self, key: OperationsKey, times, mask):
        row = Operations(key.site, key.op, key.dtype)
        done = times * key.per_lane * mask.active(key.batch)
        self.arithmetic[row] = self.arithmetic.get(row, 0) + done

    def _settle_barrier(self, key: BarrierKey, times, mask):
        blocks = _blocks(mask) if mask.array is None else mask.active(key.batch) // mask.geometry.threads
        self.barriers[key.site] = self.barriers.get(key.site, 0) + times * blocks

    def _settle_access(self, key: AccessKey, times, payload):
        cost = self._costs.get(key)
        if cost is None:
            cost = self._costs[key] = access_cost(key, *payload)
        array = payload[0]
        kind = "load" if key.op == MATRIX_LOAD else key.op
        slot = Accesses(key.site, array.name, key.space, kind, key.width * array.dtype.itemsize * 8)
        row = self.accesses.get(slot)
        if row is None:
            row = self.accesses[slot] = np.zeros(7, np.int64)
        row += np.multiply(cost, times, dtype=np.int64)


_SETTLE = {
    AccessKey: Tally._settle_access,
    OperationsKey: Tally._settle_operations,
    BarrierKey: Tally._settle_barrier,
    MovedKey: Tally._settle_moved,
}


def _blocks(mask) -> int:
    return mask.geometry.rows * mask.geometry.columns


def access_cost(key: AccessKey, array, pattern, residue, mask) -> tuple:
    """Return the cost of one access by all blocks that run together.

    Returns (requests, lanes, bytes, sectors, lines, wavefronts, ideal wavefronts).
    """
    space, op, width, batch = key.space, key.op, key.width, key.batch
    size = array.dtype.itemsize * width
    if space in ("local", "constant"):
        lanes = mask.active(batch)
        return _requests(mask, batch), lanes, lanes * size, 0, 0, 0, 0
    units, active, repeats = _rows(array, pattern, residue, mask, batch)
    if space == "global":
        cost = global_cost(units, active, size, aligned=width == 1)
        totals = (cost.requests, cost.lanes, cost.lanes * size, cost.sectors, cost.lines, 0, 0)
    else:
        cost = shared_cost(units // WORD, active, size * 8, op)
        totals = (cost.requests, cost.lanes, cost.lanes * size, 0, 0, cost.wavefronts, cost.ideal)
    return tuple(total * repeats for total in totals)


def _rows(array, pattern, residue, mask, batch):
    """Return byte addresses (warps, 32), the active lanes, and how often this set of warps is repeated."""
    geometry = mask.geometry
    addresses = pattern.array * array.dtype.itemsize + residue
    shape = np.broadcast_shapes(addresses.shape, np.shape(mask.array), (1, 1, geometry.width))
    repeats, rest = divmod(geometry.lanes * math.prod(batch), math.prod(shape))
    if rest or not repeats:
        raise AssertionError("an access has more lanes than the iterations and blocks that run together")
    active = None if mask.array is None else np.broadcast_to(mask.array, shape)
    return *geometry.warps(np.broadcast_to(addresses, shape), active), repeats


def _requests(mask, batch) -> int:
    geometry = mask.geometry
    whole = geometry.lanes // WARP * math.prod(batch)
    if mask.array is None:
        return whole
    shape = np.broadcast_shapes(mask.array.shape, (1, 1, geometry.width))
    warps = np.broadcast_to(mask.array, shape).reshape(-1, WARP)
    return int(np.count_nonzero(warps.any(axis=1))) * whole // len(warps)
