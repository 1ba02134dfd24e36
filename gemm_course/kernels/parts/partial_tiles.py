"""What Stream-K's blocks leave for the one that completes a tile, and how they share out the steps."""

import math

from numba import cuda

from lockstep.intrinsics import load4, store4, unroll


@cuda.jit(device=True)
def block_of(step, steps, blocks):
    """The block whose range has this step: the largest b with steps * b // blocks <= step."""
    return ((step + 1) * blocks - 1) // steps


def partial_sums(ROWS, COLUMNS, THREADS):
    """Returns the functions that write and add accumulators, ROWS by COLUMNS in each of THREADS threads."""

    @cuda.jit(device=True)
    def write(partials, place, acc, thread):
        """Write a thread's part of a tile to a place of the workspace."""
        for i in unroll(range(ROWS)):
            for j in unroll(range(0, COLUMNS, 4)):
                four = (acc[i, j], acc[i, j + 1], acc[i, j + 2], acc[i, j + 3])
                store4(partials, (place, (i * COLUMNS + j) * THREADS + thread * 4), four)

    @cuda.jit(device=True)
    def add(partials, place, acc, thread):
        """Add what the same thread of a block has written to a place."""
        for i in unroll(range(ROWS)):
            for j in unroll(range(0, COLUMNS, 4)):
                v = load4(partials, (place, (i * COLUMNS + j) * THREADS + thread * 4))
                for e in unroll(range(4)):
                    acc[i, j + e] += v[e]

    return write, add


def blocks_for(tiles: int, steps: int, most: int) -> int:
    """How many blocks share out so many tiles of so many steps each; `most` fit the GPU at a time.

    A tile in p parts takes steps / p steps and p additions. If an addition takes as long as a step (on
    an H200 some 1.4 of one, NOTES.md), the square root of the steps is the best number of parts.
    """
    return min(most, tiles * max(1, round(math.sqrt(steps))))
