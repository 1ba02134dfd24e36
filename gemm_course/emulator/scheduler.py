"""Warps that run apart: what lock-step cannot do.

Where some warps wait for what others do, running one branch of a kernel to its end before the other would
wait for ever. Kernels with mbarriers therefore run a block at a time, and a warp at a time within it: every
warp is a thread of Python's, of which one runs while the others stand still. A warp runs until it has to
wait; then the next that can go on does. If none can, the kernel would hang on a GPU, and is stopped with a
sentence.
"""

import contextvars
import threading
from collections.abc import Callable
from itertools import groupby

import numpy as np

from .errors import Deadlock
from .geometry import WARP

_SAVED = ("mask", "phase", "batch", "batched", "batch_key", "site")  # of the machine, by the warp that runs


class Warp:
    """One warp: its lanes, whether it waits (until when, for what, where), and its thread."""

    def __init__(self, number, mask):
        self.number, self.mask = number, mask
        self.state = {"mask": mask, "phase": 0, "batch": [], "batched": {}, "batch_key": (), "site": None}
        self.ready: Callable[[], bool] | None = None
        self.what: Callable[[], str] | None = None
        self.site = None
        self.done = False
        self.wake = threading.Semaphore(0)

    @property
    def first_thread(self) -> int:
        return self.number * WARP


class _Abandoned(BaseException):
    """Ends a warp's thread when the launch is over."""


class WarpScheduler:
    """Runs the warps of one block, ``call()`` each, and lets them wait."""

    def __init__(self, machine, call):
        self.machine, self.call = machine, call
        self.warps = [Warp(number, mask) for number, mask in enumerate(_masks(machine.geometry))]
        self.current: Warp = self.warps[0]
        self.at_barrier: dict[int, object] = {}  # warp: its lanes there
        self.passed = 0  # barriers of the whole block
        self._all_done = threading.Semaphore(0)
        self._over = False
        self._error: BaseException | None = None

    def run(self):
        """Returns when all warps have run; raises what any of them raised."""
        threads = [
            threading.Thread(target=contextvars.copy_context().run, args=(self._live, warp), daemon=True)
            for warp in self.warps
        ]
        for thread in threads:
            thread.start()
        try:
            self._hand_to(self.warps[0])
            self._all_done.acquire()
        finally:
            self._over = True
            for warp in self.warps:
                warp.wake.release()
            for thread in threads:
                thread.join()
        if self._error is not None:
            raise self._error

    def _live(self, warp):
        """The life of a warp's thread."""
        try:
            self._sleep(warp)
            self.call()
            self.machine.warp_ends(warp)
            warp.done = True
            self._leave_barrier_to_the_others()
            successor = self._next()
            if successor is None and not all(other.done for other in self.warps):
                raise Deadlock(self._standstill())
        except _Abandoned:
            return
        except BaseException as error:
            self._error, successor = error, None
        if successor is None:
            self._all_done.release()
        else:
            self._hand_to(successor)

    # ---- waiting ----

    def wait(self, site, ready: Callable[[], bool], what: Callable[[], str]):
        """Let the warp that runs wait until ``ready()``; ``what()`` says for what. Raises Deadlock."""
        warp = self.current
        warp.ready, warp.what, warp.site = ready, what, site
        while not ready():
            successor = self._next()
            if successor is None:
                raise Deadlock(self._standstill())
            if successor is not warp:
                warp.state = {name: getattr(self.machine, name) for name in _SAVED}
                self._hand_to(successor)
                self._sleep(warp)
        warp.ready = None

    def _next(self) -> Warp | None:
        """The next warp that can go on, after the one that runs."""
        start = self.current.number + 1
        for warp in self.warps[start:] + self.warps[:start]:
            if not warp.done and (warp.ready is None or warp.ready()):
                return warp
        return None

    def _hand_to(self, warp):
        self.current = warp
        warp.wake.release()

    def _sleep(self, warp):
        warp.wake.acquire()
        if self._over:
            raise _Abandoned
        for name, value in warp.state.items():
            setattr(self.machine, name, value)

    def _standstill(self) -> str:
        waiting = [(warp.what(), warp.site, warp.number) for warp in self.warps if not warp.done]
        parts = []
        for (what, site), group in groupby(sorted(waiting), key=lambda entry: entry[:2]):
            numbers = [number for _, _, number in group]
            verb = "wait" if len(numbers) > 1 else "waits"
            parts.append(f"{_named(numbers)} {verb} in line {self.machine.sites[site].line} for {what}")
        return "No warp of the block can go on, so on a GPU this would hang: " + "; ".join(parts) + "."

    # ---- the barrier of the block ----

    def barrier(self, site):
        """``cuda.syncthreads()``: wait for all other warps."""
        machine = self.machine
        self.at_barrier[self.current.number] = machine.mask
        generation = self.passed
        if not self._meet(site):
            self.wait(site, lambda: self.passed != generation, lambda: "the other warps at a barrier")

    def _meet(self, site) -> bool:
        """Let everybody pass if all are there who will ever come."""
        if any(not warp.done and warp.number not in self.at_barrier for warp in self.warps):
            return False
        self.machine.all_warps_arrived(site, list(self.at_barrier.values()))
        self.at_barrier = {}
        self.passed += 1
        return True

    def _leave_barrier_to_the_others(self):
        """A warp that has ended is not waited for."""
        waiting = [warp for warp in self.warps if warp.number in self.at_barrier]
        if waiting:
            self._meet(waiting[0].site)


def _masks(geometry):
    exists = np.broadcast_to(
        True if geometry.all_threads.array is None else geometry.all_threads.array, (1, 1, geometry.width)
    )
    warp = geometry.linear // WARP
    return [geometry.mask(exists & (warp == number)) for number in range(geometry.width // WARP)]


def _named(numbers: list[int]) -> str:
    """``warp 4``, ``warps 0 to 3``, ``warps 0, 5``."""
    if len(numbers) == 1:
        return f"warp {numbers[0]}"
    if numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"warps {numbers[0]} to {numbers[-1]}"
    return "warps " + ", ".join(map(str, numbers))
