"""Draws how one shared-memory request of any width is served, wavefront by wavefront and bank by bank."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby

from gemm_course.figures import colours
from gemm_course.figures.banks import BANKS, WORD, Tile, bank_of, begins, draw_tile
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import Drawing
from gemm_course.model.requests import Request, wavefronts_of

WARP = 32
_LEFT, _CELL, _HIGH = 8.0, 17.0, 20.0
# These heights are reserved for the tile, and for the most wavefronts with the words about them.
_TILE, _MOST = 96.0, 280.0
# A 128-bit access must start at a multiple of this many bytes.
_ALIGNED = 16

_KEY = "A line is one wavefront: one word per bank; the number is the lane served."

# A wavefront maps a bank to the first lane that needs its word.
Wavefront = dict[int, int]


def served(request: Request) -> list[tuple[range, list[Wavefront]]]:
    """Cut a shared request into the groups of lanes served together, each with its wavefronts.

    With up to 32 bits per lane the whole warp is served together, with 64 half a warp, with 128 a quarter.
    Two neighbouring groups of a load become one if every lane reads what lane ^ 1 reads, or if every lane
    reads what lane ^ 2 reads.
    """
    needed = {lane: address // WORD for lane, _, address in request.lanes}
    width = max(request.bits // 32, 1)
    size = WARP // width
    if agreeing(request):
        size *= 2
    groups = [range(first, first + size) for first in range(0, WARP, size)]
    return [(lanes, _fronts(needed, lanes, width)) for lanes in groups if needed.keys() & set(lanes)]


def agreeing(request: Request) -> int:
    """Return how far apart the lanes are, 1 or 2, of which each wants what the other does.

    Return 0 if there are no such pairs, or if the request is one for which they bring nothing.
    """
    if request.op != "load" or request.bits <= 32:
        return 0
    needed = {lane: address for lane, _, address in request.lanes}
    for apart in (1, 2):
        if all(address == needed.get(lane ^ apart, address) for lane, address in needed.items()):
            return apart
    return 0


def _fronts(needed: dict[int, int], lanes: range, width: int) -> list[Wavefront]:
    """Return the wavefronts of some lanes.

    Each wavefront takes, from every bank, the next word that is still needed.
    """
    # ``banks`` maps a bank to its words, and each word to the first lane that needs it.
    banks: dict[int, dict[int, int]] = defaultdict(dict)
    for lane in lanes:
        for word in range(needed[lane], needed[lane] + width) if lane in needed else ():
            banks[word % BANKS].setdefault(word, lane)
    depth = max(len(words) for words in banks.values())
    fronts: list[Wavefront] = [{} for _ in range(depth)]
    for bank, words in banks.items():
        for front, lane in zip(fronts, words.values()):
            front[bank] = lane
    return fronts


def draw(request: Request, code: str, tile: Tile) -> Picture:
    """Draw a tile with what a shared request touches, and below it one line of 32 banks per wavefront.

    ``code`` is the access as the kernel writes it. All pictures are equally high.
    """
    drawing = Drawing(title(request, code), title_lines=2)
    top = drawing.top + 18
    width = max(request.bits // 32, 1)
    words = {address // WORD + more for _, _, address in request.lanes for more in range(width)}
    draw_tile(drawing, tile, words, top, _TILE)
    below = top + _TILE + 48
    drawing.text(_LEFT, below - 24, _KEY, fill=colours.QUIET)
    lines(drawing, request, below, key=False)
    drawing.rect(0, below + _MOST, 1, 1, colours.PAPER)
    return drawing.picture(f"{in_words(request)} {begins(tile)}")


def title(request: Request, code: str) -> str:
    """Say what a request costs, or for how many lanes it is misaligned."""
    misaligned, count = _misaligned(request), wavefronts_of(request)
    if misaligned:
        return f"{code}: misaligned for {len(misaligned)} of {len(request.lanes)} lanes"
    return f"{code}: {count} {'wavefront' if count == 1 else 'wavefronts'}"


def _misaligned(request: Request) -> list[int]:
    return [lane for lane, _, address in request.lanes if request.bits == 128 and address % _ALIGNED]


def lines(drawing: Drawing, request: Request, y: float, *, key: bool = True) -> None:
    """Draw the lines of banks below y, and write notes below. With ``key``, a note says what a line is."""
    misaligned, groups = _misaligned(request), served(request)
    bank_numbers(drawing, y - 6)
    for lanes, fronts in groups:
        drawing.text(_LEFT, y + 14, _heading(lanes, fronts), bold=len(fronts) > 1, fill=colours.QUIET)
        y += 20
        for front in fronts:
            bank_line(drawing, y, front, request, misaligned)
            y += _HIGH
        y += 4
    for words in _footnotes(request, groups, misaligned, key):
        y += 18
        drawing.text(_LEFT, y, words, fill=colours.WARN if misaligned else colours.QUIET)


def _x(bank: int) -> float:
    return _LEFT + bank * _CELL


def _heading(lanes: range, fronts: list[Wavefront]) -> str:
    count = f"{len(fronts)} wavefronts" if len(fronts) > 1 else "1 wavefront"
    return f"lanes {lanes[0]} to {lanes[-1]}: {count}"


def bank_numbers(drawing: Drawing, y: float) -> None:
    """Write the numbers of some banks above their lines."""
    drawing.text(_LEFT, y, "bank 0", size=12, fill=colours.QUIET)
    for bank in (8, 16, 24, 31):
        drawing.text(_x(bank) + _CELL / 2, y, bank, size=12, anchor="middle", fill=colours.QUIET)


def bank_line(
    drawing: Drawing, y: float, front: Wavefront, request: Request, misaligned: Sequence[int] = ()
) -> None:
    """Draw 32 banks. The banks that serve a lane are one box with the lane's number."""
    hue = colours.of_array(request.array)
    for bank in range(BANKS):
        if bank not in front:
            drawing.rect(_x(bank), y, _CELL - 1, _HIGH - 2, colours.IDLE)
    for lane, group in groupby(sorted(front), key=front.get):
        banks = list(group)
        x, wide = _x(banks[0]), len(banks) * _CELL - 1
        edge = {"stroke": colours.WARN, "line": 2} if lane in misaligned else {}
        fill = colours.PALE[hue] if lane in misaligned else hue
        drawing.rect(x, y, wide, _HIGH - 2, fill, **edge)
        drawing.text(x + wide / 2, y + 14, lane, size=12, anchor="middle", fill=colours.text_on(fill))


