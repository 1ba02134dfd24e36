"""The draft of Kernel 5, kept with its bug, for learners to find. It is not part of the ladder.

Document 001, with its typos fixed (a loop over c that counts r, names of arrays that do not exist) and its
idea left alone: each thread fetches one slice of A's tile and one of B's. In a note below the code the
author asks whether that covers the tiles. `kernel5` is the answer.
"""

from numba import cuda, float32

from gemm_course.kernels.parts.base import Stage, columns_by_rows, fits_block, fits_registers, registers_for
from lockstep.intrinsics import u32, unroll


def build(BM, BN, BK, TM, TN):
    """The kernel for blocks of BM by BN elements, TM by TN per thread, that step along k by BK."""

    def kernel5_draft(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32, 16)
        Bs = cuda.shared.array((BK, BN), float32, 16)
        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        acc = cuda.local.array((TM, TN), float32)
        for i in unroll(range(TM)):
            for j in unroll(range(TN)):
                acc[i, j] = 0
        tx, ty = u32(cuda.threadIdx.x), u32(cuda.threadIdx.y)
        top = u32(cuda.blockIdx.y) * BM + ty * TM  # this thread's first row and column of C
        left = u32(cuda.blockIdx.x) * BN + tx * TN
        k0 = 0
        while k0 < k:
            for i in unroll(range(TM)):  # column tx of A's tile, ...
                As[ty * TM + i, tx] = A[top + i, k0 + tx] if top + i < m and k0 + tx < k else float32(0)
            for j in unroll(range(TN)):  # ... and row ty of B's
                Bs[ty, tx * TN + j] = B[k0 + ty, left + j] if k0 + ty < k and left + j < n else float32(0)
            cuda.syncthreads()
            for p in unroll(range(BK)):
                for i in unroll(range(TM)):
                    a[i] = As[ty * TM + i, p]
                for j in unroll(range(TN)):
                    b[j] = Bs[p, tx * TN + j]
                for i in unroll(range(TM)):
                    for j in unroll(range(TN)):
                        acc[i, j] += a[i] * b[j]
            cuda.syncthreads()
            k0 += BK
        for i in unroll(range(TM)):
            for j in unroll(range(TN)):
                row, col = top + i, left + j
                if row < m and col < n:
                    C[row, col] = alpha * acc[i, j] + beta * C[row, col] if beta != 0 else alpha * acc[i, j]

    return kernel5_draft


def requirements(t):
    """Whole thread tiles. That is all the draft asks for, and it is not enough."""
    yield t.BM % t.TM == 0, f"BM ({t.BM}) must be a multiple of TM ({t.TM}): a thread owns TM whole rows"
    yield t.BN % t.TN == 0, f"BN ({t.BN}) must be a multiple of TN ({t.TN}): a thread owns TN whole columns"
    yield from fits_block(t.BM * t.BN // (t.TM * t.TN), 4 * t.BK * (t.BM + t.BN))
    yield from fits_registers(t.TM, t.TN)


STAGE = Stage(
    name="kernel5_draft",
    title="Kernel 5, the draft",
    document="001: Kernel 5, draft",
    tiles={"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8},
    options={
        "BM": (32, 64, 128, 256),
        "BN": (32, 64, 128, 256),
        "BK": (8, 16, 32),
        "TM": (4, 8, 16),
        "TN": (4, 8, 16),
    },
    requirements=requirements,
    build=build,
    threads=lambda t: (t.BN // t.TN, t.BM // t.TM),
    blocks=columns_by_rows,
    registers=lambda t: registers_for(t.TM, t.TN),
)
