"""Wrong answers that people really give to the exercises of `last_per_cent`."""

from tests.wrong_solutions.altering import altered, returning

# ---- last_wave ---------------------------------------------------------------------------------------------

TILES, WAVES = "tiles = -(-m // BM) * -(-n // BN)", "waves = -(-tiles // 132)"
LAST = "return tiles, waves, tiles - (waves - 1) * 132"
LAST_WAVE = altered(
    "last_wave",
    {
        "tiles_rounded_down": ("round up", (TILES, "tiles = (m // BM) * (n // BN)")),
        "swapped": ("BM and BN are swapped", (TILES, "tiles = -(-m // BN) * -(-n // BM)")),
        "quotient_rounded": ("round up the whole quotient", (TILES, "tiles = -(-m * n // (BM * BN))")),
        "waves_rounded_down": ("The last wave is a wave", (LAST, "return tiles, tiles // 132, 0")),
        "one_too_many": ("One wave too many", (LAST, "return tiles, tiles // 132 + 1, 0")),
        "a_fraction": ("whole", (LAST, "return tiles, tiles / 132, 0")),
        "none_in_a_full_one": ("it has 132 tiles, not 0", (LAST, "return tiles, waves, tiles % 132")),
        "empty_places": ("places that stay empty", (LAST, "return tiles, waves, -tiles % 132")),
        "shared_evenly": ("shared all tiles out evenly", (LAST, "return tiles, waves, tiles // waves")),
        "results": ("not tiles but results", (TILES, "tiles = m * n")),
    },
)

# ---- ring_goes_on ------------------------------------------------------------------------------------------

START, NEXT = "    slot, parity = 0, 0\n    tile = cuda.blockIdx.x\n", "        tile += cuda.gridDim.x\n"
AGAIN = "    tile = cuda.blockIdx.x\n    while tile < tiles:\n        slot, parity = 0, 0\n"
PRODUCE, CONSUME = (
    f"{START}    while tile < tiles:\n        for",
    f"{START}    while tile < tiles:\n        clear",
)
WRAP = "            if slot == slots:\n                slot, parity = 0, parity ^ 1\n"
ONLY_SLOT = "            if slot == slots:\n                slot = 0\n"
GIVEN_BACK = "            give_back(empty, slot)\n            slot += 1\n"
ORDER = "order(full, slot, As, Bs, A, B, tile // tile_cols, tile % tile_cols, step)\n            slot += 1\n"
TAKEN = "            mbarrier_wait(full, slot, parity)\n            multiply(acc, slot, As, Bs)\n"
STORE_TILE = "store(C, acc, tile // tile_cols, tile % tile_cols)"
ONE_TILE = (
    f"        clear(acc)\n        for _ in range(steps):\n{TAKEN}{GIVEN_BACK}{WRAP}        {STORE_TILE}\n"
)


def dedented(lines: str) -> str:
    """Return lines with a level of indentation less."""
    return "".join(line.removeprefix("    ") for line in lines.splitlines(keepends=True))


