"""Answers to the exercises of notebook 05 that people really give, and that must be refused."""

from numba import cuda, float32
from tests.wrong_solutions.collect import collector

from tests.wrong_solutions.altering import altered

WRONG, wrong = collector("draft_is_right", "slices", "coalesced_b", "outer_product", "no_conflicts")


# ---- 05.1 ------------------------------------------------------------------------------------------------

WRONG["draft_is_right"] = {
    "never": (lambda BM, BN, BK, TM, TN: False, "there is a BK"),
    "always": (lambda BM, BN, BK, TM, TN: True, "tiles with holes"),
    "up_to": (lambda BM, BN, BK, TM, TN: BK <= min(BN // TN, BM // TM), "surplus ones write beside"),
    "from_there_on": (lambda BM, BN, BK, TM, TN: BK >= max(BN // TN, BM // TM), "leaves holes"),
    "multiples": (lambda BM, BN, BK, TM, TN: BK % (BN // TN) == 0 and BK % (BM // TM) == 0, "comes back"),
    "only_a": (lambda BM, BN, BK, TM, TN: BK == BN // TN, "A's tile only"),
    "only_b": (lambda BM, BN, BK, TM, TN: BK == BM // TM, "B's tile only"),
    "either": (lambda BM, BN, BK, TM, TN: BK in (BM // TM, BN // TN), "One of the two"),
    "sixteen": (lambda BM, BN, BK, TM, TN: BK == 16, "16 is not a number of its own"),
    "square_blocks": (lambda BM, BN, BK, TM, TN: BM // TM == BN // TN, "BK has to fit"),
    "a_list_of_depths": (lambda BM, BN, BK, TM, TN: [BN // TN], "True or False"),
}


# ---- 05.2 ------------------------------------------------------------------------------------------------


def make_fetch(BM, BN, BK, TM, TN):
    """The right one."""

    @cuda.jit(device=True)
    def fetch(m, n, k, k0, A, B, As, Bs):
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        for c in range(tx, BK, BN // TN):
            for i in range(TM):
                r = ty * TM + i
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
        for r in range(ty, BK, BM // TM):
            for j in range(TN):
                c = tx * TN + j
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)

    return fetch


LOOP_A, LOOP_B = "for c in range(tx, BK, BN // TN):", "for r in range(ty, BK, BM // TM):"
GUARD_A, GUARD_B = "row0 + r < m and k0 + c < k", "k0 + r < k and col0 + c < n"
STORE_A = "As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)"
STORE_B = "Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)"
WRONG["slices"] = {
    "the_draft": (
        altered(make_fetch, (LOOP_A, "for c in range(tx, tx + 1):"), (LOOP_B, "for r in range(ty, ty + 1):")),
        "This is the draft",
    ),
    "strides_exchanged": (
        altered(
            make_fetch,
            (LOOP_A, "for c in range(tx, BK, BM // TM):"),
            (LOOP_B, "for r in range(ty, BK, BN // TN):"),
        ),
        "strides are exchanged",
    ),
    "begins_at_zero": (
        altered(
            make_fetch,
            (LOOP_A, "for c in range(0, BK, BN // TN):"),
            (LOOP_B, "for r in range(0, BK, BM // TM):"),
        ),
        "start at 0",
    ),
    "everybody_fetches_all": (
        altered(make_fetch, (LOOP_A, "for c in range(BK):"), (LOOP_B, "for r in range(BK):")),
        "not shared",
    ),
    "steps_of_one": (
        altered(make_fetch, (LOOP_A, "for c in range(tx, BK):"), (LOOP_B, "for r in range(ty, BK):")),
        "steps of 1",
    ),
    "strides_of_a_slice": (
        altered(make_fetch, (LOOP_A, "for c in range(tx, BK, TM):"), (LOOP_B, "for r in range(ty, BK, TN):")),
        "strides are TM and TN",
    ),
    "one_element_a_slice": (
        altered(make_fetch, ("range(TM)", "range(1)"), ("range(TN)", "range(1)")),
        "only the first element",
    ),
    "barrier_in_the_loop": (
        altered(make_fetch, (STORE_A, STORE_A + "\n            cuda.syncthreads()")),
        "barrier inside a loop or a branch",
    ),
    "barrier_at_the_end": (
        altered(make_fetch, (STORE_B, STORE_B + "\n        cuda.syncthreads()")),
        "Leave it out",
    ),
    "k_of_a_unguarded": (altered(make_fetch, (GUARD_A, "row0 + r < m")), "`k0 + c < k` is missing"),
    "k_of_b_unguarded": (altered(make_fetch, (GUARD_B, "col0 + c < n")), "`k0 + r < k` is missing"),
    "m_unguarded": (altered(make_fetch, (GUARD_A, "k0 + c < k")), "does not look at `m`"),
    "n_unguarded": (altered(make_fetch, (GUARD_B, "k0 + r < k")), "does not look at `n`"),
    "no_zeros": (
        altered(
            make_fetch,
            (STORE_A, f"if {GUARD_A}:\n                    As[r, c] = A[row0 + r, k0 + c]"),
            (STORE_B, f"if {GUARD_B}:\n                    Bs[r, c] = B[k0 + r, col0 + c]"),
        ),
        "nothing is stored into `As`",
    ),
    "k0_left_out": (altered(make_fetch, ("A[row0 + r, k0 + c]", "A[row0 + r, c]")), "`k0` is left out"),
    "block_left_out": (
        altered(make_fetch, ("cuda.blockIdx.y * BM, cuda.blockIdx.x * BN", "0, 0")),
        "place is left out",
    ),
    "block_axes_exchanged": (
        altered(
            make_fetch,
            ("cuda.blockIdx.y * BM, cuda.blockIdx.x * BN", "cuda.blockIdx.x * BM, cuda.blockIdx.y * BN"),
        ),
        "x and y are exchanged",
    ),
    "indices_of_the_tile_exchanged": (altered(make_fetch, ("As[r, c] =", "As[c, r] =")), "As is (BM, BK)"),
    "only_a": (altered(make_fetch, (LOOP_B, "for r in range(0):")), "Nothing is stored into `Bs`"),
    "no_factory": (make_fetch(16, 16, 8, 4, 4), "what the factory is to return"),
}


# ---- 05.3 ------------------------------------------------------------------------------------------------


def make_fetch_b(BM, BN, BK, TM, TN):
    """A right one."""

    @cuda.jit(device=True)
    def fetch(m, n, k, k0, A, B, As, Bs):
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col0 = cuda.blockIdx.x * BN
        for r in range(ty, BK, BM // TM):
            for j in range(TN):
                c = tx + j * (BN // TN)
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)

    return fetch


def make_linear(BM, BN, BK, TM, TN):
    """Another right one: elements in the order in which they lie, handed out to threads numbered through."""
    THREADS = BM * BN // (TM * TN)

    @cuda.jit(device=True)
    def fetch(m, n, k, k0, A, B, As, Bs):
        col0 = cuda.blockIdx.x * BN
        tid = cuda.threadIdx.y * (BN // TN) + cuda.threadIdx.x
        for e in range(tid, BK * BN, THREADS):
            r, c = e // BN, e % BN
            Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)

    return fetch


@wrong("coalesced_b", "two loops have changed places")
def loops_exchanged(BM, BN, BK, TM, TN):
    @cuda.jit(device=True)
    def fetch(m, n, k, k0, A, B, As, Bs):
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        col0 = cuda.blockIdx.x * BN
        for j in range(TN):
            for r in range(ty, BK, BM // TM):
                c = tx * TN + j
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)

    return fetch


WRONG["coalesced_b"] |= {
    "kernel5": (
        altered(make_fetch_b, ("tx + j * (BN // TN)", "tx * TN + j")),
        "neighbours in x fetch elements 8 columns apart",
    ),
    "store_forgotten": (
        altered(make_fetch_b, ("Bs[r, c] =", "Bs[r, tx * TN + j] =")),
        "The store has to move along",
    ),
    "load_forgotten": (
        altered(
            make_fetch_b, ("B[k0 + r, col0 + c]", "B[k0 + r, col0 + tx * TN + j]"), ("col0 + c < n", "True")
        ),
        "Only the store has moved",
    ),
    "bk_for_bn": (altered(make_linear, ("e // BN, e % BN", "e // BK, e % BK")), "A row of Bs has BN"),
    "stride_of_the_width": (
        altered(make_linear, ("BK * BN, THREADS", "BK * BN, BN // TN")),
        "stride is only the block's width",
    ),
    "no_loop": (altered(make_linear, ("range(tid, BK * BN, THREADS)", "range(tid, tid + 1)")), "no loop"),
    "columns_overlap": (altered(make_fetch_b, ("tx + j * (BN // TN)", "tx + j")), "they overlap"),
    "columns_tn_apart": (altered(make_fetch_b, ("tx + j * (BN // TN)", "tx + j * TN")), "is not TN"),
    "stride_of_rows_gone": (altered(make_fetch_b, (LOOP_B, "for r in range(ty, ty + 1):")), "stride along"),
    "down_the_columns": (
        altered(make_linear, ("e // BN, e % BN", "e % BK, e // BK")),
        "from different rows of B",
    ),
    "n_unguarded": (altered(make_fetch_b, (GUARD_B, "k0 + r < k")), "does not look at `n`"),
    "fills_as": (altered(make_fetch_b, ("Bs[r, c]", "As[c, r]")), "Nothing is stored into `Bs`"),
}


# ---- 05.4 ------------------------------------------------------------------------------------------------


def make_outer(BM, BN, BK, TM, TN):
    """The right one."""
    THREADS = BM * BN // (TM * TN)

    @cuda.jit
    def outer(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, BK), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        acc = cuda.local.array((TM, TN), float32)
        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        for i in range(TM):
            for j in range(TN):
                acc[i, j] = 0
        for k0 in range(0, k, BK):
            for e in range(ty * (BN // TN) + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * (BN // TN) + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in range(BK):
                for i in range(TM):
                    a[i] = As[ty * TM + i, p]
                for j in range(TN):
                    b[j] = Bs[p, tx * TN + j]
                for i in range(TM):
                    for j in range(TN):
                        acc[i, j] += a[i] * b[j]
            cuda.syncthreads()
        for i in range(TM):
            for j in range(TN):
                row, col = row0 + ty * TM + i, col0 + tx * TN + j
                if row < m and col < n:
                    C[row, col] = alpha * acc[i, j] + beta * C[row, col] if beta != 0 else alpha * acc[i, j]

    return outer


ZERO = "acc[i, j] = 0"
READ_A, READ_B, ADD = "a[i] = As[ty * TM + i, p]", "b[j] = Bs[p, tx * TN + j]", "acc[i, j] += a[i] * b[j]"
INNER = f"for i in range(TM):\n                    for j in range(TN):\n                        {ADD}"
PLACE = "row, col = row0 + ty * TM + i, col0 + tx * TN + j"
SYNC_BEFORE = "            cuda.syncthreads()\n            for p"
SYNC_AFTER = f"{ADD}\n            cuda.syncthreads()"
ALL_ZERO = "for i in range(TM):\n            for j in range(TN):\n                acc[i, j] = 0"
WRONG["outer_product"] = {
    "reads_in_both_loops": (
        altered(
            make_outer,
            (ADD, "acc[i, j] += As[ty * TM + i, p] * Bs[p, tx * TN + j]"),
            (READ_A, "a[i] = 0"),
            (READ_B, "b[j] = 0"),
        ),
        "inside both loops",
    ),
    "bs_again_in_the_inner_loop": (
        altered(make_outer, (ADD, "acc[i, j] += a[i] * Bs[p, tx * TN + j]"), (READ_B, "b[j] = 0")),
        "each element of As is read once",
    ),
    "as_again_in_the_inner_loop": (
        altered(make_outer, (ADD, "acc[i, j] += As[ty * TM + i, p] * b[j]"), (READ_A, "a[i] = 0")),
        "each element of Bs is read once",
    ),
    "acc_zeroed_each_step": (
        altered(make_outer, (ADD, "acc[i, j] = a[i] * b[j]")),
        "Only the last product is left",
    ),
    "acc_zeroed_each_tile": (
        altered(
            make_outer,
            (
                "            for p in range(BK):",
                "            for i in range(TM):\n                for j in "
                "range(TN):\n                    acc[i, j] = 0\n            for p in range(BK):",
            ),
        ),
        "Only the last tile along k counts",
    ),
    "acc_never_zeroed": (altered(make_outer, (ALL_ZERO, "pass")), "before anything was put into it"),
    "one_accumulator": (
        altered(
            make_outer,
            (ALL_ZERO, "total = float32(0)"),
            (ADD, "total += a[i] * b[j]"),
            ("alpha * acc[i, j]", "alpha * total"),
        ),
        "summed up in one",
    ),
    "tm_for_tn": (altered(make_outer, (READ_B, "b[j] = Bs[p, tx * TM + j]")), "begins at column `tx * TM`"),
    "tn_for_tm": (
        altered(make_outer, (READ_A, "a[i] = As[ty * TN + i, p]")),
        "reads beside its tile",
    ),
    "columns_of_the_neighbour": (altered(make_outer, (READ_B, "b[j] = Bs[p, tx + j]")), "`tx + j`"),
    "rows_of_the_neighbour": (altered(make_outer, (READ_A, "a[i] = As[ty + i, p]")), "`ty + i`"),
    "row_stands_still": (altered(make_outer, (READ_A, "a[i] = As[ty * TM, p]")), "same row of As"),
    "column_stands_still": (altered(make_outer, (READ_B, "b[j] = Bs[p, tx * TN]")), "same column of Bs"),
    "row_of_all_threads": (altered(make_outer, (READ_A, "a[i] = As[i, p]")), "`i` for all threads"),
    "column_of_all_threads": (altered(make_outer, (READ_B, "b[j] = Bs[p, j]")), "`j` for all threads"),
    "stored_as_neighbours": (
        altered(make_outer, (PLACE, "row, col = row0 + ty + i, col0 + tx + j")),
        "overlap",
    ),
    "stores_one": (
        altered(make_outer, (PLACE, PLACE + "\n                if i or j:\n                    continue")),
        "only the first is stored",
    ),
    "stores_a_column": (
        altered(make_outer, (PLACE, PLACE + "\n                if j:\n                    continue")),
        "the loop over `j` is missing",
    ),
    "stored_with_tm": (
        altered(make_outer, (PLACE, "row, col = row0 + ty * TM + i, col0 + tx * TM + j")),
        "stored from column `tx * TM`",
    ),
    "no_guard": (altered(make_outer, ("if row < m and col < n:", "if True:")), "There is no guard"),
    "second_barrier_missing": (altered(make_outer, (SYNC_AFTER, ADD)), "second barrier"),
    "first_barrier_missing": (
        altered(make_outer, (SYNC_BEFORE, "            for p")),
        "first barrier",
    ),
    "barrier_in_every_step": (
        altered(make_outer, (READ_B, READ_B + "\n                cuda.syncthreads()")),
        "More than two barriers",
    ),
    "results_in_shared_memory": (
        altered(
            make_outer,
            ("acc = cuda.local.array((TM, TN), float32)", "all = cuda.shared.array((BM, BN), float32)"),
            ("acc[i, j]", "all[ty * TM + i, tx * TN + j]"),
        ),
        "Results belong into registers",
    ),
    "a_float64_at_the_end": (
        altered(make_outer, ("else alpha * acc[i, j]", "else alpha * acc[i, j] + 0.0")),
        "float64",
    ),
    "kernel_itself": (make_outer(8, 16, 4, 2, 4), "what the factory is to return"),
}


# ---- 05.5 ------------------------------------------------------------------------------------------------


def make_mended(BM, BN, BK, TM, TN):
    """The right one."""
    THREADS, WIDTH, APART = BM * BN // (TM * TN), BK + 1, BN // TN

    @cuda.jit
    def mended(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BM, WIDTH), float32)
        Bs = cuda.shared.array((BK, BN), float32)
        tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
        row0, col0 = cuda.blockIdx.y * BM, cuda.blockIdx.x * BN
        acc = cuda.local.array((TM, TN), float32)
        a = cuda.local.array(TM, float32)
        b = cuda.local.array(TN, float32)
        for i in range(TM):
            for j in range(TN):
                acc[i, j] = 0
        for k0 in range(0, k, BK):
            for e in range(ty * APART + tx, BM * BK, THREADS):
                r, c = e // BK, e % BK
                As[r, c] = A[row0 + r, k0 + c] if row0 + r < m and k0 + c < k else float32(0)
            for e in range(ty * APART + tx, BK * BN, THREADS):
                r, c = e // BN, e % BN
                Bs[r, c] = B[k0 + r, col0 + c] if k0 + r < k and col0 + c < n else float32(0)
            cuda.syncthreads()
            for p in range(BK):
                for i in range(TM):
                    a[i] = As[ty * TM + i, p]
                for j in range(TN):
                    b[j] = Bs[p, tx + j * APART]
                for i in range(TM):
                    for j in range(TN):
                        acc[i, j] += a[i] * b[j]
            cuda.syncthreads()
        for i in range(TM):
            for j in range(TN):
                row, col = row0 + ty * TM + i, col0 + tx + j * APART
                if row < m and col < n:
                    C[row, col] = alpha * acc[i, j] + beta * C[row, col] if beta != 0 else alpha * acc[i, j]

    return mended


UNPADDED, SIDE_BY_SIDE = ("BK + 1", "BK"), ("tx + j * APART", "tx * TN + j")
PADDED_B = (("(BK, BN), float32)", "(BK, WIDTH_B), float32)"), ("APART = ", "APART, WIDTH_B = "))
WRONG["no_conflicts"] = {
    "unchanged": (altered(make_mended, UNPADDED, SIDE_BY_SIDE), "both conflicts are still there"),
    "only_padding": (altered(make_mended, SIDE_BY_SIDE), "As is mended, Bs is not"),
    "only_columns": (altered(make_mended, UNPADDED), "Bs is mended, As is not"),
    "pads_by_four": (altered(make_mended, ("BK + 1", "BK + 4")), "rows are 20 words long"),
    "pads_bs": (
        altered(
            make_mended,
            UNPADDED,
            SIDE_BY_SIDE,
            PADDED_B[0],
            PADDED_B[1],
            ("BN // TN\n", "BN // TN, BN + 1\n"),
        ),
        "The padding is on Bs",
    ),
    "pads_both": (
        altered(make_mended, SIDE_BY_SIDE, PADDED_B[0], PADDED_B[1], ("BN // TN\n", "BN // TN, BN + 1\n")),
        "padding does nothing for Bs",
    ),
    "pads_both_by_four": (
        altered(
            make_mended,
            SIDE_BY_SIDE,
            PADDED_B[0],
            PADDED_B[1],
            ("BN // TN\n", "BN // TN, BN + 4\n"),
            ("BK + 1", "BK + 4"),
        ),
        "Padding alone",
    ),
    "store_of_c_left_behind": (
        altered(make_mended, ("col0 + tx + j * APART", "col0 + tx * TN + j")),
        "The store of C has to move along",
    ),
    "reads_of_bs_left_behind": (
        altered(make_mended, ("Bs[p, tx + j * APART]", "Bs[p, tx * TN + j]")),
        "Both have to move",
    ),
    "width_computed_inside": (
        altered(make_mended, ("(BM, WIDTH), float32", "(BM, BK + 1), float32")),
        "computed inside the kernel",
    ),
    "reads_in_both_loops": (
        altered(
            make_mended,
            (ADD, "acc[i, j] += As[ty * TM + i, p] * Bs[p, tx + j * APART]"),
            (READ_A, "a[i] = 0"),
            ("b[j] = Bs[p, tx + j * APART]", "b[j] = 0"),
        ),
        "inside both loops",
    ),
    "no_guard": (altered(make_mended, ("if row < m and col < n:", "if True:")), "There is no guard"),
}
