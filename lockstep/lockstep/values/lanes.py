"""Computes with integers that differ from lane to lane, and with masks of active lanes.

The emulator runs many blocks at once. A value has the axes ``(..., block_y, block_x, thread)`` and is
broadcast: ``threadIdx.x`` has the shape (1, 1, T), ``blockIdx.y`` the shape (Y, 1, 1). Axes in front of these
three belong to loops that run all their iterations at once.

An index is stored as *pattern + offset*: the pattern is an immutable array, the offset one Python int for all
lanes. ``k0 + tx`` has the same pattern in every iteration of a loop; only its offset changes. Operations on
patterns cache their results, so from the second iteration on a whole index expression is a few dictionary
look-ups, and what is known about a pattern (bounds, sectors, bank conflicts) is not computed again.

Pattern + offset is always the value itself, in the range of its type: what wraps around on a GPU is computed
again from the plain values, modulo 2**64.
"""

from functools import cache
from itertools import count

import numpy as np

from .dtypes import BOOL, INT64, UINT64, promote, promote_shift, unify

# A pattern with more entries clears its cache. Only kernels whose accesses depend on data get there.
_MEMO_LIMIT = 4096
_SMALLEST, _LARGEST = -(2**63), 2**63 - 1
_serials = count(1)


class Pattern:
    """An immutable integer (or boolean) array over the lanes, with a cache of what was computed from it.

    ``bounds``: limits of its values, if they are known without looking at the values.
    """

    __slots__ = ("array", "serial", "memo", "_low", "_high", "_bounds")

    def __init__(self, array: np.ndarray, bounds: tuple | None = None):
        self.array = array
        self.serial = next(_serials)
        self.memo = {}
        self._low = self._high = None
        self._bounds = bounds

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

    @property
    def bounds(self) -> tuple[int, int]:
        """Return (low, high). No value is below or above these, but the extremes may lie between them."""
        return self._bounds or (self.low, self.high)

    def derive(self, key, make, bounds=None):
        """Return the pattern that ``make()`` returns, computed once per ``key``."""
        found = self.memo.get(key)
        if found is None:
            if len(self.memo) > _MEMO_LIMIT:
                self.memo.clear()
            found = self.memo[key] = Pattern(make(), bounds)
        return found

    def remember(self, key, make):
        """Return any fact about this pattern, computed once per ``key``."""
        if key not in self.memo:
            if len(self.memo) > _MEMO_LIMIT:
                self.memo.clear()
            self.memo[key] = make()
        return self.memo[key]


ZERO = Pattern(np.zeros((1, 1, 1), np.int64))


def younger(a, b):
    """Return the younger of two patterns or masks, whose cache keeps what is computed from both.

    The thread index lasts as long as the launch, and ZERO for ever. A pattern that one iteration loaded is
    soon freed, and what was computed from it is freed with it.
    """
    return a if a.serial > b.serial else b


def joint(op, p: Pattern, q: Pattern, make, *constants, bounds=None) -> Pattern:
    """Return the pattern that ``make()`` makes of two others and some numbers, computed once."""
    return younger(p, q).derive((op, p.serial, q.serial, *constants), make, bounds)


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
        """Return the plain values, as an array of ``dtype``."""
        array = self.pattern.array
        if self.offset:
            if self.dtype == UINT64:
                return _modulo(self.pattern, self.offset, UINT64)
            array = array + self.offset
        return array.astype(self.dtype, copy=False)

    def __repr__(self):
        return f"Lanes({self.pattern.array.shape}, +{self.offset}, {self.dtype})"


_RANGES = {
    np.dtype(name): (np.iinfo(name).min, np.iinfo(name).max) for name in ("i1", "i2", "i4", "u1", "u2", "u4")
}


