"""Answers to the exercises of notebook 08 that people really give, and that must be refused."""

from numba import cuda, float32
from numba.types import float16
from tests.wrong_solutions.collect import collector

from gemm_course.intrinsics import COL_MAJOR, ROW_MAJOR, wmma_load_a, wmma_load_b, wmma_mma, wmma_store

WRONG, wrong = collector("warp_product", "padding_wavefronts", "padded_c", "ragged_product")


# ---- 08.2 ------------------------------------------------------------------------------------------------

WRONG["padding_wavefronts"] = {
    "more_is_better": ((8, 2, 1), "More skew is not better"),
    "halves_each_time": ((8, 4, 2), "does not halve"),
    "bytes_for_halves": ((8, 8, 4), "bytes for halves"),
    "both_mended": ((8, 1, 1), "only 32 / 8 = 4 places"),
    "none_without": ((1, 1, 1), "twice around"),
    "sixteen_rows": ((16, 2, 4), "counts 16 rows"),
    "whole_fragment": ((32, 4, 8), "the whole fragment"),
    "conflicts": ((7, 0, 1), "how many too many"),
    "guessed": ((4, 1, 2), "Not all three"),
    "one_number": (8, "Three numbers are wanted"),
}


# ---- 08.1 ------------------------------------------------------------------------------------------------


@wrong("warp_product", "is loaded as if it did not")
def as_row_major(PAD):
    WIDTH = 16 + PAD

    @cuda.jit
    def product(k, A, B, C):
        As = cuda.shared.array((16, WIDTH), float16, 32)
        Bs = cuda.shared.array((16, WIDTH), float16, 32)
        Cs = cuda.shared.array((16, 24), float32, 32)
        lane = cuda.threadIdx.x
        row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
        r, c = lane // 2, lane % 2 * 8
        a = cuda.local.array(16, float16)
        b = cuda.local.array(16, float16)
        acc = cuda.local.array(8, float32)
        for e in range(8):
            acc[e] = 0
        for k0 in range(0, k, 16):
            for e in range(8):
                As[c + e, r] = A[row0 + r, k0 + c + e]
                Bs[r, c + e] = B[k0 + r, col0 + c + e]
            cuda.syncwarp()
            wmma_load_a(a, As, (0, 0), ROW_MAJOR)
            wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)
            wmma_mma(acc, a, b, ROW_MAJOR, ROW_MAJOR)
            cuda.syncwarp()
        wmma_store(Cs, (0, 0), acc, ROW_MAJOR)
        cuda.syncwarp()
        for e in range(8):
            C[row0 + r, col0 + c + e] = Cs[r, c + e]

    return product


@wrong("warp_product", "loaded as `COL_MAJOR`, but")
def bs_col_major(PAD):
    WIDTH = 16 + PAD

    @cuda.jit
    def product(k, A, B, C):
        As = cuda.shared.array((16, WIDTH), float16, 32)
        Bs = cuda.shared.array((16, WIDTH), float16, 32)
        Cs = cuda.shared.array((16, 24), float32, 32)
        lane = cuda.threadIdx.x
        row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
        r, c = lane // 2, lane % 2 * 8
        a = cuda.local.array(16, float16)
        b = cuda.local.array(16, float16)
        acc = cuda.local.array(8, float32)
        for e in range(8):
            acc[e] = 0
        for k0 in range(0, k, 16):
            for e in range(8):
                As[c + e, r] = A[row0 + r, k0 + c + e]
                Bs[r, c + e] = B[k0 + r, col0 + c + e]
            cuda.syncwarp()
            wmma_load_a(a, As, (0, 0), COL_MAJOR)
            wmma_load_b(b, Bs, (0, 0), COL_MAJOR)
            wmma_mma(acc, a, b, COL_MAJOR, COL_MAJOR)
            cuda.syncwarp()
        wmma_store(Cs, (0, 0), acc, ROW_MAJOR)
        cuda.syncwarp()
        for e in range(8):
            C[row0 + r, col0 + c + e] = Cs[r, c + e]

    return product


@wrong("warp_product", "wrong way round")
def orders_exchanged(PAD):
    WIDTH = 16 + PAD

    @cuda.jit
    def product(k, A, B, C):
        As = cuda.shared.array((16, WIDTH), float16, 32)
        Bs = cuda.shared.array((16, WIDTH), float16, 32)
        Cs = cuda.shared.array((16, 24), float32, 32)
        lane = cuda.threadIdx.x
        row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
        r, c = lane // 2, lane % 2 * 8
        a = cuda.local.array(16, float16)
        b = cuda.local.array(16, float16)
        acc = cuda.local.array(8, float32)
        for e in range(8):
            acc[e] = 0
        for k0 in range(0, k, 16):
            for e in range(8):
                As[c + e, r] = A[row0 + r, k0 + c + e]
                Bs[r, c + e] = B[k0 + r, col0 + c + e]
            cuda.syncwarp()
            wmma_load_a(a, As, (0, 0), ROW_MAJOR)
            wmma_load_b(b, Bs, (0, 0), COL_MAJOR)
            wmma_mma(acc, a, b, ROW_MAJOR, COL_MAJOR)
            cuda.syncwarp()
        wmma_store(Cs, (0, 0), acc, ROW_MAJOR)
        cuda.syncwarp()
        for e in range(8):
            C[row0 + r, col0 + c + e] = Cs[r, c + e]

    return product


