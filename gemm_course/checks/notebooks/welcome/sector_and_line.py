"""Checks ``sector_and_line``: the sector and the line of an array's element."""

import numpy as np

from gemm_course.checks.engines.tables import Part, Slip, table_exercise, whole_numbers

# Both sizes are in bytes.
SECTOR, LINE = 32, 128
MATRICES = {
    "np.zeros((5, 16), np.float32)": np.zeros((5, 16), np.float32),
    "np.zeros((6, 13), np.float32)": np.zeros((6, 13), np.float32),
    "np.zeros((5, 40), np.float32)[:, :13]": np.zeros((5, 40), np.float32)[:, :13],
    "np.zeros((7, 21), np.float64)": np.zeros((7, 21), np.float64),
    "np.zeros((7, 50), np.float64)[:, :11]": np.zeros((7, 50), np.float64)[:, :11],
    "np.zeros((20, 13), np.float32)[::2]": np.zeros((20, 13), np.float32)[::2],
    "np.zeros((5, 40), np.float32)[:, ::2]": np.zeros((5, 40), np.float32)[:, ::2],
    "np.zeros((14, 9), np.float32).T": np.zeros((14, 9), np.float32).T,
    # Only here is a line's number above 31, so that a line divided twice is not always 0.
    "np.zeros((5, 600), np.float32)": np.zeros((5, 600), np.float32),
}
NAMES = {id(A): name for name, A in MATRICES.items()}
PLACES = ((0, 0), (0, 9), (1, 0), (2, 10), (4, 7), (3, 1), (3, 9))
CASES = tuple((i, j, A) for A in MATRICES.values() for i, j in PLACES)


def _address(i, j, A):
    return i * A.strides[0] + j * A.strides[1]


def _of_address(address):
    return address // SECTOR, address // LINE


