"""Shows a multiprocessor as four tanks that blocks of a kernel fill until one tank is full."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from gemm_course import records
from gemm_course.compiler import Compiled
from gemm_course.compiler.limits import has_instructions, shown
from gemm_course.figures import tanks as figure
from gemm_course.figures.picture import Picture
from gemm_course.figures.tank_words import Contents, amount
from gemm_course.figures.words import in_words
from gemm_course.kernels import LADDER, Stage
from gemm_course.model import GPUS, Tank, tanks
from gemm_course.records import SHIPPED, Place
from gemm_course.widgets._block_resources import OfCode, OfStage, most_registers
from gemm_course.widgets._explorer import Explorer, explorer
from gemm_course.widgets._gpus import hardware, look_again, not_in_the_table
from gemm_course.widgets._slots_in_words import busy_in_words
from lockstep import LaunchError
from lockstep.limits import LIMITS, profile

# The ladder's machine code is on record for these GPUs.
OFFERED = ("H200", "A100", "RTX 3090")
# These sizes do not change what a block takes.
_SAME = ("GROUP", "BLOCKS", "CUT")
COMPILE = "compile these tiles"
# These numbers of blocks can be left out of a full SM, and no SM holds 99.
_LEFT_OUT = [*range(9), ("all", 99)]
LOOKED_UP = "The sliders look them up; only tiles that are not on record need the compiler."
Capability = tuple[int, int]


@explorer
def occupancy(
    subject: str | Stage | Compiled = "thread_tiled_1d",
    *,
    tiles: Mapping[str, int] | None = None,
    gpu: str = "H200",
    block: int | Sequence[int] | None = None,
) -> Explorer:
    """Show how many blocks of a kernel an SM holds, and which of its resources they use up.

    ``subject`` is a stage of the ladder, with sliders that begin at ``tiles``, or what `compiled` returned,
    with the threads of its ``block`` as a number or a tuple. ``gpu`` is a GPU such as "H200", "A100" or "RTX
    3090", or one that was measured, such as "rtx_3060". GPUs that were measured are offered as well. Raise
    ValueError for a GPU that cannot run the stage, or if a block size is needed. Raise KeyError for an
    unknown stage, and LaunchError for an unknown GPU.
    """
    look_again()
    if isinstance(subject, Compiled):
        name, capability = _gpu_of(subject)
        return _filled(OfCode(subject, _threads(subject, block)), {name: capability}, name, {})
    stage, name = LADDER[subject] if isinstance(subject, str) else subject, _named(gpu)
    chosen, of_stage, gpus = stage.complete(tiles), OfStage(stage), _gpus(stage, name)
    if gpus[name] is not None:
        of_stage.compile_unless_known(chosen, gpus[name])
    return _filled(of_stage, gpus, name, _sliders(stage, chosen))


def _filled(
    subject: OfStage | OfCode, gpus: Mapping[str, Capability | None], gpu: str, sliders: Mapping[str, tuple]
) -> Explorer:
    """Return the explorer of a full SM, with controls for the GPU, the tiles and the blocks to leave out."""

    def picture(gpu: str, left_out: int, **tiles: int) -> Picture:
        if gpus[gpu] is None:
            return in_words(_not_known(gpu))
        return draw(subject, gpu, tiles, gpus[gpu], left_out)

    def compile_now(gpu: str, left_out: int, **tiles: int) -> str:
        if gpus[gpu] is None:
            return _not_known(gpu)
        if subject.broken(tiles):
            return "These tiles cannot run, so there is nothing to compile."
        subject.compile(tiles, gpus[gpu])
        return subject.taken(tiles, gpus[gpu]).source

    def on_record(gpu: str, left_out: int, **tiles: int) -> bool:
        if gpus[gpu] is None:
            return False
        return bool(subject.broken(tiles)) or subject.taken(tiles, gpus[gpu]).exact

    controls = {"gpu": ("GPU", list(gpus), gpu), **sliders, "left_out": ("blocks left out", _LEFT_OUT, 0)}
    actions = {COMPILE: compile_now} if isinstance(subject, OfStage) else {}
    return Explorer(picture, controls, actions=actions, everywhere=on_record)


def draw(
    subject: OfStage | OfCode,
    gpu: str,
    tiles: Mapping[str, int],
    capability: Capability,
    left_out: int = 0,
) -> Picture:
    """Draw the tanks of an SM with as many blocks of a kernel as fit, less those ``left_out``."""
    if broken := subject.broken(tiles):
        return figure.refused("These tiles cannot run", f"{subject.name(tiles)}.", broken)
    return figure.tanks(_contents(subject, gpu, tiles, capability, left_out))


def _contents(subject, gpu: str, tiles, capability: Capability, left_out: int = 0) -> Contents:
    taken, limits = subject.taken(tiles, capability), LIMITS[capability]
    held = tanks(taken.threads, taken.registers, taken.shared_bytes, limits)
    about = f"{subject.name(tiles)}: blocks of {taken.threads} threads, on an SM of the {gpu}."
    full = min(tank.fits for tank in held)
    blocks = max(full - left_out, 0)
    looked_up = LOOKED_UP if isinstance(subject, OfStage) else ""
    source = " ".join(filter(None, (taken.source, looked_up, _granularity(held, limits))))
    notes = [source]
    if _room_for_warps(held, full):
        notes.append(busy_in_words(subject, gpu, tiles))
    fewer = _fewer_registers(taken.threads, blocks + 1, capability)
    return Contents(held, blocks, about, notes, not taken.exact, fewer)


def _room_for_warps(held: Sequence[Tank], full: int) -> bool:
    """Tell whether an SM that is full of blocks has room for more warps."""
    (threads,) = (tank for tank in held if tank.name == "threads")
    return full > 0 and threads.left(full) > 0


def _fewer_registers(threads: int, blocks: int, capability: Capability) -> int:
    """Return the registers per thread that let an SM hold this many blocks, or 0 if none do."""
    if blocks * threads > LIMITS[capability].threads:
        return 0
    return most_registers(threads, blocks, capability)


def _granularity(held: Sequence[Tank], limits) -> str:
    (memory,) = (tank for tank in held if tank.name == "shared memory")
    system = limits.reserved_shared_bytes // 1024
    per_block = amount(memory, memory.per_block)
    included = f"; of its {per_block}, {system} KB is the system's" if system else ""
    return (
        f"A warp takes registers in multiples of {limits.register_unit}, a block shared memory in multiples "
        f"of {limits.shared_unit} bytes{included}."
    )


def _threads(code: Compiled, block: int | Sequence[int] | None) -> int:
    """Return the threads of a block. Raise ValueError if they are not known."""
    if block is None:
        raise ValueError(f"how many threads does a block of {code.name} have? Pass block=256, for example.")
    return math.prod(block) if isinstance(block, Sequence) else int(block)


def _gpu_of(code: Compiled) -> tuple[str, Capability]:
    """Return the first GPU of the table with the code's compute capability, or else that capability in words.

    Return the capability beside it.
    """
    capability = code.compute_capability
    named = (name for name, gpu in GPUS.items() if gpu.compute_capability == capability)
    return next(named, f"GPU of compute capability {shown(capability)}"), capability


def _named(gpu: str) -> str:
    """Return the GPU's name in the course's table, or else in the records.

    Raise LaunchError if neither has it.
    """
    try:
        known = profile(gpu)
    except LaunchError as reason:
        try:
            place = records.place(gpu)
        except records.UnknownGpu as also:
            raise LaunchError(f"{reason}. Among the records, {also}") from None
        return _in_the_table(place) or records.short_of(place)
    return next(name for name, each in GPUS.items() if each.name == known.name)


def _in_the_table(place: Place) -> str:
    """Return the name that the course's table has for a measured GPU, or ""."""
    gpu = hardware(place)
    return next((name for name, known in GPUS.items() if gpu and known.name == gpu.name), "")


