"""Finds races access by access, with the order of :mod:`.happens_before`: slow, but exact.

Threads that all store the same value to an element do not race with each other. Nor does a load race with
their stores if its thread has stored that value itself: it reads the same whichever store comes first.
"""

from collections.abc import Callable
from itertools import repeat
from typing import NamedTuple

import numpy as np

from .happens_before import HappensBefore
from .shadow import Access, SharedRaces

# Every thread may store the same value to an element, so only the first MOST_LOOKED_AT stores are kept, and
# the last.
MOST_LOOKED_AT = 32


class Seen(NamedTuple):
    """An earlier access to an element."""

    op: str
    thread: int
    # `made` is the time of the access.
    made: int
    site: int


class Found(NamedTuple):
    """An access that nothing orders with an earlier access, its rival. ``harmless``: both store the same
    value.
    """

    cell: int
    thread: int
    rival: Seen
    harmless: bool


# Every element that needs no dict of its own has this dict.
NO_ONE: dict = {}


class Cell:
    """The accesses to one element since it was last stored to.

    ``stores``: the last store, and stores of the same value that nothing orders with it, up to a limit.
    ``value``: the bits that they stored, or None if the bits are not known. ``alike``: all these stores by
    thread, if there are several. ``loads``, ``own``, ``atomics``: the last access of each thread, where
    ``own`` has the loads by threads that stored the value.
    """

    __slots__ = ("stores", "value", "alike", "loads", "own", "atomics")

    def __init__(self):
        self.stores: tuple[Seen, ...] = ()
        self.value = None
        self.alike = self.loads = self.own = self.atomics = NO_ONE

    def rival(self, thread, op, value, ordered: Callable, has_read: Callable) -> tuple:
        """Return (an earlier access that nothing orders with ``op`` by ``thread``, or None; whether it is
        harmless).
        """
        harmless = None
        for seen in self.stores:
            if not ordered(thread, seen.thread, seen.made):
                if op == "load" and thread in self.alike:
                    break
                if op != "store" or not self.holds(value):
                    return seen, False
                harmless = seen
                break
        if op != "atomic":
            for seen in self.atomics.values():
                if not (has_read(thread, seen.made) or ordered(thread, seen.thread, seen.made)):
                    return seen, False
        if op != "load":
            for seen in self.loads.values():
                if not ordered(thread, seen.thread, seen.made):
                    return seen, False
            for seen in self.own.values():
                if not ordered(thread, seen.thread, seen.made):
                    stored = self._stored_by(seen.thread)
                    if op != "store" or not self.holds(value) or ordered(thread, stored.thread, stored.made):
                        return seen, False
                    harmless = harmless or seen
                    break
        return harmless, True

    def holds(self, value) -> bool:
        return self.value is not None and self.value == value

    def _stored_by(self, thread) -> Seen | None:
        """Return the thread's own store of the value."""
        if self.alike:
            return self.alike.get(thread)
        return self.stores[0] if self.stores and self.stores[0].thread == thread else None

    def copy(self):
        other = Cell()
        other.stores = self.stores
        for name in ("alike", "loads", "own", "atomics"):
            setattr(other, name, dict(getattr(self, name)))
        return other

    def note_store(self, seen: Seen, value, again: bool):
        """Note a store. ``again``: nothing orders it with others, but they stored the same value."""
        if again:
            self.alike = self.alike or {stored.thread: stored for stored in self.stores}
            self.alike[seen.thread] = seen
            self.stores = (*self.stores[:MOST_LOOKED_AT], seen)
        else:
            self.stores, self.value = (seen,), value
            self.alike = self.loads = self.own = self.atomics = NO_ONE

    def note(self, seen: Seen):
        """Note a load or an atomic."""
        name = "loads"
        if seen.op == "atomic":
            name = "atomics"
        elif self._stored_by(seen.thread) is not None:
            name = "own"
        known = getattr(self, name)
        if known is NO_ONE:
            setattr(self, name, {seen.thread: seen})
        else:
            known[seen.thread] = seen


