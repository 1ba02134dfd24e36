"""Checks the wavefronts of a warp's reads of As and Bs, for several layouts of its lanes."""

from collections import defaultdict
from collections.abc import Callable
from functools import cache

import numpy as np

from gemm_course.checks.core import Refused, exercise, nothing_yet
from gemm_course.model.requests import wavefronts_of
from gemm_course.model.warp_reads import request

# A layout has the rows and columns of lanes, and how many of a lane's 8 rows, and columns, are neighbours.
LAYOUTS = {
    "8 × 4": (8, 4, 8),
    "4 × 8": (4, 8, 8),
    "4 × 8, runs of four": (4, 8, 4),
    "16 × 2, runs of four": (16, 2, 4),
}
# A lane reads 32 or 128 bits at a time.
READS = (32, 128)
BANKS = 32
Pairs = tuple[tuple[int, int], tuple[int, int]]


@exercise(
    start="take `8 × 4`, one float per lane. Which 8 words of As do the lanes read? In which banks are they?",
    hints=(
        "The bank of a word is its number modulo 32. Lanes that read the same word share it. Count, in "
        "the fullest bank, the different words.",
        "8 × 4 lanes, 8 rows each, in one piece: the words 0, 8, ..., 56 of As. 0 and 32 are in the same "
        "bank.",
        "Four floats per lane: turns of 8 lanes, 0 to 7 first. Two turns join where each lane reads what the "
        "lane beside it reads (0 with 1), or each what the lane two further reads (0 with 2). For A that is "
        "so here; for B only with 16 × 2 lanes.",
        "So A takes 2 with four floats in every layout. B takes one or two wavefronts for each of its 4 "
        "turns, or 2 where they are joined; `see.warp_reads()` shows which.",
    ),
)
def warp_wavefronts(table):
    """A table of wavefronts: layout -> ((A, B) for one float per lane, (A, B) for four)."""
    given = {layout: _pairs(table, layout) for layout in _layouts_of(table)}
    if all(_is_gap(_at(given, place)) for place in _places()):
        raise nothing_yet()
    filled = [place for place in _places() if not _is_gap(_at(given, place))]
    wrong = next(
        (place for place in filled if _at(given, place) != _at({place[0]: counted(place[0])}, place)), None
    )
    if wrong is None and len(filled) < len(_places()):
        raise _unfinished(next(place for place in _places() if place not in filled))
    if wrong is None:
        one, four = counted("8 × 4"), counted("4 × 8")
        return (
            f"The emulator counts the same: (A, B) takes {one[0]} wavefronts with 8 × 4 lanes, {four[0]} "
            f"with 4 × 8; with four floats per lane {one[1]} and {four[1]}. No read takes more in runs of "
            "four than with the same lanes' elements in one piece."
        )
    where = _where(given, wrong)
    for message, slip in SLIPS:
        if given == {layout: slip(layout) for layout in LAYOUTS}:
            raise Refused(message, where)
    raise Refused(_why(*wrong), where)


@cache
def counted(layout: str) -> Pairs:
    """Return ((A, B) for one float per lane, (A, B) for four), as the emulator counts them."""
    return _of_requests(layout, wavefronts_of)


def _of_requests(layout: str, count: Callable) -> Pairs:
    return _of_layout(LAYOUTS[layout], count)


def _of_layout(warp: tuple[int, int, int], count: Callable) -> Pairs:
    return tuple(tuple(count(request(*warp, bits, array)) for array in ("As", "Bs")) for bits in READS)


# ---- the table ---------------------------------------------------------------------------------------------


def _layouts_of(table) -> tuple[str, ...]:
    if not isinstance(table, dict):
        raise Refused("Pass the whole table, the dict with its four rows.")
    missing = [layout for layout in LAYOUTS if layout not in table]
    if missing:
        raise Refused(f"The table has no row called `{missing[0]}`.")
    return tuple(LAYOUTS)


def _pairs(table: dict, layout: str) -> Pairs:
    row = table[layout].tolist() if isinstance(table[layout], np.ndarray) else table[layout]
    flat = [number for pair in row for number in pair] if _is_pair(row) and all(map(_is_pair, row)) else None
    if flat is None:
        raise Refused(f"A row is two pairs, `((A, B), (A, B))`; `{layout}` is `{row!r}`.")
    if not all(_is_gap(number) or isinstance(number, (int, float, np.number)) for number in flat):
        raise Refused(f"Wavefronts are numbers; `{layout}` is `{row!r}`.")
    return (flat[0], flat[1]), (flat[2], flat[3])


def _is_gap(number) -> bool:
    return number is None or number is Ellipsis


def _unfinished(place) -> Refused:
    layout, read, array = place
    return Refused(
        f"Not yet: what is filled in is right. Next comes `{layout}`, array {'AB'[array]}, "
        f"{('one float', 'four floats')[read]} per lane."
    )


def _is_pair(value) -> bool:
    return isinstance(value, (tuple, list, np.ndarray)) and len(value) == 2


