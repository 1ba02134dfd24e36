"""Who is ordered after whom: the emulator, and plain vector clocks of all threads, on random kernels.

Blocks of one warp store, and the last one loads what the others have stored. In between, some lanes meet,
execute fences and update counters. In lock-step all blocks take each step together; with mbarriers, each
block runs alone.
"""

import random

import numpy as np
import pytest
from numba import cuda, float64, uint64

from lockstep import emulate
from lockstep.intrinsics import mbarrier_arrive, mbarrier_init, mbarrier_wait
from lockstep_tests.sampling import examples

BLOCKS, LANES, FULL = 3, 32, 0xFFFFFFFF
THREADS = BLOCKS * LANES
STORE, SYNCWARP, FENCE, FENCE_OF_BLOCK, ATOMIC, BARRIER, MBARRIER = range(7)
MASKS = (FULL, FULL, FULL, 1, 3, 0xFFFF, 0xFFFF0000, FULL ^ 1, FULL ^ 2, 0x80000001, 0x10)


def kernel_of(mbarriers):
    @cuda.jit
    def kernel(steps, x, counters, out):
        bars = cuda.shared.array(16, uint64)
        t, block = cuda.threadIdx.x, cuda.blockIdx.x
        if mbarriers and t == 0:
            for i in range(16):
                mbarrier_init(bars, i, LANES)
        cuda.syncthreads()
        for i in range(steps.shape[0]):
            step, mask, counter = steps[i, 0], steps[i, 1], steps[i, 2]
            if step == BARRIER:
                cuda.syncthreads()
            elif step == MBARRIER:
                if mbarriers:
                    mbarrier_arrive(bars, i)
                    mbarrier_wait(bars, i, 0)
            elif mask >> t & 1:
                if step == STORE:
                    x[block, t] = 1 + t
                elif step == SYNCWARP:
                    cuda.syncwarp(mask)
                elif step == FENCE:
                    cuda.threadfence()
                elif step == FENCE_OF_BLOCK:
                    cuda.threadfence_block()
                elif step == ATOMIC:
                    cuda.atomic.add(counters, counter, 1)
        y = float64(0)
        if block == BLOCKS - 1:
            for other in range(BLOCKS - 1):
                y += x[other, (t + other) % LANES]
        out[block, t] = y

    return kernel


def random_steps(draw, mbarriers):
    """(step, mask, counter): mostly what a kernel does that hands something over."""

    def meet_or_fence(syncwarps, fences):
        kind = draw.choices((SYNCWARP, FENCE, FENCE_OF_BLOCK), (syncwarps, fences, fences / 6))[0]
        return kind, draw.choice(MASKS), 0

    steps = [(STORE, draw.choice(MASKS), 0)]
    steps += [meet_or_fence(1, 1) for _ in range(draw.randint(2, 4))]
    steps.append((ATOMIC, draw.choice((1, 1, 1, 2, 3, FULL)), 0))
    for _ in range(draw.randint(0, 4)):
        other = draw.random()
        if other < 0.1:
            steps.append((ATOMIC, draw.choice((1, 2, 3, FULL)), draw.randrange(2)))
        elif other < 0.2:
            steps.append((MBARRIER if mbarriers else BARRIER, FULL, 0))
        else:
            steps.append(meet_or_fence(1, 1))
    return steps


class Clocks:
    """For each thread: what it is ordered after, what its fences cover, and what its atomics have read."""

    def __init__(self):
        self.clock, self.fenced, self.read = np.zeros((3, THREADS, THREADS), np.int64)
        self.clock += np.eye(THREADS, dtype=np.int64)
        self.released = np.zeros((2, THREADS), np.int64)
        self.stored = np.zeros(THREADS, np.int64)

    def take(self, step, mask, counter, block):
        some = [block * LANES + lane for lane in range(LANES) if mask >> lane & 1]
        if step == STORE:
            self.stored[some] = self.clock[some, some]
        elif step in (SYNCWARP, BARRIER, MBARRIER):
            for known in (self.clock, self.fenced, self.read):
                known[some] = known[some].max(axis=0)
            if step != MBARRIER:  # the emulator takes a barrier for a fence after an atomic
                self.clock[some] = np.maximum(self.clock[some], self.read[some])
            self.clock[some, some] += 1
        elif step == FENCE:
            self.clock[some] = self.fenced[some] = np.maximum(self.clock[some], self.read[some])
            self.clock[some, some] += 1
        elif step == ATOMIC:
            for thread in some:
                self.read[thread] = np.maximum(self.read[thread], self.released[counter])
                self.released[counter] = np.maximum(self.released[counter], self.fenced[thread])

    def races(self):
        """Loads of the last block that are not ordered after the stores."""
        pairs = (
            ((BLOCKS - 1) * LANES + lane, other * LANES + (lane + other) % LANES)
            for other in range(BLOCKS - 1)
            for lane in range(LANES)
        )
        return sum(bool(self.stored[b] and self.clock[a, b] < self.stored[b]) for a, b in pairs)


@pytest.mark.parametrize("mbarriers", [False, True])
def test_random_kernels_race_where_clocks_say_so(mbarriers):
    kernel, draw, outcomes = kernel_of(mbarriers), random.Random(1), set()
    for _ in range(examples(50, one_in=2)):
        steps, clocks = random_steps(draw, mbarriers), Clocks()
        blocks = range(BLOCKS)
        order = (
            [(s, b) for b in blocks for s in steps] if mbarriers else [(s, b) for s in steps for b in blocks]
        )
        for step, block in order:
            clocks.take(*step, block)
        arrays = np.array(steps), np.zeros((BLOCKS, LANES)), np.zeros(2, np.int64), np.zeros((BLOCKS, LANES))
        found = emulate(kernel, BLOCKS, LANES, *arrays).findings
        assert {finding.kind for finding in found} <= {"global_race"}, (steps, list(map(str, found)))
        assert sum(finding.count for finding in found) == clocks.races(), steps
        outcomes.add(min(clocks.races(), 63))
    assert {0, 63} < outcomes  # none, all of them, and some
