"""A learner's GEMM kernel on trial: adversarial problems, the first failure located and its cause named.

A wrong result is explained by computing what likely mistakes would give: the one that gives just this result
is named. Kernels take (m, n, k, alpha, A, B, beta, C).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from gemm_course.emulator import Finding, Report

from .exercise import Refused
from .learner import kernel_of, launch, line_at, nothing_happens, number_shown, parameter_names
from .problem import Geometry, Problem, adversarial, square

GEMM = ("m", "n", "k", "alpha", "A", "B", "beta", "C")


@dataclass(frozen=True)
class Mistake:
    """A likely mistake: ``message`` names it where the kernel's result is the one that ``predict`` computes.

    predict: problem -> C, (m, n), as the mistake would leave it, or None where it would not show. on_square:
    compare on a square problem instead of the one that failed, as exchanged indices leave others.
    """

    message: str
    predict: Callable[[Problem], np.ndarray | None]
    on_square: bool = False


@dataclass(frozen=True)
class GuardMistake:
    """A likely mistake in the guard: ``written`` says which elements of the launch it stores.

    written: (row, col, problem, geometry) -> booleans; row and col are the indices of all threads launched.
    """

    message: str
    written: Callable[[np.ndarray, np.ndarray, Problem, Geometry], np.ndarray]


@dataclass
class Trial:
    """One problem run with the learner's kernel: what came out, and the emulator's report."""

    kernel: Any
    geometry: Geometry
    problem: Problem
    report: Report
    buffer: np.ndarray = field(repr=False)  # C with its padding, after the launch
    before: np.ndarray = field(repr=False)  # and before

    @cached_property
    def got(self) -> np.ndarray:
        return self.buffer[: self.problem.m, : self.problem.n]

    @cached_property
    def wrong(self) -> np.ndarray:
        """Which elements of C differ from NumPy's by more than rounding."""
        return ~(abs(self.got - self.problem.expected) <= self.problem.tolerance)

    @cached_property
    def touched(self) -> np.ndarray:
        """Which elements of C, padding included, have other bits than before."""
        return self.buffer.view(np.uint32) != self.before.view(np.uint32)

    @property
    def padding_touched(self) -> np.ndarray:
        outside = self.touched.copy()
        outside[: self.problem.m, : self.problem.n] = False
        return outside

    @property
    def leaves_c(self) -> bool:
        """Some thread stores outside the array C."""
        return any(f.kind == "out_of_bounds" and f.array == self.array("C") for f in self.report.errors)

    @property
    def right(self) -> bool:
        """The numbers are right, nothing beside C was written, and the emulator found no error."""
        return not (self.wrong.any() or self.padding_touched.any() or self.report.errors)

    def array(self, name: str) -> str:
        """The learner's name of the argument that the course calls "A", "B" or "C"."""
        return parameter_names(self.kernel)[GEMM.index(name)]

    def lanes(self, op: str, *arrays: str) -> int:
        """Elements loaded from ("load") or stored to ("store") these arrays by the whole launch."""
        return sum(self.report.total("lanes", space="global", op=op, array=self.array(a)) for a in arrays)

    def sectors(self, op: str, *arrays: str) -> int:
        """Sectors that these loads or stores touch."""
        return sum(self.report.total("sectors", space="global", op=op, array=self.array(a)) for a in arrays)

    def equals(self, prediction: np.ndarray | None) -> bool:
        """C came out as predicted; a prediction with NaN in it says nothing."""
        if prediction is None or np.isnan(prediction).any():
            return False
        return bool((abs(self.got - prediction) <= 4 * self.problem.tolerance + 1e-5 * abs(prediction)).all())


def try_on(kernel: Any, geometry: Geometry, problem: Problem, **options) -> Trial:
    """Run the kernel on one problem. Raises Refused where the kernel cannot be run. options: emulate's."""
    a, b, c = problem.buffers()
    before = c.copy()
    alpha, beta = np.float32(problem.alpha), np.float32(problem.beta)
    grid = geometry.grid(problem.m, problem.n)
    report = launch(
        kernel, grid, geometry.block, problem.m, problem.n, problem.k, alpha, a, b, beta, c, **options
    )
    return Trial(kernel, geometry, problem, report, c, before)


