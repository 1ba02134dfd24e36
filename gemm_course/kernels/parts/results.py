"""What the kernels that move four floats at a time share: storing four results of a row."""

from numba import cuda, float32

from lockstep.intrinsics import load4, store4


@cuda.jit(device=True)
def store_four(C, row, col, m, n, alpha, beta, four):
    """C = alpha * four + beta * C, for C[row, col] and its three right neighbours, where in bounds.

    col is a multiple of 4. The row's padding may be read with C, but is never written.
    """
    if row < m and col < n:
        zeros = (float32(0), float32(0), float32(0), float32(0))
        old = load4(C, (row, col)) if beta != 0 else zeros
        c0 = alpha * four[0] + beta * old[0]
        c1 = alpha * four[1] + beta * old[1]
        c2 = alpha * four[2] + beta * old[2]
        c3 = alpha * four[3] + beta * old[3]
        if col + 3 < n:
            store4(C, (row, col), (c0, c1, c2, c3))
        else:
            C[row, col] = c0
            if col + 1 < n:
                C[row, col + 1] = c1
            if col + 2 < n:
                C[row, col + 2] = c2
