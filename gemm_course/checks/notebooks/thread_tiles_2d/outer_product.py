"""Checks ``outer_product``: a GEMM kernel whose threads add an outer product to TM by TN results per step."""

from collections.abc import Sequence

import numpy as np

from gemm_course.checks.core import Refused, exercise
from gemm_course.checks.engines.common_mistakes import GuardMistake, Mistake
from gemm_course.checks.engines.gemm import GemmTrial, Likely, try_on
from gemm_course.checks.engines.gemm_factory import GemmFactory
from gemm_course.checks.engines.lessons import STANDARD, reads
from gemm_course.checks.engines.mistakes import Prediction, added_up, among, only_stored, result, taken_from
from gemm_course.checks.engines.problem import Geometry, Problem
from gemm_course.checks.engines.slips_in_source import refuse_swapped_axes
from gemm_course.checks.engines.tiles import Tiles, tile_choices
from lockstep import Finding, Watch

TILES = tile_choices("BM BN BK TM TN", (8, 24, 4, 2, 4), (32, 16, 8, 4, 2), (64, 64, 8, 8, 8))


@exercise(
    start="declare `acc = cuda.local.array((TM, TN), float32)` and set its elements to zero.",
    hints=(
        "Three pieces are missing: TM by TN accumulators, set to zero; the products; the store. For the "
        "products, think of the NumPy loop at the beginning: a column of As, a row of Bs, their outer "
        "product.",
        "In every step `p`: read TM elements of As into an array `a` of your own and TN of Bs into `b`. Only "
        "then two loops over `acc[i, j] += a[i] * b[j]`.",
        "`a[i] = As[ty * TM + i, p]` and `b[j] = Bs[p, tx * TN + j]`.",
        "At the end, for every `i` and `j`: `row, col = row0 + ty * TM + i, col0 + tx * TN + j`, the guard, "
        "and the store of `acc[i, j]` as in notebook [[shared_memory_tiles.ipynb]].",
    ),
)
def outer_product(make_outer):
    """A factory (BM, BN, BK, TM, TN) of GEMM kernels with TM by TN results per thread."""
    proof = FACTORY.prove(make_outer)
    return (
        f"Right on {proof.problems} problems. With 8 × 8 results a thread reads 16 elements of shared memory "
        f"for 64 multiply-adds, {proof.trials[TILES[-1]].reads_per_multiply_add:.4g} each instead of 2, and "
        f"there is no race. {proof.registers}{_whose(proof.trials[TILES[0]])}"
    )


def _whose(trial: GemmTrial) -> str:
    """Return a sentence if threads own other results than the text says, which is as right, or ""."""
    tiles = trial.tiles
    traced = FACTORY.try_on_whole_tiles(trial.kernel, tiles, watch=Watch(warp=0, local=False))
    stores = traced.report.trace.query("space == 'global' and op == 'store' and thread == 0")
    if set(stores["element"]) == {(i, j) for i in range(tiles.TM) for j in range(tiles.TN)}:
        return ""
    first = ", ".join(f"C[{row}, {column}]" for row, column in list(stores["element"])[:3])
    return (
        f" Your threads own other results than the text says: thread (0, 0) stores {first}, ... That is "
        "right as well. The counts in the notebook are for the text's."
    )


def geometry(tiles: Tiles) -> Geometry:
    return Geometry(tiles.threads, "columns", (tiles.TM, tiles.TN))


# ---- what goes wrong ---------------------------------------------------------------------------------------


def likely(tiles: Tiles) -> Likely:
    """Return what goes wrong with TM by TN results per thread."""
    findings = {"global_race": _overlap, "out_of_bounds": _outside, "shared_race": _shared_race}
    return Likely(_mistakes(tiles), _guard_mistakes(tiles), findings)


