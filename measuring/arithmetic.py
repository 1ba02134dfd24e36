"""Measures how fast the arithmetic units really are, without any memory: the roofline's flat roofs.

FP32 means fused multiply-adds on registers. mma means Tensor Cores fed from registers, warp by warp. wgmma
means Tensor Cores fed from shared memory, warpgroup by warpgroup, which only Hopper has. All use random
numbers, because zeros take less power, and less power allows a higher clock.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from gemm_course.device import gpu_facts, time_launch, why_too_old
from gemm_course.records import origin
from gemm_course.records.columns import COMPUTE_ROOFS

THREADS = 256
ACCUMULATORS = 8  # the number of independent ones per thread or warp, so that none waits for the one before
REPEATS = 32  # the rounds of multiply-adds per iteration, so that the loop itself costs little
ITERATIONS = 4000
COLUMNS = 256  # the number of columns that one wgmma computes
PER_THREAD = COLUMNS // 2  # the number of accumulators of a thread, for 64 rows


def measure_arithmetic(path: Path, command: str) -> dict[str, float]:
    """Measure, write a row per unit, and return TFLOPS by unit: "FP32", "mma FP16" and "wgmma FP16".

    Units that this GPU lacks are left out.
    """
    from numba import cuda

    gpu = gpu_facts()
    random = np.random.default_rng(0).standard_normal(4096, dtype=np.float32)
    found, rows = {}, []
    for unit, (build, capability, dtype, blocks, flops) in UNITS.items():
        if why_too_old(unit, capability):
            continue
        kernel, numbers = cuda.jit(build()), cuda.to_device(random.astype(dtype))
        out = cuda.to_device(np.zeros(1, np.float32))
        grid = gpu.multiprocessors * blocks
        timing = time_launch(_launcher(kernel, grid, numbers, out), budget_ms=300)
        found[unit] = 1e-9 * flops * ITERATIONS * grid / timing.best_ms
        about = {"unit": unit, "tflops": found[unit], "sm_clock_mhz": timing.sm_clock_mhz}
        rows.append(about | origin(gpu.name, gpu.driver, gpu.cuda, command))
    COMPUTE_ROOFS.write(path, rows)
    return found


def _launcher(kernel, grid: int, numbers, out) -> Callable[[], None]:
    return lambda: kernel[grid, THREADS](numbers, out, ITERATIONS)


def fma_kernel():
    """Return a kernel that computes acc = acc * x + y, with ACCUMULATORS of them per thread."""
    from numba import cuda, float32

    from lockstep.intrinsics import unroll

    def multiply_add(numbers, out, iterations):
        acc = cuda.local.array(ACCUMULATORS, float32)
        for i in unroll(range(ACCUMULATORS)):
            acc[i] = numbers[cuda.threadIdx.x + i]
        x, y = numbers[0], numbers[1]
        for _ in range(iterations):
            for _ in unroll(range(REPEATS)):
                for i in unroll(range(ACCUMULATORS)):
                    acc[i] = acc[i] * x + y
        total = float32(0)
        for i in unroll(range(ACCUMULATORS)):
            total += acc[i]
        if total == 0.125:  # This is hardly ever true, but the compiler cannot know it, and must compute.
            out[0] = total

    return multiply_add


def mma_kernel():
    """Return a kernel with ACCUMULATORS fragments per warp, each 16 by 8 += 16 by 16 times 16 by 8."""
    from numba import cuda, float32
    from numba.types import float16

    from lockstep.intrinsics import mma_m16n8k16, unroll

    def mma(numbers, out, iterations):
        a = cuda.local.array(8, float16)
        b = cuda.local.array(4, float16)
        acc = cuda.local.array((ACCUMULATORS, 4), float32)
        for e in unroll(range(8)):
            a[e] = numbers[cuda.threadIdx.x * 8 + e]
        for e in unroll(range(4)):
            b[e] = numbers[cuda.threadIdx.x * 4 + e]
        for i in unroll(range(ACCUMULATORS)):
            for e in unroll(range(4)):
                acc[i, e] = 0
        for _ in range(iterations):
            for i in unroll(range(ACCUMULATORS)):
                mma_m16n8k16(acc[i], a, b)
        total = float32(0)
        for i in unroll(range(ACCUMULATORS)):
            for e in unroll(range(4)):
                total += acc[i, e]
        if total == 0.125:
            out[0] = total

    return mma


def wgmma_kernel():
    """Return a kernel with two warpgroups, each 64 by 256 += 64 by 64 times 64 by 256."""
    from numba import cuda, float32
    from numba.types import float16

    from lockstep.intrinsics import fence_async, unroll, wgmma, wgmma_commit, wgmma_fence, wgmma_wait

    def wgmma_only(numbers, out, iterations):
        As = cuda.shared.array((1, 128, 64), float16, 1024)
        Bs = cuda.shared.array((4, 64, 64), float16, 1024)
        acc = cuda.local.array(PER_THREAD, float32)
        for e in unroll(range(PER_THREAD)):
            acc[e] = 0
        tid = cuda.threadIdx.x
        for i in range(tid, 128 * 64, THREADS):
            As[0, i // 64, i % 64] = numbers[i % 4096]
        for i in range(tid, 4 * 64 * 64, THREADS):
            Bs[i // 4096, i // 64 % 64, i % 64] = numbers[(i + 1) % 4096]
        fence_async()
        cuda.syncthreads()
        row = tid // 128 * 64
        for _ in range(iterations):
            wgmma_fence()
            for k in unroll(range(0, 64, 16)):
                wgmma(COLUMNS, acc, As, (0, row, k), Bs, (0, k, 0))
            wgmma_commit()
            wgmma_wait(0)
        total = float32(0)
        for e in unroll(range(PER_THREAD)):
            total += acc[e]
        if total == 0.125:
            out[0] = total

    return wgmma_only


# Each unit maps to (kernel, compute capability, dtype, blocks per multiprocessor, operations per block and
# iteration).
UNITS = {
    "FP32": (fma_kernel, (5, 0), np.float32, 4, 2 * REPEATS * ACCUMULATORS * THREADS),
    "mma FP16": (mma_kernel, (8, 0), np.float16, 4, 2 * 16 * 8 * 16 * ACCUMULATORS * THREADS // 32),
    "wgmma FP16": (wgmma_kernel, (9, 0), np.float16, 1, 2 * 64 * COLUMNS * 64 * THREADS // 128),
}
