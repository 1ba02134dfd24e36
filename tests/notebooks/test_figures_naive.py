"""Figures in the words of notebook 01 and of its side trip are those of the records."""

import re

import numpy as np
import pytest
from numba import cuda

from gemm_course import records
from gemm_course.device.buffers import leading_dimension
from gemm_course.kernels import LADDER
from gemm_course.model.gpus import GPUS
from gemm_course.profiles import recorded
from gemm_course.profiles.verdict import of_active_clocks
from gemm_course.widgets import _quiz
from lockstep import emulate, wavefronts
from tests.notebooks.builder import source_of

H200 = GPUS["H200"]
# L1's roof in TFLOPS at one wavefront per step of a warp, which is 64 FLOP.
ROOF = H200.multiprocessors * H200.clock_mhz * 1e6 * 64 / 1e12
STAGE, SQUARE = "naive_uncoalesced", "BM=32 BN=32"
SIDE = "row_lengths"


def words_of(notebook: str) -> str:
    """The text of a notebook's source on one line."""
    return re.sub(r"\s+", " ", source_of(notebook).replace("\n# ", " "))


def asked(question: str) -> str:
    return str(_quiz.questions("naive")[question])


def swept(tiles: str) -> float:
    return records.sweep().set_index(["stage", "tiles"])["tflops"][STAGE, tiles]


def speed(extra: int, tiles: str = SQUARE, stage: str = STAGE) -> float:
    rows = records.row_lengths().set_index(["stage", "n", "tiles", "leading_dimension"])["tflops"]
    return rows[stage, 4096, tiles, 4096 + extra]


