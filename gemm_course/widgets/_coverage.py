"""Shows how a block fetches its tiles in slices, store by store, and what is stored in the end."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from gemm_course.figures import coverage as figure
from gemm_course.figures.picture import Picture
from gemm_course.kernels import Stage
from gemm_course.kernels.variants.fetch_only import fetch_only
from gemm_course.widgets._errors_in_words import made_by, or_words
from gemm_course.widgets._explorer import Explorer, StepThrough, explorer
from gemm_course.widgets._fitting import shown
from gemm_course.widgets._stages import stage_of
from lockstep import Watch, emulate

THREAD_TILE = {"TM": 4, "TN": 4}
# The blocks are (BM, BN), and the depths are BK.
BLOCKS = ((16, 16), (16, 32), (32, 16))
DEPTHS = (2, 4, 8, 16)
_WHY = "it is drawn for small blocks with thread tiles of 4 by 4"


@explorer
def coverage(subject: str | Stage | Callable = "kernel5", *, BK: int = 8) -> Explorer | None:
    """Show which elements of the tiles each thread of a block has stored, and hatch those that no thread has.

    ``subject`` is a stage that fetches in slices, its name, or a factory (BM, BN, BK, TM, TN) of GEMM kernels
    (m, n, k, alpha, A, B, beta, C), or of device functions fetch(m, n, k, k0, A, B, As, Bs). ``BK`` is the
    depth of the tiles that are shown first. For a stage without thread tiles of this size, show a sentence
    instead. Raise ValueError for a depth that is not offered.
    """
    stage = _stage(subject)
    if not shown("coverage", stage, _has_these_thread_tiles, _WHY):
        return None
    controls = _controls(stage, BK)
    offered = controls["depth"][1]({"block": BLOCKS[0]})
    if BK not in offered:
        raise ValueError(f"BK must be one of {', '.join(map(str, offered))}, not {BK}.")
    # A learner's function that fails must do so here, before anything is shown.
    _filled(stage, BLOCKS[0], BK)
    return Explorer(or_words(lambda **chosen: draw(stage, **chosen)), controls)


@explorer
def filling(subject: str | Stage | Callable = "kernel5") -> StepThrough | None:
    """Step through the stores of a block into its tiles. ``subject`` is as in `coverage`."""
    stage = _stage(subject)
    if not shown("filling", stage, _has_these_thread_tiles, _WHY):
        return None
    return StepThrough(
        or_words(lambda step, block, depth, thread: draw_step(stage, step, block, depth, thread)),
        lambda block, depth, thread: len(_filled(stage, block, depth)[0]) + 1,
        _controls(stage, 8),
    )


def draw(subject: Stage | Callable, block, depth: int, thread) -> Picture:
    """Draw what a block leaves in its tiles. ``block`` is (BM, BN), ``depth`` BK, and ``thread`` (x, y)."""
    story, plan = _filled(subject, block, depth)
    return figure.covered(story, thread, plan)


def draw_step(subject: Stage | Callable, step: int, block, depth: int, thread) -> Picture:
    """Draw store ``step`` (from 0) into the tiles. After the last one, draw the result."""
    story, plan = _filled(subject, block, depth)
    return figure.filling(story, step, thread, plan)


def _controls(subject: Stage | Callable, depth: int) -> dict:
    def threads(chosen):
        x, y = _threads(chosen["block"])
        return [(f"({i}, {j})", (i, j)) for j in range(y) for i in range(x)]

    def depths(chosen):
        return _depths(subject, chosen["block"]) if isinstance(subject, Stage) else DEPTHS

    return {
        "block": ("BM × BN", [(f"{m} × {n}", (m, n)) for m, n in BLOCKS], BLOCKS[0]),
        "depth": ("BK", depths, depth),
        "thread": ("I am thread (x, y)", threads, (1, 2)),
    }


def _has_these_thread_tiles(stage: Stage) -> bool:
    return THREAD_TILE.keys() <= stage.tiles.keys() and all(_depths(stage, block) for block in BLOCKS)


def _depths(stage: Stage, block: tuple[int, int]) -> list[int]:
    """Return the values of BK with which a stage can use this block and these thread tiles."""
    cut = {"BM": block[0], "BN": block[1], **THREAD_TILE}
    return [depth for depth in DEPTHS if not stage.rules(stage.complete({**cut, "BK": depth}))]


def _threads(block: tuple[int, int]) -> tuple[int, int]:
    return block[1] // THREAD_TILE["TN"], block[0] // THREAD_TILE["TM"]


def _stage(subject: str | Stage | Callable) -> Stage | Callable:
    return stage_of(subject) if isinstance(subject, str) else subject


@lru_cache(128)
def _filled(subject: Stage | Callable, block, depth: int) -> tuple[list[figure.Moment], figure.Plan]:
    """Emulate one block for one pair of tiles.

    Return its stores into them, and the plan of what they fill.
    """
    m, n = block
    tiles = {"BM": m, "BN": n, "BK": depth} | THREAD_TILE
    A, B, C = (np.ones(shape, np.float32) for shape in ((m, depth), (depth, n), block))
    kernel = _kernel(subject, tiles)
    written_in, arguments = kernel, (m, n, depth, np.float32(1), A, B, np.float32(0), C)
    if getattr(kernel, "targetoptions", {}).get("device"):
        kernel, arguments = fetch_only(written_in, m, n, depth), (m, n, depth, 0, A, B)
    threads = _threads(block)
    report = emulate(kernel, 1, threads, *arguments, watch=Watch(limit=_rows(tiles, threads)))
    lines, first = inspect.getsourcelines(written_in.py_func)
    outside = [f.message for f in report.findings if f.kind == "out_of_bounds" and f.array in ("As", "Bs")]
    plan = figure.Plan(tiles, threads, dict(enumerate(lines, first)), outside)
    return figure.moments(report.trace), plan


def _kernel(subject: Stage | Callable, tiles: dict[str, int]) -> Callable:
    """Return the stage's kernel, or the kernel or device function that a learner's factory makes."""
    if isinstance(subject, Stage):
        return subject.kernel(tiles)
    return made_by(subject, **{size: tiles[size] for size in ("BM", "BN", "BK", "TM", "TN")})


def _rows(tiles: dict[str, int], threads: tuple[int, int]) -> int:
    """Return how many rows of the trace are enough to fill the tiles.

    Accumulators are set to zero. Then each element takes a load and a store. There is room for elements that
    are stored twice.
    """
    results = threads[0] * threads[1] * tiles["TM"] * tiles["TN"]
    return results + 4 * tiles["BK"] * (tiles["BM"] + tiles["BN"]) + 2048
