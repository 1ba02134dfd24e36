"""Calculates how long the multiprocessors of an H200 work on a product, tile by tile, without measuring.

The clocks below come from runs of overlapped_store with `clock64` in its loop (see kernels/NOTES.md). STORE
comes from the times of warp_specialised and overlapped_store.
"""

from __future__ import annotations

from dataclasses import dataclass

from gemm_course.kernels.c07_stream_k_fp16 import SHARING
from gemm_course.kernels.c07_stream_k_fp16 import STEP as RELATIVE

SMS = 132
BM, BK = 128, 64
# A tile may have these widths, BN.
WIDTHS = tuple(RELATIVE)
# A step along k in a tile of 128 by 256 takes this many clocks.
STEP = 1025
# A block's first product comes after this many clocks: the launch, then the latency of its first tiles.
FIRST = 4340
# Storing a tile from registers, in pairs, takes this many clocks, in which nothing is multiplied.
STORE = 10_000
# Between two tiles overlapped_store spends this many clocks, because it only rounds there.
BETWEEN = 950
# overlapped_store stores its last tile in this many clocks, with nothing left to multiply.
LAST = 2900
PER_TILE, PERSISTENT, OVERLAPPED, STREAM_K = SCHEDULES = (
    "a block per tile",
    "persistent",
    "store behind the next tile",
    "stream-K",
)


@dataclass(frozen=True)
class Stretch:
    """A stretch of time in which the first ``blocks`` multiprocessors do the same.

    ``begin`` and ``end`` are in clocks. ``what`` is "waits", "multiplies", "stores", or "parts" for ranges of
    stream-K. ``cuts`` has (block, clock) of each place where a block's range goes from one tile to the next.
    """

    what: str
    begin: float
    end: float
    blocks: int
    cuts: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Schedule:
    """A product of size³ in tiles of 128 by BN, and what 132 multiprocessors do for it."""

    size: int
    BN: int
    kind: str
    stretches: tuple[Stretch, ...]

    @property
    def tiles(self) -> int:
        """The number of tiles that C has."""
        return -(-self.size // BM) * -(-self.size // self.BN)

    @property
    def waves(self) -> int:
        return -(-self.tiles // SMS)

    @property
    def last(self) -> int:
        """The number of tiles in the last wave."""
        return self.tiles - (self.waves - 1) * SMS

    @property
    def clocks(self) -> float:
        """The number of clocks from the launch to the end."""
        return max(stretch.end for stretch in self.stretches)

    @property
    def multiplying(self) -> float:
        """The share of the multiprocessors' time in which they multiply."""
        busy = sum(s.blocks * (s.end - s.begin) for s in self.stretches if s.what in ("multiplies", "parts"))
        return busy / (SMS * self.clocks)


def schedule(size: int, BN: int, kind: str) -> Schedule:
    """Return the schedule for m = n = k = ``size``, a multiple of 64. ``kind`` is one of SCHEDULES."""
    bare = Schedule(size, BN, kind, ())
    tile = size // BK * STEP * RELATIVE[BN]
    full, left = divmod(bare.tiles, SMS)
    shared = kind == STREAM_K and left > 0
    counts = [SMS] * full + [left] * (left > 0 and not shared)
    made, at = [], 0.0
    for place, blocks in enumerate(counts):
        if place == 0 or kind == PER_TILE:
            made.append(Stretch("waits", at, at + FIRST, blocks))
            at += FIRST
        made.append(Stretch("multiplies", at, at + tile, blocks))
        at += tile
        store = STORE if kind in (PER_TILE, PERSISTENT) else BETWEEN if place < len(counts) - 1 else LAST
        made.append(Stretch("stores", at, at + store, blocks))
        at += store
    if shared:
        made += _shared_out(at, left, size // BK, tile)
    return Schedule(size, BN, kind, tuple(made))


def ranges(tiles: int, steps: int, blocks: int) -> list[tuple[int, int]]:
    """Return each block's range of the steps of all tiles, which are laid end to end.

    A range is its first step and one past its last step.
    """
    total = tiles * steps
    return [(total * b // blocks, total * (b + 1) // blocks) for b in range(blocks)]


def _shared_out(at: float, tiles: int, steps: int, tile: float) -> list[Stretch]:
    """Return the second launch, in which all multiprocessors share the steps of these tiles."""
    clocks = tile / steps
    begin, end = at + FIRST, at + FIRST + tiles * steps / SMS * clocks
    cuts = tuple(
        (block, begin + (cut - first) * clocks)
        for block, (first, stop) in enumerate(ranges(tiles, steps, SMS))
        for cut in range(-(-(first + 1) // steps) * steps, stop, steps)
    )
    adding = SHARING * STEP - FIRST
    return [
        Stretch("waits", at, begin, SMS),
        Stretch("parts", begin, end, SMS, cuts),
        Stretch("stores", end, end + adding, SMS),
    ]
