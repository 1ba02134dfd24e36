"""Stream-K for Hopper: full waves by overlapped_store, the tiles that are left shared out along k.

Beyond the documents; Hopper. What stream_k does for FP32, with wgmma: overlapped_store computes as many
tiles as fill whole waves. The steps along k of all tiles that are left, laid end to end, are cut into one
range per block, in a second launch. Where a range begins or ends within a tile, each warp writes its
accumulators to a workspace and adds its number of steps to the count of this tile and warp, to which the same
warp of every block adds. The one that completes the count adds up all parts, in the order of k, and stores.
No warp waits for another, and the result is bit for bit the same in every run with the same number of blocks.

Few tiles left means many parts per tile, and a warp that adds up many parts takes long. So the tiles that are
left are cut into CUT narrower ones.

`suits` chooses the width BN and CUT for each shape: those with the least time, computed from measured times
per step. Narrow tiles fill more multiprocessors, wide ones fetch less.
"""

from types import SimpleNamespace

import numpy as np
from numba import cuda, float32, int64, uint64
from numba.types import float16

from gemm_course.kernels import c06_overlapped_store as overlapped_store
from gemm_course.kernels.parts.base import KernelLaunch, Stage, tiles_over
from gemm_course.kernels.parts.partial_tiles import block_of, blocks_for, partial_sums
from gemm_course.kernels.parts.tensor_tiles import (
    CONSUMER_REGISTERS,
    PANEL,
    PRODUCER_REGISTERS,
    fits_shared,
    grouped,
    maps,
    next_slot,
    old,
    store_edge,
    warpgroup_of,
)
from lockstep.intrinsics import (
    carve,
    fence_async,
    mbarrier_arrive,
    mbarrier_expect,
    mbarrier_init,
    mbarrier_wait,
    registers_down,
    registers_up,
    rolled,
    stmatrix_x4,
    store2,
    tensor_map,
    tma_acquire,
    tma_commit,
    tma_load,
    tma_store,
    tma_wait_read,
    u32,
    unroll,
    wgmma,
    wgmma_commit,
    wgmma_fence,
    wgmma_wait,
)

ALL_LANES = 0xFFFFFFFF
ROWS = 16  # of results that a warp stores at a time

# Measured on an H200, in units of a step of 128 by 256 by 64 (NOTES.md has the figures):
STEP = {64: 0.44, 128: 0.54, 192: 0.755, 256: 1.0}  # a step of 128 rows by so many columns
SHARING = 30  # writing, counting and adding up parts, in a launch of its own
ADDING = 1.4  # each part of 128 by 256 that one block adds up
FULLEST = 0.6  # of a wave; sharing a fuller one did not pay
CHOICES = (
    {"BN": 256, "SLOTS": 4, "PARTS": 4},
    {"BN": 192, "SLOTS": 4, "PARTS": 3},
    {"BN": 128, "SLOTS": 6, "PARTS": 2},
    {"BN": 64, "SLOTS": 8, "PARTS": 1},
)


