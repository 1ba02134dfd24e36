"""The roofs that belong to a stage: none stands above one, and the pictures draw no others for it."""

import re

import pytest

from gemm_course import records
from gemm_course import widgets as see
from gemm_course.kernels import LADDER
from gemm_course.widgets import _ladder, _roofline, _roofs, _tiles
from gemm_course.widgets._roofs import BY_TMA, fed_by_tma, memories, roofs_of
from tests.unmeasured import COUNTERS, LADDER_TABLE, MACHINE_CODE, measured_stages, skip_unmeasured

MEASURED = [stage for stage in LADDER if _ladder.speed_of(stage)]


@pytest.fixture
def without_tma(monkeypatch):
    """The records as they were before L2 was read with TMA."""
    rows = records.roofs()
    monkeypatch.setattr(records, "roofs", lambda *_: rows[rows["memory"] != BY_TMA])
    cached = (_roofs.rated, _roofs.roofs_of)
    for each in cached:
        each.cache_clear()
    yield
    for each in cached:
        each.cache_clear()


def point(stage):
    return _roofline._point(stage, True)


def labels(roofs):
    return [roof.label for roof in roofs]


@pytest.mark.parametrize("stage", MEASURED, ids=lambda stage: stage.name)
def test_no_stage_stands_above_a_roof_that_belongs_to_it(stage):
    here = point(stage)
    for name, height in roofs_of(stage).heights(here.intensity):
        assert here.tflops <= height, name


@pytest.mark.parametrize("stage", MEASURED, ids=lambda stage: stage.name)
def test_no_stage_stands_above_a_memory_in_the_picture_of_its_tiles(stage):
    """Of those that its bytes pass: L1, which all pass, and L2 where TMA fetches them."""
    here = point(stage)
    for roof in memories([stage]):
        if roof.label == "L1" or (fed_by_tma(stage) and roof.label.startswith("L2")):
            assert here.tflops <= here.intensity * roof.terabytes_per_second, roof.label


def test_the_check_can_fail():
    """The fastest stages would stand above the L2 that was read with loads: more is read than it gives."""
    loads = _roofs.rated().bandwidths["L2"]
    above = [each.name for each in MEASURED if point(each).tflops > point(each).intensity * loads]
    assert "overlapped_store" in above


def test_tma_feeds_the_stages_that_use_it():
    compiled = measured_stages(MACHINE_CODE)
    assert [stage.name for stage in compiled if fed_by_tma(stage)] == [
        stage.name for stage in compiled if stage.compute_capability == (9, 0)
    ]


def test_l2_by_tma_is_drawn_for_the_stages_that_it_feeds_only():
    assert labels(memories([LADDER["vectorized"]])) == ["DRAM", "L1", "L2"]
    assert labels(memories([LADDER["wgmma_tma"]])) == ["DRAM", "L1", BY_TMA]
    both = [LADDER["mma_sync"], LADDER["wgmma_tma"]]
    assert labels(memories(both)) == ["DRAM", "L1", "L2, by loads", BY_TMA]
    assert BY_TMA in see.roofline("wgmma_tma").alt and BY_TMA not in see.roofline("mma_sync").alt
    assert BY_TMA in _tiles.on_roofline(LADDER["persistent"], {}).alt


def test_without_a_record_no_l2_is_drawn_for_them(without_tma):
    assert labels(memories([LADDER["wgmma_tma"]])) == ["DRAM", "L1"]
    assert labels(roofs_of(LADDER["wgmma_tma"]).memories) == ["L1"]
    both = [LADDER["mma_sync"], LADDER["wgmma_tma"]]
    assert labels(memories(both)) == ["DRAM", "L1", "L2, by loads"]
    assert "L2" not in see.roofline(limits="wgmma_tma").alt


