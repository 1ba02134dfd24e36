"""What the notebook on scheduling says in figures is what was recorded, or what its model computes."""

import re
from pathlib import Path
from runpy import run_path
from types import SimpleNamespace
from typing import Any

import pytest

from gemm_course import records
from gemm_course.checks.kits import roles_on_trial
from gemm_course.checks.notebooks.last_per_cent.best_width import best_width
from gemm_course.checks.notebooks.last_per_cent.last_wave import last_wave
from gemm_course.kernels.c07_stream_k_fp16 import STEP as best_width_steps
from gemm_course.kernels.c07_stream_k_fp16 import steps_if_shared, steps_in_waves
from gemm_course.model.schedule import (
    FIRST,
    OVERLAPPED,
    PER_TILE,
    PERSISTENT,
    SCHEDULES,
    STEP,
    STORE,
    STREAM_K,
    WIDTHS,
    schedule,
)
from gemm_course.profiles import recorded
from gemm_course.widgets import _quiz
from gemm_course.widgets._schedule import SIZES, draw
from tests.notebooks.builder import ROOT, source_of
from tests.wrong_solutions.altering import changed, solution

IMPORTS = """from numba import cuda
from numba.types import float16
from gemm_course.checks.kits import clear, finish, give_back, multiply, order, queue, store
from lockstep.intrinsics import mbarrier_wait"""


def ring_roles(folder: Path, produce_anew: bool = False, consume_anew: bool = False) -> tuple[Any, Any]:
    """Return the solution of ``ring_goes_on``; its slot and parity may start again with each tile."""
    loop, cell = "while tile < tiles:\n", solution("ring_goes_on").rpartition("check.")[0]
    produce, consume = cell.split("\n\n\n")[:2]
    for anew, role in ((produce_anew, produce), (consume_anew, consume)):
        if anew:
            cell = cell.replace(role, changed(role, (loop, f"{loop}        slot, parity = 0, 0\n")))
    file = folder / "roles.py"
    file.write_text(f"{IMPORTS}\n\n\n{cell}", "utf-8")
    made = run_path(str(file))
    return made["produce"], made["consume"]


def on_one_line(text: str) -> str:
    lines = text.splitlines()
    return re.sub(r"\s+", " ", " ".join(line.removeprefix("#") for line in lines))


@pytest.fixture
def said() -> str:
    return on_one_line(source_of("last_per_cent")) + str(_quiz.questions("last_per_cent"))


NOTES = on_one_line((ROOT / "gemm_course/kernels/NOTES.md").read_text("utf-8"))


@pytest.mark.parametrize(
    "words",
    [
        "| all | 282,600 | 273,000 |",
        "A and B full of zeros | 271 | 58.9 % (cuBLAS 861)",
        "cuBLAS alone reaches 757 to 779 TFLOPS",
        "two thirds are at the two ends",
        "Sharing costs 24 µs, some 30 steps",
        "33 MB of parts",
        "| 2048³ | 0.942 | 0.709 | 0.666 |",
        "| 5120³ | 0.932 | 0.949 | 0.971 | 1.008 | **1.013** |",
    ],
)
def test_the_notes_say_so_as_well(words):
    assert words in NOTES


def test_the_model_of_the_picture_is_near_the_clocks_that_were_counted():
    assert schedule(4096, 256, OVERLAPPED).clocks == pytest.approx(273_000, rel=0.01)
    assert schedule(8192, 256, OVERLAPPED).clocks == pytest.approx(2_120_000, rel=0.01)
    assert schedule(4096, 256, PER_TILE).clocks == pytest.approx(320_000, rel=0.01)


@pytest.mark.parametrize("kind", SCHEDULES)
def test_nothing_is_computed_twice_or_left_out(kind):
    for size in (1024, 3072, 5120):
        run = schedule(size, 256, kind)
        tile = size // 64 * 1025
        work = sum(s.blocks * (s.end - s.begin) for s in run.stretches if s.what in ("multiplies", "parts"))
        assert work == pytest.approx(run.tiles * tile)
        assert (run.tiles, run.waves, run.last) == last_wave.right(size, size, 128, 256)


