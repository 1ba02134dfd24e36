"""Checks ``slices``: Kernel 5's fetching, with strided loops that cover tiles of any depth."""

from collections.abc import Callable, Iterable

import numpy as np

from gemm_course.checks.core import Refused, exercise
from gemm_course.checks.engines.coverage import (
    Coverage,
    CoverageSlip,
    Fetched,
    counts_of,
    fetch,
    situations,
)
from gemm_course.checks.engines.tiles import Tiles, tile_choices

# Blocks have 4 × 4, 8 × 8, 8 × 4 or 4 × 8 threads (x, y), and BK is above, at and below these numbers.
TILES = tile_choices(
    "BM BN BK TM TN",
    (16, 16, 8, 4, 4),
    (16, 32, 16, 2, 4),
    (16, 16, 4, 4, 4),
    (16, 32, 16, 4, 4),
    (32, 16, 12, 4, 4),
    (16, 16, 2, 4, 4),
    (16, 32, 4, 4, 4),
)


@exercise(
    start="fill As first: a loop over this thread's columns `c`, and in it one over its TM rows.",
    hints=(
        "Thread `(tx, ty)` fetches rows `ty * TM` to `ty * TM + TM - 1` of As, as many as it computes. Its "
        "columns are `tx`, and then as far on as there are threads along x.",
        "`for c in range(tx, BK, BN // TN):` runs over this thread's columns of As; "
        "`for r in range(ty, BK, BM // TM):` over its rows of Bs.",
        "`As[ty * TM + i, c]` takes `A[row0 + ty * TM + i, k0 + c]`, with `row0 = cuda.blockIdx.y * BM`, and "
        "a zero where that is past m or past k.",
    ),
)
def slices(make_fetch):
    """A factory (BM, BN, BK, TM, TN) of device functions that fill As and Bs in slices, as Kernel 5 does."""
    coverage = Coverage(tiles=TILES, arrays=("As", "Bs"), slips=SLIPS, on_values=_on_values)
    tried = coverage.prove(make_fetch)
    _check_shared_out(fetch(coverage.function(make_fetch, TILES[0]), TILES[0], *situations(TILES[0])[0]))
    return (
        f"{tried} pairs of tiles, BK from 2 to 16 with 4 and 8 threads along each side: every element of As "
        "and Bs is stored exactly once, with zeros where the matrices have ended."
    )


def _check_shared_out(done: Fetched) -> None:
    """Refuse a tile that one thread fetches alone."""
    for array, stores in done.stores.items():
        if len({store.thread for store in stores}) == 1:
            raise Refused(
                f"Every element of `{array}` is right, but {done.thread(stores[0].thread)} stores all of "
                "them while the other threads wait. Share them among the threads of the block.",
                done.about,
            )


# ---- the right places, other elements ----------------------------------------------------------------------


def _on_values(done: Fetched, array: str) -> str | None:
    held, wanted, t = done.values(array), done.wanted(array), done.tiles
    if held.shape[0] == held.shape[1] and (held.T == wanted).all():
        return f"`{array}` holds its tile transposed: the two indices are swapped."
    if array == "As" and (held == wanted[np.arange(t.BM) % t.TM]).all():
        return (
            "All threads load the same TM rows of A, from `row0 + i`. Here `row0` is the block's first row; "
            "a thread's own rows begin `ty * TM` further down, in A as in As: `row0 + ty * TM + i`."
        )
    if array == "Bs" and (held == wanted[:, np.arange(t.BN) % t.TN]).all():
        return (
            "All threads load the same TN columns of B, from `col0 + j`. Here `col0` is the block's first "
            "column; a thread's own begin `tx * TN` further on, in B as in Bs: `col0 + tx * TN + j`."
        )
    return None


# ---- who stores what, if a loop is written like this -------------------------------------------------------


def _slices(
    along_a: Callable[[int, Tiles], Iterable[int]], along_b: Callable[[int, Tiles], Iterable[int]]
) -> Callable[[Tiles], dict]:
    """Return a function that counts the stores if thread (x, y) takes these columns of As and rows of Bs."""

    def times(t: Tiles) -> dict:
        x, y = t.threads
        a = [(row, c) for tx in range(x) for c in along_a(tx, t) for row in range(t.BM)]
        b = [(r, column) for ty in range(y) for r in along_b(ty, t) for column in range(t.BN)]
        return {"As": counts_of((t.BM, t.BK), a), "Bs": counts_of((t.BK, t.BN), b)}

    return times


def _all_of(array: str) -> CoverageSlip:
    """Return the slip where every thread fetches all columns or rows of this tile, whatever the other has."""
    many, own, width = ("columns", "tx", "BN // TN") if array == "As" else ("rows", "ty", "BM // TM")
    everything = _slices(lambda tx, t: range(t.BK), lambda ty, t: range(t.BK))
    return CoverageSlip(
        f"Every thread fetches its slice of all {many} of {array}: the work is not shared. Begin at `{own}`, "
        f"and go on in strides of `{width}`.",
        lambda t: {array: everything(t)[array]},
    )


def _stride(array: str, wrong: str, step: Callable[[Tiles], int]) -> CoverageSlip:
    """Return the slip where the loop over this tile's columns or rows has a wrong stride."""
    many, width = ("columns", "`BN // TN` threads along x") if array == "As" else (
        "rows", "`BM // TM` threads along y")  # fmt: skip
    stepping = _slices(lambda tx, t: range(tx, t.BK, step(t)), lambda ty, t: range(ty, t.BK, step(t)))
    return CoverageSlip(
        f"The {many} of {array} go on in steps of {wrong}. They are shared among the {width}: that is the "
        "stride.",
        lambda t: {array: stepping(t)[array]},
    )


def _first_of_each(t: Tiles) -> dict:
    """Count the stores without the loops over TM and TN, when a slice is one element."""
    a = [(row, c) for c in range(t.BK) for row in range(0, t.BM, t.TM)]
    b = [(r, column) for r in range(t.BK) for column in range(0, t.BN, t.TN)]
    return {"As": counts_of((t.BM, t.BK), a), "Bs": counts_of((t.BK, t.BN), b)}


SLIPS = (
    CoverageSlip(
        "This is the draft: each thread brings one slice, of column `tx` and of row `ty`, and no more. Where "
        "there are fewer threads than BK in that direction, it must come back for the next slice: `range(tx, "
        "BK, ...)`.",
        _slices(lambda tx, t: [tx], lambda ty, t: [ty]),
    ),
    _stride("As", "`BM // TM`, the threads along y", lambda t: t.BM // t.TM),
    _stride("Bs", "`BN // TN`, the threads along x", lambda t: t.BN // t.TN),
    CoverageSlip(
        "The loops start at 0 for all threads, so that all of them fetch the same slices. Each must begin "
        "with its own, `tx` or `ty`.",
        _slices(lambda tx, t: range(0, t.BK, t.BN // t.TN), lambda ty, t: range(0, t.BK, t.BM // t.TM)),
    ),
    _all_of("As"),
    _all_of("Bs"),
    CoverageSlip(
        "The loops go on in steps of 1, so that neighbours fetch the same slices again. The next slice that "
        "nobody has yet is as far away as there are threads in this direction.",
        _slices(lambda tx, t: range(tx, t.BK), lambda ty, t: range(ty, t.BK)),
    ),
    _stride("As", "TM, the length of a slice", lambda t: t.TM),
    _stride("Bs", "TN, the length of a slice", lambda t: t.TN),
    CoverageSlip(
        "Of each slice only the first element is fetched. A slice of As has TM elements, one below the "
        "other, and one of Bs TN side by side.",
        _first_of_each,
    ),
)
