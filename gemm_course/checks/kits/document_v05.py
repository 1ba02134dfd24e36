"""Holds document 004's v05 for ``stray_read``, as printed there: C is read before the guard."""

from numba import cuda, float32

from lockstep.intrinsics import load4, store4, u32, unroll

# With BM = BN = TILE, BK = DEPTH and TM = TN = EACH the faults are the same as with 128, 16 and 8.
TILE, DEPTH, EACH = 32, 8, 4


def document_v05(BM=TILE, BN=TILE, BK=DEPTH, TM=EACH, TN=EACH):
    """Return v05 of document 004, which does not pad A's transposed tile and reads C before the guard."""
    THREADS = BM * BN // (TM * TN)
    A_ROWS, B_ROWS = THREADS // (BK // 4), THREADS // (BN // 4)

    @cuda.jit
    def gemm_v05(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BK, BM), float32, 16)
        Bs = cuda.shared.array((BK, BN), float32, 16)
        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        acc = cuda.local.array((TM, TN), float32)
        for i in unroll(range(TM)):
            for j in unroll(range(TN)):
                acc[i, j] = 0
        zeros = (float32(0), float32(0), float32(0), float32(0))
        tid = u32(cuda.threadIdx.x)
        row0, col0 = u32(cuda.blockIdx.y) * BM, u32(cuda.blockIdx.x) * BN
        y0, x0 = tid // (BN // TN) * TM, tid % (BN // TN) * TN
        k0 = 0
        while k0 < k:
            for i in unroll(range(0, BM, A_ROWS)):
                r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
                v = load4(A, (row0 + r, k0 + c)) if row0 + r < m and k0 + c < k else zeros
                for e in unroll(range(4)):
                    As[c + e, r] = v[e] if k0 + c + e < k else float32(0)
            for i in unroll(range(0, BK, B_ROWS)):
                r, c = i + tid // (BN // 4), tid % (BN // 4) * 4
                store4(Bs, (r, c), load4(B, (k0 + r, col0 + c)) if k0 + r < k and col0 + c < n else zeros)
            cuda.syncthreads()
            for p in unroll(range(BK)):
                for i in unroll(range(TM)):
                    a[i] = As[p, y0 + i]
                for j in unroll(range(TN)):
                    b[j] = Bs[p, x0 + j]
                for i in unroll(range(TM)):
                    for j in unroll(range(TN)):
                        acc[i, j] += a[i] * b[j]
            cuda.syncthreads()
            k0 += BK
        for i in unroll(range(TM)):
            row = row0 + y0 + i
            for j in unroll(range(0, TN, 4)):
                col = col0 + x0 + j
                old = load4(C, (row, col))
                c0 = alpha * acc[i, j] + beta * old[0]
                c1 = alpha * acc[i, j + 1] + beta * old[1]
                c2 = alpha * acc[i, j + 2] + beta * old[2]
                c3 = alpha * acc[i, j + 3] + beta * old[3]
                if row < m and col < n:
                    store4(C, (row, col), (c0, c1, c2, c3))

    return gemm_v05
