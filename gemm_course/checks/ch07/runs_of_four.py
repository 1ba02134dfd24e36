"""Exercise 07.7: the heart of a warp-tiled kernel whose rows and columns come in runs of four."""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from gemm_course.checks.core import Refused, exercise
from gemm_course.checks.engines.common_mistakes import Mistake
from gemm_course.checks.engines.gemm import GemmTrial, Likely, try_on
from gemm_course.checks.engines.gemm_factory import GemmFactory
from gemm_course.checks.engines.lessons import barriers, in_registers, no_float64, reads
from gemm_course.checks.engines.mistakes import taken_from
from gemm_course.checks.engines.problem import Geometry
from gemm_course.checks.engines.tiles import Tiles, tile_choices
from gemm_course.emulator import Watch

from .heart import check_begun, loaded_once, one_wavefront, refuse_misplaced

TILES = tile_choices(
    "BM BN BK WM WN TM TN", (64, 32, 8, 64, 32, 8, 8), (64, 64, 4, 32, 32, 4, 8), (64, 128, 8, 32, 64, 8, 8)
)
Place = Callable[[Tiles, int, int], int]  # (tiles, thread, which of its rows or columns) -> row or column


@exercise(
    "07.7",
    start="work out `y0` and `x0`, the thread's first row and column; then read, then store.",
    hints=(
        "Lane number `lane` stands in row `lane // LANE_COLS` and column `lane % LANE_COLS` of the grid of "
        "lanes. Each of them starts with a run of four.",
        "So the lane's first row is `lane // LANE_COLS * 4`, after the rows of the warps above. Its second "
        "run begins as far on as all lanes of a column have rows in their first: `4 * LANE_ROWS`.",
        "Row `i` of a thread is element `i % 4` of run `i // 4`: `y0 + i // 4 * (4 * LANE_ROWS) + i % 4`.",
        "The same formula, with `j`, `x0` and `LANE_COLS`, gives its columns. Both stand twice: where As "
        "and Bs are read, and in `put(m, n, alpha, acc[i, j], beta, C, row, col)`.",
    ),
)
def runs_of_four(make_runs_of_four):
    """A factory of GEMM kernels from BM, BN, BK, WM, WN, TM, TN: rows and columns in runs of four."""
    proof = FACTORY.prove(make_runs_of_four)
    return (
        f"Right on {proof.problems} problems, with {len(TILES)} choices of tiles. A read of As takes one "
        "wavefront, and so does one of Bs; a thread's rows and columns come in runs of four, so that one "
        "128-bit instruction can read a run."
    )


def _geometry(t: Tiles) -> Geometry:
    """Blocks of threads in one row; which thread has which element is the learner's choice."""
    block = t.BM * t.BN // (t.TM * t.TN), 1
    return Geometry(block, "columns", covers=(t.BM, t.BN), owner_of=partial(_block_of, t))


def _block_of(t: Tiles, row: int, col: int) -> str:
    return f"block ({col // t.BN}, {row // t.BM})"


# ---- rows and columns, right and wrong ---------------------------------------------------------------------


def _lanes(t: Tiles) -> tuple[int, int]:
    return t.WM // t.TM, t.WN // t.TN


def _warp_row(t: Tiles, tid: int) -> int:
    return tid // 32 // (t.BN // t.WN) * t.WM


def _warp_column(t: Tiles, tid: int) -> int:
    return tid // 32 % (t.BN // t.WN) * t.WN


def _lane_row(t: Tiles, tid: int) -> int:
    return tid % 32 // _lanes(t)[1]


def _lane_column(t: Tiles, tid: int) -> int:
    return tid % 32 % _lanes(t)[1]


def _row(t: Tiles, tid: int, i: int) -> int:
    return _warp_row(t, tid) + _lane_row(t, tid) * 4 + i // 4 * (4 * _lanes(t)[0]) + i % 4


def _column(t: Tiles, tid: int, j: int) -> int:
    return _warp_column(t, tid) + _lane_column(t, tid) * 4 + j // 4 * (4 * _lanes(t)[1]) + j % 4


WRONG_PLACES: tuple[tuple[str, Place, Place], ...] = (
    (
        "`y0` and `x0` count lanes: a lane begins with a run of four, so its row and column among the lanes "
        "are multiplied by 4.",
        lambda t, tid, i: _row(t, tid, i) - 3 * _lane_row(t, tid),
        lambda t, tid, j: _column(t, tid, j) - 3 * _lane_column(t, tid),
    ),
    (
        "The warp is left out: all warps store the same part of the tile. A warp's tile begins at row `warp "
        "// (BN // WN) * WM` and column `warp % (BN // WN) * WN`.",
        lambda t, tid, i: _row(t, tid % 32, i),
        lambda t, tid, j: _column(t, tid % 32, j),
    ),
    (
        "The next run begins too early: between two runs of a thread lie those of all other lanes, four rows "
        "each. The step is `4 * LANE_ROWS`, and `4 * LANE_COLS` for columns.",
        lambda t, tid, i: _row(t, tid, i) - i // 4 * (3 * _lanes(t)[0]),
        lambda t, tid, j: _column(t, tid, j) - j // 4 * (3 * _lanes(t)[1]),
    ),
    (
        "LANE_ROWS and LANE_COLS are swapped: LANE_ROWS lanes stand one below the other, so rows step by `4 "
        "* LANE_ROWS`, columns by `4 * LANE_COLS`.",
        lambda t, tid, i: _row(t, tid, i) + i // 4 * 4 * (_lanes(t)[1] - _lanes(t)[0]),
        lambda t, tid, j: _column(t, tid, j) + j // 4 * 4 * (_lanes(t)[0] - _lanes(t)[1]),
    ),
    (
        "The runs are contiguous, but a lane begins only four rows after the one above it: these are the "
        "neighbour's rows as well. The thread's next run comes `4 * LANE_ROWS` further down.",
        lambda t, tid, i: _row(t, tid, 0) + i,
        lambda t, tid, j: _column(t, tid, 0) + j,
    ),
)


