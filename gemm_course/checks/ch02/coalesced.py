"""Exercise 02.1: v00 made to coalesce, held to its sectors."""

from gemm_course.checks.core import Refused, check_begun, kernel_of, line_at, name_of_x
from gemm_course.checks.engines.first_warp import (
    ALONG_A_ROW,
    DOWN_A_COLUMN,
    SAME,
    WATCH,
    FirstWarp,
    direction,
)
from gemm_course.checks.engines.float64 import why_float64
from gemm_course.checks.engines.gemm import GEMM, GemmTrial, hold_to_numbers, try_on
from gemm_course.checks.engines.problem import Geometry, Problem

GEOMETRY = Geometry((32, 8), "columns")
ALIGNED = Problem(16, 64, 32)  # rows of all three matrices start at sectors, and all warps are full
SQUARE = Problem(32, 32, 32)  # rows and columns may be exchanged without leaving the arrays


def prove_coalesced(given) -> str:
    """What was proved of the learner's kernel; raises Refused with the first thing wrong."""
    kernel = kernel_of(given, GEMM)
    traced = try_on(kernel, GEOMETRY, SQUARE, watch=WATCH)
    check_begun(kernel, traced.report)
    warp = FirstWarp(traced.report.trace)
    _check_what_x_counts(traced, warp)
    trials = hold_to_numbers(kernel, GEOMETRY)
    trial = try_on(kernel, GEOMETRY, ALIGNED)
    _check_loads(trial)
    a, b, c = _sectors_a_warp(trial)
    if a + b > 5 or c > 4:
        raise Refused(
            _why_uncoalesced(warp, trial), f"A warp's k step takes {a + b:g} sectors; 5 are enough."
        )
    return (
        f"Right on {len(trials)} problems. A warp's k step takes {a:g} sector of A and {b:g} of B, {a + b:g} "
        f"instead of v00's 33, and the store of C {c:g} instead of 32; the loads are 2·m·n·k as before."
        + _float64_remark(trial)
    )


def _float64_remark(trial: GemmTrial) -> str:
    """Notebook 01's lesson, not this one's: a remark, no refusal."""
    doubles = trial.report.arithmetic.query("dtype == 'float64'")
    if doubles.empty:
        return ""
    return (
        " (Something of notebook 01 is left, though. "
        f"{why_float64(trial.kernel, sorted(doubles['line'].unique()))})"
    )


def _check_what_x_counts(trial: GemmTrial, warp: FirstWarp):
    """Whether the lanes of the first warp still go down the rows."""
    lanes = warp.stored(trial.own_name("C"))
    if direction(lanes) != DOWN_A_COLUMN:
        return
    loads = [direction(warp.loaded_first(trial.own_name(name))) for name in "AB"]
    where = (
        f"Thread (1, 0) of block (0, 0) stores `C{list(lanes[1])}`; its left neighbour, thread (0, 0), "
        f"`C{list(lanes[0])}`. They are to be neighbours in a row."
    )
    if loads == [SAME, ALONG_A_ROW]:
        raise Refused(
            "A and B are read coalesced, but the subscripts of `C` are exchanged: the result arrives "
            "transposed.",
            where,
        )
    if loads != [DOWN_A_COLUMN, SAME]:
        return
    x = name_of_x(trial.kernel)
    if x.startswith(("c", "j")):
        raise Refused(
            f"Rows and columns are exchanged twice: `{x}` now comes from x, but it also took the place of "
            "the row in the subscripts. Only the names have changed; it is v00 again, with 33 sectors a k "
            "step.",
            where,
        )
    raise Refused(
        "x still counts rows, as in v00: lanes that are neighbours read different rows of A, 33 sectors a k "
        "step. And the grid here is made for x over columns, so it would not even cover C.",
        where,
    )


def _check_loads(trial: GemmTrial):
    """Each product needs an element of A and one of B; each element of C is stored once."""
    q = trial.problem
    products = q.m * q.n * q.k
    if trial.lanes("load", "C") or trial.lanes("store", "C") > q.m * q.n:
        line = trial.report.accesses.query(
            "array == @name and requests > 0", local_dict={"name": trial.own_name("C")}
        )
        raise Refused(
            "The result is right, but the sum is kept in C itself: global memory is read and written in "
            "every step of the loop. Sum in a variable of the thread's own, and store it once.",
            line_at(trial.kernel, int(line["line"].iloc[-1])),
        )
    for name in "AB":
        loads = trial.lanes("load", name)
        if loads > products:
            raise Refused(
                f"The result is right, but `{name}` is loaded more often than needed: {loads:,} elements "
                f"where the {products:,} products need one each.",
                f"In the problem {q}.",
            )


def _sectors_a_warp(trial: GemmTrial) -> tuple[float, float, float]:
    """Sectors of A and B in a warp's k step, and of C in a warp's store."""
    q = trial.problem
    warps = q.m * q.n // 32
    a, b = (trial.sectors("load", name) / (warps * q.k) for name in "AB")
    return a, b, trial.sectors("store", "C") / warps


def _why_uncoalesced(warp: FirstWarp, trial: GemmTrial) -> str:
    a, b, c = _sectors_a_warp(trial)
    counts = f"A {a:g}, B {b:g}, store of C {c:g} sectors"
    rows_of_b = {row for row, _ in warp.loaded_first(trial.own_name("B"))}
    if c <= 4 and len(rows_of_b) > 1:
        return (
            "The result is right and C is stored coalesced, but the lanes are at different steps of k: at "
            f"one instant they read different rows of B ({counts}). All lanes should take the same `p`."
        )
    lanes = warp.stored(trial.own_name("C"))
    if len(lanes) > 1 and lanes[1][0] != lanes[0][0]:
        return (
            f"The result is right but not coalesced: the next lane works in the next row of C ({counts}). "
            "Let neighbours in x be neighbours in a row."
        )
    return f"The result is right but not coalesced: {counts}, where 1, 4 and 4 are enough."
