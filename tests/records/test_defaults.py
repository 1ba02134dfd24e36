"""Each default is among the fastest of the recorded sweep, or pinned to other tiles for a stated reason."""

import pytest

from gemm_course import records
from gemm_course.bench.best import CompileTimes, best_choices
from gemm_course.kernels import LADDER
from gemm_course.records.columns import SWEEP
from tests.unmeasured import SWEEP as SWEEP_TABLE
from tests.unmeasured import skip_unmeasured

NEAR_ENOUGH = 0.97
PINNED = {
    "naive_uncoalesced": "its square blocks make it slow: as rows of 256 threads they are the next stage",
    "wmma_fp16_acc": "it keeps wmma's tiles, so that only the accumulators' dtype differs",
}


@pytest.fixture(scope="module")
def best():
    folder = records.DATA / "h200"
    times = CompileTimes(folder / "compile_times.csv", "", measure=False)
    rows = SWEEP.rows(folder / "sweep.csv")
    return {one.stage: one for one in best_choices(list(LADDER), rows, times)}


@pytest.mark.parametrize("stage", LADDER, ids=lambda stage: stage.name)
def test_a_default_is_near_the_fastest_choice_measured(best, stage):
    skip_unmeasured(stage, SWEEP_TABLE)
    found = best[stage.name]
    assert found.ratio is not None, f"the sweep lacks the default {found.default}"
    near = found.ratio >= NEAR_ENOUGH
    if stage.name in PINNED:
        assert not near, f"{stage.name} needs no exception anymore"
    else:
        assert near, f"{found.best} is faster: {found.ratio:.3f}"
