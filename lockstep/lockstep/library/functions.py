"""Emulates functions of one or more numbers, with the types that Numba gives them.

A function has a list of signatures in NumPy's letters. A function of signature ``f:ff`` takes two float32 and
returns a float32. A call uses the signature that needs the least conversion, or the first of several, as
Numba's overload resolution does. The arguments are cast to the signature's types, and NumPy computes the
result.
"""

import math
from functools import cache
from itertools import pairwise, product

import numpy as np

from lockstep.errors import KernelTypeError
from lockstep.machine.arithmetic import truncated
from lockstep.machine.words import kind_of
from lockstep.memory.storage import ARRAYS, Unknown, unknown
from lockstep.registry import Emulation
from lockstep.values import complex_numbers
from lockstep.values.dtypes import BOOL, INT64, dtype_of, is_integer
from lockstep.values.fused import multiply_add
from lockstep.values.lanes import from_values

EXACT, PROMOTE, SAFE, UNSAFE = range(4)
"""How good a conversion is: no conversion, to a wider type of the same kind, to a type that holds most
values, to any other type."""

_WIDENING = ("bhiq", "BHIQ", "efd", "FD")
_HOLDING = ("?b", "?B", "Bh", "Hi", "Iq", "be", "hf", "id", "qd", "Qd")
# No complex type converts to a real type.
_COMPLEX = ("fF", "dD")
_LOSING = ("he", "if")


@cache
def conversions() -> dict:
    """Return a map from (letter of the given type, letter of the wanted type) to Numba's rating.

    A rating is EXACT, PROMOTE, SAFE or UNSAFE. It is UNSAFE + 1 if there is no conversion.
    """
    letters = "?bhiqBHIQefdFD"
    found = {(a, b): EXACT if a == b else UNSAFE + 1 for a, b in product(letters, repeat=2)}
    for chain in _WIDENING:
        for small, large in pairwise(chain):
            found[small, large], found[large, small] = PROMOTE, UNSAFE
    for small, large in _HOLDING:
        found[small, large], found[large, small] = SAFE, UNSAFE
    for part, whole in _COMPLEX:
        found[part, whole] = SAFE
    for small, large in _LOSING:
        found[small, large] = found[large, small] = UNSAFE
    for through, a, b in product(letters, repeat=3):
        found[a, b] = min(found[a, b], max(found[a, through], found[through, b]))
    return found


def rating(given: str, wanted: str) -> tuple:
    """Return how much conversion ``given`` types need to become ``wanted``. The smallest rating is best."""
    kinds = [conversions()[pair] for pair in zip(given, wanted)]
    return kinds.count(UNSAFE), kinds.count(SAFE), kinds.count(PROMOTE)


