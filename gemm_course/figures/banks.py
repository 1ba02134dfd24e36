"""Thirty-two banks: where the words lie that one warp asks of shared memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

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
    words = _words(request)
    drawing = Drawing(f"{code}: {_count(wavefronts)}; {_remark(words)}")
    bottom = _panel(drawing, request.array, words, drawing.top + 22)
    drawing.text(8, bottom + 20, _footnote(words), fill=colours.QUIET)
    return drawing.picture(f"{_in_words(request)} {_footnote(words)}")


def reads_of_a_step(reads: Sequence[tuple[Request, int, str]], title: str) -> Picture:
    """Draw several shared reads of one warp, one below the other: (request, wavefronts, access) each."""
    drawing = Drawing(title)
    bottom, spoken = drawing.top, []
    for request, wavefronts, code in reads:
        words = _words(request)
        heading = f"{code}: {_count(wavefronts)}; {_remark(words)}"
        drawing.text(8, bottom + 16, heading, bold=True, fill=colours.of_array(request.array))
        bottom = _panel(drawing, request.array, words, bottom + 42) + 14
        spoken.append(f"{heading}. {_in_words(request)}")
    drawing.text(
        8, bottom + 12, "A bank gives one word a clock; the fullest ones are outlined.", fill=colours.QUIET
    )
    return drawing.picture(" ".join(spoken))


def _words(request: Request) -> dict[int, list[int]]:
    """The lanes that want each word."""
    words = defaultdict(list)
    for lane, _, address in request.lanes:
        words[address // WORD].append(lane)
    return words


def _count(wavefronts: int) -> str:
    return _some(wavefronts, "wavefront")


def _some(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _panel(drawing: Drawing, array: str, words, top: float) -> float:
    """Draw the 32 banks, a row of words a line, and outline the fullest; return the lower edge."""
    left, cell, hue = 70.0, 15.0, colours.of_array(array)
    low = min(words) // BANKS
    rows = min(_ROWS, max(words) // BANKS - low + 1)
    high = min(16.0, 300 / max(rows, 4))
    for bank in (0, 8, 16, 24, 31):
        drawing.text(left + (bank + 0.5) * cell, top - 6, bank, size=12, anchor="middle", fill=colours.QUIET)
    drawing.text(8, top - 6, "bank", fill=colours.QUIET)
    for row in range(rows):
        for bank in range(BANKS):
            word = (low + row) * BANKS + bank
            fill = hue if word in words else colours.IDLE
            drawing.rect(left + bank * cell, top + row * high, cell - 1, high - 1, fill, title=f"word {word}")
    fullest = _fullest(words)
    for bank in [bank for bank, asked in _by_bank(words).items() if len(asked) == fullest > 1]:
        drawing.rect(
            left + bank * cell - 1, top - 2, cell + 1, rows * high + 3, "none", stroke=colours.WARN, line=2
        )
    return top + rows * high


def _in_words(request: Request) -> str:
    words, array = _words(request), request.array
    (first, start, low), (last, end, high) = request.lanes[0], request.lanes[-1]
    different, banks = _some(len(words), "different word"), _some(len(_by_bank(words)), "bank")
    return (
        f"{len(request.lanes)} lanes ask for {different} in {banks}: lane {first} for {array}{list(start)}"
        f" in bank {bank_of(low)}, lane {last} for {array}{list(end)} in bank {bank_of(high)}."
    )


def _by_bank(words) -> dict[int, list[int]]:
    banks = defaultdict(list)
    for word in words:
        banks[word % BANKS].append(word)
    return banks


def _fullest(words) -> int:
    return max(len(asked) for asked in _by_bank(words).values())


def _remark(words) -> str:
    fullest = _fullest(words)
    if len(words) == 1:
        return "one word, broadcast to all lanes"
    return "every word in a bank of its own" if fullest == 1 else f"{fullest} words want the same bank"


def _footnote(words) -> str:
    fullest = _fullest(words)
    if fullest == 1:
        return "A bank gives one word a clock; here none is asked for more."
    return f"A bank gives one word a clock, so the fullest one (outlined) takes {fullest} clocks."
