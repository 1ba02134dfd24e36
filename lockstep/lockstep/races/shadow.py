"""Keeps shadow memory, to find what lock-step hides: races and reads of uninitialised memory.

In lock-step a kernel without a barrier can still give the right result, so a right result proves nothing. The
emulator therefore records, besides the values, which threads accessed what since the last barrier. Kernels
repeat themselves: accesses once found clean are recognised by their patterns and not examined again.
"""

from typing import NamedTuple

import numpy as np

from lockstep.findings import Finding, equal_stores, lost_updates, place, thread_name
from lockstep.memory.atomics import instead_of
from lockstep.values.geometry import WARP
from lockstep.values.lanes import Mask, Pattern


class Access(NamedTuple):
    """An access of one instruction to memory, by all lanes of ``mask``."""

    storage: object
    name: str
    # `op` is "load", "store" or "atomic".
    op: str
    pattern: Pattern
    offset: int
    mask: Mask
    # Each lane accesses `width` neighbouring elements.
    width: int
    site: int
    # `phase` counts the syncwarps since the last barrier.
    phase: int
    # `value` is what a store of single elements stores, where the checks need the values.
    value: object = None

    @property
    def key(self):
        where = self.storage.slot, self.pattern.serial, self.offset, self.mask.serial, self.width
        return *where, self.op, self.site, self.phase

    @property
    def where(self):
        """Return what decides which elements of the declared array each lane accesses."""
        return self.storage.slot, self.pattern.serial, self.offset, self.mask.serial, self.width

    def shape(self) -> tuple:
        """Return the broadcast shape of index and mask. The block axes are 1 if all blocks do the same."""
        return np.broadcast_shapes(
            self.pattern.array.shape, np.shape(self.mask.array), (1, 1, self.mask.geometry.width)
        )

    def touched(self, rows: int, columns: int):
        """Return cell and thread of every active lane.

        Cells are numbered across ``rows`` x ``columns`` blocks.
        """
        shape = np.broadcast_shapes(self.shape(), (rows, columns, 1))
        size = self.storage.size
        block = np.arange(rows * columns, dtype=np.int64).reshape(rows, columns, 1)
        index = np.clip(self.pattern.array + self.offset, 0, max(size - self.width, 0))
        cells = np.broadcast_to(index + block * size, shape)
        threads = np.broadcast_to(self.mask.geometry.linear, shape)
        if self.mask.array is not None:
            active = np.broadcast_to(self.mask.array, shape)
            cells, threads = cells[active], threads[active]
        cells, threads = cells.reshape(-1), threads.reshape(-1)
        if self.width > 1:
            cells = (cells[:, None] + np.arange(self.width, dtype=np.int64)).reshape(-1)
            threads = np.repeat(threads, self.width)
        return self.storage.in_cells(cells, threads)

    def stored(self, rows: int, columns: int) -> np.ndarray | None:
        """Return what every active lane stores, in the order of :meth:`touched`; None if it is not known."""
        if self.op != "store" or not isinstance(self.value, (bool, int, float, np.generic, np.ndarray)):
            return None
        shape = np.broadcast_shapes(self.shape(), np.shape(self.value), (rows, columns, 1))
        values = np.broadcast_to(np.asarray(self.value).astype(self.storage.dtype), shape)
        if self.mask.array is not None:
            values = values[np.broadcast_to(self.mask.array, shape)]
        return values.reshape(-1)


# ---- shared memory: races between barriers ----


# At most _MOST_KEPT stored values are kept between two barriers. All further values count as different.
_MOST_KEPT = 2**22


