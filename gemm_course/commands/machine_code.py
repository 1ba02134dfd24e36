"""Runs `gemm-course compile`: shows what stages compile to, or writes it into data/machine_code."""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

from gemm_course.commands.errors import CourseError
from gemm_course.commands.own_kernel import is_file, read_own
from gemm_course.compiler import CannotCompile, NoCompiler, compiled
from gemm_course.compiler.nvidia import why_no_compiler
from gemm_course.compiler.record import record
from gemm_course.kernels import LADDER, Stage
from gemm_course.progress_bar import progress_bar
from gemm_course.records import DATA, parse_tiles


def show(stages: list[str], capability: str, tiles: str, text: bool) -> None:
    """Print a summary of each stage, or all its machine code. Raise CourseError with what is wrong.

    For the whole ladder, leave out stages that such a GPU cannot run, with the reason. Where there is no
    compiler, also leave out those that are not recorded yet.
    """
    chosen = stages_or_files(stages)
    for stage in chosen:
        try:
            code = compiled(stage, compute_capability=capability, tiles=parse_tiles(tiles))
        except (CannotCompile, NoCompiler) as reason:
            if stages or stage is chosen[0]:
                raise CourseError(str(reason)) from None
            named = "" if isinstance(reason, CannotCompile) else f"{stage.name} is not on record. "
            print(f"{named}{reason}\n", file=sys.stderr)
            continue
        except ValueError as reason:
            raise CourseError(str(reason)) from None
        print(code.text if text else f"{code}\n")


def write(stages: list[str], command: str, data: Path | None = None) -> None:
    """Record stages at their default tiles, all of the ladder by default. Raise CourseError."""
    reason = why_no_compiler()
    if reason is not None:
        raise CourseError(reason)
    chosen, data = _known(stages), data or DATA
    with progress_bar("compiling", "stages") as bar:
        done = count(1)
        try:
            rows = record(
                chosen,
                lambda stage, capability: compiled(stage, compute_capability=capability),
                command,
                data,
                lambda stage: bar(next(done), len(chosen), stage.name),
            )
        except CannotCompile as error:
            raise CourseError(str(error)) from None
    for row in rows:
        print(
            f"{row['stage']} for {row['compute_capability']}: {row['registers']} registers, "
            f"{row['spilled_bytes']} bytes spilled, {row['instructions']:,} instructions"
        )
    print(f"{len(rows)} rows of {data / 'machine_code' / 'stages.csv'}")


def stages_or_files(names: list[str]) -> list[Stage]:
    """Return the stages of these names and in files such as mine.py, all by default. Raise CourseError."""
    files = {name: read_own(name) for name in names if is_file(name)}
    known = {stage.name: stage for stage in _known([name for name in names if name not in files])}
    return [files.get(name) or known[name] for name in names] or list(LADDER)


def _known(names: list[str]) -> list[Stage]:
    unknown = [name for name in names if name not in LADDER]
    if unknown:
        known = ", ".join(stage.name for stage in LADDER)
        raise CourseError(f"no stage is called {' or '.join(unknown)}; the ladder is {known}")
    return [LADDER[name] for name in names] or list(LADDER)
