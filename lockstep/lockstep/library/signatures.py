"""Reads the signatures of ``cuda.jit``, finds which arguments fit them, and casts the arguments."""

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lockstep.errors import ArgumentError, KernelTypeError
from lockstep.memory.records import Record, RecordArray
from lockstep.memory.storage import DeviceArray
from lockstep.values.dtypes import dtype_of

from .functions import letter_of, rating

try:
    # numba-cuda has types of its own, and so its own functions for them.
    from numba.cuda.core import sigutils
except ImportError:
    from numba.core import sigutils

# A conversion that may lose information costs _UNSAFE.
_UNSAFE = 1000


class Declared(NamedTuple):
    """One signature of a kernel or device function, in Numba types. ``returned`` is None if left open.

    ``pointers`` has the positions of parameters that the signature calls pointers: arrays in ``types``, for
    which a launch gives the address.
    """

    types: tuple
    returned: Any
    pointers: tuple = ()


def declared(dispatcher: Any) -> list[Declared]:
    """Return the signatures that a kernel or device function was given, an empty list if it was given none.

    A kernel without signatures takes any arguments. The types that its calls compiled it for do not count.
    """
    if hasattr(dispatcher, "declared"):
        return dispatcher.declared
    # In a session the attribute tells of the session's launches. What Numba keeps is in the `__dict__`.
    compiled = getattr(dispatcher, "__dict__", {}).get("overloads")
    if getattr(dispatcher, "_can_compile", True) or not isinstance(compiled, dict):
        return []
    found = [(types, getattr(code, "signature", None)) for types, code in compiled.items()]
    return [Declared(tuple(types), getattr(signature, "return_type", None)) for types, signature in found]


class Casts:
    """The casts of a call's arguments and result to the types of a device function's signature."""

    def __init__(self, name: str, signatures: Sequence[Declared]):
        self.name, self.signatures = name, signatures

    def arguments(self, machine, values: tuple) -> tuple[tuple, Any]:
        """Return the cast arguments and the result's type, for the signature that needs least conversion.

        Raises KernelTypeError if no signature takes the arguments.
        """
        fitting = [one for one in self.signatures if len(one.types) == len(values)]
        ranked = sorted(
            (one for one in fitting if _possible(one, values)), key=lambda one: _least(one, values)
        )
        if not ranked:
            listed = "; ".join(f"({', '.join(map(str, one.types))})" for one in self.signatures)
            raise KernelTypeError(f"no signature of {self.name} takes these arguments; it has {listed}")
        types, returned, _ = ranked[0]
        return tuple(_converted(machine, kind, value) for kind, value in zip(types, values)), returned

    def result(self, machine, kind: Any, value: Any) -> Any:
        return value if kind is None else _converted(machine, kind, value)


def _possible(signature: Declared, values: tuple) -> bool:
    """Tell whether the signature has arrays and records where the values have, and whether these fit."""
    for kind, value in zip(signature.types, values):
        is_array = isinstance(value, (DeviceArray, RecordArray))
        if _is_array(kind) != is_array or is_record_type(kind) != isinstance(value, Record):
            return False
        if is_record_type(kind) and kind.dtype != value.record:
            return False
        if is_array and not _holds(kind, value):
            return False
    return True


def _holds(kind: Any, array: DeviceArray | RecordArray) -> bool:
    """Tell whether an array fits an array's type, in dtype, number of dimensions and layout.

    A read-only array fits only a type of read-only arrays.
    """
    held = getattr(array, "record", getattr(array, "dtype", None))
    alike = array.ndim == kind.ndim and dtype_of_type(kind.dtype) == held
    elements = array.starts if isinstance(array, RecordArray) else array
    fits = kind.layout in ("A", elements.layout) and (
        elements.storage.writeable or not getattr(kind, "mutable", True)
    )
    return alike and fits


def _least(signature: Declared, values: tuple) -> tuple:
    pairs = [(dtype_of(value), dtype_of_type(kind)) for kind, value in zip(signature.types, values)]
    pairs = [(given, wanted) for given, wanted in pairs if given is not None and wanted is not None]
    # A complex number is never converted to a real one, so such a signature is the last resort.
    lost = sum(given.kind == "c" and wanted.kind != "c" for given, wanted in pairs)
    return (lost, *rating(*("".join(map(letter_of, part)) for part in zip(*pairs)))) if pairs else ()


def _converted(machine, kind: Any, value: Any) -> Any:
    wanted, given = None if _is_array(kind) else dtype_of_type(kind), dtype_of(value)
    return value if wanted is None or given is None or given == wanted else machine.cast(wanted, value)


def is_signature(value: Any) -> bool:
    return sigutils.is_signature(value)


def declaration(signature: Any, device: bool) -> Declared:
    """Return the signature that a program wrote. Raises TypeError for a kernel that returns a value."""
    types, returned = sigutils.normalize_signature(signature)
    if returned is not None and not device and str(returned) != "none":
        raise TypeError(f"a kernel returns nothing, but its signature says {returned}: write void(...)")
    pointers = tuple(place for place, kind in enumerate(types) if type(kind).__name__ == "CPointer")
    types = tuple(kind.dtype[::1] if place in pointers else kind for place, kind in enumerate(types))
    return Declared(types, returned, pointers)


