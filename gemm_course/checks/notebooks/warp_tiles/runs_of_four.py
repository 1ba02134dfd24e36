"""Checks ``runs_of_four``: the heart of a warp-tiled kernel whose rows and columns come in runs of four."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from gemm_course.checks.core import Refused, exercise
from gemm_course.checks.engines.common_mistakes import Mistake
from gemm_course.checks.engines.gemm import GemmTrial, Likely, try_on
from gemm_course.checks.engines.gemm_factory import GemmFactory
from gemm_course.checks.engines.lessons import barriers, no_float64, not_in_shared, reads
from gemm_course.checks.engines.mistakes import result
from gemm_course.checks.engines.problem import Geometry, Problem
from gemm_course.checks.engines.registers import CAPABILITY
from gemm_course.checks.engines.tiles import Tiles, tile_choices
from gemm_course.compiler import compiled
from gemm_course.compiler.nvidia import why_no_compiler
from lockstep import Watch, active

from .heart import FINDINGS, check_begun, loaded_once, not_unrolled, one_wavefront
from .run_places import COLUMNS, NOWHERE, ROWS, Axis, marked
from .seen import AXES, Seen

TILES = tile_choices(
    "BM BN BK WM WN TM TN",
    # The block has one warp.
    (64, 32, 8, 64, 32, 8, 8),
    # Two warps stand one below the other, and WM is not WN.
    (32, 64, 4, 16, 64, 4, 8),
    # A warp has 4 by 8 lanes. All other choices have at least as many lanes down as across.
    (32, 128, 4, 32, 64, 8, 8),
    # Two warps stand one below the other, and four side by side.
    (64, 128, 4, 32, 32, 8, 4),
    # A thread's rows make four runs.
    (128, 16, 4, 128, 16, 16, 4),
)
SEVERAL = TILES[3]


@exercise(
    start="work out `y0` and `x0`, then fill `a` and `b` from As and Bs, then call `put`. Nothing can be "
    "tried before As and Bs are read, so `y0` and `x0` may be right already.",
    hints=(
        "Lane number `lane` stands in row `lane // LANE_COLS` and column `lane % LANE_COLS` of the grid of "
        "lanes, and begins with a run of four: `y0` is four times the lane's row, plus the warp's own first "
        "row. With WM = 64 and TM = 8, the first runs of the 8 lanes in a column take rows 0 to 31, and the "
        "second run of the first lane begins at row 32.",
        "Which run is row `i` of a thread in, and which element of the run is it? `//` and `%` tell, by 4. "
        "From one run to the next it is as far as the first runs of all lanes in the column reach.",
        "Row `i` of a thread is element `i % 4` of run `i // 4`: `y0 + i // 4 * (4 * LANE_ROWS) + i % 4`.",
        "The same formula, with `j`, `x0` and `LANE_COLS`, gives its columns. You need both twice: where As "
        "and Bs are read, and in `put(m, n, alpha, acc[i, j], beta, C, row, col)`.",
    ),
)
def runs_of_four(make_runs_of_four):
    """A factory of GEMM kernels from BM, BN, BK, WM, WN, TM, TN: rows and columns in runs of four."""
    proof = FACTORY.prove(make_runs_of_four)
    merged = _merged(proof.trials[TILES[0]])
    said = (
        f"{'' if merged else SLOW}Right on {proof.problems} problems, with {len(TILES)} choices of tiles. No "
        f"read of As or Bs has a bank conflict. {merged}{proof.registers}"
    )
    return f"{said}{_in_another_order(proof.trials[SEVERAL])}"


SLOW = (
    "Passed, but slow: the compiler does not merge each run into one 128-bit read. Are the indices signed? "
    "Make them unsigned, `u32(cuda.threadIdx.x)`. "
)


def _merged(trial: GemmTrial) -> str:
    """Return a remark that one instruction reads each run of four, or "" if the compiler says otherwise."""
    if why_no_compiler() is not None or active() is not None:
        return "With unsigned indices each run of four can be read by one 128-bit instruction. "
    code = compiled(trial.kernel, *trial.before.values(), compute_capability=CAPABILITY)
    reads = [row.opcode for row in code.rows if row.opcode.startswith("LDS")]
    if all(opcode == "LDS.128" for opcode in reads):
        return "Each run of four is read by one 128-bit instruction. "
    return ""


def _in_another_order(trial: GemmTrial) -> str:
    """Return a remark on warps or lanes that are numbered in another order than in the text, or ""."""
    seen = Seen.of(trial)
    usual = (marked(axis.right(seen.tiles), seen.tiles, axis, seen.stored[axis].shape[1]) for axis in AXES)
    if all((places == seen.stored[axis]).all() for axis, places in zip(AXES, usual)):
        return ""
    said = (
        " Your warps or lanes are numbered in another order than the text's. That is harmless with these "
        "tiles: the reads take as many wavefronts."
    )
    columns = seen.stored[COLUMNS]
    if (columns[0] != columns[1]).any():
        # Lanes 0 and 1 do not lie one below the other, so lanes are not numbered downwards.
        return said
    return f"{said} But 16 × 2 lanes (WM 128, WN 16), numbered downwards, take 12 per k step and not 8."


def _geometry(t: Tiles) -> Geometry:
    """Return the geometry: blocks of threads in one row. The learner chooses each thread's elements."""
    block = t.BM * t.BN // (t.TM * t.TN), 1
    return Geometry(block, "columns", covers=(t.BM, t.BN), owner_of=partial(_block_of, t))


