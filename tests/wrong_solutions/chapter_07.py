"""Answers to the exercises of notebook 07 that people really give, and that must be refused."""

from numba import cuda, float32
from tests.wrong_solutions.collect import collector

from gemm_course.checks.kits import parts

WRONG, wrong = collector(
    "warp_steps", "owner_map", "legal_tiles", "warp_wavefronts", "register_loads", "warp_kernel"
)


# ---- 07.1 ------------------------------------------------------------------------------------------------


@wrong("warp_steps", "WNITER is missing")
def without_wniter(WM, WN, TM, TN, WNITER):
    WMITER = WM * WN // (32 * TM * TN)
    return WMITER, WM // WMITER, WN // WNITER


@wrong("warp_steps", "A warp has 32 threads")
def one_thread_a_warp(WM, WN, TM, TN, WNITER):
    WMITER = WM * WN // (TM * TN * WNITER)
    return WMITER, WM // WMITER, WN // WNITER


@wrong("warp_steps", "divisors exchanged")
def divisors_exchanged(WM, WN, TM, TN, WNITER):
    WMITER = WM * WN // (32 * TM * TN * WNITER)
    return WMITER, WM // WNITER, WN // WMITER


@wrong("warp_steps", "not what a thread does")
def a_thread_tile_for_a_step(WM, WN, TM, TN, WNITER):
    return WM * WN // (32 * TM * TN * WNITER), TM, TN


@wrong("warp_steps", "the other way round")
def columns_before_rows(WM, WN, TM, TN, WNITER):
    WMITER = WM * WN // (32 * TM * TN * WNITER)
    return WMITER, WN // WNITER, WM // WMITER


@wrong("warp_steps", "count elements")
def lanes_below_each_other(WM, WN, TM, TN, WNITER):
    WMITER = WM // TM // WNITER
    return WMITER, WM // WMITER, WN // WNITER


@wrong("warp_steps", "always gives a float")
def divided_by_a_single_slash(WM, WN, TM, TN, WNITER):
    WMITER = WM * WN / (32 * TM * TN * WNITER)
    return WMITER, WM / WMITER, WN / WNITER


@wrong("warp_steps", "three numbers")
def only_wmiter(WM, WN, TM, TN, WNITER):
    return WM * WN // (32 * TM * TN * WNITER)


# ---- 07.2 ------------------------------------------------------------------------------------------------


def steps_of(WM, WN, TN, WNITER):
    """WMITER, WSUBM, WSUBN with TM = 1."""
    WMITER = WM * WN // (32 * TN * WNITER)
    return WMITER, WM // WMITER, WN // WNITER


