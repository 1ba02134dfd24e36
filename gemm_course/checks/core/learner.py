"""Runs what a learner wrote, and turns every way in which it can fail into a sentence with the line."""

import inspect
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from types import FrameType
from typing import Any

import numpy as np

from lockstep import (
    EmulatorError,
    KernelRaised,
    KernelStopped,
    LaunchError,
    RefusedLine,
    Report,
    emulate,
    intrinsics,
)

from .elsewhere import name_given_functions
from .exercise import Refused, nothing_yet
from .source import defined_but_not_returned, is_stub, prints_only
from .written import Written, source_line

# The problems are small, so a loop with more iterations never ends.
MOST_ITERATIONS = 3_000
# One call of a plain function may run this many lines. No exercise needs a tenth of them.
MOST_LINES = 1_000_000

_PLAIN_WORD = re.compile(r"(the|this|there|an|only|a(?! (is|has|takes|calls|was)\b)) ")

# ---- functions -------------------------------------------------------------------------------------------


def function_of(given: Any, parameters: tuple[str, ...]) -> Callable:
    """Return the learner's plain function; refuse it unless it takes as many arguments as ``parameters``."""
    if hasattr(given, "py_func") or _is_configured(given):
        raise Refused("This must be an ordinary Python function: leave out `@cuda.jit`. Nothing is launched.")
    if not callable(given):
        raise Refused(f"Pass the function itself, without calling it; this is {_shown(given)}.")
    _check_parameters(given, parameters)
    return given


def factory_of(given: Any, sizes: tuple[str, ...]) -> Callable:
    """Return the learner's function from sizes to a kernel or device function; refuse the kernel itself."""
    if hasattr(given, "py_func"):
        named = " and ".join(filter(None, (", ".join(sizes[:-1]), sizes[-1])))
        what = "device function" if getattr(given, "targetoptions", {}).get("device") else "kernel"
        raise Refused(
            f"`{given.py_func.__name__}` is the {what} itself. Pass the function around it, which takes "
            f"{named} and returns it."
        )
    return function_of(given, sizes)


def call(function: Callable, *args, read: Callable[[Any], Any] = lambda answer: answer) -> Any:
    """Return what the learner's function answers; refuse ``None`` and ``...``: it has not been written yet.

    read: turns the answer into what is compared. The learner's code may still run then, as in a generator.
    """
    try:
        with _ends(function):
            answer = plain(_drawn(function(*args)))
            if answer is not None and answer is not Ellipsis:
                return read(answer)
    except Refused:
        raise
    except Exception as error:
        name = name_of(function)
        if type(error).__name__ == "CudaSupportError" or "Kernel launch configuration" in str(error):
            raise Refused(
                f"`{name}` launches a kernel by itself. Let it return the kernel, without calling it: the "
                "checker launches it.",
                _line_of(error, function),
            ) from None
        if "cannot be called from host code" in str(error):
            raise Refused(
                f"This line belongs inside the kernel. The rest of `{name}` runs on the host, before any "
                "block exists.",
                _line_of(error, function),
            ) from None
        asked = f"{name}({', '.join(map(repr, args))})" if _are_short(args) else name
        raise Refused(
            f"`{asked}` stopped with {type(error).__name__}: {error}.{_why_not_whole(error)}",
            _line_of(error, function),
        ) from None
    if answer is None and (inner := defined_but_not_returned(function)):
        raise Refused(
            f"`{name_of(function)}` defines `{inner}` and returns nothing. End it with `return {inner}`, "
            "indented as its first line is."
        )
    if answer is None and prints_only(function):
        raise Refused(
            f"`{name_of(function)}` prints, but returns nothing. Did you forget `return`? The checker sees "
            "only what is returned."
        )
    raise nothing_yet()


@contextmanager
def _ends(function: Callable) -> Iterator[None]:
    """Raise Refused when the learner's code has run MOST_LINES lines: it never ends, or counts one by one.

    Does nothing where a debugger or a tracer is at work already.
    """
    filename, lines = getattr(getattr(function, "__code__", None), "co_filename", None), 0

    def count(frame: FrameType, event: str, _: Any):
        nonlocal lines
        if frame.f_code.co_filename != filename:
            return None
        lines += 1
        if lines > MOST_LINES:
            raise Refused(_why_not_done(function), source_line(filename, frame.f_lineno))
        return count

    if filename is None or sys.gettrace() is not None:
        yield
        return
    sys.settrace(count)
    try:
        yield
    finally:
        sys.settrace(None)


