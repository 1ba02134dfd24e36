"""Answers to the exercises of notebook 06 that people really give, and that must be refused."""

from numba import cuda, float32
from tests.wrong_solutions.collect import collector

from gemm_course.intrinsics import load4, store4

WRONG, wrong = collector(
    "four_at_once", "transposing_scatter", "scatter_padding", "ragged_fours", "stray_read"
)


# ---- 06.1 ------------------------------------------------------------------------------------------------


@wrong("four_at_once", "divide by `BK // 4`")
def divided_by_bk(BM, BK, THREADS):
    ROWS = THREADS // BK

    @cuda.jit
    def copy(A, out):
        tid = cuda.threadIdx.x
        for i in range(0, BM, ROWS):
            r, c = i + tid // BK, tid % BK * 4
            store4(out, (r, c), load4(A, (r, c)))

    return copy


@wrong("four_at_once", "multiplied by 4")
def column_not_times_four(BM, BK, THREADS):
    ROWS = THREADS // (BK // 4)

    @cuda.jit
    def copy(A, out):
        tid = cuda.threadIdx.x
        for i in range(0, BM, ROWS):
            r, c = i + tid // (BK // 4), tid % (BK // 4)
            store4(out, (r, c), load4(A, (r, c)))

    return copy


@wrong("four_at_once", "A is read one float at a time")
def four_scalars(BM, BK, THREADS):
    ROWS = THREADS // (BK // 4)

    @cuda.jit
    def copy(A, out):
        tid = cuda.threadIdx.x
        for i in range(0, BM, ROWS):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            for e in range(4):
                out[r, c + e] = A[r, c + e]

    return copy


@wrong("four_at_once", "out is written one float at a time")
def stored_one_by_one(BM, BK, THREADS):
    ROWS = THREADS // (BK // 4)

    @cuda.jit
    def copy(A, out):
        tid = cuda.threadIdx.x
        for i in range(0, BM, ROWS):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            v = load4(A, (r, c))
            for e in range(4):
                out[r, c + e] = v[e]

    return copy


