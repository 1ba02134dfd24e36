"""Shows the first notebook's explorers: threads in blocks and grids, and addresses."""

from __future__ import annotations

from gemm_course.figures import memory, threads
from gemm_course.figures.picture import Picture
from gemm_course.model.thread_ids import coordinates
from gemm_course.widgets._explorer import Explorer, explorer

_BLOCKS = [(4, 1), (5, 7), (8, 4), (16, 8), (16, 16), (32, 8), (48, 2), (64, 4), (256, 1), (32, 32)]

# The matrix that is covered with blocks has at most this many rows or columns.
_MOST = 40
# A row of the matrix in memory has at most this many floats.
_WIDEST = 20


def _named(shapes) -> list:
    return [(f"{x} × {y}", (x, y)) for x, y in shapes]


def _check(most: int, **numbers: int) -> None:
    for name, number in numbers.items():
        if not 1 <= number <= most:
            raise ValueError(f"{name} must be from 1 to {most}, not {number}")


@explorer
def block() -> Explorer:
    """Show how a block's threads form warps, for any block shape and any thread."""
    return Explorer(
        lambda block, x, y: draw_block(block, (x, y)),
        {
            "block": ("block (x × y)", _named(_BLOCKS), (16, 8)),
            "x": ("threadIdx.x", lambda chosen: range(chosen["block"][0]), 3),
            "y": ("threadIdx.y", lambda chosen: range(chosen["block"][1]), 2),
        },
    )


def draw_block(block: tuple[int, int], thread: tuple[int, int]) -> Picture:
    """Draw a block of (x, y) threads and mark ``thread``, also (x, y)."""
    return threads.ribbon(coordinates((1, 1), block)[0, 0], thread)


@explorer
def grid(rows: int = 10, columns: int = 18) -> Explorer:
    """Show how blocks cover a matrix of ``rows`` x ``columns``, and which element one thread computes."""

    _check(_MOST, rows=rows, columns=columns)

    def blocks(axis):
        extent = (columns, rows)[axis]
        return lambda chosen: range(-(-extent // chosen["block"][axis]))

    return Explorer(
        lambda block, bx, by, x, y: draw_grid((rows, columns), block, (bx, by), (x, y)),
        {
            "block": (
                "block (x × y)",
                _named([(2, 2), (4, 2), (8, 4), (4, 8), (16, 2), (5, 3), (6, 5), (9, 2)]),
                (8, 4),
            ),
            "bx": ("blockIdx.x", blocks(0), 0),
            "by": ("blockIdx.y", blocks(1), 1),
            "x": ("threadIdx.x", lambda chosen: range(chosen["block"][0]), 3),
            "y": ("threadIdx.y", lambda chosen: range(chosen["block"][1]), 2),
        },
    )


def draw_grid(
    shape: tuple[int, int], block: tuple[int, int], chosen: tuple[int, int], thread: tuple[int, int]
) -> Picture:
    """Draw how blocks of (x, y) threads cover a matrix of (rows, columns), and mark a thread of one block."""
    (rows, columns), (across, down) = shape, block
    ids = coordinates((-(-columns // across), -(-rows // down)), block)
    return threads.grid_of_blocks(ids, shape, chosen, thread)


@explorer
def addresses(rows: int = 5, columns: int = 13) -> Explorer:
    """Show where an element of a row-major matrix lies in memory, for several leading dimensions."""
    _check(_WIDEST, rows=rows, columns=columns)
    return Explorer(
        lambda leading, row, column: memory.row_major((rows, columns), leading, (row, column)),
        {
            "leading": ("leading dimension", range(columns, _WIDEST + 1), max(columns, 16)),
            "row": ("row", range(rows), min(2, rows - 1)),
            "column": ("column", range(columns), min(5, columns - 1)),
        },
    )
