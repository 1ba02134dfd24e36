"""`thread_tiles_2d`: what its checkers take for right and measure by, and the formulas it teaches."""

import numpy as np
import pytest
from numba import cuda

from gemm_course import LADDER, check
from gemm_course.checks.notebooks.thread_tiles_2d.draft_is_right import CASES
from lockstep import emulate
from tests.checks.cells import verdict_of
from tests.wrong_solutions.altering import changed, solution
from tests.wrong_solutions.thread_tiles_2d import ADD, LINEAR, READ_A

GRID = [(TM, TN) for TM in (2, 4, 8, 16) for TN in (2, 4, 8, 16)]


@pytest.mark.parametrize("stage", ["thread_tiled_2d", "kernel5"])
@pytest.mark.parametrize("BK", [4, 8])
def test_a_result_takes_bk_over_tm_and_bk_over_tn_reads(stage, BK):
    tried = 0
    for TM, TN in GRID:
        tiles = {"BM": 32, "BN": 64, "BK": BK, "TM": TM, "TN": TN}
        if LADDER[stage].rules(tiles):
            continue
        A, B, C = (np.zeros(shape, np.float32) for shape in ((32, BK), (BK, 64), (32, 64)))
        launch = (LADDER[stage].kernel(tiles), 1, LADDER[stage].block(tiles))
        problem = (32, 64, BK, np.float32(1), A, B, np.float32(0), C)
        report = emulate(*launch, *problem, counts_only=True)
        reads = report.total("lanes", space="shared", op="load") / (32 * 64)
        assert reads == BK / TN + BK / TM
        tried += 1
    assert tried >= 6