def test_the_opening(said):
    now = schedule(3072, 256, PER_TILE)
    assert f"{now.multiplying * now.clocks / 1000:.0f} instead of {now.clocks / 1000:.0f}" in said
    assert f"the blue is {100 * now.multiplying:.0f} % of the picture" in said
    idle = (132 - now.last) * (now.clocks - (FIRST + 48 * STEP + STORE) * 2)
    assert idle / (132 * now.clocks) == pytest.approx(0.27, abs=0.005) and "A quarter is white" in said
    assert f"{FIRST:,}".replace("40", "00") + " clocks in the picture" in said
    stay = schedule(4096, 256, PERSISTENT).clocks / schedule(4096, 256, PER_TILE).clocks
    assert f"The picture promises {100 * (1 - stay):.0f}:" in said
    assert f"The picture's {100 * (1 - stay):.0f} % are a model's" in said


def test_the_hunts(said):
    empty = {size: 1 - schedule(size, 256, PER_TILE).tiles / 132 / schedule(size, 256, PER_TILE).waves
             for size in SIZES if size >= 2048}  # fmt: skip
    assert max(empty, key=empty.get) == 3072 and f"{100 * empty[3072]:.0f} % are empty" in said
    assert sorted(empty, key=empty.get)[:2] == [3584, 7168] and "3584 and 7168 waste least, 1 %" in said
    assert round(100 * empty[3584]) == round(100 * empty[7168]) == 1
    width = {BN: schedule(3072, BN, PER_TILE).clocks for BN in WIDTHS}
    assert min(width, key=width.get) == 192
    gains = {
        size: schedule(size, 256, STREAM_K).clocks / schedule(size, 256, OVERLAPPED).clocks for size in empty
    }
    assert [size for size in (3072, 4096, 5120, 6144) if gains[size] < 1] == [3072, 5120]
    assert [schedule(size, 256, STREAM_K).last for size in (3072, 5120)] == [24, 8]
    assert "At which of 3072, 4096, 5120 and 6144" in said
    assert "3072 and 5120: 24 and 8 tiles are left" in said


def test_the_widths_that_are_chosen():
    assert [best_width.right(s, s) for s in (1024, 2048, 3072, 4096, 8192)] == [64, 256, 192, 256, 192]


def test_the_widths_as_measured(said):
    asked = records.one_change().query("question == 'width of a tile'")
    share = (asked.tflops / asked.cublas_tflops).groupby([asked.change, asked["size"]]).first()
    for width in (64, 128, 192, 256):
        assert f"| {width} | " + " | ".join(f"{each:.3f}" for each in share[f"BN {width}"]) + " |" in said
    assert "1.8 times" in said and round(share["BN 64", 1024] / share["BN 256", 1024], 1) == 1.8
    for size in (1024, 2048, 3072, 4096, 8192):
        assert share.xs(size, level="size").idxmax() == f"BN {best_width.right(size, size)}"
    assert share["BN 256", 2048] == pytest.approx(share["BN 128", 2048], abs=0.005)


def test_two_parts_cost_where_they_spill(said):
    asked = records.one_change().query('question == "parts of a tile\'s results"').set_index("change")
    share = asked.tflops / asked.cublas_tflops
    assert asked.local_bytes[asked.local_bytes > 0].to_dict() == {"2 parts": 256}
    assert share.drop("2 parts").between(0.98, 1.01).all() and share["2 parts"] < 0.965
    assert "spills](glossary.md#spilling) 256 bytes per thread." in said
    assert "Written in steps 0 and 8, not 0 and 2, two parts spill nothing" in said
    swept = records.sweep().query("stage == 'overlapped_store'").set_index("tiles").tflops
    sizes = "BM=128 BN=256 BK=64 WM=64 SLOTS={} GROUP=16 PARTS={} BLOCKS=132"
    speeds = (swept[sizes.format(*each)] for each in ((4, 2), (4, 4), (3, 1)))
    two, four, one = (f"{each:.0f}" for each in speeds)
    assert f"Four parts have {four}, one has {one}, and two have {two}." in said
    assert "SLOTS must be 3" in said
    # What Cs takes beside the slots, of 48 KB each.
    taken = records.sweep().query("stage == 'overlapped_store'").set_index("tiles").shared_bytes
    rooms = [taken[sizes.format(slots, parts)] - slots * 49152 for slots, parts in ((3, 1), (4, 2), (4, 4))]
    assert rooms[0] > 4 * 16384 - 2048 and rooms[1] - rooms[2] == 16384 and "Cs takes half the room" in said


