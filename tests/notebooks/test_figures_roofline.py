"""Figures in the words of the side trip from notebook 00, held to the records."""

import re

import pytest

from gemm_course import records
from gemm_course.model.gpus import GPUS
from gemm_course.model.roofline import Roofline
from gemm_course.profiles import recorded
from gemm_course.profiles.verdict import of_active_clocks
from gemm_course.widgets import _quiz
from tests.notebooks.builder import source_of

H200 = GPUS["H200"]
TEXT = re.sub(r"\s+", " ", source_of("roofline").replace("\n# ", " "))


def asked(question: str) -> str:
    return str(_quiz.questions("welcome")[question])


def profile(stage: str):
    rows = records.profiles().set_index(["stage", "m", "tiles"])
    return rows.loc[(stage, 4096, "BM=32 BN=32")]


def test_the_two_speeds_of_the_data_sheet():
    assert f"says **{H200.peak_fp32_tflops:.0f} TFLOPS**" in TEXT
    assert f"**{H200.dram_tb_s:g} TB per second** from DRAM" in TEXT
    product = f"{H200.multiprocessors} * 4 * 32 * 2 * {H200.clock_mhz / 1000:g}e9 / 1e12"
    assert product in TEXT and round(eval(product)) == 67 and H200.limits.partitions == 4
    assert "(66.9, not rounded)" in TEXT and f"{H200.peak_fp32_tflops:.1f}" == "66.9"


def test_the_two_speeds_as_measured():
    dram = records.roofs().set_index("memory").loc["DRAM", "tb_s"]
    fp32 = records.compute_roofs().set_index("unit").loc["FP32", "tflops"]
    assert f"came close to both speeds: {fp32:.0f} TFLOPS, and {dram:.1f} TB per second" in TEXT


def test_where_the_roofs_meet():
    ridge = Roofline().ridge()
    assert f"some {ridge:.0f} FLOP per byte: n / 6 = {ridge:.0f}, so from n = {6 * ridge:.0f} on" in TEXT
    assert "Between 64 and 128" in TEXT and 64 < 6 * ridge < 128
    assert f"below {ridge:.0f} FLOP per byte" in TEXT and f"to the right of {ridge:.0f}" in TEXT


def test_the_two_vectors_and_the_kernel_at_9_tflops():
    most = H200.dram_tb_s / 12
    assert f"at most {most:.1f} TFLOPS" in asked("intensity")
    assert f"'{100 * most / 67:.1f} %', 'right': True" in asked("intensity")
    for intensity in (1, 2, 4):
        assert f"{intensity * H200.dram_tb_s:.1f}" in asked("twice")


def test_a_point_above_a_roof():
    assert (1 + 4) * 32 == 160 and "1 + 4 = 5 sectors, 160 bytes" in TEXT
    assert f"that makes {64 * H200.dram_tb_s / 160:.1f} TFLOPS" in TEXT
    rows = records.ladder().query("stage == 'naive_coalesced' and m == n == k == 4096")
    assert f"But it reaches {rows['tflops'].max():.1f}." in TEXT
    assert f"reach {rows['tflops'].max():.1f} TFLOPS" in asked("above")
    busy = recorded("naive_coalesced", {"BM": 2, "BN": 128})
    assert busy is not None
    row = records.profiles().set_index(["stage", "m", "tiles"]).loc[("naive_coalesced", 4096, "BM=2 BN=128")]
    assert f"it is busy {100 * of_active_clocks(row, 'dram'):.0f} % of the time" in asked("above")


def test_the_naive_kernel_waits_for_l1_and_not_for_dram():
    row = profile("naive_uncoalesced")
    intensity = 2 * 4096**3 / (row.dram_read_bytes + row.dram_write_bytes)
    assert f"does {intensity:.0f} FLOP for each byte from and to DRAM" in TEXT
    assert intensity > Roofline().ridge()
    dram, l1 = (100 * of_active_clocks(row, what) for what in ("dram", "l1_data"))
    assert f"DRAM is busy {dram:.0f} % of the time, L1 {l1:.0f} %" in TEXT
    rows = records.ladder().query("stage == 'naive_uncoalesced' and m == n == k == 4096")
    assert rows["tflops"].max() / H200.peak_fp32_tflops == pytest.approx(0.0075, abs=0.0025)
    assert "less than one percent of it" in TEXT
