"""Arithmetic in a kernel: Numba's types, one operation for all lanes, floating-point operations counted."""

import math

import numpy as np

from . import lanes
from .dtypes import (
    BOOL,
    FLOAT64,
    INT64,
    dtype_of,
    is_integer,
    promote,
    promote_division,
    promote_power,
    promote_remainder,
    unify,
)
from .errors import DataDependent, KernelTypeError
from .findings import Finding
from .lanes import Lanes
from .memory import Unbound, Unknown, unknown


class Arithmetic:
    """The machine's arithmetic. ``site`` is the number of the operation in the source."""

    # ---- integers or floats ----

    def add(self, site, a, b):
        if type(a) is int and type(b) is int:
            return a + b
        if self._integers(a, b):
            return self.settle(lanes.add(a, b), a, b)
        return self._float(site, "add", np.add, a, b)

    def sub(self, site, a, b):
        if type(a) is int and type(b) is int:
            return a - b
        if self._integers(a, b):
            return self.settle(lanes.subtract(a, b), a, b)
        return self._float(site, "add", np.subtract, a, b)  # the hardware adds a negated operand

    def mul(self, site, a, b):
        if type(a) is int and type(b) is int:
            return a * b
        if self._integers(a, b):
            return self.settle(lanes.multiply(a, b), a, b)
        return self._float(site, "mul", np.multiply, a, b)

    def div(self, site, a, b):
        dtype = promote_division(self._dtype(a), self._dtype(b))
        return self._float(site, "div", np.true_divide, a, b, dtype)

    def floordiv(self, site, a, b):
        if self._integers(a, b):
            if self.log is not None:
                self.note_divisor("//", a, b)
            if type(a) is int and type(b) is int:
                return a // b if b else 0
            return self.settle(lanes.floor_divide(a, b), a, b)
        dtype = promote_remainder(self._dtype(a), self._dtype(b))
        return self._float(site, "div", np.floor_divide, a, b, dtype)

    def mod(self, site, a, b):
        if self._integers(a, b):
            if self.log is not None:
                self.note_divisor("%", a, b)
            if type(a) is int and type(b) is int:
                return a % b if b else 0
            return self.settle(lanes.modulo(a, b), a, b)
        dtype = promote_remainder(self._dtype(a), self._dtype(b))
        return self._float(site, "div", np.remainder, a, b, dtype)

    def pow(self, site, a, b):
        if type(a) is int and type(b) is int and b >= 0:
            return a**b
        if self._integers(a, b):
            return self.bits(site, "**", a, b)
        dtype = promote_power(self._dtype(a), self._dtype(b))
        return self._float(site, "pow", np.power, a, b, dtype)

    def bits(self, site, op, a, b):
        """&, |, ^, << and >>."""
        if isinstance(a, Unknown) or isinstance(b, Unknown):
            return unknown(promote(self._dtype(a), self._dtype(b)))
        if not self._integers(a, b):
            raise KernelTypeError(f"{op} needs integers, not {self._dtype(a)} and {self._dtype(b)}")
        if self.log is not None:
            self.note_exact(op, a, b)
        return self.settle(lanes.bitwise(op, a, b), a, b)

    def neg(self, site, a):
        if type(a) in (int, float):
            return -a
        if self._integers(a):
            return self.settle(lanes.subtract(0, a), a)
        return np.negative(a)  # a sign on an operand costs nothing

    def invert(self, site, a):
        if self._dtype(a) == BOOL:
            return self.not_(a)
        return self.settle(lanes.subtract(-1, a), a)

    # ---- fused multiply-add ----

    def fma(self, site, x, y, z):
        """x * y + z: one instruction for floats of one type. (This rounds twice, a GPU once.)"""
        return self._fused(site, x, y, z, np.add)

    def fma_sub(self, site, x, y, z):
        """x * y - z."""
        return self._fused(site, x, y, z, np.subtract)

    def sub_fma(self, site, z, x, y):
        """z - x * y."""
        return self._fused(site, x, y, z, lambda product, z, **dtype: np.subtract(z, product, **dtype))

    def _fused(self, site, x, y, z, combine):
        if self._integers(x, y):
            product = self.mul(site, x, y)
            if self._integers(product, z):
                step = {np.add: self.add, np.subtract: self.sub}.get(combine)
                return step(site, product, z) if step else self.sub(site, z, product)
            return self._float(site, "add", combine, product, z)
        factor = promote(self._dtype(x), self._dtype(y))
        result = promote(factor, self._dtype(z))
        if factor != result:
            return self._float(site, "add", combine, self._float(site, "mul", np.multiply, x, y), z)
        self.count_arithmetic(site, "fma", result)
        product = self._apply(np.multiply, x, y, result)
        return self._apply(combine, product, z, result)

    def accumulate(self, site, total, x, y, loops, region):
        """``total += x * y`` (``+= x`` if y is None), one iteration of the batched loops after another."""
        levels = sorted(self.batched[loop] for loop in loops if loop in self.batched)
        if not levels:
            new = self.add(site, total, x) if y is None else self.fma(site, x, y, total)
            return self.assign(new, total, region)
        factors = [v for v in (x, y) if v is not None]
        if not self._integers(total, *factors):
            self._count_accumulation(site, total, factors)
        for iteration in np.ndindex(*(self.batch[level] for level in levels)):
            parts = [self._of_iteration(v, levels, iteration) for v in factors]
            total = self._accumulate_iteration(site, total, parts, region, fresh=any(iteration))
        return total

    def _accumulate_iteration(self, site, total, factors, region, fresh):
        """``fresh``: no other variable refers to the array ``total``."""
        if self._integers(total, *factors):
            term = factors[0] if len(factors) == 1 else self.mul(site, *factors)
            return self.assign(self.add(site, total, term), total, region)
        factor = self._factor_type(factors)
        dtype = promote(factor, self._dtype(total))
        term = factors[0] if len(factors) == 1 else self._apply(np.multiply, *factors, factor)
        if fresh and self.mask is region and self._holds(total, term, dtype):
            return np.add(total, term, out=total, dtype=dtype)
        return self.assign(self._apply(np.add, total, term, dtype), total, region)

    def _factor_type(self, factors):
        return promote(self._dtype(factors[0]), self._dtype(factors[-1]))

    @staticmethod
    def _holds(total, term, dtype) -> bool:
        """Does the result fit into the array ``total``?"""
        if type(total) is not np.ndarray or total.dtype != dtype:
            return False
        shape = np.shape(term)
        return total.shape == shape or np.broadcast_shapes(total.shape, shape) == total.shape

    def _count_accumulation(self, site, total, factors):
        factor = self._factor_type(factors)
        result = promote(factor, self._dtype(total))
        if len(factors) == 1:
            self.count_arithmetic(site, "add", result)
        elif factor == result:
            self.count_arithmetic(site, "fma", result)
        else:
            self.count_arithmetic(site, "mul", factor)
            self.count_arithmetic(site, "add", result)

    def _of_iteration(self, value, levels, iteration):
        """One iteration's slice of a value that has the axes of batched loops."""
        array = value.pattern.array if type(value) is Lanes else value
        index = [slice(None)] * np.ndim(array)
        for level, position in zip(levels, iteration):
            axis = -4 - level
            if np.ndim(array) >= -axis:
                index[axis] = slice(position, position + 1) if array.shape[axis] > 1 else slice(None)
        if type(value) is Lanes:
            key = ("iteration", *((s.start, s.stop) for s in index))
            pattern = value.pattern.derive(key, lambda: _without_ones(array[tuple(index)]))
            return Lanes(pattern, value.offset, value.dtype)
        return _without_ones(array[tuple(index)]) if index else array

    # ---- comparisons and logic ----

    def compare(self, op, a, b):
        if self._integers(a, b):
            outcome = lanes.compare(op, a, b)
            if self.log is not None:
                self.note_comparison(op, a, b, outcome)
            return outcome
        promote(self._dtype(a), self._dtype(b))  # both must be numbers
        a, b = self.plain(a), self.plain(b)
        if isinstance(a, Unknown) or isinstance(b, Unknown):
            return unknown(np.bool_)
        return self._truth(lanes.COMPARE[op](a, b))

    def _truth(self, values):
        if np.ndim(values) == 0:
            return bool(values)
        return lanes.from_values(values)

    def not_(self, a):
        a = self.truth(a)
        return not a if type(a) is bool else lanes.logical_not(a)

    def truth(self, value):
        """A condition: a Python bool where all lanes agree, boolean lanes otherwise."""
        if type(value) is bool:
            return value
        if isinstance(value, Unknown):
            raise DataDependent(
                "a branch depends on loaded data, so accesses cannot be counted without running the kernel"
            )
        if type(value) is Lanes and value.dtype == BOOL:
            if value.pattern.low == value.pattern.high:
                return bool(value.pattern.low)
            return value
        return self.compare("!=", value, 0)

    def and_(self, a, rest):
        """``a and rest()``; only lanes in which the first is true evaluate the second."""
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
        saved = self.mask
        self.mask = saved.where(condition) if holds else saved.where_not(condition)
        try:
            return self.truth(evaluate()) if self.mask.any else holds
        finally:
            self.mask = saved

    @staticmethod
    def _both(op, a, b):
        if type(b) is bool:
            return (a if b else False) if op == "&" else (True if b else a)
        return lanes.bitwise(op, a, b)

    def select(self, condition, then, otherwise, literal=None):
        """``then() if condition else otherwise()``; ``literal``: dtype of a branch that is a literal."""
        condition = self.truth(condition)
        if type(condition) is bool:
            return self._widen(then() if condition else otherwise(), literal)
        saved = self.mask
        yes, no = saved.where(condition), saved.where_not(condition)
        try:
            self.mask = yes
            a = then() if yes.any else None
            self.mask = no
            b = otherwise() if no.any else None
        finally:
            self.mask = saved
        if a is None or b is None:
            return self._widen(b if a is None else a, literal)
        return self.choose(condition, a, b)

    def _widen(self, value, literal):
        if literal is None or isinstance(value, tuple):
            return value
        dtype = unify(self._dtype(value), literal)
        return value if dtype == self._dtype(value) else self.cast(dtype, value)

    def choose(self, condition, a, b):
        """Lane by lane ``a`` where the condition holds, else ``b``."""
        if isinstance(a, tuple):
            return tuple(self.choose(condition, x, y) for x, y in zip(a, b))
        if a is b:
            return a
        dtype = unify(self._dtype(a), self._dtype(b))
        if isinstance(a, Unknown) or isinstance(b, Unknown):
            return unknown(dtype)
        chosen = condition.pattern.array
        if is_integer(dtype):
            return self._choose_integers(condition.pattern, a, b, dtype)
        return np.where(chosen, self._typed(a, dtype), self._typed(b, dtype))

    @staticmethod
    def _choose_integers(condition, a, b, dtype):
        (p, o), (q, r) = lanes.split(a), lanes.split(b)
        if p is q and o == r:
            return a
        key = ("choose", p.serial, q.serial, o - r)
        chosen = condition.derive(key, lambda: np.where(condition.array, p.array + (o - r), q.array))
        return Lanes(chosen, r, dtype)

    # ---- functions ----

    def minimum(self, site, a, b):
        return self._extreme(site, "min", lanes.minimum, np.fmin, a, b)

    def maximum(self, site, a, b):
        return self._extreme(site, "max", lanes.maximum, np.fmax, a, b)

    def _extreme(self, site, name, on_integers, on_floats, a, b):
        if not self._integers(a, b):
            return self._float(site, name, on_floats, a, b)
        if not is_integer(unify(self._dtype(a), self._dtype(b))):
            self.count_arithmetic(site, name, FLOAT64)  # as Numba types int64 with uint64
        if self.log is not None:
            self.note_comparison("<", a, b, None)
        return self.settle(on_integers(a, b), a, b)

    def unary(self, site, name, ufunc, a):
        """A function of ``math``: float32 stays float32, integers become float64."""
        dtype = self._dtype(a)
        dtype = FLOAT64 if is_integer(dtype) else dtype
        self.count_arithmetic(site, name, dtype)
        return ufunc(self._typed(a, dtype))

    def absolute(self, site, a):
        if type(a) in (int, float):
            return abs(a)
        if self._integers(a):
            return self.maximum(site, a, self.neg(site, a))
        return np.abs(a)

    def cast(self, dtype, value):
        """``float32(value)``, ``uint32(value)``, ``int(value)``."""
        if isinstance(value, Unknown):
            return unknown(dtype)
        source = self._dtype(value)
        if is_integer(dtype) and is_integer(source):
            if self.log is not None and dtype.itemsize < 8:
                self.note_comparison("<", value, np.iinfo(dtype).max if dtype != BOOL else 0, None)
            return self.settle_cast(lanes.cast(value, dtype), value)
        if is_integer(dtype):
            values = np.trunc(self.plain(value))
            if np.ndim(values) == 0:
                return dtype.type(int(values))
            return lanes.from_values(values.astype(dtype))
        return self._typed(value, dtype)

    # ---- helpers ----

    def _float(self, site, name, ufunc, a, b, dtype=None):
        if dtype is None:
            dtype = promote(self._dtype(a), self._dtype(b))
        if is_integer(dtype):
            return unknown(dtype)  # integers come here only if they were never loaded
        self.count_arithmetic(site, name, dtype)
        return self._apply(ufunc, a, b, dtype)

    def _apply(self, ufunc, a, b, dtype):
        a, b = self.plain(a), self.plain(b)
        if getattr(a, "dtype", None) == dtype and getattr(b, "dtype", None) == dtype:
            return ufunc(a, b)
        return ufunc(self._typed(a, dtype), self._typed(b, dtype))

    def _typed(self, value, dtype):
        value = self.plain(value)
        if isinstance(value, np.ndarray):
            return value.astype(dtype, copy=False)
        return dtype.type(value)

    @staticmethod
    def plain(value):
        """``value`` as a NumPy array or scalar."""
        return value.values() if type(value) is Lanes else value

    @staticmethod
    def _dtype(value) -> np.dtype:
        dtype = dtype_of(value)
        if dtype is None or isinstance(value, type):
            raise KernelTypeError(_no_number(value))
        return dtype

    @staticmethod
    def _integers(*values) -> bool:
        """Are all of them integers with known values?"""
        for value in values:
            kind = type(value)
            if kind is not int and kind is not Lanes and kind is not bool:
                if isinstance(value, Unknown) or not isinstance(value, (np.integer, np.bool_)):
                    return False
        return True

    @staticmethod
    def settle(result: Lanes, *operands):
        """A uniform result of uniform operands becomes a plain number again."""
        if result.pattern is lanes.ZERO or not any(type(operand) is Lanes for operand in operands):
            return uniform(result)
        return result

    @staticmethod
    def settle_cast(result: Lanes, value):
        return result if type(value) is Lanes else uniform(result)

    def count_arithmetic(self, site, name, dtype, per_lane=1):
        """Count an operation of every active lane; ``per_lane``: how many of them one instruction does."""
        key = ("arithmetic", site, name, dtype.char, self.mask.serial, self.batch_key, per_lane)
        self.tally(key, self.mask)
        if dtype == FLOAT64 and self.report_float64:
            self._advise_float64(site)

    def _advise_float64(self, site):
        at = self.sites[site]
        key = ("float64_arithmetic", at.line)
        message = (
            "This is computed in float64, because it involves a Python number or a float64 value; "
            "on a GPU, float64 is slower than float32, 64 times slower on consumer cards."
        )
        self.findings.add(
            key,
            self.mask.active(self.batch_key),
            lambda: Finding("float64_arithmetic", at.line, message, function=at.function, site=site),
        )


