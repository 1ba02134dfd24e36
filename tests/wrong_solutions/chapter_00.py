"""Answers to the exercises of notebook 00 that people really give, and that must be refused."""

import math

from numba import cuda
from tests.wrong_solutions.collect import collector

WRONG, wrong = collector(
    "where", "blocks_for", "idle_lanes", "sector_and_line", "vector_add", "broadcast_add"
)

# ---- 00.1 ------------------------------------------------------------------------------------------------


@wrong("where", "Row and column are exchanged")
def row_from_x(block, thread, block_dim):
    (bx, by), (tx, ty), (dx, dy) = block, thread, block_dim
    linear = ty * dx + tx
    return bx * dx + tx, by * dy + ty, linear // 32, linear % 32


@wrong("where", "The block is forgotten")
def place_in_the_block_only(block, thread, block_dim):
    (tx, ty), (dx, _) = thread, block_dim
    linear = ty * dx + tx
    return ty, tx, linear // 32, linear % 32


@wrong("where", "The block's sizes are exchanged")
def sizes_exchanged(block, thread, block_dim):
    (bx, by), (tx, ty), (dx, dy) = block, thread, block_dim
    linear = ty * dx + tx
    return by * dx + ty, bx * dy + tx, linear // 32, linear % 32


@wrong("where", "`bx` and `by` are exchanged")
def blocks_exchanged(block, thread, block_dim):
    (bx, by), (tx, ty), (dx, dy) = block, thread, block_dim
    linear = ty * dx + tx
    return bx * dy + ty, by * dx + tx, linear // 32, linear % 32


@wrong("where", "counts blocks, not elements")
def blocks_taken_for_elements(block, thread, block_dim):
    (bx, by), (tx, ty), (dx, _) = block, thread, block_dim
    linear = ty * dx + tx
    return by + ty, bx + tx, linear // 32, linear % 32


@wrong("where", "The lane is not `tx`. A block's threads")
def lane_is_x(block, thread, block_dim):
    (bx, by), (tx, ty), (dx, dy) = block, thread, block_dim
    return by * dy + ty, bx * dx + tx, (ty * dx + tx) // 32, tx


@wrong("where", "the warp is not `ty`")
def warp_is_y(block, thread, block_dim):
    (bx, by), (tx, ty), (dx, dy) = block, thread, block_dim
    return by * dy + ty, bx * dx + tx, ty, tx


@wrong("where", "numbered down the columns")
def linear_down_the_columns(block, thread, block_dim):
    (bx, by), (tx, ty), (dx, dy) = block, thread, block_dim
    linear = tx * dy + ty
    return by * dy + ty, bx * dx + tx, linear // 32, linear % 32


@wrong("where", "`ty * dy + tx`")
def stride_of_the_wrong_axis(block, thread, block_dim):
    (bx, by), (tx, ty), (dx, dy) = block, thread, block_dim
    linear = ty * dy + tx
    return by * dy + ty, bx * dx + tx, linear // 32, linear % 32


@wrong("where", "Warp and lane are exchanged")
def warp_and_lane_exchanged(block, thread, block_dim):
    (bx, by), (tx, ty), (dx, dy) = block, thread, block_dim
    linear = ty * dx + tx
    return by * dy + ty, bx * dx + tx, linear % 32, linear // 32


@wrong("where", "over the whole grid")
def warps_of_the_grid(block, thread, block_dim):
    (bx, by), (tx, ty), (dx, dy) = block, thread, block_dim
    linear = bx * dx * dy + ty * dx + tx
    return by * dy + ty, bx * dx + tx, linear // 32, linear % 32


@wrong("where", "from the row and column in the matrix")
def warps_of_the_matrix(block, thread, block_dim):
    (bx, by), (tx, ty), (dx, dy) = block, thread, block_dim
    row, col = by * dy + ty, bx * dx + tx
    return row, col, (row * dx + col) // 32, (row * dx + col) % 32


@wrong("where", "Four numbers are wanted")
def row_and_column_only(block, thread, block_dim):
    (bx, by), (tx, ty), (dx, dy) = block, thread, block_dim
    return by * dy + ty, bx * dx + tx


@wrong("where", "NameError")
def a_slip_of_the_pen(block, thread, block_dim):
    (bx, by), (tx, ty), (dx, dy) = block, thread, block_dim
    return by * dy + ty, bx * dx + tx, lin // 32, lin % 32  # noqa: F821


# ---- 00.2 ------------------------------------------------------------------------------------------------


@wrong("blocks_for", "Rounded down")
def floor(n, threads):
    return n // threads


