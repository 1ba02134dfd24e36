"""Handles arrays as values: rows and slices, attributes and methods, variables that hold one of several.

Nothing here reads or writes an element, except where a whole slice is assigned.
"""

from functools import cache
from math import prod
from typing import NamedTuple

import numpy as np
from numba import cuda

from lockstep.errors import KernelTypeError
from lockstep.memory.records import RECORDS, RecordArray
from lockstep.memory.storage import ARRAYS, ChosenArray, DeviceArray, FlatView, Unknown, row_major
from lockstep.registry import Type
from lockstep.values import lanes
from lockstep.values.complex_numbers import component
from lockstep.values.dtypes import BOOL, INT64, dtype_of
from lockstep.values.enums import EnumNumber, Member
from lockstep.values.geometry import Coordinates
from lockstep.values.lanes import ZERO, Lanes, Pattern

from .iterables import Elements
from .reductions import METHODS_THAT_REDUCE
from .words import kind_of

_MEMBERS = (EnumNumber, Member)


def has_runtime() -> bool:
    """Has the program enabled Numba's runtime on the GPU, with which functions may make and return arrays?"""
    return bool(getattr(getattr(cuda, "config", None), "CUDA_ENABLE_NRT", False))


class Escape(NamedTuple):
    """The lanes whose view of an array was taken at an index that the array does not have.

    Taking such a view is no mistake, because a GPU only computes an address. An access through the view is a
    mistake.
    """

    lanes: Lanes
    array: DeviceArray
    axis: int
    index: tuple


