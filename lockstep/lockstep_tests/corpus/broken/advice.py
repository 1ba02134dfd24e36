"""Kernels that compute the right results but deserve advice."""

import math

import numpy as np
from numba import cuda, float32, int32
from numba.types import float16

from lockstep_tests.corpus import broken_case, noise, ramp, zeros

HALF = 0.5


@broken_case("float64_arithmetic", grid=1, block=32, args=lambda: (ramp(8, 32), zeros(32)))
@cuda.jit
def accumulator_started_with_a_python_float(a, out):
    i = cuda.grid(1)
    acc = 0.0
    for p in range(a.shape[0]):
        acc += a[p, i]  # <- float64_arithmetic
    out[i] = acc


@broken_case("float64_arithmetic", grid=1, block=32, args=lambda: (ramp(8, 32), zeros(32)))
@cuda.jit
def accumulator_started_with_a_python_int(a, out):
    i = cuda.grid(1)
    acc = 0
    for p in range(a.shape[0]):
        acc += a[p, i]  # <- float64_arithmetic
    out[i] = acc


@broken_case("float64_arithmetic", grid=1, block=32, args=lambda: (ramp(32), zeros(32)))
@cuda.jit
def halved_with_a_float_literal(x, out):
    i = cuda.grid(1)
    out[i] = x[i] * 0.5  # <- float64_arithmetic


@broken_case("float64_arithmetic", grid=1, block=32, args=lambda: (ramp(32), zeros(32)))
@cuda.jit
def doubled_with_an_int_literal(x, out):
    i = cuda.grid(1)
    out[i] = 2 * x[i]  # <- float64_arithmetic


@broken_case("float64_arithmetic", grid=1, block=32, args=lambda: (ramp(32), zeros(32)))
@cuda.jit
def weighted_by_the_thread_index(x, out):
    i = cuda.threadIdx.x
    out[i] = x[i] * i  # <- float64_arithmetic


@broken_case("float64_arithmetic", grid=1, block=32, args=lambda: (ramp(32), zeros(32)))
@cuda.jit
def mean_over_an_int_length(x, out):
    i = cuda.grid(1)
    out[i] = x[i] / x.shape[0]  # <- float64_arithmetic


@broken_case("float64_arithmetic", grid=1, block=32, args=lambda: (zeros(32),))
@cuda.jit
def quotient_of_two_ints(out):
    i = cuda.grid(1)
    out[i] = i / 3  # <- float64_arithmetic


@broken_case("float64_arithmetic", grid=1, block=32, args=lambda: (2.5, ramp(32), zeros(32)))
@cuda.jit
def scaled_by_a_python_float_argument(alpha, x, out):
    i = cuda.grid(1)
    out[i] = alpha * x[i]  # <- float64_arithmetic


@broken_case("float64_arithmetic", grid=1, block=32, args=lambda: (ramp(32), zeros(32)))
@cuda.jit
def scaled_by_a_global_constant(x, out):
    i = cuda.grid(1)
    out[i] = HALF * x[i]  # <- float64_arithmetic


@broken_case("float64_arithmetic", grid=1, block=32, args=lambda: (ramp(32), zeros(32)))
@cuda.jit
def ternary_with_a_float_literal(x, out):
    i = cuda.grid(1)
    value = x[i] if i < 20 else 0.0
    out[i] = value + x[i]  # <- float64_arithmetic


@broken_case("float64_arithmetic", grid=1, block=32, args=lambda: (zeros(32),))
@cuda.jit
def square_root_of_an_int(out):
    i = cuda.grid(1)
    out[i] = math.sqrt(i)  # <- float64_arithmetic


@broken_case("float64_arithmetic", grid=1, block=32, args=lambda: (ramp(32, dtype=np.float16), zeros(32)))
@cuda.jit
def half_precision_times_an_int(x, out):
    i = cuda.grid(1)
    out[i] = float32(x[i]) * 3  # <- float64_arithmetic


@broken_case("dynamic_local_index", grid=1, block=32, args=lambda: (ramp(32), zeros(32)))
@cuda.jit
def local_array_indexed_by_the_thread(x, out):
    t = cuda.threadIdx.x
    parts = cuda.local.array(4, float32)
    for j in range(4):
        parts[j] = x[t]
    out[t] = parts[t % 4]  # <- dynamic_local_index parts


@broken_case("dynamic_local_index", grid=1, block=32, args=lambda: (np.arange(32) % 4, zeros(32)))
@cuda.jit
def local_array_indexed_by_data(index, out):
    t = cuda.threadIdx.x
    parts = cuda.local.array(4, float32)
    for j in range(4):
        parts[j] = float32(0)
    parts[index[t]] = float32(1)  # <- dynamic_local_index parts
    out[t] = parts[0] + parts[3]


@broken_case("dynamic_local_index", grid=3, block=32, args=lambda: (ramp(96), zeros(96)))
@cuda.jit
def local_array_indexed_by_the_block(x, out):
    i = cuda.grid(1)
    parts = cuda.local.array(4, float32)
    for j in range(4):
        parts[j] = x[i]
    out[i] = parts[cuda.blockIdx.x % 4]  # <- dynamic_local_index parts


@broken_case("dynamic_local_index", grid=1, block=32, args=lambda: (ramp(32), zeros(32), np.int32(2)))
@cuda.jit
def local_array_indexed_by_an_argument(x, out, which):
    i = cuda.grid(1)
    parts = cuda.local.array(4, float32)
    for j in range(4):
        parts[j] = x[i]
    out[i] = parts[which]  # <- dynamic_local_index parts


@broken_case("negative_index", grid=1, block=32, args=lambda: (ramp(32), zeros(32)))
@cuda.jit
def left_neighbour_of_the_first(x, out):
    i = cuda.grid(1)
    out[i] = x[i - 1]  # <- negative_index x


@broken_case("negative_index", grid=1, block=32, args=lambda: (ramp(32), zeros(32)))
@cuda.jit
def left_neighbour_in_shared_memory(x, out):
    tile = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    cuda.syncthreads()
    out[t] = tile[t - 1]  # <- negative_index tile


@broken_case("negative_index", grid=(2, 1), block=(16, 16), args=lambda: (noise(16, 32), zeros(16, 32)))
@cuda.jit
def row_above_the_first_row(a, out):
    col, row = cuda.grid(2)
    out[row, col] = a[row - 1, col]  # <- negative_index a


@broken_case("negative_index", grid=2, block=32, args=lambda: (ramp(64), zeros(64, dtype=np.int32)))
@cuda.jit
def stored_at_a_negative_index(x, out):
    i = cuda.grid(1)
    out[i - 5] = int32(x[i])  # <- negative_index out


@broken_case(
    "float64_arithmetic",
    grid=1,
    block=32,
    args=lambda: (ramp(32, dtype=np.float16), zeros(32, dtype=np.float16)),
)
@cuda.jit
def half_precision_times_a_float_literal(x, out):
    i = cuda.grid(1)
    out[i] = float16(x[i] * 1.5)  # <- float64_arithmetic
