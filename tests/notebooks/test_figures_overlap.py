"""What the notebook on overlap says in figures is what was recorded, or counted."""

import re
from itertools import pairwise

import pytest

from gemm_course import records
from gemm_course.checks.notebooks.overlap.grouped_tile import grouped_tile
from gemm_course.kernels import LADDER
from gemm_course.profiles import recorded, verdict
from gemm_course.widgets import _quiz
from tests.notebooks.builder import source_of

LARGE = {"BM": 128, "BN": 256, "BK": 8, "WM": 64, "WN": 64, "TM": 16, "TN": 8, "PAD": 4}
STEPS = ("double_buffered", "async_copy", "read_ahead", "grouped_blocks")


@pytest.fixture(scope="module")
def said() -> str:
    lines = source_of("overlap").splitlines()
    text = " ".join(line.removeprefix("#") for line in lines) + str(_quiz.questions("overlap"))
    return re.sub(r"\s+", " ", text)


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


def test_all_steps_have_the_same_tiles():
    for stage in STEPS:
        assert LARGE.items() <= LADDER[stage].tiles.items()


def test_what_two_slots_bring(said, large):
    two = recorded("double_buffered")
    assert (
        f"{large.tflops:.1f} TFLOPS, where the smaller tiles do {ladder('warp_tiled', 4096).tflops:.1f}"
        in said
    )
    assert f"in {100 * (1 - large.measured['issued']):.0f} % of the clocks a scheduler" in said
    assert f"{two.tflops / large.tflops:.2f} times." in said
    best = {
        stage: records.sweep().query("stage == @stage").tflops.max() for stage in ("warp_tiled", STEPS[0])
    }
    assert f"{best[STEPS[0]] / best['warp_tiled']:.2f} times" in said  # "the fastest tiles of each"
    before, after = large.waits, two.waits
    assert f"{100 * before['global memory']:.0f} % to {100 * after['global memory']:.1f} %" in said
    assert f"from {100 * before['barrier']:.0f} to {100 * after['barrier']:.0f} %" in said
    usual = {"BM": 128, "BN": 128, "BK": 16, "WM": 32, "WN": 64, "TM": 8, "TN": 8}
    assert f"{sweep('double_buffered', **usual):.1f} TFLOPS instead of" in said


def test_what_the_other_steps_bring(said):
    for before, after in pairwise(STEPS[:-1]):
        one, two = ladder(before, 4096).tflops, ladder(after, 4096).tflops
        assert f"{one:.1f} TFLOPS become {two:.1f}" in said
    assert f"{100 * ladder('read_ahead', 4096).ratio_to_cublas:.0f} % of cuBLAS's" in said
    two, three = (sweep("async_copy", SLOTS=slots) for slots in (2, 3))
    assert f"{two:.1f} TFLOPS become {three:.1f}" in said


def test_which_step_brings_the_most(said):
    speeds = [ladder(stage, 4096).tflops for stage in ("warp_tiled", *STEPS[:-1])]
    two, copies, ahead = (f"{100 * (after / before - 1):.0f} %" for before, after in pairwise(speeds))
    assert f"The copies: {copies}. Large tiles and two slots bring {two} together, and so does" in said
    assert two == ahead


def test_shared_memory_of_three_slots(said):
    three, four = (slots * 4 * 8 * (128 + 4 + 256) for slots in (3, 4))
    assert f"Three slots take {three:,} bytes, and our kernels may have 49,152" in said
    assert three <= 49152 < four


def test_what_the_walk_over_the_results_brings(said):
    lost = []
    for stage in ("read_ahead", "grouped_blocks"):
        whole, without = changed(stage), changed(stage, "each row left to right")
        lost.append(100 * (1 - without.tflops / whole.tflops))
    last = f"in `grouped_blocks`, the stage after this one, {lost[1]:.0f} %"
    assert f"We had predicted 1.5 %, and lost {lost[0]:.0f} %; {last}" in said
    whole, without = changed("read_ahead"), changed("read_ahead", "each row left to right")
    assert f"{whole.tflops:.1f} TFLOPS become ...?" in said
    assert f"{without.tflops:.1f}: {lost[0]:.0f} % less" in said
    assert f"What is left, {without.tflops:.1f}, is about what `async_copy` does" in said
    assert without.tflops == pytest.approx(ladder("async_copy", 4096).tflops, rel=0.01)
    assert f"took {without.registers} registers instead of {whole.registers}" in said


def test_the_walk_alone_brings_nothing(said):
    alone = records.one_change().query("question == 'a walk without reading ahead'").tflops
    assert "with it, `async_copy` falls from {:.1f} to {:.1f}".format(*alone) in said


def test_what_groups_of_blocks_bring(said):
    small, large = (
        [changed("grouped_blocks", change, size).tflops for change in ("GROUP 1", "none")]
        for size in (4096, 8192)
    )
    assert (
        f"{large[0]:.2f} TFLOPS become {large[1]:.2f}, and at 4096³ {small[0]:.2f} become {small[1]:.2f}"
        in said
    )
    assert [f"{100 * (after / before - 1):.1f}" for before, after in (small, large)] == ["0.1", "0.1"]
    gains = [
        100 * (changed("grouped_blocks", size=n).tflops / changed("read_ahead", size=n).tflops - 1)
        for n in (4096, 8192)
    ]
    assert f"beat `read_ahead`, by {gains[0]:.1f} % at 4096³ and {gains[1]:.1f} % at 8192³" in said
    busy = dict(verdict(recorded("read_ahead")).busy)
    assert f"L2 is busy {100 * busy['L2']:.0f} % of the time, DRAM {100 * busy['DRAM']:.0f} %" in said


def test_what_the_profiles_say(said, large):
    named = {"X": recorded("async_copy"), "Y": large, "Z": recorded("read_ahead")}
    for wait in ("global memory", "shared memory"):
        shares = [f"{100 * one.waits.get(wait, 0):.0f} %" for one in named.values()]
        assert f"| a warp waits for {wait} | {' | '.join(shares)} |" in said
    assert all(next(iter(verdict(recorded(stage)).busy)) == "issue slots" for stage in STEPS)


def test_what_blocks_of_one_moment_need(said):
    needs = {}
    for size in (4096, 8192):
        rows, columns = size // 128, size // 256
        for GROUP in (1, 8):
            tiles = [grouped_tile.right(block, rows, columns, GROUP) for block in range(132)]
            needs[size, GROUP] = 128 * len({i for i, _ in tiles}) + 256 * len({j for _, j in tiles})
    assert f"need {needs[8192, 8]:,} rows of A and columns of B together; row by row it is" in said
    fewer, more = (100 * abs(1 - needs[size, 8] / needs[size, 1]) for size in (8192, 4096))
    assert f"it is {needs[8192, 1]:,}. Groups need {fewer:.0f} % fewer" in said
    assert f"it is {needs[4096, 8]:,} against {needs[4096, 1]:,}: there they need {more:.0f} % *more*" in said


def test_the_machine_code_that_is_told(said):
    counted = {stage: loop(stage) for stage in STEPS[:3]}
    assert {fma for _, fma, _ in counted.values()} == {1024}
    assert f"{counted['double_buffered'][0]:,} instructions" in said
    assert f"1,024 / {counted['async_copy'][0]:,}" in said
    assert counted["async_copy"][:2] == counted["read_ahead"][:2]
