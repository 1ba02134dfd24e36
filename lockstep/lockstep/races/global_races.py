"""Looks for races in global memory at each access, by shadow memory or access by access."""

import numpy as np

from lockstep.findings import Finding, equal_stores, lost_updates, place, thread_name
from lockstep.memory.atomics import instead_of
from lockstep.values.lanes import ZERO

from .exact import ExactRaces
from .shadow import Access, Now, Rival

_VERBS = {"load": "reads", "store": "writes", "atomic": "updates"}


class RacesInGlobalMemory:
    """The accesses of all threads to the arrays that the kernel may write.

    ``shadows``: the shadow memory of each such array, by the serial number of its storage. ``exact``: the
    array's accesses one by one, where shadow memory is not enough to tell.
    """

    def __init__(self, machine, exactly: bool):
        self.machine = machine
        self.shadows: dict = {}
        self.exact: dict[int, ExactRaces] | None = {} if exactly else None

    def check(self, array, access: Access, value=None):
        races = self.shadows.get(array.storage.serial)
        # An array that the kernel only reads has no shadow memory.
        if races is None:
            return
        if access.op != "store":
            self.machine.looks.looked(access)
        shape = np.broadcast_shapes(access.shape(), self.machine.chunk.geometry.shape)
        active = slice(None) if access.mask.array is None else np.broadcast_to(access.mask.array, shape)
        cells = np.broadcast_to(access.pattern.array + access.offset, shape)[active].reshape(-1)
        ids = np.broadcast_to(self.machine.chunk.thread_ids(), shape)[active].reshape(-1)
        if access.width > 1:
            cells = (cells[:, None] + np.arange(access.width, dtype=np.int64)).reshape(-1)
            ids = np.repeat(ids, access.width)
        now = self.now()
        # If the blocks have passed different barriers, each lane has the epoch of its block.
        if type(now.epoch) is not int:
            epochs = np.broadcast_to(now.epoch, shape)[active].reshape(-1)
            now = now._replace(epoch=np.repeat(epochs, access.width * array.storage.parts))
        cells, ids = array.storage.in_cells(cells, ids)
        if self.exact is not None:
            self._check_exactly(
                array, access, cells, ids, self._stored(array, access, value, (shape, active))
            )
            return
        races.refine()
        if access.op == "load":
            bad = races.load(cells, ids, access.site, now)
            if bad.any():
                bad = bad & ~races.loads_its_own(cells, ids)
            if bad.any():
                self._report(array, access, cells[bad], ids[bad], races)
            return
        alike = races.are_alike(cells)
        races.forget_alike(cells)
        after, overtaking, within = races.store(cells, ids, access.site, now, atomic=access.op == "atomic")
        bad = after | overtaking | within
        if not bad.any():
            return
        # These stores race only with loads by threads that have not stored the value themselves.
        only_loads = overtaking & ~after & ~alike
        chosen = shape, active
        if only_loads.any() or not self._advise_equal(
            array, access, cells, ids, after | overtaking, value, chosen
        ):
            self._report(array, access, cells[bad], ids[bad], races)

    def _stored(self, array, access, value, chosen) -> np.ndarray | None:
        """Return what each lane stores; None if it is not known.

        ``chosen``: the shape of all lanes, and which of them are active.
        """
        known = isinstance(value, (bool, int, float, np.generic, np.ndarray)) and array.dtype.kind in "biuf"
        if access.op != "store" or not known or array.storage.data is None:
            return None
        shape, active = chosen
        with np.errstate(all="ignore"):
            value = np.asarray(value).astype(array.dtype)
        return np.broadcast_to(value, shape)[active].reshape(-1)

    def _advise_equal(self, array, access, cells, ids, before, value, chosen) -> bool:
        """Advise, and return True, if it does not matter which of these stores comes first.

        Those that race with earlier accesses (``before``) find their value there already, and those of this
        instruction to one cell are equal.
        """
        stored = self._stored(array, access, value, chosen)
        if stored is None or len(stored) != len(cells):
            return False
        shape, active = chosen
        there = array.storage.gather(access.pattern, access.offset)
        if not _equal(stored, np.broadcast_to(there, shape)[active].reshape(-1))[before].all():
            return False
        order = np.argsort(cells, kind="stable")
        sorted_stores, sorted_cells = stored[order], cells[order]
        twice = sorted_cells[1:] == sorted_cells[:-1]
        if not _equal(sorted_stores[1:], sorted_stores[:-1])[twice].all():
            return False
        self.shadows[array.storage.serial].note_alike(cells, ids)
        repeated = order[:-1][twice]
        # Only stores of one instruction are surely unordered: a fence or a flag may order any others.
        if not len(repeated):
            self.machine.doubts.add("global")
        lane = int(repeated[0]) if len(repeated) else int(before.argmax())
        self._add_equal_stores(
            array, access, int(cells[lane]), int(ids[lane]), len(repeated) or int(np.count_nonzero(before))
        )
        return True

    def _add_equal_stores(self, array, access, cell, me, count):
        self.machine.findings.add(
            ("equal_stores", access.site, array.name),
            count,
            lambda: self._equal_stores(array, access, cell, me),
        )

    def _equal_stores(self, array, access, cell, me) -> Finding:
        who, block = self.machine.chunk.thread_of(me)
        element, at = (
            array.storage.element(array.storage.element_of_cell(cell)),
            self.machine.sites[access.site],
        )
        message = equal_stores(thread_name(who, block), place(array.name, element))
        return Finding(
            "equal_stores", at.line, message, array.name, element, block, [who], at.function, access.site
        )

    def _check_exactly(self, array, access, cells, ids, values=None, of_unit=False):
        """Check each access.

        ``values`` is what is stored, if known; ``of_unit`` says that a unit acts for a thread.
        """
        serial = array.storage.serial
        exact = self.exact.setdefault(serial, ExactRaces(self.machine.happens_before, serial))
        exact.refine(array.storage.block.size)
        found = exact.note(cells.tolist(), ids.tolist(), access.op, access.site, values, of_unit)
        if racing := [one for one in found if not one.harmless]:
            cell, me, seen, _ = racing[0]
            rival = Rival(cell, me, seen.thread, _VERBS[seen.op], seen.site)
            self.machine.findings.add(
                ("global_race", access.site, array.name),
                len(racing),
                lambda: self._finding(array, access, rival),
            )
        elif found:
            self._add_equal_stores(array, access, *found[0][:2], len(found))

    def _report(self, array, access, cells, ids, races):
        rival = races.rival
        if rival is None:  # Lanes of this instruction race with each other, and the last one has stored.
            cell = int(cells[0])
            rival = Rival(cell, int(ids[0]), int(races.writer[cell]), _VERBS[access.op], access.site)
        self.machine.findings.add(
            ("global_race", access.site, array.name),
            len(cells),
            lambda: self._finding(array, access, rival),
        )

    def _finding(self, array, access, rival) -> Finding:
        chunk, sites = self.machine.chunk, self.machine.sites
        who, block = chunk.thread_of(rival.me)
        other = chunk.thread_of(rival.thread)
        element = array.storage.element(array.storage.element_of_cell(rival.cell))
        at, began = sites[access.site], sites[rival.site]
        does = _VERBS[access.op]
        verb = f"also {rival.verb}" if rival.verb == does else rival.verb
        same = (began.file, began.line) == (at.file, at.line)
        where = "in the same line" if same else f"in line {began.line}"
        outcome = "the result depends on which comes first."
        if access.op == "load":
            outcome = "the read may see the old value or the new one."
        if at.updates and began.updates:
            outcome = lost_updates(instead_of(at.updates, array.name, array.dtype))
        mine, theirs = thread_name(who, block), thread_name(*other)
        message = (
            f"{mine[0].upper()}{mine[1:]} {does} {place(array.name, element)}, and {theirs} {verb} it "
            f"{where}, in no defined order: {outcome}"
        )
        threads = [who, other[0]]
        return Finding(
            "global_race",
            at.line,
            message,
            array.name,
            element,
            block,
            threads,
            at.function,
            access.site,
            other_line=began.line,
            other_function=began.function,
            other_file=began.file,
        )

    def pass_grid_barrier(self):
        """Order all earlier accesses to global memory, because all threads of the grid have met."""
        for races in self.shadows.values():
            races.forget()
        if self.machine.happens_before is not None:
            self.machine.happens_before.clear()
            self.exact = None if self.exact is None else {}

    def note_stores(self, array, cells, thread, site):
        """Note that TMA has stored these elements of a global array for a thread."""
        races = self.shadows.get(array.storage.serial)
        if races is None or not len(cells):
            return
        me = int(self.machine.chunk.thread_ids().reshape(-1)[thread])
        cells, ids = array.storage.in_cells(cells, np.full(len(cells), me, np.uint32))
        all_threads = self.machine.chunk.geometry.all_threads
        access = Access(
            array.storage, array.name, "store", ZERO, 0, all_threads, 1, site, self.machine.unit.phase
        )
        if self.exact is not None:
            self._check_exactly(array, access, cells, ids, of_unit=True)
            return
        races.refine()
        bad = np.logical_or.reduce(races.store(cells, ids, site, self.now(of_unit=True)))
        if bad.any():
            self._report(array, access, cells[bad], ids[bad], races)

    def now(self, of_unit: bool = False) -> Now:
        """Return the time of an access to global memory.

        ``of_unit``: the access is by a unit that acts for a thread.

        The lanes of one warp are not ordered with what the warp has done since they met; a unit started later
        is.
        """
        if not self.machine.asynchronous:
            return Now(self.machine.chunk.epoch, self.machine.chunk.geometry.threads)
        me = self.machine.chunk.clocks.me
        known = self.machine.chunk.clocks.clocks[me, : self.machine.chunk.clocks.warps].copy()
        clock = known[me]
        if not of_unit:
            known[me] = self.machine.chunk.clocks.together[me]
        return Now(self.machine.chunk.epoch, self.machine.chunk.geometry.threads, known, clock)


def _equal(values: np.ndarray, others: np.ndarray) -> np.ndarray:
    # Two NaNs count as equal, because it makes no difference which of them is stored last.
    return (values == others) | ((values != values) & (others != others))
