"""Warp specialization with wgmma: one warpgroup fetches, the others multiply, and no barrier stops the block.

Beyond the documents; Hopper. In wgmma_tma the whole block stops at a barrier in every step, so that one
thread knows which slot it may refill. Here, as in mma_tma, one thread of an extra warpgroup, the producer,
fetches ahead as far as the ring allows, and the consumers multiply as soon as a tile is there. Two mbarriers
per slot synchronize them: full[slot], which the copies complete, and empty[slot], at which every consumer
warp arrives.

The producer needs hardly any registers, the consumers many: setmaxnreg moves them. A step is one iteration of
the loop along k, BK deep.
"""

from numba import cuda, float32, uint64
from numba.types import float16

from gemm_course.kernels.parts.base import Stage, tiles_over
from gemm_course.kernels.parts.tensor_tiles import (
    CONSUMER_REGISTERS,
    PANEL,
    PRODUCER_REGISTERS,
    fits_consumers,
    fits_shared,
    fits_wgmma,
    grouped,
    maps,
    next_slot,
    ring_bytes,
    store_pair,
    warpgroup_of,
)
from lockstep.intrinsics import (
    carve,
    fence_async,
    mbarrier_arrive,
    mbarrier_expect,
    mbarrier_init,
    mbarrier_wait,
    registers_down,
    registers_up,
    rolled,
    tma_acquire,
    tma_load,
    u32,
    unroll,
    wgmma,
    wgmma_commit,
    wgmma_fence,
    wgmma_wait,
)


def build(BM, BN, BK, WM, SLOTS, GROUP):
    """The kernel for blocks of BM by BN elements, WM by BN per consumer."""
    TILE_BYTES = (BM * BK + BK * BN) * 2
    HEIGHT, ACCS, PANELS = WM // 64, BN // 2, BN // PANEL
    CONSUMERS = BM // WM
    MANY, FEW = CONSUMER_REGISTERS[CONSUMERS], PRODUCER_REGISTERS

    @cuda.jit(device=True)
    def produce(As, Bs, full, empty, A, B, row0, col0, steps):
        """Fetch tile after tile, each as soon as its slot is empty.

        The first time through the ring the wait returns at once: on a new barrier the phase before the first,
        of parity 1, counts as completed.
        """
        slot, parity = u32(0), u32(0)
        for step in rolled(range(steps)):  # one copy of the body; the compiler would make four
            mbarrier_wait(empty, slot, parity ^ 1)
            mbarrier_expect(full, slot, TILE_BYTES)
            tma_load(As, (slot, 0, 0), A, (row0, step * BK), full, slot)
            for j in unroll(range(PANELS)):
                tma_load(Bs, (slot, j, 0, 0), B, (step * BK, col0 + j * PANEL), full, slot)
            slot, parity = next_slot(slot, parity, SLOTS)

    def warp_specialised(m, n, k, alpha, A, B, beta, C):
        full = cuda.shared.array(SLOTS, uint64)
        empty = cuda.shared.array(SLOTS, uint64)
        tiles = cuda.shared.array(0, float16, 1024)
        As = carve(tiles, 0, (SLOTS, BM, BK))
        Bs = carve(tiles, SLOTS * BM * BK, (SLOTS, PANELS, BK, PANEL))
        acc = cuda.local.array((HEIGHT, ACCS), float32)
        tid = u32(cuda.threadIdx.x)
        tile_row, tile_col = grouped(u32(cuda.blockIdx.x), (m + BM - 1) // BM, (n + BN - 1) // BN, GROUP)
        row0, col0 = u32(tile_row * BM), u32(tile_col * BN)
        steps = u32((k + BK - 1) // BK)
        if tid == 0:
            tma_acquire(A)
            tma_acquire(B)
            for s in unroll(range(SLOTS)):
                mbarrier_init(full, s, 1)
                mbarrier_init(empty, s, 4 * CONSUMERS)  # one arrival per warp
            fence_async()
        cuda.syncthreads()

        if tid < 128:
            registers_down(FEW)
            if tid == 0:
                produce(As, Bs, full, empty, A, B, row0, col0, steps)
        else:
            registers_up(MANY)
            y0 = (warpgroup_of(tid) - 1) * WM  # this consumer's first row within the tile
            warp, lane = tid % 128 // 32, tid % 32
            for i in unroll(range(HEIGHT)):
                for e in unroll(range(ACCS)):
                    acc[i, e] = 0
            slot, parity, before = u32(0), u32(0), u32(0)
            for step in rolled(range(steps)):
                mbarrier_wait(full, slot, parity)
                wgmma_fence()
                for p in unroll(range(0, BK, 16)):
                    for i in unroll(range(HEIGHT)):
                        wgmma(BN, acc[i], As, (slot, y0 + i * 64, p), Bs, (slot, 0, p, 0))
                wgmma_commit()
                wgmma_wait(1)
                if step > 0 and lane == 0:
                    mbarrier_arrive(empty, before)  # the step before has read its slot
                before = slot
                slot, parity = next_slot(slot, parity, SLOTS)
            wgmma_wait(0)  # the last slot is not given back: nobody refills it

            for i in unroll(range(HEIGHT)):
                row = row0 + y0 + i * 64 + warp * 16 + lane // 4
                for j in unroll(range(BN // 8)):
                    col = col0 + j * 8 + lane % 4 * 2
                    for h in unroll(range(2)):
                        e = j * 4 + h * 2
                        store_pair(C, row + h * 8, col, m, n, alpha, beta, acc[i, e], acc[i, e + 1])

    return warp_specialised


def requirements(t):
    """The rules of wgmma_tma, and two or three consumers with registers for their accumulators."""
    yield from fits_wgmma(t)
    yield from fits_consumers(t)
    yield from fits_shared(ring_bytes(t))


STAGE = Stage(
    name="warp_specialised",
    title="Warp specialization with wgmma",
    after="wgmma_tma",
    document="beyond the documents",
    tiles={"BM": 128, "BN": 256, "BK": 64, "WM": 64, "SLOTS": 4, "GROUP": 8},
    options={
        "BM": (128, 192, 256),
        "BN": (64, 128, 192, 256),
        "BK": (32, 64),
        "WM": (64, 128),
        "SLOTS": (2, 3, 4, 6),
        "GROUP": (1, 8, 16),
    },
    requirements=requirements,
    build=build,
    threads=lambda t: (128 * (t.BM // t.WM + 1),),
    blocks=lambda m, n, t: (tiles_over(m, t.BM) * tiles_over(n, t.BN),),
    dynamic_shared_bytes=ring_bytes,
    alignment=16,
    compute_capability=(9, 0),
    dtype="float16",
    takes=maps,
)
