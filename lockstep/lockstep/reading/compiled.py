"""Kernels and device functions as they were compiled: Numba reads the names from outside them only once.

A constant that changes afterwards has its old value in the kernel, until the function is defined again.
Kernels and device functions are compiled for each combination of types that they are called with, so each
combination keeps the constants of its first launch; with signatures, those of the function's definition.
"""

import numpy as np

from lockstep.frozen import as_defined, closure_of, frozen, globals_of
from lockstep.memory.storage import layout_of
from lockstep.values.dtypes import dtype_of

_ATTRIBUTE = "_emulator_compiled"  # of a dispatcher: types of arguments -> function


def function_of(dispatcher, key, signed):
    """A kernel's function: as it was compiled for these types, or as it is now."""
    if signed:
        return as_defined(dispatcher) or dispatcher.py_func
    return _kept(dispatcher).get(key, dispatcher.py_func)


def changed(dispatcher) -> dict:
    """Types of arguments -> the function compiled for them, where its constants are not those of now."""
    now, same, found = dispatcher.py_func, {}, {}
    for key, function in _kept(dispatcher).items():
        if id(function) not in same:
            same[id(function)] = _alike(function, now)
        if not same[id(function)]:
            found[key] = function
    return found


def keep(dispatcher, keys):
    """Note that a function has been compiled for these types: its constants are what they are now."""
    new = keys - _kept(dispatcher).keys()
    if new and hasattr(dispatcher, "__dict__"):
        copy = frozen(dispatcher.py_func)
        vars(dispatcher).setdefault(_ATTRIBUTE, {}).update(dict.fromkeys(new, copy))


def key_of(args) -> tuple:
    """Equal for arguments of the same types."""
    return tuple(map(_type_of, args))


def _kept(dispatcher) -> dict:
    return getattr(dispatcher, "__dict__", {}).get(_ATTRIBUTE, {})


def _type_of(value):
    if isinstance(value, np.ndarray):
        return value.dtype, value.ndim, layout_of(value), value.flags.writeable
    if isinstance(value, tuple):
        return type(value), key_of(value)
    return dtype_of(value) or type(value)


def _alike(one, other) -> bool:
    """Have two copies of a function the same constants?"""
    a, b = globals_of(one), globals_of(other)
    values = [(a.get(name), b.get(name)) for name in a.keys() | b.keys()]
    inside = closure_of(one), closure_of(other)
    return len(inside[0]) == len(inside[1]) and all(_equal(*pair) for pair in (*values, *zip(*inside)))


def _equal(a, b) -> bool:
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return (a.dtype, a.shape) == (b.dtype, b.shape) and a.tobytes() == b.tobytes()
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    return isinstance(a, (int, float, complex, np.generic)) and repr(a) == repr(b)
