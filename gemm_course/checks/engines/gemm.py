"""Tries a learner's GEMM kernel on adversarial problems, and names the cause of the first failure.

To explain a wrong result, the checker computes what each likely mistake would give, and names the one that
gives just this result. Kernels take (m, n, k, alpha, A, B, beta, C).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from gemm_course.checks.core import Refused, kernel_of, nothing_happens, number_shown
from lockstep import Finding

from .common_mistakes import COMMON_GUARD_MISTAKES, COMMON_MISTAKES, GuardMistake, Mistake, axes_swapped
from .problem import Geometry, Problem, adversarial, square
from .slips_in_source import (
    beta_test_inverted,
    else_that_stores,
    negative_beta_left_out,
    tied_by_bits,
    whole_or_half,
)
from .tiles import Tiles
from .trial import Trial, try_kernel

GEMM = ("m", "n", "k", "alpha", "A", "B", "beta", "C")


@dataclass(kw_only=True)
class GemmTrial(Trial):
    """A run of the learner's kernel on one problem. tiles: the choice with which its factory was called."""

    geometry: Geometry
    problem: Problem
    tiles: Tiles | None = None

    @cached_property
    def got(self) -> np.ndarray:
        """C, (m, n), without padding."""
        return self.after["C"][: self.problem.m, : self.problem.n]

    @cached_property
    def wrong(self) -> np.ndarray:
        """Which elements of C differ from NumPy's by more than rounding."""
        return ~(abs(self.got - self.problem.expected) <= self.problem.tolerance)

    @cached_property
    def stored(self) -> np.ndarray:
        """Which elements of C, padding included, have other bits than before."""
        return self.touched("C")

    @property
    def padding_stored(self) -> np.ndarray:
        outside = self.stored.copy()
        outside[: self.problem.m, : self.problem.n] = False
        return outside

    @property
    def right(self) -> bool:
        """Whether the numbers are right, nothing beside C was written, and the emulator found no error."""
        return not (self.wrong.any() or self.padding_stored.any() or self.report.errors)

    @property
    def reads_per_step(self) -> dict[str, float]:
        """Elements that a thread reads of each shared array in a step along k, by the array's name."""
        loads = self.accesses("load").groupby("array", sort=False)["lanes"].sum()
        return {array: lanes / (self.threads * self.problem.k) for array, lanes in loads.items()}

    @property
    def multiply_adds_per_step(self) -> float:
        """Multiply-adds of a thread in a step along k, one for each of its results."""
        return self.problem.m * self.problem.n / self.threads

    @property
    def reads_per_multiply_add(self) -> float:
        """Elements of shared memory read for each of the m·n·k multiply-adds."""
        q = self.problem
        return self.shared_reads / (q.m * q.n * q.k)

    def equals(self, prediction: np.ndarray | None) -> bool:
        """Return whether C came out as predicted, which is False for None and for predictions with NaN."""
        if prediction is None or np.isnan(prediction).any():
            return False
        return bool((abs(self.got - prediction) <= 4 * self.problem.tolerance + 1e-5 * abs(prediction)).all())


def try_on(
    kernel: Any, geometry: Geometry, problem: Problem, *, tiles: Tiles | None = None, **options
) -> GemmTrial:
    """Run the kernel on one problem; refuse it if it cannot be run. options: passed to `emulate`."""
    q, (A, B, C) = problem, problem.buffers()
    alpha, beta = np.float32(q.alpha), np.float32(q.beta)
    arguments = (q.m, q.n, q.k, alpha, A, B, beta, C)
    about = f"With {tiles}" if tiles else f"In the problem {q}"
    done = try_kernel(
        kernel, GEMM, geometry.grid(q.m, q.n), geometry.block, *arguments, about=about, **options
    )
    return GemmTrial(**vars(done), geometry=geometry, problem=problem, tiles=tiles)


@dataclass(frozen=True)
class Likely:
    """The mistakes that an exercise expects, which are looked for before those of any GEMM kernel.

    results: mistakes known by the numbers that come out. guards: mistakes known by which elements are stored.
    findings: kind of finding -> (finding, trial) -> what the finding means here, or None. In place of None a
    factory's shared words are shown, or else the emulator's. too_coarse: trial -> the cause of numbers that
    are nearly right, or None.
    """

    results: Sequence[Mistake] = ()
    guards: Sequence[GuardMistake] = ()
    findings: Mapping[str, Callable[[Finding, GemmTrial], str | None]] = field(default_factory=dict)
    too_coarse: Callable[[GemmTrial], str | None] = lambda trial: None


