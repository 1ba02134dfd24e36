"""Shows tiles on multiprocessors over time, for a size, a tile and a schedule."""

from __future__ import annotations

from gemm_course.figures import schedule as figure
from gemm_course.figures.picture import Picture
from gemm_course.model.schedule import PER_TILE, SCHEDULES, WIDTHS, schedule
from gemm_course.widgets._explorer import Explorer, explorer

SIZES = range(1024, 8193, 512)


@explorer
def tiles_over_time(size: int = 4096, BN: int = 256, kind: str = PER_TILE) -> Explorer:
    """Show what the 132 multiprocessors of an H200 do while they compute C, with tiles of 128 by BN.

    ``size`` is m = n = k. ``kind`` says how tiles are given to blocks, and is one of SCHEDULES.
    """
    return Explorer(
        draw,
        {
            "kind": ("schedule", SCHEDULES, kind),
            "BN": ("BN", WIDTHS, BN),
            "size": ("m = n = k", SIZES, size),
        },
    )


def draw(kind: str, BN: int, size: int) -> Picture:
    """Draw a state. All schedules of a size and a tile have the same scale of time."""
    longest = max(schedule(size, BN, each).clocks for each in SCHEDULES)
    return figure.draw(schedule(size, BN, kind), longest)
