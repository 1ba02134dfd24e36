"""Carries out barriers and fences: finds which threads meet and which are missing, and orders accesses."""

import numpy as np

from lockstep.counts.tally import BarrierKey
from lockstep.errors import KernelTypeError, LimitExceeded
from lockstep.races.absences import report_absent
from lockstep.values.geometry import WARP
from lockstep.values.lanes import from_values
from lockstep.values.unit import Frame


class GridGroup:
    """A group of all threads of the grid, which ``cuda.cg.this_grid()`` returns."""


GRID = GridGroup()


class Barriers:
    """The part of the machine that carries out barriers and fences.

    ``unit.exits`` is the call of the kernel itself: the lanes that have returned from it have exited.
    """

    def kernel_frame(self) -> Frame:
        """Begin the call of the kernel itself: the lanes that return from it have exited."""
        self.unit.exits = Frame()
        return self.unit.exits

    def exited(self) -> np.ndarray | None:
        """Return the lanes of the running blocks that have returned from the kernel, or None."""
        if self.scheduler is not None:
            return self.scheduler.exited()
        gone = None if self.unit.exits is None else self.unit.exits.returned
        if gone is None:
            return None
        return np.broadcast_to(True if gone.array is None else gone.array, self.chunk.geometry.shape)

    # ---- the barrier of a block ----

    def barrier(self, site):
        """Carry out ``cuda.syncthreads()``. Where units wait for each other, return a generator that does."""
        if self.chunk.tracing:
            self.chunk.watcher.ordered(self)
        if self.apart:
            return self.scheduler.barrier(site)
        blocks, late = self._at_barrier(site)
        self.tally(BarrierKey(site, blocks.serial, self.unit.batch), blocks)
        if self.chunk.tracing:
            self.chunk.watcher.record_barrier(self, site)
        self._pass_barrier(blocks, late)
        return None

    def barrier_vote(self, site, predicate, combine):
        """Carry out ``syncthreads_count`` and the like: return ``combine(true, there)`` of those who take
        part.
        """
        true = predicate if type(predicate) is bool else predicate.pattern.array
        here = True if self.unit.mask.array is None else self.unit.mask.array
        shape = np.broadcast_shapes(self.chunk.geometry.shape, np.shape(true), np.shape(here))
        exists = (
            True if self.chunk.geometry.all_threads.array is None else self.chunk.geometry.all_threads.array
        )
        there = np.broadcast_to(here, shape) & exists
        votes = there & true, there
        if self.apart:
            return self._vote_apart(site, votes, combine, shape)
        self.barrier(site)
        return _outcome(combine, votes, shape)

    def _vote_apart(self, site, votes, combine, shape):
        votes = yield from self.scheduler.vote(site, votes)
        return _outcome(combine, votes, shape)

    def _pass_barrier(self, blocks, late=None):
        """Order the threads of ``blocks``, a mask of whole blocks, except those that are ``late``."""
        everywhere = blocks is self.chunk.geometry.all_threads
        if everywhere and late is None:
            self.chunk.epoch = self.chunk.epoch + 1
        else:
            whole = True if blocks.array is None else blocks.array
            passed = np.broadcast_to(whole, self.chunk.geometry.shape).any(axis=2, keepdims=True)
            self.chunk.epoch = self.chunk.epoch + (passed if late is None else passed & ~late)
        if self.log is None:
            self.chunk.shared_races.barrier(blocks)
            if everywhere:
                self.unit.phase = 0
            if self.happens_before is not None:
                self.happens_before.barrier(self.block_numbers(blocks))

    def block_numbers(self, blocks) -> list[int]:
        """Return the numbers of a mask's blocks, counted over the grid."""
        first = self.chunk.thread_ids()[..., :1].astype(np.int64)
        numbers = (first - 1) // self.chunk.geometry.threads
        if blocks.array is not None:
            some = np.broadcast_to(blocks.array, self.chunk.geometry.shape).any(axis=2, keepdims=True)
            numbers = numbers[np.broadcast_to(some, numbers.shape)]
        return numbers.reshape(-1).tolist()

    def _at_barrier(self, site):
        """Return all lanes of the blocks with a thread at the barrier, and which of these lanes are late."""
        mask, all_threads = self.unit.mask, self.chunk.geometry.all_threads
        if mask is all_threads and not self.chunk.absences.open:
            return all_threads, None
        exists = True if all_threads.array is None else all_threads.array
        here = np.broadcast_to(True if mask.array is None else mask.array, self.chunk.geometry.shape) & exists
        some = here.any(axis=2, keepdims=True)
        late = self.look_for_absent(site, here, some & exists & ~here)
        if some.all():
            return all_threads, late
        return self.chunk.geometry.mask(np.broadcast_to(some & exists, self.chunk.geometry.shape)), late

    def look_for_absent(self, site, here, absent):
        """Find who is at a barrier and who is not; return the lanes that may still come, None if there are
        none.

        Threads that have exited are advised against. Of others that miss it, what they do next decides.
        """
        self.chunk.absences.at_barrier(here)
        if not absent.any():
            return None
        exited = self.exited()
        late = absent if exited is None else absent & ~exited
        if not late.any():
            report_absent(self, "barrier_after_exit", site, here, absent)
            return None
        self.chunk.absences.note(site, here, late)
        return late

    # ---- the lanes of a warp ----

    def together(self, call, function, mask, operands):
        """Execute a call that the lanes of a warp make together, as ``function(machine, call, mask,
        *operands)``.
        """
        if self.lanes_apart:
            return self.scheduler.together(call, function, mask, operands)
        return function(self, call, mask, *operands)

    def warp_barrier(self, active, members, waited):
        """Carry out ``cuda.syncwarp()``, which orders lanes of a warp with each other.

        active: the lanes that execute it, (..., warps, 32); members: for each, the bits of the lanes that it
        meets; waited: the lanes that have not exited.
        """
        if self.log is not None:
            return
        self.fine_order = True
        if self.chunk.tracing:
            self.chunk.watcher.ordered(self)
        bits = (waited * (1 << np.arange(WARP, dtype=np.int64))).sum(axis=-1, dtype=np.int64, keepdims=True)
        whole = ((active | ~waited) & (~active | (members & bits == bits))).all(axis=-1)
        if not self.apart:
            self.chunk.shared_races.syncwarp(None if whole.all() else whole)
        elif whole[active.any(axis=-1)].all():
            self.chunk.shared_races.syncwarp(None)
        if self.happens_before is not None:
            self._order_lanes(active, members)

    def _order_lanes(self, active, members):
        ids = self.chunk.thread_ids().reshape(*self.chunk.geometry.shape[:2], -1, WARP)
        groups = {
            (int(ids[(*where[-4:-1], 0)]), int(members[where])) for where in map(tuple, np.argwhere(active))
        }
        for first, bits in sorted(groups):
            self.happens_before.syncwarp([first + lane for lane in range(WARP) if bits >> lane & 1])

    # ---- fences ----

    def fence(self, wide=True):
        """Carry out a ``threadfence``. ``wide`` says that it holds for threads of other blocks as well."""
        if self.log is not None:
            return
        self.fine_order = True
        if self.chunk.tracing:
            self.chunk.watcher.ordered(self)
        if self.happens_before is not None:
            self.happens_before.fence(self.active_ids().tolist(), wide)

    def active_ids(self) -> np.ndarray:
        """Return the numbers of the active threads, counted from 1 over the grid."""
        ids, active = (
            np.broadcast_to(self.chunk.thread_ids(), self.chunk.geometry.shape),
            self.unit.mask.array,
        )
        if active is None:
            return ids.reshape(-1)
        # A thread is active if it is active in any of the iterations that run at once.
        if active.ndim > ids.ndim:
            active = active.any(axis=tuple(range(active.ndim - ids.ndim)))
        return ids[np.broadcast_to(active, ids.shape)]

    # ---- the grid ----

    def grid_barrier(self, site, group):
        """Carry out ``cuda.cg.this_grid().sync()``, where all threads of the grid meet."""
        if group is not GRID:
            raise KernelTypeError("only a grid group, cuda.cg.this_grid(), has a method sync")
        if self.log is not None:
            return self.barrier(site)
        self._require_resident()
        if self.chunk.tracing:
            self.chunk.watcher.ordered(self)
        return self.scheduler.grid_barrier(site)

    def _require_resident(self):
        threads, shared = self.chunk.geometry.threads, self.static_shared_bytes() + self.dynamic_shared
        blocks, fit = self.grid[0] * self.grid[1] * self.grid[2], self.gpu.resident_blocks(threads, shared)
        if blocks > fit:
            raise LimitExceeded(
                "all blocks that meet at a grid barrier must be on the GPU at the same time: an "
                f"{self.gpu.name} holds at most {fit:,} blocks of {threads:,} threads, and this grid has "
                f"{blocks:,}"
            )


def _outcome(combine, votes, shape):
    return from_values(np.broadcast_to(combine(*votes), shape).astype(np.int32))
