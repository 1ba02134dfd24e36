"""Exercises of notebook 07: warp tiles. Each is proved in a module of its own."""

from gemm_course.checks.ch07.legal_tiles import prove_legal
from gemm_course.checks.ch07.owner_map import prove_owner_map
from gemm_course.checks.ch07.register_loads import prove_loads
from gemm_course.checks.ch07.warp_kernel import prove_heart
from gemm_course.checks.ch07.warp_steps import prove_steps
from gemm_course.checks.ch07.warp_wavefronts import prove_wavefronts
from gemm_course.checks.core import exercise


@exercise(
    "07.1",
    start="how many elements do 32 threads compute in one step, TM by TN each? How often is that WM by WN?",
    hints=(
        "In one step a warp computes 32 · TM · TN elements. WNITER steps lie side by side; WMITER such "
        "rows of steps lie one below the other.",
        "All steps together are the warp's tile: WMITER · WNITER · 32 · TM · TN = WM · WN.",
        "`WMITER = WM * WN // (32 * TM * TN * WNITER)`; a step is `WM // WMITER` rows high and `WN // "
        "WNITER` columns wide.",
    ),
)
def warp_steps(steps):
    """steps(WM, WN, TM, TN, WNITER) -> (WMITER, WSUBM, WSUBN)."""
    return prove_steps(steps)


@exercise(
    "07.2",
    start="work out the warp, `tid // 32`, and the lane, `tid % 32`; then the row and column of each.",
    hints=(
        "Four questions, one after the other: which warp tile of the block, which lane of the warp, which "
        "step, which of the TN columns? Each adds something to the row, to the column, or to both.",
        "BN // WN warps lie side by side, so the warp's row is `warp // (BN // WN)` and its column the "
        "remainder. In the same way WSUBN // TN lanes lie side by side.",
        "The row is `warp_row * WM + i * WSUBM + lane_row`, the column `warp_col * WN + j * WSUBN + "
        "lane_col * TN + e`.",
        "Order: `for i in range(WMITER) for j in range(WNITER) for e in range(TN)`; with TM = 1 that is "
        "the order in which the document numbers threadResults.",
    ),
)
def owner_map(elements):
    """elements(tid, BN, WM, WN, TN, WNITER) -> [(row, column), ...] of a thread's results; TM = 1."""
    return prove_owner_map(elements)


@exercise(
    "07.3",
    start="ask of each division in the index formulas whether it comes out even. Begin with BM and WM.",
    hints=(
        "Three levels: warp tiles must fill the block's, steps must fill the warp's, and 32 thread tiles "
        "must fill a step.",
        "WMITER must be a whole number, WM a multiple of WMITER, WN a multiple of WNITER · TN. And WSUBM?",
        "A step is WSUBM rows high, in whole thread tiles of TM rows: WSUBM must be a multiple of TM.",
        "The number of threads is 32 for each of the BM · BN / (WM · WN) warps, and at most 1,024.",
    ),
)
def legal_tiles(legal):
    """legal(BM, BN, WM, WN, TM, TN, WNITER) -> threads of a block, or 0 where the tiles cannot work."""
    return prove_legal(legal)


@exercise(
    "07.4",
    start="take `8 × 4`, one float a lane. Which 8 words of As do the lanes want? In which banks are they?",
    hints=(
        "The bank of a word is its number modulo 32. Lanes that want the same word share it. Count, in "
        "the fullest bank, the different words.",
        "8 × 4 lanes, 8 rows each, side by side: the words 0, 8, ..., 56 of As. 0 and 32 are in the same "
        "bank.",
        "Four floats a lane: groups of 8 lanes, 0 to 7 first. They join in pairs where each lane wants "
        "what lane ^ 1 wants, or each what lane ^ 2 wants; for A that is so here, for B it is not.",
        "So A takes 2 with four floats in every layout. B takes one or two wavefronts for each of its 4 "
        "groups; `see.warp_reads()` shows which.",
    ),
)
def warp_wavefronts(table):
    """A table of wavefronts: layout -> ((A, B) for one float a lane, (A, B) for four)."""
    return prove_wavefronts(table)


@exercise(
    "07.5",
    start="write down the thread's row for step i, as in the owner map; As is transposed and flat.",
    hints=(
        "As has BK rows of BM elements, so element (p, row) is at `p * BM + row`. Bs has BK rows of BN.",
        "The rows are those of the thread's elements of C: `warp_row * WM + i * WSUBM + lane_row` for i "
        "from 0 to WMITER - 1.",
        "The columns: `warp_col * WN + j * WSUBN + lane_col * TN + e` for each j below WNITER and e below "
        "TN.",
    ),
)
def register_loads(loads):
    """loads(tid, p, BM, BN, WM, WN, TN, WNITER) -> (indices into flat As, indices into flat Bs); TM = 1."""
    return prove_loads(loads)


@exercise(
    "07.6",
    start="work out `y0` and `x0`, the thread's first row and column; then fill `a` and `b` for each p.",
    hints=(
        "`y0` and `x0` are row and column of the first element in your owner map: i = j = e = 0.",
        "For each p: WMITER elements of As into `a`, WNITER · TN of Bs into `b`, then three loops that add "
        "`a[i] * b[j, e]` to `acc[i, j, e]`.",
        "As is transposed: `a[i] = As[p, y0 + i * WSUBM]`, and `b[j, e] = Bs[p, x0 + j * WSUBN + e]`.",
        "`lane_cols = WSUBN // TN`; `y0 = warp // (BN // WN) * WM + lane // lane_cols` and `x0 = warp % "
        "(BN // WN) * WN + lane % lane_cols * TN`.",
    ),
)
def warp_kernel(make_warp_tiled):
    """A factory of GEMM kernels with warp tiles, TM = 1, from BM, BN, BK, WM, WN, TN, WNITER."""
    return prove_heart(make_warp_tiled)
