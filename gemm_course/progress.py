"""Keeps which exercises a learner has passed, with a small file for each in the folder `progress`.

The file `03.2` says when exercise 03.2 first passed, "2026-11-21T14:05:09". Each exercise has its own file,
because creating a file is a single step on every file system. Notebooks that run side by side need no lock,
an interruption damages nothing that is there already, and a damaged file still counts, by its name. One text
file for all, as in earlier versions of the course, needed locks and repairs. SQLite would bring locks that
not every network folder supports, and a damaged database would lose everything.

If something goes wrong here, the check must not fail. `note_pass` then returns a sentence for the learner.

Only a learner's own notebooks count, not the solutions. To build or test notebooks, set the variable
GEMM_COURSE_PROGRESS to "off". Any other value names another folder.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from datetime import datetime
from pathlib import Path

from gemm_course.places import state_folder

VARIABLE, OFF = "GEMM_COURSE_PROGRESS", "off"
# The notebooks in this folder contain the answers.
SOLUTIONS = "solutions"
_NUMBER = re.compile(r"\d\d\.\d+")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:]{8}")
_EARLIER_LINE = re.compile(rf"({_NUMBER.pattern}) (\S+)\r?")


def progress_folder() -> Path | None:
    """Return the folder that progress is kept in, or None if progress is switched off.

    Without the variable, it is in the folder that the course has for this learner. If the variable names a
    text file, as when progress was kept in one, the folder is beside that file.
    """
    named = os.environ.get(VARIABLE, "")
    if named == OFF:
        return None
    return Path(named.removesuffix(".txt")).expanduser() if named else state_folder() / "progress"


def note_pass(number: str) -> str:
    """Note that the exercise of this number passed here, if this is a learner's notebook.

    Return what the learner should know, in a sentence, or "" if all is well.
    """
    folder = progress_folder()
    return record(number, folder) if folder and in_a_learners_notebook() else ""


def in_a_learners_notebook() -> bool:
    """Tell whether this is the kernel of a notebook that is not one of the solutions."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if getattr(shell, "kernel", None) is None:
        return False
    notebook = shell.user_ns.get("__vsc_ipynb_file__") or os.environ.get("JPY_SESSION_NAME", "")
    return SOLUTIONS not in (Path(notebook).parent.name, Path.cwd().name)


def passed(folder: Path | None = None) -> dict[str, str]:
    """Return the exercises that have passed, in order, each with the time of its first pass, or ""."""
    folder = folder or progress_folder()
    found = _noted(folder) | _earlier(folder)[0] if folder else {}
    return dict(sorted(found.items(), key=lambda entry: entry[::-1]))


def record(number: str, folder: Path) -> str:
    """Note in ``folder`` that an exercise has passed.

    Return a sentence if something went wrong, or else "".
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        said = _take_over_earlier(folder)
        _note(folder, number, datetime.now().isoformat(timespec="seconds"))
        return said
    except OSError as error:
        return (
            f"Your progress could not be kept in {folder} ({error.strerror or error}); the exercise counts."
        )


def _note(folder: Path, number: str, time: str) -> None:
    """Note a pass, unless one is noted already."""
    with contextlib.suppress(FileExistsError), (folder / number).open("x", encoding="ascii") as file:
        file.write(f"{time}\n")


def _noted(folder: Path) -> dict[str, str]:
    try:
        return {file.name: _time_in(file) for file in folder.iterdir() if _NUMBER.fullmatch(file.name)}
    except OSError:
        return {}


def _time_in(file: Path) -> str:
    try:
        text = file.read_bytes().decode("ascii", "replace").strip()
    except OSError:
        return ""
    return text if _TIME.fullmatch(text) else ""


# ---- the text file that held progress before ----


def _earlier_file(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.txt")


def _earlier(folder: Path) -> tuple[dict[str, str], bool]:
    """Return each exercise's first pass from the file's whole lines, and whether there are other lines."""
    try:
        lines = _earlier_file(folder).read_bytes().decode("utf-8", "replace").split("\n")
    except OSError:
        return {}, False
    said = [_EARLIER_LINE.fullmatch(line) for line in lines[:-1]]
    return {line[1]: line[2] for line in reversed(said) if line}, None in said or lines[-1] != ""


def _take_over_earlier(folder: Path) -> str:
    """Take over what the old file says, once, and rename it. Return a sentence if a part of it is damaged."""
    whole, damaged = _earlier(folder)
    for number, time in whole.items():
        _note(folder, number, time)
    aside = folder.with_name(f"{folder.name}_before.txt")
    if whole or damaged:
        with contextlib.suppress(OSError):  # Another notebook has renamed the file, or the next pass will.
            _earlier_file(folder).replace(aside)
    told = f"Your progress file was damaged: it is kept as {aside.name}; its whole lines still count."
    return told if damaged else ""