@wrong("warp_product", "every tile of C arrives transposed")
def stores_col_major(PAD):
    WIDTH = 16 + PAD

    @cuda.jit
    def product(k, A, B, C):
        As = cuda.shared.array((16, WIDTH), float16, 32)
        Bs = cuda.shared.array((16, WIDTH), float16, 32)
        Cs = cuda.shared.array((16, 24), float32, 32)
        lane = cuda.threadIdx.x
        row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
        r, c = lane // 2, lane % 2 * 8
        a = cuda.local.array(16, float16)
        b = cuda.local.array(16, float16)
        acc = cuda.local.array(8, float32)
        for e in range(8):
            acc[e] = 0
        for k0 in range(0, k, 16):
            for e in range(8):
                As[c + e, r] = A[row0 + r, k0 + c + e]
                Bs[r, c + e] = B[k0 + r, col0 + c + e]
            cuda.syncwarp()
            wmma_load_a(a, As, (0, 0), COL_MAJOR)
            wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)
            wmma_mma(acc, a, b, COL_MAJOR, ROW_MAJOR)
            cuda.syncwarp()
        wmma_store(Cs, (0, 0), acc, COL_MAJOR)
        cuda.syncwarp()
        for e in range(8):
            C[row0 + r, col0 + c + e] = Cs[r, c + e]

    return product


@wrong("warp_product", "takes the orders with which")
def mma_told_row_major(PAD):
    WIDTH = 16 + PAD

    @cuda.jit
    def product(k, A, B, C):
        As = cuda.shared.array((16, WIDTH), float16, 32)
        Bs = cuda.shared.array((16, WIDTH), float16, 32)
        Cs = cuda.shared.array((16, 24), float32, 32)
        lane = cuda.threadIdx.x
        row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
        r, c = lane // 2, lane % 2 * 8
        a = cuda.local.array(16, float16)
        b = cuda.local.array(16, float16)
        acc = cuda.local.array(8, float32)
        for e in range(8):
            acc[e] = 0
        for k0 in range(0, k, 16):
            for e in range(8):
                As[c + e, r] = A[row0 + r, k0 + c + e]
                Bs[r, c + e] = B[k0 + r, col0 + c + e]
            cuda.syncwarp()
            wmma_load_a(a, As, (0, 0), COL_MAJOR)
            wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)
            wmma_mma(acc, a, b, ROW_MAJOR, ROW_MAJOR)
            cuda.syncwarp()
        wmma_store(Cs, (0, 0), acc, ROW_MAJOR)
        cuda.syncwarp()
        for e in range(8):
            C[row0 + r, col0 + c + e] = Cs[r, c + e]

    return product


@wrong("warp_product", "made by lanes apart")
def a_place_for_each_lane(PAD):
    WIDTH = 16 + PAD

    @cuda.jit
    def product(k, A, B, C):
        As = cuda.shared.array((16, WIDTH), float16, 32)
        Bs = cuda.shared.array((16, WIDTH), float16, 32)
        Cs = cuda.shared.array((16, 24), float32, 32)
        lane = cuda.threadIdx.x
        row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
        r, c = lane // 2, lane % 2 * 8
        a = cuda.local.array(16, float16)
        b = cuda.local.array(16, float16)
        acc = cuda.local.array(8, float32)
        for e in range(8):
            acc[e] = 0
        for k0 in range(0, k, 16):
            for e in range(8):
                As[c + e, r] = A[row0 + r, k0 + c + e]
                Bs[r, c + e] = B[k0 + r, col0 + c + e]
            cuda.syncwarp()
            wmma_load_a(a, As, (lane // 2, 0), COL_MAJOR)
            wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)
            wmma_mma(acc, a, b, COL_MAJOR, ROW_MAJOR)
            cuda.syncwarp()
        wmma_store(Cs, (0, 0), acc, ROW_MAJOR)
        cuda.syncwarp()
        for e in range(8):
            C[row0 + r, col0 + c + e] = Cs[r, c + e]

    return product


@wrong("warp_product", "undefined")
def call_in_a_branch(PAD):
    WIDTH = 16 + PAD

    @cuda.jit
    def product(k, A, B, C):
        As = cuda.shared.array((16, WIDTH), float16, 32)
        Bs = cuda.shared.array((16, WIDTH), float16, 32)
        Cs = cuda.shared.array((16, 24), float32, 32)
        lane = cuda.threadIdx.x
        row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
        r, c = lane // 2, lane % 2 * 8
        a = cuda.local.array(16, float16)
        b = cuda.local.array(16, float16)
        acc = cuda.local.array(8, float32)
        for e in range(8):
            acc[e] = 0
        for k0 in range(0, k, 16):
            for e in range(8):
                As[c + e, r] = A[row0 + r, k0 + c + e]
                Bs[r, c + e] = B[k0 + r, col0 + c + e]
            cuda.syncwarp()
            if lane < 16:
                wmma_load_a(a, As, (0, 0), COL_MAJOR)
            wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)
            wmma_mma(acc, a, b, COL_MAJOR, ROW_MAJOR)
            cuda.syncwarp()
        wmma_store(Cs, (0, 0), acc, ROW_MAJOR)
        cuda.syncwarp()
        for e in range(8):
            C[row0 + r, col0 + c + e] = Cs[r, c + e]

    return product


