"""Finds corresponding instructions in two versions of a kernel's machine code that differ only a little."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from difflib import SequenceMatcher

# In longer codes the comparison in order skips common opcodes, because it would otherwise take too long.
LONG = 2000


def like_places(ones: Sequence[str], others: Sequence[str]) -> list[int]:
    """Return, for each opcode in `ones`, the index of the corresponding opcode in `others`.

    If an opcode occurs equally often in both, the first corresponds to the first, and so on, because
    compilers exchange neighbours. Other opcodes correspond where a comparison finds them in the same order.
    An opcode without a counterpart takes that of the last opcode before it that has one. ``others`` must not
    be empty.
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
