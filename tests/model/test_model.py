"""The pen-and-paper models: against the emulator, against NVIDIA's calculator, against known figures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemm_course import run
from gemm_course.kernels import LADDER, IllegalTiles
from gemm_course.model import GPUS, Roofline, accesses, issue_ceiling, occupancy, shared_memory_ceiling, waves

H200, RTX_3090 = GPUS["H200"], GPUS["RTX 3090"]
FETCH_AHEAD = (
    "double_buffered",
    "async_copy",
    "read_ahead",
    "grouped_blocks",
    "stream_k",
    "mma_ring",
    "mma_sync",
)
WARPGROUPS = """
    mma_tma wgmma_tma warp_specialised persistent staged_store overlapped_store stream_k_fp16
""".split()
TENSOR_CORES = tuple(stage.name for stage in LADDER if stage.dtype == "float16")


def emulated(stage, m, n, k, beta):
    random = np.random.default_rng(m * n + k)
    A, B, C = (random.standard_normal(shape).astype(stage.dtype) for shape in ((m, k), (k, n), (m, n)))
    return run(stage, A, B, C, beta=beta, backend="emulator").report


def elements(report, space, op, arrays=None, size=4):
    rows = report.accesses
    rows = rows[(rows["space"] == space) & (rows["op"] == op)]
    if arrays is not None:
        rows = rows[rows["array"].isin(arrays)]
    return int(rows["bytes"].sum()) // size


CASES = [
    (stage, shape)
    for stage in LADDER
    for shape in ((128, 256, 64), (100, 77, 53))
    if shape[0] == 128 or stage.name not in FETCH_AHEAD + TENSOR_CORES  # those read past the edge
]


@pytest.mark.many(one_in=9, with_all=3)
@pytest.mark.parametrize(("stage", "shape"), CASES, ids=lambda value: getattr(value, "name", str(value)))
@pytest.mark.parametrize("beta", [0.0, 0.5])
def test_the_formulas_are_the_emulators_counts(stage, shape, beta):
    report, formula = emulated(stage, *shape, beta), accesses(stage, *shape, beta=beta)
    for array, loads in formula.global_loads.items():
        assert elements(report, "global", "load", [array], stage.itemsize) == loads, array
    workspace = elements(report, "global", "store", ["partials", "steps_done"])
    assert elements(report, "global", "store", None, stage.itemsize) - workspace == formula.global_stores
    if stage.name not in FETCH_AHEAD:
        tiles = ["As", "Bs"] if stage.name in TENSOR_CORES else None
        assert elements(report, "shared", "load", tiles, stage.itemsize) == formula.shared_loads
        assert elements(report, "shared", "store", tiles, stage.itemsize) == formula.shared_stores
        if stage.name not in WARPGROUPS:
            assert report.barriers == formula.barriers


def test_other_tiles_change_the_formula_as_the_count():
    stage, tiles = LADDER["thread_tiled_2d"], {"BM": 64, "BN": 32, "BK": 8, "TM": 4, "TN": 2}
    random = np.random.default_rng(1)
    A, B = (random.standard_normal(shape, dtype=np.float32) for shape in ((96, 40), (40, 64)))
    report = run(stage, A, B, tiles=tiles, backend="emulator").report
    formula = accesses(stage, 96, 64, 40, tiles)
    assert elements(report, "global", "load", ["A"]) == formula.global_loads["A"] == 2 * 96 * 40
    assert elements(report, "shared", "load") == formula.shared_loads


def test_illegal_tiles_have_no_formula():
    with pytest.raises(IllegalTiles):
        accesses(LADDER["block_tiled"], 64, 64, 64, {"BM": 3})


def test_the_naive_kernels_intensity_is_a_quarter():
    assert accesses(LADDER["naive_coalesced"], 1024, 1024, 1024).intensity == pytest.approx(0.25, rel=1e-3)


def test_thread_tiles_read_less_shared_memory():
    per_fma = [
        accesses(LADDER[name], 1024, 1024, 1024, tiles).shared_loads_per_fma
        for name, tiles in (
            ("block_tiled", None),
            ("thread_tiled_1d", {"BM": 64, "BN": 64, "BK": 8, "TM": 8}),
            ("thread_tiled_2d", {"TM": 8, "TN": 8}),
        )
    ]
    assert per_fma == [2, 9 / 8, 16 / 64]


@pytest.mark.parametrize(
    ("threads", "registers", "shared", "gpu", "blocks", "limited_by"),
    [
        (256, 128, 16384, H200, 2, ["registers"]),
        (1024, 32, 8192, H200, 2, ["threads", "registers"]),
        (1024, 33, 8192, H200, 1, ["registers"]),
        (1024, 32, 8192, RTX_3090, 1, ["threads"]),
        (256, 32, 100 * 1024, H200, 2, ["shared memory"]),
        (256, 32, 48 * 1024, RTX_3090, 2, ["shared memory"]),
        (32, 16, 0, H200, 32, ["blocks"]),
        (256, 235, 37248, H200, 1, ["registers"]),
        (256, 32, 228 * 1024, H200, 0, ["shared memory"]),
        (256, 256, 0, H200, 0, ["registers"]),
        (1056, 16, 0, H200, 0, ["threads"]),
    ],
)
def test_occupancy_and_what_limits_it(threads, registers, shared, gpu, blocks, limited_by):
    found = occupancy(threads, registers, shared, gpu)
    assert (found.blocks, found.limited_by) == (blocks, limited_by)
    assert found.warps == blocks * -(-threads // 32)


@given(st.integers(1, 1024), st.integers(16, 255), st.integers(0, 227 * 1024), st.sampled_from(sorted(GPUS)))
def test_asking_for_less_never_holds_fewer_blocks(threads, registers, shared, gpu):
    found = occupancy(threads, registers, shared, GPUS[gpu])
    less = occupancy(max(1, threads - 32), registers - 8, shared // 2, GPUS[gpu])
    assert less.blocks >= found.blocks
    assert 0 <= found.share <= 1


@pytest.mark.parametrize("wrong", [(0, 32, 0), (32, -1, 0), (32, 32, -1)])
def test_impossible_kernels_are_refused(wrong):
    with pytest.raises(ValueError, match="no kernel has"):
        occupancy(*wrong)


def test_waves_of_256_and_289_blocks():
    assert waves(256, 2).efficiency == pytest.approx(0.97, abs=0.001)
    assert waves(289, 2).efficiency == pytest.approx(0.547, abs=0.001)
    assert waves(264, 2).waves == 1
    with pytest.raises(ValueError, match="at least one block"):
        waves(10, 0)


@pytest.mark.parametrize(
    ("gpu", "tflops"), [("H200", 66.9), ("A100", 19.5), ("RTX 3090", 35.6), ("RTX 4090", 82.6), ("T4", 8.1)]
)
def test_peaks_are_those_of_the_data_sheets(gpu, tflops):
    assert GPUS[gpu].peak_fp32_tflops == pytest.approx(tflops, rel=0.01)


def test_the_roofline_bends_at_its_ridge():
    roofline = Roofline(H200, {"L2": 6.0})
    assert roofline.ridge() == pytest.approx(13.9, abs=0.1)
    assert roofline.attainable(0.0605) == pytest.approx(0.29, abs=0.01)  # naive_uncoalesced by its sectors
    assert roofline.attainable(1000) == roofline.peak_tflops
    assert roofline.attainable(1, "DRAM") < roofline.attainable(1, "L2") < roofline.attainable(1, "L1")
    with pytest.raises(KeyError, match="L3"):
        roofline.attainable(1, "L3")


def test_shared_memory_holds_the_tiled_kernel_at_an_eighth():
    # two wavefronts for the 32 multiply-adds of a warp, as in notebook 03
    assert shared_memory_ceiling(2, 32) == pytest.approx(8.4, abs=0.1)
    assert shared_memory_ceiling(0, 32) == H200.peak_fp32_tflops
    assert shared_memory_ceiling(1, 10**6) == H200.peak_fp32_tflops
    assert shared_memory_ceiling(1, 1024, peak=600) == pytest.approx(8 * H200.peak_fp32_tflops)
    assert shared_memory_ceiling(1, 2048, peak=600) == 600


def test_issue_slots_leave_to_multiply_adds_their_share():
    assert issue_ceiling(1) == H200.peak_fp32_tflops
    assert issue_ceiling(0.25, RTX_3090) == RTX_3090.peak_fp32_tflops / 4


@pytest.mark.gpu
def test_occupancy_is_the_drivers_own():
    from numba import cuda, float32

    from gemm_course.device import compile_for, gpu_facts
    from lockstep.limits import MAX_STATIC_SHARED_BYTES

    gpu = GPUS.get(gpu_facts().name.split()[-1])
    if gpu is None:
        pytest.skip(f"no data sheet of {gpu_facts().name} is in the table")
    context = cuda.current_context()
    for kernel in (LADDER[name].kernel() for name in ("naive_coalesced", "thread_tiled_2d", "warp_tiled")):
        matrix = cuda.to_device(np.zeros((16, 16), np.float32))
        found = compile_for(kernel, (16, 16, 16, float32(1), matrix, matrix, float32(0), matrix))
        function = next(iter(kernel.overloads.values()))._codelibrary.get_cufunc()
        for threads in range(32, found.max_threads + 1, 32):
            for shared in (0, 1000, 10_000, 30_000):
                if found.static_shared_bytes + shared > MAX_STATIC_SHARED_BYTES:
                    continue  # the driver allows no block of it before it has been asked
                driver = context.get_active_blocks_per_multiprocessor(function, threads, shared)
                ours = occupancy(threads, found.registers, found.static_shared_bytes + shared, gpu)
                assert ours.blocks == driver, (threads, shared, found)
