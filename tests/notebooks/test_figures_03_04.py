"""Figures in the words of notebook 04 are those of the profiles and of the sweep."""

import inspect
import linecache
import re
import runpy
from pathlib import Path
from textwrap import indent

import numpy as np
import pytest
from numba import cuda, float32

from gemm_course import check, compiled, kernels, records, road
from gemm_course.checks.kits import make_strip
from gemm_course.compiler.compile import usage_of
from gemm_course.compiler.nvidia import why_no_compiler
from gemm_course.kernels import LADDER, tiles_text
from gemm_course.kernels.variants import called
from gemm_course.model import occupancy
from gemm_course.profiles import recorded, verdict
from gemm_course.profiles.words import percent, three_digits
from gemm_course.widgets._costs import cost
from gemm_course.widgets._quiz import questions
from gemm_course.widgets._strips import KERNELS, WAIT, draw
from gemm_course.widgets._tiles import one_step_away
from lockstep.intrinsics import u32, unroll
from tests.notebooks.builder import source_of
from tests.wrong_solutions.altering import solution

SQUARE_MATRIX = np.zeros((64, 64), np.float32)
PROBLEM = (64, 64, 64, float32(1), SQUARE_MATRIX, SQUARE_MATRIX, float32(0), SQUARE_MATRIX)
SQUARE = {"BM": 32, "BN": 32}


def words_of(notebook: str) -> str:
    """The text of a notebook's source on one line."""
    return re.sub(r"\s+", " ", source_of(notebook).replace("\n# ", " "))


def factory(source: str, name: str):
    """What this name stands for after a cell without its call of the checker."""
    text, filename = source.rpartition("\ncheck.")[0], f"<{name} {hash(source)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    names = {"cuda": cuda, "float32": float32, "u32": u32, "unroll": unroll}
    exec(compile(text, filename, "exec"), names)
    return names[name]


def busy(stage: str) -> str:
    return percent(verdict(recorded(stage)).busy["L1 and shared memory"])


STEP = ("block_tiled", "thread_tiled_1d")
KEPT_APART = [{"BM": 64, "BN": 64, "TM": 8, "SPARE": spare} for spare in (52, 108, 200)]


def test_what_04_says_of_the_limit():
    said, found = words_of("thread_tiles_1d"), verdict(recorded("thread_tiled_1d"))
    assert f"busy in {busy('block_tiled')} of the clocks. An SM can do four" in said
    slots = percent(found.busy["issue slots"])
    assert f"**Still L1 and shared memory**, busy in {busy('thread_tiled_1d')} of the clocks; " in said
    assert f"issue slots, the next, in {slots}." in said


SPILLING = {"BM": 32, "BN": 64, "BK": 64}


def test_the_three_profiles_to_name_in_04():
    said = words_of("thread_tiles_1d")
    profiles = recorded("thread_tiled_1d"), recorded("thread_tiled_1d", SPILLING), recorded("block_tiled")
    found = [verdict(profile).busy for profile in profiles]
    for part in ("L1 and shared memory", "multiply-add units", "L2", "DRAM"):
        figures = " | ".join(f"{100 * each[part]:.0f}" for each in found)
        assert f"| {part} | {figures} |" in said


def test_what_04_says_of_the_profile_that_spills():
    said, row = words_of("thread_tiles_1d"), recorded("thread_tiled_1d", SPILLING).measured
    local = row["local_load_requests"] + row["local_store_requests"]
    assert "BM = 32, BN = 64, BK = 64, TM = 32. Of its" in said
    assert f"instructions {percent(local / row['warp_instructions'])} read or write local memory" in said


def test_what_04_says_of_the_notch_that_ruins_it():
    """Of all steps of one slider it is the worst."""
    said, stage = words_of("thread_tiles_1d"), LADDER["thread_tiled_1d"]
    rows = records.sweep().query("stage == 'thread_tiled_1d' and m == 4096")
    assert f"Of {len(rows)} choices for v03" in said
    speeds = rows.set_index("tiles")["tflops"]
    assert speeds.idxmax() == tiles_text(stage.tiles)
    near = {label: speeds.get(tiles_text(tiles)) for label, tiles in one_step_away(stage, stage.tiles)}
    worst = min((label for label in near if near[label] is not None), key=near.get)
    assert worst == "BK 16"
    assert f"{speeds.max():.1f} TFLOPS become {near[worst]:.1f}." in said