def _places():
    """Return (layout, which read, which array) of all numbers, in reading order."""
    return [(layout, read, array) for layout in LAYOUTS for read in (0, 1) for array in (0, 1)]


def _at(table: dict, place) -> int:
    layout, read, array = place
    return table[layout][read][array]


def _where(given: dict, place) -> str:
    layout, read, array = place
    width = ("one float", "four floats")[read]
    return f"First wrong: `{layout}`, {'AB'[array]}, {width} per lane; your number is {_at(given, place)}."


def _why(layout: str, read: int, array: int) -> str:
    """Return what the lanes read there, in words, without the answer."""
    rows, columns, run = LAYOUTS[layout]
    different = rows if array == 0 else columns
    words = (
        f"{different} different {'rows' if array == 0 else 'columns'} are read, {run} words apart; the "
        "other lanes read one of the same. "
    )
    if read == 0:
        return (
            words + "Which banks are these words in, and which bank is asked for the most *different* words?"
        )
    if array == 1 and columns > 2:
        words += f"Lanes that read the same words are {columns} apart. "
    return words + (
        "With four floats per lane a warp is served in turns of 8 neighbouring lanes, or of 16, if each lane "
        "reads what the lane beside it reads, or each what the lane two further reads. Count each turn by "
        "itself, and add up."
    )


# ---- slips -------------------------------------------------------------------------------------------------


def _words(asked, lanes=range(32)):
    """Return bank -> the words asked for there, once for every lane that asks."""
    found = defaultdict(list)
    for lane, _, address in asked.lanes:
        for word in range(address // 4, address // 4 + asked.bits // 32):
            if lane in lanes:
                found[word % BANKS].append(word)
    return found


def _lanes_per_bank(asked) -> int:
    """Return the answer of someone who forgets broadcasts, so that every lane that asks a bank counts."""
    return max(len(words) for words in _words(asked).values())


def _never_merged(asked) -> int:
    """Return the answer of someone who keeps turns of 8 lanes even where neighbours read the same."""
    size = 32 * 32 // asked.bits
    turns = (_words(asked, range(first, first + size)) for first in range(0, 32, size))
    return sum(max(len(set(words)) for words in turn.values()) for turn in turns)


def _different_words(asked) -> int:
    return len({word for words in _words(asked).values() for word in words})


def _layouts_alike(layout: str) -> Pairs:
    return counted("8 × 4") if LAYOUTS[layout][2] == 8 else counted(layout)


def _merged_side_by_side(asked) -> int:
    """Return the answer of someone who joins turns by lanes 2i and 2i + 1 only, not by those of 0 and 2."""
    word = {lane: address for lane, _, address in asked.lanes}
    joined = all(word[lane] == word[lane ^ 1] for lane in word)
    return wavefronts_of(asked) if joined or asked.bits == 32 else _never_merged(asked)


def _without_runs(layout: str) -> Pairs:
    rows, columns, _ = LAYOUTS[layout]
    return _of_layout((rows, columns, 8), wavefronts_of)


SLIPS = (
    (
        "That counts every lane that asks a bank. Lanes that read the *same* word get it together, a "
        "broadcast: only different words of one bank wait for each other.",
        lambda layout: _of_requests(layout, _lanes_per_bank),
    ),
    (
        "That counts different words. Words in different banks come together in one wavefront.",
        lambda layout: _of_requests(layout, _different_words),
    ),
    (
        "The two layouts are not alike: with 4 × 8 lanes it is B whose 8 columns are read, 8 words "
        "apart, and A has only 4 rows.",
        _layouts_alike,
    ),
    (
        "Read four at a time, the warp is not served at once: 32 lanes may read 128 words, and a "
        "wavefront has 32. It is served in turns of 8 lanes, or of 16 where each lane reads what its "
        "neighbour reads, and each turn takes wavefronts of its own.",
        lambda layout: (counted(layout)[0], counted(layout)[0]),
    ),
    (
        "Four floats per lane: two turns of 8 lanes join where every lane reads what the lane beside it "
        "reads. That is so for A here: neighbours are in the same row.",
        lambda layout: _of_requests(layout, _never_merged),
    ),
    (
        "Four floats per lane: turns also join where every lane reads what the lane two further reads, 0 "
        "with 2 and 1 with 3. With 16 × 2 lanes that is so for B.",
        lambda layout: _of_requests(layout, _merged_side_by_side),
    ),
    (
        "A and B are swapped: A's rows go with the rows of lanes, B's columns with the columns.",
        lambda layout: tuple(pair[::-1] for pair in counted(layout)),
    ),
    (
        "The two pairs of each row are swapped: first `(A, B)` for one float per lane, then for four.",
        lambda layout: counted(layout)[::-1],
    ),
    (
        "In runs of four nothing changes in this table. But then the words read are 4 apart and not 8, in "
        "other banks.",
        _without_runs,
    ),
)
