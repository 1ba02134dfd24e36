"""`thread_tiles_2d`: what its checkers take for right and measure by, and the formulas it teaches."""

import numpy as np
import pytest

from gemm_course import LADDER, check
from gemm_course.checks.notebooks.thread_tiles_2d.draft_is_right import CASES
from lockstep import emulate
from tests.checks.cells import verdict_of
from tests.wrong_solutions.altering import changed, solution
from tests.wrong_solutions.thread_tiles_2d import (
    ADD,
    FILL,
    FILL_B,
    IN_ORDER,
    LINEAR,
    LOOP_A,
    READ_A,
    READ_B,
    STORE_A,
    STORE_B,
)

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


WITH_WHILE = f"""\
            c = tx
            while c < BK:
                for i in range(TM):
                    r = ty * TM + i
                    {STORE_A}
                c += BN // TN
            r = ty
            while r < BK:
                for j in range(TN):
                    c = tx * TN + j
                    {STORE_B}
                r += BM // TM"""
HALF_AND_HALF = f"""\
            tid, HALF = ty * (BN // TN) + tx, BM * BN // (TM * TN) // 2
            if tid < HALF:
                for e in range(tid, BM * BK, HALF):
                    r, c = e // BK, e % BK
                    {STORE_A}
            else:
                for e in range(tid - HALF, BK * BN, BM * BN // (TM * TN) - HALF):
                    r, c = e // BN, e % BN
                    {STORE_B}"""
DOWN_THE_COLUMNS = f"""\
            for e in range(tx * (BM // TM) + ty, BM * BK, BM * BN // (TM * TN)):
                r, c = e % BM, e // BM
                {STORE_A}
            for e in range(tx * (BM // TM) + ty, BK * BN, BM * BN // (TM * TN)):
                r, c = e % BK, e // BK
                {STORE_B}"""
IN_A_FUNCTION = """\
    @cuda.jit(device=True)
    def fill(down, ends, matrix, first, tile, x, y):
        for s in range(y if down else x, BK, BM // TM if down else BN // TN):
            for i in range(TN if down else TM):
                r, c = (s, x * TN + i) if down else (y * TM + i, s)
                row, col = first[0] + r, first[1] + c
                tile[r, c] = matrix[row, col] if row < ends[0] and col < ends[1] else float32(0)

    @cuda.jit
"""
TILES_FILLED = {
    "as_it_stands": (),
    "in_order": (IN_ORDER,),
    "with_while": ((FILL, WITH_WHILE),),
    "passes_rounded_up_and_guarded": (
        (
            f"{LOOP_A}\n                for",
            "for s in range((BK + BN // TN - 1) // (BN // TN)):\n"
            "                c = tx + s * (BN // TN)\n"
            "                for",
        ),
        (
            f"                    {STORE_A}",
            f"                    if c < BK:\n                        {STORE_A}",
        ),
    ),
    "half_of_the_block_for_each_tile": ((FILL, HALF_AND_HALF),),
    "down_the_columns": ((FILL, DOWN_THE_COLUMNS),),
    "in_a_function_of_its_own": (
        ("    @cuda.jit\n", IN_A_FUNCTION),
        (
            FILL,
            "            fill(False, (m, k), A, (row0, k0), As, tx, ty)\n"
            "            fill(True, (k, n), B, (k0, col0), Bs, tx, ty)",
        ),
    ),
    "other_names": (("As", "left"), ("Bs", "top"), ("tx", "x"), ("ty", "y")),
    "bs_first": ((FILL, f"{FILL_B}\n{FILL.removesuffix(FILL_B)}".rstrip()),),
    "as_transposed": (
        ("As = cuda.shared.array((BM, BK), float32)", "As = cuda.shared.array((BK, BM), float32)"),
        ("As[r, c] =", "As[c, r] ="),
        (READ_A, "a[i] = As[p, ty * TM + i]"),
    ),
    "rows_padded": (
        ("    @cuda.jit\n", "    WIDTH = BK + 1\n\n    @cuda.jit\n"),
        ("As = cuda.shared.array((BM, BK), float32)", "As = cuda.shared.array((BM, WIDTH), float32)"),
    ),
    "columns_of_bs_in_another_order": (
        ("Bs[r, c] =", "Bs[r, c // TN + c % TN * (BN // TN)] ="),
        (READ_B, "b[j] = Bs[p, tx + j * (BN // TN)]"),
    ),
    "columns_spread_out": (
        ("c = tx * TN + j", "c = tx + j * (BN // TN)"),
        (READ_B, "b[j] = Bs[p, tx + j * (BN // TN)]"),
        ("col0 + tx * TN + j", "col0 + tx + j * (BN // TN)"),
    ),
    "one_array_for_both_tiles": (
        ("    @cuda.jit\n", "    SIZE = BK * (BM + BN)\n\n    @cuda.jit\n"),
        ("As = cuda.shared.array((BM, BK), float32)", "S = cuda.shared.array(SIZE, float32)"),
        ("        Bs = cuda.shared.array((BK, BN), float32)\n", ""),
        ("As[r, c]", "S[r * BK + c]"),
        ("Bs[r, c]", "S[BM * BK + r * BN + c]"),
        ("As[ty * TM + i, p]", "S[(ty * TM + i) * BK + p]"),
        ("Bs[p, tx * TN + j]", "S[BM * BK + p * BN + tx * TN + j]"),
    ),
}