def from_values(array: np.ndarray) -> Lanes:
    """Return lanes with integers from memory or from arithmetic, about which nothing is known."""
    dtype = array.dtype
    array = array.reshape((1,) * (3 - array.ndim) + array.shape)
    if dtype == UINT64:
        return Lanes(Pattern(_small_if_possible(array)), 0, dtype)
    if dtype != BOOL:
        array = array.astype(np.int64)
    return Lanes(Pattern(array, _RANGES.get(dtype)), 0, dtype)


def _small_if_possible(array: np.ndarray) -> np.ndarray:
    """Return unsigned integers as int64, unless one of them is too large.

    All others are computed in int64.
    """
    return array.astype(np.int64) if array.dtype == UINT64 and array.max() <= _LARGEST else array


def split(value) -> tuple[Pattern, int]:
    """Return (pattern, offset) of an integer. A uniform one has the pattern ZERO; a boolean is 0 or 1."""
    if type(value) is Lanes:
        pattern = value.pattern
        if pattern.array.dtype == np.bool_:
            pattern = pattern.derive("int", lambda: pattern.array.astype(np.int64), (0, 1))
        return pattern, value.offset
    return ZERO, int(value)


def _modulo(pattern: Pattern, offset: int, dtype: np.dtype) -> np.ndarray:
    """Return the values as a 64-bit ``dtype``, modulo 2**64."""
    array = pattern.array
    # The array's own type wraps around, so one addition is enough, and no copy is needed.
    if offset:
        wrapped = np.uint64(offset % 2**64)
        array = array + (wrapped if array.dtype == UINT64 else wrapped.astype(INT64))
    return array.astype(dtype, copy=False)


def _fits(low: int, high: int) -> bool:
    return low >= _SMALLEST and high <= _LARGEST


def _plain(key, ufunc, p, o, q, r, dtype) -> Lanes:
    """Compute an operation from the plain values, as integers of ``dtype``."""

    def make():
        return _small_if_possible(ufunc(_modulo(p, o, dtype), _modulo(q, r, dtype)))

    return Lanes(joint(key, p, q, make, o, r, dtype.char), 0, dtype)


def _whole(pattern: Pattern, offset: int, dtype: np.dtype) -> Lanes | None:
    """Return ``pattern + offset`` if every value is in the range of a 64-bit type, else None."""
    for low, high in (pattern.bounds, (pattern.low, pattern.high)):
        smallest, largest = (0, 2**64 - 1) if dtype == UINT64 else (_SMALLEST, _LARGEST)
        if low + offset >= smallest and high + offset <= largest:
            return Lanes(pattern, offset, dtype)
    return None


def _small(p: Pattern, q: Pattern) -> bool:
    """Return whether both are arrays of int64."""
    return p.array.dtype != np.uint64 and q.array.dtype != np.uint64


# ---- integer arithmetic ----


def add(a, b):
    dtype = promote_lanes(a, b)
    (p, o), (q, r) = split(a), split(b)
    total = None
    if q is ZERO:
        total = _whole(p, o + r, dtype)
    elif p is ZERO:
        total = _whole(q, o + r, dtype)
    elif _small(p, q):
        low, high = p.bounds[0] + q.bounds[0], p.bounds[1] + q.bounds[1]
        if _fits(low, high):
            total = _whole(joint("+", p, q, lambda: p.array + q.array, bounds=(low, high)), o + r, dtype)
    return _plain("+", np.add, p, o, q, r, dtype) if total is None else total


def subtract(a, b):
    dtype = promote_lanes(a, b)
    (p, o), (q, r) = split(a), split(b)
    pattern = _difference(p, q)
    rest = None if pattern is None else _whole(pattern, o - r, dtype)
    return _plain("-", np.subtract, p, o, q, r, dtype) if rest is None else rest


def _difference(p: Pattern, q: Pattern) -> Pattern | None:
    """Return p - q, or None if a value of it may not fit into int64."""
    if q is ZERO:
        return p
    low, high = p.bounds[0] - q.bounds[1], p.bounds[1] - q.bounds[0]
    if not _small(p, q) or not _fits(low, high):
        return None
    return joint("-", p, q, lambda: p.array - q.array, bounds=(low, high))


