"""Checks ``by_hand``: a warp's product with ldmatrix and mma.sync, stored by the lanes that hold it."""

import re
from collections.abc import Callable, Iterator

import numpy as np

from gemm_course.checks.core import Refused, Written, exercise, kernel_of, nothing_yet
from gemm_course.checks.engines.wmma import (
    SIDE,
    WarpTrial,
    calls_of,
    check_findings,
    on_tensor_cores,
    passed,
    tiles_transposed,
    try_warps,
    within_shared,
)
from lockstep import Finding

ARGUMENTS = ("k", "A", "B", "C")
# The sizes are (m, n, k).
SIZES = ((16, 16, 16), (16, 32, 48), (32, 16, 32))
LANES = np.arange(32)
# A step of 16 along k needs two calls of ldmatrix.
LOADS = 2
# A lane takes 128 bits of an ldmatrix of four matrices.
FRAGMENT = 128
# The pattern finds a slice that takes every second element.
EVERY_SECOND = re.compile(r":\s*2\s*\]")


@exercise(
    start="load both operands with `ldmatrix_x4` and its transposing form, multiply twice, store `acc` to C.",
    hints=(
        "The 16 rows of a tile have two pieces of 8 values. Lanes 0 to 15 name the left piece of rows 0 "
        "to 15, "
        "lanes 16 to 31 the right one: row `lane % 16`, column `lane // 16 * 8`. Both tiles alike.",
        "A lies in `As` as a fragment wants it: `ldmatrix_x4`. A fragment of B holds pairs down a "
        "column, but "
        "`Bs` has rows: `ldmatrix_x4_trans`.",
        "`b[0:4]` are columns 0 to 7 of B, `b[4:8]` columns 8 to 15: `mma_m16n8k16(acc[0], a, b[0:4])`, and "
        "`acc[1]` with the others.",
        "[[accumulator_owner]] the other way round: `acc[j, e]` belongs to row `lane // 4 + e // 2 * 8` and "
        "column `j * 8 + lane % 4 * 2 + e % 2` of the tile.",
    ),
)
def by_hand(kernel):
    """A kernel (k, A, B, C): a warp multiplies with mma.sync, and each lane stores its own results."""
    kernel = kernel_of(kernel, ARGUMENTS)
    begun = any(calls_of(kernel, name) for name in ("ldmatrix", "mma_"))
    for size in SIZES:
        trial = try_warps(kernel, ARGUMENTS, *size)
        if not begun and not trial.lanes("store", "C"):
            raise nothing_yet()
        if not begun and not trial.got.any():
            raise Refused(
                "The stores are there. Now load both operands and multiply twice: C is 0.", trial.where
            )
        _check_halves(trial)
        _refuse_findings(trial)
        _check_numbers(trial)
        on_tensor_cores(trial)
        within_shared(trial, 2 * 2 * SIDE * (SIDE + 8))
    return (
        f"Right for {len(SIZES)} sizes: the Tensor Cores do every multiply-add, and each lane stores its "
        f"eight results itself, without a detour through shared memory.{_loads(trial)}{_stores(trial)}"
    )


def _check_halves(trial: WarpTrial) -> None:
    """Refuse products that read one half of `b` twice, by its source: their numbers may be a mixture."""
    given = passed(trial.kernel, "mma_m16n8k16", 2)
    if trial.wrong.any() and any(EVERY_SECOND.search(half) for half in given):
        raise Refused(
            "A step in the slice takes one value of each pair. The halves of `b` lie one after the other: "
            "`b[0:4]` and `b[4:8]`.",
            trial.where,
        )
    if trial.wrong.any() and len(given) == 2 and given[0] == given[1]:
        raise Refused(
            f"Both products take `{given[0]}`, the same 8 columns of B. The other 8 are in the other half of "
            "`b`.",
            trial.where,
        )


