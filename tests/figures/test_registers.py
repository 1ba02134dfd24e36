"""The picture of a thread's registers follows the kernel that it is drawn from."""

import re

import pytest

from gemm_course import LADDER
from gemm_course import widgets as see
from gemm_course.widgets import _registers


@pytest.mark.parametrize("TM", [2, 4, 8, 16])
def test_a_column_of_results_takes_tm_reads_of_a_and_one_of_b(TM):
    alt = _registers.draw("thread_tiled_1d", {"TM": TM}, 37 % (512 // TM), 3).alt
    assert f"{TM + 1} reads for {TM} multiply-adds, {(TM + 1) / TM:.4g} per multiply-add" in alt
    assert "As: all 32 lanes of the warp read the same elements, a broadcast." in alt
    assert "Bs: no other lane of the warp reads the same elements." in alt


@pytest.mark.parametrize(("TM", "TN"), [(2, 2), (4, 4), (8, 4)])
def test_a_tile_of_results_takes_tm_plus_tn_reads(TM, TN):
    alt = _registers.draw("thread_tiled_2d", {"TM": TM, "TN": TN}, 1, 0).alt
    assert f"{TM + TN} reads for {TM * TN} multiply-adds, {(TM + TN) / (TM * TN):.4g} per multiply-add" in alt
    assert f"As: {32 // TN} of the warp's 32 lanes read the same elements." in alt


def test_it_is_the_thread_asked_for():
    alt = _registers.draw("thread_tiled_1d", {"TM": 8}, 37, 3).alt
    assert "[8, 5] to [15, 5]" in alt and "[8, 3] to [15, 3] of As and [3, 5] of Bs" in alt


def start(name="thread_tiled_2d", **asked):
    """The explorer that is asked for, and the state in which it begins."""
    explorer = see.registers.makes_explorer(name, **asked)
    return explorer, explorer.controls.start()


@pytest.mark.parametrize("name", _registers.PLANS)
def test_only_thread_tiles_that_the_stage_can_run_are_offered(name):
    tiles = [{}]
    for control in start(name)[0].controls.all[:-2]:
        tiles = [{**tile, control.name: each.value} for tile in tiles for each in control.offered(tile)]
    assert len(tiles) >= 4
    for tile in tiles:
        assert not LADDER[name].rules({**_registers.PLANS[name], **tile})


def test_it_can_open_at_a_tile():
    assert start("thread_tiled_1d", TM=2)[1]["TM"] == 2
    state = start(TM=16, TN=1)[1]
    assert (state["TM"], state["TN"]) == (16, 1)


def test_with_the_results_given_their_shape_is_chosen():
    """It opens at one column, the worst shape, and only the square reads 16."""
    explorer, state = start(results=64)
    assert explorer.picture(state).alt.startswith("Thread 5, step p = 3: 65 reads for 64 multiply-adds")
    reads = {}
    for option in explorer.controls.all[0].offered({}):
        alt = explorer.picture(explorer.controls.fitted({**state, "shape": option.value})).alt
        reads[option.text] = int(re.search(r"(\d+) reads for 64 multiply-adds", alt)[1])
    assert reads == {f"{m} × {64 // m}": m + 64 // m for m in (64, 32, 16, 8, 4, 2, 1)}
    assert start(results=64, TM=4)[1]["shape"] == (4, 16)


@pytest.mark.parametrize(
    "asked", [{"TM": 3}, {"TM": 16, "TN": 64}, {"results": 64, "TM": 3}, {"results": 4096}]
)
def test_a_tile_that_is_not_offered_is_refused(asked):
    with pytest.raises(ValueError, match="is not drawn with"):
        start(**asked)
    with pytest.raises(ValueError, match="is not drawn with results=64"):
        start("thread_tiled_1d", results=64)
