"""Checks ``in_registers``: a kernel whose accumulators leave the registers, and how to keep them there."""

import re
from collections.abc import Iterator
from itertools import groupby

import numpy as np

from gemm_course.checks.core import (
    Comparison,
    Loop,
    Refused,
    Written,
    call,
    check_begun,
    exercise,
    factory_of,
    kernel_of,
    nothing_yet,
    number_shown,
    same_statements,
)
from gemm_course.checks.engines import Trial, kept_in_registers, no_float64, try_kernel
from gemm_course.checks.engines.problem import PADDING_OF_C
from gemm_course.checks.kits import make_strip as handed_out
from lockstep import Finding, Watch

ARGUMENTS = ("n", "k", "x", "A", "y")
WARP = 32
RESULTS = (4, 16)
# With R up to 8 the compiler keeps arrays in registers that leave them with 16.
MOST = max(RESULTS)
# The array of y has this many elements more than n, all of them NaN.
BEYOND = 4


@exercise(
    start="this is still the kernel as it was handed out. Too many values, or an index that nobody knows? "
    "Decide first, then look for the line.",
    hints=(
        "A register has no address. The compiler must see, for every access to `acc`, which element it is: "
        "it unrolls the loop into `acc[0]`, `acc[1]`, ...",
        "It unrolls `range(R)`, as R is a constant of the factory. `range(count)` around `acc[i] += ...` it "
        "does not unroll, where R is 16.",
        "Let every loop run R iterations, and skip columns that do not exist with a guard inside: "
        "`if first + 32 * i < n:`.",
    ),
)
def in_registers(make_strip):
    """A factory (R) of kernels (n, k, x, A, y) that compute y = x A, R columns per thread, in registers."""
    make = factory_of(make_strip, ("R",))
    kernels = {R: kernel_of(call(make, R), ARGUMENTS) for R in RESULTS}
    first = kernels[RESULTS[0]]
    if same_statements(first, handed_out(RESULTS[0])):
        raise nothing_yet()
    trials = [(R, _try_on(kernel, R, n, k)) for R, kernel in kernels.items() for n, k in _sizes(R)]
    check_begun(first, *(trial.report for _, trial in trials))
    for R, trial in trials:
        _check_numbers(R, trial)
    for R, trial in trials:
        no_float64(trial)
        _check_elsewhere(trial)
        _check_loads(R, trial)
    registers = _check_local(next(trial for R, trial in trials if R == MOST), MOST)
    return (
        f"Right for R = {' and '.join(map(str, RESULTS))} at {len(trials)} sizes, in one pass along k. "
        f"{registers}"
    )


def _sizes(R: int) -> tuple[tuple[int, int], ...]:
    """Return (n, k) for whole blocks, for columns of a thread outside, and for threads without a column."""
    return (2 * WARP * R, 3), (WARP * R + WARP + 5, 4), (7, 5), (1, 1)


