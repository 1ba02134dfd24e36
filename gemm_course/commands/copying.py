"""Puts a copy of the notebooks into a learner's folder, and later brings it up to date.

A copy remembers in `.course/brought.json` the SHA-256 of each file as it came. So the course can tell what
the learner has changed, and what it has changed itself since then.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from gemm_course import places
from gemm_course.commands.errors import CourseError
from gemm_course.commands.keep import keep
from gemm_course.commands.places import KEPT

_NOT_FOR_LEARNERS = {"source", "kept", "measured"}
_SUFFIXES = {".ipynb", ".md", ".png", ".svg"}


def is_copy(folder: Path) -> bool:
    """Tell whether the notebooks in the folder are such a copy."""
    return _memory(folder).is_file()


def copy_into(folder: Path) -> bool:
    """Put the notebooks into ``folder/notebooks``. Return False if the folder has the course's already.

    Raise CourseError where something else is there already, or the folder cannot be written.
    """
    if places.has_notebooks(folder):
        return False
    notebooks = folder / "notebooks"
    if notebooks.exists():
        raise CourseError(f"{notebooks} is there already and holds no course: choose another folder.")
    part = folder / f"notebooks-{os.getpid()}"
    try:
        for name, file in brought():
            target = part / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
        # The files appear in one step, so that an interruption leaves no half of them.
        part.rename(notebooks)
        _remember(folder, {name: _digest(file) for name, file in brought()})
    except OSError as error:
        raise CourseError(f"{folder} cannot be written ({error.strerror}): choose another folder.") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return True


def newer_files(folder: Path) -> list[str]:
    """Return the files of a copy that the course has changed, added or removed since they were copied."""
    before, now = _remembered(folder), dict(brought())
    changed = [name for name, file in now.items() if before.get(name) != _digest(file)]
    return changed + [name for name in before if name not in now]


def bring_up_to_date(folder: Path) -> tuple[list[str], list[Path]]:
    """Replace the files that the course has changed. Return their names, and the copies of edited ones.

    A file that the course has under another name now, or no more, is removed, and kept if it was edited.
    """
    before, newer, kept, now = _remembered(folder), newer_files(folder), [], dict(brought())
    for name in newer:
        file, source = folder / "notebooks" / name, now.get(name)
        fresh = _digest(source) if source else None
        if file.exists() and _digest(file) not in (before.get(name), fresh):
            kept.append(keep(file, folder / KEPT))
        if source is None:
            file.unlink(missing_ok=True)
            del before[name]
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, file)
            before[name] = fresh
        # Each file is remembered at once, so that an interruption forgets none.
        _remember(folder, before)
    return newer, kept


def brought() -> Iterator[tuple[str, Path]]:
    """Yield each file that a learner gets: its name below ``notebooks``, and its path."""
    for file in sorted(places.BROUGHT.rglob("*")):
        name = file.relative_to(places.BROUGHT)
        hidden = any(part.startswith(".") for part in name.parts)
        if (
            file.is_file()
            and file.suffix in _SUFFIXES
            and name.parts[0] not in _NOT_FOR_LEARNERS
            and not hidden
        ):
            yield name.as_posix(), file


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def _memory(folder: Path) -> Path:
    return folder / places.STATE / "brought.json"


def _remembered(folder: Path) -> dict[str, str]:
    """Return what the copy remembers.

    If its file is damaged, return {}, so that all notebooks count as edited.
    """
    try:
        said = json.loads(_memory(folder).read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return said if isinstance(said, dict) else {}


def _remember(folder: Path, digests: dict[str, str]) -> None:
    memory = _memory(folder)
    memory.parent.mkdir(parents=True, exist_ok=True)
    part = memory.with_name(f"{memory.name}-{os.getpid()}")
    part.write_text(json.dumps(digests, indent=0), "utf-8")
    part.replace(memory)
