"""Exercise 04.2: a GEMM kernel whose threads compute TM results each, one below the other."""

import numpy as np
from gemm_course.checks.engines.tile_mistakes import along_k, result

from gemm_course.checks.core import Refused, call, function_of, kernel_of
from gemm_course.checks.engines.common_mistakes import GuardMistake, Mistake
from gemm_course.checks.engines.findings import FINDINGS
from gemm_course.checks.engines.gemm import GEMM, GemmTrial, hold_to_numbers, try_on
from gemm_course.checks.engines.lessons import (
    check_barriers,
    check_begun,
    check_float64,
    check_loads,
    check_registers,
    reads_a_product,
    uninitialised,
)
from gemm_course.checks.engines.problem import Geometry, Problem
from gemm_course.emulator import Finding

NAMES = ("BM", "BN", "BK", "TM")
TILES = ((8, 4, 4, 4), (16, 32, 8, 8), (32, 16, 4, 2), (64, 64, 8, 8))  # the first on every kind of problem
DOCUMENT = TILES[-1]


def prove_thread_columns(make_column) -> str:
    """What was proved of the learner's factory; raises Refused with the first thing wrong."""
    make = _factory_of(make_column)
    kernels = {tiles: kernel_of(call(make, *tiles), GEMM) for tiles in TILES}
    whole = {tiles: try_on(kernel, geometry(tiles), whole_tiles(tiles)) for tiles, kernel in kernels.items()}
    check_begun(whole[TILES[0]])
    problems = 0
    for tiles, kernel in kernels.items():
        only = None if tiles == TILES[0] else [whole_tiles(tiles), _ragged(tiles)]
        problems += len(_hold_to_numbers(kernel, tiles, only))
    for tiles, trial in whole.items():
        _check_lesson(tiles, trial)
    return (
        f"Right on {problems} problems. With document 004's tiles (64 × 64 × 8, TM = 8) the threads read "
        f"{reads_a_product(whole[DOCUMENT]):.4g} elements of shared memory for each multiply-add instead of "
        "2, the results stay in registers, and there is no race."
    )


