"""Stream-K on Hopper: a tile cut across blocks is added up by the last warp, and tiles suit the shape."""

from types import SimpleNamespace

import numpy as np
import pytest

from gemm_course.kernels import LADDER
from gemm_course.kernels import c07_stream_k_fp16 as stream_k_fp16
from gemm_course.kernels.c07_stream_k_fp16 import CHOICES, steps_if_shared, steps_in_waves
from lockstep import emulate
from tests.kernels.conftest import allowed, padded
from tests.kernels.test_results import SMALL
from tests.kernels.test_tensor_core_mutants import altered

STAGE = LADDER["stream_k_fp16"]
TILES = SMALL["stream_k_fp16"] | {"BLOCKS": 3}
CUT = (130, 70, 160)  # four narrow tiles of five steps, seven steps for each block
WIDE, WIDE_TILES = (130, 40, 160), TILES | {"BN": 256, "CUT": 1, "SLOTS": 2}  # three pieces of four beyond C


def problem(m, n, k, alpha=1.0, beta=0.0):
    """(the stage's standard arguments, the exact result)"""
    random = np.random.default_rng([m, n, k])
    A, B, C = (random.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n), (m, n)))
    exact = alpha * A.astype(float) @ B.astype(float) + beta * C.astype(float)
    return (m, n, k, np.float32(alpha), padded(A), padded(B), np.float32(beta), padded(C)), exact


def launched(launch):
    return emulate(
        launch.kernel, launch.grid, launch.block, *launch.arguments, shared_bytes=launch.shared_bytes
    )


@pytest.mark.many(one_in=16, with_all=8)
@pytest.mark.parametrize("shape", [(250, 130, 140), (100, 100, 400), (129, 133, 0), (260, 139, 65)])
@pytest.mark.parametrize(("blocks", "waves"), [(1, 0), (3, 0), (3, 1), (7, 1)])
def test_both_launches_together_compute_c(shape, blocks, waves, monkeypatch):
    """Whatever the rule would say: no full wave or one, the tiles that are left shared out."""
    monkeypatch.setattr(stream_k_fp16, "steps_if_shared", lambda *_: 0 if waves else -1)
    monkeypatch.setattr(stream_k_fp16, "steps_in_waves", lambda *_: 1)
    standard, exact = problem(*shape, alpha=1.25, beta=-0.5)
    launches = STAGE.launches(*standard, tiles=TILES | {"BLOCKS": blocks})
    reports = [launched(one) for one in launches]
    C = standard[-1][:, : shape[1]]
    assert np.linalg.norm(C - exact) <= allowed(STAGE) * (np.linalg.norm(exact) or 1)
    assert np.isnan(standard[-1][:, shape[1] :]).all()
    assert all(report.findings == [] for report in reports)


@pytest.mark.parametrize(("shape", "shared"), [((5120, 5120, 5120), True), ((4096, 4096, 4096), False)])
def test_the_tiles_left_are_shared_out_where_that_takes_fewer_steps(shape, shared):
    t = SimpleNamespace(**STAGE.complete({"BLOCKS": 132, "CUT": 4}))
    assert (steps_if_shared(t, *shape) < steps_in_waves(t, *shape)) == shared
    m, n, k = shape
    matrices = (np.empty(size, np.float16) for size in ((m, k), (k, n), (m, n)))
    a, b, c = matrices
    launches = STAGE.launches(m, n, k, np.float32(1), a, b, np.float32(0), c, tiles=vars(t))
    assert [one.kernel.py_func.__name__ for one in launches] == ["overlapped_store", "stream_k_fp16"][
        : 1 + shared
    ]


@pytest.mark.parametrize(
    ("shape", "width", "why"),
    [
        ((1024, 1024, 1024), 64, "128 tiles on 132 multiprocessors, where 128 by 256 makes 32"),
        ((2048, 2048, 2048), 256, "128 of the widest tiles"),
        ((3072, 3072, 3072), 192, "2.9 waves instead of 2.2"),
        ((4096, 4096, 4096), 256, "3.9 waves"),
        ((16384, 128, 4096), 128, "no wider than C"),
    ],
)
def test_tiles_suit_the_shape(shape, width, why):
    t = SimpleNamespace(**STAGE.complete({"BLOCKS": 132}))
    assert STAGE.suits(*shape, t)["BN"] == width, why


