"""Figures in the words of notebook 03 are those of the profiles and of the sweep."""

import re
from collections import Counter

from gemm_course import records
from gemm_course.compiler.record import recorded as machine_code
from gemm_course.kernels import LADDER
from gemm_course.profiles import recorded, verdict
from gemm_course.profiles.words import percent, three_digits
from gemm_course.widgets._quiz import questions
from tests.notebooks.builder import source_of

SQUARE = {"BM": 32, "BN": 32}


def words_of(notebook: str) -> str:
    """The text of a notebook's source on one line."""
    return re.sub(r"\s+", " ", source_of(notebook).replace("\n# ", " "))


def busy(stage: str) -> str:
    return percent(verdict(recorded(stage)).busy["L1 and shared memory"])


def waits(stage: str, wait: str, tiles=None) -> str:
    return percent(recorded(stage, tiles).waits[wait])


def times_as_fast(before, after) -> str:
    return three_digits(after.tflops / before.tflops)


def wavefronts_per_multiply_add(stage: str) -> float:
    row = recorded(stage).measured
    return row["shared_wavefronts"] / (row["float32_fma"] / 32)


def reads_per_multiply_add(stage: str) -> float:
    row = recorded(stage).measured
    return row["shared_load_requests"] / (row["float32_fma"] / 32)


def test_what_03_says_of_the_limit():
    said = words_of("shared_memory_tiles")
    naive, tiled = busy("naive_coalesced"), busy("block_tiled")
    assert f"L1, which is busy in {naive} of the clocks" in said
    assert f"busy in {tiled} of the clocks where v01 had {naive}" in said
    loads = [recorded(stage).measured["global_load_requests"] for stage in ("naive_coalesced", "block_tiled")]
    assert f"makes {loads[0] / loads[1]:.0f} times fewer global loads" in said
    for stage in ("block_tiled", "penny_xu_tile"):
        requests, row = reads_per_multiply_add(stage), recorded(stage).measured
        loads = row["shared_load_wavefronts"] / (row["float32_fma"] / 32)
        assert f"are {requests:g} requests and {loads:g} wavefronts, as in the square kernel" in said
        assert f"Per warp-wide multiply-add that is {requests:g} requests and {loads:g} wavefronts" in said


def test_what_03_says_of_the_waits():
    said = words_of("shared_memory_tiles")
    before, after = recorded("naive_coalesced", SQUARE), recorded("penny_xu_tile")
    was, now = (percent(one.waits["global memory"]) for one in (before, after))
    queue, barrier = (waits("penny_xu_tile", wait) for wait in ("queue to shared memory", "barrier"))
    assert f"in {was} of their time, now in {now}." in said
    assert f"they wait {queue} for room in the queue to **shared memory**, and {barrier} at barriers" in said
    assert f"{times_as_fast(before, after)} times as fast, no more" in said


OWN_BLOCKS = ("naive_coalesced", "block_tiled")


def test_what_03_says_of_loads_and_bytes():
    said, (before, after) = (
        words_of("shared_memory_tiles"),
        (recorded(stage).measured for stage in OWN_BLOCKS),
    )
    per_load = [row["global_load_sectors"] / row["global_load_requests"] for row in (before, after)]
    assert f"v01 moves {per_load[0]:g} sectors per request, v02 {per_load[1]:g}" in said
    assert f"is {before['global_load_sectors'] / after['global_load_sectors']:.0f} times fewer: v01" in said
    slots = percent(verdict(recorded("naive_coalesced")).busy["issue slots"]).split()[0]
    assert f"Issue slots come next, {slots} %" in said


