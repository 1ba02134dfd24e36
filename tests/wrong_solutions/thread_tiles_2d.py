"""Wrong answers that people really give to the exercises of `thread_tiles_2d`."""

from textwrap import indent

from tests.wrong_solutions.altering import Wrong, altered, passing, returning


def draft_is_right() -> dict[str, Wrong]:
    return returning(
        "draft_is_right",
        {
            "never": ("there is a BK", "False"),
            "always": ("tiles with holes", "True"),
            "up_to": ("surplus ones write beside", "BK <= min(BN // TN, BM // TM)"),
            "from_there_on": ("leaves holes", "BK >= max(BN // TN, BM // TM)"),
            "divisors": ("divides BM and BN", "BM % BK == 0 and BN % BK == 0"),
            "multiples": ("comes back", "BK % (BN // TN) == 0 and BK % (BM // TM) == 0"),
            "only_a": ("A's tile only", "BK == BN // TN"),
            "only_b": ("B's tile only", "BK == BM // TM"),
            "either": ("One of the two", "BK in (BM // TM, BN // TN)"),
            "sixteen": ("16 is nothing special", "BK == 16"),
            "four": ("BK = 4 fits blocks of 4 × 4", "BK == 4"),
            "rows_of_a_thread": ("compares BK with TM", "BK == TM"),
            "columns_of_a_thread": ("compares BK with TN", "BK == TN"),
            "square_blocks": ("BK has to fit", "BM // TM == BN // TN"),
            "all_threads": ("threads of the whole block", "BM * BN // (TM * TN) == BK * BK"),
            "sides_exchanged": ("TM and TN are swapped", "BK == BN // TM and BK == BM // TN"),
            "thread_tile": ("width of a thread's tile", "BK == TM == TN"),
            "a_list_of_depths": ("True or False", "[BN // TN]"),
        },
    )


LOOP_A, LOOP_B = "for c in range(tx, BK, BN // TN):", "for r in range(ty, BK, BM // TM):"
GUARD_A, GUARD_B = "row0 + r < m and k0 + c < k", "k0 + r < k and col0 + c < n"
STORE_A = f"As[r, c] = A[row0 + r, k0 + c] if {GUARD_A} else float32(0)"
STORE_B = f"Bs[r, c] = B[k0 + r, col0 + c] if {GUARD_B} else float32(0)"


READ_A, READ_B, ADD = "a[i] = As[ty * TM + i, p]", "b[j] = Bs[p, tx * TN + j]", "acc[i, j] += a[i] * b[j]"
SYNC, STEPS, GUARD = (
    "            cuda.syncthreads()\n",
    "            for p in range(BK):",
    "if row < m and col < n:",
)

FILL_B = f"""\
            {LOOP_B}
                for j in range(TN):
                    c = tx * TN + j
                    {STORE_B}"""
FILL = f"""\
            {LOOP_A}
                for i in range(TM):
                    r = ty * TM + i
                    {STORE_A}
{FILL_B}"""
# Another right way: elements in the order in which they lie, shared among consecutive threads.
IN_ORDER = (
    FILL,
    f"""\
            for e in range(ty * (BN // TN) + tx, BM * BK, BM * BN // (TM * TN)):
                r, c = e // BK, e % BK
                {STORE_A}
            for e in range(ty * (BN // TN) + tx, BK * BN, BM * BN // (TM * TN)):
                r, c = e // BN, e % BN
                {STORE_B}""",
)
OF_THE_KIT = (
    ("    @cuda.jit\n", "    fetch = make_fetch(BM, BN, BK, TM, TN)\n\n    @cuda.jit\n"),
    (FILL, "            fetch(m, n, k, k0, A, B, As, Bs)"),
)


