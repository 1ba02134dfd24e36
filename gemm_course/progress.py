"""Keeps which exercises a learner has passed, with a small file for each in the folder `progress`.

The file `tile_kernel` says when that exercise first passed, "2026-11-21T14:05:09". The name of its checker
stays when its number changes. Each exercise has its own file, because creating a file is a single step on
every file system. Notebooks that run side by side need no lock, an interruption damages nothing that is there
already, and a damaged file still counts, by its name. SQLite would bring locks that not every network folder
supports, and a damaged database would lose everything.

Earlier editions named exercises by numbers: first in one text file, then in files such as `03.3`. Both are
read as long as they are there, and the next pass takes them over.

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
from gemm_course.second_edition import name_of

VARIABLE, OFF = "GEMM_COURSE_PROGRESS", "off"
# The notebooks in this folder contain the answers.
SOLUTIONS = "solutions"
# A name of a checker, or a number that an earlier edition kept an exercise under.
_NAME = re.compile(r"[A-Za-z]\w*", re.ASCII)
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


def note_pass(name: str) -> str:
    """Note that the exercise with this checker passed here, if this is a learner's notebook.

    Return what the learner should know, in a sentence, or "" if all is well.
    """
    folder = progress_folder()
    return record(name, folder) if folder and in_a_learners_notebook() else ""


def in_a_learners_notebook() -> bool:
    """Tell whether this is the kernel of a notebook that is not one of the solutions."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if getattr(shell, "kernel", None) is None:
        return False
    notebook = shell.user_ns.get("__vsc_ipynb_file__") or os.environ.get("JPY_SESSION_NAME", "")
    return SOLUTIONS not in (Path(notebook).parent.name, Path.cwd().name)


def passed(folder: Path | None = None) -> dict[str, str]:
    """Return the exercises that have passed, in order, each with the time of its first pass, or "".

    Exercises are named by their checkers. A number of which only a teacher knows the exercise stays a number.
    """
    folder = folder or progress_folder()
    if folder is None:
        return {}
    found: dict[str, str] = {}
    for name, time in _all_noted(folder):
        found[name] = min(filter(None, (time, found.get(name))), default="")
    return dict(sorted(found.items(), key=lambda entry: entry[::-1]))


def record(name: str, folder: Path) -> str:
    """Note in ``folder`` that the exercise with this checker has passed.

    Return a sentence if something went wrong, or else "".
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        said = _take_over_earlier(folder)
        _note(folder, name, datetime.now().isoformat(timespec="seconds"))
        return said
    except OSError as error:
        return (
            f"Your progress could not be kept in {folder} ({error.strerror or error}); the exercise counts."
        )


def _note(folder: Path, name: str, time: str) -> None:
    """Note a pass, unless one is noted already."""
    with contextlib.suppress(FileExistsError), (folder / name).open("x", encoding="ascii") as file:
        file.write(f"{time}\n")


def _all_noted(folder: Path) -> list[tuple[str, str]]:
    """Return name and time of every pass, in whatever form it was kept; one may be there more than once."""
    noted = list(_earlier(folder)[0].items())
    # Names are looked at last: whoever takes over what was kept meanwhile goes from the text to files, and
    # from numbers to names.
    noted += [(file.name, _time_in(file)) for named in (_NUMBER, _NAME) for file in _files(folder, named)]
    return [(name_of(kept_as), time) for kept_as, time in noted]


def _files(folder: Path, named: re.Pattern) -> list[Path]:
    try:
        return [file for file in folder.iterdir() if named.fullmatch(file.name)]
    except OSError:
        return []


def _time_in(file: Path) -> str:
    try:
        text = file.read_bytes().decode("ascii", "replace").strip()
    except OSError:
        return ""
    return text if _TIME.fullmatch(text) else ""


# ---- progress as earlier editions kept it: a text file, then a file for each number ----


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
    """Take over what earlier editions kept. Return a sentence if a part of the text file is damaged."""
    for file in _files(folder, _NUMBER):
        _take_over(file, folder / name_of(file.name))
    return _take_over_text(folder)


def _take_over(numbered: Path, named: Path) -> None:
    """Rename a file, which is one step. Of two that say when an exercise passed, keep the first pass."""
    if numbered == named:
        return  # This number is no exercise of the second edition: it may be a teacher's own.
    with contextlib.suppress(FileNotFoundError):  # Another notebook has renamed it.
        if named.exists() and (_time_in(named) or "9") <= (_time_in(numbered) or "9"):
            numbered.unlink()
        else:
            numbered.replace(named)


def _take_over_text(folder: Path) -> str:
    """Take over what the text file says, once, and rename it. Return a sentence if it is damaged in part."""
    whole, damaged = _earlier(folder)
    for number, time in whole.items():
        _note(folder, name_of(number), time)
    aside = folder.with_name(f"{folder.name}_before.txt")
    if whole or damaged:
        with contextlib.suppress(OSError):  # Another notebook has renamed the file, or the next pass will.
            _earlier_file(folder).replace(aside)
    told = f"Your progress file was damaged: it is kept as {aside.name}; its whole lines still count."
    return told if damaged else ""
