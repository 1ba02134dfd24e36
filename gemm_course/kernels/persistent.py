"""As many blocks as multiprocessors, each with many tiles: fetching never stops, and results leave by TMA.

Beyond the documents; Hopper. A block that ends after one tile leaves its multiprocessor idle twice: before
its first tiles have come, and while it stores. Here a block stays and takes every BLOCKS-th tile. The
producer knows nothing of an end: while the consumers still store, it fills the ring for the next tile. A
warp lays its results into shared memory, 16 rows by 64 columns at a time, and TMA carries them off while it
goes on.
"""

from numba import cuda, float32, uint64
from numba.types import float16

from gemm_course.intrinsics import (
    carve,
    fence_async,
    mbarrier_arrive,
    mbarrier_expect,
    mbarrier_init,
    mbarrier_wait,
    registers_down,
    registers_up,
    store2,
    tensor_map,
    tma_acquire,
    tma_commit,
    tma_load,
    tma_store,
    tma_wait_read,
    u32,
    unroll,
    wgmma,
    wgmma_commit,
    wgmma_fence,
    wgmma_wait,
)
from gemm_course.kernels.base import Stage, tiles_over
from gemm_course.kernels.tensor_tiles import (
    CONSUMER_REGISTERS,
    PANEL,
    PRODUCER_REGISTERS,
    fits_consumers,
    fits_shared,
    fits_wgmma,
    grouped,
    maps,
    old,
    ring_bytes,
)


