"""Checks ``coalesced``: the naive kernel, turned so that its requests touch few sectors."""

from gemm_course.checks.core import Refused, check_begun, exercise, kernel_of, name_of_x
from gemm_course.checks.engines.common_mistakes import GuardMistake, Mistake
from gemm_course.checks.engines.first_warp import (
    ALONG_A_ROW,
    DOWN_A_COLUMN,
    SAME,
    WATCH,
    FirstWarp,
    direction,
)
from gemm_course.checks.engines.gemm import GEMM, GemmTrial, Likely, hold_to_numbers, try_on
from gemm_course.checks.engines.lessons import no_float64
from gemm_course.checks.engines.problem import Geometry, Problem
from lockstep import Watch

GEOMETRY = Geometry((32, 8), "columns")
# Blocks whose sizes nobody writes into a kernel as numbers, and matrices of several such blocks.
OTHER_BLOCKS, SEVERAL = Geometry((16, 4), "columns"), Problem(11, 37, 5)
# The rows of all three matrices start at sectors, and all warps are full.
ALIGNED = Problem(16, 64, 32)
# Swapped rows and columns stay inside these matrices.
SQUARE = Problem(32, 32, 32)
# C has 8 by 2 blocks. A block that begins at a wrong multiple of a block's sizes still begins inside C.
EIGHT_BY_TWO = Problem(64, 64, 1)


@exercise(
    start="write the kernel of [[naive]] again. Which of its two indices should the fast `x` count now?",
    hints=(
        "Lanes of a warp differ in `x` first. Which index of C has to differ from lane to lane, so that they "
        "read neighbours of B?",
        "Only the two indices change places: `cuda.grid(2)` gives x first, and x is the column. Leave the "
        "subscripts `A[row, p]`, `B[p, col]` and `C[row, col]` as they are, and compare each index with its "
        "own size.",
        "`col, row = cuda.grid(2)`, `if row < m and col < n:`, and below that the loop of [[naive]], "
        "unchanged.",
    ),
)
def coalesced(coalesced):
    """A GEMM kernel for blocks of any shape, such as (32, 8) threads, with x over the columns of C."""
    kernel = kernel_of(coalesced, GEMM)
    _check_names(kernel)
    traced = try_on(kernel, GEOMETRY, SQUARE, watch=WATCH)
    check_begun(kernel, traced.report)
    warp = FirstWarp(traced.report.trace)
    _check_what_x_counts(traced, warp)
    try:
        trials = hold_to_numbers(kernel, GEOMETRY, Likely((LOOP_TO_M,), _guards(name_of_x(kernel))))
    except Refused as refused:
        raise _blocks_misplaced(kernel) or refused from None
    trial = try_on(kernel, GEOMETRY, ALIGNED)
    _check_loads(trial)
    a, b, c = _sectors_per_warp(trial)
    if a + b > 5 or c > 4:
        where = f"A warp's step along k takes {a + b:g} sectors; 5 are enough."
        raise Refused(_why_uncoalesced(warp, trial), where)
    if a > 1:
        raise Refused(
            f"The result is right, and {a + b:g} sectors per step along k are few. But a warp has {a:g} rows "
            f"of C: where A's rows are 4096 long, its {a:g} floats of A share a place and take {a:g} "
            "wavefronts, not 1. Let all 32 lanes lie side by side in one row.",
        )
    _check_other_blocks(kernel)
    # Where beta is not 0 another line stores, and that line may compute in float64.
    for each in (trial, try_on(kernel, GEOMETRY, ALIGNED.but(beta=0.5))):
        no_float64(each)
    return (
        f"Right on {len(trials)} problems. A warp's step along k takes {_sectors(a)} of A and {b:g} of B, "
        f"{a + b:g} instead of the 33 of [[naive]], and the store of C {c:g} instead of 32; the loads are "
        "2·m·n·k as before."
    )


def _sectors(count: float) -> str:
    return f"{count:g} sector{'s' * (count != 1)}"


