"""Answers to the exercises of notebook 02 that people really give, and that must be refused."""

import numpy as np
from numba import cuda, float32
from tests.wrong_solutions.collect import collector

WRONG, wrong = collector("coalesced", "documentation_matmul", "best_block", "leading_dimension")


# ---- 02.1 ------------------------------------------------------------------------------------------------


@wrong("coalesced", "x still counts rows")
@cuda.jit
def v00_unchanged(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        if beta == 0:
            C[row, col] = alpha * acc
        else:
            C[row, col] = alpha * acc + beta * C[row, col]


@wrong("coalesced", "exchanged twice")
@cuda.jit
def names_and_subscripts_exchanged(m, n, k, alpha, A, B, beta, C):
    col, row = cuda.grid(2)
    if col < m and row < n:
        acc = float32(0)
        for p in range(k):
            acc += A[col, p] * B[p, row]
        if beta == 0:
            C[col, row] = alpha * acc
        else:
            C[col, row] = alpha * acc + beta * C[col, row]


@wrong("coalesced", "guard has its sizes exchanged")
@cuda.jit
def guard_left_behind(m, n, k, alpha, A, B, beta, C):
    col, row = cuda.grid(2)
    if col < m and row < n:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        if beta == 0:
            C[row, col] = alpha * acc
        else:
            C[row, col] = alpha * acc + beta * C[row, col]


@wrong("coalesced", "Only the rows are guarded")
@cuda.jit
def no_guard_of_columns(m, n, k, alpha, A, B, beta, C):
    col, row = cuda.grid(2)
    if row < m:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        if beta == 0:
            C[row, col] = alpha * acc
        else:
            C[row, col] = alpha * acc + beta * C[row, col]


@wrong("coalesced", "`B`'s indices are exchanged")
@cuda.jit
def reads_b_transposed(m, n, k, alpha, A, B, beta, C):
    col, row = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[col, p]
        if beta == 0:
            C[row, col] = alpha * acc
        else:
            C[row, col] = alpha * acc + beta * C[row, col]


@wrong("coalesced", "`A`'s indices are exchanged")
@cuda.jit
def reads_a_transposed(m, n, k, alpha, A, B, beta, C):
    col, row = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            acc += A[p, row] * B[p, col]
        if beta == 0:
            C[row, col] = alpha * acc
        else:
            C[row, col] = alpha * acc + beta * C[row, col]


@wrong("coalesced", "next row")
@cuda.jit
def rows_first_within_the_block(m, n, k, alpha, A, B, beta, C):
    thread = cuda.threadIdx.y * cuda.blockDim.x + cuda.threadIdx.x
    row = cuda.blockIdx.y * cuda.blockDim.y + thread % cuda.blockDim.y
    col = cuda.blockIdx.x * cuda.blockDim.x + thread // cuda.blockDim.y
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        if beta == 0:
            C[row, col] = alpha * acc
        else:
            C[row, col] = alpha * acc + beta * C[row, col]


@wrong("coalesced", "at different steps of k")
@cuda.jit
def every_lane_starts_elsewhere(m, n, k, alpha, A, B, beta, C):
    col, row = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            q = (p + col) % k
            acc += A[row, q] * B[q, col]
        if beta == 0:
            C[row, col] = alpha * acc
        else:
            C[row, col] = alpha * acc + beta * C[row, col]


@wrong("coalesced", "in every step of the loop")
@cuda.jit
def sums_up_in_c(m, n, k, alpha, A, B, beta, C):
    col, row = cuda.grid(2)
    if row < m and col < n:
        if beta == 0:
            C[row, col] = float32(0)
        else:
            C[row, col] = beta * C[row, col]
        for p in range(k):
            C[row, col] += alpha * A[row, p] * B[p, col]


@wrong("coalesced", "0 times NaN")
@cuda.jit
def reads_c_always(m, n, k, alpha, A, B, beta, C):
    col, row = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        C[row, col] = alpha * acc + beta * C[row, col]


@wrong("coalesced", "alpha")
@cuda.jit
def alpha_forgotten(m, n, k, alpha, A, B, beta, C):
    col, row = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        if beta == 0:
            C[row, col] = acc
        else:
            C[row, col] = acc + beta * C[row, col]


@wrong("coalesced", "`B` is loaded more often than needed")
@cuda.jit
def loads_b_twice(m, n, k, alpha, A, B, beta, C):
    col, row = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            if B[p, col] != float32(0):
                acc += A[row, p] * B[p, col]
        if beta == 0:
            C[row, col] = alpha * acc
        else:
            C[row, col] = alpha * acc + beta * C[row, col]


# ---- 02.2 ------------------------------------------------------------------------------------------------


@wrong("documentation_matmul", "both faults")
@cuda.jit
def as_in_the_manual(A, B, C):
    i, j = cuda.grid(2)
    if i < C.shape[0] and j < C.shape[1]:
        tmp = 0.0
        for p in range(A.shape[1]):
            tmp += A[i, p] * B[p, j]
        C[i, j] = tmp


@wrong("documentation_matmul", "`tmp = 0.0` makes a float64")
@cuda.jit
def only_the_sectors_mended(A, B, C):
    j, i = cuda.grid(2)
    if i < C.shape[0] and j < C.shape[1]:
        tmp = 0.0
        for p in range(A.shape[1]):
            tmp += A[i, p] * B[p, j]
        C[i, j] = tmp


@wrong("documentation_matmul", "no float64 is left")
@cuda.jit
def only_the_float64_mended(A, B, C):
    i, j = cuda.grid(2)
    if i < C.shape[0] and j < C.shape[1]:
        tmp = float32(0)
        for p in range(A.shape[1]):
            tmp += A[i, p] * B[p, j]
        C[i, j] = tmp


@wrong("documentation_matmul", "`tmp = 0` makes an integer")
@cuda.jit
def starts_with_a_whole_number(A, B, C):
    j, i = cuda.grid(2)
    if i < C.shape[0] and j < C.shape[1]:
        tmp = 0
        for p in range(A.shape[1]):
            tmp += A[i, p] * B[p, j]
        C[i, j] = tmp


@wrong("documentation_matmul", "only at the end")
@cuda.jit
def cast_at_the_end(A, B, C):
    j, i = cuda.grid(2)
    if i < C.shape[0] and j < C.shape[1]:
        tmp = 0.0
        for p in range(A.shape[1]):
            tmp += A[i, p] * B[p, j]
        C[i, j] = float32(tmp)


@wrong("documentation_matmul", "A[p, i]")
@cuda.jit
def subscripts_of_a_exchanged(A, B, C):
    j, i = cuda.grid(2)
    if i < C.shape[0] and j < C.shape[1]:
        tmp = float32(0)
        for p in range(A.shape[1]):
            tmp += A[p, i] * B[p, j]
        C[i, j] = tmp


@wrong("documentation_matmul", "transposed")
@cuda.jit
def output_transposed(A, B, C):
    j, i = cuda.grid(2)
    if i < C.shape[0] and j < C.shape[1]:
        tmp = float32(0)
        for p in range(A.shape[1]):
            tmp += A[i, p] * B[p, j]
        C[j, i] = tmp


@wrong("documentation_matmul", "guard")
@cuda.jit
def guard_not_moved_along(A, B, C):
    j, i = cuda.grid(2)
    if j < C.shape[0] and i < C.shape[1]:
        tmp = float32(0)
        for p in range(A.shape[1]):
            tmp += A[i, p] * B[p, j]
        C[i, j] = tmp


@wrong("documentation_matmul", "loop")
@cuda.jit
def loop_over_the_rows_of_a(A, B, C):
    j, i = cuda.grid(2)
    if i < C.shape[0] and j < C.shape[1]:
        tmp = float32(0)
        for p in range(A.shape[0]):
            tmp += A[i, p] * B[p, j]
        C[i, j] = tmp


# ---- 02.3 ------------------------------------------------------------------------------------------------

WRONG["best_block"] = {
    "one_row_a_warp": ((32, 8), "one whole row of 32: A 1 + B 4 = 5"),
    "four_rows_a_warp": ((8, 32), "4 rows of 8, and a row of 8 is one sector of B: A 4 + B 1 = 5"),
    "all_in_a_row": ((256, 1), "each is still one row of 32"),
    "eight_rows_a_warp": ((4, 64), "A 8 + B 1 = 9"),
    "one_column": ((1, 256), "A 32 + B 1 = 33"),
    "the_default_of_the_ladder": ((32, 32), "1,024"),
    "half_of_it": ((16, 8), "128"),
    "one_number": (256, "two numbers"),
    "no_whole_shape": ((25.6, 10), "whole"),
}


# ---- 02.4 ------------------------------------------------------------------------------------------------


@wrong("leading_dimension", "334")
def next_even_number(B):
    rows, columns = B.shape
    wide = np.zeros((rows, columns + columns % 2), np.float32)
    wide[:, :columns] = B
    return wide


@wrong("leading_dimension", "does not keep the padding")
def slice_copied(B):
    rows, columns = B.shape
    wide = np.zeros((rows, -(-columns // 8) * 8), np.float32)
    wide[:, :columns] = B
    return wide[:, :columns].copy()


@wrong("leading_dimension", "view")
def slice_returned(B):
    rows, columns = B.shape
    wide = np.zeros((rows, -(-columns // 8) * 8), np.float32)
    wide[:, :columns] = B
    return wide[:, :columns]


@wrong("leading_dimension", "336, whatever")
def always_336(B):
    rows, columns = B.shape
    wide = np.zeros((rows, 336), np.float32)
    wide[:, :columns] = B
    return wide


@wrong("leading_dimension", "rounded down")
def rounded_down(B):
    _, columns = B.shape
    return B[:, : columns // 8 * 8].copy()


@wrong("leading_dimension", "as it came")
def unchanged(B):
    return B


@wrong("leading_dimension", "already")
def eight_more_for_multiples(B):
    rows, columns = B.shape
    wide = np.zeros((rows, columns + 8 - columns % 8), np.float32)
    wide[:, :columns] = B
    return wide


@wrong("leading_dimension", "float64")
def double_precision(B):
    rows, columns = B.shape
    wide = np.zeros((rows, -(-columns // 8) * 8))
    wide[:, :columns] = B
    return wide


@wrong("leading_dimension", "reshape")
def reshaped(B):
    rows, columns = B.shape
    return np.resize(B, (rows, -(-columns // 8) * 8))


@wrong("leading_dimension", "rows of zeros")
def rows_padded(B):
    rows, columns = B.shape
    wide = np.zeros((-(-rows // 8) * 8, columns), np.float32)
    wide[:rows] = B
    return wide


@wrong("leading_dimension", "wider than necessary")
def a_line_of_128_floats(B):
    rows, columns = B.shape
    wide = np.zeros((rows, -(-columns // 128) * 128), np.float32)
    wide[:, :columns] = B
    return wide
