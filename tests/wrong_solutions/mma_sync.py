"""Wrong answers that people really give to the exercises of `mma_sync`."""

from tests.wrong_solutions.altering import altered, passing, returning, solution

OWNER = returning(
    "accumulator_owner",
    {
        "column_not_halved": ("Halve it", "(row % 8 * 4 + column, row // 8 * 2 + column % 2)"),
        "rows_not_folded": ("begin with lane 0 again", "(row * 4 + column // 2, row // 8 * 2 + column % 2)"),
        "dealt_by_columns": ("That deals columns", "(column * 4 + row % 8 // 2, row // 8 * 2 + column % 2)"),
        "eight_lanes_a_row": ("rows of 8 lanes", "(row % 8 * 8 + column // 2, row // 8 * 2 + column % 2)"),
        "places_swapped": ("other way round", "(row % 8 * 4 + column // 2, column % 2 * 2 + row // 8)"),
        "row_left_out": ("leaves out the row", "(row % 8 * 4 + column // 2, column % 2)"),
        "neighbour_left_out": ("which of the two neighbours", "(row % 8 * 4 + column // 2, row // 8 * 2)"),
        "row_only": ("counts rows by 1", "(row % 8 * 4 + column // 2, row // 8)"),
        "order": (
            "first the lane, then the place",
            "(row // 8 * 2 + column % 2, row % 8 * 4 + column // 2)",
        ),
        "lane_only": ("must be two numbers", "row % 8 * 4 + column // 2"),
    },
)