class ExactRaces:
    """The accesses to the elements of one array, each of which is examined when it is noted."""

    def __init__(self, happens_before: HappensBefore, serial: int | None = None):
        # Only arrays in global memory need a serial number, by which has_read() finds their elements.
        self.happens_before, self.serial = (
            happens_before,
            serial,
        )
        self.cells: dict[int, Cell] = {}
        self.size = 0

    def refine(self, size):
        """Split the cells if the block has more of them now: the kernel also uses it with a smaller dtype."""
        parts = size // (self.size or size)
        self.size = size
        if parts > 1:
            known = self.cells.items()
            self.cells = {cell * parts + i: state.copy() for cell, state in known for i in range(parts)}

    def date(self, cell, thread):
        """Give the thread's atomic the present time, because its warp began the instruction earlier."""
        state = self.cells.get(cell)
        if state is not None and thread in state.atomics:
            state.atomics[thread] = state.atomics[thread]._replace(made=self.happens_before.time)

    def note(self, cells, threads, op, site, values=None, of_unit=False) -> list[Found]:
        """Note the accesses of one instruction; return those that nothing orders with an earlier access.

        values: what is stored in each cell; None, or of another length, if that is not known. of_unit:
        whether a unit such as TMA accesses the cells for a warp.
        """
        known = values is not None and len(values) == len(cells)
        bits = values.view(f"u{values.itemsize}").tolist() if known else repeat(None)
        happens_before, found, where = self.happens_before, [], None
        in_order = happens_before.ordered_with_warp if of_unit else happens_before.ordered
        # Neighbouring elements often have the same history, so each question is asked once.
        asked: dict[tuple, bool] = {}

        def ordered(thread, other, made):
            if thread == other:
                return True
            key = thread, other, made
            if key not in asked:
                asked[key] = in_order(thread, other, made)
            return asked[key]

        def has_read(thread, made):
            return happens_before.has_read(thread, where, made)

        seen = Seen(op, 0, happens_before.time, site)
        for cell, thread, value in zip(cells, threads, bits):
            if thread != seen.thread:
                seen = Seen(op, thread, happens_before.time, site)
            rival, harmless = None, False
            state = self.cells.get(cell)
            if state is None:
                state = self.cells[cell] = Cell()
            else:
                where = self.serial, cell, 0
                rival, harmless = state.rival(thread, op, value, ordered, has_read)
                if rival is not None:
                    found.append(Found(cell, thread, rival, harmless))
            if op == "store":
                state.note_store(seen, value, rival is not None and harmless)
            else:
                state.note(seen)
        return found


class ExactSharedRaces(SharedRaces):
    """A replacement of :class:`SharedRaces` that examines every access to a suspect array at once."""

    def __init__(self, machine):
        super().__init__(machine)
        self.arrays: dict[int, ExactRaces] = {}

    def note(self, access: Access):
        if not access.mask.any or access.storage.family not in self.machine.examined:
            return
        machine, size = self.machine, access.storage.block.size
        rows, columns = machine.chunk.geometry.rows, machine.chunk.geometry.columns
        cells, linear = access.touched(rows, columns)
        first = machine.chunk.thread_ids()[..., 0].astype(np.int64).reshape(-1)
        threads = first[cells // size] + linear
        races = self.arrays.get(access.storage.serial)
        if races is None:
            races = self.arrays[access.storage.serial] = ExactRaces(machine.happens_before)
        races.refine(size)
        stored = access.stored(rows, columns)
        found = races.note(cells.tolist(), threads.tolist(), access.op, access.site, stored)
        if racing := [one for one in found if not one.harmless]:
            self._report_first(access, racing, columns)
        elif found:
            cell, thread, *_ = found[0]
            linear = (thread - 1) % machine.chunk.geometry.threads
            self._advise_equal(access, cell, linear, columns, len(found))

    def _report_first(self, access, found, columns):
        cell, thread, rival, _ = found[0]
        per_block = self.machine.chunk.geometry.threads
        earlier, later = (rival.thread - 1) % per_block, (thread - 1) % per_block
        self.machine.findings.add(
            ("shared_race", access.site, access.name),
            len(found),
            lambda: self._race(cell, (rival, earlier, access, later), columns),
        )

    def syncwarp(self, whole):
        self.machine.unit.phase += 1

    def barrier(self, blocks):
        """Do nothing: every access was examined at once."""
