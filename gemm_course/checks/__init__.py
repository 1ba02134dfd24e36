"""Holds the exercises' checkers: ``check.vector_add(my_kernel)`` says whether the kernel is right.

``notebooks`` holds a file per exercise, named like its checker; this module finds them all, and ``road.py``
says in which order they come. ``core`` defines what every checker is made of, ``engines`` try one kind of
answer each, and ``kits`` are kernels that the notebooks hand out.

A teacher's own exercises come from other packages: each module named in the entry points of the group
``gemm_course.exercises`` is searched for checkers as well. Their numbers begin at 50, such as "50.1"; see
TEACHING.md. An exercise that cannot be loaded is left out with a warning.
"""

import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import walk_packages

from gemm_course.progress import passed
from gemm_course.road import EXERCISES, numbered
from gemm_course.second_edition import GONE

from . import notebooks
from .core import Exercise, Verdict
from .core.summary import Progress
from .core.summary import summary as _summary


def _found() -> Iterator[Exercise]:
    """Yield every exercise of the course in the order of the road, and last those that it does not know."""
    files = walk_packages(notebooks.__path__, f"{notebooks.__name__}.")
    modules = [import_module(file.name) for file in files]
    values = (value for module in modules for value in vars(module).values())
    by_name = {value.name: value for value in values if isinstance(value, Exercise)}
    yield from (by_name[name] for name in EXERCISES if name in by_name)
    yield from (each for name, each in by_name.items() if name not in EXERCISES)


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

    Each of them has a ``.number`` such as ``"00.1"``, which says where it stands now.
    """
    return list(_EXERCISES)


def progress() -> Progress:
    """Return which exercises have passed, notebook by notebook, and what comes next."""
    kept = passed()
    # A teacher's exercise that passed in the second edition is kept under its number.
    done = {name: kept.get(name, kept.get(each.own_number)) for name, each in _EXERCISES.items()}
    numbers = {name: exercise.number for name, exercise in _EXERCISES.items()}
    return _summary(numbers, {name: time for name, time in done.items() if time is not None})


def __getattr__(name: str) -> Callable[..., None]:
    """Return, for an exercise that left the course, what tells a learner's older notebook where it went."""
    if name not in GONE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    told = numbered(f"check.{name} belongs to an older course. What it asked {GONE[name]}.")
    return lambda *answer, **named: print(told)
