"""Integers that differ from lane to lane, and the masks that say which lanes are active.

The emulator runs many blocks at once. A value has the axes ``(..., block_y, block_x, thread)`` and is
broadcast: ``threadIdx.x`` has the shape (1, 1, T), ``blockIdx.y`` the shape (Y, 1, 1). Axes in front of these
three belong to loops that run all their iterations at once.

An index is stored as *pattern + offset*: the pattern is an immutable array, the offset one Python int for all
lanes. ``k0 + tx`` has the same pattern in every iteration of a loop; only its offset changes. Operations on
patterns cache their results, so from the second iteration on a whole index expression is a few dictionary
look-ups, and what is known about a pattern (bounds, sectors, bank conflicts) is not computed again.
"""

from itertools import count

import numpy as np

from .dtypes import BOOL, INT64, UINT64, promote, promote_shift, unify

_MEMO_LIMIT = 4096  # entries after which a pattern clears its cache; only data-dependent kernels get there
_serials = count(1)


class Pattern:
    """An immutable integer (or boolean) array over the lanes, with a cache of what was computed from it."""

    __slots__ = ("array", "serial", "memo", "_low", "_high")

    def __init__(self, array: np.ndarray):
        self.array = array
        self.serial = next(_serials)
        self.memo = {}
        self._low = self._high = None

    @property
    def low(self) -> int:
        if self._low is None:
            self._low = int(self.array.min())
        return self._low

    @property
    def high(self) -> int:
        if self._high is None:
            self._high = int(self.array.max())
        return self._high

    def derive(self, key, make):
        """The pattern that ``make()`` returns, computed once per ``key``."""
        found = self.memo.get(key)
        if found is None:
            if len(self.memo) > _MEMO_LIMIT:
                self.memo.clear()
            found = self.memo[key] = Pattern(make())
        return found

    def remember(self, key, make):
        """Any fact about this pattern, computed once per ``key``."""
        if key not in self.memo:
            if len(self.memo) > _MEMO_LIMIT:
                self.memo.clear()
            self.memo[key] = make()
        return self.memo[key]


ZERO = Pattern(np.zeros((1, 1, 1), np.int64))


class Lanes:
    """``pattern + offset``, an integer or boolean of Numba type ``dtype`` in every lane."""

    __slots__ = ("pattern", "offset", "dtype")

    def __init__(self, pattern: Pattern, offset: int = 0, dtype: np.dtype = INT64):
        self.pattern, self.offset, self.dtype = pattern, offset, dtype

    @property
    def low(self) -> int:
        return self.pattern.low + self.offset

    @property
    def high(self) -> int:
        return self.pattern.high + self.offset

    @property
    def shape(self) -> tuple:
        return self.pattern.array.shape

    def values(self) -> np.ndarray:
        """The plain array, of ``dtype``."""
        array = self.pattern.array
        if self.offset:
            array = array + self.offset
        return array.astype(self.dtype, copy=False)

    def __repr__(self):
        return f"Lanes({self.pattern.array.shape}, +{self.offset}, {self.dtype})"


def from_values(array: np.ndarray) -> Lanes:
    """Lanes with integers from memory or from arithmetic, about which nothing is known."""
    dtype = array.dtype
    if dtype != UINT64 and dtype != BOOL:
        array = array.astype(np.int64)
    return Lanes(Pattern(array.reshape((1,) * (3 - array.ndim) + array.shape)), 0, dtype)


def split(value) -> tuple[Pattern, int]:
    """(pattern, offset) of an integer; a uniform one has the pattern ZERO."""
    if type(value) is Lanes:
        return value.pattern, value.offset
    return ZERO, int(value)


def _operands(a, b, dtype) -> tuple:
    """Patterns and offsets of two operands; values beyond int64 are cast to the result's type first."""
    (p, o), (q, r) = split(a), split(b)
    if p.array.dtype == np.uint64 or q.array.dtype == np.uint64:
        return _converted(p, o, dtype), 0, _converted(q, r, dtype), 0
    return p, o, q, r


def _converted(pattern: Pattern, offset: int, dtype: np.dtype) -> Pattern:
    def make():
        array = pattern.array
        return (array + np.array(offset % 2**64, np.uint64).astype(array.dtype)).astype(dtype)

    return pattern.derive(("as", dtype.char, offset), make)


# ---- integer arithmetic ----


def add(a, b):
    dtype = promote_lanes(a, b)
    p, o, q, r = _operands(a, b, dtype)
    if q is ZERO:
        return _wrapped(p, o + r, dtype)
    if p is ZERO:
        return _wrapped(q, o + r, dtype)
    return _wrapped(p.derive(("+", q.serial), lambda: p.array + q.array), o + r, dtype)


