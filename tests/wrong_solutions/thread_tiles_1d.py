"""Wrong answers that people really give to the exercises of `thread_tiles_1d`."""

from textwrap import indent

from tests.wrong_solutions.altering import altered, changed, returning, solution

WRONG = {}


# ---- thread_columns ----------------------------------------------------------------------------------------

ZEROS = """acc = cuda.local.array(TM, float32)
        for i in range(TM):
            acc[i] = 0
"""
LOOP = "for k0 in range(0, k, BK):"
STEP = "acc[i] += As[ty * TM + i, p] * b"
PRODUCTS = f"""for p in range(BK):
                b = Bs[p, tx]
                for i in range(TM):
                    {STEP}
"""
WAIT = "cuda.syncthreads()"
PLACE = "row, col = row0 + ty * TM + i, col0 + tx"
GUARD = "if row < m and col < n:"
STORED = "C[row, col] = alpha * acc[i] + beta * C[row, col] if beta != 0 else alpha * acc[i]"
STORE = f"""for i in range(TM):
            {PLACE}
            {GUARD}
                {STORED}
"""
IN_SHARED = "acc[ty * TM + i, tx]"
IN_C = "C[row0 + ty * TM + i, col0 + tx]"
START_IN_C = f"""for i in range(TM):
            if row0 + ty * TM + i < m and col0 + tx < n:
                {IN_C} = beta * {IN_C} if beta != 0 else float32(0)
"""
STEP_IN_C = f"""if row0 + ty * TM + i < m and col0 + tx < n:
                        {IN_C} += alpha * As[ty * TM + i, p] * b"""


def _store_only(row: str) -> str:
    """The end of the kernel that stores the first result alone, into this row."""
    return (
        f"row, col = row0 + {row}, col0 + tx\n        {GUARD}\n            {STORED.replace('[i]', '[0]')}\n"
    )


def _store_by_thread(rows: str) -> str:
    """The end of the kernel with one guard for all rows of a thread."""
    stored = STORED.replace("C[row,", "C[row + i,")
    return (
        f"row, col = row0 + ty * TM, col0 + tx\n        {GUARD.replace('row < m', rows)}\n"
        f"            for i in range(TM):\n                {stored}\n"
    )


def _in_steps(p: str, outer: str = "range(0, BK, 2)") -> str:
    """The products in two loops, with this p in the inner one."""
    return f"""for q in {outer}:
                for s in range(2):
                    p = {p}
                    b = Bs[p, tx]
                    for i in range(TM):
                        {STEP}
"""


FROM_ZEROS_ON = ZEROS + solution("thread_columns").partition(ZEROS)[2].partition("\n    return")[0]
ONE_RESULT = changed(FROM_ZEROS_ON, (ZEROS, ""), ("range(TM)", "range(j, j + 1)"), ("acc[i]", "acc"))
ONE_BY_ONE = f"for j in range(TM):\n            acc = float32(0)\n{indent(ONE_RESULT, '    ')}"

