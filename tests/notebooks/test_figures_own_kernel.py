"""Figures of a kernel of one's own against the records."""

import pytest

from gemm_course import own, records
from gemm_course.compiler import recorded
from gemm_course.kernels import LADDER
from gemm_course.model import GPUS, issue_ceiling
from gemm_course.widgets import _tiles
from tests.notebooks.builder import source_of
from tests.own_kernel.edits import new_file

TEXT = " ".join(source_of("last_per_cent").replace("\n# ", " ").split())


def test_what_limits_the_stage_that_it_begins_as():
    share = recorded(LADDER["thread_tiled_2d"], (9, 0)).loop.share
    assert f"{share:.0%}".replace("%", " %") + " of the loop's instructions are multiply-adds" in TEXT
    assert f"{issue_ceiling(share):.1f} TFLOPS at most" in TEXT


def test_what_a_second_kernel_costs():
    moved = 2 * 4096**2 * 4
    assert moved == 128 * 2**20 and "reads 64 MiB and stores 64 MiB" in TEXT
    bandwidth = GPUS["H200"].dram_tb_s
    assert f"At {bandwidth} TB/s" in TEXT
    assert f"they take {moved / bandwidth / 1e6:.0f} µs" in TEXT
    rows = records.ladder().query("stage == 'grouped_blocks' and m == 4096 and n == 4096").set_index("k")
    whole, short = rows.tflops[4096], rows.tflops[256]
    assert f"takes {2 * 4096**3 / whole / 1e9:.1f} ms at {whole:.0f} TFLOPS" in TEXT
    assert f"with k = 256, at {short:.0f} TFLOPS, only {2 * 4096**2 * 256 / short / 1e9:.2f} ms" in TEXT


def test_the_edits_that_are_shown_are_those_that_are_tested(tmp_path):
    shown = source_of("last_per_cent").split("takes four edits:")[1].split("# ```")[1].splitlines()[1:]
    edited = new_file(tmp_path, "three_fused").read_text(encoding="utf-8").splitlines()
    lines = [line.removeprefix("# ") for line in shown if not line.startswith("# # ")]
    assert len(lines) == 6 and set(lines) <= set(edited)


@pytest.mark.many(one_in=3)
@pytest.mark.parametrize(("sizes", "reads"), [((16, 4), 0.31), ((16, 8), 0.19), ((8, 16), 0.19)])
def test_the_choice_that_reads_shared_memory_least_often(tmp_path, sizes, reads):
    mine = own(new_file(tmp_path, "mine"))
    few = [c for c in mine.legal_choices() if {**mine.tiles, "TM": c["TM"], "TN": c["TN"]} == c]
    assert min(1 / c["TM"] + 1 / c["TN"] for c in few) == 1 / 16 + 1 / 8
    assert round(1 / sizes[0] + 1 / sizes[1], 2) == reads and f"{reads}" in TEXT
    alt = _tiles.choice(mine, dict(zip(("TM", "TN"), sizes))).alt
    assert f"{128 * 128 // (sizes[0] * sizes[1]) // 32} warps" in alt
