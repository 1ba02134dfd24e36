"""Replays a tiled kernel's run with one thread late, to find what each thread reads then and adds up.

The emulator runs all threads of a block in lock-step. Its trace says which elements each thread stores and
reads, with which numbers, and between which barriers. The replay puts these in another order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from gemm_course.figures.race import Factor, Gate, Part, Track

LOAD, ADD, HELD = "load", "add", "held"
# A cell is a shared array and an element of that array.
Cell = tuple[str, tuple[int, int]]


class Stored(NamedTuple):
    """A store with its time, its number and its thread."""

    time: float
    value: int
    thread: int


@dataclass
class Phase:
    """The accesses of a thread between two barriers: the elements that it stores and those that it reads."""

    stores: dict[Cell, int] = field(default_factory=dict)
    # Each read has the number that it found in lock-step.
    reads: list[tuple[Cell, int]] = field(default_factory=list)

    @property
    def kind(self) -> str:
        return LOAD if self.stores else ADD


def phases(trace, thread: int) -> list[Phase]:
    """Cut a thread's part of the emulator's trace at the barriers. Leave out accesses to global memory."""
    found = [Phase()]
    for row in trace[trace["thread"] == thread].itertuples(index=False):
        if row.op == "barrier":
            found.append(Phase())
        elif row.space == "shared" and row.op == "store":
            found[-1].stores[row.array, tuple(row.element)] = int(row.value)
        elif row.space == "shared":
            found[-1].reads.append(((row.array, tuple(row.element)), int(row.value)))
    return [each for each in found if each.stores or each.reads]


@dataclass(frozen=True)
class Schedule:
    """The times at which the phases of threads begin, if a phase takes a unit of time.

    ``missing`` names the barriers that are left out, by the kind of the phases that they end. ``late`` is a
    thread's number, or None. That thread is late by ``by`` units before the phase ``before``.
    """

    missing: frozenset[str]
    late: int | None
    before: int
    by: float

    def times(self, kinds: list[str], threads: int) -> tuple[list[list[float]], list[Gate]]:
        """Return when each thread begins each phase, and the barriers as gates."""
        begins: list[list[float]] = [[] for _ in range(threads)]
        ready, gates = [0.0] * threads, []
        for number, kind in enumerate(kinds):
            for thread in range(threads):
                ready[thread] += self.by if (thread, number) == (self.late, self.before) else 0
                begins[thread].append(ready[thread])
                ready[thread] += 1
            if kind in self.missing:
                gates.append(Gate(min(ready), missing=True))
            else:
                ready = [max(ready)] * threads
                gates.append(Gate(ready[0]))
        return begins, gates


def replay(
    programs: Mapping[tuple[int, int], list[Phase]], schedule: Schedule
) -> tuple[list[Track], list[Gate]]:
    """Run the threads (x, y) by a schedule. A phase stores at its end and reads at its beginning.

    A store at the very moment of a read counts as earlier.
    """
    threads = list(programs)
    kinds = [phase.kind for phase in programs[threads[0]]]
    begins, gates = schedule.times(kinds, len(threads))
    shared = _history(programs, begins)
    tracks = []
    for number, thread in enumerate(threads):
        late = {schedule.before: schedule.by} if number == schedule.late else {}
        parts = list(_parts(programs[thread], begins[number], shared, late))
        total, right = (_sum(parts, name) for name in ("value", "right"))
        tracks.append(Track(thread, parts, total, right))
    return tracks, gates


def _history(programs, begins) -> dict[Cell, list[Stored]]:
    """Return the stores to each shared element, in the order of time."""
    history: dict[Cell, list[Stored]] = {}
    for thread, (program, times) in enumerate(zip(programs.values(), begins, strict=True)):
        for phase, begin in zip(program, times, strict=True):
            for cell, value in phase.stores.items():
                history.setdefault(cell, []).append(Stored(begin + 1, value, thread))
    return {cell: sorted(stores) for cell, stores in history.items()}


def _parts(program: list[Phase], begins: list[float], shared, late: Mapping[int, float]) -> Iterator[Part]:
    for number, (phase, begin) in enumerate(zip(program, begins, strict=True)):
        if number in late:
            yield Part(HELD, begin - late[number], begin)
        if phase.kind == LOAD:
            numbers = [(array[0], value) for (array, _), value in phase.stores.items()]
            yield Part(LOAD, begin, begin + 1, numbers=numbers)
        else:
            factors = [_factor(cell, right, begin, shared) for cell, right in phase.reads]
            yield Part(ADD, begin, begin + 1, products=list(zip(factors[::2], factors[1::2], strict=True)))


def _factor(cell: Cell, right: int, now: float, shared) -> Factor:
    """Return what a read finds.

    If it is wrong, the store to blame is the right number's, which came late, or another one, which came
    early.
    """
    here = [stored for stored in shared[cell] if stored.time <= now][-1]
    if here.value == right:
        return Factor(*cell, right, right)
    late = next((stored for stored in shared[cell] if stored.value == right and stored.time > now), here)
    return Factor(*cell, here.value, right, (late.thread, late.time))


def _sum(parts: list[Part], name: str) -> int:
    products = [product for part in parts for product in part.products]
    return sum(getattr(one, name) * getattr(other, name) for one, other in products)
