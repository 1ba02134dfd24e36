"""The emulator's counts of the ladder against an H200's hardware counters, stage by stage."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from gemm_course.bench.profile.sources import gemm_args
from gemm_course.kernels import LADDER
from gemm_course.records import parse_tiles
from lockstep import emulate
from lockstep_tests.counters import Explained, compare, emulated, hardware, recorded
from tests.kernels.merged_loads import merged_ratios

MEASURED = Path(__file__).parents[2] / "data" / "h200" / "counters"
MERGED = "the compiler merges four neighbouring 32-bit shared loads of a thread into one of 128 bits"
IN_PARTS = (
    "some warps issue a load or a store in parts: up to 2.4 % more instructions, not equally many in every "
    "run, but exactly as many wavefronts; why they split is not known"
)
WHOLE_COPY = (
    "Nsight Compute counts the sectors of a copy's addresses, even where the copy reads fewer bytes or none"
)
PADDED_COPY = (
    "as of any copy; and copies to padded rows, of which every second begins within a sector of 32 bytes, "
    "it counts 1.5 times as many sectors where all tiles are complete"
)
ASYNCHRONOUS = """
    async_copy read_ahead grouped_blocks stream_k wmma wmma_fp16_acc mma_swizzled mma_ring mma_sync
""".split()
SKIPPED_PRODUCT = (
    "of two neighbouring accumulators the second is multiplied by alpha only where it is stored: not beyond "
    "the last column, if n is odd and C is not read"
)
ONE_PRODUCT = (
    "the emulator counts the products with alpha, the compiler makes those with beta: where C is not read, "
    "one product of beta and 0 for four results"
)

MERGED_STAGES = """
    penny_xu_tile block_tiled thread_tiled_1d thread_tiled_2d kernel5 vectorized warp_tiled_tm1 warp_tiled
    double_buffered async_copy
