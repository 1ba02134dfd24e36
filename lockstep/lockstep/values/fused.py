"""Computes x * y + z with one rounding, as a GPU's fused multiply-add does, and remainders by it.

The method for float64 is that of Boldo and Melquiond (Emulation of FMA and correctly rounded sums: proved
algorithms using rounding to odd, IEEE Transactions on Computers, 2008).
"""

from fractions import Fraction

import numpy as np

_MODERATE = 2.0**400
"""Products of moderate numbers, and the errors of these products, neither overflow nor underflow."""


def multiply_add(x, y, z):
    """Return x * y + z of float16, float32 or float64 numbers, rounded once. All three have one dtype."""
    dtype = np.result_type(x)
    with np.errstate(all="ignore"):
        if dtype != np.float64:
            x, y, z = (np.asarray(number, np.float64) for number in (x, y, z))
            return _sum_rounded_to_odd(x * y, z).astype(dtype)[()]
        x, y, z = np.broadcast_arrays(x, y, z)
        found = np.array(_fused(x, y, z))
        plain = x * y + z
        moderate = np.logical_and.reduce([_is_moderate(number) for number in (x, y, z, plain)])
        found[~moderate] = [_exactly(*numbers) for numbers in zip(x[~moderate], y[~moderate], z[~moderate])]
    return found[()]


def remainder(x, y):
    """Return x % y of floats as compiled code has it: x - trunc(x / y) * y, rounded once, with the sign of y.

    That is exact unless the quotient has more digits than a float holds.
    """
    dtype = np.result_type(x)
    wide = np.float32 if dtype == np.float16 else dtype
    with np.errstate(all="ignore"):
        x, y = np.asarray(x, wide), np.asarray(y, wide)
        left = np.asarray(multiply_add(-np.trunc(x / y), y, x))
        left = np.where(np.isinf(y) & np.isfinite(x), x, left).astype(dtype)
        divisor = y.astype(dtype)
        left = np.where((left != 0) & ((left < 0) != (divisor < 0)), left + divisor, left)
        return np.where(left == 0, np.copysign(left, divisor), left)[()]


def _is_moderate(number):
    size = np.abs(number)
    return (size < _MODERATE) & (size > 1 / _MODERATE)


def _exactly(x, y, z):
    """Return x * y + z of three numbers, which may be zero, infinite, huge or tiny."""
    if np.isinf(z) and np.isfinite(x) and np.isfinite(y):
        return z
    plain = x * y + z
    if not all(map(np.isfinite, (x, y, z))) or (x == 0 or y == 0):
        return plain
    exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    if exact == 0:
        return 0.0
    try:
        return float(exact)
    except OverflowError:
        return np.copysign(np.inf, 1 if exact > 0 else -1)


def _fused(x, y, z):
    product, product_error = _product(x, y)
    low, low_error = _sum(z, product_error)
    high, high_error = _sum(product, low)
    return high + _sum_rounded_to_odd(low_error, high_error)


def _sum(a, b):
    """Return the sum of two numbers and its error (Knuth)."""
    total = a + b
    rest = total - a
    return total, (a - (total - rest)) + (b - rest)


def _product(a, b):
    """Return the product of two float64 numbers and its error (Dekker)."""
    product = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    return product, a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)


def _halves(a):
    """Return two numbers of at most 26 bits whose sum is ``a`` (Veltkamp)."""
    scaled = a * 134217729.0
    high = scaled - (scaled - a)
    return high, a - high


def _sum_rounded_to_odd(a, b):
    """Return a + b. If the sum is no float64, return the one of its two neighbours whose last bit is 1."""
    total, error = _sum(a, b)
    even = np.asarray(total, np.float64).view(np.int64) & 1 == 0
    beside = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    return np.where((error != 0) & even & np.isfinite(total), beside, total)