def _refuse_findings(trial: WarpTrial) -> None:
    finding = next(iter(trial.report.errors), None)
    if finding and finding.kind == "misaligned_access" and _counts_columns(finding):
        raise Refused(
            "Row and column are swapped: `ldmatrix` takes (row, column), the row `lane % 16` first. "
            + finding.message,
            f"{trial.line(finding)}. {trial.about}.",
        )
    if finding and finding.kind == "misaligned_access":
        raise Refused(
            "`ldmatrix` takes (row, column), and a piece starts at column 0 or 8 of the tile, 16 bytes "
            f"apart. A column counts FP16 values. {finding.message}",
            f"{trial.line(finding)}. {trial.about}.",
        )
    if finding and finding.kind == "out_of_bounds" and finding.array == trial.own_name("C"):
        raise Refused(
            "A lane stores outside C: the warp's tile has 16 rows and 16 columns. Work out where `acc[1, "
            "3]` of "
            f"lane 31 goes: to row 15, column 15. {finding.message}",
            f"{trial.line(finding)}. {trial.about}.",
        )
    if finding and finding.kind == "warp_divergence":
        raise Refused(
            "All 32 lanes make each of these calls together, in no branch; for `ldmatrix` each names its "
            "own row. " + finding.message,
            f"{trial.line(finding)}. {trial.about}.",
        )
    if finding and finding.array == trial.own_name("C"):
        raise Refused(f"{_stored_twice(trial)} {finding.message}", f"{trial.line(finding)}. {trial.about}.")
    check_findings(trial)


def _counts_columns(finding: Finding) -> bool:
    """Tell whether lane 1 names row 0, column 1, where it should name row 1, column 0."""
    return finding.element == (0, 1) and (1, 0, 0) in finding.threads


def _stored_twice(trial: WarpTrial) -> str:
    """Return the likely reason why two lanes store one element, from the rows and columns stored."""
    stored = ~np.isnan(trial.got[:SIDE, :SIDE])
    if stored.all() and (forgotten := _corner_forgotten(trial)):
        return forgotten
    rows, columns = stored.any(1).sum(), stored.any(0).sum()
    if rows == HALF + 1:
        return "A lane's two rows are one apart here: places 2 and 3 lie *8* rows below, `e // 2 * 8`."
    if columns == HALF + 1:
        return "`acc[1]` begins one column after `acc[0]` here: it lies *8* columns further on, `j * 8`."
    if columns == HALF + 2:
        return "A lane's pair begins at `lane % 4 * 2`: four lanes share a row of 8, two neighbours each."
    return "Two lanes store the same element of C."


def _corner_forgotten(trial: WarpTrial) -> str:
    """Return what to say if all blocks store in the first tiles of C, or ""."""
    for axis, name in ((0, "row"), (1, "column")):
        if np.isnan(trial.got).all(1 - axis)[SIDE:].any():
            return (
                f"Two *blocks* store the same element: no {name} of C from {SIDE} on is stored. The {name} "
                f"in the store lacks the block's first, `{name[:3]}0`."
            )
    return ""


def _stores(trial: WarpTrial) -> str:
    """Return a remark on results that are stored more than once, or ""."""
    m, n, _ = trial.shape
    times = trial.lanes("store", "C") / (m * n)
    if times <= 1:
        return ""
    return (
        f" But each element of C is stored {times:g} times, and only the last counts: put the stores behind "
        "the loop along k."
    )


