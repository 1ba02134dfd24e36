"""Exercise 06.4: A's tile by fours where m, and above all k, end in the middle of it."""

import ast
from dataclasses import dataclass
from typing import Any

import numpy as np

from gemm_course.checks.core import (
    Refused,
    call,
    factory_of,
    kernel_of,
    line_at,
    nothing_yet,
    number_shown,
    source_tree,
)
from gemm_course.checks.engines.gemm import GemmTrial, try_on
from gemm_course.checks.engines.problem import Geometry, Problem
from gemm_course.checks.kits import around
from gemm_course.emulator import Finding

NAMES = ("BM", "BK", "THREADS")
PARAMETERS = ("m", "k", "A", "row0", "k0", "As", "tid")
TM = TN = 4
BN = 32
TILES = ((32, 16), (16, 8))  # (BM, BK): two rounds, one


@dataclass
class Fetch:
    """The learner's device function for one choice of tiles, in the kernel around it."""

    function: Any
    BM: int
    BK: int

    def __post_init__(self):
        self.kernel = around(self.function, self.BM, BN, self.BK, TM, TN)
        self.geometry = Geometry((BN // TN, self.BM // TM), "columns", (TM, TN))

    def trial(self, problem: Problem) -> GemmTrial:
        return try_on(self.kernel, self.geometry, problem)

    @property
    def whole(self) -> Problem:
        """Two rows of two blocks, three tiles along k, rows that begin at sectors."""
        return Problem(2 * self.BM, 2 * BN, 3 * self.BK, row_multiple=8)

    def problems(self) -> list[Problem]:
        m, n = self.geometry.ragged()
        BM, BK = self.BM, self.BK
        shapes = [
            (BM, BN, BK + 4),  # a whole four past k
            (BM, BN, BK + 1),
            (BM, BN, 2 * BK - 2),
            (BM, BN, 3),
            (BM + 3, BN, BK),
            (m, n, BK + 3),
            (1, 1, 1),
        ]
        problems = [Problem(*shape, row_multiple=4) for shape in shapes]
        return [
            self.whole,
            *problems,
            problems[1].but(padding=4, spare_rows=1),
            problems[-2].but(alpha=1.5, beta=-0.5, padding=5),
        ]


def prove_ragged_fours(make_fetch) -> str:
    """What was proved of the learner's factory; raises Refused with the first thing wrong."""
    make = factory_of(make_fetch, NAMES)
    fetches = [Fetch(_device(call(make, BM, BK, BM * BN // (TM * TN))), BM, BK) for BM, BK in TILES]
    tried = 0
    for fetch in fetches:
        for problem in fetch.problems():
            trial = fetch.trial(problem)
            if not trial.right:
                raise _explained(fetch, trial)
            tried += 1
    for fetch in fetches:
        _check_width(fetch, fetch.trial(fetch.whole))
    return (
        f"Right on {tried} problems, with k from 1 to {max(f.whole.k for f in fetches)}, NaN behind every "
        "row of A, and 128 bits in each load."
    )


def _device(given):
    """The device function; a kernel, and what does nothing yet, are told apart."""
    function = kernel_of(given, PARAMETERS)
    options = getattr(function, "targetoptions", {})
    if not options.get("device"):
        raise Refused(
            f"`{function.py_func.__name__}` is to be called by the threads of a kernel, not launched: write "
            "`@cuda.jit(device=True)` above it."
        )
    tree = source_tree(function)
    if not any(isinstance(node, (ast.Subscript, ast.Call)) for node in _body(tree)):
        raise nothing_yet()
    return function


def _body(tree: ast.Module):
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    return [node for function in functions for line in function.body for node in ast.walk(line)]


# ---- what is wrong -----------------------------------------------------------------------------------------


def _explained(fetch: Fetch, trial: GemmTrial) -> Refused:
    errors = sorted(trial.report.errors, key=lambda f: f.kind != "misaligned_access")
    finding = next(iter(errors), None)
    if finding is not None:
        own = FINDINGS.get(finding.kind, lambda *_: None)(fetch, trial, finding)
        return Refused(own or finding.message, _place(fetch, trial, finding))
    return Refused(_why_wrong(trial), _first_wrong(trial))


def _place(fetch: Fetch, trial: GemmTrial, finding: Finding) -> str:
    """The line, where it is the learner's, and the problem."""
    mine = finding.function == fetch.function.py_func.__name__
    line = f"{line_at(fetch.function, finding.line)}. " if mine else ""
    return f"{line}In the problem {trial.problem}; BM = {fetch.BM}, BK = {fetch.BK}."


def _first_wrong(trial: GemmTrial) -> str:
    row, col = map(int, np.argwhere(trial.wrong)[0])
    return (
        f"First wrong element: `C[{row}, {col}]` is {number_shown(trial.got[row, col])}, NumPy has "
        f"{trial.problem.expected[row, col]:.5g}. In the problem {trial.problem}."
    )


def _out_of_bounds(fetch: Fetch, trial: GemmTrial, finding: Finding) -> str | None:
    if len(finding.element) != 2:
        return None
    row, column = finding.element
    if finding.array == "As" or finding.array not in ("A", fetch.function.py_func.__code__.co_varnames[2]):
        return (
            "A thread leaves As, which has BK rows of BM floats (and padding): element `e` of the four goes "
            f"to `As[c + e, r]`. {finding.message}"
        )
    if row >= trial.problem.m:
        return (
            "Rows of A that do not exist are read: the tile may reach below row m. Take zeros there. "
            f"{finding.message}"
        )
    if column >= trial.problem.k:
        return (
            "Whole fours past k are read. Bs holds zeros there, but what is read may be NaN, and 0 · NaN is "
            f"NaN; here it is not even in A. {finding.message}"
        )
    return None


def _misaligned(fetch: Fetch, trial: GemmTrial, finding: Finding) -> str:
    return (
        "A four must begin at a multiple of four floats: the column within the tile is `tid % (BK // 4) * "
        f"4`. {finding.message}"
    )


def _uninitialised(fetch: Fetch, trial: GemmTrial, finding: Finding) -> str | None:
    if finding.array != "As":
        return None
    if trial.problem == fetch.whole:
        return (
            "A part of As is never filled, although A's tile is whole. The block fetches THREADS // (BK // "
            f"4) rows at a time: are all rows of the tile reached? {finding.message}"
        )
    return (
        "Where A has ended nothing is stored into As, and then there is anything in it. Store a zero there. "
        f"{finding.message}"
    )


def _race(fetch: Fetch, trial: GemmTrial, finding: Finding) -> str:
    return (
        "Two threads store the same place of As. Four of A's columns become four rows of As, and A's row its "
        f"column: `As[c + e, r]`. {finding.message}"
    )


FINDINGS = {
    "out_of_bounds": _out_of_bounds,
    "misaligned_access": _misaligned,
    "uninitialised_read": _uninitialised,
    "shared_race": _race,
}


def _why_wrong(trial: GemmTrial) -> str:
    q = trial.problem
    whole_fours = q.k // 4 * 4
    if whole_fours < q.k and trial.equals(_product(q, whole_fours)):
        return (
            "A four that reaches past k is left out altogether, and with it the last k % 4 elements of the "
            "row. Load it, the row's padding is there to be read, and clear only what lies past k."
        )
    if np.isnan(trial.got).any():
        return (
            "There is a NaN in C. The last four of a row reaches past k into the padding, and its elements "
            "have to be replaced one by one: the guard of the load sees only the first. It does not help "
            "that Bs is zero there, nor to multiply by 0: 0 · NaN is NaN."
        )
    return "The numbers are wrong: not every element of A's tile is at its place in As, `As[c + e, r]`."


def _product(q: Problem, columns: int) -> np.ndarray:
    """C with only the first ``columns`` steps along k."""
    return q.alpha * (q.A[:, :columns] @ q.B[:columns]) + (q.beta * q.C if q.beta else 0)


# ---- the lesson --------------------------------------------------------------------------------------------


def _check_width(fetch: Fetch, trial: GemmTrial) -> None:
    rows = trial.report.accesses
    rows = rows[(rows["space"] == "global") & (rows["op"] == "load")]
    rows = rows[rows["function"] == fetch.function.py_func.__name__]
    requests, floats = int(rows["requests"].sum()), int((rows["lanes"] * rows["bits"]).sum()) // 32
    q = trial.problem
    needed = q.m * q.k * -(-q.n // BN)
    where = f"In the problem {q}; BM = {fetch.BM}, BK = {fetch.BK}."
    if (rows["bits"] < 128).any():
        raise Refused(
            f"The numbers are right, but A is read one float at a time: {requests:,} requests where "
            f"{needed // 128:,} of 128 bits do. Load whole fours, and clear afterwards what lies past k.",
            where,
        )
    if floats > needed:
        raise Refused(
            f"The numbers are right, but {floats:,} floats of A are loaded, and {needed:,} are enough: "
            "several threads fetch the same fours.",
            where,
        )
    sectors = int(rows["sectors"].sum())
    if sectors > needed // 8:
        raise Refused(
            f"The numbers are right, but A's tile is not fetched coalesced: {sectors:,} sectors where "
            f"{needed // 8:,} are enough. Neighbouring threads take neighbouring fours of a row.",
            where,
        )
