"""Another GPU's figures in every picture that has measured ones; a made-up one, outside `data/`."""

import json
import os
import shutil

import pytest

from gemm_course import LADDER, records
from gemm_course import widgets as see
from gemm_course.figures.picture import Picture
from gemm_course.model.gpus import GPUS, by_driver
from gemm_course.widgets import (
    _calls,
    _lab_output,
    _occupancy,
    _roofs,
    _showing,
    _tiles,
    _widget_output,
    asked,
)
from tests.records.made_up import NEW_ENOUGH, made_up_gpu

MADE_UP = "Made-up GPU 1"  # is not in the course's table of GPUs
KNOWN = "NVIDIA GeForce RTX 3090"  # is, and has these figures in a test only
ALL = {
    "ladder": lambda **on: see.ladder(**on),
    "tflops": lambda **on: see.tflops("vectorized", "warp_tiled", **on),
    "roofline": lambda **on: see.roofline("vectorized", **on),
    "roofline, limits": lambda **on: see.roofline(limits="vectorized", **on),
    "roofline, until": lambda **on: see.roofline(until="kernel5", **on),
    "roofline, stages": lambda **on: see.roofline("block_tiled", "vectorized", **on),
    "roofline, ideal": lambda **on: see.roofline(**on),
    "tiles": lambda **on: see.tiles("vectorized", **on),
    "heatmap": lambda **on: see.heatmap("vectorized", "TM", "TN", **on),
    "heatmap, best": lambda **on: see.heatmap("vectorized", "TM", "TN", others="best", **on),
    "row_lengths": lambda **on: see.row_lengths("naive_uncoalesced", **on),
    "row_lengths, several": lambda **on: see.row_lengths("naive_uncoalesced", "naive_coalesced", **on),
    "counts": lambda **on: see.counts("vectorized", (1024,) * 3, global_load_sectors=1, **on),
}
PROFILED = {
    "limits": lambda **on: see.limits("vectorized", "warp_tiled", **on),
    "waits": lambda **on: see.waits("vectorized", "warp_tiled", **on),
}
SHEET = {"machine": lambda **on: see.machine(**on)}
PEERS = {"vectorized_peers": lambda **on: see.vectorized_peers("v02", **on)}
EVERY = ALL | PROFILED | SHEET | PEERS


@pytest.fixture
def shown(monkeypatch):
    """Explorers in place of what they display: each call returns its explorer, or its Picture."""
    monkeypatch.setattr(_showing, "show", lambda explorer, call: explorer)


@pytest.fixture
def made_up(tmp_path, monkeypatch, shown):
    """A GPU that does not exist, which the variable names."""
    folder = made_up_gpu(tmp_path / "made_up_1", MADE_UP)
    monkeypatch.setenv(records.VARIABLE, os.pathsep.join(["off", str(folder)]))
    return records.place("made_up_1")


@pytest.fixture
def both(made_up, tmp_path, monkeypatch):
    """The same, and an RTX 3090 with profiles and peers as well."""
    folder = made_up_gpu(tmp_path / "rtx_3090", KNOWN)
    for name in ("profile", "peers.csv"):
        copy = shutil.copytree if name == "profile" else shutil.copy
        copy(records.SHIPPED.folder / name, folder / name)
    for path in (folder / "profile" / "kernels.csv", folder / "peers.csv"):
        path.write_text(path.read_text("utf-8").replace("NVIDIA H200", KNOWN), "utf-8")
    monkeypatch.setenv(records.VARIABLE, os.pathsep.join(["off", str(made_up.folder), str(folder)]))
    return records.place("rtx_3090")


def control(explorer):
    return explorer.controls.by_name["on"]


def drawn(made, on=None):
    """The picture of an explorer's first state, with a GPU chosen if it offers any; a picture as it is."""
    if isinstance(made, Picture):
        return made
    state = made.controls.start()
    return made.picture(state if on is None else state | {"on": on})


@pytest.mark.many(one_in=5, with_all=2)
@pytest.mark.parametrize("name", EVERY)
def test_with_one_gpu_there_is_nothing_to_choose(name, shown):
    made = EVERY[name]()
    assert isinstance(made, Picture) or "on" not in made.controls.by_name
    assert drawn(made).alt == drawn(EVERY[name](on="h200")).alt


