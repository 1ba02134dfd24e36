"""Wrong answers that people really give to the exercises of `overlap`."""

from tests.wrong_solutions.altering import altered, passing, returning

# ---- two_slots ---------------------------------------------------------------------------------------------

LOADS = """        if t + 1 < tiles:
            next_a = A[row, (t + 1) * 16 + tx]
            next_b = B[(t + 1) * 16 + ty, col]
"""
STORES = """        if t + 1 < tiles:
            As[1 - slot, ty, tx] = next_a
            Bs[1 - slot, ty, tx] = next_b
        cuda.syncthreads()
"""
PRODUCTS = """        for p in range(16):
            acc += As[slot, ty, p] * Bs[slot, p, tx]
"""
BARRIER = "        cuda.syncthreads()\n"
INTO_OTHER = ("[1 - slot, ty, tx] = next", "[slot, ty, tx] = next")
TWO = altered(
    "two_slots",
    {
        "loads_after_the_products": (
            "nothing hides the wait",
            (LOADS, ""),
            (PRODUCTS, PRODUCTS + LOADS),
        ),
        "stores_before_the_products": (
            "so the thread waits for the load there",
            (LOADS, LOADS + STORES.replace(BARRIER, "")),
            (PRODUCTS + STORES, PRODUCTS + BARRIER),
        ),
        "no_barrier": ("A barrier is missing", (STORES, STORES.replace(BARRIER, ""))),
        "barrier_before_the_stores": (
            "in the wrong place",
            (STORES, BARRIER + STORES.replace(BARRIER, "")),
        ),
        "barrier_before_the_products": (
            "The barrier stands before the products",
            (LOADS, LOADS + STORES),
            (PRODUCTS + STORES, PRODUCTS),
        ),
        "indices_of_b_swapped": (
            "only the row of `B` changes",
            ("B[(t + 1) * 16 + ty, col]", "B[col, (t + 1) * 16 + ty]"),
        ),
        "into_the_slot_that_is_read": ("Read slot `t % 2`, fill the other", INTO_OTHER),
        "a_tile_beyond_k": (
            "After the last tile there is none",
            (LOADS, LOADS.replace("if t + 1 < tiles:", "if True:")),
        ),
        "nothing_stored": ("Nothing is stored into C", ("C[row, col] = acc", "pass")),
        "two_barriers": ("barriers for", (PRODUCTS, PRODUCTS + BARRIER)),
        "same_tile_again": ("over and over", ("(t + 1) * 16", "0 * 16")),
        "this_tile_again": ("Which tile lies in which slot", ("(t + 1) * 16", "t * 16")),
        "last_tile_forgotten": ("The last tile is missing", ("range(tiles)", "range(tiles - 1)")),
        "accumulator_anew": (
            "the accumulator starts anew",
            ("        slot = t % 2\n", "        slot = t % 2\n        acc = float32(0)\n"),
        ),
        "loaded_twice": (
            "fetch each once",
            (
                "next_a = A[row, (t + 1) * 16 + tx]",
                "next_a = A[row, (t + 1) * 16 + tx] + 0 * A[row, t * 16 + tx]",
            ),
        ),
    },
)

TWO |= altered(
    "two_slots",
    {
        "asks_among_the_products": (
            "among the products",
            (
                """        if t + 1 < tiles:
            next_a = A[row, (t + 1) * 16 + tx]
            next_b = B[(t + 1) * 16 + ty, col]
        for p in range(16):
""",
                """        for p in range(16):
            if t + 1 < tiles and p == 12:
                next_a = A[row, (t + 1) * 16 + tx]
                next_b = B[(t + 1) * 16 + ty, col]
""",
            ),
        ),
        "in_float64": ("float64", ("As[slot, ty, p] * Bs", "As[slot, ty, p] * 1.0 * Bs")),
    },
)

# ---- ring_places -------------------------------------------------------------------------------------------

