"""Kernels and device functions as they were compiled: Numba reads the names from outside them only once.

A constant that changes afterwards has its old value in the kernel, until the function is defined again.
A kernel is compiled for each combination of types that it is launched with. The emulator keeps one version of
a device function; Numba would compile it again for arguments of other types.
"""

import functools
import types
from contextlib import suppress

import numpy as np

from .dtypes import dtype_of
from .memory import layout_of

_ATTRIBUTE = "_emulator_compiled"  # of a dispatcher: types of arguments -> function


def function_of(dispatcher, key=()):
    """The plain function: as it was compiled for these types, or as it is now."""
    return vars(dispatcher).get(_ATTRIBUTE, {}).get(key, dispatcher.py_func)


def keep(dispatcher, key=()):
    """Note that a function has been compiled: its constants are what they are now."""
    if hasattr(dispatcher, "__dict__"):
        kept = vars(dispatcher).setdefault(_ATTRIBUTE, {})
        if key not in kept:
            kept[key] = _copy(dispatcher.py_func)


def key_of(args) -> tuple:
    """Equal for arguments of the same types."""
    return tuple(map(_type_of, args))


def _type_of(value):
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim, layout_of(value), value.flags.writeable
    if isinstance(value, tuple):
        return type(value), key_of(value)
    return dtype_of(value) or type(value)


def _copy(function):
    """A copy for which numbers and arrays outside never change."""
    outside = function.__globals__
    constants = {name: _constant(outside[name]) for name in _names_in(function.__code__) if name in outside}
    closure = tuple(map(_cell, function.__closure__ or ())) or None
    copy = types.FunctionType(function.__code__, constants, function.__name__, function.__defaults__, closure)
    return functools.update_wrapper(copy, function, updated=())


def _names_in(code: types.CodeType) -> set:
    inner = (part for part in code.co_consts if isinstance(part, types.CodeType))
    return set(code.co_names).union(*map(_names_in, inner))


def _cell(cell):
    with suppress(ValueError):  # of a name that has no value yet
        return types.CellType(_constant(cell.cell_contents))
    return cell


def _constant(value):
    return value.copy() if isinstance(value, np.ndarray) else value
