"""Compares the machine code of two stages, or of two kernels of a learner, before and after a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gemm_course.compiler import Compiled, Loop, compiled
from gemm_course.compiler.disassembly import Instruction
from gemm_course.compiler.kinds import KINDS, MULTIPLY_ADD, TENSOR_CORE
from gemm_course.compiler.result import PLURALS
from gemm_course.compiler.work import multiply_adds
from gemm_course.figures import code_change as figure
from gemm_course.figures.code_change import Side, number
from gemm_course.figures.picture import Picture
from gemm_course.figures.waits import arrows, milliseconds, percent
from gemm_course.kernels import Stage
from gemm_course.profiles import NoProfile, Profile, Verdict, recorded, verdict
from gemm_course.records import Place, parse_tiles
from gemm_course.widgets._gpus import NotKnown, hardware, named, not_in_the_table
from gemm_course.widgets._labels import labels
from gemm_course.widgets._loop_in_words import busy_clocks
from gemm_course.widgets._profiled import note

MILLION = "million multiply-adds"
# Two kernels that have the same name are shown by these names.
_CHANGE = ("before the change", "after the change")
# Times whose ratio differs from 1 by less than this are called the same.
LIKE = 0.02

Kernel = str | Stage | tuple[str | Stage, Mapping[str, int]] | Compiled | Profile


def compare_code(
    before: Kernel,
    after: Kernel,
    compute_capability: tuple[int, int] | str | None = None,
    *,
    on: str | None = None,
) -> Picture:
    """Draw what a change did to the machine code of the main loop, by kind of instruction.

    ``before`` and ``after`` are each a stage or its name, with default tiles; ("vectorized", {"TM": 8}) for
    other tiles; what `compiled` returned, for your own kernel; or a profile. ``compute_capability`` is that
    of the GPU to compile for. ``on`` is the GPU whose profiles are shown, such as "rtx_3060", and the code is
    compiled for it unless you say otherwise. Loops of different lengths are compared for the same work.

    Without the extra `compiler`, only stages at their default tiles can be compared. Raise what `compiled`
    raises, and ValueError for a kernel without a loop that multiplies.
    """
    place = named(on)
    compute_capability = compute_capability or _capability(place)
    codes = [_code(kernel, compute_capability) for kernel in (before, after)]
    loops = [_loop(code) for code in codes]
    profiles = [_profile(kernel, code, place) for kernel, code in zip((before, after), codes, strict=True)]
    measured = [profile for profile in profiles if profile] if all(profiles) else []
    found = _verdicts(measured)
    per, amounts = _amounts(loops)
    names = labels(codes)
    sides = [
        Side(name, code.tiles, _for_work(loop, amount), facts)
        for name, code, loop, amount, facts in zip(
            names, codes, loops, amounts, _facts(codes, loops, measured), strict=True
        )
    ]
    called = names if names[0] != names[1] else list(_CHANGE)
    remarks = list(filter(None, [_limits(called, found), _busy(called, measured), _CAUTION]))
    origin = " ".join(filter(None, [_note(codes), _origin(measured)]))
    title = _answer(_titled(called, measured), sides, per, _slots(codes, loops), found)
    return figure.draw(*sides, per, title, remarks, origin, _meanings(loops))


_CAUTION = (
    "Counted as the loop's code stands; a branch may skip some. What loads and stores cost in memory is not "
    "in these counts."
)


def _code(kernel: Kernel, compute_capability: tuple[int, int] | str) -> Compiled:
    if isinstance(kernel, Compiled):
        return kernel
    if isinstance(kernel, Profile):
        return kernel.code
    stage, tiles = kernel if isinstance(kernel, tuple) else (kernel, None)
    return compiled(stage, tiles=tiles, compute_capability=compute_capability)


def _capability(on: Place) -> tuple[int, int]:
    """Return the compute capability of a GPU that was profiled. Raise NotKnown if the table lacks the GPU."""
    gpu = hardware(on)
    if gpu is None:
        raise NotKnown(f"{not_in_the_table(on.short)} Say which compute_capability it has, such as '8.6'.")
    return gpu.compute_capability


def _profile(kernel: Kernel, code: Compiled, on: Place) -> Profile | None:
    """Return the recorded profile of a stage with these tiles on the GPU that the code was compiled for.

    Return None if there is none.
    """
    if isinstance(kernel, Profile):
        return kernel if kernel.measured.get("nanoseconds") else None
    gpu = hardware(on)
    # A learner's own kernel has no tiles.
    if (gpu and code.compute_capability != gpu.compute_capability) or not code.tiles:
        return None
    try:
        return recorded(code.name, parse_tiles(code.tiles), gpu=on)
    except NoProfile:
        return None


def _loop(code: Compiled) -> Loop:
    if code.loop is None:
        raise ValueError(f"{code.name} has no loop with multiply-adds or Tensor Core products to compare.")
    return code.loop


# --- the same work for both ---------------------------------------------------------------------------------


def _amounts(loops: Sequence[Loop]) -> tuple[str, list[float]]:
    """Return the unit of work that instructions are counted for, in words, and each loop's amount of it.

    The unit is a product if both loops compute products of the same size, and else a number of multiply-adds.
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
    """Count the multiply-adds of single elements that a warp does in the loop. Return None if unknown."""
    known = [multiply_adds(row.opcode) for row in _work(loop)]
    return None if None in known else sum(known)