def _loads(trial: WarpTrial) -> str:
    """Return a remark on operands that are not loaded by ldmatrix, or ""."""
    rows = trial.accesses("load")
    m, n, k = trial.shape
    wide = rows[rows["bits"] == FRAGMENT]["requests"].sum()
    loads = rows["requests"].sum() / (m * n // SIDE**2 * k // SIDE)
    if wide and loads <= LOADS:
        return ""
    return f" But shared memory is asked {loads:g} times per step, where two `ldmatrix_x4` are enough."


# ---- what wrong numbers mean -------------------------------------------------------------------------------

HALF = SIDE // 2
# The four matrices of an ldmatrix go to these places in a fragment.
MATRICES = ((0, 0), (HALF, 0), (0, HALF), (HALF, HALF))


def _tiles(matrix: np.ndarray) -> np.ndarray:
    """Return a view of a matrix as tiles of 16 by 16: (tiles down, tiles across, 16, 16)."""
    rows, columns = (size // SIDE for size in matrix.shape)
    return matrix.reshape(rows, SIDE, columns, SIDE).swapaxes(1, 2)


def _each_tile(matrix: np.ndarray, change: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Return ``matrix`` with ``change`` applied to each of its tiles, (..., 16, 16)."""
    return change(_tiles(matrix)).swapaxes(1, 2).reshape(matrix.shape)


def _named(rows: np.ndarray, columns: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Return what a fragment holds if the lanes name these places."""

    def change(tiles: np.ndarray) -> np.ndarray:
        left = np.zeros_like(tiles)
        for number, (y, x) in enumerate(MATRICES):
            for row in range(HALF):
                lane = number * HALF + row
                from_x = columns[lane]
                left[..., y + row, x : x + HALF] = tiles[..., rows[lane], from_x : from_x + HALF]
        return left

    return change


def _turned(tiles: np.ndarray) -> np.ndarray:
    """Return the tile with each 8 by 8 quarter transposed in its place."""
    split = tiles.reshape(*tiles.shape[:-2], 2, HALF, 2, HALF)
    return split.swapaxes(-1, -3).reshape(tiles.shape)


def _columns_exchanged(tiles: np.ndarray) -> np.ndarray:
    return np.roll(tiles, HALF, axis=-1)


def _rows_exchanged(tiles: np.ndarray) -> np.ndarray:
    return np.roll(tiles, HALF, axis=-2)


WRONG_PLACES = (
    (
        "lanes name the pieces as they copied them, `lane // 2`. `ldmatrix` takes its first matrix from "
        "lanes 0 "
        "to 7, the next from 8 to 15: eight rows one below the other each",
        (LANES // 2, LANES % 2 * HALF),
    ),
    (
        "lanes 8 to 15 name the right piece of rows 0 to 7, but the second matrix is the lower left one: row "
        "`lane % 16`, and the right pieces from lane 16 on",
        (LANES % 8 + LANES // 16 * 8, LANES // 8 % 2 * HALF),
    ),
    (
        "lanes 16 to 31 name the same left pieces again: they name the right ones, column 8",
        (LANES % 16, LANES * 0),
    ),
    (
        "lanes 8 to 15 name rows 0 to 7 again. A tile has 16 rows: `lane % 16`",
        (LANES % 8, LANES // 16 * HALF),
    ),
    (
        "all lanes name the same address. That was WMMA; `ldmatrix` takes a row from each lane",
        (LANES * 0, LANES * 0),
    ),
)


def _likely(A: np.ndarray, B: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield (message, C) for each likely mistake: what C would be."""
    C = A @ B
    yield "C is 0 everywhere: no product was added to the accumulators that you store.", 0 * C
    yield (
        "The right half of each tile is 0: the product into `acc[1]` is missing, with the other half of `b`.",
        _each_tile(C, lambda tiles: tiles * (np.arange(SIDE) < HALF)),
    )
    yield (
        "The left half of each tile is 0: the product into `acc[0]` is missing.",
        _each_tile(C, lambda tiles: tiles * (np.arange(SIDE) >= HALF)),
    )
    yield (
        "B's fragment is loaded without transposing: it holds pairs along a row, and `mma_m16n8k16` "
        "wants pairs "
        "down a column. Use `ldmatrix_x4_trans`.",
        A @ _each_tile(B, _turned),
    )
    yield (
        "A's fragment is loaded by the transposing form. `As` has rows of A, as the fragment wants them.",
        _each_tile(A, _turned) @ B,
    )
    yield (
        "The two forms are swapped: A is loaded as it lies, B by `ldmatrix_x4_trans`.",
        _each_tile(A, _turned) @ _each_tile(B, _turned),
    )
    for words, places in WRONG_PLACES:
        wrong_a, wrong_b = (_each_tile(matrix, _named(*places)) for matrix in (A, B))
        yield f"For A, {words}.", wrong_a @ B
        yield f"For B, {words}.", A @ wrong_b
        yield f"For both operands, {words}.", wrong_a @ wrong_b
    yield (
        "The halves of C are exchanged: `b[0:4]` are columns 0 to 7, so they belong to `acc[0]`.",
        _each_tile(C, _columns_exchanged),
    )
    yield (
        "Rows 0 to 7 and 8 to 15 of C are exchanged: places 0 and 1 of a lane are the upper row.",
        _each_tile(C, _rows_exchanged),
    )
    yield (
        "Every 8 × 8 quarter of C arrives transposed: the row is `lane // 4`, the pair's column `lane % "
        "4 * 2`.",
        _each_tile(C, _turned),
    )
    yield "Every tile of C arrives transposed: row and column are swapped in the store.", tiles_transposed(C)
    yield (
        "In each row of C neighbours are swapped: place 0 is the left one of a pair.",
        C[:, np.arange(C.shape[1]) ^ 1],
    )
    yield (
        "Places 1 and 2 of each lane are swapped: 0 and 1 are neighbours in a row, 2 and 3 lie 8 rows below.",
        _each_tile(C, _by_places_swapped),
    )
    yield (
        "Both products are added to the same accumulators: the left and the right half of C are one sum.",
        _each_tile(C, _both_in_one),
    )
    yield (
        "Only the last 16 steps along k count: the accumulators start anew in every iteration.",
        A[:, -SIDE:] @ B[-SIDE:],
    )
    yield "C is 2 times too large: each product is added twice.", 2 * C
    for message, place in WRONG_STORES:
        yield message, _each_tile(C, _stored_at(place))


WRONG_STORES = (
    (
        "Results are stored where the lane copied, row `lane // 2`. But `mma.sync` deals them in another "
        "way: `acc[j, e]` belongs where [[accumulator_owner]] says.",
        lambda lane, j, e: (lane // 2, lane % 2 * HALF + j * 4 + e),
    ),
    (
        "A lane's pair is stored 4 columns apart. The two are neighbours: column `lane % 4 * 2 + e % 2`.",
        lambda lane, j, e: (lane // 4 + e // 2 * HALF, j * HALF + lane % 4 + e % 2 * 4),
    ),
    (
        "Results are stored as if 8 lanes lay one below the other. The lanes go along a row first, four to "
        "a row: row `lane // 4`, pair `lane % 4`.",
        lambda lane, j, e: (lane % 8 + e // 2 * HALF, j * HALF + lane // 8 * 2 + e % 2),
    ),
)


def _by_places_swapped(tiles: np.ndarray) -> np.ndarray:
    """Return the tile with row g, column 2i + 1 and row g + 8, column 2i exchanged."""
    left = tiles.copy()
    left[..., :HALF, 1::2], left[..., HALF:, ::2] = tiles[..., HALF:, ::2], tiles[..., :HALF, 1::2]
    return left


def _stored_at(place: Callable[[int, int, int], tuple[int, int]]) -> Callable[[np.ndarray], np.ndarray]:
    """Return the tile with `acc[j, e]` of each lane stored in the row and column that ``place`` gives."""

    def change(tiles: np.ndarray) -> np.ndarray:
        stored = np.zeros_like(tiles)
        for lane, j, e in np.ndindex(32, 2, 4):
            row, column = lane // 4 + e // 2 * HALF, j * HALF + lane % 4 * 2 + e % 2
            stored[(..., *place(lane, j, e))] = tiles[..., row, column]
        return stored

    return change


def _both_in_one(tiles: np.ndarray) -> np.ndarray:
    one = tiles[..., :HALF] + tiles[..., HALF:]
    return np.concatenate([one, 0 * one], axis=-1)


def _check_numbers(trial: WarpTrial) -> None:
    if not trial.wrong.any():
        return
    _refuse_exchanged(trial)
    missing = np.isnan(trial.got)
    if missing.any() and not missing.all():
        raise Refused(_missing(missing), trial.where)
    if missing.all() and trial.lanes("load", "C"):
        raise Refused(
            "C is read, and holds anything before the kernel has stored in it: `=`, not `+=`.", trial.where
        )
    if missing.all():
        raise Refused("Nothing is stored in C: each lane stores its eight results.", trial.where)
    if not _multiplies_in_the_loop(trial.kernel):
        raise Refused(
            "The products stand behind the loop along k, so only the last tiles are multiplied. Put them "
            "into the loop, after the loads.",
            trial.where,
        )
    for message, prediction in _likely(trial.A, trial.B):
        if trial.equals(prediction):
            raise Refused(message, trial.where)
    raise Refused(
        "The numbers are wrong. Check what each lane names, which half of `b` goes with which `acc[j]`, and "
        "where `acc[j, e]` is stored.",
        trial.where,
    )


def _multiplies_in_the_loop(kernel) -> bool:
    """Tell whether a product is in a loop with the tiles' barriers, or there is no such loop."""
    fetching = [loop.text for loop in Written(kernel).loops if loop.calls("syncwarp")]
    return not fetching or not calls_of(kernel, "mma_") or any("mma_" in text for text in fetching)


def _missing(missing: np.ndarray) -> str:
    tile = missing[:SIDE, :SIDE]
    if tile[HALF:].all():
        return (
            "The lower half of each tile is never stored: places 2 and 3 of a lane lie 8 rows below 0 and 1."
        )
    if tile[:, HALF:].all():
        return "The right half of each tile is never stored: that is `acc[1]`, 8 columns further on."
    if tile[:, 1::2].all():
        return "Every second column is never stored: a lane has two neighbours in a row."
    return (
        f"{tile.sum()} of the 256 elements of a tile are never stored: two lanes store the same place, "
        f"or one "
        "too few."
    )


def _refuse_exchanged(trial: WarpTrial) -> None:
    for product in calls_of(trial.kernel, "mma_m16n8k16"):
        if product.at(1).startswith("b") and product.at(2).startswith("a"):
            raise Refused(
                "A and B are swapped in `mma_m16n8k16`: first the accumulators, then A, then B.",
                product.where,
            )
