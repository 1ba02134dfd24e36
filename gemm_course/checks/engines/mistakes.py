"""Predicts the results of likely mistakes in a tiled kernel, by which they are recognised."""

from collections.abc import Callable, Sequence

import numpy as np

from .common_mistakes import Mistake
from .problem import Problem

Prediction = Callable[[Problem], np.ndarray | None]


def result(q: Problem, AB: np.ndarray) -> np.ndarray:
    """Return the C that a kernel stores if its product is `AB`, (m, n)."""
    return q.alpha * AB + (q.beta * q.C if q.beta else 0)


# ---- results that land in the wrong place ------------------------------------------------------------------


def taken_from(
    block: tuple[int, int],
    row: Callable[[int], int] | None = None,
    column: Callable[[int], int] | None = None,
) -> Prediction:
    """Return a prediction of C where rows or columns of a block come from other places of its tiles.

    block: BM and BN. row: a row of the block's results -> the row of the tile of A that it was computed from.
    column: the same for columns and the tile of B. The prediction is None if one of these lies outside.
    """
    rows, columns = (
        [source(i) for i in range(size)] if source else None for size, source in zip(block, (row, column))
    )
    if any(max(taken) >= size for taken, size in zip((rows, columns), block) if taken):
        return lambda q: None
    return mixed(
        block,
        None if rows is None else np.eye(block[0])[rows],
        None if columns is None else np.eye(block[1])[:, columns],
    )


def added_up(block: tuple[int, int], each: tuple[int, int]) -> Prediction:
    """Return a prediction of C where every result of a thread holds the sum of them all.

    block: BM and BN. each: TM and TN, the rows and columns of a thread's results.
    """
    (BM, BN), (TM, TN) = block, each
    down, right = (np.kron(np.eye(size // t), np.ones((t, t))) for size, t in ((BM, TM), (BN, TN)))
    return mixed(block, down, right)


def mixed(block: tuple[int, int], down: np.ndarray | None, right: np.ndarray | None) -> Prediction:
    """Return a prediction of C in which every tile is down @ (that tile of A @ B) @ right.

    block: BM and BN. A matrix that is None is left out.
    """

    def predict(q: Problem) -> np.ndarray:
        (BM, BN), blocks = block, (-(-q.m // block[0]), -(-q.n // block[1]))
        full = np.zeros((blocks[0] * BM, blocks[1] * BN))
        full[: q.m, : q.n] = q.AB
        tiles = full.reshape(blocks[0], BM, blocks[1], BN)
        if down is not None:
            tiles = np.einsum("xr,ardc->axdc", down, tiles, optimize=True)
        if right is not None:
            tiles = np.einsum("ardc,cy->ardy", tiles, right, optimize=True)
        return result(q, tiles.reshape(full.shape)[: q.m, : q.n])

    return predict


Test = Callable[[np.ndarray], np.ndarray]


def only_stored(block: tuple[int, int], row: Test | None = None, column: Test | None = None) -> Callable:
    """Return ``written`` for a GuardMistake by which only these rows and columns of each block are stored.

    block: BM and BN. row, column: rows (columns) within the block, from 0 to BM - 1 -> booleans; all if None.
    """
    BM, BN = block

    def written(r, c, q: Problem, geometry) -> np.ndarray:
        stored = (r < q.m) & (c < q.n)
        if row:
            stored = stored & row(r % BM)
        return stored & column(c % BN) if column else stored

    return written


def among(places: Sequence[int]) -> Test:
    """Return a condition for :func:`only_stored` that holds for these places alone."""
    return lambda place: np.isin(place, list(places))


# ---- the loop over k ---------------------------------------------------------------------------------------


def along_k(width: int, name: str) -> tuple[Mistake, ...]:
    """Return the mistakes in the loop over k for tiles of depth `width`, which kernels call `name`."""

    def first_of_k(length):
        """Return a prediction of C from `length(q)` steps along k alone; None where there are no others."""
        return lambda q: None if length(q) >= q.k else result(q, q.A[:, : length(q)] @ q.B[: length(q)])

    def last_tile(q):
        first = (q.k - 1) // width * width
        return None if first <= 0 else result(q, q.A[:, first:] @ q.B[first:])

    def without_last_steps(q):
        """Compute C without the last step of every whole tile."""
        kept = np.arange(q.k) % width != width - 1
        return result(q, q.A[:, kept] @ q.B[kept]) if q.k > width else None

    def without_first_steps(q):
        """Compute C without the first step of every tile."""
        kept = np.arange(q.k) % width != 0
        return result(q, q.A[:, kept] @ q.B[kept]) if q.k > width else None

    def in_single_steps(q):
        """Compute C where a tile begins at every step along k, so that most products are added repeatedly."""
        times = np.minimum(np.arange(q.k) + 1, width)
        return result(q, q.A * times @ q.B)

    def stored_every_time(q):
        """Compute C stored after every tile, each time with what the tile before left there as the old C."""
        if not q.beta or q.k <= width:
            return None
        C = q.C
        for end in range(width, q.k + width, width):
            C = q.alpha * (q.A[:, :end] @ q.B[:end]) + q.beta * C
        return C

    def stale(q):
        """Compute C where the part of the last tile past k holds what the tile before it held there."""
        left = q.k // width * width
        if left == q.k or q.k < width:
            return None
        old = slice(q.k - width, left)
        return result(q, q.AB + q.A[:, old] @ q.B[old])

    def counted_in_tiles(q):
        """Compute C where each tile begins only one step along k after the tile before."""
        tiles, p = -(-q.k // width), np.arange(q.k)
        times = [np.count_nonzero((p[:tiles] <= at) & (at < p[:tiles] + width)) for at in p]
        return result(q, q.A * times @ q.B) if tiles > 1 else None

    return (
        Mistake(
            f"Only whole tiles are used: `k // {name}` drops the rest of k. Round up, and fill the last tile "
            "with zeros.",
            first_of_k(lambda q: q.k // width * width),
        ),
        Mistake(
            f"Only the first tile along k counts. Either the loop does not go along k in steps of {name}, "
            f"or its variable is multiplied by {name} once too often: in `range(0, k, {name})` it already "
            "counts elements.",
            first_of_k(lambda q: width),
        ),
        Mistake(
            "There are as many tiles as fit along n, and that is what `gridDim.x` counts. Tiles lie along k: "
            f"`range(0, k, {name})`.",
            first_of_k(lambda q: -(-q.n // width) * width),
        ),
        Mistake(
            "Only the last tile along k counts: the accumulator starts anew in every tile. Set it to zero "
            "before the loop.",
            last_tile,
        ),
        Mistake(
            f"The last product of every tile is missing: a tile has {name} steps, `range({name})`.",
            without_last_steps,
        ),
        Mistake(
            f"The first product of every tile is missing: the loop over a tile starts at 0, `range({name})`.",
            without_first_steps,
        ),
        Mistake(
            "The loop over k moves on by 1, so the tiles overlap and products are added several times. "
            f"It must move on by a whole tile: `range(0, k, {name})`.",
            in_single_steps,
        ),
        Mistake(
            "C is stored after every tile, and each time `beta` multiplies what the tile before left there. "
            "Store once, after the loop over k.",
            stored_every_time,
        ),
        Mistake(
            "The last tile is not full, and what is past k still holds elements of the tile before. Store a "
            "zero there in every iteration, with `else`.",
            stale,
        ),
        Mistake(
            "The loop's variable counts tiles, 0, 1, 2, …, and is used as the offset along k. That offset is "
            f"the tile's number times {name}; or write `range(0, k, {name})`.",
            counted_in_tiles,
        ),
    )