@pytest.mark.many(one_in=5, with_all=2)
@pytest.mark.parametrize("name", ALL)
def test_another_gpu_that_was_measured_is_shown(name, made_up):
    """In the control beside the H200, and by ``on``."""
    made = ALL[name]()
    if name != "ladder":
        assert [option.text for option in control(made).offered({})] == ["H200", MADE_UP]
        assert MADE_UP not in drawn(made).alt and "H200" in drawn(made).alt
        made = drawn(made, made_up)
    assert MADE_UP in drawn(made).alt
    for on in ("made_up_1", MADE_UP, str(made_up.folder)):
        assert drawn(ALL[name](on=on)).alt == drawn(made).alt
    if name not in ("ladder", "counts"):
        assert "NVIDIA H200" not in drawn(made).alt


@pytest.mark.full(reason="draws every picture twice")
def test_the_figures_are_those_of_the_chosen_gpu(made_up):
    rows = records.ladder("made_up_1")
    (slow,) = rows[(rows["stage"] == "warp_tiled") & (rows["m"] == 4096)]["tflops"]
    assert f"warp_tiled {slow:.3g}" in see.tflops("vectorized", "warp_tiled", on="made_up_1").alt
    assert f"{MADE_UP} {slow:.3g} TFLOPS" in see.ladder().alt
    best = records.sweep("made_up_1").query("stage == 'vectorized'")["tflops"].max()
    tiles = see.tiles("vectorized")
    state = tiles.controls.start() | {"on": made_up}
    assert f"{best:.3g}" in tiles.picture(state | {"show": "measured around"}).alt
    assert f"{best:.3g} TFLOPS" in see.heatmap("vectorized", "TM", "TN", others="best", on="made_up_1").alt


def test_each_kind_of_picture_of_tiles_has_both_gpus(made_up):
    tiles = see.tiles("vectorized")
    for show in _tiles.PICTURES:
        one, other = (
            tiles.picture(tiles.controls.start() | {"show": show, "on": on})
            for on in (records.SHIPPED, made_up)
        )
        assert one.alt != other.alt and "H200" in one.alt and MADE_UP in other.alt
    assert "not known of this GPU" in tiles.picture(tiles.controls.start() | {"on": made_up}).alt


@pytest.mark.parametrize("name", [*PROFILED, *PEERS])
def test_what_few_measure_is_offered_where_it_was(name, both):
    made = EVERY[name]()
    assert [option.text for option in control(made).offered({})] == ["H200", "RTX 3090"]
    assert KNOWN in drawn(made, both).alt


@pytest.mark.parametrize("name", PROFILED)
def test_profiles_that_were_not_made_are_asked_for(name, made_up):
    assert isinstance(PROFILED[name](), Picture)  # nothing to choose: the other has none
    said = PROFILED[name](on="made_up_1").alt
    assert (
        f"vectorized was not measured on the {MADE_UP}" in said and "`gemm-course profile vectorized`" in said
    )


@pytest.mark.full(reason="draws all pictures of two GPUs")
def test_a_picture_of_several_gpus_offers_each(both):
    ladder = see.ladder()
    assert control(ladder).label == "beside the H200"
    assert [option.text for option in control(ladder).offered({})] == [MADE_UP, "RTX 3090"]
    own = drawn(ladder, both)
    assert "RTX 3090 (rtx_3090)" in own.alt and "RTX 3090, published" in own.data  # both, told apart
    assert [option.text for option in control(see.machine()).offered({})] == ["H200", MADE_UP, "RTX 3090"]


def test_limits_of_a_known_gpu_are_its_own(both):
    assert "82 multiprocessors" in drawn(see.machine(), both).data
    said = drawn(see.roofline("vectorized", on="rtx_3090")).alt
    assert f"peak {GPUS['RTX 3090'].peak_fp32_tflops:.3g} TFLOPS" in said and "DRAM 0.936 TB/s" in said
    assert "FP16 peak on Tensor Cores 71 " in drawn(see.roofline("wmma", on="rtx_3090")).alt
    assert "FP16 peak on Tensor Cores 142 " in drawn(see.roofline("wmma_fp16_acc", on="rtx_3090")).alt
    tiles = see.tiles("vectorized", on="rtx_3090")
    assert "48 warps" in drawn(tiles).alt  # of an SM with 8.6
    assert "RTX 3090 cannot run wgmma_tma" in see.tflops("mma_sync", "wgmma_tma", on="rtx_3090").alt


