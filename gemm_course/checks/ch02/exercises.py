"""Exercises of notebook 02: coalescing. Each is proved in a module of its own."""

from gemm_course.checks.ch02.best_block import prove_block
from gemm_course.checks.ch02.coalesced import prove_coalesced
from gemm_course.checks.ch02.documentation_matmul import prove_repaired
from gemm_course.checks.ch02.leading_dimension import prove_padding
from gemm_course.checks.core import exercise


@exercise(
    "02.1",
    start="take v00 of notebook 01, and ask which of its two indices the fast `x` should count now.",
    hints=(
        "Lanes of a warp differ in `x` first. Which index of C has to differ from lane to lane, so that they "
        "read neighbours of B?",
        "Only the two indices change places: `cuda.grid(2)` gives x first, and x is the column. Leave the "
        "subscripts `A[row, p]`, `B[p, col]` and `C[row, col]` as they are, and guard each index with its "
        "own size.",
        "`col, row = cuda.grid(2)`, `if row < m and col < n:`, and below that the loop of v00, unchanged.",
    ),
)
def coalesced(coalesced):
    """A GEMM kernel, blocks of (32, 8) threads, x over the columns of C."""
    return prove_coalesced(coalesced)


@exercise(
    "02.2",
    start="copy the kernel of the manual and mend one fault at a time.",
    hints=(
        "One fault is about which index the fast x is. The other is in `tmp = 0.0`: what type is that in a "
        "kernel?",
        "x is to be the column: the first of the two that `cuda.grid(2)` gives. The guard compares each "
        "index with the length of its own axis of C.",
        "`j, i = cuda.grid(2)` and `tmp = float32(0)`; all the rest stays.",
    ),
)
def documentation_matmul(matmul):
    """The kernel matmul(A, B, C) of Numba's manual without its two faults; blocks of (32, 4) threads."""
    return prove_repaired(matmul)


@exercise(
    "02.3",
    start="hand over a shape `(x, y)` with `x * y` = 256, such as `check.best_block((32, 8))`.",
    hints=(
        "A warp is 32 threads, whatever the block. Which patch of C do they cover: how many rows, how many "
        "columns?",
        "A takes a sector for each row of the patch. B takes one for every 8 columns of it.",
        "1 row of 32: 1 + 4. 4 rows of 8: 4 + 1. What lies between the two?",
    ),
)
def best_block(shape):
    """The block (x, y) of 256 threads with which naive_coalesced moves the fewest sectors of A and B."""
    return prove_block(shape)


@exercise(
    "02.4",
    start="how many floats are in a sector of 32 bytes, and which is the next multiple of it after 333?",
    hints=(
        "A sector holds 8 floats. Every row starts at a sector if the row length is a multiple of 8.",
        "`-(-n // 8) * 8` rounds n up to a multiple of 8, and leaves multiples as they are.",
        "Make an array of zeros with `B.shape[0]` rows of that length and of dtype `np.float32`, copy B into "
        "its first columns, and return it whole: a slice of it would have the old `.shape[1]` again.",
    ),
)
def leading_dimension(padded):
    """padded(B) -> C-contiguous float32, its first columns B, its every row at the start of a sector."""
    return prove_padding(padded)
