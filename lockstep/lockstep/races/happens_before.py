"""Decides which access happens before which, by barriers, syncwarps, and fences with atomics.

A quick check finds races by barriers alone. Where it finds one in a kernel that also orders its accesses in
finer ways, the launch runs again and is examined here, access by access.

Time advances at every such event, and an access has the time at which it was made. A thread that has
executed a fence *releases* with every atomic that follows. A thread that reads what that atomic wrote, and
then executes a fence or passes a barrier, *acquires*: it is ordered after all that the first thread had done,
or knew to be done, before its fence. A thread that has met the first one at a barrier after the fence may
release for it: CUDA's fences are sequentially consistent. What was released at an element is never forgotten,
so one number says what a thread has acquired there: the time up to which it has read.

At an mbarrier a warp counts as one: its arrival releases what all its lanes have done and know, and its wait
acquires for all its lanes.
"""

from bisect import bisect_left
from typing import NamedTuple

import numpy as np

from lockstep.values.geometry import WARP


class Known:
    """The acquisitions of a thread: for each element with atomics, the time up to which it has read there.

    (element, None) stands for what was released there by fences for the whole GPU, (element, block) for what
    the thread's own block released there by any fence.
    """

    __slots__ = ("cells", "reached")

    def __init__(self, cells: dict):
        self.cells = cells
        # `reached` has what is in `cells`, and also what the releasing threads had acquired.
        self.reached: dict | None = None


NOTHING = Known({})


class Fence(NamedTuple):
    """A fence of a thread, which covers the accesses before these times and what the thread knew."""

    # The fence covers the thread's own accesses before this time.
    time: int
    # The fence covers all accesses of the block before this time, which is that of the last barrier.
    barrier: int
    # The fence covers the accesses of each lane of the warp before the time at which the thread last met it.
    mates: np.ndarray | None
    # The fence covers the accesses of warps that the thread waited for at mbarriers: first thread -> time.
    warps: dict
    # `known` is what the thread had acquired.
    known: Known


class Told:
    """The releases of a phase of an mbarrier: what its arrivals release, and the waits for the phase acquire.

    ``warps``: first thread of a warp -> the time before which its accesses are done. ``known`` and ``read``:
    element with atomics -> the time up to which an arriving thread had read there; ``known`` if the thread
    has executed a fence since, ``read`` if not. ``fences``: whether for the whole GPU -> arriving thread ->
    its last fence.
    """

    __slots__ = ("warps", "known", "read", "fences")

    def __init__(self):
        self.warps: dict[int, int] = {}
        self.known: dict[tuple, int] = {}
        self.read: dict[tuple, int] = {}
        self.fences: dict[bool, dict[int, Fence]] = {False: {}, True: {}}


class Latest:
    """A number that only grows, with its value at any earlier time."""

    __slots__ = ("times", "values")

    def __init__(self):
        self.times, self.values = [], []

    def add(self, time, value):
        self.times.append(time)
        self.values.append(max(value, self.values[-1]) if self.values else value)

    def before(self, time) -> int:
        position = bisect_left(self.times, time)
        return self.values[position - 1] if position else 0


class Released:
    """The releases at one element: accesses of threads, blocks, lanes and warps, and other elements."""

    def __init__(self):
        self.threads: dict[int, Latest] = {}
        self.blocks: dict[int, Latest] = {}
        self.lanes: dict[int, Latest] = {}
        self.warps: dict[int, Latest] = {}
        self.cells: dict[tuple, Latest] = {}

    def add(self, time, thread, fence: Fence, happened):
        self.threads.setdefault(thread, Latest()).add(time, fence.time)
        self.blocks.setdefault(happened.block(thread), Latest()).add(time, fence.barrier)
        if fence.mates is not None:
            first = thread - happened.lane(thread)
            for lane in np.flatnonzero(fence.mates).tolist():
                self.lanes.setdefault(first + lane, Latest()).add(time, int(fence.mates[lane]))
        for first, when in fence.warps.items():
            self.warps.setdefault(first, Latest()).add(time, when)
        for cell, when in fence.known.cells.items():
            self.cells.setdefault(cell, Latest()).add(time, when)

    def add_all(self, time, lent, block, happened):
        """Add what other threads of a block had fenced before they met the one that releases."""
        if lent.block:
            self.blocks.setdefault(block, Latest()).add(time, lent.block)
        for thread, fence in lent.threads.items():
            self.add(time, thread, fence, happened)

    def covers(self, thread, block, warp, made, time) -> bool:
        """Return whether an access by ``thread`` at time ``made`` was released before ``time``."""
        by_warp = self.warps.get(warp) if self.warps else None
        for known in (self.threads.get(thread), self.blocks.get(block), self.lanes.get(thread), by_warp):
            if known is not None and made < known.before(time):
                return True
        return False