def hold_to_numbers(
    kernel: Any,
    geometry: Geometry,
    *,
    depth: int = 6,
    mistakes: Sequence[Mistake] = (),
    guard_mistakes: Sequence[GuardMistake] = (),
    on_finding: dict[str, Callable[[Finding, Trial], str | None]] | None = None,
    too_coarse: Callable[[Trial], str | None] = lambda trial: None,
    problems: Sequence[Problem] | None = None,
) -> list[Trial]:
    """Run all problems and return the trials; raise Refused with the first thing wrong and its likely cause.

    The chapter's ``mistakes`` and ``guard_mistakes`` are looked for before the common ones; ``on_finding``
    (kind -> words) says what a finding of the emulator means in this exercise, None for its own words;
    ``too_coarse`` may name the cause of numbers that are nearly right.
    """
    kernel = kernel_of(kernel, GEMM)
    trials = []
    for problem in problems or adversarial(geometry, depth):
        trial = try_on(kernel, geometry, problem)
        if not trials and trial.report.accesses.empty and not trial.report.barriers:
            raise nothing_happens(kernel)
        if not trial.right:
            raise _explained(trial, depth, mistakes, guard_mistakes, on_finding or {}, too_coarse)
        trials.append(trial)
    return trials


# ---- what is wrong ---------------------------------------------------------------------------------------


def _explained(trial: Trial, depth, mistakes, guard_mistakes, on_finding, too_coarse) -> Refused:
    explanations = (
        lambda: _stores_nothing(trial),
        lambda: _by_prediction(trial, depth, (*mistakes, *COMMON_MISTAKES)),
        lambda: _by_guard(trial, (*guard_mistakes, _axes_exchanged(trial.geometry), *COMMON_GUARD_MISTAKES)),
        lambda: _by_what_cures_it(trial),
        lambda: _by_finding(trial, on_finding),
    )
    for explain in explanations:
        refused = explain()
        if refused is not None:
            return refused
    return _numbers_alone(trial, too_coarse)


def _stores_nothing(trial: Trial) -> Refused | None:
    if trial.lanes("store", "C") or trial.report.errors or not trial.problem.m * trial.problem.n:
        return None
    if trial.problem.k == 0:
        return Refused(
            "With k = 0 nothing is stored; C is to become beta * C (0 where beta is 0).", _place(trial)
        )
    return Refused("The kernel runs, but nothing is ever stored into C.", f"In the problem {trial.problem}.")


def _by_prediction(trial: Trial, depth: int, mistakes: Sequence[Mistake]) -> Refused | None:
    if not trial.wrong.any():
        return None
    on_square = None
    for mistake in mistakes:
        tried = trial
        if mistake.on_square:
            on_square = on_square or try_on(trial.kernel, trial.geometry, square(trial.geometry, depth))
            tried = on_square
        if tried.wrong.any() and tried.equals(mistake.predict(tried.problem)):
            return Refused(mistake.message, _place(tried))
    return None


def _by_guard(trial: Trial, mistakes: Sequence[GuardMistake]) -> Refused | None:
    """Find out which threads store, in a C with room around it, and compare with wrong guards."""
    m, n = trial.geometry.ragged()
    roomy = try_on(trial.kernel, trial.geometry, Problem(m, n, 5, padding=1, spare_rows=2))
    written = roomy.touched
    if not written.any() or (written[:m, :n].all() and written.sum() == m * n):
        return None
    row, col = np.ogrid[: written.shape[0], : written.shape[1]]
    launched = trial.geometry.launched(m, n)
    inside_launch = (row < launched[0]) & (col < launched[1])
    if (written == inside_launch).all() and launched[0] > written.shape[0] and not roomy.leaves_c:
        return Refused(
            "The guard lets threads through up to the array's end. " + SIZES_FROM_SHAPE, _guard_place(roomy)
        )
    for mistake in mistakes:
        predicted = mistake.written(row, col, roomy.problem, trial.geometry) & inside_launch
        if (predicted == written).all():
            return Refused(mistake.message, _guard_place(roomy))
    return None


def _guard_place(roomy: Trial) -> str:
    inside = roomy.touched[: roomy.problem.m, : roomy.problem.n]
    if not inside.all():
        row, col = map(int, np.argwhere(~inside)[0])
        return (
            f"First element left out: `C[{row}, {col}]` of {roomy.geometry.owner(row, col)}. {_sizes(roomy)}"
        )
    row, col = map(int, np.argwhere(roomy.padding_touched)[0])
    return f"First element too many: `C[{row}, {col}]`, by {roomy.geometry.owner(row, col)}. {_sizes(roomy)}"