""".split()
COPIES = {
    "shared_load_requests": Explained(IN_PARTS, or_more=True),
    "async_copy_sectors": Explained(WHOLE_COPY, or_more=True),
}
COPIES_AND_RESULTS = COPIES | {
    "shared_store_requests": Explained(IN_PARTS, or_more=True),
}
EXPLAINED_STAGES = {
    "async_copy": {"async_copy_sectors": Explained(WHOLE_COPY, or_more=True)},
    "read_ahead": COPIES,
    "grouped_blocks": COPIES,
    "stream_k": COPIES,
    "wmma": {"async_copy_sectors": Explained(PADDED_COPY, or_more=True)},
    "wmma_fp16_acc": {"async_copy_sectors": Explained(PADDED_COPY, or_more=True)},
    "mma_swizzled": {"async_copy_sectors": Explained(WHOLE_COPY, or_more=True)},
    "mma_ring": COPIES_AND_RESULTS,
    "mma_sync": COPIES_AND_RESULTS,
    "mma_tma": {"shared_store_requests": Explained(IN_PARTS, or_more=True)},
}
BY_ARRIVAL, LARGEST_RUN = ("stream_k", "stream_k_fp16"), 400
# with products by wgmma
WARPGROUPS = (
    "wgmma_tma",
    "warp_specialised",
    "persistent",
    "staged_store",
    "overlapped_store",
    "stream_k_fp16",
)
STORES_PAIRS = ("mma_swizzled", "wgmma_tma", "warp_specialised", "persistent")
STORES_FOURS = ("vectorized", "double_buffered", "async_copy", "read_ahead")


def explained(stage, tiles, row):
    """The explained differences of a stage with these tiles in a recorded launch."""
    found = dict(EXPLAINED_STAGES.get(stage.name, {}))
    if "beta" not in row["case"]:
        n = int(row["n"])
        if stage.name in STORES_PAIRS and n % 2:
            found["float32_mul"] = Explained(SKIPPED_PRODUCT, Fraction(n, n + 1))
        elif stage.name in STORES_FOURS:
            found["float32_mul"] = Explained(ONE_PRODUCT, Fraction(1, 4))
    if stage.name in MERGED_STAGES:
        ratios = merged_ratios(stage, tuple(tiles.items()))
        found |= {name: Explained(MERGED, ratio) for name, ratio in ratios.items() if ratio != 1}
    return found


def test_loads_of_four_neighbouring_words_are_merged():
    """As in the machine code, for tiles worked out by hand."""
    pinned = {
        ("block_tiled", "BM=16 BN=32 BK=64"): ("5/8", "3/4"),
        ("block_tiled", "BM=32 BN=16 BK=64"): ("5/8", "1/2"),  # two rows of As per warp, in one bank
        ("thread_tiled_1d", "BM=128 BN=128 BK=8 TM=32"): ("3/11", "17/33"),
        ("thread_tiled_2d", "BM=128 BN=128 BK=16 TM=8 TN=8"): ("1/4", "5/12"),
        # 32 wavefronts per step become 12
        ("thread_tiled_2d", "BM=128 BN=128 BK=32 TM=16 TN=4"): ("1/4", "3/8"),
        ("warp_tiled_tm1", "BM=128 BN=128 BK=16 WM=64 WN=32 TM=1 TN=8 WNITER=1"): ("5/8", "1"),
    }
    for (name, tiles), (requests, wavefronts) in pinned.items():
        found = merged_ratios(LADDER[name], tuple(parse_tiles(tiles).items()))
        assert list(found.values()) == [Fraction(requests), Fraction(wavefronts)], (name, tiles)


def views(stage, row, tiles):
    """The arguments of a recorded launch, without memory for A, B and C."""
    m, n, k = (int(row[name]) for name in "mnk")
    step = stage.alignment // stage.itemsize
    shapes = [(rows, -(-width // step) * step) for rows, width in ((m, k), (k, n), (m, n))]
    A, B, C = (np.broadcast_to(np.zeros((), stage.dtype), shape) for shape in shapes)
    beta = np.float32(0.5 if "beta" in row["case"] else 0)
    return stage.arguments(m, n, k, np.float32(1), A, B, beta, C, tiles=tiles)


def operands(report, space, op):
    """The accesses to A and B, or to their tiles in shared memory."""
    accesses = report.accesses.fillna(0)
    return accesses[
        accesses["array"].isin(("A", "B", "As", "Bs")) & (accesses["space"] == space) & (accesses["op"] == op)
    ]


def move_asynchronous(counts, report):
    """cp.async is one instruction to the hardware: only its requests count among those of ordinary loads."""
    loads, stores = operands(report, "global", "load"), operands(report, "shared", "store")
    counts["async_copy_requests"] = int(loads["requests"].sum())
    counts["async_copy_sectors"] = int(loads["sectors"].sum())
    counts["global_load_sectors"] -= counts["async_copy_sectors"]
    counts["shared_store_requests"] -= int(stores["requests"].sum())
    counts["shared_store_wavefronts"] -= int(stores["wavefronts"].sum())


def move_matrices(counts, report):
    """ldmatrix has counters of its own; an mma.sync m16n8k16 is 2048 multiply-adds."""
    loads = operands(report, "shared", "load")
    for unit in ("requests", "wavefronts"):
        counts[f"matrix_load_{unit}"] = int(loads[unit].sum())
        counts[f"shared_load_{unit}"] -= counts[f"matrix_load_{unit}"]
    counts["mma_instructions"] = tensor_operations(report) // (16 * 8 * 16)


def move_boxes(counts, report):
    """The hardware counts TMA's copies nowhere."""
    accesses = report.accesses.fillna(0)
    _subtract(counts, accesses[accesses["bits"] > 128])


def move_units(counts, report, tiles):
    """The hardware counts wgmma's reads and stmatrix's stores only in the total of wavefronts.

    A warp's part of a wgmma is 16 by BN by 16 multiply-adds.
    """
    accesses = report.accesses.fillna(0).query("space == 'shared' and bits <= 128")
    read = (accesses["op"] == "load") & accesses["array"].isin(("As", "Bs"))
    laid = (accesses["op"] == "store") & (accesses["array"] == "Cs")
    units = accesses[read | laid]
    _subtract(counts, units)
    counts["unit_wavefronts"] = int(units["wavefronts"].sum())
    counts["mma_instructions"] = tensor_operations(report) // (16 * tiles["BN"] * 16)


def _subtract(counts, accesses):
    for row in accesses.to_dict("records"):
        for unit in ("requests", "sectors", "wavefronts"):
            if (name := f"{row['space']}_{row['op']}_{unit}") in counts:
                counts[name] -= int(row[unit])


