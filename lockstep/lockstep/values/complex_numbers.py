"""Computes with complex numbers as numba.cuda does: on real and imaginary parts, in their precision.

NumPy's own product, quotient and power round differently, and differ where a part is zero or not finite;
so do its exponential and its hyperbolic functions.
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
"""Each complex operation counts as so many operations on real numbers: (operation, how many)."""


def component(dtype: np.dtype) -> np.dtype:
    """Return the type of the real and the imaginary part."""
    return FLOAT32 if dtype.itemsize == 8 else FLOAT64


def joined(real, imag):
    """Return the complex array or scalar with these real and imaginary parts, both of one float type."""
    real, imag = np.asarray(real), np.asarray(imag)
    whole = np.empty(np.broadcast_shapes(real.shape, imag.shape), f"c{2 * real.itemsize}")
    whole.real, whole.imag = real, imag
    return whole[()]


def product(a, b):
    return joined(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real)


def quotient(a, b):
    """Return the quotient by Smith's algorithm, which divides by the larger part of ``b`` first."""
    wide = np.abs(b.real) >= np.abs(b.imag)
    large, small = np.where(wide, b.real, b.imag), np.where(wide, b.imag, b.real)
    ratio = small / large
    denominator = large + small * ratio
    real = np.where(wide, a.real + a.imag * ratio, a.real * ratio + a.imag)
    imag = np.where(wide, a.imag - a.real * ratio, a.imag * ratio - a.real)
    return joined(real / denominator, imag / denominator)


def power(a, b):
    """Return ``a ** b``, computed in polar form. As in Numba it is 0 if both real parts are 0."""
    length, angle = np.hypot(a.real, a.imag), np.arctan2(a.imag, a.real)
    turned = b.imag != 0
    size = np.power(length, b.real)
    size = np.where(turned, size / np.exp(angle * b.imag), size)
    phase = np.where(turned, angle * b.real + b.imag * np.log(length), angle * b.real)
    found = joined(size * np.cos(phase), size * np.sin(phase))
    found = np.where((a.real == 0) & (b.real == 0), found.dtype.type(0), found)
    return np.where((b.real == 0) & (b.imag == 0), found.dtype.type(1), found)[()]


IN_PARTS = {np.multiply: product, np.true_divide: quotient, np.power: power}
"""What replaces NumPy's operations. NumPy adds and subtracts part by part, as Numba does."""


# ---- functions ----

# This is a float64, as in Numba, so the parts of a complex64's logarithm are divided in float64.
_LN_10 = np.float64(2.302585092994046)


def exponential(z):
    x, y = z.real, z.imag
    size, lost = np.exp(x), np.isinf(x) & ~np.isfinite(y)
    real, imag = (_times(part, size, np.isinf(x)) for part in (np.cos(y), np.sin(y)))
    imag = np.where(lost & (x < 0), size, np.where(np.isnan(x) & (y == 0), y, imag))
    return joined(np.where(lost, size, real), imag)


def logarithm_to_10(z):
    logarithm = np.log(z)
    return joined(logarithm.real / _LN_10, logarithm.imag / _LN_10)


def of_polar(length, angle):
    """Return what ``cmath.rect`` computes."""
    endless, lost = np.isinf(length), ~np.isfinite(angle)
    parts = (np.where(endless & (p == 0), p / length, p * length) for p in (np.cos(angle), np.sin(angle)))
    kept = np.abs(length), np.zeros_like(length)
    parts = (np.where(lost & (length == 0), *pair) for pair in zip(kept, parts))
    return joined(*(np.where(lost & endless, *pair) for pair in zip((length, angle), parts)))


def hyperbolic_cosine(z):
    x, y = z.real, z.imag
    plain = (y == 0) | np.isnan(y)
    real = np.where(plain, np.abs(x), np.copysign(x, np.cos(y)))
    imag = np.where(plain, y, np.copysign(x, np.sin(y))) * np.sign(x)
    inside = np.cos(y) * np.cosh(x), np.sin(y) * np.sinh(x)
    return joined(*(np.where(np.isinf(x), *pair) for pair in zip((real, imag), inside)))


def hyperbolic_sine(z):
    x, y = z.real, z.imag
    endless = np.isinf(x)
    real, imag = _times(np.cos(y), np.sinh(x), endless), _times(np.sin(y), np.cosh(x), endless)
    return joined(np.where(endless & np.isnan(y), x, real), imag)


def hyperbolic_tangent(z):
    """Return the hyperbolic tangent by CPython's algorithm."""
    x, y = z.real, z.imag
    a, b, c = np.tanh(x), np.tan(y), 1 / np.cosh(x)
    bottom = 1 + (a * b) ** 2
    inside = a * (1 + b * b) / bottom, b / bottom * c * c
    far = (
        np.copysign(x.dtype.type(1), x),
        np.where(np.isinf(y), 0, np.copysign(x.dtype.type(0), np.sin(2 * y))),
    )
    return joined(*(np.where(np.isinf(x), *pair) for pair in zip(far, inside)))


def cosine(z):
    return hyperbolic_cosine(joined(-z.imag, z.real))


def sine(z):
    return _turned_back(hyperbolic_sine(joined(-z.imag, z.real)))


def tangent(z):
    return _turned_back(hyperbolic_tangent(joined(-z.imag, z.real)))


def _turned_back(z):
    return joined(z.imag, -z.real)


def _times(part, size, endless):
    """Return ``part * size``. Where ``endless``, a part that is 0 stays 0, because 0 * inf would be NaN."""
    return np.where(endless & (part == 0), part, part * size)
