"""Checks ``no_float64``: the kernel matmul(A, B, C) of Numba's manual, without its float64."""

import numpy as np

from gemm_course.checks.core import Refused, check_begun, exercise, kernel_of
from gemm_course.checks.engines.first_warp import ALONG_A_ROW, WATCH, FirstWarp, direction
from gemm_course.checks.engines.float64 import why_float64
from gemm_course.checks.engines.gemm import FINDING_WORDS, NO_FIRST_PRODUCT
from gemm_course.checks.engines.problem import EPSILON
from gemm_course.checks.engines.slips_in_source import refuse_numpy_arrays
from gemm_course.checks.engines.trial import Trial, try_kernel
from gemm_course.checks.notebooks.naive.naive import GEOMETRY

NAMES = ("A", "B", "C")
# Each is (m, n, k); whole blocks come first, then sizes around a block's, then thin shapes and k = 0.
SHAPES = ((32, 32, 12), (33, 40, 7), (70, 31, 5), (5, 37, 9), (1, 1, 1), (34, 1, 2), (3, 2, 0))


@exercise(
    start="change one line of the kernel: which of its numbers has no type? Then take `matmul = None` away.",
    hints=(
        "`report.arithmetic` of the kernel above shows which line computes in float64. Which of its numbers "
        "is no float32?",
        "A literal with a point is float64. A whole number together with float32 makes float64 as well.",
        "`tmp = float32(0)`; all the rest stays.",
    ),
)
def no_float64(matmul):
    """The kernel matmul(A, B, C) of Numba's manual, computing nothing in float64; x over the rows."""
    kernel = kernel_of(matmul, NAMES)
    refuse_numpy_arrays(kernel)
    trials = []
    for shape in SHAPES:
        trial = _multiply(kernel, *shape)
        if not trials:
            check_begun(kernel, trial.report)
        _check_numbers(trial)
        trials.append(trial)
    _check_what_it_loads(trials[0])
    _check_float64(trials[0])
    operations = sum(int(trial.report.arithmetic["lanes"].sum()) for trial in trials)
    return (
        f"Right on {len(SHAPES)} shapes, and none of {operations:,} floating-point operations is in float64."
    )


def _multiply(kernel, m: int, n: int, k: int, **options) -> Trial:
    """Compute one product by the learner's kernel, with C full of NaN before it."""
    rng = np.random.default_rng((m, n, k))
    A, B = (rng.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
    C = np.full((m, n), np.nan, np.float32)
    about = f"A is {m} × {k}, B {k} × {n}, C {m} × {n}"
    return try_kernel(kernel, NAMES, GEOMETRY.grid(m, n), GEOMETRY.block, A, B, C, about=about, **options)


def _differs(trial: Trial) -> tuple[np.ndarray, np.ndarray]:
    """Return which elements of C differ from NumPy's by more than rounding, and NumPy's."""
    A, B = trial.before["A"], trial.before["B"]
    tolerance = (A.shape[1] + 4) * EPSILON * (abs(A) @ abs(B)) + 1e-30
    product = A.astype(np.float64) @ B
    return ~(abs(trial.after["C"] - product) <= tolerance), product


# ---- what goes wrong ---------------------------------------------------------------------------------------


def _check_numbers(trial: Trial) -> None:
    wrong, product = _differs(trial)
    if not wrong.any() and trial.report.ok:
        return
    where = f"{trial.about}."
    if wrong.any():
        owner = GEOMETRY.owner(*map(int, np.argwhere(wrong)[0]))
        where = trial.first_wrong("C", wrong, product, f"It belongs to {owner}.")
    if trial.report.errors:
        finding = trial.report.errors[0]
        raise Refused(_of_finding(trial, finding), f"{trial.line(finding)}. {trial.about}.")
    if trial.lanes("load", "C"):
        raise Refused(
            "The kernel adds to what was in `C` before, and there may be anything in it. Add up in `tmp`, "
            "and store it with `=` after the loop.",
            where,
        )
    if _is_turned(trial):
        raise Refused(
            "`i` and `j` are swapped. Here x counts the rows of C, as in the manual: `i, j = cuda.grid(2)`.",
            where,
        )
    if not trial.touched("C").all():
        raise Refused("Some elements of C are never stored.", where)
    if "float16" in set(trial.report.arithmetic["dtype"]):
        raise Refused(
            "No float64 any more, but float16 instead: it has 11 binary digits, and loses more than float32. "
            "The matrices are float32; compute in that.",
            where,
        )
    raise Refused("The numbers are wrong. One line of the manual's kernel has to change, no other.", where)


def _of_finding(trial: Trial, finding) -> str:
    """Return what an error of the emulator means here."""
    if finding.kind == "out_of_bounds":
        if _is_turned(trial):
            return (
                "`i` and `j` are swapped. Here x counts the rows of C, as in the manual: `i, j = "
                f"cuda.grid(2)`. {finding.message}"
            )
        (m, n), k = trial.after["C"].shape, trial.before["A"].shape[1]
        rows, columns = GEOMETRY.rows_and_columns
        row = finding.block[0] * rows + finding.threads[0][0]
        col = finding.block[1] * columns + finding.threads[0][1]
        if row >= m or col >= n:
            return (
                f"The guard is missing, or lets threads through that have no element: there is no `C[{row}, "
                f"{col}]`. Write `if i < C.shape[0] and j < C.shape[1]:`. {finding.message}"
            )
        if k == 0:
            return NO_FIRST_PRODUCT + finding.message
    return FINDING_WORDS.get(finding.kind, "") + finding.message


def _is_turned(trial: Trial) -> bool:
    """Return whether the first warp stores along a row of C, so that x counts columns."""
    traced = _multiply(trial.kernel, 32, 32, 2, watch=WATCH)
    return direction(FirstWarp(traced.report.trace).stored(traced.own_name("C"))) == ALONG_A_ROW


def _check_what_it_loads(trial: Trial) -> None:
    """Refuse a sum that is kept in C itself."""
    elements = trial.after["C"].size
    if trial.lanes("load", "C") or trial.lanes("store", "C") > elements:
        raise Refused(
            "The result is right, but the sum is kept in C itself: global memory is read and written in "
            "every step of the loop. Add up in `tmp`, a variable of the thread's own, and store it once.",
            trial.line(trial.accesses("store", "C")["line"].iloc[-1]),
        )


def _check_float64(trial: Trial) -> None:
    if trial.float64.empty:
        return
    lines = sorted(trial.float64["line"].unique())
    raise Refused(
        f"The numbers are right, and float64 is left. {why_float64(trial.written, lines)}",
        f"{trial.float64['lanes'].sum():,} operations. The first: {trial.line(lines[0])}",
    )
