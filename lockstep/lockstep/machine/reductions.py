"""Computes one number from all elements of an array, as ``x.sum()`` and ``np.argmax(x)`` do in each thread.

A thread goes over the elements one after another, in the order and with the types of Numba's own loops.
"""

import numpy as np

from lockstep.errors import KernelTypeError
from lockstep.memory.storage import ARRAYS, Unknown, unknown
from lockstep.registry import Emulation
from lockstep.values import lanes
from lockstep.values.dtypes import BOOL, FLOAT16, FLOAT64, INT64, TIMES, UINT64, dtype_of, is_integer

from .words import kind_of

# Numba takes a number too in a call of these functions.
_OF_NUMBERS = {"any": BOOL, "all": BOOL, "count_nonzero": INT64}


class Reductions:
    """The part of the machine that reduces whole arrays to numbers."""

    def reduced(self, site, array, name):
        """Return ``array.name()`` or ``np.name(array)`` for a name in REDUCTIONS."""
        if name in _OF_NUMBERS and not isinstance(array, ARRAYS) and dtype_of(array) is not None:
            return self.converted(_OF_NUMBERS[name], self.compare("!=", array, 0))
        if not isinstance(array, ARRAYS):
            raise KernelTypeError(f"np.{name}() takes an array in a kernel, not {kind_of(array)}")
        _check_dtype(name, array)
        return getattr(self, f"_{name}_of")(site, array)

    # ---- sums and products ----

    def _sum_of(self, site, array):
        start = self.cast(_total(array.dtype), 0)
        return self._folded(site, array, start, lambda total, x: self.add(site, total, x))

    def _prod_of(self, site, array):
        start = self.cast(_total(array.dtype), 1)
        return self._folded(site, array, start, lambda total, x: self.mul(site, total, x))

    def _nansum_of(self, site, array):
        start = self.cast(INT64 if is_integer(array.dtype) else array.dtype, 0)
        return self._folded(site, array, start, lambda total, x: self.add(site, total, _without_nan(x)))

    def _count_nonzero_of(self, site, array):
        def counted(count, x):
            return self.add(site, count, self.converted(INT64, self.compare("!=", x, 0)))

        return self._folded(site, array, 0, counted)

    def _mean_of(self, site, array):
        start = self.cast(FLOAT64 if is_integer(array.dtype) else array.dtype, 0)
        total = self._folded(site, array, start, lambda total, x: self.add(site, total, x))
        return self.div(site, total, self.attribute(array, "size"))

    def _var_of(self, site, array):
        mean = self._mean_of(site, array)

        def squared(total, x):
            apart = self.sub(site, x, mean)
            square = self.mul(site, apart, self.conjugate(apart))
            return self.add(site, total, self.component(square, "real"))

        total = self._folded(site, array, self.cast(FLOAT64, 0), squared)
        return self.div(site, total, self.attribute(array, "size"))

    def _std_of(self, site, array):
        return self.pow(site, self._var_of(site, array), 0.5)

    def _folded(self, site, array, result, step):
        """Return what ``step`` makes of a result and each element, in the lanes that have the element."""
        entry = self.unit.mask
        for where in self._places(site, array):
            new = step(result, self.own(self.read(site, array, where)))
            here = self.unit.mask
            some = here is not entry and here.array is not None
            result = self.choose(lanes.from_values(here.array), new, result) if some else new
        return result

    # ---- places and conditions ----

    def _argmin_of(self, site, array):
        return self._place_of(site, array, "argmin", np.less)

    def _argmax_of(self, site, array):
        return self._place_of(site, array, "argmax", np.greater)

    def _place_of(self, site, array, name, precedes):
        """Return the position of the first extreme element, or of the first NaN."""
        shape = [self.plain(extent) for extent in self.attribute(array, "shape")]
        if not self.only_types:
            empty = np.asarray(self.plain(self.attribute(array, "size")) == 0)
            self.raise_where(empty, site, "ValueError", f"attempt to get {name} of an empty sequence")
        best, place = None, np.zeros((1, 1, 1), np.int64)
        for where in self._places(site, array, by_rows=True):
            x = self.plain(self.own(self.read(site, array, where)))
            if isinstance(x, Unknown):
                place = unknown(INT64)
            elif best is None:
                best = x
            else:
                first = precedes(x, best)
                if array.dtype.kind == "f":
                    first = (first | np.isnan(x)) & ~np.isnan(best)
                first = first & self._active()
                best = np.where(first, x, best)
                place = np.where(first, _position(where, shape), place)
        if isinstance(place, Unknown):
            return place
        return int(place.flat[0]) if place.size == 1 else lanes.from_values(place)

    def _any_of(self, site, array):
        return self._decided(site, array, lambda true: true, False)

    def _all_of(self, site, array):
        return self._decided(site, array, np.logical_not, True)

    def _decided(self, site, array, decides, otherwise):
        """Return ``otherwise`` in the lanes in which no element decides. A lane that is decided stops."""
        decided, known, entry = np.zeros((1, 1, 1), np.bool_), True, self.unit.mask
        for where in self._places(site, array):
            if decided.any():
                self.unit.mask = self.unit.mask.where(lanes.from_values(~decided))
            if decided.all() or not self.unit.mask.any:
                continue
            x = self.own(self.read(site, array, where))
            known = known and not isinstance(x, Unknown)
            if known:
                decided = decided | (decides(np.asarray(self.plain(x)) != 0) & self._active())
        self.unit.mask = entry
        outcome = decided != otherwise
        if not known:
            return unknown(BOOL)
        return bool(outcome.flat[0]) if outcome.size == 1 else lanes.from_values(outcome)

    # ---- the elements in their order ----

    def _active(self):
        return True if self.unit.mask.array is None else self.unit.mask.array

    def _places(self, site, array, by_rows=False):
        """Yield every index under the mask of the lanes that have it, by columns for an array of layout F."""
        shape = self.attribute(array, "shape")
        if self.only_types:
            yield (0,) * len(shape)
        elif getattr(array, "layout", "C") == "F" and not by_rows:
            yield from (where[::-1] for where in self._positions(site, shape[::-1]))
        else:
            yield from self._positions(site, shape)


