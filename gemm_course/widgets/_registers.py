"""Shows a thread's results in registers, with sliders for its tile, its place and the step along k."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

import numpy as np

from gemm_course.figures import registers as figure
from gemm_course.figures.picture import Picture
from gemm_course.kernels import LADDER
from gemm_course.widgets._explorer import Explorer, explorer
from gemm_course.widgets._fitting import shown
from lockstep import Watch, emulate

# These tiles are small enough to draw. The sliders set the thread's own sizes.
PLANS = {
    "thread_tiled_1d": {"BM": 16, "BN": 32, "BK": 16},
    "thread_tiled_2d": {"BM": 32, "BN": 32, "BK": 8},
}
# A block of this size has room for every shape of up to 64 results per thread.
_ROOMY = {"BM": 64, "BN": 64, "BK": 8}
# These thread tiles are shown first.
_FIRST = {"thread_tiled_1d": (8,), "thread_tiled_2d": (4, 4)}
_SIZES = (1, 2, 4, 8, 16)
# With two sizes only one warp's threads can be chosen, so that all states can be stored.
_OFFERED = 32


@explorer
def registers(
    name: str = "thread_tiled_1d",
    *,
    TM: int | None = None,
    TN: int | None = None,
    results: int | None = None,
) -> Explorer | None:
    """Show what a thread of ``name`` keeps in registers and reads in one step along k.

    ``TM`` and ``TN`` are the rows and columns of the thread's results that are shown first. With ``results``,
    a thread always has so many, and only their shape can be chosen: the first is one column, unless ``TM``
    says otherwise. There is a picture for each stage in PLANS. For another stage, show a sentence. Raise
    ValueError for sizes that are not offered.
    """
    why = "it is drawn for threads whose results are one column or one square"
    if not shown("registers", LADDER[name], lambda stage: stage.name in PLANS, why):
        return None
    sizes = [size for size in ("TM", "TN") if size in LADDER[name].tiles]
    asked = {size: value for size, value in (("TM", TM), ("TN", TN)) if value is not None}
    if results is None:
        controls, plan = _of_sizes(name, sizes, asked), PLANS[name]
    else:
        controls, plan = _of_shapes(name, sizes, results, asked), _ROOMY
    controls["thread"] = ("I am thread", lambda chosen: range(_threads(plan, _tile(chosen))), 5)
    controls["p"] = ("step along k, p", range(plan["BK"]), 3)
    return Explorer(lambda thread, p, **chosen: draw(name, _tile(chosen), thread, p, plan), controls)


def draw(
    name: str, tile: Mapping[str, int], thread: int, p: int, plan: Mapping[str, int] | None = None
) -> Picture:
    """Draw step ``p`` of ``thread`` of ``name``.

    ``tile`` has TM, and TN where the stage has one. ``plan`` has BM, BN and BK, and is the stage's own of
    PLANS if it is left out.
    """
    plan = PLANS[name] if plan is None else plan
    work = _work(name, tuple({**plan, **tile}.items()), thread // 32)
    return figure.one_step(work, thread, p, plan)


def _of_sizes(name: str, sizes: Sequence[str], asked: Mapping[str, int]) -> dict[str, tuple]:
    """Return a control for each size of the thread's tile."""
    every = product(_SIZES, repeat=len(sizes))
    legal = [tile for tile in every if _fits(name, PLANS[name], dict(zip(sizes, tile)))]
    first = dict(zip(sizes, _FIRST[name], strict=True)) | asked
    _require(tuple(first.values()) in legal, name, asked)
    controls = {"TM": ("TM", sorted({tile[0] for tile in legal}), first["TM"])}
    if "TN" in sizes:
        controls["TN"] = ("TN", lambda chosen: [n for m, n in legal if m == chosen["TM"]], first["TN"])
    return controls


def _of_shapes(name: str, sizes: Sequence[str], results: int, asked: Mapping[str, int]) -> dict[str, tuple]:
    """Return a control for the shape of ``results`` results, from one column to one row."""
    shapes = [(m, results // m) for m in range(results, 0, -1) if results % m == 0]
    legal = [shape for shape in shapes if _fits(name, _ROOMY, dict(zip(sizes, shape)))]
    chosen = [
        shape for shape in legal if asked.items() <= dict(zip(("TM", "TN"), shape, strict=True)).items()
    ]
    _require(len(sizes) == 2 and bool(chosen), name, {**asked, "results": results})
    return {"shape": ("TM × TN", [(f"{m} × {n}", (m, n)) for m, n in legal], chosen[0])}


def _require(offered: bool, name: str, asked: Mapping[str, int]) -> None:
    if not offered:
        told = ", ".join(f"{size}={value}" for size, value in asked.items())
        raise ValueError(f"{name} is not drawn with {told}.")


def _fits(name: str, plan: Mapping[str, int], tile: Mapping[str, int]) -> bool:
    """Tell whether a thread tile can divide the plan's block."""
    return not LADDER[name].rules({**plan, **tile})


def _tile(chosen: Mapping[str, Any]) -> dict[str, int]:
    """Return TM, and TN if there is one, from the controls' values."""
    if "shape" in chosen:
        return dict(zip(("TM", "TN"), chosen["shape"], strict=True))
    return {size: chosen[size] for size in ("TM", "TN") if size in chosen}


def _threads(plan: Mapping[str, int], tile: Mapping[str, int]) -> int:
    threads = plan["BM"] * plan["BN"] // (tile["TM"] * tile.get("TN", 1))
    return min(threads, _OFFERED) if "TN" in tile else threads


@lru_cache(128)
def _work(name: str, chosen: tuple[tuple[str, int], ...], warp: int) -> dict[int, figure.Work]:
    stage, tiles = LADDER[name], dict(chosen)
    m, n, k = tiles["BM"], tiles["BN"], tiles["BK"]
    A, B, C = (np.zeros(shape, np.float32) for shape in ((m, k), (k, n), (m, n)))
    launch = (stage.kernel(tiles), stage.grid(m, n, tiles), stage.block(tiles))
    problem = (m, n, k, np.float32(1), A, B, np.float32(0), C)
    return figure.work_of_threads(emulate(*launch, *problem, watch=Watch(warp=warp, local=False)).trace)