@wrong("blocks_for", "One block too many")
def floor_and_one(n, threads):
    return n // threads + 1


@wrong("blocks_for", "a float")
def true_division(n, threads):
    return (n + threads - 1) / threads


@wrong("blocks_for", "arguments are exchanged")
def exchanged(n, threads):
    return (threads + n - 1) // n


@wrong("blocks_for", "nearest number")
def rounded(n, threads):
    return round(n / threads)


@wrong("blocks_for", "how many threads are launched")
def threads_instead_of_blocks(n, threads):
    return math.ceil(n / threads) * threads


@wrong("blocks_for", "n = 0")
def at_least_one(n, threads):
    return max(1, math.ceil(n / threads))


@wrong("blocks_for", "is to be a whole number; this is")
def as_text(n, threads):
    return f"{math.ceil(n / threads)} blocks"


@wrong("blocks_for", "is to take (n, threads)")
def one_argument_only(n):
    return (n + 127) // 128


# ---- 00.3 ------------------------------------------------------------------------------------------------

WRONG["idle_lanes"] = {
    "all_busy": (0, "do not share warps"),
    "the_busy_ones": (4, "how many lanes are busy"),
    "of_128": (124, "not 128"),
    "blocks_that_would_fit": (7, "Count lanes, not blocks"),
    "all_blocks_that_would_fit": (8, "8 is how many blocks"),
    "the_whole_warp": (32, "If all 32"),
    "a_share": (0.875, "Not that number"),
    "in_words": ("twenty-eight", "A number is wanted"),
}

# ---- 00.4 ------------------------------------------------------------------------------------------------


@wrong("sector_and_line", "This counts elements, but sectors and lines are 32 and 128 *bytes*. How many")
def elements_with_strides(i, j, A):
    element = (i * A.strides[0] + j * A.strides[1]) // A.itemsize
    return element // 32, element // 128


@wrong("sector_and_line", "the row's length comes from the shape")
def elements_with_the_shape(i, j, A):
    element = i * A.shape[1] + j
    return element // 32, element // 128


@wrong("sector_and_line", "number of rows")
def rows_for_the_leading_dimension(i, j, A):
    address = (i * A.shape[0] + j) * A.itemsize
    return address // 32, address // 128


@wrong("sector_and_line", "wrong for slices")
def width_of_the_slice(i, j, A):
    address = (i * A.shape[1] + j) * A.itemsize
    return address // 32, address // 128


@wrong("sector_and_line", "does not always take 4 bytes")
def four_bytes_an_element(i, j, A):
    leading = A.strides[0] // A.itemsize
    return (i * leading + j) // 8, (i * leading + j) // 32


@wrong("sector_and_line", "Along the row")
def four_bytes_along_the_row(i, j, A):
    address = i * A.strides[0] + 4 * j
    return address // 32, address // 128


@wrong("sector_and_line", "Two things are taken for granted")
def four_bytes_and_no_gap(i, j, A):
    address = 4 * (i * A.shape[1] + j)
    return address // 32, address // 128


@wrong("sector_and_line", "within its line")
def sector_of_the_line(i, j, A):
    address = i * A.strides[0] + j * A.strides[1]
    return address % 128 // 32, address // 128


@wrong("sector_and_line", "Sector and line are exchanged")
def line_first(i, j, A):
    address = i * A.strides[0] + j * A.strides[1]
    return address // 128, address // 32


@wrong("sector_and_line", "`i` and `j` are exchanged")
def column_by_column(i, j, A):
    address = j * A.strides[0] + i * A.strides[1]
    return address // 32, address // 128


@wrong("sector_and_line", "a float")
def true_divisions(i, j, A):
    address = i * A.strides[0] + j * A.strides[1]
    return address / 32, address / 128


# ---- 00.5 ------------------------------------------------------------------------------------------------


@wrong("vector_add", "There is no guard")
@cuda.jit
def no_guard(a, b, out):
    i = cuda.grid(1)
    out[i] = a[i] + b[i]


@wrong("vector_add", "not `<=`")
@cuda.jit
def less_or_equal(a, b, out):
    i = cuda.grid(1)
    if i <= out.size:
        out[i] = a[i] + b[i]


@wrong("vector_add", "Every thread goes through the whole vector")
@cuda.jit
def a_loop_in_every_thread(a, b, out):
    for i in range(out.size):
        out[i] = a[i] + b[i]


@wrong("vector_add", "starts at 0 again in each block")
@cuda.jit
def threads_of_one_block(a, b, out):
    i = cuda.threadIdx.x
    if i < out.size:
        out[i] = a[i] + b[i]


