"""The checkers of `coalesced` on other right answers, on half-written ones and on odd ones."""

import numpy as np
import pytest
from numba import cuda, float32

from gemm_course import check
from gemm_course.checks.notebooks.coalesced.best_block import BLOCK_THREADS, sectors_of_a_block
from tests.wrong_solutions.altering import altered


@cuda.jit
def returns_outside(rows, columns, depth, alpha, left, right, beta, out):
    i = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y
    j = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x
    if i >= rows or j >= columns:
        return
    total = float32(0)
    step = 0
    while step < depth:
        total += left[i, step] * right[step, j]
        step += 1
    out[i, j] = alpha * total if beta == 0 else alpha * total + beta * out[i, j]


@cuda.jit
def indices_only(m, n, k, alpha, A, B, beta, C):
    col, row = cuda.grid(2)  # noqa: RUF059
    acc = float32(0)  # noqa: F841


@cuda.jit
def keeps_everybody_out(m, n, k, alpha, A, B, beta, C):
    col, row = cuda.grid(2)
    if row > m and col > n:
        C[row, col] = alpha


def test_a_kernel_in_other_words_passes_with_its_counts():
    verdict = check.coalesced(returns_outside)
    assert verdict.passed, str(verdict)
    assert "1 sector of A and 4 of B" in verdict.message and "33" in verdict.message


@pytest.mark.parametrize("kernel", [None, ..., indices_only], ids=["None", "dots", "indices_only"])
def test_what_is_not_written_yet_is_not_yet(kernel):
    assert check.coalesced(kernel).message.startswith("Not yet")


def test_a_guard_that_keeps_everybody_out_is_no_stub():
    verdict = check.coalesced(keeps_everybody_out)
    assert not verdict.passed and "guard" in verdict.message


def test_a_refusal_says_where():
    @cuda.jit
    def first_row_only(m, n, k, alpha, A, B, beta, C):
        col, row = cuda.grid(2)
        if row < 1 and col < n:
            acc = float32(0)
            for p in range(k):
                acc += A[row, p] * B[p, col]
            C[row, col] = alpha * acc

    where = check.coalesced(first_row_only).where
    assert "`C[1, 0]` (row 1, column 0)" in where and "thread (0, 1) of block (0, 0)" in where


