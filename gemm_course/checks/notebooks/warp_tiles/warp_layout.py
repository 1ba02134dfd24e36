"""Computes warp, lane and step of the threads of document 003, where TM is 1."""

from gemm_course.checks.engines.tiles import Tiles
from gemm_course.model.formulas import document_003 as document

# A place is (row, column).
Place = tuple[int, int]


def threads(t: Tiles) -> int:
    """Return the threads of a block, 32 for each of its warp tiles."""
    return t.BM * t.BN // (t.WM * t.WN) * 32


def steps_down(t: Tiles) -> int:
    """Return WMITER."""
    return document.wmiter(t.WM, t.WN, 1, t.TN, t.WNITER)


def step(t: Tiles) -> Place:
    """Return WSUBM and WSUBN."""
    return document.wsub(t.WM, t.WN, 1, t.TN, t.WNITER)


def warp(t: Tiles, tid: int) -> Place:
    """Return row and column of the thread's warp among those of the block."""
    return document.warp(tid, t.BN, t.WN)


def lane(t: Tiles, tid: int) -> Place:
    """Return row and column of the thread's lane among those of its warp."""
    return document.lane(tid, t.TN, step(t)[1])


def thread_named(tid: int) -> str:
    """Return the thread in words, with its warp and lane."""
    return f"thread {tid} (warp {tid // 32}, lane {tid % 32})"
