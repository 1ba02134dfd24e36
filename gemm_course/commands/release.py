"""Makes what a teacher hands out: the course with or without its solutions, or assignments for nbgrader."""

from __future__ import annotations

import ast
import inspect
import shutil
from collections.abc import Iterator
from pathlib import Path

import nbformat

from gemm_course import checks, places
from gemm_course.commands.copying import brought
from gemm_course.commands.errors import CourseError

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
# These are tags of the notebooks' cells.
FOLDED, STUB, LISTING = "folded", "stub", "listing"
SOLUTIONS_LINK = "Every solution with what it shows when it runs"
# The check loads the module of `graded` again, because a notebook may have replaced the function.
CHECK = """\
from importlib import reload

from gemm_course import check
from gemm_course.checks.core import grading

reload(grading).graded({call})"""
# With these settings nbgrader has no solutions to remove, and leaves the pictures below cells. Before it
# grades, it restores checks that a learner has deleted.
CONFIG = """\
c = get_config()
c.CourseDirectory.course_id = "gemm-course"
c.ExecutePreprocessor.timeout = 300
c.OverwriteCells.add_missing_cells = True
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
                nbformat.write(_without_solutions(nbformat.read(file, 4)), target)
            else:
                shutil.copyfile(file, target)


def release_assignments(folder: Path) -> list[str]:
    """Write a course for nbgrader into a new folder: an assignment per notebook, a point per exercise.

    The learner writes into the exercise's cell, and its check is in a locked cell below it. There are no
    solutions. Return the assignments' names. Raise CourseError if the folder is not empty.
    """
    _begin(folder)
    (folder / "nbgrader_config.py").write_text(CONFIG, "utf-8")
    made = []
    for name, file in brought():
        if "/" not in name and name.endswith(".ipynb"):
            assignment = Path(name).stem
            notebook = assignment_of(nbformat.read(file, 4))
            place = folder / "source" / assignment
            place.mkdir(parents=True)
            nbformat.write(notebook, place / name)
            _copy_what_it_shows(place)
            made.append(assignment)
    return made


def assignment_of(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Turn a learner's notebook into an assignment of nbgrader, without solutions, and return it."""
    notebook = _without_solutions(notebook)
    notebook.cells = [made for cell in notebook.cells for made in _graded(cell)]
    nbformat.validate(notebook)
    return notebook


def _without_solutions(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """Remove the solutions below the notebook's exercises, and links to the other solutions. Return it.

    A cell that lists a kernel which solves an exercise stays without its outputs, and a learner may run it.
    """
    notebook.cells = [cell for cell in notebook.cells if FOLDED not in cell.metadata.get("tags", [])]
    for cell in notebook.cells:
        if SOLUTIONS_LINK in cell.source:
            cell.source = cell.source.split(SOLUTIONS_LINK)[0].rstrip()
        if LISTING in cell.metadata.get("tags", []) and cell.cell_type == "code":
            cell.outputs = []
    return notebook


def _graded(cell: nbformat.NotebookNode) -> Iterator[nbformat.NotebookNode]:
    """Split an exercise's cell into what the learner writes and the check. Yield any other cell as it is."""
    is_stub = cell.cell_type == "code" and STUB in cell.metadata.get("tags", [])
    call = _check_at_the_end(cell.source) if is_stub else None
    if call is None:
        yield cell
        return
    written, asked = _answer_and_question(cell.source, call)
    answer = nbformat.from_dict(cell)
    answer.source, answer.outputs = written, []
    answer.metadata.nbgrader = _for_nbgrader(cell.id, solution=True)
    yield answer
    check = nbformat.v4.new_code_cell(CHECK.format(call=asked), id=f"{cell.id}-check")
    check.metadata.nbgrader = _for_nbgrader(check.id, grade=True, locked=True, points=1)
    yield check


def _answer_and_question(source: str, call: str) -> tuple[str, str]:
    """Split the source of an exercise into what the learner writes and the call that checks it.

    An answer that is written into the call, as in `check.idle_lanes(None)`, gets a name above it.
    """
    lines = [source[: source.rindex(call)].rstrip()]
    node = ast.parse(call).body[0].value
    parameters = list(inspect.signature(getattr(checks, node.func.attr)).parameters)
    for place, given in enumerate(node.args):
        if not isinstance(given, ast.Name):
            lines.append(f"{parameters[place]} = {ast.get_source_segment(call, given)}")
            node.args[place] = ast.Name(parameters[place])
    for keyword in node.keywords:
        if not isinstance(keyword.value, ast.Name):
            lines.append(f"{keyword.arg} = {ast.get_source_segment(call, keyword.value)}")
            keyword.value = ast.Name(keyword.arg)
    return "\n".join(filter(None, lines)), ast.unparse(node)


def _check_at_the_end(source: str) -> str | None:
    """Return the call of a checker at the end of a cell, as text, or None if there is none."""
    last = (ast.parse(source).body or [None])[-1]
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        call = ast.get_source_segment(source, last)
        return call if call.startswith("check.") else None
    return None


def _for_nbgrader(name: str, *, solution=False, grade=False, locked=False, points=None) -> dict:
    given = {"grade_id": name, "solution": solution, "grade": grade, "locked": locked, "task": False}
    return given | {"schema_version": 3} | ({} if points is None else {"points": points})


def _copy_what_it_shows(place: Path) -> None:
    for name, file in brought():
        if name.startswith("pictures/") or name.endswith(".md"):
            (place / name).parent.mkdir(exist_ok=True)
            shutil.copyfile(file, place / name)


def _begin(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()):
        raise CourseError(f"{folder} is not empty: name a new folder.")
    folder.mkdir(parents=True, exist_ok=True)
