"""Exercise 01.3: the sectors of a request of the naive kernel."""

from functools import cache

import numpy as np

from gemm_course.checks.core import NothingYet, Refused, exercise, whole_number
from gemm_course.emulator import emulate
from gemm_course.kernels import LADDER


@exercise(
    "01.3",
    start="put three numbers in place of None. For each array ask where the 32 lanes' elements lie: side by "
    "side, one above the other, or all in one place?",
    hints=(
        "x runs over the rows: the 32 lanes of a warp have 32 different rows, and all the same column.",
        "Elements one above the other lie in different rows, and here each row begins a new sector.",
        "If all lanes read the same element, its sector moves once and all lanes get it: a broadcast.",
    ),
)
def naive_sectors(A=None, B=None, C=None):
    """The sectors of one request for A, for B (loads) and for C (the store); rows begin at sectors."""
    answer = {"A": A, "B": B, "C": C}
    missing = [name for name, value in answer.items() if value is None or value is Ellipsis]
    if missing:
        raise NothingYet(f"{' and '.join(missing)} still missing. All three numbers are needed.")
    answer = {name: whole_number(value, f"`{name}`") for name, value in answer.items()}
    if answer != right_sectors():
        where = "Yours: " + ", ".join(f"{name} {value}" for name, value in answer.items()) + "."
        raise Refused(_mistake(answer), where)
    return "A 32, B 1, C 32: a sector for each lane, one for all of them, and again one for each."


@cache
def right_sectors() -> dict[str, int]:
    """What the emulator counts for the course's kernel."""
    stage, tiles, size, depth = LADDER["naive_uncoalesced"], {"BM": 32, "BN": 32}, 64, 8
    A, B, C = (np.ones(shape, np.float32) for shape in ((size, depth), (depth, size), (size, size)))
    geometry = stage.grid(size, size, tiles), stage.block(tiles)
    one, zero = np.float32(1), np.float32(0)
    report = emulate(stage.kernel(tiles), *geometry, size, size, depth, one, A, B, zero, C)
    ops = {"A": "load", "B": "load", "C": "store"}
    return {name: round(report.sectors_per_request(array=name, op=op)) for name, op in ops.items()}


# ---- what goes wrong ---------------------------------------------------------------------------------------

KNOWN = {  # A, B, C
    (1, 32, 32): "A and B are swapped. Lanes differ in `row`, and `row` is an index of A: `A[row, p]`.",
    (4, 4, 4): "4 is right for 32 neighbours *side by side* in a row. Here the lanes stand one above the "
    "other.",
    (32, 32, 32): "32 for A and C is right. But all lanes read the same element of B, `B[p, col]`: how often "
    "is its sector moved?",
    (1, 1, 1): "1 is right for B only, where all lanes read the same element. In A and C each has its own.",
}
ALONE = {
    "A": "A is not right. Which elements of A do the 32 lanes read? Their rows are all different, `p` is the "
    "same: they stand one above the other.",
    "B": "B is not right. Which elements of B do the 32 lanes read? `col` and `p` are the same for all of "
    "them: they all read one and the same.",
    "C": "C is not right. Where do the 32 lanes store? In 32 different rows, one above the other, as they "
    "read A.",
}


def _mistake(answer: dict[str, int]) -> str:
    numbers = tuple(answer.values())
    if numbers in KNOWN:
        return KNOWN[numbers]
    if 128 in numbers or 1024 in numbers:
        return "Those are bytes: 32 lanes × 4 bytes are used, 32 sectors × 32 bytes moved. Count the sectors."
    if 8 in numbers:
        return "8 is the number of floats in one sector. Count the sectors that the 32 addresses lie in."
    wrong = [name for name, value in right_sectors().items() if answer[name] != value]
    if len(wrong) == 1:
        return ALONE[wrong[0]]
    return (
        f"{', '.join(wrong[:-1])} and {wrong[-1]} are not right. Write down the addresses of the first two "
        "lanes: how far apart are they?"
    )
