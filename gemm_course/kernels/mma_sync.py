"""A ring of tiles, and fragments loaded during products: the Tensor Cores are seldom idle.

Beyond the documents. Tiles and fragments are those of mma_swizzled. As in async_copy, the next tiles are
copied while one is multiplied; dynamic shared memory has room for a ring of large tiles. Each step along k
loads its fragments while the Tensor Cores multiply those of the step before, also across the barrier: the
last products of a tile come after it, beside the first loads of the next tile.

A multiprocessor has registers for two such warps per scheduler, and every instruction beside the products
delays them. So a copy in the loop takes three: two for its address, and the copy itself. It needs no bounds
check along k, because the tiles that k cuts off come first. Results go to C through shared memory, 16 bytes
per lane.
"""

from numba import cuda, float32
from numba.types import float16

from gemm_course.emulator.limits import MAX_SHARED_BYTES
from gemm_course.intrinsics import (
    carve,
    cp_async16,
    cp_async_commit,
    cp_async_wait,
    kept,
    ldmatrix_x4,
    ldmatrix_x4_trans,
    rest,
    u32,
    unroll,
)
from gemm_course.kernels.base import (
    MAX_THREADS,
    Stage,
    accumulators_fit_registers,
    fragments_cover_the_tiles,
    shares_evenly,
    tiles_over,
)
from gemm_course.kernels.mma_tiles import every_second_piece, products, results, rows_of_results
from gemm_course.kernels.tensor_tiles import grouped


