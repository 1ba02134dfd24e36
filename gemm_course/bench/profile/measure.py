"""Measures one launch with Nsight Compute: the metrics of the kernel, and those of each instruction."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gemm_course.bench.profile import pages
from gemm_course.bench.profile.join import joined
from gemm_course.bench.profile.metrics import ASKED_FOR, REAL, WHOLE
from gemm_course.bench.profile.ncu import find_ncu, ncu_version, refuse_if_forbidden, watched
from gemm_course.bench.profile.pages import launches, number, size, whole
from gemm_course.bench.profile.sources import Source
from gemm_course.compiler import Compiled
from gemm_course.compiler.sources import sources
from gemm_course.device import gpu_facts
from gemm_course.records import origin
from gemm_course.records.columns import PROFILE

# A launch may take this long under Nsight Compute, which repeats it some 40 times.
SECONDS = 300
LAUNCHED = (
    "kernel",
    "grid",
    "block",
    "dynamic_shared_bytes",
    "static_shared_bytes",
    "registers",
    "local_bytes",
)


class NotProfiled(RuntimeError):
    """The error for a kernel that could not be profiled. Its message says why."""


@dataclass(frozen=True)
class Launch:
    """One launch under Nsight Compute: what was launched, its metrics by name, and its instructions."""

    about: Mapping[str, Any]
    metrics: Mapping[str, str]
    rows: Sequence[pages.Measured]


def watch(source: Source) -> Callable[[], Launch]:
    """Launch the one case of a source under Nsight Compute. Return a function that reads the report.

    Reading takes some seconds, in which the GPU can do something else. Raise NoProfiler or NotProfiled.
    """
    folder = tempfile.TemporaryDirectory(prefix="gemm-course-profile-")
    try:
        report = Path(folder.name) / "report.ncu-rep"
        about = _watched(source, report)
    except BaseException:
        folder.cleanup()
        raise

    def read() -> Launch:
        with folder:
            return _read(report, about)

    return read


def _watched(source: Source, report: Path) -> dict[str, Any]:
    """Launch the case, so that Nsight Compute writes the report. Return what was launched."""
    # The watched process must find a kernel's modules where this process finds them.
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    for metrics in ASKED_FOR:
        options = ["--set", "full", "-f", "-o", str(report.with_suffix(""))]
        options += ["--metrics", ",".join(metrics)] if metrics else []
        try:
            done, tried = watched(find_ncu(), options, source.program, report.parent, SECONDS, path)
        except subprocess.TimeoutExpired:
            raise NotProfiled(f"it took more than {SECONDS} seconds under Nsight Compute") from None
        said = done.stdout + done.stderr
        refuse_if_forbidden(said)
        if tried and "error" in tried[0]:
            raise NotProfiled(tried[0]["error"])
        if tried and report.exists() and not done.returncode:
            return tried[0]
    raise NotProfiled(f"Nsight Compute ended without a report: {' '.join(said.split())[-600:]}")


def _read(report: Path, about: Mapping[str, Any]) -> Launch:
    found = launches(_page(report, "raw"))
    kernels = pages.kernels(_page(report, "source"))
    if len(found) != 1 or len(kernels) != 1:
        raise NotProfiled(f"one kernel was launched, {len(found)} and {len(kernels)} were reported")
    (metrics,), (rows,) = found, kernels
    geometry = size(metrics["Grid Size"]), size(metrics["Block Size"])
    if geometry != (about["grid"], about["block"]):
        raise NotProfiled(f"another launch was reported, of {geometry[0]} blocks of {geometry[1]} threads")
    return Launch(about, metrics, rows)


def _page(report: Path, name: str) -> list[str]:
    command = [find_ncu(), "-i", str(report), "--page", name, "--csv", "--print-units", "base"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode:
        raise NotProfiled(f"Nsight Compute cannot print its report: {done.stderr or done.stdout}")
    return done.stdout.splitlines()


def profile_row(launch: Launch, about: Mapping[str, Any], command: str) -> dict[str, Any]:
    """Return a launch's row of `records.profiles`. ``about`` has the columns that say which case it is."""
    gpu = gpu_facts()
    return {
        **dict.fromkeys(PROFILE.columns),
        **{name: launch.about[name] for name in LAUNCHED},
        **{name: number(launch.metrics.get(metric)) for name, metric in REAL.items()},
        **{name: whole(launch.metrics.get(metric)) for name, metric in WHOLE.items()},
        **origin(gpu.name, gpu.driver, gpu.cuda, command),
        "ncu": ncu_version(),
        **about,
    }


def profile_content(launch: Launch, code: Compiled) -> dict[str, Any]:
    """Return the content of a profile's file, as in `profiles.store`.

    Raise OtherCode if other code was launched.
    """
    return {
        "compute_capability": list(code.compute_capability),
        "compiler": code.compiler,
        "spilled_bytes": code.spilled_bytes,
        "text": [row.text for row in code.rows],
        "file": [row.file for row in code.rows],
        "line": [row.line for row in code.rows],
        **joined(code.rows, launch.rows),
        "sources": sources(code.rows),
    }
