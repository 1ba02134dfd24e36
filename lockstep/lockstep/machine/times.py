"""Computes with dates and spans of time, datetime64 and timedelta64, where Numba does."""

import numpy as np

from lockstep.errors import KernelTypeError
from lockstep.memory.storage import Unknown, unknown
from lockstep.values.dtypes import BOOL, FLOAT64, TIMES, dtype_of

_ORDER = {np.less: "<", np.less_equal: "<=", np.greater: ">", np.greater_equal: ">="}
_ORDER |= {np.equal: "==", np.not_equal: "!="}
_NAMES = _ORDER | {
    np.add: "+",
    np.subtract: "-",
    np.multiply: "*",
    np.true_divide: "/",
    np.floor_divide: "//",
    np.remainder: "%",
    np.power: "**",
    np.fmin: "min()",
    np.fmax: "max()",
    np.negative: "-",
    np.absolute: "abs()",
}
_ALLOWED = dict.fromkeys((*_ORDER, np.fmin, np.fmax), ("MM", "mm")) | {
    np.add: ("Mm", "mM", "mm"),
    np.subtract: ("MM", "Mm", "mm"),
    np.multiply: ("mn", "nm"),
    np.true_divide: ("mm", "mn"),
    np.floor_divide: ("mn",),
    np.negative: ("m",),
    np.absolute: ("m",),
}
"""The kinds of operands that Numba takes: "M" dates, "m" spans of time, "n" integers and floats."""


def computed(operation: np.ufunc, *values):
    """Return the outcome of an operation on dates, spans of time and numbers.

    Refuse an operation that Numba does not have.
    """
    dtypes = [np.asarray(value).dtype for value in values]
    kinds = "".join(dtype.kind if dtype.kind in "mM" else "n" for dtype in dtypes)
    if kinds not in _ALLOWED.get(operation, ()) or any(dtype.kind in "bc" for dtype in dtypes):
        raise KernelTypeError(
            f"Numba has no {_NAMES.get(operation, '-')} of {' and '.join(map(str, dtypes))}"
        )
    result = _dtype(operation, kinds, dtypes)
    if any(isinstance(value, Unknown) for value in values):
        return unknown(result)
    if operation in (np.fmin, np.fmax):
        first, second = values
        better = second < first if operation is np.fmin else second > first
        return np.where(better, second, first)
    if operation is np.floor_divide:
        # Numba's // of a span of time rounds towards zero, as its / does.
        operation = np.true_divide
    return operation(*values).astype(result, copy=False)


def _dtype(operation, kinds: str, dtypes: list) -> np.dtype:
    if operation in _ORDER:
        return BOOL
    if operation is np.true_divide and kinds == "mm":
        return FLOAT64
    times = [dtype for dtype in dtypes if dtype.kind in "mM"]
    try:
        finest = np.result_type(*times)
    except TypeError:
        raise KernelTypeError(f"Numba converts no months or years to {times[-1]}") from None
    difference = operation is np.subtract and kinds == "MM"
    return np.dtype(finest.str.replace("M8", "m8")) if difference else finest


def as_value(time: np.generic) -> np.ndarray:
    """Return a date or a span of time as kernels hold it: an array over the lanes, never a NumPy scalar.

    NumPy takes a timedelta64 for an integer, and so would the machine.
    """
    return np.full((1, 1, 1), time, time.dtype)


def is_no_time(machine, value):
    """Emulate ``np.isnat``, whose value differs from itself."""
    if (dtype_of(value) or BOOL).kind not in TIMES:
        raise KernelTypeError(f"np.isnat() takes a datetime64 or a timedelta64, not {machine.kind_of(value)}")
    return machine.compare("!=", value, value)