def fitted(name: str, signatures: Sequence[tuple], parameters: Sequence[str], args: Sequence) -> list:
    """Return the arguments with numbers cast to the types of the signature that fits best.

    Raises ArgumentError, a TypeError, if no signature takes the arguments, or if several fit equally well.
    """
    if len(signatures) == 1:
        return [
            _cast(kind, *given) for kind, *given in zip(_same_length(signatures[0], args), parameters, args)
        ]
    costs = [_cost(types, args) for types in signatures]
    if not costs or min(costs) == float("inf"):
        raise ArgumentError(
            f"no signature of {name} takes ({', '.join(map(_described, args))}); it has "
            + "; ".join(f"({', '.join(map(str, types))})" for types in signatures)
        )
    best = [types for types, cost in zip(signatures, costs) if cost == min(costs)]
    if len(set(best)) > 1:
        raise ArgumentError(
            f"{name} is ambiguous for ({', '.join(map(_described, args))}): "
            + " and ".join(f"({', '.join(map(str, types))})" for types in best)
            + " fit equally well"
        )
    return fitted(name, best[:1], parameters, args)


def _same_length(types: tuple, args: Sequence) -> tuple:
    """Return the types of a signature. Raises ArgumentError unless there are as many arguments."""
    if len(types) != len(args):
        raise ArgumentError(
            f"the signature has {len(types)} parameters, and {len(args)} arguments were given"
        )
    return types


def _is_array(kind: Any) -> bool:
    return hasattr(kind, "layout") and hasattr(kind, "ndim")


def is_record_type(kind: Any) -> bool:
    """Tell whether a type is a record. Numba and numba-cuda have a class of this name each."""
    return type(kind).__name__ == "Record" and isinstance(getattr(kind, "dtype", None), np.dtype)


def dtype_of_type(kind: Any) -> np.dtype | None:
    """Return the dtype of a Numba type of numbers or of records, or None for any other type."""
    if is_record_type(kind):
        return kind.dtype
    try:
        return np.dtype({"boolean": "bool"}.get(str(kind), str(kind)))
    except (TypeError, ValueError):  # NumPy cannot read the name of an array's or a record's type.
        return None


def _fits(kind: Any, array: np.ndarray) -> bool:
    dtype = dtype_of_type(kind.dtype)
    layouts = {"C": array.flags.c_contiguous, "F": array.flags.f_contiguous}
    return (
        (dtype is None or dtype == array.dtype)
        and kind.ndim == array.ndim
        and layouts.get(kind.layout, True)
        and (array.flags.writeable or not getattr(kind, "mutable", True))
    )


def _cast(kind: Any, name: str, value: Any) -> Any:
    """Return an argument cast to a parameter's type. Like numba.cuda, cast numbers and nothing else.

    Raises ArgumentError if the argument does not fit the type.
    """
    if isinstance(value, tuple) and hasattr(kind, "types"):
        return tuple(map(_cast, kind.types, itertools.repeat(name), value))
    if _is_array(kind) != isinstance(value, np.ndarray) or (_is_array(kind) and not _fits(kind, value)):
        raise ArgumentError(f"{name} is {_described(value)}, and the signature says {kind}")
    dtype = None if _is_array(kind) else dtype_of_type(kind)
    if dtype is None:
        return value
    if dtype.names is not None:
        if getattr(value, "dtype", None) != dtype:
            raise ArgumentError(f"{name} is {_described(value)}, and the signature says {kind}")
        return value
    if dtype.kind in "iu" and not isinstance(value, (int, np.integer, np.bool_)):
        raise ArgumentError(f"{name} is {_described(value)}, and the signature says {kind}")
    if dtype.kind in "iu":
        value = int(value) % 2 ** (8 * dtype.itemsize)
        return np.array(value, f"u{dtype.itemsize}").view(dtype)[()]
    return dtype.type(value)


def _cost(types: tuple, args: Sequence) -> float:
    """Return how far the arguments are from a signature: 0 for an exact match, infinity for no match."""
    if len(types) != len(args):
        return float("inf")
    return sum(map(_distance, types, args))


def _distance(kind: Any, value: Any) -> float:
    if isinstance(value, tuple) and hasattr(kind, "types"):
        return _cost(tuple(kind.types), value)
    if _is_array(kind) or isinstance(value, np.ndarray):
        fits = _is_array(kind) and isinstance(value, np.ndarray) and _fits(kind, value)
        return 0 if fits else float("inf")
    dtype = dtype_of_type(kind)
    if dtype is None or not isinstance(value, (bool, int, float, complex, np.generic)):
        return 0
    given = np.asarray(value).dtype
    if given == dtype:
        return 0
    if given.names is not None or dtype.names is not None:
        return float("inf")
    if given.kind == "c" and dtype.kind != "c":
        return float("inf")
    wider = abs(dtype.itemsize - given.itemsize) + 10 * (given.kind != dtype.kind)
    return wider if np.can_cast(given, dtype) else _UNSAFE + wider


def _described(value: Any) -> str:
    """Return a text such as ``float32 with 2 dimensions`` or ``int``."""
    if not isinstance(value, np.ndarray):
        return type(value).__name__
    order = "" if value.flags.c_contiguous else ", not C-contiguous"
    frozen = "" if value.flags.writeable else ", read-only"
    return f"{value.dtype} with {value.ndim} dimension{'s' * (value.ndim != 1)}{order}{frozen}"
