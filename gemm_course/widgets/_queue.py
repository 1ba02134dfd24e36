"""Shows how L1 serves a warp's read: every float waits at its place of a line."""

from __future__ import annotations

from collections import defaultdict

from gemm_course.figures import queue as figure
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import capital
from gemm_course.widgets._explorer import Explorer, explorer

WARP = 32
# A row has this many floats, 128 whole lines.
N = 4096
# What a warp reads: the array, and the row and the column of each lane's element.
READS = {
    "a column of A": ("A", lambda lane: (lane, 0)),
    "half a column, twice": ("A", lambda lane: (lane % 16, 0)),
    "a row of B": ("B", lambda lane: (0, lane)),
    "one float of A": ("A", lambda lane: (0, 0)),
}
# With finer padding fewer than eight lanes would share a place, and the queue would not be the limit.
PADDING = (0, 8, 16, 24, 32)


@explorer
def queue() -> Explorer:
    """Show the floats that a warp asks L1 for in the queues of their places, for rows of several lengths."""
    controls = {
        "read": ("a warp reads", list(READS), next(iter(READS))),
        "padding": ("floats of padding after each row", PADDING, 0),
    }
    return Explorer(draw, controls)


def draw(read: str, padding: int) -> Picture:
    """Draw one read, a key of READS, of a matrix whose rows have ``padding`` more floats than 4096."""
    array, _ = READS[read]
    asked = defaultdict(list)
    for lane, word in enumerate(floats(read, padding)):
        asked[word].append(lane)
    return figure.queue(asked, array, capital(read), N + padding)


def floats(read: str, padding: int) -> list[int]:
    """Return the number of the float that each lane wants, counted from the start of the array."""
    _, element = READS[read]
    return [row * (N + padding) + column for row, column in map(element, range(WARP))]
