"""Describes the lines of a source, their machine instructions, and what was measured of the instructions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class Machine:
    """A machine instruction.

    ``opcode`` has no modifiers. ``executed`` is how often warps executed it, or None if nothing was measured.
    ``waits`` maps a reason, named as in `profiles.WAITS`, to the share (0 to 1) of their whole time that
    warps waited here for that reason. ``ready`` is the share of time that warps were here without waiting,
    because they or another warp issued.
    """

    address: int
    text: str
    opcode: str
    kind: str
    in_loop: bool
    executed: int | None = None
    waits: Mapping[str, float] = field(default_factory=dict)
    ready: float = 0

    @property
    def waited(self) -> float:
        return sum(self.waits.values())


@dataclass(frozen=True)
class Line:
    """One line of the source. ``number`` is 0 for the instructions that belong to no line."""

    number: int
    text: str
    instructions: Sequence[Machine] = ()

    @property
    def name(self) -> str:
        return f"line {self.number}" if self.number else "no line of the source"

    @cached_property
    def kinds(self) -> Counter[str]:
        return Counter(one.kind for one in self.instructions)

    @cached_property
    def in_loop(self) -> int:
        """The number of the line's instructions that are in the main loop."""
        return sum(one.in_loop for one in self.instructions)

    @property
    def measured(self) -> bool:
        return any(one.executed is not None for one in self.instructions)

    @cached_property
    def executed(self) -> int:
        return sum(one.executed or 0 for one in self.instructions)

    @cached_property
    def waits(self) -> dict[str, float]:
        """The share of warps' whole time spent waiting at this line, by reason, the largest first."""
        return all_waits(self.instructions)

    @cached_property
    def waited(self) -> float:
        return sum(self.waits.values())

    @cached_property
    def ready(self) -> float:
        return sum(one.ready for one in self.instructions)


def all_waits(instructions: Iterable[Machine]) -> dict[str, float]:
    """Return by reason the share of their time that warps wait at ``instructions``, the largest first."""
    found = Counter[str]()
    for one in instructions:
        found.update(one.waits)
    return dict(found.most_common())


@dataclass(frozen=True)
class Whole:
    """The whole kernel, with which lines are compared.

    ``executed`` is the number of instructions that warps executed. ``longest`` is the largest share of their
    time that warps spent at one line. ``has_loop`` tells whether there is a main loop.
    """

    executed: int
    longest: float
    has_loop: bool

    @classmethod
    def of(cls, lines: Sequence[Line]) -> Whole:
        return cls(
            sum(line.executed for line in lines),
            max(line.waited + line.ready for line in lines),
            any(line.in_loop for line in lines),
        )


@dataclass(frozen=True)
class Function:
    """A function of the source, or a group of instructions that belong to no line.

    ``place`` names the file of a function, or explains the group.
    """

    name: str
    place: str
    lines: Sequence[Line]

    @property
    def heading(self) -> str:
        return ", ".join(filter(None, (self.name, self.place)))


def short(count: float) -> str:
    """Return a count in five characters or less: "2.15 G", "33.6 M", "524 k"."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if count >= 0.9995 * size:
            value = count / size
            return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"
    return f"{count:.0f}"


def percent(part: float) -> str:
    """Return a share in words, such as "35.0 %" or "<0.1 %", or "" for zero."""
    if part == 0:
        return ""
    return f"{100 * part:.1f} %" if part >= 0.0005 else "<0.1 %"
