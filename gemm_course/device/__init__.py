"""Uses the real GPU: tells whether there is one and which, launches kernels on it, and times them.

Without a GPU everything here still imports, and a sentence says why there is none.
"""

from gemm_course.device.buffers import on_device
from gemm_course.device.facts import GpuFacts, gpu_facts, sm_clock_mhz, why_too_old
from gemm_course.device.launch import Resources, allow_shared_memory, compile_for, launch, resources
from gemm_course.device.presence import NoGpu, gpu_available, require_gpu, why_no_gpu
from gemm_course.device.timing import Timing, time_alternating, time_launch

__all__ = [
    "GpuFacts",
    "NoGpu",
    "Resources",
    "Timing",
    "allow_shared_memory",
    "compile_for",
    "gpu_available",
    "gpu_facts",
    "launch",
    "on_device",
    "require_gpu",
    "resources",
    "sm_clock_mhz",
    "time_alternating",
    "time_launch",
    "why_no_gpu",
    "why_too_old",
]
