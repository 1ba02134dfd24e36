"""What the notebook on hopper says in figures is what was recorded."""

import re

import numpy as np
import pytest

from gemm_course import records
from gemm_course.checks.kits import given_consumer, given_producer, late_consumer, two_roles
from gemm_course.compiler.kinds import TENSOR_CORE
from gemm_course.compiler.record import recorded as code_of
from gemm_course.compiler.work import least_clocks, multiply_adds
from gemm_course.kernels.parts.tensor_tiles import CONSUMER_REGISTERS, PRODUCER_REGISTERS
from gemm_course.model import phases
from gemm_course.profiles import recorded
from gemm_course.widgets import _phases, _quiz
from lockstep import EmulatorError, emulate
from lockstep.intrinsics import tensor_map
from tests.notebooks.builder import ROOT, source_of


@pytest.fixture(scope="module")
def said() -> str:
    lines = (source_of("hopper") + source_of("how_far_it_gets")).splitlines()
    return re.sub(
        r"\s+", " ", " ".join(line.removeprefix("#") for line in lines) + str(_quiz.questions("hopper"))
    )


def per_cent(part: float) -> str:
    return f"{100 * part:.0f} %"


def test_busy_tensor_cores(said):
    mma, wgmma = recorded("mma_tma", None), recorded("warp_specialised", None)
    assert f"Those of `mma_tma`, {_tensor(mma)} beside {_tensor(wgmma)}, and it is the slower one" in said
    assert mma.tflops < wgmma.tflops
    rests = f"{100 - round(float(_tensor(wgmma).split()[0]))} %"
    assert f"In `warp_specialised` the Tensor Cores rest in {rests} of the clocks" in said


def _tensor(found) -> str:
    active = found.measured["clocks"] / found.measured["active_clocks"]
    return f"{found.measured['tensor_pipe'] * active:.0f} %"


def test_clocks_of_one_product_and_of_the_other(said):
    mma, wgmma = "HMMA.16816.F32", "HGMMA.64x256x16.F32"
    clocks = least_clocks(mma, (9, 0))
    as_wgmma = multiply_adds(mma) * least_clocks(wgmma, (9, 0)) / multiply_adds(wgmma)
    assert f"An `mma.sync` takes {clocks:.0f} clocks for what a `wgmma` does in {as_wgmma:.0f}" in said
    per_clock = 4 * multiply_adds(wgmma) / least_clocks(wgmma, (9, 0))
    assert f"its Tensor Cores can do {per_clock:,.0f} multiply-adds of FP16" in said


def test_bytes_for_a_wide_product(said):
    needed = {N: 2 * (64 * 16 + 16 * N) / (64 * N * 16 / 2048) for N in (32, 64, 128, 256)}
    assert all(each == 64 + 4096 / N for N, each in needed.items())
    assert f"{needed[64]:.0f}, {needed[128]:.0f} and {needed[256]:.0f}: 64 + 4,096 / N" in said
    assert f"64 + 4,096 / 32 = {needed[32]:.0f} bytes per clock" in said
    assert per_cent(128 / needed[32]) == "67 %"


def test_the_waits_that_moved(said):
    before, after = recorded("wgmma_tma", None), recorded("warp_specialised", None)
    barrier = per_cent(before.waits["barrier"])
    assert f"a warp spends {barrier} of its time at the barriers of the block" in said
    assert f"What is {barrier} of waiting worth?" in said and f"Where did the {barrier} go?" in said
    assert per_cent(after.waits["barrier"]) == "0 %"
    grew = [per_cent(each.waits["Tensor Cores"]) for each in (before, after)]
    assert f"waits for products grew from {grew[0]} to {grew[1]}" in said
    slower = after.measured["clocks"] / before.measured["clocks"] - 1
    assert f"(In clocks `warp_specialised` is {per_cent(slower)} slower." in said


def test_the_loops(said):
    before, after = (code_of(stage, (9, 0)).loop.instructions for stage in ("mma_tma", "wgmma_tma"))
    old, new = (before["kind"] == TENSOR_CORE).sum(), (after["kind"] == TENSOR_CORE).sum()
    assert f"The loop of mma_tma has {len(before)} instructions, {old} of them products" in said
    assert f"The loop of `wgmma_tma` has {new} products and {len(after) - new} other instructions" in said
    assert f"one order does as much as {old // new} `mma.sync`" in said
    assert f"{len(before)} - {old} + {new}: so it would be" in said
    assert f"'text': '{len(after)}', 'right': True" in said
    assert f"'text': '{len(before) - old + new}'" in said


def test_shares_of_cublas(said):
    fp16 = records.ladder().query("dtype == 'fp16' and m == n == k")
    share = fp16.pivot(index="stage", columns="m", values="ratio_to_cublas")
    assert {per_cent(share.loc[stage, 4096]) for stage in ("wgmma_tma", "warp_specialised")} == {"88 %"}
    large = per_cent(share.loc["warp_specialised", 8192])
    assert f"the kernel reaches {large} of cuBLAS instead of 88 %" in said
    assert f"both together are `mma_tma`, {per_cent(share.loc['mma_tma', 4096])} in the table above" in said
    tflops = fp16.query("m == 4096").set_index("stage").tflops
    last, first = tflops["warp_specialised"], tflops["mma_sync"]
    assert f"{last:.0f} TFLOPS on an H200, where `mma_sync` had {first:.0f}" in said


def test_tiles_of_other_width_and_rings_of_other_length(said):
    measured = records.sweep().query("stage == 'warp_specialised'").set_index("tiles").tflops
    of = "BM=128 BN={} BK=64 WM=64 SLOTS={} GROUP=8"
    wide, middle, narrow = (measured[of.format(columns, 4)] for columns in (256, 128, 64))
    assert f"{wide:.0f} TFLOPS with 256 columns, {middle:.0f} with 128, {narrow:.0f} with 64" in said
    three, two = (measured[of.format(256, slots)] for slots in (3, 2))
    assert f"SLOTS: {three:.0f} with three, {two:.0f} with two" in said
    assert "BN=256 BK=64 WM=64 SLOTS=4 GROUP=8" in recorded("warp_specialised", None).tiles


def test_what_the_notes_say_is_in_the_notes(said):
    notes = re.sub(r"\s+", " ", (ROOT / "gemm_course" / "kernels" / "NOTES.md").read_text("utf-8"))
    assert "TMA, requested by a thread that multiplies | 283 to 285 | 63.2 to 63.5 % | 64.5 %" in notes
    assert "63.2 to 63.5 %" in said and "when `mma_sync` had 64.5 % of cuBLAS" in said
    assert "57.8 to 61.3 % unrolled, 61.5 %" in notes and "61.5 % at best" in said
    assert "| warp_specialised | 90 to 95 % | 87.3 %" in notes and "we had written down: 90 to 95 %" in said
    assert "the bytes from L2 fall by a third, but the kernel did not wait for them" in notes
    assert "a third of the bytes from L2" in said


def test_copies_of_a_step(said):
    size = 2 * 64 * 64 * 2
    assert f"A step copies {size // 1024} KB." in said
    assert f"By `cp.async` it was {size // 16:,} copies of 16 bytes: {size // 16 // 32} instructions" in said


def test_registers_of_the_side_trip(said):
    start = 65_536 // (128 * 3) // 8 * 8
    consumer = (start + (start - PRODUCER_REGISTERS) // 2) // 8 * 8
    assert consumer == CONSUMER_REGISTERS[2]
    assert f"two consumers, and FEW is {PRODUCER_REGISTERS}. What is MANY?" in said
    assert f"{consumer}. Who asks for more" in said


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
