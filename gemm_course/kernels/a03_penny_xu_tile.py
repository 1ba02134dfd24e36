"""A block copies one square tile of A and one of B into shared memory, uses them, and moves on.

Document 002 (after Penny Xu) has tiles of 2 by 2 and matrices that they divide; this kernel takes any tile
width and any size. A thread fetches As[ty, tx] and Bs[ty, tx]; what it needs is row ty of As and column tx
of Bs. Each element fetched from A and B is used T times instead of once.

The document has its second barrier inside the innermost loop, T times per tile; once after the loop is
enough.
"""

from numba import cuda, float32

from gemm_course.kernels.parts.base import MAX_THREADS, Stage, columns_by_rows
from lockstep.intrinsics import u32


def build(BM, BN, BK):
    """The kernel for tiles of T by T elements, T = BM = BN = BK."""
    T = BM

    def penny_xu_tile(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = u32(cuda.threadIdx.x), u32(cuda.threadIdx.y)
        row = u32(cuda.blockIdx.y) * T + ty
        col = u32(cuda.blockIdx.x) * T + tx
        acc = float32(0)
        k0 = 0
        while k0 < k:
            As[ty, tx] = A[row, k0 + tx] if row < m and k0 + tx < k else float32(0)
            Bs[ty, tx] = B[k0 + ty, col] if k0 + ty < k and col < n else float32(0)
            cuda.syncthreads()  # the tiles are complete
            for p in range(T):
                acc += As[ty, p] * Bs[p, tx]
            cuda.syncthreads()  # nobody needs the tiles any more
            k0 += T
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return penny_xu_tile


def requirements(t):
    """One thread per element of the square tile."""
    yield (
        t.BM == t.BN == t.BK,
        f"the tiles are square: BM, BN and BK must be equal, not {t.BM}, {t.BN} and {t.BK}",
    )
    yield (
        t.BM * t.BN <= MAX_THREADS,
        f"a block has BM * BN = {t.BM * t.BN} threads; the maximum is {MAX_THREADS}",
    )


WIDTHS = tuple(range(1, 33))

STAGE = Stage(
    name="penny_xu_tile",
    title="A tile in shared memory",
    after="naive_coalesced",
    side=True,
    document="002: tile_matrix_multiply",
    tiles={"BM": 32, "BN": 32, "BK": 32},
    options={"BM": WIDTHS, "BN": WIDTHS, "BK": WIDTHS},
    requirements=requirements,
    build=build,
    threads=lambda t: (t.BN, t.BM),
    blocks=columns_by_rows,
    registers=lambda t: 32,
)
