"""Names slips in a kernel with one thread per element of C: in its place, its guard, its share of work."""

from collections import Counter
from itertools import product

import numpy as np

from gemm_course.checks.core import Refused, emulate_kernel
from gemm_course.checks.engines import GemmTrial
from lockstep import Finding, Watch


def hold_to_all_threads(trial: GemmTrial) -> None:
    """Refuse a right result of which some threads store more than one element."""
    stores, arguments = Counter(), [trial.before[name] for name in trial.names]
    for block in product(*map(range, trial.grid)):
        copies = [each.copy() if isinstance(each, np.ndarray) else each for each in arguments]
        trace = emulate_kernel(trial.kernel, trial.grid, trial.block, *copies, watch=Watch(block)).trace
        own = trace[(trace["op"] == "store") & (trace["array"] == trial.own_name("C"))]
        stores.update((block, thread) for thread in own["thread"])
    if max(stores.values()) > 1:
        raise Refused(
            f"Right, but {len(stores)} of {trial.threads} threads do all of it: one of them stores "
            f"{max(stores.values())} elements. One thread, one element: the loop goes along k alone.",
            f"In the problem {trial.problem}.",
        )


def _why_twice(finding: Finding, trial: GemmTrial) -> str | None:
    """Return why two threads take the same element, or None."""
    source = trial.written.text
    if "cuda.grid(1)" in source:
        return (
            "`cuda.grid(1)` counts along x alone, and so all threads of a column have the same number. Here "
            f"the grid has two directions: `row, col = cuda.grid(2)`. {finding.message}"
        )
    if "threadIdx" in source and "blockIdx" not in source:
        return (
            "`blockIdx` is missing: `threadIdx` begins at 0 in each block, and so all blocks take the same "
            f"elements. `cuda.grid(2)` counts through all blocks. {finding.message}"
        )
    return None


def _why_outside(finding: Finding, trial: GemmTrial) -> str | None:
    """Return why threads read outside A or B: the loop goes along m or n, or stands outside the guard."""
    own = {trial.own_name(name) for name in ("A", "B")}
    loops = trial.written.loops
    if finding.array not in own or not loops:
        return None
    for name, size in (("m", trial.problem.m), ("n", trial.problem.n)):
        own_size = trial.own_name(name)
        if size > trial.problem.k and any(loop.over.text == f"range({own_size})" for loop in loops):
            return (
                f"The loop ends at `{own_size}`. The products of a sum are numbered along k: `range(k)`. "
                f"{finding.message}"
            )
    if _guards_the_store_alone(trial):
        return (
            "The guard stands around the store alone. The surplus threads go through the loop as well, and "
            f"read beside A and B: put the loop inside the guard. {finding.message}"
        )
    return None


def _guards_the_store_alone(trial: GemmTrial) -> bool:
    """Return whether an `if` about m and n has a store into C in it, and no loop."""
    sizes, C = {trial.own_name("m"), trial.own_name("n")}, trial.own_name("C")
    return any(
        sizes <= branch.test.names and branch.body.stores(C) and not branch.body.loops
        for branch in trial.written.branches
    )


FINDINGS = {"global_race": _why_twice, "out_of_bounds": _why_outside}
