"""Figures in the words of notebooks 03 and 04 are those of the profiles and of the sweep."""

import re
from pathlib import Path

from gemm_course.profiles import recorded, verdict
from gemm_course.profiles.words import percent, three_digits

SOURCES = Path(__file__).parents[2] / "notebooks" / "source"
SQUARE = {"BM": 32, "BN": 32}


def words_of(notebook: str) -> str:
    """The text of a notebook's source on one line."""
    (path,) = SOURCES.glob(f"{notebook}_*.py")
    return re.sub(r"\s+", " ", path.read_text(encoding="utf-8").replace("\n# ", " "))


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
    said = words_of("03")
    naive, tiled = busy("naive_coalesced"), busy("block_tiled")
    assert f"L1, which is busy in {naive} of the clocks" in said
    assert f"busy in {tiled} of the clocks where v01 had {naive}" in said
    loads = [recorded(stage).measured["global_load_requests"] for stage in ("naive_coalesced", "block_tiled")]
    assert f"makes {loads[0] / loads[1]:.0f} times fewer global loads" in said
    assert f"two shared reads, {reads_per_multiply_add('block_tiled'):g} as compiled" in said


def test_what_03_says_of_the_waits():
    said = words_of("03")
    before, after = recorded("naive_coalesced", SQUARE), recorded("penny_xu_tile")
    was, now = (percent(one.waits["global memory"]) for one in (before, after))
    queue, barrier = (waits("penny_xu_tile", wait) for wait in ("queue to shared memory", "barrier"))
    assert f"in {was} of their time, now in {now}." in said
    assert f"they wait {queue} for room in the queue to **shared memory**, and {barrier} at barriers" in said
    assert f"{times_as_fast(before, after)} times as fast, no more" in said


def test_what_03_says_of_the_ceiling():
    said, peak = words_of("03"), 67 / 4
    as_compiled = wavefronts_per_multiply_add("block_tiled")
    assert f"would allow {peak / 2:.1f} TFLOPS; the one and a half" in said
    assert (
        f"would allow {peak / 1.5:.1f}. With the stores of the tiles, it is the {peak / as_compiled:.1f}"
        in said
    )
