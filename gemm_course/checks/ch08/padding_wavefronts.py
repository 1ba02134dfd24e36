"""Exercise 08.2: how often the rows of a fragment want the same banks, without and with skew."""

from functools import cache

import numpy as np
from numba import cuda
from numba.types import float16

from gemm_course.checks.core import Refused, nothing_yet
from gemm_course.emulator import emulate
from gemm_course.intrinsics import ROW_MAJOR, wmma_load_a

WIDTH = 128  # halves in a row of document 004's tiles
PADS = (0, 8, 16)


def prove_padding_wavefronts(wavefronts) -> str:
    """What was proved of the learner's three numbers; raises Refused with the first thing wrong."""
    given = _three_numbers(wavefronts)
    right = tuple(wavefronts_of_eight_rows(pad) for pad in PADS)
    if given != right:
        place = next(i for i, (mine, truth) in enumerate(zip(given, right)) if mine != truth)
        length = 2 * (WIDTH + PADS[place])
        raise Refused(
            SLIPS.get(given, "Not all three are right. In which bank does each of the 8 rows begin?"),
            f"With a skew of {PADS[place]} halves rows are {length} bytes = {length // 4} words apart, so "
            f"row 1 begins in bank {length // 4 % 32} and row 4 in bank {length // 4 * 4 % 32}. You say "
            f"{given[place]}.",
        )
    shown = ", ".join(f"{pad} halves: {count}" for pad, count in zip(PADS, right))
    return (
        f"The emulator counts the same. Wavefronts for 8 rows with a skew of {shown}. 16 halves are what "
        "document 004 takes; 8 are better."
    )


def _three_numbers(given) -> tuple:
    if not isinstance(given, (tuple, list, np.ndarray)) or len(given) != 3:
        raise Refused("Three numbers are wanted, for a skew of 0, 8 and 16 halves: `(..., ..., ...)`.")
    if any(number is None or number is Ellipsis for number in given):
        raise nothing_yet()
    if not all(isinstance(n, (int, float, np.number)) and not isinstance(n, bool) for n in given):
        raise Refused(f"Three whole numbers are wanted, not `{given!r}`.")
    return tuple(float(number) for number in given)


@cache
def wavefronts_of_eight_rows(pad: int) -> int:
    """Counted by the emulator for a fragment of 16 by 16 halves, four times 8 rows of 16 bytes."""
    length = WIDTH + pad

    @cuda.jit
    def load(out):
        tile = cuda.shared.array((16, length), float16, 32)
        fragment = cuda.local.array(16, float16)
        for e in range(8):
            tile[cuda.threadIdx.x // 2, cuda.threadIdx.x % 2 * 8 + e] = float16(0)
        cuda.syncwarp()
        wmma_load_a(fragment, tile, (0, 0), ROW_MAJOR)
        out[cuda.threadIdx.x] = fragment[0]

    report = emulate(load, 1, 32, np.zeros(32, np.float16))
    return report.total("wavefronts", space="shared", op="load") // 4


SLIPS = {
    (8, 2, 1): "More skew is not better. What counts is where the rows begin: with 16 halves each row "
    "begins 8 banks further on, and after four of them comes bank 0 again.",
    (8, 4, 2): "It does not halve each time. With 8 halves, 16 bytes, every row begins 4 banks further on, "
    "right behind the one before: no two meet.",
    (8, 4, 4): "Those are bytes for halves: a skew of 8 halves is 16 bytes, 4 banks.",
    (8, 8, 4): "Those are bytes for halves: a skew of 8 halves is 16 bytes, 4 banks.",
    (
        8,
        1,
        1,
    ): "A skew of 16 halves moves each row on by 8 banks, not by 4: there are only 32 / 8 = 4 places to "
    "begin in, and 8 rows.",
    (
        1,
        1,
        1,
    ): "Rows of 128 halves are 256 bytes long, twice around all 32 banks: without skew each row begins "
    "in bank 0.",
    (
        16,
        1,
        2,
    ): "A fragment has 16 rows, but they are fetched 8 at a time: 8 rows of 16 bytes fill the 32 banks once.",
    (
        16,
        2,
        4,
    ): "That counts 16 rows. They are fetched 8 at a time: 8 rows of 16 bytes fill the 32 banks once.",
    (32, 4, 8): "That is the whole fragment: four times 8 rows of 16 bytes. Eight rows are asked for.",
    (8, 0, 1): "The question is how many wavefronts, not how many too many: without a conflict it is one.",
    (7, 0, 1): "The question is how many wavefronts, not how many too many: without a conflict it is one.",
}
