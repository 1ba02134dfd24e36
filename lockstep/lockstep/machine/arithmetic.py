"""Computes for all lanes at once, with Numba's types, and counts floating-point operations."""

import math

import numpy as np

from lockstep.errors import KernelTypeError
from lockstep.memory.records import RECORDS
from lockstep.memory.storage import ARRAYS, Unbound, Unknown, unknown
from lockstep.registry import Emulation
from lockstep.values import lanes
from lockstep.values.complex_numbers import FLOP, IN_PARTS, component, joined
from lockstep.values.dtypes import (
    BOOL,
    COMPLEX64,
    COMPLEX128,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT64,
    TIMES,
    UINT64,
    dtype_of,
    is_integer,
    promote,
    promote_division,
    promote_power,
    promote_remainder,
    promote_shift,
    promote_sign,
    unify,
)
from lockstep.values.enums import Member
from lockstep.values.fused import remainder
from lockstep.values.lanes import Lanes
from lockstep.values.vectors import Vector

from .times import computed
from .words import kind_of

_OTHER = np.dtype(object)  # No number of a kernel has this dtype.


class Arithmetic:
    """The part of the machine that computes. ``site`` is the number of an operation's place in the source."""

    # ---- integers or floats ----

    def add(self, site, a, b):
        if type(a) is int and type(b) is int:
            return _int64(a + b)
        if self._integers(a, b):
            return self.settle(lanes.add(a, b), a, b)
        if isinstance(a, tuple) and isinstance(b, tuple):
            return (*a, *b)
        return self._float(site, "add", np.add, a, b)

    def sub(self, site, a, b):
        if type(a) is int and type(b) is int:
            return _int64(a - b)
        if self._integers(a, b):
            return self.settle(lanes.subtract(a, b), a, b)
        # The hardware has no subtraction: it adds the negated operand.
        return self._float(site, "add", np.subtract, a, b)

    def mul(self, site, a, b):
        if type(a) is int and type(b) is int:
            return _int64(a * b)
        if self._integers(a, b):
            return self.settle(lanes.multiply(a, b), a, b)
        return self._float(site, "mul", np.multiply, a, b)

    def div(self, site, a, b):
        dtype = promote_division(self._dtype(a), self._dtype(b))
        if dtype.kind == "c":
            self._refuse_zero(site, b, "complex division by zero")
        elif self.debug:
            self._refuse_zero(site, b, "division by zero")
        return self._float(site, "div", np.true_divide, a, b, dtype)

    def divide_element(self, site, element, divisor):
        """Carry out ``x[i] /= y``. Refuse it for two integers, whose quotient Numba cannot store there."""
        if is_integer(self._dtype(element)) and is_integer(self._dtype(divisor)):
            raise KernelTypeError(
                "Numba does not compile /= of an integer element by an integer: write x[i] = x[i] / y, or "
                "//= for whole numbers"
            )
        return self.div(site, element, divisor)

    def floordiv(self, site, a, b):
        if self._integers(a, b):
            if self.debug:
                self._refuse_zero(site, b, "integer division by zero")
            if self.log is not None:
                self.log.note_divisor("//", a, b)
            if type(a) is int and type(b) is int:
                return _int64(a // b) if b else 0
            return self.settle(lanes.floor_divide(a, b), a, b)
        dtype = require_real(promote_remainder(self._dtype(a), self._dtype(b)), "//")
        if self.debug:
            self._refuse_zero(site, b, "division by zero")
        return self._float(site, "div", np.floor_divide, a, b, dtype)

    def mod(self, site, a, b):
        if self._integers(a, b):
            if self.debug:
                self._refuse_zero(site, b, "integer modulo by zero")
            if self.log is not None:
                self.log.note_divisor("%", a, b)
            if type(a) is int and type(b) is int:
                return a % b if b else 0
            return self.settle(lanes.modulo(a, b), a, b)
        dtype = require_real(promote_remainder(self._dtype(a), self._dtype(b)), "%")
        if self.debug:
            self._refuse_zero(site, b, "modulo by zero")
        return self._float(site, "div", remainder if dtype.kind == "f" else np.remainder, a, b, dtype)

    def pow(self, site, a, b):
        dtype = promote_power(self._dtype(a), self._dtype(b))
        if self._integers(a, b) and is_integer(dtype):
            if self.log is not None:
                self.log.note_exact("**", a, b)
            return self.settle(lanes.power(a, b), a, b)
        return self._float(site, "pow", np.power, a, b, dtype)

    def bits(self, site, op, a, b):
        """Return the result of &, |, ^, << or >>."""
        if isinstance(a, Unknown) or isinstance(b, Unknown):
            return self._unknown_bits(op, self._dtype(a), self._dtype(b))
        if not self._integers(a, b):
            raise KernelTypeError(f"{op} needs integers, not {self._dtype(a)} and {self._dtype(b)}")
        if self.log is not None:
            self.log.note_exact(op, a, b)
        return self.settle(lanes.bitwise(op, a, b), a, b)

    @staticmethod
    def _unknown_bits(op, a, b):
        if not (is_integer(a) and is_integer(b)):
            raise KernelTypeError(f"{op} needs integers, not {a} and {b}")
        if op in ("<<", ">>"):
            return unknown(promote_shift(a, b))
        return unknown(BOOL if a == b == BOOL else promote(a, b))

    def neg(self, site, a):
        if type(a) is int:
            return _int64(-a)
        if type(a) is float:
            return -a
        dtype = promote_sign(self._dtype(a))
        if self._integers(a):
            return self._widened(self.settle(lanes.subtract(_zero(dtype), a), a), self._dtype(a), dtype)
        if dtype.kind in TIMES:
            return computed(np.negative, a)
        # A GPU negates an operand for free, so no operation is counted.
        return np.negative(self._typed(a, dtype))

    def pos(self, a):
        """Return ``+a``, which turns an integer into one of 64 bits."""
        return self.converted(promote_sign(self._dtype(a)), a)

    def invert(self, site, a):
        dtype = promote_sign(self._dtype(a))
        if self._dtype(a) == BOOL:
            return self.not_(a)
        if isinstance(a, Unknown) and is_integer(dtype):
            return unknown(dtype)
        if not self._integers(a):
            raise KernelTypeError(f"~ needs an integer, not {self._dtype(a)}")
        flipped = lanes.bitwise("^", a, -1 if dtype == INT64 else dtype.type(2**64 - 1))
        return self._widened(self.settle(flipped, a), self._dtype(a), dtype)

    def _widened(self, result, narrow, wide):
        """Return ``-x`` or ``~x``, which Numba computes in the type of x and then widens to 64 bits."""
        if narrow == BOOL or narrow.itemsize == wide.itemsize:
            return result
        return self.cast(wide, self.cast(narrow, result))

    # ---- fused multiply-add ----

    def fma(self, site, x, y, z):
        """Return x * y + z, one instruction for floats of one type. It rounds twice here, once on a GPU."""
        return self._fused(site, x, y, z, np.add)

    def fma_sub(self, site, x, y, z):
        """Return x * y - z."""
        return self._fused(site, x, y, z, np.subtract)

    def sub_fma(self, site, z, x, y):
        """Return z - x * y."""
        return self._fused(site, x, y, z, lambda product, z, **dtype: np.subtract(z, product, **dtype))

    def _fused(self, site, x, y, z, combine):
        if self._integers(x, y):
            product = self.mul(site, x, y)
            if self._integers(product, z):
                return self._combined(site, combine, product, z)
            return self._float(site, "add", combine, product, z)
        factor = promote(self._dtype(x), self._dtype(y))
        result = promote(factor, self._dtype(z))
        if result.kind in TIMES:
            return self._combined(site, combine, self.mul(site, x, y), z)
        if factor != result:
            return self._float(site, "add", combine, self._float(site, "mul", np.multiply, x, y), z)
        self._count_float(site, "fma", result)
        product = self._apply(np.multiply, x, y, result)
        return self._apply(combine, product, z, result)

    def _combined(self, site, combine, product, z):
        step = {np.add: self.add, np.subtract: self.sub}.get(combine)
        return step(site, product, z) if step else self.sub(site, z, product)

    def _factor_type(self, factors):
        return promote(self._dtype(factors[0]), self._dtype(factors[-1]))

    # ---- comparisons and logic ----

    def compare(self, op, a, b):
        if self._integers(a, b) and not _compares_as_floats(a, b):
            outcome = lanes.compare(op, a, b)
            if self.log is not None:
                self.log.note_comparison(op, a, b, outcome)
            return outcome
        if isinstance(a, tuple) and isinstance(b, tuple):
            return self.compare_tuples(op, a, b)
        if op in ("==", "!=") and (a is None or b is None):
            return (a is b) == (op == "==")
        if isinstance(a, Member) or isinstance(b, Member):
            return _compare_members(op, a, b)
        # _dtype refuses a value that is not a number.
        dtype = FLOAT64 if _compares_as_floats(a, b) else promote(self._dtype(a), self._dtype(b))
        if op not in ("==", "!="):
            require_real(dtype, op)
        if isinstance(a, Unknown) or isinstance(b, Unknown):
            return unknown(np.bool_)
        if is_integer(dtype):
            return self._truth(lanes.COMPARE[op](self.plain(a), self.plain(b)))
        return self._truth(self._apply(lanes.COMPARE[op], a, b, dtype))

    def _truth(self, values):
        if np.ndim(values) == 0:
            return bool(values)
        return lanes.from_values(values)

    def not_(self, a):
        if isinstance(a, tuple):
            raise KernelTypeError("Numba has no `not` of a tuple: compare len(...) with 0")
        a = self.truth(a)
        return not a if type(a) is bool else lanes.logical_not(a)

    def and_(self, a, rest):
        """Return ``a and rest()``. Only lanes in which ``a`` is true evaluate ``rest()``."""
        a = self.truth(a)
        if type(a) is bool:
            return self.truth(rest()) if a else False
        return self._both("&", a, self._under(a, rest, holds=True))

    def or_(self, a, rest):
        a = self.truth(a)
        if type(a) is bool:
            return True if a else self.truth(rest())
        return self._both("|", a, self._under(a, rest, holds=False))

    def _under(self, condition, evaluate, holds):
        saved = self.unit.mask
        self.unit.mask = saved.where(condition) if holds else saved.where_not(condition)
        try:
            return self.truth(evaluate()) if self.unit.mask.any else holds
        finally:
            self.unit.mask = saved

    @staticmethod
    def _both(op, a, b):
        if type(b) is bool:
            return (a if b else False) if op == "&" else (True if b else a)
        return lanes.bitwise(op, a, b)

    def first_true(self, a, rest):
        """Return the value of ``a or rest()``: the first of the two that is true, else the second."""
        if type(a) is bool:
            return a or rest()
        return self.or_(a, rest) if self._dtype(a) == BOOL else self.select(a, lambda: a, rest)

    def first_false(self, a, rest):
        """Return the value of ``a and rest()``: the first of the two that is false, else the second."""
        if type(a) is bool:
            return a and rest()
        return self.and_(a, rest) if self._dtype(a) == BOOL else self.select(a, rest, lambda: a)

    def reinterpreted(self, value, kind=None):
        """Return ``value.view(kind)``: the bits of a number, read as a number of another type."""
        old, new = self._dtype(value), getattr(kind, "dtype", None)
        if not isinstance(new, np.dtype) or {old.kind, new.kind} - set("iuf") or old.itemsize != new.itemsize:
            raise KernelTypeError(
                f"a {old} value can be viewed as an integer or a float of {8 * old.itemsize} bits only"
            )
        if isinstance(value, Unknown):
            return unknown(new)
        bits = np.ascontiguousarray(self.plain(value), old)
        return self._as_numbers(bits.view(new).reshape(np.shape(self.plain(value)))[()])

    def converted(self, kind, value):
        """Return a number or a tuple cast to a type. The type is a dtype's name, or a tuple of such names."""
        if value is self.unbound:
            return value
        if isinstance(kind, tuple):
            return tuple(map(self.converted, kind, value))
        return self.cast(np.dtype(kind), value)

    def choose(self, condition, a, b):
        """Return, lane by lane, ``a`` where the condition holds and ``b`` elsewhere."""
        if a is b:
            return a
        if isinstance(a, Member) and isinstance(b, Member):
            return _one_member(a, b)
        if isinstance(a, ARRAYS) and isinstance(b, ARRAYS):
            return self.join_arrays(condition.pattern, a, b)
        if isinstance(a, RECORDS):
            return self.joined_records(condition.pattern, a, b)
        if isinstance(a, Vector) or isinstance(b, Vector):
            require_vectors_alike(a, b)
            return a.joined(b, lambda x, y: self.choose(condition, x, y))
        if isinstance(a, tuple) or isinstance(b, tuple):
            require_tuples_alike(a, b)
            return tuple(self.choose(condition, x, y) for x, y in zip(a, b))
        dtype = unify(self._dtype(a), self._dtype(b))
        if isinstance(a, Unknown) or isinstance(b, Unknown):
            return unknown(dtype)
        chosen = condition.pattern.array
        if is_integer(dtype):
            return self._choose_integers(condition.pattern, a, b, dtype)
        return np.where(chosen, self._typed(a, dtype), self._typed(b, dtype))

    @staticmethod
    def _choose_integers(condition, a, b, dtype):
        if lanes.split(a) == lanes.split(b):
            return a
        return lanes.choose(condition, a, b, dtype)

    # ---- functions ----

    def minimum(self, site, a, b):
        return self._extreme(site, "min", lanes.minimum, np.fmin, a, b)

    def maximum(self, site, a, b):
        return self._extreme(site, "max", lanes.maximum, np.fmax, a, b)

    def _extreme(self, site, name, on_integers, on_floats, a, b):
        dtype = require_real(unify(self._dtype(a), self._dtype(b)), f"{name}()")
        # In Numba, min() and max() of an int64 and a uint64 compute in float64.
        if not self._integers(a, b) or not is_integer(dtype):
            return self._float(site, name, on_floats, a, b, dtype)
        if self.log is not None:
            self.log.note_comparison("<", a, b, None)
        return self.settle(on_integers(a, b), a, b)

    def absolute(self, site, a):
        dtype = self._dtype(a)
        if is_integer(dtype):
            dtype = INT8 if dtype == BOOL else dtype
            return self.converted(dtype, a if dtype.kind == "u" else self.maximum(site, a, self.neg(site, a)))
        if dtype.kind == "c":
            self._count_float(site, "hypot", component(dtype))
            return np.hypot(self.component(a, "real"), self.component(a, "imag"))
        return computed(np.absolute, a) if dtype.kind in TIMES else np.abs(self._typed(a, dtype))

    def complex_of(self, real, imag=None):
        """Return ``complex(real)`` or ``complex(real, imag)``."""
        dtypes = {self._dtype(part) for part in (real, imag) if part is not None}
        if dtypes & {BOOL, FLOAT16} or (imag is not None and any(dtype.kind == "c" for dtype in dtypes)):
            shown = " and ".join(sorted(dtype.name for dtype in dtypes))
            raise KernelTypeError(f"Numba has no complex() of {shown}: convert to float32 or float64 first")
        whole = COMPLEX64 if dtypes == {FLOAT32} else COMPLEX128
        if imag is None:
            return self.cast(whole, real)
        if isinstance(real, Unknown) or isinstance(imag, Unknown):
            return unknown(whole)
        return joined(*(self._typed(part, component(whole)) for part in (real, imag)))

    def component(self, value, name):
        """Return ``value.real`` or ``value.imag`` of a number, which must not be a boolean."""
        dtype = self._dtype(value)
        if dtype == BOOL:
            raise KernelTypeError(f"a boolean has no .{name}")
        if dtype.kind != "c":
            return value if name == "real" else self.cast(dtype, 0)
        if isinstance(value, Unknown):
            return unknown(component(dtype))
        part = getattr(value, name)
        # The part is a view of the whole, and the whole may change later.
        return part.copy() if isinstance(part, np.ndarray) else part

    def conjugate(self, value):
        """Return ``value.conjugate()``, which for a real number is the number itself."""
        return np.conjugate(value) if self._dtype(value).kind == "c" else value

    def cast(self, dtype, value):
        """Return a cast value: ``float32(value)``, ``uint32(value)``, ``int(value)``."""
        if isinstance(value, Unknown):
            return unknown(dtype)
        source = self._dtype(value)
        if dtype != BOOL or source == FLOAT16:
            require_fit(source, dtype)
        if is_integer(dtype) and is_integer(source):
            if self.log is not None and dtype.itemsize < 8:
                self.log.note_comparison("<", value, np.iinfo(dtype).max if dtype != BOOL else 0, None)
            return self.settle_cast(lanes.cast(value, dtype), value)
        if is_integer(dtype):
            if dtype == BOOL:
                return self._truth(self.plain(value) != 0)
            if source.kind in TIMES:
                return lanes.from_values(value.astype(INT64))
            values = truncated(self.plain(value), dtype)
            return lanes.from_values(values) if np.ndim(values) else uniform(lanes.from_values(values))
        return self._typed(value, dtype)

    # ---- types, results and costs of operations ----

    def _float(self, site, name, ufunc, a, b, dtype=None):
        if dtype is None:
            dtype = promote(self._dtype(a), self._dtype(b))
        if is_integer(dtype):
            # Integers whose values are known are computed elsewhere, so one of these is unknown.
            return unknown(dtype)
        self._count_float(site, name, dtype)
        return self._apply(ufunc, a, b, dtype)

    def _apply(self, ufunc, a, b, dtype):
        if type(a) is Unknown or type(b) is Unknown:
            return unknown(dtype)
        a, b = self.plain(a), self.plain(b)
        if dtype.kind in TIMES:
            return computed(ufunc, a, b)
        if dtype.kind == "c":
            ufunc = IN_PARTS.get(ufunc, ufunc)
        # NumPy takes None for float64 in such a comparison.
        if getattr(a, "dtype", _OTHER) == dtype and getattr(b, "dtype", _OTHER) == dtype:
            return ufunc(a, b)
        return ufunc(self._typed(a, dtype), self._typed(b, dtype))

    def _typed(self, value, dtype):
        value = self.plain(value)
        if isinstance(value, np.ndarray):
            return value.astype(dtype, copy=False)
        return dtype.type(value)

    @staticmethod
    def plain(value):
        """Return ``value`` as a NumPy array or scalar."""
        return value.values() if type(value) is Lanes else value

    @staticmethod
    def _dtype(value) -> np.dtype:
        dtype = dtype_of(value)
        if dtype is None or isinstance(value, type):
            raise KernelTypeError(_no_number(value))
        return dtype

    @staticmethod
    def _integers(*values) -> bool:
        """Return whether all of them are integers with known values."""
        for value in values:
            kind = type(value)
            if kind is not int and kind is not Lanes and kind is not bool:
                if isinstance(value, Unknown) or not isinstance(value, (np.integer, np.bool_)):
                    return False
        return True

    @staticmethod
    def settle(result: Lanes, *operands):
        """Return a plain number for a uniform result of uniform operands, and any other result as it is."""
        if result.pattern is lanes.ZERO or not any(type(operand) is Lanes for operand in operands):
            return uniform(result)
        return result

    @staticmethod
    def settle_cast(result: Lanes | bool, value):
        return result if type(value) is Lanes or type(result) is bool else uniform(result)

    def _refuse_zero(self, site, divisor, text):
        """Report a thread that divides by zero where Numba's code raises an exception."""
        if not isinstance(divisor, Unknown):
            self.raise_where(np.asarray(self.plain(divisor) == 0), site, "ZeroDivisionError", text)

    def _count_float(self, site, name, dtype):
        if dtype.kind in TIMES:
            return
        if dtype.kind != "c":
            self.count_arithmetic(site, name, dtype)
            return
        for part, times in FLOP[name]:
            self.count_arithmetic(site, part, component(dtype), times)


def _compares_as_floats(a, b) -> bool:
    """Tell whether Numba compares two integers as float64, as it does an uint64 and a signed one.

    With a number that float64 holds exactly, as most constants are, this makes no difference.
    """
    for number in (a, b):
        if type(number) is int and -(2**53) <= number <= 2**53:
            return False
    first, second = getattr(a, "dtype", INT64), getattr(b, "dtype", INT64)
    return first != second and UINT64 in (first, second) and "i" in (first.kind, second.kind)


def _compare_members(op, a, b) -> bool:
    """Return ``a op b`` of members of one enum that is no IntEnum."""
    if getattr(a, "kind", None) is not getattr(b, "kind", None) or op not in ("==", "!="):
        raise KernelTypeError(
            "Numba compares a member of an enum that is no IntEnum only with members of the same enum, and "
            f"only with == and !=: here {op} compares {kind_of(a)} and {kind_of(b)}; take their .value"
        )
    return (a == b) == (op == "==")


def _one_member(a: Member, b: Member) -> Member:
    if a != b:
        raise KernelTypeError(
            f"the emulator supports no variable that is one member of {a.kind.__name__} in some threads and "
            "another in others: use an IntEnum, or numbers"
        )
    return a


def require_fit(given: np.dtype, wanted: np.dtype):
    """Refuse what Numba does not convert: complex to real, float16 to boolean, times to other times."""
    if given == FLOAT16 and wanted == BOOL:
        raise KernelTypeError("Numba does not convert a float16 to a boolean: compare it, as in x != 0")
    if given.kind == "c" and wanted.kind != "c":
        raise KernelTypeError(
            f"Numba converts no {given} to {wanted}: take the .real part of the complex number, or its abs()"
        )
    if given.kind in TIMES or wanted.kind in TIMES:
        if given != wanted and (given.kind, wanted) != ("m", INT64):
            raise KernelTypeError(f"Numba converts no {given} to {wanted}")


def require_real(dtype: np.dtype, op: str) -> np.dtype:
    """Return ``dtype``. Raise KernelTypeError if it is complex."""
    if dtype.kind == "c":
        raise KernelTypeError(f"{op} needs real numbers, not {dtype}: Numba has no {op} of complex ones")
    return dtype


def _int64(number: int) -> int:
    """Return a value's low 64 bits as an int64."""
    return number if -(2**63) <= number < 2**63 else (number + 2**63) % 2**64 - 2**63


def truncated(values, dtype) -> np.ndarray:
    """Convert floats to integers as a GPU does: out of range, to the nearest number of 16 bits or more."""
    wide = np.dtype(f"{dtype.kind}{max(dtype.itemsize, 2)}")
    limits = np.iinfo(wide)
    # A NaN becomes the 64-bit integer of which only the top bit is set, or 0 in a narrower type.
    nothing = limits.min if wide == INT64 else 2**63 if wide == UINT64 else 0
    values = np.trunc(np.asarray(values, FLOAT64))
    inside = (values > float(limits.min) - 1) & (values < float(limits.max) + 1)
    whole = np.where(inside, values, 0).astype(wide)
    outside = np.where(values > 0, wide.type(limits.max), wide.type(limits.min))
    whole = np.where(inside, whole, np.where(np.isnan(values), wide.type(nothing), outside))
    return whole.astype(dtype)


def _zero(dtype):
    return dtype.type(0) if dtype == UINT64 else 0


def require_tuples_alike(a, b):
    """Raise KernelTypeError if one value is a tuple and the other is no tuple of the same length."""
    if not (isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b)):
        raise KernelTypeError(
            "a value is a tuple in some threads and something else, or a longer tuple, in others; "
            "Numba needs one type for both"
        )


