"""A multiprocessor as four tanks that blocks of a kernel fill, one by one, until one tank is full."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import ipywidgets as widgets

from gemm_course.compiler import Compiled
from gemm_course.compiler.limits import has_instructions, shown
from gemm_course.emulator.limits import LIMITS, profile
from gemm_course.figures import tanks as figure
from gemm_course.figures.picture import Picture
from gemm_course.figures.tank_words import Contents, amount
from gemm_course.kernels import LADDER, Stage
from gemm_course.model import GPUS, Tank, tanks
from gemm_course.widgets._canvas import Canvas
from gemm_course.widgets._explorer import Controls, show_controls
from gemm_course.widgets._names import name_the_handles
from gemm_course.widgets._segments import segments
from gemm_course.widgets._slots_in_words import busy_in_words
from gemm_course.widgets._taken import OfCode, OfStage, most_registers

OFFERED = ("H200", "A100", "RTX 3090")  # the ladder's machine code is on record for them
_SAME = ("GROUP", "BLOCKS", "CUT")  # sizes that do not change what a block takes
_STEPS = (
    ("empty", "Take all blocks out of the SM"),
    ("◀ one less", "Take a block out of the SM"),
    ("add a block ▶", "Put a block into the SM"),
    ("fill", "Put in as many blocks as fit"),
)
_MOVES = (lambda *_: 0, lambda blocks, _: blocks - 1, lambda blocks, _: blocks + 1, lambda _, fits: fits)
_COMPILE = "compile these tiles"
LOOKED_UP = "The sliders look them up; only tiles that are not on record need the compiler."
Capability = tuple[int, int]  # a compute capability


def occupancy(
    subject: str | Stage | Compiled = "thread_tiled_1d",
    *,
    tiles: Mapping[str, int] | None = None,
    gpu: str = "H200",
    block: int | Sequence[int] | None = None,
) -> None:
    """Show how many blocks of a kernel an SM holds, and which of its resources they use up.

    subject: a stage of the ladder, with sliders that begin at ``tiles``, on a GPU such as "H200", "A100" or
    "RTX 3090"; or what `compiled` returned, with the threads of its ``block`` as a number or a tuple. Raises
    ValueError for a GPU that cannot run the stage, or if a block size is needed; KeyError for an unknown
    stage; LaunchError for an unknown GPU.
    """
    if isinstance(subject, Compiled):
        name, capability = _gpu_of(subject)
        Filling(OfCode(subject, _threads(subject, block)), {name: capability}, name, {}).show()
        return
    stage, name = LADDER[subject] if isinstance(subject, str) else subject, _named(gpu)
    sliders = _sliders(stage, stage.complete(tiles))
    Filling(OfStage(stage), _gpus(stage, name), name, sliders).show()


class Filling:
    """The controls and the picture: tiles, a GPU, and the number of blocks that are in."""

    def __init__(
        self,
        subject: OfStage | OfCode,
        gpus: Mapping[str, Capability],
        gpu: str,
        sliders: Mapping[str, tuple],
    ):
        self._subject, self._gpus = subject, gpus
        self._canvas = Canvas()
        self.gpu = segments("GPU", list(gpus), gpu)
        self.controls = Controls(sliders, self._fill)
        self.buttons = {words: _button(words, tip) for words, tip in _STEPS}
        for button, move in zip(self.buttons.values(), _MOVES, strict=True):
            button.on_click(lambda _, move=move: self._step(move))
        if isinstance(subject, OfStage):
            self.buttons[_COMPILE] = _button(_COMPILE, "Compile the kernel for the chosen tiles and GPU")
            self.buttons[_COMPILE].on_click(lambda _: self._compile())
        self.gpu.observe(lambda _: self._fill(), names="value")
        self.blocks = 0

    def show(self) -> None:
        """Display the controls and the full SM; compile first what is not on record."""
        row = widgets.HBox([*self.buttons.values()], layout=widgets.Layout(flex_flow="row wrap"))
        show_controls([self.gpu, *self.controls.sliders.values(), row])
        self._subject.compile_unless_known(*self._chosen())
        self._fill()
        name_the_handles()

    def _chosen(self) -> tuple[dict[str, int], Capability]:
        return self.controls.values(), self._gpus[self.gpu.value]

    def _fits(self) -> int:
        tiles, capability = self._chosen()
        if self._subject.broken(tiles):
            return 0
        return _contents(self._subject, self.gpu.value, tiles, capability, 0).fits

    def _fill(self) -> None:
        self._step(lambda _, fits: fits)

    def _step(self, move: Callable[[int, int], int]) -> None:
        """Put in what ``move`` makes of the blocks that are in and those that fit, and draw them."""
        fits = self._fits()
        self.blocks = min(max(move(self.blocks, fits), 0), fits)
        self._canvas.show(draw(self._subject, self.gpu.value, *self._chosen(), self.blocks))

    def _compile(self) -> None:
        """Compile, which takes seconds, and fill the SM; the button says so meanwhile."""
        if self._subject.broken(self.controls.values()):
            return
        self.buttons[_COMPILE].description = "compiling …"
        self._subject.compile(*self._chosen())
        self.buttons[_COMPILE].description = _COMPILE
        self._fill()


def _button(words: str, tip: str) -> widgets.Button:
    return widgets.Button(description=words, tooltip=tip, layout=widgets.Layout(width="auto"))


def draw(
    subject: OfStage | OfCode,
    gpu: str,
    tiles: Mapping[str, int],
    capability: Capability,
    blocks: int | None = None,
) -> Picture:
    """Draw the tanks of an SM with ``blocks`` of a kernel in it, or as many as fit."""
    if broken := subject.broken(tiles):
        return figure.refused("These tiles cannot run", f"{subject.name(tiles)}.", broken)
    return figure.tanks(_contents(subject, gpu, tiles, capability, blocks))


def _contents(subject, gpu: str, tiles, capability: Capability, blocks: int | None) -> Contents:
    taken, limits = subject.taken(tiles, capability), LIMITS[capability]
    held = tanks(taken.threads, taken.registers, taken.shared_bytes, limits)
    about = f"{subject.name(tiles)}: blocks of {taken.threads} threads, on an SM of the {gpu}."
    full = min(tank.fits for tank in held)
    blocks = full if blocks is None else blocks
    looked_up = LOOKED_UP if isinstance(subject, OfStage) else ""
    source = " ".join(filter(None, (taken.source, looked_up, _granularity(held, limits))))
    notes = [source]
    if _room_for_warps(held, full):
        notes.append(busy_in_words(subject, gpu, tiles))
    fewer = _fewer_registers(taken.threads, blocks + 1, capability)
    return Contents(held, blocks, about, notes, not taken.exact, fewer)


def _room_for_warps(held: Sequence[Tank], full: int) -> bool:
    """Whether an SM that is full of blocks has room for more warps."""
    (threads,) = (tank for tank in held if tank.name == "threads")
    return full > 0 and threads.left(full) > 0


def _fewer_registers(threads: int, blocks: int, capability: Capability) -> int:
    """With how many registers per thread an SM holds so many blocks; 0 if it cannot hold their threads."""
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
    """The threads of a block. Raises ValueError if they are not known."""
    if block is None:
        raise ValueError(f"how many threads does a block of {code.name} have? Pass block=256, for example.")
    return math.prod(block) if isinstance(block, Sequence) else int(block)


def _gpu_of(code: Compiled) -> tuple[str, Capability]:
    """The first GPU of the course's table with the code's compute capability, or the capability itself."""
    capability = code.compute_capability
    named = (name for name, gpu in GPUS.items() if gpu.compute_capability == capability)
    return next(named, f"GPU of compute capability {shown(capability)}"), capability


def _named(gpu: str) -> str:
    """The GPU's name in the course's table. Raises LaunchError."""
    return next(name for name, known in GPUS.items() if known.name == profile(gpu).name)


def _gpus(stage: Stage, wanted: str) -> dict[str, Capability]:
    """The GPUs that can run a stage, with the wanted one. Raises ValueError if that cannot."""
    if not _runs(stage, wanted):
        needed = shown(stage.compute_capability)
        raise ValueError(f"{stage.name} needs compute capability {needed}, which the {wanted} does not have")
    names = [name for name in dict.fromkeys([*OFFERED, wanted]) if _runs(stage, name)]
    return {name: GPUS[name].compute_capability for name in names}


def _runs(stage: Stage, gpu: str) -> bool:
    """Whether a GPU has the instructions of a stage; how much shared memory it needs does not count."""
    return has_instructions(stage, GPUS[gpu].compute_capability)


def _sliders(stage: Stage, chosen: Mapping[str, int]) -> dict[str, tuple]:
    """A slider for each tile size that matters, as Controls takes it."""
    return {
        size: (size, sorted({*options, chosen[size]}), chosen[size])
        for size, options in stage.options.items()
        if size not in _SAME and len(options) > 1
    }
