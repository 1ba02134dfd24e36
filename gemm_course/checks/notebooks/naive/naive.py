"""Checks ``naive``: the naive GEMM kernel, one thread per element of C."""

from typing import Any

from gemm_course.checks.core import Refused, Written, exercise, kernel_of
from gemm_course.checks.engines import GEMM, GemmTrial, Geometry, Likely, Problem, hold_to_numbers
from gemm_course.checks.engines.first_warp import ALONG_A_ROW, WATCH, FirstWarp, direction
from gemm_course.checks.engines.float64 import why_float64
from gemm_course.checks.engines.gemm import try_on
from gemm_course.checks.engines.slips_in_source import refuse_numpy_arrays
from gemm_course.checks.notebooks.naive.naive_slips import FINDINGS, hold_to_all_threads

GEOMETRY = Geometry((32, 32), "rows")


@exercise(
    start="the kernel does nothing yet. Begin with the guard, `if row < m and col < n:`, and in it a sum "
    "that starts at `float32(0)`.",
    hints=(
        "A thread computes one element of C: row `row` of A times column `col` of B.",
        "Add up in a variable of the thread's own: `acc += A[row, p] * B[p, col]` for `p` from 0 to k - 1. "
        "Touch C once, after the loop.",
        "Two cases at the end: with `beta == 0` store `alpha * acc` and leave the old C alone; otherwise add "
        "`beta * C[row, col]`.",
    ),
)
def naive(naive):
    """A GEMM kernel with one thread per element of C; blocks of (32, 32) threads, x over the rows."""
    kernel = kernel_of(naive, GEMM)
    refuse_numpy_arrays(kernel)
    _refuse_all_of_c(kernel)
    trials = hold_to_numbers(naive, GEOMETRY, Likely(findings=FINDINGS))
    for trial in trials:
        _check_counts(trial)
    hold_to_all_threads(trials[0])
    _check_what_x_counts(kernel)
    return (
        f"{len(trials)} problems right, from whole blocks to a single element. No superfluous loads from A "
        "and B, one store per element, and with beta = 0 not a single load from C."
        + _float64_remark(trials[-3])
    )


def _float64_remark(trial: GemmTrial) -> str:
    """Return a remark on float64, the lesson of ``no_float64``, which comes later; "" if there is none."""
    if trial.float64.empty:
        return ""
    why = why_float64(trial.written, sorted(trial.float64["line"].unique()))
    return f" (One thing is left for exercise [[no_float64]]. {why})"


# ---- what goes wrong ---------------------------------------------------------------------------------------


def _refuse_all_of_c(kernel: Any) -> None:
    """Refuse `C[:] = 0`, before the guard is blamed for what it stores."""
    written = Written(kernel)
    C = written.parameters[-1]
    for store in written.stores(C):
        if store.text in (f"{C}[:]", f"{C}[:, :]", f"{C}[...]"):
            raise Refused(
                f"`{store.text} = ...` makes every thread overwrite all of `{C}`. A thread stores its own "
                f"element: `{C}[row, col]`.",
                store.where,
            )


def _check_what_x_counts(kernel: Any) -> None:
    """Refuse a kernel in which the lanes of a warp have neighbours in a row, as in the next notebook."""
    trial = try_on(kernel, GEOMETRY, Problem(32, 32, 4), watch=WATCH)
    lanes = FirstWarp(trial.report.trace).stored(trial.own_name("C"))
    if direction(lanes) == ALONG_A_ROW:
        raise Refused(
            "Right, but within a block your x counts columns. Here it counts rows: `row, col = "
            "cuda.grid(2)`. What the other way brings is the question of notebook [[coalesced.ipynb]].",
            f"Thread (1, 0) of block (0, 0) stores `C{list(lanes[1])}`, and should store `C[1, 0]`.",
        )


def _check_counts(trial: GemmTrial) -> None:
    """Refuse all but 2mnk loads from A and B, mn stores, and mn loads from C where beta is not 0."""
    q = trial.problem
    elements, about = q.m * q.n, f"In the problem {q}."
    from_c, stores = trial.lanes("load", "C"), trial.lanes("store", "C")
    if stores == 2 * elements:
        raise Refused(
            "Right, but each element of `C` is stored twice, the first time too early. Store once, after the "
            "loop: `alpha * acc + beta * C[row, col]`, or `alpha * acc` where `beta` is 0.",
            trial.line(trial.accesses("store", "C")["line"].min()),
        )
    if stores > elements:
        raise Refused(
            f"Right, but `C` is stored {stores:,} times for {elements:,} elements. Every store goes out to "
            "memory: add up in a variable of the thread's own, and store once, after the loop.",
            about,
        )
    if q.beta == 0 and from_c:
        raise Refused(
            "`C` is loaded although `beta` is 0. The numbers come out right, since what was loaded is never "
            "used, but the loads happen all the same: put them where `beta` is not 0.",
            about,
        )
    if from_c > elements:
        raise Refused(
            f"Right, but `C` is loaded {from_c:,} times for {elements:,} elements: once each is enough.",
            about,
        )
    for name in ("A", "B"):
        loads, wanted = trial.lanes("load", name), elements * q.k
        if loads > wanted:
            raise Refused(
                f"Right, but `{name}` is loaded {loads:,} times where m·n·k = {wanted:,} are enough: once "
                "per thread and step.",
                about,
            )
        if loads < wanted:
            raise Refused(
                f"Right, and with only {loads:,} loads from `{name}` instead of m·n·k = {wanted:,}. That is "
                "for later notebooks; here every thread loads what it needs itself.",
                about,
            )
