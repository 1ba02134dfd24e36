"""Grades notebooks by the verdict of a check, in a cell that the learner does not write."""

import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import FunctionType, ModuleType

from IPython.display import display

import gemm_course
import lockstep
from gemm_course.places import PACKAGE

from .exercise import Exercise
from .verdict import Verdict

_CHECKERS = "gemm_course.checks"
_WHERE_CODE_MAY_BE = (
    PACKAGE,
    Path(lockstep.__file__).parent,
    Path(sysconfig.get_path("stdlib")),
    Path(sysconfig.get_path("purelib")),
)


def graded(verdict: Verdict) -> None:
    """Show the verdict. Raise AssertionError, for which graders give no points, unless the answer is right.

    Points depend on the course's own checkers. If a notebook has replaced one of their functions,
    AssertionError is raised as well, and names that function. This stops simple tricks only: an answer runs
    in the same process as its check, and whoever knows Python well can deceive it.
    """
    passed = isinstance(verdict, Verdict) and verdict.passed and sys.gettrace() is None
    display(verdict)
    replaced = next(replaced_functions(), None)
    assert replaced is None, f"{replaced} is not the course's: this notebook has replaced it."
    assert isinstance(verdict, Verdict), f"A check answers with a verdict, not with {verdict!r}."
    assert passed, f"{verdict.heading}: {verdict.message}"


def replaced_functions() -> Iterator[str]:
    """Name the functions of `gemm_course.checks` that come from somewhere else, such as a notebook's cell.

    `gemm_course.check` itself is named too where something else has taken its place.
    """
    if gemm_course.check is not sys.modules.get(_CHECKERS):
        yield "gemm_course.check"
    for name, module in list(sys.modules.items()):
        if name == _CHECKERS or name.startswith(f"{_CHECKERS}."):
            yield from (
                f"{name}.{inside}" for inside, function in _functions(module) if _is_foreign(function)
            )


def _functions(module: ModuleType) -> Iterator[tuple[str, object]]:
    """Yield the names and values of a module, of its classes' functions, and of what its checkers run."""
    for name, value in list(vars(module).items()):
        yield name, value
        if isinstance(value, type) and value.__module__.startswith(_CHECKERS):
            for attribute, function in list(vars(value).items()):
                yield f"{name}.{attribute}", _inside(function)
        if isinstance(value, Exercise):
            yield name, value._prove


def _inside(attribute: object) -> object:
    """Return the function within a property, a static, class or partial method; or what was given."""
    found = (getattr(attribute, name, None) for name in ("fget", "__func__", "func"))
    return next(filter(None, found), attribute)


def _is_foreign(function: object) -> bool:
    if not isinstance(function, FunctionType):
        return False
    file = function.__code__.co_filename
    # Functions that dataclasses write, and frozen ones of Python's own, come from no file.
    if file == "<string>" or file.startswith("<frozen "):
        return False
    return not any(Path(file).is_relative_to(folder) for folder in _WHERE_CODE_MAY_BE)
