"""Finds every notebook as it was before the learner touched it.

In a git clone that is the notebook in the newest commit that came with the course. For a copy of the
notebooks it is the install's notebook. A course that came as an archive has neither, so its notebooks are
copied aside when the course is first opened.
"""

import shutil
from importlib.metadata import version
from pathlib import Path

from gemm_course import places
from gemm_course.commands.copying import is_copy
from gemm_course.commands.errors import CourseError
from gemm_course.commands.git import Clone, NoClone


def remember_fresh(root: Path) -> None:
    """Copy an archive's notebooks aside, once for each version of the course.

    If git refuses to look, as in another user's folder, do nothing. `reset` will say why, and what helps.
    """
    try:
        known = is_copy(root) or _clone(root) is not None
    except CourseError:
        return
    if not known and not _aside(root).exists():
        _aside(root).mkdir(parents=True)
        for notebook in (root / "notebooks").glob("*.ipynb"):
            shutil.copy2(notebook, _aside(root))


def fresh(notebook: Path, root: Path) -> bytes:
    """Return the notebook's content as the course brought it.

    Raise CourseError if it cannot be found.
    """
    if is_copy(root):
        return (places.BROUGHT / notebook.name).read_bytes()
    clone = _clone(root)
    if clone is not None:
        return clone.bytes("show", f"{clone.course_commit()}:{notebook.relative_to(root).as_posix()}")
    copy = _aside(root) / notebook.name
    if not copy.exists():
        raise CourseError("The fresh notebook is not known here: take it from a new download of the course.")
    return copy.read_bytes()


def _clone(root: Path) -> Clone | None:
    """Return the folder as a git clone, or None if it is not one.

    Raise CourseError if git refuses to look.
    """
    try:
        return Clone(root)
    except NoClone:
        return None


def _aside(root: Path) -> Path:
    return root / places.STATE / "fresh" / version("gemm-course")
