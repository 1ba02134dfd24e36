"""Holds what `compiled` returns: machine code, counted by kind and by line, and its registers and memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from gemm_course.compiler.disassembly import Instruction
from gemm_course.compiler.kinds import KINDS, MULTIPLY_ADD, TENSOR_CORE
from gemm_course.compiler.loops import loops

if TYPE_CHECKING:
    import pandas as pd

# A summary names this many kinds, the most frequent first.
SHOWN = 4
PLURALS = {
    "multiply-add": "multiply-adds",
    "Tensor Core product": "Tensor Core products",
    "global load": "global loads",
    "global store": "global stores",
    "asynchronous copy": "asynchronous copies",
    "shared load": "shared loads",
    "shared store": "shared stores",
    "atomic": "atomics",
    "local memory": "of local memory",
    "integer arithmetic": "of integer arithmetic",
    "other arithmetic": "of other arithmetic",
    "compare and select": "comparisons and selections",
    "branch": "branches",
    "barrier and fence": "barriers and fences",
    "move": "moves",
    "other": "others",
}


@dataclass(frozen=True, eq=False)
class Loop:
    """A loop of the machine code. If the compiler has unrolled it, it holds several iterations.

    ``rows`` are its instructions by address, including those of loops inside it. ``work`` is the kind of
    instruction that does the kernel's work, "Tensor Core product" if it has any, or else "multiply-add".
    """

    rows: Sequence[Instruction] = field(repr=False)
    work: str

    @cached_property
    def instructions(self) -> pd.DataFrame:
        """All instructions in order, with the columns of `Compiled.instructions`."""
        return _frame(self.rows)

    @cached_property
    def by_kind(self) -> dict[str, int]:
        """The number of instructions of each kind, all kinds, in the order of KINDS."""
        return _by_kind(self.rows)

    @cached_property
    def addresses(self) -> frozenset[int]:
        """The addresses of its instructions, in bytes from the kernel's start."""
        return frozenset(row.address for row in self.rows)

    @property
    def share(self) -> float:
        """The share of its instructions that do the work, 0 to 1. A Tensor Core product takes many clocks."""
        return self.by_kind[self.work] / len(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        work = self.by_kind[self.work]
        return f"{work:,} of {len(self):,} instructions are {PLURALS[self.work]}: {self.share:.0%}"


@dataclass(frozen=True, eq=False)
class Compiled:
    """A kernel's machine code for one compute capability, with the registers and memory that it takes.

    ``tiles`` are a stage's, as in "BM=128 BN=128", or "" for any other kernel. ``registers`` is per thread.
    ``spilled_bytes`` is what the code stores to local memory because a thread has too few registers, each
    store counted once. ``local_bytes`` is local memory per thread, for spilled values and for arrays that
    cannot stay in registers. ``static_shared_bytes`` is per block, for arrays of fixed shape.
    ``shared_bytes`` includes what the launch requests, if that is known. ``seconds`` is wall
    time from the Python function to the machine code with its lines, or None if it was read from the record.
    ``compiler`` says which versions compiled it.
    """

    name: str
    tiles: str
    compute_capability: tuple[int, int]
    registers: int
    spilled_bytes: int
    local_bytes: int
    shared_bytes: int
    static_shared_bytes: int
    seconds: float | None
    compiler: str
    rows: Sequence[Instruction] = field(repr=False)

    @cached_property
    def instructions(self) -> pd.DataFrame:
        """All instructions in order: address (bytes), opcode, kind (of KINDS), text, line, file.

        ``line`` is the line in the innermost function that is the kernel's or its device functions'. It is 0,
        with file "", where there is none, as in a division of integers, which is NVIDIA's. Compiling with
        line numbers can change the order of instructions. The order here is the one without them, and the
        lines are those of the corresponding instructions.
        """
        return _frame(self.rows)

    @cached_property
    def by_kind(self) -> dict[str, int]:
        """The number of instructions of each kind, all kinds, in the order of KINDS."""
        return _by_kind(self.rows)

    @cached_property
    def by_line(self) -> pd.DataFrame:
        """The number of instructions by kind, with a row for each file and line and a column for each kind.

        Kinds that do not occur have no column.
        """
        import pandas as pd

        frame = self.instructions
        table = pd.crosstab([frame["file"], frame["line"]], frame["kind"])
        return table[[kind for kind in KINDS if kind in table.columns]].rename_axis(columns=None)

    @property
    def work(self) -> str:
        """The kind of instruction that does the work: Tensor Core products, or else multiply-adds."""
        return TENSOR_CORE if self.by_kind[TENSOR_CORE] else MULTIPLY_ADD

    @cached_property
    def loops(self) -> list[Loop]:
        """The loops by address. Each includes those inside it."""
        places = {row.address: row for row in self.rows}
        return [Loop([places[address] for address in sorted(body)], self.work) for body in loops(self.rows)]

    @cached_property
    def loop(self) -> Loop | None:
        """The main loop, with the most instructions of the kind `work`, or None if no loop has any.

        Instructions in a loop inside another count for the inner loop alone.
        """
        found = [(self._own_work(loop), -len(loop), loop) for loop in self.loops]
        most = max(found, key=lambda one: one[:2], default=None)
        return most[2] if most and most[0] else None

    @cached_property
    def text(self) -> str:
        """All machine code as text, with a comment where the line of source changes."""
        lines, place = [], None
        for row in self.rows:
            if (row.file, row.line) != place:
                place = row.file, row.line
                lines.append(f"// {row.file}:{row.line}" if row.file else "// no line of the source")
            lines.append(f"/*{row.address:04x}*/ {row.text}")
        return "\n".join(lines)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        major, minor = self.compute_capability
        spilled = f"{self.spilled_bytes:,} bytes spilled" if self.spilled_bytes else "nothing spilled"
        local = f"{self.local_bytes:,} bytes of local memory" if self.local_bytes else "no local memory"
        how = (
            f"compiled in {self.seconds:.1f} s" if self.seconds is not None else f"recorded, {self.compiler}"
        )
        tiles = f" ({self.tiles})" if self.tiles else ""
        lines = [
            f"{self.name}{tiles} for compute capability {major}.{minor}: {self.registers} registers, "
            f"{spilled}, {local}, {self.shared_bytes:,} bytes of shared memory per block ({how})",
            f"{len(self):,} instructions: {_summary(self.by_kind)}",
        ]
        if self.loop:
            lines.append(f"main loop: {self.loop}")
        return "\n".join(lines)

    def _own_work(self, loop: Loop) -> int:
        inside = set().union(*(other.addresses for other in self.loops if other.addresses < loop.addresses))
        return sum(row.kind == self.work for row in loop.rows if row.address not in inside)


def _by_kind(rows: Iterable[Instruction]) -> dict[str, int]:
    counts = Counter(row.kind for row in rows)
    return {kind: counts[kind] for kind in KINDS}


def _summary(by_kind: dict[str, int]) -> str:
    most = sorted((kind for kind in by_kind if by_kind[kind]), key=lambda kind: -by_kind[kind])
    named = [f"{by_kind[kind]:,} {kind if by_kind[kind] == 1 else PLURALS[kind]}" for kind in most[:SHOWN]]
    rest = sum(by_kind[kind] for kind in most[SHOWN:])
    return ", ".join([*named, *([f"{rest:,} more"] if rest else [])])


def _frame(rows: Sequence[Instruction]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(
        {
            "address": [row.address for row in rows],
            "opcode": [row.opcode for row in rows],
            "kind": [row.kind for row in rows],
            "text": [row.text for row in rows],
            "line": [row.line for row in rows],
            "file": [row.file for row in rows],
        }
    )
