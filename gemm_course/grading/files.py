"""Looks at the files that students handed in, before nbgrader copies them."""

import os
import shutil
import stat
from pathlib import Path

import nbformat
from nbgrader.converters import Autograde

from .confine import MOST_BYTES
from .outcomes import forget_points, note

# A submission may have this many files, and folders in folders this deep.
MOST_FILES, MOST_DEPTH = 1000, 20
# A notebook may have this many bytes, and this many lists and objects: each takes some 2 KB when it is read.
MOST_IN_A_NOTEBOOK, MOST_PARTS = 20_000_000, 100_000


class NotGraded(Exception):
    """An error for a submission that cannot be graded, with the reason for the teacher's summary."""


def check_files(folder: Path) -> None:
    """Raise NotGraded unless there are plain files only, with readable names, and not too many or too large.

    A link might lead to other people's files, and reading a pipe never ends.
    """
    size = files = 0
    for place, folders, names in os.walk(folder):
        if len(Path(place).relative_to(folder).parts) > MOST_DEPTH:
            raise NotGraded(f"it has folders in folders, more than {MOST_DEPTH} deep")
        for name in (*folders, *names):
            found = os.lstat(os.path.join(place, name))
            if not name.isprintable():
                raise NotGraded(f"the name of a file has characters that cannot be shown: {name!a}")
            if not (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)):
                what = "link" if stat.S_ISLNK(found.st_mode) else "pipe or a device"
                raise NotGraded(f"{name} in the submission is a {what}, and only files are graded")
            size, files = size + found.st_size, files + 1
            if files > MOST_FILES:
                raise NotGraded(f"it has more than {MOST_FILES:,} files")
    if size > MOST_BYTES:
        raise NotGraded(f"its files have {size:,} bytes, and {MOST_BYTES:,} are the most")


def check_notebook(file: Path) -> None:
    """Raise NotGraded unless a notebook can be read, without taking all memory."""
    if not file.is_file():
        return
    if file.stat().st_size > MOST_IN_A_NOTEBOOK:
        raise NotGraded(f"{file.name} has more than {MOST_IN_A_NOTEBOOK:,} bytes: clear its outputs")
    text = file.read_bytes()
    if text.count(b"{") + text.count(b"[") > MOST_PARTS:
        raise NotGraded(f"{file.name} has more than {MOST_PARTS:,} lists and objects")
    try:
        nbformat.read(file, 4)
    except Exception as error:
        raise NotGraded(f"{file.name} cannot be read: {type(error).__name__}") from error


def look_before_copying() -> None:
    """Make nbgrader leave out submissions with files that it cannot grade, and grade the others.

    nbgrader copies and reads a submission before its first preprocessor runs. It has no setting for a look
    before.
    """
    find = Autograde.init_notebooks

    def find_and_check(converter: Autograde) -> None:
        find(converter)
        root = Path(converter.coursedir.root)
        for path in list(converter.assignments):
            student, assignment = Path(path).parent.name, Path(path).name
            try:
                _check_name(student)
                check_files(Path(path))
                check_notebook(Path(path, f"{assignment}.ipynb"))
            except (NotGraded, OSError) as error:
                converter.log.error("%s of %s is not graded: %s", assignment, ascii(student), error)
                del converter.assignments[path]
                shutil.rmtree(root / "autograded" / student / assignment, ignore_errors=True)
                forget_points(root, assignment, student)
                note(root, assignment, student, str(error))

    Autograde.init_notebooks = find_and_check


def _check_name(student: str) -> None:
    if not student.isprintable():
        raise NotGraded("the name of the student's folder has characters that cannot be shown")
