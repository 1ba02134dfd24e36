"""Every stage against NumPy, on the emulator: any shape, padding of NaN, alpha and beta, no findings."""

import numpy as np
import pytest

from gemm_course.kernels import LADDER
from tests.kernels.conftest import allowed

ANY_STAGE = pytest.mark.parametrize("stage", LADDER, ids=lambda stage: stage.name)
SMALL = {  # tiles small enough that a few hundred elements make several blocks and several steps along k
    "naive_uncoalesced": {"BM": 8, "BN": 4},
    "naive_coalesced": {"BM": 2, "BN": 32},
    "penny_xu_tile": {"BM": 7, "BN": 7, "BK": 7},
    "block_tiled": {"BM": 8, "BN": 16, "BK": 16},
    "thread_tiled_1d": {"BM": 32, "BN": 16, "BK": 8, "TM": 4},
    "thread_tiled_2d": {"BM": 32, "BN": 64, "BK": 8, "TM": 4, "TN": 8},
    "kernel5": {"BM": 32, "BN": 64, "BK": 16, "TM": 4, "TN": 8},
    "vectorized": {"BM": 32, "BN": 64, "BK": 8, "TM": 4, "TN": 8},
    "warp_tiled_tm1": {"BM": 64, "BN": 64, "BK": 8, "WM": 32, "WN": 32, "TN": 4, "WNITER": 2},
    "warp_tiled": {"BM": 64, "BN": 64, "BK": 8, "WM": 32, "WN": 32, "TM": 8, "TN": 4},
    "double_buffered": {"BM": 64, "BN": 64, "BK": 8, "WM": 32, "WN": 32, "TM": 4, "TN": 8},
    "async_copy": {"BM": 64, "BN": 64, "BK": 8, "WM": 32, "WN": 32, "TM": 4, "TN": 8, "SLOTS": 3},
    "read_ahead": {"BM": 64, "BN": 64, "BK": 8, "WM": 32, "WN": 32, "TM": 4, "TN": 8, "SLOTS": 3},
    "wmma": {"BM": 64, "BN": 64, "BK": 16, "WM": 32, "WN": 32},
    "wmma_fp16_acc": {"BM": 64, "BN": 64, "BK": 16, "WM": 32, "WN": 32, "PAD": 16},
    "mma_swizzled": {"BM": 64, "BN": 64, "BK": 16, "WM": 32, "WN": 32},
    "mma_ring": {"BM": 64, "BN": 64, "BK": 32, "WM": 32, "WN": 32, "SLOTS": 3, "GROUP": 2},
    "mma_sync": {"BM": 64, "BN": 64, "BK": 32, "WM": 32, "WN": 32, "SLOTS": 3, "GROUP": 2},
    "mma_tma": {"BM": 128, "BN": 64, "BK": 32, "WM": 32, "WN": 32, "SLOTS": 3, "GROUP": 2},
    "wgmma_tma": {"BM": 64, "BN": 64, "BK": 32, "SLOTS": 2, "GROUP": 2},
    "warp_specialised": {"BM": 128, "BN": 64, "BK": 16, "SLOTS": 2, "GROUP": 2},
    "persistent": {"BM": 128, "BN": 64, "BK": 16, "SLOTS": 2, "GROUP": 2, "BLOCKS": 2},
    "staged_store": {"BM": 128, "BN": 128, "BK": 32, "SLOTS": 3, "GROUP": 2, "PARTS": 2, "BLOCKS": 2},
    "overlapped_store": {"BM": 128, "BN": 128, "BK": 32, "SLOTS": 3, "GROUP": 2, "PARTS": 2, "BLOCKS": 2},
}
SMALL["grouped_blocks"] = SMALL["read_ahead"] | {"GROUP": 2}
SMALL["stream_k"] = SMALL["grouped_blocks"] | {"SLOTS": 2, "BLOCKS": 5}
SMALL["stream_k_fp16"] = SMALL["overlapped_store"] | {"CUT": 2, "BLOCKS": 5}


def small(stage) -> dict[str, int]:
    """The stage's tiles of SMALL; of a stage that is not there, the smallest that its sliders offer."""
    return SMALL.get(stage.name) or min(stage.legal_choices(), key=lambda tiles: sum(tiles.values()))


SHAPES = [(1, 1, 1), (3, 5, 0), (1, 70, 1), (67, 1, 3), (129, 131, 17), (63, 65, 9), (64, 64, 16), (5, 7, 31)]


@pytest.mark.many(one_in=16, with_all=8)
@ANY_STAGE
@pytest.mark.many(one_in=32, with_all=16)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_small_tiles_at_odd_shapes(stage, shape, emulated):
    for alpha, beta in ((1.0, 0.0), (1.25, -0.5)):
        run = emulated(stage, *shape, tiles=small(stage), alpha=alpha, beta=beta)
        assert run.error < allowed(stage)
        assert run.padding_untouched
        assert run.report.findings == []


@pytest.mark.many(one_in=14, with_all=4)
@ANY_STAGE
def test_default_tiles_at_an_odd_shape(stage, emulated):
    run = emulated(stage, 141, 267, 23, alpha=0.5, beta=2.0)
    assert run.error < allowed(stage)
    assert run.padding_untouched
    assert run.report.findings == []


