"""Warp specialization: a producer loads tiles by TMA, consumers only multiply.

Beyond the documents; Hopper. In mma_sync a fifth of the loop's instructions are there for copies; without any
copies the kernel would take a tenth less time. Here one thread of an extra warpgroup, the *producer*,
requests whole tiles from TMA, as far ahead as the ring allows. The other warps, the *consumers*, load
fragments and multiply them.

No barrier stops the whole block any more. Two mbarriers per slot synchronize producer and consumers:
full[slot], which the copies complete, and empty[slot], at which every consumer warp arrives when it has read
the slot. The producer needs hardly any registers, the consumers many: setmaxnreg moves them.

TMA's swizzle permutes the 16-byte pieces within rows of at most 128 bytes, so the tiles of B are panels of 64
columns side by side.

`steps` counts tiles along k, BK deep each; a tile is multiplied in STEPS parts of 16.
"""

from numba import cuda, float32, uint64
from numba.types import float16

from gemm_course.kernels.parts.base import Stage, fragments_cover_the_tiles, tiles_over
from gemm_course.kernels.parts.mma_tiles import every_second_piece, products, results, rows_of_results
from gemm_course.kernels.parts.tensor_tiles import (
    CONSUMER_REGISTERS,
    PANEL,
    PRODUCER_REGISTERS,
    fits_shared,
    grouped,
    maps,
    next_slot,
    registers_of_consumers,
    ring_bytes,
)
from lockstep.intrinsics import (
    carve,
    fence_async,
    ldmatrix_x4,
    ldmatrix_x4_trans,
    mbarrier_arrive,
    mbarrier_expect,
    mbarrier_init,
    mbarrier_wait,
    registers_down,
    registers_up,
    rest,
    tma_acquire,
    tma_load,
    u32,
    unroll,
)


