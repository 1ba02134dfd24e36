"""Which exercises a learner has passed: one small file, `.course/progress.txt`, a line an exercise.

A line holds the exercise's number and when it first passed, "03.2 2026-11-21T14:05:09". The file is only
ever added to, by one process at a time. Nothing that goes wrong with it may break a check: `note_pass` then
returns a sentence to be said.

Only a learner's own notebook counts: a kernel behind a notebook that is no solution. Whoever builds or tests
notebooks sets the variable GEMM_COURSE_PROGRESS to "off"; any other value names another file.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None
    import msvcrt

VARIABLE, OFF = "GEMM_COURSE_PROGRESS", "off"
FILE = Path(__file__).resolve().parents[1] / ".course" / "progress.txt"
SOLUTIONS = "solutions"  # the folder of the notebooks that pass by themselves
_LINE = re.compile(r"(\d\d\.\d+) (\S+)")
_PATIENCE, _PAUSE = 2.0, 0.01  # seconds to wait for another notebook's turn to end, and between two looks


def progress_file() -> Path | None:
    """Return the file that progress is kept in, None where it is switched off."""
    named = os.environ.get(VARIABLE, "")
    return None if named == OFF else Path(named) if named else FILE


def note_pass(number: str) -> str:
    """Note that the exercise of this number passed here, if this is a learner's notebook.

    Return what the learner should know, in a sentence, "" if all is well.
    """
    file = progress_file()
    return record(number, file) if file and in_a_learners_notebook() else ""


def in_a_learners_notebook() -> bool:
    """Say whether this is a notebook's kernel, and the notebook none of the solutions."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if getattr(shell, "kernel", None) is None:
        return False
    notebook = shell.user_ns.get("__vsc_ipynb_file__") or os.environ.get("JPY_SESSION_NAME", "")
    return SOLUTIONS not in (Path(notebook).parent.name, Path.cwd().name)


def passed(file: Path | None = None) -> dict[str, str]:
    """Return the exercises that have passed, with the time of the first pass; damaged lines are left out."""
    file = file or progress_file()
    try:
        return _parsed(file.read_bytes())[0] if file else {}
    except OSError:
        return {}


def record(number: str, file: Path) -> str:
    """Note in ``file`` that an exercise has passed; return a sentence if something is amiss, else ""."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with _one_at_a_time(file.with_suffix(".lock")):
            said = _mend(file)
            if number not in passed(file):
                with file.open("ab") as opened:
                    opened.write(f"{number} {datetime.now().isoformat(timespec='seconds')}\n".encode())
            return said
    except OSError as error:
        return f"Your progress could not be kept in {file} ({error.strerror or error}); the exercise counts."


def _mend(file: Path) -> str:
    """Set a damaged file aside and begin a new one with the lines that are whole; say so."""
    content = file.read_bytes() if file.exists() else b""
    whole, damaged = _parsed(content)
    if not damaged:
        return ""
    aside = file.with_name(f"{file.stem}_damaged_{datetime.now():%Y-%m-%d_%H%M%S_%f}{file.suffix}")
    file.replace(aside)
    file.write_text("".join(f"{number} {when}\n" for number, when in whole.items()), encoding="utf-8")
    return (
        f"The file with your progress was damaged: it is kept as {aside.name}; its whole lines still count."
    )


def _parsed(content: bytes) -> tuple[dict[str, str], bool]:
    """Return what the whole lines say, the first pass of each, and whether there are others."""
    lines = content.decode("utf-8", "replace").split("\n")
    said = [_LINE.fullmatch(line.rstrip("\r")) for line in lines[:-1]]
    found = {line[1]: line[2] for line in reversed(said) if line}
    return dict(reversed(found.items())), None in said or lines[-1] != ""


@contextlib.contextmanager
def _one_at_a_time(path: Path) -> Iterator[None]:
    """Hold the lock that this file stands for. Raises TimeoutError if somebody else keeps it too long."""
    with path.open("ab") as file:
        until = time.monotonic() + _PATIENCE
        while not _locked(file):
            if time.monotonic() > until:
                raise TimeoutError(f"{path.name} is in use")
            time.sleep(_PAUSE)
        try:
            yield
        finally:
            _unlock(file)


def _locked(file) -> bool:
    """Try to take the lock; on a file system that has no locks, go on without."""
    try:
        _lock(file, fcntl.LOCK_EX | fcntl.LOCK_NB if fcntl else msvcrt.LK_NBLCK)
    except OSError as error:
        return bool(fcntl) and not isinstance(error, BlockingIOError)
    return True


def _unlock(file) -> None:
    with contextlib.suppress(OSError):
        _lock(file, fcntl.LOCK_UN if fcntl else msvcrt.LK_UNLCK)


def _lock(file, how: int) -> None:
    if fcntl:
        fcntl.flock(file, how)
    else:
        file.seek(0)
        msvcrt.locking(file.fileno(), how, 1)
