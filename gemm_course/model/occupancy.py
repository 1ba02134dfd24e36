"""Calculates how many blocks an SM holds, what limits them, and how evenly a grid fills the GPU."""

from dataclasses import dataclass

from gemm_course.model.gpus import GPUS, Gpu, Limits
from lockstep.limits import MAX_THREADS

WARP = 32


@dataclass(frozen=True)
class Tank:
    """One resource of a multiprocessor, and how much of it a block takes, rounded up as by the hardware.

    ``name`` is "threads", "registers", "shared memory" or "blocks". The units are warps for threads,
    registers for registers, and bytes for shared memory, including what the system takes. ``fits`` is the
    number of blocks that have room.
    """

    name: str
    size: int
    per_block: int
    fits: int

    def left(self, blocks: int) -> int:
        """Return how much of the resource is left beside ``blocks`` blocks."""
        return self.size - blocks * self.per_block


@dataclass(frozen=True)
class Occupancy:
    """The number of blocks and warps of a kernel that one multiprocessor holds at a time.

    ``limits`` says how many blocks each of "threads", "registers", "shared memory" and "blocks" allows.
    """

    blocks: int
    warps: int
    most_warps: int
    limits: dict[str, int]

    @property
    def share(self) -> float:
        """The warps that the multiprocessor holds divided by the most that it can hold, 0 to 1."""
        return self.warps / self.most_warps

    @property
    def limited_by(self) -> list[str]:
        """The resources that allow the fewest blocks."""
        return [name for name, blocks in self.limits.items() if blocks == self.blocks]


def occupancy(threads: int, registers: int, shared_bytes: int, gpu: Gpu = GPUS["H200"]) -> Occupancy:
    """Return the occupancy with `threads` per block, `registers` per thread and `shared_bytes` per block.

    A warp gets registers in multiples of 256, from its own quarter of the register file. A block gets shared
    memory in multiples of 128 bytes, of which the system takes 1 KB (NVIDIA's occupancy calculator). Zero
    blocks mean that the kernel cannot be launched. Raise ValueError for counts below zero.
    """
    held = tanks(threads, registers, shared_bytes, gpu.limits)
    blocks, most = min(tank.fits for tank in held), gpu.limits.threads // WARP
    return Occupancy(blocks, blocks * _portions(threads, WARP), most, {tank.name: tank.fits for tank in held})


def tanks(threads: int, registers: int, shared_bytes: int, limits: Limits) -> tuple[Tank, Tank, Tank, Tank]:
    """Return the four resources that blocks share, for the same arguments as `occupancy`.

    Raise ValueError.
    """
    if threads < 1 or registers < 0 or shared_bytes < 0:
        raise ValueError(
            f"no kernel has {threads} threads, {registers} registers, {shared_bytes} shared bytes"
        )
    warps, most_warps = _portions(threads, WARP), limits.threads // WARP
    return (
        Tank("threads", most_warps, warps, most_warps // warps if threads <= MAX_THREADS else 0),
        _registers(registers, warps, limits),
        _shared_memory(shared_bytes, limits),
        Tank("blocks", limits.blocks, 1, limits.blocks),
    )


def _registers(registers: int, warps: int, limits: Limits) -> Tank:
    per_warp = _portions(registers * WARP, limits.register_unit) * limits.register_unit
    if registers == 0:
        fits = limits.blocks
    elif registers > limits.registers_per_thread:
        fits = 0
    else:  # Each quarter of the register file holds whole warps.
        fits = limits.registers // limits.partitions // per_warp * limits.partitions // warps
    return Tank("registers", limits.registers, warps * per_warp, fits)


def _shared_memory(shared_bytes: int, limits: Limits) -> Tank:
    per_block = (
        _portions(shared_bytes + limits.reserved_shared_bytes, limits.shared_unit) * limits.shared_unit
    )
    fits = limits.shared_bytes // per_block if per_block else limits.blocks
    return Tank("shared memory", limits.shared_bytes, per_block, fits)


def _portions(amount: int, unit: int) -> int:
    return -(-amount // unit)


@dataclass(frozen=True)
class Waves:
    """A grid of ``blocks`` on a GPU that holds only ``resident`` blocks at a time."""

    blocks: int
    resident: int

    @property
    def waves(self) -> float:
        return self.blocks / self.resident

    @property
    def efficiency(self) -> float:
        """The share of the GPU in use until the last wave is done: 256 blocks in place of 264 use 97 %."""
        return self.blocks / (_portions(self.blocks, self.resident) * self.resident)


def waves(blocks: int, blocks_per_multiprocessor: int, gpu: Gpu = GPUS["H200"]) -> Waves:
    """Return the waves of a grid on a GPU whose multiprocessors hold this many blocks each.

    Raise ValueError for numbers below one.
    """
    if blocks < 1 or blocks_per_multiprocessor < 1:
        raise ValueError("waves need at least one block, and a multiprocessor that holds one")
    return Waves(blocks, blocks_per_multiprocessor * gpu.multiprocessors)
