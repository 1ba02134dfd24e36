"""The device layer: its messages without a GPU, and with one that it does what it says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import cuda, float32

from gemm_course import device, emulated
from gemm_course.device import presence
from gemm_course.device.buffers import leading_dimension, padded
from gemm_course.device.timing import repetitions


@pytest.fixture
def fresh_answer():
    """Clear why_no_gpu()'s cached answer, before and after."""
    presence._why_no_gpu.cache_clear()
    yield
    presence._why_no_gpu.cache_clear()


@pytest.mark.parametrize(
    ("driver_says", "sentence"),
    [
        ("\nCUDA driver library cannot be found.\nEnsure that ...", "no NVIDIA driver is installed"),
        ("[100] Call to cuInit results in CUDA_ERROR_NO_DEVICE", "did not start: [100] Call to cuInit"),
    ],
)
def test_the_reason_is_one_sentence(monkeypatch, fresh_answer, driver_says, sentence):
    monkeypatch.setattr(cuda, "cuda_error", lambda: RuntimeError(driver_says), raising=False)
    reason = device.why_no_gpu()
    assert sentence in reason
    assert reason.endswith(".")
    assert "\n" not in reason


def test_a_driver_without_gpu_is_named(monkeypatch, fresh_answer):
    monkeypatch.setattr(cuda, "cuda_error", lambda: None, raising=False)
    monkeypatch.setattr(cuda, "gpus", (), raising=False)
    assert "sees no GPU" in device.why_no_gpu()


def test_a_gpu_without_compiler_is_named(monkeypatch, fresh_answer):
    monkeypatch.setattr(cuda, "cuda_error", lambda: None, raising=False)
    monkeypatch.setattr(cuda, "gpus", ("one",), raising=False)
    monkeypatch.setattr(cuda, "is_available", lambda: False)
    assert "NVVM" in device.why_no_gpu()


def test_the_simulator_is_no_gpu(monkeypatch, fresh_answer):
    from numba import config

    monkeypatch.setattr(config, "ENABLE_CUDASIM", 1)
    assert "simulates" in device.why_no_gpu()
    assert not device.gpu_available()


def test_requiring_a_gpu_without_one_raises_the_reason(monkeypatch):
    monkeypatch.setattr(presence, "why_no_gpu", lambda: "Nothing here.")
    with pytest.raises(device.NoGpu, match=r"^Nothing here\.$"):
        device.require_gpu()


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("NVIDIA H200", "h200"),
        ("NVIDIA GeForce RTX 3090", "rtx_3090"),
        ("Tesla T4", "t4"),
        ("NVIDIA A100-SXM4-80GB", "a100_sxm4_80gb"),
    ],
)
def test_records_of_a_gpu_have_a_folder_name(name, slug):
    facts = device.GpuFacts(name, (9, 0), 1, 1000, 0, 0, 0, 0, 0, 0, "", "", "")
    assert facts.slug == slug


@pytest.mark.parametrize(
    ("capability", "multiprocessors", "clock", "tflops"),
    [((9, 0), 132, 1980, 66.9), ((8, 0), 108, 1410, 19.5), ((8, 6), 82, 1695, 35.6), ((7, 5), 40, 1590, 8.1)],
)
def test_peaks_are_those_of_the_data_sheets(capability, multiprocessors, clock, tflops):
    facts = device.GpuFacts("", capability, multiprocessors, clock, 0, 0, 0, 0, 0, 0, "", "", "")
    assert facts.peak_fp32_tflops == pytest.approx(tflops, rel=0.01)


@given(st.integers(0, 5000), st.sampled_from([4, 16, 64, 128]))
def test_a_leading_dimension_is_the_smallest_aligned_one(columns, alignment):
    length = leading_dimension(columns, alignment)
    assert length >= max(columns, 1)
    assert length * 4 % alignment == 0
    assert length - columns < alignment // 4 or columns == 0


def test_padding_is_nan_and_the_matrix_is_a_copy():
    matrix = np.arange(6, dtype=np.float32).reshape(2, 3)
    buffer = padded(matrix, 16)
    assert buffer.flags.c_contiguous
    assert buffer.shape == (2, 16)
    np.testing.assert_array_equal(buffer[:, :3], matrix)
    assert np.isnan(buffer[:, 3:]).all()
    buffer[0, 0] = 9
    assert matrix[0, 0] == 0


