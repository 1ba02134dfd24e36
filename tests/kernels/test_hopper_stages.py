"""The Hopper stages: what they fetch, what they do not touch, how long they are."""

import inspect

import numpy as np
import pytest

from gemm_course.kernels import LADDER
from gemm_course.kernels.parts.tensor_tiles import CONSUMER_REGISTERS, PRODUCER_REGISTERS
from lockstep import emulate
from lockstep.limits import REGISTERS_PER_SM
from tests.kernels.conftest import padded

NAMES = ("mma_tma", "wgmma_tma", "warp_specialised", "persistent", "staged_store", "overlapped_store")
PERSISTENT = ("persistent", "staged_store", "overlapped_store")  # blocks that compute many tiles
SMALL = {"BM": 128, "BN": 128, "BK": 32, "SLOTS": 3, "GROUP": 2}


def small(name: str) -> dict[str, int]:
    parts = {"PARTS": 2}
    more = {"staged_store": parts, "overlapped_store": parts, "mma_tma": {"WM": 32, "WN": 64}}
    return SMALL | more.get(name, {})


@pytest.mark.many(one_in=8, with_all=2)
@pytest.mark.parametrize("name", NAMES)
def test_tiles_are_fetched_once_per_block_and_nothing_past_the_edges(name, emulated):
    m, n, k = 130, 150, 40
    report = emulated(LADDER[name], m, n, k, tiles=small(name)).report
    loads = report.accesses.query("space == 'global' and op == 'load'").set_index("array")["bytes"]
    assert loads.to_dict() == {"A": 2 * m * k * 2, "B": 2 * k * n * 2}  # two tiles of C across, two down


@pytest.mark.parametrize("name", ["staged_store", "overlapped_store"])
def test_results_leave_through_shared_memory_without_conflicts(name, emulated):
    report = emulated(LADDER[name], 130, 150, 40, tiles=small(name)).report
    stores = report.accesses.query("array == 'C' and op == 'store'")
    boxes = stores["bits"] == 64 * 64 * 16
    assert stores[boxes]["bytes"].sum() == 130 * 144 * 2
    assert stores[~boxes]["bytes"].sum() == 130 * 6 * 2  # TMA stores 16 bytes or nothing
    staged = report.accesses.query("array == 'Cs' and op == 'store'")
    assert (staged["wavefronts"] == staged["ideal_wavefronts"]).all()


@pytest.mark.many(one_in=12, with_all=6)
@pytest.mark.full(reason="emulates large grids")
@pytest.mark.parametrize("blocks", [1, 3, 4, 7])
@pytest.mark.parametrize("name", PERSISTENT)
def test_persistent_blocks_share_all_tiles(name, blocks, emulated):
    tiles = small(name) | {"BLOCKS": blocks}
    run = emulated(LADDER[name], 300, 300, 40, tiles=tiles, alpha=0.5, beta=1.5)
    assert run.report.grid[0] == blocks
    assert run.error < 5e-4 and run.padding_untouched and run.report.findings == []


@pytest.mark.full(reason="large launches")
@pytest.mark.many(one_in=2)
@pytest.mark.parametrize("blocks", [1, 3])
def test_a_loop_over_tiles_changes_no_access(blocks, emulated):
    """The same copies, products and stores as with one tile per block; there is less to set up."""
    arrays, tiles = ["A", "B", "As", "Bs", "C"], small("warp_specialised")
    one_each = emulated(LADDER["warp_specialised"], 300, 150, 70, tiles=tiles, beta=1.0).report
    many = emulated(LADDER["persistent"], 300, 150, 70, tiles=tiles | {"BLOCKS": blocks}, beta=1.0).report
    for column in ("bytes", "requests", "wavefronts"):
        moved = [
            report.accesses.groupby(["array", "op"])[column].sum().loc[arrays] for report in (one_each, many)
        ]
        assert (moved[0] == moved[1]).all()
    products = [report.arithmetic.query("op == 'mma'")["lanes"].sum() for report in (one_each, many)]
    assert products[0] == products[1]
    assert (one_each.barriers, many.barriers) == (6, blocks)


@pytest.mark.many(one_in=6)
@pytest.mark.parametrize("name", NAMES)
def test_only_wgmma_tma_stops_the_whole_block_in_every_step(name, emulated):
    report = emulated(LADDER[name], 128, 128, 5 * 32, tiles=small(name)).report
    assert report.barriers == (1 + 5 if name == "wgmma_tma" else 1)


@pytest.mark.long
@pytest.mark.many(one_in=3)
@pytest.mark.parametrize("name", NAMES[::-1])  # of which a quick run takes the first, not the slowest
def test_a_large_problem_is_counted_without_running(name):
    """Every product once, and every tile fetched by every block that needs it."""
    stage, edge = LADDER[name], 2048
    matrix = np.broadcast_to(np.float16(0), (edge, edge))
    arguments = stage.arguments(edge, edge, edge, np.float32(1), matrix, matrix, np.float32(0), matrix)
    geometry = stage.kernel(), stage.grid(edge, edge), stage.block()
    report = emulate(*geometry, *arguments, shared_bytes=stage.shared_bytes(), counts_only=True)
    products = report.arithmetic.query("op == 'mma'")["lanes"].sum()
    zeros = 16 * edge**2 if name == "mma_tma" else 0  # multiplied before its first fragments are loaded
    assert products == edge**3 + zeros
    assert report.total("bytes", space="global", op="load") == 2 * edge**3 // 256 + 2 * edge**3 // 128


def test_rows_that_tma_cannot_take_are_refused_before_the_launch():
    stage, odd = LADDER["wgmma_tma"], padded(np.zeros((8, 12), np.float16), 8)
    with pytest.raises(ValueError, match="24 bytes apart"):
        stage.arguments(8, 12, 12, np.float32(1), odd, odd, np.float32(0), odd)
    assert stage.leading_dimension_rules(A=12, B=16)[0].startswith("the rows of A are 12 FP16 values long")


@pytest.mark.parametrize("name", NAMES)
def test_the_longest_kernels_stay_readable(name):
    lines = inspect.getsource(LADDER[name].build).splitlines()
    assert len(lines) <= 150


@pytest.mark.parametrize("consumers", CONSUMER_REGISTERS)
def test_consumers_take_no_more_registers_than_there_are(consumers):
    """`registers_up` waits until they are free: with one too many the kernel would hang."""
    threads = 128 * (consumers + 1)
    at_the_start = REGISTERS_PER_SM // threads // 8 * 8
    given = 128 * (at_the_start - PRODUCER_REGISTERS)
    assert 128 * consumers * (CONSUMER_REGISTERS[consumers] - at_the_start) <= given
