"""Finds the values of the names in a kernel: constants from outside, types, intrinsics, other functions."""

import builtins
import cmath
import enum
import inspect
import math
import sys
from functools import cache
from types import CodeType, ModuleType

import numba
import numpy as np
from numba import cuda

from lockstep.errors import LaunchError
from lockstep.frozen import as_defined
from lockstep.library import operators  # noqa: F401 - registers them
from lockstep.library.cuda_api import BUILTINS, CMATH, CUDA, MATH, TYPES, Namespace
from lockstep.library.functions import NUMPY_FUNCTIONS, PARTS_BY_NUMPY
from lockstep.library.signatures import declared, is_record_type
from lockstep.machine.iterables import INDICES
from lockstep.machine.language import same_tuple
from lockstep.machine.reductions import REDUCTIONS
from lockstep.machine.times import as_value, is_no_time
from lockstep.memory.records import ConstantRecords, type_of_records
from lockstep.memory.storage import Constant
from lockstep.registry import Emulation, Type, emulation_of, spelled
from lockstep.values.enums import EnumNumber, Member


class Refused:
    """The value of a name that kernels cannot use. ``sentence`` says why."""

    def __init__(self, sentence: str):
        self.sentence = sentence

    def __str__(self):
        return self.sentence


class Text(Refused):
    """A text from outside a kernel, which a kernel may print, and which may name a field or a dtype."""

    def __init__(self, text: str):
        super().__init__(
            "the emulator supports a text from outside a kernel only in print(), as the dtype of a shared or "
            "local array, and as the name of a record's field"
        )
        self.text = text

    def __str__(self):
        return self.text


def _is_scalar_type(value) -> bool:
    return isinstance(value, np.dtype) or (isinstance(value, type) and issubclass(value, np.generic))


def _scalar_type(value):
    if isinstance(value, np.dtype) and value.names is not None:
        return type_of_records(value)
    name = np.dtype(value).name if _is_scalar_type(value) else value.name
    name = {"bool": "boolean"}.get(name, name)
    return TYPES.get(name) or Refused(f"the emulator does not support the type {name}")


def _types_in(module) -> dict:
    """Return the scalar types of a module under all their names, such as ``f4`` and ``double``."""
    kinds = (numba.types.Number, numba.types.Boolean)
    concrete = set(np.sctypeDict.values())  # Classes such as np.integer stand for several types.
    found = {}
    for name, value in vars(module).items():
        if isinstance(value, kinds) or (isinstance(value, type) and value in concrete):
            found[name] = _scalar_type(value)
    return TYPES | {name: kind for name, kind in found.items() if isinstance(kind, Type)}


_CUDA_TYPES = Namespace("numba.cuda.types", _types_in(cuda.types))
_CUDA = Namespace("numba.cuda", _types_in(cuda) | CUDA | {"types": _CUDA_TYPES})
_TYPES = Namespace("numba.types", _types_in(numba.types))
_NUMBA = Namespace("numba", _types_in(numba) | {"cuda": _CUDA, "types": _TYPES})


def _numpy() -> dict:
    """Return NumPy's names with their values in kernels. Numba has GPU code for only some functions."""
    without = {}
    for name, value in vars(np).items():
        if isinstance(value, np.ufunc):
            instead = {"absolute": "abs", "abs": "abs", "power": "**", "sqrt": "math.sqrt"}.get(name)
            instead = instead or (f"math.{name}" if name in MATH else None)
            hint = f"; use {instead}" if instead else ""
            without[name] = Refused(f"Numba has no code of it for a GPU{hint}")
    constants = {name: MATH[name] for name in ("pi", "e", "inf", "nan")}
    functions = {
        name: Emulation(function, writes=(function.ufunc.nin,)) for name, function in NUMPY_FUNCTIONS.items()
    }
    functions |= {name: Emulation(function) for name, function in PARTS_BY_NUMPY.items()}
    functions |= INDICES | REDUCTIONS
    functions["isnat"] = Emulation(is_no_time)
    ufuncs = {name: value.__name__ for name, value in vars(np).items() if isinstance(value, np.ufunc)}
    aliases = {name: functions[real] for name, real in ufuncs.items() if real in functions}
    return without | _types_in(np) | constants | aliases | functions