WRONG["thread_columns"] = altered(
    "thread_columns",
    {
        "i_and_ty_exchanged_in_the_store": (
            "`i` and `ty` are swapped",
            (PLACE, "row, col = row0 + i * TM + ty, col0 + tx"),
        ),
        "all_stored_in_the_first_row": (
            "one over the other",
            (PLACE, "row, col = row0 + ty * TM, col0 + tx"),
        ),
        "stored_from_the_next_block_on": (
            "which is in another block",
            (PLACE, "row, col = row0 + ty * BM + i, col0 + tx"),
        ),
        "column_by_y": ("The column of Bs is `ty`", ("b = Bs[p, tx]", "b = Bs[p, ty]")),
        "results_of_half_precision": ("`acc` are float16", (ZEROS, ZEROS.replace("float32", "float16", 1))),
        "only_declared_and_zeroed": (
            "Two pieces are missing",
            (PRODUCTS, "pass\n"),
            (STORE, "pass\n"),
        ),
        "b_read_for_every_result": (
            "Reads in your source are counted",
            ("b = Bs[p, tx]", "pass"),
            ("* b", "* Bs[p, tx]"),
        ),
        "a_read_twice": (
            "`As` is read more often than needed",
            (STEP, f"if As[ty * TM + i, p] != 0:\n                        {STEP}"),
        ),
        "one_accumulator": ("added up in one", (ZEROS, "acc = float32(0)\n"), ("acc[i]", "acc")),
        "rows_overlap_in_the_tile": ("neighbours' as well", ("As[ty * TM + i, p]", "As[ty + i, p]")),
        "rows_overlap": ("is the next thread's row as well", ("ty * TM + i", "ty + i")),
        "always_the_first_row_of_bs": (
            "its first row of Bs",
            (
                "for p in range(BK):\n                b = Bs[p, tx]",
                "b = Bs[0, tx]\n            for p in range(BK):",
            ),
        ),
        "always_the_first_row": ("the same row of As", ("As[ty * TM + i, p]", "As[ty * TM, p]")),
        "row_without_the_thread": ("is `i` for all threads", ("As[ty * TM + i, p]", "As[i, p]")),
        "row_of_one_result": ("use row `ty`", ("As[ty * TM + i, p]", "As[ty, p]")),
        "float64_where_beta_counts": (
            "The literal `1.0` is float64",
            (STORED, STORED.replace("alpha * acc[i] + beta", "1.0 * alpha * acc[i] + beta")),
        ),
        "starts_anew_in_every_tile": (
            "starts anew",
            (LOOP, f"{LOOP}\n            for i in range(TM):\n                acc[i] = 0"),
        ),
        "the_old_grid": (
            "as if a thread had one",
            (PLACE, "row, col = cuda.blockIdx.y * cuda.blockDim.y + ty + i, col0 + tx"),
        ),
        "stores_the_first_alone": ("only the first is stored", (STORE, _store_only("ty * TM"))),
        "stores_one_row_a_thread": ("only one of its results", (STORE, _store_only("ty"))),
        "not_set_to_zero": (
            "before anything was stored in it",
            ("for i in range(TM):\n            acc[i] = 0\n", "pass\n"),
        ),
        "rotated_rows": (
            "The result is right, but `acc`",
            (STEP, "j = (i + tx) % TM\n                    acc[j] += As[ty * TM + j, p] * b"),
        ),
        "rotated_rows_of_acc_alone": (
            "`As` by `i`",
            (STEP, "j = (i + tx) % TM\n                    acc[j] += As[ty * TM + i, p] * b"),
        ),
        "rotated_rows_of_as_alone": (
            "`acc` by `i`",
            (STEP, "j = (i + tx) % TM\n                    acc[i] += As[ty * TM + j, p] * b"),
        ),
        "steps_by_the_inner_loop_alone": ("as in `p = s`", (PRODUCTS, _in_steps("s"))),
        "steps_by_the_outer_loop_alone": ("as in `p = q`", (PRODUCTS, _in_steps("q"))),
        "outer_loop_one_by_one": (
            "its last ones never",
            (PRODUCTS, _in_steps("q + s", "range(BK // 2)")),
        ),
        "results_in_shared_memory": (
            "belong in registers",
            ("cuda.local.array(TM, float32)", "cuda.shared.array((BM, BN), float32)"),
            ("acc[i]", IN_SHARED),
        ),
        "results_in_c": (
            "kept in C itself",
            (ZEROS, START_IN_C),
            (STEP, STEP_IN_C),
            (STORE, "pass\n"),
        ),
        "one_result_after_the_other": ("whole loop over k runs again", (FROM_ZEROS_ON, ONE_BY_ONE)),
        "no_guard": ("There is no guard", (GUARD, "if True:")),
        "guard_of_the_first_row": (
            "tests only the first of a thread's TM rows",
            (STORE, _store_by_thread("row < m")),
        ),
        "guard_of_the_whole_thread": (
            "drops whole threads",
            (STORE, _store_by_thread("row + TM <= m")),
        ),
        "guard_one_row_too_far": ("`<=` in place of `row < m`", (GUARD, GUARD.replace("<", "<=", 1))),
        "last_row_guarded_away": ("keeps the last row out", (GUARD, GUARD.replace("m", "m - 1", 1))),
        "steps_counted_twice": (
            "`q` goes on by 2 already",
            (PRODUCTS, _in_steps("q * 2 + s")),
        ),
        "steps_that_do_not_divide": (
            "must be a multiple of 3",
            (PRODUCTS, _in_steps("q + s", "range(0, BK, 3)").replace("range(2)", "range(3)")),
        ),
        "only_rows_guarded": ("Only the rows are guarded", (GUARD, "if row < m:")),
        "a_third_barrier": ("More than 2 barriers", (PRODUCTS, f"{PRODUCTS}            {WAIT}\n")),
        "no_second_barrier": ("second barrier is missing", (f"{PRODUCTS}            {WAIT}", PRODUCTS)),
        "no_first_barrier": ("first barrier is missing", (f"{WAIT}\n            {PRODUCTS}", PRODUCTS)),
        "accumulates_in_float64": ("in float64", ("array(TM, float32)", "array(TM, float64)")),
        "alpha_twice": ("applied twice", (STEP, "acc[i] += alpha * As[ty * TM + i, p] * b")),
        "tile_of_b_read_transposed": ("`Bs` is read transposed", ("Bs[p, tx]", "Bs[tx, p]")),
        "eight_accumulators_written_out": (
            "wrong size",
            (ZEROS, ZEROS.replace("(TM, float32)", "(8, float32)").replace("range(TM)", "range(8)")),
        ),
        "return_forgotten": ("returns nothing", ("return column", "")),
        "columns_of_the_first_block": ("first BN columns", (PLACE, PLACE.replace("col0 + tx", "tx"))),
        "rows_of_the_first_block": ("first BM rows", (PLACE, PLACE.replace("row0 + ", ""))),
        "results_that_all_threads_share": (
            "a thread's own",
            ("cuda.local.array(TM, float32)", "cuda.shared.array(TM, float32)"),
        ),
        "last_result_forgotten": (
            "The last of a thread's TM results is never stored",
            ("range(TM)", "range(TM - 1)"),
        ),
        "last_products_forgotten": (
            "The last of a thread's TM results gets no products",
            (PRODUCTS, PRODUCTS.replace("range(TM)", "range(TM - 1)")),
        ),
        "rows_from_the_threads": ("overlap where a thread", ("ty * TM + i", "ty * BM // TM + i")),
        "rows_of_as_from_the_threads": (
            "not at `ty * (BM / TM)`",
            ("As[ty * TM + i, p]", "As[ty * BM // TM + i, p]"),
        ),
        "x_down_and_y_along": (
            "`tx` and `ty` are swapped",
            ("As[ty * TM + i, p]", "As[tx * TM + i, p]"),
            ("Bs[p, tx]", "Bs[p, ty]"),
            (PLACE, "row, col = row0 + tx * TM + i, col0 + ty"),
        ),
        "indices_of_as_swapped": (
            "two indices of `As` are swapped",
            ("As[ty * TM + i, p]", "As[p, ty * TM + i]"),
        ),
        "all_into_the_first": ("added to `acc[0]`", (STEP, STEP.replace("acc[i]", "acc[0]"))),
        "first_products_forgotten": (
            "first of a thread's TM results gets no products",
            (PRODUCTS, PRODUCTS.replace("range(TM)", "range(1, TM)")),
        ),
        "first_result_forgotten": (
            "first of a thread's TM results is never stored",
            (STORE, STORE.replace("range(TM)", "range(1, TM)")),
        ),
        "products_of_rows_apart": (
            "the store one below",
            ("As[ty * TM + i, p]", "As[ty + i * (BM // TM), p]"),
        ),
        "stores_to_rows_apart": (
            "the products one below",
            (PLACE, PLACE.replace("ty * TM + i", "ty + i * (BM // TM)")),
        ),
        "b_from_global_memory": (
            "`Bs` is filled and never read",
            ("b = Bs[p, tx]", "b = B[k0 + p, col0 + tx]"),
        ),
        "a_from_global_memory": (
            "`As` is filled and never read",
            (STEP, "acc[i] += A[row0 + ty * TM + i, k0 + p] * b"),
        ),
        "as_many_results_as_threads": (
            "A thread has TM results",
            ("cuda.local.array(TM, float32)", "cuda.local.array(BM // TM, float32)"),
        ),
        "products_of_as_many_as_threads": (
            "results get products",
            (PRODUCTS, PRODUCTS.replace("range(TM)", "range(BM // TM)")),
        ),
        "stores_as_many_as_threads": (
            "results are stored",
            (STORE, STORE.replace("range(TM)", "range(BM // TM)")),
        ),
        "an_array_of_numpy": ("cuda.local.array(size", (ZEROS, "acc = np.zeros(TM, np.float32)\n")),
        "a_list": ("cuda.local.array(size", (ZEROS, "acc = [float32(0)] * TM\n")),
        "filled": (
            "elements in a loop",
            (ZEROS, "acc = cuda.local.array(TM, float32)\n        acc.fill(0)\n"),
        ),
    },
)


