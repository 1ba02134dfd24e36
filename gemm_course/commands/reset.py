"""Gives a learner a notebook as it was at the start."""

from pathlib import Path

from gemm_course.commands.fresh import fresh
from gemm_course.commands.keep import keep
from gemm_course.commands.places import KEPT, notebook


def reset(number: str, root: Path) -> tuple[Path, Path | None]:
    """Put the fresh notebook in place. Return its path, and that of the kept copy.

    The copy is None if the notebook was fresh already. Raise CourseError if there is no such notebook, or if
    its fresh state cannot be found.
    """
    path = notebook(number, root / "notebooks")
    content = fresh(path, root)
    if path.read_bytes() == content:
        return path, None
    copy = keep(path, root / KEPT)
    path.write_bytes(content)
    return path, copy
