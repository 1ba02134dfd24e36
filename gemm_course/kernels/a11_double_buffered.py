"""Two sets of tiles: while the block multiplies one, it fetches the next from global memory.

One idea beyond the documents' v06. A thread loads its share of the next tile into registers before it
multiplies the current one, and stores it into the other slot of shared memory afterwards: the
multiplications hide the latency of the loads. One barrier per tile is left: a slot is written only while
everybody reads the other.
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
from lockstep.intrinsics import load4, store4, u32, unroll


def build(BM, BN, BK, WM, WN, TM, TN, PAD):
    """The kernel for blocks of BM by BN elements, WM by WN per warp, TM by TN per thread."""
    THREADS = BM // WM * (BN // WN) * 32
    LANE_ROWS, LANE_COLS = WM // TM, WN // TN  # the warp's threads as a grid
    A_WIDTH = BM + PAD
    A_ROWS, B_ROWS = THREADS // (BK // 4), THREADS // (BN // 4)  # rows the block fetches at a time
    A_PASSES, B_PASSES = BM // A_ROWS, BK // B_ROWS

    def double_buffered(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((2, BK, A_WIDTH), float32, 16)
        Bs = cuda.shared.array((2, BK, BN), float32, 16)
        next_a = cuda.local.array((A_PASSES, 4), float32)
        next_b = cuda.local.array((B_PASSES, 4), float32)
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
        k0, free = 0, 0
        while k0 < k + BK:  # fetch the tile at k0 and multiply the one before it
            slot = 1 - free  # read this one, and fill the other
            for i in unroll(range(A_PASSES)):
                r, c = i * A_ROWS + tid // (BK // 4), tid % (BK // 4) * 4
                v = load4(A, (row0 + r, k0 + c)) if row0 + r < m and k0 + c < k else zeros
                for e in unroll(range(4)):
                    next_a[i, e] = v[e] if k0 + c + e < k else float32(0)  # past k there may be NaN
            for i in unroll(range(B_PASSES)):
                r, c = i * B_ROWS + tid // (BN // 4), tid % (BN // 4) * 4
                v = load4(B, (k0 + r, col0 + c)) if k0 + r < k and col0 + c < n else zeros
                for e in unroll(range(4)):
                    next_b[i, e] = v[e]
            if k0 > 0:
                for p in unroll(range(BK)):
                    for i in unroll(range(TM)):
                        a[i] = As[slot, p, y0 + i // 4 * (4 * LANE_ROWS) + i % 4]
                    for j in unroll(range(TN)):
                        b[j] = Bs[slot, p, x0 + j // 4 * (4 * LANE_COLS) + j % 4]
                    for i in unroll(range(TM)):
                        for j in unroll(range(TN)):
                            acc[i, j] += a[i] * b[j]
            for i in unroll(range(A_PASSES)):
                r, c = i * A_ROWS + tid // (BK // 4), tid % (BK // 4) * 4
                for e in unroll(range(4)):
                    As[free, c + e, r] = next_a[i, e]
            for i in unroll(range(B_PASSES)):
                r, c = i * B_ROWS + tid // (BN // 4), tid % (BN // 4) * 4
                store4(Bs, (free, r, c), (next_b[i, 0], next_b[i, 1], next_b[i, 2], next_b[i, 3]))
            cuda.syncthreads()
            k0, free = k0 + BK, slot
        for i in unroll(range(TM)):
            row = row0 + y0 + i // 4 * (4 * LANE_ROWS) + i % 4
            for j in unroll(range(0, TN, 4)):
                col = col0 + x0 + j * LANE_COLS
                four = (acc[i, j], acc[i, j + 1], acc[i, j + 2], acc[i, j + 3])
                store_four(C, row, col, m, n, alpha, beta, four)

    return double_buffered


def requirements(t):
    """Thread tiles cover the warp's, warp tiles the block's, and everything moves by fours."""
    threads = 32 * (t.BM * t.BN // (t.WM * t.WN))
    yield from warp_covers_its_tile(t)
    yield from moves_by_fours(BM=t.BM, BN=t.BN, BK=t.BK, TM=t.TM, TN=t.TN, PAD=t.PAD)
    yield from fits_block(threads, 2 * 4 * t.BK * (t.BM + t.PAD + t.BN))
    yield from fits_registers(t.TM, t.TN)
    yield from shares_evenly("A", threads, rows=("BM", t.BM), width=("BK", t.BK), at_once=4)
    yield from shares_evenly("B", threads, rows=("BK", t.BK), width=("BN", t.BN), at_once=4)


STAGE = Stage(
    name="double_buffered",
    title="Fetch the next tile while multiplying",
    after="warp_tiled",
    document="beyond the documents",
    tiles={"BM": 128, "BN": 256, "BK": 8, "WM": 64, "WN": 64, "TM": 16, "TN": 8, "PAD": 4},
    options={
        "BM": (64, 128, 256),
        "BN": (64, 128, 256),
        "BK": (8, 16),
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
