"""Finds the course's files and the learner's own.

In a clone or an unpacked archive both are in one folder, if the learner may write there. If many use one
install, or if the course came as a wheel, each learner has a copy of the notebooks in their own folder. So
nothing is written into the install, and nobody sees what others have passed.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

NAME = "gemm-course"
# This variable names the learner's folder. `gemm-course lab FOLDER` sets it for its kernels.
VARIABLE = "GEMM_COURSE_FOLDER"
# A folder that has this file has the notebooks.
FIRST = Path("notebooks", "00_welcome.ipynb")
# The file of this name says which folder was opened last.
_OPENED = "folder"
# In the learner's folder, this folder has progress, JupyterLab's layout, and notebooks as they came.
STATE = ".course"

PACKAGE = Path(__file__).resolve().parent
# COURSE is the folder of a clone or an archive. With a wheel, it is only the folder of all packages.
COURSE = PACKAGE.parent
_IN_WHEEL = PACKAGE / "_notebooks"
# The course's own notebooks are in this folder.
BROUGHT = _IN_WHEEL if _IN_WHEEL.is_dir() else COURSE / "notebooks"


def learners_folder() -> Path:
    """Return the folder whose ``notebooks`` this learner works in. It may not exist yet.

    It is the first of these: the folder that GEMM_COURSE_FOLDER names; the course's own, if it belongs to
    this learner; the nearest folder around the working directory that holds the notebooks and belongs to the
    learner, such as one that nbgitpuller brought; the folder that was opened last; ``gemm-course`` among the
    learner's documents, where ``gemm-course lab`` puts a copy.
    """
    if named := os.environ.get(VARIABLE):
        return Path(named).expanduser().resolve()
    for folder in (COURSE, *_around(), *_opened_last()):
        if has_notebooks(folder) and is_own(folder):
            return folder
    return _in_documents()


def state_folder() -> Path:
    """Return the folder of this learner's progress and settings. It may not exist yet."""
    folder = learners_folder()
    return folder / STATE if has_notebooks(folder) and is_own(folder) else _in_state()


def remember_opened(folder: Path) -> None:
    """Note which folder was opened, for commands that run elsewhere. The course's own needs no note."""
    if folder != COURSE:
        with contextlib.suppress(OSError):
            _in_state().mkdir(parents=True, exist_ok=True)
            (_in_state() / _OPENED).write_text(str(folder), "utf-8")


def has_notebooks(folder: Path) -> bool:
    """Tell whether the course's notebooks lie in this folder."""
    return (folder / FIRST).is_file()


def is_own(folder: Path) -> bool:
    """Tell whether this user may write in a folder of the course, and no other user works in it.

    The folder belongs to the user who opened the course there first, and who therefore owns its ``.course``.
    Before that it must be the user's own, or the system's: anybody may make a folder in a shared one.
    """
    if not os.access(folder, os.W_OK):
        return False
    if not hasattr(os, "geteuid"):
        return True
    state = folder / STATE
    user = os.geteuid()
    return user == 0 or (state.stat().st_uid == user if state.exists() else folder.stat().st_uid in (0, user))


def _around() -> tuple[Path, ...]:
    try:
        here = Path.cwd()
    except OSError:  # The working directory was removed.
        return ()
    return (here, *here.parents)


def _opened_last() -> tuple[Path, ...]:
    try:
        return (Path((_in_state() / _OPENED).read_text("utf-8")),)
    except (OSError, ValueError):
        return ()


def _in_state() -> Path:
    from platformdirs import user_state_path

    return user_state_path(NAME, appauthor=False)


def _in_documents() -> Path:
    from platformdirs import user_documents_path

    return user_documents_path() / NAME
