"""cp.async data read before it has arrived, or before it is visible to the other threads."""

from numba import cuda, float32

from lockstep.intrinsics import cp_async4, cp_async16, cp_async_commit, cp_async_wait
from lockstep_tests.corpus import broken_case, ramp, zeros


@broken_case("async_read_too_early", grid=1, block=64, args=lambda: (ramp(64), zeros(64)))
@cuda.jit
def wait_forgotten(x, out):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    cp_async4(tile, t, x, t, 4)
    cp_async_commit()
    cuda.syncthreads()
    out[t] = tile[63 - t]  # <- async_read_too_early tile


@broken_case("async_read_too_early", grid=1, block=64, args=lambda: (ramp(64), zeros(64)))
@cuda.jit
def own_element_read_without_wait(x, out):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    cp_async4(tile, t, x, t, 4)
    cp_async_commit()
    out[t] = tile[t]  # <- async_read_too_early tile


@broken_case("async_read_too_early", grid=1, block=64, args=lambda: (ramp(64), zeros(64)))
@cuda.jit
def wait_leaves_the_newest_group(x, out):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    cp_async4(tile, t, x, t, 4)
    cp_async_commit()
    cp_async_wait(1)
    cuda.syncthreads()
    out[t] = tile[63 - t]  # <- async_read_too_early tile


@broken_case("async_read_too_early", grid=1, block=64, args=lambda: (ramp(64), zeros(64)))
@cuda.jit
def commit_forgotten(x, out):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    cp_async4(tile, t, x, t, 4)
    cp_async_wait(0)
    cuda.syncthreads()
    out[t] = tile[63 - t]  # <- async_read_too_early tile


@broken_case("async_read_too_early", grid=1, block=32, args=lambda: (ramp(4, 128), zeros(4, 128)))
@cuda.jit
def pipeline_that_never_drains(x, out):
    stages = cuda.shared.array((2, 128), float32, 16)
    t = cuda.threadIdx.x
    cp_async16(stages, (0, t * 4), x, (0, t * 4), 16)
    cp_async_commit()
    for step in range(4):
        if step < 3:
            cp_async16(stages, ((step + 1) % 2, t * 4), x, (step + 1, t * 4), 16)
            cp_async_commit()
        cp_async_wait(1)
        cuda.syncthreads()
        for j in range(4):
            out[step, t + 32 * j] = stages[step % 2, t + 32 * j]  # <- async_read_too_early stages
        cuda.syncthreads()


@broken_case(
    "async_read_too_early", grid=2, block=64, args=lambda: (ramp(128), zeros(128)), blocks=((1, 0, 0),)
)
@cuda.jit
def only_the_first_block_waits(x, out):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    cp_async4(tile, t, x, i, 4)
    cp_async_commit()
    if cuda.blockIdx.x == 0:
        cp_async_wait(0)
    cuda.syncthreads()
    out[i] = tile[63 - t]  # <- async_read_too_early tile


@broken_case("async_read_too_early", grid=1, block=32, args=lambda: (ramp(2, 32), zeros(2, 32)))
@cuda.jit
def second_of_two_groups_read_too_early(x, out):
    tile = cuda.shared.array((2, 32), float32)
    t = cuda.threadIdx.x
    cp_async4(tile, (0, t), x, (0, t), 4)
    cp_async_commit()
    cp_async4(tile, (1, t), x, (1, t), 4)
    cp_async_commit()
    cp_async_wait(1)
    cuda.syncthreads()
    out[0, t] = tile[0, 31 - t]
    out[1, t] = tile[1, 31 - t]  # <- async_read_too_early tile


@broken_case("shared_race", grid=1, block=64, args=lambda: (ramp(64), zeros(64)))
@cuda.jit
def barrier_after_the_wait_forgotten(x, out):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    cp_async4(tile, t, x, t, 4)
    cp_async_commit()
    cp_async_wait(0)
    out[t] = tile[63 - t]  # <- shared_race|async_read_too_early tile


@broken_case("shared_race", grid=1, block=64, args=lambda: (ramp(64), zeros(64)))
@cuda.jit
def barrier_before_the_wait(x, out):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    cp_async4(tile, t, x, t, 4)
    cp_async_commit()
    cuda.syncthreads()
    cp_async_wait(0)
    out[t] = tile[63 - t]  # <- shared_race|async_read_too_early tile


@broken_case("shared_race", grid=1, block=64, args=lambda: (ramp(2, 64), zeros(64)))
@cuda.jit
def buffer_refilled_while_still_read(x, out):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    total = float32(0)
    for step in range(2):
        cp_async4(tile, t, x, (step, t), 4)  # <- shared_race tile
        cp_async_commit()
        cp_async_wait(0)
        cuda.syncthreads()
        total += tile[63 - t]
    out[t] = total


@broken_case("uninitialised_read", grid=1, block=64, args=lambda: (ramp(64), zeros(64)))
@cuda.jit
def half_the_threads_copy(x, out):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    if t < 32:
        cp_async4(tile, t, x, t, 4)
    cp_async_commit()
    cp_async_wait(0)
    cuda.syncthreads()
    out[t] = tile[63 - t]  # <- uninitialised_read tile