class Views:
    """The part of the machine that handles whole arrays."""

    # ---- parts of arrays ----

    def view(self, site, base, index):
        """Return a part of an array without reading it: ``a[i]``, ``a[:, j]``, ``x[::-1]``, ``a[..., 0]``."""
        if isinstance(base, tuple):
            return self._part_of_tuple(base, index, self.sites[site].one_constant)
        if isinstance(base, RECORDS):
            return self.element_of_records(site, base, index)
        if type(base) is ChosenArray:
            return self.each_choice(base, lambda array: self.view(site, array, index))
        part = self._part(site, base, index)
        return part if part.shape else self.read(site, part, ())

    def _part(self, site, base, index) -> DeviceArray:
        if not isinstance(base, DeviceArray):
            if isinstance(base, RecordArray):
                raise KernelTypeError(
                    f"the emulator takes no part of an array of records, such as {base.name}"
                )
            raise KernelTypeError(f"{kind_of(base)} cannot be indexed")
        given = index if isinstance(index, tuple) else (index,)
        if base.space != "local":
            return self._new_part(site, base, given)
        self.advise_registers(site, base)
        numbers = all(type(part) is int for part in given)
        row = base.rows.get(given) if numbers else None
        if row is None:
            row = self._new_part(site, base, given)
            # A row outside the array is not kept, because its lanes are reported each time.
            if numbers and _inside(given, base.shape):
                base.rows[given] = row
        return row

    def _new_part(self, site, base, given) -> DeviceArray:
        index = _without_ellipsis(base, given)
        start, shape, strides, escapes = [], [], [], base.escapes
        for part in index:
            if part is None:
                shape.append(1)
                strides.append(0)
                continue
            axis = len(start)
            if isinstance(part, slice):
                first, length, step = self._bounds(part, base.shape[axis])
                shape.append(length)
                strides.append(base.strides[axis] * step)
            else:
                first, escaped = self._row(site, base, axis, part, index)
                escapes = (*escapes, *escaped)
            start.append(first)
        pattern, offset = self._linear(base, tuple(start))
        shape, strides = (*shape, *base.shape[len(start) :]), (*strides, *base.strides[len(start) :])
        layout = _layout(base, given)
        return DeviceArray(
            base.name, base.storage, base.dtype, shape, strides, pattern, offset, layout, escapes
        )

    @staticmethod
    def _part_of_tuple(values, index, known):
        if not (isinstance(index, slice) and known):
            raise KernelTypeError(
                "Numba must know the bounds of a slice of a tuple when it compiles: write the numbers"
            )
        return tuple(values[index])

    @staticmethod
    def returned_value(value):
        """Return what a device function returns that is no parameter by name: anything but an array."""
        if isinstance(value, ARRAYS) and not has_runtime():
            raise KernelTypeError(
                "Numba lets a device function return only an array that it was passed, by the name of the "
                f"parameter, and no part or view of one: here it is {kind_of(value)}. Take the part in the "
                "caller, or return its elements"
            )
        return value

    def _settled(self, number):
        """Return an int if all active lanes hold the same, else the value as it is."""
        if type(number) is not Lanes:
            return int(number)
        reach = self.unit.mask.extent(number.pattern)
        if reach is None or reach[0] == reach[1]:
            return number.offset + (0 if reach is None else reach[0])
        return number

    # ---- attributes and methods ----

    def attribute(self, value, name, site=None):
        """Return ``value.shape`` or another attribute, a named tuple's field, or a vector's x, y, z or w."""
        if isinstance(value, ARRAYS):
            return self._attribute_of_array(value, name)
        if isinstance(value, tuple) and name in getattr(value, "_fields", ()):
            return getattr(value, name)
        if isinstance(value, RECORDS):
            return self.attribute_of_records(site, value, name)
        if name in ("real", "imag") and dtype_of(value) is not None:
            return self.component(value, name)
        if (hasattr(value, "parts") or isinstance(value, Coordinates)) and name in ("x", "y", "z", "w"):
            if hasattr(value, name):
                return getattr(value, name)
        if isinstance(value, Type) and name == "type":
            return value
        if name == "value" and isinstance(value, _MEMBERS):
            return value.value
        if name == "value" and self.only_types and isinstance(value, Unknown):
            return value  # Whether the number is an enum's member is seen when the kernel runs.
        if isinstance(value, slice) and name in ("start", "stop", "step"):
            return _bound(value, name)
        raise KernelTypeError(f"the emulator knows no .{name} of {kind_of(value)} in a kernel")

    def _attribute_of_array(self, array, name):
        if name == "dtype":
            return Type(array.dtype)
        if name == "itemsize":
            return array.dtype.itemsize
        if type(array) is ChosenArray:
            return self.each_choice(array, lambda a: self._attribute_of_array(a, name))
        if name in ("real", "imag"):
            return self._parts(array, name)
        if name in ("shape", "ndim"):
            return getattr(array, name)
        if name == "strides":
            return tuple(step * array.dtype.itemsize for step in array.strides)
        if name in ("size", "nbytes"):
            return self._size(array, array.dtype.itemsize if name == "nbytes" else 1)
        if name == "T":
            return self._transposed(array, tuple(reversed(range(array.ndim))))
        if name == "flat":
            if array.layout != "C":
                return FlatView(array)
            return array.changed(shape=(self._size(array, 1),), strides=(1,))
        raise KernelTypeError(
            f"the emulator does not support the attribute .{name} of an array in a kernel; it supports "
            "shape, strides, ndim, size, nbytes, itemsize, dtype, T, flat, real and imag"
        )

    @staticmethod
    def _parts(array, name) -> DeviceArray:
        """Return ``array.real`` or ``array.imag``, a view of every second number."""
        if array.dtype.kind != "c":
            if name == "real" and array.dtype != BOOL:
                return array
            part = "real" if name == "real" else "imaginary"
            raise KernelTypeError(f"{array.name} holds {array.dtype}, which has no {part} part")
        if array.space == "local":
            raise KernelTypeError(
                f"the emulator supports .{name} of the elements of a local array, as {array.name}[i].{name}, "
                "not of the whole array"
            )
        part = component(array.dtype)
        return array.changed(
            storage=array.storage.retyped(part),
            dtype=part,
            strides=tuple(2 * step for step in array.strides),
            pattern=None if array.pattern is None else lanes.scaled(array.pattern, 2),
            offset=2 * array.offset + (name == "imag"),
            layout="A",
        )

    def _size(self, array, itemsize):
        if all(type(extent) is int for extent in array.shape):
            return prod(array.shape) * itemsize
        size = itemsize
        for extent in array.shape:
            size = self.mul(None, size, extent)
        return size

    def length(self, value):
        """Return ``len(value)``."""
        if isinstance(value, tuple):
            return len(value)
        if isinstance(value, RecordArray):
            return self.length(value.starts)
        if not isinstance(value, ARRAYS):
            raise KernelTypeError(f"{kind_of(value)} has no length")
        shape = self.attribute(value, "shape")
        if not shape:
            raise KernelTypeError(f"{value.name} has no dimensions, so it has no length")
        return shape[0]

    def method(self, site, value, name, *arguments):
        """Carry out ``value.name(...)`` of an array or a number, and ``x.dtype.type(...)``."""
        if isinstance(value, Type) and name == "type":
            return value(self, *arguments)
        if name == "conjugate" and dtype_of(value) is not None and dtype_of(value) is not BOOL:
            return self.conjugate(value)
        if name == "item" and dtype_of(value) is not None and not isinstance(value, ARRAYS):
            return value
        if name == "view" and dtype_of(value) is not None and not isinstance(value, ARRAYS):
            return self.reinterpreted(value, *arguments)
        if isinstance(value, RECORDS):
            return self.method_of_records(site, value, name, *arguments)
        if not isinstance(value, ARRAYS) or name in ("type", "conjugate"):
            raise KernelTypeError(f"the emulator knows no method .{name}() of {kind_of(value)} in a kernel")
        if type(value) is ChosenArray and name not in METHODS_THAT_REDUCE:
            return self.each_choice(value, lambda array: self.method(site, array, name, *arguments))
        if name in METHODS_THAT_REDUCE:
            return self.reduced(site, value, name)
        return getattr(self, METHODS[name])(site, value, *arguments)

    def _transpose(self, site, array, *axes):
        if axes not in ((), (None,)):
            raise KernelTypeError(
                f"Numba does not compile {array.name}.transpose() with an order of the axes in a kernel, "
                f"only without: write {array.name}.T, or index in that order"
            )
        return self._transposed(array, tuple(reversed(range(array.ndim))))

    @staticmethod
    def _transposed(array, axes) -> DeviceArray:
        if array.ndim < 2:
            return array
        swapped = {"C": "F", "F": "C"}.get(array.layout, "A")
        layout = swapped if axes == tuple(reversed(range(array.ndim))) else "A"
        shape, strides = (tuple(values[axis] for axis in axes) for values in (array.shape, array.strides))
        return array.changed(shape=shape, strides=strides, layout=layout)

    def _reshape(self, site, array, *shape):
        shape = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple) else shape
        if array.layout != "C":
            raise KernelTypeError(
                "the emulator reshapes only arrays that lie in memory row by row, without gaps, and "
                f"{array.name} does not"
            )
        extents = [self._settled(self._extent_of(extent)) for extent in shape]
        size = self._settled(self._size(array, 1))
        if any(type(extent) is Lanes for extent in (*extents, size)):
            raise KernelTypeError("the shape for reshape() must be the same for all threads")
        if extents.count(-1) == 1 and prod(e for e in extents if e != -1) > 0:
            extents[extents.index(-1)] = size // prod(e for e in extents if e != -1)
        if prod(extents) != size or min(extents, default=0) < 0:
            raise KernelTypeError(
                f"{array.name} has {size:,} elements; it cannot be reshaped to {shape_in_words(extents)}"
            )
        return array.changed(shape=tuple(extents), strides=row_major(tuple(extents)))

    @staticmethod
    def _extent_of(extent):
        if type(extent) is Lanes or (isinstance(extent, (int, np.integer)) and type(extent) is not bool):
            return extent
        raise KernelTypeError(f"reshape() needs integers, not {kind_of(extent)}")

    def _view_as(self, site, array, dtype):
        if not isinstance(dtype, Type):
            raise KernelTypeError(f"the dtype for {array.name}.view() must be a numeric type such as int32")
        old, new = array.dtype.itemsize, dtype.dtype.itemsize
        if old == new:
            storage = array.storage.retyped(dtype.dtype)
            return array.changed(storage=storage, dtype=dtype.dtype)
        self._check_view(array, old, new)
        pattern = array.pattern
        if pattern is not None:
            source = pattern
            pattern = source.derive(("view", old, new), lambda: source.array * old // new)
        shape = (*array.shape[:-1], array.shape[-1] * old // new)
        strides = (*(step * old // new for step in array.strides[:-1]), 1)
        return array.changed(
            storage=array.storage.retyped(dtype.dtype),
            dtype=dtype.dtype,
            shape=shape,
            strides=strides,
            pattern=pattern,
            offset=array.offset * old // new,
        )

    @staticmethod
    def _check_view(array, old, new):
        """Refuse a view with elements of another size if the last axis is not contiguous or would split
        elements.
        """
        extent = array.shape[-1] if array.shape else None
        steps = [step * old % new for step in array.strides[:-1]]
        starts = [array.offset * old % new]
        if array.pattern is not None:
            starts.append(int((array.pattern.array * old % new).any()))
        whole = type(extent) is int and extent * old % new == 0 and array.strides[-1] == 1
        if not whole or any(steps) or any(starts) or array.storage.block.nbytes % new:
            if whole and any(starts):
                raise KernelTypeError(
                    f"{array.name} cannot be viewed with elements of {new} bytes, because it does not begin "
                    f"at a multiple of {new} bytes in all threads: on a GPU its address is misaligned"
                )
            raise KernelTypeError(
                f"{array.name} cannot be viewed with elements of {new} bytes: its rows are "
                "not contiguous, or not made of whole elements of that size"
            )
        if array.space == "local":
            raise KernelTypeError(
                f"the emulator supports views of a local array with elements of its own size; those of "
                f"{array.name} have {old} bytes, not {new}"
            )

    def _item(self, site, array):
        size = self._settled(self._size(array, 1))
        if type(size) is Lanes or size != 1:
            raise KernelTypeError(f"{array.name}.item() needs an array of one element")
        return self.read(site, array, (0,) * array.ndim)

    # ---- loops over arrays ----

    def items(self, site, value):
        """Return what ``for ... in value`` runs over: the elements of an array, or its rows."""
        if isinstance(value, (*ARRAYS, RecordArray)):
            return Elements(site, value, self.length(value))
        return value

    # ---- one of several arrays ----

    def join_arrays(self, chosen: Pattern, new, old):
        """Return, lane by lane, the array ``new`` where chosen and ``old`` elsewhere."""
        if new is old or not (isinstance(new, ARRAYS) and isinstance(old, ARRAYS)):
            return new  # Numba compiles an array and a number under one name as two variables.
        if type(new) is type(old) is DeviceArray:
            if _joinable(new, old):
                return self._joined(chosen, new, old)
            return ChosenArray((old, new), chosen.derive("which", lambda: chosen.array.astype(np.int64)))
        arrays, which = [], np.zeros((1, 1, 1), np.int64)
        for where, array in (*_leaves(old, ~chosen.array), *_leaves(new, chosen.array)):
            if not where.any():
                continue
            position = next((p for p, known in enumerate(arrays) if _joinable(known, array)), len(arrays))
            if position == len(arrays):
                arrays.append(array)
            else:
                arrays[position] = self._joined(Pattern(where), array, arrays[position])
            which = np.where(where, position, which)
        return arrays[0] if len(arrays) == 1 else ChosenArray(tuple(arrays), Pattern(which))

    def _joined(self, chosen: Pattern, new: DeviceArray, old: DeviceArray) -> DeviceArray:
        """Return two views of one memory as one view, which may begin elsewhere in each lane."""
        first, second = (Lanes(a.pattern or ZERO, a.offset) for a in (new, old))
        start = self._choose_integers(chosen, first, second, INT64)
        pattern, offset = lanes.split(start)
        shape = tuple(
            a
            if a is b or (type(a) is type(b) is int and a == b)
            else self._choose_integers(chosen, a, b, INT64)
            for a, b in zip(new.shape, old.shape)
        )
        escapes = (
            *_limited(new.escapes, chosen.array),
            *_limited(old.escapes, ~chosen.array),
        )
        layout = new.layout if new.layout == old.layout else "A"
        return DeviceArray(
            new.name, new.storage, new.dtype, shape, new.strides, pattern, offset, layout, escapes
        )

    def settled_choice(self, chosen: ChosenArray):
        """Return the array that all active lanes hold. If they differ, return the choice, all of one type."""
        held = [
            array
            for position, array in enumerate(chosen.arrays)
            if self.unit.mask.where(chosen.lanes(position)).any
        ]
        if len(held) < 2:
            return (held or chosen.arrays)[0]
        first, other = held[0], next((a for a in held if _kind_of_array(a) != _kind_of_array(held[0])), None)
        if other is not None:
            raise KernelTypeError(
                f"one variable is {first.name} ({first.ndim}-dimensional, {first.dtype}) in some threads and "
                f"{other.name} ({other.ndim}-dimensional, {other.dtype}) in others; "
                "Numba needs arrays of one type"
            )
        return chosen

    def each_choice(self, chosen: ChosenArray, action):
        """Return ``action(array)`` for each of the arrays, under the mask of the lanes that hold it."""
        settled = self.settled_choice(chosen)
        if settled is not chosen:
            return action(settled)
        saved, result = self.unit.mask, self.unbound
        try:
            for position, array in enumerate(chosen.arrays):
                self.unit.mask = saved.where(chosen.lanes(position))
                if self.unit.mask.any:
                    result = self.merge(action(array), result)
        finally:
            self.unit.mask = saved
        return result

    # ---- conditions ----

    def either(self, condition, a, b):
        """Return ``a`` where the condition holds, else ``b``. Both are computed."""
        if type(condition) is bool:
            return a if condition else b
        return self.choose(condition, a, b)

    @staticmethod
    def any_of(a, b):
        """Return ``a or b`` of two conditions."""
        if type(a) is bool or type(b) is bool:
            return True if a is True or b is True else b if a is False else a
        return lanes.bitwise("|", a, b)


METHODS = {
    "view": "_view_as",
    "reshape": "_reshape",
    "transpose": "_transpose",
    "item": "_item",
    "type": "",
    "conjugate": "",
    **dict.fromkeys(METHODS_THAT_REDUCE, ""),
}
"""Methods that kernels may call: of arrays, ``x.dtype.type(number)`` and ``z.conjugate()``."""


def _bound(part: slice, name: str):
    """Return ``part.start``, ``.stop`` or ``.step``. For a bound that is left out, return Numba's number."""
    backwards = type(part.step) is int and part.step < 0
    most, least = 2**63 - 1, -(2**63)
    left_out = {"start": most if backwards else 0, "stop": least if backwards else most, "step": 1}
    bound = getattr(part, name)
    return left_out[name] if bound is None else bound


def _leaves(array, where: np.ndarray):
    """Return (lanes as booleans, array) for each array that a variable holds in these lanes."""
    if type(array) is DeviceArray:
        return [(where, array)]
    return [(where & (array.which.array == p), leaf) for p, leaf in enumerate(array.arrays)]


def _joinable(a: DeviceArray, b: DeviceArray) -> bool:
    return a.storage is b.storage and a.strides == b.strides and _kind_of_array(a) == _kind_of_array(b)


def _kind_of_array(array: DeviceArray) -> tuple:
    return array.dtype, array.ndim


def _limited(escapes: tuple, where: np.ndarray) -> tuple:
    return tuple(e._replace(lanes=Lanes(Pattern(e.lanes.pattern.array & where), 0, BOOL)) for e in escapes)


def _without_ellipsis(base: DeviceArray, index: tuple) -> tuple:
    """Return the index with slices in place of an ellipsis."""
    if len(index) <= base.ndim and not any(part is ... for part in index):
        return index
    places = [position for position, part in enumerate(index) if part is ...]
    named = sum(part is not None and part is not ... for part in index)
    if len(places) > 1:
        raise KernelTypeError("an index can hold only one ellipsis")
    if named > base.ndim:
        given = "1 index is" if named == 1 else f"{named} indices are"
        raise KernelTypeError(
            f"{base.name} has {base.ndim} dimension{'s' * (base.ndim != 1)}, but {given} given"
        )
    if not places:
        return index
    filled = (slice(None),) * (base.ndim - named)
    return (*index[: places[0]], *filled, *index[places[0] + 1 :])


def _inside(index: tuple, shape: tuple) -> bool:
    return all(type(extent) is int and 0 <= part < extent for part, extent in zip(index, shape))


def _layout(base: DeviceArray, index: tuple) -> str:
    """Return Numba's layout of a view. A part of an array keeps the layout only if its type says so."""
    return _layout_of(base.layout, base.ndim, tuple(map(_kind_of_part, index)))


def _kind_of_part(part) -> str:
    """Return the kind of one part of an index, as far as a view's layout depends on it."""
    if part is None or part is ...:
        return "new" if part is None else "rest"
    return ("slice" if part.step is None else "steps") if isinstance(part, slice) else "number"


@cache
def _layout_of(layout: str, ndim: int, index: tuple) -> str:
    if layout == "A":
        return "A"
    at = index.index("rest") if "rest" in index else len(index)
    left, right = index[:at], index[at + 1 :]
    whole = sum(part != "new" for part in (*left, *right)) == ndim
    outer, inner = (left, right) if layout == "C" else (right, left)
    if at == len(index):
        outer, inner = (left, ()) if layout == "C" or whole else ((), left)
    elif whole:
        outer, inner = left + right, ()
    if layout == "F":
        outer = outer[::-1]
    if inner or any(part != "number" for part in outer[:-1]):
        return "A"
    return "A" if outer and outer[-1] in ("new", "steps") else layout


def shape_in_words(shape) -> str:
    """Return a shape in words: ``4 by 8 elements``.

    An extent that differs between lanes has several numbers.
    """
    shown = " by ".join(f"{e.low} to {e.high}" if type(e) is Lanes else str(e) for e in shape)
    return f"{shown or 'no'} elements"
