"""Checks ``partial_sums``: a warp per row, whose lanes share out the row's elements."""

from itertools import pairwise

import numpy as np

from gemm_course.checks.core import Refused, check_begun, exercise, kernel_of
from gemm_course.checks.engines.first_warp import ALONG_A_ROW, DOWN_A_COLUMN, SAME, FirstWarp, direction
from gemm_course.checks.engines.float64 import why_float64
from gemm_course.checks.engines.trial import Trial, try_kernel
from lockstep import Finding, Watch, wavefronts

NAMES = ("A", "out")
WARP, SECTOR = 32, 8
# Rows and columns of A. The first shape is traced: whole passes, and more rows than a warp has lanes.
TRACED, SHAPES = (40, 1024), ((5, 64), (9, 333), (3, 31), (4, 33), (6, 32), (7, 200), (2, 1), (1, 95))
# A warp of another block than the first shows where its row begins.
BLOCK = 1
WATCH = Watch(block=(BLOCK, 0, 0), warp=0)


@exercise(
    start="let lane `l` begin at column `l` of its row. Which column is its next, if the 32 lanes are always "
    "to read 32 neighbours?",
    hints=(
        "The row is `cuda.blockIdx.x`, the lane `cuda.threadIdx.x`. In each pass the warp takes the next 32 "
        "elements of its row, one for each lane.",
        "So a lane takes the columns `lane`, `lane + 32`, `lane + 64`, ...: a `range` with a step. Its end, "
        "the width of A, also guards the last pass.",
        "`acc = float32(0)`, then `for col in range(lane, A.shape[1], 32): acc += A[row, col]`, and after "
        "the loop, for every lane, `out[row, lane] = acc`.",
    ),
)
def partial_sums(partial_sums):
    """The kernel partial_sums(A, out), a warp per row: out[row, lane] is a lane's share of the row's sum."""
    kernel = kernel_of(partial_sums, NAMES)
    traced = _sum_up(kernel, TRACED, watch=WATCH)
    check_begun(kernel, traced.report)
    _check_lanes(traced)
    trials = [traced, *(_sum_up(kernel, shape) for shape in SHAPES)]
    for trial in trials:
        _check_findings(trial)
        _check_numbers(trial)
    for trial in trials:
        _check_accesses(trial)
    _check_float64(traced)
    for trial in trials:
        _check_sectors(trial)
    return (
        f"Right for {len(trials)} shapes; each element is loaded once. A request takes "
        f"{_per_request(traced):g} sectors where rows are {TRACED[1]} floats long, and "
        f"{_per_request(trials[2]):.1f} where they are {SHAPES[1][1]}: most of those begin inside a sector."
    )


def _sum_up(kernel, shape: tuple[int, int], **options) -> Trial:
    """Launch the kernel with a warp for each row, with ``out`` full of NaN before."""
    rows, columns = shape
    rng = np.random.default_rng(shape)
    # All sums of these are exact in float32, in whatever order, so a wrong sum is no rounding.
    A = (rng.integers(1, 4096, shape) * rng.choice((-1, 1), shape) / 256).astype(np.float32)
    out = np.full((rows, WARP), np.nan, np.float32)
    about = f"A is {rows} × {columns}"
    return try_kernel(kernel, NAMES, rows, WARP, A, out, about=about, **options)


def _sums(trial: Trial) -> np.ndarray:
    return trial.after["out"].astype(np.float64).sum(axis=1)


def _row_sums(trial: Trial, columns: int | None = None) -> np.ndarray:
    """Return the sums of the first so many elements of each row; of all where that is left out."""
    return trial.before["A"][:, :columns].astype(np.float64).sum(axis=1)


def _per_request(trial: Trial) -> float:
    return trial.sectors("load", "A") / trial.total("requests", "load", "A")


# ---- what the lanes of a warp read -------------------------------------------------------------------------


