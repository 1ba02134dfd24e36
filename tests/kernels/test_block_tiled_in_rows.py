"""block_tiled that fetches whole rows: the same walk, the same results, and the loops of thread_tiled_1d."""

import inspect

import numpy as np
import pytest

from gemm_course.kernels import LADDER
from gemm_course.kernels.variants.block_tiled_in_rows import STAGE
from lockstep import Watch, emulate

SMALL = {"BM": 8, "BN": 16, "BK": 32}


@pytest.mark.parametrize("shape", [(45, 70, 19), (1, 1, 1), (16, 32, 64), (3, 5, 0)])
def test_the_results_stay_the_same(shape, emulated):
    run = emulated(STAGE, *shape, tiles=SMALL, alpha=1.5, beta=-0.5)
    assert run.error < 1e-6
    assert run.padding_untouched
    assert run.report.findings == []


def walk_of(stage) -> list:
    """What each thread of a block loads, in order."""
    A, B, C = (np.ones(shape, np.float32) for shape in ((8, 32), (32, 16), (8, 16)))
    numbers = 8, 16, 32, np.float32(1), A, B, np.float32(0), C
    report = emulate(stage.kernel(SMALL), 1, stage.block(SMALL), *numbers, watch=Watch((0, 0, 0)))
    loads = report.trace.query("space == 'global' and op == 'load'")
    return [(thread, list(zip(rows["array"], rows["element"]))) for thread, rows in loads.groupby("thread")]


def test_every_thread_fetches_what_it_fetches_in_block_tiled():
    assert walk_of(STAGE) == walk_of(LADDER["block_tiled"])


def lines_of(stage) -> list[str]:
    return [line.split("#")[0].strip() for line in inspect.getsource(stage.kernel().py_func).splitlines()]


def fetching(lines: list[str]) -> list[str]:
    return lines[lines.index("while k0 < k:") : lines.index("cuda.syncthreads()") + 1]


def test_only_the_loops_that_fetch_differ_and_they_are_those_of_the_next_stage():
    before, now, after = map(lines_of, (LADDER["block_tiled"], STAGE, LADDER["thread_tiled_1d"]))
    assert fetching(now) == fetching(after) != fetching(before)
    changed = [(a, b) for a, b in zip(before, now, strict=True) if a != b][1:]  # not the name
    assert len(changed) == 4 and all(b in fetching(now) for _, b in changed)