class SharedRaces:
    """The accesses to shared memory since the last barrier, which are examined at the next barrier."""

    def __init__(self, machine):
        self.machine = machine
        self.epoch: list[Access] = []
        # `syncwarps` has the syncwarps of some warps only: phase -> booleans (block, warp).
        self.syncwarps: dict[int, np.ndarray] = {}
        self._clean = machine.chunk.memo("races")
        # `_kept` counts the stored values that are kept.
        self._kept = 0

    def note(self, access: Access):
        if access.value is not None:
            self._kept += getattr(access.value, "size", 1)
            if self._kept > _MOST_KEPT:
                access = access._replace(value=None)
        self.epoch.append(access)

    def syncwarp(self, whole):
        """Order the lanes of these warps, (rows, columns, warps) booleans, or of all warps if None."""
        self.machine.unit.phase += 1
        if whole is not None:
            self.syncwarps[self.machine.unit.phase] = whole.reshape(-1, whole.shape[-1])

    def barrier(self, blocks: Mask):
        """Examine the accesses before a barrier. ``blocks``: every lane of the blocks that passed it."""
        if self.epoch:
            self._examine()
        self._kept = 0
        if blocks is blocks.geometry.all_threads:
            self.epoch, self.syncwarps = [], {}
            return
        rest = (access._replace(mask=access.mask.minus(blocks)) for access in self.epoch)
        self.epoch = [access for access in rest if access.mask.any]

    def _examine(self):
        if all(access.op == "load" for access in self.epoch):
            return
        key = (
            *(access.key for access in self.epoch),
            *((phase, whole.tobytes()) for phase, whole in self.syncwarps.items()),
        )
        if key in self._clean:
            return
        written = dict.fromkeys(access.storage.family for access in self.epoch if access.op != "load")
        found = False
        for family in written:
            found |= self._examine_array([a for a in self.epoch if a.storage.family == family])
        if not found:
            self._clean.add(key)

    def _examine_array(self, accesses: list[Access]) -> bool:
        rows, columns = np.broadcast_shapes(*(a.shape()[-3:-1] for a in accesses))
        if self.syncwarps:
            rows, columns = self.machine.chunk.geometry.rows, self.machine.chunk.geometry.columns
        touched = [a.touched(rows, columns) for a in accesses]
        phases = [self._phases(a, t, rows * columns) for a, t in zip(accesses, touched)]
        cells = _racing_cells(accesses, touched, phases, rows * columns * accesses[0].storage.block.size)
        if not len(cells):
            return False
        self.machine.suspects.add(accesses[0].storage.family)
        alike = self.machine.chunk.blocks // (rows * columns)
        differ = self._differ(accesses, rows, columns)[cells]
        if differ.any():
            values = [_values(a, t, rows, columns) for a, t in zip(accesses, touched)]
            self._report(accesses, touched, phases, values, cells[differ], columns, alike)
        if not differ.all():
            self._advise(accesses, touched, cells[~differ], columns, alike)
        return True

    def _differ(self, accesses, rows, columns) -> np.ndarray:
        """Return the cells of ``rows`` x ``columns`` blocks in which the order of accesses decides the
        values.
        """
        geometry, size = self.machine.chunk.geometry, accesses[0].storage.block.size
        all_rows, all_columns = geometry.rows, geometry.columns
        differ = np.zeros(all_rows * all_columns * size, bool)
        held, known = np.zeros(differ.shape, accesses[0].storage.dtype), np.zeros(differ.shape, bool)
        # `stored` has a number for each cell and thread. Its parts are joined where a load needs them.
        stored: list[np.ndarray] = []
        for access in accesses:
            cells, threads = access.touched(all_rows, all_columns)
            # A load is harmless only if its thread has stored the value itself.
            if access.op == "load":
                if len(stored) > 1:
                    stored = [np.unique(np.concatenate(stored))]
                cells, threads = (part[~differ[cells]] for part in (cells, threads))
                differ[cells[~np.isin(_pairs(cells, threads), stored[0] if stored else [])]] = True
                continue
            stored.append(_pairs(cells, threads))
            values = access.stored(all_rows, all_columns)
            if values is None or len(values) != len(cells) or access.storage.dtype != held.dtype:
                differ[cells] = True
                continue
            differ[cells[known[cells] & (held[cells] != values)]] = True
            held[cells], known[cells] = values, True
            differ[cells[held[cells] != values]] = True
        by_block = differ.reshape(all_rows, all_columns, size)
        for axis, wanted in enumerate((rows, columns)):
            if wanted == 1:
                by_block = by_block.any(axis, keepdims=True)
        return by_block.reshape(-1)

    def _advise(self, accesses, touched, cells, columns, alike):
        """Point out the stores of equal values to one element."""
        at_once = [_at_once(access, *found) for access, found in zip(accesses, touched)]
        # Nothing orders the stores of one instruction.
        certain = cells[np.isin(cells, np.concatenate(at_once))]
        if not len(certain):
            self.machine.doubts.add("shared")
        cell = certain[0] if len(certain) else cells[0]
        chosen = next(
            i for i, (found, _) in enumerate(touched) if cell in (at_once[i] if len(certain) else found)
        )
        access, thread = accesses[chosen], touched[chosen][1][touched[chosen][0] == cell][0]
        self._advise_equal(access, cell, thread, columns, len(cells) * alike)

    def _advise_equal(self, access, cell, thread, columns, count):
        machine, storage = self.machine, access.storage
        block, flat = divmod(int(cell), storage.block.size)
        at, element = machine.sites[access.site], storage.element(storage.element_of_cell(flat))
        who, where = machine.chunk.geometry.thread_coordinates(int(thread)), divmod(block, columns)
        machine.findings.add(
            ("equal_stores", access.site, access.name),
            count,
            lambda: Finding(
                kind="equal_stores",
                line=at.line,
                message=equal_stores(thread_name(who), place(access.name, element)),
                array=access.name,
                element=element,
                block=machine.chunk.block_coordinates(*where),
                threads=[who],
                function=at.function,
                site=access.site,
            ),
        )

    def _phases(self, access, touched, blocks) -> np.ndarray | int:
        """Return how many syncwarps the warps of these threads had passed."""
        if not self.syncwarps:
            return access.phase
        cells, threads = touched
        passed = np.full((blocks, self.machine.chunk.geometry.width // WARP), access.phase, np.int64)
        for phase, whole in self.syncwarps.items():
            if phase <= access.phase:
                passed -= ~whole
        return passed[cells // access.storage.block.size, threads // WARP]

    def _report(self, accesses, touched, phases, values, cells, columns, alike):
        pairs: dict = {}
        for cell in cells[:64]:
            pair = _first_conflict(accesses, touched, phases, values, cell)
            pairs.setdefault((pair[0].site, pair[2].site), (cell, *pair))
        for (_, site), (cell, *pair) in pairs.items():
            self.machine.findings.add(
                ("shared_race", site, accesses[0].name),
                len(cells) * alike,
                lambda cell=cell, pair=pair: self._race(cell, pair, columns),
            )

    def _race(self, cell, pair, columns) -> Finding:
        earlier, first, later, second = pair
        storage, machine = later.storage, self.machine
        block, flat = divmod(int(cell), storage.block.size)
        element = storage.element(storage.element_of_cell(flat))
        who, other = (machine.chunk.geometry.thread_coordinates(t) for t in (first, second))
        at = [machine.sites[a.site] for a in (earlier, later)]
        verb = {"load": "reads", "store": "writes", "atomic": "updates"}
        what = f"{thread_name(who)} {verb[earlier.op]} {place(later.name, element)} in line {at[0].line}"
        same = (at[0].file, at[0].line) == (at[1].file, at[1].line)
        then = "in the same line" if same else f"in line {at[1].line}"
        lack = "no barrier between them"
        if first // 32 == second // 32:
            lack = "neither a barrier nor a syncwarp between them"
        elif machine.asynchronous:
            lack = "neither a barrier between them nor an mbarrier at which one arrives and the other waits"
        outcome = f", with {lack}: either may come first."
        if all(site.updates for site in at):
            outcome = f": {lost_updates(instead_of(at[1].updates, later.name, storage.dtype))}"
        message = f"{what} and {thread_name(other)} {verb[later.op]} it {then}{outcome}"
        return Finding(
            kind="shared_race",
            line=at[1].line,
            message=message[0].upper() + message[1:],
            array=later.name,
            element=element,
            block=machine.chunk.block_coordinates(*divmod(block, columns)),
            threads=[who, other],
            function=at[1].function,
            site=later.site,
            other_line=at[0].line,
            other_function=at[0].function,
            other_file=at[0].file,
        )


def _at_once(access, cells, threads) -> np.ndarray:
    """Return the cells to which several threads store in this access."""
    if access.op != "store":
        return cells[:0]
    order = np.lexsort((threads, cells))
    cells, threads = cells[order], threads[order]
    return cells[1:][(cells[1:] == cells[:-1]) & (threads[1:] != threads[:-1])]


def _racing_cells(accesses, touched, phases, cells: int) -> np.ndarray:
    """Return the cells that two threads access in no defined order, at least one of them writing."""
    different = np.unique(np.concatenate([np.unique(phase) for phase in phases]))
    if len(different) == 1:
        return _contested(accesses, touched, cells)
    # syncwarp() orders only lanes of one warp, so accesses of different warps race in any phase.
    across = [(c, t // 32) for c, t in touched]
    racing = [_contested(accesses, across, cells)]
    for phase in different:
        chosen = [np.broadcast_to(p == phase, c.shape) for p, (c, _) in zip(phases, touched)]
        members = [i for i, here in enumerate(chosen) if here.any()]
        within = [tuple(part[chosen[i]] for part in touched[i]) for i in members]
        racing.append(_contested([accesses[i] for i in members], within, cells))
    return np.unique(np.concatenate(racing))


def _contested(accesses, touched, cells: int) -> np.ndarray:
    owner = np.full(cells, -1, np.int64)
    several, written, plain = (np.zeros(cells, bool) for _ in range(3))
    for access, (cell, thread) in zip(accesses, touched):
        before = owner[cell]
        several[cell[(before >= 0) & (before != thread)]] = True
        owner[cell] = thread
        several[cell[owner[cell] != thread]] = True
        (plain if access.op != "atomic" else written)[cell] = True
        if access.op == "store":
            written[cell] = True
    return np.flatnonzero(several & written & plain)


def _values(access, touched, rows, columns) -> np.ndarray:
    """Return what each access stores, in the order of ``touched``: NaN for loads and the unknown."""
    values = access.stored(rows, columns)
    known = values is not None and len(values) == len(touched[0]) and values.dtype.kind in "biuf"
    return values.astype(float) if known else np.full(len(touched[0]), np.nan, np.float64)


def _first_conflict(accesses, touched, phases, values, cell):
    """Return (earlier access, its thread, later access, its thread) of the first race on ``cell``.

    Stores of the same value count as such a pair only if there is no other.
    """
    met = []
    for access, (cells, threads), phase, stored in zip(accesses, touched, phases, values):
        here = np.flatnonzero(cells == cell)
        if not len(here):
            continue
        found, where = np.unique(threads[here], return_index=True)
        passed = np.broadcast_to(phase, cells.shape)[here][where]
        met += [(access, int(t), int(p), v) for t, p, v in zip(found, passed, stored[here][where])]
    harmless = None
    for position, (later, second, now, new) in enumerate(met):
        for earlier, first, before, old in met[:position]:
            writes = earlier.op != "load" or later.op != "load"
            atomic = earlier.op == later.op == "atomic"
            ordered = before != now and first // 32 == second // 32
            if first != second and writes and not atomic and not ordered:
                if old != new:
                    return earlier, first, later, second
                harmless = harmless or (earlier, first, later, second)
    return harmless


# ---- shared and local memory: reads of uninitialised elements ----


class Initialised:
    """A record of which elements of a shared array have been written, in each block of the chunk."""

    def __init__(self, storage):
        self.block = storage.block
        self.written = np.zeros((1, 1, max(storage.block.size, 1)), bool)
        self.complete = storage.size == 0
        self._stored, self._sound = set(), set()

    def store(self, access: Access):
        key = access.where
        if self.complete or key in self._stored:
            return
        self._stored.add(key)
        self._refine()
        rows, columns = np.broadcast_shapes(access.shape()[-3:-1], self.written.shape[:2])
        if (rows, columns) != self.written.shape[:2]:
            self.written = np.broadcast_to(self.written, (rows, columns, self.written.shape[2])).copy()
        self.written.reshape(-1)[access.touched(rows, columns)[0]] = True
        self.complete = bool(self.written.all())

    def _refine(self):
        """Split the cells if the block has more of them now: the kernel also uses it with a smaller dtype."""
        length = self.written.shape[2]
        if self.block.size > length:
            self.written = np.repeat(self.written, self.block.size // length, axis=2)

    def mark(self, cells: np.ndarray):
        """Mark these elements as written, in the one running block."""
        self.written[0, 0, cells.reshape(-1)] = True

    def missing(self, access: Access):
        """Return the reads of unwritten elements: (cells, threads, rows, columns of blocks), or None."""
        key = access.where
        if self.complete or key in self._sound:
            return None
        self._refine()
        rows, columns = np.broadcast_shapes(access.shape()[-3:-1], self.written.shape[:2])
        written = np.broadcast_to(self.written, (rows, columns, self.written.shape[2])).reshape(-1)
        cells, threads = access.touched(rows, columns)
        bad = ~written[cells]
        if not bad.any():
            self._sound.add(key)
            return None
        return cells[bad], threads[bad], rows, columns


class InitialisedLocal:
    """A record of which elements of a local array have been written, in each lane.

    ``lanes``: the lanes that use the array, as booleans, or None if all do.
    """

    def __init__(self, storage, lanes=None):
        self.lanes = lanes
        self.written = np.zeros((max(storage.size, 1), 1, 1, 1), bool)
        self.complete = storage.size == 0
        self._stored, self._sound = set(), set()

    def _all_written(self) -> bool:
        if self.lanes is None:
            return bool(self.written.all())
        return bool((self.written | ~self.lanes).all())

    def _grow(self, access: Access):
        lanes = np.broadcast_shapes(self.written.shape[1:], access.shape()[-3:])
        if lanes != self.written.shape[1:]:
            self.written = np.broadcast_to(self.written, self.written.shape[:1] + lanes).copy()

    def _uniform(self, access: Access) -> bool:
        return access.mask.array is None and access.pattern.array.shape[-3:] == (1, 1, 1)

    def store(self, access: Access):
        key = access.where
        if self.complete or key in self._stored:
            return
        self._stored.add(key)
        for step in range(access.width):
            index = access.pattern.array + access.offset + step
            if self._uniform(access):
                self.written[index.reshape(-1)] = True
            else:
                self._grow(access)
                self._mark_lanes(access, index)
        self.complete = self._all_written()

    def _mark_lanes(self, access, index):
        shape = np.broadcast_shapes(access.shape(), self.written.shape[1:])
        active = np.broadcast_to(True if access.mask.array is None else access.mask.array, shape)
        self.written[(np.broadcast_to(index, shape)[active], *active.nonzero()[-3:])] = True

    def missing(self, access: Access):
        """Return the lanes that read elements not written yet, as booleans; None if there are none."""
        key = access.where
        if self.complete or key in self._sound:
            return None
        bad = self._bad(access)
        if bad is None:
            self._sound.add(key)
        return bad

    def _bad(self, access):
        shape = np.broadcast_shapes(access.shape(), self.written.shape[1:])
        axes = zip(self.written.shape[1:], ((-1, 1, 1), (1, -1, 1), (1, 1, -1)))
        lanes = tuple(
            np.arange(length, dtype=np.int64).reshape(axis) if length > 1 else 0 for length, axis in axes
        )
        bad = np.zeros(shape, bool)
        for step in range(access.width):
            index = np.clip(access.pattern.array + access.offset + step, 0, len(self.written) - 1)
            bad |= ~self.written[(index, *lanes)]
        if access.mask.array is not None:
            bad &= access.mask.array
        return bad if bad.any() else None


# ---- global memory: races between threads of the whole grid ----


class Now(NamedTuple):
    """The time of an access: the number of barriers passed so far, with the number of threads per block.

    Where warps run one at a time, ``known`` is the running warp's vector clock, and ``clock`` its own time.
    The warp's own entry in ``known`` is the time up to which its lanes have met.
    """

    epoch: int
    per_block: int
    known: np.ndarray | None = None
    clock: int = 0


class Rival(NamedTuple):
    """The access with which a thread races at a cell: the other thread, what it does, and at which site."""

    cell: int
    me: int
    thread: int
    # `verb` is "reads", "writes" or "updates".
    verb: str
    site: int


def _pairs(cells, ids) -> np.ndarray:
    """Return one number for each pair of a cell and a thread."""
    return cells.astype(np.int64) << 32 | ids


class GlobalRaces:
    """Shadow memory of global memory that the kernel writes: who wrote and read each cell."""

    # The arrays that `forget` makes take BYTES bytes per cell.
    BYTES = 42
    _NO_THREAD = 0

    def __init__(self, block):
        self.block = block
        self.forget()

    def forget(self):
        """Forget all accesses, because whatever was done happens before all that follows."""
        block = self.block
        self.writer = np.zeros(block.size, np.uint32)
        self.reader = np.zeros(block.size, np.uint32)
        # `many` is 1 where several threads of one block read, and 2 where threads of several blocks read.
        self.many = np.zeros(block.size, np.uint8)
        self.atomic = np.zeros(block.size, bool)
        self.site = np.zeros(block.size, np.int32)
        self.epoch = np.zeros(block.size, np.int32)
        self.read_epoch = np.zeros(block.size, np.int32)
        self.read_site = np.zeros(block.size, np.int32)
        # `other_reader` is the last reader besides `reader`.
        self.other_reader = np.zeros(block.size, np.uint32)
        self.other_read_site = np.zeros(block.size, np.int32)
        # `clock` is the time of the last store on the clock of the writer's warp.
        self.clock = np.zeros(block.size, np.int32)
        # `updaters` is 1 where several threads of one block use atomics, and 2 where those of several blocks
        # do.
        self.updaters = None
        self.other_updater = self.other_update_site = None
        # `rival` is that of the first thread that raced in the last store or load.
        self.rival: Rival | None = None
        self.read_clock = np.zeros(block.size, np.int32)
        # `alike` has the stores of equal values, each as a number for its cell and thread.
        self.alike: list[np.ndarray] = []

    def note_alike(self, cells, ids):
        """Note that several threads have stored equal values to one cell, so each may load what it has
        stored.
        """
        stores = _pairs(cells, ids)
        if not any(np.array_equal(stores, known) for known in self.alike):
            self.alike.append(stores)

    def forget_alike(self, cells):
        """Forget the equal values of these cells, which are stored to again."""
        self.alike = [known[~np.isin(known >> 32, cells)] for known in self.alike]

    def are_alike(self, cells) -> np.ndarray:
        """Return which of these cells several threads have stored equal values to."""
        if not self.alike:
            return np.zeros(len(cells), bool)
        return np.isin(cells, np.concatenate(self.alike) >> 32)

    def loads_its_own(self, cells, ids) -> np.ndarray:
        """Return which of these loads are by threads that stored there the value that others stored too."""
        if not self.alike:
            return np.zeros(len(cells), bool)
        return np.isin(_pairs(cells, ids), np.concatenate(self.alike))

    def refine(self):
        """Split the cells if the block has more of them now: the kernel also uses it with a smaller dtype."""
        length = len(self.writer)
        if self.block.size > length:
            self.alike = []
            for name, record in list(vars(self).items()):
                if isinstance(record, np.ndarray):
                    setattr(self, name, np.repeat(record, self.block.size // length))

    def _ordered(self, ids, others, epochs, clocks, now: Now, several=False):
        """Return which earlier accesses are ordered: by the block's barriers, or by the running warp's vector
        clock.

        several: where other threads, whose clocks are not kept, may have accessed the cell as well.
        """
        ordered = epochs < now.epoch
        if now.known is not None:
            known = clocks <= now.known[(others.astype(np.int64) - 1) % now.per_block // WARP]
            ordered |= known & ~np.asarray(several)
        return ((ids - 1) // now.per_block == (others - 1) // now.per_block) & ordered

    def store(self, cells, ids, site, now: Now, atomic=False):
        """Return the lanes that race with earlier stores, with earlier loads, and with a lane of this access.

        They are three arrays of booleans.
        """
        bad = self._against_writers(cells, ids, now, atomic)
        overtaken = self._against_readers(cells, ids, now)
        self._note_rival(cells, ids, bad, overtaken, now)
        if atomic or self.updaters is not None:
            self._note_updaters(cells, ids, site, now, atomic)
        self.writer[cells] = ids
        self.epoch[cells], self.site[cells], self.atomic[cells] = now.epoch, site, atomic
        self.clock[cells] = now.clock
        return bad, overtaken, np.zeros_like(bad) if atomic else self.writer[cells] != ids

    def _against_writers(self, cells, ids, now: Now, atomic=False):
        writer = self.writer[cells]
        bad = (writer != self._NO_THREAD) & (writer != ids)
        if atomic:
            bad &= ~self.atomic[cells]
        elif self.updaters is not None:
            updaters = self.updaters[cells]
            bad |= updaters > 0
        if bad.any():
            several = self.updaters is not None and self.updaters[cells] > 0
            ordered = self._ordered(ids, writer, self.epoch[cells], self.clock[cells], now, several)
            if not atomic and self.updaters is not None:
                ordered &= updaters < 2
            bad &= ~ordered
        return bad

    def _note_rival(self, cells, ids, after, overtaken, now: Now):
        """Note with which access the first of these threads races, before a store takes its place.

        A barrier may order the accesses of its own block, but nothing orders those of other blocks.
        """
        self.rival = None
        if not (after.any() or overtaken.any()):
            return
        lane = int((after | overtaken).argmax())
        cell, me = int(cells[lane]), int(ids[lane])
        if after[lane]:
            verb = "updates" if self.atomic[cell] else "writes"
            known = [(self.writer, self.site), (self.other_updater, self.other_update_site)]
        else:
            verb, known = "reads", [(self.reader, self.read_site), (self.other_reader, self.other_read_site)]
        found = [(int(who[cell]), int(where[cell])) for who, where in known if who is not None]
        others = [(who, where) for who, where in found if who not in (self._NO_THREAD, me)]
        block = (me - 1) // now.per_block
        others.sort(key=lambda other: (other[0] - 1) // now.per_block == block)
        if others:
            self.rival = Rival(cell, me, others[0][0], verb, others[0][1])

    def _note_updaters(self, cells, ids, site, now: Now, atomic):
        """Note whether several threads have updated an element atomically since it was last stored to."""
        if self.updaters is None:
            self.updaters = np.zeros(self.block.size, np.uint8)
            self.other_updater = np.zeros(self.block.size, np.uint32)
            self.other_update_site = np.zeros(self.block.size, np.int32)
        if not atomic:
            self.updaters[cells] = 0
            return
        # The other elements already have updaters in several blocks, which is all there is to find out.
        left = self.updaters[cells] < 2
        if not left.all():
            cells, ids = cells[left], ids[left]
            now = now if np.ndim(now.epoch) == 0 else now._replace(epoch=now.epoch[left])
        writer = self.writer[cells]
        known = self.atomic[cells] & (writer != self._NO_THREAD)
        near = (writer - 1) // now.per_block == (ids - 1) // now.per_block
        # A barrier of the block has ordered these earlier atomics before all that follows.
        passed = known & near & (self.updaters[cells] == 1) & (self.epoch[cells] != now.epoch)
        self.updaters[cells[passed]] = 0
        others = known & (writer != ids) & ~(near & (self.epoch[cells] != now.epoch))
        np.maximum.at(self.updaters, cells[others], np.where(near[others], 1, 2).astype(np.uint8))
        found = cells[others], writer[others], self.site[cells[others]]
        self._keep_other(self.other_updater, self.other_update_site, *found, ids[others], now.per_block)
        order = np.lexsort((ids, cells))
        same = cells[order][1:] == cells[order][:-1]
        first, second = ids[order][:-1][same], ids[order][1:][same]
        level = np.where((first - 1) // now.per_block == (second - 1) // now.per_block, 1, 2)
        different = first != second
        repeated = cells[order][1:][same][different]
        np.maximum.at(self.updaters, repeated, level[different].astype(np.uint8))
        found = repeated, first[different], np.full(len(repeated), site, np.int32)
        last = second[different]
        self._keep_other(self.other_updater, self.other_update_site, *found, last, now.per_block)

    def _against_readers(self, cells, ids, now: Now):
        reader, many = self.reader[cells], self.many[cells]
        bad = (reader != self._NO_THREAD) & ((reader != ids) | (many > 0))
        if bad.any():
            epochs, clocks = self.read_epoch[cells], self.read_clock[cells]
            bad &= (many == 2) | ~self._ordered(ids, reader, epochs, clocks, now, many > 0)
        return bad

    def load(self, cells, ids, site, now: Now):
        per_block = now.per_block
        bad = self._against_writers(cells, ids, now)
        self._note_rival(cells, ids, bad, np.zeros_like(bad), now)
        # A barrier of the block has ordered these earlier reads before all that follows.
        stale = (self.many[cells] == 1) & (self.read_epoch[cells] != now.epoch)
        self.many[cells[stale]] = 0
        reader = self.reader[cells]
        other = (reader != self._NO_THREAD) & (reader != ids)
        if other.any():
            elsewhere = other & ((reader - 1) // per_block != (ids - 1) // per_block)
            before = self._ordered(ids, reader, self.read_epoch[cells], self.read_clock[cells], now)
            same_block = other & ~elsewhere & ~before
            self.many[cells[same_block]] = np.maximum(self.many[cells[same_block]], 1)
            self.many[cells[elsewhere]] = 2
            found = cells[other], reader[other], self.read_site[cells[other]]
            self._keep_other(self.other_reader, self.other_read_site, *found, ids[other], per_block)
        self.reader[cells] = ids
        # Where another lane's number stands now, several lanes of this instruction read the element.
        several = self.reader[cells] != ids
        if several.any():
            self._several_at_once(cells[several], ids[several], per_block)
            found = cells[several], ids[several], np.full(np.count_nonzero(several), site, np.int32)
            last = self.reader[cells[several]]
            self._keep_other(self.other_reader, self.other_read_site, *found, last, per_block)
        self.read_site[cells] = site
        self.read_epoch[cells], self.read_clock[cells] = now.epoch, now.clock
        return bad

    @staticmethod
    def _keep_other(threads, where, cells, others, sites, ids, per_block):
        """Keep a second thread for these cells, beside the last one (``ids``).

        It is one of another block if there is one. ``threads`` and ``where``: the second thread of each cell,
        and its site.
        """
        block, kept = (ids - 1) // per_block, threads[cells]
        far = (kept != GlobalRaces._NO_THREAD) & ((kept - 1) // per_block != block)
        change = ((others - 1) // per_block != block) | ~far
        threads[cells[change]], where[cells[change]] = others[change], sites[change]

    def _several_at_once(self, cells, ids, per_block):
        same = (self.reader[cells] - 1) // per_block == (ids - 1) // per_block
        np.maximum.at(self.many, cells, np.where(same, 1, 2).astype(np.uint8))
