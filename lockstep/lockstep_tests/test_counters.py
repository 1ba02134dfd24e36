"""The emulator's counts against an H200's hardware counters, for kernels written for counting."""

from fractions import Fraction

import pytest

from lockstep import emulate
from lockstep_tests.counter_cases import CASES
from lockstep_tests.counters import Explained, compare, emulated, hardware, recorded

IN_REGISTERS = Explained("the local array lives in registers: its accesses cost nothing", Fraction(0))


EXPLAINED_CASES = {
    "accumulators_in_registers": dict.fromkeys(("local_load_requests", "local_store_requests"), IN_REGISTERS),
}


def test_every_case_was_recorded():
    assert set(recorded("counter_cases")) == {case.name for case in CASES}, "record counter_cases.py again"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kernels_written_for_counting(case):
    row = recorded("counter_cases")[case.name]
    report = emulate(case.kernel, case.grid, case.block, *case.make_args(), shared_bytes=case.shared_bytes)
    assert report.ok, [str(finding) for finding in report.findings]
    explained = EXPLAINED_CASES.get(case.name, {})
    assert bool(explained) == bool(case.compiled_view), "compiled_view and the table must agree"
    compare(hardware(row), emulated(report), explained)
