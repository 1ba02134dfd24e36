"""A block copies a BM by BK tile of A and a BK by BN tile of B into shared memory. Tiles need not be square.

Document 004, v02. A block has one thread per element of its tile of C. Together the threads fetch both
tiles, an equal share each, and neighbouring threads fetch neighbouring elements.
"""

from numba import cuda, float32

from gemm_course.kernels.parts.base import MAX_STATIC_SHARED_BYTES, MAX_THREADS, Stage, columns_by_rows
from lockstep.intrinsics import u32, unroll


def build(BM, BN, BK):
    """The kernel for blocks of BM by BN threads that step along k by BK."""
    THREADS = BM * BN
    A_LOADS, B_LOADS = BM * BK // THREADS, BK * BN // THREADS  # elements of each tile that a thread fetches

    def block_tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32, 16)
        Bs = cuda.shared.array((BK, BN), float32, 16)
        tid = u32(cuda.threadIdx.x)
        ty, tx = tid // BN, tid % BN
        row0, col0 = u32(cuda.blockIdx.y) * BM, u32(cuda.blockIdx.x) * BN
        acc = float32(0)
        k0 = 0
        while k0 < k:
            for i in unroll(range(A_LOADS)):
                r, c = (tid + i * THREADS) // BK, (tid + i * THREADS) % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for i in unroll(range(B_LOADS)):
                r, c = (tid + i * THREADS) // BN, (tid + i * THREADS) % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()  # the tiles are complete
            for p in unroll(range(BK)):
                acc += As[ty, p] * Bs[p, tx]
            cuda.syncthreads()  # nobody needs the tiles any more
            k0 += BK
        row, col = row0 + ty, col0 + tx
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return block_tiled


def requirements(t):
    """Every thread fetches the same number of elements of each tile."""
    threads, shared = t.BM * t.BN, 4 * t.BK * (t.BM + t.BN)
    yield threads <= MAX_THREADS, f"a block has BM * BN = {threads} threads; the maximum is {MAX_THREADS}"
    yield (
        t.BM * t.BK % threads == 0,
        f"the threads share A's tile evenly: BK ({t.BK}) must be a multiple of BN ({t.BN})",
    )
    yield (
        t.BK * t.BN % threads == 0,
        f"the threads share B's tile evenly: BK ({t.BK}) must be a multiple of BM ({t.BM})",
    )
    yield (
        shared <= MAX_STATIC_SHARED_BYTES,
        f"the tiles take 4 * BK * (BM + BN) = {shared} bytes of shared memory; "
        f"the maximum is {MAX_STATIC_SHARED_BYTES}",
    )


STAGE = Stage(
    name="block_tiled",
    title="Tiles in shared memory, of any shape",
    after="naive_coalesced",
    document="004: v02",
    tiles={"BM": 16, "BN": 32, "BK": 64},
    options={
        "BM": (1, 2, 4, 8, 16, 32, 64, 128),
        "BN": (4, 8, 16, 32, 64, 128, 256),
        "BK": (8, 16, 24, 32, 48, 64, 96, 128, 256),
    },
    requirements=requirements,
    build=build,
    threads=lambda t: (t.BM * t.BN,),
    blocks=columns_by_rows,
    registers=lambda t: 32,
)