LOAD_A, LOAD_B = "ldmatrix_x4(a, As, (line, half))", "ldmatrix_x4_trans(b, Bs, (line, half))"
LEFT, RIGHT = "mma_m16n8k16(acc[0], a, b[0:4])", "mma_m16n8k16(acc[1], a, b[4:8])"
PLACES = "line, half = lane % 16, lane // 16 * 8"
STORE = "row, col = lane // 4 + e // 2 * 8, j * 8 + lane % 4 * 2 + e % 2"
ALL, ONE = (f"for j in unroll(range({n})):\n" for n in (2, 1))
IN_ACC = "        for e in unroll(range(4)):\n            "
BY_HAND = altered(
    "by_hand",
    {
        "b_not_transposed": ("without transposing", (LOAD_B, LOAD_B.replace("_trans", ""))),
        "a_transposed": ("by the transposing form", (LOAD_A, LOAD_A.replace("x4", "x4_trans"))),
        "forms_swapped": (
            "two forms are swapped",
            (LOAD_B, LOAD_B.replace("_trans", "")),
            (LOAD_A, LOAD_A.replace("x4", "x4_trans")),
        ),
        "as_they_copied": ("as they copied them", (PLACES, "line, half = lane // 2, lane % 2 * 8")),
        "second_matrix_on_the_right": (
            "the second matrix is the lower left one",
            (PLACES, "line, half = lane % 8 + lane // 16 * 8, lane // 8 % 2 * 8"),
        ),
        "half_forgotten": ("same left pieces again", (PLACES, "line, half = lane % 16, 0")),
        "eight_rows": ("rows 0 to 7 again", (PLACES, "line, half = lane % 8, lane // 16 * 8")),
        "one_place_for_all": ("all lanes name the same address", (PLACES, "line, half = 0, 0")),
        "half_in_pieces": ("A column counts FP16 values", (PLACES, "line, half = lane % 16, lane // 16")),
        "halves_of_b_swapped": (
            "halves of C are exchanged",
            (LEFT, LEFT.replace("0:4", "4:8")),
            (RIGHT, RIGHT.replace("4:8", "0:4")),
        ),
        "one_half_of_b": ("the same 8 columns of B", (RIGHT, RIGHT.replace("4:8", "0:4"))),
        "operands_swapped": (
            "A and B are swapped",
            (LEFT, "mma_m16n8k16(acc[0], b, a[0:4])"),
            (RIGHT, "mma_m16n8k16(acc[1], b, a[4:8])"),
        ),
        "both_in_one": ("the same accumulators", (RIGHT, RIGHT.replace("acc[1]", "acc[0]"))),
        "lower_rows_forgotten": ("lower half", (f"{IN_ACC}{STORE}", f"{IN_ACC.replace('4', '2')}{STORE}")),
        "second_product_forgotten": ("`acc[1]` is missing", (RIGHT, "pass")),
        "first_product_forgotten": ("`acc[0]` is missing", (LEFT, "pass")),
        "right_half_forgotten": ("The right half", (f"{ALL}{IN_ACC}{STORE}", f"{ONE}{IN_ACC}{STORE}")),
        "rows_swapped": ("Rows 0 to 7 and 8 to 15", (STORE, STORE.replace("e // 2 * 8", "(1 - e // 2) * 8"))),
        "quarters_transposed": (
            "quarter of C arrives transposed",
            (STORE, "row, col = lane % 4 * 2 + e % 2 + e // 2 * 8, j * 8 + lane // 4"),
        ),
        "store_transposed": (
            "row and column are swapped",
            ("row0 + row, col0 + col", "row0 + col, col0 + row"),
        ),
        "neighbours_swapped": ("neighbours are swapped", (STORE, STORE.replace("+ e % 2", "+ 1 - e % 2"))),
        "places_swapped": (
            "Places 1 and 2",
            (STORE, "row, col = lane // 4 + e % 2 * 8, j * 8 + lane % 4 * 2 + e // 2"),
        ),
        "starts_anew": (
            "start anew",
            (LOAD_A, f"{ALL}{' ' * 4}{IN_ACC}{' ' * 4}acc[j, e] = 0\n        {LOAD_A}"),
        ),
        "no_product": ("0 everywhere", (LEFT, "pass"), (RIGHT, "pass")),
        "twice": (
            "2 times too large",
            (LEFT, f"{LEFT}\n        {LEFT}"),
            (RIGHT, f"{RIGHT}\n        {RIGHT}"),
        ),
        "not_stored": ("Nothing is stored", ("C[row0 + row, col0 + col] = acc[j, e]", "pass")),
        "one_row_below": ("two rows are one apart", (STORE, STORE.replace("e // 2 * 8", "e // 2"))),
        "one_column_on": ("begins one column after", (STORE, STORE.replace("j * 8", "j"))),
        "pair_not_doubled": ("A lane's pair begins", (STORE, STORE.replace("lane % 4 * 2", "lane % 4"))),
        "half_a_warp": ("in no branch", (LOAD_A, f"if lane < 16:\n                {LOAD_A}")),
        "added_to_c": ("not `+=`", ("] = acc[j, e]", "] += acc[j, e]")),
        "row0_forgotten": ("lacks the block's first, `row0`", ("row0 + row, col0", "row, col0")),
        "col0_forgotten": ("lacks the block's first, `col0`", ("col0 + col]", "col]")),
        "stored_as_copied": (
            "stored where the lane copied",
            (STORE, "row, col = lane // 2, lane % 2 * 8 + j * 4 + e"),
        ),
        "every_second_of_b": (
            "one value of each pair",
            (LEFT, LEFT.replace("0:4", "::2")),
            (RIGHT, RIGHT.replace("4:8", "1::2")),
        ),
        "only_stores": (
            "The stores are there",
            (PLACES, ""),
            (LOAD_A, ""),
            (LOAD_B, ""),
            (LEFT, ""),
            (RIGHT, "pass"),
        ),
        "pair_apart": (
            "stored 4 columns apart",
            (STORE, STORE.replace("lane % 4 * 2 + e % 2", "lane % 4 + e % 2 * 4")),
        ),
        "eight_lanes_down": (
            "8 lanes lay one below the other",
            (STORE, "row, col = lane % 8 + e // 2 * 8, j * 8 + lane // 8 * 2 + e % 2"),
        ),
        "row_and_column_swapped": (
            "Row and column are swapped:",
            (PLACES, "half, line = lane % 16, lane // 16 * 8"),
        ),
        "products_behind_the_loop": (
            "behind the loop along k",
            (LEFT, "pass"),
            (RIGHT, ""),
            (
                f"        cuda.syncwarp()\n    {ALL}",
                f"        cuda.syncwarp()\n    {LEFT}\n    {RIGHT}\n    {ALL}",
            ),
        ),
        "outside": ("stores outside C", (STORE, STORE.replace("j * 8", "j * 16"))),
    },
)

