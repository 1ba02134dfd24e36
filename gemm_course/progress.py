"""Which exercises a learner has passed: a folder, `progress`, with a small file for each of them.

The file `03.2` says when exercise 03.2 first passed, "2026-11-21T14:05:09". A file each, because creating one
is a single step on every file system: notebooks that run side by side need no lock, an interruption damages
nothing that is there already, and a damaged file still counts, by its name. One text file, as the course had
before, needed locks and a repair. SQLite would bring its own locks, which not every network folder keeps, and
a whole database to lose when it is damaged.

Nothing that goes wrong here may break a check: `note_pass` then returns a sentence for the learner.

Only a learner's own notebook counts: a kernel of a notebook that is not one of the solutions. Whoever builds
or tests notebooks sets the variable GEMM_COURSE_PROGRESS to "off"; any other value names another folder.
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
SOLUTIONS = "solutions"  # the folder of the notebooks that pass by themselves
_NUMBER = re.compile(r"\d\d\.\d+")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT[\d:]{8}")
_EARLIER_LINE = re.compile(rf"({_NUMBER.pattern}) (\S+)\r?")


def progress_folder() -> Path | None:
    """Return the folder that progress is kept in, None where it is switched off.

    Without the variable that is where the course keeps what it knows of this learner. Where it names a text
    file, as it did when progress was kept in one, the folder is beside it.
    """
    named = os.environ.get(VARIABLE, "")
    if named == OFF:
        return None
    return Path(named.removesuffix(".txt")).expanduser() if named else state_folder() / "progress"


def note_pass(number: str) -> str:
    """Note that the exercise of this number passed here, if this is a learner's notebook.

    Return what the learner should know, in a sentence, "" if all is well.
    """
    folder = progress_folder()
    return record(number, folder) if folder and in_a_learners_notebook() else ""


def in_a_learners_notebook() -> bool:
    """Say whether this is a notebook's kernel, and the notebook none of the solutions."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if getattr(shell, "kernel", None) is None:
        return False
    notebook = shell.user_ns.get("__vsc_ipynb_file__") or os.environ.get("JPY_SESSION_NAME", "")
    return SOLUTIONS not in (Path(notebook).parent.name, Path.cwd().name)


def passed(folder: Path | None = None) -> dict[str, str]:
    """Return the exercises that have passed, in order, with the time of the first pass, "" if unknown."""
    folder = folder or progress_folder()
    found = _noted(folder) | _earlier(folder)[0] if folder else {}
    return dict(sorted(found.items(), key=lambda entry: entry[::-1]))


def record(number: str, folder: Path) -> str:
    """Note in ``folder`` that an exercise has passed; return a sentence if something went wrong, else ""."""
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
    """Note a pass, unless there was one before."""
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
    """Return what its whole lines say, the first pass of each exercise, and whether there are other lines."""
    try:
        lines = _earlier_file(folder).read_bytes().decode("utf-8", "replace").split("\n")
    except OSError:
        return {}, False
    said = [_EARLIER_LINE.fullmatch(line) for line in lines[:-1]]
    return {line[1]: line[2] for line in reversed(said) if line}, None in said or lines[-1] != ""


def _take_over_earlier(folder: Path) -> str:
    """Note what the file says, once, and keep it under another name; say so if a part of it is damaged."""
    whole, damaged = _earlier(folder)
    for number, time in whole.items():
        _note(folder, number, time)
    aside = folder.with_name(f"{folder.name}_before.txt")
    if whole or damaged:
        with contextlib.suppress(OSError):  # another notebook did it, or it will be done at the next pass
            _earlier_file(folder).replace(aside)
    told = f"Your progress file was damaged: it is kept as {aside.name}; its whole lines still count."
    return told if damaged else ""
