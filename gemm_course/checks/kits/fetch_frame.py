"""Makes a GEMM kernel around a learner's function for A's tile. The rest is as in the stage `vectorized`."""

from collections.abc import Callable

from numba import cuda, float32

from lockstep.intrinsics import load4, store4

PAD = 4


def around(fetch: Callable, BM: int, BN: int, BK: int, TM: int, TN: int):
    """Return a GEMM kernel whose threads call ``fetch(m, k, A, row0, k0, As, tid)`` for every tile of A.

    A block has (BN // TN, BM // TM) threads, and As is (BK, BM + PAD). Rows of Bs past k are zeros.
    """
    THREADS = BM * BN // (TM * TN)
    B_ROWS = THREADS // (BN // 4)
    A_WIDTH = BM + PAD

    @cuda.jit(device=True)
    def fetch_b(k, n, B, k0, col0, Bs, tid):
        zeros = (float32(0), float32(0), float32(0), float32(0))
        for i in range(0, BK, B_ROWS):
            r, c = i + tid // (BN // 4), tid % (BN // 4) * 4
            store4(Bs, (r, c), load4(B, (k0 + r, col0 + c)) if k0 + r < k and col0 + c < n else zeros)

    @cuda.jit
    def gemm(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BK, A_WIDTH), float32, 16)
        Bs = cuda.shared.array((BK, BN), float32, 16)
        acc = cuda.local.array((TM, TN), float32)
        for i in range(TM):
            for j in range(TN):
                acc[i, j] = 0
        tid = cuda.threadIdx.y * cuda.blockDim.x + cuda.threadIdx.x
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        y0, x0 = cuda.threadIdx.y * TM, cuda.threadIdx.x * TN
        for k0 in range(0, k, BK):
            fetch(m, k, A, row0, k0, As, tid)
            fetch_b(k, n, B, k0, col0, Bs, tid)
            cuda.syncthreads()
            for p in range(BK):
                for i in range(TM):
                    for j in range(TN):
                        acc[i, j] += As[p, y0 + i] * Bs[p, x0 + j]
            cuda.syncthreads()
        for i in range(TM):
            for j in range(TN):
                row, col = row0 + y0 + i, col0 + x0 + j
                if row < m and col < n:
                    C[row, col] = alpha * acc[i, j] + beta * C[row, col] if beta != 0 else alpha * acc[i, j]

    return gemm
