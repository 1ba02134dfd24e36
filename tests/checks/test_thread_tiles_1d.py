"""The checkers of `thread_tiles_1d` on other right answers, on half-written ones and on odd ones."""

from fractions import Fraction

import numpy as np
import pytest
from numba import cuda, float32

from gemm_course import check
from gemm_course.checks.core.printing import MOST_LINES
from gemm_course.checks.kits import make_strip
from gemm_course.checks.notebooks.thread_tiles_1d.thread_columns import OF_THE_SOLUTION
from gemm_course.compiler.nvidia import why_no_compiler
from tests.checks.cells import verdict_of
from tests.wrong_solutions.altering import changed, solution
from tests.wrong_solutions.thread_tiles_1d import ADD_LOOP, ADDED_UP, IS_COLUMN, PRODUCTS


def rows_apart(BM, BN, BK, TM):
    """A thread's rows lie BM / TM apart, its products are taken there and back, and names are others."""
    THREADS = BM * BN // TM
    DOWN = BM // TM
    WIDTH = BK + 1

    @cuda.jit
    def column(rows, columns, depth, a, X, Y, b, Z):
        left = cuda.shared.array((BM, WIDTH), float32)
        top = cuda.shared.array((BK, BN), float32)
        sums = cuda.local.array((TM,), dtype=float32)
        x, y = cuda.threadIdx.x, cuda.threadIdx.y
        me = y * BN + x
        for i in range(TM):
            sums[i] = float32(0)
        done = 0
        while done < depth:
            for e in range(me, BM * BK, THREADS):
                i, p = cuda.blockIdx.y * BM + e // BK, done + e % BK
                left[e // BK, e % BK] = X[i, p] if i < rows and p < depth else float32(0)
            for e in range(me, BK * BN, THREADS):
                p, j = done + e // BN, cuda.blockIdx.x * BN + e % BN
                top[e // BN, e % BN] = Y[p, j] if p < depth and j < columns else float32(0)
            cuda.syncthreads()
            for p in range(BK - 1, -1, -1):
                once = top[p, x]
                for i in range(TM):
                    sums[i] = sums[i] + left[y + i * DOWN, p] * once
            cuda.syncthreads()
            done += BK
        j = cuda.blockIdx.x * BN + x
        if j < columns:
            for i in range(TM):
                row = cuda.blockIdx.y * BM + y + i * DOWN
                if row < rows:
                    Z[row, j] = a * sums[i] if b == 0 else a * sums[i] + b * Z[row, j]

    return column


def other_words(R):
    @cuda.jit
    def strip(n, k, x, A, y):
        sums = cuda.local.array(R, float32)
        for i in range(R):
            sums[i] = 0
        lane, start = cuda.threadIdx.x, cuda.blockIdx.x * (32 * R)
        for p in range(k):
            factor = x[p]
            for i in range(R):
                j = start + i * 32 + lane
                sums[i] += factor * A[p, j] if j < n else float32(0)
        for i in range(R):
            j = start + i * 32 + lane
            if j < n:
                y[j] = sums[i]

    return strip


@pytest.mark.full(reason="many kernels")
def test_other_right_kernels_pass():
    for verdict in (check.thread_columns(rows_apart), check.in_registers(other_words)):
        assert verdict.passed, str(verdict)
    assert "1.031" in check.thread_columns(rows_apart).message
    assert "other rows than those from `ty * TM`" in check.thread_columns(rows_apart).message


def test_a_kernel_with_the_rows_of_the_exercise_is_told_nothing_of_others():
    verdict = verdict_of(solution("thread_columns"))
    assert verdict.passed and "other rows" not in verdict.message


@pytest.mark.skipif(why_no_compiler() is not None, reason="NVIDIA's compiler is not installed")
def test_the_solutions_registers_stand_beside_the_kernels():
    verdict = verdict_of(solution("thread_columns"))
    assert (
        f"takes {OF_THE_SOLUTION} registers per thread (the solution: {OF_THE_SOLUTION})" in verdict.message
    )


def test_one_guard_for_all_columns_is_named_where_it_keeps_the_store_out_too():
    verdict = verdict_of(changed(solution("in_registers"), (IS_COLUMN, "if first + 32 * R <= n:")))
    assert not verdict.passed and "one for all R columns" in verdict.message


@pytest.mark.parametrize(
    "changes",
    [
        (("xp = x[p]", "pass"), ("xp * A", "x[p] * A")),
        (
            (
                ADD_LOOP,
                "for i in range(R):\n                acc[i] += xp * A[p, min(first + 32 * i, n - 1)]\n",
            ),
        ),
    ],
    ids=["x in the inner loop", "clamped loads"],
)
def test_strips_that_read_a_little_more_pass(changes):
    verdict = verdict_of(changed(solution("in_registers"), *changes))
    assert verdict.passed, str(verdict)


def test_results_one_after_the_other_are_refused_in_an_array_too():
    loops = (
        f"for i in range(R):\n            for p in range(k):\n                {IS_COLUMN}\n"
        "                    acc[i] += x[p] * A[p, first + 32 * i]\n"
    )
    verdict = verdict_of(changed(solution("in_registers"), (ADDED_UP, loops)))
    assert not verdict.passed and "goes along k 4 times" in verdict.message


def test_swapped_loops_are_told_that_the_source_is_counted():
    loops = (
        "for i in range(TM):\n                for p in range(BK):\n"
        "                    acc[i] += As[ty * TM + i, p] * Bs[p, tx]\n"
    )
    verdict = verdict_of(changed(solution("thread_columns"), (PRODUCTS, loops)))
    assert not verdict.passed and "Reads in your source are counted" in verdict.message


def test_accumulators_of_another_size_are_told_theirs():
    named = (
        solution("thread_columns")
        .replace("array(TM,", "array(DOWN,")
        .replace("THREADS = ", "DOWN = BM // TM\n    THREADS = ")
    )
    verdict = verdict_of(named)
    assert not verdict.passed and "`acc` has the wrong size" in verdict.message


def test_one_iteration_too_many_is_not_called_a_wrong_size():
    verdict = verdict_of(
        changed(solution("thread_columns"), (PRODUCTS, PRODUCTS.replace("TM):", "TM + 1):")))
    )
    assert not verdict.passed and "wrong size" not in verdict.message


@pytest.mark.parametrize("exercise", [check.thread_columns, check.in_registers])
def test_factories_that_are_not_written_yet(exercise):
    blank = {check.thread_columns: lambda BM, BN, BK, TM: None, check.in_registers: lambda R: None}
    for answer in (None, ..., blank[exercise]):
        assert exercise(answer).message.startswith("Not yet")


def test_the_kernel_as_handed_out_is_not_fixed():
    assert check.in_registers(make_strip).message.startswith("Not yet")


def test_guards_one_too_far_are_not_taken_for_accumulators_in_y():
    store = "if first + 32 * i {} n:\n                y["
    one_store = verdict_of(changed(solution("in_registers"), (store.format("<"), store.format("<="))))
    assert not one_store.passed and "is written, and there are only" in one_store.message
    all_guards = verdict_of(changed(solution("in_registers"), ("< n:", "<= n:")))
    assert not all_guards.passed and "the last column is" in all_guards.message


def test_a_kernel_in_place_of_its_factory_is_named():
    assert "BM, BN, BK and TM" in check.thread_columns(rows_apart(8, 8, 8, 8)).message
    assert "takes R" in check.in_registers(other_words(4)).message


@pytest.mark.parametrize(("BK", "sectors"), [(1, 32), (2, 16), (4, 8), (8, 4), (16, 4), (32, 4)])
def test_the_emulator_counts_the_sectors_of_a_tile(BK, sectors):
    assert check.tile_sectors.right(BK) == sectors


def test_numbers_may_be_numpys_or_whole_floats():
    assert check.tile_sectors(lambda BK: 32 // BK * max(1, BK / 8)).passed
    assert check.tile_sectors(lambda BK: np.int64(32) // BK * max(1, BK // 8)).passed
    assert check.tile_sectors(lambda BK: Fraction(32, BK) * max(1, BK // 8)).passed


@pytest.mark.full(reason="a kernel that prints much")
@pytest.mark.parametrize(
    ("exercise", "old"), [("thread_columns", "b = Bs[p, tx]\n"), ("in_registers", "xp = x[p]\n")]
)
def test_a_forgotten_print_is_named_and_does_not_flood_the_page(exercise, old, capsys):
    source = solution(exercise)
    line = next(line for line in source.splitlines(True) if old in line)
    indent = line[: len(line) - len(line.lstrip())]
    verdict = verdict_of(changed(source, (line, f"{line}{indent}print(p, cuda.threadIdx.x)\n")))
    assert verdict.passed, str(verdict)
    if why_no_compiler() is None:
        assert "Its `print` takes" in verdict.message
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == MOST_LINES + 1 and "more lines" in printed[-1]


@pytest.mark.gpu
@pytest.mark.parametrize(("make", "spills"), [(make_strip, True), (other_words, False)])
def test_the_compiler_agrees_about_local_memory(make, spills):
    kernel = make(16)
    x, A, y = (np.ones(shape, np.float32) for shape in (8, (8, 500), 500))
    kernel[1, 32](500, 8, x, A, y)
    assert any(kernel.get_local_mem_per_thread().values()) == spills


@pytest.mark.full(reason="emulates several kernels")
@pytest.mark.parametrize(
    "loop", ["for i in range(len(acc)):\n{}", "i = 0\n            while i < R:\n{}                i += 1\n"]
)
def test_a_loop_that_always_runs_r_times_is_not_called_open_ended(loop):
    """The element that it adds to is what leaves the registers."""
    adding = "".join(
        f"                {line}\n"
        for line in (
            "j = (i + p) % R",
            "if first + 32 * j < n:",
            "    acc[j] += xp * A[p, first + 32 * j]",
        )
    )
    verdict = verdict_of(changed(solution("in_registers"), (ADD_LOOP, loop.format(adding))))
    assert not verdict.passed and "depends on more than a loop's own variable" in verdict.message


@pytest.mark.compiler
def test_a_kernel_whose_cap_makes_it_spill_passes_and_is_told():
    capped = changed(solution("thread_columns"), ("@cuda.jit\n", "@cuda.jit(max_registers=32)\n"))
    verdict = verdict_of(capped)
    assert verdict.passed and "no register was left are there, and no array" in verdict.message
    assert "no register was left" not in verdict_of(solution("thread_columns")).message


@pytest.mark.compiler
def test_steps_that_are_written_out_pass_and_their_registers_are_told():
    """The solution then spills 4 bytes, in a piece of 8."""
    written_out = changed(solution("thread_columns"), ("for p in range(BK)", "for p in unroll(range(BK))"))
    verdict = verdict_of("from lockstep.intrinsics import unroll\n" + written_out)
    assert verdict.passed, str(verdict)
    assert "takes 255 registers" in verdict.message and "a GPU would refuse the launch" in verdict.message
    assert "refuse" not in verdict_of(solution("thread_columns")).message
