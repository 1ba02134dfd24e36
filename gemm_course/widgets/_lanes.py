"""What one warp asks of global memory in one k step, for any block shape: a stage's or your own kernel's."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from gemm_course.emulator import Watch, emulate
from gemm_course.figures import sectors
from gemm_course.figures.picture import Picture
from gemm_course.figures.requests import Request, requests
from gemm_course.kernels import LADDER, Stage
from gemm_course.widgets._explorer import Explorer
from gemm_course.widgets._fitting import shown

BLOCKS = ((32, 32), (256, 1), (64, 4), (32, 8), (16, 16), (8, 32), (4, 64))
WIDTHS = (("256", (256, 256)), ("333", (333, 333)), ("333, padded to 336", (333, 336)))
K_STEPS = 8


def lanes(subject: str | Stage | Callable = "naive_uncoalesced", *, widths: bool = False) -> None:
    """Show which sectors one warp moves when it loads A and B once and stores C.

    ``subject`` is a stage, its name, or a kernel (m, n, k, alpha, A, B, beta, C) of your own. With
    ``widths``, a slider sets the width of the matrices. A stage whose blocks cannot have these shapes gets
    a sentence.
    """
    stage = LADDER[subject] if isinstance(subject, str) else subject
    if not shown("lanes", stage, _takes_any_block, "its tiles decide the shape of its blocks"):
        return
    controls = {
        "block": ("block (x × y)", [(f"{x} × {y}", (x, y)) for x, y in BLOCKS], (32, 32)),
        "warp": ("warp", lambda chosen: range(-(-chosen["block"][0] * chosen["block"][1] // 32)), 0),
        "step": ("k step", range(K_STEPS), 0),
    }
    if widths:
        controls["width"] = ("columns of A, B, C", list(WIDTHS), WIDTHS[0][1])
    Explorer(lambda **chosen: draw(stage, **chosen), controls).show()


def draw(
    stage: Stage | Callable,
    block: tuple[int, int],
    warp: int,
    step: int,
    width: tuple[int, int] = WIDTHS[0][1],
) -> Picture:
    """Draw the requests of a warp of block (0, 0) in a k step; ``width`` is (columns, leading dimension)."""
    seen = _one_warp(kernel_for(stage, block), block, warp, width)
    chosen = [found[min(step, len(found) - 1)] for found in seen.values() if found]
    loads = [request for request in chosen if request.op == "load"]
    moved = sum(len(request.sectors) for request in loads)
    stored = sum(len(request.sectors) for request in chosen if request.op == "store")
    title = f"One k step moves {moved} sectors, the store {stored}"
    return sectors.warp_requests(chosen, [width[1]] * len(chosen), title)


def kernel_for(stage: Stage | Callable, block: tuple[int, int]) -> Callable:
    """Return the stage's kernel for blocks of shape (x, y); a kernel is returned as it is."""
    if not isinstance(stage, Stage):
        return stage
    tiles = _tiles_for(stage, block)
    if tiles is None:
        raise ValueError(f"{stage.name} has no blocks of {block[0]} by {block[1]} threads")
    return stage.kernel(tiles)


def _tiles_for(stage: Stage, block: tuple[int, int]) -> dict[str, int] | None:
    for rows, columns in (block, block[::-1]):
        tiles = {"BM": rows, "BN": columns}
        if not stage.rules(stage.complete(tiles)) and stage.block(tiles) == block:
            return tiles
    return None


def _takes_any_block(stage: Stage) -> bool:
    return all(_tiles_for(stage, block) for block in BLOCKS)


@lru_cache(128)
def _one_warp(kernel: Callable, block, warp: int, width) -> dict[str, list[Request]]:
    """Emulate block (0, 0) and return its warp's requests for A, B and C, in the order of execution."""
    columns, leading = width
    A, B, C = (np.ones((columns, leading), np.float32) for _ in range(3))
    sizes = (columns, columns, K_STEPS)
    report = emulate(
        kernel, (1, 1), block, *sizes, np.float32(1), A, B, np.float32(0), C, watch=Watch((0, 0, 0), warp)
    )
    return {
        f"{op} {array}": requests(report.trace, array=array, op=op)
        for op, array in (("load", "A"), ("load", "B"), ("store", "C"))
    }
