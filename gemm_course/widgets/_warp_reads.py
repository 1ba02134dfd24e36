"""Shows what a warp's lanes read from As and Bs in one step along k, for any layout and either width."""

from __future__ import annotations

from gemm_course.figures import lane_layout as figure
from gemm_course.figures import wavefronts
from gemm_course.figures.picture import Picture
from gemm_course.model.requests import Request, wavefronts_of
from gemm_course.model.warp_reads import RESULTS, request, words
from gemm_course.widgets._explorer import Explorer, explorer

# A layout has rows and columns of lanes.
LAYOUTS = {"2 × 16": (2, 16), "4 × 8": (4, 8), "8 × 4": (8, 4), "16 × 2": (16, 2)}
# Of a lane's rows, and of its columns, this many are neighbours.
RUNS = {"in one piece": 8, "runs of four": 4}
WIDTHS = {"one float": 32, "four floats": 128}


@explorer
def warp_reads(*, step: bool = False) -> Explorer:
    """Show which words of As or Bs the lanes of a warp read, and in how many wavefronts.

    With ``step``, each read is of four floats, and the title has the wavefronts of a whole step along k.
    """
    controls = {
        "layout": ("lanes, rows × columns", list(LAYOUTS), "2 × 16" if step else "8 × 4"),
        "run": ("each lane's 8 are", list(RUNS), "in one piece"),
        "array": ("tile", ("As", "Bs"), "Bs" if step else "As"),
    }
    if step:
        return Explorer(draw_step, controls)
    return Explorer(draw, {**controls, "width": ("a lane reads", list(WIDTHS), "one float")})


def draw(layout: str, run: str, array: str, width: str) -> Picture:
    """Draw one read by a whole warp.

    ``layout``, ``run`` and ``width`` are keys of LAYOUTS, RUNS and WIDTHS. ``array`` is "As" or "Bs".
    """
    bits = WIDTHS[width]
    at = {"As": "p, y0", "Bs": "p, x0"}[array]
    code = f"{array}[{at}]" if bits == 32 else f"load4({array}, ({at}))"
    asked = request(*LAYOUTS[layout], RUNS[run], bits, array)
    return _drawn(asked, layout, run, wavefronts.title(asked, f"{layout} lanes, {code}"))


def draw_step(layout: str, run: str, array: str) -> Picture:
    """Draw a step's first read of As or Bs, four floats per lane, under the wavefronts of the whole step."""
    bits = WIDTHS["four floats"]
    reads = {name: request(*LAYOUTS[layout], RUNS[run], bits, name) for name in ("As", "Bs")}
    total = RESULTS * 32 // bits * sum(map(wavefronts_of, reads.values()))
    return _drawn(reads[array], layout, run, f"{layout} lanes, {run}: {total} wavefronts per step")


def _drawn(asked: Request, layout: str, run: str, title: str) -> Picture:
    warp = *LAYOUTS[layout], RUNS[run], asked.bits
    return figure.draw(asked, words(*warp, "As"), words(*warp, "Bs"), title)
