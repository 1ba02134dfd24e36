"""What the compiler makes of the ladder's stages on a GPU: the instructions that the intrinsics promise."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from numba import cuda

from gemm_course.device import compile_for, gpu_facts, on_device
from gemm_course.device import launch as launch_on_gpu
from gemm_course.kernels import LADDER

pytestmark = pytest.mark.gpu


def random_float16(*shape):
    return np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float16)


def machine_code_of(stage) -> tuple[str, str]:
    """PTX and SASS of a stage's kernel for this GPU, at the default tiles."""
    kernel, matrix = stage.kernel(), np.ones((64, 64), np.float32)
    one = np.float32(1)
    kernel[stage.grid(64, 64), stage.block()](64, 64, 64, one, matrix, matrix, one, matrix.copy())
    (ptx,) = kernel.inspect_asm().values()
    (sass,) = kernel.inspect_sass().values()
    return ptx, sass


def test_the_compiler_emits_what_the_intrinsics_promise():
    ptx, sass = machine_code_of(LADDER["grouped_blocks"])
    for instruction in ("cp.async.ca.shared.global", "cp.async.cg.shared.global", "cp.async.commit_group"):
        assert instruction in ptx
    assert "cp.async.wait_group 0" in ptx
    assert re.search(r"ld\.shared\.v4\.f32", ptx)
    assert re.search(r"st\.global\.v4\.f32", ptx)
    assert "LDGSTS" in sass


@pytest.mark.parametrize(
    "name",
    ["thread_tiled_2d", "vectorized", "warp_tiled", "double_buffered"]
    + ["async_copy", "read_ahead", "grouped_blocks"],
)
def test_unrolled_loops_leave_the_accumulators_in_registers(name):
    ptx, _ = machine_code_of(LADDER[name])
    assert ".local" not in ptx
    tiles = LADDER[name].tiles
    multiplications = len(re.findall(r"\bfma\.rn(?:\.ftz)?\.f32", ptx))
    assert multiplications >= tiles["BK"] * tiles["TM"] * tiles["TN"]


@pytest.mark.parametrize(
    "name", ["wgmma_tma", "warp_specialised", "persistent", "staged_store", "overlapped_store"]
)
def test_the_compiler_keeps_accumulators_in_registers_and_products_in_flight(name):
    """HGMMA without local memory; a wait after every product would mean that they were serialised."""
    if gpu_facts().compute_capability[0] != 9:
        pytest.skip(f"needs a Hopper GPU, and this is a {gpu_facts().name}")
    stage = LADDER[name]
    A = B = C = np.zeros((64, 64), np.float16)
    arguments = on_device(stage.arguments(64, 64, 64, np.float32(1), A, B, np.float32(0), C))
    found = compile_for(stage.kernel(), arguments)
    assert found.local_bytes == 0
    (sass,) = stage.kernel().inspect_sass().values()
    products, waits = (len(re.findall(rf"\b{text}", sass)) for text in ("HGMMA", r"WARPGROUP\.DEPBAR"))
    assert products >= 4 and waits <= products // 4 + 1
    assert "UTMALDG" in sass and "SYNCS" in sass
    assert ("USETMAXREG" in sass) == (name != "wgmma_tma")
    assert ("UTMASTG" in sass) == (name in ("staged_store", "overlapped_store"))


@pytest.mark.parametrize(
    ("name", "multiplication"),
    [
        ("wmma", "HMMA.16816.F32"),
        ("wmma_fp16_acc", "HMMA.16816.F16"),
        ("mma_swizzled", "HMMA.16816.F32"),
        ("mma_ring", "HMMA.16816.F32"),
        ("mma_sync", "HMMA.16816.F32"),
        ("mma_tma", "HMMA.16816.F32"),
    ],
)
def test_tensor_core_stages_keep_fragments_in_registers(name, multiplication):
    stage = LADDER[name]
    kernel, matrices = stage.kernel(), [cuda.to_device(random_float16(64, 64)) for _ in range(3)]
    one = np.float32(1)
    arguments = stage.arguments(64, 64, 64, one, *matrices[:2], one, matrices[2])
    launch_on_gpu(kernel, stage.grid(64, 64), stage.block(), arguments, stage.shared_bytes())
    (ptx,) = kernel.inspect_asm().values()
    (sass,) = kernel.inspect_sass().values()
    t = SimpleNamespace(**stage.tiles)
    assert ".local" not in ptx  # fragments and accumulators are registers
    assert sass.count(multiplication) >= t.WM // 16 * t.WN // 8 * t.BK // 16
    assert sass.count("LDSM.16.M88.4") >= t.WM // 16 * t.BK // 16  # rows of A, in both
    assert sass.count("LDSM.16.MT88.4") >= t.WN // 16 * t.BK // 16
