"""Adds ``x * y`` to ``total`` one iteration after another, in loops whose iterations run at once."""

import numpy as np

from lockstep.values.dtypes import TIMES, promote
from lockstep.values.lanes import Lanes


class Accumulation:
    """The part of the machine that adds up over iterations that run at once."""

    def accumulate(self, site, total, x, y, loops, region):
        """Add ``x * y`` (``x`` if y is None) to ``total``, one batched iteration after another."""
        levels = sorted(self.unit.batched[loop] for loop in loops if loop in self.unit.batched)
        if not levels:
            new = self.add(site, total, x) if y is None else self.fma(site, x, y, total)
            return self.assign(new, total, region)
        factors = [v for v in (x, y) if v is not None]
        if not self._integers(total, *factors):
            self._count_accumulation(site, total, factors)
        for iteration in np.ndindex(*(self.unit.batch[level] for level in levels)):
            parts = [self._of_iteration(v, levels, iteration) for v in factors]
            total = self._accumulate_iteration(site, total, parts, region, fresh=any(iteration))
        return total

    def _accumulate_iteration(self, site, total, factors, region, fresh):
        """Add one iteration's products.

        ``fresh`` says that no other variable refers to the array ``total``.
        """
        if self._integers(total, *factors):
            term = factors[0] if len(factors) == 1 else self.mul(site, *factors)
            return self.assign(self.add(site, total, term), total, region)
        factor = self._factor_type(factors)
        dtype = promote(factor, self._dtype(total))
        term = factors[0] if len(factors) == 1 else self._apply(np.multiply, *factors, factor)
        if fresh and self.unit.mask is region and self._holds(total, term, dtype):
            return np.add(total, term, out=total, dtype=dtype)
        return self.assign(self._apply(np.add, total, term, dtype), total, region)

    @staticmethod
    def _holds(total, term, dtype) -> bool:
        """Return whether the array ``total`` can hold the result."""
        if type(total) is not np.ndarray or total.dtype != dtype or dtype.kind in TIMES:
            return False
        shape = np.shape(term)
        return total.shape == shape or np.broadcast_shapes(total.shape, shape) == total.shape

    def _count_accumulation(self, site, total, factors):
        factor = self._factor_type(factors)
        result = promote(factor, self._dtype(total))
        if len(factors) == 1:
            self._count_float(site, "add", result)
        elif factor == result:
            self._count_float(site, "fma", result)
        else:
            self._count_float(site, "mul", factor)
            self._count_float(site, "add", result)

    def _of_iteration(self, value, levels, iteration):
        """Return one iteration's slice of a value that has the axes of batched loops."""
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


def _without_ones(array):
    """Drop leading axes of length 1, but keep the three axes of the lanes."""
    while np.ndim(array) > 3 and array.shape[0] == 1:
        array = array[0]
    return array
