"""Checks ``broadcast_add``: the first kernel on a matrix, broadcasting two vectors."""

import numpy as np

from gemm_course.checks.core import Refused, Written, exercise, kernel_of
from gemm_course.checks.engines.one_each import guard_of, hold_to_one_each, try_one_each
from gemm_course.checks.engines.slips_in_source import bits_compared
from gemm_course.checks.engines.trial import Trial

BLOCK = (16, 8)
NAMES = ("down", "across", "out")
TALL = (33, 5)
# These are no multiples of the block's sizes, so that every kind of guard leaves its own traces.
UNEVEN = (20, 37)
SHAPES = (UNEVEN, (24, 32), (13, 50), TALL, (7, 17), (1, 40), (40, 1), (1, 1))


@exercise(
    start="the kernel does nothing. Each thread must store one element: in which row and which column?",
    hints=(
        "Two indices: the thread's x is the column of `out`, its y the row.",
        "`down` has an element for every row of `out`, so it is `down[y]`; `across` has one for every "
        "column.",
        "The guard needs both: `x < out.shape[1] and y < out.shape[0]`.",
        "`out[y, x] = down[y] + across[x]`: NumPy writes the row first.",
    ),
)
def broadcast_add(broadcast_add):
    """A kernel (down, across, out): out[i, j] = down[i] + across[j], in blocks of (16, 8), x over columns."""
    kernel = kernel_of(broadcast_add, NAMES)
    trials = [_trial(kernel, *shape) for shape in SHAPES]
    hold_to_one_each(
        trials,
        lambda trial: trial.before["down"][:, None] + trial.before["across"],
        lambda trial, where: (
            _by_whole_rows(trial, where)
            or _by_precedence(trial, where)
            or _by_strays(trial, where)
            or _by_stored(trial, where)
            or _by_repeats(trial, where)
            or _by_values(trial, where)
        ),
    )
    shapes = ", ".join(f"{m} × {n}" for m, n in SHAPES)
    return f"{shapes}: each sum right, each stored exactly once, nothing outside touched."


def _trial(kernel, m: int, n: int) -> Trial:
    rng = np.random.default_rng((m, n))
    down, across = rng.uniform(1, 2, m).astype(np.float32), rng.uniform(4, 8, n).astype(np.float32)
    about = f"`out` has {m} row{'s' * (m > 1)} and {n} column{'s' * (n > 1)}"
    out = np.full((m, n), np.nan, np.float32)
    return try_one_each(kernel, NAMES, BLOCK, down, across, out=out, about=about)


# ---- what goes wrong ---------------------------------------------------------------------------------------


def _launched(trial: Trial) -> tuple[int, int]:
    """Return the threads along x and y in the whole launch."""
    return trial.grid[0] * trial.block[0], trial.grid[1] * trial.block[1]


def _by_whole_rows(trial: Trial, where: str) -> Refused | None:
    """Return a refusal of `out[i] = ...` with a plain index: it stores a whole row of the matrix."""
    numbers = _numbers(trial.written)
    for store in trial.written.stores(trial.own_name("out")):
        if store.index.text in numbers:
            return Refused(
                f"`{store.text}` is a whole row, and every thread stores one. An element of a matrix has two "
                f"indices: `{store.array}[row, column]`.",
                where,
            )
    return None


def _numbers(written: Written) -> set[str]:
    """Return the variables that hold one of a thread's numbers, and not both as a pair."""
    found = set()
    for target, value in written.assignments:
        if "cuda." in value.text and (target.items or (value.text != "cuda.grid(2)" and not value.items)):
            found |= {each.text for each in target.items or [target]}
    return found


def _by_strays(trial: Trial, where: str) -> Refused | None:
    """Return a refusal that tells by the number of strays which guard let them through."""
    (m, n), (x, y) = trial.after["out"].shape, _launched(trial)
    strays, inside = trial.strays("out"), m * n
    end = "`>=`, not `>`" if _sends_away(trial) else "`<`, not `<=`"
    if not strays or not trial.touched("out").all():
        return None
    known = {
        x * y
        - inside: "The `else` is for the surplus threads, and there they store outside `out`. They must "
        "do nothing: leave it out."
        if any(branch.otherwise.stores() for branch in trial.written.branches)
        else f"Your guard, `{guard_of(trial)}`, lets surplus threads through: x ends "
        "at `out.shape[1]`, y at `out.shape[0]`."
        if guard_of(trial)
        else "There is no guard: the surplus threads of the last blocks work outside the arrays.",
        m * x + n * y - 2 * inside: "`and` sends only those threads away that are out of bounds in both "
        "directions. One is enough to leave: `or`."
        if _sends_away(trial)
        else "`or` in the guard lets threads through that are out of bounds in one direction: a thread must "
        "be in bounds in both, `and`.",
        m * x - inside: "Only the rows are guarded; threads to the right of `out` get through: x ends "
        "at `out.shape[1]`.",
        n * y - inside: "Only the columns are guarded; threads below `out` get through: y ends at "
        "`out.shape[0]`.",
        (m + 1) * (n + 1) - inside: f"The guard lets one row and one column too many through: {end}.",
        n: f"The guard lets one row too many through: y ends before `out.shape[0]`, so {end}.",
        m: f"The guard lets one column too many through: x ends before `out.shape[1]`, so {end}.",
    }
    if strays not in known:
        return None
    finding = trial.error("out_of_bounds")
    return Refused(known[strays], f"{trial.line(finding)}. {finding.message} {where}")


def _sends_away(trial: Trial) -> bool:
    """Return whether the guard is of the form `if ...: return`."""
    return any(branch.body.returns for branch in trial.written.branches)


