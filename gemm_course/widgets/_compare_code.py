"""What a change did to the machine code: two stages, or two kernels of a learner, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gemm_course.compiler import Compiled, Loop, compiled
from gemm_course.compiler.disassembly import Instruction
from gemm_course.compiler.kinds import MULTIPLY_ADD
from gemm_course.compiler.result import PLURALS
from gemm_course.compiler.work import multiply_adds
from gemm_course.figures import code_change as figure
from gemm_course.figures.code_change import Side, number
from gemm_course.figures.picture import Picture
from gemm_course.figures.waits import percent
from gemm_course.kernels import Stage
from gemm_course.profiles import Profile
from gemm_course.widgets._labels import labels
from gemm_course.widgets._loop_in_words import busy_clocks

MILLION = "million multiply-adds"

Kernel = str | Stage | tuple[str | Stage, Mapping[str, int]] | Compiled | Profile


def compare_code(
    before: Kernel, after: Kernel, compute_capability: tuple[int, int] | str = (9, 0)
) -> Picture:
    """Draw what a change did to the machine code of the main loop, by kind of instruction.

    before, after: a stage or its name, with default tiles; ("vectorized", {"TM": 8}) for other tiles; what
    `compiled` returned, for your own kernel; or a profile. compute_capability: of the GPU to compile for.
    Loops of different lengths are compared for the same work.

    Without the extra `compiler`, stages at their default tiles only. Raises what `compiled` raises, and
    ValueError for a kernel without a loop that multiplies.
    """
    codes = [_code(kernel, compute_capability) for kernel in (before, after)]
    loops = [_loop(code) for code in codes]
    per, amounts = _amounts(loops)
    names = labels(codes)
    sides = [
        Side(name, code.tiles, _for_work(loop, amount), facts)
        for name, code, loop, amount, facts in zip(
            names, codes, loops, amounts, _facts(codes, loops), strict=True
        )
    ]
    called = names if names[0] != names[1] else ["before the change", "after the change"]
    remarks = [*map(_most, called, codes, loops), *([_ELEMENTS] if per == MILLION else []), _CAUTION]
    return figure.draw(*sides, per, _answer(called, *sides, per), remarks, _note(codes))


_ELEMENTS = "The million counts single elements: a warp's multiply-add instruction does 32 of them."
_CAUTION = (
    "A scheduler issues one instruction per clock. Instructions are counted as they stand in the loop; a "
    "branch may skip some. What a load or a store costs in memory is not in these counts."
)


def _code(kernel: Kernel, compute_capability: tuple[int, int] | str) -> Compiled:
    if isinstance(kernel, Compiled):
        return kernel
    if isinstance(kernel, Profile):
        return kernel.code
    stage, tiles = kernel if isinstance(kernel, tuple) else (kernel, None)
    return compiled(stage, tiles=tiles, compute_capability=compute_capability)


def _loop(code: Compiled) -> Loop:
    if code.loop is None:
        raise ValueError(f"{code.name} has no loop with multiply-adds or Tensor Core products to compare.")
    return code.loop


# --- the same work for both ---------------------------------------------------------------------------------


def _amounts(loops: Sequence[Loop]) -> tuple[str, list[float]]:
    """The work that instructions are counted for, in words, and how much of it each loop does.

    As many products of the same size, or else as many multiply-adds.
    """
    one, other = loops
    products = [loop.by_kind[loop.work] for loop in loops]
    done = [_multiply_adds(loop) for loop in loops]
    sizes = [total and total / count for total, count in zip(done, products, strict=True)]
    if one.work == other.work and sizes[0] == sizes[1]:
        if one.work == MULTIPLY_ADD:
            return "1,000 multiply-adds", [count / 1000 for count in products]
        return "Tensor Core product", [float(count) for count in products]
    if None in done:
        raise ValueError(
            "the two loops compute products of which the sizes are not known: nothing to compare."
        )
    return MILLION, [total / 1e6 for total in done]


def _multiply_adds(loop: Loop) -> int | None:
    """Multiply-adds of single elements that a warp does in the loop, None if they are not known."""
    known = [multiply_adds(row.opcode) for row in _work(loop)]
    return None if None in known else sum(known)


def _work(loop: Loop) -> list[Instruction]:
    return [row for row in loop.rows if row.kind == loop.work]


def _for_work(loop: Loop, amount: float) -> dict[str, float]:
    return {kind: count / amount for kind, count in loop.by_kind.items() if count}


# --- what they take, and what they can reach ----------------------------------------------------------------


def _facts(codes: Sequence[Compiled], loops: Sequence[Loop]) -> list[dict[str, str]]:
    same = loops[0].work == loops[1].work
    works = PLURALS[loops[0].work] if same else "multiply-adds or products"
    facts = [
        {
            "registers per thread": f"{code.registers}",
            "spilled bytes per thread": f"{code.spilled_bytes:,}",
            "shared memory per block, bytes": f"{code.shared_bytes:,}",
            "instructions in the loop": f"{len(loop):,}",
            f"of these {works}": f"{loop.by_kind[loop.work]:,}",
        }
        for code, loop in zip(codes, loops, strict=True)
    ]
    clocks = [busy_clocks(code, loop) for code, loop in zip(codes, loops, strict=True)]
    if None not in clocks and all(loop.work == MULTIPLY_ADD for loop in loops):
        for fact, loop, busy in zip(facts, loops, clocks, strict=True):
            fact["at most, of the FP32 peak"] = percent(min(busy / len(loop), 1))
    return facts


def _most(name: str, code: Compiled, loop: Loop) -> str:
    """What the loop allows: which part of the peak, or for Tensor Cores whether it is issued fast enough."""
    count, issued, busy = loop.by_kind[loop.work], len(loop), busy_clocks(code, loop)
    told = f"{name}: {count:,} of {issued:,} instructions are {PLURALS[loop.work]}"
    if busy is None:
        return f"{told}."
    limit = f"at most {percent(busy / issued)} of the peak" if busy < issued else "issuing is not what limits"
    if loop.work == MULTIPLY_ADD:
        slow = "" if busy == count else f", which take {busy / count:.0f} clocks each"
        return f"{told}{slow}: {limit}."
    return f"{told}, which take a Tensor Core at least {busy:,.0f} clocks: {limit}."


# --- what is said -------------------------------------------------------------------------------------------


def _answer(names: Sequence[str], before: Side, after: Side, per: str) -> str:
    changed = figure.changes(before, after)
    if not changed:
        return f"{names[1]}: as many instructions of each kind as {names[0]}, per {per}"
    kind = next(iter(changed))
    old, new = (number(side.instructions.get(kind, 0)) for side in (before, after))
    return (
        f"{names[1]}: {number(after.all)} instructions per {per}, {names[0]}: {number(before.all)}. Largest "
        f"change: {kind}, {old} → {new}"
    )


def _note(codes: Sequence[Compiled]) -> str:
    said = [
        f"compute capability {'.'.join(map(str, code.compute_capability))}, {code.compiler}" for code in codes
    ]
    return f"Compiled for {' and '.join(dict.fromkeys(said))}."