def hold_to_numbers(
    kernel: Any,
    geometry: Geometry,
    likely: Likely = Likely(),
    *,
    depth: int = 6,
    problems: Sequence[Problem] | None = None,
    tiles: Tiles | None = None,
    made: Sequence[GemmTrial] = (),
) -> list[GemmTrial]:
    """Run all problems and return the trials; raise Refused at the first failure, with its likely cause.

    depth: the width of a tile along k. problems: those of :func:`adversarial` if left out. made: trials of
    this kernel that need not be repeated.
    """
    kernel = kernel_of(kernel, GEMM)
    known, trials = {trial.problem: trial for trial in made}, []
    for problem in problems or adversarial(geometry, depth):
        trial = known.get(problem) or try_on(kernel, geometry, problem, tiles=tiles)
        if not trials and trial.report.accesses.empty and not trial.report.barriers:
            raise tied_by_bits(kernel) or nothing_happens(kernel)
        if not trial.right:
            raise _explained(trial, depth, likely)
        trials.append(trial)
    return trials


# ---- what is wrong ---------------------------------------------------------------------------------------


def _explained(trial: GemmTrial, depth: int, likely: Likely) -> Refused:
    guards = (*likely.guards, axes_swapped(trial.geometry), *COMMON_GUARD_MISTAKES)
    explanations = (
        lambda: tied_by_bits(trial.kernel),
        lambda: else_that_stores(trial),
        lambda: negative_beta_left_out(trial),
        lambda: beta_test_inverted(trial),
        lambda: _stores_nothing(trial),
        lambda: whole_or_half(trial),
        lambda: _by_prediction(trial, depth, (*likely.results, *COMMON_MISTAKES)),
        lambda: _by_guard(trial, guards),
        lambda: _by_removing_difficulties(trial),
        lambda: _by_finding(trial, likely),
    )
    for explain in explanations:
        refused = explain()
        if refused is not None:
            return refused
    return _numbers_alone(trial, likely)


def _stores_nothing(trial: GemmTrial) -> Refused | None:
    if trial.lanes("store", "C") or trial.report.errors or not trial.problem.m * trial.problem.n:
        return None
    if trial.problem.k == 0:
        return Refused(
            "With k = 0 nothing is stored; C must become beta * C (0 where beta is 0).", _place(trial)
        )
    return Refused("The kernel runs, but nothing is ever stored into C.", f"In the problem {trial.problem}.")


def _by_prediction(trial: GemmTrial, depth: int, mistakes: Sequence[Mistake]) -> Refused | None:
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


def _by_guard(trial: GemmTrial, mistakes: Sequence[GuardMistake]) -> Refused | None:
    """Return a refusal that names the mistake in the guard, if the elements stored in a padded C show it."""
    m, n = trial.geometry.ragged()
    roomy = try_on(trial.kernel, trial.geometry, Problem(m, n, 5, padding=1, spare_rows=2))
    written = roomy.stored
    if not written.any() or (written[:m, :n].all() and written.sum() == m * n):
        return None
    row, col = np.ogrid[: written.shape[0], : written.shape[1]]
    launched = trial.geometry.launched(m, n)
    inside_launch = (row < launched[0]) & (col < launched[1])
    if (written == inside_launch).all() and launched[0] > written.shape[0] and not roomy.strays("C"):
        return Refused(
            "The guard lets threads through up to the array's end. " + SIZES_FROM_SHAPE, _guard_place(roomy)
        )
    for mistake in mistakes:
        predicted = mistake.written(row, col, roomy.problem, trial.geometry) & inside_launch
        if (predicted == written).all():
            return Refused(mistake.message, _guard_place(roomy))
    return None


def _guard_place(roomy: GemmTrial) -> str:
    inside = roomy.stored[: roomy.problem.m, : roomy.problem.n]
    if not inside.all():
        row, col = map(int, np.argwhere(~inside)[0])
        return (
            f"First element left out: `C[{row}, {col}]` of {roomy.geometry.owner(row, col)}. {_sizes(roomy)}"
        )
    row, col = map(int, np.argwhere(roomy.padding_stored)[0])
    return f"First element too many: `C[{row}, {col}]`, by {roomy.geometry.owner(row, col)}. {_sizes(roomy)}"


