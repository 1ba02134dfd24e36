"""The ladder: every kernel of the course in teaching order, each one idea away from the one before."""

from gemm_course.kernels import (
    async_copy,
    block_tiled,
    double_buffered,
    kernel5,
    naive_coalesced,
    naive_uncoalesced,
    penny_xu_tile,
    thread_tiled_1d,
    thread_tiled_2d,
    vectorized,
    warp_tiled,
    warp_tiled_tm1,
)
from gemm_course.kernels.base import IllegalTiles, Ladder, Stage, describe

__all__ = ["LADDER", "IllegalTiles", "Ladder", "Stage", "describe"]

LADDER = Ladder(
    module.STAGE
    for module in (
        naive_uncoalesced,
        naive_coalesced,
        penny_xu_tile,
        block_tiled,
        thread_tiled_1d,
        thread_tiled_2d,
        kernel5,
        vectorized,
        warp_tiled_tm1,
        warp_tiled,
        double_buffered,
        async_copy,
    )
)