def _sizes(trial: Trial) -> str:
    return f"C has {trial.problem.m} rows and {trial.problem.n} columns here."


def _by_what_cures_it(trial: Trial) -> Refused | None:
    """Take the difficulties of the problem away one at a time: the one that cures it is the cause."""
    problem = trial.problem
    if problem.old_c == "nan" and _is_right(trial, problem.but(old_c="random")):
        return Refused(
            "`C` is read although `beta` is 0. There may be anything in it, and 0 times NaN is NaN: with "
            "`beta == 0` the old `C` must not even be touched.",
            _place(trial),
        )
    if problem.padding and _is_right(trial, problem.but(padding=0)):
        return Refused(
            "It is right only where rows are exactly as long as the matrices are wide. " + SIZES_FROM_SHAPE,
            _place(trial),
        )
    return None


def _is_right(trial: Trial, problem: Problem) -> bool:
    return try_on(trial.kernel, trial.geometry, problem).right


def _by_finding(trial: Trial, on_finding) -> Refused | None:
    if not trial.report.errors:
        return None
    return refusal_of_finding(trial, trial.report.errors[0], on_finding)


def refusal_of_finding(trial: Trial, finding: Finding, on_finding=None) -> Refused:
    """An error of the emulator in words; ``on_finding`` as in :func:`hold_to_numbers`."""
    own_words = (on_finding or {}).get(finding.kind)
    message = own_words and own_words(finding, trial)
    if not message:
        before = STEP_TOO_FAR if _is_step_too_far(trial, finding) else FINDING_WORDS.get(finding.kind, "")
        message = before + finding.message
    return Refused(message, f"{_line_of(trial, finding)}. In the problem {trial.problem}.")


def _line_of(trial: Trial, finding: Finding) -> str:
    """The learner's line, or the name of the function that the kernel calls there."""
    own = finding.function in (None, trial.kernel.py_func.__name__)
    return line_at(trial.kernel, finding.line) if own else f"In `{finding.function}`"


def _is_step_too_far(trial: Trial, finding: Finding) -> bool:
    """The very first thread reads A or B just behind the end along k."""
    if finding.kind != "out_of_bounds" or any(finding.threads[0]) or any(finding.block):
        return False
    k = trial.problem.k
    ends = {trial.array("A"): (0, k), trial.array("B"): (k, 0)}
    return finding.element == ends.get(finding.array)


STEP_TOO_FAR = "The loop goes one step too far: the last p is k - 1. "
SIZES_FROM_SHAPE = (
    "Take the sizes from `m, n, k`, not from `.shape`: the rows of the arrays may be longer than the matrix "
    "is wide, and the rest is not yours."
)
FINDING_WORDS = {
    "out_of_bounds": "The kernel leaves its arrays. ",
    "global_race": "Two threads are at the same element. ",
    "shared_race": "A barrier is missing. ",
    "uninitialised_read": "Something is read before anybody stored it. ",
    "barrier_divergence": "Not all threads of the block reach the barrier. ",
}


def _numbers_alone(trial: Trial, too_coarse) -> Refused:
    if not trial.wrong.any():
        row, col = map(int, np.argwhere(trial.padding_touched)[0])
        return Refused(
            "The kernel writes beside C, into the padding at the end of the rows.",
            f"First: `C[{row}, {col}]`. {_sizes(trial)} In the problem {trial.problem}.",
        )
    row, col = map(int, np.argwhere(trial.wrong)[0])
    if not trial.touched[row, col] and trial.problem.expected[row, col] != trial.problem.C[row, col]:
        return Refused("Some elements of C are never stored.", _place(trial))
    if np.isnan(trial.got[row, col]):
        return Refused(
            "There is a NaN in C. The only NaN around are beyond the matrices, so something there was read.",
            _place(trial),
        )
    off = abs(trial.got - trial.problem.expected).max()
    if off <= 1e-2 * abs(trial.problem.AB).max():
        words = "The numbers are nearly right, but off by more than rounding in float32 explains."
        return Refused(too_coarse(trial) or words, _place(trial))
    return Refused("The numbers are wrong.", _place(trial))