def test_all_choices_are_legal_and_given_tiles_stay():
    for choice in CHOICES:
        for cut in range(1, choice["BN"] // 64 + 1):
            if choice["BN"] % (cut * 64) == 0:
                assert STAGE.rules({**choice, "CUT": cut}) == []
    assert STAGE.tiles_for(1024, 1024, 1024, {"BN": 256}) == STAGE.complete({"BN": 256})


@pytest.mark.full(reason="large launches")
@pytest.mark.many(one_in=7, with_all=7)
@pytest.mark.parametrize("n", [8, 40, 71, 72, 100, 200, 263])
def test_tiles_of_four_pieces_are_stored_whatever_is_beyond_c(n):
    standard, exact = problem(130, n, 96)
    launched_alone = launched(STAGE.alone(*standard, tiles=WIDE_TILES))
    assert launched_alone.findings == []
    assert np.linalg.norm(standard[-1][:, :n] - exact) <= allowed(STAGE) * np.linalg.norm(exact)


@pytest.mark.full(reason="two launches of a large tile; stream_k has the same test")
def test_the_result_is_the_same_each_time_and_the_counters_are_zero_again():
    standard, _ = problem(*CUT)
    launch = STAGE.alone(*standard, tiles=TILES)
    arrived, results = launch.arguments[-2], []
    for _ in range(2):
        launched(launch)
        results.append(standard[-1].copy())
        assert not arrived.any()
    np.testing.assert_array_equal(*results)


SLIPS = {
    "no fence before the steps are counted": (
        "                        cuda.threadfence()  # the warp's part is there before it is counted\n",
        "",
        "global_race",
    ),
    "the warp does not wait for its own lanes": (
        "                    cuda.syncwarp()  # what the lanes wrote comes before lane 0's fence\n",
        "",
        "global_race",
    ),
    "every warp adds up and stores": (
        "cuda.shfl_sync(ALL_LANES, count, 0) == per_tile",
        "cuda.shfl_sync(ALL_LANES, count, 0) <= per_tile",
        "global_race",
    ),
    "results are written over those that TMA reads": (
        "            tma_wait_read(0)  # the tile before has been read\n",
        "            pass\n",
        "shared_race",
    ),
    "a piece beyond C leaves no group of stores": (
        "                tma_commit()  # a group per piece, even an empty one: tma_wait_read counts them\n",
        "                if col < whole:\n                    tma_commit()\n",
        "shared_race",
    ),
    "a slot is given back before its products are done": (
        "                    wgmma_wait(1)\n",
        "",
        "shared_race",
    ),
}


@pytest.mark.full(reason="other stages' slips are found in a quick run")
@pytest.mark.parametrize("slip", SLIPS)
def test_the_slip_is_found(slip, tmp_path):
    before, after, kind = SLIPS[slip]
    shape, tiles = (WIDE, WIDE_TILES) if "beyond C" in slip else (CUT, TILES)
    kernel = altered(stream_k_fp16, (before, after), tmp_path).STAGE.kernel(tiles)
    standard, _ = problem(*shape)
    launch = STAGE.alone(*standard, tiles=tiles)
    report = emulate(kernel, launch.grid, launch.block, *launch.arguments, shared_bytes=launch.shared_bytes)
    assert kind in {finding.kind for finding in report.errors}, [str(finding) for finding in report.findings]


@pytest.mark.full(reason="two launches of a large tile; stream_k has the same test")
def test_a_counter_that_is_not_reset_spoils_the_next_launch(tmp_path):
    kernel = altered(stream_k_fp16, ("steps_done[tile, warp] = 0", "pass"), tmp_path).STAGE.kernel(TILES)
    standard, exact = problem(*CUT)
    launch = STAGE.alone(*standard, tiles=TILES)
    for right in (True, False):
        standard[-1][:] = np.nan
        emulate(kernel, launch.grid, launch.block, *launch.arguments, shared_bytes=launch.shared_bytes)
        assert np.allclose(standard[-1][:, :70], exact, atol=0.1) == right
