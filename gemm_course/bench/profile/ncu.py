"""Finds Nsight Compute's command line, and runs it on a process that launches cases."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

FORBIDDEN = (
    "Nsight Compute may not read the counters here: the driver allows only an administrator to. Run this as "
    "root, or have all users allowed: developer.nvidia.com/ERR_NVGPUCTRPERM says how."
)


class NoProfiler(RuntimeError):
    """The error if Nsight Compute is missing, or may not read the counters. Its message is one sentence."""


def find_ncu() -> str:
    """Return the path of Nsight Compute's command line. Raise NoProfiler if there is none."""
    found = shutil.which("ncu") or shutil.which("ncu", path="/usr/local/cuda/bin")
    if found is None:
        raise NoProfiler("Nsight Compute (`ncu`) is not installed here; it comes with the CUDA toolkit.")
    return found


def ncu_version() -> str:
    answer = subprocess.run([find_ncu(), "--version"], capture_output=True, text=True).stdout
    found = re.search(r"Version ([\d.]+)", answer)
    return found.group(1) if found else ""


def watched(
    ncu: str,
    options: Sequence[str],
    program: Sequence[str],
    folder: Path,
    seconds: float | None = None,
    environment: Mapping[str, str] | None = None,
) -> tuple[subprocess.CompletedProcess, list[dict] | None]:
    """Run `python PROGRAM REPORT` under Nsight Compute.

    Return the process, and what it launched or failed to launch, or None if it has written no report.
    ``program`` is as in `Source.program`. ``folder`` is an empty one, for files. ``seconds`` is a time limit.
    After it all processes are ended, and subprocess.TimeoutExpired is raised.
    """
    report = folder / "cases.jsonl"
    child = [sys.executable, *program, str(report)]
    done = _run([ncu, "--clock-control", "none", *options, *child], seconds, environment)
    lines = report.read_text(encoding="utf-8").splitlines() if report.exists() else None
    return done, None if lines is None else [json.loads(line) for line in lines]


def _run(command: Sequence[str], seconds, environment) -> subprocess.CompletedProcess:
    """Run a command like `subprocess.run`, but end all that it has started on an interruption or time-out."""
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env={**os.environ, **(environment or {})},
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=seconds)
    except BaseException:
        if hasattr(os, "killpg"):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.communicate()
        raise
    return subprocess.CompletedProcess(command, process.returncode, output, errors)


def refuse_if_forbidden(text: str) -> None:
    """Raise NoProfiler if Nsight Compute says that it may not read the counters."""
    if "ERR_NVGPUCTRPERM" in text:
        raise NoProfiler(FORBIDDEN)
