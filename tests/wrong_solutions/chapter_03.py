"""Answers to the exercises of notebook 03 that people really give, and that must be refused."""

from numba import cuda, float32, float64, int32
from tests.wrong_solutions.collect import collector

WRONG, wrong = collector("first_loads", "reverse", "tile_kernel", "barriers", "smallest_failing_shape")


# ---- 03.1 ------------------------------------------------------------------------------------------------

WRONG["first_loads"] = {
    "x_and_y_exchanged": (
        [("A", 3, 0), ("B", 1, 0), ("A", 3, 2), ("B", 3, 0)],
        "thread (0, 1) of block (0, 1)",
    ),
    "thread_exchanged": (
        [("A", 1, 0), ("B", 1, 2), ("A", 1, 2), ("B", 3, 2)],
        "thread (0, 1) of block (1, 0)",
    ),
    "block_exchanged": (
        [("A", 2, 1), ("B", 0, 1), ("A", 2, 3), ("B", 2, 1)],
        "thread (1, 0) of block (0, 1)",
    ),
    "block_forgotten": (
        [("A", 0, 1), ("B", 0, 1), ("A", 0, 3), ("B", 2, 1)],
        "thread (1, 0) of block (0, 0)",
    ),
    "same_tile_twice": (
        [("A", 0, 1), ("B", 0, 3), ("A", 0, 1), ("B", 0, 3)],
        "same tiles twice",
    ),
    "offset_on_the_wrong_axis": (
        [("A", 0, 1), ("B", 0, 3), ("A", 2, 1), ("B", 0, 5)],
        "wrong axis",
    ),
    "eight_naive_loads": (
        [
            ("A", 0, 0),
            ("B", 0, 3),
            ("A", 0, 1),
            ("B", 1, 3),
            ("A", 0, 2),
            ("B", 2, 3),
            ("A", 0, 3),
            ("B", 3, 3),
        ],
        "without tiles",
    ),
    "first_a_then_b": (
        [("A", 0, 1), ("A", 0, 3), ("B", 0, 3), ("B", 2, 3)],
        "other order",
    ),
    "column_before_row": (
        [("A", 1, 0), ("B", 3, 0), ("A", 3, 0), ("B", 3, 2)],
        "row comes first",
    ),
    "only_the_first_tile": (
        [("A", 0, 1), ("B", 0, 3)],
        "two more",
    ),
    "no_tuples": (["A[0, 1]", "B[0, 3]", "A[0, 3]", "B[2, 3]"], '("A", row, column)'),
}


# ---- 03.2 ------------------------------------------------------------------------------------------------


@wrong("reverse", "an argument")
def length_as_an_argument(T):
    @cuda.jit
    def reverse(a, out, T):
        tile = cuda.shared.array(T, float32)
        t, first = cuda.threadIdx.x, cuda.blockIdx.x * T
        tile[t] = a[first + t]
        cuda.syncthreads()
        out[first + t] = tile[T - 1 - t]

    return reverse


@wrong("reverse", "blockDim")
def length_from_the_block(T):
    @cuda.jit
    def reverse(a, out):
        tile = cuda.shared.array(cuda.blockDim.x, float32)
        t, first = cuda.threadIdx.x, cuda.blockIdx.x * cuda.blockDim.x
        tile[t] = a[first + t]
        cuda.syncthreads()
        out[first + t] = tile[cuda.blockDim.x - 1 - t]

    return reverse


@wrong("reverse", "shape of a")
def length_of_the_array(T):
    @cuda.jit
    def reverse(a, out):
        tile = cuda.shared.array(a.shape[0], float32)
        t, first = cuda.threadIdx.x, cuda.blockIdx.x * T
        tile[t] = a[first + t]
        cuda.syncthreads()
        out[first + t] = tile[T - 1 - t]

    return reverse


@wrong("reverse", "cast does not make it a constant")
def length_cast(T):
    @cuda.jit
    def reverse(a, out):
        tile = cuda.shared.array(int32(cuda.blockDim.x), float32)
        t, first = cuda.threadIdx.x, cuda.blockIdx.x * T
        tile[t] = a[first + t]
        cuda.syncthreads()
        out[first + t] = tile[T - 1 - t]

    return reverse