def floats(rows: int, columns: int, extra: int = 0) -> tuple[list[int], list[int]]:
    """The numbers of the floats of A and of B that the first warp of a block reads at p = 0."""
    lanes = range(32)
    return [(4096 + extra) * (lane % rows) for lane in lanes], [lane // rows for lane in lanes]


def per_step(rows: int, columns: int, extra: int = 0) -> int:
    return sum(map(wavefronts, floats(rows, columns, extra)))


# ---- 01 ----------------------------------------------------------------------------------------------------


def test_the_blocks_of_the_opening_and_their_forecasts():
    text = words_of("naive")
    assert (
        f"{ROOF:.1f}\\ \\text{{TFLOPS}}" in text and f"{ROOF:.1f} TFLOPS, divided by the wavefronts" in text
    )
    assert "$$132 \\cdot 1.98 \\cdot 10^9" in text and (H200.multiprocessors, H200.clock_mhz) == (132, 1980)
    blocks = [(32, 32), (16, 16), (8, 32), (4, 64)]
    for rows, columns in blocks:
        measured, counted = swept(f"BM={rows} BN={columns}"), per_step(rows, columns)
        forecast = 16.7 / counted
        shown = [f"{each:.2f}" if each < 1 else f"{each:.1f}" for each in (forecast, measured)]
        cells = f"{rows}, {32 // rows} | {rows} + 1 = {counted} | {shown[0]} | {shown[1]}"
        assert f"| {rows} × {columns} | {cells} |" in text, cells
        assert 0 < forecast / measured - 1 < 0.02
    fastest, slowest = (pick(swept(f"BM={r} BN={c}") for r, c in blocks) for pick in (max, min))
    assert text.count(f"{fastest / slowest:.1f} times as fast") == 2
    assert "33 / 5 is the 6.6 of the opening" in text and round(33 / 5, 1) == round(fastest / slowest, 1)


def test_the_bounds_of_the_bet():
    text, best = words_of("naive"), records.ladder().query("m == n == k == 4096 and stage == @STAGE")
    assert f"can compute {H200.peak_fp32_tflops:.0f} TFLOPS" in text
    assert f"NVIDIA's own library, reaches {best['cublas_tflops'].max():.0f}." in text
    assert f"**It reached** {swept(SQUARE):.2f} TFLOPS" in text
    assert swept(SQUARE) / H200.peak_fp32_tflops < 0.01


def test_the_experiment_with_sixteen_floats():
    plain, sixteen = speed(0), speed(16)
    assert f"{sixteen / plain:.1f}" == "1.8" and f"{sixteen:.2f} instead of {plain:.2f} TFLOPS" in asked(
        "padding"
    )
    assert speed(32) == pytest.approx(plain, rel=0.02)
    assert (per_step(32, 32), per_step(32, 32, 16), per_step(32, 32, 32)) == (33, 17, 33)
    assert "32 + 1 wavefronts for A and B became 16 + 1" in words_of("naive")
    queues = {extra: wavefronts(floats(32, 32, extra)[0]) for extra in (8, 16, 24, 32)}
    assert queues == {8: 8, 16: 16, 24: 8, 32: 32}


def test_the_work_of_l1_and_of_the_schedulers():
    text, row = words_of("naive"), profile(SQUARE)
    assert f"in {int(row.l1_hits)} % of the cases a sector is in L1 already" in text
    assert round(100 * of_active_clocks(row, "l1_data")) == 99 and "L1 was busy in 99 % of the clocks" in text
    assert round(row.issue_slots) == 6 and round(8 / (4 * 33) * 100) == 6
    steps = row.global_load_requests / 2 / H200.multiprocessors
    assert row.warp_instructions / H200.multiprocessors / steps == pytest.approx(8, abs=0.5)
    assert row.clocks / steps == pytest.approx(33, abs=1)
    assert recorded(STAGE).waits["queue to global memory"] == pytest.approx(0.75, abs=0.03)


def profile(tiles: str):
    return records.profiles().set_index(["stage", "m", "tiles"]).loc[(STAGE, 4096, tiles)]


def test_two_measurements_of_one_kernel_differ_by_noise():
    """The same kernel, timed for three records."""
    ladder = records.ladder().query("stage == @STAGE and m == n == k == 4096")["tflops"].max()
    for tiles in (SQUARE, "BM=16 BN=16", "BM=4 BN=64"):
        assert speed(0, tiles) == pytest.approx(swept(tiles), rel=0.02)
    assert ladder == pytest.approx(swept(SQUARE), rel=0.02)
    flat = [speed(extra, stage="naive_coalesced") for extra in (0, 1, 8, 16, 32)]
    assert 0.01 < max(flat) / min(flat) - 1 < 0.02
    assert "differ by 1 or 2 %" in words_of("naive")


def test_the_operations_in_float64_of_the_manual():
    @cuda.jit
    def matmul(A, B, C):
        i, j = cuda.grid(2)
        if i < C.shape[0] and j < C.shape[1]:
            tmp = 0.0
            for k in range(A.shape[1]):
                tmp += A[i, k] * B[k, j]
            C[i, j] = tmp

    A, B, C = (np.ones((32, 32), np.float32) for _ in range(3))
    rows = emulate(matmul, (1, 1), (32, 32), A, B, C).arithmetic
    wide = rows[rows["dtype"] == "float64"]
    assert set(wide["op"]) == {"add"} and wide["lanes"].sum() == 32**3
    assert f"{32**3:,}: every addition" in asked("float64")


def test_the_unseen_kernels_of_the_quiz():
    measured = swept("BM=2 BN=128")
    assert per_step(2, 128) == 3 and f"{16.7 / 3:.1f} TFLOPS" in asked("two_rows")
    assert f"Measured: {measured:.1f}." in asked("two_rows") and measured < ROOF / 3
    assert wavefronts(list(range(32))) + wavefronts(32 * [0]) == 2
    assert round(100 * 2 / (24 / 4)) == 33


# ---- its side trip -----------------------------------------------------------------------------------------


def test_the_hunt_for_the_best_padding():
    text = words_of(SIDE)
    plain, one = speed(0), speed(1)
    assert f"{one:.1f} TFLOPS, {one / plain:.1f} times as fast as none" in text
    assert f"made `{STAGE}` {one / plain:.1f} times as fast" in text
    assert f"made `{STAGE}` {speed(16) / plain:.1f} times as fast" in text
    extras = sorted(records.row_lengths()["leading_dimension"].sub(records.row_lengths()["n"]).unique())
    assert max(extras, key=speed) == 1
    assert {extra for extra in extras if speed(extra) < 1.02 * plain} == {0, 32, 64}
    assert [extra for extra in range(9) if per_step(32, 32, extra) == 2] == [1, 3, 5, 7]
    assert "roof is 16.7 / 2 = 8.4 TFLOPS" in text and round(one / 8.4, 1) == 0.2


def test_with_every_float_at_a_place_of_its_own_the_clocks_follow_the_rows_of_a_warp():
    text, clocks = words_of(SIDE), []
    for rows, columns in ((32, 32), (16, 16), (4, 64), (2, 128)):
        tflops = speed(1, f"BM={rows} BN={columns}")
        assert f'"{rows} × {columns}": {tflops:.2f}' in text
        assert per_step(rows, columns, 1) == 2
        clocks.append(ROOF / tflops)
        assert clocks[-1] == pytest.approx(2 + rows / 4, rel=0.14)
    assert "{:.0f}, {:.0f}, {:.0f} and {:.0f} clocks for 32, 16, 4 and 2 rows".format(*clocks) in text


def test_down_to_eight_floats_at_a_place_the_queue_decides():
    queue = {extra: ROOF / speed(extra) / per_step(32, 32, extra) for extra in (0, 16, 8, 4, 1)}
    assert queue[0] < 1.05 and queue[16] < 1.1 and queue[8] < 1.5 < queue[4] < queue[1]


def test_what_a_row_inside_sectors_costs_the_coalesced_kernel():
    whole, inside = (speed(extra, stage="naive_coalesced") for extra in (0, 1))
    assert "it gets less than 1 % slower" in words_of(SIDE) and 0 <= 1 - inside / whole < 0.01
    assert leading_dimension(333, 32) == 336 and 333 * 4 == 1332
    assert LADDER["naive_coalesced"].tiles
