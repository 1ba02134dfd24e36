"""Emulates ``cuda.libdevice``, NVIDIA's library of scalar functions, with NumPy.

Names end as in libdevice: ``f`` for float32, and ``_rn``, ``_rz``, ``_ru`` and ``_rd`` for rounding to the
nearest number, towards zero, up and down. A function that writes to pointers returns a tuple. Unsigned
integers are passed and returned in the signed type of their size, as numba.cuda declares them. The ``fast_``
functions are less precise on a GPU, but not here. The Bessel functions are missing.
"""

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from lockstep.values.fused import multiply_add

from .functions import (
    Function,
    by_value,
    erf,
    erfc,
    first_set,
    gamma,
    integer_power,
    leading_zeros,
    lgamma,
    population_count,
    remainder,
    reversed_bits,
)

# ---- functions of floats ----


def away_from_zero(x):
    """Round to an integer, with halves rounded away from zero."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1, x), whole).astype(x.dtype)


def exponent(x):
    """Return the binary exponent of x as a float, such as 3 for 8."""
    found = np.frexp(np.abs(x))[1] - 1.0
    found = np.where(x == 0, -np.inf, np.where(np.isinf(x), np.inf, found))
    return np.where(np.isnan(x), np.nan, found)


def integer_exponent(x):
    ordinary = np.isfinite(x) & (x != 0)
    return np.where(ordinary, np.frexp(x)[1] - 1, np.where(np.isinf(x), 2**31 - 1, -(2**31)))


def _scaled_erfc(x):
    if x < 25:
        return math.exp(x * x) * math.erfc(x)
    terms, term = 1.0, 1.0
    for k in range(1, 10):
        term *= -(2 * k - 1) / (2 * x * x)
        terms += term
    return terms / (x * math.sqrt(math.pi))


def _inverse_normal(p):
    if p in (0, 1):
        return math.inf if p else -math.inf
    return _NORMAL.inv_cdf(p)


def _inverse_erf(y):
    if abs(y) == 1:
        return math.copysign(math.inf, y)
    if abs(y) > 1:
        return math.nan
    x = _NORMAL.inv_cdf((y + 1) / 2) / math.sqrt(2) if abs(y) > 1e-3 else y * math.sqrt(math.pi) / 2
    for _ in range(3):
        x -= (math.erf(x) - y) * math.sqrt(math.pi) / 2 * math.exp(x * x)
    return x


def _inverse_erfc(y):
    if y in (0, 2):
        return math.inf if y == 0 else -math.inf
    return -_NORMAL.inv_cdf(y / 2) / math.sqrt(2) if 0 < y < 2 else math.nan


_NORMAL = NormalDist()


def _normal(x):
    return erfc(-x / math.sqrt(2)) / 2


def _of_turns(function, quarter):
    """Return a function for sin(pi * x) or cos(pi * x) that is exact at multiples of a half."""

    def of_turns(x):
        x = np.fmod(x, 2)
        found = function(np.pi * x.astype(np.float64))
        return np.where((x * 2 + quarter) % 2 == 0, np.where(np.abs(found) < 0.5, 0, np.rint(found)), found)

    return of_turns


sinpi, cospi = _of_turns(np.sin, 0), _of_turns(np.cos, 1)


def quotient_and_rest(x, y):
    """Return the IEEE remainder, and the low three bits of the quotient with its sign."""
    rest = remainder(x, y)
    with np.errstate(all="ignore"):
        quotient = np.rint((x.astype(np.float64) - rest) / y)
        low = np.copysign(np.fmod(np.abs(quotient), 8), quotient)
    return rest, np.where(np.isfinite(low), low, 0)


def positive_difference(x, y):
    return np.where(np.isnan(x) | np.isnan(y), np.nan, np.where(x > y, x - y, 0))


def saturated(x):
    """Return x clipped to the range from 0 to 1. NaN becomes 0."""
    return np.where(np.isnan(x), 0, np.clip(x, 0, 1))


_ONE = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atanh": np.arctanh, "cbrt": np.cbrt, "ceil": np.ceil, "cos": np.cos, "cosh": np.cosh, "cospi": cospi,
    "erf": erf, "erfc": erfc, "erfcinv": by_value(_inverse_erfc), "erfcx": by_value(_scaled_erfc),
    "erfinv": by_value(_inverse_erf), "exp": np.exp, "exp10": lambda x: 10.0**x, "exp2": np.exp2,
    "expm1": np.expm1, "fabs": np.abs, "floor": np.floor, "lgamma": lgamma, "log": np.log,
    "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "logb": exponent, "nearbyint": np.rint,
    "normcdf": _normal, "normcdfinv": by_value(_inverse_normal), "rcbrt": lambda x: 1 / np.cbrt(x),
    "rint": np.rint, "round": away_from_zero, "rsqrt": lambda x: 1 / np.sqrt(x), "sin": np.sin,
    "sinh": np.sinh, "sinpi": sinpi, "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh, "tgamma": gamma,
    "trunc": np.trunc,
}  # fmt: skip
_TWO = {
    "atan2": np.arctan2, "copysign": np.copysign, "fdim": positive_difference, "fmax": np.fmax,
    "fmin": np.fmin, "fmod": np.fmod, "hypot": np.hypot, "nextafter": np.nextafter, "pow": np.power,
    "remainder": remainder,
}  # fmt: skip
_FAST = {
    "cosf": np.cos, "exp10f": lambda x: 10.0**x, "expf": np.exp, "log10f": np.log10, "log2f": np.log2,
    "logf": np.log, "sinf": np.sin, "tanf": np.tan,
}  # fmt: skip


def _floats() -> dict:
    found = {}
    for end, f in (("", "d"), ("f", "f")):
        found |= {f"{name}{end}": (f"{f}:{f}", compute) for name, compute in _ONE.items()}
        found |= {f"{name}{end}": (f"{f}:{f}{f}", compute) for name, compute in _TWO.items()}
        found |= {
            f"frexp{end}": (f"{f}i:{f}", np.frexp),
            f"ilogb{end}": (f"i:{f}", integer_exponent),
            f"ldexp{end}": (f"{f}:{f}i", np.ldexp),
            f"llrint{end}": (f"q:{f}", np.rint),
            f"llround{end}": (f"q:{f}", away_from_zero),
            f"modf{end}": (f"{f}{f}:{f}", np.modf),
            f"powi{end}": (f"{f}:{f}i", integer_power),
            f"remquo{end}": (f"{f}i:{f}{f}", quotient_and_rest),
            f"scalbn{end}": (f"{f}:{f}i", np.ldexp),
            f"sincos{end}": (f"{f}{f}:{f}", lambda x: (np.sin(x), np.cos(x))),
            f"sincospi{end}": (f"{f}{f}:{f}", lambda x: (sinpi(x), cospi(x))),
        }
    for end, f in (("d", "d"), ("f", "f")):
        found |= {f"{name}{end}": (f"i:{f}", getattr(np, name)) for name in ("isinf", "isnan", "signbit")}
    found |= {f"fast_{name}": ("f:f", compute) for name, compute in _FAST.items()}
    return found | {
        "fast_fdividef": ("f:ff", np.divide),
        "fast_powf": ("f:ff", np.power),
        "fast_sincosf": ("ff:f", lambda x: (np.sin(x), np.cos(x))),
        "finitef": ("i:f", np.isfinite),
        "frsqrt_rn": ("f:f", lambda x: 1 / np.sqrt(x.astype(np.float64))),
        "isfinited": ("i:d", np.isfinite),
        "saturatef": ("f:f", saturated),
    }


# ---- rounding in a given direction ----


def _direction(exact: Fraction, nearest, mode: str):
    """Return the float to which ``mode`` rounds ``exact``. ``nearest`` is the float nearest to ``exact``."""
    below, above = (np.nextafter(nearest, nearest.dtype.type(s * np.inf)) for s in (-1, 1))
    if mode == "rz":
        mode = "rd" if exact > 0 else "ru"
    if not np.isfinite(nearest):  # The exact number is beyond the largest float.
        towards_zero = (mode == "rd") == (nearest > 0)
        return (below if nearest > 0 else above) if towards_zero else nearest
    if mode == "rd":
        return below if Fraction(float(nearest)) > exact else nearest
    return above if Fraction(float(nearest)) < exact else nearest


def _directed(compute, exactly, mode: str):
    """Return a function like ``compute`` that rounds by ``mode``. ``exactly`` computes with fractions."""

    def of_one(*values):
        nearest = compute(*values)
        finite = all(map(np.isfinite, values)) and not np.isnan(nearest)
        if not finite or (np.isinf(nearest) and compute is np.divide and values[-1] == 0):
            return nearest
        return _direction(exactly(*(Fraction(float(v)) for v in values)), nearest, mode)

    if mode == "rn":
        return compute

    def of_all(*arrays):
        shape = np.broadcast_shapes(*map(np.shape, arrays))
        flat = zip(*(np.broadcast_to(a, shape).reshape(-1) for a in arrays))
        found = np.array([of_one(*values) for values in flat], arrays[0].dtype)
        return found.reshape(shape)

    return of_all


def _root_direction(mode):
    """Return a square root that rounds by ``mode``. It compares squares, which are exact fractions."""

    def of_one(x):
        nearest = np.sqrt(x)
        if not np.isfinite(nearest) or nearest == 0:
            return nearest
        square, wanted = Fraction(float(nearest)) ** 2, Fraction(float(x))
        if mode in ("rd", "rz") and square > wanted:
            return np.nextafter(nearest, x.dtype.type(0))
        if mode == "ru" and square < wanted:
            return np.nextafter(nearest, x.dtype.type(np.inf))
        return nearest

    return lambda x: np.array([of_one(v) for v in np.reshape(x, -1)], x.dtype).reshape(np.shape(x))


def _inverse(x):
    return np.divide(x.dtype.type(1), x)


_EXACT = {
    "add": ("dd", np.add, lambda x, y: x + y),
    "div": ("dd", np.divide, lambda x, y: x / y),
    "mul": ("dd", np.multiply, lambda x, y: x * y),
    "sub": ("dd", np.subtract, lambda x, y: x - y),
    "rcp": ("d", _inverse, lambda x: 1 / x if x else x),
}


def _rounded() -> dict:
    found = {}
    for mode in ("rn", "rz", "ru", "rd"):
        for name, (arguments, compute, exactly) in _EXACT.items():
            function = _directed(compute, exactly, mode)
            found[f"f{name}_{mode}"] = (f"f:{arguments.replace('d', 'f')}", function)
            if name != "sub":
                found[f"d{name}_{mode}"] = (f"d:{arguments}", function)
        root = np.sqrt if mode == "rn" else _root_direction(mode)
        found |= {f"fsqrt_{mode}": ("f:f", root), f"dsqrt_{mode}": ("d:d", root)}
        fused = _directed(multiply_add, lambda x, y, z: x * y + z, mode)
        found |= {f"fma_{mode}": ("d:ddd", fused), f"fmaf_{mode}": ("f:fff", fused)}
    return found | {"fma": ("d:ddd", multiply_add), "fmaf": ("f:fff", multiply_add)}


# ---- conversions ----

_TO_WHOLE = {"rn": np.rint, "rz": np.trunc, "ru": np.ceil, "rd": np.floor}
_WHOLE = {"int": np.int32, "uint": np.uint32, "ll": np.int64, "ull": np.uint64}
_FLOAT = {"float": np.float32, "double": np.float64}


def _to_whole(dtype, mode):
    """Return a conversion of floats to integers of a type, clipped to its limits and rounded by ``mode``.

    NaN becomes 0, or 2**63 in 64 bits.
    """
    limits, round_it = np.iinfo(dtype), _TO_WHOLE[mode]

    def of_one(value):
        if math.isnan(value):
            return 0 if limits.bits == 32 else 2**63
        if math.isinf(value):
            return limits.max if value > 0 else limits.min
        return min(max(int(round_it(value)), limits.min), limits.max)

    def convert(x):
        whole = [of_one(float(value)) % 2**64 for value in np.reshape(x, -1)]
        return np.array(whole, np.uint64).astype(f"i{limits.bits // 8}").reshape(np.shape(x))

    return convert


def _to_float(dtype, given, mode):
    """Return a conversion of integers to floats. ``given``: the integer type in which to read the bits."""

    def convert(x):
        values = [int(value) for value in np.reshape(x.view(given), -1)]
        nearest = [dtype(value) for value in values]
        if mode != "rn":
            nearest = [_direction(Fraction(v), n, mode) for v, n in zip(values, nearest)]
        return np.array(nearest, dtype).reshape(np.shape(x))

    return convert


def _narrowed(mode):
    def convert(x):
        found = []
        for value in np.reshape(x, -1):
            near = np.float32(value)
            ordinary = mode != "rn" and np.isfinite(value)
            found.append(_direction(Fraction(float(value)), near, mode) if ordinary else near)
        return np.array(found, np.float32).reshape(np.shape(x))

    return convert


def _conversions() -> dict:
    found = {}
    letters = {"int": "i", "uint": "i", "ll": "q", "ull": "q", "float": "f", "double": "d"}
    for mode in ("rn", "rz", "ru", "rd"):
        found[f"double2float_{mode}"] = ("f:d", _narrowed(mode))
        for whole, kind in _WHOLE.items():
            for name, dtype in _FLOAT.items():
                found[f"{name}2{whole}_{mode}"] = (f"{letters[whole]}:{letters[name]}", _to_whole(kind, mode))
                if (name, whole) not in (("double", "int"), ("double", "uint")) or mode == "rn":
                    signature = f"{letters[name]}:{letters[whole]}"
                    found[f"{whole}2{name}_{mode}"] = (signature, _to_float(dtype, kind, mode))
    return found | {
        "float2half_rn": ("h:f", lambda x: x.astype(np.float16).view(np.int16)),
        "half2float": ("f:h", lambda x: x.view(np.float16).astype(np.float32)),
        "double_as_longlong": ("q:d", lambda x: x.view(np.int64)),
        "longlong_as_double": ("d:q", lambda x: x.view(np.float64)),
        "float_as_int": ("i:f", lambda x: x.view(np.int32)),
        "int_as_float": ("f:i", lambda x: x.view(np.float32)),
        "double2hiint": ("i:d", lambda x: x.view(np.int64) >> 32),
        "double2loint": ("i:d", lambda x: x.view(np.int64)),
        "hiloint2double": ("d:ii", _from_halves),
    }


def _from_halves(high, low):
    bits = (high.astype(np.int64) << 32) | low.view(np.uint32).astype(np.int64)
    return bits.view(np.float64)


# ---- functions of integers ----


def _unsigned(function):
    """Return a function that computes with unsigned integers, but takes and returns signed types."""

    def compute(*values):
        found = np.asarray(function(*(value.view(f"u{value.dtype.itemsize}") for value in values)))
        return found.astype(f"u{values[0].dtype.itemsize}").view(values[0].dtype)

    return compute


def _exactly(function):
    """Return a function that computes with Python's integers, which do not overflow."""
    over_arrays = {n: np.frompyfunc(function, n, 1) for n in (2, 3)}

    def compute(*values):
        found = over_arrays[len(values)](*(value.astype(object) for value in map(np.asarray, values)))
        bits = values[0].dtype.itemsize * 8
        return np.asarray(found % 2**bits, object).astype(np.uint64).astype(values[0].dtype)

    return compute