@wrong("reverse", "32 is written out")
def thirty_two_written_out(T):
    @cuda.jit
    def reverse(a, out):
        tile = cuda.shared.array(32, float32)
        t, first = cuda.threadIdx.x, cuda.blockIdx.x * 32
        tile[t] = a[first + t]
        cuda.syncthreads()
        out[first + t] = tile[31 - t]

    return reverse


@wrong("reverse", "larger than")
def always_the_largest(T):
    @cuda.jit
    def reverse(a, out):
        tile = cuda.shared.array(1024, float32)
        t, first = cuda.threadIdx.x, cuda.blockIdx.x * T
        tile[t] = a[first + t]
        cuda.syncthreads()
        out[first + t] = tile[T - 1 - t]

    return reverse


@wrong("reverse", "no barrier")
def no_barrier(T):
    @cuda.jit
    def reverse(a, out):
        tile = cuda.shared.array(T, float32)
        t, first = cuda.threadIdx.x, cuda.blockIdx.x * T
        tile[t] = a[first + t]
        out[first + t] = tile[T - 1 - t]

    return reverse


@wrong("reverse", "before the store")
def barrier_too_early(T):
    @cuda.jit
    def reverse(a, out):
        tile = cuda.shared.array(T, float32)
        t, first = cuda.threadIdx.x, cuda.blockIdx.x * T
        cuda.syncthreads()
        tile[t] = a[first + t]
        out[first + t] = tile[T - 1 - t]

    return reverse


@wrong("reverse", "whole array")
def reverses_the_whole_array(T):
    @cuda.jit
    def reverse(a, out):
        tile = cuda.shared.array(T, float32)
        t = cuda.threadIdx.x
        tile[t] = a[a.shape[0] - 1 - (cuda.blockIdx.x * T + t)]
        cuda.syncthreads()
        out[cuda.blockIdx.x * T + t] = tile[t]

    return reverse


@wrong("reverse", "no shared memory")
def without_shared_memory(T):
    @cuda.jit
    def reverse(a, out):
        t, first = cuda.threadIdx.x, cuda.blockIdx.x * T
        out[first + t] = a[first + T - 1 - t]

    return reverse


@wrong("reverse", "its own element")
def every_thread_for_itself(T):
    @cuda.jit
    def reverse(a, out):
        tile = cuda.shared.array(T, float32)
        t, first = cuda.threadIdx.x, cuda.blockIdx.x * T
        tile[t] = a[first + T - 1 - t]
        cuda.syncthreads()
        out[first + t] = tile[t]

    return reverse


@wrong("reverse", "T - 1 - t")
def one_too_far(T):
    @cuda.jit
    def reverse(a, out):
        tile = cuda.shared.array(T, float32)
        t, first = cuda.threadIdx.x, cuda.blockIdx.x * T
        tile[t] = a[first + t]
        cuda.syncthreads()
        out[first + t] = tile[T - t]

    return reverse


@wrong("reverse", "block index")
def first_block_only(T):
    @cuda.jit
    def reverse(a, out):
        tile = cuda.shared.array(T, float32)
        t = cuda.threadIdx.x
        tile[t] = a[t]
        cuda.syncthreads()
        out[t] = tile[T - 1 - t]

    return reverse


@wrong("reverse", "twice")
def reversed_twice(T):
    @cuda.jit
    def reverse(a, out):
        tile = cuda.shared.array(T, float32)
        t, first = cuda.threadIdx.x, cuda.blockIdx.x * T
        tile[T - 1 - t] = a[first + t]
        cuda.syncthreads()
        out[first + t] = tile[T - 1 - t]

    return reverse


@wrong("reverse", "every thread fetches the whole tile")
def every_thread_fetches_all(T):
    @cuda.jit
    def reverse(a, out):
        tile = cuda.shared.array(T, float32)
        t, first = cuda.threadIdx.x, cuda.blockIdx.x * T
        for i in range(T):
            tile[i] = a[first + i]
        cuda.syncthreads()
        out[first + t] = tile[T - 1 - t]

    return reverse