def build(BM, BN, BK, WM, WN, SLOTS, GROUP):
    """The kernel for blocks of BM by BN elements, WM by WN per warp, a ring of SLOTS tiles."""
    THREADS = BM // WM * (BN // WN) * 32
    ROWS, COLUMNS, PRODUCTS = WM // 16, WN // 16, WN // 8  # fragments of A, of B, and products side by side
    STEPS = BK // 16
    IN_FLIGHT = SLOTS - 2  # copies still under way when the next tile is needed
    A_PIECES, B_PIECES = BK // 8, BN // 8  # of 16 bytes in a row of a tile
    A_ROWS, B_ROWS = THREADS // A_PIECES, THREADS // B_PIECES  # rows the block fetches at a time
    A_COPIES, B_COPIES = BM // A_ROWS, BK // B_ROWS  # per thread
    A_TILE, B_TILE = BM * BK, BK * BN
    A_REPEAT, A_SPAN = max(1, 8 // A_PIECES), min(8, A_PIECES)  # short rows: several fill the banks together
    (clear, multiply), finish = products(WM, WN), results(WM, WN)

    @cuda.jit(device=True)
    def fetch_ragged(As, Bs, to_a, to_b, A, B, row, col, k0, own, m, k):
        """Start the copies of the tiles at k0, part of which may be past k, into the ring's first slot."""
        c = k0 + own[0]
        valid = max(0, min(k - c, 8)) * 2  # bytes; past k there may be NaN
        for i in unroll(range(A_COPIES)):
            cp_async16(As, to_a + i * A_ROWS * BK, A, (min(row + i * A_ROWS, m - 1), c), valid)
        for i in unroll(range(B_COPIES)):
            r = k0 + own[1] + i * B_ROWS
            cp_async16(Bs, to_b + i * B_ROWS * BN, B, (r, col), 16 if r < k else 0)
        cp_async_commit()

    @cuda.jit(device=True)
    def fetch(As, Bs, into_a, into_b, A, B, row, col, k0, own, m, size, part):
        """Start one of the STEPS parts of the copies of whole tiles at k0; size: 16, or 0 past the last."""
        for i in unroll(range(A_COPIES)):
            if i % STEPS == part:
                from_a = (min(row + i * A_ROWS, m - 1), k0 + own[0])
                cp_async16(As, into_a + i * A_ROWS * BK, A, from_a, size)
        for i in unroll(range(B_COPIES)):
            if i % STEPS == part:
                cp_async16(Bs, into_b + i * B_ROWS * BN, rest(B, k0 + i * B_ROWS), (own[1], col), size)
        if part == STEPS - 1:
            cp_async_commit()

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
        own = kept(tid % A_PIECES * 8), kept(tid // B_PIECES)  # a column in a tile of A, a row in one of B
        r, piece = tid // A_PIECES, tid % A_PIECES
        row, to_a = row0 + r, kept(r * BK + (piece ^ (r // A_REPEAT % A_SPAN)) * 8)
        r, piece = tid // B_PIECES, tid % B_PIECES
        col, to_b = min(col0 + piece * 8, (n - 1) // 8 * 8), kept(r * BN + (piece ^ (r % 8)) * 8)
        # this lane's row: of A's first fragment at each step, of each of B's fragments at the first step
        line, half = lane % 16, lane // 16
        a_at = every_second_piece((y0 + line) * BK, half ^ (line // A_REPEAT % A_SPAN))
        b_at = every_second_piece(line * BN, (x0 // 8 + half) ^ (line % 8))

        # the tile that k cuts off, if any, comes first: those after it are whole
        whole = u32(k // BK * BK)
        ragged = whole < k
        fetch_ragged(As, Bs, to_a, to_b, A, B, row, col, whole if ragged else u32(0), own, m, k)
        ahead = u32(0) if ragged else u32(BK)  # where the next tiles to fetch start
        for s in unroll(range(1, SLOTS - 1)):
            into_a, into_b, size = to_a + s * A_TILE, to_b + s * B_TILE, 16 if ahead < whole else 0
            for part in unroll(range(STEPS)):
                fetch(As, Bs, into_a, into_b, A, B, row, col, ahead, own, m, size, part)
            ahead = u32(ahead + BK)
        clear(acc, a[1], b[1])  # the first step has nothing to multiply yet
        cp_async_wait(IN_FLIGHT)
        cuda.syncthreads()
        slot, free = u32(0), u32(SLOTS - 1)  # the slots to read and to fill
        while ahead < whole + (SLOTS - 1) * BK:
            A_now, B_now = rest(As, slot * A_TILE), rest(Bs, slot * B_TILE)
            into_a, into_b = kept(free * A_TILE + to_a), kept(free * B_TILE + to_b)
            size = 16 if ahead < whole else 0
            for p in unroll(range(STEPS)):
                now, before = p % 2, (p + 1) % 2
                for i in unroll(range(ROWS)):
                    ldmatrix_x4(a[now, i], A_now, a_at[p] + i * 16 * BK)
                for j in unroll(range(COLUMNS)):
                    ldmatrix_x4_trans(b[now, j], B_now, b_at[j] + p * 16 * BN)
                fetch(As, Bs, into_a, into_b, A, B, row, col, ahead, own, m, size, p)
                multiply(acc, a[before], b[before])
            cp_async_wait(IN_FLIGHT)
            cuda.syncthreads()
            after = u32(slot + 1)
            free, slot = slot, u32(0) if after == SLOTS else after  # everybody has read the freed slot
            ahead = u32(ahead + BK)
        multiply(acc, a[(STEPS - 1) % 2], b[(STEPS - 1) % 2])
        cp_async_wait(0)

        finish(acc, alpha, beta, Cs, warp, lane, C, u32(row0 + y0), u32(col0 + x0), m, n)

    return mma_sync


def shared_bytes(t) -> int:
    """Shared memory of SLOTS tiles of A and B, and of 16 rows of each warp's results."""
    return 2 * (t.SLOTS * (t.BM + t.BN) * t.BK + t.BM // t.WM * t.BN * 16)


def requirements(t):
    """Fragments cover the tiles, two sets of them alternate, and a ring of at least two slots fits."""
    threads = 32 * (t.BM // t.WM) * (t.BN // t.WN)
    yield (
        t.SLOTS >= 2,
        f"one slot is read while another is filled: SLOTS must be at least 2, not {t.SLOTS}",
    )
    yield from fragments_cover_the_tiles(t, 16, 16)
    yield t.BK in (32, 64), f"two sets of fragments alternate, twice at most: BK ({t.BK}) must be 32 or 64"
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
    name="mma_sync",
    title="A ring of tiles for Tensor Cores",
    after="mma_swizzled",
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
