"""What warp_tiles and tensor_cores say in figures is what was recorded."""

import re
from itertools import permutations

import numpy as np
import pytest

from gemm_course import records
from gemm_course.figures.wavefronts import agreeing
from gemm_course.kernels import LADDER, tiles_text
from gemm_course.launching import run as run_stage
from gemm_course.model.formulas import document_003
from gemm_course.model.requests import wavefronts_of
from gemm_course.model.tensor_cores import adds
from gemm_course.model.warp_reads import request
from gemm_course.profiles import recorded, verdict
from gemm_course.widgets import _owners, _quiz, _tiles, _warp_reads
from gemm_course.widgets._fragments import PADS, WIDTHS, draw_rows, held
from lockstep import wavefronts
from lockstep.limits import MAX_REGISTERS
from tests.notebooks.builder import ROOT, source_of

SQUARE = {"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8, "PAD": 0}
SUSPECTS = ({"BK": 16}, {"PAD": 0}, {})  # X, Y and Z of tensor_cores
WMMA = {"BM": 128, "BN": 128, "BK": 64, "WM": 64, "WN": 64, "PAD": 8}


def said_in(name: str) -> str:
    """The text of a notebook's source and of its questions, on one line."""
    lines = source_of(name).splitlines()
    questions = str(_quiz.questions(name))
    return re.sub(r"\s+", " ", " ".join(line.removeprefix("#") for line in lines) + questions)


@pytest.fixture
def in_warp_tiles() -> str:
    return said_in("warp_tiles")


@pytest.fixture
def in_warp_loops() -> str:
    lines = source_of("warp_loops").splitlines()
    return re.sub(r"\s+", " ", " ".join(line.removeprefix("#") for line in lines))


def profile(stage: str, **tiles: int):
    return recorded(stage, tiles or None)


def issue_slots(found) -> str:
    return f"{100 * found.measured['issued']:.0f} %"


def shares(found, *waits: str) -> list[str]:
    return [f"{100 * found.waits[name]:.0f} %" for name in waits]


def test_what_the_lanes_of_warp_tiled_bring(in_warp_tiles):
    before, after = profile("vectorized", **SQUARE), profile("warp_tiled")
    assert SQUARE.items() <= LADDER["warp_tiled"].tiles.items()
    gain = f"{100 * (after.tflops / before.tflops - 1):.0f} %"
    told = f"{before.tflops:.0f} TFLOPS become **{after.tflops:.0f}**: {gain} more"
    assert told in in_warp_tiles and f"reached {before.tflops:.0f} TFLOPS" in in_warp_tiles
    assert f"with 20 wavefronts it was {before.tflops:.0f}" in in_warp_tiles
    assert f"**It reached** {after.tflops:.0f} TFLOPS" in in_warp_tiles
    (was,), (now,) = shares(before, "shared memory"), shares(after, "shared memory")
    assert f"The wait falls from {was.removesuffix(' %')} to {now}" in in_warp_tiles
    assert f"spends {was} of its time waiting for shared memory" in in_warp_tiles
    per_fma = {f"{each.measured['warp_instructions'] * 32 / 4096**3:.2f}" for each in (before, after)}
    assert per_fma == {"1.16"} and "Both kernels issue as many instructions" in in_warp_tiles
    assert before.measured["registers"] == after.measured["registers"]
    others = {name: share for name, share in after.waits.items() if name != "issuing"}
    assert max(others, key=others.get) == "another warp's turn"
    assert verdict(before).limiter == "L1 and shared memory"
    assert "shared memory is the busiest part of the SM" in in_warp_tiles


def _shared_memory(found) -> str:
    clocks = found.measured["clocks"] / found.measured["active_clocks"]
    return f"{found.measured['l1_data'] * clocks:.0f} %"


def test_the_table_of_layouts_in_the_docs():
    page = (ROOT / "docs" / "what_limits_it.md").read_text("utf-8")
    steps = 4096**3 / (32 * 64)  # k steps of all warps, 64 results per thread
    cases = [(2, 16, "in one piece", profile("vectorized", **SQUARE))]
    for rows, columns in ((2, 16), (4, 8), (8, 4), (16, 2)):
        tiles = LADDER["warp_tiled"].tiles | {"WM": 8 * rows, "WN": 8 * columns}
        cases.append((rows, columns, "runs of four", profile("warp_tiled", **tiles)))
    for rows, columns, run, found in cases:
        assert found.measured["registers"] == 128
        counted = int(found.measured["shared_load_wavefronts"] / steps)
        assert counted == of_a_k_step(rows, columns, 8 if run == "in one piece" else 4)
        busy, told = _shared_memory(found), f"{found.tflops:.1f} |"
        assert found.tflops <= profile("warp_tiled", WM=16, WN=128).tflops
        warp_tile = f"{8 * rows} × {8 * columns}"
        slots = issue_slots(found)
        line = f"| {rows} × {columns} | {warp_tile} | {run} | {counted} | {busy} | {slots} | {told}"
        assert line in page


def test_wavefronts_decide_and_not_the_way_there(in_warp_tiles):
    page = (ROOT / "docs" / "what_limits_it.md").read_text("utf-8")
    found = records.lane_layouts().set_index(["lane_rows", "lane_columns", "elements"])
    times = found["milliseconds"]
    assert len(times) == 8 and set(found["registers"]) == {128}
    for (rows, columns), of_both in times.groupby(level=[0, 1]):
        ms = [of_both[rows, columns, elements] for elements in ("side by side", "runs of four")]
        counts = [of_a_k_step(rows, columns, run) for run in (8, 4)]
        told = " | ".join(f"{count} wavefronts: {each:.2f} ms" for count, each in zip(counts, ms))
        assert f"| {rows} × {columns} | {told} |" in in_warp_tiles
        assert f"| {rows} × {columns} | {ms[0]:.2f} | {ms[1]:.2f} |" in page
    usual = times[4, 8, "runs of four"]
    for rows, columns, elements in ((8, 4, "side by side"), (2, 16, "runs of four"), (16, 2, "runs of four")):
        assert times[rows, columns, elements] == pytest.approx(usual, rel=0.02)
        assert f"{times[rows, columns, elements]:.2f}" in str(_quiz.questions("warp_tiles")["eight"])
    assert times[4, 8, "side by side"] == pytest.approx(times[2, 16, "side by side"], rel=0.001)
    assert "4 × 8 lanes read 96 different elements, 2 × 16 read 144" in in_warp_tiles
    assert "in one piece both take 3.59 ms" in in_warp_tiles
    cured = 2e-9 * 4096**3 / times[8, 4, "runs of four"]
    assert f"It should come to {cured:.0f}." in in_warp_tiles
    assert (8 * (4 + 8), 8 * (2 + 16)) == (96, 144)


def test_the_profiles_of_the_layouts_took_as_long():
    times = records.lane_layouts().set_index(["lane_rows", "lane_columns", "elements"])["milliseconds"]
    alone = {(2, 16, "side by side"): profile("vectorized", **SQUARE)}
    for rows, columns in ((2, 16), (4, 8), (8, 4), (16, 2)):
        tiles = LADDER["warp_tiled"].tiles | {"WM": 8 * rows, "WN": 8 * columns}
        alone[rows, columns, "runs of four"] = profile("warp_tiled", **tiles)
    for layout, found in alone.items():
        assert times[layout] == pytest.approx(2e-9 * 4096**3 / found.tflops, rel=0.01)


def of_both_tiles(rows: int, columns: int, run: int) -> tuple[int, int]:
    """Wavefronts of a k step's reads of As, and of Bs, 8 × 8 results per lane in runs of ``run``."""
    bits, totals = 32 * min(run, 4), []
    for across, lanes in ((lambda lane: lane // columns, rows), (lambda lane: lane % columns, columns)):
        firsts = [i // run * run * lanes + i % run for i in range(0, 8, bits // 32)]
        words = [[first + across(lane) * run for lane in range(32)] for first in firsts]
        totals.append(sum(wavefronts(each, bits, "load") for each in words))
    return tuple(totals)


def of_a_k_step(rows: int, columns: int, run: int) -> int:
    return sum(of_both_tiles(rows, columns, run))


def test_wavefronts_of_all_layouts(in_warp_tiles):
    for rows, columns in ((2, 16), (4, 8), (8, 4), (16, 2)):
        counts = [of_a_k_step(rows, columns, run) for run in (8, 4)]
        assert f"| {rows} × {columns} | {counts[0]} | {counts[1]} |" in in_warp_tiles
        for run, counted in zip((8, 4), counts):
            asked = [request(rows, columns, run, 128, array) for array in ("As", "Bs")]
            assert counted == 2 * sum(map(wavefronts_of, asked))
            name = next(name for name, value in _warp_reads.RUNS.items() if value == run)
            alt = _warp_reads.draw_step(f"{rows} × {columns}", name, "Bs").alt
            assert f"{rows} × {columns} lanes, {name}: {counted} wavefronts per step" in alt


def test_layouts_beside_the_eight(in_warp_tiles):
    narrow = [of_a_k_step(32, 1, run) for run in (8, 4)]
    assert "32 × 1 lanes need {} in one piece, and {} in runs of four".format(*narrow) in in_warp_tiles
    assert f"Runs of two take {of_a_k_step(4, 8, 2)} with 4 × 8 lanes" in in_warp_tiles
    layouts = [(2**i, 32 // 2**i) for i in range(6)]
    assert min(of_a_k_step(*lanes, run) for lanes in layouts for run in (1, 2, 4, 8)) == 8
    assert of_a_k_step(16, 2, 4) == 8 and "With 16 × 2 lanes in runs of four it is 8" in in_warp_tiles


def test_in_which_layouts_turns_join(in_warp_tiles):
    joined = {
        (lanes, array): {agreeing(request(*lanes, run, 128, array)) > 0 for run in (8, 4)}
        for lanes in ((2, 16), (4, 8), (8, 4), (16, 2))
        for array in ("As", "Bs")
    }
    assert all(joined[lanes, "As"] == {True} for lanes, _ in joined)
    assert [lanes for lanes, array in joined if joined[lanes, array] != {True}] == [(2, 16), (4, 8), (8, 4)]
    assert "For As all four are true" in in_warp_tiles and "For Bs only 16 × 2 is" in in_warp_tiles
    assert wavefronts_of(request(16, 2, 8, 128, "As")) == 4
    assert (
        wavefronts_of(request(8, 4, 8, 128, "As")) == 2 and "As takes 4 wavefronts instead" in in_warp_tiles
    )


def test_the_worked_examples(in_warp_tiles):
    assert wavefronts_of(request(8, 4, 8, 32, "As")) == 2 and "That takes **2** wavefronts" in in_warp_tiles
    assert wavefronts_of(request(4, 8, 8, 128, "Bs")) == 8 and "That takes 4 · 2 = **8**" in in_warp_tiles
    assert wavefronts([lane % 4 * 4 for lane in range(32)], 128, "load") == 4
    (right,) = [each for each in _quiz.questions("warp_tiles")["small"]["options"] if each.get("right")]
    assert right["text"] == "4"


def test_the_roofs_of_an_unseen_kernel():
    found = {"multiply-adds": 64 / 4, "issue slots": 1.2 * 64 / 4, "shared memory": 24}
    options = [each["text"] for each in _quiz.questions("warp_tiles")["unseen"]["options"]]
    for part, clocks in found.items():
        assert f"{67 * 16 / clocks:.0f} TFLOPS: {part}" in options
    assert f"{67 * 16 / sum(map(round, found.values())):.0f} TFLOPS: 16 + 19 + 24 clocks" in options


def test_what_the_explorer_says_of_warp_tiled(in_warp_tiles):
    stage = LADDER["warp_tiled"]
    facts = _tiles.choice(stage, stage.tiles).alt
    assert "wavefronts per warp-wide FMA (source) 0.25" in facts and of_a_k_step(4, 8, 4) == 12
    assert "wavefronts here are those of the source" in in_warp_tiles
    measured = records.sweep().query("stage == 'warp_tiled'").set_index("tiles")
    large = measured.loc[tiles_text({**stage.tiles, "BM": 256, "BN": 256})]
    assert large["registers"] == 64 == 65_536 // 1024 and "*Registers, 64 per thread.*" in in_warp_tiles
    usual = measured.loc[tiles_text(stage.tiles)]
    assert f"falls from {usual['tflops']:.0f} to {large['tflops']:.1f} TFLOPS" in in_warp_tiles
    assert f"{large['local_bytes']:.0f} bytes of each thread" in in_warp_tiles and usual["local_bytes"] == 0
    of_large = _tiles.choice(stage, {**stage.tiles, "BM": 256, "BN": 256}).alt
    for alt, loads in ((facts, "0.01562"), (of_large, "0.007812")):
        assert f"global loads per multiply-add {loads}" in alt and "FMA (source) 0.25" in alt
        assert "sectors per load request 16" in alt and "shared loads per multiply-add 0.25" in alt


def test_runs_are_sub_tiles(in_warp_loops):
    t = LADDER["warp_tiled"].tiles
    down, right = (document_003.wmiter(t["WM"], t["WN"], 4, 4, 2), 2)
    assert (4 * down, 4 * right) == (t["TM"], t["TN"])
    assert "TM = TN = 4, and WMITER = WNITER = 2" in in_warp_loops
    rows, columns = document_003.wsub(t["WM"], t["WN"], 4, 4, 2)
    assert (rows, columns) == (4 * t["WM"] // t["TM"], 4 * t["WN"] // t["TN"])  # from run to run
    assert f"WSUBM = {rows} and WSUBN = {columns}" in in_warp_loops
    lanes = t["WM"] // t["TM"], t["WN"] // t["TN"]
    assert (
        "the lanes stand {} × {} in a warp tile of {} × {}".format(*lanes, t["WM"], t["WN"]) in in_warp_loops
    )


def test_hide_and_seek(in_warp_loops):
    places = {"003: TN 8, WNITER 1": (1, 1), "003: TN 4, WNITER 1": (0, 5), "003: TN 8, WNITER 2": (2, 1)}
    for kernel, (row, column) in places.items():
        assert (
            f"lane 5: row {row}, column {column} of the lanes"
            in _owners.draw(kernel, "block", "warp", 0, 5).alt
        )
    assert "lane 5 stands in row 1, column 1 of the lanes" in in_warp_loops
    assert "In the other two kernels it stands in row 0 and in row 2" in in_warp_loops


def test_where_threads_begin(in_warp_tiles):
    name = next(iter(_owners._kernels_of("warp_tiled")))
    found = {tid: tuple(map(int, _owners.owner_map(name).elements(tid)[0])) for tid in (5, 45, 75)}
    assert found == {5: (0, 20), 45: (4, 52), 75: (36, 12)} and name.endswith("4 × 8 lanes")
    assert "{5: (0, 20), 45: (..., ...), 75: (..., ...)}" in source_of("warp_tiles")
    places = sum(64 * row + column for row, column in found.values())
    assert f"must be {places}\n" in source_of("warp_tiles")
    rows = sorted({row for row, _ in _owners.owner_map(name).elements(0).tolist()})
    assert rows == [0, 1, 2, 3, 16, 17, 18, 19]
    assert "0–3, 4–7, 8–11 and 12–15, and the second run of the first lane is 16–19" in in_warp_tiles


def test_one_change_of_a_slider_breaks_the_tiles_of_document_003(in_warp_loops):
    stage = LADDER["warp_tiled_tm1"]
    changes = [(name, value) for name, values in stage.options.items() for value in values]
    broken = {change: stage.rules(dict([change])) for change in changes if stage.rules(dict([change]))}
    assert list(broken) == [("WN", 128)] and "need 296 registers; 223 are available" in str(broken)
    assert 32 * 8 + 32 + 8 == 296 and MAX_REGISTERS - 32 == 223
    assert "296 numbers" in in_warp_loops and "223, a rule of thumb" in in_warp_loops


def test_what_limits_warp_tiled(in_warp_tiles):
    usual, eight = (
        profile("warp_tiled"),
        profile("warp_tiled", **LADDER["warp_tiled"].tiles | {"WM": 128, "WN": 16}),
    )
    assert verdict(usual).limiter == verdict(eight).limiter == "issue slots"
    slots, adds = issue_slots(usual), 4096**3 / 32 / usual.measured["warp_instructions"]
    assert f"an instruction in {slots} of the clocks, {100 * adds:.0f} % of them" in in_warp_tiles
    assert f"the other {100 - int(slots.removesuffix(' %'))} %" in in_warp_tiles


def test_requests_and_wavefronts_of_three_kernels(in_warp_tiles):
    found = {"X": profile("warp_tiled"), "Y": profile("warp_tiled_tm1"), "Z": profile("vectorized", **SQUARE)}
    steps = 4096**3 / (32 * 64)
    for letter, each in found.items():
        names = ("shared_load_requests", "shared_load_wavefronts")
        reads, taken = (each.measured[name] / steps for name in names)
        assert f"| {letter} | {reads:.0f} | {taken:.0f} |" in in_warp_tiles
    question = _quiz.questions("warp_tiles")["rival"]
    (right,) = [each for each in question["options"] if each.get("right")]
    order = sorted(found, key=lambda letter: found[letter].tflops)
    assert order == ["Y", "Z", "X"] and right["text"] == "Y and Z alike, then X"
    assert found["Z"].tflops / found["Y"].tflops < 1.02 < found["X"].tflops / found["Z"].tflops
    assert (
        "{:.0f}, {:.0f} and {:.0f} TFLOPS: Y and Z".format(*(found[each].tflops for each in order))
        in right["reply"]
    )
    per_fma = [found[each].measured["warp_instructions"] * 32 / 4096**3 for each in "XY"]
    assert per_fma[1] - per_fma[0] == pytest.approx((10 - 4) / 64, rel=0.01)
    assert "{:.2f} + 6 / 64 = {:.2f}".format(*per_fma) in right["reply"]
    issuing = {
        letter: found[letter].measured["warp_instructions"] * 32 / 4096**3 * 64 / 4 for letter in found
    }
    filling = {each.measured["shared_store_wavefronts"] / steps for each in found.values()}
    assert filling == {2.5}
    reads = {"Z": 20, "Y": 16, "X": 12}
    together = " | ".join(f"{reads[letter] + 2.5:g}" for letter in "ZYX")
    issued = " | ".join(f"{float(f'{issuing[letter]:.1f}'):g}" for letter in "ZYX")
    text = source_of("warp_tiles")
    assert f"| **all wavefronts** | {together} |" in text
    assert f"| **instructions, four per clock** | {issued} |" in text


def test_the_reads_of_document_003s_kernel(in_warp_tiles):
    t = LADDER["warp_tiled_tm1"].tiles
    assert {name: t[name] for name in ("BM", "BN", "BK")} == {
        name: SQUARE[name] for name in ("BM", "BN", "BK")
    }
    down = document_003.wmiter(t["WM"], t["WN"], t["TM"], t["TN"], t["WNITER"])
    rows, columns = document_003.wsub(t["WM"], t["WN"], t["TM"], t["TN"], t["WNITER"])
    assert (down, rows, columns, t["TN"]) == (8, 8, 32, 8)
    assert "8 × 4 lanes stand in a warp tile of 64 × 32" in in_warp_tiles
    one = wavefronts([lane // 4 for lane in range(32)], 32, "load")
    four = wavefronts([lane % 4 * 8 for lane in range(32)], 128, "load")
    assert (one, four) == (1, 4) and 8 * one + 2 * four == 16
    assert "Eight reads of one wavefront, and two of four turns with one each" in in_warp_tiles


@pytest.fixture
def in_tensor_cores() -> str:
    return said_in("tensor_cores")


@pytest.fixture
def in_fp16_in_use() -> str:
    lines = source_of("fp16_in_use").splitlines()
    return re.sub(r"\s+", " ", " ".join(line.removeprefix("#") for line in lines))


def test_the_lost_labels(in_tensor_cores):
    found = [profile("wmma", **WMMA | change) for change in SUSPECTS]
    busy = [verdict(each).busy for each in found]
    rows = {
        "Tensor Cores are busy": [100 * each["Tensor Cores"] for each in busy],
        "shared memory is busy": [100 * each["L1 and shared memory"] for each in busy],
        "L2 is busy": [100 * each["L2"] for each in busy],
        "a warp waits for copies": [100 * each.waits["copies"] for each in found],
        "a warp waits for shared memory": [100 * each.waits["shared memory"] for each in found],
    }
    for name, shares in rows.items():
        assert f"| {name} | " + " | ".join(f"{share:.0f} %" for share in shares) + " |" in in_tensor_cores
    assert found[2].tflops == max(each.tflops for each in found)
    assert "Z is `wmma` as it is, the fastest" in in_tensor_cores


def test_what_stops_wmma_now(in_tensor_cores):
    found = profile("wmma")
    assert verdict(found).waiting and max(verdict(found).busy.values()) < 0.7
    assert "No part of the GPU is busy in 70 % of the clocks" in in_tensor_cores
    others = {name: share for name, share in found.waits.items() if name != "copies"}
    assert found.waits["copies"] > max(others.values())
    assert "for copies more than for anything else" in in_tensor_cores


def test_clocks_of_the_products_of_a_step(in_tensor_cores):
    """An mma of 2,048 multiply-adds keeps one of four Tensor Cores busy for 6 clocks, not 4."""
    row = profile("wmma").measured
    clocks = row["tensor_pipe"] / 100 * row["clocks"] / (row["mma_instructions"] / (4 * 132))
    assert row["mma_instructions"] == 4096**3 / (16 * 8 * 16) and 16 * 8 * 16 / 512 == 4
    assert clocks == pytest.approx(6, abs=0.01) and 16 * 2 * 6 / 4 == 48
    assert "half as long again as the data sheet says: 48 clocks for these 16 products" in in_tensor_cores
    assert 16 * 4096 / 2048 == 8 * 4 == 32 and "32 and 32: a dead heat" in in_tensor_cores


def test_what_wmma_reached(in_tensor_cores):
    rows = records.ladder().query("m == n == k == 4096").set_index("stage")
    tflops = rows["tflops"]
    assert f"`warp_tiled` reached {tflops['warp_tiled']:.0f} TFLOPS" in in_tensor_cores
    times, share = tflops["wmma"] / tflops["warp_tiled"], rows["ratio_to_cublas"]["wmma"]
    assert (
        f"{tflops['wmma']:.0f} TFLOPS on an H200, {times:.0f} times as many as `warp_tiled`, and "
        f"{100 * share:.0f} % of cuBLAS" in in_tensor_cores
    )


def test_the_table_of_bk_and_pad():
    sweep = records.sweep().query("stage == 'wmma'").dropna(subset="tflops")
    speeds = {tuple(records.parse_tiles(row.tiles).items()): row.tflops for row in sweep.itertuples()}
    for pad in (0, 8):
        row = (speeds[tuple((WMMA | {"BK": BK, "PAD": pad}).items())] for BK in (16, 32, 64))
        assert f"| PAD {pad} | " + " | ".join(f"{each:.0f}" for each in row) + " |" in source_of(
            "tensor_cores"
        )


def test_errors_of_both_accumulators(in_fp16_in_use):
    found = {}
    for stage in ("wmma", "wmma_fp16_acc"):
        for k in (32, 256, 1024):
            rng = np.random.default_rng(0)
            A, B = (rng.random(shape).astype(np.float16) for shape in ((64, k), (k, 64)))
            found[stage, k] = abs(run_stage(stage, A, B).C / (A.astype(float) @ B.astype(float)) - 1).max()
    assert max(found["wmma", k] for k in (32, 256, 1024)) < 5e-4
    short = [found["wmma_fp16_acc", k] for k in (32, 256, 1024)]
    assert short == sorted(short) and short[0] < 1e-3 < short[1]
    assert "stays below 0.0005 whatever k is" in in_fp16_in_use


def test_the_third_block(in_fp16_in_use):
    two, three = profile("wmma_fp16_acc_fewer_blocks", **WMMA | {"SPARE": 60}), profile("wmma_fp16_acc")
    gain = f"{100 * (three.tflops / profile('wmma').tflops - 1):.0f} %"
    assert f"`wmma_fp16_acc` is {gain} faster than `wmma`" in in_fp16_in_use
    assert f"in one run {three.tflops:.0f} TFLOPS fell to {two.tflops:.0f}." in in_fp16_in_use


def test_three_moves(in_fp16_in_use):
    """The moves of the text reach what it says, and no other three reach more than the best."""
    sweep = records.sweep().query("stage == 'wmma'").dropna(subset="tflops")
    speeds = {tuple(records.parse_tiles(row.tiles).items()): row.tflops for row in sweep.itertuples()}
    document = {"BM": 128, "BN": 128, "BK": 16, "WM": 64, "WN": 32, "PAD": 16}
    path = [{}, {"PAD": 8}, {"PAD": 8, "BK": 64}, {"PAD": 8, "BK": 64, "WN": 64}]
    told = [f"{speeds[tuple((document | moves).items())]:.0f}" for moves in path]
    assert (
        f"16, do {told[0]} TFLOPS" in in_fp16_in_use
        and f"{', '.join(told[1:])} TFLOPS, each" in in_fp16_in_use
    )
    best = speeds[tuple((document | {"PAD": 8, "BK": 64, "WM": 128}).items())]
    assert best == max(speeds.values()) and f"set WM to 128 instead: {best:.0f} TFLOPS" in in_fp16_in_use
    beyond = [
        tiles
        for tiles, tflops in speeds.items()
        if tflops > 300 and len(set(tiles) - set(document.items())) <= 3
    ]
    assert len(beyond) == 2 and f"the best of all {len(speeds)} that" in in_fp16_in_use


def test_the_order_of_the_moves(in_fp16_in_use):
    sweep = records.sweep().query("stage == 'wmma'").dropna(subset="tflops")
    speeds = {tuple(records.parse_tiles(row.tiles).items()): row.tflops for row in sweep.itertuples()}
    measured = 0
    for moves in permutations((("PAD", 8), ("BK", 64), ("WN", 64))):
        tiles = {"BM": 128, "BN": 128, "BK": 16, "WM": 64, "WN": 32, "PAD": 16}
        reached = [speeds[tuple(tiles.items())]]
        for move in moves:
            tiles.update([move])
            reached.append(speeds.get(tuple(tiles.items())))
        if None in reached:
            continue
        measured += 1
        gains = {name: after - before for (name, _), before, after in zip(moves, reached, reached[1:])}
        assert max(gains, key=gains.get) == "BK"
        if [name for name, _ in moves] == ["PAD", "WN", "BK"]:
            assert round(gains["WN"]) == -11 and "WN second, before BK, even loses 11" in in_fp16_in_use
    assert measured == 4 and "in every order that was measured" in in_fp16_in_use


def test_hunts_for_padding(in_tensor_cores):
    taken = {(width, pad): wavefronts_of_a_load(width, pad) for width in WIDTHS for pad in PADS}
    always = [pad for pad in PADS if all(taken[width, pad] == 1 for width in WIDTHS)]
    assert always == [8, 24, 40, 56] and "Four: 8, 24, 40 and 56" in in_tensor_cores
    assert taken[16, 0] == 2 and [pad for pad in PADS if taken[16, pad] == 8] == [48]
    assert "2. 48." in in_tensor_cores


def wavefronts_of_a_load(width: int, pad: int) -> int:
    """Wavefronts of the first 8 rows of a fragment."""
    return int(re.search(r"(?:eight take|take) (\d) wavefront", draw_rows(width, pad).alt)[1])


def test_the_perfect_theft(in_tensor_cores):
    step = 2.0**-23
    for stolen, told in (([0.2499] * 16, 4), ([0.9999] + [0.2499] * 15, 4.75)):
        assert adds(1, [step * each for each in stolen]) == 1
        assert told - 0.01 < sum(stolen) < told and f"**{told}**" in in_tensor_cores
    assert adds(1, [0.4999 * step] * 3 + [0.2499 * step] * 13) == 1 and 3 / 2 + 13 / 4 == 4.75
    assert adds(1, [0.3 * step] * 16) > 1 and 16 * 0.3 == pytest.approx(4.8)
    assert adds(1, [step / 4] * 16) > 1


@pytest.mark.parametrize(
    ("products", "told"),
    [
        ("[0.1 * step] * 15", "There must be 16 products, not 15"),
        ("[0.1 * step] * 15 + [0]", "Every product must be positive"),
        ("[0.3 * step] * 16", "caught"),
        ("[0.1 * step] * 16", "1.60 steps stolen"),
    ],
)
def test_the_theft_says_what_is_against_its_rules(products, told):
    source = source_of("tensor_cores")
    cell = source[source.index("step = 2.0**-23") :]
    cell = cell[: cell.index("# %%")].replace("[0.3 * step] * 16", products)
    names = {"adds": adds}
    exec(cell, names)
    assert told in names["found"]


def test_lane_of_an_element(in_tensor_cores):
    lane = next(lane for lane, elements in held("B").held.items() if (5, 12) in elements)
    by_columns = {(column, row) for row, column in held("A").held[lane]}
    assert by_columns == set(held("B").held[lane])
    assert f"Lane {lane}." in in_tensor_cores


def test_what_fp16_keeps(in_fp16_in_use):
    with np.errstate(over="ignore"):
        assert np.float16(65_519) == 65_504 and np.isinf(np.float16(65_520))
    assert "From 65,520 on a number becomes infinite" in in_fp16_in_use


def test_powers_of_two_that_rescue_a(in_tensor_cores):
    A, B = np.random.default_rng(0).random((2, 64, 64))
    A, B = 1e6 * A, 1e-3 * B

    def error(power):
        with np.errstate(over="ignore"):
            halves = [x.astype(np.float16).astype(float) for x in (A / 2.0**power, B)]
            C = (2.0**power * (halves[0] @ halves[1])).astype(np.float16)
        return abs(C / (A @ B) - 1).max()

    right = [power for power in range(48) if error(power) < 1e-3]
    assert right == list(range(4, 36)) and "2⁴ and 2³⁵." in in_tensor_cores
    assert (
        2e9 < 2 ** (right[-1] - right[0]) < 2.5e9
        and "A factor of two billion lies between" in in_tensor_cores
    )