def uniform(value: Lanes):
    """The number that all lanes hold, typed as Numba types it."""
    number = value.pattern.array.flat[0].item() + value.offset
    if value.dtype == BOOL:
        return bool(number)
    return int(number) if value.dtype == INT64 else value.dtype.type(number)


def _without_ones(array):
    """Drop leading axes of length 1, but keep the three axes of the lanes."""
    while np.ndim(array) > 3 and array.shape[0] == 1:
        array = array[0]
    return array


def _no_number(value) -> str:
    if isinstance(value, Unbound):
        return "a variable is used before a value has been assigned to it"
    if value is None:
        return "a number is needed here, but the value is None"
    if hasattr(value, "storage"):
        return f"{value.name} is a whole array; a kernel computes with its elements, such as {value.name}[i]"
    kind = type(value).__name__
    return f"a number is needed here, not {'an' if kind[0] in 'aeiou' else 'a'} {kind}"


FUNCTIONS = {
    "sqrt": np.sqrt, "exp": np.exp, "log": np.log, "log2": np.log2, "log10": np.log10, "sin": np.sin,
    "cos": np.cos, "tan": np.tan, "tanh": np.tanh, "floor": np.floor, "ceil": np.ceil, "fabs": np.abs,
    "exp2": np.exp2, "expm1": np.expm1, "log1p": np.log1p, "atan": np.arctan, "asin": np.arcsin,
    "acos": np.arccos, "sinh": np.sinh, "cosh": np.cosh, "trunc": np.trunc,
}  # fmt: skip
"""Functions of ``math`` that kernels may call."""

CONSTANTS = {"pi": math.pi, "e": math.e, "inf": math.inf, "nan": math.nan}