def _sectors_per_warp(trial: GemmTrial) -> tuple[float, float, float]:
    """Return the sectors of A and B in a warp's k step, and of C in a warp's store."""
    q = trial.problem
    warps = q.m * q.n // 32
    a, b = (trial.sectors("load", name) / (warps * q.k) for name in "AB")
    return a, b, trial.sectors("store", "C") / warps


# ---- what goes wrong ---------------------------------------------------------------------------------------


def _blocks_misplaced(kernel) -> Refused | None:
    """Return a refusal that says where the blocks beside and below the first one lie, if that is wrong."""
    rows, columns = GEOMETRY.rows_and_columns
    beside, below = (_first_stored(kernel, block) for block in ((1, 0, 0), (0, 1, 0)))
    if not beside or not below or (beside, below) == ((0, columns), (rows, 0)):
        return None
    where = " ".join(
        f"Thread (0, 0) of block {block} stores `C{list(got)}`; it should store `C{list(wanted)}`."
        for block, got, wanted in (((1, 0), beside, (0, columns)), ((0, 1), below, (rows, 0)))
        if got != wanted
    )
    if beside[0] and below[1] and not beside[1] and not below[0]:
        besides = "" if (beside[0], below[1]) == (rows, columns) else f" Besides, {SIZES_OF_A_BLOCK}"
        return Refused(GRID_NOT_TURNED + besides, where)
    if beside[1] and below[0] and not beside[0] and not below[1]:
        return Refused(f"The blocks lie at wrong distances: {SIZES_OF_A_BLOCK}", where)
    return None


def _first_stored(kernel, block: tuple[int, int, int]) -> tuple[int, int] | None:
    """Return the element that a block's first lane stores, or None."""
    trial = try_on(kernel, GEOMETRY, EIGHT_BY_TWO, watch=Watch(block=block, warp=0))
    stored = FirstWarp(trial.report.trace).stored(trial.own_name("C"))
    return tuple(map(int, stored[0])) if stored else None


GRID_NOT_TURNED = (
    "The threads are turned, the grid is not: within the block x counts columns, but `blockIdx.x` still "
    "counts blocks of rows. In this launch the blocks along x lie over the columns as well: `col` comes from "
    "`blockIdx.x`, `row` from `blockIdx.y`."
)
SIZES_OF_A_BLOCK = (
    "a block is {0} rows high and {1} columns wide. `blockIdx` of the rows goes with {0} (`blockDim.y`), "
    "that of the columns with {1} (`blockDim.x`)."
).format(*GEOMETRY.rows_and_columns)


LOOP_TO_M = Mistake(
    "The loop ends at `m`. The products of a sum are numbered along k: `range(k)`.",
    lambda q: q.alpha * (q.A[:, : q.m] @ q.B[: q.m]) + q.beta * q.C if q.m < q.k else None,
)


def _guards(x: str) -> tuple[GuardMistake, ...]:
    """Return the mistakes in the guard; ``x``: the learner's name for the index along x."""
    if not x.startswith(("r", "i")):
        return ()
    left_behind = GuardMistake(
        f"Your `{x}` comes from x and is `C`'s second index, so it must end at `n`, and the other at `m`.",
        lambda row, col, q, g: (row < q.n) & (col < q.m),
    )
    return (left_behind,)


def _check_names(kernel) -> None:
    """Refuse names of the course's listing that only its factory knows."""
    function = kernel.py_func
    missing = [name for name in ("BM", "BN") if name in function.__code__.co_names]
    if missing and not set(missing) <= set(function.__globals__):
        raise Refused(
            f"{' and '.join(f'`{name}`' for name in missing)}: a size of the block in the course's listing, "
            "and no name of yours. Take `cuda.grid(2)`: it needs neither, and numbers blocks along x over "
            "the columns, as they are launched here."
        )


