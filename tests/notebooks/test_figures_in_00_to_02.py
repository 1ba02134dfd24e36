"""Figures in the text of notebooks 00 to 02, held to the records and tables that they come from."""

import re
from pathlib import Path

import pytest

from gemm_course import records
from gemm_course.checks.engines import Problem
from gemm_course.emulator.limits import LIMITS
from gemm_course.kernels import LADDER
from gemm_course.model.gpus import GPUS
from gemm_course.model.roofline import Roofline
from gemm_course.profiles import recorded
from gemm_course.profiles.verdict import of_active_clocks, verdict

SOURCES = Path(__file__).parents[2] / "notebooks" / "source"
H200 = GPUS["H200"]


def text_of(number: str) -> str:
    """A notebook's text and code in one line, without the marks of comments."""
    (path,) = SOURCES.glob(f"{number}_*.py")
    return " ".join(re.sub(r"^# *", "", line) for line in path.read_text("utf-8").splitlines())


def counted(stage: str, size: int = 1024):
    rows = records.counters("ladder").set_index("case")
    return rows.loc[f"{stage} {size}x{size}x{size}"]


def test_every_stage_of_the_documents_is_in_the_table_of_00_beside_its_document():
    rows = re.findall(r"\| (0\d \| \d{3}.*?) \|(?= \|| [A-Z])", re.sub(" +", " ", text_of("00")))
    assert [row[:2] for row in rows] == [f"{number:02d}" for number in range(1, 9)]
    for stage in LADDER:
        for part in filter(None, re.split(r"[:,;] *", stage.document)):
            if re.fullmatch(r"\d{3}|v\d\d", part):
                assert any(f"`{stage.name}`" in row and part in row for row in rows), (stage.name, part)


def test_the_two_speeds_of_00():
    text = text_of("00")
    assert f"computes at {H200.peak_fp32_tflops:.0f} TFLOPS" in text
    assert f"delivers {H200.dram_tb_s:g} TB per second" in text
    assert f"time for {4 * H200.peak_fp32_tflops / H200.dram_tb_s:.0f} operations" in text
    clocks = H200.clock_mhz / 1000
    assert (
        f"{H200.multiprocessors} · 4 · 32 · 2 · {clocks:g} · 10⁹ = {H200.peak_fp32_tflops:.0f} · 10¹²" in text
    )
    assert H200.multiprocessors * 4 * 32 * 2 * clocks / 1000 == pytest.approx(H200.peak_fp32_tflops, rel=1e-3)
    ridge = Roofline().ridge()
    assert f"some {ridge:.0f} FLOP per byte: n / 6 = {ridge:.0f}, so from n = {6 * ridge:.0f} on" in text
    assert H200.dram_tb_s / 12 / H200.peak_fp32_tflops == pytest.approx(0.006, abs=5e-4)


