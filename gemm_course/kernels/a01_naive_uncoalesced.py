"""One thread computes one element of C, and neighbouring threads take neighbouring ROWS.

Document 004, v00. A warp's 32 threads then read 32 different rows of A: each of the 32 addresses lies in
a sector of its own, of whose 32 bytes 4 are used.
"""

from numba import cuda, float32

from gemm_course.kernels.parts.base import MAX_THREADS, Stage, tiles_over
from lockstep.intrinsics import u32


def build(BM, BN):
    """The kernel for blocks of BM by BN threads."""

    def naive_uncoalesced(m, n, k, alpha, A, B, beta, C):
        row = u32(cuda.blockIdx.x) * BM + u32(cuda.threadIdx.x)  # x, the fastest index, counts rows
        col = u32(cuda.blockIdx.y) * BN + u32(cuda.threadIdx.y)
        if row < m and col < n:
            acc = float32(0)
            p = 0
            while p < k:
                acc += A[row, p] * B[p, col]
                p += 1
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return naive_uncoalesced


def requirements(t):
    """A block has one thread per element of its tile of C."""
    threads = t.BM * t.BN
    yield (
        threads <= MAX_THREADS,
        f"a block has one thread per element, BM * BN = {threads}; the maximum is {MAX_THREADS}",
    )


STAGE = Stage(
    name="naive_uncoalesced",
    title="Naive: one thread, one element",
    document="004: v00",
    tiles={"BM": 32, "BN": 32},
    options={"BM": (1, 2, 4, 8, 16, 32, 64, 128, 256), "BN": (1, 2, 4, 8, 16, 32, 64, 128, 256)},
    requirements=requirements,
    build=build,
    threads=lambda t: (t.BM, t.BN),
    blocks=lambda m, n, t: (tiles_over(m, t.BM), tiles_over(n, t.BN)),
)
