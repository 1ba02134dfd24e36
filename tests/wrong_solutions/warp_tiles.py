"""Wrong answers that people really give to the exercises of `warp_tiles`."""

from tests.wrong_solutions.altering import altered, passing, returning

# ---- owner_map and legal_tiles -----------------------------------------------------------------------------

ROW, COL = (
    "warp // (BN // WN) * WM + lane // (WSUBN // TN)",
    "warp % (BN // WN) * WN + lane % (WSUBN // TN) * TN",
)
LANE_ROW, LANE_COL = "lane // (WSUBN // TN)", "lane % (WSUBN // TN) * TN"
OWNERS = altered(
    "owner_map",
    {
        "lane_exchanged": (
            "swapped for the lane",
            (ROW, "warp // (BN // WN) * WM + lane % (WSUBN // TN)"),
            (COL, "warp % (BN // WN) * WN + lane // (WSUBN // TN) * TN"),
        ),
        "lanes_go_down_first": (
            "the lanes go down first",
            (ROW, "warp // (BN // WN) * WM + lane % WSUBM"),
            (COL, "warp % (BN // WN) * WN + lane // WSUBM * TN"),
        ),
        "one_element_per_run": ("are expected, of thread 0", (" for e in range(TN)", " for e in range(1)")),
        "warp_exchanged": (
            "swapped for the warp",
            (ROW, "warp % (BN // WN) * WM + lane // (WSUBN // TN)"),
            (COL, "warp // (BN // WN) * WN + lane % (WSUBN // TN) * TN"),
        ),
        "thread_for_lane": ("where its lane is meant", ("tid // 32, tid % 32", "tid // 32, tid")),
        "no_warp": ("The warp is left out", (ROW, LANE_ROW), (COL, LANE_COL)),
        "contiguous_rows": (
            "one below the other here",
            (LANE_ROW, LANE_ROW + " * WMITER"),
            ("i * WSUBM", "i"),
        ),
        "contiguous_columns": (
            "all sub-tiles lie side by side",
            (LANE_COL, LANE_COL + " * WNITER"),
            ("j * WSUBN", "j * TN"),
        ),
        "both_contiguous": (
            "as in notebook 05",
            (LANE_ROW, LANE_ROW + " * WMITER"),
            ("i * WSUBM", "i"),
            (LANE_COL, LANE_COL + " * WNITER"),
            ("j * WSUBN", "j * TN"),
        ),
        "stride_counts_sub_tiles": ("grows by WMITER, which counts", ("i * WSUBM", "i * WMITER")),
        "stride_across_counts_sub_tiles": ("grows by WNITER, which counts", ("j * WSUBN", "j * WNITER")),
        "strides_count_sub_tiles": (
            "by WMITER and WNITER, which count",
            ("i * WSUBM", "i * WMITER"),
            ("j * WSUBN", "j * WNITER"),
        ),
        "no_stride_down": ("stride WSUBM is missing", ("i * WSUBM", "i")),
        "no_stride_across": ("stride WSUBN is missing", ("j * WSUBN", "j * TN")),
        "lanes_a_column_apart": ("multiplied by TN", (LANE_COL, "lane % (WSUBN // TN)")),
        "column_before_row": (
            "Rows and columns are swapped",
            ("(row + i * WSUBM, col + j * WSUBN + e)", "(col + j * WSUBN + e, row + i * WSUBM)"),
        ),
        "warps_counted_by_rows": ("not BN // WM", ("(BN // WN)", "(BN // WM)")),
        "without_wniter": ("WNITER is missing", ("(32 * TN * WNITER)", "(32 * TN)")),
        "one_thread_per_warp": ("not one thread but 32", ("(32 * TN * WNITER)", "(TN * WNITER)")),
        "one_step": ("Only the first sub-tile", ("range(WMITER)", "range(1)"), ("range(WNITER)", "range(1)")),
        "across_before_down": (
            "in another order",
            (
                "for i in range(WMITER) for j in range(WNITER)",
                "for j in range(WNITER) for i in range(WMITER)",
            ),
        ),
        "steps_as_far_as_the_warp": ("outside a tile", ("i * WSUBM", "i * WM")),
        "lane_divided_by_wsubn": (
            "divided by WSUBN. But each lane has TN",
            ("WSUBN // TN", "WSUBN"),
        ),
        "lane_row_divided_by_wsubn": (
            "For the row, the lane is divided by WSUBN",
            (LANE_ROW, "lane // WSUBN"),
        ),
        "lane_divided_by_the_warps_width": (
            "the lanes cover one sub-tile at a time",
            ("WSUBN // TN", "WN // TN"),
        ),
        "lane_column_by_the_warps_width": (
            "For the column, the lane is divided by WN // TN",
            (LANE_COL, "lane % (WN // TN) * TN"),
        ),
        "steps_down_as_a_float": ("`//` divides whole numbers", ("WM * WN // (32", "WM * WN / (32")),
        "rows_as_floats": ("whole numbers", (LANE_ROW, "lane / (WSUBN / TN)")),
    },
)

