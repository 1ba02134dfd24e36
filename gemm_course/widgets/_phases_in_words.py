"""What the picture of phases says: who does what, which phase is over, and what a mistake leads to."""

from __future__ import annotations

from gemm_course.figures.phases import Said
from gemm_course.figures.svg import capital
from gemm_course.model import phases as model
from gemm_course.model.phases import FULL, Barrier, Moment, Warp

LINES = {
    model.NO_MISTAKE: "no line is wrong",
    model.SAME_PARITY: "mbarrier_wait(full, slot, 0)  # not: parity",
    model.NO_WAIT: "# left out: mbarrier_wait(empty, slot, parity ^ 1)",
    model.NO_ARRIVAL: "if warp == 0: mbarrier_arrive(empty, slot)  # not: every warp",
    model.MORE_BYTES: "mbarrier_expect(full, slot, 8192)  # not: 4096",
    model.FEWER_BYTES: "mbarrier_expect(full, slot, 2048)  # not: 4096",
    model.WRONG_START: "mbarrier_wait(empty, slot, parity)  # not: parity ^ 1",
}
_WHY = {
    (model.SAME_PARITY, model.OLD): "It asked for parity 0 again. Phase 0 is over, so it did not wait for "
    "phase 1, in which the new tile comes.",
    (model.SAME_PARITY, model.STANDSTILL): "They ask for parity 0 again, but phase 1 is over already.",
    (model.NO_WAIT, model.NEWER): "Nothing told the producer that the slot was still being "
    "read. This is a race: how it ends depends on who is faster.",
    (model.NO_WAIT, model.UNDEFINED): "Nothing told the producer to wait until the slot had been read.",
    (model.NO_ARRIVAL, model.STANDSTILL): "Consumer 1 never arrives, so no phase of empty can end.",
    (model.MORE_BYTES, model.STANDSTILL): "4,096 bytes came, 8,192 are expected, and none will follow.",
    (
        model.FEWER_BYTES,
        model.MISSING,
    ): "Only the bytes of A were expected: when they had come, the phase was over, and the wait returned.",
    (model.WRONG_START, model.STANDSTILL): "With parity ^ 1 the first wait would return at once.",
}
_VERBS = {
    model.WAIT: "waits",
    model.EXPECT: "expects bytes",
    model.COPY: "starts a copy",
    model.READ: "reads",
    model.ARRIVE: "arrives",
    model.DONE: "is done",
}


def said(now: Moment, mistake: str, tiles: int) -> Said:
    """The words for a moment of a run with this mistake, of so many tiles."""
    warps = [(warp.name, _does(warp, now, mistake)) for warp in now.warps] or _AT_FIRST
    sentences = _ended(now, mistake, tiles) if now.outcome != model.RUNNING else _running(now)
    wrong = mistake != model.NO_MISTAKE
    return Said(_title(now, tiles), LINES[mistake], wrong, warps, _copies(now), sentences)


_AT_FIRST = [(name, "has not begun") for name in ("producer", "consumer 0", "consumer 1")]


# ---- the title ---------------------------------------------------------------------------------------------


def _title(now: Moment, tiles: int) -> str:
    wrong = now.wrong
    match now.outcome:
        case model.STANDSTILL:
            return "A standstill: everybody waits, for ever"
        case model.OLD:
            found = f"{wrong.part} of tile {wrong.found}"
            return f"Old tile read twice: {wrong.warp} takes {found} for tile {wrong.tile}"
        case model.MISSING:
            return (
                f"Read too early: {wrong.part} of tile {wrong.tile} has not come when {wrong.warp} reads it"
            )
        case model.NEWER:
            when = f"while {wrong.warp} reads it" if wrong.begun else f"before {wrong.warp} has read it"
            return f"Tile {wrong.tile} is overwritten {when}: its {wrong.part} is of tile {wrong.found} now"
        case model.UNDEFINED:
            return f"Undefined: a second arrival at {_late(now)} within one phase"
        case model.RIGHT:
            return f"All {tiles} tiles are read by both consumers, and all was right"
    if not now.tick:
        return "Before the first tick: all slots are empty, all barriers in phase 0"
    return f"Tick {now.tick}: " + ", ".join(f"{warp.name} {_VERBS[warp.op.kind]}" for warp in now.warps)


def _late(now: Moment) -> str:
    """Where an arrival is one too many: only the producer can be so early, as only full waits for bytes."""
    op = now.warps[0].op
    return f"{op.barrier}[{op.slot}]"


# ---- what each does ----------------------------------------------------------------------------------------