def _work(loop: Loop) -> list[Instruction]:
    return [row for row in loop.rows if row.kind == loop.work]


def _for_work(loop: Loop, amount: float) -> dict[str, float]:
    return {kind: count / amount for kind, count in loop.by_kind.items() if count}


# --- what they take, and what was measured ------------------------------------------------------------------


def _facts(
    codes: Sequence[Compiled], loops: Sequence[Loop], measured: Sequence[Profile]
) -> list[dict[str, str]]:
    facts: list[dict[str, str]] = [{}, {}]
    for fact, profile in zip(facts, measured, strict=False):
        row = profile.measured
        fact["time, measured"] = f"{milliseconds(row['nanoseconds'] / 1e6)}\u00a0ms"
    if len({code.work for code in codes}) == 1 and all(one.measured.get("clocks") for one in measured):
        for fact, profile in zip(facts, measured, strict=False):
            fact |= _clocks(profile)
    for fact, loop in zip(facts, loops, strict=True):
        fact["instructions in the loop, a clock each"] = f"{len(loop):,}"
        work = PLURALS[loop.work] if loops[0].work == loops[1].work else "multiply-adds or products"
        fact[f"of these, {work}"] = f"{loop.by_kind[loop.work]:,}"
    for fact, (issue, needed) in zip(facts, _slots(codes, loops), strict=False):
        fact |= _allowed(loops[0].work, issue, needed)
    for fact, code in zip(facts, codes, strict=True):
        fact["registers per thread"] = f"{code.registers}"
        if any(one.spilled_bytes for one in codes):
            fact["registers kept in memory, bytes per thread"] = f"{code.spilled_bytes:,}"
        fact["shared memory per block, bytes"] = f"{code.shared_bytes:,}"
    return facts


def _clocks(profile: Profile) -> dict[str, str]:
    """Return, by name, the clocks in which an SM had work, and those in which it issued and computed."""
    row = profile.measured
    pipe, name = _UNITS[profile.code.work]
    parts = {"of these, issue slots taken": row.get("issue_slots"), f"of these, {name} busy": row.get(pipe)}
    of_launch = {words: row["clocks"] * share / 100 for words, share in parts.items() if share is not None}
    clocks = {"clocks in which an SM had work": row.get("active_clocks") or row["clocks"], **of_launch}
    return {words: f"{count:,.0f}" for words, count in clocks.items()}


_UNITS = {
    MULTIPLY_ADD: ("fma_pipe", "multiply-add units"),
    TENSOR_CORE: ("tensor_pipe", "Tensor Cores"),
}


def _slots(codes: Sequence[Compiled], loops: Sequence[Loop]) -> list[tuple[int, float]]:
    """Return for each loop the clocks to issue it and the clocks that its work needs, or [] if unknown."""
    clocks = [busy_clocks(code, loop) for code, loop in zip(codes, loops, strict=True)]
    if None in clocks or loops[0].work != loops[1].work:
        return []
    return [(len(loop), busy) for loop, busy in zip(loops, clocks, strict=True)]


def _allowed(work: str, issue: int, needed: float) -> dict[str, str]:
    """Return what issuing allows, by its name: a share of the peak, or the clocks that products need."""
    if work == MULTIPLY_ADD:
        return {"at most, of the FP32 peak": percent(min(needed / issue, 1))}
    return {"clocks that these need at least, together": f"{needed:,.0f}"}


def _verdicts(measured: Sequence[Profile]) -> list[Verdict]:
    try:
        return [verdict(profile) for profile in measured]
    except ValueError:
        # Too little was measured.
        return []