RULES = "BM % WM or BN % WN or WM * WN % sub_tile or WN % (WNITER * TN)"
MORE_RULES = "WM % WMITER or WM // WMITER % TM"
COUNT = "BM * BN // (WM * WN) * 32"
NO_LIMIT = ("threads if threads <= 1024 else 0", "threads")
BY_LANES = "BM % WM or BN % WN or WN % WNITER or WSUBN % TN or not across or 32 % across or WM % WSUBM"
LANE_RULES = {
    "whole_rows": ("32 must be a multiple of WSUBN // TN", "32 % across"),
    "wniter": ("`WN % WNITER` is missing", "WN % WNITER"),
    "whole_runs": ("`WSUBN % TN` is missing", "WSUBN % TN"),
}


def _by_lanes(*left_out: str) -> tuple[tuple[str, str], ...]:
    """The solution by the lanes that fill a row of a sub-tile, with a rule left out."""
    rules = " or ".join(rule for rule in BY_LANES.split(" or ") if rule not in left_out)
    before = "    sub_tile = 32 * TM * TN * WNITER\n"
    lanes = (
        "    WSUBN = WN // WNITER\n"
        "    across = WSUBN // TN\n"
        "    WSUBM = 32 // max(1, across) * TM or WM + 1\n"
        f"    if {rules}:\n        return 0\n"
    )
    return ((before, lanes + before), ("WM * WN // sub_tile", "1"))


LEGAL = altered(
    "legal_tiles",
    {
        "without_wsubm": ("`WSUBM % TM` is missing", (MORE_RULES, "WM % WMITER")),
        "wmiter_without_tm": ("TM is missing in WMITER", ("32 * TM * TN * WNITER", "32 * TN * WNITER")),
        "without_any_tm": (
            "TM is nowhere",
            ("32 * TM * TN * WNITER", "32 * TN * WNITER"),
            (MORE_RULES, "WM % WMITER"),
        ),
        "fractional_wmiter": (
            "WMITER may be a fraction",
            (RULES, "BM % WM or BN % WN or WN % (WNITER * TN)"),
            ("WM * WN // sub_tile", "max(1, WM * WN // sub_tile)"),
        ),
        "without_tn": ("sub-tiles of whole TN = 3", ("WN % (WNITER * TN)", "WN % WNITER")),
        "columns_divided_one_by_one": (
            "one by one",
            ("WN % (WNITER * TN)", "WN % WNITER or WN % TN"),
        ),
        "room_for_tm": ("only have room for TM", (MORE_RULES, "WM % WMITER or WM // WMITER < TM")),
        "a_thread_for_each_thread_tile": ("as in notebook 05", (COUNT, "BM * BN // (TM * TN)")),
        "any_number_of_threads": ("1,024", NO_LIMIT),
        "fewer_than_the_most": ("still allowed", ("threads <= 1024", "threads < 1024")),
        "without_rows_of_warps": ("BM must be a multiple of WM", (RULES, RULES.removeprefix("BM % WM or "))),
        "without_whole_runs": ("multiple of WNITER·TN", (" or WN % (WNITER * TN)", "")),
        "warps_for_threads": ("number of warps", (COUNT, "BM * BN // (WM * WN)"), NO_LIMIT),
        "everything": (
            "Everything is let through",
            (RULES, "False"),
            (MORE_RULES, "False"),
            NO_LIMIT,
            ("WM * WN // sub_tile", "1"),
        ),
        "powers_of_two_only": (
            "and are refused",
            (RULES, f"any(size & (size - 1) for size in (BM, BN, WM, WN, TM, TN, WNITER)) or {RULES}"),
        ),
    }
    | {
        f"by_lanes_without_{name}": (words, (RULES, "False"), (MORE_RULES, "False"), *_by_lanes(rule))
        for name, (words, rule) in LANE_RULES.items()
    },
) | returning("legal_tiles", {"yes_or_no": ("or 0 where", "BM % WM == 0 and BN % WN == 0")})


# ---- warp_wavefronts ---------------------------------------------------------------------------------------

LAYOUTS = ("8 × 4", "4 × 8", "4 × 8, runs of four", "16 × 2, runs of four")


def table(*rows) -> str:
    return repr(dict(zip(LAYOUTS, rows)))