SWIZZLE = returning(
    "swizzle",
    {
        "as_it_is": ("Every piece stays", "piece"),
        "same_in_all_rows": ("swapped in the same way: the pieces", "7 - piece"),
        "even_and_odd": ("even and odd", "piece ^ row % 2"),
        "four": ("repeat after 4", "piece ^ row % 4"),
        "every_eight": ("every 8 rows", "piece ^ row // 8 % 8"),
        "two_rows": ("Two neighbouring rows", "piece ^ row // 2 % 8"),
        "not_folded": ("beyond the end of its row", "piece + row"),
        "in_values": ("not FP16 values", "(piece ^ row % 8) * 8"),
        "in_bytes": ("not bytes", "(piece ^ row % 8) * 16"),
        "in_banks": ("not banks", "(piece + row) % 8 * 4"),
        "from_one": ("count from 0", "(piece + row) % 8 + 1"),
        "through_the_tile": ("within its row", "row * 8 + (piece ^ row % 8)"),
        "no_brackets": ("Use brackets", "piece + row % 8"),
        "negative": ("A place is negative", "piece - row % 8"),
        "product": ("Two pieces of a row", "piece * row % 8"),
        "a_pair": ("must be a whole number", "(row, piece)"),
        "divided_by_zero": ("`place(0, 0)` stopped with ZeroDivisionError", "piece // (row // 8)"),
    },
)

ANY = returning(
    "swizzle_any",
    {
        "as_it_is": ("Every piece stays", "piece"),
        "row_modulo_pieces": ("`row % 4` is the wrong count", "piece ^ row % pieces"),
        "always_eight": ("beyond the end of its row", "piece ^ row % 8"),
        "in_values": ("not FP16 values", "(piece ^ (row // repeat % min(8, pieces))) * 8"),
        "repeat_of_zero": ("There every row needs another swap", "piece ^ (row // (8 // pieces) % pieces)"),
        "repeats_after_four": ("repeat after 4", "piece ^ (row // repeat % min(4, pieces))"),
        "eight_places_on": ("8 apart share their banks", "(piece + row * pieces // 8) % pieces"),
        "half_of_the_row": ("need different swaps", "piece ^ (row // 2 % pieces if pieces < 8 else row % 8)"),
        "every_eight": ("every 8 rows", "piece ^ (row // 8 % min(8, pieces))"),
    },
)

REGISTERS = returning(
    "fragment_registers",
    {
        "values": ("two of them", "WM * WN // 32 + sets * (WM + WN) // 2"),
        "accumulators_twice": ("hold operands only", "sets * (WM * WN // 32 + (WM + WN) // 4)"),
        "no_accumulators": ("accumulators are missing", "sets * (WM + WN) // 4"),
        "no_operands": ("operands are missing", "WM * WN // 32"),
        "b_forgotten": ("B's fragments are missing", "WM * WN // 32 + sets * WM // 4"),
        "a_forgotten": ("A's fragments are missing", "WM * WN // 32 + sets * WN // 4"),
        "fp16_accumulators": ("float32: one register each", "WM * WN // 64 + sets * (WM + WN) // 4"),
        "fragments": ("counts fragments", "WM * WN // 32 + sets * (WM + WN) // 16"),
        "whole_warp": ("whole warp", "WM * WN + sets * (WM + WN) * 8"),
        "all_values": ("all values of the warp", "WM * WN + sets * (WM + WN) * 16"),
        "half_of_b": ("two fragments of 16 × 8", "WM * WN // 32 + sets * (WM // 16 * 4 + WN // 16 * 2)"),
        "four_steps": ("four times too many", "WM * WN // 32 + sets * (WM + WN)"),
        "times": ("*plus*", "WM * WN // 32 + sets * (WM // 16) * (WN // 16) * 4"),
        "one_set": ("whatever `sets`", "WM * WN // 32 + (WM + WN) // 4"),
    },
)

