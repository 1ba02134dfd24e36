"""Wrong answers that people really give to the exercises of `hopper`."""

from tests.wrong_solutions.altering import altered, returning

PARITIES = returning(
    "parities",
    {
        "both_the_same": ("name the same parity", "step % SLOTS, times % 2, times % 2"),
        "waits_the_first_time": (
            "Which parity passes on a new barrier",
            "step % SLOTS, times % 2, 1 - times % 2 if times else 0",
        ),
        "swapped": ("two parities are swapped", "step % SLOTS, 1 - times % 2, times % 2"),
        "of_the_step": ("changes with every step here", "step % SLOTS, step % 2, 1 - step % 2"),
        "never_flipped": ("The parity never changes", "step % SLOTS, 0, 1"),
        "phases": ("These are numbers of phases. A wait", "step % SLOTS, times, times - 1"),
        "slot_of_a_line": ("The slots do not go round", "step, times % 2, 1 - times % 2"),
        "times_for_slot": ("Which slot is it", "times, step % SLOTS % 2, 1 - step % SLOTS % 2"),
        "one_slot_on": ("one too far: steps count", "(step + 1) % SLOTS, times % 2, 1 - times % 2"),
        "slots_from_one": ("The slot counts from 1", "step % SLOTS + 1, times % 2, 1 - times % 2"),
        "two_numbers": ("must be three numbers", "step % SLOTS, times % 2"),
    },
)

EXPECTED = returning(
    "expected_bytes",
    {
        "what_exists": (
            "writes the whole box",
            "1 + BN // 64, 2 * (min(BM, rows) * min(BK, depth) + min(BK, depth) * min(BN, columns))",
        ),
        "elements": ("These are elements", "1 + BN // 64, BM * BK + BK * BN"),
        "float32": ("A float32 has 4 bytes", "1 + BN // 64, 4 * (BM * BK + BK * BN)"),
        "one_box_of_b": ("One request for B is not enough", "2, 2 * (BM * BK + BK * BN)"),
        "bytes_of_one_box": ("You expect the bytes of one", "1 + BN // 64, 2 * (BM * BK + BK * 64)"),
        "without_a": ("request for A's tile is missing", "BN // 64, 2 * (BM * BK + BK * BN)"),
        "swapped": ("first the requests, then the bytes", "2 * (BM * BK + BK * BN), 1 + BN // 64"),
        "only_boxes_inside": (
            "even one that lies wholly outside",
            "1 + min(BN // 64, -(-columns // 64)), 2 * BK * (BM + 64 * min(BN // 64, -(-columns // 64)))",
        ),
        "tile_of_c": ("bytes of the tile of C", "1 + BN // 64, 2 * BM * BN"),
    },
)

STANDSTILL = returning(
    "standstill",
    {
        "as_many_as_late": (
            "With as many slots as steps late",
            "steps if SLOTS >= late else min(SLOTS, steps)",
        ),
        "longer_than_k": ("A short k has fewer steps", "steps if SLOTS > late else SLOTS"),
        "one_slot_too_careful": (
            "One slot more than it gives back late is enough",
            "steps if SLOTS > late + 1 else min(SLOTS, steps)",
        ),
        "one_step_too_far": ("One step too far", "steps if SLOTS > late else min(SLOTS + 1, steps)"),
        "one_short": ("It comes a step further", "steps if SLOTS > late else min(SLOTS - 1, steps)"),
        "always_stands": ("Not every ring stands still", "min(SLOTS, steps)"),
        "never_stands": ("A ring can stand still", "steps"),
        "nothing_at_all": ("something has been multiplied before", "steps if SLOTS > late else 0"),
    },
)

