"""Exercises of notebook 08: Tensor Cores. Each is proved in a module of its own."""

from gemm_course.checks.ch08.padded_c import prove_padded_c
from gemm_course.checks.ch08.padding_wavefronts import prove_padding_wavefronts
from gemm_course.checks.ch08.ragged_product import prove_edge
from gemm_course.checks.ch08.warp_product import prove_product
from gemm_course.checks.core import exercise


@exercise(
    "08.1",
    start="declare the fragments `a` and `b`, `cuda.local.array(16, float16)` each, and eight sums, `acc`.",
    hints=(
        "Four calls: `wmma_load_a`, `wmma_load_b` and `wmma_mma` in the loop, `wmma_store` after it. Before "
        "the loop the eight elements of `acc` are set to zero.",
        "All lanes give the same place: the tiles begin at `(0, 0)`. The hardware deals out the elements.",
        "`As[p, y]` holds element (y, p) of A: its columns lie in memory one behind the other. That is "
        "`COL_MAJOR`. `Bs[p, x]` is `ROW_MAJOR`.",
        "`wmma_load_a(a, As, (0, 0), COL_MAJOR)`, `wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)`, `wmma_mma(acc, a, "
        "b, COL_MAJOR, ROW_MAJOR)`, and at the end `wmma_store(Cs, (0, 0), acc, ROW_MAJOR)`.",
    ),
)
def warp_product(make_product):
    """A factory (PAD) of kernels (k, A, B, C): a warp multiplies a row of tiles by a column of tiles."""
    return prove_product(make_product)


@exercise(
    "08.2",
    start="in which bank does each of the 8 rows begin? Write down three numbers of wavefronts.",
    hints=(
        "A half is 2 bytes, a bank gives 4. Rows of 128 + PAD halves begin (128 + PAD) / 2 words apart.",
        "64 words are twice around the 32 banks: without skew all rows begin in bank 0. With 8 halves they "
        "are 68 words apart: each row begins 4 banks further on.",
        "A row of 16 bytes takes 4 banks. So rows that begin 4 banks apart never meet; rows that begin 8 "
        "banks apart meet after four of them.",
    ),
)
def padding_wavefronts(wavefronts):
    """(…, …, …): wavefronts for 8 rows of 16 bytes, with a skew of 0, 8 and 16 halves a row of 128."""
    return prove_padding_wavefronts(wavefronts)


@exercise(
    "08.3",
    start="this is still v07's end as it was handed out. How far apart are the rows of C in memory?",
    hints=(
        "C has m rows of n elements, but `ldc` lie between the start of one row and the start of the next.",
        "Both places where C is touched have to change: what is read, and what is written.",
        "`C[row * ldc + col]` in both. The guard stays as it is: rows end at n, wherever the next begins.",
    ),
)
def padded_c(kernel):
    """The end of v07, (m, n, ldc, alpha, sums, beta, C) with C flat, for rows that are ldc apart."""
    return prove_padded_c(kernel)


@exercise(
    "08.4",
    start="the sums are in `acc`. Put them into `Cs` with `wmma_store`, and look from there which of them "
    "are inside C.",
    hints=(
        "A fragment cannot be stored in part, and nobody tells which lane holds which element. In shared "
        "memory every sum has its row and column again.",
        "`wmma_store(Cs, (0, 0), acc, ROW_MAJOR)`, then `cuda.syncwarp()`: all lanes have to be done.",
        "Lane by lane as the tiles were fetched: element `e` of 8 is `Cs[r, c + e]` and belongs to "
        "`C[row0 + r, col0 + c + e]`, if that is inside.",
    ),
)
def ragged_product(kernel):
    """A kernel (m, n, k, A, B, C) of one warp a tile that stores what is inside C, for any sizes."""
    return prove_edge(kernel)
