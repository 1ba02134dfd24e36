"""Wrong answers that people really give to the exercises of `shared_memory_tiles`."""

from tests.wrong_solutions.altering import altered, passing

WRONG = {}


# ---- first_loads -------------------------------------------------------------------------------------------


def _loads(text: str) -> str:
    """ "A01 B03" as the list of loads that a learner writes."""
    return f"[{', '.join(f'({name!r}, {row}, {column})' for name, row, column in text.split())}]"


WRONG["first_loads"] = passing(
    "first_loads",
    {
        "x_and_y_exchanged": ("thread (0, 1) of block (0, 1)", _loads("A30 B10 A32 B30")),
        "thread_exchanged": ("thread (0, 1) of block (1, 0)", _loads("A10 B12 A12 B32")),
        "block_exchanged": ("thread (1, 0) of block (0, 1)", _loads("A21 B01 A23 B21")),
        "block_forgotten": ("thread (1, 0) of block (0, 0)", _loads("A01 B01 A03 B21")),
        "same_tile_twice": ("same tiles twice", _loads("A01 B03 A01 B03")),
        "offset_on_the_wrong_axis": ("wrong axis", _loads("A01 B03 A21 B05")),
        "eight_naive_loads": ("without tiles", _loads("A00 B03 A01 B13 A02 B23 A03 B33")),
        "first_a_then_b": ("another order", _loads("A01 A03 B03 B23")),
        "column_before_row": ("row comes first", _loads("A10 B30 A30 B32")),
        "only_the_first_tile": ("two more", _loads("A01 B03")),
        "one_further_along_k": ("not how far along k", _loads("A01 B03 A02 B13")),
        "no_tuples": ('("A", row, column)', '["A[0, 1]", "B[0, 3]", "A[0, 3]", "B[2, 3]"]'),
    },
)


# ---- reverse -----------------------------------------------------------------------------------------------

TILE = "cuda.shared.array(T, float32)"
STORE, WAIT, READ = "tile[t] = a[first + t]", "cuda.syncthreads()", "out[first + t] = tile[T - 1 - t]"

WRONG["reverse"] = altered(
    "reverse",
    {
        "elements_of_two_bytes": ("have 2 bytes each", (TILE, TILE.replace("float32", "float16"))),
        "whole_numbers": ("are whole numbers", (TILE, TILE.replace("float32", "int32"))),
        "length_as_an_argument": ("an argument", ("reverse(a, out):", "reverse(a, out, T):")),
        "length_from_the_block": (
            "blockDim",
            (TILE, "cuda.shared.array(cuda.blockDim.x, float32)"),
            ("cuda.blockIdx.x * T", "cuda.blockIdx.x * cuda.blockDim.x"),
            ("T - 1 - t", "cuda.blockDim.x - 1 - t"),
        ),
        "length_of_the_array": ("shape of a", (TILE, "cuda.shared.array(a.shape[0], float32)")),
        "length_cast": (
            "cast does not make it a constant",
            (TILE, "cuda.shared.array(int32(cuda.blockDim.x), float32)"),
        ),
        "thirty_two_written_out": (
            "32 is written out",
            (TILE, "cuda.shared.array(32, float32)"),
            ("cuda.blockIdx.x * T", "cuda.blockIdx.x * 32"),
            ("T - 1 - t", "31 - t"),
        ),
        "always_the_largest": ("larger than", (TILE, "cuda.shared.array(1024, float32)")),
        "no_barrier": ("no barrier", (WAIT, "pass")),
        "barrier_not_called": ("without parentheses", (WAIT, "cuda.syncthreads")),
        "barrier_too_early": ("before the store", (WAIT, "pass"), (STORE, f"{WAIT}\n        {STORE}")),
        "reverses_the_whole_array": (
            "whole array",
            ("a[first + t]", "a[a.shape[0] - 1 - (first + t)]"),
            ("tile[T - 1 - t]", "tile[t]"),
        ),
        "without_shared_memory": (
            "no shared memory",
            (f"tile = {TILE}", "pass"),
            (STORE, "pass"),
            ("tile[T - 1 - t]", "a[first + T - 1 - t]"),
        ),
        "every_thread_for_itself": (
            "its own element",
            ("a[first + t]", "a[first + T - 1 - t]"),
            ("tile[T - 1 - t]", "tile[t]"),
        ),
        "one_too_far": ("Subtract from `T - 1`", ("tile[T - 1 - t]", "tile[T - t]")),
        "first_block_only": ("block index", ("first + t", "t")),
        "reversed_twice": ("twice", ("tile[t] =", "tile[T - 1 - t] =")),
        "every_thread_fetches_all": (
            "every thread fetches the whole tile",
            (STORE, "for i in range(T):\n            tile[i] = a[first + i]"),
        ),
        "not_compiled": ("@cuda.jit", ("@cuda.jit", "")),
        "tile_indexed_by_the_grid": (
            "as if it held all of `a`",
            ("tile[t]", "tile[first + t]"),
            ("T - 1 - t", "first + T - 1 - t"),
        ),
        "tile_mirrored_as_the_array": (
            "the mirror image in the whole array",
            ("T - 1 - t", "a.size - 1 - first - t"),
        ),
        "tile_of_float64": ("8 bytes each", (TILE, "cuda.shared.array(T, np.float64)")),
        "every_thread_stores_all": (
            "stores more than one element",
            (READ, "out[first : first + T] = tile[T - 1 - t]"),
        ),
        "one_thread_stores_all": (
            "the others store nothing",
            (
                READ,
                "if t == 0:\n            for i in range(T):\n                out[first + i] = tile[-1 - i]",
            ),
        ),
        "tile_of_numpy": (
            "block shares is `cuda.shared.array(shape, dtype)`",
            (TILE, "np.empty(T, np.float32)"),
        ),
        "one_thread_fetches_all": (
            "the others fetch nothing",
            (STORE, "if t == 0:\n            for i in range(T):\n                tile[i] = a[first + i]"),
        ),
        "tile_beside_the_kernel": (
            "belongs inside the kernel",
            (f"        tile = {TILE}\n", ""),
            ("    @cuda.jit", f"    tile = {TILE}\n\n    @cuda.jit"),
        ),
        "return_forgotten": ("returns nothing", ("return reverse", "")),
    },
)


