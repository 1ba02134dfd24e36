"""Finds out what the GPU is: its name, driver, clocks and limits."""

import contextlib
import functools
import subprocess
from dataclasses import dataclass

from gemm_course.device.presence import require_gpu
from gemm_course.model.gpus import LIMITS

# Later generations lack Hopper's wgmma and setmaxnreg.
HOPPER = 9


@dataclass(frozen=True)
class GpuFacts:
    """The GPU that kernels are launched on. Sizes are in bytes, clocks in MHz.

    ``shared_bytes_per_block`` is the most that a kernel can opt in to. ``driver`` is such as "580.159.04".
    ``cuda`` is the runtime of the toolkit that Numba compiles with, such as "13.0". ``uuid`` is such as
    "GPU-...".
    """

    name: str
    compute_capability: tuple[int, int]
    multiprocessors: int
    max_sm_clock_mhz: int
    memory_bytes: int
    l2_bytes: int
    shared_bytes_per_block: int
    shared_bytes_per_multiprocessor: int
    registers_per_multiprocessor: int
    threads_per_multiprocessor: int
    driver: str
    cuda: str
    uuid: str

    @property
    def slug(self) -> str:
        """The folder its records go to: "NVIDIA H200" -> "h200", "NVIDIA GeForce RTX 3090" -> "rtx_3090"."""
        words = [word for word in self.name.split() if word not in ("NVIDIA", "GeForce", "Tesla")]
        return "_".join(words).lower().replace("-", "_")

    @property
    def peak_fp32_tflops(self) -> float:
        """The TFLOPS of FP32 fused multiply-adds, two operations each, on every lane at the highest clock."""
        newest = max(LIMITS)
        lanes = LIMITS.get(self.compute_capability, LIMITS[newest]).fp32_lanes
        return 2e-6 * lanes * self.multiprocessors * self.max_sm_clock_mhz


@functools.cache
def gpu_facts() -> GpuFacts:
    """Return the facts of the GPU that kernels are launched on. Raise NoGpu where there is none."""
    require_gpu()
    from numba import cuda

    device = cuda.get_current_device()
    name = device.name.decode() if isinstance(device.name, bytes) else device.name
    return GpuFacts(
        name=name,
        compute_capability=tuple(device.compute_capability),
        multiprocessors=device.MULTIPROCESSOR_COUNT,
        max_sm_clock_mhz=device.CLOCK_RATE // 1000,
        memory_bytes=cuda.current_context().get_memory_info().total,
        l2_bytes=device.L2_CACHE_SIZE,
        shared_bytes_per_block=device.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        shared_bytes_per_multiprocessor=device.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
        registers_per_multiprocessor=device.MAX_REGISTERS_PER_MULTIPROCESSOR,
        threads_per_multiprocessor=device.MAX_THREADS_PER_MULTIPROCESSOR,
        driver=ask_nvidia_smi("driver_version", device.uuid) or "unknown",
        cuda=".".join(str(part) for part in cuda.runtime.get_version()),
        uuid=device.uuid,
    )


def why_too_old(what: str, needed: tuple[int, int]) -> str | None:
    """Return why this GPU cannot run something that needs a compute capability, or None if it can.

    Something that needs Hopper's 9.0 uses instructions that later GPUs lack, too. Raise NoGpu where there is
    no GPU.
    """
    facts = gpu_facts()
    only_hopper = needed[0] == HOPPER
    if facts.compute_capability[0] == HOPPER if only_hopper else facts.compute_capability >= needed:
        return None
    return (
        f"{what} needs compute capability {_dotted(needed)}{', Hopper,' if only_hopper else ' or newer,'} "
        f"and this GPU, {facts.name}, has {_dotted(facts.compute_capability)}"
    )


def _dotted(version: tuple[int, int]) -> str:
    return ".".join(str(part) for part in version)


def sm_clock_mhz() -> int | None:
    """Return the multiprocessors' current clock in MHz, or None if it is unknown.

    Call it while a kernel runs.
    """
    with contextlib.suppress(ImportError, AttributeError):
        return _clock_from_nvml()
    answer = ask_nvidia_smi("clocks.sm", gpu_facts().uuid)
    return int(answer) if answer and answer.isdigit() else None


def _clock_from_nvml() -> int | None:
    from cuda.bindings import nvml

    try:
        return int(nvml.device_get_clock_info(_nvml_handle(gpu_facts().uuid), nvml.ClockType.SM))
    except nvml.NvmlError:
        return None


@functools.cache
def _nvml_handle(uuid: str) -> int:
    from cuda.bindings import nvml

    nvml.init_v2()
    return nvml.device_get_handle_by_uuid(uuid)


def ask_nvidia_smi(field: str, gpu: str = "") -> str | None:
    """Return one field of `nvidia-smi --query-gpu` for a GPU, or None if there is no answer.

    ``gpu`` is its uuid or number.
    """
    command = ["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader,nounits"]
    if gpu:
        command.append(f"--id={gpu}")
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    lines = answer.stdout.strip().splitlines()
    return lines[0].strip() if lines else None
