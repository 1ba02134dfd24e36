"""Wrong answers that people really give to the exercises of `welcome`."""

from tests.wrong_solutions.altering import altered, returning

WRONG = {}

# ---- where -------------------------------------------------------------------------------------------------

PLACE = "by * dy + ty, bx * dx + tx"
LANES = "linear // 32, linear % 32"
LINEAR = "ty * dx + tx"

WRONG["where"] = altered(
    "where",
    {
        "row_from_x": ("Row and column are swapped", (PLACE, "bx * dx + tx, by * dy + ty")),
        "place_in_the_block_only": ("The block is forgotten", (PLACE, "ty, tx")),
        "sizes_exchanged": ("The block's sizes are swapped", (PLACE, "by * dx + ty, bx * dy + tx")),
        "blocks_exchanged": ("`bx` and `by` are swapped", (PLACE, "bx * dy + ty, by * dx + tx")),
        "blocks_taken_for_elements": ("counts blocks, not elements", (PLACE, "by + ty, bx + tx")),
        "lane_is_x_within_32": ("The lane is not `tx % 32`", (LANES, "linear // 32, tx % 32")),
        "ids_from_one": ("The ids start at 0", (LINEAR, f"{LINEAR} + 1")),
        "lane_is_x": ("The lane is not `tx`. A block's threads", (LANES, "linear // 32, tx")),
        "warp_is_y": ("the warp is not `ty`", (LANES, "ty, tx")),
        "linear_down_the_columns": ("numbered down the columns", (LINEAR, "tx * dy + ty")),
        "stride_of_the_wrong_axis": ("`ty * dy + tx`", (LINEAR, "ty * dy + tx")),
        "warp_and_lane_exchanged": ("Warp and lane are swapped", (LANES, "linear % 32, linear // 32")),
        "warps_of_the_grid": ("over the whole grid", (LINEAR, "bx * dx * dy + ty * dx + tx")),
        "warps_of_the_matrix": (
            "from the row and column in the matrix",
            (LINEAR, "(by * dy + ty) * dx + bx * dx + tx"),
        ),
        "warps_of_the_column": ("from the column in the matrix alone", (LINEAR, "bx * dx + tx")),
        "rows_of_32": (
            "A warp is taken for 32 rows",
            (LANES, "(by * dy + ty) // 32, (bx * dx + tx) % 32"),
        ),
        "warps_of_one_row": ("The rows of the block are left out", (LINEAR, "tx")),
        "row_and_column_only": ("must be four numbers", (f", {LANES}", "")),
        "prints_only": ("Did you forget `return`?", (f"return {PLACE}, {LANES}", f"print({PLACE}, {LANES})")),
        "a_slip_of_the_pen": ("NameError", (LANES, "lin // 32, lin % 32")),
    },
)

# ---- blocks_for --------------------------------------------------------------------------------------------

WRONG["blocks_for"] = returning(
    "blocks_for",
    {
        "floor": ("Rounded down", "n // threads"),
        "floor_and_one": ("One block too many", "n // threads + 1"),
        "floor_and_the_rest": ("how many elements are left over", "n // threads + n % threads"),
        "ceil_of_numpy": ("such as `np.ceil`", "__import__('numpy').ceil(n / threads)"),
        "true_division": ("a float", "(n + threads - 1) / threads"),
        "exchanged": ("arguments are swapped", "(threads + n - 1) // n"),
        "rounded": ("nearest number", "round(n / threads)"),
        "brackets_missing": ("comes before `+`", "n + threads - 1 // threads"),
        "threads_instead_of_blocks": ("how many threads are launched", "-(-n // threads) * threads"),
        "blocks_of_128": ("128 stands in the formula", "(n + 127) // 128"),
        "at_least_one": ("n = 0", "max(1, -(-n // threads))"),
        "floor_at_least_one": ("1 at least: that helps only", "max(1, n // threads)"),
        "warps": ("32 stands in the formula", "(n + 31) // 32"),
        "as_text": ("must be a whole number; this is", 'f"{-(-n // threads)} blocks"'),
    },
) | altered(
    "blocks_for",
    {"one_argument_only": ("must take (n, threads)", ("(n, threads)", "(n)"), ("threads", "128"))},
)