def slices() -> dict[str, Wrong]:
    def loops(a: str, b: str) -> tuple:
        return (LOOP_A, f"for c in {a}:"), (LOOP_B, f"for r in {b}:")

    mistakes = {
        "the_kit": ("the kernel calls `fetch`", *OF_THE_KIT),
        "the_kit_for_bs_alone": (
            "still filled by the kit",
            OF_THE_KIT[0],
            (FILL_B, "            fetch(m, n, k, k0, A, B, As, Bs)"),
            ("fetch", "load_tiles"),
            ("make_load_tiles", "make_fetch"),
        ),
        "the_draft": ("As in the draft", *loops("range(tx, tx + 1)", "range(ty, ty + 1)")),
        "rounded_down": (
            "last columns of As are left out",
            *loops("range(tx, BK // (BN // TN) * (BN // TN), BN // TN)", "range(ty, BK, BM // TM)"),
        ),
        "passes_rounded_down": (
            "last rows of Bs are left out",
            (LOOP_B, "for s in range(BK // (BM // TM)):\n                r = ty + s * (BM // TM)"),
        ),
        "rounded_up_without_a_guard": (
            "in the last pass more threads store than there are columns left",
            (
                LOOP_A,
                "for s in range((BK + BN // TN - 1) // (BN // TN)):\n                c = tx + s * (BN // TN)",
            ),
        ),
        "strides_exchanged": (
            "columns of As go on in steps of `BM // TM`",
            *loops("range(tx, BK, BM // TM)", "range(ty, BK, BN // TN)"),
        ),
        "stride_of_bs_along_x": (
            "rows of Bs go on in steps of `BN // TN`",
            (LOOP_B, "for r in range(ty, BK, BN // TN):"),
        ),
        "begins_at_zero": ("start at 0", *loops("range(0, BK, BN // TN)", "range(0, BK, BM // TM)")),
        "everybody_fetches_all": ("all columns of As", (LOOP_A, "for c in range(BK):")),
        "all_rows_of_b": ("all rows of Bs", (LOOP_B, "for r in range(BK):")),
        "steps_of_one": ("steps of 1", *loops("range(tx, BK)", "range(ty, BK)")),
        "stride_of_as_is_a_slice": (
            "columns of As go on in steps of TM",
            (LOOP_A, "for c in range(tx, BK, TM):"),
        ),
        "stride_of_bs_is_a_slice": (
            "rows of Bs go on in steps of TN",
            (LOOP_B, "for r in range(ty, BK, TN):"),
        ),
        "axes_exchanged_in_as": (
            "In As tx and ty are swapped",
            (LOOP_A, "for c in range(ty, BK, BM // TM):"),
            ("r = ty * TM + i", "r = tx * TM + i"),
        ),
        "axes_exchanged_in_bs": (
            "In Bs tx and ty are swapped",
            (LOOP_B, "for r in range(tx, BK, BN // TN):"),
            ("c = tx * TN + j", "c = ty * TN + j"),
        ),
        "sizes_exchanged_in_as": ("TM and TN are swapped in As", ("r = ty * TM + i", "r = ty * TN + i")),
        "sizes_exchanged_in_bs": (
            "TM and TN are swapped in Bs",
            (
                f"{LOOP_B}\n                for j in range(TN)",
                f"{LOOP_B}\n                for j in range(TM)",
            ),
            ("c = tx * TN + j", "c = tx * TM + j"),
        ),
        "one_thread_fetches_as": (
            "while the other threads wait",
            (LOOP_A, "for c in range(BK if tx + ty == 0 else 0):"),
            (
                "i in range(TM):\n                    r = ty * TM + i",
                "r in range(BM):\n                    pass",
            ),
        ),
        "a_row_of_threads_fetches_both": (
            "only 4 of the block's 16 threads",
            (LOOP_A, "for c in range(tx, BK if ty == 0 else 0, BN // TN):"),
            (
                "i in range(TM):\n                    r = ty * TM + i",
                "r in range(BM):\n                    pass",
            ),
            (LOOP_B, "for r in range(BK if ty == 0 else 0):"),
        ),
        "a_slice_of_all": (
            "Every thread stores all of `As`",
            (LOOP_A, f"As[:] = A[row0, k0]\n            {LOOP_A.replace('BK', '0')}"),
        ),
        "row0_by_bn": ("`row0 = cuda.blockIdx.y * BM`", ("cuda.blockIdx.y * BM", "cuda.blockIdx.y * BN")),
        "one_element_a_slice": (
            "only the first element",
            (f"{LOOP_A}\n                for i in range(TM)", f"{LOOP_A}\n                for i in range(1)"),
            (f"{LOOP_B}\n                for j in range(TN)", f"{LOOP_B}\n                for j in range(1)"),
        ),
        "barrier_in_the_loop": (
            "barrier inside a loop or a branch",
            (STORE_A, f"{STORE_A}\n                cuda.syncthreads()"),
        ),
        "returns_early": (
            "Let them go on",
            (OWN, f"if row0 + ty * TM >= m or col0 + tx * TN >= n:\n            return\n        {OWN}"),
        ),
        "elements_of_eight_bytes": (
            "`As` has elements of 8 bytes",
            ("As = cuda.shared.array((BM, BK), float32)", "As = cuda.shared.array((BM, BK), float64)"),
        ),
        "barrier_in_a_guard": (
            "stay where they were",
            (
                f"{STORE_B}\n            cuda.syncthreads()",
                f"{STORE_B}\n            if tx < BK:\n                cuda.syncthreads()",
            ),
        ),
        "a_barrier_more": (
            "More than 2 barriers",
            (FILL_B, f"            cuda.syncthreads()\n{FILL_B}"),
        ),
        "second_barrier_missing": ("second barrier", (f"{ADD}\n{SYNC}", f"{ADD}\n")),
        "first_barrier_missing": ("first barrier", (f"{SYNC}{STEPS}", STEPS)),
        "k_of_a_unguarded": ("`k0 + c < k` is missing", (GUARD_A, "row0 + r < m")),
        "k_of_b_unguarded": ("`k0 + r < k` is missing", (GUARD_B, "col0 + c < n")),
        "m_unguarded": ("does not look at `m`", (GUARD_A, "k0 + c < k")),
        "n_unguarded": ("does not look at `n`", (GUARD_B, "k0 + r < k")),
        "one_too_far_along_k": ("one element too far along k", ("k0 + c < k", "k0 + c <= k")),
        "one_too_far_along_n": ("one element too far along n", ("col0 + c < n", "col0 + c <= n")),
        "no_zeros": (
            "nothing is stored into `As`",
            (STORE_A, f"if {GUARD_A}:\n                        As[r, c] = A[row0 + r, k0 + c]"),
            (STORE_B, f"if {GUARD_B}:\n                        Bs[r, c] = B[k0 + r, col0 + c]"),
        ),
        "cleared_first": ("by the same thread", (STORE_A, f"As[r, c] = 0\n                    {STORE_A}")),
        "everybody_clears": (
            "Every thread clears the whole tile",
            (LOOP_A, f"As[:] = 0\n            {LOOP_A}"),
        ),
        "k0_left_out": ("`k0` is left out", ("A[row0 + r, k0 + c]", "A[row0 + r, c]")),
        "row0_left_out": ("begin at `row0`", ("A[row0 + r,", "A[r,")),
        "row_guarded_in_the_tile": ("as in `r < m`", (GUARD_A, "r < m and k0 + c < k")),
        "rows_of_kernel5": ("All threads load the same TM rows", ("A[row0 + r,", "A[row0 + i,")),
        "block_in_the_tile": ("every block has tiles of its own", ("As[r, c] =", "As[row0 + r, c] =")),
        "numbered_as_in_04": (
            "a row of the block has BN // TN threads, not BN",
            (
                "            for c in range(tx, BK, BN // TN):\n                for i in range(TM):\n"
                "                    r = ty * TM + i\n",
                "            for e in range(ty * BN + tx, BM * BK, BM // TM * (BN // TN)):\n"
                "                if True:\n                    r, c = e // BK, e % BK\n",
            ),
        ),
        "both_ends_one_too_far": (
            "Both ends in the guard of A are one too far",
            (GUARD_A, "row0 + r <= m and k0 + c <= k"),
        ),
        "ends_exchanged": (
            "An end is wrong in the guard of A",
            (GUARD_A, "row0 + r < k and k0 + c < m"),
        ),
        "slices_of_numpy": (
            "Numba does not assign an array, here the array A, to a part of one",
            (
                f"for i in range(TM):\n                    r = ty * TM + i\n                    {STORE_A}",
                "first, last = ty * TM, ty * TM + TM\n"
                "                As[first:last, c] = A[row0 + first : row0 + last, k0 + c]",
            ),
        ),
        "indices_of_the_tile_exchanged": (
            "wrong row and column of As. Are its two indices swapped",
            ("As[r, c] =", "As[c, r] ="),
        ),
        "only_a": ("Nothing is stored into `Bs`", (LOOP_B, "for r in range(0):")),
        "reads_of_the_next_thread": ("columns of Bs from `tx + j`", (READ_B, "b[j] = Bs[p, tx + j]")),
        "no_guard": ("There is no guard", (GUARD, "if True:")),
        "a_float64": ("float64", (STORE_A, STORE_A.replace("float32(0)", "0.0"))),
    }
    in_order = {
        "bk_for_bn_in_bs": ("wrong row and column of Bs", ("e // BN, e % BN", "e // BK, e % BK")),
        "stride_of_the_width": (
            "elements of Bs are shared among threads numbered consecutively, but",
            ("BK * BN, BM * BN // (TM * TN)", "BK * BN, BN // TN"),
        ),
        "no_loop": (
            "Every thread fetches one element of As",
            ("BM * BK, BM * BN // (TM * TN)", "ty * (BN // TN) + tx + 1"),
        ),
        "elements_rounded_down": (
            "no multiple of the number of threads",
            ("BM * BK, BM", "BM * BK // (BM * BN // (TM * TN)) * (BM * BN // (TM * TN)), BM"),
        ),
    }
    called = {"kernel_itself": ("is the kernel itself", "make_kernel(16, 16, 8, 4, 4)")}
    return (
        altered("slices", mistakes)
        | altered("slices", in_order, first=(IN_ORDER,))
        | passing("slices", called)
    )


