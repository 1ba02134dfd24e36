"""Draws another author's measured kernels, each one with and without vector loads."""

from __future__ import annotations

from collections.abc import Sequence

from gemm_course import records
from gemm_course.figures import charts
from gemm_course.figures.picture import Picture
from gemm_course.records import SHIPPED, Place
from gemm_course.widgets._explorer import Explorer
from gemm_course.widgets._gpus import NotKnown, of_gpus, shown

SIZE = 4096
PEER = "leimao/CUDA-GEMM-Optimization"
WIDE = "_vectorized"


@of_gpus
def vectorized_peers(*kernels: str, on: str | None = None) -> Explorer | Picture:
    """Draw the TFLOPS of document 004's author's CUDA C++ kernels, FP32, 4096³, each plain and vectorized.

    ``kernels`` are names such as "v02". ``on`` is the GPU that they were measured on. Without it, it can be
    chosen where there are several. Raise ValueError for a kernel that is not recorded in both forms, and for
    an unknown GPU.
    """
    return shown(lambda on: draw(kernels, on), on, having=records.peers)


def draw(kernels: Sequence[str], on: Place) -> Picture:
    """Draw the kernels as measured on a GPU. Raise NotKnown if none was measured."""
    rows = records.peers(on)
    if rows.empty and on != SHIPPED:
        raise NotKnown(
            f"Other authors' kernels were not measured on {on.an}; data/README.md says how it is done."
        )
    rows = rows[(rows["peer"] == PEER) & (rows["m"] == SIZE) & (rows["dtype"] == "fp32")]
    measured = dict(zip(rows["kernel"], map(float, rows["tflops"]), strict=True))
    recorded = [name for name in measured if name + WIDE in measured]
    unknown = [name for name in kernels if name not in recorded]
    if not kernels or unknown:
        raise ValueError(
            f"choose from {', '.join(recorded)}; not recorded in both forms: {', '.join(unknown)}"
        )
    names = [name for kernel in kernels for name in (kernel, kernel + WIDE)]
    bars = [charts.Bar(name, measured[name], name.endswith(WIDE)) for name in names]
    gains = [f"{kernel} × {measured[kernel + WIDE] / measured[kernel]:.2f}" for kernel in kernels]
    note = f"{PEER}, CUDA C++, {SIZE}³, FP32; {records.provenance(rows)}"
    return charts.tflops(bars, f"Gain by vector loads: {', '.join(gains)}", note)