# ---- tile_kernel -------------------------------------------------------------------------------------------

STORE_AS = "As[ty, tx] = A[row, k0 + tx] if row < m and k0 + tx < k else float32(0)"
STORE_BS = "Bs[ty, tx] = B[k0 + ty, col] if k0 + ty < k and col < n else float32(0)"
LOOP = "for k0 in range(0, k, T):"
PRODUCTS = """for p in range(T):
                acc += As[ty, p] * Bs[p, tx]
"""
FILLED, USED = f"cuda.syncthreads()\n            {PRODUCTS}", f"{PRODUCTS}            cuda.syncthreads()"
GUARD = "if row < m and col < n:"
OLD_C = "alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc"
STORE_INSIDE = (
    (STORE_AS, "if row < m and k0 + tx < k:\n                As[ty, tx] = A[row, k0 + tx]"),
    (STORE_BS, "if k0 + ty < k and col < n:\n                Bs[ty, tx] = B[k0 + ty, col]"),
)
IN_A_BRANCH = f"""if row < m and col < n:
                {STORE_AS}
                {STORE_BS}
                cuda.syncthreads()
                for p in range(T):
                    acc += As[ty, p] * Bs[p, tx]
                cuda.syncthreads()
"""
IN_A_ROW = f"""{STORE_AS}
            {STORE_BS}
            {FILLED}            cuda.syncthreads()
"""
FETCHES = f"{STORE_AS}\n            {STORE_BS}"
WHOLE_TILES = """for i in range(T):
                for j in range(T):
                    r, c = cuda.blockIdx.y * T + i, cuda.blockIdx.x * T + j
                    As[i, j] = A[r, k0 + j] if r < m and k0 + j < k else float32(0)
                    Bs[i, j] = B[k0 + i, c] if k0 + i < k and c < n else float32(0)"""
BY_ONE_THREAD = "if tx == 0 and ty == 0:\n" + " " * 16 + WHOLE_TILES.replace("\n", "\n    ")
THREAD = "tx, ty = cuda.threadIdx.x, cuda.threadIdx.y\n"
STORE_C = f"        {GUARD}\n            C[row, col] = {OLD_C}\n"
ALPHA_TWICE = "`alpha` is applied twice: in the loop"
NAIVE = """if row < m and col < n:
            for p in range(k):
                acc += A[row, p] * B[p, col]
"""