@wrong("warp_product", "the sums start anew")
def starts_anew(PAD):
    WIDTH = 16 + PAD

    @cuda.jit
    def product(k, A, B, C):
        As = cuda.shared.array((16, WIDTH), float16, 32)
        Bs = cuda.shared.array((16, WIDTH), float16, 32)
        Cs = cuda.shared.array((16, 24), float32, 32)
        lane = cuda.threadIdx.x
        row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
        r, c = lane // 2, lane % 2 * 8
        a = cuda.local.array(16, float16)
        b = cuda.local.array(16, float16)
        acc = cuda.local.array(8, float32)
        for k0 in range(0, k, 16):
            for e in range(8):
                As[c + e, r] = A[row0 + r, k0 + c + e]
                Bs[r, c + e] = B[k0 + r, col0 + c + e]
            for e in range(8):
                acc[e] = 0
            cuda.syncwarp()
            wmma_load_a(a, As, (0, 0), COL_MAJOR)
            wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)
            wmma_mma(acc, a, b, COL_MAJOR, ROW_MAJOR)
            cuda.syncwarp()
        wmma_store(Cs, (0, 0), acc, ROW_MAJOR)
        cuda.syncwarp()
        for e in range(8):
            C[row0 + r, col0 + c + e] = Cs[r, c + e]

    return product


@wrong("warp_product", "`acc` is used before")
def not_set_to_zero(PAD):
    WIDTH = 16 + PAD

    @cuda.jit
    def product(k, A, B, C):
        As = cuda.shared.array((16, WIDTH), float16, 32)
        Bs = cuda.shared.array((16, WIDTH), float16, 32)
        Cs = cuda.shared.array((16, 24), float32, 32)
        lane = cuda.threadIdx.x
        row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
        r, c = lane // 2, lane % 2 * 8
        a = cuda.local.array(16, float16)
        b = cuda.local.array(16, float16)
        acc = cuda.local.array(8, float32)
        for k0 in range(0, k, 16):
            for e in range(8):
                As[c + e, r] = A[row0 + r, k0 + c + e]
                Bs[r, c + e] = B[k0 + r, col0 + c + e]
            cuda.syncwarp()
            wmma_load_a(a, As, (0, 0), COL_MAJOR)
            wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)
            wmma_mma(acc, a, b, COL_MAJOR, ROW_MAJOR)
            cuda.syncwarp()
        wmma_store(Cs, (0, 0), acc, ROW_MAJOR)
        cuda.syncwarp()
        for e in range(8):
            C[row0 + r, col0 + c + e] = Cs[r, c + e]

    return product


@wrong("warp_product", "kept in halves")
def sums_in_halves(PAD):
    WIDTH = 16 + PAD

    @cuda.jit
    def product(k, A, B, C):
        As = cuda.shared.array((16, WIDTH), float16, 32)
        Bs = cuda.shared.array((16, WIDTH), float16, 32)
        Cs = cuda.shared.array((16, 24), float16, 32)
        lane = cuda.threadIdx.x
        row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
        r, c = lane // 2, lane % 2 * 8
        a = cuda.local.array(16, float16)
        b = cuda.local.array(16, float16)
        acc = cuda.local.array(8, float16)
        for e in range(8):
            acc[e] = 0
        for k0 in range(0, k, 16):
            for e in range(8):
                As[c + e, r] = A[row0 + r, k0 + c + e]
                Bs[r, c + e] = B[k0 + r, col0 + c + e]
            cuda.syncwarp()
            wmma_load_a(a, As, (0, 0), COL_MAJOR)
            wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)
            wmma_mma(acc, a, b, COL_MAJOR, ROW_MAJOR)
            cuda.syncwarp()
        wmma_store(Cs, (0, 0), acc, ROW_MAJOR)
        cuda.syncwarp()
        for e in range(8):
            C[row0 + r, col0 + c + e] = Cs[r, c + e]

    return product


