"""Exercise 03.4: the barriers of document 002's kernel, and those that are enough."""

from functools import cache

import numpy as np

from gemm_course.checks.core import Refused, call, function_of, nothing_yet
from gemm_course.checks.engines.tables import Slip, hold_to_table
from gemm_course.checks.kits import document_002
from gemm_course.emulator import emulate
from gemm_course.kernels import LADDER

CASES = ((8, 2), (8, 4), (12, 3), (16, 4))  # n and T


def prove_barriers(given) -> str:
    """What was proved of the learner's function; raises Refused with the first thing wrong."""
    function = function_of(given, ("n", "T"))
    truths = [barriers_of_a_block(*case) for case in CASES]
    if [_pair(call(function, *case))[::-1] for case in CASES] == truths:
        raise Refused(
            "The right two numbers, the other way round: first the document's, then what is enough."
        )
    for part, name, slips in ((0, "document", DOCUMENT_SLIPS), (1, "enough", ENOUGH_SLIPS)):
        hold_to_table(
            function,
            CASES,
            lambda n, T, part=part: barriers_of_a_block(n, T)[part],
            slips,
            read=lambda answer, part=part: _pair(answer)[part],
            part=name,
        )
    shown = "; ".join(f"n = {n}, T = {T}: {a} and {b}" for (n, T), (a, b) in zip(CASES, truths))
    return f"Counted by the emulator in both kernels: {shown}."


def _pair(answer) -> tuple:
    if not isinstance(answer, (tuple, list)) or len(answer) != 2:
        raise Refused(f"Return two numbers, `(document, enough)`, not `{answer!r}`.")
    if all(part is None or part is Ellipsis for part in answer):
        raise nothing_yet()
    if not all(isinstance(part, (int, float, np.number)) for part in answer):
        raise Refused(f"Both parts of the answer are to be numbers; this is `{answer!r}`.")
    return tuple(answer)


@cache
def barriers_of_a_block(n: int, T: int) -> tuple[int, int]:
    """Counted by the emulator: document 002's kernel, and the same with two barriers a tile."""
    stage = LADDER["penny_xu_tile"]
    kernels = document_002(T), stage.kernel({"BM": T, "BN": T, "BK": T})
    blocks = n // T
    return tuple(_barriers_executed(kernel, n, T) // blocks**2 for kernel in kernels)


def _barriers_executed(kernel, n: int, T: int) -> int:
    A, B, C = (np.ones((n, n), np.float32) for _ in range(3))
    one, zero = np.float32(1), np.float32(0)
    return emulate(kernel, (n // T, n // T), (T, T), n, n, n, one, A, B, zero, C).barriers


DOCUMENT_SLIPS = (
    Slip(
        "The document's kernel: the barrier before the inner loop is forgotten. It comes once a tile, beside "
        "the T inside.",
        lambda n, T: n // T * T,
    ),
    Slip(
        "The document's kernel: that is two outside the inner loop and T inside; there is only one outside.",
        lambda n, T: n // T * (T + 2),
    ),
    Slip(
        "The document's kernel: that is summed over all threads of the block. They all wait at the same "
        "barrier: for the block it is one.",
        lambda n, T: T * T * (n // T) * (T + 1),
    ),
    Slip(
        "The document's kernel: that is the sum over all blocks of the grid. One block is asked for.",
        lambda n, T: (n // T) ** 3 * (T + 1),
    ),
    Slip(
        "The document's kernel: that is right for one tile. How many tiles are there along k?",
        lambda n, T: T + 1,
    ),
    Slip(
        "The document's kernel: that counts the two lines as they stand in the source. The second is inside "
        "the loop over `p`.",
        lambda n, T: 2 * (n // T),
    ),
    Slip(
        "The document's kernel: that takes both barriers to be inside the inner loop. Only the second is.",
        lambda n, T: 2 * (n // T) * T,
    ),
)
ENOUGH_SLIPS = (
    Slip(
        "What is enough: that is one a tile. Without the second the fast threads fetch the next tile while "
        "slow ones still read this one.",
        lambda n, T: n // T,
    ),
    Slip(
        "What is enough: with none at all, a thread reads elements of the tile that others have not stored "
        "yet.",
        lambda n, T: 0,
    ),
    Slip("What is enough: that is right for one tile. How many tiles are there along k?", lambda n, T: 2),
    Slip(
        "What is enough: that is one a tile and one more. Every tile needs both of its barriers.",
        lambda n, T: n // T + 1,
    ),
    Slip(
        "What is enough: that leaves out the very last one. It could indeed go, but the loop would have to "
        "know its last turn; count two in every turn.",
        lambda n, T: 2 * (n // T) - 1,
    ),
)