def _check_places(trials: Sequence[GemmTrial]) -> None:
    """Each element of a whole tile is stored by one thread."""
    likely = [(message, partial(_places, rows, columns)) for message, rows, columns in WRONG_PLACES]
    for trial in trials:
        refuse_misplaced(trial, likely, "The threads' rows or columns overlap, or leave gaps.")


def _places(rows: Place, columns: Place, t: Tiles, tid: int) -> list[tuple[int, int]]:
    return [(rows(t, tid, i), columns(t, tid, j)) for i in range(t.TM) for j in range(t.TN)]


def _likely(t: Tiles) -> Likely:
    """Reads that do not fit the stores, which are right."""
    thread_of_row = {_row(t, tid, i): (tid, i) for tid in range(_threads(t)) for i in range(t.TM)}
    thread_of_column = {_column(t, tid, j): (tid, j) for tid in range(_threads(t)) for j in range(t.TN)}

    def read(row: Place | None = None, column: Place | None = None):
        return taken_from(
            (t.BM, t.BN),
            row and (lambda r: row(t, *thread_of_row[r])),
            column and (lambda c: column(t, *thread_of_column[c])),
        )

    contiguous_rows, contiguous_columns = WRONG_PLACES[-1][1:]
    return Likely(
        (
            Mistake(
                "The results go to rows in runs of four, but As is read at `y0 + i`. The same row for both.",
                read(row=contiguous_rows),
            ),
            Mistake(
                "The results go to columns in runs of four, but Bs is read at `x0 + j`. The same column for "
                "both.",
                read(column=contiguous_columns),
            ),
            Mistake(
                "The results go to rows and columns in runs of four, but As is read at `y0 + i` and Bs at "
                "`x0 + j`. The same places for both.",
                read(contiguous_rows, contiguous_columns),
            ),
        )
    )


def _threads(t: Tiles) -> int:
    return _geometry(t).block[0]


# ---- lessons -----------------------------------------------------------------------------------------------


def _too_many_reads(trial: GemmTrial) -> Refused:
    t = trial.tiles
    a_step = trial.reads_per_multiply_add * t.TM * t.TN
    return Refused(
        "The result is right, but shared memory is read more often than needed. For each p read TM elements "
        "of As into `a` and TN of Bs into `b`; only then multiply.",
        f"{trial.about}: in a step along k a thread reads {a_step:g} elements of shared memory for its "
        f"{t.TM * t.TN} multiply-adds; {t.TM + t.TN} are enough.",
    )


def in_runs(trial: GemmTrial) -> None:
    """What a thread reads of one row of a tile lies in aligned runs of four."""
    if not (trial.accesses("load")["bits"] < 128).any():
        return
    watched = try_on(
        trial.kernel, trial.geometry, trial.problem, tiles=trial.tiles, watch=Watch(block=(0, 0, 0), warp=0)
    )
    trace = watched.report.trace
    loads = trace[(trace["space"] == "shared") & (trace["op"] == "load") & (trace["lane"] == 0)]
    for array, rows in loads.groupby("array"):
        places = np.array(sorted({column for row, column in rows["element"] if row == 0}))
        if len(places) % 4 or (places.reshape(-1, 4) != places[::4, None] // 4 * 4 + np.arange(4)).any():
            raise Refused(
                f"Right, and without a bank conflict. But a thread's elements of `{array}` are apart: four "
                "of them have to lie side by side, beginning at a multiple of four, for one 128-bit "
                "instruction to read them.",
                f"{trial.about}: lane 0 reads columns {', '.join(map(str, places[:5]))} ... of row 0 of "
                f"`{array}`.",
            )


FACTORY = GemmFactory(
    tiles=TILES,
    geometry=_geometry,
    likely=_likely,
    begun=check_begun,
    before_numbers=_check_places,
    row_multiple=4,
    lessons=(
        no_float64,
        in_registers,
        loaded_once,
        reads(lambda t: (t.TM + t.TN) / (t.TM * t.TN), _too_many_reads),
        barriers(2),
        one_wavefront,
        in_runs,
    ),
)
