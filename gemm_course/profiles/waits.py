"""Says in words what a warp does from clock to clock: it issues an instruction, or waits for something.

Nsight Compute samples at regular intervals where each warp is and why it does not issue. Its reasons are
NVIDIA's ("Nsight Compute, Kernel Profiling Guide", "Warp Stall Reasons"). Two of them mean different things
at different instructions, so some are told apart here by the instruction that waits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

from gemm_course.compiler.disassembly import Instruction

# This many instructions before a jump are searched for the one that sets its condition.
BACK = 64


@dataclass(frozen=True)
class Wait:
    """A way for a warp to spend its time.

    ``meaning`` explains the wait. ``help`` says how to wait less. ``waits`` is the rest of "a warp waits 24 %
    of its time ...", such as "at barriers", or "" if no time is lost, because the warp's scheduler issues an
    instruction.
    """

    name: str
    meaning: str
    help: str
    waits: str = ""


_ALL = (
    Wait(
        "issuing",
        "the warp issues an instruction; its scheduler issues one per clock, for all of its warps together",
        "fewer instructions",
    ),
    Wait(
        "another warp's turn",
        "the warp is ready, but its scheduler issues for another warp",
        "fewer instructions",
    ),
    Wait(
        "global memory",
        "the warp needs what a load from global or local memory brings",
        "fewer loads, earlier loads, or more warps to work meanwhile",
        "for loads from global memory",
    ),
    Wait(
        "shared memory",
        "the warp needs what a load from shared memory brings",
        "fewer or wider loads, earlier loads, or more independent work per thread",
        "for loads from shared memory",
    ),
    Wait(
        "queue to global memory",
        "the queue of accesses to global memory is full",
        "fewer accesses, each of more bytes, with fewer sectors",
        "for room in the queue to global memory",
    ),
    Wait(
        "queue to shared memory",
        "the queue of accesses to shared memory is full",
        "fewer or wider accesses, without bank conflicts",
        "for room in the queue to shared memory",
    ),
    Wait(
        "copies",
        "the warp needs a tile that is still being copied to shared memory; a producer waits for a free slot",
        "earlier copies, or more slots; that a producer waits costs nothing",
        "for copies",
    ),
    Wait(
        "barrier",
        "the warp is at a barrier before other warps of its block, or waits until its own stores are done",
        "fewer barriers, equal work per warp, or another block to work meanwhile",
        "at barriers",
    ),
    Wait(
        "Tensor Cores",
        "the warp needs a product that the Tensor Cores have not finished",
        "more products under way, if the Tensor Cores are not busy all the time",
        "for products of the Tensor Cores",
    ),
    Wait(
        "busy unit",
        "the unit for this kind of instruction is still at work on earlier ones",
        "fewer such instructions, if they are not the work itself",
        "for a busy unit",
    ),
    Wait(
        "fixed delay",
        "the warp needs the result of an instruction just before, which takes a few clocks",
        "independent instructions between the two, or more warps",
        "for the result of an instruction just before",
    ),
    Wait(
        "dispatch",
        "the instruction is ready but held back, for instance by conflicts between its registers",
        "hardly anything; the compiler chooses the registers",
        "with its next instruction held back (dispatch)",
    ),
    Wait(
        "next instruction",
        "the next instruction, or a constant in it, has not been fetched: after a jump, or in long code",
        "fewer jumps, shorter code",
        "for its next instruction",
    ),
    Wait("other", "all else, such as the end of the kernel, or a warp that sleeps", "", "for other reasons"),
)
WAITS = MappingProxyType({wait.name: wait for wait in _ALL})

# Each of Nsight Compute's reasons, as in the columns `stall_...` of its page of sources, means one of WAITS.
_MEANS = {
    "selected": "issuing",
    "not_selected": "another warp's turn",
    "long_sb": "global memory",
    # The reason short_sb also stands for slow operations, such as a root.
    "short_sb": "shared memory",
    "lg": "queue to global memory",
    "tex": "queue to global memory",
    "mio": "queue to shared memory",
    "barrier": "barrier",
    "membar": "barrier",
    "gmma": "Tensor Cores",
    "math": "busy unit",
    "wait": "fixed delay",
    "dispatch": "dispatch",
    "no_inst": "next instruction",
    "branch_resolving": "next instruction",
    "imc": "next instruction",
}
REASONS = (*_MEANS, "drain", "sleep", "misc")
_PREDICATE = re.compile(r"@!?(U?P\d)")


def wait_of(reason: str, code: Sequence[Instruction], place: int) -> str:
    """Return the wait, a key of WAITS, that Nsight Compute's reason stands for at an instruction.

    ``code`` has all instructions of the kernel by address. ``place`` is the index of the one that waits.
    """
    one = code[place]
    if reason in ("barrier", "wait") and one.opcode.startswith("WARPGROUP."):
        return "Tensor Cores"
    if reason == "long_sb" and (_waits_for_copies(code, place) or _asks_for_a_copy(code, place)):
        return "copies"
    return _MEANS.get(reason, "other")


def _waits_for_copies(code: Sequence[Instruction], place: int) -> bool:
    """Tell whether the warp waits for its own copies. Such samples are at the instruction after the wait."""
    before = code[place - 1].opcode if place else ""
    return code[place].opcode.startswith(("DEPBAR", "SYNCS")) or before.startswith("DEPBAR")


def _asks_for_a_copy(code: Sequence[Instruction], place: int) -> bool:
    """Tell whether this is a jump that depends on the completion of an mbarrier."""
    condition = _PREDICATE.match(code[place].predicate)
    if not condition or not code[place].opcode.startswith("BRA"):
        return False
    for one in reversed(code[max(0, place - BACK) : place]):
        operands = one.operands.replace(",", " ").split()
        if condition[1] in operands[:2]:
            return one.opcode.startswith("SYNCS")
    return False
