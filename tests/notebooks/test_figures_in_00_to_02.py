"""Figures in the text of notebooks 00 to 02, held to the records and tables that they come from."""

import re

import pytest

from gemm_course import records, road
from gemm_course.checks.engines import Problem
from gemm_course.kernels import LADDER
from gemm_course.model.gpus import GPUS
from gemm_course.model.roofline import Roofline
from gemm_course.profiles import recorded
from gemm_course.profiles.verdict import of_active_clocks, verdict
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


def test_the_tolerance_that_the_glossary_states():
    q = Problem(2, 3, 5, alpha=1, beta=0)
    assert (q.k + 4) * 2**-23 * (abs(q.A) @ abs(q.B)) == pytest.approx(q.tolerance)
    assert "(k + 4) · 2⁻²³ times" in (ROOT / "notebooks" / "glossary.md").read_text("utf-8")


# ---- 02 --------------------------------------------------------------------------------------------------

NARROW, FLAT, EVEN = "BM=4 BN=64", "BM=2 BN=128", "BM=16 BN=16"


ROOF = H200.multiprocessors * H200.clock_mhz * 1e6 * 64 / 1e12  # at one wavefront per step


def sectors(row) -> float:
    return row.global_load_sectors / (row.global_load_requests / 2)


def swept(stage: str, tiles: str) -> float:
    return records.sweep().set_index(["stage", "tiles"])["tflops"][stage, tiles]


def test_how_much_faster_the_order_alone_makes_it():
    v00, v01 = (swept(stage, SQUARE) for stage in ("naive_uncoalesced", "naive_coalesced"))
    assert f"**{v01 / v00:.0f} times**: from {v00:.2f} to {v01:.1f} TFLOPS" in text_of("coalesced")
    assert f"rises from {ROOF / 33:.2f} to {ROOF / 2:.1f}" in text_of("coalesced")
    assert f"{ROOF:.1f} TFLOPS / wavefronts" in text_of("coalesced")
    flat = records.ladder().query("stage == 'naive_coalesced' and m == n == k == 4096")["tflops"].max()
    assert (
        f"The chart of notebook {road.notebook('welcome').number} had {flat:.1f}." in text_of("coalesced")
        and flat / v00 > 13
    )


def test_the_hunt_for_longer_rows():
    text, extras = text_of("coalesced"), range(0, 65, 8)
    reached = {extra: speed("naive_uncoalesced", extra, tiles=NARROW) for extra in extras}
    assert [extra for extra, tflops in reached.items() if tflops >= 5] == [8]
    alike = [f"{reached[extra]:.1f}" for extra in extras if len({extra * row % 32 for row in range(4)}) == 4]
    assert alike == ["5.2", "4.8", "4.8", "4.9"] and "bring 4.8 or 4.9" in text
    assert reached[32] == pytest.approx(reached[0], rel=0.03) and round(reached[16], 1) == 4.6
    assert f"it reaches {reached[0]:.1f} TFLOPS" in text and f"{ROOF / 5:.1f}" == f"{reached[0]:.1f}"
    assert f"{reached[8]:.1f}" == f"{speed('naive_coalesced', 0):.1f}" == "5.2"
    assert [8 * row % 32 for row in range(4)] == [0, 8, 16, 24]


def test_the_bet_on_the_kernel_that_nobody_repaired():
    wide, narrower = (swept("naive_uncoalesced", f"BM=1 BN={columns}") for columns in (256, 128))
    said = f"One row high: 1 × 256 reaches {wide:.1f} TFLOPS, 1 × 128 reaches {narrower:.1f}."
    assert said in text_of("coalesced")


@pytest.mark.parametrize(
    ("name", "stage", "tiles", "of_a"),
    [
        ("v00, 32 × 32", "naive_uncoalesced", SQUARE, 32),
        ("v01, 16 × 16", "naive_coalesced", EVEN, 2),
        ("v01, 32 × 32", "naive_coalesced", SQUARE, 1),
        ("v01, 2 × 128", "naive_coalesced", FLAT, 1),
    ],
)
def test_the_mystery_profiles(name, stage, tiles, of_a):
    row, tflops = profile(stage, tiles=tiles), swept(stage, tiles)
    shown = f"{tflops:.2f}" if tflops < 1 else f"{tflops:.1f}"
    assert f'"{name}": {shown}' in text_of("coalesced")
    assert round(wavefronts(row)) == of_a + 1
    busy = verdict(recorded(stage, records.parse_tiles(tiles))).busy["L1 and shared memory"]
    yours = float(shown) * (of_a + 1) / 16.7
    assert f"| {name} | {of_a} + 1 | {yours:.0%} | {busy:.0%} |".replace("%", " %") in text_of("coalesced")


