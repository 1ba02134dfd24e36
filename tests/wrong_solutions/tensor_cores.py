"""Wrong answers that people really give to the exercises of `tensor_cores`."""

from tests.wrong_solutions.altering import altered, passing

# ---- warp_product ------------------------------------------------------------------------------------------

ACC = "acc = cuda.local.array(8, float32)"
ZERO = "        for e in range(8):\n            acc[e] = 0\n"
LOAD_A, LOAD_B = "wmma_load_a(a, As, (0, 0), COL_MAJOR)", "wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)"
MMA, STORE = "wmma_mma(acc, a, b, COL_MAJOR, ROW_MAJOR)", "wmma_store(Cs, (0, 0), acc, ROW_MAJOR)"
A_BY_ROWS = (LOAD_A, "wmma_load_a(a, As, (0, 0), ROW_MAJOR)")
B_BY_COLUMNS = (LOAD_B, "wmma_load_b(b, Bs, (0, 0), COL_MAJOR)")
ONE_BY_ONE = """for p in range(16):
                for e in range(8):
                    acc[e] += float32(As[p, r]) * float32(Bs[p, c + e])"""
PRODUCT = altered(
    "warp_product",
    {
        "as_row_major": (
            "loaded as if it were not",
            A_BY_ROWS,
            (MMA, "wmma_mma(acc, a, b, ROW_MAJOR, ROW_MAJOR)"),
        ),
        "bs_col_major": (
            "loaded as `COL_MAJOR`, but",
            B_BY_COLUMNS,
            (MMA, "wmma_mma(acc, a, b, COL_MAJOR, COL_MAJOR)"),
        ),
        "orders_exchanged": (
            "The two orders are swapped",
            A_BY_ROWS,
            B_BY_COLUMNS,
            (MMA, "wmma_mma(acc, a, b, ROW_MAJOR, COL_MAJOR)"),
        ),
        "stores_col_major": ("every tile of C arrives transposed", ("acc, ROW_MAJOR", "acc, COL_MAJOR")),
        "mma_told_row_major": (
            "same order as the load",
            (MMA, "wmma_mma(acc, a, b, ROW_MAJOR, ROW_MAJOR)"),
        ),
        "a_place_for_each_lane": ("do not make it as one", ("As, (0, 0)", "As, (lane // 2, 0)")),
        "call_in_a_branch": ("undefined", (LOAD_A, f"if lane < 16:\n                {LOAD_A}")),
        "starts_anew": (
            "the accumulators start anew",
            (ZERO, ""),
            (LOAD_A, f"for e in range(8):\n                acc[e] = 0\n            {LOAD_A}"),
        ),
        "not_set_to_zero": ("`acc` is used before", (ZERO, "")),
        "sums_in_halves": ("these are FP16 values", ("float32", "float16")),
        "fragment_too_small": ("16 float16", ("a = cuda.local.array(16", "a = cuda.local.array(8")),
        "without_tensor_cores": (
            "no Tensor Core is used",
            (LOAD_A, ONE_BY_ONE),
            (LOAD_B, "pass"),
            (MMA, "pass"),
            (STORE, "for e in range(8):\n            Cs[r, c + e] = acc[e]"),
        ),
        "not_stored": ("before `wmma_store` put them there", (STORE, "pass")),
        "no_wait_before_the_loads": (
            "no `cuda.syncwarp()` between them",
            (f"cuda.syncwarp()\n            {LOAD_A}", LOAD_A),
        ),
        "operands_exchanged": ("A and B are swapped", ("acc, a, b", "acc, b, a")),
        "tiles_exchanged": ("The tiles are exchanged", ("(a, As", "(a, Bs"), ("(b, Bs", "(b, As")),
        "b_loaded_as_a": ("is the fragment of B in `wmma_mma`", ("wmma_load_b(b", "wmma_load_a(b")),
        "a_loaded_as_b": ("is the fragment of A in `wmma_mma`", ("wmma_load_a(a", "wmma_load_b(a")),
        "list_as_place": ("`(0, 0)` instead of `[0, 0]`", ("a, As, (0, 0)", "a, As, [0, 0]")),
        "one_number_as_place": ("needs 2 indices, such as (0, 0)", ("a, As, (0, 0)", "a, As, 0")),
        "product_forgotten": ("C is 0 everywhere", (MMA, "pass")),
        "product_twice": ("C is 2 times too large", (MMA, f"{MMA}\n            {MMA}")),
        "order_forgotten": (
            "the place, such as `(0, 0)`, the order",
            ("a, As, (0, 0), COL_MAJOR", "a, As, (0, 0)"),
        ),
        "order_as_text": ("is no order", ("a, As, (0, 0), COL_MAJOR", 'a, As, (0, 0), "col"')),
        "place_of_the_block": ("A place counts within", ("a, As, (0, 0)", "a, As, (row0, 0)")),
        "float_as_place": ("must be an integer", ("a, As, (0, 0)", "a, As, (0.0, 0)")),
        "multiplies_twice": (
            "multiply-adds where",
            (ACC, f"{ACC}\n        {ACC.replace('acc', 'spare')}"),
            ("acc[e] = 0", "acc[e] = 0\n            spare[e] = 0"),
            (MMA, f"{MMA}\n            {MMA.replace('acc', 'spare')}"),
        ),
    },
)

