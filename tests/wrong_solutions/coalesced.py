"""Wrong answers that people really give to the exercises of `coalesced`."""

from tests.wrong_solutions.altering import altered, passing

WRONG = {}

# ---- coalesced ---------------------------------------------------------------------------------------------

INDICES = "col, row = cuda.grid(2)"
GUARD = "if row < m and col < n:"
SUM = "acc += A[row, p] * B[p, col]"
LOOP = f"for p in range(k):\n            {SUM}"
STORE = """if beta == 0:
            C[row, col] = alpha * acc
        else:
            C[row, col] = alpha * acc + beta * C[row, col]"""
ROWS_FIRST = """thread = cuda.threadIdx.y * cuda.blockDim.x + cuda.threadIdx.x
    row = cuda.blockIdx.y * cuda.blockDim.y + thread % cuda.blockDim.y
    col = cuda.blockIdx.x * cuda.blockDim.x + thread // cuda.blockDim.y"""
BLOCKS_DOWN = """row = cuda.blockIdx.x * cuda.blockDim.y + cuda.threadIdx.y
    col = cuda.blockIdx.y * cuda.blockDim.x + cuda.threadIdx.x"""
COURSE_LINES = """row = cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.y
    col = cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.x"""
WIDE_ROWS = """row = cuda.blockIdx.y * 32 + cuda.threadIdx.y
    col = cuda.blockIdx.x * 32 + cuda.threadIdx.x"""
SIZES_AS_NUMBERS = """row = cuda.blockIdx.y * 8 + cuda.threadIdx.y
    col = cuda.blockIdx.x * 32 + cuda.threadIdx.x"""
LISTED_COL = "col = cuda.blockIdx.y * BN + cuda.threadIdx.x"
FOUR_BY_EIGHT = """row = cuda.blockIdx.y * 8 + cuda.threadIdx.y // 4 * 4 + cuda.threadIdx.x // 8
    col = cuda.blockIdx.x * 32 + cuda.threadIdx.y % 4 * 8 + cuda.threadIdx.x % 8"""
ADDED_IN_C = "for p in range(k):\n            C[row, col] += alpha * A[row, p] * B[p, col]"
SCALED = "C[row, col] = float32(0) if beta == 0 else beta * C[row, col]"

WRONG["coalesced"] = altered(
    "coalesced",
    {
        "v00_unchanged": ("x still counts rows", (INDICES, "row, col = cuda.grid(2)")),
        "names_and_subscripts_exchanged": (
            "swapped twice",
            (GUARD, "if col < m and row < n:"),
            ("A[row, p] * B[p, col]", "A[col, p] * B[p, row]"),
            ("C[row, col]", "C[col, row]"),
        ),
        "guard_left_behind": ("guard has its sizes swapped", (GUARD, "if col < m and row < n:")),
        "subscripts_exchanged_and_the_guard_left_behind": (
            "Your `row` comes from x",
            (INDICES, "row, col = cuda.grid(2)"),
            ("A[row, p] * B[p, col]", "A[col, p] * B[p, row]"),
            ("C[row, col] = alpha * acc\n", "C[col, row] = alpha * acc\n"),
            (
                "C[row, col] = alpha * acc + beta * C[row, col]",
                "C[col, row] = alpha * acc + beta * C[col, row]",
            ),
        ),
        "no_guard_of_columns": ("Only the rows are guarded", (" and col < n", "")),
        "blocks_still_down_the_rows": ("`blockIdx.x` still counts blocks of rows", (INDICES, BLOCKS_DOWN)),
        "threads_turned_and_block_sizes_not": ("the grid is not: within", (INDICES, COURSE_LINES)),
        "sizes_of_the_block_as_numbers": ("wrong in other blocks", (INDICES, SIZES_AS_NUMBERS)),
        "rows_apart_by_the_blocks_width": ("lie at wrong distances", (INDICES, WIDE_ROWS)),
        "listing_of_the_course": (
            "a size of the block in the course's listing",
            (INDICES, "row = cuda.blockIdx.x * BM + cuda.threadIdx.y\n    " + LISTED_COL),
        ),
        "lines_of_the_course": (
            "`from lockstep.intrinsics import u32`",
            ("@cuda.jit", "del u32  # notebook 02 does not import it\n\n\n@cuda.jit"),
            (INDICES, BLOCKS_DOWN.replace("cuda.blockIdx.x", "u32(cuda.blockIdx.x)")),
        ),
        "reads_b_transposed": ("`B`'s indices are swapped", ("B[p, col]", "B[col, p]")),
        "reads_a_transposed": ("`A`'s indices are swapped", ("A[row, p]", "A[p, row]")),
        "stores_c_transposed": ("the subscripts of `C` are swapped", ("C[row, col]", "C[col, row]")),
        "rows_first_within_the_block": ("next row", (INDICES, ROWS_FIRST)),
        "every_lane_starts_elsewhere": (
            "at different steps of k",
            (SUM, "q = (p + col) % k\n            acc += A[row, q] * B[q, col]"),
        ),
        "sums_up_in_c": ("in every step of the loop", (LOOP, SCALED), (STORE, ADDED_IN_C)),
        "reads_c_before_the_test": (
            "`C` is read although `beta` is 0",
            ("acc = float32(0)", "acc = float32(0)\n        old = C[row, col]"),
            ("beta * C[row, col]", "beta * old"),
        ),
        "clears_c_first": (
            "each element of C is stored twice",
            ("if beta == 0:", "if beta == 0:\n            C[row, col] = 0"),
        ),
        "cases_of_beta_exchanged": ("The two cases of `beta` are exchanged", ("beta == 0", "beta != 0")),
        "loop_along_m": ("The loop ends at `m`", ("range(k)", "range(m)")),
        "warps_of_4_by_8": ("a warp has 4 rows of C", (INDICES, FOUR_BY_EIGHT)),
        "reads_c_always": ("0 times NaN", ("if beta == 0:", "if False:")),
        "alpha_forgotten": ("alpha", ("alpha * acc", "acc")),
        "float64": ("`acc = 0.0` makes a float64", ("acc = float32(0)", "acc = 0.0")),
        "whole_number": ("`acc = 0` makes an integer", ("acc = float32(0)", "acc = 0")),
        "float64_where_beta_is_not_0": ("literal `1.0` is float64", ("+ beta * C", "+ 1.0 * beta * C")),
        "loads_b_twice": (
            "`B` is loaded more often than needed",
            (SUM, f"if B[p, col] != float32(0):\n                {SUM}"),
        ),
    },
)

