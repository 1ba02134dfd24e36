"""Four floats at a time: 128-bit reads and writes of global memory, and A transposed in shared memory.

Document 004, v05 (003 transposes A as well). With As[p, i] instead of As[i, p], the TM elements a
thread needs next lie side by side, as those of Bs always did, and the compiler reads both with 128-bit
instructions. PAD unused columns at the end of each row of As spread the transposing stores, which go down
a column, over different banks.
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
)
from gemm_course.kernels.parts.results import store_four
from lockstep.intrinsics import load4, store4, u32, unroll


def build(BM, BN, BK, TM, TN, PAD):
    """The kernel for blocks of BM by BN elements, TM by TN per thread, that step along k by BK."""
    THREADS = BM * BN // (TM * TN)
    A_WIDTH = BM + PAD
    A_ROWS, B_ROWS = THREADS // (BK // 4), THREADS // (BN // 4)  # rows the block fetches at a time

    def vectorized(m, n, k, alpha, A, B, beta, C):
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
        row0, col0 = u32(cuda.blockIdx.y) * BM, u32(cuda.blockIdx.x) * BN
        y0, x0 = tid // (BN // TN) * TM, tid % (BN // TN) * TN  # this thread's first element within the tile
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
                for i in unroll(range(TM)):
                    a[i] = As[p, y0 + i]
                for j in unroll(range(TN)):
                    b[j] = Bs[p, x0 + j]
                for i in unroll(range(TM)):
                    for j in unroll(range(TN)):
                        acc[i, j] += a[i] * b[j]
            cuda.syncthreads()
            k0 += BK
        for i in unroll(range(TM)):
            row = row0 + y0 + i
            for j in unroll(range(0, TN, 4)):
                col = col0 + x0 + j
                four = (acc[i, j], acc[i, j + 1], acc[i, j + 2], acc[i, j + 3])
                store_four(C, row, col, m, n, alpha, beta, four)

    return vectorized


def requirements(t):
    """Whole thread tiles, whole rows in each pass of fetching, and fours everywhere."""
    threads = t.BM * t.BN // (t.TM * t.TN)
    yield t.BM % t.TM == 0, f"BM ({t.BM}) must be a multiple of TM ({t.TM}): a thread owns TM whole rows"
    yield t.BN % t.TN == 0, f"BN ({t.BN}) must be a multiple of TN ({t.TN}): a thread owns TN whole columns"
    yield from moves_by_fours(BM=t.BM, BN=t.BN, BK=t.BK, TN=t.TN, PAD=t.PAD)
    yield from fits_block(threads, 4 * t.BK * (t.BM + t.PAD + t.BN))
    yield from fits_registers(t.TM, t.TN)
    yield from shares_evenly("A", threads, rows=("BM", t.BM), width=("BK", t.BK), at_once=4)
    yield from shares_evenly("B", threads, rows=("BK", t.BK), width=("BN", t.BN), at_once=4)


STAGE = Stage(
    name="vectorized",
    title="Four floats at a time",
    after="thread_tiled_2d",
    document="004: v05",
    tiles={"BM": 128, "BN": 128, "BK": 32, "TM": 16, "TN": 4, "PAD": 4},
    options={
        "BM": (32, 64, 128, 256),
        "BN": (32, 64, 128, 256),
        "BK": (8, 16, 32),
        "TM": (4, 8, 16),
        "TN": (4, 8, 16),
        "PAD": (0, 4),
    },
    may_be_zero=frozenset({"PAD"}),
    requirements=requirements,
    build=build,
    threads=lambda t: (t.BM * t.BN // (t.TM * t.TN),),
    blocks=columns_by_rows,
    registers=lambda t: registers_for(t.TM, t.TN),
    alignment=16,
)
