"""Figures of notebook 12's second half, a kernel of one's own, against the records."""

from pathlib import Path

from gemm_course import records
from gemm_course.compiler import recorded
from gemm_course.kernels import LADDER
from gemm_course.model import GPUS, issue_ceiling

SOURCE = Path(__file__).parents[2] / "notebooks" / "source" / "12_last_per_cent.py"
TEXT = " ".join(SOURCE.read_text(encoding="utf-8").replace("\n# ", " ").split())


def test_what_limits_the_stage_that_it_begins_as():
    share = recorded(LADDER["thread_tiled_2d"], (9, 0)).loop.share
    assert f"{share:.0%}".replace("%", " %") + " of the loop's instructions are multiply-adds" in TEXT
    assert f"{issue_ceiling(share):.1f} TFLOPS at most" in TEXT


def test_what_a_second_kernel_costs():
    moved = 2 * 4096**2 * 4
    assert moved == 128 * 2**20 and "reads 64 MiB and stores 64 MiB" in TEXT
    bandwidth = GPUS["H200"].dram_tb_s
    assert f"At {bandwidth} TB/s" in TEXT
    assert f"at least {moved / bandwidth / 1e6:.0f} µs" in TEXT
    rows = records.ladder().query("stage == 'grouped_blocks' and m == 4096 and n == 4096 and k == 4096")
    speed = round(float(rows["tflops"].iloc[-1]))
    assert f"takes {2 * 4096**3 / speed / 1e9:.1f} ms at {speed} TFLOPS" in TEXT
    assert f"with k = 64 only {2 * 4096**2 * 64 / speed / 1e6:.0f} µs" in TEXT
