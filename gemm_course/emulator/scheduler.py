"""Warps that run one at a time, for kernels that lock-step cannot run.

Where some warps wait for others, running one branch of a kernel to its end before the other would never end.
Kernels with mbarriers therefore run one block at a time, and one warp of it at a time: every warp is a Python
thread, and only one of them runs. A warp runs until it has to wait; then the next one that can continue does.
If none can, the kernel would hang on a GPU, and the emulator stops it with a message.
"""

import contextvars
import threading
from collections.abc import Callable
from itertools import groupby

import numpy as np

from .errors import Deadlock
from .geometry import WARP

_SAVED = ("mask", "phase", "batch", "batched", "batch_key", "site")  # of the machine, saved per warp


class Warp:
    """One warp: its lanes, its saved state, and what it is waiting for, if anything."""

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


class _LaunchOver(BaseException):
    """Ends a warp's thread when the launch is over."""


class WarpScheduler:
    """Runs the warps of one block, each by ``call()``, and lets them wait for each other."""

    def __init__(self, machine, call):
        self.machine, self.call = machine, call
        self.warps = [Warp(number, mask) for number, mask in enumerate(_masks(machine.geometry))]
        self.current: Warp = self.warps[0]
        self.at_barrier: dict[int, object] = {}  # warp -> its lanes there
        self.passed = 0  # barriers that the whole block has passed
        self._all_done = threading.Semaphore(0)
        self._over = False
        self._error: BaseException | None = None

    def run(self):
        """Run all warps to their end; raises what any of them raised."""
        threads = [
            threading.Thread(target=contextvars.copy_context().run, args=(self._run_warp, warp), daemon=True)
            for warp in self.warps
        ]
        for thread in threads:
            thread.start()
        try:
            self._switch_to(self.warps[0])
            self._all_done.acquire()
        finally:
            self._over = True
            for warp in self.warps:
                warp.wake.release()
            for thread in threads:
                thread.join()
        if self._error is not None:
            raise self._error

    def _run_warp(self, warp):
        """What a warp's Python thread does."""
        try:
            self._sleep(warp)
            self.call()
            self.machine.warp_ends(warp)
            warp.done = True
            self._stop_waiting_for_ended_warp()
            successor = self._next()
            if successor is None and not all(other.done for other in self.warps):
                raise Deadlock(self._deadlock())
        except _LaunchOver:
            return
        except BaseException as error:
            self._error, successor = error, None
        if successor is None:
            self._all_done.release()
        else:
            self._switch_to(successor)

    # ---- waiting ----

    def wait(self, site, ready: Callable[[], bool], what: Callable[[], str]):
        """Let the running warp wait until ``ready()``; ``what()`` says what for. Raises Deadlock."""
        warp = self.current
        warp.ready, warp.what, warp.site = ready, what, site
        while not ready():
            successor = self._next()
            if successor is None:
                raise Deadlock(self._deadlock())
            if successor is not warp:
                warp.state = {name: getattr(self.machine, name) for name in _SAVED}
                self._switch_to(successor)
                self._sleep(warp)
        warp.ready = None

    def _next(self) -> Warp | None:
        """The next warp after the running one that can continue."""
        start = self.current.number + 1
        for warp in self.warps[start:] + self.warps[:start]:
            if not warp.done and (warp.ready is None or warp.ready()):
                return warp
        return None

    def _switch_to(self, warp):
        self.current = warp
        warp.wake.release()

    def _sleep(self, warp):
        warp.wake.acquire()
        if self._over:
            raise _LaunchOver
        for name, value in warp.state.items():
            setattr(self.machine, name, value)

    def _deadlock(self) -> str:
        waiting = [(warp.what(), warp.site, warp.number) for warp in self.warps if not warp.done]
        parts = []
        for (what, site), group in groupby(sorted(waiting), key=lambda entry: entry[:2]):
            numbers = [number for _, _, number in group]
            verb = "wait" if len(numbers) > 1 else "waits"
            parts.append(f"{_named(numbers)} {verb} in line {self.machine.sites[site].line} for {what}")
        return "No warp of the block can continue, so a GPU would hang: " + "; ".join(parts) + "."

    # ---- the barrier of the block ----

    def barrier(self, site):
        """``cuda.syncthreads()``: wait for all other warps."""
        machine = self.machine
        self.at_barrier[self.current.number] = machine.mask
        generation = self.passed
        if not self._try_release(site):
            self.wait(site, lambda: self.passed != generation, lambda: "the other warps at a barrier")

    def _try_release(self, site) -> bool:
        """Release the barrier if every warp that has not ended is there."""
        if any(not warp.done and warp.number not in self.at_barrier for warp in self.warps):
            return False
        self.machine.all_warps_arrived(site, list(self.at_barrier.values()))
        self.at_barrier = {}
        self.passed += 1
        return True

    def _stop_waiting_for_ended_warp(self):
        """The warp has ended: those at a barrier no longer wait for it."""
        waiting = [warp for warp in self.warps if warp.number in self.at_barrier]
        if waiting:
            self._try_release(waiting[0].site)


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
