"""Shows how a vectorized kernel's accesses to its shared tiles are served, with padding after As's rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numba import cuda, float32

from gemm_course.figures import wavefronts as figure
from gemm_course.figures.banks import Tile
from gemm_course.figures.picture import Picture
from gemm_course.model.requests import Request, requests
from gemm_course.widgets._explorer import Explorer, explorer
from lockstep import Watch, emulate
from lockstep.intrinsics import load4, store4

# With 8 by 8 results per thread a block has 256 threads.
BM = BN = 128
THREADS, EACH = 256, 8
# The reads are those of row 1, since row 0 is aligned with any padding.
ROW = 1
ACCESSES = {
    "As[c + e, r] = v[e]": ("As", "store"),
    "load4(As, (p, y0))": ("As", "load"),
    "load4(Bs, (p, x0))": ("Bs", "load"),
    "store4(Bs, (r, c), ...)": ("Bs", "store"),
}


@explorer
def wavefronts() -> Explorer:
    """Show how one warp's accesses to transposed As and to Bs are served, for any padding of As."""
    names = list(ACCESSES)
    controls = {
        "access": ("access", names, names[0]),
        "depth": ("BK", (8, 16, 32), 8),
        "pad": ("padding of As, floats", (0, 1, 2, 4, 8), 0),
    }
    return Explorer(draw, controls)


def draw(access: str, depth: int, pad: int) -> Picture:
    """Draw one access of warp 0, one of ACCESSES. ``depth`` is BK, and ``pad`` the padding of As."""
    array, _ = ACCESSES[access]
    tile = Tile("As", depth, BM + pad, pad) if array == "As" else Tile("Bs", depth, BN)
    return figure.draw(
        request(access, depth, pad), f"{access}, rows of {tile.columns} words, 8 × 8 results per thread", tile
    )


@lru_cache(256)
def request(access: str, depth: int, pad: int) -> Request:
    """Return the request of warp 0 for ``access``, from the emulator's trace."""
    array, op = ACCESSES[access]
    return requests(_trace(depth, pad), array=array, op=op, space="shared")[0]


@lru_cache(32)
def _trace(depth: int, pad: int):
    A, B = np.zeros((BM, depth), np.float32), np.zeros((depth, BN), np.float32)
    out = np.zeros((THREADS, 4), np.float32)
    return emulate(_kernel(depth, pad), 1, THREADS, A, B, out, watch=Watch(warp=0)).trace


def _kernel(BK: int, PAD: int) -> Callable:
    """Return a kernel that fetches one tile of A and of B as `vectorized` does and reads each once."""
    A_ROWS, B_ROWS = THREADS // (BK // 4), THREADS // (BN // 4)
    A_WIDTH = BM + PAD

    @cuda.jit
    def fetch_and_read(A, B, out):
        As = cuda.shared.array((BK, A_WIDTH), float32, 16)
        Bs = cuda.shared.array((BK, BN), float32, 16)
        tid = cuda.threadIdx.x
        for i in range(0, BM, A_ROWS):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            v = load4(A, (r, c))
            for e in range(4):
                As[c + e, r] = v[e]
        for i in range(0, BK, B_ROWS):
            r, c = i + tid // (BN // 4), tid % (BN // 4) * 4
            store4(Bs, (r, c), load4(B, (r, c)))
        cuda.syncthreads()
        y0, x0 = tid // (BN // EACH) * EACH, tid % (BN // EACH) * EACH
        a, b = load4(As, (ROW, y0)), load4(Bs, (ROW, x0))
        store4(out, (tid, 0), (a[0] + b[0], a[1] + b[1], a[2] + b[2], a[3] + b[3]))

    return fetch_and_read
