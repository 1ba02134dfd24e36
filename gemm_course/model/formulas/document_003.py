"""Holds document 003's formulas (after siboehm's kernel 10): warp tiles, transposed As, and TM = 1.

``tid`` is threadIdx.x, and ``threads`` is the document's NUM_THREADS. Flat indices are those of As, BK rows
of BM elements, and of Bs, BK rows of BN elements. K and N are the widths of A and of B and C.
"""

from __future__ import annotations

from gemm_course.model.formulas.registry import formula

WARPSIZE = 32

# A place is (row, column).
Place = tuple[int, int]


# ---- the outer loop: a block's tiles ---------------------------------------------------------------------


@formula("003.block", "Outer loop: A += cRow * BM * K, B += cCol * BN, steps of BK")
def corner_of_block(block_x: int, block_y: int, BM: int, BN: int) -> Place:
    """Return the first row and column of the block's tile of C, cRow * BM and cCol * BN."""
    return block_y * BM, block_x * BN


@formula("003.bkIdx", "Outer loop: for (bkIdx = 0; bkIdx < K; bkIdx += BK)")
def iterations(K: int, BK: int) -> int:
    """Return how many iterations the outer loop has."""
    return len(range(0, K, BK))


@formula("003.innerA", "SMEM Loads: innerRowA, innerColA")
def inner_a(tid: int, BK: int) -> Place:
    """Return the row of A's tile and the group of four columns that a thread fetches first."""
    return tid // (BK // 4), tid % (BK // 4)


@formula("003.rowStrideA", "SMEM Loads: rowStrideA")
def row_stride_a(threads: int, BK: int) -> int:
    """Return how many rows of A's tile the block fetches at a time."""
    return threads // (BK // 4)


@formula("003.innerB", "SMEM Loads: innerRowB, innerColB")
def inner_b(tid: int, BN: int) -> Place:
    """Return the row of B's tile and the group of four columns that a thread fetches first."""
    return tid // (BN // 4), tid % (BN // 4)


@formula("003.rowStrideB", "SMEM Loads: rowStrideB")
def row_stride_b(threads: int, BN: int) -> int:
    """Return how many rows of B's tile the block fetches at a time."""
    return threads // (BN // 4)


@formula("003.load_A", "SMEM Loads: A[(innerRowA + offset) * K + innerColA * 4]")
def load_a(tid: int, offset: int, K: int, BK: int) -> int:
    """Return the first of a thread's four elements of A, counted from the tile's first element."""
    row, column = inner_a(tid, BK)
    return (row + offset) * K + column * 4


@formula("003.As", "SMEM Loads: As[(innerColA * 4 + e) * BM + innerRowA + offset]")
def scatter_as(tid: int, offset: int, e: int, BM: int, BK: int) -> int:
    """Return where the e-th of a thread's four elements of A goes in As, transposed."""
    row, column = inner_a(tid, BK)
    return (column * 4 + e) * BM + row + offset


@formula("003.load_B", "SMEM Loads: B[(innerRowB + offset) * N + innerColB * 4]")
def load_b(tid: int, offset: int, N: int, BN: int) -> int:
    """Return the first of a thread's four elements of B, counted from the tile's first element."""
    row, column = inner_b(tid, BN)
    return (row + offset) * N + column * 4


@formula("003.Bs", "SMEM Loads: Bs[(innerRowB + offset) * BN + innerColB * 4]")
def place_in_bs(tid: int, offset: int, BN: int) -> int:
    """Return where the first of a thread's four elements of B goes in Bs."""
    row, column = inner_b(tid, BN)
    return (row + offset) * BN + column * 4


# ---- the middle loop: warps, their steps, their threads --------------------------------------------------


@formula("003.warp", "Middle Loop: warpIdx, warpCol, warpRow")
def warp(tid: int, BN: int, WN: int) -> Place:
    """Return the row and the column of a thread's warp tile among those of the block."""
    warp_index = tid // WARPSIZE
    return warp_index // (BN // WN), warp_index % (BN // WN)


@formula("003.WMITER", "Middle Loop: WMITER")
def wmiter(WM: int, WN: int, TM: int, TN: int, WNITER: int) -> int:
    """Return how many steps the warp takes down its tile."""
    return WM * WN // (WARPSIZE * TM * TN * WNITER)


@formula("003.WSUB", "Middle Loop: WSUBM, WSUBN")
def wsub(WM: int, WN: int, TM: int, TN: int, WNITER: int) -> tuple[int, int]:
    """Return the rows and columns that a warp covers in one step."""
    return WM // wmiter(WM, WN, TM, TN, WNITER), WN // WNITER


@formula("003.lane", "Middle Loop: threadIdxInWarp, threadColInWarp, threadRowInWarp")
def lane(tid: int, TN: int, WSUBN: int) -> Place:
    """Return the row and the column of a thread among those of its warp."""
    in_warp = tid % WARPSIZE
    return in_warp // (WSUBN // TN), in_warp % (WSUBN // TN)


@formula("003.regM", "Middle Loop: regM[wSubRowIdx], with TM = 1")
def reg_m(tid: int, p: int, i: int, BM: int, BN: int, WM: int, WN: int, TN: int, WNITER: int) -> int:
    """Return the element of As that a thread reads into regM[i] in step p (the document's dotIdx)."""
    WSUBM, WSUBN = wsub(WM, WN, 1, TN, WNITER)
    return p * BM + warp(tid, BN, WN)[0] * WM + i * WSUBM + lane(tid, TN, WSUBN)[0]


@formula("003.regN", "Middle Loop: regN[wSubColIdx * TN + i]")
def reg_n(tid: int, p: int, j: int, e: int, BN: int, WM: int, WN: int, TN: int, WNITER: int) -> int:
    """Return the element of Bs that a thread reads into regN[j * TN + e] in step p."""
    _, WSUBN = wsub(WM, WN, 1, TN, WNITER)
    return p * BN + warp(tid, BN, WN)[1] * WN + j * WSUBN + lane(tid, TN, WSUBN)[1] * TN + e


@formula("003.reads", "Middle Loop: 1 element per WMITER block, TN at each WNITER")
def reads(WM: int, WN: int, TN: int, WNITER: int) -> int:
    """Return how many elements of As and Bs a thread reads in one step along k, with TM = 1."""
    return wmiter(WM, WN, 1, TN, WNITER) + WNITER * TN


# ---- writing back ----------------------------------------------------------------------------------------


@formula("003.i", "Writing Results Back: i")
def result(i: int, r: int, j: int, e: int, TM: int, TN: int, WNITER: int) -> int:
    """Return which of threadResults belongs to row r, column e of step (i, j) of the warp."""
    return (i * TM + r) * (WNITER * TN) + j * TN + e


@formula("003.C_interim", "Writing Results Back: C_interim, and the index in it")
def element(tid: int, i: int, j: int, e: int, BN: int, WM: int, WN: int, TN: int, WNITER: int) -> Place:
    """Return the row and the column, in the block's tile of C, of column e of a thread's step (i, j).

    TM is 1.
    """
    WSUBM, WSUBN = wsub(WM, WN, 1, TN, WNITER)
    (warp_row, warp_col), (lane_row, lane_col) = warp(tid, BN, WN), lane(tid, TN, WSUBN)
    return warp_row * WM + i * WSUBM + lane_row, warp_col * WN + j * WSUBN + lane_col * TN + e
