"""Exercise 05.2: Kernel 5's fetching, with strided loops that cover tiles of any depth."""

from collections.abc import Callable, Iterable

from gemm_course.checks.core import call
from gemm_course.checks.engines.coverage import (
    Fetched,
    Slip,
    Tiles,
    counts_of,
    device_function,
    factory_of,
    hold_to_coverage,
)

TILES = (  # threads (x, y): 4 × 4, 8 × 8, 8 × 4, 4 × 8; BK above, at and below them
    Tiles(16, 16, 8, 4, 4),
    Tiles(16, 32, 16, 2, 4),
    Tiles(16, 16, 4, 4, 4),
    Tiles(16, 32, 16, 4, 4),
    Tiles(32, 16, 12, 4, 4),
    Tiles(16, 16, 2, 4, 4),
    Tiles(16, 32, 4, 4, 4),
)


def prove_slices(make_fetch) -> str:
    """What was proved of the learner's factory; raises Refused with the first thing wrong."""
    make, tried = factory_of(make_fetch), 0
    for number, tiles in enumerate(TILES):
        function = device_function(call(make, *tiles))
        tried += hold_to_coverage(function, tiles, ("As", "Bs"), SLIPS, _on_values, edges_only=number > 2)
    return (
        f"{tried} pairs of tiles, BK from 2 to 16 with 4 and 8 threads along each side: every element of As "
        "and Bs is stored exactly once, with zeros where the matrices have ended."
    )


def _on_values(done: Fetched, array: str) -> str | None:
    held = done.values(array)
    rows, columns = held.shape
    if rows == columns and (held.T == done.wanted(array)).all():
        return f"`{array}` holds its tile transposed: the two indices are exchanged."
    return None


# ---- who stores what, if a loop is written like this -------------------------------------------------------


def _slices(
    along_a: Callable[[int, Tiles], Iterable[int]], along_b: Callable[[int, Tiles], Iterable[int]]
) -> Callable[[Tiles], dict]:
    """How often each element is stored if thread (x, y) takes these columns of As and rows of Bs."""

    def times(t: Tiles) -> dict:
        x, y = t.threads
        a = [(row, c) for tx in range(x) for c in along_a(tx, t) for row in range(t.BM)]
        b = [(r, column) for ty in range(y) for r in along_b(ty, t) for column in range(t.BN)]
        return {"As": counts_of(t.shapes["As"], a), "Bs": counts_of(t.shapes["Bs"], b)}

    return times


def _first_of_each(t: Tiles) -> dict:
    """Without the loops over TM and TN: a slice of one element."""
    a = [(row, c) for c in range(t.BK) for row in range(0, t.BM, t.TM)]
    b = [(r, column) for r in range(t.BK) for column in range(0, t.BN, t.TN)]
    return {"As": counts_of(t.shapes["As"], a), "Bs": counts_of(t.shapes["Bs"], b)}


SLIPS = (
    Slip(
        "This is the draft: each thread brings one slice, of column `tx` and of row `ty`, and no more. Where "
        "there are fewer threads than BK in that direction, it must come back for the next slice: `range(tx, "
        "BK, ...)`.",
        _slices(lambda tx, t: [tx], lambda ty, t: [ty]),
    ),
    Slip(
        "The strides are exchanged. Columns of As are handed out to the threads along x, so the next one is "
        "`BN // TN` further on; rows of Bs to those along y, `BM // TM`.",
        _slices(lambda tx, t: range(tx, t.BK, t.BM // t.TM), lambda ty, t: range(ty, t.BK, t.BN // t.TN)),
    ),
    Slip(
        "The loops start at 0 for all threads, so that all of them fetch the same slices. Each is to begin "
        "with its own, `tx` or `ty`.",
        _slices(lambda tx, t: range(0, t.BK, t.BN // t.TN), lambda ty, t: range(0, t.BK, t.BM // t.TM)),
    ),
    Slip(
        "Every thread fetches its slice of every column of As and of every row of Bs: the work is not "
        "shared. Begin at `tx` and `ty`, and go on in strides as wide as the block.",
        _slices(lambda tx, t: range(t.BK), lambda ty, t: range(t.BK)),
    ),
    Slip(
        "The loops go on in steps of 1, so that neighbours fetch the same slices again. The next slice that "
        "nobody has yet is as far away as there are threads in this direction.",
        _slices(lambda tx, t: range(tx, t.BK), lambda ty, t: range(ty, t.BK)),
    ),
    Slip(
        "The strides are TM and TN, the length of a slice. What counts is how many threads there are side by "
        "side: `BN // TN` along x and `BM // TM` along y.",
        _slices(lambda tx, t: range(tx, t.BK, t.TM), lambda ty, t: range(ty, t.BK, t.TN)),
    ),
    Slip(
        "Of each slice only the first element is fetched. A slice of As has TM elements, one below the "
        "other, and one of Bs TN side by side.",
        _first_of_each,
    ),
)
