"""Lists the functions of numba.cuda, Python, math and cmath that kernels may call, with their emulations."""

import math
from contextlib import suppress
from functools import wraps

import numpy as np

from lockstep.errors import KernelTypeError
from lockstep.machine.arithmetic import CONSTANTS, require_real
from lockstep.machine.barriers import GRID
from lockstep.machine.iterables import ITERABLES
from lockstep.machine.words import kind_of
from lockstep.memory.records import RecordArray
from lockstep.memory.storage import ARRAYS
from lockstep.registry import Emulation, Type, spelled
from lockstep.values.dtypes import BOOL, FLOAT16, FLOAT64, INT64, TIMES, dtype_of
from lockstep.values.fused import multiply_add
from lockstep.values.geometry import Coordinates
from lockstep.values.lanes import Lanes
from lockstep.values.vectors import Vector

from .cache_hints import CACHE_HINTS
from .functions import CMATH_FUNCTIONS, CUDA_FUNCTIONS, MATH_FUNCTIONS, PYTHON_FUNCTIONS, Function
from .libdevice import LIBDEVICE
from .warp_calls import WARP_CALLS


class Conversion(Type):
    """Python's type ``int`` or ``float``. A number whose kind is in ``kept`` passes a call unchanged."""

    def __init__(self, dtype, kept):
        super().__init__(dtype)
        self.kept = kept

    def __call__(self, machine, value, /):
        dtype = dtype_of(value)
        if dtype is not None and dtype.kind in self.kept:
            return value
        if dtype == BOOL and self.dtype.kind == "f":
            raise KernelTypeError(
                "Numba has no float() of a boolean; write 1.0 if the condition holds, else 0.0"
            )
        return super().__call__(machine, value)


class Truth(Type):
    """The type ``bool``, which a kernel may call with None and tuples too."""

    def __call__(self, machine, value, /):
        if value is None or isinstance(value, tuple):
            return machine.truth(value)
        return super().__call__(machine, value)


class VectorType:
    """A vector type such as ``float32x4``, of up to four numbers named x, y, z and w."""

    elementwise, reads, writes, kind, words = True, (), (), "type", "a vector type"

    def __init__(self, dtype, length):
        self.dtype, self.length = np.dtype(dtype), length

    def __call__(self, machine, *values):
        parts = [part for v in values for part in (v.parts if isinstance(v, Vector) else (v,))]
        if len(parts) != self.length:
            raise KernelTypeError(f"a vector of {self.length} numbers cannot be made from {len(parts)}")
        return Vector(tuple(machine.cast(self.dtype, part) for part in parts))


class Special:
    """A name whose value is a part of the running machine, such as ``threadIdx``."""

    def __init__(self, code: str):
        self.code = code


class Namespace:
    """A module as kernels see it: a mapping from names to emulations."""

    def __init__(self, name: str, members: dict):
        self.name, self.members = name, members


def _of_site(function, **effects):
    @wraps(function)
    def at_site(machine, *args, **kw):
        return function(machine, machine.site, *args, **kw)

    return Emulation(at_site, **effects)


# ---- numba.cuda ----


def _grid(machine, ndim):
    _require_dimensions("grid", ndim)
    axes = []
    for axis in "xyz"[:ndim]:
        block = getattr(machine.chunk.block_index, axis)
        width = machine.block["xyz".index(axis)]
        start = machine.mul(None, machine.cast(INT64, block), width)
        axes.append(machine.add(None, start, getattr(machine.chunk.thread_index, axis)))
    return axes[0] if ndim == 1 else tuple(axes)


def _gridsize(machine, ndim):
    _require_dimensions("gridsize", ndim)
    sizes = tuple(g * b for g, b in zip(machine.grid, machine.block))[:ndim]
    return sizes[0] if ndim == 1 else sizes


def _require_dimensions(name, ndim):
    if type(ndim) is not int or ndim not in (1, 2, 3):
        shown = ndim if isinstance(ndim, (int, float)) else kind_of(ndim)
        raise KernelTypeError(f"cuda.{name}() takes the number 1, 2 or 3, not {shown}")


def _dtype(kind) -> np.dtype:
    if kind in PYTHON_TYPES:
        raise KernelTypeError(
            "Numba takes none of Python's int, float and bool as the dtype of an array: write int64, float64 "
            "or boolean, from numba or numpy"
        )
    if isinstance(kind, Type):
        if kind.dtype.kind in TIMES:
            raise KernelTypeError(f"Numba makes no shared or local arrays of {kind.dtype}: use int64")
        return kind.dtype
    with suppress(TypeError):  # A dtype may be given as "float32", or as NumPy's "f4".
        if isinstance(kind, str) and np.dtype(kind).name in TYPES:
            return TYPES[np.dtype(kind).name].dtype
    shown = f", and {kind!r} is none" if isinstance(kind, str) else ""
    raise KernelTypeError(f"an array's dtype must be a type such as float32 or boolean{shown}")