# ---- sector_and_line ---------------------------------------------------------------------------------------

ADDRESS = "i * A.strides[0] + j * A.strides[1]"
RETURNED = "address // 32, address // 128"

WRONG["sector_and_line"] = altered(
    "sector_and_line",
    {
        "elements_with_strides": (
            "This counts elements, but sectors and lines are 32 and 128 *bytes*. How many",
            (ADDRESS, f"({ADDRESS}) // A.itemsize"),
        ),
        "elements_with_the_shape": ("the row's length comes from the shape", (ADDRESS, "i * A.shape[1] + j")),
        "bytes_and_elements": ("`A.strides[0]` is in bytes, `j` is not", (" * A.strides[1]", "")),
        "rows_for_the_leading_dimension": (
            "number of rows",
            (ADDRESS, "(i * A.shape[0] + j) * A.itemsize"),
        ),
        "width_of_the_slice": ("wrong for slices", (ADDRESS, "(i * A.shape[1] + j) * A.itemsize")),
        "four_bytes_an_element": (
            "does not always take 4 bytes",
            (ADDRESS, "(i * (A.strides[0] // A.itemsize) + j) * 4"),
        ),
        "elements_of_four_bytes": (
            "Nor has every element 4",
            (ADDRESS, "i * A.strides[0] // 4 + j"),
        ),
        "four_lines_a_sector": (
            "fewer lines than sectors",
            (RETURNED, "address // 32, address // 32 * 4"),
        ),
        "four_bytes_along_the_row": ("Along the row", ("j * A.strides[1]", "j * 4")),
        "four_bytes_and_no_gap": ("Two things are assumed", (ADDRESS, "4 * (i * A.shape[1] + j)")),
        "size_of_an_element": ("taken for neighbours in memory", ("j * A.strides[1]", "j * A.itemsize")),
        "strides_times_four": ("nothing is multiplied by 4", (RETURNED, "address // 8, address // 32")),
        "strides_times_the_size": (
            "nothing is multiplied by `A.itemsize`",
            (ADDRESS, f"({ADDRESS}) * A.itemsize"),
        ),
        "sector_and_the_rest": (
            "the place of the first byte within its sector",
            (RETURNED, "divmod(address, 32)"),
        ),
        "line_divided_twice": (
            "The line is divided twice",
            (RETURNED, "address // 32, address // 32 // 128"),
        ),
        "from_where_memory_begins": ("from where memory begins", (ADDRESS, f"A.ctypes.data + {ADDRESS}")),
        "half_a_line": ("A line has 128 bytes", (RETURNED, "address // 32, address // 64")),
        "elements_16_a_row": ("of one array, and this counts elements", (ADDRESS, "i * 16 + j")),
        "bytes_16_a_row": ("16 and the 4 bytes", (ADDRESS, "(i * 16 + j) * 4")),
        "sizes_16_a_row": ("16 is that of one array. `A", (ADDRESS, "(i * 16 + j) * A.itemsize")),
        "remainders": ("*within* the sector", (RETURNED, "address % 32, address % 128")),
        "sector_of_the_line": ("within its line", (RETURNED, "address % 128 // 32, address // 128")),
        "remainder_for_the_sector": ("Which sector: `// 32`", (RETURNED, "address % 32, address // 128")),
        "floats_for_the_sector": (
            "how many floats a sector holds. The",
            (RETURNED, "address // 8, address // 128"),
        ),
        "sector_divided_twice": (
            "divided by 32 and then by 8",
            (RETURNED, "address // 32 // 8, address // 128"),
        ),
        "elements_for_the_sector": (
            "For the sector, elements",
            (RETURNED, "address // A.itemsize // 32, address // 128"),
        ),
        "remainder_for_the_line": ("Which line: `// 128`", (RETURNED, "address // 32, address % 128")),
        "eight_sectors_a_line": ("this takes eight", (RETURNED, "address // 32, address // 32 // 8")),
        "place_in_the_line": ("place within its line", (RETURNED, "address // 32, address // 32 % 4")),
        "sector_for_the_line": ("A line has 128 bytes.", (RETURNED, "address // 32, address // 32")),
        "elements_for_the_line": (
            "For the line, elements",
            (RETURNED, "address // 32, address // A.itemsize // 128"),
        ),
        "line_first": ("Sector and line are swapped", (RETURNED, "address // 128, address // 32")),
        "column_by_column": (
            "`i` and `j` are swapped",
            (ADDRESS, "j * A.strides[0] + i * A.strides[1]"),
        ),
        "true_divisions": ("a float", (RETURNED, "address / 32, address / 128")),
        "no_column": ("`j` has no effect", (ADDRESS, "i * A.strides[0]")),
        "elements_of_the_row": (
            "take both distances",
            (ADDRESS, "i * (A.strides[0] // A.itemsize) + j"),
        ),
    },
)