def _measured() -> list[str]:
    """Return the GPUs that were measured besides the course's own."""
    others = [place for place in records.places() if place != SHIPPED]
    return [_in_the_table(place) or records.short_of(place) for place in others]


def _not_known(gpu: str) -> str:
    """Say why nothing can be drawn for a measured GPU."""
    return (
        f"{not_in_the_table(gpu)} Choose a GPU of the same compute capability: "
        "its multiprocessors hold the same."
    )


def _gpus(stage: Stage, wanted: str) -> dict[str, Capability | None]:
    """Return the compute capabilities of the GPUs that can run a stage, by name.

    The wanted GPU and those that were measured are among them. A GPU that the course's table lacks has None.
    Raise ValueError if the wanted one cannot run the stage.
    """
    if not _runs(stage, wanted):
        needed = shown(stage.compute_capability)
        raise ValueError(f"{stage.name} needs compute capability {needed}, which the {wanted} does not have")
    names = [name for name in dict.fromkeys([*OFFERED, *_measured(), wanted]) if _runs(stage, name)]
    return {name: GPUS[name].compute_capability if name in GPUS else None for name in names}


def _runs(stage: Stage, gpu: str) -> bool:
    """Tell whether a GPU has the instructions of a stage. How much shared memory it needs does not count."""
    return gpu not in GPUS or has_instructions(stage, GPUS[gpu].compute_capability)


def _sliders(stage: Stage, chosen: Mapping[str, int]) -> dict[str, tuple]:
    """Return a slider for each tile size that matters, as Controls takes it."""
    return {
        size: (size, sorted({*options, chosen[size]}), chosen[size])
        for size, options in stage.options.items()
        if size not in _SAME and len(options) > 1
    }