@pytest.mark.skipif(why_no_compiler() is not None, reason="NVIDIA's compiler is not installed")
def test_what_04_says_of_eight_steps_at_a_time(tmp_path):
    """The stage with one thing changed: of 16 steps 8 are written out at a time."""
    steps, more = (
        "for p in unroll(range(BK)):\n",
        "for q in range(0, BK, 8):\n                for s in unroll(range(8)):\n"
        "                    p = q + s\n",
    )
    source = Path(kernels.__file__).with_name("a05_thread_tiled_1d.py").read_text(encoding="utf-8")
    products = source[source.index(steps) :].split("            cuda.syncthreads()")[0]
    inner = indent(products.removeprefix(steps), "    ")
    path = tmp_path / "eight.py"
    path.write_text(source.replace(products, more + inner), encoding="utf-8")
    stage = runpy.run_path(str(path))["STAGE"]
    tiles = {"BM": 128, "BN": 128, "BK": 16, "TM": 32}
    code = usage_of(stage.kernel(tiles), *PROBLEM, compute_capability=(9, 0))
    rows = records.sweep().query("stage == 'thread_tiled_1d'").set_index("tiles")["local_bytes"]
    spilled = rows["BM=128 BN=128 BK=16 TM=32"]
    assert f"and {spilled} bytes become {code.local_bytes} again" in words_of("thread_tiles_1d")


@pytest.mark.skipif(why_no_compiler() is not None, reason="NVIDIA's compiler is not installed")
def test_what_04_says_of_the_solutions_registers():
    plain = solution("thread_columns")
    narrow = re.sub(r"(cuda\.(?:threadIdx|blockIdx)\.[xy])", r"u32(\1)", plain)
    said = words_of("thread_tiles_1d")
    for source, words in (
        (plain, f"solution of {road.number_of('thread_columns')} takes {{}} registers"),
        (narrow, "as in v03, the solution takes {}: still one block."),
    ):
        made = factory(source, "make_column")
        used = usage_of(made(64, 64, 8, 8), *PROBLEM, compute_capability=(9, 0))
        assert words.format(used.registers) in said and not used.local_bytes


@pytest.mark.skipif(why_no_compiler() is not None, reason="NVIDIA's compiler is not installed")
def test_what_04_says_of_a_cap_for_the_solution():
    plain = solution("thread_columns").replace("@cuda.jit\n", "@cuda.jit(max_registers=32)\n")
    narrow = re.sub(r"(cuda\.(?:threadIdx|blockIdx)\.[xy])", r"u32(\1)", plain)
    kernels = [factory(source, "make_column")(64, 64, 8, 8) for source in (plain, narrow)]
    plain_spills, narrow_spills = (
        usage_of(kernel, *PROBLEM, compute_capability=(9, 0)).local_bytes for kernel in kernels
    )
    said = words_of("thread_tiles_1d")
    assert f"{plain_spills} bytes of local memory, with `u32` {narrow_spills} (compiled)" in said
    assert occupancy(512, 68, 4096).blocks == 1 and occupancy(512, 32, 4096).blocks == 4
    small = records.sweep().query("stage == 'thread_tiled_1d' and tiles == 'BM=64 BN=64 BK=8 TM=8'")
    assert set(small["local_bytes"]) == {0} and "v03 needs none" in said


@pytest.mark.skipif(why_no_compiler() is not None, reason="NVIDIA's compiler is not installed")
def test_the_line_that_04_names_is_the_one_to_change():
    """The loop around it alone keeps `acc` out of the registers."""
    lines, start = inspect.getsourcelines(make_strip)
    (loop,) = (i for i, line in enumerate(lines) if "range(count)" in line and "acc" in lines[i + 1][:24])
    assert f"Line {start + loop}: its loop is the one around line {start + loop + 1}" in words_of(
        "thread_tiles_1d"
    )
    adds = "                acc[i] += xp * A[p, first + 32 * i]\n"
    guarded = f"                if first + 32 * i < n:\n    {adds}"
    source = "".join([*lines, "\ncheck."]).replace(f"in range(count):\n{adds}", f"in range(R):\n{guarded}")
    assert "in range(R):\n                if" in source
    x, A, y = (np.zeros(shape, np.float32) for shape in (8, (8, 500), 500))
    used = usage_of(factory(source, "make_strip")(16), 500, 8, x, A, y, compute_capability=(9, 0))
    assert not used.local_bytes


