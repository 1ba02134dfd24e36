"""Answers to the exercises of notebook 04 that people really give, and that must be refused."""

from numba import cuda, float32, float64
from tests.wrong_solutions.collect import collector

WRONG, wrong = collector("reads_per_result", "thread_columns", "tile_sectors", "in_registers")


# ---- 04.1 ------------------------------------------------------------------------------------------------

WRONG["reads_per_result"] = {
    "per_multiply_add": (lambda BK, TM: 1 + 1 / TM, "per multiply-add"),
    "without_thread_tiles": (lambda BK, TM: 2 * BK, "one result reads"),
    "of_the_whole_thread": (lambda BK, TM: BK + BK * TM, "the whole thread reads"),
    "all_divided": (lambda BK, TM: 2 * BK / TM, "divides all reads"),
    "global_counted_in": (lambda BK, TM: BK + BK / TM + BK / 16, "global memory"),
    "as_forgotten": (lambda BK, TM: BK / TM, "reads of As are missing"),
    "bs_forgotten": (lambda BK, TM: BK, "reads of Bs are missing"),
    "one_step": (lambda BK, TM: 1 + TM, "one step along k"),
    "the_other_way_round": (lambda BK, TM: BK * TM + BK / TM, "other way round"),
    "words": (lambda BK, TM: "BK + BK/TM", "A number is wanted"),
}


# ---- 04.3 ------------------------------------------------------------------------------------------------

