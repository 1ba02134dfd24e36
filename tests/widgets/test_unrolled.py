"""Steps written out: registers, local memory and speed are those of kernels in which nothing else changes."""

import csv
import re

import pytest

from gemm_course import widgets as see
from gemm_course.records import SHIPPED
from gemm_course.widgets import _unrolled
from tests.figures.page import faults

STEPS = (1, 2, 4, 8, 16)


def recorded(steps):
    """The row of the record, by the csv module."""
    with (SHIPPED.folder / "one_change.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["question"] == "steps written out"]
    (row,) = (row for row in rows if row["change"] == f"{steps} of 16 at a time")
    return row


@pytest.mark.parametrize("steps", STEPS)
def test_the_figures_are_those_of_the_record(steps):
    row = recorded(steps)
    speed = f"{float(row['tflops']):.3g} TFLOPS"
    stored = f"{row['registers']} registers, {row['local_bytes']} bytes of local memory"
    told = f"{steps} step{'s' if steps > 1 else ''}: "
    assert f"{told}{stored}, {speed}" in _unrolled.draw(steps).plain.alt
    assert f"{told}{speed}" in _unrolled.draw(steps, evidence=False).plain.alt


def test_all_that_was_measured_can_be_chosen():
    assert tuple(case.steps for case in _unrolled.cases()) == STEPS


@pytest.mark.parametrize("evidence", [True, False])
def test_it_opens_before_the_last_notch(evidence):
    """The fast case is shown, and what the next notch costs is not."""
    explorer = see.unrolled.makes_explorer(evidence=evidence)
    picture = explorer.picture(explorer.controls.start())
    assert picture.plain.alt.startswith("8 steps written out at a time: ")
    assert "21 TFLOPS" in picture.plain.alt and "16 steps" not in picture.plain.alt
    assert not re.search(r">(672|3\.67)<", picture.data)


def test_without_evidence_nothing_is_said_of_memory():
    for steps in STEPS:
        picture = _unrolled.draw(steps, evidence=False)
        assert not re.search("register|memory", picture.alt + picture.data)


@pytest.mark.parametrize("steps", STEPS)
def test_the_most_registers_are_those_of_the_cap(steps):
    """The driver gave every case as many as the cap allows."""
    told = f"A thread may have {recorded(steps)['registers']} registers, so that 2 blocks"
    assert told in _unrolled.draw(steps).alt


@pytest.mark.parametrize("evidence", [True, False])
def test_nothing_lies_over_anything_and_all_are_equally_high(evidence):
    shown = [_unrolled.draw(steps, evidence) for steps in STEPS]
    assert [fault for each in shown for fault in faults(each)] == []
    assert len({each.data.split('viewBox="')[1].split('"')[0] for each in shown}) == 1
