"""Runs a program under compute-sanitizer and reads its verdict."""

from __future__ import annotations

import functools
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
RAN = "the kernel ran"  # the program's last line if it ran to the end
PRINT_LIMIT = 5  # the most complaints that are printed
SUMMARY = re.compile(r"(?:ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard)")
MARK = "========="


class NoSanitizer(RuntimeError):
    """The error for a missing compute-sanitizer. Its message is one sentence."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of one program under one tool.

    ``verdict`` is "clean", "error" (the tool complained), "hang" (it was stopped) or "failed" (the program
    failed for a reason of its own). ``errors`` is the number of complaints, or None if the tool did not say.
    ``message`` is the first complaint, or the last line that the program printed.
    """

    verdict: str
    errors: int | None
    message: str


def run_under(
    tool: str, program: Sequence[str], seconds: float, folder: Path | None = None
) -> tuple[Outcome, str]:
    """Run `python PROGRAM` under a tool, for at most `seconds`. Return the outcome and the command."""
    sanitizer = ["--tool", tool, "--print-limit", str(PRINT_LIMIT)]
    try:
        done = subprocess.run(
            [find_sanitizer(), *sanitizer, sys.executable, *program],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=seconds,
        )
        log, ended = done.stdout, True
    except subprocess.TimeoutExpired as late:
        log, ended = (late.stdout or b"").decode(errors="replace"), False
    return read_log(log, ended), shlex.join(["compute-sanitizer", *sanitizer, "python", *program])


def read_log(log: str, ended: bool = True) -> Outcome:
    """Return the outcome, from what the program and the tool printed.

    ``ended`` is False if the program was stopped.
    """
    counts = [int(number) for found in SUMMARY.finditer(log) for number in found.groups() if number]
    errors, message = (sum(counts) if counts else None), first_complaint(log)
    if errors:
        return Outcome("error", errors, message)
    if not ended:
        return Outcome("hang", errors, message)
    if errors == 0 and RAN in log:
        return Outcome("clean", 0, "")
    own = [line.strip() for line in log.splitlines() if line.strip("\0 ") and not line.startswith("=====")]
    return Outcome("failed", errors, own[-1] if own else message)


def first_complaint(log: str) -> str:
    """Return the tool's first complaint in one line, with the location if the next line has it."""
    lines = [line.removeprefix(MARK).strip() for line in log.splitlines() if line.startswith(MARK)]
    lines = [line for line in lines if line and "COMPUTE-SANITIZER" not in line and "SUMMARY" not in line]
    if not lines:
        return ""
    where = lines[1] if len(lines) > 1 and lines[1].startswith("at ") and " at " not in lines[0] else ""
    return f"{lines[0]} {where}".strip()


def find_sanitizer() -> str:
    """Return the path of compute-sanitizer. Raise NoSanitizer if there is none."""
    name = "compute-sanitizer"
    found = shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")
    if found is None:
        raise NoSanitizer("compute-sanitizer is not installed here; it comes with the CUDA toolkit.")
    return found


@functools.cache
def sanitizer_version() -> str:
    """Return the version, such as "2025.3.1.0", or "" if compute-sanitizer does not say."""
    answer = subprocess.run([find_sanitizer(), "--version"], capture_output=True, text=True).stdout
    found = re.search(r"[Vv]ersion ([\d.]+)", answer)
    return found.group(1) if found else ""