def test_roofs_of_an_unknown_gpu_are_measured_ones(made_up, tmp_path, monkeypatch):
    speeds = records.roofs("made_up_1").set_index("memory")["tb_s"]
    said = see.roofline("vectorized", on="made_up_1").alt
    assert f"DRAM {speeds['DRAM']:.3g} TB/s, L1 {speeds['shared']:.3g} TB/s" in said
    assert (
        f"Roofs as measured, L1 as shared memory: the course's table of GPUs does not have the {MADE_UP}"
        in said
    )
    folder = made_up_gpu(tmp_path / "made_up_2", "Made-up GPU 2", ("ladder.csv",))
    for picture in (see.roofline("vectorized", on=str(folder)), drawn(see.roofline(on=str(folder)))):
        assert (
            "not in the course's table of GPUs" in picture.alt
            and "`python -m measuring roofs`" in picture.alt
        )
    assert "not in the course's table" in see.machine(on="made_up_1").alt


@pytest.mark.full(reason="draws all pictures")
def test_what_was_not_measured_says_what_measures_it(made_up, tmp_path):
    name = NEW_ENOUGH[0]
    assert f"{name} was not measured on the {MADE_UP}" in see.tflops("mma_sync", name, on="made_up_1").alt
    assert f"`gemm-course bench {name}`" in see.tflops("mma_sync", name, on="made_up_1").alt
    assert f"{name}" in see.ladder().alt.split("were not measured on")[0].split(". ")[-1]
    said = drawn(see.tiles(name, on="made_up_1")).alt
    assert (
        f"{name} was not measured on the {MADE_UP}: on that machine, `gemm-course sweep {name}` does it."
        in said
    )
    assert f"`gemm-course sweep {name}`" in drawn(see.heatmap(name, "BN", "SLOTS", on="made_up_1")).alt
    folder = str(made_up_gpu(tmp_path / "made_up_2", "Made-up GPU 2", ("ladder.csv",)))
    assert "`gemm-course bench --rows`" in drawn(see.row_lengths("naive_uncoalesced", on=folder)).alt
    assert "`python -m measuring counters vectorized --shapes 1024x1024x1024`" in ALL["counts"](on=folder).alt
    assert "not measured on the Made-up GPU 2" in drawn(see.vectorized_peers("v02", on=folder)).alt


@pytest.mark.many(one_in=5, with_all=2)
@pytest.mark.parametrize("name", EVERY)
def test_an_unknown_name_lists_those_that_there_are(name, made_up):
    with pytest.raises(ValueError, match="called rtx_1 were found; there are h200, made_up_1"):
        EVERY[name](on="rtx_1")


def test_occupancy_offers_what_was_measured(both, made_up):
    made = see.occupancy("vectorized")
    gpus = [option.text for option in made.controls.by_name["gpu"].offered({})]
    assert gpus == ["H200", "A100", "RTX 3090", MADE_UP]
    start = made.controls.start()
    assert "Choose a GPU of the same compute capability" in made.picture(start | {"gpu": MADE_UP}).alt
    assert made.act(_occupancy.COMPILE, start | {"gpu": MADE_UP}).startswith(
        "What the Made-up GPU 1 can hold"
    )
    for name in ("rtx_3090", "made_up_1"):
        assert see.occupancy("vectorized", gpu=name).controls.start()["gpu"] in ("RTX 3090", MADE_UP)
    stage = LADDER["vectorized"]
    row = records.sweep("rtx_3090").query("stage == 'vectorized' and registers.notna()").iloc[0]
    said = _occupancy.draw(
        _occupancy.OfStage(stage), "RTX 3090", records.parse_tiles(row["tiles"]), (8, 6)
    ).alt
    assert f"{row['registers']} registers per thread: the driver's own figure" in said and KNOWN in said


def test_a_folder_that_changes_is_read_again(made_up):
    before = see.tflops("vectorized", "warp_tiled", on="made_up_1").alt
    path = made_up.folder / "ladder.csv"
    path.write_text("".join(line for line in path.open() if not line.startswith("warp_tiled,")))
    assert (
        "warp_tiled was not measured" in see.tflops("vectorized", "warp_tiled", on="made_up_1").alt != before
    )


