"""Draws a shared tile coloured by bank, and the words that a warp reads falling into the 32 banks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import PAGE, SMALL, Drawing, wrap
from gemm_course.model.requests import Request

BANKS, WORD = 32, 4
# The tile and the banks begin at _LEFT, and a bank is _PITCH units wide.
_LEFT, _PITCH = 40.0, 13.0
_WIDEST = PAGE - _LEFT - 8
# These heights are reserved for the tile, for the gap below it and for the towers.
_TILE, _GAP, _TOWER = 146.0, 46.0, 132.0
# A row of the tile is at most this high.
_DEEPEST = 13.0
# A cell in bank 0 has the first share of the matrix's hue, and a cell in bank 31 has the second.
_PALE, _DEEP = 0.06, 0.5
_NOTES = 5
# A row reaches a little under the next, so that no gap shows between them.
_LAP = 0.3

# Each word is mapped to the lanes that read it.
Words = Mapping[int, Sequence[int]]


@dataclass(frozen=True)
class Tile:
    """A shared array as it lies in memory. The last ``padding`` words of each row are never read."""

    array: str
    rows: int
    columns: int
    padding: int = 0


def bank_of(address: int) -> int:
    """Return the bank of the word at ``address``, counted in bytes from a word in bank 0."""
    return address // WORD % BANKS


def theatre(request: Request, tile: Tile, wavefronts: int, code: str, tallest: int) -> Picture:
    """Draw a tile coloured by bank, and the words of one shared read that fall into their banks.

    ``wavefronts`` is the emulator's count. ``code`` is the access as the kernel writes it. ``tallest`` is the
    number of words that a bank has room for. All pictures are equally high.
    """
    words = _words(request)
    drawing = Drawing(f"{code}: {_plural(wavefronts, 'wavefront')}; {_remark(words)}", title_lines=2)
    top = drawing.top + 18
    cells = draw_tile(drawing, tile, words, top, _TILE)
    floor = top + _TILE + _GAP + _TOWER
    _drops(drawing, words, cells, floor, tallest)
    _bins(drawing, tile, words, floor, tallest)
    notes = [_who_reads_what(request), *_notes(tile, words)]
    _write(drawing, notes, floor + 26)
    return drawing.picture(f"{_in_words(request)} {' '.join(notes)}")


# ---- the tile ----------------------------------------------------------------------------------------------


def draw_tile(
    drawing: Drawing, tile: Tile, words: Iterable[int], top: float, height: float
) -> dict[int, tuple[float, float]]:
    """Draw the tile with each cell in the shade of its bank, and outline ``words``.

    The tile stands at the bottom of a place that begins at ``top`` and is ``height`` units high. Return the
    middle of the lower edge of each word.
    """
    wide = min(_PITCH, _WIDEST / tile.columns)
    high = min(_DEEPEST, height / tile.rows)
    top += height - high * tile.rows
    hue = colours.of_array(tile.array)
    for row in range(tile.rows):
        fill = _shades(drawing, hue, row * tile.columns % BANKS, wide)
        drawing.rect(_LEFT, top + row * high, wide * tile.columns, high + _LAP, fill)
    _name_columns(drawing, tile, wide, top)
    drawing.text(8, top + min(14, high * tile.rows), tile.array, bold=True, fill=hue)
    places = {}
    for word in words:
        x, y = _LEFT + word % tile.columns * wide, top + word // tile.columns * high
        drawing.rect(
            x,
            y,
            wide,
            high,
            hue,
            stroke=colours.INK,
            line=min(1, wide / 8),
            title=f"word {word}, bank {word % BANKS}",
        )
        places[word] = x + wide / 2, y + high
    return places


def _shades(drawing: Drawing, hue: str, first: int, wide: float) -> str:
    """Define a gradient that gives each cell of a row the shade of its bank, and return it as a fill.

    ``first`` is the bank of the row's first cell.
    """
    steps = "".join(
        f'<stop offset="{place / BANKS:.4g}" stop-color="{_shade(hue, bank)}"/>'
        for bank in range(BANKS)
        for place in (bank, bank + 1)
    )
    name, span = f"banks{hue[1:]}", wide * BANKS
    drawing.define(f'<defs><linearGradient id="{name}">{steps}</linearGradient></defs>')
    row = f"{name}_{first}_{wide:.3g}".replace(".", "p")
    begin = _LEFT - first * wide
    drawing.define(
        f'<defs><linearGradient id="{row}" href="#{name}" gradientUnits="userSpaceOnUse" x1="{begin:.2f}"'
        f' x2="{begin + span:.2f}" y1="0" y2="0" spreadMethod="repeat"/></defs>'
    )
    return f"url(#{row})"


def _shade(hue: str, bank: int) -> str:
    """Return a matrix's hue, paler for the first bank than for the last."""
    return colours.mixed(hue, _PALE + (_DEEP - _PALE) * bank / (BANKS - 1))


def _name_columns(drawing: Drawing, tile: Tile, wide: float, top: float) -> None:
    """Write the tile's size above it, and draw a line above its padding."""
    rows = "1 row" if tile.rows == 1 else f"{tile.rows} rows"
    words = f"{rows} of {tile.columns - tile.padding} words"
    drawing.text(_LEFT, top - 8, f"{words} + {tile.padding} of padding" if tile.padding else words)
    if tile.padding:
        right = _LEFT + tile.columns * wide
        drawing.line(right - tile.padding * wide, top - 3, right, top - 3, width=3)


# ---- the banks ---------------------------------------------------------------------------------------------