class Function:
    """A function that kernels call with numbers.

    ``compute`` takes arrays or NumPy scalars of the types in a signature, and returns the result, or a tuple
    of results. ``counted``: the name under which a call counts as floating-point arithmetic, or None if it
    does not count. ``kinds``: NumPy's letters for the kinds that arguments may have before they are cast.
    ``without_code``: NumPy's letters for types of the first argument that Numba chooses, but for which it has
    no code.
    """

    def __init__(
        self,
        name: str,
        signatures: str,
        compute,
        counted: str | None = None,
        kinds: str = "biufc",
        without_code: str = "",
    ):
        self.name, self.compute, self.counted, self.kinds = name, compute, counted, kinds
        self.without_code = without_code
        self.signatures = [tuple(signature.split(":")) for signature in signatures.split()]
        self._chosen: dict = {}

    def __call__(self, machine, *values):
        results, wanted = self._signature(values)
        dtypes = [_dtype(letter) for letter in wanted]
        # If the arguments are integers, the result's type is the one in which Numba computes.
        floats = [letter for letter in wanted + results if letter in "efdFD"]
        if self.counted and floats:
            machine.count_arithmetic(machine.site, self.counted, _dtype(floats[0].lower()))
        if any(isinstance(value, Unknown) for value in values):
            found = tuple(unknown(_dtype(letter)) for letter in results)
        else:
            found = self.compute(*(_as(machine, dtype, value) for dtype, value in zip(dtypes, values)))
            found = found if isinstance(found, tuple) else (found,)
            found = tuple(_in_kernel(value, _dtype(letter)) for value, letter in zip(found, results))
        return found if len(results) > 1 else found[0]

    def _signature(self, values) -> tuple:
        dtypes = tuple(map(dtype_of, values))
        if dtypes not in self._chosen:
            self._chosen[dtypes] = self._choose(dtypes, values)
        return self._chosen[dtypes]

    def _choose(self, dtypes, values=()) -> tuple:
        given = [None if dtype is None else letter_of(dtype) for dtype in dtypes]
        fitting = [s for s in self.signatures if len(s[1]) == len(given)]
        if not fitting:
            counts = sorted({len(wanted) for _, wanted in self.signatures})
            raise KernelTypeError(f"{self.name}() takes {_counted(counts)}, not {len(given)}")
        if not all(letter is not None and (letter, letter) in conversions() for letter in given):
            raise KernelTypeError(f"{self.name}() takes numbers, not {_shown(values, dtypes)}")
        possible = [s for s in fitting if all(conversions()[pair] <= UNSAFE for pair in zip(given, s[1]))]
        if not possible or any(dtype.kind not in self.kinds for dtype in dtypes):
            raise KernelTypeError(f"Numba has no {self.name}() of {_shown(values, dtypes)}")
        chosen = min(possible, key=lambda signature: rating(given, signature[1]))
        if chosen[1][0] in self.without_code:
            raise KernelTypeError(
                f"Numba has no code of {self.name}() for {_dtype(chosen[1][0])} on a GPU; convert "
                f"{_shown(values, dtypes)} to a wider type"
            )
        return chosen

    def emulation(self) -> Emulation:
        return Emulation(self)


def _counted(counts: list) -> str:
    """Return a text such as ``2 arguments`` or ``1 or 2 arguments``."""
    return f"{' or '.join(map(str, counts))} argument{'s' * (counts != [1])}"


def _shown(values, dtypes) -> str:
    """Return a text such as ``float32 and the array x``."""
    pairs = zip(values or dtypes, dtypes)
    return " and ".join(kind_of(value) if dtype is None else str(dtype) for value, dtype in pairs)


@cache
def _dtype(letter: str) -> np.dtype:
    return INT64 if letter == "q" else np.dtype(letter)


def letter_of(dtype: np.dtype) -> str:
    """Return NumPy's letter for a type. Every 64-bit integer type has ``q``, or ``Q`` if it is unsigned."""
    if dtype.kind in "iu":
        letter = {1: "b", 2: "h", 4: "i", 8: "q"}[dtype.itemsize]
        return letter.upper() if dtype.kind == "u" else letter
    return dtype.char


def _as(machine, dtype, value):
    """Return an argument as an array or NumPy scalar of ``dtype``."""
    value = machine.plain(value if dtype_of(value) == dtype else machine.cast(dtype, value))
    return value if isinstance(value, (np.ndarray, np.generic)) else dtype.type(value)


def _in_kernel(value, dtype):
    """Return a result in the form in which kernels hold numbers."""
    if np.ndim(value):
        return from_values(value.astype(dtype)) if is_integer(dtype) else value.astype(dtype, copy=False)
    number = np.asarray(value).astype(dtype)[()]
    return number.item() if dtype in (BOOL, INT64) else number


def by_value(function, undefined=math.nan, inputs=1):
    """Return a NumPy function that applies a function of ``math`` to each element.

    Where that raises ValueError the result is ``undefined``, and where it raises OverflowError infinity.
    """

    def computed(*values):
        try:
            return function(*values)
        except ValueError:
            return undefined
        except OverflowError:
            return math.inf

    over_arrays = np.frompyfunc(computed, inputs, 1)
    return lambda *values: np.asarray(over_arrays(*values), np.float64)