def subtract(a, b):
    dtype = promote_lanes(a, b)
    p, o, q, r = _operands(a, b, dtype)
    return _wrapped(_difference(p, q), o - r, dtype)


def _difference(p: Pattern, q: Pattern) -> Pattern:
    if q is ZERO:
        return p
    return p.derive(("-", q.serial), lambda: p.array - q.array)


def multiply(a, b):
    dtype = promote_lanes(a, b)
    p, o, q, r = _operands(a, b, dtype)
    if q is ZERO:
        return _wrapped(scaled(p, r), o * r, dtype)
    if p is ZERO:
        return _wrapped(scaled(q, o), o * r, dtype)
    product = p.derive(("*", q.serial, o, r), lambda: (p.array + o) * (q.array + r))
    return _wrapped(product, 0, dtype)


def scaled(p: Pattern, factor: int) -> Pattern:
    return p if factor == 1 else p.derive(("*", factor), lambda: p.array * factor)


def floor_divide(a, b):
    """``a // b``; the part of the offset that is divisible by b stays in the offset."""
    dtype = promote_lanes(a, b)
    p, o, q, r = _operands(a, b, dtype)
    if q is ZERO and r > 0:
        whole, rest = divmod(o, r)
        return Lanes(p.derive(("//", r, rest), lambda: (p.array + rest) // r), whole, dtype)
    return _plain("//", np.floor_divide, p, o, q, r, dtype)


def modulo(a, b):
    dtype = promote_lanes(a, b)
    p, o, q, r = _operands(a, b, dtype)
    if q is ZERO and r > 0:
        rest = o % r
        return Lanes(p.derive(("%", r, rest), lambda: (p.array + rest) % r), 0, dtype)
    return _plain("%", np.remainder, p, o, q, r, dtype)


_BITWISE = {
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
    "<<": np.left_shift,
    ">>": np.right_shift,
    "**": np.power,
}


def bitwise(op: str, a, b):
    """``a op b`` for &, |, ^, <<, >> and an integer power."""
    boolean = _dtype(a) == _dtype(b) == BOOL
    dtype = BOOL if boolean else (promote_shift if op in ("<<", ">>") else promote)(_dtype(a), _dtype(b))
    return _plain(op, _BITWISE[op], *_operands(a, b, dtype), dtype)


def minimum(a, b):
    return _extreme("min", np.minimum, a, b)


def maximum(a, b):
    return _extreme("max", np.maximum, a, b)


def _extreme(key, ufunc, a, b) -> Lanes:
    """The smaller or larger of two; an operand itself if it is the answer in every lane."""
    dtype = unify(_dtype(a), _dtype(b))
    p, o, q, r = _operands(a, b, dtype)
    if dtype == BOOL or p.array.dtype == np.uint64 or q.array.dtype == np.uint64:
        return _plain(key, ufunc, p, o, q, r, dtype)
    difference = _difference(p, q)
    less = _uniform_outcome("<", difference.low + o - r, difference.high + o - r)
    if less is not None:
        return Lanes(p, o, dtype) if less == (key == "min") else Lanes(q, r, dtype)
    return Lanes(p.derive((key, q.serial, o - r), lambda: ufunc(p.array + (o - r), q.array)), r, dtype)


def _plain(key, ufunc, p, o, q, r, dtype) -> Lanes:
    """An operation that does not commute with offsets: computed from the plain values."""
    if dtype == BOOL:
        return Lanes(p.derive((key, q.serial), lambda: ufunc(p.array, q.array)), 0, dtype)
    return Lanes(p.derive((key, q.serial, o, r), lambda: ufunc(p.array + o, q.array + r)), 0, dtype)


def promote_lanes(a, b) -> np.dtype:
    return promote(_dtype(a), _dtype(b))


def _dtype(value) -> np.dtype:
    return INT64 if type(value) is int else BOOL if type(value) is bool else value.dtype


def _wrapped(pattern: Pattern, offset: int, dtype: np.dtype) -> Lanes:
    """An unsigned 64-bit result below zero wraps around, as on the GPU."""
    if dtype == UINT64 and pattern.low + offset < 0:
        wrapped = pattern.derive(("u64", offset), lambda: (pattern.array + offset).astype(np.uint64))
        return Lanes(wrapped, 0, dtype)
    return Lanes(pattern, offset, dtype)


def cast(value, dtype: np.dtype) -> Lanes:
    """``uint32(value)`` and other casts to integers; out-of-range values wrap around."""
    if dtype == BOOL:
        return compare("!=", value, 0)
    pattern, offset = split(value)
    if dtype.itemsize < 8 or dtype == UINT64:
        limits = np.iinfo(dtype)
        if pattern.low + offset < limits.min or pattern.high + offset > limits.max:
            return Lanes(_wrapped_around(pattern, offset, dtype), 0, dtype)
    if pattern.array.dtype == np.bool_:
        pattern = pattern.derive("int", lambda: pattern.array.astype(np.int64))
    return Lanes(pattern, offset, dtype)


def _wrapped_around(pattern: Pattern, offset: int, dtype: np.dtype) -> Pattern:
    kept_as = UINT64 if dtype == UINT64 else np.int64

    def make():
        return (pattern.array + offset).astype(dtype).astype(kept_as)

    return pattern.derive(("cast", dtype.char, offset), make)


# ---- comparisons ----

COMPARE = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}


def compare(op: str, a, b):
    """``a op b``: a Python bool where all lanes agree, boolean lanes otherwise."""
    pattern, threshold = comparison(a, b)
    outcome = _uniform_outcome(op, pattern.low - threshold, pattern.high - threshold)
    if outcome is not None:
        return outcome
    ufunc = COMPARE[op]
    return Lanes(pattern.derive((op, threshold), lambda: ufunc(pattern.array, threshold)), 0, BOOL)


def comparison(a, b) -> tuple[Pattern, int]:
    """Reduce ``a op b`` to ``pattern op threshold``."""
    (p, o), (q, r) = split(a), split(b)
    if p.array.dtype == np.bool_ or q.array.dtype == np.bool_:
        p, q = (x.derive("int", lambda x=x: x.array.astype(np.int64)) for x in (p, q))
    return _difference(p, q), r - o


def _uniform_outcome(op: str, low: int, high: int):
    """True or False if all of low..high compare with zero in the same way, else None."""
    if op == "<":
        return True if high < 0 else False if low >= 0 else None
    if op == "<=":
        return True if high <= 0 else False if low > 0 else None
    if op == ">":
        return True if low > 0 else False if high <= 0 else None
    if op == ">=":
        return True if low >= 0 else False if high < 0 else None
    if low == high == 0:
        return op == "=="
    if low > 0 or high < 0:
        return op == "!="
    return None


def logical_not(value: Lanes) -> Lanes:
    pattern = value.pattern
    return Lanes(pattern.derive("not", lambda: ~pattern.array), 0, BOOL)


# ---- masks ----


class Mask:
    """Which lanes are active. ``array`` is None if all are, else booleans broadcast over the lanes."""

    __slots__ = ("array", "serial", "memo", "geometry", "any")

    def __init__(self, geometry, array: np.ndarray | None):
        self.geometry, self.array = geometry, array
        self.serial = next(_serials)
        self.memo = {}
        self.any = array is None or bool(array.any())

    def active(self, batch: tuple = ()) -> int:
        """Active lanes, each counted once per iteration of the batched loops of these lengths."""
        return self._remember(("active", batch), lambda: self._count_active(batch))

    def _count_active(self, batch: tuple) -> int:
        whole = self.geometry.lanes
        for length in batch:
            whole *= length
        if self.array is None:
            return whole
        return int(np.count_nonzero(self.array)) * whole // self.array.size

    def where(self, condition: Lanes) -> "Mask":
        """The active lanes in which ``condition`` is true."""
        return self._remember(("and", condition.pattern.serial), lambda: self._made(condition.pattern.array))

    def where_not(self, condition: Lanes) -> "Mask":
        return self._remember(("not", condition.pattern.serial), lambda: self._made(~condition.pattern.array))

    def minus(self, other: "Mask") -> "Mask":
        if other.array is None:
            return self.geometry.no_threads
        return self._remember(("-", other.serial), lambda: self._made(~other.array))

    def plus(self, other: "Mask") -> "Mask":
        if self.array is None or other.array is None:
            return self.geometry.all_threads
        return self._remember(("+", other.serial), lambda: self.geometry.mask(self.array | other.array))

    def _made(self, condition: np.ndarray) -> "Mask":
        return self.geometry.mask(condition if self.array is None else self.array & condition)

    def extent(self, pattern: Pattern) -> tuple[int, int] | None:
        """(lowest, highest) value of the pattern over the active lanes; None if no lane is active."""
        if self.array is None:
            return pattern.low, pattern.high
        return self._remember(("extent", pattern.serial), lambda: self._extent(pattern.array))

    def _extent(self, array: np.ndarray):
        if not self.any:
            return None
        array, mask = np.broadcast_arrays(array, self.array)
        chosen = array[mask]
        return int(chosen.min()), int(chosen.max())

    def _remember(self, key, make):
        found = self.memo.get(key)
        if found is None:
            if len(self.memo) > _MEMO_LIMIT:
                self.memo.clear()
            found = self.memo[key] = make()
        return found