@wrong("warp_product", "16 float16")
def fragment_too_small(PAD):
    WIDTH = 16 + PAD

    @cuda.jit
    def product(k, A, B, C):
        As = cuda.shared.array((16, WIDTH), float16, 32)
        Bs = cuda.shared.array((16, WIDTH), float16, 32)
        Cs = cuda.shared.array((16, 24), float32, 32)
        lane = cuda.threadIdx.x
        row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
        r, c = lane // 2, lane % 2 * 8
        a = cuda.local.array(8, float16)
        b = cuda.local.array(16, float16)
        acc = cuda.local.array(8, float32)
        for e in range(8):
            acc[e] = 0
        for k0 in range(0, k, 16):
            for e in range(8):
                As[c + e, r] = A[row0 + r, k0 + c + e]
                Bs[r, c + e] = B[k0 + r, col0 + c + e]
            cuda.syncwarp()
            wmma_load_a(a, As, (0, 0), COL_MAJOR)
            wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)
            wmma_mma(acc, a, b, COL_MAJOR, ROW_MAJOR)
            cuda.syncwarp()
        wmma_store(Cs, (0, 0), acc, ROW_MAJOR)
        cuda.syncwarp()
        for e in range(8):
            C[row0 + r, col0 + c + e] = Cs[r, c + e]

    return product


@wrong("warp_product", "no Tensor Core was asked")
def without_tensor_cores(PAD):
    WIDTH = 16 + PAD

    @cuda.jit
    def product(k, A, B, C):
        As = cuda.shared.array((16, WIDTH), float16, 32)
        Bs = cuda.shared.array((16, WIDTH), float16, 32)
        Cs = cuda.shared.array((16, 24), float32, 32)
        lane = cuda.threadIdx.x
        row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
        r, c = lane // 2, lane % 2 * 8
        acc = cuda.local.array(8, float32)
        for e in range(8):
            acc[e] = 0
        for k0 in range(0, k, 16):
            for e in range(8):
                As[c + e, r] = A[row0 + r, k0 + c + e]
                Bs[r, c + e] = B[k0 + r, col0 + c + e]
            cuda.syncwarp()
            for p in range(16):
                for e in range(8):
                    acc[e] += float32(As[p, r]) * float32(Bs[p, c + e])
            cuda.syncwarp()
        for e in range(8):
            Cs[r, c + e] = acc[e]
        cuda.syncwarp()
        for e in range(8):
            C[row0 + r, col0 + c + e] = Cs[r, c + e]

    return product


@wrong("warp_product", "before `wmma_store` put them there")
def not_stored(PAD):
    WIDTH = 16 + PAD

    @cuda.jit
    def product(k, A, B, C):
        As = cuda.shared.array((16, WIDTH), float16, 32)
        Bs = cuda.shared.array((16, WIDTH), float16, 32)
        Cs = cuda.shared.array((16, 24), float32, 32)
        lane = cuda.threadIdx.x
        row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
        r, c = lane // 2, lane % 2 * 8
        a = cuda.local.array(16, float16)
        b = cuda.local.array(16, float16)
        acc = cuda.local.array(8, float32)
        for e in range(8):
            acc[e] = 0
        for k0 in range(0, k, 16):
            for e in range(8):
                As[c + e, r] = A[row0 + r, k0 + c + e]
                Bs[r, c + e] = B[k0 + r, col0 + c + e]
            cuda.syncwarp()
            wmma_load_a(a, As, (0, 0), COL_MAJOR)
            wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)
            wmma_mma(acc, a, b, COL_MAJOR, ROW_MAJOR)
            cuda.syncwarp()
        cuda.syncwarp()
        for e in range(8):
            C[row0 + r, col0 + c + e] = Cs[r, c + e]

    return product


@wrong("warp_product", "does not stand between")
def no_wait_before_the_loads(PAD):
    WIDTH = 16 + PAD

    @cuda.jit
    def product(k, A, B, C):
        As = cuda.shared.array((16, WIDTH), float16, 32)
        Bs = cuda.shared.array((16, WIDTH), float16, 32)
        Cs = cuda.shared.array((16, 24), float32, 32)
        lane = cuda.threadIdx.x
        row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
        r, c = lane // 2, lane % 2 * 8
        a = cuda.local.array(16, float16)
        b = cuda.local.array(16, float16)
        acc = cuda.local.array(8, float32)
        for e in range(8):
            acc[e] = 0
        for k0 in range(0, k, 16):
            for e in range(8):
                As[c + e, r] = A[row0 + r, k0 + c + e]
                Bs[r, c + e] = B[k0 + r, col0 + c + e]
            wmma_load_a(a, As, (0, 0), COL_MAJOR)
            wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)
            wmma_mma(acc, a, b, COL_MAJOR, ROW_MAJOR)
            cuda.syncwarp()
        wmma_store(Cs, (0, 0), acc, ROW_MAJOR)
        cuda.syncwarp()
        for e in range(8):
            C[row0 + r, col0 + c + e] = Cs[r, c + e]

    return product


