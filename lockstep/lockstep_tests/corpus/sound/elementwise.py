"""Kernels without shared memory: guards, loops, types, and the ways to name an element."""

import math

import numpy as np
from numba import cuda, float32, float64, int32, uint32
from numba.types import float16

from lockstep.intrinsics import u32, unroll
from lockstep_tests.corpus import noise, ramp, sound_case, zeros


@sound_case(
    grid=3,
    block=48,
    args=lambda: (np.float32(2.5), noise(100), noise(100, seed=1), zeros(100)),
    expected=lambda alpha, x, y, out: (None, None, None, alpha * x + y),
)
@cuda.jit
def saxpy_in_blocks_of_a_warp_and_a_half(alpha, x, y, out):
    i = cuda.grid(1)
    if i < x.shape[0]:
        out[i] = alpha * x[i] + y[i]


@sound_case(
    grid=2,
    block=33,
    args=lambda: (noise(500), zeros(500)),
    expected=lambda x, out: (None, x * x),
)
@cuda.jit
def grid_stride_loop(x, out):
    for i in range(cuda.grid(1), x.shape[0], cuda.gridsize(1)):
        out[i] = x[i] * x[i]


@sound_case(
    grid=(2, 2, 3),
    block=(5, 3, 2),
    args=lambda: (ramp(6, 6, 9), zeros(6, 6, 9)),
    expected=lambda volume, out: (None, volume * np.float32(2)),
)
@cuda.jit
def three_dimensional_block_of_thirty_threads(volume, out):
    x, y, z = cuda.grid(3)
    if x < volume.shape[2] and y < volume.shape[1] and z < volume.shape[0]:
        out[z, y, x] = volume[z, y, x] * float32(2)


@sound_case(grid=4, block=32, args=lambda: (ramp(100), zeros(100)), expected=lambda x, out: (None, x + 1))
@cuda.jit
def early_return_with_no_barrier_after_it(x, out):
    i = cuda.grid(1)
    if i >= x.shape[0]:
        return
    out[i] = x[i] + float32(1)


@sound_case(
    grid=2,
    block=32,
    args=lambda: (ramp(64), zeros(64)),
    expected=lambda x, out: (None, np.cumsum(x)),
)
@cuda.jit
def loop_as_long_as_the_thread_index(x, out):
    i = cuda.grid(1)
    total = float32(0)
    for j in range(i + 1):
        total += x[j]
    out[i] = total


