"""Checks ``any_ring``: a ring of SLOTS tiles, filled by asynchronous copies, for any m, n and k."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from gemm_course.checks.core import Part, Refused, call, exercise, factory_of, kernel_of, nothing_yet
from gemm_course.checks.engines.lessons import no_float64
from gemm_course.checks.engines.rings import (
    COPIES,
    RingTrial,
    T,
    TileLoop,
    check_constants,
    refuse_wrong_numbers,
    try_ring,
)
from lockstep import Finding, place, thread_name

ARGUMENTS = ("m", "n", "k", "A", "B", "C")
# The sizes are (m, n, k).
SIZES = ((16, 32, 112), (17, 20, 33), (3, 5, 2))
CHOICES = (3, 2, 4)


@exercise(
    start="begin before the loop: how many tiles should be under way when it starts, and in which slots?",
    hints=(
        "The prologue: `for t in range(SLOTS - 1)`: fetch tile t into slot t, and commit.",
        "An iteration: wait, barrier, fetch tile t + SLOTS - 1 into slot `(t + SLOTS - 1) % SLOTS`, commit, "
        "multiply slot `t % SLOTS`.",
        "How many groups may be under way? By then SLOTS - 1 + t groups have been committed, and t + 1 must "
        "have come: SLOTS - 2. Set it beside the kernel, `IN_FLIGHT = SLOTS - 2`, for "
        "`cp_async_wait(IN_FLIGHT)`. It holds to the end only if an iteration that has nothing left to fetch "
        "commits too: an empty group counts.",
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
            _check_order(trial)
            _check_tiles(trial)
            _check_end(trial)
            check_constants(trial)
            no_float64(trial)
    return (
        f"Right for {len(SIZES)} sizes with 2, 3 and 4 slots: one barrier per tile, and SLOTS - 2 tiles may "
        "still be under way when a tile is needed."
    )


def _check_begun(trial: RingTrial) -> None:
    if not trial.lanes("load", "A") and not trial.lanes("load", "B"):
        raise nothing_yet()


# ---- findings, by what the loop says -----------------------------------------------------------------------


class Cause(NamedTuple):
    """The reason why a tile is read too early, or a slot filled too early.

    lines: the lines to look at, the first one first. lack: what is missing between the copy and the read.
    """

    message: str
    lines: Sequence[int] = ()
    lack: str = ""


NOT_COME = "No wait followed by a barrier stands between that copy and the read."
NOT_READ = "No barrier stands between the read and that copy."


def _check_findings(trial: RingTrial, slots: int) -> None:
    if not trial.report.errors:
        return
    finding = trial.report.errors[0]
    if finding.kind not in ("shared_race", "async_read_too_early", "uninitialised_read"):
        trial.refuse_errors()
    returns = trial.written.returns
    if returns and finding.kind == "uninitialised_read":
        raise Refused(
            "Threads outside C return early, and nobody asks for their part of the tiles. Let them go on, "
            f"and guard only the store. {finding.message}",
            f"{returns[0].where}. {trial.about}.",
        )
    cause = _cause(trial, slots)
    line = trial.line(cause.lines[0] if cause.lines else finding)
    raise Refused(f"{cause.message} {_told(trial, finding, cause.lack)}", f"{line}. {trial.about}.")


def _told(trial: RingTrial, finding: Finding, lack: str) -> str:
    """Return the finding in words; for a race between a copy and a read, what is missing between them."""
    reading = set(trial.accesses("load")["line"])
    threads = {line in reading: (thread, line) for thread, line in _both(finding)}
    if finding.kind != "shared_race" or len(threads) < 2:
        return finding.message
    (reader, at), (writer, asked) = threads[True], threads[False]
    return (
        f"{thread_name(reader).capitalize()} reads {place(finding.array, finding.element)} in line {at}; "
        f"{thread_name(writer)} asks for a copy to it in line {asked}. {lack}"
    ).rstrip()


def _both(finding: Finding) -> Iterable[tuple[tuple, int]]:
    return zip(finding.threads, (finding.other_line, finding.line), strict=False)


def _cause(trial: RingTrial, slots: int) -> Cause:
    loop = TileLoop(trial)
    waits, barriers, copies = loop.lines("cp_async_wait"), loop.lines("syncthreads"), loop.lines(*COPIES)
    commits, reads = loop.lines("cp_async_commit"), sorted(set(trial.accesses("load")["line"]))
    if guarded := _copies_of_threads_in_c(trial):
        message = (
            "Threads outside C do not copy, and nobody else asks for their part of the tiles. Let all "
            "threads fetch, and guard only the store."
        )
        return Cause(message, guarded)
    if not commits:
        return Cause("Nothing is committed in the loop: only a committed group can be waited for.")
    if not waits:
        message = "Nobody waits for the copies: a tile is read before it has come."
        return Cause(message, reads, NOT_COME)
    allowed = slots - 1 if commits[0] < waits[0] else slots - 2
    if max((given for given in loop.pending if given is not None), default=0) > allowed:
        message = (
            f"`cp_async_wait` lets too many groups go on, so the tile that is needed may be among them: with "
            f"{slots} slots at most SLOTS - 2 = {slots - 2}, where the wait stands before the next commit."
        )
        return Cause(message, waits, "The wait is over before that copy has come.")
    if not barriers or trial.barriers_per_block < trial.tiles:
        message = (
            "A barrier per tile is missing. `cp_async_wait` waits for this thread's own copies only; the "
            "tile is made of everybody's."
        )
        return Cause(message, reads, NOT_COME)
    if barriers[0] < waits[0]:
        message = (
            "The barrier stands before the wait. There it proves nothing: other threads' copies may still be "
            "under way. First wait for your own, then meet."
        )
        return Cause(message, barriers, NOT_COME)
    if copies and copies[0] < barriers[0]:
        message = (
            "The next copies start before the barrier: a slow thread may still read the slot that they fill."
        )
        return Cause(message, copies, NOT_READ)
    if shared := _one_group_for_several(loop):
        message = (
            "The prologue does not commit each tile by itself. `cp_async_wait` counts groups: commit after "
            "each call of `fetch`, so that a group is a tile."
        )
        return Cause(message, shared)
    if _conditional_commit(loop):
        message = (
            "The commit is made only if there is something to fetch. Near the end the groups then are fewer "
            "than the wait assumes: commit in every iteration, an empty group counts too."
        )
        return Cause(message, commits, "The wait is over before that copy has come.")
    message = "A slot is filled too early, or the wrong one is read: follow tile t from slot to slot."
    return Cause(message, copies)


def _copies_of_threads_in_c(trial: RingTrial) -> list[int]:
    """Return the lines that ask for copies in an `if` which does not hold for all threads."""
    own = _names_of_a_thread(trial.written)
    return [
        call.line
        for branch in trial.written.branches
        if branch.test.names & own
        for call in branch.calls(*COPIES)
    ]


def _one_group_for_several(loop: TileLoop) -> list[int]:
    """Return the lines of the loops before this one that start copies and do not commit them."""
    return [each.line for each in loop.outside if each.calls(*COPIES) and "commit(" not in each.text]


def _conditional_commit(loop: TileLoop) -> bool:
    """Tell whether a commit stands in an `if` within the loop."""
    return any(branch.calls("cp_async_commit") for branch in loop.loop.branches)


# ---- right numbers, but ------------------------------------------------------------------------------------


def _check_loads(trial: RingTrial) -> None:
    k = trial.shape[2]
    columns, rows = trial.grid
    for name in "AB":
        if trial.lanes("load", name) > columns * rows * T * k:
            raise Refused(
                f"The numbers are right, but `{trial.own_name(name)}` is fetched more than once per block. "
                "The prologue asks for SLOTS - 1 tiles, each iteration for one that nobody has asked for.",
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
    loop = TileLoop(trial)
    pending = [given for given in loop.pending if given is not None]
    always = [given for given in loop.always_pending if given is not None]
    # A wait inside an `if` may be a stricter one for the last tiles, so waits outside of any `if` decide.
    let = min(always, default=max(pending, default=slots))
    if let < slots - 2:
        raise Refused(
            f"The numbers are right, but with {slots} slots {_groups(slots - 2)} may be under way when a "
            f"tile is needed. You let {_groups(let)} be. The ring is no better than a shorter one.",
            trial.about + ".",
        )


def _check_order(trial: RingTrial) -> None:
    """Check that copies are started before the products, as far as lines tell."""
    loop = TileLoop(trial)
    copies, products = loop.lines(*COPIES), loop.end_of(int(trial.accesses("load")["line"].max()))
    if copies and copies[0] > products:
        raise Refused(
            "The numbers are right, but the next tile is asked for after this one has been multiplied. With "
            "two slots the wait follows at once, and nothing overlaps. Ask between the barrier and the "
            "products.",
            f"{trial.line(copies[0])}. {trial.about}.",
        )


def _check_tiles(trial: RingTrial) -> None:
    if trial.shared_reads == trial.threads * 2 * T * (trial.tiles + 1):
        raise Refused(
            f"The numbers are right, but {trial.tiles + 1} tiles are multiplied, and k has {trial.tiles}: "
            "the last one is all zeros. `(k + 15) // 16` rounds up, and adds none to a multiple of 16.",
            trial.about + ".",
        )


def _names_of_a_thread(written: Part) -> set[str]:
    """Return the names that have another value in each thread, such as `row` and `tx`."""
    return {
        each.text
        for target, value in written.assignments
        if re.search(r"threadIdx|grid\(", value.text)
        for each in target.items or [target]
    }


def _groups(number: int) -> str:
    return {0: "none", 1: "one group"}.get(number, f"{number} groups")


def _check_end(trial: RingTrial) -> None:
    """Check that the kernel waits for all copies before it ends."""
    written = trial.written
    guarded = {call.line for branch in written.branches for call in branch.calls("cp_async_wait")}
    own = {
        call.line
        for branch in written.branches
        if branch.test.names & _names_of_a_thread(written)
        for call in branch.calls("cp_async_wait")
    }
    last = [wait.line for wait in written.calls("cp_async_wait") if wait.at(0) == "0"]
    at_the_end = guarded.issuperset(last) and last and written.branches[-1].line <= last[-1]
    if last and (own.issuperset(last) or at_the_end):
        raise Refused(
            "The numbers are right, but the last `cp_async_wait(0)` stands in an `if`: threads for which it "
            "does not hold, those outside C too, end while their copies are under way. Let all wait.",
            f"{trial.line(last[-1])}. {trial.about}.",
        )
    if not last:
        raise Refused(
            "The numbers are right, but no `cp_async_wait(0)` comes after the loop: the block may end while "
            "its last copies are under way.",
            trial.about + ".",
        )
