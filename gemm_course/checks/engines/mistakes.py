"""Likely mistakes in a tiled kernel, each known by the result it computes."""

import numpy as np

from .common_mistakes import Mistake
from .problem import Problem


def mistakes(T: int) -> tuple[Mistake, ...]:
    """Mistakes in tiles T wide, the result of each computed for comparison."""

    def mixed_up(indices):
        return lambda q: result(q, _from_tiles(q, T, indices))

    return (*along_k(T, "T"), *(Mistake(message, mixed_up(indices)) for message, indices in MIX_UPS))


def along_k(width: int, name: str) -> tuple[Mistake, ...]:
    """Mistakes in the way along k, in tiles that are `width` deep; `name` is what the kernel calls that."""

    def first_of_k(length):
        """A·B with only the first `length(q)` steps along k; None where these are all."""
        return lambda q: None if length(q) >= q.k else result(q, q.A[:, : length(q)] @ q.B[: length(q)])

    def last_tile(q):
        first = (q.k - 1) // width * width
        return None if first <= 0 else result(q, q.A[:, first:] @ q.B[first:])

    def stale(q):
        """The part of the last tile that is past k holds what the tile before it held there."""
        left = q.k // width * width
        if left == q.k or q.k < width:
            return None
        old = slice(q.k - width, left)
        return result(q, q.AB + q.A[:, old] @ q.B[old])

    return (
        Mistake(
            f"Only whole tiles are used: `k // {name}` drops the rest of k. Round up, and fill the last tile "
            "with zeros.",
            first_of_k(lambda q: q.k // width * width),
        ),
        Mistake(
            f"Only the first tile along k counts. Does the loop go along k in steps of {name}, "
            f"`range(0, k, {name})`, and not along something else?",
            first_of_k(lambda q: width),
        ),
        Mistake(
            "There are as many tiles as fit along n, and that is what `gridDim.x` counts. Tiles lie along k: "
            f"`range(0, k, {name})`.",
            first_of_k(lambda q: -(-q.n // width) * width),
        ),
        Mistake(
            "Only the last tile along k counts: the sum starts anew in every tile. Set it to zero before the "
            "loop.",
            last_tile,
        ),
        Mistake(
            "The last tile is not full, and what is past k still holds elements of the tile before. Store a "
            "zero there in every turn, with `else`.",
            stale,
        ),
    )


MIX_UPS = (
    (
        "`As[tx, p]` takes a row of the tile that is another thread's: the row of C goes with y, so it is "
        "`As[ty, p]`.",
        "itxp,tjpx,y,x->iyjx",
    ),
    (
        "`Bs[p, ty]` takes a column of the tile that is another thread's: the column of C goes with x, so it "
        "is `Bs[p, tx]`.",
        "ityp,tjpy,y,x->iyjx",
    ),
    (
        "`As[tx, p]` and `Bs[p, ty]`: x and y are exchanged in both. Rows go with y, columns with x.",
        "itxp,tjpy,y,x->iyjx",
    ),
    ("`As` is read transposed, `As[p, ty]`, but was filled as `As[ty, tx]`.", "itpy,tjpx,y,x->iyjx"),
    ("`Bs` is read transposed, `Bs[tx, p]`, but was filled as `Bs[ty, tx]`.", "ityp,tjxp,y,x->iyjx"),
    (
        "The tile of A is filled from `A[row, k0 + ty]`: all threads of a row fetch the same element. Along "
        "k it goes with x, `A[row, k0 + tx]`.",
        "ityy,tjpx,y,x->iyjx",
    ),
    (
        "The tile of B is filled from `B[k0 + tx, col]`: all threads of a column fetch the same element. "
        "Along k it goes with y, `B[k0 + ty, col]`.",
        "ityp,tjxx,y,x->iyjx",
    ),
)  # i, j: blocks of C; t: tile along k; y, x: the thread; the first operand is As[y, x], the second Bs[y, x]


def result(q: Problem, AB: np.ndarray) -> np.ndarray:
    """C, as it is where the sums came out as `AB`."""
    return q.alpha * AB + (q.beta * q.C if q.beta else 0)


def _from_tiles(q: Problem, T: int, indices: str) -> np.ndarray:
    """A·B as summed up over zero-filled tiles whose elements are picked by these einsum indices."""
    a = _cut(q.A, T)
    b = _cut(q.B, T)
    c = np.einsum(indices, a, b, np.ones(T), np.ones(T))
    rows, columns = c.shape[0] * T, c.shape[2] * T
    return c.reshape(rows, columns)[: q.m, : q.n]


def _cut(matrix: np.ndarray, T: int) -> np.ndarray:
    """(rows of tiles, columns of tiles, T, T), zeros where the matrix has ended."""
    down, right = (-(-size // T) for size in matrix.shape)
    full = np.zeros((down * T, right * T))
    full[: matrix.shape[0], : matrix.shape[1]] = matrix
    return full.reshape(down, T, right, T).swapaxes(1, 2)