_MATH = Namespace("math", MATH)
_CMATH = Namespace("cmath", CMATH)
_NUMPY = Namespace("numpy", _numpy())
spelled({f"np.{name}": value for name, value in _NUMPY.members.items() if isinstance(value, Emulation)})


class Callee:
    """A device function that the kernel calls. ``dispatcher`` is None for a function inside the kernel."""

    kind = "device"

    def __init__(self, function, dispatcher=None, declared=()):
        self.function, self.dispatcher, self.declared = function, dispatcher, declared


def python_function(kernel):
    """Return the plain function of a ``cuda.jit`` kernel, configured or not, or a plain function itself.

    Raises LaunchError for anything that is no Python function.
    """
    kernel = getattr(kernel, "dispatcher", kernel)
    function = getattr(kernel, "py_func", kernel)
    if not hasattr(function, "__code__"):
        raise LaunchError(f"a kernel is a Python function, plain or decorated with @cuda.jit, not {kernel!r}")
    return function


def outside(wanted, function) -> dict:
    """Return the values of the ``wanted`` outside names of a function. Skip names that have no value yet."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    found = {name: function.__globals__[name] for name in wanted if name in function.__globals__}
    for name in cells.keys() & set(wanted):
        try:
            found[name] = cells[name].cell_contents
        except ValueError:  # The variable has no value yet.
            found.pop(name, None)
    return found


def numpy_integers(function) -> frozenset[str]:
    """Return the outside names of a function whose values are NumPy integers, or tuples with one."""
    found = outside(names_of(function.__code__), function)
    return frozenset(name for name, value in found.items() if has_numpy_integer(value))


def has_numpy_integer(value) -> bool:
    """Is it a NumPy integer, or a tuple with one? To Numba such a number from outside is no literal."""
    if isinstance(value, tuple):
        return any(map(has_numpy_integer, value))
    return isinstance(value, np.integer)


def environment(function) -> dict:
    """Return every name that the function does not assign itself, with its value inside a kernel."""
    code = function.__code__
    cells = dict(zip(code.co_freevars, function.__closure__ or ()))
    values = {}
    for name in names_of(code):
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


def parameter_names(function) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)


def visible(function) -> set[str]:
    """Return the names of globals, closure variables and built-ins that a function could use."""
    free = function.__code__.co_freevars
    return {*function.__globals__, *free, *BUILTINS}


def names_of(code: CodeType) -> tuple:
    """Return the names that a function takes from outside, itself or in functions and lambdas inside it."""
    inner = (name for part in code.co_consts if isinstance(part, CodeType) for name in names_of(part))
    outside = (name for name in inner if name not in code.co_cellvars)
    return tuple(dict.fromkeys((*code.co_names, *code.co_freevars, *outside)))


def defaults(signature: inspect.Signature) -> dict:
    """Return the values of the parameters that a call may leave out, by name."""
    parameters = signature.parameters.values()
    given = {p.name: p.default for p in parameters if p.default is not p.empty}
    return {name: None if value is None else meaning(value) for name, value in given.items()}


def meaning(value):
    """Return the value that a Python object has inside a kernel, or a :class:`Refused`."""
    if isinstance(value, Callee):
        return value
    known = emulation_of(value)
    if known is not None:
        return known
    if isinstance(value, type) and issubclass(value, (enum.Enum, tuple)):
        return EnumClass(value) if issubclass(value, enum.Enum) else _named_tuple(value)
    if isinstance(value, str):
        return Text(value)
    if isinstance(value, np.void):
        return Refused("Numba takes no single record from outside a kernel: put it into an array, or pass it")
    if isinstance(value, enum.Enum) and not isinstance(value, enum.IntEnum):
        return _member_of_enum(value)
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return as_value(value)
    if isinstance(value, (bool, int, float, complex, np.generic)):
        return as_number(value)
    if isinstance(value, np.ndarray):
        return _constant(value)
    if isinstance(value, np.ufunc):
        return _NUMPY.members[value.__name__]
    if isinstance(value, tuple):
        parts = [meaning(part) for part in value]
        return next((p for p in parts if isinstance(p, Refused)), same_tuple(value, parts))
    if isinstance(value, ModuleType):
        return _module(value)
    if isinstance(value, (numba.types.Number, numba.types.Boolean)) or _is_scalar_type(value):
        return _scalar_type(value)
    if is_record_type(value):
        return type_of_records(value.dtype)
    if hasattr(value, "py_func"):
        if not hasattr(value, "targetoptions"):
            return Refused(
                f"{value.__name__} is a ufunc, which takes arrays on the host; a kernel calls what has "
                "@cuda.jit(device=True)"
            )
        return _device_function(value)
    path = _CUDA_PATHS.get(id(value))
    if path is not None:
        return _member(_CUDA, path)
    if (
        getattr(value, "__module__", None) == "numba.cuda.libdevice"
    ):  # Numba may load libdevice after this module.
        known = _member(_CUDA, f"libdevice.{value.__name__}")
        return known or Refused("the emulator does not know this function of libdevice")
    if (known := _of_float16(value)) is not None:
        return known
    builtin = getattr(value, "__name__", None)
    if builtin in BUILTINS and value is getattr(builtins, builtin, None):
        return BUILTINS[builtin]
    for space in (_MATH, _CMATH):
        if getattr(value, "__module__", None) == space.name and value.__name__ in space.members:
            return space.members[value.__name__]
    return Refused(_sentence(value))


def _of_float16(value):
    """Return the function of ``numba.cuda.fp16`` that a program has imported, or None for anything else.

    Numba loads that module only when a program asks for it.
    """
    module = sys.modules.get("numba.cuda.fp16")
    if module is None or not str(getattr(value, "__module__", "")).startswith("numba.cuda."):
        return None
    of_module = ((path, path.removeprefix("fp16.")) for path in CUDA if path.startswith("fp16."))
    return next((CUDA[path] for path, name in of_module if vars(module).get(name) is value), None)


def _device_function(dispatcher):
    """Return the callee for a function with ``@cuda.jit``, or with ``@njit`` if it has no signature.

    Numba compiles a function of ``@njit`` again for the GPU, unless its signature has fixed it to the CPU.
    """
    signed = declared(dispatcher)
    if signed and type(dispatcher).__name__ == "CPUDispatcher":
        return Refused("it was compiled for the CPU by its signature; decorate it with @cuda.jit")
    return Callee((as_defined(dispatcher) if signed else None) or dispatcher.py_func, dispatcher, signed)


def _constant(array: np.ndarray):
    """Return the constant that an outside array is in a kernel, or a :class:`Refused` for other dtypes."""
    if array.dtype.names is not None:
        return ConstantRecords(array)
    if array.dtype.kind not in "biufcmM":
        return Refused(
            f"it is an array of {array.dtype}; the emulator supports booleans, integers, floats, complex "
            "numbers, dates and spans of time"
        )
    return Constant(array)


def as_number(value):
    """Turn an int64, float64 or complex128 into a Python number, because Numba types both alike."""
    if isinstance(value, enum.IntEnum):
        return EnumNumber(value.value)
    if type(value) is int and value >= 2**63:
        return np.uint64(value)
    if isinstance(value, np.int64):
        return int(value)
    if isinstance(value, np.complex128):
        return complex(value)
    return float(value) if isinstance(value, np.float64) else value


def _module(module):
    if module.__name__ == "numba":
        return _NUMBA
    if module is cuda or module.__name__ == "numba.cuda":
        return _CUDA
    if module is math:
        return _MATH
    if module is cmath:
        return _CMATH
    if module is np:
        return _NUMPY
    if module.__name__ in ("numba.cuda.libdevice", "numba.cuda.fp16"):
        return _member(_CUDA, module.__name__.rpartition(".")[2])
    if module.__name__.endswith(".types") and module.__name__.startswith("numba"):
        return _NUMBA.members["types"]
    return OtherModule(module)


class OtherModule(Namespace):
    """A module that the emulator has no table for. Its members are looked up when a kernel uses them."""

    def __init__(self, module):
        self.name, self.of = module.__name__, module

    def __str__(self):
        return self.name

    def member(self, name):
        return meaning(getattr(self.of, name)) if hasattr(self.of, name) else None


class EnumClass(OtherModule):
    """An enum, whose members are numbers in a kernel."""

    def __init__(self, kind):
        self.name, self.of = kind.__name__, kind

    def member(self, name):
        member = self.of.__members__.get(name)
        return None if member is None else meaning(member)


def _member_of_enum(member):
    """Return the value in a kernel of a member of an enum that is no IntEnum."""
    kinds = {type(other.value) for other in type(member)}
    if len(kinds) == 1 and issubclass(*kinds, (bool, int, float, complex, np.generic)):
        return Member(type(member), as_number(member.value))
    name = type(member).__name__
    return Refused(
        f"the emulator knows only enums whose values are numbers of one type, and {name} has others"
    )


def _named_tuple(kind):
    """Return the constructor of a class of named tuples, which a kernel may call."""
    if not hasattr(kind, "_fields"):
        return Refused(_sentence(kind))

    def make(machine, *values, **named):
        return kind(*values, **named)

    make.__signature__ = inspect.signature(kind)
    return Emulation(make)


def _paths() -> dict:
    """Map the ids of numba.cuda's objects to their paths, for ``from numba.cuda import syncthreads``."""
    found = {}
    for path in CUDA:
        target = cuda
        for part in path.split("."):
            target = getattr(target, part, None)
        if target is not None and not isinstance(target, (int, float)):
            found[id(target)] = path
    for group in ("shared", "local", "atomic", "const"):
        if hasattr(cuda, group):  # Numba's simulator has these groups only while its kernels run.
            found[id(getattr(cuda, group))] = group
    return found


