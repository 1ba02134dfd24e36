"""The ladder: every kernel of the course in teaching order, each one idea away from an earlier one."""

from gemm_course.kernels import (
    async_copy,
    block_tiled,
    double_buffered,
    grouped_blocks,
    kernel5,
    mma_ring,
    mma_swizzled,
    mma_sync,
    mma_tma,
    naive_coalesced,
    naive_uncoalesced,
    penny_xu_tile,
    persistent,
    read_ahead,
    staged_store,
    stream_k,
    thread_tiled_1d,
    thread_tiled_2d,
    tile_loop,
    vectorized,
    warp_specialised,
    warp_tiled,
    warp_tiled_tm1,
    wgmma_tma,
    wmma,
)
from gemm_course.kernels.base import IllegalTiles, KernelLaunch, Ladder, Stage, tiles_text

__all__ = ["LADDER", "IllegalTiles", "KernelLaunch", "Ladder", "Stage", "tiles_text"]

LADDER = Ladder(
    (
        naive_uncoalesced.STAGE,
        naive_coalesced.STAGE,
        penny_xu_tile.STAGE,
        block_tiled.STAGE,
        thread_tiled_1d.STAGE,
        thread_tiled_2d.STAGE,
        kernel5.STAGE,
        vectorized.STAGE,
        warp_tiled_tm1.STAGE,
        warp_tiled.STAGE,
        double_buffered.STAGE,
        async_copy.STAGE,
        read_ahead.STAGE,
        grouped_blocks.STAGE,
        stream_k.STAGE,
        wmma.STAGE,
        wmma.FP16_ACC,
        mma_swizzled.STAGE,
        mma_ring.STAGE,
        mma_sync.STAGE,
        mma_tma.STAGE,
        wgmma_tma.STAGE,
        warp_specialised.STAGE,
        tile_loop.STAGE,
        staged_store.STAGE,
        persistent.STAGE,
    )
)
