"""Figures in the words of notebook 03 and of its side trip are those of the records."""

import re
from pathlib import Path

import nbformat
import numpy as np

from gemm_course import kernels, records, run
from gemm_course.checks.kits import document_002
from gemm_course.kernels import LADDER
from gemm_course.model.gpus import GPUS
from gemm_course.profiles import recorded, verdict
from gemm_course.profiles.words import percent
from gemm_course.rungs import rung_of
from gemm_course.rungs.counting import wavefronts_per_multiply_add
from gemm_course.widgets import _measured, _race
from gemm_course.widgets._costs import cost
from gemm_course.widgets._quiz import questions
from lockstep import emulate
from tests.notebooks.builder import ROOT, source_of

SQUARE = {"BM": 32, "BN": 32}
CUBE = {**SQUARE, "BK": 32}
WITHOUT, WITH = recorded("naive_coalesced", SQUARE), recorded("penny_xu_tile", CUBE)
OWN_BLOCKS = ("naive_coalesced", "block_tiled")


def words_of(notebook: str) -> str:
    """The text of a notebook's source on one line."""
    return re.sub(r"\s+", " ", source_of(notebook).replace("\n# ", " "))


SAID, TRIP = words_of("shared_memory_tiles"), words_of("kernels_on_trial")


def speed(stage: str, tiles: dict) -> float:
    return _measured.speed(LADDER[stage], tiles)


def right(question: str) -> dict:
    (option,) = (each for each in questions("shared_memory_tiles")[question]["options"] if each.get("right"))
    return option


def test_the_speeds_of_03():
    before, after = speed("naive_coalesced", SQUARE), speed("penny_xu_tile", CUBE)
    assert f"reached {before:.1f} TFLOPS on an H200" in SAID and f"Without tiles it was {before:.1f}." in SAID
    assert f"reaches **{after:.1f} TFLOPS** on an H200" in SAID
    assert f"**It reached** {after:.1f} TFLOPS" in SAID
    assert f"makes it {after / before:.1f} times as fast" in SAID
    assert f"only {after / before:.1f} times as fast" in questions("shared_memory_tiles")["waits"]["text"]


def test_a_32nd_of_the_loads_is_left():
    A = np.ones((64, 64), np.float32)
    before, after = (
        run(stage, A, A, tiles=tiles, backend="emulator").report
        for stage, tiles in (("naive_coalesced", SQUARE), ("penny_xu_tile", CUBE))
    )
    loads = [report.total("lanes", array="A", op="load") for report in (before, after)]
    assert loads[0] == 32 * loads[1] == 64**3 and "**A 32nd of the loads is left.**" in SAID
    assert f"{4096 // 32} times. An element of A" in SAID
    of_all = [one.measured["global_load_requests"] for one in (WITHOUT, WITH)]
    assert of_all[0] == 32 * of_all[1]
    reads = after.total("requests", space="shared", op="load")
    assert reads == before.total("requests", space="global", op="load")


def test_the_waits_of_03():
    was, now = (percent(one.waits["global memory"]) for one in (WITHOUT, WITH))
    queue, barrier = (percent(WITH.waits[wait]) for wait in ("queue to shared memory", "barrier"))
    asked = questions("shared_memory_tiles")["waits"]
    assert f"in {was} of their time" in asked["text"] and f"do so in {now}," in asked["text"]
    assert f"In {queue} of their time" in right("waits")["reply"] and f"part, {barrier}." in str(asked)
    assert f"These are the {now}." in str(asked)
    others = set(WITH.waits) - {"queue to shared memory", "another warp's turn", "issuing"}
    assert WITH.waits["queue to shared memory"] > max(WITH.waits[wait] for wait in others)
    assert WITH.waits["barrier"] == max(WITH.waits[wait] for wait in others)
    busy = percent(verdict(WITH).busy["L1 and shared memory"])
    assert f"the busiest part is L1 and shared memory, {busy} of the clocks" in SAID


