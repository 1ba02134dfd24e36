"""Makes a small kernel of a producer and four consumer warps, around a device function for each role."""

from numba import cuda, float32, uint64
from numba.types import float16

from lockstep.intrinsics import (
    carve,
    fence_async,
    mbarrier_arrive,
    mbarrier_expect,
    mbarrier_init,
    mbarrier_wait,
    tma_acquire,
    tma_load,
    unroll,
    wgmma,
    wgmma_commit,
    wgmma_fence,
    wgmma_wait,
)


def two_roles(SLOTS, produce, consume):
    """Return a kernel (k, A, B, C): C = A @ B for whole tiles of 64 by 64, by 160 threads per block.

    A and B are tensor maps with boxes of 64 by 64, C is float32. A slot takes 16 KB of shared memory.
    """

    @cuda.jit
    def kernel(k, A, B, C):
        full = cuda.shared.array(SLOTS, uint64)
        empty = cuda.shared.array(SLOTS, uint64)
        tiles = cuda.shared.array(0, float16, 1024)  # as large as the launch says
        As = carve(tiles, 0, (SLOTS, 64, 64))
        Bs = carve(tiles, SLOTS * 64 * 64, (SLOTS, 64, 64))
        acc = cuda.local.array(32, float32)
        tid = cuda.threadIdx.x
        lane = tid % 32
        row0, col0 = cuda.blockIdx.y * 64, cuda.blockIdx.x * 64
        steps = (k + 63) // 64
        if tid == 0:
            tma_acquire(A)
            tma_acquire(B)
            for s in range(SLOTS):
                mbarrier_init(full, s, 1)  # the producer arrives, and says how many bytes come
                mbarrier_init(empty, s, 4)  # one lane of each consumer warp arrives
            fence_async()
        cuda.syncthreads()  # the last barrier of the whole block

        if tid >= 128:
            if lane == 0:
                produce(full, empty, As, Bs, A, B, row0, col0, steps, SLOTS)
        else:
            for e in unroll(range(32)):
                acc[e] = 0
            consume(full, empty, As, Bs, acc, lane, steps, SLOTS)
            row, col = row0 + tid // 32 * 16 + lane // 4, col0 + lane % 4 * 2
            for e in unroll(range(32)):
                C[row + e // 2 % 2 * 8, col + e // 4 * 8 + e % 2] = acc[e]

    return kernel


@cuda.jit(device=True)
def given_producer(full, empty, As, Bs, A, B, row0, col0, steps, slots):
    """The producer of two_roles: a tile of A and one of B for each step, as soon as the slot is empty."""
    slot, parity = 0, 0
    for step in range(steps):
        mbarrier_wait(empty, slot, parity ^ 1)
        mbarrier_expect(full, slot, 2 * 64 * 64 * 2)
        tma_load(As, (slot, 0, 0), A, (row0, step * 64), full, slot)
        tma_load(Bs, (slot, 0, 0), B, (step * 64, col0), full, slot)
        slot += 1
        if slot == slots:
            slot, parity = 0, parity ^ 1


@cuda.jit(device=True)
def given_consumer(full, empty, As, Bs, acc, lane, steps, slots):
    """The consumers of two_roles: each tile multiplied, then its slot given back."""
    slot, parity = 0, 0
    for _ in range(steps):
        mbarrier_wait(full, slot, parity)
        wgmma_fence()
        for p in unroll(range(0, 64, 16)):
            wgmma(64, acc, As, (slot, 0, p), Bs, (slot, p, 0))
        wgmma_commit()
        wgmma_wait(0)
        if lane == 0:
            mbarrier_arrive(empty, slot)
        slot += 1
        if slot == slots:
            slot, parity = 0, parity ^ 1


def patient_consumer(tiles):
    """Return the same consumers, but nothing is multiplied before ``tiles`` slots are full."""

    @cuda.jit(device=True)
    def consume(full, empty, As, Bs, acc, lane, steps, slots):
        for slot in range(tiles):
            mbarrier_wait(full, slot, 0)
        given_consumer(full, empty, As, Bs, acc, lane, steps, slots)

    return consume


@cuda.jit(device=True)
def late_consumer(full, empty, As, Bs, acc, lane, steps, slots):
    """The same, with one group of products left running: a slot is given back one step later."""
    slot, parity, before = 0, 0, 0
    for step in range(steps):
        mbarrier_wait(full, slot, parity)
        wgmma_fence()
        for p in unroll(range(0, 64, 16)):
            wgmma(64, acc, As, (slot, 0, p), Bs, (slot, p, 0))
        wgmma_commit()
        wgmma_wait(1)
        if lane == 0 and step > 0:
            mbarrier_arrive(empty, before)
        before = slot
        slot += 1
        if slot == slots:
            slot, parity = 0, parity ^ 1
    wgmma_wait(0)


def later_consumer(LATE):
    """Return consumers that leave LATE groups of products running, and give a slot back LATE steps later."""

    @cuda.jit(device=True)
    def consume(full, empty, As, Bs, acc, lane, steps, slots):
        for step in range(steps):
            slot = step % slots
            mbarrier_wait(full, slot, step // slots % 2)
            wgmma_fence()
            for p in unroll(range(0, 64, 16)):
                wgmma(64, acc, As, (slot, 0, p), Bs, (slot, p, 0))
            wgmma_commit()
            wgmma_wait(LATE)
            if lane == 0 and step >= LATE:
                mbarrier_arrive(empty, (step - LATE) % slots)
        wgmma_wait(0)

    return consume
