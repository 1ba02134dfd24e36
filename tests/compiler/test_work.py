"""How much an instruction computes: what the loops of the ladder compute is whole tiles."""

import math

import pytest

from gemm_course import LADDER, records
from gemm_course.compiler import recorded
from gemm_course.compiler.limits import why_not
from gemm_course.compiler.record import RECORDED
from gemm_course.compiler.work import least_clocks, multiply_adds
from gemm_course.model.gpus import GPUS
from tests.unmeasured import MACHINE_CODE, skip_unmeasured

WARP = 32


@pytest.mark.parametrize(
    ("opcode", "count"),
    [
        ("FFMA", 32),
        ("FFMA.FTZ", 32),
        ("DFMA", 32),
        ("HFMA2.MMA", 64),
        ("HMMA.16816.F32", 16 * 8 * 16),
        ("HMMA.1688.F16", 16 * 8 * 8),
        ("HGMMA.64x256x16.F32", 64 * 256 * 16 // 4),
        ("HGMMA.64x8x16.F16", 64 * 8 * 16 // 4),
        ("HMMA.SP.16832.F32", None),
        ("IMMA.16832.S8.S8", None),
        ("FADD", None),
    ],
)
def test_multiply_adds_of_a_warp(opcode, count):
    assert multiply_adds(opcode) == count


def computing_warps(stage) -> int:
    """The warps of a block that multiply: one per warp tile, four for wgmma; else all."""
    tiles = stage.complete()
    if "WM" not in tiles:
        return math.prod(stage.block(tiles)) // WARP
    return tiles["BM"] // tiles["WM"] * (tiles["BN"] // tiles["WN"] if "WN" in tiles else 4)


@pytest.mark.many(one_in=5)
@pytest.mark.parametrize("stage", [one for one in LADDER if "BK" in one.tiles], ids=lambda stage: stage.name)
def test_an_iteration_computes_the_whole_tile_of_a_block(stage):
    skip_unmeasured(stage, MACHINE_CODE)
    tiles = stage.complete()
    for capability in RECORDED:
        if not why_not(stage, None, capability):
            loop = recorded(stage, capability).loop
            done = sum(multiply_adds(row.opcode) for row in loop.rows if row.kind == loop.work)
            assert done * computing_warps(stage) == tiles["BM"] * tiles["BN"] * tiles["BK"], capability


@pytest.mark.parametrize(
    ("opcode", "capability", "clocks"),
    [
        ("FFMA", (9, 0), 1),
        ("FFMA", (8, 6), 1),
        ("FFMA", (8, 0), 2),
        ("HMMA.16816.F32", (9, 0), 6),
        ("HMMA.16816.F32", (8, 0), 8),
        ("HMMA.16816.F32", (8, 6), None),
        ("HGMMA.64x256x16.F32", (9, 0), 128),
        ("HMMA.1688.F32.TF32", (9, 0), None),
        ("DFMA", (9, 0), None),
    ],
)
def test_least_clocks(opcode, capability, clocks):
    assert least_clocks(opcode, capability) == clocks


def test_the_rates_are_those_of_the_data_sheets():
    """The H200's FP16 peak belongs to a lower clock than its FP32 peak, so it is between both bounds."""
    gpu = GPUS["H200"]
    per_clock = multiply_adds("HGMMA.64x256x16.F32") / least_clocks("HGMMA.64x256x16.F32", (9, 0))
    at_the_highest_clock = 2e-6 * per_clock * 4 * gpu.multiprocessors * gpu.clock_mhz
    assert gpu.fp16_tensor_tflops <= at_the_highest_clock <= 1.1 * gpu.fp16_tensor_tflops


def test_a_product_of_one_warp_takes_as_long_as_measured_on_registers_alone():
    roof = records.compute_roofs().set_index("unit").loc["mma FP16"]
    done, clocks = multiply_adds("HMMA.16816.F32"), least_clocks("HMMA.16816.F32", (9, 0))
    gigahertz = roof.tflops * 1e3 / (2 * 4 * GPUS["H200"].multiprocessors * done / clocks)
    assert 1.6 < gigahertz < roof.sm_clock_mhz / 1e3