# ---- vector_add --------------------------------------------------------------------------------------------

INDEX = "i = cuda.grid(1)"
GUARD = "if i < out.size:"
STORE = "out[i] = a[i] + b[i]"

WRONG["vector_add"] = altered(
    "vector_add",
    {
        "no_guard": ("There is no guard", (GUARD, "if True:")),
        "less_or_equal": ("not `<=`", ("i <", "i <=")),
        "a_loop_in_every_thread": (
            "Every thread goes through all",
            (INDEX, "pass"),
            (GUARD, "for i in range(out.size):"),
        ),
        "threads_of_one_block": ("starts at 0 again in each block", (INDEX, "i = cuda.threadIdx.x")),
        "blocks_alone": ("All threads of a block store the same element", (INDEX, "i = cuda.blockIdx.x")),
        "blocks_32_apart": (
            "each begins 32 elements after",
            (INDEX, "i = cuda.blockIdx.x * 32 + cuda.threadIdx.x"),
        ),
        "blocks_a_grid_apart": (
            "each begins 8 elements after",
            (INDEX, "i = cuda.blockIdx.x * cuda.gridDim.x + cuda.threadIdx.x"),
        ),
        "gaps": ("gaps between the blocks", (INDEX, "i = cuda.blockIdx.x * 256 + cuda.threadIdx.x")),
        "guard_after_the_loads": (
            "The guard comes too late",
            (INDEX, "i = cuda.grid(1); total = a[i] + b[i]"),
            (STORE, "out[i] = total"),
        ),
        "chosen_value": (
            "chooses a value, but stops nobody",
            (GUARD, "if True:"),
            (STORE, STORE + " if i < out.size else float32(0)"),
        ),
        "loads_alone_guarded": (
            "The loads are guarded, the store is not",
            (INDEX, "i = cuda.grid(1); total = float32(0)"),
            (STORE, "total = a[i] + b[i]\n    out[i] = total"),
        ),
        "cut_off_at_the_end": (
            "do its last element once more",
            (INDEX, "i = min(cuda.grid(1), out.size - 1)"),
        ),
        "one_thread_for_all": (
            "one thread does all of it; the others watch",
            (INDEX, "pass"),
            (GUARD, "for i in range(out.size * (cuda.grid(1) == 0)):"),
        ),
        "two_by_every_thread": (
            "threads do all of it; the others watch",
            (INDEX, "first = 2 * cuda.grid(1)"),
            (GUARD, "for i in range(first, min(first + 2, out.size)):"),
        ),
        "only_128_pass": ("Only the first 128 elements are stored: the guard", (GUARD, "if i < 128:")),
        "guard_of_one_length": ("Your guard, `i < 1000`, lets surplus", (GUARD, "if i < 1000:")),
        "guard_of_the_launch": ("Your guard, `i < cuda.gridsize(1)`", (GUARD, "if i < cuda.gridsize(1):")),
        "guard_of_the_block": ("Your guard, `cuda.threadIdx.x <", (GUARD, "if cuda.threadIdx.x < len(out):")),
        "begins_again": ("do the first elements once more", (INDEX, "i = cuda.grid(1) % out.size")),
        "size_without_a_name": ("An array knows its size", (GUARD, "if i < n:")),
        "not_called": ("this is a function", (INDEX, "i = cuda.grid")),
        "blocks_overlap": ("The blocks overlap", (INDEX, "i = cuda.blockIdx.x + cuda.threadIdx.x")),
        "factor_at_the_thread": (
            "the factor `blockDim.x` belongs to `blockIdx.x`",
            (INDEX, "i = cuda.threadIdx.x * cuda.blockDim.x + cuda.blockIdx.x"),
        ),
        "two_dimensional_index": ("The launch has one dimension", (INDEX, "_, i = cuda.grid(2)")),
        "two_dimensional_index_as_one": (
            "a vector takes one index",
            (INDEX, "i = cuda.grid(2)"),
            (GUARD, "if True:"),
        ),
        "writes_into_a": ("which is input", (STORE, "a[i] += b[i]; out[i] = a[i]")),
        "adds_to_the_old": ("what was in `out` before", (STORE, "out[i] += a[i] + b[i]")),
        "guard_too_strict": ("one too strict", (GUARD, "if i < out.size - 1:")),
        "subtracts": ("the difference", ("a[i] + b[i]", "a[i] - b[i]")),
        "only_computes": ("nothing is ever stored", ("out[i] =", "total =")),
        "as_in_numpy": (
            "a kernel computes with its elements",
            (INDEX, "out = a + b"),
            (GUARD, "if False:"),
            (STORE, "pass"),
        ),
        "sliced_as_in_numpy": ("`out[:]` is a slice", (STORE, "out[:] = a + b")),
        "not_decorated": ("plain Python function", ("@cuda.jit\n", "")),
        "a_loop_without_end": ("does not come to an end", ("if i", "while i")),
        "cleared_by_every_thread": ("`out[:] = ...` stores all of `out`", (INDEX, f"out[:] = 0; {INDEX}")),
        "index_0_for_all": ("each uses index 0", (INDEX, "i = 0")),
        "counted_from_one": ("`out[0]` is never stored", (INDEX, f"{INDEX} + 1")),
        "asserted": ("raises an error", (GUARD, "assert i < out.size\n    if True:")),
        "leaves_too_late": (
            "so `>=`, not `>`",
            (GUARD, "if i > out.size:\n        return\n    else:"),
        ),
        "size_called": ("without brackets", ("out.size", "out.size()")),
        "where_of_numpy": ("`np.where` is NumPy's way", (STORE, "out[i] = np.where(True, a[i] + b[i], 0)")),
        "sum_of_a_list": ("A kernel has no lists", (STORE, "out[i] = sum([a[i], b[i]])")),
        "array_for_a_sum": (
            "Keep the sum in a plain variable",
            (STORE, "acc = np.zeros(1); acc[0] = a[i] + b[i]; out[i] = acc[0]"),
        ),
        "renames_out": ("only gives the name `out`", ("out[i] =", "out =")),
        "another_array": ("`a`, `b`, `out`, and what it computes from them.", ("b[i]", "c[i]")),
        "for_the_cpu": ("is compiled for the CPU", ("@cuda.jit", "@__import__('numba').njit")),
        "in_float64": ("operations are in float64", (STORE, "out[i] = 1.0 * a[i] + b[i]")),
    },
)

