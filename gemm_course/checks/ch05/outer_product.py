"""Exercise 05.4: a GEMM kernel whose threads add an outer product to TM by TN results in every step."""

from collections.abc import Callable, Sequence

import numpy as np

from gemm_course.checks.core import Refused, call, kernel_of
from gemm_course.checks.engines.common_mistakes import GuardMistake, Mistake
from gemm_course.checks.engines.coverage import Tiles, factory_of
from gemm_course.checks.engines.findings import FINDINGS
from gemm_course.checks.engines.gemm import GEMM, GemmTrial, hold_to_numbers, try_on
from gemm_course.checks.engines.lessons import (
    barriers,
    in_registers,
    no_float64,
    tiles_loaded_once,
    uninitialised,
)
from gemm_course.checks.engines.lessons import (
    check_tiles_used as check_begun,
)
from gemm_course.checks.engines.mistakes import along_k, result
from gemm_course.checks.engines.problem import Geometry, Problem
from gemm_course.emulator import Finding

TILES = (Tiles(8, 24, 4, 2, 4), Tiles(32, 16, 8, 4, 2), Tiles(64, 64, 8, 8, 8))  # the first on every problem
DOCUMENT = TILES[-1]


def prove_outer(make_outer) -> str:
    """What was proved of the learner's factory; raises Refused with the first thing wrong."""
    make = factory_of(make_outer)
    kernels = {tiles: kernel_of(call(make, *tiles), GEMM) for tiles in TILES}
    whole = {t: try_on(kernel, geometry(t), whole_tiles(t)) for t, kernel in kernels.items()}
    check_begun(whole[TILES[0]])
    problems = len(hold_numbers_of(kernels[TILES[0]], TILES[0]))
    for tiles in TILES[1:]:
        problems += len(hold_numbers_of(kernels[tiles], tiles, [whole_tiles(tiles), ragged(tiles)]))
    for tiles, trial in whole.items():
        hold_to_lesson(trial, tiles)
    return (
        f"Right on {problems} problems. With 8 × 8 results a thread reads 16 elements of shared memory for "
        f"64 multiply-adds, {reads_per_multiply_add(whole[DOCUMENT]):.4g} each instead of 2, the results stay in "
        "registers, and there is no race."
    )


def geometry(tiles: Tiles) -> Geometry:
    """Blocks of BN / TN by BM / TM threads, each with TM rows and TN columns."""
    return Geometry(tiles.threads, "columns", (tiles.TM, tiles.TN))


def whole_tiles(tiles: Tiles) -> Problem:
    """One row of two blocks, three tiles along k."""
    return Problem(tiles.BM, 2 * tiles.BN, 3 * tiles.BK)


def hold_numbers_of(
    kernel,
    tiles: Tiles,
    problems: Sequence[Problem] | None = None,
    *,
    launched: Geometry | None = None,
    mistakes: Sequence[Mistake] = (),
) -> list[GemmTrial]:
    """Refuse wrong numbers on these problems, or on every kind of them; return the trials."""
    return hold_to_numbers(
        kernel,
        launched or geometry(tiles),
        depth=tiles.BK,
        mistakes=(*mistakes, *_mistakes(tiles), *along_k(tiles.BK, "BK")),
        guard_mistakes=_guard_mistakes(tiles),
        on_finding={**FINDINGS, **_findings(tiles)},
        problems=problems,
    )


def ragged(tiles: Tiles) -> Problem:
    """Sizes that are no multiples of anything."""
    m, n = geometry(tiles).ragged()
    return Problem(m, n, tiles.BK + 1, alpha=1.5, beta=-0.5, padding=3)


# ---- likely mistakes ---------------------------------------------------------------------------------------


