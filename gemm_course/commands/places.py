"""Finds the notebooks of a folder by their numbers."""

from pathlib import Path

from gemm_course.commands.errors import CourseError

# Earlier states of notebooks are kept here in the learner's folder.
KEPT = Path("notebooks", "kept")


def notebook(number: str, folder: Path) -> Path:
    """Return the notebook of that number in the folder, such as "03" or "3".

    Raise CourseError where there is none.
    """
    found = sorted(folder.glob(f"{number:0>2}_*.ipynb")) if number.isdigit() else []
    if not found:
        numbers = ", ".join(path.name[:2] for path in sorted(folder.glob("[0-9][0-9]_*.ipynb"))) or "none"
        raise CourseError(f"There is no notebook {number} in {folder}; there are: {numbers}.")
    return found[0]