erf, erfc = by_value(math.erf), by_value(math.erfc)
lgamma = by_value(math.lgamma, math.inf)
remainder = by_value(math.remainder, inputs=2)


def gamma(x):
    """Return the gamma function of x. It is infinite at zero, and NaN at negative integers."""
    return np.where(x == 0, np.copysign(np.inf, x), _gamma(x))


_gamma = by_value(math.gamma)


def radians(x):
    return x * x.dtype.type(math.pi / 180)


def degrees(x):
    return x * x.dtype.type(180 / math.pi)


def integer_power(x, n):
    """Return ``x ** n``, computed in the type of x. n may be an integer or a float."""
    return np.power(x, np.asarray(n).astype(x.dtype))


# ---- math ----

_ONE_FLOAT = "d:q d:Q f:f d:d"
_TWO_FLOATS = "f:ff d:dd"

_UNARY = {
    "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atanh": np.arctanh, "cosh": np.cosh, "erf": erf, "erfc": erfc, "expm1": np.expm1, "gamma": gamma,
    "lgamma": lgamma, "log1p": np.log1p, "sinh": np.sinh, "tan": np.tan, "degrees": degrees,
    "radians": radians,
}  # fmt: skip
_UNARY_OR_HALF = {
    "ceil": np.ceil, "cos": np.cos, "exp": np.exp, "exp2": np.exp2, "fabs": np.abs, "floor": np.floor,
    "log": np.log, "log10": np.log10, "log2": np.log2, "sin": np.sin, "sqrt": np.sqrt, "tanh": np.tanh,
    "trunc": np.trunc,
}  # fmt: skip
_BINARY = {"copysign": np.copysign, "fmod": np.fmod, "nextafter": np.nextafter, "remainder": remainder}
_PREDICATES = {"isfinite": np.isfinite, "isinf": np.isinf, "isnan": np.isnan}


def _math() -> dict:
    found = {name: Function(name, _ONE_FLOAT, compute, name) for name, compute in _UNARY.items()}
    for name, compute in _UNARY_OR_HALF.items():
        found[name] = Function(name, f"{_ONE_FLOAT} e:e", compute, name)
    for name, compute in _BINARY.items():
        found[name] = Function(name, _TWO_FLOATS, compute, name)
    for name, compute in _PREDICATES.items():
        found[name] = Function(name, "?:q ?:Q ?:f ?:d", compute)
    for name, compute in (("atan2", np.arctan2), ("hypot", np.hypot)):
        found[name] = Function(name, f"d:qq d:QQ {_TWO_FLOATS}", compute, name)
    found["pow"] = Function("pow", f"{_TWO_FLOATS} f:fi d:di", integer_power, "pow")
    found["frexp"] = Function("frexp", "fi:f di:d", np.frexp, "frexp")
    found["ldexp"] = Function("ldexp", "f:fi d:di", np.ldexp, "ldexp")
    found["modf"] = Function("modf", "dd:d ff:f", np.modf, "modf")
    return found


MATH_FUNCTIONS = _math()

# ---- cmath ----

_COMPLEX_UNARY = {
    "acos": np.arccos, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan, "atanh": np.arctanh,
    "cos": complex_numbers.cosine, "exp": complex_numbers.exponential, "sin": complex_numbers.sine,
    "sqrt": np.sqrt, "tan": complex_numbers.tangent,
}  # fmt: skip
_COMPLEX_ONLY = {
    "acosh": ("D:F D:D", lambda z: np.arccosh(z.astype(np.complex128))),
    "cosh": ("F:F D:D", complex_numbers.hyperbolic_cosine),
    "log10": ("D:F D:D", complex_numbers.logarithm_to_10),
    "phase": ("f:F d:D", np.angle),
    "polar": ("ff:F dd:D", lambda z: (np.abs(z), np.angle(z))),
    "sinh": ("F:F D:D", complex_numbers.hyperbolic_sine),
    "tanh": ("D:F D:D", lambda z: complex_numbers.hyperbolic_tangent(z.astype(np.complex128))),
}


