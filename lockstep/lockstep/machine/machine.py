"""The machine that runs a translated kernel: one object with the state of all lanes that run together."""

from typing import NamedTuple

import numpy as np

from lockstep.counts.fold import Fold, Log, margins
from lockstep.counts.lane_counts import LaneCounts
from lockstep.counts.tally import Tally
from lockstep.errors import EmulatorError, KernelTypeError, LimitExceeded
from lockstep.limits import DEFAULT, MAX_STATIC_SHARED_BYTES
from lockstep.memory.records import Record, RecordAccess
from lockstep.memory.storage import (
    ARRAYS,
    DeviceArray,
    LocalStorage,
    SharedStorage,
    Unbound,
    Unknown,
    unknown,
)
from lockstep.races.absences import Absences
from lockstep.races.async_copies import AsyncCopies
from lockstep.races.exact import ExactRaces, ExactSharedRaces
from lockstep.races.happens_before import Happened
from lockstep.races.shadow import Access, GlobalRaces, Initialised, InitialisedLocal, SharedRaces
from lockstep.registry import Emulation
from lockstep.values import lanes
from lockstep.values.dtypes import dtype_of, is_integer, unify
from lockstep.values.geometry import Coordinates, Geometry
from lockstep.values.lanes import Lanes
from lockstep.waiting.cooperation import Cooperation
from lockstep.waiting.scheduler import Scheduler
from lockstep.waiting.unit import Unit

from .access import MemoryAccess
from .arithmetic import Arithmetic, require_tuples_alike
from .barriers import Barriers
from .chunk import Chunk
from .control import Control
from .failed_calls import what_is_wrong
from .language import Language, same_tuple
from .unset import Unset
from .views import Views


class Site(NamedTuple):
    """A place in a kernel's source where something happens."""

    function: str
    line: int
    op: str
    stays: int | None = None  # local arrays of more elements may leave the registers by it; None: none do
    file: str = ""
    column: int = -1
    one_constant: bool = False  # whether the index is a single integer that Numba knows, as for a record


