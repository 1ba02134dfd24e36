"""Replays a tiled kernel's run with one thread late, to find what each thread reads then and adds up.

The emulator runs all threads of a block in lock-step. Its trace says which elements each thread stores and
reads, with which numbers, and between which barriers. The replay puts these in another order.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gemm_course.figures.race import Factor, Gate, Part, Track

LOAD, ADD, HELD = "load", "add", "held"
# A cell is a shared array and an element of that array.
Cell = tuple[str, tuple[int, ...]]


class NothingStored(LookupError):
    """A read of a cell in which nobody has stored anything yet. Its argument is the cell."""


class Stored(NamedTuple):
    """A store with its time, its number and its thread."""

    time: float
    value: int
    thread: int


@dataclass
class Phase:
    """What a thread does until it waits, or turns from stores to reads or back.

    It has the elements that the thread stores, or those that it reads. ``barrier`` is the line of the barrier
    that ends it, or None if nothing does.
    """

    stores: dict[Cell, int] = field(default_factory=dict)
    # Each read has the number that it found in lock-step.
    reads: list[tuple[Cell, int]] = field(default_factory=list)
    barrier: int | None = None

    @property
    def kind(self) -> str:
        return LOAD if self.stores else ADD


def phases(trace, thread: int) -> list[Phase]:
    """Cut a thread's part of the emulator's trace into phases. Leave out accesses to global memory."""
    found: list[Phase] = []
    ended = True
    for row in trace[trace["thread"] == thread].itertuples(index=False):
        if row.op == "barrier":
            if found:
                found[-1].barrier = int(row.line)
            ended = True
        elif row.space == "shared":
            kind = LOAD if row.op == "store" else ADD
            if ended or found[-1].kind != kind:
                found.append(Phase())
            ended = False
            cell = row.array, tuple(row.element)
            if kind == LOAD:
                found[-1].stores[cell] = int(row.value)
            else:
                found[-1].reads.append((cell, int(row.value)))
    return found


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

    def times(self, program: Sequence[Phase], threads: int) -> tuple[list[list[float]], list[Gate]]:
        """Return when each thread begins each phase, and the barriers as gates.

        There is a gate between any two phases. It is missing where the kernel has no barrier, too.
        """
        begins: list[list[float]] = [[] for _ in range(threads)]
        ready, gates = [0.0] * threads, []
        for number, phase in enumerate(program):
            for thread in range(threads):
                ready[thread] += self.by if (thread, number) == (self.late, self.before) else 0
                begins[thread].append(ready[thread])
                ready[thread] += 1
            if phase.barrier is None and number == len(program) - 1:
                continue
            if phase.barrier is None or phase.kind in self.missing:
                gates.append(Gate(min(ready), missing=True))
            else:
                ready = [max(ready)] * threads
                gates.append(Gate(ready[0]))
        return begins, gates


def replay(
    programs: Mapping[tuple[int, int], list[Phase]], schedule: Schedule, matrices: Mapping[Cell, str]
) -> tuple[list[Track], list[Gate]]:
    """Run the threads (x, y) by a schedule. A phase stores at its end and reads at its beginning.

    A store at the very moment of a read counts as earlier. ``matrices`` tells whose numbers a cell holds, "A"
    or "B". All threads must have phases of the same kinds, with the same barriers.
    """
    threads = list(programs)
    begins, gates = schedule.times(programs[threads[0]], len(threads))
    shared = _history(programs, begins)
    tracks = []
    for number, thread in enumerate(threads):
        late = {schedule.before: schedule.by} if number == schedule.late else {}
        parts = list(_parts(programs[thread], begins[number], shared, late, matrices))
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


def _parts(
    program: list[Phase], begins: list[float], shared, late: Mapping[int, float], matrices
) -> Iterator[Part]:
    for number, (phase, begin) in enumerate(zip(program, begins, strict=True)):
        if number in late:
            yield Part(HELD, begin - late[number], begin)
        if phase.kind == LOAD:
            numbers = sorted((matrices[cell], value) for cell, value in phase.stores.items())
            yield Part(LOAD, begin, begin + 1, numbers=numbers)
        else:
            factors = [_factor(cell, right, begin, shared, matrices[cell]) for cell, right in phase.reads]
            yield Part(ADD, begin, begin + 1, products=list(zip(factors[::2], factors[1::2], strict=True)))


def _factor(cell: Cell, right: int, now: float, shared, matrix: str) -> Factor:
    """Return what a read finds. Raise NothingStored where nobody has stored anything yet.

    If it is wrong, the store to blame is the right number's, which came late, or another one, which came
    early.
    """
    before = [stored for stored in shared[cell] if stored.time <= now]
    if not before:
        raise NothingStored(f"{cell[0]}[{', '.join(map(str, cell[1]))}]")
    here = before[-1]
    if here.value == right:
        return Factor(*cell, right, right, matrix)
    late = next((stored for stored in shared[cell] if stored.value == right and stored.time > now), here)
    return Factor(*cell, here.value, right, matrix, (late.thread, late.time))


def _sum(parts: list[Part], name: str) -> int:
    products = [product for part in parts for product in part.products]
    return sum(getattr(one, name) * getattr(other, name) for one, other in products)