def _bin(bank: int) -> float:
    return _LEFT + bank * _PITCH


def _drops(drawing: Drawing, words: Words, cells: Mapping, floor: float, tallest: int) -> None:
    """Draw how each word falls to its place in its bank."""
    high = _TOWER / tallest
    for asked in _by_bank(words).values():
        for place, word in enumerate(asked):
            x, y = cells[word]
            end = floor - high * (place + 1)
            drawing.line(x, y, _bin(word % BANKS) + _PITCH / 2, end, stroke=colours.QUIET, width=0.6)


def _bins(drawing: Drawing, tile: Tile, words: Words, floor: float, tallest: int) -> None:
    """Draw the banks, each with a tower of its words. A bank needs one wavefront for each word."""
    hue, high = colours.of_array(tile.array), _TOWER / tallest
    by_bank, most = _by_bank(words), _most_words(words)
    drawing.text(_LEFT - 3, floor + 17, "bank", size=12, anchor="end")
    for bank in range(BANKS):
        x = _bin(bank)
        drawing.rect(x, floor, _PITCH, 4, _shade(hue, bank))
        drawing.line(x, floor - _TOWER, x, floor, stroke=colours.EDGE, width=0.8)
        if bank % 4 == 0 or bank == BANKS - 1:
            drawing.text(x + _PITCH / 2, floor + 17, bank, size=12, anchor="middle")
        for place in range(len(by_bank.get(bank, ()))):
            y = floor - high * (place + 1)
            drawing.rect(x + 1, y, _PITCH - 2, high, hue, stroke=colours.PAPER, line=0.6)
    drawing.line(_bin(BANKS), floor - _TOWER, _bin(BANKS), floor, stroke=colours.EDGE, width=0.8)
    for bank in [bank for bank, asked in by_bank.items() if len(asked) == most > 1]:
        high_ = high * most
        drawing.rect(_bin(bank), floor - high_, _PITCH, high_, "none", stroke=colours.WARN, line=2)
    _measure(drawing, most, floor, floor - high * most)


def _measure(drawing: Drawing, most: int, floor: float, top: float) -> None:
    """Draw a measure of the tallest tower, in wavefronts, at the right of the banks."""
    x = _bin(BANKS) + 10
    drawing.line(x, floor, x, top, width=1.6)
    for y in (floor, top):
        drawing.line(x - 4, y, x + 4, y, width=1.6)
    middle = min((floor + top) / 2, floor - 10)
    drawing.text(x + 8, middle + 2, most, bold=True)
    drawing.text(x + 8, middle + 18, "wavefront" if most == 1 else "wavefronts", size=12)


# ---- the same in words -------------------------------------------------------------------------------------


def _words(request: Request) -> dict[int, list[int]]:
    words = defaultdict(list)
    for lane, _, address in request.lanes:
        words[address // WORD].append(lane)
    return words


def _plural(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _in_words(request: Request) -> str:
    words, array = _words(request), request.array
    (first, start, low), (last, end, high) = request.lanes[0], request.lanes[-1]
    different, banks = _plural(len(words), "different word"), _plural(len(_by_bank(words)), "bank")
    return (
        f"{len(request.lanes)} lanes read {different} in {banks}: lane {first} reads {array}{list(start)}"
        f" in bank {bank_of(low)}, lane {last} reads {array}{list(end)} in bank {bank_of(high)}."
    )


def _who_reads_what(request: Request) -> str:
    """Say which lanes read which elements. Only the first few lanes and the last one are named."""
    lanes, names = zip(*((lane, f"{request.array}{list(place)}") for lane, place, _ in request.lanes))
    if len(set(names)) == 1:
        return f"All lanes read {names[0]}."
    return f"Lanes {lanes[0]}, {lanes[1]}, …, {lanes[-1]} read {names[0]}, {names[1]}, …, {names[-1]}."


def _by_bank(words: Words) -> dict[int, list[int]]:
    banks = defaultdict(list)
    for word in sorted(words):
        banks[word % BANKS].append(word)
    return banks


def _most_words(words: Words) -> int:
    return max(len(asked) for asked in _by_bank(words).values())


def _remark(words: Words) -> str:
    most = _most_words(words)
    if len(words) == 1:
        return "one word, broadcast to all lanes"
    return "each word in its own bank" if most == 1 else f"{most} words in the same bank"


def begins(tile: Tile) -> str:
    """Say in which banks the rows of a tile begin."""
    shift = tile.columns % BANKS
    if not shift:
        return "Every row begins in bank 0 (pale: bank 0, deep: bank 31)."
    further = f"{_plural(shift, 'bank')} further on than the one before"
    return f"Each row begins {further} (pale: bank 0, deep: bank 31)."


def _notes(tile: Tile, words: Words) -> list[str]:
    """Return sentences on where the tile's rows begin, on words that lanes share, and on the towers."""
    shared = max(len(lanes) for lanes in words.values())
    notes = [begins(tile)] if tile.rows > 1 else []
    if shared > 1 and len(words) > 1:
        notes.append(f"Up to {shared} lanes want the same word, and get it together.")
    return [*notes, "A bank gives one word per clock: the tallest tower is the number of wavefronts."]


def _write(drawing: Drawing, notes: Sequence[str], top: float) -> None:
    for place, line in enumerate(wrap(" ".join(notes), SMALL, PAGE - 16)):
        drawing.text(8, top + 14 + 18 * place, line, fill=colours.QUIET)
    drawing.rect(0, top + 18 * _NOTES + 4, 1, 1, colours.PAPER)
