"""Each thread computes a TM by TN tile of C, as a sum of outer products.

Document 004, v04. At each step along k a thread multiplies a column of As by a row of Bs: TM + TN reads of
shared memory feed TM * TN multiply-adds.
"""

from numba import cuda, float32

from gemm_course.kernels.parts.base import (
    Stage,
    columns_by_rows,
    fits_block,
    fits_registers,
    registers_for,
    shares_evenly,
)
from lockstep.intrinsics import u32, unroll


def build(BM, BN, BK, TM, TN):
    """The kernel for blocks of BM by BN elements, TM by TN per thread, that step along k by BK."""
    THREADS = BM * BN // (TM * TN)
    A_ROWS, B_ROWS = THREADS // BK, THREADS // BN  # rows of each tile that the block fetches at a time

    def thread_tiled_2d(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32, 16)
        Bs = cuda.shared.array((BK, BN), float32, 16)
        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        acc = cuda.local.array((TM, TN), float32)
        for i in unroll(range(TM)):
            for j in unroll(range(TN)):
                acc[i, j] = 0
        tid = u32(cuda.threadIdx.x)
        row0, col0 = u32(cuda.blockIdx.y) * BM, u32(cuda.blockIdx.x) * BN
        y0, x0 = tid // (BN // TN) * TM, tid % (BN // TN) * TN  # this thread's first element within the tile
        k0 = 0
        while k0 < k:
            for i in unroll(range(0, BM, A_ROWS)):
                r, c = i + tid // BK, tid % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for i in unroll(range(0, BK, B_ROWS)):
                r, c = i + tid // BN, tid % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in unroll(range(BK)):
                for i in unroll(range(TM)):
                    a[i] = As[y0 + i, p]
                for j in unroll(range(TN)):
                    b[j] = Bs[p, x0 + j]
                for i in unroll(range(TM)):
                    for j in unroll(range(TN)):
                        acc[i, j] += a[i] * b[j]
            cuda.syncthreads()
            k0 += BK
        for i in unroll(range(TM)):
            for j in unroll(range(TN)):
                row, col = row0 + y0 + i, col0 + x0 + j
                if row < m and col < n:
                    C[row, col] = alpha * acc[i, j] + beta * C[row, col] if beta != 0 else alpha * acc[i, j]

    return thread_tiled_2d


def requirements(t):
    """Whole thread tiles, and whole rows in each pass of fetching."""
    threads = t.BM * t.BN // (t.TM * t.TN)
    yield t.BM % t.TM == 0, f"BM ({t.BM}) must be a multiple of TM ({t.TM}): a thread owns TM whole rows"
    yield t.BN % t.TN == 0, f"BN ({t.BN}) must be a multiple of TN ({t.TN}): a thread owns TN whole columns"
    yield from fits_block(threads, 4 * t.BK * (t.BM + t.BN))
    yield from fits_registers(t.TM, t.TN)
    yield from shares_evenly("A", threads, rows=("BM", t.BM), width=("BK", t.BK))
    yield from shares_evenly("B", threads, rows=("BK", t.BK), width=("BN", t.BN))


STAGE = Stage(
    name="thread_tiled_2d",
    title="A tile of results in registers",
    after="thread_tiled_1d",
    document="004: v04",
    tiles={"BM": 128, "BN": 128, "BK": 32, "TM": 16, "TN": 4},
    options={
        "BM": (32, 64, 128, 256),
        "BN": (32, 64, 128, 256),
        "BK": (8, 16, 32),
        "TM": (2, 4, 8, 16),
        "TN": (2, 4, 8, 16),
    },
    requirements=requirements,
    build=build,
    threads=lambda t: (t.BM * t.BN // (t.TM * t.TN),),
    blocks=columns_by_rows,
    registers=lambda t: registers_for(t.TM, t.TN),
)
