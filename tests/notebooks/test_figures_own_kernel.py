"""Figures of a kernel of one's own against the records, the emulator and the compiler."""

import re

import pytest

from gemm_course import own, records
from gemm_course.compiler import compiled, recorded
from gemm_course.compiler.iteration import share_of_iteration
from gemm_course.compiler.nvidia import why_no_compiler
from gemm_course.kernels import LADDER
from gemm_course.model import GPUS, issue_ceiling, occupancy
from gemm_course.own_kernel import own_with
from gemm_course.widgets import _quiz, _tiles
from tests.notebooks.builder import source_of
from tests.own_kernel.edits import new_file

SOURCE = source_of("own_kernel")
TEXT = " ".join(SOURCE.replace("\n# ", " ").split())
BEGUN = '"BM": 128, "BN": 128, "BK": 32, "TM": 16, "TN": 4'
SHOWN = '"BM": 128, "BN": 128, "BK": 16, "TM": 16, "TN": 8'


def test_the_minutes_of_the_exercises():
    minutes = sum(map(int, re.findall(r"^# \*.* (\d+) minutes\*$", SOURCE, re.MULTILINE)))
    assert f"{minutes} for the exercises" in TEXT


def test_the_speeds_of_the_stage_that_it_begins_as():
    rows = records.ladder().query("stage == 'thread_tiled_2d' and m == 4096 and n == 4096 and k == 4096")
    assert f"measured at {rows.tflops.iloc[0]:.0f} TFLOPS" in TEXT


def test_the_speeds_under_raised_roofs():
    moves = records.one_change().query("question == 'raise the roof'").set_index("change")
    both = "16 × 8 results, and fours of B"
    order = ["fours of B", "none", both, "16 × 8 results"]
    assert list(moves.sort_values("tflops", ascending=False).index) == order
    speeds = [f"{moves.tflops[change]:.0f}" for change in order]
    told = "Fours alone are the fastest, {}. As begun it is {}, with both {}, and 16 × 8 alone is the slowest"
    assert f"{told}, {{}}.".format(*speeds) in TEXT
    assert moves.registers["none"] == 128 and moves.registers["16 × 8 results"] == 255
    assert f"With {moves.registers[both]} registers per thread" in TEXT
    assert f"of 56 TFLOPS, after 49, and {speeds[2]} TFLOPS, after {speeds[1]}" in TEXT
    assert f"the fours it reached {speeds[0]}." in TEXT


def test_the_roof_by_which_it_begins():
    loop = recorded(LADDER["thread_tiled_2d"], (9, 0)).loop
    share = loop.by_kind["multiply-add"] / sum(loop.by_kind.values())
    assert share == loop.share
    others = sum(loop.by_kind.values()) - loop.by_kind["multiply-add"]
    assert f"has {sum(loop.by_kind.values()):,} instructions, and {others} of them" in TEXT
    assert loop.by_kind["shared load"] == 160 == 5 * 32 and round(others / 160) == 5
    assert round(issue_ceiling(share)) == round(67 * share) == 49
    assert (
        "so it has the same roof: 49 TFLOPS" in TEXT and f"{GPUS['H200'].peak_fp32_tflops:.0f} TFLOPS" in TEXT
    )


def test_what_a_second_kernel_costs():
    moved = 2 * 4096**2 * 4
    assert moved == 128 * 2**20 and "reads 64 MiB and stores 64 MiB, 128 MiB in all" in TEXT
    bandwidth = GPUS["H200"].dram_tb_s
    assert f"At {bandwidth} TB/s" in TEXT
    assert f"128 MiB take {moved / bandwidth / 1e6:.0f} µs" in TEXT
    rows = records.ladder().query("stage == 'grouped_blocks' and m == 4096 and n == 4096").set_index("k")
    whole, short = rows.tflops[4096], rows.tflops[256]
    assert f"takes {2 * 4096**3 / whole / 1e9:.1f} ms at {whole:.0f} TFLOPS" in TEXT
    assert (
        f"with k = 256, at {short:.0f} TFLOPS, it takes only {2 * 4096**2 * 256 / short / 1e9:.2f} ms" in TEXT
    )


def test_the_edits_that_are_shown_are_those_that_are_tested(tmp_path):
    shown = SOURCE.split("takes four edits:")[1].split("# ```")[1].splitlines()[1:]
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
    assert "4 warps instead of 8" in TEXT


@pytest.mark.skipif(why_no_compiler() is not None, reason="needs NVIDIA's compiler")
@pytest.mark.many(one_in=3)
@pytest.mark.parametrize(
    ("tiles", "fours", "roof"),
    [(SHOWN, False, "50"), (BEGUN, True, "52.5"), (SHOWN, True, "56")],
    ids=["16 by 8", "fours", "both"],
)
def test_what_each_move_does_to_the_roof(tiles, fours, roof):
    changes = _fours() if fours else []
    mine = own_with("thread_tiled_2d", *([] if tiles == BEGUN else [(BEGUN, tiles)]), *changes)
    code = compiled(mine, compute_capability=(9, 0))
    found = issue_ceiling(share_of_iteration(code, mine, mine.tiles))
    assert f"{found:.{1 if '.' in roof else 0}f}" == roof
    assert not code.spilled_bytes
    if tiles == SHOWN and fours:
        assert f"a roof of {roof} TFLOPS, after 49" in TEXT and f"With {code.registers} registers" in TEXT
        held = occupancy(128, code.registers, 4 * 16 * 256)
        assert held.blocks * 4 == 8 and "8 warps instead of 16" in TEXT
    elif fours:
        assert f"From 49 to {roof}, and 16 × 8 only to 50" in _replies("roof")
    else:
        assert f"| 16 × 8 results | {roof} |" in TEXT and SHOWN in TEXT


def test_the_limits_of_the_loop_in_the_quiz():
    assert round(67 * 16 / 26) == 41 and round(16.7 / (8 / 16)) == 33
    assert "16.7 / 0.5" in _replies("unseen") and "16 / 26 of 67, which is 41" in _replies("unseen")


def _fours():
    """The changes of the solution that have to do with fours."""
    solution = SOURCE.split("# Four floats of B at once.")[1].split("\n)\n")[0]
    return list(eval(f"[{solution}\n]"))


def _replies(question):
    return " ".join(option["reply"] for option in _quiz.questions("own_kernel")[question]["options"])
