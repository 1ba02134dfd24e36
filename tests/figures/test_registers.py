"""The picture of a thread's registers follows the kernel that it is drawn from."""

import pytest

from gemm_course.widgets import _registers


@pytest.mark.parametrize("TM", [2, 4, 8, 16])
def test_a_column_of_results_takes_tm_reads_of_a_and_one_of_b(TM):
    alt = _registers.draw("thread_tiled_1d", {"TM": TM}, 37 % (512 // TM), 3).alt
    assert f"{TM + 1} reads for {TM} multiply-adds, {(TM + 1) / TM:.4g} per multiply-add" in alt
    assert "As: all 32 lanes of the warp read the same elements, a broadcast." in alt
    assert "Bs: no other lane of the warp reads the same elements." in alt


@pytest.mark.parametrize(("TM", "TN"), [(4, 4), (8, 4), (8, 8)])
def test_a_tile_of_results_takes_tm_plus_tn_reads(TM, TN):
    alt = _registers.draw("thread_tiled_2d", {"TM": TM, "TN": TN}, 1, 0).alt
    assert f"{TM + TN} reads for {TM * TN} multiply-adds, {(TM + TN) / (TM * TN):.4g} per multiply-add" in alt
    assert f"As: {64 // TN} of the warp's 32 lanes read the same elements." in alt


def test_it_opens_with_the_tile_asked_for():
    make = _registers.registers.makes_explorer
    explorer = make("thread_tiled_2d", tiles={"TM": 64, "TN": 1})
    assert "65 reads for 64 multiply-adds" in explorer.picture(explorer.controls.start()).alt
    with pytest.raises(ValueError, match="TM=2 TN=2 cannot be drawn in a block of BM=64 BN=64 BK=4"):
        make("thread_tiled_2d", tiles={"TM": 2, "TN": 2})


def test_it_is_the_thread_asked_for():
    alt = _registers.draw("thread_tiled_1d", {"TM": 8}, 37, 3).alt
    assert "[8, 5] to [15, 5]" in alt and "[8, 3] to [15, 3] of As and [3, 5] of Bs" in alt


def test_only_thread_tiles_that_the_stage_can_run_are_offered():
    for name in _registers.PLANS:
        sizes = tuple(size for size in ("TM", "TN") if size in _registers.LADDER[name].tiles)
        legal = _registers._legal(name, sizes)
        assert len(legal) >= 4
        assert all(
            not _registers.LADDER[name].rules({**_registers.PLANS[name], **dict(zip(sizes, choice))})
            for choice in legal
        )
