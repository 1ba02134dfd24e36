"""Finds and names the folders of measured figures, which make the one list of the GPUs with records.

A folder belongs to one GPU and has its tables, such as ``ladder.csv`` and ``sweep.csv``. There are three
sources, in this order:

- the course's own, ``data/*``, to which `gemm-course bench` and `sweep` add a folder for a learner's GPU,
- the folders that the environment variable GEMM_COURSE_DATA names, with the system's separator (":", on
  Windows ";") between them: each a GPU's folder, such as one that ``--folder`` wrote, or a folder of such,
- a path, wherever a GPU can be named.

The word "off" in the variable leaves out what a learner added to ``data/``, so that tests and stored pictures
are the same on every machine.

Every reader of `gemm_course.records` and every picture with measured figures finds its folder here. A GPU is
listed as soon as anything was measured on it. A picture that needs other figures says what to run. That helps
a learner more than a GPU that is missing without a word.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_IN_WHEEL, _IN_CLONE = _PACKAGE / "_data", _PACKAGE.parent / "data"
DATA = _IN_WHEEL if _IN_WHEEL.is_dir() else _IN_CLONE
VARIABLE, OFF = "GEMM_COURSE_DATA", "off"
# These folders of data/ come with the course.
BROUGHT = ("h200",)
# A GPU's folder is known by these tables. Other files may lie beside them.
TABLES = (
    "ladder.csv",
    "sweep.csv",
    "row_lengths.csv",
    "roofs.csv",
    "compute_roofs.csv",
    "counters/ladder.csv",
    "profile/kernels.csv",
    "peers.csv",
    "correctness.csv",
    "compile_times.csv",
    "stage_sanitizer.csv",
)
# A short name leaves out these words.
_MAKERS = ("NVIDIA", "GeForce", "Tesla")


class UnknownGpu(ValueError):
    """The error for a name that no folder of records has. Its message lists the names that exist."""


@dataclass(frozen=True)
class Place:
    """A GPU's folder. ``name`` is the name to ask for it by, such as "rtx_3060"."""

    name: str
    folder: Path

    @property
    def gpu(self) -> str:
        """The GPU's name in its records, such as "NVIDIA GeForce RTX 3060", or else the folder's name."""
        return _named_in(self.folder, self.stamps) or self.name

    @property
    def short(self) -> str:
        """The GPU's name without its maker's, such as "RTX 3060"."""
        return " ".join(word for word in self.gpu.split() if word not in _MAKERS) or self.gpu

    @property
    def an(self) -> str:
        """The short name in a sentence: "an H200", "the RTX 3060"."""
        return f"an {self.short}" if self == SHIPPED else f"the {self.short}"

    @property
    def stamps(self) -> tuple[tuple[str, int], ...]:
        """The folder's tables, with the time when each was last written."""
        there = ((table, self.folder / table) for table in TABLES)
        return tuple((table, path.stat().st_mtime_ns) for table, path in there if path.is_file())


# The notebooks' text is about this GPU, and pictures show it unless another is named.
SHIPPED = Place("h200", DATA / "h200")


def places() -> list[Place]:
    """Return every GPU with records, the course's own first. A name that is taken gets a number: "h200_2"."""
    found: dict[str, Place] = {}
    for folder in _folders():
        if folder in (place.folder for place in found.values()):
            continue
        name, number = folder.name, 2
        while name in found:
            name, number = f"{folder.name}_{number}", number + 1
        found[name] = Place(name, folder)
    return list(found.values())


def place(gpu: str | Place) -> Place:
    """Return the folder of a GPU by its name, "rtx_3060" or "RTX 3060", or by a path to it.

    Raise UnknownGpu, a ValueError, with the names that there are.
    """
    if isinstance(gpu, Place):
        return gpu
    if gpu == SHIPPED.name:
        return SHIPPED
    known = places()
    for same in (lambda each: gpu == each.name, lambda each: gpu in (each.gpu, each.short, short_of(each))):
        for each in filter(same, known):
            return each
    folder = Path(gpu).expanduser()
    if _is_a_gpus(folder):
        folder = folder.resolve()
        return next((each for each in known if each.folder == folder), Place(folder.name, folder))
    raise UnknownGpu(f"no records of a GPU called {gpu} were found; there are {_listed(known)}.{_missing()}")


def short_of(one: Place) -> str:
    """Return a GPU's short name in a picture.

    It includes the folder's name if a GPU listed before has the same short name.
    """
    known = places()
    twins = [each for each in (*known, *([] if one in known else [one])) if each.short == one.short]
    return one.short if len(twins) < 2 or one == twins[0] else f"{one.short} ({one.name})"


def _listed(known: list[Place]) -> str:
    return ", ".join(each.name for each in known)


def _missing() -> str:
    """Return the sentence of `named_in_vain`, to be added to another, or "" for none."""
    return f" {sentence}" if (sentence := named_in_vain()) else ""


def named_in_vain() -> str:
    """Return a sentence that names the folders in the variable that have no records, or "" for none."""
    wrong = [str(folder) for folder in _named_folders() if not list(_gpus_in(folder))]
    return f"{VARIABLE} names {' and '.join(wrong)}, where no records of a GPU lie." if wrong else ""


def _folders() -> Iterator[Path]:
    yield from [DATA / name for name in BROUGHT] if OFF in _parts() else _gpus_in(DATA)
    for folder in _named_folders():
        yield from _gpus_in(folder)


def _named_folders() -> list[Path]:
    return [Path(part).expanduser().resolve() for part in _parts() if part != OFF]


def _parts() -> list[str]:
    """Return the parts of the variable, without blanks and quotes, which some shells leave around a path."""
    parts = (part.strip().strip("\"'") for part in os.environ.get(VARIABLE, "").split(os.pathsep))
    return [part for part in parts if part]


def _gpus_in(folder: Path) -> Iterator[Path]:
    """Yield the folder itself if it is a GPU's, or else the GPUs' folders in it."""
    if _is_a_gpus(folder):
        yield folder
    elif folder.is_dir():
        yield from sorted(each for each in folder.iterdir() if _is_a_gpus(each))


def _is_a_gpus(folder: Path) -> bool:
    return any((folder / table).is_file() for table in TABLES)


@lru_cache(64)
def _named_in(folder: Path, stamps: tuple[tuple[str, int], ...]) -> str:
    """Return the first GPU that the tables of a folder name, or ""."""
    for table, _ in stamps:
        with (folder / table).open(newline="", encoding="utf-8", errors="replace") as file:
            first = next(csv.DictReader(file), {})
        if first.get("gpu"):
            return first["gpu"]
    return ""