# ---- fragments_once ----------------------------------------------------------------------------------------

LOAD_AS, LOAD_BS = (
    "wmma_load_a(a[i], As, (i * 16, 0), ROW_MAJOR)",
    "wmma_load_b(b[i], Bs, (0, i * 16), ROW_MAJOR)",
)
FIRST_A, FIRST_B = ("(i * 16, 0), ROW", "(0, 0), ROW"), ("(0, i * 16), ROW", "(0, 0), ROW")
MMAS = "                wmma_mma(acc[i, j], a[i], b[j], ROW_MAJOR, ROW_MAJOR)"
ZEROS = "            for e in unroll(range(8)):\n                acc[i, j, e] = 0\n"
ONCE = altered(
    "fragments_once",
    {
        "loads_b_for_every_row": (
            "loads 4 from `Bs`, where",
            (f"            {LOAD_BS}\n", ""),
            (MMAS, f"                {LOAD_BS.replace('b[i]', 'b[j]').replace('i * 16', 'j * 16')}\n{MMAS}"),
        ),
        "loads_both_for_every_product": (
            "loads 4 from `As` and 4 from `Bs`",
            (f"            {LOAD_AS}\n            {LOAD_BS}\n", "            pass\n"),
            (
                MMAS,
                f"                {LOAD_AS}\n"
                f"                {LOAD_BS.replace('b[i]', 'b[j]').replace('i * 16', 'j * 16')}\n{MMAS}",
            ),
        ),
        "a_from_the_first_rows": ("A's first 16 rows", FIRST_A),
        "b_from_the_first_columns": ("B's first 16 columns", FIRST_B),
        "all_from_the_first": ("All four products", FIRST_A, FIRST_B),
        "c_across_the_diagonal": ("across the diagonal", ("(i * 16, j * 16)", "(j * 16, i * 16)")),
        "stores_transposed": ("stored as `COL_MAJOR`", ("acc[i, j], ROW_MAJOR)", "acc[i, j], COL_MAJOR)")),
        "a_col_major": (
            "`wmma_load_a` is told `COL_MAJOR`",
            ("(i * 16, 0), ROW", "(i * 16, 0), COL"),
            ("b[j], ROW_MAJOR, ROW", "b[j], COL_MAJOR, ROW"),
        ),
        "mma_told_another_order": (
            "same order as the load",
            ("b[j], ROW_MAJOR, ROW", "b[j], ROW_MAJOR, COL"),
        ),
        "not_set_to_zero": ("`acc` is used before", (ZEROS, "            pass\n")),
        "three_stores": (
            "The fragment at (16, 16) of `Cs`",
            ("            wmma_store(", "            if i + j < 2:\n                wmma_store("),
        ),
        "b_one_below_the_other": ("lie side by side", ("(0, i * 16), ROW", "(i * 16, 0), ROW")),
        "a_side_by_side": ("lie one below the other", ("(i * 16, 0), ROW", "(0, i * 16), ROW")),
        "diagonal_alone": (
            "Only 2 products of 4",
            (MMAS, f"                if i == j:\n    {MMAS}"),
        ),
        "place_in_fragments": ("A place counts elements", ("(0, i * 16), ROW", "(0, i), ROW")),
        "a_eight_rows_on": ("begins at row 8", ("(i * 16, 0), ROW", "(i * 8, 0), ROW")),
        "b_by_rows": ("so take `b[j]`", ("a[i], b[j]", "a[i], b[i]")),
        "a_by_columns": ("so take `a[i]`", ("a[i], b[j]", "a[j], b[j]")),
        "last_product_forgotten": (
            "makes 3 products per step",
            (MMAS, f"                if i + j < 2:\n    {MMAS}"),
        ),
        "an_accumulator_each": (
            "not a single number",
            ("(2, 2, 8), float32", "(2, 2), float32"),
            (ZEROS, "            acc[i, j] = 0\n"),
        ),
        "one_product": ("numbers are wrong", ("acc[i, j], a[i]", "acc[i, 0], a[i]")),
        "products_twice": (
            "multiply-adds where",
            ("acc = cuda", "more = cuda.local.array((2, 2, 8), float32)\n    acc = cuda"),
            ("acc[i, j, e] = 0", "acc[i, j, e] = more[i, j, e] = 0"),
            (MMAS, f"{MMAS}\n{MMAS.replace('acc', 'more')}"),
        ),
        "sums_in_halves": (
            "own array of 8 float32; acc has",
            ("acc = cuda.local.array((2, 2, 8), float32)", "acc = cuda.local.array((2, 2, 8), float16)"),
        ),
        "tiles_exchanged": (
            "The tiles are exchanged",
            ("(a[i], As", "(a[i], Bs"),
            ("(b[i], Bs", "(b[i], As"),
        ),
        "starts_anew": (
            "the accumulators start anew",
            (
                "        for i in unroll(range(2)):\n            wmma_load_a",
                "        for i in unroll(range(2)):\n            for j in unroll(range(2)):\n"
                "                for e in unroll(range(8)):\n                    acc[i, j, e] = 0\n"
                "        for i in unroll(range(2)):\n            wmma_load_a",
            ),
        ),
    },
)

