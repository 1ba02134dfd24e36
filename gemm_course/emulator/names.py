"""What the names in a kernel stand for: constants of its closure, types, intrinsics, other functions."""

import builtins
import math
from types import ModuleType

import numba
import numpy as np
from numba import cuda

from .cuda_api import BUILTINS, CUDA, MATH, TYPES, Namespace
from .errors import LaunchError
from .registry import emulation_of

_CUDA = Namespace("numba.cuda", CUDA | TYPES | {"types": Namespace("numba.cuda.types", TYPES)})
_NUMBA = Namespace("numba", TYPES | {"cuda": _CUDA, "types": Namespace("numba.types", TYPES)})
_MATH = Namespace("math", MATH)
_NUMPY = Namespace("numpy", TYPES | {name: MATH[name] for name in ("pi", "e", "inf", "nan", "sqrt", "exp")})


class Refused:
    """A name that kernels cannot use."""

    def __init__(self, sentence: str):
        self.sentence = sentence


class Callee:
    """A function that the kernel calls: a device function."""

    kind = "device"

    def __init__(self, function):
        self.function = function


def python_function(kernel):
    """The plain function of a ``cuda.jit`` kernel, of a configured one, or of a plain function itself."""
    kernel = getattr(kernel, "dispatcher", kernel)
    function = getattr(kernel, "py_func", kernel)
    if not hasattr(function, "__code__"):
        raise LaunchError(f"a kernel is a Python function, plain or decorated with @cuda.jit, not {kernel!r}")
    return function


def environment(function) -> dict:
    """Every name that the function does not assign itself, with what it stands for."""
    code = function.__code__
    cells = dict(zip(code.co_freevars, function.__closure__ or ()))
    values = {}
    for name in (*code.co_names, *code.co_freevars):
        if name in cells:
            try:
                values[name] = meaning(cells[name].cell_contents)
            except ValueError:
                values[name] = Refused("it has no value yet")
        elif name in function.__globals__:
            values[name] = meaning(function.__globals__[name])
        elif name in BUILTINS:
            values[name] = BUILTINS[name]
        elif hasattr(builtins, name):
            values[name] = Refused("it is one of the Python built-ins that the emulator does not support")
    return values


def meaning(value):
    """What a Python object stands for inside a kernel."""
    known = emulation_of(value)
    if known is not None:
        return known
    if isinstance(value, (bool, int, float, np.generic)):
        return as_number(value)
    if isinstance(value, tuple):
        parts = tuple(meaning(part) for part in value)
        return next((p for p in parts if isinstance(p, Refused)), parts)
    if isinstance(value, ModuleType):
        return _module(value)
    if isinstance(value, (numba.types.Number, numba.types.Boolean)) or _is_scalar_type(value):
        return _scalar_type(value)
    if hasattr(value, "py_func"):
        return Callee(value.py_func)
    path = _CUDA_PATHS.get(id(value))
    if path is not None:
        return _member(_CUDA, path)
    builtin = getattr(value, "__name__", None)
    if builtin in BUILTINS and value is getattr(builtins, builtin, None):
        return BUILTINS[builtin]
    if getattr(value, "__module__", None) == "math" and value.__name__ in MATH:
        return MATH[value.__name__]
    return Refused(_sentence(value))


def as_number(value):
    """Numba types int64 and float64 like Python's own numbers, so they become those."""
    if isinstance(value, np.int64):
        return int(value)
    return float(value) if isinstance(value, np.float64) else value


def _module(module):
    if module.__name__ == "numba":
        return _NUMBA
    if module is cuda or module.__name__ == "numba.cuda":
        return _CUDA
    if module is math:
        return _MATH
    if module is np:
        return _NUMPY
    if module.__name__.endswith(".types") and module.__name__.startswith("numba"):
        return _NUMBA.members["types"]
    return _OtherModule(module)


class _OtherModule(Namespace):
    """Any other module; its members are looked up when a kernel uses them."""

    def __init__(self, module):
        self.name, self.module = module.__name__, module

    def member(self, name):
        return meaning(getattr(self.module, name)) if hasattr(self.module, name) else None


def _is_scalar_type(value) -> bool:
    return isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic))


def _scalar_type(value):
    name = np.dtype(value).name if _is_scalar_type(value) else value.name
    name = {"bool": "boolean"}.get(name, name)
    return TYPES.get(name) or Refused(f"the emulator does not support the type {name}")


def _paths() -> dict:
    """numba.cuda's own objects, for ``from numba.cuda import syncthreads``."""
    found = {}
    for path in CUDA:
        target = cuda
        for part in path.split("."):
            target = getattr(target, part, None)
        if target is not None and not isinstance(target, (int, float)):
            found[id(target)] = path
    for group in ("shared", "local", "atomic"):
        found[id(getattr(cuda, group))] = group
    return found


_CUDA_PATHS = _paths()


def _member(space: Namespace, path: str):
    if path in space.members:
        return space.members[path]
    prefix = f"{path}."
    rest = {n.removeprefix(prefix): v for n, v in space.members.items() if n.startswith(prefix)}
    return Namespace(f"{space.name}.{path}", rest) if rest else None


def attribute(owner, name: str):
    """``owner.name`` for a module-like owner; None if there is no such member."""
    if isinstance(owner, _OtherModule):
        return owner.member(name)
    return _member(owner, name)


def _sentence(value) -> str:
    kind = type(value).__name__
    if callable(value):
        name = getattr(value, "__name__", kind)
        return (
            f"{name} is a Python function; "
            "a kernel can only call functions decorated with @cuda.jit(device=True), and intrinsics"
        )
    return f"a kernel can use numbers, tuples of numbers, types and functions from outside, not a {kind}"
