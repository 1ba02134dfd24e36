"""GPUs by their data sheets: what a multiprocessor holds, how fast it computes, how fast memory is.

What a multiprocessor holds depends on the compute capability: CUDA C++ programming guide, "Technical
specifications per compute capability". Counts, clocks and bandwidths: NVIDIA's data sheets and architecture
white papers of each GPU; the clock is the one that the data sheet's FP32 rate implies.
"""

from dataclasses import dataclass

from gemm_course.emulator.limits import MAX_REGISTERS, REGISTERS_PER_SM


@dataclass(frozen=True)
class Limits:
    """What one multiprocessor can hold at a time. A block takes `reserved_shared_bytes` besides its own."""

    threads: int
    blocks: int
    shared_bytes: int
    reserved_shared_bytes: int
    fp32_lanes: int  # FP32 fused multiply-adds per clock
    registers: int = REGISTERS_PER_SM
    registers_per_thread: int = MAX_REGISTERS
    register_unit: int = 256  # warps get registers in multiples of this
    partitions: int = 4  # each with a quarter of the registers and its own scheduler
    shared_unit: int = 128


LIMITS = {
    (7, 5): Limits(1024, 16, 64 * 1024, 0, 64, shared_unit=256),
    (8, 0): Limits(2048, 32, 164 * 1024, 1024, 64),
    (8, 6): Limits(1536, 16, 100 * 1024, 1024, 128),
    (8, 9): Limits(1536, 24, 100 * 1024, 1024, 128),
    (9, 0): Limits(2048, 32, 228 * 1024, 1024, 128),
    (10, 0): Limits(2048, 32, 228 * 1024, 1024, 128),
    (12, 0): Limits(1536, 24, 100 * 1024, 1024, 128),
}


@dataclass(frozen=True)
class Gpu:
    """One GPU by its data sheet. DRAM bandwidth in TB/s."""

    name: str
    compute_capability: tuple[int, int]
    multiprocessors: int
    clock_mhz: int
    dram_tb_s: float
    l2_bytes: int
    fp16_tensor_tflops: float | None = None  # FP16 with FP32 accumulation, dense, where the course needs it

    @property
    def limits(self) -> Limits:
        return LIMITS[self.compute_capability]

    @property
    def peak_fp32_tflops(self) -> float:
        """Two operations per fused multiply-add, on every lane, in every clock."""
        return 2e-6 * self.limits.fp32_lanes * self.multiprocessors * self.clock_mhz

    @property
    def l1_tb_s(self) -> float:
        """L1 cache and shared memory together: 128 bytes, one wavefront, per clock and multiprocessor."""
        return 128e-6 * self.multiprocessors * self.clock_mhz


_MIB = 2**20

GPUS = {
    "H200": Gpu("NVIDIA H200", (9, 0), 132, 1980, 4.8, 60 * _MIB, 989.5),
    "H100": Gpu("NVIDIA H100 SXM", (9, 0), 132, 1980, 3.35, 50 * _MIB),
    "A100": Gpu("NVIDIA A100 SXM 80 GB", (8, 0), 108, 1410, 2.039, 40 * _MIB),
    "RTX 4090": Gpu("NVIDIA GeForce RTX 4090", (8, 9), 128, 2520, 1.008, 72 * _MIB),
    "RTX 3090": Gpu("NVIDIA GeForce RTX 3090", (8, 6), 82, 1695, 0.936, 6 * _MIB),
    "RTX A6000": Gpu("NVIDIA RTX A6000", (8, 6), 84, 1800, 0.768, 6 * _MIB),
    "T4": Gpu("NVIDIA T4", (7, 5), 40, 1590, 0.32, 4 * _MIB),
}