def build(BM, BN, BK, WM, STAGES, GROUP, SLOTS, BLOCKS):
    """The kernel for tiles of BM by BN elements, WM by BN a consumer; BLOCKS is the launch's affair."""
    TILE_BYTES = (BM * BK + BK * BN) * 2
    HEIGHT, SUMS, PANELS = WM // 64, BN // 2, BN // PANEL
    CONSUMERS = BM // WM
    WARPS, OTHERS = 4 * CONSUMERS, SLOTS - 1
    MANY, FEW = CONSUMER_REGISTERS[CONSUMERS], PRODUCER_REGISTERS

    @cuda.jit(device=True)
    def next_stage(stage, parity):
        """The next place in the ring; after the last, the first again, with the other parity."""
        last = stage == STAGES - 1
        return (u32(0), u32(parity ^ 1)) if last else (u32(stage + 1), parity)

    @cuda.jit(device=True)
    def produce(As, Bs, full, empty, A, B, m, n, steps):
        """Fetch the operands of all the block's tiles, step after step, as soon as a stage is empty."""
        tile_rows, tile_cols = (m + BM - 1) // BM, (n + BN - 1) // BN
        tile, stage, parity = u32(cuda.blockIdx.x), u32(0), u32(0)
        while tile < tile_rows * tile_cols:
            tile_row, tile_col = grouped(tile, tile_rows, tile_cols, GROUP)
            step = 0
            while step < steps:
                mbarrier_wait(empty, stage, parity ^ 1)
                mbarrier_expect(full, stage, TILE_BYTES)
                tma_load(As, (stage, 0, 0), A, (tile_row * BM, step * BK), full, stage)
                for j in unroll(range(PANELS)):
                    tma_load(Bs, (stage, j, 0, 0), B, (step * BK, tile_col * BN + j * PANEL), full, stage)
                stage, parity = next_stage(stage, parity)
                step += 1
            tile = u32(tile + cuda.gridDim.x)

    @cuda.jit(device=True)
    def put(Cs, place, slot, sums, panel, alpha, beta, C, row, col, m, n):
        """Lay 16 rows of a panel of results into Cs[place, slot], swizzled as TMA takes them."""
        lane = u32(cuda.threadIdx.x) % 32
        for j in unroll(range(PANEL // 8)):
            x = (j ^ lane // 4) * 8 + lane % 4 * 2
            for h in unroll(range(2)):
                e = panel * (PANEL // 2) + j * 4 + h * 2
                first, second = alpha * sums[e], alpha * sums[e + 1]
                if beta != 0:
                    y, z = row + lane // 4 + h * 8, col + j * 8 + lane % 4 * 2
                    first += beta * old(C, y, z, m, n)
                    second += beta * old(C, y, z + 1, m, n)
                store2(Cs, (place, slot, lane // 4 + h * 8, x), (first, second))

    def persistent(m, n, k, alpha, A, B, beta, C, results):
        full = cuda.shared.array(STAGES, uint64)
        empty = cuda.shared.array(STAGES, uint64)
        tiles = cuda.shared.array(0, float16, 1024)
        As = carve(tiles, 0, (STAGES, BM, BK))
        Bs = carve(tiles, STAGES * BM * BK, (STAGES, PANELS, BK, PANEL))
        Cs = carve(tiles, STAGES * (BM + BN) * BK, (WARPS, SLOTS, 16, PANEL))
        sums = cuda.local.array((HEIGHT, SUMS), float32)
        tid = u32(cuda.threadIdx.x)
        tile_rows, tile_cols = (m + BM - 1) // BM, (n + BN - 1) // BN
        steps = (k + BK - 1) // BK
        if tid == 0:
            for s in unroll(range(STAGES)):
                mbarrier_init(full, s, 1)
                mbarrier_init(empty, s, WARPS)
            fence_async()
        cuda.syncthreads()

        if tid < 128:
            registers_down(FEW)
            if tid == 0:
                tma_acquire(A)
                tma_acquire(B)
                produce(As, Bs, full, empty, A, B, m, n, steps)
        else:
            registers_up(MANY)
            place, lane = tid // 32 - 4, tid % 32  # this warp among the consumers'
            y0 = place // 4 * WM  # its warpgroup's first row within the tile
            if lane == 0:
                tma_acquire(results)
            tile, stage, parity, before = u32(cuda.blockIdx.x), u32(0), u32(0), u32(0)
            while tile < tile_rows * tile_cols:
                for i in unroll(range(HEIGHT)):
                    for e in unroll(range(SUMS)):
                        sums[i, e] = 0
                step = 0
                while step < steps:
                    mbarrier_wait(full, stage, parity)
                    wgmma_fence()
                    for p in unroll(range(0, BK, 16)):
                        for i in unroll(range(HEIGHT)):
                            wgmma(BN, sums[i], As, (stage, y0 + i * 64, p), Bs, (stage, 0, p, 0))
                    wgmma_commit()
                    wgmma_wait(1)
                    if step > 0 and lane == 0:
                        mbarrier_arrive(empty, before)
                    step, before = step + 1, stage
                    stage, parity = next_stage(stage, parity)
                wgmma_wait(0)
                if steps > 0 and lane == 0:
                    mbarrier_arrive(empty, before)  # the producer may go on with the next tile

                tile_row, tile_col = grouped(tile, tile_rows, tile_cols, GROUP)
                for i in unroll(range(HEIGHT)):
                    row = u32(tile_row * BM + y0 + i * 64 + place % 4 * 16)
                    for j in unroll(range(PANELS)):
                        slot, col = (i * PANELS + j) % SLOTS, u32(tile_col * BN + j * PANEL)
                        if lane == 0:
                            tma_wait_read(OTHERS)  # what was in the slot has left
                        cuda.syncwarp()
                        put(Cs, place, slot, sums[i], j, alpha, beta, C, row, col, m, n)
                        fence_async()
                        cuda.syncwarp()
                        if lane == 0:
                            tma_store(results, (row, col), Cs, (place, slot, 0, 0))
                            tma_commit()
                tile = u32(tile + cuda.gridDim.x)
            if lane == 0:
                tma_wait_read(0)  # shared memory must outlive its last reader

    return persistent


def requirements(t):
    """What warp_specialised asks for, and room for the results on their way."""
    yield from fits_wgmma(t)
    yield from fits_consumers(t)
    pieces = t.WM // 64 * (t.BN // PANEL)
    yield (
        pieces % t.SLOTS == 0,
        f"the pieces in which a warp stores a tile, {pieces}, must be a multiple of SLOTS ({t.SLOTS})",
    )
    yield from fits_shared(shared_bytes(t))


def shared_bytes(t) -> int:
    """The ring, and SLOTS pieces of 16 by 64 results for each of the consumers' warps."""
    return ring_bytes(t) + 4 * (t.BM // t.WM) * t.SLOTS * 16 * PANEL * 2


def with_results(t, m, n, k, alpha, A, B, beta, C) -> tuple:
    """The launch's arguments: A and B as tensor maps, C, which is read, and its map, for storing."""
    return *maps(t, m, n, k, alpha, A, B, beta, C), tensor_map(C, (m, n), (16, PANEL))


STAGE = Stage(
    name="persistent",
    title="Blocks that stay",
    document="beyond the documents",
    tiles={
        "BM": 128,
        "BN": 256,
        "BK": 64,
        "WM": 64,
        "STAGES": 4,
        "GROUP": 16,
        "SLOTS": 2,
        "BLOCKS": 132,
    },
    options={
        "BM": (128, 192, 256),
        "BN": (64, 128, 192, 256),
        "BK": (32, 64),
        "WM": (64, 128),
        "STAGES": (3, 4, 5, 6),
        "GROUP": (8, 16),
        "SLOTS": (1, 2, 4),
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
    takes=with_results,
)
