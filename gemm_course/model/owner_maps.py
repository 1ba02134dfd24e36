"""Finds which thread stores each element of a block's tile of C, from the emulator's trace of the block."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain

import numpy as np

from gemm_course.kernels import LADDER
from lockstep import Watch, emulate

WARP = 32
# These numbers stand in the place of an owner's number.
NOBODY, SEVERAL = -1, -2

Place = tuple[int, int]


@dataclass(frozen=True, eq=False)
class OwnerMap:
    """A map of a block's tile of C, which says which thread stores what.

    ``shape`` is the rows and columns of the tile. ``results`` lists each thread's elements, (row, column), in
    the order of its results. ``warp_tile`` is the rows and columns of a warp, ``sub_tile`` those that a warp
    covers at once, and ``lanes`` those of its lanes. ``described`` is true if the map is a learner's
    description. Then these three are those of a right map.
    """

    shape: tuple[int, int]
    results: Mapping[int, Sequence[Place]]
    warp_tile: tuple[int, int]
    sub_tile: tuple[int, int]
    lanes: tuple[int, int]
    described: bool = False

    @property
    def warps(self) -> int:
        return self.shape[0] * self.shape[1] // (self.warp_tile[0] * self.warp_tile[1])

    @cached_property
    def owner(self) -> np.ndarray:
        """The thread that stores each element, NOBODY or SEVERAL, as an array of (rows, columns)."""
        return owner_of(self.shape, self.results)

    @property
    def outside(self) -> int:
        """The number of results outside the tile."""
        return sum(not _holds(self.shape, place) for place in chain.from_iterable(self.results.values()))

    @property
    def repeated(self) -> int:
        """The number of results that their thread has named before."""
        return sum(len(places) - len(set(places)) for places in self.results.values())

    def inside(self, thread: int) -> list[Place]:
        """Return the thread's elements in the order of its results, without those outside the tile."""
        return [place for place in self.results.get(thread, ()) if _holds(self.shape, place)]

    def elements(self, thread: int) -> np.ndarray:
        """Return what `inside` returns as an array of rows and columns, (n, 2)."""
        return np.array(self.inside(thread), int).reshape(-1, 2)

    def corner_of_warp(self, warp: int) -> tuple[int, int]:
        across = self.shape[1] // self.warp_tile[1]
        return warp // across * self.warp_tile[0], warp % across * self.warp_tile[1]


def _holds(shape: tuple[int, int], place: Place) -> bool:
    return all(0 <= at < size for at, size in zip(place, shape))


def owner_of(shape: tuple[int, int], results: Mapping[int, Iterable[Place]]) -> np.ndarray:
    """Return the thread that stores each element of a tile, NOBODY or SEVERAL, as (rows, columns)."""
    owner = np.full(shape, NOBODY)
    for thread, places in results.items():
        for place in places:
            if _holds(shape, place):
                owner[place] = thread if owner[place] in (NOBODY, thread) else SEVERAL
    return owner


def stored_elements(trace) -> dict[int, list[Place]]:
    """Return the elements of C that each thread stores, in order, from the trace of one block."""
    stores = trace[(trace["space"] == "global") & (trace["op"] == "store")]
    results: dict[int, list[Place]] = {}
    for thread, (row, column), bits in zip(stores["thread"], stores["element"], stores["bits"], strict=True):
        results.setdefault(thread, []).extend((row, column + c) for c in range(bits // 32))
    return results


@cache
def traced(name: str, tiles: tuple[tuple[str, int], ...]) -> OwnerMap:
    """Return the owner map of a warp-tiled stage with these tiles."""
    return traced_kernel(LADDER[name].kernel(dict(tiles)), name, dict(tiles))


def traced_kernel(kernel, name: str, sizes: dict[str, int]) -> OwnerMap:
    """Return the owner map of a kernel, launched in place of a warp-tiled stage's with these tiles.

    With k = 0 the block fetches and computes nothing. All that it does to global memory is to store C.
    """
    stage, m, n = LADDER[name], sizes["BM"], sizes["BN"]
    A, B, C = np.zeros((m, 4), np.float32), np.zeros((4, n), np.float32), np.zeros((m, n), np.float32)
    launch = (kernel, stage.grid(m, n, sizes), stage.block(sizes))
    report = emulate(*launch, m, n, 0, np.float32(1), A, B, np.float32(0), C, watch=Watch(local=False))
    stored = stored_elements(report.trace)
    return OwnerMap((m, n), stored, (sizes["WM"], sizes["WN"]), *_sub_tile_and_lanes(name, sizes))


def _sub_tile_and_lanes(name: str, t: dict[str, int]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return the rows and columns that a warp's lanes cover at a time, and the rows and columns of lanes."""
    # In warp_tiled, rows and columns lie in runs of four, so a lane has 4 × 4 elements of a sub-tile.
    if name == "warp_tiled":
        down, across = t["WM"] // t["TM"], t["WN"] // t["TN"]
        return (4 * down, 4 * across), (down, across)
    wmiter = t["WM"] * t["WN"] // (32 * t["TM"] * t["TN"] * t["WNITER"])
    down, across = t["WM"] // wmiter, t["WN"] // t["WNITER"]
    return (down, across), (down // t["TM"], across // t["TN"])
