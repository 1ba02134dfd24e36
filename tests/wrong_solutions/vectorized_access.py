"""Wrong answers that people really give to the exercises of `vectorized_access`."""

from tests.wrong_solutions.altering import Wrong, altered, passing

LOOP = "for i in range(0, BM, ROWS):"
GROUP = "r, c = i + tid // (BK // 4), tid % (BK // 4) * 4"
COPY = "store4(out, (r, c), load4(A, (r, c)))"


def four_at_once() -> dict[str, Wrong]:
    one_by_one = "for e in range(4):\n                out[r, c + e] = "
    mistakes = {
        "sizes_of_the_array": (
            "A's rows are longer than the tile",
            ("tid // (BK // 4), tid % (BK // 4)", "tid // (A.shape[1] // 4), tid % (A.shape[1] // 4)"),
        ),
        "divided_by_bk": (
            "divide by `BK // 4`",
            ("ROWS = THREADS // (BK // 4)", "ROWS = THREADS // BK"),
            (GROUP, "r, c = i + tid // BK, tid % BK * 4"),
        ),
        "row_and_column_swapped": (
            "are swapped",
            (GROUP, "r, c = i + tid % (BK // 4), tid // (BK // 4) * 4"),
        ),
        "index_as_a_list": ("an index is a tuple", ("load4(A, (r, c))", "load4(A, [r, c])")),
        "column_not_times_four": ("multiplied by 4", (GROUP, GROUP.removesuffix(" * 4"))),
        "index_in_two_arguments": ("an index is one argument", ("load4(A, (r, c))", "load4(A, r, c)")),
        "four_scalars": ("A is read one float at a time", (COPY, f"{one_by_one}A[r, c + e]")),
        "stored_one_by_one": (
            "out is written one float at a time",
            (COPY, f"v = load4(A, (r, c))\n            {one_by_one}v[e]"),
        ),
        "lanes_down_a_column": (
            "does not lie side by side",
            (GROUP, "r, c = i + tid % ROWS, tid // ROWS * 4"),
        ),
        "a_slice_for_a_four": (
            "store4 stores a tuple of 4 numbers",
            ("load4(A, (r, c))", "A[r, c : c + 4]"),
        ),
        "rounds_overlap": (
            "passes overlap",
            (LOOP, "for i in range(0, BM - ROWS + 1, THREADS // BK):"),
        ),
        "one_round": ("Only the first pass", (LOOP, "for i in range(0, min(1, BM - tid // (BK // 4))):")),
        "goes_on_by_the_threads": (
            "it goes on by `THREADS` rows",
            (LOOP, "for i in range(tid // (BK // 4), BM, THREADS):"),
            ("r, c = i + tid // (BK // 4),", "r, c = i,"),
        ),
        "a_s_row_and_column_swapped": (
            "Row and column are swapped in `load4(A, (c, r))`",
            ("A, (r, c)", "A, (c, r)"),
        ),
        "one_round_too_many": ("below the tile", (LOOP, "for i in range(0, BM + ROWS, ROWS):")),
        "the_four_before_the_place": (
            "The place comes before the four",
            (COPY, "store4(out, load4(A, (r, c)), (r, c))"),
        ),
    }
    return altered("four_at_once", mistakes)


LOAD, SCATTER, GATHER = (
    "v = load4(A, (r, c))",
    "As[c + e, r] = v[e]",
    "store4(out, (p, j), load4(As, (p, j)))",
)
SHARED = "cuda.shared.array((BK, WIDTH), float32, 16)"
FILLING = """\
            v = load4(A, (r, c))
            for e in range(4):
                As[c + e, r] = v[e]
"""


