"""Checks ``coalesced_b``: Kernel 5's load of B, coalesced."""

from typing import Any

from gemm_course.checks.core import Refused, exercise
from gemm_course.checks.engines import Problem, Tiles, tile_choices
from gemm_course.checks.engines.coverage import (
    Coverage,
    CoverageSlip,
    Fetched,
    counts_of,
    fetch,
    situations,
)

*TILES, DOCUMENT = tile_choices(
    "BM BN BK TM TN",
    # There are 8 × 4 threads, so TM, TN and the threads along x and y are four different numbers.
    (12, 16, 12, 3, 2),
    (16, 32, 16, 4, 4),
    (16, 16, 8, 4, 4),
    (16, 32, 4, 4, 8),
    (32, 16, 4, 4, 2),
    (16, 16, 2, 4, 4),
    # There are 4 × 8 threads, so strides of TM, of TN and of the threads along x overlap.
    (16, 16, 8, 2, 4),
    (128, 128, 16, 8, 8),
)
# A sector holds 8 floats.
SECTOR = 8
WARP = 32


@exercise(
    start="begin with your loop over Bs from exercise [[slices]], and ask which column thread `tx + 1` "
    "fetches.",
    hints=(
        "In one request the lanes all have the same `j`. Which address does `tx` have, which one `tx + 1`?",
        "Neighbours in x should fetch neighbours in B. Then a thread's next column is one that none of its "
        "row's threads has had: as far on as there are threads along x.",
        "Column `tx + j * (BN // TN)` in both places, in `B[k0 + r, col0 + ...]` and in `Bs[r, ...]`.",
    ),
)
def coalesced_b(make_fetch_b):
    """A factory like that of ``slices`` whose functions fill Bs, and load B coalesced."""
    coverage = Coverage(tiles=TILES, arrays=("Bs",), slips=SLIPS, on_values=_on_values)
    tried = coverage.prove(make_fetch_b)
    _check_as_left_alone(coverage.function(make_fetch_b, TILES[0]))
    whole = Problem(*DOCUMENT.block_tile)
    done = fetch(coverage.function(make_fetch_b, DOCUMENT), DOCUMENT, whole, (0, 0), 0)
    a_request = _check_sectors(done, coverage.function(make_fetch_b, TILES[0]))
    return (
        f"{tried} tiles of B, every element stored exactly once. With 128 × 128 × 16 tiles and 16 × 16 "
        f"threads a request moves {a_request:g} sectors instead of Kernel 5's 32, and every byte of them is "
        "used."
    )


# ---- sectors -----------------------------------------------------------------------------------------------


def _check_as_left_alone(function: Any) -> None:
    done = fetch(function, TILES[0], *situations(TILES[0])[0])
    if done.stores["As"]:
        line = done.line(done.report.accesses.query("op == 'store' and array == 'As'")["line"].iloc[0])
        raise Refused("`Bs` is right. But `As` is filled as well: fill `Bs` alone.", f"{line}. {done.about}")


def _check_sectors(done: Fetched, small: Any) -> float:
    """Refuse a block that moves more sectors than B's tile has; return the sectors per request.

    small: the function for TILES[0], where a thread fetches several rows.
    """
    least, sectors = done.tiles.BK * done.tiles.BN // SECTOR, done.sectors("load", "B")
    per_request = sectors / done.total("requests", "load", "B")
    if sectors <= least:
        _check_lanes(done)
        return per_request
    counted = f"{per_request:g} sectors per request, {sectors:,} for a tile that has {least:,}."
    raise Refused(
        f"{_why(done, small)} {counted}",
        f"{done.line(done.accesses('load', 'B')['line'].iloc[0])}. {done.about}",
    )


def _check_lanes(done: Fetched) -> None:
    """Refuse requests in which lanes of a warp have nothing to fetch."""
    requests, lanes = done.total("requests", "load", "B"), done.total("lanes", "load", "B")
    if lanes < WARP * requests:
        raise Refused(
            f"Neighbours fetch neighbours, but in a request only {lanes / requests:g} of a warp's 32 lanes "
            "fetch anything: the others have no share in the work. Share it among all threads of the block.",
            f"{requests:,} requests where {lanes // WARP:,} are enough. {done.about}",
        )


def _why(done: Fetched, small: Any) -> str:
    (row, column), (next_row, next_column), *_ = _first_request(done)
    if next_row != row:
        return (
            "The right elements arrive, but neighbouring threads fetch from different rows of B. Let the "
            "fast index, `tx`, count columns."
        )
    apart = f"{next_column - column} columns apart"
    if _goes_down_first(fetch(small, TILES[0], *situations(TILES[0])[0])):
        return (
            f"The two loops have changed places, and nothing else: at every moment neighbours in x are still "
            f"{apart}. It is the step from `tx` to `tx + 1` that counts."
        )
    return f"The right elements arrive, but neighbours in x fetch elements {apart}."


def _first_request(done: Fetched) -> list[tuple[int, int]]:
    trace = done.report.trace
    loads = trace[(trace["array"] == "B") & (trace["op"] == "load")]
    return loads[loads["step"] == loads["step"].min()]["element"].tolist()


def _goes_down_first(done: Fetched) -> bool:
    """Return whether thread 0 fetches all its rows of one column before it takes the next column."""
    mine = [store.element for store in done.stores["Bs"] if store.thread == 0]
    return len(mine) > 1 and mine[1][0] != mine[0][0]


