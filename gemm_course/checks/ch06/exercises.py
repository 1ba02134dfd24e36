"""Exercises of notebook 06: four floats at a time. Each is proved in a module of its own."""

from gemm_course.checks.ch06.four_at_once import prove_four_at_once
from gemm_course.checks.ch06.ragged_fours import prove_ragged_fours
from gemm_course.checks.ch06.scatter_padding import prove_scatter_padding
from gemm_course.checks.ch06.stray_read import prove_stray_read
from gemm_course.checks.ch06.transposing_scatter import prove_transposing
from gemm_course.checks.core import exercise


@exercise(
    "06.1",
    start="how many fours has a row of the tile? So many threads share a row.",
    hints=(
        "A row of BK floats is `BK // 4` fours. Thread `tid` takes four number `tid` of the tile, counted "
        "row by row.",
        "So its row is `tid // (BK // 4)` and its column `tid % (BK // 4) * 4`.",
        "The block covers `THREADS // (BK // 4)` rows at a time. Loop: `for i in range(0, BM, ROWS)`, and "
        "the row is `i + tid // (BK // 4)`.",
        "The body of the loop is `store4(out, (r, c), load4(A, (r, c)))`.",
    ),
)
def four_at_once(make_copy):
    """A factory (BM, BK, THREADS) of kernels (A, out) that copy a tile of BM by BK by fours."""
    return prove_four_at_once(make_copy)


@exercise(
    "06.2",
    start="fetch as in 06.1 into a tuple `v`, then store `v[0]` to `v[3]` into a shared array.",
    hints=(
        "`As` has BK rows of WIDTH floats: `cuda.shared.array((BK, WIDTH), float32, 16)`, with `WIDTH = BM + "
        "PAD` beside the kernel, as the shape must be plain. The 16 aligns its start, in bytes.",
        "`v = load4(A, (r, c))` holds row r, columns c to c + 3. Element `e` goes to `As[c + e, r]`.",
        "After a barrier, out: a row of it is `BM // 4` fours, so thread `tid` has row `tid // (BM // 4)` "
        "and column `tid % (BM // 4) * 4`, and the block covers `THREADS // (BM // 4)` rows at a time.",
        "The last line is `store4(out, (p, i), load4(As, (p, i)))`, in a loop over `range(0, BK, ...)`.",
    ),
)
def transposing_scatter(make_transpose):
    """A factory (BM, BK, PAD, THREADS) of kernels (A, out): A's tile through As, transposed, by fours."""
    return prove_transposing(make_transpose)


@exercise(
    "06.3",
    start="write down in which banks the lanes 0 to 3 store their `v[0]`.",
    hints=(
        "With BK = 16 four lanes share a row of A. Their four elements go into rows 0, 4, 8 and 12 of As, "
        "same column. How far apart are these, in words, modulo 32?",
        "A row of As is 128 + PAD words. Four rows further: 4 · (128 + PAD), modulo 32 that is 4 · PAD.",
        "The eight rows of A that a warp holds lie side by side: 8 neighbouring banks. Shifted by 4 · PAD "
        "for each of the four lanes, how often do they fall on each other?",
        "And with 128-bit reads every row of As has to begin at a multiple of 4 words.",
    ),
)
def scatter_padding(wavefronts=None, take=None):
    """Wavefronts of a store into As (BM 128, BK 16) for paddings 0, 2 and 4, and the padding to take."""
    return prove_scatter_padding(wavefronts, take)


@exercise(
    "06.4",
    start="begin with the loop of 06.2, its row and column moved on by `row0` and `k0`.",
    hints=(
        "The address: `A[row0 + r, k0 + c]`. The place in As stays `As[c + e, r]`.",
        "Load only where `row0 + r < m and k0 + c < k`; elsewhere take four zeros.",
        "Such a load may still reach past k, into the row's padding. That is no error, rows are multiples of "
        "four long, but there may be NaN.",
        "So when you store: `v[e] if k0 + c + e < k else float32(0)`.",
    ),
)
def ragged_fours(make_fetch):
    """A factory (BM, BK, THREADS) of device functions that fetch A's tile, whatever m and k are."""
    return prove_ragged_fours(make_fetch)


@exercise(
    "06.5",
    start="go through all accesses to global memory, and ask of each which guard it stands in.",
    hints=(
        "Four lines touch global memory: the loads of A, of B and of C, and the store of C.",
        "`x if condition else y` loads x only where the condition holds. Which of the four has no condition?",
        "The threads whose elements lie outside C read too. For which m and n are there none of them?",
        "For multiples of the block's tile. Everything else shows it, the smallest of all as well.",
    ),
)
def stray_read(access=None, shape=None):
    """The access that leaves its array, as ("A", "load"), and the smallest (m, n) that shows it."""
    return prove_stray_read(access, shape)