WAVEFRONTS = passing(
    "warp_wavefronts",
    {
        "broadcast_counted": (
            "get it together",
            table(((8, 8), (8, 8)), ((8, 8), (8, 8)), ((8, 4), (8, 4)), ((4, 16), (4, 16))),
        ),
        "words_counted": (
            "different banks",
            table(((8, 4), (32, 16)), ((4, 8), (16, 32)), ((4, 8), (16, 32)), ((16, 2), (64, 8))),
        ),
        "layouts_alike": (
            "are not alike",
            table(((2, 1), (2, 4)), ((2, 1), (2, 4)), ((1, 1), (2, 4)), ((2, 1), (2, 2))),
        ),
        "four_floats_as_one": (
            "not served at once",
            table(((2, 1), (2, 1)), ((1, 2), (1, 2)), ((1, 1), (1, 1)), ((2, 1), (2, 1))),
        ),
        "never_merged": (
            "two turns of 8 lanes join",
            table(((2, 1), (4, 4)), ((1, 2), (4, 8)), ((1, 1), (4, 4)), ((2, 1), (4, 4))),
        ),
        "only_neighbours_merged": (
            "the lane two further reads, 0 with 2",
            table(((2, 1), (2, 4)), ((1, 2), (2, 8)), ((1, 1), (2, 4)), ((2, 1), (2, 4))),
        ),
        "a_and_b_exchanged": (
            "A and B are swapped",
            table(((1, 2), (4, 2)), ((2, 1), (8, 2)), ((1, 1), (4, 2)), ((1, 2), (2, 2))),
        ),
        "pairs_swapped": (
            "The two pairs of each row are swapped",
            table(((2, 4), (2, 1)), ((2, 8), (1, 2)), ((2, 4), (1, 1)), ((2, 2), (2, 1))),
        ),
        "fours_change_nothing": (
            "In runs of four nothing changes",
            table(((2, 1), (2, 4)), ((1, 2), (2, 8)), ((1, 2), (2, 8)), ((4, 1), (4, 2))),
        ),
        "groups_of_b_joined": (
            "Lanes that read the same words are 4 apart",
            table(((2, 1), (2, 2)), ((1, 2), (2, 8)), ((1, 1), (2, 4)), ((2, 1), (2, 2))),
        ),
        "a_gap_and_a_slip": (
            "most *different* words",
            table(((2, 1), (2, 4)), ((1, 1), (2, 8)), ((1, 1), (2, 4)), ((2, 1), (2, None))),
        ),
        "three_rows": ("no row called", repr(dict.fromkeys(LAYOUTS[:3], ((1, 1), (2, 4))))),
    },
)


# ---- runs_of_four ------------------------------------------------------------------------------------------