# ---- tile_sectors ------------------------------------------------------------------------------------------

WRONG["tile_sectors"] = returning(
    "tile_sectors",
    {
        "more_rows_more_sectors": ("Only the rows are counted", "32 // BK"),
        "one_a_lane": ("one for each lane", "32"),
        "always_four": ("4 sectors hold 32 floats", "4"),
        "of_one_row": ("one row of the tile", "-(-BK // 8)"),
        "depth": ("deeper tile", "BK"),
        "a_row_of_the_tile_each": ("only 32 lanes", "64"),
        "lines": ("bytes of a line", "max(1, 4 * BK // 128)"),
        "min_for_max": ("`min` where `max`", "32 // BK * min(1, BK // 8)"),
        "of_a_row_for_each_lane": ("32 rows of the tile", "32 * BK // 8"),
        "four_for_each_row": ("4 sectors for each row", "32 // BK * 4"),
        "at_least_four": ("other way round", "max(4, BK)"),
        "as_text": ("must be a number", '"4 or 8"'),
    },
)


# ---- in_registers ------------------------------------------------------------------------------------------

ACC, ADD = "acc = cuda.local.array(R, float32)", "acc[i] += xp * A[p, first + 32 * i]"
ZERO_LOOP = "for i in range(R):\n            acc[i] = 0\n"
IS_COLUMN = "if first + 32 * i < n:"
ADD_LOOP = f"""for i in range(R):
                {IS_COLUMN}
                    {ADD}
"""
STORE_LOOP = f"""for i in range(R):
            {IS_COLUMN}
                y[first + 32 * i] = acc[i]
"""
ADDED_UP = f"""for p in range(k):
            xp = x[p]
            {ADD_LOOP}"""