@wrong("warp_product", "A and B are exchanged")
def operands_exchanged(PAD):
    WIDTH = 16 + PAD

    @cuda.jit
    def product(k, A, B, C):
        As = cuda.shared.array((16, WIDTH), float16, 32)
        Bs = cuda.shared.array((16, WIDTH), float16, 32)
        Cs = cuda.shared.array((16, 24), float32, 32)
        lane = cuda.threadIdx.x
        row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
        r, c = lane // 2, lane % 2 * 8
        a = cuda.local.array(16, float16)
        b = cuda.local.array(16, float16)
        acc = cuda.local.array(8, float32)
        for e in range(8):
            acc[e] = 0
        for k0 in range(0, k, 16):
            for e in range(8):
                As[c + e, r] = A[row0 + r, k0 + c + e]
                Bs[r, c + e] = B[k0 + r, col0 + c + e]
            cuda.syncwarp()
            wmma_load_a(a, As, (0, 0), COL_MAJOR)
            wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)
            wmma_mma(acc, b, a, COL_MAJOR, ROW_MAJOR)
            cuda.syncwarp()
        wmma_store(Cs, (0, 0), acc, ROW_MAJOR)
        cuda.syncwarp()
        for e in range(8):
            C[row0 + r, col0 + c + e] = Cs[r, c + e]

    return product


@wrong("warp_product", "multiply-adds where")
def multiplies_twice(PAD):
    WIDTH = 16 + PAD

    @cuda.jit
    def product(k, A, B, C):
        As = cuda.shared.array((16, WIDTH), float16, 32)
        Bs = cuda.shared.array((16, WIDTH), float16, 32)
        Cs = cuda.shared.array((16, 24), float32, 32)
        lane = cuda.threadIdx.x
        row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
        r, c = lane // 2, lane % 2 * 8
        a = cuda.local.array(16, float16)
        b = cuda.local.array(16, float16)
        acc = cuda.local.array(8, float32)
        spare = cuda.local.array(8, float32)
        for e in range(8):
            acc[e] = 0
            spare[e] = 0
        for k0 in range(0, k, 16):
            for e in range(8):
                As[c + e, r] = A[row0 + r, k0 + c + e]
                Bs[r, c + e] = B[k0 + r, col0 + c + e]
            cuda.syncwarp()
            wmma_load_a(a, As, (0, 0), COL_MAJOR)
            wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)
            wmma_mma(acc, a, b, COL_MAJOR, ROW_MAJOR)
            wmma_mma(spare, a, b, COL_MAJOR, ROW_MAJOR)
            cuda.syncwarp()
        wmma_store(Cs, (0, 0), acc, ROW_MAJOR)
        cuda.syncwarp()
        for e in range(8):
            C[row0 + r, col0 + c + e] = Cs[r, c + e]

    return product


# ---- 08.3 ------------------------------------------------------------------------------------------------


@wrong("padded_c", "store is not")
@cuda.jit
def load_alone(m, n, ldc, alpha, sums, beta, C):
    col, row = cuda.grid(2)
    if row < m and col < n:
        old = float32(C[row * ldc + col]) if beta != 0 else float32(0)
        C[row * n + col] = float16(alpha * sums[row, col] + beta * old)


@wrong("padded_c", "load is not")
@cuda.jit
def store_alone(m, n, ldc, alpha, sums, beta, C):
    col, row = cuda.grid(2)
    if row < m and col < n:
        old = float32(C[row * n + col]) if beta != 0 else float32(0)
        C[row * ldc + col] = float16(alpha * sums[row, col] + beta * old)


@wrong("padded_c", "rounded up")
@cuda.jit
def n_rounded_up(m, n, ldc, alpha, sums, beta, C):
    col, row = cuda.grid(2)
    if row < m and col < n:
        wide = (n + 7) // 8 * 8
        old = float32(C[row * wide + col]) if beta != 0 else float32(0)
        C[row * wide + col] = float16(alpha * sums[row, col] + beta * old)


@wrong("padded_c", "still taken to be n")
@cuda.jit
def n_in_other_words(m, n, ldc, alpha, sums, beta, C):
    col, row = cuda.grid(2)
    if row < m and col < n:
        place = n * row + col
        old = float32(C[place]) if beta != 0 else float32(0)
        C[place] = float16(alpha * sums[row, col] + beta * old)


@wrong("padded_c", "m elements apart")
@cuda.jit
def m_for_ldc(m, n, ldc, alpha, sums, beta, C):
    col, row = cuda.grid(2)
    if row < m and col < n:
        old = float32(C[row * m + col]) if beta != 0 else float32(0)
        C[row * m + col] = float16(alpha * sums[row, col] + beta * old)


@wrong("padded_c", "into the padding")
@cuda.jit
def guard_up_to_ldc(m, n, ldc, alpha, sums, beta, C):
    col, row = cuda.grid(2)
    if row < m and col < ldc:
        old = float32(C[row * ldc + col]) if beta != 0 else float32(0)
        C[row * ldc + col] = float16(alpha * sums[row, col] + beta * old)


@wrong("padded_c", "is read although")
@cuda.jit
def c_read_at_beta_zero(m, n, ldc, alpha, sums, beta, C):
    col, row = cuda.grid(2)
    if row < m and col < n:
        old = float32(C[row * ldc + col])
        C[row * ldc + col] = float16(alpha * sums[row, col] + beta * old)