def transposing_scatter() -> dict[str, Wrong]:
    flat = ("WIDTH = BM + PAD", "WIDTH = BM + PAD\n    SIZE = BK * WIDTH"), ("(BK, WIDTH)", "SIZE")
    of_four = ", ".join(f"As[j + {e}, p]" for e in range(4))
    mistakes = {
        "elements_of_eight_bytes": ("have 8 bytes each", ("float32, 16)", "np.float64, 16)")),
        "untransposed": (
            "Nothing is transposed",
            *flat,
            ("As[c + e, r]", "As[r * BK + c + e]"),
            ("load4(As, (p, j))", "load4(As, p * BM + j)"),
        ),
        "bk_as_the_row_length": (
            "BK is the length of A's rows",
            *flat,
            ("As[c + e, r]", "As[(c + e) * BK + r]"),
            ("load4(As, (p, j))", "load4(As, p * WIDTH + j)"),
        ),
        "padding_on_the_store_only": (
            "both where you store and where you read",
            *flat,
            ("As[c + e, r]", "As[(c + e) * WIDTH + r]"),
            ("load4(As, (p, j))", "load4(As, p * BM + j)"),
        ),
        "component_0_four_times": ("are its first, `v[0]`", (SCATTER, "As[c + e, r] = v[0]")),
        "four_side_by_side": ("side by side, in one row", ("As[c + e, r]", "As[c, r + e]")),
        "components_backwards": ("reverse order", (SCATTER, "As[c + 3 - e, r] = v[e]")),
        "all_into_one_row": ("Nothing is stored into row", (SCATTER, "As[c, r] = v[e]")),
        "one_pass": ("In one pass the block fetches", ("range(0, BM, A_ROWS)", "range(0, A_ROWS, A_ROWS)")),
        "no_padding": ("without the PAD", ("WIDTH = BM + PAD", "WIDTH = BM")),
        "padding_as_a_number": ("PAD is 0 here", ("WIDTH = BM + PAD", "WIDTH = BM + 4")),
        "a_s_row_and_column_swapped": ("swapped in `load4(A, (c, r))`", ("A, (r, c)", "A, (c, r)")),
        "no_barrier": (
            "barrier between filling As and reading it is missing",
            ("        cuda.syncthreads()\n", ""),
        ),
        "scalars_from_a": (
            "A is read one float at a time",
            (f"            {LOAD}\n", ""),
            (SCATTER, "As[c + e, r] = A[r, c + e]"),
        ),
        "one_row_too_far": ("is one too far: As has BK rows", ("As[c + e, r]", "As[c + e + 1, r]")),
        "a_four_into_a_row_of_as": (
            "into one row",
            (
                f"            for e in range(4):\n                {SCATTER}\n",
                "            store4(As, (c, r), v)\n",
            ),
        ),
        "waits_for_its_warp": ("one warp only", ("cuda.syncthreads()", "cuda.syncwarp()")),
        "computed_in_float64": ("computed in float64", (SCATTER, f"{SCATTER} * 1.0")),
        # As is filled in A's order and read down its columns.
        "gathered_instead_of_scattered": (
            "As is read one float at a time",
            (SHARED, "cuda.shared.array((BM, BK), float32, 16)"),
            (FILLING, "            store4(As, (r, c), load4(A, (r, c)))\n"),
            (GATHER, f"store4(out, (p, j), ({of_four}))"),
        ),
        "past_shared_memory": (
            "never goes through shared memory",
            (SCATTER, "out[c + e, r] = v[e]"),
            (f"            {GATHER}", "            As[p, j] = 0"),
        ),
        "scalars_into_out": (
            "out is written one float at a time",
            (
                GATHER,
                "v = load4(As, (p, j))\n            for e in range(4):\n                out[p, j + e] = v[e]",
            ),
        ),
        "alignment_not_said": ("third argument", (SHARED, "cuda.shared.array((BK, WIDTH), float32)")),
        "width_computed_in_the_kernel": ("computed inside the kernel", ("(BK, WIDTH)", "(BK, BM + PAD)")),
        "a_thread_per_row_of_out": (
            "where the tile is stored",
            ("for i in range(0, BK, OUT_ROWS):", "for j in range(0, BM if tid < BK else 0, 4):"),
            ("            p, j = i + tid // (BM // 4), tid % (BM // 4) * 4\n", ""),
            ("(p, j)", "(tid, j)"),
        ),
        "without_shared_memory": (
            "no shared memory",
            (f"        As = {SHARED}\n", ""),
            (SCATTER, "out[c + e, r] = v[e]"),
            (f"            {GATHER}", "            pass"),
        ),
    }
    return altered("transposing_scatter", mistakes)