@wrong("reverse", "@cuda.jit")
def not_compiled(T):
    def reverse(a, out):
        tile = cuda.shared.array(T, float32)
        t, first = cuda.threadIdx.x, cuda.blockIdx.x * T
        tile[t] = a[first + t]
        cuda.syncthreads()
        out[first + t] = tile[T - 1 - t]

    return reverse


# ---- 03.3 ------------------------------------------------------------------------------------------------


@wrong("tile_kernel", "second barrier")
def second_barrier_missing(T):
    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        for k0 in range(0, k, T):
            As[ty, tx] = A[row, k0 + tx] if row < m and k0 + tx < k else float32(0)
            Bs[ty, tx] = B[k0 + ty, col] if k0 + ty < k and col < n else float32(0)
            cuda.syncthreads()
            for p in range(T):
                acc += As[ty, p] * Bs[p, tx]
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return tiled


@wrong("tile_kernel", "first barrier")
def first_barrier_missing(T):
    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        for k0 in range(0, k, T):
            As[ty, tx] = A[row, k0 + tx] if row < m and k0 + tx < k else float32(0)
            Bs[ty, tx] = B[k0 + ty, col] if k0 + ty < k and col < n else float32(0)
            for p in range(T):
                acc += As[ty, p] * Bs[p, tx]
            cuda.syncthreads()
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return tiled


@wrong("tile_kernel", "no barrier at all")
def no_barriers(T):
    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        for k0 in range(0, k, T):
            As[ty, tx] = A[row, k0 + tx] if row < m and k0 + tx < k else float32(0)
            Bs[ty, tx] = B[k0 + ty, col] if k0 + ty < k and col < n else float32(0)
            for p in range(T):
                acc += As[ty, p] * Bs[p, tx]
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return tiled


@wrong("tile_kernel", "return")
def returns_early(T):
    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        if row >= m or col >= n:
            return
        acc = float32(0)
        for k0 in range(0, k, T):
            As[ty, tx] = A[row, k0 + tx] if k0 + tx < k else float32(0)
            Bs[ty, tx] = B[k0 + ty, col] if k0 + ty < k else float32(0)
            cuda.syncthreads()
            for p in range(T):
                acc += As[ty, p] * Bs[p, tx]
            cuda.syncthreads()
        C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return tiled


@wrong("tile_kernel", "inside an `if`")
def barriers_in_a_branch(T):
    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        for k0 in range(0, k, T):
            if row < m and col < n:
                As[ty, tx] = A[row, k0 + tx] if k0 + tx < k else float32(0)
                Bs[ty, tx] = B[k0 + ty, col] if k0 + ty < k else float32(0)
                cuda.syncthreads()
                for p in range(T):
                    acc += As[ty, p] * Bs[p, tx]
                cuda.syncthreads()
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return tiled


@wrong("tile_kernel", "past the end of k")
def no_zeros_past_k(T):
    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        for k0 in range(0, k, T):
            As[ty, tx] = A[row, k0 + tx] if row < m else float32(0)
            Bs[ty, tx] = B[k0 + ty, col] if col < n else float32(0)
            cuda.syncthreads()
            for p in range(T):
                acc += As[ty, p] * Bs[p, tx]
            cuda.syncthreads()
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return tiled


@wrong("tile_kernel", "never filled")
def nothing_stored_outside(T):
    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        for k0 in range(0, k, T):
            if row < m and k0 + tx < k:
                As[ty, tx] = A[row, k0 + tx]
            if k0 + ty < k and col < n:
                Bs[ty, tx] = B[k0 + ty, col]
            cuda.syncthreads()
            for p in range(T):
                acc += As[ty, p] * Bs[p, tx]
            cuda.syncthreads()
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return tiled


@wrong("tile_kernel", "tile before")
def cleared_only_once(T):
    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        As[ty, tx] = float32(0)
        Bs[ty, tx] = float32(0)
        acc = float32(0)
        for k0 in range(0, k, T):
            if row < m and k0 + tx < k:
                As[ty, tx] = A[row, k0 + tx]
            if k0 + ty < k and col < n:
                Bs[ty, tx] = B[k0 + ty, col]
            cuda.syncthreads()
            for p in range(T):
                acc += As[ty, p] * Bs[p, tx]
            cuda.syncthreads()
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return tiled


