"""Stream-K: the steps along k are shared out evenly, not the tiles.

Beyond the documents. The blocks that run at one time are a wave, and whole tiles leave multiprocessors idle
in the last one: with one block on each of 132, 288 tiles need three waves, like 396. Here the steps of all
tiles, each BK along k, are laid end to end and cut into one range per block, whose lengths differ by at most
one step. A block computes its range, tile by tile. Where the range begins or ends within a tile, the block
writes its partial sums to a workspace, and then adds the number of steps that it has done to the tile's
count. The block that completes the count adds up all parts and stores the tile. No block waits for another,
so they may run in any order. The parts are added in the order of k, so the result is bit for bit the same in
every run with the same number of blocks.

The loop over parts is slower than grouped_blocks (NOTES.md has what was tried). So `shares` leaves the full
waves to grouped_blocks, and shares out only the last one's tiles in a second launch, unless it is nearly full
or k is short. `suits` takes tall tiles where C is narrow.

The idea is from Osama et al., "Stream-K: Work-centric Parallel Decomposition for Dense Matrix-Matrix
Multiplication on the GPU" (2023).
"""

from types import SimpleNamespace

import numpy as np
from numba import cuda, float32, int64

from gemm_course.kernels import a14_grouped_blocks as grouped_blocks
from gemm_course.kernels.a12_async_copy import fetcher
from gemm_course.kernels.a13_read_ahead import requirements
from gemm_course.kernels.parts.base import KernelLaunch, Stage, tiles_over
from gemm_course.kernels.parts.partial_tiles import block_of, blocks_for, partial_sums
from gemm_course.kernels.parts.results import store_four
from gemm_course.kernels.parts.tensor_tiles import grouped
from lockstep.intrinsics import cp_async_wait, load4, u32, unroll

SLOWER = 0.08  # by this fraction a step of this loop takes longer than one of grouped_blocks', on an H200
TALL = 1.05  # a step with tiles of 256 by 128 takes so many times as long as with 128 by 256
ADDING_UP = 20  # writing, counting and adding up parts takes as long as so many steps


