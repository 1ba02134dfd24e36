"""What limits a kernel, from made-up profiles and from the recorded ones."""

from types import SimpleNamespace

import pytest

from gemm_course import records
from gemm_course.compiler.kinds import MULTIPLY_ADD
from gemm_course.profiles import WAITS, recorded, verdict
from gemm_course.profiles.verdict import LIMIT, PARTS
from gemm_course.profiles.words import three_digits

MEASURES = [name for part in PARTS.values() for name in part.measures]


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
    assert str(found) == (
        "Busiest: L1 and shared memory, busy in 80 % of the clocks. Next: issue slots, 50 %, so at most 2.00 "
        "times as fast. A warp waits 40 % of its time at barriers."
    )


def test_measures_of_one_part_are_no_two_limits():
    found = verdict(made_up(l1_data=90.0, l1_writeback=85.0, dram=30.0))
    assert (found.limiter, found.next) == ("L1 and shared memory", "DRAM")


def test_without_a_busy_part_the_longest_wait_is_the_limit():
    found = verdict(made_up(fma_pipe=100 * LIMIT - 1, waits={"issuing": 0.7, "copies": 0.2, "barrier": 0.1}))
    assert (found.limiter, found.waiting, found.share) == ("copies", True, 0.2)
    assert found.next == "multiply-add units"
    assert str(found) == (
        "A warp waits 20 % of its time for copies, and every part is busy in less than 70 % of the clocks. "
        "If warps never waited, multiply-add units would be full first, busy in 69 % of the clocks now: at "
        "most 1.45 times as fast."
    )


def test_a_wait_with_the_name_of_a_part_is_told_from_it():
    products = {"Tensor Cores": 0.5, "issuing": 0.5}
    waiting, busy = verdict(made_up(waits=products)), verdict(made_up(waits=products, tensor_pipe=90.0))
    assert waiting.limiter == busy.limiter == "Tensor Cores"
    assert waiting.waiting and not busy.waiting
    assert (waiting.share, busy.share) == pytest.approx((0.5, 0.9))


def test_time_that_is_not_lost_is_no_wait():
    found = verdict(made_up(waits={"issuing": 0.5, "another warp's turn": 0.4, "barrier": 0.1}))
    assert found.limiter == "barrier"


def test_a_part_is_judged_by_the_clocks_in_which_there_is_work():
    found = verdict(made_up(tensor_pipe=63.0, idle=0.3))
    assert (found.limiter, found.idle) == ("Tensor Cores", pytest.approx(0.3))
    assert found.share == pytest.approx(0.9)
    assert "no work for 30 % of the launch" in str(found)


def test_issue_slots_are_told_with_what_they_were_for():
    assert "60 % of them by multiply-adds" in str(verdict(made_up(issue_slots=90.0)))
    assert "multiply-adds" not in str(verdict(made_up(dram=90.0)))


def test_a_part_that_was_not_measured_is_left_out():
    found = verdict(made_up(dram=None, l2=80.0, lsu_pipe=None))
    assert found.limiter == "L2" and set(PARTS) - set(found.busy) == {"DRAM"}


@pytest.mark.parametrize("missing", [{"clocks": None}, {"active_clocks": None}, dict.fromkeys(MEASURES[1:])])
def test_without_what_was_measured_there_is_no_verdict(missing):
    with pytest.raises(ValueError, match=r"^it was not measured how busy the parts .* with kernel\.$"):
        verdict(made_up(**missing))


@pytest.mark.parametrize("part", PARTS)
def test_the_limit_is_told_in_words_that_fit_each_part(part):
    found = verdict(made_up(**{PARTS[part].measures[0]: 90.0}))
    most = 10 if part != found.work else 1 / 0.9
    assert found.limiter == part and (found.share, found.at_most) == pytest.approx((0.9, most))
    assert found.sentences[0].startswith(
        f"Busiest: {part}, {'taken' if part == 'issue slots' else 'busy'} in 90"
    )
    assert PARTS[part].are == ("are" if part.endswith("s") else "is")


def test_figures_have_three_digits():
    figures = (0.49837, 1.5, 43, 302.1, 999.6, 1200)
    assert [three_digits(one) for one in figures] == ["0.498", "1.50", "43.0", "302", "1,000", "1,200"]


@pytest.mark.full(reason="reads every profile")
def test_every_recorded_profile_has_a_verdict():
    for row in records.profiles().itertuples():
        found = verdict(recorded(row.stage, records.parse_tiles(row.tiles), (row.m, row.n, row.k)))
        assert found.limiter in (WAITS if found.waiting else PARTS)
        assert found.next in found.busy and (found.waiting or found.next != found.limiter)
        assert 0 < found.next_share <= 1 and 0 < found.share <= 1 and 0 <= found.idle < 0.1


def test_the_part_that_does_the_work_cannot_be_gone():
    found = verdict(made_up(fma_pipe=80.0, l2=50.0))
    assert (found.limiter, found.work, found.next) == ("multiply-add units", "multiply-add units", "L2")
    assert found.at_most == pytest.approx(1 / 0.8)
    assert "They do the work, so at most 1.25 times as fast. Next: L2, 50 %." in str(found)
    assert verdict(made_up(tensor_pipe=80.0, l2=50.0)).at_most == pytest.approx(2)


def test_tensor_cores_do_the_work_of_a_kernel_with_their_products():
    profile = made_up(tensor_pipe=80.0, l2=50.0)
    profile.executed["Tensor Core product"] = 1
    found = verdict(profile)
    assert found.work == "Tensor Cores" and found.at_most == pytest.approx(1.25)
