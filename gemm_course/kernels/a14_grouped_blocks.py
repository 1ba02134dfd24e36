"""Blocks are numbered in groups of GROUP rows of tiles, to find more of A and B in the L2 cache.

Beyond the documents. Blocks with neighbouring numbers run at the same time. Numbered row by row, those of one
moment need a few rows of tiles of A, but every column of tiles of B. Numbered down the columns of a group of
GROUP rows, they need only a few of each. On an H200 that gains 0.1 % up to 8192³, as L2 is not the limit. The
grid has one dimension now: the kernel computes a tile's row and column from the block's number.

Triton's tutorials call this grouped ordering; CUTLASS calls it threadblock swizzle, or rasterization.
"""

from numba import cuda, float32

from gemm_course.kernels.a12_async_copy import fetcher
from gemm_course.kernels.a13_read_ahead import requirements
from gemm_course.kernels.parts.base import Stage, registers_for, tiles_over
from lockstep.intrinsics import cp_async_wait, load4, store4, u32, unroll


def build(BM, BN, BK, WM, WN, TM, TN, SLOTS, GROUP, PAD):
    """The kernel for blocks of BM by BN elements, WM by WN per warp, TM by TN per thread."""
    THREADS = BM // WM * (BN // WN) * 32
    LANE_ROWS, LANE_COLS = WM // TM, WN // TN  # the warp's threads as a grid
    A_WIDTH = BM + PAD
    IN_FLIGHT = SLOTS - 2  # later tiles whose copies may be under way when the next is needed
    fetch = fetcher(BM, BN, BK, THREADS)

    def grouped_blocks(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((SLOTS, BK, A_WIDTH), float32, 16)
        Bs = cuda.shared.array((SLOTS, BK, BN), float32, 16)
        a = cuda.local.array((2, TM), float32)
        b = cuda.local.array((2, TN), float32)
        acc = cuda.local.array((TM, TN), float32)
        for i in unroll(range(TM)):
            for j in unroll(range(TN)):
                acc[i, j] = 0
        zeros = (float32(0), float32(0), float32(0), float32(0))
        tid = u32(cuda.threadIdx.x)
        warp, lane = tid // 32, tid % 32
        tile_rows, tile_cols = (m + BM - 1) // BM, (n + BN - 1) // BN
        group = u32(cuda.blockIdx.x) // (GROUP * tile_cols)
        within = u32(cuda.blockIdx.x) % (GROUP * tile_cols)  # the block's number in its group
        height = min(GROUP, tile_rows - group * GROUP)  # the last group may have fewer rows of tiles
        row0, col0 = u32(group * GROUP + within % height) * BM, u32(within // height) * BN
        # Written without these two names, the kernel is 3 % slower (kernels/NOTES.md).
        lane_row = lane // LANE_COLS
        lane_col = lane % LANE_COLS
        y0 = warp // (BN // WN) * WM + lane_row * 4  # this thread's first element within the tile
        x0 = warp % (BN // WN) * WN + lane_col * 4

        for s in unroll(range(SLOTS - 1)):
            fetch(As, Bs, s, A, B, row0, col0, s * BK, m, n, k, tid)
        cp_async_wait(IN_FLIGHT)
        cuda.syncthreads()
        for i in unroll(range(0, TM, 4)):
            a[0, i], a[0, i + 1], a[0, i + 2], a[0, i + 3] = load4(As, (0, 0, y0 + i * LANE_ROWS))
        for j in unroll(range(0, TN, 4)):
            b[0, j], b[0, j + 1], b[0, j + 2], b[0, j + 3] = load4(Bs, (0, 0, x0 + j * LANE_COLS))
        k0, slot = 0, u32(0)
        while k0 < k:
            for p in unroll(range(BK)):
                now, then = p % 2, (p + 1) % 2
                if p == 0:  # everybody has read the tile multiplied last: its slot is free
                    free = u32(slot ^ 1) if SLOTS == 2 else u32((slot + SLOTS - 1) % SLOTS)
                    fetch(As, Bs, free, A, B, row0, col0, k0 + (SLOTS - 1) * BK, m, n, k, tid)
                if p == BK - 1:  # the next operands are in the next tile
                    cp_async_wait(IN_FLIGHT)
                    cuda.syncthreads()
                    slot = u32(slot ^ 1) if SLOTS == 2 else u32((slot + 1) % SLOTS)
                q = (p + 1) % BK
                for i in unroll(range(0, TM, 4)):
                    v = load4(As, (slot, q, y0 + i * LANE_ROWS))
                    a[then, i], a[then, i + 1], a[then, i + 2], a[then, i + 3] = v
                for j in unroll(range(0, TN, 4)):
                    v = load4(Bs, (slot, q, x0 + j * LANE_COLS))
                    b[then, j], b[then, j + 1], b[then, j + 2], b[then, j + 3] = v
                for i in unroll(range(TM)):
                    for s in unroll(range(TN)):
                        j = s if i % 2 == 0 else TN - 1 - s  # back and forth: neighbours share an operand
                        acc[i, j] += a[now, i] * b[now, j]
            k0 += BK
        cp_async_wait(0)  # no copy may be under way when the block ends
        for i in unroll(range(TM)):
            row = row0 + y0 + i // 4 * (4 * LANE_ROWS) + i % 4
            # store_four written out: calling it makes the kernel 3 % slower (kernels/NOTES.md).
            for j in unroll(range(0, TN, 4)):
                col = col0 + x0 + j * LANE_COLS
                if row < m and col < n:
                    # the row's padding may be read with it, but is never written
                    old = load4(C, (row, col)) if beta != 0 else zeros
                    c0 = alpha * acc[i, j] + beta * old[0]
                    c1 = alpha * acc[i, j + 1] + beta * old[1]
                    c2 = alpha * acc[i, j + 2] + beta * old[2]
                    c3 = alpha * acc[i, j + 3] + beta * old[3]
                    if col + 3 < n:
                        store4(C, (row, col), (c0, c1, c2, c3))
                    else:
                        C[row, col] = c0
                        if col + 1 < n:
                            C[row, col + 1] = c1
                        if col + 2 < n:
                            C[row, col + 2] = c2

    return grouped_blocks


STAGE = Stage(
    name="grouped_blocks",
    title="Blocks in groups, for the L2 cache",
    after="read_ahead",
    document="beyond the documents",
    tiles={
        "BM": 128,
        "BN": 256,
        "BK": 8,
        "WM": 64,
        "WN": 64,
        "TM": 16,
        "TN": 8,
        "SLOTS": 2,
        "GROUP": 8,
        "PAD": 4,
    },
    options={
        "BM": (64, 128, 256),
        "BN": (64, 128, 256),
        "BK": (8, 16),
        "WM": (32, 64, 128),
        "WN": (32, 64, 128),
        "TM": (8, 16),
        "TN": (8, 16),
        "SLOTS": (2, 3),
        "GROUP": (1, 8),
        "PAD": (0, 4),
    },
    may_be_zero=frozenset({"PAD"}),
    requirements=requirements,
    build=build,
    threads=lambda t: (32 * (t.BM * t.BN // (t.WM * t.WN)),),
    blocks=lambda m, n, t: (tiles_over(m, t.BM) * tiles_over(n, t.BN),),
    registers=lambda t: registers_for(t.TM + 2, t.TN + 2),
    alignment=16,
    compute_capability=(8, 0),
)