def test_the_wavefronts_of_the_ladder():
    written, read, _ = wavefronts_of_a_step()
    assert f"a multiply-add reads {written:g}. Measured were {read:g}." in SAID


def wavefronts_of_a_step() -> tuple[float, float, float]:
    """Return those of the reads, as written and as measured, and of filling the tiles, as measured.

    A load of 32 neighbours from global memory takes one, and so does a store of C, which is left out.
    """
    row = WITH.measured
    steps = row["float32_fma"] / 32
    kernel = LADDER["penny_xu_tile"].kernel(CUBE)
    written = wavefronts_per_multiply_add(rung_of("tile_kernel"), lambda T: kernel)
    fills = (row["global_load_requests"] + row["shared_store_wavefronts"]) / steps
    return written, row["shared_load_wavefronts"] / steps, fills


def test_the_roof_of_what_was_written_lies_below_what_was_measured():
    written, read, fills = wavefronts_of_a_step()
    one = GPUS["H200"].multiprocessors * GPUS["H200"].clock_mhz * 1e6 * 64 / 1e12
    after = speed("penny_xu_tile", CUBE)
    assert fills == 4 / 32 and f"With {written:g} + 4/32 = {written + fills:g} wavefronts" in SAID
    assert f"the roof is {one / (written + fills):.1f} TFLOPS, and the kernel is above it" in SAID
    assert one / (written + fills) < after < one / (read + fills)
    assert f"counted {read:g} per step for the reads, not {written:g}." in SAID
    busy = f"{(read + fills) * after / one:.0%}".replace("%", " %")
    assert f"{read:g} + 4/32 wavefronts at {after:.1f} TFLOPS make " in SAID
    assert f"make 1.63 · {after:.1f} / {one:.1f} = {busy}." in SAID and f"{read + fills:.3f}" == "1.625"
    assert busy == percent(verdict(WITH).busy["L1 and shared memory"]) and f"in {busy} of the clocks" in SAID
    assert f"Two wavefronts would allow {one / written:.1f} TFLOPS." in SAID
    assert one / written < speed("block_tiled", CUBE)


def test_the_barriers_of_document_002():
    """With T = 4: one before the loop and one in each step. The emulator counts one for a block."""
    A, C = np.ones((4, 4), np.float32), np.zeros((4, 4), np.float32)
    counted = emulate(document_002(4), 1, (4, 4), 4, 4, 4, np.float32(1), A, A, np.float32(0), C).barriers
    assert counted == 1 + 4 and right("document")["text"].startswith(f"{1 + 32}, and 2")


def test_the_sum_can_be_wrong_in_two_ways():
    """As the text asks: late itself without the second barrier, and not without the first."""
    wrong = set()
    for missing in ("after loading", "after computing"):
        for late in ("(0, 0)", "(1, 0)", "(0, 1)", "(1, 1)"):
            tracks, _ = _race.run(missing, late)
            if any(track.thread == (1, 1) and track.wrong for track in tracks):
                wrong.add((missing, late == "(1, 1)"))
    assert wrong == {("after loading", False), ("after computing", True)}