PLACES = returning(
    "ring_places",
    {
        "fills_what_it_reads": ("is the one that is read", "t % SLOTS, t % SLOTS, t + SLOTS - 1"),
        "fills_the_next": ("is needed next", "t % SLOTS, (t + 1) % SLOTS, t + SLOTS - 1"),
        "one_ahead": ("only one tile ahead", "t % SLOTS, (t + 1) % SLOTS, t + 1"),
        "slots_ahead": ("would go into the slot", "t % SLOTS, (t + SLOTS) % SLOTS, t + SLOTS"),
        "tile_too_far": ("the tile is not", "t % SLOTS, (t - 1) % SLOTS, t + SLOTS"),
        "tile_too_near": ("the one after this one", "t % SLOTS, (t - 1) % SLOTS, t + 1"),
        "without_end": ("without end", "t, t + SLOTS - 1, t + SLOTS - 1"),
        "order": ("first the slot that is read", "(t - 1) % SLOTS, t % SLOTS, t + SLOTS - 1"),
        "slot_and_tile_swapped": (
            "The last two are swapped",
            "t % SLOTS, t + SLOTS - 1, (t + SLOTS - 1) % SLOTS",
        ),
        "slot_for_tile": (
            "not its slot",
            "t % SLOTS, (t + SLOTS - 1) % SLOTS, (t + SLOTS - 1) % SLOTS",
        ),
        "two_numbers": ("must be three numbers", "t % SLOTS, (t - 1) % SLOTS"),
        "always_three": ("whatever `SLOTS`", "t % 3, (t + 2) % 3, t + 2"),
    },
)

# ---- any_ring ----------------------------------------------------------------------------------------------

ALLOWED = "    IN_FLIGHT = SLOTS - 2\n"
WAIT = "            cp_async_wait(IN_FLIGHT)\n"
MEET = "            cuda.syncthreads()\n"
FETCH = (
    "            fetch(As, Bs, (t + SLOTS - 1) % SLOTS, A, B, row, col, t + SLOTS - 1, m, n, k)\n"
    "            cp_async_commit()\n"
)
LOOP = "        for t in range((k + 15) // 16):\n"
PROLOGUE = "        for t in range(SLOTS - 1):\n"
PROLOGUE_COMMIT = "            cp_async_commit()\n" + LOOP
GUARDED = (
    "            if t + SLOTS - 1 < (k + 15) // 16:\n"
    "                fetch(As, Bs, (t + SLOTS - 1) % SLOTS, A, B, row, col, t + SLOTS - 1, m, n, k)\n"
    "                cp_async_commit()\n"
)
MULTIPLY = """            for p in range(16):
                acc += As[t % SLOTS, ty, p] * Bs[t % SLOTS, p, tx]
"""
RING = altered(
    "any_ring",
    {
        "no_wait": ("Nobody waits for the copies", (WAIT, "")),
        "waits_for_too_few": ("lets too many groups go on", (ALLOWED, ALLOWED.replace("- 2", "- 1"))),
        "no_barrier": ("A barrier per tile is missing", (MEET, "")),
        "barrier_before_the_wait": ("proves nothing", (WAIT + MEET, MEET + WAIT)),
        "fetch_before_the_barrier": (
            "The next copies start before the barrier",
            (MEET + FETCH, FETCH + MEET),
        ),
        "filled_too_early": (
            "follow tile t from slot to slot",
            ("(t + SLOTS - 1) % SLOTS", "(t + 1) % SLOTS"),
        ),
        "commit_in_the_guard": ("an empty group counts too", (FETCH, GUARDED)),
        "no_commit_in_the_loop": (
            "Nothing is committed in the loop",
            (FETCH, FETCH.replace("            cp_async_commit()\n", "")),
        ),
        "waits_for_all": ("no better than a shorter one", (ALLOWED, ALLOWED.replace("SLOTS - 2", "0"))),
        "no_epilogue": ("may end while", ("        cp_async_wait(0)\n", "")),
        "waits_at_the_store": (
            "stands in an `if`",
            ("        cp_async_wait(0)\n        if row", "        if row"),
            ("            C[row, col] = acc", "            cp_async_wait(0)\n            C[row, col] = acc"),
        ),
        "k_rounded_down": ("The last tile is missing", (LOOP, LOOP.replace("(k + 15) // 16", "k // 16"))),
        "asks_after_the_products": (
            "the wait follows at once, and nothing overlaps",
            (FETCH, ""),
            (MULTIPLY, MULTIPLY + FETCH),
        ),
        "unknown_to_the_compiler": (
            "`SLOTS - 2` is neither",
            (WAIT, WAIT.replace("IN_FLIGHT", "SLOTS - 2")),
        ),
        "known_only_at_run_time": (
            "is neither",
            (WAIT, WAIT.replace("IN_FLIGHT", "IN_FLIGHT if t * 16 + 16 < k else 0")),
        ),
        "prologue_in_one_group": (
            "does not commit each tile by itself",
            (PROLOGUE_COMMIT, PROLOGUE_COMMIT[4:]),
        ),
        "threads_outside_do_not_copy": (
            "Threads outside C do not copy",
            (
                FETCH,
                "            if row < m and col < n:\n" + FETCH.replace("            ", "                "),
            ),
        ),
        "places_for_tiles": ("counts the places", ("range((k + 15) // 16)", "range(0, k, 16)")),
        "threads_outside_return": (
            "Threads outside C return early",
            (PROLOGUE, "        if row >= m or col >= n:\n            return\n" + PROLOGUE),
        ),
        "prologue_fills_all_slots": (
            "nobody has asked for",
            (PROLOGUE, PROLOGUE.replace("SLOTS - 1", "SLOTS")),
        ),
        "a_tile_of_zeros": (
            "the last one is all zeros",
            (LOOP, LOOP.replace("(k + 15) // 16", "k // 16 + 1")),
        ),
        "second_barrier": ("One per tile is enough", (MULTIPLY, MULTIPLY + MEET)),
        "accumulator_anew": (
            "the accumulator starts anew",
            (WAIT, "            acc = float32(0)\n" + WAIT),
        ),
    },
)