@wrong("four_at_once", "neighbouring threads are in different rows")
def lanes_down_a_column(BM, BK, THREADS):
    @cuda.jit
    def copy(A, out):
        for four in range(cuda.threadIdx.x, BM * BK // 4, THREADS):
            r, c = four % BM, four // BM * 4
            store4(out, (r, c), load4(A, (r, c)))

    return copy


@wrong("four_at_once", "rounds overlap")
def rounds_overlap(BM, BK, THREADS):
    ROWS = THREADS // BK

    @cuda.jit
    def copy(A, out):
        tid = cuda.threadIdx.x
        for i in range(0, BM - THREADS // (BK // 4) + 1, ROWS):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            store4(out, (r, c), load4(A, (r, c)))

    return copy


@wrong("four_at_once", "Only the first round")
def one_round(BM, BK, THREADS):
    @cuda.jit
    def copy(A, out):
        tid = cuda.threadIdx.x
        r, c = tid // (BK // 4), tid % (BK // 4) * 4
        if r < BM:
            store4(out, (r, c), load4(A, (r, c)))

    return copy


@wrong("four_at_once", "below the tile")
def one_round_too_many(BM, BK, THREADS):
    ROWS = THREADS // (BK // 4)

    @cuda.jit
    def copy(A, out):
        tid = cuda.threadIdx.x
        for i in range(0, BM + ROWS, ROWS):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            store4(out, (r, c), load4(A, (r, c)))

    return copy


# ---- 06.2 ------------------------------------------------------------------------------------------------


@wrong("transposing_scatter", "Nothing is transposed")
def untransposed(BM, BK, PAD, THREADS):
    SIZE = BM * BK

    @cuda.jit
    def transpose(A, out):
        As = cuda.shared.array(SIZE, float32, 16)
        tid = cuda.threadIdx.x
        for i in range(0, BM, THREADS // (BK // 4)):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            v = load4(A, (r, c))
            for e in range(4):
                As[r * BK + c + e] = v[e]
        cuda.syncthreads()
        for i in range(0, BK, THREADS // (BM // 4)):
            p, j = i + tid // (BM // 4), tid % (BM // 4) * 4
            store4(out, (p, j), load4(As, p * BM + j))

    return transpose


@wrong("transposing_scatter", "BK is the length of A's rows")
def bk_as_the_row_length(BM, BK, PAD, THREADS):
    SIZE = BK * (BM + PAD)

    @cuda.jit
    def transpose(A, out):
        As = cuda.shared.array(SIZE, float32, 16)
        tid = cuda.threadIdx.x
        for i in range(0, BM, THREADS // (BK // 4)):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            v = load4(A, (r, c))
            for e in range(4):
                As[(c + e) * BK + r] = v[e]
        cuda.syncthreads()
        for i in range(0, BK, THREADS // (BM // 4)):
            p, j = i + tid // (BM // 4), tid % (BM // 4) * 4
            store4(out, (p, j), load4(As, p * (BM + PAD) + j))

    return transpose


@wrong("transposing_scatter", "both where you store and where you read")
def padding_on_the_store_only(BM, BK, PAD, THREADS):
    SIZE = BK * (BM + PAD)

    @cuda.jit
    def transpose(A, out):
        As = cuda.shared.array(SIZE, float32, 16)
        tid = cuda.threadIdx.x
        for i in range(0, BM, THREADS // (BK // 4)):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            v = load4(A, (r, c))
            for e in range(4):
                As[(c + e) * (BM + PAD) + r] = v[e]
        cuda.syncthreads()
        for i in range(0, BK, THREADS // (BM // 4)):
            p, j = i + tid // (BM // 4), tid % (BM // 4) * 4
            store4(out, (p, j), load4(As, p * BM + j))

    return transpose


@wrong("transposing_scatter", "are its first, `v[0]`")
def component_0_four_times(BM, BK, PAD, THREADS):
    WIDTH = BM + PAD

    @cuda.jit
    def transpose(A, out):
        As = cuda.shared.array((BK, WIDTH), float32, 16)
        tid = cuda.threadIdx.x
        for i in range(0, BM, THREADS // (BK // 4)):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            v = load4(A, (r, c))
            for e in range(4):
                As[c + e, r] = v[0]
        cuda.syncthreads()
        for i in range(0, BK, THREADS // (BM // 4)):
            p, j = i + tid // (BM // 4), tid % (BM // 4) * 4
            store4(out, (p, j), load4(As, (p, j)))

    return transpose


@wrong("transposing_scatter", "reverse order")
def components_backwards(BM, BK, PAD, THREADS):
    WIDTH = BM + PAD

    @cuda.jit
    def transpose(A, out):
        As = cuda.shared.array((BK, WIDTH), float32, 16)
        tid = cuda.threadIdx.x
        for i in range(0, BM, THREADS // (BK // 4)):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            v = load4(A, (r, c))
            for e in range(4):
                As[c + 3 - e, r] = v[e]
        cuda.syncthreads()
        for i in range(0, BK, THREADS // (BM // 4)):
            p, j = i + tid // (BM // 4), tid % (BM // 4) * 4
            store4(out, (p, j), load4(As, (p, j)))

    return transpose


@wrong("transposing_scatter", "without the PAD")
def no_padding(BM, BK, PAD, THREADS):
    @cuda.jit
    def transpose(A, out):
        As = cuda.shared.array((BK, BM), float32, 16)
        tid = cuda.threadIdx.x
        for i in range(0, BM, THREADS // (BK // 4)):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            v = load4(A, (r, c))
            for e in range(4):
                As[c + e, r] = v[e]
        cuda.syncthreads()
        for i in range(0, BK, THREADS // (BM // 4)):
            p, j = i + tid // (BM // 4), tid % (BM // 4) * 4
            store4(out, (p, j), load4(As, (p, j)))

    return transpose


@wrong("transposing_scatter", "barrier between filling As and reading it is missing")
def no_barrier(BM, BK, PAD, THREADS):
    WIDTH = BM + PAD

    @cuda.jit
    def transpose(A, out):
        As = cuda.shared.array((BK, WIDTH), float32, 16)
        tid = cuda.threadIdx.x
        for i in range(0, BM, THREADS // (BK // 4)):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            v = load4(A, (r, c))
            for e in range(4):
                As[c + e, r] = v[e]
        for i in range(0, BK, THREADS // (BM // 4)):
            p, j = i + tid // (BM // 4), tid % (BM // 4) * 4
            store4(out, (p, j), load4(As, (p, j)))

    return transpose


@wrong("transposing_scatter", "A is read one float at a time")
def scalars_from_a(BM, BK, PAD, THREADS):
    WIDTH = BM + PAD

    @cuda.jit
    def transpose(A, out):
        As = cuda.shared.array((BK, WIDTH), float32, 16)
        tid = cuda.threadIdx.x
        for i in range(0, BM, THREADS // (BK // 4)):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            for e in range(4):
                As[c + e, r] = A[r, c + e]
        cuda.syncthreads()
        for i in range(0, BK, THREADS // (BM // 4)):
            p, j = i + tid // (BM // 4), tid % (BM // 4) * 4
            store4(out, (p, j), load4(As, (p, j)))

    return transpose


@wrong("transposing_scatter", "As is read one float at a time")
def gathered_instead_of_scattered(BM, BK, PAD, THREADS):
    """As is filled in A's order and read down its columns."""

    @cuda.jit
    def transpose(A, out):
        As = cuda.shared.array((BM, BK), float32, 16)
        tid = cuda.threadIdx.x
        for i in range(0, BM, THREADS // (BK // 4)):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            store4(As, (r, c), load4(A, (r, c)))
        cuda.syncthreads()
        for i in range(0, BK, THREADS // (BM // 4)):
            p, j = i + tid // (BM // 4), tid % (BM // 4) * 4
            store4(out, (p, j), (As[j, p], As[j + 1, p], As[j + 2, p], As[j + 3, p]))

    return transpose


@wrong("transposing_scatter", "out is written one float at a time")
def scalars_into_out(BM, BK, PAD, THREADS):
    WIDTH = BM + PAD

    @cuda.jit
    def transpose(A, out):
        As = cuda.shared.array((BK, WIDTH), float32, 16)
        tid = cuda.threadIdx.x
        for i in range(0, BM, THREADS // (BK // 4)):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            v = load4(A, (r, c))
            for e in range(4):
                As[c + e, r] = v[e]
        cuda.syncthreads()
        for i in range(0, BK, THREADS // (BM // 4)):
            p, j = i + tid // (BM // 4), tid % (BM // 4) * 4
            v = load4(As, (p, j))
            for e in range(4):
                out[p, j + e] = v[e]

    return transpose


@wrong("transposing_scatter", "third argument")
def alignment_not_said(BM, BK, PAD, THREADS):
    WIDTH = BM + PAD

    @cuda.jit
    def transpose(A, out):
        As = cuda.shared.array((BK, WIDTH), float32)
        tid = cuda.threadIdx.x
        for i in range(0, BM, THREADS // (BK // 4)):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            v = load4(A, (r, c))
            for e in range(4):
                As[c + e, r] = v[e]
        cuda.syncthreads()
        for i in range(0, BK, THREADS // (BM // 4)):
            p, j = i + tid // (BM // 4), tid % (BM // 4) * 4
            store4(out, (p, j), load4(As, (p, j)))

    return transpose


@wrong("transposing_scatter", "computed inside the kernel")
def width_computed_in_the_kernel(BM, BK, PAD, THREADS):
    @cuda.jit
    def transpose(A, out):
        As = cuda.shared.array((BK, BM + PAD), float32, 16)
        tid = cuda.threadIdx.x
        for i in range(0, BM, THREADS // (BK // 4)):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            v = load4(A, (r, c))
            for e in range(4):
                As[c + e, r] = v[e]
        cuda.syncthreads()
        for i in range(0, BK, THREADS // (BM // 4)):
            p, j = i + tid // (BM // 4), tid % (BM // 4) * 4
            store4(out, (p, j), load4(As, (p, j)))

    return transpose


@wrong("transposing_scatter", "no shared memory")
def without_shared_memory(BM, BK, PAD, THREADS):
    @cuda.jit
    def transpose(A, out):
        tid = cuda.threadIdx.x
        for i in range(0, BM, THREADS // (BK // 4)):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            v = load4(A, (r, c))
            for e in range(4):
                out[c + e, r] = v[e]

    return transpose


# ---- 06.3 ------------------------------------------------------------------------------------------------

WRONG["scatter_padding"] = {
    "no_conflict_without_padding": ({"wavefronts": [1, 1, 1], "take": 0}, "four different banks"),
    "a_wavefront_a_row": ({"wavefronts": [16, 1, 2], "take": 4}, "16 would be"),
    "eight_rows": ({"wavefronts": [8, 1, 2], "take": 4}, "8 banks"),
    "padding_counted_once": ({"wavefronts": [4, 2, 1], "take": 4}, "4 rows apart"),
    "four_is_perfect": ({"wavefronts": [4, 1, 1], "take": 4}, "32 banks apart"),
    "fewest_wavefronts": ({"wavefronts": [4, 1, 2], "take": 2}, "no multiple of 16"),
    "one_word_as_always": ({"wavefronts": [4, 1, 2], "take": 1}, "was not asked about"),
    "none": ({"wavefronts": [4, 1, 2], "take": 0}, "Without padding"),
}


# ---- 06.4 ------------------------------------------------------------------------------------------------


@wrong("ragged_fours", "Whole fours past k")
def trusts_the_zeros_of_b(BM, BK, THREADS):
    @cuda.jit(device=True)
    def fetch(m, k, A, row0, k0, As, tid):
        zeros = (float32(0), float32(0), float32(0), float32(0))
        for i in range(0, BM, THREADS // (BK // 4)):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            v = load4(A, (row0 + r, k0 + c)) if row0 + r < m else zeros
            for e in range(4):
                As[c + e, r] = v[e]

    return fetch


@wrong("ragged_fours", "left out altogether")
def skips_the_vector(BM, BK, THREADS):
    @cuda.jit(device=True)
    def fetch(m, k, A, row0, k0, As, tid):
        zeros = (float32(0), float32(0), float32(0), float32(0))
        for i in range(0, BM, THREADS // (BK // 4)):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            v = load4(A, (row0 + r, k0 + c)) if row0 + r < m and k0 + c + 3 < k else zeros
            for e in range(4):
                As[c + e, r] = v[e]

    return fetch


@wrong("ragged_fours", "sees only the first")
def guards_the_first_element_only(BM, BK, THREADS):
    @cuda.jit(device=True)
    def fetch(m, k, A, row0, k0, As, tid):
        zeros = (float32(0), float32(0), float32(0), float32(0))
        for i in range(0, BM, THREADS // (BK // 4)):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            v = load4(A, (row0 + r, k0 + c)) if row0 + r < m and k0 + c < k else zeros
            for e in range(4):
                As[c + e, r] = v[e]

    return fetch


@wrong("ragged_fours", "one float at a time")
def guards_four_scalars(BM, BK, THREADS):
    @cuda.jit(device=True)
    def fetch(m, k, A, row0, k0, As, tid):
        for i in range(0, BM, THREADS // (BK // 4)):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            for e in range(4):
                inside = row0 + r < m and k0 + c + e < k
                As[c + e, r] = A[row0 + r, k0 + c + e] if inside else float32(0)

    return fetch


@wrong("ragged_fours", "below row m")
def rows_unguarded(BM, BK, THREADS):
    @cuda.jit(device=True)
    def fetch(m, k, A, row0, k0, As, tid):
        zeros = (float32(0), float32(0), float32(0), float32(0))
        for i in range(0, BM, THREADS // (BK // 4)):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            v = load4(A, (row0 + r, k0 + c)) if k0 + c < k else zeros
            for e in range(4):
                As[c + e, r] = v[e] if k0 + c + e < k else float32(0)

    return fetch


@wrong("ragged_fours", "nothing is stored")
def nothing_stored_outside(BM, BK, THREADS):
    @cuda.jit(device=True)
    def fetch(m, k, A, row0, k0, As, tid):
        for i in range(0, BM, THREADS // (BK // 4)):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            if row0 + r < m and k0 + c < k:
                v = load4(A, (row0 + r, k0 + c))
                for e in range(4):
                    if k0 + c + e < k:
                        As[c + e, r] = v[e]

    return fetch


@wrong("ragged_fours", "at its place in As")
def always_the_first_tile(BM, BK, THREADS):
    @cuda.jit(device=True)
    def fetch(m, k, A, row0, k0, As, tid):
        zeros = (float32(0), float32(0), float32(0), float32(0))
        for i in range(0, BM, THREADS // (BK // 4)):
            r, c = i + tid // (BK // 4), tid % (BK // 4) * 4
            v = load4(A, (row0 + r, c)) if row0 + r < m and c < k else zeros
            for e in range(4):
                As[c + e, r] = v[e] if c + e < k else float32(0)

    return fetch


@wrong("ragged_fours", "never filled, although")
def one_round_of_a(BM, BK, THREADS):
    @cuda.jit(device=True)
    def fetch(m, k, A, row0, k0, As, tid):
        zeros = (float32(0), float32(0), float32(0), float32(0))
        r, c = tid // (BK // 4), tid % (BK // 4) * 4
        v = load4(A, (row0 + r, k0 + c)) if row0 + r < m and k0 + c < k else zeros
        for e in range(4):
            As[c + e, r] = v[e] if k0 + c + e < k else float32(0)

    return fetch


@wrong("ragged_fours", "device=True")
def a_kernel(BM, BK, THREADS):
    @cuda.jit
    def fetch(m, k, A, row0, k0, As, tid):
        r, c = tid // (BK // 4), tid % (BK // 4) * 4
        As[c, r] = A[row0 + r, k0 + c]

    return fetch


# ---- 06.5 ------------------------------------------------------------------------------------------------

WRONG["stray_read"] = {
    "blames_the_store": ({"access": ("C", "store"), "shape": (1, 1)}, "inside the guard"),
    "blames_a": ({"access": ("A", "load"), "shape": (1, 1)}, "are guarded"),
    "blames_k": ({"access": ("C", "load"), "shape": (32, 32, 5)}, "k has nothing to do"),
    "n_no_multiple_of_4": ({"access": ("C", "load"), "shape": (32, 33)}, "to the right"),
    "one_row_too_many": ({"access": ("C", "load"), "shape": (33, 32)}, "at the bottom"),
    "the_document_s_tile": ({"access": ("C", "load"), "shape": (32, 64)}, "both are multiples"),
    "one_less": ({"access": ("C", "load"), "shape": (31, 31)}, "Go on shrinking"),
    "nothing_at_all": ({"access": ("C", "load"), "shape": (0, 0)}, "no block"),
    "too_large": ({"access": ("C", "load"), "shape": (4097, 4097)}, "far larger"),
}
