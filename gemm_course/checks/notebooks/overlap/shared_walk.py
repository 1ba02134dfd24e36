"""Checks ``shared_walk``: an order of a thread's products in which neighbours share an operand."""

from itertools import pairwise

from gemm_course.checks.core import Refused, call, exercise, function_of
from gemm_course.checks.core import nothing_yet as _nothing_yet
from gemm_course.checks.engines.tables import places

SIZES = ((2, 3), (4, 4), (3, 5), (16, 8), (1, 4), (4, 1))


@exercise(
    start="return the places `(i, j)` of a row of results from left to right. Where does the next row begin?",
    hints=(
        "Within a row neighbours share `a[i]`. The step from one row to the next must keep `b[j]`: it goes "
        "straight down.",
        "So every other row is walked from right to left: `TN - 1 - s` in place of `s`.",
    ),
)
def shared_walk(walk):
    """walk(TM, TN) -> all places (i, j) of its results, each in the row or column of the one before."""
    walk = function_of(walk, ("TM", "TN"))
    for TM, TN in SIZES:
        answer = call(walk, TM, TN)
        if answer is None or answer is Ellipsis:
            raise _nothing_yet()
        _check(places(answer), TM, TN)
    return (
        "Every product shares an operand with the one before it. With 16 × 8 results, row by row, "
        "15 of 127 steps share none."
    )


def _check(order: list, TM: int, TN: int) -> None:
    about = f"With TM = {TM}, TN = {TN}."
    beside = [place for place in order if not (0 <= place[0] < TM and 0 <= place[1] < TN)]
    if beside:
        swapped = all(0 <= j < TM and 0 <= i < TN for i, j in order)
        hint = " It would be one with i and j swapped: i counts the TM rows." if swapped else ""
        raise Refused(f"{beside[0]} is no place of {TM} × {TN} results.{hint}", about)
    if len(set(order)) < len(order):
        again = next(place for place in order if order.count(place) > 1)
        raise Refused(f"{again} comes twice: each product is added once.", about)
    if len(order) < TM * TN:
        missing = next((i, j) for i in range(TM) for j in range(TN) if (i, j) not in order)
        raise Refused(f"{missing} is missing: there are {TM * TN} products, and {len(order)} places.", about)
    breaks = [(one, two) for one, two in pairwise(order) if one[0] != two[0] and one[1] != two[1]]
    if breaks:
        raise Refused(_why(order, breaks, TM, TN), about)


def _why(order: list, breaks: list, TM: int, TN: int) -> str:
    one, two = breaks[0]
    times = "once" if len(breaks) == 1 else f"{len(breaks)} times"
    if order == [(i, j) for i in range(TM) for j in range(TN)]:
        return (
            f"Each row begins at the left again: from {one} to {two} neither `a` nor `b` is shared. It "
            f"happens {times}. Begin where the last row ended."
        )
    if order == [(i, j) for j in range(TN) for i in range(TM)]:
        return (
            f"Each column begins at the top again: from {one} to {two} nothing is shared. It happens "
            f"{times}. Begin where the last column ended."
        )
    return f"From {one} to {two} both operands change. It happens {times}."