@wrong("padded_c", "leaves C")
@cuda.jit
def column_major(m, n, ldc, alpha, sums, beta, C):
    col, row = cuda.grid(2)
    if row < m and col < n:
        old = float32(C[col * ldc + row]) if beta != 0 else float32(0)
        C[col * ldc + row] = float16(alpha * sums[row, col] + beta * old)


@wrong("padded_c", "Not all elements")
@cuda.jit
def beta_forgotten(m, n, ldc, alpha, sums, beta, C):
    col, row = cuda.grid(2)
    if row < m and col < n:
        old = float32(C[row * ldc + col]) if beta != 0 else float32(0)
        C[row * ldc + col] = float16(alpha * sums[row, col] + old)


@wrong("padded_c", "never stored")
@cuda.jit
def not_the_last_row(m, n, ldc, alpha, sums, beta, C):
    col, row = cuda.grid(2)
    if row < m - 1 and col < n:
        old = float32(C[row * ldc + col]) if beta != 0 else float32(0)
        C[row * ldc + col] = float16(alpha * sums[row, col] + beta * old)


# ---- 08.4 ------------------------------------------------------------------------------------------------


@wrong("ragged_product", "skipped altogether")
@cuda.jit
def skips_tiles_at_the_edge(m, n, k, A, B, C):
    As = cuda.shared.array((16, 24), float16, 32)
    Bs = cuda.shared.array((16, 24), float16, 32)
    Cs = cuda.shared.array((16, 24), float32, 32)
    a = cuda.local.array(16, float16)
    b = cuda.local.array(16, float16)
    acc = cuda.local.array(8, float32)
    lane = cuda.threadIdx.x
    row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
    r, c = lane // 2, lane % 2 * 8
    for e in range(8):
        acc[e] = 0
    for k0 in range(0, k, 16):
        for e in range(8):
            p, col = k0 + c + e, col0 + c + e
            As[r, c + e] = A[row0 + r, p] if row0 + r < m and p < k else float16(0)
            Bs[r, c + e] = B[k0 + r, col] if k0 + r < k and col < n else float16(0)
        cuda.syncwarp()
        wmma_load_a(a, As, (0, 0), ROW_MAJOR)
        wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)
        wmma_mma(acc, a, b, ROW_MAJOR, ROW_MAJOR)
        cuda.syncwarp()
    wmma_store(Cs, (0, 0), acc, ROW_MAJOR)
    cuda.syncwarp()
    if row0 + 16 <= m and col0 + 16 <= n:
        for e in range(8):
            C[row0 + r, col0 + c + e] = Cs[r, c + e]


@wrong("ragged_product", "whole fragment is stored")
@cuda.jit
def stores_the_whole_fragment(m, n, k, A, B, C):
    As = cuda.shared.array((16, 24), float16, 32)
    Bs = cuda.shared.array((16, 24), float16, 32)
    Cs = cuda.shared.array((16, 24), float32, 32)
    a = cuda.local.array(16, float16)
    b = cuda.local.array(16, float16)
    acc = cuda.local.array(8, float32)
    lane = cuda.threadIdx.x
    row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
    r, c = lane // 2, lane % 2 * 8
    for e in range(8):
        acc[e] = 0
    for k0 in range(0, k, 16):
        for e in range(8):
            p, col = k0 + c + e, col0 + c + e
            As[r, c + e] = A[row0 + r, p] if row0 + r < m and p < k else float16(0)
            Bs[r, c + e] = B[k0 + r, col] if k0 + r < k and col < n else float16(0)
        cuda.syncwarp()
        wmma_load_a(a, As, (0, 0), ROW_MAJOR)
        wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)
        wmma_mma(acc, a, b, ROW_MAJOR, ROW_MAJOR)
        cuda.syncwarp()
    wmma_store(Cs, (0, 0), acc, ROW_MAJOR)
    cuda.syncwarp()
    for e in range(8):
        C[row0 + r, col0 + c + e] = Cs[r, c + e]


@wrong("ragged_product", "takes it for granted")
@cuda.jit
def guesses_the_layout(m, n, k, A, B, C):
    As = cuda.shared.array((16, 24), float16, 32)
    Bs = cuda.shared.array((16, 24), float16, 32)
    a = cuda.local.array(16, float16)
    b = cuda.local.array(16, float16)
    acc = cuda.local.array(8, float32)
    lane = cuda.threadIdx.x
    row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
    r, c = lane // 2, lane % 2 * 8
    for e in range(8):
        acc[e] = 0
    for k0 in range(0, k, 16):
        for e in range(8):
            p, col = k0 + c + e, col0 + c + e
            As[r, c + e] = A[row0 + r, p] if row0 + r < m and p < k else float16(0)
            Bs[r, c + e] = B[k0 + r, col] if k0 + r < k and col < n else float16(0)
        cuda.syncwarp()
        wmma_load_a(a, As, (0, 0), ROW_MAJOR)
        wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)
        wmma_mma(acc, a, b, ROW_MAJOR, ROW_MAJOR)
        cuda.syncwarp()
    for e in range(8):
        row, col = row0 + lane // 4 + e // 2 % 2 * 8, col0 + lane % 4 * 2 + e % 2 + e // 4 * 8
        if row < m and col < n:
            C[row, col] = acc[e]


