"""Checks ``tile_walk``: which elements a thread fetches of a tile that is not shaped like the block."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from math import ceil, floor

import numpy as np
from numba import cuda

from gemm_course.checks.engines.tables import Place, Slip, places, table_exercise
from gemm_course.kernels import LADDER
from lockstep import Watch, emulate

# The keys are (THREADS, BM, BK) of each tile, the values BN of the kernel that fetches it. A tile with fewer
# rows than the kernel's is the last one, at A's edge. In the first tile each thread has three elements: with
# two, a list of rows and a list of columns would look like two pairs.
BLOCK_COLUMNS = {
    (16, 4, 12): 4,
    (16, 4, 8): 4,
    (64, 8, 16): 8,
    (8, 3, 6): 2,
    (4, 2, 6): 2,
    (16, 3, 12): 4,
    (16, 1, 12): 4,
}
# The notebook shows the walk over this tile.
EXAMPLE = (8, 3, 6)
AT_THE_EDGE = [tile for tile, BN in BLOCK_COLUMNS.items() if tile[1] < tile[0] // BN]
CASES = [(tid, *tile) for tile in BLOCK_COLUMNS for tid in range(tile[0])]


# ---- what goes wrong: t, n, BM and BK are the arguments of walk -------------------------------------------


def _cut(elements: Iterable[int], width: int) -> list[Place]:
    """Return the places of elements that are numbered row by row, in rows of this width."""
    return [(e // width, e % width) for e in elements]


def _passes(number: Callable[[float], int], checked: bool = False) -> Callable[..., list[Place]]:
    """Return a walk of ``number(elements / threads)`` passes, with or without a bounds check in each."""

    def walk(t, n, BM, BK):
        elements = [t + i * n for i in range(number(BM * BK / n))]
        return _cut([e for e in elements if e < BM * BK or not checked], BK)

    return walk


def _shares(size: Callable[[float], int]) -> Callable[..., list[Place]]:
    """Return a walk over ``size(elements / threads)`` neighbours, a chunk of the tile."""
    return lambda t, n, BM, BK: _cut(range(BM * BK)[t * size(BM * BK / n) :][: size(BM * BK / n)], BK)


def _by_number(number: Callable[[float], int] | None, t, n, BM, BK) -> list[Place]:
    """Return the places of elements `t * n + i`, for as many `i` as there are passes, or for `n` of them."""
    passes = n if number is None else number(BM * BK / n)
    return _cut([e for e in range(t * n, t * n + passes) if e < BM * BK], BK)


def _whole(passes: float) -> int:
    return max(1, floor(passes))


ONE_PASS = (
    "That is only the first pass. The tile has BM * BK elements: the thread moves on, THREADS elements "
    "(not rows) further each time, until it is past the end of the tile."
)
CHUNKS = (
    "That gives each thread a chunk of its own. Every element may be fetched once, but neighbouring threads "
    "then load addresses a whole chunk apart, and a request of a warp moves many sectors. Neighbours must "
    "load neighbours: the thread's next element is THREADS further on."
)
SWAPPED = (
    "`tid` and `i` are swapped: `tid * THREADS + i` gives each thread elements that lie side by side. In "
    "pass `i` thread `tid` fetches element `tid + i * THREADS`, and its neighbours fetch those beside it."
)
ROUNDED_DOWN = (
    "The number of passes is rounded down. Where THREADS does not divide BM * BK, there is one more pass, in "
    "which only some threads fetch an element."
)
ROUNDED = (
    "The number of passes is rounded, and the same for all threads. But where THREADS does not divide "
    "BM * BK, only some threads fetch an element in the last pass, or in the only one. Let each thread go on "
    "as long as its own element is below BM * BK."
)
NO_FIRST_PASS = (
    "The first pass is missing: thread `tid` begins at element `tid`. The first `i` in `tid + i * THREADS` "
    "is 0."
)
NO_LAST_PASS = (
    "The last pass is missing. A pass counts if the thread's own element `e` is in the tile, `e < BM * BK`; "
    "the next one, `e + THREADS`, need not be."
)
FRESH_ROW = (
    "Each pass begins on a new row here, and no thread fetches the rest of the row in which the pass before "
    "ended. A pass begins at the element after the last one of the pass before: in the picture the second "
    "begins at (1, 2)."
)
ROW_BY_ROW = (
    "Each row is walked by itself here, and thread 0 begins every one. Passes do not stop at the end of a "
    "row: they go over all elements of the tile, and in the picture thread 6 begins row 1."
)

SLIPS = (
    Slip("No thread fetches anything. Collect the positions in a list and return it.", lambda *_: []),
    # These slips get the row and the column of an element wrong.
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
        "Divide by BK, the length of the tile's rows. THREADS is how far a thread moves on with each pass.",
        lambda t, n, BM, BK: _cut(range(t, BM * BK, n), n),
    ),
    Slip(
        "That walks down the columns of the tile. Neighbouring threads then load elements a whole row of A "
        "apart, so number the elements along the rows.",
        lambda t, n, BM, BK: [(e % BM, e // BM) for e in range(t, BM * BK, n)],
    ),
    Slip(
        "Rows and columns count from 0: the tile's first element is (0, 0).",
        lambda t, n, BM, BK: [(r + 1, c + 1) for r, c in _cut(range(t, BM * BK, n), BK)],
    ),
    # These slips give a thread the wrong share of the elements.
    Slip(
        "That is the whole tile. Return only what thread `tid` fetches.",
        lambda t, n, BM, BK: _cut(range(BM * BK), BK),
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
        "The thread moves on by BK, a row, onto elements of other threads. In each pass the block fetches "
        "THREADS elements, so every thread moves on by THREADS.",
        lambda t, n, BM, BK: _cut(range(t, BM * BK, BK), BK),
    ),
    *(
        Slip("Elements count from 0: thread 0 begins at element 0, the tile's first.", elements)
        for elements in (
            lambda t, n, BM, BK: _cut(range(t - 1, BM * BK - 1, n), BK),
            lambda t, n, BM, BK: _cut(range(t + 1, BM * BK, n), BK),
            lambda t, n, BM, BK: _cut(range(t + 1, BM * BK + 1, n), BK),
        )
    ),
    *(Slip(SWAPPED, partial(_by_number, number)) for number in (ceil, floor, None)),
    Slip(CHUNKS, _shares(floor)),
    Slip(CHUNKS, _shares(ceil)),
    # These slips make the wrong number of passes.
    Slip(ONE_PASS, lambda t, n, BM, BK: _cut([t], BK)),
    Slip(ONE_PASS, lambda t, n, BM, BK: _cut(range(t, BM * BK, n), BK)[:1]),
    Slip(ROUNDED_DOWN, _passes(floor)),
    Slip(ROUNDED, _passes(_whole)),
    Slip(ROUNDED, _passes(_whole, checked=True)),
    Slip(ROUNDED, _passes(round)),
    Slip(ROUNDED, _passes(round, checked=True)),
    Slip(
        "All threads take part in all passes. In the last one some are beyond the tile: stop at BM * BK.",
        _passes(ceil),
    ),
    Slip(
        "There is one pass too many where THREADS divides BM * BK, and elsewhere some threads are beyond the "
        "tile in the last one. Whatever the number of passes, fetch an element only if it is below BM * BK.",
        _passes(lambda passes: floor(passes) + 1),
    ),
    Slip(
        "The walk goes on into row BM, below the tile, whose rows are 0 to BM - 1: `<`, not `<=`.",
        lambda t, n, BM, BK: _cut(range(t, (BM + 1) * BK, n), BK),
    ),
    Slip(
        "The last pass goes one element too far: the tile's elements have the numbers 0 to BM * BK - 1.",
        lambda t, n, BM, BK: _cut(range(t, BM * BK + 1, n), BK),
    ),
    Slip(
        "The last element of the tile, number BM * BK - 1, is left out.",
        lambda t, n, BM, BK: _cut(range(t, BM * BK - 1, n), BK),
    ),
    Slip(NO_FIRST_PASS, lambda t, n, BM, BK: _cut(range(t + n, BM * BK, n), BK)),
    Slip(NO_FIRST_PASS, lambda t, n, BM, BK: _passes(floor)(t + n, n, BM, BK)),
    Slip(NO_FIRST_PASS, lambda t, n, BM, BK: _passes(floor)(t, n, BM, BK)[1:]),
    Slip(NO_LAST_PASS, lambda t, n, BM, BK: _cut(range(t, BM * BK - n + 1, n), BK)),
    Slip(NO_LAST_PASS, lambda t, n, BM, BK: _cut(range(t, BM * BK - n, n), BK)),
    # These slips begin a new row with each pass, or walk row by row.
    Slip(
        "The column stays the same in all passes, and that is right only where THREADS is a multiple of BK. "
        "Keep counting in elements, `tid + i * THREADS`, and divide afterwards.",
        lambda t, n, BM, BK: [(row, t % BK) for row in range(t // BK, BM, max(1, n // BK))],
    ),
    Slip(FRESH_ROW, lambda t, n, BM, BK: _cut(range(t, BM * BK, ceil(n / BK) * BK), BK)),
    Slip(ROW_BY_ROW, lambda t, n, BM, BK: [(row, c) for row in range(BM) for c in range(t, BK, n)]),
)


def _what_is_wrong(cases: Sequence[tuple], answers: Sequence[list[Place]]) -> str:
    """Return a message for answers that no slip explains: a wrong coverage, thread or order."""
    right = [tile_walk.right(*case) for case in cases]
    wrong = next(_coverage(cases, answers), "")
    if wrong and all(a == r for case, a, r in zip(cases, answers, right) if case[1:] == EXAMPLE):
        return f"Right for the example, 8 threads and a tile of 3 × 6, but not for other tiles. {wrong}"
    if wrong:
        return wrong
    if all(sorted(answer) == sorted(theirs) for answer, theirs in zip(answers, right)):
        return "Right positions, wrong order: a thread's elements come in the order of the passes."
    if all(map(_side_by_side, cases, answers)):
        return (
            "Each element is fetched once, but a thread's elements lie side by side. Neighbouring threads "
            "must take neighbouring elements, so that the loads coalesce: a thread's next element is THREADS "
            "further on."
        )
    return "Each element is fetched once, but not by the thread that fetches it in the kernel."


def _side_by_side(case: tuple, answer: list[Place]) -> bool:
    """Return whether a thread's elements follow one another in the tile."""
    numbers = sorted(row * case[-1] + column for row, column in answer)
    return numbers == list(range(numbers[0], numbers[0] + len(numbers))) if numbers else True