def _does(warp: Warp, now: Moment, mistake: str) -> str:
    op = warp.op
    match op.kind:
        case model.WAIT:
            return _waiting(warp, now.barriers[op.barrier, op.slot])
        case model.EXPECT:
            size = model.EXPECTED.get(mistake, model.TILE_BYTES)
            return f"arrives at full[{op.slot}] and expects {size:,} bytes"
        case model.COPY:
            return f"starts to copy tile {op.tile} to slot {op.slot}"
        case model.READ:
            return f"reads tile {op.tile} in slot {op.slot}" if not _is(warp, now) else _misread(now)
        case model.ARRIVE:
            return f"arrives at empty[{op.slot}]: it has read its tile"
    return "is done"


def _waiting(warp: Warp, barrier: Barrier) -> str:
    """What a wait asked and heard: later in the same tick the barrier may have gone to its next phase."""
    op, since = warp.op, int(barrier.over(warp.op.parity) != warp.passed)
    asked = f"at {op.barrier}[{op.slot}], parity {op.parity}"
    phase = barrier.phase - since
    if not warp.passed:
        return f"waits {asked}: phase {phase} {'was' if since else 'is'} not over"
    over = f"phase {phase - 1}" if phase else "“before phase 0”"
    return f"asks {asked}: {over} is over, go on"


def _is(warp: Warp, now: Moment) -> bool:
    return now.wrong is not None and now.wrong.warp == warp.name


def _misread(now: Moment) -> str:
    wrong = now.wrong
    found = "nothing" if wrong.found is None else f"that of tile {wrong.found}"
    return f"reads {wrong.part} of tile {wrong.tile} in slot {wrong.slot}, and finds {found}"


def _copies(now: Moment) -> str:
    tiles = sorted({each.tile for each in now.coming})
    names = " and ".join(", ".join(map(str, tiles)).rsplit(", ", 1))
    coming = f"tile{'s' if len(tiles) > 1 else ''} {names} on the way" if tiles else "nothing on the way"
    if not now.landed:
        return coming
    parts = " and ".join(f"{each.part} of tile {each.tile}" for each in now.landed)
    return f"{parts} land{'s' if len(now.landed) == 1 else ''}; {coming}"


# ---- sentences ---------------------------------------------------------------------------------------------


def _running(now: Moment) -> list[str]:
    if not now.tick:
        return [
            "A phase is over when no arrival and no byte is missing: then the bit flips. A wait for a parity "
            "returns if the bit is the other one: on a new barrier a wait for parity 1 returns at once."
        ]
    return [_over(now, key) for key in now.completed]


def _over(now: Moment, key: tuple[str, int]) -> str:
    kind, slot = key
    barrier = now.barriers[key]
    there = "its arrival and all bytes are there" if kind == FULL else "both consumers have arrived"
    follows = "the slot may be read" if kind == FULL else "the slot may be filled"
    return (
        f"{kind}[{slot}]: {there}, so phase {barrier.phase - 1} is over, the bit is {barrier.parity} now, "
        f"and {follows}."
    )


def _ended(now: Moment, mistake: str, tiles: int) -> list[str]:
    if now.outcome == model.RIGHT:
        return [f"Each of the {tiles} tiles was read as it was copied. Now break it."]
    why = _WHY[mistake, now.outcome]
    if now.outcome == model.STANDSTILL:
        return [standing(now), why]
    if now.outcome == model.UNDEFINED:
        return [f"{_late(now)} already has its one arrival, and its bytes are still coming.", why]
    return [why]


def standing(now: Moment) -> str:
    """Who waits for what for ever."""
    waiting: dict[tuple[str, int], list[str]] = {}
    for warp in now.warps:
        if warp.op.kind == model.WAIT:
            waiting.setdefault((warp.op.barrier, warp.op.slot), []).append(warp.name)
    said = "; ".join(
        f"{_names(names)} for phase {now.barriers[key].phase} of {key[0]}[{key[1]}], which still needs "
        f"{_missing(now.barriers[key])}"
        for key, names in waiting.items()
    )
    return capital(f"{said}.")


def _names(names: list[str]) -> str:
    return f"the {names[0]} waits" if len(names) == 1 else "both consumers wait"


def _missing(barrier: Barrier) -> str:
    parts = []
    if barrier.pending:
        parts.append(f"{barrier.pending} arrival{'s' if barrier.pending > 1 else ''}")
    if barrier.expected > barrier.came:
        parts.append(f"{barrier.expected - barrier.came:,} bytes")
    return " and ".join(parts)
