"""Exercises of notebook 05: a tile of results a thread. Each is proved in a module of its own."""

from gemm_course.checks.ch05.coalesced_b import prove_coalesced_b
from gemm_course.checks.ch05.draft_is_right import prove_draft
from gemm_course.checks.ch05.no_conflicts import prove_no_conflicts
from gemm_course.checks.ch05.outer_product import prove_outer
from gemm_course.checks.ch05.slices import prove_slices
from gemm_course.checks.core import exercise


@exercise(
    "05.1",
    start="find a BK at which the picture of the draft has no hatching and nobody writes beside the tiles.",
    hints=(
        "How many columns of As do the threads of a block fetch together? How many are there?",
        "There are `BN // TN` threads along x, each fetches one column of As; and `BM // TM` along y, each "
        "fetches one row of Bs.",
        "As has BK columns and Bs has BK rows. Fewer threads leave holes, more of them write beside the "
        "tile.",
    ),
)
def draft_is_right(right):
    """right(BM, BN, BK, TM, TN) -> whether the draft of Kernel 5 is right with these tiles."""
    return prove_draft(right)


@exercise(
    "05.2",
    start="fill As first: a loop over this thread's columns `c`, and in it one over its TM rows.",
    hints=(
        "Thread `(tx, ty)` fetches rows `ty * TM` to `ty * TM + TM - 1` of As, as many as it computes. Its "
        "columns are `tx`, and then as far on as there are threads along x.",
        "`for c in range(tx, BK, BN // TN):` runs over this thread's columns of As; "
        "`for r in range(ty, BK, BM // TM):` over its rows of Bs.",
        "`As[ty * TM + i, c]` takes `A[row0 + ty * TM + i, k0 + c]`, with `row0 = cuda.blockIdx.y * BM`, and "
        "a zero where that is past m or past k.",
    ),
)
def slices(make_fetch):
    """A factory (BM, BN, BK, TM, TN) of device functions that fill As and Bs in slices, as Kernel 5 does."""
    return prove_slices(make_fetch)


@exercise(
    "05.3",
    start="begin with your loop over Bs from exercise 05.2, and ask which column thread `tx + 1` fetches.",
    hints=(
        "In one request the lanes all have the same `j`. Which address does `tx` have, which one `tx + 1`?",
        "Neighbours in x should fetch neighbours in B. Then a thread's next column is one that none of its "
        "row's threads has had: as far on as there are threads along x.",
        "Column `tx + j * (BN // TN)` in both places, in `B[k0 + r, col0 + ...]` and in `Bs[r, ...]`.",
    ),
)
def coalesced_b(make_fetch_b):
    """A factory like that of 05.2 whose functions fill Bs, and load B coalesced."""
    return prove_coalesced_b(make_fetch_b)


@exercise(
    "05.4",
    start="declare `acc = cuda.local.array((TM, TN), float32)` and set its elements to zero.",
    hints=(
        "Three pieces are missing: TM by TN results, set to zero; the products; the store. For the products, "
        "think of the NumPy loop at the beginning: a column of As, a row of Bs, their outer product.",
        "In every step `p`: read TM elements of As into an array `a` of your own and TN of Bs into `b`. Only "
        "then two loops over `acc[i, j] += a[i] * b[j]`.",
        "`a[i] = As[ty * TM + i, p]` and `b[j] = Bs[p, tx * TN + j]`.",
        "At the end, for every `i` and `j`: `row, col = row0 + ty * TM + i, col0 + tx * TN + j`, the guard, "
        "and the store of `acc[i, j]` as in notebook 03.",
    ),
)
def outer_product(make_outer):
    """A factory (BM, BN, BK, TM, TN) of GEMM kernels with TM by TN results a thread."""
    return prove_outer(make_outer)


@exercise(
    "05.5",
    start="copy `make_outer` from exercise 05.4 into this cell, and change it here.",
    hints=(
        "Two changes, one for each tile; look at the picture of the banks. As: where are the two rows that "
        "a warp reads? Bs: how far apart are neighbours' columns?",
        "Give every row of As a word more. The width has to be computed outside the kernel, beside `def`: "
        "inside it is no constant for Numba.",
        "Let thread `tx` have the columns `tx + j * (BN // TN)` instead of `tx * TN + j`: where Bs is read "
        "and where C is stored.",
    ),
)
def no_conflicts(make_mended):
    """A factory like that of 05.4 whose reads of shared memory take one wavefront each."""
    return prove_no_conflicts(make_mended)