def test_what_00_says_of_schedulers_holds_for_every_gpu():
    assert {limits.threads // 32 // limits.partitions for limits in LIMITS.values()} == {8, 12, 16}
    assert f"up to {H200.limits.threads} threads" in text_of("00")
    assert "they cover 64 of 504" in text_of("00") and 16 * 4 == 64 and 4 + 500 == 504
    assert "up to 16 warps" in text_of("00") and "room for 8 or 12" in text_of("00")
    assert f"up to {H200.multiprocessors * H200.limits.threads:,}".replace(",", " ") in text_of("00")


def test_the_blocks_of_the_question_about_rows():
    warps = {}
    for x, y in ((6, 7), (40, 2), (96, 2)):
        rows = [
            {linear // x for linear in range(first, min(first + 32, x * y))} for first in range(0, x * y, 32)
        ]
        warps[x, y] = any(len(each) > 1 for each in rows), len(rows), 32 * len(rows) - x * y
    assert warps == {(6, 7): (True, 2, 22), (40, 2): (True, 3, 16), (96, 2): (False, 6, 0)}
    said = ("the second has 8 threads of the first row and 24 of the second", "with 22 idle lanes")
    assert all(words in text_of("00") for words in said)


def test_the_naive_kernel_reaches_less_than_one_percent():
    rows = records.ladder().query("stage == 'naive_uncoalesced' and m == n == k == 4096")
    assert 0.5 < 100 * rows["tflops"].max() / H200.peak_fp32_tflops < 1
    assert text_of("00").count("less than one percent") == 2


def test_the_naive_kernel_reads_a_and_b_from_dram_once():
    read = counted("naive_uncoalesced").dram_read_bytes
    assert read == pytest.approx(2 * 4 * 1024**2, rel=0.01)
    assert f"{read / 1e6:.1f} MB for n = 1024" in text_of("00")
    moved = read + 4 * 1024**2
    assert f"writes another {4 * 1024**2 / 1e6:.1f}. That is about 170 FLOP per byte" in text_of("00")
    assert 2 * 1024**3 / moved == pytest.approx(170, abs=2) and 170 > Roofline().ridge()
    busy = 100 * of_active_clocks(profile("naive_uncoalesced"), "l1_data")
    assert f"busy {busy:.0f} % of the time (measured with n = 4096)" in text_of("00")


# ---- 01 --------------------------------------------------------------------------------------------------

SQUARE = "BM=32 BN=32"


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
    text, row = text_of("01"), profile("naive_uncoalesced")
    assert f"L1 finds {row.l1_hits:.0f} % of all sectors" in text
    assert "L1 leads with 99 %" in text and "L1 is busy 99 % of the" in text
    assert round(100 * of_active_clocks(row, "l1_data")) == 99
    assert recorded("naive_uncoalesced").waits["queue to global memory"] == pytest.approx(0.75, abs=0.03)


def test_the_guess_at_the_issue_slots_of_the_naive_kernel():
    row = profile("naive_uncoalesced")
    assert round(row.issue_slots) == 6 and round(8 / (4 * 33) * 100) == 6
    assert per_step(row, row.warp_instructions / H200.multiprocessors) == pytest.approx(8, abs=0.5)
    assert per_step(row, row.clocks) == pytest.approx(33, abs=1)


def test_the_forecasts_of_four_blocks():
    text, timed = text_of("01"), records.sweep().set_index(["stage", "tiles"])["tflops"]
    most = H200.multiprocessors * H200.clock_mhz * 1e6 * 64 / 1e12
    assert f"{most:.1f}\\ \\text{{TFLOPS}}" in text and f"{most:.1f} TFLOPS / wavefronts" in text
    for rows, columns in ((32, 32), (16, 16), (8, 32), (4, 64)):
        speed, forecast = timed["naive_uncoalesced", f"BM={rows} BN={columns}"], 16.7 / (rows + 1)
        cells = f"{rows}, {32 // rows} | {rows} + 1 = {rows + 1} | {forecast:.2f} | {speed:.2f}"
        assert f"| {rows} × {columns} | {cells} |" in text, cells
        assert 0 < forecast / speed - 1 < 0.02


def test_the_story_of_the_padding():
    text = text_of("01")
    plain, one, sixteen = (speed("naive_uncoalesced", extra) for extra in (0, 1, 16))
    assert f"{one / plain:.1f} times as fast, {one:.2f} instead of {plain:.2f} TFLOPS" in text
    assert "1 + 1 wavefronts, 8.4 TFLOPS" in text and round(16.7 / 2 + 0.001, 1) == 8.4
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
    assert "a step takes 10 clocks or more, however few they are" in re.sub(" +", " ", text_of("01"))
    assert (round(rows[-1].l1_data), round(rows[0].l1_data)) == (30, 49)
    assert all(10 <= per_step(row, row.clocks) < 11.5 for row in rows)
    busy = records.columns.PROFILE_BUSY
    assert all(max(row[part] for part in busy) == row.l1_data for row in rows)


def test_the_tolerance_that_the_glossary_states():
    q = Problem(2, 3, 5, alpha=1, beta=0)
    assert (q.k + 4) * 2**-23 * (abs(q.A) @ abs(q.B)) == pytest.approx(q.tolerance)
    assert "(k + 4) · 2⁻²³ times" in (SOURCES.parent / "glossary.md").read_text("utf-8")


def test_the_block_of_4_by_64():
    rows = records.sweep().set_index(["stage", "tiles"])["tflops"]
    block, square = (rows["naive_uncoalesced", tiles] for tiles in ("BM=4 BN=64", SQUARE))
    assert f"makes the kernel {block / square:.1f} times as fast" in re.sub(" +", " ", text_of("01"))


# ---- 02 --------------------------------------------------------------------------------------------------

NARROW, FLAT, EVEN = "BM=4 BN=64", "BM=2 BN=128", "BM=16 BN=16"


def milliseconds(row) -> float:
    return row.nanoseconds / 1e6


def sectors(row) -> float:
    return row.global_load_sectors / (row.global_load_requests / 2)


@pytest.mark.parametrize(
    ("name", "stage", "tiles"),
    [
        ("v00", "naive_uncoalesced", SQUARE),
        ("v00", "naive_uncoalesced", NARROW),
        ("v01", "naive_coalesced", SQUARE),
        ("v01", "naive_coalesced", FLAT),
    ],
)
def test_the_table_that_changes_one_thing_at_a_time(name, stage, tiles):
    row = profile(stage, tiles=tiles)
    block = tiles.replace("BM=", "").replace(" BN=", " × ")
    busy = 100 * max(of_active_clocks(row, part) for part in ("l1_data", "l1_writeback", "l1_requests"))
    cells = f"{milliseconds(row):.1f} | {sectors(row):.0f} | {wavefronts(row):.0f} | {busy:.0f} %"
    assert f"| {name} | {block} | {cells} |" in text_of("02"), cells


def test_the_order_alone_and_the_block_alone():
    v00, v01, flat = (
        milliseconds(profile(stage, tiles=tiles))
        for stage, tiles in (
            ("naive_uncoalesced", SQUARE),
            ("naive_coalesced", SQUARE),
            ("naive_coalesced", FLAT),
        )
    )
    assert f"The order alone makes it {v00 / v01:.1f} times as fast." in text_of("02")
    assert f"The block makes it another {v01 / flat:.1f} times as fast." in text_of("02")
    assert f"the order of the threads brings {v00 / v01:.1f} times" in text_of("02")


def test_why_the_order_brings_ten_times_and_not_more():
    v00, v01 = profile("naive_uncoalesced"), recorded("naive_coalesced", {"BM": 32, "BN": 32})
    busy = verdict(v01).busy["L1 and shared memory"], of_active_clocks(v00, "l1_data")
    assert [round(100 * share) for share in busy] == [61, 99]
    assert "16.5 · 61 / 99 is 10.2" in text_of("02") and 16.5 * 61 / 99 == pytest.approx(10.2, abs=0.05)
    assert f"warps wait {100 * v01.waits['global memory']:.0f} % of their time for loads" in text_of("02")


def test_wide_blocks_of_v01_are_faster():
    rows = records.sweep().query("stage == 'naive_coalesced'")
    wide = rows["tiles"].map(lambda tiles: records.parse_tiles(tiles)["BN"] >= 128)
    of_wide, of_narrow = rows[wide]["tflops"], rows[~wide]["tflops"]
    said = f"reach {of_wide.min():.1f} to {of_wide.max():.1f} TFLOPS, all narrower ones at most"
    assert f"{said} {of_narrow.max():.1f}" in text_of("02")


def test_what_a_row_inside_sectors_costs_v01():
    whole, inside = (speed("naive_coalesced", extra, tiles=FLAT) for extra in (0, 1))
    assert f"it reaches {inside:.2f} instead of {whole:.2f} TFLOPS" in text_of("02")


def test_v00_with_narrow_blocks_and_longer_rows():
    narrow, square = speed("naive_uncoalesced", 8, tiles=NARROW), speed("naive_coalesced", 8)
    assert f"it reaches {narrow:.2f} TFLOPS, about as much as the {square:.2f} of v01 in" in text_of("02")
    less = [f"{speed('naive_uncoalesced', extra, tiles=NARROW):.2f}" for extra in (1, 2, 4)]
    assert f"it reaches only {less[0]}, {less[1]} and {less[2]}" in text_of("02")
    for extra in (1, 8, 16, 32):
        plain = speed("naive_coalesced", 0)
        assert speed("naive_coalesced", extra) == pytest.approx(plain, rel=0.02)


def test_sixteen_by_sixteen_is_hardly_faster():
    even, square = (profile("naive_coalesced", tiles=tiles) for tiles in (EVEN, SQUARE))
    timed = [speed("naive_coalesced", 0, tiles=tiles) for tiles in (EVEN, SQUARE)]
    assert f"Hardly: {timed[0]:.2f} TFLOPS, {timed[1]:.2f} with 32 × 32" in text_of("02")
    assert (round(wavefronts(even)), round(wavefronts(square))) == (3, 2)
    assert (round(sectors(even)), round(even.l1_data)) == (4, 93)


def test_how_close_both_come_to_the_roof_of_l1():
    rows = (profile("naive_uncoalesced"), profile("naive_coalesced", tiles=FLAT))
    of_roof = [row.l1_data / 100 * sectors(row) / (4 * wavefronts(row)) for row in rows]
    assert of_roof == [pytest.approx(0.25, abs=0.01), pytest.approx(0.49, abs=0.01)]
    busy = (rows[1].l1_data, rows[1].issue_slots)
    assert "busy 78 % of the time, and close behind it issue slots, 76 %" in text_of("02")
    assert [round(part) for part in busy] == [78, 76]