def _check_lanes(traced: Trial) -> None:
    """Refuse a wrong walk through a row of whole passes, by what the second block's warp reads and stores."""
    a, out = map(traced.own_name, NAMES)
    warp = FirstWarp(traced.report.trace)
    first, walk = warp.loaded_first(a), warp.walk(a)
    if not first:
        return
    where = f"{traced.about}. In block {BLOCK}, {_shown(a, first)}"
    if _lanes_that_load(traced, a) == 1:
        raise Refused(
            "One lane adds the whole row, and the other 31 look on: a request for every single element. Let "
            "all lanes add, each a share of its own.",
            where,
        )
    if direction(first) == DOWN_A_COLUMN:
        raise Refused(_down(direction(walk) == ALONG_A_ROW), where)
    if len({row for row, _ in first}) == 1 and first[0][0] != BLOCK:
        raise Refused(
            f"Block {BLOCK} reads row {first[0][0]} of A. A block has the row of its own number, "
            "`cuda.blockIdx.x`.",
            where,
        )
    _check_stored(traced, out, warp.stored(out))
    _check_begin(traced, first, where)
    _check_step(traced, first, walk, where)


def _check_stored(traced: Trial, out: str, stored: list[tuple]) -> None:
    if len(stored) < 2:
        return
    where = f"{traced.about}. In block {BLOCK}, lane 1 stores `{out}{list(stored[1])}`."
    if direction(stored) == DOWN_A_COLUMN:
        raise Refused(
            f"The subscripts of `{out}` are swapped: lanes store one below the other. It has a row for each "
            "row of A, and in it a number for each lane.",
            where,
        )
    if direction(stored) == SAME:
        raise Refused(
            "All lanes store the same element, and one number is left of 32. Each has its own, "
            f"`{out}[row, lane]`; with blocks of 32 threads along x the lane is `cuda.threadIdx.x`.",
            where,
        )
    if {row for row, _ in stored} == {0}:
        raise Refused(
            f"All blocks store into row 0 of `{out}`. The row of a block is `cuda.blockIdx.x`, as in A.",
            where,
        )


def _lanes_that_load(trial: Trial, a: str) -> int:
    trace = trial.report.trace
    loads = trace[(trace["array"] == a) & (trace["op"] == "load")]
    return loads["lane"].nunique()


def _shown(a: str, elements: list[tuple]) -> str:
    shown = ", ".join(f"`{a}{list(element)}`" for element in elements[:3])
    return f"the first request reads {shown}{', ...' if len(elements) > 3 else '.'}"


def _down(whole_rows: bool) -> str:
    if whole_rows:
        return (
            "Here each thread has a row of its own: neighbouring lanes read different rows, 32 sectors for a "
            "request. A row belongs to a whole warp, and the row's number is `cuda.blockIdx.x`."
        )
    return (
        "The warp lies along a column of A: neighbouring lanes read one element below the other. Let them "
        "lie along the row: the first subscript is `cuda.blockIdx.x`, the same for all lanes, and the lane, "
        "`cuda.threadIdx.x`, belongs in the second."
    )


def _check_begin(traced: Trial, first: list[tuple], where: str) -> None:
    columns = [column for _, column in first]
    if min(columns) == WARP * BLOCK and direction(first) == ALONG_A_ROW:
        raise Refused(
            f"Lane 0 of block {BLOCK} begins at column {WARP * BLOCK}, as `cuda.grid(1)` counts: through all "
            "blocks. Here every block has a row of its own, and begins at its left end: the lane is "
            "`cuda.threadIdx.x`.",
            where,
        )


def _check_step(traced: Trial, first: list[tuple], walk: list[tuple], where: str) -> None:
    """Refuse another step than 32 between the columns of a lane."""
    columns = [column for _, column in walk]
    steps = {after - before for before, after in pairwise(columns)}
    if direction(first) == ALONG_A_ROW and len(columns) == 1:
        raise Refused(_one_pass(traced), where)
    if len(steps) != 1 or steps in ({WARP}, {-WARP}):
        return
    (step,) = steps
    read = ", ".join(map(str, columns[:3]))
    where = f"{traced.about}. Lane 1 of block {BLOCK} reads the columns {read}, ..."
    if direction(first) == ALONG_A_ROW and step == 1:
        raise Refused(
            "Each lane goes on to the next element, which its neighbour has as well: nearly all are added "
            "many times. A lane's next element lies behind those of all 32 lanes.",
            where,
        )
    if direction(first) == ALONG_A_ROW:
        raise Refused(
            f"A lane goes on by {step} columns. The warp reads 32 at a time, so each lane must go on by 32: "
            f"{'else elements are added twice' if 0 < step < WARP else 'else elements are left out'}.",
            where,
        )
    if abs(step) == 1 and len(set(first)) > 1:
        raise Refused(_cpu_order(traced, first), where)


