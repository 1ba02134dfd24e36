"""Runs `gemm-course merge`: replaces recorded rows by rows that were measured into a separate folder."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from gemm_course.profiles import store
from gemm_course.records import Table
from gemm_course.records.columns import (
    COMPILED,
    COMPUTE_ROOFS,
    CORRECTNESS,
    COUNTERS,
    LADDER,
    PROFILE,
    ROOFS,
    ROW_LENGTHS,
    SANITIZER,
    SWEEP,
)

# A new row replaces every recorded row that agrees with it in these columns.
KEYS = {
    "ladder.csv": (LADDER, ("stage", "m", "n", "k")),
    "correctness.csv": (CORRECTNESS, ("stage", "m", "n", "k")),
    "sweep.csv": (SWEEP, ("stage", "tiles", "m", "n", "k")),
    "row_lengths.csv": (ROW_LENGTHS, ("stage", "tiles", "m", "n", "k", "leading_dimension")),
    "stage_sanitizer.csv": (SANITIZER, ("stage", "tool")),
    "compile_times.csv": (COMPILED, ("stage", "tiles")),
    "roofs.csv": (ROOFS, ("memory",)),
    "compute_roofs.csv": (COMPUTE_ROOFS, ("unit",)),
    "counters/*.csv": (COUNTERS, ("case",)),
    f"{store.FOLDER}/{store.TABLE}": (PROFILE, store.KEY),
}


@dataclass(frozen=True)
class Merged:
    """The result of a merge for one file: how many rows were added, and how many old rows they replaced."""

    file: str
    added: int
    replaced: int


def has_records(folder: Path) -> bool:
    """Tell whether the folder has a file of records that can be merged."""
    return any(True for pattern in KEYS for _ in folder.glob(pattern))


def merge(source: Path, target: Path, again: Sequence[str] = ()) -> list[Merged]:
    """Merge the rows of every known file in `source` into the same file in `target`, and copy profiles.

    ``again`` names stages whose kernels have changed, and all their old rows of the sweep are dropped. Raise
    ValueError if there is no record in `source`, if it was measured on another GPU than the target's rows, or
    if a profile's file is missing.
    """
    found = [(path, *KEYS[pattern]) for pattern in KEYS for path in sorted(source.glob(pattern))]
    if not found:
        raise ValueError(f"there are no records in {source}, none of {', '.join(KEYS)}")
    return [
        _merged(path, target / path.relative_to(source), table, key, again if table is SWEEP else ())
        for path, table, key in found
    ]


def _merged(new: Path, old: Path, table: Table, key: Sequence[str], again: Sequence[str]) -> Merged:
    table.cut_partial_line(new)
    rows, recorded = _last_ones(table.rows(new), key), table.rows(old)
    _same_gpu(new, rows, old, recorded)
    measured = {tuple(row[name] for name in key) for row in rows}
    files = _copied(new.parent, old.parent, rows) if table is PROFILE else frozenset()
    kept = [
        row
        for row in recorded
        if tuple(row[name] for name in key) not in measured
        and row.get("stage") not in again
        and row.get("file") not in files
    ]
    table.write(old, store.in_order(kept + rows) if table is PROFILE else kept + rows)
    return Merged(old.name, len(rows), len(recorded) - len(kept))


def _copied(source: Path, target: Path, rows: list[dict]) -> set[str]:
    """Copy the files of these profiles. Return their names."""
    files = {row["file"] for row in rows}
    for file in files:
        if not store.is_name(file):
            raise ValueError(f"{source / store.TABLE} names {file!r}, which is no profile's file beside it")
    missing = sorted(file for file in files if not (source / file).is_file())
    if missing:
        raise ValueError(f"{source} has rows of profiles whose files are missing: {', '.join(missing)}")
    target.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copyfile(source / file, target / file)
    return files


def _last_ones(rows: list[dict], key: Sequence[str]) -> list[dict]:
    """Return the rows without those that were measured again later with the same tiles."""
    tiles = [name for name in ("tiles", "tool", "m", "n", "k") if rows and name in rows[0]]
    last = {tuple(row[name] for name in (*key, *tiles)): row for row in rows}
    return [row for row in rows if last[tuple(row[name] for name in (*key, *tiles))] is row]


def _same_gpu(new: Path, rows: list[dict], old: Path, recorded: list[dict]) -> None:
    gpus, expected = ({row["gpu"] for row in some if row["gpu"]} for some in (rows, recorded))
    if gpus and expected and gpus != expected:
        raise ValueError(
            f"{new} was measured on {' and '.join(sorted(gpus))}, {old} on {' and '.join(sorted(expected))}"
        )