def scatter_padding() -> dict[str, Wrong]:
    answers = {
        "no_conflict_without_padding": ("four different banks", "wavefronts=[1, 1, 1], take=0"),
        "all_in_one_bank": ("8 neighbouring banks", "wavefronts=[32, 1, 2], take=4"),
        "those_of_32": ("as with BK = 32", "wavefronts=[8, 2, 4], take=4"),
        "groups_meet": ("do these groups of 8 meet", "wavefronts=[4, 2, 2], take=4"),
        "padding_counted_once": ("so that 4 rows further it is 8", "wavefronts=[4, 4, 4], take=4"),
        "four_is_perfect": ("Lanes 0 and 2", "wavefronts=[4, 1, 1], take=4"),
        "four_changes_nothing": ("no longer meet", "wavefronts=[4, 1, 4], take=4"),
        "fewest_wavefronts": ("no multiple of 16", "wavefronts=[4, 1, 2], take=2"),
        "one_word_as_always": ("was not asked about", "wavefronts=[4, 1, 2], take=1"),
        "none": ("Without padding", "wavefronts=[4, 1, 2], take=0"),
    }
    return passing("scatter_padding", answers)


LOAD_GUARD = "row0 + r < m and k0 + c < k"
CLEARED, CLEAR_GUARD = "v[e] if k0 + c + e < k else float32(0)", "k0 + c + e < k"
GUARDED_LOAD = f"v = load4(A, (row0 + r, k0 + c)) if {LOAD_GUARD} else zeros"


def ragged_fours() -> dict[str, Wrong]:
    scalars = f"A[row0 + r, k0 + c + e] if row0 + r < m and {CLEAR_GUARD} else float32(0)"
    only_inside = f"""\
            if {LOAD_GUARD}:
                v = load4(A, (row0 + r, k0 + c))
                for e in range(4):
                    if {CLEAR_GUARD}:
                        As[c + e, r] = v[e]
"""
    filling = f"""\
            {GUARDED_LOAD}
            for e in range(4):
                As[c + e, r] = {CLEARED}
"""
    mistakes = {
        "sizes_of_the_array": (
            "The sizes come from `A.shape`",
            ("if k0 + c + e < k", "if k0 + c + e < A.shape[1]"),
        ),
        "trusts_the_zeros_of_b": (
            "Whole groups of four past k",
            (LOAD_GUARD, "row0 + r < m"),
            (CLEARED, "v[e]"),
        ),
        "skips_the_vector": (
            "left out altogether",
            (LOAD_GUARD, "row0 + r < m and k0 + c + 3 < k"),
            (CLEARED, "v[e]"),
        ),
        "guards_the_first_element_only": ("sees only the first", (CLEARED, "v[e]")),
        "guards_four_scalars": (
            "one float at a time",
            (f"            {GUARDED_LOAD}\n", ""),
            (CLEARED, scalars),
        ),
        "rows_unguarded": ("below row m", (LOAD_GUARD, "k0 + c < k")),
        "nothing_stored_outside": ("nothing is stored", (filling, only_inside)),
        "one_too_far_along_k": ("`k0 + c <= k` goes one too far", ("k0 + c < k", "k0 + c <= k")),
        "cleared_one_too_late": ("`k0 + c + e <= k` goes one too far", (CLEAR_GUARD, "k0 + c + e <= k")),
        "rows_end_at_k": ("asks for the wrong end", (LOAD_GUARD, "row0 + r < k and k0 + c < m")),
        "always_the_first_tile": ("`k0` is left out", ("k0 + c", "c")),
        "always_the_first_rows": ("`row0` is left out", ("row0 + r", "r")),
        "one_element_of_four": ("at its place in As", ("As[c + e, r] =", "As[c + 3 - e, r] =")),
        "one_round_of_a": ("never filled, although", (LOOP, "for i in range(0, ROWS, ROWS):")),
        "goes_on_by_one": (
            "goes on by 1, into the rows of other threads",
            (LOOP, "for i in range(tid // (BK // 4), BM):"),
            ("r, c = i + tid // (BK // 4),", "r, c = i,"),
        ),
        "zeros_without_a_type": (
            "become float64",
            ("zeros = (float32(0), float32(0), float32(0), float32(0))", "zeros = (0.0, 0.0, 0.0, 0.0)"),
        ),
        "zeros_without_a_type_outside": (
            "`zeros = (0, 0, 0, 0)` has no floats",
            ("        zeros = (float32(0), float32(0), float32(0), float32(0))\n", ""),
            (
                "    ROWS = THREADS // (BK // 4)\n",
                "    ROWS = THREADS // (BK // 4)\n    zeros = (0, 0, 0, 0)\n",
            ),
        ),
        "waits_itself": ("There is a barrier", (filling, f"{filling}        cuda.syncthreads()\n")),
        "numbered_anew": (
            "use the parameter `tid`",
            ("        zeros = (", "        tid = cuda.threadIdx.x\n        zeros = ("),
        ),
        "everyone_clears_all": (
            "clears the whole of As",
            ("        zeros = (", "        As[:, :] = 0\n        zeros = ("),
        ),
        "everyone_clears_all_rows": (
            "clears the whole of As",
            ("        zeros = (", "        As[:] = 0\n        zeros = ("),
        ),
        "a_tuple_times_four": (
            "write its four elements out",
            ("(float32(0), float32(0), float32(0), float32(0))", "(float32(0),) * 4"),
        ),
        "assigns_to_the_tuple": (
            "A tuple cannot be assigned to",
            (f"As[c + e, r] = {CLEARED}", "v[e] = float32(0)"),
        ),
        "load_without_k0": ("`c < k` leaves out `k0`", ("and k0 + c < k", "and c < k")),
        "clearing_without_k0": ("`c + e < k` leaves out `k0`", (CLEAR_GUARD, "c + e < k")),
        "clears_nan_by_its_value": ("infinity is not", (CLEARED, "float32(0) if v[e] != v[e] else v[e]")),
        "clears_whatever_is_not_finite": (
            "A NaN that belongs to A",
            (CLEARED, "v[e] if abs(v[e]) < float32(3e38) else float32(0)"),
        ),
        "a_kernel": ("device=True", ("@cuda.jit(device=True)", "@cuda.jit")),
    }
    return altered("ragged_fours", mistakes)