SYNC, FETCH = "            cuda.syncthreads()\n", "            fetch(m, n, k, A, B, k0, As, Bs)\n"
Y0, X0 = "lane // LANE_COLS * 4", "lane % LANE_COLS * 4"
RUN_ROW, RUN_COL = "i // 4 * (4 * LANE_ROWS) + i % 4", "j // 4 * (4 * LANE_COLS) + j % 4"
ROW_OF_C, COL_OF_C = f"cuda.blockIdx.y * BM + y0 + {RUN_ROW}", f"cuda.blockIdx.x * BN + x0 + {RUN_COL}"
READ_A, READ_B = f"As[p, y0 + {RUN_ROW}]", f"Bs[p, x0 + {RUN_COL}]"
STORE_ROW, STORE_COL = f"row = y0 + {RUN_ROW}", f"col = x0 + {RUN_COL}"
WARP_ROW, WARP_COL = "warp // (BN // WN) * WM", "warp % (BN // WN) * WN"
PUT = "put(m, n, alpha, acc[i, j], beta, C, row, col)"
PUT_LOOP = f"""        for i in range(TM):
            for j in range(TN):
                {STORE_ROW}
                {STORE_COL}
                {PUT}
"""
WARPS = "(BM // WM * (BN // WN))"
CLEAR = "        clear(acc)\n"
FILL = "for i in range(TM):\n                    a[i]"
CONTIGUOUS = ((Y0, "lane // LANE_COLS * TM"), (X0, "lane % LANE_COLS * TN"), (RUN_ROW, "i"), (RUN_COL, "j"))
RUNS = altered(
    "runs_of_four",
    {
        # the lane
        "lanes_for_rows": ("`y0` counts lanes", (Y0, "lane // LANE_COLS"), (X0, "lane % LANE_COLS")),
        "lanes_for_columns": ("`x0` counts lanes", (X0, "lane % LANE_COLS")),
        "thread_for_lane": ("where its lane is meant", (Y0, "tid // LANE_COLS * 4")),
        "grid_for_thread": (
            "no `cuda.grid(1)`",
            ("u32(cuda.threadIdx.x)", "u32(cuda.grid(1))"),
        ),
        "lane_divided_by_lane_rows": (
            "divide by that. The row of a lane",
            (Y0, "lane // LANE_ROWS * 4"),
            (X0, "lane % LANE_ROWS * 4"),
        ),
        "lane_columns_by_lane_rows": ("divide by that. The column of a lane", (X0, "lane % LANE_ROWS * 4")),
        "lane_swapped": ("swapped for the lane", (Y0, "lane * 4"), (X0, Y0), ("lane * 4", X0)),
        "lane_left_out_of_y0": ("The lane is left out of `y0`", (f" + {Y0}", "")),
        "lane_left_out_of_x0": ("The lane is left out of `x0`", (f" + {X0}", "")),
        "room_for_all_rows": ("leaves room for all TM rows", (Y0, "lane // LANE_COLS * TM")),
        # the warp
        "all_warps_alike": ("The warp is left out", (f"{WARP_ROW} + ", ""), (f"{WARP_COL} + ", "")),
        "warp_left_out_of_x0": ("The warp is left out of `x0`", (f"{WARP_COL} + ", "")),
        "warps_counted_by_rows": ("not by `BM // WM`", ("(BN // WN)", "(BM // WM)")),
        "warp_swapped": (
            "swapped for the warp",
            ("warp // (", "warp %% ("),
            ("warp % (", "warp // ("),
            ("warp %% (", "warp % ("),
        ),
        "warps_for_columns": ("`x0` counts warps", (WARP_COL, "warp % (BN // WN)")),
        "all_at_the_corner": (
            "All threads begin at row 0",
            (f"{WARP_ROW} + {Y0}", "0"),
            (f"{WARP_COL} + {X0}", "0"),
        ),
        "warp_tiles_width_for_height_in_y0": (
            "`WN` stands in the place of `WM`",
            (WARP_ROW, "warp // (BN // WN) * WN"),
        ),
        "lane_divided_by_four": (
            "right only where `LANE_COLS` is 4",
            (Y0, "lane // 4 * 4"),
            (X0, "lane % 4 * 4"),
        ),
        # from run to run
        "next_run_too_early": (
            "too early",
            ("(4 * LANE_ROWS)", "LANE_ROWS"),
            ("(4 * LANE_COLS)", "LANE_COLS"),
        ),
        "strides_swapped": (
            "Which of them share out the rows?",
            ("(4 * LANE_ROWS)", "(4 * LANES)"),
            ("(4 * LANE_COLS)", "(4 * LANE_ROWS)"),
            ("LANES)", "LANE_COLS)"),
        ),
        "lane_rows_for_columns": (
            "Which of them share out the columns?",
            ("(4 * LANE_COLS)", "(4 * LANE_ROWS)"),
        ),
        "step_counts_results": ("how many lanes share out the rows", ("(4 * LANE_ROWS)", "(4 * TM)")),
        "step_is_sixteen": (
            "16, right only where four lanes share out the rows",
            ("(4 * LANE_ROWS)", "16"),
        ),
        "step_is_a_number": ("or a number equal to it here", ("(4 * LANE_COLS)", "32")),
        "half_a_warp_tile_on": (
            "`WM // 2` is right only where",
            ("(4 * LANE_ROWS)", "(WM // 2)"),
            ("(4 * LANE_COLS)", "(WN // 2)"),
        ),
        "step_of_one_threads_rows": (
            "how many rows one thread has",
            ("i // 4 * (4 * LANE_ROWS)", "i // 4 * TM"),
            ("j // 4 * (4 * LANE_COLS)", "j // 4 * TN"),
        ),
        "step_of_a_warp_tile": ("out of the warp's tile", ("j // 4 * (4 * LANE_COLS)", "j // 4 * WN")),
        "two_runs_only": (
            "more than two runs",
            ("i // 4 * (4 * LANE_ROWS)", "(i >= 4) * 4 * LANE_ROWS"),
            ("j // 4 * (4 * LANE_COLS)", "(j >= 4) * 4 * LANE_COLS"),
        ),
        "one_run_only": ("the step from run to run is missing", (RUN_COL, "j % 4")),
        "four_rows_apart_but_contiguous": ("The runs are contiguous", (RUN_ROW, "i"), (RUN_COL, "j")),
        "rows_only_in_runs": ("these are its columns as well", (RUN_COL, "j")),
        "without_remainder": ("`% 4` is missing", ("i % 4", "i")),
        "first_of_each_run": ("All columns of a run are its first", (" + j % 4", "")),
        "run_swapped": ("split wrongly into run and place", (RUN_ROW, "i % 4 * (4 * LANE_ROWS) + i // 4")),
        "every_second_row": ("The threads' rows overlap, or leave gaps", (RUN_ROW, "i * 2")),
        "contiguous": ("bank conflict", *CONTIGUOUS),
        "warps_of_every_other_thread": (
            "warps of 32 consecutive threads",
            ("tid // 32, tid % 32", f"tid % {WARPS}, tid // {WARPS}"),
        ),
        "single_rows": (
            "are apart",
            (Y0, "lane // LANE_COLS"),
            (X0, "lane % LANE_COLS"),
            (RUN_ROW, "i * LANE_ROWS"),
            (RUN_COL, "j * LANE_COLS"),
        ),
        # as they are stored
        "stored_without_remainder": (
            "Where you call `put`: `% 4` is missing",
            (STORE_ROW, STORE_ROW.replace("i % 4", "i")),
        ),
        "stored_by_lane_rows": (
            "Where you call `put`: `LANE_ROWS` stands in the step",
            (STORE_COL, STORE_COL.replace("LANE_COLS", "LANE_ROWS")),
        ),
        "block_added_to_put": (
            "Where you call `put`: the block's own first row",
            ("C, row, col)", "C, cuda.blockIdx.y * BM + row, cuda.blockIdx.x * BN + col)"),
        ),
        "put_swapped": ("it takes the row first", ("C, row, col)", "C, col, row)")),
        "never_put": ("Nothing is stored into C", (PUT_LOOP, "")),
        "odd_rows_put_partly": (
            "not each result is stored once",
            (PUT_LOOP, PUT_LOOP.replace("range(TN)", "range(i % 2, TN)")),
        ),
        # as they are read
        "a_read_contiguously": (
            "look at the reads of `As`: the runs are contiguous",
            (READ_A, "As[p, y0 + i]"),
        ),
        "b_read_contiguously": (
            "look at the reads of `Bs`: the runs are contiguous",
            (READ_B, "Bs[p, x0 + j]"),
        ),
        "a_read_without_remainder": (
            "look at the reads of `As`: `% 4` is missing",
            (READ_A, READ_A.replace("i % 4", "i")),
        ),
        "b_read_by_lane_rows": (
            "look at the reads of `Bs`: `LANE_ROWS` stands in the step",
            (READ_B, READ_B.replace("LANE_COLS", "LANE_ROWS")),
        ),
        "a_read_too_early": (
            "look at the reads of `As`: the next run begins too early",
            (READ_A, READ_A.replace("(4 * LANE_ROWS)", "LANE_ROWS")),
        ),
        "one_row_for_all": ("they must go on with `i`", (READ_A, "As[p, y0]")),
        "b_read_as_a_is": (
            "look at the reads of `Bs`: these are the places of the other side",
            (READ_B, READ_A.replace("As", "Bs").replace("i", "j")),
        ),
        "y0_one_too_far": ("All rows are one too far", (Y0, f"{Y0} + 1")),
        "runs_counted_from_one": ("one run too far", ("i // 4 * (4", "(i // 4 + 1) * (4")),
        "a_row_left_out": (
            "Where you call `put`: the last of a thread's TM rows",
            (PUT_LOOP, PUT_LOOP.replace("range(TM)", "range(TM - 1)")),
        ),
        "y0_for_x0": ("is `y0` in the place of `x0`", (READ_B, READ_B.replace("x0", "y0"))),
        "x0_left_out": ("look at the reads of `Bs`: `x0` is missing", (READ_B, READ_B.replace("x0 + ", ""))),
        "other_results_put": ("its own row and column", (PUT, PUT.replace("acc[i, j]", "acc[i, 0]"))),
        "results_swapped": ("`put` gets `acc[j, i]`", (PUT, PUT.replace("acc[i, j]", "acc[j, i]"))),
        "two_runs_read_whatever_the_tiles": (
            "It happens with",
            (FILL.replace("a[i]", ""), "for i in range(8):\n                    "),
            (f"a[i] = {READ_A}", f"a[i % TM] = {READ_A}"),
        ),
        "a_read_in_steps_of_eight": (
            "A thread must read the rows of `As` that its results belong to",
            (READ_A, "As[p, y0 + i // 4 * 8 + i % 4]"),
        ),
        # the registers
        "without_clear": ("`clear(acc)` is missing", (CLEAR, "")),
        "cleared_for_every_tile": (
            "is `clear(acc)` called inside the loop over `k0`",
            (FETCH, f"            clear(acc)\n{FETCH}"),
        ),
        "a_filled_partly": ("The loop that fills `a` ends too early", (FILL, FILL.replace("TM", "4"))),
        "a_not_filled": ("Nothing is ever stored into `a`", (f"a[i] = {READ_A}", "pass")),
        "read_for_every_product": (
            "only then multiply",
            ("acc[i, j] += a[i] * b[j]", f"acc[i, j] += {READ_A} * {READ_B}"),
        ),
        "slices_for_two_runs": (
            "4 values cannot be assigned to a part of a of another shape",
            (
                f"for i in range(TM):\n                    a[i] = {READ_A}",
                "y1 = y0 + 4 * LANE_ROWS\n"
                "                a[:4] = As[p, y0], As[p, y0 + 1], As[p, y0 + 2], As[p, y0 + 3]\n"
                "                a[4:] = As[p, y1], As[p, y1 + 1], As[p, y1 + 2], As[p, y1 + 3]",
            ),
        ),
        # the tiles
        "without_the_second_barrier": (
            "writes it in `fetch`",
            ("acc[i, j] += a[i] * b[j]\n            cuda.syncthreads()", "acc[i, j] += a[i] * b[j]"),
        ),
        "a_third_barrier": ("More than 2 barriers per tile", (FETCH + SYNC, FETCH + SYNC + SYNC)),
        "past_the_tiles": (
            "loaded and then not used",
            (READ_A, f"A[{ROW_OF_C}, k0 + p] if {ROW_OF_C} < m and k0 + p < k else float32(0)"),
            (READ_B, f"B[k0 + p, {COL_OF_C}] if k0 + p < k and {COL_OF_C} < n else float32(0)"),
        ),
    },
)

