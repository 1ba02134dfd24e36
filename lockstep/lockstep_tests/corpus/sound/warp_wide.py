"""The Tensor Cores as they should be used: whole warps, one position for all lanes."""

import numpy as np
from numba import cuda, float32
from numba.types import float16

from lockstep.intrinsics import (
    COL_MAJOR,
    ROW_MAJOR,
    copy16,
    ldmatrix_x4,
    ldmatrix_x4_trans,
    mma_m16n8k16,
    u32,
    unroll,
    wmma_load_a,
    wmma_load_b,
    wmma_mma,
    wmma_store,
)
from lockstep_tests.corpus import noise, sound_case, zeros


def product(a, b, c):
    return None, None, a.astype(np.float32) @ b.astype(np.float32)


@sound_case(
    grid=1,
    block=32,
    args=lambda: (noise(16, 16, dtype=np.float16), noise(16, 16, dtype=np.float16, seed=1), zeros(16, 16)),
    expected=product,
)
@cuda.jit
def product_through_ldmatrix_and_mma(a, b, c):
    As = cuda.shared.array((16, 24), float16, 16)
    Bs = cuda.shared.array((16, 24), float16, 16)
    left, right = cuda.local.array(8, float16), cuda.local.array(8, float16)
    acc = cuda.local.array((2, 4), float32)
    lane = u32(cuda.threadIdx.x)
    row, column = lane % 16, lane // 16 * 8
    copy16(As, (row, column), a, (row, column))
    copy16(Bs, (row, column), b, (row, column))
    for e in unroll(range(4)):
        acc[0, e] = acc[1, e] = 0
    cuda.syncwarp()
    ldmatrix_x4(left, As, (row, column))
    ldmatrix_x4_trans(right, Bs, (row, column))
    mma_m16n8k16(acc[0], left, right[0:4])
    mma_m16n8k16(acc[1], left, right[4:8])
    for e in unroll(range(4)):
        c[lane // 4 + e // 2 * 8, lane % 4 * 2 + e % 2] = acc[0, e]
        c[lane // 4 + e // 2 * 8, lane % 4 * 2 + e % 2 + 8] = acc[1, e]


@sound_case(
    grid=2,
    block=64,
    args=lambda: (
        noise(64, 16, dtype=np.float16),
        noise(16, 16, dtype=np.float16, seed=1),
        zeros(64, 16),
    ),
    expected=lambda a, b, c: (None, None, (b.astype(np.float32).T @ a.astype(np.float32).T).T),
)
@cuda.jit
def product_through_wmma_by_columns(a, b, c):
    As = cuda.shared.array((32, 16), float16, 32)
    Bs = cuda.shared.array((16, 16), float16, 32)
    Cs = cuda.shared.array((16, 32), float32, 32)
    left, right = cuda.local.array(16, float16), cuda.local.array(16, float16)
    acc = cuda.local.array(8, float32)
    t = u32(cuda.threadIdx.x)
    row, column = t // 2, t % 2 * 8
    block, warp = u32(cuda.blockIdx.x) * 32, t // 32
    copy16(As, (row, column), a, (block + row, column))
    if row < 16:
        copy16(Bs, (row, column), b, (row, column))
    for e in unroll(range(8)):
        acc[e] = 0
    cuda.syncthreads()
    wmma_load_a(left, Bs, (0, 0), COL_MAJOR)  # b transposed times a transposed is the product's transposed
    wmma_load_b(right, As, (warp * 16, 0), COL_MAJOR)
    wmma_mma(acc, left, right, COL_MAJOR, COL_MAJOR)
    wmma_store(Cs, (0, warp * 16), acc, ROW_MAJOR)
    cuda.syncthreads()
    for e in range(8):
        c[block + row, column + e] = Cs[column + e, row]