WRONG["tile_kernel"] = altered(
    "tile_kernel",
    {
        "second_barrier_missing": ("second barrier", (USED, PRODUCTS)),
        "guard_of_c_around_both_loads": (
            "stands around both loads",
            (
                FETCHES,
                f"""if row < m and col < n:
                {STORE_AS.replace("row < m and ", "")}
                {STORE_BS.replace(" and col < n", "")}
            else:
                As[ty, tx] = float32(0)
                Bs[ty, tx] = float32(0)""",
            ),
        ),
        "guard_of_c_around_the_load_of_a": (
            "around the load of A",
            (STORE_AS, STORE_AS.replace("row < m", "row < m and col < n")),
        ),
        "guard_of_c_around_the_load_of_b": (
            "around the load of B",
            (STORE_BS, STORE_BS.replace("col < n", "col < n and row < m")),
        ),
        "axes_swapped_by_name": (
            "swapped where they get their values",
            (THREAD, THREAD.replace("tx, ty =", "ty, tx =")),
        ),
        "one_row_too_far": ("one row too many through", (GUARD, "if row <= m and col < n:")),
        "one_column_too_far": ("one column too many through", (GUARD, "if row < m and col <= n:")),
        "a_tile_of_whole_numbers": (
            "`As` are int32",
            ("As = cuda.shared.array((T, T), float32)", "As = cuda.shared.array((T, T), int32)"),
        ),
        "first_barrier_missing": ("first barrier", (FILLED, PRODUCTS)),
        "no_barriers": ("no barrier at all", ("cuda.syncthreads()", "pass")),
        "returns_early": ("return", (LOOP, f"if row >= m or col >= n:\n            return\n        {LOOP}")),
        "barriers_in_a_branch": ("inside an `if`", (IN_A_ROW, IN_A_BRANCH)),
        "no_zeros_past_k": ("past the end of k", (" and k0 + tx < k", ""), ("k0 + ty < k and ", "")),
        "nothing_stored_outside": ("never filled", *STORE_INSIDE),
        "cleared_only_once": (
            "still holds elements of the tile before",
            (LOOP, f"As[ty, tx] = float32(0)\n        Bs[ty, tx] = float32(0)\n        {LOOP}"),
            *STORE_INSIDE,
        ),
        "as_many_tiles_as_blocks": (
            "gridDim.x",
            (LOOP, "for i in range(cuda.gridDim.x):\n            k0 = i * T"),
        ),
        "whole_tiles_only": ("k // T", (LOOP, "for k0 in range(0, k // T * T, T):")),
        "wrong_row_of_the_tile": ("`As[tx, p]` takes a row", ("As[ty, p]", "As[tx, p]")),
        "wrong_column_of_the_tile": ("`Bs[p, ty]` takes a column", ("Bs[p, tx]", "Bs[p, ty]")),
        "x_and_y_swapped": (
            "swapped in both",
            ("As[ty, p]", "As[tx, p]"),
            ("Bs[p, tx]", "Bs[p, ty]"),
        ),
        "tile_of_a_read_transposed": ("`As` is filled in one order", ("As[ty, p]", "As[p, ty]")),
        "tile_of_b_read_transposed": ("`Bs` is filled in one order", ("Bs[p, tx]", "Bs[tx, p]")),
        "tile_of_a_transposed_and_read_by_x": (
            "`As` is filled transposed",
            ("As[ty, tx]", "As[tx, ty]"),
            ("As[ty, p]", "As[tx, p]"),
        ),
        "tile_of_b_from_a_row": ("is filled from `B[k0 + tx, col]`", ("k0 + ty", "k0 + tx")),
        "tile_of_b_transposed": ("bank conflict", ("Bs[ty, tx]", "Bs[tx, ty]"), ("Bs[p, tx]", "Bs[tx, p]")),
        "tile_of_a_transposed": (
            "when it is stored",
            ("As[ty, tx]", "As[tx, ty]"),
            ("As[ty, p]", "As[p, ty]"),
        ),
        "fetches_down_the_columns": (
            "not fetched coalesced",
            ("acc = float32(0)\n", "acc, a_row = float32(0), cuda.blockIdx.y * T + tx\n"),
            (STORE_AS, "As[tx, ty] = A[a_row, k0 + ty] if a_row < m and k0 + ty < k else float32(0)"),
        ),
        "still_naive": (
            "no shared memory",
            ("As = cuda.shared.array((T, T), float32)", "pass"),
            ("Bs = cuda.shared.array((T, T), float32)", "pass"),
            (f"{LOOP}\n            {IN_A_ROW}", NAIVE),
        ),
        "tiles_filled_but_not_used": (
            "past the tiles",
            ("range(T)", "range(min(T, k - k0) if row < m and col < n else 0)"),
            ("As[ty, p] * Bs[p, tx]", "A[row, k0 + p] * B[k0 + p, col]"),
        ),
        "only_a_in_a_tile": (
            "only A",
            ("Bs = cuda.shared.array((T, T), float32)", "pass"),
            (STORE_BS, "pass"),
            ("range(T)", "range(min(T, k - k0) if col < n else 0)"),
            ("Bs[p, tx]", "B[k0 + p, col]"),
        ),
        "sixteen_written_out": (
            "written out",
            ("(T, T)", "(16, 16)"),
            (LOOP, "for k0 in range(0, k, 16):"),
            ("range(T)", "range(16)"),
        ),
        "double_accumulator": ("float64", ("acc = float32(0)", "acc = 0.0")),
        "tiles_of_float64": (
            "8 bytes per element",
            ("(T, T), float32", "(T, T), float64"),
            ("As[ty, p] * Bs[p, tx]", "float32(As[ty, p]) * float32(Bs[p, tx])"),
        ),
        "as_in_document_002": (
            "T + 1 barriers per tile",
            (USED, f"{PRODUCTS}                cuda.syncthreads()"),
        ),
        "a_third_barrier": ("one barrier more", (STORE_BS, f"cuda.syncthreads()\n            {STORE_BS}")),
        "last_guard_exchanged": ("guard has its sizes swapped", (GUARD, "if row < n and col < m:")),
        "tile_of_a_from_a_column": ("is filled from `A[row, k0 + ty]`", ("k0 + tx", "k0 + ty")),
        "accumulator_reset": (
            "Only the last tile along k counts",
            (LOOP, f"{LOOP}\n            acc = float32(0)"),
        ),
        "reads_c_always": ("0 times NaN", (OLD_C, "alpha * acc + beta * C[row, col]")),
        "always_the_first_tile_of_b": (
            "`k0` is missing, `B[k0 + ty, col]`",
            ("B[k0 + ty, col]", "B[ty, col]"),
        ),
        "always_the_first_tile_of_a": (
            "`k0` is missing, `A[row, k0 + tx]`",
            ("A[row, k0 + tx]", "A[row, tx]"),
        ),
        "always_the_first_tiles": ("of A and of B", ("A[row, k0 + tx]", "A[row, tx]"), ("B[k0 + ty", "B[ty")),
        "times_t_once_too_often": (
            "once too often",
            (LOOP, "for t in range(0, k, T):\n            k0 = t * T"),
        ),
        "return_forgotten": ("returns nothing", ("return tiled", "")),
        "every_thread_clears_the_tiles": (
            "Every thread clears the whole tile",
            (LOOP, f"As[:] = 0\n        Bs[:] = 0\n        {LOOP}"),
        ),
        "every_thread_fills_the_tiles": ("Every thread fills the whole tile", (FETCHES, WHOLE_TILES)),
        "one_thread_fetches_all": (
            "the others fetch nothing",
            (FETCHES, BY_ONE_THREAD),
        ),
        "one_tile_too_many": (
            "one tile too many",
            (LOOP, "for i in range(k // T + 1):\n            k0 = i * T"),
        ),
        "no_block_index": ("block index is missing", ("col, row = cuda.grid(2)", "col, row = tx, ty")),
        "barriers_not_called": ("without parentheses", ("cuda.syncthreads()", "cuda.syncthreads")),
        "clamped_past_k": (
            "the last element is fetched again",
            (STORE_AS, "As[ty, tx] = A[min(row, m - 1), min(k0 + tx, k - 1)]"),
            (STORE_BS, "Bs[ty, tx] = B[min(k0 + ty, k - 1), min(col, n - 1)]"),
        ),
        "tile_of_numpy": (
            "block shares is `cuda.shared.array(shape, dtype)`",
            ("As = cuda.shared.array((T, T), float32)", "As = np.zeros((T, T), np.float32)"),
        ),
        "counts_tiles": (
            "counts tiles, 0, 1, 2",
            (LOOP, "for k0 in range((k + T - 1) // T):"),
        ),
        "tile_of_a_transposed_and_fetched_by_y": (
            "holds row `ty` of A",
            (STORE_AS, "As[tx, ty] = A[row, k0 + ty] if row < m and k0 + ty < k else float32(0)"),
        ),
        "tile_of_b_transposed_and_fetched_by_x": (
            "holds column `tx` of B",
            (STORE_BS, "Bs[tx, ty] = B[k0 + tx, col] if k0 + tx < k and col < n else float32(0)"),
        ),
        "x_and_y_of_the_thread_swapped": (
            "your `tx` holds `cuda.threadIdx.y`",
            (THREAD, "ty, tx = cuda.threadIdx.x, cuda.threadIdx.y\n"),
            ("col, row = cuda.grid(2)", "row, col = cuda.blockIdx.y * T + ty, cuda.blockIdx.x * T + tx"),
        ),
        "guard_one_too_far_along_k": (
            "`k0 + tx <= k` lets one step too many",
            ("k0 + tx < k", "k0 + tx <= k"),
        ),
        "guard_one_too_far_along_m": (
            "`row <= m` lets one index too many",
            ("row < m and k0", "row <= m and k0"),
        ),
        "guard_one_too_far_the_other_way_round": ("`k >= k0 + ty` lets one", ("k0 + ty < k", "k >= k0 + ty")),
        "barrier_before_the_loop": ("outside the loop over k", (LOOP, f"cuda.syncthreads()\n        {LOOP}")),
        "barrier_before_the_loads": (
            "stands too early",
            (FILLED, PRODUCTS),
            (STORE_AS, f"cuda.syncthreads()\n            {STORE_AS}"),
        ),
        "barrier_between_the_loads": (
            "stands too early",
            (FILLED, PRODUCTS),
            (STORE_BS, f"cuda.syncthreads()\n            {STORE_BS}"),
        ),
        "alpha_twice": (ALPHA_TWICE, ("acc += As", "acc += alpha * As")),
        "steps_of_one": ("moves on by 1", (LOOP, "for k0 in range(k):")),
        "block_forgotten_in_b": ("first block's columns of B", ("B[k0 + ty, col]", "B[k0 + ty, tx]")),
        "block_forgotten_in_a": ("first block's rows of A", ("A[row, k0 + tx]", "A[ty, k0 + tx]")),
        "first_product_of_every_tile_missing": ("starts at 0", ("range(T)", "range(1, T)")),
        "a_row_for_every_thread": ("a row of many elements", (STORE_AS, "As[ty, :] = A[row, k0:k0 + T]")),
        "sums_in_c": (
            "kept in C itself",
            (STORE_C, ""),
            (
                "acc = float32(0)",
                f"{GUARD}\n            C[row, col] = beta * C[row, col] if beta != 0 else float32(0)",
            ),
            (
                "acc += As[ty, p] * Bs[p, tx]",
                f"{GUARD}\n                    C[row, col] += alpha * As[ty, p] * Bs[p, tx]",
            ),
        ),
        "zeros_of_float64": ("makes a float64 of both sides", ("else float32(0)", "else 0.0")),
        "whole_zeros": ("is a whole number", ("else float32(0)", "else 0")),
        "inner_loop_to_32": ("must run to T", ("range(T)", "range(32)")),
        "calls_its_kernel": (
            "launches a kernel by itself",
            ("return tiled", "tiled(T, T, T, 1, None, None, 0, None)\n    return tiled"),
        ),
    },
)


