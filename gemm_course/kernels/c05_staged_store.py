"""Results stored by TMA: consumers write them to shared memory, and other warps store them from there.

Beyond the documents; Hopper. In persistent every thread stores its own results, two at a time, each pair with
its own address and bounds check. Here a consumer rounds its results to FP16 and writes them to shared memory
with stmatrix, swizzled as TMA reads them: it *stages* them. Warps of the producer's warpgroup, one for each
consumer, have TMA store them, 64 by 64 at a time. Warp 0 has the producer, so there are at most three such
warps, and at most three consumers.

Two more mbarriers per consumer are for results what full and empty are for operands: at c_full its warps
arrive when they have written, at c_empty the warp that stores when TMA has read. Beside four slots there is
no room for all results of a tile of 128 by 256: hence PARTS, of which one at a time is in shared memory. A
consumer waits only until TMA has read the part before. Only the last part's store runs while the next tile is
multiplied.
"""

from numba import cuda, float32, uint64
from numba.types import float16

from gemm_course.kernels.c04_persistent import producer
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
    old,
    ring_bytes,
    store_edge,
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
    rolled,
    stmatrix_x4,
    store2,
    tensor_map,
    tma_acquire,
    tma_commit,
    tma_store,
    tma_wait_read,
    u32,
    unroll,
    wgmma,
    wgmma_commit,
    wgmma_fence,
    wgmma_wait,
)


