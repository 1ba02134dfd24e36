"""Runs the course's tests."""

import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec

from gemm_course.commands.errors import CourseError
from gemm_course.commands.places import ROOT

ALONE = "timed or browser or gpu"
NO_TESTS = 5  # pytest's exit code when it selected none


def run_tests(arguments: Sequence[str] = ()) -> int:
    """Run the whole suite, or pytest with ``arguments``; return the exit code.

    Tests that hold something to a time run one by one, after the others; so do those on a GPU or in a
    browser.
    Raises CourseError where pytest is not installed.
    """
    if find_spec("pytest") is None or find_spec("xdist") is None:
        raise CourseError(
            "The tests need pytest: start them with `python3 course.py test`, which installs it."
        )
    if arguments:
        return _pytest(*arguments)
    return _first_failure(
        _pytest("-m", f"not ({ALONE})", "-n", "auto", "--dist", "worksteal"),
        _pytest("-m", ALONE),
    )


def _pytest(*arguments: str) -> int:
    return subprocess.call([sys.executable, "-m", "pytest", *arguments], cwd=ROOT)


def _first_failure(*codes: int) -> int:
    return next((code for code in codes if code not in (0, NO_TESTS)), 0)