_CUDA_PATHS = _paths()


@cache
def _member(space: Namespace, path: str):
    if path in space.members:
        return space.members[path]
    prefix = f"{path}."
    rest = {n.removeprefix(prefix): v for n, v in space.members.items() if n.startswith(prefix)}
    return Namespace(f"{space.name}.{path}", rest) if rest else None


def attribute(owner, name: str):
    """Return ``owner.name`` for a module, an enum or an enum's member, or None if there is no such name."""
    if isinstance(owner, (EnumNumber, Member)):
        return owner.value if name == "value" else None
    if isinstance(owner, OtherModule):
        return owner.member(name)
    # A program may use cuda.random without importing it.
    if owner is _CUDA and name == "random" and hasattr(cuda, name):
        return OtherModule(cuda.random)
    return _member(owner, name)


def members(space: Namespace) -> set[str]:
    """Return the names of a module that a kernel can use."""
    if isinstance(space, OtherModule):
        return set(dir(space.of))
    return {name.partition(".")[0] for name in space.members}


def really_has(space: Namespace, name: str) -> bool:
    """Tell whether the real module has this name, whether the emulator knows it or not."""
    if isinstance(space, OtherModule):
        return hasattr(space.of, name)
    root, *path = space.name.removeprefix("numba.").split(".")
    real = {"numba": numba, "cuda": cuda, "types": numba.types, "math": math, "numpy": np}.get(root)
    for part in path:
        real = getattr(real, part, None)
    return real is None or hasattr(real, name)


