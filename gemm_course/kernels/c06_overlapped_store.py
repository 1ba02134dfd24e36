"""Results written to shared memory while the next tile's first products are computed.

Beyond the documents; Hopper. In staged_store the Tensor Cores have nothing to do at the end of a tile until
all its results are in shared memory. Here a consumer only rounds them. It keeps them in registers, two in
each, queues the first products of the next tile, and writes the results while these are computed, a part in
every second step. So the consumers hardly pause between two tiles. Where beta is not 0, though, nothing
hides the loads of C.

A step is one iteration of the loop along k, BK deep. A tile takes at least 2 PARTS - 1 steps, since the last
part of the tile before is written in step 2 PARTS - 2. The grid must have no more blocks than there are
tiles: a block without a tile would write results that nobody stores.
"""

import numpy as np
from numba import cuda, float32, uint64
from numba.types import float16

from gemm_course.kernels.c04_persistent import producer
from gemm_course.kernels.c05_staged_store import (
    requirements,
    rounder,
    shared_bytes,
    stager,
    storer,
    with_results,
)
from gemm_course.kernels.parts.base import Stage, tiles_over
from gemm_course.kernels.parts.tensor_tiles import (
    CONSUMER_REGISTERS,
    PANEL,
    PRODUCER_REGISTERS,
    next_slot,
    warpgroup_of,
)
from lockstep.intrinsics import (
    carve,
    fence_async,
    mbarrier_arrive,
    mbarrier_init,
    mbarrier_wait,
    registers_down,
    registers_up,
    tma_acquire,
    u32,
    unroll,
    wgmma,
    wgmma_commit,
    wgmma_fence,
    wgmma_wait,
)


