"""States what CUDA and each GPU allow a launch, a block and a thread.

The limits are those of the CUDA C++ programming guide, "Technical specifications per compute capability" and
"Throughput of native arithmetic instructions" (the FP32 and FP64 columns). Counts, clocks and memory sizes of
single GPUs are those of NVIDIA's data sheets and architecture white papers. The clock is the one that the
data sheet's FP32 rate implies.
"""

import re
from dataclasses import dataclass

from lockstep.errors import LaunchError
from lockstep.spelling import did_you_mean

# These limits are the same for every compute capability below.

# A block has at most MAX_THREADS threads.
MAX_THREADS = 1024
# A block has at most this number of threads along x, y and z.
MAX_BLOCK = (1024, 1024, 64)
# A grid has at most this number of blocks along x, y and z.
MAX_GRID = (2**31 - 1, 65535, 65535)
# A block's shared arrays of fixed shape have at most 48 KB. A kernel must opt in to more shared memory.
MAX_STATIC_SHARED_BYTES = 48 * 1024
# The local arrays of a thread have at most 512 KB.
MAX_LOCAL_BYTES = 512 * 1024
# A thread has at most MAX_REGISTERS registers.
MAX_REGISTERS = 255
REGISTERS_PER_SM = 65536
MAX_BLOCKS_PER_SM = 32
CONSTANT_BYTES = 64 * 1024
# Global memory moves in sectors of 32 bytes, and a cache holds lines of 128 bytes.
SECTOR, LINE = 32, 128
# Shared memory has 32 banks, each of which delivers a word of 4 bytes per wavefront.
BANKS, WORD = 32, 4


@dataclass(frozen=True)
class Limits:
    """The limits of one multiprocessor. A block takes `reserved_shared_bytes` on top of its own bytes."""

    threads: int
    blocks: int
    shared_bytes: int
    reserved_shared_bytes: int
    # Each clock, a multiprocessor starts this number of fused multiply-adds in FP32 and in FP64.
    fp32_lanes: int
    fp64_lanes: int
    registers: int = REGISTERS_PER_SM
    registers_per_thread: int = MAX_REGISTERS
    register_unit: int = 256  # Warps get registers in multiples of this number.
    partitions: int = 4  # Each partition has a quarter of the registers and its own scheduler.
    shared_unit: int = 128

    @property
    def shared_bytes_per_block(self) -> int:
        """The most bytes of shared memory per block, if the kernel opts in to more than 48 KB."""
        return self.shared_bytes - self.reserved_shared_bytes


LIMITS = {
    (7, 5): Limits(1024, 16, 64 * 1024, 0, 64, 2, shared_unit=256),
    (8, 0): Limits(2048, 32, 164 * 1024, 1024, 64, 32),
    (8, 6): Limits(1536, 16, 100 * 1024, 1024, 128, 2),
    (8, 9): Limits(1536, 24, 100 * 1024, 1024, 128, 2),
    (9, 0): Limits(2048, 32, 228 * 1024, 1024, 128, 64),
    (10, 0): Limits(2048, 32, 228 * 1024, 1024, 128, 64),
    (12, 0): Limits(1536, 24, 100 * 1024, 1024, 128, 2),
}


@dataclass(frozen=True)
class Profile:
    """One GPU as the emulator knows it. The clock is in MHz."""

    name: str
    compute_capability: tuple[int, int]
    multiprocessors: int
    clock_mhz: int
    l2_bytes: int
    memory_bytes: int

    @property
    def limits(self) -> Limits:
        return LIMITS[self.compute_capability]

    @property
    def max_shared_bytes(self) -> int:
        """The most bytes of shared memory that one block can have."""
        return self.limits.shared_bytes_per_block

    def resident_blocks(self, threads: int, shared_bytes: int) -> int:
        """Return how many blocks with so many threads and bytes of shared memory this GPU holds at a time.

        Registers may allow fewer, but the emulator does not know how many a kernel takes.
        """
        limits = self.limits
        by_threads = limits.threads // (-(-threads // 32) * 32)
        by_memory = limits.shared_bytes // max(shared_bytes + limits.reserved_shared_bytes, 1)
        return self.multiprocessors * min(limits.blocks, by_threads, by_memory)


_MIB, _GIB = 2**20, 2**30

PROFILES = {
    "H200": Profile("NVIDIA H200", (9, 0), 132, 1980, 60 * _MIB, 141 * _GIB),
    "H100": Profile("NVIDIA H100 SXM", (9, 0), 132, 1980, 50 * _MIB, 80 * _GIB),
    "A100": Profile("NVIDIA A100 SXM 80 GB", (8, 0), 108, 1410, 40 * _MIB, 80 * _GIB),
    "RTX 4090": Profile("NVIDIA GeForce RTX 4090", (8, 9), 128, 2520, 72 * _MIB, 24 * _GIB),
    "RTX 3090": Profile("NVIDIA GeForce RTX 3090", (8, 6), 82, 1695, 6 * _MIB, 24 * _GIB),
    "RTX 3060": Profile("NVIDIA GeForce RTX 3060", (8, 6), 28, 1777, 3 * _MIB, 12 * _GIB),
    "RTX A6000": Profile("NVIDIA RTX A6000", (8, 6), 84, 1800, 6 * _MIB, 48 * _GIB),
    "T4": Profile("NVIDIA T4", (7, 5), 40, 1590, 4 * _MIB, 16 * _GIB),
}
DEFAULT = PROFILES["H200"]
ARCHITECTURES = {"hopper": "H200", "ada": "RTX 4090", "ampere": "A100", "ga10x": "RTX 3090", "turing": "T4"}
# On older GPUs a block has less shared memory.
MAX_SHARED_BYTES = DEFAULT.max_shared_bytes


def profile(gpu: "str | Profile | None" = None) -> Profile:
    """Return the GPU of that name: "H200", "rtx 4090", an architecture such as "ada", or "8.6" or "sm_86".

    None stands for the H200. Raises LaunchError for an unknown name.
    """
    if gpu is None:
        return DEFAULT
    if isinstance(gpu, Profile):
        return gpu
    found = _BY_NAME.get(_plain(gpu)) if isinstance(gpu, str) else None
    if found is None:
        known = ", ".join([*PROFILES, *ARCHITECTURES])
        raise LaunchError(
            f"the emulator knows no GPU named {gpu!r}; it knows {known} and compute capabilities such as 8.6"
            f"{did_you_mean(str(gpu), (*PROFILES, *ARCHITECTURES))}"
        )
    return found


def _plain(name: str) -> str:
    return re.sub(r"nvidia|geforce|tesla|rtx|[^a-z0-9]", "", name.lower())


def _by_name() -> dict[str, Profile]:
    names = {}
    for key, found in PROFILES.items():
        major, minor = found.compute_capability
        for name in (key, found.name, f"{major}.{minor}", f"sm_{major}{minor}", f"cc{major}{minor}"):
            names.setdefault(
                _plain(name), found
            )  # A compute capability stands for the first GPU that has it.
    return names | {name: PROFILES[key] for name, key in ARCHITECTURES.items()}


_BY_NAME = _by_name()
