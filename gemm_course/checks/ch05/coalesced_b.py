"""Exercise 05.3: Kernel 5's load of B, coalesced."""

from typing import Any

from gemm_course.checks.core import Refused, call, line_at
from gemm_course.checks.engines.coverage import (
    Fetched,
    Slip,
    Tiles,
    counts_of,
    device_function,
    factory_of,
    fetch,
    hold_to_coverage,
    situations,
)
from gemm_course.checks.engines.problem import Problem

TILES = (
    Tiles(16, 32, 16, 4, 4),
    Tiles(16, 16, 8, 4, 4),
    Tiles(16, 32, 4, 4, 8),
    Tiles(32, 16, 4, 4, 2),
    Tiles(16, 16, 2, 4, 4),
)
DOCUMENT = Tiles(128, 128, 16, 8, 8)  # 16 × 16 threads
SECTOR = 8  # floats


def prove_coalesced_b(make_fetch_b) -> str:
    """What was proved of the learner's factory; raises Refused with the first thing wrong."""
    make, tried = factory_of(make_fetch_b), 0
    for number, tiles in enumerate(TILES):
        function = device_function(call(make, *tiles))
        tried += hold_to_coverage(function, tiles, ("Bs",), SLIPS, _on_values, edges_only=number > 2)
    a_request = _check_sectors(_document(call(make, *DOCUMENT)), call(make, *TILES[0]))
    return (
        f"{tried} tiles of B, every element stored exactly once. With 128 × 128 × 16 tiles and 16 × 16 "
        f"threads a request moves {a_request:g} sectors instead of Kernel 5's 32, and every byte of them is "
        "used."
    )


def _document(function) -> Fetched:
    BM, BN, BK, *_ = DOCUMENT
    return fetch(device_function(function), DOCUMENT, Problem(BM, BN, BK), (0, 0), 0)


def _check_sectors(done: Fetched, small: Any) -> float:
    """Sectors a request, once the block moves no more of them than B's tile has.

    small: the function for TILES[0], where a thread fetches several rows.
    """
    report, least = done.report, done.tiles.BK * done.tiles.BN // SECTOR
    sectors = report.total("sectors", space="global", op="load", array="B")
    requests = report.total("requests", space="global", op="load", array="B")
    if sectors <= least:
        return sectors / requests
    counted = f"{sectors / requests:g} sectors a request, {sectors:,} for a tile that has {least:,}"
    line = int(report.accesses.query("array == 'B' and op == 'load'")["line"].iloc[0])
    raise Refused(f"{_why(done, small)} {counted}.", f"{line_at(done.function, line)}. {done.where}")


def _why(done: Fetched, small: Any) -> str:
    lanes = _first_request(done)
    (row, column), (next_row, next_column) = lanes[0], lanes[1]
    if next_row != row:
        return (
            "The right elements arrive, but neighbouring threads fetch from different rows of B. Let the "
            "fast index, `tx`, count columns."
        )
    steps = next_column - column
    if _goes_down_first(fetch(small, TILES[0], *situations(TILES[0])[0])):
        return (
            f"The two loops have changed places, and nothing else: at every moment neighbours in x are still "
            f"{steps} columns apart. It is the step from `tx` to `tx + 1` that counts."
        )
    return f"The right elements arrive, but neighbours in x fetch elements {steps} columns apart."


def _first_request(done: Fetched) -> list[tuple[int, int]]:
    trace = done.report.trace
    loads = trace[(trace["array"] == "B") & (trace["op"] == "load")]
    return loads[loads["step"] == loads["step"].min()]["element"].tolist()


def _goes_down_first(done: Fetched) -> bool:
    """Whether thread 0 fetches all its rows of one column before it takes the next column."""
    mine = [store.element for store in done.stores["Bs"] if store.thread == 0]
    return len(mine) > 1 and mine[1][0] != mine[0][0]


# ---- likely mistakes ---------------------------------------------------------------------------------------


def _on_values(done: Fetched, array: str) -> str | None:
    """Fetched from one column, stored in another."""
    t, held, wanted = done.tiles, done.values(array), done.wanted(array)
    x = t.threads[0]
    apart = [tx + j * x for tx in range(x) for j in range(t.TN)]  # where column tx * TN + j came from
    if (held == wanted[:, apart]).all():
        return (
            "The loads are coalesced, but each element is stored in its old place, column `tx * TN + j`. The "
            "store has to move along: the same column for both."
        )
    if (held[:, apart] == wanted).all():
        return (
            "Only the store has moved: B is still loaded from column `tx * TN + j`. The same column for both."
        )
    return None


def _linear(t: Tiles, place, stride: int) -> dict:
    """How often each element is stored if all threads, numbered through, take elements in this stride."""
    x, y = t.threads
    taken = [place(e) for first in range(x * y) for e in range(first, t.BK * t.BN, stride)]
    return {"Bs": counts_of(t.shapes["Bs"], taken)}


def _columns(columns, rows=None):
    def times(t: Tiles) -> dict:
        x, y = t.threads
        rows_of = rows or (lambda ty, t: range(ty, t.BK, t.BM // t.TM))
        taken = [(r, c) for tx in range(x) for ty in range(y) for r in rows_of(ty, t) for c in columns(tx, t)]
        return {"Bs": counts_of(t.shapes["Bs"], taken)}

    return times


SLIPS = (
    Slip(
        "A row of Bs has BN elements, so element number e is in row `e // BN` and column `e % BN`. With BK "
        "for BN, the way it is in As, it comes out in the wrong place.",
        lambda t: _linear(t, lambda e: (e // t.BK, e % t.BK), t.threads[0] * t.threads[1]),
    ),
    Slip(
        "The elements are handed out to threads numbered through, but the stride is only the block's width. "
        "All threads take part: `BM * BN // (TM * TN)` of them.",
        lambda t: _linear(t, lambda e: (e // t.BN, e % t.BN), t.threads[0]),
    ),
    Slip(
        "There is no loop: every thread fetches one element. The tile has more elements than the block "
        "threads.",
        lambda t: _linear(t, lambda e: (e // t.BN, e % t.BN), t.BK * t.BN),
    ),
    Slip(
        "Neighbours fetch neighbours, but they overlap: columns `tx + j` are the next thread's as well. From "
        "one of a thread's columns to its next it is as far as there are threads along x, `BN // TN`.",
        _columns(lambda tx, t: range(tx, tx + t.TN)),
    ),
    Slip(
        "From one of a thread's columns to its next it is not TN: there are `BN // TN` threads along x, and "
        "each takes one before the first takes its second.",
        _columns(lambda tx, t: [tx + j * t.TN for j in range(t.TN)]),
    ),
    Slip(
        "Only rows up to the threads along y are fetched: the stride along the rows is gone.",
        _columns(lambda tx, t: [tx + j * (t.BN // t.TN) for j in range(t.TN)], lambda ty, t: [ty]),
    ),
)
