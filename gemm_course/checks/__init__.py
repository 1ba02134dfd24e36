"""The exercises' checkers: ``check.vector_add(my_kernel)`` says whether it is right, or what is wrong.

Every chapter has a module, ``chapter_00`` and so on, whose functions marked ``@exercise`` are the checkers.
They are found here by themselves. How a verdict looks is in :mod:`.verdict`, how an exercise is made in
:mod:`.exercise`, how kernels are tried in :mod:`.gemm` and :mod:`.vectors`.
"""

from importlib import import_module
from pkgutil import iter_modules

from gemm_course.checks.core.exercise import Exercise
from gemm_course.checks.core.summary import Progress
from gemm_course.checks.core.summary import summary as _summary
from gemm_course.checks.core.verdict import Verdict
from gemm_course.progress import passed

_CHAPTERS = sorted(module.name for module in iter_modules(__path__) if module.name.startswith("chapter_"))
_EXERCISES = {
    value.name: value
    for chapter in _CHAPTERS
    for value in vars(import_module(f"{__name__}.{chapter}")).values()
    if isinstance(value, Exercise)
}
globals().update(_EXERCISES)

__all__ = ["Exercise", "Verdict", "exercises", "progress", *_EXERCISES]


def exercises() -> list[str]:
    """The names of all checkers in the order of the course: ``"where"`` stands for ``check.where``.

    Each of them has a ``.number`` such as ``"00.1"``.
    """
    return sorted(_EXERCISES, key=lambda name: _EXERCISES[name].number)


def progress() -> Progress:
    """Which exercises have passed, notebook by notebook, and what comes next."""
    return _summary({_EXERCISES[name].number: name for name in exercises()}, passed())