def _coverage(cases: Sequence[tuple], answers: Sequence[list[Place]]) -> Iterator[str]:
    """Yield for each tile that has all its answers its first element that is not fetched once."""
    walks = defaultdict(list)
    for case, answer in zip(cases, answers):
        walks[case[1:]].append(answer)
    for (threads, rows, columns), walked in walks.items():
        if len(walked) < threads:
            # A later call failed, so the answers for this tile are not complete.
            return
        owners = defaultdict(list)
        for tid, answer in enumerate(walked):
            for place in answer:
                owners[place].append(tid)
        tile = f"With {threads} threads and a tile of {rows} × {columns},"
        for place in np.ndindex(rows, columns):
            if len(owners[place]) != 1:
                yield f"{tile} {_who_fetches(place, owners[place])}."
        for place in sorted(set(owners) - set(np.ndindex(rows, columns))):
            yield f"{tile} there is no element {place}, but thread {owners[place][0]} fetches it."


def _who_fetches(place: Place, threads: list[int]) -> str:
    if not threads:
        return f"no thread fetches element {place}"
    if len(set(threads)) == 1:
        return f"thread {threads[0]} fetches element {place} more than once"
    if len(threads) > 3:
        return f"{len(threads)} threads fetch element {place}, among them {threads[0]} and {threads[1]}"
    return f"threads {', '.join(map(str, threads[:-1]))} and {threads[-1]} fetch the same element {place}"