ONE_COLUMN = f"""for i in range(R):
            {IS_COLUMN}
                acc = float32(0)
                for p in range(k):
                    acc += x[p] * A[p, first + 32 * i]
                y[first + 32 * i] = acc
"""
ROTATED = """for i in range(R):
                j = (i + p) % R
                if first + 32 * j < n:
                    acc[j] += xp * A[p, first + 32 * j]
"""
COUNTED_ADD = f"""for i in range(min(R, (n - first + 31) // 32)):
                {ADD}
"""
ITERATED_STORE = f"""i = 0
        for one in acc:
            {IS_COLUMN}
                y[first + 32 * i] = one
            i += 1
"""

WRONG["in_registers"] = altered(
    "in_registers",
    {
        "one_loop_still_short": ("does not write it out", (ADD_LOOP, COUNTED_ADD)),
        "loop_over_the_array": ("by their addresses", (STORE_LOOP, ITERATED_STORE)),
        "rotated": ("depends on more than", (ADD_LOOP, ROTATED)),
        "in_shared_memory": (
            "in shared memory now",
            ("cuda.local.array(R, float32)", "cuda.shared.array((R, 32), float32)"),
            ("acc[i]", "acc[i, cuda.threadIdx.x]"),
        ),
        "in_global_memory": (
            "in `y` itself",
            (
                ZERO_LOOP,
                f"for i in range(R):\n            {IS_COLUMN}\n                y[first + 32 * i] = 0\n",
            ),
            (STORE_LOOP, ""),
            (ACC, ""),
            ("acc[i]", "y[first + 32 * i]"),
        ),
        "one_after_the_other": (
            "along k 4 times",
            (ACC, ""),
            (ZERO_LOOP, "pass\n"),
            (ADDED_UP, ONE_COLUMN),
            (STORE_LOOP, ""),
        ),
        "one_column_a_thread": (
            "with fewer results per thread",
            (ACC, "acc = float32(0)"),
            (ZERO_LOOP, "pass\n"),
            ("for i in range(R):", "for i in range(1):"),
            ("acc[i]", "acc"),
        ),
        "guard_forgotten": ("guard of their own", (IS_COLUMN, "if True:")),
        "eight_for_r": ("The loop over `range(8)` goes past the end", ("range(R)", "range(8)")),
        "eight_accumulators": ("`acc` has another size", (ACC, "acc = cuda.local.array(8, float32)")),
        "one_element_too_far": ("index leaves `acc`", (ADD, ADD.replace("acc[i]", "acc[i + 1]"))),
        "one_guard_around_the_loop": (
            "one for all R columns",
            (
                ADDED_UP,
                "if first + 32 * R <= n:\n            for p in range(k):\n                xp = x[p]\n"
                f"                for i in range(R):\n                    {ADD}\n",
            ),
        ),
        "guard_of_the_first_column": ("first column only", (IS_COLUMN, "if first < n:")),
        "guard_one_too_far": (
            "is written, and there are only",
            (STORE_LOOP, STORE_LOOP.replace("< n", "<= n")),
        ),
        "not_set_to_zero_before": ("before it was set to zero", (ZERO_LOOP, "pass\n")),
        "sums_in_float64": ("in float64", (ACC, "acc = cuda.local.array(R, float64)")),
        "bare_zero_beside_the_guard": (
            "The `0` beside the `if ... else` is a whole number",
            (
                ADD_LOOP,
                "for i in range(R):\n                acc[i] += xp * A[p, first + 32 * i] "
                "if first + 32 * i < n else 0\n",
            ),
        ),
        "added_to_y": (
            "Store with `=`, not with `+=`",
            ("y[first + 32 * i] = acc[i]", "y[first + 32 * i] += acc[i]"),
        ),
        "results_that_all_threads_share": (
            "all threads of the block have the same one",
            ("cuda.local.array(R, float32)", "cuda.shared.array(R, float32)"),
        ),
        "all_guards_one_too_far": (
            "lets column n through",
            (IS_COLUMN, IS_COLUMN.replace("< n", "<= n")),
        ),
        "adds_only_the_last": ("of the last step alone", ("acc[i] += xp", "acc[i] = xp")),
        "neighbouring_columns": ("columns are 32 apart, `first + 32 * i`, and", ("32 * i", "i")),
        "neighbours_r_apart": (
            "no longer coalesced",
            ("cuda.blockIdx.x * 32 * R + cuda.threadIdx.x", "(cuda.blockIdx.x * 32 + cuda.threadIdx.x) * R"),
            ("32 * i", "i"),
        ),
    },
)