@ANY_STAGE
@pytest.mark.many(one_in=4)
def test_rows_as_short_as_the_alignment_allows(stage, emulated):
    run = emulated(stage, 9, 30, 11, tiles=small(stage), alignment=stage.alignment)
    assert run.error < allowed(stage)
    assert run.report.ok


@ANY_STAGE
@pytest.mark.many(one_in=4)
def test_c_is_not_read_where_beta_is_zero(stage, emulated):
    assert emulated(stage, 33, 37, 5, tiles=small(stage)).loads("C") == 0


@pytest.mark.many(one_in=4, with_all=2)
@ANY_STAGE
@pytest.mark.many(one_in=9)
def test_the_arithmetic_is_one_fma_per_element_and_step(stage, emulated):
    """On a shape the tiles divide, nothing is computed twice and nothing in float64.

    The Tensor Cores' multiply-adds count as such, whatever the type of the accumulators; mma_sync and
    mma_tma multiply zeros in their first step.
    """
    tiles = stage.complete(small(stage))
    m, n, k = 2 * tiles["BM"], tiles["BN"], 4 * tiles.get("BK", 4)
    arithmetic = emulated(stage, m, n, k, tiles=tiles).report.arithmetic
    op, more = ("fma", 1) if stage.dtype == "float32" else ("mma", 16)
    fmas = arithmetic[(arithmetic["op"] == op) & (arithmetic["dtype"] == stage.accumulate)]
    assert m * n * k <= fmas["lanes"].sum() <= m * n * (k + more)
    assert "float64" not in set(arithmetic["dtype"])


def test_every_stage_reads_less_shared_memory_per_fma(emulated):
    """The reason the ladder exists: block tile, thread column, thread tile."""
    m = n = k = 64
    reads = []
    for name in ("block_tiled", "thread_tiled_1d", "thread_tiled_2d"):
        accesses = emulated(LADDER[name], m, n, k, tiles=SMALL[name]).report.accesses
        shared = accesses[(accesses["space"] == "shared") & (accesses["op"] == "load")]
        reads.append(shared["lanes"].sum() / (m * n * k))
    assert reads == [2, (4 + 1) / 4, (4 + 8) / (4 * 8)]


@pytest.mark.parametrize("pad", [0, 8, 16])
def test_padding_sets_the_rows_of_fragments_apart(pad, emulated):
    """Without it the 8 rows of As that are read at once start 128 bytes apart: in the same banks."""
    report = emulated(LADDER["wmma"], 128, 128, 64, tiles={"PAD": pad}).report
    reads = report.accesses.query("op == 'load' and array in ('As', 'Bs')").set_index("array")
    conflicts = reads["wavefronts"] / reads["ideal_wavefronts"]
    assert conflicts.to_dict() == {0: {"As": 8, "Bs": 8}, 8: {"As": 1, "Bs": 1}, 16: {"As": 2, "Bs": 2}}[pad]


@pytest.mark.many(one_in=16, with_all=4)
@pytest.mark.parametrize("bk", [32, 64])
@pytest.mark.parametrize("wn", [32, 64])
@pytest.mark.parametrize(
    ("name", "arrays"), [("mma_swizzled", "AB"), ("mma_ring", "ABC"), ("mma_sync", "ABC"), ("mma_tma", "ABC")]
)
def test_swizzled_rows_never_collide(name, arrays, bk, wn, emulated):
    tiles = {"BM": 64 if wn == 32 else 128, "BN": 128, "BK": bk, "WM": 32, "WN": wn}
    accesses = emulated(LADDER[name], 128, 128, 128, tiles=tiles, beta=1.0).report.accesses
    shared = accesses[accesses["space"] == "shared"]
    assert set(shared["array"]) == {f"{matrix}s" for matrix in arrays}
    assert set(shared["op"]) == {"load", "store"}
    assert (shared["wavefronts"] == shared["ideal_wavefronts"]).all()


@pytest.mark.parametrize("name", ["mma_ring", "mma_sync", "mma_tma"])
def test_results_leave_in_whole_sectors(name, emulated):
    """Pairs of FP16 values stored straight from the registers of a warp would fill half of each sector."""
    accesses = emulated(LADDER[name], 128, 256, 64).report.accesses
    stores = accesses[(accesses["array"] == "C") & (accesses["op"] == "store")]
    assert set(stores["bits"]) == {128}
    assert (stores["sectors"] * 32 == stores["bytes"]).all()


@pytest.mark.parametrize("name", ["read_ahead", "grouped_blocks"])
def test_a_warp_reads_its_operands_without_bank_conflicts(name, emulated):
    """Runs of four, side by side: the eight lanes along a row read 32 neighbouring floats of Bs."""
    accesses = emulated(LADDER[name], 128, 256, 16).report.accesses
    reads = accesses[(accesses["space"] == "shared") & (accesses["op"] == "load")]
    assert set(reads["bits"]) == {128}
    assert (reads["wavefronts"] == reads["ideal_wavefronts"]).all()


def test_the_order_of_blocks_covers_every_tile_once(emulated):
    """GROUP rows of tiles at a time, the last group shorter than the others."""
    run = emulated(LADDER["grouped_blocks"], 64 * 5, 64 * 3, 8, tiles=SMALL["grouped_blocks"])
    stores = run.report.accesses[
        (run.report.accesses["array"] == "C") & (run.report.accesses["op"] == "store")
    ]
    assert stores["lanes"].sum() * 4 == 64 * 5 * 64 * 3
    assert np.isfinite(run.C[:, : 64 * 3]).all()
