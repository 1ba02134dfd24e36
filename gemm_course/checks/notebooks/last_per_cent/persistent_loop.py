"""Checks ``persistent_loop``: blocks that stay, and take every gridDim.x-th tile of C."""

import numpy as np

from gemm_course.checks.core import Refused, check_begun, exercise, kernel_of
from gemm_course.checks.engines.lessons import no_float64
from gemm_course.checks.engines.trial import Trial, try_kernel

ARGUMENTS = ("m", "n", "k", "A", "B", "C")
SIDE = 8
# The sizes are (m, n, k, blocks).
SIZES = ((24, 40, 20, 4), (13, 50, 8, 5), (40, 9, 3, 1), (16, 16, 5, 9), (17, 24, 9, 6))


@exercise(
    start="begin with `tile = cuda.blockIdx.x` and `while tile < count:`.",
    hints=(
        "There are `(m + 7) // 8` rows of tiles and `(n + 7) // 8` columns; `count` is their product.",
        "Tiles are numbered row by row: tile t is in row `t // tile_cols` of tiles and in column `t % "
        "tile_cols`. A tile is 8 elements wide and high.",
        "A tile's sums begin at `float32(0)`. After the store: `tile += cuda.gridDim.x`.",
    ),
)
def persistent_loop(kernel):
    """A kernel (m, n, k, A, B, C) of blocks of 8 by 8 threads, fewer than there are tiles of 8 by 8."""
    kernel = kernel_of(kernel, ARGUMENTS)
    trials = [_try(kernel, *size) for size in SIZES]
    check_begun(kernel, *(trial.report for trial in trials))
    for trial in trials:
        _check(trial)
    return (
        f"Right for {len(SIZES)} shapes, with 1 to 9 blocks: each tile has one block, a block has one tile "
        "after the other, and what it reads is read once per tile."
    )