def _if_none(case: tuple, right: list[Place]) -> str:
    tid, threads, rows, columns = case
    of = f"Thread {tid} of {threads} has {{}} to fetch from a tile of {rows} × {columns}."
    if right:
        return of.format("elements") + " But the function returned None: end each path with a `return`."
    return of.format("nothing") + " The function returned None; return an empty list."


# ---- the exercise ------------------------------------------------------------------------------------------


@table_exercise(
    start="number the tile's elements row by row. Which one does thread `tid` fetch in the first pass?",
    hints=(
        "Element `e` of the tile is in row `e // BK`, column `e % BK`.",
        "Thread `tid` fetches element `tid` first. In each further pass every thread moves on by THREADS, as "
        "long as the tile has an element there.",
        "So the thread's elements are `range(tid, BM * BK, THREADS)`.",
    ),
    cases=CASES,
    slips=SLIPS,
    read=places,
    otherwise=_what_is_wrong,
    if_none=_if_none,
    passed="The emulator has recorded what the threads of `block_tiled` load, and it is the same: "
    f"{len(CASES)} threads in all, in {len(BLOCK_COLUMNS)} shapes of tile, {len(AT_THE_EDGE)} of them cut "
    "off at the matrix's edge.",
)
def tile_walk(tid, THREADS, BM, BK):
    """walk(tid, THREADS, BM, BK) -> the (row, column) of a BM x BK tile that a thread fetches, in order."""
    return _walks(THREADS, BM, BK).get(tid, [])


@cache
def _walks(THREADS: int, BM: int, BK: int) -> dict[int, list[Place]]:
    """Trace with the emulator what each thread of a block of `block_tiled` loads from an A of BM rows.

    Not every block here can fetch all of B's tile too, as the stage requires. A's loads do not depend on it.
    """
    stage, BN = LADDER["block_tiled"], BLOCK_COLUMNS[THREADS, BM, BK]
    kernel = cuda.jit(stage.build(BM=THREADS // BN, BN=BN, BK=BK))
    A, B, C = (np.zeros(shape, np.float32) for shape in ((BM, BK), (BK, BN), (BM, BN)))
    problem = (BM, BN, BK, np.float32(1), A, B, np.float32(0), C)
    report = emulate(kernel, (1, 1), (THREADS,), *problem, watch=Watch(block=(0, 0, 0)))
    loads = report.trace.query("array == 'A' and op == 'load'")
    return {thread: list(elements) for thread, elements in loads.groupby("thread")["element"]}