# ---- padding_wavefronts ------------------------------------------------------------------------------------

WAVEFRONTS = passing(
    "padding_wavefronts",
    {
        "more_is_better": ("More padding is not better", "(8, 2, 1)"),
        "halves_each_time": ("does not halve", "(8, 4, 2)"),
        "bytes_for_halves": ("takes the padding for bytes", "(8, 8, 4)"),
        "both_mended": ("only 32 / 8 = 4 places", "(8, 1, 1)"),
        "none_without": ("twice around", "(1, 1, 1)"),
        "sixteen_rows": ("counts 16 rows", "(16, 2, 4)"),
        "whole_fragment": ("the whole fragment", "(32, 4, 8)"),
        "conflicts": ("how many too many", "(7, 0, 1)"),
        "guessed": ("Not all three", "(4, 1, 2)"),
        "one_number": ("must be three numbers", "8"),
    },
)

# ---- ragged_product ----------------------------------------------------------------------------------------

GUARD = "if row0 + r < m and col0 + c + e < n:"
BY_LANES = f"""    {STORE}
    cuda.syncwarp()
    for e in range(8):
        {GUARD}
            C[row0 + r, col0 + c + e] = Cs[r, c + e]
"""
FROM_ACC = """    for e in range(8):
        row, col = {row}, {col}
        if row < m and col < n:
            C[row, col] = acc[e]
"""
RAGGED = altered(
    "ragged_product",
    {
        "whole_runs_of_eight": (
            "only where all of them are in C",
            (GUARD, "if row0 + r < m and col0 + c + 8 <= n:"),
        ),
        "skips_tiles_at_the_edge": (
            "Tiles that reach beyond C are skipped",
            (GUARD, "if row0 + 16 <= m and col0 + 16 <= n:"),
        ),
        "stores_the_whole_fragment": ("row or behind the array. Guard each element", (GUARD, "if True:")),
        "guards_a_lanes_first_column": (
            "only the first of a lane's 8 columns",
            (GUARD, "if row0 + r < m and col0 + c < n:"),
        ),
        "clamped": (
            "With `min`, what is beyond C",
            (
                f"{GUARD}\n            C[row0 + r, col0 + c + e]",
                "if True:\n            C[min(row0 + r, m - 1), min(col0 + c + e, n - 1)]",
            ),
        ),
        "guesses_the_layout": (
            "takes it for granted",
            (
                BY_LANES,
                FROM_ACC.format(
                    row="row0 + lane // 4 + e // 2 % 2 * 8", col="col0 + lane % 4 * 2 + e % 2 + e // 4 * 8"
                ),
            ),
        ),
        "guesses_another_layout": (
            "which element. `wmma_store` puts them",
            (BY_LANES, FROM_ACC.format(row="row0 + lane // 2", col="col0 + lane % 2 * 8 + e")),
        ),
        "stores_and_takes_from_acc": ("take `Cs[r, c + e]`", ("= Cs[r, c + e]", "= acc[e]")),
        "guard_by_place_in_tile": ("add `row0` to the row and `col0`", (GUARD, "if r < m and c + e < n:")),
        "row_guard_by_place_in_tile": (
            "first tile begins at the start of C: add `row0` to the row.",
            (GUARD, "if r < m and col0 + c + e < n:"),
        ),
        "column_guard_by_place_in_tile": (
            "first tile begins at the start of C: add `col0` to the column.",
            (GUARD, "if row0 + r < m and c + e < n:"),
        ),
        "no_wait_after_the_store": (
            "no `cuda.syncwarp()` between them",
            (f"{STORE}\n    cuda.syncwarp()", STORE),
        ),
        "adds_to_c": ("not with `+=`", ("c + e] = Cs", "c + e] += Cs")),
        "guards_the_rows_alone": ("Rows are guarded", (GUARD, "if row0 + r < m:")),
        "store_guarded_by_lane": ("do not make it as one", (STORE, f"if row0 + r < m:\n        {STORE}")),
        "stores_transposed": ("arrives transposed", ("acc, ROW_MAJOR)", "acc, COL_MAJOR)")),
        "without_tensor_cores_at_all": (
            "no Tensor Core is used",
            (A_BY_ROWS[1], ONE_BY_ONE.replace("As[p, r]", "As[r, p]").replace("\n    ", "\n")),
            (LOAD_B, "pass"),
            ("wmma_mma(acc, a, b, ROW_MAJOR, ROW_MAJOR)", "pass"),
            (BY_LANES, FROM_ACC.format(row="row0 + r", col="col0 + c + e")),
        ),
        "columns_from_the_shape": (
            "`C.shape` includes the padding",
            ("col0 + c + e < n:", "col0 + c + e < C.shape[1]:"),
        ),
        "m_and_n_swapped": ("m and n are swapped", (GUARD, "if row0 + r < n and col0 + c + e < m:")),
        "one_column_too_many": ("`<=` where `<` is meant", ("col0 + c + e < n:", "col0 + c + e <= n:")),
    },
)

