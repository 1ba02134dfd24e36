"""What notebooks 07 and 08 say in figures is what was recorded."""

import re

import pytest

from gemm_course import records
from gemm_course.emulator import wavefronts
from gemm_course.figures.warp_reads import request
from gemm_course.figures.wavefronts import wavefronts_of
from gemm_course.kernels import LADDER
from gemm_course.model import occupancy
from gemm_course.profiles import recorded, verdict
from gemm_course.widgets import _owners, _quiz
from gemm_course.widgets._costs import cost
from gemm_course.widgets._roofs import roofs_of
from tests.notebooks.builder import ROOT

SQUARE = {"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8, "PAD": 0}
WMMA = {"BM": 128, "BN": 128, "BK": 64, "WM": 64, "WN": 64, "PAD": 8}


def said_in(name: str) -> str:
    """The text of a notebook's source and of its questions, on one line."""
    lines = (ROOT / "notebooks" / "source" / f"{name}.py").read_text("utf-8").splitlines()
    questions = str(_quiz.questions(name[:2]))
    return re.sub(r"\s+", " ", " ".join(line.removeprefix("#") for line in lines) + questions)


@pytest.fixture
def said_in_07() -> str:
    return said_in("07_warp_tiles")


def profile(stage: str, **tiles: int):
    return recorded(stage, tiles or None)


def issue_slots(found) -> str:
    return f"{100 * found.measured['issued']:.0f} %"


def shares(found, *waits: str) -> list[str]:
    return [f"{100 * found.waits[name]:.0f} %" for name in waits]


def test_what_the_lanes_of_warp_tiled_bring(said_in_07):
    before, after = profile("vectorized", **SQUARE), profile("warp_tiled")
    assert SQUARE.items() <= LADDER["warp_tiled"].tiles.items()
    assert f"{before.tflops:.1f} TFLOPS became {after.tflops:.1f}" in said_in_07
    gain = f"{100 * (after.tflops / before.tflops - 1):.0f} %"
    assert f"became {after.tflops:.1f}, {gain} more" in said_in_07
    assert f"fewer wavefronts brought the {gain}" in said_in_07
    (was,), (now,) = shares(before, "shared memory"), shares(after, "shared memory")
    assert f"{was} of its time became {now}" in said_in_07
    per_fma = {f"{each.measured['warp_instructions'] * 32 / 4096**3:.2f}" for each in (before, after)}
    assert per_fma == {"1.16"} and "the same, 1.16 per multiply-add" in said_in_07
    assert before.measured["registers"] == after.measured["registers"]


def _shared_memory(found) -> str:
    clocks = found.measured["clocks"] / found.measured["active_clocks"]
    return f"{found.measured['l1_data'] * clocks:.0f} %"


def test_the_table_of_layouts_in_the_docs():
    page = (ROOT / "docs" / "what_limits_it.md").read_text("utf-8")
    steps = 4096**3 / (32 * 64)  # k steps of all warps, 64 results per thread
    cases = [(2, 16, "side by side", profile("vectorized", **SQUARE))]
    for rows, columns in ((2, 16), (4, 8), (8, 4), (16, 2)):
        tiles = LADDER["warp_tiled"].tiles | {"WM": 8 * rows, "WN": 8 * columns}
        cases.append((rows, columns, "runs of four", profile("warp_tiled", **tiles)))
    for rows, columns, run, found in cases:
        assert found.measured["registers"] == 128
        counted = int(found.measured["shared_load_wavefronts"] / steps)
        assert counted == of_a_k_step(rows, columns, 8 if run == "side by side" else 4)
        busy, told = _shared_memory(found), f"{found.tflops:.1f} |"
        assert found.tflops <= profile("warp_tiled", WM=16, WN=128).tflops
        warp_tile = f"{8 * rows} × {8 * columns}"
        slots = issue_slots(found)
        line = f"| {rows} × {columns} | {warp_tile} | {run} | {counted} | {busy} | {slots} | {told}"
        assert line in page


def test_wavefronts_decide_and_not_the_way_there(said_in_07):
    page = (ROOT / "docs" / "what_limits_it.md").read_text("utf-8")
    found = records.lane_layouts().set_index(["lane_rows", "lane_columns", "elements"])
    times = found["milliseconds"]
    assert len(times) == 8 and set(found["registers"]) == {128}
    for (rows, columns), of_both in times.groupby(level=[0, 1]):
        ms = [of_both[rows, columns, elements] for elements in ("side by side", "runs of four")]
        counts = [of_a_k_step(rows, columns, run) for run in (8, 4)]
        told = " | ".join(f"{count} wavefronts: {each:.2f} ms" for count, each in zip(counts, ms))
        assert f"| {rows} × {columns} | {told} |" in said_in_07
        assert f"| {rows} × {columns} | {ms[0]:.2f} | {ms[1]:.2f} |" in page
    usual = times[4, 8, "runs of four"]
    for rows, columns, elements in ((8, 4, "side by side"), (2, 16, "runs of four"), (16, 2, "runs of four")):
        assert times[rows, columns, elements] == pytest.approx(usual, rel=0.02)
        assert f"{times[rows, columns, elements]:.2f}" in str(_quiz.questions("07")["eight"])
    assert "4 × 8 lanes read 96 per k step, 2 × 16 read 144" in said_in_07
    assert (8 * (4 + 8), 8 * (2 + 16)) == (96, 144)


def test_the_profiles_of_the_layouts_took_as_long():
    times = records.lane_layouts().set_index(["lane_rows", "lane_columns", "elements"])["milliseconds"]
    alone = {(2, 16, "side by side"): profile("vectorized", **SQUARE)}
    for rows, columns in ((2, 16), (4, 8), (8, 4), (16, 2)):
        tiles = LADDER["warp_tiled"].tiles | {"WM": 8 * rows, "WN": 8 * columns}
        alone[rows, columns, "runs of four"] = profile("warp_tiled", **tiles)
    for layout, found in alone.items():
        assert times[layout] == pytest.approx(2e-9 * 4096**3 / found.tflops, rel=0.01)


def of_a_k_step(rows: int, columns: int, run: int) -> int:
    """Wavefronts of a warp's reads of As and Bs, 8 × 8 results per lane in runs of ``run``."""
    bits, total = 32 * min(run, 4), 0
    for i in range(0, 8, bits // 32):
        for across, lanes in ((lambda lane: lane // columns, rows), (lambda lane: lane % columns, columns)):
            words = [i // run * run * lanes + across(lane) * run + i % run for lane in range(32)]
            total += wavefronts(words, bits, "load")
    return total


def test_wavefronts_of_all_layouts(said_in_07):
    for rows, columns in ((2, 16), (4, 8), (8, 4), (16, 2)):
        counts = [of_a_k_step(rows, columns, run) for run in (8, 4)]
        name = f"{rows} × {columns}{' (notebook 06)' if rows == 2 else ''}"
        assert f"| {name} | {counts[0]} | {counts[1]} |" in said_in_07
        for run, counted in zip((8, 4), counts):
            asked = [request(rows, columns, run, 128, array) for array in ("As", "Bs")]
            assert counted == 2 * sum(map(wavefronts_of, asked))


def test_why_runs_of_four(said_in_07):
    for run in (1, 2, 4, 8):
        reads = 16 // min(run, 4)
        assert f"| {run} | {reads} | {of_a_k_step(4, 8, run)} |" in said_in_07


def test_hide_and_seek(said_in_07):
    places = {"003: TN 8, WNITER 1": (1, 1), "003: TN 4, WNITER 1": (0, 5), "003: TN 8, WNITER 2": (2, 1)}
    for kernel, (row, column) in places.items():
        assert (
            f"lane 5: row {row}, column {column} of the lanes"
            in _owners.draw(kernel, "block", "warp", 0, 5).alt
        )
    assert "lane 5 stands in row 1, column 1 of the lanes" in said_in_07


def test_one_change_of_a_slider_breaks_the_tiles_of_document_003():
    stage = LADDER["warp_tiled_tm1"]
    changes = [(name, value) for name, values in stage.options.items() for value in values]
    broken = {change: stage.rules(dict([change])) for change in changes if stage.rules(dict([change]))}
    assert list(broken) == [("WN", 128)] and "registers" in str(broken)


def test_what_limits_warp_tiled(said_in_07):
    usual, eight = (
        profile("warp_tiled"),
        profile("warp_tiled", **LADDER["warp_tiled"].tiles | {"WM": 128, "WN": 16}),
    )
    assert verdict(usual).limiter == verdict(eight).limiter == "issue slots"
    assert "Issue slots, in both" in said_in_07
    read_ahead = records.ladder().query("stage == 'read_ahead' and m == n == k == 4096")["tflops"].item()
    assert f"`read_ahead` with {read_ahead:.1f}" in said_in_07
    one_block = profile("warp_tiled", BM=128, BN=256, BK=8, WM=64, WN=64, TM=16, TN=8, PAD=4)
    ahead = profile("double_buffered")
    assert f"{one_block.tflops:.1f} TFLOPS become {ahead.tflops:.1f}: " in said_in_07
    (before,), (after,) = shares(one_block, "global memory"), shares(ahead, "global memory")
    assert (before, after) == ("20 %", "0 %") and f"{before} of a warp's time were waits" in said_in_07
    assert one_block.measured["registers"] * 256 > 65536 / 2  # one block per SM, and so in double_buffered


def test_requests_and_wavefronts_of_three_kernels(said_in_07):
    cases = {"X": "warp_tiled", "Y": "warp_tiled_tm1", "Z": "vectorized"}
    counted = records.counters("ladder").set_index("case")
    for letter, case in cases.items():
        row = counted.loc[f"{case} 1024x1024x1024", ["shared_load_requests", "shared_load_wavefronts"]]
        requests, taken = row / (1024**3 / (32 * 64))
        line = f"| {letter} | {requests:.0f} | {taken:.0f} |"
        assert line in said_in_07 and f"{letter} `{case}`" in said_in_07.replace(" is `", " `")
    assert "The compiler makes 10:" in said_in_07 and "wavefronts remain 16" in said_in_07
    tflops = records.ladder().query("m == n == k == 4096").set_index("stage")["tflops"]
    assert tflops["warp_tiled_tm1"] == min(tflops[case] for case in cases.values())


def test_more_warps_do_not_help_warp_tiled(said_in_07):
    stage = LADDER["warp_tiled"]
    assert not stage.rules({**stage.tiles, "WN": 32, "TN": 4})  # two sliders
    best: dict[int, float] = {}
    for row in records.sweep().query("stage == 'warp_tiled'").dropna(subset="tflops").itertuples():
        t = records.parse_tiles(row.tiles)
        threads = 32 * t["BM"] * t["BN"] // (t["WM"] * t["WN"])
        warps = occupancy(threads, int(row.registers), int(row.shared_bytes)).warps
        best[warps] = max(best.get(warps, 0), row.tflops)
    told = f"the fastest with 32 warps reach {best[32]:.1f} TFLOPS, with 16 warps {best[16]:.1f}"
    assert told in said_in_07 and max(best) == 32
    assert occupancy(512, 64, 16384).warps == 32 and occupancy(256, 128, 16384).warps == 16
    reads = (8 + 4) // 4  # of a lane with 8 × 4 results
    assert 64 // (8 * 4) * reads == 6 and "makes 6 reads for 64 multiply-adds instead of 4" in said_in_07


@pytest.fixture
def said_in_08() -> str:
    return said_in("08_tensor_cores")


def test_what_wmma_waits_for(said_in_08):
    found, short, unpadded = (
        profile("wmma"),
        profile("wmma", **WMMA | {"BK": 16}),
        profile("wmma", **WMMA | {"PAD": 0}),
    )
    copies, delay = shares(found, "copies", "fixed delay")
    assert f"{copies} of its time waiting for copies of tiles and {delay} for results" in said_in_08
    assert f"With BK = 16 a warp waits {shares(short, 'copies')[0]} for copies" in said_in_08
    assert f"Without padding it waits {shares(unpadded, 'shared memory')[0]} for shared memory" in said_in_08


def test_what_busy_tensor_cores_do(said_in_08):
    """An mma of 2,048 multiply-adds keeps one of four Tensor Cores busy for 6 clocks, not 4."""
    found = profile("wmma")
    row = found.measured
    clocks = row["tensor_pipe"] / 100 * row["clocks"] / (row["mma_instructions"] / (4 * 132))
    assert row["mma_instructions"] == 4096**3 / (16 * 8 * 16) and "16 × 8 × 16 each" in said_in_08
    assert clocks == pytest.approx(6, abs=0.01) and "the counter says 6" in said_in_08
    assert "needs 4 clocks" in said_in_08 and 16 * 8 * 16 / 512 == 4
    alone = records.compute_roofs().set_index("unit")["tflops"]["mma FP16"]
    share = f"{100 * found.tflops / alone:.0f} % of the {alone:.0f} below"
    assert f"Its {found.tflops:.0f} TFLOPS are {share}" in said_in_08
    busy = verdict(found).busy
    assert f"busy {100 * busy['Tensor Cores']:.0f} %, with an `mma`" in said_in_08
    assert busy["Tensor Cores"] == pytest.approx(found.tflops / alone, abs=0.02)
    assert f"L2 comes next with {100 * busy['L2']:.0f} %" in said_in_08
    assert f"Shared memory is busy {100 * busy['L1 and shared memory']:.0f} %" in said_in_08


def test_wavefronts_of_copies(said_in_08):
    row = profile("wmma").measured
    copies = row["async_copy_wavefronts"]
    assert f"{copies / row['async_copy_requests']:.1f} per request" in said_in_08
    assert f"{copies / row['matrix_load_wavefronts']:.1f} times as many as for all fragments" in said_in_08
    small = profile("wmma", **WMMA | {"BM": 64, "BN": 64, "WM": 32, "PAD": 16}).measured
    assert f"would have {small['shared_wavefronts'] / 132 / small['clocks']:.2f} per clock" in said_in_08
    own = 100 * (row["shared_wavefronts"] - copies) / 132 / row["clocks"]
    assert f"busy in {row['l1_data']:.0f} % of the clocks, in {own:.0f} % with loads and stores" in said_in_08
    shared = next(c for c in roofs_of(LADDER["wmma"]).ceilings if c.label.startswith("shared memory"))
    wgmma = records.compute_roofs().set_index("unit")["tflops"]["wgmma FP16"]
    assert f"roof is higher, {shared.tflops:.0f} (that `wgmma` has {wgmma:.0f} as well" in said_in_08


def test_the_third_block(said_in_08):
    two, three = profile("wmma_fp16_acc_fewer_blocks", **WMMA | {"SPARE": 60}), profile("wmma_fp16_acc")
    told = f"{two.tflops:.0f} TFLOPS. In the same run of profiles `wmma` had {profile('wmma').tflops:.0f}"
    busy = f"then L2 is the limit, {100 * verdict(three).share:.0f} % busy"
    assert verdict(three).limiter == "L2" and busy in said_in_08
    assert told in said_in_08 and f"it was {three.tflops:.0f}. So with these tiles it is" in said_in_08


def test_small_blocks(said_in_08):
    small = WMMA | {"BM": 64, "BN": 64, "WM": 32}
    eight, sixteen = profile("wmma", **small), profile("wmma", **small | {"PAD": 16})
    asked = [found.measured["l2_read_sectors"] / 1e6 for found in (eight, sixteen)]
    assert f"ask it for {asked[0]:.0f} million sectors instead of {asked[1]:.0f}" in said_in_08
    assert f"{sixteen.tflops:.0f} TFLOPS against {eight.tflops:.0f}" in said_in_08
    assert f"L2, busy {100 * verdict(eight).share:.0f} % with" in said_in_08
    assert f"it can do more, {100 * verdict(eight).share:.0f} %" in said_in_08
    per_request = [
        found.measured["async_copy_sectors"] / found.measured["async_copy_requests"]
        for found in (eight, sixteen, profile("wmma"))
    ]
    assert per_request == [24, 16, 24] and "24 per request instead of 16" in said_in_08
    assert cost(LADDER["wmma"], WMMA).sectors == 16 and "The explorer above says 16" in said_in_08


def test_tiles_of_wmma(said_in_08):
    best = _best("wmma", "WM", "WN")
    assert f"{best[128, 32]:.0f} TFLOPS against {best[64, 64]:.0f}" in said_in_08
    assert best[128, 32] == max(best.values())
    rows = records.sweep().query("stage == 'wmma_fp16_acc'").set_index("tiles")
    fastest = rows.loc[rows["tflops"].idxmax()]
    assert f"other tiles are fastest, {fastest['tflops']:.0f} TFLOPS" in said_in_08
    eight = rows.loc["BM=128 BN=128 BK=64 WM=64 WN=128 PAD=8"]
    assert fastest.name == eight.name.removesuffix("8") + "16"
    assert f"with 8 these tiles do {eight['tflops']:.0f}" in said_in_08
    small = occupancy(64, int(fastest["registers"]), int(fastest["shared_bytes"]))
    usual = profile("wmma_fp16_acc").measured
    large = occupancy(128, int(usual["registers"]), int(usual["static_shared_bytes"]))
    assert (small.blocks, small.warps, large.warps) == (4, 8, 12)
    assert "four such blocks of two warps: 8 warps, where the default tiles have 12" in said_in_08


def test_how_much_cublas_varies(said_in_08):
    rows = records.ladder().query("dtype == 'fp16' and m == n == k")
    spread = {
        m: rows.query("m == @m")["cublas_tflops"].agg(["min", "max"]).round().astype(int)
        for m in (4096, 8192)
    }
    told = [f"{each['min']} to {each['max']}" for each in spread.values()]
    assert f"it did {told[0]} TFLOPS at 4096³, and {told[1]} at 8192³" in said_in_08


def test_warp_tiled_has_come_so_far(said_in_08):
    tflops = records.ladder().query("stage == 'warp_tiled' and m == n == k == 4096")["tflops"].item()
    assert f"`warp_tiled` has come to {100 * tflops / 66.9:.0f} %" in said_in_08


def _best(stage: str, *names: str) -> dict[tuple, float]:
    """The fastest choice of tiles for each pair of two sizes."""
    rows = records.sweep().query("stage == @stage").dropna(subset="tflops")
    sizes = [rows["tiles"].str.extract(rf"\b{name}=(\d+)")[0].astype(int) for name in names]
    return rows.groupby(sizes)["tflops"].max().to_dict()