def _limits(names: Sequence[str], found: Sequence[Verdict]) -> str:
    """Say what limits each kernel by its measurement, or that nothing was measured."""
    if not found:
        return "There are no profiles of both kernels, so nothing here is a measured time."
    told = [f"{name}: {_limit(one)}" for name, one in zip(names, found, strict=True)]
    return f"The limit, measured: {'; '.join(told)}."


def _limit(found: Verdict) -> str:
    return found.limit_in_words


def _busy(names: Sequence[str], measured: Sequence[Profile]) -> str:
    """Say how much longer one kernel's products keep the Tensor Cores busy than the other's.

    Return "" if that was not measured, or if not both compute on Tensor Cores.
    """
    if {profile.code.work for profile in measured} != {TENSOR_CORE}:
        return ""
    known = [(one.measured.get("tensor_pipe"), one.measured.get("clocks")) for one in measured]
    if not all(share and clocks for share, clocks in known):
        return ""
    old, new = (share * clocks for share, clocks in known)
    if abs(old / new - 1) < LIKE:
        return "Tensor Cores are busy for as long in both."
    longer, shorter = (0, 1) if old > new else (1, 0)
    times = max(old, new) / min(old, new)
    where = [name if name in _CHANGE else f"with {name}" for name in names]
    return f"Tensor Cores are busy {times:.2f} times as long {where[longer]} as {where[shorter]}."


def _meanings(loops: Sequence[Loop]) -> dict[str, str]:
    """Explain each kind of instruction. For products of two sizes, also say how much work each is."""
    meanings = dict(KINDS)
    if {loop.work for loop in loops} != {TENSOR_CORE}:
        if loops[0].work != loops[1].work:
            meanings[MULTIPLY_ADD] = "each instruction of a warp does 32 multiply-adds of elements"
        return meanings
    sizes = [_multiply_adds(loop) / loop.by_kind[TENSOR_CORE] for loop in loops if _multiply_adds(loop)]
    if len(set(sizes)) == 2:
        told = " → ".join(f"{size:,.0f}" for size in sizes)
        meanings[TENSOR_CORE] = f"{told} multiply-adds per warp and product: the same work"
    if any(_reads_tiles(loop) for loop in loops):
        meanings["shared load"] = (
            f"{KINDS['shared load']}, which products of four warps (HGMMA) do themselves"
        )
    return meanings


def _reads_tiles(loop: Loop) -> bool:
    return any(row.opcode.startswith("HGMMA") for row in loop.rows)


# --- what is said -------------------------------------------------------------------------------------------


def _answer(
    names: str,
    sides: Sequence[Side],
    per: str,
    slots: Sequence[tuple[int, float]],
    limits: Sequence[Verdict],
) -> str:
    """Say what changed in the code.

    If issuing is no limit, say so, and what the limit is if it was measured.
    """
    changed = figure.changes(*sides)
    if not changed:
        return f"{names}: as many instructions of each kind, per {per}"
    if slots and all(issue < needed for issue, needed in slots):
        part = arrows(percent(issue / needed) for issue, needed in slots)
        limit = dict.fromkeys("waiting" if one.waiting else one.limiter for one in limits)
        known = f"the limit is {' → '.join(limit)}, not issuing" if limit else "issuing is not the limit"
        return f"{names}: {known}; issuing takes {part} of the clocks that the multiplying needs"
    kind = next(iter(changed))
    old, new = (number(side.instructions.get(kind, 0)) for side in sides)
    return (
        f"{names}: {number(sides[0].all)} → {number(sides[1].all)} instructions per {per}. Largest change: "
        f"{kind}, {old} → {new}"
    )


def _titled(names: Sequence[str], measured: Sequence[Profile]) -> str:
    """Return both names in the order of the change, and how long the kernels took if that was measured."""
    times = [milliseconds(one.measured["nanoseconds"] / 1e6) for one in measured]
    took = f", {arrows(times)} ms" if times else ""
    return f"{' → '.join(names)}{took}"


def _note(codes: Sequence[Compiled]) -> str:
    said = [
        f"compute capability {'.'.join(map(str, code.compute_capability))}, {code.compiler}" for code in codes
    ]
    return f"Compiled for {' and '.join(dict.fromkeys(said))}."


def _origin(measured: Sequence[Profile]) -> str:
    return f"Profiles: {note(measured)}" if measured else ""