@wrong("ragged_product", "numbers are wrong")
@cuda.jit
def guesses_another_layout(m, n, k, A, B, C):
    As = cuda.shared.array((16, 24), float16, 32)
    Bs = cuda.shared.array((16, 24), float16, 32)
    a = cuda.local.array(16, float16)
    b = cuda.local.array(16, float16)
    acc = cuda.local.array(8, float32)
    lane = cuda.threadIdx.x
    row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
    r, c = lane // 2, lane % 2 * 8
    for e in range(8):
        acc[e] = 0
    for k0 in range(0, k, 16):
        for e in range(8):
            p, col = k0 + c + e, col0 + c + e
            As[r, c + e] = A[row0 + r, p] if row0 + r < m and p < k else float16(0)
            Bs[r, c + e] = B[k0 + r, col] if k0 + r < k and col < n else float16(0)
        cuda.syncwarp()
        wmma_load_a(a, As, (0, 0), ROW_MAJOR)
        wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)
        wmma_mma(acc, a, b, ROW_MAJOR, ROW_MAJOR)
        cuda.syncwarp()
    for e in range(8):
        row, col = row0 + lane // 2, col0 + lane % 2 * 8 + e
        if row < m and col < n:
            C[row, col] = acc[e]


@wrong("ragged_product", "does not stand between")
@cuda.jit
def no_wait_after_the_store(m, n, k, A, B, C):
    As = cuda.shared.array((16, 24), float16, 32)
    Bs = cuda.shared.array((16, 24), float16, 32)
    Cs = cuda.shared.array((16, 24), float32, 32)
    a = cuda.local.array(16, float16)
    b = cuda.local.array(16, float16)
    acc = cuda.local.array(8, float32)
    lane = cuda.threadIdx.x
    row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
    r, c = lane // 2, lane % 2 * 8
    for e in range(8):
        acc[e] = 0
    for k0 in range(0, k, 16):
        for e in range(8):
            p, col = k0 + c + e, col0 + c + e
            As[r, c + e] = A[row0 + r, p] if row0 + r < m and p < k else float16(0)
            Bs[r, c + e] = B[k0 + r, col] if k0 + r < k and col < n else float16(0)
        cuda.syncwarp()
        wmma_load_a(a, As, (0, 0), ROW_MAJOR)
        wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)
        wmma_mma(acc, a, b, ROW_MAJOR, ROW_MAJOR)
        cuda.syncwarp()
    wmma_store(Cs, (0, 0), acc, ROW_MAJOR)
    for e in range(8):
        if row0 + r < m and col0 + c + e < n:
            C[row0 + r, col0 + c + e] = Cs[r, c + e]


@wrong("ragged_product", "Rows are guarded")
@cuda.jit
def guards_the_rows_alone(m, n, k, A, B, C):
    As = cuda.shared.array((16, 24), float16, 32)
    Bs = cuda.shared.array((16, 24), float16, 32)
    Cs = cuda.shared.array((16, 24), float32, 32)
    a = cuda.local.array(16, float16)
    b = cuda.local.array(16, float16)
    acc = cuda.local.array(8, float32)
    lane = cuda.threadIdx.x
    row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
    r, c = lane // 2, lane % 2 * 8
    for e in range(8):
        acc[e] = 0
    for k0 in range(0, k, 16):
        for e in range(8):
            p, col = k0 + c + e, col0 + c + e
            As[r, c + e] = A[row0 + r, p] if row0 + r < m and p < k else float16(0)
            Bs[r, c + e] = B[k0 + r, col] if k0 + r < k and col < n else float16(0)
        cuda.syncwarp()
        wmma_load_a(a, As, (0, 0), ROW_MAJOR)
        wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)
        wmma_mma(acc, a, b, ROW_MAJOR, ROW_MAJOR)
        cuda.syncwarp()
    wmma_store(Cs, (0, 0), acc, ROW_MAJOR)
    cuda.syncwarp()
    for e in range(8):
        if row0 + r < m:
            C[row0 + r, col0 + c + e] = Cs[r, c + e]


