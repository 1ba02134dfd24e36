"""Thirty-two banks: where the words lie that one warp asks of shared memory."""

from __future__ import annotations

from collections import defaultdict

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.requests import Request
from gemm_course.figures.svg import Drawing

BANKS, WORD = 32, 4
_ROWS = 34  # lanes 32 rows apart and a row of padding still fit


def bank_of(address: int) -> int:
    """Return the bank that holds the word at ``address`` (bytes from the start of an array that starts at
    bank 0).
    """
    return address // WORD % BANKS


def thirty_two_banks(request: Request, wavefronts: int, code: str) -> Picture:
    """Draw the words of one shared request in their banks; ``wavefronts`` is the emulator's count, ``code``
    the access.
    """
    words = defaultdict(list)
    for lane, _, address in request.lanes:
        words[address // WORD].append(lane)
    fullest = max(len(v) for v in _by_bank(words).values())
    verb = "wavefront" if wavefronts == 1 else "wavefronts"
    remark = _remark(words, fullest)
    drawing = Drawing(f"{code}: {wavefronts} {verb}; {remark}")
    left, top, cell = 70.0, drawing.top + 22, 15.0
    low = min(words) // BANKS
    rows = min(_ROWS, max(words) // BANKS - low + 1)
    high = min(16.0, 300 / max(rows, 4))
    for bank in (0, 8, 16, 24, 31):
        drawing.text(left + (bank + 0.5) * cell, top - 6, bank, size=12, anchor="middle", fill=colours.QUIET)
    drawing.text(8, top - 6, "bank", fill=colours.QUIET)
    for row in range(rows):
        for bank in range(BANKS):
            word = (low + row) * BANKS + bank
            fill = colours.of_array(request.array) if word in words else colours.IDLE
            drawing.rect(left + bank * cell, top + row * high, cell - 1, high - 1, fill, title=f"word {word}")
    hot = [bank for bank, asked in _by_bank(words).items() if len(asked) == fullest > 1]
    for bank in hot:
        drawing.rect(
            left + bank * cell - 1, top - 2, cell + 1, rows * high + 3, "none", stroke=colours.WARN, line=2
        )
    y = top + rows * high + 20
    drawing.text(8, y, _footnote(words, fullest), fill=colours.QUIET)
    (first, start, low_address), (last, end, high_address) = request.lanes[0], request.lanes[-1]
    return drawing.picture(
        f"{len(request.lanes)} lanes ask for {len(words)} different words in {len(_by_bank(words))} banks:"
        f" lane {first} for {request.array}{list(start)} in bank {bank_of(low_address)}, lane {last} for"
        f" {request.array}{list(end)} in bank {bank_of(high_address)}. {_footnote(words, fullest)}"
    )


def _by_bank(words) -> dict[int, list[int]]:
    banks = defaultdict(list)
    for word in words:
        banks[word % BANKS].append(word)
    return banks


def _remark(words, fullest: int) -> str:
    if len(words) == 1:
        return "one word, broadcast to all lanes"
    return "every word in a bank of its own" if fullest == 1 else f"{fullest} words want the same bank"


def _footnote(words, fullest: int) -> str:
    if fullest == 1:
        return "A bank gives one word a clock; here none is asked for more."
    return f"A bank gives one word a clock, so the fullest one (outlined) takes {fullest} clocks."
