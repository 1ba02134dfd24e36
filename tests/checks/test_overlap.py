"""Exercises of the notebook `overlap`: right answers in other styles pass, and what is not claimed."""

import numpy as np
import pytest

from gemm_course import compiled, road
from tests.checks.cells import checked_cells, verdict_of
from tests.wrong_solutions.altering import changed, solution
from tests.wrong_solutions.overlap import WRONG

WHILE = (
    ("    for t in range(tiles):\n", "    t = 0\n    while t < tiles:\n"),
    ("        cuda.syncthreads()\n    C[", "        cuda.syncthreads()\n        t += 1\n    C["),
)
TOGGLED = (
    ("    tiles = k // 16\n", "    tiles = k // 16\n    slot, free = 0, 1\n"),
    ("        slot = t % 2\n", ""),
    ("1 - slot", "free"),
    (
        "        cuda.syncthreads()\n    C[",
        "        cuda.syncthreads()\n        slot, free = free, slot\n    C[",
    ),
)
CLAMPED = (
    (
        """        if t + 1 < tiles:
            next_a = A[row, (t + 1) * 16 + tx]
            next_b = B[(t + 1) * 16 + ty, col]
""",
        """        after = min(t + 1, tiles - 1) * 16
        next_a, next_b = A[row, after + tx], B[after + ty, col]
""",
    ),
)


@pytest.mark.parametrize("changes", [WHILE, TOGGLED, CLAMPED], ids=["while", "toggled", "clamped"])
def test_two_slots_in_other_words(changes):
    verdict = verdict_of(changed(solution("two_slots"), *changes))
    assert verdict.passed, verdict


FETCH = "            fetch(As, Bs, (t + SLOTS - 1) % SLOTS, A, B, row, col, t + SLOTS - 1, m, n, k)\n"
GUARDED = ((FETCH, f"            if t + SLOTS - 1 < (k + 15) // 16:\n    {FETCH}"),)
COUNTED = (
    (
        "        for t in range((k + 15) // 16):\n",
        "        slot = 0\n        for k0 in range(0, k, 16):\n            t = k0 // 16\n",
    ),
    ("t % SLOTS, ", "slot, "),
    ("        cp_async_wait(0)\n", "            slot = (slot + 1) % SLOTS\n        cp_async_wait(0)\n"),
)
NAMED = (("IN_FLIGHT", "AHEAD"),)
TAIL = (
    (
        "        for t in range((k + 15) // 16):\n",
        "        tiles = (k + 15) // 16\n        for t in range(tiles):\n",
    ),
)
DRAINED = (
    (
        "            cp_async_wait(IN_FLIGHT)\n",
        "            if t + SLOTS - 1 <= (k + 15) // 16:\n                cp_async_wait(IN_FLIGHT)\n"
        "            else:\n                cp_async_wait(0)\n",
    ),
    (
        FETCH + "            cp_async_commit()\n",
        f"            if t + SLOTS - 1 < (k + 15) // 16:\n    {FETCH}                cp_async_commit()\n",
    ),
)


@pytest.mark.many(one_in=5)
@pytest.mark.parametrize(
    "changes",
    [GUARDED, COUNTED, NAMED, TAIL, DRAINED],
    ids=["guarded", "counted", "named", "tiles", "drained"],
)
def test_a_ring_in_other_words(changes):
    verdict = verdict_of(changed(solution("any_ring"), *changes))
    assert verdict.passed, verdict


@pytest.mark.parametrize(
    "order",
    [
        "[(i if j % 2 == 0 else TM - 1 - i, j) for j in range(TN) for i in range(TM)]",
        "[(TM - 1 - i, s if i % 2 else TN - 1 - s) for i in range(TM) for s in range(TN)]",
    ],
)
def test_any_walk_whose_steps_share_an_operand_passes(order):
    verdict = verdict_of(f"def walk(TM, TN):\n    return {order}\n\n\ncheck.shared_walk(walk)")
    assert verdict.passed, verdict


@pytest.mark.many(one_in=2)
@pytest.mark.compiler
@pytest.mark.parametrize("slots", [2, 4])
def test_the_ring_of_the_solution_compiles(slots):
    make = verdict_of(solution("any_ring").replace("check.any_ring(make_ring)", "make_ring"))
    A = np.zeros((4, 4), np.float32)
    assert compiled(make(slots), 4, 4, 4, A, A, A).registers


