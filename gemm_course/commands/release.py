"""Makes what a teacher hands out: the course with or without its solutions, or assignments for nbgrader."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat

from gemm_course import places, road
from gemm_course.commands.copying import brought
from gemm_course.commands.errors import CourseError
from gemm_course.grading.assignments import assignment_of, without_solutions

# A learner needs these parts of a clone besides the notebooks. Tests and notebook sources are left out
# because they hold solutions.
COURSE = (
    "README.md",
    "LICENSE",
    "course.py",
    "pyproject.toml",
    "uv.lock",
    "environment.yml",
    ".gitignore",
    "data",
    "docs",
    "gemm_course",
    "lockstep",
)
# With these settings nbgrader has no solutions to remove, and leaves the pictures below cells. Before it
# grades, each submission is put back into its assignment's form. Its kernel is confined, if the system can.
CONFIG = """\
import os
import sys

from gemm_course.grading.files import look_before_copying

look_before_copying()
os.environ["GEMM_COURSE_PROGRESS"] = "off"  # Grading leaves your own progress alone.
folder = os.path.dirname(os.path.abspath(__file__))

c = get_config()
c.CourseDirectory.course_id = "gemm-course"
c.CourseDirectory.root = folder
c.ExecutePreprocessor.timeout = 120
c.Restore.folder = c.ConfinedExecute.folder = folder
# Linux confines what a submission runs. Elsewhere it can read and write what you can: see TEACHING.md.
c.ConfinedExecute.allow_unconfined = sys.platform != "linux"
c.OverwriteCells.add_missing_cells = True
c.Autograde.sanitize_preprocessors = [
    "gemm_course.grading.preprocessors.Restore",
    "nbgrader.preprocessors.OverwriteKernelspec",
    "nbgrader.preprocessors.OverwriteCells",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.Autograde.autograde_preprocessors = [
    "gemm_course.grading.preprocessors.ConfinedExecute",
    "nbgrader.preprocessors.LimitOutput",
    "nbgrader.preprocessors.SaveAutoGrades",
    "nbgrader.preprocessors.AssignLatePenalties",
    "nbgrader.preprocessors.CheckCellMetadata",
]
c.GenerateAssignment.preprocessors = [
    f"nbgrader.preprocessors.{name}"
    for name in (
        "IncludeHeaderFooter",
        "LockCells",
        "CheckCellMetadata",
        "ComputeChecksums",
        "SaveCells",
        "CheckCellMetadata",
    )
]
"""


def release_course(folder: Path, solutions: bool) -> None:
    """Write the course into a new folder, as learners get it.

    Without ``solutions``, three things are left out: the notebooks with solutions, the solutions folded below
    exercises, and the outputs of cells that list a kernel which an exercise above asks for. The checkers
    still know the right answers, such a cell lists its kernel when it is run, and Python hides nothing.

    Raise CourseError if the folder is not empty.
    """
    _begin(folder)
    for name in COURSE:
        source = places.COURSE / name
        if source.is_dir():
            shutil.copytree(
                source, folder / name, ignore=shutil.ignore_patterns("__pycache__", "lockstep_tests")
            )
        elif source.is_file():
            shutil.copy2(source, folder / name)
    for name, file in brought():
        if solutions or not name.startswith("solutions/"):
            target = folder / "notebooks" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.suffix == ".ipynb" and not solutions:
                nbformat.write(without_solutions(nbformat.read(file, 4)), target)
            else:
                shutil.copyfile(file, target)


def release_assignments(folder: Path) -> list[str]:
    """Write a course for nbgrader into a new folder: one per notebook with exercises, a point for each.

    The learner writes into the exercise's cell, and its check is in a locked cell below it. There are no
    solutions. Return the assignments' names. Raise CourseError if the folder is not empty.
    """
    _begin(folder)
    (folder / "nbgrader_config.py").write_text(CONFIG, "utf-8")
    made, without = [], {each.name for each in road.NOTEBOOKS if not each.exercises}
    for name, file in brought():
        assignment = Path(name).stem
        if "/" not in name and name.endswith(".ipynb") and assignment not in without:
            notebook = assignment_of(nbformat.read(file, 4))
            place = folder / "source" / assignment
            place.mkdir(parents=True)
            nbformat.write(notebook, place / name)
            _copy_what_it_shows(place)
            made.append(assignment)
    return made


def _copy_what_it_shows(place: Path) -> None:
    for name, file in brought():
        if name.startswith("pictures/") or name.endswith(".md"):
            (place / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(file, place / name)


def _begin(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()):
        raise CourseError(f"{folder} is not empty: name a new folder.")
    folder.mkdir(parents=True, exist_ok=True)
