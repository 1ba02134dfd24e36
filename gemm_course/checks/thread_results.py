"""What every kernel with several results a thread is held to: registers, loads, barriers, no float64.

Each check takes a trial on whole tiles and raises Refused with what is too much. ``where`` names the tiles.
"""

import ast
from math import prod

from gemm_course.emulator import Finding

from .exercise import Refused, nothing_yet
from .float64 import why_float64
from .gemm import Trial
from .learner import line_at
from .source import tree_of
from .tile_findings import FINDINGS


def check_begun(trial: Trial) -> None:
    """In the stub the tiles are filled; nothing has begun as long as nobody uses them or names C."""
    uses = trial.report.total("lanes", space="shared", op="load") + trial.lanes("store", "C")
    if not uses and not _names_c(trial):
        raise nothing_yet()


def _names_c(trial: Trial) -> bool:
    """An element of C is named in the source, even if no thread gets there."""
    return any(
        isinstance(node, ast.Subscript) and ast.unparse(node.value) == trial.array("C")
        for node in ast.walk(tree_of(trial.kernel))
    )


def uninitialised(finding: Finding, trial: Trial) -> str | None:
    """What an uninitialised read means: a local array that was never set to zero, or a tile with holes."""
    local = trial.report.accesses.query("space == 'local' and array == @finding.array")
    if len(local):
        return (
            f"`{finding.array}` is added to before anything was put into it. A local array begins with "
            "whatever the registers hold: set its elements to zero before the loop along k. "
            f"{finding.message}"
        )
    return FINDINGS["uninitialised_read"](finding, trial)


def check_float64(trial: Trial) -> None:
    doubles = trial.report.arithmetic.query("dtype == 'float64'")
    if len(doubles):
        lines = sorted(doubles["line"].unique())
        raise Refused(
            f"The result is right, but {doubles['lanes'].sum():,} operations are in float64. "
            + why_float64(trial.kernel, lines),
            line_at(trial.kernel, int(lines[0])),
        )


def check_registers(trial: Trial, BM: int, BN: int, BK: int, where: str) -> None:
    """Results in local arrays whose every index is a constant when compiled; padded tiles are fine."""
    for finding in trial.report.advice:
        if finding.kind == "dynamic_local_index":
            raise Refused(
                f"The result is right, but `{finding.array}` cannot stay in registers: {finding.message} "
                "Let the loops over it run a constant number of times, and index it with their variables "
                "alone.",
                line_at(trial.kernel, finding.line),
            )
    tiles_alone = 4 * BK * (BM + BN)
    if trial.report.shared_bytes >= tiles_alone + 4 * BM * BN:
        raise Refused(
            f"The block takes {trial.report.shared_bytes:,} bytes of shared memory, where the two tiles need "
            f"{tiles_alone:,}. Results belong into registers: `cuda.local.array`.",
            where,
        )


def check_loads(trial: Trial, BM: int, BN: int, where: str) -> None:
    """A block fetches its tiles once; the sums are not kept in C."""
    q = trial.problem
    where = f"{where}, in the problem {q}."
    if trial.lanes("load", "C") or trial.lanes("store", "C") > q.m * q.n:
        raise Refused(
            "The result is right, but the sums are kept in C itself, and global memory is written again and "
            "again. Keep them in registers, and store each once.",
            where,
        )
    loads, needed = trial.lanes("load", "A", "B"), q.m * q.n * q.k // BM + q.m * q.n * q.k // BN
    if loads >= prod(trial.geometry.each) * needed:
        raise Refused(
            f"{loads:,} loads from A and B where {needed:,} are enough: the whole way along k is gone again "
            "for every result. Go along k once, with all results at hand.",
            where,
        )
    if loads > needed:
        raise Refused(
            f"More is loaded than tiles need: {loads:,} elements of A and B where {needed:,} are enough.",
            where,
        )


def reads_a_product(trial: Trial) -> float:
    """Elements of shared memory read for each of the m·n·k multiply-adds."""
    q = trial.problem
    return trial.report.total("lanes", space="shared", op="load") / (q.m * q.n * q.k)


def check_barriers(trial: Trial, BK: int, where: str) -> None:
    q = trial.problem
    (x, y), steps = trial.geometry.grid(q.m, q.n), -(-q.k // BK)
    executed = trial.report.barriers // (x * y)
    if executed > 2 * steps:
        raise Refused(
            "More than two barriers a tile. Each of them keeps all threads waiting; the results are a "
            "thread's own and need none.",
            f"{where}: {executed} barriers a block for {steps} tiles; {2 * steps} are enough.",
        )
