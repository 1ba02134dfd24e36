"""The emulator's counts of kernels as people write them, against an H200's hardware counters.

EXPLAINED names each counter that differs because the compiler changed the program, and says by how much; all
others must be equal. Where threads take turns as they arrive, hardware cannot count the same twice, and
"at least" is said.
"""

from fractions import Fraction

import numpy as np
import pytest

from lockstep import emulate
from lockstep_tests.counters import Explained, compare, emulated, hardware, recorded
from lockstep_tests.families import programs
from lockstep_tests.unrolled_loops import unrolled

PROGRAMS = programs()
HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)
LOADS = ("shared_load_requests", "shared_load_wavefronts")
STORES = ("shared_store_requests", "shared_store_wavefronts")
ATOMICS = ("global_atomic_requests", "global_atomic_sectors")
FLOPS = ("float32_fma", "float32_add", "float32_mul")

RETRIES = "done by a loop that loads and compares and swaps until it succeeds: as often as threads collide"
MERGED = "neighbours that a thread accesses one after the other are accessed together"
READ_TWICE = "a value that is read twice with no write to it between is loaded once"
LAST_LANE = "the last addition of a warp's sum is done only in lane 0, the one lane that uses it"
UNROLLED = "the loop is unrolled by four, with another loop for the iterations that are left over"
WAITING = "a thread that waits looks again and again, as often as time allows"
TURNS = "which lanes of a warp hold their locks at the same time differs from run to run"
EXP_AND_DIVISION = "exp and division are sequences of instructions"


def each(names, explanation):
    return dict.fromkeys(names, explanation)


def sums_of_warps(warps):
    """31 lanes of each warp save the last of five additions."""
    return {"float32_add": Explained(LAST_LANE, plus=-31 * warps)}


