"""Persistent blocks: while a block finishes one tile, it fetches the operands of its next one.

Beyond the documents; Hopper. A block of warp_specialised ends after one tile. The next block on its
multiprocessor sets up its barriers and waits for its first operands, and meanwhile nothing is multiplied.
Here there is one block per multiprocessor, and it takes every BLOCKS-th tile. The producer does not stop at
the end of a tile: it fills the ring for the next one while the consumers store this one.

The ring goes on from tile to tile: neither its slots nor their parities start again. After a tile's last
products the consumers give their last slot back, as they do with every other, and the next tile begins in the
slot after it.
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


def producer(BM, BN, BK, SLOTS, GROUP):
    """Returns the function with which the producer fetches."""
    TILE_BYTES, PANELS = (BM * BK + BK * BN) * 2, BN // PANEL

    @cuda.jit(device=True)
    def produce(As, Bs, full, empty, A, B, m, n, steps, count):
        """Fetch the operands of the block's tiles, of `count` in all, each as soon as its slot is empty."""
        tile_rows, tile_cols = u32((m + BM - 1) // BM), u32((n + BN - 1) // BN)
        tile, slot, parity = u32(cuda.blockIdx.x), u32(0), u32(0)
        while tile < count:
            tile_row, tile_col = grouped(tile, tile_rows, tile_cols, GROUP)
            for step in rolled(range(steps)):
                mbarrier_wait(empty, slot, parity ^ 1)  # returns at once the first time through the ring
                mbarrier_expect(full, slot, TILE_BYTES)
                tma_load(As, (slot, 0, 0), A, (tile_row * BM, step * BK), full, slot)
                for j in unroll(range(PANELS)):
                    tma_load(Bs, (slot, j, 0, 0), B, (step * BK, tile_col * BN + j * PANEL), full, slot)
                slot, parity = next_slot(slot, parity, SLOTS)
            tile = u32(tile + cuda.gridDim.x)

    return produce


def build(BM, BN, BK, WM, SLOTS, GROUP, BLOCKS):
    """The kernel for tiles of BM by BN elements, WM by BN per consumer; BLOCKS affects only the launch."""
    HEIGHT, ACCS, PANELS = WM // 64, BN // 2, BN // PANEL
    CONSUMERS = BM // WM
    MANY, FEW = CONSUMER_REGISTERS[CONSUMERS], PRODUCER_REGISTERS
    produce = producer(BM, BN, BK, SLOTS, GROUP)

    def persistent(m, n, k, alpha, A, B, beta, C):
        full = cuda.shared.array(SLOTS, uint64)
        empty = cuda.shared.array(SLOTS, uint64)
        tiles = cuda.shared.array(0, float16, 1024)
        As = carve(tiles, 0, (SLOTS, BM, BK))
        Bs = carve(tiles, SLOTS * BM * BK, (SLOTS, PANELS, BK, PANEL))
        acc = cuda.local.array((HEIGHT, ACCS), float32)
        tid = u32(cuda.threadIdx.x)
        tile_rows, tile_cols = u32((m + BM - 1) // BM), u32((n + BN - 1) // BN)
        count, steps = u32(tile_rows * tile_cols), u32((k + BK - 1) // BK)
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
                produce(As, Bs, full, empty, A, B, m, n, steps, count)
        else:
            registers_up(MANY)
            y0 = (warpgroup_of(tid) - 1) * WM  # this consumer's first row within the tile
            warp, lane = tid % 128 // 32, tid % 32
            tile, slot, parity, before = u32(cuda.blockIdx.x), u32(0), u32(0), u32(0)
            while tile < count:
                tile_row, tile_col = grouped(tile, tile_rows, tile_cols, GROUP)
                row0, col0 = u32(tile_row * BM), u32(tile_col * BN)
                for i in unroll(range(HEIGHT)):
                    for e in unroll(range(ACCS)):
                        acc[i, e] = 0
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
                wgmma_wait(0)
                if steps > 0 and lane == 0:
                    mbarrier_arrive(empty, before)  # the producer may fetch for the next tile

                for i in unroll(range(HEIGHT)):
                    row = row0 + y0 + i * 64 + warp * 16 + lane // 4
                    for j in unroll(range(BN // 8)):
                        col = col0 + j * 8 + lane % 4 * 2
                        for h in unroll(range(2)):
                            e = j * 4 + h * 2
                            store_pair(C, row + h * 8, col, m, n, alpha, beta, acc[i, e], acc[i, e + 1])
                tile = u32(tile + cuda.gridDim.x)

    return persistent


def requirements(t):
    """The rules of warp_specialised."""
    yield from fits_wgmma(t)
    yield from fits_consumers(t)
    yield from fits_shared(ring_bytes(t))


STAGE = Stage(
    name="persistent",
    title="Persistent blocks: each computes many tiles",
    after="warp_specialised",
    document="beyond the documents",
    tiles={"BM": 128, "BN": 256, "BK": 64, "WM": 64, "SLOTS": 4, "GROUP": 16, "BLOCKS": 132},
    options={
        "BM": (128, 256),
        "BN": (64, 128, 256),
        "WM": (64, 128),
        "SLOTS": (3, 4),
    },
    requirements=requirements,
    build=build,
    threads=lambda t: (128 * (t.BM // t.WM + 1),),
    blocks=lambda m, n, t: (min(tiles_over(m, t.BM) * tiles_over(n, t.BN), t.BLOCKS),),
    dynamic_shared_bytes=ring_bytes,
    alignment=16,
    compute_capability=(9, 0),
    dtype="float16",
    takes=maps,
)