def _block_of(t: Tiles, row: int, col: int) -> str:
    return f"block ({col // t.BN}, {row // t.BM})"


# ---- who stores and reads what -----------------------------------------------------------------------------


def _check_places(trials: Sequence[GemmTrial]) -> None:
    """Check that one thread stores each element of a whole tile, and reads the same rows and columns."""
    if all(trial.right for trial in trials):
        return
    seen = [Seen.of(trial) for trial in trials]
    _check_stores(seen, [each for each in seen if each.astray])
    if any(trial.error("uninitialised_read") for trial in trials):
        # The emulator's finding says more than a message about missing reads.
        return
    for axis, array in ((ROWS, "As"), (COLUMNS, "Bs")):
        _check_reads(seen, axis, array)
    wrong = [trial for trial in trials if trial.wrong.any()]
    if wrong and not any(trial.report.errors for trial in trials):
        if all(_only_the_last_tile(trial) for trial in wrong):
            raise Refused(
                "Only the products of the last tiles along k are left: is `clear(acc)` called inside the "
                "loop over `k0`? Once, before it, is enough.",
                f"{wrong[0].about}.",
            )
        raise Refused(
            "Each thread reads the right columns of the tiles, and each element of C is stored once. But the "
            "numbers are wrong. Is `p` the first index of both reads? Is `a[i] * b[j]` added to `acc[i, j]` "
            "for each p? Does each `put` get the `acc[i, j]` of its own row and column, and `alpha`?",
            f"{wrong[0].about}.",
        )


def _only_the_last_tile(trial: GemmTrial) -> bool:
    """Tell whether C is the product of the last tiles, as if `acc` were cleared before each."""
    q, BK = trial.problem, trial.tiles.BK
    return trial.equals(q.alpha * (q.A[:, -BK:] @ q.B[-BK:]) + q.beta * q.C)


def _check_stores(seen: Sequence[Seen], wrong: Sequence[Seen]) -> None:
    if not wrong:
        return
    first = wrong[0]
    where = f"{first.trial.about}."
    if not first.stored[ROWS].any():
        raise Refused(
            "Nothing is stored into C. Was `put` called, once for each result, after the loop over k? Do "
            "`y0` and `x0` stay as they are in the loops?",
            where,
        )
    if all(each.stores_columns_as_rows for each in seen):
        raise Refused("Row and column are swapped in `put`: it takes the row first.", where)
    mistakes = {axis: axis.mistake({each.tiles: each.stored[axis] for each in seen}) for axis in AXES}
    for axis, message in mistakes.items():
        if message:
            read_elsewhere = any(each.reads_other_than_stored(axis) for each in seen)
            if read_elsewhere:
                message = f"Where you call `put`: {_in_one_place(message, axis)}"
            raise Refused(message, where)
    rows = " or ".join(axis.rows for axis, message in mistakes.items() if message is None)
    words = f"The threads' {rows} overlap, or leave gaps." if rows else NOT_ONCE
    raise Refused(f"{words} {first.astray}", where)


