"""Instructions of a whole warp that only some of its lanes reach, or that get different positions."""

from numba import cuda, float32
from numba.types import float16

from lockstep.intrinsics import (
    ROW_MAJOR,
    copy16,
    ldmatrix_x4,
    mma_m16n8k16,
    u32,
    unroll,
    wmma_load_a,
    wmma_store,
)
from lockstep_tests.corpus import broken_case, ramp, zeros


@broken_case("warp_divergence", grid=1, block=64, args=lambda: (zeros(64),))
@cuda.jit
def mma_for_the_lanes_that_have_a_row(out):
    a, b = cuda.local.array(8, float16), cuda.local.array(4, float16)
    acc = cuda.local.array(4, float32)
    t = cuda.threadIdx.x
    for e in unroll(range(8)):
        a[e] = b[e % 4] = 1
        acc[e % 4] = 0
    if t < 48:
        mma_m16n8k16(acc, a, b)  # <- warp_divergence
    out[t] = acc[0]


@broken_case("warp_divergence", grid=1, block=48, args=lambda: (zeros(48),))
@cuda.jit
def mma_in_a_block_of_a_warp_and_a_half(out):
    a, b = cuda.local.array(8, float16), cuda.local.array(4, float16)
    acc = cuda.local.array(4, float32)
    for e in unroll(range(8)):
        a[e] = b[e % 4] = 1
        acc[e % 4] = 0
    mma_m16n8k16(acc, a, b)  # <- warp_divergence
    out[cuda.threadIdx.x] = acc[0]


@broken_case(
    "warp_divergence",
    grid=2,
    block=32,
    args=lambda: (ramp(32, 8, dtype="float16"), zeros(64)),
    blocks=((1, 0, 0),),
)
@cuda.jit
def ldmatrix_behind_a_guard_of_the_last_block(x, out):
    tile = cuda.shared.array((32, 8), float16, 16)
    fragment = cuda.local.array(8, float16)
    t = u32(cuda.threadIdx.x)
    i = u32(cuda.blockIdx.x) * 32 + t
    copy16(tile, (t, 0), x, (t, 0))
    for e in unroll(range(8)):
        fragment[e] = 0
    cuda.syncthreads()
    if i < 50:
        ldmatrix_x4(fragment, tile, (t, 0))  # <- warp_divergence
    out[i] = fragment[0]


@broken_case("warp_divergence", grid=1, block=32, args=lambda: (ramp(32, 16, dtype="float16"), zeros(32)))
@cuda.jit
def each_half_of_a_warp_loads_its_own_tile(x, out):
    tile = cuda.shared.array((32, 16), float16, 32)
    fragment = cuda.local.array(16, float16)
    t = u32(cuda.threadIdx.x)
    copy16(tile, (t, 0), x, (t, 0))
    copy16(tile, (t, 8), x, (t, 8))
    cuda.syncthreads()
    wmma_load_a(fragment, tile, (t // 16 * 16, 0), ROW_MAJOR)  # <- warp_divergence
    out[t] = fragment[0]


@broken_case("warp_divergence", grid=1, block=64, args=lambda: (zeros(64, 16),))
@cuda.jit
def every_lane_stores_sums_to_its_row(out):
    tile = cuda.shared.array((80, 16), float32, 32)
    acc = cuda.local.array(8, float32)
    t = u32(cuda.threadIdx.x)
    for e in unroll(range(8)):
        acc[e] = 1
    wmma_store(tile, (t // 32 * 32 + t % 2, 0), acc, ROW_MAJOR)  # <- warp_divergence|shared_race
    cuda.syncthreads()
    out[t, 0] = tile[t // 32 * 32, 0]
