"""Checks ``reads_ahead``: a ring whose operands are read a step before they are multiplied."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from gemm_course.checks.core import (
    Branch,
    Call,
    Loop,
    Refused,
    call,
    exercise,
    factory_of,
    kernel_of,
    nothing_yet,
)
from gemm_course.checks.engines.lessons import no_float64
from gemm_course.checks.engines.rings import PLACES_FOR_TILES, TileLoop, check_constants
from gemm_course.checks.engines.trial import Trial, try_kernel
from gemm_course.checks.kits.ahead_parts import ACROSS, EACH, SIDE
from lockstep import Finding, Watch

ARGUMENTS = ("m", "n", "k", "A", "B", "C")
PRODUCTS = EACH * EACH  # of a thread in a step
# Each case is (SLOTS, BK) and (m, n, k).
CASES = (((2, 4), (32, 32, 20)), ((3, 4), (33, 40, 13)), ((4, 2), (5, 7, 9)), ((2, 8), (32, 16, 8)))


@exercise(
    start="before the loop: which operands does the very first product need, and from which slot?",
    hints=(
        "Before the loop: wait, barrier, and step 0 of tile 0 into set 0. In the loop, each step reads the "
        "operands of the step after it into set `(p + 1) % 2`, then multiplies set `p % 2`.",
        "The step after the last one of a tile, p = BK - 1, is step 0 of the next tile, in the next slot. "
        "Only there are a wait and a barrier needed, and both come before that read.",
        "Everybody has left the old slot at that barrier. So before the first step of the tile after it, ask "
        "for tile `t + SLOTS - 1`, into the slot that was left: `(t + SLOTS - 1) % SLOTS`.",
    ),
)
def reads_ahead(make_reads_ahead):
    """A factory (SLOTS, BK) of kernels (m, n, k, A, B, C) that read each step's operands one step before."""
    make = factory_of(make_reads_ahead, ("SLOTS", "BK"))
    kernels = {sizes: kernel_of(call(make, *sizes), ARGUMENTS) for sizes, _ in CASES}
    trials = [_try(kernels[sizes], *sizes, *shape) for sizes, shape in CASES]
    if not trials[0].shared_reads:
        raise nothing_yet()
    for trial in trials:
        _check_findings(trial)
        _check_numbers(trial)
        _check_barriers(trial)
        _check_reads(trial)
        _check_in_flight(trial)
        _check_end(trial)
    _check_loads(trials[0])
    check_constants(trials[-1])
    _check_distance(trials[0])
    no_float64(trials[0])
    return (
        f"Right with 2, 3 and 4 slots and tiles 2 to 8 steps deep: {PRODUCTS} multiply-adds stand between a "
        "read and its use, across the barrier too, of which there is one per tile."
    )