# Other ways to the same mistakes: they get the message of a neighbour above.
RUNS_ALIKE = altered(
    "runs_of_four",
    {
        "lane_rows_numbered_downwards": ("lanes lie side by side", (Y0, "lane % LANE_ROWS * 4")),
        "warp_left_out_of_y0": ("The warp is left out of `y0`", (f"{WARP_ROW} + ", "")),
        "threads_along_y": ("the blocks have one dimension", ("threadIdx.x", "threadIdx.y")),
        "both_read_contiguously": (
            "look at the reads of `As`",
            (READ_A, "As[p, y0 + i]"),
            (READ_B, "Bs[p, x0 + j]"),
        ),
    },
)

# ---- stencil -----------------------------------------------------------------------------------------------

SIDE, TILE, ORIGIN = "S = T + 2", "(S, S), float32", "row0 - 1 + e // S, col0 - 1 + e % S"
WALK, INSIDE = "range(ty * T + tx, S * S, T * T)", "0 <= r and r < m and 0 <= c and c < n"
PUT_IN = f"tile[e // S, e % S] = A[r, c] if {INSIDE} else float32(0)"
FILL_TILE = f"""        for e in {WALK}:
            r, c = {ORIGIN}
            {PUT_IN}
"""
WAIT = "        cuda.syncthreads()\n"
TERM, STORES = "acc += w[i, j] * tile[ty + i, tx + j]", "if row0 + ty < m and col0 + tx < n:"
KEEP = "out[row0 + ty, col0 + tx] = acc"


