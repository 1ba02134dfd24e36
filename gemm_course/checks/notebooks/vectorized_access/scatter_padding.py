"""Checks what padding does to the stores into transposed As, and which padding may be used."""

import numpy as np

from gemm_course.checks.core import Refused, exercise, nothing_yet, whole_number
from lockstep import wavefronts

PADDINGS = (0, 2, 4)
BM, BK = 128, 16


@exercise(
    start="write down in which banks the lanes 0 to 3 store their `v[0]`, and then lanes 4 to 7.",
    hints=(
        "With BK = 16 four lanes share a row of A. Their elements go into rows 0, 4, 8 and 12 of As, same "
        "column. How far apart are these, in words, modulo 32?",
        "A row of As is 128 + PAD words. Four rows further: 4 · (128 + PAD), modulo 32 that is 4 · PAD.",
        "The eight rows of A that a warp holds lie side by side: 8 neighbouring banks. Shifted by 4 · PAD "
        "for each of the four lanes, how often do they fall on each other?",
        "And where As is read by fours, every row of it has to begin at a multiple of 4 words.",
    ),
)
def scatter_padding(wavefronts=None, take=None):
    """Wavefronts of a store into As (BM 128, BK 16) for paddings 0, 2 and 4, and the padding to take."""
    for pad, count in zip(PADDINGS, _counts(wavefronts)):
        _check_count(pad, count)
    if take is None or take is Ellipsis:
        raise Refused("The counts are right. And which padding do you `take`: 0, 2 or 4?")
    taken = whole_number(take, "the padding you take")
    if taken != 4:
        raise Refused(NOT_TO_BE_TAKEN.get(taken, f"Padding {taken} was not asked about. Choose 0, 2 or 4."))
    return (
        "0, 2 and 4 floats of padding make 4, 1 and 2 wavefronts, as the emulator counts. 4 is the best "
        "whose rows begin at multiples of 16 bytes."
    )


def wavefronts_of(pad: int) -> int:
    """Return the wavefronts of warp 0's store of one component into As, BK rows of BM + pad words."""
    row, column = divmod(np.arange(32), BK // 4)
    return wavefronts(4 * column * (BM + pad) + row, 32, "store")


# ---- what goes wrong ---------------------------------------------------------------------------------------

NOT_TO_BE_TAKEN = {
    2: "2 has the fewest wavefronts, but As must be read by fours: row 1 of As would begin "
    f"{4 * (BM + 2)} bytes from its start, and that is no multiple of 16. The GPU stops with 'misaligned "
    "address'.",
    0: "Without padding each store takes 4 wavefronts. One of the others is legal and better.",
}

# The keys are (padding, count), and the values tell what is wrong with the count.
SLIPS = {
    (0, 1): "Four lanes carry one row of A; do their elements go to four different banks?",
    (0, 32): "32 would be all lanes in one bank. The 8 rows of A go to 8 neighbouring banks.",
    (0, 8): "8 would be right if eight lanes shared a row of A, as with BK = 32. Here four do.",
    (2, 2): "2 words per row, 4 rows further it is 8 banks. A warp has 8 rows of A, 8 neighbouring banks: do "
    "these groups of 8 meet?",
    (2, 4): "The padding moves every row of As on by 2 banks, so that 4 rows further it is 8.",
    (4, 1): "With 4 words per row, 4 rows further it is 16 banks. Lanes 0 and 2 are 32 banks apart: the same "
    "bank again.",
    (4, 4): "With 4 words per row, 4 rows further it is 16 banks. Lanes 0 and 1 no longer meet.",
}


def _check_count(pad: int, count: int) -> None:
    if count == wavefronts_of(pad):
        return
    words = [4 * row * (BM + pad) for row in (1, 2, 3)]
    banks = ", ".join(str(word % 32) for word in words)
    raise Refused(
        f"{SLIPS.get((pad, count), 'Count the different words that lie in the same bank.')} Lanes 0, 1, "
        f"2 and 3 store in rows 0, 4, 8 and 12 of As, {BM + pad} words long: words 0, {words[0]}, "
        f"{words[1]} and {words[2]}, in banks 0, {banks}.",
        f"Padding {pad}: your number is {count}.",
    )


def _counts(given) -> list[int]:
    """Return the three numbers, or what is wrong with their form."""
    if _is_blank(given):
        raise nothing_yet()
    if not isinstance(given, (list, tuple, np.ndarray)):
        raise Refused(f"The answer must be three numbers, `[for 0, for 2, for 4]`; this is `{given!r}`.")
    counts = list(given)
    if all(map(_is_blank, counts)):
        raise nothing_yet()
    if len(counts) != len(PADDINGS):
        raise Refused(f"There are three paddings, 0, 2 and 4; your list has {len(counts)} numbers.")
    missing = [pad for pad, count in zip(PADDINGS, counts) if _is_blank(count)]
    if missing:
        raise Refused(f"The number for padding {missing[0]} is still missing.")
    return [whole_number(count, f"the count for padding {pad}") for pad, count in zip(PADDINGS, counts)]


def _is_blank(value) -> bool:
    return value is None or value is Ellipsis
