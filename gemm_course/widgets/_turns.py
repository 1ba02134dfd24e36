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


_SQUARE = {"layout": "2 × 16", "run": next(iter(RUNS)), "array": "Bs"}


@explorer
def turns(only_bs: bool = False) -> StepThrough:
    """Step through the turns of a warp's read of As or Bs, four floats per lane.

    Lanes that want the same 16 bytes are linked where this joins turns. only_bs: there is nothing to choose,
    and the read is that of Bs by 2 × 16 lanes.
    """
    controls = {
        "layout": ("lanes, rows × columns", list(LAYOUTS), _SQUARE["layout"]),
        "run": ("each lane's 8 are", list(RUNS), _SQUARE["run"]),
        "array": ("tile", ("As", "Bs"), _SQUARE["array"]),
    }
    fixed = _SQUARE if only_bs else {}
    return StepThrough(
        lambda step, **chosen: draw(step, **chosen, **fixed),
        lambda **chosen: len(served(_asked(**chosen, **fixed))),
        {} if only_bs else controls,
        counts=("turn", 1),
    )


def draw(step: int, layout: str, run: str, array: str) -> Picture:
    """Draw turn ``step``, from 0. ``layout`` and ``run`` are keys of LAYOUTS and RUNS."""
    return figure.turn(_asked(layout, run, array), step, f"{array}, {layout} lanes, {run}")


def _asked(layout: str, run: str, array: str) -> Request:
    return request(*LAYOUTS[layout], RUNS[run], _BITS, array)
