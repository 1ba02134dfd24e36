"""`vectorized` taken apart: its two changes to `thread_tiled_2d`, each with a switch.

It is not part of the ladder. With FOURS = 1 global memory is read and written 128 bits at a time, and so are
the tiles filled. With TRANSPOSED = 1 As is filled and read as As[p, i], as in `vectorized`, and filling it
takes four stores. Without both it is `thread_tiled_2d`, with both `vectorized`. PAD: unused elements at the
end of each row of As.
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
from gemm_course.kernels.parts.results import store_four
from lockstep.intrinsics import load4, store4, u32, unroll


@cuda.jit(device=True)
def before(k, first, v):
    """The four elements v of columns first to first + 3, with zeros from column k on: there may be NaN."""
    zero = float32(0)
    return (
        v[0] if first < k else zero,
        v[1] if first + 1 < k else zero,
        v[2] if first + 2 < k else zero,
        v[3] if first + 3 < k else zero,
    )


def build(BM, BN, BK, TM, TN, PAD, FOURS, TRANSPOSED):
    """The kernel for blocks of BM by BN elements, TM by TN per thread, that step along k by BK."""
    WIDE = 4 if FOURS else 1  # elements that a thread fetches at once
    THREADS = BM * BN // (TM * TN)
    A_ROWS, B_ROWS = THREADS // (BK // WIDE), THREADS // (BN // WIDE)  # rows the block fetches at a time
    A_TILE = (BK, BM + PAD) if TRANSPOSED else (BM, BK + PAD)

    def vectorized_apart(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array(A_TILE, float32, 16)
        Bs = cuda.shared.array((BK, BN), float32, 16)
        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        acc = cuda.local.array((TM, TN), float32)
        for i in unroll(range(TM)):
            for j in unroll(range(TN)):
                acc[i, j] = 0
        zeros = (float32(0), float32(0), float32(0), float32(0))
        tid = u32(cuda.threadIdx.x)
        row0, col0 = u32(cuda.blockIdx.y) * BM, u32(cuda.blockIdx.x) * BN
        y0, x0 = tid // (BN // TN) * TM, tid % (BN // TN) * TN  # this thread's first element within the tile
        k0 = 0
        while k0 < k:
            for i in unroll(range(0, BM, A_ROWS)):
                r, c = i + tid // (BK // WIDE), tid % (BK // WIDE) * WIDE
                if FOURS:
                    v = load4(A, (row0 + r, k0 + c)) if row0 + r < m and k0 + c < k else zeros
                    v = before(k, k0 + c, v)
                    if TRANSPOSED:
                        for e in unroll(range(4)):
                            As[c + e, r] = v[e]
                    else:
                        store4(As, (r, c), v)
                else:
                    x = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
                    if TRANSPOSED:
                        As[c, r] = x
                    else:
                        As[r, c] = x
            for i in unroll(range(0, BK, B_ROWS)):
                r, c = i + tid // (BN // WIDE), tid % (BN // WIDE) * WIDE
                inside = k0 + r < k and col0 + c < n
                if FOURS:
                    store4(Bs, (r, c), load4(B, (k0 + r, col0 + c)) if inside else zeros)
                else:
                    Bs[r, c] = B[k0 + r, col0 + c] if inside else float32(0)
            cuda.syncthreads()
            for p in unroll(range(BK)):
                for i in unroll(range(TM)):
                    a[i] = As[p, y0 + i] if TRANSPOSED else As[y0 + i, p]
                for j in unroll(range(TN)):
                    b[j] = Bs[p, x0 + j]
                for i in unroll(range(TM)):
                    for j in unroll(range(TN)):
                        acc[i, j] += a[i] * b[j]
            cuda.syncthreads()
            k0 += BK
        for i in unroll(range(TM)):
            row = row0 + y0 + i
            if FOURS:
                for j in unroll(range(0, TN, 4)):
                    four = (acc[i, j], acc[i, j + 1], acc[i, j + 2], acc[i, j + 3])
                    store_four(C, row, col0 + x0 + j, m, n, alpha, beta, four)
            else:
                for j in unroll(range(TN)):
                    col = col0 + x0 + j
                    if row < m and col < n:
                        old = beta * C[row, col] if beta != 0 else float32(0)
                        C[row, col] = alpha * acc[i, j] + old

    return vectorized_apart


def requirements(t):
    """Whole thread tiles, whole rows in each pass of fetching, and with FOURS fours everywhere."""
    threads, wide = t.BM * t.BN // (t.TM * t.TN), 4 if t.FOURS else 1
    for switch, value in (("FOURS", t.FOURS), ("TRANSPOSED", t.TRANSPOSED)):
        yield value in (0, 1), f"{switch} must be 0 or 1, not {value}"
    yield t.BM % t.TM == 0, f"BM ({t.BM}) must be a multiple of TM ({t.TM}): a thread owns TM whole rows"
    yield t.BN % t.TN == 0, f"BN ({t.BN}) must be a multiple of TN ({t.TN}): a thread owns TN whole columns"
    if t.FOURS:
        yield from moves_by_fours(BM=t.BM, BN=t.BN, BK=t.BK, TN=t.TN, PAD=t.PAD)
    as_elements = t.BK * (t.BM + t.PAD) if t.TRANSPOSED else t.BM * (t.BK + t.PAD)
    yield from fits_block(threads, 4 * (as_elements + t.BK * t.BN))
    yield from fits_registers(t.TM, t.TN)
    yield from shares_evenly("A", threads, rows=("BM", t.BM), width=("BK", t.BK), at_once=wide)
    yield from shares_evenly("B", threads, rows=("BK", t.BK), width=("BN", t.BN), at_once=wide)


STAGE = Stage(
    name="vectorized_apart",
    title="Four floats at a time, taken apart",
    document="004: v05, one change at a time",
    tiles={"BM": 128, "BN": 128, "BK": 32, "TM": 16, "TN": 4, "PAD": 0, "FOURS": 1, "TRANSPOSED": 0},
    options={
        "BM": (32, 64, 128, 256),
        "BN": (32, 64, 128, 256),
        "BK": (8, 16, 32),
        "TM": (4, 8, 16),
        "TN": (4, 8, 16),
        "PAD": (0, 4),
        "FOURS": (0, 1),
        "TRANSPOSED": (0, 1),
    },
    may_be_zero=frozenset({"PAD", "FOURS", "TRANSPOSED"}),
    requirements=requirements,
    build=build,
    threads=lambda t: (t.BM * t.BN // (t.TM * t.TN),),
    blocks=columns_by_rows,
    registers=lambda t: registers_for(t.TM, t.TN),
    alignment=16,
)
