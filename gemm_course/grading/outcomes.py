"""Tells, per student, what was graded and what could not be. An export does not tell that from 0."""

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from gemm_course.attempts import printable

# Reasons why a submission was not graded are kept in this folder of an nbgrader course.
REASONS = "not_graded"


@dataclass(frozen=True)
class Outcome:
    """What came of one submission. points: None if it was not graded, and then ``reason`` says why.

    outdated: whether its notebook has changed since it was graded.
    """

    assignment: str
    student: str
    points: float | None
    most: float
    reason: str = ""
    outdated: bool = False

    def __str__(self) -> str:
        came = f"NOT GRADED: {self.reason}" if self.points is None else f"{self.points:g} of {self.most:g}"
        newer = ", and a newer notebook was handed in since" * self.outdated
        return printable(f"{self.assignment}  {self.student}  {came}{newer}")


def note(folder: Path, assignment: str, student: str, reason: str) -> None:
    """Keep the reason why a submission could not be graded."""
    path = _reason_of(folder, assignment, student)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(reason, "utf-8")


def forget(folder: Path, assignment: str, student: str) -> None:
    """Forget the reason of an earlier attempt to grade a submission."""
    _reason_of(folder, assignment, student).unlink(missing_ok=True)


def forget_points(folder: Path, assignment: str, student: str) -> None:
    """Set the points of an earlier attempt to 0 in the gradebook, as an export would count them."""
    if (folder / "gradebook.db").is_file():
        with closing(sqlite3.connect(folder / "gradebook.db")) as book, book:
            book.execute(_FORGET, (assignment, student))


def outcomes(folder: Path, assignment: str | None = None) -> Iterator[Outcome]:
    """Yield the outcome of every submission in an nbgrader course, those that were not graded first.

    folder: the one with ``nbgrader_config.py``. assignment: only this one.
    """
    points, most = _points(folder)
    found = []
    for place in sorted(folder.glob(f"submitted/*/{assignment or '*'}")):
        if place.is_dir():
            student, name = place.parent.name, place.name
            graded = folder / "autograded" / student / name / f"{name}.ipynb"
            if graded.is_file() and (name, student) in points:
                outdated = _changed(place / graded.name) > _changed(graded)
                found.append(
                    Outcome(name, student, points[name, student], most.get(name, 0), outdated=outdated)
                )
            else:
                noted = _reason_of(folder, name, student)
                outdated = noted.is_file() and _changed(place / graded.name) > _changed(noted)
                reason = _why_not(folder, place)
                found.append(Outcome(name, student, None, most.get(name, 0), reason, outdated))
    yield from sorted(found, key=lambda each: (each.points is not None, each.assignment, each.student))


def _reason_of(folder: Path, assignment: str, student: str) -> Path:
    return folder / REASONS / _plain(student) / f"{_plain(assignment)}.txt"


def _plain(name: str) -> str:
    return re.sub(r"[^\w.-]", "_", name).lstrip(".") or "_"


def _changed(file: Path) -> float:
    return file.stat().st_mtime if file.is_file() else 0.0


def _why_not(folder: Path, place: Path) -> str:
    """Return why a submission has no points: what was noted, or what its files show."""
    student, name = place.parent.name, place.name
    noted = _reason_of(folder, name, student)
    if noted.is_file():
        return noted.read_text("utf-8")
    notebook = place / f"{name}.ipynb"
    if not (folder / "release" / name).is_dir():
        return f"no assignment {name} was released; is the folder's name right?"
    if not notebook.is_file():
        others = ", ".join(sorted(path.name for path in place.glob("*.ipynb"))) or "no notebook"
        return f"{notebook.name} is missing; there is {others}"
    return f"run `nbgrader autograde {name} --student {student}`, and see what it says"


def _points(folder: Path) -> tuple[dict[tuple[str, str], float], dict[str, float]]:
    """Return the points of each (assignment, student), and the most points of each assignment."""
    if not (folder / "gradebook.db").is_file():
        return {}, {}
    with sqlite3.connect(f"file:{folder / 'gradebook.db'}?mode=ro", uri=True) as book:
        points = {(name, student): found for name, student, found in book.execute(_POINTS)}
        most = dict(book.execute(_MOST))
    return points, most


_FORGET = """
UPDATE grade SET auto_score = 0 WHERE notebook_id IN (
    SELECT submitted_notebook.id FROM submitted_notebook
    JOIN submitted_assignment ON submitted_assignment.id = submitted_notebook.assignment_id
    JOIN assignment ON assignment.id = submitted_assignment.assignment_id
    WHERE assignment.name = ? AND submitted_assignment.student_id = ?
)
"""
_POINTS = """
SELECT assignment.name, submitted_assignment.student_id,
       SUM(COALESCE(grade.manual_score, grade.auto_score, 0) + COALESCE(grade.extra_credit, 0))
FROM submitted_assignment
JOIN assignment ON assignment.id = submitted_assignment.assignment_id
JOIN submitted_notebook ON submitted_notebook.assignment_id = submitted_assignment.id
JOIN grade ON grade.notebook_id = submitted_notebook.id
GROUP BY submitted_assignment.id
"""
_MOST = """
SELECT assignment.name, SUM(grade_cells.max_score)
FROM assignment
JOIN notebook ON notebook.assignment_id = assignment.id
JOIN base_cell ON base_cell.notebook_id = notebook.id
JOIN grade_cells ON grade_cells.id = base_cell.id
GROUP BY assignment.id
"""
