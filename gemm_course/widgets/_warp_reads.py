"""Shows what a warp's lanes read from As and Bs in one step along k, for any layout and either width."""

from __future__ import annotations

from gemm_course.figures import lane_layout as figure
from gemm_course.figures import wavefronts
from gemm_course.figures.picture import Picture
from gemm_course.model.warp_reads import request, words
from gemm_course.widgets._explorer import Explorer, explorer

# A layout has rows and columns of lanes.
LAYOUTS = {"2 × 16": (2, 16), "4 × 8": (4, 8), "8 × 4": (8, 4), "16 × 2": (16, 2)}
# Of a lane's rows, and of its columns, this many lie side by side.
RUNS = {"side by side": 8, "runs of four": 4}
WIDTHS = {"one float": 32, "four floats": 128}


@explorer
def warp_reads() -> Explorer:
    """Show which words of As or Bs the lanes of a warp read, and in how many wavefronts."""
    controls = {
        "layout": ("lanes, rows × columns", list(LAYOUTS), "8 × 4"),
        "run": ("each lane's 8 are", list(RUNS), "side by side"),
        "array": ("tile", ("As", "Bs"), "As"),
        "width": ("a lane reads", list(WIDTHS), "one float"),
    }
    return Explorer(draw, controls)


def draw(layout: str, run: str, array: str, width: str) -> Picture:
    """Draw one read by a whole warp.

    ``layout``, ``run`` and ``width`` are keys of LAYOUTS, RUNS and WIDTHS. ``array`` is "As" or "Bs".
    """
    bits = WIDTHS[width]
    at = {"As": "p, y0", "Bs": "p, x0"}[array]
    code = f"{array}[{at}]" if bits == 32 else f"load4({array}, ({at}))"
    warp = *LAYOUTS[layout], RUNS[run], bits
    asked = request(*warp, array)
    return figure.draw(
        asked, words(*warp, "As"), words(*warp, "Bs"), wavefronts.title(asked, f"{layout} lanes, {code}")
    )
