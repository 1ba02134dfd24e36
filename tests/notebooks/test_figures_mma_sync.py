"""What the notebook on mma_sync and its side trip say in figures is what was recorded."""

import re

import numpy as np
import pytest

from gemm_course import records
from gemm_course.checks.notebooks.mma_sync.product_clocks import SHARE
from gemm_course.compiler import compiled
from gemm_course.kernels import LADDER
from gemm_course.profiles import recorded, verdict
from gemm_course.records.columns import ONE_CHANGE_COUNTS
from tests.notebooks.builder import ROOT, source_of
from tests.notebooks.test_figures_warp_tiles_tensor_cores import said_in

STAGES = ("wmma", "mma_swizzled", "mma_ring", "mma_sync")
SUSPECTS = ("mma_sync", "mma_swizzled", "mma_ring")  # X, Y, Z


@pytest.fixture(scope="module")
def said() -> str:
    return said_in("mma_sync")


@pytest.fixture(scope="module")
def aside() -> str:
    return said_in("reading_mma_sync")


@pytest.fixture(scope="module")
def ladder():
    rows = records.ladder().query("m == n == k == 4096 and dtype == 'fp16'")
    return rows.drop_duplicates("stage", keep="last").set_index("stage")


@pytest.mark.parametrize("notebook", ["mma_sync", "reading_mma_sync"])
def test_the_times_said_are_those_of_the_exercises(notebook):
    text = source_of(notebook)
    minutes = sum(map(int, re.findall(r"^# \*.* (\d+) minutes\*$", text, re.MULTILINE)))
    assert f"{minutes} for the exercises" in text


def test_the_side_trip_takes_as_long_as_the_notebook_says(said, aside):
    reading, writing = re.search(r"about (\d+) minutes to read, (\d+) for the exercises", aside).groups()
    assert f"Side trip, {int(reading) + int(writing)} minutes" in said


def test_what_has_been_reached(said, ladder):
    share = 100 * ladder["ratio_to_cublas"]
    reached = f"{ladder.loc['mma_sync', 'tflops']:.0f} TFLOPS on an H200"
    assert f"{reached}: from {share['wmma']:.0f} % of cuBLAS to {share['mma_sync']:.0f} %" in said
    assert f"{share['mma_sync']:.1f}" == f"{SHARE}" and f"reached {SHARE} % of cuBLAS" in said
    assert "does 490 TFLOPS in its profile" in said and round(recorded("mma_sync").tflops, -1) == 490


def test_rows_padded_instead_of_swizzled(said):
    rows = records.one_change().query("question == 'rows of tiles'").set_index(["stage", "change"])
    rows = rows.join(records.one_change_counted().set_index(["stage", "change"])[list(ONE_CHANGE_COUNTS)])
    whole = rows.loc[("mma_swizzled", "none")]
    moved_on = rows.loc[("mma_swizzled", "pieces moved on, not xored")]
    padded = rows.loc[("mma_swizzled", "rows padded by 8, not swizzled")]
    assert f"From {padded.tflops:.0f} to {whole.tflops:.0f} TFLOPS" in said
    assert f"{padded.tflops:.0f} and {whole.tflops:.0f} TFLOPS." in said
    assert f"{100 * (whole.tflops / padded.tflops - 1):.0f} % faster" in said
    assert f"and it costs only {100 * (1 - moved_on.tflops / whole.tflops):.0f} %" in said
    assert "copies move 1.5 times the sectors" in said
    assert moved_on.async_copy_sectors == padded.async_copy_sectors == 1.5 * whole.async_copy_sectors
    assert f"read L2 {padded.l2_read_sectors / whole.l2_read_sectors:.1f} times as often" in said
    assert moved_on.l2_read_sectors < 1.03 * whole.l2_read_sectors


