"""Figures in the words of notebooks 05 and 06 are those of the profiles."""

import re
from pathlib import Path

from gemm_course.profiles import recorded, verdict
from gemm_course.profiles.words import percent

SOURCES = Path(__file__).parents[2] / "notebooks" / "source"
DOCUMENT = {"BM": 128, "BN": 128, "BK": 16, "TM": 8, "TN": 8}


def words_of(notebook: str) -> str:
    """The text of a notebook's source on one line."""
    (path,) = SOURCES.glob(f"{notebook}_*.py")
    return re.sub(r"\s+", " ", path.read_text(encoding="utf-8").replace("\n# ", " "))


def wait(profile, name: str) -> str:
    return percent(profile.waits[name])


def tflops(*profiles) -> list[str]:
    return [f"{one.tflops:.1f}" for one in profiles]


def test_what_05_says_of_the_limit_of_04():
    said, before = words_of("05"), recorded("thread_tiled_1d")
    assert f"it is busy in {percent(verdict(before).busy['L1 and shared memory'])} of the clocks" in said
    shared, queue = wait(before, "shared memory"), wait(before, "queue to shared memory")
    assert f"Warps wait {shared} of their time for what they read there, and {queue} for room" in said
    now = recorded("thread_tiled_2d")
    assert (
        f"{shared} of its time waiting for what it reads from shared memory, and {queue} in the queue" in said
    )
    assert f"here it is {wait(now, 'shared memory')} and less than 1 %" in said
    assert now.waits["queue to shared memory"] < 0.01


def test_what_05_says_of_warps():
    said = words_of("05")
    two, one = recorded("thread_tiled_2d"), recorded("thread_tiled_2d_fewer_blocks", {"SPARE": 150})
    assert [round(each.measured["warps_possible"] * 4) for each in (two, one)] == [16, 8]
    assert "{1} TFLOPS instead of {0}".format(*tflops(two, one)) in said
    before, after = (wait(each, "global memory").removesuffix(" %") for each in (two, one))
    assert f"from {before} to {after} % of a warp's time" in said
    assert f"one is {percent(1 - one.tflops / two.tflops)} slower" in said


def test_what_05_says_of_spread_columns():
    said = words_of("05")
    three = [
        recorded("kernel5", DOCUMENT),
        recorded("kernel5_spread", {"PAD": 0}),
        recorded("thread_tiled_2d", DOCUMENT),
    ]
    assert "{}, {} and {} TFLOPS".format(*tflops(*three)) in said
    waited = [wait(each, "global memory") for each in three]
    assert f"{waited[1]} of their time for global memory instead of {waited[0]}" in said
    assert f"it waits {waited[2]} for them" in said
    spilled = [each.measured["local_bytes"] for each in three]
    assert spilled == [48, 16, 0] and "spills 48 bytes, the others 16 and none" in said
    fronts = [each.measured["shared_wavefronts"] for each in three]
    assert 0.5 < fronts[1] / fronts[0] < 0.6


def test_what_05_says_of_square_and_tall():
    said = words_of("05")
    square, tall = (recorded("thread_tiled_2d", tiles) for tiles in (DOCUMENT, {"BK": 16}))
    assert "{} and {} TFLOPS. Fewer wavefronts".format(*tflops(square, tall)) in said
    assert [verdict(each).limiter for each in (square, tall)] == ["L1 and shared memory", "issue slots"]


def test_what_05_says_of_its_own_limit():
    said, now = words_of("05"), recorded("thread_tiled_2d")
    found = verdict(now)
    issued = found.busy["issue slots"]
    useful = now.measured["float32_fma"] / 32 / now.measured["warp_instructions"]
    assert found.limiter == "issue slots" and f"In {percent(issued)} of the clocks a scheduler" in said
    assert f"{percent(useful)} of these are multiply-adds" in said
    assert f"{issued:.2f} · {useful:.2f} is {percent(issued * useful)} of the peak" in said
    assert f"{now.tflops:.0f} of 67" in said