SLIPS = (
    Slip(
        "This counts elements, but sectors and lines are 32 and 128 *bytes*. How many bytes does an element "
        "take?",
        lambda i, j, A: _of_address(_address(i, j, A) // A.itemsize),
    ),
    Slip(
        "This counts elements, but sectors and lines are 32 and 128 *bytes*; and the row's length comes from "
        "the shape, which a slice does not share with the memory under it.",
        lambda i, j, A: _of_address(i * A.shape[1] + j),
    ),
    Slip(
        "This counts elements, but sectors and lines are 32 and 128 *bytes*. `A.strides` is in bytes: take "
        "both distances from it as they are.",
        lambda i, j, A: _of_address(i * (A.strides[0] // A.itemsize) + j),
    ),
    Slip(
        "This counts elements, but sectors and lines are 32 and 128 *bytes*. Nor has every element 4 of "
        "them. `A.strides` is in bytes: take both distances from it, and divide by nothing else.",
        lambda i, j, A: _of_address(i * A.strides[0] // 4 + j),
    ),
    Slip(
        "The sector is right. A line is four sectors, so there are fewer lines than sectors: divide by 4, do "
        "not multiply.",
        lambda i, j, A: (_address(i, j, A) // SECTOR, _address(i, j, A) // SECTOR * 4),
    ),
    Slip(
        "`j` has no effect: this is where the row starts. Along the row, neighbours are `A.strides[1]` bytes "
        "apart.",
        lambda i, j, A: _of_address(i * A.strides[0]),
    ),
    Slip(
        "The row is counted in bytes, the column in elements: `A.strides[0]` is in bytes, `j` is not. "
        "Neighbours in a row are `A.strides[1]` bytes apart.",
        lambda i, j, A: _of_address(i * A.strides[0] + j),
    ),
    Slip(
        "`A.shape[0]` is the number of rows. What counts is how far it is from the start of one row to the "
        "start of the next.",
        lambda i, j, A: _of_address((i * A.shape[0] + j) * A.itemsize),
    ),
    Slip(
        "Right for whole arrays, wrong for slices: `A.shape[1]` is how wide the slice is, not how far its "
        "rows are apart in memory. NumPy keeps that distance somewhere.",
        lambda i, j, A: _of_address((i * A.shape[1] + j) * A.itemsize),
    ),
    Slip(
        "An element does not always take 4 bytes: float64 takes 8. The array knows: `A.itemsize`, "
        "`A.strides`.",
        lambda i, j, A: _of_address((i * (A.strides[0] // A.itemsize) + j) * 4),
    ),
    Slip(
        "Along the row each element counts as 4 bytes; a float64 has 8. `A.strides[1]` says how far apart "
        "neighbours are.",
        lambda i, j, A: _of_address(i * A.strides[0] + j * 4),
    ),
    Slip(
        "Neighbours in a row are taken for neighbours in memory. In `A[:, ::2]` and in `A.T` they lie "
        "further apart: `A.strides[1]` bytes.",
        lambda i, j, A: _of_address(i * A.strides[0] + j * A.itemsize),
    ),
    Slip(
        "Four times too many: `A.strides` is in bytes already, so nothing is multiplied by 4, and a sector "
        "has "
        "32 of them, a line 128 (8 and 32 are how many floats they hold).",
        lambda i, j, A: _of_address(_address(i, j, A) * 4),
    ),
    Slip(
        "The bytes are counted twice: `A.strides` is in bytes already, so nothing is multiplied by "
        "`A.itemsize`.",
        lambda i, j, A: _of_address(_address(i, j, A) * A.itemsize),
    ),
    Slip(
        "`%` gives the place *within* the sector and the line. Which sector and which line: `//`.",
        lambda i, j, A: (_address(i, j, A) % SECTOR, _address(i, j, A) % LINE),
    ),
    Slip(
        "Two things are assumed here: that elements have 4 bytes, and that rows follow each other without a "
        "gap. Neither is always so; `A.strides` knows both.",
        lambda i, j, A: _of_address((i * A.shape[1] + j) * 4),
    ),
    Slip(
        "The sector is right. The other number is the place of the first byte within its sector. Which line: "
        "divide the bytes by 128, rounding down.",
        lambda i, j, A: divmod(_address(i, j, A), SECTOR),
    ),
    Slip(
        "The line is divided twice: the bytes by 32 and then by 128. Divide the bytes by 128, or the sectors "
        "by 4.",
        lambda i, j, A: (_address(i, j, A) // SECTOR, _address(i, j, A) // SECTOR // LINE),
    ),
    Slip(
        "This counts from where memory begins: `A.ctypes.data` is the address of `A`. Count from the first "
        "byte of `A`.",
        lambda i, j, A: _of_address(A.ctypes.data + _address(i, j, A)),
    ),
    Slip(
        "A line has 128 bytes, four sectors; this divides by 64.",
        lambda i, j, A: (_address(i, j, A) // SECTOR, _address(i, j, A) // 64),
    ),
    Slip(
        "The leading dimension 16 is that of one array, and this counts elements, not bytes. `A.strides` "
        "knows both distances, in bytes.",
        lambda i, j, A: _of_address(i * 16 + j),
    ),
    Slip(
        "The leading dimension 16 and the 4 bytes are those of one array. `A.strides` knows both distances.",
        lambda i, j, A: _of_address((i * 16 + j) * 4),
    ),
    Slip(
        "The leading dimension 16 is that of one array. `A.strides` knows the distance, in bytes.",
        lambda i, j, A: _of_address((i * 16 + j) * A.itemsize),
    ),
    Slip(
        "The sector is counted within its line (0 to 3). Count it from the first byte of `A`.",
        lambda i, j, A: (_address(i, j, A) // SECTOR % 4, _address(i, j, A) // LINE),
    ),
    Slip(
        "Sector and line are swapped: the sector, 32 bytes, comes first.",
        lambda i, j, A: _of_address(_address(i, j, A))[::-1],
    ),
    Slip(
        "`i` and `j` are swapped: `i` is the row, and a step of one row is `A.strides[0]` bytes.",
        lambda i, j, A: _of_address(j * A.strides[0] + i * A.strides[1]),
    ),
)

# Judged only where no slip of the whole answer fits: each number by itself.
SECTOR_SLIPS = (
    Slip(
        "`% 32` gives the place *within* the sector. Which sector: `// 32`.",
        lambda i, j, A: _address(i, j, A) % SECTOR,
    ),
    Slip(
        "8 is how many floats a sector holds. The distances are in bytes: divide by 32.",
        lambda i, j, A: _address(i, j, A) // 8,
    ),
    Slip(
        "The bytes are divided by 32 and then by 8. A sector of 32 bytes holds 8 floats, and that is the "
        "same thing twice: divide the bytes by 32 alone.",
        lambda i, j, A: _address(i, j, A) // SECTOR // 8,
    ),
    Slip(
        "For the sector, elements are counted, but a sector is 32 *bytes*: divide the bytes by 32.",
        lambda i, j, A: _address(i, j, A) // A.itemsize // SECTOR,
    ),
)
LINE_SLIPS = (
    Slip(
        "`% 128` gives the place *within* the line. Which line: `// 128`.",
        lambda i, j, A: _address(i, j, A) % LINE,
    ),
    Slip(
        "A line is four sectors; this takes eight. (8 is how many floats a sector holds.) Divide the bytes "
        "by 128, or the sectors by 4.",
        lambda i, j, A: _address(i, j, A) // SECTOR // 8,
    ),
    Slip(
        "This is the sector's place within its line, 0 to 3. Which line: divide the sectors by 4, rounding "
        "down.",
        lambda i, j, A: _address(i, j, A) // SECTOR % 4,
    ),
    Slip(
        "32 is how many floats a line holds, and how many bytes a sector has. A line has 128 bytes.",
        lambda i, j, A: _address(i, j, A) // 32,
    ),
    Slip(
        "For the line, elements are counted, but a line is 128 *bytes*: divide the bytes by 128.",
        lambda i, j, A: _address(i, j, A) // A.itemsize // LINE,
    ),
)


@table_exercise(
    start="`sector_and_line` returns None. First find out how many bytes lie between the first byte of `A` "
    "and the first byte of `A[i, j]`.",
    hints=(
        "Everything here is counted in bytes: 32 per sector, 128 per line.",
        "`A.strides` holds two distances in bytes: from one row to the next, and from one element to its "
        "neighbour.",
        "`address = i * A.strides[0] + j * A.strides[1]`; then divide by 32 and by 128, rounding down.",
    ),
    cases=CASES,
    slips=SLIPS,
    parts=(Part("sector", 0, SECTOR_SLIPS), Part("line", 1, LINE_SLIPS)),
    read=whole_numbers("the sector", "the line"),
    show=lambda case: f"sector_and_line({case[0]}, {case[1]}, A) with A = {NAMES[id(case[2])]}",
    passed=f"{len(CASES)} elements of {len(MATRICES)} arrays, among them slices, a transposed one and "
    "float64: all right.",
)
def sector_and_line(i, j, A):
    """sector_and_line(i, j, A) -> the sector and the line in which A[i, j] starts, from A's first byte on."""
    return _of_address(_address(i, j, A))