def coalesced_b() -> dict[str, Wrong]:
    spread = "tx + j * (BN // TN)"
    rows = "for r in range(ty, BK, BM // TM):\n            for j in range(TN):\n"
    swapped = "for j in range(TN):\n            for r in range(ty, BK, BM // TM):\n"
    mistakes = {
        "kernel5": ("neighbours in x fetch elements 8 columns apart", (spread, "tx * TN + j")),
        "loops_exchanged": ("two loops have changed places", (rows, swapped), (spread, "tx * TN + j")),
        "store_forgotten": ("The store has to move along", ("Bs[r, c] =", "Bs[r, tx * TN + j] =")),
        "load_forgotten": (
            "Only the store has moved",
            ("B[k0 + r, col0 + c]", "B[k0 + r, col0 + tx * TN + j]"),
            ("col0 + c < n", "True"),
        ),
        "columns_overlap": ("they overlap", (spread, "tx + j")),
        "columns_tn_apart": ("is not TN", (spread, "tx + j * TN")),
        "columns_y_apart": ("is not `BM // TM`", (spread, "tx + j * (BM // TM)")),
        "tx_counts_rows": (
            "tx and ty are swapped",
            (LOOP_B, "for r in range(tx, BK, BN // TN):"),
            (spread, "ty + j * (BM // TM)"),
        ),
        "col0_by_bm": ("`col0 = cuda.blockIdx.x * BN`", ("blockIdx.x * BN", "blockIdx.x * BM")),
        "guard_of_the_place_in_the_tile": (
            "compares the place in the tile, as in `c < n`",
            (GUARD_B, "k0 + r < k and c < n"),
        ),
        "depth_guarded_in_the_tile": ("as in `r < k`", (GUARD_B, "r < k and col0 + c < n")),
        "col0_left_out": ("begin at `col0`", ("B[k0 + r, col0 + c]", "B[k0 + r, c]")),
        "all_rows": ("all rows of Bs", (LOOP_B, "for r in range(BK):")),
        "rows_from_zero": ("starts at 0", (LOOP_B, "for r in range(0, BK, BM // TM):")),
        "rows_in_steps_of_one": ("steps of 1", (LOOP_B, "for r in range(ty, BK):")),
        "rows_in_steps_of_tn": ("in steps of TN", (LOOP_B, "for r in range(ty, BK, TN):")),
        "rows_in_steps_of_tm": ("in steps of TM", (LOOP_B, "for r in range(ty, BK, TM):")),
        "rows_in_steps_of_x": ("the threads along x", (LOOP_B, "for r in range(ty, BK, BN // TN):")),
        "stride_of_rows_gone": ("stride along", (LOOP_B, "for r in range(ty, ty + 1):")),
        "n_unguarded": ("does not look at `n`", (GUARD_B, "k0 + r < k")),
        "one_row_of_threads": (
            "only 16 of a warp's 32 lanes",
            (LOOP_B, "for r in range(BK if ty == 0 else 0):"),
        ),
        "ends_exchanged": (
            "An end is wrong in the guard of B",
            (GUARD_B, "k0 + r < n and col0 + c < k"),
        ),
        "fills_as_too": (
            "fill `Bs` alone",
            (LOOP_B, f"if tx < BK:\n            As[ty, tx] = A[ty, k0 + tx]\n        {LOOP_B}"),
        ),
        "a_kernel": ("not launched: write `@cuda.jit(device=True)`", ("@cuda.jit(device=True)", "@cuda.jit")),
        "fills_as": ("Nothing is stored into `Bs`", ("Bs[r, c]", "As[c, r]")),
    }
    linear = {
        "bk_for_bn": ("A row of Bs has BN", ("e // BN, e % BN", "e // BK, e % BK")),
        "stride_of_the_width": (
            "stride is only the block's width",
            ("BK * BN, BM * BN // (TM * TN)", "BK * BN, BN // TN"),
        ),
        "no_loop": ("no loop", ("range(tid, BK * BN, BM * BN // (TM * TN))", "range(tid, tid + 1)")),
        "down_the_columns": ("from different rows of B", ("e // BN, e % BN", "e % BK, e // BK")),
    }
    return altered("coalesced_b", mistakes) | altered("coalesced_b", linear, first=LINEAR)