# ---- partial_sums ------------------------------------------------------------------------------------------

PLACE = "row, lane = cuda.blockIdx.x, cuda.threadIdx.x"
ZERO = "acc = float32(0)"
WALK = "range(lane, A.shape[1], 32)"
ADD = "acc += A[row, col]"
STORE = "out[row, lane] = acc"
LOOP = f"for col in {WALK}:"
CHUNKS = """chunk = (A.shape[1] + 31) // 32
    for col in range(lane * chunk, min((lane + 1) * chunk, A.shape[1])):"""
FOURS = """for four in range(4 * lane, A.shape[1], 128):
      for col in range(four, min(four + 4, A.shape[1])):"""
PASSES = """for i in range((A.shape[1] + 31) // 32):
        col = lane + 32 * i"""
LONE_LANE = f"""if lane == 0:
        for col in range(A.shape[1]):
            {ADD}"""
ROW_PER_THREAD = """row, lane = cuda.grid(1), cuda.threadIdx.x
    if row >= A.shape[0]:
        return"""


def stepping(step: str) -> tuple[str, str]:
    """The change to another step between a lane's columns."""
    return WALK, f"range(lane, A.shape[1], {step})"


WRONG["partial_sums"] = altered(
    "partial_sums",
    {
        "chunk_for_each_lane": ("This is CPU order", (LOOP, CHUNKS)),
        "lanes_take_turns": (
            "each of them most lanes load nothing",
            (LOOP, "for col in range(A.shape[1]):\n      if col % 32 == lane:"),
        ),
        "four_neighbours_for_each_lane": ("must read neighbours", (LOOP, FOURS)),
        "steps_by_the_whole_launch": ("steps by all threads of the launch", stepping("cuda.gridsize(1)")),
        "begins_where_the_launch_counts": (
            "as `cuda.grid(1)` counts",
            (WALK, "range(cuda.grid(1), A.shape[1], cuda.gridsize(1))"),
        ),
        "begins_at_column_1": (
            "Column 0 of each row is never read",
            (WALK, "range(lane + 1, A.shape[1], 32)"),
        ),
        "stored_in_the_loop": ("is stored inside the loop", (f"    {STORE}", f"        {STORE}")),
        "row_of_the_grid": (
            "the row is `cuda.blockIdx.x`",
            (PLACE, "row, lane = cuda.grid(1), cuda.threadIdx.x"),
        ),
        "steps_by_the_rows": ("else elements are left out", stepping("A.shape[0]")),
        "steps_by_16": ("else elements are added twice", stepping("16")),
        "steps_by_1": ("which its neighbour has as well", stepping("cuda.blockDim.y")),
        "no_loop": ("32 are all that the warp adds", (f"{LOOP}\n        {ADD}", "acc += A[row, lane]")),
        "warp_down_a_column": (
            "The warp lies along a column",
            (WALK, "range(lane, A.shape[0], 32)"),
            ("A[row, col]", "A[col, row]"),
        ),
        "row_for_each_thread": (
            "each thread has a row of its own",
            (PLACE, ROW_PER_THREAD),
            (WALK, "range(A.shape[1])"),
        ),
        "always_the_first_row": ("reads row 0 of A", (PLACE, "row, lane = 0, cuda.threadIdx.x")),
        "stores_transposed": ("The subscripts of `out` are swapped", (STORE, "out[lane, row] = acc")),
        "one_lane_adds": ("One lane adds the whole row", (f"{LOOP}\n        {ADD}", LONE_LANE)),
        "every_lane_adds_all": ("Every lane adds the whole row", (WALK, "range(A.shape[1])")),
        "no_guard": ("The last pass is not guarded", (LOOP, PASSES)),
        "one_column_too_many": (
            "one column too many",
            (LOOP, PASSES),
            (ADD, f"if col <= A.shape[1]:\n            {ADD}"),
        ),
        "rounded_down": ("`//` rounds down", (LOOP, PASSES.replace("(A.shape[1] + 31)", "A.shape[1]"))),
        "width_is_the_height": ("The width is `A.shape[1]`", (WALK, "range(lane, A.shape[0], 32)")),
        "overwrites_the_sum": ("Only a lane's last element", (ADD, "acc = A[row, col]")),
        "lanes_behind_the_end_store_nothing": (
            "Lanes without elements store nothing",
            (STORE, f"if lane < A.shape[1]:\n        {STORE}"),
        ),
        "only_lane_0_stores": ("Only lane 0 stores", (STORE, f"if lane == 0:\n        {STORE}")),
        "adds_to_out": ("what was in `out` before", (STORE, "out[row, lane] += acc")),
        "sums_up_in_out": (
            "kept in `out` itself",
            (ZERO, "out[row, lane] = 0"),
            (f"    {STORE}\n", ""),
            (ADD, "out[row, lane] += A[row, col]"),
        ),
        "stores_in_each_pass": ("a lane stores more than once", (ADD, f"{ADD}\n        {STORE}")),
        "loads_twice": ("are loaded", (ADD, f"if A[row, col] != 0:\n            {ADD}")),
        "float64": ("`acc = 0.0` makes a float64", (ZERO, "acc = 0.0")),
        "first_element_or_a_bare_zero": (
            "The `0.0` beside the `if ... else` is float64",
            (ZERO, "acc = A[row, lane] if lane < A.shape[1] else 0.0"),
            (WALK, "range(lane + 32, A.shape[1], 32)"),
        ),
        "cast_at_the_end": ("only at the end", (ZERO, "acc = 0.0"), (STORE, "out[row, lane] = float32(acc)")),
        "starts_with_1": ("Does each lane start with 0?", (ZERO, "acc = float32(1)")),
        "last_column_left_out": ("The last column is left out", (WALK, "range(lane, A.shape[1] - 1, 32)")),
        "lanes_along_y": (
            "All lanes store the same element",
            (PLACE, PLACE.replace("threadIdx.x", "threadIdx.y")),
        ),
        "all_into_row_0": ("All blocks store into row 0", (STORE, "out[0, lane] = acc")),
        "whole_numbers": ("numbers are wrong", (ADD, "acc += int32(A[row, col])")),
    },
)

# ---- best_block --------------------------------------------------------------------------------------------

WRONG["best_block"] = passing(
    "best_block",
    {
        "one_row_a_warp": ("one whole row of 32: A 1 + B 4 = 5", "(32, 8)"),
        "four_rows_a_warp": ("4 rows of 8, and a row of 8 is one sector of B: A 4 + B 1 = 5", "(8, 32)"),
        "two_columns_a_warp": ("In (2, 128), 128 × 2 of C, a warp is 16 rows of 2", "(2, 128)"),
        "all_in_a_row": ("each is still one row of 32", "(256, 1)"),
        "eight_rows_a_warp": ("A 8 + B 1 = 9", "(4, 64)"),
        "one_column": ("A 32 + B 1 = 33", "(1, 256)"),
        "the_default_of_the_ladder": ("1,024", "(32, 32)"),
        "half_of_it": ("128", "(16, 8)"),
        "one_number": ("two numbers", "256"),
        "no_whole_shape": ("whole", "(25.6, 10)"),
    },
)
