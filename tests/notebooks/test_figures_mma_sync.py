"""What the notebook on mma_sync says in figures is what was recorded."""

import re
from collections import Counter

import pytest

from gemm_course import records, road
from gemm_course.checks.notebooks.mma_sync.product_clocks import SHARE
from gemm_course.compiler import compiled
from gemm_course.profiles import recorded, verdict
from gemm_course.records.columns import ONE_CHANGE_COUNTS
from tests.notebooks.builder import ROOT
from tests.notebooks.test_figures_warp_tiles_tensor_cores import said_in

STAGES = ("wmma", "mma_swizzled", "mma_ring", "mma_sync")
SUSPECTS = ("mma_sync", "mma_swizzled", "mma_ring")  # X, Y, Z


@pytest.fixture(scope="module")
def said() -> str:
    return said_in("mma_sync")


@pytest.fixture(scope="module")
def ladder():
    rows = records.ladder().query("m == n == k == 4096 and dtype == 'fp16'")
    return rows.drop_duplicates("stage", keep="last").set_index("stage")


def test_speeds_of_the_stages(said, ladder):
    assert ", ".join(f"{ladder.loc[stage, 'tflops']:.0f}" for stage in STAGES) + " TFLOPS" in said
    before, after = (recorded(stage).tflops for stage in ("mma_sync", "mma_tma"))
    assert f"from {before:.0f} to {after:.0f} TFLOPS" in said


def test_shares_of_cublas(said, ladder):
    share = 100 * ladder["ratio_to_cublas"]
    assert f"from {share['wmma']:.0f} % of cuBLAS to {share['mma_sync']:.0f} %" in said
    assert f"{share['mma_sync']:.1f}" == f"{SHARE}" and f"reached {SHARE} % of cuBLAS" in said
    assert f"cuBLAS does {ladder.loc['mma_sync', 'cublas_tflops']:.0f} beside `mma_sync`" in said
    gain = ladder.loc["mma_swizzled", "tflops"] / ladder.loc["wmma", "tflops"] - 1
    assert f"{100 * gain:.0f} % faster, and our reasons" in said


def test_what_the_swizzle_saved(said):
    before, after = (recorded(stage).measured for stage in STAGES[:2])
    assert before["async_copy_sectors"] / after["async_copy_sectors"] == 1.5
    assert after["global_store_sectors"] == 2 * before["global_store_sectors"]
    assert before["matrix_load_wavefronts"] == after["matrix_load_wavefronts"]
    assert f"{100 * (1 - after['warp_instructions'] / before['warp_instructions']):.0f} % of the" in said


def test_rows_padded_instead_of_swizzled(said):
    rows = records.one_change().query("question == 'rows of tiles'").set_index(["stage", "change"])
    rows = rows.join(records.one_change_counted().set_index(["stage", "change"])[list(ONE_CHANGE_COUNTS)])
    wmma, whole = rows.loc[("wmma", "none")], rows.loc[("mma_swizzled", "none")]
    moved_on = rows.loc[("mma_swizzled", "pieces moved on, not xored")]
    padded = rows.loc[("mma_swizzled", "rows padded by 8, not swizzled")]
    assert f"It is **{100 * (1 - padded.tflops / whole.tflops):.0f} % less**, and less than `wmma`" in said
    assert padded.tflops < wmma.tflops
    assert f"lost once more: **{100 * (1 - moved_on.tflops / whole.tflops):.0f} %**" in said
    assert moved_on.async_copy_sectors == padded.async_copy_sectors == 1.5 * whole.async_copy_sectors
    assert f"{padded.l2_read_sectors / whole.l2_read_sectors:.1f} times as often" in said
    assert moved_on.l2_read_sectors < 1.03 * whole.l2_read_sectors


def test_runs_differ_by_as_much_as_it_says(said, ladder):
    rows = records.one_change().query("question == 'rows of tiles' and change == 'none'").set_index("stage")
    moved = max(abs(ladder.loc[stage, "tflops"] / rows.loc[stage, "tflops"] - 1) for stage in STAGES[:2])
    assert f"all of them move, below by {100 * moved:.0f} %" in said


def test_the_suspects(said):
    profiles = [recorded(stage) for stage in SUSPECTS]
    busy = [dict(verdict(one).busy)["Tensor Cores"] for one in profiles]
    assert "| Tensor Cores are busy | " + " | ".join(f"{100 * each:.0f} %" for each in busy) in said
    lines = {
        "a warp waits for copies": "copies",
        "at barriers": "barrier",
        "for a busy unit": "busy unit",
        "fixed delay": "fixed delay",
    }
    for words, wait in lines.items():
        shares = " | ".join(f"{100 * one.waits[wait]:.0f} %" for one in profiles)
        assert f"| {words} | {shares} |" in said