RING_GOES_ON = altered(
    "ring_goes_on",
    {
        "both_start_again": (
            "start again with each tile, in both roles",
            (PRODUCE, f"{AGAIN}        for"),
            (CONSUME, f"{AGAIN}        clear"),
        ),
        "consume_starts_again": (
            "In `consume` slot and parity start again",
            (CONSUME, f"{AGAIN}        clear"),
        ),
        "produce_starts_again": (
            "In `produce` slot and parity start again",
            (PRODUCE, f"{AGAIN}        for"),
        ),
        "parity_per_tile": (
            "In `consume` the parity changes with each tile",
            (GIVEN_BACK + WRAP, GIVEN_BACK + ONLY_SLOT),
            (f"        {STORE_TILE}\n", f"        {STORE_TILE}\n        parity ^= 1\n"),
        ),
        "produce_takes_all": (
            "The two roles take different tiles",
            (ORDER + WRAP + NEXT, ORDER + WRAP + "        tile += 1\n"),
        ),
        "every_block_all_tiles": (
            "Two blocks compute the same tile",
            (START, "    slot, parity = 0, 0\n    tile = 0\n"),
            (NEXT, "        tile += 1\n"),
        ),
        "one_tile_too_many": (
            "ordered or stored that is not there",
            ("while tile < tiles:", "while tile <= tiles:"),
        ),
        "last_tile_forgotten": (
            "Some tiles are never stored",
            ("while tile < tiles:", "while tile < tiles - 1:"),
        ),
        "sums_go_on": (
            "`clear(acc)` belongs to each tile",
            ("    while tile < tiles:\n        clear(acc)\n", "    clear(acc)\n    while tile < tiles:\n"),
        ),
        "tile_swapped_in_order": (
            "swapped in `order`",
            ("B, tile // tile_cols, tile % tile_cols, step", "B, tile % tile_cols, tile // tile_cols, step"),
        ),
        "strides_by_threads": (
            "a block goes on by `cuda.blockDim.x`",
            (NEXT, "        tile += cuda.blockDim.x\n"),
        ),
        "consume_takes_one": (
            "`consume` still computes one tile",
            (f"    while tile < tiles:\n{ONE_TILE}{NEXT}", dedented(ONE_TILE)),
        ),
        "stores_the_next_tile": (
            "`store` comes behind the line that moves on",
            (f"        {STORE_TILE}\n{NEXT}", f"{NEXT}        {STORE_TILE}\n"),
        ),
        "stored_in_every_step": (
            "tiles are stored more than once",
            (GIVEN_BACK, GIVEN_BACK + f"            {STORE_TILE}\n"),
        ),
        "produce_stays": ("`produce` never moves on", (ORDER + WRAP + NEXT, ORDER + WRAP)),
        "never_cleared": ("Nobody calls `clear(acc)`", ("        clear(acc)\n", "")),
        "a_barrier_per_tile": (
            "the whole block meets at a barrier",
            (NEXT, "        cuda.syncthreads()\n" + NEXT),
        ),
        "producer_waits_at_the_end": (
            "at the end of a tile the producer waits",
            (
                ORDER + WRAP + NEXT,
                ORDER + WRAP + "        mbarrier_wait(empty, slot, parity ^ 1)\n" + NEXT,
            ),
        ),
        "first_tile_again": (
            "which tile does each of them compute",
            ("B, tile // tile_cols, tile % tile_cols, step", "B, 0, 0, step"),
        ),
    },
)

# ---- best_width --------------------------------------------------------------------------------------------

COST = "return -(-tiles // 132) * STEP[BN]"
BEST_WIDTH = altered(
    "best_width",
    {
        "fewest_waves": ("fewest waves", (COST, "return -(-tiles // 132)")),
        "tiles_for_waves": ("counts tiles, not waves", (COST, "return tiles * STEP[BN]")),
        "rounded_down": ("rounded down", (COST, "return tiles // 132 * STEP[BN]")),
        "waves_times_width": ("always 64, the tile whose step", (COST, "return -(-tiles // 132) * BN")),
        "fullest": ("fullest last wave", (COST, "return -tiles / (-(-tiles // 132) * 132)")),
        "longest": ("not `max`", ("min(STEP", "max(STEP")),
        "square_tiles": ("Tiles are 128 rows high", ("-(-m // 128)", "-(-m // BN)")),
        "rows_rounded_down": ("`m / 128` is rounded down", ("-(-m // 128)", "(m // 128)")),
        "columns_rounded_down": ("`n / BN` is rounded down", ("-(-n // BN)", "(n // BN)")),
        "rounded_once": (
            "Round `m / 128` and `n / BN` up one by one",
            ("-(-m // 128) * -(-n // BN)", "-(-m * n // (128 * BN))"),
        ),
        "swapped": ("m and n are swapped", ("-(-m // 128) * -(-n // BN)", "-(-n // 128) * -(-m // BN)")),
        "one_wave_too_many": ("One wave too many", ("-(-tiles // 132)", "(tiles // 132 + 1)")),
    },
)
BEST_WIDTH |= returning(
    "best_width", {"always": ("always the widest", "256"), "time": ("one of the widths", "1.0")}
)

