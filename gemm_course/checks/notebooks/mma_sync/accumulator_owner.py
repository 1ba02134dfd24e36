"""Checks the lane that holds an element of mma.sync's accumulators, and at which place."""

import numpy as np

from gemm_course.checks.engines.tables import Part, Slip, table_exercise, whole_numbers
from lockstep.intrinsics.fragments import C

ROWS, COLUMNS = 16, 8
CASES = tuple(np.ndindex(ROWS, COLUMNS))

OF_LANE = (
    Slip(
        "Four lanes share a row of 8, two neighbours each: the column counts elements here. Halve it, "
        "`column // 2`.",
        lambda row, column: row % 8 * 4 + column,
    ),
    Slip(
        "Rows 8 to 15 begin with lane 0 again: a warp ends at lane 31. Take `row % 8`.",
        lambda row, column: row * 4 + column // 2,
    ),
    Slip(
        "That deals columns, as B's fragment does: here four lanes share a *row*.",
        lambda row, column: column * 4 + row % 8 // 2,
    ),
    Slip(
        "Those would be rows of 8 lanes. A row of the accumulators has 8 elements, so four lanes.",
        lambda row, column: row % 8 * 8 + column // 2,
    ),
    Slip(
        "A lane's two neighbours are columns 2·i and 2·i + 1. With `column % 4` they are 4 apart.",
        lambda row, column: row % 8 * 4 + column % 4,
    ),
)
OF_PLACE = (
    Slip(
        "The places are the other way round: 0 and 1 are neighbours in a row, 2 and 3 lie 8 rows below.",
        lambda row, column: column % 2 * 2 + row // 8,
    ),
    Slip(
        "That tells the two neighbours apart, and leaves out the row: 8 rows further down come places 2 and "
        "3.",
        lambda row, column: column % 2,
    ),
    Slip(
        "That tells the two rows apart, and leaves out which of the two neighbours it is.",
        lambda row, column: row // 8 * 2,
    ),
    Slip(
        "That leaves out which of the two neighbours it is, and counts rows by 1: rows 8 further down add 2.",
        lambda row, column: row // 8,
    ),
    Slip(
        "A lane has four accumulators: places 0 to 3. Here rows 8 further down add 1, and should add 2.",
        lambda row, column: row // 8 + column % 2,
    ),
    Slip(
        "That splits the columns in halves: four neighbours per lane. A lane has two neighbours in each of "
        "two rows.",
        lambda row, column: column % 4,
    ),
)


@table_exercise(
    start="work out the lane from the row and the column: four lanes share a row of 8.",
    hints=(
        "Begin with rows 0 to 7: row 0 is lanes 0, 0, 1, 1, 2, 2, 3, 3, row 1 begins with lane 4.",
        "So in these rows the lane is `row * 4 + column // 2`. Eight rows further down the same lanes come "
        "again: which operator folds the rows?",
        "The place: `column % 2` says which of two neighbours, and rows from 8 on add 2.",
    ),
    cases=CASES,
    slips=(
        Slip(
            "Both numbers are right, and their order is not: first the lane, then the place.",
            lambda row, column: accumulator_owner.right(row, column)[::-1],
        ),
    ),
    parts=(Part("lane", 0, OF_LANE), Part("place", 1, OF_PLACE)),
    read=whole_numbers("lane", "place"),
    passed=f"Right for all {len(CASES)} elements, as the emulator's `mma_m16n8k16` has it and as the PTX ISA "
    "promises it. So a lane can find its results without asking anybody.",
)
def accumulator_owner(row, column):
    """owner(row, column) -> (lane, place) of an element of a 16 by 8 matrix of accumulators."""
    lane, place = map(int, np.argwhere((C.rows == row) & (C.columns == column))[0])
    return lane, place
