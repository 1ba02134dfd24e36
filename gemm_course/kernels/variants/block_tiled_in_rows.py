"""block_tiled with its tiles fetched in whole rows, as thread_tiled_1d fetches them.

It is not part of the ladder. Between it and thread_tiled_1d lies one idea alone, the column of results in a
thread; between block_tiled and it lie the loops that fetch.
"""

from dataclasses import replace

from numba import cuda, float32

from gemm_course.kernels import LADDER
from gemm_course.kernels.parts.base import shares_evenly
from lockstep.intrinsics import u32, unroll


def build(BM, BN, BK):
    """The kernel for blocks of BM by BN threads that step along k by BK."""
    THREADS = BM * BN
    A_ROWS, B_ROWS = THREADS // BK, THREADS // BN  # rows of each tile that the block fetches at a time

    def block_tiled_in_rows(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32, 16)
        Bs = cuda.shared.array((BK, BN), float32, 16)
        tid = u32(cuda.threadIdx.x)
        ty, tx = tid // BN, tid % BN
        row0, col0 = u32(cuda.blockIdx.y) * BM, u32(cuda.blockIdx.x) * BN
        acc = float32(0)
        k0 = 0
        while k0 < k:
            for i in unroll(range(0, BM, A_ROWS)):
                r, c = i + tid // BK, tid % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for i in unroll(range(0, BK, B_ROWS)):
                r, c = i + tid // BN, tid % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()  # the tiles are complete
            for p in unroll(range(BK)):
                acc += As[ty, p] * Bs[p, tx]
            cuda.syncthreads()  # nobody needs the tiles any more
            k0 += BK
        row, col = row0 + ty, col0 + tx
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return block_tiled_in_rows


def requirements(t):
    """Those of block_tiled, and whole rows in each pass of fetching."""
    threads = t.BM * t.BN
    yield from LADDER["block_tiled"].requirements(t)
    yield from shares_evenly("A", threads, rows=("BM", t.BM), width=("BK", t.BK))
    yield from shares_evenly("B", threads, rows=("BK", t.BK), width=("BN", t.BN))


STAGE = replace(
    LADDER["block_tiled"],
    name="block_tiled_in_rows",
    title="Tiles in shared memory, fetched in whole rows",
    after="",
    requirements=requirements,
    build=build,
)
