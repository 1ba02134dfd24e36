"""Makes the copies of a GEMM kernel in two forms, for ``both_switches``: single floats, or four at a time."""

from numba import cuda, float32

from gemm_course.kernels.parts.results import store_four
from lockstep.intrinsics import load4, store4


def make_copies(BM: int, BN: int, BK: int, TM: int, TN: int, FOURS: bool, TRANSPOSED: bool):
    """Return three device functions, called by all (BN // TN) · (BM // TM) threads of a block.

    fetch_a(m, k, A, row0, k0, As, tid) copies the tile of A that begins at A[row0, k0]: element (r, c) of it
    into As[r, c], or with TRANSPOSED into As[c, r]. fetch_b(k, n, B, k0, col0, Bs, tid) copies the tile of B
    that begins at B[k0, col0] into Bs. Where a matrix has ended they store zeros. ``tid`` is the thread's
    number in the block.

    put(m, n, alpha, beta, C, row, col, acc) stores a thread's TM by TN results, C[row, col] is the first.

    With FOURS all of them move four floats at a time, save where TRANSPOSED stores into As.
    """
    if FOURS and (BK % 4 or BN % 4 or TN % 4):
        raise ValueError(f"FOURS needs multiples of 4, but BK = {BK}, BN = {BN} and TN = {TN}")
    made = _by_fours if FOURS else _singly
    return made(BM, BN, BK, TM, TN, TRANSPOSED)


def _by_fours(BM, BN, BK, TM, TN, TRANSPOSED):
    THREADS = BM * BN // (TM * TN)
    A_FOURS, B_FOURS = BM * BK // 4, BK * BN // 4
    A_PASSES, B_PASSES = -(-A_FOURS // THREADS), -(-B_FOURS // THREADS)

    @cuda.jit(device=True)
    def fetch_a(m, k, A, row0, k0, As, tid):
        zero = float32(0)
        for i in range(A_PASSES):
            four = i * THREADS + tid
            if four < A_FOURS:
                r, c = four // (BK // 4), four % (BK // 4) * 4
                inside = row0 + r < m and k0 + c < k
                v = load4(A, (row0 + r, k0 + c)) if inside else (zero, zero, zero, zero)
                v0 = v[0] if k0 + c < k else zero
                v1 = v[1] if k0 + c + 1 < k else zero
                v2 = v[2] if k0 + c + 2 < k else zero
                v3 = v[3] if k0 + c + 3 < k else zero
                if TRANSPOSED:
                    As[c, r] = v0
                    As[c + 1, r] = v1
                    As[c + 2, r] = v2
                    As[c + 3, r] = v3
                else:
                    store4(As, (r, c), (v0, v1, v2, v3))

    @cuda.jit(device=True)
    def fetch_b(k, n, B, k0, col0, Bs, tid):
        zeros = (float32(0), float32(0), float32(0), float32(0))
        for i in range(B_PASSES):
            four = i * THREADS + tid
            if four < B_FOURS:
                r, c = four // (BN // 4), four % (BN // 4) * 4
                store4(Bs, (r, c), load4(B, (k0 + r, col0 + c)) if k0 + r < k and col0 + c < n else zeros)

    @cuda.jit(device=True)
    def put(m, n, alpha, beta, C, row, col, acc):
        for i in range(TM):
            for j in range(0, TN, 4):
                four = (acc[i, j], acc[i, j + 1], acc[i, j + 2], acc[i, j + 3])
                store_four(C, row + i, col + j, m, n, alpha, beta, four)

    return fetch_a, fetch_b, put


def _singly(BM, BN, BK, TM, TN, TRANSPOSED):
    THREADS = BM * BN // (TM * TN)
    A_PASSES, B_PASSES = -(-BM * BK // THREADS), -(-BK * BN // THREADS)

    @cuda.jit(device=True)
    def fetch_a(m, k, A, row0, k0, As, tid):
        for i in range(A_PASSES):
            each = i * THREADS + tid
            if each < BM * BK:
                r, c = each // BK, each % BK
                v = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
                if TRANSPOSED:
                    As[c, r] = v
                else:
                    As[r, c] = v

    @cuda.jit(device=True)
    def fetch_b(k, n, B, k0, col0, Bs, tid):
        for i in range(B_PASSES):
            each = i * THREADS + tid
            if each < BK * BN:
                r, c = each // BN, each % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)

    @cuda.jit(device=True)
    def put(m, n, alpha, beta, C, row, col, acc):
        for i in range(TM):
            for j in range(TN):
                if row + i < m and col + j < n:
                    old = beta * C[row + i, col + j] if beta != 0 else float32(0)
                    C[row + i, col + j] = alpha * acc[i, j] + old

    return fetch_a, fetch_b, put
