"""Says what the picture of phases shows: who does what, which phase is over, and what a mistake leads to."""

from __future__ import annotations

from collections import Counter

from gemm_course.figures.phases import DOES, Said
from gemm_course.figures.svg import PAGE, text_width
from gemm_course.model import phases as model
from gemm_course.model.phases import PARTS, Barrier, Moment, Warp
from gemm_course.widgets._phases_in_a_tick import happens

LINES = {
    model.NO_MISTAKE: "All lines are right. Choose a mistake to break one.",
    model.SAME_PARITY: "mbarrier_wait(full, slot, 0)  # not: parity",
    model.NO_WAIT: "# left out: mbarrier_wait(empty, slot, parity ^ 1)",
    model.NO_ARRIVAL: "if consumer == 0: mbarrier_arrive(empty, slot)  # not: both",
    model.MORE_BYTES: "mbarrier_expect(full, slot, 8192)  # not: 4096",
    model.FEWER_BYTES: "mbarrier_expect(full, slot, 2048)  # not: 4096",
    model.WRONG_START: "mbarrier_wait(empty, slot, parity)  # not: parity ^ 1",
}
_WHY = {
    (model.SAME_PARITY, model.OLD): "It asked for parity 0 again. Phase 0 is over, so it did not wait for "
    "phase 1, in which the new tile comes.",
    (
        model.SAME_PARITY,
        model.STANDSTILL,
    ): "The consumers ask for parity 0 again. Phase 1 is over already, so "
    "the barrier has parity 0, and no copy is left that would flip it.",
    (
        model.NO_ARRIVAL,
        model.STANDSTILL,
    ): "Consumer 1 never arrives, so empty[0] stays at 1 of 2: the producer "
    "waits for it, and both consumers wait for the tile that is not copied.",
    (model.MORE_BYTES, model.STANDSTILL): "4,096 bytes came, 8,192 are expected, and none will follow: the "
    "consumers wait for them, and the producer for the consumers.",
    (
        model.FEWER_BYTES,
        model.MISSING,
    ): "Only the bytes of A were expected: when they had come, the phase was over, and the wait returned.",
    (model.WRONG_START, model.STANDSTILL): "The producer waits for a slot to be given back that nobody has "
    "filled. With parity ^ 1 it would have asked for the phase before phase 0, which counts as over.",
}


def said(now: Moment, mistake: str, tiles: int) -> Said:
    """Return the words for a moment of a run with this mistake and this number of tiles."""
    warps = [(warp.name, _does(warp, now, mistake)) for warp in now.warps] or _AT_FIRST
    if now.outcome == model.RUNNING:
        title, caption = happens(now)
    else:
        title, caption = _consequence(now, tiles), _why(now, mistake, tiles)
    return Said(title, LINES[mistake], mistake != model.NO_MISTAKE, warps, _copies(now), caption)


_AT_FIRST = [(name, "has not begun") for name in ("producer", "consumer 0", "consumer 1")]


# ---- how a run ends ----------------------------------------------------------------------------------------


def _consequence(now: Moment, tiles: int) -> str:
    wrong = now.wrong
    match now.outcome:
        case model.STANDSTILL:
            return f"Tick {now.tick}: a standstill. Everybody waits, for ever"
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
            return f"Undefined: full[{now.warps[0].op.slot}] gets a second arrival within one phase"
    return f"All {tiles} tiles are read by both consumers, and all was right"


def _why(now: Moment, mistake: str, tiles: int) -> str:
    if now.outcome == model.RIGHT:
        return f"Each of the {tiles} tiles was read as it was copied. Now break it."
    if mistake == model.NO_WAIT:
        return _never_asked(now)
    return _WHY[mistake, now.outcome]


def _never_asked(now: Moment) -> str:
    """Say that the producer arrived without having asked whether the slot is empty.

    Only the producer can arrive too early, since only "full" waits for bytes after its arrival.
    """
    wrong = now.wrong
    slot = wrong.slot if wrong else now.warps[0].op.slot
    barrier = now.barriers[model.EMPTY, slot]
    told = f"empty[{slot}] says {barrier.arrived} of {barrier.arrivals} arrived, but the producer never asked"
    if wrong:
        return f"{told}. This is a race: how it ends depends on who is faster."
    return f"{told}: full[{slot}] has its one arrival already, but not its bytes."


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
    """Say what a wait asked, and what the barrier answered.

    The barrier may enter its next phase later in the same tick.
    """
    op, since = warp.op, int(barrier.over(warp.op.parity) != warp.passed)
    asked = f"{op.barrier}[{op.slot}], parity {op.parity}"
    phase = barrier.phase - since
    if not warp.passed:
        return f"waits at {asked}: phase {phase} {'was' if since else 'is'} not over"
    return f"passes {asked}: {f'phase {phase - 1}' if phase else 'the phase before 0'} is over"


def _is(warp: Warp, now: Moment) -> bool:
    return now.wrong is not None and now.wrong.warp == warp.name


def _misread(now: Moment) -> str:
    wrong = now.wrong
    found = "nothing" if wrong.found is None else f"that of tile {wrong.found}"
    return f"reads {wrong.part} of tile {wrong.tile} in slot {wrong.slot}, and finds {found}"


def _copies(now: Moment) -> str:
    """Return the words in full if there is room, or else with the short names of the picture."""
    landed = [f"{each.part} of tile {each.tile}" for each in now.landed]
    tiles = Counter(each.tile for each in now.coming)
    coming = [f"tile {tile}" for tile, parts in tiles.items() if parts == len(PARTS)]
    coming = [f"{each.part} of tile {each.tile}" for each in now.coming if tiles[each.tile] == 1] + coming
    words = _moving(landed, coming)
    if text_width(words) <= PAGE - 8 - DOES:
        return words
    return _moving(*([f"{each.part}{each.tile}" for each in group] for group in (now.landed, now.coming)))


def _moving(landed: list[str], coming: list[str]) -> str:
    to_come = f"to come: {', '.join(coming)}" if coming else "nothing on the way"
    if not landed:
        return to_come
    return f"{', '.join(landed)} land{'s' if len(landed) == 1 else ''}; {to_come}"
