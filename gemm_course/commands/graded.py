"""Runs `gemm-course graded`: the table that a teacher looks at before exporting marks."""

from pathlib import Path

from gemm_course.commands.errors import CourseError
from gemm_course.grading.outcomes import outcomes


def show(folder: Path, assignment: str | None) -> tuple[str, bool]:
    """Return the table of all submissions, and whether all were graded. Raise CourseError."""
    if not (folder / "nbgrader_config.py").is_file():
        raise CourseError(f"{folder} has no nbgrader_config.py: name the folder of the nbgrader course.")
    found = list(outcomes(folder, assignment))
    if not found:
        raise CourseError(f"There are no submissions in {folder / 'submitted' / '*' / (assignment or '*')}.")
    missing = sum(each.points is None for each in found)
    if missing:
        last = f"{missing} of {len(found)} submissions are not graded. An export has 0 for them, or no row."
    else:
        last = f"All {len(found)} submissions are graded."
    return "\n".join([*map(str, found), last]), not missing
