"""Thirty-two banks: which of them hold the words that one warp reads from shared memory."""

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
    """Return the bank of the word at ``address``, counted in bytes from a word in bank 0."""
    return address // WORD % BANKS


def thirty_two_banks(request: Request, wavefronts: int, code: str) -> Picture:
    """Draw the words of one shared read in their banks.

    ``wavefronts`` is the emulator's count, ``code`` the access as the kernel writes it.
    """
    words = _words(request)
    drawing = Drawing(f"{code}: {_count(wavefronts)}; {_remark(words)}")
    bottom = _panel(drawing, request.array, words, drawing.top + 22)
    drawing.text(8, bottom + 20, _footnote(words), fill=colours.QUIET)
    return drawing.picture(f"{_in_words(request)} {_footnote(words)}")


def reads_of_a_step(reads: Sequence[tuple[Request, int, str]], title: str) -> Picture:
    """Draw several shared reads of one warp, one below the other, each as (request, wavefronts, access)."""
    drawing = Drawing(title)
    bottom, spoken = drawing.top, []
    for request, wavefronts, code in reads:
        words = _words(request)
        heading = f"{code}: {_count(wavefronts)}; {_remark(words)}"
        drawing.text(8, bottom + 16, heading, bold=True, fill=colours.of_array(request.array))
        bottom = _panel(drawing, request.array, words, bottom + 42) + 14
        spoken.append(f"{heading}. {_in_words(request)}")
    drawing.text(
        8, bottom + 12, "A bank gives one word per clock; the busiest banks are outlined.", fill=colours.QUIET
    )
    return drawing.picture(" ".join(spoken))


def _words(request: Request) -> dict[int, list[int]]:
    """The lanes that read each word."""
    words = defaultdict(list)
    for lane, _, address in request.lanes:
        words[address // WORD].append(lane)
    return words


def _count(wavefronts: int) -> str:
    return _plural(wavefronts, "wavefront")


def _plural(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def _panel(drawing: Drawing, array: str, words, top: float) -> float:
    """Draw the 32 banks, one line per row of words, and outline the busiest; return the lower edge."""
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
    most = _most_words(words)
    for bank in [bank for bank, asked in _by_bank(words).items() if len(asked) == most > 1]:
        drawing.rect(
            left + bank * cell - 1, top - 2, cell + 1, rows * high + 3, "none", stroke=colours.WARN, line=2
        )
    return top + rows * high


def _in_words(request: Request) -> str:
    words, array = _words(request), request.array
    (first, start, low), (last, end, high) = request.lanes[0], request.lanes[-1]
    different, banks = _plural(len(words), "different word"), _plural(len(_by_bank(words)), "bank")
    return (
        f"{len(request.lanes)} lanes read {different} in {banks}: lane {first} reads {array}{list(start)}"
        f" in bank {bank_of(low)}, lane {last} reads {array}{list(end)} in bank {bank_of(high)}."
    )


def _by_bank(words) -> dict[int, list[int]]:
    banks = defaultdict(list)
    for word in words:
        banks[word % BANKS].append(word)
    return banks


def _most_words(words) -> int:
    return max(len(asked) for asked in _by_bank(words).values())


def _remark(words) -> str:
    most = _most_words(words)
    if len(words) == 1:
        return "one word, broadcast to all lanes"
    return "each word in its own bank" if most == 1 else f"{most} words in the same bank"


def _footnote(words) -> str:
    most = _most_words(words)
    if most == 1:
        return "A bank gives one word per clock; no bank is asked for more here."
    return f"A bank gives one word per clock; the busiest (outlined) takes {most} clocks."
