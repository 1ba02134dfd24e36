"""A ring of tiles, and loads of fragments beside products: the Tensor Cores seldom stand still.

Beyond the documents. Tiles and fragments are those of mma_swizzled. As in async_copy, copies of the tiles
to come are under way while one is multiplied; dynamic shared memory has room for a ring of large ones. Each
step along k loads its fragments while the Tensor Cores multiply those of the step before, also across the
barrier: the last products of a tile stand behind it, beside the first loads of the next.
"""

from numba import cuda, float32
from numba.types import float16

from gemm_course.intrinsics import (
    carve,
    cp_async16,
    cp_async_commit,
    cp_async_wait,
    kept,
    ldmatrix_x4,
    ldmatrix_x4_trans,
    mma_m16n8k16,
    u32,
    unroll,
)
from gemm_course.kernels.base import (
    MAX_SHARED_BYTES,
    MAX_THREADS,
    Stage,
    fragments_cover_the_tiles,
    shares_evenly,
    sums_fit_registers,
    tiles_over,
)
from gemm_course.kernels.tensor_tiles import grouped, store_pair


def build(BM, BN, BK, WM, WN, STAGES, GROUP):
    """The kernel for blocks of BM by BN elements, WM by WN a warp, a ring of STAGES tiles."""
    THREADS = BM // WM * (BN // WN) * 32
    ROWS, COLUMNS, PRODUCTS = WM // 16, WN // 16, WN // 8  # a fragment of B serves two products side by side
    STEPS = BK // 16
    IN_FLIGHT = STAGES - 2  # tiles still on their way when the next one is needed
    A_PIECES, B_PIECES = BK // 8, BN // 8  # of 16 bytes in a row of a tile
    A_ROWS, B_ROWS = THREADS // A_PIECES, THREADS // B_PIECES  # rows the block fetches at a time
    A_COPIES, B_COPIES = BM // A_ROWS, BK // B_ROWS  # of a thread
    A_TILE, B_TILE = BM * BK, BK * BN
    A_TURN, A_SPAN = max(1, 8 // A_PIECES), min(8, A_PIECES)  # short rows of A change order every second time

    @cuda.jit(device=True)
    def fetch(As, Bs, stage, to_a, to_b, A, B, row, col, k0, m, n, k, tid, part):
        """Start one of the STEPS parts of the copies of the tiles at k0 into one place of the ring."""
        c = k0 + tid % A_PIECES * 8
        valid = max(0, min(k - c, 8)) * 2  # bytes; what lies behind k may be NaN
        for i in unroll(range(A_COPIES)):
            if i % STEPS == part:
                cp_async16(As, (stage, to_a + i * A_ROWS * BK), A, (min(row + i * A_ROWS, m - 1), c), valid)
        for i in unroll(range(B_COPIES)):
            if i % STEPS == part:
                r = u32(k0 + tid // B_PIECES + i * B_ROWS)
                cp_async16(Bs, (stage, to_b + i * B_ROWS * BN), B, (r, col), 16 if r < k else 0)
        if part == STEPS - 1:
            cp_async_commit()

    @cuda.jit(device=True)
    def every_second_piece(row, piece):
        """Where in a tile a row's first, third, fifth and seventh piece are; the first is at `piece`."""
        third, fifth, seventh = piece ^ 2, piece ^ 4, piece ^ 6
        return kept(row + piece * 8), kept(row + third * 8), kept(row + fifth * 8), kept(row + seventh * 8)

    @cuda.jit(device=True)
    def multiply(acc, a, b):
        """acc += a @ b for all fragments of one step along k."""
        for i in unroll(range(ROWS)):
            for j in unroll(range(COLUMNS)):
                mma_m16n8k16(acc[i, 2 * j], a[i], b[j][0:4])
                mma_m16n8k16(acc[i, 2 * j + 1], a[i], b[j][4:8])

    def mma_sync(m, n, k, alpha, A, B, beta, C):
        tiles = cuda.shared.array(0, float16, 128)
        As = carve(tiles, 0, (STAGES, A_TILE))
        Bs = carve(tiles, STAGES * A_TILE, (STAGES, B_TILE))
        a = cuda.local.array((2, ROWS, 8), float16)
        b = cuda.local.array((2, COLUMNS, 8), float16)
        acc = cuda.local.array((ROWS, PRODUCTS, 4), float32)
        for i in unroll(range(ROWS)):
            for j in unroll(range(PRODUCTS)):
                for e in unroll(range(4)):
                    acc[i, j, e] = 0
        for e in unroll(range(8)):  # before the first step there is nothing to multiply
            for i in unroll(range(ROWS)):
                a[1, i, e] = 0
            for j in unroll(range(COLUMNS)):
                b[1, j, e] = 0
        tid = u32(cuda.threadIdx.x)
        warp, lane = tid // 32, tid % 32
        tile_row, tile_col = grouped(u32(cuda.blockIdx.x), (m + BM - 1) // BM, (n + BN - 1) // BN, GROUP)
        row0, col0 = u32(tile_row * BM), u32(tile_col * BN)
        y0, x0 = warp // (BN // WN) * WM, warp % (BN // WN) * WN  # the warp's tile within the block's

        # where this thread's first piece of each tile comes from, and where its place is
        r, piece = tid // A_PIECES, tid % A_PIECES
        row, to_a = row0 + r, kept(r * BK + (piece ^ (r // A_TURN % A_SPAN)) * 8)
        r, piece = tid // B_PIECES, tid % B_PIECES
        col, to_b = min(col0 + piece * 8, (n - 1) // 8 * 8), kept(r * BN + (piece ^ (r % 8)) * 8)
        # where this lane's row is: at each step that of A's first fragment, at the first that of each of B's
        line, half = lane % 16, lane // 16
        a_at = every_second_piece((y0 + line) * BK, half ^ (line // A_TURN % A_SPAN))
        b_at = every_second_piece(line * BN, (x0 // 8 + half) ^ (line % 8))

        for s in unroll(range(STAGES - 1)):
            for part in unroll(range(STEPS)):
                fetch(As, Bs, s, to_a, to_b, A, B, row, col, s * BK, m, n, k, tid, part)
        cp_async_wait(IN_FLIGHT)
        cuda.syncthreads()
        k0, stage = 0, u32(0)
        while k0 < k:
            free = u32((stage + STAGES - 1) % STAGES)  # everybody has read the tile before: its place is free
            for p in unroll(range(STEPS)):
                now, before = p % 2, (p + 1) % 2
                for i in unroll(range(ROWS)):
                    ldmatrix_x4(a[now, i], As, (stage, a_at[p] + i * 16 * BK))
                for j in unroll(range(COLUMNS)):
                    ldmatrix_x4_trans(b[now, j], Bs, (stage, b_at[j] + p * 16 * BN))
                fetch(As, Bs, free, to_a, to_b, A, B, row, col, k0 + (STAGES - 1) * BK, m, n, k, tid, p)
                multiply(acc, a[before], b[before])
            cp_async_wait(IN_FLIGHT)
            cuda.syncthreads()
            stage = u32((stage + 1) % STAGES)
            k0 += BK
        multiply(acc, a[(STEPS - 1) % 2], b[(STEPS - 1) % 2])
        cp_async_wait(0)

        row, col = row0 + y0 + lane // 4, col0 + x0 + lane % 4 * 2
        for i in unroll(range(ROWS)):
            for j in unroll(range(PRODUCTS)):
                for h in unroll(range(2)):
                    first, second = acc[i, j, h * 2], acc[i, j, h * 2 + 1]
                    store_pair(C, row + i * 16 + h * 8, col + j * 8, m, n, alpha, beta, first, second)

    return mma_sync


def ring_bytes(t) -> int:
    """Shared memory of STAGES tiles of A and B."""
    return t.STAGES * (t.BM * t.BK + t.BK * t.BN) * 2


def requirements(t):
    """Fragments cover the tiles, two sets of them take turns, and a ring of at least two tiles fits."""
    threads = 32 * (t.BM // t.WM) * (t.BN // t.WN)
    yield (
        t.STAGES >= 2,
        f"the ring needs a tile to read and one to fill: STAGES must be at least 2, not {t.STAGES}",
    )
    yield from fragments_cover_the_tiles(t, 16, 16)
    yield t.BK % 32 == 0, f"two sets of fragments take turns: BK ({t.BK}) must be a multiple of 32"
    yield t.BN % 64 == 0, f"a swizzle is over 8 pieces of 8 halves: BN ({t.BN}) must be a multiple of 64"
    yield from sums_fit_registers(t.WM * t.WN // 32)
    yield threads >= 1, "the warp's tile is larger than the block's: no warp would be left"
    yield threads <= MAX_THREADS, f"these tiles make blocks of {threads} threads; {MAX_THREADS} is the most"
    yield (
        ring_bytes(t) <= MAX_SHARED_BYTES,
        f"the ring takes {ring_bytes(t)} bytes of shared memory; {MAX_SHARED_BYTES} is the most",
    )
    for matrix, width in (("A", t.BK), ("B", t.BN)):
        rows = threads * 8 // width
        yield (
            rows % 8 == 0,
            f"the swizzle repeats after 8 rows, and {rows} rows of {matrix} are fetched at a time",
        )
    yield from shares_evenly("A", threads, rows=("BM", t.BM), width=("BK", t.BK), at_once=8)
    yield from shares_evenly("B", threads, rows=("BK", t.BK), width=("BN", t.BN), at_once=8)


STAGE = Stage(
    name="mma_sync",
    title="A ring of tiles for Tensor Cores",
    document="beyond the documents",
    tiles={"BM": 128, "BN": 256, "BK": 64, "WM": 64, "WN": 64, "STAGES": 3, "GROUP": 8},
    options={
        "BM": (64, 128, 256),
        "BN": (64, 128, 256),
        "BK": (32, 64),
        "WM": (32, 64),
        "WN": (32, 64),
        "STAGES": (2, 3, 4),
        "GROUP": (1, 8),
    },
    requirements=requirements,
    build=build,
    threads=lambda t: (32 * (t.BM // t.WM) * (t.BN // t.WN),),
    blocks=lambda m, n, t: (tiles_over(m, t.BM) * tiles_over(n, t.BN),),
    registers=lambda t: t.WM * t.WN // 32 + (t.WM + t.WN) // 2 + 60,
    dynamic_shared_bytes=ring_bytes,
    alignment=16,
    compute_capability=(8, 0),
    dtype="float16",
)