def test_what_03_says_of_dram():
    said, rows = words_of("shared_memory_tiles"), [recorded(stage).measured for stage in OWN_BLOCKS]
    assert "busier after fewer loads, {:.0f} → {:.0f} %".format(*(row["dram"] for row in rows)) in said
    was, now = (row["dram_read_bytes"] for row in rows)
    once = 4 * 4096**2
    assert f"read {was / 1e9:.1f} GB, as much as B once and A {was / once - 1:.0f} times" in said
    assert f"read {now / 1e9:.1f} GB, as much as A once and B {now / once - 1:.0f} times" in said
    down, along = (LADDER[stage] for stage in OWN_BLOCKS)
    assert (down.tiles["BN"], along.tiles["BM"]) == (128, 16)
    assert "a strip of 128 columns of C, then down the next, 32 in all" in said
    assert "a strip of 16 rows, 256 in all" in said and f"Each matrix has {once / 1e6:.0f} MB" in said


def test_what_03_says_of_other_tiles():
    said = words_of("shared_memory_tiles")
    rows = records.sweep().query("stage == 'block_tiled' and m == 4096 and gpu == 'NVIDIA H200'")
    measured = rows.dropna(subset="tflops").set_index("tiles")["tflops"].sort_values(ascending=False)
    own = "BM=16 BN=32 BK=64"
    gain = 100 * (measured.iloc[0] / measured[own] - 1)
    assert f"The best of {len(measured)} measured choices is {gain:.0f} % faster than v02" in said
    assert f"32 × 32 × 64 has fewer loads, and reaches {measured['BM=32 BN=32 BK=64']:.2f}." in said
    assert f"twice the shared memory: {4 * (16 + 32) * 128:,} bytes" in said
    ladder = records.ladder().query("stage == 'block_tiled' and m == 4096 and gpu == 'NVIDIA H200'")
    assert f"({measured[own]:.2f} here and {ladder['tflops'].max():.2f} above are separate" in said
    *most, last = (f"{measured[f'BM=16 BN=32 BK={BK}']:.2f}" for BK in (32, 64, 128, 256))
    assert f"with 16 × 32 it is {', '.join(most)} and {last} TFLOPS for BK = 32, 64, 128 and 256" in said


def test_what_03_says_of_banks():
    said = words_of("shared_memory_tiles")
    for padding in (2, 8):
        banks = Counter((32 + padding) * lane % 32 for lane in range(32))
        assert max(banks.values()) == padding
        assert f"hits {'only ' * (padding == 8)}{len(banks)} banks, with {padding} words in each" in said
    assert "With 2 words of padding a column takes 2 wavefronts, with 8 it takes 8" in said


def test_what_03_says_of_the_ceiling():
    said, peak = words_of("shared_memory_tiles"), 67 / 4
    as_compiled = wavefronts_per_multiply_add("block_tiled")
    assert f"would allow {peak / 2:.1f} TFLOPS, v01's own roof; the 1.5 that" in said
    reached = f"would allow {peak / 1.5:.1f}. With the stores of the tiles, it is {peak / as_compiled:.1f}."
    assert reached in said


def test_what_the_question_of_03_says_of_the_ceiling():
    asked = questions("shared_memory_tiles")["ceiling"]
    rows = records.ladder().query("m == 4096 and gpu == 'NVIDIA H200'")
    before, after = rows.groupby("stage")["tflops"].max()[list(OWN_BLOCKS)]
    (right,) = (option for option in asked["options"] if option.get("right"))
    assert f"reaches {before:.2f}" in asked["text"] and right["text"] == f"{after / before:.1f} times"
    assert f"Measured: {after:.2f}." in right["reply"] and f"allow {67 / 4 / 1.5:.1f}." in right["reply"]


def instructions(stage: str) -> Counter:
    """How often each instruction stands in a stage's machine code for an H200."""
    return Counter(row.text.split()[0] for row in machine_code(stage, (9, 0)).rows)


def test_what_03_says_of_the_machine_code():
    square = instructions("penny_xu_tile")
    steps = square["FFMA"] - 1  # one is beta * C
    assert (
        f"for the {steps} steps of a tile, {square['LDS.128']} `LDS.128` and {square['LDS']} `LDS`"
        in words_of("shared_memory_tiles")
    )
