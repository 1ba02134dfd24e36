"""Holds document 002's formulas (after Penny Xu): square matrices and tiles, one thread per element.

Tiles are T by T. The document's example has n = 4 and T = 2, and writes these numbers into its kernel.
"""

from __future__ import annotations

from gemm_course.model.formulas.registry import formula

# A place is (row, column).
Place = tuple[int, int]


@formula("002.threads", "Problem Setup: 16 elements, 16 threads")
def threads(n: int) -> int:
    """Return how many threads the grid has: one for each element of C, n by n."""
    return n * n


@formula("002.blocks", "Problem Setup: 2 × 2 threads per block, 4 blocks")
def blocks(n: int, T: int) -> int:
    """Return how many blocks the grid has. T must divide n."""
    return (n // T) ** 2


@formula("002.without_tiling", "Benefit of Tiling: 8 accesses per thread")
def loads_without_tiles(n: int) -> int:
    """Return how many elements a thread loads from global memory: a row of A and a column of B."""
    return 2 * n


@formula("002.with_tiling", "Benefit of Tiling: 4 accesses per thread")
def loads_with_tiles(n: int, T: int) -> int:
    """Return how many elements a thread loads from global memory: two per tile."""
    return 2 * n // T


@formula("002.reduction", "Benefit of Tiling: proportional to the block's dimension")
def reduction(T: int) -> int:
    """Return how many times fewer elements are loaded from global memory than without tiles."""
    return T


@formula("002.tiles", "Kernel Code: i < width / 2")
def tiles_along_k(width: int, T: int) -> int:
    """Return how many iterations the outer loop has."""
    return width // T


@formula("002.row_col", "Kernel Code: row = by * 2 + ty, col = bx * 2 + tx")
def element(bx: int, by: int, tx: int, ty: int, T: int) -> Place:
    """Return the element of C that a thread computes."""
    return by * T + ty, bx * T + tx


@formula("002.shareA", "Kernel Code: shareA[ty][tx] = A[row * width + (i * 2 + tx)]")
def element_of_a(row: int, i: int, tx: int, width: int, T: int) -> int:
    """Return the element of A, counted from its first, that a thread fetches in iteration i."""
    return row * width + (i * T + tx)


@formula("002.shareB", "Kernel Code: shareB[ty][tx] = B[(i * 2 + ty) * width + col]")
def element_of_b(col: int, i: int, ty: int, width: int, T: int) -> int:
    """Return the element of B, counted from its first, that a thread fetches in iteration i."""
    return (i * T + ty) * width + col


@formula("002.barriers", "Kernel Code: __syncthreads before the inner loop, and in it")
def barriers(width: int, T: int) -> int:
    """Return how many barriers a block waits at: one per tile, and one for each of its T steps."""
    return width // T * (1 + T)
