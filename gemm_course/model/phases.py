"""Runs a producer warp, consumer warps and a ring of slots with two mbarriers each, tick by tick.

An mbarrier works as PTX says: its phase is over when no arrival and no byte is missing. How long each step
takes is freely chosen (`Timing`). A run ends when everything is read, or with the first consequence of a
mistake.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

FULL, EMPTY = "full", "empty"
WAIT, EXPECT, COPY, READ, ARRIVE, DONE = "wait", "expect", "copy", "read", "arrive", "done"
PARTS = ("A", "B")
PART_BYTES = 2048
TILE_BYTES = PART_BYTES * len(PARTS)

NO_MISTAKE = "none"
SAME_PARITY = "consumers never flip parity"
NO_WAIT = "producer does not wait"
NO_ARRIVAL = "consumer 1 does not arrive"
MORE_BYTES = "expects more bytes"
FEWER_BYTES = "expects fewer bytes"
WRONG_START = "producer starts with parity 0"
MISTAKES = (NO_MISTAKE, SAME_PARITY, NO_WAIT, NO_ARRIVAL, MORE_BYTES, FEWER_BYTES, WRONG_START)
EXPECTED = {MORE_BYTES: 2 * TILE_BYTES, FEWER_BYTES: PART_BYTES}

RUNNING, RIGHT, STANDSTILL = "running", "right", "standstill"
OLD, MISSING, NEWER, UNDEFINED = "old", "missing", "newer", "undefined"


@dataclass(frozen=True)
class Timing:
    """The ticks that each step takes.

    A lands ``latency`` ticks after its copy was ordered, and B lands ``gap`` ticks after A. ``reading`` has
    the ticks for which each consumer reads.
    """

    latency: int = 1
    gap: int = 2
    reading: tuple[int, ...] = (2, 3)


QUICK, SLOW = Timing(latency=1), Timing(latency=8)


@dataclass(frozen=True)
class Barrier:
    """An mbarrier. ``pending`` of ``arrivals`` are missing, and ``came`` of ``expected`` bytes are there."""

    arrivals: int
    pending: int
    phase: int = 0
    expected: int = 0
    came: int = 0

    @property
    def parity(self) -> int:
        return self.phase % 2

    @property
    def arrived(self) -> int:
        return self.arrivals - self.pending

    def over(self, parity: int) -> bool:
        """Tell whether a wait for this parity returns, because the current phase has the other parity."""
        return self.parity != parity

    def settled(self) -> Barrier:
        """Return the barrier in its next phase if nothing is missing in this one, or else unchanged."""
        if self.pending or self.expected != self.came:
            return self
        return Barrier(self.arrivals, self.arrivals, self.phase + 1)


class Op(NamedTuple):
    """The next step of a warp, which is ``kind`` at ``barrier`` (FULL or EMPTY) of ``slot``, for ``tile``."""

    kind: str
    tile: int
    slot: int = 0
    barrier: str = ""
    parity: int = 0


class Warp(NamedTuple):
    """The step of a warp in a tick. ``passed`` is true if it waited and the wait returned."""

    name: str
    op: Op
    passed: bool = False


class Landing(NamedTuple):
    """The landing of a part of a tile in a slot."""

    tick: int
    part: str
    tile: int
    slot: int


class Read(NamedTuple):
    """A wrong read, in which a warp found tile ``found``, or nothing (None), in place of ``tile``."""

    warp: str
    part: str
    tile: int
    found: int | None
    slot: int
    begun: bool


@dataclass(frozen=True)
class Moment:
    """The whole state after a tick. ``completed`` names the barriers whose phase ended in the tick."""

    tick: int
    barriers: dict[tuple[str, int], Barrier]
    slots: tuple[dict[str, int | None], ...]
    coming: tuple[Landing, ...]
    warps: tuple[Warp, ...] = ()
    landed: tuple[Landing, ...] = ()
    completed: tuple[tuple[str, int], ...] = ()
    outcome: str = RUNNING
    wrong: Read | None = None

    @property
    def broken(self) -> bool:
        """True if a mistake has had its consequence."""
        return self.outcome not in (RUNNING, RIGHT)


def producer(tiles: int, slots: int, mistake: str) -> Iterator[Op]:
    """Yield the steps of copying tile after tile, each as soon as its slot is empty."""
    slot = parity = 0
    for tile in range(tiles):
        if mistake != NO_WAIT:
            yield Op(WAIT, tile, slot, EMPTY, parity if mistake == WRONG_START else parity ^ 1)
        yield Op(EXPECT, tile, slot, FULL)
        yield Op(COPY, tile, slot, FULL)
        slot, parity = _next(slot, parity, slots)


def consumer(tiles: int, slots: int, mistake: str, number: int, reading: int) -> Iterator[Op]:
    """Yield the steps of reading tile after tile, each as soon as its slot is full, and of giving it back."""
    slot = parity = 0
    for tile in range(tiles):
        yield Op(WAIT, tile, slot, FULL, parity)
        yield from [Op(READ, tile, slot)] * reading
        if not (mistake == NO_ARRIVAL and number == 1):
            yield Op(ARRIVE, tile, slot, EMPTY)
        slot, following = _next(slot, parity, slots)
        parity = parity if mistake == SAME_PARITY else following


def _next(slot: int, parity: int, slots: int) -> tuple[int, int]:
    return (slot + 1, parity) if slot + 1 < slots else (0, parity ^ 1)


def run(mistake: str, slots: int, tiles: int, timing: Timing = QUICK) -> list[Moment]:
    """Return all moments from the first tick to the outcome."""
    ring = _Ring(mistake, slots, tiles, timing)
    moments = [ring.now]
    while moments[-1].outcome == RUNNING:
        moments.append(ring.tick())
    return moments


class _Ring:
    """The state of a run, with ``now`` and the next step of each warp."""

    def __init__(self, mistake: str, slots: int, tiles: int, timing: Timing):
        self.timing, self.expected = timing, EXPECTED.get(mistake, TILE_BYTES)
        programs = [("producer", producer(tiles, slots, mistake))]
        for number, reading in enumerate(timing.reading):
            programs.append((f"consumer {number}", consumer(tiles, slots, mistake, number, reading)))
        self.programs = dict(programs)
        self.ops = {name: next(program) for name, program in programs}
        # ``begun`` names the consumers that are reading.
        self.begun: set[str] = set()
        readers = len(timing.reading)
        barriers = {(FULL, slot): Barrier(1, 1) for slot in range(slots)}
        barriers |= {(EMPTY, slot): Barrier(readers, readers) for slot in range(slots)}
        self.now = Moment(0, barriers, (dict.fromkeys(PARTS),) * slots, ())

    def tick(self) -> Moment:
        """Let the parts that are due land, then let every warp take one step. Return the new moment."""
        before = self.now
        self.now = replace(
            before, tick=before.tick + 1, warps=(), landed=(), completed=(), barriers=dict(before.barriers)
        )
        for landing in [each for each in before.coming if each.tick == self.now.tick]:
            self._land(landing)
        for name, op in self.ops.items():
            self._act(name, op)
        if self.now.outcome == RUNNING:
            self.now = replace(self.now, outcome=self._outcome())
        return self.now

    def _outcome(self) -> str:
        left = [warp for warp in self.now.warps if self.ops[warp.name].kind != DONE]
        if not left:
            return RIGHT
        moves = self.now.coming or self.now.landed or self.now.completed
        stuck = all(warp.op.kind == WAIT and not warp.passed for warp in left)
        return RUNNING if moves or not stuck else STANDSTILL

    def _land(self, landing: Landing) -> None:
        now = self.now
        slots = list(now.slots)
        slots[landing.slot] = {**slots[landing.slot], landing.part: landing.tile}
        coming = tuple(each for each in now.coming if each != landing)
        self.now = replace(now, slots=tuple(slots), coming=coming, landed=(*now.landed, landing))
        barrier = now.barriers[FULL, landing.slot]
        self._set((FULL, landing.slot), replace(barrier, came=barrier.came + PART_BYTES))

    def _act(self, name: str, op: Op) -> None:
        passed = op.kind == WAIT and self.now.barriers[op.barrier, op.slot].over(op.parity)
        self.now = replace(self.now, warps=(*self.now.warps, Warp(name, op, passed)))
        if op.kind in (EXPECT, ARRIVE):
            self._arrive((op.barrier, op.slot), self.expected if op.kind == EXPECT else 0)
        elif op.kind == COPY:
            lands = self.now.tick + self.timing.latency
            coming = [
                Landing(lands + place * self.timing.gap, part, op.tile, op.slot)
                for place, part in enumerate(PARTS)
            ]
            self.now = replace(self.now, coming=(*self.now.coming, *coming))
        elif op.kind == READ:
            self._read(name, op)
        if op.kind != WAIT or passed:
            following = next(self.programs[name], Op(DONE, op.tile))
            if following.kind != READ:
                self.begun -= {name}
            self.ops[name] = following

    def _arrive(self, key: tuple[str, int], size: int) -> None:
        barrier = self.now.barriers[key]
        if not barrier.pending:
            self.now = replace(self.now, outcome=UNDEFINED)
            return
        self._set(key, replace(barrier, pending=barrier.pending - 1, expected=barrier.expected + size))

    def _set(self, key: tuple[str, int], barrier: Barrier) -> None:
        self.now.barriers[key] = settled = barrier.settled()
        if settled.phase > barrier.phase:
            self.now = replace(self.now, completed=(*self.now.completed, key))

    def _read(self, name: str, op: Op) -> None:
        for part, found in self.now.slots[op.slot].items():
            if found != op.tile and self.now.outcome == RUNNING:
                kind = MISSING if found is None else OLD if found < op.tile else NEWER
                wrong = Read(name, part, op.tile, found, op.slot, name in self.begun)
                self.now = replace(self.now, outcome=kind, wrong=wrong)
        self.begun |= {name}