# ---- broadcast_add -----------------------------------------------------------------------------------------

INDEX = "x, y = cuda.grid(2)"
GUARD = "x < out.shape[1] and y < out.shape[0]"
STORE = "out[y, x] = down[y] + across[x]"

WRONG["broadcast_add"] = altered(
    "broadcast_add",
    {
        "a_thread_for_each_row": (
            "and the loop does what the second number would",
            (INDEX, "i = cuda.grid(1)"),
            (
                f"if {GUARD}:\n        {STORE}",
                "if i < len(down):\n        for j in range(len(across)):\n"
                "            out[i, j] = down[i] + across[j]",
            ),
        ),
        "x_counts_rows": ("x and y are swapped", (INDEX, "y, x = cuda.grid(2)")),
        "guard_exchanged": (
            "The guard's sizes are swapped",
            (GUARD, "x < out.shape[0] and y < out.shape[1]"),
        ),
        "stored_at_x_y": ("The indices of `out` are swapped", ("out[y, x]", "out[x, y]")),
        "all_at_x_y": ("of all three arrays are swapped", (STORE, "out[x, y] = down[x] + across[y]")),
        "either_is_enough": ("`or` in the guard", (" and ", " or ")),
        "leaves_only_if_both": (
            "One is enough to leave: `or`",
            (GUARD, "x >= out.shape[1] and y >= out.shape[0]:\n        return\n    if True"),
        ),
        "leaves_too_late": (
            "`>=`, not `>`",
            (GUARD, "x > out.shape[1] or y > out.shape[0]:\n        return\n    if True"),
        ),
        "others_store_a_zero": (
            "The `else` is for the surplus threads",
            (STORE, STORE + "\n    else:\n        out[y, x] = 0"),
        ),
        "only_rows_guarded": ("Only the rows are guarded", (GUARD, "y < out.shape[0]")),
        "only_columns_guarded": ("Only the columns are guarded", (GUARD, "x < out.shape[1]")),
        "unguarded": ("There is no guard", (GUARD, "True")),
        "one_too_many": ("`<`, not `<=`", ("<", "<=")),
        "local_index": ("Only one block's worth", (INDEX, "x, y = cuda.threadIdx.x, cuda.threadIdx.y")),
        "vectors_exchanged": (
            "`down` and `across` are swapped",
            ("down[y] + across[x]", "down[x] + across[y]"),
        ),
        "one_index_for_both": (
            "Only the diagonal",
            (INDEX, "x = y = cuda.grid(1)"),
            (GUARD, "y < out.shape[0]"),
        ),
        "loops_over_everything": (
            "Every thread goes through all",
            (INDEX, "pass"),
            (f"if {GUARD}:", "for y in range(out.shape[0]):"),
            (STORE, "for x in range(out.shape[1]):\n            " + STORE),
        ),
        "loops_over_rows": (
            "A loop goes over the rows",
            (f"if {GUARD}:", "for y in range(out.shape[0] * (x < out.shape[1])):"),
        ),
        "loops_over_columns": (
            "A loop goes over the columns",
            (f"if {GUARD}:", "for x in range(out.shape[1] * (y < out.shape[0])):"),
        ),
        "counted_along_x": (
            "counts along x alone",
            (INDEX, "i = cuda.grid(1)"),
            (GUARD, "i < out.size"),
            (STORE, "y, x = i // out.shape[1], i % out.shape[1]\n        " + STORE),
        ),
        "cut_off_at_the_edge": (
            "once more",
            (INDEX, "x, y = cuda.grid(2); x, y = min(x, out.shape[1] - 1), min(y, out.shape[0] - 1)"),
        ),
        "one_thread_for_all": (
            "one thread does all of it; the others watch",
            (INDEX, "x, y = cuda.grid(2); first = x == 0 and y == 0"),
            (f"if {GUARD}:", "for y in range(out.shape[0] * first):"),
            (STORE, "for x in range(out.shape[1]):\n            " + STORE),
        ),
        "one_thread_for_a_row": (
            "20 threads do all of it; the others watch",
            (INDEX, "x, y = cuda.grid(2); first = x == 0 and y < out.shape[0]"),
            (f"if {GUARD}:", "for x in range(out.shape[1] * first):"),
        ),
        "begins_again": (
            "do the first rows or columns once more",
            (INDEX, "x, y = cuda.grid(2); x, y = x % out.shape[1], y % out.shape[0]"),
        ),
        "guard_of_all_elements": ("Your guard, `x < out.size and", (GUARD, "x < out.size and y < out.size")),
        "both_by_the_rows": (
            "both compared with the number of rows",
            (GUARD, "x < len(out) and y < len(out)"),
        ),
        "one_row_too_many": ("one row too many", (GUARD, "x < out.shape[1] and y <= out.shape[0]")),
        "one_column_too_many": ("one column too many", (GUARD, "x <= out.shape[1] and y < out.shape[0]")),
        "one_too_strict": (
            "row and the last column are never",
            (GUARD, "x < out.shape[1] - 1 and y < out.shape[0] - 1"),
        ),
        "rows_too_strict": ("The last row is never", (GUARD, "x < out.shape[1] and y < out.shape[0] - 1")),
        "width_for_the_height": (
            "`blockDim.x` belongs to `blockIdx.x`",
            (INDEX, "x = cuda.grid(1); y = cuda.blockIdx.y * cuda.blockDim.x + cuda.threadIdx.y"),
        ),
        "whole_rows": (
            "`out[j]` is a whole row",
            (INDEX, "j = cuda.grid(1)"),
            (GUARD, "j < len(out)"),
            (STORE, "out[j] = down[j] + across[j]"),
        ),
        "sizes_without_names": ("An array knows its size", (GUARD, "x < n and y < m")),
        "bits_for_words": ("`&` binds tighter", (GUARD, "x < out.shape[1] & y < out.shape[0]")),
        "guard_of_the_product": ("Threads pass your guard, `x * y", (GUARD, "x * y < out.size")),
        "in_float64": ("operations are in float64", ("= down[y]", "= 1.0 * down[y]")),
        "outer_product": ("This is the product", ("] + ", "] * ")),
        "adds_to_the_old": ("what was in `out` before", ("] = ", "] += ")),
        "as_in_numpy": (
            "`down[:, None]` is a slice",
            (STORE, "out = down[:, None] + across[None, :]"),
        ),
        "both_indices_as_one": (
            "`cuda.grid(2)` returns two numbers, x and y",
            (INDEX, "i = cuda.grid(2)"),
            (GUARD, "i < out.size"),
            (STORE, "out[i] = down[i] + across[i]"),
        ),
    },
)

