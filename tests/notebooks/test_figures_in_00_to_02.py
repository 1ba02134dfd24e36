"""Figures in the text of notebooks 00 to 02, held to the records and tables that they come from."""

import re
from pathlib import Path

import pytest

from gemm_course import records
from gemm_course.emulator.limits import LIMITS
from gemm_course.kernels import LADDER
from gemm_course.model.gpus import GPUS
from gemm_course.model.roofline import Roofline

SOURCES = Path(__file__).parents[2] / "notebooks" / "source"
H200 = GPUS["H200"]


def text_of(number: str) -> str:
    """A notebook's text and code in one line, without the marks of comments."""
    (path,) = SOURCES.glob(f"{number}_*.py")
    return " ".join(re.sub(r"^# ?", "", line) for line in path.read_text("utf-8").splitlines())


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
    ridge = Roofline().ridge()
    assert f"some {ridge:.0f} FLOP per byte, so from n = {6 * ridge:.0f} on" in text
    assert H200.dram_tb_s / 12 / H200.peak_fp32_tflops == pytest.approx(0.006, abs=5e-4)


def test_what_00_says_of_schedulers_holds_for_every_gpu():
    assert {limits.threads // 32 // limits.partitions for limits in LIMITS.values()} == {8, 12, 16}
    assert "up to 16 warps" in text_of("00") and "room for 8 or 12" in text_of("00")
    assert f"up to {H200.multiprocessors * H200.limits.threads:,}".replace(",", " ") in text_of("00")


def test_the_naive_kernel_reads_a_and_b_from_dram_once():
    read = counted("naive_uncoalesced").dram_read_bytes
    assert read == pytest.approx(2 * 4 * 1024**2, rel=0.01)
    assert f"{read / 1e6:.1f} MB for n = 1024" in text_of("00")
    moved = read + 4 * 1024**2
    assert 2 * 1024**3 / moved > Roofline().ridge()