def _logarithm(z, base=None):
    return np.log(z) if base is None else complex_numbers.quotient(np.log(z), np.log(base))


def _cmath() -> dict:
    """Return the functions of cmath. As in Numba, some cast real numbers, and others refuse them."""
    found = {
        name: Function(f"cmath.{name}", "F:F D:D", compute, name) for name, compute in _COMPLEX_UNARY.items()
    }
    for name, (signatures, compute) in _COMPLEX_ONLY.items():
        found[name] = Function(f"cmath.{name}", signatures, compute, name, kinds="c")
    for name, compute in _PREDICATES.items():
        found[name] = Function(f"cmath.{name}", "?:F ?:D", compute)
    found["log"] = Function("cmath.log", "F:F D:D F:FF D:DD", _logarithm, "log")
    found["rect"] = Function("cmath.rect", "F:ff D:dd", complex_numbers.of_polar, "rect", kinds="f")
    return found


CMATH_FUNCTIONS = _cmath()

# ---- NumPy ----

_NUMBERS = "bBhHiIlLqQfdFD"
_MATH_NAMES = {"arc" + name: "a" + name for name in ("cos", "cosh", "sin", "sinh", "tan", "tanh", "tan2")}
_MATH_NAMES |= {"deg2rad": "radians", "rad2deg": "degrees", "divide": "div", "fmin": "min", "fmax": "max"}
_MATH_NAMES |= {"minimum": "min", "maximum": "max"}


class Ufunc(Function):
    """A ufunc of NumPy. As in Numba, a call has the types of the first of NumPy's loops that fits.

    ``letters``: NumPy's letters for the types for which Numba has code.
    """

    def __init__(self, name: str, letters: str, counted: bool):
        self.ufunc, self.letters = getattr(np, name), letters
        super().__init__(f"np.{name}", "", self.ufunc, _MATH_NAMES.get(name, name) if counted else None)

    def __call__(self, machine, *values):
        inputs = self.ufunc.nin
        if len(values) == inputs + 1:
            return self._into(machine, values[-1], values[:-1])
        if len(values) == inputs and any(isinstance(value, ARRAYS) for value in values):
            raise KernelTypeError(
                f"{self.name}() of arrays needs an array for its result as argument {inputs + 1}, because a "
                "kernel makes no arrays; or call it with elements"
            )
        return super().__call__(machine, *values)

    def _into(self, machine, out, values):
        """Compute all elements of the array ``out``, one after another in each thread, and return it."""
        if not isinstance(out, ARRAYS):
            raise KernelTypeError(
                f"{self.name}() takes {_counted([self.ufunc.nin])} and an array for the result, not "
                f"{machine.kind_of(out)}"
            )
        (letter,), _ = self._choose([dtype_of_elements(value) for value in values], values)
        if not np.can_cast(_dtype(letter), out.dtype, "same_kind"):
            raise KernelTypeError(
                f"Numba stores no {_dtype(letter)} of {self.name}() in {out.name}, of {out.dtype}"
            )
        machine.assign_computed(
            machine.site, out, values, lambda *numbers: super(Ufunc, self).__call__(machine, *numbers)
        )
        return out

    def _choose(self, dtypes, values=()) -> tuple:
        if len(dtypes) != self.ufunc.nin:
            raise KernelTypeError(
                f"{self.name}() takes {_counted([self.ufunc.nin])}, and perhaps an array for the result, not "
                f"{len(dtypes)}"
            )
        if all(dtype is not None and dtype.kind in "biufc" and dtype.char != "e" for dtype in dtypes):
            kinds = {dtype.kind for dtype in dtypes}
            loops = self._loops(dtypes, mixed=bool(kinds & set("fc")) and bool(kinds & set("iu")))
            wanted, results = next(loops, ("none", ""))
            if set(wanted) <= set(self.letters):
                return tuple(letter_of(np.dtype(code)) for code in results), tuple(
                    letter_of(np.dtype(code)) for code in wanted
                )
        raise KernelTypeError(f"Numba cannot compile {self.name}() for {_shown(values, dtypes)} on a GPU")

    def _loops(self, dtypes, mixed):
        for loop in self.ufunc.types:
            wanted, results = loop.split("->")
            if set("egG") & set(loop):  # Numba skips the loops for float16 and long double.
                continue
            if all(_fits(dtype, np.dtype(code), mixed) for dtype, code in zip(dtypes, wanted)):
                yield wanted, results


