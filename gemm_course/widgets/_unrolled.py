"""Shows what it costs to write more steps along k out, in a kernel that was measured with each number."""

from __future__ import annotations

from gemm_course.figures import unrolled as figure
from gemm_course.figures.picture import Picture
from gemm_course.kernels import LADDER, tiles_text
from gemm_course.model import GPUS
from gemm_course.records import SHIPPED, Place
from gemm_course.widgets import _measured as sweep
from gemm_course.widgets._block_resources import most_registers
from gemm_course.widgets._explorer import Explorer, explorer
from gemm_course.widgets._gpus import NotKnown, hardware, shown, to_measure

STAGE = LADDER["thread_tiled_1d"]
# The tile of the notebook on columns of results. The kernel writes all BK steps of a tile out.
TILE = {"BM": 128, "BN": 128, "TM": 32}
START = 8


@explorer
def unrolled(*, on: str | None = None) -> Explorer:
    """Show registers, local memory and speed of `thread_tiled_1d` by the steps that it writes out.

    All figures are measured. ``on`` is the GPU, such as "rtx_3060". Without it, it can be chosen where there
    are several. Raise UnknownGpu for an unknown one.
    """
    steps = [case.steps for case in cases()]
    return shown(draw, on, {"steps": ("steps written out (BK)", steps, START)})


def draw(steps: int, on: Place = SHIPPED) -> Picture:
    """Draw the cases up to ``steps`` steps. Raise NotKnown for a GPU that lacks one of them."""
    known = cases(on)
    if steps not in [case.steps for case in known]:
        raise NotKnown(to_measure(f"{STAGE.name} with {steps} steps was", on, f"sweep {STAGE.name}"))
    gpu = hardware(on) or GPUS["H200"]
    threads, blocks = STAGE.launch_bounds({**TILE, "BK": steps})
    most = most_registers(threads, blocks, gpu.compute_capability)
    notes = [
        f"A thread may have {most} registers, so that {blocks} blocks of {threads} threads have room on a "
        "multiprocessor. What the steps need at the same time and does not fit lies in local memory.",
        "BK is the depth of a tile as well: with deeper tiles a block fetches and waits less often.",
        f"Measured: {sweep.source(STAGE, on)}.",
    ]
    return figure.unrolled(known, steps, most, f"{STAGE.name}, {tiles_text(TILE)}", notes)


def cases(on: Place = SHIPPED) -> list[figure.Case]:
    """Return what was measured of the stage with this tile, by the steps that are written out."""
    found = [
        figure.Case(choice.tiles["BK"], choice.registers, choice.local_bytes, choice.tflops)
        for choice in sweep.measured(STAGE, on)
        if choice.tiles.items() >= TILE.items() and choice.local_bytes is not None
    ]
    return sorted(found, key=lambda case: case.steps)
