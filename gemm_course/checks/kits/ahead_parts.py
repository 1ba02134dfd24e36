"""Makes the parts of ``reads_ahead``: copies into a ring, reads of operands, their products, the store.

A block of 8 by 8 threads computes 32 by 32 elements of C, a thread 4 by 4 of them: rows ty + 8 i and columns
tx + 8 j. A slot of the ring has BK rows for A, transposed, and BK rows for B.
"""

from numba import cuda

from lockstep.intrinsics import cp_async4, cp_async_commit, unroll

SIDE, ACROSS, EACH = 32, 8, 4


def ahead_parts(SLOTS, BK):
    """Return fetch, read_step, add_step and store, device functions for a ring of SLOTS tiles BK deep."""

    @cuda.jit(device=True)
    def fetch(As, Bs, slot, A, B, t, m, n, k):
        """Ask for tile t of A and of B, to be copied to `slot`, and commit. Beyond k, m and n come zeros."""
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * SIDE, cuda.blockIdx.x * SIDE
        for e in range(ty * ACROSS + tx, BK * SIDE, ACROSS * ACROSS):
            p, place = e // SIDE, e % SIDE
            row, col, step = row0 + place, col0 + place, t * BK + p
            of_a = 4 if row < m and step < k else 0
            of_b = 4 if col < n and step < k else 0
            cp_async4(As, (slot, p, place), A, (min(row, m - 1), min(step, k - 1)), of_a)
            cp_async4(Bs, (slot, p, place), B, (min(step, k - 1), min(col, n - 1)), of_b)
        cp_async_commit()

    @cuda.jit(device=True)
    def read_step(a, b, As, Bs, slot, p):
        """Read this thread's 4 + 4 operands of step p of the tile in `slot` into a and b."""
        for i in unroll(range(EACH)):
            a[i] = As[slot, p, cuda.threadIdx.y + ACROSS * i]
            b[i] = Bs[slot, p, cuda.threadIdx.x + ACROSS * i]

    @cuda.jit(device=True)
    def add_step(acc, a, b):
        """Add the 16 products of a and b to acc."""
        for i in unroll(range(EACH)):
            for j in unroll(range(EACH)):
                acc[i, j] += a[i] * b[j]

    @cuda.jit(device=True)
    def store(C, acc, m, n):
        """Store this thread's results, those that lie in C."""
        row0, col0 = cuda.blockIdx.y * SIDE, cuda.blockIdx.x * SIDE
        for i in unroll(range(EACH)):
            for j in unroll(range(EACH)):
                row, col = row0 + cuda.threadIdx.y + ACROSS * i, col0 + cuda.threadIdx.x + ACROSS * j
                if row < m and col < n:
                    C[row, col] = acc[i, j]

    return fetch, read_step, add_step, store
