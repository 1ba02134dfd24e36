"""What limits a kernel, from made-up profiles and from the recorded ones."""

from types import SimpleNamespace

import pytest

from gemm_course import records
from gemm_course.compiler.kinds import MULTIPLY_ADD
from gemm_course.profiles import WAITS, recorded, verdict
from gemm_course.profiles.verdict import LIMIT, PARTS

MEASURES = [name for part in PARTS for name in part.measures]
PART_NAMES = {part.name for part in PARTS}


def made_up(waits=None, idle=0.0, **busy):
    """A profile whose parts are busy in 10 % of the clocks, but for those given."""
    return SimpleNamespace(
        name="kernel",
        measured={
            "clocks": 1000.0,
            "active_clocks": 1000.0 * (1 - idle),
            **dict.fromkeys(MEASURES, 10.0),
            **busy,
        },
        waits={**dict.fromkeys(WAITS, 0.0), **(waits or {"barrier": 0.4, "issuing": 0.6})},
        executed={MULTIPLY_ADD: 60, "move": 40},
    )


def test_the_busiest_part_is_the_limit_and_the_second_is_next():
    found = verdict(made_up(l1_data=80.0, issue_slots=50.0))
    assert (found.limiter, found.waiting, found.next) == ("L1 and shared memory", False, "issue slots")
    assert (found.share, found.next_share, found.at_most) == pytest.approx((0.8, 0.5, 2.0))
    assert "80 % of the clocks" in str(found) and "at most 2 times as fast" in str(found)
    assert "no work" not in str(found)


def test_measures_of_one_part_are_no_two_limits():
    found = verdict(made_up(l1_data=90.0, l1_writeback=85.0, dram=30.0))
    assert (found.limiter, found.next) == ("L1 and shared memory", "DRAM")


def test_without_a_busy_part_the_longest_wait_is_the_limit():
    found = verdict(made_up(fma_pipe=100 * LIMIT - 1, waits={"issuing": 0.7, "copies": 0.2, "barrier": 0.1}))
    assert (found.limiter, found.waiting, found.share) == ("copies", True, 0.2)
    assert found.next == "multiply-add units"
    assert found.sentence.startswith("Waiting: a warp waits 20 % of its time for copies")


def test_time_that_is_not_lost_is_no_wait():
    found = verdict(made_up(waits={"issuing": 0.5, "another warp's turn": 0.4, "barrier": 0.1}))
    assert found.limiter == "barrier"


def test_a_part_is_judged_by_the_clocks_in_which_there_is_work():
    found = verdict(made_up(tensor_pipe=63.0, idle=0.3))
    assert (found.limiter, found.idle) == ("Tensor Cores", pytest.approx(0.3))
    assert found.share == pytest.approx(0.9)
    assert "no work for 30 % of the launch" in str(found)


def test_issue_slots_are_told_with_what_they_were_for():
    assert "60 % of them for multiply-adds" in str(verdict(made_up(issue_slots=90.0)))
    assert "multiply-adds" not in str(verdict(made_up(dram=90.0)))


def test_a_part_that_was_not_measured_is_not_busy():
    assert verdict(made_up(dram=None, l2=80.0)).limiter == "L2"


def test_every_recorded_profile_has_a_verdict():
    for row in records.profiles().itertuples():
        found = verdict(recorded(row.stage, records.parse_tiles(row.tiles), (row.m, row.n, row.k)))
        assert found.limiter in (WAITS if found.waiting else PART_NAMES)
        assert found.next in PART_NAMES - {found.limiter}
        assert 0 < found.next_share <= 1 and 0 < found.share <= 1 and 0 <= found.idle < 0.1
