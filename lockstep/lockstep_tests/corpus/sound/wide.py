"""16-byte accesses and asynchronous copies, used as they should be."""

import numpy as np
from numba import cuda, float32

from lockstep.intrinsics import (
    copy16,
    cp_async4,
    cp_async16,
    cp_async_commit,
    cp_async_wait,
    load4,
    store4,
    u32,
)
from lockstep_tests.corpus import noise, ramp, sound_case, zeros


@sound_case(
    grid=2,
    block=(8, 4),
    args=lambda: (ramp(8, 36), zeros(8, 32)),
    expected=lambda a, out: (None, a[:, :32]),
)
@cuda.jit
def four_floats_at_a_time(a, out):
    tx = u32(cuda.threadIdx.x)
    row = cuda.blockIdx.x * 4 + cuda.threadIdx.y
    store4(out, (row, tx * 4), load4(a, (row, tx * 4)))


@sound_case(
    grid=1,
    block=16,
    args=lambda: (ramp(64), zeros(64)),
    expected=lambda x, out: (None, x.reshape(16, 4)[:, ::-1].ravel()),
)
@cuda.jit
def four_floats_reversed_through_shared_memory(x, out):
    tile = cuda.shared.array(64, float32, 16)
    t = cuda.threadIdx.x
    a, b, c, d = load4(x, t * 4)
    store4(tile, t * 4, (d, c, b, a))
    out_of = load4(tile, t * 4)
    for j in range(4):
        out[t * 4 + j] = out_of[j] if j < 4 else float32(0)


@sound_case(
    grid=1,
    block=32,
    args=lambda: (ramp(256, dtype=np.float16), zeros(256, dtype=np.float16)),
    expected=lambda x, out: (None, x),
)
@cuda.jit
def eight_halves_at_a_time(x, out):
    t = cuda.threadIdx.x
    copy16(out, t * 8, x, t * 8)


@sound_case(
    grid=2,
    block=64,
    args=lambda: (ramp(128), zeros(128)),
    expected=lambda x, out: (None, x.reshape(2, 64)[:, ::-1].ravel()),
)
@cuda.jit
def async_copy_wait_barrier(x, out):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    cp_async4(tile, t, x, i, 4)
    cp_async_commit()
    cp_async_wait(0)
    cuda.syncthreads()
    out[i] = tile[63 - t]


@sound_case(
    grid=1,
    block=64,
    args=lambda: (ramp(64), zeros(64)),
    expected=lambda x, out: (None, x),
)
@cuda.jit
def own_async_copy_needs_the_wait_only(x, out):
    tile = cuda.shared.array(64, float32)
    t = cuda.threadIdx.x
    cp_async4(tile, t, x, t, 4)
    cp_async_commit()
    cp_async_wait(0)
    out[t] = tile[t]


@sound_case(
    grid=2,
    block=32,
    args=lambda: (ramp(50), zeros(64)),
    expected=lambda x, out: (None, np.concatenate([x[:32][::-1], np.zeros(14), x[32:][::-1]])),
)
@cuda.jit
def async_copy_that_fills_with_zeros(x, out):
    tile = cuda.shared.array(32, float32)
    t = cuda.threadIdx.x
    i = cuda.grid(1)
    inside = i < x.shape[0]
    cp_async4(tile, t, x, i if inside else 0, 4 if inside else 0)
    cp_async_commit()
    cp_async_wait(0)
    cuda.syncthreads()
    out[i] = tile[31 - t]


@sound_case(
    grid=1,
    block=32,
    args=lambda: (noise(6, 128), zeros(6, 128)),
    expected=lambda x, out: (None, x[:, ::-1]),
)
@cuda.jit
def three_stages_of_async_copies(x, out):
    stages = cuda.shared.array((3, 128), float32, 16)
    t = cuda.threadIdx.x
    for step in range(2):
        cp_async16(stages, (step, t * 4), x, (step, t * 4), 16)
        cp_async_commit()
    for step in range(6):
        cp_async_wait(1)
        cuda.syncthreads()
        if step + 2 < 6:
            cp_async16(stages, ((step + 2) % 3, t * 4), x, (step + 2, t * 4), 16)
        cp_async_commit()
        for j in range(4):
            out[step, t + 32 * j] = stages[step % 3, 127 - t - 32 * j]


@sound_case(
    grid=1,
    block=32,
    args=lambda: (ramp(2, 32), zeros(2, 32)),
    expected=lambda x, out: (None, x[:, ::-1]),
)
@cuda.jit
def older_group_read_while_the_newer_flies(x, out):
    tile = cuda.shared.array((2, 32), float32)
    t = cuda.threadIdx.x
    cp_async4(tile, (0, t), x, (0, t), 4)
    cp_async_commit()
    cp_async4(tile, (1, t), x, (1, t), 4)
    cp_async_commit()
    cp_async_wait(1)
    cuda.syncthreads()
    out[0, t] = tile[0, 31 - t]
    cp_async_wait(0)
    cuda.syncthreads()
    out[1, t] = tile[1, 31 - t]
