"""Checks kernels that fill one tile in shared memory, wait once, and store one result per thread.

The kernels come from a factory ``make(T)``, have the arguments A and, last, `out`, and run in blocks of
T × T threads, x along the columns of A.
"""

from __future__ import annotations

from collections.abc import Sequence

from gemm_course.checks.core import Refused
from lockstep import Finding

from .findings import not_called
from .trial import Trial


def refuse_written_input(trial: Trial) -> None:
    """Refuse a kernel that stores into one of its inputs."""
    for name in trial.names[:-1]:
        if trial.touched(name).any():
            raise Refused(
                f"The kernel stores into `{trial.own_name(name)}`, which is input. Results belong in "
                f"`{trial.own_name('out')}`.",
                f"{trial.about}.",
            )


def refuse_written_out_size(trials: Sequence[Trial]) -> None:
    """Refuse a tile that has one size for every T."""
    sizes = {trial.report.shared_bytes for trial in trials}
    if len(sizes) == 1:
        raise Refused(
            f"The shared memory takes {sizes.pop():,} bytes whatever T is: its size is written out. T is "
            "what the factory was called with; make the shape from it."
        )


def refuse_other_types(trial: Trial) -> None:
    """Refuse a tile of float64, float16 or whole numbers."""
    shared = trial.accesses("store")
    if len(wide := shared[shared["bits"] == 64]):
        raise Refused(
            "The tile holds float64, 8 bytes per element: twice the shared memory, and twice the wavefronts. "
            "`cuda.shared.array(..., float32)`.",
            trial.line(wide["line"].iloc[0]),
        )
    if len(narrow := shared[shared["bits"] < 32]):
        raise Refused(
            "The tile's elements have less than 4 bytes each, and the numbers are rounded: its dtype is not "
            "that of A. `cuda.shared.array(..., float32)`.",
            trial.line(narrow["line"].iloc[0]),
        )
    for call in trial.written.calls("shared.array"):
        dtype = call.argument(1, "dtype")
        if dtype and dtype.text.split(".")[-1].strip("u").startswith("int"):
            raise Refused(
                f"The tile's elements are {dtype.text}, whole numbers: what stands behind the point is lost. "
                "`cuda.shared.array(..., float32)`.",
                call.where,
            )


# ---- who waits for whom ------------------------------------------------------------------------------------


def refuse_races(trial: Trial) -> None:
    """Refuse a missing, misplaced or divided barrier, and results that several threads store."""
    for finding in trial.report.errors:
        where = f"{trial.line(finding)}. {trial.about}."
        if finding.kind == "shared_race":
            raise Refused(_race(trial, finding), where)
        if finding.kind in ("barrier_divergence", "barrier_after_exit"):
            raise Refused(_divided(trial, finding), where)
        if finding.kind == "global_race" and finding.array == trial.own_name("out"):
            raise Refused(_stored_by_many(trial, finding), where)
    if finding := trial.advised("barrier_in_branch"):
        raise Refused(_divided(trial, finding), f"{trial.line(finding)}. {trial.about}.")


def _race(trial: Trial, race: Finding) -> str:
    if said := not_called(trial.kernel):
        return said
    at = trial.report.accesses.query("site == @race.site and array == @race.array")
    if set(at["op"]) == {"store"}:
        every = at["lanes"].sum() >= trial.threads * trial.block[0]
        return (
            f"Every thread fills the whole tile `{race.array}`. The threads must share the work: each "
            "element is fetched by one of them."
            if every
            else f"Two threads store to the same element of `{race.array}`. {race.message}"
        )
    if not trial.report.barriers:
        return (
            f"There is no barrier: a thread may read before the others have filled the tile. {race.message}"
        )
    barrier = int(trial.report.barriers_by_line["line"].min())
    if race.other_line is not None and barrier < race.other_line <= race.line:
        return (
            "The barrier stands before the tile is filled, where there is nothing to wait for yet. "
            f"{race.message}"
        )
    return f"The barrier does not come between filling the tile and reading it. {race.message}"


def _divided(trial: Trial, finding: Finding) -> str:
    if trial.written.returns:
        return (
            "Threads without a result `return` and never reach the barrier, so nobody fetches their part. "
            f"Let them go on, and guard the loads and the store alone. {finding.message}"
        )
    return (
        "The barrier is inside an `if` that not all threads of the block take. Guard loads and stores, never "
        f"a barrier. {finding.message}"
    )


def _stored_by_many(trial: Trial, race: Finding) -> str:
    out, stores = trial.own_name("out"), trial.lanes("store", "out")
    if not trial.written.texts & {"cuda.blockIdx.x", "cuda.blockIdx.y", "cuda.grid(2)"}:
        return (
            f"All blocks store to the same elements of `{out}`: the block index is missing. "
            "`cuda.threadIdx` begins anew in each block."
        )
    if stores >= trial.threads * trial.block[0]:
        return f"Every thread stores many elements of `{out}`. Each must store one, its own."
    return f"Several threads store to the same element of `{out}`. {race.message}"


# ---- the work of each thread -------------------------------------------------------------------------------


def refuse_repeated_stores(trial: Trial) -> None:
    """Refuse results that are stored more than once, or read back."""
    stores, elements = trial.lanes("store", "out"), trial.after["out"].size
    if stores > elements or trial.lanes("load", "out"):
        raise Refused(
            f"The result is right, but `{trial.own_name('out')}` is stored {stores:,} times and read "
            f"{trial.lanes('load', 'out'):,} times, for its {elements:,} elements. Each must be stored once, "
            "when it is complete.",
            f"{trial.about}.",
        )


def refuse_one_for_all(trial: Trial) -> None:
    """Refuse one thread that fetches, or stores, for the whole block."""
    for op, name, done in (("load", "A", "fetches"), ("store", "out", "stores")):
        if trial.total("requests", op, name) == trial.lanes(op, name):
            raise Refused(
                f"The result is right, but one thread {done} for the whole block, element by element, and "
                f"the others {'fetch' if op == 'load' else 'store'} nothing.",
                f"{trial.about}.",
            )
