"""Holds arrays of records, such as the states of ``numba.cuda.random``: fields lie along a last dimension.

A record becomes a row of units. The sizes and offsets of all fields are multiples of the unit, so a field is
one unit or several neighbours. A field keeps its address, and so its accesses cost and race as on a GPU.
"""

from math import gcd
from typing import NamedTuple

import numpy as np

from lockstep.errors import KernelTypeError, LaunchError
from lockstep.values.complex_numbers import component, joined
from lockstep.values.dtypes import dtype_of
from lockstep.values.lanes import Lanes

from .storage import Unknown, unknown


class Field(NamedTuple):
    """A field: its type, and where it begins in the record, in bytes."""

    kind: np.dtype
    offset: int


class Records:
    """An argument that is a structured NumPy array, seen as an array of numbers."""

    def __init__(self, name: str, records: np.ndarray):
        self.fields = {name: Field(*where[:2]) for name, where in records.dtype.fields.items()}
        kinds = {field.kind for field in self.fields.values()}
        if any(kind.kind not in "biufc" or kind.shape for kind in kinds):
            raise LaunchError(
                f"{name} has records of {records.dtype}; the emulator supports fields that are numbers"
            )
        if not records.flags.c_contiguous:
            raise LaunchError(f"{name} is a view of records; pass np.ascontiguousarray({name})")
        sizes = [number for field in self.fields.values() for number in (field.kind.itemsize, field.offset)]
        unit = gcd(8, records.dtype.itemsize, *sizes)
        alike = len(kinds) == 1 and component_of(next(iter(kinds))).itemsize == unit
        number = component_of(kinds.pop()) if alike else np.dtype(f"u{unit}")
        self.array = records.view(number).reshape(*records.shape, records.dtype.itemsize // unit)

    def in_kernel(self, array) -> "RecordArray":
        return RecordArray(array, self.fields)


class RecordArray:
    """An array of records as a kernel sees it. ``numbers``: the array whose last dimension is the fields."""

    def __init__(self, numbers, fields: dict):
        self.numbers, self.fields, self.name = numbers, fields, numbers.name
        self.shape, self.ndim = numbers.shape[:-1], len(numbers.shape) - 1

    @property
    def record_kind(self) -> tuple:
        """Return what decides the types of a kernel that gets this array."""
        return type(self), *self.fields.items(), self.ndim

    @property
    def size(self):
        return int(np.prod(self.shape, dtype=np.int64))

    def __len__(self):
        return self.shape[0]

    def record(self, index) -> "Record":
        index = index if isinstance(index, tuple) else (index,)
        if len(index) != self.ndim or not all(map(_is_whole, index)):
            raise KernelTypeError(
                f"the emulator supports {self.name}, an array of records, with one integer per dimension as "
                "its index, and then a field's name"
            )
        return Record(self, index)


class Record:
    """One record per lane: where it lies, not what it holds."""

    def __init__(self, array: RecordArray, index: tuple):
        self.array, self.index = array, index

    @property
    def record_kind(self) -> tuple:
        return type(self), *self.array.fields.items()

    def place(self, field) -> tuple:
        """Return (array of numbers, index of the field's first one, dtype of the field)."""
        fields, numbers = self.array.fields, self.array.numbers
        if type(field) is int:
            field = self._name_of(field)
        if not isinstance(field, str) or field not in fields:
            raise KernelTypeError(
                f"a record of {self.array.name} has the fields {', '.join(fields)}, not {field}"
            )
        kind, offset = fields[field]
        if offset % component_of(kind).itemsize:
            raise KernelTypeError(
                f"the field {field} of {self.array.name} begins at byte {offset} of a record, which is not "
                f"aligned for {kind}: Numba refuses that; make the dtype with align=True"
            )
        return numbers, (*self.index, offset // numbers.dtype.itemsize), kind

    def _name_of(self, number: int) -> str:
        fields = list(self.array.fields)
        if not -len(fields) <= number < len(fields):
            raise KernelTypeError(
                f"a record of {self.array.name} has {len(fields)} fields, and none has the number {number}"
            )
        return fields[number]


class RecordAccess:
    """The machine's part that reads and writes fields of records."""

    def element_of_records(self, site, base, index):
        """Return ``records[i]``, ``records[i]["field"]``, or ``records[i][-1]``, where -1 numbers a field."""
        if isinstance(base, RecordArray):
            return base.record(index)
        numbers, where, kind = self._place_of(site, base, index)
        if kind.kind != "c":
            return self._read_field(site, numbers, where, kind)
        first, second = _halves(numbers, where, kind)
        real = self.own(self._read_field(site, numbers, first, component(kind)))
        imag = self._read_field(site, numbers, second, component(kind))
        return unknown(kind) if isinstance(real, Unknown) else joined(real, imag)

    def _place_of(self, site, record: Record, field):
        if isinstance(field, (int, Lanes)) and not self.sites[site].one_constant:
            raise KernelTypeError(
                f"Numba must know which field of {record.array.name} this is: give its name, or its number "
                "as a constant"
            )
        return record.place(field)

    def _read_field(self, site, numbers, where, kind):
        if kind == numbers.dtype:
            return self.read(site, numbers, where)
        width = kind.itemsize // numbers.dtype.itemsize
        values = self.read(site, numbers, where, width, boundary=1)
        values = values if width > 1 else (values,)
        if any(isinstance(value, Unknown) for value in values):
            return unknown(kind)
        units = [np.asarray(self.plain(value), numbers.dtype) for value in values]
        return self._as_numbers(np.stack(np.broadcast_arrays(*units), axis=-1).view(kind)[..., 0][()])

    def _write_field(self, site, numbers, where, kind, value):
        if kind == numbers.dtype:
            self.write(site, numbers, where, value)
            return
        width = kind.itemsize // numbers.dtype.itemsize
        if isinstance(value, Unknown):
            units = (unknown(numbers.dtype),) * width
        else:
            whole = np.ascontiguousarray(np.asarray(self.plain(value)).astype(kind)[..., None])
            units = tuple(unit[()] for unit in np.moveaxis(whole.view(numbers.dtype), -1, 0))
        self.write(site, numbers, where, units if width > 1 else units[0], width, boundary=1)

    def assign_field(self, site, base, index, value):
        """Carry out ``records[i]["field"] = value``, or ``records[i] = record``."""
        if isinstance(base, Record):
            numbers, where, kind = self._place_of(site, base, index)
            value = self.cast(kind, value)
            if kind.kind != "c":
                self._write_field(site, numbers, where, kind, value)
                return
            for part, name in zip(_halves(numbers, where, kind), ("real", "imag")):
                self._write_field(site, numbers, part, component(kind), self.component(value, name))
            return
        if not isinstance(value, Record) or value.array.fields != base.fields:
            raise KernelTypeError(f"only a record with the same fields can be stored in {base.name}")
        values = {field: self.element_of_records(site, value, field) for field in base.fields}
        for field, number in values.items():
            self.assign_field(site, base.record(index), field, number)

    def assign_attribute(self, site, base, name, value):
        """Carry out ``record.field = value``."""
        self.require_record(base, name)
        self.assign_field(site, base, name, value)

    def require_record(self, base, name):
        if not isinstance(base, Record):
            raise KernelTypeError(
                f"a kernel cannot assign to attributes, as to .{name} of {self.kind_of(base)}"
            )

    def joined_records(self, new: Record, old):
        """Return a variable that holds ``new`` in the active lanes and ``old`` in the others."""
        if not isinstance(old, Record) or old.array is not new.array:
            raise KernelTypeError("a variable cannot hold records of different arrays in different threads")
        return Record(new.array, tuple(map(self.merge, new.index, old.index)))


def _is_whole(index) -> bool:
    """Tell whether an index is an integer, the same in all lanes or not."""
    dtype = None if isinstance(index, slice) else dtype_of(index)
    return dtype is not None and dtype.kind in "iu"


def component_of(kind: np.dtype) -> np.dtype:
    """Return the dtype as which a field is accessed. A complex number is accessed part by part."""
    return component(kind) if kind.kind == "c" else kind


def _halves(numbers, where: tuple, kind: np.dtype) -> tuple:
    """Return the indices of the real and of the imaginary part."""
    step = component(kind).itemsize // numbers.dtype.itemsize
    return where, (*where[:-1], where[-1] + step)