def _try_on(kernel, R: int, n: int, k: int, **options) -> Trial:
    """Launch a warp per block: x of k, A of k by n, y of n elements. options: passed to `emulate`."""
    rng = np.random.default_rng((R, n, k))
    x = rng.uniform(0.5, 2, k).astype(np.float32)
    A, y = rng.uniform(0.5, 2, (k, n)).astype(np.float32), np.full(n + BEYOND, PADDING_OF_C, np.float32)
    about = f"With R = {R}, n = {n}, k = {k}"
    return try_kernel(kernel, ARGUMENTS, -(-n // (WARP * R)), WARP, n, k, x, A, y, about=about, **options)


# ---- the numbers -------------------------------------------------------------------------------------------


def _check_numbers(R: int, trial: Trial):
    if trial.report.errors:
        finding = trial.report.errors[0]
        raise Refused(_words(finding, trial), f"{trial.line(finding)}. {trial.about}.")
    n, y = trial.before["n"], trial.after["y"]
    beyond = np.flatnonzero(trial.touched("y")[n:])
    if len(beyond):
        raise Refused(
            f"`y[{n + beyond[0]}]` is written, and there are only n = {n} columns: the rest of the array is "
            f"not the kernel's. {_too_far(trial) or 'Compare `first + 32 * i` with `n`.'}",
            f"{trial.about}.",
        )
    expected = trial.before["x"].astype(np.float64) @ trial.before["A"].astype(np.float64)
    wrong = np.flatnonzero(~(abs(y[:n] - expected) <= 1e-5 * expected))
    if not len(wrong):
        return
    i = int(wrong[0])
    where = (
        f"{trial.about}: `y[{i}]`, column {i % (WARP * R) // WARP} of thread {i % WARP} in block "
        f"{i // (WARP * R)}, is {number_shown(y[i])}; it should be {expected[i]:.5g}."
    )
    if not y[wrong][~np.isnan(y[wrong])].any() and (said := _one_for_all(trial)):
        raise Refused(said, where)
    last = trial.before["x"][-1].astype(np.float64) * trial.before["A"][-1]
    if (abs(y[:n] - last) <= 1e-5 * last).all():
        raise Refused(
            "Each result is the product of the last step alone: those before are overwritten. Add each to "
            "the accumulator, `acc[i] += ...`.",
            where,
        )
    if not np.isnan(y[wrong]).all():
        raise Refused("The numbers are wrong.", where)
    if set(wrong // WARP % R) == set(range(1, R)) and len(wrong) >= n // R:
        raise Refused(
            "Only the first of each thread's R columns is computed: with fewer results per thread nothing "
            "spills, but the launch counts on R of them, and they are what makes the kernel fast.",
            where,
        )
    if trial.lanes("load", "y"):
        raise Refused(
            "The store adds to what was in `y` before the launch, and that is not the kernel's. Store with "
            "`=`, not with `+=`.",
            where,
        )
    raise Refused("Some elements of y are never stored.", where)


def _words(finding: Finding, trial: Trial) -> str:
    if finding.kind == "out_of_bounds" and (said := _past_the_array(finding, trial)):
        return f"{said} {finding.message}"
    if finding.kind == "out_of_bounds" and (said := _too_far(trial) or _first_alone(trial)):
        return f"{said} {finding.message}"
    if finding.kind == "shared_race":
        return (
            f"`{finding.array}` is in shared memory, so all threads of the block have the same one. Results "
            f"are a thread's own: `{finding.array} = cuda.local.array(R, float32)`. {finding.message}"
        )
    if finding.kind == "global_race" and len(set(finding.threads)) > 1:
        return (
            "Two lanes have the same column. A thread's columns are 32 apart, `first + 32 * i`, and those "
            f"between belong to the other lanes of its warp. {finding.message}"
        )
    if finding.kind == "out_of_bounds":
        return (
            "Only columns below n exist, and without the shorter loop they need a guard of their own: "
            f"`if first + 32 * i < n`. {finding.message}"
        )
    if finding.kind == "uninitialised_read":
        return f"Something is added to before it was set to zero. {finding.message}"
    return finding.message


def _too_far(trial: Trial) -> str | None:
    """Return what to do about a guard that lets the column n pass, `<= n`, or None."""
    for guard in trial.written.comparisons:
        if guard.sign == "<=" and guard.right.text == trial.own_name("n"):
            return (
                f"The guard `{guard.text}` lets column n through, and the last one is n - 1: write `<` for "
                "`<=`."
            )
    return None


def _past_the_array(finding: Finding, trial: Trial) -> str | None:
    """Return what to do about an index that leaves an array of the thread's own, or None."""
    local = trial.report.accesses.query("space == 'local'")
    if finding.array not in set(local["array"]):
        return None
    around = [loop for loop in trial.written.loops if finding.line in loop.lines]
    if _size_of(trial.written, finding.array) not in ("R", None):
        return (
            f"A thread has R results, and `{finding.array}` has another size: `{finding.array} = "
            "cuda.local.array(R, float32)`."
        )
    if around and around[-1].variable and not _known_range(around[-1]):
        return (
            f"The loop over `{around[-1].over.text}` goes past the end of `{finding.array}`: a thread has "
            "R results, so let it run R iterations, `range(R)`."
        )
    return f"The index leaves `{finding.array}`, which has R elements."


def _size_of(written: Written, array: str) -> str | None:
    """Return the size that a local array is declared with, as written, or None where that is not seen."""
    declared = next((value.text for target, value in written.assignments if target.text == array), "")
    found = re.fullmatch(r"[\w.]*local\.array\((?:shape=)?\(?(.*?),?\)?, .*\)", declared)
    return found[1] if found else None


def _one_for_all(trial: Trial) -> str | None:
    """Return what to do about a guard that keeps out all of a thread's columns if its last does not exist."""
    for guard in _guards_of_threads(trial, "<", "<="):
        if "R" in guard.names:
            return (
                f"The guard `{guard.text}` is one for all R columns of a thread: where the last of them does "
                "not exist, the others are left out too. Each column needs its own: `if first + 32 * i < n`."
            )
    return None


def _first_alone(trial: Trial) -> str | None:
    """Return what to do about a guard that is the same for all columns of a thread, `first < n`."""
    for guard in _guards_of_threads(trial, "<"):
        return (
            f"The guard `{guard.text}` tests a thread's first column only. Each column needs its own: "
            "`if first + 32 * i < n`."
        )
    return None


def _guards_of_threads(trial: Trial, *signs: str) -> Iterator[Comparison]:
    """Yield comparisons with n, by one of these signs, with no variable that a loop changes."""
    varying = set().union(*(loop.names_set for loop in trial.written.loops))
    for each in trial.written.comparisons:
        if each.sign in signs and each.right.text == trial.own_name("n") and not varying & each.names:
            yield each


# ---- the lesson --------------------------------------------------------------------------------------------


def _check_local(trial: Trial, R: int) -> str:
    """Refuse a local array that leaves the registers; return what is known about it, as a sentence."""
    return kept_in_registers(trial, lambda lines, names: _why(trial.written, lines, names), f"R = {R}")


def _why(written: Written, lines: list[int], names: list[str]) -> tuple[str, int] | None:
    """Return why the arrays of these names leave the registers in these lines, and the line of the loop."""
    if not lines:
        return None
    around = [loop for loop in written.loops if any(line in loop.lines for line in lines)]
    indices = set().union(*(_index_names(written, name) for name in names))
    open_ended = next((loop for loop in around if _is_open_ended(loop, indices)), None)
    if open_ended is not None:
        return (
            "How often a loop over it runs is only known at run time, so the compiler does not write it out. "
            "Let it run R iterations, with a guard inside.",
            open_ended.line,
        )
    return (
        f"Which element of `{names[0]}` is meant depends on more than a loop's own variable, and a register "
        "has no address that could be computed while the kernel runs. Index it with `i` alone.",
        lines[0],
    )


def _index_names(written: Written, array: str) -> set[str]:
    """Return the variables that index `array`; empty if something else does as well."""
    indices = {element.index.text for element in written.elements(array)}
    return indices if indices <= written.names else set()


def _is_open_ended(loop: Loop, names: set[str]) -> bool:
    """Return whether the loop counts one of these up, to an end that is no constant of the factory."""
    if not loop.variable:
        return any(target.text in names for target in loop.updated) and "R" not in loop.over.names
    return loop.variable in names and not _known_range(loop)


def _known_range(loop: Loop) -> bool:
    """Return whether the loop is over `range(R)`, `range(len(acc))` or the like, which is constant."""
    return bool(re.fullmatch(r"range\((R|len\(\w+\)|\w+\.(size|shape\[0\]))\)", loop.over.text))


def _check_elsewhere(trial: Trial):
    """Refuse accumulators in shared or in global memory."""
    if trial.report.shared_bytes:
        raise Refused(
            "The accumulators are in shared memory now. That is better than local memory, but every "
            "multiply-add reads and writes it: two requests where a register needs none.",
            f"{trial.about}: {trial.report.shared_bytes:,} bytes of shared memory per block.",
        )
    loads, stores, n = trial.lanes("load", "y"), trial.lanes("store", "y"), trial.before["n"]
    if loads:
        raise Refused(
            "The accumulators are kept in `y` itself, in global memory. Keep them in the thread's own array, "
            "and store each once.",
            f"{trial.about}: {loads} loads from `y`.",
        )
    if stores > n:
        raise Refused(
            "`y` is stored more often than once per element. Store each result once, after the loop over "
            "`p`.",
            f"{trial.about}: {stores:,} stores to `y`, where {n:,} are enough.",
        )


def _passes(R: int, trial: Trial) -> int:
    """Return how often thread 0 comes back to its first element of x."""
    watched = _try_on(trial.kernel, R, trial.before["n"], trial.before["k"], watch=Watch(warp=0, local=False))
    trace, name = watched.report.trace, trial.own_name("x")
    steps = [
        element for element, _ in groupby(trace[(trace["array"] == name) & (trace["thread"] == 0)]["element"])
    ]
    return steps.count(steps[0]) if len(set(steps)) > 1 else 1


def _check_loads(R: int, trial: Trial):
    """Refuse a second pass along k, and on whole blocks a second load of A and uncoalesced loads."""
    n, k = trial.before["n"], trial.before["k"]
    passes = _passes(R, trial)
    if passes > 1:
        raise Refused(
            f"The result is right, but a thread goes along k {passes} times, for a part of its results each "
            "time. Go once, with all R at hand: the loop over `p` outside, the loop over `i` inside.",
            f"{trial.about}.",
        )
    if n % (WARP * R):
        return
    if trial.lanes("load", "A") > n * k:
        raise Refused(
            "A is read more often than once per element.",
            f"{trial.about}: {trial.lanes('load', 'A'):,} loads from A, where {n * k:,} are enough.",
        )
    sectors, least = (tried.sectors("load", "A") for tried in (trial, _try_on(handed_out(R), R, n, k)))
    if sectors > least:
        raise Refused(
            "The result is right, but the loads of A are no longer coalesced: neighbours in "
            "a warp must load neighbours of A. So a thread's columns are 32 apart, `first + 32 * i`.",
            f"{trial.about}: {sectors:,} sectors of A, where {least:,} are enough.",
        )
