"""Makes the parts of ``ring_goes_on``: a kernel whose blocks stay, around two roles, and what the roles call.

A tile of C has 64 by 64 elements, a step of k is 64 deep. A block has 160 threads: four consumer warps, and a
producer in the fifth.
"""

from typing import Any

import numpy as np
from numba import cuda, float32, uint64
from numba.types import float16

from lockstep import EmulatorError, emulate
from lockstep.intrinsics import (
    carve,
    fence_async,
    mbarrier_arrive,
    mbarrier_expect,
    mbarrier_init,
    tensor_map,
    tma_acquire,
    tma_load,
    unroll,
    wgmma,
    wgmma_commit,
    wgmma_fence,
    wgmma_wait,
)


def staying_blocks(SLOTS, produce, consume):
    """Return a kernel (k, tile_cols, tiles, A, B, C): C = A @ B for whole tiles, numbered row by row.

    A and B are tensor maps with boxes of 64 by 64, C is float32. A slot takes 16 KB of shared memory.
    """

    @cuda.jit
    def kernel(k, tile_cols, tiles, A, B, C):
        full = cuda.shared.array(SLOTS, uint64)
        empty = cuda.shared.array(SLOTS, uint64)
        room = cuda.shared.array(0, float16, 1024)  # as large as the launch says
        As = carve(room, 0, (SLOTS, 64, 64))
        Bs = carve(room, SLOTS * 64 * 64, (SLOTS, 64, 64))
        acc = cuda.local.array(32, float32)
        tid = cuda.threadIdx.x
        steps = (k + 63) // 64
        if tid == 0:
            tma_acquire(A)
            tma_acquire(B)
            for s in range(SLOTS):
                mbarrier_init(full, s, 1)  # the producer arrives, and says how many bytes come
                mbarrier_init(empty, s, 4)  # one lane of each consumer warp arrives
            fence_async()
        cuda.syncthreads()  # the last barrier of the whole block

        if tid >= 128:
            if tid == 128:
                produce(full, empty, As, Bs, A, B, tiles, tile_cols, steps, SLOTS)
        else:
            consume(full, empty, As, Bs, C, acc, tiles, tile_cols, steps, SLOTS)

    return kernel


@cuda.jit(device=True)
def order(full, slot, As, Bs, A, B, tile_row, tile_col, step):
    """Announce the bytes of a step at full[slot], and have TMA bring its boxes of A and of B."""
    mbarrier_expect(full, slot, 2 * 64 * 64 * 2)
    tma_load(As, (slot, 0, 0), A, (tile_row * 64, step * 64), full, slot)
    tma_load(Bs, (slot, 0, 0), B, (step * 64, tile_col * 64), full, slot)


@cuda.jit(device=True)
def clear(acc):
    """Set the accumulators to 0."""
    for e in unroll(range(32)):
        acc[e] = 0


@cuda.jit(device=True)
def multiply(acc, slot, As, Bs):
    """Add the products of the boxes in a slot to acc, and wait until they are there."""
    queue(acc, slot, As, Bs)
    finish()


@cuda.jit(device=True)
def queue(acc, slot, As, Bs):
    """Queue the products of the boxes in a slot, which are added to acc, and go on."""
    wgmma_fence()
    for p in unroll(range(0, 64, 16)):
        wgmma(64, acc, As, (slot, 0, p), Bs, (slot, p, 0))
    wgmma_commit()


@cuda.jit(device=True)
def finish():
    """Wait until all products that are queued are there."""
    wgmma_wait(0)


@cuda.jit(device=True)
def give_back(empty, slot):
    """Have one lane of each warp arrive at empty[slot]."""
    if cuda.threadIdx.x % 32 == 0:
        mbarrier_arrive(empty, slot)


@cuda.jit(device=True)
def store(C, acc, tile_row, tile_col):
    """Store the accumulators into their tile of C."""
    warp, lane = cuda.threadIdx.x // 32, cuda.threadIdx.x % 32
    row, col = tile_row * 64 + warp * 16 + lane // 4, tile_col * 64 + lane % 4 * 2
    for e in unroll(range(32)):
        C[row + e // 2 % 2 * 8, col + e // 4 * 8 + e % 2] = acc[e]


def roles_on_trial(produce: Any, consume: Any, *, slots: int, steps: int, blocks: int = 1) -> str:
    """Run two roles on three tiles with ``steps`` steps each, on the emulator, and say what came of it."""
    rng = np.random.default_rng(steps)
    A, B = (rng.uniform(-2, 2, shape).astype(np.float16) for shape in ((64, 64 * steps), (64 * steps, 192)))
    C = np.full((64, 192), np.nan, np.float32)
    maps = tensor_map(A, A.shape, (64, 64)), tensor_map(B, B.shape, (64, 64))
    kernel = staying_blocks(slots, produce, consume)
    shared_bytes = slots * 2 * 64 * 64 * 2
    try:
        errors = emulate(kernel, blocks, 160, 64 * steps, 3, 3, *maps, C, shared_bytes=shared_bytes).errors
    except EmulatorError as error:
        return "stands still" if "No warp of the block can continue" in str(error) else str(error)
    # What was found may be chance on a GPU, and what was computed need not be wrong.
    if errors:
        return f"a fault: {errors[0].message}"
    if np.isnan(C).any():
        return "tiles are missing"
    # The results may have been rounded to FP16.
    return "right" if np.allclose(C, A.astype(float) @ B, rtol=2e-3, atol=5e-2) else "wrong numbers"