def _selected_bytes(x, y, selector):
    """Return four of the eight bytes of x (0 to 3) and y (4 to 7), chosen by the selector's four low digits.

    The digits are hexadecimal.
    """
    source = (y.astype(np.uint64) << np.uint64(32)) | x.astype(np.uint64)
    found = source ^ source
    for position in range(4):
        digit = (selector.astype(np.uint64) >> np.uint64(4 * position)) & np.uint64(7)
        byte = (source >> (digit * np.uint64(8))) & np.uint64(255)
        found = found | (byte << np.uint64(8 * position))
    return found


def _low_24(n, signed):
    n &= 0xFFFFFF
    return n - (1 << 24) if signed and n >> 23 else n


def _integers() -> dict:
    found = {
        "abs": ("i:i", np.abs),
        "llabs": ("q:q", np.abs),
        "brev": ("i:i", _unsigned(reversed_bits)),
        "brevll": ("q:q", _unsigned(reversed_bits)),
        "byte_perm": ("i:iii", _unsigned(_selected_bytes)),
        "sad": ("i:iii", _exactly(lambda x, y, z: abs(x - y) + z)),
        "usad": ("i:iii", _unsigned(_exactly(lambda x, y, z: abs(x - y) + z))),
        "hadd": ("i:ii", _exactly(lambda x, y: (x + y) >> 1)),
        "rhadd": ("i:ii", _exactly(lambda x, y: (x + y + 1) >> 1)),
        "uhadd": ("i:ii", _unsigned(_exactly(lambda x, y: (x + y) >> 1))),
        "urhadd": ("i:ii", _unsigned(_exactly(lambda x, y: (x + y + 1) >> 1))),
        "mul24": ("i:ii", _exactly(lambda x, y: _low_24(x, True) * _low_24(y, True))),
        "umul24": ("i:ii", _unsigned(_exactly(lambda x, y: _low_24(x, False) * _low_24(y, False)))),
        "mulhi": ("i:ii", _exactly(lambda x, y: (x * y) >> 32)),
        "umulhi": ("i:ii", _unsigned(_exactly(lambda x, y: (x * y) >> 32))),
        "mul64hi": ("q:qq", _exactly(lambda x, y: (x * y) >> 64)),
        "umul64hi": ("q:qq", _unsigned(_exactly(lambda x, y: (x * y) >> 64))),
    }
    for name, compute in (("clz", leading_zeros), ("ffs", first_set), ("popc", population_count)):
        found |= {name: ("i:i", compute), f"{name}ll": ("i:q", compute)}
    for name, compute in (("max", np.maximum), ("min", np.minimum)):
        found |= {name: ("i:ii", compute), f"ll{name}": ("q:qq", compute)}
        found |= {f"u{name}": ("i:ii", _unsigned(compute)), f"ull{name}": ("q:qq", _unsigned(compute))}
    return found


def _table() -> dict:
    """Return the functions by their names in kernels. Functions of integers do not count as FLOP."""
    whole = _integers()
    given = _floats() | _rounded() | _conversions() | whole
    return {
        f"libdevice.{name}": Function(
            f"libdevice.{name}", signature, compute, None if name in whole else name
        )
        for name, (signature, compute) in given.items()
    }


LIBDEVICE = _table()