@pytest.mark.parametrize("x", [2**i for i in range(9)])
def test_a_block_takes_the_sectors_that_its_warps_patch_has(x):
    columns = min(x, 32)
    rows = 32 // columns
    assert sectors_of_a_block(x, BLOCK_THREADS // x) == (rows, -(-columns // 8))


@pytest.mark.parametrize("shape", [[16, 16], (np.int64(16), 16), (16, 16, 1), np.array([16, 16])])
def test_the_best_block_may_be_written_in_other_ways(shape):
    assert check.best_block(shape).passed


@pytest.mark.parametrize("shape", [(0, 256), (-16, -16), "16x16", (16,), {"x": 16}, True])
def test_what_is_no_block_shape_is_refused_in_words(shape):
    verdict = check.best_block(shape)
    assert not verdict.passed and not verdict.message.startswith("Not yet")


# ---- partial_sums: which lane takes which element is the learner's choice ----------------------------------


@cuda.jit
def sums_by_grid(matrix, shares):
    row, lane = divmod(cuda.grid(1), 32)
    total = matrix.dtype.type(0)
    col = lane
    while col < matrix.shape[1]:
        total = total + matrix[row, col]
        col += cuda.blockDim.x
    shares[row, lane] = total


@cuda.jit
def sums_from_the_right(A, out):
    row, lane = cuda.blockIdx.x, cuda.laneid
    acc = float32(0)
    for col in range(A.shape[1] - 1 - lane, -1, -32):
        acc += A[row, col]
    out[row, lane] = acc


@cuda.jit
def sums_with_lanes_reversed(A, out):
    row, lane = cuda.blockIdx.x, 31 - cuda.threadIdx.x
    acc = np.float32(0)
    for first in range(0, A.shape[1], 32):
        if first + lane < A.shape[1]:
            acc += A[row, first + lane]
    out[row, cuda.threadIdx.x] = acc


@cuda.jit
def sums_with_a_choice(A, out):
    b, t = cuda.blockIdx.x, cuda.threadIdx.x
    acc = float32(0)
    for p in range(-(-A.shape[1] // 32)):
        acc += A[b, 32 * p + t] if 32 * p + t < A.shape[1] else float32(0)
    out[b, t] = acc


@cuda.jit
def sums_of_whole_sectors(A, out):
    """The first pass ends where a sector ends, whatever the row's place, so that all others take four."""
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    acc = float32(0)
    for col in range(lane - row * A.shape[1] % 8, A.shape[1], 32):
        if col >= 0:
            acc += A[row, col]
    out[row, lane] = acc


@cuda.jit
def sums_of_two_accumulators(A, out):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    even, odd = float32(0), float32(0)
    for col in range(lane, A.shape[1], 64):
        even += A[row, col]
        if col + 32 < A.shape[1]:
            odd += A[row, col + 32]
    out[row, lane] = even + odd


@cuda.jit
def sums_that_end_early(A, out):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    if lane >= A.shape[1]:
        out[row, lane] = float32(0)
        return
    acc = A[row, lane]
    for col in range(lane + 32, A.shape[1], 32):
        acc += A[row, col]
    out[row, lane] = acc


@cuda.jit
def sums_of_the_last_pass_first(A, out):
    row, lane = cuda.blockIdx.x, cuda.threadIdx.x
    acc = float32(0)
    for t in range((A.shape[1] - lane + 31) // 32 - 1, -1, -1):
        acc += A[row, lane + 32 * t]
    out[row, lane] = acc


ROW_SUMS = (
    sums_of_the_last_pass_first,
    sums_by_grid,
    sums_from_the_right,
    sums_with_lanes_reversed,
    sums_with_a_choice,
    sums_of_whole_sectors,
    sums_of_two_accumulators,
    sums_that_end_early,
)


@pytest.mark.parametrize("kernel", ROW_SUMS, ids=lambda kernel: kernel.py_func.__name__)
def test_a_row_may_be_shared_out_in_other_ways(kernel):
    verdict = check.partial_sums(kernel)
    assert verdict.passed, str(verdict)


def test_row_sums_pass_with_the_sectors_that_rows_allow():
    """Rows of 333 floats begin at each of a sector's 8 places; one in 8 of their full requests takes 4."""
    said = check.partial_sums(sums_with_a_choice).message
    assert "takes 4 sectors where rows are 1024 floats long, and 4.6 where they are 333" in said


@pytest.mark.parametrize(
    "chunk, cost",
    [
        ("A.shape[1] // 32", "32 sectors in place of 4, and L1 takes 32 clocks in place of 1"),
        ("8", "32 sectors in place of 4, and L1 takes 8 clocks in place of 1"),
    ],
)
def test_a_chunk_for_each_lane_costs_clocks_of_l1(chunk, cost):
    named = ("acc = float32(0)", f"acc = float32(0)\n    chunk = {chunk}")
    walk = ("range(lane, A.shape[1], 32)", "range(lane * chunk, lane * chunk + chunk)")
    verdict = altered("partial_sums", {"chunks": ("CPU order", named, walk)})["chunks"].verdict()
    assert "CPU order" in verdict.message and cost in verdict.message
    assert "Lane 1 of block 1 reads the columns" in verdict.where


INDICES = "col, row = cuda.grid(2)"
SIZES_EXCHANGED = """row = cuda.blockIdx.y * cuda.blockDim.x + cuda.threadIdx.y
    col = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.x"""
TWO_BY_SIXTEEN = """row = cuda.blockIdx.y * 8 + cuda.threadIdx.y // 2 * 2 + cuda.threadIdx.x // 16
    col = cuda.blockIdx.x * 32 + cuda.threadIdx.y % 2 * 16 + cuda.threadIdx.x % 16"""
SCALED_FIRST = """C[row, col] = float32(0) if beta == 0 else beta * C[row, col]
        C[row, col] += alpha * acc
        if False:"""
OTHER_WAYS = {  # to a mistake that a wrong solution makes already
    "coalesced": {
        "sizes_of_the_block_exchanged": ("lie at wrong distances", (INDICES, SIZES_EXCHANGED)),
        "warps_of_2_by_16": ("a warp has 2 rows of C", (INDICES, TWO_BY_SIXTEEN)),
        "scales_c_first": (
            "`C` is read although `beta` is 0",
            ("if beta == 0:\n            C[row, col] = alpha * acc\n        else:", SCALED_FIRST),
        ),
    },
    "partial_sums": {
        "row_and_lane_by_the_grid": (
            "the first subscript is `cuda.blockIdx.x`",
            ("row, lane = cuda.blockIdx.x, cuda.threadIdx.x", "row, lane = cuda.grid(2)"),
        ),
        "lanes_take_turns_by_an_offset": (
            "most lanes load nothing",
            ("range(lane, A.shape[1], 32):", "range(1, A.shape[1] + 1):\n      if col % 32 == lane:"),
            ("A[row, col]", "A[row, col - 1]"),
        ),
    },
}


@pytest.mark.parametrize("exercise", OTHER_WAYS)
def test_the_same_mistakes_made_in_another_way_are_named_as_well(exercise, subtests):
    for name, wrong in altered(exercise, OTHER_WAYS[exercise]).items():
        with subtests.test(name):
            verdict = wrong.verdict()
            assert not verdict.passed and wrong.words in verdict.message