def test_the_trial_of_shared_tiles(said):
    (row,) = re.findall(r"\| 5120³ \| ([^|]*) \| [^|]* \| ([^|]*) \| [^|]* \| \*\*(.*?)\*\* \|", NOTES)
    before, shared, cut = row
    assert f"had {before} of cuBLAS without sharing, and {shared} with it." in said
    assert f"four narrow ones before, and it had {cut}.)" in said


def test_clocks_against_time(said):
    stages = "warp_specialised", "persistent", "staged_store", "overlapped_store"
    assert ", ".join(f'"{stage}"' for stage in stages) in said
    measured = [recorded(stage, None).measured for stage in stages]
    mhz = [1000 * each["clocks"] / each["nanoseconds"] for each in measured]
    assert "{:,.0f}, {:,.0f}, {:,.0f} and {:,.0f} MHz".format(*mhz) in said

    def falls(name: str, to: int) -> str:
        return f"{100 * (1 - measured[to][name] / measured[0][name]):.0f}"

    assert f"the clocks fall by {falls('clocks', 3)} %, the time by {falls('nanoseconds', 3)}." in said
    assert f"saves {falls('clocks', 1)} % of the clocks, but {falls('nanoseconds', 1)} % of the time" in said


def test_how_far_it_is(said):
    shares = 4 * 64 * 1024 / 273_000, 512 / (4 * 132)
    product = shares[0] * shares[1]
    assert "{:.2f} of the clocks, {:.2f} of the places, together {:.2f}".format(*shares, product) in said
    assert f"**{100 * product:.0f} % of what the Tensor Cores can do.**" in said
    assert "`overlapped_store` at 4096³ takes 273,000 clocks" in said


def test_speeds(said):
    ladder = records.ladder().query("m == n == k")
    cube = ladder.query("m == 4096").set_index("stage")
    tflops = cube.tflops.round().astype(int)
    share = round(100 * cube.ratio_to_cublas["warp_specialised"])
    assert f"reached {tflops['warp_specialised']} TFLOPS on an H200, {share} % of cuBLAS" in said
    assert f"reached {tflops['persistent']} TFLOPS, after {tflops['warp_specialised']}: 1 %" in said
    more = 100 * (tflops["overlapped_store"] / tflops["persistent"] - 1)
    assert f"{tflops['overlapped_store']}: {more:.0f} % more" in said
    assert f"`staged_store`, {tflops['staged_store']}" in said
    assert f"and it has {tflops['staged_store']} TFLOPS already" in said
    cublas = cube.cublas_tflops["overlapped_store"]
    assert f"**It reached** {tflops['overlapped_store']} TFLOPS" in said and f"cuBLAS at {cublas:.0f}" in said
    small = ladder.query("m == 1024 and stage == 'stream_k_fp16'").milliseconds.item()
    assert round(1000 * small) == 9 and "a launch takes 9 microseconds" in said


def test_our_store_behind_the_next_products_is_right(tmp_path):
    """The lines in the fold are the body of the function that the learner writes."""
    source = source_of("last_per_cent")
    (body,) = re.findall(r"# ```python\n(.*?)# ```", source, re.DOTALL)
    shown = re.search(r"@cuda\.jit\(device=True\)\ndef consume_behind.*?float16\)\n", source, re.DOTALL)[0]
    lines = (f"    {line.removeprefix('#').removeprefix(' ')}\n" for line in body.splitlines())
    start = "    slot, parity = 0, 0\n    tile = cuda.blockIdx.x\n"
    file = tmp_path / "behind.py"
    file.write_text(f"{IMPORTS}\n\n\n{shown}{start}{''.join(lines)}", "utf-8")
    behind = run_path(str(file))["consume_behind"]
    for blocks, steps in ((1, 5), (2, 5), (3, 1)):
        said = roles_on_trial(ring_roles(tmp_path)[0], behind, slots=4, steps=steps, blocks=blocks)
        assert said == "right"