def _why_not_done(function: Callable) -> str:
    """Return why a function may have run so long: only a `while` can go on for ever."""
    name = name_of(function)
    if any(not loop.variable for loop in Written(function).loops):
        return (
            f"`{name}` does not come to an end. Does the loop's variable change in each iteration, and can "
            "its condition become false?"
        )
    return (
        f"`{name}` takes too long: it has run {MOST_LINES:,} lines for one answer. The sizes are those of a "
        "real matrix, too large to count one by one. How many are there of each, and what is their product?"
    )


def _why_not_whole(error: Exception) -> str:
    """Return what to do about a float where Python wants a whole number, as in `range`; else ""."""
    if str(error) == "'float' object cannot be interpreted as an integer":
        return " `/` always gives a float; `//` divides whole numbers."
    return ""


def _drawn(answer: Any) -> Any:
    """Return an iterator's items, such as a generator's, as a list, and any other answer as it is."""
    if not isinstance(answer, Iterator):
        return answer
    items = list(islice(answer, MOST_ITERATIONS + 1))
    if len(items) > MOST_ITERATIONS:
        raise Refused(
            f"This never ends: more than {MOST_ITERATIONS:,} items came out of it. Does the loop's variable "
            "grow in each iteration?"
        )
    return items


# Each of these is the type's own conversion, whatever a class that inherits from it has instead.
_PLAIN = (
    (int, int.__int__),
    (float, float.__float__),
    (complex, complex.__complex__),
    (str, str.__str__),
)


def plain(value: Any) -> Any:
    """Return a number, text, list, tuple or dict as Python's own, also within one another.

    A class of the learner's may compare in its own way, and then a comparison with it says nothing. Refuse a
    value of such a class. Arrays, functions and kernels are returned as they are.
    """
    if isinstance(value, (bool, np.generic)):
        return value
    for kind, convert in _PLAIN:
        if isinstance(value, kind):
            return convert(value)
    if isinstance(value, dict):
        return {plain(key): plain(each) for key, each in dict.items(value)}
    if isinstance(value, list):
        return [plain(each) for each in list.__iter__(value)]
    if isinstance(value, tuple):
        return tuple(plain(each) for each in tuple.__iter__(value))
    if type(value).__module__ == "__main__":
        kind = type(value).__name__
        raise Refused(f"Return numbers, or lists and tuples of them; this is a value of your class `{kind}`.")
    return value


def name_of(function: Callable) -> str:
    """Return the function's name, or its type's where it has none."""
    return getattr(function, "__name__", type(function).__name__)


def whole_number(value: Any, what: str) -> int:
    """Return ``value`` as an int; refuse anything else, and say what to do about it."""
    begin = what[:1].upper() + what[1:]
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer, float, np.floating)):
        raise Refused(f"{begin} must be a whole number; this is {_shown(value)}.")
    if isinstance(value, (float, np.floating)):
        raise Refused(
            f"{begin} is {float(value)!r}, a float. It must be a whole number: {_why_float(value)}, `//` "
            "divides whole numbers."
        )
    return int(value)


def _why_float(value: float | np.floating) -> str:
    if isinstance(value, np.floating):
        return "`/` and NumPy's functions, such as `np.ceil`, give floats; `math.ceil` gives a whole number"
    return "Python's `/` always gives a float"


# ---- kernels ---------------------------------------------------------------------------------------------


def nothing_happens(kernel: Any) -> Refused:
    """Return the error for a kernel that touches no array: a stub, or its guard keeps everybody out."""
    if is_stub(kernel):
        return nothing_yet()
    return Refused(
        "The kernel runs, but no thread loads or stores a single element. Does any thread pass the guard?"
    )


def kernel_of(given: Any, parameters: tuple[str, ...]) -> Any:
    """Return the learner's kernel; refuse it unless it is under ``cuda.jit`` and takes as many arguments."""
    if given is None or given is Ellipsis:
        raise nothing_yet()
    if _is_configured(given):
        raise Refused("Pass the kernel without `[blocks, threads]`: the checker launches it itself.")
    if not hasattr(given, "py_func"):
        if inspect.isfunction(given):
            raise Refused(f"`{given.__name__}` is a plain Python function. Put `@cuda.jit` above it.")
        raise Refused(f"A kernel is needed, a function under `@cuda.jit`; this is {_shown(given)}.")
    if type(given).__module__.startswith("numba.core"):
        raise Refused(
            f"`{given.py_func.__name__}` is compiled for the CPU. What runs on the GPU has `@cuda.jit` above "
            "it, not `@njit`."
        )
    _check_parameters(given.py_func, parameters)
    return given


