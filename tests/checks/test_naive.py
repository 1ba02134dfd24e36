"""The checkers of `naive`: what they hold answers to is what the emulator counts, and the text's examples."""

import random

import numpy as np
import pytest

from gemm_course import check
from gemm_course.checks.notebooks.naive.l1_queue import REQUESTS, addresses_of
from lockstep import wavefronts
from tests.checks.cells import checked_cells
from tests.notebooks.builder import source_of


def solution_of_l1_queue():
    """The function that the solution notebook writes."""
    space = {"check": check}
    exec(checked_cells("solution")["l1_queue"], space)
    return space["wavefronts"]


@pytest.mark.parametrize("lines", [1, 2, 7, 40, 4096])
def test_the_notebooks_queue_is_the_emulators(lines):
    count, rng = solution_of_l1_queue(), random.Random(lines)
    for _ in range(100):
        floats = [rng.randrange(32 * lines) for _ in range(32)]
        assert count([4 * each for each in floats]) == check.l1_queue.right([4 * each for each in floats])
        assert count([4 * each for each in floats]) == wavefronts(floats)


def test_the_requests_have_the_queues_that_the_notebook_tells():
    queues = {request: check.l1_queue.right(addresses_of(request)) for request in REQUESTS}
    told = {"4096": 1, "4 * lane": 1, "16384 * lane": 32, "(16384 + 32) * lane + 12": 8}
    told |= {"16384 * (lane // 2)": 16, "(16384 + 64) * lane": 16, "4 * lane + 20": 1}
    assert told == {request: queues[request] for request in told}


def test_the_examples_of_the_text_are_right():
    text = source_of("naive").replace("\n# ", " ")
    for request, count in (("4 * lane", 1), ("16384 * (lane // 2)", 16)):
        after = text.split(f"`[{request} for lane in range(32)]`")[1]
        assert after.split("**")[1].split()[0] == str(count) == str(wavefronts(words(request)))


def words(request: str) -> list[int]:
    return [address // 4 for address in addresses_of(request)]


@pytest.mark.parametrize("request_", REQUESTS)
def test_places_decide_in_every_request(request_):
    """A line costs L1 a quarter of a clock: where that is more, the exercise would teach a wrong count."""
    addresses = addresses_of(request_)
    assert all(address >= 0 and address % 4 == 0 for address in addresses)
    lines = {address // 128 for address in addresses}
    assert wavefronts(words(request_)) >= len(lines) / 4


def test_a_refusal_can_be_repeated_and_says_where_the_queue_is():
    where = check.l1_queue(lambda addresses: 7).where
    assert "`wavefronts([4 * lane for lane in range(32)])` gives 7, right is 1" in where
    where = check.l1_queue(lambda addresses: len({address // 128 for address in addresses})).where
    assert "[4 * lane + 20 for" in where and "one float waits" in where


def test_rows_start_at_sectors_and_are_no_longer_than_that_takes():
    def padded(multiple):
        return check.leading_dimension(lambda B: np.pad(B, ((0, 0), (0, -B.shape[1] % multiple))))

    assert padded(8).passed and "4 sectors instead of 4.88" in padded(8).message
    assert "document 004" in padded(16).message and "a whole line" in padded(32).message
    assert not padded(16).passed and not padded(32).passed


def test_a_view_of_the_wide_array_is_as_good():
    def padded(B):
        wide = np.zeros((B.shape[0], B.shape[1] + -B.shape[1] % 8), np.float32)
        wide[:, : B.shape[1]] = B
        return wide[:, : B.shape[1]]

    verdict = check.leading_dimension(padded)
    assert verdict.passed and "become 336 long" in verdict.message and "4 sectors instead" in verdict.message


def test_an_exception_in_the_learners_function_is_a_refusal_with_its_line():
    def padded(B):
        return np.zeros(B.shap)

    verdict = check.leading_dimension(padded)
    assert not verdict.passed and "AttributeError" in verdict.message and "B.shap" in verdict.where
