"""Where the threads of document 003's warps are: which warp, which lane, which step; TM is 1."""

from gemm_course.checks.engines.tiles import Tiles
from gemm_course.model.formulas import document_003 as document

Place = tuple[int, int]  # row, column


def threads(t: Tiles) -> int:
    """Threads of a block, 32 for each of its warp tiles."""
    return t.BM * t.BN // (t.WM * t.WN) * 32


def steps_down(t: Tiles) -> int:
    """WMITER."""
    return document.wmiter(t.WM, t.WN, 1, t.TN, t.WNITER)


def step(t: Tiles) -> Place:
    """WSUBM and WSUBN."""
    return document.wsub(t.WM, t.WN, 1, t.TN, t.WNITER)


def warp(t: Tiles, tid: int) -> Place:
    """Row and column of the thread's warp among those of the block."""
    return document.warp(tid, t.BN, t.WN)


def lane(t: Tiles, tid: int) -> Place:
    """Row and column of the thread's lane among those of its warp."""
    return document.lane(tid, t.TN, step(t)[1])


def thread_named(tid: int) -> str:
    """The thread in words, with its warp and lane."""
    return f"thread {tid} (warp {tid // 32}, lane {tid % 32})"
