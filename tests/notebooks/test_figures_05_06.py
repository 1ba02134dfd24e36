"""Figures in the words of notebooks 05 and 06 are those of the profiles."""

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
from gemm_course.model.requests import Request, wavefronts_of
from gemm_course.profiles import recorded, verdict
from gemm_course.profiles.words import percent
from gemm_course.widgets import _measured as sweep
from gemm_course.widgets import _strips, _tile_banks, _wavefronts
from lockstep.intrinsics import unroll
from lockstep.limits import PROFILES
from tests.checks.cells import verdict_of
from tests.notebooks.builder import source_of
from tests.wrong_solutions.altering import changed, solution

WAVEFRONTS = Path(__file__).parents[2] / "lockstep" / "recorded" / "shared_memory_wavefronts.csv"
DOCUMENT = {"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8}


def words_of(notebook: str) -> str:
    """The text of a notebook's source on one line."""
    return re.sub(r"\s+", " ", source_of(notebook).replace("\n# ", " "))


def wait(profile, name: str) -> str:
    return percent(profile.waits[name])


def tflops(*profiles) -> list[str]:
    return [f"{one.tflops:.1f}" for one in profiles]


SQUARE, TALL = recorded("thread_tiled_2d", DOCUMENT), recorded("thread_tiled_2d", {"BK": 16})


def test_what_05_says_of_the_limit_of_04():
    busy = verdict(recorded("thread_tiled_1d")).busy["L1 and shared memory"]
    assert f"shared memory busy in {percent(busy)} of the clocks" in words_of("thread_tiles_2d")


def test_what_05_says_of_warps():
    said = words_of("thread_tiles_2d")
    two, one = recorded("thread_tiled_2d"), recorded("thread_tiled_2d_fewer_blocks", {"SPARE": 150})
    assert [round(each.measured["warps_possible"] * 4) for each in (two, one)] == [16, 8]
    assert f"block is {percent(1 - one.tflops / two.tflops)} slower than two" in said
    edge = [f"{blocks} block{'s' * (blocks > 1)} fit" for blocks in (2, 1)]
    for registers, fits in zip((128, 129), edge, strict=True):
        assert fits in _strips.draw("thread_tiled_2d", registers).alt
    assert "128 is the edge: 2 · 256 · 128 is 65,536" in said
    issued = [
        int(re.search(r"could issue (\d+)", _strips.draw("thread_tiled_2d", registers).alt).group(1))
        for registers in (128, 255)
    ]
    assert f"The picture says {percent(1 - issued[1] / issued[0])}: 600 of 3376 clocks" in said
    loop = _strips.KERNELS["thread_tiled_2d"].loop
    assert f"a warp issues {loop} instructions per pair of tiles" in said
    assert f"so these compute for {2 * loop} clocks" in said
    assert _strips.WAIT == 600 and 2 * loop + 600 == 3376
    longer = 2 * two.measured["warp_instructions"] / (1024 * 8 * 4096 / LADDER["thread_tiled_2d"].tiles["BK"])
    assert f"With their BK the same sum says only {percent(600 / (longer + 600))}" in said


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
    assert "{}, {} and {} TFLOPS".format(*tflops(*three)) in said
    waited = [wait(each, "global memory").removesuffix(" %") for each in three]
    assert "{}, {} and {} % of a warp's time".format(*waited) in said
    shared = [percent(verdict(each).busy["L1 and shared memory"]).removesuffix(" %") for each in three]
    assert "That is busy in {}, {} and {} % of the clocks".format(*shared) in said
    assert [verdict(each).limiter == "L1 and shared memory" for each in three] == [True, False, True]
    issued = [instructions(each) / (each.measured["float32_fma"] / 32) for each in three]
    assert "per multiply-add: {:.2f}, {:.2f}, {:.2f}".format(*issued) in said
    of_b = [each.measured["global_load_sectors"] for each in three]
    assert of_b[1] == of_b[2] < of_b[0] and "the conflict in As only, all loads coalesced" in said


def test_what_05_says_of_its_ceilings():
    said, (speed,) = words_of("thread_tiles_2d"), tflops(SQUARE)
    assert f"was measured at {speed} TFLOPS, half as much again" in said
    assert 1.45 < SQUARE.tflops / (67 * 16 / 48) < 1.55
    assert f"67 · 16 / 20 = {67 * 16 / 20:.0f} TFLOPS, well above {speed}" in said


def test_the_profile_to_predict_in_05():
    said, names = words_of("thread_tiles_2d"), ("L1 and shared memory", "issue slots", "multiply-add units")
    square, tall = ([f"{100 * verdict(one).busy[name]:.0f}" for name in names] for one in (SQUARE, TALL))
    for label, share in zip(("shared memory", "issue slots", "multiply-adds"), square, strict=True):
        assert f"| {label} | {share} | ? |" in said
    assert f"| TFLOPS | {tflops(SQUARE)[0]} | ? |" in said
    steps = SQUARE.measured["float32_fma"] / 32 / 64
    assert [one.measured["shared_store_wavefronts"] / steps for one in (SQUARE, TALL)] == [1, 1]
    assert [one.measured["shared_wavefronts"] / steps for one in (SQUARE, TALL)] == [21, 13]
    expected = f"{square[0]} · 13/21 is {int(square[0]) * 13 / 21:.0f}"
    assert f"{expected}, and {tall[0]} were measured" in said
    assert f"100/{square[1]} = {100 / int(square[1]):.2f} times as fast" in said
    assert f"It is {TALL.tflops / SQUARE.tflops:.2f} times as fast" in said
    assert f"{tall[1]}, {tall[2]} and {tflops(TALL)[0]} TFLOPS" in said
    assert f"shared memory ({square[0]} %) was barely busier than **issue slots** ({square[1]} %)" in said
    assert [verdict(each).limiter for each in (SQUARE, TALL)] == ["L1 and shared memory", "issue slots"]


def test_what_05_says_of_the_ladders_tiles():
    said, now = words_of("thread_tiles_2d"), recorded("thread_tiled_2d")
    assert f"with the ladder's tiles: {now.tflops:.1f} TFLOPS" in said


def test_what_05_says_of_larger_thread_tiles():
    stage = LADDER["thread_tiled_2d"]
    large = sweep.recorded(stage, {**stage.tiles, "TM": 16, "TN": 8})
    tall = sweep.speed(stage, {**stage.tiles, "TM": 16, "TN": 4})
    assert large.registers == 255 and stage.tiles["BK"] == 32
    fit = [
        occupancy(threads, registers, large.shared_bytes).warps
        for threads, registers in ((128, large.registers), (256, 128))
    ]
    assert "so {} warps fit on an SM instead of {}.".format(*fit) in words_of("thread_tiles_2d")
    slower = percent(1 - large.tflops / tall)
    assert f"With BK = 32 it was measured, and is {slower} slower than 16 × 4." in words_of("thread_tiles_2d")


def test_what_05_says_of_busy_multiply_adds():
    """The same units multiply integers: the multiply-adds of float32 alone are fewer than they are busy."""
    clocks, lanes = SQUARE.measured["active_clocks"], 132 * 128
    alone = SQUARE.measured["float32_fma"] / lanes / clocks
    busy = verdict(SQUARE).busy["multiply-add units"]
    told = f"(Why {percent(busy)} for the multiply-adds, and not {SQUARE.tflops:.1f} / 67 = "
    assert f"{told}{percent(SQUARE.tflops / 67)}? The clocks here are those in which" in words_of(
        "thread_tiles_2d"
    )
    assert f"in which an SM has work: {percent(alone)}." in words_of("thread_tiles_2d")
    assert "IMAD" in {row.text.split()[0].split(".")[0] for row in SQUARE.code.loop.rows}


def test_the_turns_of_05():
    """As compiled: two rows of threads want the same banks, 8 rows of 16 words apart."""
    load = Request(
        "As", "load", "shared", 0, 128, tuple((lane, (0,), lane // 16 * 8 * 16 * 4) for lane in range(32))
    )
    assert [(list(lanes), len(fronts)) for lanes, fronts in served(load)] == [
        ([*range(16)], 1),
        ([*range(16, 32)], 1),
    ]
    assert SQUARE.measured["shared_load_wavefronts"] == 20 * SQUARE.measured["float32_fma"] / 32 / 64


def loads_told_in_05() -> dict[str, list[int]]:
    """The first word that each lane wants of a tile, from the table."""
    row = r"^# \| (\d+) to (\d+) \| ([\d ]+) \| ([\d ]+) \|$"
    rows = re.findall(row, source_of("thread_tiles_2d"), re.MULTILINE)
    assert [(int(first), int(last)) for first, last, *_ in rows] == [(0, 7), (8, 15), (16, 23), (24, 31)]
    return {
        tile: [int(word) for _, _, *words in rows for word in words[at].split()]
        for at, tile in enumerate(("As", "Bs"))
    }


def test_the_loads_of_05_are_those_of_the_square():
    told = loads_told_in_05()
    assert told == {
        "As": [lane // 16 * 8 * 16 for lane in range(32)],
        "Bs": [lane % 16 * 8 for lane in range(32)],
    }
    turns = {
        tile: [len(fronts) for _, fronts in served(load)]
        for tile, words in told.items()
        for load in [
            Request(tile, "load", "shared", 0, 128, tuple((i, (0,), 4 * w) for i, w in enumerate(words)))
        ]
    }
    assert turns == {"As": [1, 1], "Bs": [2, 2, 2, 2]}
    assert "2 · 2 + 2 · 8 = 20 wavefronts, as the hardware counts" in words_of("thread_tiles_2d")


def test_what_05_says_of_turns():
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
def test_what_05_says_of_the_order_of_loads_and_stores(stage, order):
    tiles = stage.complete({**DOCUMENT, "PAD": 0} if "PAD" in stage.tiles else DOCUMENT)
    found = opcodes(stage.kernel(tiles), r"\b(LDG|STS)\b")
    assert [f"{opcode}{len([*run])}" for opcode, run in groupby(found)] == order


@pytest.mark.full(reason="compiles two kernels")
@pytest.mark.compiler
def test_what_05_says_of_spread_reads():
    stage = kernel5_spread.STAGE
    found = Counter(opcodes(stage.kernel(stage.complete({**DOCUMENT, "PAD": 0})), r"\bLDS[.\w]*"))
    assert found == {"LDS.128": 32, "LDS": 128}  # those of As, and those of Bs
    assert "32 wide loads become 128 single ones" in words_of("thread_tiles_2d")


UNROLLED = ("for p in range(BK)", "for p in unroll(range(BK))")
ROWS_APART = (
    ("BK + 1, BN // TN", "BK, BN // TN"),
    ("As[ty * TM + i, p]", "As[ty + i * (BM // TM), p]"),
    ("row0 + ty * TM + i", "row0 + ty + i * (BM // TM)"),
)


@pytest.mark.many(one_in=4, with_all=2)
@pytest.mark.full(reason="large kernels are compiled")
@pytest.mark.compiler
@pytest.mark.parametrize(
    ("exercise", "changes", "loads"),
    [
        ("outer_product", (), {"LDS": 16}),
        ("outer_product", (UNROLLED,), {"LDS.128": 64}),
        ("no_conflicts", (UNROLLED,), {"LDS.128": 4, "LDS": 240}),
        ("no_conflicts", (UNROLLED, *ROWS_APART), {"LDS.128": 32, "LDS": 128}),
    ],
)
def test_what_05_says_of_the_learners_reads(exercise, changes, loads, tmp_path):
    cell = changed(solution(exercise), *changes, (f"check.{exercise}(", "made = ("))
    path = tmp_path / "cell.py"
    path.write_text(cell, encoding="utf-8")
    names = {"cuda": cuda, "float32": float32, "unroll": unroll, "make_fetch": make_fetch}
    exec(compile(cell, path, "exec"), names)
    assert Counter(opcodes(names["made"](**DOCUMENT), r"\bLDS[.\w]*")) == loads
    said = words_of("thread_tiles_2d")
    assert "16 single reads per step, and both conflicts" in said
    assert f"it has 32 wide ones and 128 single ({160 / 1.024:.0f})" in said
    assert f"4 wide loads and 240 single ones ({244 / 1.024:.0f} in the picture)" in said
    assert "**64 loads of 128 bits**" in said


@pytest.mark.full(reason="large kernels are compiled")
@pytest.mark.compiler
def test_what_05_says_of_the_learners_registers():
    bounded = ("@cuda.jit\n", "@cuda.jit(launch_bounds=(256, 2))\n")
    cells = (changed(solution("outer_product"), *changes) for changes in ((), (bounded,)))
    taken = [
        re.search(r"takes (\d+) registers per thread and no local", verdict_of(each).message)
        for each in cells
    ]
    usual, held = (int(found.group(1)) for found in taken)
    assert usual > 128 >= held and "takes at most 128, and spills nothing" in words_of("thread_tiles_2d")
    assert f"the course's solution {usual} (with the checker's 64 × 64 × 8" in words_of("thread_tiles_2d")
    fixed = verdict_of(solution("no_conflicts")).message
    registers = int(re.search(r"takes (\d+) registers per thread", fixed).group(1))
    told = f"(The course's solution takes {registers} registers, so only one block fits on an SM.)"
    assert told in words_of("thread_tiles_2d")
    assert occupancy(256, registers, 128 * 17 * 4 + 16 * 128 * 4).blocks == 1


@pytest.mark.parametrize("notebook", ["thread_tiles_2d", "vectorized_access"])
def test_the_times_said_are_those_of_the_exercises(notebook):
    text = source_of(notebook)
    minutes = sum(map(int, re.findall(r"^# \*.* (\d+) minutes\*$", text, re.MULTILINE)))
    assert f"{minutes} for the exercises" in text


def test_what_05_says_of_l2():
    assert f"{PROFILES['H200'].l2_bytes >> 20} MB on an H200" in words_of("thread_tiles_2d")


NEITHER, BOTH = recorded("thread_tiled_2d"), recorded("vectorized")
FOURS = recorded("vectorized_apart", {"FOURS": 1, "TRANSPOSED": 0})
TRANSPOSED = recorded("vectorized_apart", {"FOURS": 0, "TRANSPOSED": 1, "PAD": 4})
FORMS = {"neither": NEITHER, "transposed only": TRANSPOSED, "fours only": FOURS, "both": BOTH}


def instructions(profile) -> float:
    return profile.measured["warp_instructions"]


@pytest.mark.full(reason="compiles a kernel")
def test_what_06_says_of_the_loop_before():
    said, kinds = words_of("vectorized_access"), compiled("thread_tiled_2d").loop.by_kind
    assert kinds["global load"] == kinds["shared store"] == 32 and "takes 32 loads and 32 stores" in said
    addresses = kinds["integer arithmetic"] + kinds["move"]
    told = f"{addresses} instructions, far more than the {kinds['shared load']} shared loads or the"
    assert f"Integer arithmetic and moves: {told} {kinds['compare and select']} compares" in said
    useful = NEITHER.measured["float32_fma"] / 32 / instructions(NEITHER)
    assert f"Of all the instructions it issues, {percent(useful)} are multiply-adds" in said


@pytest.mark.parametrize(
    ("name", "form"),
    [("neither", NEITHER), ("loop 1", BOTH), ("loop 2", TRANSPOSED), ("loop 3", FOURS)],
)
def test_the_loops_without_a_name_in_06(name, form):
    kinds = form.code.loop.by_kind
    counts = (
        kinds["global load"],
        kinds["shared store"],
        kinds["integer arithmetic"] + kinds["move"],
    )
    assert f"| {name} | " + " | ".join(map(str, counts)) + " |" in words_of("vectorized_access")


def test_the_paddings_that_06_hunts():
    def fronts(depth, pad):
        return wavefronts_of(_wavefronts.request("As[c + e, r] = v[e]", depth, pad))

    single = [(depth, pad) for depth in (8, 16, 32) for pad in (0, 1, 2, 4, 8) if fronts(depth, pad) == 1]
    assert single == [(8, 4), (16, 2), (32, 1)]
    assert "BK = 8 with 4 floats, 16 with 2, 32 with 1" in words_of("vectorized_access")


def test_the_table_of_06_taken_apart():
    said = words_of("vectorized_access")
    for name, form in FORMS.items():
        row = f"| {name} | {form.tflops:.1f} | {instructions(form) / 1e9:.2f} |"
        assert row in said
        assert form.measured["registers"] == 128 and form.measured["warps_possible"] == 4


def test_what_06_says_of_each_half():
    said = words_of("vectorized_access")
    gains = [round(form.tflops, 1) - round(NEITHER.tflops, 1) for form in (FOURS, BOTH, TRANSPOSED)]
    told = "Fours alone bring {:.1f} of the {:.1f} TFLOPS, transposing alone {:.1f}, and the two together"
    assert f"{told.format(*gains)} {gains[1] - gains[0] - gains[2]:.1f} more" in said
    reads = {form.measured["shared_load_requests"] for form in FORMS.values()}
    assert len(reads) == 1
    assert instructions(BOTH) < instructions(FOURS)
    moves = [form.code.loop.by_kind["move"] for form in (BOTH, FOURS)]
    fewer = form_length(FOURS) - form_length(BOTH)
    assert moves[1] - moves[0] > fewer / 2 and "fewer instructions, mostly moves" in said
    faster, shorter = BOTH.tflops / FOURS.tflops - 1, 1 - instructions(BOTH) / instructions(FOURS)
    assert f"the speed rises by {percent(faster)}. There are {percent(shorter)} fewer" in said
    slots = [percent(verdict(form).busy["issue slots"]) for form in (BOTH, FOURS)]
    assert f"taken in {slots[0].split()[0]} instead of {slots[1]} of the clocks" in said


def test_what_06_says_of_its_ceiling():
    ceilings = [66.9 * 2048 / form_length(form) for form in (NEITHER, BOTH)]
    told = "rose from {:.1f} to {:.1f} TFLOPS".format(*ceilings)
    assert f"{told}. The kernel reaches {percent(BOTH.tflops / ceilings[1])} of it" in words_of(
        "vectorized_access"
    )


def form_length(form) -> int:
    return sum(form.code.loop.by_kind.values())


def peer(kernel: str, change: str = "as written", option: str = ""):
    frame = records.peers_apart()
    rows = frame[(frame["kernel"] == kernel) & (frame["change"] == change) & (frame["option"] == option)]
    (row,) = rows.itertuples()
    return row


CAPPED = "-maxrregcount=32"
UNROLLED, NO_MASK = "mask loop unrolled", "no mask"


def test_what_06_says_of_fours_in_local_memory():
    said = words_of("vectorized_access")
    v02 = (
        peer("v02", option=CAPPED),
        peer("v02_vectorized"),
        peer("v02_vectorized", UNROLLED, CAPPED),
        peer("v02_vectorized", NO_MASK, CAPPED),
    )
    told = "| 32 registers in all four | " + " | ".join(f"{one.tflops:.1f}" for one in v02) + " |"
    assert told in said
    assert len({one.blocks_per_sm for one in v02}) == 1
    assert [one.stack_bytes for one in v02] == [0, 32, 0, 0]
    assert {one.registers for one in v02} == {32}
    assert v02[2].warp_instructions > v02[0].warp_instructions and "it still costs instructions" in said
    single, fours, _, uncleared = (round(one.tflops, 1) for one in v02)
    told = f"explains {uncleared - fours:.1f} of the {single - fours:.1f} TFLOPS lost; the last"
    assert f"{told} {single - uncleared:.1f} may be" in said
    assert f"{single} TFLOPS instead of {peer('v02').tflops:.1f}" in said
    assert peer("v02").registers == 32


def test_what_06_says_of_v04():
    single, fours, unmasked = peer("v04"), peer("v04_vectorized"), peer("v04_vectorized", NO_MASK)
    assert f"His v04 gained {percent(fours.tflops / single.tflops - 1)}," in words_of("vectorized_access")
    assert unmasked.tflops / fours.tflops < 1.01 and fours.stack_bytes == 0


def test_what_06_says_of_its_own_limit():
    said = words_of("vectorized_access")
    before, now = (verdict(each) for each in (NEITHER, BOTH))
    assert before.limiter == now.limiter == "issue slots"
    assert f"taken in {percent(before.busy['issue slots'])} of the clocks" in said
    useful = BOTH.measured["float32_fma"] / 32 / instructions(BOTH)
    assert f"a little more often: {percent(now.busy['issue slots'])}. But {percent(useful)} of what" in said
    share = before.busy["issue slots"] * NEITHER.measured["float32_fma"] / 32 / instructions(NEITHER)
    units = percent(before.busy["multiply-add units"]).split()[0]
    clocks, useful = percent(before.busy["issue slots"]), percent(share / before.busy["issue slots"])
    assert f"issued in {clocks} of the clocks, and {useful} of that are multiply-adds" in said
    assert f"That makes {percent(share)} of the clocks, but its" in said
    assert f"multiply-add units are busy in {units} %" in said
    imads = [sum(" IMAD" in f" {row.text}" for row in form.code.loop.rows) for form in (NEITHER, BOTH)]
    assert "(IMAD) of the addresses: {} in its loop, {} now".format(*imads) in said
    runners = sorted(now.busy, key=now.busy.get)[-3:-1]
    assert runners == ["L1 and shared memory", "multiply-add units"]
    longest = max(set(BOTH.waits) - {"another warp's turn", "issuing"}, key=BOTH.waits.get)
    assert longest == "dispatch" and "what they wait for longest is [dispatch]" in said
    gone = 1 - form_length(BOTH) / form_length(NEITHER)
    assert round(1 / gone) == 6 and "one in six instructions of the loop is gone" in said


def measured(**tiles) -> str:
    """What the sweep has of `vectorized`, with its default tiles for those that are not given."""
    stage = LADDER["vectorized"]
    return f"{sweep.speed(stage, {**stage.tiles, **tiles}):.1f}"


def test_what_06_says_of_padding_and_of_the_best_tiles():
    said, stage = words_of("vectorized_access"), LADDER["vectorized"]
    best = sweep.best(stage)
    assert f"Padding: {measured(PAD=0)} without, {measured()} with it" in said
    assert f"BK = 8 was measured too: {measured(BK=8)} TFLOPS, not {measured()}" in said
    assert f"the best measured, {best.tflops:.1f}, has none" in said and best.tiles["PAD"] == 0
    assert "128 × 256 × 32, with 16 × 8 per thread" in said
    assert [best.tiles[size] for size in ("BM", "BN", "BK", "TM", "TN")] == [128, 256, 32, 16, 8]
    assert best.shared_bytes == 48 << 10 and stage.rules({**best.tiles, "PAD": 4})


def test_what_06_says_of_wide_thread_tiles():
    wide = [
        each
        for each in sweep.measured(LADDER["vectorized"])
        if (each.tiles["TM"], each.tiles["TN"]) == (4, 16)
    ]
    best = max(wide, key=lambda each: each.tflops)
    assert best.tiles["BN"] // 16 == 2 and "one in which only two lanes lie side by side" in words_of(
        "vectorized_access"
    )


@pytest.mark.full(reason="large kernels are compiled")
@pytest.mark.compiler
def test_what_06_says_of_the_loop_of_the_best_tiles():
    shares = []
    for tiles in (sweep.best(LADDER["vectorized"]).tiles, LADDER["vectorized"].tiles):
        kinds = compiled("vectorized", tiles=tiles).loop.by_kind
        assert kinds["multiply-add"] == tiles["TM"] * tiles["TN"] * tiles["BK"]
        assert kinds["shared load"] * 4 == (tiles["TM"] + tiles["TN"]) * tiles["BK"]
        shares.append(percent(kinds["multiply-add"] / sum(kinds.values())))
    assert "So {} of its loop are multiply-adds, instead of {}.".format(*shares) in words_of(
        "vectorized_access"
    )
