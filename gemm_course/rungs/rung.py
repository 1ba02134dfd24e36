"""Defines the rungs of a learner's own ladder: one line for each kernel that a notebook builds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import signature
from typing import Any

from gemm_course import road


@dataclass(frozen=True, eq=False)
class Rung:
    """A kernel that the learner writes, and the ladder's kernel that stands beside it.

    ``notebook`` is the notebook's file name without its number. ``checker`` is the name of the checker that
    the learner's kernel passes. ``stage`` and ``tiles`` name the ladder's kernel, with the notebook's tile; a
    learner's factory takes the first of these sizes, and then ``switches``. ``reads`` is where the
    multiply-adds get their numbers from: "global" for L1, "shared", or "" for an answer that is not counted.
    ``block`` are the threads of a block, along x and y. ``limits`` tells whether these reads are what limits
    the kernel.
    """

    notebook: str
    checker: str
    stage: str
    tiles: Mapping[str, int]
    reads: str = ""
    block: tuple[int, int] = (0, 0)
    limits: bool = True
    switches: tuple[bool, ...] = ()

    @property
    def name(self) -> str:
        """The notebook's number and name, such as "03 shared memory tiles"."""
        return road.notebook(self.notebook).name.replace("_", " ")

    def kernel(self, answer: Any) -> Any:
        """Return the kernel of a learner's answer, which is a kernel, or a factory that is called."""
        if hasattr(answer, "py_func"):
            return answer
        sizes = list(self.tiles.values())
        return answer(*sizes[: len(signature(answer).parameters) - len(self.switches)], *self.switches)


@dataclass(frozen=True)
class Part:
    """The step of a kernel that the learner writes, small enough for the emulator, and the kernel with it.

    It is no whole kernel: it has no bet, no counts and no speed of its own. ``stage`` is the ladder's kernel
    that takes the step, or the one at which its notebook ends.
    """

    notebook: str
    checker: str
    stage: str

    @property
    def name(self) -> str:
        """The notebook's number and name, such as "08 overlap"."""
        return road.notebook(self.notebook).name.replace("_", " ")


_WARP_WIDE = {"BM": 32, "BN": 32}
_CUBE = {**_WARP_WIDE, "BK": 32}
_COLUMNS = {"BM": 128, "BN": 128, "BK": 8, "TM": 32}
_SQUARE = {"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8}
_IN_FOURS = {**_SQUARE, "PAD": 0}
_OF_WARPS = {"BM": 128, "BN": 128, "BK": 16, "WM": 32, "WN": 64, "TM": 8, "TN": 8, "PAD": 0}

RUNGS = (
    Rung("naive", "naive", "naive_uncoalesced", _WARP_WIDE, "global", (32, 32)),
    Rung("coalesced", "coalesced", "naive_coalesced", _WARP_WIDE, "global", (32, 32)),
    Rung("shared_memory_tiles", "tile_kernel", "penny_xu_tile", _CUBE, "shared", (32, 32)),
    Rung("thread_tiles_1d", "thread_columns", "thread_tiled_1d", _COLUMNS, "shared", (128, 4)),
    Rung("thread_tiles_2d", "slices", "thread_tiled_2d", _SQUARE, "shared", (16, 16)),
    Rung(
        "vectorized_access",
        "both_switches",
        "vectorized",
        _IN_FOURS,
        "shared",
        (16, 16),
        limits=False,
        switches=(True, True),  # FOURS and TRANSPOSED
    ),
    Rung("warp_tiles", "runs_of_four", "warp_tiled", _OF_WARPS, "shared", (256, 1), limits=False),
)

PARTS = (
    Part("overlap", "reads_ahead", "read_ahead"),
    Part("tensor_cores", "several_warps", "wmma"),
    Part("mma_sync", "ring_and_swizzle", "mma_sync"),
    Part("hopper", "consumer", "warp_specialised"),
    Part("last_per_cent", "ring_goes_on", "overlapped_store"),
)


def rung_of(name: str) -> Rung | None:
    """Return the rung of a checker or of a notebook, by its topic, or None."""
    return next((rung for rung in RUNGS if name in (rung.checker, rung.notebook)), None)
