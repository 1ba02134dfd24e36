"""The H200 in one picture."""

from __future__ import annotations

from gemm_course import records
from gemm_course.figures import machine as figure
from gemm_course.figures.picture import Picture
from gemm_course.model.gpus import GPUS


def machine() -> Picture:
    """Draw what an H200 consists of: multiprocessors with schedulers, registers and L1; L2; DRAM."""
    roofs = records.roofs().set_index("memory")["tb_s"]
    gpu = GPUS["H200"]
    note = f"{gpu.name}, {gpu.clock_mhz / 1000:.2f} billion clocks per second. Not to scale."
    return figure.draw(gpu, float(roofs["L2"]), note)