def _one_pass(traced: Trial) -> str:
    if {"cuda.gridDim.x", "cuda.gridsize(1)"} & traced.written.texts:
        return (
            "The walk steps by all threads of the launch, as if they shared one row. Here the 32 lanes of a "
            "block have a row for themselves: step by 32."
        )
    return (
        "Each lane adds one element, and 32 are all that the warp adds. The row goes on: so must every lane, "
        "in a loop."
    )


def _cpu_order(traced: Trial, first: list[tuple]) -> str:
    width = traced.before["A"].shape[1]
    sectors = len({column // SECTOR for _, column in first})
    words = [row * width + column for row, column in first]
    clocks = wavefronts([*words, *[-1] * (WARP - len(words))])
    return (
        "This is CPU order: each lane walks through a chunk of its own, and in a request the 32 lanes are "
        f"far apart. They touch {sectors} sectors in place of 4, and L1 takes {clocks} clocks in place of 1. "
        "(It keeps each sector for the lane's next elements: its clocks are what you pay.) Deal the row out "
        "like cards: one element to each lane, then the next 32."
    )


# ---- findings and numbers ----------------------------------------------------------------------------------


def _check_findings(trial: Trial) -> None:
    if not trial.report.errors:
        return
    finding = trial.report.errors[0]
    raise Refused(_said(trial, finding), f"{trial.about}. {trial.line(finding)}")


def _said(trial: Trial, finding: Finding) -> str:
    columns = trial.before["A"].shape[1]
    if finding.kind != "out_of_bounds" or finding.array != trial.own_name("A"):
        return finding.message
    column = finding.element[-1]
    if column == columns and any(each.sign == "<=" for each in trial.written.comparisons):
        return f"The guard lets one column too many through: the last is {columns - 1}, so it must be `<`."
    if finding.element[0] >= trial.before["A"].shape[0]:
        return (
            "A's rows are numbered by the blocks, one warp for each: the row is `cuda.blockIdx.x`. "
            f"{finding.message}"
        )
    if column >= columns:
        return (
            "The last pass is not guarded: the row ends before its 32 lanes do, and lanes behind the end "
            f"must not load. {finding.message}"
        )
    return finding.message


def _check_numbers(trial: Trial) -> None:
    _check_all_stored(trial)
    sums, right = _sums(trial), _row_sums(trial)
    if np.array_equal(sums, right):
        return
    row = int(np.flatnonzero(~(sums == right))[0])
    where = (
        f"{trial.about}. The 32 numbers of row {row} add up to {sums[row]:.6g}, the row to {right[row]:.6g}."
    )
    raise Refused(_mistake(trial, sums, right), where)


def _check_all_stored(trial: Trial) -> None:
    stored, columns = trial.touched("out"), trial.before["A"].shape[1]
    if stored.all():
        return
    if trial.lanes("load", "out"):
        raise Refused(
            "The kernel adds to what was in `out` before, and there may be anything in it. Add up in a "
            "variable of the thread's own, and store it with `=` after the loop.",
            f"{trial.about}. There was NaN, which stays NaN.",
        )
    out = trial.own_name("out")
    if any(
        line in loop.lines for loop in trial.written.loops for line in trial.accesses("store", "out")["line"]
    ):
        raise Refused(
            f"`{out}` is stored inside the loop: too often, and not at all by a lane that has no element. "
            "Store after the loop, once for every lane.",
            f"{trial.about}.",
        )
    row, lane = map(int, np.argwhere(~stored)[0])
    where = f"{trial.about}. `{trial.own_name('out')}[{row}, {lane}]` is never stored."
    if columns < WARP and stored[:, :columns].all():
        raise Refused(
            "Lanes without elements store nothing, and anything may be in `out` there. NumPy adds all 32 "
            "numbers, so they must store 0.",
            where,
        )
    if stored[:, 0].all() and not stored[:, 1:].any():
        raise Refused("Only lane 0 stores. Every lane stores the sum of its own share.", where)
    raise Refused("Some elements of `out` are never stored.", where)


def _mistake(trial: Trial, sums: np.ndarray, right: np.ndarray) -> str:
    A, out = trial.before["A"], trial.after["out"]
    rows, columns = A.shape
    if (out == right[:, None]).all():
        return (
            "Every lane adds the whole row, so NumPy gets its sum 32 times. A lane adds only the elements "
            "that no other lane adds."
        )
    if columns % WARP and np.array_equal(sums, _row_sums(trial, columns // WARP * WARP)):
        return (
            f"The last pass is missing: {columns % WARP} elements are left over after the whole passes, and "
            "`//` rounds down. Round up, and guard the last pass."
        )
    if columns > 1 and np.array_equal(sums, _row_sums(trial, columns - 1)):
        return f"The last column is left out: `range` ends before its end, and the last is {columns - 1}."
    if columns > 1 and np.array_equal(sums, right - A[:, 0]):
        return "Column 0 of each row is never read: lane 0 begins there."
    if rows < columns and np.array_equal(sums, _row_sums(trial, rows)):
        return f"The walk ends at column {rows}, and A has so many *rows*. The width is `A.shape[1]`."
    if np.array_equal(out, _last_elements(A)):
        return "Only a lane's last element is left: `acc = ...` replaces what was there. Add: `acc += ...`."
    if len(off := set(sums - right)) == 1:
        return f"Every row is off by {off.pop():g}. Does each lane start with 0?"
    return "The numbers are wrong."


def _last_elements(A: np.ndarray) -> np.ndarray:
    """Return the last element of each lane that steps by 32, and 0 for lanes without elements."""
    lasts = np.zeros((len(A), WARP), np.float32)
    for begin in range(0, A.shape[1], WARP):
        part = A[:, begin : begin + WARP]
        lasts[:, : part.shape[1]] = part
    return lasts


# ---- the lesson --------------------------------------------------------------------------------------------


def _check_accesses(trial: Trial) -> None:
    loads, elements = trial.lanes("load", "A"), trial.before["A"].size
    if loads != elements:
        raise Refused(
            f"The sums are right, but A's {elements:,} elements are loaded {loads:,} times. Load each once, "
            "and keep it in a variable if you need it again.",
            f"{trial.about}.",
        )
    if trial.lanes("load", "out"):
        raise Refused(
            "The sums are right, but they are kept in `out` itself: global memory is read and written in "
            "every step. Add up in a variable of the thread's own.",
            f"{trial.about}.",
        )
    if trial.lanes("store", "out") > trial.after["out"].size:
        raise Refused(
            "The sums are right, but a lane stores more than once. Store after the loop, when its share is "
            "complete.",
            f"{trial.about}.",
        )


def _check_float64(traced: Trial) -> None:
    if traced.float64.empty:
        return
    lines = sorted(traced.float64["line"].unique())
    raise Refused(
        f"The sums are right, but computed in float64. {why_float64(traced.written, lines)}",
        traced.line(lines[0]),
    )


def _check_sectors(trial: Trial) -> None:
    """Refuse requests of few lanes, and more sectors than 4, or 5 where rows may begin inside a sector."""
    rows, columns = trial.before["A"].shape
    passes = -(-columns // WARP)
    if (requests := trial.total("requests", "load", "A")) > 2 * rows * passes:
        raise Refused(
            f"The sums are right, but {requests:,} requests are made where {rows * passes:,} are enough: in "
            "each of them most lanes load nothing, and wait. Let all 32 lanes load in the same iteration.",
            f"{trial.about}.",
        )
    most = 5 * rows * passes if columns % SECTOR else rows * columns // SECTOR
    if trial.sectors("load", "A") > most:
        raise Refused(
            f"The sums are right, but a request for A takes {_per_request(trial):.3g} sectors; "
            f"{5 if columns % SECTOR else 4} are enough for 32 neighbours. In each pass, neighbouring lanes "
            "must read neighbours.",
            f"{trial.about}.",
        )
