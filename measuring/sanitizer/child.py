"""Launches one stage at some shapes, with and without reading C, under compute-sanitizer.

    python -m measuring.sanitizer.child STAGE "BM=64 BN=64 BK=8" 129x131x17 63x65x9

If beta is 0, C is uninitialised memory, and a kernel that reads it is caught. Rows are as short as the
stage's alignment allows, so that a read past an array does not hit its own padding.
"""

import sys

from gemm_course.bench.profile.sources import gemm_args
from gemm_course.device import launch
from gemm_course.kernels import LADDER
from gemm_course.records import parse_tiles
from measuring.sanitizer.tool import RAN


def main(name: str, tiles_text: str, *shapes: str) -> None:
    """Launch at each shape. Print RAN if nothing failed."""
    from numba import cuda

    stage, tiles = LADDER[name], parse_tiles(tiles_text)
    for text in shapes:
        shape = tuple(int(size) for size in text.split("x"))
        for beta in (0.0, -0.5):
            launch_stage(stage, tiles, shape, beta)
    cuda.synchronize()
    print(RAN, flush=True)


def launch_stage(stage, tiles, shape, beta: float) -> None:
    """Launch once on the GPU, or not at all if C has no elements."""
    from numba import cuda

    m, n, k, alpha, A, B, beta, C = gemm_args(shape, stage.alignment, beta, stage.dtype)
    grid = stage.grid(m, n, tiles)
    if 0 in grid:
        return
    a, b = cuda.to_device(A), cuda.to_device(B)
    c = cuda.to_device(C) if beta else cuda.device_array(C.shape, C.dtype)
    arguments = stage.arguments(m, n, k, alpha, a, b, beta, c, tiles=tiles)
    launch(stage.kernel(tiles), grid, stage.block(tiles), arguments, stage.shared_bytes(tiles))
    cuda.synchronize()


if __name__ == "__main__":
    main(*sys.argv[1:])
