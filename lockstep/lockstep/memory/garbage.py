"""Makes the garbage in memory before a store: values that no program is likely to compute, so they show."""

import numpy as np

from lockstep.values.dtypes import BOOL, FLOAT64, INT64, TIMES

from .storage import garbage_of

# New memory has BYTE in every byte, except that a float is a NaN with these bytes in its low bits.
BYTE = 0xA5
_FLOATS = {
    np.dtype(np.float32): np.uint32(0x7FE5A5A5).view(np.float32),
    np.dtype(np.float64): np.uint64(0x7FFDA5A5A5A5A5A5).view(np.float64),
}
_BITS = {4: np.uint32, 8: np.uint64}


def garbage_float(dtype: np.dtype):
    """Return the NaN of new memory of this dtype, real or complex."""
    return _FLOATS.get(dtype, garbage_of(dtype))


def is_garbage(values: np.ndarray) -> np.ndarray:
    """Return which of these numbers, of 4 or 8 bytes each, are what new memory holds."""
    bits = _BITS[values.dtype.itemsize]
    one = _FLOATS.get(values.dtype, np.frombuffer(bytes([BYTE]) * values.dtype.itemsize, bits)[0])
    return values.view(bits) == one.view(bits)


def garbage(dtype):
    """Return the value of a variable that was never set: NaN, or a large odd number, negative if signed."""
    dtype = np.dtype(dtype)
    if dtype == BOOL:
        return True
    if dtype.kind in TIMES:
        return np.full((1, 1, 1), "NaT", dtype)
    if dtype.kind not in "iu":
        return float("nan") if dtype == FLOAT64 else dtype.type("nan")
    number = np.full(dtype.itemsize, BYTE, np.uint8).view(dtype)[0]
    return int(number) if dtype == INT64 else number
