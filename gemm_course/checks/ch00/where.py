"""Notebook 00: who am I, and where does it lie in memory. Its kernels are in :mod:`.chapter_00_kernels`."""

import numpy as np

from gemm_course.checks.core import Refused, exercise, function_of, nothing_yet, whole_number
from gemm_course.checks.engines.tables import Slip, hold_to_number, hold_to_table

WARP, SECTOR, LINE = 32, 32, 128

# ---- 00.1 ------------------------------------------------------------------------------------------------

THREADS = [  # (blockIdx, threadIdx, blockDim), all (x, y)
    ((0, 0), (0, 0), (32, 4)),
    ((0, 0), (5, 0), (32, 4)),
    ((0, 0), (5, 3), (32, 4)),
    ((2, 1), (5, 3), (32, 4)),
    ((1, 0), (0, 2), (32, 4)),
    ((0, 1), (31, 3), (32, 4)),
    ((0, 0), (7, 15), (8, 16)),
    ((3, 1), (2, 9), (8, 16)),
    ((1, 4), (4, 6), (5, 7)),
    ((6, 2), (0, 3), (5, 7)),
    ((1, 0), (47, 1), (48, 2)),
    ((0, 5), (33, 0), (48, 2)),
]


def _place(block, thread, dim):
    return block[1] * dim[1] + thread[1], block[0] * dim[0] + thread[0]


def _linear(thread, dim):
    return thread[1] * dim[0] + thread[0]


def _warp_and_lane(linear):
    return linear // WARP, linear % WARP


PLACE_SLIPS = (
    Slip(
        "Row and column are exchanged: `x` counts columns, `y` counts rows. The row comes from `by, ty, dy`.",
        lambda b, t, d: _place(b, t, d)[::-1],
    ),
    Slip(
        "The block is forgotten: this is the place within the block. Blocks before this one have already "
        "taken `by * dy` rows and `bx * dx` columns.",
        lambda b, t, d: (t[1], t[0]),
    ),
    Slip(
        "The block's sizes are exchanged: along y a block takes `dy` rows, along x `dx` columns.",
        lambda b, t, d: (b[1] * d[0] + t[1], b[0] * d[1] + t[0]),
    ),
    Slip(
        "`bx` and `by` are exchanged: `by` says how many blocks are above, `bx` how many to the left.",
        lambda b, t, d: (b[0] * d[1] + t[1], b[1] * d[0] + t[0]),
    ),
    Slip(
        "`blockIdx` counts blocks, not elements. Every block before this one holds `dy` rows (or `dx` "
        "columns).",
        lambda b, t, d: (b[1] + t[1], b[0] + t[0]),
    ),
)

