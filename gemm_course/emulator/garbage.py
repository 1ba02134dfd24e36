"""What new memory of a GPU holds here: a value that no program is likely to compute, so that it shows."""

import numpy as np

from .memory import garbage_of

BYTE = 0xA5  # in every byte; floats are NaN, with these bytes in it
_FLOATS = {
    np.dtype(np.float32): np.uint32(0x7FE5A5A5).view(np.float32),
    np.dtype(np.float64): np.uint64(0x7FFDA5A5A5A5A5A5).view(np.float64),
}
_BITS = {4: np.uint32, 8: np.uint64}


def garbage_float(dtype: np.dtype):
    """The NaN of new memory of this dtype, real or complex."""
    return _FLOATS.get(dtype, garbage_of(dtype))


def is_garbage(values: np.ndarray) -> np.ndarray:
    """Which of these numbers of 4 or 8 bytes are what new memory holds."""
    bits = _BITS[values.dtype.itemsize]
    one = _FLOATS.get(values.dtype, np.frombuffer(bytes([BYTE]) * values.dtype.itemsize, bits)[0])
    return values.view(bits) == one.view(bits)
