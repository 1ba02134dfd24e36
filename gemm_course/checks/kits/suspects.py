"""Holds the suspects of ``smallest_failing_shape``: document 002's kernel, and four with one fault each.

Each factory takes the tile's width T and returns a kernel (m, n, k, alpha, A, B, beta, C), launched with
blocks of T by T threads, x over the columns of C. Every suspect gives the right numbers for many sizes.
"""

from numba import cuda, float32


def document_002(T):
    """Return document 002's kernel for any T, not 2 alone. The second barrier is in the inner loop."""

    @cuda.jit
    def tile_matrix_multiply(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row, col = cuda.blockIdx.y * T + ty, cuda.blockIdx.x * T + tx
        acc = float32(0)
        for i in range(k // T):
            As[ty, tx] = A[row, i * T + tx]
            Bs[ty, tx] = B[i * T + ty, col]
            cuda.syncthreads()
            for p in range(T):
                acc += As[ty, p] * Bs[p, tx]
                cuda.syncthreads()
        C[row, col] = acc

    return tile_matrix_multiply


def suspect_a(T):
    """Return a kernel that takes only whole tiles along k."""

    @cuda.jit
    def suspect_a(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row, col = cuda.blockIdx.y * T + ty, cuda.blockIdx.x * T + tx
        acc = float32(0)
        for tile in range(k // T):
            As[ty, tx] = A[row, tile * T + tx] if row < m else float32(0)
            Bs[ty, tx] = B[tile * T + ty, col] if col < n else float32(0)
            cuda.syncthreads()
            for p in range(T):
                acc += As[ty, p] * Bs[p, tx]
            cuda.syncthreads()
        if row < m and col < n:
            C[row, col] = alpha * acc

    return suspect_a


def suspect_b(T):
    """Return a kernel that takes as many tiles along k as the grid has blocks along x."""

    @cuda.jit
    def suspect_b(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row, col = cuda.blockIdx.y * T + ty, cuda.blockIdx.x * T + tx
        acc = float32(0)
        for tile in range(cuda.gridDim.x):
            a_col, b_row = tile * T + tx, tile * T + ty
            As[ty, tx] = A[row, a_col] if row < m and a_col < k else float32(0)
            Bs[ty, tx] = B[b_row, col] if b_row < k and col < n else float32(0)
            cuda.syncthreads()
            for p in range(T):
                acc += As[ty, p] * Bs[p, tx]
            cuda.syncthreads()
        if row < m and col < n:
            C[row, col] = alpha * acc

    return suspect_b


def suspect_c(T):
    """Return a kernel whose last guard has its sizes swapped."""

    @cuda.jit
    def suspect_c(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row, col = cuda.blockIdx.y * T + ty, cuda.blockIdx.x * T + tx
        acc = float32(0)
        for tile in range((k + T - 1) // T):
            a_col, b_row = tile * T + tx, tile * T + ty
            As[ty, tx] = A[row, a_col] if row < m and a_col < k else float32(0)
            Bs[ty, tx] = B[b_row, col] if b_row < k and col < n else float32(0)
            cuda.syncthreads()
            for p in range(T):
                acc += As[ty, p] * Bs[p, tx]
            cuda.syncthreads()
        if row < n and col < m:
            C[row, col] = alpha * acc

    return suspect_c


def suspect_d(T):
    """Return a kernel that clears its tiles only once, so that a narrower last tile keeps old elements."""

    @cuda.jit
    def suspect_d(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row, col = cuda.blockIdx.y * T + ty, cuda.blockIdx.x * T + tx
        acc = float32(0)
        As[ty, tx] = float32(0)
        Bs[ty, tx] = float32(0)
        for tile in range((k + T - 1) // T):
            a_col, b_row = tile * T + tx, tile * T + ty
            if row < m and a_col < k:
                As[ty, tx] = A[row, a_col]
            if b_row < k and col < n:
                Bs[ty, tx] = B[b_row, col]
            cuda.syncthreads()
            for p in range(T):
                acc += As[ty, p] * Bs[p, tx]
            cuda.syncthreads()
        if row < m and col < n:
            C[row, col] = alpha * acc

    return suspect_d


SUSPECTS = {"a": suspect_a, "b": suspect_b, "c": suspect_c, "d": suspect_d}
