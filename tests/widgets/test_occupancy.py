"""The SM's tanks: what a block takes comes from the best source there is."""

import xml.etree.ElementTree as ElementTree

import pytest

from gemm_course import widgets as see
from gemm_course.compiler import Compiled, compiled
from gemm_course.compiler.nvidia import why_no_compiler
from gemm_course.compiler.record import recorded
from gemm_course.figures.tank_words import sentence as figure_words
from gemm_course.kernels import LADDER
from gemm_course.model import GPUS, occupancy
from gemm_course.profiles import recorded as recorded_profile
from gemm_course.widgets import _block_resources, _occupancy
from gemm_course.widgets import _measured as sweep
from gemm_course.widgets._block_resources import OfCode, OfStage

HOPPER, AMPERE = (9, 0), (8, 6)
TILED = LADDER["thread_tiled_2d"]


def filled(*args, **kwargs):
    """The explorer that `see.occupancy` shows, and what it says of a state."""
    explorer = see.occupancy.makes_explorer(*args, **kwargs)
    start = explorer.controls.start()
    return explorer, lambda **chosen: explorer.picture(explorer.controls.fitted({**start, **chosen})).alt


def offered(explorer, name):
    return [option.text for option in explorer.controls.by_name[name].offered({})]


@pytest.fixture
def without_compiler(monkeypatch):
    for module in ("gemm_course.widgets._block_resources", "gemm_course.compiler.compile"):
        monkeypatch.setattr(f"{module}.why_no_compiler", lambda: "There is no compiler here.")


# ---- where a block's registers come from -------------------------------------------------------------------


@pytest.mark.many(one_in=4)
@pytest.mark.parametrize("stage", LADDER, ids=lambda stage: stage.name)
@pytest.mark.parametrize("capability", [(8, 0), (8, 6), (9, 0)], ids=str)
def test_default_tiles_are_read_from_the_record(stage, capability, without_compiler):
    code = recorded(stage, capability)
    taken = OfStage(stage).taken(stage.complete(), capability)
    if code is None:  # such a GPU cannot run it
        assert not taken.exact
    else:
        assert (taken.registers, taken.shared_bytes, taken.exact) == (code.registers, code.shared_bytes, True)
        assert taken.source.startswith(f"{code.registers} registers per thread: machine code on record")


def test_other_tiles_are_read_from_the_sweep_of_that_gpu(without_compiler):
    choice = next(c for c in sweep.measured(TILED) if dict(c.tiles) != TILED.complete())
    here = OfStage(TILED).taken(choice.tiles, HOPPER)
    assert (here.registers, here.shared_bytes, here.exact) == (choice.registers, choice.shared_bytes, True)
    assert "NVIDIA H200" in here.source and "driver" in here.source
    assert not OfStage(TILED).taken(choice.tiles, AMPERE).exact


def test_without_a_compiler_a_sentence_says_so(without_compiler):
    subject, tiles = OfStage(TILED), {**TILED.complete(), "BK": 8}
    taken = subject.taken(tiles, AMPERE)
    assert taken.source == (
        "At most 128 registers per thread: the kernel asks the compiler for room for 2 blocks of 256 "
        "threads. There is no compiler here."
    )
    subject.compile(tiles, AMPERE)
    assert subject.taken(tiles, AMPERE) == taken
    assert _occupancy.draw(subject, "RTX 3090", tiles, AMPERE).alt.startswith("At least 2 blocks fit")


@pytest.mark.compiler
def test_what_is_nowhere_on_record_is_compiled():
    subject, tiles = OfStage(TILED), {"BM": 32, "BN": 32, "BK": 8, "TM": 2, "TN": 2}
    assert "Compile these tiles" in subject.taken(tiles, AMPERE).source
    subject.compile_unless_known(tiles, AMPERE)
    code = compiled(TILED, compute_capability=AMPERE, tiles=tiles)
    taken = subject.taken(tiles, AMPERE)
    assert (taken.registers, taken.shared_bytes, taken.exact) == (code.registers, code.shared_bytes, True)


def test_what_is_on_record_is_compiled_when_asked_for_only(monkeypatch):
    asked = []
    monkeypatch.setattr(_block_resources, "now", lambda *what: asked.append(what) or "Not here.")
    subject = OfStage(TILED)
    subject.compile_unless_known(TILED.complete(), HOPPER)
    assert not asked
    subject.compile(TILED.complete(), HOPPER)
    assert len(asked) == 1 and "on record" in subject.taken(TILED.complete(), HOPPER).source