# Another right answer to coalesced_b: elements in the order in which they lie, shared by consecutive threads.
LINEAR = (
    (LOOP_B, "tid = ty * (BN // TN) + tx\n        for e in range(tid, BK * BN, BM * BN // (TM * TN)):"),
    (
        "            for j in range(TN):\n                c = tx + j * (BN // TN)\n",
        "            r, c = e // BN, e % BN\n",
    ),
    (f"    {STORE_B}", STORE_B),
)

OWN = "acc = cuda.local.array((TM, TN), float32)"
PLACE = "row, col = row0 + ty * TM + i, col0 + tx * TN + j"
ALL_ZERO = "for i in range(TM):\n            for j in range(TN):\n                acc[i, j] = 0"
STORE = "C[row, col] = alpha * acc[i, j] + beta * C[row, col] if beta != 0 else alpha * acc[i, j]"
STORE_ALL = f"""\
        for i in range(TM):
            for j in range(TN):
                {PLACE}
                if row < m and col < n:
                    {STORE}"""


def skipping(condition: str) -> tuple[str, str]:
    """Only results for which this is false are stored."""
    return PLACE, f"{PLACE}\n                if {condition}:\n                    continue"


def outer_product() -> dict[str, Wrong]:
    zero_each_tile = ALL_ZERO.replace("\n", "\n    ")
    mistakes = {
        "reads_in_both_loops": (
            "`As` and `Bs` are read more often than needed",
            (ADD, "acc[i, j] += As[ty * TM + i, p] * Bs[p, tx * TN + j]"),
            (READ_A, "a[i] = 0"),
            (READ_B, "b[j] = 0"),
        ),
        "bs_again_in_the_inner_loop": (
            "`Bs` is read more often than needed",
            (ADD, "acc[i, j] += a[i] * Bs[p, tx * TN + j]"),
            (READ_B, "b[j] = 0"),
        ),
        "a_slice_of_as": (
            "copies nothing",
            (
                "for p in range(BK):\n",
                "for p in range(BK):\n                own = As[ty * TM : ty * TM + TM, p]\n",
            ),
            (READ_A, "a[i] = 0"),
            (ADD, "acc[i, j] += own[i] * b[j]"),
        ),
        "acc_zeroed_each_step": ("Only the last product is left", (ADD, "acc[i, j] = a[i] * b[j]")),
        "acc_zeroed_each_tile": (
            "Only the last tile along k counts",
            (STEPS, f"            {zero_each_tile}\n{STEPS}"),
        ),
        "acc_never_zeroed": ("before anything was stored in it", (ALL_ZERO, "pass")),
        "one_accumulator": (
            "added up in one",
            (ALL_ZERO, "total = float32(0)"),
            (ADD, "total += a[i] * b[j]"),
            ("alpha * acc[i, j]", "alpha * total"),
        ),
        "nothing_added": ("A·B is missing", (ADD, "acc[i, j] += 0")),
        "one_step_too_few": ("last product of every tile", ("range(BK):", "range(BK - 1):")),
        "stored_in_every_tile": (
            "stored after every tile",
            (STORE_ALL, indent(STORE_ALL, "    ")),
        ),
        "tm_for_tn": ("begins at column `tx * TM`", (READ_B, "b[j] = Bs[p, tx * TM + j]")),
        "tn_for_tm": ("reads beside its tile", (READ_A, "a[i] = As[ty * TN + i, p]")),
        "columns_of_the_neighbour": ("columns of Bs from `tx + j`", (READ_B, "b[j] = Bs[p, tx + j]")),
        "rows_of_the_neighbour": ("rows of As from `ty + i`", (READ_A, "a[i] = As[ty + i, p]")),
        "rows_and_columns_of_the_neighbour": (
            "from `ty + i` and `tx + j` on",
            (READ_A, "a[i] = As[ty + i, p]"),
            (READ_B, "b[j] = Bs[p, tx + j]"),
        ),
        "both_spread_in_the_reads": (
            "the rows `ty + i * (BM // TM)` and the columns",
            (READ_A, "a[i] = As[ty + i * (BM // TM), p]"),
            (READ_B, "b[j] = Bs[p, tx + j * (BN // TN)]"),
        ),
        "row_stands_still": ("same row of As", (READ_A, "a[i] = As[ty * TM, p]")),
        "column_stands_still": ("same column of Bs", (READ_B, "b[j] = Bs[p, tx * TN]")),
        "row_of_all_threads": ("`i` for all threads", (READ_A, "a[i] = As[i, p]")),
        "column_of_all_threads": ("`j` for all threads", (READ_B, "b[j] = Bs[p, j]")),
        "columns_spread_in_the_read": (
            "The reads of Bs take the columns",
            (READ_B, "b[j] = Bs[p, tx + j * (BN // TN)]"),
        ),
        "rows_spread_in_the_store": (
            "As is still read at `ty * TM + i`",
            (PLACE, "row, col = row0 + ty + i * (BM // TM), col0 + tx * TN + j"),
        ),
        "rows_spread_in_the_read": (
            "reads of As take the rows",
            (READ_A, "a[i] = As[ty + i * (BM // TM), p]"),
        ),
        "steps_up_to_k": ("The inner loop is `range(BK)`", ("range(BK):", "range(k):")),
        "indices_of_as_exchanged": ("indices of `As` are swapped", (READ_A, "a[i] = As[p, ty * TM + i]")),
        "indices_of_bs_exchanged": ("indices of `Bs` are swapped", (READ_B, "b[j] = Bs[tx * TN + j, p]")),
        "results_as_a_numpy_array": (
            "own array is `cuda.local.array",
            (OWN, "acc = np.zeros((TM, TN), np.float32)"),
        ),
        "numpys_outer_product": ("one number at a time", (ADD, "acc[i, j] += np.outer(a, b)[i, j]")),
        "one_array_of_results_for_all": (
            "`acc` is in shared memory",
            (OWN, "acc = cuda.shared.array((TM, TN), float32)"),
        ),
        "stored_as_neighbours": ("overlap", (PLACE, "row, col = row0 + ty + i, col0 + tx + j")),
        "first_row_of_the_block_missing": (
            "The block's first row is missing",
            (PLACE, "row, col = ty * TM + i, col0 + tx * TN + j"),
        ),
        "first_column_of_the_block_missing": (
            "The block's first column is missing",
            (PLACE, "row, col = row0 + ty * TM + i, tx * TN + j"),
        ),
        "block_missing_in_the_store": (
            "first row and column are missing",
            (PLACE, "row, col = ty * TM + i, tx * TN + j"),
        ),
        "indices_of_acc_exchanged": ("indices of `acc` are swapped", (ADD, "acc[j, i] += a[i] * b[j]")),
        "sides_of_acc_exchanged": (
            "sides of `acc` are swapped",
            (OWN, "acc = cuda.local.array((TN, TM), float32)"),
        ),
        "stores_one": ("only the first is stored", skipping("i or j")),
        "stores_a_row": ("the loop over `i` is missing", skipping("i")),
        "stores_tm_columns": ("Only TM columns", skipping("j >= TM")),
        "stores_a_column": ("the loop over `j` is missing", skipping("j")),
        "stored_with_tm": (
            "stored from column `tx * TM`",
            (PLACE, "row, col = row0 + ty * TM + i, col0 + tx * TM + j"),
        ),
        "no_guard": ("There is no guard", (GUARD, "if True:")),
        "guard_of_the_first_element": (
            "tests the first element of a thread's tile",
            (GUARD, "if row0 + ty * TM < m and col0 + tx * TN < n:"),
        ),
        "one_too_far": ("`<=` where `<` is meant", (GUARD, "if row <= m and col <= n:")),
        "guard_of_whole_tiles": (
            "Only threads whose tile lies in C as a whole",
            (GUARD, "if row0 + ty * TM + TM <= m and col0 + tx * TN + TN <= n:"),
        ),
        "guard_of_whole_blocks": (
            "Only blocks that lie in C as a whole",
            (GUARD, "if row0 + BM <= m and col0 + BN <= n:"),
        ),
        "axes_of_the_thread_exchanged": (
            "swapped where they get their values",
            ("tx, ty = cuda.threadIdx.x, cuda.threadIdx.y", "ty, tx = cuda.threadIdx.x, cuda.threadIdx.y"),
        ),
        "tx_counts_rows_in_the_store": (
            "swapped in the store",
            (PLACE, "row, col = row0 + tx * TM + i, col0 + ty * TN + j"),
        ),
        "flat_results_by_tm": (
            "place `i * TN + j`",
            ("    @cuda.jit\n", "    SIZE = TM * TN\n\n    @cuda.jit\n"),
            ("cuda.local.array((TM, TN), float32)", "cuda.local.array(SIZE, float32)"),
            ("acc[i, j]", "acc[i * TM + j]"),
        ),
        "results_of_half_precision": ("`acc` are float16", (OWN, OWN.replace("float32", "float16"))),
        "one_column_too_far": ("one column too many", (GUARD, "if row < m and col <= n:")),
        "i_for_j": ("`b` is indexed with `i`", (ADD, "acc[i, j] += a[i] * b[i]")),
        "second_barrier_missing": ("second barrier", (f"{ADD}\n{SYNC}", f"{ADD}\n")),
        "first_barrier_missing": ("first barrier", (f"{SYNC}{STEPS}", STEPS)),
        "barrier_in_every_step": (
            "More than 2 barriers",
            (READ_B, f"{READ_B}\n                cuda.syncthreads()"),
        ),
        "operand_in_shared_memory": (
            "one for the whole block",
            ("a = cuda.local.array(TM, float32)", "a = cuda.shared.array(TM, float32)"),
        ),
        "results_in_shared_memory": (
            "Accumulators belong in registers",
            (OWN, "all = cuda.shared.array((BM, BN), float32)"),
            ("acc[i, j]", "all[ty * TM + i, tx * TN + j]"),
        ),
        "a_loop_over_a_slice": (
            "how many elements a slice has",
            (
                f"for i in range(TM):\n                    {READ_A}",
                "for i, x in enumerate(As[ty * TM : ty * TM + TM, p]):\n                    a[i] = x",
            ),
        ),
        "a_float64_at_the_end": ("float64", ("else alpha * acc[i, j]", "else alpha * acc[i, j] + 0.0")),
    }
    called = {"kernel_itself": ("is the kernel itself", "make_outer(8, 16, 4, 2, 4)")}
    return altered("outer_product", mistakes) | passing("outer_product", called)


