"""A ring of tiles for Tensor Cores: the next tiles come while one is multiplied.

Beyond the documents. In mma_swizzled a block fetches a tile, waits for it, and multiplies it. Here, as in
async_copy, it starts the copies of later tiles before it multiplies. The barrier at the end of a tile then
says two things: the next tile is there, and everybody has read this one, so that its slot may be filled.

The ring is the main change. What comes with it:
- Dynamic shared memory, which has room for several large tiles.
- Blocks numbered in groups, as in grouped_blocks.
- Results collected in shared memory, so that a lane stores 16 bytes at a time instead of 4.
- If k cuts off a tile, that one comes first. So all tiles in the loop are whole, and need no bounds check
  along k.
- Offsets in shared memory that are computed once, before the loop: a copy in the loop takes three
  instructions, two for its address in A or B and the copy itself.

Why so few: with some 240 registers per thread a multiprocessor has room for 8 warps, two per scheduler. While
one of them runs other instructions, there is only one more to keep the Tensor Cores busy.

A step is 16 deep along k, as deep as one product: a tile has STEPS of them.
"""

from numba import cuda, float32
from numba.types import float16

from gemm_course.kernels.parts.base import (
    MAX_THREADS,
    Stage,
    accumulators_fit_registers,
    fragments_cover_the_tiles,
    shares_evenly,
    tiles_over,
)
from gemm_course.kernels.parts.mma_tiles import every_second_piece, results, rows_of_results
from gemm_course.kernels.parts.tensor_tiles import grouped
from lockstep.intrinsics import (
    carve,
    cp_async16,
    cp_async_commit,
    cp_async_wait,
    kept,
    ldmatrix_x4,
    ldmatrix_x4_trans,
    mma_m16n8k16,
    rest,
    u32,
    unroll,
)
from lockstep.limits import MAX_SHARED_BYTES


