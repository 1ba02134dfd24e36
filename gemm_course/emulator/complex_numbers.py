"""Arithmetic of complex numbers as numba.cuda compiles it: on real and imaginary parts, in their precision.

NumPy's own product, quotient and power round differently, and differ where a part is zero or not finite.
"""

import numpy as np

from .dtypes import FLOAT32, FLOAT64

FLOP = {
    "add": (("add", 2),),
    "mul": (("mul", 4), ("add", 2)),
    "fma": (("mul", 4), ("add", 4)),
    "div": (("div", 3), ("fma", 3)),
    "pow": (("pow", 1),),
}
"""What one complex operation counts as: operations on real numbers, and how many."""


def component(dtype: np.dtype) -> np.dtype:
    """The type of the real and the imaginary part."""
    return FLOAT32 if dtype.itemsize == 8 else FLOAT64


def joined(real, imag):
    """A complex array or scalar of two arrays or scalars of one float type."""
    real, imag = np.asarray(real), np.asarray(imag)
    whole = np.empty(np.broadcast_shapes(real.shape, imag.shape), f"c{2 * real.itemsize}")
    whole.real, whole.imag = real, imag
    return whole[()]


def product(a, b):
    return joined(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)


def quotient(a, b):
    """Smith's algorithm, which divides by the larger part of ``b`` first."""
    wide = np.abs(b.real) >= np.abs(b.imag)
    large, small = np.where(wide, b.real, b.imag), np.where(wide, b.imag, b.real)
    ratio = small / large
    denominator = large + small * ratio
    real = np.where(wide, a.real + a.imag * ratio, a.real * ratio + a.imag)
    imag = np.where(wide, a.imag - a.real * ratio, a.imag * ratio - a.real)
    return joined(real / denominator, imag / denominator)


def power(a, b):
    """``a ** b`` in polar form, also for whole exponents; like Numba's, 0 if both real parts are 0."""
    length, angle = np.hypot(a.real, a.imag), np.arctan2(a.imag, a.real)
    turned = b.imag != 0
    size = np.power(length, b.real)
    size = np.where(turned, size / np.exp(angle * b.imag), size)
    phase = np.where(turned, angle * b.real + b.imag * np.log(length), angle * b.real)
    found = joined(size * np.cos(phase), size * np.sin(phase))
    found = np.where((a.real == 0) & (b.real == 0), found.dtype.type(0), found)
    return np.where((b.real == 0) & (b.imag == 0), found.dtype.type(1), found)[()]


IN_PARTS = {np.multiply: product, np.true_divide: quotient, np.power: power}
"""NumPy's operations that are replaced; its sums are those of the parts."""
