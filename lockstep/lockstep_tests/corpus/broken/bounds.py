"""Accesses outside an array, in memory of every kind."""

import numpy as np
from numba import cuda, float32

from lockstep_tests.corpus import broken_case, ramp, zeros


@broken_case("out_of_bounds", grid=2, block=32, args=lambda: (ramp(60), zeros(64)), blocks=((1, 0, 0),))
@cuda.jit
def read_past_the_end(x, out):
    i = cuda.grid(1)
    out[i] = x[i]  # <- out_of_bounds x


@broken_case("out_of_bounds", grid=2, block=32, args=lambda: (ramp(64), zeros(60)), blocks=((1, 0, 0),))
@cuda.jit
def write_past_the_end(x, out):
    i = cuda.grid(1)
    out[i] = x[i]  # <- out_of_bounds out


@broken_case("out_of_bounds", grid=1, block=(32, 7), args=lambda: (ramp(8, 30), zeros(8, 32)))
@cuda.jit
def column_runs_into_the_next_row(a, out):
    col, row = cuda.grid(2)
    out[row, col] = a[row, col]  # <- out_of_bounds a


@broken_case("out_of_bounds", grid=1, block=(32, 7), args=lambda: (ramp(8, 32), zeros(8, 30)))
@cuda.jit
def column_written_into_the_next_row(a, out):
    col, row = cuda.grid(2)
    out[row, col] = a[row, col]  # <- out_of_bounds out


@broken_case("out_of_bounds", grid=1, block=32, args=lambda: (ramp(32), zeros(32)))
@cuda.jit
def too_negative_to_wrap(x, out):
    i = cuda.grid(1)
    out[i] = x[i - 40]  # <- out_of_bounds x


@broken_case("out_of_bounds", grid=1, block=64, args=lambda: (ramp(64), zeros(64)))
@cuda.jit
def neighbour_past_the_shared_tile(x, out):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    tile[t] = x[t]
    cuda.syncthreads()
    out[t] = tile[t + 1]  # <- out_of_bounds tile


@broken_case("out_of_bounds", grid=1, block=(16, 16), args=lambda: (ramp(16, 16), zeros(16, 16)))
@cuda.jit
def shared_column_off_by_one(a, out):
    tile = cuda.shared.array((16, 16), float32)
    col, row = cuda.grid(2)
    tile[row, col + 1] = a[row, col]  # <- out_of_bounds tile
    cuda.syncthreads()
    out[row, 15 - col] = float32(1)


@broken_case("out_of_bounds", grid=1, block=32, args=lambda: (ramp(32), zeros(32), np.int64(5)))
@cuda.jit
def one_step_too_many_in_a_local_array(x, out, steps):
    i = cuda.grid(1)
    powers = cuda.local.array(4, float32)
    value = float32(1)
    for j in range(steps):
        powers[j] = value  # <- out_of_bounds powers
        value *= x[i]
    out[i] = powers[3]


@broken_case("out_of_bounds", grid=3, block=32, args=lambda: (ramp(96), zeros(96)), blocks=((2, 0, 0),))
@cuda.jit
def range_includes_the_end(x, out):
    first = cuda.blockIdx.x * cuda.blockDim.x
    total = float32(0)
    for j in range(first, first + 33):
        total += x[j]  # <- out_of_bounds x
    out[cuda.grid(1)] = total


@broken_case("out_of_bounds", grid=(2, 2), block=(16, 16), args=lambda: (ramp(20, 32), zeros(20, 32)))
@cuda.jit
def guard_with_rows_and_columns_swapped(a, out):
    col, row = cuda.grid(2)
    if row < a.shape[1] and col < a.shape[0]:
        out[row, col] = a[row, col]  # <- out_of_bounds


@broken_case("out_of_bounds", grid=(2, 2), block=(16, 16), args=lambda: (ramp(17, 17), zeros(17, 17)))
@cuda.jit
def only_the_load_is_guarded(a, out):
    col, row = cuda.grid(2)
    value = float32(0)
    if row < a.shape[0] and col < a.shape[1]:
        value = a[row, col]
    out[row, col] = value  # <- out_of_bounds out


@broken_case("out_of_bounds", grid=1, block=32, args=lambda: (np.arange(32) % 9, zeros(8, dtype=np.int32)))
@cuda.jit
def histogram_with_one_bin_too_few(values, bins):
    i = cuda.grid(1)
    cuda.atomic.add(bins, values[i], 1)  # <- out_of_bounds bins


@broken_case("out_of_bounds", grid=1, block=32, args=lambda: (np.arange(32) * 3, ramp(64), zeros(32)))
@cuda.jit
def gather_follows_a_bad_index(index, x, out):
    i = cuda.grid(1)
    out[i] = x[index[i]]  # <- out_of_bounds x


@broken_case("out_of_bounds", grid=1, block=64, args=lambda: (ramp(64), zeros(64)), shared_bytes=128)
@cuda.jit
def dynamic_shared_memory_too_small(x, out):
    tile = cuda.shared.array(0, float32)
    t = cuda.threadIdx.x
    tile[t] = x[t]  # <- out_of_bounds tile
    cuda.syncthreads()
    if t < 32:
        out[t] = tile[31 - t]


@broken_case("out_of_bounds", grid=1, block=(4, 4, 4), args=lambda: (ramp(4, 4, 3), zeros(4, 4, 4)))
@cuda.jit
def third_dimension_overrun(volume, out):
    x, y, z = cuda.grid(3)
    out[z, y, x] = volume[z, y, x]  # <- out_of_bounds volume


@broken_case("out_of_bounds", grid=2, block=32, args=lambda: (ramp(64), zeros(64)), blocks=((1, 0, 0),))
@cuda.jit
def stencil_reads_past_the_last_block(x, out):
    i = cuda.grid(1)
    if i > 0:
        out[i] = x[i - 1] + x[i + 1]  # <- out_of_bounds x
