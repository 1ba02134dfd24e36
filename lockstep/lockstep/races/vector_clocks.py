"""Finds races in shared memory and missing fences by vector clocks, where warps run one at a time.

Between barriers of the whole block only mbarriers order two warps, and copies and products may still be in
flight when the warp that started them has moved on. Every warp therefore has a vector clock: its own time,
and the time up to which it is ordered after each other warp. Arriving at an mbarrier releases a warp's clock,
waiting acquires it. An access is sound if it is ordered after the earlier access to the same element. Copies
to shared memory are ordered before a wait at the mbarrier that they report to.

At an mbarrier, and for TMA and wgmma, the lanes of one warp count as one. What they load and store themselves
is ordered by a syncwarp of all of them, or by an arrival and a wait. Where two threads may race, nothing is
reported yet: flags, or a syncwarp of some lanes, could still order them. The launch then runs again, and
:mod:`.exact` examines what threads load and store. Flags do not order what TMA and wgmma do.
"""

from typing import NamedTuple

import numpy as np

from lockstep.findings import place
from lockstep.memory.storage import DeviceArray
from lockstep.values.geometry import WARP

from .shadow import Access

MOST_BARRIERS = 256


class InFlight(NamedTuple):
    """Elements of a shared array that TMA or wgmma accesses, with the site and the warp that began it."""

    cells: np.ndarray
    site: int
    warp: int


class AsyncAccesses:
    """The accesses of TMA and wgmma to a shared array that are in flight, all reads or all writes."""

    def __init__(self, size):
        # `users` counts the accesses in flight to each element.
        self.users = np.zeros(size, np.int16)
        self.entries: list[InFlight] = []

    def begin(self, entry):
        self.entries.append(entry)
        self.users[entry.cells] += 1

    def end(self, entry):
        self.entries = [other for other in self.entries if other is not entry]
        self.users[entry.cells] -= 1

    def overlap(self, cells):
        """Return (the first entry that uses one of these elements, the elements it uses), or None."""
        if not self.entries or not self.users[cells].any():
            return None
        for entry in self.entries:
            met = np.intersect1d(cells, entry.cells)
            if len(met):
                return entry, met


# SEVERAL stands in place of a lane's number if several lanes have read the element.
SEVERAL = -1


class Shadow:
    """Shadow memory of one shared array: the warps that last wrote and read each element."""

    def __init__(self, storage, warps: int):
        size = max(storage.size, 1)
        self.writer = np.zeros(size, np.int16)
        # `written` is the time on the writer's clock, or 0 if the element was never written.
        self.written = np.zeros(size, np.int32)
        self.write_lane = np.zeros(size, np.int8)
        self.write_site = np.zeros(size, np.int32)
        # `read` has the times on the readers' clocks.
        self.read = np.zeros((warps, size), np.int32)
        # `read_lane` is the lane that has read since all lanes met, or SEVERAL.
        self.read_lane = np.zeros((warps, size), np.int8)
        self.read_site = np.zeros((warps, size), np.int32)
        # `unit_read` has the times at which a warp had waited for a read by TMA or wgmma.
        self.unit_read = np.zeros((warps, size), np.int32)
        # `updated` has the times of atomics on the clocks of the warps.
        self.updated: np.ndarray | None = None
        # `unfenced` tells whether a thread has stored to an element without a fence since.
        self.unfenced = np.zeros(size, bool)
        self.reading, self.writing = AsyncAccesses(size), AsyncAccesses(size)


