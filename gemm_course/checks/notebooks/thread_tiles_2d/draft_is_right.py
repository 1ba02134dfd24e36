"""Checks ``draft_is_right``: for which tiles the draft of Kernel 5 is right."""

import numpy as np

from gemm_course.checks.core import Refused
from gemm_course.checks.engines.tables import Slip, table_exercise
from gemm_course.kernels.variants.kernel5_draft import STAGE
from lockstep import emulate

NAMES = ("BM", "BN", "BK", "TM", "TN")
CASES = (
    (128, 128, 16, 8, 8), (128, 128, 8, 8, 8), (128, 128, 32, 8, 8), (16, 16, 4, 4, 4), (16, 16, 8, 4, 4),
    (16, 16, 2, 4, 4), (16, 16, 6, 4, 4), (16, 32, 4, 4, 4), (16, 32, 8, 4, 4), (16, 32, 16, 4, 4),
    (32, 16, 4, 4, 4),
    (32, 16, 8, 4, 4), (16, 32, 4, 4, 8), (32, 16, 8, 4, 2), (16, 16, 4, 2, 4), (16, 16, 16, 4, 4),
    (32, 32, 4, 4, 4), (8, 8, 8, 1, 1), (16, 24, 12, 4, 2), (16, 64, 8, 4, 4), (64, 16, 8, 4, 4),
    (32, 16, 4, 4, 8),
)  # fmt: skip

