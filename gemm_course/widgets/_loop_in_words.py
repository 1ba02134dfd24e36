"""What the loop that counts consists of, and how much of the peak that leaves."""

from __future__ import annotations

from gemm_course.compiler import Compiled, Loop
from gemm_course.compiler.kinds import MULTIPLY_ADD, TENSOR_CORE
from gemm_course.compiler.result import PLURALS
from gemm_course.emulator.limits import LIMITS

SCHEDULERS, WARP = 4, 32  # of a multiprocessor, each of which issues one instruction per clock; threads


def loop_in_words(code: Compiled, tensor_pipe: float | None = None) -> str:
    """Say it in a sentence or two. tensor_pipe: how busy the Tensor Cores were, in percent, if measured."""
    loop = code.loop
    if loop is None:
        return f"There is no loop with {PLURALS[code.work]}."
    count, work = loop.by_kind[loop.work], PLURALS[loop.work]
    said = f"The loop that counts: {count:,} of {len(loop):,} instructions are {work}"
    if loop.work == TENSOR_CORE:
        busy = (
            f" Measured: the Tensor Cores were busy {tensor_pipe:.0f} % of the time." if tensor_pipe else ""
        )
        return f"{said}. One product takes many clocks, so their share says little about speed.{busy}"
    return said + _bound(loop, code.compute_capability)


def _bound(loop: Loop, capability: tuple[int, int]) -> str:
    """How much of the peak is left if every instruction takes its turn; "." where that is not known."""
    limits = LIMITS[capability]
    units = {"FFMA": ("FP32", limits.fp32_lanes), "DFMA": ("FP64", limits.fp64_lanes)}
    opcodes = {one.opcode.split(".")[0] for one in loop.rows if one.kind == MULTIPLY_ADD}
    if len(opcodes) > 1 or not opcodes <= units.keys():
        return "."
    name, lanes = units[opcodes.pop()]
    clocks = SCHEDULERS * WARP // lanes  # that a multiply-add of a warp keeps its units busy
    if clocks * loop.share >= 1:
        return (
            f". A warp's multiply-add keeps its units busy for {clocks} clocks, and one instruction can be "
            f"issued per clock: the others fit in between, and the {name} peak is not out of reach."
        )
    return (
        f": at most {100 * clocks * loop.share:.0f} % of the {name} peak, since a scheduler issues one "
        "instruction per clock."
    )