def _try(kernel, m: int, n: int, k: int, blocks: int) -> Trial:
    rng = np.random.default_rng((m, n, k))
    A, B = (rng.uniform(1, 2, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    C = np.full((m, n), np.nan, np.float32)
    about = f"With m = {m}, n = {n}, k = {k} and {blocks} block{'s' * (blocks > 1)}"
    return try_kernel(kernel, ARGUMENTS, blocks, (SIDE, SIDE), m, n, k, A, B, C, about=about, step_limit=1000)


def _check(trial: Trial) -> None:
    C, exact = trial.after["C"], trial.before["A"].astype(float) @ trial.before["B"]
    wrong = ~np.isclose(C, exact, rtol=1e-4, atol=1e-4)
    where = trial.first_wrong("C", wrong, exact) if wrong.any() else f"{trial.about}."
    if trial.lanes("load", "C"):
        raise Refused("C is read, and there may be anything in it: store the sum, add nothing to it.", where)
    _check_who_stores(trial, where)
    for finding in trial.report.errors:
        if finding.kind == "global_race":
            raise Refused(
                "Tiles overlap: two blocks store the same element. A tile is 8 elements wide and high.", where
            )
        raise Refused(finding.message, f"{trial.line(finding)}. {trial.about}.")
    if wrong.any():
        raise Refused(_likely(trial, wrong), where)
    no_float64(trial)
    down, across = (-(-size // SIDE) for size in C.shape)
    loads, needed = (
        trial.lanes("load", "A", "B"),
        trial.before["A"].size * across + trial.before["B"].size * down,
    )
    # A kernel without tiles in shared memory makes this many loads, and may do so.
    one_by_one = 2 * C.size * trial.before["k"]
    if loads > needed and loads != one_by_one:
        raise Refused(
            "The results are right, but there is work for tiles that C does not have, or for tiles that are "
            "done already. How many are there, and in how many columns?",
            f"{trial.about}: {loads:,} loads, {needed:,} are needed.",
        )


def _check_who_stores(trial: Trial, where: str) -> None:
    """Refuse elements that are stored more than once, and tiles that no block computes."""
    stored, elements = trial.lanes("store", "C"), trial.after["C"].size
    blocks, never = trial.grid[0], np.isnan(trial.after["C"])
    if blocks == 1:
        return
    if stored == blocks * elements:
        raise Refused(
            "Every block computes all tiles. Block b must begin with tile b, and go on by as many tiles as "
            "there are blocks.",
            where,
        )
    if stored > elements and trial.error("global_race") is None:
        raise Refused(
            "A thread stores an element of C more than once: the store is inside the loop over k. Store "
            "after "
            "it, once per tile.",
            where,
        )
    if stored > elements:
        raise Refused(
            "Some tiles are computed by several blocks. From one of its tiles to the next a block must go on "
            "by the number of blocks, `cuda.gridDim.x`.",
            where,
        )
    if never.any() and _whole_tiles(never, beyond=blocks):
        if "132" in trial.written.texts:
            raise Refused(
                "Each block computes one tile only: it goes on by 132, but there are not always 132 blocks. "
                "Their number is `cuda.gridDim.x`.",
                where,
            )
        raise Refused(
            "Each block computes one tile and ends. There are fewer blocks than tiles: it must go on while "
            "there are tiles left.",
            where,
        )


def _whole_tiles(never: np.ndarray, beyond: int) -> bool:
    """Tell whether the elements that nobody stored are those of all tiles from number ``beyond`` on."""
    across = -(-never.shape[1] // SIDE)
    rows, columns = np.indices(never.shape) // SIDE
    return bool((never == (rows * across + columns >= beyond)).all())


def _likely(trial: Trial, wrong: np.ndarray) -> str:
    m, n, *_ = trial.before.values()
    C, never = trial.after["C"], np.isnan(trial.after["C"])
    rows, columns = np.indices(C.shape) // SIDE
    if never.any():
        if (never == (columns >= n // SIDE)).all() or (never == (rows >= m // SIDE)).all():
            return "Tiles at the edge of C that are not full are forgotten: round the number of tiles up."
        if (never == ((rows >= m // SIDE) | (columns >= n // SIDE))).all():
            return "Tiles at the edges of C that are not full are forgotten: round both numbers of tiles up."
        if (wrong & ~never).any() and {"break", "continue", "return"} & trial.written.texts:
            return (
                "A thread that leaves the loop leaves the others without what it fetches: all threads of a "
                "block must call `add_products` for each of its tiles. Only the store has a condition."
            )
        return (
            "Some elements of C are never stored. Does a tile's number lead to its place? Tile t is in row "
            "`t // tile_cols` of tiles and in column `t % tile_cols`. And does the number go on by "
            "`cuda.gridDim.x`?"
        )
    first = rows * -(-n // SIDE) + columns < trial.grid[0]
    A, B, k = (trial.before[name] for name in "ABk")
    for words, begins, all_in_all in _LIKELY:
        steps = [_step(A, B, k0) for k0 in begins(k)]
        if np.allclose(C, all_in_all(np.array([np.zeros_like(C), *steps])), rtol=1e-3, atol=1e-4):
            return words
    if _one_value_per_tile(C):
        return (
            "All elements of a tile are the same: x and y are swapped in `row` and `col`. `add_products` "
            "stores "
            "`As[y, x]`, so y goes with the row, x with the column."
        )
    if not (wrong & first).any():
        return (
            "Each block's first tile is right, and what comes later is too large: the sums must begin at 0 "
            "in every tile, not only in the first."
        )
    return "Not all elements of C are right."


def _step(A: np.ndarray, B: np.ndarray, k0: int) -> np.ndarray:
    """Return what `add_products` adds to C for the steps along k from k0 on."""
    return A[:, k0 : k0 + SIDE] @ B[k0 : k0 + SIDE]


def _added(steps: np.ndarray) -> np.ndarray:
    return steps.sum(axis=0)


def _doubled(steps: np.ndarray) -> np.ndarray:
    total = np.zeros_like(steps[0])
    for step in steps:
        total += total + step
    return total


def _one_value_per_tile(C: np.ndarray) -> bool:
    """Tell whether the elements of each tile are equal, and the tiles are not."""
    tiles = [
        C[row : row + SIDE, col : col + SIDE]
        for row in range(0, C.shape[0], SIDE)
        for col in range(0, C.shape[1], SIDE)
    ]
    return all(np.ptp(tile) == 0 for tile in tiles) and np.ptp(C) > 0


# Each entry has a message, k -> where the steps begin, and the products of the steps -> C.
_LIKELY = (
    (
        "C is 0: `add_products` is never called, or what it returns is lost. Keep it: "
        "`acc = add_products(acc, ...)`.",
        lambda k: (),
        _added,
    ),
    (
        "The last steps along k are missing, where k is no multiple of 8: `range(0, k, 8)` has them. "
        "`add_products` puts zeros past k.",
        lambda k: range(0, k // SIDE * SIDE, SIDE),
        _added,
    ),
    (
        "`k0` must go on by 8, not by 1: `add_products` adds the 8 steps from k0 on. `range(0, k, 8)`.",
        lambda k: range(k // SIDE),
        _added,
    ),
    (
        "`k0` goes on by 1, and each call adds 8 steps along k: from k0 = 0 in steps of 8, `range(0, k, 8)`.",
        lambda k: range(-(-k // SIDE)),
        _added,
    ),
    (
        "Steps along k are added again and again: `add_products` adds 8 at a time, so k0 must go on by 8, "
        "`range(0, k, 8)`.",
        range,
        _added,
    ),
    (
        "What was added before is added again in each step: `add_products` returns the whole sum so far. "
        "`acc = add_products(acc, ...)`, not `+=`.",
        lambda k: range(0, k, SIDE),
        _doubled,
    ),
)