def dtype_of_elements(value):
    """Return the dtype of an array's elements, or of a number."""
    return value.dtype if isinstance(value, ARRAYS) else dtype_of(value)


def _fits(dtype, wanted, mixed) -> bool:
    """Tell whether an argument may be cast to a loop's type.

    ``mixed``: whether a call has integers and floats, so that an integer may become any float.
    """
    return np.can_cast(dtype, wanted) or (mixed and dtype.kind in "iu" and wanted.kind in "fc")


def _numpy() -> dict:
    names = {
        "fd": "arctan2 deg2rad degrees hypot rad2deg radians",
        "fdFD": "arccos arccosh arcsin arcsinh arctan arctanh cos cosh divide log log10 log2 sin sinh "
        "tan tanh",
        _NUMBERS: "fmax fmin maximum minimum",
    }
    uncounted = {
        _NUMBERS: "conjugate",
        f"?{_NUMBERS}": "equal greater greater_equal isnan less less_equal logical_and logical_not "
        "logical_or logical_xor not_equal",
        "?bBhHiIlLqQ": "bitwise_and bitwise_or bitwise_xor invert",
        "bBhHiIlLqQ": "left_shift right_shift",
    }
    found = {name: Ufunc(name, letters, True) for letters in names for name in names[letters].split()}
    found |= {
        name: Ufunc(name, letters, False) for letters in uncounted for name in uncounted[letters].split()
    }
    return found | {"conj": found["conjugate"]}


def _angle(z, degrees=False):
    """Return ``np.angle`` as a float64. Like Numba, compute it in the type of the number's parts."""
    real = z.real if z.dtype.kind == "c" else z
    return np.arctan2(z.imag, real).astype(np.float64) * np.where(degrees, 180 / math.pi, 1.0)


_REAL_NUMBERS = "bhiqBHIQefd"
PARTS_BY_NUMPY = {
    name: Function(
        f"np.{name}", " ".join(map("{0}:{0}".format, _REAL_NUMBERS)) + " f:F d:D", getattr(np, name)
    )
    for name in ("real", "imag")
}
for _part in PARTS_BY_NUMPY.values():
    _part.kinds = "iufc"  # A boolean has no parts.
PARTS_BY_NUMPY["angle"] = Function(
    "np.angle", "d:? d:e d:f d:d d:F d:D d:?? d:f? d:d? d:F? d:D?", _angle, "atan2", without_code="?e"
)


NUMPY_FUNCTIONS = _numpy()

# ---- Python ----


def rounded(x, digits=None):
    """Return ``round(x)`` or ``round(x, digits)``, with halves rounded to even.

    Like Numba, scale x in float64 and round the product to an int64.
    """
    x = x.astype(np.float64)
    if digits is None:
        return _whole(x)
    digits = np.asarray(digits)
    first, second = np.where(digits > 22, digits - 22, np.abs(digits)), np.where(digits > 22, 1e22, 1.0)
    first = _POWERS_OF_TEN[np.minimum(first, len(_POWERS_OF_TEN) - 1)]
    scaled = (x * first) * second
    up, down = (_whole(scaled) / second) / first, _whole(x / first) * first
    kept = ~np.isfinite(x) | ((digits >= 0) & np.isinf(scaled))
    return np.where(kept, x, np.where(digits >= 0, up, down))


def _whole(x):
    return truncated(np.rint(x), INT64)


def _power(number: float, exponent: int) -> float:
    """Return a power by repeated squaring, which rounds like Numba's power."""
    result = 1.0
    while exponent:
        result *= number if exponent & 1 else 1.0
        number, exponent = number * number, exponent >> 1
    return result