def multiply(a, b):
    dtype = promote_lanes(a, b)
    (p, o), (q, r) = split(a), split(b)
    product = None
    if p is ZERO:
        (p, o), (q, r) = (q, r), (p, o)
    if q is ZERO and _small(p, q) and _fits(r, r) and _fits(*sorted(bound * r for bound in p.bounds)):
        product = _whole(scaled(p, r), o * r, dtype)
    elif _small(p, q) and dtype == INT64:
        product = _product_of_patterns(p, o, q, r)
    return _plain("*", np.multiply, p, o, q, r, dtype) if product is None else product


def _product_of_patterns(p, o, q, r) -> Lanes | None:
    """Return the product, or None if it may wrap around. Its bounds are computed from theirs."""
    ends = [(low + shift, high + shift) for (low, high), shift in ((p.bounds, o), (q.bounds, r))]
    products = [a * b for a in ends[0] for b in ends[1]]
    bounds = min(products), max(products)
    if not all(_fits(*part) for part in (*ends, bounds)):
        return None

    def make():
        left = _modulo(p, o, INT64)
        return left * (left if q is p and r == o else _modulo(q, r, INT64))

    return Lanes(joint("*", p, q, make, o, r, bounds=bounds), 0, INT64)


def scaled(p: Pattern, factor: int) -> Pattern:
    if factor == 1:
        return p
    bounds = tuple(sorted(bound * factor for bound in p.bounds))
    return p.derive(("*", factor), lambda: p.array * factor, bounds)


