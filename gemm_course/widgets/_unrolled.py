"""Shows what it costs to write more steps along k out, in a kernel in which nothing else was changed."""

from __future__ import annotations

from gemm_course import records
from gemm_course.figures import unrolled as figure
from gemm_course.figures.picture import Picture
from gemm_course.kernels import LADDER, tiles_text
from gemm_course.widgets._block_resources import most_registers
from gemm_course.widgets._explorer import Explorer, explorer

STAGE = LADDER["thread_tiled_1d"]
# The tiles of the notebook on columns of results, but twice as deep.
TILES = {"BM": 128, "BN": 128, "BK": 16, "TM": 32}
QUESTION = "steps written out"
START = 8
_H200 = (9, 0)


@explorer
def unrolled(*, evidence: bool = True) -> Explorer:
    """Show registers, local memory and speed of `thread_tiled_1d` by the steps that it writes out at a time.

    All figures are measured on an H200, in one run. Without ``evidence`` only the speeds are drawn.
    """
    steps = [case.steps for case in cases()]
    return Explorer(lambda steps: draw(steps, evidence), {"steps": ("steps written out", steps, START)})


def draw(steps: int, evidence: bool = True) -> Picture:
    """Draw the cases up to ``steps`` steps, one of those that were measured."""
    threads, blocks = STAGE.launch_bounds(TILES)
    most = most_registers(threads, blocks, _H200)
    cap = (
        f"A thread may have {most} registers, so that {blocks} blocks of {threads} threads have room on a "
        "multiprocessor. What the steps need at the same time and does not fit lies in local memory."
    )
    measured = f"Measured at 4096³, in one run; {records.provenance(_rows())}."
    notes = [cap, measured] if evidence else [measured]
    return figure.unrolled(
        cases(), steps, most if evidence else None, f"{STAGE.name}, {tiles_text(TILES)}", notes
    )


def cases() -> list[figure.Case]:
    """Return what was measured, by the steps that are written out at a time."""
    columns = (_rows()[name] for name in ("change", "registers", "local_bytes", "tflops"))
    return [figure.Case(int(change.split()[0]), *counts) for change, *counts in zip(*columns, strict=True)]


def _rows():
    rows = records.one_change()
    return rows[rows["question"] == QUESTION]
