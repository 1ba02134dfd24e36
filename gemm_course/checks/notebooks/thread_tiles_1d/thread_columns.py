"""Checks ``thread_columns``: a GEMM kernel whose threads compute TM results each, one below the other."""

import re
from collections.abc import Callable, Sequence

import numpy as np

from gemm_course.checks.core import Element, NothingYet, Refused, exercise
from gemm_course.checks.engines.common_mistakes import GuardMistake, Mistake
from gemm_course.checks.engines.gemm import GemmTrial, Likely, try_on
from gemm_course.checks.engines.gemm_factory import GemmFactory, Proof
from gemm_course.checks.engines.lessons import STANDARD, check_tiles_used, not_in_shared, reads
from gemm_course.checks.engines.mistakes import Prediction, added_up, mixed, only_stored, result, taken_from
from gemm_course.checks.engines.problem import Geometry, Problem
from gemm_course.checks.engines.tiles import Tiles, tile_choices
from gemm_course.model import occupancy
from lockstep import Finding, Watch

TILES = tile_choices(
    "BM BN BK TM", (8, 4, 4, 4), (16, 32, 8, 8), (32, 16, 4, 2), (32, 8, 8, 16), (128, 128, 8, 32)
)
# The solution takes this many registers per thread with the tiles that are compiled. A test compiles it.
OF_THE_SOLUTION = 125
# The notebook writes this many steps along k out at a time.
AT_A_TIME = 2


@exercise(
    start="declare `acc = cuda.local.array(TM, float32)` and set its elements to zero.",
    hints=(
        "Three pieces are missing: TM accumulators, set to zero; the products, where `b` is read once and "
        "serves TM of them; a store for each result.",
        "Thread `(tx, ty)` has column `tx` of its block, and the rows `ty * TM` to `ty * TM + TM - 1`.",
        "For every `p` of the tile: `b = Bs[p, tx]`, then for every `i`: `acc[i] += As[ty * TM + i, p] * b`.",
        "At the end, for every `i`: `row = row0 + ty * TM + i`, the guard `row < m and col0 + tx < n`, and "
        "the store of `acc[i]` as in notebook [[shared_memory_tiles.ipynb]].",
    ),
)
def thread_columns(make_column):
    """A factory (BM, BN, BK, TM) of GEMM kernels with TM results per thread; blocks of (BN, BM / TM)."""
    try:
        proof = FACTORY.prove(make_column)
    except Refused as refused:
        raise _with_the_size(refused) from None
    reads = proof.trials[TILES[-1]].reads_per_multiply_add
    return (
        f"Right on {proof.problems} problems. With this notebook's tiles (128 × 128 × 8, TM = 32) the "
        f"threads read {reads:.4g} elements of shared memory for each multiply-add instead of 2, and there "
        f"is no race. {_compared(proof.registers)}{_too_many(proof)}{_other_rows(proof.trials[TILES[0]])}"
    )


def _compared(registers: str) -> str:
    """Return what is known about the registers, with the solution's number beside the kernel's."""
    return re.sub(r"\d+ registers per thread", rf"\g<0> (the solution: {OF_THE_SOLUTION})", registers)


def _too_many(proof: Proof) -> str:
    """Return a sentence where the threads of a block take more registers than an SM has, else ""."""
    found, trial = re.search(r"(\d+) registers per thread", proof.registers), proof.trials[TILES[-1]]
    threads = TILES[-1].BM * TILES[-1].BN // TILES[-1].TM
    if not found or occupancy(threads, int(found[1]), trial.report.shared_bytes).blocks:
        return ""
    return (
        f" But a block has {threads} threads, and for all of them together that is more than an SM has: with "
        "these tiles a GPU would refuse the launch."
    )


