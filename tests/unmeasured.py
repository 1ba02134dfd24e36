"""Stages that no record knows yet: what tests of records do with them.

A stage is unmeasured in a table that has no row of it; there is no list of such stages. Tests of a table
leave it out, or skip it by name and say which command measures it. A stage that is in a table
has to be there in full.
"""

from collections.abc import Iterable
from functools import cache

import pandas as pd
import pytest

from gemm_course import records
from gemm_course.kernels import LADDER, Stage

MACHINE_CODE = "data/machine_code"
_GPU = "data/h200"
# A table, what reads it, and the command that adds a stage to it.
_TABLES = {
    f"{_GPU}/ladder.csv": (records.ladder, "gemm-course bench {} --sizes 4096,8192"),
    f"{_GPU}/correctness.csv": (records.correctness, "gemm-course bench {} --odd"),
    f"{_GPU}/sweep.csv": (records.sweep, "gemm-course sweep {}"),
    f"{_GPU}/compile_times.csv": (records.compile_times, "gemm-course sweep {} --best"),
    f"{_GPU}/counters/ladder.csv": (
        records.counters,
        "python -m measuring counters {} --shapes 1024,333x217x129",
    ),
    f"{_GPU}/stage_sanitizer.csv": (records.stage_sanitizer, "python -m measuring sanitize {}"),
    f"{_GPU}/profile/kernels.csv": (records.profiles, "gemm-course profile {}"),
    MACHINE_CODE: (records.machine_code, "gemm-course compile --record {}"),
}
LADDER_TABLE, CORRECTNESS, SWEEP, COMPILE_TIMES, COUNTERS, SANITIZER, PROFILES, _ = _TABLES
ON_A_GPU = tuple(table for table in _TABLES if table != MACHINE_CODE)


def why_unmeasured(stage: Stage, *tables: str) -> str:
    """Say in a sentence which of the tables lack a stage, and which commands add it; "" if none lacks it."""
    missing = [table for table in tables if stage.name not in stages_in(table)]
    if not missing:
        return ""
    commands = ", ".join(f"`{_TABLES[table][1].format(stage.name)}`" for table in missing)
    where = "without a GPU" if missing == [MACHINE_CODE] else "on an H200"
    return f"{stage.name} is not in {', '.join(missing)} yet; {where}: {commands}"


def skip_unmeasured(stage: Stage, *tables: str) -> None:
    """Skip the test, and say why, if one of the tables lacks a stage."""
    if reason := why_unmeasured(stage, *tables):
        pytest.skip(reason)


def measured_stages(table: str, stages: Iterable[Stage] = LADDER) -> list[Stage]:
    """Those of the stages that are in a table."""
    return [stage for stage in stages if stage.name in stages_in(table)]


@cache
def stages_in(table: str) -> frozenset[str]:
    """The names of the stages that have rows in a table."""
    return frozenset(rows_of(table)["stage"])


def rows_of(table: str) -> pd.DataFrame:
    """A table, with the stage of each row; counters have it in the name of the case."""
    rows = _TABLES[table][0]()
    return rows if "stage" in rows else rows.assign(stage=rows["case"].str.split().str[0])