def test_pairs_of_a_sector_and_where_it_goes(said):
    pairs = {
        size: [len({(p // 2, (row * size + p * 16) // 32) for p in range(8)}) for row in range(8)]
        for size in (128, 144)
    }
    assert set(pairs[128]) == {4} and pairs[144] == [4, 8] * 4 and np.mean(pairs[144]) == 6
    assert "8 pairs instead of 4, so 6 per row on average" in said


def test_smaller_warp_tiles(said):
    tiles = [f"BM=128 BN=128 BK=64 WM={size} WN={size}" for size in (64, 32)]
    rows = records.sweep().query("stage == 'mma_swizzled' and tiles in @tiles").set_index("tiles").loc[tiles]
    before, after = rows.itertuples()
    assert f"Registers fall from {before.registers} to {after.registers}" in said
    assert f"the speed falls from {before.tflops:.0f} to {after.tflops:.0f} TFLOPS" in said
    assert (32 + 32) / (32 * 32) == 2 * (64 + 64) / (64 * 64)
    assert LADDER["mma_swizzled"].tiles == {"BM": 128, "BN": 128, "BK": 64, "WM": 64, "WN": 64}


def test_the_suspects(said):
    profiles = [recorded(stage) for stage in SUSPECTS]
    busy = [dict(verdict(one).busy)["Tensor Cores"] for one in profiles]
    assert "| Tensor Cores are busy | " + " | ".join(f"{100 * each:.0f} %" for each in busy) in said
    lines = {"a warp waits for copies": "copies", "at barriers": "barrier", "for a busy unit": "busy unit"}
    for words, wait in lines.items():
        shares = " | ".join(f"{100 * one.waits[wait]:.0f} %" for one in profiles)
        assert f"| {words} | {shares} |" in said
    assert f"a warp waits for them {100 * profiles[0].waits['copies']:.0f} % of its time" in said


def test_the_products_and_their_clocks(said):
    measured = recorded("mma_sync").measured
    assert f"{measured['mma_instructions']:,.0f} products" in said
    assert f"{measured['active_clocks']:,.0f} clocks" in said
    needed, with_zeros = 4096**3 // (16 * 8 * 16), 32 * 4096**2 // 64**2
    assert measured["mma_instructions"] == needed + with_zeros
    assert f"needs {needed:,} products" in said and f"the other {with_zeros:,}.)" in said
    busy = measured["mma_instructions"] / 528 * 6 / measured["active_clocks"]
    assert f"the {100 * (1 - busy):.0f} % of the clocks in which Tensor Cores pause" in said


def test_the_half_of_the_data_sheet(said):
    measured = recorded("mma_sync").measured
    busy = measured["mma_instructions"] / 528 * 6 / measured["active_clocks"]
    at_work = measured["active_clocks"] / measured["clocks"]
    ghz = measured["clocks"] / measured["nanoseconds"]
    assert f"4 / 6 by the instruction, {100 * busy:.0f} % of the clocks busy" in said
    assert f"SMs with work for {100 * at_work:.0f} % of the launch, and {ghz:.2f} GHz" in said
    assert abs(4 / 6 * busy * at_work * ghz / 1.83 - 0.5) < 0.006
    assert abs(recorded("mma_sync").tflops / 990 - 0.5) < 0.006


def test_what_the_copies_cost(said):
    assert "3 µs and 26 µs" in said and (279 - 276, 276 - 250) == (3, 26)
    assert "It took 279 µs that day" in said and "takes 258 to 268 µs" in said


@pytest.mark.full(reason="a large kernel is compiled")
def test_copies_beside_products_in_the_loop(said):
    opcodes = [row.opcode for row in compiled("mma_sync").loop.rows]
    copies, products = (sum(each.startswith(name) for each in opcodes) for name in ("LDGSTS", "HMMA"))
    assert f"{copies} in the loop beside {products} products" in said


def test_the_mystery(aside):
    tiles = [f"BM=128 BN={BN} BK=64 WM=64 WN=64 SLOTS=3 GROUP=8" for BN in (256, 64)]
    rows = records.sweep().query("tiles in @tiles").pivot(index="stage", columns="tiles")
    assert rows.tflops.loc["mma_sync", tiles[0]] > rows.tflops.loc["mma_ring", tiles[0]]
    assert 4 < rows.tflops.loc["mma_ring", tiles[1]] / rows.tflops.loc["mma_sync", tiles[1]] < 5
    spilt = rows.local_bytes.loc["mma_sync", tiles[1]]
    assert f"`local_bytes`: {spilt:.0f} bytes per thread" in aside
    assert list(rows.local_bytes.loc["mma_ring", tiles]) == [0, 0]
    assert rows.registers.loc["mma_ring", tiles[1]] == 255 and "takes all 255 registers" in aside
    narrow, wide = ((128 + BN) * 64 // 8 // (2 * BN // 64 * 32) for BN in (64, 256))
    assert f"a thread copies {narrow} pieces of a tile instead of {wide}" in aside


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("| nothing | 313.1 |", "| nothing | 313.1 |"),
        ("| LDSM | 311.7 |", "| X | 311.7 |"),
        ("| the wait for copies, and the barrier | 309.3 |", "| Y | 309.3 |"),
        ("| the copies | 270.8 |", "| Z | 270.8 |"),
        ("measured 57 to 58 %", "It reached 58 %"),
        ("| 68 % (64 to 73);", "we had predicted 68 % of cuBLAS"),
        ("| no copies (wrong results) | 250 |", "| no copies at all | 250 |"),
        ("only zeros (wrong results) | 276 |", "fetch no byte, only zeros | 276 |"),
        ("67.2 to 69.2 % in eleven measurements, 258 to 268 µs", "258 to 268 µs"),
    ],
)
def test_what_the_notes_on_the_kernels_say(said, row, told):
    assert row in _notes() and told in said


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("| first | 138 | 1891 | 311 to 313 |", "At first the loop had 138 instructions"),
        ("| 301.9 | 59.4 % |", "cut 312 µs to 302"),
        ("(the current form) | 66 |", "and now 66"),
        ("63.6 to 63.7 %", "from 58 to 64 % of cuBLAS"),
        ("after 47 instructions, 8 LDSM and 2 copies", "47, with 8 loads and 2 copies among them"),
        ("mma_sync has 39 HMMA before its first copy", "39 of them before its first copy"),
    ],
)
def test_what_the_notes_say_of_the_side_trip(aside, row, told):
    assert row in _notes() and told in aside


def _notes() -> str:
    return " ".join((ROOT / "gemm_course" / "kernels" / "NOTES.md").read_text("utf-8").split())
