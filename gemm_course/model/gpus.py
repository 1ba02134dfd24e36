"""Describes GPUs by their data sheets: what a multiprocessor holds, and how fast the GPU and its memory are.

Most of it is what the emulator knows of each GPU, and :mod:`lockstep.limits` names the sources. Bandwidths
and Tensor Core rates are from NVIDIA's data sheets and architecture white papers.
"""

from dataclasses import dataclass

from lockstep.limits import LIMITS, PROFILES, Limits, Profile

__all__ = ["GPUS", "LIMITS", "Gpu", "Limits", "by_driver"]


@dataclass(frozen=True)
class Gpu(Profile):
    """A GPU by its data sheet. The bandwidth of DRAM is in TB/s.

    ``fp16_tensor_tflops`` is for dense products of FP16 with FP32 accumulation on Tensor Cores, and
    ``fp16_acc_tensor_tflops`` for those with FP16 accumulation.
    """

    dram_tb_s: float
    fp16_tensor_tflops: float | None = None
    fp16_acc_tensor_tflops: float | None = None

    @property
    def peak_fp32_tflops(self) -> float:
        """The TFLOPS of a fused multiply-add, which is two operations, on every lane in every clock."""
        return 2e-6 * self.limits.fp32_lanes * self.multiprocessors * self.clock_mhz

    @property
    def l1_tb_s(self) -> float:
        """The TB/s of L1 and shared memory together: a wavefront, 128 bytes, per clock and multiprocessor."""
        return 128e-6 * self.multiprocessors * self.clock_mhz


# Each GPU has its TB/s of DRAM, and its TFLOPS of FP16 with FP32 and with FP16 accumulation. GeForce cards
# are twice as fast with FP16 accumulation.
_RATES = {
    "H200": (4.8, 989.5, 989.5),
    "H100": (3.35, 989.4, 989.4),
    "A100": (2.039, 312, 312),
    "RTX 4090": (1.008, 165.2, 330.3),
    "RTX 3090": (0.936, 71, 142),
    "RTX 3060": (0.36, 25.5, 51),
    "RTX A6000": (0.768, 154.8, 154.8),
    "T4": (0.32, 65, 65),
}

GPUS = {name: Gpu(*vars(PROFILES[name]).values(), *rates) for name, rates in _RATES.items()}
# The driver has other names for these GPUs than the list above.
_OF_DRIVER = {"NVIDIA A100-SXM4-80GB": "A100", "NVIDIA H100 80GB HBM3": "H100", "Tesla T4": "T4"}


def by_driver(name: str) -> Gpu | None:
    """Return the GPU with this name in the driver, such as "NVIDIA GeForce RTX 3090".

    Return None if it is not among GPUS. Another GPU with the same chip, such as an A100 with 40 GB, is not
    accepted, because its memory differs.
    """
    if name in _OF_DRIVER:
        return GPUS[_OF_DRIVER[name]]
    return next((gpu for gpu in GPUS.values() if gpu.name == name), None)
