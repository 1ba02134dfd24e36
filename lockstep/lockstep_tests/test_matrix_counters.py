"""ldmatrix on the emulator against an H200's counters: the same wavefronts for every layout of the rows."""

import csv
from pathlib import Path

import pytest

from lockstep import emulate, wavefronts
from lockstep_tests.matrix_cases import CASES

RECORDED = Path(__file__).parents[1] / "recorded" / "matrix_cases.csv"


def emulated(case):
    """(requests, wavefronts) of the one ldmatrix."""
    report = emulate(case.kernel, case.grid, case.block, *case.make_args(), shared_bytes=case.shared_bytes)
    assert report.ok, [str(finding) for finding in report.findings]
    accesses = report.accesses
    loads = accesses[(accesses["space"] == "shared") & (accesses["op"] == "load")]
    return int(loads["requests"].sum()), int(loads["wavefronts"].sum())


@pytest.mark.many(one_in=3)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_matrix_takes_at_least_one_wavefront(case):
    """Eight rows of 16 bytes fill the banks once; what each group of eight lanes needs adds up."""
    rows = case.make_args()[0] // 2  # 32-bit words
    matrices = 2 if "x2" in case.name else 4
    groups = [rows[8 * i : 8 * i + 8] for i in range(matrices)]
    right = sum(wavefronts([word + e for word in group for e in range(4)]) for group in groups)
    assert emulated(case) == (1, right)


def test_padding_and_swizzles_avoid_conflicts():
    found = {case.name: emulated(case)[1] for case in CASES if case.name.endswith(", x4")}
    assert found["plain rows of 64, x4"] == 32
    for layout in (
        "rows of 64 padded by 8",
        "rows of 64 swizzled",
        "rows of 32 swizzled",
        "rows of 16 swizzled",
    ):
        assert found[f"{layout}, x4"] == 4


def recorded():
    """{case: row} of the hardware's counters."""
    with RECORDED.open(newline="", encoding="utf-8") as file:
        return {row["case"]: row for row in csv.DictReader(file)}


@pytest.mark.many(one_in=3)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_hardware_counts_the_same(case):
    row = recorded()[case.name]
    assert emulated(case) == (int(row["matrix_load_requests"]), int(row["matrix_load_wavefronts"]))
