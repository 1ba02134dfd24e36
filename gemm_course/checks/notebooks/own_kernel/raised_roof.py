"""Checks ``raised_roof``: a learner's own stage whose issue slots allow more than those of its beginning."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from gemm_course.checks.core import Refused, exercise, nothing_yet, same_statements
from gemm_course.compiler import CannotCompile, Compiled, compiled, recorded
from gemm_course.compiler.iteration import iteration_of, share_of_iteration
from gemm_course.compiler.nvidia import why_no_compiler
from gemm_course.compiler.result import PLURALS
from gemm_course.kernels import LADDER, Stage, tiles_text
from gemm_course.kernels.parts.block_tile import tile_of
from gemm_course.kernels.parts.own import OwnKernelError, OwnStage
from gemm_course.model import issue_ceiling
from gemm_course.model.requests import WARP
from lockstep import DataDependent, active, emulate
from lockstep.limits import MAX_REGISTERS

CAPABILITY = (9, 0)
# What is asked: TFLOPS that issue slots allow. Without a compiler, reads of shared memory per multiply-add,
# and loads and stores per float that is copied into a tile: two if it is copied alone, half of one by fours.
ROOF, READS, COPYING = 55, 0.20, 1.3
# A stage that begins higher than that must gain this many TFLOPS, or lose this part of its reads.
GAIN, LESS = 1, 0.1
_OUTSIDE = re.compile(r"(?:reads|writes) (\w+)\[[^\]]*\][^,]*, but \1 has \d+ (?:rows?|columns?): the last ")
# The bytes of four floats.
_FOUR = 16
# Loads from global memory per multiply-add; a tile of 32 by 32 has 0.06.
GLOBAL = 0.07
_REGISTERS_OF_A_STEP = "TM × TN accumulators and TM + TN operands"


@exercise(
    start="change a line of mine.py, save it, and run the cell again: `own` reads the file anew. Begin with "
    "TM and TN in STAGE's tiles.",
    hints=(
        "First the reads: of all legal TM and TN, which have the least 1 / TM + 1 / TN? Where a compiler is "
        "installed, `python3 course.py compile mine.py` says what the other instructions are.",
        "What is left is mostly fetching: its index arithmetic, bounds tests and moves, for each float. "
        "Notebook [[vectorized_access.ipynb]] fetched four floats with one instruction. Bs is the easy one: "
        "its rows lie in shared memory as they do in B.",
        "For Bs: `r, c = i + tid // (BN // 4), tid % (BN // 4) * 4`, and `store4(Bs, (r, c), load4(B, "
        "...))`, with four zeros out of bounds. A pass has then THREADS // (BN // 4) rows. STAGE needs "
        "`alignment=16`, and the rule for B `at_once=4`.",
    ),
)
def raised_roof(mine):
    """A stage of your own, `own("mine.py")`: right, and with issue slots that allow 55 TFLOPS."""
    stage = _own_stage(mine)
    _check_tiles(stage)
    start = LADDER[stage.after] if stage.after in LADDER else LADDER["thread_tiled_2d"]
    kernel = _kernel_of(stage)
    if dict(stage.tiles) == dict(start.tiles) and same_statements(kernel, start.kernel()):
        raise nothing_yet()
    cases = _check_right(stage)
    counted = _counted(stage)
    if counted.loads > GLOBAL or not counted.reads:
        raise Refused(
            f"The kernel loads {counted.loads:.2g} elements of A and B from global memory per multiply-add. "
            "Blocks with tiles in shared memory need far fewer, and this exercise is about those: keep the "
            "tiles.",
            f"{stage.name} with {tiles_text(stage.tiles)}.",
        )
    if why_no_compiler() is not None or active() is not None:
        return _by_counts(stage, start, counted, cases)
    return _by_machine_code(stage, start, counted, cases)


def _own_stage(mine) -> OwnStage:
    if isinstance(mine, OwnStage):
        stage = mine
    elif isinstance(mine, str):
        raise Refused(f'Pass the stage, not a name: `mine = own("{mine}")`, then `check.raised_roof(mine)`.')
    elif isinstance(mine, Stage):
        raise Refused(
            f"{mine.name} is a stage of the ladder. Yours is in a file: `python3 course.py new mine` writes "
            "one, "
            'and `mine = own("mine.py")` reads it.'
        )
    else:
        raise Refused(
            f'Pass your own stage, `mine = own("mine.py")`; this is a value of type `{type(mine).__name__}`.'
        )
    if stage.dtype != "float32":
        raise Refused(
            f"{stage.name} computes with {stage.dtype}, where Tensor Cores do the work. This roof is that of "
            "float32: `python3 course.py new mine` begins with such a kernel."
        )
    return stage


def _kernel_of(stage: OwnStage):
    try:
        return stage.kernel()
    except (OwnKernelError, ValueError) as error:
        raise Refused(str(error)) from None


# ---- can it run, and is it right? --------------------------------------------------------------------------


def _check_tiles(stage: OwnStage) -> None:
    """Refuse tiles that break a rule of the file, and say which resource is the reason."""
    try:
        broken = stage.rules()
    except Exception as error:  # whatever the learner's requirements raise
        raise Refused(
            f"{stage.file.name}: requirements stopped with {type(error).__name__}: {error}"
        ) from None
    if not broken:
        return
    rule, where = broken[0], f"{stage.name} with {tiles_text(stage.tiles)}: {'; '.join(broken)}."
    if "shared memory" in rule:
        raise Refused(_TOO_MUCH_SHARED, where)
    if "registers" in rule:
        raise Refused(
            f"These tiles ask for more registers than a thread can have, {MAX_REGISTERS}: they must hold "
            f"{_REGISTERS_OF_A_STEP}, and some 32 more. Take a smaller TM or TN.",
            where,
        )
    raise Refused("These tiles break a rule that stands in the file's `requirements`.", where)


_TOO_MUCH_SHARED = (
    "The tiles take more than 48 KB, 49,152 bytes, of shared memory: As and Bs need 4 · BK · (BM + BN). "
    "Halve BK first: reads per multiply-add do not depend on it."
)


def _check_right(stage: OwnStage) -> int:
    """Return in how many cases the stage is right. Refuse what `check` finds wrong."""
    found = stage.check()
    if found.ok:
        return len(found.passed)
    where = " ".join(_one_line(problem) for problem in found.problems)
    if "fixed shape take" in where or "bytes of shared memory" in where:
        raise Refused(_TOO_MUCH_SHARED, where)
    if stage.alignment < _FOUR and ("misaligned" in where or "elements at once)" in where):
        raise Refused(
            "The kernel moves fours, but nobody promises it rows that begin at multiples of 16 bytes, and "
            "are a multiple of four floats long. The line `alignment=16,` in STAGE does.",
            where,
        )
    if "misaligned" in where:
        raise Refused(
            "A four begins at no multiple of 16 bytes. Its column must be a multiple of four, in B and in "
            "the tile: `tid % (BN // 4) * 4`.",
            where,
        )
    outside = {array for problem in found.problems for array in _OUTSIDE.findall(problem)}
    if outside - {"A", "B", "C"}:
        raise Refused(
            f"An access lies outside of {min(outside - {'A', 'B', 'C'})}, a tile. How many rows of it has a "
            "pass, if each thread fetches four floats?",
            where,
        )
    if outside:
        raise Refused(
            "An access lies outside of a matrix: before it is loaded, ask whether its row and its column "
            "exist, and take zeros if not.",
            where,
        )
    if any("either may come first" in each and "the same line" not in each for each in found.problems):
        raise Refused(
            "There is a race: a tile is read while another thread may still store it, or stored while "
            "another may still read it. Each step needs two barriers, one after all stores and one after "
            "all reads.",
            where,
        )
    if any("in the same line" in each for each in found.problems):
        raise Refused(
            "Two threads store the same element of a tile. How many threads does a row of it take, if each "
            "fetches four floats?",
            where,
        )
    if "instead of" in where or "is not written" in where or "before anything has been written" in where:
        raise Refused(
            "The kernel is no longer right. `mine.check()` says the same: repair it before you raise "
            "anything.",
            where,
        )
    raise Refused(f"The kernel cannot run as it is: `{stage.name}.check()` says why.", where)


def _one_line(problem: str) -> str:
    return " ".join(problem.split())


# ---- what the emulator counts ------------------------------------------------------------------------------


class Counted(NamedTuple):
    """What one block does in four steps along k.

    reads, loads: from shared and from global memory, in elements per multiply-add. copying: loads and stores
    per float that is copied into a tile.
    """

    reads: float
    loads: float
    copying: float


def _counted(stage: Stage) -> Counted:
    BM, BN, BK = tile_of(stage, stage.tiles)
    m, n, k = BM, BN, 4 * BK
    A, B, C = (np.zeros((rows, max(columns, 4)), np.float32) for rows, columns in ((m, k), (k, n), (m, n)))
    standard = (m, n, k, np.float32(1), A, B, np.float32(0), C, *stage.example_extras(m, n))
    one = stage.alone(*standard, tiles=stage.tiles)
    given = (one.kernel, one.grid, one.block, *one.arguments)
    try:
        report = emulate(*given, shared_bytes=one.shared_bytes, counts_only=True)
    except DataDependent:
        report = emulate(*given, shared_bytes=one.shared_bytes)
    total = report.accesses.groupby(["space", "op"])[["bytes", "requests"]].sum()
    shared, loads = (
        float(total["bytes"].get((space, "load"), 0)) / stage.itemsize for space in ("shared", "global")
    )
    copies = total["requests"].get(("global", "load"), 0) + total["requests"].get(("shared", "store"), 0)
    return Counted(shared / (m * n * k), loads / (m * n * k), float(copies) * WARP / max(loads, 1))


def _by_counts(stage: OwnStage, start: Stage, counted: Counted, cases: int) -> str:
    """Judge by what the emulator counts, where there is no compiler. Return what was proved."""
    before, where = _counted(start), f"{stage.name} with {tiles_text(stage.tiles)}."
    most = min(READS, (1 - LESS) * before.reads)
    if counted.reads > most:
        raise Refused(
            f"The kernel is right, and reads {counted.reads:.2f} elements of shared memory per multiply-add; "
            f"{start.name}, as which it began, {before.reads:.2f}. At most {most:.2f} are asked. A thread "
            "with TM × TN results reads 1 / TM + 1 / TN.",
            where,
        )
    if counted.copying > COPYING:
        raise Refused(
            f"The kernel is right, and reads {counted.reads:.2f} elements of shared memory per multiply-add. "
            f"But a float that is copied takes {counted.copying:.2f} loads and stores, and at most {COPYING} "
            "are asked: copy four at once, of B at least.",
            where,
        )
    return (
        f"Right in {cases} cases, {counted.reads:.2f} reads of shared memory per multiply-add instead of "
        f"{before.reads:.2f}, and {counted.copying:.2f} loads and stores per copied float instead of "
        f"{before.copying:.2f}. Without NVIDIA's compiler nobody can say here what its roof is, or whether "
        "it spills: `python3 course.py --compiler` installs it on Linux and Windows."
    )


# ---- issue slots -------------------------------------------------------------------------------------------


def _by_machine_code(stage: OwnStage, start: Stage, counted: Counted, cases: int) -> str:
    """Judge by the machine code for an H200. Return what was proved."""
    try:
        code = compiled(stage, compute_capability=CAPABILITY)
    except CannotCompile as reason:
        raise Refused(f"On the emulator the kernel is right. But {reason}") from None
    _check_local(stage, code)
    share = _share(stage, code)
    roof = issue_ceiling(share)
    begun = recorded(start, CAPABILITY)
    before = issue_ceiling(begun.loop.share) if begun and begun.loop else 0.0
    least = max(ROOF, before + GAIN)
    told = (
        f"{share:.0%} of the loop's instructions are multiply-adds. So issue slots allow {roof:.1f} TFLOPS "
        f"on an H200, and those of {start.name}, as which it began, {before:.1f}."
    )
    if round(roof, 1) < round(least, 1):
        higher = "" if least == ROOF else f" ({start.name} has more than {ROOF} as it is)"
        raise Refused(
            f"The kernel is right, but its roof is too low: {told} At least {least:.1f} are asked{higher}. "
            f"{_others(code)}",
            f"{stage.name} with {tiles_text(stage.tiles)}.",
        )
    return (
        f"Right in {cases} cases. {told} It reads {counted.reads:.2f} elements of shared memory per "
        "multiply-add, "
        f"takes {code.registers} registers, and spills nothing. A roof is no speed: `python3 course.py "
        "bench` tells it on a GPU."
    )


def _check_local(stage: OwnStage, code: Compiled) -> None:
    """Refuse spilled values, and arrays in local memory."""
    where = f"{stage.name} with {tiles_text(stage.tiles)}, compiled for an H200: {code.registers} registers."
    threads, blocks = stage.launch_bounds()
    if code.spilled_bytes and code.registers >= MAX_REGISTERS - 1:
        raise Refused(
            f"A thread needs more than {MAX_REGISTERS} registers, the most that it can have: the compiler "
            f"spills {code.spilled_bytes:,} bytes to local memory. {_REGISTERS_OF_A_STEP} must fit, and the "
            "indices. If it is a few bytes, another BK may do: the compiler then arranges the loop anew.",
            where,
        )
    if code.spilled_bytes:
        raise Refused(
            f"The kernel spills {code.spilled_bytes:,} bytes to local memory: STAGE asks for room for "
            f"{blocks} {'block' if blocks == 1 else 'blocks'} of {threads} threads on an SM, so a thread "
            f"gets {code.registers} registers. Allow it more in `registers=`, or take fewer threads or "
            "results.",
            where,
        )
    if code.local_bytes:
        raise Refused(
            f"An array lies in local memory, {code.local_bytes:,} bytes per thread, and not in registers. "
            "Loops over it must run a constant number of times: `unroll(range(...))`.",
            where,
        )


def _share(stage: OwnStage, code: Compiled) -> float:
    """Return the share of multiply-adds in an iteration along k. Refuse a kernel that has none."""
    if iteration_of(code) is None:
        raise Refused(
            "The machine code has no loop with both a barrier and multiply-adds in it. This exercise is "
            "about blocks that fetch a tile, wait for each other, and multiply.",
            f"{stage.name} with {tiles_text(stage.tiles)}.",
        )
    return share_of_iteration(code, stage, stage.tiles)


def _others(code: Compiled) -> str:
    """Say which other instructions the loop has most of."""
    kinds = {kind: many for kind, many in code.loop.by_kind.items() if kind != code.work and many}
    most = sorted(kinds, key=kinds.get, reverse=True)[:3]
    listed = ", ".join(f"{kinds[kind]:,} {PLURALS[kind]}" for kind in most)
    told = f"Most of the others: {listed}, beside {code.loop.by_kind[code.work]:,} {PLURALS[code.work]}."
    if iteration_of(code) is not code.loop:
        told += " The compiler has kept the steps of a tile as a loop: `unroll(range(BK))` writes them out."
    return told