HANDED = returning(
    "handed_over",
    {
        "without_producer": (
            "the producer's warpgroup counts as well",
            "65_536 // (128 * consumers) // 8 * 8, (start + (start - kept) // consumers) // 8 * 8",
        ),
        "nothing_changes_hands": (
            "How many threads has the block",
            "65_536 // (128 * consumers) // 8 * 8, 65_536 // (128 * consumers) // 8 * 8",
        ),
        "launched_without_producer": (
            "The launch is without the producer",
            "65_536 // (128 * consumers) // 8 * 8, "
            "(65_536 // (128 * consumers) + (65_536 // (128 * consumers) - kept) // consumers) // 8 * 8",
        ),
        "no_producer_at_the_launch_either": (
            "divide among one warpgroup more",
            "65_536 // (128 * consumers) // 8 * 8, (65_536 // (128 * consumers) // 8 * 8 "
            "+ (65_536 // (128 * consumers) // 8 * 8 - kept) // consumers) // 8 * 8",
        ),
        "not_rounded": (
            "Nothing is rounded here",
            "65_536 // (128 * (consumers + 1)), 65_536 // (128 * (consumers + 1)) "
            "+ (65_536 // (128 * (consumers + 1)) - kept) // consumers",
        ),
        "any_number": (
            "Registers are given in multiples of 8",
            "65_536 // (128 * (consumers + 1)), (512 - kept) // consumers",
        ),
        "not_shared": ("divide it by their number", "start, (2 * start - kept) // 8 * 8"),
        "all_of_it": ("but it keeps some", "start, (start + start // consumers) // 8 * 8"),
        "nothing_gained": ("what the consumers have already", "start, start"),
        "only_the_gain": ("only what a consumer gains", "start, (start - kept) // consumers // 8 * 8"),
    },
)

