"""16-byte accesses at addresses that are not multiples of 16 bytes, or that extend beyond a row."""

from numba import cuda, float32

from lockstep.intrinsics import (
    copy16,
    cp_async4,
    cp_async16,
    cp_async_commit,
    cp_async_wait,
    load4,
    store4,
)
from lockstep_tests.corpus import broken_case, ramp, zeros


@broken_case("misaligned_access", grid=1, block=32, args=lambda: (ramp(160), zeros(32)))
@cuda.jit
def load4_from_every_element(x, out):
    t = cuda.threadIdx.x
    a, b, c, d = load4(x, t)  # <- misaligned_access x
    out[t] = a + b + c + d


@broken_case("misaligned_access", grid=1, block=(8, 4), args=lambda: (ramp(4, 34), zeros(4, 32)))
@cuda.jit
def load4_under_an_odd_leading_dimension(a, out):
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    store4(out, (ty, tx * 4), load4(a, (ty, tx * 4)))  # <- misaligned_access a


@broken_case("misaligned_access", grid=1, block=(8, 4), args=lambda: (ramp(4, 32), zeros(4, 36)))
@cuda.jit
def store4_one_column_to_the_right(a, out):
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    values = load4(a, (ty, tx * 4))
    store4(out, (ty, tx * 4 + 1), values)  # <- misaligned_access out


@broken_case("misaligned_access", grid=2, block=8, args=lambda: (ramp(72), zeros(64)), blocks=((1, 0, 0),))
@cuda.jit
def second_block_starts_off_by_two(x, out):
    t = cuda.threadIdx.x
    first = cuda.blockIdx.x * 34 + t * 4
    values = load4(x, first)  # <- misaligned_access x
    store4(out, cuda.blockIdx.x * 32 + t * 4, values)


@broken_case("misaligned_access", grid=1, block=32, args=lambda: (ramp(32), zeros(32)))
@cuda.jit
def wide_store_into_a_padded_tile(x, out):
    tile = cuda.shared.array((4, 33), float32, 16)
    t = cuda.threadIdx.x
    row, quarter = t // 8, t % 8
    value = x[t]
    store4(tile, (row, quarter * 4), (value, value, value, value))  # <- misaligned_access tile
    cuda.syncthreads()
    out[t] = tile[0, t]


@broken_case("misaligned_access", grid=1, block=8, args=lambda: (ramp(36), zeros(32)))
@cuda.jit
def async_copy_from_a_shifted_source(x, out):
    tile = cuda.shared.array(32, float32, 16)
    t = cuda.threadIdx.x
    cp_async16(tile, t * 4, x, t * 4 + 1, 16)  # <- misaligned_access x
    cp_async_commit()
    cp_async_wait(0)
    cuda.syncthreads()
    store4(out, t * 4, load4(tile, t * 4))


@broken_case("misaligned_access", grid=1, block=8, args=lambda: (ramp(32), zeros(32)))
@cuda.jit
def async_copy_to_a_shifted_destination(x, out):
    tile = cuda.shared.array(36, float32, 16)
    t = cuda.threadIdx.x
    cp_async16(tile, t * 4 + 2, x, t * 4, 16)  # <- misaligned_access tile
    cp_async_commit()
    cp_async_wait(0)
    cuda.syncthreads()
    for j in range(4):
        out[t * 4 + j] = float32(j)


@broken_case("misaligned_access", grid=1, block=8, args=lambda: (ramp(40), zeros(40)))
@cuda.jit
def copy16_at_multiples_of_five(x, out):
    t = cuda.threadIdx.x
    copy16(out, t * 4, x, t * 5)  # <- misaligned_access x


@broken_case("out_of_bounds", grid=1, block=(8, 4), args=lambda: (ramp(5, 28), zeros(5, 32)))
@cuda.jit
def load4_runs_into_the_next_row(a, out):
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    store4(out, (ty, tx * 4), load4(a, (ty, tx * 4)))  # <- out_of_bounds a


@broken_case("out_of_bounds", grid=1, block=8, args=lambda: (ramp(32), zeros(28)))
@cuda.jit
def store4_past_the_end(x, out):
    t = cuda.threadIdx.x
    store4(out, t * 4, load4(x, t * 4))  # <- out_of_bounds out


@broken_case("out_of_bounds", grid=1, block=32, args=lambda: (ramp(30), zeros(32)))
@cuda.jit
def async_copy_reads_past_the_end(x, out):
    tile = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    cp_async4(tile, t, x, t, 4)  # <- out_of_bounds x
    cp_async_commit()
    cp_async_wait(0)
    cuda.syncthreads()
    out[t] = tile[t]
