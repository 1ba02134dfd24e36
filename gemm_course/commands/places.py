"""Finds the notebooks of a folder by their numbers or topics."""

import re
from pathlib import Path

from gemm_course import road
from gemm_course.commands.errors import CourseError

# Earlier states of notebooks are kept here in the learner's folder.
KEPT = Path("notebooks", "kept")


def notebook(number: str, folder: Path) -> Path:
    """Return the notebook of that number, "03", "3" or "S05", or on that topic, in the folder.

    Raise CourseError where there is none.
    """
    there = {each: folder / f"{each.name}.ipynb" for each in road.NOTEBOOKS}
    for each, path in there.items():
        if (_plain(number) == _plain(each.number) or number == each.topic) and path.is_file():
            return path
    numbers = ", ".join(each.number for each, path in there.items() if path.is_file()) or "none"
    raise CourseError(f"There is no notebook {number} in {folder}; there are: {numbers}.")


def _plain(number: str) -> str:
    """Return a number in small letters, with two digits: "s05" for "S5"."""
    return re.sub(r"\d+", lambda digits: f"{digits[0]:0>2}", number.lower())
