"""Checks wavefronts of a fragment's rows in shared memory, without and with padding."""

from functools import cache

import numpy as np
from numba import cuda
from numba.types import float16

from gemm_course.checks.core import Refused, exercise, nothing_yet
from gemm_course.checks.engines.tables import numbers
from lockstep import emulate
from lockstep.intrinsics import ROW_MAJOR, wmma_load_a

# A row of document 004's tiles has 128 FP16 values.
WIDTH = 128
PADS = (0, 8, 16)


@exercise(
    start="in which bank does each of the 8 rows begin? Write down three numbers of wavefronts.",
    hints=(
        "An FP16 value is 2 bytes, a bank gives 4. With a padding of PAD values, rows "
        "begin (128 + PAD) / 2 words apart.",
        "64 words are twice around the 32 banks: without padding all rows begin in bank 0. With a padding of "
        "8 they are 68 words apart: each row begins 4 banks further on.",
        "A row of 16 bytes takes 4 banks. So rows that begin 4 banks apart never meet; rows that begin 8 "
        "banks apart meet after four of them.",
    ),
)
def padding_wavefronts(wavefronts):
    """(…, …, …): wavefronts for 8 rows of 16 bytes, in rows of 128 FP16 values padded by 0, 8 and 16."""
    given, right = _read(wavefronts), tuple(map(wavefronts_of_eight_rows, PADS))
    if given != right:
        message = next((message for message, *answers in SLIPS if given in answers), OTHERWISE)
        raise Refused(message, _where(given, right))
    return (
        f"The emulator counts the same: {right[0]} wavefronts for 8 rows without padding, {right[1]} with 8 "
        f"FP16 values, {right[2]} with 16. Document 004 takes 16; for these loads 8 is best."
    )


def _read(wavefronts) -> tuple:
    if isinstance(wavefronts, (tuple, list)) and any(n is None or n is Ellipsis for n in wavefronts):
        raise nothing_yet()
    return numbers(*(f"PAD = {pad}" for pad in PADS))(wavefronts)


def _where(given: tuple, right: tuple) -> str:
    pad, number = next((pad, mine) for pad, mine, truth in zip(PADS, given, right) if mine != truth)
    words = (WIDTH + pad) // 2
    return (
        f"With a padding of {pad} FP16 values rows are {4 * words} bytes = {words} words apart, so row 1 "
        f"begins in bank {words % 32} and row 4 in bank {words * 4 % 32}. Your number: {number}."
    )


@cache
def wavefronts_of_eight_rows(pad: int) -> int:
    """Return the emulator's count for a fragment of 16 by 16 FP16 values, four times 8 rows of 16 bytes."""
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


OTHERWISE = "Not all three are right. In which bank does each of the 8 rows begin?"
SLIPS = (
    (
        "More padding is not better. What counts is where the rows begin: with 16 FP16 values each row "
        "begins 8 banks further on, and after four of them comes bank 0 again.",
        (8, 2, 1),
    ),
    (
        "It does not halve each time. With 8 FP16 values, 16 bytes, every row begins 4 banks further on, "
        "right behind the one before: no two meet.",
        (8, 4, 2),
    ),
    (
        "That takes the padding for bytes: 8 FP16 values are 16 bytes, 4 banks.",
        (8, 4, 4),
        (8, 8, 4),
    ),
    (
        "A padding of 16 FP16 values moves each row on by 8 banks, not by 4: there are only 32 / 8 = 4 "
        "places to begin in, and 8 rows.",
        (8, 1, 1),
    ),
    (
        "Rows of 128 FP16 values are 256 bytes long, twice around all 32 banks: without padding each row "
        "begins in bank 0.",
        (1, 1, 1),
    ),
    (
        "That counts 16 rows. A fragment has 16, but they are fetched 8 at a time: 8 rows of 16 bytes fill "
        "the 32 banks once.",
        (16, 1, 2),
        (16, 2, 4),
    ),
    (
        "That is the whole fragment: four times 8 rows of 16 bytes. The question is about 8 rows.",
        (32, 4, 8),
    ),
    (
        "The question is how many wavefronts, not how many too many: without a conflict it is one.",
        (8, 0, 1),
        (7, 0, 1),
    ),
)