# ---- likely mistakes ---------------------------------------------------------------------------------------


def _on_values(done: Fetched, array: str) -> str | None:
    """Return the message for elements that are fetched from one column and stored in another."""
    t, held, wanted = done.tiles, done.values(array), done.wanted(array)
    x = t.threads[0]
    # Place tx * TN + j of this list has the column that thread tx should fetch as its number j.
    apart = [tx + j * x for tx in range(x) for j in range(t.TN)]
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
    """Count the stores if threads, numbered consecutively, take elements in this stride."""
    x, y = t.threads
    taken = [place(e) for first in range(x * y) for e in range(first, t.BK * t.BN, stride)]
    return {"Bs": counts_of((t.BK, t.BN), taken)}


def _columns(columns, rows=lambda ty, t: range(ty, t.BK, t.BM // t.TM)):
    """Return a function that counts the stores if thread (x, y) takes these columns of these rows of Bs."""

    def times(t: Tiles) -> dict:
        x, y = t.threads
        taken = [(r, c) for tx in range(x) for ty in range(y) for r in rows(ty, t) for c in columns(tx, t)]
        return {"Bs": counts_of((t.BK, t.BN), taken)}

    return times


def _rows(rows):
    """Return a function that counts the stores if the columns are right and thread y takes these rows."""
    return _columns(lambda tx, t: [tx + j * (t.BN // t.TN) for j in range(t.TN)], rows)


def _swapped(t: Tiles, down: int, right: int) -> dict:
    """Count the stores if tx counts rows in strides of ``down``, and ty columns in strides of ``right``."""
    x, y = t.threads
    rows = [r for tx in range(x) for r in range(tx, t.BK, down)]
    columns = [ty + j * right for ty in range(y) for j in range(t.TN)]
    return {"Bs": counts_of((t.BK, t.BN), [(r, c) for r in rows for c in columns])}


SLIPS = (
    CoverageSlip(
        "A row of Bs has BN elements, so element number e is in row `e // BN` and column `e % BN`. With BK "
        "for BN, as it is in As, it lands in the wrong place.",
        lambda t: _linear(t, lambda e: (e // t.BK, e % t.BK), t.threads[0] * t.threads[1]),
    ),
    CoverageSlip(
        "The elements are shared among threads numbered consecutively, but the stride is only the block's "
        "width. All threads take part: `BM * BN // (TM * TN)` of them.",
        lambda t: _linear(t, lambda e: (e // t.BN, e % t.BN), t.threads[0]),
    ),
    CoverageSlip(
        "There is no loop: every thread fetches one element. The tile has more elements than the block "
        "threads.",
        lambda t: _linear(t, lambda e: (e // t.BN, e % t.BN), t.BK * t.BN),
    ),
    CoverageSlip(
        "Neighbours fetch neighbours, but they overlap: columns `tx + j` are the next thread's as well. From "
        "one of a thread's columns to its next it is as far as there are threads along x, `BN // TN`.",
        _columns(lambda tx, t: range(tx, tx + t.TN)),
    ),
    CoverageSlip(
        "From one of a thread's columns to its next it is not TN: there are `BN // TN` threads along x, and "
        "each takes one before the first takes its second.",
        _columns(lambda tx, t: [tx + j * t.TN for j in range(t.TN)]),
    ),
    CoverageSlip(
        "From one of a thread's columns to its next it is not `BM // TM`, the threads along y: there are "
        "`BN // TN` threads along x, and each takes one before the first takes its second.",
        _columns(lambda tx, t: [tx + j * (t.BM // t.TM) for j in range(t.TN)]),
    ),
    *(
        CoverageSlip(
            "tx and ty are swapped: let `ty` count the rows of Bs and `tx` the columns.",
            lambda t, rows=rows, columns=columns: _swapped(t, rows(t), columns(t)),
        )
        for rows, columns in (
            (lambda t: t.BN // t.TN, lambda t: t.BM // t.TM),
            (lambda t: t.BM // t.TM, lambda t: t.BN // t.TN),
        )
    ),
    CoverageSlip(
        "Only as many rows are fetched as there are threads along y: the stride along the rows is missing.",
        _rows(lambda ty, t: [ty]),
    ),
    CoverageSlip(
        "Every thread fetches all rows of Bs, `range(BK)`: they are not shared. Begin at `ty`, and go on by "
        "the threads along y, `BM // TM`.",
        _rows(lambda ty, t: range(t.BK)),
    ),
    CoverageSlip(
        "The loop over the rows starts at 0 for all threads, so that all fetch the same rows. Each must "
        "begin with its own, `ty`.",
        _rows(lambda ty, t: range(0, t.BK, t.BM // t.TM)),
    ),
    CoverageSlip(
        "The rows go on in steps of 1, so that neighbours in y fetch the same rows again. The next row that "
        "nobody has yet is `BM // TM` further on.",
        _rows(lambda ty, t: range(ty, t.BK)),
    ),
    *(
        CoverageSlip(
            f"The rows go on in steps of {wrong}. What counts is how many threads there are along y: "
            "`BM // TM`.",
            _rows(lambda ty, t, step=step: range(ty, t.BK, step(t))),
        )
        for wrong, step in (
            ("TN", lambda t: t.TN),
            ("TM", lambda t: t.TM),
            ("`BN // TN`, the threads along x", lambda t: t.BN // t.TN),
        )
    ),
)