def floor_divide(a, b):
    """Return ``a // b``. The part of the offset that is divisible by ``b`` stays in the offset."""
    dtype = promote_lanes(a, b)
    (p, o), (q, r) = split(a), split(b)
    if _divides_patterns(p, q, r):
        whole, rest = divmod(o, r)
        low, high = ((bound + rest) // r for bound in p.bounds)
        return Lanes(p.derive(("//", r, rest), lambda: (p.array + rest) // r, (low, high)), whole, dtype)
    return _plain("//", np.floor_divide, p, o, q, r, dtype)


def modulo(a, b):
    dtype = promote_lanes(a, b)
    (p, o), (q, r) = split(a), split(b)
    if _divides_patterns(p, q, r):
        rest = o % r
        return Lanes(p.derive(("%", r, rest), lambda: (p.array + rest) % r, (0, r - 1)), 0, dtype)
    return _plain("%", np.remainder, p, o, q, r, dtype)


def _divides_patterns(p, q, divisor) -> bool:
    """Return whether the divisor is uniform and positive, and adding it to the values does not overflow."""
    return q is ZERO and divisor > 0 and p.array.dtype != np.uint64 and _fits(0, p.bounds[1] + divisor)


def power(a, b):
    """Return ``a ** b`` of integers.

    A negative power is right for 1 and -1, and the least integer for 0, else 0.
    """
    return _plain("**", _power, *split(a), *split(b), promote_lanes(a, b))


def _power(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    a, b = np.broadcast_arrays(a, b)
    negative = b < 0
    result = np.power(a, np.where(negative, b % 2, b))
    result = np.where(negative & (np.abs(a) != 1), 0, result)
    return np.where(negative & (a == 0), np.array(_SMALLEST).astype(a.dtype), result)


_BITWISE = {
    "&": np.bitwise_and,
    "|": np.bitwise_or,
    "^": np.bitwise_xor,
    "<<": np.left_shift,
    ">>": np.right_shift,
}


def bitwise(op: str, a, b):
    """Return ``a op b`` for &, |, ^, << and >>. A shift by 64 or more leaves no bit, only the sign."""
    left, right = _dtype(a), _dtype(b)
    if left == right == BOOL and op in "&|^":
        p, q = _booleans(a), _booleans(b)
        return Lanes(joint(op, p, q, lambda: _BITWISE[op](p.array, q.array)), 0, BOOL)
    dtype = (promote_shift if op in ("<<", ">>") else promote)(left, right)
    return _plain(op, _BITWISE[op], *split(a), *split(b), dtype)


_TRUTH = {truth: Pattern(np.full((1, 1, 1), truth, bool)) for truth in (False, True)}


def _booleans(value) -> Pattern:
    return value.pattern if type(value) is Lanes else _TRUTH[bool(value)]


def minimum(a, b):
    return _extreme("min", np.minimum, a, b)


def maximum(a, b):
    return _extreme("max", np.maximum, a, b)


def _extreme(key, ufunc, a, b) -> Lanes:
    """Return the smaller or larger of two integers, as the operand itself if it is that in every lane."""
    dtype = unify(_dtype(a), _dtype(b))
    if dtype == BOOL:
        return bitwise("&" if key == "min" else "|", a, b)
    (p, o), (q, r) = split(a), split(b)
    difference = _difference(p, q)
    if difference is None or not _fits(p.bounds[0] + o - r, p.bounds[1] + o - r):
        wide = _plain(key, ufunc, p, o, q, r, UINT64 if dtype == UINT64 else INT64)
        return Lanes(wide.pattern, 0, dtype)
    less = _uniform_outcome("<", difference.low + o - r, difference.high + o - r)
    if less is not None:
        return Lanes(p, o, dtype) if less == (key == "min") else Lanes(q, r, dtype)
    return Lanes(joint(key, p, q, lambda: ufunc(p.array + (o - r), q.array), o - r), r, dtype)


def choose(condition: Pattern, a, b, dtype: np.dtype) -> Lanes:
    """Return, lane by lane, ``a`` where the condition holds and ``b`` elsewhere. Both fit into ``dtype``."""
    if dtype == BOOL:
        p, q = _booleans(a), _booleans(b)
        return Lanes(_chosen(condition, p, q, lambda: np.where(condition.array, p.array, q.array)), 0, BOOL)
    (p, o), (q, r) = split(a), split(b)
    if not _small(p, q) or not _fits(p.bounds[0] + o - r, p.bounds[1] + o - r):
        wide = UINT64 if dtype == UINT64 else INT64

        def make():
            return np.where(condition.array, _modulo(p, o, wide), _modulo(q, r, wide))

        return Lanes(_chosen(condition, p, q, make, o, r), 0, dtype)
    shift = o - r
    chosen = _chosen(
        condition,
        p,
        q,
        lambda: np.where(condition.array, p.array + shift if shift else p.array, q.array),
        shift,
    )
    return Lanes(chosen, r, dtype)


def _chosen(condition, p, q, make, *constants) -> Pattern:
    key = ("choose", condition.serial, p.serial, q.serial, *constants)
    return younger(condition, younger(p, q)).derive(key, make)


def promote_lanes(a, b) -> np.dtype:
    return promote(_dtype(a), _dtype(b))


def _dtype(value) -> np.dtype:
    return INT64 if type(value) is int else BOOL if type(value) is bool else value.dtype


_limits = cache(np.iinfo)


def cast(value, dtype: np.dtype) -> Lanes | bool:
    """Return ``uint32(value)`` or another cast to an integer type. Out-of-range values wrap around."""
    if dtype == BOOL:
        return compare("!=", value, 0)
    pattern, offset = split(value)
    limits = _limits(dtype)
    for low, high in (pattern.bounds, (pattern.low, pattern.high)):
        if low + offset >= limits.min and high + offset <= limits.max:
            return Lanes(pattern, offset, dtype)

    def make():
        return _small_if_possible(
            _modulo(pattern, offset, dtype).astype(np.uint64 if dtype == UINT64 else np.int64)
        )

    return Lanes(pattern.derive(("cast", dtype.char, offset), make), 0, dtype)


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
    """Return ``a op b`` as a Python bool if all lanes agree, and as boolean lanes otherwise."""
    (p, o), (q, r) = split(a), split(b)
    if _difference(p, q) is None or not _fits(r - o, r - o):
        return _compare_values(op, p, o, q, r)
    pattern, threshold = comparison(a, b)
    outcome = _uniform_outcome(op, pattern.low - threshold, pattern.high - threshold)
    if outcome is not None:
        return outcome
    ufunc = COMPARE[op]
    return Lanes(pattern.derive((op, threshold), lambda: ufunc(pattern.array, threshold)), 0, BOOL)


def comparison(a, b) -> tuple[Pattern, int]:
    """Reduce ``a op b`` to ``pattern op threshold``; exact for values whose difference is an int64."""
    (p, o), (q, r) = split(a), split(b)
    difference = _difference(p, q)
    if difference is None:
        difference = joint("- as float", p, q, lambda: p.array.astype(float) - q.array)
    return difference, r - o


def _compare_values(op, p, o, q, r):
    """Compare numbers too far apart for a difference; NumPy compares signed with unsigned exactly."""
    left, right = (_modulo(x, y, UINT64 if x.high + y > _LARGEST else INT64) for x, y in ((p, o), (q, r)))
    outcome = COMPARE[op](left, right)
    if outcome.all() or not outcome.any():
        return bool(outcome.flat[0])
    return Lanes(Pattern(outcome), 0, BOOL)


def _uniform_outcome(op: str, low: int, high: int):
    """Return True or False if all of low..high compare with zero in the same way, else None."""
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
    """A mask of the active lanes. ``array`` is None if all are active, else booleans broadcast over the
    lanes.
    """

    __slots__ = ("array", "serial", "memo", "geometry", "any")

    def __init__(self, geometry, array: np.ndarray | None):
        self.geometry, self.array = geometry, array
        self.serial = next(_serials)
        self.memo = {}
        self.any = array is None or bool(array.any())

    def active(self, batch: tuple = ()) -> int:
        """Return the number of active lanes, each counted once per iteration of batched loops of these
        lengths.
        """
        return self._remember(("active", batch), lambda: self._count_active(batch))

    def _count_active(self, batch: tuple) -> int:
        whole = self.geometry.lanes
        for length in batch:
            whole *= length
        if self.array is None:
            return whole
        return int(np.count_nonzero(self.array)) * whole // self.array.size

    def where(self, condition: Lanes) -> "Mask":
        """Return the active lanes in which ``condition`` is true."""
        return self._with("and", condition.pattern, lambda: self._made(condition.pattern.array))

    def where_not(self, condition: Lanes) -> "Mask":
        return self._with("not", condition.pattern, lambda: self._made(~condition.pattern.array))

    def minus(self, other: "Mask") -> "Mask":
        if other.array is None:
            return self.geometry.no_threads
        return self._with("-", other, lambda: self._made(~other.array))

    def plus(self, other: "Mask") -> "Mask":
        if self.array is None or other.array is None:
            return self.geometry.all_threads
        return self._with("+", other, lambda: self.geometry.mask(self.array | other.array))

    def _made(self, condition: np.ndarray) -> "Mask":
        return self.geometry.mask(condition if self.array is None else self.array & condition)

    def extent(self, pattern: Pattern) -> tuple[int, int] | None:
        """Return the (lowest, highest) value of the pattern in the active lanes, or None without any."""
        if self.array is None:
            return pattern.low, pattern.high
        return self._remember(("extent", pattern.serial), lambda: self._extent(pattern.array))

    def _extent(self, array: np.ndarray):
        if not self.any:
            return None
        array, mask = np.broadcast_arrays(array, self.array)
        chosen = array[mask]
        return int(chosen.min()), int(chosen.max())

    def _with(self, op, other: "Pattern | Mask", make) -> "Mask":
        return _remembered(younger(self, other).memo, (op, self.serial, other.serial), make)

    def _remember(self, key, make):
        return _remembered(self.memo, key, make)


def _remembered(memo: dict, key, make):
    found = memo.get(key)
    if found is None:
        if len(memo) > _MEMO_LIMIT:
            memo.clear()
        found = memo[key] = make()
    return found