def grid_stride(elements, threads, arrays=1, itemsize=4):
    """Of a loop over range(thread, elements, threads) that loads an element of each array."""
    counts = -(-(elements - np.arange(threads)) // threads)
    return unrolled(counts, *[lambda thread, k: (thread + k * threads) * itemsize] * arrays)


def rows_of_a_sparse_matrix():
    starts, columns, *_ = PROGRAMS["csr_with_a_thread_per_row"].make_args()
    elements, x = lambda row, k: (starts[row] + k) * 4, lambda row, k: columns[starts[row] + k] * 4
    return unrolled(np.diff(starts), elements, elements, x)


def words_of_bytes():
    _, starts, _ = PROGRAMS["hashes_of_words"].make_args()
    return unrolled(np.diff(starts), lambda word, k: starts[word] + k, left_over_last=True)


def grid_sync(blocks, warps, syncs):
    """Of a block, one thread arrives and looks until all have; addresses of library code are not counted."""
    reason = "grid.sync() is a function of a library, with an atomic counter and variables in local memory"
    return {
        "global_load_requests": Explained(f"{reason}; {WAITING}", plus=blocks * syncs, or_more=True),
        "global_atomic_requests": Explained(reason, plus=blocks * syncs),
        **each(
            ("local_load_requests", "local_store_requests"), Explained(reason, plus=warps * (3 + 3 * syncs))
        ),
    }


def by_unrolling(more, counter="global_load"):
    return {f"{counter}_{unit}": Explained(UNROLLED, plus=plus) for unit, plus in more.items() if plus}


def escape_times(name):
    case = PROGRAMS[name]
    return case.expected(*case.make_args())[0].astype(int)


def mandelbrot():
    """x*x and y*y of a step are those of the condition before it, and the first condition is known."""
    times, limit = escape_times("mandelbrot"), PROGRAMS["mandelbrot"].make_args()[1]
    steps, points = times.sum(), times.size
    conditions = steps + (times < limit).sum()
    reason = "x * x and y * y are computed once for a condition and the step after it; the first ones are 0"
    return {
        "float64_fma": Explained(reason, plus=-points),
        "float64_add": Explained(reason, plus=conditions - points),
        "float64_mul": Explained(reason, plus=-steps - points),
    }


def julia():
    """As mandelbrot; and the loop is unrolled whole: the last step's x and y are never used."""
    times = escape_times("julia")
    alive = [int((times >= k).sum()) for k in range(10)]  # after k steps
    conditions, steps = sum(alive[:9]), sum(alive[1:9])
    reason = "x * x and y * y are computed once for a condition and the step after it, 2 * x as x + x"
    exact = {
        "float32_fma": 2 * times.size + steps + alive[8],
        "float32_add": 3 * steps + conditions - alive[8],
        "float32_mul": 2 * conditions - alive[8],
    }
    return {name: Explained(reason, Fraction(0), plus=count) for name, count in exact.items()}


def branches_of_life():
    """Who dies of two neighbours stores in another place than the others that die: what a warp then costs."""
    world, _ = PROGRAMS["game_of_life_on_a_torus"].make_args()
    around = sum(np.roll(world, (r, c), (0, 1)) for r in (-1, 0, 1) for c in (-1, 0, 1)) - world
    lives = (around == 3) | ((around == 2) & (world == 1))
    dies_of_two = (around == 2) & (world == 0)
    requests = sectors = 0
    for stores in (lives, dies_of_two, ~lives & ~dies_of_two):
        for top, left in np.ndindex(20, 4):  # a warp is two rows of 16 threads
            rows, columns = stores[2 * top : 2 * top + 2, 16 * left : 16 * left + 16].nonzero()
            touched = {(2 * top + r) * world.shape[1] + 16 * left + c >> 5 for r, c in zip(rows, columns)}
            requests, sectors = requests + bool(touched), sectors + len(touched)
    reason = "the compiler stores 0 in two places, and the lanes that come to each do so separately"
    return {
        "global_store_requests": Explained(reason, Fraction(0), plus=requests),
        "global_store_sectors": Explained(reason, Fraction(0), plus=sectors),
    }


EXPLAINED = {
    "extremes_of_floats_by_key": {
        f"global_{op}_{unit}": Explained(RETRIES, or_more=True)
        for op in ("load", "atomic")
        for unit in ("requests", "sectors")
    },
    "extremes_of_rows_in_shared_memory": {
        **each(("global_load_requests", "global_load_sectors"), Explained(READ_TWICE, plus=-13)),
        **each(STORES, Explained(MERGED, HALF)),
        **each(LOADS, Explained(f"{MERGED}; atomics are {RETRIES}", HALF, or_more=True)),
        "shared_atomic_requests": Explained(RETRIES, or_more=True),
    },
    "add_floats_in_shared_memory": {
        **each((*LOADS, "shared_atomic_requests"), Explained(RETRIES, or_more=True)),
        "float32_add": Explained(RETRIES, plus=281, or_more=True),  # one per element
    },
    "compact_with_one_counter_per_block_and_one_for_all": {
        "global_store_sectors": Explained("blocks write where their turn puts them", plus=-3, or_more=True),
    },
    "histogram_private_to_each_block": {
        **by_unrolling(grid_stride(1511, 288)),
        "global_load_requests": Explained(
            "a warp's loop issues its loads in parts; why is not known", plus=4
        ),
        **each(LOADS, Explained(READ_TWICE, HALF)),
    },
    "histogram_private_to_each_warp": {
        **by_unrolling(grid_stride(1023, 256)),
        "shared_atomic_requests": Explained(UNROLLED, plus=grid_stride(1023, 256)["requests"]),
    },
    "interleave_through_shared_memory": each(STORES, Explained(MERGED, HALF)),
    "mandelbrot": mandelbrot(),
    "julia": julia(),
    "forces_between_bodies": {
        "shared_load_requests": Explained(f"{MERGED}: three of four floats in 128 bits", HALF),
        "shared_load_wavefronts": Explained(f"{MERGED}: three of four floats in 128 bits", Fraction(3, 4)),
        **each(STORES, Explained(MERGED, QUARTER)),
        # of 5 FMAs, 4 additions and 4 multiplications for two bodies
        "float32_fma": Explained("1 / sqrt(x) takes 4 FMAs", Fraction(9, 5)),
        "float32_add": Explained("1 / sqrt(x) takes an addition", Fraction(5, 4)),
        "float32_mul": Explained("1 / sqrt(x) takes 2 multiplications", Fraction(6, 4)),
    },
    "softmax_of_rows": {
        name: Explained(EXP_AND_DIVISION, plus=9 * 77 * of_each)
        for name, of_each in zip(FLOPS, (9, 1, 1), strict=True)
    },
    "polynomial_by_horner": {  # 7 iterations of 6 warps, whose x is in 42 sectors
        "global_load_requests": Explained("x[i] is loaded once, before the loop", plus=-6 * 6),
        "global_load_sectors": Explained("x[i] is loaded once, before the loop", plus=-6 * 42),
    },
    "grid_stride_sum_by_warps": {**by_unrolling(grid_stride(1409, 288)), **sums_of_warps(9)},
    "dot_product_of_each_block": {
        **by_unrolling(grid_stride(1021, 256, arrays=2)),
        **each(LOADS, Explained(MERGED, HALF)),
    },
    "smallest_and_where_it_is": each(LOADS, Explained(READ_TWICE, plus=-28)),  # in 28 of 30 passes of a warp
    "mean_and_variance_of_rows": sums_of_warps(7),  # of the second sum; every lane uses the first
    "hillis_and_steele_with_two_buffers": each(
        (*LOADS, *STORES),
        # the branches part a block's first warp at five of seven steps
        Explained("what both branches do is done once, for the whole warp", plus=-3 * 5),
    ),
    "blelloch_exclusive_scan": {  # on the way down, in 8 passes of warps per block
        "shared_load_requests": Explained(READ_TWICE, plus=-3 * 8),
        "shared_load_wavefronts": Explained(READ_TWICE, plus=-3 * (1 + 2 + 4 + 4 + 4 + 4 + 2 * 2)),
    },
    "bitonic_sort_of_each_block": {  # where the step is 1: in 7 passes of 4 warps, 2 wavefronts instead of 4
        name: Explained(MERGED, plus=-7 * 4 * (2 if name.endswith("wavefronts") else 1))
        for name in (*LOADS, *STORES)
    },
    "merge_by_binary_search": {
        "global_load_requests": Explained("the one warp with lanes of both kinds loads a value once", plus=-1)
    },
    "csr_with_a_thread_per_row": by_unrolling(rows_of_a_sparse_matrix()),
    "csr_with_a_warp_per_row": sums_of_warps(83),
    "sums_of_warps": sums_of_warps(10),
    "wave_on_a_ring": {  # of 331 elements
        "float32_fma": Explained("2 * x is computed as x + x and subtracted", Fraction(2, 3)),
        "float32_add": Explained("2 * x is computed as x + x and subtracted", Fraction(3)),
    },
    "game_of_life_on_a_torus": branches_of_life(),
    "search_until_the_block_has_found_it": each(LOADS, Explained(READ_TWICE, HALF)),
    "hashes_of_words": by_unrolling(words_of_bytes()),
    "spin_lock_of_one_thread_per_block": {
        **each(ATOMICS, Explained(WAITING, or_more=True)),
        **each(LOADS, Explained(MERGED, QUARTER)),
    },
    "a_lock_for_every_account": each(
        [f"global_{op}_{unit}" for op in ("load", "store", "atomic") for unit in ("requests", "sectors")],
        Explained(TURNS, HALF, or_more=True),
    ),
    "ticket_lock_in_order_of_arrival": each(ATOMICS, Explained(WAITING, or_more=True)),
    "scan_chained_from_block_to_block": {
        **each(ATOMICS, Explained(WAITING, or_more=True)),
        **each(LOADS, Explained("before[0], just written, is not loaded again", plus=-6)),  # in 6 blocks
    },
    "diffusion_with_the_grid_in_step": grid_sync(blocks=4, warps=8, syncs=5),
    "normalise_with_two_phases_of_the_grid": {
        **grid_sync(blocks=5, warps=10, syncs=1),
        "float32_fma": Explained("a division takes 5 FMAs", plus=293 * 5),
    },
    "a_barrier_of_all_blocks_by_hand": each(ATOMICS, Explained(WAITING, or_more=True)),
    "one_warp_hands_over_to_another": {"shared_atomic_requests": Explained(WAITING, or_more=True)},
}


def test_every_program_was_recorded():
    assert set(recorded("program_cases")) == set(PROGRAMS), "record program_cases.py again"
    assert set(EXPLAINED) <= set(PROGRAMS)


@pytest.mark.many(one_in=5)
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_hardware_counts_the_same(name):
    case = PROGRAMS[name]
    report = emulate(case.kernel, case.grid, case.block, *case.make_args(), shared_bytes=case.shared_bytes)
    counts, measured = emulated(report), hardware(recorded("program_cases")[name])
    # No program uses Tensor Cores, but HFMA2.MMA, which makes constants, is counted as if it did.
    del counts["mma_instructions"], measured["mma_instructions"]
    compare(measured, counts, EXPLAINED.get(name, {}))


def test_most_programs_need_no_explanation():
    assert len(PROGRAMS) - len(EXPLAINED) >= 66
