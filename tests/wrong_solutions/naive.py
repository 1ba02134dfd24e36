"""Wrong answers that people really give to the exercises of `naive`."""

from tests.wrong_solutions.altering import altered, passing

WRONG = {}

# ---- naive -------------------------------------------------------------------------------------------------

GUARD = "if row < m and col < n:"
LOOP = """for p in range(k):
            acc += A[row, p] * B[p, col]"""
STORE = """if beta == 0:
            C[row, col] = alpha * acc
        else:
            C[row, col] = alpha * acc + beta * C[row, col]"""
BODY = f"{GUARD}\n        acc = float32(0)\n        {LOOP}\n        {STORE}"
STORE_GUARDED = f"""acc = float32(0)
    for p in range(k):
        acc += A[row, p] * B[p, col]
    {GUARD}
        {STORE}"""
ROW_BY_ROW = """if row < m and col == 0:
        for j in range(n):
            acc = float32(0)
            for p in range(k):
                acc += A[row, p] * B[p, j]
            if beta == 0:
                C[row, j] = alpha * acc
            else:
                C[row, j] = alpha * acc + beta * C[row, j]"""
ADDED_IN_C = "for p in range(k):\n            C[row, col] += alpha * A[row, p] * B[p, col]"
SCALED = (
    "if beta == 0:\n            C[row, col] = 0\n        else:\n            C[row, col] = beta * C[row, col]"
)

