"""What kernels may call: functions of numba.cuda, Python and math, each with its emulation."""

import numpy as np

from .arithmetic import CONSTANTS, FUNCTIONS
from .dtypes import BOOL, INT64
from .errors import KernelTypeError
from .lanes import Lanes, from_values
from .memory import DeviceArray
from .registry import Emulation


class Type:
    """``float32`` and other scalar types: a dtype for arrays, a cast when called."""

    elementwise, reads, writes, kind = True, (), (), "type"

    def __init__(self, dtype):
        self.dtype = np.dtype(dtype)

    def __call__(self, machine, value):
        return machine.cast(self.dtype, value)


class VectorType:
    """``float32x4`` and other vector types: up to four numbers named x, y, z and w."""

    elementwise, reads, writes, kind = True, (), (), "type"

    def __init__(self, dtype, length):
        self.dtype, self.length = np.dtype(dtype), length

    def __call__(self, machine, *values):
        parts = [part for v in values for part in (v.parts if isinstance(v, Vector) else (v,))]
        if len(parts) != self.length:
            raise KernelTypeError(f"a vector of {self.length} numbers cannot be made from {len(parts)}")
        return Vector(tuple(machine.cast(self.dtype, part) for part in parts))


class Vector:
    """A value of a vector type."""

    def __init__(self, parts):
        self.parts = parts
        for name, part in zip("xyzw", parts):
            setattr(self, name, part)


class Special:
    """A name that stands for a part of the running machine, such as ``threadIdx``."""

    def __init__(self, code: str):
        self.code = code


class Namespace:
    """A module as kernels see it: a mapping from names to emulations."""

    def __init__(self, name: str, members: dict):
        self.name, self.members = name, members


def _of_site(function, **effects):
    return Emulation(lambda machine, *args, **kw: function(machine, machine.site, *args, **kw), **effects)


# ---- numba.cuda ----


def _grid(machine, dimensions):
    if dimensions not in (1, 2, 3):
        raise KernelTypeError(f"cuda.grid() takes 1, 2 or 3, not {dimensions}")
    axes = []
    for axis in "xyz"[:dimensions]:
        block = getattr(machine.block_index, axis)
        width = machine.block["xyz".index(axis)]
        start = machine.mul(None, machine.cast(INT64, block), width)
        axes.append(machine.add(None, start, getattr(machine.thread_index, axis)))
    return axes[0] if dimensions == 1 else tuple(axes)


def _gridsize(machine, dimensions):
    sizes = tuple(g * b for g, b in zip(machine.grid, machine.block))[:dimensions]
    return sizes[0] if dimensions == 1 else sizes


def _dtype(kind) -> np.dtype:
    if isinstance(kind, Type):
        return kind.dtype
    raise KernelTypeError("an array's dtype must be a numeric type such as float32")


_POINTER = 8  # bytes: Numba accepts no smaller alignment


def _array(allocate):
    def declare(machine, site, shape, dtype, alignment=None):
        if alignment is not None and (alignment < _POINTER or alignment & (alignment - 1)):
            raise KernelTypeError(
                f"the alignment of an array must be a power of two and at least {_POINTER}, not {alignment}"
            )
        return getattr(machine, allocate)(site, shape, _dtype(dtype), alignment)

    return _of_site(declare, elementwise=False, kind=allocate)


def _atomic(name):
    def operation(machine, site, array, index, value):
        return machine.atomic(site, name, array, index, value)

    return _of_site(operation, reads=(0,), writes=(0,), elementwise=False)


def _compare_and_swap(machine, site, array, index, expected, value):
    return machine.atomic(site, "cas", array, index, value, expected)


def _shuffle(source_lane):
    """A shuffle; each lane gets the value of ``source_lane(lane, operand)``."""

    def shuffle(machine, mask, value, operand):
        geometry = machine.geometry
        lane = geometry.linear % 32
        operand = machine.plain(operand)
        wanted = source_lane(lane, operand)
        source = np.where((wanted >= 0) & (wanted < 32), wanted, lane) + geometry.linear - lane
        value = machine.plain(value)
        values = np.broadcast_to(value, np.broadcast_shapes(np.shape(value), source.shape))
        source = np.broadcast_to(source, values.shape[:-1] + source.shape[-1:])
        taken = np.take_along_axis(values, source, axis=-1)
        return from_values(taken) if taken.dtype.kind in "biu" else taken

    return Emulation(shuffle, elementwise=False)


