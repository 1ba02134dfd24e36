"""Computes what a 3 × 3 stencil gives with the mistakes that people make in it."""

from collections.abc import Iterator

import numpy as np


def sums(A: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Return the sums of w[a, b] * A[i + a - 1, j + b - 1], with 0 outside of A, in float64."""
    return _summed(A, w, *_neighbours(A))


def _neighbours(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and the columns of the neighbours [i, j, a, b] of all elements."""
    i, j, a, b = np.ogrid[: A.shape[0], : A.shape[1], -1:2, -1:2]
    return i + a, j + b


def _summed(A: np.ndarray, w: np.ndarray, rows: np.ndarray, cols: np.ndarray, kept=True) -> np.ndarray:
    """Return the sums if a result takes its neighbours [i, j, a, b] from these places, 0 outside of A.

    kept: which of the neighbours count at all.
    """
    m, n = A.shape
    inside = (0 <= rows) & (rows < m) & (0 <= cols) & (cols < n)
    values = A.astype(np.float64)[rows.clip(0, m - 1), cols.clip(0, n - 1)]
    return (np.where(inside & kept, values, 0) * w).sum(axis=(2, 3))


def mix_ups(A: np.ndarray, w: np.ndarray, T: int) -> Iterator[tuple[str, np.ndarray]]:
    """Yield mistakes in words, each with the sums that it leads to, for an A of several blocks both ways."""
    yield from _of_weights(A, w)
    yield from _of_places(A, w, T)
    yield from _of_edges(A, w)
    yield from _of_the_halo(A, w, T)


def _of_weights(A: np.ndarray, w: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    a, b = np.ogrid[:3, :3]
    for message, weights in (
        (
            "Only five elements are added: above, below, left, right and the middle. All nine count.",
            w * ((a == 1) | (b == 1)),
        ),
        ("The element in the middle is left out. All nine count.", w * ((a != 1) | (b != 1))),
        (
            "`w` is turned round: `w[0, 0]` belongs to the neighbour above on the left, `w[2, 2]` to that "
            "below on the right.",
            w[::-1, ::-1],
        ),
        ("Rows and columns of `w` are swapped: the first index goes with the rows of A.", w.T),
        ("The nine elements are added without their weights: multiply each by its `w[i, j]`.", w**0),
        (
            "The loops over the neighbours end too early: there are three rows of three.",
            w * (a < 2) * (b < 2),
        ),
        ("The loop over the rows of neighbours ends too early: there are three.", w * (a < 2)),
        ("The loop over the columns of neighbours ends too early: there are three.", w * (b < 2)),
    ):
        yield message, sums(A, weights)


def _of_places(A: np.ndarray, w: np.ndarray, T: int) -> Iterator[tuple[str, np.ndarray]]:
    rows, cols = _neighbours(A)
    for by, which in ((1, "further on"), (-1, "before")):
        for down, right, what in ((1, 1, "a row and a column"), (1, 0, "a row"), (0, 1, "a column")):
            yield (
                f"Every result is that of its neighbour, {what} {which}. The tile must begin one row above "
                "the block and one column to its left, at `row0 - 1` and `col0 - 1`, and the sum of thread "
                "(tx, ty) at `tile[ty, tx]`.",
                _summed(A, w, rows + by * down, cols + by * right),
            )
    i, j, a, b = np.ogrid[: A.shape[0], : A.shape[1], :3, :3]
    top, left, ty, tx = i // T * T - 1, j // T * T - 1, i % T, j % T
    yield (
        "At the block's edge a negative index takes the tile's other end: thread (tx, ty) has its neighbours "
        "from `tile[ty, tx]` to `tile[ty + 2, tx + 2]`, not from `tile[ty - 1, tx - 1]` on.",
        _summed(A, w, top + (ty + a - 1) % (T + 2), left + (tx + b - 1) % (T + 2)),
    )
    yield (
        "Every block works with the first block's tile: the block index is missing in the load.",
        _summed(A, w, ty + a - 1, tx + b - 1),
    )
    yield (
        "Rows and columns of the tile are swapped between filling and reading: y goes with the rows in both.",
        _summed(A, w, top + tx + b, left + ty + a),
    )
    yield "A is read with row and column swapped: `A[r, c]`, the row first.", sums(A.T, w)
    yield "`out` is stored with row and column swapped: y goes with the rows.", sums(A, w).T


def _of_edges(A: np.ndarray, w: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    (m, n), (rows, cols) = A.shape, _neighbours(A)
    last_row, last_col = np.where(rows < 0, m - 1, rows), np.where(cols < 0, n - 1, cols)
    yield (
        "At the top and on the left A's other end is added: index -1 is the last one, in Numba as in Python, "
        "and nobody warns. Guard the load with `0 <= r` and `0 <= c` too.",
        _summed(A, w, last_row, last_col),
    )
    negative = "is added: a negative index counts from the end. Guard the load with"
    yield f"At the top A's last row {negative} `0 <= r` too.", _summed(A, w, last_row, cols)
    yield f"On the left A's last column {negative} `0 <= c` too.", _summed(A, w, rows, last_col)
    yield (
        "A goes on at its other end, as on a ring: `%` brings indices from outside back in. Outside A is 0.",
        _summed(A, w, rows % m, cols % n),
    )
    yield (
        "What lies outside A gets the nearest element: indices are clamped to the edge. Outside A is 0.",
        _summed(A, w, rows.clip(0, m - 1), cols.clip(0, n - 1)),
    )
    first = (
        "counts as 0: the guard of the load is one too strict. Index 0 is the first one, so it must be `<=`."
    )
    yield f"A's first row and first column {first}", _summed(A, w, rows, cols, (rows > 0) & (cols > 0))
    yield f"A's first row {first}", _summed(A, w, rows, cols, rows > 0)
    yield f"A's first column {first}", _summed(A, w, rows, cols, cols > 0)


def _of_the_halo(A: np.ndarray, w: np.ndarray, T: int) -> Iterator[tuple[str, np.ndarray]]:
    rows, cols = _neighbours(A)
    # These say by how many blocks a neighbour's block lies below, or to the right of, that of the result.
    down, right = (each // T - each[:, :, 1:2, 1:2] // T for each in np.broadcast_arrays(rows, cols))

    def made(kept: np.ndarray) -> np.ndarray:
        return _summed(A, w, rows, cols, kept)

    yield (
        "The halo is forgotten: the neighbours in other blocks count as 0. Zeros belong only where A ends.",
        made((down == 0) & (right == 0)),
    )
    yield (
        "The halo's four corners are forgotten: they hold zeros. A result in a corner of the block has a "
        "neighbour diagonally across, in a fourth block.",
        made((down == 0) | (right == 0)),
    )
    missing = "Half of the halo is forgotten: {} hold zeros."
    yield missing.format("the columns on its left and right"), made(right == 0)
    yield missing.format("the rows at its top and bottom"), made(down == 0)
    yield missing.format("its bottom row and right column"), made((down <= 0) & (right <= 0))
    yield missing.format("its top row and left column"), made((down >= 0) & (right >= 0))
