"""Makes the device function that fills both tiles in ``outer_product``, whose learners write all the rest."""

from numba import cuda, float32


def make_fetch(BM: int, BN: int, BK: int, TM: int, TN: int):
    """Return ``fetch(m, n, k, k0, A, B, As, Bs)``, called by all (BN // TN, BM // TM) threads of a block.

    It fills As, (BM, BK), and Bs, (BK, BN), float32 in shared memory, with the block's tiles of A and B that
    start at column and row ``k0``, and zeros where a matrix has ended. Threads are numbered consecutively. It
    has no barrier.
    """
    THREADS = BM * BN // (TM * TN)

    @cuda.jit(device=True)
    def fetch(m, n, k, k0, A, B, As, Bs):
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        tid = cuda.threadIdx.y * (BN // TN) + cuda.threadIdx.x
        for e in range(tid, BM * BK, THREADS):
            r, c = e // BK, e % BK
            As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
        for e in range(tid, BK * BN, THREADS):
            r, c = e // BN, e % BN
            Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)

    return fetch
