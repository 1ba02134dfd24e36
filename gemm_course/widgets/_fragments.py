"""Shows which lane holds what of a Tensor Core's fragments, and how padding separates rows."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numba import cuda, float32
from numba.types import float16

from gemm_course.figures import fragments as figure
from gemm_course.figures.picture import Picture
from gemm_course.model.requests import requests
from gemm_course.widgets._explorer import Explorer, explorer
from lockstep import Watch, emulate
from lockstep.intrinsics import ROW_MAJOR, unroll, wmma_load_a, wmma_load_b, wmma_store
from lockstep.intrinsics import fragments as layouts

SIDE = figure.SIDE
# These are the layouts of the operands of mma.sync.
MMA = {"A": layouts.A, "B": layouts.B}
MATRICES = (("A (float16)", "A"), ("B (float16)", "B"), ("C (float32)", "C"))
PADS = (0, 8, 16, 24, 32, 40, 48, 56, 64)
WIDTHS = (16, 32, 64, 128)


@explorer
def fragment(by: str = "element") -> Explorer:
    """Show which lane of a warp holds which element of a 16 by 16 matrix.

    ``by`` is "element" to choose an element and see its lane, or "lane" to choose a lane and see its
    elements. "mma" is like "element", for the operands of mma.sync, of which B is 16 by 8. Raise ValueError
    for anything else.
    """
    if by == "mma":
        chosen = {
            "row": ("row", range(SIDE), 3),
            "column": ("column", lambda above: range(MMA[above["matrix"]].shape[1]), 5),
        }
        return Explorer(
            draw_mma, {"matrix": ("matrix", [("A (16 × 16)", "A"), ("B (16 × 8)", "B")], "A"), **chosen}
        )
    matrix = {"matrix": ("matrix", list(MATRICES), "A")}
    if by == "element":
        chosen = {"row": ("row", range(SIDE), 3), "column": ("column", range(SIDE), 5)}
        return Explorer(draw, {**matrix, **chosen})
    if by == "lane":
        chosen = {"lane": ("lane", range(32), 14), "place": ("its element", range(8), 0)}
        return Explorer(draw_lane, {**matrix, **chosen})
    raise ValueError(f'by must be "element", "lane" or "mma", not {by!r}')


def draw(matrix: str, row: int, column: int) -> Picture:
    """Draw one element of "A", "B" or "C", and all elements that its lane holds."""
    return figure.one_element(held(matrix), (row, column))


def draw_mma(matrix: str, row: int, column: int) -> Picture:
    """Draw one element of an operand of mma.sync, and all elements that its lane holds."""
    layout = MMA[matrix]
    lanes = enumerate(zip(layout.rows.tolist(), layout.columns.tolist(), strict=True))
    held = {lane: list(zip(rows, columns, strict=True)) for lane, (rows, columns) in lanes}
    return figure.one_element(figure.Fragment(matrix, held, 2), (row, column))


def draw_lane(matrix: str, lane: int, place: int) -> Picture:
    """Draw element ``place`` of a lane's fragment, and all elements that the lane holds."""
    fragment = held(matrix)
    return figure.one_element(fragment, fragment.held[lane][place])


@lru_cache(3)
def held(matrix: str) -> figure.Fragment:
    """Return how a warp holds a matrix, by a kernel in which each lane reports the numbers that it holds."""
    numbers = np.arange(SIDE * SIDE, dtype=np.float32).reshape(SIDE, SIDE)
    if matrix == "C":
        out = np.zeros((SIDE, SIDE), np.float32)
        emulate(_stores_its_places, 1, 32, out)
        # Each number is 8 * lane + place.
        owner = out.astype(int)
        elements = [
            [tuple(map(int, np.argwhere(owner == 8 * i + e)[0])) for e in range(8)] for i in range(32)
        ]
        return figure.Fragment("C", dict(enumerate(elements)), 1)
    out = np.zeros((32, SIDE), np.float32)
    emulate(_reports_its_elements(matrix), 1, 32, numbers.astype(np.float16), out)
    elements = [[divmod(int(number), SIDE) for number in lane] for lane in out]
    return figure.Fragment(matrix, dict(enumerate(elements)), 2)


def _reports_its_elements(matrix: str):
    load = {"A": wmma_load_a, "B": wmma_load_b}[matrix]

    @cuda.jit
    def kernel(numbers, out):
        tile = cuda.shared.array((SIDE, SIDE), float16, 32)
        fragment = cuda.local.array(16, float16)
        lane = cuda.threadIdx.x
        for e in unroll(range(8)):
            tile[lane // 2, lane % 2 * 8 + e] = numbers[lane // 2, lane % 2 * 8 + e]
        cuda.syncwarp()
        load(fragment, tile, (0, 0), ROW_MAJOR)
        for e in unroll(range(16)):
            out[lane, e] = fragment[e]

    return kernel


@cuda.jit
def _stores_its_places(out):
    matrix = cuda.shared.array((SIDE, SIDE), float32, 32)
    fragment = cuda.local.array(8, float32)
    lane = cuda.threadIdx.x
    for e in unroll(range(8)):
        fragment[e] = 8 * lane + e
    wmma_store(matrix, (0, 0), fragment, ROW_MAJOR)
    cuda.syncwarp()
    for e in unroll(range(8)):
        out[lane // 2, lane % 2 * 8 + e] = matrix[lane // 2, lane % 2 * 8 + e]


@explorer
def padding() -> Explorer:
    """Show in which banks the rows of a fragment lie, for rows of any width and padding, in FP16 values."""
    controls = {"width": ("FP16 values per row", WIDTHS, 16), "padding": ("padding (FP16 values)", PADS, 0)}
    return Explorer(draw_rows, controls)


def draw_rows(width: int, padding: int) -> Picture:
    """Draw the first 8 rows that a load of a fragment reads, from rows of ``width + padding`` FP16 values."""
    report = _one_load(width + padding)
    load = report.accesses.query("space == 'shared' and op == 'load'").iloc[0]
    return figure.eight_rows(
        requests(report.trace, space="shared", op="load")[0],
        int(load["wavefronts"]) // 4,
        2 * (width + padding),
    )


@lru_cache(64)
def _one_load(length: int):
    @cuda.jit
    def kernel(out):
        As = cuda.shared.array((SIDE, length), float16, 32)
        fragment = cuda.local.array(16, float16)
        lane = cuda.threadIdx.x
        for e in unroll(range(8)):
            As[lane // 2, lane % 2 * 8 + e] = float16(0)
        cuda.syncwarp()
        wmma_load_a(fragment, As, (0, 0), ROW_MAJOR)
        out[lane] = fragment[0]

    return emulate(kernel, 1, 32, np.zeros(32, np.float16), watch=Watch())
