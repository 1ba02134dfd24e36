"""Holds records, alone or in arrays: fields that are numbers, other records, or arrays of either.

Memory that holds records is an array of units. The sizes and offsets of all fields are multiples of the unit,
so a number is one unit or several neighbours. It keeps its address, and so its accesses cost and race as on a
GPU.
"""

import ctypes
from functools import cache
from math import gcd
from typing import NamedTuple

import numpy as np

from lockstep.errors import KernelTypeError
from lockstep.registry import Type
from lockstep.values.complex_numbers import component, joined

from .storage import ARRAYS, ChosenArray, Constant, DeviceArray, Unknown, layout_of, row_major, unknown

_ARRAY_ATTRIBUTES = ("shape", "ndim", "size", "strides")


class Units(NamedTuple):
    """The units of records of one dtype: the type of a unit, and how many units a record has."""

    dtype: np.dtype
    count: int


def units_of(record: np.dtype, *distances: int) -> Units:
    """Return the units of records. ``distances``: other numbers of bytes that must be whole units."""
    parts = list(_parts(record))
    sizes = [size for kind, offset in parts for size in (component_of(kind).itemsize, offset)]
    unit = gcd(8, *sizes, *distances)
    kinds = {component_of(kind) for kind, _ in parts if kind.names is None}
    alike = len(kinds) == 1 and all(kind.kind in "biuf" and kind.itemsize == unit for kind in kinds)
    return Units(kinds.pop() if alike else np.dtype(f"u{unit}"), record.itemsize // unit)


def _parts(kind: np.dtype, offset: int = 0):
    """Yield (type, offset) of a record and of all that it holds. An array stands for its first item."""
    yield kind.base, offset
    for inner, where, *_ in (kind.base.fields or {}).values():
        yield from _parts(inner, offset + where)


class Leaf(NamedTuple):
    """A number in a record: its type, where it begins, in bytes, and how it is written after the record."""

    kind: np.dtype
    offset: int
    text: str


@cache
def leaves_of(record: np.dtype) -> tuple[Leaf, ...]:
    """Return all numbers of a record, those of its records and arrays too, in the order of its fields."""
    return tuple(_leaves(record, 0, ""))


def _leaves(kind: np.dtype, offset: int, text: str):
    base = kind.base
    for position, index in enumerate(np.ndindex(kind.shape)):
        here = f"{text}[{', '.join(map(str, index))}]" if index else text
        start = offset + position * base.itemsize
        if base.fields is None:
            yield Leaf(base, start, here)
        for name in base.names or ():
            inner, where, *_ = base.fields[name]
            yield from _leaves(inner, start + where, f"{here}.{name}")


class Records:
    """An argument or a constant that holds records, seen as an array of units along a last dimension.

    ``array`` has the units. ``single``: whether it is one record, and not an array of them.
    """

    def __init__(self, records: np.ndarray, single: bool = False):
        self.record, self.single, self.layout = records.dtype, single, layout_of(records)
        address, _ = records.__array_interface__["data"]
        unit, count = units_of(records.dtype, address, *records.strides)
        self.array = records.view([("units", unit, (count,))])["units"]

    def in_kernel(self, array: DeviceArray):
        """Return the records in an array of their units, as a kernel sees them."""
        records = RecordArray(records_in(array, self.record, self.layout), self.record)
        return Record(records.starts, self.record) if self.single else records


class ConstantRecords(Constant):
    """An array of records from outside a kernel, which Numba puts into constant memory."""

    def in_kernel(self, name: str, counts_only: bool = False) -> "RecordArray":
        records = Records(self.array.copy(order="A"))
        return records.in_kernel(Constant(records.array).in_kernel(name, counts_only))


def array_of_record(record: np.void) -> np.ndarray:
    """Return the memory of one record as an array without dimensions, through which it can be changed."""
    address, read_only = record.__array_interface__["data"]
    memory = (ctypes.c_char * record.dtype.itemsize).from_address(address)
    # The reference from `memory` to the record keeps the record's memory alive.
    memory.owner = record
    array = np.ndarray((), record.dtype, memory)
    array.flags.writeable = not read_only
    return array


def records_in(units: DeviceArray, record: np.dtype, layout: str = "C") -> DeviceArray:
    """Return the first units of the records whose units lie along an array's last dimension."""
    if units.shape == units.storage.shape:
        units.storage.record = record
    return units.changed(shape=units.shape[:-1], strides=units.strides[:-1], layout=layout)


@cache
def type_of_records(record: np.dtype) -> Type:
    """Return the type of a structured dtype, for ``cuda.shared.array(8, dtype)``: always the same object."""
    return Type(record)


class _OfRecords:
    """Records of one dtype. ``starts``: the array whose elements are the first units of the records."""

    def __init__(self, starts, record: np.dtype):
        self.starts, self.record = starts, record

    @property
    def name(self) -> str:
        return self.starts.name

    @property
    def ndim(self) -> int:
        return self.starts.ndim

    @property
    def space(self) -> str:
        return getattr(self.starts, "space", "")

    @property
    def record_kind(self) -> tuple:
        """Return what decides the types of a kernel that gets these records."""
        return type(self), self.record, self.ndim

    def field(self, name) -> tuple[np.dtype, int]:
        """Return the type and the offset of a field, in bytes. Refuse a field that a kernel cannot use."""
        if name not in self.record.names:
            names = ", ".join(self.record.names)
            raise KernelTypeError(f"the records of {self.name} have the fields {names}, not {name}")
        kind, offset, *_ = self.record.fields[name]
        if kind.base.names is None and kind.base.kind not in "biufcmM":
            raise KernelTypeError(
                f"the field {name} of {self.name} holds {kind.base}, and the emulator supports only fields "
                "that are numbers, records, or arrays of these"
            )
        if kind.base.names is None and offset % component_of(kind.base).itemsize:
            raise KernelTypeError(
                f"the field {name} of {self.name} begins at byte {offset} of a record, which is not "
                f"aligned for {kind.base}: Numba refuses that; make the dtype with align=True"
            )
        return kind, offset

    def name_of_field(self, number: int) -> str:
        names = self.record.names
        if not -len(names) <= number < len(names):
            raise KernelTypeError(
                f"a record of {self.name} has {len(names)} fields, and none has the number {number}"
            )
        return names[number]


class RecordArray(_OfRecords):
    """An array of records as a kernel sees it."""

    @property
    def words(self) -> str:
        return f"the array of records {self.name}"


class Record(_OfRecords):
    """A record in each lane, which knows where its memory is. ``starts`` has no dimensions."""

    @property
    def words(self) -> str:
        return f"a record of {self.name}"


RECORDS = (Record, RecordArray)


class RecordAccess:
    """The part of the machine that reads and writes fields of records."""

    # ---- parts of arrays of records, and fields ----

    def element_of_records(self, site, base, index):
        """Return ``records[i]``, ``records[1:]``, ``records["field"]``, ``record["field"]`` or ``record[1]``.

        The 1 numbers a field.
        """
        if isinstance(base, Record):
            return self.field_of_records(site, base, self._name_of_field(site, base, index))
        if isinstance(index, str):
            return self.field_of_records(site, base, index)
        return _records(in_each(self, base.starts, lambda array: self._part(site, array, index)), base.record)

    def _name_of_field(self, site, record: Record, index) -> str:
        if isinstance(index, str):
            return index
        if type(index) is not int or not self.sites[site].one_constant:
            raise KernelTypeError(
                f"Numba must know which field of {record.name} this is: give its name, or its number "
                "as a constant"
            )
        return record.name_of_field(index)

    def field_of_records(self, site, base, name: str):
        """Return a field: the number that one record has there, or a part of the memory of the records."""
        kind, offset = base.field(name)
        unit = base.starts.dtype
        if kind.base.names is None and not kind.shape and isinstance(base, Record):
            return self._read_number(site, base, kind, offset)

        def part(starts: DeviceArray):
            steps = (step * (kind.base.itemsize // unit.itemsize) for step in row_major(kind.shape))
            moved = starts.changed(
                offset=starts.offset + offset // unit.itemsize,
                shape=(*starts.shape, *kind.shape),
                strides=(*starts.strides, *steps),
                layout="C" if isinstance(base, Record) else "A",
            )
            return moved if kind.base.names else _as_numbers(moved, kind.base, name)

        found = in_each(self, base.starts, part)
        return _records(found, kind.base) if kind.base.names else found

    def attribute_of_records(self, site, base, name: str):
        """Return ``records.shape`` or another attribute that all arrays have, or else a field."""
        if isinstance(base, Record):
            return self.field_of_records(site, base, name)
        if name in _ARRAY_ATTRIBUTES:
            return self.attribute(base.starts, name)
        if name in ("itemsize", "nbytes"):
            size = base.record.itemsize
            return size if name == "itemsize" else self.mul(None, self.attribute(base.starts, "size"), size)
        if name == "dtype":
            return type_of_records(base.record)
        if name in ("T", "flat"):
            return self._reshaped(base, self.attribute(base.starts, name), name == "flat")
        return self.field_of_records(site, base, name)

    def method_of_records(self, site, base, name: str, *arguments):
        """Carry out ``records.reshape(...)`` or ``records.transpose(...)``."""
        if isinstance(base, Record) or name not in ("reshape", "transpose"):
            raise KernelTypeError(
                f"the emulator supports no method .{name}() of {base.words}, only .reshape() and "
                ".transpose() of an array of records"
            )
        return self._reshaped(base, self.method(site, base.starts, name, *arguments), name == "reshape")

    def _reshaped(self, base, starts, row_by_row: bool):
        """Return records in another order. ``row_by_row``: whether they lie one after the other."""
        units = base.record.itemsize // starts.dtype.itemsize if row_by_row else 1
        scaled = in_each(
            self, starts, lambda array: array.changed(strides=tuple(step * units for step in array.strides))
        )
        return RecordArray(scaled, base.record)

    # ---- reading and writing the numbers of a record ----

    def _read_number(self, site, record: Record, kind, offset):
        if kind.kind != "c":
            return self._read_units(site, record, kind, offset)
        part = component(kind)
        real = self.own(self._read_units(site, record, part, offset))
        imag = self._read_units(site, record, part, offset + part.itemsize)
        return unknown(kind) if isinstance(real, Unknown) else joined(real, imag)

    def _read_units(self, site, record: Record, kind, offset):
        units, width = self._units(record, kind, offset)
        if kind == units.dtype:
            return self.read(site, units, ())
        values = self.read(site, units, (), width, boundary=1)
        values = values if width > 1 else (values,)
        if any(isinstance(value, Unknown) for value in values):
            return unknown(kind)
        values = [np.asarray(self.plain(value), units.dtype) for value in values]
        return self._as_numbers(np.stack(np.broadcast_arrays(*values), axis=-1).view(kind)[..., 0][()])

    def _write_number(self, site, record: Record, kind, offset, value):
        value = self.cast(kind, value)
        if kind.kind != "c":
            self._write_units(site, record, kind, offset, value)
            return
        part = component(kind)
        for name, where in (("real", offset), ("imag", offset + part.itemsize)):
            self._write_units(site, record, part, where, self.component(value, name))

    def _write_units(self, site, record: Record, kind, offset, value):
        units, width = self._units(record, kind, offset)
        if kind == units.dtype:
            self.write(site, units, (), value)
            return
        if isinstance(value, Unknown):
            parts = (unknown(units.dtype),) * width
        else:
            whole = np.ascontiguousarray(np.asarray(self.plain(value)).astype(kind)[..., None])
            parts = tuple(unit[()] for unit in np.moveaxis(whole.view(units.dtype), -1, 0))
        self.write(site, units, (), parts if width > 1 else parts[0], width, boundary=1)

    def _units(self, record: Record, kind, offset) -> tuple:
        """Return the array without dimensions that is the first unit of a number, and its number of units."""
        size = record.starts.dtype.itemsize
        moved = in_each(
            self, record.starts, lambda array: array.changed(offset=array.offset + offset // size)
        )
        return moved, kind.itemsize // size

    # ---- assignments ----

    def assign_field(self, site, base, index, value):
        """Carry out ``record["field"] = value``, ``records[i] = record`` or ``records[a:b] = records``."""
        if isinstance(base, Record):
            index = self._name_of_field(site, base, index)
            kind, offset = base.field(index)
            if kind.base.names is None and not kind.shape:
                self._write_number(site, base, kind, offset, value)
                return
        elif isinstance(index, str):
            raise KernelTypeError(
                f"Numba stores to no field of all records at once: store to {base.name}[i].{index} in a loop"
            )
        target = self.element_of_records(site, base, index)
        if isinstance(target, ARRAYS):
            self.assign_all(site, target, value)
        elif isinstance(target, Record):
            self._store_record(site, target, self._loaded_record(site, target, value))
        else:
            self._assign_records(site, target, value)

    def _assign_records(self, site, target: RecordArray, value):
        """Store records to a part of an array, after all have been loaded if they are in its memory."""
        if isinstance(value, RecordArray):
            self.require_runtime(value, target)
            self._check_fits(self.attribute(value.starts, "shape"), target.starts)

        def loaded(where):
            one = value
            if isinstance(value, RecordArray):
                one = self.element_of_records(site, value, where[len(where) - value.starts.ndim :])
            return self._loaded_record(site, target, one)

        shape = self.attribute(target.starts, "shape")
        same = isinstance(value, RECORDS) and self._same_memory(value.starts, target.starts)
        before = [loaded(where) for where in self._positions(site, shape)] if same else None
        for position, where in enumerate(self._positions(site, shape)):
            numbers = before[position] if same else loaded(where)
            self._store_record(site, self.element_of_records(site, target, where), numbers)

    def _loaded_record(self, site, target, value) -> list:
        """Return the numbers of a record that is stored in ``target``, each with its place."""
        if not isinstance(value, Record) or value.record != target.record:
            raise KernelTypeError(f"only a record with the same fields can be stored in {target.name}")
        return [
            (leaf, self.own(self._read_number(site, value, leaf.kind, leaf.offset)))
            for leaf in leaves_of(value.record)
        ]

    def _store_record(self, site, target: Record, numbers: list):
        for leaf, number in numbers:
            self._write_number(site, target, leaf.kind, leaf.offset, number)

    def assign_attribute(self, site, base, name, value):
        """Carry out ``record.field = value``."""
        self.require_record(base, name)
        self.assign_field(site, base, name, value)

    def require_record(self, base, name):
        if isinstance(base, RecordArray):
            raise KernelTypeError(
                f"{base.name} is an array of records: choose one of them, as in {base.name}[i].{name}"
            )
        if not isinstance(base, Record):
            raise KernelTypeError(
                f"a kernel cannot assign to attributes, as to .{name} of {self.kind_of(base)}"
            )

    def joined_records(self, chosen, new, old):
        """Return, lane by lane, the records ``new`` where chosen and ``old`` elsewhere."""
        if type(old) is not type(new) or old.record != new.record:
            raise KernelTypeError(
                f"a variable cannot be {new.words} in some threads and {self.kind_of(old)} in others"
            )
        return type(new)(self.join_arrays(chosen, new.starts, old.starts), new.record)


def in_each(machine, arrays, change):
    """Return ``change(array)`` of an array, or of each array that a variable holds in some lanes."""
    return machine.each_choice(arrays, change) if type(arrays) is ChosenArray else change(arrays)


def _records(starts, record: np.dtype):
    """Return one record for an array without dimensions, else an array of records."""
    return (RecordArray if starts.ndim else Record)(starts, record)


def _as_numbers(units: DeviceArray, kind: np.dtype, field: str) -> DeviceArray:
    """Return the numbers that begin at these units as an array. Refuse what the storage cannot show."""
    ratio, rest = divmod(kind.itemsize, units.dtype.itemsize)
    starts = 0 if units.pattern is None else units.pattern.array
    steps = (step for step, extent in zip(units.strides, units.shape) if extent != 1)
    if rest or units.offset % ratio or np.any(starts % ratio) or any(step % ratio for step in steps):
        raise KernelTypeError(
            f"the emulator shows a field as an array only where it lies at multiples of its size, and "
            f"{field} of {units.name} does not lie at multiples of {kind.itemsize} bytes in all records: "
            f"read {units.name}[i].{field}, or pad the records"
        )
    if units.space == "local" and ratio > 1:
        raise KernelTypeError(
            f"the emulator supports a field of a local array of records as an array only if all fields have "
            f"its size: write {units.name}[i].{field}, or use arrays of numbers"
        )
    pattern = units.pattern
    if pattern is not None and ratio > 1:
        source = pattern
        pattern = source.derive(("numbers", ratio), lambda: source.array // ratio)
    return units.changed(
        storage=units.storage.retyped(kind),
        dtype=kind,
        strides=tuple(step // ratio for step in units.strides),
        pattern=pattern,
        offset=units.offset // ratio,
    )


def component_of(kind: np.dtype) -> np.dtype:
    """Return the dtype as which a field is accessed. A complex number is accessed part by part."""
    return component(kind) if kind.kind == "c" else kind
