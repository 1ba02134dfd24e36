"""Figures in the words of notebook 05 and of its side trip are those of the records."""

import csv
import linecache
import re
from collections import Counter
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest
from numba import cuda, float32

from gemm_course import compiled, records
from gemm_course.checks.kits import make_fetch
from gemm_course.figures.wavefronts import served
from gemm_course.kernels import LADDER
from gemm_course.kernels.parts.base import Stage
from gemm_course.kernels.variants import kernel5_spread
from gemm_course.model.occupancy import occupancy
from gemm_course.model.requests import Request
from gemm_course.profiles import recorded, verdict
from gemm_course.profiles.words import percent
from gemm_course.widgets import _measured as sweep
from gemm_course.widgets import _quiz, _tile_banks, _turns
from lockstep import emulate
from lockstep.intrinsics import unroll
from tests.checks.cells import verdict_of
from tests.notebooks.builder import ROOT, source_of
from tests.wrong_solutions.altering import changed, solution

RECORDS = ROOT / "data" / "h200" / "one_change.csv"
WAVEFRONTS = ROOT / "lockstep" / "recorded" / "shared_memory_wavefronts.csv"
DOCUMENT = {"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8}
SQUARE, TALL = recorded("thread_tiled_2d", DOCUMENT), recorded("thread_tiled_2d", {"BK": 16})
# The multiply-adds of a warp and step take so many clocks, as four warps of an SM issue at once.
CLOCKS = 8 * 8 / 4


def words_of(notebook: str) -> str:
    """The text of a notebook's source on one line."""
    return re.sub(r"\s+", " ", source_of(notebook).replace("\n# ", " "))


def asked(question: str) -> str:
    return str(_quiz.questions("thread_tiles_2d")[question])


def changed_in(question: str) -> list[float]:
    """The TFLOPS of the kernels of a question, in order."""
    with RECORDS.open(encoding="utf-8") as file:
        return [float(row["tflops"]) for row in csv.DictReader(file) if row["question"] == question]


def test_the_speeds_of_05():
    said, column = (
        words_of("thread_tiles_2d"),
        sweep.speed(LADDER["thread_tiled_1d"], LADDER["thread_tiled_1d"].tiles),
    )
    assert f"{column:.0f} TFLOPS on an H200" in said and f"reached {column:.0f}." in said
    assert f"**{SQUARE.tflops:.0f} TFLOPS**" in said and f"**It reached** {SQUARE.tflops:.0f} TFLOPS" in said


def test_the_ceilings_of_05():
    """As written 8 reads of 2 and 8 of 4 wavefronts, as compiled what the hardware counted."""
    written = 8 * 2 + 8 * 4
    steps = SQUARE.measured["float32_fma"] / 32 / 64
    ran = SQUARE.measured["shared_load_wavefronts"] / steps
    said = words_of("thread_tiles_2d")
    assert f"They take {ran:.0f} wavefronts instead of {written}." in said
    assert f"67 · 16 / {ran:.0f} = {67 * CLOCKS / ran:.0f} TFLOPS" in said
    (right,) = [
        each for each in _quiz.questions("thread_tiles_2d")["ceiling"]["options"] if each.get("right")
    ]
    assert right["text"] == f"{67 * CLOCKS / written:.0f}"
    assert 1.45 < SQUARE.tflops / (67 * CLOCKS / written) < 1.55


def test_the_turns_of_05():
    """One read of each tile as compiled: As along k, 8 rows of 16 words apart; Bs 8 words apart."""
    lanes = range(32)
    words = {"As": [lane // 16 * 8 * 16 for lane in lanes], "Bs": [lane % 16 * 8 for lane in lanes]}
    turns = {
        tile: [len(fronts) for _, fronts in served(_wide(tile, firsts))] for tile, firsts in words.items()
    }
    assert turns == {"As": [1, 1], "Bs": [2, 2, 2, 2]}
    assert "Four turns of two: 8 wavefronts, and" in words_of("thread_tiles_2d")
    alts = [_turns.draw(step, "2 × 16", next(iter(_turns.RUNS)), "Bs").alt for step in range(4)]
    assert all("2 wavefronts" in alt for alt in alts)


def _wide(tile: str, firsts: list[int]) -> Request:
    return Request(tile, "load", "shared", 0, 128, tuple((i, (0,), 4 * w) for i, w in enumerate(firsts)))


def test_what_05_says_the_compiler_was_told():
    both, loops, neither, uncapped = changed_in("what the compiler is told")
    assert f"{neither:.0f}" == f"{uncapped:.0f}" and f"{neither:.0f} was measured with either" in asked(
        "told"
    )
    assert f"{both:.0f} with both, {loops:.0f} without `unroll`, {neither:.0f} without either" in asked(
        "told"
    )


def test_what_05_says_of_one_block():
    two, one = changed_in("blocks per multiprocessor")
    assert f"That was measured: {one:.0f} TFLOPS instead of {two:.0f}." in words_of("thread_tiles_2d")
    assert "takes 128 registers" in words_of("thread_tiles_2d") and SQUARE.measured["registers"] == 128
    assert occupancy(256, 128, 16 * 1024).blocks == 2


def test_what_05_says_of_four_by_four():
    stage = LADDER["thread_tiled_2d"]
    small = stage.complete(DOCUMENT | {"TM": 4, "TN": 4})
    speeds = [sweep.speed(stage, stage.complete(tiles)) for tiles in (small, DOCUMENT)]
    assert "{:.0f} TFLOPS instead of {:.0f}".format(*speeds) in words_of("thread_tiles_2d")
    registers = [sweep.recorded(stage, tiles).registers for tiles in (small, DOCUMENT)]
    assert registers[0] < registers[1]


def test_the_shapes_that_05_lets_try():
    """The function of the notebook, with its brackets filled, counts what the emulator counts."""
    (cell,) = re.findall(r"^def wavefronts.+?(?=\n\nin_a_step)", source_of("thread_tiles_2d"), re.M | re.S)
    names: dict = {}
    exec(changed(cell, ("of_Bs = []", "of_Bs = [4 * (p * BN + tx * TN + j) for tx, ty in warp]")), names)
    stage, found = LADDER["thread_tiled_2d"], {}
    for TM in (64, 32, 16, 8, 4, 2, 1):
        shape = {"TM": TM, "TN": 64 // TM}
        found[TM] = names["in_a_step"](**shape)
        assert found[TM] == _emulated(stage, DOCUMENT | shape), shape
    assert min(found, key=found.get) == 16
    assert f"as written {found[16]} wavefronts instead of {found[8]}." in words_of("thread_tiles_2d")


def _emulated(stage: Stage, tiles: dict) -> float:
    """The wavefronts of the first warp's reads of shared memory in a step."""
    A, B, C = (np.zeros((128, 128), np.float32) for _ in range(3))
    problem = (128, 128, tiles["BK"], np.float32(1), A, B, np.float32(0), C)
    report = emulate(stage.kernel(tiles), 1, stage.block(tiles), *problem, counts_only=True)
    return report.total("wavefronts", space="shared", op="load") / (tiles["BK"] * 8)


def test_what_padding_adds_to_kernel_5():
    asked = records.one_change().query("question == 'padding beside spread columns'")
    tflops = asked.set_index("change").tflops
    said = words_of("kernel5")
    assert f"the spread kernel, at {tflops['PAD 0, SPREAD 1']:.1f} TFLOPS" in said
    assert f"as it was, at {tflops['neither']:.1f}." in said
    assert f"{tflops['PAD 1, SPREAD 1']:.1f} beside spread columns" in said
    assert f"makes Kernel 5 slower, {tflops['PAD 1, SPREAD 0']:.1f}," in said
    assert "bring {:.1f} TFLOPS to {:.1f}".format(*tflops[["neither", "PAD 1, SPREAD 1"]]) in said


def test_what_05_says_of_its_limit():
    said = words_of("thread_tiles_2d")
    square, tall = (
        {n: percent(verdict(one).busy[n]) for n in ("L1 and shared memory", "issue slots")}
        for one in (SQUARE, TALL)
    )
    shared, issued = square["L1 and shared memory"], square["issue slots"]
    assert f"busy in {shared} of the clocks, and {issued} of the issue slots are taken" in said
    steps = SQUARE.measured["float32_fma"] / 32 / 64
    read = [one.measured["shared_load_wavefronts"] / steps for one in (SQUARE, TALL)]
    assert f"a step takes {read[1]:.0f} wavefronts instead of {read[0]:.0f}." in said
    question = asked("tall")
    assert f"{TALL.tflops:.1f} instead of {SQUARE.tflops:.1f} TFLOPS" in question
    assert f"{TALL.tflops / SQUARE.tflops:.2f} times', 'right': True" in question
    assert f"busy in {tall['L1 and shared memory']} of the clocks now" in question
    others = 1 - SQUARE.measured["float32_fma"] / 32 / instructions(SQUARE)
    assert "one in four of them not by a multiply-add" in said and round(1 / others) == 4


def instructions(profile) -> float:
    return profile.measured["warp_instructions"]


def wait(profile, name: str) -> str:
    return percent(profile.waits[name])


def test_what_the_side_trip_says_of_padding():
    cured = [
        (array, pad)
        for array in ("As", "Bs")
        for pad in _tile_banks.PADDING
        if ": 1 wavefront;" in _tile_banks.draw(array, pad).alt
    ]
    assert cured == [("As", 1), ("As", 2), ("As", 3)] and len(_tile_banks.PADDING) == 6
    assert "Three: As with 1, 2 or 3 words." in words_of("kernel5")


def test_what_the_side_trip_says_of_spread_columns():
    said = words_of("kernel5")
    three = [recorded("kernel5", DOCUMENT), recorded("kernel5_spread", {"PAD": 0}), SQUARE]
    assert "{}, {} and {} TFLOPS".format(*(f"{one.tflops:.1f}" for one in three)) in said
    waited = [wait(each, "global memory").removesuffix(" %") for each in three]
    assert "{}, {} and {} % of a warp's time".format(*waited) in said
    shared = [percent(verdict(each).busy["L1 and shared memory"]).removesuffix(" %") for each in three]
    assert "That is busy in {}, {} and {} % of the clocks".format(*shared) in said
    issued = [instructions(each) / (each.measured["float32_fma"] / 32) for each in three]
    assert "per multiply-add: {:.2f}, {:.2f}, {:.2f}".format(*issued) in said
    of_b = [each.measured["global_load_sectors"] for each in three]
    assert of_b[1] == of_b[2] < of_b[0] and "the conflict in As only, all loads coalesced" in said


def test_the_wavefronts_of_wide_reads():
    """Pairs that want the same, or all lanes: two wavefronts. Side by side: four. Two apart: eight."""
    with WAVEFRONTS.open(encoding="utf-8") as file:
        rows = {
            row["pattern"]: row["wavefronts"]
            for row in csv.DictReader(file)
            if (row["op"], row["bits"]) == ("load", "128")
        }
    patterns = ("pair", "bcast", "half_bcast", "seq", "tile8", "stride2v")
    assert [rows[pattern] for pattern in patterns] == ["2", "2", "2", "4", "8", "8"]


def opcodes(kernel, pattern: str) -> list[str]:
    """What the loop of a kernel with the document's tiles has of these instructions, in order."""
    A, B, C = (np.zeros((128, 128), np.float32) for _ in range(3))
    code = compiled(kernel, 128, 128, 128, np.float32(1), A, B, np.float32(0), C)
    return re.findall(pattern, "\n".join(row.text for row in code.loop.rows))


def spread_with(*changes) -> Stage:
    """kernel5_spread with its source changed."""
    path = Path(kernel5_spread.__file__)
    source, name = changed(path.read_text(encoding="utf-8"), *changes), f"changed {path.name}"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    module = {"__name__": "kernel5_spread_changed"}
    exec(compile(source, name, "exec"), module)
    return module["STAGE"]


CONSTANT_LOOPS = (
    ("            c = tx\n", ""),
    ("            while c < BK:", "            for s in unroll(range(BK // (BN // TN))):"),
    (" of A's tile\n", " of A's tile\n                c = tx + s * (BN // TN)\n"),
    ("                c += BN // TN\n", ""),
    ("            r = ty\n", ""),
    ("            while r < BK:", "            for s in unroll(range(BK // (BM // TM))):"),
    (" of B's tile\n", " of B's tile\n                r = ty + s * (BM // TM)\n"),
    ("                r += BM // TM\n", ""),
)


@pytest.mark.full(reason="large kernels are compiled")
@pytest.mark.compiler
@pytest.mark.parametrize(
    ("stage", "order"),
    [
        (LADDER["thread_tiled_2d"], ["LDG16", "STS16"]),
        (kernel5_spread.STAGE, ["LDG8", "STS8"] * 2),
        (spread_with(*CONSTANT_LOOPS), ["LDG16", "STS16"]),
    ],
    ids=["v04", "spread", "constant loops"],
)
def test_what_the_side_trip_says_of_the_order_of_loads_and_stores(stage, order):
    tiles = stage.complete({**DOCUMENT, "PAD": 0} if "PAD" in stage.tiles else DOCUMENT)
    found = opcodes(stage.kernel(tiles), r"\b(LDG|STS)\b")
    assert [f"{opcode}{len([*run])}" for opcode, run in groupby(found)] == order


UNROLLED = ("for p in range(BK)", "for p in unroll(range(BK))")


@pytest.mark.many(one_in=4, with_all=2)
@pytest.mark.full(reason="large kernels are compiled")
@pytest.mark.compiler
@pytest.mark.parametrize(("changes", "loads"), [((), {"LDS": 16}), ((UNROLLED,), {"LDS.128": 64})])
def test_what_the_compiler_makes_of_a_learners_reads(changes, loads, tmp_path):
    cell = changed(solution("outer_product"), *changes, ("check.outer_product(", "made = ("))
    path = tmp_path / "cell.py"
    path.write_text(cell, encoding="utf-8")
    names = {"cuda": cuda, "float32": float32, "unroll": unroll, "make_fetch": make_fetch}
    exec(compile(cell, path, "exec"), names)
    assert Counter(opcodes(names["made"](**DOCUMENT), r"\bLDS[.\w]*")) == loads


@pytest.mark.full(reason="a large kernel is compiled")
@pytest.mark.compiler
def test_what_the_side_trip_says_of_its_registers():
    fixed = verdict_of(solution("no_conflicts")).message
    registers = int(re.search(r"takes (\d+) registers per thread", fixed).group(1))
    told = f"(The course's solution takes {registers} registers, so only one block fits on an SM.)"
    assert told in words_of("kernel5")
    assert occupancy(256, registers, 128 * 17 * 4 + 16 * 128 * 4).blocks == 1