def _filled_by(*lines: str) -> tuple[str, str]:
    """Return a change that fills the tile by these lines, in which "put r, c" fills one place."""
    written = []
    for line in lines:
        before, put, places = line.partition("put ")
        if put:
            r, c = places.split(", ")
            row, col = f"row0 - 1 + {r}", f"col0 - 1 + {c}"
            inside = f"0 <= {row} and {row} < m and 0 <= {col} and {col} < n"
            before += f"tile[{r}, {c}] = A[{row}, {col}] if {inside} else float32(0)"
        written.append(" " * 8 + before + "\n")
    return FILL_TILE, "".join(written)


OWN_PLACE = "put ty + 1, tx + 1"
ROWS = ("if ty == 0:", "    put 0, tx + 1", "    put T + 1, tx + 1")
COLUMNS = ("if tx == 0:", "    put ty + 1, 0", "    put ty + 1, T + 1")


def _only_where(condition: str) -> tuple[str, str]:
    return (INSIDE, f"{INSIDE} and ({condition})")


IN_ROWS, IN_COLUMNS = "0 < e // S and e // S < S - 1", "0 < e % S and e % S < S - 1"

STENCIL = altered(
    "stencil",
    {
        "no_tile": (
            "There is no shared tile",
            (f"        tile = cuda.shared.array({TILE})\n", ""),
            (FILL_TILE + WAIT, ""),
            (
                TERM,
                "r, c = row0 + ty + i - 1, col0 + tx + j - 1\n                "
                f"acc += w[i, j] * A[r, c] if {INSIDE} else float32(0)",
            ),
        ),
        "no_room_for_the_halo": (
            "no room for the whole halo",
            (SIDE, "S = T"),
            (ORIGIN, "row0 + e // S, col0 + e % S"),
            (
                TERM,
                "if 0 <= ty + i - 1 < T and 0 <= tx + j - 1 < T:\n                    "
                "acc += w[i, j] * tile[ty + i - 1, tx + j - 1]",
            ),
        ),
        "halo_of_zeros": ("The halo is forgotten", _only_where(f"{IN_ROWS} and {IN_COLUMNS}")),
        "corners_of_zeros": ("they hold zeros", _only_where(f"{IN_ROWS} or {IN_COLUMNS}")),
        "columns_of_zeros": ("columns on its left and right hold zeros", _only_where(IN_COLUMNS)),
        "rows_of_zeros": ("rows at its top and bottom hold zeros", _only_where(IN_ROWS)),
        "no_halo_after": (
            "bottom row and right column hold zeros",
            _only_where("e // S < S - 1 and e % S < S - 1"),
        ),
        "no_halo_before": ("top row and left column hold zeros", _only_where("e // S > 0 and e % S > 0")),
        "corners_not_filled": ("four corners are never filled", _filled_by(OWN_PLACE, *ROWS, *COLUMNS)),
        "rows_not_filled": ("never filled: its top row", _filled_by(OWN_PLACE, *COLUMNS)),
        "first_pass_only": ("each thread fetches only one", (WALK, "range(ty * T + tx, T * T, T * T)")),
        "one_element_more": ("are never filled, (", (WALK, "range(ty * T + tx, S * S - 2 * S, T * T)")),
        "no_zeros_outside": (
            "store a zero there",
            (PUT_IN, f"if {INSIDE}:\n                tile[e // S, e % S] = A[r, c]"),
        ),
        "guard_of_the_store_around_the_load": (
            "is kept from the load by a guard",
            (
                FILL_TILE,
                f"        {STORES}\n"
                + FILL_TILE.replace("        ", " " * 12, 1)
                .replace("\n            r", "\n                r")
                .replace("\n            tile", "\n                tile"),
            ),
        ),
        "returns_early": (
            "has left with `return`",
            (FILL_TILE, "        if row0 + ty >= m or col0 + tx >= n:\n            return\n" + FILL_TILE),
        ),
        "barrier_in_the_guard": (
            "inside an `if`",
            (WAIT, f"        {STORES}\n            cuda.syncthreads()\n"),
        ),
        "no_barrier": ("There is no barrier", (WAIT, "")),
        "barrier_not_called": ("without parentheses", (WAIT, "        cuda.syncthreads\n")),
        "barrier_too_early": ("before the tile is filled", (WAIT, ""), (FILL_TILE, WAIT + FILL_TILE)),
        "tile_begins_with_the_block": (
            "a row and a column further on",
            (ORIGIN, "row0 + e // S, col0 + e % S"),
        ),
        "tile_begins_a_row_late": (
            "neighbour, a row further on",
            (ORIGIN, "row0 + e // S, col0 - 1 + e % S"),
        ),
        "tile_begins_a_column_late": (
            "neighbour, a column further on",
            (ORIGIN, "row0 - 1 + e // S, col0 + e % S"),
        ),
        "tile_begins_too_early": (
            "a row and a column before",
            (ORIGIN, "row0 - 2 + e // S, col0 - 2 + e % S"),
        ),
        "one_taken_away_twice": (
            "takes the tile's other end",
            ("tile[ty + i, tx + j]", "tile[ty + i - 1, tx + j - 1]"),
        ),
        "one_too_far_in_the_tile": (
            "An index is past the end of `tile`",
            ("tile[ty + i, tx + j]", "tile[ty + i + 1, tx + j + 1]"),
        ),
        "no_block_index": ("works with the first block's tile", (ORIGIN, "e // S - 1, e % S - 1")),
        "blocks_store_to_one_place": (
            "the block index is missing. `cuda.threadIdx`",
            ("cuda.blockIdx.y * T, cuda.blockIdx.x * T", "0, 0"),
        ),
        "tile_turned": ("between filling and reading", ("tile[ty + i, tx + j]", "tile[tx + j, ty + i]")),
        "a_turned": (
            "`A[r, c]`, the row first",
            (ORIGIN, "col0 - 1 + e % S, row0 - 1 + e // S"),
            ("r < m", "r < n"),
            ("c < n else", "c < m else"),
        ),
        "out_turned": (
            "`out` is stored with row and column swapped",
            (STORES, "if row0 + ty < n and col0 + tx < m:"),
            (KEEP, "out[col0 + tx, row0 + ty] = acc"),
        ),
        "wraps_at_the_top_and_left": ("index -1 is the last one", (INSIDE, "r < m and c < n")),
        "wraps_at_the_top": ("A's last row is added", (INSIDE, "r < m and 0 <= c and c < n")),
        "wraps_on_the_left": ("A's last column is added", (INSIDE, "0 <= r and r < m and c < n")),
        "a_ring": ("as on a ring", (PUT_IN, "tile[e // S, e % S] = A[r % m, c % n]")),
        "clamped": (
            "indices are clamped",
            (PUT_IN, "tile[e // S, e % S] = A[min(max(r, 0), m - 1), min(max(c, 0), n - 1)]"),
        ),
        "first_ones_left_out": ("A's first row and first column", ("0 <=", "0 <")),
        "first_row_left_out": ("A's first row counts", ("0 <= r", "0 < r")),
        "loads_outside": ("Threads load outside A", (INSIDE, "0 <= r and 0 <= c")),
        "five_points": ("Only five elements", (TERM, f"if i == 1 or j == 1:\n                    {TERM}")),
        "without_the_middle": (
            "The element in the middle",
            (TERM, f"if i != 1 or j != 1:\n                    {TERM}"),
        ),
        "weights_turned_round": ("`w` is turned round", ("w[i, j]", "w[2 - i, 2 - j]")),
        "weights_swapped": ("Rows and columns of `w`", ("w[i, j]", "w[j, i]")),
        "no_weights": ("without their weights", ("w[i, j] * ", "")),
        "two_rows_of_two": ("three rows of three", ("range(3)", "range(2)")),
        "weights_from_one": ("with indices from 0 to 2", ("w[i, j]", "w[i + 1, j + 1]")),
        "no_guard_of_the_store": ("the store needs a guard.", (STORES, "if True:")),
        "guard_of_the_store_one_too_far": (
            "must be `<`, not `<=`",
            (STORES, "if row0 + ty <= m and col0 + tx <= n:"),
        ),
        "guard_of_the_store_swapped": (
            "it has rows and columns swapped",
            (STORES, "if row0 + ty < n and col0 + tx < m:"),
        ),
        "edges_not_stored": (
            "at the edges of A are never stored",
            (STORES, "if 0 < row0 + ty < m - 1 and 0 < col0 + tx < n - 1:"),
        ),
        "sum_of_a_itself": (
            "the tile is filled and not used",
            (
                TERM,
                "r, c = row0 + ty + i - 1, col0 + tx + j - 1\n                "
                f"acc += w[i, j] * (A[r, c] if {INSIDE} else tile[0, 0] * float32(0))",
            ),
        ),
        "halo_from_a": (
            "loaded more than once by a block",
            (
                TERM,
                "r, c = row0 + ty + i - 1, col0 + tx + j - 1\n                "
                "if 0 < ty + i < S - 1 and 0 < tx + j < S - 1:\n                    "
                f"{TERM}\n                elif {INSIDE}:\n                    acc += w[i, j] * A[r, c]",
            ),
        ),
        "sums_in_out": (
            "Each must be stored once",
            (KEEP, "pass"),
            (TERM, f"{TERM}\n                {STORES}\n                    {KEEP}"),
        ),
        "every_thread_fills_the_tile": ("Every thread fills the whole tile", (WALK, "range(S * S)")),
        "one_thread_fetches_all": (
            "one thread fetches for the whole block",
            (WALK, "range(S * S if tx == 0 and ty == 0 else 0)"),
        ),
        "size_written_out": ("its size is written out", (SIDE, "S = 34")),
        "tile_of_float64": ("holds float64", (TILE, "(S, S), float64")),
        "tile_of_whole_numbers": ("are int32, whole numbers", (TILE, "(S, S), int32")),
        "double_accumulator": ("operations are in float64", ("acc = float32(0)", "acc = 0.0")),
        "zeros_of_float64": ("makes a float64 of both sides", ("else float32(0)", "else 0.0")),
        "return_forgotten": ("returns nothing", ("return stencil", "")),
    },
)

