"""The explorers' pictures: what they say, and for which stages there is one."""

import numpy as np
import pytest

from gemm_course import widgets as see
from gemm_course.kernels import LADDER
from gemm_course.widgets import _coverage, _roofline, _tiles, _walk


def test_every_name_the_notebooks_use_can_be_loaded():
    for name in see.__all__:
        assert callable(getattr(see, name))
    with pytest.raises(AttributeError):
        see.nothing_of_this_name  # noqa: B018


@pytest.mark.many(one_in=4)
@pytest.mark.parametrize("stage", [stage.name for stage in LADDER])
@pytest.mark.parametrize("name", ["warp_and_memory", "coverage", "filling", "registers"])
def test_stages_without_a_picture_get_a_sentence(name, stage, seen):
    getattr(see, name)(stage)
    (bundle,) = seen.bundles
    if "text/html" not in bundle:
        assert f"`see.{name}` has no picture of `{stage}`" in bundle["text/plain"]
        assert f'`see.tiles("{stage}")`' in bundle["text/plain"]
    if stage in _SHOWN[name]:
        assert "text/html" in bundle
    elif stage in _NEVER_SHOWN:
        assert "text/html" not in bundle


_SHOWN = {
    "warp_and_memory": {"naive_uncoalesced", "naive_coalesced", "thread_tiled_2d", "vectorized"},
    "coverage": {"thread_tiled_2d", "kernel5", "vectorized"},
    "filling": {"thread_tiled_2d", "kernel5", "vectorized"},
    "registers": {"thread_tiled_1d", "thread_tiled_2d"},
}
# None of the four pictures is true of these. Of a stage in neither list, its form decides.
_NEVER_SHOWN = {"penny_xu_tile", "block_tiled", "warp_tiled_tm1", "warp_tiled", "grouped_blocks", "wmma"}


def test_coverage_offers_only_depths_that_a_stage_can_fetch():
    depths = _coverage._controls(LADDER["vectorized"], 8)["depth"][1]
    for block in _coverage.BLOCKS:
        for depth in depths({"block": block}):
            assert "stored" in _coverage.draw(LADDER["vectorized"], block, depth, (0, 0)).alt
    assert 2 in _coverage._controls(LADDER["kernel5"], 8)["depth"][1]({"block": (16, 16)})


@pytest.mark.parametrize(("depth", "said"), [(4, "both tiles are complete"), (8, "no thread writes")])
def test_coverage_can_open_at_a_depth(depth, said):
    explorer = see.coverage.makes_explorer("kernel5_draft", BK=depth)
    assert said in explorer.picture(explorer.controls.start()).alt


def test_coverage_refuses_a_depth_that_it_does_not_offer():
    with pytest.raises(ValueError, match="BK must be one of 2, 4, 8, 16, not 5"):
        see.coverage("kernel5_draft", BK=5)