class Lent:
    """Fences of other threads for which a thread releases as well, because it has met those threads since.

    block: the fences cover all accesses of the block before this time. threads: the fences, by thread.
    """

    __slots__ = ("block", "threads")

    def __init__(self, block=0, threads=()):
        self.block, self.threads = block, dict(threads)

    def add(self, fences: dict, per_block: int):
        """Add fences, by thread. If all threads of a block have executed one, one time replaces them."""
        plain = all(fence.known is NOTHING for fence in fences.values())
        if plain and len(fences) == per_block:
            self.block, self.threads = min(fence.time for fence in fences.values()), {}
        else:
            self.threads.update(fences)


def _grow(numbers: dict, others: dict):
    """Raise each number that is lower than that in ``others``."""
    for key, number in others.items():
        numbers[key] = max(numbers.get(key, 0), number)


class HappensBefore:
    """The happens-before order of the accesses of one launch. Threads are numbered from 1 over the grid."""

    def __init__(self, per_block: int):
        self.per_block = per_block
        self.time = 0
        self.clear()

    def clear(self):
        """Order all that was done before all that follows, because all threads meet."""
        self.time += 1
        self.grid_time = self.time
        # `barriers` maps a block to the time of its last barrier.
        self.barriers: dict[int, int] = {}
        # `met` maps the first thread of a warp to the times at which two lanes last met, (32, 32).
        self.met: dict[int, np.ndarray] = {}
        # `told` maps the first thread of a warp to Told.warps of all its waits.
        self.told: dict[int, dict[int, int]] = {}
        self.by_block: dict[int, Known] = {}
        # `by_thread` has, for each block, what each thread knows that knows more than its block.
        self.by_thread: dict[int, dict[int, Known]] = {}
        # `read` has, for each block and thread, when an atomic read an element, until the next fence.
        self.read: dict[int, dict[int, dict]] = {}
        # `fences` maps (thread, whether for the whole GPU) to the thread's last fence.
        self.fences: dict[tuple, Fence] = {}
        # `recent` maps (block, whether for the whole GPU) to the fences since the block's last barrier.
        self.recent: dict[tuple, dict] = {}
        # `lent` maps (block or (thread,), whether for the whole GPU) to fences of other threads.
        self.lent: dict[tuple, Lent] = {}
        self.released: dict[tuple, Released] = {}

    def block(self, thread) -> int:
        return (thread - 1) // self.per_block

    def lane(self, thread) -> int:
        return (thread - 1) % self.per_block % WARP

    def warp(self, thread) -> int:
        """Return the first thread of a thread's warp."""
        return thread - self.lane(thread)

    # ---- events ----

    def barrier(self, blocks):
        """Let all threads of these blocks meet."""
        self.time += 1
        for block in blocks:
            self.barriers[block] = self.time
            for wide in (False, True):
                if fences := self.recent.pop((block, wide), None):
                    self.lent.setdefault((block, wide), Lent()).add(fences, self.per_block)
            threads = {*self.read.get(block, ()), *self.by_thread.get(block, ())}
            if threads:
                self.by_block[block] = self._learn_together(block, threads)
                self.by_thread.pop(block, None)

    def syncwarp(self, threads):
        """Let these lanes of a warp meet."""
        self.time += 1
        block, lanes = self.block(threads[0]), [self.lane(thread) for thread in threads]
        met = self.met.setdefault(threads[0] - lanes[0], np.zeros((WARP, WARP), np.int64))
        met[lanes] = met[lanes].max(axis=0)
        met[np.ix_(lanes, lanes)] = self.time
        for wide in (False, True):
            self._lend(block, threads, wide)
        some = self.read.get(block, {}).keys() | self.by_thread.get(block, {}).keys()
        if not some.isdisjoint(threads):
            together = self._learn_together(block, threads)
            self.by_thread.setdefault(block, {}).update(dict.fromkeys(threads, together))

    def _lend(self, block, threads, wide):
        """Let each of these lanes release for the others, because they have met."""
        recent = self.recent.get((block, wide), {})
        fences = {thread: recent[thread] for thread in threads if thread in recent}
        for thread in threads:
            fences.update(self.lent.get(((thread,), wide), Lent()).threads)
        if fences:
            together = Lent(0, fences)
            self.lent.update({((thread,), wide): together for thread in threads})

    def arrive(self, threads, told: Told):
        """Let a warp with these threads arrive at an mbarrier, and release to those who wait for it."""
        self.time += 1
        first, block = threads[0], self.block(threads[0])
        _grow(told.warps, self.told.get(first, {}))
        told.warps[first] = self.time
        for thread in threads:
            _grow(told.known, self._known(block, thread).cells)
            _grow(told.read, self.read.get(block, {}).get(thread, {}))
        for wide, fences in told.fences.items():
            recent = self.recent.get((block, wide), {})
            fences.update((thread, recent[thread]) for thread in threads if thread in recent)
            for thread in threads:
                fences.update(self.lent.get(((thread,), wide), Lent()).threads)

    def wait(self, threads, told: Told):
        """Let a warp with these threads acquire what was released by the arrivals that it waited for."""
        self.time += 1
        first, block = threads[0], self.block(threads[0])
        _grow(self.told.setdefault(first, {}), told.warps)
        for thread in threads:
            if told.read:
                _grow(self.read.setdefault(block, {}).setdefault(thread, {}), told.read)
            if told.known:
                cells = dict(self._known(block, thread).cells)
                _grow(cells, told.known)
                self.by_thread.setdefault(block, {})[thread] = Known(cells)
        for wide, fences in told.fences.items():
            for thread in threads if fences else ():
                known = self.lent.get(((thread,), wide), Lent()).threads
                self.lent[(thread,), wide] = Lent(0, {**known, **fences})

    def fence(self, threads, wide):
        """Let these threads execute a fence. ``wide`` says for the whole GPU, not only for their block."""
        self.time += 1
        for thread in threads:
            block, lane = self.block(thread), self.lane(thread)
            met = self.met.get(thread - lane)
            mates = None if met is None else met[lane].copy()
            known = self._learn(block, thread, wide)
            warps = dict(self.told.get(thread - lane, ()))
            fence = Fence(self.time, self.barriers.get(block, 0), mates, warps, known)
            for far in (False, True) if wide else (False,):
                self.fences[thread, far] = fence
                self.recent.setdefault((block, far), {})[thread] = fence

    def atomic(self, thread, cell, wrote):
        """Note that an atomic reads an element, and writes it unless it is a compare-and-swap that failed."""
        self.time += 1
        block = self.block(thread)
        self.read.setdefault(block, {}).setdefault(thread, {})[cell] = self.time
        for wide, where in ((True, (cell, None)), (False, (cell, block))) if wrote else ():
            fence = self.fences.get((thread, wide))
            lent = [self.lent.get((key, wide)) for key in (block, (thread,))]
            if fence is None and not any(lent):
                continue
            released = self.released.setdefault(where, Released())
            if fence is not None:
                released.add(self.time, thread, fence, self)
            for more in filter(None, lent):
                released.add_all(self.time, more, block, self)

    # ---- what threads know ----

    def _known(self, block, thread) -> Known:
        own = self.by_thread.get(block, {}).get(thread)
        return own or self.by_block.get(block, NOTHING)

    def _learn(self, block, thread, wide) -> Known:
        """Let a thread acquire what it has read, at a fence or where threads meet; return what it knows."""
        known = self._known(block, thread)
        read = self.read.get(block, {}).get(thread)
        if not read:
            return known
        cells = dict(known.cells)
        for cell, when in read.items():
            for where in ((cell, None), (cell, block)) if wide else ((cell, block),):
                cells[where] = max(cells.get(where, 0), when)
        if wide:
            del self.read[block][thread]
        known = self.by_thread.setdefault(block, {})[thread] = Known(cells)
        return known

    def _learn_together(self, block, threads) -> Known:
        cells: dict = {}
        for thread in threads:
            _grow(cells, self._learn(block, thread, True).cells)
        return Known(cells)

    def ordered(self, me, other, made) -> bool:
        """Return whether an access by ``other`` at time ``made`` happens before what ``me`` does now."""
        if me == other or made < self.grid_time:
            return True
        block, others, warp = self.block(me), self.block(other), self.warp(other)
        if block == others:
            if made < self.barriers.get(block, 0):
                return True
            own = self.warp(me)
            met = self.met.get(own)
            if met is not None and own == warp and made < met[me - own, other - warp]:
                return True
            if made < self.told.get(own, {}).get(warp, 0):
                return True
        for where, when in self._reached(self._known(block, me)).items():
            released = self.released.get(where)
            if released is not None and released.covers(other, others, warp, made, when):
                return True
        return False

    def ordered_with_warp(self, me, other, made) -> bool:
        """Return the same for a unit that acts for the warp of ``me``, after all that its lanes have done."""
        return self.warp(me) == self.warp(other) or self.ordered(me, other, made)

    def has_read(self, me, cell, made) -> bool:
        """Return whether an atomic of the thread saw what others did to this element at time ``made``."""
        block = self.block(me)
        read = self.read.get(block, {}).get(me, {}).get(cell, 0)
        return made <= max(read, self._known(block, me).cells.get((cell, None), 0))

    def _reached(self, known: Known) -> dict:
        """Return what is known, with all that the releasing threads knew, and so on."""
        if known.reached is None:
            reached, left = {}, dict(known.cells)
            while left:
                where, when = left.popitem()
                if reached.get(where, 0) >= when:
                    continue
                reached[where] = when
                released = self.released.get(where)
                for further, latest in released.cells.items() if released is not None else ():
                    until = latest.before(when)
                    if until > max(reached.get(further, 0), left.get(further, 0)):
                        left[further] = until
            known.reached = reached
        return known.reached
