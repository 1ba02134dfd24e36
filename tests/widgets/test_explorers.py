"""Explorers: controls that depend on each other, pictures that follow, and what they say."""

import numpy as np
import pytest

from gemm_course import widgets as see
from gemm_course.figures.picture import Picture
from gemm_course.kernels import LADDER
from gemm_course.widgets import _coverage, _explorer, _roofline, _tiles, _walk
from gemm_course.widgets._explorer import Controls, Explorer, StepThrough


class Seen:
    """What was displayed, in order; stands in for IPython's display."""

    def __init__(self):
        self.shown, self.updates = [], []

    def __call__(self, *things, **_):
        self.shown.extend(things)
        return self

    def update(self, bundle, raw):
        self.updates.append(bundle)


@pytest.fixture
def seen(monkeypatch):
    screen = Seen()
    for module in ("_explorer", "_canvas", "_names", "_quiz", "_tiles"):
        monkeypatch.setattr(f"gemm_course.widgets.{module}.display", screen)
    return screen


def test_every_name_the_notebooks_use_can_be_loaded():
    for name in see.__all__:
        assert callable(getattr(see, name))
    with pytest.raises(AttributeError):
        see.nothing_of_this_name  # noqa: B018


def test_choices_follow_the_sliders_they_depend_on():
    changes = []
    described = {
        "wide": ("wide", [2, 8], 8),
        "x": ("x", lambda chosen: range(chosen["wide"]), 6),
    }
    controls = Controls(described, lambda: changes.append(controls.values()))
    controls.sliders["wide"].value = 2
    assert changes == [{"wide": 2, "x": 1}]
    controls.sliders["wide"].value = 8
    assert list(controls.sliders["x"].options) == list(range(8))
    assert controls.values() == {"wide": 8, "x": 1}


def test_moving_a_slider_replaces_the_picture_and_its_words(seen):
    explorer = Explorer(lambda n: Picture("<svg/>", f"n is {n}"), {"n": ("n", [1, 2], 1)})
    explorer.show()
    explorer.controls.sliders["n"].value = 2
    assert [bundle["text/plain"] for bundle in seen.updates] == ["n is 2"]
    assert 'alt="n is 2"' in seen.updates[0]["text/html"]


def test_a_picture_is_drawn_once(seen):
    drawn = []
    explorer = Explorer(lambda n: drawn.append(n) or Picture("<svg/>", "x"), {"n": ("n", [1, 2], 1)})
    explorer.show()
    for value in (2, 1, 2):
        explorer.controls.sliders["n"].value = value
    assert drawn == [1, 2]


def test_a_sequence_moves_both_ways_and_stops_at_its_ends(seen):
    story = StepThrough(
        lambda step, length: Picture("<svg/>", f"step {step}"),
        lambda length: length,
        {"length": ("length", [3, 2], 3)},
    )
    story.show()
    for _ in range(5):
        story.next.click()
    assert story.step.value == 2
    story.controls.sliders["length"].value = 2
    assert story.step.value == 1 and seen.updates[-1]["text/plain"] == "step 1"
    for _ in range(5):
        story.previous.click()
    assert story.step.value == 0


@pytest.mark.parametrize("stage", [stage.name for stage in LADDER])
@pytest.mark.parametrize("name", ["warp_and_memory", "coverage", "filling", "registers"])
def test_stages_without_a_picture_get_a_sentence(name, stage, seen):
    getattr(see, name)(stage)
    (shown,) = [thing for thing in seen.shown if isinstance(thing, dict)]
    if "text/html" not in shown:
        assert f"`see.{name}` has no picture of `{stage}`" in shown["text/plain"]
        assert f'`see.tiles("{stage}")`' in shown["text/plain"]
    assert ("text/html" in shown) == (stage in _SHOWN[name])


_SHOWN = {
    "warp_and_memory": {"naive_uncoalesced", "naive_coalesced", "thread_tiled_2d", "vectorized"},
    "coverage": {"thread_tiled_2d", "kernel5", "vectorized"},
    "filling": {"thread_tiled_2d", "kernel5", "vectorized"},
    "registers": {"thread_tiled_1d", "thread_tiled_2d"},
}


def test_coverage_offers_only_depths_that_a_stage_can_fetch():
    depths = _coverage._controls(LADDER["vectorized"], 8)["depth"][1]
    for block in _coverage.BLOCKS:
        for depth in depths({"block": block}):
            assert "stored" in _coverage.draw(LADDER["vectorized"], block, depth, (0, 0)).alt
    assert 2 in _coverage._controls(LADDER["kernel5"], 8)["depth"][1]({"block": (16, 16)})


@pytest.mark.parametrize("block", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_every_thread_of_every_block_can_be_followed_to_its_end(block):
    story, stage = _walk._story(block)
    for thread in ((0, 0), (1, 0), (0, 1), (1, 1)):
        row, column = 2 * block[1] + thread[1], 2 * block[0] + thread[0]
        alt = _walk.draw(len(story) - 1, block, thread).alt.replace("\u00a0", " ")
        assert f"C[{row}, {column}] = acc" in alt
        assert "4 of 4" in alt and "8 of 8" in alt
    assert (stage.tiled_loads, stage.naive_loads) == (4, 8)


def test_a_gpu_gets_a_button_that_measures(monkeypatch, seen):
    asked = {}

    def run(stage, A, B, *, tiles, backend):
        asked.update(tiles=tiles, backend=backend, shape=A.shape)
        return type("Result", (), {"tflops": 12.5})

    monkeypatch.setattr(_tiles, "gpu_available", lambda: True)
    monkeypatch.setattr(_tiles, "run", run)
    monkeypatch.setattr(_tiles, "SIZE", 64)
    see.tiles("block_tiled")
    buttons = [thing for thing in seen.shown if getattr(thing, "description", "") == "Measure here"]
    buttons[0].click()
    assert asked == {"tiles": dict(LADDER["block_tiled"].tiles), "backend": "gpu", "shape": (64, 64)}
    assert "12.5 TFLOPS on this machine" in seen.updates[-1]["text/plain"]


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
    picture = see.counts("wgmma_tma", (1024,) * 3, shared_load_requests=None)
    assert "hardware has no counter for this" in picture.alt


def test_counts_say_that_the_hardware_was_not_recorded():
    picture = see.counts("naive_coalesced", (64,) * 3, global_load_requests=2 * 64**3 // 32)
    assert picture.alt.startswith("Formula and emulator agree")
    assert "hardware not recorded" in picture.alt and "counters have not been recorded" in picture.alt


def test_a_wrong_formula_is_reported():
    assert (
        "Formula and emulator differ" in see.counts("naive_coalesced", (64,) * 3, global_load_requests=1).alt
    )


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


def test_sliders_have_names():
    slider = _explorer._slider("block (x × y)", [1, 2], 1)
    assert slider.description == slider.tooltip == "block (x × y)"
