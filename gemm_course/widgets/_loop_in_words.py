"""Says what the main loop consists of, and whether the GPU can issue it fast enough."""

from __future__ import annotations

from gemm_course.compiler import Compiled, Loop
from gemm_course.compiler.kinds import MULTIPLY_ADD
from gemm_course.compiler.result import PLURALS
from gemm_course.compiler.work import least_clocks
from gemm_course.profiles.words import percent


def busy_clocks(code: Compiled, loop: Loop) -> float | None:
    """Return the least clocks for which the loop's multiply-adds or products keep their unit busy.

    Return None if that is unknown.
    """
    clocks = [least_clocks(row.opcode, code.compute_capability) for row in loop.rows if row.kind == loop.work]
    return None if None in clocks else sum(clocks)


def loop_in_words(code: Compiled, busy_share: float | None = None) -> str:
    """Describe the main loop in a sentence or two.

    ``busy_share`` is the share of the clocks in which Tensor Cores were busy, or None.
    """
    loop = code.loop
    if loop is None:
        return f"There is no loop with {PLURALS[code.work]}."
    count, work = loop.by_kind[loop.work], PLURALS[loop.work]
    said = f"Main loop: {count:,} of {len(loop):,} instructions are {work}"
    busy = busy_clocks(code, loop)
    if loop.work == MULTIPLY_ADD:
        slow = f", which take {busy / count:.0f} clocks each" if busy and busy != count else ""
        return f"{said}{slow}{_limit(busy, len(loop), 'FP32 peak')}."
    slow = f", which take a Tensor Core at least {busy:,.0f} clocks" if busy else ", each of many clocks"
    measured = (
        f" Measured: Tensor Cores were busy in {percent(busy_share)} of the clocks." if busy_share else ""
    )
    return f"{said}{slow}{_limit(busy, len(loop), 'peak')}.{measured}"


def _limit(busy: float | None, issued: int, peak: str) -> str:
    """Say what one instruction per clock allows. Return "" if that is not known."""
    if busy is None:
        return ""
    why = "a scheduler issues one instruction per clock"
    if busy < issued:
        return f": at most {100 * busy / issued:.0f} % of the {peak}, since {why}"
    return f"; {why}, so that all {issued:,} fit into that time"
