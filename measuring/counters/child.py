"""Launches cases that are not stages of the ladder, in the process that Nsight Compute watches.

    python -m measuring.counters.child module FILE [WORD ...] REPORT
    python -m measuring.counters.child wavefronts FILE REPORT

REPORT is as in `gemm_course.bench.profile.child`.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from gemm_course.bench.profile.child import launch_all
from measuring.counters.module import module_cases
from measuring.counters.patterns import wavefront_cases

RUN = ("-m", "measuring.counters.child")


def of_module(path: Path, only: Sequence[str] = ()) -> list[str]:
    """Return what Python runs to launch CASES of a file, all or those named with one of the words."""
    return [*RUN, "module", str(path), *only]


def of_wavefronts(path: Path) -> list[str]:
    """Return what Python runs to launch each of `patterns.instructions`.

    ``path`` is the file of earlier records.
    """
    return [*RUN, "wavefronts", str(path)]


if __name__ == "__main__":
    kind, file, *words, report = sys.argv[1:]
    cases = module_cases(Path(file), words) if kind == "module" else wavefront_cases(Path(file))
    launch_all(cases, Path(report))
