"""Exercises of the notebook `hopper`: right answers in other styles pass, and what is not claimed."""

import pytest

from tests.checks.cells import verdict_of
from tests.wrong_solutions.altering import changed, solution

WAIT = "        mbarrier_wait(empty, slot, parity ^ 1)\n"
NEXT = """        slot += 1
        if slot == slots:
            slot, parity = 0, parity ^ 1
"""
STARTED_AT_ONE = (("slot, parity = 0, 0", "slot, parity = 0, 1"), ("parity ^ 1)", "parity)"))
BY_DIVISION = (
    ("    slot, parity = 0, 0\n", ""),
    (
        WAIT,
        "        slot = step % slots\n        mbarrier_wait(empty, slot, 1 - step // slots % 2)\n",
    ),
    (NEXT, ""),
)
ONLY_WHERE_NEEDED = ((WAIT, f"        if step >= slots:\n    {WAIT}"),)
B_FIRST = (
    ("tma_load(As, (slot, 0, 0), A, (row0, step * 64)", "tma_load(Xs, (slot, 0, 0), A, (row0, step * 64)"),
    ("tma_load(Bs, (slot, 0, 0), B, (step * 64, col0)", "tma_load(As, (slot, 0, 0), A, (row0, step * 64)"),
    ("tma_load(Xs, (slot, 0, 0), A, (row0, step * 64)", "tma_load(Bs, (slot, 0, 0), B, (step * 64, col0)"),
)


@pytest.mark.many(one_in=4)
@pytest.mark.parametrize(
    "changes",
    [STARTED_AT_ONE, BY_DIVISION, ONLY_WHERE_NEEDED, B_FIRST],
    ids=["parity_from_one", "by_division", "waits_where_needed", "b_first"],
)
def test_a_producer_in_other_words(changes):
    verdict = verdict_of(changed(solution("producer"), *changes))
    assert verdict.passed, verdict


def test_a_parity_may_be_a_truth_value():
    verdict = verdict_of(changed(solution("parities"), ("1 - times % 2", "not times % 2")))
    assert verdict.passed, verdict


GIVE_BACK = "        if lane == 0 and step > 0:\n            mbarrier_arrive(empty, before)\n"
SIMPLE = (
    ("        wgmma_wait(1)\n", "        wgmma_wait(0)\n"),
    (GIVE_BACK, "        if lane == 0:\n            mbarrier_arrive(empty, slot)\n"),
    ("        before = slot\n", ""),
    ("    before = 0\n", ""),
)
LAST_LANE = (("if lane == 0", "if lane == 31"),)
A_GROUP_EACH = (
    ("(slot, p, 0))\n        wgmma_commit()\n", "(slot, p, 0))\n            wgmma_commit()\n"),
    ("        wgmma_wait(1)\n", "        wgmma_wait(4)\n"),
)
WRITTEN_OUT = (
    (
        "        for p in unroll(range(0, 64, 16)):\n"
        "            wgmma(64, acc, As, (slot, 0, p), Bs, (slot, p, 0))\n",
        "".join(
            f"        wgmma(64, acc, As, (slot, 0, {p}), Bs, (slot, {p}, 0))\n" for p in range(0, 64, 16)
        ),
    ),
)


@pytest.mark.many(one_in=4)
@pytest.mark.parametrize(
    "changes",
    [SIMPLE, LAST_LANE, A_GROUP_EACH, WRITTEN_OUT],
    ids=["waits_for_all", "last_lane", "a_group_each", "written_out"],
)
def test_consumers_in_other_words(changes):
    verdict = verdict_of(changed(solution("consumer"), *changes))
    assert verdict.passed, verdict


def test_a_right_parity_is_not_blamed_for_wrong_bytes():
    told = verdict_of(changed(solution("producer"), ("2 * 64 * 64 * 2", "10_000")))
    assert "so the phase never ends" in told.message
    assert "parity ^ 1" not in told.message and "opens before" not in told.message
