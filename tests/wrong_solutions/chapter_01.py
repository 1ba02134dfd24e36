"""Answers to the exercises of notebook 01 that people really give, and that must be refused."""

import numpy as np
from numba import cuda, float32, float64
from tests.wrong_solutions.collect import collector

WRONG, wrong = collector("naive", "naive_loads", "naive_sectors", "no_float64")

# ---- 01.1 ------------------------------------------------------------------------------------------------


@wrong("naive", "`or` in the guard")
@cuda.jit
def either_is_enough(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m or col < n:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        if beta == 0:
            C[row, col] = alpha * acc
        else:
            C[row, col] = alpha * acc + beta * C[row, col]


@wrong("naive", "There is no guard")
@cuda.jit
def no_guard(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    acc = float32(0)
    for p in range(k):
        acc += A[row, p] * B[p, col]
    if beta == 0:
        C[row, col] = alpha * acc
    else:
        C[row, col] = alpha * acc + beta * C[row, col]


@wrong("naive", "The guard has its sizes exchanged")
@cuda.jit
def sizes_exchanged_in_the_guard(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < n and col < m:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        if beta == 0:
            C[row, col] = alpha * acc
        else:
            C[row, col] = alpha * acc + beta * C[row, col]


@wrong("naive", "`<=` where `<` is meant")
@cuda.jit
def guard_one_too_far(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row <= m and col <= n:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        if beta == 0:
            C[row, col] = alpha * acc
        else:
            C[row, col] = alpha * acc + beta * C[row, col]


@wrong("naive", "Only the rows are guarded")
@cuda.jit
def only_rows_guarded(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        if beta == 0:
            C[row, col] = alpha * acc
        else:
            C[row, col] = alpha * acc + beta * C[row, col]


@wrong("naive", "Does something add into `C`")
@cuda.jit
def adds_into_c(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        for p in range(k):
            C[row, col] += alpha * A[row, p] * B[p, col]


@wrong("naive", "times for")
@cuda.jit
def right_sum_in_memory(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        if beta == 0:
            C[row, col] = 0
        else:
            C[row, col] = beta * C[row, col]
        for p in range(k):
            C[row, col] += alpha * A[row, p] * B[p, col]


@wrong("naive", "`alpha` is applied twice")
@cuda.jit
def alpha_twice(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            acc += alpha * A[row, p] * B[p, col]
        if beta == 0:
            C[row, col] = alpha * acc
        else:
            C[row, col] = alpha * acc + beta * C[row, col]


@wrong("naive", "0 times NaN is NaN")
@cuda.jit
def reads_c_always(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        C[row, col] = alpha * acc + beta * C[row, col]


@wrong("naive", "nothing is done with what was loaded")
@cuda.jit
def reads_c_in_vain(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        old = C[row, col]
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        C[row, col] = alpha * acc + beta * old if beta != 0 else alpha * acc


@wrong("naive", "x runs over the rows")
@cuda.jit
def row_from_y(m, n, k, alpha, A, B, beta, C):
    col, row = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        if beta == 0:
            C[row, col] = alpha * acc
        else:
            C[row, col] = alpha * acc + beta * C[row, col]


@wrong("naive", "not from `.shape`")
@cuda.jit
def sizes_from_the_shape(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < C.shape[0] and col < C.shape[1]:
        acc = float32(0)
        for p in range(A.shape[1]):
            acc += A[row, p] * B[p, col]
        if beta == 0:
            C[row, col] = alpha * acc
        else:
            C[row, col] = alpha * acc + beta * C[row, col]


@wrong("naive", "`alpha` is missing")
@cuda.jit
def no_alpha(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        if beta == 0:
            C[row, col] = acc
        else:
            C[row, col] = acc + beta * C[row, col]


@wrong("naive", "`beta * C` is missing")
@cuda.jit
def no_beta(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        C[row, col] = alpha * acc


@wrong("naive", "`alpha` multiplies everything")
@cuda.jit
def alpha_times_everything(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0) if beta == 0 else beta * C[row, col]
        for p in range(k):
            acc += A[row, p] * B[p, col]
        C[row, col] = alpha * acc


@wrong("naive", "Only the last product")
@cuda.jit
def overwrites_the_sum(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            acc = A[row, p] * B[p, col]
        if beta == 0:
            C[row, col] = alpha * acc
        else:
            C[row, col] = alpha * acc + beta * C[row, col]


@wrong("naive", "`B`'s indices are exchanged")
@cuda.jit
def b_transposed(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[col, p]
        if beta == 0:
            C[row, col] = alpha * acc
        else:
            C[row, col] = alpha * acc + beta * C[row, col]


@wrong("naive", "With k = 0")
@cuda.jit
def stores_inside_the_loop(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
            if p == k - 1:
                C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc


@wrong("naive", "is loaded")
@cuda.jit
def loads_a_twice(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            if A[row, p] != 0:
                acc += A[row, p] * B[p, col]
        if beta == 0:
            C[row, col] = alpha * acc
        else:
            C[row, col] = alpha * acc + beta * C[row, col]


@wrong("naive", "is to take (m, n, k, alpha, A, B, beta, C)")
@cuda.jit
def other_arguments(A, B, C):
    row, col = cuda.grid(2)
    if row < C.shape[0] and col < C.shape[1]:
        acc = float32(0)
        for p in range(A.shape[1]):
            acc += A[row, p] * B[p, col]
        C[row, col] = acc


@wrong("naive", "one step too far")
@cuda.jit
def one_step_too_many(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0)
        for p in range(k + 1):
            acc += A[row, p] * B[p, col]
        if beta == 0:
            C[row, col] = alpha * acc
        else:
            C[row, col] = alpha * acc + beta * C[row, col]


@wrong("naive", "get past the guard")
@cuda.jit
def guard_the_wrong_way_round(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row > m and col > n:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        C[row, col] = alpha * acc


@wrong("naive", "the name j is not defined")
@cuda.jit
def a_slip_of_the_pen(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, j]  # noqa: F821
        C[row, col] = alpha * acc


# ---- 01.2 ------------------------------------------------------------------------------------------------


@wrong("naive_loads", "one thread loads")
def of_one_thread(m, n, k):
    return 2 * k


@wrong("naive_loads", "A alone")
def of_one_matrix(m, n, k):
    return m * n * k


@wrong("naive_loads", "counts C in")
def c_counted_in(m, n, k):
    return 2 * m * n * k + m * n


@wrong("naive_loads", "Those are bytes")
def in_bytes(m, n, k):
    return 8 * m * n * k


@wrong("naive_loads", "threads do not share")
def each_element_once(m, n, k):
    return m * k + k * n


@wrong("naive_loads", "The loop has k steps")
def one_step(m, n, k):
    return 2 * m * n


@wrong("naive_loads", "warps' requests")
def requests(m, n, k):
    return 2 * m * n * k // 32


@wrong("naive_loads", "a float")
def one_half_of_the_flop(m, n, k):
    return 4 * m * n * k / 2


# ---- 01.3 ------------------------------------------------------------------------------------------------

WRONG["naive_sectors"] = {
    "no_broadcast": ({"A": 32, "B": 32, "C": 32}, "how often is its sector moved"),
    "as_if_coalesced": ({"A": 4, "B": 4, "C": 4}, "*side by side*"),
    "bytes": ({"A": 128, "B": 4, "C": 128}, "Those are bytes"),
    "exchanged": ({"A": 1, "B": 32, "C": 32}, "A and B are exchanged"),
    "one_each": ({"A": 1, "B": 1, "C": 1}, "1 is right for B only"),
    "floats_of_a_sector": ({"A": 8, "B": 1, "C": 8}, "number of floats"),
    "a_wrong": ({"A": 4, "B": 1, "C": 32}, "A is not right"),
    "b_wrong": ({"A": 32, "B": 4, "C": 32}, "B is not right"),
    "c_wrong": ({"A": 32, "B": 1, "C": 4}, "C is not right"),
    "two_wrong": ({"A": 4, "B": 1, "C": 4}, "A and C are not right"),
    "as_text": ({"A": "32", "B": "1", "C": "32"}, "whole number"),
}

# ---- 01.4 ------------------------------------------------------------------------------------------------


@wrong("no_float64", "a literal with a point")
@cuda.jit
def as_it_was(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        acc = 0.0
        for p in range(k):
            acc += A[row, p] * B[p, col]
        C[row, col] = 1.0 * alpha * acc + beta * C[row, col] if beta != 0 else 1.0 * alpha * acc


@wrong("no_float64", "makes an integer")
@cuda.jit
def an_integer_zero(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        acc = 0
        for p in range(k):
            acc += A[row, p] * B[p, col]
        C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc


@wrong("no_float64", "only at the end")
@cuda.jit
def cast_at_the_end(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        acc = 0.0
        for p in range(k):
            acc += A[row, p] * B[p, col]
        total = float32(acc)
        C[row, col] = alpha * total + beta * C[row, col] if beta != 0 else alpha * total


@wrong("no_float64", "The whole number `1`")
@cuda.jit
def an_integer_factor(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        C[row, col] = 1 * alpha * acc + beta * C[row, col] if beta != 0 else 1 * alpha * acc


@wrong("no_float64", "The literal `1.0`")
@cuda.jit
def one_of_the_two(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        C[row, col] = 1.0 * alpha * acc + beta * C[row, col] if beta != 0 else 1.0 * alpha * acc


@wrong("no_float64", "float64 by name")
@cuda.jit
def float64_by_name(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        acc = float64(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc


@wrong("no_float64", "float16 instead")
@cuda.jit
def half_precision(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        acc = np.float16(0)
        for p in range(k):
            acc += np.float16(A[row, p]) * np.float16(B[p, col])
        total = float32(acc)
        C[row, col] = alpha * total + beta * C[row, col] if beta != 0 else alpha * total


@wrong("no_float64", "`beta * C` is missing")
@cuda.jit
def shortened_too_far(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        acc = float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        C[row, col] = alpha * acc


@wrong("no_float64", "0 times NaN is NaN")
@cuda.jit
def shortened_too_far_as_well(m, n, k, alpha, A, B, beta, C):
    row, col = cuda.grid(2)
    if row < m and col < n:
        acc = np.float32(0)
        for p in range(k):
            acc += A[row, p] * B[p, col]
        C[row, col] = alpha * acc + beta * C[row, col]
