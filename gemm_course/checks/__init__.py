"""Holds the exercises' checkers: ``check.vector_add(my_kernel)`` says whether the kernel is right.

``ch00`` to ``ch12`` hold a file per exercise, named like its checker; this module finds them all. ``core``
defines what every checker is made of, ``engines`` try one kind of answer each, and ``kits`` are kernels that
the notebooks hand out.

A teacher's own exercises come from other packages: each module named in the entry points of the group
``gemm_course.exercises`` is searched for checkers as well. Their numbers begin at 50, such as "50.1"; see
TEACHING.md. An exercise that cannot be loaded is left out with a warning.
"""

import warnings
from collections.abc import Iterable, Iterator
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules, walk_packages

from gemm_course.progress import passed

from .core import Exercise, Verdict
from .core.summary import Progress
from .core.summary import summary as _summary


def _found() -> Iterator[Exercise]:
    """Yield every exercise of every chapter, in the order of the course."""
    chapters = [module.name for module in iter_modules(__path__) if module.name.startswith("ch")]
    modules = [
        import_module(module.name)
        for chapter in chapters
        for module in walk_packages([f"{__path__[0]}/{chapter}"], f"{__name__}.{chapter}.")
    ]
    return _in_order(
        value for module in modules for value in vars(module).values() if isinstance(value, Exercise)
    )


def _in_order(exercises: Iterable[Exercise]) -> Iterator[Exercise]:
    """Yield each exercise once, by number. Two with one number are an error: progress is stored by number."""
    by_number: dict[str, Exercise] = {}
    for each in exercises:
        known = by_number.setdefault(each.number, each)
        if known is not each:
            raise ValueError(
                f"check.{known.name} and check.{each.name} both have the number {each.number}: "
                "give the new one the next number that is free"
            )
    return (by_number[number] for number in sorted(by_number))


def _from_elsewhere(known: dict[str, Exercise]) -> Iterator[Exercise]:
    """Yield the exercises of other packages whose names and numbers are free."""
    names, numbers = set(known), {exercise.number for exercise in known.values()}
    for entry in entry_points(group="gemm_course.exercises"):
        try:
            found = [value for value in vars(entry.load()).values() if isinstance(value, Exercise)]
        except Exception as error:
            # A broken package of exercises must not stop the course.
            warnings.warn(f"The exercises of {entry.value} cannot be loaded: {error!r}", stacklevel=2)
            continue
        for each in sorted(found, key=lambda one: one.number):
            if each.name in names or each.number in numbers or not "50" <= each.number[:2] <= "99":
                warnings.warn(
                    f"{entry.value} has an exercise {each.number}, check.{each.name}: its name or number is "
                    "taken, or the number not from 50 to 99. It is left out.",
                    stacklevel=2,
                )
                continue
            names.add(each.name)
            numbers.add(each.number)
            yield each


_EXERCISES = {exercise.name: exercise for exercise in _found()}
_EXERCISES |= {exercise.name: exercise for exercise in _from_elsewhere(_EXERCISES)}
globals().update(_EXERCISES)

__all__ = ["Exercise", "Verdict", "exercises", "progress", *_EXERCISES]


def exercises() -> list[str]:
    """Return the names of all checkers in the order of the course: ``"where"`` stands for ``check.where``.

    Each of them has a ``.number`` such as ``"00.1"``.
    """
    return list(_EXERCISES)


def progress() -> Progress:
    """Return which exercises have passed, notebook by notebook, and what comes next."""
    return _summary({exercise.number: name for name, exercise in _EXERCISES.items()}, passed())