@wrong("vector_add", "The launch has one dimension")
@cuda.jit
def two_dimensional_index(a, b, out):
    _, i = cuda.grid(2)
    if i < out.size:
        out[i] = a[i] + b[i]


@wrong("vector_add", "A vector takes one index")
@cuda.jit
def two_dimensional_index_as_one(a, b, out):
    i = cuda.grid(2)
    out[i] = a[i] + b[i]


@wrong("vector_add", "which is input")
@cuda.jit
def writes_into_a(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        a[i] += b[i]
        out[i] = a[i]


@wrong("vector_add", "what was in `out` before")
@cuda.jit
def adds_to_the_old(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] += a[i] + b[i]


@wrong("vector_add", "one too strict")
@cuda.jit
def guard_too_strict(a, b, out):
    i = cuda.grid(1)
    if i < out.size - 1:
        out[i] = a[i] + b[i]


@wrong("vector_add", "the difference")
@cuda.jit
def subtracts(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] - b[i]


@wrong("vector_add", "nothing is ever stored")
@cuda.jit
def only_computes(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        total = a[i] + b[i]  # noqa: F841


@wrong("vector_add", "a kernel computes with its elements")
@cuda.jit
def as_in_numpy(a, b, out):
    out = a + b  # noqa: F841


@wrong("vector_add", "plain Python function")
def not_decorated(a, b, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a[i] + b[i]


@wrong("vector_add", "does not come to an end")
@cuda.jit
def a_loop_without_end(a, b, out):
    i = cuda.grid(1)
    while i < out.size:
        out[i] = a[i] + b[i]


# ---- 00.6 ------------------------------------------------------------------------------------------------


@wrong("broadcast_add", "x and y are exchanged")
@cuda.jit
def x_counts_rows(column, row, out):
    i, j = cuda.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j] = column[i] + row[j]


@wrong("broadcast_add", "The guard is exchanged")
@cuda.jit
def guard_exchanged(column, row, out):
    x, y = cuda.grid(2)
    if x < out.shape[0] and y < out.shape[1]:
        out[y, x] = column[y] + row[x]


@wrong("broadcast_add", "`or` in the guard")
@cuda.jit
def either_is_enough(column, row, out):
    x, y = cuda.grid(2)
    if x < out.shape[1] or y < out.shape[0]:
        out[y, x] = column[y] + row[x]


@wrong("broadcast_add", "Only the rows are guarded")
@cuda.jit
def only_rows_guarded(column, row, out):
    x, y = cuda.grid(2)
    if y < out.shape[0]:
        out[y, x] = column[y] + row[x]


@wrong("broadcast_add", "Only the columns are guarded")
@cuda.jit
def only_columns_guarded(column, row, out):
    x, y = cuda.grid(2)
    if x < out.shape[1]:
        out[y, x] = column[y] + row[x]


@wrong("broadcast_add", "There is no guard")
@cuda.jit
def unguarded(column, row, out):
    x, y = cuda.grid(2)
    out[y, x] = column[y] + row[x]


@wrong("broadcast_add", "`<`, not `<=`")
@cuda.jit
def one_too_many(column, row, out):
    x, y = cuda.grid(2)
    if x <= out.shape[1] and y <= out.shape[0]:
        out[y, x] = column[y] + row[x]


@wrong("broadcast_add", "Only one block's worth")
@cuda.jit
def local_index(column, row, out):
    x, y = cuda.threadIdx.x, cuda.threadIdx.y
    if x < out.shape[1] and y < out.shape[0]:
        out[y, x] = column[y] + row[x]


@wrong("broadcast_add", "`column` and `row` are exchanged")
@cuda.jit
def vectors_exchanged(column, row, out):
    x, y = cuda.grid(2)
    if x < out.shape[1] and y < out.shape[0]:
        out[y, x] = column[x] + row[y]


@wrong("broadcast_add", "Only the diagonal")
@cuda.jit
def one_index_for_both(column, row, out):
    i = cuda.grid(1)
    if i < out.shape[0]:
        out[i, i] = column[i] + row[i]


@wrong("broadcast_add", "Every thread fills the whole matrix")
@cuda.jit
def loops_over_everything(column, row, out):
    for i in range(out.shape[0]):
        for j in range(out.shape[1]):
            out[i, j] = column[i] + row[j]


@wrong("broadcast_add", "This is the product")
@cuda.jit
def outer_product(column, row, out):
    x, y = cuda.grid(2)
    if x < out.shape[1] and y < out.shape[0]:
        out[y, x] = column[y] * row[x]