def build(BM, BN, BK, WM, SLOTS, GROUP, PARTS, CUT, BLOCKS):
    """The kernel for tiles of BM by BN / CUT; BLOCKS sizes the workspace, PARTS is overlapped_store's."""
    WIDTH, RING = BN // CUT, ring(BM, BN, SLOTS, CUT)  # RING: this kernel's slots
    SLOT_BYTES = (BM * BK + BK * WIDTH) * 2
    HEIGHT, ACCS, PANELS = WM // 64, WIDTH // 2, WIDTH // PANEL
    CONSUMERS = BM // WM
    THREADS, WARPS = 128 * CONSUMERS, 4 * CONSUMERS  # that multiply
    write, add = partial_sums(HEIGHT, ACCS, THREADS)
    MANY, FEW = CONSUMER_REGISTERS[CONSUMERS], PRODUCER_REGISTERS

    @cuda.jit(device=True)
    def place_of(tile, first_tile, m, n):
        """First row and column of a narrow tile; tile 0 is in the wide one called first_tile."""
        tile_rows, tile_cols = u32((m + BM - 1) // BM), u32((n + BN - 1) // BN)
        row, col = grouped(u32(first_tile + tile // CUT), tile_rows, tile_cols, GROUP)
        return u32(row * BM), u32(col * BN + tile % CUT * WIDTH)

    @cuda.jit(device=True)
    def produce(As, Bs, full, empty, A, B, m, n, first_tile, per_tile, at, stop):
        """Fetch the operands of steps at to stop, each as soon as its slot is empty."""
        slot, parity = u32(0), u32(0)
        while at < stop:
            tile, first = at // per_tile, at % per_tile
            last = min(per_tile, first + stop - at)
            row0, col0 = place_of(tile, first_tile, m, n)
            for step in rolled(range(first, last)):
                mbarrier_wait(empty, slot, parity ^ 1)
                mbarrier_expect(full, slot, SLOT_BYTES)
                tma_load(As, (slot, 0, 0), A, (row0, step * BK), full, slot)
                for j in unroll(range(PANELS)):
                    tma_load(Bs, (slot, j, 0, 0), B, (step * BK, col0 + j * PANEL), full, slot)
                slot, parity = next_slot(slot, parity, RING)
            at += last - first

    @cuda.jit(device=True)
    def store_rows(Cs, warp, lane, acc, alpha, beta, results, C, row0, col0, m, n):
        """C = alpha * acc + beta * C for the warp's 16 rows of each 64, by TMA, 64 columns at a time.

        Each warp completes tiles by itself, so it cannot leave them to a warp that stores for all.
        """
        rounded = cuda.local.array(32, float16)
        whole = n // 8 * 8  # TMA stores 16 bytes or nothing
        if lane == 0:
            tma_wait_read(0)  # the tile before has been read
        for q in unroll(range(HEIGHT * PANELS)):
            i, j = q // PANELS, q % PANELS
            row, col = u32(row0 + i * 64), u32(col0 + j * PANEL)
            for e in unroll(range(0, 32, 2)):
                first, second = alpha * acc[i, j * 32 + e], alpha * acc[i, j * 32 + e + 1]
                if beta != 0:
                    y, x = u32(row + lane // 4 + e // 2 % 2 * 8), u32(col + e // 4 * 8 + lane % 4 * 2)
                    first += beta * old(C, y, x, m, n)
                    second += beta * old(C, y, u32(x + 1), m, n)
                store2(rounded, e, (first, second))
            if lane == 0:
                tma_wait_read(1)  # at most the piece before, in the other buffer, is still being read
            cuda.syncwarp()
            for x in unroll(range(0, 8, 2)):
                z = (x + lane // 16 ^ lane % 8) * 8
                stmatrix_x4(Cs, (warp, q % 2, lane % 16, z), rounded, x * 4)
            fence_async()
            cuda.syncwarp()
            if lane == 0:
                if col < whole:
                    tma_store(results, (row, col), Cs, (warp, q % 2, 0, 0))
                tma_commit()  # a group per piece, even an empty one: tma_wait_read counts them
            if whole < n and col <= whole and whole < col + PANEL:
                store_edge(C, row, m, n, Cs, warp, q % 2, ROWS, u32((whole - col) // 8), lane)

    def stream_k_fp16(m, n, k, alpha, A, B, beta, C, results, partials, steps_done, first_tile):
        full = cuda.shared.array(RING, uint64)
        empty = cuda.shared.array(RING, uint64)
        tiles = cuda.shared.array(0, float16, 1024)
        As = carve(tiles, 0, (RING, BM, BK))
        Bs = carve(tiles, RING * BM * BK, (RING, PANELS, BK, PANEL))
        Cs = carve(tiles, RING * (BM + WIDTH) * BK, (WARPS, 2, ROWS, PANEL))
        acc = cuda.local.array((HEIGHT, ACCS), float32)
        tid = u32(cuda.threadIdx.x)
        if tid == 0:
            for s in unroll(range(RING)):
                mbarrier_init(full, s, 1)
                mbarrier_init(empty, s, 4 * CONSUMERS)
            fence_async()
        cuda.syncthreads()

        per_tile = max((k + BK - 1) // BK, 1)
        wide = (m + BM - 1) // BM * ((n + BN - 1) // BN)
        steps = (wide - first_tile) * CUT * per_tile  # of all tiles from the first on
        # None of these blocks has an empty range. Any more blocks have nothing to do: they begin at the end.
        blocks = min(cuda.gridDim.x, steps)
        at = steps * cuda.blockIdx.x // blocks
        stop = min(steps * (cuda.blockIdx.x + 1) // blocks, steps)
        if tid < 128:
            registers_down(FEW)
            if tid == 0:
                tma_acquire(A)
                tma_acquire(B)
                produce(As, Bs, full, empty, A, B, m, n, first_tile, per_tile, at, stop)
        else:
            registers_up(MANY)
            w, warp, lane = warpgroup_of(tid) - 1, tid // 32 - 4, tid % 32  # warp: among the consumers'
            if lane == 0:
                tma_acquire(results)
            slot, parity, before = u32(0), u32(0), u32(0)
            while at < stop:
                tile, first = at // per_tile, at % per_tile
                last = min(per_tile, first + stop - at)  # this part: steps first to last - 1 of the tile
                for i in unroll(range(HEIGHT)):
                    for e in unroll(range(ACCS)):
                        acc[i, e] = 0
                for step in rolled(range(first, last)):
                    mbarrier_wait(full, slot, parity)
                    wgmma_fence()
                    for p in unroll(range(0, BK, 16)):
                        for i in unroll(range(HEIGHT)):
                            wgmma(WIDTH, acc[i], As, (slot, w * WM + i * 64, p), Bs, (slot, 0, p, 0))
                    wgmma_commit()
                    wgmma_wait(1)
                    if step > first and lane == 0:
                        mbarrier_arrive(empty, before)
                    before = slot
                    slot, parity = next_slot(slot, parity, RING)
                wgmma_wait(0)
                if lane == 0:
                    mbarrier_arrive(empty, before)  # the producer may fetch for the next part

                complete = last - first == per_tile  # or, this warp is the last to arrive
                if not complete:
                    # Block b has two places: 2 b for a part that begins a tile, 2 b + 1 for any other.
                    write(partials, cuda.blockIdx.x * 2 + (first > 0), acc, tid - 128)
                    cuda.syncwarp()  # what the lanes wrote comes before lane 0's fence
                    count = int64(0)
                    if lane == 0:
                        cuda.threadfence()  # the warp's part is there before it is counted
                        count = cuda.atomic.add(steps_done, (tile, warp), last - first) + last - first
                        cuda.threadfence()  # those that were counted before are there
                    cuda.syncwarp()
                    complete = cuda.shfl_sync(ALL_LANES, count, 0) == per_tile
                    if complete:
                        if lane == 0:
                            steps_done[tile, warp] = 0  # for the next launch
                        for i in unroll(range(HEIGHT)):
                            for e in unroll(range(ACCS)):
                                acc[i, e] = 0
                        block = block_of(tile * per_tile, steps, blocks)
                        last_block = block_of((tile + 1) * per_tile - 1, steps, blocks)
                        add(partials, block * 2, acc, tid - 128)
                        while block < last_block:
                            block += 1
                            add(partials, block * 2 + 1, acc, tid - 128)
                if complete:
                    row0, col0 = place_of(tile, first_tile, m, n)
                    row0 = u32(row0 + w * WM + warp % 4 * 16)
                    store_rows(Cs, warp, lane, acc, alpha, beta, results, C, row0, col0, u32(m), u32(n))
                at += last - first

            if lane == 0:
                tma_wait_read(0)  # shared memory must last as long as TMA reads it

    return stream_k_fp16


def ring(BM, BN, SLOTS, CUT) -> int:
    """Slots of this kernel's ring: as many as fit into the memory of overlapped_store's, at most 8."""
    return min(8, SLOTS * (BM + BN) // (BM + BN // CUT))


def shared_bytes(t) -> int:
    """Shared memory of the ring, and of two pieces of 16 by 64 results per warp."""
    slots, warps = ring(t.BM, t.BN, t.SLOTS, t.CUT), t.BM // t.WM * 4
    return slots * (t.BM + t.BN // t.CUT) * t.BK * 2 + warps * 2 * ROWS * PANEL * 2


def requirements(t):
    """The rules of overlapped_store, and tiles that can be cut."""
    yield from overlapped_store.requirements(t)
    yield (
        t.BN % (t.CUT * PANEL) == 0,
        f"BN ({t.BN}) must be a multiple of CUT * {PANEL} ({t.CUT * PANEL}): narrower tiles of whole panels",
    )
    if t.BN % t.CUT == 0:
        yield from fits_shared(shared_bytes(t))


def tiles_of(t, m, n) -> int:
    """How many tiles C has, before any are cut."""
    return tiles_over(m, t.BM) * tiles_over(n, t.BN)


def steps_in_waves(t, m, n, k) -> float:
    """How long overlapped_store alone takes, in steps of 128 by 256."""
    steps = max(tiles_over(k, t.BK), 2 * t.PARTS - 1)
    return tiles_over(tiles_of(t, m, n), t.BLOCKS) * steps * _step(t.BM, t.BN)


def steps_if_shared(t, m, n, k) -> float:
    """How long it takes if the tiles that do not fill a wave are shared out, in the same unit."""
    steps, tiles = tiles_over(k, t.BK), tiles_of(t, m, n)
    left, width = tiles % t.BLOCKS, t.BN // t.CUT
    if left == 0 or left > FULLEST * t.BLOCKS:
        return float("inf")
    whole = tiles // t.BLOCKS * max(steps, 2 * t.PARTS - 1) * _step(t.BM, t.BN)
    blocks = blocks_for(left * t.CUT, steps, t.BLOCKS)
    parts = max(1, blocks / (left * t.CUT))  # of a tile
    added = parts * ADDING * t.BM * width / (128 * 256)
    return whole + SHARING + left * t.CUT / blocks * steps * _step(t.BM, width) + added


def _step(rows: int, columns: int) -> float:
    return rows / 128 * STEP[columns]


def suits(m, n, k, t) -> dict[str, int]:
    """The tiles with which a product of this shape takes the fewest steps, shared out or not."""

    def steps(change) -> float:
        chosen = SimpleNamespace(**{**vars(t), **change})
        return min(steps_in_waves(chosen, m, n, k), steps_if_shared(chosen, m, n, k))

    cuts = [{**choice, "CUT": cut} for choice in CHOICES for cut in range(1, choice["BN"] // PANEL + 1)]
    return min((cut for cut in cuts if cut["BN"] % (cut["CUT"] * PANEL) == 0), key=steps)


def workspace(t, m, n, C) -> tuple:
    """(partials, steps_done): two places per block for a part of a tile, and the steps counted.

    partials: float32, (2 BLOCKS, BM * BN / CUT). steps_done: int64, (tiles, warps), zeros, as each launch
    leaves them. Both are where C is. Launches that may run at the same time need one each.
    """
    partials = (2 * t.BLOCKS, t.BM * t.BN // t.CUT)
    steps_done = np.zeros((max(1, tiles_of(t, m, n) * t.CUT), t.BM // t.WM * 4), np.int64)
    if isinstance(C, np.ndarray):
        return np.empty(partials, np.float32), steps_done
    return cuda.device_array(partials, np.float32), cuda.to_device(steps_done)


def arguments(t, *standard, first_tile: int = 0) -> tuple:
    """The kernel's arguments: maps of A, B and C, a workspace, and the first tile that it computes."""
    m, n, *_, C = standard
    results = tensor_map(C, (m, n // 8 * 8), (ROWS, PANEL))
    return *maps(t, *standard), results, *workspace(t, m, n, C), np.int64(first_tile)


def shares(t, *standard) -> tuple[KernelLaunch, ...]:
    """Full waves by overlapped_store; the last wave's tiles are shared out where that takes fewer steps."""
    m, n, k = standard[:3]
    tiles = whole = tiles_of(t, m, n)
    if steps_if_shared(t, m, n, k) < steps_in_waves(t, m, n, k):
        whole -= tiles % t.BLOCKS
    sizes, block, launches = vars(t), (threads(t),), []
    if whole:
        kernel = overlapped_store.STAGE.kernel({name: sizes[name] for name in overlapped_store.STAGE.tiles})
        here = overlapped_store.arguments(t, *standard, tiles_here=whole)
        launches.append(
            KernelLaunch(kernel, (min(whole, t.BLOCKS),), block, overlapped_store.shared_bytes(t), here)
        )
    if whole < tiles:
        rest = arguments(t, *standard, first_tile=whole)
        blocks = blocks_for((tiles - whole) * t.CUT, tiles_over(k, t.BK), t.BLOCKS)
        launches.append(KernelLaunch(STAGE.kernel(sizes), (blocks,), block, shared_bytes(t), rest))
    return tuple(launches)


def threads(t) -> int:
    """Of a block, as in overlapped_store."""
    return 128 * (t.BM // t.WM + 1)


STAGE = Stage(
    name="stream_k_fp16",
    title="Stream-K, and tiles that suit the shape",
    after="overlapped_store",
    document="beyond the documents",
    tiles={**overlapped_store.STAGE.tiles, "CUT": 1},
    options={
        "BN": (64, 128, 192, 256),
        "SLOTS": (4, 6, 8),
        "PARTS": (1, 2, 3, 4),
        "CUT": (1, 2, 3, 4),
    },
    requirements=requirements,
    build=build,
    threads=lambda t: (threads(t),),
    blocks=lambda m, n, t: (t.BLOCKS if m and n else 0,),
    dynamic_shared_bytes=shared_bytes,
    alignment=16,
    compute_capability=(9, 0),
    dtype="float16",
    takes=arguments,
    shares=shares,
    suits=suits,
)