# ---- smallest_failing_shape --------------------------------------------------------------------------------


def _shapes(**changed: object) -> str:
    """The right shapes with some of them changed, as the checker is called."""
    shapes = {"a": (1, 1, 1), "b": (1, 1, 5), "c": (2, 1, 1), "d": (1, 1, 5)} | changed
    return ", ".join(f"{letter}={shape}" for letter, shape in shapes.items())


WRONG["smallest_failing_shape"] = passing(
    "smallest_failing_shape",
    {
        "a_multiple_of_the_tile": ("multiple of T", _shapes(a=(4, 4, 4))),
        "a_not_the_smallest": ("smaller", _shapes(a=(4, 4, 5))),
        "a_nothing_to_add_up": ("at least 1", _shapes(a=(1, 1, 0))),
        "b_fits_one_tile": ("only one tile", _shapes(b=(1, 1, 1))),
        "b_square": ("as many", _shapes(b=(8, 8, 8))),
        "b_not_the_smallest": ("suspect b", _shapes(b=(4, 4, 8))),
        "c_square": ("m and n are equal", _shapes(c=(3, 3, 1))),
        "c_not_the_smallest": ("suspect c", _shapes(c=(5, 4, 1))),
        "d_one_tile": ("first tile", _shapes(d=(1, 1, 3))),
        "d_whole_tiles": ("whole", _shapes(d=(1, 1, 8))),
        "d_not_the_smallest": ("suspect d", _shapes(d=(4, 4, 6))),
        "c_and_d_exchanged": ("swapped", _shapes(c=(1, 1, 5), d=(2, 1, 1))),
        "no_shape": ("three whole numbers", _shapes(a=1)),
    },
)


