"""Reads Nsight Compute's raw page, printed as CSV: a column for each metric, a row for each launch."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Iterator

UNKNOWN = ("", "n/a", "nan", "-")


def csv_rows(lines: Iterable[str]) -> Iterator[list[str]]:
    """The rows of a page; Nsight Compute's messages around them are left out."""
    return csv.reader(line for line in lines if line.startswith('"'))


def launches(lines: Iterable[str]) -> list[dict[str, str]]:
    """The metrics of each launch by name, as text, in the order of the launches."""
    rows = list(csv_rows(lines))
    if not rows:
        return []
    names, _units, *found = rows
    return [dict(zip(names, row)) for row in found]


def number(text: str | None) -> float | None:
    """ "1,096.5" -> 1096.5; None for a metric that has no value."""
    digits = (text or "").replace(",", "")
    return None if digits in UNKNOWN else float(digits)


def whole(text: str | None) -> int | None:
    found = number(text)
    return None if found is None else round(found)


def size(text: str) -> str:
    """ "(128, 4, 1)" -> "128x4x1"."""
    return "x".join(re.findall(r"\d+", text))
