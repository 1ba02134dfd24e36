"""Exercise 04.2: a GEMM kernel whose threads compute TM results each, one below the other."""

import ast

import numpy as np

from gemm_course.emulator import Finding

from .exercise import Refused, nothing_yet
from .float64 import why_float64
from .gemm import GEMM, GuardMistake, Mistake, Trial, hold_to_numbers, try_on
from .learner import call, function_of, kernel_of, line_at
from .problem import Geometry, Problem
from .source import tree_of
from .tile_findings import FINDINGS
from .tile_mistakes import along_k, result

NAMES = ("BM", "BN", "BK", "TM")
TILES = ((8, 4, 4, 4), (16, 32, 8, 8), (32, 16, 4, 2), (64, 64, 8, 8))  # the first on every kind of problem
DOCUMENT = TILES[-1]


def prove_thread_columns(make_column) -> str:
    """What was proved of the learner's factory; raises Refused with the first thing wrong."""
    make = _factory_of(make_column)
    kernels = {tiles: kernel_of(call(make, *tiles), GEMM) for tiles in TILES}
    whole = {tiles: try_on(kernel, geometry(tiles), whole_tiles(tiles)) for tiles, kernel in kernels.items()}
    _check_begun(whole[TILES[0]])
    problems = 0
    for tiles, kernel in kernels.items():
        only = None if tiles == TILES[0] else [whole_tiles(tiles), _ragged(tiles)]
        problems += len(_hold_to_numbers(kernel, tiles, only))
    for tiles, trial in whole.items():
        for check in (_check_float64, _check_registers, _check_loads, _check_reads, _check_barriers):
            check(tiles, trial)
    return (
        f"Right on {problems} problems. With document 004's tiles (64 × 64 × 8, TM = 8) the threads read "
        f"{_reads_a_product(whole[DOCUMENT]):.4g} elements of shared memory for each multiply-add instead of "
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


def _check_begun(trial: Trial) -> None:
    """The tiles are filled for the learner; nothing has begun as long as nobody uses them."""
    report = trial.report
    uses = report.total("lanes", space="shared", op="load") + trial.lanes("store", "C")
    if not uses and not _names_c(trial):
        raise nothing_yet()


def _names_c(trial: Trial) -> bool:
    """An element of C is named in the source, even if no thread gets there."""
    return any(
        isinstance(node, ast.Subscript) and ast.unparse(node.value) == trial.array("C")
        for node in ast.walk(tree_of(trial.kernel))
    )


# ---- the numbers -------------------------------------------------------------------------------------------


def _hold_to_numbers(kernel, tiles: tuple[int, ...], problems) -> list[Trial]:
    return hold_to_numbers(
        kernel,
        geometry(tiles),
        depth=tiles[2],
        mistakes=(*_mistakes(tiles), *along_k(tiles[2], "BK")),
        guard_mistakes=_guard_mistakes(tiles),
        on_finding={**FINDINGS, "global_race": _overlap, "uninitialised_read": _uninitialised},
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


def _overlap(finding: Finding, trial: Trial) -> str:
    return (
        "Two threads store the same element of C: their rows overlap. Thread `ty` has the rows `ty * TM` to "
        f"`ty * TM + TM - 1` of its block. {finding.message}"
    )


def _uninitialised(finding: Finding, trial: Trial) -> str | None:
    local = trial.report.accesses.query("space == 'local' and array == @finding.array")
    if len(local):
        return (
            f"`{finding.array}` is added to before anything was put into it. A local array begins with "
            "whatever the registers hold: set its TM elements to zero before the loop along k. "
            f"{finding.message}"
        )
    return FINDINGS["uninitialised_read"](finding, trial)


# ---- the lesson: counts on whole tiles ---------------------------------------------------------------------


def _check_float64(tiles, trial: Trial):
    doubles = trial.report.arithmetic.query("dtype == 'float64'")
    if len(doubles):
        lines = sorted(doubles["line"].unique())
        raise Refused(
            f"The result is right, but {doubles['lanes'].sum():,} operations are in float64. "
            + why_float64(trial.kernel, lines),
            line_at(trial.kernel, int(lines[0])),
        )


def _check_registers(tiles, trial: Trial):
    for finding in trial.report.advice:
        if finding.kind == "dynamic_local_index":
            raise Refused(
                f"The result is right, but `{finding.array}` cannot stay in registers: {finding.message} Let "
                "the loops over it run from 0 to TM, and index it with the loop's variable alone.",
                line_at(trial.kernel, finding.line),
            )
    BM, BN, BK, _ = tiles
    tiles_alone = 4 * BK * (BM + BN)
    if trial.report.shared_bytes >= tiles_alone + 4 * BM * BN:
        raise Refused(
            f"The block takes {trial.report.shared_bytes:,} bytes of shared memory, where the two tiles need "
            f"{tiles_alone:,}. Results belong into registers: `cuda.local.array(TM, float32)`.",
            _named(tiles),
        )


def _check_loads(tiles, trial: Trial):
    q, (BM, BN, _, TM) = trial.problem, tiles
    if trial.lanes("load", "C") or trial.lanes("store", "C") > q.m * q.n:
        raise Refused(
            "The result is right, but the sums are kept in C itself, and global memory is written again and "
            "again. Keep them in registers, and store each once.",
            f"{_named(tiles)}, in the problem {q}.",
        )
    loads, needed = trial.lanes("load", "A", "B"), q.m * q.n * q.k // BM + q.m * q.n * q.k // BN
    if loads >= TM * needed:
        raise Refused(
            f"{loads:,} loads from A and B where {needed:,} are enough: the whole way along k is gone again "
            "for every result. Go along k once, with all TM results at hand.",
            f"{_named(tiles)}, in the problem {q}.",
        )
    if loads > needed:
        raise Refused(
            f"More is loaded than tiles need: {loads:,} elements of A and B where {needed:,} are enough.",
            f"{_named(tiles)}, in the problem {q}.",
        )


def _reads_a_product(trial: Trial) -> float:
    q = trial.problem
    return trial.report.total("lanes", space="shared", op="load") / (q.m * q.n * q.k)


def _check_reads(tiles, trial: Trial):
    TM, reads = tiles[-1], _reads_a_product(trial)
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


def _check_barriers(tiles, trial: Trial):
    q = trial.problem
    (x, y), steps = trial.geometry.grid(q.m, q.n), -(-q.k // tiles[2])
    executed = trial.report.barriers // (x * y)
    if executed > 2 * steps:
        raise Refused(
            "More than two barriers a tile. Each of them keeps all threads waiting; the results are a "
            "thread's own and need none.",
            f"{_named(tiles)}: {executed} barriers a block for {steps} tiles; {2 * steps} are enough.",
        )
