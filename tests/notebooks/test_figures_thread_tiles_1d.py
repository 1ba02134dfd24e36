"""Figures in the words of notebook 04 and of its side trip are those of the records."""

import csv
import inspect
import linecache
import re
from pathlib import Path

import numpy as np
import pytest
from numba import cuda, float32

from gemm_course import check, kernels, records
from gemm_course.checks.kits import make_strip
from gemm_course.compiler.compile import usage_of
from gemm_course.compiler.nvidia import why_no_compiler
from gemm_course.kernels import LADDER, tiles_text
from gemm_course.kernels.variants import called
from gemm_course.model import occupancy
from gemm_course.profiles import recorded, verdict
from gemm_course.widgets import _as_compiled, _tiles, _unrolled
from gemm_course.widgets._quiz import questions
from gemm_course.widgets._strips import KERNELS, WAIT, draw
from lockstep.intrinsics import unroll
from measuring.one_change import questions as changes
from tests.notebooks.builder import ROOT, source_of
from tests.wrong_solutions.altering import changed, solution

STAGE, TILES = LADDER["thread_tiled_1d"], {"BM": 128, "BN": 128, "BK": 8, "TM": 32}
SMALL = {"BM": 64, "BN": 64, "BK": 8, "TM": 8}
SPILLING = {"BM": 32, "BN": 64, "BK": 64}
KEPT_APART = [{"BM": 64, "BN": 64, "TM": 8, "SPARE": spare} for spare in (52, 108, 200)]
RECORDS = ROOT / "data" / "h200" / "one_change.csv"
ON_A_GPU = (9, 0)
needs_the_compiler = pytest.mark.skipif(
    why_no_compiler() is not None, reason="NVIDIA's compiler is not installed"
)


def words_of(notebook: str) -> str:
    """The text of a notebook's source on one line."""
    return re.sub(r"\s+", " ", source_of(notebook).replace("\n# ", " "))


def asked(question: str) -> str:
    return str(questions("thread_tiles_1d")[question])


def sweep() -> dict[str, float]:
    rows = records.sweep().query("stage == 'thread_tiled_1d' and m == 4096")
    return dict(zip(rows["tiles"], rows["tflops"], strict=True))


def on_the_ladder(stage: str) -> float:
    rows = records.ladder().query("m == 4096 and gpu == 'NVIDIA H200'")
    return rows.loc[rows["stage"] == stage, "tflops"].max()


def factory(source: str, name: str):
    """What this name stands for after a cell without its call of the checker."""
    text, filename = source.rpartition("\ncheck.")[0], f"<{name} {hash(source)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    names = {"cuda": cuda, "float32": float32, "unroll": unroll}
    exec(compile(text, filename, "exec"), names)
    return names[name]


# ---- the case ----------------------------------------------------------------------------------------------


def test_the_notch_that_ruins_the_best_tiles():
    said, speeds = words_of("thread_tiles_1d"), sweep()
    assert f"{len(speeds)} choices of the four were measured" in said
    assert max(speeds, key=speeds.get) == tiles_text(TILES) and STAGE.tiles == TILES
    near = {label: speeds.get(tiles_text(tiles)) for label, tiles in _tiles.one_step_away(STAGE, TILES)}
    assert None not in near.values()
    worst = min(near, key=near.get)
    assert worst == "BK 16" and f"{max(speeds.values()):.0f} TFLOPS become {near[worst]:.1f}" in said
    replies = asked("notch")
    for label in ("BM 64", "BM 256", "BN 64", "BN 256", "TM 16"):
        assert f"{near[label]:.1f}" in replies, label
    assert "nearly six times as slow" in replies and 5.7 < max(speeds.values()) / near[worst] < 6
    assert near["BK 4"] > 0.85 * max(speeds.values())  # "in one direction it costs a little"


def test_nothing_else_changes_at_the_notch_but_shared_memory():
    facts = [dict(_tiles._facts(STAGE, TILES | {"BK": BK}, False, records.SHIPPED)) for BK in (8, 16)]
    different = {name for name in facts[0] if facts[0][name] != facts[1][name]}
    assert {name.split(",")[0] for name in different} == {"shared memory per block", "measured on an H200"}
    assert all(fact["an SM holds"].startswith("2 blocks") for fact in facts)


def test_the_speeds_of_04():
    said, own, before = (
        words_of("thread_tiles_1d"),
        on_the_ladder("thread_tiled_1d"),
        on_the_ladder("penny_xu_tile"),
    )
    assert f"the tile kernel reached {before:.0f} TFLOPS on an H200" in said
    assert f"**It reached** {own:.0f} TFLOPS" in said and f"reached {before:.0f}." in said
    assert f"`thread_tiled_1d` reached {own:.0f}." in asked("ceiling")
    assert asked("notch").count(f"of {own:.0f} TFLOPS") == 3