# The last power is infinite.
_POWERS_OF_TEN = np.array([_power(10.0, exponent) for exponent in range(310)], np.float64)


def floor_and_rest(x, y):
    """Return ``divmod(x, y)``."""
    return np.floor_divide(x, y), np.remainder(x, y)


PYTHON_FUNCTIONS = {
    "round": Function("round", "q:f q:d f:fq d:dq", rounded, "round"),
    "divmod": Function("divmod", "qq:qq QQ:QQ ff:ff dd:dd", floor_and_rest, "div"),
}

# ---- numba.cuda ----


def _bits(x) -> int:
    return x.dtype.itemsize * 8


def _unsigned(x):
    return x.view(f"u{x.dtype.itemsize}")


def population_count(x):
    return np.bitwise_count(_unsigned(x))


def leading_zeros(x):
    """Count the zeros above the highest bit that is set."""
    x, count = _unsigned(x), np.zeros(np.shape(x), np.int64)
    for bit in range(_bits(x)):
        count = np.where((x >> x.dtype.type(bit)) != 0, bit + 1, count)
    return _bits(x) - count


def first_set(x):
    """Return the position of the lowest bit that is set, counted from 1, or 0 if there is none."""
    x = _unsigned(x)
    lowest = x & (~x + x.dtype.type(1))
    return np.where(x == 0, 0, _bits(x) - leading_zeros(lowest))


def reversed_bits(x):
    found = x ^ x
    for bit in range(_bits(x)):
        found = found | (((x >> x.dtype.type(bit)) & x.dtype.type(1)) << x.dtype.type(_bits(x) - 1 - bit))
    return found


_SAME = " ".join(f"{letter}:{letter}" for letter in "bhiqBHIQ")
_HALF = {
    "hadd": np.add, "hsub": np.subtract, "hmul": np.multiply, "hdiv": np.divide, "hneg": np.negative,
    "habs": np.abs, "hmax": np.fmax, "hmin": np.fmin, "hsin": np.sin, "hcos": np.cos, "hlog": np.log,
    "hlog10": np.log10, "hlog2": np.log2, "hexp": np.exp, "hexp2": np.exp2, "hexp10": lambda x: 10.0**x,
    "hfloor": np.floor, "hceil": np.ceil, "htrunc": np.trunc, "hrint": np.rint, "hsqrt": np.sqrt,
    "hrsqrt": lambda x: 1 / np.sqrt(x), "hrcp": lambda x: 1 / x, "htanh": np.tanh,
}  # fmt: skip
_HALF_COMPARISONS = {
    "heq": np.equal, "hne": np.not_equal, "hge": np.greater_equal, "hgt": np.greater,
    "hle": np.less_equal, "hlt": np.less,
}  # fmt: skip


def _half(name, compute):
    """Return a function of float16 that computes in float64 and rounds once."""
    inputs = {"hadd": 2, "hsub": 2, "hmul": 2, "hdiv": 2, "hmax": 2, "hmin": 2}.get(name, 1)
    wide = lambda *values: compute(*(value.astype(np.float64) for value in values))  # noqa: E731
    return Function(f"fp16.{name}", f"e:{'e' * inputs}", wide, name.removeprefix("h"))


CUDA_FUNCTIONS = {
    "popc": Function("popc", _SAME, population_count),
    "clz": Function("clz", _SAME, leading_zeros),
    "ffs": Function("ffs", " ".join(f"I:{letter}" for letter in "bhiqBHIQ"), first_set, without_code="bhBH"),
    "brev": Function("brev", "I:I Q:Q", reversed_bits),
    "cbrt": Function("cbrt", "f:f d:d", np.cbrt, "cbrt"),
    "fp16.hfma": Function("fp16.hfma", "e:eee", multiply_add, "fma"),
    **{f"fp16.{name}": _half(name, compute) for name, compute in _HALF.items()},
    **{f"fp16.{n}": Function(f"fp16.{n}", "?:ee", compute) for n, compute in _HALF_COMPARISONS.items()},
}
