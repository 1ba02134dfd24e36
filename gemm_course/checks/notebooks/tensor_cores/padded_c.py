"""Checks ``padded_c``: the end of document 004's v07, which takes n for the leading dimension of C."""

import numpy as np
from numba import cuda, float32
from numba.types import float16

from gemm_course.checks.core import Refused, exercise, kernel_of, nothing_yet, number_shown, same_statements
from gemm_course.checks.engines.trial import Trial, try_kernel

ARGUMENTS = ("m", "n", "ldc", "alpha", "acc", "beta", "C")
BLOCK = (32, 4)
# The sizes are (m, n, ldc).
SIZES = ((5, 37, 48), (40, 33, 40), (7, 7, 7), (9, 64, 65), (33, 1, 8))
# The factors are (alpha, beta).
FACTORS = ((1.5, -0.5), (1.0, 0.0))
# The bits of this NaN are unlike any result's.
PADDING = np.array(0x7E55, np.uint16).view(np.float16)


@cuda.jit
def v07_ends(m, n, ldc, alpha, acc, beta, C):
    """Store results to C as document 004's v07 does, here with one element per thread."""
    col, row = cuda.grid(2)
    if row < m and col < n:
        old = float32(C[row * n + col]) if beta != 0 else float32(0)
        C[row * n + col] = float16(alpha * acc[row, col] + beta * old)


@exercise(
    start="this is still the end of v07 as you were given it. How far apart are the rows of C in memory?",
    hints=(
        "C has m rows of n elements, but from the start of one row to the start of the next it is `ldc`.",
        "Both places where C is accessed must change: the load and the store.",
        "`C[row * ldc + col]` in both. The guard stays as it is: rows end at n, wherever the next begins.",
    ),
)
def padded_c(kernel):
    """The end of v07, (m, n, ldc, alpha, acc, beta, C) with C flat, for rows that are ldc apart."""
    kernel = kernel_of(kernel, ARGUMENTS)
    if same_statements(kernel, v07_ends):
        raise nothing_yet()
    trials = [_try(kernel, *size, *factors) for size in SIZES for factors in FACTORS]
    if all(trial.report.accesses.empty for trial in trials):
        raise nothing_yet()
    for trial in trials:
        _check(trial)
    return (
        f"Right for {len(SIZES)} shapes with alpha and beta, rows longer than C is wide and rows just as "
        "long: every result is where it belongs, and no element of the padding was touched."
    )


