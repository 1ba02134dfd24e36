"""Checks ``last_arrival``: the block that arrives last adds up the parts of a tile."""

import numpy as np

from gemm_course.checks.core import Refused, Written, check_begun, exercise, kernel_of, nothing_yet
from gemm_course.checks.engines.lessons import no_float64
from gemm_course.checks.engines.trial import Trial, try_kernel
from lockstep import Watch

ARGUMENTS = ("k", "A", "B", "partials", "done", "C")
SIDE = 8
# The sizes are (m, n, k, parts). A small one is first, as a kernel that hangs is found thread by thread.
SIZES = ((8, 8, 24, 3), (16, 24, 37, 5), (8, 8, 4, 1), (8, 16, 64, 3))


@exercise(
    start="store `acc` into `partials[part, row, col]`.",
    hints=(
        "Four steps: store the part; count it; see whether it was the last; if so, add up and store.",
        "Before the count: `cuda.threadfence()`, then `cuda.syncthreads()`. Then everything that the block's "
        "threads have stored can be seen before its number is.",
        "One thread counts: `before[0] = cuda.atomic.add(done, (cuda.blockIdx.y, cuda.blockIdx.x), 1)`. It "
        "returns what was there before. A barrier, then all threads read `before[0]`.",
        "The last one found `parts - 1`. It adds `partials[p, row, col]` for p from 0 to `parts - "
        "1`, its own "
        "in its turn, stores the sum in C, and sets `done` back to 0.",
    ),
)
def last_arrival(kernel):
    """A kernel (k, A, B, partials, done, C): gridDim.z blocks share a tile of 8 by 8 along k."""
    kernel = kernel_of(kernel, ARGUMENTS)
    _check_that_nobody_waits(kernel)
    first = [_try(kernel, *size) for size in SIZES]
    check_begun(kernel, *(trial.report for trial in first))
    if not any(
        trial.lanes("store", "partials", "C") or _counts(trial) or _atomics(trial, "C") for trial in first
    ):
        raise nothing_yet()
    for trial in first:
        _check(trial)
        _check(_again(kernel, trial))
    _check_that_the_count_decides(kernel, first[0])
    _check_the_second_fence(first[0])
    return (
        f"Right for {len(SIZES)} shapes and twice in a row, with 1 to 5 parts: nobody waits for another "
        "block, and the parts are added in the order of k, whoever is last."
    )


def _check_that_nobody_waits(kernel) -> None:
    """Refuse a loop that looks at `done` until it has changed."""
    written = Written(kernel)
    done = written.parameters[ARGUMENTS.index("done")]
    for loop in written.loops:
        if not loop.variable and done in loop.names:
            raise Refused(
                "A block waits here until others have counted. If waiting blocks hold all SMs, those "
                "they wait for never start, and a GPU hangs. Count once and go on: the block that counts "
                "last adds up.",
                f"`while {loop.over.text}`, line {loop.line} of the kernel.",
            )