def build(BM, BN, BK, WM, SLOTS, GROUP, PARTS, BLOCKS):
    """The kernel for tiles of BM by BN elements, WM by BN per consumer; BLOCKS affects only the launch."""
    HEIGHT, ACCS, PANELS = WM // 64, BN // 2, BN // PANEL
    CONSUMERS = BM // WM
    RESULTS = HEIGHT * ACCS  # per thread
    PIECES = HEIGHT * PANELS // PARTS  # of 64 by 64 results, in one part of a consumer's tile
    MANY, FEW = CONSUMER_REGISTERS[CONSUMERS], PRODUCER_REGISTERS
    produce, scale_and_round = producer(BM, BN, BK, SLOTS, GROUP), rounder(BM, BN, WM, GROUP)
    stage_part, store_tiles = stager(BN, WM, PARTS), storer(BM, BN, WM, GROUP, PARTS)

    def overlapped_store(m, n, k, alpha, A, B, beta, C, results, tiles_here):
        full = cuda.shared.array(SLOTS, uint64)
        empty = cuda.shared.array(SLOTS, uint64)
        c_full = cuda.shared.array(CONSUMERS, uint64)
        c_empty = cuda.shared.array(CONSUMERS, uint64)
        tiles = cuda.shared.array(0, float16, 1024)
        As = carve(tiles, 0, (SLOTS, BM, BK))
        Bs = carve(tiles, SLOTS * BM * BK, (SLOTS, PANELS, BK, PANEL))
        Cs = carve(tiles, SLOTS * (BM + BN) * BK, (CONSUMERS, PIECES, 64, PANEL))
        acc = cuda.local.array((HEIGHT, ACCS), float32)
        rounded = cuda.local.array(RESULTS, float16)
        tid = u32(cuda.threadIdx.x)
        warp, lane = tid // 32, tid % 32
        count = u32(tiles_here)  # tiles; any others are left to another launch
        steps = u32(max((k + BK - 1) // BK, 2 * PARTS - 1))  # those past k fetch zeros
        if tid == 0:
            for s in unroll(range(SLOTS)):
                mbarrier_init(full, s, 1)
                mbarrier_init(empty, s, 4 * CONSUMERS)  # one arrival per warp
            for w in unroll(range(CONSUMERS)):
                mbarrier_init(c_full, w, 4)
                mbarrier_init(c_empty, w, 1)
            fence_async()
        cuda.syncthreads()

        if tid < 128:
            registers_down(FEW)
            if tid == 0:
                tma_acquire(A)
                tma_acquire(B)
                produce(As, Bs, full, empty, A, B, m, n, steps, count)
            elif warp > 0 and warp <= CONSUMERS:
                if lane == 0:
                    tma_acquire(results)
                store_tiles(Cs, c_full, c_empty, warp - 1, results, C, u32(m), u32(n), count)
        else:
            registers_up(MANY)
            w, y0 = u32(warpgroup_of(tid) - 1), warp % 4 * 16  # the consumer, and this warp's rows in each 64
            tile, slot, parity, before, c_parity = u32(cuda.blockIdx.x), u32(0), u32(0), u32(0), u32(0)
            while tile < count:
                for i in unroll(range(HEIGHT)):
                    for e in unroll(range(ACCS)):
                        acc[i, e] = 0
                step = u32(0)
                while step < steps:
                    mbarrier_wait(full, slot, parity)
                    wgmma_fence()
                    for p in unroll(range(0, BK, 16)):
                        for i in unroll(range(HEIGHT)):
                            wgmma(BN, acc[i], As, (slot, w * WM + i * 64, p), Bs, (slot, 0, p, 0))
                    wgmma_commit()
                    for part in unroll(range(PARTS)):
                        # not in the block's first tile: there is none before it
                        if step == 2 * part and tile >= cuda.gridDim.x:
                            c_parity = stage_part(Cs, c_full, c_empty, w, y0, lane, rounded, part, c_parity)
                    wgmma_wait(1)
                    if step > 0 and lane == 0:
                        mbarrier_arrive(empty, before)  # the step before has read its slot
                    before = slot
                    slot, parity = next_slot(slot, parity, SLOTS)
                    step = u32(step + 1)
                wgmma_wait(0)
                if lane == 0:
                    mbarrier_arrive(empty, before)  # the producer may fetch for the next tile
                scale_and_round(
                    rounded, acc, alpha, beta, C, tile, w * WM + y0 + lane // 4, lane % 4 * 2, m, n
                )
                tile = u32(tile + cuda.gridDim.x)
            for part in unroll(range(PARTS)):  # the last tile's results: no next tile hides them
                c_parity = stage_part(Cs, c_full, c_empty, w, y0, lane, rounded, part, c_parity)

    return overlapped_store


def arguments(t, *standard, tiles_here: int | None = None) -> tuple:
    """The launch's arguments: those of staged_store, and how many tiles to compute, all unless given."""
    if tiles_here is None:
        tiles_here = tiles_over(standard[0], t.BM) * tiles_over(standard[1], t.BN)
    return *with_results(t, *standard), np.int64(tiles_here)


STAGE = Stage(
    name="overlapped_store",
    title="Results stored during the next tile's products",
    after="staged_store",
    document="beyond the documents",
    tiles={"BM": 128, "BN": 256, "BK": 64, "WM": 64, "SLOTS": 4, "GROUP": 16, "PARTS": 4, "BLOCKS": 132},
    options={
        "BM": (128, 192, 256),
        "BN": (64, 128, 192, 256),
        "BK": (32, 64),
        "WM": (64, 128),
        "SLOTS": (3, 4, 6, 8),
        "GROUP": (8, 16),
        "PARTS": (1, 2, 4),
        "BLOCKS": (132,),
    },
    requirements=requirements,
    build=build,
    threads=lambda t: (128 * (t.BM // t.WM + 1),),
    blocks=lambda m, n, t: (min(tiles_over(m, t.BM) * tiles_over(n, t.BN), t.BLOCKS),),
    dynamic_shared_bytes=shared_bytes,
    alignment=16,
    compute_capability=(9, 0),
    dtype="float16",
    takes=arguments,
)
