"""What the notebook on overlap and its side trip say in figures is what was recorded, or counted."""

import re
from itertools import pairwise

import numpy as np
import pytest

import lockstep
from gemm_course import records, run
from gemm_course.checks.notebooks.overlap.grouped_tile import grouped_tile
from gemm_course.figures import overlap
from gemm_course.kernels import LADDER
from gemm_course.profiles import recorded, verdict
from gemm_course.widgets import _overlap, _quiz
from tests.notebooks.builder import source_of

LARGE = {"BM": 128, "BN": 256, "BK": 8, "WM": 64, "WN": 64, "TM": 16, "TN": 8, "PAD": 4}
USUAL = {"BM": 128, "BN": 128, "BK": 16, "WM": 32, "WN": 64, "TM": 8, "TN": 8}
STEPS = ("double_buffered", "async_copy", "read_ahead", "grouped_blocks")
PEAK = 67


def words_of(topic: str) -> str:
    lines = source_of(topic).splitlines()
    text = " ".join(line.removeprefix("#") for line in lines) + str(_quiz.questions(topic))
    return re.sub(r"\s+", " ", text)


@pytest.fixture(scope="module")
def said() -> str:
    return words_of("overlap")


@pytest.fixture(scope="module")
def aside() -> str:
    return words_of("walks_and_groups")


@pytest.fixture(scope="module")
def large():
    return recorded("warp_tiled", LARGE)


def loop(stage: str) -> tuple[int, int, int]:
    """Instructions of the main loop as recorded, multiply-adds and reads of shared memory among them."""
    rows = records.machine_code().query("stage == @stage and compute_capability == '9.0'")
    (row,) = rows.itertuples()
    return row.loop_instructions, row.loop_multiply_add, row.loop_shared_load


def sweep(stage: str, **tiles: int) -> float:
    """TFLOPS of the tuner for a stage's default tiles with these changed."""
    asked = records.sweep().query("stage == @stage")
    wanted = LADDER[stage].tiles | tiles
    (found,) = [
        tflops for text, tflops in zip(asked.tiles, asked.tflops) if records.parse_tiles(text) == wanted
    ]
    return found


def ladder(stage: str, size: int):
    rows = records.ladder().query("stage == @stage and dtype == 'fp32' and m == n == k == @size")
    return rows.iloc[0]


def changed(stage: str, change: str = "none", size: int = 4096):
    """A stage with one thing changed, timed beside the stage itself."""
    rows = records.one_change().query("stage == @stage and change == @change and size == @size")
    return rows.query("question == 'order of products'").iloc[0]


# ---- the notebook ------------------------------------------------------------------------------------------


