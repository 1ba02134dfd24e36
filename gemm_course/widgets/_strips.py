"""Shows why an SM holds several blocks: while one waits for its tile, the others compute."""

from __future__ import annotations

from dataclasses import dataclass

from gemm_course.figures import strips as figure
from gemm_course.figures.picture import Picture
from gemm_course.model import GPUS, Occupancy, Tank, occupancy, tanks
from gemm_course.widgets._explorer import Explorer, explorer
from lockstep.limits import LIMITS

# Device memory answers after this many clocks, as the notebook on thread_tiles_1d has it.
WAIT = 600
_H200 = GPUS["H200"]
_SCHEDULERS = LIMITS[_H200.compute_capability].partitions


@dataclass(frozen=True)
class Kernel:
    """A stage with document 004's tiles.

    ``loop`` is the number of instructions that a warp issues per pair of tiles, compiled for an H200 (NVVM
    13.4.92). ``registers`` are the numbers per thread to choose from.
    """

    stage: str
    tiles: dict[str, int]
    threads: int
    shared_bytes: int
    loop: int
    registers: tuple[int, ...]

    def held(self, registers: int) -> Occupancy:
        """Return how many blocks an SM holds with this many registers per thread."""
        return occupancy(self.threads, registers, self.shared_bytes)

    def file(self, registers: int) -> Tank:
        """Return an SM's register file as a tank, with the share that a block takes."""
        shared = tanks(self.threads, registers, self.shared_bytes, _H200.limits)
        return next(tank for tank in shared if tank.name == "registers")

    @property
    def warps(self) -> int:
        """The number of a block's warps that each scheduler gets."""
        return self.threads // 32 // _SCHEDULERS


KERNELS = {
    kernel.stage: kernel
    for kernel in (
        Kernel("thread_tiled_1d", {"BM": 64, "BN": 64, "BK": 8, "TM": 8}, 512, 4096, 127, (96, 64, 40, 32)),
        Kernel(
            "thread_tiled_2d",
            {"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8},
            256,
            16384,
            1388,
            (128, 255),
        ),
    )
}


@explorer
def strips(stage: str) -> Explorer:
    """Show how the blocks that an SM holds take turns, for several numbers of registers per thread.

    ``stage`` is one of KERNELS, with document 004's tiles. Raise KeyError for another.
    """
    registers = KERNELS[stage].registers
    return Explorer(
        lambda registers: draw(stage, registers),
        {"registers": ("registers per thread", registers, registers[0])},
    )


def draw(stage: str, registers: int) -> Picture:
    """Draw the blocks of a stage, one of KERNELS, that fit with this many registers per thread."""
    kernel = KERNELS[stage]
    held = kernel.held(registers)
    room = max(kernel.held(each).blocks for each in kernel.registers)
    file = kernel.file(registers)
    each = file.per_block // kernel.threads
    rounded = "" if each == registers else f" ({registers} rounded up)"
    asked = f"{kernel.threads} × {each}{rounded}"
    run = figure.Run(held.blocks, room, kernel.warps * kernel.loop, WAIT, file, asked)
    fit = "1 block fits" if held.blocks == 1 else f"{held.blocks} blocks fit"
    title = (
        f"{registers} registers per thread: {fit}, {held.warps} of {held.most_warps} warps; "
        f"a scheduler could issue {100 * run.busy:.0f}\u00a0% of the time"
    )
    return figure.strips(run, title, _notes(kernel))


def _notes(kernel: Kernel) -> list[str]:
    tiles = " ".join(f"{name}={value}" for name, value in kernel.tiles.items())
    return [
        f"Computed, not measured: {kernel.stage}, {tiles}.",
        f"A scheduler has {kernel.warps} warps of each block, and each issues {kernel.loop} instructions per "
        f"pair of tiles, as compiled for an {_H200.name.split()[-1]}.",
        f"So a block computes for {kernel.warps * kernel.loop} clocks, then waits as a whole, {WAIT} clocks, "
        "as supposed here; shared memory costs no time.",
    ]
