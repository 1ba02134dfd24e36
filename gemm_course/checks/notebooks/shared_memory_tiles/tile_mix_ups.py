"""Predicts the results of mistakes with the indices of a tile, by which they are recognised."""

import numpy as np

from gemm_course.checks.engines import Mistake, Problem, result

# In these indices for einsum, i and j number C's blocks, t the tiles along k, p the steps in a tile, y and x
# the threads of a block. The first operand is A, cut into tiles, and the second is B.
RIGHT = "ityp,tjpx,y,x->iyjx"
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
        "`As[tx, p]` and `Bs[p, ty]`: x and y are swapped in both. Rows go with y, columns with x.",
        "itxp,tjpy,y,x->iyjx",
    ),
    (
        "`As` is filled in one order and read in the other. Filled as `As[ty, tx]` it is read as `As[ty, "
        "p]`, filled as `As[tx, ty]` as `As[p, ty]`.",
        "itpy,tjpx,y,x->iyjx",
    ),
    (
        "`Bs` is filled in one order and read in the other. Filled as `Bs[ty, tx]` it is read as `Bs[p, "
        "tx]`, filled as `Bs[tx, ty]` as `Bs[tx, p]`.",
        "ityp,tjxp,y,x->iyjx",
    ),
    (
        "`As` is filled transposed, `As[tx, ty]`, and read as `As[tx, p]`: its columns are now the rows of "
        "A, and a thread's row is `ty`. Read `As[p, ty]`, or do not transpose.",
        "itpx,tjpx,y,x->iyjx",
    ),
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
    (
        "The tile of A is stored transposed but fetched from `A[row, k0 + ty]`: the thread that stores "
        "`As[tx, ty]` holds row `ty` of A. Store as `As[ty, tx]`, from `A[row, k0 + tx]`.",
        "itpp,tjpx,y,x->iyjx",
    ),
    (
        "The tile of B is stored transposed but fetched from `B[k0 + tx, col]`: the thread that stores "
        "`Bs[tx, ty]` holds column `tx` of B. Store as `Bs[ty, tx]`, from `B[k0 + ty, col]`.",
        "ityp,tjpp,y,x->iyjx",
    ),
)
# The two flags say whether the tile of A, and that of B, stays in place along k.
STUCK = (
    ("The tile of A is the first one every time: `k0` is missing, `A[row, k0 + tx]`.", True, False),
    ("The tile of B is the first one every time: `k0` is missing, `B[k0 + ty, col]`.", False, True),
    ("The tiles are the first ones every time: `k0` is missing in the loads of A and of B.", True, True),
)
# The two flags say whether all blocks have the first block's tile of A, and of B.
FIRST_BLOCK = (
    (
        "All blocks fetch the first block's columns of B: `tx` begins anew in every block. Along n it is "
        "`B[k0 + ty, col]`.",
        False,
        True,
    ),
    (
        "All blocks fetch the first block's rows of A: `ty` begins anew in every block. Along m it is "
        "`A[row, k0 + tx]`.",
        True,
        False,
    ),
)
# The two flags say whether only threads with an element of C fetch one of A, and of B.
GUARDED_BY_C = (
    (
        "Threads outside C fetch nothing of A, but their neighbours in the row need it: the guard of C "
        "stands around the load of A. Guard that by where A ends: `row < m and k0 + tx < k`.",
        True,
        False,
    ),
    (
        "Threads outside C fetch nothing of B, but their neighbours in the column need it: the guard of C "
        "stands around the load of B. Guard that by where B ends: `k0 + ty < k and col < n`.",
        False,
        True,
    ),
    (
        "Threads outside C fetch nothing, but their neighbours need what they should fetch: the guard of C "
        "stands around both loads. Guard each by where its matrix ends: `row < m and k0 + tx < k`, "
        "`k0 + ty < k and col < n`. The guard of C belongs around the store alone.",
        True,
        True,
    ),
)
CLAMPED = (
    "Past the end of k the last element is fetched again, as with `min(k0 + tx, k - 1)`, and its product is "
    "added again. Put a zero into the tile there."
)


def mix_ups(T: int) -> tuple[Mistake, ...]:
    """Return the mistakes in tiles T wide; each computes the result that it leaves."""

    def computed(indices=RIGHT, **stays):
        return lambda q: result(q, _from_tiles(q, T, indices, **stays))

    def clamped(q: Problem) -> np.ndarray | None:
        """Compute C where the tiles' places past k hold the last element along k."""
        past = -q.k % T
        return result(q, q.AB + past * np.outer(q.A[:, -1], q.B[-1])) if past else None

    def guarded(of_a: bool, of_b: bool):
        """Compute C where a thread outside C stores a zero for the tile of A, of B, or both."""

        def predict(q: Problem) -> np.ndarray:
            step = np.arange(q.k) % T
            fetches_a = np.arange(q.n) // T * T + step[:, None] < q.n
            fetches_b = np.arange(q.m)[:, None] // T * T + step < q.m
            return result(
                q, np.where(fetches_b | (not of_b), q.A, 0) @ np.where(fetches_a | (not of_a), q.B, 0)
            )

        return predict

    return (
        Mistake(CLAMPED, clamped),
        *(Mistake(message, guarded(*flags)) for message, *flags in GUARDED_BY_C),
        *(Mistake(message, computed(indices)) for message, indices in MIX_UPS),
        *(Mistake(message, computed(stuck=stuck)) for message, *stuck in STUCK),
        *(Mistake(message, computed(first_block=stays)) for message, *stays in FIRST_BLOCK),
    )


def _from_tiles(
    q: Problem, T: int, indices: str, stuck=(False, False), first_block=(False, False)
) -> np.ndarray:
    """Compute A·B summed up over zero-filled tiles whose elements are picked by these einsum indices."""
    a, b = _cut(q.A, T), _cut(q.B, T)
    if stuck[0]:
        a = np.broadcast_to(a[:, :1], a.shape)
    if stuck[1]:
        b = np.broadcast_to(b[:1], b.shape)
    if first_block[0]:
        a = np.broadcast_to(a[:1], a.shape)
    if first_block[1]:
        b = np.broadcast_to(b[:, :1], b.shape)
    c = np.einsum(indices, a, b, np.ones(T), np.ones(T))
    rows, columns = c.shape[0] * T, c.shape[2] * T
    return c.reshape(rows, columns)[: q.m, : q.n]


def _cut(matrix: np.ndarray, T: int) -> np.ndarray:
    """Cut a matrix into (rows of tiles, columns of tiles, T, T), with zeros where it has ended."""
    down, right = (-(-size // T) for size in matrix.shape)
    full = np.zeros((down * T, right * T))
    full[: matrix.shape[0], : matrix.shape[1]] = matrix
    return full.reshape(down, T, right, T).swapaxes(1, 2)