WAIT, EXPECT = "mbarrier_wait(empty, slot, parity ^ 1)", "mbarrier_expect(full, slot, 2 * 64 * 64 * 2)"
LOAD_A = "tma_load(As, (slot, 0, 0), A, (row0, step * 64), full, slot)"
LOAD_B = "tma_load(Bs, (slot, 0, 0), B, (step * 64, col0), full, slot)"
NEXT, ROUND = "        slot += 1\n", "slot, parity = 0, parity ^ 1"
PRODUCER = altered(
    "producer",
    {
        "consumers_parity": (
            "stands still before the first tile",
            (WAIT, "mbarrier_wait(empty, slot, parity)"),
        ),
        "never_flipped": ("does not wait the second time round", (ROUND, "slot = 0")),
        "no_wait": ("The producer never waits", (WAIT, "pass")),
        "waits_at_full": ("waits at `full`, which says", (WAIT, WAIT.replace("empty", "full"))),
        "expects_nothing": ("`mbarrier_expect` is missing", (EXPECT, "pass")),
        "expects_elements": (
            "opens before all of them",
            (EXPECT, "mbarrier_expect(full, slot, 2 * 64 * 64)"),
        ),
        "expects_two_bytes_less": (
            "so the phase never ends",
            (EXPECT, "mbarrier_expect(full, slot, 16_384 - 2)"),
        ),
        "expects_float32": (
            "waits for the rest for ever",
            (EXPECT, "mbarrier_expect(full, slot, 2 * 64 * 64 * 4)"),
        ),
        "expects_at_empty": ("announced to `empty`", (EXPECT, EXPECT.replace("full", "empty"))),
        "reports_to_empty": (
            "reports to `empty`",
            (LOAD_A, LOAD_A.replace("full", "empty")),
            (LOAD_B, LOAD_B.replace("full", "empty")),
        ),
        "arrives_only": ("promise no bytes", (EXPECT, "mbarrier_arrive(full, slot)")),
        "expects_before_the_wait": (
            "first wait, then expect",
            (WAIT, EXPECT),
            (f"{EXPECT}\n        tma", f"{WAIT}\n        tma"),
        ),
        "expects_each_box": (
            "bytes of both boxes in one call",
            (EXPECT, EXPECT.replace("2 * 64 * 64 * 2", "64 * 64 * 2")),
            (f"\n        {LOAD_B}", "\n        mbarrier_expect(full, slot, 64 * 64 * 2)\n        " + LOAD_B),
        ),
        "expects_once": (
            "stands before the loop",
            (f"        {EXPECT}\n", ""),
            ("    for step in range(steps):\n", f"    {EXPECT}\n    for step in range(steps):\n"),
        ),
        "waits_until_it_has_come": (
            "one tile is under way",
            (LOAD_B, LOAD_B + "\n        mbarrier_wait(full, slot, parity)"),
        ),
        "waits_until_it_is_read": (
            "In a ring of 3 slots one tile is under way",
            (LOAD_B, LOAD_B + "\n        mbarrier_wait(empty, slot, parity)"),
        ),
        "leaves_a_slot_empty": (
            "In a ring of 3 slots two tiles are under way",
            (
                WAIT,
                "if step > 0 and step >= slots - 1:\n"
                "            late = step - slots + 1\n"
                "            mbarrier_wait(empty, late % slots, late // slots % 2)",
            ),
        ),
        "waits_last": (
            "The wait comes after the copies",
            (f"        {WAIT}\n", ""),
            (f"{LOAD_B}\n", f"{LOAD_B}\n        {WAIT}\n"),
        ),
        "both_into_as": ("Both tiles go to `As`", (LOAD_B, LOAD_B.replace("Bs", "As"))),
        "arrives_as_well": (
            "is an arrival already",
            (EXPECT, f"{EXPECT}\n        mbarrier_arrive(full, slot)"),
        ),
        "b_forgotten": ("Only one `tma_load` per step", (LOAD_B, "pass")),
        "nothing_copied": ("Nothing is ever copied", (LOAD_A, "pass"), (LOAD_B, "pass")),
        "slot_stays": ("`slot` stays 0", (NEXT, "        pass\n")),
        "flips_every_step": (
            "The parity changes with every step.",
            (NEXT, "        slot += 1\n        parity ^= 1\n"),
            (ROUND, "slot = 0"),
        ),
        "slot_beyond": ("runs past the ring", ("slot == slots", "slot > slots")),
        "all_into_slot_0": (
            "All tiles go to slot 0",
            (LOAD_A, LOAD_A.replace("(slot, 0, 0)", "(0, 0, 0)")),
            (LOAD_B, LOAD_B.replace("(slot, 0, 0)", "(0, 0, 0)")),
        ),
        "a_corner_swapped": ("A's box begins at the wrong", ("(row0, step * 64)", "(step * 64, row0)")),
        "b_corner_swapped": ("B's box begins at the wrong", ("(step * 64, col0)", "(col0, step * 64)")),
        "in_steps": (
            "A corner is counted in elements",
            ("(row0, step * 64)", "(row0, step)"),
            ("(step * 64, col0)", "(step, col0)"),
        ),
        "same_tiles": (
            "Every step fetches the first tiles",
            ("(row0, step * 64)", "(row0, 0)"),
            ("(step * 64, col0)", "(0, col0)"),
        ),
        "a_from_the_top": ("A's rows from the top", ("(row0, step", "(0, step")),
        "b_from_the_left": ("B's columns from the left", ("* 64, col0)", "* 64, 0)")),
        "tiles_exchanged": (
            "The tile of A has gone to `Bs`",
            ("tma_load(As", "tma_load(Xs"),
            ("tma_load(Bs", "tma_load(As"),
            ("tma_load(Xs", "tma_load(Bs"),
        ),
    },
)