def test_the_wavefronts_of_03():
    solved = nbformat.read(ROOT / "notebooks" / "solutions" / "03_shared_memory_tiles_solutions.ipynb", 4)
    names: dict = {}
    exec(next(cell.source for cell in solved.cells if cell.id == "own-banks-solution"), names)
    counted = {P: list(map(names["wavefronts"], names["addresses_of"](P).values())) for P in (32, 33, 34, 40)}
    assert counted == {32: [1, 1, 32], 33: [1, 1, 1], 34: [1, 1, 2], 40: [1, 1, 8]}
    column = names["addresses_of"](34)["As[tx, p]"], names["addresses_of"](40)["As[tx, p]"]
    banks = [len({address // 4 % 32 for address in each}) for each in column]
    assert f"With 34 the column hits {banks[0]} banks: 2." in SAID and f"hits {banks[1]} banks: 8." in SAID


def test_the_other_tiles_of_03():
    rows = records.sweep().query("stage == 'block_tiled' and m == 4096 and gpu == 'NVIDIA H200'")
    measured = rows.dropna(subset="tflops").set_index("tiles")["tflops"].sort_values(ascending=False)
    assert f"With 32 × 32 × 32 it reaches {measured['BM=32 BN=32 BK=32']:.1f} TFLOPS." in SAID
    assert f"16 × 32 × 64 reaches {measured['BM=16 BN=32 BK=64']:.1f} TFLOPS, and 32" in SAID
    assert f"32 × 16 × 128 reaches {measured['BM=32 BN=16 BK=128']:.1f}." in SAID
    assert f"Of {len(measured)} tiles that were measured, two reach 9." in SAID and sum(measured >= 9) == 2
    stage = LADDER["block_tiled"]
    costs = {label: cost(stage, dict(zip(("BM", "BN", "BK"), map(int, re.findall(r"\d+", label)))))
             for label in measured.index}  # fmt: skip
    assert {each.shared_loads for each in costs.values()} == {2}
    best = costs["BM=32 BN=16 BK=128"].wavefronts
    assert best == 3 and f"That would allow {16.7 / best:.1f}." in SAID
    square = costs["BM=32 BN=32 BK=32"].loads
    assert square < costs["BM=16 BN=32 BK=64"].loads and square < costs[measured.index[0]].loads


def test_what_the_side_trip_says_of_dram():
    before, after = (recorded(stage).measured for stage in OWN_BLOCKS)
    loads = before["global_load_requests"] / after["global_load_requests"]
    assert f"makes {loads:.0f} times fewer loads" in TRIP
    assert before["dram"] < after["dram"] and f"DRAM at {after['dram']:.0f} % does not limit" in TRIP
    assert round(after["dram"] / before["dram"]) == 10 and "keeps it ten times as busy" in TRIP
    once = 4 * 4096**2
    for row, strips, matrix, other in ((before, 32, "A", "B"), (after, 256, "B", "A")):
        seconds, busy = row["nanoseconds"] / 1e9, row["dram"] / 100
        by_time = GPUS["H200"].dram_tb_s * 1000 * float(f"{seconds:.3g}") * float(f"{busy:.2g}")
        by_strips = (1 + strips) * once / 1e9
        assert f"delivered({seconds:.4f}, {busy:.2g})" in TRIP
        assert f"So {other} comes once and {matrix} {strips} times: {by_strips:.1f} GB. By" in TRIP
        assert f"By the time it is {by_time:.1f} GB." in TRIP
        for figure in (by_time, by_strips):
            assert abs(figure / (row["dram_read_bytes"] / 1e9) - 1) < 0.05
    down, along = (LADDER[stage] for stage in OWN_BLOCKS)
    assert (down.tiles["BN"], along.tiles["BM"]) == (128, 16)
    assert f"a strip of 128 columns of C, then down the next, {4096 // 128} in all" in TRIP
    assert f"a strip of 16 rows, then along the next, {4096 // 16} in all" in TRIP
    assert f"has {once / 1e6:.0f} MB" in TRIP


def test_what_the_side_trip_says_of_the_order_of_blocks():
    notes = (Path(kernels.__file__).parent / "NOTES.md").read_text(encoding="utf-8")
    assert re.search(
        r"32 × 32: 9\.5 % with\s`blockIdx\.x` along the columns, 10\.1 % along the rows; 2 × 128: 10\.4 and "
        r"12\.7 %", notes
    )  # fmt: skip
    assert "reached 10.1 % of the speed" in TRIP and "along the rows 9.5 %." in TRIP
    assert "it was 12.7 and 10.4 %." in TRIP


def test_the_minutes_of_the_exercises_in_03():
    for notebook in ("shared_memory_tiles", "kernels_on_trial"):
        minutes = sum(map(int, re.findall(r"^# \*.* (\d+) minutes\*$", source_of(notebook), re.MULTILINE)))
        assert f"{minutes} for the exercises" in words_of(notebook)
