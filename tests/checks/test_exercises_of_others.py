"""Which exercises there are: `check.` and progress know those of another package."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MODULE = """
from gemm_course.checks.core import Refused, exercise


@exercise("50.1", start="count the tiles.", hints=("Round up.", "Twice."))
def our_tiles(count):
    if count != 12:
        raise Refused("Not as many.")
    return "Right: 12."


@exercise("03.1", start="x", hints=("a", "b"))
def taken(count):
    return ""
"""
ASK = """
import warnings
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    from gemm_course import check
print(*(str(each.message) for each in said), sep="\\n")
print(check.our_tiles(3).message, check.our_tiles(12).passed, hasattr(check, "taken"))
print([line for line in str(check.progress()).splitlines() if line.startswith("50")])
"""


@pytest.fixture
def package(tmp_path) -> Path:
    """A distribution as pip leaves it in a folder of packages."""
    (tmp_path / "our_course.py").write_text(MODULE)
    about = tmp_path / "our_course-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: our-course\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[gemm_course.exercises]\nours = our_course\nbroken = not_there_at_all\n"
    )
    return tmp_path


def test_they_are_found_checked_and_listed_and_bad_ones_are_named(package):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(package), str(ROOT)])}
    done = subprocess.run([sys.executable, "-c", ASK], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *warned, answers, listed = done.stdout.splitlines()
    assert any("not_there_at_all" in each for each in warned)
    assert any("03.1" in each and "left out" in each for each in warned)
    assert answers == "Not as many. True False"
    assert "0 of 1" in listed and "50.1" in listed


def test_what_passed_in_the_second_edition_is_known_by_its_number(package, tmp_path):
    """It was kept under the number that the teacher gave."""
    folder = tmp_path / "progress"
    folder.mkdir()
    (folder / "50.1").write_text("2026-11-20T10:00:00\n")
    paths = os.pathsep.join([str(package), str(ROOT)])
    environment = os.environ | {"PYTHONPATH": paths, "GEMM_COURSE_PROGRESS": str(folder)}
    done = subprocess.run([sys.executable, "-c", ASK], env=environment, capture_output=True, text=True)
    assert "1 of 1" in done.stdout.splitlines()[-1], done.stderr