# ---- ring_suspects -----------------------------------------------------------------------------------------


def _bugs(w: str, x: str, y: str, z: str) -> str:
    return f'{{"W": "{w}", "X": "{x}", "Y": "{y}", "Z": "{z}"}}'


SUSPECTS = passing(
    "ring_suspects",
    {
        "slot_and_wait": ("cannot be right even then", _bugs("wait", "none", "barrier", "slot")),
        "slot_and_barrier": ("with the first tile", _bugs("barrier", "none", "slot", "wait")),
        "wait_and_barrier": ("old values would be read", _bugs("slot", "none", "wait", "barrier")),
        "y_is_right": ("even where numbers are right", _bugs("slot", "barrier", "none", "wait")),
        "w_is_right": ("wrong numbers with four", _bugs("none", "slot", "barrier", "wait")),
        "x_waits_for_nothing": ("more than enough", _bugs("slot", "wait", "barrier", "none")),
        "twice": ("Each occurs once", _bugs("slot", "none", "slot", "wait")),
        "other_word": ("must be one of", _bugs("slot", "ok", "barrier", "wait")),
        "missing": ("no answer for Z", '{"W": "slot", "X": "none", "Y": "barrier"}'),
        "a_list": ("must be a dict", '["slot", "none", "barrier", "wait"]'),
    },
)

# ---- reads_ahead -------------------------------------------------------------------------------------------

