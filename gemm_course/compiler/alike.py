"""Which instructions correspond in two machine codes of one kernel that differ in a few."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from difflib import SequenceMatcher

LONG = 2000  # instructions; beyond, common opcodes are left out of the comparison in order, for its time


def like_places(ones: Sequence[str], others: Sequence[str]) -> list[int]:
    """For each of `ones`, opcodes in order, the index of the one of `others` that it corresponds to.

    If both have an opcode as often, the first corresponds to the first, and so on: compilers exchange
    neighbours. Of other opcodes those correspond that are in the same order. One without a counterpart
    corresponds to that of the last before it that has one. others must not be empty.
    """
    if list(ones) == list(others):
        return list(range(len(ones)))
    places: dict[int, int] = {}
    matcher = SequenceMatcher(None, ones, others, autojunk=len(ones) > LONG)
    for one, other, size in matcher.get_matching_blocks():
        places.update(zip(range(one, one + size), range(other, other + size)))
    by_opcode = _by_opcode(others)
    for opcode, here in _by_opcode(ones).items():
        if len(here) == len(by_opcode[opcode]):
            places.update(zip(here, by_opcode[opcode]))
    last, found = 0, []
    for one in range(len(ones)):
        last = places.get(one, last)
        found.append(last)
    return found


def _by_opcode(opcodes: Sequence[str]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = defaultdict(list)
    for place, opcode in enumerate(opcodes):
        places[opcode].append(place)
    return places
