"""Finds loops in machine code, by the jumps back that close them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from gemm_course.compiler.disassembly import SIZE, Instruction

JUMPS = ("BRA", "JMP", "BRX", "BRXU", "JMX", "UBRA")
ENDS = ("EXIT", "RET", "KILL", "BPT")
_TARGET = re.compile(r"0x([0-9a-f]+)$")


def loops(code: Sequence[Instruction]) -> list[frozenset[int]]:
    """Return the loops of a kernel, each as the set of its instructions' addresses, with those inside it.

    A loop is closed by a jump back to its entry, which is an instruction that every way into the loop passes.
    Parts that the compiler has moved elsewhere, such as rare cases, belong to the loop as well.
    """
    starts = _block_starts(code)
    blocks = {
        start: code[start // SIZE : end // SIZE] for start, end in pairwise([*starts, len(code) * SIZE])
    }
    following = {start: _successors(block, blocks) for start, block in blocks.items()}
    reached = _reached(following)
    preceding: dict[int, list[int]] = {start: [] for start in reached}
    for start in reached:
        for one in following[start]:
            preceding[one].append(start)
    dominators = _dominators(reached, preceding)
    bodies: dict[int, set[int]] = {}
    for start in reached:
        for head in following[start]:
            if head in dominators[start]:
                bodies.setdefault(head, set()).update(_body(head, start, preceding))
    return [
        frozenset(one.address for start in body for one in blocks[start])
        for _, body in sorted(bodies.items())
    ]


def _block_starts(code: Sequence[Instruction]) -> list[int]:
    starts = {0}
    for one in code:
        if _root(one) in (*JUMPS, *ENDS):
            starts.add(one.address + SIZE)
            starts.update(_targets(one))
    return sorted(start for start in starts if start < len(code) * SIZE)


def _successors(block: Sequence[Instruction], blocks: dict) -> list[int]:
    last = block[-1]
    targets = _targets(last) if _root(last) in JUMPS else []
    # "@P0 BRA 0x10" and "BRA.U UP0, 0x10" may continue with the next instruction, but "BRA 0x10" does not.
    surely = not last.predicate and (
        _root(last) in ENDS or (_root(last) in JUMPS and "," not in last.operands)
    )
    onward = [] if surely else [last.address + SIZE]
    return [start for start in dict.fromkeys([*targets, *onward]) if start in blocks]


def _targets(one: Instruction) -> list[int]:
    found = _TARGET.search(one.operands) if _root(one) in JUMPS else None
    return [int(found[1], 16)] if found else []


def _root(one: Instruction) -> str:
    return one.opcode.split(".")[0]


def _reached(following: dict[int, list[int]]) -> list[int]:
    """Return the blocks that can be reached from the kernel's start, by address. The start comes first."""
    seen, waiting = {0}, [0]
    while waiting:
        new = set(following[waiting.pop()]) - seen
        seen |= new
        waiting += new
    return sorted(seen)


def _dominators(reached: list[int], preceding: dict[int, list[int]]) -> dict[int, set[int]]:
    """Return, for each block, the blocks on every way to it from the kernel's start, including itself."""
    dominators = {start: set(reached) for start in reached} | {0: {0}}
    changed = True
    while changed:
        changed = False
        for start in reached[1:]:
            new = {start} | set.intersection(*(dominators[one] for one in preceding[start]))
            if new != dominators[start]:
                dominators[start], changed = new, True
    return dominators


def _body(head: int, end: int, preceding: dict[int, list[int]]) -> set[int]:
    """Return the blocks that lead to `end` without passing `head`, and `head` itself."""
    body, waiting = {head}, [end]
    while waiting:
        start = waiting.pop()
        if start not in body:
            body.add(start)
            waiting += preceding[start]
    return body
