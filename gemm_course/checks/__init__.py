"""The exercises' checkers: ``check.vector_add(my_kernel)`` says whether it is right, or what is wrong.

``ch00`` to ``ch12`` hold a file per exercise, which is named like its checker; all are found here by
themselves. ``core`` is what every checker is made of, ``engines`` how a kind of answer is tried, ``kits``
what notebooks hand out.
"""

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules, walk_packages

from gemm_course.progress import passed

from .core import Exercise, Verdict
from .core.summary import Progress
from .core.summary import summary as _summary


def _found() -> Iterator[Exercise]:
    """Every exercise of every chapter, in the order of the course."""
    chapters = [module.name for module in iter_modules(__path__) if module.name.startswith("ch")]
    modules = [
        import_module(module.name)
        for chapter in chapters
        for module in walk_packages([f"{__path__[0]}/{chapter}"], f"{__name__}.{chapter}.")
    ]
    exercises = {
        value.number: value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, Exercise)
    }
    return (exercises[number] for number in sorted(exercises))


_EXERCISES = {exercise.name: exercise for exercise in _found()}
globals().update(_EXERCISES)

__all__ = ["Exercise", "Verdict", "exercises", "progress", *_EXERCISES]


def exercises() -> list[str]:
    """The names of all checkers in the order of the course: ``"where"`` stands for ``check.where``.

    Each of them has a ``.number`` such as ``"00.1"``.
    """
    return list(_EXERCISES)


def progress() -> Progress:
    """Which exercises have passed, notebook by notebook, and what comes next."""
    return _summary({exercise.number: name for name, exercise in _EXERCISES.items()}, passed())
