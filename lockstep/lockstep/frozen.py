"""A function with the constants of one moment: when Numba compiles it, it reads the names from outside.

Like :mod:`.without_gpu` it is imported with the package, so it needs nothing but the standard library.
"""

import functools
import sys
import types
from collections.abc import Callable
from contextlib import suppress
from typing import Any

_DEFINED = "_lockstep_as_defined"  # of a dispatcher: its function as it was where it was defined


def frozen(function: Callable) -> Callable:
    """Return a copy of a function for which numbers and arrays outside never change."""
    constants = {name: _constant(value) for name, value in globals_of(function).items()}
    closure = tuple(map(_cell, function.__closure__ or ())) or None
    copy = types.FunctionType(function.__code__, constants, function.__name__, function.__defaults__, closure)
    functools.update_wrapper(copy, function, updated=())
    copy.__dict__["_frozen_from"] = function
    return copy


def original(function: Callable) -> Callable:
    """Return the function itself, of which this is perhaps a copy."""
    return getattr(function, "_frozen_from", function)


def globals_of(function: Callable) -> dict:
    """The globals that a function uses, as they are now."""
    outside = function.__globals__
    return {name: outside[name] for name in _names_in(function.__code__) if name in outside}


def closure_of(function: Callable) -> list:
    """What a function uses of the function around it, as it is now."""
    found = []
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # it has no value yet
            found.append(cell.cell_contents)
    return found


def has_constants(function: Callable) -> bool:
    """Does a function use anything from outside but modules and classes?"""
    used = (*globals_of(function).values(), *closure_of(function))
    return not all(isinstance(value, (types.ModuleType, type)) for value in used)


def freeze_definition(dispatcher: Any, function: Callable | None = None) -> None:
    """Keep the constants of now, or those of ``function``: signatures are compiled where they are defined."""
    if _DEFINED not in vars(dispatcher):
        vars(dispatcher)[_DEFINED] = function or frozen(dispatcher.py_func)


def as_defined(dispatcher: Any) -> Callable | None:
    """The function that :func:`freeze_definition` has kept; None if it has not."""
    return getattr(dispatcher, "__dict__", {}).get(_DEFINED)


@functools.lru_cache(maxsize=1000)
def _names_in(code: types.CodeType) -> frozenset[str]:
    """The global names that code reads; ``co_names`` has attributes too."""
    import dis  # here, for it takes longer than all else that `import lockstep` loads

    here = (found.argval for found in dis.get_instructions(code) if found.opname == "LOAD_GLOBAL")
    inner = (part for part in code.co_consts if isinstance(part, types.CodeType))
    return frozenset(here).union(*map(_names_in, inner))


def _cell(cell: types.CellType) -> types.CellType:
    with suppress(ValueError):
        return types.CellType(_constant(cell.cell_contents))
    return cell


def _constant(value: Any) -> Any:
    """An array is copied; nothing else that a kernel can use ever changes."""
    numpy = sys.modules.get("numpy")
    return value.copy() if numpy and isinstance(value, numpy.ndarray) else value