# ---- last_arrival ------------------------------------------------------------------------------------------

STORE = "    partials[part, row, col] = acc\n"
FENCE, BARRIER = (
    "    cuda.threadfence()\n    cuda.syncthreads()\n    if x",
    "    cuda.syncthreads()\n    if before",
)
SECOND_FENCE = "        cuda.threadfence()\n"
ONE, LAST_ONE = "    if x == 0 and y == 0:\n        before", "if before[0] == parts - 1:"
ADD, SUM = "cuda.atomic.add(done, (cuda.blockIdx.y, cuda.blockIdx.x), 1)", "total = float32(0)\n"
DONE = "done[cuda.blockIdx.y, cuda.blockIdx.x]"
LAST_ARRIVAL = altered(
    "last_arrival",
    {
        "no_fence": ("without `cuda.threadfence()`", (FENCE, "    cuda.syncthreads()\n    if x")),
        "no_barrier_before_the_count": ("and only then count", (FENCE, "    cuda.threadfence()\n    if x")),
        "no_barrier_after_the_count": ("may not have written it", (BARRIER, "    if before")),
        "all_threads_count": ("let one thread count", (ONE, "    if True:\n        before")),
        "counts_first": (
            "counted before it is stored",
            (STORE, ""),
            (BARRIER, f"{STORE}    cuda.threadfence()\n{BARRIER}"),
        ),
        "the_count_after": ("*before* it adds", (LAST_ONE, "if before[0] == parts:")),
        "not_atomic": ("one step", (ADD, f"{DONE}\n        {DONE} += 1")),
        "the_last_part": (
            "One block reads the parts of others",
            (LAST_ONE, "if part == parts - 1:"),
            (ADD, "0"),
        ),
        "own_part_first": (
            "in the order of k",
            (SUM, "total = acc\n"),
            ("            total +=", "            if p != part:\n                total +="),
        ),
        "own_part_twice": ("added twice", (SUM, "total = acc\n")),
        "own_part_missing": ("own part is missing", ("range(parts)", "range(parts - 1)")),
        "one_part": ("one part only", ("C[row, col] = total", "C[row, col] = acc")),
        "all_into_c": (
            "a place of its own",
            (STORE, "    C[row, col] += acc\n"),
            ("        C[row, col] = total\n", ""),
        ),
        "atomically_into_c": (
            "straight into C",
            (STORE, "    cuda.atomic.add(C, (row, col), acc)\n"),
            ("        C[row, col] = total\n", ""),
        ),
        "another_tiles_parts": ("parts of another", ("partials[p, row, col]", "partials[p, col, row]")),
        "every_block_resets": (
            "may still count",
            (f"        if x == 0 and y == 0:\n            {DONE} = 0\n", ""),
            (
                "    if before[0] == parts",
                f"    if part != 0:\n        {DONE} = 0\n    if before[0] == parts",
            ),
        ),
        "always_the_last_part": ("does not depend on the count", (LAST_ONE, "if part == parts - 1:")),
        "every_block_adds_up": ("the first one too", (LAST_ONE, "if True:")),
        "one_thread_adds_up": (
            "Only one thread of a tile's last block",
            (LAST_ONE, "if before[0] == parts - 1 and x == 0 and y == 0:"),
        ),
        "rows_and_columns_of_partials": (
            "row and column are swapped in `partials`",
            (STORE, "    partials[part, col, row] = acc\n"),
            ("partials[p, row, col]", "partials[p, col, row]"),
        ),
        "always_the_first_part": ("not the one that counted last", (LAST_ONE, "if part == 0:")),
        "no_second_fence": ("The second fence is missing", (SECOND_FENCE, "")),
        "in_float64": ("`total = 0.0` makes a float64", (SUM, "total = 0.0\n")),
        "from_the_last": ("from the last to the first", ("range(parts)", "range(parts - 1, -1, -1)")),
        "sum_in_c": (
            "C is stored more than once",
            (SUM, "C[row, col] = 0\n"),
            (
                "total += partials[p, row, col]\n        C[row, col] = total",
                "C[row, col] += partials[p, row, col]",
            ),
        ),
        "place_swapped": (
            "Row and column of `done` are swapped",
            ("cuda.blockIdx.y, cuda.blockIdx.x", "cuda.blockIdx.x, cuda.blockIdx.y"),
        ),
        "counts_left": ("set `done` back to 0", (f"{DONE} = 0", "pass")),
        "waits": (
            "A block waits here",
            (LAST_ONE, f"while {ADD.replace(', 1)', ', 0)')} < parts:\n        pass\n    if part == 0:"),
        ),
    },
)

