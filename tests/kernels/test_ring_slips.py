"""The emulator finds the slips with a ring of tiles: a wait too short, no barrier, the wrong slot."""

import pytest

from gemm_course.kernels import a12_async_copy as async_copy
from gemm_course.kernels import a13_read_ahead as read_ahead
from gemm_course.kernels import a14_grouped_blocks as grouped_blocks
from tests.kernels.test_results import SMALL
from tests.kernels.test_tensor_core_mutants import altered

DEEP = " " * 20  # the wait and the barrier within the loop, not those before it
SLIPS = {
    "one copy too many may be under way": (
        ("cp_async_wait(IN_FLIGHT)", "cp_async_wait(IN_FLIGHT + 1)"),
        "async_read_too_early",
    ),
    "nobody waits for the others": (("cuda.syncthreads()", "cuda.syncwarp()"), "shared_race"),
    "the slot that is read is filled": (("u32((slot + SLOTS - 1) % SLOTS)", "u32(slot)"), "shared_race"),
}


@pytest.mark.many(one_in=3)
@pytest.mark.parametrize("slip", SLIPS)
@pytest.mark.parametrize(
    "module", [async_copy, read_ahead, grouped_blocks], ids=lambda module: module.STAGE.name
)
def test_the_slip_is_found(module, slip, emulated, tmp_path):
    (before, after), kind = SLIPS[slip]
    if module is not async_copy and "slot" not in before:
        before, after = DEEP + before, DEEP + after
    stage = altered(module, (before, after), tmp_path).STAGE
    report = emulated(stage, 64, 64, 48, tiles=SMALL[stage.name]).report
    assert kind in {finding.kind for finding in report.errors}, report.findings