def taken_from(
    tiles: Tiles,
    row: Callable[[int, int], int] | None = None,
    column: Callable[[int, int], int] | None = None,
) -> Callable[[Problem], np.ndarray]:
    """C where result i of thread y was computed from row(y, i) of its tile, and j of x from column(x, j)."""
    BM, BN, _, TM, TN = tiles

    def predict(q: Problem):
        rows = [row(r // TM, r % TM) if row else r for r in range(BM)]
        columns = [column(c // TN, c % TN) if column else c for c in range(BN)]
        if max(rows) >= BM or max(columns) >= BN:
            return None
        down, right = -(-q.m // BM), -(-q.n // BN)
        A, B = np.zeros((down * BM, q.k)), np.zeros((q.k, right * BN))
        A[: q.m], B[:, : q.n] = q.A, q.B
        A, B = A.reshape(down, BM, q.k)[:, rows], B.reshape(q.k, right, BN)[:, :, columns]
        return result(q, (A.reshape(-1, q.k) @ B.reshape(q.k, -1))[: q.m, : q.n])

    return predict


def _summed_up(tiles: Tiles) -> Callable[[Problem], np.ndarray]:
    """C where every result of a thread holds the sum of all of them."""
    TM, TN = tiles.TM, tiles.TN

    def predict(q: Problem):
        full = np.zeros((-(-q.m // TM) * TM, -(-q.n // TN) * TN))
        full[: q.m, : q.n] = q.AB
        sums = full.reshape(len(full) // TM, TM, -1, TN).sum((1, 3))
        return result(q, sums.repeat(TM, axis=0).repeat(TN, axis=1)[: q.m, : q.n])

    return predict


def _mistakes(tiles: Tiles) -> tuple[Mistake, ...]:
    TM, TN = tiles.TM, tiles.TN
    return (
        Mistake(
            "All results of a thread are summed up in one. Each of the TM · TN needs an accumulator of its "
            "own, `acc[i, j]`.",
            _summed_up(tiles),
        ),
        Mistake(
            "Thread `tx` begins at column `tx * TM`. Columns go with TN: its own begin at `tx * TN`.",
            taken_from(tiles, column=lambda x, j: x * TM + j),
        ),
        Mistake(
            "Thread `ty` begins at row `ty * TN`. Rows go with TM: its own begin at `ty * TM`.",
            taken_from(tiles, row=lambda y, i: y * TN + i),
        ),
        Mistake(
            "Thread `ty` takes its rows of As from `ty + i`, which are its neighbours' as well. Its own "
            "begin at `ty * TM`.",
            taken_from(tiles, row=lambda y, i: y + i),
        ),
        Mistake(
            "Thread `tx` takes its columns of Bs from `tx + j`, which are its neighbours' as well. Its own "
            "begin at `tx * TN`.",
            taken_from(tiles, column=lambda x, j: x + j),
        ),
        Mistake(
            "All results of a thread use the same row of As: the row must go on with `i`, `ty * TM + i`.",
            taken_from(tiles, row=lambda y, i: y * TM),
        ),
        Mistake(
            "All results of a thread use the same column of Bs: the column must go on with `j`, "
            "`tx * TN + j`.",
            taken_from(tiles, column=lambda x, j: x * TN),
        ),
        Mistake(
            "The row of As is `i` for all threads. A thread's own rows begin at `ty * TM`.",
            taken_from(tiles, row=lambda y, i: i),
        ),
        Mistake(
            "The column of Bs is `j` for all threads. A thread's own columns begin at `tx * TN`.",
            taken_from(tiles, column=lambda x, j: j),
        ),
    )


def _guard_mistakes(tiles: Tiles) -> tuple[GuardMistake, ...]:
    BM, BN, _, TM, TN = tiles

    def inside(row, col, q):
        return (row < q.m) & (col < q.n)

    return (
        GuardMistake(
            "Of a thread's results only the first is stored. The store needs both loops, over `i` and `j`.",
            lambda row, col, q, g: (row % TM == 0) & (col % TN == 0) & inside(row, col, q),
        ),
        GuardMistake(
            "Only the first column of each thread's results is stored: the loop over `j` is missing.",
            lambda row, col, q, g: (col % TN == 0) & inside(row, col, q),
        ),
        GuardMistake(
            "Only the first row of each thread's results is stored: the loop over `i` is missing.",
            lambda row, col, q, g: (row % TM == 0) & inside(row, col, q),
        ),
        GuardMistake(
            "The results are stored side by side with those of the next thread, at `ty + i` and `tx + j`: "
            "they overlap, and part of C stays empty. A thread's own begin at `ty * TM` and `tx * TN`.",
            lambda row, col, q, g: (
                (row % BM < BM // TM + TM - 1) & (col % BN < BN // TN + TN - 1) & inside(row, col, q)
            ),
        ),
        GuardMistake(
            "The results are stored from column `tx * TM` on. Columns go with TN: `tx * TN + j`.",
            lambda row, col, q, g: (
                np.isin(col % BN, [x * TM + j for x in range(BN // TN) for j in range(TN)])
                & inside(row, col, q)
            ),
        ),
        GuardMistake(
            "Only TM columns of each thread's results are stored. A row of them has TN: `range(TN)`.",
            lambda row, col, q, g: (col % TN < TM) & inside(row, col, q),
        ),
    )


def _findings(tiles: Tiles) -> dict[str, Callable[[Finding, GemmTrial], str | None]]:
    def outside(finding: Finding, trial: GemmTrial) -> str | None:
        shared = trial.report.accesses.query("space == 'shared' and op == 'load' and array == @finding.array")
        if shared.empty:
            return FINDINGS["out_of_bounds"](finding, trial)
        return (
            "A thread reads beside its tile. Its rows of As begin at `ty * TM`, and there are TM of them; "
            f"its columns of Bs begin at `tx * TN`, and there are TN. {finding.message}"
        )

    return {"global_race": _overlap, "uninitialised_read": uninitialised, "out_of_bounds": outside}


def _overlap(finding: Finding, trial: GemmTrial) -> str:
    return (
        "Two threads store the same element of C: their tiles of results overlap. Thread `(tx, ty)` has TM "
        f"rows from `ty * TM` and TN columns from `tx * TN` on. {finding.message}"
    )


# ---- the lesson: counts on whole tiles ---------------------------------------------------------------------


def hold_to_lesson(trial: GemmTrial, tiles: Tiles) -> None:
    """Registers, loads, reads and barriers of a right kernel, on whole tiles."""
    where = f"With {tiles}"
    no_float64(trial)
    in_registers(trial, tiles.BM, tiles.BN, tiles.BK, where)
    tiles_loaded_once(trial, tiles.BM, tiles.BN, where)
    _check_reads(trial, tiles)
    barriers(trial, tiles.BK, where)


def _check_reads(trial: GemmTrial, tiles: Tiles) -> None:
    """TM + TN reads for TM · TN multiply-adds."""
    TM, TN = tiles.TM, tiles.TN
    a_step = reads_per_multiply_add(trial) * TM * TN
    if a_step <= TM + TN:
        return
    where = (
        f"With {tiles}: in a step along k a thread reads {a_step:g} elements of shared memory for its "
        f"{TM * TN} multiply-adds; {TM + TN} are enough."
    )
    if a_step == 2 * TM * TN:
        raise Refused(
            "The result is right, but As and Bs are read inside both loops, two reads for every "
            "multiply-add, as without thread tiles. First read TM elements of As and TN of Bs into arrays of "
            "your own; then multiply.",
            where,
        )
    if a_step in (TM + TM * TN, TN + TM * TN):
        once, again = ("As", "Bs") if a_step == TM + TM * TN else ("Bs", "As")
        raise Refused(
            f"The result is right, and each element of {once} is read once. But {again} is read again in "
            "the inner loop: each of its elements as often as there are results that need it.",
            where,
        )
    raise Refused(
        "The result is right, but shared memory is read more often than needed: TM elements of As and TN of "
        "Bs serve TM · TN multiply-adds.",
        where,
    )