SLIPS = (
    Slip(
        "Never, you say. But there is a BK for which one slice per thread is just enough, in both tiles.",
        lambda BM, BN, BK, TM, TN: False,
    ),
    Slip("Always, you say. The picture shows tiles with holes.", lambda BM, BN, BK, TM, TN: True),
    Slip(
        "A smaller BK does cover the tiles. But then there are more threads in a row than columns of As, and "
        "the surplus ones write beside the tile, into the next row.",
        lambda BM, BN, BK, TM, TN: BK <= BN // TN and BK <= BM // TM,
    ),
    Slip(
        "A larger BK leaves holes: each thread brings one column of As and one row of Bs, and there are more "
        "of them than threads.",
        lambda BM, BN, BK, TM, TN: BK >= BN // TN and BK >= BM // TM,
    ),
    Slip(
        "A multiple of the threads is covered only by a loop that comes back for the rest, and the draft "
        "has none.",
        lambda BM, BN, BK, TM, TN: BK % (BN // TN) == 0 and BK % (BM // TM) == 0,
    ),
    Slip(
        "A BK that divides BM and BN is nothing special: what counts is how many threads there are along x "
        "and along y.",
        lambda BM, BN, BK, TM, TN: BM % BK == 0 and BN % BK == 0,
    ),
    Slip(
        "That looks at A's tile only: its columns are fetched by the BN / TN threads along x. The rows of "
        "B's tile are fetched by those along y.",
        lambda BM, BN, BK, TM, TN: BK == BN // TN,
    ),
    Slip(
        "That looks at B's tile only: its rows are fetched by the BM / TM threads along y. The columns of "
        "A's tile are fetched by those along x.",
        lambda BM, BN, BK, TM, TN: BK == BM // TM,
    ),
    Slip(
        "One of the two is not enough: the columns of As and the rows of Bs must both be covered.",
        lambda BM, BN, BK, TM, TN: BK == BM // TM or BK == BN // TN,
    ),
    Slip(
        "It is right for 16 with tiles of 128 and thread tiles of 8, but 16 is nothing special: it comes "
        "from these sizes.",
        lambda BM, BN, BK, TM, TN: BK == 16,
    ),
    *(
        Slip(
            f"BK = {number} fits blocks of {number} × {number} threads, and no others. Other sizes have "
            "other blocks: count the threads along x and along y.",
            lambda BM, BN, BK, TM, TN, number=number: BK == number,
        )
        for number in (4, 8)
    ),
    *(
        Slip(
            f"That compares BK with {name}, the size of a thread's tile. What counts is how many threads "
            "there are along x and along y.",
            same,
        )
        for name, same in (
            ("TM", lambda BM, BN, BK, TM, TN: BK == TM),
            ("TN", lambda BM, BN, BK, TM, TN: BK == TN),
        )
    ),
    Slip(
        "You ask for square blocks and square thread tiles. The draft needs neither: it is right with "
        "BM=16, BN=32, BK=4, TM=4, TN=8 as well. (`a == b & c == d` asks for that, too: `&` binds before "
        "`==`. Write `and`.)",
        lambda BM, BN, BK, TM, TN: BM == BN and TM == TN and BK == BM // TM,
    ),
    Slip(
        "TM and TN are swapped: a thread takes TN of the BN columns and TM of the BM rows, so there are "
        "BN / TN threads along x and BM / TM along y.",
        lambda BM, BN, BK, TM, TN: BK == BN // TM and BK == BM // TN,
    ),
    Slip(
        "A square block of threads is needed, but that alone is not enough: BK has to fit as well.",
        lambda BM, BN, BK, TM, TN: BM // TM == BN // TN,
    ),
    Slip(
        "That counts the threads of the whole block. With 16 × 4 threads and BK = 8 it says right. But then "
        "16 threads bring 8 columns of As, and 4 threads 8 rows of Bs. Each side counts by itself.",
        lambda BM, BN, BK, TM, TN: BM * BN // (TM * TN) == BK * BK,
    ),
    Slip(
        "That compares BK with the width of a thread's tile. What counts is the number of threads along x "
        "and y.",
        lambda BM, BN, BK, TM, TN: BK == TM == TN,
    ),
)


def _truth(answer) -> bool:
    if not isinstance(answer, (bool, np.bool_)):
        raise Refused(f"The answer must be True or False; this is `{answer!r}`.")
    return bool(answer)


def _difference(case, answer, truth) -> str:
    sizes = ", ".join(f"{name}={size}" for name, size in zip(NAMES, case))
    found = "finds nothing wrong with the draft" if truth else "finds the draft wrong"
    return f"First wrong case: with {sizes} your function returns {answer}, but the emulator {found}."


def _passed(right) -> str:
    return (
        f"The emulator ran the draft with {len(CASES)} choices of tiles. In {sum(right(*c) for c in CASES)} "
        "of them it found nothing wrong, and they are yours."
    )


@table_exercise(
    start="find a BK at which the picture of the draft has no hatching and nobody writes beside the tiles.",
    hints=(
        "How many columns of As do the threads of a block fetch together? How many are there?",
        "There are `BN // TN` threads along x, each fetches one column of As; and `BM // TM` along y, each "
        "fetches one row of Bs.",
        "As has BK columns and Bs has BK rows. Fewer threads leave holes, more of them write beside the "
        "tile.",
    ),
    cases=CASES,
    slips=SLIPS,
    read=_truth,
    show=lambda case: ", ".join(f"{name}={size}" for name, size in zip(NAMES, case)),
    difference=_difference,
    passed=_passed,
)
def draft_is_right(BM, BN, BK, TM, TN):
    """right(BM, BN, BK, TM, TN) -> whether the draft of Kernel 5 is right with these tiles.

    That is: complete tiles, no store beside them, and the right numbers, on one block.
    """
    tiles = dict(zip(NAMES, (BM, BN, BK, TM, TN)))
    rng = np.random.default_rng((BM, BN, BK))
    A, B = rng.standard_normal((BM, BK), np.float32), rng.standard_normal((BK, BN), np.float32)
    C = np.zeros((BM, BN), np.float32)
    problem = (BM, BN, BK, np.float32(1), A, B, np.float32(0), C)
    report = emulate(STAGE.kernel(tiles), 1, STAGE.block(tiles), *problem)
    return report.ok and np.allclose(C, A @ B, rtol=1e-4, atol=1e-4)
