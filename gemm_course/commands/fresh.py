"""Knows how every notebook was before the learner touched it.

A git clone knows it from its history. A course that came as an archive has none: there the notebooks are
copied aside when the course is first opened.
"""

import shutil
from importlib.metadata import version
from pathlib import Path

from gemm_course.commands.errors import CourseError
from gemm_course.commands.git import Clone
from gemm_course.commands.places import ROOT


def remember_fresh(root: Path = ROOT) -> None:
    """Copy the notebooks aside where no git knows them, once for each version of the course."""
    if _clone(root) is None and not _aside(root).exists():
        _aside(root).mkdir(parents=True)
        for notebook in (root / "notebooks").glob("*.ipynb"):
            shutil.copy2(notebook, _aside(root))


def fresh(notebook: Path, root: Path = ROOT) -> bytes:
    """Return the notebook's content as the course brought it.

    Raises CourseError where nothing here knows it.
    """
    clone = _clone(root)
    if clone is not None:
        return clone.bytes("show", f"HEAD:{notebook.relative_to(root).as_posix()}")
    copy = _aside(root) / notebook.name
    if not copy.exists():
        raise CourseError("The fresh notebook is not known here: take it from a new download of the course.")
    return copy.read_bytes()


def _clone(root: Path) -> Clone | None:
    try:
        return Clone(root)
    except CourseError:
        return None


def _aside(root: Path) -> Path:
    return root / ".course" / "fresh" / version("gemm-course")