WRONG["naive"] = altered(
    "naive",
    {
        "columns_within_a_block": (
            "within a block your x counts columns",
            (
                "row, col = cuda.grid(2)",
                "row = cuda.blockIdx.x * 32 + cuda.threadIdx.y\n"
                "    col = cuda.blockIdx.y * 32 + cuda.threadIdx.x",
            ),
        ),
        "either_is_enough": ("`or` in the guard", (" and ", " or ")),
        "no_guard": ("There is no guard", (GUARD, "if True:")),
        "sizes_exchanged_in_the_guard": (
            "The guard has its sizes swapped",
            (GUARD, "if row < n and col < m:"),
        ),
        "guard_one_too_far": ("`<=` where `<` is meant", (GUARD, "if row <= m and col <= n:")),
        "only_rows_guarded": ("Only the rows are guarded", (" and col < n", "")),
        "row_and_column_exchanged_in_the_sum": (
            "The result is transposed",
            ("A[row, p] * B[p, col]", "A[col, p] * B[p, row]"),
        ),
        "adds_into_c": ("Does something add into `C`", (LOOP, ADDED_IN_C), (STORE, "")),
        "right_sum_in_memory": ("times for", (LOOP, SCALED), (STORE, ADDED_IN_C)),
        "stores_beta_times_c_early": (
            "the first time too early",
            (LOOP, f"{SCALED}\n        {LOOP}"),
            (STORE, "C[row, col] += alpha * acc"),
        ),
        "no_alpha_where_beta_is_0": (
            "`alpha` is missing where `beta` is 0",
            (
                "beta == 0:\n            C[row, col] = alpha * acc",
                "beta == 0:\n            C[row, col] = acc",
            ),
        ),
        "a_slice_of_a_number": ("`acc += ...` if acc is one number", ("acc +=", "acc[:] +=")),
        "an_array_of_numpy": ("One sum is one number", ("acc = float32(0)", "acc = np.zeros(1)")),
        "a_product_of_numpy": ("write the loops", (LOOP, "acc += np.dot(A[row, :k], B[:k, col])")),
        "alpha_twice": ("`alpha` is applied twice", ("+= A", "+= alpha * A")),
        "reads_c_always": ("0 times NaN is NaN", ("if beta == 0:", "if False:")),
        "reads_c_in_vain": (
            "what was loaded is never used",
            (GUARD, f"{GUARD}\n        old = C[row, col]"),
            ("beta * C[row, col]", "beta * old"),
        ),
        "row_from_y": ("x runs over the rows", ("row, col = cuda.grid", "col, row = cuda.grid")),
        "sizes_from_the_shape": (
            "not from `.shape`",
            (GUARD, "if row < C.shape[0] and col < C.shape[1]:"),
            ("range(k)", "range(A.shape[1])"),
        ),
        "no_alpha": ("`alpha` is missing", ("alpha * acc", "acc")),
        "no_beta": ("`beta * C` is missing", (STORE, "C[row, col] = alpha * acc")),
        "old_c_without_beta": ("as it is, without `beta`", ("beta * C[row, col]", "C[row, col]")),
        "adds_for_multiplies": ("A and B are added", ("A[row, p] * B", "A[row, p] + B")),
        "neither": ("`alpha` and `beta * C` are both missing", (STORE, "C[row, col] = acc")),
        "alpha_times_everything": (
            "`alpha` multiplies everything",
            ("acc = float32(0)", "acc = float32(0) if beta == 0 else beta * C[row, col]"),
            (STORE, "C[row, col] = alpha * acc"),
        ),
        "overwrites_the_sum": ("Only the last product", ("acc +=", "acc =")),
        "b_transposed": ("`B`'s indices are swapped", ("B[p, col]", "B[col, p]")),
        "stores_inside_the_loop": (
            "With k = 0",
            (
                STORE,
                "    if p == k - 1:\n                C[row, col] = alpha * acc if beta == 0 else "
                "alpha * acc + beta * C[row, col]",
            ),
        ),
        "starts_with_the_first_product": (
            "With k = 0 there are no products",
            ("acc = float32(0)", "acc = A[row, 0] * B[0, col]"),
            ("range(k)", "range(1, k)"),
        ),
        "loads_a_twice": (
            "is loaded",
            ("            acc +=", "            if A[row, p] != 0:\n                acc +="),
        ),
        "other_arguments": (
            "must take (m, n, k, alpha, A, B, beta, C)",
            ("m, n, k, alpha, A, B, beta, C", "A, B, C"),
        ),
        "one_step_too_many": ("one step too far", ("range(k)", "range(k + 1)")),
        "tied_by_bits": ("Between two comparisons write `and`", (GUARD, "if row < m & col < n:")),
        "else_of_the_guard": (
            "The guard's `else` stores",
            (STORE, f"{STORE}\n    else:\n        C[row, col] = 0"),
        ),
        "positive_beta_only": (
            "a negative `beta` on the side of 0",
            (STORE, "C[row, col] = alpha * acc + beta * C[row, col] if beta > 0 else alpha * acc"),
        ),
        "beta_times_the_new_c": (
            "`beta` multiplies the new `C`",
            (
                STORE,
                "C[row, col] = alpha * acc\n        if beta != 0:\n            "
                "C[row, col] += beta * C[row, col]",
            ),
        ),
        "guard_the_wrong_way_round": ("pass the guard", ("<", ">")),
        "keeps_c_without_beta": (
            "keeps the old `C`",
            (STORE, "C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else C[row, col]"),
        ),
        "numbers_within_a_block": (
            "`blockIdx` is missing",
            ("cuda.grid(2)", "cuda.threadIdx.x, cuda.threadIdx.y"),
        ),
        "numbers_along_x_alone": (
            "counts along x alone",
            ("row, col = cuda.grid(2)", "i = cuda.grid(1)\n    row = i // n\n    col = i % n"),
        ),
        "loop_along_n": ("The loop ends at `n`", ("range(k)", "range(n)")),
        "loop_along_m": ("The loop ends at `m`", ("range(k)", "range(m)")),
        "stores_in_every_step": (
            "inside the loop, and each time `beta`",
            (LOOP, f"{LOOP}\n            C[row, col] = alpha * acc + (beta * C[row, col] if beta else 0)"),
            (STORE, "pass"),
        ),
        "beta_times_the_sum": ("in place of the old `C`", ("beta * C[row, col]", "beta * acc")),
        "last_row_left_out": ("keeps the last row out", ("row < m", "row < m - 1")),
        "last_column_left_out": ("keeps the last column out", ("col < n", "col < n - 1")),
        "last_of_both_left_out": (
            "the last row and the last column out",
            (GUARD, "if row < m - 1 and col < n - 1:"),
        ),
        "only_the_store_guarded": ("put the loop inside the guard", (BODY, STORE_GUARDED)),
        "a_generator": ("write a loop", (LOOP, "acc = sum(A[row, p] * B[p, col] for p in range(k))")),
        "a_thread_per_row": ("One thread, one element", (BODY, ROW_BY_ROW)),
        "all_of_c": ("overwrite all of `C`", (GUARD, f"C[:] = 0\n    {GUARD}")),
        "a_slip_of_the_pen": ("The name j is not defined", ("B[p, col]", "B[p, j]")),
    },
)

