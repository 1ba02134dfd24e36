"""mbarriers: elements of a shared uint64 array that count arrivals and bytes, as the intrinsics say."""

import numpy as np

from .errors import KernelStopped, KernelTypeError
from .findings import place
from .order import MOST_BARRIERS


class MBarrier:
    """One barrier: what its present phase still lacks, and what its arrivals knew."""

    def __init__(self, name, arrivals, order, site):
        self.name, self.arrivals = name, arrivals
        self.pending, self.bytes, self.phase = arrivals, 0, 0
        self.gathered, self.known = order.zero_clock(), order.zero_clock()
        self.agent, self.time = order.new_agent(), 0
        self.made_by, self.made_at, self.site = order.me, int(order.clocks[order.me, order.me]), site
        self.fenced = False
        self.copies: list = []  # under way, each with .bytes and .land(agent, time)

    def advance(self):
        """Go on to the next phase if nothing is lacking."""
        if self.pending == 0 and self.bytes == 0:
            self.phase += 1
            self.pending = self.arrivals
            self.known, self.gathered = self.gathered, np.zeros_like(self.gathered)

    def settle(self):
        """Let copies land once all have arrived: never sooner than somebody needs them."""
        while self.pending == 0 and self.copies:
            copy = self.copies.pop(0)
            self.time += 1
            copy.land(self.agent, self.time)
            self.gathered[self.agent] = self.time
            self.bytes -= copy.bytes
            self.advance()

    def lacking(self) -> str:
        parts = []
        if self.pending:
            parts.append(f"{self.pending} arrival{'s' if self.pending > 1 else ''}")
        if self.bytes:
            expected = (
                "more bytes than the copies bring" if self.bytes > 0 else "bytes fewer than the copies bring"
            )
            parts.append(f"expects {abs(self.bytes):,} {expected}")
        if not parts:
            return "nothing"
        return " and ".join(f"lacks {part}" if "arrival" in part else part for part in parts)


class MBarriers:
    """The mbarriers of the block that runs."""

    def __init__(self, machine):
        self.machine = machine
        self.barriers: dict[tuple, MBarrier] = {}

    # ---- what kernels call ----

    def init(self, site, array, index, arrivals):
        if self.machine.log is not None:
            return
        for cell, _ in self._named(site, array, index):
            name = place(array.name, self.machine.array_element(array.storage, cell))
            count = self._number("the arrivals of an mbarrier", arrivals)
            if count < 1:
                raise KernelTypeError(f"an mbarrier waits for at least one arrival; {name} was given {count}")
            if len(self.barriers) == MOST_BARRIERS:
                raise KernelTypeError(
                    f"the emulator keeps {MOST_BARRIERS} mbarriers a block; {name} is one more"
                )
            self.barriers[array.storage.serial, cell] = MBarrier(name, count, self.machine.order, site)

    def arrive(self, site, array, index, size=0):
        """An arrival of each active thread, announcing ``size`` bytes each."""
        if self.machine.log is not None:
            return
        order = self.machine.order
        for cell, threads in self._named(site, array, index):
            barrier = self._known(site, array, cell)
            barrier.settle()  # an arrival after the last one is meant for the next phase
            if threads > barrier.pending:
                raise KernelStopped(
                    f"In line {self._line(site)} {threads} threads arrive at {barrier.name}, which was "
                    "made for "
                    f"{barrier.arrivals} arrivals a phase and lacks {barrier.pending}: what it does then "
                    "is not "
                    "defined."
                )
            np.maximum(barrier.gathered, order.release(), out=barrier.gathered)
            barrier.pending -= threads
            barrier.bytes += threads * self._number("the bytes an mbarrier expects", size)
            barrier.advance()

    def wait(self, site, array, index, parity):
        """Wait for the end of a phase of this parity."""
        if self.machine.log is not None:
            return
        wanted = self._number("the parity of a phase", parity)
        for cell, _ in self._named(site, array, index):
            barrier = self._known(site, array, cell)

            def over(barrier=barrier):
                if barrier.phase % 2 == wanted % 2:
                    barrier.settle()
                return barrier.phase % 2 != wanted % 2

            def what(barrier=barrier):
                return f"phase {barrier.phase} of {barrier.name}, which {barrier.lacking()}"

            self.machine.scheduler.wait(site, over, what)
            self.machine.order.acquire(barrier.known)

    # ---- what copies and fences do ----

    def add_copy(self, site, array, index, copy):
        """A copy that reports to array[index]."""
        ((cell, _),) = self._named(site, array, index) or [(None, 0)]
        barrier = self._known(site, array, cell)
        if not barrier.fenced:
            self._report_unfenced(site, array, cell, barrier)
        barrier.copies.append(copy)

    def fence(self, warp):
        for barrier in self.barriers.values():
            barrier.fenced |= barrier.made_by == warp

    # ---- which, and is it sound ----

    def _named(self, site, array, index) -> list[tuple[int, int]]:
        """The barriers that the active threads name, each with the number of these threads."""
        machine = self.machine
        if getattr(array, "space", "") != "shared" or array.dtype != np.uint64:
            raise KernelTypeError("an mbarrier is an element of a shared array of uint64")
        index = index if isinstance(index, tuple) else (index,)
        pattern, offset, mask = machine._locate(site, array, index, 1, "uses")
        if not mask.any:
            return []
        lanes = (1, 1, machine.geometry.width)
        cells = np.broadcast_to(offset if pattern is None else pattern.array + offset, lanes)
        chosen, counts = np.unique(cells if mask.array is None else cells[mask.array], return_counts=True)
        return [(int(cell), int(count)) for cell, count in zip(chosen, counts)]

    def _known(self, site, array, cell) -> MBarrier:
        barrier = self.barriers.get((array.storage.serial, cell))
        if barrier is None:
            name = place(array.name, self.machine.array_element(array.storage, cell))
            raise KernelStopped(
                f"In line {self._line(site)} {name} is used as an mbarrier before mbarrier_init made it one."
            )
        order = self.machine.order
        if barrier.made_at > order.clocks[order.me, barrier.made_by]:
            self._report_unordered(site, array, cell, barrier)
        return barrier

    def _number(self, what, value) -> int:
        """One number for all active threads."""
        numbers = np.asarray(self.machine.plain(value))
        if numbers.dtype.kind not in "iub":
            raise KernelTypeError(f"{what} must be a whole number")
        mask = self.machine.mask
        if numbers.ndim and mask.array is not None:
            numbers = np.broadcast_to(numbers, np.broadcast_shapes(numbers.shape, mask.array.shape))
            numbers = numbers[np.broadcast_to(mask.array, numbers.shape)]
        if numbers.min() != numbers.max():
            raise KernelTypeError(f"{what} must be the same for all threads of a warp in the emulator")
        return int(numbers.flat[0])

    def _report_unfenced(self, site, array, cell, barrier):
        self.machine.report_finding(
            "missing_fence",
            site,
            f"A copy reports to {barrier.name}, which mbarrier_init made in line "
            f"{self._line(barrier.site)} with no "
            "fence_async() since: the unit that copies may not know of it.",
            array,
            cell,
        )

    def _report_unordered(self, site, array, cell, barrier):
        self.machine.report_finding(
            "shared_race",
            site,
            f"Warp {self.machine.order.me} uses {barrier.name}, which warp {barrier.made_by} makes in line "
            f"{self._line(barrier.site)}, with no barrier between them: it may not be one yet.",
            array,
            cell,
        )

    def _line(self, site) -> int:
        return self.machine.sites[site].line
