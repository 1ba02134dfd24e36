"""Draws what a GPU consists of."""

from __future__ import annotations

from gemm_course import records
from gemm_course.figures import machine as figure
from gemm_course.figures.picture import Picture
from gemm_course.records import SHIPPED, Place
from gemm_course.widgets._explorer import Explorer
from gemm_course.widgets._gpus import NotKnown, hardware, not_in_the_table, of_gpus, shown, to_measure


@of_gpus
def machine(*, on: str | None = None) -> Explorer | Picture:
    """Draw what a GPU consists of: multiprocessors with schedulers, registers and L1; L2; DRAM.

    ``on`` is the GPU, such as "rtx_3060", and the H200 without it. Where several were measured, it can be
    chosen. Raise UnknownGpu for an unknown one.
    """
    return shown(draw, on)


def draw(on: Place) -> Picture:
    """Draw a GPU by its data sheet, and L2 as it was measured. Raise NotKnown without a data sheet."""
    gpu = hardware(on)
    if gpu is None:
        raise NotKnown(not_in_the_table(on.short))
    roofs = records.roofs(on).set_index("memory")["tb_s"]
    note = f"{gpu.name}, {gpu.clock_mhz / 1000:.2f} billion clocks per second. Not to scale."
    if "L2" not in roofs and on != SHIPPED:
        note = f"{note} {to_measure('L2 was', on, 'roofs')}"
    return figure.draw(gpu, float(roofs["L2"]) if "L2" in roofs else None, note)
