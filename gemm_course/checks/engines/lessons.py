"""Checks that a kernel with the right numbers does no needless work, such as float64 or repeated loads.

A lesson takes a trial on whole tiles, and raises Refused if the kernel does more than it needs to. An
exercise lists its own lessons, such as ``lessons=(*STANDARD, reads(1.5))``.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING

from gemm_course.checks.core import Refused, nothing_yet
from lockstep import Finding, Watch

from .findings import FINDINGS
from .float64 import number_beside, passed_on, why_float64
from .gemm import GemmTrial, try_on
from .tiles import Tiles
from .trial import Trial

if TYPE_CHECKING:
    import pandas as pd

Lesson = Callable[[GemmTrial], None]


def check_tiles_used(*trials: GemmTrial) -> None:
    """Raise NothingYet for a stub.

    A stub may fill the tiles, but no thread reads them or stores into C, nor is C in its source.
    """
    trial = trials[0]
    works = trial.shared_reads or trial.lanes("store", "C")
    if not works and not trial.written.elements(trial.own_name("C")):
        raise nothing_yet()


def uninitialised(finding: Finding, trial: GemmTrial) -> str | None:
    """Return what an uninitialised read means: a local array never set to zero, or a tile with holes."""
    local = trial.report.accesses.query("space == 'local' and array == @finding.array")
    if len(local):
        return (
            f"`{finding.array}` is added to before anything was stored in it. A local array begins with "
            "whatever the registers hold: set its elements to zero before the loop over k. "
            f"{finding.message}"
        )
    return FINDINGS["uninitialised_read"](finding, trial)


# ---- lessons -----------------------------------------------------------------------------------------------


def no_float64(trial: Trial) -> None:
    """Refuse operations in float64; the message names the line and the literal."""
    if len(trial.float64):
        lines = sorted(trial.float64["line"].unique())
        line, why = passed_on(trial.written, lines) or (lines[0], why_float64(trial.written, lines))
        raise Refused(
            f"The result is right, but {trial.float64['lanes'].sum():,} operations are in float64. {why}",
            ". ".join(filter(None, (trial.line(line), trial.about))) + ".",
        )


def no_number_beside(trial: Trial) -> None:
    """Refuse `A[...] if ... else 0.0`: the bare zero turns A's element into a float64 and back again."""
    found = number_beside(trial.written, [trial.own_name(name) for name in "AB" if name in trial.names])
    if found is None:
        return
    choice, number = found
    kind = "float64" if "." in number else "a whole number"
    raise Refused(
        f"The result is right, but `... else {number}` makes a float64 of both sides: the literal `{number}` "
        f"is {kind}, and Numba gives both one type. Every element is converted to float64 and back. Write "
        "`float32(0)`.",
        choice.where,
    )


def not_in_shared(trial: GemmTrial) -> None:
    """Refuse shared memory that has room for the accumulators too; padded tiles are fine."""
    BM, BN, BK = trial.tiles.block_tile
    tiles_alone = 4 * BK * (BM + BN)
    if trial.report.shared_bytes >= tiles_alone + 4 * BM * BN:
        raise Refused(
            f"The block takes {trial.report.shared_bytes:,} bytes of shared memory, where the two tiles need "
            f"{tiles_alone:,}. Accumulators belong in registers: `cuda.local.array`.",
            trial.about,
        )


def four_bytes(trial: GemmTrial) -> None:
    """Refuse tiles of float64, which take twice the shared memory."""
    wide = trial.accesses("load").query("bits == 64")
    if len(wide):
        raise Refused(
            f"The result is right, but `{wide['array'].iloc[0]}` has elements of 8 bytes, twice the shared "
            "memory: `cuda.shared.array(..., float32)`.",
            trial.line(wide["line"].iloc[0]),
        )


def stored_once(trial: GemmTrial) -> None:
    """Refuse accumulators that are kept in C: C is then loaded where beta is 0, or stored more than once."""
    q = trial.problem
    if trial.lanes("load", "C") or trial.lanes("store", "C") > q.m * q.n:
        raise Refused(
            "The result is right, but the accumulators are kept in C itself, and global memory is written "
            "again and again. Keep them in registers, and store each once.",
            f"{trial.about}, in the problem {q}: C is loaded {trial.lanes('load', 'C'):,} times and stored "
            f"{trial.lanes('store', 'C'):,} times, for {q.m * q.n:,} elements.",
        )


