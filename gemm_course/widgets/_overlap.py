"""Shows what a ring of slots hides, by a block's copies and products on one line of time."""

from __future__ import annotations

from gemm_course.figures import overlap as figure
from gemm_course.widgets._explorer import Explorer, explorer

MULTIPLY = 4
COPIES = (2, 4, 6, 8, 12, 14)


@explorer
def overlap() -> Explorer:
    """Show when a block copies and when it multiplies, for a chosen number of slots for tiles."""
    return Explorer(
        lambda slots, copy: figure.timeline(slots, copy, MULTIPLY),
        {
            "slots": ("slots", range(1, figure.MOST_SLOTS + 1), 1),
            "copy": ("time of a copy", COPIES, MULTIPLY),
        },
    )
