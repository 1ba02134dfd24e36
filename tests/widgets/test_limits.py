"""`see.limits`: which profiles it takes, what its title says of them, and what it refuses."""

import re

import pytest

from gemm_course import records
from gemm_course import widgets as see
from gemm_course.kernels import LADDER
from gemm_course.profiles import NoProfile, recorded, verdict
from gemm_course.profiles.verdict import PARTS
from gemm_course.records.columns import PROFILE_BUSY
from tests.widgets.made_up_profiles import SAMPLES, profile

IDLE = dict.fromkeys(PROFILE_BUSY, 10.0) | {
    "clocks": 1000.0,
    "active_clocks": 1000.0,
    "nanoseconds": 2_000_000,
}


def limited_by(name: str | None, share: float = 90.0) -> dict:
    """Columns of a profile in which this part is busy; None: no part is."""
    return IDLE | ({PARTS[name].measures[0]: share} if name else {})


def title(picture) -> str:
    return picture.alt.split(". ")[0]


@pytest.mark.parametrize("part", PARTS)
def test_the_title_of_one_says_the_limit(part):
    words = {"issue slots": "taken"}.get(part, "busy")
    told = title(see.limits(profile(**limited_by(part, 77.0))))
    assert told == f"mine: {part} {PARTS[part].are} the busiest, {words} in 77 % of the clocks"


def test_the_title_of_one_that_waits_says_for_what():
    told = title(see.limits(profile(**limited_by(None))))
    assert told == "mine: no part is busy enough, a warp waits 36 % of its time at barriers"


def test_the_title_of_two_says_how_the_limit_moves(shelf):
    shelf("block_tiled", **limited_by("L1 and shared memory"))
    shelf("thread_tiled_1d", **limited_by("L1 and shared memory"))
    shelf("vectorized", **limited_by("issue slots"))
    told = title(see.limits("block_tiled", LADDER["thread_tiled_1d"], "vectorized"))
    assert told == (
        "The busiest part moves from L1 and shared memory (block_tiled to thread_tiled_1d) to issue slots "
        "(vectorized)"
    )


def test_the_title_of_several_with_one_limit_says_so():
    pair = [profile("one", **limited_by("L2", share)) for share in (90.0, 80.0)]
    assert title(see.limits(*pair)) == "In all of them L2 is the busiest, busy in 80 % to 90 % of the clocks"
    assert title(see.limits(*pair[:1] * 2)) == "In all of them L2 is the busiest, busy in 90 % of the clocks"
    waiting = profile(**limited_by(None))
    assert title(see.limits(waiting, waiting)) == (
        "In all of them warps wait: no part is busy in 70 % of the clocks"
    )


def test_the_title_of_a_few_with_many_limits_names_these():
    parts = ("L2", None, "L2", "issue slots")
    told = title(see.limits(*(profile(**limited_by(part)) for part in parts)))
    assert told == "The busiest part moves from L2 to waiting, then L2, then issue slots"


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (
            [*["L2", "DRAM", "L2"] * 2, "L2", None, "L2", *["Tensor Cores"] * 4],
            "The busiest part moves from L2 (6 of 13 kernels) to Tensor Cores (4); in others DRAM (2), "
            "waiting (1)",
        ),
        (
            ["L2", "DRAM", "L2", None, *["L2"] * 10],
            "The busiest part mostly is L2 (12 of 14 kernels); in others DRAM (1), waiting (1)",
        ),
        (
            [*PARTS, None],
            "The busiest part moves from issue slots (1 of 8 kernels) to multiply-add units (1), then "
            "integer units (1), then Tensor Cores (1), then L1 and shared memory (1), then L2 (1), "
            "then DRAM (1), then waiting (1)",
        ),
    ],
)
def test_the_title_of_many_counts_the_limits_and_tells_rare_ones_last(parts, expected):
    assert title(see.limits(*(profile(**limited_by(part)) for part in parts))) == expected


def test_other_tiles_as_pairs_and_as_dicts(shelf):
    shelf("vectorized", **limited_by("issue slots"))
    shelf("vectorized", tiles={"BK": 16}, **limited_by("L1 and shared memory"))
    pair = see.limits("vectorized", ("vectorized", {"BK": 16}))
    assert see.limits("vectorized", {"vectorized": {"BK": 16}}).alt == pair.alt
    assert title(pair) == (
        "The busiest part moves from issue slots (vectorized BK=32) to L1 and shared memory "
        "(vectorized BK=16)"
    )
    assert "vectorized BK=32 (BM=128" in pair.alt


def test_three_choices_of_tiles_of_one_stage_are_told_without_its_name(shelf):
    for BK, part in ((32, "issue slots"), (16, "issue slots"), (8, "L1 and shared memory")):
        shelf("vectorized", tiles={"BK": BK}, **limited_by(part))
    assert title(see.limits(*(("vectorized", {"BK": BK}) for BK in (32, 16, 8)))) == (
        "vectorized: the busiest part moves from issue slots (BK=32 to BK=16) to L1 and shared memory (BK=8)"
    )


def test_without_arguments_the_whole_ladder_in_its_order(shelf):
    for stage in reversed(list(LADDER)):
        shelf(stage.name, **limited_by("L2"))
    said = see.limits().alt
    assert re.findall(r"(\w+), [\d.]+ TFLOPS: ", said) == [stage.name for stage in LADDER]
    assert "BM=" not in said  # usual tiles are left out where there is little room
    assert "BK=16" in see.limits(*LADDER, profile("mine", "BK=16", **limited_by("L2"))).alt


def test_speed_is_that_of_the_profiled_launch(shelf):
    shelf("vectorized", size=1024, **limited_by("L2"))
    said = see.limits("vectorized", size=1024).alt
    assert f", {2 * 1024**3 / 2e6 / 1e3:.2f} TFLOPS: L2 90 %" in said
    assert "1024³; measured with Nsight Compute 2025.3.1.0; NVIDIA H200, driver 580." in said
    assert "TFLOPS" not in see.limits(profile(**limited_by("L2"))).alt  # its work is not known


def test_few_samples_are_called_rough():
    few = {reason: count // 100 for reason, count in SAMPLES.items()}
    assert "Rough, with fewer than 2,500 samples: mine." in see.limits(profile(samples=few, **IDLE)).alt


def test_what_cannot_be_shown_is_refused_in_a_sentence(shelf):
    with pytest.raises(ValueError, match=r"^no warp of mine was sampled: it ran for too short a time\.$"):
        see.limits(profile(samples={}, **IDLE))
    with pytest.raises(
        ValueError, match=r"^it was not measured how busy the parts of the GPU were with mine\.$"
    ):
        see.limits(profile())
    with pytest.raises(NoProfile, match="no profile was recorded of any stage at 4096³"):
        see.limits()


def test_an_unknown_name_is_refused_with_what_there_is():
    with pytest.raises(NoProfile, match="no profile was recorded of block_tilde"):
        see.limits("block_tilde")


def test_all_recorded_stages_and_their_limits():
    names = [stage.name for stage in LADDER if stage.name in set(records.profiles()["stage"])]
    said = see.limits().alt
    assert re.findall(r"(\w+), [\d.,]+ TFLOPS: ", said) == names
    told = re.findall(r"(?:Busiest|Warps wait): (.*?); next (.*?); at most", said)
    found = [verdict(recorded(name)) for name in names]
    assert [limit.split(",")[0] for limit, _ in told] == [
        "waiting" if v.waiting else v.limiter for v in found
    ]
    assert [after for _, after in told] == [v.next for v in found]