UINT32 = np.dtype(np.uint32)
# Numba accepts no alignment smaller than the bytes of a pointer.
_POINTER = 8


def _array(allocate):
    def declare(machine, site, shape, dtype, alignment=None):
        fits = type(alignment) is int and alignment >= _POINTER and not alignment & (alignment - 1)
        if alignment is not None and not fits:
            shown = alignment if isinstance(alignment, (int, float)) else kind_of(alignment)
            raise KernelTypeError(
                f"the alignment of an array must be a power of two and at least {_POINTER}, not {shown}"
            )
        return getattr(machine, allocate)(site, shape, _dtype(dtype), alignment)

    return _of_site(declare, elementwise=False, kind=allocate)


def _atomic(name):
    def operation(machine, site, array, index, value):
        _require_numbers(f"cuda.atomic.{name}", value)
        return machine.atomic(site, name, array, index, value)

    return _of_site(operation, reads=(0,), writes=(0,), elementwise=False)


def _require_numbers(name, *values):
    for value in values:
        if dtype_of(value) is None:
            raise KernelTypeError(f"{name}() takes numbers, not {kind_of(value)}")


def _compare_and_swap(machine, site, array, index, expected, value):
    _require_numbers("cuda.atomic.cas", expected, value)
    return machine.atomic(site, "cas", array, index, value, expected)


def _swap_first(machine, site, array, expected, value):
    """Emulate ``compare_and_swap``, which takes the first element of an array of one dimension."""
    if getattr(array, "ndim", 1) != 1:
        raise KernelTypeError("cuda.atomic.compare_and_swap takes an array of one dimension")
    _require_numbers("cuda.atomic.compare_and_swap", expected, value)
    return machine.atomic(site, "cas", array, 0, value, expected)


def _syncthreads_vote(name, combine):
    def vote(machine, site, predicate):
        dtype = dtype_of(predicate)
        if dtype is None or dtype.kind not in "iu":
            raise KernelTypeError(
                f"cuda.{name}() takes an integer, not {machine.kind_of(predicate)}: pass int(...)"
            )
        return machine.barrier_vote(site, machine.truth(predicate), combine)

    return _of_site(vote, elementwise=False, kind="barrier")


def _lower_lanes(machine):
    """Return, for each lane, the bits of the lanes with lower numbers in its warp."""
    lane = machine.chunk.geometry.lane.pattern
    return Lanes(lane.derive("lt", lambda: (1 << lane.array) - 1), 0, UINT32)


def _fma(machine, site, x, y, z):
    """Emulate ``cuda.fma``, which takes floats of one type. Numba casts all other numbers to float64."""
    kinds = [require_real(dtype_of(number) or BOOL, "cuda.fma()") for number in (x, y, z)]
    if len(set(kinds)) > 1 or kinds[0].kind in "biu":
        x, y, z = (machine.cast(FLOAT64, number) for number in (x, y, z))
    return _FUSED(machine, x, y, z)


_FUSED = Function("cuda.fma", "e:eee f:fff d:ddd", multiply_add, "fma")


def _select(machine, condition, a, b):
    """Emulate ``cuda.selp``. It is a single instruction that casts nothing, so other types are refused."""
    test, one, other = (dtype_of(value) for value in (condition, a, b))
    if (
        test is not BOOL
        or one is None
        or one != other
        or one == FLOAT16
        or one.itemsize == 1
        or one.kind == "c"
    ):
        raise KernelTypeError(
            "cuda.selp() takes a condition and two numbers of one type (none of 8 bits, no float16), not "
            + ", ".join(map(machine.kind_of, (condition, a, b)))
        )
    return machine.select(condition, lambda: a, lambda: b)


def _constant(machine, ndarray):
    """Emulate ``cuda.const.array_like``. Numba puts all outside arrays into constant memory anyway."""
    if not isinstance(ndarray, (*ARRAYS, RecordArray)):
        raise KernelTypeError(f"cuda.const.array_like() takes a NumPy array, not {kind_of(ndarray)}")
    return ndarray


