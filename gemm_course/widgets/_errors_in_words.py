"""Replaces tracebacks by a sentence on what a learner's code did, or why a call cannot be right.

A learner's function may fail, or be half written. Then a sentence says what it did, and the cell has run. A
call that cannot be right, for instance with a misspelt stage, raises its usual exception, of which a notebook
shows only the sentence. Everything else is a fault of the course and keeps its traceback.
"""

from __future__ import annotations

import dis
import linecache
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from functools import cache, wraps
from inspect import Parameter, Signature, isfunction, signature
from pathlib import Path
from typing import Any

from gemm_course.figures.picture import Picture
from gemm_course.figures.words import in_words
from gemm_course.kernels import Stage
from gemm_course.widgets._canvas import Canvas, Text
from lockstep import EmulatorError, EmulatorFault, LaunchError, RefusedLine

_COURSE = str(Path(__file__).parents[1])
_NOT_THE_LEARNERS = (_COURSE, *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")))
_RAISE = dis.opmap["RAISE_VARARGS"]
# A sentence shows no more characters of a value.
_LONGEST = 60


class NotShown(ValueError):
    """The error for a learner's function or kernel that cannot be shown.

    Its message says why, in a sentence.
    """


@cache
def spoken(name: str, function: Callable) -> Callable:
    """Return ``see.<name>``, which shows sentences in place of tracebacks."""

    @wraps(function)
    def see(*args: Any, **kwargs: Any) -> Any:
        try:
            _check_arguments(signature(function), args, kwargs)
        except TypeError as error:
            raise _in_a_sentence(TypeError(f"{error}. {_how_to_call(name, function)}"), name) from None
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if any(map(_is_the_learners, (*args, *kwargs.values()))) and (words := what_happened(error)):
                Canvas().show(Text(words))
                return None
            if not _raised_on_purpose(error):
                raise
            raise _in_a_sentence(error, name) from None

    return see


def or_words(draw: Callable[..., Picture]) -> Callable[..., Picture]:
    """Return ``draw`` for a learner's code. If that code fails, the picture says how."""

    @wraps(draw)
    def drawn(*args: Any, **kwargs: Any) -> Picture:
        try:
            return draw(*args, **kwargs)
        except Exception as error:
            if (words := what_happened(error)) is None:
                raise
            return in_words(words)

    return drawn


def what_happened(error: Exception) -> str | None:
    """Say what a learner's code did wrong, with its line. Return None if the error was not the learner's."""
    if isinstance(error, NotShown):
        return str(error)
    if isinstance(error, EmulatorFault):
        return None
    if isinstance(error, RefusedLine):
        return f"{_sentence(error.sentence)} {_line(error.filename, error.line)}".strip()
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_a_learners(frame.filename)]
    line = _line(frames[-1].filename, frames[-1].lineno) if frames else ""
    if isinstance(error, LaunchError):
        return _sentence(f"the kernel cannot be launched: {error}")
    if isinstance(error, EmulatorError):
        return f"{_sentence(str(error))} {line}".strip()
    if not frames:
        return None
    return f"{_ended(f'`{frames[-1].name}` stopped with {type(error).__name__}: {error}')} {line}"


# ---- what a learner hands over -----------------------------------------------------------------------------


def asked(function: Callable, **arguments: Any) -> Any:
    """Call a learner's function with these arguments in order. Raise NotShown if it takes others."""
    given, wanted = parameters_of(function), ", ".join(arguments)
    try:
        signature(function).bind(*arguments.values())
    except TypeError:
        name = learners_name(function)
        raise NotShown(f"`{name}` must take ({wanted}); yours takes ({', '.join(given)}).") from None
    return function(*arguments.values())


def made_by(make: Callable, **sizes: int) -> Callable:
    """Return the kernel or device function that a factory makes. Raise NotShown for anything else."""
    made = asked(make, **sizes)
    if hasattr(made, "py_func") or isfunction(made):
        return made
    call = f"`{learners_name(make)}({', '.join(map(str, sizes.values()))})`"
    if made is None or made is Ellipsis:
        raise NotShown(f"{call} returns nothing yet: it must return a function under `@cuda.jit`.")
    raise NotShown(f"{call} must return a function under `@cuda.jit`; it returns {shown(made)}.")


