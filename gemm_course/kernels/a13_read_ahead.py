"""Operands read one step ahead: those of the next step arrive while the current ones are multiplied.

Beyond the documents; elsewhere called register double buffering. A step is one of the BK columns of As and
the row of Bs that it is multiplied with. A thread has two sets of registers for a step's operands. It reads
into one from shared memory while it multiplies the other, so a read may take as long as a step's
multiplications. At the last step of a tile the next operands are in the next tile: the block waits for that
one first.

A second idea: a thread goes over its results back and forth (a serpentine), left to right in one
row, right to left in the next. Within a row, neighbouring multiplications share an element of A; where the
row changes, they share one of B. So the register file has to deliver one operand fewer.
"""

from numba import cuda, float32

from gemm_course.kernels import a12_async_copy as async_copy
from gemm_course.kernels.a12_async_copy import fetcher
from gemm_course.kernels.parts.base import Stage, columns_by_rows, registers_for
from gemm_course.kernels.parts.results import store_four
from lockstep.intrinsics import cp_async_wait, load4, u32, unroll


def build(BM, BN, BK, WM, WN, TM, TN, SLOTS, PAD):
    """The kernel for blocks of BM by BN elements, WM by WN per warp, TM by TN per thread."""
    THREADS = BM // WM * (BN // WN) * 32
    LANE_ROWS, LANE_COLS = WM // TM, WN // TN  # the warp's threads as a grid
    A_WIDTH = BM + PAD
    IN_FLIGHT = SLOTS - 2  # later tiles whose copies may be under way when the next is needed
    fetch = fetcher(BM, BN, BK, THREADS)

    def read_ahead(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((SLOTS, BK, A_WIDTH), float32, 16)
        Bs = cuda.shared.array((SLOTS, BK, BN), float32, 16)
        a = cuda.local.array((2, TM), float32)
        b = cuda.local.array((2, TN), float32)
        acc = cuda.local.array((TM, TN), float32)
        for i in unroll(range(TM)):
            for j in unroll(range(TN)):
                acc[i, j] = 0
        tid = u32(cuda.threadIdx.x)
        warp, lane = tid // 32, tid % 32
        row0, col0 = u32(cuda.blockIdx.y) * BM, u32(cuda.blockIdx.x) * BN
        y0 = warp // (BN // WN) * WM + lane // LANE_COLS * 4  # this thread's first element within the tile
        x0 = warp % (BN // WN) * WN + lane % LANE_COLS * 4
        for s in unroll(range(SLOTS - 1)):
            fetch(As, Bs, s, A, B, row0, col0, s * BK, m, n, k, tid)
        cp_async_wait(IN_FLIGHT)
        cuda.syncthreads()
        for i in unroll(range(0, TM, 4)):
            a[0, i], a[0, i + 1], a[0, i + 2], a[0, i + 3] = load4(As, (0, 0, y0 + i * LANE_ROWS))
        for j in unroll(range(0, TN, 4)):
            b[0, j], b[0, j + 1], b[0, j + 2], b[0, j + 3] = load4(Bs, (0, 0, x0 + j * LANE_COLS))
        k0, slot = 0, u32(0)
        while k0 < k:
            for p in unroll(range(BK)):
                now, then = p % 2, (p + 1) % 2
                if p == 0:  # everybody has read the tile multiplied last: its slot is free
                    free = u32(slot ^ 1) if SLOTS == 2 else u32((slot + SLOTS - 1) % SLOTS)
                    fetch(As, Bs, free, A, B, row0, col0, k0 + (SLOTS - 1) * BK, m, n, k, tid)
                if p == BK - 1:  # the next operands are in the next tile
                    cp_async_wait(IN_FLIGHT)
                    cuda.syncthreads()
                    slot = u32(slot ^ 1) if SLOTS == 2 else u32((slot + 1) % SLOTS)
                q = (p + 1) % BK
                for i in unroll(range(0, TM, 4)):
                    v = load4(As, (slot, q, y0 + i * LANE_ROWS))
                    a[then, i], a[then, i + 1], a[then, i + 2], a[then, i + 3] = v
                for j in unroll(range(0, TN, 4)):
                    v = load4(Bs, (slot, q, x0 + j * LANE_COLS))
                    b[then, j], b[then, j + 1], b[then, j + 2], b[then, j + 3] = v
                for i in unroll(range(TM)):
                    for s in unroll(range(TN)):
                        j = s if i % 2 == 0 else TN - 1 - s  # back and forth: neighbours share an operand
                        acc[i, j] += a[now, i] * b[now, j]
            k0 += BK
        cp_async_wait(0)  # no copy may be under way when the block ends
        for i in unroll(range(TM)):
            row = row0 + y0 + i // 4 * (4 * LANE_ROWS) + i % 4
            for j in unroll(range(0, TN, 4)):
                col = col0 + x0 + j * LANE_COLS
                four = (acc[i, j], acc[i, j + 1], acc[i, j + 2], acc[i, j + 3])
                store_four(C, row, col, m, n, alpha, beta, four)

    return read_ahead


def requirements(t):
    """Those of async_copy, and an even number of steps per tile."""
    yield t.BK % 2 == 0, f"operands alternate between two sets of registers: BK ({t.BK}) must be even"
    yield from async_copy.requirements(t)


STAGE = Stage(
    name="read_ahead",
    title="Operands read one step ahead",
    after="async_copy",
    document="beyond the documents",
    tiles=async_copy.STAGE.tiles,
    options=async_copy.STAGE.options,
    may_be_zero=frozenset({"PAD"}),
    requirements=requirements,
    build=build,
    threads=async_copy.STAGE.threads,
    blocks=columns_by_rows,
    # (TM + 2) (TN + 2) = TM TN + 2 (TM + TN) + 4: results, two sets of operands
    registers=lambda t: registers_for(t.TM + 2, t.TN + 2),
    alignment=16,
    compute_capability=(8, 0),
)