def device_function_of(given: Any, parameters: tuple[str, ...]) -> Any:
    """Return the learner's function under ``cuda.jit(device=True)``; refuse a kernel."""
    if inspect.isfunction(given):
        raise Refused(
            f"`{given.__name__}` is a plain Python function. Put `@cuda.jit(device=True)` above it."
        )
    function = kernel_of(given, parameters)
    if not getattr(function, "targetoptions", {}).get("device"):
        raise Refused(
            f"`{function.py_func.__name__}` is called by the threads of a kernel, not launched: write "
            "`@cuda.jit(device=True)` above it."
        )
    return function


def emulate_kernel(kernel: Any, grid: tuple, block: tuple, *args, own: Any = None, **options) -> Report:
    """Emulate the learner's kernel. Refuse what the emulator refuses, and a loop without end.

    own: the learner's device function, where the kernel around it is the course's.
    """
    written = (own or kernel).py_func
    options.setdefault("step_limit", MOST_ITERATIONS)
    # Where two threads store one element, one of them does the other's work.
    options.setdefault("strict", True)
    try:
        report = emulate(kernel, grid, block, *args, **options)
        name_given_functions(report, kernel, own)
        return report
    except LaunchError as error:
        raise Refused(f"The kernel cannot be launched: {error}.") from None
    except RefusedLine as error:
        message = _sentence(error.sentence) + _import_of(error.sentence) + _instead_of(error.sentence)
        raise Refused(message, source_line(error.filename, error.line)) from None
    except KernelRaised as error:
        raise Refused(f"The kernel raises an error. {error}", _line_of(error, written)) from None
    except KernelStopped as error:
        raise Refused(f"The kernel does not come to an end: {error}", _line_of(error, written)) from None
    except EmulatorError as error:
        raise Refused(_sentence(str(error)), _line_of(error, written)) from None
    except MemoryError as error:
        raise Refused(
            "The kernel needs more memory than this machine has.", _line_of(error, written)
        ) from None


def _is_configured(given: Any) -> bool:
    return hasattr(given, "griddim") and hasattr(given, "dispatcher")


def _check_parameters(function: Callable, parameters: tuple[str, ...]) -> None:
    try:
        inspect.signature(function).bind(*parameters)
    except TypeError:
        given = ", ".join(inspect.signature(function).parameters)
        wanted = ", ".join(parameters)
        raise Refused(f"`{name_of(function)}` must take ({wanted}); yours takes ({given}).") from None
    except ValueError:
        # Some builtins have no signature.
        pass


def _line_of(error: Exception, function: Callable) -> str:
    """Return the innermost line of the learner's own file that the error came from, or "" without one."""
    filename = getattr(getattr(function, "__code__", None), "co_filename", None)
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == filename]
    return source_line(filename, own[-1].lineno) if own else ""


def _import_of(sentence: str) -> str:
    """Return how to import a name that is not defined, if the course's kernels import it; else ""."""
    name = sentence.removeprefix("the name ").partition(" ")[0]
    return f" Import it: `from lockstep.intrinsics import {name}`." if name in intrinsics.__all__ else ""


def _instead_of(sentence: str) -> str:
    """Return what a kernel uses instead of NumPy's product of arrays, if the sentence names one; else ""."""
    return next((f" {advice}" for name, advice in INSTEAD.items() if f"np.{name} " in sentence), "")


_LOOPS = "A kernel computes one number at a time: write the loops."
INSTEAD = dict.fromkeys(("outer", "dot", "matmul", "add.outer", "multiply.outer"), _LOOPS)


def _sentence(text: str) -> str:
    """Return the emulator's message as a sentence; do not capitalise a name at its start, as `cuda.grid`."""
    begun = text[:1].upper() + text[1:] if _PLAIN_WORD.match(text) else text
    return begun if begun.endswith((".", "?", "!")) else f"{begun}."


def number_shown(value: float) -> str:
    """Return a number as messages show it: five digits, or NaN."""
    return "NaN" if np.isnan(value) else f"{value:.5g}"


def _are_short(args: tuple) -> bool:
    return all(isinstance(arg, (int, float, str, tuple)) for arg in args)


def _shown(value: Any) -> str:
    text = repr(value)
    return f"`{text}`" if len(text) <= 60 and "\n" not in text else f"a value of type {type(value).__name__}"
