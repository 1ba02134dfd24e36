"""One thread computes one element of C, and neighbouring threads take neighbouring COLUMNS.

Document 004, v01. The only change is which of a block's threads computes which of its elements. A warp's
32 threads now read 32 neighbouring elements of B, four full sectors, and the same element of A.
Blocks are still numbered down the rows: those that run at the same time need the same columns of B.
"""

from numba import cuda, float32

from gemm_course.kernels.parts.base import MAX_THREADS, Stage, tiles_over
from lockstep.intrinsics import u32


def build(BM, BN):
    """The kernel for blocks of BM by BN threads."""

    def naive_coalesced(m, n, k, alpha, A, B, beta, C):
        row = u32(cuda.blockIdx.x) * BM + u32(cuda.threadIdx.y)
        col = u32(cuda.blockIdx.y) * BN + u32(cuda.threadIdx.x)  # x, the fastest index, counts columns
        if row < m and col < n:
            acc = float32(0)
            p = 0
            while p < k:
                acc += A[row, p] * B[p, col]
                p += 1
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return naive_coalesced


def requirements(t):
    """A block has one thread per element of its tile of C."""
    threads = t.BM * t.BN
    yield (
        threads <= MAX_THREADS,
        f"a block has one thread per element, BM * BN = {threads}; the maximum is {MAX_THREADS}",
    )


STAGE = Stage(
    name="naive_coalesced",
    title="Coalesced: neighbours read neighbours",
    after="naive_uncoalesced",
    document="004: v01",
    tiles={"BM": 2, "BN": 128},
    options={"BM": (1, 2, 4, 8, 16, 32, 64, 128, 256), "BN": (1, 2, 4, 8, 16, 32, 64, 128, 256)},
    requirements=requirements,
    build=build,
    threads=lambda t: (t.BN, t.BM),
    blocks=lambda m, n, t: (tiles_over(m, t.BM), tiles_over(n, t.BN)),
)
