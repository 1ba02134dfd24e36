"""Reads two of Nsight Compute's pages, printed as CSV.

The raw page has a column for each metric and a row for each launch. The page of sources has a row for each
machine instruction, with what was measured of it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gemm_course.compiler.disassembly import Instruction

UNKNOWN = ("", "n/a", "nan", "-")
STALL = "stall_"
# A column with these words in its name repeats another, without the samples in which the scheduler issued.
NOT_ISSUED = "(Not Issued)"
SAMPLES = "# Samples"
# Each count has a name in the course and another on the page. The page lacks the column of a count for a
# kernel without such accesses.
COLUMNS = {
    "executed": "Instructions Executed",
    "threads": "Predicated-On Thread Instructions Executed",
    "global_sectors": "L2 Theoretical Sectors Global",
    "shared_wavefronts": "L1 Wavefronts Shared",
}
# The samples of warps that wait for their turn with wgmma are in "# Samples", but have no column.
WITHOUT_COLUMN = "gmma"
SPELLINGS = {"sleeping": "sleep"}


def csv_rows(lines: Iterable[str]) -> Iterator[list[str]]:
    """Return the rows of a page, without Nsight Compute's messages around them."""
    return csv.reader(line for line in lines if line.startswith('"'))


def launches(lines: Iterable[str]) -> list[dict[str, str]]:
    """Return the metrics of each launch by name, as text, in the order of the launches."""
    rows = list(csv_rows(lines))
    if not rows:
        return []
    names, _units, *found = rows
    return [dict(zip(names, row)) for row in found]


def number(text: str | None) -> float | None:
    """Return the number in a text, "1,096.5" -> 1096.5, or None for a metric that has no value."""
    digits = (text or "").replace(",", "")
    return None if digits in UNKNOWN else float(digits)


def whole(text: str | None) -> int | None:
    found = number(text)
    return None if found is None else round(found)


def size(text: str) -> str:
    """Return a size as records write it, "(128, 4, 1)" -> "128x4x1"."""
    return "x".join(re.findall(r"\d+", text))


@dataclass(frozen=True)
class Measured:
    """A machine instruction on the page of sources.

    ``address`` is in the GPU's memory. ``counts`` maps the keys of COLUMNS to counts. ``samples`` maps
    each of Nsight Compute's reasons that occur to its number of samples.
    """

    address: int
    text: str
    counts: Mapping[str, int]
    samples: Mapping[str, int]

    @property
    def opcode(self) -> str:
        return Instruction(0, self.text, "", 0).opcode

    @property
    def is_padding(self) -> bool:
        """True for padding at a function's end, which is an empty instruction or a jump to itself."""
        return self.text == "NOP" or self.text == f"BRA {self.address:#x}"


def kernels(lines: Iterable[str]) -> list[list[Measured]]:
    """Return the instructions of each launch, in the page's order. Raise ValueError for any other page."""
    found: list[list[Measured]] = []
    names: list[str] = []
    # ``begun`` is true if the line with a kernel's name was just read.
    begun = False
    for row in csv_rows(lines):
        if row[0] == "Kernel Name":
            found.append([])
            begun = True
        elif row[0] == "Address":
            names = row
            if not begun:
                found.append([])
            begun = False
        elif not names:
            raise ValueError(f"this is not Nsight Compute's page of sources: {row[:3]}")
        else:
            found[-1].append(_measured(dict(zip(names, row))))
    return found


def _measured(row: Mapping[str, str]) -> Measured:
    reasons = {
        SPELLINGS.get(name.removeprefix(STALL), name.removeprefix(STALL)): whole(value) or 0
        for name, value in row.items()
        if name.startswith(STALL) and not name.endswith(NOT_ISSUED)
    }
    # The page of a very short kernel has no column of samples.
    rest = (whole(row.get(SAMPLES)) or 0) - sum(reasons.values())
    if rest < 0:
        raise ValueError(f"at {row['Source'].strip()} Nsight Compute has more reasons than samples")
    reasons[WITHOUT_COLUMN] = reasons.get(WITHOUT_COLUMN, 0) + rest
    return Measured(
        address=int(row["Address"], 16),
        text=" ".join(row["Source"].split()),
        counts={name: whole(row.get(column)) or 0 for name, column in COLUMNS.items()},
        samples={reason: count for reason, count in reasons.items() if count},
    )