# ---- several_warps -----------------------------------------------------------------------------------------

CORNER = "y0, x0 = warp // (BN // WN) * WM, warp % (BN // WN) * WN"
AFTER_FETCH = "            fetch(As, Bs, A, B, k0, m, n, k)\n            cuda.syncthreads()\n"
LAST_BARRIER = (
    "            cuda.syncthreads()\n"
    "        for i in unroll(range(DOWN)):\n            for j in unroll(range(ACROSS)):\n                put"
)
LOAD_A_OF_WARP = "wmma_load_a(a[i], As, (y0 + i * 16, p), ROW_MAJOR)"
LOAD_B_OF_WARP = "wmma_load_b(b[j], Bs, (p, x0 + j * 16), ROW_MAJOR)"
PUT = "put(C, Cs, acc[i, j], y0 + i * 16, x0 + j * 16, m, n)"
LOAD_A_LOOP = f"                for i in unroll(range(DOWN)):\n                    {LOAD_A_OF_WARP}\n"
B_LOADS = f"                for j in unroll(range(ACROSS)):\n                    {LOAD_B_OF_WARP}\n"
PRODUCT_OF_WARP = "                        wmma_mma(acc[i, j], a[i], b[j], ROW_MAJOR, ROW_MAJOR)"
SEVERAL = altered(
    "several_warps",
    {
        "corner_of_one_warp": ("Two warps store the same", (CORNER, "y0, x0 = 0, 0")),
        "warps_down_the_columns": (
            "A fragment of B begins at",
            (CORNER, "y0, x0 = warp % (BN // WN) * WM, warp // (BN // WN) * WN"),
        ),
        "b_fragments_counted": (
            "16 elements per fragment",
            (LOAD_B_OF_WARP, LOAD_B_OF_WARP.replace("j * 16", "j")),
        ),
        "p_by_one": ("p in steps of 16", ("range(0, BK, 16)", "range(BK)")),
        "first_step_only": ("Only the first 16 steps", ("range(0, BK, 16)", "range(0, 16, 16)")),
        "loads_in_the_products": (
            "Load them all before the products",
            (B_LOADS, ""),
            (PRODUCT_OF_WARP, f"                        {LOAD_B_OF_WARP}\n{PRODUCT_OF_WARP}"),
        ),
        "joins_a_warp_only": (
            "`syncwarp` joins one warp only",
            (AFTER_FETCH, AFTER_FETCH.replace("syncthreads", "syncwarp")),
            (LAST_BARRIER, LAST_BARRIER.replace("syncthreads", "syncwarp")),
        ),
        "no_second_barrier": (
            "One barrier of the block is missing",
            (LAST_BARRIER, LAST_BARRIER.replace("            cuda.syncthreads()\n", "", 1)),
        ),
        "starts_anew": (
            "start anew with each tile",
            (
                AFTER_FETCH,
                "            for i in unroll(range(DOWN)):\n                for j in unroll(range(ACROSS)):\n"
                "                    for e in unroll(range(8)):\n                        acc[i, j, e] = 0\n"
                + AFTER_FETCH,
            ),
        ),
        "nothing_put": ("Nothing is stored", (PUT, "pass")),
        "whole_tiles_only": (
            "of which k fills only a part",
            ("range(0, k, BK)", "range(0, k // BK * BK, BK)"),
        ),
        "whole_steps_only": (
            "zeros behind the end",
            (
                LOAD_A_LOOP,
                LOAD_A_LOOP.replace(
                    "                for",
                    "                if k0 + p + 16 > k:\n                    continue\n                for",
                ),
            ),
        ),
        "edges_left_out": (
            "Leave out the test",
            (
                PUT,
                f"y, x = cuda.blockIdx.y * BM + y0 + i * 16, cuda.blockIdx.x * BN + x0 + j * 16\n"
                f"                if y + 16 <= m and x + 16 <= n:\n                    {PUT}",
            ),
        ),
        "put_counts_from_c": (
            "so no `blockIdx`",
            (
                PUT,
                PUT.replace("y0 +", "cuda.blockIdx.y * BM + y0 +").replace(
                    "x0 +", "cuda.blockIdx.x * BN + x0 +"
                ),
            ),
        ),
        "put_across": (
            "Row and column of `put` are exchanged",
            (PUT, "put(C, Cs, acc[i, j], x0 + j * 16, y0 + i * 16, m, n)"),
        ),
        "all_put_at_the_corner": (
            "lacks `i * 16` and `j * 16`",
            (PUT, "put(C, Cs, acc[i, j], y0, x0, m, n)"),
        ),
        "tiles_by_number": (
            "the number of the tile",
            ("for k0 in range(0, k, BK)", "for k0 in range((k + BK - 1) // BK)"),
        ),
        "b_by_columns": (
            "`Bs` is read as `COL_MAJOR`",
            (LOAD_B_OF_WARP, LOAD_B_OF_WARP.replace("ROW_MAJOR", "COL_MAJOR")),
            ("a[i], b[j], ROW_MAJOR, ROW_MAJOR", "a[i], b[j], ROW_MAJOR, COL_MAJOR"),
        ),
        "bs_place_exchanged": ("B's place are exchanged", ("Bs, (p, x0 + j * 16)", "Bs, (x0 + j * 16, p)")),
        "accumulators_across": ("across the diagonal", ("wmma_mma(acc[i, j]", "wmma_mma(acc[j, i]")),
        "a_tile_too_many": ("one tile too many", ("range(0, k, BK)", "range(0, k + 1, BK)")),
        "one_warp_fetches": (
            "All threads of the block must call `fetch`",
            ("            fetch(As", "            if warp == 0:\n                fetch(As"),
        ),
        "second_barrier_of_a_warp": (
            "`syncwarp` is too little",
            (LAST_BARRIER, LAST_BARRIER.replace("syncthreads", "syncwarp", 1)),
        ),
        "early_return": (
            "return early",
            (CORNER, f"{CORNER}\n        if cuda.blockIdx.x * BN + x0 >= n:\n            return"),
        ),
        "first_tile_only": (
            "Only the first tile along k",
            ("for k0 in range(0, k, BK):", "for k0 in range(0, min(k, BK), BK):"),
        ),
    },
)

WRONG = {
    "warp_product": PRODUCT,
    "fragments_once": ONCE,
    "padding_wavefronts": WAVEFRONTS,
    "ragged_product": RAGGED,
    "several_warps": SEVERAL,
}
