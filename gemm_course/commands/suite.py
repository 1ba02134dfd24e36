"""Runs the course's tests."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from gemm_course.commands.errors import CourseError
from gemm_course.device import why_no_gpu
from gemm_course.places import COURSE

PARALLEL = ("-n", "auto", "--maxprocesses", "8", "--dist", "worksteal")
# Pytest ends with this code if it selected no test.
NO_TESTS = 5


def run_tests(arguments: Sequence[str] = ()) -> int:
    """Run the tests with pytest and its ``arguments``. Return the exit code.

    They run in parallel unless the arguments say otherwise (``-n 0``, ``-p no:xdist``, ``--pdb``, ``-s``).
    Tests on a GPU run after the others, one by one. Raise CourseError where pytest is not installed, or the
    tests are not there.
    """
    if find_spec("pytest") is None or find_spec("xdist") is None:
        raise CourseError(
            "The tests need pytest: start them with `python3 course.py test`, which installs it."
        )
    if not (COURSE / "tests").is_dir():
        raise CourseError("The tests are not in this install: they come with a clone of the course.")
    os.chdir(COURSE)
    # A run starts hundreds of processes that import the course. What one process has compiled, the next need
    # not compile.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    *first, last = commands(arguments, has_gpu=why_no_gpu() is None)
    if not first and os.name != "nt":
        os.execv(last[0], last)  # Pytest takes this process's place, so a signal to it stops pytest.
    return verdict([_run(command) for command in (*first, last)])


def commands(arguments: Sequence[str], has_gpu: bool) -> list[list[str]]:
    """Return the command lines, one after the other, that run what the arguments select."""
    python = [sys.executable, "-m", "pytest"]
    if "no:xdist" in " ".join(arguments):
        return [[*python, *arguments]]
    if not has_gpu:
        return [[*python, *PARALLEL, *arguments]]
    return [
        [*python, *PARALLEL, *arguments, "--gpu=without"],
        [*python, *arguments, "-n", "0", "--gpu=only"],
    ]


def verdict(codes: Sequence[int]) -> int:
    """Return the first failure's exit code. Selecting no test is a failure only if all runs do so."""
    return next((code for code in codes if code not in (0, NO_TESTS)), min(codes))


def _run(command: list[str]) -> int:
    """Run a command to its end. A signal that stops this process stops the command as well."""
    process = subprocess.Popen(command)
    for name in ("SIGTERM", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda number, _: process.send_signal(number))
    while True:
        try:
            return process.wait()
        except KeyboardInterrupt:  # The command gets the interruption as well, and ends by itself.
            pass
