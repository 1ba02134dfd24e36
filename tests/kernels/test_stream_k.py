"""Stream-K: a tile cut across blocks is added up by the last of them; only a last wave is shared out."""

import numpy as np
import pytest

from gemm_course.kernels import LADDER
from gemm_course.kernels import a15_stream_k as stream_k
from gemm_course.launching import _emulated
from lockstep import emulate
from tests.kernels.conftest import allowed, padded
from tests.kernels.test_results import SMALL
from tests.kernels.test_tensor_core_mutants import altered

STAGE = LADDER["stream_k"]
TILES = SMALL["stream_k"] | {"BLOCKS": 3}
CUT = (66, 70, 96)  # four tiles of twelve steps, 16 steps for each block


def problem(m, n, k, alpha=1.0, beta=0.0):
    """(the stage's standard arguments, the exact result)"""
    random = np.random.default_rng([m, n, k])
    A, B, C = (random.standard_normal(shape, dtype=np.float32) for shape in ((m, k), (k, n), (m, n)))
    exact = alpha * A.astype(float) @ B + beta * C.astype(float)
    return (m, n, k, np.float32(alpha), padded(A), padded(B), np.float32(beta), padded(C)), exact


def launched(launch):
    return emulate(launch.kernel, launch.grid, launch.block, *launch.arguments)


@pytest.mark.many(one_in=16, with_all=2)
@pytest.mark.parametrize("shape", [(250, 190, 200), (64, 64, 300), (640, 64, 33), (3, 5, 0), (129, 65, 230)])
@pytest.mark.parametrize("blocks", [1, 5, 32])
def test_all_launches_together_compute_c(shape, blocks):
    standard, exact = problem(*shape, alpha=1.25, beta=-0.5)
    reports = [launched(one) for one in STAGE.launches(*standard, tiles=TILES | {"BLOCKS": blocks})]
    C = standard[-1][:, : shape[1]]
    assert np.linalg.norm(C - exact) <= allowed(STAGE) * (np.linalg.norm(exact) or 1)
    assert np.isnan(standard[-1][:, shape[1] :]).all()
    assert all(report.findings == [] for report in reports)


@pytest.mark.parametrize(
    ("tiles", "k", "whole"),
    [
        (3, 8000, 0),
        (9, 8000, 0),
        (10, 8000, 10),
        (12, 8000, 10),
        (19, 8000, 10),
        (25, 8000, 20),
    ]  # of 10 blocks
    + [(9, 2000, 9), (12, 240, 10), (12, 160, 12), (1, 200, 1), (1, 240, 0)],
)
def test_a_last_wave_is_shared_out_where_that_takes_fewer_steps(tiles, k, whole):
    standard, _ = problem(64 * tiles, 64, k)
    launches = STAGE.launches(*standard, tiles=TILES | {"BLOCKS": 10})
    kernels = [one.kernel.py_func.__name__ for one in launches]
    assert kernels == ["grouped_blocks"] * (whole > 0) + ["stream_k"] * (whole < tiles)
    if whole:
        assert launches[0].grid == (whole,)
    if whole < tiles:
        assert launches[-1].grid == (min(10, (tiles - whole) * 5) if k == 240 else 10,)
        assert launches[-1].arguments[-1] == whole


@pytest.mark.full(reason="three large launches")
def test_the_result_is_the_same_each_time_and_the_counters_are_zero_again():
    standard, _ = problem(*CUT)
    launch = STAGE.kernel(TILES), STAGE.grid(*CUT[:2], TILES), STAGE.block(TILES)
    arguments = STAGE.arguments(*standard, tiles=TILES)
    arrived, results = arguments[-2], []
    for _ in range(2):
        emulate(*launch, *arguments)
        results.append(standard[-1].copy())
        assert not arrived.any()
    np.testing.assert_array_equal(*results)


def test_where_counting_alone_is_not_possible_there_is_no_report_and_a_word_why(capsys):
    standard, _ = problem(66, 70, 800)
    assert _emulated(STAGE.launches(*standard, tiles=TILES), work=10**12, brief=True) is None
    assert "no report: a branch depends on loaded data" in capsys.readouterr().out


SLIPS = {
    "no fence before the steps are counted": (
        ("                cuda.threadfence()  # the part is there before its steps are counted\n", ""),
        "global_race",
    ),
    "no barrier before the steps are counted": (
        ("counted\n                cuda.syncthreads()\n", "counted\n"),
        "global_race",
    ),
    "every block stores the tile": (
        ("complete = count[0] == per_tile", "complete = count[0] <= per_tile"),
        "global_race",
    ),
    "no barrier before the next part": (
        ("            cuda.syncthreads()  # the ring is free for the next part\n", ""),
        "shared_race",
    ),
}


@pytest.mark.full(reason="other stages' slips are found in a quick run")
@pytest.mark.parametrize("slip", SLIPS)
def test_the_slip_is_found(slip, tmp_path):
    change, kind = SLIPS[slip]
    kernel = altered(stream_k, change, tmp_path).STAGE.kernel(TILES)
    standard, _ = problem(*CUT)
    launch = STAGE.grid(*CUT[:2], TILES), STAGE.block(TILES), *STAGE.arguments(*standard, tiles=TILES)
    report = emulate(kernel, *launch)
    assert kind in {finding.kind for finding in report.errors}, [str(finding) for finding in report.findings]


@pytest.mark.full(reason="two large launches")
def test_a_counter_that_is_not_reset_spoils_the_next_launch(tmp_path):
    kernel = altered(stream_k, ("steps_done[tile] = 0", "pass"), tmp_path).STAGE.kernel(TILES)
    standard, exact = problem(*CUT)
    launch = STAGE.grid(*CUT[:2], TILES), STAGE.block(TILES), *STAGE.arguments(*standard, tiles=TILES)
    for right in (True, False):
        standard[-1][:] = np.nan
        emulate(kernel, *launch)
        assert np.allclose(standard[-1][:, :70], exact, atol=1e-3) == right
