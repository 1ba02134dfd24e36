"""The owner map of the warp-tiled kernels, from the block down to one thread."""

from __future__ import annotations

from gemm_course.figures import owners as figure
from gemm_course.figures.owners import OwnerMap
from gemm_course.figures.picture import Picture
from gemm_course.widgets._explorer import Explorer

BLOCK = 64  # rows and columns of the block's tile that is drawn: four warps of 32 by 32
_TM1 = {"BM": BLOCK, "BN": BLOCK, "BK": 16, "WM": 32, "WN": 32, "TM": 1}
_V06 = {"BM": BLOCK, "BN": BLOCK, "BK": 16, "WM": 32, "WN": 32, "PAD": 0}
KERNELS = {
    "003: TN 8, WNITER 1": ("warp_tiled_tm1", {**_TM1, "TN": 8, "WNITER": 1}),
    "003: TN 8, WNITER 2": ("warp_tiled_tm1", {**_TM1, "TN": 8, "WNITER": 2}),
    "003: TN 4, WNITER 1": ("warp_tiled_tm1", {**_TM1, "TN": 4, "WNITER": 1}),
    "004 v06: 8 × 4 lanes": ("warp_tiled", {**_V06, "TM": 4, "TN": 8}),
    "004 v06: 4 × 8 lanes": ("warp_tiled", {**_V06, "TM": 8, "TN": 4}),
}


def owners() -> None:
    """Show who stores which element of a block's tile: block, warp, one step of it, one thread."""
    first = next(iter(KERNELS))
    for name in KERNELS:
        owner_map(name)  # so that the slider finds them
    controls = {
        "kernel": ("kernel", list(KERNELS), first),
        "level": ("look at a", figure.LEVELS, "block"),
        "colour": ("colour by", figure.COLOURS, "warp"),
        "warp": ("warp", range(4), 0),
        "lane": ("lane", range(32), 5),
    }
    Explorer(draw, controls).show()


def draw(kernel: str, level: str, colour: str, warp: int, lane: int) -> Picture:
    """Draw one view: a name of KERNELS, a level, a colouring, and the thread pointed at."""
    return figure.draw(owner_map(kernel), level, colour, warp, lane)


def owner_map(kernel: str) -> OwnerMap:
    """The owner map of one of KERNELS, from the emulator's trace of its stores."""
    name, tiles = KERNELS[kernel]
    return figure.traced(name, tuple(tiles.items()))
