"""Calling what a learner wrote: every way in which it can fail becomes a sentence with the line."""

import ast
import inspect
import linecache
import textwrap
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np

from gemm_course.emulator import EmulatorError, KernelStopped, LaunchError, Report, UnsupportedKernel, emulate

from .exercise import Refused, nothing_yet

MOST_TURNS = 3_000  # of a loop: the problems here are small, so more means that it does not end


# ---- functions -------------------------------------------------------------------------------------------


def function_of(given: Any, parameters: tuple[str, ...]) -> Callable:
    """The learner's plain function, once it is one that takes as many arguments as ``parameters``."""
    wanted = ", ".join(parameters)
    if hasattr(given, "py_func") or _is_configured(given):
        raise Refused(
            "This is to be an ordinary Python function: leave out `@cuda.jit`. Nothing is launched here."
        )
    if not callable(given):
        raise Refused(f"Hand over the function itself, without calling it; this is {_shown(given)}.")
    _check_parameters(given, len(parameters), wanted)
    return given


def call(function: Callable, *args) -> Any:
    """What the learner's function answers; ``None`` and ``...`` mean that it has not been written yet."""
    try:
        answer = function(*args)
    except Exception as error:
        name = name_of(function)
        asked = f"{name}({', '.join(map(repr, args))})" if _are_short(args) else name
        raise Refused(
            f"`{asked}` stopped with {type(error).__name__}: {error}.", _line_of(error, function)
        ) from None
    if answer is None or answer is Ellipsis:
        raise nothing_yet()
    return answer


def name_of(function: Callable) -> str:
    return getattr(function, "__name__", type(function).__name__)


def whole_number(value: Any, what: str) -> int:
    """``value`` as an int; refused, with what to do about it, where it is none."""
    begin = what[:1].upper() + what[1:]
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer, float, np.floating)):
        raise Refused(f"{begin} is to be a whole number; this is {_shown(value)}.")
    if isinstance(value, (float, np.floating)):
        raise Refused(
            f"{begin} is {value!r}, a float. It is to be a whole number: Python's `/` always gives a float, "
            "`//` divides whole numbers."
        )
    return int(value)


# ---- kernels ---------------------------------------------------------------------------------------------


def nothing_happens(kernel: Any) -> Refused:
    """What to raise when a kernel has touched no array at all: it is the stub, or nobody gets anywhere in "
    "it."""
    if is_stub(kernel):
        return nothing_yet()
    return Refused(
        "The kernel runs, but no thread loads or stores a single element. Does anybody get past the guard?"
    )


def kernel_of(given: Any, parameters: tuple[str, ...]) -> Any:
    """The learner's kernel, once it is a ``cuda.jit`` one that takes as many arguments as ``parameters``."""
    wanted = ", ".join(parameters)
    if given is None or given is Ellipsis:
        raise nothing_yet()
    if _is_configured(given):
        raise Refused("Hand over the kernel without `[blocks, threads]`: the checker launches it itself.")
    if not hasattr(given, "py_func"):
        if inspect.isfunction(given):
            raise Refused(f"`{given.__name__}` is a plain Python function. Put `@cuda.jit` above it.")
        raise Refused(f"A kernel is wanted, a function under `@cuda.jit`; this is {_shown(given)}.")
    _check_parameters(given.py_func, len(parameters), wanted)
    return given


def launch(kernel: Any, grid: tuple, block: tuple, *args, **options) -> Report:
    """Emulate the learner's kernel; what the emulator refuses, or a loop without end, is said as Refused."""
    options.setdefault("step_limit", MOST_TURNS)
    try:
        return emulate(kernel, grid, block, *args, **options)
    except LaunchError as error:
        raise Refused(f"The kernel cannot be launched: {error}.") from None
    except UnsupportedKernel as error:
        raise Refused(_sentence(error.sentence), source_line(error.filename, error.line)) from None
    except KernelStopped as error:
        raise Refused(
            f"The kernel does not come to an end: {error}", _line_of(error, kernel.py_func)
        ) from None
    except EmulatorError as error:
        raise Refused(_sentence(str(error)), _line_of(error, kernel.py_func)) from None
    except Exception as error:
        raise Refused(
            f"The kernel stopped with {type(error).__name__}: {_in_the_learners_words(str(error))}",
            _line_of(error, kernel.py_func),
        ) from None


def is_stub(kernel: Any) -> bool:
    """No element of any array is read or written in the kernel's source."""
    return not any(isinstance(node, ast.Subscript) for node in ast.walk(source_tree(kernel.py_func)))


def source_tree(function: Callable) -> ast.Module:
    """The function's syntax, with the line numbers of its file or notebook cell."""
    lines, start = inspect.getsourcelines(function)
    tree = ast.parse(textwrap.dedent("".join(lines)))
    return ast.increment_lineno(tree, start - 1)


def parameter_names(kernel: Any) -> tuple[str, ...]:
    """The names the learner gave the kernel's arguments: the report's array names."""
    code = kernel.py_func.__code__
    return code.co_varnames[: code.co_argcount]


def line_at(kernel: Any, line: int) -> str:
    """``line 7: `acc += A[row, p]` `` of the learner's file or notebook cell."""
    return source_line(kernel.py_func.__code__.co_filename, line)


def source_line(filename: str, line: int) -> str:
    text = linecache.getline(filename, line).strip()
    return f"Line {line}: `{text}`" if text else f"Line {line}"


def _is_configured(given: Any) -> bool:
    return hasattr(given, "griddim") and hasattr(given, "dispatcher")


def _check_parameters(function: Callable, count: int, wanted: str) -> None:
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        given = ", ".join(inspect.signature(function).parameters)
        raise Refused(f"`{name_of(function)}` is to take ({wanted}); yours takes ({given}).") from None
    except ValueError:  # a builtin without a signature
        pass


def _line_of(error: Exception, function: Callable) -> str:
    """The innermost line of the learner's own file that the error came from."""
    filename = getattr(getattr(function, "__code__", None), "co_filename", None)
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == filename]
    return source_line(filename, own[-1].lineno) if own else ""


STAND_FOR = {"'DeviceArray'": "an array", "'Lanes'": "an integer", "'Unbound'": "a variable without a value"}


def _in_the_learners_words(text: str) -> str:
    for internal, word in STAND_FOR.items():
        text = text.replace(internal, word)
    return _sentence(text)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


def number_shown(value: float) -> str:
    return "NaN" if np.isnan(value) else f"{value:.5g}"


def _are_short(args: tuple) -> bool:
    return all(isinstance(arg, (int, float, str, tuple)) for arg in args)


def _shown(value: Any) -> str:
    text = repr(value)
    return f"`{text}`" if len(text) <= 60 and "\n" not in text else f"a value of type {type(value).__name__}"