def copies(BM, BN, BK, THREADS):
    """own_pieces(...), fetch_first(...) and fetch(...), for a block of THREADS that fills a ring of tiles.

    As and Bs are all slots in a row, arrays of one dimension. Rows are swizzled as in mma_swizzled.
    """
    STEPS = BK // 16
    A_PIECES, B_PIECES = BK // 8, BN // 8  # of 16 bytes in a row of a tile
    A_ROWS, B_ROWS = THREADS // A_PIECES, THREADS // B_PIECES  # rows the block fetches at a time
    A_COPIES, B_COPIES = BM // A_ROWS, BK // B_ROWS  # per thread
    A_REPEAT, A_SPAN = 64 // BK, A_PIECES  # short rows: several fill the banks together

    @cuda.jit(device=True)
    def own_pieces(tid, row0, col0, n):
        """Where a thread's first piece of each tile comes from, and its offsets in the ring's first slot.

        a_row, b_col: in A and B. a_col, b_row: in the tiles.
        """
        a_col, b_row = kept(tid % A_PIECES * 8), kept(tid // B_PIECES)  # within a tile
        r, piece = tid // A_PIECES, tid % A_PIECES
        a_row, to_a = row0 + r, kept(r * BK + (piece ^ (r // A_REPEAT % A_SPAN)) * 8)
        r, piece = tid // B_PIECES, tid % B_PIECES
        b_col, to_b = min(col0 + piece * 8, (n - 1) // 8 * 8), kept(r * BN + (piece ^ (r % 8)) * 8)
        return a_row, a_col, b_row, b_col, to_a, to_b

    @cuda.jit(device=True)
    def fetch_first(As, Bs, to_a, to_b, A, B, a_row, a_col, b_row, b_col, m, k):
        """Start the copies of the first tiles, those that k cuts off if there are any, into the first slot.

        Returns where whole tiles end along k, and where the next ones to fetch start.
        """
        whole = u32(k // BK * BK)
        ragged = whole < k
        k0 = whole if ragged else u32(0)
        c = k0 + a_col
        valid = max(0, min(k - c, 8)) * 2  # bytes; past k there may be NaN
        for i in unroll(range(A_COPIES)):
            cp_async16(As, to_a + i * A_ROWS * BK, A, (min(a_row + i * A_ROWS, m - 1), c), valid)
        for i in unroll(range(B_COPIES)):
            r = k0 + b_row + i * B_ROWS
            cp_async16(Bs, to_b + i * B_ROWS * BN, B, (r, b_col), 16 if r < k else 0)
        cp_async_commit()
        return whole, u32(0) if ragged else u32(BK)

    @cuda.jit(device=True)
    def fetch(As, Bs, into_a, into_b, A, B, a_row, a_col, b_row, b_col, k0, m, whole, part):
        """Start one of the STEPS parts of the copies of whole tiles at k0; past the last, copy nothing."""
        size = 16 if k0 < whole else 0
        for i in unroll(range(A_COPIES)):
            if i % STEPS == part:
                from_a = (min(a_row + i * A_ROWS, m - 1), k0 + a_col)
                cp_async16(As, into_a + i * A_ROWS * BK, A, from_a, size)
        for i in unroll(range(B_COPIES)):
            if i % STEPS == part:
                cp_async16(Bs, into_b + i * B_ROWS * BN, rest(B, k0 + i * B_ROWS), (b_row, b_col), size)
        if part == STEPS - 1:
            cp_async_commit()

    return own_pieces, fetch_first, fetch


def build(BM, BN, BK, WM, WN, SLOTS, GROUP):
    """The kernel for blocks of BM by BN elements, WM by WN per warp, a ring of SLOTS tiles."""
    THREADS = BM // WM * (BN // WN) * 32
    ROWS, COLUMNS, PRODUCTS = WM // 16, WN // 16, WN // 8  # fragments of A, of B, and products side by side
    STEPS = BK // 16
    IN_FLIGHT = SLOTS - 2  # later tiles whose copies may be under way when the next is needed
    A_TILE, B_TILE = BM * BK, BK * BN
    A_REPEAT, A_SPAN = 64 // BK, BK // 8  # short rows: several fill the banks together
    own_pieces, fetch_first, fetch = copies(BM, BN, BK, THREADS)
    finish = results(WM, WN)

    def mma_ring(m, n, k, alpha, A, B, beta, C):
        tiles = cuda.shared.array(0, float16, 128)
        As = carve(tiles, 0, (SLOTS * A_TILE,))
        Bs = carve(tiles, SLOTS * A_TILE, (SLOTS * B_TILE,))
        Cs = carve(tiles, SLOTS * (A_TILE + B_TILE), (THREADS // 32, 16, WN))
        a = cuda.local.array((ROWS, 8), float16)
        b = cuda.local.array((COLUMNS, 8), float16)
        acc = cuda.local.array((ROWS, PRODUCTS, 4), float32)
        for i in unroll(range(ROWS)):
            for j in unroll(range(PRODUCTS)):
                for e in unroll(range(4)):
                    acc[i, j, e] = 0
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
        cp_async_wait(IN_FLIGHT)
        cuda.syncthreads()
        slot, free = u32(0), u32(SLOTS - 1)  # the slots to read and to fill
        while ahead < whole + (SLOTS - 1) * BK:  # the tile at `ahead` is SLOTS - 1 after the one multiplied
            A_now, B_now = rest(As, slot * A_TILE), rest(Bs, slot * B_TILE)
            into_a, into_b = kept(free * A_TILE + to_a), kept(free * B_TILE + to_b)
            for p in unroll(range(STEPS)):
                for i in unroll(range(ROWS)):
                    ldmatrix_x4(a[i], A_now, a_at[p] + i * 16 * BK)
                for j in unroll(range(COLUMNS)):
                    ldmatrix_x4_trans(b[j], B_now, b_at[j] + p * 16 * BN)
                fetch(As, Bs, into_a, into_b, A, B, a_row, a_col, b_row, b_col, ahead, m, whole, p)
                for i in unroll(range(ROWS)):
                    for j in unroll(range(COLUMNS)):
                        mma_m16n8k16(acc[i, 2 * j], a[i], b[j][0:4])
                        mma_m16n8k16(acc[i, 2 * j + 1], a[i], b[j][4:8])
            cp_async_wait(IN_FLIGHT)
            cuda.syncthreads()
            after = u32(slot + 1)
            free, slot = slot, u32(0) if after == SLOTS else after  # everybody has read the freed slot
            ahead = u32(ahead + BK)
        cp_async_wait(0)  # no copy may be under way when the block ends

        finish(acc, alpha, beta, Cs, warp, lane, C, u32(row0 + y0), u32(col0 + x0), m, n)

    return mma_ring


def shared_bytes(t) -> int:
    """Shared memory of SLOTS tiles of A and B, and of 16 rows of each warp's results."""
    return 2 * (t.SLOTS * (t.BM + t.BN) * t.BK + t.BM // t.WM * t.BN * 16)


def requirements(t):
    """Fragments cover the tiles, and a ring of at least two slots fits."""
    threads = 32 * (t.BM // t.WM) * (t.BN // t.WN)
    yield (
        t.SLOTS >= 2,
        f"one slot is read while another is filled: SLOTS must be at least 2, not {t.SLOTS}",
    )
    yield from fragments_cover_the_tiles(t, 16, 16)
    yield t.BK in (16, 32, 64), f"a tile takes at most four steps: BK ({t.BK}) must be 16, 32 or 64"
    yield from rows_of_results(t)
    yield t.BN % 64 == 0, f"a swizzle is over 8 pieces of 8 FP16 values: BN ({t.BN}) must be a multiple of 64"
    yield from accumulators_fit_registers(t.WM * t.WN // 32)
    yield threads >= 1, "the warp's tile is larger than the block's tile: the block would have no warps"
    yield (
        threads <= MAX_THREADS,
        f"blocks of {threads} threads; the maximum is {MAX_THREADS}",
    )
    yield (
        shared_bytes(t) <= MAX_SHARED_BYTES,
        f"ring and results take {shared_bytes(t)} bytes of shared memory; the maximum is {MAX_SHARED_BYTES}",
    )
    for matrix, width in (("A", t.BK), ("B", t.BN)):
        rows = threads * 8 // width
        yield (
            rows % 8 == 0,
            f"the {rows} rows of {matrix} fetched at a time must be a multiple of the swizzle's 8 rows",
        )
    yield from shares_evenly("A", threads, rows=("BM", t.BM), width=("BK", t.BK), at_once=8)
    yield from shares_evenly("B", threads, rows=("BK", t.BK), width=("BN", t.BN), at_once=8)


STAGE = Stage(
    name="mma_ring",
    title="A ring of tiles for Tensor Cores",
    after="mma_swizzled",
    document="beyond the documents",
    tiles={"BM": 128, "BN": 256, "BK": 64, "WM": 64, "WN": 64, "SLOTS": 3, "GROUP": 8},
    options={
        "BM": (64, 128, 256),
        "BN": (64, 128, 256),
        "BK": (32, 64),
        "WM": (64,),
        "WN": (64,),
        "SLOTS": (2, 3, 4),
        "GROUP": (8,),
    },
    requirements=requirements,
    build=build,
    threads=lambda t: (32 * (t.BM // t.WM) * (t.BN // t.WN),),
    blocks=lambda m, n, t: (tiles_over(m, t.BM) * tiles_over(n, t.BN),),
    registers=lambda t: t.WM * t.WN // 32 + (t.WM + t.WN) // 4 + 60,
    dynamic_shared_bytes=shared_bytes,
    alignment=16,
    compute_capability=(8, 0),
    dtype="float16",
)
