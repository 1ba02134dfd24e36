"""Shows where the rows of a swizzled tile keep their pieces, and what reading one piece of each row takes."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import cuda
from numba.types import float16

from gemm_course.figures import swizzle as figure
from gemm_course.figures.picture import Picture
from gemm_course.widgets._explorer import Explorer, explorer
from lockstep import emulate
from lockstep.intrinsics import ldmatrix_x4, unroll

PIECES = (2, 4, 8, 16)
KEPT = {
    "piece": lambda row, piece, pieces: piece,
    "(piece + row) % pieces": lambda row, piece, pieces: (piece + row) % pieces,
    "piece ^ row % pieces": lambda row, piece, pieces: piece ^ row % pieces,
}
# The tile has 8 FP16 values per piece.
SIZE = figure.ROWS * max(PIECES) * 8


@explorer
def swizzle() -> Explorer:
    """Show where rows of a tile keep their pieces of 16 bytes, and if reading one of each has conflicts."""
    return Explorer(
        draw,
        {
            "kept": ("place of a piece", list(KEPT), "piece"),
            "pieces": ("pieces per row", PIECES, 8),
            "read": ("the piece that is read", lambda above: range(above["pieces"]), 0),
        },
    )


def draw(kept: str, pieces: int, read: int) -> Picture:
    """Draw a read of one piece of each of 8 rows. ``kept`` is a key of KEPT."""
    places = [[KEPT[kept](row, piece, pieces) for piece in range(pieces)] for row in range(figure.ROWS)]
    starts = tuple((row * pieces + places[row][read]) * 8 for row in range(figure.ROWS))
    return figure.tile(places, read, _wavefronts(starts))


@lru_cache(256)
def _wavefronts(starts: tuple[int, ...]) -> int:
    """Return the wavefronts of one 8 by 8 matrix of ldmatrix whose rows begin at these FP16 values.

    The emulator counts four equal matrices, so this is a quarter of its count.
    """
    report = emulate(_read, 1, 32, np.array(starts * 4), np.zeros(32, np.float16))
    return report.total("wavefronts", space="shared", op="load", array="tile") // 4


@cuda.jit
def _read(starts, out):
    tile = cuda.shared.array(SIZE, float16, 128)
    fragment = cuda.local.array(8, float16)
    lane = cuda.threadIdx.x
    for e in unroll(range(SIZE // 32)):
        tile[e * 32 + lane] = float16(0)
    cuda.syncwarp()
    ldmatrix_x4(fragment, tile, starts[lane])
    out[lane] = fragment[0]
