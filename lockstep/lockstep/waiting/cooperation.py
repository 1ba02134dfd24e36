"""Runs kernels whose threads wait for each other, or whose warps use asynchronous units (TMA, wgmma)."""

from types import FunctionType

import numpy as np

from lockstep.counts.tally import BarrierKey
from lockstep.races.absences import report_absent, speaker_is_missing
from lockstep.races.shadow import Access
from lockstep.races.vector_clocks import VectorClocks
from lockstep.values.lanes import ZERO

from .mbarriers import MBarriers
from .products import WARPGROUP, Products
from .scheduler import CHUNKS, LANES, WARPS, Block, NeedsFinerUnits, Scheduler
from .tensor_copies import TensorCopies


class _Asked(Exception):
    """A signal that a method calls an operand: (the operand's number, what it is given, the mask)."""


class Cooperation:
    """The part of the machine that runs units that wait for each other, and warps that use TMA and wgmma."""

    def prepare_warps(self):
        """Make new mbarriers, copies and clocks for a block."""
        self.chunk.mbarriers, self.chunk.tensor_copies, self.chunk.clocks = (
            MBarriers(self),
            TensorCopies(self),
            VectorClocks(self),
        )

    def run_warps(self, steps):
        """Run the chunk's one block warp by warp. ``steps()`` makes the generator that runs a warp."""
        self.chunk.shared_races = self.chunk.clocks
        self.scheduler = Scheduler(self, steps, [Block(WARPS)])
        self.scheduler.begin_block()
        for warp in self.scheduler.warps:
            warp.products = Products(self)
        self.asynchronous = self.apart = True
        try:
            self.scheduler.run()
            self._check_warpgroups()
        finally:
            self.scheduler, self.asynchronous, self.apart = None, False, False

    def run_units(self, scheduler, units):
        """Run all blocks of the grid in units that wait for each other."""
        self.scheduler = scheduler
        self.apart, self.lanes_apart = units != CHUNKS, units == LANES
        try:
            scheduler.run()
        finally:
            self.scheduler, self.apart, self.lanes_apart = None, False, False

    def with_operands_that_wait(self, method, /, *operands):
        """Run a method that calls some of its operands, such as ``and_``, where those may wait for others.

        The method cannot stop in its middle. So it is left when it asks for an operand, and begun again when
        the operand's value is known. That does no harm, because it has no effect but the value it returns.
        """
        known, saved = {}, self.unit.mask

        def operand(number):
            def evaluate(*given):
                if number not in known:
                    raise _Asked(number, given, self.unit.mask)
                return known[number]

            return evaluate

        later = [operand(i) if type(given) is FunctionType else given for i, given in enumerate(operands)]
        while True:
            try:
                return method(*later)
            except _Asked as asked:
                number, given, self.unit.mask = asked.args
            value = operands[number](*given)
            known[number] = (yield from value) if self.waits(value) else value
            self.unit.mask = saved

    @property
    def products(self) -> Products:
        """Return the queue of products of the running warp."""
        return self.unit.products

    # ---- barriers and ends of warps ----

    def all_units_arrived(self, site, masks, of_grid=False):
        """Note that all units that have not ended are at a barrier of block or grid, with the lanes of
        ``masks``.
        """
        all_threads = self.chunk.geometry.all_threads
        here = np.zeros(self.chunk.geometry.shape, bool)
        for mask in masks:
            here |= True if mask.array is None else mask.array
        exists = True if all_threads.array is None else all_threads.array
        here, absent = here & exists, ~here & exists
        if of_grid:
            absent = self._without_speakers(site, here, absent)
        late = self.look_for_absent(site, here, absent)
        self.tally(BarrierKey(site, all_threads.serial, self.unit.batch), all_threads)
        self._pass_barrier(all_threads, late)
        if self.asynchronous:
            self.chunk.clocks.block_barrier()

    def _without_speakers(self, site, here, absent):
        """Report blocks whose first thread misses a grid barrier; return the other lanes that miss it.

        A block of which no thread has come, though not all have returned, may be at another grid barrier of
        the source. In lock-step it cannot get there, so the launch starts again warp by warp.
        """
        exited = self.exited()
        elsewhere = absent if exited is None else absent & ~exited
        if not self.apart and (elsewhere.any(axis=2) & ~here.any(axis=2)).any():
            raise NeedsFinerUnits(WARPS)
        silent = absent[:, :, :1]
        if silent.any():
            report_absent(self, "barrier_divergence", site, here, absent & silent, words=speaker_is_missing)
        return absent & ~silent

    def warp_ends(self, warp):
        """End a warp, whose products and stores must be complete."""
        self.chunk.tensor_copies.end(range(warp.first_thread, warp.first_thread + 32))
        warp.products.end()

    def _check_warpgroups(self):
        """Report warpgroups whose four warps did not execute a wgmma together."""
        warps = self.scheduler.warps
        for start in range(0, len(warps), WARPGROUP):
            group = warps[start : start + WARPGROUP]
            if len({warp.products.queued for warp in group}) > 1 or (
                len(group) < WARPGROUP and group[0].products.queued
            ):
                self._report_partial_warpgroup(group)

    def _report_partial_warpgroup(self, group):
        least, most = (pick(group, key=lambda warp: warp.products.queued) for pick in (min, max))
        message = (
            f"Warp {most.number} executes wgmma {_times(most.products.queued)} and warp {least.number} "
            f"{_times(least.products.queued)}: all four warps of a warpgroup (0 to 3, 4 to 7, ...) must "
            "execute each one."
        )
        self.reporter.thread("warp_divergence", most.products.last_site, message, thread=most.first_thread)

    # ---- memory ----

    def require_accumulator(self, site, acc):
        """Report accumulators that a product is added to before the thread has set them."""
        whole = Access(
            acc.storage, acc.name, "load", ZERO, acc.offset, self.unit.mask, acc.size, site, self.unit.phase
        )
        bad = self.initialised(acc.storage).missing(whole)
        if bad is not None:
            self.reporter.cells(
                "uninitialised_read",
                site,
                acc,
                self.chunk.geometry.mask(bad),
                ZERO,
                acc.offset,
                _uninitialised(acc),
            )

    def add_to_accumulator(self, acc, warp, values):
        """Add (elements, 32) values to a local array of the warp's lanes."""
        storage = acc.storage
        storage.spread(self.chunk.geometry.shape)
        lanes = slice(warp.first_thread, warp.first_thread + 32)
        storage.data[acc.offset : acc.offset + acc.size, 0, 0, lanes] += values

    def check_written(self, site, array, cells):
        """Report elements of a shared array that a unit reads before anything has been written to them."""
        unwritten = ~self.initialised(array.storage).written.reshape(-1)[cells]
        if unwritten.any():
            thread = self.chunk.clocks.me * 32
            self.reporter.cells_of_blocks(
                "uninitialised_read",
                site,
                array,
                cells[unwritten],
                np.full(np.count_nonzero(unwritten), thread, np.int64),
                1,
                1,
                _uninitialised(array),
            )


def _uninitialised(array):
    def sentence(element, who):
        index = ", ".join(map(str, element))
        return f"{array.name}[{index}] is used, for {who}, before anything has been written to it."

    return sentence


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