# ---- stream_k_parts ----------------------------------------------------------------------------------------

RANGE = "at, stop = tiles * steps * block // blocks, tiles * steps * (block + 1) // blocks"
END, PART = "end = min(steps, first + stop - at)", "parts.append((tile, first, end))"
STREAM_K_PARTS = altered(
    "stream_k_parts",
    {
        "remainder_lost": (
            "The remainder is lost",
            (RANGE, "each = tiles * steps // blocks\n    at, stop = block * each, (block + 1) * each"),
        ),
        "rounded_up": (
            "rounded-up number of steps",
            (
                RANGE,
                "total, each = tiles * steps, -(-tiles * steps // blocks)\n"
                "    at, stop = min(block * each, total), min((block + 1) * each, total)",
            ),
        ),
        "not_cut": ("must be cut there", (END, "end = first + stop - at")),
        "counted_on": (
            "Steps are counted within their tile",
            (PART, "parts.append((tile, tile * steps + first, tile * steps + end))"),
        ),
        "last_included": ("one past the part's last step", (PART, "parts.append((tile, first, end - 1))")),
        "how_many": ("not how many steps", (PART, "parts.append((tile, first, end - first))")),
        "first_tile_only": ("Only the first tile", ("while at < stop:", "if at < stop:")),
        "two_tiles_only": (
            "Only the first two tiles of a range are there. A range may span more: go on",
            ("while at < stop:", "while at < stop and len(parts) < 2:"),
        ),
        "two_tiles_or_an_empty_part": (
            "with parts that have no steps",
            ("while at < stop:", "for _ in range(2):"),
        ),
        "remainder_for_the_end": ("not at 0", (PART, "parts.append((tile, first, end % steps))")),
        "divided_by_tiles": ("is in tile `at // steps`", ("at // steps, at", "at // tiles, at")),
        "pairs": ("must be a triple", (PART, "parts.append((tile, first))")),
    },
)
STREAM_K_PARTS |= returning(
    "stream_k_parts",
    {
        "empty_part_at_the_end": (
            "a part without steps",
            "(lambda at, stop: [(t, max(at - t * steps, 0), min(stop - t * steps, steps)) "
            "for t in range(at // steps, min(stop // steps, tiles - 1) + 1)])"
            "(tiles * steps * block // blocks, tiles * steps * (block + 1) // blocks)",
        ),
        "first_part_always": (
            "even if the range is empty",
            "(lambda at, stop: [(at // steps, at % steps, min(steps, at % steps + stop - at))])"
            "(tiles * steps * block // blocks, tiles * steps * (block + 1) // blocks)",
        ),
        "whole_tiles": ("whole tiles", "[(t, 0, steps) for t in range(block, tiles, blocks)]"),
        "split_k": (
            "That is split-K",
            "[(t, steps * block // blocks, steps * (block + 1) // blocks) for t in range(tiles)]",
        ),
    },
)

WRONG = {
    "last_wave": LAST_WAVE,
    "ring_goes_on": RING_GOES_ON,
    "best_width": BEST_WIDTH,
    "last_arrival": LAST_ARRIVAL,
    "stream_k_parts": STREAM_K_PARTS,
}