def test_the_rule_for_slots(said):
    """What the picture draws for each of its times of a copy, and the piece of sound of the quiz."""
    needed = [
        next(slots for slots in range(1, 9) if overlap.share(slots, copy, _overlap.MULTIPLY) == 1)
        for copy in _overlap.COPIES
    ]
    assert needed == [1 + -(-copy // _overlap.MULTIPLY) for copy in _overlap.COPIES] == [2, 2, 3, 3, 4, 5]
    assert f"which is {', '.join(map(str, needed[:-1]))} and {needed[-1]} here" in said
    assert next(slots for slots in range(1, 9) if overlap.share(slots, 9, 4) == 1) == 4
    assert overlap.share(1, 4, 4) == 0.5 and overlap.share(2, 4, 4) == 1, "the opening"


def test_the_opening_gives_no_answer_away():
    assert "would" not in overlap.timeline(1, 4, 4).alt


def test_all_steps_have_the_same_tiles():
    for stage in STEPS:
        assert LARGE.items() <= LADDER[stage].tiles.items()


def test_the_large_tiles(said, large):
    registers = int(large.measured["registers"])
    assert f"each of these threads takes {registers}" in said and 65536 // (256 * registers) == 1
    small = ladder("warp_tiled", 4096).tflops
    assert f"it does {small:.0f} TFLOPS on an H200" in said
    assert f"'{large.tflops:.0f}: nobody works while the block waits'" in said
    assert f"In {100 * (1 - large.measured['issued']):.0f} % of the clocks a scheduler" in said


def test_what_two_slots_bring(said, large):
    two = recorded("double_buffered")
    faster = f"{two.tflops / large.tflops:.2f} times"
    assert f"{large.tflops:.0f} TFLOPS become {two.tflops:.0f}: **{faster}**" in said
    before, after = large.waits, two.waits
    assert f"spends {100 * before['global memory']:.0f} % of its time waiting for global memory" in said
    assert f"{100 * before['barrier']:.0f} % at barriers" in said
    assert after["global memory"] < 0.002
    more = 100 * (loop("double_buffered")[0] / 1170 - 1)
    assert f"{more:.0f} % *more* instructions" in said
    assert 1.16 / 1.14 == pytest.approx(1 + more / 100, abs=0.01)
    usual = sweep("double_buffered", **USUAL)
    assert f"{usual:.0f} TFLOPS instead of {ladder('warp_tiled', 4096).tflops:.0f}" in said


def test_what_the_other_steps_bring(said):
    for before, after in pairwise(STEPS[:-1]):
        one, two = ladder(before, 4096).tflops, ladder(after, 4096).tflops
        assert re.search(rf"{one:.0f} TFLOPS become (\*\*)?{two:.0f}\b", said)
        assert f"{100 * (two / one - 1):.0f} %" in said
    best = ladder("read_ahead", 4096)
    assert f"cuBLAS, NVIDIA's own library, does {best.tflops / best.ratio_to_cublas:.0f}" in said
    assert f"**You have passed it: {100 * best.ratio_to_cublas:.0f} %" in said
    assert f"{100 * ladder('read_ahead', 8192).ratio_to_cublas:.0f}" == "102"
    first = ladder("naive_uncoalesced", 4096).tflops
    assert f"reached {first:.1f} TFLOPS" in said and 99 < best.tflops / first < 106
    assert 0.3 < ladder("grouped_blocks", 1024).ratio_to_cublas < 0.36, "a third of cuBLAS"
    assert (1024 // 128) * (1024 // 256) == 32


def test_the_machine_code_that_is_told(said):
    counted = {stage: loop(stage) for stage in STEPS[:3]}
    assert {fma for _, fma, _ in counted.values()} == {1024}
    two, copies, ahead = (counted[stage][0] for stage in STEPS[:3])
    assert f"has {two:,} instructions, 1,024 of them multiply-adds" in said
    assert f"That of `async_copy` has {copies:,}" in said and f"as `async_copy`, {copies:,}" in said
    assert copies == ahead and f"{100 * (1 - copies / two):.1f} % fewer instructions" in said
    assert f"The roofs are {PEAK * 1024 / two:.0f} and {PEAK * 1024 / copies:.0f}" in said
    assert f"the instructions explain {100 * (two / copies - 1):.0f} %" in said
    assert counted["async_copy"][2] == counted["read_ahead"][2] == 51
    assert "51 reads of shared memory" in said


def test_what_the_profiles_say(said):
    two, copies, ahead = (recorded(stage).measured["issued"] for stage in STEPS[:3])
    assert f"taken in {100 * two:.0f} % of the clocks before, in {100 * copies:.0f} now" in said
    assert f"taken in {100 * copies:.0f} % of the clocks, now in {100 * ahead:.0f}" in said
    assert all(next(iter(verdict(recorded(stage)).busy)) == "issue slots" for stage in STEPS)
    instructions, fma, _ = loop("read_ahead")
    of_these = fma / instructions
    assert f"issued in {100 * ahead:.0f} % of the clocks; {100 * of_these:.0f} % of these are" in said
    blocks = (4096 // 128) * (4096 // 256)
    assert f"its {blocks} blocks run on 132 SMs" in said and -(-blocks // 132) == 4
    forecast = PEAK * 0.90 * 0.90 * blocks / (4 * 132)
    assert f"= {forecast:.0f}, and {ladder('read_ahead', 4096).tflops:.0f} were measured" in said


def test_the_four_changes_of_the_tiles(said):
    changes = ({}, {"SLOTS": 3}, {"BM": 64}, {"PAD": 0}, {"BM": 256})
    speeds = [sweep("read_ahead", **change) for change in changes]
    assert f"| TFLOPS | {' | '.join(f'{speed:.1f}' for speed in speeds)} |" in said
    assert speeds == sorted(speeds, reverse=True)
    assert f"brings {100 * (speeds[0] / speeds[3] - 1):.0f} % in another" in said
    assert "leaves each of 512 threads 128 registers" in said and 65536 // 512 == 128 == 16 * 8


def test_what_padding_does_to_the_copies_of_a(said):
    """As the notebook counts it, and as the emulator counts the kernel."""
    by_hand = [
        lockstep.wavefronts([lane % 8 * (128 + PAD) + lane // 8 for lane in range(32)], 32, "store")
        for PAD in (0, 4)
    ]
    assert by_hand == [8, 1]
    A, B = np.zeros((128, 8), np.float32), np.zeros((8, 256), np.float32)
    for PAD, each in zip((0, 4), by_hand):
        report = run("read_ahead", A, B, tiles={"PAD": PAD}).report
        copies = report.accesses.query("space == 'shared' and op == 'store' and array == 'As'")
        assert copies.wavefronts.sum() == each * copies.requests.sum()
    assert 128 * 8 // 32 == 32 and "256 wavefronts instead of 32" in said
    tiles = (4096 // 128) * (4096 // 256) * (4096 // 8)
    assert recorded("read_ahead").measured["shared_load_wavefronts"] / tiles == pytest.approx(1024, rel=1e-3)


def test_the_forecast_of_the_quiz(said):
    assert f"{PEAK} · 0.8 · 0.6 = {PEAK * 0.8 * 0.6:.0f}" in said and 1024 / 1280 == 0.8


# ---- the side trip -----------------------------------------------------------------------------------------


def test_what_the_walk_over_the_results_brings(aside):
    whole, without = changed("read_ahead"), changed("read_ahead", "each row left to right")
    lost = 100 * (1 - without.tflops / whole.tflops)
    assert f"{whole.tflops:.1f} TFLOPS become ...?" in aside
    assert f"{without.tflops:.1f}: {lost:.0f} % less" in aside
    assert without.tflops == pytest.approx(ladder("async_copy", 4096).tflops, rel=0.01)
    assert f"{without.registers} registers instead of {whole.registers}" in aside
    rows = [(i, j) for i in range(16) for j in range(8)]
    none = sum(one[0] != two[0] and one[1] != two[1] for one, two in pairwise(rows))
    assert f"{none} of the {len(rows) - 1} pairs share nothing" in aside


def test_the_walk_alone_brings_nothing(aside):
    alone = records.one_change().query("question == 'a walk without reading ahead'").tflops
    assert "{:.1f} TFLOPS become {:.1f}".format(*alone) in aside


def test_what_groups_of_blocks_bring(aside):
    small, large = (
        [changed("grouped_blocks", change, size).tflops for change in ("GROUP 1", "none")]
        for size in (4096, 8192)
    )
    assert (
        f"{large[0]:.2f} TFLOPS become {large[1]:.2f}, and at 4096³ {small[0]:.2f} become {small[1]:.2f}"
        in aside
    )
    assert [f"{100 * (after / before - 1):.1f}" for before, after in (small, large)] == ["0.1", "0.1"]
    busy = dict(verdict(recorded("read_ahead")).busy)
    assert f"L2 is busy {100 * busy['L2']:.0f} % of the time, DRAM {100 * busy['DRAM']:.0f} %" in aside


def test_what_blocks_of_one_moment_need(aside):
    needs = {}
    for size in (4096, 8192):
        rows, columns = size // 128, size // 256
        for GROUP in (1, 8):
            tiles = [grouped_tile.right(block, rows, columns, GROUP) for block in range(132)]
            needs[size, GROUP] = 128 * len({i for i, _ in tiles}) + 256 * len({j for _, j in tiles})
    assert 5 * 128 + 8192 == needs[8192, 1] and f"**{needs[8192, 1]:,}** rows" in aside
    fewer, more = (100 * abs(1 - needs[size, 8] / needs[size, 1]) for size in (8192, 4096))
    assert f"{needs[8192, 8]:,} instead of {needs[8192, 1]:,}: {fewer:.0f} % fewer" in aside
    assert f"{needs[4096, 8]:,} instead of {needs[4096, 1]:,}, {more:.0f} % *more*" in aside
