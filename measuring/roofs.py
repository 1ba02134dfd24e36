"""Measures the bandwidth that each memory really has, by reading: the roofline's slanted roofs.

For DRAM, an array far larger than the L2 cache is read once. For L2, all multiprocessors read an array that
easily fits in it, again and again. For L2 by TMA, the same array is copied to shared memory in boxes, and the
best of several ways counts. For shared memory, each block reads its own, 16 neighbouring bytes per lane.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from gemm_course.device import gpu_facts, time_launch, why_too_old
from gemm_course.device.launch import allow_shared_memory, compile_for
from gemm_course.records import origin
from gemm_course.records.columns import ROOFS
from lockstep.intrinsics import tensor_map
from measuring import tma_reader

THREADS = 512
BLOCKS_PER_MULTIPROCESSOR = 4
SHARED_FLOATS = 8192
SHARED_ROUNDS = 500


@dataclass(frozen=True)
class _Measured:
    """A memory's bandwidth, and how it was read. `bytes` is the size of the array."""

    memory: str
    bytes: int
    tb_s: float
    method: str


def measure_roofs(path: Path, command: str) -> dict[str, float]:
    """Measure, write a row per memory, and return TB/s by memory.

    The memories are "DRAM", "L2", "L2 by TMA" and "shared". TMA has a second row, in which blocks share no
    boxes. Both rows are left out on a GPU without TMA.
    """
    gpu = gpu_facts()
    beside = origin(gpu.name, gpu.driver, gpu.cuda, command)
    measured = [asdict(memory) for memory in _memories()]
    ROOFS.write(path, [row | beside for row in measured])
    return {row["memory"]: row["tb_s"] for row in measured}


def _memories() -> Iterator[_Measured]:
    gpu = gpu_facts()
    yield _by_loads("DRAM", *_reader(min(4 * 2**30, gpu.memory_bytes // 4), rounds=1))
    yield _by_loads("L2", *_reader(gpu.l2_bytes // 4, rounds=100))
    if not why_too_old("TMA", (9, 0)):
        yield from _by_tma(gpu.l2_bytes // 4)
    yield _by_loads("shared", *_shared_reader())


def _by_loads(memory: str, size: int, go: Callable[[], None], moved: int) -> _Measured:
    return _Measured(memory, size, _terabytes_per_second(go, moved), "128-bit loads")


def _terabytes_per_second(go: Callable[[], None], moved: int) -> float:
    return moved / time_launch(go, budget_ms=200).best_ms * 1e-9


def _by_tma(size: int) -> Iterator[_Measured]:
    """Yield the fastest of all choices, and the fastest of those in which one block alone reads each box."""
    from numba import cuda

    array = cuda.to_device(tma_reader.array_of(size))
    speeds = {choice: _speed_by_tma(array, choice) for choice in tma_reader.CHOICES}
    alone = {choice: speed for choice, speed in speeds.items() if choice.sharers == 1}
    for memory, tried in (("L2 by TMA", speeds), ("L2 by TMA, one block per box", alone)):
        fastest = max(tried, key=tried.get)
        yield _Measured(memory, array.nbytes, tried[fastest], str(fastest))


def _speed_by_tma(array, choice: tma_reader.Choice) -> float:
    from numba import cuda

    blocks, kernel = gpu_facts().multiprocessors, tma_reader.reader(choice.rows, choice.slots)
    boxes = tensor_map(array, array.shape, (choice.rows, tma_reader.COLUMNS))
    out = cuda.to_device(np.zeros(blocks * choice.slots, np.float32))
    counts = (array.shape[0] // choice.rows, choice.sharers, tma_reader.LOADS)
    arguments = (boxes, *map(np.uint32, counts), out)
    compile_for(kernel, arguments)
    allow_shared_memory(kernel, choice.shared_bytes)
    ready = kernel[blocks, choice.threads, 0, choice.shared_bytes]
    return _terabytes_per_second(lambda: ready(*arguments), choice.moved(blocks, tma_reader.LOADS))


def _reader(size: int, rounds: int) -> tuple[int, Callable[[], None], int]:
    """Return the bytes of the array, the function that reads it, and the bytes that this function reads."""
    from numba import cuda

    array = cuda.to_device(np.zeros(size // 2048 * 512, np.float32))
    out = cuda.to_device(np.zeros(1, np.float32))
    blocks = gpu_facts().multiprocessors * BLOCKS_PER_MULTIPROCESSOR
    return array.nbytes, lambda: _read_global()[blocks, THREADS](array, out, rounds), array.nbytes * rounds


def _shared_reader() -> tuple[int, Callable[[], None], int]:
    from numba import cuda

    out = cuda.to_device(np.zeros(1, np.float32))
    blocks = gpu_facts().multiprocessors * BLOCKS_PER_MULTIPROCESSOR
    read = 4 * SHARED_FLOATS * SHARED_ROUNDS * blocks
    return 4 * SHARED_FLOATS, lambda: _read_shared()[blocks, THREADS](out, SHARED_ROUNDS), read


@functools.cache
def _read_global():
    from numba import cuda, float32

    from lockstep.intrinsics import load4, u32

    @cuda.jit
    def read_global(array, out, rounds):
        acc = float32(0)
        step = cuda.gridsize(1) * 4
        for r in range(rounds):
            # In each round a block reads another part of the array. Otherwise L1 would serve it, not L2.
            block = (cuda.blockIdx.x + r * 101) % cuda.gridDim.x
            i = (block * cuda.blockDim.x + cuda.threadIdx.x) * 4
            while i + 3 * step < array.size:  # Four loads are in flight at a time.
                a, b, c, d = (
                    load4(array, i),
                    load4(array, i + step),
                    load4(array, i + 2 * step),
                    load4(array, i + 3 * step),
                )
                acc += a[0] + a[1] + a[2] + a[3] + b[0] + b[1] + b[2] + b[3]
                acc += c[0] + c[1] + c[2] + c[3] + d[0] + d[1] + d[2] + d[3]
                i += 4 * step
            while i < array.size:
                a = load4(array, i)
                acc += a[0] + a[1] + a[2] + a[3]
                i += step
        if acc != 0:  # This is never true, but the compiler cannot know it, and must read.
            out[u32(0)] = acc

    return read_global


@functools.cache
def _read_shared():
    from numba import cuda, float32

    from lockstep.intrinsics import load4, unroll

    @cuda.jit
    def read_shared(out, rounds):
        shared = cuda.shared.array(SHARED_FLOATS, float32, 16)
        for i in range(cuda.threadIdx.x, SHARED_FLOATS, THREADS):
            shared[i] = out[0]
        cuda.syncthreads()
        acc = float32(0)
        for r in range(rounds):
            first = (cuda.threadIdx.x + r) % THREADS * 4  # Otherwise each element would be loaded only once.
            for i in unroll(range(SHARED_FLOATS // (4 * THREADS))):
                a = load4(shared, first + i * 4 * THREADS)
                acc += a[0] + a[1] + a[2] + a[3]
        if acc != 0:
            out[0] = acc

    return read_shared
