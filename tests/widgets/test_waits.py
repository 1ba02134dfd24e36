"""`see.waits`: which profiles it takes, what it says of them, and what it refuses."""

import re

import pytest

from gemm_course import records
from gemm_course import widgets as see
from gemm_course.kernels import LADDER
from gemm_course.profiles import NoProfile, recorded, verdict
from gemm_course.profiles.words import percent
from gemm_course.records.columns import PROFILE_BUSY
from tests.figures.page import faults
from tests.widgets.made_up_profiles import SAMPLES, profile


def test_the_title_of_one_says_how_long_it_waits_and_most_for_what():
    picture = see.waits(profile())
    assert picture.alt.startswith("mine: a warp waits 76 % of its time, 36 % at barriers. A bar is")
    assert (
        "mine: a warp's time: issuing 4 %, another warp's turn 20 %, global memory 16 %, queue to shared "
        "memory 24 %, barrier 36 %." in picture.alt
    )


def test_without_times_the_title_of_several_says_what_changed_most(shelf):
    shelf("block_tiled")
    shelf("thread_tiled_1d", SAMPLES | {"mio": 100, "not_selected": 4300})
    shelf("vectorized", SAMPLES | {"mio": 110, "not_selected": 4290})
    picture = see.waits("block_tiled", LADDER["thread_tiled_1d"], "vectorized")
    assert picture.alt.startswith(
        "A warp waits for room in the queue to shared memory: in block_tiled 24 % of its time, in "
        "thread_tiled_1d 1 %. What changes most in a warp's waiting: queue to shared memory 24 → 1 → 1 %. "
    )


def test_time_well_spent_is_no_answer(shelf):
    shelf("block_tiled")
    shelf("vectorized", SAMPLES | {"not_selected": 9000})
    title = see.waits("block_tiled", "vectorized").alt.split(". ")[0]
    assert "barriers" in title and "turn" not in title


def test_instructions_and_how_fast_they_are_issued_explain_the_times():
    """The time is instructions / issue slots taken: so it must follow from the title's own figures."""
    title = see.waits("block_tiled", "thread_tiled_1d", "thread_tiled_2d").alt.split(" of the clocks.")[0]
    times, counts, issues = (
        [float(number) for number in found.split(" → ")]
        for found in re.fullmatch(
            r"(.*) ms: (.*) instructions per multiply-add, issued in (.*) %", title
        ).groups()
    )
    ratios = [time * issue / count for time, count, issue in zip(times, counts, issues, strict=True)]
    assert ratios == pytest.approx([ratios[0]] * 3, rel=0.05)
    work = 4096**3
    for name, count in zip(("block_tiled", "thread_tiled_1d", "thread_tiled_2d"), counts, strict=True):
        assert count == pytest.approx(32 * sum(recorded(name).executed.values()) / work, rel=0.01)


def test_products_take_tensor_cores_as_long_as_measured():
    title = see.waits("mma_sync", "wgmma_tma").alt.split(". What")[0]
    rows = [recorded(name).measured for name in ("mma_sync", "wgmma_tma")]
    busy = " → ".join(f"{row['nanoseconds'] / 1e8 * row['tensor_pipe']:.3g}" for row in rows)
    assert title.endswith(f"of which Tensor Cores compute for {busy} ms")


def test_all_bars_have_the_same_figures_of_the_hardware():
    said = see.waits("mma_sync", "vectorized").alt
    assert said.count("instructions per multiply-add; 2.0 warps") == 1
    assert said.count("instructions per multiply-add; 3.8 warps") == 1
    assert said.count("; issue slots: ") == 2 and "multiply-add units: 64 %" in said
    for name in ("mma_sync", "vectorized"):
        found = verdict(recorded(name))
        assert f"{found.heading}: {found.limit_in_words}." in said


def test_hardware_is_as_measured_while_there_was_work():
    busy = dict.fromkeys(PROFILE_BUSY, 10.0) | {"issue_slots": 55.6, "l1_data": 81.0, "fma_pipe": 20.25}
    took = {"warps_active": 15.91, "nanoseconds": 15_268_352, "clocks": 1000.0, "active_clocks": 900.0}
    alt = see.waits(profile(**busy, **took)).alt
    assert "36 % at barriers; its scheduler issues in 62 % of the clocks. A bar" in alt
    assert (
        "issue slots: 62 %; multiply-add units: 22 %; 15.9 warps per scheduler; Busiest: L1 and shared "
        "memory, busy in 90 % of the clocks." in alt
    )


