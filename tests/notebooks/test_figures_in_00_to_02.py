"""Figures in the text of notebooks 00 and 01, held to the records and tables that they come from."""

import ast
import linecache
import re

import nbformat
import numpy as np
import pytest
from numba import cuda, float32

from gemm_course import emulate, records, road
from gemm_course.checks.engines import Problem
from gemm_course.kernels import LADDER
from gemm_course.model.gpus import GPUS
from gemm_course.profiles import recorded
from gemm_course.profiles.verdict import of_active_clocks
from gemm_course.widgets import _quiz
from tests.notebooks.builder import ROOT, builder, source_of

H200 = GPUS["H200"]


def text_of(topic: str) -> str:
    """A notebook's text and code in one line, without the marks of comments."""
    return " ".join(re.sub(r"^# *", "", line) for line in source_of(topic).splitlines())


def counted(stage: str, size: int = 1024):
    rows = records.counters("ladder").set_index("case")
    return rows.loc[f"{stage} {size}x{size}x{size}"]


def test_every_stage_of_the_documents_is_in_the_table_of_00_beside_its_document():
    rows = re.findall(r"\| (\d\d \| `[^|]*\|[^|]*\|[^|]*) \|", re.sub(" +", " ", text_of("welcome")))
    assert {row[:2] for row in rows} <= {notebook.number for notebook in road.ROAD} and len(rows) == 8
    for stage in LADDER:
        for part in filter(None, re.split(r"[:,;] *", stage.document)):
            if re.fullmatch(r"\d{3}|v\d\d", part):
                assert any(f"`{stage.name}`" in row and part in row for row in rows), (stage.name, part)


def test_the_times_of_a_product_in_00():
    """What cuBLAS takes is on record. What Python and NumPy take, a reader's machine says."""
    rows = records.ladder().query("dtype == 'fp32' and m == n == k == 4096")
    tflops = rows["cublas_tflops"].median()
    milliseconds = 1000 * 2 * 4096**3 / (tflops * 1e12)
    assert f"In the {milliseconds:.1f} milliseconds of cuBLAS" in text_of("welcome")
    assert f"this makes {tflops:.0f} TFLOPS" in text_of("welcome")
    asked = str(_quiz.questions("welcome")["gpu"])
    assert f"Measured: {milliseconds:.1f} milliseconds with cuBLAS" in asked
    assert f"'{milliseconds:.0f} milliseconds', 'right': True" in asked
    for answer, times in ((5 * 60, "a hundred thousand"), (5, "two thousand"), (0.1, "forty")):
        said = {"a hundred thousand": 1e5, "two thousand": 2000, "forty": 40}[times]
        assert times in asked and answer / milliseconds * 1000 == pytest.approx(said, rel=0.15)


def test_what_00_says_of_the_machine():
    text = text_of("welcome")
    assert f"an H200 has {H200.multiprocessors}." in text and "An SM has four **schedulers**" in text
    assert H200.limits.partitions == 4


