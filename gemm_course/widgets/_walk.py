"""Steps through document 002's example of 4 x 4 matrices with 2 x 2 tiles."""

from __future__ import annotations

import inspect
from functools import lru_cache

import numpy as np

from gemm_course.figures import walk as figure
from gemm_course.figures.picture import Picture
from gemm_course.kernels import LADDER
from gemm_course.widgets._explorer import StepThrough, explorer
from lockstep import Watch, emulate

SIZE, TILE = 4, 2
_TILES = {"BM": TILE, "BN": TILE, "BK": TILE}
_PAIRS = [(f"({x}, {y})", (x, y)) for y in range(TILE) for x in range(TILE)]


@explorer
def walk() -> StepThrough:
    """Step through ``penny_xu_tile`` on 4 x 4 matrices with 2 x 2 tiles."""
    return StepThrough(
        draw,
        lambda block, thread: len(_story(block)[0]),
        {
            "block": ("block (x, y)", _PAIRS, (0, 0)),
            "thread": ("I am thread (x, y)", _PAIRS, (1, 0)),
        },
    )


def draw(step: int, block: tuple[int, int], thread: tuple[int, int]) -> Picture:
    """Draw scene ``step`` (from 0) of ``block`` as ``thread`` sees it."""
    story, plan = _story(block)
    return figure.draw(story, step, thread[1] * TILE + thread[0], plan)


@lru_cache(4)
def _story(block: tuple[int, int]) -> tuple[list[figure.Scene], figure.Plan]:
    kernel = LADDER["penny_xu_tile"].kernel(_TILES)
    report = _watched(kernel, block)
    naive = _watched(LADDER["naive_coalesced"].kernel({"BM": TILE, "BN": TILE}), block)
    lines, first = inspect.getsourcelines(kernel.py_func)
    plan = figure.Plan(
        shapes=dict.fromkeys("ABC", (SIZE, SIZE)),
        tile=TILE,
        block=block,
        lines={first + place: line for place, line in enumerate(lines)},
        naive_loads=_loads_of_a_thread(naive.trace),
        tiled_loads=_loads_of_a_thread(report.trace),
    )
    return figure.scenes(report.trace), plan


def _watched(kernel, block: tuple[int, int]):
    A, B = (np.arange(SIZE * SIZE, dtype=np.float32).reshape(SIZE, SIZE) for _ in range(2))
    C = np.zeros((SIZE, SIZE), np.float32)
    grid = (SIZE // TILE, SIZE // TILE)
    sizes = (SIZE, SIZE, SIZE)
    return emulate(
        kernel, grid, (TILE, TILE), *sizes, np.float32(1), A, B, np.float32(0), C, watch=Watch((*block, 0))
    )


def _loads_of_a_thread(trace) -> int:
    mine = trace[(trace["thread"] == 0) & (trace["space"] == "global") & (trace["op"] == "load")]
    return len(mine)
