"""GPUs by their data sheets: what a multiprocessor holds, how fast it computes, how fast memory is.

What the emulator knows of each GPU, and where that comes from, is in its :mod:`gemm_course.emulator.limits`.
Bandwidths and Tensor Core rates: NVIDIA's data sheets and architecture white papers.
"""

from dataclasses import dataclass

from gemm_course.emulator.limits import LIMITS, PROFILES, Limits, Profile

__all__ = ["GPUS", "LIMITS", "Gpu", "Limits"]


@dataclass(frozen=True)
class Gpu(Profile):
    """One GPU by its data sheet. DRAM bandwidth in TB/s."""

    dram_tb_s: float
    fp16_tensor_tflops: float | None = None  # FP16 with FP32 accumulation, dense, where the course needs it

    @property
    def peak_fp32_tflops(self) -> float:
        """Two operations per fused multiply-add, on every lane, in every clock."""
        return 2e-6 * self.limits.fp32_lanes * self.multiprocessors * self.clock_mhz

    @property
    def l1_tb_s(self) -> float:
        """L1 cache and shared memory together: 128 bytes, one wavefront, per clock and multiprocessor."""
        return 128e-6 * self.multiprocessors * self.clock_mhz


_DRAM_TB_S = {
    "H200": 4.8,
    "H100": 3.35,
    "A100": 2.039,
    "RTX 4090": 1.008,
    "RTX 3090": 0.936,
    "RTX A6000": 0.768,
    "T4": 0.32,
}
_FP16_TENSOR_TFLOPS = {"H200": 989.5}

GPUS = {
    name: Gpu(**vars(profile), dram_tb_s=_DRAM_TB_S[name], fp16_tensor_tflops=_FP16_TENSOR_TFLOPS.get(name))
    for name, profile in PROFILES.items()
}
