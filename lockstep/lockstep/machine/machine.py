"""Defines the machine that runs a translated kernel.

A launch (:mod:`lockstep.launching.launch`) makes one machine and cuts its grid into chunks. For each,
:meth:`Machine.start` makes a :class:`.Chunk`, the blocks with their shared memory, and a :class:`.Unit`, the
lanes that run in lock-step. Then the translated code runs once for all lanes, and calls the machine at each
step:

* operations on values (:mod:`.operations`) compute for all lanes at once;
* branches and loops (:mod:`.control`) narrow ``unit.mask``, the lanes that execute the current statement;
* loads and stores (:mod:`.access`) check bounds, count with ``tally``, look for races in
  ``chunk.shared_races`` and ``races``, and then move the numbers; ``reporter`` says what is wrong;
* barriers (:mod:`.barriers`) move ``chunk.epoch`` on, by which accesses are ordered.

:meth:`Machine.end` finishes the chunk's checks and counts. Where threads wait for others, the same code runs
once for each unit: ``scheduler`` sets ``unit`` and ``chunk`` to those of the unit whose turn it is. The units
share everything else.
"""

from typing import NamedTuple

import numpy as np

from lockstep.counts.fold import Fold, Log
from lockstep.counts.lane_counts import LaneCounts
from lockstep.counts.tally import OperationsKey, Tally
from lockstep.errors import KernelTypeError
from lockstep.findings import Finding
from lockstep.memory.records import RECORDS
from lockstep.memory.storage import ARRAYS, Unknown, unknown
from lockstep.races.absences import Absences
from lockstep.races.async_copies import AsyncCopies
from lockstep.races.exact import ExactSharedRaces
from lockstep.races.global_races import RacesInGlobalMemory
from lockstep.races.happens_before import HappensBefore
from lockstep.races.looks import Looks
from lockstep.races.shadow import Access, Initialised, InitialisedLocal, SharedRaces
from lockstep.values import lanes
from lockstep.values.chunk import Chunk
from lockstep.values.dtypes import FLOAT64, dtype_of, is_integer, unify
from lockstep.values.geometry import Geometry
from lockstep.values.lanes import Lanes
from lockstep.values.unit import Unit
from lockstep.values.vectors import Vector
from lockstep.waiting.cooperation import Cooperation
from lockstep.waiting.scheduler import Scheduler

from .access import MemoryAccess
from .accumulation import Accumulation
from .arithmetic import require_tuples_alike, require_vectors_alike
from .barriers import Barriers
from .control import Control
from .declarations import whole_shape
from .language import same_tuple
from .operations import Operations
from .reporter import Reporter
from .slices import Slices
from .unset import Unset
from .words import kind_of


class Site(NamedTuple):
    """A place in a kernel's source at which an operation is executed."""

    function: str
    line: int
    op: str
    # Because of the access, a local array of more than `stays` elements leaves the registers. With None, no
    # array does.
    stays: int | None = None
    file: str = ""
    column: int = -1
    # `one_constant` says that the index is one integer that Numba knows when it compiles.
    one_constant: bool = False
    # Where the statement stores to the element that it loads, as in ``x[0] += 1``, `updates` names the atomic
    # operation that does the same, such as "add", or is "other".
    updates: str = ""


