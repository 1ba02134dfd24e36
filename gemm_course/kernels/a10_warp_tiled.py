"""A warp's 32 threads share a WM by WN tile of C, each computing TM by TN of it in pieces of four by four.

Document 004, v06. A thread's rows come in runs of four, and so do its columns; the runs of neighbouring
threads lie side by side. So one 128-bit instruction of a warp reads one contiguous stretch of
shared memory, and in these reads no two threads need different words of the same bank.

PAD adds elements to each row of As. The rows then start in different banks, so that storing the transposed A
causes fewer conflicts.
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
from lockstep.intrinsics import load4, store4, u32, unroll


def build(BM, BN, BK, WM, WN, TM, TN, PAD):
    """The kernel for blocks of BM by BN elements, WM by WN per warp, TM by TN per thread."""
    THREADS = BM // WM * (BN // WN) * 32
    LANE_ROWS, LANE_COLS = WM // TM, WN // TN  # the warp's threads as a grid
    A_WIDTH = BM + PAD
    A_ROWS, B_ROWS = THREADS // (BK // 4), THREADS // (BN // 4)  # rows the block fetches at a time

    def warp_tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BK, A_WIDTH), float32, 16)
        Bs = cuda.shared.array((BK, BN), float32, 16)
        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        acc = cuda.local.array((TM, TN), float32)
        for i in unroll(range(TM)):
            for j in unroll(range(TN)):
                acc[i, j] = 0
        zeros = (float32(0), float32(0), float32(0), float32(0))
        tid = u32(cuda.threadIdx.x)
        warp, lane = tid // 32, tid % 32
        row0, col0 = u32(cuda.blockIdx.y) * BM, u32(cuda.blockIdx.x) * BN
        y0 = warp // (BN // WN) * WM + lane // LANE_COLS * 4  # this thread's first element within the tile
        x0 = warp % (BN // WN) * WN + lane % LANE_COLS * 4
        k0 = 0
        while k0 < k:
            for i in unroll(range(0, BM, A_ROWS)):
                r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
                v = load4(A, (row0 + r, k0 + c)) if row0 + r < m and k0 + c < k else zeros
                for e in unroll(range(4)):
                    As[c + e, r] = v[e] if k0 + c + e < k else float32(0)  # past k there may be NaN
            for i in unroll(range(0, BK, B_ROWS)):
                r, c = i + tid // (BN // 4), tid % (BN // 4) * 4
                store4(Bs, (r, c), load4(B, (k0 + r, col0 + c)) if k0 + r < k and col0 + c < n else zeros)
            cuda.syncthreads()
            for p in unroll(range(BK)):
                for i in unroll(range(TM)):  # the compiler merges each run of four into one 128-bit read
                    a[i] = As[p, y0 + i // 4 * (4 * LANE_ROWS) + i % 4]
                for j in unroll(range(TN)):
                    b[j] = Bs[p, x0 + j // 4 * (4 * LANE_COLS) + j % 4]
                for i in unroll(range(TM)):
                    for j in unroll(range(TN)):
                        acc[i, j] += a[i] * b[j]
            cuda.syncthreads()
            k0 += BK
        for i in unroll(range(TM)):
            row = row0 + y0 + i // 4 * (4 * LANE_ROWS) + i % 4
            for j in unroll(range(0, TN, 4)):
                col = col0 + x0 + j * LANE_COLS
                # store_four written out: calling it makes the kernel 10 % slower (kernels/NOTES.md).
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

    return warp_tiled


def requirements(t):
    """Thread tiles cover the warp's, warp tiles the block's, and everything moves by fours."""
    threads = 32 * (t.BM * t.BN // (t.WM * t.WN))
    yield from warp_covers_its_tile(t)
    yield from moves_by_fours(BM=t.BM, BN=t.BN, BK=t.BK, TM=t.TM, TN=t.TN, PAD=t.PAD)
    yield from fits_block(threads, 4 * t.BK * (t.BM + t.PAD + t.BN))
    yield from fits_registers(t.TM, t.TN)
    yield from shares_evenly("A", threads, rows=("BM", t.BM), width=("BK", t.BK), at_once=4)
    yield from shares_evenly("B", threads, rows=("BK", t.BK), width=("BN", t.BN), at_once=4)


STAGE = Stage(
    name="warp_tiled",
    title="Warp tiles",
    after="vectorized",
    document="004: v06",
    tiles={"BM": 128, "BN": 128, "BK": 16, "WM": 32, "WN": 64, "TM": 8, "TN": 8, "PAD": 0},
    options={
        "BM": (64, 128, 256),
        "BN": (64, 128, 256),
        "BK": (8, 16, 32),
        "WM": (32, 64, 128),
        "WN": (32, 64, 128),
        "TM": (4, 8, 16),
        "TN": (4, 8, 16),
        "PAD": (0, 4),
    },
    may_be_zero=frozenset({"PAD"}),
    requirements=requirements,
    build=build,
    threads=lambda t: (32 * (t.BM * t.BN // (t.WM * t.WN)),),
    blocks=columns_by_rows,
    registers=lambda t: registers_for(t.TM, t.TN),
    alignment=16,
)