def test_where_nothing_is_busy_waiting_is_the_limit():
    busy = dict.fromkeys(PROFILE_BUSY, 10.0) | {"clocks": 1000.0, "active_clocks": 1000.0}
    assert "Warps wait: waiting, 36 % of a warp's time at barriers." in see.waits(profile(**busy)).alt
    assert "Limit" not in see.waits(profile()).alt


def test_tensor_cores_are_the_units_of_a_kernel_that_uses_them():
    products = ("HMMA.16816.F32 R0, R4, R8, R0", "BRA 0x0")
    busy = {"issue_slots": 12.0, "tensor_pipe": 85.0, "fma_pipe": 3.0}
    picture = see.waits(profile(code=products, clocks=1000.0, active_clocks=1000.0, **busy))
    assert "Tensor Cores: 85 %" in picture.alt and "multiply-add units" not in picture.alt


def test_waits_for_roots_are_not_told_as_waits_for_shared_memory():
    alt = see.waits(profile(code=("MUFU.RSQ R1, R0", "FFMA R2, R1, R1, R2", "BRA 0x0"))).alt
    assert "Waits for roots and the like count as shared memory: mine." in alt
    assert "roots" not in see.waits(profile()).alt


def test_other_tiles_as_pairs_and_as_dicts(shelf):
    shelf("vectorized")
    shelf("vectorized", tiles={"BK": 16})
    pair = see.waits("vectorized", ("vectorized", {"BK": 16}))
    assert see.waits("vectorized", {"vectorized": {"BK": 16}}).alt == pair.alt
    assert "vectorized BK=16 (BM=128" in pair.alt and "vectorized BK=32 (BM=128" in pair.alt


def test_without_arguments_all_that_is_recorded_in_the_order_of_the_ladder(shelf):
    names = [stage.name for stage in LADDER if stage.name != "kernel5"]
    for name in reversed(names):
        shelf(name)
    said = see.waits().alt.split("What it means")[0]
    assert re.findall(r"(\w+): a warp's time", said) == names
    assert "BM=" not in said  # usual tiles are left out where there is little room


def test_unusual_tiles_are_told_among_many(shelf):
    for stage in LADDER:
        shelf(stage.name)
    shelf("vectorized", tiles={"BK": 16})
    said = see.waits(*LADDER, ("vectorized", {"BK": 16})).alt
    assert "vectorized BK=16 (BM=128 BN=128 BK=16" in said and "kernel5: a warp's time" in said


def test_another_size(shelf):
    shelf("vectorized", size=1024)
    assert "1024³; measured with Nsight Compute 2025.3.1.0; NVIDIA H200, driver 580." in (
        see.waits("vectorized", size=1024).alt
    )


def test_few_samples_are_called_rough():
    few = {reason: count // 100 for reason, count in SAMPLES.items()}
    assert "Rough, with fewer than 2,500 samples: mine." in see.waits(profile(samples=few)).alt
    assert "Rough" not in see.waits(profile()).alt


def test_what_cannot_be_shown_is_refused_in_a_sentence(shelf):
    with pytest.raises(ValueError, match=r"^no warp of mine was sampled: it ran for too short a time\.$"):
        see.waits(profile(samples={}))
    with pytest.raises(NoProfile, match="no profile was recorded of any stage at 4096³"):
        see.waits()


def test_an_unknown_name_is_refused_with_what_there_is():
    with pytest.raises(NoProfile, match="no profile was recorded of block_tilde"):
        see.waits("block_tilde")


def test_all_recorded_stages_and_their_shares():
    rows = records.profiles()
    said = see.waits().alt.split("What it means")[0]
    names = [stage.name for stage in LADDER if stage.name in set(rows["stage"])]
    assert re.findall(r"(\w+), [\d.]+ ms: a warp's time", said) == names
    for name in names:
        found, own = recorded(name), said.split(f"{name}, ")[1].split(" ms: ")[1]
        assert f"issuing {percent(found.waits['issuing'])}" in own or found.waits["issuing"] < 0.05


def test_meanings_can_be_left_out():
    whole, short = (
        see.waits("thread_tiled_1d", "thread_tiled_2d", meanings=meanings) for meanings in (True, False)
    )
    assert faults(short) == []
    assert "What it means" in whole.alt and "What it means" not in short.alt
    assert "More grey" in whole.data and "More grey" not in short.data
    assert ">dispatch<" in short.data