CLOCKS = passing(
    "product_clocks",
    {
        "per_sm": ("divides by the SMs", "(1531159, 80730, 76.3)"),
        "data_sheet": ("4 clocks per product", "(255193, 80730, 76.3)"),
        "one_clock": ("one clock per product", "(63798, 80730, 76.3)"),
        "one_core": ("one Tensor Core did all", "(202113024, 80730, 76.3)"),
        "guessed": ("The clocks are not right", "(400000, 80730, 76.3)"),
        "percent": ("count clocks, not percent", "(382790, 17.4, 76.3)"),
        "fraction": ("That is a fraction", "(382790, 0.174, 76.3)"),
        "work": ("in which they work", "(382790, 382790, 76.3)"),
        "all_cores": ("a 528th", "(382790, 42625440, 76.3)"),
        "guessed_pauses": ("The pauses are not right", "(382790, 60000, 76.3)"),
        "multiplied": ("That multiplies", "(382790, 80730, 52.0)"),
        "hundred": ("another instruction", "(382790, 80730, 100)"),
        "added": ("That adds", "(382790, 80730, 80.4)"),
        "two_numbers": ("three numbers", "(382790, 82.6)"),
        "two_of_three": ("`at_most` must be a number", "(382790, 80730, None)"),
    },
)

# ---- ring_and_swizzle --------------------------------------------------------------------------------------

