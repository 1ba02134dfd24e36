"""Finds what the loads of a main loop cost in shared memory, from machine code and from the source's reads.

Machine code says how wide each load is and which line it comes from, but not which address a lane has. The
emulator says which addresses the lanes of a warp have in each read of a line. All reads that differ by the
same distance in every lane cost the same: such a shift only numbers the banks anew. A wide load begins where
one of the reads does that it stands for. So its lanes lie as in the source, and it is as wide as in the code.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gemm_course.compiler.disassembly import Instruction
from gemm_course.compiler.kinds import MULTIPLY_ADD
from gemm_course.compiler.result import Compiled
from gemm_course.model.requests import WARP, WORD, Request, wavefronts_of
from lockstep import wavefronts

_WIDTH = re.compile(r"\.(?:U)?(\d+)$")
_ADDRESS = re.compile(r"\[(.*?)(?:\+(-?0x[0-9a-f]+))?\]")
_WORD_BITS = 8 * WORD


@dataclass(frozen=True)
class Reads:
    """The reads of shared memory that a warp makes in one step along k.

    ``widths`` maps the bits that each lane reads at a time to the number of such requests. ``wavefronts``
    maps the name of an array to the wavefronts of its reads.
    """

    widths: Mapping[int, float]
    wavefronts: Mapping[str, float]

    @property
    def requests(self) -> float:
        return sum(self.widths.values())

    @property
    def total(self) -> float:
        return sum(self.wavefronts.values())


class NotClear(ValueError):
    """The error for loads of which it is not clear what they read. Its message says why, in a sentence."""


@dataclass(frozen=True)
class _Pattern:
    """Reads whose lanes lie alike.

    ``places`` holds each lane's distance from the first in bytes, or None for a lane that reads nothing.
    """

    array: str
    places: tuple[int | None, ...]

    def wavefronts(self, bits: int) -> int:
        """Return the wavefronts of one load of ``bits`` per lane that begins at these places."""
        lowest = min(place for place in self.places if place is not None)
        words = [-1 if place is None else (place - lowest) // WORD for place in self.places]
        return wavefronts(words, bits)


def compiled_reads(code: Compiled, one_tile: Iterable[Request], results: int) -> Reads:
    """Return the reads of shared memory per step along k in the main loop of machine code.

    ``one_tile`` are a warp's loads from shared memory, from one tile of A and B, as the emulator traced them.
    ``results`` is the number of results per thread. Raise NotClear.
    """
    if code.loop is None:
        raise NotClear("its machine code has no loop with multiply-adds.")
    steps = code.loop.by_kind[MULTIPLY_ADD] / results
    if steps < 1:
        raise NotClear("its main loop has fewer multiply-adds than a thread has results.")
    patterns, widths, cost = _patterns(one_tile), Counter(), Counter()
    for (line, _), loads in _loads(code.loop.rows).items():
        pattern = _read_by(line, loads, patterns[line])
        for load in loads:
            widths[load.bits] += 1 / steps
            cost[pattern.array] += pattern.wavefronts(load.bits) / steps
    return Reads(widths, cost)


@dataclass(frozen=True)
class _Load:
    """A load of ``bits`` per lane, ``first`` words after the place that its register holds."""

    bits: int
    first: int

    @property
    def words(self) -> range:
        return range(self.first, self.first + self.bits // _WORD_BITS)


def _loads(rows: Iterable[Instruction]) -> dict[tuple[int, str], list[_Load]]:
    """Return the loads from shared memory by the line that they come from and the register of their address.

    With the predicate !PT an instruction never runs.
    """
    found: dict[tuple[int, str], list[_Load]] = defaultdict(list)
    for row in rows:
        if row.opcode.split(".")[0] == "LDS" and row.predicate != "@!PT":
            register, offset = _ADDRESS.search(row.operands).groups()
            width = _WIDTH.search(row.opcode)
            bits = int(width[1]) if width else _WORD_BITS
            found[row.line, register].append(_Load(bits, int(offset or "0", 16) // WORD))
    return found


def _patterns(asked: Iterable[Request]) -> dict[int, dict[_Pattern, set[int]]]:
    """Return, for each line, its patterns with the words that the first lane of each reads."""
    found: dict[int, dict[_Pattern, set[int]]] = defaultdict(lambda: defaultdict(set))
    for request in asked:
        at = {lane: address for lane, _, address in request.lanes}
        first = at[min(at)]
        places = tuple(at[lane] - first if lane in at else None for lane in range(WARP))
        words = range(first // WORD, (first + request.bits // 8 - 1) // WORD + 1)
        found[request.line][_Pattern(request.array, places)] |= set(words)
    return found


def _read_by(line: int, loads: Sequence[_Load], patterns: Mapping[_Pattern, set[int]]) -> _Pattern:
    """Return which of a line's reads these loads stand for, which have one register. Raise NotClear.

    Where a line reads two arrays, the words of an array must have the distances that the loads have.
    """
    if not patterns:
        raise NotClear("its main loop has loads that belong to no read of the source.")
    fit = [pattern for pattern, words in patterns.items() if _fits(loads, words)]
    if len(fit) == 1 or len(patterns) == 1:
        return (fit or list(patterns))[0]
    widths = {load.bits for load in loads}
    if len({(each.array, *map(each.wavefronts, widths)) for each in fit}) == 1:
        return fit[0]
    raise NotClear(
        f"in line {line} it is not clear which load is of which array. Read each array in a line of its own."
    )


def _fits(loads: Sequence[_Load], words: set[int]) -> bool:
    """Tell whether the loads' words are among ``words``, if they are all moved by the same distance."""
    wanted = {word for load in loads for word in load.words}
    lowest = min(wanted)
    return any({word - lowest + first for word in wanted} <= words for first in words)


def written_reads(short: Sequence[Request], longer: Sequence[Request], steps: int) -> Reads:
    """Return the reads of shared memory per step along k as the source has them.

    ``short`` and ``longer`` are a warp's loads from shared memory in two products, of which the second has
    ``steps`` steps more. What happens once, before or after the steps, is in both and cancels.
    """
    widths, cost = Counter(), Counter()
    for asked, sign in ((longer, 1), (short, -1)):
        for request in asked:
            widths[request.bits] += sign / steps
            cost[request.array] += sign * wavefronts_of(request) / steps
    return Reads(+widths, +cost)