class VectorClocks:
    """The clocks of a block's warps and of its mbarriers, to which copies report."""

    def __init__(self, machine):
        self.machine = machine
        self.warps = machine.chunk.geometry.width // WARP
        self.agents = self.warps
        self.clocks = np.zeros((self.warps, self.warps + MOST_BARRIERS), np.int32)
        every = np.arange(self.warps, dtype=np.int64)
        self._own = every, every
        self.clocks[self._own] = 1
        # The lanes of a warp last met at this time on the warp's clock.
        self.together = np.zeros(self.warps, np.int32)
        self.exact = machine.chunk.shared_races if "shared" in machine.exact else None
        self.shadows: dict[int, Shadow] = {}
        self._cells: dict[tuple, tuple] = {}

    # ---- clocks ----

    @property
    def me(self) -> int:
        return self.machine.unit.number

    def release(self) -> np.ndarray:
        """Return the running warp's clock, which does not cover anything that the warp does from now on."""
        known = self.clocks[self.me].copy()
        self.clocks[self.me, self.me] += 1
        return known

    def acquire(self, known: np.ndarray):
        me = self.me
        np.maximum(self.clocks[me], known, out=self.clocks[me])
        self.together[me] = max(self.together[me], known[me])

    def block_barrier(self):
        self.clocks[:] = self.clocks.max(axis=0)
        self.together[:] = self.clocks[self._own]
        self.clocks[self._own] += 1

    def syncwarp(self, whole):
        """Note that all lanes of the running warp have met."""
        self.together[self.me] = self.release()[self.me]

    def new_agent(self) -> int:
        self.agents += 1
        return self.agents - 1

    def zero_clock(self) -> np.ndarray:
        return np.zeros(self.clocks.shape[1], np.int32)

    # ---- accesses of threads: the interface of SharedRaces ----

    def note(self, access: Access):
        if not access.mask.any:
            return
        if self.exact is not None:
            self.exact.note(access)
        cells, lanes = self._cells_of(access)
        shadow = self.shadow(access.storage)
        if access.op == "load":
            self._check_earlier_writes(
                access.storage, access.name, shadow, cells, access.site, "reads", lanes
            )
            self._note_read(shadow, cells, lanes, access.site)
        elif access.op == "store":
            self._check_all_earlier(access.storage, access.name, shadow, cells, access.site, "writes", lanes)
            self._note_write(shadow, cells, access.site, self.me, self.clocks[self.me, self.me])
            shadow.write_lane[cells] = lanes
            if (shadow.write_lane[cells] != lanes).any():
                self._doubt(access.storage)
            shadow.unfenced[cells] = True
        else:
            self._note_update(access.storage, shadow, cells, lanes)

    def _cells_of(self, access) -> tuple[np.ndarray, np.ndarray]:
        """Return the elements that the active lanes access, and these lanes.

        An element comes once per lane.
        """
        key = access.pattern.serial, access.mask.serial, access.width
        if key not in self._cells:
            active = True if access.mask.array is None else access.mask.array
            lanes = (1, 1, self.machine.chunk.geometry.width)
            # The axes in front of the lanes belong to batched loops.
            shape = np.broadcast_shapes(access.pattern.array.shape, np.shape(active), lanes)
            active = np.broadcast_to(active, shape)
            cells = np.broadcast_to(access.pattern.array, shape)[active]
            lane = (np.arange(lanes[2], dtype=np.int64) % WARP).astype(np.int8)
            lane = np.broadcast_to(lane, shape)[active]
            cells = (cells[:, None] + np.arange(access.width, dtype=np.int64)).reshape(-1)
            self._cells[key] = cells, np.repeat(lane, access.width)
        cells, lanes = self._cells[key]
        return cells + access.offset, lanes

    def barrier(self, blocks):
        """Do nothing at the end of a block: every access was examined at once."""

    def shadow(self, storage) -> Shadow:
        found = self.shadows.get(storage.serial)
        if found is None:
            found = self.shadows[storage.serial] = Shadow(storage, self.warps)
        return found

    def _note_read(self, shadow, cells, lanes, site):
        me = self.me
        times, lane = shadow.read[me], shadow.read_lane[me]
        several = cells[(times[cells] > self.together[me]) & (lane[cells] != lanes)]
        lane[cells] = lanes
        # Where another lane's number stands now, several lanes of this access read the element.
        several = np.concatenate([several, cells[lane[cells] != lanes]])
        lane[several] = SEVERAL
        times[cells] = self.clocks[me, me]
        shadow.read_site[me, cells] = site

    def _note_update(self, storage, shadow, cells, lanes):
        """Note atomics, which do not race with each other."""
        if (self._unordered_writes(shadow, cells, lanes) | self._unordered_reads(shadow, cells, lanes)).any():
            self._doubt(storage)
        if shadow.updated is None:
            shadow.updated = np.zeros((self.warps, shadow.written.size), np.int32)
        shadow.updated[self.me, cells] = self.clocks[self.me, self.me]

    @staticmethod
    def _note_write(shadow, cells, site, agent, time):
        shadow.writer[cells], shadow.written[cells], shadow.write_site[cells] = agent, time, site

    def fence(self):
        """Make the running warp's stores visible to TMA and wgmma."""
        if self.machine.log is not None:
            return
        for shadow in self.shadows.values():
            shadow.unfenced[(shadow.writer == self.me) & shadow.unfenced] = False
        self.machine.chunk.mbarriers.fence(self.me)

    # ---- accesses of TMA and wgmma ----

    def begin_reading(self, array, cells, site, what) -> tuple:
        """Begin a read of the cells by ``what``, TMA or wgmma, which lasts until :meth:`finish_reading`."""
        shadow = self.shadow(array.storage)
        self._check_earlier_writes(array.storage, array.name, shadow, cells, site, f"lets {what} read")
        unfenced = shadow.unfenced[cells]
        if unfenced.any():
            self._report_fence(array, cells[unfenced][0], int(np.count_nonzero(unfenced)), shadow, site, what)
        entry = InFlight(cells, site, self.me)
        shadow.reading.begin(entry)
        return shadow, entry

    def finish_reading(self, token):
        """End a read that the running warp has waited for. For all others, this warp reads now."""
        shadow, entry = token
        shadow.reading.end(entry)
        shadow.unit_read[self.me, entry.cells] = self.clocks[self.me, self.me]
        shadow.read_site[self.me, entry.cells] = entry.site

    def begin_writing(self, array, cells, site) -> tuple:
        shadow = self.shadow(array.storage)
        self._check_all_earlier(array.storage, array.name, shadow, cells, site, "lets TMA overwrite")
        entry = InFlight(cells, site, self.me)
        shadow.writing.begin(entry)
        return shadow, entry

    def finish_writing(self, token, agent: int, time: int):
        shadow, entry = token
        shadow.writing.end(entry)
        self._note_write(shadow, entry.cells, entry.site, agent, time)
        shadow.unfenced[entry.cells] = False

    # ---- what nothing orders ----

    def _unordered_writes(self, shadow, cells, lanes) -> np.ndarray:
        """Return which accesses of the running warp's lanes nothing orders after other stores."""
        me, writer, written = self.me, shadow.writer[cells], shadow.written[cells]
        own = (writer == me) & (written > self.together[me]) & (shadow.write_lane[cells] != lanes)
        return own | (written > self.clocks[me, writer]) & (writer < self.warps)

    def _unordered_reads(self, shadow, cells, lanes) -> np.ndarray:
        """Return which accesses of the running warp's lanes nothing orders after other lanes' loads."""
        me = self.me
        own = (shadow.read[me, cells] > self.together[me]) & (shadow.read_lane[me, cells] != lanes)
        return own | (shadow.read[:, cells] > self.clocks[me, : self.warps, None]).any(axis=0)

    def _unordered_updates(self, shadow, cells) -> np.ndarray:
        """Return which warps' atomics nothing orders before an access by the running warp: (warps, cells)."""
        known = self.clocks[self.me, : self.warps].copy()
        known[self.me] = self.together[self.me]
        return shadow.updated[:, cells] > known[:, None]

    def _doubt(self, storage):
        """Note that two threads may race for an element of this array."""
        self.machine.doubts.add("shared")
        self.machine.suspects.add(storage.family)

    def _check_earlier_writes(
        self, storage, name, shadow, cells, site, verb, lanes=None, kind="async_read_too_early"
    ):
        """Report writes that may come after this access. lanes: who makes it; None for TMA and wgmma."""
        in_flight = shadow.writing.overlap(cells)
        if in_flight is not None:
            entry, met = in_flight
            self._report_early(kind, storage, name, met, site, verb, entry.site)
            return
        unordered = shadow.written[cells] > self.clocks[self.me, shadow.writer[cells]]
        if lanes is not None:
            if self._unordered_writes(shadow, cells, lanes).any():
                self._doubt(storage)
            if shadow.updated is not None and self._unordered_updates(shadow, cells).any():
                self._doubt(storage)
            unordered &= shadow.writer[cells] >= self.warps
        if not unordered.any():
            return
        met = cells[unordered]
        other = int(shadow.writer[met[0]])
        if other >= self.warps:
            self._report_early(kind, storage, name, met, site, verb, int(shadow.write_site[met[0]]))
        else:
            began = int(shadow.write_site[met[0]])
            self._report_race(storage, name, met, site, verb, f"warp {other} writes", began)

    def _check_all_earlier(self, storage, name, shadow, cells, site, verb, lanes=None):
        self._check_earlier_writes(storage, name, shadow, cells, site, verb, lanes, "shared_race")
        in_flight = shadow.reading.overlap(cells)
        if in_flight is not None:
            entry, met = in_flight
            what = f"an operation that warp {entry.warp} started still reads"
            self._report_race(storage, name, met, site, verb, what, entry.site)
            return
        known = self.clocks[self.me, : self.warps, None]
        unordered = shadow.unit_read[:, cells] > known
        if lanes is None:
            unordered |= shadow.read[:, cells] > known
        elif self._unordered_reads(shadow, cells, lanes).any():
            self._doubt(storage)
        unordered[self.me] = False
        if unordered.any():
            warp = int(unordered.any(axis=1).argmax())
            met = cells[unordered[warp]]
            where = int(shadow.read_site[warp, met[0]])
            self._report_race(storage, name, met, site, verb, f"warp {warp} reads", where)

    # ---- what is reported ----

    def _report_early(self, kind, storage, name, cells, site, verb, began):
        self._report(
            kind,
            storage,
            name,
            cells,
            site,
            f"Warp {self.me} {verb} {{place}}, to which a copy was started in line {self._line(began)}, "
            "without having waited since at the mbarrier that the copy reports to.",
            began,
        )

    def _report_race(self, storage, name, cells, site, verb, other, began):
        """Report a race with ``other``, which says who does what in the line of ``began``."""
        self._report(
            "shared_race",
            storage,
            name,
            cells,
            site,
            f"Warp {self.me} {verb} {{place}}, which {other} in line {self._line(began)}, in no defined "
            "order: there is neither a barrier in between nor an mbarrier at which one arrives and the "
            "other waits.",
            began,
        )

    def _report_fence(self, array, cell, count, shadow, site, what):
        began = int(shadow.write_site[cell])
        self._report(
            "missing_fence",
            array.storage,
            array.name,
            np.array([cell], np.int64),
            site,
            f"{what} reads {{place}}, which warp {int(shadow.writer[cell])} stored in line "
            f"{self._line(began)}, with no fence_async() after the store: it may read the old value.",
            began,
            count,
        )

    def _report(self, kind, storage, name, cells, site, sentence, began, count=None):
        element = storage.element(int(cells[0]))
        message = sentence.format(place=place(name, element))
        array = DeviceArray(name, storage, storage.dtype, storage.shape)
        count = len(cells) if count is None else count
        self.machine.reporter.thread(kind, site, message, array, element, count=count, began=began)

    def _line(self, site) -> int:
        return self.machine.sites[site].line
