"""Each thread computes TM elements of C, one below the other, and keeps them in registers.

Document 004, v03. An element of Bs is read once and used TM times, so a multiply-add costs (TM + 1) / TM
reads of shared memory instead of 2.
"""

from numba import cuda, float32

from gemm_course.kernels.parts.base import Stage, columns_by_rows, fits_block, shares_evenly
from lockstep.intrinsics import u32, unroll


def build(BM, BN, BK, TM):
    """The kernel for blocks of BM by BN elements, TM by 1 per thread, that step along k by BK."""
    THREADS = BM * BN // TM
    A_ROWS, B_ROWS = THREADS // BK, THREADS // BN  # rows of each tile that the block fetches at a time

    def thread_tiled_1d(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32, 16)
        Bs = cuda.shared.array((BK, BN), float32, 16)
        acc = cuda.local.array(TM, float32)
        for i in unroll(range(TM)):
            acc[i] = 0
        tid = u32(cuda.threadIdx.x)
        row0, col0 = u32(cuda.blockIdx.y) * BM, u32(cuda.blockIdx.x) * BN
        y0, x0 = tid // BN * TM, tid % BN  # this thread's first element within the block's tile
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
                b = Bs[p, x0]
                for i in unroll(range(TM)):
                    acc[i] += As[y0 + i, p] * b
            cuda.syncthreads()
            k0 += BK
        col = col0 + x0
        for i in unroll(range(TM)):
            row = row0 + y0 + i
            if row < m and col < n:
                C[row, col] = alpha * acc[i] + beta * C[row, col] if beta != 0 else alpha * acc[i]

    return thread_tiled_1d


def requirements(t):
    """Whole thread tiles, and whole rows in each pass of fetching."""
    threads = t.BM * t.BN // t.TM
    yield t.BM % t.TM == 0, f"BM ({t.BM}) must be a multiple of TM ({t.TM}): a thread owns TM whole rows"
    yield from fits_block(threads, 4 * t.BK * (t.BM + t.BN))
    yield from shares_evenly("A", threads, rows=("BM", t.BM), width=("BK", t.BK))
    yield from shares_evenly("B", threads, rows=("BK", t.BK), width=("BN", t.BN))


STAGE = Stage(
    name="thread_tiled_1d",
    title="A column of results in registers",
    after="block_tiled",
    document="004: v03",
    tiles={"BM": 128, "BN": 128, "BK": 8, "TM": 32},
    options={
        "BM": (16, 32, 64, 128, 256),
        "BN": (16, 32, 64, 128, 256),
        "BK": (4, 8, 16, 32, 64),
        "TM": (1, 2, 4, 8, 16, 32),
    },
    requirements=requirements,
    build=build,
    threads=lambda t: (t.BM * t.BN // t.TM,),
    blocks=columns_by_rows,
    registers=lambda t: 32 if t.TM <= 8 else 64,
)
