"""Races found access by access, with the order of :mod:`.happened`: slow, and exact."""

from typing import NamedTuple

import numpy as np

from .happened import Happened
from .shadow import Access, SharedRaces


class Seen(NamedTuple):
    """An earlier access to an element."""

    op: str
    thread: int
    made: int  # its time
    site: int


class Cell:
    """What has been done to one element since it was last stored to."""

    __slots__ = ("store", "loads", "atomics")

    def __init__(self):
        self.store: Seen | None = None
        self.loads: dict[int, Seen] = {}
        self.atomics: dict[int, Seen] = {}

    def rival(self, thread, op, happened, where) -> Seen | None:
        """An earlier access that ``op`` by ``thread`` races with."""
        ordered = happened.ordered
        if self.store is not None and not ordered(thread, self.store.thread, self.store.made):
            return self.store
        for seen in self.atomics.values() if op != "atomic" else ():
            if not (happened.has_read(thread, where, seen.made) or ordered(thread, seen.thread, seen.made)):
                return seen
        for seen in self.loads.values() if op != "load" else ():
            if not ordered(thread, seen.thread, seen.made):
                return seen
        return None

    def copy(self):
        other = Cell()
        other.store, other.loads, other.atomics = self.store, dict(self.loads), dict(self.atomics)
        return other

    def note(self, seen: Seen):
        if seen.op == "store":
            self.store, self.loads, self.atomics = seen, {}, {}
        elif seen.op == "load":
            self.loads[seen.thread] = seen
        else:
            self.atomics[seen.thread] = seen


class ExactRaces:
    """The accesses to the elements of one array."""

    def __init__(self, happened: Happened, serial: int | None = None):
        self.happened, self.serial = happened, serial  # of global memory
        self.cells: dict[int, Cell] = {}
        self.size = 0

    def refine(self, size):
        """Keep up with a block that has got more cells: it is used with a smaller dtype as well."""
        parts = size // (self.size or size)
        self.size = size
        if parts > 1:
            known = self.cells.items()
            self.cells = {cell * parts + i: state.copy() for cell, state in known for i in range(parts)}

    def date(self, cell, thread):
        """The thread's atomic has just been executed: now, and not when its warp began the instruction."""
        state = self.cells.get(cell)
        if state is not None and thread in state.atomics:
            state.atomics[thread] = state.atomics[thread]._replace(made=self.happened.time)

    def note(self, cells, threads, op, site) -> list:
        """Accesses of one instruction; returns those that race: (cell, thread, the earlier access)."""
        happened, found = self.happened, []
        for cell, thread in zip(cells, threads):
            state = self.cells.get(cell)
            if state is None:
                state = self.cells[cell] = Cell()
            rival = state.rival(thread, op, happened, (self.serial, cell, 0))
            if rival is not None:
                found.append((cell, thread, rival))
            state.note(Seen(op, thread, happened.time, site))
        return found


class ExactSharedRaces(SharedRaces):
    """Takes the place of :class:`SharedRaces`; examines every access at once."""

    def __init__(self, machine):
        super().__init__(machine)
        self.arrays: dict[int, ExactRaces] = {}

    def note(self, access: Access):
        if not access.mask.any:
            return
        machine, size = self.machine, access.storage.block.size
        rows, columns = machine.geometry.rows, machine.geometry.columns
        cells, linear = access.touched(rows, columns)
        first = machine.thread_ids()[..., 0].astype(np.int64).reshape(-1)
        threads = first[cells // size] + linear
        races = self.arrays.get(access.storage.serial)
        if races is None:
            races = self.arrays[access.storage.serial] = ExactRaces(machine.happened)
        races.refine(size)
        found = races.note(cells.tolist(), threads.tolist(), access.op, access.site)
        if found:
            self._report_first(access, found, columns)

    def _report_first(self, access, found, columns):
        cell, thread, rival = found[0]
        per_block = self.machine.geometry.threads
        earlier, later = (rival.thread - 1) % per_block, (thread - 1) % per_block
        self.machine.findings.add(
            ("shared_race", access.site, access.name),
            len(found),
            lambda: self._race(cell, (rival, earlier, access, later), columns),
        )

    def syncwarp(self, whole):
        self.machine.phase += 1

    def barrier(self, blocks):
        """Nothing is left to examine."""
