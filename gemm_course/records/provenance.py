"""Writes the origin of figures in one line."""

from __future__ import annotations

import datetime
import importlib.metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

PARTS = (("gpu", ""), ("driver", "driver "), ("cuda", "CUDA "), ("numba_cuda", "numba-cuda "), ("date", ""))


def provenance(records: pd.DataFrame) -> str:
    """Return GPU, driver, versions and dates of these records in one line: "NVIDIA H200, driver 580, ..."."""
    found = []
    for column, prefix in PARTS:
        values = sorted({str(value) for value in records.get(column, ()) if value})
        if values:
            shown = (
                f"{values[0]} to {values[-1]}"
                if column == "date" and len(values) > 1
                else " and ".join(values)
            )
            found.append(prefix + shown)
    return ", ".join(found)


def origin(gpu: str, driver: str, cuda: str, command: str) -> dict[str, Any]:
    """Return the columns for the origin of a row that is measured today."""
    return {
        "gpu": gpu,
        "driver": driver,
        "cuda": cuda,
        "numba_cuda": version_of("numba-cuda"),
        "date": datetime.date.today().isoformat(),
        "command": command,
    }


def version_of(package: str) -> str:
    """Return an installed package's version, or "" if it is not installed."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""