def _is_overloaded(value) -> bool:
    """Tell whether Numba compiles a function because of ``@overload``, or makes it by ``@intrinsic``."""
    paths = (f"numba.{package}.typing.templates" for package in ("cuda", "core"))
    module = next(filter(None, map(sys.modules.get, paths)), None)
    registry = getattr(module, "builtin_registry", None)
    overloads = getattr(registry, "globals", ())
    return type(value).__name__ == "_Intrinsic" or any(known is value for known, _ in overloads)


def _sentence(value) -> str:
    kind = type(value).__name__
    if isinstance(value, type):
        return (
            f"{value.__name__} is a class, and Numba reads neither classes nor their attributes; make its "
            "constants variables of the module"
        )
    if getattr(value, "__module__", None) == "_operator":
        return "the emulator does not support it"
    if callable(value):
        name = getattr(value, "__name__", kind)
        if _is_overloaded(value):
            return f"the emulator does not support {name}, which Numba has by way of numba.cuda.extending"
        if str(getattr(value, "__module__", "")).startswith("numba."):
            return f"the emulator does not support {name} in a kernel"
        return f"Numba knows no {name} in a kernel; functions of your own have @cuda.jit(device=True)"
    known = "numbers, tuples of numbers, NumPy arrays, types and functions"
    return f"the emulator knows {known} from outside a kernel, not a {kind}"
