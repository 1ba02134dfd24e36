"""Makes device functions of what ``vectorized_access`` taught: loads of tiles by float4, stores of results.

The functions are made for one choice of tiles. Rows of A, B and C must start at multiples of 16 bytes.
"""

from types import SimpleNamespace

from numba import cuda, float32

from lockstep.intrinsics import load4, store4, u32, unroll


def thread_tile_parts(BM, BN, BK, WM, WN, TM, TN):
    """Return the device functions around the heart of a warp-tiled kernel, as .fetch, .clear and .put.

    A thread has TM by TN results.

    fetch(m, n, k, A, B, k0, As, Bs): copies the block's tiles, starting at column k0 of A and row k0 of B,
    into As, (BK, BM), and Bs, (BK, BN), with zeros where the matrices have ended.
    clear(acc): stores zeros into acc, (TM, TN).
    put(m, n, alpha, value, beta, C, row, col): stores alpha * value + beta * C at row `row`, column `col`,
    counted from the block's tile; does nothing outside C.
    """

    @cuda.jit(device=True)
    def clear(acc):
        for i in unroll(range(TM)):
            for j in unroll(range(TN)):
                acc[i, j] = 0

    return SimpleNamespace(fetch=_fetching(BM, BN, BK, WM, WN), clear=clear, put=_putting(BM, BN))


def _fetching(BM, BN, BK, WM, WN):
    THREADS = BM // WM * (BN // WN) * 32

    @cuda.jit(device=True)
    def fetch(m, n, k, A, B, k0, As, Bs):
        tid = u32(cuda.threadIdx.x)
        row0, col0 = u32(cuda.blockIdx.y) * BM, u32(cuda.blockIdx.x) * BN
        zeros = (float32(0), float32(0), float32(0), float32(0))
        for i in range(tid, BM * BK // 4, THREADS):
            r, c = i // (BK // 4), i % (BK // 4) * 4
            v = load4(A, (row0 + r, k0 + c)) if row0 + r < m and k0 + c < k else zeros
            for e in unroll(range(4)):
                As[c + e, r] = v[e] if k0 + c + e < k else float32(0)
        for i in range(tid, BK * BN // 4, THREADS):
            r, c = i // (BN // 4), i % (BN // 4) * 4
            store4(Bs, (r, c), load4(B, (k0 + r, col0 + c)) if k0 + r < k and col0 + c < n else zeros)

    return fetch


def _putting(BM, BN):
    @cuda.jit(device=True)
    def put(m, n, alpha, value, beta, C, row, col):
        row, col = u32(cuda.blockIdx.y) * BM + row, u32(cuda.blockIdx.x) * BN + col
        if row < m and col < n:
            new = alpha * value
            C[row, col] = new + beta * C[row, col] if beta != 0 else new

    return put
