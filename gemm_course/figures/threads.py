"""Draws threads in a block, blocks in a grid, and the ribbon of linear ids that is cut into warps."""

from __future__ import annotations

from math import ceil

import numpy as np

from gemm_course.figures import colours
from gemm_course.figures.picture import Picture
from gemm_course.figures.svg import PAGE, SMALL, Drawing

WARP = 32
# Neighbouring warps, and neighbouring blocks, alternate between these colours.
_STRIPES = (colours.IDLE, colours.STRIPE)


def ribbon(ids: np.ndarray, thread: tuple[int, int]) -> Picture:
    """Draw a block of threads with its linear ids cut into warps, and mark ``thread``, which is (x, y).

    ``ids`` is what the threads of one block wrote in `gemm_course.model.thread_ids.coordinates`. Its shape is
    (block y, block x, 5).
    """
    block = ids.shape[1], ids.shape[0]
    linear, warp, lane = (int(v) for v in ids[thread[1], thread[0], 2:])
    threads = block[0] * block[1]
    warps = -(-threads // WARP)
    idle = warps * WARP - threads
    drawing = Drawing(f"Thread ({thread[0]}, {thread[1]}) has linear id {linear}: warp {warp}, lane {lane}")
    y = _block(drawing, ids, block, thread, warp)
    y = _warps(drawing, threads, linear, y + 34)
    waste = f"{idle} lanes of the last warp are idle" if idle else "every lane has a thread"
    drawing.text(
        8, y + 22, f"{threads} threads = {warps} warp{'s' * (warps > 1)} of 32; {waste}", fill=colours.QUIET
    )
    return drawing.picture(
        f"A block of {block[0]} by {block[1]} threads. Linear id = y times {block[0]} plus x = {thread[1]}"
        f" times {block[0]}"
        f" plus {thread[0]}. {threads} threads make {warps} warps; {waste}."
    )


def _block(drawing: Drawing, ids, block, thread, warp) -> float:
    across, down = min(26, 440 / block[0]), min(22, 176 / block[1])
    left, top = 92, drawing.top + 18
    drawing.text(left, top - 6, "threadIdx.x →", fill=colours.QUIET)
    drawing.text(8, top + 14, "threadIdx.y ↓", fill=colours.QUIET, size=12)
    for y in range(block[1]):
        for x in range(block[0]):
            other = int(ids[y, x, 3])
            fill = colours.NOW_PALE if other == warp else _STRIPES[other % 2]
            drawing.rect(
                left + x * across,
                top + y * down,
                max(across - 1, across * 0.8),
                max(down - 1, down * 0.8),
                fill,
            )
            if across >= 26 and down >= 18:
                drawing.text(
                    left + (x + 0.5) * across - 0.5,
                    top + y * down + 15,
                    ids[y, x, 2],
                    size=12,
                    anchor="middle",
                )
    _outline(drawing, left + thread[0] * across, top + thread[1] * down, across, down)
    return top + block[1] * down


def _outline(drawing: Drawing, x, y, width, height, fill="none") -> None:
    """Outline one cell, at least 8 units large, so that it is visible among a thousand."""
    wide, high = max(width, 8), max(height, 8)
    drawing.rect(
        x - (wide - width) / 2 - 0.5,
        y - (high - height) / 2 - 0.5,
        wide,
        high,
        fill,
        stroke=colours.INK,
        line=2,
    )


def _warps(drawing: Drawing, threads: int, linear: int, top: float) -> float:
    """Draw the ribbon with a warp per row: all warps, or the six around the one that holds ``linear``."""
    warps, mine = -(-threads // WARP), linear // WARP
    first = max(0, min(mine - 2, warps - 6))
    shown = range(first, min(first + 6, warps))
    left, cell = 92, 13.75
    for lane in (0, 8, 16, 24, 31):
        drawing.text(left + (lane + 0.5) * cell, top - 5, lane, size=12, anchor="middle", fill=colours.QUIET)
    drawing.text(8, top - 5, "lane", size=SMALL, fill=colours.QUIET)
    for place, warp in enumerate(shown):
        y = top + place * 22
        drawing.text(8, y + 14, f"warp {warp}", bold=warp == mine)
        filled = min(WARP, threads - warp * WARP)
        for lane in range(filled):
            fill = colours.NOW_PALE if warp == mine else _STRIPES[warp % 2]
            drawing.rect(left + lane * cell, y, cell - 1, 18, fill)
        if filled < WARP:
            drawing.hatch(left + filled * cell, y, (WARP - filled) * cell - 1, 18)
        if warp == mine:
            _outline(drawing, left + (linear % WARP) * cell, y, cell - 1, 18, colours.NOW)
    bottom = top + len(shown) * 22
    hidden = warps - len(shown)
    if hidden:
        drawing.text(left, bottom + 12, f"… and {hidden} more warps", fill=colours.QUIET)
    return bottom + 14 * bool(hidden)


def grid_of_blocks(
    ids: np.ndarray, shape: tuple[int, int], chosen: tuple[int, int], thread: tuple[int, int]
) -> Picture:
    """Draw how the blocks of a grid cover a matrix of ``shape`` = (rows, columns).

    ``ids`` is what all threads wrote in `gemm_course.model.thread_ids.coordinates`. Its shape is (grid y,
    grid x, block y, block x, 5). ``chosen`` is a block and ``thread`` a thread in it, both (x, y).
    """
    rows, columns = shape
    grid, block = (ids.shape[1], ids.shape[0]), (ids.shape[3], ids.shape[2])
    row, column = (int(v) for v in ids[chosen[1], chosen[0], thread[1], thread[0], :2])
    inside = row < rows and column < columns
    fate = (
        f"computes C[{row}, {column}]"
        if inside
        else f"is outside C at [{row}, {column}]: the guard keeps it out"
    )
    drawing = Drawing(f"Thread ({thread[0]}, {thread[1]}) of block ({chosen[0]}, {chosen[1]}) {fate}")
    y = _covered_matrix(drawing, ids, shape, chosen, thread)
    own = (
        f"x: blockIdx {chosen[0]}, blockDim {block[0]}, threadIdx {thread[0]}  ->  column {column}",
        f"y: blockIdx {chosen[1]}, blockDim {block[1]}, threadIdx {thread[1]}  ->  row {row}",
    )
    for place, words in enumerate(own):
        drawing.text(8, y + 24 + 20 * place, words, size=13, mono=True)
    outside = grid[0] * block[0] * grid[1] * block[1] - rows * columns
    drawing.text(
        8,
        y + 70,
        f"{grid[0]} × {grid[1]} blocks; hatched: {outside} threads without an element",
        fill=colours.QUIET,
    )
    return drawing.picture(
        f"{grid[0]} by {grid[1]} blocks of {block[0]} by {block[1]} threads cover a matrix of {rows} rows"
        f" and {columns}"
        f" columns; {outside} threads have no element. {own[0]}; {own[1]}."
    )


def _covered_matrix(drawing: Drawing, ids: np.ndarray, shape, chosen, thread) -> float:
    down, across = ids.shape[0] * ids.shape[2], ids.shape[1] * ids.shape[3]
    left, top = 64, drawing.top + 18
    cell = min(26, (PAGE - left - 8) / across, 260 / down)
    drawing.text(8, top - 5, "column", size=SMALL, fill=colours.QUIET)
    drawing.text(8, top + 16, "row", size=SMALL, fill=colours.QUIET)
    # If a cell has no room for a number, only some of the rows and columns are numbered.
    every = ceil(18 / cell)
    for column in range(0, across, every):
        drawing.text(
            left + (column + 0.5) * cell, top - 5, column, size=12, anchor="middle", fill=colours.QUIET
        )
    for row in range(0, down, every):
        drawing.text(left - 8, top + (row + 0.5) * cell + 4, row, size=12, anchor="end", fill=colours.QUIET)
    for y, x in np.ndindex(ids.shape[:2]):
        mine = (x, y) == tuple(chosen)
        for v, u in np.ndindex(ids.shape[2:4]):
            row, column = int(ids[y, x, v, u, 0]), int(ids[y, x, v, u, 1])
            at = left + column * cell, top + row * cell
            inside = row < shape[0] and column < shape[1]
            shade = colours.NOW_PALE if mine else _STRIPES[(x + y) % 2]
            drawing.rect(*at, cell - 1, cell - 1, shade if inside else colours.PAPER)
            if not inside:
                drawing.hatch(*at, cell - 1, cell - 1)
    wide, high = ids.shape[3] * cell, ids.shape[2] * cell
    for y, x in np.ndindex(ids.shape[:2]):
        drawing.rect(
            left + x * wide - 0.5, top + y * high - 0.5, wide, high, "none", stroke=colours.QUIET, line=0.8
        )
    corner = left + chosen[0] * wide, top + chosen[1] * high
    drawing.rect(corner[0] - 0.5, corner[1] - 0.5, wide, high, "none", stroke=colours.INK, line=2)
    at = corner[0] + thread[0] * cell, corner[1] + thread[1] * cell
    row, column = ids[chosen[1], chosen[0], thread[1], thread[0], :2]
    inside = row < shape[0] and column < shape[1]
    _outline(drawing, *at, cell - 1, cell - 1, colours.C if inside else colours.PAPER)
    if not inside:
        drawing.hatch(*at, cell - 2, cell - 2, colours.INK)
    return top + down * cell
