"""Checks the kernel matmul(A, B, C) of Numba's manual, whose faults are to be repaired."""

import numpy as np

from gemm_course.checks.core import Refused, check_begun, exercise, kernel_of
from gemm_course.checks.engines.first_warp import (
    ALONG_A_ROW,
    DOWN_A_COLUMN,
    SAME,
    WATCH,
    FirstWarp,
    direction,
)
from gemm_course.checks.engines.float64 import why_float64
from gemm_course.checks.engines.gemm import FINDING_WORDS
from gemm_course.checks.engines.problem import EPSILON, Geometry
from gemm_course.checks.engines.trial import Trial, try_kernel

GEOMETRY = Geometry((32, 4), "columns")
NAMES = ("A", "B", "C")
# In each shape m, n and k differ. Whole blocks come first, then sizes around a block's, then thin shapes.
SHAPES = (
    (4, 64, 12), (8, 32, 5), (5, 33, 7), (3, 31, 6), (37, 5, 9), (9, 40, 3), (1, 1, 1), (1, 34, 2), (6, 1, 4),
)  # fmt: skip
# A square product of this side is traced, and its sectors are counted.
SIDE = 32
# All warps of the square product together make this many steps along k, and this many stores.
STEPS, STORES = SIDE * SIDE * SIDE // 32, SIDE * SIDE // 32


@exercise(
    start="copy the kernel of the manual and fix one fault at a time.",
    hints=(
        "One fault is about which index the fast x is. The other is in `tmp = 0.0`: what type is that in a "
        "kernel?",
        "x must be the column: the first of the two that `cuda.grid(2)` gives. The guard compares each "
        "index with the length of its own axis of C.",
        "`j, i = cuda.grid(2)` and `tmp = float32(0)`; all the rest stays.",
    ),
)
def documentation_matmul(matmul):
    """The kernel matmul(A, B, C) of Numba's manual without its two faults; blocks of (32, 4) threads."""
    kernel = kernel_of(matmul, NAMES)
    traced = _multiply(kernel, SIDE, SIDE, SIDE, watch=WATCH)
    check_begun(kernel, traced.report)
    _check_lanes(traced)
    for shape in SHAPES:
        _check_numbers(_multiply(kernel, *shape))
    _check_where_it_adds_up(traced)
    _check_float64(traced)
    a, b = (traced.sectors("load", name) / STEPS for name in "AB")
    c = traced.sectors("store", "C") / STORES
    if a + b > 5 or c > 4:
        raise Refused(
            f"The numbers are right, but a warp's k step takes {a + b:g} sectors (A {a:g}, B {b:g}) and the "
            f"store of C {c:g}; 1 + 4 and 4 are enough. Neighbours in x must be neighbours in a row of C."
        )
    return (
        f"Right on {len(SHAPES) + 1} shapes; a warp's k step takes {a:g} + {b:g} sectors instead of 33, and "
        "not one operation is in float64."
    )