def parameters_of(function: Any) -> list[str]:
    """Return the names of a function's parameters. Raise NotShown if it is not a function."""
    if not callable(function):
        raise NotShown(f"Pass the function itself, without calling it; this is {shown(function)}.")
    return list(signature(getattr(function, "py_func", function)).parameters)


def learners_name(function: Callable) -> str:
    """Return the name of a function or kernel, or of its type if it has none."""
    function = getattr(function, "py_func", function)
    return getattr(function, "__name__", type(function).__name__)


def shown(value: Any) -> str:
    """Return a value as a sentence shows it, cut off if it is long."""
    text = " ".join(repr(value).split())
    return f"`{text if len(text) <= _LONGEST else text[:_LONGEST] + ' …'}`"


# ---- whose fault it is -------------------------------------------------------------------------------------


def _is_the_learners(value: Any) -> bool:
    if isinstance(value, Stage):
        return False
    code = getattr(getattr(value, "py_func", value), "__code__", None)
    return _is_a_learners(code.co_filename) if code else callable(value)


def _is_a_learners(filename: str) -> bool:
    return not filename.startswith((*_NOT_THE_LEARNERS, "<frozen"))


def _raised_on_purpose(error: Exception) -> bool:
    """Tell whether a ``raise`` in the course made this error, rather than an accident."""
    if isinstance(error, (AssertionError, EmulatorFault)):
        return False
    *_, last = _tracebacks(error)
    code = last.tb_frame.f_code
    return code.co_filename.startswith(_COURSE) and code.co_code[last.tb_lasti] == _RAISE


def _tracebacks(error: Exception) -> Iterator:
    at = error.__traceback__
    while at is not None:
        yield at
        at = at.tb_next


# ---- calls that cannot be right ----------------------------------------------------------------------------


def _check_arguments(taken: Signature, args: tuple, kwargs: dict) -> None:
    """Raise TypeError for arguments that do not fit by their number, their names or a plain type."""
    for name, value in taken.bind(*args, **kwargs).arguments.items():
        parameter = taken.parameters[name]
        kinds = str(parameter.annotation).split(" | ")
        several = parameter.kind is Parameter.VAR_POSITIONAL
        if parameter.kind is Parameter.VAR_KEYWORD or not _PLAIN.keys() >= set(kinds):
            continue
        for each in value if several else [value]:
            if not isinstance(each, tuple(_PLAIN[kind][0] for kind in kinds)):
                wanted = " or ".join(_PLAIN[kind][1] for kind in kinds if kind != "None")
                raise TypeError(f"{name} must be {wanted}, not {shown(each)}")


_PLAIN = {
    "str": (str, 'a name in quotes, such as "vectorized"'),
    "int": (int, "a whole number"),
    "bool": (bool, "True or False"),
    "None": (type(None), ""),
}


# ---- words -------------------------------------------------------------------------------------------------


def _in_a_sentence(error: Exception, name: str) -> Exception:
    """Change the error so that IPython shows only its sentence, and return it."""
    words = error.args[0] if isinstance(error, LookupError) and error.args else str(error)
    error._render_traceback_ = lambda: [f"see.{name}: {_ended(str(words))}"]
    return error


def _how_to_call(name: str, function: Callable) -> str:
    taken = ", ".join(
        str(parameter.replace(annotation=parameter.empty))
        for parameter in signature(function).parameters.values()
    )
    return f"It is called as see.{name}({taken})"


def _line(filename: str, number: int) -> str:
    text = linecache.getline(filename, number).strip()
    return f"(Line {number}: `{text}`)" if text else f"(Line {number})"


def _ended(words: str) -> str:
    return words if words.endswith((".", "?", "!")) else f"{words}."


def _sentence(words: str) -> str:
    return _ended(words[:1].upper() + words[1:])
