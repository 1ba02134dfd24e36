"""Exercise 07.6: the heart of the warp-tiled kernel, between notebook 06's loading and storing."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from gemm_course.checks.core import exercise
from gemm_course.checks.engines.common_mistakes import Mistake
from gemm_course.checks.engines.gemm import GemmTrial, Likely
from gemm_course.checks.engines.gemm_factory import GemmFactory
from gemm_course.checks.engines.lessons import barriers, no_float64, not_in_shared, reads
from gemm_course.checks.engines.mistakes import mixed, result, taken_from
from gemm_course.checks.engines.problem import Geometry, Problem
from gemm_course.checks.engines.tiles import Tiles, tile_choices

from .heart import FINDINGS, check_begun, loaded_once, one_wavefront, refuse_misplaced
from .warp_layout import lane, step, steps_down, threads, warp

TILES = tile_choices(
    "BM BN BK WM WN TN WNITER",
    (32, 64, 8, 16, 32, 4, 1),
    (64, 72, 4, 32, 24, 4, 3),  # two warps down, three across
    (32, 32, 8, 32, 32, 8, 1),
)


@exercise(
    "07.6",
    start="work out `y0` and `x0`, the thread's first row and column; then fill `a` and `b` for each p.",
    hints=(
        "`y0` and `x0` are row and column of the first element in your owner map: i = j = e = 0.",
        "For each p: WMITER elements of As into `a`, WNITER · TN of Bs into `b`, then three loops that add "
        "`a[i] * b[j, e]` to `acc[i, j, e]`.",
        "As is transposed: `a[i] = As[p, y0 + i * WSUBM]`, and `b[j, e] = Bs[p, x0 + j * WSUBN + e]`.",
        "`lane_cols = WSUBN // TN`; `y0 = warp // (BN // WN) * WM + lane // lane_cols` and `x0 = warp % "
        "(BN // WN) * WN + lane % lane_cols * TN`.",
    ),
)
def warp_kernel(make_warp_tiled):
    """A factory of GEMM kernels with warp tiles, TM = 1, from BM, BN, BK, WM, WN, TN, WNITER."""
    proof, t = FACTORY.prove(make_warp_tiled), TILES[0]
    return (
        f"Right on {proof.problems} problems, with {len(TILES)} choices of tiles. With {t} a thread reads "
        f"{steps_down(t) + t.WNITER * t.TN} elements of shared memory for {_products(t)} multiply-adds; no "
        f"race, no bank conflict in reading. {proof.registers}"
    )


def _products(t: Tiles) -> int:
    """Multiply-adds of a thread in a step along k."""
    return steps_down(t) * t.WNITER * t.TN


def _geometry(t: Tiles) -> Geometry:
    """Blocks of threads in one row that cover BM by BN of C, as document 003 numbers them."""
    return Geometry((threads(t), 1), "columns", covers=(t.BM, t.BN), owner_of=partial(_owner, t))


def _owner(t: Tiles, row: int, col: int) -> str:
    (block_y, y), (block_x, x) = divmod(row, t.BM), divmod(col, t.BN)
    (down, right), number = step(t), y // t.WM * (t.BN // t.WN) + x // t.WN
    place = y % t.WM % down * (right // t.TN) + x % t.WN % right // t.TN
    return f"thread {32 * number + place} (warp {number}, lane {place}) of block ({block_x}, {block_y})"


# ---- who stores what ---------------------------------------------------------------------------------------


def _check_places(trials: Sequence[GemmTrial]) -> None:
    """Each element of a whole tile is stored by one thread; which, follows from y0 and x0."""
    starts = [(message, partial(_places, first)) for message, first in WRONG_STARTS]
    for trial in trials:
        refuse_misplaced(trial, starts, "`y0` or `x0` is not this thread's first row or column.")


def _places(first: Callable, t: Tiles, tid: int) -> list[tuple[int, int]]:
    """Where a thread that begins at first(t, tid) stores."""
    y0, x0 = first(t, tid)
    rows = [y0 + i * step(t)[0] for i in range(steps_down(t))]
    columns = [x0 + j * step(t)[1] + e for j in range(t.WNITER) for e in range(t.TN)]
    return [(row, col) for row in rows for col in columns]


def _first(t: Tiles, warp: tuple[int, int], lane: tuple[int, int]) -> tuple[int, int]:
    """y0 and x0 of a lane (row, column) of a warp (row, column)."""
    return warp[0] * t.WM + lane[0], warp[1] * t.WN + lane[1] * t.TN


WRONG_STARTS: tuple[tuple[str, Callable], ...] = (
    (
        "`//` and `%` are swapped for the lane. Lanes lie side by side first: the row of a lane is "
        "`lane // (WSUBN // TN)`, its column the remainder.",
        lambda t, tid: _first(t, warp(t, tid), lane(t, tid)[::-1]),
    ),
    (
        "`//` and `%` are swapped for the warp. Warps lie side by side first: the row of a warp is "
        "`warp // (BN // WN)`, its column the remainder.",
        lambda t, tid: _first(t, warp(t, tid)[::-1], lane(t, tid)),
    ),
    (
        "The thread's number in the block stands where its lane is meant, `threadIdx.x % 32`.",
        lambda t, tid: _first(t, warp(t, tid), divmod(tid, step(t)[1] // t.TN)),
    ),
    (
        "The warps are counted by rows: `BN // WN` of them lie side by side, not `BM // WM`.",
        lambda t, tid: _first(t, divmod(tid // 32, t.BM // t.WM), lane(t, tid)),
    ),
    (
        "The warp is left out: all warps store the same part of the tile. A warp's tile begins at row "
        "`warp // (BN // WN) * WM` and column `warp % (BN // WN) * WN`.",
        lambda t, tid: _first(t, (0, 0), lane(t, tid)),
    ),
    (
        "`x0` counts threads where it should count elements: a lane has TN columns side by side, so its "
        "column among the lanes is multiplied by TN.",
        lambda t, tid: (_first(t, warp(t, tid), lane(t, tid))[0], warp(t, tid)[1] * t.WN + lane(t, tid)[1]),
    ),
    (
        "All threads begin at row 0 and column 0. Work out `y0` and `x0` from warp and lane.",
        lambda t, tid: (0, 0),
    ),
    (
        "`y0` and `x0` are swapped: y0 is a row, x0 a column.",
        lambda t, tid: _first(t, warp(t, tid), lane(t, tid))[::-1],
    ),
)


# ---- wrong numbers -----------------------------------------------------------------------------------------


def _likely(t: Tiles) -> Likely:
    return Likely(_mistakes(t), findings=FINDINGS)


def _taken_from(t: Tiles, row: Callable | None = None, column: Callable | None = None) -> Callable:
    """C where a thread reads row(y0, i) of the tile for its row i, and column(x0, j, e) for its column."""
    return taken_from(
        (t.BM, t.BN),
        row and (lambda r: row(*_split(r, t.WM, step(t)[0]))),
        column and (lambda c: column(*_split_column(c, t))),
    )


def _added_to(t: Tiles, row: Callable | None = None, column: Callable | None = None) -> Callable:
    """C where what belongs to a row is added to row(y0, i), or to a column, to column(x0, j, e)."""
    down, right = np.eye(t.BM), np.eye(t.BN)
    if row:
        down = sum(np.outer(down[row(*_split(r, t.WM, step(t)[0]))], down[r]) for r in range(t.BM))
    if column:
        right = sum(np.outer(right[c], right[column(*_split_column(c, t))]) for c in range(t.BN))
    return mixed((t.BM, t.BN), down, right)


def _split(place: int, warp_tile: int, step: int) -> tuple[int, int]:
    """(first place of the thread in its warp's tile, which step) of a row or column of the tile."""
    within = place % warp_tile
    return place - within + within % step, within // step


def _split_column(place: int, t: Tiles) -> tuple[int, int, int]:
    """(first column of the thread, which step, which of its TN columns)."""
    first, j = _split(place, t.WN, step(t)[1])
    return first - first % t.TN, j, first % t.TN


def _steps_of_each_tile(t: Tiles, kept: Callable) -> Callable:
    """C where of each tile along k only some steps count: kept(p) says which."""

    def predict(q: Problem):
        steps = [p for p in range(q.k) if kept(p % t.BK)]
        return result(q, q.A[:, steps] @ q.B[steps]) if len(steps) < q.k else None

    return predict


def _mistakes(t: Tiles) -> tuple[Mistake, ...]:
    return (
        Mistake(
            "As is read at `y0 + i`: the stride is missing. The thread's rows lie WSUBM apart, `y0 + i * "
            "WSUBM`.",
            _taken_from(t, row=lambda y0, i: y0 + i),
        ),
        Mistake(
            "Bs is read at `x0 + j * TN + e`: the stride is missing. The thread's runs of TN columns lie "
            "WSUBN apart, `x0 + j * WSUBN + e`.",
            _taken_from(t, column=lambda x0, j, e: x0 + j * t.TN + e),
        ),
        Mistake(
            "All rows of a thread use the same element of As: it must go on with `i`, `y0 + i * WSUBM`.",
            _taken_from(t, row=lambda y0, i: y0),
        ),
        Mistake(
            "All columns of a step use the same element of Bs: it must go on with `e`.",
            _taken_from(t, column=lambda x0, j, e: x0 + j * step(t)[1]),
        ),
        Mistake(
            "All steps across use the same columns of Bs: they must go on with `j`, `x0 + j * WSUBN + e`.",
            _taken_from(t, column=lambda x0, j, e: x0 + e),
        ),
        Mistake(
            "`acc` has no `i`: what belongs to all rows of a thread is added up in one. `acc[i, j, e]` "
            "has a place for each result.",
            _added_to(t, row=lambda y0, i: y0),
        ),
        Mistake(
            "`acc` has no `e`: what belongs to the TN columns of a step is added up in one. `acc[i, j, "
            "e]` has a place for each result.",
            _added_to(t, column=lambda x0, j, e: x0 + j * step(t)[1]),
        ),
        Mistake(
            "Only the last step of each tile along k counts: the products are added after the loop over "
            "p, or p does not run. They belong in it.",
            _steps_of_each_tile(t, lambda p: p == t.BK - 1),
        ),
        Mistake(
            "Only the first step of each tile along k counts: p has to go from 0 to BK - 1.",
            _steps_of_each_tile(t, lambda p: p == 0),
        ),
        Mistake(
            "The last step of each tile along k is missing: p goes up to BK - 1.",
            _steps_of_each_tile(t, lambda p: p < t.BK - 1),
        ),
    )


FACTORY = GemmFactory(
    tiles=TILES,
    geometry=_geometry,
    likely=_likely,
    begun=check_begun,
    before_numbers=_check_places,
    row_multiple=4,
    in_registers=True,
    lessons=(
        no_float64,
        not_in_shared,
        loaded_once,
        reads(
            lambda t: (steps_down(t) + t.WNITER * t.TN) / _products(t),
            "First fill `a` with WMITER elements of As and `b` with WNITER · TN of Bs, then multiply: they "
            "serve all products of a step.",
        ),
        barriers(2),
        one_wavefront,
    ),
)