def require_vectors_alike(a, b):
    """Raise KernelTypeError if one value is a vector and the other is no vector of the same type."""
    vectors = isinstance(a, Vector) and isinstance(b, Vector)
    if not vectors or list(map(dtype_of, a.parts)) != list(map(dtype_of, b.parts)):
        raise KernelTypeError(
            "a value is a vector in some threads and something else, or a vector of another type, in others; "
            "Numba needs one type for both"
        )


def uniform(value: Lanes):
    """Return the number that all lanes hold, typed as Numba types it."""
    number = value.pattern.array.flat[0].item() + value.offset
    if value.dtype == BOOL:
        return bool(number)
    return int(number) if value.dtype == INT64 else value.dtype.type(number)


def _no_number(value) -> str:
    if isinstance(value, Unbound):
        return "a variable is used before a value has been assigned to it"
    if value is None:
        return "a number is needed here, but the value is None"
    if hasattr(value, "storage"):
        return f"{value.name} is a whole array; a kernel computes with its elements, such as {value.name}[i]"
    if callable(value) or isinstance(value, Emulation):
        return "a number is needed here, but this is a function: it is called with parentheses, `(...)`"
    return f"a number is needed here, not {kind_of(value)}"


CONSTANTS = {"pi": math.pi, "e": math.e, "tau": math.tau, "inf": math.inf, "nan": math.nan}
