"""Exercise 00.6: the first kernel on a matrix, broadcasting a column and a row."""

import numpy as np

from gemm_course.checks.core import Refused, exercise, kernel_of
from gemm_course.checks.engines.one_each import hold_to_one_each, try_one_each
from gemm_course.checks.engines.trial import Trial

BLOCK = (16, 8)
NAMES = ("column", "row", "out")
UNEVEN = (20, 37)  # neither a multiple of the block, so that every kind of guard leaves its own traces
SHAPES = (UNEVEN, (24, 32), (13, 50), (33, 5), (7, 17), (1, 40), (40, 1), (1, 1))


@exercise(
    "00.6",
    start="the kernel does nothing. First let every thread find its element: `x, y = cuda.grid(2)`, and x "
    "counts the columns.",
    hints=(
        "Two indices: the thread's x is the column of `out`, its y the row.",
        "`column` has an element for every row of `out`, so it is `column[y]`; `row` has one for every "
        "column.",
        "The guard needs both: `x < out.shape[1] and y < out.shape[0]`.",
        "`out[y, x] = column[y] + row[x]`: NumPy writes the row first.",
    ),
)
def broadcast_add(broadcast_add):
    """A kernel (column, row, out): out[i, j] = column[i] + row[j], in blocks of (16, 8), x over columns."""
    kernel = kernel_of(broadcast_add, NAMES)
    trials = [_trial(kernel, *shape) for shape in SHAPES]
    hold_to_one_each(
        trials,
        lambda trial: trial.before["column"][:, None] + trial.before["row"],
        lambda trial, where: (
            _by_strays(trial, where)
            or _by_stored(trial, where)
            or _by_repeats(trial, where)
            or _by_values(trial, where)
        ),
    )
    shapes = ", ".join(f"{m} × {n}" for m, n in SHAPES)
    return f"{shapes}: each sum right, each stored exactly once, nothing outside touched."


def _trial(kernel, m: int, n: int) -> Trial:
    rng = np.random.default_rng((m, n))
    column, row = rng.uniform(1, 2, m).astype(np.float32), rng.uniform(4, 8, n).astype(np.float32)
    about = f"`out` has {m} row{'s' * (m > 1)} and {n} column{'s' * (n > 1)}"
    out = np.full((m, n), np.nan, np.float32)
    return try_one_each(kernel, NAMES, BLOCK, column, row, out=out, about=about)


# ---- what goes wrong ---------------------------------------------------------------------------------------


def _launched(trial: Trial) -> tuple[int, int]:
    """Threads along x and y, in the whole launch."""
    return trial.grid[0] * trial.block[0], trial.grid[1] * trial.block[1]


def _by_strays(trial: Trial, where: str) -> Refused | None:
    """How many threads store outside tells which guard let them through."""
    (m, n), (x, y) = trial.after["out"].shape, _launched(trial)
    strays, inside = trial.strays("out"), m * n
    if not strays or not trial.touched("out").all():
        return None
    known = {
        x * y - inside: "There is no guard: the surplus threads of the last blocks work outside the arrays.",
        m * x + n * y - 2 * inside: "`or` in the guard lets threads through that are out of bounds in one "
        "direction: a thread must be in bounds in both, `and`.",
        m * x - inside: "Only the rows are guarded; threads to the right of `out` get through. "
        "`x < out.shape[1]` is missing.",
        n * y - inside: "Only the columns are guarded; threads below `out` get through. `y < out.shape[0]` "
        "is missing.",
        (m + 1) * (n + 1) - inside: "The guard lets one row and one column too many through: `<`, not `<=`.",
    }
    if strays not in known:
        return None
    finding = trial.error("out_of_bounds")
    return Refused(known[strays], f"{trial.line(finding)}. {finding.message} {where}")


