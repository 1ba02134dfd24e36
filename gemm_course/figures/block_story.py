"""Finds which elements of A and B an element, a thread, a warp or a block of C reads, step by step.

The source is the emulator's trace of one block. Its A and B are :func:`numbered`, so that a value in shared
memory tells which element it is a copy of.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from gemm_course.figures.corner import Element

WARP = 32
LEVELS = ("element", "thread", "warp", "block")


@dataclass(frozen=True)
class Moment:
    """One step of a block, in which it either copies a slab of A and B into shared memory or multiplies.

    ``p`` is the first and the last index along k, both included. ``reads`` holds the elements that each
    thread loads, by matrix and thread. ``requests`` counts the loads that bring these elements, by matrix and
    thread.
    """

    p: tuple[int, int]
    copies: bool
    reads: Mapping[str, Mapping[int, frozenset[Element]]]
    requests: Mapping[str, Mapping[int, int]]

    def read_by(self, array: str, threads: Iterable[int]) -> set[Element]:
        """Return the elements of A or B that any of ``threads`` loads."""
        return set().union(*(self.reads[array].get(thread, ()) for thread in threads))

    def lane_reads(self, threads: Iterable[int], arrays: str = "AB") -> int:
        """Count the elements of ``arrays`` that ``threads`` load, each once per thread that loads it."""
        return sum(len(self.reads[array].get(thread, ())) for thread in threads for array in arrays)


@dataclass(frozen=True, eq=False)
class Story:
    """The work of one block, as a series of moments.

    ``shape`` is (m, n, k) and ``block`` is (x, y). ``owner`` names the thread that stores each of the block's
    elements of C. ``slab`` is the depth of the tiles in shared memory along k, or 0 if there are none.
    ``at_once`` is the number of steps along k that one operation takes.
    """

    shape: tuple[int, int, int]
    block: tuple[int, int]
    owner: Mapping[Element, int]
    moments: Sequence[Moment]
    slab: int = 0
    at_once: int = 1

    def threads(self, level: str, element: Element) -> list[int]:
        """Return the threads of a level: the owner of ``element`` alone, its warp, or its block."""
        mine = self.owner[element]
        everybody = sorted(set(self.owner.values()))
        belongs = {"warp": lambda t: t // WARP == mine // WARP, "block": lambda t: True}
        return list(filter(belongs.get(level, lambda t: t == mine), everybody))

    def made(self, level: str, element: Element) -> set[Element]:
        """Return the elements of C that a level computes."""
        threads = set(self.threads(level, element))
        return {element} if level == "element" else {e for e, owner in self.owner.items() if owner in threads}

    def read(self, moment: Moment, array: str, level: str, element: Element) -> set[Element]:
        """Return the elements of A or B that a level reads in ``moment``."""
        found = moment.read_by(array, self.threads(level, element))
        if level != "element" or moment.copies:
            return found
        first, last = moment.p
        steps = range(first, last + 1)
        return {(element[0], p) if array == "A" else (p, element[1]) for p in steps}

    @cache  # noqa: B019  (a story lives as long as the notebook)
    def ever_read(self, array: str, level: str, element: Element) -> frozenset[Element]:
        """Return the elements of A or B that a level multiplies with, in all steps together."""
        multiplying = [moment for moment in self.moments if not moment.copies]
        return frozenset().union(*(self.read(moment, array, level, element) for moment in multiplying))


def numbered(rows: int, columns: int, dtype: str) -> np.ndarray:
    """Return a matrix that holds 1, 2, 3 and so on, row by row, so that each value tells its place.

    The values are exact in float16 up to 2048.
    """
    return np.arange(1, rows * columns + 1).astype(dtype).reshape(rows, columns)


def story(trace, shape: tuple[int, int, int], block: tuple[int, int], *, copies: bool, at_once: int = 1):
    """Return the story of a block from its trace, in which A and B were :func:`numbered`.

    With ``copies``, the story tells the copies into shared memory as steps of their own.
    """
    gathered: dict[tuple, dict] = {}
    shared = bool(((trace["space"] == "shared") & (trace["op"] == "load")).any())
    owner: dict[Element, int] = {}
    columns = (trace[name].tolist() for name in ("space", "op", "array", "element", "thread", "value"))
    slabs, in_slab = -1, False
    for space, op, array, element, thread, value in zip(*columns, strict=True):
        values = value if isinstance(value, tuple) else (value,)
        if space == "global" and op == "store":
            owner.update({(element[0], element[1] + i): thread for i in range(len(values))})
        elif op == "load" and array[:1] in ("A", "B"):
            copying = shared and space == "global"
            slabs, in_slab = slabs + (copying and not in_slab), copying
            elements = [_place(array[0], number, shape) for number in values if number]
            for each in elements:
                p = each[1] if array[0] == "A" else each[0]
                key = (slabs, 0, 0) if copying else (max(slabs, 0), 1, p // at_once)
                _gather(gathered, key, array[0], thread, each, p)
            if elements:
                gathered[key]["requests"][array[0]][thread] += 1
    moments = [_moment(key, gathered[key]) for key in sorted(gathered)]
    depth = next((m.p[1] - m.p[0] + 1 for m in moments if m.copies), 0)
    told = [moment for moment in moments if copies or not moment.copies]
    return Story(shape, block, owner, told, depth, at_once)


def _place(array: str, number: float, shape: tuple[int, int, int]) -> Element:
    """Return the place in A or B from which a value was copied."""
    _, n, k = shape
    return divmod(int(number) - 1, k if array == "A" else n)


def _gather(gathered: dict, key: tuple, array: str, thread: int, element: Element, p: int) -> None:
    found = gathered.setdefault(
        key,
        {
            "reads": {name: defaultdict(set) for name in "AB"},
            "requests": {name: defaultdict(int) for name in "AB"},
            "p": set(),
        },
    )
    found["reads"][array][thread].add(element)
    found["p"].add(p)


def _moment(key: tuple, found: dict) -> Moment:
    reads = {name: {t: frozenset(e) for t, e in by.items()} for name, by in found["reads"].items()}
    requests = {name: dict(by) for name, by in found["requests"].items()}
    return Moment((min(found["p"]), max(found["p"])), key[1] == 0, reads, requests)
