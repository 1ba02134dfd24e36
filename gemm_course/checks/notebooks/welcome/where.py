"""Checks ``where``: which row, column, warp and lane a thread has."""

from gemm_course.checks.engines.tables import Part, Slip, table_exercise, whole_numbers

WARP = 32
# Each entry is (blockIdx, threadIdx, blockDim), all of them (x, y).
THREADS = (
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
)
SHAPES = len({dim for _, _, dim in THREADS})


def _place(block, thread, dim):
    return block[1] * dim[1] + thread[1], block[0] * dim[0] + thread[0]


def _linear(thread, dim):
    return thread[1] * dim[0] + thread[0]


PLACE_SLIPS = (
    Slip(
        "Row and column are swapped: `x` counts columns, `y` counts rows. The row comes from `by, ty, dy`.",
        lambda b, t, d: _place(b, t, d)[::-1],
    ),
    Slip(
        "The block is forgotten: this is the place within the block. The blocks before this one already "
        "cover `by * dy` rows and `bx * dx` columns.",
        lambda b, t, d: (t[1], t[0]),
    ),
    Slip(
        "The block's sizes are swapped: along y a block covers `dy` rows, along x `dx` columns.",
        lambda b, t, d: (b[1] * d[0] + t[1], b[0] * d[1] + t[0]),
    ),
    Slip(
        "`bx` and `by` are swapped: `by` says how many blocks are above, `bx` how many to the left.",
        lambda b, t, d: (b[0] * d[1] + t[1], b[1] * d[0] + t[0]),
    ),
    Slip(
        "`blockIdx` counts blocks, not elements. Every block before this one covers `dy` rows (or `dx` "
        "columns).",
        lambda b, t, d: (b[1] + t[1], b[0] + t[0]),
    ),
)

LANE_SLIPS = (
    Slip(
        "The lane is not `tx`. A block's threads are numbered row after row, and that ribbon is cut into "
        "pieces of 32; `tx` is the lane only in blocks that are 32 wide.",
        lambda b, t, d: (_linear(t, d) // WARP, t[0]),
    ),
    Slip(
        "The lane is not `tx % 32`: the rows before this one count as well, `ty * dx` threads.",
        lambda b, t, d: (_linear(t, d) // WARP, t[0] % WARP),
    ),
    Slip(
        "The ids start at 0: thread (0, 0) is lane 0 of warp 0, so nothing is added.",
        lambda b, t, d: divmod(_linear(t, d) + 1, WARP),
    ),
    Slip(
        "The lane is not `tx`, and the warp is not `ty`. Number all threads of the block, x first, and cut "
        "the ribbon into pieces of 32.",
        lambda b, t, d: (t[1], t[0]),
    ),
    Slip(
        "The threads are numbered down the columns here (`tx * dy + ty`). x comes first: the neighbour along "
        "x has the next number.",
        lambda b, t, d: divmod(t[0] * d[1] + t[1], WARP),
    ),
    Slip(
        "The linear number is `ty * dy + tx` here. A row of the block holds `dx` threads, so each row before "
        "this one uses up `dx` numbers.",
        lambda b, t, d: divmod(t[1] * d[1] + t[0], WARP),
    ),
    Slip(
        "Warp and lane are swapped: `// 32` says which piece of the ribbon, `% 32` the place in it.",
        lambda b, t, d: divmod(_linear(t, d), WARP)[::-1],
    ),
    Slip(
        "The warps are numbered over the whole grid here. Warp and lane belong to the block: every block "
        "starts at warp 0, so neither `blockIdx` nor the row and column in the matrix take part.",
        lambda b, t, d: divmod(b[0] * d[0] * d[1] + _linear(t, d), WARP),
    ),
    Slip(
        "Warp and lane come from the row and column in the matrix here. They belong to the block: number the "
        "threads of the block, with `tx`, `ty` and `dx` alone.",
        lambda b, t, d: divmod(_place(b, t, d)[0] * d[0] + _place(b, t, d)[1], WARP),
    ),
    Slip(
        "Warp and lane come from the column in the matrix alone here. Number the threads of the block, x "
        "first: `ty * dx + tx`, without `blockIdx`.",
        lambda b, t, d: divmod(_place(b, t, d)[1], WARP),
    ),
    Slip(
        "A warp is taken for 32 rows here, and a lane for a column. A warp is 32 threads of the ribbon: "
        "number the threads of the block, x first, without `blockIdx`: `ty * dx + tx`.",
        lambda b, t, d: (_place(b, t, d)[0] // WARP, _place(b, t, d)[1] % WARP),
    ),
    Slip(
        "The rows of the block are left out: this numbers the threads of one row. `ty` whole rows of `dx` "
        "threads come before this one.",
        lambda b, t, d: divmod(t[0], WARP),
    ),
)


@table_exercise(
    start="`where` returns None. Start with the row: how many rows of threads are above this one, counting "
    "whole blocks first? Return `(row, col, warp, lane)`.",
    hints=(
        "The row depends on `y` only: `by` whole blocks of `dy` rows are above, then `ty` rows of your own "
        "block.",
        "Give every thread of the block a number, x first: `ty` whole rows of `dx` threads come before you.",
        "With `linear = ty * dx + tx`: the warp is `linear // 32`, the lane `linear % 32`.",
    ),
    cases=THREADS,
    parts=(Part("(row, col)", slice(0, 2), PLACE_SLIPS), Part("(warp, lane)", slice(2, 4), LANE_SLIPS)),
    read=whole_numbers("row", "col", "warp", "lane"),
    show=lambda case: "where(block={}, thread={}, block_dim={})".format(*case),
    passed=f"{len(THREADS)} threads in blocks of {SHAPES} shapes: row, column, warp and lane are all right.",
)
def where(block, thread, block_dim):
    """where(block, thread, block_dim) -> (row, col, warp, lane) of a thread; the arguments are (x, y)."""
    return (*_place(block, thread, block_dim), *divmod(_linear(thread, block_dim), WARP))
