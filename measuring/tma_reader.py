"""Moves boxes from the L2 cache to shared memory by TMA and nothing else, to measure how fast that is.

Every multiprocessor has one block, and every warp of the block has one slot in shared memory. The warp's
first thread requests a box, waits until it has landed, and requests the next into the same slot. So as many
boxes are in flight as there are slots. In a matrix product, neighbouring blocks read the same tiles at the
same time, which the hardware may serve together. So that is tried, too.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

COLUMNS = 64  # float16 values in a row of a box: 128 bytes, the longest row that is swizzled
LOADS = 400  # the number of boxes per slot and launch


@dataclass(frozen=True)
class Choice:
    """One way to read: boxes of `rows` rows, `slots` in flight per block, each read by `sharers` blocks."""

    rows: int
    slots: int
    sharers: int

    @property
    def box_bytes(self) -> int:
        return self.rows * COLUMNS * 2

    @property
    def shared_bytes(self) -> int:
        return self.slots * self.box_bytes

    @property
    def threads(self) -> int:
        return 32 * self.slots

    def moved(self, blocks: int, loads: int) -> int:
        """Return the bytes that this many blocks read in one launch."""
        return blocks * self.slots * loads * self.box_bytes

    def __str__(self) -> str:
        shared = f"each read by {self.sharers} blocks" if self.sharers > 1 else "each read by one block"
        return f"TMA, boxes of {self.box_bytes // 1024} KB, {self.slots} in flight per SM, {shared}"


SLOTS = {64: (8, 16, 24), 128: (4, 8, 12), 256: (2, 4, 6)}  # by rows: 64, 128 and 192 KB in flight
SHARERS = (1, 2, 8, 16)


CHOICES = [
    Choice(rows, slots, sharers) for rows, counts in SLOTS.items() for slots in counts for sharers in SHARERS
]


def array_of(size: int) -> np.ndarray:
    """Return an array of about `size` bytes that holds whole boxes of every size, (rows, COLUMNS) float16."""
    most = max(SLOTS)
    return np.zeros((max(1, size // (most * COLUMNS * 2)) * most, COLUMNS), np.float16)


@functools.cache
def reader(rows: int, slots: int):
    """Return the kernel (array, boxes, sharers, loads, out), where array is a tensor map.

    Its boxes have `rows` rows. Each slot reads `loads` boxes. From one to the next it skips as many as there
    are readers, and begins again at the array's end. out (blocks * slots, float32) gets the first element of
    the last box, for tests.
    """
    from numba import cuda, float32, uint64
    from numba.types import float16

    from lockstep.intrinsics import (
        fence_async,
        mbarrier_expect,
        mbarrier_init,
        mbarrier_wait,
        tma_acquire,
        tma_load,
        u32,
        unroll,
    )

    ELEMENTS = rows * COLUMNS

    @cuda.jit
    def read_by_tma(array, boxes, sharers, loads, out):
        full = cuda.shared.array(slots, uint64)
        tiles = cuda.shared.array(0, float16, 1024)
        tid = u32(cuda.threadIdx.x)
        if tid == 0:
            for s in unroll(range(slots)):
                mbarrier_init(full, s, 1)
            fence_async()
        cuda.syncthreads()
        if tid % 32 != 0:
            return
        tma_acquire(array)
        slot, parity = u32(tid // 32), u32(0)
        readers = u32((cuda.gridDim.x + sharers - 1) // sharers * slots)
        box, step = u32((cuda.blockIdx.x // sharers * slots + slot) % boxes), u32(readers % boxes)
        for _ in range(loads):
            mbarrier_expect(full, slot, ELEMENTS * 2)
            tma_load(tiles, slot * ELEMENTS, array, (u32(box * rows), 0), full, slot)
            mbarrier_wait(full, slot, parity)
            parity, box = u32(parity ^ 1), u32(box + step)
            if box >= boxes:  # The operator % would need a slow division.
                box = u32(box - boxes)
        out[u32(cuda.blockIdx.x * slots + slot)] = float32(tiles[slot * ELEMENTS])

    return read_by_tma
