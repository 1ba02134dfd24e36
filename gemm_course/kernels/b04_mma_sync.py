"""Fragments loaded during products: the Tensor Cores are seldom idle.

Beyond the documents. In mma_ring a warp loads the fragments of a step, 16 deep along k, and waits for them
before it can multiply. This is read_ahead's idea with fragments for operands: a warp has two sets of them,
and each step loads its own while the Tensor Cores multiply those of the step before. The products lag one
step, so that they can run past the barrier: the last ones of a tile come after it, beside the first loads of
the next tile.
"""

from numba import cuda, float32
from numba.types import float16

from gemm_course.kernels.b03_mma_ring import copies, shared_bytes
from gemm_course.kernels.b03_mma_ring import requirements as rules_of_a_ring
from gemm_course.kernels.parts.base import Stage, tiles_over
from gemm_course.kernels.parts.mma_tiles import every_second_piece, products, results
from gemm_course.kernels.parts.tensor_tiles import grouped
from lockstep.intrinsics import (
    carve,
    cp_async_wait,
    kept,
    ldmatrix_x4,
    ldmatrix_x4_trans,
    rest,
    u32,
    unroll,
)


def build(BM, BN, BK, WM, WN, SLOTS, GROUP):
    """The kernel for blocks of BM by BN elements, WM by WN per warp, a ring of SLOTS tiles."""
    THREADS = BM // WM * (BN // WN) * 32
    ROWS, COLUMNS, PRODUCTS = WM // 16, WN // 16, WN // 8  # fragments of A, of B, and products side by side
    STEPS = BK // 16
    IN_FLIGHT = SLOTS - 2  # later tiles whose copies may be under way when the next is needed
    A_TILE, B_TILE = BM * BK, BK * BN
    A_REPEAT, A_SPAN = 64 // BK, BK // 8  # short rows: several fill the banks together
    own_pieces, fetch_first, fetch = copies(BM, BN, BK, THREADS)
    (clear, multiply), finish = products(WM, WN), results(WM, WN)

    def mma_sync(m, n, k, alpha, A, B, beta, C):
        tiles = cuda.shared.array(0, float16, 128)
        As = carve(tiles, 0, (SLOTS * A_TILE,))
        Bs = carve(tiles, SLOTS * A_TILE, (SLOTS * B_TILE,))
        Cs = carve(tiles, SLOTS * (A_TILE + B_TILE), (THREADS // 32, 16, WN))
        a = cuda.local.array((2, ROWS, 8), float16)
        b = cuda.local.array((2, COLUMNS, 8), float16)
        acc = cuda.local.array((ROWS, PRODUCTS, 4), float32)
        tid = u32(cuda.threadIdx.x)
        warp, lane = tid // 32, tid % 32
        tile_rows, tile_cols = u32(u32(m + BM - 1) // BM), u32(u32(n + BN - 1) // BN)
        tile_row, tile_col = grouped(u32(cuda.blockIdx.x), tile_rows, tile_cols, GROUP)
        row0, col0 = u32(tile_row * BM), u32(tile_col * BN)
        y0, x0 = warp // (BN // WN) * WM, warp % (BN // WN) * WN  # the warp's tile within the block's

        # where this thread's first piece of each tile comes from, and where it goes
        a_row, a_col, b_row, b_col, to_a, to_b = own_pieces(tid, row0, col0, n)
        # this lane's row: of A's first fragment at each step, of each of B's fragments at the first step
        line, half = lane % 16, lane // 16
        a_at = every_second_piece((y0 + line) * BK, half ^ (line // A_REPEAT % A_SPAN))
        b_at = every_second_piece(line * BN, (x0 // 8 + half) ^ (line % 8))

        # the tile that k cuts off, if any, comes first: those after it are whole
        whole, ahead = fetch_first(As, Bs, to_a, to_b, A, B, a_row, a_col, b_row, b_col, m, k)
        for s in unroll(range(1, SLOTS - 1)):
            into_a, into_b = to_a + s * A_TILE, to_b + s * B_TILE
            for part in unroll(range(STEPS)):
                fetch(As, Bs, into_a, into_b, A, B, a_row, a_col, b_row, b_col, ahead, m, whole, part)
            ahead = u32(ahead + BK)
        clear(acc, a[1], b[1])  # the first step has nothing to multiply yet
        cp_async_wait(IN_FLIGHT)
        cuda.syncthreads()
        slot, free = u32(0), u32(SLOTS - 1)  # the slots to read and to fill
        while ahead < whole + (SLOTS - 1) * BK:  # the tile at `ahead` is SLOTS - 1 after the one multiplied
            A_now, B_now = rest(As, slot * A_TILE), rest(Bs, slot * B_TILE)
            into_a, into_b = kept(free * A_TILE + to_a), kept(free * B_TILE + to_b)
            for p in unroll(range(STEPS)):
                now, before = p % 2, (p + 1) % 2
                for i in unroll(range(ROWS)):
                    ldmatrix_x4(a[now, i], A_now, a_at[p] + i * 16 * BK)
                for j in unroll(range(COLUMNS)):
                    ldmatrix_x4_trans(b[now, j], B_now, b_at[j] + p * 16 * BN)
                fetch(As, Bs, into_a, into_b, A, B, a_row, a_col, b_row, b_col, ahead, m, whole, p)
                multiply(acc, a[before], b[before])
            cp_async_wait(IN_FLIGHT)
            cuda.syncthreads()
            after = u32(slot + 1)
            free, slot = slot, u32(0) if after == SLOTS else after  # everybody has read the freed slot
            ahead = u32(ahead + BK)
        multiply(acc, a[(STEPS - 1) % 2], b[(STEPS - 1) % 2])
        cp_async_wait(0)  # no copy may be under way when the block ends

        finish(acc, alpha, beta, Cs, warp, lane, C, u32(row0 + y0), u32(col0 + x0), m, n)

    return mma_sync


def requirements(t):
    """The rules of mma_ring, and two sets of fragments that alternate."""
    yield from rules_of_a_ring(t)
    yield t.BK in (32, 64), f"two sets of fragments alternate, twice at most: BK ({t.BK}) must be 32 or 64"


STAGE = Stage(
    name="mma_sync",
    title="Fragments loaded during products",
    after="mma_ring",
    document="beyond the documents",
    tiles={"BM": 128, "BN": 256, "BK": 64, "WM": 64, "WN": 64, "SLOTS": 3, "GROUP": 8},
    options={
        "BM": (64, 128, 256),
        "BN": (64, 128, 256),
        "BK": (32, 64),
        "WM": (32, 64),
        "WN": (32, 64),
        "SLOTS": (2, 3, 4),
        "GROUP": (1, 8),
    },
    requirements=requirements,
    build=build,
    threads=lambda t: (32 * (t.BM // t.WM) * (t.BN // t.WN),),
    blocks=lambda m, n, t: (tiles_over(m, t.BM) * tiles_over(n, t.BN),),
    registers=lambda t: t.WM * t.WN // 32 + (t.WM + t.WN) // 2 + 60,
    dynamic_shared_bytes=shared_bytes,
    alignment=16,
    compute_capability=(8, 0),
    dtype="float16",
)
