"""Where things are in the course's folder."""

from pathlib import Path

from gemm_course.commands.errors import CourseError

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
KEPT = NOTEBOOKS / "kept"


def notebook(number: str, folder: Path = NOTEBOOKS) -> Path:
    """Return the notebook of that number, such as "03" or "3".

    Raises CourseError where there is none.
    """
    found = sorted(folder.glob(f"{number:0>2}_*.ipynb")) if number.isdigit() else []
    if not found:
        numbers = ", ".join(path.name[:2] for path in sorted(folder.glob("[0-9][0-9]_*.ipynb"))) or "none"
        raise CourseError(f"There is no notebook {number}; there are: {numbers}.")
    return found[0]
