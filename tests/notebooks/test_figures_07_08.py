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
from gemm_course.widgets import _quiz
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
    assert f"bring {100 * (after.tflops / before.tflops - 1):.0f} %: from" in said_in_07
    (was,), (now,) = shares(before, "shared memory"), shares(after, "shared memory")
    assert f"{was} of its time became {now}" in said_in_07
    assert f"issue slots, taken in {issue_slots(after)} of the clocks" in said_in_07


def _shared_memory(found) -> str:
    clocks = found.measured["clocks"] / found.measured["active_clocks"]
    return f"{found.measured['l1_data'] * clocks:.0f} %"


def test_the_runs_and_not_the_rectangle_bring_the_gain(said_in_07):
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
        if rows != 8:
            assert f"| {rows} × {columns} | {run} | {counted} | {busy} | {told}" in said_in_07
        warp_tile = f"{8 * rows} × {8 * columns}"
        slots = issue_slots(found)
        line = f"| {rows} × {columns} | {warp_tile} | {run} | {counted} | {busy} | {slots} | {told}"
        assert line in page


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


def test_what_limits_warp_tiled(said_in_07):
    found = profile("warp_tiled")
    assert f"In {issue_slots(found)} of the clocks a scheduler issues one" in said_in_07
    assert "87 % of these are multiply-adds" in said_in_07 and "87 % of them" in str(verdict(found))
    waits = shares(found, "dispatch", "global memory", "barrier", "shared memory")
    told = re.findall(r"a warp spends (\d+ %).*?, (\d+ %) waiting for global memory, (\d+ %)", said_in_07)
    assert [*told[0], waits[3]] == waits and f"and {waits[3]} for shared memory" in said_in_07
    assert f"In the other {100 - round(100 * found.measured['issued'])} %" in said_in_07
    assert "allow 89 TFLOPS" in said_in_07 and round(66.9 * 16 / 12) == 89
    read_ahead = records.ladder().query("stage == 'read_ahead' and m == n == k == 4096")["tflops"].item()
    assert f"with `read_ahead` {read_ahead:.1f}" in said_in_07
    one_block = profile("warp_tiled", BM=128, BN=256, BK=8, WM=64, WN=64, TM=16, TN=8, PAD=4)
    ahead = profile("double_buffered")
    assert f"{one_block.tflops:.1f} TFLOPS became {ahead.tflops:.1f}: " in said_in_07
    (before,), (after,) = shares(one_block, "global memory"), shares(ahead, "global memory")
    assert (before, after) == ("20 %", "0 %") and f"{before} of a warp's time were waits" in said_in_07
    assert one_block.measured["registers"] * 256 > 65536 / 2  # one block per SM, and so in double_buffered


def test_requests_and_wavefronts_of_the_ladder(said_in_07):
    cases = ("vectorized", "warp_tiled", "warp_tiled_tm1")
    counted = records.counters("ladder").set_index("case").loc[[f"{case} 1024x1024x1024" for case in cases]]
    per_step = counted[["shared_load_requests", "shared_load_wavefronts"]] / (1024**3 / (32 * 64))
    assert per_step.to_numpy().tolist() == [[5, 12], [4, 12], [10, 16]]
    assert "four instead of five" in said_in_07 and "ten requests, which take 16 wavefronts" in said_in_07
    assert "The compiler makes 10." in said_in_07 and "wavefronts remain 16" in said_in_07
    tflops = records.ladder().query("m == n == k == 4096").set_index("stage")["tflops"]
    gain = 100 * (tflops["warp_tiled"] / tflops["vectorized"] - 1)
    assert f"is smaller, {gain:.0f} %" in said_in_07


def test_shapes_of_warp_tiles(said_in_07):
    best = _best("warp_tiled", "WM", "WN")
    assert f"{best[32, 64]:.1f} and {best[64, 32]:.1f} TFLOPS for the smaller" in said_in_07
    larger = [best[32, 128], best[64, 64], best[128, 32]]
    assert f"{min(larger):.1f} to {max(larger):.1f} for the larger" in said_in_07
    sweep = records.sweep().query("stage == 'warp_tiled'").dropna(subset="tflops")
    assert "TM=4 TN=16" in sweep.loc[sweep["tflops"].idxmax(), "tiles"] and "has 4 × 16 results" in said_in_07
    reads = (8 + 4) // 4  # of a lane with 8 × 4 results
    assert 64 // (8 * 4) * reads == 6 and "make 6 reads for 64 multiply-adds instead of 4" in said_in_07
    fastest = profile("warp_tiled", WM=16, WN=128).tflops
    more = 100 * (fastest / profile("warp_tiled").tflops - 1)
    assert f"43.6 is {more:.1f} % above 43.0" in said_in_07 and 16 not in LADDER["warp_tiled"].options["WM"]
    assert f"32 × 32 is worst, with {min(best.values()):.1f}" in said_in_07 and best[32, 32] == min(
        best.values()
    )


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
