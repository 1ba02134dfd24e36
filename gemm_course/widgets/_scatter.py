"""Shows how A's tile gets into transposed As, request by request and thread by thread."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from gemm_course.figures import scatter as figure
from gemm_course.figures.picture import Picture
from gemm_course.kernels import LADDER
from gemm_course.model.requests import requests
from gemm_course.widgets._errors_in_words import NotShown, made_by, or_words
from gemm_course.widgets._explorer import StepThrough, explorer
from lockstep import Watch, emulate

# The block is one warp, so that one picture shows all threads.
BM, BN, THREADS = 16, 32, 32
# The 320 accesses of lanes to A's tile come first, so these are enough.
_FIRST_TILE = Watch(limit=2048)
Factory = Callable[[int, int, int, int], Callable]


@explorer
def scatter(make: Factory | None = None) -> StepThrough:
    """Step through how ``vectorized`` fetches A's tile, or how a kernel of your own does.

    ``make`` takes BM, BK, PAD and the number of threads. It returns a kernel (A, out) whose block copies A's
    tile, BM by BK, into shared memory, transposed.
    """
    return StepThrough(
        or_words(lambda step, thread, depth, pad: draw(step, thread, depth, pad, make)),
        lambda thread, depth, pad: len(_story(depth, pad, make)),
        {
            "thread": ("I am thread", range(THREADS), 5),
            "depth": ("BK", (8, 16), 16),
            "pad": ("padding of As, floats", (0, 4), 0),
        },
    )


def draw(step: int, thread: int, depth: int, pad: int, make: Factory | None = None) -> Picture:
    """Draw request ``step`` (from 0) as ``thread`` sees it.

    ``depth`` is BK, and ``pad`` the padding of As.
    """
    tile = figure.Tile(BM, depth, pad, THREADS)
    return figure.draw(_story(depth, pad, make), step, thread, tile)


@lru_cache(32)
def _story(depth: int, pad: int, make: Factory | None) -> list[figure.Step]:
    tile = figure.Tile(BM, depth, pad, THREADS)
    trace = _trace_of_the_stage(tile) if make is None else _trace_of(make, tile)
    barriers = trace[trace["op"] == "barrier"]["step"]
    first_tile = trace[trace["step"] < barriers.min()] if len(barriers) else trace
    of_a = (first_tile["space"] == "global") & (first_tile["op"] == "load") & (first_tile["array"] == "A")
    into_as = (first_tile["space"] == "shared") & (first_tile["op"] == "store")
    # By its name As comes before Bs.
    into_as &= first_tile["array"] == first_tile[into_as]["array"].min()
    chosen = first_tile[of_a | into_as]
    values = [
        dict(zip(rows["lane"], rows["value"], strict=True)) for _, rows in chosen.groupby("step", sort=True)
    ]
    if chosen.empty:
        raise NotShown("No thread loads an element of `A` or stores one into shared memory: nothing to draw.")
    return figure.steps(requests(chosen), values, tile)


def _trace_of_the_stage(tile: figure.Tile):
    stage = LADDER["vectorized"]
    tiles = {"BM": BM, "BN": BN, "BK": tile.BK, "TM": 4, "TN": 4, "PAD": tile.pad}
    A, B, C = _numbered(tile), np.zeros((tile.BK, BN), np.float32), np.zeros((BM, BN), np.float32)
    one, zero = np.float32(1), np.float32(0)
    launch = stage.kernel(tiles), 1, stage.block(tiles)
    return emulate(*launch, BM, BN, tile.BK, one, A, B, zero, C, watch=_FIRST_TILE).trace


def _trace_of(make: Factory, tile: figure.Tile):
    kernel = made_by(make, BM=tile.BM, BK=tile.BK, PAD=tile.pad, threads=tile.threads)
    out = np.zeros((tile.BK, tile.BM), np.float32)
    return emulate(kernel, 1, THREADS, _numbered(tile), out, watch=_FIRST_TILE).trace


def _numbered(tile: figure.Tile) -> np.ndarray:
    return np.arange(tile.BM * tile.BK, dtype=np.float32).reshape(tile.BM, tile.BK)