def _footnotes(request: Request, groups, misaligned: list[int], key: bool) -> list[str]:
    if misaligned:
        return [
            "A 128-bit access must start at a multiple of 16 bytes;",
            "the GPU stops with 'misaligned address' (outlined lanes).",
        ]
    notes = [_KEY] if key else []
    starts = {lane: address for lane, _, address in request.lanes}
    needed = [[starts[lane] for lane in lanes if lane in starts] for lanes, _ in groups]
    if any(len(set(words)) < len(words) for words in needed):
        notes.append("Lanes of a turn that need the same words get them together.")
    elif len(set().union(*needed)) < len(request.lanes):
        notes.append("Several turns need the same words; each is served by itself.")
    return notes


def in_words(request: Request) -> str:
    """Return in words what :func:`lines` draws."""
    misaligned, groups = _misaligned(request), served(request)
    (first, start, low), (last, end, high) = request.lanes[0], request.lanes[-1]
    said = "; ".join(_heading(lanes, fronts) for lanes, fronts in groups)
    return (
        f"{request.bits} bits per lane: lane {first} at {request.array}{list(start)} in bank {bank_of(low)},"
        f" lane {last} at {request.array}{list(end)} in bank {bank_of(high)}. {said};"
        f" {wavefronts_of(request)} in all."
        + (f" Misaligned lanes: {', '.join(map(str, misaligned))}." if misaligned else "")
    )