@wrong("tile_kernel", "gridDim.x")
def as_many_tiles_as_blocks(T):
    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        for i in range(cuda.gridDim.x):
            k0 = i * T
            As[ty, tx] = A[row, k0 + tx] if row < m and k0 + tx < k else float32(0)
            Bs[ty, tx] = B[k0 + ty, col] if k0 + ty < k and col < n else float32(0)
            cuda.syncthreads()
            for p in range(T):
                acc += As[ty, p] * Bs[p, tx]
            cuda.syncthreads()
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return tiled


@wrong("tile_kernel", "k // T")
def whole_tiles_only(T):
    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        for i in range(k // T):
            As[ty, tx] = A[row, i * T + tx] if row < m else float32(0)
            Bs[ty, tx] = B[i * T + ty, col] if col < n else float32(0)
            cuda.syncthreads()
            for p in range(T):
                acc += As[ty, p] * Bs[p, tx]
            cuda.syncthreads()
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return tiled


@wrong("tile_kernel", "As[tx, p]")
def wrong_row_of_the_tile(T):
    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        for k0 in range(0, k, T):
            As[ty, tx] = A[row, k0 + tx] if row < m and k0 + tx < k else float32(0)
            Bs[ty, tx] = B[k0 + ty, col] if k0 + ty < k and col < n else float32(0)
            cuda.syncthreads()
            for p in range(T):
                acc += As[tx, p] * Bs[p, tx]
            cuda.syncthreads()
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return tiled


@wrong("tile_kernel", "bank conflict")
def tile_of_b_transposed(T):
    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        for k0 in range(0, k, T):
            As[ty, tx] = A[row, k0 + tx] if row < m and k0 + tx < k else float32(0)
            Bs[tx, ty] = B[k0 + ty, col] if k0 + ty < k and col < n else float32(0)
            cuda.syncthreads()
            for p in range(T):
                acc += As[ty, p] * Bs[tx, p]
            cuda.syncthreads()
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return tiled


@wrong("tile_kernel", "when it is stored")
def tile_of_a_transposed(T):
    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        for k0 in range(0, k, T):
            As[tx, ty] = A[row, k0 + tx] if row < m and k0 + tx < k else float32(0)
            Bs[ty, tx] = B[k0 + ty, col] if k0 + ty < k and col < n else float32(0)
            cuda.syncthreads()
            for p in range(T):
                acc += As[p, ty] * Bs[p, tx]
            cuda.syncthreads()
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return tiled


@wrong("tile_kernel", "not fetched coalesced")
def fetches_down_the_columns(T):
    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        a_row = cuda.blockIdx.y * T + tx
        acc = float32(0)
        for k0 in range(0, k, T):
            As[tx, ty] = A[a_row, k0 + ty] if a_row < m and k0 + ty < k else float32(0)
            Bs[ty, tx] = B[k0 + ty, col] if k0 + ty < k and col < n else float32(0)
            cuda.syncthreads()
            for p in range(T):
                acc += As[ty, p] * Bs[p, tx]
            cuda.syncthreads()
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return tiled


@wrong("tile_kernel", "no shared memory")
def still_naive(T):
    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        col, row = cuda.grid(2)
        if row < m and col < n:
            acc = float32(0)
            for p in range(k):
                acc += A[row, p] * B[p, col]
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return tiled


@wrong("tile_kernel", "past the tiles")
def tiles_filled_but_not_used(T):
    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        for k0 in range(0, k, T):
            As[ty, tx] = A[row, k0 + tx] if row < m and k0 + tx < k else float32(0)
            Bs[ty, tx] = B[k0 + ty, col] if k0 + ty < k and col < n else float32(0)
            cuda.syncthreads()
            if row < m and col < n:
                for p in range(min(T, k - k0)):
                    acc += A[row, k0 + p] * B[k0 + p, col]
            cuda.syncthreads()
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return tiled


@wrong("tile_kernel", "only A")
def only_a_in_a_tile(T):
    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        for k0 in range(0, k, T):
            As[ty, tx] = A[row, k0 + tx] if row < m and k0 + tx < k else float32(0)
            cuda.syncthreads()
            if col < n:
                for p in range(min(T, k - k0)):
                    acc += As[ty, p] * B[k0 + p, col]
            cuda.syncthreads()
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return tiled


@wrong("tile_kernel", "written out")
def sixteen_written_out(T):
    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((16, 16), float32)
        Bs = cuda.shared.array((16, 16), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        for k0 in range(0, k, 16):
            As[ty, tx] = A[row, k0 + tx] if row < m and k0 + tx < k else float32(0)
            Bs[ty, tx] = B[k0 + ty, col] if k0 + ty < k and col < n else float32(0)
            cuda.syncthreads()
            for p in range(16):
                acc += As[ty, p] * Bs[p, tx]
            cuda.syncthreads()
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return tiled


@wrong("tile_kernel", "float64")
def double_accumulator(T):
    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = 0.0
        for k0 in range(0, k, T):
            As[ty, tx] = A[row, k0 + tx] if row < m and k0 + tx < k else float32(0)
            Bs[ty, tx] = B[k0 + ty, col] if k0 + ty < k and col < n else float32(0)
            cuda.syncthreads()
            for p in range(T):
                acc += As[ty, p] * Bs[p, tx]
            cuda.syncthreads()
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return tiled


@wrong("tile_kernel", "8 bytes an element")
def tiles_of_float64(T):
    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float64)
        Bs = cuda.shared.array((T, T), float64)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        for k0 in range(0, k, T):
            As[ty, tx] = A[row, k0 + tx] if row < m and k0 + tx < k else float32(0)
            Bs[ty, tx] = B[k0 + ty, col] if k0 + ty < k and col < n else float32(0)
            cuda.syncthreads()
            for p in range(T):
                acc += float32(As[ty, p]) * float32(Bs[p, tx])
            cuda.syncthreads()
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return tiled


@wrong("tile_kernel", "T + 1 barriers a tile")
def as_in_document_002(T):
    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        for k0 in range(0, k, T):
            As[ty, tx] = A[row, k0 + tx] if row < m and k0 + tx < k else float32(0)
            Bs[ty, tx] = B[k0 + ty, col] if k0 + ty < k and col < n else float32(0)
            cuda.syncthreads()
            for p in range(T):
                acc += As[ty, p] * Bs[p, tx]
                cuda.syncthreads()
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return tiled


@wrong("tile_kernel", "one barrier more")
def a_third_barrier(T):
    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        for k0 in range(0, k, T):
            As[ty, tx] = A[row, k0 + tx] if row < m and k0 + tx < k else float32(0)
            cuda.syncthreads()
            Bs[ty, tx] = B[k0 + ty, col] if k0 + ty < k and col < n else float32(0)
            cuda.syncthreads()
            for p in range(T):
                acc += As[ty, p] * Bs[p, tx]
            cuda.syncthreads()
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return tiled


@wrong("tile_kernel", "guard has its sizes exchanged")
def last_guard_exchanged(T):
    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        for k0 in range(0, k, T):
            As[ty, tx] = A[row, k0 + tx] if row < m and k0 + tx < k else float32(0)
            Bs[ty, tx] = B[k0 + ty, col] if k0 + ty < k and col < n else float32(0)
            cuda.syncthreads()
            for p in range(T):
                acc += As[ty, p] * Bs[p, tx]
            cuda.syncthreads()
        if row < n and col < m:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return tiled


@wrong("tile_kernel", "A[row, k0 + ty]")
def tile_of_a_from_a_column(T):
    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        for k0 in range(0, k, T):
            As[ty, tx] = A[row, k0 + ty] if row < m and k0 + ty < k else float32(0)
            Bs[ty, tx] = B[k0 + ty, col] if k0 + ty < k and col < n else float32(0)
            cuda.syncthreads()
            for p in range(T):
                acc += As[ty, p] * Bs[p, tx]
            cuda.syncthreads()
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return tiled


@wrong("tile_kernel", "Only the last tile along k counts")
def accumulator_reset(T):
    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        for k0 in range(0, k, T):
            acc = float32(0)
            As[ty, tx] = A[row, k0 + tx] if row < m and k0 + tx < k else float32(0)
            Bs[ty, tx] = B[k0 + ty, col] if k0 + ty < k and col < n else float32(0)
            cuda.syncthreads()
            for p in range(T):
                acc += As[ty, p] * Bs[p, tx]
            cuda.syncthreads()
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return tiled


@wrong("tile_kernel", "0 times NaN")
def reads_c_always(T):
    @cuda.jit
    def tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((T, T), float32)
        Bs = cuda.shared.array((T, T), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col, row = cuda.grid(2)
        acc = float32(0)
        for k0 in range(0, k, T):
            As[ty, tx] = A[row, k0 + tx] if row < m and k0 + tx < k else float32(0)
            Bs[ty, tx] = B[k0 + ty, col] if k0 + ty < k and col < n else float32(0)
            cuda.syncthreads()
            for p in range(T):
                acc += As[ty, p] * Bs[p, tx]
            cuda.syncthreads()
        if row < m and col < n:
            C[row, col] = alpha * acc + beta * C[row, col]

    return tiled


# ---- 03.4 ------------------------------------------------------------------------------------------------


@wrong("barriers", "two outside")
def two_and_t_a_tile(n, T):
    return (n // T) * (T + 2), 2 * (n // T)


@wrong("barriers", "all threads of the block")
def once_for_every_thread(n, T):
    return T * T * (n // T) * (T + 1), T * T * 2 * (n // T)


@wrong("barriers", "before the inner loop")
def inner_loop_only(n, T):
    return (n // T) * T, 2 * (n // T)


@wrong("barriers", "one a tile")
def one_is_enough(n, T):
    return (n // T) * (T + 1), n // T


@wrong("barriers", "none at all")
def none_is_enough(n, T):
    return (n // T) * (T + 1), 0


@wrong("barriers", "other way round")
def enough_comes_first(n, T):
    return 2 * (n // T), (n // T) * (T + 1)


@wrong("barriers", "all blocks")
def summed_over_blocks(n, T):
    return (n // T) ** 3 * (T + 1), 2 * (n // T) ** 3


@wrong("barriers", "one tile")
def one_tile_only(n, T):
    return T + 1, 2


@wrong("barriers", "as they stand in the source")
def lines_of_source(n, T):
    return 2 * (n // T), 2 * (n // T)


@wrong("barriers", "two numbers")
def a_single_number(n, T):
    return (n // T) * (T + 1)


# ---- 03.5 ------------------------------------------------------------------------------------------------

RIGHT_SHAPES = {"a": (1, 1, 1), "b": (1, 1, 5), "c": (2, 1, 1), "d": (1, 1, 5)}

WRONG["smallest_failing_shape"] = {
    "a_multiple_of_the_tile": (RIGHT_SHAPES | {"a": (4, 4, 4)}, "multiple of T"),
    "a_not_the_smallest": (RIGHT_SHAPES | {"a": (4, 4, 5)}, "smaller"),
    "a_nothing_to_add_up": (RIGHT_SHAPES | {"a": (1, 1, 0)}, "at least 1"),
    "b_fits_one_tile": (RIGHT_SHAPES | {"b": (1, 1, 1)}, "only one tile"),
    "b_square": (RIGHT_SHAPES | {"b": (8, 8, 8)}, "as many"),
    "b_not_the_smallest": (RIGHT_SHAPES | {"b": (4, 4, 8)}, "suspect b"),
    "c_square": (RIGHT_SHAPES | {"c": (3, 3, 1)}, "m and n are equal"),
    "c_not_the_smallest": (RIGHT_SHAPES | {"c": (5, 4, 1)}, "suspect c"),
    "d_one_tile": (RIGHT_SHAPES | {"d": (1, 1, 3)}, "first tile"),
    "d_whole_tiles": (RIGHT_SHAPES | {"d": (1, 1, 8)}, "whole"),
    "d_not_the_smallest": (RIGHT_SHAPES | {"d": (4, 4, 6)}, "suspect d"),
    "c_and_d_exchanged": (RIGHT_SHAPES | {"c": (1, 1, 5), "d": (2, 1, 1)}, "exchanged"),
    "no_shape": (RIGHT_SHAPES | {"a": 1}, "three whole numbers"),
}
