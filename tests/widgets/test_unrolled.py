"""Steps written out: registers, local memory and speed are those of the sweep."""

import pytest

from gemm_course import records
from gemm_course import widgets as see
from gemm_course.kernels import tiles_text
from gemm_course.widgets import _unrolled
from tests.figures.page import faults


def swept(steps):
    tiles = tiles_text({"BM": 128, "BN": 128, "BK": steps, "TM": 32})
    rows = records.sweep()
    (row,) = rows[(rows["stage"] == "thread_tiled_1d") & (rows["tiles"] == tiles)].to_dict("records")
    return row


@pytest.mark.parametrize("steps", [case.steps for case in _unrolled.cases()])
def test_the_figures_are_those_of_the_sweep(steps):
    row = swept(steps)
    told = (
        f"{steps} steps: {row['registers']:.0f} registers, {row['local_bytes']:,.0f} bytes of local memory, "
        f"{row['tflops']:.3g} TFLOPS"
    )
    assert told in _unrolled.draw(steps).plain.alt


def test_all_that_was_measured_can_be_chosen():
    assert [case.steps for case in _unrolled.cases()] == [4, 8, 16, 32]


def test_it_opens_before_the_registers_are_too_few():
    """The fast case is shown, and what the next notch costs is not."""
    explorer = see.unrolled.makes_explorer()
    alt = explorer.picture(explorer.controls.start()).plain.alt
    assert alt.startswith("8 steps written out: 24 bytes of local memory, 21.2 TFLOPS")
    assert "16 steps" not in alt and ">672<" not in explorer.picture(explorer.controls.start()).data


def test_the_most_registers_are_those_of_the_cap():
    """The driver gave every case as many as the cap allows."""
    for case in _unrolled.cases():
        assert (
            f"A thread may have {case.registers} registers, so that 2 blocks"
            in _unrolled.draw(case.steps).alt
        )


def test_nothing_lies_over_anything_and_all_are_equally_high():
    shown = [_unrolled.draw(case.steps) for case in _unrolled.cases()]
    assert [fault for each in shown for fault in faults(each)] == []
    assert len({each.data.split('viewBox="')[1].split('"')[0] for each in shown}) == 1