class Machine(Arithmetic, Barriers, Control, Cooperation, Language, MemoryAccess, RecordAccess, Unset, Views):
    """Runs translated kernels; the mix-ins hold arithmetic, barriers, control flow and memory access."""

    unbound = Unbound()
    gpu = DEFAULT  # whose limits hold
    debug = False  # of the kernel: a division by zero raises
    only_types = False

    def __init__(
        self,
        grid,
        block,
        shared_bytes,
        *,
        counts_only,
        step_limit,
        findings,
        warp_by_warp=False,
        exact=frozenset(),
        examined=frozenset(),
        strict=False,
    ):
        # The launch.
        self.grid, self.block = grid, block  # blocks of the grid and threads of a block, along x, y and z
        self.block_dim, self.grid_dim = (Coordinates(*map(np.int32, size)) for size in (block, grid))
        self.dynamic_shared = shared_bytes  # of a block
        self.step_limit = step_limit  # iterations that a loop may run
        self.warp_by_warp = warp_by_warp  # one block at a time, and one warp of it at a time
        self.sites: dict[int, Site] = {}
        self.typing = None  # the machine that finds the types of what this one calls
        self.unset_kinds: dict = {}  # site of a variable that may be unset -> its type, as kind_of names it

        # What runs now.
        self.chunk: Chunk | None = None
        self.unit: Unit | None = None
        self._shapes: dict = {}  # (rows, columns) of a chunk -> its geometry, what such chunks share

        # Counts.
        self.counts_only = counts_only
        self.log = Log() if counts_only else None  # what iterations tally
        self.folding = counts_only  # may iterations be skipped?
        self.tallies = Tally(keep=counts_only)
        self.tally = self._tally_logged if counts_only else self.tallies.add
        self.lane_counts = LaneCounts(self)  # accesses of lanes that run apart

        # Races.
        self.global_races: dict[
            int, GlobalRaces
        ] = {}  # serial of a storage that may be written -> its shadow
        self.strict = strict  # do stores of equal values race as well?
        self.exact = exact  # "shared", "global": memories whose races are found access by access
        self.examined = examined  # in shared memory, only these arrays, by their families
        self.happened = Happened(block[0] * block[1] * block[2]) if exact else None
        self.exact_races: dict[int, ExactRaces] | None = {} if "global" in exact else None
        self.fine_order = False  # has a fence or a flag been met, so that only the exact way can tell races?
        self.doubts: set[str] = set()  # memories where the exact way is needed to tell
        self.suspects: set = set()  # shared arrays in which there may be races, by their families

        # Units that wait for each other.
        self.scheduler: Scheduler | None = None  # None in lock-step
        self.apart = self.lanes_apart = False  # do units run apart, and are they single lanes?
        self.asynchronous = False  # do warps with mbarriers, copies and products of their own run?
        self.changes = self.polls = 0  # of memory; looks at memory that the kernel may change
        self.last_poll: Access | None = None
        self.last_change: dict[tuple, tuple] = {}  # element -> (thread, site)

        # What is reported.
        self.findings = findings
        self.report_float64 = (
            True  # has the launch no float64 array, so that such arithmetic deserves advice?
        )
        self.printed: list[str] = []  # shown when the launch has ended, as on a GPU
        self.last_watcher = None  # the trace

    # ---- chunks of blocks ----

    def start(self, z, y, x, rows, columns):
        """Prepare for the blocks (x.., y.., z) of a chunk: fresh shared memory, all threads at the start."""
        shape = rows, columns
        if shape not in self._shapes:
            self._shapes[shape] = Geometry(self.block, rows, columns), {}
        geometry, memos = self._shapes[shape]
        epoch = self.chunk.epoch if self.chunk is not None else 0
        if type(epoch) is not int:  # the blocks before have passed different barriers
            epoch = int(epoch.max())
        self.chunk = Chunk(self.grid, geometry, (z, y, x), epoch, memos)
        self.unit = Unit(geometry.all_threads)
        self.chunk.shared_races = (ExactSharedRaces if "shared" in self.exact else SharedRaces)(self)
        self.chunk.absences = Absences(self)
        self.chunk.async_copies = AsyncCopies(self)
        if self.warp_by_warp:
            self.prepare_warps()

    def end(self):
        """The blocks of the chunk are done."""
        if self.log is None:
            self.chunk.shared_races.barrier(self.chunk.geometry.all_threads)
        self.chunk.absences.end()
        self.lane_counts.settle()
        self.tallies.settle()

    # ---- tallies ----

    def _tally_logged(self, key, payload):
        self.tallies.add(key, payload)
        self.log.keys.append(key)
        self.log.weights.append(1)

    def tally_again(self, key, weight):
        """Count something already tallied ``weight`` more times."""
        self.tallies.add_again(key, weight)
        self.log.keys.append(key)
        self.log.weights.append(weight)

    def _log_only(self, key, number):
        self.log.keys.append(key)
        self.log.weights.append(0)
        self.log.numbers.append(number)

    def note_comparison(self, op, a, b, outcome):
        if outcome is None:
            outcome = lanes.compare(op, a, b)
        key = (op, outcome if type(outcome) is bool else outcome.pattern.serial)
        self._log_only(key, margins(op, a, b, outcome))

    def note_divisor(self, op, a, b):
        (_, offset), (q, divisor) = lanes.split(a), lanes.split(b)
        uniform = q is lanes.ZERO and divisor > 0
        self._log_only((op, divisor, offset % divisor if uniform else offset), (offset, None, None))

    def note_exact(self, op, a, b):
        self._log_only((op, lanes.split(a)[1], lanes.split(b)[1]), (0, None, None))

    def fold(self, loop, state):
        """At the end of an iteration: the variables after it, or after those counted without running."""
        if loop.fold is None:
            loop.fold = Fold(self)
            return state
        loop.skip, state = loop.fold.end_of_iteration(state, loop.room)
        return state

    def call(self, site, function, /, *arguments, **keywords):
        """A call in the kernel's source; ``machine.site`` tells the function where it was called."""
        self.unit.site = site
        try:
            return function(self, *arguments, **keywords)
        except (TypeError, AttributeError) as error:
            if isinstance(error, EmulatorError):
                raise
            wrong = what_is_wrong(function, arguments, keywords)
            if wrong is None:
                raise
            raise wrong from None

    @staticmethod
    def function_in(value, name):
        """The device function, or the atomic operation, that a variable holds."""
        atomic = isinstance(value, Emulation) and value.reads and value.writes
        if not atomic and getattr(value, "kind", None) != "device":
            raise KernelTypeError(f"{name} is a variable, and holds no device function that could be called")
        return value

    @property
    def site(self) -> int:
        """The place in the source of the call that is executed."""
        return self.unit.site

    # ---- variables ----

    def assign(self, new, old, region):
        """A variable's value after ``x = new`` in the active lanes; ``region``: all lanes that use it."""
        return new if self.unit.mask is region else self.merge(new, old)

    def merge(self, new, old):
        """``new`` in the active lanes, ``old`` in the others."""
        mask = self.unit.mask
        if mask.array is None or old is self.unbound or new is old:
            return new
        if new is self.unbound:
            return old
        if new is None or old is None:
            raise KernelTypeError(
                "a value is None in some threads and not in others, which the emulator follows only in a "
                "variable that is set to `None` by name: use a number that stands for None"
            )
        if isinstance(new, tuple):
            require_tuples_alike(new, old)
            return same_tuple(new, map(self.merge, new, old))
        if isinstance(new, Record):
            return self.joined_records(new, old)
        if "device" in (getattr(new, "kind", None), getattr(old, "kind", None)):
            raise KernelTypeError("a variable cannot hold different functions in different threads")
        if isinstance(new, ARRAYS) or isinstance(old, ARRAYS):
            return self.join_arrays(self._pattern_of(mask), new, old) if mask.any else old
        if dtype_of(old) is None:
            return new
        dtype = unify(self._dtype(new), self._dtype(old))
        if isinstance(new, Unknown) or isinstance(old, Unknown):
            return unknown(dtype)
        if is_integer(dtype):
            if not mask.any:
                return old
            return self._choose_integers(self._pattern_of(mask), new, old, dtype)
        return np.where(mask.array, self._typed(new, dtype), self._typed(old, dtype))

    @staticmethod
    def _pattern_of(mask) -> lanes.Pattern:
        """The active lanes, as a pattern."""
        if "pattern" not in mask.memo:
            mask.memo["pattern"] = lanes.Pattern(mask.array)
        return mask.memo["pattern"]

    def unpack(self, site, values, count):
        """``a, b = values``, a tuple or an array; ``site``: where the elements of an array are read."""
        if isinstance(values, ARRAYS):
            if not self.only_types and np.any(self.plain(self.length(values)) != count):
                raise KernelTypeError(
                    f"{count} values are needed, and this part of {values.name} has not {count}"
                )
            return tuple(self.own(self.subscript(site, values, position)) for position in range(count))
        if not isinstance(values, tuple) or len(values) != count:
            raise KernelTypeError(f"{count} values are needed on the right-hand side of this assignment")
        return values

    # ---- memory ----

    def shared_array(self, site, shape, dtype, alignment=None):
        """``cuda.shared.array``: one per block; a shape of 0 gives the dynamic shared memory."""
        shape = _shape(shape)
        if shape == (0,):
            return self._dynamic_array(site, dtype, alignment)
        array = self.chunk.shared_arrays.get(site)
        if array is None:
            array = self._declare(SharedStorage, site, shape, dtype)
            array.storage.alignment = alignment or dtype.itemsize
            self.chunk.shared_arrays[site] = array
            self._check_static_limit()
        return array

    def _check_static_limit(self):
        taken, gpu = self.static_shared_bytes(), self.gpu
        if taken > MAX_STATIC_SHARED_BYTES:
            raise LimitExceeded(
                f"the kernel's shared arrays of fixed shape take {taken:,} bytes; "
                f"the limit is {MAX_STATIC_SHARED_BYTES:,} on an {gpu.name}"
            )
        if taken + self.dynamic_shared > gpu.max_shared_bytes:
            raise LimitExceeded(
                f"the shared arrays take {taken:,} bytes and the launch adds {self.dynamic_shared:,}; "
                f"a block of an {gpu.name} has {gpu.max_shared_bytes:,}"
            )

    def _dynamic_array(self, site, dtype, alignment):
        array = self.chunk.shared_arrays.get("dynamic")
        if array is None:
            length = self.dynamic_shared // dtype.itemsize
            array = self.chunk.shared_arrays["dynamic"] = self._declare(SharedStorage, site, (length,), dtype)
            array.storage.alignment = alignment or dtype.itemsize
        return array if array.dtype == dtype else self._dynamic_as(site, array, dtype)

    def _dynamic_as(self, site, array, dtype):
        """Dynamic shared memory once more, with elements of another dtype: it is the same memory."""
        if self.warp_by_warp:
            raise KernelTypeError(
                "where warps wait for each other, the emulator supports one dtype for dynamic shared memory"
            )
        if array.storage.block.nbytes % dtype.itemsize:
            raise KernelTypeError(
                f"dynamic shared memory of {array.storage.block.nbytes:,} bytes cannot be used as "
                f"{array.dtype} and as {dtype}: ask for a multiple of {dtype.itemsize} bytes at the launch"
            )
        storage = array.storage.retyped(dtype)
        return DeviceArray(self.sites[site].op, storage, dtype, storage.shape)

    def static_shared_bytes(self) -> int:
        """Bytes of the block's shared arrays of fixed shape, each of which starts at a multiple of 16."""
        fixed = [array for site, array in self.chunk.shared_arrays.items() if site != "dynamic"]
        return sum(-(-a.storage.size * a.dtype.itemsize // 16) * 16 for a in fixed)

    def local_array(self, site, shape, dtype, alignment=None):
        """``cuda.local.array``: one per thread."""
        return self._declare(LocalStorage, site, _shape(shape), dtype)

    def _declare(self, kind, site, shape, dtype):
        storage = kind(dtype, shape, self.counts_only)
        storage.slot = site
        return DeviceArray(self.sites[site].op, storage, dtype, shape)

    def initialised(self, storage):
        state = self.chunk.written.get(storage.serial)
        if state is None:
            if storage.space == "shared":
                state = Initialised(storage)
            else:
                state = InitialisedLocal(storage, self.scheduler and self.unit.lanes.array)
            self.chunk.written[storage.serial] = state
        return state

    def start_copy(self, site, destination, where, source, source_where, width, valid_bytes):
        """cp.async: read ``valid_bytes`` (the rest is zero) now, write all of it at the wait for the copy."""
        values = self._copied_values(site, source, source_where, width, valid_bytes)
        pattern, offset, mask = self._locate(site, destination, where, width, "writes", from_the_end=False)
        access = self._account(site, destination, "store", pattern, offset, mask, width)
        if self.log is None and mask.any:
            self.chunk.shared_races.note(access)
            self.chunk.async_copies.start(access, values)

    def _copied_values(self, site, source, where, width, valid_bytes):
        """The values to write: elements that are read, then zeros. Lanes that read as many read together."""
        saved, zero = self.unit.mask, source.dtype.type(0)
        valid = self.floordiv(None, valid_bytes, source.dtype.itemsize)
        low, high = (valid.low, valid.high) if type(valid) is Lanes else (int(valid), int(valid))
        arriving = (zero,) * width
        for count in range(max(low, 1), min(high, width) + 1):
            these = self.compare("==", valid, count)
            if these is False:
                continue
            self.unit.mask = saved if these is True else saved.where(these)
            if self.unit.mask.any:
                values = self.read(site, source, where, count, boundary=width)
                values = (values if count > 1 else (values,)) + (zero,) * (width - count)
                arriving = tuple(self.merge(new, old) for new, old in zip(values, arriving))
        self.unit.mask = saved
        return arriving

    def land(self, access: Access, values):
        """An asynchronous copy arrives."""
        for step, value in enumerate(values):
            access.storage.scatter(access.pattern, access.offset + step, self.plain(value), access.mask)
        self.chunk.shared_races.note(access._replace(phase=self.unit.phase))
        self.initialised(access.storage).store(access)


def _shape(shape) -> tuple:
    shape = shape if isinstance(shape, tuple) else (shape,)
    for extent in shape:
        if type(extent) is not int and not isinstance(extent, np.integer):
            raise KernelTypeError(
                "the shape of a shared or local array must be known when the kernel is compiled: "
                "a number, or a constant of the module or of the enclosing function"
            )
    return tuple(int(extent) for extent in shape)
