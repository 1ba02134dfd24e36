"""Hardware counters of recorded launches beside those of a report.

Hardware counts what the compiler made of the source. Where that differs from the source, :class:`Explained`
says why, and by exactly how much; everything else must be equal. (Nsight Compute's "ideal" wavefronts are its
own model, not a count, and are left out.)
"""

import csv
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path

RECORDED = Path(__file__).parents[1] / "recorded"
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
    "matrix_load_requests",
    "matrix_load_wavefronts",
    "mma_instructions",
    "unit_wavefronts",
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
    """measured = ratio * emulated + plus, exactly; or, with `or_more`, at least that."""

    reason: str
    ratio: Fraction = Fraction(1)
    or_more: bool = False
    plus: int = 0

    def measured(self, emulated):
        return emulated * self.ratio + self.plus

    def allows(self, measured, emulated):
        expected = self.measured(emulated)
        return measured >= expected if self.or_more else measured == expected and measured != emulated


@cache
def recorded(name, folder=RECORDED):
    """{case: {counter: value}} of one file of hardware counters."""
    with (folder / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return {row["case"]: row for row in csv.DictReader(file)}


def hardware(row):
    """The counters of one row. Reductions, which are atomics with an unused result, count as atomics."""
    counts = {name: int(float(row.get(name) or 0)) for name in COUNTERS}
    for unit in ("requests", "sectors"):
        counts[f"global_atomic_{unit}"] += int(row[f"global_reduction_{unit}"])
    return counts


def emulated(report):
    """What the emulator's report says for the same counters."""
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
    """Fail with every counter that is neither equal nor different exactly as explained."""
    wrong = []
    for name, count in counted.items():
        explanation = explained.get(name)
        applies = explanation and (count or explanation.plus)
        if applies and not explanation.allows(measured[name], count):
            wrong.append(
                f"{name}: emulated {count}, so {explanation.measured(count)} expected "
                f"({explanation.reason}); measured {measured[name]}"
            )
        elif not applies and measured[name] != count:
            wrong.append(f"{name}: emulated {count}, measured {measured[name]}")
    assert not wrong, "\n".join(wrong)