def build(BM, BN, BK, WM, WN, SLOTS, GROUP):
    """The kernel for blocks of BM by BN elements, WM by WN per consumer warp, a ring of SLOTS tiles."""
    WARPS = BM // WM * (BN // WN)  # of the consumers
    ROWS, COLUMNS, PRODUCTS = WM // 16, WN // 16, WN // 8  # fragments of A, of B, and products side by side
    STEPS, PANELS = BK // 16, BN // PANEL
    A_TILE, B_TILE = BM * BK, BK * BN
    A_REPEAT, A_SPAN = 64 // BK, BK // 8  # short rows: several fill the banks together
    MANY, FEW = CONSUMER_REGISTERS[WARPS // 4], PRODUCER_REGISTERS
    (clear, multiply), finish = products(WM, WN), results(WM, WN)

    @cuda.jit(device=True)
    def produce(As, Bs, full, empty, A, B, row0, col0, steps):
        """Fetch tile after tile, each as soon as its slot is empty.

        The first time through the ring the wait returns at once: on a new barrier the phase before the first,
        of parity 1, counts as completed.
        """
        slot, parity = u32(0), u32(0)
        for step in range(steps):
            mbarrier_wait(empty, slot, parity ^ 1)
            mbarrier_expect(full, slot, (A_TILE + B_TILE) * 2)
            tma_load(As, slot * A_TILE, A, (row0, step * BK), full, slot)
            for j in unroll(range(PANELS)):
                tma_load(Bs, slot * B_TILE + j * BK * PANEL, B, (step * BK, col0 + j * PANEL), full, slot)
            slot, parity = next_slot(slot, parity, SLOTS)

    def mma_tma(m, n, k, alpha, A, B, beta, C):
        full = cuda.shared.array(SLOTS, uint64)
        empty = cuda.shared.array(SLOTS, uint64)
        tiles = cuda.shared.array(0, float16, 1024)
        As = carve(tiles, 0, (SLOTS * A_TILE,))
        Bs = carve(tiles, SLOTS * A_TILE, (SLOTS * B_TILE,))
        Cs = carve(tiles, SLOTS * (A_TILE + B_TILE), (WARPS, 16, WN))
        a = cuda.local.array((2, ROWS, 8), float16)
        b = cuda.local.array((2, COLUMNS, 8), float16)
        acc = cuda.local.array((ROWS, PRODUCTS, 4), float32)
        tid = u32(cuda.threadIdx.x)
        warp, lane = tid // 32, tid % 32
        tile_row, tile_col = grouped(u32(cuda.blockIdx.x), (m + BM - 1) // BM, (n + BN - 1) // BN, GROUP)
        row0, col0 = u32(tile_row * BM), u32(tile_col * BN)
        steps = u32((k + BK - 1) // BK)
        if tid == 0:
            for s in unroll(range(SLOTS)):
                mbarrier_init(full, s, 1)
                mbarrier_init(empty, s, WARPS)
            fence_async()
        cuda.syncthreads()

        if warp >= WARPS:
            registers_down(FEW)
            if tid == WARPS * 32:
                tma_acquire(A)
                tma_acquire(B)
                produce(As, Bs, full, empty, A, B, row0, col0, steps)
            return
        registers_up(MANY)
        clear(acc, a[1], b[1])  # the first step has nothing to multiply yet
        y0, x0 = warp // (BN // WN) * WM, warp % (BN // WN) * WN  # the warp's tile within the block's
        # this lane's row: of A's first fragment at each step, of each of B's fragments at the first step
        line, half = lane % 16, lane // 16
        a_at = every_second_piece((y0 + line) * BK, half ^ (line // A_REPEAT % A_SPAN))
        in_panel = (x0 % PANEL // 8 + half) ^ (line % 8)
        b_at = every_second_piece((x0 // PANEL * BK + line) * PANEL, in_panel)
        slot, parity, before, step = u32(0), u32(0), u32(0), u32(0)
        while step < steps:
            mbarrier_wait(full, slot, parity)
            A_now, B_now = rest(As, slot * A_TILE), rest(Bs, slot * B_TILE)
            for p in unroll(range(STEPS)):
                now, last = p % 2, (p + 1) % 2
                for i in unroll(range(ROWS)):
                    ldmatrix_x4(a[now, i], A_now, a_at[p] + i * 16 * BK)
                for j in unroll(range(COLUMNS)):
                    ldmatrix_x4_trans(b[now, j], B_now, b_at[j] + p * 16 * PANEL)
                multiply(acc, a[last], b[last])
                # the step before has multiplied all its fragments; ldmatrix and mma run for the whole warp at
                # once, so lane 0 may arrive for all lanes
                if p == 0 and step > 0 and lane == 0:
                    mbarrier_arrive(empty, before)
            before, step = slot, u32(step + 1)
            slot, parity = next_slot(slot, parity, SLOTS)
        multiply(acc, a[(STEPS - 1) % 2], b[(STEPS - 1) % 2])
        finish(acc, alpha, beta, Cs, warp, lane, C, u32(row0 + y0), u32(col0 + x0), m, n)

    return mma_tma


def shared_bytes(t) -> int:
    """Shared memory of SLOTS tiles of A and B, and of 16 rows of each warp's results."""
    return ring_bytes(t) + 2 * (t.BM // t.WM * t.BN * 16)


def requirements(t):
    """Fragments cover the tiles, TMA can fetch them, and two or three warpgroups multiply."""
    yield from fragments_cover_the_tiles(t, 16, 16)
    yield t.BM <= 256, f"a TMA box has at most 256 rows: BM ({t.BM}) must not be larger"
    yield t.BK in (32, 64), f"two sets of fragments alternate, twice at most: BK ({t.BK}) must be 32 or 64"
    yield t.BN % PANEL == 0, f"panels of B have {PANEL} columns: BN ({t.BN}) must be a multiple of that"
    yield from rows_of_results(t)
    yield t.SLOTS >= 2, f"one slot is read while another is filled: SLOTS must be at least 2, not {t.SLOTS}"
    warps = t.BM // t.WM * (t.BN // t.WN)
    yield (
        warps in (8, 12),
        f"registers are moved between warpgroups, and two or three multiply: 8 or 12 warps, not {warps}",
    )
    most = registers_of_consumers(warps // 4)
    needed = t.WM * t.WN // 32 + (t.WM + t.WN) // 2 + 32
    yield (
        needed <= most,
        f"accumulators and fragments take {needed} registers per lane; there are {most}",
    )
    yield from fits_shared(shared_bytes(t))


STAGE = Stage(
    name="mma_tma",
    title="Warp specialization with mma.sync",
    after="mma_sync",
    document="beyond the documents",
    tiles={"BM": 128, "BN": 256, "BK": 64, "WM": 64, "WN": 64, "SLOTS": 3, "GROUP": 8},
    options={
        "BM": (64, 128, 192, 256),
        "BN": (64, 128, 192, 256),
        "BK": (32, 64),
        "WM": (32, 64),
        "WN": (32, 64),
        "SLOTS": (2, 3, 4),
        "GROUP": (1, 8, 16),
    },
    requirements=requirements,
    build=build,
    threads=lambda t: (32 * (t.BM // t.WM) * (t.BN // t.WN) + 128,),
    blocks=lambda m, n, t: (tiles_over(m, t.BM) * tiles_over(n, t.BN),),
    dynamic_shared_bytes=shared_bytes,
    alignment=16,
    compute_capability=(9, 0),
    dtype="float16",
    takes=maps,
)