# ---- naive_sectors -----------------------------------------------------------------------------------------

WRONG["naive_sectors"] = passing(
    "naive_sectors",
    {
        "of_32_by_32_blocks": ("right for blocks of 32 × 32", "A=32, B=1, C=32"),
        "columns_apart": ("16 bytes", "A=8, B=4, C=8"),
        "c_lane_by_lane": ("share a sector", "A=8, B=1, C=32"),
        "b_lane_by_lane": ("only 4 columns", "A=8, B=32, C=8"),
        "as_if_coalesced": ("*side by side*", "A=4, B=4, C=4"),
        "bytes": ("Those are bytes", "A=256, B=16, C=256"),
        "exchanged": ("A and B are swapped", "A=1, B=8, C=8"),
        "one_each": ("1 is right for B only", "A=1, B=1, C=1"),
        "a_wrong": ("A is not right", "A=4, B=1, C=8"),
        "b_wrong": ("B is not right", "A=8, B=8, C=8"),
        "c_wrong": ("C is not right", "A=8, B=1, C=4"),
        "x_along_columns": ("has x along the columns", "A=4, B=1, C=4"),
        "two_wrong": ("A and C are not right", "A=4, B=1, C=5"),
        "as_text": ("whole number", 'A="8", B="1", C="8"'),
    },
)

# ---- l1_queue ----------------------------------------------------------------------------------------------

FLOATS = "floats = {address // 4 for address in addresses}"
PLACES = "places = [each % 32 for each in floats]"
LONGEST = "max(places.count(place) for place in places)"

WRONG["l1_queue"] = altered(
    "l1_queue",
    {
        "lanes_for_floats": ("counts lanes", (FLOATS, "floats = [address // 4 for address in addresses]")),
        "repeats_of_neighbours": (
            "only where the lane before wants the same",
            (FLOATS, f"{FLOATS}\n    words = [address // 4 for address in addresses]"),
            (PLACES, "places = [w % 32 for before, w in zip([None, *words], words) if w != before]"),
        ),
        "sectors": ("counts sectors", (LONGEST, "len({address // 32 for address in addresses})")),
        "lines": ("counts lines", (LONGEST, "len({address // 128 for address in addresses})")),
        "sum_of_the_queues": ("the sum of all queues", (LONGEST, "len(places)")),
        "places_in_use": ("the number of places in use", (LONGEST, "len(set(places))")),
        "shortest_queue": ("the shortest queue", (LONGEST, LONGEST.replace("max", "min"))),
        "mean_queue": ("the mean of the queues", (LONGEST, "-(-len(places) // len(set(places)))")),
        "queue_of_lane_0": ("at the place of lane 0", (LONGEST, "places.count(addresses[0] // 4 % 32)")),
        "places_of_128": ("takes a line for 128 places", (PLACES, PLACES.replace("32", "128"))),
        "bytes_modulo_32": ("has only 8 places", (FLOATS, "floats = set(addresses)")),
        "floats_of_8_bytes": ("of 19 answers are right", (FLOATS, FLOATS.replace("4", "8"))),
        "all_queues": ("must be a whole number", (LONGEST, "[places.count(place) for place in places]")),
        "place_and_not_its_queue": (
            "the place with the longest queue",
            (LONGEST, "max(places, key=places.count)"),
        ),
        "only_the_two_examples": (
            "returned None",
            (f"return {LONGEST}", f"if addresses[0] == 0:\n        return {LONGEST}"),
        ),
    },
)

# ---- no_float64 --------------------------------------------------------------------------------------------

ZERO = "tmp = float32(0)"
SUM = "tmp += A[i, k] * B[k, j]"
KEPT = "C[i, j] = tmp"