def _sleep(machine, nanoseconds):
    """Emulate ``cuda.nanosleep``, which takes no time here."""
    dtype = dtype_of(nanoseconds)
    if dtype is None or dtype.kind == "c":
        raise KernelTypeError(f"cuda.nanosleep() takes a number of nanoseconds, not {kind_of(nanoseconds)}")


_SPECIALS = {
    "threadIdx": "_M.chunk.thread_index",
    "blockIdx": "_M.chunk.block_index",
    "blockDim": "_M.block_dim",
    "gridDim": "_M.grid_dim",
    "laneid": "_M.chunk.geometry.lane",
}

_BARRIER = {"elementwise": False, "kind": "barrier"}
_ATOMICS = ("add", "sub", "max", "min", "nanmax", "nanmin", "and_", "or_", "xor", "exch", "inc", "dec")

CUDA = {
    **CACHE_HINTS,
    **WARP_CALLS,
    "grid": Emulation(_grid, kind="dimensions"),
    "gridsize": Emulation(_gridsize, kind="dimensions"),
    "warpsize": np.int32(32),
    "shared.array": _array("shared_array"),
    "local.array": _array("local_array"),
    "syncthreads": _of_site(lambda machine, site: machine.barrier(site), **_BARRIER),
    "syncthreads_count": _syncthreads_vote(
        "syncthreads_count", lambda true, there: true.sum(axis=-1, dtype=np.int64, keepdims=True)
    ),
    "syncthreads_and": _syncthreads_vote(
        "syncthreads_and", lambda true, there: (true == there).all(axis=-1, keepdims=True)
    ),
    "syncthreads_or": _syncthreads_vote(
        "syncthreads_or", lambda true, there: true.any(axis=-1, keepdims=True)
    ),
    "threadfence": Emulation(lambda machine: machine.fence(), elementwise=False),
    "threadfence_block": Emulation(lambda machine: machine.fence(wide=False), elementwise=False),
    "threadfence_system": Emulation(lambda machine: machine.fence(), elementwise=False),
    "cg.this_grid": Emulation(lambda machine: GRID, elementwise=False, meets_grid=True),
    "lanemask_lt": Emulation(_lower_lanes),
    "nanosleep": Emulation(_sleep, elementwise=False),
    "fma": _of_site(_fma),
    "selp": Emulation(_select),
    "atomic.compare_and_swap": _of_site(_swap_first, reads=(0,), writes=(0,), elementwise=False),
    "atomic.cas": _of_site(_compare_and_swap, reads=(0,), writes=(0,), elementwise=False),
    "const.array_like": Emulation(_constant),
    **{name: Special(code) for name, code in _SPECIALS.items()},
    **{f"atomic.{name}": _atomic(name) for name in _ATOMICS},
    **{name: Emulation(function) for name, function in (CUDA_FUNCTIONS | LIBDEVICE).items()},
}

_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_VECTORS = {f"{name}x": name for name in (*_INTEGERS, "float32", "float64")}
_C_NAMES = {"char": np.int8, "short": np.int16, "int": np.int32, "long": np.int64, "longlong": np.longlong}
_C_NAMES |= {f"u{name}": np.dtype(f"u{np.dtype(kind).name}") for name, kind in _C_NAMES.items()}
_VECTORS |= _C_NAMES | {"float": "float32", "double": "float64"}
CUDA |= {f"{name}{n}": VectorType(dtype, n) for name, dtype in _VECTORS.items() for n in (1, 2, 3, 4)}

# ---- types, under the names of numba, numba.types and NumPy ----

_FLOATS = ("float16", "float32", "float64", "complex64", "complex128")
TYPES = {name: Type(name) for name in (*_INTEGERS, *_FLOATS)}
TYPES |= {"boolean": Type(BOOL), "bool_": Type(BOOL), "intp": Type(INT64), "uintp": Type(np.uint64)}

# ---- Python ----


def _extreme(name):
    def extreme(machine, site, *values):
        short = name[:3]
        if len(values) == 1 and isinstance(values[0], ARRAYS):
            raise KernelTypeError(f"the emulator does not support {short}() of an array: write a loop")
        single = len(values) == 1 and not isinstance(values[0], tuple)
        values = values[0] if len(values) == 1 and not single else values
        if single or not values:
            raise KernelTypeError(f"{short}() needs two or more values, or a tuple that is not empty")
        if len({dtype_of(value) is BOOL for value in values}) > 1:
            raise KernelTypeError(
                f"Numba has no {short}() of a boolean and a number: convert it, as in int(...)"
            )
        result = values[0]
        for value in values[1:]:
            result = getattr(machine, name)(site, result, value)
        return result

    return _of_site(extreme)