def _check_what_x_counts(trial: GemmTrial, warp: FirstWarp) -> None:
    """Refuse a kernel in which the lanes of the first warp still go down the rows."""
    lanes = warp.stored(trial.own_name("C"))
    if direction(lanes) != DOWN_A_COLUMN:
        return
    loads = [direction(warp.loaded_first(trial.own_name(name))) for name in "AB"]
    where = (
        f"Thread (1, 0) of block (0, 0) stores `C{list(lanes[1])}`; its left neighbour, thread (0, 0), "
        f"`C{list(lanes[0])}`. They must be neighbours in a row."
    )
    if loads == [SAME, ALONG_A_ROW]:
        raise Refused(
            "A and B are read coalesced, but the subscripts of `C` are swapped: the result arrives "
            "transposed.",
            where,
        )
    if loads != [DOWN_A_COLUMN, SAME]:
        return
    x = name_of_x(trial.kernel)
    if x.startswith(("c", "j")):
        raise Refused(
            f"Rows and columns are swapped twice: `{x}` now comes from x, but it also took the place of the "
            "row in the subscripts. Only the names have changed; it is the kernel of [[naive]] again, with "
            "33 sectors per step along k.",
            where,
        )
    raise Refused(
        "x still counts rows, as in [[naive]]: neighbouring lanes read different rows of A, 33 sectors per "
        "step along k. And the grid here is made for x over columns, so it would not even cover C.",
        where,
    )


def _check_other_blocks(kernel) -> None:
    """Refuse a kernel that is right in blocks of (32, 8) threads only."""
    if try_on(kernel, OTHER_BLOCKS, SEVERAL).right:
        return
    raise Refused(
        "Right in blocks of (32, 8) threads, and wrong in other blocks: these two numbers, or one of them, "
        "are written into the kernel. Ask for them: `cuda.blockDim.x` and `cuda.blockDim.y`, or "
        "`cuda.grid(2)`, which knows them.",
        f"Blocks of (16, 4) threads, in the problem {SEVERAL}.",
    )


def _check_loads(trial: GemmTrial) -> None:
    """Refuse more loads than two for each product, a load of C, and more than one store of each element."""
    q = trial.problem
    products = q.m * q.n * q.k
    read, stored = (trial.lanes(op, "C") for op in ("load", "store"))
    if not read and stored <= q.m * q.n:
        pass
    elif max(read, stored) > 2 * q.m * q.n:
        raise Refused(
            "The result is right, but the sum is kept in C itself: global memory is read and written "
            "in every step of the loop. Add up in a variable of the thread's own, and store it once.",
            trial.line(trial.accesses("store", "C")["line"].iloc[-1]),
        )
    elif read:
        raise Refused(
            "The result is right, but `C` is read although `beta` is 0. Read it only where `beta` is not 0, "
            "and store each element once.",
            trial.line(trial.accesses("load", "C")["line"].iloc[0]),
        )
    else:
        raise Refused(
            "The result is right, but each element of C is stored twice. Once, at the end, is enough.",
            trial.line(trial.accesses("store", "C")["line"].iloc[0]),
        )
    for name in "AB":
        loads = trial.lanes("load", name)
        if loads > products:
            raise Refused(
                f"The result is right, but `{name}` is loaded more often than needed: {loads:,} elements "
                f"where the {products:,} products need one each.",
                f"In the problem {q}.",
            )


def _why_uncoalesced(warp: FirstWarp, trial: GemmTrial) -> str:
    a, b, c = _sectors_per_warp(trial)
    counts = f"A {a:g}, B {b:g}, store of C {c:g} sectors"
    rows_of_b = {row for row, _ in warp.loaded_first(trial.own_name("B"))}
    if c <= 4 and len(rows_of_b) > 1:
        return (
            "The result is right and C is stored coalesced, but the lanes are at different steps of k: at "
            f"one instant they read different rows of B ({counts}). All lanes should take the same `p`."
        )
    lanes = warp.stored(trial.own_name("C"))
    if len(lanes) > 1 and lanes[1][0] != lanes[0][0]:
        return (
            f"The result is right but not coalesced: the next lane works in the next row of C ({counts}). "
            "Let neighbours in x be neighbours in a row."
        )
    return f"The result is right but not coalesced: {counts}, where 1, 4 and 4 are enough."