def _mistakes(tiles: Tiles) -> tuple[Mistake, ...]:
    TM, TN, (x, y), block = tiles.TM, tiles.TN, tiles.threads, (tiles.BM, tiles.BN)
    return (
        Mistake(
            "All results of a thread are added up in one. Each of the TM · TN needs an accumulator of its "
            "own, `acc[i, j]`.",
            added_up(block, (TM, TN)),
        ),
        Mistake(
            "Thread `tx` begins at column `tx * TM`. Columns go with TN: its own begin at `tx * TN`.",
            taken_from(block, column=lambda c: c // TN * TM + c % TN),
        ),
        Mistake(
            "Thread `ty` takes its rows of As from `ty + i`, which are its neighbours' as well. Its own "
            "begin at `ty * TM`.",
            taken_from(block, row=lambda r: r // TM + r % TM),
        ),
        Mistake(
            "Thread `tx` takes its columns of Bs from `tx + j`, which are its neighbours' as well. Its own "
            "begin at `tx * TN`.",
            taken_from(block, column=lambda c: c // TN + c % TN),
        ),
        Mistake(
            "Thread `(tx, ty)` reads from `ty + i` and `tx + j` on, which are its neighbours' rows and "
            "columns as well. Its own begin at `ty * TM` and `tx * TN`.",
            taken_from(block, lambda r: r // TM + r % TM, lambda c: c // TN + c % TN),
        ),
        Mistake(
            "All results of a thread use the same row of As: the row must go on with `i`, `ty * TM + i`.",
            taken_from(block, row=lambda r: r // TM * TM),
        ),
        Mistake(
            "All results of a thread use the same column of Bs: the column must go on with `j`, "
            "`tx * TN + j`.",
            taken_from(block, column=lambda c: c // TN * TN),
        ),
        Mistake(
            "The row of As is `i` for all threads. A thread's own rows begin at `ty * TM`.",
            taken_from(block, row=lambda r: r % TM),
        ),
        Mistake(
            "The column of Bs is `j` for all threads. A thread's own columns begin at `tx * TN`.",
            taken_from(block, column=lambda c: c % TN),
        ),
        Mistake(
            "The reads of Bs take the columns `tx + j * (BN // TN)`, but the results are still stored at "
            "`tx * TN + j`. The store of C has to move along.",
            taken_from(block, column=lambda c: c // TN + c % TN * x),
        ),
        Mistake(
            "The results are stored at the columns `tx + j * (BN // TN)`, but what is read from Bs there "
            "are the columns `tx * TN + j` of B's tile. Both have to move.",
            taken_from(block, column=lambda c: c % x * TN + c // x),
        ),
        Mistake(
            "The reads of As take the rows `ty + i * (BM // TM)`, but the results are still stored at "
            "`ty * TM + i`. The rows of the store must be the same.",
            taken_from(block, row=lambda r: r // TM + r % TM * y),
        ),
        Mistake(
            "The results are stored at the rows `ty + i * (BM // TM)`, but As is still read at "
            "`ty * TM + i`. The rows of the read must be the same.",
            taken_from(block, row=lambda r: r % y * TM + r // y),
        ),
        Mistake(
            "The reads take the rows `ty + i * (BM // TM)` and the columns `tx + j * (BN // TN)`, but the "
            "results are still stored at `ty * TM + i` and `tx * TN + j`. The store of C has to move along.",
            taken_from(block, lambda r: r // TM + r % TM * y, lambda c: c // TN + c % TN * x),
        ),
        Mistake(
            "`b` is indexed with `i`, so that each row of a thread's results uses one element of Bs alone: "
            "`acc[i, j] += a[i] * b[j]`.",
            _column_by_row(tiles),
        ),
        Mistake(
            "In an array of one dimension result (i, j) has the place `i * TN + j`, since a row has TN "
            "results. With `i * TM + j` several of them share one.",
            _places_shared(tiles),
        ),
    )


def _column_by_row(tiles: Tiles) -> Prediction:
    """Predict C where result (i, j) of a thread was computed from its column i of Bs."""
    TM, TN = tiles.TM, tiles.TN

    def predict(q: Problem) -> np.ndarray | None:
        if TM > TN:
            return None
        row, col = np.ogrid[: q.m, : q.n]
        wide = np.pad(q.AB, ((0, 0), (0, TN)))
        return result(q, wide[row, col // TN * TN + row % TM])

    return predict


def _places_shared(tiles: Tiles) -> Prediction:
    """Predict C where result (i, j) of a thread is added up in place i * TM + j, with others."""
    BM, BN, TM, TN = tiles.BM, tiles.BN, tiles.TM, tiles.TN
    place = np.arange(TM)[:, None] * TM + np.arange(TN)
    same = (place[:, :, None, None] == place).astype(float)

    def predict(q: Problem) -> np.ndarray | None:
        if TM >= TN:
            return None
        down, right = -(-q.m // BM) * BM, -(-q.n // BN) * BN
        full = np.zeros((down, right))
        full[: q.m, : q.n] = q.AB
        each = full.reshape(down // TM, TM, right // TN, TN)
        shared = np.einsum("ijkl,akbl->aibj", same, each)
        return result(q, shared.reshape(full.shape)[: q.m, : q.n])

    return predict


def _guard_mistakes(tiles: Tiles) -> tuple[GuardMistake, ...]:
    TM, TN, (x, y), block = tiles.TM, tiles.TN, tiles.threads, (tiles.BM, tiles.BN)
    return (
        GuardMistake(
            "The block's first row is missing in the store: all blocks of a column store into the same rows. "
            "The row is `row0 + ty * TM + i`.",
            lambda row, col, q, _: (row < min(q.m, block[0])) & (col < q.n),
        ),
        GuardMistake(
            "The block's first column is missing in the store: all blocks of a row store into the same "
            "columns. The column is `col0 + tx * TN + j`.",
            lambda row, col, q, _: (row < q.m) & (col < min(q.n, block[1])),
        ),
        GuardMistake(
            "The block's first row and column are missing in the store: all blocks store into the same "
            "place. It begins at `row0` and `col0`.",
            lambda row, col, q, _: (row < min(q.m, block[0])) & (col < min(q.n, block[1])),
        ),
        GuardMistake(
            "Of a thread's results only the first is stored. The store needs both loops, over `i` and `j`.",
            only_stored(block, lambda row: row % TM == 0, lambda column: column % TN == 0),
        ),
        GuardMistake(
            "Only the first column of each thread's results is stored: the loop over `j` is missing.",
            only_stored(block, column=lambda column: column % TN == 0),
        ),
        GuardMistake(
            "Only the first row of each thread's results is stored: the loop over `i` is missing.",
            only_stored(block, lambda row: row % TM == 0),
        ),
        GuardMistake(
            "The results are stored side by side with those of the next thread, at `ty + i` and `tx + j`: "
            "they overlap, and part of C stays empty. A thread's own begin at `ty * TM` and `tx * TN`.",
            only_stored(block, lambda row: row < y + TM - 1, lambda column: column < x + TN - 1),
        ),
        GuardMistake(
            "The results are stored from column `tx * TM` on. Columns go with TN: `tx * TN + j`.",
            only_stored(block, column=among([tx * TM + j for tx in range(x) for j in range(TN)])),
        ),
        GuardMistake(
            "Only TM columns of each thread's results are stored. A row of them has TN: `range(TN)`.",
            only_stored(block, column=lambda column: column % TN < TM),
        ),
        GuardMistake(
            "Only blocks that lie in C as a whole are stored. The guard has to test each element: "
            "`row < m and col < n`.",
            lambda row, col, q, _: (row < q.m // block[0] * block[0]) & (col < q.n // block[1] * block[1]),
        ),
        GuardMistake(
            "Only threads whose tile lies in C as a whole store it. The guard has to test each element: "
            "`row < m and col < n`.",
            lambda row, col, q, _: (row < q.m // TM * TM) & (col < q.n // TN * TN),
        ),
        GuardMistake(
            "tx and ty are swapped in the store. Rows go with ty, from `ty * TM` on, and columns with tx, "
            "from `tx * TN` on.",
            lambda row, col, q, _: _places_swapped(tiles, q)[: row.shape[0], : col.shape[1]],
        ),
    )


def _places_swapped(tiles: Tiles, q: Problem) -> np.ndarray:
    """Return which elements are stored if rows begin at `tx * TM` and columns at `ty * TN`."""
    (x, y), (BM, BN) = tiles.threads, (tiles.BM, tiles.BN)
    stored = np.zeros((q.m + BM * (x + 1), q.n + BN * (y + 1)), bool)
    for row0 in range(0, q.m, BM):
        for col0 in range(0, q.n, BN):
            stored[row0 : row0 + x * tiles.TM, col0 : col0 + y * tiles.TN] = True
    stored[q.m :], stored[:, q.n :] = False, False
    return stored


def _before_numbers(trials: Sequence[GemmTrial]) -> None:
    refuse_swapped_axes(trials[0], right=trials[0].right)
    check_the_guard(trials[0])


def check_the_guard(trial: GemmTrial) -> None:
    """Refuse a guard that tests the first element of a thread's tile, and stores all of them.

    Beside a C with little padding it looks like `<=`, so this one has room for a thread's tile.
    """
    BM, BN, BK = trial.tiles.block_tile
    q = Problem(BM + 1, BN + 1, BK, padding=trial.tiles.TN, spare_rows=trial.tiles.TM)
    stored = try_on(trial.kernel, trial.geometry, q, tiles=trial.tiles).stored
    expected = np.zeros_like(stored)
    expected[: BM + trial.tiles.TM, : BN + trial.tiles.TN] = True
    if (stored == expected).all():
        raise Refused(
            "The guard tests the first element of a thread's tile, not each: where C ends inside the tile, "
            "all of it is stored. Inside both loops: `row < m and col < n`, with the element's own row and "
            "column.",
            f"First element too many: `C[0, {q.n}]`. C has {q.m} rows and {q.n} columns here.",
        )


def _overlap(finding: Finding, trial: GemmTrial) -> str:
    return (
        "Two threads store the same element of C: their tiles of results overlap. Thread `(tx, ty)` has TM "
        f"rows from `ty * TM` and TN columns from `tx * TN` on. {finding.message}"
    )


def _outside(finding: Finding, trial: GemmTrial) -> str | None:
    of_tile = trial.report.accesses.query("space == 'shared' and array == @finding.array")
    if of_tile.empty:
        return _own_swapped(finding, trial)
    if "store" in set(of_tile[of_tile["line"] == finding.line]["op"]):
        return (
            "A thread writes beside its tile. As has BM rows of BK elements and Bs has BK rows of BN, with "
            f"padding or without: does its shape follow from BM, BN and BK? {finding.message}"
        )
    return _past_the_steps(finding, trial) or (
        "A thread reads beside its tile. Its rows of As begin at `ty * TM`, and there are TM of them; "
        f"its columns of Bs begin at `tx * TN`, and there are TN. {finding.message}"
    )


def _own_swapped(finding: Finding, trial: GemmTrial) -> str | None:
    """Return the message for a thread's own array whose sizes or indices are in the wrong order, or None."""
    if (
        len(finding.element or ()) != 2
        or trial.report.accesses.query("space == 'local' and array == @finding.array").empty
    ):
        return None
    if finding.element[0] < trial.tiles.TM and finding.element[1] < trial.tiles.TN:
        return (
            f"The sides of `{finding.array}` are swapped in its shape: it has TM rows of TN, so "
            f"`cuda.local.array((TM, TN), float32)`. {finding.message}"
        )
    j, i = finding.element
    if i < trial.tiles.TM and j < trial.tiles.TN:
        return (
            f"The indices of `{finding.array}` are swapped: it has TM rows of TN, so `[i, j]`. "
            f"{finding.message}"
        )
    return None


def _past_the_steps(finding: Finding, trial: GemmTrial) -> str | None:
    """Return the message for a step `p` past BK, or where a row of As or a column of Bs belongs."""
    of_a = _is_tile_of_a(finding.array, trial)
    place, step = finding.element if of_a else finding.element[::-1]
    if step < trial.tiles.BK:
        return None
    (tx, ty, _), TM, TN = finding.threads[0], trial.tiles.TM, trial.tiles.TN
    first, each = (ty * TM, TM) if of_a else (tx * TN, TN)
    if place < trial.tiles.BK and first <= step < first + each:
        way = "row first, then the step: `[ty * TM + i, p]`" if of_a else "step first: `[p, tx * TN + j]`"
        return f"The indices of `{finding.array}` are swapped: {way}. {finding.message}"
    return (
        "The step `p` has run past the tile: As has BK columns and Bs BK rows, whatever k is. The inner loop "
        f"is `range(BK)`. {finding.message}"
    )


def _is_tile_of_a(array: str, trial: GemmTrial) -> bool:
    """Return whether elements of A are stored into this shared array."""
    stores = trial.accesses("store")
    lines = trial.accesses("load", "A")["line"]
    return array in set(stores[stores["line"].isin(lines)]["array"])


def _shared_race(finding: Finding, trial: GemmTrial) -> str | None:
    """Return the message for an array of a thread's own values that all threads of the block share."""
    shared = trial.report.accesses.query("space == 'shared'")
    stored = set(shared[(shared["array"] == finding.array) & (shared["op"] == "store")]["line"])
    if not stored & set(shared[shared["op"] == "load"]["line"]):
        return None
    return (
        f"`{finding.array}` is in shared memory: there is one for the whole block, and all threads write "
        f"into it. What a thread keeps for itself belongs in `cuda.local.array`. {finding.message}"
    )


LESSONS = (
    *STANDARD,
    reads(
        lambda tiles: (tiles.TM + tiles.TN) / (tiles.TM * tiles.TN),
        "In each step read TM elements of As and TN of Bs into arrays of your own, before the loops "
        "over the products: they serve TM · TN multiply-adds. (A slice such as `As[first:last, p]` copies "
        "nothing: it is read again wherever it is used.)",
    ),
)
FACTORY = GemmFactory(
    tiles=TILES,
    geometry=geometry,
    likely=likely,
    lessons=LESSONS,
    in_registers=True,
    before_numbers=_before_numbers,
)