def _check_reads(seen: Sequence[Seen], axis: Axis, array: str) -> None:
    wrong = [each for each in seen if each.reads_other_than_stored(axis)]
    if not wrong:
        return
    message = axis.mistake({each.tiles: each.read[axis] for each in seen})
    if message:
        raise Refused(
            f"The results go to the right places, so look at the reads of `{array}`: "
            f"{_in_one_place(message, axis)}",
            f"{wrong[0].trial.about}.",
        )
    if not wrong[0].trial.report.errors:
        raise Refused(
            f"A thread must read the {axis.rows} of `{array}` that its results belong to. "
            f"{wrong[0].first_other(axis)}",
            f"{wrong[0].trial.about}.",
        )


NOT_ONCE = (
    "The threads' rows and columns are right, but not each result is stored once: call `put` for all `i` and "
    "`j`, after the loop over k."
)


def _in_one_place(message: str, axis: Axis) -> str:
    """Return the message for a mistake in one place of the source, worded to follow a colon.

    `y0` and `x0` are right in this case. So where the message would ask the learner to work one of them out,
    the function says that the name is missing in this place.
    """
    if message == axis.text(NOWHERE):
        return f"`{axis.first}` is missing."
    return message[0].lower() + message[1:]


def _results_swapped(t: Tiles) -> tuple[Mistake, ...]:
    """Tell whether `acc[j, i]` stands for `acc[i, j]`, which leaves `acc` where TM is not TN."""

    def predict(q: Problem) -> np.ndarray | None:
        if t.TM != t.TN:
            return None
        # The shapes are (threads, TM) and (threads, TN).
        rows, columns = ROWS.right(t), COLUMNS.right(t)
        taken = np.empty((2, t.BM, t.BN), int)
        taken[:, rows[:, :, None], columns[:, None, :]] = np.broadcast_arrays(
            rows[:, None, :], columns[:, :, None]
        )
        row, column = np.indices((q.m, q.n))
        whole = np.zeros((-(-q.m // t.BM) * t.BM, -(-q.n // t.BN) * t.BN))
        whole[: q.m, : q.n] = q.AB
        down, across = taken[:, row % t.BM, column % t.BN]
        return result(q, whole[row // t.BM * t.BM + down, column // t.BN * t.BN + across])

    return (
        Mistake(
            "`i` and `j` are swapped in the results: `put` gets `acc[j, i]` for the row of `i` and the "
            "column of `j`. The result there is `acc[i, j]`.",
            predict,
        ),
    )


# ---- lessons -----------------------------------------------------------------------------------------------


def own_warp_tiles(trial: GemmTrial) -> None:
    """Check, where reads have bank conflicts, that 32 consecutive threads share one warp tile."""
    if trial.accesses("load").query("wavefronts > ideal_wavefronts").empty:
        return
    seen, t = Seen.of(trial), trial.tiles
    own = {axis: np.flatnonzero(seen.stored[axis][:32].any(axis=0)) for axis in AXES}
    if any(places[-1] - places[0] >= getattr(t, axis.W) for axis, places in own.items()):
        raise Refused(
            "The result is right, but threads 0 to 31 have their results in several warp tiles. The GPU "
            "forms warps of 32 consecutive threads: a thread's warp is `threadIdx.x // 32`, its lane the "
            "remainder.",
            f"{trial.about}.",
        )


def in_runs(trial: GemmTrial) -> None:
    """Check that what a thread reads of one row of a tile lies in aligned runs of four."""
    if not (trial.accesses("load")["bits"] < 128).any():
        return
    one_tile, watch = trial.problem.but(k=trial.tiles.BK), Watch(warp=0, local=False)
    trace = try_on(trial.kernel, trial.geometry, one_tile, tiles=trial.tiles, watch=watch).report.trace
    loads = trace[(trace["space"] == "shared") & (trace["op"] == "load") & (trace["lane"] == 0)]
    for array, rows in loads.groupby("array"):
        first = ((at[1], bits // 32) for at, bits in zip(rows["element"], rows["bits"]) if at[0] == 0)
        places = np.array(sorted({start + i for start, width in first for i in range(width)}))
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
    likely=lambda tiles: Likely(results=_results_swapped(tiles), findings=FINDINGS),
    begun=check_begun,
    before_numbers=_check_places,
    row_multiple=4,
    in_registers=True,
    why_not_in_registers=not_unrolled,
    lessons=(
        no_float64,
        not_in_shared,
        loaded_once,
        reads(
            lambda t: (t.TM + t.TN) / (t.TM * t.TN),
            "For each p read TM elements of As into `a` and TN of Bs into `b`; only then multiply.",
        ),
        barriers(2),
        own_warp_tiles,
        one_wavefront,
        in_runs,
    ),
)