class Machine(Operations, Accumulation, Barriers, Control, Cooperation, MemoryAccess, Slices, Unset):
    """A machine that runs a translated kernel for one launch.

    Its base classes define the methods that the translated code calls. Its attributes hold the counts, the
    order of accesses and the findings that these methods share.
    """

    declared_shape = staticmethod(whole_shape)

    def __init__(
        self,
        grid,
        block,
        shared_bytes,
        *,
        counts_only,
        step_limit,
        loop_seconds,
        findings,
        warp_by_warp=False,
        exact=frozenset(),
        examined=frozenset(),
        strict=False,
    ):
        self.tallies = Tally(keep=counts_only)
        log = Log(self.tallies) if counts_only else None
        super().__init__(grid, block, shared_bytes, sites={}, findings=findings, log=log)
        # No loop runs more iterations than `step_limit`.
        self.step_limit = step_limit
        # A loop without a counter may run for `loop_seconds` without any lane leaving it.
        self.loop_seconds = loop_seconds
        # If `warp_by_warp`, the machine runs one block at a time, and one warp of the block at a time.
        self.warp_by_warp = warp_by_warp
        # `unset_kinds` has, for the site of a variable that may be unset, the variable's type as kind_of
        # names it.
        self.unset_kinds: dict = {}
        # Chunks with equal numbers of rows and columns share a geometry and what is derived from the
        # geometry.
        self._shapes: dict = {}

        # A launch that only counts may count iterations without running them.
        self.folding = counts_only
        self.tally = self.tallies.add if log is None else log.tally
        self.lane_counts = LaneCounts(self)

        self.races = RacesInGlobalMemory(self, "global" in exact)
        # If `strict`, stores of equal values count as a race as well.
        self.strict = strict
        # `exact` names the memories ("shared", "global") whose races are found access by access.
        self.exact = exact
        # Of shared memory, the exact search examines only the arrays of these families.
        self.examined = examined
        self.happens_before = HappensBefore(block[0] * block[1] * block[2]) if exact else None
        # Fences and syncwarp() set `fine_order`, because only the exact search knows the order that they
        # make.
        self.fine_order = False
        # `doubts` names the memories in which only the exact search can tell whether there is a race.
        self.doubts: set[str] = set()
        # `suspects` has the families of the shared arrays in which there may be races.
        self.suspects: set = set()

        # In lock-step there is no scheduler.
        self.scheduler: Scheduler | None = None
        # `apart` says that units run apart, and `lanes_apart` that these units are single lanes.
        self.apart = self.lanes_apart = False
        # `asynchronous` says that warps run apart, with mbarriers, asynchronous copies and products.
        self.asynchronous = False
        self.looks = Looks(self)

        self.reporter = Reporter(self)
        # If an array of the launch holds float64, the kernel means to compute in float64 and needs no advice.
        self.report_float64 = True
        # As on a GPU, what a kernel prints is shown when the launch has ended.
        self.printed: list[str] = []
        # `last_watcher` holds the launch's trace, if there is one.
        self.last_watcher = None

    # ---- chunks of blocks ----

    def start(self, z, y, x, rows, columns):
        """Prepare for the blocks (x.., y.., z) of a chunk: new shared memory, all threads at the start."""
        shape = rows, columns
        if shape not in self._shapes:
            self._shapes[shape] = Geometry(self.block, rows, columns), {}
        geometry, memos = self._shapes[shape]
        epoch = self.chunk.epoch if self.chunk is not None else 0
        # The blocks of the last chunk may have passed different numbers of barriers.
        if type(epoch) is not int:
            epoch = int(epoch.max())
        self.chunk = Chunk(self.grid, geometry, (z, y, x), epoch, memos)
        self.unit = Unit(geometry.all_threads)
        self.chunk.shared_races = (ExactSharedRaces if "shared" in self.exact else SharedRaces)(self)
        self.chunk.absences = Absences(self)
        self.chunk.async_copies = AsyncCopies(self)
        if self.warp_by_warp:
            self.prepare_warps()

    def end(self):
        """Finish a chunk whose blocks have all ended."""
        if self.log is None:
            self.chunk.shared_races.barrier(self.chunk.geometry.all_threads)
        self.chunk.absences.end()
        self.lane_counts.settle()
        self.tallies.settle()

    # ---- counts ----

    def count_arithmetic(self, site, name, dtype, per_lane=1):
        """Count an operation of every active lane, ``per_lane`` of them per instruction."""
        key = OperationsKey(site, name, dtype.char, self.unit.mask.serial, self.unit.batch, per_lane)
        self.tally(key, self.unit.mask)
        if dtype == FLOAT64 and self.report_float64:
            self._advise_float64(site)

    def _advise_float64(self, site):
        at = self.sites[site]
        key = ("float64_arithmetic", at.line)
        message = (
            "This is computed in float64. A Python number or a float64 value makes it so, and so does a "
            "float32 with an integer of 32 or 64 bits, or `/` of integers. On a GPU, float64 is slower than "
            "float32, on consumer cards 64 times."
        )
        self.findings.add(
            key,
            self.unit.mask.active(self.unit.batch),
            lambda: Finding("float64_arithmetic", at.line, message, function=at.function, site=site),
        )

    def fold(self, loop, state):
        """End an iteration: return the variables after it, or after the iterations that are counted without
        running.
        """
        if loop.fold is None:
            loop.fold = Fold(self)
            return state
        loop.skip, state = loop.fold.end_of_iteration(state, loop.room)
        return state

    # ---- variables ----

    def assign(self, new, old, region):
        """Return a variable's value after ``x = new`` in the active lanes.

        ``region`` has all lanes that use it.
        """
        return new if self.unit.mask is region else self.merge(new, old)

    def merge(self, new, old):
        """Return ``new`` in the active lanes and ``old`` in the others."""
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
        if isinstance(new, slice) and isinstance(old, slice):
            return slice(*map(self.merge, (new.start, new.stop, new.step), (old.start, old.stop, old.step)))
        if isinstance(new, Vector) or isinstance(old, Vector):
            require_vectors_alike(new, old)
            return new.joined(old, self.merge)
        if isinstance(new, RECORDS):
            return self.joined_records(self._pattern_of(mask), new, old) if mask.any else old
        if "device" in (getattr(new, "kind", None), getattr(old, "kind", None)):
            raise KernelTypeError("a variable cannot hold different functions in different threads")
        if isinstance(new, ARRAYS) or isinstance(old, ARRAYS):
            return self.join_arrays(self._pattern_of(mask), new, old) if mask.any else old
        if dtype_of(old) is None:
            raise KernelTypeError(
                f"a variable cannot be {kind_of(new)} in some threads and {kind_of(old)} in others"
            )
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
        """Return the active lanes as a pattern."""
        if "pattern" not in mask.memo:
            mask.memo["pattern"] = lanes.Pattern(mask.array)
        return mask.memo["pattern"]

    # ---- memory ----

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
        """Start a cp.async: read ``valid_bytes`` now (the rest is zero), write at the wait for the copy."""
        values = self._copied_values(site, source, source_where, width, valid_bytes)
        pattern, offset, mask = self._locate(site, destination, where, width, "writes", from_the_end=False)
        access = self._account(site, destination, "store", pattern, offset, mask, width)
        if self.log is None and mask.any:
            self.chunk.shared_races.note(access)
            self.chunk.async_copies.start(access, values)

    def _copied_values(self, site, source, where, width, valid_bytes):
        """Return the values to write: elements read, then zeros.

        Lanes that read equally many read together.
        """
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
        """Write the values of an asynchronous copy that has arrived."""
        for step, value in enumerate(values):
            access.storage.scatter(access.pattern, access.offset + step, self.plain(value), access.mask)
        self.chunk.shared_races.note(access._replace(phase=self.unit.phase))
        self.initialised(access.storage).store(access)