def _sizes(trial: GemmTrial) -> str:
    return f"C has {trial.problem.m} rows and {trial.problem.n} columns here."


def _by_removing_difficulties(trial: GemmTrial) -> Refused | None:
    """Try the problem again without each of its difficulties.

    If the kernel is then right, return a refusal that names the difficulty as the cause, else None.
    """
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


def _is_right(trial: GemmTrial, problem: Problem) -> bool:
    return try_on(trial.kernel, trial.geometry, problem).right


def _by_finding(trial: GemmTrial, likely: Likely) -> Refused | None:
    returned = [finding for finding in trial.report.advice if finding.kind in PASSED_BY]
    finding = next(iter([*returned, *trial.report.errors]), None)
    if finding is None:
        return None
    own_words = likely.findings.get(finding.kind)
    message = own_words and own_words(finding, trial)
    if not message:
        before = _past_k(trial, finding) or FINDING_WORDS.get(finding.kind, "")
        message = before + finding.message
    return Refused(message, f"{trial.line(finding)}. In the problem {trial.problem}.")


def _past_k(trial: GemmTrial, finding: Finding) -> str:
    """Return why the very first thread reads A or B just behind the end along k, or ""."""
    if finding.kind != "out_of_bounds" or any(finding.threads[0]) or any(finding.block):
        return ""
    k = trial.problem.k
    ends = {trial.own_name("A"): (0, k), trial.own_name("B"): (k, 0)}
    if finding.element != ends.get(finding.array):
        return ""
    return STEP_TOO_FAR if k else NO_FIRST_PRODUCT


STEP_TOO_FAR = "The loop goes one step too far: the last p is k - 1. "
NO_FIRST_PRODUCT = (
    "With k = 0 there are no products, not even a first one: start at `float32(0)` and let the loop add them "
    "all. "
)
SIZES_FROM_SHAPE = (
    "Take the sizes from `m, n, k`, not from `.shape`: the rows of the arrays may be longer than the matrix "
    "is wide, and the rest is not yours."
)
# The emulator gives only advice about these barriers, but a GEMM kernel must not have them.
PASSED_BY = ("barrier_after_exit", "barrier_in_branch")
FINDING_WORDS = {
    "out_of_bounds": "The kernel accesses elements outside its arrays. ",
    "global_race": "Two threads access the same element. ",
    "shared_race": "A barrier is missing. ",
    "uninitialised_read": "Something is read before any thread has stored it. ",
    "barrier_divergence": "Not all threads of the block reach the barrier. ",
    **dict.fromkeys(PASSED_BY, "Not all threads of the block reach the barrier. "),
}


def _numbers_alone(trial: GemmTrial, likely: Likely) -> Refused:
    if not trial.wrong.any():
        row, col = map(int, np.argwhere(trial.padding_stored)[0])
        return Refused(
            "The kernel writes beside C, into the padding at the end of its rows.",
            f"First: `C[{row}, {col}]`. {_sizes(trial)} In the problem {trial.problem}.",
        )
    row, col = map(int, np.argwhere(trial.wrong)[0])
    if not trial.stored[row, col] and trial.problem.expected[row, col] != trial.problem.C[row, col]:
        return Refused("Some elements of C are never stored.", _place(trial))
    if np.isnan(trial.got[row, col]):
        return Refused(
            "There is a NaN in C. The only NaNs are beyond the matrices, so something there was read.",
            _place(trial),
        )
    off = abs(trial.got - trial.problem.expected).max()
    if off <= 1e-2 * abs(trial.problem.AB).max():
        words = "The numbers are nearly right, but off by more than rounding in float32 explains."
        return Refused(likely.too_coarse(trial) or words, _place(trial))
    return Refused("The numbers are wrong.", _place(trial))


def _place(trial: GemmTrial) -> str:
    """Return sentences that name the first wrong element, its thread and the problem."""
    if not trial.wrong.any():
        return f"In the problem {trial.problem}."
    row, col = map(int, np.argwhere(trial.wrong)[0])
    got, expected = trial.got[row, col], trial.problem.expected[row, col]
    return (
        f"First wrong element: `C[{row}, {col}]` (row {row}, column {col}) is {number_shown(got)}, NumPy has "
        f"{expected:.5g}. It belongs to {trial.geometry.owner(row, col)}. In the problem {trial.problem}."
    )
