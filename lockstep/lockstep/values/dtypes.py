"""Finds the types of arithmetic as Numba does, which differ from NumPy's.

Numba types every operation before it runs: a Python int in a kernel is int64 and a Python float is float64,
so ``float32 * 2`` and ``float32 + 0.5`` are float64; two narrow integers give a 64-bit one, which is unsigned
if both are. (Numba's enhancement proposal 1 explains the integer rules; a test asks Numba about every pair.)
"""

from functools import cache

import numpy as np

from lockstep.errors import KernelTypeError

INT8, INT64, UINT64 = np.dtype(np.int8), np.dtype(np.int64), np.dtype(np.uint64)
INT32, UINT8, UINT16 = np.dtype(np.int32), np.dtype(np.uint8), np.dtype(np.uint16)
FLOAT16, FLOAT32, FLOAT64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
COMPLEX64, COMPLEX128 = np.dtype(np.complex64), np.dtype(np.complex128)
BOOL = np.dtype(np.bool_)
# These are the kinds of timedelta64 and datetime64.
TIMES = ("m", "M")

_PYTHON = {bool: BOOL, int: INT64, float: FLOAT64, complex: COMPLEX128}


def dtype_of(value) -> np.dtype | None:
    """Return the Numba type of a number in a kernel, or None if ``value`` is not a number."""
    dtype = _PYTHON.get(type(value))
    if dtype is not None or hasattr(value, "storage"):  # An array has a dtype, but is not a number.
        return dtype
    return getattr(value, "dtype", None)


@cache
def name_of(dtype: np.dtype) -> str:
    """Return ``dtype.name``, cached, because NumPy builds this string anew each time."""
    return dtype.name


@cache
def promote(a: np.dtype, b: np.dtype) -> np.dtype:
    """Return the type of ``a + b`` (also of -, *, //, %, &, |, ^) for operands of these types."""
    if a.kind in "biu" and b.kind in "biu":
        return UINT64 if a.kind == b.kind == "u" else INT64
    return _with_float(a, b)


def _with_float(a: np.dtype, b: np.dtype) -> np.dtype:
    if a.kind in TIMES or b.kind in TIMES:
        # Computing the operation refuses what Numba does not have.
        return a if a.kind in TIMES else b
    pair = {a, b}
    if pair == {UINT8, FLOAT16}:
        return FLOAT32  # Here and below, Numba chooses another type than NumPy.
    if pair == {UINT16, FLOAT16} or pair == {UINT16, FLOAT32}:
        return FLOAT64
    if pair == {UINT16, COMPLEX64}:
        return COMPLEX128
    return np.result_type(a, b)


@cache
def promote_shift(a: np.dtype, b: np.dtype) -> np.dtype:
    """Return the type of ``a << b``, which is signed if the left operand is."""
    return UINT64 if a.kind == "u" else INT64


@cache
def promote_division(a: np.dtype, b: np.dtype) -> np.dtype:
    """Return the type of ``a / b``: integers divide in float64."""
    result = promote(a, b)
    return FLOAT64 if result.kind in "biu" else result


@cache
def promote_remainder(a: np.dtype, b: np.dtype) -> np.dtype:
    """Return the type of ``a // b`` and ``a % b``, neither of which float16 supports."""
    result = promote(a, b)
    return FLOAT32 if result == FLOAT16 else result


@cache
def promote_power(a: np.dtype, b: np.dtype) -> np.dtype:
    """Return the type of ``a ** b``: a float to an integer power keeps its type."""
    if a == BOOL and b == INT32:
        # Numba computes every other power of integers in integers.
        return FLOAT32
    result = a if a.kind == "f" and b.kind in "biu" else promote(a, b)
    return FLOAT32 if result == FLOAT16 else result


@cache
def promote_sign(a: np.dtype) -> np.dtype:
    """Return the type of ``-a`` and ``+a``, and of ``~a`` unless ``a`` is a boolean."""
    return a if a.kind in "fcmM" else UINT64 if a.kind == "u" else INT64


@cache
def unify(a: np.dtype, b: np.dtype) -> np.dtype:
    """Return the type of a variable that is ``a`` on one path and ``b`` on another, and of ``min(a, b)``."""
    if a != b and (a.kind in TIMES or b.kind in TIMES):
        raise KernelTypeError(f"Numba has no type that holds both {a} and {b}")
    return a if a == b else np.result_type(a, b)


@cache
def range_type(*bounds: np.dtype) -> np.dtype:
    """Return the type of the numbers of a ``range`` with these bounds: int32, int64 or uint64.

    Like Numba, it takes the type that holds the most bounds. If several do, it takes the one that changes the
    kind of number of the fewest, and then the one that is the type of the most.
    """
    return min((INT32, INT64, UINT64), key=lambda dtype: _distance(bounds, dtype))


def _distance(bounds, dtype) -> tuple:
    kept = [bound for bound in bounds if bound.kind == dtype.kind and bound.itemsize <= dtype.itemsize]
    held = [bound for bound in bounds if np.can_cast(bound, dtype)]
    exact = [bound for bound in bounds if bound == dtype]
    return len(bounds) - len(held), len(held) - len(kept), len(kept) - len(exact)


def is_integer(dtype: np.dtype) -> bool:
    return dtype.kind in "biu"
