"""Exercise 04.4: a kernel whose results leave the registers, and its repair."""

import ast
from dataclasses import dataclass
from typing import Any

import numpy as np

from gemm_course.checks.core import (
    Refused,
    call,
    check_begun,
    emulate_kernel,
    function_of,
    kernel_of,
    line_at,
    nothing_yet,
    number_shown,
    parameter_names,
    same_statements,
    source_tree,
)
from gemm_course.checks.engines.float64 import why_float64
from gemm_course.checks.kits import make_strip
from gemm_course.emulator import Report

ARGUMENTS = ("n", "k", "x", "A", "y")
WARP = 32
RESULTS = (4, 16)  # R
BEYOND = 4  # columns of A and elements of y that are there, and not the kernel's


@dataclass
class Run:
    """One launch of a warp a block: x of k, A of k by n, y of n elements; what is beyond them is NaN."""

    R: int
    n: int
    k: int
    kernel: Any
    y: np.ndarray
    expected: np.ndarray
    report: Report

    @property
    def threads(self) -> int:
        return -(-self.n // (WARP * self.R)) * WARP

    def lanes(self, op: str, argument: str) -> int:
        name = parameter_names(self.kernel)[ARGUMENTS.index(argument)]
        return self.report.total("lanes", space="global", op=op, array=name)

    def __str__(self) -> str:
        return f"With R = {self.R}, n = {self.n}, k = {self.k}"


def prove_strip(given) -> str:
    """What was proved of the learner's factory; raises Refused with the first thing wrong."""
    if hasattr(given, "py_func"):
        raise Refused(
            f"`{given.py_func.__name__}` is the kernel itself. Hand over the function around it, which takes "
            "R and returns it."
        )
    make = function_of(given, ("R",))
    kernels = {R: kernel_of(call(make, R), ARGUMENTS) for R in RESULTS}
    if same_statements(kernels[RESULTS[0]], make_strip(RESULTS[0])):
        raise nothing_yet()
    runs = [_run(kernel, R, n, k) for R, kernel in kernels.items() for n, k in _sizes(R)]
    check_begun(kernels[RESULTS[0]], *(run.report for run in runs))
    for run in runs:
        _check_numbers(run)
    for run in runs:
        for check in (_check_float64, _check_local, _check_elsewhere, _check_reads):
            check(run)
    return (
        f"Right for R = {' and '.join(map(str, RESULTS))} at {len(runs)} sizes. Every index of the local "
        "array is known when the kernel is compiled, so it can stay in registers; x is read once a thread "
        "and step."
    )


def _sizes(R: int) -> tuple[tuple[int, int], ...]:
    """(n, k): whole blocks; part of a thread's columns outside; threads without any column."""
    return (2 * WARP * R, 3), (WARP * R + WARP + 5, 4), (7, 5), (1, 1)


def _run(kernel, R: int, n: int, k: int) -> Run:
    rng = np.random.default_rng((R, n, k))
    x = rng.uniform(0.5, 2, k).astype(np.float32)
    A = np.full((k, n + BEYOND), np.nan, np.float32)
    A[:, :n] = rng.uniform(0.5, 2, (k, n))
    y = np.full(n + BEYOND, np.nan, np.float32)
    expected = x.astype(np.float64) @ A[:, :n].astype(np.float64)
    report = emulate_kernel(kernel, -(-n // (WARP * R)), WARP, n, k, x, A, y)
    return Run(R, n, k, kernel, y, expected, report)


# ---- the numbers -------------------------------------------------------------------------------------------


def _check_numbers(run: Run):
    if run.report.errors:
        finding = run.report.errors[0]
        raise Refused(_words(finding, run), f"{line_at(run.kernel, finding.line)}. {run}.")
    wrong = np.flatnonzero(~(abs(run.y[: run.n] - run.expected) <= 1e-5 * run.expected))
    beyond = np.flatnonzero(~np.isnan(run.y[run.n :]))
    if len(beyond):
        raise Refused(
            f"`y[{run.n + beyond[0]}]` is written, and there are only n = {run.n} columns: the rest of the "
            "array is not the kernel's. Compare `first + 32 * i` with `n`.",
            f"{run}.",
        )
    if len(wrong):
        _refuse_numbers(run, wrong)


def _refuse_numbers(run: Run, wrong: np.ndarray):
    first = int(wrong[0])
    where = (
        f"{run}: `y[{first}]`, column {first % (WARP * run.R) // WARP} of thread {first % WARP} in block "
        f"{first // (WARP * run.R)}, is {number_shown(run.y[first])}; it should be {run.expected[first]:.5g}."
    )
    if not np.isnan(run.y[wrong]).all():
        raise Refused("The numbers are wrong.", where)
    if set(wrong // WARP % run.R) == set(range(1, run.R)) and len(wrong) >= run.n // run.R:
        raise Refused(
            "Only the first of each thread's R columns is computed: with fewer results a thread nothing "
            "spills, but the launch counts on R of them, and they are what makes the kernel fast.",
            where,
        )
    raise Refused("Some elements of y are never stored.", where)


def _words(finding, run: Run) -> str:
    if finding.kind == "out_of_bounds":
        return (
            "Without the shorter loop the columns that do not exist need a guard of their own: `if first + "
            f"32 * i < n`. {finding.message}"
        )
    if finding.kind == "uninitialised_read":
        return f"Something is added to before it was set to zero. {finding.message}"
    return finding.message


# ---- the lesson --------------------------------------------------------------------------------------------


def _check_float64(run: Run):
    doubles = run.report.arithmetic.query("dtype == 'float64'")
    if len(doubles):
        lines = sorted(doubles["line"].unique())
        raise Refused(
            f"The result is right, but it is computed in float64. {why_float64(run.kernel, lines)}",
            line_at(run.kernel, int(lines[0])),
        )


def _check_local(run: Run):
    dynamic = [f for f in run.report.advice if f.kind == "dynamic_local_index"]
    if not dynamic:
        return
    array, tree = dynamic[0].array, source_tree(run.kernel.py_func)
    names = _index_names(tree, array)
    loop = next((loop for loop in _loops(tree) if names and _is_open_ended(loop, names)), None)
    if loop is None:
        raise Refused(
            f"The result is right, but which element of `{array}` is meant depends on more than a loop's "
            "own counter, and registers cannot be counted through while the kernel runs. Index it with `i` "
            "alone.",
            f"{line_at(run.kernel, dynamic[0].line)}. {dynamic[0].message}",
        )
    if isinstance(loop, ast.While):
        raise Refused(
            f"The result is right, but `{array}` is still in local memory: a `while` loop is not written "
            "out. Use `for i in range(R)`, with a guard inside.",
            line_at(run.kernel, loop.lineno),
        )
    raise Refused(
        f"The result is right, but `{array}` is still in local memory: how often a loop over it turns is "
        "only known when it runs, so it cannot be written out. Let all of them turn R times.",
        line_at(run.kernel, loop.lineno),
    )


def _index_names(tree: ast.AST, array: str) -> set[str]:
    """The variables that index `array`; empty if something else does as well."""
    indices = [
        node.slice
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == array
    ]
    return {i.id for i in indices} if all(isinstance(i, ast.Name) for i in indices) else set()


def _loops(tree: ast.AST) -> list[ast.For | ast.While]:
    return [node for node in ast.walk(tree) if isinstance(node, (ast.For, ast.While))]


def _is_open_ended(loop: ast.For | ast.While, names: set[str]) -> bool:
    """The loop counts one of these up, to an end that is no constant of the factory."""
    if isinstance(loop, ast.While):
        counted = {ast.unparse(n.target) for n in ast.walk(loop) if isinstance(n, ast.AugAssign)}
        return bool(counted & names)
    return ast.unparse(loop.target) in names and ast.unparse(loop.iter) != "range(R)"


def _check_elsewhere(run: Run):
    """The results are neither in shared nor in global memory."""
    if run.report.shared_bytes:
        raise Refused(
            "The results are in shared memory now. That is better than local memory, but every multiply-add "
            "reads and writes it: two requests where a register needs none.",
            f"{run}: {run.report.shared_bytes:,} bytes of shared memory a block.",
        )
    if run.lanes("load", "y") or run.lanes("store", "y") > run.n:
        raise Refused(
            "The sums are kept in `y` itself, in global memory. Keep them in the thread's own array, and "
            "store each once.",
            f"{run}: {run.lanes('load', 'y')} loads from `y`.",
        )


def _check_reads(run: Run):
    """One pass along k: the element of x serves all of a thread's results."""
    most = run.threads * run.k
    if run.lanes("load", "x") > most:
        raise Refused(
            "The result is right and in registers, but x is read anew for every result: each thread goes "
            "along k R times, one result at a time. Go once, with all R at hand.",
            f"{run}: {run.lanes('load', 'x'):,} loads from x, where {most:,} are enough.",
        )
    if run.lanes("load", "A") > run.n * run.k:
        raise Refused(
            "A is read more often than once an element.",
            f"{run}: {run.lanes('load', 'A'):,} loads from A, where {run.n * run.k:,} are enough.",
        )