WRONG["tile_sectors"] = {
    "more_rows_more_sectors": (lambda BK: 32 // BK, "Only the rows are counted"),
    "one_a_lane": (lambda BK: 32, "one for each lane"),
    "always_four": (lambda BK: 4, "4 sectors hold 32 floats"),
    "of_one_row": (lambda BK: -(-BK // 8), "one row of the tile"),
    "depth": (lambda BK: BK, "deeper tile"),
    "a_row_of_the_tile_each": (lambda BK: 64, "only 32 lanes"),
    "lines": (lambda BK: max(1, 4 * BK // 128), "bytes of a line"),
    "a_fraction": (lambda BK: 32 / BK * BK / 8, "whole number"),
}


# ---- 04.2 ------------------------------------------------------------------------------------------------


@wrong("thread_columns", "2 reads a")
def b_read_for_every_result(BM, BN, BK, TM):
    THREADS = BM * BN // TM

    @cuda.jit
    def column(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        acc = cuda.local.array(TM, float32)
        for i in range(TM):
            acc[i] = 0
        for k0 in range(0, k, BK):
            for e in range(ty * BN + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * BN + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in range(BK):
                for i in range(TM):
                    acc[i] += As[ty * TM + i, p] * Bs[p, tx]
            cuda.syncthreads()
        for i in range(TM):
            row, col = row0 + ty * TM + i, col0 + tx
            if row < m and col < n:
                C[row, col] = alpha * acc[i] + beta * C[row, col] if beta != 0 else alpha * acc[i]

    return column


@wrong("thread_columns", "more often than needed")
def a_read_twice(BM, BN, BK, TM):
    THREADS = BM * BN // TM

    @cuda.jit
    def column(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        acc = cuda.local.array(TM, float32)
        for i in range(TM):
            acc[i] = 0
        for k0 in range(0, k, BK):
            for e in range(ty * BN + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * BN + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in range(BK):
                b = Bs[p, tx]
                for i in range(TM):
                    if As[ty * TM + i, p] != 0:
                        acc[i] += As[ty * TM + i, p] * b
            cuda.syncthreads()
        for i in range(TM):
            row, col = row0 + ty * TM + i, col0 + tx
            if row < m and col < n:
                C[row, col] = alpha * acc[i] + beta * C[row, col] if beta != 0 else alpha * acc[i]

    return column


@wrong("thread_columns", "summed up in one")
def one_accumulator(BM, BN, BK, TM):
    THREADS = BM * BN // TM

    @cuda.jit
    def column(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        acc = float32(0)
        for k0 in range(0, k, BK):
            for e in range(ty * BN + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * BN + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in range(BK):
                b = Bs[p, tx]
                for i in range(TM):
                    acc += As[ty * TM + i, p] * b
            cuda.syncthreads()
        for i in range(TM):
            row, col = row0 + ty * TM + i, col0 + tx
            if row < m and col < n:
                C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return column


@wrong("thread_columns", "neighbours' as well")
def rows_overlap_in_the_tile(BM, BN, BK, TM):
    THREADS = BM * BN // TM

    @cuda.jit
    def column(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        acc = cuda.local.array(TM, float32)
        for i in range(TM):
            acc[i] = 0
        for k0 in range(0, k, BK):
            for e in range(ty * BN + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * BN + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in range(BK):
                b = Bs[p, tx]
                for i in range(TM):
                    acc[i] += As[ty + i, p] * b
            cuda.syncthreads()
        for i in range(TM):
            row, col = row0 + ty * TM + i, col0 + tx
            if row < m and col < n:
                C[row, col] = alpha * acc[i] + beta * C[row, col] if beta != 0 else alpha * acc[i]

    return column


@wrong("thread_columns", "The rows of C overlap")
def rows_overlap(BM, BN, BK, TM):
    THREADS = BM * BN // TM

    @cuda.jit
    def column(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        acc = cuda.local.array(TM, float32)
        for i in range(TM):
            acc[i] = 0
        for k0 in range(0, k, BK):
            for e in range(ty * BN + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * BN + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in range(BK):
                b = Bs[p, tx]
                for i in range(TM):
                    acc[i] += As[ty + i, p] * b
            cuda.syncthreads()
        for i in range(TM):
            row, col = row0 + ty + i, col0 + tx
            if row < m and col < n:
                C[row, col] = alpha * acc[i] + beta * C[row, col] if beta != 0 else alpha * acc[i]

    return column


@wrong("thread_columns", "the same row of As")
def always_the_first_row(BM, BN, BK, TM):
    THREADS = BM * BN // TM

    @cuda.jit
    def column(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        acc = cuda.local.array(TM, float32)
        for i in range(TM):
            acc[i] = 0
        for k0 in range(0, k, BK):
            for e in range(ty * BN + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * BN + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in range(BK):
                b = Bs[p, tx]
                for i in range(TM):
                    acc[i] += As[ty * TM, p] * b
            cuda.syncthreads()
        for i in range(TM):
            row, col = row0 + ty * TM + i, col0 + tx
            if row < m and col < n:
                C[row, col] = alpha * acc[i] + beta * C[row, col] if beta != 0 else alpha * acc[i]

    return column


@wrong("thread_columns", "is `i` for all threads")
def row_without_the_thread(BM, BN, BK, TM):
    THREADS = BM * BN // TM

    @cuda.jit
    def column(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        acc = cuda.local.array(TM, float32)
        for i in range(TM):
            acc[i] = 0
        for k0 in range(0, k, BK):
            for e in range(ty * BN + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * BN + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in range(BK):
                b = Bs[p, tx]
                for i in range(TM):
                    acc[i] += As[i, p] * b
            cuda.syncthreads()
        for i in range(TM):
            row, col = row0 + ty * TM + i, col0 + tx
            if row < m and col < n:
                C[row, col] = alpha * acc[i] + beta * C[row, col] if beta != 0 else alpha * acc[i]

    return column


@wrong("thread_columns", "use row `ty`")
def row_of_one_result(BM, BN, BK, TM):
    THREADS = BM * BN // TM

    @cuda.jit
    def column(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        acc = cuda.local.array(TM, float32)
        for i in range(TM):
            acc[i] = 0
        for k0 in range(0, k, BK):
            for e in range(ty * BN + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * BN + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in range(BK):
                b = Bs[p, tx]
                for i in range(TM):
                    acc[i] += As[ty, p] * b
            cuda.syncthreads()
        for i in range(TM):
            row, col = row0 + ty * TM + i, col0 + tx
            if row < m and col < n:
                C[row, col] = alpha * acc[i] + beta * C[row, col] if beta != 0 else alpha * acc[i]

    return column


@wrong("thread_columns", "starts anew")
def starts_anew_in_every_tile(BM, BN, BK, TM):
    THREADS = BM * BN // TM

    @cuda.jit
    def column(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        acc = cuda.local.array(TM, float32)
        for k0 in range(0, k, BK):
            for i in range(TM):
                acc[i] = 0
            for e in range(ty * BN + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * BN + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in range(BK):
                b = Bs[p, tx]
                for i in range(TM):
                    acc[i] += As[ty * TM + i, p] * b
            cuda.syncthreads()
        for i in range(TM):
            row, col = row0 + ty * TM + i, col0 + tx
            if row < m and col < n:
                C[row, col] = alpha * acc[i] + beta * C[row, col] if beta != 0 else alpha * acc[i]

    return column


@wrong("thread_columns", "as if a thread had one")
def the_old_grid(BM, BN, BK, TM):
    THREADS = BM * BN // TM

    @cuda.jit
    def column(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        acc = cuda.local.array(TM, float32)
        for i in range(TM):
            acc[i] = 0
        for k0 in range(0, k, BK):
            for e in range(ty * BN + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * BN + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in range(BK):
                b = Bs[p, tx]
                for i in range(TM):
                    acc[i] += As[ty * TM + i, p] * b
            cuda.syncthreads()
        for i in range(TM):
            col, row = cuda.grid(2)
            row += i
            if row < m and col < n:
                C[row, col] = alpha * acc[i] + beta * C[row, col] if beta != 0 else alpha * acc[i]

    return column


@wrong("thread_columns", "only the first is stored")
def stores_the_first_alone(BM, BN, BK, TM):
    THREADS = BM * BN // TM

    @cuda.jit
    def column(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        acc = cuda.local.array(TM, float32)
        for i in range(TM):
            acc[i] = 0
        for k0 in range(0, k, BK):
            for e in range(ty * BN + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * BN + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in range(BK):
                b = Bs[p, tx]
                for i in range(TM):
                    acc[i] += As[ty * TM + i, p] * b
            cuda.syncthreads()
        row, col = row0 + ty * TM, col0 + tx
        if row < m and col < n:
            C[row, col] = alpha * acc[0] + beta * C[row, col] if beta != 0 else alpha * acc[0]

    return column


@wrong("thread_columns", "only one of its results")
def stores_one_row_a_thread(BM, BN, BK, TM):
    THREADS = BM * BN // TM

    @cuda.jit
    def column(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        acc = cuda.local.array(TM, float32)
        for i in range(TM):
            acc[i] = 0
        for k0 in range(0, k, BK):
            for e in range(ty * BN + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * BN + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in range(BK):
                b = Bs[p, tx]
                for i in range(TM):
                    acc[i] += As[ty * TM + i, p] * b
            cuda.syncthreads()
        row, col = row0 + ty, col0 + tx
        if row < m and col < n:
            C[row, col] = alpha * acc[0] + beta * C[row, col] if beta != 0 else alpha * acc[0]

    return column


@wrong("thread_columns", "before anything was put into it")
def not_set_to_zero(BM, BN, BK, TM):
    THREADS = BM * BN // TM

    @cuda.jit
    def column(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        acc = cuda.local.array(TM, float32)
        for k0 in range(0, k, BK):
            for e in range(ty * BN + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * BN + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in range(BK):
                b = Bs[p, tx]
                for i in range(TM):
                    acc[i] += As[ty * TM + i, p] * b
            cuda.syncthreads()
        for i in range(TM):
            row, col = row0 + ty * TM + i, col0 + tx
            if row < m and col < n:
                C[row, col] = alpha * acc[i] + beta * C[row, col] if beta != 0 else alpha * acc[i]

    return column


@wrong("thread_columns", "cannot stay in registers")
def rotated_rows(BM, BN, BK, TM):
    THREADS = BM * BN // TM

    @cuda.jit
    def column(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        acc = cuda.local.array(TM, float32)
        for i in range(TM):
            acc[i] = 0
        for k0 in range(0, k, BK):
            for e in range(ty * BN + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * BN + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in range(BK):
                b = Bs[p, tx]
                for i in range(TM):
                    j = (i + tx) % TM
                    acc[j] += As[ty * TM + j, p] * b
            cuda.syncthreads()
        for i in range(TM):
            row, col = row0 + ty * TM + i, col0 + tx
            if row < m and col < n:
                C[row, col] = alpha * acc[i] + beta * C[row, col] if beta != 0 else alpha * acc[i]

    return column


@wrong("thread_columns", "belong into registers")
def results_in_shared_memory(BM, BN, BK, TM):
    THREADS = BM * BN // TM

    @cuda.jit
    def column(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        acc = cuda.shared.array((BM, BN), float32)
        for i in range(TM):
            acc[ty * TM + i, tx] = 0
        for k0 in range(0, k, BK):
            for e in range(ty * BN + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * BN + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in range(BK):
                b = Bs[p, tx]
                for i in range(TM):
                    acc[ty * TM + i, tx] += As[ty * TM + i, p] * b
            cuda.syncthreads()
        for i in range(TM):
            row, col = row0 + ty * TM + i, col0 + tx
            if row < m and col < n:
                C[row, col] = (
                    alpha * acc[ty * TM + i, tx] + beta * C[row, col]
                    if beta != 0
                    else alpha * acc[ty * TM + i, tx]
                )

    return column


@wrong("thread_columns", "kept in C itself")
def results_in_c(BM, BN, BK, TM):
    THREADS = BM * BN // TM

    @cuda.jit
    def column(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        for i in range(TM):
            if row0 + ty * TM + i < m and col0 + tx < n:
                old = C[row0 + ty * TM + i, col0 + tx]
                C[row0 + ty * TM + i, col0 + tx] = beta * old if beta != 0 else float32(0)
        for k0 in range(0, k, BK):
            for e in range(ty * BN + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * BN + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in range(BK):
                b = Bs[p, tx]
                for i in range(TM):
                    if row0 + ty * TM + i < m and col0 + tx < n:
                        C[row0 + ty * TM + i, col0 + tx] += alpha * As[ty * TM + i, p] * b
            cuda.syncthreads()

    return column


@wrong("thread_columns", "whole way along k")
def one_result_after_the_other(BM, BN, BK, TM):
    THREADS = BM * BN // TM

    @cuda.jit
    def column(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        for i in range(TM):
            acc = float32(0)
            for k0 in range(0, k, BK):
                for e in range(ty * BN + tx, BM * BK, THREADS):
                    r, c = e // BK, e % BK
                    As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
                for e in range(ty * BN + tx, BK * BN, THREADS):
                    r, c = e // BN, e % BN
                    Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
                cuda.syncthreads()
                for p in range(BK):
                    b = Bs[p, tx]
                    acc += As[ty * TM + i, p] * b
                cuda.syncthreads()
            row, col = row0 + ty * TM + i, col0 + tx
            if row < m and col < n:
                C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

    return column


@wrong("thread_columns", "There is no guard")
def no_guard(BM, BN, BK, TM):
    THREADS = BM * BN // TM

    @cuda.jit
    def column(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        acc = cuda.local.array(TM, float32)
        for i in range(TM):
            acc[i] = 0
        for k0 in range(0, k, BK):
            for e in range(ty * BN + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * BN + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in range(BK):
                b = Bs[p, tx]
                for i in range(TM):
                    acc[i] += As[ty * TM + i, p] * b
            cuda.syncthreads()
        for i in range(TM):
            row, col = row0 + ty * TM + i, col0 + tx
            C[row, col] = alpha * acc[i] + beta * C[row, col] if beta != 0 else alpha * acc[i]

    return column


@wrong("thread_columns", "Only the rows are guarded")
def only_rows_guarded(BM, BN, BK, TM):
    THREADS = BM * BN // TM

    @cuda.jit
    def column(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        acc = cuda.local.array(TM, float32)
        for i in range(TM):
            acc[i] = 0
        for k0 in range(0, k, BK):
            for e in range(ty * BN + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * BN + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in range(BK):
                b = Bs[p, tx]
                for i in range(TM):
                    acc[i] += As[ty * TM + i, p] * b
            cuda.syncthreads()
        for i in range(TM):
            row, col = row0 + ty * TM + i, col0 + tx
            if row < m:
                C[row, col] = alpha * acc[i] + beta * C[row, col] if beta != 0 else alpha * acc[i]

    return column


@wrong("thread_columns", "More than two barriers")
def a_third_barrier(BM, BN, BK, TM):
    THREADS = BM * BN // TM

    @cuda.jit
    def column(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        acc = cuda.local.array(TM, float32)
        for i in range(TM):
            acc[i] = 0
        for k0 in range(0, k, BK):
            for e in range(ty * BN + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * BN + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in range(BK):
                b = Bs[p, tx]
                for i in range(TM):
                    acc[i] += As[ty * TM + i, p] * b
            cuda.syncthreads()
            cuda.syncthreads()
        for i in range(TM):
            row, col = row0 + ty * TM + i, col0 + tx
            if row < m and col < n:
                C[row, col] = alpha * acc[i] + beta * C[row, col] if beta != 0 else alpha * acc[i]

    return column


@wrong("thread_columns", "second barrier is missing")
def no_second_barrier(BM, BN, BK, TM):
    THREADS = BM * BN // TM

    @cuda.jit
    def column(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        acc = cuda.local.array(TM, float32)
        for i in range(TM):
            acc[i] = 0
        for k0 in range(0, k, BK):
            for e in range(ty * BN + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * BN + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in range(BK):
                b = Bs[p, tx]
                for i in range(TM):
                    acc[i] += As[ty * TM + i, p] * b
        for i in range(TM):
            row, col = row0 + ty * TM + i, col0 + tx
            if row < m and col < n:
                C[row, col] = alpha * acc[i] + beta * C[row, col] if beta != 0 else alpha * acc[i]

    return column


@wrong("thread_columns", "first barrier is missing")
def no_first_barrier(BM, BN, BK, TM):
    THREADS = BM * BN // TM

    @cuda.jit
    def column(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        acc = cuda.local.array(TM, float32)
        for i in range(TM):
            acc[i] = 0
        for k0 in range(0, k, BK):
            for e in range(ty * BN + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * BN + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            for p in range(BK):
                b = Bs[p, tx]
                for i in range(TM):
                    acc[i] += As[ty * TM + i, p] * b
            cuda.syncthreads()
        for i in range(TM):
            row, col = row0 + ty * TM + i, col0 + tx
            if row < m and col < n:
                C[row, col] = alpha * acc[i] + beta * C[row, col] if beta != 0 else alpha * acc[i]

    return column


@wrong("thread_columns", "in float64")
def accumulates_in_float64(BM, BN, BK, TM):
    THREADS = BM * BN // TM

    @cuda.jit
    def column(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        acc = cuda.local.array(TM, float64)
        for i in range(TM):
            acc[i] = 0
        for k0 in range(0, k, BK):
            for e in range(ty * BN + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * BN + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in range(BK):
                b = Bs[p, tx]
                for i in range(TM):
                    acc[i] += As[ty * TM + i, p] * b
            cuda.syncthreads()
        for i in range(TM):
            row, col = row0 + ty * TM + i, col0 + tx
            if row < m and col < n:
                C[row, col] = alpha * acc[i] + beta * C[row, col] if beta != 0 else alpha * acc[i]

    return column


@wrong("thread_columns", "applied twice")
def alpha_twice(BM, BN, BK, TM):
    THREADS = BM * BN // TM

    @cuda.jit
    def column(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        acc = cuda.local.array(TM, float32)
        for i in range(TM):
            acc[i] = 0
        for k0 in range(0, k, BK):
            for e in range(ty * BN + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * BN + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in range(BK):
                b = Bs[p, tx]
                for i in range(TM):
                    acc[i] += alpha * As[ty * TM + i, p] * b
            cuda.syncthreads()
        for i in range(TM):
            row, col = row0 + ty * TM + i, col0 + tx
            if row < m and col < n:
                C[row, col] = alpha * acc[i] + beta * C[row, col] if beta != 0 else alpha * acc[i]

    return column


# ---- 04.4 ------------------------------------------------------------------------------------------------


@wrong("in_registers", "so it cannot be written out")
def one_loop_still_short(R):
    @cuda.jit
    def strip(n, k, x, A, y):
        acc = cuda.local.array(R, float32)
        first = cuda.blockIdx.x * 32 * R + cuda.threadIdx.x
        count = min(R, (n - first + 31) // 32)
        for i in range(R):
            acc[i] = 0
        for p in range(k):
            xp = x[p]
            for i in range(R):
                if first + 32 * i < n:
                    acc[i] += xp * A[p, first + 32 * i]
        for i in range(count):
            y[first + 32 * i] = acc[i]

    return strip


@wrong("in_registers", "`while` loop")
def breaks_off(R):
    @cuda.jit
    def strip(n, k, x, A, y):
        acc = cuda.local.array(R, float32)
        first = cuda.blockIdx.x * 32 * R + cuda.threadIdx.x
        for i in range(R):
            acc[i] = 0
        for p in range(k):
            xp = x[p]
            i = 0
            while first + 32 * i < n and i < R:
                acc[i] += xp * A[p, first + 32 * i]
                i += 1
        for i in range(R):
            if first + 32 * i < n:
                y[first + 32 * i] = acc[i]

    return strip


@wrong("in_registers", "depends on more than")
def rotated(R):
    @cuda.jit
    def strip(n, k, x, A, y):
        acc = cuda.local.array(R, float32)
        first = cuda.blockIdx.x * 32 * R + cuda.threadIdx.x
        for i in range(R):
            acc[i] = 0
        for p in range(k):
            xp = x[p]
            for i in range(R):
                j = (i + p) % R
                if first + 32 * j < n:
                    acc[j] += xp * A[p, first + 32 * j]
        for i in range(R):
            if first + 32 * i < n:
                y[first + 32 * i] = acc[i]

    return strip


@wrong("in_registers", "in shared memory now")
def in_shared_memory(R):
    @cuda.jit
    def strip(n, k, x, A, y):
        acc = cuda.shared.array((R, 32), float32)
        first = cuda.blockIdx.x * 32 * R + cuda.threadIdx.x
        for i in range(R):
            acc[i, cuda.threadIdx.x] = 0
        for p in range(k):
            xp = x[p]
            for i in range(R):
                if first + 32 * i < n:
                    acc[i, cuda.threadIdx.x] += xp * A[p, first + 32 * i]
        for i in range(R):
            if first + 32 * i < n:
                y[first + 32 * i] = acc[i, cuda.threadIdx.x]

    return strip


@wrong("in_registers", "in `y` itself")
def in_global_memory(R):
    @cuda.jit
    def strip(n, k, x, A, y):
        first = cuda.blockIdx.x * 32 * R + cuda.threadIdx.x
        for i in range(R):
            if first + 32 * i < n:
                y[first + 32 * i] = 0
        for p in range(k):
            xp = x[p]
            for i in range(R):
                if first + 32 * i < n:
                    y[first + 32 * i] += xp * A[p, first + 32 * i]

    return strip


@wrong("in_registers", "x is read anew")
def one_after_the_other(R):
    @cuda.jit
    def strip(n, k, x, A, y):
        first = cuda.blockIdx.x * 32 * R + cuda.threadIdx.x
        for i in range(R):
            if first + 32 * i < n:
                acc = float32(0)
                for p in range(k):
                    acc += x[p] * A[p, first + 32 * i]
                y[first + 32 * i] = acc

    return strip


@wrong("in_registers", "with fewer results a thread")
def one_column_a_thread(R):
    @cuda.jit
    def strip(n, k, x, A, y):
        first = cuda.blockIdx.x * 32 * R + cuda.threadIdx.x
        acc = float32(0)
        for p in range(k):
            if first < n:
                acc += x[p] * A[p, first]
        if first < n:
            y[first] = acc

    return strip


@wrong("in_registers", "guard of their own")
def guard_forgotten(R):
    @cuda.jit
    def strip(n, k, x, A, y):
        acc = cuda.local.array(R, float32)
        first = cuda.blockIdx.x * 32 * R + cuda.threadIdx.x
        for i in range(R):
            acc[i] = 0
        for p in range(k):
            xp = x[p]
            for i in range(R):
                acc[i] += xp * A[p, first + 32 * i]
        for i in range(R):
            y[first + 32 * i] = acc[i]

    return strip


@wrong("in_registers", "is written, and there are only")
def guard_one_too_far(R):
    @cuda.jit
    def strip(n, k, x, A, y):
        acc = cuda.local.array(R, float32)
        first = cuda.blockIdx.x * 32 * R + cuda.threadIdx.x
        for i in range(R):
            acc[i] = 0
        for p in range(k):
            xp = x[p]
            for i in range(R):
                if first + 32 * i < n:
                    acc[i] += xp * A[p, first + 32 * i]
        for i in range(R):
            if first + 32 * i <= n:
                y[first + 32 * i] = acc[i]

    return strip


@wrong("in_registers", "before it was set to zero")
def not_set_to_zero_before(R):
    @cuda.jit
    def strip(n, k, x, A, y):
        acc = cuda.local.array(R, float32)
        first = cuda.blockIdx.x * 32 * R + cuda.threadIdx.x
        for p in range(k):
            xp = x[p]
            for i in range(R):
                if first + 32 * i < n:
                    acc[i] += xp * A[p, first + 32 * i]
        for i in range(R):
            if first + 32 * i < n:
                y[first + 32 * i] = acc[i]

    return strip


@wrong("in_registers", "in float64")
def sums_in_float64(R):
    @cuda.jit
    def strip(n, k, x, A, y):
        acc = cuda.local.array(R, float64)
        first = cuda.blockIdx.x * 32 * R + cuda.threadIdx.x
        for i in range(R):
            acc[i] = 0
        for p in range(k):
            xp = x[p]
            for i in range(R):
                if first + 32 * i < n:
                    acc[i] += xp * A[p, first + 32 * i]
        for i in range(R):
            if first + 32 * i < n:
                y[first + 32 * i] = acc[i]

    return strip


@wrong("in_registers", "numbers are wrong")
def adds_only_the_last(R):
    @cuda.jit
    def strip(n, k, x, A, y):
        acc = cuda.local.array(R, float32)
        first = cuda.blockIdx.x * 32 * R + cuda.threadIdx.x
        for i in range(R):
            acc[i] = 0
        for p in range(k):
            xp = x[p]
            for i in range(R):
                if first + 32 * i < n:
                    acc[i] = xp * A[p, first + 32 * i]
        for i in range(R):
            if first + 32 * i < n:
                y[first + 32 * i] = acc[i]

    return strip