def _check_dtype(name, array):
    if array.dtype == FLOAT16 and name != "count_nonzero":
        raise KernelTypeError(
            f"Numba compiles no {name}() of {array.name}, of float16, on a GPU: write a loop"
        )
    if array.dtype.kind == "c" and name in ("argmin", "argmax"):
        raise KernelTypeError(f"Numba has no {name}() of complex numbers, which {array.name} holds")
    if array.dtype.kind in TIMES:
        raise KernelTypeError(f"the emulator does not support {name}() of {array.dtype}: write a loop")


def _total(dtype: np.dtype) -> np.dtype:
    return (UINT64 if dtype.kind == "u" else INT64) if is_integer(dtype) else dtype


def _without_nan(x):
    """Return a number with 0 in place of NaN, which leaves a sum as it is."""
    if isinstance(x, Unknown) or getattr(x, "dtype", INT64).kind not in "fc":
        return x
    return np.where(np.isnan(x), x.dtype.type(0), x)


def _position(where, shape):
    position = 0
    for index, extent in zip(where, shape):
        position = position * extent + index
    return position


def _by_numpy(name):
    def reduce(machine, a):
        return machine.reduced(machine.site, a, name)

    return Emulation(reduce, reads=(0,), elementwise=False)


METHODS_THAT_REDUCE = ("sum", "prod", "mean", "var", "std", "argmin", "argmax", "any", "all")
REDUCTIONS = {name: _by_numpy(name) for name in (*METHODS_THAT_REDUCE, "nansum", "count_nonzero")}
