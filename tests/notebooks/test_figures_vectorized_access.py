"""Figures in the words of notebook 06 are those of the profiles."""

import re
from pathlib import Path

import pytest

from gemm_course import compiled, records
from gemm_course.kernels import LADDER
from gemm_course.model.requests import wavefronts_of
from gemm_course.profiles import recorded, verdict
from gemm_course.profiles.words import percent
from gemm_course.widgets import _measured as sweep
from gemm_course.widgets import _wavefronts
from tests.notebooks.builder import source_of

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


@pytest.mark.parametrize("notebook", ["thread_tiles_2d", "vectorized_access"])
def test_the_times_said_are_those_of_the_exercises(notebook):
    text = source_of(notebook)
    minutes = sum(map(int, re.findall(r"^# \*.* (\d+) minutes\*$", text, re.MULTILINE)))
    assert f"{minutes} for the exercises" in text


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