def test_what_04_says_of_the_sectors_of_a_shallow_tile():
    stage = LADDER["thread_tiled_1d"]
    sectors = cost(stage, {**stage.tiles, "BK": 4}).sectors
    rows = {"A": check.tile_sectors.right(4), "B": 4}
    assert sectors == sum(rows.values()) / 2
    assert f"{sectors:g} with BK = 4, from {rows['A']} and {rows['B']}" in words_of("thread_tiles_1d")


def test_what_04_says_of_more_warps():
    said = words_of("thread_tiles_1d")
    rows = records.sweep().query("stage == 'thread_tiled_1d'").set_index("tiles")["tflops"]
    best, smaller = rows.max(), rows["BM=64 BN=64 BK=8 TM=8"]
    assert f"{three_digits(best)} TFLOPS to {three_digits(smaller)}. Why?" in said
    assert f"The speeds differ by {best / smaller:.2f} only" in said
    assert f"½ + 1/8, {(1 / 2 + 1 / 8) / (1 / 2 + 1 / 32):.2f} times as many" in said
    profiles = recorded("thread_tiled_1d"), recorded(called("thread_tiled_1d_fewer_blocks"), KEPT_APART[0])
    large, small = (100 * verdict(profile).busy["L1 and shared memory"] for profile in profiles)
    assert f"busy in {large:.0f} and {small:.0f} % of the clocks" in said


def test_what_04_says_of_fewer_blocks():
    said = words_of("thread_tiles_1d")
    profiles = [recorded(called("thread_tiled_1d_fewer_blocks"), tiles) for tiles in KEPT_APART]
    speeds = " | ".join(f"{profile.tflops:.1f}" for profile in profiles)
    assert f"| TFLOPS | {speeds} |" in said
    assert [round(profile.measured["warps_active"] / 4) for profile in profiles] == [4, 2, 1]  # blocks
    waiting = " | ".join(f"{100 * profile.waits['global memory']:.0f}" for profile in profiles)
    assert f"waits for loads from global memory, % of its time | {waiting} |" in said
    issued = [f"{100 * verdict(profile).busy['issue slots']:.0f}" for profile in profiles]
    assert f"| clocks in which an instruction is issued, % | {' | '.join(issued)} |" in said
    assert f"measured are {issued[2]} %; even four blocks issued in {issued[0]} % of the clocks only" in said
    assert max(profile.measured["dram"] for profile in profiles) < 5
    question, (one, four) = questions("thread_tiles_1d")["blocks"], (profiles[2].tflops, profiles[0].tflops)
    assert f"it reaches {four:.1f} TFLOPS" in question["text"]
    offered = [option["text"] for option in question["options"]]
    assert offered[:3] == [f"{tflops:.1f} TFLOPS" for tflops in (four / 4, one, four)]
    assert question["options"][1]["right"]


def test_the_cap_that_is_too_low_in_04_is_that_of_the_notes():
    notes = (Path(kernels.__file__).parent / "NOTES.md").read_text(encoding="utf-8")
    assert "spills 272 bytes at 32 registers and falls to 8.4 %" in notes
    assert "32 registers spill 272 bytes, and 8 % of cuBLAS is left" in words_of("thread_tiles_1d")


def test_what_the_step_to_04_gains():
    question = questions("thread_tiles_1d")["gain"]
    (reply,) = (option["reply"] for option in question["options"] if "right" in option)
    ladder = records.ladder().query("m == 4096 and gpu == 'NVIDIA H200'")
    before, after = (ladder.loc[ladder["stage"] == stage, "tflops"].max() for stage in STEP)
    assert f"Measured: {three_digits(after / before)} times" in reply
    replies = " ".join(option["reply"] for option in question["options"])
    assert f"2 over 33/32 is {2 / (33 / 32):.2f}" in replies
    assert f"1.5 over 1/2 + 1/32 is {1.5 / (1 / 2 + 1 / 32):.1f}" in replies