LANE_SLIPS = (
    Slip(
        "The lane is not `tx`. A block's threads are numbered through, row after row, and that ribbon is cut "
        "into pieces of 32; `tx` is the lane only in blocks that are 32 wide.",
        lambda b, t, d: (_linear(t, d) // WARP, t[0]),
    ),
    Slip(
        "The lane is not `tx`, and the warp is not `ty`. Number the block's threads through, x first, and "
        "cut the ribbon into pieces of 32.",
        lambda b, t, d: (t[1], t[0]),
    ),
    Slip(
        "The threads are numbered down the columns here (`tx * dy + ty`). x comes first: the neighbour along "
        "x has the next number.",
        lambda b, t, d: _warp_and_lane(t[0] * d[1] + t[1]),
    ),
    Slip(
        "The linear number is `ty * dy + tx` here. A row of the block holds `dx` threads, so it is `dx` that "
        "each row before this one has used up.",
        lambda b, t, d: _warp_and_lane(t[1] * d[1] + t[0]),
    ),
    Slip(
        "Warp and lane are exchanged: `// 32` says which piece of the ribbon, `% 32` the place in it.",
        lambda b, t, d: _warp_and_lane(_linear(t, d))[::-1],
    ),
    Slip(
        "The warps are numbered over the whole grid here. Warp and lane belong to the block: every block "
        "starts at warp 0, so neither `blockIdx` nor the row and column in the matrix take part.",
        lambda b, t, d: _warp_and_lane(b[0] * d[0] * d[1] + _linear(t, d)),
    ),
    Slip(
        "Warp and lane are taken from the row and column in the matrix. They belong to the block: number the "
        "threads of the block, with `tx`, `ty` and `dx` alone.",
        lambda b, t, d: _warp_and_lane(_place(b, t, d)[0] * d[0] + _place(b, t, d)[1]),
    ),
)


def _four_numbers(answer):
    if not isinstance(answer, (tuple, list, np.ndarray)) or len(answer) != 4:
        raise Refused(f"Four numbers are wanted, `(row, col, warp, lane)`; this is `{answer!r}`.")
    if all(part is None for part in answer):
        raise nothing_yet()
    return tuple(whole_number(v, what) for v, what in zip(answer, ("row", "col", "warp", "lane")))


@exercise(
    "00.1",
    start="`where` returns None. Start with the row: how many rows of threads are above this one, counting "
    "whole blocks first? Return `(row, col, warp, lane)`.",
    hints=(
        "The row has to do with `y` only: `by` whole blocks of `dy` rows are above, then `ty` rows of your "
        "own.",
        "Give every thread of the block a number, x first: `ty` whole rows of `dx` threads come before you.",
        "With `linear = ty * dx + tx`: the warp is `linear // 32`, the lane `linear % 32`.",
    ),
)
def where(where):
    where = function_of(where, ("block", "thread", "block_dim"))

    def half(part):
        return lambda answer: _four_numbers(answer)[part]

    def show(case):
        return "where(block={}, thread={}, block_dim={})".format(*case)

    hold_to_table(where, THREADS, _place, PLACE_SLIPS, read=half(slice(0, 2)), show=show, part="(row, col)")
    hold_to_table(
        where,
        THREADS,
        lambda b, t, d: _warp_and_lane(_linear(t, d)),
        LANE_SLIPS,
        read=half(slice(2, 4)),
        show=show,
        part="(warp, lane)",
    )
    shapes = len({dim for _, _, dim in THREADS})
    return f"{len(THREADS)} threads in blocks of {shapes} shapes: row, column, warp and lane are all right."


# ---- 00.2 ------------------------------------------------------------------------------------------------

LENGTHS = [
    *((n, threads) for threads in (32, 128, 100) for n in (1, 31, 128, 129, 300, 1000, 4096, 999_999, 10**6)),
    (0, 32),
    (0, 128),
]


def _blocks(n, threads):
    return -(-n // threads)


BLOCKS_SLIPS = (
    Slip(
        "Rounded down: the last, partly filled block is missing, and its elements are never worked on.",
        lambda n, t: n // t,
    ),
    Slip(
        "One block too many wherever `n` is a multiple of `threads`: rounding down and adding one is not "
        "rounding up.",
        lambda n, t: n // t + 1,
    ),
    Slip(
        "The arguments are exchanged: `n` elements are dealt out in portions of `threads`.",
        lambda n, t: _blocks(t, n),
    ),
    Slip(
        "Rounded to the nearest number: where that is down, elements are missing.", lambda n, t: round(n / t)
    ),
    Slip(
        "That is how many threads are launched, `threads` for each block. The number of blocks is wanted.",
        lambda n, t: _blocks(n, t) * t,
    ),
    Slip("No elements need no block: for `n = 0` the answer is 0.", lambda n, t: max(1, _blocks(n, t))),
)


@exercise(
    "00.2",
    start="`blocks_for` returns None. Try numbers first: with 128 threads, 128 elements take 1 "
    "block, 129 take 2.",
    hints=(
        "It is a division, rounded up. Python's `//` rounds down.",
        "Add something to `n` before you divide, so that every remainder reaches the next multiple and a "
        "multiple stays where it is.",
        "`(n + threads - 1) // threads`, or `-(-n // threads)`.",
    ),
)
def blocks_for(blocks_for):
    blocks_for = function_of(blocks_for, ("n", "threads"))
    hold_to_table(
        blocks_for,
        LENGTHS,
        _blocks,
        BLOCKS_SLIPS,
        read=lambda answer: whole_number(answer, "the number of blocks"),
    )
    return f"{len(LENGTHS)} cases from n = 0 to 1,000,000: no element left out, no block too many."


# ---- 00.3 ------------------------------------------------------------------------------------------------


@exercise(
    "00.3",
    start="put your number in place of None: `check.idle_lanes(...)`. A warp has 32 lanes, and the whole "
    "warp belongs to one block.",
    hints=(
        "A warp never has threads of two blocks.",
        "So every block of 4 threads takes a warp of its own. How many of its 32 lanes are left over?",
    ),
)
def idle_lanes(answer):
    hold_to_number(
        answer,
        28,
        {
            0: "No: blocks do not share warps to fill them up. Every block of 4 gets a warp of its own.",
            4: "4 is how many lanes are busy. The question is how many are idle.",
            124: "A warp has 32 lanes, not 128. (128 is the bytes of a line.)",
            7: "7 more blocks would fit into the warp, but warps are not shared between blocks: their lanes "
            "stay empty. Count lanes, not blocks.",
            8: "8 is how many blocks of 4 would fit into 32. Warps are not shared between blocks, though.",
            32: "If all 32 were idle, nobody would work: 4 lanes have a thread.",
        },
        "Not that number. A warp has 32 lanes, and only one block's threads are in it.",
    )
    return (
        "28 of 32 lanes are idle: seven eighths of the machine, because warps are not shared between blocks."
    )


# ---- 00.4 ------------------------------------------------------------------------------------------------


def _matrices() -> list[tuple[str, np.ndarray]]:
    float32, float64 = np.float32, np.float64
    return [
        ("np.zeros((5, 16), np.float32)", np.zeros((5, 16), float32)),
        ("np.zeros((6, 13), np.float32)", np.zeros((6, 13), float32)),
        ("np.zeros((5, 40), np.float32)[:, :13]", np.zeros((5, 40), float32)[:, :13]),
        ("np.zeros((7, 21), np.float64)", np.zeros((7, 21), float64)),
        ("np.zeros((7, 50), np.float64)[:, :11]", np.zeros((7, 50), float64)[:, :11]),
        ("np.zeros((20, 13), np.float32)[::2]", np.zeros((20, 13), float32)[::2]),
    ]


def _sector_and_line(address):
    return address // SECTOR, address // LINE


def _address(i, j, A):
    return i * A.strides[0] + j * A.strides[1]


SECTOR_SLIPS = (
    Slip(
        "This counts elements, but sectors and lines are 32 and 128 *bytes*. How many bytes does an element "
        "take?",
        lambda i, j, A: _sector_and_line(_address(i, j, A) // A.itemsize),
    ),
    Slip(
        "This counts elements, but sectors and lines are 32 and 128 *bytes*; and the row's length comes from "
        "the shape, which a slice does not share with the memory under it.",
        lambda i, j, A: _sector_and_line(i * A.shape[1] + j),
    ),
    Slip(
        "`A.shape[0]` is the number of rows. What counts is how far it is from the start of one row to the "
        "start of the next.",
        lambda i, j, A: _sector_and_line((i * A.shape[0] + j) * A.itemsize),
    ),
    Slip(
        "Right for whole arrays, wrong for slices: `A.shape[1]` is how wide the slice is, not how far its "
        "rows are apart in memory. NumPy keeps that distance somewhere.",
        lambda i, j, A: _sector_and_line((i * A.shape[1] + j) * A.itemsize),
    ),
    Slip(
        "An element does not always take 4 bytes: float64 takes 8. The array knows: `A.itemsize`, "
        "`A.strides`.",
        lambda i, j, A: _sector_and_line((i * (A.strides[0] // A.itemsize) + j) * 4),
    ),
    Slip(
        "Along the row an element is taken for 4 bytes; a float64 has 8. `A.strides[1]` says how far apart "
        "neighbours are.",
        lambda i, j, A: _sector_and_line(i * A.strides[0] + j * 4),
    ),
    Slip(
        "Two things are taken for granted: that elements have 4 bytes, and that rows follow each other "
        "without a gap. `A.strides` knows better in both.",
        lambda i, j, A: _sector_and_line((i * A.shape[1] + j) * 4),
    ),
    Slip(
        "The sector is counted within its line (0 to 3). Count it from the first byte of `A`.",
        lambda i, j, A: (_address(i, j, A) // SECTOR % 4, _address(i, j, A) // LINE),
    ),
    Slip(
        "Sector and line are exchanged: the sector, 32 bytes, comes first.",
        lambda i, j, A: _sector_and_line(_address(i, j, A))[::-1],
    ),
    Slip(
        "`i` and `j` are exchanged: `i` is the row, and a step of one row is `A.strides[0]` bytes.",
        lambda i, j, A: _sector_and_line(j * A.strides[0] + i * A.strides[1]),
    ),
)


def _two_numbers(answer):
    if not isinstance(answer, (tuple, list, np.ndarray)) or len(answer) != 2:
        raise Refused(f"Two numbers are wanted, `(sector, line)`; this is `{answer!r}`.")
    if all(part is None for part in answer):
        raise nothing_yet()
    return tuple(whole_number(value, what) for value, what in zip(answer, ("the sector", "the line")))


@exercise(
    "00.4",
    start="`sector_and_line` returns None. First find out how many bytes lie between the first byte of `A` "
    "and the first byte of `A[i, j]`.",
    hints=(
        "Everything here is counted in bytes: 32 a sector, 128 a line.",
        "`A.strides` holds two distances in bytes: from one row to the next, and from one element to its "
        "neighbour.",
        "`address = i * A.strides[0] + j * A.strides[1]`; then divide by 32 and by 128, rounding down.",
    ),
)
def sector_and_line(sector_and_line):
    sector_and_line = function_of(sector_and_line, ("i", "j", "A"))
    matrices = _matrices()
    names = {id(A): name for name, A in matrices}
    places = ((0, 0), (0, 9), (1, 0), (2, 10), (4, 7), (3, 1))
    cases = [(i, j, A) for _, A in matrices for i, j in places]
    hold_to_table(
        sector_and_line,
        cases,
        lambda i, j, A: _sector_and_line(_address(i, j, A)),
        SECTOR_SLIPS,
        read=_two_numbers,
        show=lambda case: f"sector_and_line({case[0]}, {case[1]}, A) with A = {names[id(case[2])]}",
    )
    return f"{len(cases)} elements of {len(matrices)} arrays, slices and float64 among them: all right."