def _other_rows(whole: GemmTrial) -> str:
    """Return a sentence where a thread has other rows than those that the exercise names, else ""."""
    traced = FACTORY.try_on_whole_tiles(whole.kernel, TILES[0], watch=Watch(warp=0, local=False))
    trace, name = traced.report.trace, whole.own_name("C")
    stored = trace[(trace["array"] == name) & (trace["op"] == "store") & (trace["thread"] == 0)]
    rows = sorted({element[0] for element in stored["element"]})
    if rows == list(range(TILES[0].TM)):
        return ""
    return " Your threads have other rows than those from `ty * TM`; that is right as well."


def _with_the_size(refused: Refused) -> Refused:
    """Add the size that was meant to Numba's refusal of `BM // TM` in a declaration."""
    if "`BM // TM` is computed inside the kernel" not in refused.message:
        return refused
    return Refused(
        "BM / TM is how many threads stand below each other. A thread has TM results: "
        f"`cuda.local.array(TM, float32)`. Besides, {refused.message}",
        refused.where,
    )


def _geometry(tiles: Tiles) -> Geometry:
    return Geometry((tiles.BN, tiles.BM // tiles.TM), "columns", (tiles.TM, 1))


def _begun(*trials: GemmTrial) -> None:
    """Raise NothingYet for the stub, and Refused where only its first piece has been written."""
    local = trials[0].report.accesses.query("space == 'local'")
    try:
        check_tiles_used(*trials)
    except NothingYet:
        if local.empty:
            raise
        raise Refused(
            f"`{local['array'].iloc[0]}` is there. Two pieces are missing: the products, between the two "
            "barriers, and the store, after the loop over `k0`."
        ) from None


# ---- what goes wrong ---------------------------------------------------------------------------------------


def _likely(tiles: Tiles) -> Likely:
    findings = {"global_race": _overlap, "shared_race": _accumulators, "out_of_bounds": _outside}
    return Likely(_mistakes(tiles), _guard_mistakes(tiles), findings)


def _mistakes(tiles: Tiles) -> tuple[Mistake, ...]:
    TM, block, threads_down = tiles.TM, (tiles.BM, tiles.BN), tiles.BM // tiles.TM

    return (
        Mistake(
            "Of each tile only the first two steps are taken, again and again: `p` goes on with the inner "
            "loop alone, as in `p = s`. Let both loops move it, `p = q + s`.",
            _steps(tiles, lambda t: t % AT_A_TIME),
        ),
        Mistake(
            "Of each tile every second step is left out, and the one before it taken twice: `p` goes on with "
            "the outer loop alone, as in `p = q`. Let both loops move it, `p = q + s`.",
            _steps(tiles, lambda t: t // AT_A_TIME * AT_A_TIME),
        ),
        Mistake(
            "Some steps of a tile are taken twice, and its last ones never: with `p = q + s` the outer loop "
            "must go on by STEPS, `range(0, BK, STEPS)`.",
            _steps(tiles, lambda t: t // AT_A_TIME + t % AT_A_TIME),
        ),
        Mistake(
            "`acc` and `As` disagree on the row: `acc` is indexed by one that begins at another row in each "
            "thread, `As` by `i`. Use the same in both: `acc[j] += As[ty * TM + j, p] * b`.",
            _begun_elsewhere(tiles, -1),
        ),
        Mistake(
            "`acc` and `As` disagree on the row: `As` is indexed by one that begins at another row in each "
            "thread, `acc` by `i`. Use the same in both: `acc[j] += As[ty * TM + j, p] * b`.",
            _begun_elsewhere(tiles, 1),
        ),
        Mistake(
            "All products of a thread are added to `acc[0]`. Each result has its own element, `acc[i]`.",
            mixed(block, np.kron(np.eye(threads_down), np.outer(np.arange(TM) == 0, np.ones(TM))), None),
        ),
        Mistake(
            "The first of a thread's TM results gets no products: the loop over `i` starts too late, "
            "`range(TM)` starts at 0.",
            mixed(block, np.diag([float(r % TM != 0) for r in range(tiles.BM)]), None),
        ),
        Mistake(
            f"Only BM / TM = {threads_down} of a thread's {TM} results get products. BM / TM is how many "
            "threads stand below each other; the loop over `i` has TM iterations.",
            mixed(block, np.diag([float(r % TM < threads_down) for r in range(tiles.BM)]), None),
        ),
        Mistake(
            "The products take a thread's rows BM / TM apart, `ty + i * (BM // TM)`, the store one below the "
            "other. Use the same rows in both: `ty * TM + i`.",
            taken_from(block, lambda r: r // TM + r % TM * threads_down),
        ),
        Mistake(
            "The store takes a thread's rows BM / TM apart, `ty + i * (BM // TM)`, the products one below "
            "the other. Use the same rows in both: `ty * TM + i`.",
            taken_from(block, lambda r: r % threads_down * TM + r // threads_down),
        ),
        Mistake(
            f"All {TM} results of a thread are added up in one: each needs an accumulator of its own, "
            "`acc[i]` in a `cuda.local.array(TM, float32)`.",
            added_up(block, (TM, 1)),
        ),
        Mistake(
            "Thread `ty` takes its rows of As from `ty + i`, which are its neighbours' as well. Its own TM "
            "rows begin at `ty * TM`.",
            taken_from(block, lambda r: r // TM + r % TM),
        ),
        Mistake(
            "All TM results of a thread use the same row of As: the row must go on with `i`, `ty * TM + i`.",
            taken_from(block, lambda r: r // TM * TM),
        ),
        Mistake(
            "All TM results of a thread use row `ty` of As. Its own rows begin at `ty * TM` and go on with "
            "`i`.",
            taken_from(block, lambda r: r // TM),
        ),
        Mistake(
            "A thread's rows begin at `ty * TM`, not at `ty * (BM / TM)`: BM / TM is how many threads stand "
            "below each other, TM how many rows each has.",
            taken_from(block, lambda r: r // TM * tiles.BM // TM + r % TM),
        ),
        Mistake(
            "The last of a thread's TM results gets no products: the loop over `i` ends too early, "
            "`range(TM)` has TM iterations.",
            mixed(block, np.diag([float(r % TM != TM - 1) for r in range(tiles.BM)]), None),
        ),
        Mistake(
            "The column of Bs is `ty`. A thread's column goes with x: `Bs[p, tx]`.",
            _column_by_y(tiles),
        ),
        Mistake("`Bs` is read transposed, `Bs[tx, p]`, but was filled as `Bs[p, tx]`.", _transposed(tiles)),
        Mistake(
            "All BK steps of a tile use its first row of Bs. Each step has its own: `b = Bs[p, tx]`, in the "
            "loop over `p`.",
            lambda q: result(q, q.A @ q.B[np.arange(q.k) // tiles.BK * tiles.BK]),
        ),
        Mistake(
            "The row of As is `i` for all threads. A thread's own rows begin at `ty * TM`.",
            taken_from(block, lambda r: r % TM),
        ),
    )


def _steps(tiles: Tiles, taken: Callable[[np.ndarray], np.ndarray]) -> Prediction:
    """Predict C where step t of every tile takes the elements of step taken(t)."""

    def predict(q: Problem) -> np.ndarray:
        steps = np.arange(-(-q.k // tiles.BK) * tiles.BK)
        steps = steps // tiles.BK * tiles.BK + taken(steps % tiles.BK)
        steps = steps[steps < q.k]
        return result(q, q.A[:, steps] @ q.B[steps])

    return predict


def _begun_elsewhere(tiles: Tiles, sign: int) -> Prediction:
    """Predict C where each of a thread's results is that of the row tx further down (sign 1) or up (-1)."""

    def predict(q: Problem) -> np.ndarray:
        row, col = np.ogrid[: q.m, : q.n]
        tall = np.pad(q.AB, ((0, tiles.TM), (0, 0)))
        return result(q, tall[row // tiles.TM * tiles.TM + (row + sign * (col % tiles.BN)) % tiles.TM, col])

    return predict


def _column_by_y(tiles: Tiles) -> Prediction:
    """Predict C where the threads take column ty of Bs; None where there are more threads than columns."""

    def predict(q: Problem) -> np.ndarray | None:
        if tiles.BM // tiles.TM > tiles.BN:
            return None
        row, col = np.ogrid[: q.m, : q.n]
        wide = np.pad(q.AB, ((0, 0), (0, tiles.BN)))
        return result(q, wide[row, col // tiles.BN * tiles.BN + row % tiles.BM // tiles.TM])

    return predict


def _transposed(tiles: Tiles) -> Prediction:
    """Predict C where each tile of B is read with its indices swapped; None where it is not square."""
    BN, BK = tiles.BN, tiles.BK

    def predict(q: Problem) -> np.ndarray | None:
        if BN != BK or q.n % BN or q.k % BK:
            return None
        return result(q, q.A @ q.B.reshape(q.k // BK, BK, q.n // BN, BN).swapaxes(1, 3).reshape(q.k, q.n))

    return predict


def _guard_mistakes(tiles: Tiles) -> tuple[GuardMistake, ...]:
    BM, TM, block = tiles.BM, tiles.TM, (tiles.BM, tiles.BN)
    threads_down = BM // TM
    return (
        GuardMistake(
            "Every block stores into the first BN columns of C. A block's columns begin at `col0`: "
            "the column is `col0 + tx`.",
            lambda row, col, q, g: (row < q.m) & (col < min(q.n, tiles.BN)),
        ),
        GuardMistake(
            "Every block stores into the first BM rows of C. A block's rows begin at `row0`: the row is "
            "`row0 + ty * TM + i`.",
            lambda row, col, q, g: (row < min(q.m, BM)) & (col < q.n),
        ),
        GuardMistake(
            "The first of a thread's TM results is never stored: the loop over `i` starts too late, "
            "`range(TM)` starts at 0.",
            only_stored(block, lambda row: row % TM != 0),
        ),
        GuardMistake(
            f"Only BM / TM = {threads_down} of a thread's {TM} results are stored. BM / TM is how many "
            "threads stand below each other; each has TM results.",
            only_stored(block, lambda row: row % TM < threads_down),
        ),
        GuardMistake(
            "The last of a thread's TM results is never stored: the loop over `i` ends too early, "
            "`range(TM)` has TM iterations.",
            only_stored(block, lambda row: row % TM != TM - 1),
        ),
        GuardMistake(
            "The rows of C overlap where a thread's rows begin at `ty * (BM / TM)`. BM / TM is how "
            "many threads stand below each other; a thread has TM rows, from `ty * TM`.",
            only_stored(block, lambda row: row < (threads_down - 1) * threads_down + TM),
        ),
        GuardMistake(
            "The rows of C are counted as if a thread had one of them: `cuda.grid(2)` multiplies blockIdx.y "
            "by the threads of a block, and a block has TM times as many rows. It begins at `blockIdx.y * "
            "BM`.",
            lambda row, col, q, g: (row < -(-q.m // BM) * threads_down + TM - 1) & (row < q.m) & (col < q.n),
        ),
        GuardMistake(
            "The rows of C overlap: `ty + i` is the next thread's row as well. A thread's TM rows begin at "
            "`ty * TM`.",
            only_stored(block, lambda row: row < threads_down + TM - 1),
        ),
        GuardMistake(
            "Of a thread's TM results only the first is stored. The store needs a loop over `i` too.",
            only_stored(block, lambda row: row % TM == 0),
        ),
        GuardMistake(
            "Each thread stores only one of its results, into row `ty` of its block. Store all TM of them, "
            "into rows `ty * TM + i`.",
            only_stored(block, lambda row: row < threads_down),
        ),
    )


def _accumulators(finding: Finding, trial: GemmTrial) -> str | None:
    """Return the message for accumulators in shared memory, which all threads of a block add to."""
    added = (target for target in trial.written.updated if isinstance(target, Element))
    if finding.array not in {element.array for element in added}:
        return None
    return (
        f"`{finding.array}` is in shared memory, so all threads of the block have the same one. Results are "
        f"a thread's own: `{finding.array} = cuda.local.array(TM, float32)`. {finding.message}"
    )


def _outside(finding: Finding, trial: GemmTrial) -> str | None:
    words = _too_short, _indices, _past_the_steps, _swapped
    return next(filter(None, (say(finding, trial) for say in words)), None)


def _too_short(finding: Finding, trial: GemmTrial) -> str | None:
    """Return the message for an array of the thread's own whose size is not TM."""
    for target, value in trial.written.assignments:
        if target.text != finding.array:
            continue
        if "local.array" in value.text and "TM," not in value.text.replace("// TM,", ""):
            return (
                f"`{finding.array}` has the wrong size: a thread has TM results, `{finding.array} = "
                f"cuda.local.array(TM, float32)`. {finding.message}"
            )
    return None


def _is_shared(finding: Finding, trial: GemmTrial) -> bool:
    return bool(len(trial.report.accesses.query("space == 'shared' and array == @finding.array")))


def _indices(finding: Finding, trial: GemmTrial) -> str | None:
    """Return the message for a tile of A that is read as `As[p, row]`."""
    (_, ty, _), tiles = finding.threads[0], trial.tiles
    if not _is_shared(finding, trial) or len(finding.element) != 2:
        return None
    p, row = finding.element
    if p >= tiles.BK or row < tiles.BK or row // tiles.TM != ty:
        return None
    return (
        f"The two indices of `{finding.array}` are swapped: it was filled as `{finding.array}[row, p]`, so "
        f"read `{finding.array}[ty * TM + i, p]`. {finding.message}"
    )


def _past_the_steps(finding: Finding, trial: GemmTrial) -> str | None:
    """Return the message for two loops over a tile's steps that go past its end."""
    BK = trial.tiles.BK
    if not _is_shared(finding, trial) or max(finding.element) < BK:
        return None
    for loop in trial.written.loops:
        over = next(iter(loop.over.calls("range")), None)
        if over is None or len(over.args) < 3 or over.at(1) == trial.own_name("k"):
            continue
        if finding.line not in loop.lines:
            continue
        q, step = loop.variable, over.at(2)
        if any({side.text for side in product.sides} == {q, step} for product in loop.operations("*")):
            return (
                f"`{q}` goes on by {step} already: in `{over.text}` it is the step at which the inner loop "
                f"begins. Add the inner loop's variable to `{q}` itself, without `* {step}`. "
                f"{finding.message}"
            )
        size = over.args[2].number or trial.written.outside.get(step)
        if isinstance(size, int) and size and BK % size:
            here = f", here {size}" if step != str(size) else ""
            return (
                f"The two loops go past the tile's last step: BK, here {BK}, must be a multiple of "
                f"{step}{here}. {finding.message}"
            )
    return None


def _swapped(finding: Finding, trial: GemmTrial) -> str | None:
    """Return the message for a row of the tile of A made from tx, where ty was meant."""
    (tx, ty, _), TM = finding.threads[0], trial.tiles.TM
    if not _is_shared(finding, trial) or tx == ty or finding.element[0] // TM != tx:
        return None
    return (
        "`tx` and `ty` are swapped: x runs along the columns, so thread `(tx, ty)` has column `tx` and "
        f"the rows from `ty * TM`. {finding.message}"
    )


def _overlap(finding: Finding, trial: GemmTrial) -> str:
    return (
        "Two threads store the same element of C: their rows overlap. Thread `ty` has the rows `ty * TM` to "
        f"`ty * TM + TM - 1` of its block. {finding.message}"
    )


def _before_numbers(trials: Sequence[GemmTrial]) -> None:
    _check_tiles_read(trials)
    if not trials[0].right:
        _check_rows_stored(trials[0])
    _check_guard_of_each_row(trials[0])


def _check_guard_of_each_row(trial: GemmTrial) -> None:
    """Refuse a guard that lets all rows of a thread through or none, where C ends between them.

    C ends two rows after the start of a thread's rows, and below it the array goes on for a block.
    """
    t = trial.tiles
    m = 2 * t.BM + 2
    tried = try_on(trial.kernel, trial.geometry, Problem(m, t.BN, t.BK, padding=1, spare_rows=t.BM), tiles=t)
    row, col = np.ogrid[: tried.stored.shape[0], : tried.stored.shape[1]]
    begun = m - 2  # the first row of the last thread that has any in C
    for end, first, message in (
        (
            begun + t.TM,
            m,
            "The guard tests only the first of a thread's TM rows, and where that one lies in C, all of them "
            "are stored.",
        ),
        (
            begun,
            begun,
            "The guard drops whole threads: where the last of a thread's TM rows lies below C, none of them "
            "is stored.",
        ),
    ):
        if (tried.stored == ((row < end) & (col < t.BN))).all():
            what = "too many" if first == m else "left out"
            raise Refused(
                f"{message} Test each row, in the loop over `i`: `row0 + ty * TM + i < m`.",
                f"First element {what}: `C[{first}, 0]`, of {tried.geometry.owner(first, 0)}. C has {m} rows "
                f"and {t.BN} columns here.",
            )


def _check_rows_stored(trial: GemmTrial) -> None:
    """Refuse a store into other rows than the thread's, which looks as if results were left out.

    C has more rows here than the block, so that none of them is guarded away.
    """
    t, ty = trial.tiles, 1
    tall = Problem(t.TM * t.BM, t.BN, t.BK)
    traced = try_on(trial.kernel, trial.geometry, tall, tiles=t, watch=Watch(local=False))
    trace, name = traced.report.trace, trial.own_name("C")
    stores = trace[(trace["array"] == name) & (trace["op"] == "store") & (trace["thread"] == ty * t.BN)]
    rows = [element[0] for element in stores["element"]]
    for wrong, message in (
        (
            [i * t.TM + ty for i in range(t.TM)],
            "The results are stored in the rows `i * TM + ty`, in which `i` and `ty` are swapped. A thread's "
            "rows are `ty * TM + i`.",
        ),
        (
            [ty * t.TM] * t.TM,
            "All results of a thread are stored in its first row, one over the other, and the last one "
            "stays. The row must go on with `i`: `row0 + ty * TM + i`.",
        ),
        (
            [ty * t.BM + i for i in range(t.TM)],
            "The results are stored from row `ty * BM` on, which is in another block. A thread has TM rows "
            "of its block, from `ty * TM` on.",
        ),
    ):
        if rows == wrong:
            raise Refused(message, f"{trial.line(stores['line'].iloc[0])}. {trial.about}.")


def _check_tiles_read(trials: Sequence[GemmTrial]) -> None:
    """Refuse products that read the matrices instead of the tiles that were filled from them."""
    trial = trials[0]
    shared = trial.report.accesses.query("space == 'shared'")
    unread = set(shared["array"]) - set(shared.query("op == 'load'")["array"])
    q, (BM, BN, _) = trial.problem, trial.tiles.block_tile
    for matrix, size in (("A", BN), ("B", BM)):
        if unread and trial.lanes("load", matrix) > q.m * q.n * q.k // size:
            raise Refused(
                f"`{sorted(unread)[0]}` is filled and never read: the products load from "
                f"`{trial.own_name(matrix)}`, in global memory. Use the tiles, `As[ty * TM + i, p]` and "
                "`Bs[p, tx]`.",
                f"{trial.about}.",
            )


FACTORY = GemmFactory(
    tiles=TILES,
    geometry=_geometry,
    likely=_likely,
    begun=_begun,
    at_first=not_in_shared,
    before_numbers=_before_numbers,
    in_registers=True,
    lessons=(
        *STANDARD,
        reads(
            lambda tiles: (tiles.TM + 1) / tiles.TM,
            "In each step read one element of Bs, `b = Bs[p, tx]`, before the loop over `i`, and in "
            "the loop TM of As: they serve TM multiply-adds. (Reads in your source are counted; the compiler "
            "may merge some.)",
        ),
    ),
)