FULL, FENCE, COMMIT = "mbarrier_wait(full, slot, parity)", "wgmma_fence()", "wgmma_commit()"
PENDING, ARRIVE = "wgmma_wait(1)", "mbarrier_arrive(empty, before)"
BOTH = "As, (slot, 0, p), Bs, (slot, p, 0)"
AGAIN = f"for p in unroll(range(0, 64, 16)):\n            wgmma(64, acc, {BOTH})"
CONSUMER = altered(
    "consumer",
    {
        "no_wait": ("The consumers never wait", (FULL, "pass")),
        "waits_at_empty": ("wait at `empty`, which is", (FULL, FULL.replace("full", "empty"))),
        "producers_parity": ("names the producer's parity", (FULL, "mbarrier_wait(full, slot, parity ^ 1)")),
        "never_flipped": ("wait at `full` returns at once", (ROUND, "slot = 0")),
        "flips_every_step": (
            "The parity changes with every step.",
            (NEXT, "        slot += 1\n        parity ^= 1\n"),
            (ROUND, "slot = 0"),
        ),
        "no_fence": ("must come before the first product", (FENCE, "pass")),
        "no_commit": ("`wgmma_commit()` is missing", (COMMIT, "pass")),
        "no_wait_for_products": (
            "Nobody waits for the products",
            (PENDING, "pass"),
            ("    wgmma_wait(0)", "    pass"),
        ),
        "no_last_wait": ("After the loop products may", ("    wgmma_wait(0)", "    pass")),
        "gives_back_this_slot": (
            "leaves the last group running",
            (ARRIVE, "mbarrier_arrive(empty, slot)"),
            ("    wgmma_wait(0)", "    pass"),
            ("lane == 0 and step > 0", "lane == 0"),
        ),
        "gives_back_first": (
            "before its products are complete",
            (FENCE, f"{FENCE}\n        if lane == 0:\n            mbarrier_arrive(empty, slot)"),
            (PENDING, "wgmma_wait(0)"),
            (ARRIVE, "pass"),
        ),
        "slot_before_by_minus_one": (
            "the memory before `empty`",
            (ARRIVE, "mbarrier_arrive(empty, slot - 1)"),
        ),
        "last_slot_never_given_back": (
            "that is never given back",
            (ARRIVE, "mbarrier_arrive(empty, slot - 1)"),
            ("lane == 0 and step > 0", "lane == 0 and slot > 0"),
        ),
        "one_thread_gives_back": (
            "one thread of the whole block",
            ("lane == 0 and step > 0", "cuda.threadIdx.x == 0 and step > 0"),
        ),
        "this_slot_from_step_1": (
            "leaves the last group running",
            (ARRIVE, "mbarrier_arrive(empty, slot)"),
        ),
        "given_back_in_step_0": (
            "In step 0 there is no step before",
            ("lane == 0 and step > 0", "lane == 0"),
        ),
        "anew_in_each_step": (
            "Only the last step counts",
            (FENCE, f"for e in unroll(range(32)):\n            acc[e] = 0\n        {FENCE}"),
            (PENDING, "wgmma_wait(0)"),
        ),
        "never_given_back": ("No slot is ever given back", (ARRIVE, "pass")),
        "arrives_at_full": ("arrive at `full`", (ARRIVE, ARRIVE.replace("empty", "full"))),
        "all_lanes": ("All 32 lanes arrive", ("lane == 0 and step > 0", "step > 0")),
        "slot_stays": ("`slot` stays the same", (NEXT, "        pass\n")),
        "nothing_multiplied": ("`wgmma` is missing", (f"wgmma(64, acc, {BOTH})", "pass")),
        "sixteen_steps": ("Only 16 of the 64", ("range(0, 64, 16)", "range(0, 16, 16)")),
        "a_without_p": ("first 16 columns of A's", (BOTH, "As, (slot, 0, 0), Bs, (slot, p, 0)")),
        "b_without_p": ("first 16 rows of B's", (BOTH, "As, (slot, 0, p), Bs, (slot, 0, 0)")),
        "both_without_p": ("All four products", (BOTH, "As, (slot, 0, 0), Bs, (slot, 0, 0)")),
        "p_counts_products": ("in steps of 16", ("unroll(range(0, 64, 16))", "range(4)")),
        "barrier_of_the_block": (
            "the producer never comes to it",
            (FENCE, f"cuda.syncthreads()\n        {FENCE}"),
        ),
        "b_by_columns": ("B's part of a step is 16 rows", (BOTH, "As, (slot, 0, p), Bs, (slot, 0, p)")),
        "twice": (
            "added twice",
            (
                COMMIT,
                f"for p in unroll(range(0, 64, 16)):\n            wgmma(64, acc, {BOTH})\n        {COMMIT}",
            ),
        ),
    },
)

WRONG = {
    "parities": PARITIES,
    "expected_bytes": EXPECTED,
    "producer": PRODUCER,
    "consumer": CONSUMER,
    "standstill": STANDSTILL,
    "handed_over": HANDED,
}
