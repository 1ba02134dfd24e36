"""Shows the owner map of the warp-tiled kernels, from the block down to one thread."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import index

from gemm_course.figures import owners as figure
from gemm_course.figures.picture import Picture
from gemm_course.model.owner_maps import WARP, OwnerMap, Place, traced, traced_kernel
from gemm_course.widgets._errors_in_words import NotShown, asked, learners_name, made_by, parameters_of, shown
from gemm_course.widgets._explorer import Explorer, explorer

# The block's tile that is drawn has 64 rows and columns, with four warps of 32 by 32.
BLOCK = 64
_TM1 = {"BM": BLOCK, "BN": BLOCK, "BK": 16, "WM": 32, "WN": 32, "TM": 1}
_V06 = {"BM": BLOCK, "BN": BLOCK, "BK": 16, "WM": 32, "WN": 32, "PAD": 0}
KERNELS = {
    "003: TN 8, WNITER 1": ("warp_tiled_tm1", {**_TM1, "TN": 8, "WNITER": 1}),
    "003: TN 8, WNITER 2": ("warp_tiled_tm1", {**_TM1, "TN": 8, "WNITER": 2}),
    "003: TN 4, WNITER 1": ("warp_tiled_tm1", {**_TM1, "TN": 4, "WNITER": 1}),
    "warp_tiled: 4 × 8 lanes": ("warp_tiled", {**_V06, "TM": 8, "TN": 4}),
    "warp_tiled: 8 × 4 lanes": ("warp_tiled", {**_V06, "TM": 4, "TN": 8}),
    "warp_tiled: 8 × 8 results": ("warp_tiled", {**_V06, "BN": 2 * BLOCK, "WM": BLOCK, "TM": 8, "TN": 8}),
}
# With this many stored states, each lane of each kernel is among them.
_STORED = 1300


@explorer
def owners(mine: Callable | None = None, *, stage: str | None = None) -> Explorer:
    """Show who stores which element of a block's tile: for the block, a warp, a sub-tile or a thread.

    ``stage`` is "warp_tiled" or "warp_tiled_tm1", for the tiles of that stage alone.

    ``mine`` is your own function. It may be (tid, BN, WM, WN, TN, WNITER) -> [(row, column), ...], as in
    ``owner_map``. Then its map is shown for the tiles of document 003's kernel. Or it is the factory of a
    kernel, (BM, BN, BK, WM, WN, TM, TN) -> kernel, as in ``runs_of_four``. Then what the kernel stores is
    shown, for the tiles of v06.
    """
    maps = _own_maps(mine) if mine else {name: owner_map(name) for name in _kernels_of(stage)}
    # The last of a learner's maps is shown first, because it has runs in both directions.
    first = list(maps)[-1 if mine else 0]
    controls = {
        "kernel": ("kernel", list(maps), first),
        "level": ("look at a", figure.LEVELS, "block"),
        "colour": ("colour by", _colours, "warp"),
        "warp": ("warp", range(4), 0),
        "lane": ("lane", range(32), 5),
    }
    return Explorer(lambda kernel, **view: figure.draw(maps[kernel], **view), controls, stored=_STORED)


def _colours(chosen: Mapping) -> Sequence[str]:
    """Return the colourings to choose from. A single thread has one, since its results all look the same."""
    return figure.COLOURS[:1] if chosen["level"] == "thread" else figure.COLOURS


def _kernels_of(stage: str | None) -> list[str]:
    """Return the names of KERNELS that are of a stage, or all without one."""
    stages = list(dict.fromkeys(of for of, _ in KERNELS.values()))
    if stage is not None and stage not in stages:
        raise ValueError(f"owners are drawn for the stages {' and '.join(stages)}, not for {stage!r}")
    return [name for name, (of, _) in KERNELS.items() if stage in (None, of)]


def _own_maps(mine: Callable) -> dict[str, OwnerMap]:
    """Return a learner's maps. They are made at once, so that no slider waits for them."""
    if parameters_of(mine)[:1] == ["BM"]:
        return {name: kernel_map(name, mine) for name in KERNELS if KERNELS[name][0] == "warp_tiled"}
    return {name: own_map(name, mine) for name in KERNELS if KERNELS[name][0] == "warp_tiled_tm1"}


def draw(kernel: str, level: str, colour: str, warp: int, lane: int) -> Picture:
    """Draw one view.

    ``kernel`` is a name of KERNELS. ``level`` and ``colour`` say what is shown and how. ``warp`` and ``lane``
    are the marked thread.
    """
    return figure.draw(owner_map(kernel), level, colour, warp, lane)


def owner_map(kernel: str) -> OwnerMap:
    """Return the owner map of one of KERNELS, from the emulator's trace of its stores."""
    name, tiles = KERNELS[kernel]
    return traced(name, tuple(tiles.items()))


def kernel_map(kernel: str, make: Callable) -> OwnerMap:
    """Return the owner map of the kernel that a learner's factory makes for the tiles of one of KERNELS."""
    name, tiles = KERNELS[kernel]
    sizes = {size: tiles[size] for size in ("BM", "BN", "BK", "WM", "WN", "TM", "TN")}
    return replace(traced_kernel(made_by(make, **sizes), name, tiles), described=True)


def own_map(kernel: str, elements: Callable) -> OwnerMap:
    """Return the owner map that a learner's function describes, for the tiles of one of KERNELS.

    Raise NotShown if it gives anything but pairs of whole numbers.
    """
    true, t = owner_map(kernel), KERNELS[kernel][1]
    sizes = {name: t[name] for name in ("BN", "WM", "WN", "TN", "WNITER")}
    results = {tid: _places(elements, {"tid": tid, **sizes}) for tid in range(WARP * true.warps)}
    return replace(true, results=results, described=True)


def _places(elements: Callable, case: Mapping[str, int]) -> list[Place]:
    """Return the pairs of ints that a learner's function gives for a thread. None and ... give no pairs."""
    given = asked(elements, **case)
    if given is None or given is Ellipsis:
        return []
    try:
        found = [(index(row), index(column)) for row, column in given]
    except (TypeError, ValueError):
        call = f"`{learners_name(elements)}({', '.join(map(str, case.values()))})`"
        raise NotShown(
            f"{call} must give a list of pairs (row, column), whole numbers; it gives {shown(given)}."
        ) from None
    return found
