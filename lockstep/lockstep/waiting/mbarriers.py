"""Carries out mbarriers: elements of a shared uint64 array that count arrivals and bytes."""

import numpy as np

from lockstep.errors import KernelStopped, KernelTypeError
from lockstep.findings import place
from lockstep.races.happens_before import Told
from lockstep.races.vector_clocks import MOST_BARRIERS
from lockstep.values.geometry import WARP


class MBarrier:
    """An mbarrier: what its current phase still waits for, and what the arriving warps knew."""

    def __init__(self, name, arrivals, order, site):
        self.name, self.arrivals = name, arrivals
        self.pending, self.bytes, self.phase = arrivals, 0, 0
        self.gathered, self.known = order.zero_clock(), order.zero_clock()
        # For the exact search, `telling` and `told` take the parts of `gathered` and `known`.
        self.telling, self.told = Told(), Told()
        self.agent, self.time = order.new_agent(), 0
        self.made_by, self.made_at, self.site = order.me, int(order.clocks[order.me, order.me]), site
        self.fenced = False
        # These copies are in flight and report to the mbarrier. Each has .bytes and .land(agent, time).
        self.copies: list = []

    def advance(self):
        """Advance to the next phase if no arrival and no byte is missing."""
        if self.pending == 0 and self.bytes == 0:
            self.phase += 1
            self.pending = self.arrivals
            self.known, self.gathered = self.gathered, np.zeros_like(self.gathered)
            self.told, self.telling = self.telling, Told()

    def settle(self):
        """Let copies land once all threads have arrived. It is called no sooner than a warp needs them."""
        while self.pending == 0 and self.copies:
            copy = self.copies.pop(0)
            self.time += 1
            copy.land(self.agent, self.time)
            self.gathered[self.agent] = self.time
            self.bytes -= copy.bytes
            self.advance()

    def missing(self) -> str:
        parts = []
        if self.pending:
            parts.append(f"{self.pending} arrival{'s' if self.pending > 1 else ''}")
        if self.bytes:
            compared = "more" if self.bytes > 0 else "fewer"
            parts.append(f"expects {abs(self.bytes):,} bytes {compared} than the copies deliver")
        if not parts:
            return "nothing"
        return " and ".join(f"still needs {part}" if "arrival" in part else part for part in parts)


