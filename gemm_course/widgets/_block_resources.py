"""Finds what a block of a stage takes of a multiprocessor on some GPU, and says where that is from."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from gemm_course import records
from gemm_course.compiler import CannotCompile, Compiled, compiled
from gemm_course.compiler.limits import shown
from gemm_course.compiler.nvidia import why_no_compiler
from gemm_course.compiler.record import recorded
from gemm_course.kernels import Stage, tiles_text
from gemm_course.records import SHIPPED, Place
from gemm_course.widgets import _measured as sweep
from gemm_course.widgets._costs import cost
from gemm_course.widgets._gpus import hardware
from lockstep.limits import LIMITS, MAX_REGISTERS

# The course's own sweep ran on a GPU of this compute capability.
SWEPT = (9, 0)
# A warp has 32 threads, and the compiler gives a thread registers in multiples of 8.
_WARP, _UNIT = 32, 8


@dataclass(frozen=True)
class Taken:
    """The resources of a block: threads and bytes of shared memory per block, and registers per thread.

    ``source`` is a sentence that says where they come from. ``exact`` is False if ``registers`` is only the
    most that the compiler may give a thread.
    """

    threads: int
    registers: int
    shared_bytes: int
    source: str
    exact: bool = True


def known(stage: Stage, tiles: Mapping[str, int], capability: tuple[int, int]) -> Taken | None:
    """Return what is on record, or None.

    The machine code of default tiles comes first, then the sweep's figures.
    """
    tiles, threads = stage.complete(tiles), math.prod(stage.block(tiles))
    if tiles == stage.complete() and (code := recorded(stage, capability)):
        return of_code(code, threads, "machine code on record")
    for on in _swept_with(capability):
        found = sweep.recorded(stage, tiles, on)
        if found and found.registers is not None and found.shared_bytes is not None:
            where = sweep.source(stage, on)
            source = f"{found.registers} registers per thread: the driver's own figure, {where}."
            return Taken(threads, found.registers, found.shared_bytes, source)
    return None


def _swept_with(capability: tuple[int, int]) -> list[Place]:
    """Return the measured GPUs of a compute capability, the course's own first."""
    others = [on for on in records.places() if on != SHIPPED]
    gpus = {on: hardware(on) for on in others}
    found = [on for on, gpu in gpus.items() if gpu and gpu.compute_capability == capability]
    return [*([SHIPPED] if capability == SWEPT else []), *found]


def now(stage: Stage, tiles: Mapping[str, int], capability: tuple[int, int]) -> Taken | str:
    """Compile, and return what a block takes or a sentence that says why not. This takes seconds."""
    if reason := why_no_compiler():
        return reason
    try:
        code = compiled(stage, compute_capability=capability, tiles=tiles)
    except CannotCompile as reason:
        return str(reason)
    return of_code(code, math.prod(stage.block(tiles)), "compiled here")


def at_most(stage: Stage, tiles: Mapping[str, int], capability: tuple[int, int]) -> Taken:
    """Return the most that a block can take by the launch bounds, which are threads and blocks per SM.

    The shared memory is what the emulator counts.
    """
    threads, blocks = stage.launch_bounds(tiles)
    # An SM has no room for more blocks than its threads allow, even if a kernel asks for more.
    blocks = min(blocks, LIMITS[capability].threads // threads)
    registers = most_registers(threads, blocks, capability)
    source = (
        f"At most {registers} registers per thread: the kernel asks the compiler for room for "
        f"{blocks} {'block' if blocks == 1 else 'blocks'} of {threads} threads."
    )
    return Taken(threads, registers, cost(stage, stage.complete(tiles)).shared_bytes, source, exact=False)


def most_registers(threads: int, blocks: int, capability: tuple[int, int]) -> int:
    """Return the most registers per thread with which an SM holds ``blocks`` blocks of ``threads`` each."""
    limits = LIMITS[capability]
    warps = blocks * -(-threads // _WARP)
    in_a_quarter = -(-warps // limits.partitions)
    registers = limits.registers // limits.partitions // in_a_quarter // _WARP // _UNIT * _UNIT
    return min(MAX_REGISTERS, registers)


def of_code(code: Compiled, threads: int, how: str) -> Taken:
    """Return what machine code says. ``how`` tells where it is from, such as "machine code on record"."""
    source = (
        f"{code.registers} registers per thread: {how} for compute capability "
        f"{shown(code.compute_capability)}, {code.compiler}."
    )
    return Taken(threads, code.registers, code.shared_bytes, source)


class OfStage:
    """A stage, which tells what its blocks take with any tiles on any GPU."""

    def __init__(self, stage: Stage):
        self.stage = stage
        self._compiled: dict[tuple, Taken | str] = {}

    def taken(self, tiles: Mapping[str, int], capability: tuple[int, int]) -> Taken:
        """Return what a block takes, from the best source that is known so far."""
        here = self._compiled.get(self._key(tiles, capability))
        if isinstance(here, Taken):
            return here
        if found := known(self.stage, tiles, capability):
            return found
        most = at_most(self.stage, tiles, capability)
        why = here or why_no_compiler() or "Compile these tiles to know how many they are."
        return replace(most, source=f"{most.source} {why}")

    def compile_unless_known(self, tiles: Mapping[str, int], capability: tuple[int, int]) -> None:
        """Compile unless the resources of a block are on record."""
        if not self.stage.rules(tiles) and known(self.stage, tiles, capability) is None:
            self.compile(tiles, capability)

    def compile(self, tiles: Mapping[str, int], capability: tuple[int, int]) -> None:
        """Compile, so that `taken` knows the answer. Raise IllegalTiles for tiles that break a rule."""
        self._compiled[self._key(tiles, capability)] = now(self.stage, tiles, capability)

    def broken(self, tiles: Mapping[str, int]) -> list[str]:
        """Return the rules that tiles break."""
        return self.stage.rules(tiles)

    def name(self, tiles: Mapping[str, int]) -> str:
        """Return the name of the stage and its tiles."""
        return f"{self.stage.name}, {tiles_text(self.stage.complete(tiles))}"

    def _key(self, tiles: Mapping[str, int], capability: tuple[int, int]) -> tuple:
        return tuple(self.stage.complete(tiles).items()), capability


class OfCode:
    """A kernel's machine code with the methods of `OfStage`. Its tiles cannot be chosen."""

    def __init__(self, code: Compiled, threads: int):
        self.code, self._taken = code, of_code(code, threads, "machine code")

    def taken(self, tiles: Mapping[str, int], capability: tuple[int, int]) -> Taken:
        return self._taken

    def compile_unless_known(self, tiles: Mapping[str, int], capability: tuple[int, int]) -> None:
        pass

    def broken(self, tiles: Mapping[str, int]) -> list[str]:
        return []

    def name(self, tiles: Mapping[str, int]) -> str:
        return ", ".join(filter(None, (self.code.name, self.code.tiles)))
