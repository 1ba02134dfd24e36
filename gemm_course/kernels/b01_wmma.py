"""Tensor Cores: a warp multiplies 16 by 16 FP16 values by 16 by 16 in one operation.

Document 004's v07. A and B are float16 now, and a warp no longer cuts its tile into thread tiles. It loads 16
by 16 pieces of As and Bs into fragments, which its 32 lanes hold together, and one WMMA operation multiplies
two of them: 4096 multiply-adds in two machine instructions, where a warp's FFMA does 32. The accumulators are
float32, or float16 in `wmma_fp16_acc`.

cp.async copies the tiles, 8 FP16 values at a time, as in async_copy. But there is one slot only: the block
waits for each tile before it multiplies. A need not be transposed any more.

The hardware reads 8 rows of a fragment at a time. Without padding the rows of a tile are 32, 64, 128 or more
bytes apart, so these 8 start in few different banks; PAD extra values per row set them apart. The layout of a
fragment is unspecified, so the accumulators go through shared memory to be scaled, added to beta C and
stored.
"""

import functools

from numba import cuda, float32
from numba.types import float16

from gemm_course.kernels.parts.base import (
    Stage,
    accumulators_fit_registers,
    columns_by_rows,
    fits_block,
    fragments_cover_the_tiles,
    moves_by_eights,
    shares_evenly,
)
from lockstep.intrinsics import (
    ROW_MAJOR,
    copy16,
    cp_async16,
    cp_async_commit,
    cp_async_wait,
    u32,
    unroll,
    wmma_load_a,
    wmma_load_b,
    wmma_mma,
    wmma_store,
)

SIDE = 16  # of a fragment's matrix, in all three dimensions
C_WIDTH = SIDE + 8  # of the rows of results in shared memory, padded as well