def _slice(*bounds) -> slice:
    for bound in bounds:
        if bound is not None and (dtype_of(bound) or BOOL).kind not in "iu":
            raise KernelTypeError(f"slice() takes integers and None, not {kind_of(bound)}")
    return slice(*bounds)


def _sum(machine, site, values, start=0):
    if isinstance(values, ARRAYS):
        raise KernelTypeError(
            "the emulator does not support sum() of an array: add up its elements in a loop"
        )
    if not isinstance(values, tuple) or not values:
        shown = "an empty one" if values == () else machine.kind_of(values)
        raise KernelTypeError(f"sum() needs a tuple of numbers, not {shown}")
    for value in values:
        start = machine.add(site, start, value)
    return start


_PRINTED_LANES = 64


def _printed(machine, value, where) -> str:
    """Return the text that one lane prints for a value, in the format of a GPU."""
    if isinstance(value, str):
        return value
    if hasattr(value, "_fields") or isinstance(value, Type):
        raise KernelTypeError(f"a kernel prints numbers, text and plain tuples, not {machine.kind_of(value)}")
    if isinstance(value, tuple):
        parts = [_printed(machine, part, where) for part in value]
        return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
    if isinstance(value, Coordinates):
        return _printed(machine, (value.x, value.y, value.z), where)
    if dtype_of(value) is None:
        raise KernelTypeError(f"a kernel prints numbers and text, not {machine.kind_of(value)}")
    if dtype_of(value).kind in TIMES:
        raise KernelTypeError(f"Numba's print() on a GPU knows no {dtype_of(value)}")
    if dtype_of(value).kind == "c":
        raise KernelTypeError("Numba's print() on a GPU knows no complex numbers: print z.real and z.imag")
    number = machine.plain(value)
    number = np.broadcast_to(number, machine.chunk.geometry.shape)[where] if np.ndim(number) else number
    return f"{number:f}" if isinstance(number, (float, np.floating)) else str(number)


def _print(machine, *values):
    """Print a line for each active lane, up to 64 lines, and then the number of further threads."""
    shape = machine.chunk.geometry.shape
    active = np.broadcast_to(True if machine.unit.mask.array is None else machine.unit.mask.array, shape)
    chosen = list(zip(*active.nonzero()))
    for where in chosen[:_PRINTED_LANES]:
        machine.printed.append(" ".join(_printed(machine, value, where) for value in values))
    if len(chosen) > _PRINTED_LANES:
        machine.printed.append(f"... and {len(chosen) - _PRINTED_LANES} more threads")


BUILTINS = {
    "min": _extreme("minimum"),
    "max": _extreme("maximum"),
    "abs": _of_site(lambda machine, site, value: machine.absolute(site, value)),
    "len": Emulation(lambda machine, value: machine.length(value)),
    "int": Conversion(INT64, "iu"),
    "float": Conversion(np.float64, "f"),
    "bool": Truth(BOOL),
    "complex": Emulation(lambda machine, real, imag=None, /: machine.complex_of(real, imag)),
    "pow": _of_site(lambda machine, site, a, b: machine.pow(site, a, b)),
    "print": Emulation(_print, elementwise=False),
    "range": Emulation(lambda machine, *bounds: machine.range_of(*bounds), kind="range"),
    "slice": Emulation(lambda machine, *bounds: _slice(*bounds), kind="slice"),
    "sum": _of_site(_sum),
    **{name: Emulation(function) for name, function in PYTHON_FUNCTIONS.items()},
    **ITERABLES,
}

PYTHON_TYPES = tuple(BUILTINS[name] for name in ("int", "float", "bool"))

MATH = {name: Emulation(function) for name, function in MATH_FUNCTIONS.items()} | CONSTANTS

CMATH = {name: Emulation(function) for name, function in CMATH_FUNCTIONS.items()} | CONSTANTS
CMATH |= {"infj": complex(0, math.inf), "nanj": complex(0, math.nan)}

SAME_FOR_ALL = (CUDA["blockDim"], CUDA["gridDim"])
_LANEWISE = {id(function) for functions in (BUILTINS, MATH, CMATH, TYPES) for function in functions.values()}


def is_lanewise(callee) -> bool:
    """Tell whether each lane's result depends on the lane's arguments alone, not on the thread's index."""
    return id(callee) in _LANEWISE and getattr(callee, "elementwise", False)


for _names in (BUILTINS, MATH, TYPES, CUDA):
    spelled(_names)