def _votes(machine, predicate):
    """The warps' predicates: (active and true, active), of shape (..., warp, 32)."""
    predicate = machine.truth(predicate)
    true = predicate if type(predicate) is bool else predicate.pattern.array
    active = True if machine.mask.array is None else machine.mask.array
    shape = np.broadcast_shapes(np.shape(true), np.shape(active), machine.geometry.shape)
    grouped = shape[:-1] + (shape[-1] // 32, 32)
    active = np.broadcast_to(active, shape).reshape(grouped)
    return np.broadcast_to(true, shape).reshape(grouped) & active, active


def _per_warp(values):
    """One value per warp, given to each of its lanes."""
    return from_values(np.repeat(values, 32, axis=-1))


def _all_sync(machine, mask, predicate):
    true, active = _votes(machine, predicate)
    return _per_warp((true | ~active).all(axis=-1))


def _any_sync(machine, mask, predicate):
    return _per_warp(_votes(machine, predicate)[0].any(axis=-1))


def _ballot(machine, mask, predicate):
    true, _ = _votes(machine, predicate)
    return _per_warp((true * (1 << np.arange(32))).sum(axis=-1))


def _syncthreads_vote(combine):
    def vote(machine, site, predicate):
        machine.barrier(site)
        true, active = _votes(machine, predicate)
        lanes = true.reshape(true.shape[:-2] + (-1,)), active.reshape(active.shape[:-2] + (-1,))
        return from_values(np.broadcast_to(combine(*lanes)[..., None], machine.geometry.shape))

    return _of_site(vote, elementwise=False, kind="barrier")


def _of_lanes(function):
    """An integer function of each lane's value."""

    def apply(machine, value):
        result = np.vectorize(function, otypes=[np.int64])(machine.plain(value))
        return from_values(result) if type(value) is Lanes else int(result)

    return Emulation(apply)


def _lower_lanes(machine):
    """For each lane, the bits of the lanes below it in the warp."""
    lane = machine.geometry.lane.pattern
    return Lanes(lane.derive("lt", lambda: (1 << lane.array) - 1))


def _const_is_refused(machine, *_):
    raise KernelTypeError("the emulator does not support constant memory")


_SPECIALS = {
    "threadIdx": "_M.thread_index",
    "blockIdx": "_M.block_index",
    "blockDim": "_M.block_dim",
    "gridDim": "_M.grid_dim",
    "laneid": "_M.geometry.lane",
}

_BARRIER = {"elementwise": False, "kind": "barrier"}
_ATOMICS = ("add", "sub", "max", "min", "and_", "or_", "xor", "exch", "inc", "dec")

CUDA = {
    "grid": Emulation(_grid),
    "gridsize": Emulation(_gridsize),
    "warpsize": 32,
    "shared.array": _array("shared_array"),
    "local.array": _array("local_array"),
    "syncthreads": _of_site(lambda machine, site: machine.barrier(site), **_BARRIER),
    "syncthreads_count": _syncthreads_vote(lambda true, active: true.sum(axis=-1)),
    "syncthreads_and": _syncthreads_vote(lambda true, active: (true | ~active).all(axis=-1).astype(np.int64)),
    "syncthreads_or": _syncthreads_vote(lambda true, active: true.any(axis=-1).astype(np.int64)),
    "syncwarp": _of_site(lambda machine, site, mask=None: machine.warp_barrier(site), **_BARRIER),
    "threadfence": Emulation(lambda machine: None, elementwise=False),
    "threadfence_block": Emulation(lambda machine: None, elementwise=False),
    "threadfence_system": Emulation(lambda machine: None, elementwise=False),
    "shfl_sync": _shuffle(lambda lane, source: source % 32),
    "shfl_up_sync": _shuffle(lambda lane, delta: lane - delta),
    "shfl_down_sync": _shuffle(lambda lane, delta: lane + delta),
    "shfl_xor_sync": _shuffle(lambda lane, bits: lane ^ bits),
    "all_sync": Emulation(_all_sync, elementwise=False),
    "any_sync": Emulation(_any_sync, elementwise=False),
    "ballot_sync": Emulation(_ballot, elementwise=False),
    "activemask": Emulation(lambda machine: _ballot(machine, None, True), elementwise=False),
    "lanemask_lt": Emulation(_lower_lanes),
    "popc": _of_lanes(lambda n: bin(n & 0xFFFFFFFFFFFFFFFF).count("1")),
    "clz": _of_lanes(lambda n: 64 - int(n).bit_length() if n >= 0 else 0),
    "ffs": _of_lanes(lambda n: (int(n) & -int(n)).bit_length()),
    "fma": _of_site(lambda machine, site, x, y, z: machine.fma(site, x, y, z)),
    "selp": Emulation(lambda machine, c, a, b: machine.select(c, lambda: a, lambda: b)),
    "atomic.cas": _of_site(_compare_and_swap, reads=(0,), writes=(0,), elementwise=False),
    "const.array_like": Emulation(_const_is_refused),
    **{name: Special(code) for name, code in _SPECIALS.items()},
    **{f"atomic.{name}": _atomic(name) for name in _ATOMICS},
}

_INTEGERS = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
_VECTORS = {f"{name}x": name for name in (*_INTEGERS, "float32", "float64")}
_VECTORS |= {"float": "float32", "double": "float64", "int": "int32", "uint": "uint32"}
CUDA |= {f"{name}{n}": VectorType(dtype, n) for name, dtype in _VECTORS.items() for n in (1, 2, 3, 4)}

# ---- types, under the names of numba, numba.types and NumPy ----

TYPES = {name: Type(name) for name in (*_INTEGERS, "float16", "float32", "float64")}
TYPES |= {"boolean": Type(BOOL), "bool_": Type(BOOL), "intp": Type(INT64), "uintp": Type(np.uint64)}

# ---- Python ----


def _extreme(name):
    def extreme(machine, site, *values):
        values = values[0] if len(values) == 1 and isinstance(values[0], tuple) else values
        result = values[0]
        for value in values[1:]:
            result = getattr(machine, name)(site, result, value)
        return result

    return _of_site(extreme)


def _length(machine, value):
    if isinstance(value, (tuple, DeviceArray)):
        return len(value)
    raise KernelTypeError(f"a value of type {type(value).__name__} has no length")


_PRINTED_LANES = 64


def _print(machine, *values):
    """Each active lane prints a line, up to 64 of them."""
    shape = machine.geometry.shape
    active = np.broadcast_to(True if machine.mask.array is None else machine.mask.array, shape)
    plain = [machine.plain(v) for v in values]
    chosen = list(zip(*active.nonzero()))
    for where in chosen[:_PRINTED_LANES]:
        print(*(np.broadcast_to(v, shape)[where] if np.ndim(v) else v for v in plain))
    if len(chosen) > _PRINTED_LANES:
        print(f"... and {len(chosen) - _PRINTED_LANES} more threads")


BUILTINS = {
    "min": _extreme("minimum"),
    "max": _extreme("maximum"),
    "abs": _of_site(lambda machine, site, value: machine.absolute(site, value)),
    "len": Emulation(_length),
    "int": Type(INT64),
    "float": Type(np.float64),
    "bool": Type(BOOL),
    "pow": _of_site(lambda machine, site, a, b: machine.pow(site, a, b)),
    "print": Emulation(_print, elementwise=False),
    "range": Emulation(lambda machine, *bounds: machine.range_of(*bounds), kind="range"),
}


def _function(name, ufunc):
    return _of_site(lambda machine, site, value: machine.unary(site, name, ufunc, value))


MATH = {name: _function(name, ufunc) for name, ufunc in FUNCTIONS.items()} | CONSTANTS
MATH |= {
    "pow": BUILTINS["pow"],
    "fmin": _of_site(lambda machine, site, a, b: machine.minimum(site, a, b)),
    "fmax": _of_site(lambda machine, site, a, b: machine.maximum(site, a, b)),
}
