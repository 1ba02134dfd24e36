"""What the notebook on hopper says in figures is what was recorded."""

import re

import numpy as np
import pytest

from gemm_course import records
from gemm_course.checks.kits import given_consumer, given_producer, late_consumer, two_roles
from gemm_course.compiler.kinds import TENSOR_CORE
from gemm_course.compiler.record import recorded as code_of
from gemm_course.model import phases
from gemm_course.profiles import recorded
from gemm_course.widgets import _phases, _quiz
from lockstep import EmulatorError, emulate
from lockstep.intrinsics import tensor_map
from tests.notebooks.builder import ROOT, source_of

STAGES = ("mma_tma", "warp_specialised", "mma_sync", "wgmma_tma")  # P, Q, R, S


@pytest.fixture(scope="module")
def said() -> str:
    lines = source_of("hopper").splitlines()
    return re.sub(
        r"\s+", " ", " ".join(line.removeprefix("#") for line in lines) + str(_quiz.questions("hopper"))
    )


def per_cent(part: float) -> str:
    return f"{100 * part:.0f} %"


def test_the_profiles_without_labels(said):
    found = [recorded(stage, None) for stage in STAGES]
    rows = {
        "Tensor Cores are busy": [_tensor(each) for each in found],
        "issue slots are busy": [per_cent(_issued(each)) for each in found],
        "a warp waits for the result just before": [per_cent(each.waits["fixed delay"]) for each in found],
        "a warp waits for a busy unit": [per_cent(each.waits["busy unit"]) for each in found],
        "a warp waits at barriers": [per_cent(each.waits["barrier"]) for each in found],
        "a warp waits for products": [per_cent(each.waits["Tensor Cores"]) for each in found],
    }
    for name, figures in rows.items():
        assert f"| {name} | {' | '.join(figures)} |" in said
    assert f"{found[0].tflops:.0f} TFLOPS, S has {found[3].tflops:.0f}" in said
    ladder = records.ladder().query("m == 4096").drop_duplicates("stage", keep="last").set_index("stage")
    first, last = ladder.tflops["mma_sync"], ladder.tflops["warp_specialised"]
    assert f"From {first:.0f} to {last:.0f} TFLOPS in the ladder's run" in said
    assert sorted(found, key=lambda each: each.tflops)[1] is found[0]
    tensor = [each.measured["tensor_pipe"] * each.measured["clocks"] for each in found]
    assert f"busy {tensor[0] / tensor[3]:.2f} times" in said


def _active(found) -> float:
    return found.measured["clocks"] / found.measured["active_clocks"]


def _tensor(found) -> str:
    return f"{found.measured['tensor_pipe'] * _active(found):.0f} %"


def _issued(found) -> float:
    return found.measured["issue_slots"] * _active(found) / 100


def test_the_waits_that_moved(said):
    before, after = recorded("wgmma_tma", None).waits, recorded("warp_specialised", None).waits
    assert f"where the {per_cent(before['barrier'])} went: at barriers none is left" in said
    assert per_cent(after["barrier"]) == "0 %"
    grew = f"from {per_cent(before['Tensor Cores'])} to {per_cent(after['Tensor Cores'])}"
    assert grew in said


def test_the_loops(said):
    before, after = (code_of(stage, (9, 0)).loop.instructions for stage in ("mma_tma", "wgmma_tma"))
    old, new = (before["kind"] == TENSOR_CORE).sum(), (after["kind"] == TENSOR_CORE).sum()
    assert f"The loop of mma_tma has {len(before)} instructions, {old} of them products" in said
    told = f"{len(after)}: {new} products and {len(after) - new} others, where `mma_tma` has "
    assert told + f"{len(before) - old} others" in said
    clocks = 4 * old  # 512 that the Tensor Cores need at least, with either instruction
    issuing = [per_cent(len(loop) / clocks) for loop in (after, before)]
    assert f"issuing takes {issuing[0]} of the clocks that the products need." in said
    assert f"The picture's {issuing[1]} for `mma_tma` counts 4 as well. Of 6 it is" in said
    assert f"Of 6 it is {per_cent(len(before) / (6 * old))}" in said


