"""In which banks the words lie that a warp of Kernel 5 reads of its tiles, and what mends a conflict."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from gemm_course.emulator import Watch, emulate
from gemm_course.figures import banks as figure
from gemm_course.figures.picture import Picture
from gemm_course.figures.requests import Request, requests
from gemm_course.kernels.kernel5_spread import STAGE
from gemm_course.widgets._explorer import Explorer

ONE_WARP = {"BM": 16, "BN": 128, "BK": 16, "TM": 8, "TN": 8}  # 16 × 2 threads, as warp 0 of a 128 × 128 tile
# Rows of the trace up to the first reads: accumulators, loads and stores, then the reads of a few steps.
_ROWS = 16 * 128 + 2 * 16 * (16 + 128) + 1024
COLUMNS = {"tx * TN + j": 0, "tx + j * BN // TN": 1}
PADDING = (0, 1, 2, 3, 4, 8)


def tile_banks() -> None:
    """Show the first reads of As and Bs in a step along k; the tiles' padding and a thread's columns can be
    chosen.
    """
    controls = {
        "pad": ("padding, in words", PADDING, 0),
        "columns": ("column j of a thread", list(COLUMNS), "tx * TN + j"),
    }
    Explorer(draw, controls).show()


def draw(pad: int, columns: str) -> Picture:
    """Draw a read of As and one of Bs by a warp; ``columns`` is a key of COLUMNS."""
    (a, of_a), (b, of_b) = _reads(pad, COLUMNS[columns])
    codes = "As[ty * TM + i, p]", f"Bs[p, {columns}]"
    title = f"Padding {pad}: a read of As takes {of_a}, of Bs {of_b} wavefronts"
    return figure.reads_of_a_step([(a, of_a, codes[0]), (b, of_b, codes[1])], title)


@lru_cache(64)
def _reads(pad: int, spread: int) -> list[tuple[Request, int]]:
    """The first read of As and of Bs, each with the wavefronts that the emulator counts for such a read."""
    tiles = ONE_WARP | {"PAD": pad, "SPREAD": spread}
    m, n, k = tiles["BM"], tiles["BN"], tiles["BK"]
    A, B, C = (np.zeros(shape, np.float32) for shape in ((m, k), (k, n), (m, n)))
    problem = (m, n, k, np.float32(1), A, B, np.float32(0), C)
    launch = (STAGE.kernel(tiles), STAGE.grid(m, n, tiles), STAGE.block(tiles))
    report = emulate(*launch, *problem, watch=Watch(limit=_ROWS))
    return [(_first(report, array), _wavefronts(report, array)) for array in ("As", "Bs")]


def _first(report, array: str) -> Request:
    return requests(report.trace, array=array, op="load", space="shared")[0]


def _wavefronts(report, array: str) -> int:
    total, reads = (
        report.total(column, space="shared", op="load", array=array) for column in ("wavefronts", "requests")
    )
    return total // reads
