"""What a learner's kernel reads, as written: solutions count what the ladder's kernels do, at any size."""

from dataclasses import replace

import numpy as np
import pytest
from numba import cuda, float32

from gemm_course import check
from gemm_course.kernels import LADDER
from gemm_course.rungs import RUNGS, counting, kept, noting, passed_here, rung_of, wavefronts_per_multiply_add
from gemm_course.widgets._costs import cost
from lockstep import emulate
from tests.checks.cells import checked_cells, verdict_of

# Wavefronts of a thread in a step along k, by the multiply-adds of that step.
AS_WRITTEN = {
    "naive": 32 + 1,
    "coalesced": 1 + 1,
    "tile_kernel": 1 + 1,
    "thread_columns": (32 + 1) / 32,
    # As: 8 reads in two rows, of one bank. Bs: 8 reads of 16 lanes, of four in a bank.
    "slices": (8 * 2 + 8 * 4) / 64,
    # As, transposed: 8 reads of two words of one row, in two banks. Bs as before.
    "both_switches": (8 * 1 + 8 * 4) / 64,
    "runs_of_four": (8 + 8) / 64,
}
COUNTED = [rung for rung in RUNGS if rung.reads]


@pytest.fixture
def answer(folder):
    """A function that checks the course's solution in a learner's notebook, and returns the answer."""

    def passes(rung):
        assert verdict_of(checked_cells("solution")[rung.checker]).passed
        return passed_here(rung)

    return passes


@pytest.mark.parametrize("rung", COUNTED, ids=lambda rung: rung.checker)
def test_a_solution_counts_what_is_worked_out_by_hand_and_what_the_ladders_kernel_does(rung, answer):
    answer(rung)
    found = kept(rung.checker).wavefronts
    assert found == pytest.approx(AS_WRITTEN[rung.checker])
    if rung.reads == "shared":
        assert found == pytest.approx(cost(LADDER[rung.stage], rung.tiles).wavefronts)


def test_every_counted_rung_is_worked_out():
    assert {rung.checker for rung in COUNTED} == AS_WRITTEN.keys()


@pytest.mark.parametrize("checker", ["tile_kernel", "thread_columns"])
def test_a_whole_product_of_several_blocks_counts_the_same_per_multiply_add(checker, answer):
    rung = rung_of(checker)
    kernel = rung.kernel(answer(rung))
    m, n, k = 2 * rung.tiles["BM"], 3 * rung.tiles["BN"], 5 * rung.tiles["BK"]
    A, B, C = (np.zeros(shape, np.float32) for shape in ((m, k), (k, n), (m, n)))
    # Here beta is not 0, so C is read as well, after all steps along k.
    report = emulate(kernel, (3, 2), rung.block, m, n, k, np.float32(1), A, B, np.float32(1), C)
    loads = report.accesses.query("space == 'shared' and op == 'load'")["wavefronts"].sum()
    assert 32 * loads / (m * n * k) == pytest.approx(kept(checker).wavefronts)


def test_deeper_products_and_longer_rows_change_nothing(answer, monkeypatch):
    rung = rung_of("naive")
    naive = answer(rung)
    monkeypatch.setattr(counting, "_STEP", 32)
    monkeypatch.setattr(counting, "_ROW", 4096)
    assert wavefronts_per_multiply_add(rung, naive) == 33


def test_a_kernel_that_reads_more_counts_more(folder):
    """The count is of the learner's own kernel: this one is right, and reads As once more per product."""

    def make_tiled(T):
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
                    acc += As[ty, p] * float32(0)
                cuda.syncthreads()
            if row < m and col < n:
                C[row, col] = alpha * acc + beta * C[row, col] if beta != 0 else alpha * acc

        return tiled

    assert wavefronts_per_multiply_add(rung_of("tile_kernel"), make_tiled) == 3


# ---- what a check notes ------------------------------------------------------------------------------------


def test_a_part_of_a_kernel_fills_its_place_without_counts(folder, monkeypatch):
    """No rung of today is one."""
    rung = replace(rung_of("both_switches"), checker="ragged_fours", reads="")
    monkeypatch.setattr(noting, "rung_of", {"ragged_fours": rung}.get)
    assert verdict_of(checked_cells("solution")["ragged_fours"]).passed
    assert kept("ragged_fours").passed and kept("ragged_fours").wavefronts is None
    assert passed_here(rung) is not None


def test_a_kernel_that_does_not_pass_and_another_exercise_fill_no_place(folder):
    assert not verdict_of(checked_cells("stub")["naive"]).passed
    assert check.best_block((16, 16)).passed
    assert not folder.exists()


@pytest.mark.parametrize("fault", [ValueError("cannot be counted"), OSError("a disk")])
def test_a_check_passes_quietly_whatever_counting_does(folder, monkeypatch, capsys, fault):
    def count(rung, answer):
        print("a learner's own print")
        raise fault

    monkeypatch.setattr(noting, "wavefronts_per_multiply_add", count)
    assert verdict_of(checked_cells("solution")["coalesced"]).passed
    assert kept("coalesced").passed and kept("coalesced").wavefronts is None
    assert "own print" not in capsys.readouterr().out
    folder.parent.joinpath("flat").write_text("a file where a folder should be")
    monkeypatch.setenv("GEMM_COURSE_PROGRESS", str(folder.parent / "flat" / "progress"))
    assert verdict_of(checked_cells("solution")["coalesced"]).passed
    assert not kept("coalesced").passed


def test_counting_costs_a_check_little(folder, monkeypatch):
    """In launches: two small ones, beside the dozens of the check itself."""
    launches = []

    def counted(*given, **options):
        launches.append(options)
        return emulate(*given, **options)

    monkeypatch.setattr(counting, "emulate", counted)
    assert verdict_of(checked_cells("solution")["slices"]).passed
    assert launches == 2 * [{"counts_only": True}]
