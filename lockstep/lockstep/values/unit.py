"""Holds the unit that runs now: lanes in lock-step, and what each unit has for itself.

:attr:`Machine.unit` is all of a chunk's lanes, or one of the parts that run in turns (:mod:`.scheduler`).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .lanes import Mask

try:
    from time import thread_time
except ImportError:  # A Python without threads has only one thread's time.
    from time import process_time as thread_time


class Frame:
    """One call of a function: the lanes that have returned from it, and what they returned."""

    __slots__ = ("returned", "value")

    def __init__(self):
        self.returned = self.value = None


class Unit:
    """Lanes that run in lock-step: which of them are active, and where in the kernel they are."""

    __slots__ = (
        "lanes",
        "mask",
        "phase",
        "site",
        "library_call",
        "depths",
        "exits",
        "batch",
        "batched",
        "looked_at",
        "away",
    )

    def __init__(self, lanes: Mask):
        self.lanes = lanes
        # `mask` has the lanes that execute the current statement.
        self.mask = lanes
        # `phase` counts the syncwarps since the last barrier.
        self.phase = 0
        # `site` is the place in the source of the call that is executed.
        self.site: int | None = None
        # `library_call` is the site of the program's call of a library's function, while that function runs.
        self.library_call: int | None = None
        # `depths` counts the calls that have not returned, for each function that calls itself.
        self.depths: Counter = Counter()
        # `exits` is the call of the kernel. The lanes that return from it have exited.
        self.exits: Frame | None = None
        # `batch` has the lengths of the loops whose iterations run at once.
        self.batch: tuple[int, ...] = ()
        # `batched` maps the name of each of these loops to the position of its length in `batch`.
        self.batched: dict[str, int] = {}
        # `looked_at` has the serial numbers of the memories that the present iteration of a loop has read.
        self.looked_at: set[int] = set()
        # `away` counts the seconds of the processor in which other units ran while this one waited.
        self.away = 0.0

    def seconds(self) -> float:
        """Return the processor's time in seconds, which stands still while the unit waits for others."""
        return thread_time() - self.away

    def open_batch(self, name: str, length: int):
        """Run ``length`` iterations of a loop at once."""
        self.batched[name] = len(self.batch)
        self.batch += (length,)

    def close_batch(self, name: str):
        """End the innermost loop whose iterations run at once."""
        self.batch = self.batch[:-1]
        del self.batched[name]
