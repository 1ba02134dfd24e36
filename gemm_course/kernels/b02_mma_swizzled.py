"""Fragments of known layout: ldmatrix and mma.sync, and rows that are swizzled instead of padded.

Beyond the documents. WMMA hides which lane holds which element, so every accumulator goes through shared
memory on its way to C. The layout of mma.sync's fragments is documented, and ldmatrix loads those of A and B.
So a thread knows its results and stores them itself, two neighbours at a time.

With ldmatrix each lane passes the address of a row of 8 values, wherever that is. So a row of a tile need not
be stored in order: piece p of its 16-byte pieces is stored at place p ^ row % 8, a *swizzle*. The 8 pieces
of one column, which ldmatrix reads together, as one 8 by 8 matrix, then cover all 32 banks, without padding.
In As that holds for BK = 64. Shorter rows do not fill the 128 bytes of all banks: several neighbours
(A_REPEAT) fill them together, and swap their A_SPAN pieces in the same way.
"""

from numba import cuda, float32
from numba.types import float16

from gemm_course.kernels.parts.base import (
    Stage,
    accumulators_fit_registers,
    columns_by_rows,
    fits_block,
    fragments_cover_the_tiles,
    shares_evenly,
)
from gemm_course.kernels.parts.tensor_tiles import store_pair
from lockstep.intrinsics import (
    cp_async16,
    cp_async_commit,
    cp_async_wait,
    ldmatrix_x4,
    ldmatrix_x4_trans,
    mma_m16n8k16,
    u32,
    unroll,
)


def build(BM, BN, BK, WM, WN):
    """The kernel for blocks of BM by BN elements, WM by WN per warp."""
    THREADS = BM // WM * (BN // WN) * 32
    ROWS, COLUMNS, PRODUCTS = WM // 16, WN // 16, WN // 8  # a fragment of B serves two products side by side
    A_PIECES, B_PIECES = BK // 8, BN // 8  # of 8 values, 16 bytes, in a row of a tile
    A_ROWS, B_ROWS = THREADS // A_PIECES, THREADS // B_PIECES  # rows the block fetches at a time
    A_REPEAT, A_SPAN = max(1, 8 // A_PIECES), min(8, A_PIECES)  # short rows: several fill the banks together

    @cuda.jit(device=True)
    def in_a(row, piece):
        """The column of As at which a piece of a row is kept."""
        return (piece ^ (row // A_REPEAT % A_SPAN)) * 8

    @cuda.jit(device=True)
    def in_b(row, piece):
        """The column of Bs at which a piece of a row is kept."""
        return (piece ^ (row % 8)) * 8

    def mma_swizzled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float16, 128)
        Bs = cuda.shared.array((BK, BN), float16, 128)
        a = cuda.local.array((ROWS, 8), float16)
        b = cuda.local.array((COLUMNS, 8), float16)
        acc = cuda.local.array((ROWS, PRODUCTS, 4), float32)
        for i in unroll(range(ROWS)):
            for j in unroll(range(PRODUCTS)):
                for e in unroll(range(4)):
                    acc[i, j, e] = 0
        tid = u32(cuda.threadIdx.x)
        warp, lane = tid // 32, tid % 32
        row0, col0 = u32(cuda.blockIdx.y) * BM, u32(cuda.blockIdx.x) * BN
        y0, x0 = warp // (BN // WN) * WM, warp % (BN // WN) * WN  # the warp's tile within the block's
        line, half = lane % 16, lane // 16  # of a fragment's 16 rows of two pieces, the one this lane names
        k0 = 0
        while k0 < k:
            piece = tid % A_PIECES
            for i in unroll(range(0, BM, A_ROWS)):
                r, c = i + tid // A_PIECES, k0 + piece * 8
                valid = max(0, min(k - c, 8)) * 2  # bytes; past k there may be NaN
                cp_async16(As, (r, in_a(r, piece)), A, (min(row0 + r, m - 1), c), valid)
            piece = tid % B_PIECES
            for i in unroll(range(0, BK, B_ROWS)):
                r, c = i + tid // B_PIECES, min(col0 + piece * 8, (n - 1) // 8 * 8)
                cp_async16(Bs, (r, in_b(r, piece)), B, (k0 + r, c), 16 if k0 + r < k else 0)
            cp_async_commit()
            cp_async_wait(0)
            cuda.syncthreads()
            for p in unroll(range(0, BK, 16)):
                for i in unroll(range(ROWS)):
                    r = y0 + i * 16 + line
                    ldmatrix_x4(a[i], As, (r, in_a(r, p // 8 + half)))
                for j in unroll(range(COLUMNS)):
                    r = p + line
                    ldmatrix_x4_trans(b[j], Bs, (r, in_b(r, x0 // 8 + j * 2 + half)))
                for i in unroll(range(ROWS)):
                    for j in unroll(range(COLUMNS)):
                        mma_m16n8k16(acc[i, 2 * j], a[i], b[j][0:4])
                        mma_m16n8k16(acc[i, 2 * j + 1], a[i], b[j][4:8])
            cuda.syncthreads()
            k0 += BK
        row, col = row0 + y0 + lane // 4, col0 + x0 + lane % 4 * 2  # of this thread's first pair of results
        for i in unroll(range(ROWS)):
            for j in unroll(range(PRODUCTS)):
                for h in unroll(range(2)):
                    first, second = acc[i, j, h * 2], acc[i, j, h * 2 + 1]
                    store_pair(C, row + i * 16 + h * 8, col + j * 8, m, n, alpha, beta, first, second)

    return mma_swizzled


def requirements(t):
    """Fragments cover the warp's tile, warp tiles the block's, and whole rows are fetched at a time."""
    threads = 32 * (t.BM // t.WM) * (t.BN // t.WN)
    yield from fragments_cover_the_tiles(t, 16, 16)
    yield t.BN % 64 == 0, f"a swizzle is over 8 pieces of 8 FP16 values: BN ({t.BN}) must be a multiple of 64"
    yield from accumulators_fit_registers(t.WM * t.WN // 32)
    yield from fits_block(threads, 2 * (t.BM * t.BK + t.BK * t.BN))
    yield from shares_evenly("A", threads, rows=("BM", t.BM), width=("BK", t.BK), at_once=8)
    yield from shares_evenly("B", threads, rows=("BK", t.BK), width=("BN", t.BN), at_once=8)


STAGE = Stage(
    name="mma_swizzled",
    title="Fragments of known layout",
    after="wmma",
    document="beyond the documents",
    tiles={"BM": 128, "BN": 128, "BK": 64, "WM": 64, "WN": 64},
    options={
        "BM": (64, 128, 256),
        "BN": (64, 128, 256),
        "BK": (16, 32, 64),
        "WM": (16, 32, 64, 128),
        "WN": (16, 32, 64, 128),
    },
    requirements=requirements,
    build=build,
    threads=lambda t: (32 * (t.BM // t.WM) * (t.BN // t.WN),),
    blocks=columns_by_rows,
    registers=lambda t: t.WM * t.WN // 32 + (t.WM + t.WN) // 4 + 40,
    alignment=16,
    compute_capability=(8, 0),
    dtype="float16",
)