def test_how_many_results():
    said, best = words_of("thread_tiles_1d"), {}
    for tiles, tflops in sweep().items():
        TM = int(re.search(r"TM=(\d+)", tiles)[1])
        best[TM] = max(tflops, best.get(TM, 0))
    assert f"| TM | {' | '.join(map(str, sorted(best)))} |" in said
    assert f"| TFLOPS | {' | '.join(f'{best[TM]:.2g}' for TM in sorted(best))} |" in said
    assert "**32, but 8 are nearly as good.**" in said and 0.9 < best[8] / best[32] < 1
    assert max(best, key=best.get) == 32
    assert "fill the cap of 64 registers" in said and 65536 // (2 * 512) == 64


def cases() -> dict[int, dict[str, str]]:
    """What was measured with the steps written out 1, 2, 4, 8 and 16 at a time."""
    with RECORDS.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["question"] == "steps written out"]
    return {int(row["change"].split()[0]): row for row in rows}


def test_the_evidence():
    said, rows = words_of("thread_tiles_1d"), cases()
    local = {steps: int(row["local_bytes"]) for steps, row in rows.items()}
    speed = {steps: float(row["tflops"]) for steps, row in rows.items()}
    assert (
        f"{local[16]} bytes per thread. With 8 at a time it is {local[8]}, and {speed[8]:.0f} TFLOPS" in said
    )
    assert f"the kernel that you know: {speed[16]:.1f} TFLOPS" in said
    assert f"With 2 at a time it is even {speed[2]:.0f}." in said
    assert speed[2] > max(*sweep().values(), *(speed[steps] for steps in speed if steps != 2))
    assert "for p in unroll(range(BK))" in inspect.getsource(STAGE.build)
    assert _unrolled.TILES == TILES | {"BK": 16}
    options = questions("thread_tiles_1d")["steps"]["options"]
    (right,) = (option for option in options if option.get("right"))
    assert right["text"] == f"{speed[1]:.0f}" and f"Measured: {speed[1]:.1f}." in right["reply"]
    assert 3.5 < speed[1] / speed[16] < 4 and "nearly four times as fast" in right["reply"]
    assert local[1] == local[2] == 0


def test_the_cap():
    said = words_of("thread_tiles_1d")
    assert STAGE.launch_bounds(TILES) == (512, 2) and 65536 // (2 * 512) == 64
    assert "at most 64 registers per thread, so that two blocks fit on an SM" in said
    assert {row["registers"] for row in cases().values()} == {"64"}


# ---- wavefronts and roofs ----------------------------------------------------------------------------------


def test_the_roofs_of_04():
    said, ceiling = words_of("thread_tiles_1d"), asked("ceiling")
    assert f"67 · 8 / 33 = {67 * 8 / 33:.0f}" in ceiling
    assert f"67 · 8 / 17 = {67 * 8 / 17:.0f} TFLOPS" in said
    assert f"67 / 5 = {67 / 5:.0f}" in asked("unseen")
    assert round(67 / 3) == 22 and round(67 * 4 / 5) == 54


def test_what_a_warp_reads_as_written_and_as_compiled():
    table = _as_compiled.as_compiled("thread_tiled_1d", tiles=TILES).text
    assert "as written. thread_tiled_1d (the course's): 33, of one float each" in table
    assert "as compiled. thread_tiled_1d (the course's): 9: 8 of four floats and 1 of one float" in table
    assert "as written. thread_tiled_1d (the course's): 33: 32 for As, 1 for Bs" in table
    assert "as compiled. thread_tiled_1d (the course's): 17: 16 for As, 1 for Bs" in table
    assert "counted on an H200. thread_tiled_1d (the course's): 17" in table
    said = words_of("thread_tiles_1d")
    assert "8 reads of As instead of 32" in said and "A step takes 16 + 1 wavefronts" in said


@pytest.mark.compiler
@pytest.mark.full(reason="large kernels are compiled")
@pytest.mark.parametrize(("place", "counted"), [(0, "33: 32 for As"), (1, "17: 16 for As")])
def test_one_step_at_a_time_merges_nothing_and_two_do(place, counted):
    (wanted,) = (each for question, _, each in changes() if question == "steps written out")
    stage, _, tiles = wanted[place]
    table = _as_compiled.as_compiled(stage, tiles=tiles).text
    assert f"as compiled. thread_tiled_1d (the course's): {counted}, 1 for Bs" in table