def _by_precedence(trial: Trial, where: str) -> Refused | None:
    """Return a refusal of `row < m & col < n`, which compares with `m & col`."""
    for _, tied, word in bits_compared(trial.written):
        return Refused(
            f"`{tied.sign}` binds tighter than `<`: `{tied.text}` is computed first, from bits. Write "
            f"`{word}`.",
            where,
        )
    return None


def _by_stored(trial: Trial, where: str) -> Refused | None:
    """Return a refusal that tells by the elements that were stored which index or guard was used."""
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
        ((i < n) & (j < m), _swapped(trial)),
        ((i < m - 1) & (j < n - 1), TOO_STRICT.format("row and the last column are")),
        ((i < m - 1) & (j < n), TOO_STRICT.format("row is")),
        ((i < m) & (j < n - 1), TOO_STRICT.format("column is")),
        *((rows & columns, BLOCK_SIZES) for rows, columns in _with_swapped_sizes(i, j, trial)),
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
    """Return a refusal that tells by the number of stores which threads repeat the work of others."""
    (m, n), (x, y), stores = trial.after["out"].shape, _launched(trial), trial.lanes("store", "out")
    race = trial.error("global_race")
    if race is None or not trial.touched("out").all():
        return None
    again = "last" if race.element[0] == m - 1 or race.element[1] == n - 1 else "first"
    known = {
        x * y: f"The threads beyond the edge do the {again} rows or columns once more. They must do nothing: "
        "that is the guard, an `if`.",
    }
    if trial.written.loops and any(call.at(0) == "1" for call in trial.written.calls("cuda.grid")):
        along = (
            "`cuda.grid(1)` counts along x alone, and the loop does what the second number would: threads "
            "below one another do the same. Leave the loop out: `x, y = cuda.grid(2)`."
        )
        known |= {m * n * y: along, m * n * x: along}
    elif trial.written.loops:
        known |= {
            m * n * y: "A loop goes over the rows, and all threads of a column do it. Leave it out: a "
            "thread's y says which row is its own.",
            m * n * x: "A loop goes over the columns, and all threads of a row do it. Leave it out: a "
            "thread's x says which column is its own.",
        }
    return Refused(known[stores], where) if stores in known else None


TOO_STRICT = "The last {} never stored: the guard is one too strict."
BLOCK_SIZES = (
    "A block has 16 threads along x and 8 along y: `blockDim.x` belongs to `blockIdx.x`, `blockDim.y` to "
    "`blockIdx.y`."
)
BOTH_BY_ROWS = "x and y are both compared with the number of rows. x ends at the columns, `out.shape[1]`."
GUARD_SWAPPED = (
    "The guard's sizes are swapped: x ends at the number of columns, `out.shape[1]`, y at `out.shape[0]`."
)
OUT_SWAPPED = (
    "The indices of `out` are swapped: a thread stores `out[x, y]`. NumPy writes the row first, and y is the "
    "row: `out[y, x]`."
)
ALL_SWAPPED = (
    "The indices of all three arrays are swapped: a thread stores `out[x, y]`, from `down[x]` and "
    "`across[y]`. x counts columns and y rows, and NumPy writes the row first: `out[y, x]`, `down[y]`, "
    "`across[x]`."
)


def _swapped(trial: Trial) -> str:
    """Return what keeps the columns beyond the number of rows from being stored."""
    if _stores_at_x_y(trial):
        # On a square matrix all indices stay in bounds, and two swaps that agree give the right sums.
        square = _trial(trial.kernel, 16, 16)
        right = square.before["down"][:, None] + square.before["across"]
        return ALL_SWAPPED if np.allclose(square.after["out"], right, rtol=1e-5) else OUT_SWAPPED
    return BOTH_BY_ROWS if _trial(trial.kernel, *TALL).touched("out").all() else GUARD_SWAPPED


def _with_swapped_sizes(i: np.ndarray, j: np.ndarray, trial: Trial):
    """Return (rows, columns) that are stored where a block's index is multiplied by the other direction's
    size, three times: for its rows, for its columns, for both.
    """
    (across, down), (blocks, _) = trial.block, trial.grid
    rows, columns = i % across < down, j < (blocks - 1) * down + across
    return (rows, j >= 0), (i >= 0, columns), (rows, columns)


def _stores_at_x_y(trial: Trial) -> bool:
    """Return whether the first thread that leaves `out` has its x for a row."""
    own = trial.own_name("out")
    for finding in trial.report.errors:
        if finding.kind == "out_of_bounds" and finding.array == own:
            at = zip(finding.block, trial.block, finding.threads[0])
            return finding.element == tuple(block * size + thread for block, size, thread in at)
    return False


def _by_values(trial: Trial, where: str) -> Refused | None:
    """Return a refusal of swapped indices; on a square matrix they stay in bounds, and the values tell."""
    square = _trial(trial.kernel, 16, 16)
    down, across, got = square.before["down"], square.before["across"], square.after["out"]
    known = (
        (
            down[None, :] + across[:, None],
            "`down` and `across` are swapped: `down` has an element for every *row* of `out`, so its index "
            "is y: `down[y] + across[x]`.",
        ),
        (down[:, None] + 0 * across, "Only `down` has arrived in `out`; `across` is missing."),
        (0 * down[:, None] + across, "Only `across` has arrived in `out`; `down` is missing."),
        (down[:, None] * across, "This is the product; the exercise asks for the sum."),
        (down[:, None] + across[:, None], "`across` is read at y here, like `down`. Its index is x."),
        (down[None, :] + across[None, :], "`down` is read at x here, like `across`. Its index is y."),
    )
    return next(
        (Refused(message, where) for values, message in known if np.allclose(got, values, rtol=1e-5)), None
    )