class MBarriers:
    """The mbarriers of the running block."""

    def __init__(self, machine):
        self.machine = machine
        self.barriers: dict[tuple, MBarrier] = {}

    # ---- what kernels call ----

    def init(self, site, array, index, arrivals):
        if self.machine.log is not None:
            return
        for cell, _ in self._named(site, array, index):
            name = place(array.name, array.storage.element(cell))
            count = self._number("the arrivals of an mbarrier", arrivals)
            if count < 1:
                raise KernelTypeError(
                    f"an mbarrier needs at least one arrival per phase; {name} was given {count}"
                )
            if len(self.barriers) == MOST_BARRIERS:
                raise KernelTypeError(
                    f"the emulator supports at most {MOST_BARRIERS} mbarriers per block; {name} is one more"
                )
            self.barriers[array.storage.serial, cell] = MBarrier(name, count, self.machine.chunk.clocks, site)

    def arrive(self, site, array, index, size=0):
        """Let each active thread arrive and announce ``size`` bytes."""
        if self.machine.log is not None:
            return
        order = self.machine.chunk.clocks
        for cell, threads in self._named(site, array, index):
            barrier = self._known(site, array, cell)
            # If no arrival is missing, the phase ends first, because this arrival belongs to the next phase.
            barrier.settle()
            if order.clocks[order.me, barrier.agent] < barrier.time:
                self._report_early(site, array, cell, barrier)
            if threads > barrier.pending:
                raise KernelStopped(
                    f"In line {self._line(site)} {threads} threads arrive at {barrier.name}, which was "
                    f"initialised for {barrier.arrivals} arrivals per phase and still needs "
                    f"{barrier.pending}: what happens then is undefined."
                )
            np.maximum(barrier.gathered, order.release(), out=barrier.gathered)
            if self.machine.happens_before is not None:
                self.machine.happens_before.arrive(self._warp(), barrier.telling)
            barrier.pending -= threads
            barrier.bytes += threads * self._number("the bytes an mbarrier expects", size)
            barrier.advance()

    def wait(self, site, array, index, parity):
        """Return a generator that waits for the end of a phase of this parity; None where nobody waits."""
        return None if self.machine.log is not None else self._wait(site, array, index, parity)

    def _wait(self, site, array, index, parity):
        wanted_parity = self._number("the parity of a phase", parity)
        for cell, _ in self._named(site, array, index):
            barrier = self._known(site, array, cell)

            def completed(barrier=barrier):
                if barrier.phase % 2 == wanted_parity % 2:
                    barrier.settle()
                return barrier.phase % 2 != wanted_parity % 2

            def what(barrier=barrier):
                return f"phase {barrier.phase} of {barrier.name}, which {barrier.missing()}"

            yield from self.machine.scheduler.wait(site, completed, what)
            self.machine.chunk.clocks.acquire(barrier.known)
            if self.machine.happens_before is not None:
                self.machine.happens_before.wait(self._warp(), barrier.told)

    # ---- what copies and fences do ----

    def add_copy(self, site, array, index, copy):
        """Add a copy that has started and reports to ``array[index]``."""
        ((cell, _),) = self._named(site, array, index) or [(None, 0)]
        barrier = self._known(site, array, cell)
        if not barrier.fenced:
            self._report_unfenced(site, array, cell, barrier)
        barrier.copies.append(copy)

    def fence(self, warp):
        for barrier in self.barriers.values():
            barrier.fenced |= barrier.made_by == warp

    # ---- which barriers are meant, and are they sound ----

    def _named(self, site, array, index) -> list[tuple[int, int]]:
        """Return the barriers that the active threads name, each with the number of threads that name it."""
        machine = self.machine
        if getattr(array, "space", "") != "shared" or array.dtype != np.uint64:
            raise KernelTypeError("an mbarrier is an element of a shared array of uint64")
        index = index if isinstance(index, tuple) else (index,)
        pattern, offset, mask = machine._locate(site, array, index, 1, "uses", from_the_end=False)
        if not mask.any:
            return []
        lanes = (1, 1, machine.chunk.geometry.width)
        cells = np.broadcast_to(offset if pattern is None else pattern.array + offset, lanes)
        chosen, counts = np.unique(cells if mask.array is None else cells[mask.array], return_counts=True)
        return [(int(cell), int(count)) for cell, count in zip(chosen, counts)]

    def _warp(self) -> list[int]:
        """Return the numbers of the running warp's threads, counted over the grid."""
        machine, first = self.machine, self.machine.unit.first_thread
        last = min(first + WARP, machine.chunk.geometry.threads)
        return machine.chunk.thread_ids()[0, 0, first:last].tolist()

    def _known(self, site, array, cell) -> MBarrier:
        barrier = self.barriers.get((array.storage.serial, cell))
        if barrier is None:
            name = place(array.name, array.storage.element(cell))
            raise KernelStopped(
                f"In line {self._line(site)} {name} is used as an mbarrier before mbarrier_init made it one."
            )
        order = self.machine.chunk.clocks
        if barrier.made_at > order.clocks[order.me, barrier.made_by]:
            self._report_unordered(site, array, cell, barrier)
        return barrier

    def _number(self, what, value) -> int:
        """Return a value as one number, which must be the same for all active threads."""
        numbers = np.asarray(self.machine.plain(value))
        if numbers.dtype.kind not in "iub":
            raise KernelTypeError(f"{what} must be an integer")
        mask = self.machine.unit.mask
        if numbers.ndim and mask.array is not None:
            numbers = np.broadcast_to(numbers, np.broadcast_shapes(numbers.shape, mask.array.shape))
            numbers = numbers[np.broadcast_to(mask.array, numbers.shape)]
        if numbers.min() != numbers.max():
            raise KernelTypeError(f"the emulator needs {what} to be the same for all threads of a warp")
        return int(numbers.flat[0])

    def _report_unfenced(self, site, array, cell, barrier):
        self.machine.reporter.thread(
            "missing_fence",
            site,
            f"A copy reports to {barrier.name}, which mbarrier_init initialised in line "
            f"{self._line(barrier.site)}, with no fence_async() since: TMA may not know of it yet.",
            array,
            cell,
        )

    def _report_early(self, site, array, cell, barrier):
        self.machine.reporter.thread(
            "missing_wait",
            site,
            f"Warp {self.machine.unit.number} arrives at {barrier.name}, and nothing tells it that the "
            f"copies of phase {barrier.phase - 1} have come: if they have not, that is one arrival too "
            "many for their phase, and what happens then is undefined.",
            array,
            cell,
        )

    def _report_unordered(self, site, array, cell, barrier):
        self.machine.reporter.thread(
            "shared_race",
            site,
            f"Warp {self.machine.unit.number} uses {barrier.name}, which warp {barrier.made_by} initialises "
            f"in line {self._line(barrier.site)}, with no barrier in between: it may not be an mbarrier yet.",
            array,
            cell,
        )

    def _line(self, site) -> int:
        return self.machine.sites[site].line
