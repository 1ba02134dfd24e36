"""Checks ``ragged_product``: what becomes of a fragment of accumulators at the edge of C."""

from collections.abc import Sequence

import numpy as np

from gemm_course.checks.core import Refused, Written, exercise, kernel_of, nothing_yet
from gemm_course.checks.engines.wmma import (
    SIDE,
    WarpTrial,
    calls_of,
    check_findings,
    filled_from,
    on_tensor_cores,
    stored_every_step,
    tiles_transposed,
    try_warps,
    within_shared,
)

ARGUMENTS = ("m", "n", "k", "A", "B", "C")
# The sizes are (m, n, k).
SIZES = ((16, 32, 16), (17, 30, 20), (5, 3, 7), (31, 16, 33), (16, 41, 1))
# The given part of the kernel has this name for the accumulators.
ACCUMULATORS = "acc"
# A lane stores this many neighbouring columns of C.
LANE_COLUMNS = 8
# If fewer lanes of a warp store at a time, on average, the verdict says so.
FEW_LANES = 8
# The array of C has this many rows and columns more than C, and the kernel must not touch them.
BESIDE = (2, 3)


@exercise(
    start="the results are in `acc`. Put them into `Cs` with `wmma_store`, and from there store those that "
    "are inside C.",
    hints=(
        "A fragment cannot be stored in part, and nobody knows which lane holds which element. In shared "
        "memory every result has its row and column again.",
        "`wmma_store(Cs, (0, 0), acc, ROW_MAJOR)`, then `cuda.syncwarp()`: all lanes must be done.",
        "Lane by lane, as the tiles were fetched: element `e` of 8 is `Cs[r, c + e]` and belongs to "
        "`C[row0 + r, col0 + c + e]`, if that is inside.",
    ),
)
def ragged_product(kernel):
    """A kernel (m, n, k, A, B, C), one warp per tile, that stores what is inside C, for any sizes."""
    kernel = kernel_of(kernel, ARGUMENTS)
    if not _stores(kernel):
        raise nothing_yet()
    trials = [try_warps(kernel, ARGUMENTS, *size, beside=BESIDE) for size in SIZES]
    for trial in trials:
        _check_stored(trial, trials)
        _check_numbers(trial)
        on_tensor_cores(trial)
        within_shared(trial, (2 * 2 + 4) * SIDE * (SIDE + 8))
    _check_route(trials[0])
    return _passed(trials[0])


def _passed(trial: WarpTrial) -> str:
    told = (
        f"Right for {len(SIZES)} shapes, four of them with ragged edges: every result goes through shared "
        "memory, where its row and column are known again, and nothing beside C is touched."
    )
    requests = trial.accesses("store", "C")["requests"].sum()
    if trial.lanes("store", "C") < FEW_LANES * requests:
        told += " But few lanes store at a time, and the others wait: let each of the 32 store 8 elements."
    return told + stored_every_step(trial.kernel)


def _stores(kernel) -> bool:
    """Tell whether the accumulators are stored, or anything is stored into C."""
    written = Written(kernel)
    return bool(written.stores(written.parameters[-1]) or written.calls("wmma_store"))


# ---- what is stored ----------------------------------------------------------------------------------------