@dataclass(kw_only=True)
class AheadTrial(Trial):
    """A product C = A @ B by the learner's kernel. shape: (m, n, k)."""

    SLOTS: int
    BK: int
    shape: tuple[int, int, int]

    @property
    def tiles(self) -> int:
        """The number of tiles along k."""
        return -(-self.shape[2] // self.BK)

    def product(self, steps) -> np.ndarray:
        """Return the sum of these steps' products; one that lies beyond k adds nothing."""
        A, B = (self.before[name].astype(float) for name in "AB")
        inside = [step for step in steps if 0 <= step < self.shape[2]]
        return A[:, inside] @ B[inside]

    def close(self, prediction: np.ndarray) -> np.ndarray:
        return np.isclose(self.after["C"], prediction, rtol=1e-4, atol=1e-4)


def _try(kernel, SLOTS: int, BK: int, m: int, n: int, k: int, watch: Watch | None = None) -> AheadTrial:
    rng = np.random.default_rng((m, n, k))
    A, B = (rng.uniform(-2, 2, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    grid, C = (-(-n // SIDE), -(-m // SIDE)), np.full((m, n), np.nan, np.float32)
    about = f"With SLOTS = {SLOTS}, BK = {BK}, m = {m}, n = {n}, k = {k}"
    options = {} if watch is None else {"watch": watch}
    done = try_kernel(kernel, ARGUMENTS, grid, (ACROSS, ACROSS), m, n, k, A, B, C, about=about, **options)
    return AheadTrial(**vars(done), SLOTS=SLOTS, BK=BK, shape=(m, n, k))


# ---- what the emulator found -------------------------------------------------------------------------------


def _check_findings(trial: AheadTrial) -> None:
    if not trial.report.errors:
        return
    finding = trial.report.errors[0]
    said = _of_finding(trial, finding)
    where = (
        trial.line(finding)
        if finding.function == trial.kernel.py_func.__name__
        else _calls(trial, finding.function)
    )
    raise Refused(f"{said} {finding.message}".strip(), f"{where}. {trial.about}.")


def _calls(trial: AheadTrial, name: str) -> str:
    lines = [call.line for call in trial.written.calls(name)]
    return trial.line(lines[-1]) if lines else "It shows in the parts that are given"


def _of_finding(trial: AheadTrial, finding: Finding) -> str:
    if finding.kind not in ("shared_race", "async_read_too_early", "uninitialised_read"):
        return ""
    inside = TileLoop(trial)
    lines = {name: inside.lines(name) for name in ("cp_async_wait", "syncthreads", "fetch", "read_step")}
    waits, barriers = lines["cp_async_wait"], lines["syncthreads"]
    if finding.kind == "uninitialised_read" and finding.array not in set(trial.accesses("load")["array"]):
        return "A set of operands is multiplied before anything was read into it."
    if not waits:
        return "Nobody waits in the loop: the next tile is read before it has come."
    if not barriers:
        return (
            "A barrier per tile is missing. `cp_async_wait` waits for this thread's own copies only; the "
            "tile is made of everybody's."
        )
    if barriers[0] < waits[0]:
        return "The barrier stands before the wait, and proves nothing there. First wait, then meet."
    if lines["read_step"] and max(lines["read_step"]) < waits[0]:
        return (
            "The first step of the next tile is read before the wait and the barrier. They come first, at "
            "p = BK - 1, where the read goes to the next slot."
        )
    if finding.kind == "uninitialised_read" and trial.close(trial.product(range(trial.shape[2]))).all():
        return (
            "The numbers are right, but behind the last tile a slot is read that nobody has filled. Ask in "
            "every turn: beyond k, `fetch` brings zeros."
        )
    before = [call for call in trial.written.calls() if call.line < inside.loop.line]
    for name, missing in BEFORE_THE_LOOP.items():
        if not any(call.name.endswith(name) for call in before):
            return missing
    if trial.close(trial.product(_from_the_old_slot(trial))).all():
        return OLD_SLOT
    if not lines["fetch"]:
        return "In the loop nobody asks for another tile."
    if _waits_before_the_steps(trial, inside):
        return (
            "The wait and the barrier stand before the steps of a tile. They belong into its last step, "
            "p = BK - 1, before the read that goes to the next tile: there that tile is needed, and "
            "everybody has read this one."
        )
    if finding.kind == "async_read_too_early" and min(lines["fetch"]) > waits[0]:
        return (
            "A tile is asked for behind the wait. `IN_FLIGHT` counts on its being asked for before: so the "
            "wait is over while the tile that is read next is still under way."
        )
    if inside.steps_by_places:
        return PLACES_FOR_TILES
    if _waits_in_step_0(trial):
        return (
            "The wait and the barrier stand in step 0. By then step 0 has been read, in the last step of the "
            "tile before. They belong there, before that read."
        )
    asked = _asked_in_the_loop(inside)
    if asked in OTHER_TILES and (asked != "t + 1" or trial.SLOTS > 2):
        return _other_tile(asked)
    if _asks_before_the_barrier(trial, barriers):
        return (
            "A slot is filled while somebody may still read it. At the barrier everybody has read the last "
            "step of the old tile: ask behind it, and for the slot that was left."
        )
    return "Which slot does `fetch` fill, with which tile, and who may still be reading that slot?"


def _asks_before_the_barrier(trial: AheadTrial, barriers: list[int]) -> bool:
    """Tell whether a step asks for a tile before the barrier of that step."""
    asks = [each.line for loop in _steps(trial) for each in loop.calls("fetch")]
    return any(line < barrier for line in asks for barrier in barriers)


def _waits_before_the_steps(trial: AheadTrial, inside: TileLoop) -> bool:
    """Tell whether the loop over tiles waits only before its loop over steps."""
    steps = [loop.line for loop in _steps(trial) if loop.calls("read_step", "add_step")]
    return bool(steps) and max(inside.lines("cp_async_wait")) < min(steps)


def _waits_in_step_0(trial: AheadTrial) -> bool:
    """Tell whether a loop over steps waits only where its step is 0."""
    return any(
        branch.test.text == f"{loop.variable} == 0" and branch.body.calls("cp_async_wait")
        for loop in _steps(trial)
        for branch in loop.branches
    )


def _asked_in_the_loop(inside: TileLoop) -> str:
    """Return the text of the tile that `fetch` is passed, where a loop over t begins at 0; else ""."""
    asks = inside.loop.calls("fetch")
    from_0 = (
        isinstance(inside.loop, Loop) and inside.loop.variable == "t" and "," not in inside.loop.over.text
    )
    return asks[0].at(5) if asks and from_0 else ""


def _steps(trial: AheadTrial) -> list[Loop]:
    """Return the loops over steps: those inside of the loop over tiles."""
    tiles = max(trial.written.loops, key=lambda loop: len(loop.lines), default=None)
    return [loop for loop in tiles.loops if loop != tiles] if tiles else []


BEFORE_THE_LOOP = {
    "cp_async_wait": (
        "Before the loop nobody waits: the very first operands are read before tile 0 has come. It takes a "
        "wait and a barrier there too."
    ),
    "syncthreads": (
        "Before the loop a barrier is missing: tile 0 is made of everybody's copies, and each thread waits "
        "for its own only."
    ),
}
OLD_SLOT = (
    "Step 0 of each tile but the first comes from the old slot. The step after p = BK - 1 lies in the *next* "
    "slot."
)


def _from_the_old_slot(trial: AheadTrial) -> list[int]:
    """Return the steps that are multiplied if step 0 of each tile is read where the tile before it lies."""
    BK = trial.BK
    return [step - BK if step % BK == 0 and step else step for step in range(trial.shape[2])]


def _its_own_steps(trial: AheadTrial) -> list[int]:
    """Return the steps that are multiplied if step p reads step p, of the slot that it should read."""
    BK = trial.BK
    read = [t * BK + p if p < BK - 1 else (t + 1) * BK + p for t in range(trial.tiles) for p in range(BK)]
    return [0, *read[:-1]]


# ---- what came out -----------------------------------------------------------------------------------------


def _check_numbers(trial: AheadTrial) -> None:
    k, BK, tiles = trial.shape[2], trial.BK, trial.tiles
    exact = trial.product(range(k))
    wrong = ~trial.close(exact)
    if not wrong.any():
        return
    where = trial.first_wrong("C", wrong, exact)
    if not trial.touched("C").any():
        raise Refused("Nothing is stored into C: `store(C, acc, m, n)` comes last.", f"{trial.about}.")
    firsts = [t * BK for t in range(tiles)]
    for message, steps in (
        (OLD_SLOT, _from_the_old_slot(trial)),
        ("Nothing is added: `add_step(acc, a[now], b[now])` is missing.", []),
        (
            "The set that was just read is multiplied, in the same step: step 0 is never added. Multiply the "
            "other set, `p % 2`.",
            range(1, k),
        ),
        (
            "Each step reads its own operands, those of step `p`, once more. Read those of the step after "
            "it: `(p + 1) % BK`.",
            _its_own_steps(trial),
        ),
        ("Step 0 of each tile is left out.", [step for step in range(k) if step not in firsts]),
        (
            "Only the first tile is multiplied: every read goes to slot 0.",
            [p for _ in firsts for p in range(BK)],
        ),
        ("The last tile is missing.", range((tiles - 1) * BK)),
        ("The last step is missing.", range(k - 1)),
        ("Only the last tile counts: `acc` is set to 0 for each tile.", range((tiles - 1) * BK, k)),
        *_other_tiles(trial),
    ):
        if trial.close(trial.product(steps)).all():
            raise Refused(message, where)
    raise Refused(
        "The numbers are wrong. Which tile lies in which slot, and which step's operands in which set, when "
        "they are multiplied?",
        where,
    )


OTHER_TILES = {
    "t": lambda t, SLOTS: t,
    "t + 1": lambda t, SLOTS: t + 1,
    "t + SLOTS": lambda t, SLOTS: t + SLOTS,
}


def _other_tile(asked: str) -> str:
    return f"In the loop tile `{asked}` is asked for. It is tile `t + SLOTS - 1` that nobody has yet."


def _other_tiles(trial: AheadTrial) -> Iterator[tuple[str, list[int]]]:
    """Yield (message, steps) for the tiles that people ask for in the loop in place of the right one."""
    BK, first = trial.BK, trial.SLOTS - 1
    for asked, tile in OTHER_TILES.items():
        held = [each if each < first else tile(each - first, trial.SLOTS) for each in range(trial.tiles)]
        if held != list(range(trial.tiles)):
            steps = [each * BK + p for each in held for p in range(BK)]
            yield _other_tile(asked), steps


# ---- right numbers, but ------------------------------------------------------------------------------------


def _check_barriers(trial: AheadTrial) -> None:
    if trial.barriers_per_block > trial.tiles + 2:
        raise Refused(
            f"The numbers are right, but a block waits at {trial.barriers_per_block} barriers for "
            f"{trial.tiles} tiles. One before the loop and one per tile are enough.",
            f"{trial.about}.",
        )


def _check_reads(trial: AheadTrial) -> None:
    of_a_step = trial.threads * 2 * EACH
    steps = trial.shared_reads / of_a_step
    if steps > trial.tiles * trial.BK + 1:
        raise Refused(
            f"The numbers are right, but operands of {steps:g} steps are read, and the tiles have "
            f"{trial.tiles * trial.BK}. Read each step's once; one more, behind the last tile, does no harm.",
            f"{trial.about}.",
        )


def _check_in_flight(trial: AheadTrial) -> None:
    """Refuse what leaves fewer tiles under way than the slots have room for."""
    loop = TileLoop(trial)
    turns = {name for each in trial.written.loops for name in each.names_set} - _counts_of(_steps(trial))
    commits = loop.loop.calls("cp_async_commit")
    if any(not _guards(loop.loop, commit) for commit in commits):
        raise Refused(
            "The numbers are right, but `fetch` commits already. With your `cp_async_commit` each tile is "
            "two groups, so the wait lets half as many tiles be under way.",
            f"{commits[0].where}. {trial.about}.",
        )
    for wait, given in zip(loop.loop.calls("cp_async_wait"), loop.pending, strict=False):
        guards = _guards(loop.loop, wait)
        # At the end, where fewer tiles are under way, one may wait for more.
        late = any(guard.test.names & turns for guard in guards)
        if wait.at(0) == "0" and trial.SLOTS > 2 and not late:
            raise Refused(
                "The numbers are right, but `cp_async_wait(0)` in the loop waits for every tile that was "
                "asked for, the newest too: no copy is under way while you multiply. SLOTS - 2 of them need "
                "not be there yet.",
                f"{wait.where}. {trial.about}.",
            )
        if given is not None and given < trial.SLOTS - 2 and not late:
            raise Refused(
                f"The numbers are right, but with {trial.SLOTS} slots SLOTS - 2 later tiles may still be "
                "under way when the next one is needed, and yours waits for more. The ring is no better than "
                "a shorter one.",
                f"{wait.where}. {trial.about}.",
            )
        if not guards and any(wait in steps.calls() for steps in _steps(trial)):
            raise Refused(
                "The numbers are right, but every step waits. One wait per tile is enough, at p = BK - 1: "
                "before it, the next tile has that much longer to come.",
                f"{wait.where}. {trial.about}.",
            )


def _counts_of(loops: list[Loop]) -> set[str]:
    return {loop.variable for loop in loops}


def _guards(loop: Loop, call: Call) -> list[Branch]:
    """Return the branches of a loop that a call stands in."""
    return [branch for branch in loop.branches if call in branch.calls()]


def _check_loads(trial: AheadTrial) -> None:
    for name in "AB":
        if trial.lanes("load", name) > SIDE * trial.shape[2]:
            raise Refused(
                f"The numbers are right, but `{trial.own_name(name)}` is fetched more than once. Before the "
                "loop SLOTS - 1 tiles are asked for, then in each tile's time one that nobody has asked for.",
                f"{trial.about}.",
            )


def _check_end(trial: AheadTrial) -> None:
    if not any(wait.at(0) == "0" for wait in trial.written.calls("cp_async_wait")):
        raise Refused(
            "The numbers are right, but no `cp_async_wait(0)` comes after the loop: the block may end while "
            "its last copies are under way.",
            f"{trial.about}.",
        )


class Use(NamedTuple):
    """The first use of an operand: in which step of the launch, and how many products after its read."""

    step: int
    products: int


def _check_distance(trial: AheadTrial) -> None:
    """Refuse operands that are multiplied before another step's products have been issued."""
    watch = Watch(warp=0, limit=100_000)
    trace = _try(trial.kernel, trial.SLOTS, trial.BK, *trial.shape, watch=watch).report.trace
    uses = _uses(trace[trace["thread"] == 0])
    soon = sorted({use.step for use in uses if use.products < PRODUCTS})
    if not soon:
        return
    if all(step % trial.BK == 0 for step in soon):
        raise Refused(
            "The numbers are right, but step 0 of each tile is read and multiplied at once: all warps come "
            "from the barrier, and nobody has anything to multiply. Move the wait and the barrier to the "
            "last step, p = BK - 1, and read step 0 of the next tile behind them, before that step's "
            "products.",
            f"{_calls(trial, 'syncthreads')}. {trial.about}.",
        )
    raise Refused(
        f"The numbers are right, but in step {soon[0]} what was just read is multiplied at once. Multiply "
        f"the other set first: {PRODUCTS} multiply-adds should stand between a read and its use.",
        f"{_calls(trial, 'add_step')}. {trial.about}.",
    )


def _uses(trace) -> list[Use]:
    """Return the first use of each operand that a thread reads from shared memory and keeps.

    Operands are known by their values: the matrices are random, so no two are alike.
    """
    products, read_at, operands, uses = 0, {}, set(), []
    for space, op, value in zip(trace["space"], trace["op"], trace["value"], strict=True):
        if space == "shared" and op == "load":
            read_at[value] = products
            operands.add(value)
        elif space == "local" and op == "load" and value in read_at:
            at = read_at.pop(value)
            # Nothing can stand between the very first read and its use.
            uses.append(Use(products // PRODUCTS, products - at if at else PRODUCTS))
        elif space == "local" and op == "store" and operands and value not in operands:
            products += 1
    return uses