@wrong("owner_map", "exchanged for the lane")
def lane_exchanged(tid, BN, WM, WN, TN, WNITER):
    WMITER, WSUBM, WSUBN = steps_of(WM, WN, TN, WNITER)
    warp, lane = tid // 32, tid % 32
    row = warp // (BN // WN) * WM + lane % (WSUBN // TN)
    col = warp % (BN // WN) * WN + lane // (WSUBN // TN) * TN
    steps = [(i, j) for i in range(WMITER) for j in range(WNITER)]
    return [(row + i * WSUBM, col + j * WSUBN + e) for i, j in steps for e in range(TN)]


@wrong("owner_map", "exchanged for the warp")
def warp_exchanged(tid, BN, WM, WN, TN, WNITER):
    WMITER, WSUBM, WSUBN = steps_of(WM, WN, TN, WNITER)
    warp, lane = tid // 32, tid % 32
    row = warp % (BN // WN) * WM + lane // (WSUBN // TN)
    col = warp // (BN // WN) * WN + lane % (WSUBN // TN) * TN
    steps = [(i, j) for i in range(WMITER) for j in range(WNITER)]
    return [(row + i * WSUBM, col + j * WSUBN + e) for i, j in steps for e in range(TN)]


@wrong("owner_map", "where its lane is meant")
def thread_for_lane(tid, BN, WM, WN, TN, WNITER):
    WMITER, WSUBM, WSUBN = steps_of(WM, WN, TN, WNITER)
    warp, lane = tid // 32, tid
    row = warp // (BN // WN) * WM + lane // (WSUBN // TN)
    col = warp % (BN // WN) * WN + lane % (WSUBN // TN) * TN
    steps = [(i, j) for i in range(WMITER) for j in range(WNITER)]
    return [(row + i * WSUBM, col + j * WSUBN + e) for i, j in steps for e in range(TN)]


@wrong("owner_map", "The warp is left out")
def no_warp(tid, BN, WM, WN, TN, WNITER):
    WMITER, WSUBM, WSUBN = steps_of(WM, WN, TN, WNITER)
    lane = tid % 32
    row, col = lane // (WSUBN // TN), lane % (WSUBN // TN) * TN
    steps = [(i, j) for i in range(WMITER) for j in range(WNITER)]
    return [(row + i * WSUBM, col + j * WSUBN + e) for i, j in steps for e in range(TN)]


@wrong("owner_map", "contiguous")
def contiguous_rows(tid, BN, WM, WN, TN, WNITER):
    WMITER, _, WSUBN = steps_of(WM, WN, TN, WNITER)
    warp, lane = tid // 32, tid % 32
    row = warp // (BN // WN) * WM + lane // (WSUBN // TN) * WMITER
    col = warp % (BN // WN) * WN + lane % (WSUBN // TN) * TN
    steps = [(i, j) for i in range(WMITER) for j in range(WNITER)]
    return [(row + i, col + j * WSUBN + e) for i, j in steps for e in range(TN)]


@wrong("owner_map", "all steps lie side by side")
def contiguous_columns(tid, BN, WM, WN, TN, WNITER):
    WMITER, WSUBM, WSUBN = steps_of(WM, WN, TN, WNITER)
    warp, lane = tid // 32, tid % 32
    row = warp // (BN // WN) * WM + lane // (WSUBN // TN)
    col = warp % (BN // WN) * WN + lane % (WSUBN // TN) * TN * WNITER
    return [(row + i * WSUBM, col + e) for i in range(WMITER) for e in range(WNITER * TN)]


@wrong("owner_map", "stride WSUBM is missing")
def no_stride_down(tid, BN, WM, WN, TN, WNITER):
    WMITER, _, WSUBN = steps_of(WM, WN, TN, WNITER)
    warp, lane = tid // 32, tid % 32
    row = warp // (BN // WN) * WM + lane // (WSUBN // TN)
    col = warp % (BN // WN) * WN + lane % (WSUBN // TN) * TN
    steps = [(i, j) for i in range(WMITER) for j in range(WNITER)]
    return [(row + i, col + j * WSUBN + e) for i, j in steps for e in range(TN)]


@wrong("owner_map", "stride WSUBN is missing")
def no_stride_across(tid, BN, WM, WN, TN, WNITER):
    WMITER, WSUBM, WSUBN = steps_of(WM, WN, TN, WNITER)
    warp, lane = tid // 32, tid % 32
    row = warp // (BN // WN) * WM + lane // (WSUBN // TN)
    col = warp % (BN // WN) * WN + lane % (WSUBN // TN) * TN
    steps = [(i, j) for i in range(WMITER) for j in range(WNITER)]
    return [(row + i * WSUBM, col + j * TN + e) for i, j in steps for e in range(TN)]


@wrong("owner_map", "multiplied by TN")
def lanes_a_column_apart(tid, BN, WM, WN, TN, WNITER):
    WMITER, WSUBM, WSUBN = steps_of(WM, WN, TN, WNITER)
    warp, lane = tid // 32, tid % 32
    row = warp // (BN // WN) * WM + lane // (WSUBN // TN)
    col = warp % (BN // WN) * WN + lane % (WSUBN // TN)
    steps = [(i, j) for i in range(WMITER) for j in range(WNITER)]
    return [(row + i * WSUBM, col + j * WSUBN + e) for i, j in steps for e in range(TN)]


@wrong("owner_map", "Rows and columns are exchanged")
def column_before_row(tid, BN, WM, WN, TN, WNITER):
    WMITER, WSUBM, WSUBN = steps_of(WM, WN, TN, WNITER)
    warp, lane = tid // 32, tid % 32
    row = warp // (BN // WN) * WM + lane // (WSUBN // TN)
    col = warp % (BN // WN) * WN + lane % (WSUBN // TN) * TN
    steps = [(i, j) for i in range(WMITER) for j in range(WNITER)]
    return [(col + j * WSUBN + e, row + i * WSUBM) for i, j in steps for e in range(TN)]


@wrong("owner_map", "not BN // WM")
def warps_counted_by_rows(tid, BN, WM, WN, TN, WNITER):
    WMITER, WSUBM, WSUBN = steps_of(WM, WN, TN, WNITER)
    warp, lane = tid // 32, tid % 32
    row = warp // (BN // WM) * WM + lane // (WSUBN // TN)
    col = warp % (BN // WM) * WN + lane % (WSUBN // TN) * TN
    steps = [(i, j) for i in range(WMITER) for j in range(WNITER)]
    return [(row + i * WSUBM, col + j * WSUBN + e) for i, j in steps for e in range(TN)]


@wrong("owner_map", "Only the first step")
def one_step(tid, BN, WM, WN, TN, WNITER):
    _, _, WSUBN = steps_of(WM, WN, TN, WNITER)
    warp, lane = tid // 32, tid % 32
    row = warp // (BN // WN) * WM + lane // (WSUBN // TN)
    col = warp % (BN // WN) * WN + lane % (WSUBN // TN) * TN
    return [(row, col + e) for e in range(TN)]


@wrong("owner_map", "in another order")
def across_before_down(tid, BN, WM, WN, TN, WNITER):
    WMITER, WSUBM, WSUBN = steps_of(WM, WN, TN, WNITER)
    warp, lane = tid // 32, tid % 32
    row = warp // (BN // WN) * WM + lane // (WSUBN // TN)
    col = warp % (BN // WN) * WN + lane % (WSUBN // TN) * TN
    steps = [(i, j) for j in range(WNITER) for i in range(WMITER)]
    return [(row + i * WSUBM, col + j * WSUBN + e) for i, j in steps for e in range(TN)]


@wrong("owner_map", "outside a tile")
def steps_as_far_as_the_warp(tid, BN, WM, WN, TN, WNITER):
    WMITER, _, WSUBN = steps_of(WM, WN, TN, WNITER)
    warp, lane = tid // 32, tid % 32
    row = warp // (BN // WN) * WM + lane // (WSUBN // TN)
    col = warp % (BN // WN) * WN + lane % (WSUBN // TN) * TN
    steps = [(i, j) for i in range(WMITER) for j in range(WNITER)]
    return [(row + i * WM, col + j * WSUBN + e) for i, j in steps for e in range(TN)]


@wrong("owner_map", "whole numbers")
def rows_as_floats(tid, BN, WM, WN, TN, WNITER):
    WMITER, WSUBM, WSUBN = steps_of(WM, WN, TN, WNITER)
    warp, lane = tid // 32, tid % 32
    row = warp // (BN // WN) * WM + lane / (WSUBN / TN)
    col = warp % (BN // WN) * WN + lane % (WSUBN // TN) * TN
    steps = [(i, j) for i in range(WMITER) for j in range(WNITER)]
    return [(row + i * WSUBM, col + j * WSUBN + e) for i, j in steps for e in range(TN)]


# ---- 07.3 ------------------------------------------------------------------------------------------------


@wrong("legal_tiles", "`WSUBM % TM` is missing")
def without_wsubm(BM, BN, WM, WN, TM, TN, WNITER):
    step = 32 * TM * TN * WNITER
    if BM % WM or BN % WN or WM * WN % step or WN % (WNITER * TN) or WM % (WM * WN // step):
        return 0
    threads = BM * BN // (WM * WN) * 32
    return threads if threads <= 1024 else 0


@wrong("legal_tiles", "WMITER may be a fraction")
def fractional_wmiter(BM, BN, WM, WN, TM, TN, WNITER):
    WMITER = max(1, WM * WN // (32 * TM * TN * WNITER))
    if BM % WM or BN % WN or WN % (WNITER * TN) or WM % WMITER or WM // WMITER % TM:
        return 0
    threads = BM * BN // (WM * WN) * 32
    return threads if threads <= 1024 else 0


@wrong("legal_tiles", "as in notebook 05")
def a_thread_for_each_thread_tile(BM, BN, WM, WN, TM, TN, WNITER):
    step = 32 * TM * TN * WNITER
    if BM % WM or BN % WN or WM * WN % step or WN % (WNITER * TN):
        return 0
    WMITER = WM * WN // step
    if WM % WMITER or WM // WMITER % TM:
        return 0
    threads = BM * BN // (TM * TN)
    return threads if threads <= 1024 else 0


@wrong("legal_tiles", "1,024")
def any_number_of_threads(BM, BN, WM, WN, TM, TN, WNITER):
    step = 32 * TM * TN * WNITER
    if BM % WM or BN % WN or WM * WN % step or WN % (WNITER * TN):
        return 0
    WMITER = WM * WN // step
    return 0 if WM % WMITER or WM // WMITER % TM else BM * BN // (WM * WN) * 32


@wrong("legal_tiles", "BM must be a multiple of WM")
def without_rows_of_warps(BM, BN, WM, WN, TM, TN, WNITER):
    step = 32 * TM * TN * WNITER
    if BN % WN or WM * WN % step or WN % (WNITER * TN):
        return 0
    WMITER = WM * WN // step
    threads = BM * BN // (WM * WN) * 32
    return threads if WM % WMITER == 0 and WM // WMITER % TM == 0 and threads <= 1024 else 0


@wrong("legal_tiles", "multiple of WNITER·TN")
def without_whole_runs(BM, BN, WM, WN, TM, TN, WNITER):
    step = 32 * TM * TN * WNITER
    if BM % WM or BN % WN or WM * WN % step:
        return 0
    WMITER = WM * WN // step
    threads = BM * BN // (WM * WN) * 32
    return threads if WM % WMITER == 0 and WM // WMITER % TM == 0 and threads <= 1024 else 0


@wrong("legal_tiles", "number of warps")
def warps_for_threads(BM, BN, WM, WN, TM, TN, WNITER):
    step = 32 * TM * TN * WNITER
    if BM % WM or BN % WN or WM * WN % step or WN % (WNITER * TN):
        return 0
    WMITER = WM * WN // step
    return 0 if WM % WMITER or WM // WMITER % TM else BM * BN // (WM * WN)


@wrong("legal_tiles", "Everything is let through")
def everything(BM, BN, WM, WN, TM, TN, WNITER):
    return BM * BN // (WM * WN) * 32


@wrong("legal_tiles", "and are refused")
def powers_of_two_only(BM, BN, WM, WN, TM, TN, WNITER):
    step = 32 * TM * TN * WNITER
    if any(size & (size - 1) for size in (BM, BN, WM, WN, TM, TN, WNITER)):
        return 0
    if BM % WM or BN % WN or WM * WN % step or WN % (WNITER * TN):
        return 0
    WMITER = WM * WN // step
    threads = BM * BN // (WM * WN) * 32
    return threads if WM % WMITER == 0 and WM // WMITER % TM == 0 and threads <= 1024 else 0


@wrong("legal_tiles", "or 0 where")
def yes_or_no(BM, BN, WM, WN, TM, TN, WNITER):
    return BM % WM == 0 and BN % WN == 0


# ---- 07.4 ------------------------------------------------------------------------------------------------

LAYOUTS = ("8 × 4", "4 × 8", "8 × 4, in fours", "4 × 8, in fours")


def table(*rows):
    return dict(zip(LAYOUTS, rows, strict=True))


WRONG["warp_wavefronts"] = {
    "broadcast_counted": (
        {"table": table(((8, 8), (8, 8)), ((8, 8), (8, 8)), ((4, 8), (4, 8)), ((8, 4), (8, 4)))},
        "get it together",
    ),
    "words_counted": (
        {"table": table(((8, 4), (32, 16)), ((4, 8), (16, 32)), ((8, 4), (32, 16)), ((4, 8), (16, 32)))},
        "different banks",
    ),
    "layouts_alike": (
        {"table": table(((2, 1), (2, 4)), ((2, 1), (2, 4)), ((1, 1), (2, 4)), ((1, 1), (2, 4)))},
        "are not alike",
    ),
    "four_floats_as_one": (
        {"table": table(((2, 1), (2, 1)), ((1, 2), (1, 2)), ((1, 1), (1, 1)), ((1, 1), (1, 1)))},
        "not served at once",
    ),
    "never_merged": (
        {"table": table(((2, 1), (4, 4)), ((1, 2), (4, 8)), ((1, 1), (4, 4)), ((1, 1), (4, 4)))},
        "served in pairs",
    ),
    "a_and_b_exchanged": (
        {"table": table(((1, 2), (4, 2)), ((2, 1), (8, 2)), ((1, 1), (4, 2)), ((1, 1), (4, 2)))},
        "A and B are exchanged",
    ),
    "fours_change_nothing": (
        {"table": table(((2, 1), (2, 4)), ((1, 2), (2, 8)), ((2, 1), (2, 4)), ((1, 2), (2, 8)))},
        "In fours nothing changes",
    ),
    "one_slip": (
        {"table": table(((2, 1), (2, 4)), ((1, 2), (2, 4)), ((1, 1), (2, 4)), ((1, 1), (2, 4)))},
        "Count each group by itself",
    ),
    "three_rows": ({"table": dict.fromkeys(LAYOUTS[:3], ((1, 1), (2, 4)))}, "no row called"),
}


# ---- 07.5 ------------------------------------------------------------------------------------------------


def first_place(tid, BN, WM, WN, TN, WNITER):
    """WMITER, WSUBM, WSUBN, and a thread's first row and column."""
    WMITER, WSUBM, WSUBN = steps_of(WM, WN, TN, WNITER)
    warp, lane = tid // 32, tid % 32
    row = warp // (BN // WN) * WM + lane // (WSUBN // TN)
    col = warp % (BN // WN) * WN + lane % (WSUBN // TN) * TN
    return WMITER, WSUBM, WSUBN, row, col


def right_b(tid, p, BN, WM, WN, TN, WNITER):
    _, _, WSUBN, _, col = first_place(tid, BN, WM, WN, TN, WNITER)
    return [p * BN + col + j * WSUBN + e for j in range(WNITER) for e in range(TN)]


def right_a(tid, p, BM, BN, WM, WN, TN, WNITER):
    WMITER, WSUBM, _, row, _ = first_place(tid, BN, WM, WN, TN, WNITER)
    return [p * BM + row + i * WSUBM for i in range(WMITER)]


@wrong("register_loads", "As: the stride WSUBM is missing")
def a_without_stride(tid, p, BM, BN, WM, WN, TN, WNITER):
    WMITER, _, _, row, _ = first_place(tid, BN, WM, WN, TN, WNITER)
    return [p * BM + row + i for i in range(WMITER)], right_b(tid, p, BN, WM, WN, TN, WNITER)


@wrong("register_loads", "As: BK is taken for the row length")
def a_in_rows_of_bk(tid, p, BM, BN, WM, WN, TN, WNITER):
    WMITER, WSUBM, _, row, _ = first_place(tid, BN, WM, WN, TN, WNITER)
    a = [p * 8 + row + i * WSUBM for i in range(WMITER)]
    return a, right_b(tid, p, BN, WM, WN, TN, WNITER)


@wrong("register_loads", "untransposed")
def a_untransposed(tid, p, BM, BN, WM, WN, TN, WNITER):
    WMITER, WSUBM, _, row, _ = first_place(tid, BN, WM, WN, TN, WNITER)
    a = [(row + i * WSUBM) * 8 + p for i in range(WMITER)]
    return a, right_b(tid, p, BN, WM, WN, TN, WNITER)


@wrong("register_loads", "WNITER stands where WMITER")
def wniter_for_wmiter(tid, p, BM, BN, WM, WN, TN, WNITER):
    _, WSUBM, _, row, _ = first_place(tid, BN, WM, WN, TN, WNITER)
    a = [p * BM + row + i * WSUBM for i in range(WNITER)]
    return a, right_b(tid, p, BN, WM, WN, TN, WNITER)


@wrong("register_loads", "for every product")
def a_for_every_product(tid, p, BM, BN, WM, WN, TN, WNITER):
    a = right_a(tid, p, BM, BN, WM, WN, TN, WNITER)
    b = right_b(tid, p, BN, WM, WN, TN, WNITER)
    return [index for index in a for _ in b], b


@wrong("register_loads", "Rows go with TM")
def a_row_times_tn(tid, p, BM, BN, WM, WN, TN, WNITER):
    WMITER, WSUBM, WSUBN, _, _ = first_place(tid, BN, WM, WN, TN, WNITER)
    row = tid // 32 // (BN // WN) * WM + tid % 32 // (WSUBN // TN) * TN
    a = [p * BM + row + i * WSUBM for i in range(WMITER)]
    return a, right_b(tid, p, BN, WM, WN, TN, WNITER)


@wrong("register_loads", "As: the warp is left out")
def a_without_warp(tid, p, BM, BN, WM, WN, TN, WNITER):
    WMITER, WSUBM, WSUBN, _, _ = first_place(tid, BN, WM, WN, TN, WNITER)
    row = tid % 32 // (WSUBN // TN)
    a = [p * BM + row + i * WSUBM for i in range(WMITER)]
    return a, right_b(tid, p, BN, WM, WN, TN, WNITER)


@wrong("register_loads", "As: the step p is left out")
def a_without_p(tid, p, BM, BN, WM, WN, TN, WNITER):
    return right_a(tid, 0, BM, BN, WM, WN, TN, WNITER), right_b(tid, p, BN, WM, WN, TN, WNITER)


@wrong("register_loads", "Bs: the stride WSUBN is missing")
def b_without_stride(tid, p, BM, BN, WM, WN, TN, WNITER):
    _, _, _, _, col = first_place(tid, BN, WM, WN, TN, WNITER)
    b = [p * BN + col + j * TN + e for j in range(WNITER) for e in range(TN)]
    return right_a(tid, p, BM, BN, WM, WN, TN, WNITER), b


@wrong("register_loads", "Bs: BM is taken for the row length")
def b_in_rows_of_bm(tid, p, BM, BN, WM, WN, TN, WNITER):
    _, _, WSUBN, _, col = first_place(tid, BN, WM, WN, TN, WNITER)
    b = [p * BM + col + j * WSUBN + e for j in range(WNITER) for e in range(TN)]
    return right_a(tid, p, BM, BN, WM, WN, TN, WNITER), b


@wrong("register_loads", "each has TN columns")
def b_lanes_a_column_apart(tid, p, BM, BN, WM, WN, TN, WNITER):
    _, _, WSUBN, _, _ = first_place(tid, BN, WM, WN, TN, WNITER)
    col = tid // 32 % (BN // WN) * WN + tid % 32 % (WSUBN // TN)
    b = [p * BN + col + j * WSUBN + e for j in range(WNITER) for e in range(TN)]
    return right_a(tid, p, BM, BN, WM, WN, TN, WNITER), b


@wrong("register_loads", "only the first of each run")
def b_one_a_run(tid, p, BM, BN, WM, WN, TN, WNITER):
    b = right_b(tid, p, BN, WM, WN, TN, WNITER)
    return right_a(tid, p, BM, BN, WM, WN, TN, WNITER), b[::TN]


@wrong("register_loads", "two lists")
def values_in_one_list(tid, p, BM, BN, WM, WN, TN, WNITER):
    a = right_a(tid, p, BM, BN, WM, WN, TN, WNITER)
    return a + right_b(tid, p, BN, WM, WN, TN, WNITER)


@wrong("register_loads", "lie flat")
def pairs_for_indices(tid, p, BM, BN, WM, WN, TN, WNITER):
    a = [(p, index - p * BM) for index in right_a(tid, p, BM, BN, WM, WN, TN, WNITER)]
    return a, right_b(tid, p, BN, WM, WN, TN, WNITER)


# ---- 07.6 ------------------------------------------------------------------------------------------------


def sizes_of(WM, WN, TN, WNITER):
    """Constants of the kernels below: WMITER, WSUBM, WSUBN and the lanes that lie side by side."""
    WMITER, WSUBM, WSUBN = steps_of(WM, WN, TN, WNITER)
    return WMITER, WSUBM, WSUBN, WSUBN // TN


def kernel_with(first, heart, BM, BN, BK, WM, WN, TN, WNITER):
    """The kernel with first(tid) for y0 and x0, and heart(As, Bs, a, b, acc, y0, x0) between the barriers."""
    part = parts(BM, BN, BK, WM, WN, TN, WNITER)
    fetch, clear, store = part.fetch, part.clear, part.store
    WMITER = steps_of(WM, WN, TN, WNITER)[0]

    @cuda.jit
    def warp_tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BK, BM), float32, 16)
        Bs = cuda.shared.array((BK, BN), float32, 16)
        a = cuda.local.array(WMITER, float32)
        b = cuda.local.array((WNITER, TN), float32)
        acc = cuda.local.array((WMITER, WNITER, TN), float32)
        clear(acc)
        y0, x0 = first(cuda.threadIdx.x)
        for k0 in range(0, k, BK):
            fetch(m, n, k, A, B, k0, As, Bs)
            cuda.syncthreads()
            heart(As, Bs, a, b, acc, y0, x0)
            cuda.syncthreads()
        store(m, n, alpha, acc, beta, C, y0, x0)

    return warp_tiled


def right_first(BM, BN, BK, WM, WN, TN, WNITER):
    LANES = sizes_of(WM, WN, TN, WNITER)[3]

    @cuda.jit(device=True)
    def first(tid):
        warp, lane = tid // 32, tid % 32
        return warp // (BN // WN) * WM + lane // LANES, warp % (BN // WN) * WN + lane % LANES * TN

    return first


def right_heart(BM, BN, BK, WM, WN, TN, WNITER):
    WMITER, WSUBM, WSUBN, _ = sizes_of(WM, WN, TN, WNITER)

    @cuda.jit(device=True)
    def heart(As, Bs, a, b, acc, y0, x0):
        for p in range(BK):
            for i in range(WMITER):
                a[i] = As[p, y0 + i * WSUBM]
            for j in range(WNITER):
                for e in range(TN):
                    b[j, e] = Bs[p, x0 + j * WSUBN + e]
            for i in range(WMITER):
                for j in range(WNITER):
                    for e in range(TN):
                        acc[i, j, e] += a[i] * b[j, e]

    return heart


def with_first(make_first):
    """A factory whose kernels have these y0 and x0 and the right heart."""
    return lambda *sizes: kernel_with(make_first(*sizes), right_heart(*sizes), *sizes)


def with_heart(make_heart):
    """A factory whose kernels have the right y0 and x0 and this heart."""
    return lambda *sizes: kernel_with(right_first(*sizes), make_heart(*sizes), *sizes)


def filed(made_by, words):
    """File a factory of device functions, put into a kernel by made_by, as a wrong solution."""

    def keep(make):
        WRONG["warp_kernel"][make.__name__] = (made_by(make), words)
        return make

    return keep


@filed(with_first, "exchanged for the lane")
def lane_row_and_column_exchanged(BM, BN, BK, WM, WN, TN, WNITER):
    LANES = sizes_of(WM, WN, TN, WNITER)[3]

    @cuda.jit(device=True)
    def first(tid):
        warp, lane = tid // 32, tid % 32
        return warp // (BN // WN) * WM + lane % LANES, warp % (BN // WN) * WN + lane // LANES * TN

    return first


@filed(with_first, "exchanged for the warp")
def warp_row_and_column_exchanged(BM, BN, BK, WM, WN, TN, WNITER):
    LANES = sizes_of(WM, WN, TN, WNITER)[3]

    @cuda.jit(device=True)
    def first(tid):
        warp, lane = tid // 32, tid % 32
        return warp % (BN // WN) * WM + lane // LANES, warp // (BN // WN) * WN + lane % LANES * TN

    return first


@filed(with_first, "where its lane is meant")
def number_in_the_block_for_the_lane(BM, BN, BK, WM, WN, TN, WNITER):
    LANES = sizes_of(WM, WN, TN, WNITER)[3]

    @cuda.jit(device=True)
    def first(tid):
        warp = tid // 32
        return warp // (BN // WN) * WM + tid // LANES, warp % (BN // WN) * WN + tid % LANES * TN

    return first


@filed(with_first, "The warp is left out")
def all_warps_alike(BM, BN, BK, WM, WN, TN, WNITER):
    LANES = sizes_of(WM, WN, TN, WNITER)[3]

    @cuda.jit(device=True)
    def first(tid):
        return tid % 32 // LANES, tid % 32 % LANES * TN

    return first


@filed(with_first, "multiplied by TN")
def threads_for_columns(BM, BN, BK, WM, WN, TN, WNITER):
    LANES = sizes_of(WM, WN, TN, WNITER)[3]

    @cuda.jit(device=True)
    def first(tid):
        warp, lane = tid // 32, tid % 32
        return warp // (BN // WN) * WM + lane // LANES, warp % (BN // WN) * WN + lane % LANES

    return first


@filed(with_first, "begin at row 0")
def everybody_at_the_corner(BM, BN, BK, WM, WN, TN, WNITER):
    @cuda.jit(device=True)
    def first(tid):
        return 0, 0

    return first


@filed(with_first, "`y0` and `x0` are exchanged")
def row_and_column_exchanged(BM, BN, BK, WM, WN, TN, WNITER):
    LANES = sizes_of(WM, WN, TN, WNITER)[3]

    @cuda.jit(device=True)
    def first(tid):
        warp, lane = tid // 32, tid % 32
        return warp % (BN // WN) * WN + lane % LANES * TN, warp // (BN // WN) * WM + lane // LANES

    return first


@filed(with_first, "is not this thread's first row or column")
def rows_counted_twice(BM, BN, BK, WM, WN, TN, WNITER):
    LANES = sizes_of(WM, WN, TN, WNITER)[3]

    @cuda.jit(device=True)
    def first(tid):
        warp, lane = tid // 32, tid % 32
        return warp // (BN // WN) * WM + lane // LANES * 2, warp % (BN // WN) * WN + lane % LANES * TN

    return first


@filed(with_heart, "As is read at `y0 + i`")
def as_without_stride(BM, BN, BK, WM, WN, TN, WNITER):
    WMITER, _, WSUBN, _ = sizes_of(WM, WN, TN, WNITER)

    @cuda.jit(device=True)
    def heart(As, Bs, a, b, acc, y0, x0):
        for p in range(BK):
            for i in range(WMITER):
                a[i] = As[p, y0 + i]
            for j in range(WNITER):
                for e in range(TN):
                    b[j, e] = Bs[p, x0 + j * WSUBN + e]
            for i in range(WMITER):
                for j in range(WNITER):
                    for e in range(TN):
                        acc[i, j, e] += a[i] * b[j, e]

    return heart


@filed(with_heart, "Bs is read at `x0 + j * TN + e`")
def bs_without_stride(BM, BN, BK, WM, WN, TN, WNITER):
    WMITER, WSUBM, _, _ = sizes_of(WM, WN, TN, WNITER)

    @cuda.jit(device=True)
    def heart(As, Bs, a, b, acc, y0, x0):
        for p in range(BK):
            for i in range(WMITER):
                a[i] = As[p, y0 + i * WSUBM]
            for j in range(WNITER):
                for e in range(TN):
                    b[j, e] = Bs[p, x0 + j * TN + e]
            for i in range(WMITER):
                for j in range(WNITER):
                    for e in range(TN):
                        acc[i, j, e] += a[i] * b[j, e]

    return heart


@filed(with_heart, "the same element of As")
def one_row_for_all(BM, BN, BK, WM, WN, TN, WNITER):
    WMITER, _, WSUBN, _ = sizes_of(WM, WN, TN, WNITER)

    @cuda.jit(device=True)
    def heart(As, Bs, a, b, acc, y0, x0):
        for p in range(BK):
            for i in range(WMITER):
                a[i] = As[p, y0]
            for j in range(WNITER):
                for e in range(TN):
                    b[j, e] = Bs[p, x0 + j * WSUBN + e]
            for i in range(WMITER):
                for j in range(WNITER):
                    for e in range(TN):
                        acc[i, j, e] += a[i] * b[j, e]

    return heart


@filed(with_heart, "read outside its bounds")
def as_untransposed(BM, BN, BK, WM, WN, TN, WNITER):
    WMITER, WSUBM, WSUBN, _ = sizes_of(WM, WN, TN, WNITER)

    @cuda.jit(device=True)
    def heart(As, Bs, a, b, acc, y0, x0):
        for p in range(BK):
            for i in range(WMITER):
                a[i] = As[y0 + i * WSUBM, p]
            for j in range(WNITER):
                for e in range(TN):
                    b[j, e] = Bs[p, x0 + j * WSUBN + e]
            for i in range(WMITER):
                for j in range(WNITER):
                    for e in range(TN):
                        acc[i, j, e] += a[i] * b[j, e]

    return heart


@filed(with_heart, "read inside all loops")
def reads_inside_all_loops(BM, BN, BK, WM, WN, TN, WNITER):
    WMITER, WSUBM, WSUBN, _ = sizes_of(WM, WN, TN, WNITER)

    @cuda.jit(device=True)
    def heart(As, Bs, a, b, acc, y0, x0):
        for p in range(BK):
            for i in range(WMITER):
                for j in range(WNITER):
                    for e in range(TN):
                        acc[i, j, e] += As[p, y0 + i * WSUBM] * Bs[p, x0 + j * WSUBN + e]

    return heart


@filed(with_heart, "Bs is read again for every product")
def b_for_every_product(BM, BN, BK, WM, WN, TN, WNITER):
    WMITER, WSUBM, WSUBN, _ = sizes_of(WM, WN, TN, WNITER)

    @cuda.jit(device=True)
    def heart(As, Bs, a, b, acc, y0, x0):
        for p in range(BK):
            for i in range(WMITER):
                a[i] = As[p, y0 + i * WSUBM]
                for j in range(WNITER):
                    for e in range(TN):
                        acc[i, j, e] += a[i] * Bs[p, x0 + j * WSUBN + e]

    return heart


@filed(with_heart, "after the loop over p")
def products_after_the_loop(BM, BN, BK, WM, WN, TN, WNITER):
    WMITER, WSUBM, WSUBN, _ = sizes_of(WM, WN, TN, WNITER)

    @cuda.jit(device=True)
    def heart(As, Bs, a, b, acc, y0, x0):
        for p in range(BK):
            for i in range(WMITER):
                a[i] = As[p, y0 + i * WSUBM]
            for j in range(WNITER):
                for e in range(TN):
                    b[j, e] = Bs[p, x0 + j * WSUBN + e]
        for i in range(WMITER):
            for j in range(WNITER):
                for e in range(TN):
                    acc[i, j, e] += a[i] * b[j, e]

    return heart


@filed(with_heart, "The last step of each tile")
def one_step_short(BM, BN, BK, WM, WN, TN, WNITER):
    return right_heart(BM, BN, BK - 1, WM, WN, TN, WNITER)


@filed(with_heart, "`acc` has no `i`")
def first_results_only(BM, BN, BK, WM, WN, TN, WNITER):
    WMITER, WSUBM, WSUBN, _ = sizes_of(WM, WN, TN, WNITER)

    @cuda.jit(device=True)
    def heart(As, Bs, a, b, acc, y0, x0):
        for p in range(BK):
            for i in range(WMITER):
                a[i] = As[p, y0 + i * WSUBM]
            for j in range(WNITER):
                for e in range(TN):
                    b[j, e] = Bs[p, x0 + j * WSUBN + e]
            for i in range(WMITER):
                for j in range(WNITER):
                    for e in range(TN):
                        acc[0, j, e] += a[i] * b[j, e]

    return heart


@wrong("warp_kernel", "The first barrier is missing")
def without_the_first_barrier(BM, BN, BK, WM, WN, TN, WNITER):
    WMITER = steps_of(WM, WN, TN, WNITER)[0]
    part = parts(BM, BN, BK, WM, WN, TN, WNITER)
    fetch, clear, store = part.fetch, part.clear, part.store
    sizes = BM, BN, BK, WM, WN, TN, WNITER
    first, heart = right_first(*sizes), right_heart(*sizes)

    @cuda.jit
    def warp_tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BK, BM), float32, 16)
        Bs = cuda.shared.array((BK, BN), float32, 16)
        a = cuda.local.array(WMITER, float32)
        b = cuda.local.array((WNITER, TN), float32)
        acc = cuda.local.array((WMITER, WNITER, TN), float32)
        clear(acc)
        y0, x0 = first(cuda.threadIdx.x)
        for k0 in range(0, k, BK):
            fetch(m, n, k, A, B, k0, As, Bs)
            heart(As, Bs, a, b, acc, y0, x0)
            cuda.syncthreads()
        store(m, n, alpha, acc, beta, C, y0, x0)

    return warp_tiled


@wrong("warp_kernel", "The second barrier is missing")
def without_the_second_barrier(BM, BN, BK, WM, WN, TN, WNITER):
    WMITER = steps_of(WM, WN, TN, WNITER)[0]
    part = parts(BM, BN, BK, WM, WN, TN, WNITER)
    fetch, clear, store = part.fetch, part.clear, part.store
    sizes = BM, BN, BK, WM, WN, TN, WNITER
    first, heart = right_first(*sizes), right_heart(*sizes)

    @cuda.jit
    def warp_tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BK, BM), float32, 16)
        Bs = cuda.shared.array((BK, BN), float32, 16)
        a = cuda.local.array(WMITER, float32)
        b = cuda.local.array((WNITER, TN), float32)
        acc = cuda.local.array((WMITER, WNITER, TN), float32)
        clear(acc)
        y0, x0 = first(cuda.threadIdx.x)
        for k0 in range(0, k, BK):
            fetch(m, n, k, A, B, k0, As, Bs)
            cuda.syncthreads()
            heart(As, Bs, a, b, acc, y0, x0)
        store(m, n, alpha, acc, beta, C, y0, x0)

    return warp_tiled


@wrong("warp_kernel", "fetched and then not used")
def past_the_tiles(BM, BN, BK, WM, WN, TN, WNITER):
    WMITER, WSUBM, WSUBN, _ = sizes_of(WM, WN, TN, WNITER)
    part = parts(BM, BN, BK, WM, WN, TN, WNITER)
    fetch, clear, store = part.fetch, part.clear, part.store
    first = right_first(BM, BN, BK, WM, WN, TN, WNITER)

    @cuda.jit
    def warp_tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BK, BM), float32, 16)
        Bs = cuda.shared.array((BK, BN), float32, 16)
        acc = cuda.local.array((WMITER, WNITER, TN), float32)
        clear(acc)
        y0, x0 = first(cuda.threadIdx.x)
        for k0 in range(0, k, BK):
            fetch(m, n, k, A, B, k0, As, Bs)
            cuda.syncthreads()
            for p in range(BK):
                for i in range(WMITER):
                    for j in range(WNITER):
                        for e in range(TN):
                            row = cuda.blockIdx.y * BM + y0 + i * WSUBM
                            col = cuda.blockIdx.x * BN + x0 + j * WSUBN + e
                            if row < m and col < n and k0 + p < k:
                                acc[i, j, e] += A[row, k0 + p] * B[k0 + p, col]
            cuda.syncthreads()
        store(m, n, alpha, acc, beta, C, y0, x0)

    return warp_tiled


@wrong("warp_kernel", "Only the last tile along k")
def cleared_in_every_tile(BM, BN, BK, WM, WN, TN, WNITER):
    WMITER = steps_of(WM, WN, TN, WNITER)[0]
    part = parts(BM, BN, BK, WM, WN, TN, WNITER)
    fetch, clear, store = part.fetch, part.clear, part.store
    sizes = BM, BN, BK, WM, WN, TN, WNITER
    first, heart = right_first(*sizes), right_heart(*sizes)

    @cuda.jit
    def warp_tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BK, BM), float32, 16)
        Bs = cuda.shared.array((BK, BN), float32, 16)
        a = cuda.local.array(WMITER, float32)
        b = cuda.local.array((WNITER, TN), float32)
        acc = cuda.local.array((WMITER, WNITER, TN), float32)
        clear(acc)
        y0, x0 = first(cuda.threadIdx.x)
        for k0 in range(0, k, BK):
            fetch(m, n, k, A, B, k0, As, Bs)
            cuda.syncthreads()
            clear(acc)
            heart(As, Bs, a, b, acc, y0, x0)
            cuda.syncthreads()
        store(m, n, alpha, acc, beta, C, y0, x0)

    return warp_tiled


@wrong("warp_kernel", "a tile is fetched once")
def fetched_in_every_step(BM, BN, BK, WM, WN, TN, WNITER):
    WMITER = steps_of(WM, WN, TN, WNITER)[0]
    part = parts(BM, BN, BK, WM, WN, TN, WNITER)
    fetch, clear, store = part.fetch, part.clear, part.store
    sizes = BM, BN, BK, WM, WN, TN, WNITER
    first, heart = right_first(*sizes), right_heart(*sizes)

    @cuda.jit
    def warp_tiled(m, n, k, alpha, A, B, beta, C):
        As = cuda.shared.array((BK, BM), float32, 16)
        Bs = cuda.shared.array((BK, BN), float32, 16)
        a = cuda.local.array(WMITER, float32)
        b = cuda.local.array((WNITER, TN), float32)
        acc = cuda.local.array((WMITER, WNITER, TN), float32)
        clear(acc)
        y0, x0 = first(cuda.threadIdx.x)
        for k0 in range(0, k, BK):
            fetch(m, n, k, A, B, k0, As, Bs)
            fetch(m, n, k, A, B, k0, As, Bs)
            cuda.syncthreads()
            heart(As, Bs, a, b, acc, y0, x0)
            cuda.syncthreads()
        store(m, n, alpha, acc, beta, C, y0, x0)

    return warp_tiled