def test_the_browser_gets_the_control_in_place_of_stored_frames(made_up, monkeypatch):
    make = see.tiles.makes_explorer
    stored = _lab_output.bundle(make("vectorized", tells_best=False, on="h200"), None)
    call = _calls.call_of(make, ("vectorized",), {"tells_best": False})
    spec = _lab_output.bundle(make("vectorized", tells_best=False), call)[_lab_output.MIME]
    assert spec["controls"][0]["label"] == "measured on" and spec["frames"] is None
    assert (
        spec["controls"][0]["rows"] == {"": ["H200", MADE_UP]} and spec["controls"][0]["kind"] == "segments"
    )

    def answer(at):
        question = {"call": [call.name, json.loads(call.arguments)], "at": at}
        return asked.answer(json.dumps(question)).data

    assert MADE_UP in answer([MADE_UP, *spec["at"][1:]])["picture"][1]
    before = answer(stored[_lab_output.MIME]["at"])  # an output from before there was anything to choose
    assert "H200" in before["picture"][1]


WITH_TILES = {
    "waits, tiles": lambda **on: see.waits(("naive_coalesced", {"BM": 32, "BN": 32}), "penny_xu_tile", **on),
    "limits, size": lambda **on: see.limits("naive_uncoalesced", size=(2048, 2048, 2048), **on),
}


@pytest.mark.many(one_in=19, with_all=5)
@pytest.mark.parametrize("name", [*EVERY, *WITH_TILES])
def test_the_browser_can_ask_for_every_gpu(name, both, made_up, monkeypatch):
    """By the call as it is written down, so that no cell has to have been run."""
    asked_for = []
    monkeypatch.setattr(_showing, "show", lambda explorer, call: asked_for.append((explorer, call)))
    (EVERY | WITH_TILES)[name]()
    ((explorer, call),) = asked_for
    for option in control(explorer).offered({}):
        state = explorer.controls.start() | {"on": option.value}
        question = {"call": [call.name, json.loads(call.arguments)], "at": explorer.controls.texts(state)}
        alt = asked.answer(json.dumps(question)).data["picture"][1]
        assert alt == explorer.picture(state).alt
        assert name in SHEET or option.text in alt


@pytest.mark.full(reason="compiles a kernel")
def test_a_card_and_machine_code_tell_of_the_gpu_that_is_named(both, made_up):
    own = LADDER["warp_tiled"]
    assert (
        "cuBLAS, RTX 3090 " in see.card(own, on="rtx_3090").alt and KNOWN in see.card(own, on="rtx_3090").alt
    )
    assert see.card(own).alt == see.card(own, on="h200").alt
    assert KNOWN in see.machine_code("vectorized", on="rtx_3090").picture.text
    said = see.machine_code("vectorized", on="made_up_1")
    assert "`gemm-course profile vectorized`" in said.words
    with pytest.raises(ValueError, match=f"{MADE_UP} can hold .* Say which compute_capability"):
        see.compare_code("double_buffered", "async_copy", on="made_up_1")


def test_elsewhere_the_gpu_can_be_chosen_as_well(made_up, seen, monkeypatch):
    def as_a_widget(*made):
        return _widget_output.show(_lab_output.bundle(*made))

    monkeypatch.setattr(_showing, "show", as_a_widget)
    see.tiles("vectorized")
    (spec,) = seen.shown[-1].explorers
    (place,) = (place for place, each in enumerate(spec["controls"]) if each["label"] == "measured on")
    assert spec["controls"][place]["rows"] == {"": ["H200", MADE_UP]}
    at = [*spec["at"][:place], MADE_UP, *spec["at"][place + 1 :]]
    asked_for = json.dumps({"at": at, "call": spec["call"]})
    assert MADE_UP in asked.answer(asked_for).data["picture"][1]


def test_names_of_drivers():
    assert by_driver("NVIDIA A100-SXM4-80GB") is GPUS["A100"] and by_driver("Tesla T4") is GPUS["T4"]
    assert by_driver("NVIDIA H200") is GPUS["H200"] and by_driver(KNOWN) is GPUS["RTX 3090"]
    assert by_driver("NVIDIA A100-SXM4-40GB") is None and by_driver(MADE_UP) is None
    assert all(gpu.fp16_tensor_tflops for gpu in GPUS.values())


def test_issue_slots_of_an_a100_reach_its_peak_with_every_second_one():
    gpu = GPUS["A100"]
    assert _roofs.issue_ceiling(0.5, gpu) == _roofs.issue_ceiling(0.9, gpu) == gpu.peak_fp32_tflops
    assert _roofs.issue_ceiling(0.25, gpu) == pytest.approx(gpu.peak_fp32_tflops / 2)
