"""The emulator's counts against an H200's hardware counters, kernel by kernel.

Hardware counts what the compiler made of the source. Where that differs from the source, EXPLAINED says
which counter differs, why, and by exactly how much; everything else must be equal. (Nsight Compute's "ideal"
wavefronts are its own model, not a count, and are left out.)
"""

import csv
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from gemm_course.emulator import emulate
from gemm_course.kernels import LADDER
from tests.emulator.counter_cases import CASES

RECORDED = Path(__file__).parents[2] / "data" / "h200" / "counters"
COUNTERS = (
    "global_load_requests",
    "global_load_sectors",
    "global_store_requests",
    "global_store_sectors",
    "global_atomic_requests",
    "global_atomic_sectors",
    "shared_load_requests",
    "shared_load_wavefronts",
    "shared_store_requests",
    "shared_store_wavefronts",
    "shared_atomic_requests",
    "async_copy_requests",
    "async_copy_sectors",
    "local_load_requests",
    "local_store_requests",
    "float32_fma",
    "float32_add",
    "float32_mul",
    "float64_fma",
    "float64_add",
    "float64_mul",
)


@dataclass(frozen=True)
class Explained:
    """measured = ratio * emulated, exactly; or, with `or_more`, at least that."""

    reason: str
    ratio: Fraction = Fraction(1)
    or_more: bool = False

    def measured(self, emulated):
        return emulated * self.ratio

    def allows(self, measured, emulated):
        expected = self.measured(emulated)
        return measured >= expected if self.or_more else measured == expected and measured != emulated


@cache
def recorded(name):
    """{case: {counter: value}} of one file of hardware counters."""
    with (RECORDED / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return {row["case"]: row for row in csv.DictReader(file)}


def hardware(row):
    """The counters of one row; reductions are atomics whose old value nobody wanted."""
    counts = {name: int(row[name]) for name in COUNTERS}
    for unit in ("requests", "sectors"):
        counts[f"global_atomic_{unit}"] += int(row[f"global_reduction_{unit}"])
    return counts


def emulated(report):
    """The same counters from a report."""
    accesses = report.accesses.fillna(0)
    counts = dict.fromkeys(COUNTERS, 0)
    for row in accesses.to_dict("records"):
        for unit in ("requests", "sectors", "wavefronts"):
            name = f"{row['space']}_{row['op']}_{unit}"
            if name in counts:
                counts[name] += int(row[unit])
    for row in report.arithmetic.to_dict("records"):
        name = f"{row['dtype']}_{row['op']}"
        if name in counts:
            counts[name] += int(row["lanes"])
    return counts


def compare(measured, counted, explained):
    """Fail with every counter that is neither equal nor different in just the way that is explained."""
    wrong = []
    for name, count in counted.items():
        explanation = explained.get(name)
        if explanation and count and not explanation.allows(measured[name], count):
            wrong.append(
                f"{name}: emulated {count}, so {explanation.measured(count)} expected "
                f"({explanation.reason}); measured {measured[name]}"
            )
        elif not (explanation and count) and measured[name] != count:
            wrong.append(f"{name}: emulated {count}, measured {measured[name]}")
    assert not wrong, "\n".join(wrong)


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
    assert bool(explained) == bool(case.compiled_view), "compiled_view and the table must tell the same"
    compare(hardware(row), emulated(report), explained)


# --- the ladder -----------------------------------------------------------------------------------------

MERGED = "the compiler merges four neighbouring 32-bit shared loads of a thread into one of 128 bits"
IN_PARTS = (
    "some warps issue a load in parts: 2.4 % more instructions, not equally many in every run, but exactly "
    "as many wavefronts; why they split is not known"
)
WHOLE_COPY = (
    "Nsight Compute counts the sectors of a copy's addresses, also where it reads fewer bytes or none"
)
ASYNCHRONOUS = {"async_copy": ("A", "B", "As", "Bs")}


def merged(requests, wavefronts=None):
    """Explanations of the counters of shared loads that the compiler merged."""
    ratios = {"shared_load_requests": requests, "shared_load_wavefronts": wavefronts}
    return {name: Explained(MERGED, Fraction(ratio)) for name, ratio in ratios.items() if ratio}


EXPLAINED_STAGES = {
    "penny_xu_tile": merged("5/8", "3/4"),
    "block_tiled": merged("5/8", "3/4"),
    "thread_tiled_1d": merged("3/11", "17/33"),
    "thread_tiled_2d": merged("1/4", "5/12"),
    "kernel5": merged("1/4", "5/12"),
    "vectorized": merged("1/4", "1/2"),
    "warp_tiled_tm1": merged("5/8"),
    "warp_tiled": merged("1/4", "3/4"),
    "double_buffered": merged("1/4", "2/3"),
    "async_copy": {
        "shared_load_requests": Explained(IN_PARTS, or_more=True),
        "async_copy_sectors": Explained(WHOLE_COPY, or_more=True),
    },
}


def tiles_of(row):
    return {name: int(size) for name, size in (part.split("=") for part in row["tiles"].split())}


def views(stage, row):
    """(m, n, k, alpha, A, B, beta, C) of a recorded launch, without memory behind it."""
    m, n, k = (int(row[name]) for name in "mnk")
    floats = stage.alignment // 4
    shapes = [(rows, -(-width // floats) * floats) for rows, width in ((m, k), (k, n), (m, n))]
    A, B, C = (np.broadcast_to(np.float32(0), shape) for shape in shapes)
    return m, n, k, np.float32(1), A, B, np.float32(0.5 if "beta" in row["case"] else 0), C


def move_asynchronous(counts, report, arrays):
    """cp.async is one instruction to the hardware: only its requests count among those of ordinary loads."""
    accesses = report.accesses.fillna(0)
    copies = accesses[accesses["array"].isin(arrays)]
    loads = copies[(copies["space"] == "global") & (copies["op"] == "load")]
    stores = copies[(copies["space"] == "shared") & (copies["op"] == "store")]
    counts["async_copy_requests"] = int(loads["requests"].sum())
    counts["async_copy_sectors"] = int(loads["sectors"].sum())
    counts["global_load_sectors"] -= counts["async_copy_sectors"]
    counts["shared_store_requests"] -= int(stores["requests"].sum())
    counts["shared_store_wavefronts"] -= int(stores["wavefronts"].sum())


def test_every_stage_was_recorded():
    assert {row["case"].split()[0] for row in recorded("ladder").values()} == {stage.name for stage in LADDER}


@pytest.mark.parametrize("case", recorded("ladder"))
def test_stages_of_the_ladder(case):
    row = recorded("ladder")[case]
    stage, tiles = LADDER[case.split()[0]], tiles_of(row)
    geometry = stage.grid(int(row["m"]), int(row["n"]), tiles), stage.block(tiles)
    report = emulate(
        stage.kernel(tiles),
        *geometry,
        *views(stage, row),
        shared_bytes=stage.shared_bytes(tiles),
        counts_only=True,
    )
    counts, measured = emulated(report), hardware(row)
    for name in ("local_load_requests", "local_store_requests"):  # registers or not: the compiler decides
        del counts[name], measured[name]
    move_asynchronous(counts, report, ASYNCHRONOUS.get(stage.name, ()))
    compare(measured, counts, EXPLAINED_STAGES.get(stage.name, {}))
