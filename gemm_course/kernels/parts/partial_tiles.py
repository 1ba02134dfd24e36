"""Shares out steps among Stream-K's blocks, and hands partial sums to the block that completes a tile."""

import math

from numba import cuda

from lockstep.intrinsics import load4, store4, unroll


@cuda.jit(device=True)
def block_of(step, steps, blocks):
    """Return the block whose range has this step: the largest b with steps * b // blocks <= step."""
    return ((step + 1) * blocks - 1) // steps


def partial_sums(ROWS, COLUMNS, THREADS):
    """Return the functions that write and add accumulators, ROWS by COLUMNS in each of THREADS threads."""

    @cuda.jit(device=True)
    def write(partials, place, acc, thread):
        """Write a thread's accumulators to a place of the workspace, a row of `partials`."""
        for i in unroll(range(ROWS)):
            for j in unroll(range(0, COLUMNS, 4)):
                four = (acc[i, j], acc[i, j + 1], acc[i, j + 2], acc[i, j + 3])
                store4(partials, (place, (i * COLUMNS + j) * THREADS + thread * 4), four)

    @cuda.jit(device=True)
    def add(partials, place, acc, thread):
        """Add to acc what the thread of this number in another block has written to a place."""
        for i in unroll(range(ROWS)):
            for j in unroll(range(0, COLUMNS, 4)):
                v = load4(partials, (place, (i * COLUMNS + j) * THREADS + thread * 4))
                for e in unroll(range(4)):
                    acc[i, j + e] += v[e]

    return write, add


def blocks_for(tiles: int, steps: int, most: int) -> int:
    """Return how many blocks share out `tiles` tiles of `steps` steps each. `most` fit the GPU at a time.

    A tile in p parts takes steps / p steps and p additions. If an addition takes as long as a step (on
    an H200 as long as about 1.4 steps, NOTES.md), the square root of the steps is the best number of parts.
    """
    return min(most, tiles * max(1, round(math.sqrt(steps))))