def test_two_limits_and_one_speed():
    text = text_of("coalesced")
    even, square = (swept("naive_coalesced", tiles) for tiles in (EVEN, SQUARE))
    assert f"{even:.1f}" == f"{square:.1f}" == "5.2" and "both have 5.2 TFLOPS" in text
    v01, flat = (recorded("naive_coalesced", {"BM": m, "BN": n}) for m, n in ((32, 32), (2, 128)))
    assert max(verdict(v01).busy, key=verdict(v01).busy.get) == "L1 and shared memory"
    assert "no part of the GPU is busier than L1's 61 %" in text
    assert flat.waits["global memory"] < v01.waits["global memory"] - 0.05
    assert [round(sectors(profile("naive_coalesced", tiles=tiles))) for tiles in (EVEN, SQUARE)] == [4, 5]


def test_what_a_row_inside_sectors_costs_v01():
    whole, inside = (speed("naive_coalesced", extra, tiles=FLAT) for extra in (0, 1))
    assert f"costs v01 {100 * (1 - inside / whole):.0f} %" in text_of("coalesced")
    times = speed("naive_uncoalesced", 1) / speed("naive_uncoalesced", 0)
    assert f"v00 became {times:.1f} times as fast by one float per row" in text_of("coalesced")


def test_what_limits_v01_now():
    text, row = text_of("coalesced"), profile("naive_coalesced", tiles=FLAT)
    assert (
        f"**L1, {row.l1_data:.0f} %, and close behind it the issue slots, {row.issue_slots:.0f} %.**" in text
    )
    assert per_step(row, row.warp_instructions / H200.multiprocessors) == pytest.approx(8, abs=0.3)
    replies = (ROOT / "gemm_course/widgets/questions/coalesced.toml").read_text("utf-8")
    assert "8 instructions are 2 clocks for four schedulers" in replies
    assert f"L1 finds {row.l1_hits:.0f} % of what is asked for. L2 is busy {row.l2:.0f} %." in replies
    assert f"still busy only {row.fma_pipe:.0f} %" in replies
    assert f"nearly level, {row.issue_slots:.0f} and {row.l1_data:.0f} %" in replies


def test_a_point_above_a_roof():
    text = text_of("coalesced")
    assert f"At DRAM's {H200.dram_tb_s:g} TB/s that makes {64 * H200.dram_tb_s / 160:.1f} TFLOPS" in text


def test_the_line_of_l1_and_the_roofs_by_wavefronts():
    text, floats_of_a_wavefront = text_of("coalesced"), 32
    line = ROOF / 64 * floats_of_a_wavefront * 4
    assert f'The line "L1, {line:.1f} TB/s"' in text
    for name, sectors, deliveries in (("v00", 33, 33), ("v01", 5, 2)):
        by_line, by_wavefronts = line * 64 / (32 * sectors), ROOF / deliveries
        assert re.search(f"{by_wavefronts:.2g}, not {by_line:.1f}, for {name}", text), (
            by_wavefronts,
            by_line,
        )


def test_the_costs_of_rows_with_8_floats_of_padding_and_of_a_view_of_column_3():
    assert len({row * 4104 % 32 for row in range(2)}) == 2  # places of A's two rows
    for row in range(8):
        first = 336 * row + 3
        assert (first + 31) // 8 - first // 8 + 1 == 5


def test_what_longer_rows_do_to_other_blocks():
    text = text_of("coalesced")
    four = {extra: speed("naive_uncoalesced", extra, tiles="BM=4 BN=64") for extra in (8, 16)}
    assert f"and both reach {four[8]:.1f}." in text and f"but it brings {four[16]:.1f}." in text
    assert round(16.7 / 3, 1) == 5.6 and "2 + 1 = 3, a roof of 5.6" in text
    square = speed("naive_coalesced", 8, tiles="BM=16 BN=16")
    assert f"has a roof of 8.4, and stays at {square:.1f}" in text