# ---- stencil_limit -----------------------------------------------------------------------------------------

BYTES, FLOP, ROOFS = "bytes = 4 + 4", "2 * side**2 / bytes", "16.7 / wavefronts"
LEAST, ANSWER = "min(roofs, key=roofs.get)", "return bytes, intensity, roofs[limit], limit"

LIMIT = altered(
    "stencil_limit",
    {
        "a_alone": ("that is A alone", (BYTES, "bytes = 4")),
        "nine_reads": (
            "every read of a neighbour. DRAM delivers each element of A once; the",
            (BYTES, "bytes = 4 * side**2 + 4"),
        ),
        "nine_reads_and_no_store": ("and leaves the result out", (BYTES, "bytes = 4 * side**2")),
        "forty": ("40 are nine reads and a result", (BYTES, "bytes = 40")),
        "thirty_six": ("36 are nine reads", (BYTES, "bytes = 36")),
        "weights_too": ("counts the weights too", (BYTES, "bytes = 4 + 4 + 4 * side**2")),
        "floats": ("those are floats", (BYTES, "bytes = 2")),
        "a_warp": ("that is for a warp", (BYTES, "bytes = 32 * 8")),
        "sectors": ("sectors of 32 bytes", (BYTES, "bytes = 32 + 32")),
        "halo_too": ("the halo is counted", (BYTES, "bytes = 4 + 4 * ((31 + side) / 32) ** 2")),
        "one_flop": ("a multiply-add counts as one", (FLOP, "side**2 / bytes")),
        "upside_down": ("upside down", (FLOP, "bytes / (2 * side**2)")),
        "flop_of_a_result": ("those are the FLOP of a result", (FLOP, "2 * side**2")),
        "one_row": ("one row of neighbours", (FLOP, "2 * side / bytes")),
        "per_float": ("that is per float", (FLOP, "2 * side**2 / 2")),
        "by_the_bytes_of_a": ("the 4 bytes of A alone", (FLOP, "2 * side**2 / 4")),
        "rounded_down": ("rounds it down", (FLOP, "2 * side**2 // bytes")),
        "without_l1": ("TFLOPS: L1 is forgotten", (', "L1": 16.7 / wavefronts', "")),
        "without_dram": ("TFLOPS: DRAM is forgotten", ('"DRAM": 4.55 * intensity, ', "")),
        "without_fp32": ("TFLOPS: the FP32 units are forgotten", (', "FP32": 64.8', "")),
        "of_the_data_sheet": ("the data sheet's roof", ('"FP32": 64.8', '"FP32": 67')),
        "dram_alone": ("DRAM's roof alone", (LEAST, '"DRAM"')),
        "l1_alone": ("L1's roof alone", (LEAST, '"L1"')),
        "highest": ("highest of the three", (LEAST, "max(roofs, key=roofs.get)")),
        "times_the_wavefronts": ("multiplied by the wavefronts", (ROOFS, "16.7 * wavefronts")),
        "wavefronts_of_a_result": ("of a whole result", (ROOFS, "16.7 / (wavefronts * side**2)")),
        "times_added": (
            "times of the three parts are added",
            ("roofs[limit]", "1 / sum(1 / roof for roof in roofs.values())"),
        ),
        "divided_by_the_speed": ("divided by 4.55", ("4.55 * intensity", "intensity / 4.55")),
        "share": ("share of 64.8", ("roofs[limit]", "roofs[limit] / 64.8")),
        "flop_per_second": ("FLOP per second. One TFLOPS", ("roofs[limit]", "roofs[limit] * 1e12")),
        "always_dram": ('always "DRAM"', (ANSWER, ANSWER.replace(", limit", ', "DRAM"'))),
        "always_l1": ('always "L1"', (ANSWER, ANSWER.replace(", limit", ', "L1"'))),
        "always_arithmetic": ('always "FP32"', (ANSWER, ANSWER.replace(", limit", ', "arithmetic"'))),
        "names_the_highest": ("names the highest roof", (ANSWER, ANSWER[:-5] + "max(roofs, key=roofs.get)")),
        "another_name": ('must be "DRAM", "L1" or "FP32"', (ANSWER, ANSWER[:-5] + '"memory"')),
        "no_name": ("three numbers and a name", (ANSWER, ANSWER.removesuffix(", limit"))),
    },
)

WRONG = {
    "owner_map": OWNERS,
    "legal_tiles": LEGAL,
    "warp_wavefronts": WAVEFRONTS,
    "runs_of_four": RUNS,
    "stencil": STENCIL,
    "stencil_limit": LIMIT,
}
