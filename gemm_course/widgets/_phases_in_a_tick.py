"""Tells what happens in a tick of the ring. The main event is the title, and a caption says what follows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gemm_course.model import phases as model
from gemm_course.model.phases import EMPTY, FULL, Moment, Warp


def happens(now: Moment) -> tuple[str, str]:
    """Return a title and a caption for a tick in which the run goes on."""
    if not now.tick:
        return _AT_FIRST
    title, caption = next(_tellings(now))
    return f"Tick {now.tick}: {title}", caption


_AT_FIRST = (
    "Before the first tick: all slots are empty, all barriers in phase 0",
    "A phase is over when no arrival and no byte is missing. Then its parity, phase % 2, flips. A wait for a "
    "parity passes if the barrier has the other one: on a new barrier one for parity 1 does.",
)


def _tellings(now: Moment) -> Iterator[tuple[str, str]]:
    """Yield a title and a caption for each event that could be told, the most important first."""
    if now.completed:
        yield _complete(now), " ".join(_over(now, *key) for key in now.completed)
    if now.landed:
        yield _lands(now), " ".join(_counted(now, each.slot) for each in now.landed)
    for kind, tell in _TOLD:
        did = [warp for warp in now.warps if warp.op.kind == kind and (kind != model.WAIT or warp.passed)]
        if did:
            yield tell(now, did)
    yield "everybody waits for bytes", "Nobody moves until the copies on their way land."


# ---- barriers and copies -----------------------------------------------------------------------------------


def _complete(now: Moment) -> str:
    if len(now.completed) > 1:
        return (
            "phases of " + " and ".join(f"{kind}[{slot}]" for kind, slot in now.completed) + " are complete"
        )
    ((kind, slot),) = now.completed
    return f"phase {now.barriers[kind, slot].phase - 1} of {kind}[{slot}] is complete"


def _over(now: Moment, kind: str, slot: int) -> str:
    barrier = now.barriers[kind, slot]
    there = "its arrival and all bytes are there" if kind == FULL else "both consumers have arrived"
    begins = f"{kind}[{slot}]: {there}, so phase {barrier.phase} begins"
    if len(now.completed) > 1:
        return f"{begins}."
    follows = "read" if kind == FULL else "filled"
    return (
        f"{begins}, parity {barrier.parity}, and counts from 0 again. Slot {slot} may be {follows}: a wait "
        f"for parity {1 - barrier.parity} passes."
    )


def _lands(now: Moment) -> str:
    parts = [f"{each.part} of tile {each.tile}" for each in now.landed]
    if len(parts) > 1:
        return f"{' and '.join(parts)} land"
    return f"{parts[0]} lands in slot {now.landed[0].slot}"


def _counted(now: Moment, slot: int) -> str:
    barrier = now.barriers[FULL, slot]
    return (
        f"full[{slot}] counts {barrier.came:,} of {barrier.expected:,} expected bytes: "
        f"phase {barrier.phase} goes on."
    )


# ---- warps -------------------------------------------------------------------------------------------------


def _names(warps: Sequence[Warp]) -> str:
    if len(warps) > 1:
        return "both consumers"
    return "the producer" if warps[0].name == "producer" else warps[0].name


def _arrives(now: Moment, did: Sequence[Warp]) -> tuple[str, str]:
    op = did[0].op
    barrier = now.barriers[EMPTY, op.slot]
    caption = (
        f"{barrier.arrived} of {barrier.arrivals} have arrived: phase {barrier.phase} of empty[{op.slot}] "
        "goes on until the other consumer arrives too."
    )
    if len(did) > 1:
        return "both consumers arrive", "Each has read its tile. Neither was the last at its barrier."
    return f"{_names(did)} arrives at empty[{op.slot}]", caption


def _expects(now: Moment, did: Sequence[Warp]) -> tuple[str, str]:
    slot = did[0].op.slot
    barrier = now.barriers[FULL, slot]
    title = f"the producer arrives at full[{slot}] and expects bytes"
    return title, f"This is its one arrival: now phase {barrier.phase} of full[{slot}] lacks only bytes."


def _copies(now: Moment, did: Sequence[Warp]) -> tuple[str, str]:
    op = did[0].op
    title = f"the producer starts to copy tile {op.tile} to slot {op.slot}"
    return title, f"No warp moves the bytes: they come by themselves, and full[{op.slot}] counts them."


def _passes(now: Moment, did: Sequence[Warp]) -> tuple[str, str]:
    did = [warp for warp in did if warp.name == "producer"] or did
    op = did[0].op
    barrier = now.barriers[op.barrier, op.slot]
    verb = "pass" if len(did) > 1 else "passes"
    if not barrier.phase:
        return (
            f"{_names(did)} {verb} empty[{op.slot}], as it is new",
            f"The wait asks for parity {op.parity}, and a new barrier has parity 0: the phase "
            "before phase 0 counts as over, and the wait passes at once.",
        )
    if len({warp.op.slot for warp in did}) > 1:
        return f"both consumers {verb}", "Each asks for the parity of a phase that is over."
    title = f"{_names(did)} {verb} {op.barrier}[{op.slot}]"
    return (
        title,
        f"The wait asks for parity {op.parity}, and the barrier has parity {barrier.parity}: that phase is "
        "over.",
    )


def _reads(now: Moment, did: Sequence[Warp]) -> tuple[str, str]:
    op = did[0].op
    if len({warp.op.tile for warp in did}) > 1:
        return "each consumer reads its tile", "A slot must not be filled again until both have arrived."
    verb = "read" if len(did) > 1 else "reads"
    title = f"{_names(did)} {verb} tile {op.tile} in slot {op.slot}"
    return title, f"Slot {op.slot} must not be filled again until both have arrived at empty[{op.slot}]."


_TOLD = (
    (model.ARRIVE, _arrives),
    (model.EXPECT, _expects),
    (model.COPY, _copies),
    (model.WAIT, _passes),
    (model.READ, _reads),
)
