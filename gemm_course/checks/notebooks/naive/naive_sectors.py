"""Checks ``naive_sectors``: the sectors of a request of the naive kernel."""

from functools import cache

import numpy as np

from gemm_course.checks.core import NothingYet, Refused, exercise
from gemm_course.checks.engines.tables import a_whole_number
from gemm_course.kernels import LADDER
from lockstep import emulate

# A block has 8 threads along x, which counts rows here, and 32 along y.
X, Y = 8, 32


@exercise(
    start="put three numbers in place of None. A warp is 32 threads, x first: which rows do they have here, "
    "which columns?",
    hints=(
        "x runs over the rows, and a block has only 8 threads along x. So a warp has 8 different rows, and 4 "
        "different columns.",
        "A: lanes with the same row read the same element, and each row begins a new sector.",
        "B: 4 neighbouring columns of one row are 16 bytes. C: 8 rows, and in each of them 4 neighbours.",
    ),
)
def naive_sectors(A=None, B=None, C=None):
    """The sectors of one request for A, for B (loads) and for C (the store); rows begin at sectors."""
    answer = {"A": A, "B": B, "C": C}
    missing = [name for name, value in answer.items() if value is None or value is Ellipsis]
    if missing:
        raise NothingYet(f"{' and '.join(missing)} still missing. All three numbers are needed.")
    answer = {name: a_whole_number(f"`{name}`", floats=True)(value) for name, value in answer.items()}
    if answer != right_sectors():
        where = "Yours: " + ", ".join(f"{name} {value}" for name, value in answer.items()) + "."
        raise Refused(_mistake(answer), where)
    return (
        "A 8, B 1, C 8: a sector for each of the warp's rows, one for its 4 columns, and again one for each "
        "row."
    )


@cache
def right_sectors() -> dict[str, int]:
    """Count with the emulator the sectors of a request of the course's kernel."""
    stage, tiles, size, depth = LADDER["naive_uncoalesced"], {"BM": X, "BN": Y}, 64, 8
    A, B, C = (np.ones(shape, np.float32) for shape in ((size, depth), (depth, size), (size, size)))
    geometry = stage.grid(size, size, tiles), stage.block(tiles)
    one, zero = np.float32(1), np.float32(0)
    report = emulate(stage.kernel(tiles), *geometry, size, size, depth, one, A, B, zero, C)
    ops = {"A": "load", "B": "load", "C": "store"}
    return {name: round(report.sectors_per_request(array=name, op=op)) for name, op in ops.items()}


# ---- what goes wrong ---------------------------------------------------------------------------------------

# The keys are the sectors of A, of B and of C.
KNOWN = {
    (
        32,
        1,
        32,
    ): "That is right for blocks of 32 × 32, where a warp has 32 different rows. Here a block has "
    "only 8 threads along x: how many rows does a warp have then?",
    (1, 8, 8): "A and B are swapped. Lanes differ in `row` first, and `row` is an index of A: `A[row, p]`.",
    (8, 4, 8): "8 for A and C is right. But B's 4 columns are neighbours in one row: 16 bytes.",
    (
        8,
        1,
        32,
    ): "8 for A and 1 for B are right. When C is stored, the 4 lanes of a row store neighbours: do they "
    "not share a sector?",
    (
        8,
        32,
        8,
    ): "8 for A and C is right. But `B[p, col]` has the same `p` in all lanes, and only 4 columns: they "
    "lie side by side.",
    (
        4,
        1,
        4,
    ): "That has x along the columns, as in notebook [[welcome.ipynb]]. Here x counts rows: a block has "
    "8 threads along x, so a warp has 8 rows.",
    (4, 4, 4): "4 is right for 32 neighbours *side by side* in a row. Here only 4 lanes stand side by side.",
    (
        1,
        1,
        1,
    ): "1 is right for B only, whose 4 columns lie side by side. In A and C each row is a sector of its own.",
}
ALONE = {
    "A": "A is not right. Which elements of A do the 32 lanes read? They have 8 different rows, `p` is the "
    "same: the elements stand one above the other.",
    "B": "B is not right. Which elements of B do the 32 lanes read? `p` is the same, and they have 4 "
    "neighbouring columns.",
    "C": "C is not right. Where do the 32 lanes store? In 8 rows, and in each of them 4 neighbours.",
}


def _mistake(answer: dict[str, int]) -> str:
    numbers = tuple(answer.values())
    if numbers in KNOWN:
        return KNOWN[numbers]
    if 128 in numbers or 1024 in numbers or 256 in numbers:
        return "Those are bytes. Count the sectors of 32 bytes that the addresses lie in."
    wrong = [name for name, value in right_sectors().items() if answer[name] != value]
    if len(wrong) == 1:
        return ALONE[wrong[0]]
    return (
        f"{', '.join(wrong[:-1])} and {wrong[-1]} are not right. Write down row and column of the first nine "
        "lanes: which of them read the same element?"
    )