# ---- tile_walk ---------------------------------------------------------------------------------------------

ELEMENTS, PLACE = "range(tid, BM * BK, THREADS)", "(e // BK, e % BK)"
BEGIN, RETURN, APPEND = "places = []", "return places", "places.append((e // BK, e % BK))"
IN_PASSES = (ELEMENTS, "[tid + i * THREADS for i in range(PASSES)]")
ROWS_AND_COLUMNS = "return np.array([r for r, _ in places]), np.array([c for _, c in places])"

WRONG["tile_walk"] = altered(
    "tile_walk",
    {
        "row_and_column_swapped": ("Row and column are swapped", (PLACE, "(e % BK, e // BK)")),
        "divided_by_the_rows": ("BM is how many rows", (PLACE, "(e // BM, e % BM)")),
        "divided_by_the_threads": ("THREADS is how far", (PLACE, "(e // THREADS, e % THREADS)")),
        "first_pass_only": ("only the first pass", (ELEMENTS, "[tid]")),
        "thread_and_pass_swapped": (
            "`tid` and `i` are swapped",
            (ELEMENTS, "[tid * THREADS + i for i in range(THREADS) if tid * THREADS + i < BM * BK]"),
        ),
        "without_end": (
            "does not come to an end",
            (f"for e in {ELEMENTS}:", "e = tid\n    while e < BM * BK:"),
        ),
        "a_chunk_each": (
            "a chunk of its own",
            ("places = []", "places, share = [], (BM * BK + THREADS - 1) // THREADS"),
            (ELEMENTS, "range(tid * share, min((tid + 1) * share, BM * BK))"),
        ),
        "shares_of_equal_size": (
            "must take neighbouring elements",
            (ELEMENTS, "range(tid * BM * BK // THREADS, (tid + 1) * BM * BK // THREADS)"),
        ),
        "one_too_far": ("one element too far", ("BM * BK,", "BM * BK + 1,")),
        "last_one_missing": ("is left out", ("BM * BK,", "BM * BK - 1,")),
        "without_tid": ("`tid` is missing", ("range(tid,", "range(0,")),
        "one_by_one": ("all that follow", (ELEMENTS, "range(tid, BM * BK)")),
        "whole_passes_only": ("rounded down", ("BM * BK,", "BM * BK // THREADS * THREADS,")),
        "beyond_the_tile": ("beyond the tile", ("BM * BK,", "(BM * BK + THREADS - 1) // THREADS * THREADS,")),
        "down_the_columns": ("down the columns", (PLACE, "(e % BM, e // BM)")),
        "on_by_a_row": ("moves on by BK", ("THREADS):", "BK):")),
        "always_the_same_column": (
            "column stays the same",
            (ELEMENTS, "range(tid // BK, BM, THREADS // BK)"),
            (PLACE, "(e, tid % BK)"),
        ),
        "nothing_collected": ("No thread fetches anything", (f"places.append({PLACE})", "pass")),
        "numbers_of_elements": ("list of pairs", (PLACE, "e")),
        "fractions": ("whole numbers", (PLACE, "(e / BK, e % BK)")),
        "text": ("here `0, 0`", (PLACE, 'f"{e // BK}, {e % BK}"')),
        "two_walks_for_all": ("8 threads fetch element (0, 0)", ("range(tid,", "range(tid % 2,")),
        "every_other_pass": ("no thread fetches element (1, 4)", ("THREADS):", "2 * THREADS):")),
        "numbers_of_the_example": ("Right for the example", (ELEMENTS, "range(tid, 18, 8)"), ("BK,", "6,")),
        "backwards": ("wrong order", (RETURN, "return places[::-1]")),
        "another_thread": ("not by the thread", ("range(tid,", "range(THREADS - 1 - tid,")),
        "a_set": ("A set forgets the order", (RETURN, "return set(places)")),
        "none_for_idle_threads": ("Thread 12 of 16 has nothing to fetch", (RETURN, "return places or None")),
        "return_in_a_branch": (
            "Thread 2 of 16 has elements",
            (RETURN, "if tid < 2:\n        return places"),
        ),
        "unknown_name_in_a_generator": (
            "stopped with NameError",
            (RETURN, "return (unknown for place in places)"),
        ),
        "generator_without_end": (
            "This never ends",
            (BEGIN, "e = tid"),
            (f"for e in {ELEMENTS}", "while e < BM * BK"),
            (APPEND, f"yield {PLACE}"),
            (RETURN, ""),
        ),
        "rows_and_columns": ("Pair them", (RETURN, ROWS_AND_COLUMNS)),
        "list_in_a_list": ("a list inside the list", (RETURN, "return [places]")),
        "one_pass_too_many": ("one pass too many", IN_PASSES, ("PASSES", "BM * BK // THREADS + 1")),
        "into_the_row_below": ("row BM", (ELEMENTS, "range(tid, (BM + 1) * BK, THREADS)")),
        "at_least_one_pass": (
            "number of passes is rounded,",
            IN_PASSES,
            ("PASSES", "max(1, BM * BK // THREADS)"),
        ),
        "first_pass_missing": ("first pass is missing", ("range(tid,", "range(tid + THREADS,")),
        "last_pass_missing": ("last pass is missing", ("BM * BK,", "BM * BK - THREADS + 1,")),
        "rows_from_one": ("Rows and columns count from 0", (PLACE, "(e // BK + 1, e % BK + 1)")),
        "elements_from_one": ("Elements count from 0", (PLACE, "((e - 1) // BK, (e - 1) % BK)")),
        "passes_from_a_new_row": (
            "begins on a new row",
            ("THREADS):", "(THREADS + BK - 1) // BK * BK):"),
        ),
        "row_by_row": (
            "row is walked by itself",
            (ELEMENTS, "[r * BK + c for r in range(BM) for c in range(tid, BK, THREADS)]"),
        ),
        "the_whole_tile": ("That is the whole tile", (ELEMENTS, "range(BM * BK)")),
    },
)