@needs_the_compiler
def test_the_registers_of_the_solution():
    said, plain = words_of("thread_tiles_1d"), solution("thread_columns")
    written_out = changed(plain, ("for p in range(BK)", "for p in unroll(range(BK))"))
    matrix = np.zeros((128, 128), np.float32)
    problem = (128, 128, 128, float32(1), matrix, matrix, float32(0), matrix)
    before, after = (
        usage_of(factory(source, "make_column")(**TILES), *problem, compute_capability=ON_A_GPU).registers
        for source in (plain, written_out)
    )
    assert (
        f"the solution takes {before} registers. With 8 steps written out it takes {after}, the most" in said
    )
    assert f"the solution took {before} registers per thread" in said
    assert f"need {512 * after:,} of them" in said
    assert not occupancy(512, after, 8192).blocks and occupancy(512, before, 8192).blocks == 1


@needs_the_compiler
def test_what_the_solution_spills_with_a_cap():
    """With 16 steps written out some five times as much as with 2, where the course's kernel spills none."""
    steps = (
        ("@cuda.jit\n", "@cuda.jit(max_registers=64)\n"),
        (
            "            for p in range(BK):",
            "            for q in range(0, BK, STEPS):\n             for s in unroll(range(STEPS)):",
        ),
        ("                b = Bs[p, tx]", "                p = q + s\n                b = Bs[p, tx]"),
    )
    matrix = np.zeros((128, 128), np.float32)
    problem = (128, 128, 128, float32(1), matrix, matrix, float32(0), matrix)
    few, many = (
        usage_of(
            factory(changed(solution("thread_columns"), *steps, ("STEPS", str(count))), "make_column")(
                **{**TILES, "BK": 16}
            ),
            *problem,
            compute_capability=ON_A_GPU,
        ).spilled_bytes
        for count in (2, 16)
    )
    assert "your kernel spills a little even with 2" in words_of("thread_tiles_1d")
    assert few == pytest.approx(200, abs=30)
    assert many > 4 * few


# ---- the second exercise, profiles, the quiz ---------------------------------------------------------------


def strip(source: str, R: int):
    x, A, y = (np.zeros(shape, np.float32) for shape in (8, (8, 500), 500))
    return usage_of(factory(source, "make_strip")(R), 500, 8, x, A, y, compute_capability=ON_A_GPU)


@needs_the_compiler
def test_the_strip_as_handed_out_has_registers_left():
    used = strip("".join(inspect.getsourcelines(make_strip)[0]) + "\ncheck.", 16)
    assert f"It takes {used.registers} registers." in words_of("thread_tiles_1d")
    assert used.local_bytes and not used.spilled_bytes


@needs_the_compiler
def test_a_loop_that_is_too_long_is_not_written_out():
    used, question = strip(solution("in_registers"), 128), questions("thread_tiles_1d")["long"]
    assert f"{used.registers} registers and {used.local_bytes} bytes of local memory" in question["text"]
    assert not used.spilled_bytes and f"leaves {255 - used.registers} free" in str(question)


def test_the_three_profiles_to_name():
    said = words_of("thread_tiles_1d")
    profiles = (
        recorded("thread_tiled_1d", TILES),
        recorded("thread_tiled_1d", SPILLING),
        recorded("penny_xu_tile"),
    )
    found = [verdict(profile).busy for profile in profiles]
    for part in ("L1 and shared memory", "multiply-add units", "L2", "DRAM"):
        figures = " | ".join(f"{100 * each[part]:.0f}" for each in found)
        assert f"| {part} | {figures} |" in said
    sizes = [tiles["BM"] * tiles["BN"] for tiles in (SPILLING, TILES)]
    assert sizes[0] < sizes[1] and "with BK = 64 and smaller blocks" in said
    row = profiles[1].measured
    assert (row["local_load_requests"] + row["local_store_requests"]) / row["warp_instructions"] > 0.3
    assert max(found[0], key=found[0].get) == "L1 and shared memory"


def test_nearly_all_wavefronts_left_are_reads_of_as():
    row = recorded("thread_tiled_1d", TILES).measured
    per_multiply_add = row["shared_load_wavefronts"] / (row["float32_fma"] / 32)
    assert per_multiply_add == 1 / 2 + 1 / 32
    assert "half a wavefront for each multiply-add" in words_of("thread_tiles_1d")
    assert row["shared_load_wavefronts"] / row["shared_wavefronts"] > 0.9


# ---- the side trip -----------------------------------------------------------------------------------------