def _place(trial: Trial) -> str:
    """The first wrong element, whose it is, and in which problem."""
    if not trial.wrong.any():
        return f"In the problem {trial.problem}."
    row, col = map(int, np.argwhere(trial.wrong)[0])
    got, expected = trial.got[row, col], trial.problem.expected[row, col]
    return (
        f"First wrong element: `C[{row}, {col}]` (row {row}, column {col}) is {number_shown(got)}, NumPy has "
        f"{expected:.5g}. It belongs to {trial.geometry.owner(row, col)}. In the problem {trial.problem}."
    )


# ---- mistakes that people make in any kernel -------------------------------------------------------------

COMMON_MISTAKES = (
    Mistake(
        "The old `C` is added although `beta` is 0. Does something add into `C` (`C[...] += ...`)? Sum in a "
        "variable of the thread's own, and store once.",
        lambda q: q.alpha * q.AB + q.C if q.beta == 0 else None,
    ),
    Mistake("`alpha` is missing: this is A·B + beta·C.", lambda q: q.AB + q.beta * q.C),
    Mistake(
        "`alpha` is applied twice: inside the loop and once more at the end.",
        lambda q: q.alpha**2 * q.AB + q.beta * q.C,
    ),
    Mistake(
        "`alpha` multiplies everything. It belongs to A·B only: alpha·A·B + beta·C.",
        lambda q: q.alpha * (q.AB + q.beta * q.C),
    ),
    Mistake("`beta * C` is missing: this is alpha·A·B.", lambda q: q.alpha * q.AB),
    Mistake("The old `C` is added as it is, without `beta`.", lambda q: q.alpha * q.AB + q.C),
    Mistake(
        "Both the old `C` and `beta * C` have been added: this is alpha·A·B + (1 + beta)·C.",
        lambda q: q.alpha * q.AB + (1 + q.beta) * q.C,
    ),
    Mistake("`alpha` and `beta` are exchanged.", lambda q: q.beta * q.AB + q.alpha * q.C),
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
        "A and B are added where they should be multiplied.",
        lambda q: q.alpha * (q.A.sum(1)[:, None] + q.B.sum(0)) + q.beta * q.C,
    ),
    Mistake(
        "`A`'s indices are exchanged: this is Aᵀ·B. An element of A is `A[row, p]`.",
        lambda q: q.A.T @ q.B,
        on_square=True,
    ),
    Mistake(
        "`B`'s indices are exchanged: this is A·Bᵀ. An element of B is `B[p, col]`.",
        lambda q: q.A @ q.B.T,
        on_square=True,
    ),
    Mistake(
        "The indices of both `A` and `B` are exchanged: this is Aᵀ·Bᵀ.",
        lambda q: q.A.T @ q.B.T,
        on_square=True,
    ),
    Mistake(
        "The result is transposed: `C[row, col]` holds what belongs to `C[col, row]`.",
        lambda q: (q.A @ q.B).T,
        on_square=True,
    ),
    Mistake("`A` and `B` are exchanged: this is B·A.", lambda q: q.B @ q.A, on_square=True),
)


def _axes_exchanged(geometry: Geometry) -> GuardMistake:
    def written(row, col, q: Problem, geometry: Geometry):
        rows, columns = geometry.launched(q.m, q.n)
        return (row < min(q.m, columns)) & (col < min(q.n, rows))

    x_over, y_over = ("rows", "columns") if geometry.x_over == "rows" else ("columns", "rows")
    return GuardMistake(
        f"x and y are exchanged: in this launch x runs over the {x_over}, y over the {y_over}, and "
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
        "The guard has its sizes exchanged: rows end at `m`, columns at `n`.",
        lambda row, col, q, g: (row < q.n) & (col < q.m),
    ),
    GuardMistake(
        "The guard lets one row and one column too many through: `<=` where `<` is meant. The last index of "
        "m elements is m - 1.",
        lambda row, col, q, g: (row <= q.m) & (col <= q.n),
    ),
    GuardMistake(
        "Only the rows are guarded. Surplus threads to the right of C need keeping out as well: `col < n`.",
        lambda row, col, q, g: (row < q.m) & (col >= 0),
    ),
    GuardMistake(
        "Only the columns are guarded. Surplus threads below C need keeping out as well: `row < m`.",
        lambda row, col, q, g: (row >= 0) & (col < q.n),
    ),
    GuardMistake(
        "There is no guard: the surplus threads of the last blocks work on elements that do not exist.",
        lambda row, col, q, g: (row >= 0) & (col >= 0),
    ),
)