@pytest.mark.many(one_in=3)
@pytest.mark.parametrize("name", TILES_FILLED)
def test_another_way_to_fill_the_tiles_passes(name):
    verdict = verdict_of(changed(solution("slices"), *TILES_FILLED[name]))
    assert verdict.passed, str(verdict)


@pytest.mark.parametrize(
    ("changes", "words"), [((), "a load of B 32."), ((IN_ORDER,), "a load of B 4: the fewest")]
)
def test_the_verdict_tells_what_a_load_of_b_costs(changes, words):
    verdict = verdict_of(changed(solution("slices"), *changes))
    assert words in verdict.message and verdict.passed
    assert ("A side trip mends that." in verdict.message) == ("32" in words)


def test_tiles_of_another_layout_are_counted_as_well():
    twice = (
        *TILES_FILLED["as_transposed"],
        ("As[c, r] =", "As[c, r] = float32(0)\n                    As[c, r] ="),
    )
    assert (
        "Each element must be stored exactly once" in verdict_of(changed(solution("slices"), *twice)).message
    )
    flat = changed(solution("slices"), *TILES_FILLED["one_array_for_both_tiles"])
    twice = changed(
        flat, ("S[r * BK + c] =", "S[r * BK + c] = float32(0)\n                    S[r * BK + c] =")
    )
    assert "Store each exactly once" in verdict_of(twice).message


@pytest.mark.parametrize("changes", [(), LINEAR])
def test_there_is_more_than_one_way_to_coalesce_b(changes):
    verdict = verdict_of(changed(solution("coalesced_b"), *changes))
    assert verdict.passed, str(verdict)
    assert "moves 4 sectors" in verdict.message


PRODUCTS = f"    for j in range(TN):\n                        {ADD}"
LOOPS_IN_THE_KERNEL = (
    ("    fetch = make_fetch(BM, BN, BK, TM, TN)\n", "    THREADS = BM * BN // (TM * TN)\n"),
    (
        "            fetch(m, n, k, k0, A, B, As, Bs)",
        IN_ORDER[1].replace("BM * BN // (TM * TN)", "THREADS"),
    ),
)
OUTER = {
    "as_it_stands": (),
    "loops_in_the_kernel": LOOPS_IN_THE_KERNEL,
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
    others = "thread (0, 0) stores C[0, 0], C[0, 6], C[0, 12], ... That is right as well."
    assert (others in verdict.message) == (name == "columns_spread_out")
    assert ("own other results" in verdict.message) == (name == "columns_spread_out")


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


def test_wide_padding_is_not_only_taken_for_a_fixed_number():
    wide = verdict_of(changed(solution("no_conflicts"), ("BK + 1", "BK + 16")))
    assert not wide.passed and "or the padding so wide" in wide.message


def test_a_step_of_zero_is_told_with_the_learners_line():
    verdict = verdict_of(
        changed(solution("coalesced_b"), ("for r in range(ty, BK, BM // TM)", "for r in range(ty, BK, 0)"))
    )
    assert "range(ty, BK, 0)" in verdict.where


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
