"""Evaluates ``base[index]`` as a value and as a target, for arrays, tuples and records."""

from functools import partial

import numpy as np

from lockstep.errors import DataDependent, KernelTypeError
from lockstep.memory.records import RECORDS, Record
from lockstep.memory.storage import ARRAYS, DeviceArray, FlatView, Unknown
from lockstep.values import lanes
from lockstep.values.dtypes import BOOL, INT64, TIMES, dtype_of
from lockstep.values.enums import EnumNumber
from lockstep.values.lanes import Lanes, Pattern

from .arithmetic import require_fit
from .times import as_value
from .words import kind_of, type_of

TRUE, FALSE = (Pattern(np.full((1, 1, 1), value, bool)) for value in (True, False))


class Elements:
    """The part of the machine that reads and assigns ``base[index]``.

    An index is a tuple of integers or lanes, one per dimension.
    """

    def subscript(self, site, base, index):
        """Return the value of ``base[index]``."""
        if isinstance(base, tuple):
            return self._pick(site, base, index)
        if not isinstance(base, ARRAYS):
            if isinstance(base, RECORDS):
                return self.element_of_records(site, base, index)
            base, index = self._place_in_flat(site, base, index, "indexed")
        index = index if isinstance(index, tuple) else (index,)
        if len(index) < base.ndim or slice in map(type, index):
            return self.view(site, base, index)
        return self.read(site, base, index)

    def assign_element(self, site, base, index, value):
        """Carry out ``base[index] = value``."""
        if isinstance(base, RECORDS):
            self.assign_field(site, base, index, value)
            return
        if not isinstance(base, ARRAYS):
            base, index = self._place_in_flat(site, base, index)
        index = index if isinstance(index, tuple) else (index,)
        if len(index) < base.ndim or slice in map(type, index):
            self.assign_part(site, base, index, value)
        else:
            self.write(site, base, index, value)

    def update(self, site, load_site, array, index, combine):
        """Carry out ``array[index] op= ...``: one load and one store of the same element."""
        store, old = self._loaded(site, load_site, array, index)
        store(combine(old))

    def suspendable_update(self, site, load_site, array, index, combine):
        """Do the same where ``combine`` returns a generator, because it may wait for other units."""
        store, old = self._loaded(site, load_site, array, index)
        store((yield from combine(old)))

    def _loaded(self, site, load_site, array, index):
        """Return a function that stores into an element, and the element's value."""
        if isinstance(array, Record):
            old = self.own(self.element_of_records(load_site, array, index))
            return partial(self.assign_field, site, array, index), old
        if not isinstance(array, ARRAYS):
            array, index = self._place_in_flat(site, array, index)
        index = index if isinstance(index, tuple) else (index,)
        old = self.own(self.read(load_site, array, index))
        return partial(self.write, site, array, index), old

    def accumulate_element(self, site, load_site, operation, array, index, x, y):
        """Carry out ``array[index] += x * y`` (``y`` may be None), in place if the array is local."""
        if isinstance(array, Record):
            old = self.own(self.element_of_records(load_site, array, index))
            new = self.add(operation, old, x) if y is None else self.fma(operation, x, y, old)
            self.assign_field(site, array, index, new)
            return
        if not isinstance(array, ARRAYS):
            array, index = self._place_in_flat(site, array, index)
        index = index if isinstance(index, tuple) else (index,)
        local = type(array) is DeviceArray and array.space == "local"
        in_place = local and not self.chunk.tracing and self.log is None
        if in_place and self._accumulate_local(site, load_site, operation, array, index, x, y):
            return
        old = self.own(self.read(load_site, array, index))
        new = self.add(operation, old, x) if y is None else self.fma(operation, x, y, old)
        self.write(site, array, index, new)

    def _place_in_flat(self, site, base, index, what="assigned to by index"):
        """Return the array and the index of an element of ``array.flat``. Refuse anything else."""
        if type(base) is not FlatView:
            raise KernelTypeError(not_an_array(base, what))
        parts, rest = [], index
        for extent in reversed(base.array.shape[1:]):
            parts.append(self.mod(site, rest, extent))
            rest = self.floordiv(site, rest, extent)
        return base.array, (rest, *reversed(parts))

    @staticmethod
    def _index_number(position) -> int:
        if isinstance(position, Unknown):
            raise DataDependent(
                "an index depends on loaded data, so accesses cannot be counted without running the kernel"
            )
        if isinstance(position, EnumNumber):
            raise KernelTypeError("Numba takes no member of an enum as an index: write its .value")
        if isinstance(position, (int, np.integer)) and not isinstance(position, bool):
            return int(position)
        raise KernelTypeError(f"an index must be an integer, not {kind_of(position)}")

    @staticmethod
    def _as_numbers(value):
        """Return loaded numbers: integers as lanes, so that they can be indices, and floats as arrays."""
        if isinstance(value, Unknown) or value.dtype.kind not in "biu":
            return as_value(value) if isinstance(value, (np.datetime64, np.timedelta64)) else value
        if np.ndim(value) == 0:
            return int(value) if value.dtype == INT64 else bool(value) if value.dtype == BOOL else value
        # A byte of a boolean may be any number, as in a view of other bytes. Compiled code loads 0 or 1.
        numbers = value.view(np.uint8) != 0 if value.dtype == BOOL else np.array(value)
        return lanes.from_values(numbers)

    @staticmethod
    def _require_number(value, array: DeviceArray):
        """Refuse a value that cannot be stored in the array."""
        if not isinstance(value, (bool, int, float, complex, np.generic, np.ndarray)):
            raise KernelTypeError(f"only numbers can be stored, not {kind_of(value)}")
        given, wanted = getattr(value, "dtype", BOOL), array.dtype
        if isinstance(value, EnumNumber) and wanted.kind not in "iu":
            raise KernelTypeError(
                f"Numba stores no member of an enum in an array of {wanted}: write its .value"
            )
        if type(value) is complex or given.char in "FDe":
            require_fit(dtype_of(value), wanted)
        elif (given.kind in TIMES or wanted.kind in TIMES) and given != wanted:
            raise KernelTypeError(f"Numba stores no {dtype_of(value)} in {array.name}, which holds {wanted}")

    @staticmethod
    def own(value):
        """Return a copy where a load from a local array is a view, which later stores would change."""
        if type(value) is np.ndarray and value.base is not None:
            return value.copy()
        if type(value) is tuple:
            return tuple(map(Elements.own, value))
        return value

    @staticmethod
    def _require_one_type(values: tuple):
        """Refuse a tuple that an index cannot choose from which Numba does not know when it compiles."""
        if len(kinds := {type_of(value) for value in values}) > 1:
            raise KernelTypeError(
                "Numba must know the index of a tuple whose values differ in type, here "
                f"{' and '.join(sorted(kinds))}, and the emulator takes only a number, or a variable with "
                "one, which no NumPy integer is: write the number, make it an int(...) outside the kernel, "
                "or pass the values one by one"
            )

    def _pick(self, site, values: tuple, index):
        """Return an element of a tuple."""
        if not self.sites[site].one_constant:
            self._require_one_type(values)
        if isinstance(index, (Lanes, Unknown)):
            return self.pick_in_each_lane(site, values, index)
        position = self._index_number(index)
        if not -len(values) <= position < len(values):
            raise KernelTypeError(f"index {position} is out of range for a tuple of {len(values)} values")
        return values[position]


def as_lanes(condition) -> Lanes:
    if type(condition) is Lanes:
        return condition
    return Lanes(TRUE if condition else FALSE, 0, BOOL)


def not_an_array(value, what: str) -> str:
    """Return the sentence for ``value[i]`` where ``value`` is not an array."""
    if value is None:
        return f"None cannot be {what}: None was given where an array is needed; test it with `is None` first"
    if dtype_of(value) is not None:
        return f"{kind_of(value)} cannot be {what}: a number was given where an array is needed"
    return f"{kind_of(value)} cannot be {what}"