def build(BM, BN, BK, WM, WN, TM, TN, SLOTS, GROUP, PAD, BLOCKS):
    """grouped_blocks with a loop over parts of tiles; BLOCKS, the most blocks, sizes the workspace."""
    THREADS = BM // WM * (BN // WN) * 32
    LANE_ROWS, LANE_COLS = WM // TM, WN // TN  # the warp's threads as a grid
    A_WIDTH = BM + PAD
    IN_FLIGHT = SLOTS - 2  # copies still under way when the next tile is needed
    fetch, (write, add) = fetcher(BM, BN, BK, THREADS), partial_sums(TM, TN, THREADS)

    def stream_k(m, n, k, alpha, A, B, beta, C, partials, steps_done, first_tile):
        As = cuda.shared.array((SLOTS, BK, A_WIDTH), float32, 16)
        Bs = cuda.shared.array((SLOTS, BK, BN), float32, 16)
        count = cuda.shared.array(1, int64)
        a = cuda.local.array((2, TM), float32)
        b = cuda.local.array((2, TN), float32)
        acc = cuda.local.array((TM, TN), float32)
        tid = u32(cuda.threadIdx.x)
        warp, lane = tid // 32, tid % 32
        lane_row = lane // LANE_COLS
        lane_col = lane % LANE_COLS
        y0 = warp // (BN // WN) * WM + lane_row * 4  # this thread's first element within the tile
        x0 = warp % (BN // WN) * WN + lane_col * 4

        tile_rows, tile_cols = (m + BM - 1) // BM, (n + BN - 1) // BN
        per_tile = max((k + BK - 1) // BK, 1)
        steps = (tile_rows * tile_cols - first_tile) * per_tile  # of all tiles from the first on
        # None of these blocks has an empty range. Any more blocks have nothing to do: they begin at the end.
        blocks = min(cuda.gridDim.x, steps)
        at = steps * cuda.blockIdx.x // blocks
        stop = min(steps * (cuda.blockIdx.x + 1) // blocks, steps)
        while at < stop:
            tile, first = at // per_tile, at % per_tile  # counted from first_tile on
            last = min(per_tile, first + stop - at)  # this part: steps first to last - 1 of the tile
            tile_row, tile_col = grouped(u32(first_tile + tile), tile_rows, tile_cols, GROUP)
            row0, col0 = tile_row * BM, tile_col * BN
            end = last * BK  # the copies read nothing beyond
            for i in unroll(range(TM)):
                for j in unroll(range(TN)):
                    acc[i, j] = 0
            for s in unroll(range(SLOTS - 1)):
                fetch(As, Bs, s, A, B, row0, col0, (first + s) * BK, m, n, min(k, end), tid)
            cp_async_wait(IN_FLIGHT)
            cuda.syncthreads()
            for i in unroll(range(0, TM, 4)):
                a[0, i], a[0, i + 1], a[0, i + 2], a[0, i + 3] = load4(As, (0, 0, y0 + i * LANE_ROWS))
            for j in unroll(range(0, TN, 4)):
                b[0, j], b[0, j + 1], b[0, j + 2], b[0, j + 3] = load4(Bs, (0, 0, x0 + j * LANE_COLS))
            k0, slot = first * BK, u32(0)
            while k0 < end:
                for p in unroll(range(BK)):
                    now, then = p % 2, (p + 1) % 2
                    if p == 0:  # everybody has read the tile multiplied last: its slot is free
                        free = u32(slot ^ 1) if SLOTS == 2 else u32((slot + SLOTS - 1) % SLOTS)
                        fetch(As, Bs, free, A, B, row0, col0, k0 + (SLOTS - 1) * BK, m, n, min(k, end), tid)
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
            cp_async_wait(0)
            cuda.syncthreads()  # the ring is free for the next part

            complete = last - first == per_tile  # the whole tile; or else, this block is the last to arrive
            if not complete:
                # Block b has two places: 2 b for a part that begins a tile, which only its last can be, and
                # 2 b + 1 for one that does not, which only its first can be.
                write(partials, cuda.blockIdx.x * 2 + (first > 0), acc, tid)
                cuda.threadfence()  # the part is there before its steps are counted
                cuda.syncthreads()
                if tid == 0:
                    count[0] = cuda.atomic.add(steps_done, tile, last - first) + last - first
                cuda.syncthreads()
                complete = count[0] == per_tile
                if complete:
                    cuda.threadfence()
                    if tid == 0:
                        steps_done[tile] = 0  # for the next launch
                    # Its own part is read back as well: the order of adding does not depend on who is last.
                    for i in unroll(range(TM)):
                        for j in unroll(range(TN)):
                            acc[i, j] = 0
                    block = block_of(tile * per_tile, steps, blocks)
                    last_block = block_of((tile + 1) * per_tile - 1, steps, blocks)
                    add(partials, block * 2, acc, tid)
                    while block < last_block:
                        block += 1
                        add(partials, block * 2 + 1, acc, tid)
            if complete:
                for i in unroll(range(TM)):
                    row = row0 + y0 + i // 4 * (4 * LANE_ROWS) + i % 4
                    for j in unroll(range(0, TN, 4)):
                        col = col0 + x0 + j * LANE_COLS
                        four = (acc[i, j], acc[i, j + 1], acc[i, j + 2], acc[i, j + 3])
                        store_four(C, row, col, m, n, alpha, beta, four)
            at += last - first

    return stream_k


def workspace(t, m, n, C) -> tuple:
    """(partials, steps_done): two places per block for a part of a tile, and the steps counted per tile.

    partials: float32, (2 BLOCKS, BM * BN). steps_done: int64, zeros, as each launch leaves them. Both are
    where C is. Launches that may run at the same time need one each.
    """
    partials = (2 * t.BLOCKS, t.BM * t.BN)
    steps_done = np.zeros(max(1, tiles_of(t, m, n)), np.int64)
    if isinstance(C, np.ndarray):
        return np.empty(partials, np.float32), steps_done
    return cuda.device_array(partials, np.float32), cuda.to_device(steps_done)


def arguments(t, *standard, first_tile: int = 0) -> tuple:
    """The kernel's arguments: a workspace, and the first tile; those before it another launch computes."""
    m, n, *_, C = standard
    return (*standard, *workspace(t, m, n, C), first_tile)


def tiles_of(t, m, n) -> int:
    """How many tiles C has."""
    return tiles_over(m, t.BM) * tiles_over(n, t.BN)


def last_wave_if_shared(t, m, n, k) -> float:
    """How many of grouped_blocks' steps the last wave takes when its tiles are shared out."""
    left, steps = tiles_of(t, m, n) % t.BLOCKS, tiles_over(k, t.BK)
    if not left:
        return 0
    return (1 + SLOWER) * left * steps / blocks_for(left, steps, t.BLOCKS) + ADDING_UP


def suits(m, n, k, t) -> dict[str, int]:
    """Wide tiles, or tall ones where they fill the waves better: those that take the least time."""

    def time(change) -> float:
        chosen = SimpleNamespace(**{**vars(t), **change})
        full, steps = tiles_of(chosen, m, n) // t.BLOCKS, tiles_over(k, t.BK)
        last = min(steps, last_wave_if_shared(chosen, m, n, k))
        return (full * steps + last) * (TALL if change else 1)

    return min({}, {"BM": 256, "BN": 128, "WM": 128, "WN": 32}, key=time)


def shares(t, *standard) -> tuple[KernelLaunch, ...]:
    """Full waves by grouped_blocks; the last wave's tiles are shared out where that takes fewer steps."""
    m, n, k = standard[:3]
    tiles, steps = tiles_of(t, m, n), tiles_over(k, t.BK)
    whole = tiles - tiles % t.BLOCKS
    if last_wave_if_shared(t, m, n, k) >= steps:
        whole = tiles
    sizes, block, launches = vars(t), (threads(t),), []
    if whole:
        kernel = grouped_blocks.STAGE.kernel({name: sizes[name] for name in grouped_blocks.STAGE.tiles})
        launches.append(KernelLaunch(kernel, (whole,), block, 0, standard))
    if whole < tiles:
        rest = arguments(t, *standard, first_tile=whole)
        blocks = blocks_for(tiles - whole, steps, t.BLOCKS)
        launches.append(KernelLaunch(STAGE.kernel(sizes), (blocks,), block, 0, rest))
    return tuple(launches)


def threads(t) -> int:
    """Of a block, as in grouped_blocks."""
    return 32 * (t.BM * t.BN // (t.WM * t.WN))


STAGE = Stage(
    name="stream_k",
    title="Steps along k shared out evenly",
    after="grouped_blocks",
    document="beyond the documents",
    tiles={**grouped_blocks.STAGE.tiles, "BLOCKS": 132},
    options={**grouped_blocks.STAGE.options, "GROUP": (8,), "PAD": (4,), "BLOCKS": (132,)},
    may_be_zero=frozenset({"PAD"}),
    requirements=requirements,
    build=build,
    threads=lambda t: (threads(t),),
    blocks=lambda m, n, t: (t.BLOCKS if m and n else 0,),
    registers=grouped_blocks.STAGE.registers,
    alignment=16,
    compute_capability=(8, 0),
    takes=arguments,
    shares=shares,
    suits=suits,
)