def tensor_operations(report) -> int:
    return int(report.arithmetic.query("op == 'mma'")["lanes"].sum())


# What the compiler merges of C's path through shared memory: function, op and bits of the accesses, and the
# remaining fractions of their requests and wavefronts.
QUARTER, HALF = Fraction(1, 4), Fraction(1, 2)
OLD_C = [
    ("add_old", "load", 16, HALF, HALF),  # the pair of C for two accumulators of a lane
    ("add_old", "store", 16, QUARTER, QUARTER),  # eight zeros, in two stores
]
JOINED = {
    "wmma": [("wmma", "load", 32, QUARTER, QUARTER)],  # eight neighbouring accumulators, in two loads
    "wmma_fp16_acc": [("wmma", "load", 16, QUARTER, QUARTER)],
    "mma_ring": OLD_C,
    "mma_sync": OLD_C,
    "mma_tma": OLD_C,
}


def merge(counts, report, stage):
    """Subtract what the compiler saves by merging neighbouring accesses of a thread."""
    accesses = report.accesses.fillna(0).query("array == 'Cs'")
    for function, op, bits, requests, wavefronts in JOINED.get(stage.name, ()):
        these = accesses[
            (accesses["function"] == function) & (accesses["op"] == op) & (accesses["bits"] == bits)
        ]
        for unit, ratio in (("requests", requests), ("wavefronts", wavefronts)):
            counts[f"shared_{op}_{unit}"] -= int(these[unit].sum() * (1 - ratio))


def products_of_c(row, tiles, beta: bool) -> int:
    """Products of float32 by which stream_k computes C, as measured and counted otherwise.

    The compiler multiplies beta by C, and only if beta is not 0; the emulator counts alpha's product. In each
    tile that is added up, a division of 64-bit integers takes one product of floats per thread.
    """
    m, n = int(row["m"]), int(row["n"])
    threads = tiles["BM"] * tiles["BN"] // (tiles["TM"] * tiles["TN"])
    divided = threads * -(-m // tiles["BM"]) * -(-n // tiles["BN"])
    products = int(row["float32_mul"]) - divided
    assert beta or products == 0
    return products if beta else m * (-(-n // 4) * 4)


@pytest.mark.long
@pytest.mark.many(one_in=40, with_all=10)
@pytest.mark.parametrize("case", recorded("ladder", MEASURED))
def test_stages_of_the_ladder(case):
    row = recorded("ladder", MEASURED)[case]
    stage, tiles = LADDER[case.split()[0]], parse_tiles(row["tiles"])
    shape = tuple(int(row[size]) for size in "mnk")
    launch = stage.kernel(tiles), stage.grid(*shape[:2], tiles), stage.block(tiles)
    if stage.name not in BY_ARRIVAL:
        shared_bytes = stage.shared_bytes(tiles)
        report = emulate(*launch, *views(stage, row, tiles), shared_bytes=shared_bytes, counts_only=True)
    elif max(shape) > LARGEST_RUN:
        pytest.skip("what is added up depends on which block arrives last, and to run all takes minutes")
    else:
        standard = gemm_args(shape, stage.alignment, 0.5 if "beta" in case else 0.0, stage.dtype)
        arguments = stage.arguments(*standard, tiles=tiles)
        report = emulate(*launch, *arguments, shared_bytes=stage.shared_bytes(tiles))
        if stage.dtype == "float32":
            row = {**row, "float32_mul": products_of_c(row, tiles, "beta" in case)}
    counts, measured = emulated(report), hardware(row)
    for name in ("local_load_requests", "local_store_requests"):  # the compiler may keep them in registers
        del counts[name], measured[name]
    if stage.name in ASYNCHRONOUS:
        move_asynchronous(counts, report)
    move_boxes(counts, report)
    if stage.dtype == "float32":  # the counter is of a pipe that other instructions use as well
        del counts["mma_instructions"], measured["mma_instructions"]
    elif stage.name not in WARPGROUPS:
        move_matrices(counts, report)
    else:
        move_units(counts, report, tiles)
        ordinary = measured["shared_load_wavefronts"] + measured["shared_store_wavefronts"]
        measured["unit_wavefronts"] = int(row["shared_wavefronts"]) - ordinary
    merge(counts, report, stage)
    compare(measured, counts, explained(stage, tiles, row))