RING_WAIT, RING_JOIN = "            cp_async_wait(IN_FLIGHT)\n", "            cuda.syncwarp()\n"
RING_ASK = "            fetch_swizzled(As, Bs, (t + SLOTS - 1) % SLOTS, A, B, t + SLOTS - 1, k)\n"
RING_A, RING_B = "place(line, p // 8 + half) * 8", "place(p + line, 2 * j + half) * 8"
RING_HALVES = "mma_m16n8k16(acc[2 * j], a, b[0:4])", "mma_m16n8k16(acc[2 * j + 1], a, b[4:8])"
RING_LOAD_A = f"                ldmatrix_x4(a, As, (slot, line, {RING_A}))\n"
RING_STEPS = solution("ring_and_swizzle").partition(RING_ASK)[2].partition("        cp_async_wait(0)")[0]
RING_TILES = "(k + 63) // 64"
RING = altered(
    "ring_and_swizzle",
    {
        "read_plain": (
            "as if they were not",
            (RING_A, "(p // 8 + half) * 8"),
            (RING_B, "(2 * j + half) * 8"),
        ),
        "a_without_p": ("Every step reads the first 16 columns", (RING_A, "place(line, half) * 8")),
        "p_in_values": ("A place is one of 8", (RING_A, "place(line, p + half) * 8")),
        "b_without_p": (
            "reads the first 16 rows of B's",
            ("(slot, p + line, place(p + line,", "(slot, line, place(line,"),
        ),
        "b_one_row_on": (
            "one row further on",
            ("(slot, p + line, place(p + line,", "(slot, p // 16 + line, place(p // 16 + line,"),
        ),
        "b_one_piece_on": ("one piece further on", (RING_B, "place(p + line, j + half) * 8")),
        "halves_exchanged": (
            "two halves of `b` are exchanged",
            (RING_HALVES[0], RING_HALVES[0].replace("0:4", "4:8")),
            (RING_HALVES[1], RING_HALVES[1].replace("4:8", "0:4")),
        ),
        "not_transposed": ("need the transposing form", ("ldmatrix_x4_trans(b", "ldmatrix_x4(b")),
        "no_wait": ("Nobody waits in the loop", (RING_WAIT, "")),
        "no_join": ("the tile is made of all lanes'", (RING_JOIN, "")),
        "joins_first": ("The lanes join before they wait", (RING_WAIT + RING_JOIN, RING_JOIN + RING_WAIT)),
        "asks_first": (
            "The slot is filled before",
            (RING_WAIT + RING_JOIN + RING_ASK, RING_ASK + RING_WAIT + RING_JOIN),
        ),
        "lets_too_many_go_on": (
            "lets too many groups go on",
            ("IN_FLIGHT = SLOTS - 2", "IN_FLIGHT = SLOTS - 1"),
        ),
        "wrong_slot": ("tile t lies in slot", ("slot = t % SLOTS", "slot = (t + 1) % SLOTS")),
        "asks_for_one_more": (
            "fetched more than once",
            ("for t in range(SLOTS - 1):", "for t in range(SLOTS):"),
        ),
        "waits_for_all": ("yours waits for more", ("IN_FLIGHT = SLOTS - 2", "IN_FLIGHT = 0")),
        "a_for_each_product": (
            "where five are enough",
            (RING_LOAD_A, ""),
            (
                "                    ldmatrix_x4_trans",
                f"    {RING_LOAD_A}                    ldmatrix_x4_trans",
            ),
        ),
        "k_rounded_down": ("The last tile is missing", ("(k + 63) // 64", "k // 64")),
        "first_step_only": ("Only the first 16 steps", ("range(0, 64, 16)", "range(0, 16, 16)")),
        "asks_last": (
            "tile 1 is asked for when tile 0 has been multiplied",
            (RING_ASK + RING_STEPS, RING_STEPS + RING_ASK),
        ),
        "commits_once_more": (
            "`fetch_swizzled` commits already",
            (RING_ASK, RING_ASK + "            cp_async_commit()\n"),
        ),
        "asks_only_inside": (
            "no group is added",
            (RING_ASK, f"            if t + SLOTS - 1 < {RING_TILES}:\n    {RING_ASK}"),
        ),
        "asks_for_none": ("No tile is asked for in the loop", (RING_ASK, "")),
        "begins_late": (
            "The loop begins with `SLOTS - 1`",
            (f"for t in range({RING_TILES})", f"for t in range(SLOTS - 1, {RING_TILES})"),
        ),
        "slot_without_remainder": ("There are 2 slots, from 0 on", ("slot = t % SLOTS", "slot = t")),
        "joins_at_the_end": (
            "Between the wait and the first read a `cuda.syncwarp()` is missing",
            (RING_JOIN, ""),
            (RING_STEPS, RING_STEPS + RING_JOIN),
        ),
        "asks_for_the_next": (
            "Tile 1 is asked for 2 times",
            ("A, B, t + SLOTS - 1, k)", "A, B, t + 1, k)"),
        ),
        "asks_for_one_later": (
            "Tile 1 is never asked for",
            ("A, B, t + SLOTS - 1, k)", "A, B, t + SLOTS, k)"),
        ),
        "tile_in_values": (
            "counted in tiles, not in values",
            ("A, B, t + SLOTS - 1, k)", "A, B, (t + SLOTS - 1) * 64, k)"),
        ),
        "halves_far_apart": (
            "lie in the wrong accumulators",
            (RING_HALVES[0], RING_HALVES[0].replace("2 * j", "j")),
            (RING_HALVES[1], RING_HALVES[1].replace("2 * j + 1", "j + 4")),
        ),
        "left_half_only": (
            "The right 8 of each 16 columns are 0",
            (f"                    {RING_HALVES[1]}\n", ""),
        ),
        "right_half_only": (
            "The left 8 of each 16 columns are 0",
            (f"                    {RING_HALVES[0]}\n", ""),
        ),
        "p_by_one": ("p counts 0, 1, 2, 3 here", ("range(0, 64, 16)", "range(4)")),
        "place_for_column": (
            "column = place * 8",
            (RING_A, RING_A.removesuffix(" * 8")),
            (RING_B, RING_B.removesuffix(" * 8")),
        ),
        "one_tile_more": ("4 tiles are multiplied, and there are 3", (RING_TILES, f"{RING_TILES} + 1")),
        "no_last_wait": ("no `cp_async_wait(0)`", ("        cp_async_wait(0)\n", "")),
    },
)

WRONG = {
    "accumulator_owner": OWNER,
    "by_hand": BY_HAND,
    "swizzle": SWIZZLE,
    "swizzle_any": ANY,
    "ring_and_swizzle": RING,
    "fragment_registers": REGISTERS,
    "product_clocks": CLOCKS,
}
