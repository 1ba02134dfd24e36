"""Records one block or warp access by access, for pictures of which lane accesses what, and when."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from lockstep.values.geometry import WARP


class Row(NamedTuple):
    """A record of what one lane did in one instruction. ``address`` counts bytes from the array's start."""

    step: int
    line: int
    site: int
    space: str
    op: str
    array: str
    element: tuple
    thread: int
    lane: int
    warp: int
    address: int
    bits: int
    value: object


@dataclass(frozen=True)
class Watch:
    """A choice of what to record: the block (x, y, z), one of its warps or all (None), and the limit of rows.

    local: whether to record accesses to local arrays as well, which are most of the rows.
    """

    block: tuple = (0, 0, 0)
    warp: int | None = None
    limit: int = 50_000
    local: bool = True

    def __post_init__(self):
        block = self.block if isinstance(self.block, tuple) else (self.block,)
        object.__setattr__(self, "block", tuple(block) + (0,) * (3 - len(block)))

    def inside(self, z, y, x, rows, columns) -> bool:
        bx, by, bz = self.block
        return bz == z and y <= by < y + rows and x <= bx < x + columns


class Watcher:
    """A recorder of the accesses of one block or warp. ``full`` says that the limit of rows is reached."""

    def __init__(self, watch: Watch):
        self.watch, self.rows, self.steps, self.full = watch, [], 0, False

    def record(self, machine, access, values):
        """Record an instruction's access by every active lane."""
        if access.storage.space == "local" and not self.watch.local:
            return
        lanes = self._active(machine, access.mask)
        if len(lanes) == 0:
            return
        step = self._next()
        if len(self.rows) >= self.watch.limit:
            self.full = True
            return
        line = machine.sites[access.site].line
        array = access.storage
        size, bits = array.dtype.itemsize, array.dtype.itemsize * 8 * access.width
        flat = (self._in_block(machine, access.pattern.array) + access.offset)[lanes]
        numbers = [self._in_block(machine, np.asarray(machine.plain(v)))[lanes].tolist() for v in values]
        values = numbers[0] if len(numbers) == 1 else zip(*numbers)
        what = step, line, access.site, array.space, access.op, access.name
        where = zip(array.elements(flat), _who(lanes), (flat * size).tolist(), values)
        self._add([Row(*what, element, *who, address, bits, v) for element, who, address, v in where])

    def record_barrier(self, machine, site):
        lanes = self._active(machine, machine.unit.mask)
        if len(lanes) == 0:
            return
        what = (self._next(), machine.sites[site].line, site, "", "barrier", "", ())
        self._add([Row(*what, *who, address=-1, bits=0, value=None) for who in _who(lanes)])

    def ordered(self, machine):
        """Do nothing, because the order that a barrier or a fence makes adds no row."""

    def _next(self) -> int:
        self.steps += 1
        return self.steps - 1

    def _add(self, rows):
        room = self.watch.limit - len(self.rows)
        self.full |= room < len(rows)
        self.rows += rows[:room]

    def _active(self, machine, mask) -> np.ndarray:
        threads = np.arange(machine.chunk.geometry.threads, dtype=np.int64)
        if self.watch.warp is not None:
            threads = threads[threads // WARP == self.watch.warp]
        if mask.array is None:
            return threads
        return threads[self._in_block(machine, mask.array)[threads]]

    def _in_block(self, machine, array) -> np.ndarray:
        """Return the watched block's part of a value, one entry per thread."""
        _, y, x = machine.chunk.origin
        bx, by, _ = self.watch.block
        return np.broadcast_to(array, machine.chunk.geometry.shape)[by - y, bx - x]

    def frame(self):
        import pandas as pd

        return pd.DataFrame(self.rows, columns=Row._fields)


def _who(threads: np.ndarray):
    """Return (thread, lane, warp) of each thread, given its number in the block."""
    return zip(threads.tolist(), (threads % WARP).tolist(), (threads // WARP).tolist())