# ---- transpose ---------------------------------------------------------------------------------------------

DECLARED = "tile = cuda.shared.array((T, P), float32)"
GUARD_IN, GUARD_OUT = "if row0 + ty < m and col0 + tx < n:", "if col0 + ty < n and row0 + tx < m:"
FILL, TURN = "tile[ty, tx] = A[row0 + ty, col0 + tx]", "out[col0 + ty, row0 + tx] = tile[tx, ty]"
TURNED = f"""        cuda.syncthreads()
        {GUARD_OUT}
            {TURN}
"""
FILLED_IN = f"""        {GUARD_IN}
            {FILL}
"""
ALL_OF_TILE = """for i in range(T):
            for j in range(T):
                if row0 + i < m and col0 + j < n:
                    tile[i, j] = A[row0 + i, col0 + j]
"""
NO_TILE = ((f"        {DECLARED}\n", ""), ("        cuda.syncthreads()\n", ""))

WRONG["transpose"] = altered(
    "transpose",
    {
        "stored_down_a_column": (
            "Storing goes down a column of `out`: 32 sectors",
            *NO_TILE,
            (FILLED_IN, ""),
            (
                f"{GUARD_OUT}\n            {TURN}",
                f"{GUARD_IN}\n            out[col0 + tx, row0 + ty] = A[row0 + ty, col0 + tx]",
            ),
        ),
        "read_down_a_column": (
            "Reading goes down a column of `A`: 32 sectors",
            *NO_TILE,
            (FILLED_IN, ""),
            (TURN, "out[col0 + ty, row0 + tx] = A[row0 + tx, col0 + ty]"),
        ),
        "tile_filled_down_a_column": (
            "A is read down a column",
            (GUARD_IN, "if row0 + tx < m and col0 + ty < n:"),
            (FILL, "tile[tx, ty] = A[row0 + tx, col0 + ty]"),
        ),
        "tile_emptied_down_a_column": (
            "`out` is stored down a column",
            (GUARD_OUT, "if col0 + tx < n and row0 + ty < m:"),
            (TURN, "out[col0 + tx, row0 + ty] = tile[ty, tx]"),
        ),
        "no_barrier": ("There is no barrier", ("cuda.syncthreads()", "pass")),
        "barrier_not_called": ("without parentheses", ("cuda.syncthreads()", "cuda.syncthreads")),
        "barrier_too_early": (
            "before the tile is filled",
            ("        cuda.syncthreads()\n", ""),
            (FILLED_IN, f"        cuda.syncthreads()\n{FILLED_IN}"),
        ),
        "barrier_in_the_guard": (
            "inside an `if`",
            ("        cuda.syncthreads()", "            cuda.syncthreads()"),
        ),
        "returns_early": (
            "has left with `return`",
            (GUARD_IN, "if row0 + ty >= m or col0 + tx >= n:\n            return\n        if True:"),
        ),
        "guard_of_the_load_for_both": ("The store has the guard of the load", (GUARD_OUT, GUARD_IN)),
        "guard_of_the_store_swapped": (
            "guard of the store has rows and columns swapped",
            (GUARD_OUT, "if col0 + ty < m and row0 + tx < n:"),
        ),
        "guard_of_the_load_swapped": (
            "guard of the load lets threads out of A and keeps",
            (GUARD_IN, "if row0 + ty < n and col0 + tx < m:"),
        ),
        "both_guards_around_the_store": (
            "both guards stand around the store",
            (GUARD_OUT, f"{GUARD_IN[:-1]} and col0 + ty < n and row0 + tx < m:"),
        ),
        "no_guard_of_the_load": ("Threads load outside A", (GUARD_IN, "if True:")),
        "no_guard_of_the_store": ("the store needs a guard of its own", (GUARD_OUT, "if True:")),
        "load_too_strict": ("that nobody filled", (GUARD_IN, "if row0 + ty < m - 1 and col0 + tx < n:")),
        "store_too_strict": ("last row of `out`", (GUARD_OUT, "if col0 + ty < n - 1 and row0 + tx < m:")),
        "store_too_strict_in_a_row": (
            "last column of `out`",
            (GUARD_OUT, "if col0 + ty < n and row0 + tx < m - 1:"),
        ),
        "block_not_swapped": (
            "the output block is not swapped",
            (GUARD_OUT, "if row0 + ty < n and col0 + tx < m:"),
            (TURN, "out[row0 + ty, col0 + tx] = tile[tx, ty]"),
        ),
        "tile_not_turned": ("within them nothing is transposed", ("tile[tx, ty]", "tile[ty, tx]")),
        "copied": (
            "is a copy of A",
            (GUARD_OUT, "if row0 + ty < n and col0 + tx < m:"),
            (TURN, "out[row0 + ty, col0 + tx] = tile[ty, tx]"),
        ),
        "no_padding": ("lies in one bank", ("P = T + 1", "P = T")),
        "filled_with_conflicts": (
            "filling `tile` takes 32",
            ("P = T + 1", "P = T"),
            ("tile[ty, tx]", "tile[tx, ty]"),
            ("= tile[tx, ty]", "= tile[ty, tx]"),
        ),
        "padding_of_eight": ("begins 8 banks after", ("P = T + 1", "P = T + 8")),
        "a_row_more": ("one row more", ("(T, P), float32", "(P, T), float32")),
        "tile_of_float64": ("holds float64", ("(T, P), float32", "(T, P), float64")),
        "tile_of_float16": ("less than 4 bytes", ("(T, P), float32", "(T, P), float16")),
        "tile_of_whole_numbers": ("are int32, whole numbers", ("(T, P), float32", "(T, P), int32")),
        "size_written_out": ("its size is written out", ("(T, P), float32", "(32, 33), float32")),
        "indexed_as_all_of_a": ("is past the end of `tile`", ("tile[ty, tx]", "tile[row0 + ty, col0 + tx]")),
        "no_block_index": (
            "the block index is missing",
            ("cuda.blockIdx.y * T, cuda.blockIdx.x * T", "0, 0"),
        ),
        "every_thread_fills_the_tile": (
            "Every thread fills the whole tile",
            (FILLED_IN, "        " + ALL_OF_TILE),
        ),
        "one_thread_fetches_all": (
            "one thread fetches for the whole block",
            (
                FILLED_IN,
                "        if tx == 0 and ty == 0:\n            "
                + ALL_OF_TILE.replace("\n", "\n    ").rstrip()
                + "\n",
            ),
        ),
        "loaded_twice": (
            "A is loaded",
            (TURNED, TURNED.replace("tile[tx, ty]", "tile[tx, ty] if A[0, 0] > 0 else float32(0)")),
        ),
        "stores_into_a": ("which is input", (FILL, f"{FILL}\n            A[row0 + ty, col0 + tx] = 0")),
        "factors_of_float64": ("in float64", ("= tile[tx, ty]", "= 1.0 * tile[tx, ty]")),
        "return_forgotten": ("returns nothing", ("return transpose", "")),
    },
)
