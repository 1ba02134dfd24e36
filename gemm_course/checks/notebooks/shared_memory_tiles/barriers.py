"""Checks ``barriers``: how many barriers document 002's kernel has, and how many are enough."""

import numpy as np

from gemm_course.checks.engines.tables import Part, Slip, numbers, table_exercise
from gemm_course.checks.kits import document_002
from gemm_course.kernels import LADDER
from lockstep import emulate

# The cases are (n, T).
CASES = ((8, 2), (8, 4), (12, 3), (16, 4))

SWAPPED = Slip(
    "The right two numbers, swapped: first the document's, then what is enough.",
    lambda n, T: (2 * (n // T), n // T * (T + 1)),
)
DOCUMENT_SLIPS = (
    Slip(
        "The document's kernel: the barrier before the inner loop is forgotten. There is one per tile, "
        "besides the T inside.",
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
        "What is enough: that is one per tile. Without the second the fast threads fetch the next tile while "
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
        "What is enough: that is one per tile and one more. Every tile needs both of its barriers.",
        lambda n, T: n // T + 1,
    ),
    Slip(
        "What is enough: that leaves out the very last one. It could indeed go, but the loop would have to "
        "know its last iteration; count two in every iteration.",
        lambda n, T: 2 * (n // T) - 1,
    ),
)


def _passed(right) -> str:
    shown = "; ".join(f"n = {n}, T = {T}: {' and '.join(map(str, right(n, T)))}" for n, T in CASES)
    return f"Counted by the emulator in both kernels: {shown}."


@table_exercise(
    start="count the barriers of one tile first, then multiply by the number of tiles.",
    hints=(
        "A block executes a barrier once, however many threads wait there. How often does it reach each of "
        "the two?",
        "The loop over `i` runs `n // T` iterations. In each of them there is one barrier before the inner "
        "loop, and one in each of its T iterations.",
        "Two per tile are enough: one when the tiles are complete, one when nobody needs them any more.",
    ),
    cases=CASES,
    slips=(SWAPPED,),
    parts=(Part("document", 0, DOCUMENT_SLIPS), Part("enough", 1, ENOUGH_SLIPS)),
    read=numbers("document", "enough"),
    passed=_passed,
)
def barriers(n, T):
    """barriers(n, T) -> (those of document 002's kernel, those that are enough), for one block."""
    fewer = LADDER["penny_xu_tile"].kernel({"BM": T, "BN": T, "BK": T})
    return tuple(_of_a_block(kernel, n, T) for kernel in (document_002(T), fewer))


def _of_a_block(kernel, n: int, T: int) -> int:
    A, B, C = (np.ones((n, n), np.float32) for _ in range(3))
    blocks = n // T
    problem = (n, n, n, np.float32(1), A, B, np.float32(0), C)
    return emulate(kernel, (blocks, blocks), (T, T), *problem).barriers // blocks**2