ONE_STEP_BACK = (
    (
        "            fetch(As, Bs, (t + SLOTS - 1) % SLOTS, A, B, t + SLOTS - 1, m, n, k)\n            for p",
        "            for p",
    ),
    (
        "                    slot = (t + 1) % SLOTS\n",
        "                    slot = (t + 1) % SLOTS\n"
        "                    fetch(As, Bs, t % SLOTS, A, B, t + SLOTS, m, n, k)\n",
    ),
    ("        for t in range(SLOTS - 1):\n", "        for t in range(SLOTS):\n"),
    ("IN_FLIGHT = SLOTS - 2", "IN_FLIGHT = SLOTS - 1"),
    ("                    cp_async_wait(IN_FLIGHT)\n", "                    cp_async_wait(SLOTS - 2)\n"),
    ("cp_async_wait(SLOTS - 2)", "cp_async_wait(LATER)"),
    ("    fetch, read_step", "    LATER = SLOTS - 2\n    fetch, read_step"),
)
TWO_ARRAYS = (
    (
        "a = cuda.local.array((2, 4), float32)",
        "a0, a1 = (cuda.local.array(4, float32), cuda.local.array(4, float32))",
    ),
    (
        "b = cuda.local.array((2, 4), float32)",
        "b0, b1 = (cuda.local.array(4, float32), cuda.local.array(4, float32))",
    ),
    ("read_step(a[0], b[0], As, Bs, 0, 0)", "read_step(a0, b0, As, Bs, 0, 0)"),
    (
        "                now, then = p % 2, (p + 1) % 2\n"
        "                read_step(a[then], b[then], As, Bs, slot, (p + 1) % BK)\n"
        "                add_step(acc, a[now], b[now])\n",
        "                if p % 2 == 0:\n"
        "                    read_step(a1, b1, As, Bs, slot, (p + 1) % BK)\n"
        "                    add_step(acc, a0, b0)\n"
        "                else:\n"
        "                    read_step(a0, b0, As, Bs, slot, (p + 1) % BK)\n"
        "                    add_step(acc, a1, b1)\n",
    ),
)


@pytest.mark.parametrize(
    "changes", [ONE_STEP_BACK, TWO_ARRAYS], ids=["asks_behind_the_barrier", "two_arrays"]
)
def test_reading_ahead_in_other_words(changes):
    verdict = verdict_of(changed(solution("reads_ahead"), *changes))
    assert verdict.passed, verdict


PEELED = (
    ("            for p in unroll(range(BK)):\n", "            for p in unroll(range(BK - 1)):\n"),
    (
        """                slot = t % SLOTS
                if p == BK - 1:
                    cp_async_wait(IN_FLIGHT)
                    cuda.syncthreads()
                    slot = (t + 1) % SLOTS
""",
        "",
    ),
    ("Bs, slot, (p + 1) % BK)", "Bs, t % SLOTS, p + 1)"),
    (
        "                add_step(acc, a[now], b[now])\n",
        """                add_step(acc, a[now], b[now])
            cp_async_wait(IN_FLIGHT)
            cuda.syncthreads()
            read_step(a[0], b[0], As, Bs, (t + 1) % SLOTS, 0)
            add_step(acc, a[1], b[1])
""",
    ),
)


def test_reading_ahead_with_the_last_step_behind_the_loop():
    verdict = verdict_of(changed(solution("reads_ahead"), *PEELED))
    assert verdict.passed, verdict


def test_a_last_wait_that_only_some_threads_reach():
    only_inside = (
        "        cp_async_wait(0)\n",
        "        if row < m and col < n:\n            cp_async_wait(0)\n",
    )
    verdict = verdict_of(changed(solution("any_ring"), only_inside))
    assert not verdict.passed and "those outside C too" in verdict.message


@pytest.mark.compiler
def test_both_sets_of_operands_stay_in_registers():
    make = verdict_of(
        solution("reads_ahead").replace("check.reads_ahead(make_reads_ahead)", "make_reads_ahead")
    )
    A = np.zeros((4, 4), np.float32)
    assert compiled(make(3, 8), 4, 4, 4, A, A, A).local_bytes == 0


LATE = ["no_wait", "waits_for_too_few", "barrier_before_the_wait", "commit_in_the_guard"]


@pytest.mark.parametrize("mistake", LATE)
def test_who_has_a_barrier_is_not_told_that_there_is_none(mistake):
    verdict = WRONG["any_ring"][mistake].verdict()
    assert "no barrier" not in verdict.message
    assert "syncwarp" not in verdict.message


def test_a_wait_behind_the_commit_may_let_one_group_more_go_on():
    """It is the slot that is filled too early, not the tile that is read too early."""
    wait, meet = "            cp_async_wait(IN_FLIGHT)\n", "            cuda.syncthreads()\n"
    ask = FETCH + "            cp_async_commit()\n"
    early = (
        ("    IN_FLIGHT = SLOTS - 2\n", "    IN_FLIGHT = SLOTS - 1\n"),
        (wait + meet + ask, ask + wait + meet),
    )
    verdict = verdict_of(changed(solution("any_ring"), *early))
    assert "The next copies start before the barrier" in verdict.message


def test_of_a_copy_that_came_too_late_the_wait_is_shown():
    assert "`cp_async_wait(IN_FLIGHT)`" in str(WRONG["any_ring"]["waits_for_too_few"].verdict())


def test_a_walk_that_breaks_once_breaks_once():
    verdict = verdict_of(
        "def walk(TM, TN):\n    return [(i, j) for i in range(TM) for j in range(TN)]\n\n\n"
        "check.shared_walk(walk)"
    )
    assert "It happens once." in verdict.message


def test_a_tile_that_depends_on_all_numbers_is_not_called_the_same():
    last = "group * GROUP + within % height, within // height"
    wrong = changed(solution("grouped_tile"), (last, "group * GROUP + within % height, within // height + 1"))
    assert "the same whatever" not in verdict_of(wrong).message


def test_stubs_are_not_called_wrong():
    stubs = checked_cells("stub")
    for name in road.notebook("overlap").exercises:
        assert "Not tried yet" in str(verdict_of(stubs[name])), name