def test_what_cannot_be_compiled_is_said(monkeypatch):
    if why_no_compiler():
        monkeypatch.setattr(_block_resources, "why_no_compiler", lambda: None)
    subject = OfStage(LADDER["mma_ring"])
    tiles = LADDER["mma_ring"].complete()
    subject.compile(tiles, AMPERE)
    assert "it can have 101,376" in subject.taken(tiles, AMPERE).source
    alt = _occupancy.draw(subject, "RTX 3090", tiles, AMPERE).alt
    assert alt.startswith("No block fits: too little shared memory")


@pytest.mark.many(one_in=4)
@pytest.mark.parametrize("stage", LADDER, ids=lambda stage: stage.name)
@pytest.mark.parametrize("capability", [(8, 0), (8, 6), (9, 0)], ids=str)
def test_the_compiler_stays_below_the_bound(stage, capability):
    """The bound is what the launch bounds leave a thread: the record has no stage that takes more."""
    code = recorded(stage, capability)
    if code is not None:
        assert code.registers <= _block_resources.at_most(stage, stage.complete(), capability).registers


@pytest.mark.many(one_in=4)
@pytest.mark.parametrize("threads", range(32, 1025, 32))
@pytest.mark.parametrize("blocks", [1, 2, 3, 5])
def test_with_the_bound_so_many_blocks_find_registers(threads, blocks):
    if threads * blocks <= 2048:
        registers = _block_resources.most_registers(threads, blocks, HOPPER)
        assert occupancy(threads, registers, 0).limits["registers"] >= blocks
        more = registers + 8
        assert more > 255 or occupancy(threads, more, 0).limits["registers"] < blocks


# ---- what else it says -------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", LADDER, ids=lambda stage: stage.name)
def test_with_so_many_registers_the_next_block_would_fit(stage):
    """And with eight more, the unit in which the compiler gives them, it would not."""
    subject, tiles = OfStage(stage), stage.complete()
    for gpu, capability in _occupancy._gpus(stage, "H200").items():
        held = _occupancy._contents(subject, gpu, tiles, capability)
        threads, fewer = subject.taken(tiles, capability).threads, held.fewer_registers
        if [tank.name for tank in held.short] == ["registers"] and held.fits:
            assert f"With at most {fewer} per thread it would fit." in figure_words(held)
            assert occupancy(threads, fewer, 0, GPUS[gpu]).limits["registers"] > held.fits
            assert occupancy(threads, fewer + 8, 0, GPUS[gpu]).limits["registers"] <= held.fits


def test_how_much_more_warps_could_help_is_as_measured():
    for name, column, part in (
        ("vectorized", "issue_slots", "issue slots taken"),
        ("kernel5", "issue_slots", "issue slots taken"),  # where waiting is the limit
        ("wgmma_tma", "tensor_pipe", "Tensor Cores busy"),
    ):
        row, stage = recorded_profile(name).measured, LADDER[name]
        busy = round(row[column] / row["active_clocks"] * row["clocks"])
        alt = _occupancy.draw(OfStage(stage), "H200", stage.complete(), HOPPER).alt
        assert f"{part} in {busy} % of the clocks, more than any other part" in alt
        assert f"could save at most {100 - busy} % of the time" in alt


def test_where_nothing_was_measured_nothing_is_said_of_more_warps():
    stage = LADDER["vectorized"]
    elsewhere = _occupancy.draw(OfStage(stage), "A100", stage.complete(), (8, 0)).alt
    others = _occupancy.draw(OfStage(stage), "H200", {**stage.complete(), "BM": 64}, HOPPER).alt
    assert all("Few warps are no fault" in alt and "could save" not in alt for alt in (elsewhere, others))
    every_slot = _occupancy.draw(OfStage(LADDER["naive_coalesced"]), "H200", {}, HOPPER).alt
    assert "64 of 64 warps" in every_slot and "Few warps" not in every_slot


def test_what_the_system_takes_is_in_the_amount():
    code = recorded("vectorized", HOPPER)
    alt = _occupancy.draw(OfCode(code, 256), "H200", {}, HOPPER).alt
    assert f"of its {(code.shared_bytes + 1024) / 1024:g} KB, 1 KB is the system's" in alt


# ---- the explorer ------------------------------------------------------------------------------------------