def test_the_block_of_the_question_about_rows():
    rows = [{linear // 40 for linear in range(first, min(first + 32, 80))} for first in range(0, 80, 32)]
    assert rows == [{0}, {0, 1}, {1}]
    text = text_of("welcome")
    assert (
        "80 threads are three warps. The second has 8 threads of the first row and 24 of the second" in text
    )
    assert "16 lanes of the third have no thread" in text and 96 - 80 == 16


def test_the_warps_of_blocks_of_20_by_6():
    warps = [{linear // 20 for linear in range(first, min(first + 32, 120))} for first in range(0, 120, 32)]
    assert len(warps) == 4 and all({row % 2 for row in warp} == {0, 1} for warp in warps)
    assert warps[:2] == [{0, 1}, {1, 2, 3}]


def test_what_a_learner_counts_in_00():
    """The kernels are those of the solutions, and a learner sees twice as many requests first."""
    cells = {each.id: each.source for each in nbformat.read(builder.target("welcome", "solutions"), 4).cells}
    split, every_second = cells["split-solution"], cells["every-second-solution"]
    known = {"np": np, "cuda": cuda, "float32": float32, "emulate": emulate, "out": np.zeros(120, np.float32)}
    assert "as many requests as if there were eight warps" in text_of("welcome")
    assert "with half as many requests" in text_of("welcome")
    mixed = split.replace("i // 32 % 2 == 0", "i % 2 == 0")
    assert mixed != split
    assert [int(_shown(cell, known)["requests"].sum()) for cell in (mixed, split)] == [8, 4]
    assert [int(_shown(cell, known)["lanes"].sum()) for cell in (mixed, split)] == [128, 128]
    for cell, sectors in ((every_second.replace("2 * i", "i"), 15), (every_second, 30)):
        loads = _shown(cell, known).query("op == 'load'")
        assert (int(loads["requests"].sum()), int(loads["sectors"].sum())) == (6, sectors)


def _shown(source: str, known: dict):
    """Run a cell, and return the value of its last line."""
    name = f"<cell {hash(source)}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    *before, last = ast.parse(source).body
    space = dict(known)
    exec(compile(ast.Module(before, []), name, "exec"), space)
    return eval(compile(ast.Expression(last.value), name, "eval"), space)


# ---- 01 --------------------------------------------------------------------------------------------------

SQUARE = "BM=32 BN=32"
ROOF = H200.multiprocessors * H200.clock_mhz * 1e6 * 64 / 1e12  # at one wavefront per step


def profile(stage: str, size: int = 4096, tiles: str = SQUARE):
    rows = records.profiles().set_index(["stage", "m", "tiles"])
    return rows.loc[(stage, size, tiles)]


def per_step(row, what: float) -> float:
    """A count of an SM, per warp and step along k, of which each has one load of A and one of B."""
    return what / (row.global_load_requests / 2 / H200.multiprocessors)


def wavefronts(row) -> float:
    return per_step(row, row.l1_data / 100 * row.clocks)


def speed(stage: str, extra: int, size: int = 4096, tiles: str = SQUARE) -> float:
    rows = records.row_lengths().set_index(["stage", "n", "tiles", "leading_dimension"])["tflops"]
    return rows[stage, size, tiles, size + extra]


def test_what_limits_the_naive_kernel():
    text, row = text_of("naive"), profile("naive_uncoalesced")
    assert f"In the profile L1 has {int(row.l1_hits)} % of the sectors" in text
    assert "L1 leads with 99 %" in text and "L1 is busy 99 % of the" in text
    assert round(100 * of_active_clocks(row, "l1_data")) == 99
    assert recorded("naive_uncoalesced").waits["queue to global memory"] == pytest.approx(0.75, abs=0.03)


def test_the_guess_at_the_issue_slots_of_the_naive_kernel():
    row = profile("naive_uncoalesced")
    assert round(row.issue_slots) == 6 and round(8 / (4 * 33) * 100) == 6
    assert per_step(row, row.warp_instructions / H200.multiprocessors) == pytest.approx(8, abs=0.5)
    assert per_step(row, row.clocks) == pytest.approx(33, abs=1)


def test_the_forecasts_of_four_blocks():
    text, timed = text_of("naive"), records.sweep().set_index(["stage", "tiles"])["tflops"]
    most = H200.multiprocessors * H200.clock_mhz * 1e6 * 64 / 1e12
    assert f"{most:.1f}\\ \\text{{TFLOPS}}" in text and f"{most:.1f} TFLOPS / wavefronts" in text
    for rows, columns in ((32, 32), (16, 16), (8, 32), (4, 64)):
        speed, forecast = timed["naive_uncoalesced", f"BM={rows} BN={columns}"], 16.7 / (rows + 1)
        cells = f"{rows}, {32 // rows} | {rows} + 1 = {rows + 1} | {forecast:.2f} | {speed:.2f}"
        assert f"| {rows} × {columns} | {cells} |" in text, cells
        assert 0 < forecast / speed - 1 < 0.02


def test_the_story_of_the_padding():
    text = text_of("naive")
    plain, one, sixteen = (speed("naive_uncoalesced", extra) for extra in (0, 1, 16))
    seven = speed("naive_uncoalesced", 7)
    assert (
        f"{one / plain:.1f} times as fast as none; but that is {one:.2f} TFLOPS. 7 reach {seven:.2f}." in text
    )
    assert "so 1 + 1 wavefronts and 8.4 TFLOPS" in text and round(16.7 / 2 + 0.001, 1) == 8.4
    assert round(sixteen / plain, 1) == 1.8  # in the question 01.padding
    rows = records.row_lengths().query("stage == 'naive_uncoalesced' and n == 4096 and tiles == @SQUARE")
    by_extra = rows.set_index(rows["leading_dimension"] - 4096)["tflops"]
    assert by_extra.idxmax() == 1
    assert set(by_extra[by_extra < 1.02 * plain].index) == {0, 32, 64}
    for extra in (0, 16, 8, 1):
        row = profile("naive_uncoalesced", 2048 + extra)
        lanes = 32 if extra == 0 else extra
        cells = f"| {extra} | {lanes} | {wavefronts(row):.1f} | {per_step(row, row.clocks):.1f} |"
        assert cells in text, cells


def test_with_few_lanes_at_a_place_the_wavefronts_are_not_the_limit():
    rows = [profile("naive_uncoalesced", 2048 + extra) for extra in (4, 2, 1)]
    said = "With fewer, these 32 × 32 blocks stay above 10 clocks, whatever the wavefronts."
    assert said in re.sub(" +", " ", text_of("naive"))
    assert (round(rows[-1].l1_data), round(rows[0].l1_data)) == (30, 49)
    assert all(10 <= per_step(row, row.clocks) < 11.5 for row in rows)
    busy = records.columns.PROFILE_BUSY
    assert all(max(row[part] for part in busy) == row.l1_data for row in rows)


def test_with_every_float_at_a_place_of_its_own_the_clocks_follow_the_rows_of_a_warp():
    text = text_of("naive")
    for rows, columns, most_off in ((32, 32, 0.04), (16, 16, 0.03), (4, 64, 0.01), (2, 128, 0.06)):
        tiles, fit = f"BM={rows} BN={columns}", 2 + rows / 4
        clocks = ROOF / speed("naive_uncoalesced", 1, 2048, tiles)
        assert f"| {rows} × {columns} | {rows} | {clocks:.1f} | {fit:g} |" in text
        assert abs(clocks / fit - 1) < most_off
        larger = ROOF / speed("naive_uncoalesced", 1, 4096, tiles)
        assert abs(larger / fit - 1) < 0.14  # the same order with n = 4096, less close for few rows


def test_the_products_alone_would_keep_the_multiply_add_units_busy_one_percent():
    row = profile("naive_uncoalesced")
    assert "the products alone would be 1 %, not 2" in re.sub(" +", " ", text_of("naive"))
    assert round(row.fma_pipe) == 2 and round(100 / (4 * 33)) == 1


def test_the_tolerance_that_the_glossary_states():
    q = Problem(2, 3, 5, alpha=1, beta=0)
    assert (q.k + 4) * 2**-23 * (abs(q.A) @ abs(q.B)) == pytest.approx(q.tolerance)
    assert "(k + 4) · 2⁻²³ times" in (ROOT / "notebooks" / "glossary.md").read_text("utf-8")


def test_the_block_of_4_by_64():
    rows = records.sweep().set_index(["stage", "tiles"])["tflops"]
    block, square = (rows["naive_uncoalesced", tiles] for tiles in ("BM=4 BN=64", SQUARE))
    assert f"makes the kernel {block / square:.1f} times as fast" in re.sub(" +", " ", text_of("naive"))
