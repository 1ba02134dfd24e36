"""Exercises of notebook 03: tiles in shared memory. Each is proved in a module of its own."""

from gemm_course.checks.ch03.barriers import prove_barriers
from gemm_course.checks.ch03.first_loads import prove_first_loads
from gemm_course.checks.ch03.reverse import prove_reversal
from gemm_course.checks.ch03.smallest_failing_shape import prove_shapes
from gemm_course.checks.ch03.tile_kernel import prove_tiled
from gemm_course.checks.core import exercise


@exercise(
    "03.1",
    start='write down the first load as `("A", row, column)`. Which element of C does this thread compute?',
    hints=(
        "x counts columns, y counts rows. The thread's element of C is in row `2 * 0 + 0` and column `2 * 1 "
        "+ 1`.",
        "Of every tile of A it loads the element at its own place: its row of C, column `2 * tile + 1`. Of "
        "every tile of B: row `2 * tile + 0`, its column of C.",
        "There are two tiles along k, and of each it loads first from A, then from B.",
        'It starts with `("A", 0, 1)` and `("B", 0, 3)`. For the second tile the column in A and the row in '
        "B grow by 2.",
    ),
)
def first_loads(loads):
    """Four loads ("A" or "B", row, column) of thread (1, 0) in block (1, 0): 4 x 4 matrices, 2 x 2 tiles."""
    return prove_first_loads(loads)


@exercise(
    "03.2",
    start="declare the tile with `cuda.shared.array(T, float32)`; `T` comes from the function around the "
    "kernel.",
    hints=(
        "Three steps: store your element of `a` into the tile, wait for all, read another thread's element.",
        "With `t = cuda.threadIdx.x` and `first = cuda.blockIdx.x * T`, the thread's element of `a` and of "
        "`out` has the index `first + t`.",
        "The element to read after `cuda.syncthreads()` is `tile[T - 1 - t]`.",
    ),
)
def reverse(make_reverse):
    """A factory of kernels (a, out), each of whose blocks reverses its T elements through shared memory."""
    return prove_reversal(make_reverse)


@exercise(
    "03.3",
    start="declare two tiles of T by T with `cuda.shared.array`, then loop over k in steps of T.",
    hints=(
        "In every turn of the loop over `k0`: fetch one element of A and one of B into the tiles, wait, add "
        "up T products from the tiles, wait.",
        "All threads must reach both barriers, also those outside C. So no `return` and no `if` around them: "
        "a thread outside the matrix stores a zero into the tile instead.",
        "`As[ty, tx]` takes `A[row, k0 + tx]` and `Bs[ty, tx]` takes `B[k0 + ty, col]`, each with a zero "
        "where one of its two indices is past the end. The products are `As[ty, p] * Bs[p, tx]`.",
        "`for k0 in range(0, k, T):` two stores, `cuda.syncthreads()`, `for p in range(T):` one "
        "multiply-add, `cuda.syncthreads()`. After the loop, inside the guard, the store of C as in "
        "notebook 02.",
    ),
)
def tile_kernel(make_tiled):
    """A factory of GEMM kernels with tiles of T by T in shared memory."""
    return prove_tiled(make_tiled)


@exercise(
    "03.4",
    start="count the barriers of one tile first, then multiply by the number of tiles.",
    hints=(
        "A block executes a barrier once, however many threads wait there. How often does it come past each "
        "of the two?",
        "The loop over `i` turns `n // T` times. In every turn there is one barrier before the inner loop "
        "and one in each of its T turns.",
        "Enough are two a tile: one when the tiles are complete, one when nobody needs them any more.",
    ),
)
def barriers(barriers):
    """barriers(n, T) -> (those of document 002's kernel, those that are enough), for one block."""
    return prove_barriers(barriers)


@exercise(
    "03.5",
    start="take suspect a, and ask what it does with the last, incomplete tile along k.",
    hints=(
        "In each kernel find the line that differs from a sound one: how many tiles, what is stored where "
        "the matrix has ended, which guard.",
        "a goes through whole tiles only. b goes through as many tiles along k as there are blocks along x. "
        "c has m and n exchanged in its last guard. d leaves in the tile what was there before.",
        "So a needs an incomplete tile; b more tiles along k than blocks along x; c m and n that differ; d a "
        "complete tile followed by an incomplete one.",
        "Then shrink: a size that does not matter can be 1. The products are 1, 5, 2 and 5.",
    ),
)
def smallest_failing_shape(a=None, b=None, c=None, d=None):
    """For each suspect a shape (m, n, k) that shows its fault, with the smallest m * n * k; T is 4."""
    return prove_shapes(dict(zip("abcd", (a, b, c, d))))