def collatz_steps(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@sound_case(
    grid=1,
    block=40,
    args=lambda: (ramp(40, dtype=np.int64), zeros(40, dtype=np.int64)),
    expected=lambda n, steps: (None, np.array([collatz_steps(value) for value in n])),
)
@cuda.jit
def collatz_loops_as_long_as_the_data_say(n, steps):
    i = cuda.grid(1)
    value = n[i]
    count = 0
    while value != 1:
        if value % 2 == 0:
            value //= 2
        else:
            value = 3 * value + 1
        count += 1
    steps[i] = count


@sound_case(
    grid=2,
    block=32,
    args=lambda: (ramp(50), zeros(64)),
    expected=lambda x, out: (None, np.pad(x, (0, 14))),
)
@cuda.jit
def guarded_load_in_a_ternary(x, out):
    i = cuda.grid(1)
    out[i] = x[i] if i < x.shape[0] else float32(0)


@sound_case(
    grid=2,
    block=32,
    args=lambda: (noise(50), zeros(64)),
    expected=lambda x, out: (None, np.pad(np.maximum(x, 0), (0, 14))),
)
@cuda.jit
def guard_and_load_joined_by_and(x, out):
    i = cuda.grid(1)
    if i < x.shape[0] and x[i] > 0:
        out[i] = x[i]


@sound_case(
    grid=2,
    block=32,
    args=lambda: (noise(60), np.full(64, 7, np.float32)),
    expected=lambda x, out: (None, np.concatenate([np.where(x < 0, np.float32(1), 7), np.ones(4)])),
)
@cuda.jit
def guard_and_load_joined_by_or(x, out):
    i = cuda.grid(1)
    if i >= x.shape[0] or x[i] < 0:
        out[i] = float32(1)


@sound_case(
    grid=2,
    block=40,
    args=lambda: (ramp(70), zeros(70)),
    expected=lambda x, out: (None, np.pad(x[:-2] + x[2:], 1)),
)
@cuda.jit
def stencil_guarded_by_a_chained_comparison(x, out):
    i = cuda.grid(1)
    if 0 < i < x.shape[0] - 1:
        out[i] = x[i - 1] + x[i + 1]


def fibonacci(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@sound_case(
    grid=1,
    block=35,
    args=lambda: (zeros(35, dtype=np.int64),),
    expected=lambda out: (np.array([fibonacci(i) for i in range(35)]),),
)
@cuda.jit
def pair_swapped_in_one_assignment(out):
    i = cuda.grid(1)
    a, b = 0, 1
    for _ in range(i):
        a, b = b, a + b
    out[i] = a


@cuda.jit(device=True)
def clamped(value, low, high):
    if value < low:
        return low
    if value > high:
        return high
    return value


@cuda.jit(device=True)
def sum_and_difference(a, b):
    return a + b, a - b


@sound_case(
    grid=1,
    block=64,
    args=lambda: (noise(64), noise(64, seed=1), zeros(64), zeros(64)),
    expected=lambda x, y, s, d: (None, None, np.clip(x + y, -0.5, 0.5), np.clip(x - y, -0.5, 0.5)),
)
@cuda.jit
def device_functions_with_early_returns_and_a_tuple(x, y, s, d):
    i = cuda.grid(1)
    plus, minus = sum_and_difference(x[i], y[i])
    s[i] = clamped(plus, float32(-0.5), float32(0.5))
    d[i] = clamped(minus, float32(-0.5), float32(0.5))


def make_polynomial(*coefficients):
    c0, c1, c2 = (np.float32(c) for c in coefficients)

    @cuda.jit
    def polynomial_from_a_factory(x, out):
        i = cuda.grid(1)
        if i < x.shape[0]:
            out[i] = c0 + x[i] * (c1 + x[i] * c2)

    return polynomial_from_a_factory


polynomial = sound_case(
    grid=2,
    block=32,
    args=lambda: (noise(40), zeros(40)),
    expected=lambda x, out: (None, 1 + x * (2 + x * np.float32(3))),
)(make_polynomial(1, 2, 3))


@sound_case(
    grid=1,
    block=(16, 4),
    args=lambda: (ramp(8, 16), zeros(8, 16)),
    expected=lambda a, out: (None, a),
)
@cuda.jit
def unsigned_indices(a, out):
    tx, ty = u32(cuda.threadIdx.x), u32(cuda.threadIdx.y)
    for r in unroll(range(0, 8, 4)):
        out[ty + r, tx] = a[ty + r, tx]


@sound_case(
    grid=1,
    block=64,
    args=lambda: (noise(64, 5), zeros(64)),
    expected=lambda a, out: (None, a[:, ::-1] @ np.arange(5, dtype=np.float32)),
)
@cuda.jit
def local_array_in_registers(a, out):
    i = cuda.grid(1)
    row = cuda.local.array(5, float32)
    for j in unroll(range(5)):
        row[j] = a[i, j]
    total = float32(0)
    for j in range(4, -1, -1):
        total += row[j] * float32(4 - j)
    out[i] = total


@sound_case(
    grid=1,
    block=50,
    args=lambda: (noise(50, dtype=np.float64), zeros(50, dtype=np.float64)),
    expected=lambda x, out: (None, 0.5 * x * x - x / 3),
    rtol=1e-14,
)
@cuda.jit
def float64_kernel_on_float64_arrays(x, out):
    i = cuda.grid(1)
    acc = 0.5 * x[i]
    acc = acc * x[i] - x[i] / 3
    out[i] = acc


@sound_case(
    grid=1,
    block=64,
    args=lambda: (
        noise(64, dtype=np.float16),
        noise(64, dtype=np.float16, seed=1),
        zeros(64, dtype=np.float16),
    ),
    expected=lambda x, y, out: (None, None, x * y + x),
    rtol=2e-3,
)
@cuda.jit
def half_precision(x, y, out):
    i = cuda.grid(1)
    out[i] = x[i] * y[i] + x[i]


@sound_case(
    grid=1,
    block=32,
    args=lambda: (noise(32, 40, dtype=np.float16), noise(40, dtype=np.float16, seed=1), zeros(32)),
    expected=lambda a, x, out: (None, None, a.astype(np.float32) @ x.astype(np.float32)),
    rtol=1e-4,
)
@cuda.jit
def half_precision_summed_in_single(a, x, out):
    i = cuda.grid(1)
    total = float32(0)
    for j in range(a.shape[1]):
        total += float32(a[i, j]) * float32(x[j])
    out[i] = total


@sound_case(
    grid=1,
    block=64,
    args=lambda: (np.arange(-32, 32, dtype=np.int32), zeros(64, 4, dtype=np.int64)),
    expected=lambda n, out: (
        None,
        np.stack([n // 5, n % 5, (n << 3) ^ 21, ((n & 12) | 1) >> 1], axis=1).astype(np.int64),
    ),
)
@cuda.jit
def integer_arithmetic_with_negative_numbers(n, out):
    i = cuda.grid(1)
    value = n[i]
    out[i, 0] = value // 5
    out[i, 1] = value % 5
    out[i, 2] = (value << 3) ^ 21
    out[i, 3] = ((value & 12) | 1) >> 1


@sound_case(
    grid=1,
    block=48,
    args=lambda: (noise(48), zeros(48, 5)),
    expected=lambda x, out: (
        None,
        np.stack([np.sqrt(np.abs(x)), np.exp(x), np.sin(x), np.minimum(x, 0), np.maximum(x, -x)], axis=1),
    ),
)
@cuda.jit
def mathematical_functions(x, out):
    i = cuda.grid(1)
    value = x[i]
    out[i, 0] = math.sqrt(abs(value))
    out[i, 1] = math.exp(value)
    out[i, 2] = math.sin(value)
    out[i, 3] = min(value, float32(0))
    out[i, 4] = max(value, -value)


def first_multiples(n, limit=5):
    return sum(p for p in range(1, 200) if p % (n + 2) == 0 and p < limit * (n + 2) and p % 2)


@sound_case(
    grid=1,
    block=40,
    args=lambda: (zeros(40, dtype=np.int64),),
    expected=lambda out: (np.array([first_multiples(i) for i in range(40)]),),
)
@cuda.jit
def break_and_continue_at_different_times(out):
    i = cuda.grid(1)
    total = 0
    for p in range(1, 200):
        if p >= 5 * (i + 2):
            break
        if p % (i + 2) != 0:
            continue
        if p % 2 == 0:
            continue
        total += p
    out[i] = total


@sound_case(
    grid=1,
    block=40,
    args=lambda: (zeros(40, dtype=np.int64),),
    expected=lambda out: (np.array([sum(min(r, i) for r in range(6)) for i in range(40)]),),
)
@cuda.jit
def nested_loops_that_end_thread_by_thread(out):
    i = cuda.grid(1)
    total = 0
    for r in range(6):
        c = 0
        while True:
            if c == r or c == i:
                break
            c += 1
        total += c
    out[i] = total


@sound_case(grid=2, block=32, args=lambda: (ramp(64),), expected=lambda x: (x * x + 1,))
@cuda.jit
def own_element_updated_in_place(x):
    i = cuda.grid(1)
    x[i] = x[i] * x[i]
    x[i] += float32(1)


@sound_case(
    grid=1,
    block=32,
    args=lambda: (np.arange(32) % 7 - 1, ramp(6), zeros(32)),
    expected=lambda index, x, out: (None, None, np.where(index < 0, np.float32(0), x[index])),
)
@cuda.jit
def gather_that_skips_a_sentinel(index, x, out):
    i = cuda.grid(1)
    where = index[i]
    if where >= 0:
        out[i] = x[where]


@sound_case(
    grid=1,
    block=64,
    args=lambda: (ramp(1), zeros(64)),
    expected=lambda x, out: (None, np.repeat(x, 64)),
)
@cuda.jit
def one_element_read_by_everybody(x, out):
    out[cuda.grid(1)] = x[0]


@sound_case(
    grid=1,
    block=32,
    args=lambda: (ramp(32, 4), zeros(32)),
    expected=lambda a, out: (None, a[:, 0] * a[:, 3] + a[:, 1] * a[:, 2]),
)
@cuda.jit
def vector_type(a, out):
    i = cuda.grid(1)
    v = cuda.float32x4(a[i, 0], a[i, 1], a[i, 2], a[i, 3])
    out[i] = v.x * v.w + v.y * v.z


@sound_case(
    grid=1,
    block=32,
    args=lambda: (zeros(32, dtype=np.uint32),),
    expected=lambda out: ((np.arange(32, dtype=np.uint64) * 2654435761 % 2**32 >> 7).astype(np.uint32),),
)
@cuda.jit
def unsigned_numbers_that_wrap(out):
    i = uint32(cuda.threadIdx.x)
    hashed = uint32(i * uint32(2654435761))
    out[i] = hashed >> uint32(7)


@sound_case(
    grid=1,
    block=32,
    args=lambda: (noise(32), zeros(32, dtype=np.float64), zeros(32, dtype=np.int32)),
    expected=lambda x, wide, whole: (
        None,
        (x * np.float32(100)).astype(np.float64),
        (x * 100).astype(np.int32),
    ),
)
@cuda.jit
def values_cast_on_the_way_out(x, wide, whole):
    i = cuda.grid(1)
    value = x[i] * float32(100)
    wide[i] = float64(value)
    whole[i] = int32(value)


@sound_case(
    grid=(2, 3),
    block=(8, 8),
    args=lambda: (noise(20, 30), noise(30, 13, seed=1), zeros(20, 13)),
    expected=lambda a, b, c: (None, None, a @ b),
    rtol=1e-4,
)
@cuda.jit
def naive_product_of_odd_sizes(a, b, c):
    col, row = cuda.grid(2)
    if row < c.shape[0] and col < c.shape[1]:
        acc = float32(0)
        p = 0
        while p < a.shape[1]:
            acc += a[row, p] * b[p, col]
            p += 1
        c[row, col] = acc


@sound_case(
    grid=1,
    block=32,
    args=lambda: (noise(32, dtype=np.float16), zeros(32, dtype=np.float16)),
    expected=lambda x, out: (None, (x.astype(np.float32) * np.float32(1.5)).astype(np.float16)),
    rtol=1e-3,
)
@cuda.jit
def half_precision_widened_and_narrowed(x, out):
    i = cuda.grid(1)
    out[i] = float16(float32(x[i]) * float32(1.5))
