"""Asynchronous copies: cp.async fills a ring of SLOTS tiles while the block multiplies.

Beyond the documents. cp.async copies from global to shared memory without using registers and without
waiting. While the block multiplies one tile, later ones are on their way: one for each slot but the one that
is read. With two slots this is double_buffered's pair of tiles, without the registers in between. Elsewhere
the slots are called stages of a pipeline.

Copies of 4 bytes transpose A on the way. Past k, a copy is told to read 0 bytes and writes zeros, at no
extra cost. Rows and columns outside C are read from the nearest one inside, for results that are never
stored.
"""

from numba import cuda, float32

from gemm_course.kernels.parts.base import (
    Stage,
    columns_by_rows,
    fits_block,
    fits_registers,
    moves_by_fours,
    registers_for,
    shares_evenly,
    warp_covers_its_tile,
)
from gemm_course.kernels.parts.results import store_four
from lockstep.intrinsics import cp_async4, cp_async16, cp_async_commit, cp_async_wait, u32, unroll


def fetcher(BM, BN, BK, THREADS):
    """Returns the function that starts the copies of one tile of A and one of B."""
    A_ROWS, B_ROWS = THREADS // BK, THREADS // (BN // 4)  # rows the block fetches at a time

    @cuda.jit(device=True)
    def fetch(As, Bs, slot, A, B, row0, col0, k0, m, n, k, tid):
        """Start the copies of the tiles at k0 into one slot of the ring."""
        c = tid % BK
        for i in unroll(range(0, BM, A_ROWS)):
            r = i + tid // BK
            cp_async4(As, (slot, c, r), A, (min(row0 + r, m - 1), k0 + c), 4 if k0 + c < k else 0)
        c = tid % (BN // 4) * 4
        for i in unroll(range(0, BK, B_ROWS)):
            r = i + tid // (BN // 4)
            cp_async16(
                Bs, (slot, r, c), B, (k0 + r, min(col0 + c, (n - 1) // 4 * 4)), 16 if k0 + r < k else 0
            )
        cp_async_commit()

    return fetch


def build(BM, BN, BK, WM, WN, TM, TN, SLOTS, PAD):
    """The kernel for blocks of BM by BN elements, WM by WN per warp, TM by TN per thread."""
    THREADS = BM // WM * (BN // WN) * 32
    LANE_ROWS, LANE_COLS = WM // TM, WN // TN  # the warp's threads as a grid
    A_WIDTH = BM + PAD
    IN_FLIGHT = SLOTS - 2  # later tiles whose copies may be under way when the next is needed
    fetch = fetcher(BM, BN, BK, THREADS)

    def async_copy(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((SLOTS, BK, A_WIDTH), float32, 16)
        Bs = cuda.shared.array((SLOTS, BK, BN), float32, 16)
        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        acc = cuda.local.array((TM, TN), float32)
        for i in unroll(range(TM)):
            for j in unroll(range(TN)):
                acc[i, j] = 0
        tid = u32(cuda.threadIdx.x)
        warp, lane = tid // 32, tid % 32
        row0, col0 = u32(cuda.blockIdx.y) * BM, u32(cuda.blockIdx.x) * BN
        y0 = warp // (BN // WN) * WM + lane // LANE_COLS * 4  # this thread's first element within the tile
        x0 = warp % (BN // WN) * WN + lane % LANE_COLS * 4
        for s in unroll(range(SLOTS - 1)):
            fetch(As, Bs, s, A, B, row0, col0, s * BK, m, n, k, tid)
        k0, slot = 0, u32(0)
        while k0 < k:
            cp_async_wait(IN_FLIGHT)
            cuda.syncthreads()  # everybody's copies are there, and the tile multiplied last has been read
            free = u32((slot + SLOTS - 1) % SLOTS)
            fetch(As, Bs, free, A, B, row0, col0, k0 + (SLOTS - 1) * BK, m, n, k, tid)
            for p in unroll(range(BK)):
                for i in unroll(range(TM)):
                    a[i] = As[slot, p, y0 + i // 4 * (4 * LANE_ROWS) + i % 4]
                for j in unroll(range(TN)):
                    b[j] = Bs[slot, p, x0 + j // 4 * (4 * LANE_COLS) + j % 4]
                for i in unroll(range(TM)):
                    for j in unroll(range(TN)):
                        acc[i, j] += a[i] * b[j]
            k0, slot = k0 + BK, u32((slot + 1) % SLOTS)
        cp_async_wait(0)  # no copy may be under way when the block ends
        for i in unroll(range(TM)):
            row = row0 + y0 + i // 4 * (4 * LANE_ROWS) + i % 4
            for j in unroll(range(0, TN, 4)):
                col = col0 + x0 + j * LANE_COLS
                four = (acc[i, j], acc[i, j + 1], acc[i, j + 2], acc[i, j + 3])
                store_four(C, row, col, m, n, alpha, beta, four)

    return async_copy


def requirements(t):
    """Thread tiles cover the warp's, warp tiles the block's, and the ring has at least two slots."""
    threads = 32 * (t.BM * t.BN // (t.WM * t.WN))
    yield (
        t.SLOTS >= 2,
        f"one slot is read while another is filled: SLOTS must be at least 2, not {t.SLOTS}",
    )
    yield from warp_covers_its_tile(t)
    yield from moves_by_fours(BM=t.BM, BN=t.BN, TM=t.TM, TN=t.TN, PAD=t.PAD)
    yield from fits_block(threads, 4 * t.SLOTS * t.BK * (t.BM + t.PAD + t.BN))
    yield from fits_registers(t.TM, t.TN)
    yield from shares_evenly("A", threads, rows=("BM", t.BM), width=("BK", t.BK))
    yield from shares_evenly("B", threads, rows=("BK", t.BK), width=("BN", t.BN), at_once=4)


STAGE = Stage(
    name="async_copy",
    title="Asynchronous copies into a ring of tiles",
    after="double_buffered",
    document="beyond the documents",
    tiles={"BM": 128, "BN": 256, "BK": 8, "WM": 64, "WN": 64, "TM": 16, "TN": 8, "SLOTS": 2, "PAD": 4},
    options={
        "BM": (64, 128, 256),
        "BN": (64, 128, 256),
        "BK": (8,),
        "WM": (64,),
        "WN": (64,),
        "TM": (16,),
        "TN": (8,),
        "SLOTS": (2, 3),
        "PAD": (0, 4),
    },
    may_be_zero=frozenset({"PAD"}),
    requirements=requirements,
    build=build,
    threads=lambda t: (32 * (t.BM * t.BN // (t.WM * t.WN)),),
    blocks=columns_by_rows,
    registers=lambda t: registers_for(t.TM, t.TN),
    alignment=16,
    compute_capability=(8, 0),
)