@pytest.mark.full(reason="large kernels are compiled")
@pytest.mark.skipif(why_no_compiler() is not None, reason="NVIDIA's compiler is not installed")
def test_what_04_says_of_merging_in_the_solution():
    plain, tiles = solution("thread_columns"), {"BM": 64, "BN": 64, "BK": 8, "TM": 8}
    written_out = plain.replace("for p in range(BK)", "for p in unroll(range(BK))")
    stage = compiled("thread_tiled_1d", tiles=tiles).loop.by_kind
    counts = []
    for source in (plain, written_out):
        loop = compiled(factory(source, "make_column")(**tiles), *PROBLEM).loop.by_kind
        counts.append(1000 * loop["shared load"] / loop["multiply-add"])
    assert counts[1] == 1000 * stage["shared load"] / stage["multiply-add"]
    before, after = (f"{count:,.0f}" for count in counts)
    assert f"{before} reads per 1,000 multiply-adds become {after}, as in v03" in words_of("thread_tiles_1d")


def test_what_04_says_of_the_blocks_that_close_the_gap():
    titles = {registers: draw("thread_tiled_1d", registers).alt for registers in (96, 64, 40)}
    assert "1 block fits" in titles[96] and "3 blocks fit" in titles[40] and "100 % of the" in titles[40]
    assert "2 blocks fit" in titles[64] and "100\u00a0% of" not in titles[64]
    said, computes = (
        words_of("thread_tiles_1d"),
        KERNELS["thread_tiled_1d"].warps * KERNELS["thread_tiled_1d"].loop,
    )
    assert f"a tile takes {WAIT} clocks to come" in said and f"computes for {computes} clocks;" in said
    kernel = KERNELS["thread_tiled_1d"]
    assert f"has {kernel.warps} warps of a block, with {kernel.loop} instructions each" in said
    assert f"one block is busy {100 * computes / (WAIT + computes):.0f} % of the time" in said
    period = WAIT + computes
    assert (
        f"{WAIT} + {computes} clocks" in said and f"{period:,} / {computes} = {period / computes:.1f}" in said
    )


def test_what_04_says_of_the_cap():
    notes = (Path(kernels.__file__).parent / "NOTES.md").read_text(encoding="utf-8")
    row = re.search(r"64 × 64 × 8, TM 8 \| 96 / 64 / 40 / 32 \| (.*) \|", notes)[1]
    forty, thirty_two = (float(part.split()[0]) for part in row.split(" / ")[2:])
    assert f"{forty:.0f} % of cuBLAS with 40 registers, **{thirty_two:.0f} %** with 32" in words_of(
        "thread_tiles_1d"
    )
    fit = {each: occupancy(512, each, 4096).blocks for each in (32, 33, 64)}
    assert fit == {32: 4, 33: 3, 64: 2}


def test_the_ceiling_in_04():
    ceiling, stage = 67 / 4 / (1 / 2 + 1 / 32), recorded("thread_tiled_1d")
    reached = f"v03 reaches {stage.tflops:.1f}, {100 * stage.tflops / ceiling:.0f} % of it"
    assert f"{ceiling:.1f} TFLOPS. {reached}." in words_of("thread_tiles_1d")


SMS_OF_AN_H200 = 132


def test_what_keeps_l1_busy_in_04():
    """In clocks in which an SM has work, with a wavefront for each request of global and local memory."""
    profile = recorded("thread_tiled_1d")
    row = profile.measured
    clocks = SMS_OF_AN_H200 * row["active_clocks"]
    counted = (
        row["shared_load_wavefronts"],
        row["shared_store_wavefronts"],
        row["global_load_requests"],
        row["local_load_requests"] + row["local_store_requests"],
    )
    rest = verdict(profile).busy["L1 and shared memory"] - sum(counted) / clocks
    shares = " | ".join(f"{100 * share:.0f} %" for share in (*(each / clocks for each in counted), rest))
    said = words_of("thread_tiles_1d")
    assert f"| {shares} |" in said and f"What the last {100 * rest:.0f} % are is not known" in said
    assert f"{percent(row['active_clocks'] / row['clocks'])} of the launch" in said
    multiply_adds = row["float32_fma"] / 32 / 4 / clocks
    assert f"Multiply-adds alone are {percent(multiply_adds)}" in said


def test_the_minutes_of_the_exercises_in_04():
    text = source_of("thread_tiles_1d")
    minutes = sum(map(int, re.findall(r"^# \*.* (\d+) minutes\*$", text, re.MULTILINE)))
    assert f"{minutes} for the exercises" in text
