"""Kernels whose memory traffic a GPU's hardware counters can confirm, access by access.

They are written so that the compiler has nothing to merge or drop: strides are run-time arguments, no two
accesses of a thread are neighbours at an alignment the compiler can prove, loops that end at a different
iteration in each lane cannot be unrolled, there is no integer division (it compiles to floating-point FMAs),
and every loaded value is stored.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numba import cuda, float32, float64

from lockstep.intrinsics import load4, store4, unroll
from lockstep_tests.corpus import noise, zeros


@dataclass(frozen=True)
class CounterCase:
    """A kernel and one launch of it.

    compiled_view: what the compiler is known to merge or drop, or "".
    """

    name: str
    kernel: object
    grid: tuple[int, ...]
    block: tuple[int, ...]
    make_args: Callable[[], tuple]
    shared_bytes: int = 0
    compiled_view: str = ""


CASES: list[CounterCase] = []


def counted(grid, block, args, shared_bytes=0, compiled_view=""):
    """Add the kernel below to CASES with this launch."""

    def add(kernel):
        name = kernel.py_func.__name__
        CASES.append(CounterCase(name, kernel, grid, block, args, shared_bytes, compiled_view))
        return kernel

    return add


@counted((9,), (96,), lambda: (noise(6100), zeros(1000), np.int64(7), np.int64(3), np.int64(850)))
@cuda.jit
def strided_gather(x, out, stride, offset, n):
    i = cuda.grid(1)
    if i < n:
        out[i] = x[i * stride + offset]


@counted((5, 8), (16, 6), lambda: (noise(48), noise(80), noise(3), zeros(48, 80), np.int64(2)))
@cuda.jit
def row_and_column_broadcast(rows, columns, single, out, which):
    col, row = cuda.grid(2)
    out[row, col] = rows[row] * columns[col] + single[which]


@counted(
    (6, 7), (13, 7), lambda: (noise(45, 71), noise(45, 69, seed=1), zeros(45, 67), np.int64(45), np.int64(67))
)
@cuda.jit
def masked_sum_with_three_leading_dimensions(a, b, out, rows, columns):
    col, row = cuda.grid(2)
    if row < rows and col < columns:
        out[row, col] = a[row, col] + b[row, col]


@counted((3, 4, 2), (5, 3, 7), lambda: (noise(14, 12, 15), zeros(15, 14, 12)))
@cuda.jit
def axes_rotated_by_a_block_of_105_threads(volume, out):
    x, y, z = cuda.grid(3)
    out[x, z, y] = volume[z, y, x]


@counted(
    (11,),
    (48,),
    lambda: (noise(1600, dtype=np.float64), zeros(530, dtype=np.float64), np.int64(3), np.int64(515)),
)
@cuda.jit
def float64_with_a_stride(x, out, stride, n):
    i = cuda.grid(1)
    if i < n:
        out[i] = x[i * stride] + x[i]


@counted(
    (4,),
    (80,),
    lambda: (noise(700, dtype=np.float16), zeros(330, dtype=np.float16), np.int64(2), np.int64(5)),
)
@cuda.jit
def float16_with_a_stride(x, out, stride, offset):
    i = cuda.grid(1)
    out[i + offset] = x[i * stride + offset]


@counted((3,), (96,), lambda: (noise(288), zeros(3, 288), np.int64(5), np.int64(8), np.int64(33)))
@cuda.jit
def shared_32_bits_at_three_strides(x, out, first, second, third):
    tile = cuda.shared.array(1024, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    value = x[i]
    for fill in range(t, 1024, 96):
        tile[fill] = value
    cuda.syncthreads()
    tile[(t * first) & 1023] = value
    cuda.syncthreads()
    out[0, i] = tile[(t * first) & 1023]
    out[1, i] = tile[(t * second) & 1023]
    out[2, i] = tile[(t * third) & 1023]


@counted(
    (2,),
    (64,),
    lambda: (noise(128, dtype=np.float64), zeros(3, 128, dtype=np.float64), *map(np.int64, (1, 3, 16))),
)
@cuda.jit
def shared_64_bits_at_three_strides(x, out, first, second, third):
    tile = cuda.shared.array(1024, float64)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    value = x[i]
    for fill in range(t, 1024, 64):
        tile[fill] = value
    cuda.syncthreads()
    tile[(t * third) & 1023] = value
    cuda.syncthreads()
    out[0, i] = tile[(t * first) & 1023]
    out[1, i] = tile[(t * second) & 1023]
    out[2, i] = tile[((t >> 1) * third) & 1023]


@counted((2,), (64,), lambda: (noise(512), zeros(3, 512), *map(np.int64, (1, 3, 8))))
@cuda.jit
def shared_128_bits_at_three_strides(x, out, first, second, third):
    tile = cuda.shared.array(2048, float32, 16)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    values = load4(x, i * 4)
    for fill in range(t, 512, 64):
        store4(tile, fill * 4, values)
    cuda.syncthreads()
    store4(tile, ((t * third) & 511) * 4, values)
    cuda.syncthreads()
    store4(out, (0, i * 4), load4(tile, ((t * first) & 511) * 4))
    store4(out, (1, i * 4), load4(tile, ((t * second) & 511) * 4))
    store4(out, (2, i * 4), load4(tile, (((t >> 1) * third) & 511) * 4))


@counted((3, 2), (32, 8), lambda: (noise(64, 96), zeros(96, 64)))
@cuda.jit
def transpose_without_padding(a, out):
    tile = cuda.shared.array((32, 32), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    bx, by = cuda.blockIdx.x * 32, cuda.blockIdx.y * 32
    for r in unroll(range(0, 32, 8)):
        tile[ty + r, tx] = a[by + ty + r, bx + tx]
    cuda.syncthreads()
    for r in unroll(range(0, 32, 8)):
        out[bx + ty + r, by + tx] = tile[tx, ty + r]


@counted((3, 2), (32, 8), lambda: (noise(64, 96), zeros(96, 64)))
@cuda.jit
def transpose_with_padding(a, out):
    tile = cuda.shared.array((32, 33), float32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    bx, by = cuda.blockIdx.x * 32, cuda.blockIdx.y * 32
    for r in unroll(range(0, 32, 8)):
        tile[ty + r, tx] = a[by + ty + r, bx + tx]
    cuda.syncthreads()
    for r in unroll(range(0, 32, 8)):
        out[bx + ty + r, by + tx] = tile[tx, ty + r]


@counted((7,), (80,), lambda: (noise(600), noise(600, seed=1), zeros(560)))
@cuda.jit
def loops_that_end_lane_by_lane(x, y, out):
    i = cuda.grid(1)
    acc = float32(0)
    place = i
    while place > 0:
        acc += x[place] * y[place]
        place >>= 1
    out[i] = acc


@counted(
    (4, 3),
    (24, 4),
    lambda: (noise(48, 40), noise(40, 96, seed=1), zeros(48, 96), np.int64(40)),
    compiled_view="acc lives in registers",
)
@cuda.jit
def accumulators_in_registers(a, b, c, k):
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    col = cuda.blockIdx.x * 24 + tx
    row = cuda.blockIdx.y * 16 + ty
    acc = cuda.local.array(4, float32)
    for j in unroll(range(4)):
        acc[j] = float32(0)
    p = 0
    while p < k:
        value = b[p, col]
        for j in unroll(range(4)):
            acc[j] += a[row + 4 * j, p] * value
        p += 1
    for j in unroll(range(4)):
        c[row + 4 * j, col] = acc[j]


@counted((5,), (72,), lambda: (np.random.default_rng(2).integers(0, 500, 360), noise(360), zeros(500)))
@cuda.jit
def atomics_scattered_by_data(index, x, out):
    i = cuda.grid(1)
    cuda.atomic.add(out, index[i], x[i])
