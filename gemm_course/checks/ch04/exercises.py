"""Exercises of notebook 04: a column of results a thread. Each is proved in a module of its own."""

from gemm_course.checks.ch04.in_registers import prove_strip
from gemm_course.checks.ch04.reads_per_result import prove_reads
from gemm_course.checks.ch04.thread_columns import prove_thread_columns
from gemm_course.checks.ch04.tile_sectors import prove_tile_sectors
from gemm_course.checks.core import exercise


@exercise(
    "04.1",
    start="count for one pair of tiles first: how many elements of Bs does a thread read, how many of As?",
    hints=(
        "In one step along k a thread reads one element of Bs and TM of As. A pair of tiles has BK steps.",
        "That makes `BK * (1 + TM)` reads, for TM results.",
        "Divide by TM: each result costs its own BK elements of As, and its share of BK elements of Bs.",
    ),
)
def reads_per_result(reads):
    """reads(BK, TM) -> elements of shared memory that a thread reads from a pair of tiles for one result."""
    return prove_reads(reads)


@exercise(
    "04.2",
    start="declare `acc = cuda.local.array(TM, float32)` and set its elements to zero.",
    hints=(
        "Three pieces are missing: TM accumulators, set to zero; the products, where `b` is read once for "
        "all of them; a store for each of them.",
        "Thread `(tx, ty)` has column `tx` of its block, and the rows `ty * TM` to `ty * TM + TM - 1`.",
        "For every `p` of the tile: `b = Bs[p, tx]`, then for every `i`: `acc[i] += As[ty * TM + i, p] * b`.",
        "At the end, for every `i`: `row = row0 + ty * TM + i`, the guard `row < m and col0 + tx < n`, and "
        "the store of `acc[i]` as in notebook 03.",
    ),
)
def thread_columns(make_column):
    """A factory (BM, BN, BK, TM) of GEMM kernels with TM results a thread; blocks of (BN, BM / TM)."""
    return prove_thread_columns(make_column)


@exercise(
    "04.3",
    start="draw the 32 lanes of a warp over the rows of a tile that is BK floats wide.",
    hints=(
        "Lane t fetches row `t // BK`, column `t % BK` of the tile. So a warp covers `32 / BK` rows.",
        "In A these rows lie far apart, so no sector serves two of them. How many sectors does a row of BK "
        "floats need, with 8 floats in each?",
        "`32 // BK` rows, times `BK / 8` sectors, but at least one, for each.",
    ),
)
def tile_sectors(sectors):
    """sectors(BK) -> the sectors that one warp's request for v03's tile of A moves; A starts at sectors."""
    return prove_tile_sectors(sectors)


@exercise(
    "04.4",
    start="this is still the kernel as it was handed out. Which loops over `acc` turn a number of times that "
    "nobody knows beforehand?",
    hints=(
        "A register has no address. The compiler must see, for every access to `acc`, which element it is: "
        "it writes the loop out, `acc[0]`, `acc[1]`, ...",
        "It can write out `range(R)`, as R is a constant of the factory. It cannot write out `range(count)`.",
        "Let every loop turn R times, and keep what does not exist out with a guard inside: "
        "`if first + 32 * i < n:`.",
    ),
)
def in_registers(make_strip):
    """A factory (R) of kernels (n, k, x, A, y) that compute y = x A, R columns a thread, in registers."""
    return prove_strip(make_strip)
