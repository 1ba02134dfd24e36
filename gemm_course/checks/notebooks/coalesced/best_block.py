"""Checks ``best_block``: the block of 256 threads whose warps fetch the least."""

from functools import cache

import numpy as np

from gemm_course.checks.core import Refused, exercise, nothing_yet
from gemm_course.kernels import LADDER
from lockstep import emulate

BLOCK_THREADS = 256
PATCHES = {
    32: "one whole row of 32",
    16: "2 rows of 16",
    8: "4 rows of 8, and a row of 8 is one sector of B",
    4: "8 rows of 4, half a sector of B wide",
    2: "16 rows of 2, a quarter of a sector of B wide",
    1: "one column of 32, every lane in another row of A",
}


@exercise(
    start="pass a shape `(x, y)` with `x * y` = 256, such as `check.best_block((32, 8))`.",
    hints=(
        "A warp is 32 threads, whatever the block. Which patch of C do they cover: how many rows, how many "
        "columns?",
        "A takes a sector for each row of the patch. B takes one for every 8 columns of it.",
        "1 row of 32: 1 + 4. 4 rows of 8: 4 + 1. What lies between the two?",
    ),
)
def best_block(shape):
    """The block (x, y) of 256 threads with which naive_coalesced moves the fewest sectors of A and B."""
    x, y = _two_sizes(shape)
    if x * y != BLOCK_THREADS:
        more = "more" if x * y > BLOCK_THREADS else "fewer"
        raise Refused(f"({x}, {y}) are {x * y:,} threads, {more} than the {BLOCK_THREADS} of this exercise.")
    a, b = sectors_of_a_block(x, y)
    least = min(sum(sectors_of_a_block(2**i, BLOCK_THREADS >> i)) for i in range(9))
    counted = f"A {a:g} + B {b:g} = {a + b:g} sectors per step along k of a warp"
    if a + b > least:
        raise Refused(f"{_patch(x, y)}: {counted}. There is a shape with fewer.")
    return f"{_patch(x, y)}: {counted}, and no shape with 256 threads has fewer."


def _two_sizes(shape) -> tuple[int, int]:
    shape = shape.tolist() if isinstance(shape, np.ndarray) else shape
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else ()
    if len(sizes) == 3 and sizes[2] == 1:
        sizes = sizes[:2]
    if len(sizes) != 2:
        raise Refused(f"A shape is two numbers, `(x, y)`, threads along x and along y; this is `{shape!r}`.")
    if any(size is None or size is Ellipsis for size in sizes):
        raise nothing_yet()
    if not all(isinstance(size, (int, np.integer)) and size > 0 for size in sizes):
        raise Refused(f"There are only whole threads, at least 1 along x and y; this is `{shape!r}`.")
    return int(sizes[0]), int(sizes[1])


@cache
def sectors_of_a_block(x: int, y: int) -> tuple[float, float]:
    """Count the sectors of A and of B in a warp's k step, with the emulator."""
    stage, tiles, size, k = LADDER["naive_coalesced"], {"BM": y, "BN": x}, 256, 8
    A, B, C = (np.broadcast_to(np.float32(0), shape) for shape in ((size, k), (k, size), (size, size)))
    one, zero = np.float32(1), np.float32(0)
    geometry = stage.grid(size, size, tiles), stage.block(tiles)
    report = emulate(stage.kernel(tiles), *geometry, size, size, k, one, A, B, zero, C, counts_only=True)
    steps = size * size * k // 32
    return tuple(report.total("sectors", array=name, op="load") / steps for name in "AB")


def _patch(x: int, y: int) -> str:
    if x > 32:
        return f"({x}, {y}), {y} × {x} of C, puts several warps side by side, but each is still one row of 32"
    return f"In ({x}, {y}), {y} × {x} of C, a warp is {PATCHES[x]}"
