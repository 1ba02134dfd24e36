"""Figures in the text of notebooks 00 and 01, held to the records and tables that they come from."""

import re

import pytest

from gemm_course import records, road
from gemm_course.checks.engines import Problem
from gemm_course.kernels import LADDER
from gemm_course.model.gpus import GPUS
from gemm_course.model.roofline import Roofline
from gemm_course.profiles import recorded
from gemm_course.profiles.verdict import of_active_clocks
from lockstep.limits import LIMITS
from tests.notebooks.builder import ROOT, source_of

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


def test_the_two_speeds_of_00():
    text = text_of("welcome")
    assert f"computes at {H200.peak_fp32_tflops:.0f} TFLOPS" in text
    assert f"delivers {H200.dram_tb_s:g} TB per second" in text
    per_byte = H200.peak_fp32_tflops / H200.dram_tb_s
    assert f"time for 67 / 4.8 = {per_byte:.0f} operations" in text
    assert f"a float of 4 bytes comes in, for {4 * per_byte:.0f}" in text
    clocks = H200.clock_mhz / 1000
    assert (
        f"{H200.multiprocessors} · 4 · 32 · 2 · {clocks:g} · 10⁹ = {H200.peak_fp32_tflops:.0f} · 10¹²" in text
    )
    assert H200.multiprocessors * 4 * 32 * 2 * clocks / 1000 == pytest.approx(H200.peak_fp32_tflops, rel=1e-3)
    assert f"these are the {H200.multiprocessors * H200.limits.threads:,} above".replace(",", " ") in text
    a100, clocks = GPUS["A100"], GPUS["A100"].clock_mhz / 1000
    assert f"has {a100.multiprocessors} SMs of four schedulers and $1.41" in text and clocks == pytest.approx(
        1.41
    )
    assert "108 · 4 · 16 · 2 · 1.41 · 10⁹ = 19.5 · 10¹²" in text
    assert a100.peak_fp32_tflops == pytest.approx(19.5, abs=0.05)
    ridge = Roofline().ridge()
    assert f"some {ridge:.0f} FLOP per byte: n / 6 = {ridge:.0f}, so from n = {6 * ridge:.0f} on" in text
    assert H200.dram_tb_s / 12 / H200.peak_fp32_tflops == pytest.approx(0.006, abs=5e-4)


def test_what_00_says_of_schedulers_holds_for_every_gpu():
    assert {limits.threads // 32 // limits.partitions for limits in LIMITS.values()} == {8, 12, 16}
    assert f"up to {H200.limits.threads} threads" in text_of("welcome")
    assert "they cover 64 of 504" in text_of("welcome") and 16 * 4 == 64 and 4 + 500 == 504
    assert "up to 16 warps" in text_of("welcome") and "room for 8 or 12" in text_of("welcome")
    assert f"up to {H200.multiprocessors * H200.limits.threads:,}".replace(",", " ") in text_of("welcome")


def test_the_blocks_of_the_question_about_rows():
    warps = {}
    for x, y in ((6, 7), (40, 2), (96, 2)):
        rows = [
            {linear // x for linear in range(first, min(first + 32, x * y))} for first in range(0, x * y, 32)
        ]
        warps[x, y] = any(len(each) > 1 for each in rows), len(rows), 32 * len(rows) - x * y
    assert warps == {(6, 7): (True, 2, 22), (40, 2): (True, 3, 16), (96, 2): (False, 6, 0)}
    said = ("the second has 8 threads of the first row and 24 of the second", "with 22 idle lanes")
    assert all(words in text_of("welcome") for words in said)


def test_the_naive_kernel_reaches_less_than_one_percent():
    rows = records.ladder().query("stage == 'naive_uncoalesced' and m == n == k == 4096")
    assert 0.5 < 100 * rows["tflops"].max() / H200.peak_fp32_tflops < 1
    assert text_of("welcome").count("less than one percent") == 2


def test_the_naive_kernel_waits_for_l1_and_not_for_dram():
    row = profile("naive_uncoalesced")
    intensity = 2 * 4096**3 / (row.dram_read_bytes + row.dram_write_bytes)
    assert f"with n = 4096, does {intensity:.0f} FLOP per byte" in text_of("welcome")
    assert intensity > Roofline().ridge()
    dram, l1 = (100 * of_active_clocks(row, what) for what in ("dram", "l1_data"))
    assert f"DRAM is busy {dram:.0f} % of the time, L1 {l1:.0f} %" in text_of("welcome")


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
