"""Shows which of the 32 banks a warp's shared reads use, for the accesses of a tiled kernel."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numba import cuda, float32

from gemm_course.figures import banks as figure
from gemm_course.figures.picture import Picture
from gemm_course.model.requests import requests
from gemm_course.widgets._explorer import Explorer, explorer
from lockstep import Watch, emulate

ACCESSES = ("As[ty, p]", "Bs[p, tx]", "As[tx, p]")
BLOCKS = ((32, 32), (16, 16), (8, 8), (8, 32))
# As has this many columns, and Bs this many rows.
DEPTH = 32
# The picture shows the reads of this step along k.
STEP = 5
PADDING = (0, 1, 2, 4, 8)


@explorer
def banks() -> Explorer:
    """Show a tile coloured by bank, and the words that one warp reads falling into their banks."""
    controls = {
        "access": ("access", ACCESSES, ACCESSES[-1]),
        "pad": ("padding, in words", PADDING, 0),
        "block": ("block (rows × columns)", [(f"{y} × {x}", (x, y)) for x, y in BLOCKS], (32, 32)),
    }
    return Explorer(draw, controls)


def draw(access: str, block: tuple[int, int], pad: int = 0) -> Picture:
    """Draw one shared read of warp 0. ``access`` is one of ACCESSES, and ``block`` is (x, y)."""
    report = _read_once(access, block, pad)
    loads = report.accesses
    loads = loads[(loads["space"] == "shared") & (loads["op"] == "load")]
    request = requests(report.trace, space="shared", op="load")[0]
    warps = -(-block[0] * block[1] // 32)
    rows, width = _shape(access, block, pad)
    tile = figure.Tile(access[:2], rows, width, pad)
    return figure.theatre(request, tile, int(loads["wavefronts"].sum()) // warps, access, figure.BANKS)


@lru_cache(256)
def _read_once(access: str, block: tuple[int, int], pad: int):
    return emulate(_kernel(access, block, pad), 1, block, np.zeros(block, np.float32), watch=Watch(warp=0))


def _shape(access: str, block: tuple[int, int], pad: int) -> tuple[int, int]:
    """Return the number of rows of the tile that ``access`` reads, and their length with padding."""
    x, y = block
    rows = {"As[ty, p]": y, "As[tx, p]": x, "Bs[p, tx]": DEPTH}[access]
    return rows, (x if access == "Bs[p, tx]" else DEPTH) + pad


def _kernel(access: str, block: tuple[int, int], pad: int) -> Callable:
    """Return a kernel that fills a tile and reads it once, as ``access`` says, with p = STEP."""
    X, Y = block
    rows, WIDTH = _shape(access, block, pad)
    SIZE, THREADS, p = rows * WIDTH, X * Y, STEP

    @cuda.jit
    def by_row(out):
        As = cuda.shared.array((rows, WIDTH), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        for i in range(ty * X + tx, SIZE, THREADS):
            As[i // WIDTH, i % WIDTH] = float32(i)
        cuda.syncthreads()
        out[tx, ty] = As[ty, p]

    @cuda.jit
    def by_column(out):
        As = cuda.shared.array((rows, WIDTH), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        for i in range(ty * X + tx, SIZE, THREADS):
            As[i // WIDTH, i % WIDTH] = float32(i)
        cuda.syncthreads()
        out[tx, ty] = As[tx, p]

    @cuda.jit
    def along(out):
        Bs = cuda.shared.array((rows, WIDTH), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        for i in range(ty * X + tx, SIZE, THREADS):
            Bs[i // WIDTH, i % WIDTH] = float32(i)
        cuda.syncthreads()
        out[tx, ty] = Bs[p, tx]

    return {"As[ty, p]": by_row, "As[tx, p]": by_column, "Bs[p, tx]": along}[access]