def test_what_a_full_request_of_the_small_tiles_moves():
    assert check.tile_sectors.right(8) == 4 and "With BK = 8 nothing is wasted" in words_of(
        "warps_in_waiting"
    )


def test_four_two_and_one_block():
    said = words_of("warps_in_waiting")
    profiles = [recorded(called("thread_tiled_1d_fewer_blocks"), tiles) for tiles in KEPT_APART]
    assert [round(profile.measured["warps_active"] / 4) for profile in profiles] == [4, 2, 1]  # blocks
    four, two, one = (profile.tflops for profile in profiles)
    assert f"| TFLOPS | {four:.0f} | {two:.0f} | {one:.1f} |" in said
    issued = [f"{100 * verdict(profile).busy['issue slots']:.0f}" for profile in profiles]
    assert f"| clocks in which an instruction is issued, % | {' | '.join(issued)} |" in said
    waiting = " | ".join(f"{100 * profile.waits['global memory']:.0f}" for profile in profiles)
    assert f"| a warp waits for global memory, % of its time | {waiting} |" in said
    assert f"46 % of the time, and measured are {issued[2]} %" in said
    question = questions("thread_tiles_1d")["blocks"]
    assert f"reaches {four:.0f} TFLOPS" in question["text"]
    offered = [option["text"].split(" TFLOPS")[0] for option in question["options"]]
    assert offered == [f"{four / 4:.1f}", f"{one:.1f}", f"{two:.0f}", f"{four:.0f}"]
    assert question["options"][1]["right"]


def test_the_model():
    titles = {registers: draw("thread_tiled_1d", registers).alt for registers in (96, 64, 40)}
    assert "1 block fits" in titles[96] and "3 blocks fit" in titles[40] and "100 % of the" in titles[40]
    assert "2 blocks fit" in titles[64] and "100\u00a0% of" not in titles[64]
    kernel, said = KERNELS["thread_tiled_1d"], words_of("warps_in_waiting")
    computes = kernel.warps * kernel.loop
    assert kernel.tiles == SMALL and f"a tile takes {WAIT} clocks to come" in said
    assert f"has {kernel.warps} warps of a block, with {kernel.loop} instructions each" in said
    assert f"a block computes for {computes} clocks" in said
    period = WAIT + computes
    assert f"The {WAIT} + {computes} clocks of one block" in said
    assert f"{period:,} / {computes} = {period / computes:.1f}" in said
    assert f"keeps a scheduler busy {100 * computes / period:.0f} % of the time" in said


def test_caps_and_blocks():
    said = words_of("warps_in_waiting")
    notes = (Path(kernels.__file__).parent / "NOTES.md").read_text(encoding="utf-8")
    row = re.search(r"64 × 64 × 8, TM 8 \| 96 / 64 / 40 / 32 \| (.*) \|", notes)[1]
    forty, thirty_two = (float(part.split()[0]) for part in row.split(" / ")[2:])
    assert f"With 40 registers this kernel reached {forty:.0f} % of cuBLAS's speed" in said
    assert f"with 32 it reached {thirty_two:.0f} %" in said
    assert {each: occupancy(512, each, 4096).blocks for each in (32, 33, 40, 64)} == {
        32: 4,
        33: 3,
        40: 3,
        64: 2,
    }
    assert STAGE.launch_bounds(SMALL) == (512, 4)


def test_more_warps_and_slower():
    said, speeds = words_of("warps_in_waiting"), sweep()
    large, small = speeds[tiles_text(TILES)], speeds[tiles_text(SMALL)]
    assert f"{large:.0f} TFLOPS instead of {small:.0f}" in said
    assert f"The speeds differ by {large / small:.2f} only" in said
    assert f"{(1 / 2 + 1 / 8) / (1 / 2 + 1 / 32):.2f} times as many" in said
    profiles = (
        recorded("thread_tiled_1d", TILES),
        recorded(called("thread_tiled_1d_fewer_blocks"), KEPT_APART[0]),
    )
    busy = [100 * verdict(profile).busy["L1 and shared memory"] for profile in profiles]
    assert f"{busy[0]:.0f} and {busy[1]:.0f} % of the clocks" in said
    held = [occupancy(512, registers, 4096).warps for registers in (64, 32)]
    assert "{} warps instead of {}".format(*held) in said


@pytest.mark.parametrize("notebook", ["thread_tiles_1d", "warps_in_waiting"])
def test_the_minutes_of_the_exercises(notebook):
    text = source_of(notebook)
    minutes = sum(map(int, re.findall(r"^# \*.* (\d+) minutes\*$", text, re.MULTILINE)))
    assert f"{minutes} for the exercises" in words_of(notebook)
