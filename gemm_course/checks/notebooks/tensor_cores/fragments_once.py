"""Checks ``fragments_once``: a warp multiplies 2 by 2 fragments and loads each of its four operands once."""

import numpy as np

from gemm_course.checks.core import Refused, exercise, kernel_of, nothing_yet
from gemm_course.checks.engines.wmma import (
    SIDE,
    WarpTrial,
    call_at,
    calls_of,
    check_findings,
    check_orders,
    on_tensor_cores,
    passed,
    refuse_exchanged_tiles,
    stored_every_step,
    tiles_transposed,
    try_warps,
    within_shared,
)

ARGUMENTS = ("k", "A", "B", "C")
TILE = 2 * SIDE
# The sizes are (m, n, k).
SIZES = ((32, 32, 16), (32, 64, 48), (64, 32, 32))
# For each step of 16 along k, a warp needs 4 loads of fragments and 4 products of them.
LOADS = PRODUCTS = 4
# A lane takes 128 bits of each fragment that the warp loads. No other access here is as wide.
FRAGMENT = 128


@exercise(
    start="declare two fragments of A, two of B and 2 × 2 of accumulators: `a = cuda.local.array((2, 16), "
    "float16)`, and so on.",
    hints=(
        "Per step of 16 along k: load `a[0]`, `a[1]`, `b[0]` and `b[1]`. After that, four products use each "
        "of them twice.",
        "`a[i]` comes from rows i * 16 and on of `As`, so from `(i * 16, 0)`; `b[j]` from columns j * 16 and "
        "on of `Bs`, `(0, j * 16)`.",
        "`wmma_mma(acc[i, j], a[i], b[j], ROW_MAJOR, ROW_MAJOR)` for i and j in `unroll(range(2))`. At the "
        "end `acc[i, j]` goes to `(i * 16, j * 16)` of `Cs`.",
    ),
)
def fragments_once(kernel):
    """A kernel (k, A, B, C): a warp computes 32 by 32 results from fragments that it loads once per step."""
    kernel = kernel_of(kernel, ARGUMENTS)
    if not calls_of(kernel, "wmma_") and not _declares(kernel):
        raise nothing_yet()
    check_orders(kernel)
    for size in SIZES:
        trial = try_warps(kernel, ARGUMENTS, *size, side=TILE)
        if trial.error("out_of_bounds"):
            refuse_exchanged_tiles(trial)
            _refuse_fragments_in_the_wrong_row(trial)
        check_findings(trial)
        _check_numbers(trial)
        on_tensor_cores(trial)
        _check_loads(trial)
        within_shared(trial, 2 * TILE * (SIDE + 8) + 2 * SIDE * (TILE + 8) + 4 * TILE * (TILE + 8))
    return (
        f"Right for {len(SIZES)} sizes: {LOADS} loads for {PRODUCTS} products per step of 16 along k, half "
        "as many per product as with one fragment each." + stored_every_step(kernel)
    )


def _declares(kernel) -> bool:
    return bool(calls_of(kernel, "local.array"))


def _check_loads(trial: WarpTrial) -> None:
    """Check that each fragment is loaded once per step."""
    rows = trial.accesses("load")
    m, n, k = trial.shape
    steps = m * n // TILE**2 * k // SIDE
    loads = rows[rows["bits"] == FRAGMENT].groupby("array")["requests"].sum() / steps
    again = [f"{number:g} from `{name}`" for name, number in loads.items() if number > LOADS / 2]
    if loads.sum() > LOADS:
        raise Refused(
            f"The numbers are right, but per step of 16 along k a warp loads {' and '.join(again)}, where "
            f"{LOADS // 2} are enough. Load all {LOADS} fragments first, each once: a[i] serves both columns "
            "of products, b[j] both rows.",
            f"{trial.about}.",
        )


def _refuse_fragments_in_the_wrong_row(trial: WarpTrial) -> None:
    """Name fragments that are looked for below each other instead of side by side, or the other way round."""
    finding = trial.error("out_of_bounds")
    told = SECOND_FRAGMENTS.get(call_at(trial.kernel, finding.line))
    # With one block and one step, a wrong place cannot come from a number of a block or a step.
    if told and trial.shape == SIZES[0]:
        raise Refused(told, f"{trial.line(finding)}. {trial.about}.")


# The keys are the calls that read outside their arrays.
SECOND_FRAGMENTS = {
    "wmma_load_a": "A's two fragments lie one below the other in `As`, which has 32 rows and 16 columns: "
    "`a[0]` begins at `(0, 0)`, `a[1]` at `(16, 0)`.",
    "wmma_load_b": "B's two fragments lie side by side in `Bs`, which has 16 rows and 32 columns: "
    "`b[0]` begins at `(0, 0)`, `b[1]` at `(0, 16)`.",
}


# ---- what wrong numbers mean -------------------------------------------------------------------------------