def _by_stored(trial: Trial, where: str) -> Refused | None:
    """Which elements were stored at all tells which index or guard was used."""
    written, (x, y) = trial.touched("out"), _launched(trial)
    if written.all():
        return None
    (m, n), (i, j) = written.shape, np.ogrid[: written.shape[0], : written.shape[1]]
    known = (
        (
            (i < trial.block[1]) & (j < trial.block[0]),
            "Only one block's worth is stored: `threadIdx` starts at 0 again in every block. Use "
            "`cuda.grid(2)`, or add `blockIdx * blockDim`.",
        ),
        (
            (i < min(m, x)) & (j < min(n, y)),
            "x and y are swapped: `cuda.grid(2)` returns `(x, y)`, and x counts the columns, y the rows. The "
            "threads run out before the columns do.",
        ),
        ((i < n) & (j < m), OUT_SWAPPED if _stores_at_x_y(trial) else GUARD_SWAPPED),
        ((i == j) & (i < m), "Only the diagonal is stored: row and column must come from different indices."),
        (
            i * n + j < x,
            "`cuda.grid(1)` counts along x alone: threads below one another get the same number, and the "
            "numbers run out early. The launch has two dimensions: `x, y = cuda.grid(2)`.",
        ),
        ((i == 0) & (j < x), "Only the first row is stored. The launch has two dimensions: `cuda.grid(2)`."),
    )
    return next(
        (Refused(message, where) for predicted, message in known if (written == predicted).all()), None
    )


def _by_repeats(trial: Trial, where: str) -> Refused | None:
    """How often everything is stored tells who repeats the work of others."""
    (m, n), (x, y), stores = trial.after["out"].shape, _launched(trial), trial.lanes("store", "out")
    if trial.error("global_race") is None or not trial.touched("out").all():
        return None
    known = {
        m
        * n
        * y: "A loop goes over the rows, and all threads of a column do it. There is no loop: a thread's "
        "y says which row is its own.",
        m * n * x: "A loop goes over the columns, and all threads of a row do it. There is no loop: a "
        "thread's x says which column is its own.",
        x * y: "The threads beyond the edge do the last row or column once more. They must do nothing: that "
        "is the guard, an `if`.",
    }
    return Refused(known[stores], where) if stores in known else None


GUARD_SWAPPED = (
    "The guard's sizes are swapped: x ends at the number of columns, `out.shape[1]`, y at `out.shape[0]`."
)
OUT_SWAPPED = (
    "The indices of `out` are swapped: a thread stores `out[x, y]`. NumPy writes the row first, and y is the "
    "row: `out[y, x]`."
)


def _stores_at_x_y(trial: Trial) -> bool:
    """Whether the first thread that leaves `out` has its x for a row."""
    own = trial.own_name("out")
    for finding in trial.report.errors:
        if finding.kind == "out_of_bounds" and finding.array == own:
            at = zip(finding.block, trial.block, finding.threads[0])
            return finding.element == tuple(block * size + thread for block, size, thread in at)
    return False


def _by_values(trial: Trial, where: str) -> Refused | None:
    """On a square matrix swapped indices stay in bounds, so that they can be told from the values."""
    square = _trial(trial.kernel, 16, 16)
    column, row, got = square.before["column"], square.before["row"], square.after["out"]
    known = (
        (
            column[None, :] + row[:, None],
            "`column` and `row` are swapped: `column` has an element for every *row* of `out`, so its index "
            "is y: `column[y] + row[x]`.",
        ),
        (column[:, None] + 0 * row, "Only `column` has arrived in `out`; `row` is missing."),
        (0 * column[:, None] + row, "Only `row` has arrived in `out`; `column` is missing."),
        (column[:, None] * row, "This is the product; the exercise asks for the sum."),
        (column[:, None] + row[:, None], "`row` is read at y here, like `column`. Its index is x."),
        (column[None, :] + row[None, :], "`column` is read at x here, like `row`. Its index is y."),
    )
    return next(
        (Refused(message, where) for values, message in known if np.allclose(got, values, rtol=1e-5)), None
    )