def rounder(BM, BN, WM, GROUP):
    """Returns the function with which a consumer rounds a tile's results."""
    HEIGHT, ACCS = WM // 64, BN // 2

    @cuda.jit(device=True)
    def scale_and_round(rounded, acc, alpha, beta, C, tile, y, x, m, n):
        """Round alpha * acc + beta * C to FP16; this lane's results start at row y, column x of the tile."""
        if alpha != 1:
            for i in unroll(range(HEIGHT)):
                for e in unroll(range(ACCS)):
                    acc[i, e] *= alpha
        if beta != 0:
            tile_row, tile_col = grouped(tile, u32((m + BM - 1) // BM), u32((n + BN - 1) // BN), GROUP)
            for i in unroll(range(HEIGHT)):
                row, col = u32(tile_row * BM + y + i * 64), u32(tile_col * BN + x)
                for e in unroll(range(ACCS)):
                    acc[i, e] += beta * old(C, row + e // 2 % 2 * 8, col + e // 4 * 8 + e % 2, m, n)
        for i in unroll(range(HEIGHT)):
            for e in unroll(range(0, ACCS, 2)):
                store2(rounded, i * ACCS + e, (acc[i, e], acc[i, e + 1]))

    return scale_and_round


def stager(BN, WM, PARTS):
    """Returns the function with which a consumer writes a part of its results to shared memory."""
    PIECES = WM // 64 * (BN // PANEL) // PARTS  # of 64 by 64 results

    @cuda.jit(device=True)
    def stage_part(Cs, c_full, c_empty, w, y0, lane, rounded, part, c_parity):
        """Write a part of a consumer's results to Cs, swizzled as TMA reads them, once Cs is empty."""
        mbarrier_wait(c_empty, w, c_parity ^ 1)  # returns at once for the first part
        for q in unroll(range(PIECES)):
            for x in unroll(range(0, 8, 2)):
                z = ((x + lane // 16) ^ (lane % 8)) * 8  # 16-byte piece x of the row, or x + 1, swizzled
                stmatrix_x4(Cs, (w, q, y0 + lane % 16, z), rounded, (part * PIECES + q) * 32 + x * 4)
        fence_async()
        cuda.syncwarp()
        if lane == 0:
            mbarrier_arrive(c_full, w)
        return u32(c_parity ^ 1)

    return stage_part


def storer(BM, BN, WM, GROUP, PARTS):
    """Returns the function with which a warp stores a consumer's results."""
    PANELS = BN // PANEL
    PIECES = WM // 64 * PANELS // PARTS  # of 64 by 64 results, in one part of a consumer's tile

    @cuda.jit(device=True)
    def store_tiles(Cs, c_full, c_empty, w, results, C, m, n, count):
        """Store consumer w's results of the block's tiles, of `count` in all, from Cs, 64 by 64 at a time."""
        lane, whole = u32(cuda.threadIdx.x) % 32, n // 8 * 8  # TMA stores 16 bytes or nothing
        tile_rows, tile_cols = u32((m + BM - 1) // BM), u32((n + BN - 1) // BN)
        tile, parity = u32(cuda.blockIdx.x), u32(0)
        while tile < count:
            tile_row, tile_col = grouped(tile, tile_rows, tile_cols, GROUP)
            for part in rolled(range(PARTS)):
                mbarrier_wait(c_full, w, parity)
                for q in rolled(range(PIECES)):
                    i, j = (part * PIECES + q) // PANELS, (part * PIECES + q) % PANELS
                    row, col = u32(tile_row * BM + w * WM + i * 64), u32(tile_col * BN + j * PANEL)
                    if lane == 0 and col < whole:
                        tma_store(results, (row, col), Cs, (w, q, 0, 0))
                    if whole < n and col <= whole and whole < col + PANEL:
                        store_edge(C, row, m, n, Cs, w, q, 64, u32((whole - col) // 8), lane)
                cuda.syncwarp()
                if lane == 0:
                    tma_commit()
                    tma_wait_read(0)
                    mbarrier_arrive(c_empty, w)
                parity = u32(parity ^ 1)
            tile = u32(tile + cuda.gridDim.x)

    return store_tiles


def build(BM, BN, BK, WM, SLOTS, GROUP, PARTS, BLOCKS):
    """The kernel for tiles of BM by BN elements, WM by BN per consumer; BLOCKS affects only the launch."""
    HEIGHT, ACCS, PANELS = WM // 64, BN // 2, BN // PANEL
    CONSUMERS = BM // WM
    RESULTS = HEIGHT * ACCS  # per thread
    PIECES = HEIGHT * PANELS // PARTS  # of 64 by 64 results, in one part of a consumer's tile
    MANY, FEW = CONSUMER_REGISTERS[CONSUMERS], PRODUCER_REGISTERS
    produce, scale_and_round = producer(BM, BN, BK, SLOTS, GROUP), rounder(BM, BN, WM, GROUP)
    stage_part, store_tiles = stager(BN, WM, PARTS), storer(BM, BN, WM, GROUP, PARTS)

    def staged_store(m, n, k, alpha, A, B, beta, C, results):
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
        count = u32(u32((m + BM - 1) // BM) * u32((n + BN - 1) // BN))  # tiles
        steps = u32((k + BK - 1) // BK)
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
                for step in rolled(range(steps)):
                    mbarrier_wait(full, slot, parity)
                    wgmma_fence()
                    for p in unroll(range(0, BK, 16)):
                        for i in unroll(range(HEIGHT)):
                            wgmma(BN, acc[i], As, (slot, w * WM + i * 64, p), Bs, (slot, 0, p, 0))
                    wgmma_commit()
                    wgmma_wait(1)
                    if step > 0 and lane == 0:
                        mbarrier_arrive(empty, before)  # the step before has read its slot
                    before = slot
                    slot, parity = next_slot(slot, parity, SLOTS)
                wgmma_wait(0)
                if steps > 0 and lane == 0:
                    mbarrier_arrive(empty, before)  # the producer may fetch for the next tile
                scale_and_round(
                    rounded, acc, alpha, beta, C, tile, w * WM + y0 + lane // 4, lane % 4 * 2, m, n
                )
                for part in unroll(range(PARTS)):
                    c_parity = stage_part(Cs, c_full, c_empty, w, y0, lane, rounded, part, c_parity)
                tile = u32(tile + cuda.gridDim.x)

    return staged_store


def requirements(t):
    """The rules of persistent, and room for the results in shared memory."""
    yield from fits_wgmma(t)
    yield from fits_consumers(t, rounded=True)
    pieces = t.WM // 64 * (t.BN // PANEL)
    yield (
        pieces % t.PARTS == 0,
        f"a consumer has {pieces} pieces of 64 by 64 results, which PARTS ({t.PARTS}) must divide",
    )
    yield from fits_shared(shared_bytes(t))


def shared_bytes(t) -> int:
    """Shared memory of the ring and of one part of a tile of results."""
    return ring_bytes(t) + t.BM * t.BN // t.PARTS * 2


def with_results(t, m, n, k, alpha, A, B, beta, C) -> tuple:
    """The launch's arguments: A and B as tensor maps, C, and a map of those columns that TMA can store."""
    return *maps(t, m, n, k, alpha, A, B, beta, C), tensor_map(C, (m, n // 8 * 8), (64, PANEL))


STAGE = Stage(
    name="staged_store",
    title="Results stored by TMA",
    after="persistent",
    document="beyond the documents",
    tiles={"BM": 128, "BN": 256, "BK": 64, "WM": 64, "SLOTS": 4, "GROUP": 16, "PARTS": 2, "BLOCKS": 132},
    options={
        "BM": (128, 256),
        "BN": (64, 128, 256),
        "WM": (64, 128),
        "SLOTS": (3, 4),
        "PARTS": (1, 2, 4),
    },
    requirements=requirements,
    build=build,
    threads=lambda t: (128 * (t.BM // t.WM + 1),),
    blocks=lambda m, n, t: (min(tiles_over(m, t.BM) * tiles_over(n, t.BN), t.BLOCKS),),
    dynamic_shared_bytes=shared_bytes,
    alignment=16,
    compute_capability=(9, 0),
    dtype="float16",
    takes=with_results,
)