READ_OF_AS = "As[p, y0 + i] if TRANSPOSED else As[y0 + i, p]"
CHOICE = "(BK, BM) if TRANSPOSED else (BM, BK)"
MADE = "make_copies(BM, BN, BK, TM, TN, FOURS, TRANSPOSED)"
FETCH_A = "fetch_a(m, k, A, row0, k0, As, tid)"
FETCH_B = "fetch_b(k, n, B, k0, col0, Bs, tid)"


def both_switches() -> dict[str, Wrong]:
    mistakes = {
        "read_as_if_untransposed": ("as if it were untransposed", (READ_OF_AS, "As[y0 + i, p]")),
        "read_as_if_transposed": ("as if it were transposed", (READ_OF_AS, "As[p, y0 + i]")),
        "shape_of_a_plain_tile": ("it is BK rows of BM", (CHOICE, "(BM, BK)")),
        "shape_of_a_transposed_tile": ("it is BM rows of BK", (CHOICE, "(BK, BM)")),
        "alignment_not_said": ("third argument", ("array(SHAPE, float32, 16)", "array(SHAPE, float32)")),
        "switches_swapped": (
            "FOURS needs multiples of 4",
            (MADE, "make_copies(BM, BN, BK, TM, TN, TRANSPOSED, FOURS)"),
        ),
        "never_by_fours": (
            "of `A` are loaded one float at a time",
            (MADE, "make_copies(BM, BN, BK, TM, TN, False, TRANSPOSED)"),
        ),
        "never_transposed": (
            "neighbouring rows of A's tile lie side by side",
            (MADE, "make_copies(BM, BN, BK, TM, TN, FOURS, False)"),
            (CHOICE, "(BM, BK)"),
            (READ_OF_AS, "As[y0 + i, p]"),
        ),
        "always_transposed": (
            "neighbouring columns of A's tile lie side by side",
            (MADE, "make_copies(BM, BN, BK, TM, TN, FOURS, True)"),
            (CHOICE, "(BK, BM)"),
            (READ_OF_AS, "As[p, y0 + i]"),
        ),
        "steps_by_four": (
            "The last steps of each tile",
            ("for p in range(BK):", "for p in range(BK // 4 * 4):"),
        ),
        "first_rows_of_the_tile": (
            "All threads read the same rows",
            (READ_OF_AS, "As[p, i] if TRANSPOSED else As[i, p]"),
        ),
        "one_row_for_all": (
            "must go on with `i`",
            (READ_OF_AS, "As[p, y0] if TRANSPOSED else As[y0, p]"),
        ),
        "rows_of_the_neighbours": (
            "are its neighbours' as well",
            (READ_OF_AS, "As[p, ty + i] if TRANSPOSED else As[ty + i, p]"),
        ),
        "elements_of_eight_bytes": (
            "`As` has elements of 8 bytes",
            ("array(SHAPE, float32, 16)", "array(SHAPE, np.float64, 16)"),
        ),
        "places_swapped_in_the_call": (
            "The call is `fetch_b(",
            (FETCH_B, "fetch_b(k, n, B, col0, k0, Bs, tid)"),
        ),
        "numbered_along_x": ("The call is `fetch_a(", (FETCH_A, "fetch_a(m, k, A, row0, k0, As, tx)")),
        "every_row_of_threads_does_the_same": (
            "its own number in the whole block",
            ("Bs, tid)", "Bs, cuda.threadIdx.x)"),
            ("As, tid)", "As, cuda.threadIdx.x)"),
        ),
        "results_never_set_to_zero": (
            "set its elements to zero",
            ("                acc[i, j] = 0\n", "                pass\n"),
        ),
        "nobody_fills_bs": ("`fetch_b` is not called", (f"            {FETCH_B}\n", "")),
        "nobody_fills_anything": (
            "Nobody fills the tiles",
            (f"            {FETCH_A}\n", ""),
            (f"            {FETCH_B}\n", ""),
        ),
        "read_in_the_inner_loop": (
            "`As` is read more often",
            ("acc[i, j] += a[i] * b[j]", f"acc[i, j] += ({READ_OF_AS}) * b[j]"),
        ),
        "no_first_barrier": (
            "The first barrier is missing",
            ("            cuda.syncthreads()\n            for p", "            for p"),
        ),
        "stores_nothing": (
            "nothing is ever stored",
            ("        put(m, n, alpha, beta, C, row0 + y0, col0 + x0, acc)\n", ""),
        ),
        "transposed_is_forgotten": (
            "both its shape and your reads must follow the switch",
            ("SHAPE = (BK, BM) if TRANSPOSED else (BM, BK)", "SHAPE = (BM, BK)"),
            ("As[p, y0 + i] if TRANSPOSED else As[y0 + i, p]", "As[y0 + i, p]"),
        ),
        "everyone_stores_in_the_corner": (
            "the same place from several threads",
            ("row0 + y0, col0 + x0, acc", "row0, col0, acc"),
        ),
    }
    return altered("both_switches", mistakes)


