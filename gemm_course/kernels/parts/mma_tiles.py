"""Makes device functions for kernels with mma.sync, for the products of a step and to store the results.

The loops over a warp's tile are unrolled, so the functions are built for one WM by WN.
"""

from numba import cuda, float32

from lockstep.intrinsics import copy16, kept, mma_m16n8k16, store2, u32, unroll


@cuda.jit(device=True)
def every_second_piece(row, piece):
    """Return the offsets in a swizzled tile of four pieces of a row: at `piece`, and 2, 4 and 6 further.

    In a row with swizzle s, piece 2 p + half is at (2 p + half) ^ s, which is (half ^ s) ^ 2 p: so one base
    and three XORs give the offsets of all steps.
    """
    third, fifth, seventh = piece ^ 2, piece ^ 4, piece ^ 6
    return kept(row + piece * 8), kept(row + third * 8), kept(row + fifth * 8), kept(row + seventh * 8)


def products(WM, WN):
    """Return clear(acc, a, b) and multiply(acc, a, b) for a warp's tile of WM by WN."""
    ROWS, COLUMNS, PRODUCTS = WM // 16, WN // 16, WN // 8  # a fragment of B serves two products side by side

    @cuda.jit(device=True)
    def clear(acc, a, b):
        """Set the accumulators to zero, and also the fragments, so that their products add nothing."""
        for i in unroll(range(ROWS)):
            for j in unroll(range(PRODUCTS)):
                for e in unroll(range(4)):
                    acc[i, j, e] = 0
        for e in unroll(range(8)):
            for i in unroll(range(ROWS)):
                a[i, e] = 0
            for j in unroll(range(COLUMNS)):
                b[j, e] = 0

    @cuda.jit(device=True)
    def multiply(acc, a, b):
        """Compute acc += a @ b for all fragments of one step along k."""
        for i in unroll(range(ROWS)):
            for j in unroll(range(COLUMNS)):
                mma_m16n8k16(acc[i, 2 * j], a[i], b[j][0:4])
                mma_m16n8k16(acc[i, 2 * j + 1], a[i], b[j][4:8])

    return clear, multiply


def results(WM, WN):
    """Return finish(acc, alpha, beta, Cs, ...) for a warp's tile of WM by WN.

    Results go to C through shared memory, 16 bytes per lane. Cs is float16, warps by 16 by WN. It holds 16
    rows of each warp's tile, swizzled.
    """
    ROWS, PRODUCTS, C_PIECES = WM // 16, WN // 8, WN // 8  # pieces of 16 bytes in a row
    C_ROWS = 32 // C_PIECES  # rows a warp stores at a time
    C_REPEAT = 8 // C_PIECES  # rows that together fill all banks once

    @cuda.jit(device=True)
    def place(y, piece):
        """Return a piece's column in row y of Cs. Rows that start in one bank differ in the pieces' order."""
        return (piece ^ (y // C_REPEAT % C_PIECES)) * 8

    @cuda.jit(device=True)
    def add_old(acc, beta, Cs, warp, lane, C, row, col, m, n):
        """Add beta * C to acc, 16 rows at a time, which pass through Cs: each lane copies 16 bytes to it."""
        piece, c = lane % C_PIECES, col + lane % C_PIECES * 8
        for i in unroll(range(ROWS)):
            y = lane // C_PIECES
            while y < 16:
                r, x = row + i * 16 + y, place(y, piece)
                if r < m and c < n:  # rows of C end at multiples of 16 bytes; what is past n is not used
                    copy16(Cs, (warp, y, x), C, (r, c))
                else:
                    for e in range(8):
                        Cs[warp, y, x + e] = 0
                y = u32(y + C_ROWS)
            cuda.syncwarp()
            for j in unroll(range(PRODUCTS)):
                for h in unroll(range(2)):
                    y = lane // 4 + h * 8
                    x = place(y, u32(j)) + lane % 4 * 2
                    acc[i, j, h * 2] += beta * float32(Cs[warp, y, x])
                    acc[i, j, h * 2 + 1] += beta * float32(Cs[warp, y, x + 1])
            cuda.syncwarp()

    @cuda.jit(device=True)
    def store(acc, Cs, warp, lane, C, row, col, m, n):
        """Store acc as the warp's tile of C, from C[row, col] on, through Cs: 16 bytes per lane to C."""
        piece, c = lane % C_PIECES, col + lane % C_PIECES * 8
        for i in unroll(range(ROWS)):
            for j in unroll(range(PRODUCTS)):
                for h in unroll(range(2)):
                    y = lane // 4 + h * 8
                    x = place(y, u32(j)) + lane % 4 * 2
                    store2(Cs, (warp, y, x), (acc[i, j, h * 2], acc[i, j, h * 2 + 1]))
            cuda.syncwarp()
            y = lane // C_PIECES
            if row + i * 16 + 16 <= m and col + WN <= n:  # in bounds: no per-lane checks
                for h in unroll(range(0, 16, C_ROWS)):
                    copy16(C, (row + i * 16 + y + h, c), Cs, (warp, y + h, place(y + h, piece)))
            else:
                while y < 16:
                    r, x = row + i * 16 + y, place(y, piece)
                    if r < m and c + 8 <= n:
                        copy16(C, (r, c), Cs, (warp, y, x))
                    elif r < m:
                        for e in range(n - c):
                            C[r, c + e] = Cs[warp, y, x + e]
                    y = u32(y + C_ROWS)
            cuda.syncwarp()

    @cuda.jit(device=True)
    def finish(acc, alpha, beta, Cs, warp, lane, C, row, col, m, n):
        """Store alpha * acc + beta * C as the warp's tile of C, from C[row, col] on."""
        if alpha != 1:
            for i in unroll(range(ROWS)):
                for j in unroll(range(PRODUCTS)):
                    for e in unroll(range(4)):
                        acc[i, j, e] *= alpha
        if beta != 0:
            add_old(acc, beta, Cs, warp, lane, C, row, col, m, n)
        store(acc, Cs, warp, lane, C, row, col, m, n)

    return finish


def rows_of_results(t):
    """Yield the rule for Cs: a row of a warp's tile has as many pieces as a swizzle permutes."""
    yield (
        t.WN in (16, 32, 64),
        f"a row of a warp's results is 2, 4 or 8 pieces: WN ({t.WN}) must be 16, 32 or 64",
    )
