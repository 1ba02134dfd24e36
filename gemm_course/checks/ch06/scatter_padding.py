"""Exercise 06.3: what padding does to the stores into transposed As, and which of it may be used."""

import numpy as np

from gemm_course.checks.core import Refused, nothing_yet, whole_number
from gemm_course.emulator import wavefronts

PADDINGS = (0, 2, 4)
BM, BK = 128, 16


def prove_scatter_padding(given, take) -> str:
    """What was proved of the three counts and the choice; raises Refused with the first thing wrong."""
    counts, taken = _counts(given), take
    for pad, count in zip(PADDINGS, counts):
        _check_count(pad, count)
    if taken is None or taken is Ellipsis:
        raise Refused("The counts are right. And which padding do you `take`: 0, 2 or 4?")
    taken = whole_number(taken, "the padding you take")
    if taken == 4:
        return (
            "0, 2 and 4 floats of padding make 4, 1 and 2 wavefronts, as the emulator counts. 4 is the best "
            "whose rows begin at multiples of 16 bytes."
        )
    if taken == 2:
        raise Refused(
            "2 has the fewest wavefronts, but As is to be read 128 bits at a time: row 1 of As would begin "
            f"{4 * (BM + 2)} bytes from its start, and that is no multiple of 16. The GPU stops with "
            "'misaligned address'."
        )
    if taken == 0:
        raise Refused("Without padding each store takes 4 wavefronts. One of the others is legal and better.")
    raise Refused(f"Padding {taken} was not asked about. Choose among 0, 2 and 4.")


def _counts(given) -> list[int]:
    if given is None or given is Ellipsis or isinstance(given, (str, bytes, dict, int, float)):
        if given is None or given is Ellipsis:
            raise nothing_yet()
        raise Refused(f"Three numbers are wanted, `[for 0, for 2, for 4]`; this is `{given!r}`.")
    try:
        counts = list(given)
    except TypeError:
        raise Refused("Three numbers are wanted, in a list: `[for 0, for 2, for 4]`.") from None
    if not counts or all(count is None or count is Ellipsis for count in counts):
        raise nothing_yet()
    if len(counts) != len(PADDINGS):
        raise Refused(f"There are three paddings, 0, 2 and 4; your list has {len(counts)} numbers.")
    missing = [pad for pad, count in zip(PADDINGS, counts) if count is None or count is Ellipsis]
    if missing:
        raise Refused(f"The number for padding {missing[0]} is still missing.")
    return [whole_number(count, f"the count for padding {pad}") for pad, count in zip(PADDINGS, counts)]


def _check_count(pad: int, count: int) -> None:
    right = wavefronts_of(pad)
    if count == right:
        return
    lanes = f"Lanes 0 to 3 store in rows 0, 4, 8 and 12 of As, {BM + pad} words long: words 0, {_words(pad)}."
    known = {
        (0, 1): "Four lanes carry one row of A; do their elements go to four different banks? " + lanes,
        (0, 16): "16 would be one wavefront for each row of As. A warp's request reaches only four of them, "
        "one component of each four. " + lanes,
        (0, 8): "8 rows of A are on the way at once, but they lie side by side in As, in 8 banks. Look at "
        "the lanes that share one row of A. " + lanes,
        (0, 32): "32 would be all lanes in one bank. The 8 rows of A go to 8 neighbouring banks. " + lanes,
        (2, 2): "2 words of padding a row, but the lanes are 4 rows apart: 8 banks, not 2. " + lanes,
        (2, 4): "The padding moves every row of As on by 2 banks, so that 4 rows further it is 8. " + lanes,
        (4, 1): "With 4 words a row, 4 rows further it is 16 banks. Lanes 0 and 2 are 32 banks apart: the "
        "same bank again. " + lanes,
        (4, 4): "The padding moves every row of As on by 4 banks, so that 4 rows further it is 16. " + lanes,
    }
    raise Refused(
        known.get((pad, count), "Count the different words that want the same bank. " + lanes),
        f"Padding {pad}: your number is {count}.",
    )


def _words(pad: int) -> str:
    words = [4 * row * (BM + pad) for row in (1, 2, 3)]
    return f"{words[0]}, {words[1]} and {words[2]}, in banks 0, " + ", ".join(str(w % 32) for w in words)


def wavefronts_of(pad: int) -> int:
    """Wavefronts of the store of one component by warp 0 into As, BK rows of BM + pad words."""
    row, column = divmod(np.arange(32), BK // 4)
    return wavefronts(4 * column * (BM + pad) + row, 32, "store")
