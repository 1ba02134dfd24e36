"""Barriers and fences: which threads meet, which are missing, and what is ordered by it."""

import numpy as np

from .control import Frame
from .errors import KernelTypeError, LimitExceeded
from .findings import Finding, thread_name
from .geometry import WARP
from .lanes import from_values


class GridGroup:
    """``cuda.cg.this_grid()``."""


GRID = GridGroup()


class Barriers:
    """The machine's barriers. ``self.exits``: the call of the kernel, and the lanes that have returned."""

    def kernel_frame(self) -> Frame:
        """Begin the call of the kernel itself: the lanes that return from it have exited."""
        self.exits = Frame()
        return self.exits

    def exited(self) -> np.ndarray | None:
        """The lanes of the running blocks that have returned from the kernel; None if there are none."""
        if self.scheduler is not None:
            return self.scheduler.exited()
        gone = None if self.exits is None else self.exits.returned
        if gone is None:
            return None
        return np.broadcast_to(True if gone.array is None else gone.array, self.geometry.shape)

    # ---- the barrier of a block ----

    def barrier(self, site):
        """``cuda.syncthreads()``."""
        if self.apart:
            self.scheduler.barrier(site)
            return
        blocks = self._blocks_at_barrier(site)
        self.tally(("barrier", site, blocks.serial, self.batch_key), blocks)
        if self.tracing:
            self.watcher.record_barrier(self, site)
        self._pass_barrier(blocks)

    def barrier_vote(self, site, predicate, combine):
        """``syncthreads_count`` and the like: ``combine(true, there)`` of the threads that take part."""
        true = predicate if type(predicate) is bool else predicate.pattern.array
        here = True if self.mask.array is None else self.mask.array
        shape = np.broadcast_shapes(self.geometry.shape, np.shape(true), np.shape(here))
        exists = True if self.geometry.all_threads.array is None else self.geometry.all_threads.array
        there = np.broadcast_to(here, shape) & exists
        votes = there & true, there
        if self.apart:
            votes = self.scheduler.vote(site, votes)
        else:
            self.barrier(site)
        outcome = np.broadcast_to(combine(*votes), shape)
        return from_values(outcome.astype(np.int32))

    def _pass_barrier(self, blocks):
        """The threads of ``blocks``, a mask of whole blocks, are ordered."""
        everywhere = blocks is self.geometry.all_threads
        if everywhere:
            self.epoch = self.epoch + 1
        else:
            passed = np.broadcast_to(blocks.array, self.geometry.shape).any(axis=2, keepdims=True)
            self.epoch = self.epoch + passed
        if self.log is None:
            self.shared_races.barrier(blocks)
            if everywhere:
                self.phase = 0
            if self.happened is not None:
                self.happened.barrier(self.block_numbers(blocks))

    def block_numbers(self, blocks) -> list[int]:
        """The numbers of the blocks of a mask, counted over the grid."""
        first = self.thread_ids()[..., :1].astype(np.int64)
        numbers = (first - 1) // self.geometry.threads
        if blocks.array is not None:
            some = np.broadcast_to(blocks.array, self.geometry.shape).any(axis=2, keepdims=True)
            numbers = numbers[np.broadcast_to(some, numbers.shape)]
        return numbers.reshape(-1).tolist()

    def _blocks_at_barrier(self, site):
        """All lanes of the blocks with a thread at the barrier; reports blocks with threads missing."""
        mask, all_threads = self.mask, self.geometry.all_threads
        if mask is all_threads:
            return all_threads
        exists = True if all_threads.array is None else all_threads.array
        here = np.broadcast_to(mask.array, self.geometry.shape)
        some = here.any(axis=2, keepdims=True)
        self.report_absent(site, here, some & exists & ~here)
        if some.all():
            return all_threads
        return self.geometry.mask(np.broadcast_to(some & exists, self.geometry.shape))

    def report_absent(self, site, here, absent, may_exit=True):
        """Report the lanes that are not at a barrier: an error, unless all have exited and may."""
        if not absent.any():
            return
        exited = self.exited()
        late = absent if exited is None or not may_exit else absent & ~exited
        if late.any():
            self._report_divergence("barrier_divergence", site, here, late, self._they_never_come)
        else:
            self._report_divergence("barrier_after_exit", site, here, absent, self._they_have_exited)

    def _report_divergence(self, kind, site, here, absent, sentence):
        at = self.sites[site]

        def make():
            row, column, linear = (int(i[0]) for i in absent.nonzero())
            block, who = self.block_coordinates(row, column), self.geometry.thread_coordinates(linear)
            message = sentence(int(here[row, column].sum()), thread_name(who, block))
            return Finding(kind, at.line, message, None, None, block, [who], at.function, site)

        self.findings.add((kind, site), int(absent.any(axis=2).sum()), make)

    def _they_never_come(self, present, who):
        return (
            f"Only {present} of the {self.geometry.threads} threads of a block reach this barrier; {who} "
            "does not. All threads of the block must reach it: on a GPU the others may wait forever."
        )

    def _they_have_exited(self, present, who):
        return (
            f"Only {present} of the {self.geometry.threads} threads of a block reach this barrier; the "
            f"others, {who} among them, have returned before it. Since Volta a barrier waits only for the "
            "threads that have not returned; on older GPUs what happens is undefined. Let all threads go on, "
            "and guard only loads and stores."
        )

    # ---- the lanes of a warp ----

    def together(self, call, function, mask, operands):
        """A call that the lanes of a warp execute together: ``function(machine, call, mask, *operands)``."""
        if self.lanes_apart:
            return self.scheduler.together(call, function, mask, operands)
        return function(self, call, mask, *operands)

    def warp_barrier(self, active, members, waited):
        """``cuda.syncwarp()``: orders lanes of a warp with each other.

        active: the lanes that execute it, (..., warps, 32); members: for each, the bits of the lanes that it
        meets; waited: the lanes that have not exited.
        """
        if self.log is not None:
            return
        self.fine_order = True
        bits = (waited * (1 << np.arange(WARP))).sum(axis=-1, keepdims=True)
        whole = ((active | ~waited) & (~active | (members & bits == bits))).all(axis=-1)
        if not self.apart:
            self.shared_races.syncwarp(None if whole.all() else whole)
        elif whole[active.any(axis=-1)].all():
            self.shared_races.syncwarp(None)
        if self.happened is not None:
            self._order_lanes(active, members)

    def _order_lanes(self, active, members):
        ids = self.thread_ids().reshape(*self.geometry.shape[:2], -1, WARP)
        groups = {
            (int(ids[(*where[-4:-1], 0)]), int(members[where])) for where in map(tuple, np.argwhere(active))
        }
        for first, bits in sorted(groups):
            self.happened.syncwarp([first + lane for lane in range(WARP) if bits >> lane & 1])

    # ---- fences ----

    def fence(self, wide=True):
        """``threadfence()``; wide: for threads of other blocks as well."""
        if self.log is not None:
            return
        self.fine_order = True
        if self.happened is not None:
            self.happened.fence(self.active_ids().tolist(), wide)

    def active_ids(self) -> np.ndarray:
        """The numbers of the active threads, counted from 1 over the grid."""
        ids = np.broadcast_to(self.thread_ids(), self.geometry.shape)
        if self.mask.array is None:
            return ids.reshape(-1)
        return ids[np.broadcast_to(self.mask.array, ids.shape)]

    # ---- the grid ----

    def grid_barrier(self, site, group):
        """``cuda.cg.this_grid().sync()``: all threads of the grid meet."""
        if group is not GRID:
            raise KernelTypeError("only a grid group, cuda.cg.this_grid(), has a method sync")
        if self.log is not None:
            self.barrier(site)
            return
        self._require_resident()
        self.scheduler.grid_barrier(site)

    def _require_resident(self):
        threads, shared = self.geometry.threads, self.static_shared_bytes() + self.dynamic_shared
        blocks, fit = self.grid[0] * self.grid[1] * self.grid[2], self.gpu.resident_blocks(threads, shared)
        if blocks > fit:
            raise LimitExceeded(
                "all blocks that meet at a grid barrier must be on the GPU at the same time: an "
                f"{self.gpu.name} holds at most {fit:,} blocks of {threads:,} threads, and this grid has "
                f"{blocks:,}"
            )