FIRST = """        cp_async_wait(IN_FLIGHT)
        cuda.syncthreads()
        read_step(a[0], b[0], As, Bs, 0, 0)
"""
ASK = "            fetch(As, Bs, (t + SLOTS - 1) % SLOTS, A, B, t + SLOTS - 1, m, n, k)\n"
TURN = """                if p == BK - 1:
                    cp_async_wait(IN_FLIGHT)
                    cuda.syncthreads()
                    slot = (t + 1) % SLOTS
"""
READ = "                read_step(a[then], b[then], As, Bs, slot, (p + 1) % BK)\n"
SETS = "                now, then = p % 2, (p + 1) % 2\n"
NEXT_SLOT = "                slot = (t + 1) % SLOTS if p == BK - 1 else t % SLOTS\n"
ADD = "                add_step(acc, a[now], b[now])\n"
AT_THE_TOP = """            cp_async_wait(IN_FLIGHT)
            cuda.syncthreads()
            read_step(a[0], b[0], As, Bs, t % SLOTS, 0)
"""
BEFORE_THE_STEPS = """            cp_async_wait(IN_FLIGHT)
            cuda.syncthreads()
"""
JUST_THE_SLOT = """                if p == BK - 1:
                    slot = (t + 1) % SLOTS
"""
NOT_LAST = READ.replace("                ", "                if p < BK - 1:\n                    ", 1)
AHEAD = altered(
    "reads_ahead",
    {
        "waits_in_step_0": (
            "stand in step 0",
            (
                "                slot = t % SLOTS\n                if p == BK - 1:\n",
                "                slot = t % SLOTS\n                if p == 0:\n",
            ),
            (
                "                    slot = (t + 1) % SLOTS\n",
                "                if p == BK - 1:\n                    slot = (t + 1) % SLOTS\n",
            ),
        ),
        "places_for_tiles": ("counts the places", ("range((k + BK - 1) // BK)", "range(0, k, BK)")),
        "barrier_at_the_top": (
            "step 0 of each tile is read and multiplied at once",
            (FIRST, ""),
            (ASK, AT_THE_TOP + ASK),
            (TURN, ""),
            (READ, NOT_LAST),
        ),
        "one_set": (
            "was just read is multiplied at once",
            (READ, ""),
            (ADD, ADD + READ.replace("then", "now")),
            ("now, then = p % 2, (p + 1) % 2", "now = 0"),
        ),
        "multiplies_what_it_reads": ("The set that was just read", (ADD, ADD.replace("now", "then"))),
        "old_slot": ("comes from the old slot", ("slot = (t + 1) % SLOTS", "slot = t % SLOTS")),
        "step_0_forgotten": (
            "Step 0 of each tile is left out",
            ("(p + 1) % BK)", "(p + 1) % BK if p + 1 < BK else 1)"),
            ("a[0], b[0], As, Bs, 0, 0)", "a[0], b[0], As, Bs, 0, 1)"),
            (ADD, ADD.replace("                ", "                if p > 0:\n                    ", 1)),
        ),
        "slot_0_only": (
            "every read goes to slot 0",
            ("slot = t % SLOTS", "slot = 0"),
            ("slot = (t + 1) % SLOTS", "slot = 0"),
            (ASK, ""),
        ),
        "no_wait": (
            "Nobody waits in the loop",
            ("                    cp_async_wait(IN_FLIGHT)\n", ""),
        ),
        "no_barrier": ("A barrier per tile is missing", ("                    cuda.syncthreads()\n", "")),
        "barrier_before_the_wait": (
            "The barrier stands before the wait",
            (
                TURN,
                TURN.replace("cp_async_wait(IN_FLIGHT)", "X")
                .replace("cuda.syncthreads()", "cp_async_wait(IN_FLIGHT)")
                .replace("X", "cuda.syncthreads()"),
            ),
        ),
        "reads_before_the_wait": (
            "read before the wait and the barrier",
            (TURN + SETS + READ, SETS + NEXT_SLOT + READ + TURN),
        ),
        "asks_too_early": (
            "filled while somebody may still read it",
            (ASK, ""),
            (
                TURN,
                "                if p == BK - 1:\n        "
                + ASK.replace("t + SLOTS", "t + 1 + SLOTS")
                + TURN,
            ),
        ),
        "a_barrier_per_step": (
            "One before the loop and one per tile are enough",
            (ADD, ADD + "                cuda.syncthreads()\n"),
        ),
        "waits_for_all": ("no better than a shorter one", ("IN_FLIGHT = SLOTS - 2", "IN_FLIGHT = 0")),
        "asks_for_one_more": (
            "is fetched more than once",
            ("for t in range(SLOTS - 1):", "for t in range(SLOTS):"),
        ),
        "reads_twice": ("operands of", (READ, READ + READ)),
        "no_last_wait": ("no `cp_async_wait(0)`", ("        cp_async_wait(0)\n", "")),
        "waits_again_for_all": (
            "waits for every tile that was asked for",
            (ASK, ASK + "            cp_async_wait(0)\n"),
        ),
        "commits_again": ("`fetch` commits already", (ASK, ASK + "            cp_async_commit()\n")),
        "waits_in_every_step": (
            "every step waits",
            (
                "                if p == BK - 1:\n",
                "                cp_async_wait(IN_FLIGHT)\n                if p == BK - 1:\n",
            ),
        ),
        "no_first_wait": (
            "Before the loop nobody waits",
            (FIRST, FIRST.replace("        cp_async_wait(IN_FLIGHT)\n", "")),
        ),
        "no_first_barrier": (
            "Before the loop a barrier is missing",
            (FIRST, FIRST.replace("        cuda.syncthreads()\n", "")),
        ),
        "nobody_asks": ("nobody asks for another tile", (ASK, "")),
        "asks_for_the_tile_of_now": ("tile `t` is asked for", (ASK, ASK.replace("B, t + SLOTS - 1", "B, t"))),
        "asks_for_one_further": (
            "tile `t + SLOTS` is asked for",
            (ASK, ASK.replace("B, t + SLOTS - 1", "B, t + SLOTS")),
        ),
        "starts_anew": (
            "Only the last tile counts",
            (
                ASK,
                ASK + "            for i in range(4):\n"
                "                for j in range(4):\n                    acc[i, j] = 0\n",
            ),
        ),
        "asks_only_inside": (
            "behind the last tile a slot is read",
            (
                ASK,
                "            if t + SLOTS - 1 < (k + BK - 1) // BK:\n    "
                + ASK
                + "            else:\n                cp_async_commit()\n",
            ),
        ),
        "fills_another_slot": (
            "Which slot does `fetch` fill",
            (ASK, ASK.replace("(t + SLOTS - 1) % SLOTS", "(t + 1) % SLOTS")),
        ),
        "waits_before_the_steps": (
            "stand before the steps of a tile",
            (ASK, ASK + BEFORE_THE_STEPS),
            (TURN, JUST_THE_SLOT),
        ),
        "waits_before_the_steps_and_asks": (
            "stand before the steps of a tile",
            (ASK, BEFORE_THE_STEPS + ASK),
            (TURN, JUST_THE_SLOT),
        ),
        "asks_behind_the_wait": ("is asked for behind the wait", (ASK, ""), (TURN, TURN + "        " + ASK)),
        "asks_for_the_tile_after": (
            "tile `t + 1` is asked for",
            (ASK, ASK.replace("t + SLOTS - 1", "t + 1")),
        ),
        "reads_its_own_step": ("reads its own operands", ("(p + 1) % BK)", "p)")),
        "nothing_added": ("Nothing is added", (ADD, "")),
        "k_rounded_down": ("The last tile is missing", ("(k + BK - 1) // BK", "k // BK")),
        "in_float64": (
            "float64",
            ("acc = cuda.local.array((4, 4), float32)", "acc = cuda.local.array((4, 4), float64)"),
        ),
    },
)

