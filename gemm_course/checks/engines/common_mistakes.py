"""Lists mistakes that people make in any GEMM kernel, known by the result or by the elements stored."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .problem import Geometry, Problem


@dataclass(frozen=True)
class Mistake:
    """A likely mistake, which ``message`` names if the kernel's result is what ``predict`` computes.

    predict: problem -> C, (m, n), as the mistake would leave it, or None where the mistake would not show.
    on_square: whether to compare on a square problem, since swapped indices would leave arrays of other
    shapes.
    """

    message: str
    predict: Callable[[Problem], np.ndarray | None]
    on_square: bool = False


@dataclass(frozen=True)
class GuardMistake:
    """A likely mistake in the guard, known by which elements are stored.

    written: (row, col, problem, geometry) -> booleans; row and col are global, rows and columns of C for all
    threads launched. (The conditions of :func:`only_stored` get rows and columns within a block.)
    """

    message: str
    written: Callable[[np.ndarray, np.ndarray, Problem, Geometry], np.ndarray]


def _stored_in_every_step(q: Problem) -> np.ndarray | None:
    if not q.beta or q.k < 2:
        return None
    C, acc = q.C, 0 * q.AB
    for p in range(q.k):
        acc = acc + np.outer(q.A[:, p], q.B[p])
        C = q.alpha * acc + q.beta * C
    return C


COMMON_MISTAKES = (
    Mistake(
        "The old `C` is added although `beta` is 0. Does something add into `C` (`C[...] += ...`)? Add up in "
        "a variable of the thread's own, and store once.",
        lambda q: q.alpha * q.AB + q.C if q.beta == 0 else None,
    ),
    Mistake("`alpha` is missing: this is A·B + beta·C.", lambda q: q.AB + q.beta * q.C),
    Mistake(
        "`alpha` is applied twice: in the loop, or in a function that is called, and once more at the end.",
        lambda q: q.alpha**2 * q.AB + q.beta * q.C,
    ),
    Mistake(
        "`alpha` multiplies everything. It belongs to A·B only: alpha·A·B + beta·C.",
        lambda q: q.alpha * (q.AB + q.beta * q.C),
    ),
    Mistake(
        "A·B is missing: this is beta·C alone. Nothing has been added up, or only zeros.",
        lambda q: q.beta * q.C if q.beta else 0 * q.AB,
    ),
    Mistake("`beta * C` is missing: this is alpha·A·B.", lambda q: q.alpha * q.AB),
    Mistake("`alpha` is missing where `beta` is 0: this is A·B alone.", lambda q: None if q.beta else q.AB),
    Mistake("`alpha` and `beta * C` are both missing: this is A·B alone.", lambda q: q.AB),
    Mistake("The old `C` is added as it is, without `beta`.", lambda q: q.alpha * q.AB + q.C),
    Mistake(
        "Both the old `C` and `beta * C` have been added: this is alpha·A·B + (1 + beta)·C.",
        lambda q: q.alpha * q.AB + (1 + q.beta) * q.C,
    ),
    Mistake(
        "`beta` multiplies the new `C`: `alpha * acc` was stored first, and that is what "
        "`beta * C[row, col]` then reads. Compute both terms, then store once.",
        lambda q: (1 + q.beta) * q.alpha * q.AB,
    ),
    Mistake(
        "With `beta` = 0 the kernel keeps the old `C`. It must store `alpha` times the sum there.",
        lambda q: q.C if q.beta == 0 else None,
    ),
    Mistake("`alpha` and `beta` are swapped.", lambda q: q.beta * q.AB + q.alpha * q.C),
    Mistake(
        "`beta * C` is added in every step of the loop, k times in all. Once, at the end, is enough.",
        lambda q: q.alpha * q.AB + q.k * q.beta * q.C,
    ),
    Mistake(
        "Only the last product is left: the sum is overwritten in every step (`=` where `+=` is meant), or "
        "it starts anew inside the loop.",
        lambda q: q.alpha * np.outer(q.A[:, -1], q.B[-1]) + q.beta * q.C if q.k > 1 else None,
    ),
    Mistake(
        "The last product of each sum is missing: the loop ends one step early.",
        lambda q: q.alpha * (q.A[:, :-1] @ q.B[:-1]) + q.beta * q.C if q.k else None,
    ),
    Mistake(
        "The first product of each sum is missing: the loop starts at 1.",
        lambda q: q.alpha * (q.A[:, 1:] @ q.B[1:]) + q.beta * q.C if q.k else None,
    ),
    Mistake(
        "The loop ends at `n`. The products of a sum are numbered along k: `range(k)`.",
        lambda q: q.alpha * (q.A[:, : q.n] @ q.B[: q.n]) + q.beta * q.C if q.n < q.k else None,
    ),
    Mistake(
        "`beta` multiplies the sum, in place of the old `C`: add `beta * C[row, col]`.",
        lambda q: (q.alpha + q.beta) * q.AB if q.beta else None,
    ),
    Mistake(
        "C is stored inside the loop, and each time `beta` multiplies what the step before left there. Store "
        "once, after the loop.",
        _stored_in_every_step,
    ),
    Mistake(
        "A and B are added where they should be multiplied.",
        lambda q: q.alpha * (q.A.sum(1)[:, None] + q.B.sum(0)) + q.beta * q.C,
    ),
    Mistake(
        "`A`'s indices are swapped: this is Aᵀ·B. An element of A is `A[row, p]`.",
        lambda q: q.A.T @ q.B,
        on_square=True,
    ),
    Mistake(
        "`B`'s indices are swapped: this is A·Bᵀ. An element of B is `B[p, col]`.",
        lambda q: q.A @ q.B.T,
        on_square=True,
    ),
    Mistake(
        "The indices of both `A` and `B` are swapped: this is Aᵀ·Bᵀ.",
        lambda q: q.A.T @ q.B.T,
        on_square=True,
    ),
    Mistake(
        "The result is transposed: `C[row, col]` holds what belongs to `C[col, row]`.",
        lambda q: (q.A @ q.B).T,
        on_square=True,
    ),
    Mistake("`A` and `B` are swapped: this is B·A.", lambda q: q.B @ q.A, on_square=True),
)


def axes_swapped(geometry: Geometry) -> GuardMistake:
    def written(row, col, q: Problem, geometry: Geometry):
        rows, columns = geometry.launched(q.m, q.n)
        return (row < min(q.m, columns)) & (col < min(q.n, rows))

    x_over, y_over = ("rows", "columns") if geometry.x_over == "rows" else ("columns", "rows")
    return GuardMistake(
        f"x and y are swapped: in this launch x runs over the {x_over}, y over the {y_over}, and "
        f"`cuda.grid(2)` returns `(x, y)`. There are not enough threads the other way round.",
        written,
    )


COMMON_GUARD_MISTAKES = (
    GuardMistake(
        "`or` in the guard lets threads through that are outside in one direction. A thread must be "
        "inside in both: `and`.",
        lambda row, col, q, g: (row < q.m) | (col < q.n),
    ),
    GuardMistake(
        "The guard has its sizes swapped: rows end at `m`, columns at `n`.",
        lambda row, col, q, g: (row < q.n) & (col < q.m),
    ),
    GuardMistake(
        "The guard lets one row and one column too many through: `<=` where `<` is meant. The last index of "
        "m elements is m - 1.",
        lambda row, col, q, g: (row <= q.m) & (col <= q.n),
    ),
    GuardMistake(
        "The guard lets one row too many through, `<=` in place of `row < m`. The last of m rows is m - 1.",
        lambda row, col, q, g: (row <= q.m) & (col < q.n),
    ),
    GuardMistake(
        "The guard lets one column too many through, `<=` in place of `col < n`. The last of n columns is "
        "n - 1.",
        lambda row, col, q, g: (row < q.m) & (col <= q.n),
    ),
    *(
        GuardMistake(
            f"The guard keeps the last {what} out. `<` leaves out the size itself: {right}, without `- 1`.",
            lambda row, col, q, g, rows=rows, columns=columns: (row < q.m - rows) & (col < q.n - columns),
        )
        for what, right, rows, columns in (
            ("row", "`row < m`", 1, 0),
            ("column", "`col < n`", 0, 1),
            ("row and the last column", "`row < m and col < n`", 1, 1),
        )
    ),
    GuardMistake(
        "Only the rows are guarded. Surplus threads to the right of C must be kept out as well: `col < n`.",
        lambda row, col, q, g: (row < q.m) & (col >= 0),
    ),
    GuardMistake(
        "Only the columns are guarded. Surplus threads below C must be kept out as well: `row < m`.",
        lambda row, col, q, g: (row >= 0) & (col < q.n),
    ),
    GuardMistake(
        "There is no guard: the surplus threads of the last blocks work on elements that do not exist.",
        lambda row, col, q, g: (row >= 0) & (col >= 0),
    ),
)
