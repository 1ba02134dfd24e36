"""Checks ``no_float64``: the naive kernel without float64."""

from gemm_course.checks.core import exercise, kernel_of
from gemm_course.checks.engines import lessons
from gemm_course.checks.engines.gemm import GEMM, GemmTrial, Likely, hold_to_numbers
from gemm_course.checks.engines.slips_in_source import refuse_numpy_arrays
from gemm_course.checks.notebooks.naive.naive import GEOMETRY
from gemm_course.checks.notebooks.naive.naive_slips import FINDINGS


@exercise(
    start="the kernel is still empty. Copy the one above and look for numbers that are written without a "
    "type.",
    hints=(
        "`report.arithmetic` of the kernel above shows which lines compute in float64. Start with the first.",
        "A literal with a point is float64. A whole number together with float32 makes float64 as well.",
        "`float32(0)` makes a float32 zero, and a factor of 1 can go altogether.",
        "`acc = float32(0)`, and at the end `alpha * acc + beta * C[row, col] if beta != 0 else alpha * "
        "acc`.",
    ),
)
def no_float64(lean):
    """A GEMM kernel as in ``naive`` that computes nothing in float64."""
    refuse_numpy_arrays(kernel_of(lean, GEMM))
    trials = hold_to_numbers(lean, GEOMETRY, Likely(findings=FINDINGS, too_coarse=_float16))
    for trial in trials:
        lessons.no_float64(trial)
    operations = sum(int(trial.report.arithmetic["lanes"].sum()) for trial in trials)
    return (
        f"{len(trials)} problems right, {operations:,} floating-point operations, not one of them in float64."
    )


def _float16(trial: GemmTrial) -> str | None:
    if "float16" not in set(trial.report.arithmetic["dtype"]):
        return None
    return (
        "No float64 any more, but float16 instead: it has 11 binary digits, and the accumulator loses more "
        "than in float32. The matrices are float32; compute in that."
    )