def _try(kernel, m: int, n: int, k: int, parts: int) -> Trial:
    rng = np.random.default_rng((m, n, k))
    A, B = (rng.uniform(-1, 1, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    partials = np.full((parts, m, n), np.nan, np.float32)
    done = np.zeros((m // SIDE, n // SIDE), np.int32)
    C = np.full((m, n), np.nan, np.float32)
    about = f"With m = {m}, n = {n}, k = {k} and {parts} part{'s' * (parts > 1)} per tile"
    return _launch(kernel, k, A, B, partials, done, C, about=about)


def _again(kernel, trial: Trial) -> Trial:
    """Launch a second time, with the counts that the first launch left."""
    k, A, B = (trial.before[name] for name in "kAB")
    partials, C = (np.full_like(trial.before[name], np.nan) for name in ("partials", "C"))
    about = f"{trial.about}, launched a second time"
    return _launch(kernel, k, A, B, partials, trial.after["done"], C, about=about)


def _check_that_the_count_decides(kernel, trial: Trial) -> None:
    """Refuse a kernel in which the last part's block adds up, whatever it finds in the count.

    The emulator's blocks come in the order of their numbers. With a count that begins at 1 it is the last but
    one that finds ``parts - 1``, and what it stores lacks the last part.
    """
    k, A, B, partials, done, C = (trial.before[name] for name in ARGUMENTS)
    other = _launch(kernel, k, A, B, partials, np.ones_like(done), C, about=trial.about)
    exact = A.astype(float) @ B
    if np.allclose(other.after["C"], exact, rtol=1e-4, atol=1e-4):
        raise Refused(
            "Which block adds up does not depend on the count: it is always the one with the last part. "
            "Blocks "
            "run in any order, and on a GPU another may come last. Add up in the block that found `parts - "
            "1`.",
            f"{trial.about}.",
        )


def _check_the_second_fence(trial: Trial) -> None:
    """Refuse a kernel without a fence between the count and the last block's loads; no run shows its lack."""
    fences, counts = _calls(trial, "threadfence"), _counts(trial)
    if fences and not any(fence > min(counts) for fence in fences):
        raise Refused(
            "The second fence is missing: `cuda.threadfence()` once more, after the count and before the "
            "parts "
            "are read. No run here shows it, but without it CUDA does not promise that what the last block "
            "reads "
            "is as new as the count.",
            trial.line(min(counts)) + ".",
        )


def _launch(kernel, k, A, B, partials, done, C, about: str, **options) -> Trial:
    grid = C.shape[1] // SIDE, C.shape[0] // SIDE, len(partials)
    arguments = (k, A, B, partials, done, C)
    return try_kernel(
        kernel, ARGUMENTS, grid, (SIDE, SIDE), *arguments, about=about, step_limit=2000, **options
    )


def _check(trial: Trial) -> None:
    if _atomics(trial, "C"):
        raise Refused(
            "Parts are added straight into C, in the order in which blocks happen to come: the last bits "
            "change from run to run, and C would have to be zero before. Give each part its place in "
            "`partials`.",
            f"{trial.about}.",
        )
    for finding in trial.report.errors:
        if not _same_reset(trial, finding):
            meaning = _meaning(trial, finding)
            where = (
                f"{finding.message} {trial.about}." if meaning else f"{trial.line(finding)}. {trial.about}."
            )
            raise Refused(meaning or finding.message, where)
    parts, C = trial.grid[2], trial.after["C"]
    exact = trial.before["A"].astype(float) @ trial.before["B"]
    wrong = ~np.isclose(C, exact, rtol=1e-4, atol=1e-4)
    where = trial.first_wrong("C", wrong, exact) if wrong.any() else f"{trial.about}."
    if "second time" in trial.about and trial.before["done"].any():
        raise Refused(
            "The next launch finds the counts of this one. The block that arrives last must set `done` back "
            "to 0.",
            where,
        )
    if wrong.any():
        raise Refused(_likely(trial, exact), where)
    if trial.lanes("load", "C") or trial.lanes("store", "C") > C.size:
        raise Refused(
            "The result is right, but C is stored more than once, and global memory is slow. Add up in a "
            "variable, "
            "from `float32(0)`, and store the sum once.",
            where,
        )
    no_float64(trial)
    partials = trial.after["partials"]
    if parts > 1 and not (C == _added(partials)).all():
        if C.shape == C.T.shape and (C == _added(partials).T).all():
            raise Refused(
                "C is right, but row and column are swapped in `partials`, where parts are stored and where "
                "they are read. It fits only where m = n: use `partials[part, row, col]`.",
                where,
            )
        if (C == _added(partials[::-1])).all():
            raise Refused(
                "The result is right, and the same in each run, but the parts are added from the last to the "
                "first. Add them in the order of k: `for p in range(parts)`.",
                where,
            )
        raise Refused(
            "The result is right, but its last bits depend on who arrives last: the parts are not added in "
            "the order of k. Add them from the first to the last, your own read back in its turn.",
            where,
        )


def _same_reset(trial: Trial, finding) -> bool:
    """Tell whether only threads of each tile's last block race, which store the same 0 in `done`.

    Nobody depends on which of them is first: all blocks have counted, and 0 is there afterwards.
    """
    resets = trial.lanes("store", "done")
    return (
        finding.kind == "global_race"
        and finding.array == trial.own_name("done")
        and finding.line in trial.accesses("store", "done")["line"].tolist()
        and finding.count == resets - trial.after["done"].size
        and not trial.after["done"].any()
    )


def _added(parts: np.ndarray) -> np.ndarray:
    """Return the sum, in float32 and in this order."""
    total = np.zeros_like(parts[0])
    for part in parts:
        total = total + part
    return total


def _meaning(trial: Trial, finding) -> str:
    """Return what a race means here."""
    own = {name: trial.own_name(name) for name in ("partials", "done", "C")}
    if finding.kind == "shared_race":
        if trial.after["done"].max() > trial.grid[2] or finding.other_line == finding.line:
            return "All threads count, and all write `before[0]`. A block arrives once: let one thread count."
        return "The other threads read `before[0]` while thread (0, 0) may not have written it: a barrier."
    if finding.array == own["done"] and _is_swapped(finding):
        return (
            "Row and column of `done` are swapped. A tile's row is `cuda.blockIdx.y`, and comes first: "
            "`(cuda.blockIdx.y, cuda.blockIdx.x)`."
        )
    if finding.kind != "global_race":
        return ""
    if finding.array == own["C"]:
        return (
            "Blocks that share a tile store to the same elements of C. Each part needs a place of "
            "its own, in "
            "`partials`, and one block adds them up."
        )
    if finding.array == own["done"] and _counts(trial):
        return (
            "`done` is read or set while other blocks may still count. Only the block that counted last may "
            "touch it but by `cuda.atomic.add`: it sets it to 0."
        )
    if finding.array == own["done"]:
        return (
            "Two blocks may read the same count, and then one is lost. Reading and adding must be one step: "
            "`cuda.atomic.add`."
        )
    if finding.array == own["partials"]:
        _, row, col = finding.element
        if (col // SIDE, row // SIDE) != finding.block[:2]:
            return (
                "The last block reads parts of another tile. Row and column are those at which this thread "
                "stored its own part: `partials[p, row, col]`."
            )
        return _what_orders(trial)
    return ""


def _what_orders(trial: Trial) -> str:
    """Return what is missing between a part's store and the last block's loads."""
    if not trial.total("lanes", "load", "done") and not _counts(trial):
        return (
            "One block reads the parts of others, and nothing tells it that they are there. Blocks "
            "run in any "
            "order: count those that have stored."
        )
    stores = trial.accesses("store", "partials")["line"]
    if len(stores) and _counts(trial) and stores.max() > min(_counts(trial)):
        return (
            "The part is counted before it is stored. Whoever counts last would read what is not there yet."
        )
    if _counts(trial) and not _reads_parts(trial, trial.grid[2] - 1):
        return (
            "The block that adds up is not the one that counted last: others may not have stored their parts "
            "when it reads them. The last one found `parts - 1` in the count."
        )
    if _counts(trial) and _reads_parts(trial, 0):
        return (
            "A block adds up before it knows that all parts are there, the first one too. Only the block "
            "that found `parts - 1` in the count may: when it counts, all others have counted."
        )
    if not _first_call(trial, "threadfence") < _first_call(trial, "atomic.add"):
        return (
            "Other blocks may see the count before they see the part: without `cuda.threadfence()` a GPU may "
            "make stores visible in any order."
        )
    return (
        "The block is counted although some of its threads may not have stored their part yet, or not behind "
        "a fence: store, `cuda.threadfence()`, `cuda.syncthreads()`, and only then count."
    )


def _is_swapped(finding) -> bool:
    """Tell whether a finding is at the place of `done` that has a tile's column first."""
    return finding.element == finding.block[:2] != finding.element[::-1]


def _reads_parts(trial: Trial, part: int) -> bool:
    """Tell whether a part's block reads parts. On the emulator blocks count in the order of their parts."""
    arguments = [trial.before[name] for name in ARGUMENTS]
    watch = Watch(block=(0, 0, part), local=False)
    trace = _launch(trial.kernel, *arguments, about=trial.about, watch=watch).report.trace
    return bool(((trace["array"] == trial.own_name("partials")) & (trace["op"] == "load")).any())


def _counts(trial: Trial) -> list[int]:
    """Return the lines that count."""
    return _atomics(trial, "done")


def _atomics(trial: Trial, name: str) -> list[int]:
    """Return the lines with atomic operations on an argument."""
    rows = trial.report.accesses
    rows = rows[(rows["array"] == trial.own_name(name)) & ~rows["op"].isin(["load", "store"])]
    return rows["line"].tolist()


def _first_call(trial: Trial, name: str) -> float:
    """Return the line of the first call of a function of this name; infinity if there is none."""
    return min(_calls(trial, name), default=float("inf"))


def _calls(trial: Trial, name: str) -> list[int]:
    """Return the lines that call a function of this name."""
    return [call.line for call in trial.written.calls(name)]


def _likely(trial: Trial, exact: np.ndarray) -> str:
    parts, C = trial.grid[2], trial.after["C"]
    if np.isnan(C).all():
        if trial.lanes("load", "partials"):
            return "The parts are read, but what C holds is not a number."
        return (
            "Nobody stores C: no block believes that it is the last. `cuda.atomic.add` returns the count "
            "*before* it adds, so the last of `parts` blocks finds `parts - 1`."
        )
    if C.shape == exact.T.shape and np.allclose(C, exact.T, rtol=1e-4, atol=1e-4):
        return (
            "A thread adds up the parts of another one: row and column are swapped. Read "
            "`partials[p, row, col]`."
        )
    partials = trial.after["partials"]
    mine = [np.allclose(C, part, rtol=1e-4, atol=1e-4) for part in partials]
    if parts > 1 and any(mine):
        return "C holds one part only. The last block must add up those of all."
    if parts > 1 and np.allclose(C + partials[-1], exact, rtol=1e-4, atol=1e-4):
        return "The last block's own part is missing from the sum."
    if parts > 1 and np.allclose(C - partials[-1], exact, rtol=1e-4, atol=1e-4):
        return "The last block's own part is added twice: it is in `acc` and in `partials`."
    if trial.lanes("store", "C") == trial.after["done"].size:
        return (
            "Only one thread of a tile's last block adds up. Each thread has an element of its own: what one "
            "thread finds in the count, all of the block must see, in `before[0]`."
        )
    if np.isnan(C).any():
        return "Not all elements of C are stored, or they hold parts that were not there yet."
    return "Not all elements of C are right."
