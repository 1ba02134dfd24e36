"""Computes what a loop over a range costs as compiled, from how often each lane runs it.

LLVM unrolls such a loop by four: a second loop, mostly before it, runs the iterations that are left over,
count % 4. If the lanes of a warp run different numbers of iterations, they are then at different iterations:
there are more requests, or requests with more sectors.
"""

import numpy as np

LANES, SECTOR = 32, 32


def unrolled(counts, *addresses, left_over_last=False):
    """The requests and sectors that are added to those of lock-step, as {"requests": ..., "sectors": ...}.

    counts: the iterations of each thread. addresses: for each load of the loop, a function from arrays of
    threads and of their iterations to byte addresses. left_over_last: whether the second loop comes last.
    """
    compiled = _four_then_left_over if left_over_last else _left_over_then_four
    more = np.zeros(2, int)
    for first in range(0, len(counts), LANES):
        warp = np.arange(first, min(first + LANES, len(counts)))
        for address in addresses:
            more += _cost(compiled(counts[warp]), warp, address)
            more -= _cost(_in_step(counts[warp]), warp, address)
    requests, sectors = more.tolist()
    return {"requests": requests, "sectors": sectors}


def _in_step(counts):
    """Yield (lanes, their iterations) of each load in lock-step."""
    for k in range(counts.max()):
        lanes = np.flatnonzero(counts > k)
        yield lanes, np.full(lanes.size, k)


def _left_over_then_four(counts):
    left_over = counts % 4
    yield from _in_step(left_over)
    yield from _later(left_over, counts - left_over)


def _four_then_left_over(counts):
    left_over = counts % 4
    yield from _in_step(counts - left_over)
    yield from _later(counts - left_over, left_over)


def _later(done, counts):
    """Yield the same for each lane's iterations after those that are done."""
    for lanes, iterations in _in_step(counts):
        yield lanes, done[lanes] + iterations


def _cost(loads, warp, address):
    loads = [np.unique(address(warp[lanes], iterations) // SECTOR).size for lanes, iterations in loads]
    return np.array([len(loads), sum(loads)])