def _check_stored(trial: WarpTrial, trials: Sequence[WarpTrial]) -> None:
    m, n, _ = trial.shape
    stored, inside, whole = trial.touched("C"), *(np.zeros_like(trial.after["C"], bool) for _ in range(2))
    inside[:m, :n] = whole[: m // SIDE * SIDE, : n // SIDE * SIDE] = True
    read = trial.accesses("load", "C")
    if len(read) and (trial.wrong.any() or not stored.any()):
        raise Refused(
            "C is read, and there may be anything in it: here it is NaN. This product adds nothing to C, so "
            "store with `=`, not with `+=`.",
            f"{trial.line(read['line'].iloc[0])}. {trial.about}.",
        )
    if not stored.any() and not trial.report.errors:
        raise Refused("Nothing is ever stored into C.", f"{trial.about}.")
    for places, missing in BY_PLACE_IN_TILE.items():
        if all(_guarded_by_place_in_tile(each, *places) for each in trials):
            raise Refused(
                "The guard compares a place in the tile with a size of C. Only the first tile begins at the "
                f"start of C: {missing}.",
                trials[1].about + ".",
            )
    if all(map(_m_and_n_swapped, trials)):
        raise Refused(
            "m and n are swapped in the guard: rows of C end at `m`, columns at `n`.", f"{trial.about}."
        )
    if trial.error("global_race") and _clamps(trial.kernel):
        raise Refused(
            "With `min`, what is beyond C lands on its last row or column, over the results that belong "
            "there. Leave it out instead: `if row0 + r < m and col0 + c + e < n`.",
            f"{trial.line(trial.error('global_race'))}. {trial.about}.",
        )
    if all(map(_guarded_by_first_column, trials)):
        raise Refused(
            "The guard tests only the first of a lane's 8 columns, `col0 + c`, and C may end within the 8. "
            "Test each of them: `col0 + c + e < n`.",
            trials[1].about + ".",
        )
    if (stored & ~inside).any():
        raise _too_much(trial, stored & ~inside, trials)
    if (stored == whole).all() and not (whole == inside).all():
        raise Refused(
            "Tiles that reach beyond C are skipped, and with them their part inside C. Guard element by "
            "element, not tile by tile.",
            trial.where,
        )
    if any(f.kind == "out_of_bounds" and f.array not in ("A", "B") for f in trial.report.errors):
        raise _too_much(trial, np.zeros_like(inside), trials)
    check_findings(trial)
    if (stored != inside).any():
        row, column = map(int, np.argwhere(stored != inside)[0])
        only_whole = inside.copy()
        only_whole[:, n // LANE_COLUMNS * LANE_COLUMNS :] = False
        if (stored == only_whole).all():
            raise Refused(
                "A lane stores its 8 columns only where all of them are in C. Of those that hang over the "
                "edge the first ones belong to C: test each element, `col0 + c + e < n`.",
                f"First: `C[{row}, {column}]`. {trial.about}.",
            )
        raise Refused("Some elements of C are never stored.", f"First: `C[{row}, {column}]`. {trial.about}.")


# The keys say whether rows, and whether columns, are guarded by the place in the tile.
BY_PLACE_IN_TILE = {
    (True, True): "add `row0` to the row and `col0` to the column",
    (True, False): "add `row0` to the row",
    (False, True): "add `col0` to the column",
}


def _guarded_by_place_in_tile(trial: WarpTrial, rows: bool, columns: bool) -> bool:
    """Tell whether a guard that forgets where the tile begins lets through just what is stored."""
    m, n, _ = trial.shape
    row, column = np.indices(trial.after["C"].shape)
    expected = ((row % SIDE if rows else row) < m) & ((column % SIDE if columns else column) < n)
    launched = [blocks * SIDE for blocks in trial.grid[::-1]]
    expected &= (row < launched[0]) & (column < launched[1])
    return bool((trial.touched("C") == expected).all())


def _guarded_by_first_column(trial: WarpTrial) -> bool:
    """Tell whether all 8 columns of a lane are stored wherever the first is in C, even outside its array."""
    m, n, _ = trial.shape
    width, ends = trial.after["C"].shape[1], -(-n // LANE_COLUMNS) * LANE_COLUMNS
    expected = np.zeros_like(trial.after["C"], bool)
    expected[:m, :ends] = True
    outside = m * max(0, ends - width)
    return bool((trial.touched("C") == expected).all()) and trial.strays("C") == outside


def _clamps(kernel) -> bool:
    """Tell whether `min` limits a place in C to the last row or column."""
    written = Written(kernel)
    return any(store.index.calls("min") for store in written.stores(written.parameters[-1]))


def _m_and_n_swapped(trial: WarpTrial) -> bool:
    """Tell whether just the part of C's array above row n and left of column m is stored."""
    m, n, _ = trial.shape
    columns, rows = (blocks * SIDE for blocks in trial.grid)
    expected = np.zeros_like(trial.after["C"], bool)
    expected[: min(n, rows), : min(m, columns)] = True
    return bool((trial.touched("C") == expected).all())


def _too_much(trial: WarpTrial, surplus: np.ndarray, trials: Sequence[WarpTrial]) -> Refused:
    """Return what it means that elements beside C are stored: ``surplus``, or others outside its array."""
    m, n, _ = trial.shape
    row, column = map(int, np.argwhere(surplus)[0]) if surplus.any() else (m, 0)
    where = f"{trial.about}: first element too many is `C[{row}, {column}]`."
    if not any(each.strays("C") for each in trials) and _to_the_end(trial, surplus):
        return Refused(
            "The guard lets lanes through up to the end of C's array: `C.shape` includes the padding. Rows "
            "end at `m`, columns at `n`; the rest is not yours.",
            where,
        )
    if surplus.any() and not (surplus[m + 1 :].any() or surplus[:, n + 1 :].any()):
        return Refused(
            "The guard lets one row or column too many through: `<=` where `<` is meant. The last row is "
            "m - 1, the last column n - 1.",
            where,
        )
    for guarded, other, beyond in (
        ("Rows", "columns: C ends at `n`", surplus[m:]),
        ("Columns", "rows: C ends at `m`", surplus[:, n:]),
    ):
        if surplus.any() and not beyond.any():
            return Refused(f"{guarded} are guarded, but not {other}, and what is beyond is not yours.", where)
    remedy = (
        "Guard each element: `if row0 + r < m and col0 + c + e < n`."
        if calls_of(trial.kernel, "wmma_store")
        else "Put it into shared memory first, and from there store only what is inside C."
    )
    return Refused(
        "The whole fragment is stored, also where C has ended: there it lands in the padding, in the next "
        f"row or behind the array. {remedy}",
        where,
    )


def _to_the_end(trial: WarpTrial, surplus: np.ndarray) -> bool:
    """Tell whether the last row or column stored is that of the array or the launch, so not a slip by one."""
    launched = (blocks * SIDE for blocks in trial.grid[::-1])
    last_row, last_column = (min(sizes) - 1 for sizes in zip(surplus.shape, launched))
    return bool(surplus[last_row].any() or surplus[:, last_column].any())


# ---- what it holds, and where it came from -----------------------------------------------------------------


def _check_numbers(trial: WarpTrial) -> None:
    if not trial.wrong.any():
        return
    m, n, _ = trial.shape
    if not (m % SIDE or n % SIDE) and trial.equals(tiles_transposed(trial.expected)):
        raise Refused(
            "Every tile of C arrives transposed: stored as `COL_MAJOR`, or read from `Cs` with row and "
            "column swapped.",
            trial.where,
        )
    if filled_from(trial.kernel, ACCUMULATORS) & {trial.own_name("C")}:
        remedy = (
            "In `Cs` each has its row and column again: take `Cs[r, c + e]`."
            if calls_of(trial.kernel, "wmma_store")
            else "`wmma_store` puts them into `Cs`; take them from there."
        )
        raise Refused(
            f"`{ACCUMULATORS}[e]` is not `C[row0 + r, col0 + c + e]`: it is not specified which lane holds "
            f"which element. {remedy}",
            trial.where,
        )
    raise Refused(
        "The numbers are wrong: do the rows and columns of the results arrive in their places?", trial.where
    )


def _check_route(trial: WarpTrial) -> None:
    """Refuse results that did not go through shared memory, but straight from a lane's registers."""
    if not calls_of(trial.kernel, "wmma_store"):
        raise Refused(
            "The numbers are right, but the kernel takes it for granted which lane holds which element. That "
            "is not specified: another GPU may distribute them in another way. `wmma_store` knows.",
            trial.line(trial.accesses("store", "C")["line"].iloc[0]),
        )
