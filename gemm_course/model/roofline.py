"""Calculates the roofline, with a roof for each memory: no kernel computes faster than its operands arrive.

A kernel has a different intensity for each memory. For DRAM it is operations divided by the bytes that DRAM
really moved. For L1 and shared memory it is operations divided by the bytes that requests moved there. A
point above the DRAM roof is no contradiction if its intensity was counted in requests, because caches served
them.
"""

from dataclasses import dataclass, field

from gemm_course.model.gpus import GPUS, Gpu

WARP = 32


@dataclass(frozen=True)
class Roofline:
    """The roofs of one GPU. ``measured`` has TB/s by memory, which replace the data sheet's."""

    gpu: Gpu = GPUS["H200"]
    measured: dict[str, float] = field(default_factory=dict)

    @property
    def peak_tflops(self) -> float:
        return self.gpu.peak_fp32_tflops

    @property
    def bandwidths(self) -> dict[str, float]:
        """The TB/s by memory. "L2" is there only if it was measured, because NVIDIA does not publish it."""
        return {"DRAM": self.gpu.dram_tb_s, "L1": self.gpu.l1_tb_s, **self.measured}

    def attainable(self, intensity: float, memory: str = "DRAM") -> float:
        """Return the TFLOPS that `intensity` operations per byte of this memory allow, at most the peak."""
        return min(self.peak_tflops, intensity * self._bandwidth(memory))

    def ridge(self, memory: str = "DRAM") -> float:
        """Return the intensity at and above which the peak is the limit, and not this memory."""
        return self.peak_tflops / self._bandwidth(memory)

    def _bandwidth(self, memory: str) -> float:
        if memory not in self.bandwidths:
            raise KeyError(f"no bandwidth of {memory} is known; {', '.join(self.bandwidths)} are")
        return self.bandwidths[memory]


def shared_memory_ceiling(
    wavefronts: int, fma: int, gpu: Gpu = GPUS["H200"], peak: float | None = None
) -> float:
    """Return the TFLOPS that shared memory allows a kernel with these wavefronts and multiply-adds of lanes.

    A multiprocessor serves one wavefront per clock. In the same clock it could do a fused multiply-add on
    each of its FP32 lanes. The result is at most `peak` TFLOPS, or without it at most FP32's peak.
    """
    peak = gpu.peak_fp32_tflops if peak is None else peak
    if wavefronts <= 0:
        return peak
    per_wavefront = 2e-6 * gpu.multiprocessors * gpu.clock_mhz
    return min(peak, per_wavefront * fma / wavefronts)


def issue_ceiling(share: float, gpu: Gpu = GPUS["H200"]) -> float:
    """Return the TFLOPS that issue slots allow if `share` (0 to 1) of all instructions are multiply-adds.

    The multiply-adds are FP32. A scheduler issues one instruction per clock, for 32 lanes. Most GPUs reach
    their peak if every instruction is a multiply-add. An A100 has half as many FP32 lanes and reaches it if
    every second one is.
    """
    issued = 2e-6 * WARP * gpu.limits.partitions * gpu.multiprocessors * gpu.clock_mhz
    return min(gpu.peak_fp32_tflops, issued * share)
