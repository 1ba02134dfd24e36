"""Makes the parts of ``ring_and_swizzle``: copies into swizzled tiles, and the store of a warp's results.

A block is one warp, with 16 rows and 64 columns of C. A tile of A is 16 by 64, one of B 64 by 64: rows of
eight pieces of 16 bytes each.
"""

from numba import cuda

from lockstep.intrinsics import cp_async16, cp_async_commit, unroll

ROWS, COLUMNS, DEPTH = 16, 64, 64


@cuda.jit(device=True)
def place(row, piece):
    """Return the place, 0 to 7, of a piece of 8 values in its row of a tile, as ``swizzle`` asks for it."""
    return piece ^ row % 8


@cuda.jit(device=True)
def fetch_swizzled(As, Bs, slot, A, B, t, k):
    """Ask for tile t of A and of B, each piece to be copied to its `place` in `slot`, and commit.

    Beyond k come zeros.
    """
    lane, row0, col0 = cuda.threadIdx.x, cuda.blockIdx.y * ROWS, cuda.blockIdx.x * COLUMNS
    for e in range(lane, ROWS * 8, 32):
        r, piece = e // 8, e % 8
        col = t * DEPTH + piece * 8
        cp_async16(As, (slot, r, place(r, piece) * 8), A, (row0 + r, min(col, k - 8)), 16 if col < k else 0)
    for e in range(lane, DEPTH * 8, 32):
        r, piece = e // 8, e % 8
        row = t * DEPTH + r
        into = (slot, r, place(r, piece) * 8)
        cp_async16(Bs, into, B, (min(row, k - 1), col0 + piece * 8), 16 if row < k else 0)
    cp_async_commit()


@cuda.jit(device=True)
def store_accumulators(C, acc):
    """Store the warp's results: acc[j] is a 16 by 8 matrix of accumulators, from column 8 j on."""
    lane, row0, col0 = cuda.threadIdx.x, cuda.blockIdx.y * ROWS, cuda.blockIdx.x * COLUMNS
    for j in unroll(range(COLUMNS // 8)):
        for e in unroll(range(4)):
            C[row0 + lane // 4 + e // 2 * 8, col0 + j * 8 + lane % 4 * 2 + e % 2] = acc[j, e]