def _quarters(matrix, rows, columns):
    """Return ``matrix`` with its tiles of 32 by 32 put together from these rows and columns of fragments.

    Half a fragment counts as well: row 0.5 begins at row 8.
    """
    left = matrix.copy()
    for y in range(0, matrix.shape[0], SIDE):
        for x in range(0, matrix.shape[1], SIDE):
            i, j = y // SIDE % 2, x // SIDE % 2
            y0, x0 = y - i * SIDE, x - j * SIDE
            from_y, from_x = int(y0 + rows(i, j) * SIDE), int(x0 + columns(i, j) * SIDE)
            left[y : y + SIDE, x : x + SIDE] = matrix[from_y : from_y + SIDE, from_x : from_x + SIDE]
    return left


def _diagonal(C):
    """Return C with zeros in place of the fragments beside the diagonal of each tile."""
    rows, columns = np.indices(C.shape) // SIDE % 2
    return np.where(rows == columns, C, 0)


LIKELY = (
    (
        "Only 2 products of 4: `a[0]` with `b[0]` and `a[1]` with `b[1]`. Each fragment of A is multiplied "
        "by both of B, so `acc[0, 1]` and `acc[1, 0]` get products, too.",
        _diagonal,
    ),
    (
        "Both rows of fragments are computed from A's first 16 rows: `a[1]` begins at row 16 of `As`.",
        lambda C: _quarters(C, lambda i, j: 0, lambda i, j: j),
    ),
    (
        "Both columns of fragments are computed from B's first 16 columns: `b[1]` begins at column 16 of "
        "`Bs`.",
        lambda C: _quarters(C, lambda i, j: i, lambda i, j: 0),
    ),
    (
        "All four products are of the same fragments: `a[1]` begins at row 16 of `As`, `b[1]` at column 16 "
        "of `Bs`.",
        lambda C: _quarters(C, lambda i, j: 0, lambda i, j: 0),
    ),
    (
        "`a[1]` begins at row 8 of `As`, in the middle of `a[0]`. A fragment has 16 rows: `(i * 16, 0)`.",
        lambda C: _quarters(C, lambda i, j: i / 2, lambda i, j: j),
    ),
    (
        "`acc[i, j]` is the product of `a[i]` and `b[i]`. Columns of C are B's, so take `b[j]`.",
        lambda C: _quarters(C, lambda i, j: i, lambda i, j: i),
    ),
    (
        "`acc[i, j]` is the product of `a[j]` and `b[j]`. Rows of C are A's, so take `a[i]`.",
        lambda C: _quarters(C, lambda i, j: j, lambda i, j: j),
    ),
    (
        "The fragments of C are exchanged across the diagonal: i counts rows, j columns, in `acc[i, j]`, in "
        "`a[i]` and `b[j]`, and in the place where it is stored.",
        lambda C: _quarters(C, lambda i, j: j, lambda i, j: i),
    ),
    (
        "The accumulators are stored as `COL_MAJOR`, so every fragment of C arrives transposed.",
        tiles_transposed,
    ),
)


def _refuse_columns_first(trial: WarpTrial) -> None:
    """Refuse COL_MAJOR, because the tiles lie in memory row by row."""
    for matrix in "ab":
        if "COL_MAJOR" in passed(trial.kernel, f"wmma_load_{matrix}", 3):
            raise Refused(
                f"`wmma_load_{matrix}` is told `COL_MAJOR`, but no tile is transposed here: `As[row, p]` and "
                "`Bs[p, column]`.",
                trial.where,
            )


def _check_numbers(trial: WarpTrial) -> None:
    if not trial.wrong.any():
        return
    refuse_exchanged_tiles(trial)
    _refuse_columns_first(trial)
    for message, predict in LIKELY:
        if trial.equals(predict(trial.expected)):
            raise Refused(message, trial.where)
    last = trial.A[:, -SIDE:] @ trial.B[-SIDE:]
    if trial.shape[2] > SIDE and trial.equals(last):
        raise Refused(
            "Only the last 16 steps along k count: the accumulators start anew in every iteration. Set them "
            "to zero before the loop.",
            trial.where,
        )
    if trial.equals(trial.expected):
        raise Refused(
            "The numbers are nearly right, but off by more than float32 accumulators explain. Add the "
            "products up in float32.",
            trial.where,
        )
    m, n, k = trial.shape
    steps = m * n // TILE**2 * k // SIDE
    products = int(trial.report.arithmetic.query("op == 'mma'")["lanes"].sum()) / SIDE**3 / steps
    if products < PRODUCTS:
        raise Refused(
            f"The kernel makes {products:g} product{'s' * (products != 1)} per step of 16 along k, where "
            f"{PRODUCTS} are needed: each of `a[0]` and `a[1]` with each of `b[0]` and `b[1]`.",
            trial.where,
        )
    raise Refused("The numbers are wrong: which fragment of C comes from `a[i]` and `b[j]`?", trial.where)
