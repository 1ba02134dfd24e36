"""Figures in the words of notebook 06 and of its side trip are those of the records."""

import csv
import re

import numpy as np
import pytest
from numba import cuda, float32

from gemm_course import compiled, records
from gemm_course.checks.kits import make_copies
from gemm_course.kernels import LADDER
from gemm_course.kernels.variants import vectorized_apart
from gemm_course.model.requests import wavefronts_of
from gemm_course.profiles import recorded, verdict
from gemm_course.profiles.words import percent
from gemm_course.widgets import _measured as sweep
from gemm_course.widgets import _quiz, _tiles, _wavefronts
from gemm_course.widgets._costs import cost
from lockstep import emulate, wavefronts
from lockstep.intrinsics import u32
from tests.notebooks.builder import ROOT, source_of
from tests.wrong_solutions.altering import changed, solution

SQUARE = {"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8}
BEFORE, NOW = recorded("thread_tiled_2d", SQUARE), recorded("vectorized", {**SQUARE, "PAD": 0})
# FOURS and TRANSPOSED of the four forms, and the names of the loops that have none.
FORMS = {
    "neither": (0, 0),
    "TRANSPOSED only": (0, 1),
    "FOURS only": (1, 0),
    "both": (1, 1),
}
LOOPS = {"loop 1": "both", "loop 2": "TRANSPOSED only", "loop 3": "FOURS only"}


def words_of(notebook: str) -> str:
    """The text of a notebook's source on one line."""
    return re.sub(r"\s+", " ", source_of(notebook).replace("\n# ", " "))


def asked(notebook: str, question: str) -> str:
    return str(_quiz.questions(notebook)[question])


def forms_measured() -> dict[str, dict]:
    """The rows of data/h200/one_change.csv for the four forms with the square, by their names."""
    with (ROOT / "data" / "h200" / "one_change.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["question"] == "fours and a transposed tile"]
    by_change = {row["change"]: row for row in rows}
    return {name: by_change[f"FOURS {fours}, TRANSPOSED {turned}"] for name, (fours, turned) in FORMS.items()}


def busy(profile, part: str) -> str:
    return percent(verdict(profile).busy[part])


@pytest.mark.parametrize("notebook", ["thread_tiles_2d", "vectorized_access", "one_read_too_many"])
def test_the_times_said_are_those_of_the_exercises(notebook):
    text = source_of(notebook)
    minutes = sum(map(int, re.findall(r"^# \*.* (\d+) minutes\*$", text, re.MULTILINE)))
    assert f"{minutes} for the exercises" in text


def test_what_06_says_of_the_loop_before():
    said, kinds = words_of("vectorized_access"), BEFORE.code.loop.by_kind
    others = len(BEFORE.code.loop.rows) - kinds["multiply-add"]
    assert round(len(BEFORE.code.loop.rows) / others) == 4 and "One in four is no multiply-add" in said
    addresses = kinds["integer arithmetic"] + kinds["move"]
    assert f"Integer arithmetic and moves: {addresses}." in said and addresses > others / 2
    assert kinds["global load"] == kinds["shared store"] == 16
    assert "The tiles come by 16 loads" in said and "and 16 stores of one float each" in said
    rows = [row for row in BEFORE.code.loop.rows if row.kind == "barrier and fence"]
    assert [row.opcode.split(".")[0] for row in rows] == ["BAR", "BAR"]
    assert "Barrier and fence: the two `syncthreads`" in said


def test_the_speeds_of_06():
    said = words_of("vectorized_access")
    assert f"reached {BEFORE.tflops:.0f} TFLOPS with **the square**" in said
    for pad in (0, 4):
        assert f"{sweep.speed(LADDER['vectorized'], {**SQUARE, 'PAD': pad}):.0f}" == "38"
    assert "**the same speed, both.**" in said
    assert f"{NOW.tflops:.0f} TFLOPS on an H200, after {BEFORE.tflops:.0f}" in said


BEFORE_THE_NOTCH = {"BM": 64, "BN": 128, "BK": 16, "TM": 8, "TN": 4, "PAD": 4}


def by_fours(tiles) -> int:
    """The wavefronts of a step's reads by fours, for lanes that lie side by side."""
    across = tiles["BN"] // tiles["TN"]
    of_a = [lane // across * tiles["TM"] for lane in range(32)]
    of_b = [lane % across * tiles["TN"] for lane in range(32)]
    return tiles["TM"] // 4 * wavefronts(of_a, 128, "load") + tiles["TN"] // 4 * wavefronts(of_b, 128, "load")


def test_the_notch_that_06_asks_for():
    """Of all notches of one slider that were measured it is the fastest."""
    said, stage, start = words_of("vectorized_access"), LADDER["vectorized"], BEFORE_THE_NOTCH
    square, level = (sweep.speed(stage, tiles) for tiles in ({**SQUARE, "PAD": 4}, start))
    assert level == pytest.approx(square, rel=0.01)
    near = {label: sweep.speed(stage, tiles) or 0 for label, tiles in _tiles.one_step_away(stage, start)}
    best = max(near, key=near.get)
    assert f"{best}: {near[best]:.0f} TFLOPS." in said and f"brings {near[best]:.0f} TFLOPS" in said
    after = {**start, "TM": 16}
    assert best == "TM 16" and stage.rules(after) == []
    costs = [cost(stage, tiles).wavefronts for tiles in (start, after)]
    assert "The line falls from {:g} to {:g}.".format(*costs) in said
    for shape, tiles, multiply_adds in (("8 × 8", SQUARE, 64), ("8 × 4", start, 32), ("16 × 4", after, 64)):
        taken, speed = by_fours(tiles), sweep.speed(stage, {"PAD": 4, **tiles})
        row = f"| {shape} | {taken} | {multiply_adds} | {taken / multiply_adds:.2f} | {speed:.0f} |"
        assert row in said, row


@pytest.mark.full(reason="two large kernels are compiled")
@pytest.mark.compiler
@pytest.mark.parametrize("TM", [8, 16])
def test_the_reads_around_the_notch_are_compiled_by_fours(TM):
    tiles = {**BEFORE_THE_NOTCH, "TM": TM}
    code = compiled(LADDER["vectorized"], tiles=tiles, compute_capability=(9, 0))
    reads = [row.opcode for row in code.loop.rows if row.kind == "shared load"]
    assert set(reads) == {"LDS.128"} and len(reads) == tiles["BK"] * (TM + tiles["TN"]) // 4


def test_how_often_06_says_that_an_element_is_read():
    assert SQUARE["BN"] // SQUARE["TN"] == 16
    assert "stored once, and read by sixteen threads" in words_of("vectorized_access")


def test_the_paddings_that_06_hunts():
    def fronts(depth, pad):
        return wavefronts_of(_wavefronts.request("As[c + e, r] = v[e]", depth, pad))

    single = [(depth, pad) for depth in (8, 16, 32) for pad in (0, 1, 2, 4, 8) if fronts(depth, pad) == 1]
    assert single == [(8, 4), (16, 2), (32, 1)]
    assert "BK = 8 with 4 floats, 16 with 2, 32 with 1" in words_of("vectorized_access")


@pytest.fixture
def learners_kernel(tmp_path):
    """A function that makes the solution's kernel of both_switches. changes: (old, new) of its cell."""

    def make(*sizes, changes=()):
        cell = changed(solution("both_switches"), *changes, ("check.both_switches(", "made = ("))
        path = tmp_path / "cell.py"
        path.write_text(cell, encoding="utf-8")
        names = {"cuda": cuda, "float32": float32, "u32": u32, "make_copies": make_copies}
        exec(compile(cell, path, "exec"), names)
        return names["made"](*sizes)

    return make


def test_the_four_forms_of_06(learners_kernel):
    said = words_of("vectorized_access")
    A, B, C = (np.zeros(shape, np.float32) for shape in ((128, 16), (16, 128), (128, 128)))
    for name, row in forms_measured().items():
        kernel = learners_kernel(*SQUARE.values(), *map(bool, FORMS[name]))
        report = emulate(
            kernel, 1, (16, 16), 128, 128, 16, np.float32(1), A, B, np.float32(0), C, counts_only=True
        )
        stores = report.total("wavefronts", space="shared", op="store")
        assert f"| {name} | {float(row['tflops']):.0f} | {stores:,} | {row['local_bytes']} |" in said
    steps = NOW.measured["float32_fma"] / 32 / 64
    reads = round(NOW.measured["shared_load_wavefronts"] / steps)
    assert f"take 8 · 16 · {reads} = {8 * 16 * reads:,} in all four forms" in said
    scatter = 320 - 128
    before, after = 8 * 16 * reads + 128, 8 * 16 * reads + 128 + scatter
    assert f"the scatter adds {scatter} to the {before:,} wavefronts of a block's tile" in said
    assert f"72 % · 38 / 33 · {after:,} / {before:,} = {72 * 38.1 / 32.9 * after / before:.0f} %" in said
    rows = forms_measured()
    alone = [f"{float(rows[name]['tflops']):.0f}" for name in ("FOURS only", "TRANSPOSED only")]
    assert "{} with FOURS only, {} with TRANSPOSED only".format(*alone) in asked(
        "vectorized_access", "halves"
    )


@pytest.mark.full(reason="four large kernels are compiled")
@pytest.mark.compiler
def test_the_loops_without_a_name_in_06():
    said, addresses = words_of("vectorized_access"), {}
    for name, (fours, turned) in FORMS.items():
        tiles = {**SQUARE, "PAD": 0, "FOURS": fours, "TRANSPOSED": turned}
        code = compiled(vectorized_apart.STAGE, tiles=tiles, compute_capability=(9, 0))
        kinds = code.loop.by_kind
        addresses[name] = kinds["integer arithmetic"] + kinds["move"]
        shown = next((loop for loop, form in LOOPS.items() if form == name), name)
        row = f"| {shown} | {kinds['global load']} | {kinds['shared store']} | {addresses[name]} |"
        assert row in said
    assert round(5 * (1 - addresses["both"] / addresses["neither"])) == 4
    assert round(4 * (1 - addresses["FOURS only"] / addresses["neither"])) == 3
    assert "both switches together remove four in five, FOURS alone three in four" in said


@pytest.mark.many(one_in=3)
@pytest.mark.full(reason="large kernels are compiled")
@pytest.mark.compiler
@pytest.mark.parametrize(
    ("changes", "forms", "reads"),
    [
        ((), (True, True), {"LDS.128": 4}),
        ((), (True, False), {"LDS.128": 2, "LDS": 8}),  # 16 + 16 wavefronts, where four fours take 20
        ((("u32(cuda.", "(cuda."),), (True, True), {"LDS": 16}),
    ],
)
def test_what_the_compiler_makes_of_the_reads_of_both_switches(changes, forms, reads, learners_kernel):
    A, B, C = (np.zeros((128, 128), np.float32) for _ in range(3))
    kernel = learners_kernel(*SQUARE.values(), *forms, changes=changes)
    code = compiled(kernel, 128, 128, 128, np.float32(1), A, B, np.float32(0), C, compute_capability=(9, 0))
    found = re.findall(r"\bLDS[.\w]*", "\n".join(row.text for row in code.rows))
    assert {each: found.count(each) for each in set(found)} == reads
    assert "a step takes 32 wavefronts without it, and 20 with it" in words_of("vectorized_access")


def test_what_06_says_of_its_own_limit():
    said = words_of("vectorized_access")
    shared, issued = (busy(BEFORE, part) for part in ("L1 and shared memory", "issue slots"))
    assert f"busy in {shared} of the clocks, and instructions were issued in {issued}" in said
    gone = 1 - len(NOW.code.loop.rows) / len(BEFORE.code.loop.rows)
    assert round(1 / gone) == 7 and "one in seven instructions of the loop has gone" in said
    for profile in (BEFORE, NOW):
        steps = profile.measured["float32_fma"] / 32 / 64
        assert round(profile.measured["shared_load_wavefronts"] / steps) == 20
    assert "still take 20 wavefronts" in said
    now = busy(NOW, "L1 and shared memory")
    assert (
        f"Shared memory, in {now} of the clocks." in said and f"busy in {now} of the clocks. Notebook" in said
    )


def peer(kernel: str, change: str = "as written", option: str = ""):
    frame = records.peers_apart()
    rows = frame[(frame["kernel"] == kernel) & (frame["change"] == change) & (frame["option"] == option)]
    (row,) = rows.itertuples()
    return row


CAPPED = "-maxrregcount=32"
UNROLLED, NO_MASK = "mask loop unrolled", "no mask"


def test_what_the_side_trip_says_of_fours_in_local_memory():
    said = words_of("one_read_too_many")
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
    told = f"explains {uncleared - fours:.1f} of the {single - fours:.1f} TFLOPS lost. The last"
    assert f"{told} {single - uncleared:.1f} may be" in said
    assert f"Without that, single loads reach {peer('v02').tflops:.1f}.)" in said
    question = asked("one_read_too_many", "v02")
    assert f"{fours}. The author" in question and f"at {peer('v02').tflops:.1f} TFLOPS" in question
    assert peer("v02").registers == 32


def test_what_the_side_trip_says_of_tall_tiles():
    said, stage = words_of("one_read_too_many"), LADDER["vectorized"]
    wide = [each for each in sweep.measured(stage) if (each.tiles["TM"], each.tiles["TN"]) == (4, 16)]
    best = max(wide, key=lambda each: each.tflops)
    assert best.tiles["BN"] // 16 == 2 and "one in which only two lanes lie side by side" in said
    best = sweep.best(stage)
    assert f"128 × 256 × 32 with 16 × 8 results per thread, {best.tflops:.0f} TFLOPS" in said
    assert [best.tiles[size] for size in ("BM", "BN", "BK", "TM", "TN")] == [128, 256, 32, 16, 8]
