"""Carries out cp.async: copies to shared memory that land some time after they are started.

A copy is *started*, then *committed* to a group, then *waited* for. Until its thread has waited, the
destination still holds the old values; other threads need a barrier after the wait as well. In the emulator a
copy lands at the wait, not sooner, so that a kernel that reads too early gets the old values.
"""

from typing import NamedTuple

import numpy as np

from .shadow import Access


class Copy(NamedTuple):
    access: Access
    values: object


class AsyncCopies:
    """The copies in flight in the blocks that are running."""

    def __init__(self, machine):
        self.machine = machine
        self.open: list[Copy] = []
        self.groups: list[list[Copy]] = []
        self._clear = machine.chunk.memo("async")

    def start(self, access: Access, values):
        self.open.append(Copy(access, values))

    def commit(self):
        self.groups.append(self.open)
        self.open = []

    def wait(self, pending: int):
        """Write the copies of all groups but the ``pending`` newest, for the active threads."""
        landing = self.groups[: max(len(self.groups) - pending, 0)]
        self.groups = self.groups[len(landing) :]
        waiting = self.machine.unit.mask
        for group in landing:
            for copy in group:
                self._land(copy, waiting)

    def _land(self, copy: Copy, waiting):
        mask = copy.access.mask
        late = mask.minus(waiting)
        # The threads of the copy that do not take part in this wait keep their part in flight.
        if late.any:
            if not self.groups:
                self.groups.append([])
            self.groups[0].append(Copy(copy.access._replace(mask=late), copy.values))
            mask = mask.minus(late)
        if mask.any:
            self.machine.land(copy.access._replace(mask=mask), copy.values)

    def overlap(self, access: Access):
        """Return where a load meets copies in flight: (cells, readers, rows, columns of blocks), or None."""
        started = (copy.access for group in (*self.groups, self.open) for copy in group)
        pending = [copy for copy in started if copy.storage.serial == access.storage.serial]
        if not pending:
            return None
        key = (access.key, *(p.key for p in pending))
        if key in self._clear:
            return None
        rows, columns = np.broadcast_shapes(access.shape()[-3:-1], *(p.shape()[-3:-1] for p in pending))
        under_way = np.zeros(rows * columns * access.storage.block.size, bool)
        for copy in pending:
            under_way[copy.touched(rows, columns)[0]] = True
        cells, threads = access.touched(rows, columns)
        early = under_way[cells]
        if not early.any():
            self._clear.add(key)
            return None
        return cells[early], threads[early], rows, columns
