"""Reads and writes arrays for the machine: checks bounds, counts, looks for races, and only then moves
values.
"""

import numpy as np

from lockstep.counts.tally import AccessKey
from lockstep.errors import ArgumentError, KernelTypeError
from lockstep.findings import leaves_registers, place
from lockstep.memory.atomics import is_loop, one_after_another, require_dtype
from lockstep.memory.garbage import is_garbage
from lockstep.memory.storage import ChosenArray, DeviceArray, Unknown, unknown, wrong_number_of_indices
from lockstep.races.shadow import Access
from lockstep.values import lanes
from lockstep.values.complex_numbers import component
from lockstep.values.dtypes import BOOL, INT64, dtype_of
from lockstep.values.lanes import ZERO, Lanes

from .elements import as_lanes
from .words import kind_of

# Two accesses cost the same if their offsets differ by a multiple of this number of bytes.
_COST_PERIOD = {"global": 128, "shared": 4, "local": 1, "constant": 1}


class MemoryAccess:
    """The part of the machine that loads and stores elements of arrays, and counts and checks each access.

    An index is a tuple of integers or lanes, one per dimension.
    """

    # ---- what the kernel's source calls ----

    def pick_in_each_lane(self, site, values: tuple, index):
        """Return an element of a tuple whose index differs between iterations or lanes."""
        if type(index) is not Lanes:
            # No other index is known, so _index_number raises an error.
            self._index_number(index)
        wanted = index.values()
        beyond = (wanted < -len(values)) | (wanted >= len(values))
        self.raise_where(beyond, site, "IndexError", "tuple index out of range")
        chosen = values[-1]
        for position in range(len(values) - 2, -1, -1):
            same = position, position - len(values)
            here = index.pattern.derive(
                ("in", *(p - index.offset for p in same)), lambda p=same: (wanted == p[0]) | (wanted == p[1])
            )
            chosen = self.choose(Lanes(here, 0, BOOL), values[position], chosen)
        return chosen

    def read(
        self,
        site,
        array: DeviceArray,
        index: tuple,
        width: int = 1,
        boundary: int | None = None,
        counted_as: str = "load",
    ):
        """Load one element per lane, or ``width`` neighbouring ones at once as a tuple.

        ``boundary``: an access must start at a multiple of this many elements; ``width`` unless given.
        ``counted_as``: MATRIX_LOAD where lanes are not served as in an ordinary load.
        """
        if type(array) is ChosenArray:
            return self.each_choice(array, lambda a: self.read(site, a, index, width, boundary, counted_as))
        pattern, offset, mask = self._locate(site, array, index, width, "reads")
        storage = array.storage
        access = self._account(site, array, "load", pattern, offset, mask, width, boundary, counted_as)
        if self.log is not None:
            number = unknown(storage.dtype)
            return number if width == 1 else (number,) * width
        self._check_read(site, array, access)
        values = [storage.gather(pattern, offset + step) for step in range(width)]
        if self.chunk.tracing:
            self.chunk.watcher.record(self, access, values)
        values = [self._as_numbers(value) for value in values]
        return values[0] if width == 1 else tuple(values)

    def write(
        self, site, array: DeviceArray, index: tuple, value, width: int = 1, boundary: int | None = None
    ):
        """Store one element per lane, or ``width`` neighbouring ones from a tuple; see :meth:`read`."""
        if type(array) is ChosenArray:
            self.each_choice(array, lambda a: self.write(site, a, index, value, width, boundary))
            return
        pattern, offset, mask = self._locate(site, array, index, width, "writes")
        access = self._account(site, array, "store", pattern, offset, mask, width, boundary)
        values = [self.plain(v) for v in (value if width > 1 else (value,))]
        self._check_write(array, access, values[0] if width == 1 and not self.strict else None)
        self.looks.changes += 1
        if self.apart:
            self.looks.note_change(access)
        for step, numbers in enumerate(values):
            self._require_number(numbers, array)
            if self.log is None and mask.any:
                array.storage.scatter(pattern, offset + step, numbers, mask)
        if self.chunk.tracing:
            self.chunk.watcher.record(self, access, values)

    def _accumulate_local(self, site, load_site, operation, array, index, x, y) -> bool:
        dtype = array.dtype
        if any(getattr(v, "dtype", None) != dtype or isinstance(v, Unknown) for v in (x, y) if v is not None):
            return False
        if array.storage.data is None or array.storage.view(*self._linear(array, index)) is None:
            return False
        pattern, offset, mask = self._locate(load_site, array, index, 1, "reads")
        self._check_read(load_site, array, self._account(load_site, array, "load", pattern, offset, mask, 1))
        self.looks.changes += 1
        self.count_arithmetic(operation, "add" if y is None else "fma", dtype)
        self._check_write(array, self._account(site, array, "store", pattern, offset, mask, 1))
        term = x if y is None else x * y
        array.storage.spread(np.shape(term), np.shape(mask.array))
        view = array.storage.view(pattern, offset)
        np.add(view, term, out=view, where=True if mask.array is None else mask.array)
        return True

    def atomic(self, site, name, array, index, value, compare=None):
        """Carry out ``cuda.atomic.<name>`` lane after lane; return the value that each lane found."""
        if type(array) is ChosenArray:
            return self.each_choice(array, lambda a: self.atomic(site, name, a, index, value, compare))
        if not isinstance(array, DeviceArray):
            raise KernelTypeError(f"an atomic operation needs an array, not {kind_of(array)}")
        require_dtype(name, array)
        if isinstance(index, tuple) and array.ndim < 2:
            raise KernelTypeError(
                f"cuda.atomic.{name} takes a plain index of {array.name}, not a tuple: Numba takes tuples "
                "for arrays of two and more dimensions"
            )
        index = tuple(map(self._cast_index, index if isinstance(index, tuple) else (index,)))
        for operand in (value, compare):
            if operand is not None:
                self._require_number(self.plain(operand), array)
        pattern, offset, mask = self._locate(site, array, index, 1, "updates")
        if is_loop(name, array.dtype):
            self._account(site, array, "load", pattern, offset, mask, 1)
        access = self._account(site, array, "atomic", pattern, offset, mask, 1)
        self._check_read(site, array, access, uses_value=name != "exch")
        self._check_write(array, access)
        old = self._serialise(name, array, access, value, compare)
        if self.chunk.tracing:
            self.chunk.watcher.record(self, access, [old])
        return self._as_numbers(old)

    def _cast_index(self, position):
        """Turn a float or boolean index into an integer, as Numba does for atomic operations only."""
        dtype = dtype_of(position)
        return self.cast(INT64, position) if dtype is not None and dtype.kind in "fb" else position

    def _serialise(self, name, array, access, value, compare):
        storage = array.storage
        if storage.data is None:
            return storage.gather(access.pattern, access.offset)
        shape = np.broadcast_shapes(access.shape(), np.shape(self.plain(value)), self.chunk.geometry.shape)
        value, compare = (
            np.broadcast_to(self.plain(v if v is not None else 0), shape) for v in (value, compare)
        )
        active = np.broadcast_to(True if access.mask.array is None else access.mask.array, shape)
        old = np.zeros(shape, array.dtype)
        index = np.broadcast_to(access.pattern.array + access.offset, shape)
        cells = storage.cells(self.chunk.geometry)
        where = storage.cell(active.nonzero(), index[active])
        if cells.ndim > 1:
            where = np.ravel_multi_index(where, cells.shape)
        old[active] = one_after_another(name, cells.reshape(-1), where, value[active], compare[active])
        if storage.space == "global" and name != "exch":
            self._check_garbage(array, access, old, active)
        self._after_atomic(access, cells.reshape(-1)[where], old, active)
        if self.happens_before is not None:
            wrote = old == compare if name == "cas" else np.broadcast_to(True, shape)
            self._note_atomics(storage, index[active], active, wrote[active])
        return old

    def _check_garbage(self, array, access, old, active):
        """Report the lanes whose atomic operation has read uninitialised memory."""
        bad = is_garbage(old) & active
        if bad.any():
            culprits = self.chunk.geometry.mask(bad)
            self.reporter.cells(
                *("uninitialised_read", access.site, array, culprits, access.pattern, access.offset),
                _uninitialised(array, "updates"),
            )

    def _after_atomic(self, access, new, old, active):
        if not np.array_equal(new, old[active]):
            self.looks.changes += 1
            if self.apart:
                self.looks.note_change(access)

    def _note_atomics(self, storage, cells, active, wrote):
        """Note the lanes' atomic operations, in the order in which they were executed."""
        threads = np.broadcast_to(self.chunk.thread_ids(), active.shape)[active].tolist()
        place = 0 if storage.space == "global" else self.chunk.geometry.threads
        races = (self.races.exact or {}).get(storage.serial)
        for thread, cell, effect in zip(threads, cells.tolist(), wrote.tolist()):
            where = storage.serial, cell, place and self.happens_before.block(thread)
            self.happens_before.atomic(thread, where, effect)
            if races is not None:
                races.date(cell, thread)

    # ---- where an element lies ----

    def _linear(self, array: DeviceArray, index: tuple):
        """Return (pattern or None, offset) of an element, in elements from the start of the storage."""
        pattern, offset = array.pattern, array.offset
        for position, stride in zip(index, array.strides):
            if type(position) is int:
                offset += position * stride
            elif type(position) is Lanes:
                if position.dtype is BOOL:
                    raise KernelTypeError("an index must be an integer, not a boolean: pass int(...)")
                offset += position.offset * stride
                part = lanes.scaled(position.pattern, stride)
                pattern = part if pattern is None else lanes.joint("+", pattern, part, _sum(pattern, part))
            else:
                offset += self._index_number(position) * stride
        return pattern, offset

    def _locate(self, site, array: DeviceArray, index: tuple, width: int, verb: str, from_the_end=True):
        """Return (pattern or None, offset, the lanes whose index is in bounds).

        from_the_end: a negative index counts from the end, as Numba has it in A[i], but no instruction.
        """
        if type(array) is ChosenArray:
            raise KernelTypeError(f"this needs one array, the same for all threads, not {kind_of(array)}")
        if len(index) != array.ndim:
            raise KernelTypeError(wrong_number_of_indices(array, index))
        mask = self.unit.mask
        for axis, position in enumerate(index):
            extent = array.shape[axis]
            if type(extent) is not int:
                index, mask = self._check_lane_bounds(site, array, index, axis, mask, width, verb)
                continue
            if axis == len(index) - 1:
                extent -= width - 1
            if type(position) is int:
                if 0 <= position < extent:
                    continue
            elif type(position) is Lanes:
                if position.low >= 0 and position.high < extent:
                    continue
            index, mask = self._check_bounds(
                site, array, index, axis, extent, mask, width, verb, from_the_end
            )
        if array.escapes:
            mask = self.within_views(site, array, mask, verb)
        pattern, offset = self._linear(array, index)
        return pattern, offset, mask

    def _check_bounds(self, site, array, index, axis, extent, mask, width, verb, from_the_end):
        position = index[axis]
        # The error message shows the whole index, so each part must be a known number.
        for part in index:
            if type(part) is not Lanes:
                self._index_number(part)
        if type(position) is not Lanes:
            position = Lanes(ZERO, self._index_number(position))
        reach = mask.extent(position.pattern)
        if reach is None:
            return index, mask
        low, high = (bound + position.offset for bound in reach)
        counts = from_the_end and width == 1 and position.dtype.kind == "i"
        if counts and low < 0 and high >= -array.shape[axis]:
            position = self._wrap_negative(site, array, index, axis, position, mask)
            index = (*index[:axis], position, *index[axis + 1 :])
            low, high = (bound + position.offset for bound in mask.extent(position.pattern))
        if low >= 0 and high < extent:
            return index, mask
        outside = self._outside(position, extent)
        self._report_bounds(site, array, index, axis, mask.where(outside), width, verb)
        return index, mask.where_not(outside)

    def _check_lane_bounds(self, site, array, index, axis, mask, width, verb):
        """Check the bounds of a slice's axis, whose extent differs from lane to lane."""
        position, extent = index[axis], array.shape[axis]
        if type(position) is not Lanes:
            position = self._index_number(position)
        if width == 1 and (type(position) is int or position.dtype.kind == "i"):
            position = self.either(self.compare("<", position, 0), self.add(None, position, extent), position)
        last = self.sub(None, extent, width if axis == len(index) - 1 else 1)
        outside = self.any_of(self.compare("<", position, 0), self.compare(">", position, last))
        culprits = mask.where(as_lanes(outside))
        index = (*index[:axis], position, *index[axis + 1 :])
        if not culprits.any:
            return index, mask
        self._report_bounds(site, array, index, axis, culprits, width, verb)
        return index, mask.where_not(as_lanes(outside))

    @staticmethod
    def _outside(position: Lanes, extent: int) -> Lanes:
        def make():
            values = position.pattern.array + position.offset
            return (values < 0) | (values >= extent)

        return Lanes(position.pattern.derive(("outside", position.offset, extent), make), 0, BOOL)

    def _wrap_negative(self, site, array, index, axis, position, mask):
        extent = array.shape[axis]

        def counted_from_the_end():
            values = position.pattern.array + position.offset
            return (values < 0) & (values >= -extent)

        key = ("from the end", position.offset, extent)
        culprits = mask.where(Lanes(position.pattern.derive(key, counted_from_the_end), 0, BOOL))

        def make():
            values = position.pattern.array + position.offset
            return np.where((values < 0) & (values >= -extent), values + extent, values)

        self.advise_negative(site, array, culprits, index, axis)
        return Lanes(position.pattern.derive(("wrap", position.offset, extent), make), 0, INT64)

    def advise_negative(self, site, array, culprits, index, axis):
        """Point out the lanes that use a negative index."""

        def sentence(element, who):
            return (
                f"{who} uses the negative index {element[axis]} in {place(array.name, element)}; "
                "Numba counts it from the end of the axis, which costs time and is rarely intended."
            )

        self.reporter.lanes("negative_index", site, array, culprits, index, sentence)

    def _report_bounds(self, site, array, index, axis, outside, width, verb):
        name, size = array.name, array.shape[axis]
        piece = f" ({width} elements at once)" if width > 1 else ""

        whole = name if array.shape == array.storage.shape else f"this part of {name}"

        def sentence(element, who):
            if type(size) is not int:
                return f"{who} {verb} {place(name, element)}{piece}, which is beyond the end of {whole}."
            extent = self.extent_in_words(array, axis)
            return f"{who} {verb} {place(name, element)}{piece}, but {whole} has {extent}."

        self.reporter.lanes("out_of_bounds", site, array, outside, index, sentence)

    @staticmethod
    def extent_in_words(array, axis) -> str:
        """Return an extent and its last index in words: ``4 rows: the last row is 3``."""
        size = array.shape[axis]
        if type(size) is not int:
            return "fewer"
        if not size:
            return _extent(size, axis, array.ndim)
        last = f"the last {_axis_word(axis, array.ndim)} is {size - 1}"
        return f"{_extent(size, axis, array.ndim)}: {last}"

    # ---- what an access costs ----

    def _account(
        self, site, array, op, pattern, offset, mask, width, boundary=None, counted_as=None
    ) -> Access:
        """Count an access and return it for the checks."""
        pattern = ZERO if pattern is None else pattern
        if array.dtype.kind == "c" and array.space != "shared":
            self._account_parts(site, array, op, pattern, offset, mask, width)
            return Access(array.storage, array.name, op, pattern, offset, mask, width, site, self.unit.phase)
        space, slot = array.storage.space, array.storage.slot
        residue = (offset * array.dtype.itemsize + array.storage.origin) % _COST_PERIOD[space]
        serial = 0 if space == "local" else pattern.serial
        if space == "local":
            self.advise_registers(site, array)
        key = AccessKey(
            space, counted_as or op, site, slot, serial, residue, mask.serial, width, self.unit.batch
        )
        if mask.any and self.lanes_apart:
            self.lane_counts.add(counted_as or op, site, array, pattern, offset, width)
        elif mask.any:
            self.tally(key, (array, pattern, residue, mask))
            if self.log is not None:
                self.log.numbers.append((offset, None, None))
        if (boundary or width) > 1:
            self._check_alignment(site, array, pattern, offset, mask, boundary or width)
        return Access(array.storage, array.name, op, pattern, offset, mask, width, site, self.unit.phase)

    def _account_parts(self, site, array, op, pattern, offset, mask, width):
        """Count each part of a complex number outside shared memory as an access of its own.

        The compiler needs an instruction per part, because an array that is passed to the kernel may begin at
        any multiple of a part's size. It knows where shared arrays begin.
        """
        parts = array.changed(dtype=component(array.dtype))
        for part in range(2 * width):
            self._account(site, parts, op, lanes.scaled(pattern, 2), 2 * offset + part, mask, 1)

    def advise_registers(self, site, array):
        stays, elements = self.sites[site].stays, array.storage.size
        if stays is None or elements <= stays:
            return
        sentence = leaves_registers(array.name, elements, counted=bool(stays))
        self.reporter.lanes(
            "dynamic_local_index", site, array, self.unit.mask, None, lambda element, who: sentence
        )

    def check_start(self, site, array: DeviceArray, index: tuple, width: int, what: str):
        """Report lanes whose index is no multiple of ``width`` elements. ``what`` begins there: "a fragment".

        For starts that CUDA's manual restricts and the hardware does not.
        """
        if type(array) is ChosenArray:
            return self.each_choice(array, lambda each: self.check_start(site, each, index, width, what))
        pattern, offset, mask = self._locate(site, array, index, 1, "reads")
        wanted = width * array.dtype.itemsize

        def sentence(element, who):
            return (
                f"{who} names {place(array.name, element)} as the start of {what}. CUDA's manual wants it at "
                f"a multiple of {wanted} bytes."
            )

        self._check_alignment(
            site, array, ZERO if pattern is None else pattern, offset, mask, width, sentence
        )

    def _check_alignment(self, site, array, pattern, offset, mask, width, sentence=None):
        first = offset + array.storage.origin // array.dtype.itemsize
        even = pattern.remember(("aligned", width), lambda: not (pattern.array % width).any())
        if even and first % width == 0:
            return
        key = ("misaligned", width, first % width)
        bad = pattern.derive(key, lambda: (pattern.array + first) % width != 0)
        culprits = mask.where(Lanes(bad, 0, BOOL))
        if not culprits.any:
            return
        bits = width * array.dtype.itemsize * 8

        def misaligned(element, who):
            return (
                f"{who} accesses {bits} bits at {place(array.name, element)}, which is not at a multiple of "
                f"{bits // 8} bytes: a GPU would stop the kernel with 'misaligned address'."
            )

        told = sentence or misaligned
        self.reporter.cells("misaligned_access", site, array, culprits, pattern, offset, told)

    # ---- what may be wrong with an access ----

    def _check_read(self, site, array, access: Access, uses_value=True):
        if self.log is not None or not access.mask.any:
            return
        space = array.storage.space
        if space == "global":
            if self.chunk.absences.open:
                self.chunk.absences.global_access(access)
            # An atomic operation is checked as a write instead.
            if access.op != "atomic":
                self.races.check(array, access)
        elif space == "shared":
            self._check_shared_read(site, array, access, uses_value)
        elif space == "local" and uses_value:
            self._check_local_read(site, array, access)

    def _check_shared_read(self, site, array, access, uses_value):
        self.looks.looked(access)
        self._note_shared(access)
        early = self.chunk.async_copies.overlap(access)
        if early is not None:
            self.reporter.cells_of_blocks("async_read_too_early", site, array, *early, _too_early(array))
            return
        missing = self.initialised(array.storage).missing(access) if uses_value else None
        if missing is not None:
            self.reporter.cells_of_blocks("uninitialised_read", site, array, *missing, _uninitialised(array))

    def _note_shared(self, access):
        if self.chunk.absences.open:
            self.chunk.absences.access(access)
        self.chunk.shared_races.note(access)

    def _check_local_read(self, site, array, access):
        self._check_products(site, array, "reads")
        state = self.initialised(array.storage)
        bad = None if state.complete else state.missing(access)
        if bad is not None:
            where = self.chunk.geometry.mask(bad), access.pattern, access.offset
            self.reporter.cells("uninitialised_read", site, array, *where, _uninitialised(array))

    def _check_write(self, array, access: Access, value=None):
        """Check a store. ``value`` is what each lane stores, if that matters for races."""
        space = array.storage.space
        if space == "constant":
            raise KernelTypeError(
                f"{array.name} is an array from outside the kernel, and constant in it: it cannot be written"
            )
        if self.log is not None or not access.mask.any:
            return
        if space == "global":
            if not array.storage.writeable:
                raise ArgumentError(f"{array.name} is read-only, and the kernel writes to it")
            if self.chunk.absences.open:
                self.chunk.absences.global_access(access)
            self.races.check(array, access, value)
            return
        if space == "shared" and access.op == "store":
            self._note_shared(access if value is None else access._replace(value=self.own(value)))
        if space == "local" and self.asynchronous:
            self._check_products(access.site, array, "writes")
            self.products.touched.add(array.storage.serial)
        self.initialised(array.storage).store(access)

    def _check_products(self, site, array, verb):
        """Report a thread that touches its accumulators while products are still being added to them."""
        if self.asynchronous and self.products.busy(array.storage):
            self.products.report_busy(site, array, verb)


def _sum(p, q):
    return lambda: p.array + q.array


def _extent(size, axis, ndim) -> str:
    """Return an extent in words: ``12 rows``, ``1 column``, ``7 elements``, ``3 entries along axis 2``."""
    if ndim > 2:
        return f"{size} entries along axis {axis}"
    word = ("row", "column")[axis] if ndim == 2 else "element"
    return f"{size} {word}" if size == 1 else f"{size} {word}s"


def _axis_word(axis, ndim) -> str:
    return ("row", "column")[axis] if ndim == 2 else "one"


def _uninitialised(array, reads="reads"):
    return lambda element, who: (
        f"{who} {reads} {place(array.name, element)} before anything has been written to it."
    )


def _too_early(array):
    return lambda element, who: (
        f"{who} reads {place(array.name, element)} while an asynchronous copy to it is still in flight: "
        "the thread that started it must wait for it first, and other threads need a barrier after that."
    )