def _try(kernel, m: int, n: int, ldc: int, alpha: float, beta: float) -> Trial:
    """Run the answer on C, a flat array of m rows, ldc apart, with NaN in all padding."""
    rng = np.random.default_rng((m, n, ldc))
    acc = rng.uniform(1, 4, (m, n)).astype(np.float32)
    C = np.full((m, ldc), PADDING, np.float16)
    C[:, :n] = rng.uniform(1, 4, (m, n)) if beta else np.float16(np.inf)
    grid = -(-n // BLOCK[0]), -(-m // BLOCK[1])
    arguments = (m, n, ldc, np.float32(alpha), acc, np.float32(beta), C.reshape(-1))
    about = f"With m = {m}, n = {n}, ldc = {ldc}, alpha = {alpha:g}, beta = {beta:g}"
    return try_kernel(kernel, ARGUMENTS, grid, BLOCK, *arguments, about=about)


def _left(trial: Trial, load: int, store: int) -> np.ndarray | None:
    """Return C if rows are taken to be this far apart in loads and in stores; None if that leaves C."""
    m, n, _, alpha, acc, beta, C = trial.before.values()
    at, to = (np.arange(m)[:, None] * apart + np.arange(n) for apart in (load, store))
    if max(at.max(), to.max()) >= C.size:
        return None
    left, old = C.copy(), C[at].astype(np.float32) if beta else np.float32(0)
    left[to] = alpha * acc + beta * old
    return left


def _differ(trial: Trial, C: np.ndarray) -> np.ndarray:
    return ~np.isclose(trial.after["C"], C, rtol=2e-3, atol=1e-3, equal_nan=True)


def _check(trial: Trial) -> None:
    m, n, ldc, *_ = trial.before.values()
    if trial.report.errors:
        finding = trial.report.errors[0]
        before = _likely(trial) or _outside(trial, finding)
        raise Refused(f"{before} {finding.message}".strip(), f"{trial.line(finding)}. {trial.about}.")
    right = _left(trial, ldc, ldc)
    wrong = _differ(trial, right)
    if wrong.any():
        never = (wrong & ~trial.touched("C")).any()
        otherwise = "Some elements of C are never stored." if never else "Not all elements of C are right."
        raise Refused(_likely(trial) or otherwise, _first_wrong(trial, wrong, right))
    padding_touched = trial.touched("C").reshape(m, ldc)[:, n:]
    if padding_touched.any():
        row, column = map(int, np.argwhere(padding_touched)[0])
        raise Refused(
            "The results are right, but the padding at the end of the rows is written as well. It is not the "
            "kernel's.",
            f"First: row {row}, column {n + column}. {trial.about}.",
        )
    if trial.lanes("store", "C") > m * n:
        raise Refused("Elements of C are stored more than once.", f"{trial.about}.")


def _first_wrong(trial: Trial, wrong: np.ndarray, right: np.ndarray) -> str:
    _, n, ldc, *_ = trial.before.values()
    place = int(np.argmax(wrong))
    (row, column), got = divmod(place, ldc), number_shown(float(trial.after["C"][place]))
    told = (
        f"`{trial.own_name('C')}[{row} * ldc + {column}]` is {got}; it should be {float(right[place]):.5g}"
        if column < n
        else f"column {column}, in the padding, of row {row} was written: {got}"
    )
    return f"First wrong: {told}. {trial.about}."


# ---- what it means -----------------------------------------------------------------------------------------

# Each entry has a message, and (m, n, ldc) -> how far apart the mistake takes rows to be in loads and stores.
LIKELY = (
    (
        "Rows are still taken to be n elements apart. C has padding between the end of one row and the start "
        "of the next: they are `ldc` apart.",
        lambda m, n, ldc: (n, n),
    ),
    (
        "The load is fixed, the store is not: row by row it slips further to the left, over results that "
        "were right.",
        lambda m, n, ldc: (ldc, n),
    ),
    (
        "The store is fixed, the load is not: what is added comes from other elements of C.",
        lambda m, n, ldc: (n, ldc),
    ),
    (
        "n is rounded up to a multiple of 8. Rows are often that long, but only the caller knows: `ldc`.",
        lambda m, n, ldc: (-(-n // 8) * 8,) * 2,
    ),
    ("Rows are taken to be m elements apart. They are `ldc` apart.", lambda m, n, ldc: (m, m)),
)


def _likely(trial: Trial) -> str:
    m, n, ldc, _, _, beta, _ = trial.before.values()
    for message, apart in LIKELY:
        load, store = apart(m, n, ldc)
        left = _left(trial, load, store)
        if (load, store) != (ldc, ldc) and left is not None and not _differ(trial, left).any():
            return message
    if not beta and np.isnan(trial.after["C"].reshape(m, ldc)[:, :n]).any():
        return "C is read although `beta` is 0; there may be anything in it."
    return ""


def _outside(trial: Trial, finding) -> str:
    """Return what an access outside an array, or two accesses to the same element, mean."""
    if finding.kind == "global_race":
        return "Two elements of the result share a place in C. Element (row, col) lies at `row * ldc + col`."
    if finding.kind != "out_of_bounds":
        return ""
    if finding.array == trial.own_name("acc"):
        return "The guard lets threads into the padding. Rows end at n, wherever the next one begins."
    return "The kernel accesses elements outside C. Element (row, col) lies at `row * ldc + col`."