@pytest.mark.parametrize("block", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_every_thread_of_every_block_can_be_followed_to_its_end(block):
    story, stage = _walk._story(block)
    for thread in ((0, 0), (1, 0), (0, 1), (1, 1)):
        row, column = 2 * block[1] + thread[1], 2 * block[0] + thread[0]
        alt = _walk.draw(len(story) - 1, block, thread).alt.replace("\u00a0", " ")
        assert f"C[{row}, {column}] = acc" in alt
        assert "4 of 4" in alt and "8 of 8" in alt
    assert (stage.tiled_loads, stage.naive_loads) == (4, 8)


def test_a_gpu_gets_a_button_that_measures(monkeypatch):
    asked = {}

    def run(stage, A, B, *, tiles, backend, extras):
        asked.update(tiles=tiles, backend=backend, shape=A.shape)
        return type("Result", (), {"tflops": 12.5})

    assert not see.tiles.makes_explorer("block_tiled").actions
    monkeypatch.setattr(_tiles, "gpu_available", lambda: True)
    monkeypatch.setattr(_tiles, "run", run)
    monkeypatch.setattr(_tiles, "SIZE", 64)
    explorer = see.tiles.makes_explorer("block_tiled")
    assert "12.5 TFLOPS on this machine" in explorer.act("Measure here", explorer.controls.start())
    assert asked == {"tiles": dict(LADDER["block_tiled"].tiles), "backend": "gpu", "shape": (64, 64)}


def test_the_tile_explorer_shows_one_of_three_pictures():
    explorer = see.tiles.makes_explorer("block_tiled")
    state = explorer.controls.start()
    said = [explorer.picture({**state, "show": show}).alt for show in _tiles.PICTURES]
    assert [words in alt for words, alt in zip(("can run", "TFLOPS", "measured"), said)] == [True] * 3
    assert len(set(said)) == 3


@pytest.mark.parametrize("stage", ["naive_uncoalesced", "naive_coalesced"])
def test_counts_agree_with_the_formula_and_the_hardware(stage):
    m = n = k = 1024
    sectors = {"naive_uncoalesced": 33, "naive_coalesced": 5}[stage] * m * n * k // 32
    picture = see.counts(
        stage, (m, n, k), global_load_requests=2 * m * n * k // 32, global_load_sectors=sectors
    )
    assert "All three counts agree" in picture.alt


def test_counts_say_when_the_compiler_merged():
    picture = see.counts("penny_xu_tile", (1024,) * 3, shared_load_requests=2 * 1024**3 // 32)
    assert "the compiler merged accesses" in picture.alt and "41,943,040" in picture.alt


def test_fragments_that_ldmatrix_loads_are_shared_loads():
    fragments, results = 1024**3 // 16**3 * 2 // 4, 8 * 1024**2 // 16**2
    picture = see.counts("wmma", (1024,) * 3, shared_load_requests=fragments + results)
    assert "the compiler merged accesses" in picture.alt
    assert f"hardware {fragments + results // 4:,}" in picture.alt  # eight results in a row take two loads


def test_asynchronous_copies_are_loads_and_stores():
    counts = {
        "global_load_sectors": 1024**3 * 2 // 128 // 16,
        "shared_store_requests": 2 * 1024**3 // 128 // 256,
    }
    picture = see.counts("mma_swizzled", (1024,) * 3, **counts)
    assert "All three counts agree" in picture.alt


def test_a_missing_counter_is_not_zero():
    picture = see.counts("wgmma_tma", (1024,) * 3, shared_load_requests=1)
    assert "hardware has no counter for this" in picture.alt


def test_a_formula_that_counts_something_else_is_told_what_it_counts():
    loads, requests = 2 * 64**3, 2 * 64**3 // 32
    said = {
        count: see.counts("naive_coalesced", (64,) * 3, global_load_sectors=count).alt
        for count in (loads, requests, 5 * 64**3 // 32)
    }
    assert "The formula for loads counts lanes' elements, not sectors" in said[loads]
    assert "The formula for loads counts requests, not sectors" in said[requests]
    assert "not sectors" not in said[5 * 64**3 // 32]


@pytest.mark.parametrize(("steps", "words"), [(5 * 64**3, "32 times too many"), (7, "wrong, too")])
def test_each_wrong_formula_is_named(steps, words):
    wrong = {"global_load_sectors": steps, "global_store_sectors": 64**2}
    told = f"global load sectors: {words}; The formula for stores counts lanes' elements, not sectors"
    assert told in see.counts("naive_coalesced", (64,) * 3, **wrong).alt.replace("\u00a0", " ")


@pytest.mark.parametrize("said", [lambda m, n, k: (1, 2), lambda m, n, k: "many"])
def test_a_formula_must_give_one_number(said, capsys):
    see.counts("naive_coalesced", (64,) * 3, global_load_sectors=said)
    assert "The formula for global_load_sectors must give one number, not" in capsys.readouterr().out


def test_a_count_must_be_one_number():
    with pytest.raises(ValueError, match="must give one number, not `\\(1, 2\\)`"):
        see.counts("naive_coalesced", (64,) * 3, global_load_sectors=(1, 2))


def test_counts_say_that_the_hardware_was_not_recorded():
    picture = see.counts("naive_coalesced", (64,) * 3, global_load_requests=2 * 64**3 // 32)
    assert picture.alt.startswith("Formula and emulator agree")
    assert "hardware not recorded" in picture.alt and "counters have not been recorded" in picture.alt


def test_a_wrong_formula_is_reported():
    assert (
        "Formula and emulator differ" in see.counts("naive_coalesced", (64,) * 3, global_load_requests=1).alt
    )
    assert (
        "32 times as many as the emulator: a request is a whole warp's"
        in see.counts("naive_coalesced", (64,) * 3, global_load_requests=2 * 64**3).alt
    )
    eight_times = see.counts("naive_coalesced", (64,) * 3, global_load_requests=8 * 2 * 64**3 // 32)
    assert "The formula says 8 times as many as the emulator" in eight_times.alt


@pytest.mark.parametrize(
    ("stages", "headline"),
    [
        (
            ("naive_coalesced", "block_tiled", "thread_tiled_1d"),
            "thread_tiled_1d is 2.36 times as fast as block_tiled",
        ),
        (
            ("naive_uncoalesced", "naive_coalesced", "block_tiled"),
            "block_tiled is 1.37 times as fast as naive_coalesced",
        ),
        (("naive_uncoalesced", "grouped_blocks"), "grouped_blocks is 105 times as fast as naive_uncoalesced"),
        (("thread_tiled_2d", "kernel5"), "kernel5 is 12\u00a0% slower than thread_tiled_2d"),
        (("naive_uncoalesced",), "naive_uncoalesced: 0.5 TFLOPS, 0.97\u00a0% of cuBLAS"),
    ],
)
def test_the_headline_is_what_this_step_gains(stages, headline):
    assert see.tflops(*stages).alt.startswith(f"{headline}. TFLOPS: ")


def test_one_stage_stands_beside_what_it_is_compared_with():
    alt = see.tflops("naive_uncoalesced", on="RTX 3090").alt
    assert "TFLOPS: naive_uncoalesced 0.27, cuBLAS 24.6, peak 35.6." in alt and "% of cuBLAS" in alt


def test_tflops_name_machine_and_source():
    assert "NVIDIA H200" in see.tflops("naive_uncoalesced", "naive_coalesced").alt
    assert "RTX 3090" in see.tflops("naive_uncoalesced", "naive_coalesced", on="RTX 3090").alt
    with pytest.raises(ValueError, match="nothing is recorded"):
        see.tflops("no_such_stage")


def test_the_roofline_of_an_ideal_product_grows_with_n():
    assert "memory is the limit" in _roofline.ideal(64).alt
    assert "arithmetic is the limit" in _roofline.ideal(1024).alt


def test_the_roofline_has_the_intensity_of_the_sectors():
    alt = _roofline.moved(("naive_uncoalesced", "naive_coalesced"), "naive_coalesced").alt
    per_step = 2 * 32 / (33 * 32), 2 * 32 / (5 * 32)
    stores = np.array([32, 4]) / 1024
    expected = [64 / (64 / i + 32 * s) for i, s in zip(per_step, stores, strict=True)]
    for value in expected:
        assert f"{value:.3g} FLOP per byte" in alt


def test_a_formula_of_what_the_hardware_counts_is_told_so():
    as_compiled = {"shared_load_wavefronts": lambda m, n, k: m * n * k * 17 // 32 // 32}
    picture = see.counts("thread_tiled_1d", (1024,) * 3, **as_compiled)
    assert picture.alt.startswith("The formula counts what the hardware does")
