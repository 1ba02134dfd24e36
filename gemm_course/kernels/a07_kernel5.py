"""A 2D thread tile in which each thread fetches the slices of A and B that lie beside its own tile of C.

Document 000, "Kernel 5". Compared with `thread_tiled_2d` only the fetching differs. Threads form a (BM /
TM) by (BN / TN) grid; thread (ty, tx) fetches TM elements of column tx of A's tile and TN elements of
row ty of B's. That covers the tiles only if BK is both BN / TN and BM / TM, so each thread goes on in
strides of the block's width (along A's columns) and height (along B's rows) until BK is reached.
"""

from numba import cuda, float32

from gemm_course.kernels.parts.base import Stage, columns_by_rows, fits_block, fits_registers, registers_for
from lockstep.intrinsics import u32, unroll


def build(BM, BN, BK, TM, TN):
    """The kernel for blocks of BM by BN elements, TM by TN per thread, that step along k by BK."""

    def kernel5(m, n, k, alpha, A, B, beta, C):
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
            c = tx
            while c < BK:  # columns tx, tx + BN / TN, ... of A's tile
                for i in unroll(range(TM)):
                    As[ty * TM + i, c] = A[top + i, k0 + c] if top + i < m and k0 + c < k else float32(0)
                c += BN // TN
            r = ty
            while r < BK:  # rows ty, ty + BM / TM, ... of B's tile
                for j in unroll(range(TN)):
                    Bs[r, tx * TN + j] = B[k0 + r, left + j] if k0 + r < k and left + j < n else float32(0)
                r += BM // TM
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

    return kernel5


def requirements(t):
    """Whole thread tiles; the strided loops make any BK legal."""
    yield t.BM % t.TM == 0, f"BM ({t.BM}) must be a multiple of TM ({t.TM}): a thread owns TM whole rows"
    yield t.BN % t.TN == 0, f"BN ({t.BN}) must be a multiple of TN ({t.TN}): a thread owns TN whole columns"
    yield from fits_block(t.BM * t.BN // (t.TM * t.TN), 4 * t.BK * (t.BM + t.BN))
    yield from fits_registers(t.TM, t.TN)


STAGE = Stage(
    name="kernel5",
    title="2D thread tiles, fetched in slices",
    after="thread_tiled_2d",
    side=True,
    document="000: Kernel 5",
    tiles={"BM": 256, "BN": 128, "BK": 32, "TM": 16, "TN": 4},
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