def test_blocks_are_left_out_one_by_one():
    _, said = filled("thread_tiled_2d")
    assert said().startswith("2 blocks fit: registers are full; 16 of 64 warps")
    assert said(left_out=1).startswith("1 block of 2")
    assert said(left_out=2).startswith("An empty SM")
    assert said(left_out=99) == said(left_out=2)


def test_another_gpu_holds_another_number():
    _, said = filled("naive_coalesced")
    alt = said(gpu="RTX 3090")
    assert alt.startswith(
        "6 blocks fit: warp slots are full, too few registers for a seventh; 48 of 48 warps"
    )
    assert "an SM of the RTX 3090" in alt


def test_tiles_that_cannot_run_are_named_and_leave_nothing_to_fill():
    explorer, said = filled("thread_tiled_2d")
    tiles = next(
        {**TILED.complete(), size: value}
        for size, options in TILED.options.items()
        for value in options
        if TILED.rules({**TILED.complete(), size: value})
    )
    assert said(**tiles).startswith("These tiles cannot run") and TILED.rules(tiles)[0] in said(**tiles)
    state = explorer.controls.fitted({**explorer.controls.start(), **tiles})
    assert "cannot run" in explorer.act(_occupancy.COMPILE, state)


@pytest.mark.compiler
def test_tiles_that_are_asked_for_are_compiled_at_once_and_others_at_a_button():
    small = {"BM": 32, "BN": 32, "BK": 8, "TM": 2, "TN": 2}
    explorer, said = filled("thread_tiled_2d", tiles=small, gpu="RTX 3090")
    assert "compiled here for compute capability 8.6" in said()
    assert said(TN=4).startswith("At least")
    state = explorer.controls.fitted({**explorer.controls.start(), "TN": 4})
    assert "compiled here for compute capability 8.6" in explorer.act(_occupancy.COMPILE, state)
    assert "compiled here for compute capability 8.6" in said(TN=4)


def test_machine_code_needs_a_block_size():
    code = recorded("thread_tiled_1d", AMPERE)
    assert isinstance(code, Compiled)
    explorer, said = filled(code, block=(512, 1))
    assert said().startswith("2 blocks fit: registers are full; 32 of 48 warps")
    assert offered(explorer, "gpu") == ["RTX 3090"] and not explorer.actions
    with pytest.raises(ValueError, match="how many threads does a block of thread_tiled_1d have"):
        see.occupancy(code)


@pytest.mark.full(reason="draws every stage on every GPU")
def test_only_gpus_that_can_run_a_stage_are_offered():
    assert offered(filled("wgmma_tma")[0], "gpu") == ["H200"]
    assert offered(filled("vectorized", gpu="t4")[0], "gpu") == ["H200", "A100", "RTX 3090", "T4"]
    with pytest.raises(ValueError, match=r"wgmma_tma needs compute capability 9\.0, which the A100"):
        see.occupancy("wgmma_tma", gpu="A100")


@pytest.mark.parametrize("stage", LADDER, ids=lambda stage: stage.name)
def test_every_stage_has_a_picture_of_the_same_height_that_agrees_with_the_model(stage, without_compiler):
    subject, heights = OfStage(stage), set()
    for gpu, capability in _occupancy._gpus(stage, "H200").items():
        picture = _occupancy.draw(subject, gpu, stage.complete(), capability)
        taken = subject.taken(stage.complete(), capability)
        held = occupancy(taken.threads, taken.registers, taken.shared_bytes, GPUS[gpu])
        assert f"{held.warps} of {held.most_warps} warps" in picture.alt or held.blocks == 0
        root = ElementTree.fromstring(picture.data)
        heights.add(root.get("height"))
        lowest = max(float(text.get("y")) for text in root.iter("{http://www.w3.org/2000/svg}text"))
        assert lowest < float(root.get("viewBox").split()[3])
    refused = _occupancy.draw(subject, "H200", {**stage.complete(), "BM": 0}, HOPPER)
    heights.add(ElementTree.fromstring(refused.data).get("height"))
    assert len(heights) == 1


def test_code_is_drawn_for_its_own_compute_capability():
    code = recorded("naive_coalesced", (8, 0))
    assert _occupancy._gpu_of(code) == ("A100", (8, 0))
    alt = _occupancy.draw(OfCode(code, 256), "A100", {}, (8, 0)).alt
    assert "machine code for compute capability 8.0" in alt
