"""Exercise 03.6: which elements of a tile a thread fetches, where the tile is no copy of the block."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache

import numpy as np

from gemm_course.checks.engines.tables import Place, Slip, places, table_exercise
from gemm_course.emulator import Watch, emulate
from gemm_course.kernels import LADDER

# THREADS, BM and BK, and for the kernel BN. Tiles of fewer rows than its own are its last ones, at A's edge.
BLOCK_COLUMNS = {(16, 4, 8): 4, (64, 8, 16): 8, (16, 4, 12): 4, (4, 2, 6): 2, (16, 3, 12): 4, (16, 1, 12): 4}
CASES = [(tid, *tile) for tile in BLOCK_COLUMNS for tid in range(tile[0])]


def _cut(elements: Iterable[int], width: int) -> list[Place]:
    """Places of elements that are numbered row by row, in rows of this width."""
    return [(e // width, e % width) for e in elements]


ONE_PASS = (
    "That is only the first pass. The tile has BM * BK elements: the thread goes on, THREADS elements "
    "further each time, until the tile ends."
)
CHUNKS = (
    "That gives each thread a chunk of its own. Every element may be fetched once, but neighbouring threads "
    "then load addresses a whole chunk apart, and a request of a warp moves many sectors. Neighbours must "
    "load neighbours: the thread's next element is THREADS further on."
)
SLIPS = (
    Slip("No thread fetches anything. Collect the places in a list and return it.", lambda t, n, BM, BK: []),
    Slip(
        "Row and column are swapped. A row of the tile is BK elements long: `//` gives the row, `%` the "
        "column.",
        lambda t, n, BM, BK: [(c, r) for r, c in _cut(range(t, BM * BK, n), BK)],
    ),
    Slip(
        "Divide by BK, the length of the tile's rows. BM is how many rows there are.",
        lambda t, n, BM, BK: _cut(range(t, BM * BK, n), BM),
    ),
    Slip(
        "Divide by BK, the length of the tile's rows. THREADS is how far a thread goes on from pass to pass.",
        lambda t, n, BM, BK: _cut(range(t, BM * BK, n), n),
    ),
    Slip(ONE_PASS, lambda t, n, BM, BK: _cut([t], BK)),
    Slip(ONE_PASS, lambda t, n, BM, BK: _cut(range(t, BM * BK, n), BK)[:1]),
    Slip(
        CHUNKS,
        lambda t, n, BM, BK: _cut(range(BM * BK)[t * -(-BM * BK // n) : (t + 1) * -(-BM * BK // n)], BK),
    ),
    Slip(CHUNKS, lambda t, n, BM, BK: _cut(range(t * (BM * BK // n), (t + 1) * (BM * BK // n)), BK)),
    Slip(
        "The last pass goes one element too far: the tile's elements have the numbers 0 to BM * BK - 1.",
        lambda t, n, BM, BK: _cut(range(t, BM * BK + 1, n), BK),
    ),
    Slip(
        "The last element of the tile, number BM * BK - 1, is left out.",
        lambda t, n, BM, BK: _cut(range(t, BM * BK - 1, n), BK),
    ),
    Slip(
        "`tid` is missing: all threads fetch the same elements. Thread `tid` begins at element `tid`.",
        lambda t, n, BM, BK: _cut(range(0, BM * BK, n), BK),
    ),
    Slip(
        "From its first element on, this thread fetches all that follow, the other threads' too. Its next "
        "element is THREADS further on.",
        lambda t, n, BM, BK: _cut(range(t, BM * BK), BK),
    ),
    Slip(
        "The number of passes is rounded down. Where THREADS does not divide BM * BK, there is one more "
        "pass, in which only some threads fetch an element.",
        lambda t, n, BM, BK: _cut(range(t, BM * BK // n * n, n), BK),
    ),
    Slip(
        "All threads take part in all passes. In the last one some are beyond the tile: stop at BM * BK.",
        lambda t, n, BM, BK: _cut(range(t, -(-BM * BK // n) * n, n), BK),
    ),
    Slip(
        "That walks down the columns of the tile. Neighbouring threads then load elements a whole row of A "
        "apart, so number the elements along the rows.",
        lambda t, n, BM, BK: [(e % BM, e // BM) for e in range(t, BM * BK, n)],
    ),
    Slip(
        "The thread goes on by BK, a row, onto elements of other threads. In each pass the block fetches "
        "THREADS elements, so everybody goes on by THREADS.",
        lambda t, n, BM, BK: _cut(range(t, BM * BK, BK), BK),
    ),
    Slip(
        "The column stays the same in all passes, and that is right only where THREADS is a multiple of BK. "
        "Count on in elements, `tid + i * THREADS`, and divide then.",
        lambda t, n, BM, BK: [(row, t % BK) for row in range(t // BK, BM, max(1, n // BK))],
    ),
)


def _times(cases: Sequence[tuple], answers: Sequence[list[Place]]) -> str:
    """The first element of a tile that is not fetched once."""
    for threads, rows, columns in BLOCK_COLUMNS:
        of_tile = (a for case, a in zip(cases, answers) if case[1:] == (threads, rows, columns))
        times = Counter(place for answer in of_tile for place in answer)
        where = f"{threads} threads and a tile of {rows} × {columns}"
        for place in np.ndindex(rows, columns):
            if times.pop(place, 0) != 1:
                return f"With {where}, element {place} is not fetched exactly once."
        if times:
            return f"With {where}, there is no element {min(times)}, but a thread fetches it."
    return "Each element is fetched once, but by another thread or in another order than in the kernel."


def _difference(case: tuple, answer: list[Place], right: list[Place]) -> str:
    shown = [f"{str(each[:4])[:-1]}, ...]" if len(each) > 4 else str(each) for each in (answer, right)]
    return f"First wrong case: `walk{case}` gives {shown[0]}, the kernel's thread fetches {shown[1]}."


@table_exercise(
    "03.6",
    start="number the tile's elements row by row. Which one does thread `tid` fetch in the first pass?",
    hints=(
        "Element `e` of the tile is in row `e // BK`, column `e % BK`.",
        "Thread `tid` fetches element `tid` first. In each further pass everybody goes on by THREADS, as "
        "long as the tile has an element there.",
        "So the thread's elements are `range(tid, BM * BK, THREADS)`.",
    ),
    cases=CASES,
    slips=SLIPS,
    read=places,
    difference=_difference,
    otherwise=_times,
    passed=f"The trace of v02 shows the same loads for all {len(CASES)} threads of {len(BLOCK_COLUMNS)} "
    "blocks. In every pass neighbouring threads load neighbouring elements.",
)
def tile_walk(tid, THREADS, BM, BK):
    """walk(tid, THREADS, BM, BK) -> the (row, column) of a BM x BK tile that a thread fetches, in order."""
    return _walks(THREADS, BM, BK).get(tid, [])


@cache
def _walks(THREADS: int, BM: int, BK: int) -> dict[int, list[Place]]:
    """What each thread of a block of v02 loads from an A of BM rows, traced by the emulator."""
    stage, BN = LADDER["block_tiled"], BLOCK_COLUMNS[THREADS, BM, BK]
    tiles = {"BM": THREADS // BN, "BN": BN, "BK": BK}
    A, B, C = (np.zeros(shape, np.float32) for shape in ((BM, BK), (BK, BN), (BM, BN)))
    problem = (BM, BN, BK, np.float32(1), A, B, np.float32(0), C)
    report = emulate(stage.kernel(tiles), (1, 1), stage.block(tiles), *problem, watch=Watch(block=(0, 0, 0)))
    loads = report.trace.query("array == 'A' and op == 'load'")
    return {thread: list(elements) for thread, elements in loads.groupby("thread")["element"]}
