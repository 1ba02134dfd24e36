"""Between block and thread, the warp: its 32 threads share a WM by WN tile of C.

Document 003, with its TM = 1: a thread computes one row at a time.

A warp covers its tile in WMITER by WNITER steps of WSUBM by WSUBN elements; in each, a thread computes 1 by
TN. A thread's results are therefore WMITER rows, WSUBM apart, of WNITER runs of TN columns, WSUBN apart: the
threads of a warp stay close together and read the same few rows of shared memory.
"""

from numba import cuda, float32

from gemm_course.kernels.parts.base import (
    Stage,
    columns_by_rows,
    fits_block,
    fits_registers,
    moves_by_fours,
    registers_for,
    shares_evenly,
)
from lockstep.intrinsics import load4, store4, u32, unroll


def build(BM, BN, BK, WM, WN, TM, TN, WNITER):
    """The kernel for blocks of BM by BN elements, WM by WN per warp, that step along k by BK."""
    THREADS = BM // WM * (BN // WN) * 32
    WMITER = WM * WN // (32 * TM * TN * WNITER)
    WSUBM, WSUBN = WM // WMITER, WN // WNITER
    A_ROWS, B_ROWS = THREADS // (BK // 4), THREADS // (BN // 4)  # rows the block fetches at a time

    def warp_tiled_tm1(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BK, BM), float32, 16)
        Bs = cuda.shared.array((BK, BN), float32, 16)
        a = cuda.local.array(WMITER, float32)
        b = cuda.local.array((WNITER, TN), float32)
        acc = cuda.local.array((WMITER, WNITER, TN), float32)
        for i in unroll(range(WMITER)):
            for j in unroll(range(WNITER)):
                for e in unroll(range(TN)):
                    acc[i, j, e] = 0
        zeros = (float32(0), float32(0), float32(0), float32(0))
        tid = u32(cuda.threadIdx.x)
        warp, lane = tid // 32, tid % 32
        row0, col0 = u32(cuda.blockIdx.y) * BM, u32(cuda.blockIdx.x) * BN
        y0 = warp // (BN // WN) * WM + lane // (WSUBN // TN)  # this thread's first element within the tile
        x0 = warp % (BN // WN) * WN + lane % (WSUBN // TN) * TN
        k0 = 0
        while k0 < k:
            for i in unroll(range(0, BM, A_ROWS)):
                r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
                v = load4(A, (row0 + r, k0 + c)) if row0 + r < m and k0 + c < k else zeros
                for e in unroll(range(4)):
                    As[c + e, r] = v[e] if k0 + c + e < k else float32(0)  # past k there may be NaN
            for i in unroll(range(0, BK, B_ROWS)):
                r, c = i + tid // (BN // 4), tid % (BN // 4) * 4
                store4(Bs, (r, c), load4(B, (k0 + r, col0 + c)) if k0 + r < k and col0 + c < n else zeros)
            cuda.syncthreads()
            for p in unroll(range(BK)):
                for i in unroll(range(WMITER)):
                    a[i] = As[p, y0 + i * WSUBM]
                for j in unroll(range(WNITER)):
                    for e in unroll(range(TN)):
                        b[j, e] = Bs[p, x0 + j * WSUBN + e]
                for i in unroll(range(WMITER)):
                    for j in unroll(range(WNITER)):
                        for e in unroll(range(TN)):
                            acc[i, j, e] += a[i] * b[j, e]
            cuda.syncthreads()
            k0 += BK
        for i in unroll(range(WMITER)):
            row = row0 + y0 + i * WSUBM
            for j in unroll(range(WNITER)):
                for e in unroll(range(0, TN, 4)):
                    col = col0 + x0 + j * WSUBN + e
                    if row < m and col < n:
                        # the row's padding may be read with it, but is never written
                        old = load4(C, (row, col)) if beta != 0 else zeros
                        c0 = alpha * acc[i, j, e] + beta * old[0]
                        c1 = alpha * acc[i, j, e + 1] + beta * old[1]
                        c2 = alpha * acc[i, j, e + 2] + beta * old[2]
                        c3 = alpha * acc[i, j, e + 3] + beta * old[3]
                        if col + 3 < n:
                            store4(C, (row, col), (c0, c1, c2, c3))
                        else:
                            C[row, col] = c0
                            if col + 1 < n:
                                C[row, col + 1] = c1
                            if col + 2 < n:
                                C[row, col + 2] = c2

    return warp_tiled_tm1


def requirements(t):
    """A warp's threads cover its tile exactly, in whole steps."""
    yield t.TM == 1, f"this stage computes one row at a time: TM must be 1, not {t.TM}"
    yield t.BM % t.WM == 0, f"BM ({t.BM}) must be a multiple of WM ({t.WM}): whole warp tiles"
    yield t.BN % t.WN == 0, f"BN ({t.BN}) must be a multiple of WN ({t.WN}): whole warp tiles"
    step = 32 * t.TM * t.TN * t.WNITER
    yield (
        t.WM * t.WN % step == 0,
        f"WMITER = WM * WN / (32 * TM * TN * WNITER) = {t.WM * t.WN} / {step} must be a whole number",
    )
    wmiter = max(1, t.WM * t.WN // step)
    yield (
        t.WM % wmiter == 0,
        f"WM ({t.WM}) must be a multiple of WMITER ({wmiter}): whole steps along the rows",
    )
    yield (
        t.WN % (t.WNITER * t.TN) == 0,
        f"WN ({t.WN}) must be a multiple of WNITER * TN ({t.WNITER * t.TN}): whole steps along the columns",
    )
    threads = t.BM * t.BN // (t.WM * t.WN) * 32
    yield from moves_by_fours(BM=t.BM, BN=t.BN, BK=t.BK, TN=t.TN)
    yield from fits_block(threads, 4 * t.BK * (t.BM + t.BN))
    yield from fits_registers(wmiter, t.WNITER * t.TN)
    yield from shares_evenly("A", threads, rows=("BM", t.BM), width=("BK", t.BK), at_once=4)
    yield from shares_evenly("B", threads, rows=("BK", t.BK), width=("BN", t.BN), at_once=4)


STAGE = Stage(
    name="warp_tiled_tm1",
    title="Warp tiles, one row per thread",
    after="vectorized",
    side=True,
    document="003",
    tiles={"BM": 128, "BN": 128, "BK": 16, "WM": 64, "WN": 32, "TM": 1, "TN": 8, "WNITER": 1},
    options={
        "BM": (64, 128, 256),
        "BN": (64, 128, 256),
        "BK": (8, 16),
        "WM": (32, 64, 128),
        "WN": (32, 64, 128),
        "TM": (1,),
        "TN": (4, 8, 16),
        "WNITER": (1, 2, 4),
    },
    requirements=requirements,
    build=build,
    threads=lambda t: (t.BM * t.BN // (t.WM * t.WN) * 32,),
    blocks=columns_by_rows,
    registers=lambda t: registers_for(t.WM * t.WN // (32 * t.TN), t.TN),
    alignment=16,
)