# ---- roof --------------------------------------------------------------------------------------------------

WRONG["roof"] = returning(
    "roof",
    {
        "dram_alone": ("returns DRAM's limit alone", "4.8 * flop / bytes"),
        "arithmetic_alone": ("returns 67 for every kernel", "min(67, 4.8e12 * flop / bytes)"),
        "intensity": ("That is the arithmetic intensity", "flop / bytes"),
        "intensity_below_the_peak": ("The intensity itself is compared with 67", "min(67, flop / bytes)"),
        "the_higher_one": ("The higher of the two", "max(67, 4.8 * flop / bytes)"),
        "bytes_per_flop": ("upside down", "min(67, 4.8 * bytes / flop)"),
        "speeds_exchanged": ("The other way round", "min(4.8, 67 * flop / bytes)"),
        "divided_by_the_speed": ("divided by 4.8", "min(67, flop / bytes / 4.8)"),
        "floats_for_bytes": ("counted as floats", "min(67, 4.8 * flop / (4 * bytes))"),
        "per_float": ("multiplied by 4, for the bytes", "min(67, 4.8 * flop / (bytes / 4))"),
        "flop_per_second": ("These are FLOP per second", "min(67e12, 4.8e12 * flop / bytes)"),
        "share": ("That is the share", "min(67, 4.8 * flop / bytes) / 67"),
        "percent": ("in percent", "min(67, 4.8 * flop / bytes) / 67 * 100"),
        "rounded_ridge": ("the roofs meet at", "67 if flop / bytes > 14 else 4.8 * flop / bytes"),
        "slope_of_the_ridge": ("Only DRAM's limit is here, and its factor", "67 * (flop / bytes) / 14"),
        "slope_of_the_ridge_below_the_peak": ("The slope is 67 / 14", "min(67, 67 * flop / bytes / 14)"),
        "whole_intensity": ("`//` rounds the intensity down", "min(67, 4.8 * (flop // bytes))"),
        "both_times": ("The two times are added", "flop / (flop / 67 + bytes / 4.8)"),
        "in_words": ("must be a number", '"67 TFLOPS"'),
    },
)
