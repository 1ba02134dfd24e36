"""Shows the banks of the words that a warp of Kernel 5 reads from its tiles, and what removes a conflict."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numba import cuda, float32

from gemm_course.figures import banks as figure
from gemm_course.figures.picture import Picture
from gemm_course.model.requests import Request, requests
from gemm_course.widgets._explorer import Explorer, explorer
from lockstep import Watch, emulate

BN, BK, TM, TN = 128, 16, 8, 8
COLUMNS = {"tx * TN + j": 0, "tx + j * BN // TN": 1}
PADDING = (0, 1, 2, 3, 4, 8)
# The picture has room for this many words in a bank. Only 4 are needed.
TALLEST = 6


@explorer
def tile_banks(*, spread: bool = False) -> Explorer:
    """Show the first reads of As and Bs in a step along k, for any padding.

    With ``spread``, there is a control for the order of a thread's columns as well.
    """
    controls = {
        "array": ("tile", ("As", "Bs"), "Bs" if spread else "As"),
        "pad": ("padding, in words", PADDING, 0),
    }
    if spread:
        controls["columns"] = ("column j of a thread", list(COLUMNS), "tx + j * BN // TN")
    return Explorer(draw, controls)


def draw(array: str, pad: int, columns: str = "tx * TN + j") -> Picture:
    """Draw a warp's read of As or of Bs. ``columns`` is a key of COLUMNS."""
    request, wavefronts = _reads(pad, COLUMNS[columns])[array]
    if array == "As":
        tile, code = figure.Tile("As", 2 * TM, BK + pad, pad), "As[ty * TM + i, p]"
    else:
        tile, code = figure.Tile("Bs", BK, BN + pad, pad), f"Bs[p, {columns}]"
    return figure.theatre(request, tile, wavefronts, code, TALLEST)


@lru_cache(64)
def _reads(pad: int, spread: int) -> dict[str, tuple[Request, int]]:
    """Return a warp's read of As and its read of Bs, each with the wavefronts that the emulator counts."""
    out = np.zeros((2, 16), np.float32)
    report = emulate(_one_step(pad, spread), 1, (16, 2), out, watch=Watch())
    return {array: (_first(report, array), _wavefronts(report, array)) for array in ("As", "Bs")}


def _one_step(pad: int, spread: int) -> Callable:
    """Return a kernel that fills the tiles and reads as Kernel 5 does with i = j = p = 0.

    128 × 128 × 16 tiles and 8 × 8 results make 16 threads per row. The first warp has two rows of them and
    reads from 16 rows of As.
    """
    ROWS, A_WIDTH, B_WIDTH, OF_THREAD = 2 * TM, BK + pad, BN + pad, 1 if spread else TN

    @cuda.jit
    def one_step(out):
        As = cuda.shared.array((ROWS, A_WIDTH), float32)
        Bs = cuda.shared.array((1, B_WIDTH), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        for i in range(ty * 16 + tx, ROWS * A_WIDTH, 32):
            As[i // A_WIDTH, i % A_WIDTH] = float32(i)
        for i in range(ty * 16 + tx, B_WIDTH, 32):
            Bs[0, i] = float32(i)
        cuda.syncthreads()
        out[ty, tx] = As[ty * TM, 0] * Bs[0, tx * OF_THREAD]

    return one_step


def _first(report, array: str) -> Request:
    return requests(report.trace, array=array, op="load", space="shared")[0]


def _wavefronts(report, array: str) -> int:
    return report.total("wavefronts", space="shared", op="load", array=array)
