"""Makes copies of functions that keep the constants of one moment.

Numba reads the names that a function takes from outside once, when it compiles the function. A frozen copy
keeps the values that these names have at that moment, as compiled code does.

Like :mod:`.without_gpu` this module is imported with the package, so it needs only the standard library.
"""

import functools
import sys
import types
from collections.abc import Callable
from contextlib import suppress
from typing import Any

# A dispatcher keeps its function as it was defined in this attribute.
_DEFINED = "_lockstep_as_defined"


def frozen(function: Callable) -> Callable:
    """Return a copy of a function that keeps the present values of the numbers and arrays outside it."""
    constants = {name: _constant(value) for name, value in globals_of(function).items()}
    closure = tuple(map(_cell, function.__closure__ or ())) or None
    copy = types.FunctionType(function.__code__, constants, function.__name__, function.__defaults__, closure)
    functools.update_wrapper(copy, function, updated=())
    copy.__dict__["_frozen_from"] = function
    return copy


def original(function: Callable) -> Callable:
    """Return the function that :func:`frozen` copied, or the function itself if it is not a copy."""
    return getattr(function, "_frozen_from", function)


def globals_of(function: Callable) -> dict:
    """Return the globals that a function uses, with their present values."""
    outside = function.__globals__
    return {name: outside[name] for name in _names_in(function.__code__) if name in outside}


def closure_of(function: Callable) -> list:
    """Return the present values of the variables that a function takes from the function around it."""
    found = []
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # The variable has no value yet.
            found.append(cell.cell_contents)
    return found


def has_constants(function: Callable) -> bool:
    """Tell whether a function uses anything from outside other than modules and classes."""
    used = (*globals_of(function).values(), *closure_of(function))
    return not all(isinstance(value, (types.ModuleType, type)) for value in used)


def freeze_definition(dispatcher: Any, function: Callable | None = None) -> None:
    """Remember a dispatcher's function with its present constants, or ``function`` instead if given.

    Numba compiles a kernel with a signature where it is defined, so it reads the constants there.
    """
    if _DEFINED not in vars(dispatcher):
        vars(dispatcher)[_DEFINED] = function or _knowing_itself(frozen(dispatcher.py_func), dispatcher)


def _knowing_itself(function: Callable, dispatcher: Any) -> Callable:
    """Bind a frozen function's own name, which has no value yet where a signature has it compiled at once."""
    if function.__name__ in _names_in(function.__code__):
        function.__globals__.setdefault(function.__name__, dispatcher)
    return function


def as_defined(dispatcher: Any) -> Callable | None:
    """Return the function that :func:`freeze_definition` remembered, or None."""
    return getattr(dispatcher, "__dict__", {}).get(_DEFINED)


@functools.lru_cache(maxsize=1000)
def _names_in(code: types.CodeType) -> frozenset[str]:
    """Return the global names that code reads. ``co_names`` has the names of attributes too."""
    import dis  # Importing dis takes longer than everything else in `import lockstep`.

    here = (found.argval for found in dis.get_instructions(code) if found.opname == "LOAD_GLOBAL")
    inner = (part for part in code.co_consts if isinstance(part, types.CodeType))
    return frozenset(here).union(*map(_names_in, inner))


def _cell(cell: types.CellType) -> types.CellType:
    with suppress(ValueError):
        return types.CellType(_constant(cell.cell_contents))
    return cell


def _constant(value: Any) -> Any:
    """Return a copy of an array, and any other value itself, because a kernel's other values never change."""
    numpy = sys.modules.get("numpy")
    return value.copy() if numpy and isinstance(value, numpy.ndarray) else value
