"""Arrays of records, such as the states of ``numba.cuda.random``: fields lie along a last dimension.

All fields must have one size. A record is then a row of numbers of that size, and a field a position in it:
its address, and so what an access costs and which accesses race, are those of the record's bytes.
"""

import numpy as np

from .errors import KernelTypeError, LaunchError
from .lanes import from_values


class Records:
    """An argument: a structured NumPy array, seen as an array of numbers."""

    def __init__(self, name: str, records: np.ndarray):
        self.fields = {field: kind for field, (kind, *_) in records.dtype.fields.items()}
        kinds = set(self.fields.values())
        sizes = {kind.itemsize for kind in kinds}
        if len(sizes) > 1 or records.dtype.itemsize != len(self.fields) * sizes.pop():
            raise LaunchError(
                f"{name} has records of {records.dtype}; the emulator supports records whose fields all have "
                "one size, without gaps"
            )
        if any(kind.kind not in "biuf" or kind.shape for kind in kinds):
            raise LaunchError(f"{name} has records of {records.dtype}; a field must be a number")
        if not records.flags.c_contiguous:
            raise LaunchError(f"{name} is a view of records; pass np.ascontiguousarray({name})")
        size = next(iter(kinds)).itemsize
        number = kinds.pop() if len(kinds) == 1 else np.dtype(f"u{size}")
        self.array = records.view(number).reshape(*records.shape, len(self.fields))

    def in_kernel(self, array) -> "RecordArray":
        return RecordArray(array, self.fields)


class RecordArray:
    """An array of records as a kernel sees it; ``numbers``: the array with the fields as last dimension."""

    def __init__(self, numbers, fields: dict):
        self.numbers, self.fields, self.name = numbers, fields, numbers.name
        self.shape, self.ndim = numbers.shape[:-1], len(numbers.shape) - 1

    @property
    def size(self):
        return int(np.prod(self.shape, dtype=np.int64))

    def __len__(self):
        return self.shape[0]

    def record(self, index) -> "Record":
        index = index if isinstance(index, tuple) else (index,)
        if len(index) != self.ndim or any(isinstance(part, slice) for part in index):
            raise KernelTypeError(
                f"{self.name} is an array of records: give one index per dimension, then a field's name"
            )
        return Record(self, index)


class Record:
    """One record per lane: where it lies, not what it holds."""

    def __init__(self, array: RecordArray, index: tuple):
        self.array, self.index = array, index

    def place(self, field) -> tuple:
        """(array of numbers, index, dtype of the field)."""
        fields = self.array.fields
        if not isinstance(field, str) or field not in fields:
            raise KernelTypeError(
                f"a record of {self.array.name} has the fields {', '.join(fields)}, not {field}"
            )
        return self.array.numbers, (*self.index, list(fields).index(field)), fields[field]


class RecordAccess:
    """The machine's reads and writes of fields."""

    def element_of_records(self, site, base, index):
        """``records[i]``, or ``records[i]["field"]``."""
        if isinstance(base, RecordArray):
            return base.record(index)
        numbers, where, kind = base.place(index)
        value = self.read(site, numbers, where)
        return value if kind == numbers.dtype else _reread(self.plain(value), kind)

    def assign_field(self, site, base, index, value):
        """``records[i]["field"] = value``, or ``records[i] = record``."""
        if isinstance(base, Record):
            numbers, where, kind = base.place(index)
            if kind != numbers.dtype:
                value = _reread(np.asarray(self.plain(self.cast(kind, value))).astype(kind), numbers.dtype)
            self.write(site, numbers, where, value)
            return
        if not isinstance(value, Record) or value.array.fields != base.fields:
            raise KernelTypeError(f"only a record with the same fields can be stored in {base.name}")
        values = {field: self.element_of_records(site, value, field) for field in base.fields}
        for field, number in values.items():
            self.assign_field(site, base.record(index), field, number)

    def assign_attribute(self, site, base, name, value):
        """``record.field = value``."""
        if not isinstance(base, Record):
            raise KernelTypeError(
                f"a kernel cannot assign to attributes, as to .{name} of {self.kind_of(base)}"
            )
        self.assign_field(site, base, name, value)

    def joined_records(self, new: Record, old):
        """A variable that holds ``new`` in the active lanes and ``old`` in the others."""
        if not isinstance(old, Record) or old.array is not new.array:
            raise KernelTypeError("a variable cannot hold records of different arrays in different threads")
        return Record(new.array, tuple(map(self.merge, new.index, old.index)))


def _reread(value, kind):
    """The same bits as another type of the same size."""
    value = np.asarray(value).view(kind)
    if not value.ndim:
        return value[()]
    return from_values(value) if kind.kind in "biu" else value