def _multiply(kernel, m: int, n: int, k: int, **options) -> Trial:
    """Compute one product by the learner's kernel, with C full of NaN before it."""
    rng = np.random.default_rng((m, n, k))
    A, B = (rng.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
    C = np.full((m, n), np.nan, np.float32)
    about = f"A is {m} × {k}, B {k} × {n}, C {m} × {n}"
    grid, block = GEOMETRY.grid(m, n), GEOMETRY.block
    return try_kernel(kernel, NAMES, grid, block, A, B, C, about=about, **options)


def _product(trial: Trial, steps: int | None = None) -> np.ndarray:
    """Return what C would be after this many steps along k; all of them where that is left out."""
    return trial.before["A"][:, :steps].astype(np.float64) @ trial.before["B"][:steps]


def _differs(trial: Trial, product: np.ndarray) -> np.ndarray:
    """Return which elements of C differ from a product by more than rounding, as an array of booleans."""
    A, B = trial.before["A"], trial.before["B"]
    tolerance = 4 * (A.shape[1] + 4) * EPSILON * (abs(A) @ abs(B)) + 1e-30
    return ~(abs(trial.after["C"] - product) <= tolerance)


def _first_wrong(trial: Trial) -> str:
    expected = _product(trial)
    wrong = _differs(trial, expected)
    if not wrong.any():
        return f"{trial.about}."
    owner = GEOMETRY.owner(*map(int, np.argwhere(wrong)[0]))
    return trial.first_wrong("C", wrong, expected, f"It belongs to {owner}.")


# ---- what goes wrong ---------------------------------------------------------------------------------------


def _check_lanes(trial: Trial) -> None:
    """Refuse wrong indices, seen by the first warp of a square product, where nothing is out of bounds."""
    a, b, c = map(trial.own_name, NAMES)
    warp = FirstWarp(trial.report.trace)
    stored = warp.stored(c)
    if direction(stored) == DOWN_A_COLUMN:
        where = (
            f"Thread (1, 0) stores `{c}{list(stored[1])}`. It should store `{c}[0, 1]`, beside what thread "
            "(0, 0) stores."
        )
        if [direction(warp.loaded_first(name)) for name in (a, b)] == [SAME, ALONG_A_ROW]:
            message = (
                "The result is transposed: A and B are read for row `i` and column `j`, but the store has "
                "them swapped."
            )
        elif len(trial.float64):
            message = "As it is in the manual: both faults are still there. Begin with what x counts."
        else:
            message = "One of the two is fixed: no float64 is left. But x still counts the rows of C."
        raise Refused(message, where)
    if direction(stored) != ALONG_A_ROW:
        return
    if [direction(warp.loaded_first(name)) for name in (a, b)] == [DOWN_A_COLUMN, SAME]:
        raise Refused(
            f"Store and loads do not agree, and the result is transposed: `C{list(stored[1])}` gets row 1 of "
            "A times column 0 of B. Leave all subscripts as in the manual, with `i` the row; only "
            "`cuda.grid(2)` gives `j` first.",
            _first_wrong(trial),
        )
    if direction(warp.walk(a)) == DOWN_A_COLUMN:
        raise Refused(
            f"The indices of A are swapped: `{a}[p, i]` walks down a column of A. Row i of C needs "
            "row i of A.",
            _first_wrong(trial),
        )
    if direction(warp.walk(b)) == ALONG_A_ROW:
        raise Refused(
            f"The indices of B are swapped: `{b}[j, p]` walks along a row of B. Column j of C needs "
            "column j of B.",
            _first_wrong(trial),
        )


def _check_numbers(trial: Trial) -> None:
    if not _differs(trial, _product(trial)).any() and trial.report.ok:
        return
    (m, n), k = trial.after["C"].shape, trial.before["A"].shape[1]
    row, col = np.ogrid[:m, :n]
    stored = trial.touched("C")
    if not stored.all() and (stored == ((row < n) & (col < m))).all():
        raise Refused(
            "The guard was not swapped along with the indices: the row is compared with the number of "
            "columns, and the column with the number of rows.",
            _first_wrong(trial),
        )
    for size in (m, n):
        if size < k and not _differs(trial, _product(trial, size)).any():
            raise Refused(
                f"The loop ends after {size} steps, and k is {k}: it is as long as a side of C. The sum runs "
                "over the columns of A, `A.shape[1]`.",
                _first_wrong(trial),
            )
    if trial.report.errors:
        finding = trial.report.errors[0]
        if surplus := _surplus(finding, m, n):
            raise Refused(surplus, f"{trial.line(finding)}. {trial.about}.")
        raise Refused(
            FINDING_WORDS.get(finding.kind, "") + finding.message, f"{trial.line(finding)}. {trial.about}."
        )
    if trial.lanes("load", "C"):
        raise Refused(
            "The kernel adds to what was in `C` before, and there may be anything in it. Add up in `tmp`, "
            "and store it with `=` after the loop.",
            _first_wrong(trial),
        )
    if not stored.all():
        raise Refused("Some elements of C are never stored.", _first_wrong(trial))
    raise Refused("The numbers are wrong.", _first_wrong(trial))


def _surplus(finding, m: int, n: int) -> str:
    """Return what to say of a thread that left the arrays because it has no element of C, or ""."""
    (x, y), (thread_x, thread_y) = finding.block[:2], finding.threads[0][:2]
    row, col = y * GEOMETRY.block[1] + thread_y, x * GEOMETRY.block[0] + thread_x
    if finding.kind != "out_of_bounds" or (row < m and col < n):
        return ""
    return (
        f"Thread {thread_x, thread_y} of block {x, y} is left over: there is no `C[{row}, {col}]`. The guard "
        "is missing or lets it through. Write `if i < C.shape[0] and j < C.shape[1]:`, with `i` the row."
    )


def _check_where_it_adds_up(trial: Trial) -> None:
    if trial.lanes("load", "C") or trial.lanes("store", "C") > SIDE * SIDE:
        raise Refused(
            "The result is right, but the accumulator is kept in C itself: global memory is read and written "
            "in every step of the loop. Add up in `tmp`, a variable of the thread's own, and store it once.",
            trial.line(trial.accesses("store", "C")["line"].iloc[-1]),
        )


def _check_float64(trial: Trial) -> None:
    if trial.float64.empty:
        return
    lines = sorted(trial.float64["line"].unique())
    raise Refused(
        f"The sectors are fixed, and float64 is left. {why_float64(trial.written, lines)}",
        f"The first of {trial.float64['lanes'].sum():,} operations: {trial.line(lines[0])}",
    )