def test_the_draft_is_right_where_bk_is_both_sides_of_the_block():
    right = check.draft_is_right.right
    for BM, BN, BK, TM, TN in CASES:
        assert right(BM, BN, BK, TM, TN) == (BK == BN // TN == BM // TM)
    assert {right(*case) for case in CASES} == {True, False}


# ---- other right answers -----------------------------------------------------------------------------------


def fetch_with_while(BM, BN, BK, TM, TN):
    @cuda.jit(device=True)
    def fetch(rows, columns, depth, first, X, Y, tile_x, tile_y):
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        c = x
        while c < BK:
            for i in range(TM):
                r = cuda.blockIdx.y * BM + y * TM + i
                tile_x[y * TM + i, c] = X[r, first + c] if r < rows and first + c < depth else 0
            c += BN // TN
        r = y
        while r < BK:
            for j in range(TN):
                c = cuda.blockIdx.x * BN + x * TN + j
                tile_y[r, x * TN + j] = Y[first + r, c] if first + r < depth and c < columns else 0
            r += BM // TM

    return fetch


def test_slices_with_other_names_and_loops_pass():
    verdict = check.slices(fetch_with_while)
    assert verdict.passed, str(verdict)


def fetch_with_two_functions(BM, BN, BK, TM, TN):
    @cuda.jit(device=True)
    def fill(down, ends, matrix, first, tile, x, y, wide, high):
        """Store the slices of one thread; down: they go on downwards, as those of B do."""
        for s in range(y if down else x, BK, high if down else wide):
            for i in range(TN if down else TM):
                r, c = (s, x * TN + i) if down else (y * TM + i, s)
                row, col = first[0] + r, first[1] + c
                tile[r, c] = matrix[row, col] if row < ends[0] and col < ends[1] else 0

    @cuda.jit(device=True)
    def fetch(m, n, k, k0, A, B, As, Bs):
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        fill(False, (m, k), A, (cuda.blockIdx.y * BM, k0), As, x, y, BN // TN, BM // TM)
        fill(True, (k, n), B, (k0, cuda.blockIdx.x * BN), Bs, x, y, BN // TN, BM // TM)

    return fetch


def test_slices_that_only_call_other_functions_pass():
    verdict = check.slices(fetch_with_two_functions)
    assert verdict.passed, str(verdict)


def test_linear_fetching_fills_both_tiles_as_well():
    rows = "            for i in range(TM):\n                r = ty * TM + i\n"
    loop_a = (
        f"for c in range(tx, BK, BN // TN):\n{rows}",
        "for e in range(ty * (BN // TN) + tx, BM * BK, BM * BN // (TM * TN)):\n"
        "            r, c = e // BK, e % BK\n",
    )
    columns = ("c = tx * TN + j", "c = tx + j * (BN // TN)")
    both = changed(solution("slices"), loop_a, ("    As[r, c] =", "As[r, c] ="), columns, *LINEAR)
    verdict = verdict_of(both)
    assert verdict.passed, str(verdict)
    assert "fill `Bs` alone" in str(verdict_of(both.replace("check.slices", "check.coalesced_b")))


@pytest.mark.parametrize("changes", [(), LINEAR])
def test_there_is_more_than_one_way_to_coalesce_b(changes):
    verdict = verdict_of(changed(solution("coalesced_b"), *changes))
    assert verdict.passed, str(verdict)
    assert "moves 4 sectors" in verdict.message


PRODUCTS = f"    for j in range(TN):\n                        {ADD}"
OUTER = {
    "as_it_stands": (),
    "columns_spread_out": (
        ("Bs[p, tx * TN + j]", "Bs[p, tx + j * (BN // TN)]"),
        ("col0 + tx * TN + j", "col0 + tx + j * (BN // TN)"),
    ),
    "one_operand_in_a_scalar": (
        (f"for i in range(TM):\n                    {READ_A}\n", "pass\n"),
        (PRODUCTS, f"    x = As[ty * TM + i, p]\n                {PRODUCTS}"),
        ("+= a[i]", "+= x"),
    ),
    "x_is_called_ty_throughout": (
        ("tx", "§"),
        ("ty", "tx"),
        ("§", "ty"),
        ("ty, tx = cuda.threadIdx.x, cuda.threadIdx.y", "tx, ty = cuda.threadIdx.y, cuda.threadIdx.x"),
    ),
}


@pytest.mark.many(one_in=6)
@pytest.mark.parametrize("name", OUTER)
def test_another_outer_product_passes(name):
    verdict = verdict_of(changed(solution("outer_product"), *OUTER[name]))
    assert verdict.passed, str(verdict)
    assert "16 elements of shared memory for 64 multiply-adds" in verdict.message


FIXED = {
    "as_it_stands": (),
    "two_words_of_padding": (("BK + 1", "BK + 2"),),
    "rows_spread_out_instead_of_padding": (
        ("BK + 1, BN // TN", "BK, BN // TN"),
        ("As[ty * TM + i, p]", "As[ty + i * (BM // TM), p]"),
        ("row0 + ty * TM + i", "row0 + ty + i * (BM // TM)"),
    ),
    "transposed_and_padded": (
        ("BK + 1", "BM + 1"),
        ("(BM, WIDTH), float32", "(BK, WIDTH), float32"),
        ("As[r, c] =", "As[c, r] ="),
        ("As[ty * TM + i, p]", "As[p, ty * TM + i]"),
    ),
    "both_padded": (
        ("THREADS, WIDTH, APART =", "THREADS, WIDTH_B, WIDTH, APART ="),
        ("(TM * TN), BK + 1", "(TM * TN), BN + 1, BK + 1"),
        ("(BK, BN), float32", "(BK, WIDTH_B), float32"),
    ),
}


@pytest.mark.many(one_in=6)
@pytest.mark.parametrize("name", FIXED)
def test_another_way_to_fix_the_conflicts_passes(name):
    verdict = verdict_of(changed(solution("no_conflicts"), *FIXED[name]))
    assert verdict.passed, str(verdict)


def test_conflict_free_but_wrong_with_the_documents_tiles_is_refused():
    cell = changed(
        solution("no_conflicts"),
        ("    THREADS, WIDTH", "    FACTOR = float32(2 if BM > 64 else 1)\n    THREADS, WIDTH"),
        ("+= a[i]", "+= FACTOR * a[i]"),
    )
    assert not verdict_of(cell).passed


@pytest.mark.full(reason="all problems with all choices of tiles")
def test_one_array_for_both_tiles_is_judged_as_well():
    cell = changed(
        solution("no_conflicts"),
        (
            "APART = BM * BN // (TM * TN), BK + 1, BN // TN",
            "APART, SIZE = BM * BN // (TM * TN), BK + 4, BN // TN, 0",
        ),
        ("    @cuda.jit", "    SIZE = BM * WIDTH + BK * BN\n\n    @cuda.jit"),
        ("As = cuda.shared.array((BM, WIDTH), float32)", "S = cuda.shared.array(SIZE, float32)"),
        ("        Bs = cuda.shared.array((BK, BN), float32)\n", ""),
        ("As[r, c]", "S[r * WIDTH + c]"),
        ("Bs[r, c]", "S[BM * WIDTH + r * BN + c]"),
        ("As[ty * TM + i, p]", "S[(ty * TM + i) * WIDTH + p]"),
        ("Bs[p, tx + j * APART]", "S[BM * WIDTH + p * BN + tx + j * APART]"),
    )
    verdict = verdict_of(cell)
    assert not verdict.passed and "wavefronts per read" in verdict.where


def test_altering_wants_a_text_that_is_there():
    with pytest.raises(ValueError, match="there is no"):
        changed(solution("outer_product"), ("no such line", ""))