def tiles_loaded_once(trial: GemmTrial) -> None:
    """Refuse a block that loads its tiles more than once, or keeps the accumulators in C."""
    stored_once(trial)
    q, (BM, BN, _) = trial.problem, trial.tiles.block_tile
    where = f"{trial.about}, in the problem {q}."
    loads, needed = trial.lanes("load", "A", "B"), q.m * q.n * q.k // BM + q.m * q.n * q.k // BN
    if loads >= prod(trial.geometry.each) * needed:
        raise Refused(
            f"{loads:,} loads from A and B where {needed:,} are enough: the whole loop over k runs again for "
            "every result. Run it once, for all results together.",
            where,
        )
    if loads > needed:
        raise Refused(
            f"More is loaded than tiles need: {loads:,} elements of A and B where {needed:,} are enough.",
            where,
        )


def reads(
    least: float | Callable[[Tiles], float],
    advice: str = "What several results need, a thread reads once, into a variable of its own.",
) -> Lesson:
    """Return a lesson that allows at most ``least`` reads of shared memory per multiply-add.

    least: a number, or tiles -> a number. The refusal names the arrays that are read too often, how often and
    where, and ends with ``advice``.
    """

    def lesson(trial: GemmTrial) -> None:
        enough = least(trial.tiles) if callable(least) else least
        if trial.reads_per_multiply_add > enough:
            raise _read_too_often(trial, enough, advice)

    return lesson


def _read_too_often(trial: GemmTrial, enough: float, advice: str) -> Refused:
    products = trial.multiply_adds_per_step
    counted = " and ".join(f"{number:.4g} of `{array}`" for array, number in trial.reads_per_step.items())
    where = (
        f"{trial.about}: in a step along k a thread reads elements of shared memory, {counted}, for its "
        f"{products:.4g} multiply-adds; {enough * products:.4g} are enough."
    )
    again = {array: rows for array, rows in _reads_of_a_thread(trial) if rows["element"].duplicated().any()}
    if not again:
        return Refused(
            f"The result is right, but shared memory is read more often than needed. {advice}", where
        )
    names = " and ".join(f"`{array}`" for array in again)
    times = " and ".join(dict.fromkeys(f"{_times(rows):.3g}" for rows in again.values()))
    verb, whose = ("are", "their") if len(again) > 1 else ("is", "its")
    lines = {trial.line(rows["line"].iloc[-1]): None for rows in again.values()}
    return Refused(
        f"The result is right, but {names} {verb} read more often than needed: thread 0 reads each of "
        f"{whose} elements {times} times, where once is enough. {advice}",
        f"{'. '.join(lines)}. {where}",
    )


def _times(rows: pd.DataFrame) -> float:
    """Return how often an element is read on average."""
    return len(rows) / rows["element"].nunique()


def _reads_of_a_thread(trial: GemmTrial):
    """Return thread 0's reads of one pair of tiles, as (name, rows of the trace) for each shared array."""
    one_tile = trial.problem.but(k=trial.tiles.block_tile[2])
    watch = Watch(warp=0, local=False)
    traced = try_on(trial.kernel, trial.geometry, one_tile, tiles=trial.tiles, watch=watch)
    trace = traced.report.trace
    shared = trace[(trace["space"] == "shared") & (trace["op"] == "load") & (trace["thread"] == 0)]
    return shared.groupby("array", sort=False)


def barriers(per_tile: int, explain: Callable[[GemmTrial, int, int], str | None] | None = None) -> Lesson:
    """Return a lesson that allows at most this many barriers per tile along k.

    explain: (trial, barriers executed per block, tiles) -> what this number of barriers means, or None.
    """

    def lesson(trial: GemmTrial) -> None:
        tiles = -(-trial.problem.k // trial.tiles.block_tile[2])
        executed = trial.barriers_per_block
        if executed <= per_tile * tiles:
            return
        said = explain(trial, executed, tiles) if explain else None
        raise Refused(
            said
            or f"More than {per_tile} barriers per tile. Each of them keeps all threads waiting. Which of "
            "them protects nothing?",
            f"{trial.about}: {executed} barriers per block for {tiles} tiles; {per_tile * tiles} are enough.",
        )

    return lesson


STANDARD = (no_float64, not_in_shared, tiles_loaded_once, barriers(2))