def stray_read() -> dict[str, Wrong]:
    answers = {
        "blames_the_store": ("inside the guard", 'access=("C", "store"), shape=(32, 17)'),
        "blames_a": ("are guarded", 'access=("A", "load"), shape=(32, 17)'),
        "blames_k": ("k has nothing to do", 'access=("C", "load"), shape=(32, 32, 5)'),
        "the_smallest_that_shows_it": ("below C's last row", 'access=("C", "load"), shape=(1, 1)'),
        "rows_need_not_be_whole": ("below C's last row", 'access=("C", "load"), shape=(31, 17)'),
        "too_few_rows_and_columns": ("read behind that", 'access=("C", "load"), shape=(29, 1)'),
        "half_a_block_s_columns": ("some threads read behind that", 'access=("C", "load"), shape=(32, 16)'),
        "whole_blocks_only": ("read its padding", 'access=("C", "load"), shape=(32, 32)'),
        "two_blocks": ("One block hides it", 'access=("C", "load"), shape=(64, 17)'),
        "nothing_at_all": ("no block", 'access=("C", "load"), shape=(0, 0)'),
        "too_large": ("far larger", 'access=("C", "load"), shape=(4097, 4097)'),
    }
    return passing("stray_read", answers)


WRONG = {
    "four_at_once": four_at_once(),
    "transposing_scatter": transposing_scatter(),
    "scatter_padding": scatter_padding(),
    "ragged_fours": ragged_fours(),
    "both_switches": both_switches(),
    "stray_read": stray_read(),
}