@pytest.mark.parametrize("anew", [(False, True), (True, False), (True, True)])
def test_a_ring_that_starts_again_passes_only_with_twice_the_slots(anew, said, tmp_path):
    roles = ring_roles(tmp_path, *anew)
    results = {n: roles_on_trial(*roles, slots=4, steps=n) for n in range(1, 10)}
    assert [n for n, result in results.items() if result == "right"] == [8]
    assert "Only with 8, twice the slots" in said
    assert roles_on_trial(*ring_roles(tmp_path), slots=4, steps=5) == "right"


def test_the_picture_says_what_it_shows():
    alt = draw("stream-K", 256, 3072).alt
    assert "288 tiles: 3 waves of up to 132, 24 tiles in the last" in alt and "share the steps" in alt
    assert "a second launch" in alt
    assert "27\u00a0% of the places in waves are empty" in draw(PER_TILE, 256, 3072).alt
    assert "16 SMs are idle in the last wave" in draw(PER_TILE, 256, 4096).alt


def test_what_the_side_trip_says_of_ten_shapes():
    ten = [(size,) * 3 for size in (1024, 2048, 3072, 4096, 5120, 8192)]
    ten += [(4096, 14336, 4096), (8192, 1024, 8192), (16384, 16384, 2048), (4096, 4096, 16384)]
    ladder = records.ladder().query("stage == 'stream_k_fp16'").set_index(["m", "n", "k"]).loc[ten]
    own = [records.parse_tiles(text)["BN"] for text in ladder.tiles]
    other = [shape[0] for shape, width in zip(ten, own) if best_width.right(*shape[:2]) != width]
    assert other == [5120, 8192]
    shares = ladder.ratio_to_cublas
    assert round(shares.prod() ** (1 / len(ten)), 2) == 1
    assert [round(share, 2) for share in sorted(shares)[:3]] == [0.93, 0.96, 0.99]
    assert list(shares.sort_values().index[:3]) == [(1024,) * 3, (2048,) * 3, (3072,) * 3]


def test_where_the_stage_of_the_side_trip_shares():
    told = on_one_line(source_of("ten_shapes"))
    ladder = records.ladder().query("stage == 'stream_k_fp16' and m == n == k").set_index("m")
    for size, shares in ((3072, False), (5120, True), (8192, True)):
        chosen = SimpleNamespace(**records.parse_tiles(ladder.tiles[size]))
        assert shares == (steps_if_shared(chosen, *[size] * 3) < steps_in_waves(chosen, *[size] * 3))
        steps, (_, waves, _) = size // 64, last_wave.right(size, size, 128, 192)
        tiles = -(-size // 128) * -(-size // 256)
        shared = tiles // 132 * steps + tiles % 132 / 132 * steps + 30
        narrow = waves * steps * best_width_steps[192]
        assert f"| {size}³ | {narrow:,.0f} | {shared:,.0f} |" in told
        assert shares == (shared < narrow)


def test_what_the_side_trip_says_of_cublas_beside_stages():
    halves = records.ladder().query("dtype == 'fp16' and m == n == k == 8192 and stage != 'wmma_fp16_acc'")
    assert (halves.cublas_tflops.min().round(), halves.cublas_tflops.max().round()) == (642, 726)
    assert round(halves.tflops.corr(halves.cublas_tflops), 2) == -0.93
    assert list(halves.stage[halves.date != halves.date.mode().item()]) == ["wmma"]
    fastest, lowest = halves.nlargest(6, "tflops"), halves.nsmallest(6, "cublas_tflops")
    assert set(fastest.stage) == set(lowest.stage)