def no_conflicts() -> dict[str, Wrong]:
    unpadded, side_by_side = ("BK + 1", "BK"), ("tx + j * APART", "tx * TN + j")
    padded_b = (("(BK, BN), float32)", "(BK, WIDE), float32)"), ("APART = ", "APART, WIDE = "))
    by_one, by_four = ((*padded_b, ("BN // TN\n", f"BN // TN, BN + {pad}\n")) for pad in (1, 4))
    mistakes = {
        "unchanged": ("both conflicts are still there", unpadded, side_by_side),
        "only_padding": ("As is fixed, Bs is not", side_by_side),
        "only_columns": ("Bs is fixed, As is not", unpadded),
        "pads_by_four": ("rows are 20 words long", ("BK + 1", "BK + 4")),
        "pads_bs": ("The padding is on Bs", unpadded, side_by_side, *by_one),
        "pads_both": ("padding does nothing for Bs", side_by_side, *by_one),
        "pads_both_by_four": ("Padding alone", side_by_side, *by_four, ("BK + 1", "BK + 4")),
        "width_as_a_number": ("does its shape follow from", ("BK + 1", "17")),
        "columns_tn_apart": ("not `tx + j * TN`", ("tx + j * APART", "tx + j * TN")),
        "reads_tn_apart": ("Bs is read at the columns", ("Bs[p, tx + j * APART]", "Bs[p, tx + j * TN]")),
        "store_of_c_left_behind": (
            "The store of C has to move along",
            ("col0 + tx + j * APART", "col0 + tx * TN + j"),
        ),
        "reads_of_bs_left_behind": ("Both have to move", ("Bs[p, tx + j * APART]", "Bs[p, tx * TN + j]")),
        "a_rotation": (
            "32 sectors instead of 4",
            ("Bs[p, tx + j * APART]", "Bs[p, tx * TN + (j + tx // 4) % TN]"),
            ("col0 + tx + j * APART", "col0 + tx * TN + (j + tx // 4) % TN"),
        ),
        "columns_permuted_in_bs": (
            "not the same ones in another order or at other places",
            ("Bs[r, c] =", "Bs[r, c // TN + c % TN * APART] ="),
            ("col0 + tx + j * APART", "col0 + tx * TN + j"),
        ),
        "width_of_33": ("fixed number", ("BK + 1", "33")),
        "as_transposed": (
            "a store into `As` takes 16",
            ("(BM, WIDTH), float32", "(BK, BM), float32"),
            ("As[r, c] =", "As[c, r] ="),
            ("As[ty * TM + i, p]", "As[p, ty * TM + i]"),
        ),
        "width_computed_inside": (
            "computed inside the kernel",
            ("(BM, WIDTH), float32", "(BM, BK + 1), float32"),
        ),
        "reads_in_both_loops": (
            "`As` and `Bs` are read more often than needed",
            (ADD, "acc[i, j] += As[ty * TM + i, p] * Bs[p, tx + j * APART]"),
            (READ_A, "a[i] = 0"),
            ("b[j] = Bs[p, tx + j * APART]", "b[j] = 0"),
        ),
        "no_guard": ("There is no guard", (GUARD, "if True:")),
    }
    return altered("no_conflicts", mistakes)


WRONG = {
    "draft_is_right": draft_is_right(),
    "slices": slices(),
    "coalesced_b": coalesced_b(),
    "outer_product": outer_product(),
    "no_conflicts": no_conflicts(),
}