def test_shares_of_cublas(said):
    fp16 = records.ladder().query("dtype == 'fp16' and m == n == k")
    share = fp16.pivot(index="stage", columns="m", values="ratio_to_cublas")
    assert f"from {per_cent(share.loc['mma_sync', 4096])} of cuBLAS within sight of it" in said
    assert {per_cent(share.loc[stage, 4096]) for stage in ("wgmma_tma", "warp_specialised")} == {"88 %"}
    assert share.loc[["wgmma_tma", "warp_specialised"], 8192].min() >= 0.95


def test_the_slots(said):
    measured = records.sweep().query("stage == 'warp_specialised'").set_index("tiles").tflops
    two, three, four = (measured[f"BM=128 BN=256 BK=64 WM=64 SLOTS={slots} GROUP=8"] for slots in (2, 3, 4))
    assert f"has {two:.0f} TFLOPS with two, {three:.0f} with three, {four:.0f} with four" in said
    assert "SLOTS=3" in recorded("mma_tma", None).tiles
    assert all("SLOTS=4" in recorded(stage, None).tiles for stage in ("wgmma_tma", "warp_specialised"))


def test_what_the_notes_say_is_in_the_notes(said):
    notes = re.sub(r"\s+", " ", (ROOT / "gemm_course" / "kernels" / "NOTES.md").read_text("utf-8"))
    assert "TMA, requested by a thread that multiplies | 283 to 285 | 63.2 to 63.5 % | 64.5 %" in notes
    assert "63.2 to 63.5 %" in said and "57.8 to 61.3 % unrolled, 61.5 %" in notes and "61.5 %" in said
    assert (
        "| warp_specialised | 90 to 95 % | 87.3 %" in notes and "| wgmma_tma | 85 to 90 % | 87.7 %" in notes
    )


def test_the_hunts():
    ends = {
        mistake: {
            (slots, copies): _phases.run(mistake, slots, copies)[-1].outcome
            for slots in _phases.TILES
            for copies in _phases.SPEEDS
        }
        for mistake in phases.MISTAKES
    }
    still = {mistake for mistake, ended in ends.items() if set(ended.values()) == {phases.STANDSTILL}}
    assert still == {phases.NO_ARRIVAL, phases.MORE_BYTES, phases.WRONG_START}
    turning = ends[phases.SAME_PARITY]
    assert turning[2, "quick"] == turning[2, "slow"] == phases.OLD
    assert turning[3, "quick"] == turning[4, "quick"] == phases.STANDSTILL
    assert turning[3, "slow"] == turning[4, "slow"] == phases.OLD
    assert set(ends[phases.FEWER_BYTES].values()) == {phases.MISSING}
    lengths = {mistake: len(_phases.run(mistake, 2, "quick")) for mistake in phases.MISTAKES}
    assert min(lengths, key=lengths.get) == phases.WRONG_START


@pytest.mark.parametrize(("slots", "consume", "runs"), [(1, given_consumer, True), (1, late_consumer, False)])
def test_a_ring_needs_one_slot_more_than_it_gives_back_late(slots, consume, runs):
    A, B = np.ones((64, 256), np.float16), np.ones((256, 64), np.float16)
    maps = (tensor_map(each, each.shape, (64, 64)) for each in (A, B))
    C = np.zeros((64, 64), np.float32)
    launched = (two_roles(slots, given_producer, consume), 1, 160, 256, *maps, C)
    if runs:
        assert not emulate(*launched, shared_bytes=slots * 16384).errors
        assert (C == 256).all()
        return
    with pytest.raises(EmulatorError, match="No warp of the block can continue"):
        emulate(*launched, shared_bytes=slots * 16384)
