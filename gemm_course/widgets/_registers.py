"""Shows a thread's results in registers, with sliders for its tile, its place and the step along k."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from gemm_course.figures import registers as figure
from gemm_course.figures.picture import Picture
from gemm_course.kernels import LADDER, tiles_text
from gemm_course.widgets._explorer import Explorer, explorer
from gemm_course.widgets._fitting import shown
from lockstep import Watch, emulate

# These tiles are small enough to draw. The sliders set the thread's own sizes.
PLANS = {
    "thread_tiled_1d": {"BM": 16, "BN": 32, "BK": 16},
    "thread_tiled_2d": {"BM": 64, "BN": 64, "BK": 4},
}
# These thread tiles are shown first.
_FIRST = {"thread_tiled_1d": {"TM": 8}, "thread_tiled_2d": {"TM": 4, "TN": 4}}
_SIZES = (1, 2, 4, 8, 16, 32, 64)
# With two sizes only one warp's threads can be chosen, so that all states can be stored.
_OFFERED = 32


@explorer
def registers(name: str = "thread_tiled_1d", *, tiles: Mapping[str, int] | None = None) -> Explorer | None:
    """Show what a thread of ``name`` keeps in registers and reads in one step along k.

    ``tiles`` are the thread's sizes with which it opens, TM and TN. There is a picture for each stage in
    PLANS. For another stage, show a sentence. Raise ValueError for sizes that cannot be drawn.
    """
    why = "it is drawn for threads whose results are one column or one square"
    if not shown("registers", LADDER[name], lambda stage: stage.name in PLANS, why):
        return None
    sizes = [size for size in ("TM", "TN") if size in LADDER[name].tiles]
    legal = _legal(name, tuple(sizes))
    first = _FIRST[name] | dict(tiles or {})
    if tuple(first.values()) not in legal:
        raise ValueError(f"{tiles_text(first)} cannot be drawn in a block of {tiles_text(PLANS[name])}")
    controls = {"TM": ("TM", sorted({choice[0] for choice in legal}), first["TM"])}
    if "TN" in sizes:
        controls["TN"] = ("TN", lambda chosen: [n for m, n in legal if m == chosen["TM"]], first["TN"])
    controls["thread"] = ("I am thread", lambda chosen: range(_threads(name, chosen)), 5)
    controls["p"] = ("step along k, p", range(PLANS[name]["BK"]), 3)
    return Explorer(lambda thread, p, **tile: draw(name, tile, thread, p), controls)


def draw(name: str, tile: Mapping[str, int], thread: int, p: int) -> Picture:
    """Draw step ``p`` of ``thread`` of ``name``. ``tile`` has TM, and TN where the stage has one."""
    return figure.one_step(_work(name, tuple(tile.items()), thread // 32), thread, p, PLANS[name])


def _legal(name: str, sizes: tuple[str, ...]) -> list[tuple[int, ...]]:
    """Return the thread tiles that can divide the plan's block, as tuples in the order of ``sizes``."""
    tried = [(m,) for m in _SIZES] if len(sizes) == 1 else [(m, n) for m in _SIZES for n in _SIZES]
    return [t for t in tried if not LADDER[name].rules({**PLANS[name], **dict(zip(sizes, t))})]


def _threads(name: str, chosen: Mapping[str, int]) -> int:
    plan = PLANS[name]
    threads = plan["BM"] * plan["BN"] // (chosen["TM"] * chosen.get("TN", 1))
    return min(threads, _OFFERED) if "TN" in chosen else threads


@lru_cache(128)
def _work(name: str, tile: tuple[tuple[str, int], ...], warp: int) -> dict[int, figure.Work]:
    stage, tiles = LADDER[name], {**PLANS[name], **dict(tile)}
    m, n, k = tiles["BM"], tiles["BN"], tiles["BK"]
    A, B, C = (np.zeros(shape, np.float32) for shape in ((m, k), (k, n), (m, n)))
    launch = (stage.kernel(tiles), stage.grid(m, n, tiles), stage.block(tiles))
    problem = (m, n, k, np.float32(1), A, B, np.float32(0), C)
    return figure.work_of_threads(emulate(*launch, *problem, watch=Watch(warp=warp, local=False)).trace)