WRONG["no_float64"] = altered(
    "no_float64",
    {
        "as_it_was": ("a literal with a point", (ZERO, "tmp = 0.0")),
        "an_integer_zero": ("makes an integer", (ZERO, "tmp = 0")),
        "cast_at_the_end": ("only at the end", (ZERO, "tmp = 0.0"), (KEPT, "C[i, j] = float32(tmp)")),
        "a_factor_of_one": ("The literal `1.0`", (SUM, "tmp += 1.0 * A[i, k] * B[k, j]")),
        "an_annotation": ("Numba ignores annotations", (ZERO, "tmp: float32 = 0.0")),
        "an_array_of_numpy": ("One sum is one number", (ZERO, "tmp = np.zeros(1, np.float32)")),
        "float64_by_name": ("float64 by name", (ZERO, "tmp = np.float64(0)")),
        "half_precision": (
            "float16 instead",
            (ZERO, "tmp = np.float16(0)"),
            (SUM, "tmp += np.float16(A[i, k]) * np.float16(B[k, j])"),
        ),
        "first_product_before_the_loop": (
            "With k = 0 there are no products",
            (ZERO, "tmp = A[i, 0] * B[0, j]"),
            ("range(A", "range(1, A"),
        ),
        "x_over_the_columns": ("x counts the rows of C", ("i, j = cuda", "j, i = cuda")),
        "no_guard": ("The guard is missing", ("if i < C.shape[0] and j < C.shape[1]:", "if True:")),
        "one_side_unguarded": ("no `C[0, 40]`", (" and j < C.shape[1]", "")),
        "adds_into_c": ("what was in `C` before", (SUM, "C[i, j] += A[i, k] * B[k, j]"), (KEPT, "pass")),
        "kept_in_c": (
            "the sum is kept in C itself",
            (ZERO, "C[i, j] = float32(0)"),
            (SUM, "C[i, j] += A[i, k] * B[k, j]"),
            (KEPT, "pass"),
        ),
        "adds_for_multiplies": ("The numbers are wrong", (SUM, "tmp += A[i, k] + B[k, j]")),
        "eight_arguments": ("must take (A, B, C)", ("(A, B, C)", "(m, n, k, alpha, A, B, beta, C)")),
    },
)

# ---- leading_dimension -------------------------------------------------------------------------------------

WIDTH = "-(-columns // 8) * 8"
RETURNED = "return wide"

WRONG["leading_dimension"] = altered(
    "leading_dimension",
    {
        "next_even_number": ("334", (WIDTH, "columns + columns % 2")),
        "slice_copied": (
            "without padding. (If you made a wide array",
            (RETURNED, "return wide[:, :columns].copy()"),
        ),
        "padding_in_front": (
            "begins 3 floats after the start of a sector",
            ("wide[:, :columns] = B", "wide[:, -columns:] = B"),
            (RETURNED, "return wide[:, -columns:]"),
        ),
        "every_other_float": (
            "do not lie side by side",
            (f"(rows, {WIDTH})", f"(rows, 2 * ({WIDTH}))"),
            (RETURNED, "wide[:, : 2 * columns : 2] = B\n    return wide[:, : 2 * columns : 2]"),
        ),
        "adds_what_stands_over": ("8 minus that", (WIDTH, "columns + columns % 8")),
        "column_major": ("column-major", (RETURNED, "return np.asfortranarray(wide)")),
        "always_336": ("336, whatever", (WIDTH, "336")),
        "rounded_down": ("rounded down", (RETURNED, "return B[:, : columns // 8 * 8].copy()")),
        "unchanged": ("as it came", (RETURNED, "return B")),
        "eight_more_for_multiples": ("already", (WIDTH, "columns + 8 - columns % 8")),
        "double_precision": ("float64", (", np.float32", "")),
        "reshaped": ("reshape", (RETURNED, "return np.resize(B, wide.shape)")),
        "rows_padded": (
            "rows of zeros",
            (f"(rows, {WIDTH})", "(-(-rows // 8) * 8, columns)"),
            ("wide[:, :columns]", "wide[:rows]"),
        ),
        "whole_lines": ("round up to 32 floats, a whole line", (WIDTH, "-(-columns // 32) * 32")),
        "as_document_004_pads": ("64 bytes that document 004", (WIDTH, "-(-columns // 16) * 16")),
        "a_line_of_128_floats": ("wider than necessary", (WIDTH, "-(-columns // 128) * 128")),
    },
)