# ---- shared_walk -------------------------------------------------------------------------------------------

ALL = "for i in range(TM) for"
WALK = returning(
    "shared_walk",
    {
        "row_by_row": ("Begin where the last row", f"[(i, j) {ALL} j in range(TN)]"),
        "column_by_column": ("Begin where the last column", "[(i, j) for j in range(TN) for i in range(TM)]"),
        "swapped": ("It would be one with i and j", "[(j, i) for i in range(TM) for j in range(TN)]"),
        "all_from_the_right": ("both operands change", f"[(i, TN - 1 - j) {ALL} j in range(TN)]"),
        "one_too_far": ("is no place of", f"[(i, s if i % 2 == 0 else TN - s) {ALL} s in range(TN)]"),
        "diagonal": ("is missing", "[(i, i) for i in range(min(TM, TN))]"),
        "back_over_the_same": ("comes twice", f"[(i, abs(s)) {ALL} s in range(1 - TN, TN)]"),
    },
)

# ---- grouped_tile ------------------------------------------------------------------------------------------

LAST = "return group * GROUP + within % height, within // height"
GROUPS = altered(
    "grouped_tile",
    {
        "full_groups": ("may have fewer rows", ("min(GROUP, rows - group * GROUP)", "GROUP")),
        "row_by_row_within": (
            "row by row, as without",
            (LAST, "return group * GROUP + within // columns, within % columns"),
        ),
        "swapped": ("are swapped", (LAST, "return group * GROUP + within // height, within % height")),
        "first_group": ("begins at row 0", ("return group * GROUP + ", "return ")),
        "columns": (
            "groups of columns",
            ("GROUP * columns", "GROUP * rows"),
            ("rows - group * GROUP", "columns - group * GROUP"),
            (LAST, "return within // height, group * GROUP + within % height"),
        ),
        "order": ("first the row", (LAST, "return within // height, group * GROUP + within % height")),
        "rows_for_columns": ("not `GROUP * rows`", ("GROUP * columns", "GROUP * rows")),
        "rows_less_groups": ("what the groups above leave", ("rows - group * GROUP", "rows - group")),
        "one_group": ("where does GROUP come in", (LAST, "return block % rows, block // rows")),
        "by_the_block": ("counts from block 0", ("within % height", "block % height")),
        "one_number": ("must be two numbers", (LAST, "return group * GROUP + within % height")),
    },
)

WRONG = {
    "two_slots": TWO,
    "ring_places": PLACES,
    "any_ring": RING,
    "ring_suspects": SUSPECTS,
    "reads_ahead": AHEAD,
    "shared_walk": WALK,
    "grouped_tile": GROUPS,
}