@wrong("ragged_product", "made by lanes apart")
@cuda.jit
def store_guarded_by_lane(m, n, k, A, B, C):
    As = cuda.shared.array((16, 24), float16, 32)
    Bs = cuda.shared.array((16, 24), float16, 32)
    Cs = cuda.shared.array((16, 24), float32, 32)
    a = cuda.local.array(16, float16)
    b = cuda.local.array(16, float16)
    acc = cuda.local.array(8, float32)
    lane = cuda.threadIdx.x
    row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
    r, c = lane // 2, lane % 2 * 8
    for e in range(8):
        acc[e] = 0
    for k0 in range(0, k, 16):
        for e in range(8):
            p, col = k0 + c + e, col0 + c + e
            As[r, c + e] = A[row0 + r, p] if row0 + r < m and p < k else float16(0)
            Bs[r, c + e] = B[k0 + r, col] if k0 + r < k and col < n else float16(0)
        cuda.syncwarp()
        wmma_load_a(a, As, (0, 0), ROW_MAJOR)
        wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)
        wmma_mma(acc, a, b, ROW_MAJOR, ROW_MAJOR)
        cuda.syncwarp()
    if row0 + r < m:
        wmma_store(Cs, (0, 0), acc, ROW_MAJOR)
    cuda.syncwarp()
    for e in range(8):
        if row0 + r < m and col0 + c + e < n:
            C[row0 + r, col0 + c + e] = Cs[r, c + e]


@wrong("ragged_product", "never stored")
@cuda.jit
def row_by_row_alone(m, n, k, A, B, C):
    As = cuda.shared.array((16, 24), float16, 32)
    Bs = cuda.shared.array((16, 24), float16, 32)
    Cs = cuda.shared.array((16, 24), float32, 32)
    a = cuda.local.array(16, float16)
    b = cuda.local.array(16, float16)
    acc = cuda.local.array(8, float32)
    lane = cuda.threadIdx.x
    row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
    r, c = lane // 2, lane % 2 * 8
    for e in range(8):
        acc[e] = 0
    for k0 in range(0, k, 16):
        for e in range(8):
            p, col = k0 + c + e, col0 + c + e
            As[r, c + e] = A[row0 + r, p] if row0 + r < m and p < k else float16(0)
            Bs[r, c + e] = B[k0 + r, col] if k0 + r < k and col < n else float16(0)
        cuda.syncwarp()
        wmma_load_a(a, As, (0, 0), ROW_MAJOR)
        wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)
        wmma_mma(acc, a, b, ROW_MAJOR, ROW_MAJOR)
        cuda.syncwarp()
    wmma_store(Cs, (0, 0), acc, ROW_MAJOR)
    cuda.syncwarp()
    if row0 + r < m and col0 + c + 7 < n:
        for e in range(8):
            C[row0 + r, col0 + c + e] = Cs[r, c + e]


@wrong("ragged_product", "arrives transposed")
@cuda.jit
def stores_transposed(m, n, k, A, B, C):
    As = cuda.shared.array((16, 24), float16, 32)
    Bs = cuda.shared.array((16, 24), float16, 32)
    Cs = cuda.shared.array((16, 24), float32, 32)
    a = cuda.local.array(16, float16)
    b = cuda.local.array(16, float16)
    acc = cuda.local.array(8, float32)
    lane = cuda.threadIdx.x
    row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
    r, c = lane // 2, lane % 2 * 8
    for e in range(8):
        acc[e] = 0
    for k0 in range(0, k, 16):
        for e in range(8):
            p, col = k0 + c + e, col0 + c + e
            As[r, c + e] = A[row0 + r, p] if row0 + r < m and p < k else float16(0)
            Bs[r, c + e] = B[k0 + r, col] if k0 + r < k and col < n else float16(0)
        cuda.syncwarp()
        wmma_load_a(a, As, (0, 0), ROW_MAJOR)
        wmma_load_b(b, Bs, (0, 0), ROW_MAJOR)
        wmma_mma(acc, a, b, ROW_MAJOR, ROW_MAJOR)
        cuda.syncwarp()
    wmma_store(Cs, (0, 0), acc, COL_MAJOR)
    cuda.syncwarp()
    for e in range(8):
        if row0 + r < m and col0 + c + e < n:
            C[row0 + r, col0 + c + e] = Cs[r, c + e]


@wrong("ragged_product", "no Tensor Core was asked")
@cuda.jit
def without_tensor_cores_at_all(m, n, k, A, B, C):
    As = cuda.shared.array((16, 24), float16, 32)
    Bs = cuda.shared.array((16, 24), float16, 32)
    acc = cuda.local.array(8, float32)
    lane = cuda.threadIdx.x
    row0, col0 = cuda.blockIdx.y * 16, cuda.blockIdx.x * 16
    r, c = lane // 2, lane % 2 * 8
    for e in range(8):
        acc[e] = 0
    for k0 in range(0, k, 16):
        for e in range(8):
            p, col = k0 + c + e, col0 + c + e
            As[r, c + e] = A[row0 + r, p] if row0 + r < m and p < k else float16(0)
            Bs[r, c + e] = B[k0 + r, col] if k0 + r < k and col < n else float16(0)
        cuda.syncwarp()
        for p in range(16):
            for e in range(8):
                acc[e] += float32(As[r, p]) * float32(Bs[p, c + e])
        cuda.syncwarp()
    for e in range(8):
        if row0 + r < m and col0 + c + e < n:
            C[row0 + r, col0 + c + e] = acc[e]
