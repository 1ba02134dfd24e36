"""Nsight Compute on the GPU: a stage's profile and that of a kernel of one's own add up."""

import numpy as np
import pytest
from numba import cuda, float32

from gemm_course import profiled
from gemm_course.bench.profile import NotProfiled
from gemm_course.bench.profile.ncu import NoProfiler
from gemm_course.bench.profile.record import record_profiles
from gemm_course.bench.profile.wanted import wanted
from gemm_course.profiles import recorded
from gemm_course.profiles.profile import Profile
from gemm_course.records import profiles
from lockstep.limits import MAX_GRID

pytestmark = [pytest.mark.gpu, pytest.mark.compiler]

SIZE = 256


def adds_up(found: Profile) -> None:
    """Instructions and lines have all that the kernel's own counters have."""
    assert found.samples == found.measured["samples"]
    assert found.by_line["samples"].sum() == found.samples
    assert found.instructions["executed"].sum() == found.measured["warp_instructions"]
    assert sum(found.executed.values()) == found.measured["warp_instructions"]
    frame = found.instructions
    assert frame["threads"][frame["opcode"].str.startswith("FFMA")].sum() == found.measured["float32_fma"]


def test_a_stage_is_profiled_and_recorded(tmp_path):
    chosen = wanted(["thread_tiled_1d", "kernel5_spread"], ["BM=64 BN=64"], [(SIZE,) * 3])
    try:
        done = record_profiles(chosen, tmp_path / "here", "test")
    except NoProfiler as reason:
        pytest.skip(str(reason))
    assert (done.profiled, done.failed) == (2, [])
    assert record_profiles(chosen, tmp_path / "here", "test").there == 2
    for one in chosen:
        found = recorded(one.stage, one.tiles, SIZE, gpu="here", data=tmp_path)
        adds_up(found)
        assert found.measured["float32_fma"] >= SIZE**3
        text = "\n".join(line for lines in found.sources.values() for line in lines.values())
        assert "cuda.syncthreads()" in text
    assert len(profiles("here", tmp_path)) == 2


@cuda.jit(device=True)
def squared(value):
    return value * value


@pytest.mark.parametrize("options", [{}, {"fastmath": True, "max_registers": 32}])
def test_a_kernel_of_ones_own(options):
    steps = 1000

    @cuda.jit(**options)
    def mine(x, y, by):
        tile = cuda.shared.array(128, float32)
        i = cuda.grid(1)
        tile[cuda.threadIdx.x] = x[i]
        cuda.syncthreads()
        total = float32(0)
        for step in range(steps):
            total += squared(tile[(cuda.threadIdx.x + step) % 128]) * by
        y[i] = total

    x, y = np.ones(128 * 256, np.float32), np.zeros(128 * 256, np.float32)
    try:
        found = profiled(mine[256, 128], x, y, np.float32(2))
    except NoProfiler as reason:
        pytest.skip(str(reason))
    adds_up(found)
    assert (y == 0).all()
    assert found.measured["float32_fma"] >= 128 * 256 * steps
    assert (found.name, found.tiles, found.measured["m"], found.tflops) == ("mine", "", None, None)
    assert repr(found).startswith("mine on an ")
    lines = found.sources[__file__]
    (adding,) = (line for line, text in lines.items() if "total +=" in text)
    assert found.by_line.loc[(__file__, adding), "multiply-add"] > 0
    assert any(text.strip() == "@cuda.jit(**options)" for text in lines.values())
    assert "return value * value" in "".join(lines.values())


def test_a_kernel_with_a_signature():
    @cuda.jit("void(float32[::1], float32)")
    def filled(x, value):
        x[cuda.grid(1)] = value

    try:
        found = profiled(filled[8, 64], np.zeros(512, np.float32), np.float32(1))
    except NoProfiler as reason:
        pytest.skip(str(reason))
    adds_up(found)


def test_a_launch_that_fails_says_why():
    @cuda.jit
    def too_tall(x):
        x[0] = 1

    try:
        with pytest.raises(NotProfiled, match=r"(?i)invalid"):
            profiled(too_tall[(1, MAX_GRID[1] + 1), 32], np.zeros(32, np.float32))
    except NoProfiler as reason:
        pytest.skip(str(reason))
