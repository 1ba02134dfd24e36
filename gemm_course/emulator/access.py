"""How the machine reads and writes arrays: bounds, counts, races, and only then the values."""

import numpy as np

from . import lanes
from .dtypes import BOOL, INT64
from .errors import DataDependent, KernelTypeError
from .findings import Finding, place, thread_name
from .lanes import ZERO, Lanes
from .memory import DeviceArray, Unknown
from .shadow import Access

_COST_PERIOD = {"global": 128, "shared": 4, "local": 1}  # offsets that differ by so many bytes cost the same


class MemoryAccess:
    """The machine's loads and stores. An index is a tuple of integers or lanes, one per dimension."""

    # ---- what the kernel's source calls ----

    def subscript(self, site, base, index):
        """``base[index]`` as a value."""
        if isinstance(base, tuple):
            return self._pick(base, index)
        if not isinstance(base, DeviceArray):
            raise KernelTypeError(f"{_kind(base)} cannot be indexed")
        index = index if isinstance(index, tuple) else (index,)
        if isinstance(index[0], slice) or len(index) < base.ndim:
            return self.view(site, base, index)
        return self.read(site, base, index)

    def assign_element(self, site, base, index, value):
        """``base[index] = value``."""
        if not isinstance(base, DeviceArray):
            raise KernelTypeError(f"{_kind(base)} cannot be assigned to by index")
        self.write(site, base, index if isinstance(index, tuple) else (index,), value)

    def _pick(self, values: tuple, index):
        """An element of a tuple; lane by lane where the index differs between iterations or lanes."""
        if type(index) is not Lanes:
            position = self._index_number(index)
            if not -len(values) <= position < len(values):
                raise KernelTypeError(f"index {position} is out of range for a tuple of {len(values)} values")
            return values[position]
        wanted = index.values()
        chosen = values[-1]
        for position in range(len(values) - 2, -1, -1):
            here = index.pattern.derive(("==", position - index.offset), lambda p=position: wanted == p)
            chosen = self.choose(Lanes(here, 0, BOOL), values[position], chosen)
        return chosen

    def attribute(self, value, name):
        """``value.shape``, and the x, y, z and w of a vector."""
        if hasattr(value, "storage") or hasattr(value, "parts"):
            if hasattr(value, name):
                return getattr(value, name)
        raise KernelTypeError(
            f"{_kind(value)} has no .{name}; only arrays have a .shape, and only vectors have an .x"
        )

    def view(self, site, base: DeviceArray, index) -> DeviceArray:
        """A row ``acc[i]`` or a slice ``buffer[a:b]`` of an array, without reading it."""
        if isinstance(index[0], slice):
            if len(index) > 1 or index[0].step is not None:
                raise KernelTypeError(
                    "the emulator supports only slices x[a:b] along the first dimension, without a step"
                )
            start, stop, _ = index[0].indices(base.shape[0])
            index, shape, strides = (start,), (stop - start, *base.shape[1:]), base.strides
        else:
            shape, strides = base.shape[len(index) :], base.strides[len(index) :]
        pattern, offset = self._linear(base, index)
        return DeviceArray(base.name, base.storage, base.dtype, shape, strides, pattern, offset)

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
        pattern, offset, mask = self._locate(site, array, index, width, "reads")
        storage = array.storage
        access = self._account(site, array, "load", pattern, offset, mask, width, boundary, counted_as)
        self._check_read(site, array, access)
        values = [storage.gather(pattern, offset + step) for step in range(width)]
        if self.tracing:
            self.watcher.record(self, access, values)
        values = [self._as_numbers(value) for value in values]
        return values[0] if width == 1 else tuple(values)

    def write(
        self, site, array: DeviceArray, index: tuple, value, width: int = 1, boundary: int | None = None
    ):
        """Store one element per lane, or ``width`` neighbouring ones from a tuple; see :meth:`read`."""
        pattern, offset, mask = self._locate(site, array, index, width, "writes")
        access = self._account(site, array, "store", pattern, offset, mask, width, boundary)
        self._check_write(array, access)
        values = [self.plain(v) for v in (value if width > 1 else (value,))]
        for step, numbers in enumerate(values):
            self._require_number(numbers)
            if mask.any:
                array.storage.scatter(pattern, offset + step, numbers, mask)
        if self.tracing:
            self.watcher.record(self, access, values)

    def update(self, site, load_site, array, index, combine):
        """``array[index] op= ...``: one load and one store of the same element."""
        index = index if isinstance(index, tuple) else (index,)
        self.write(site, array, index, combine(self.own(self.read(load_site, array, index))))

    def accumulate_element(self, site, load_site, operation, array, index, x, y):
        """``array[index] += x * y`` (``y`` may be None), in place where the array is a thread's own."""
        index = index if isinstance(index, tuple) else (index,)
        local = isinstance(array, DeviceArray) and array.space == "local"
        in_place = local and not self.tracing and self.log is None
        if in_place and self._accumulate_local(site, load_site, operation, array, index, x, y):
            return
        old = self.own(self.read(load_site, array, index))
        new = self.add(operation, old, x) if y is None else self.fma(operation, x, y, old)
        self.write(site, array, index, new)

    def _accumulate_local(self, site, load_site, operation, array, index, x, y) -> bool:
        dtype = array.dtype
        if any(getattr(v, "dtype", None) != dtype or isinstance(v, Unknown) for v in (x, y) if v is not None):
            return False
        if array.storage.data is None or array.storage.view(*self._linear(array, index)) is None:
            return False
        pattern, offset, mask = self._locate(load_site, array, index, 1, "reads")
        self._check_read(load_site, array, self._account(load_site, array, "load", pattern, offset, mask, 1))
        self.count_arithmetic(operation, "add" if y is None else "fma", dtype)
        self._check_write(array, self._account(site, array, "store", pattern, offset, mask, 1))
        term = x if y is None else np.multiply(x, y)
        array.storage.spread(np.shape(term), np.shape(mask.array))
        view = array.storage.view(pattern, offset)
        np.add(view, term, out=view, where=True if mask.array is None else mask.array)
        return True

    def atomic(self, site, name, array, index, value, compare=None):
        """``cuda.atomic.<name>``: the lanes go one after another; returns what each of them found."""
        if not isinstance(array, DeviceArray):
            raise KernelTypeError(f"an atomic operation needs an array, not {_kind(array)}")
        index = index if isinstance(index, tuple) else (index,)
        pattern, offset, mask = self._locate(site, array, index, 1, "updates")
        access = self._account(site, array, "atomic", pattern, offset, mask, 1)
        self._check_read(site, array, access)
        self._check_write(array, access)
        old = self._serialise(name, array, access, value, compare)
        if self.tracing:
            self.watcher.record(self, access, [old])
        return self._as_numbers(old)

    def _serialise(self, name, array, access, value, compare):
        storage = array.storage
        if storage.data is None:
            return storage.gather(access.pattern, access.offset)
        shape = np.broadcast_shapes(access.shape(), np.shape(self.plain(value)), self.geometry.shape)
        value, compare = (
            np.broadcast_to(self.plain(v if v is not None else 0), shape) for v in (value, compare)
        )
        active = np.broadcast_to(True if access.mask.array is None else access.mask.array, shape)
        old = np.zeros(shape, array.dtype)
        index = np.broadcast_to(access.pattern.array + access.offset, shape)
        step = ATOMICS[name]
        cells = storage.cells(self.geometry)
        for lane in np.ndindex(*shape):
            if active[lane]:
                cell = storage.cell(lane, index[lane])
                old[lane] = cells[cell]
                cells[cell] = step(cells[cell], value[lane], compare[lane])
        return old

    # ---- where ----

    def _linear(self, array: DeviceArray, index: tuple):
        """(pattern or None, offset) of an element, in elements from the start of the storage."""
        pattern, offset = array.pattern, array.offset
        for position, stride in zip(index, array.strides):
            if type(position) is int:
                offset += position * stride
            elif type(position) is Lanes:
                offset += position.offset * stride
                part = lanes.scaled(position.pattern, stride)
                pattern = part if pattern is None else pattern.derive(("+", part.serial), _sum(pattern, part))
            else:
                offset += self._index_number(position) * stride
        return pattern, offset

    @staticmethod
    def _index_number(position) -> int:
        if isinstance(position, Unknown):
            raise DataDependent(
                "an index depends on loaded data, so accesses cannot be counted without running the kernel"
            )
        if isinstance(position, (int, np.integer, np.bool_)):
            return int(position)
        raise KernelTypeError(f"an index must be an integer, not {_kind(position)}")

    def _locate(self, site, array: DeviceArray, index: tuple, width: int, verb: str):
        """(pattern or None, offset, the lanes whose index is in bounds)."""
        if len(index) != array.ndim:
            raise KernelTypeError(wrong_number_of_indices(array, index))
        mask = self.mask
        for axis, position in enumerate(index):
            extent = array.shape[axis] - (width - 1 if axis == len(index) - 1 else 0)
            if type(position) is int:
                if 0 <= position < extent:
                    continue
            elif type(position) is Lanes:
                if position.low >= 0 and position.high < extent:
                    continue
            index, mask = self._check_bounds(site, array, index, axis, extent, mask, width, verb)
        pattern, offset = self._linear(array, index)
        return pattern, offset, mask

    def _check_bounds(self, site, array, index, axis, extent, mask, width, verb):
        position = index[axis]
        if type(position) is not Lanes:
            position = Lanes(ZERO, self._index_number(position))
        reach = mask.extent(position.pattern)
        if reach is None:
            return index, mask
        low, high = (bound + position.offset for bound in reach)
        if low < 0 and low >= -array.shape[axis] and position.dtype.kind == "i" and width == 1:
            position = self._wrap_negative(site, array, index, axis, position, mask)
            index = (*index[:axis], position, *index[axis + 1 :])
            low, high = (bound + position.offset for bound in mask.extent(position.pattern))
        if low >= 0 and high < extent:
            return index, mask
        outside = self._outside(position, extent)
        self._report_bounds(site, array, index, axis, mask.where(outside), width, verb)
        return index, mask.where_not(outside)

    @staticmethod
    def _outside(position: Lanes, extent: int) -> Lanes:
        def make():
            values = position.pattern.array + position.offset
            return (values < 0) | (values >= extent)

        return Lanes(position.pattern.derive(("outside", position.offset, extent), make), 0, BOOL)

    def _wrap_negative(self, site, array, index, axis, position, mask):
        extent = array.shape[axis]
        negative = lanes.compare("<", position, 0)
        culprits = mask if negative is True else mask.where(negative)

        def sentence(element, who):
            return (
                f"{who} uses the negative index {element[axis]} in {place(array.name, element)}; "
                "Numba counts it from the end of the axis, which costs time and is rarely intended."
            )

        def make():
            values = position.pattern.array + position.offset
            return np.where(values < 0, values + extent, values)

        self._find_lanes("negative_index", site, array, culprits, index, sentence)
        return Lanes(position.pattern.derive(("wrap", position.offset, extent), make), 0, INT64)

    def _report_bounds(self, site, array, index, axis, outside, width, verb):
        name, size = array.name, array.shape[axis]
        piece = f" ({width} elements at once)" if width > 1 else ""

        def sentence(element, who):
            return (
                f"{who} {verb} {place(name, element)}{piece}, but {name} has "
                f"{_extent(size, axis, array.ndim)}: the last {_axis_word(axis, array.ndim)} is {size - 1}."
            )

        self._find_lanes("out_of_bounds", site, array, outside, index, sentence)

    # ---- what it costs ----

    def _account(
        self, site, array, op, pattern, offset, mask, width, boundary=None, counted_as=None
    ) -> Access:
        """Count an access and return it for the checks."""
        pattern = ZERO if pattern is None else pattern
        space, slot = array.storage.space, array.storage.slot
        residue = offset * array.dtype.itemsize % _COST_PERIOD[space]
        serial = 0 if space == "local" else pattern.serial
        if space == "local":
            self._advise_registers(site, array)
        key = (space, counted_as or op, site, slot, serial, residue, mask.serial, width, self.batch_key)
        if mask.any:
            self.tally(key, (array, pattern, residue, mask))
            if self.log is not None:
                self.log.numbers.append((offset, None, None))
        if (boundary or width) > 1:
            self._check_alignment(site, array, pattern, offset, mask, boundary or width)
        return Access(array.storage, array.name, op, pattern, offset, mask, width, site, self.phase)

    def _advise_registers(self, site, array):
        if self.sites[site].static:
            return
        sentence = (
            f"This index of {array.name} is not known at compile time, so {array.name} cannot stay in "
            "registers: it goes to local memory, which is as slow as global memory."
        )
        self._find_lanes("dynamic_local_index", site, array, self.mask, None, lambda element, who: sentence)

    def _check_alignment(self, site, array, pattern, offset, mask, width):
        even = pattern.remember(("aligned", width), lambda: not (pattern.array % width).any())
        if even and offset % width == 0:
            return
        key = ("misaligned", width, offset % width)
        bad = pattern.derive(key, lambda: (pattern.array + offset) % width != 0)
        culprits = mask.where(Lanes(bad, 0, BOOL))
        if not culprits.any:
            return
        bits = width * array.dtype.itemsize * 8

        def sentence(element, who):
            return (
                f"{who} accesses {bits} bits at {place(array.name, element)}, which is not at a multiple of "
                f"{bits // 8} bytes: a GPU would stop the kernel with 'misaligned address'."
            )

        self._find_cells("misaligned_access", site, array, culprits, pattern, offset, sentence)

    # ---- what may be wrong with it ----

    def _check_read(self, site, array, access: Access):
        if self.log is not None or not access.mask.any:
            return
        if array.space == "global":
            self._check_global_race(array, access)
        elif array.space == "shared":
            self._check_shared_read(site, array, access)
        else:
            self._check_local_read(site, array, access)

    def _check_shared_read(self, site, array, access):
        self.shared_races.note(access)
        early = self.async_copies.overlap(access)
        if early is not None:
            self._report_cells("async_read_too_early", site, array, *early, _too_early(array))
            return
        missing = self.initialised(array.storage).missing(access)
        if missing is not None:
            self._report_cells("uninitialised_read", site, array, *missing, _uninitialised(array))

    def _check_local_read(self, site, array, access):
        self._check_products(site, array, "reads")
        state = self.initialised(array.storage)
        bad = None if state.complete else state.missing(access)
        if bad is not None:
            where = self.geometry.mask(bad), access.pattern, access.offset
            self._find_cells("uninitialised_read", site, array, *where, _uninitialised(array))

    def _check_write(self, array, access: Access):
        if self.log is not None or not access.mask.any:
            return
        if array.space == "global":
            self._check_global_race(array, access)
            return
        if array.space == "shared" and access.op == "store":
            self.shared_races.note(access)
        if array.space == "local" and self.scheduler is not None:
            self._check_products(access.site, array, "writes")
            self.products.touched.add(array.storage.serial)
        self.initialised(array.storage).store(access)

    def _check_products(self, site, array, verb):
        """A thread must not touch its accumulators while products are still being added to them."""
        if self.scheduler is not None and self.products.busy(array.storage):
            self.products.report_busy(site, array, verb)

    def _check_global_race(self, array, access: Access):
        races = self.global_races.get(array.storage.serial)
        if races is None:  # an array that is only read
            return
        shape = np.broadcast_shapes(access.shape(), self.geometry.shape)
        active = slice(None) if access.mask.array is None else np.broadcast_to(access.mask.array, shape)
        cells = np.broadcast_to(access.pattern.array + access.offset, shape)[active].reshape(-1)
        ids = np.broadcast_to(self.thread_ids(), shape)[active].reshape(-1)
        if access.width > 1:
            cells, ids = (cells[:, None] + np.arange(access.width)).reshape(-1), np.repeat(ids, access.width)
        if access.op == "load":
            bad = races.load(cells, ids, self.now())
        else:
            bad = races.store(cells, ids, access.site, self.now(), atomic=access.op == "atomic")
        if bad.any():
            self._report_global_race(array, access, cells[bad], ids[bad], races)

    def _report_global_race(self, array, access, cells, ids, races):
        cell, me = int(cells[0]), int(ids[0])
        known = ((int(races.writer[cell]), "also writes"), (int(races.reader[cell]), "reads"))
        rival, verb = next(
            ((other, verb) for other, verb in known if other not in (0, me)), (None, "also accesses")
        )
        self.findings.add(
            ("global_race", access.site, array.name),
            len(cells),
            lambda: self._global_race(array, access, cell, me, rival, verb),
        )

    def _global_race(self, array, access, cell, me, rival, verb) -> Finding:
        """``me`` and ``rival``: ids of the two threads, the second None where it is no longer known.

        ``verb``: what the rival does, if this thread writes.
        """
        who, block = self.thread_of(me)
        others = [] if rival is None else [self.thread_of(rival)]
        other = thread_name(*others[0]) if others else "another thread"
        element, at = array.element(cell), self.sites[access.site]
        if access.op == "load":
            message = (
                f"{thread_name(who, block)} reads {place(array.name, element)}, and {other} writes it in the "
                "same launch, in no defined order: the read may see the old value or the new one."
            )
        else:
            message = (
                f"{thread_name(who, block)} writes {place(array.name, element)}, and {other} {verb} it, in "
                "no defined order: the result depends on which comes first."
            )
        threads = [who, *(thread for thread, _ in others)]
        message = message[0].upper() + message[1:]
        return Finding(
            "global_race", at.line, message, array.name, element, block, threads, at.function, access.site
        )

    # ---- reporting it ----

    def _find_lanes(self, kind, site, array, mask, index, sentence):
        """Report what the active lanes of ``mask`` do, each with the element at its own ``index``."""
        if not mask.any:
            return

        def make():
            where, block, thread = self._first_lane(mask, *(i for i in index or () if type(i) is Lanes))
            element = None if index is None else tuple(self._in_lane(i, where) for i in index)
            return self._finding(kind, site, array, element, block, thread, sentence)

        self.findings.add((kind, site, array.name), mask.active(self._mask_batch(mask)), make)

    def _find_cells(self, kind, site, array, mask, pattern, offset, sentence):
        """Like :meth:`_find_lanes`, with each element given by its position in the storage."""

        def make():
            here = Lanes(pattern, offset)
            where, block, thread = self._first_lane(mask, here)
            element = array.element(self._in_lane(here, where))
            return self._finding(kind, site, array, element, block, thread, sentence)

        self.findings.add((kind, site, array.name), mask.active(self._mask_batch(mask)), make)

    def _report_cells(self, kind, site, array, cells, threads, rows, columns, sentence):
        def make():
            block, flat = divmod(int(cells[0]), array.storage.size)
            thread = self.geometry.thread_coordinates(int(threads[0]))
            where = self.block_coordinates(*divmod(block, columns))
            return self._finding(kind, site, array, array.element(flat), where, thread, sentence)

        self.findings.add((kind, site, array.name), len(cells) * (self.blocks // (rows * columns)), make)

    def _finding(self, kind, site, array, element, block, thread, sentence):
        at = self.sites[site]
        message = sentence(element, thread_name(thread, block))
        message = message[0].upper() + message[1:]
        return Finding(kind, at.line, message, array.name, element, block, [thread], at.function, site)

    def _first_lane(self, mask, *positions):
        shape = np.broadcast_shapes(self.geometry.shape, np.shape(mask.array), *(p.shape for p in positions))
        active = np.broadcast_to(True if mask.array is None else mask.array, shape)
        where = np.unravel_index(int(active.argmax()), shape)
        row, column, linear = (int(i) for i in where[-3:])
        return where, self.block_coordinates(row, column), self.geometry.thread_coordinates(linear)

    @staticmethod
    def _in_lane(position, where) -> int:
        if type(position) is not Lanes:
            return int(position)
        array = position.pattern.array
        at = tuple(
            0 if extent == 1 else i for i, extent in zip(where[len(where) - array.ndim :], array.shape)
        )
        return int(array[at]) + position.offset

    def _mask_batch(self, mask) -> tuple:
        return self.batch_key if mask.array is not None and mask.array.ndim > 3 else ()

    # ---- values ----

    @staticmethod
    def _as_numbers(value):
        """Integers become lanes, so that they can index; floats stay arrays."""
        if isinstance(value, Unknown) or value.dtype.kind not in "biu":
            return value
        if np.ndim(value) == 0:
            return int(value) if value.dtype == INT64 else bool(value) if value.dtype == BOOL else value
        return lanes.from_values(np.array(value))

    @staticmethod
    def _require_number(value):
        if not isinstance(value, (bool, int, float, np.generic, np.ndarray)):
            raise KernelTypeError(f"only numbers can be stored, not {_kind(value)}")

    @staticmethod
    def own(value):
        """A value that later stores do not change: loads from a thread's own array are views of it."""
        if type(value) is np.ndarray and value.base is not None:
            return value.copy()
        if type(value) is tuple:
            return tuple(map(MemoryAccess.own, value))
        return value


def wrong_number_of_indices(array: DeviceArray, index: tuple) -> str:
    dimensions = f"{array.ndim} dimension" + "s" * (array.ndim != 1)
    given = "1 index is" if len(index) == 1 else f"{len(index)} indices are"
    return f"{array.name} has {dimensions}, but {given} given"


def _sum(p, q):
    return lambda: p.array + q.array


def _kind(value) -> str:
    """``a float32 value``, ``an int``, ``a tuple``, ``the array x``."""
    if isinstance(value, DeviceArray):
        return f"the array {value.name}"
    name = f"{value.dtype} value" if hasattr(value, "dtype") else type(value).__name__
    return ("an " if name[0] in "aeio" else "a ") + name


def _extent(size, axis, ndim) -> str:
    """``12 rows``, ``1 column``, ``7 elements``, ``3 entries along axis 2``."""
    if ndim > 2:
        return f"{size} entries along axis {axis}"
    word = ("row", "column")[axis] if ndim == 2 else "element"
    return f"{size} {word}" if size == 1 else f"{size} {word}s"


def _axis_word(axis, ndim) -> str:
    return ("row", "column")[axis] if ndim == 2 else "one"


def _uninitialised(array):
    return lambda element, who: (
        f"{who} reads {place(array.name, element)} before anything has been written to it."
    )


def _too_early(array):
    return lambda element, who: (
        f"{who} reads {place(array.name, element)} while an asynchronous copy to it is still in flight: "
        "the thread that started it must wait for it first, and other threads need a barrier after that."
    )


ATOMICS = {
    "add": lambda old, v, _: old + v,
    "sub": lambda old, v, _: old - v,
    "max": lambda old, v, _: max(old, v),
    "min": lambda old, v, _: min(old, v),
    "and_": lambda old, v, _: old & v,
    "or_": lambda old, v, _: old | v,
    "xor": lambda old, v, _: old ^ v,
    "exch": lambda old, v, _: v,
    "inc": lambda old, v, _: 0 if old >= v else old + 1,
    "dec": lambda old, v, _: v if old == 0 or old > v else old - 1,
    "cas": lambda old, v, compare: v if old == compare else old,
}