@pytest.mark.many(one_in=5)
@pytest.mark.parametrize("stage", LADDER, ids=lambda stage: stage.name)
def test_the_picture_names_the_roofs_and_the_lowest_of_them(stage):
    skip_unmeasured(stage, LADDER_TABLE, COUNTERS, MACHINE_CODE)
    alt, own, here = see.roofline(limits=stage.name).alt, roofs_of(stage), point(stage)
    name, lowest = own.lowest(here.intensity)
    assert f"The lowest roof: {name}, {lowest:.3g} TFLOPS." in alt
    assert f"{stage.name}: {here.tflops:.3g} TFLOPS, {100 * here.tflops / lowest:.0f} % of" in alt
    drawn = re.search(r"Roofs: (.*?), peak", alt).group(1).split(", ")
    assert drawn == [f"{roof.label} {roof.terabytes_per_second:.3g} TB/s" for roof in own.memories]
    for ceiling in own.ceilings:
        assert f"{ceiling.label}: {ceiling.tflops:.3g} TFLOPS." in alt
        assert ceiling.tflops < own.peak.tflops
    assert "NVIDIA H200" in alt and ("Loop: NVVM" in alt) == (stage.dtype == "float32")


@pytest.mark.parametrize("stage", [s for s in LADDER if s.dtype == "float32"], ids=lambda stage: stage.name)
def test_the_loop_stands_for_the_kernel(stage):
    """What part of all executed instructions Nsight Compute counted as multiply-adds, prologue included."""
    skip_unmeasured(stage, COUNTERS, MACHINE_CODE)
    rows = records.counters("ladder")
    (row,) = rows[rows["case"] == f"{stage.name} 1024x1024x1024"].to_dict("records")
    executed = row["float32_fma"] / 32 / row["warp_instructions"]
    (issue,) = [one for one in roofs_of(stage).ceilings if one.label.startswith("issue slots")]
    share = issue.tflops / roofs_of(stage).peak.tflops
    assert executed == pytest.approx(share, rel=0.04)


def test_the_stage_is_drawn_once_whether_it_is_named_twice_or_not():
    alone, beside, twice = (
        see.roofline(*others, limits="vectorized").alt for others in ((), ("warp_tiled",), ("vectorized",))
    )
    assert alone == twice and alone.count("vectorized: 30.1 FLOP per byte") == 1
    assert "warp_tiled: 30.1 FLOP per byte" in beside and "vectorized: 30.1 FLOP per byte" in beside
    with pytest.raises(KeyError, match="no stage is called"):
        see.roofline(limits="no_such_stage")


def test_tensor_core_stages_have_the_roof_of_their_instruction():
    units = records.compute_roofs().set_index("unit")["tflops"]
    for name, unit in (("mma_sync", "mma FP16"), ("mma_tma", "mma FP16"), ("wgmma_tma", "wgmma FP16")):
        (own,) = [one for one in roofs_of(LADDER[name]).ceilings if "alone" in one.label]
        assert own.tflops == units[unit]


def test_wavefronts_of_copies_do_not_pass_the_pipe_of_loads_and_stores():
    """With them there would be more than one per clock; without them the pipe's own counter has most."""
    rows = records.profiles()
    rows = rows[rows["stage"].isin(("wmma", "wmma_fp16_acc", "mma_swizzled", "mma_sync"))]
    wavefronts = 100 * rows[["shared_wavefronts", "async_copy_wavefronts"]].div(132 * rows["clocks"], axis=0)
    own = wavefronts["shared_wavefronts"] - wavefronts["async_copy_wavefronts"]
    assert (
        wavefronts["shared_wavefronts"].max(),
        rows.loc[wavefronts["shared_wavefronts"].idxmax()]["l1_data"],
    ) == (
        pytest.approx(137, abs=1),
        pytest.approx(83, abs=1),
    )
    assert (own < rows["l1_data"]).all() and (rows["l1_data"] - own).max() < 7


def test_shared_memory_is_not_the_lowest_roof_of_wmma():
    own, here = roofs_of(LADDER["wmma"]), point(LADDER["wmma"])
    (shared,) = [one for one in own.ceilings if one.label.startswith("shared memory")]
    assert shared.tflops == pytest.approx(901, abs=1)
    assert own.lowest(here.intensity)[0] == "mma alone, as measured"


def test_until_goes_with_nothing_else():
    with pytest.raises(ValueError, match="leave out"):
        see.roofline(until="warp_tiled", limits="vectorized")
