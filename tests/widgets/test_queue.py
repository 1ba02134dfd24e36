"""The queue at a place of L1: it is as long as the emulator counts wavefronts."""

import re
from itertools import product

import pytest

from gemm_course import widgets as see
from gemm_course.figures import colours
from gemm_course.widgets import _queue
from lockstep import wavefronts
from tests.figures.page import faults

STATES = list(product(_queue.READS, _queue.PADDING))


@pytest.mark.parametrize("state", STATES)
def test_the_longest_queue_is_the_number_of_wavefronts(state):
    counted = wavefronts(_queue.floats(*state))
    alt = _queue.draw(*state).alt
    told = [int(number) for number in re.findall(r"(\d+) at place", alt)]
    assert f": {counted} wavefront" in alt
    assert max(told, default=1) == counted
    assert sum(told) in (len(set(_queue.floats(*state))), 0)


@pytest.mark.parametrize("state", STATES)
def test_the_longest_queues_are_outlined(state):
    counted = wavefronts(_queue.floats(*state))
    outlined = _queue.draw(*state).data.count(f'stroke="{colours.WARN}"')
    assert outlined == (len(set(_queue.floats(*state))) // counted if counted > 1 else 0)


def test_no_padding_is_so_fine_that_the_lines_and_not_the_queue_are_the_limit():
    """L1 looks up 4 lines per clock."""
    for padding in _queue.PADDING:
        wanted = _queue.floats("a column of A", padding)
        assert wavefronts(wanted) >= len({word // 32 for word in wanted}) / 4


def test_it_opens_at_the_longest_queue():
    explorer = see.queue.makes_explorer()
    assert ": 32 wavefronts" in explorer.picture(explorer.controls.start()).alt


def test_nothing_lies_over_anything_and_all_are_equally_high():
    shown = [_queue.draw(*state) for state in STATES]
    assert [fault for each in shown for fault in faults(each)] == []
    (height,) = {each.data.split('viewBox="')[1].split('"')[0].split()[3] for each in shown}
    assert float(height) * 1.2 < 640
