"""Kernel 5 without bank conflicts: padded rows, and each thread's columns spread over the tile.

It is not part of the ladder: `kernel5` with two independent changes. PAD extra words at the end of every
row of a tile move rows that are TM apart into different banks. With SPREAD = 1 thread tx owns the
columns tx, tx + BN / TN, tx + 2 BN / TN, ..., so that neighbouring threads touch neighbouring elements of
Bs, and of B and C as well.
"""

from numba import cuda, float32

from gemm_course.kernels.parts.base import Stage, columns_by_rows, fits_block, fits_registers, registers_for
from lockstep.intrinsics import u32, unroll


def build(BM, BN, BK, TM, TN, PAD, SPREAD):
    """The kernel for blocks of BM by BN elements, TM by TN per thread, that step along k by BK."""
    A_WIDTH, B_WIDTH = BK + PAD, BN + PAD  # in the kernel, a sum is not a compile-time constant
    BY_X, BY_J = (1, BN // TN) if SPREAD else (TN, 1)  # columns between threads, between results

    def kernel5_spread(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, A_WIDTH), float32, 16)
        Bs = cuda.shared.array((BK, B_WIDTH), float32, 16)
        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        acc = cuda.local.array((TM, TN), float32)
        for i in unroll(range(TM)):
            for j in unroll(range(TN)):
                acc[i, j] = 0
        tx, ty = u32(cuda.threadIdx.x), u32(cuda.threadIdx.y)
        top = u32(cuda.blockIdx.y) * BM + ty * TM  # this thread's first row and column of C
        left = u32(cuda.blockIdx.x) * BN + tx * BY_X
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
                    x = j * BY_J
                    Bs[r, tx * BY_X + x] = B[k0 + r, left + x] if k0 + r < k and left + x < n else float32(0)
                r += BM // TM
            cuda.syncthreads()
            for p in unroll(range(BK)):
                for i in unroll(range(TM)):
                    a[i] = As[ty * TM + i, p]
                for j in unroll(range(TN)):
                    b[j] = Bs[p, tx * BY_X + j * BY_J]
                for i in unroll(range(TM)):
                    for j in unroll(range(TN)):
                        acc[i, j] += a[i] * b[j]
            cuda.syncthreads()
            k0 += BK
        for i in unroll(range(TM)):
            for j in unroll(range(TN)):
                row, col = top + i, left + j * BY_J
                if row < m and col < n:
                    C[row, col] = alpha * acc[i, j] + beta * C[row, col] if beta != 0 else alpha * acc[i, j]

    return kernel5_spread


def requirements(t):
    """Whole thread tiles, as in `kernel5`."""
    yield t.BM % t.TM == 0, f"BM ({t.BM}) must be a multiple of TM ({t.TM}): a thread owns TM whole rows"
    yield t.BN % t.TN == 0, f"BN ({t.BN}) must be a multiple of TN ({t.TN}): a thread owns TN whole columns"
    yield t.SPREAD in (0, 1), f"SPREAD must be 0 (columns side by side) or 1 (columns apart), not {t.SPREAD}"
    yield from fits_block(t.BM * t.BN // (t.TM * t.TN), 4 * (t.BM * (t.BK + t.PAD) + t.BK * (t.BN + t.PAD)))
    yield from fits_registers(t.TM, t.TN)


STAGE = Stage(
    name="kernel5_spread",
    title="Kernel 5 without bank conflicts",
    document="000: Kernel 5, with its shared memory fixed",
    tiles={"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8, "PAD": 1, "SPREAD": 1},
    options={
        "BM": (32, 64, 128, 256),
        "BN": (32, 64, 128, 256),
        "BK": (8, 16, 32),
        "TM": (4, 8, 16),
        "TN": (4, 8, 16),
        "PAD": (0, 1, 2, 4),
        "SPREAD": (0, 1),
    },
    requirements=requirements,
    build=build,
    threads=lambda t: (t.BN // t.TN, t.BM // t.TM),
    blocks=columns_by_rows,
    registers=lambda t: registers_for(t.TM, t.TN),
    may_be_zero=frozenset({"PAD", "SPREAD"}),
)