def build(BM, BN, BK, WM, WN, PAD, acc_type=float32):
    """The kernel for blocks of BM by BN elements, WM by WN per warp, with accumulators of `acc_type`."""
    WARPS = BM // WM * (BN // WN)
    ROWS, COLUMNS = WM // SIDE, WN // SIDE  # fragments of a warp's tile
    A_WIDTH, B_WIDTH = BK + PAD, BN + PAD
    A_ROWS, B_ROWS = 32 * WARPS // (BK // 8), 32 * WARPS // (BN // 8)  # rows the block fetches at a time

    def wmma(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, A_WIDTH), float16, 32)
        Bs = cuda.shared.array((BK, B_WIDTH), float16, 32)
        Cs = cuda.shared.array((WARPS, SIDE, C_WIDTH), acc_type, 32)
        # 16 values per lane, not 256 / 32 = 8: WMMA's fragments of A and B hold every value twice
        a = cuda.local.array((ROWS, 16), float16)
        b = cuda.local.array((COLUMNS, 16), float16)
        acc = cuda.local.array((ROWS, COLUMNS, 8), acc_type)
        old = cuda.local.array(8, float16)
        new = cuda.local.array(8, float16)
        for i in unroll(range(ROWS)):
            for j in unroll(range(COLUMNS)):
                for e in unroll(range(8)):
                    acc[i, j, e] = 0
        tid = u32(cuda.threadIdx.x)
        warp, lane = tid // 32, tid % 32
        row0, col0 = u32(cuda.blockIdx.y) * BM, u32(cuda.blockIdx.x) * BN
        y0, x0 = warp // (BN // WN) * WM, warp % (BN // WN) * WN  # the warp's tile within the block's
        k0 = 0
        while k0 < k:
            c = tid % (BK // 8) * 8
            for i in unroll(range(0, BM, A_ROWS)):
                r = i + tid // (BK // 8)
                valid = max(0, min(k - k0 - c, 8)) * 2  # bytes; past k there may be NaN
                cp_async16(As, (r, c), A, (min(row0 + r, m - 1), k0 + c), valid)
            c = tid % (BN // 8) * 8
            for i in unroll(range(0, BK, B_ROWS)):
                r = i + tid // (BN // 8)
                valid = 16 if k0 + r < k else 0
                cp_async16(Bs, (r, c), B, (k0 + r, min(col0 + c, (n - 1) // 8 * 8)), valid)
            cp_async_commit()
            cp_async_wait(0)
            cuda.syncthreads()
            for p in unroll(range(0, BK, SIDE)):
                for i in unroll(range(ROWS)):
                    wmma_load_a(a[i], As, (y0 + i * SIDE, p), ROW_MAJOR)
                for j in unroll(range(COLUMNS)):
                    wmma_load_b(b[j], Bs, (p, x0 + j * SIDE), ROW_MAJOR)
                for i in unroll(range(ROWS)):
                    for j in unroll(range(COLUMNS)):
                        wmma_mma(acc[i, j], a[i], b[j], ROW_MAJOR, ROW_MAJOR)
            cuda.syncthreads()
            k0 += BK
        r, c = lane // 2, lane % 2 * 8  # of each 16 by 16 results a lane stores 8
        for i in unroll(range(ROWS)):
            for j in unroll(range(COLUMNS)):
                wmma_store(Cs, (warp, 0, 0), acc[i, j], ROW_MAJOR)
                cuda.syncwarp()
                row, col = row0 + y0 + i * SIDE + r, col0 + x0 + j * SIDE + c
                if row < m and col < n:
                    for e in unroll(range(8)):
                        old[e] = 0
                    if beta != 0:
                        copy16(old, 0, C, (row, col))  # the row's padding may be read with it
                    for e in unroll(range(8)):
                        new[e] = float16(alpha * float32(Cs[warp, r, c + e]) + beta * float32(old[e]))
                    if col + 7 < n:
                        copy16(C, (row, col), new, 0)
                    else:
                        for e in unroll(range(8)):
                            if col + e < n:
                                C[row, col + e] = new[e]
                cuda.syncwarp()

    return wmma


def variation(name, title, acc_type, after, side=False):
    """The stage with accumulators of one type."""
    acc_bytes = acc_type.bitwidth // 8

    def acc_registers(t):
        return t.WM * t.WN // 32 * acc_bytes // 4  # per lane

    def requirements(t):
        """Fragments cover the warp's tile, warp tiles the block's, and everything moves by eights."""
        warps = t.BM // t.WM * (t.BN // t.WN)
        tiles = 2 * (t.BM * (t.BK + t.PAD) + t.BK * (t.BN + t.PAD))
        yield from fragments_cover_the_tiles(t, SIDE, SIDE)
        yield from moves_by_eights(PAD=t.PAD)
        yield from accumulators_fit_registers(acc_registers(t))
        yield from fits_block(32 * warps, tiles + warps * SIDE * C_WIDTH * acc_bytes)
        yield from shares_evenly("A", 32 * warps, rows=("BM", t.BM), width=("BK", t.BK), at_once=8)
        yield from shares_evenly("B", 32 * warps, rows=("BK", t.BK), width=("BN", t.BN), at_once=8)

    return Stage(
        name=name,
        title=title,
        after=after,
        side=side,
        document="004: v07",
        tiles={"BM": 128, "BN": 128, "BK": 64, "WM": 64, "WN": 64, "PAD": 8},
        options={
            "BM": (64, 128, 256),
            "BN": (64, 128, 256),
            "BK": (16, 32, 64),
            "WM": (32, 64, 128),
            "WN": (32, 64, 128),
            "PAD": (0, 8, 16),
        },
        may_be_zero=frozenset({"PAD"}),
        requirements=requirements,
        build=functools.partial(build, acc_type=acc_type),
        threads=lambda t: (32 * (t.BM // t.WM) * (t.BN // t.WN),),
        blocks=columns_by_rows,
        registers=lambda t: acc_registers(t) + (t.WM + t.WN) // 4 + 40,
        alignment=16,
        compute_capability=(8, 0),
        dtype="float16",
        accumulate=str(acc_type),
    )


STAGE = variation("wmma", "Tensor Cores", float32, after="warp_tiled")
FP16_ACC = variation("wmma_fp16_acc", "Tensor Cores, FP16 accumulation", float16, after="wmma", side=True)
STAGES = (STAGE, FP16_ACC)