@pytest.mark.parametrize(
    ("once", "budget", "most", "least", "rounds"),
    [
        (1, 200, 20, 3, 20),
        (50, 200, 20, 3, 4),
        (500, 200, 20, 3, 3),
        (500, 200, 20, 1, 1),
        (0, 200, 20, 3, 20),
    ],
)
def test_repetitions_fit_the_budget(once, budget, most, least, rounds):
    assert repetitions(once, budget, most, least) == rounds


def test_a_missing_nvidia_smi_gives_no_answer(monkeypatch):
    from gemm_course.device import facts

    monkeypatch.setenv("PATH", "")
    assert facts.ask_nvidia_smi("driver_version") is None


@pytest.mark.gpu
class TestWithGpu:
    def test_facts_are_plausible(self):
        facts = device.gpu_facts()
        assert facts.multiprocessors > 0
        assert facts.driver[0].isdigit()
        assert 100 < facts.max_sm_clock_mhz < 5000
        assert 100 < device.sm_clock_mhz() < 5000

    def test_a_kernel_can_have_more_than_48_kb_of_shared_memory(self):
        @cuda.jit
        def neighbours(out):
            shared = cuda.shared.array(0, float32)
            shared[cuda.threadIdx.x * 128] = cuda.threadIdx.x
            cuda.syncthreads()
            out[cuda.threadIdx.x] = shared[(cuda.threadIdx.x ^ 1) * 128]

        out = cuda.to_device(np.zeros(128, np.float32))
        device.launch(neighbours, 1, 128, [out], 64 * 1024)
        np.testing.assert_array_equal(out.copy_to_host(), np.arange(128) ^ 1)

    def test_static_arrays_count_towards_the_48_kb(self):
        @cuda.jit
        def both(out):
            fixed, shared = cuda.shared.array(8, float32), cuda.shared.array(0, float32)
            fixed[cuda.threadIdx.x] = shared[cuda.threadIdx.x] = 1
            out[cuda.threadIdx.x] = fixed[cuda.threadIdx.x] + shared[cuda.threadIdx.x]

        out = cuda.to_device(np.zeros(8, np.float32))
        device.launch(both, 1, 8, [out], 48 * 1024)
        np.testing.assert_array_equal(out.copy_to_host(), 2)

    def test_more_shared_memory_than_there_is_is_refused(self):
        @cuda.jit
        def nothing(out):
            out[0] = 1

        most = device.gpu_facts().shared_bytes_per_block
        with pytest.raises(ValueError, match=f"this GPU has {most}"):
            device.launch(nothing, 1, 32, [cuda.to_device(np.zeros(1))], most + 1024)

    def test_twice_the_work_takes_twice_the_time(self):
        @cuda.jit
        def sleep(milliseconds):
            for _ in range(2 * milliseconds):
                cuda.nanosleep(500_000)

        one, two = device.time_alternating([lambda: sleep[1, 1](4), lambda: sleep[1, 1](8)])
        assert two.median_ms / one.median_ms == pytest.approx(2, rel=0.2)
        assert one.best_ms <= one.median_ms

    def test_resources_are_the_compiled_kernels(self):
        @cuda.jit
        def uses_shared(out):
            tile = cuda.shared.array(256, float32)
            tile[cuda.threadIdx.x] = out[0]
            cuda.syncthreads()
            out[cuda.threadIdx.x] = tile[cuda.threadIdx.x ^ 1]

        with pytest.raises(ValueError, match="not been compiled"):
            device.resources(uses_shared)
        found = device.compile_for(uses_shared, [cuda.to_device(np.zeros(256, np.float32))])
        assert found.static_shared_bytes == 1024
        assert 0 < found.registers <= 255


def test_no_gpu_runs_where_numba_cuda_is_emulated():
    outside = device.why_no_gpu()
    with emulated():
        assert "emulated" in device.why_no_gpu()
    assert device.why_no_gpu() == outside
