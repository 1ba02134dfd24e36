"""Makes the parts of ``several_warps``: the copies of a tile, and the store of a fragment of accumulators."""

from numba import cuda
from numba.types import float16

from lockstep.intrinsics import ROW_MAJOR, wmma_store


def wmma_parts(BM, BN, BK, WARPS):
    """Return fetch and put, device functions for blocks of WARPS warps and tiles of BM by BN by BK."""
    THREADS = 32 * WARPS

    @cuda.jit(device=True)
    def fetch(As, Bs, A, B, k0, m, n, k):
        """Copy the block's tiles from step k0 on into As and Bs, with zeros beyond A and B."""
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        for e in range(cuda.threadIdx.x, BM * BK, THREADS):
            r, c = e // BK, e % BK
            As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float16(0)
        for e in range(cuda.threadIdx.x, BK * BN, THREADS):
            r, c = e // BN, e % BN
            Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float16(0)

    @cuda.jit(device=True)
    def put(C, Cs, acc, y, x, m, n):
        """Store a fragment of accumulators at row y and column x of the block's tile, as far as C goes."""
        warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
        row0, col0 = cuda.blockIdx.y * BM + y, cuda.blockIdx.x * BN + x
        wmma_store(Cs, (warp, 0, 0), acc, ROW_MAJOR)
        cuda.syncwarp()
        for e in range(lane, 256, 32):
            r, c = e // 16, e % 16
            if row0 + r < m and col0 + c < n:
                C[row0 + r, col0 + c] = Cs[warp, r, c]
        cuda.syncwarp()

    return fetch, put