def geometry(tiles: tuple[int, ...]) -> Geometry:
    """Blocks of BN by BM / TM threads, each with TM rows of one column."""
    BM, BN, _, TM = tiles
    return Geometry((BN, BM // TM), "columns", (TM, 1))


def whole_tiles(tiles: tuple[int, ...]) -> Problem:
    """One row of two blocks, three tiles along k."""
    BM, BN, BK, _ = tiles
    return Problem(BM, 2 * BN, 3 * BK)


def _ragged(tiles: tuple[int, ...]) -> Problem:
    m, n = geometry(tiles).ragged()
    return Problem(m, n, tiles[2] + 1, alpha=1.5, beta=-0.5, padding=3)


def _named(tiles: tuple[int, ...]) -> str:
    return "With " + ", ".join(f"{name} = {size}" for name, size in zip(NAMES, tiles))


def _factory_of(given):
    if hasattr(given, "py_func"):
        raise Refused(
            f"`{given.py_func.__name__}` is the kernel itself. Hand over the function around it, which takes "
            "BM, BN, BK and TM and returns it."
        )
    return function_of(given, NAMES)


# ---- the numbers -------------------------------------------------------------------------------------------


def _hold_to_numbers(kernel, tiles: tuple[int, ...], problems) -> list[GemmTrial]:
    return hold_to_numbers(
        kernel,
        geometry(tiles),
        depth=tiles[2],
        mistakes=(*_mistakes(tiles), *along_k(tiles[2], "BK")),
        guard_mistakes=_guard_mistakes(tiles),
        on_finding={**FINDINGS, "global_race": _overlap, "uninitialised_read": uninitialised},
        problems=problems,
    )


def _mistakes(tiles: tuple[int, ...]) -> tuple[Mistake, ...]:
    BM, _, _, TM = tiles

    def rows_from(source):
        """C where row r of the block was computed from row source(r) of its tile of A."""

        def predict(q: Problem):
            blocks = -(-q.m // BM)
            full = np.zeros((blocks * BM, q.k))
            full[: q.m] = q.A
            taken = full.reshape(blocks, BM, q.k)[:, [source(r) for r in range(BM)]]
            return result(q, taken.reshape(-1, q.k)[: q.m] @ q.B)

        return predict

    def summed_up(q: Problem):
        full = np.zeros((-(-q.m // TM) * TM, q.n))
        full[: q.m] = q.AB
        sums = full.reshape(-1, TM, q.n).sum(1)
        return result(q, np.repeat(sums, TM, axis=0)[: q.m])

    def last_alone(q: Problem):
        """Every result of a thread is its last one's."""
        full = np.zeros((-(-q.m // TM) * TM, q.n))
        full[: q.m] = q.AB
        return result(q, np.repeat(full[TM - 1 :: TM], TM, axis=0)[: q.m])

    return (
        Mistake(
            f"All {TM} results of a thread are summed up in one: each needs an accumulator of its own, "
            "`acc[i]` in a `cuda.local.array(TM, float32)`.",
            summed_up,
        ),
        Mistake(
            "All results of a thread are equal to its last one. Is there one accumulator for all of them?",
            last_alone,
        ),
        Mistake(
            "Thread `ty` takes its rows of As from `ty + i`, which are its neighbours' as well. Its own TM "
            "rows begin at `ty * TM`.",
            rows_from(lambda r: r // TM + r % TM),
        ),
        Mistake(
            "All TM results of a thread use the same row of As: the row must go on with `i`, `ty * TM + i`.",
            rows_from(lambda r: r // TM * TM),
        ),
        Mistake(
            "All TM results of a thread use row `ty` of As. Its own rows begin at `ty * TM` and go on with "
            "`i`.",
            rows_from(lambda r: r // TM),
        ),
        Mistake(
            "The row of As is `i` for all threads. A thread's own rows begin at `ty * TM`.",
            rows_from(lambda r: r % TM),
        ),
    )


def _guard_mistakes(tiles: tuple[int, ...]) -> tuple[GuardMistake, ...]:
    BM, _, _, TM = tiles
    threads_down = BM // TM

    def in_block(row):
        return row % BM

    return (
        GuardMistake(
            "The rows of C are counted as if a thread had one of them: `cuda.grid(2)` multiplies blockIdx.y "
            "by the threads of a block, and a block has TM times as many rows. It begins at `blockIdx.y * "
            "BM`.",
            lambda row, col, q, g: (row < -(-q.m // BM) * threads_down + TM - 1) & (row < q.m) & (col < q.n),
        ),
        GuardMistake(
            "The rows of C overlap: `ty + i` is the next thread's row as well. A thread's TM rows begin at "
            "`ty * TM`.",
            lambda row, col, q, g: (in_block(row) < threads_down + TM - 1) & (row < q.m) & (col < q.n),
        ),
        GuardMistake(
            "Of a thread's TM results only the first is stored. The store needs a loop over `i` too.",
            lambda row, col, q, g: (in_block(row) % TM == 0) & (row < q.m) & (col < q.n),
        ),
        GuardMistake(
            "Each thread stores only one of its results, into row `ty` of its block. Store all TM of them, "
            "into rows `ty * TM + i`.",
            lambda row, col, q, g: (in_block(row) < threads_down) & (row < q.m) & (col < q.n),
        ),
    )


def _overlap(finding: Finding, trial: GemmTrial) -> str:
    return (
        "Two threads store the same element of C: their rows overlap. Thread `ty` has the rows `ty * TM` to "
        f"`ty * TM + TM - 1` of its block. {finding.message}"
    )


# ---- the lesson: counts on whole tiles ---------------------------------------------------------------------


def _check_lesson(tiles, trial: GemmTrial):
    (BM, BN, BK, _), where = tiles, _named(tiles)
    check_float64(trial)
    check_registers(trial, BM, BN, BK, where)
    check_loads(trial, BM, BN, where)
    _check_reads(tiles, trial)
    check_barriers(trial, BK, where)


def _check_reads(tiles, trial: GemmTrial):
    TM, reads = tiles[-1], reads_a_product(trial)
    least = (TM + 1) / TM
    if reads <= least:
        return
    where = f"{_named(tiles)}: {reads:.4g} reads of shared memory for each multiply-add; {least:.4g} do."
    if reads == 2:
        raise Refused(
            "The result is right, but the element of Bs is read again for each of the TM results: 2 reads a "
            "multiply-add, as without thread tiles. Read it once, `b = Bs[p, tx]`, before the loop over "
            "`i`.",
            where,
        )
    raise Refused(
        "The result is right, but shared memory is read more often than needed: one element of Bs and TM of "
        "As serve TM multiply-adds.",
        where,
    )
