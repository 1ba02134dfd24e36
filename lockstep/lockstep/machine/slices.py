"""Finds where rows and slices of arrays begin and end in each lane, and stores to whole slices."""

from lockstep.errors import KernelTypeError
from lockstep.findings import place
from lockstep.memory.records import RECORDS
from lockstep.memory.storage import ARRAYS, ChosenArray
from lockstep.values.dtypes import INT64, dtype_of
from lockstep.values.lanes import Lanes

from .elements import as_lanes, kind_of
from .iterables import check_one_type
from .views import Escape, has_runtime, shape_in_words


class Slices:
    """The part of the machine that finds the bounds of parts of arrays in each lane, and stores to such
    parts.
    """

    # ---- where parts begin and end ----

    def within_views(self, site, array, mask, verb):
        """Return the lanes whose view begins inside the array, and report the others."""
        for escape in array.escapes:
            culprits = mask.where(escape.lanes)
            if culprits.any:
                self._report_escape(site, escape, culprits, verb)
                mask = mask.where_not(escape.lanes)
        return mask

    def _report_escape(self, site, escape, culprits, verb):
        array, axis = escape.array, escape.axis
        extent = self.extent_in_words(array, axis)

        def sentence(element, who):
            return f"{who} {verb} an element of {place(array.name, element)}, but {array.name} has {extent}."

        self.reporter.lanes("out_of_bounds", site, array, culprits, escape.index, sentence)

    def _row(self, site, base, axis, position, index) -> tuple:
        """Return the position of a row, counted from the start, and the escapes of lanes that name no row."""
        extent = base.shape[axis]
        if type(position) is not Lanes:
            position = self._index_number(position)
            if type(extent) is int and 0 <= position < extent:
                return position, ()
        elif type(extent) is int and position.low >= 0 and position.high < extent:
            return position, ()
        given = position
        if type(position) is int or position.dtype.kind == "i":
            negative = self.compare("<", position, 0)
            position = self.either(negative, self.add(None, position, extent), position)
            kept = self.compare(">=", position, 0)
            culprits = self.unit.mask.where(as_lanes(negative)).where(as_lanes(kept))
            self.advise_negative(site, base, culprits, index, axis)
        outside = self.any_of(self.compare("<", position, 0), self.compare(">=", position, extent))
        if not self.unit.mask.where(as_lanes(outside)).any:
            return position, ()
        shown = (*index[:axis], given)
        return position, (Escape(as_lanes(outside), base, axis, shown),)

    def _bounds(self, part: slice, extent) -> tuple:
        """Return (first index, length, step) of a slice of an axis in each lane, as Python computes them."""
        step = 1 if part.step is None else part.step
        step = self._index_number(step) if type(step) is not Lanes else self._same(step)
        if step == 0:
            raise KernelTypeError("the step of a slice must not be zero")
        bounds = [
            b if b is None or type(b) in (Lanes, int) else self._bound_number(b)
            for b in (part.start, part.stop)
        ]
        plain = type(extent) is int and all(type(b) is not Lanes for b in bounds)
        if plain and (self.log is None or bounds == [None, None]):
            covered = range(*slice(*bounds, step).indices(extent))
            return covered.start, len(covered), step
        if plain and step == 1 and (inside := self._noted_inside(bounds, extent)):
            return inside
        low, high = (0, extent) if step > 0 else (-1, self.sub(None, extent, 1))
        start = low if step > 0 else high
        stop = high if step > 0 else low
        if bounds[0] is not None:
            start = self._clamped(bounds[0], extent, low, high)
        if bounds[1] is not None:
            stop = self._clamped(bounds[1], extent, low, high)
        length = self.sub(None, stop, start)
        if step != 1:
            length = self.floordiv(None, self.add(None, length, step - (1 if step > 0 else -1)), step)
        return self._settled(start), self._settled(self.maximum(None, length, 0)), step

    def _bound_number(self, bound):
        """Return a bound that is no plain integer as Numba casts it."""
        dtype = dtype_of(bound)
        if dtype is not None and dtype.kind in "fb":
            bound = self.cast(INT64, bound)
        return bound if type(bound) is Lanes else self._index_number(bound)

    def _noted_inside(self, bounds, extent) -> tuple | None:
        """Return the same for bounds that need no clamping, and note how far they are from it."""
        start, stop = (usual if b is None else b for b, usual in zip(bounds, (0, extent)))
        distances = start, stop - start, extent - stop
        if min(distances) < 0:
            return None
        for distance in distances:
            self.log.note(("<", False), (distance, 0, None))
        return start, stop - start, 1

    def _clamped(self, bound, extent, low, high):
        bound = self.cast(INT64, bound)
        bound = self.either(self.compare("<", bound, 0), self.add(None, bound, extent), bound)
        return self.minimum(None, self.maximum(None, bound, low), high)

    def _same(self, step: Lanes) -> int:
        step = self._settled(step)
        if type(step) is Lanes:
            raise KernelTypeError("the step of a slice must be the same for all threads")
        return step

    # ---- assigning to parts ----

    def assign_part(self, site, base, index, value):
        """Carry out ``x[a:b] = 0`` or ``row[:] = other``: each thread stores the elements one after another.

        Each element counts as a store, and as a load too if the value is an array.
        """
        if isinstance(base, RECORDS):
            self.assign_field(site, base, index, value)
            return
        if type(base) is ChosenArray:
            self.each_choice(base, lambda array: self.assign_part(site, array, index, value))
            return
        if isinstance(value, ARRAYS):
            self.require_runtime(value, base)
        self.assign_all(site, self._part(site, base, index), value)

    def require_runtime(self, value, base):
        """Refuse to assign an array to a part of one where Numba's runtime is not enabled."""
        if not has_runtime():
            raise KernelTypeError(
                f"Numba does not assign an array, here {kind_of(value)}, to a part of one, here {base.name}, "
                "unless its runtime is enabled (NUMBA_CUDA_ENABLE_NRT=1): assign the elements in a loop"
            )

    def assign_all(self, site, target, value):
        """Store a number, or the elements of an array, to all elements of ``target``."""
        if type(target) is ChosenArray:
            self.each_choice(target, lambda array: self.assign_all(site, array, value))
            return
        read = self._source(site, target, value)
        if isinstance(value, ARRAYS) and self._same_memory(value, target):
            values = [self.own(read(where)) for where in self._positions(site, target.shape)]
            for where, element in zip(self._positions(site, target.shape), values, strict=True):
                self.write(site, target, where, element)
            return
        for where in self._positions(site, target.shape):
            self.write(site, target, where, read(where))

    def assign_computed(self, site, target, values, compute):
        """Store in each element of ``target`` what ``compute`` returns for the elements of ``values`` there.

        ``values``: arrays and numbers.
        """
        if type(target) is ChosenArray:
            self.each_choice(target, lambda array: self.assign_computed(site, array, values, compute))
            return
        sources = [self._source(site, target, value) for value in values]
        for where in self._positions(site, target.shape):
            self.write(site, target, where, compute(*(self.own(source(where)) for source in sources)))

    def _source(self, site, target, value):
        """Return a function that gives the value to store at an index of the target."""
        if isinstance(value, ARRAYS):
            shape = self.attribute(value, "shape")
            self._check_fits(shape, target)

            def element(where):
                where = where[len(where) - len(shape) :]
                at = tuple(0 if type(extent) is int and extent == 1 else i for extent, i in zip(shape, where))
                return self.read(site, value, at)

            return element
        if isinstance(value, tuple):
            check_one_type(value)
            if target.ndim != 1 or target.shape != (len(value),):
                raise KernelTypeError(
                    f"{len(value)} values cannot be assigned to a part of {target.name} of another shape"
                )
            return lambda where: value[where[0]]
        self._require_number(self.plain(value), target)
        return lambda where: value

    def _check_fits(self, shape, target):
        fits = len(shape) <= target.ndim
        for given, wanted in zip(reversed(shape), reversed(target.shape)):
            if type(given) is int and given == 1:
                continue
            same = self.compare("==", given, wanted)
            fits &= same is True or not self.unit.mask.where(as_lanes(self.not_(same))).any
        if not fits:
            raise KernelTypeError(
                f"the shapes of the two sides differ: an array of {shape_in_words(shape)} cannot be assigned "
                f"to a part of {target.name} of {shape_in_words(target.shape)}"
            )

    @staticmethod
    def _same_memory(value, target) -> bool:
        arrays = value.arrays if type(value) is ChosenArray else (value,)
        return any(array.storage.serial == target.storage.serial for array in arrays)

    def _positions(self, site, shape):
        """Yield every index of this shape, each under the mask of the lanes that have it."""
        loop = self.loop(self.sites[site].line, None)
        yield from self._positions_under(loop, shape)
        self.unit.mask = loop.entry

    def _positions_under(self, loop, shape):
        if not shape:
            self._count_iteration(loop)
            yield ()
            return
        entry, position = self.unit.mask, 0
        while (inside := self.compare("<", position, shape[0])) is not False:
            self.unit.mask = entry if inside is True else entry.where(inside)
            if not self.unit.mask.any:
                break
            for rest in self._positions_under(loop, shape[1:]):
                yield position, *rest
            position += 1
        self.unit.mask = entry
