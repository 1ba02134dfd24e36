"""The GPUs' limits: what CUDA's programming guide says about each, and that launches keep to them."""

from pathlib import Path

import numpy as np
import pytest
from numba import cuda, float32, uint64

from lockstep import LaunchError, LimitExceeded, UnsupportedKernel, emulate, intrinsics
from lockstep.limits import DEFAULT, LIMITS, PROFILES, profile

# CUDA C++ programming guide, "Technical specifications per compute capability": threads, blocks and shared KB
# of a multiprocessor, shared KB of a block.
GUIDE = {
    (7, 5): (1024, 16, 64, 64),
    (8, 0): (2048, 32, 164, 163),
    (8, 6): (1536, 16, 100, 99),
    (8, 9): (1536, 24, 100, 99),
    (9, 0): (2048, 32, 228, 227),
}


@cuda.jit
def ones(x):
    x[cuda.grid(1)] = float32(1)


@cuda.jit
def with_a_tile(x):
    tile = cuda.shared.array(8192, float32)
    tile[cuda.threadIdx.x] = float32(1)
    x[cuda.grid(1)] = tile[cuda.threadIdx.x]


@cuda.jit(device=True)
def wait_for_copies():
    intrinsics.cp_async_wait(0)


def copies(x):
    wait_for_copies()


def signals(x):
    bars = cuda.shared.array(1, uint64)
    intrinsics.mbarrier_init(bars, 0, 1)


def multiplies(x):
    intrinsics.wgmma_commit()


def moves(x):
    intrinsics.tma_commit()


@pytest.mark.parametrize(
    ("kernel", "name", "newest_without", "needed"),
    [
        (copies, "cp_async_wait", "turing", "8.0, and an NVIDIA T4 has 7.5"),
        (signals, "mbarrier_init", "ada", "9.0, and an NVIDIA GeForce RTX 4090 has 8.9"),
        (multiplies, "wgmma_commit", "ada", "9.0"),
        (moves, "tma_commit", "a100", "9.0"),
    ],
)
def test_a_gpu_without_the_instruction(kernel, name, newest_without, needed):
    with pytest.raises(UnsupportedKernel, match=f"{name} needs a GPU of compute capability {needed}"):
        emulate(kernel, 1, 128, np.zeros(4, np.float32), gpu=newest_without)
    assert emulate(kernel, 1, 128, np.zeros(4, np.float32)).ok


@pytest.mark.parametrize("capability", GUIDE)
def test_limits_are_those_of_the_guide(capability):
    limits = LIMITS[capability]
    threads, blocks, shared, of_a_block = GUIDE[capability]
    assert (limits.threads, limits.blocks, limits.shared_bytes) == (threads, blocks, shared * 1024)
    assert limits.shared_bytes_per_block == of_a_block * 1024


@pytest.mark.parametrize(
    ("name", "found"),
    [
        (None, "H200"),
        ("h200", "H200"),
        ("NVIDIA H100 SXM", "H100"),
        ("RTX4090", "RTX 4090"),
        ("rtx-3090", "RTX 3090"),
        ("ada", "RTX 4090"),
        ("Ampere", "A100"),
        ("ga10x", "RTX 3090"),
        ("turing", "T4"),
        ("8.6", "RTX 3090"),
        ("sm_80", "A100"),
        (PROFILES["T4"], "T4"),
    ],
)
def test_names_of_gpus(name, found):
    assert profile(name) is PROFILES[found]


@pytest.mark.parametrize("name", ["", "h20", "voodoo", 9.0, "9"])
def test_names_of_none(name):
    with pytest.raises(LaunchError, match="H200"):
        profile(name)


@pytest.mark.parametrize("name", PROFILES)
def test_dynamic_shared_memory_ends_where_the_gpus_does(name):
    most, x = PROFILES[name].max_shared_bytes, np.zeros(32, np.float32)
    assert emulate(ones, 1, 32, x, shared_bytes=most, gpu=name).gpu == PROFILES[name].name
    with pytest.raises(LimitExceeded, match=PROFILES[name].name):
        emulate(ones, 1, 32, x, shared_bytes=most + 1, gpu=name)


def test_the_default_is_an_h200():
    x = np.zeros(32, np.float32)
    assert DEFAULT.name == emulate(ones, 1, 32, x, shared_bytes=227 * 1024).gpu == "NVIDIA H200"


def test_fixed_and_dynamic_arrays_share_the_blocks_memory():
    x = np.zeros(32, np.float32)
    emulate(with_a_tile, 1, 32, x, shared_bytes=32 * 1024, gpu="turing")
    with pytest.raises(
        LimitExceeded, match="32,768 bytes and the launch adds 32,784; a block of an NVIDIA T4"
    ):
        emulate(with_a_tile, 1, 32, x, shared_bytes=32 * 1024 + 16, gpu="turing")


@cuda.jit
def all_meet(x):
    x[cuda.grid(1)] = float32(1)
    cuda.cg.this_grid().sync()


def test_a_grid_that_meets_must_fit_on_the_gpu():
    x = np.zeros(40 * 1024, np.float32)
    emulate(all_meet, 40, 1024, x, gpu="t4")
    with pytest.raises(LimitExceeded, match="T4 holds at most 40 blocks of 1,024 threads"):
        emulate(all_meet, 41, 1024, np.zeros(41 * 1024, np.float32), gpu="t4")
    assert PROFILES["H200"].resident_blocks(1024, 0) == 264
    assert PROFILES["RTX 4090"].resident_blocks(1000, 48 * 1024) == 128
    assert PROFILES["T4"].resident_blocks(64, 0) == 40 * 16


def test_read_only_arrays_are_not_written():
    x = np.zeros(32, np.float32)
    x.flags.writeable = False
    with pytest.raises(LaunchError, match="x is read-only"):
        emulate(ones, 1, 32, x)


def test_the_readme_names_every_gpu():
    text = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    names = ", ".join(PROFILES).replace(f", {list(PROFILES)[-1]}", f" and {list(PROFILES)[-1]}")
    assert f"The GPUs are {names.replace('H200', 'H200 (if you name none)', 1)}." in " ".join(text.split())
