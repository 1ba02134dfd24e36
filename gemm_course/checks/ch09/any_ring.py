"""Exercise 09.3: a ring of SLOTS tiles, filled by asynchronous copies, for any m, n and k."""

import ast

from gemm_course.checks.core import (
    Refused,
    call,
    exercise,
    factory_of,
    kernel_of,
    nothing_yet,
    source_tree,
)
from gemm_course.checks.engines.rings import COPIES, Loop, RingTrial, T, refuse_wrong_numbers, try_ring

ARGUMENTS = ("m", "n", "k", "A", "B", "C")
SIZES = ((16, 32, 112), (17, 20, 33), (3, 5, 2))  # m, n, k
CHOICES = (3, 2, 4)


@exercise(
    "09.3",
    start="before the loop over tiles, fetch the first SLOTS - 1 tiles, and `cp_async_commit()` after each.",
    hints=(
        "The prologue: `for t in range(SLOTS - 1)`: fetch tile t into slot t, and commit.",
        "An iteration: wait, barrier, fetch tile t + SLOTS - 1 into slot `(t + SLOTS - 1) % SLOTS`, commit, "
        "multiply slot `t % SLOTS`.",
        "How many groups may be under way? By then SLOTS - 1 + t groups have been committed, and t + 1 must "
        "have come: `cp_async_wait(SLOTS - 2)`. It holds to the end only if an iteration that has nothing "
        "left to fetch commits too: an empty group counts.",
        "`fetch` makes no access beyond k, so you may call it for tiles that do not exist.",
    ),
)
def any_ring(make_ring):
    """A factory (SLOTS) of kernels (m, n, k, A, B, C): C = A @ B with a ring of tiles."""
    make = factory_of(make_ring, ("SLOTS",))
    kernels = {slots: kernel_of(call(make, slots), ARGUMENTS) for slots in CHOICES}
    for slots, kernel in kernels.items():
        for size in SIZES:
            trial = try_ring(kernel, ARGUMENTS, *size, f"SLOTS = {slots}")
            _check_begun(trial)
            _check_findings(trial, slots)
            refuse_wrong_numbers(trial, slots - 1)
            _check_loads(trial)
            _check_barriers(trial)
            _check_in_flight(trial, slots)
            _check_end(trial)
    return (
        f"Right for {len(SIZES)} sizes with 2, 3 and 4 slots: one barrier per tile, and SLOTS - 2 tiles may "
        "still be under way when a tile is needed."
    )


def _check_begun(trial: RingTrial) -> None:
    if not trial.lanes("load", "A") and not trial.lanes("load", "B"):
        raise nothing_yet()


# ---- findings, by what the loop says -----------------------------------------------------------------------


def _check_findings(trial: RingTrial, slots: int) -> None:
    if not trial.report.errors:
        return
    finding = trial.report.errors[0]
    if finding.kind not in ("shared_race", "async_read_too_early", "uninitialised_read"):
        trial.refuse_errors()
    message = _cause(trial, slots)
    raise Refused(f"{message} {finding.message}", f"{trial.line(finding)}. {trial.about}.")


def _cause(trial: RingTrial, slots: int) -> str:
    loop = Loop(trial.kernel)
    waits, barriers, copies = loop.lines("cp_async_wait"), loop.lines("syncthreads"), loop.lines(*COPIES)
    if not loop.lines("cp_async_commit"):
        return "Nothing is committed in the loop: only a committed group can be waited for."
    if not waits:
        return "Nobody waits for the copies: a tile is read before it has come."
    if max((given for given in loop.pending if given is not None), default=0) > slots - 2:
        return (
            f"`cp_async_wait` lets too many groups go on, so the tile that is needed may be among them: with "
            f"{slots} slots at most SLOTS - 2 = {slots - 2}, where the wait stands before the next commit."
        )
    if not barriers or trial.barriers_per_block < trial.tiles:
        return (
            "A barrier per tile is missing. `cp_async_wait` waits for this thread's own copies only; the "
            "tile is made of everybody's."
        )
    if barriers[0] < waits[0]:
        return (
            "The barrier stands before the wait. There it proves nothing: other threads' copies may still be "
            "under way. First wait for your own, then meet."
        )
    if copies and copies[0] < barriers[0]:
        return (
            "The next copies start before the barrier: a slow thread may still read the slot that they fill."
        )
    if _conditional_commit(loop):
        return (
            "The commit is made only if there is something to fetch. Near the end the groups then are fewer "
            "than the wait assumes: commit in every iteration, an empty group counts too."
        )
    return "A slot is filled too early, or the wrong one is read: follow tile t from slot to slot."


def _conditional_commit(loop: Loop) -> bool:
    """A commit stands in an `if` within the loop."""
    tests = [node for node in loop.nodes if isinstance(node, ast.If)]
    return any("cp_async_commit" in ast.unparse(test) for test in tests)


# ---- right numbers, but ------------------------------------------------------------------------------------


def _check_loads(trial: RingTrial) -> None:
    k = trial.shape[2]
    columns, rows = trial.grid
    for name in "AB":
        if trial.lanes("load", name) > columns * rows * T * k:
            raise Refused(
                f"The numbers are right, but `{trial.own_name(name)}` is fetched more than once per block.",
                trial.about + ".",
            )


def _check_barriers(trial: RingTrial) -> None:
    if trial.barriers_per_block > trial.tiles + 1:
        raise Refused(
            f"The numbers are right, but a block waits at {trial.barriers_per_block} barriers for "
            f"{trial.tiles} tiles. One per tile is enough: it says that the tile has come, and that the one "
            "before it has been read.",
            trial.about + ".",
        )


def _check_in_flight(trial: RingTrial, slots: int) -> None:
    pending = [given for given in Loop(trial.kernel).pending if given is not None]
    if pending and min(pending) < slots - 2:
        raise Refused(
            f"The numbers are right, but with {slots} slots only {min(pending)} groups may be under way when "
            f"a tile is needed; {slots - 2} could be. The ring is no better than a shorter one.",
            trial.about + ".",
        )


def _check_end(trial: RingTrial) -> None:
    """The kernel waits for everything before it ends."""
    calls = [node for node in ast.walk(source_tree(trial.kernel)) if isinstance(node, ast.Call)]
    waits = [node for node in calls if ast.unparse(node.func).endswith("cp_async_wait")]
    if not any(ast.unparse(node.args[0]) == "0" for node in waits if node.args):
        raise Refused(
            "The numbers are right, but no `cp_async_wait(0)` comes after the loop: the block may end while "
            "its last copies are under way.",
            trial.about + ".",
        )
