"""The whole ladder in one figure: measured, published, not measured yet, and on one roofline."""

import re

import pytest

from gemm_course import records
from gemm_course import widgets as see
from gemm_course.figures import ladder as figure
from gemm_course.figures.ladder import Rung, Speed
from gemm_course.kernels import LADDER
from gemm_course.model import accesses
from gemm_course.widgets import _charts, _costs, _ladder
from tests.records.made_up import made_up_gpu


@pytest.fixture
def clean():
    """No cached records before and after the test."""
    remembered = (_ladder._recorded, _ladder._published)
    for each in remembered:
        each.cache_clear()
    yield
    for each in remembered:
        each.cache_clear()


def test_the_ladder_holds_every_stage_with_its_recorded_figures():
    said = see.ladder().alt
    rows = records.ladder()
    rows = rows[(rows[["m", "n", "k"]] == 4096).all(axis=1) & rows["tflops"].notna()]
    assert [stage.name for stage in LADDER] == re.findall(r"(\w+) \(FP[^)]*\):", said)
    for _, row in rows.iterrows():
        share = f"{100 * row['ratio_to_cublas']:.0f} % of cuBLAS"
        assert f"H200 {row['tflops']:.3g} TFLOPS ({share})" in said, row["stage"]


def test_published_figures_have_their_own_cublas():
    said = see.ladder().alt
    warp = re.search(r"warp_tiled \(FP32\): .*?\. ", said).group()
    assert "RTX 3090 20.2 TFLOPS (82 % of cuBLAS)" in warp
    assert "RTX A6000 21.8 TFLOPS (94 % of cuBLAS)" in warp
    assert "document 004" in said and "SGEMM_CUDA" in said


@pytest.mark.parametrize("name", ["naive_coalesced", "block_tiled", "thread_tiled_1d", "warp_tiled_tm1"])
def test_loads_agree_with_the_formula(name):
    row = re.search(rf"{name} .*?: global ([\d.]+), shared (none|[\d.]+)\.", see.ladder(until=name).alt)
    formula = accesses(LADDER[name], 1024, 1024, 1024)
    loads = sum(formula.global_loads.values()) / formula.fma, formula.shared_loads_per_fma
    assert [float(each.replace("none", "0")) for each in row.groups()] == pytest.approx(loads, rel=5e-3)


def test_the_ladder_ends_at_the_stage_named():
    said = see.ladder(until="thread_tiled_1d").alt
    assert "thread_tiled_1d (FP32)" in said and "thread_tiled_2d" not in said
    with pytest.raises(KeyError, match="no stage is called"):
        see.ladder(until="no_such_stage")


def test_a_stage_that_was_not_measured_says_so(monkeypatch, clean):
    nothing, unpublished = records.ladder().head(0), records.published().head(0)
    monkeypatch.setattr(records, "ladder", lambda *_: nothing)
    monkeypatch.setattr(records, "published", lambda: unpublished)
    picture = see.ladder(until="block_tiled")
    assert picture.alt.startswith("None of these stages has been measured yet")
    assert picture.alt.count("): not measured yet") == 4


def test_another_gpu_that_was_measured_stands_beside_the_h200(monkeypatch, clean, tmp_path):
    folder = made_up_gpu(tmp_path / "made_up_1", "Made-up GPU 1")
    monkeypatch.setenv(records.VARIABLE, str(folder))
    rows = records.ladder("made_up_1")
    (measured,) = rows[(rows["stage"] == "warp_tiled") & (rows["m"] == 4096)]["tflops"]
    picture = see.ladder()
    assert f"Made-up GPU 1 {measured:.3g} TFLOPS" in picture.alt and "Made-up GPU 1, measured" in picture.data


def test_fp16_stages_have_their_own_group_and_cublas():
    rungs = [
        Rung("warp_tiled", "FP32", {"H200": Speed(43.1, 0.84)}, 0.0156, 0.25),
        Rung("wmma", "FP16", {}, 0.0156, 0.1),
    ]
    cublas = {("FP32", "H200"): 51.3, ("FP16", "H200"): 757.0}
    picture = figure.ladder(rungs, {"H200": "measured"}, cublas, "title", "note")
    assert "FP32; cuBLAS:" in picture.data and "FP16; cuBLAS:" in picture.data
    assert "wmma (FP16): not measured yet" in picture.alt and ">not measured yet<" in picture.data


def test_the_ladder_says_what_each_stage_follows():
    picture = see.ladder()
    for stage in LADDER:
        (told,) = re.findall(
            rf"\b{stage.name} \(FP[^)]*\):.*?; (?:(a side branch )?after (\w+); )?loads", picture.alt
        )
        assert told == ("a side branch " if stage.side else "", stage.after)
    assert ">after warp_tiled<" in picture.data  # wmma: the stage above it is another
    assert ">after naive_coalesced<" not in picture.data  # block_tiled: only a side branch lies between


@pytest.mark.parametrize("name", ["naive_uncoalesced", "naive_coalesced", "block_tiled", "vectorized"])
def test_one_block_represents_all(name):
    moved = _charts._counted(name, (1024,) * 3).total("sectors", space="global")
    assert _costs.cost_of_squares(LADDER[name]).intensity_with_stores == 2 * 1024**3 / (32 * moved)


def test_document_004s_v07_is_compared_as_fp16_accumulation():
    said = see.ladder().alt
    v07 = re.search(r"wmma_fp16_acc \(.*?\. ", said).group()
    assert "RTX 3090 46.8 TFLOPS (34 % of cuBLAS)" in v07
    assert said.count("FP16 accumulation cuBLAS on RTX 3090") == 1 and "FP16 cuBLAS on RTX 3090" not in said


def test_one_roofline_shows_all_stages():
    said = see.roofline(until="kernel5").alt
    names = [stage.name for stage in _ladder.up_to("kernel5")]
    assert [name for _, name in re.findall(r"(\d+) (\w+): [\d.]+ FLOP per byte", said)] == names


def test_tflops_of_a_stage_that_was_not_measured_yet(monkeypatch):
    rows = records.ladder()
    monkeypatch.setattr(records, "ladder", lambda *_: rows[rows["stage"] != "warp_tiled"])
    assert "warp_tiled not measured yet" in see.tflops("vectorized", "warp_tiled").alt
    monkeypatch.setattr(records, "ladder", lambda *_: rows.head(0))
    assert see.tflops("warp_tiled").alt.startswith("warp_tiled: not measured yet")


def test_published_tflops_leave_out_unpublished_stages():
    assert (
        "penny_xu_tile"
        not in see.tflops("block_tiled", "penny_xu_tile", on="RTX 3090").alt.split("TFLOPS:")[1]
    )
