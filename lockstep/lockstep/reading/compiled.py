"""Remembers kernels and device functions with the constants that Numba compiled into them.

Numba reads the outside names of a function only once, when it compiles the function. A constant that changes
afterwards has its old value in the kernel, until the function is defined again. Numba compiles a function for
each combination of types that it is called with, so each combination keeps the constants of its first launch.
A function with signatures is compiled where it is defined, and keeps the constants of that moment.
"""

import numpy as np

from lockstep.frozen import as_defined, closure_of, frozen, globals_of
from lockstep.memory.storage import layout_of
from lockstep.values.dtypes import dtype_of

# A dispatcher keeps its compiled functions in this attribute, by the types of their arguments.
_ATTRIBUTE = "_emulator_compiled"


def function_of(dispatcher, key, signed):
    """Return a kernel's function as it was compiled for the types ``key``, or as it is now if it was not.

    ``signed``: whether the kernel has signatures, and so was compiled where it is defined.
    """
    if signed:
        return as_defined(dispatcher) or dispatcher.py_func
    return _kept(dispatcher).get(key, dispatcher.py_func)


def changed(dispatcher) -> dict:
    """Return the compiled functions whose constants have changed since: types of arguments -> function."""
    now, same, found = dispatcher.py_func, {}, {}
    for key, function in _kept(dispatcher).items():
        if id(function) not in same:
            same[id(function)] = _alike(function, now)
        if not same[id(function)]:
            found[key] = function
    return found


def keep(dispatcher, keys):
    """Record that a function was compiled for the types in ``keys``, with its present constants."""
    new = keys - _kept(dispatcher).keys()
    if new and hasattr(dispatcher, "__dict__"):
        copy = frozen(dispatcher.py_func)
        vars(dispatcher).setdefault(_ATTRIBUTE, {}).update(dict.fromkeys(new, copy))


def key_of(args) -> tuple:
    """Return a key that is equal for arguments of the same types."""
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
    """Tell whether two copies of a function have the same constants."""
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
