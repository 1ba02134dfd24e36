"""The multiply-adds of the compiled loop are those that the emulator counts, line by line."""

import math

import numpy as np
import pytest

from gemm_course import LADDER, emulate
from gemm_course.compiler import recorded
from gemm_course.compiler.limits import why_not
from gemm_course.compiler.record import RECORDED
from tests.unmeasured import MACHINE_CODE, skip_unmeasured

FP32 = [stage for stage in LADDER if stage.dtype == "float32"]
TILES_ALONG_K = 2


def emulated_multiply_adds(stage) -> tuple[int, float]:
    """The line with most of them, and how many each thread executes there per step along k."""
    tiles = stage.complete()
    m, n, k = tiles["BM"], tiles["BN"], TILES_ALONG_K * tiles.get("BK", 16)
    a, b, c = (np.ones(shape, np.float32) for shape in ((m, k), (k, n), (m, n)))
    arguments = stage.arguments(m, n, k, np.float32(1), a, b, np.float32(0), c)
    grid = (1,) if "BLOCKS" in tiles else stage.grid(m, n)  # a block of Stream-K computes what there is
    report = emulate(stage.kernel(), grid, stage.block(), *arguments, shared_bytes=stage.shared_bytes())
    counted = report.arithmetic.query("op == 'fma'").groupby("line")["lanes"].sum()
    threads = math.prod(grid) * math.prod(stage.block())
    return int(counted.idxmax()), int(counted.max()) / threads / k


@pytest.mark.many(one_in=3)
@pytest.mark.parametrize("stage", FP32, ids=lambda stage: stage.name)
def test_an_iteration_multiplies_a_whole_tile_on_the_line_that_does(stage):
    skip_unmeasured(stage, MACHINE_CODE)
    line, per_step = emulated_multiply_adds(stage)
    steps = stage.complete().get("BK")
    for capability in RECORDED:
        if why_not(stage, None, capability):
            continue
        code = recorded(stage, capability)
        frame = code.loop.instructions
        by_line = frame[frame["opcode"].str.startswith("FFMA")].groupby("line").size()
        assert list(by_line.index) == [line], capability
        in_loop = by_line[line]
        if steps is None:  # the loop along k itself, of which the compiler writes several iterations
            assert in_loop % per_step == 0 and in_loop > per_step
        else:
            assert in_loop == per_step * steps, "all loops inside the one over tiles are unrolled"
            everywhere = (code.instructions["line"] == line) & (code.instructions["kind"] == "multiply-add")
            assert everywhere.sum() == in_loop
