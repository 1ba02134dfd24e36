"""Runs `gemm-course new` and `check`, and reads a learner's own stage for other commands."""

from __future__ import annotations

from pathlib import Path

from gemm_course.commands.errors import CourseError
from gemm_course.own_kernel import Mine, OwnKernelError, own
from gemm_course.own_kernel.writing import write_new
from gemm_course.places import learners_folder
from gemm_course.records import parse_tiles


def new(name: str, start: str, folder: Path | None) -> Path:
    """Write a learner's stage into the folder, or else beside the notebooks or here. Raise CourseError."""
    beside = learners_folder() / "notebooks"
    try:
        return write_new(name, folder or (beside if beside.is_dir() else Path()), start)
    except OwnKernelError as reason:
        raise CourseError(str(reason)) from None


def check(file: str, tiles: str) -> bool:
    """Print what is wrong with a learner's stage. Return whether it is right. Raise CourseError."""
    try:
        found = read_own(file).check(parse_tiles(tiles))
    except ValueError as reason:
        raise CourseError(str(reason)) from None
    print(found)
    return found.ok


def card(file: str, tiles: str, save: Path | None) -> None:
    """Save the card of a learner's stage, and print its line of text. Raise CourseError."""
    from gemm_course.widgets._card import card_of

    mine = read_own(file)
    where = save or Path(f"{mine.name}.svg")
    try:
        made = card_of(mine, tiles=parse_tiles(tiles), save=where)
    except ValueError as reason:
        raise CourseError(str(reason)) from None
    print(f"{made.line}\n\nThe picture is in {where.resolve()}.")


def is_file(name: str) -> bool:
    """Tell whether a name on the command line names a file, not a stage of the ladder."""
    return name.endswith(".py")


def read_own(name: str) -> Mine:
    """Read a learner's own stage. Raise CourseError if it cannot be read."""
    try:
        return own(name)
    except OwnKernelError as reason:
        raise CourseError(str(reason)) from None
