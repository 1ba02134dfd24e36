"""Defines what a ``for`` loop may run over besides a plain ``range``: tuples, arrays, ``enumerate``, ``zip``.

Each iterable has a ``length``, which may differ from lane to lane, and ``at(machine, position)``, which
returns the value there.
"""

import numpy as np

from lockstep.errors import KernelTypeError
from lockstep.memory.storage import ARRAYS
from lockstep.registry import Emulation
from lockstep.values.dtypes import BOOL, dtype_of, range_type

from .words import kind_of, type_of


class LaneRange:
    """The value of ``range(...)`` in a kernel if its bounds differ from lane to lane."""

    __slots__ = ("start", "stop", "step")

    def __init__(self, start, stop, step):
        self.start, self.stop, self.step = start, stop, step


class TypedRange:
    """The value of ``range(...)`` in a kernel if its numbers are of another type than int64."""

    __slots__ = ("numbers", "dtype")

    def __init__(self, numbers, dtype):
        self.numbers, self.dtype = numbers, dtype


class Typed:
    """An iterable whose values are cast to a dtype."""

    def __init__(self, values, dtype):
        self.values, self.dtype, self.length = values, dtype, values.length

    def at(self, machine, position):
        return machine.cast(self.dtype, self.values.at(machine, position))


class Range:
    """An iterable over a :class:`LaneRange`, which computes the values from their positions."""

    def __init__(self, machine, values: LaneRange):
        self.start, self.step = values.start, values.step
        # The quotient of the distance is rounded up, whatever the sign of the step.
        back = machine.floordiv(None, machine.sub(None, values.start, values.stop), self.step)
        self.length = machine.maximum(None, machine.sub(None, 0, back), 0)

    def at(self, machine, position):
        return machine.add(None, self.start, machine.mul(None, position, self.step))


class Sequence:
    """An iterable over a tuple, or over a range that is the same in all lanes."""

    def __init__(self, values):
        self.values, self.length = values, len(values)

    def at(self, machine, position):
        return self.values[position]


class Elements:
    """An iterable over the elements of an array, or over its rows. They are read at ``site``."""

    def __init__(self, site, array, length):
        self.site, self.array, self.length = site, array, length

    def at(self, machine, position):
        return machine.subscript(self.site, self.array, position)


class Enumerated:
    """An iterable over the pairs of ``enumerate(values, start)``."""

    def __init__(self, values, start):
        self.values, self.start, self.length = values, start, values.length

    def at(self, machine, position):
        return machine.add(None, position, self.start), self.values.at(machine, position)


class Indices:
    """An iterable over the index tuples of ``np.ndindex(shape)``, in which the last index runs fastest."""

    def __init__(self, machine, shape: tuple):
        self.shape, self.length = shape, 1
        for extent in shape:
            self.length = machine.mul(None, self.length, machine.maximum(None, extent, 0))

    def at(self, machine, position):
        index = []
        for extent in reversed(self.shape[1:]):
            index.append(machine.mod(None, position, extent))
            position = machine.floordiv(None, position, extent)
        return (position, *reversed(index)) if self.shape else ()


class IndexedElements:
    """An iterable over the pairs of ``np.ndenumerate(array)``. The elements are read at ``site``."""

    def __init__(self, machine, site, array):
        self.site, self.array = site, array
        self.indices = Indices(machine, machine.attribute(array, "shape"))
        self.length = self.indices.length

    def at(self, machine, position):
        index = self.indices.at(machine, position)
        return index, machine.own(machine.subscript(self.site, self.array, index))


class Zipped:
    """An iterable over the tuples of ``zip(...)``, which ends with the shortest part."""

    def __init__(self, machine, parts):
        self.parts, self.length = parts, parts[0].length if parts else 0
        for part in parts[1:]:
            self.length = machine.minimum(None, self.length, part.length)

    def at(self, machine, position):
        return tuple(part.at(machine, position) for part in self.parts)


def iterable(machine, values):
    """Return ``values`` with a length and ``at``. Raise KernelTypeError if a loop cannot run over them."""
    if isinstance(values, tuple):
        check_one_type(values)
        return Sequence(values)
    if isinstance(values, range):
        return Sequence(values)
    if isinstance(values, LaneRange):
        return Range(machine, values)
    if isinstance(values, TypedRange):
        return Typed(iterable(machine, values.numbers), values.dtype)
    if hasattr(values, "at"):
        return values
    raise KernelTypeError(f"a for loop runs over a range or a tuple, not over {machine.kind_of(values)}")


def check_one_type(values: tuple):
    """Raise KernelTypeError for a tuple that Numba cannot loop over: of several types, or empty."""
    types = {type_of(value) for value in values}
    if not values:
        raise KernelTypeError("Numba does not go over an empty tuple")
    if len(types) > 1:
        listed = " and ".join(sorted(map(str, types)))
        raise KernelTypeError(f"Numba goes only over tuples whose values have one type, not {listed}")


def _enumerate(machine, values, start=0):
    dtype = dtype_of(start)
    if dtype is None or dtype.kind not in "biu":
        raise KernelTypeError(f"enumerate() starts at an integer, not at {machine.kind_of(start)}")
    return Enumerated(iterable(machine, values), start)


def _zip(machine, *values):
    return Zipped(machine, [iterable(machine, part) for part in values])


def _ndindex(machine, *shape):
    shape = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
    for extent in shape:
        if (dtype_of(extent) or BOOL).kind not in "iu":
            raise KernelTypeError(f"np.ndindex() takes integers or a tuple of them, not {kind_of(extent)}")
    return Indices(machine, shape)


def _ndenumerate(machine, array):
    if not isinstance(array, ARRAYS):
        raise KernelTypeError(f"np.ndenumerate() takes an array, not {kind_of(array)}")
    return IndexedElements(machine, machine.site, array)


INDICES = {
    "ndindex": Emulation(_ndindex, elementwise=False, kind="indices"),
    "ndenumerate": Emulation(_ndenumerate, elementwise=False, kind="indices"),
}
ITERABLES = {
    "enumerate": Emulation(_enumerate, elementwise=False, kind="iterable"),
    "zip": Emulation(_zip, elementwise=False, kind="iterable"),
}


def type_of_range(types) -> np.dtype:
    """Return the type of a range's numbers from those of its bounds.

    Raise KernelTypeError for other types.
    """
    for dtype in types:
        if dtype.kind == "c":
            raise KernelTypeError(f"range() takes no complex numbers, as of {dtype}")
    return range_type(*types)