def test_the_products_and_their_clocks(said):
    measured = recorded("mma_sync").measured
    assert f"{measured['mma_instructions']:,.0f} products" in said
    assert f"{measured['active_clocks']:,.0f} clocks" in said
    busy = measured["mma_instructions"] / 528 * 6 / measured["active_clocks"]
    assert f"the {100 * (1 - busy):.0f} % of the clocks in which Tensor Cores pause" in said
    assert measured["mma_instructions"] == 4096**3 // 2048 + 32 * 4096**2 // 64**2
    assert "33,554,432 products would do" in said
    roofs = records.compute_roofs().set_index("unit")["tflops"]
    assert f"measured to do {roofs['mma FP16']:.0f} TFLOPS" in said


def test_the_half_of_the_data_sheet(said):
    measured = recorded("mma_sync").measured
    busy = measured["mma_instructions"] / 528 * 6 / measured["active_clocks"]
    at_work = measured["active_clocks"] / measured["clocks"]
    ghz = measured["clocks"] / measured["nanoseconds"]
    assert f"4 / 6 by the instruction, {100 * busy:.0f} % of the clocks busy" in said
    assert f"SMs with work for {100 * at_work:.0f} % of the launch, and {ghz:.2f} GHz" in said
    assert f"Multiply the four: {4 / 6 * busy * at_work * ghz / 1.83:.2f}." in said
    assert abs(recorded("mma_sync").tflops / 990 - 0.5) < 0.006


def test_the_copies_of_a_thread(said):
    narrow, wide = ((128 + BN) * 64 // 8 // (2 * BN // 64 * 32) for BN in (64, 256))
    assert f"a thread copies {narrow} pieces, of the wide ones {wide}" in said


def test_why_the_roof_is_higher_on_registers(said, ladder):
    measured = recorded("mma_sync").measured
    roof = records.compute_roofs().set_index("unit")["tflops"]["mma FP16"]
    percent, exercise = 100 * roof / ladder.loc["mma_sync", "cublas_tflops"], road.number_of("product_clocks")
    assert f"That is {percent:.0f} %, not {exercise}'s" in said
    assert f"({100 * (1 - measured['active_clocks'] / measured['clocks']):.0f} % of the launch here)" in said
    assert f"run at {roof * 1e3 / (528 * 4096 / 6):.2f} GHz" in said
    assert f"profile has {measured['clocks'] / measured['nanoseconds']:.2f}" in said


@pytest.mark.full(reason="large kernels are compiled")
def test_loads_that_never_load(said):
    opcodes = {stage: Counter(row.opcode for row in compiled(stage).loop.rows) for stage in STAGES}
    for stage in ("wmma", "mma_sync"):
        assert sum(many for opcode, many in opcodes[stage].items() if opcode.startswith("LDSM")) == 32
    assert opcodes["mma_sync"]["LDS"] == 12 and opcodes["wmma"]["LDS"] == 3
    assert "The other 12 of 44 (3 in `wmma`)" in said


def test_the_detour_of_results(said):
    assert "cut 312 µs to 302" in said


def test_the_mystery(said):
    tiles = [f"BM=128 BN={BN} BK=64 WM=64 WN=64 SLOTS=3 GROUP=8" for BN in (256, 64)]
    rows = records.sweep().query("tiles in @tiles").pivot(index="stage", columns="tiles", values="tflops")
    assert rows.loc["mma_sync", tiles[0]] > rows.loc["mma_ring", tiles[0]]
    assert 4 < rows.loc["mma_ring", tiles[1]] / rows.loc["mma_sync", tiles[1]] < 5
    spilt = records.sweep().query("stage == 'mma_sync' and tiles == @tiles[1]")["local_bytes"].item()
    assert f"Local memory: {spilt} bytes" in said


@pytest.mark.parametrize(
    "row",
    [
        "| nothing | 313.1 |",
        "| LDSM | 311.7 |",
        "| the wait for copies, and the barrier | 309.3 |",
        "| the copies | 270.8 |",
        "| no copies (wrong results) | 250 |",
        "| results through shared memory, 16 bytes per lane | 134 | | 301.9 |",
        "| first | 138 | 1891 | 311 to 313 |",
        "| copies that fetch no byte, only zeros (wrong results) | 276 |",
        "7.6 clocks of the Tensor Core's time for each LDGSTS",
    ],
)
def test_what_the_notes_on_the_kernels_say(said, row):
    notes = (ROOT / "gemm_course" / "kernels" / "NOTES.md").read_text("utf-8")
    assert row in " ".join(notes.split())
    assert re.search(r"\d+(\.\d)?", row) is None or re.search(r"\d+(\.\d)?", row).group() in said
