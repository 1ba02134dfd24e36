"""Shows in which turns a warp's wide read of shared memory is served, for layouts of its lanes."""

from __future__ import annotations

from gemm_course.figures import turns as figure
from gemm_course.figures.picture import Picture
from gemm_course.figures.wavefronts import served
from gemm_course.model.requests import Request
from gemm_course.model.warp_reads import request
from gemm_course.widgets._explorer import StepThrough, explorer
from gemm_course.widgets._warp_reads import LAYOUTS, RUNS

# Each lane reads four floats.
_BITS = 128


@explorer
def turns() -> StepThrough:
    """Step through the turns of a warp's read of As or Bs, four floats per lane.

    Lanes that want the same 16 bytes are linked where this joins turns.
    """
    controls = {
        "layout": ("lanes, rows × columns", list(LAYOUTS), "2 × 16"),
        "run": ("each lane's 8 are", list(RUNS), next(iter(RUNS))),
        "array": ("tile", ("As", "Bs"), "Bs"),
    }
    return StepThrough(draw, lambda **chosen: len(served(_asked(**chosen))), controls, counts=("turn", 1))


def draw(step: int, layout: str, run: str, array: str) -> Picture:
    """Draw turn ``step``, from 0. ``layout`` and ``run`` are keys of LAYOUTS and RUNS."""
    return figure.turn(_asked(layout, run, array), step, f"{array}, {layout} lanes, {run}")


def _asked(layout: str, run: str, array: str) -> Request:
    return request(*LAYOUTS[layout], RUNS[run], _BITS, array)
