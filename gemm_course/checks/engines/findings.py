"""Tells what the emulator's findings mean in a tiled kernel: which barrier or which guard is missing."""

from typing import Any

from gemm_course.checks.core import Call, Written
from lockstep import Finding

from .gemm import GemmTrial


def not_called(kernel: Any) -> str:
    """Return what is wrong with a `cuda.syncthreads` without parentheses, and where; "" without one."""
    for part in Written(kernel).parts:
        named = part.text in ("cuda.syncthreads", "syncthreads")
        if named and not isinstance(part.around[0], Call):
            return (
                "`cuda.syncthreads` without parentheses only names the barrier, and no thread waits. Call "
                f"it: `cuda.syncthreads()`. {part.where}."
            )
    return ""


def _race(finding: Finding, trial: GemmTrial) -> str:
    if said := not_called(trial.kernel):
        return said
    if not trial.report.barriers:
        return (
            'There is no barrier at all. One has to say "the tiles are complete", and one "nobody needs them '
            'any more". ' + _told(finding)
        )
    later = _op(finding, trial)
    if later == "load" and _waits_too_early(finding, trial):
        return (
            "The first barrier stands too early: there it waits for nothing. It must come when both tiles "
            f"are filled, and before they are used. {_told(finding)}"
        )
    if later == "load":
        return (
            "The first barrier is missing, the one between filling the tiles and using them. "
            f"{_told(finding)}"
        )
    if _reads(finding, trial):
        return (
            "The second barrier is missing, the one after the inner loop. The numbers may come out right, by "
            "luck: a fast thread already fills the next tile while another still uses this one. "
            f"{_told(finding)}"
        )
    return (
        f"Two threads fill the same element of `{finding.array}`. Every thread has a place of its own in the "
        f"tile, `[ty, tx]`. {_told(finding)}"
    )


def _waits_too_early(finding: Finding, trial: GemmTrial) -> bool:
    """Return whether one of two barriers per tile comes before the store that a read must wait for."""
    if trial.tiles is None:
        return False
    tiles = -(-trial.problem.k // trial.tiles.block_tile[2])
    lines = trial.report.barriers_by_line["line"]
    return trial.barriers_per_block >= 2 * tiles and bool((lines < finding.other_line).any())


def _told(finding: Finding) -> str:
    """Return the emulator's message about two threads, with their block."""
    x, y, _ = finding.block
    return f"In block ({x}, {y}): {finding.message}"


def _op(finding: Finding, trial: GemmTrial) -> str:
    """Return the operation of the later of the two racing accesses."""
    return str(trial.report.accesses.query("site == @finding.site and array == @finding.array")["op"].iloc[0])


def _reads(finding: Finding, trial: GemmTrial) -> bool:
    """Return whether the earlier of the two racing accesses is a read."""
    at = trial.report.accesses.query("line == @finding.other_line and array == @finding.array")
    return "load" in set(at["op"])


def _divergence(finding: Finding, trial: GemmTrial) -> str:
    if trial.written.returns:
        return (
            "The threads outside C `return` and never reach the barrier, so nobody fetches their part. "
            f"Let them go on, and guard only the loads and the store. {finding.message}"
        )
    return (
        "The barrier is inside an `if` that not all threads of the block take. Only loads and stores may be "
        f"guarded, never a barrier. {finding.message}"
    )


def _uninitialised(finding: Finding, trial: GemmTrial) -> str | None:
    if finding.array is None:
        return None
    stores = trial.report.accesses.query("array == @finding.array and op == 'store'")
    if stores.empty:
        return f"Nothing is ever stored into `{finding.array}`. {finding.message}"
    return (
        f"A part of `{finding.array}` is never filled: where the matrix has ended nothing is stored, so "
        f"anything may be in it. Store a zero there. {finding.message}"
    )


def _out_of_bounds(finding: Finding, trial: GemmTrial) -> str | None:
    q, (a, b) = trial.problem, (trial.own_name("A"), trial.own_name("B"))
    if finding.array not in (a, b):
        return None
    row, col = finding.element
    along_k, other = (col, row) if finding.array == a else (row, col)
    outside = q.m if finding.array == a else q.n
    if along_k == q.k and (guard := _one_too_many(trial, "k")):
        return (
            f"`{guard}` lets one step too many through: the last one along k is k - 1, so it must be `<`. "
            f"{finding.message}"
        )
    if along_k >= q.k:
        return (
            f"The last tile of {finding.array} reaches past the end of k, and its load is not guarded there. "
            f"Put a zero into the tile instead. {finding.message}"
        )
    size = "m" if finding.array == a else "n"
    if other == outside and (guard := _one_too_many(trial, size)):
        return (
            f"`{guard}` lets one index too many through: the last one is {size} - 1, so it must be `<`. "
            f"{finding.message}"
        )
    if other >= outside and not _is_inside(finding, trial):
        return (
            f"Threads outside C load from {finding.array} where it has ended. They must store a zero "
            f"instead. {finding.message}"
        )
    return None


def _one_too_many(trial: GemmTrial, size: str) -> str:
    """Return a guard of the source with `<=` before a size, as written; "" if there is none."""
    own = trial.own_name(size)
    of_loops = {each for loop in trial.written.loops for each in loop.over.comparisons}
    for each in trial.written.comparisons:
        if each not in of_loops and own == {"<=": each.right.text, ">=": each.left.text}.get(each.sign):
            return each.text
    return ""


def _is_inside(finding: Finding, trial: GemmTrial) -> bool:
    """Return whether the thread has an element of C to compute."""
    (bx, by, _), (tx, ty, _) = finding.block, finding.threads[0]
    x, y = trial.geometry.block
    return by * y + ty < trial.problem.m and bx * x + tx < trial.problem.n


FINDINGS = {
    "shared_race": _race,
    "barrier_divergence": _divergence,
    "barrier_after_exit": _divergence,
    "barrier_in_branch": _divergence,
    "uninitialised_read": _uninitialised,
    "out_of_bounds": _out_of_bounds,
}
