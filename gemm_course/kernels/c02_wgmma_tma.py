"""TMA copies the tiles, and wgmma multiplies them in shared memory.

Beyond the documents; Hopper. mma_tma still spends instructions on loading fragments. wgmma, which four warps
(a warpgroup) run together, reads both operands from shared memory, and registers hold only accumulators. Its
products are asynchronous: while those of one slot are computed, those of the next are already queued.

To show this alone there is no producer here. Thread 0 requests the tiles, and multiplies as well. An mbarrier
tells the block when a tile has arrived, and a barrier of the whole block in every step says which slot is
free. warp_specialised brings the producer back. A step is one iteration of the loop along k, BK deep.
"""

from numba import cuda, float32, uint64
from numba.types import float16

from gemm_course.kernels.parts.base import MAX_REGISTERS, REGISTERS_PER_SM, Stage, tiles_over
from gemm_course.kernels.parts.tensor_tiles import (
    PANEL,
    fits_accumulators,
    fits_shared,
    fits_wgmma,
    grouped,
    maps,
    ring_bytes,
    store_pair,
    warpgroup_of,
)
from lockstep.intrinsics import (
    carve,
    fence_async,
    mbarrier_expect,
    mbarrier_init,
    mbarrier_wait,
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
    """The kernel for blocks of BM by BN elements, WM by BN per warpgroup."""
    TILE_BYTES = (BM * BK + BK * BN) * 2
    HEIGHT, ACCS = WM // 64, BN // 2  # products stacked, accumulators per thread in each
    PANELS = BN // PANEL  # of B

    @cuda.jit(device=True)
    def fetch(As, Bs, slot, A, B, row0, col0, k0, full):
        """Request the tiles at k0; what is outside A and B arrives as zeros, and counts as bytes."""
        mbarrier_expect(full, slot, TILE_BYTES)
        tma_load(As, (slot, 0, 0), A, (row0, k0), full, slot)
        for j in unroll(range(PANELS)):
            tma_load(Bs, (slot, j, 0, 0), B, (k0, col0 + j * PANEL), full, slot)

    def wgmma_tma(m, n, k, alpha, A, B, beta, C):
        full = cuda.shared.array(SLOTS, uint64)  # full[slot]: its tiles have arrived
        tiles = cuda.shared.array(0, float16, 1024)
        As = carve(tiles, 0, (SLOTS, BM, BK))
        Bs = carve(tiles, SLOTS * BM * BK, (SLOTS, PANELS, BK, PANEL))
        acc = cuda.local.array((HEIGHT, ACCS), float32)
        for i in unroll(range(HEIGHT)):
            for e in unroll(range(ACCS)):
                acc[i, e] = 0
        tid = u32(cuda.threadIdx.x)
        tile_row, tile_col = grouped(u32(cuda.blockIdx.x), (m + BM - 1) // BM, (n + BN - 1) // BN, GROUP)
        row0, col0 = u32(tile_row * BM), u32(tile_col * BN)
        steps = (k + BK - 1) // BK
        if tid == 0:
            tma_acquire(A)
            tma_acquire(B)
            for s in unroll(range(SLOTS)):
                mbarrier_init(full, s, 1)
            fence_async()
            for s in unroll(range(SLOTS)):
                if s < steps:
                    fetch(As, Bs, s, A, B, row0, col0, s * BK, full)
        cuda.syncthreads()

        y0 = warpgroup_of(tid) * WM  # this warpgroup's first row within the tile
        step, slot, parity = 0, u32(0), u32(0)
        while step < steps:
            mbarrier_wait(full, slot, parity)
            wgmma_fence()
            for p in unroll(range(0, BK, 16)):
                for i in unroll(range(HEIGHT)):
                    wgmma(BN, acc[i], As, (slot, y0 + i * 64, p), Bs, (slot, 0, p, 0))
            wgmma_commit()
            wgmma_wait(1)  # the products before these are complete, so after the barrier ...
            cuda.syncthreads()  # ... nobody reads their slot: it can be refilled
            ahead = step - 1 + SLOTS
            if tid == 0 and step > 0 and ahead < steps:
                free = SLOTS - 1 if slot == 0 else slot - 1
                fetch(As, Bs, free, A, B, row0, col0, ahead * BK, full)
            step += 1
            slot = u32(slot + 1)
            if slot == SLOTS:
                slot, parity = u32(0), u32(parity ^ 1)
        wgmma_wait(0)

        warp, lane = tid % 128 // 32, tid % 32
        for i in unroll(range(HEIGHT)):
            row = row0 + y0 + i * 64 + warp * 16 + lane // 4
            for j in unroll(range(BN // 8)):
                col = col0 + j * 8 + lane % 4 * 2
                for h in unroll(range(2)):
                    e = j * 4 + h * 2
                    store_pair(C, row + h * 8, col, m, n, alpha, beta, acc[i, e], acc[i, e + 1])

    return wgmma_tma


def requirements(t):
    """Whole instructions, rows that a swizzle permutes, a ring and accumulators that fit."""
    yield from fits_wgmma(t)
    yield from fits_shared(ring_bytes(t))
    threads = 128 * max(1, t.BM // t.WM)
    yield from fits_accumulators(t, min(MAX_REGISTERS, REGISTERS_PER_SM // threads))


STAGE = Stage(
    name="wgmma_tma",
    title="TMA copies, wgmma multiplies",
    after="mma_tma",
    document="beyond the documents",
    tiles={"BM": 128, "BN": 256, "BK": 64, "WM": 64, "SLOTS": 4, "GROUP": 8},
    options={
        "BM": (64, 128, 192, 256),
        "BN": (64, 128, 192, 256),
        "BK": (32, 64),
        "WM": (64, 128),
        "SLOTS": (2, 3, 4, 6),
        "GROUP": (1, 8, 16),
    },
    requirements=requirements,
    build=build,
    threads=lambda t: (128 * (t.BM // t.WM),),
    blocks=lambda m, n, t: (tiles_over(m, t.BM) * tiles_over(n, t.BN),),
    dynamic_shared_bytes=ring_bytes,
    alignment=16,
    compute_capability=(9, 0),
    dtype="float16",
    takes=maps,
)
