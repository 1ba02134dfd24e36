"""Stages with shared memory to spare: the same kernel, and room for fewer blocks."""

import pytest

from gemm_course import compiled
from gemm_course.kernels import LADDER
from gemm_course.kernels.variants.fewer_blocks import STAGES

SMALL = {
    "thread_tiled_1d": {"BM": 32, "BN": 32, "BK": 8, "TM": 4},
    "thread_tiled_2d": {"BM": 32, "BN": 32, "BK": 8, "TM": 4, "TN": 4},
    "wmma_fp16_acc": {"BM": 64, "BN": 64, "BK": 16, "WM": 32, "WN": 32},
}


@pytest.fixture(params=STAGES, ids=lambda stage: stage.name)
def pair(request):
    return request.param, LADDER[request.param.name.removesuffix("_fewer_blocks")]


def test_the_results_are_those_of_the_stage(pair, emulated):
    held, stage = pair
    run = emulated(held, 45, 70, 19, tiles=SMALL[stage.name] | {"SPARE": 60})
    assert (run.C == emulated(stage, 45, 70, 19, tiles=SMALL[stage.name]).C)[:, :70].all()
    assert run.padding_untouched and run.report.findings == []


@pytest.mark.many(one_in=3, with_all=3)
@pytest.mark.full(reason="six stages are compiled")
@pytest.mark.compiler
def test_the_machine_code_is_that_of_the_stage(pair):
    held, stage = pair
    code, own = compiled(held, tiles={"SPARE": 60}), compiled(stage)
    assert [row.text for row in code.rows] == [row.text for row in own.rows]
    assert (code.registers, code.static_shared_bytes) == (own.registers, own.static_shared_bytes)
    assert code.shared_bytes == own.shared_bytes + 60 * 1024


def test_a_block_may_not_request_more_than_there_is(pair):
    held, _ = pair
    assert held.shared_bytes({"SPARE": 60}) == 60 * 1024
    assert "the maximum is" in held.rules({"SPARE": 240})[0]
