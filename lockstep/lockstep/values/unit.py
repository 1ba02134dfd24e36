"""Holds the unit that runs now: lanes in lock-step, and what each unit has for itself.

:attr:`Machine.unit` is all of a chunk's lanes, or one of the parts that run in turns (:mod:`.scheduler`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .lanes import Mask


class Frame:
    """One call of a function: the lanes that have returned from it, and what they returned."""

    __slots__ = ("returned", "value")

    def __init__(self):
        self.returned = self.value = None


class Unit:
    """Lanes that run in lock-step: which of them are active, and where in the kernel they are."""

    __slots__ = ("lanes", "mask", "phase", "site", "library_call", "exits", "batch", "batched")

    def __init__(self, lanes: Mask):
        self.lanes = lanes  # all of them
        self.mask = lanes  # the lanes that execute the current statement
        self.phase = 0  # syncwarps since the last barrier
        self.site: int | None = None  # the place in the source of the call that is executed
        self.library_call: int | None = None  # the program's call of a library's function that is executed
        self.exits: Frame | None = None  # the call of the kernel; the lanes that return from it have exited
        self.batch: tuple[int, ...] = ()  # lengths of the loops whose iterations run at once
        self.batched: dict[str, int] = {}  # name of such a loop -> its place in ``batch``

    def open_batch(self, name: str, length: int):
        """Run ``length`` iterations of a loop at once."""
        self.batched[name] = len(self.batch)
        self.batch += (length,)

    def close_batch(self, name: str):
        """End the innermost loop whose iterations run at once."""
        self.batch = self.batch[:-1]
        del self.batched[name]
