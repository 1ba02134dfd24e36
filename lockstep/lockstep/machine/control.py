"""Runs branches and loops in lock-step: a branch narrows the mask, and a loop ends when no lane is in it."""

from time import perf_counter

import numpy as np

from lockstep.errors import DataDependent, KernelStopped, KernelTypeError
from lockstep.findings import thread_name
from lockstep.memory.records import RECORDS
from lockstep.memory.storage import ARRAYS, DeviceArray, Unknown
from lockstep.values import lanes
from lockstep.values.dtypes import BOOL, INT64, UINT64
from lockstep.values.lanes import Lanes
from lockstep.values.unit import Frame
from lockstep.waiting.scheduler import WARPS, NeedsFinerUnits

from .elements import as_lanes
from .iterables import LaneRange, Range, TypedRange, iterable, type_of_range
from .narrowing import Narrowing

# A loop runs at most BATCH_LENGTH iterations at once.
BATCH_LENGTH = 64
# Iterations run at once only if an array over them and all lanes has at most BATCH_ELEMENTS elements.
BATCH_ELEMENTS = 1 << 22
# A loop that has run fewer than FEW_ITERATIONS iterations while it was timed is slow, not endless.
FEW_ITERATIONS = 500
# After every PATIENCE iterations, a loop that may be waiting lets other threads run.
PATIENCE = 1000


class Loop:
    """An execution of a loop statement, which keeps track of the lanes that are still in the loop."""

    __slots__ = (
        "line",
        "frame",
        "entry",
        "live",
        "broken",
        "continued",
        "iterations",
        "fold",
        "skip",
        "room",
        "look_at",
        "sparse",
        "aside",
        "items",
        "idle",
        "effects",
        "polls",
        "changes",
        "timed",
        "look_at_clock",
    )

    def __init__(self, line, frame, mask, look_at):
        self.line, self.frame, self.entry, self.live = line, frame, mask, mask
        self.broken = self.continued = self.fold = None
        self.iterations = self.skip = 0
        self.room = self.idle = None
        self.effects, self.polls, self.changes = (), 0, None
        # In iteration `look_at` the machine counts how many lanes are left; it never does if this number is
        # None.
        self.look_at = look_at
        # `sparse` says that few lanes are left, so that the loop is narrowed in this iteration.
        self.sparse = False
        # While the loop is narrowed, `aside` holds the values of all lanes.
        self.aside = None
        # A loop over a range that differs from lane to lane keeps its next value and its end in `items`.
        self.items = None
        # `timed` holds the number of lanes, the iterations and the unit's time when the timing last
        # began; at the time `look_at_clock` the machine checks whether the loop has run for too long.
        self.timed = self.look_at_clock = None


class Control(Narrowing):
    """The part of the machine that runs branches and loops. ``unit.mask`` says which lanes are active."""

    # ---- conditions ----

    def truth(self, value):
        """Return a condition as a Python bool if all lanes agree, and as boolean lanes otherwise."""
        if type(value) is bool:
            return value
        if isinstance(value, Unknown):
            raise DataDependent(
                "a branch depends on loaded data, so accesses cannot be counted without running the kernel"
            )
        if type(value) is Lanes and value.dtype == BOOL:
            if value.pattern.low == value.pattern.high:
                return bool(value.pattern.low)
            return value
        if value is None or isinstance(value, tuple):
            return bool(value)
        return self.compare("!=", value, 0)

    def select(self, condition, then, otherwise):
        """Return the value of ``then() if condition else otherwise()``."""
        condition = self.truth(condition)
        if type(condition) is bool:
            return then() if condition else otherwise()
        saved = self.unit.mask
        yes, no = saved.where(condition), saved.where_not(condition)
        try:
            self.unit.mask = yes
            a = then() if yes.any else None
            self.unit.mask = no
            b = otherwise() if no.any else None
        finally:
            self.unit.mask = saved
        if a is None or b is None:
            return b if a is None else a
        return self.choose(condition, a, b)

    # ---- branches ----

    def enter(self, condition) -> bool:
        """Begin the body of an ``if``: narrow the mask, and return whether any lane is in it."""
        if type(condition) is bool:
            return condition
        self.unit.mask = self.unit.mask.where(condition)
        return self.unit.mask.any

    def otherwise(self, saved, condition) -> bool:
        """Begin the ``else`` of an ``if`` that the lanes ``saved`` reached."""
        if type(condition) is bool:
            self.unit.mask = saved
            return not condition
        self.unit.mask = saved.where_not(condition)
        return self.unit.mask.any

    def leave(self, saved, frame, loop):
        """End an ``if`` with jumps inside: the lanes ``saved`` continue, except those that jumped."""
        if frame is not None and frame.returned is not None:
            saved = saved.minus(frame.returned)
        if loop is not None:
            for gone in (loop.broken, loop.continued):
                if gone is not None:
                    saved = saved.minus(gone)
        self.unit.mask = saved

    # ---- calls ----

    @staticmethod
    def frame() -> Frame:
        return Frame()

    def return_(self, frame, value):
        """Carry out ``return value`` for the active lanes."""
        if frame.returned is None:
            frame.returned, frame.value = self.unit.mask, value
        else:
            frame.returned = frame.returned.plus(self.unit.mask)
            frame.value = self.merge(value, frame.value)
        self.unit.mask = self.chunk.geometry.no_threads

    def returned(self, frame, entered):
        """Return what a call gives to the lanes that ``entered`` it.

        A lane that reaches the end gets None.
        """
        missing = frame.value is not None and entered.minus(frame.returned).any
        if missing and self.log is None:
            raise KernelTypeError(
                "the emulator does not support a function that returns a value in some threads, and reaches "
                "its end and so returns None in others: end it with a `return` of a number"
            )
        return frame.value

    # ---- loops ----

    def loop(self, line, frame, may_narrow=False, timed=False) -> Loop:
        loop = Loop(line, frame, self.unit.mask, self.look_every if may_narrow else None)
        if timed:
            self._begin_to_time(loop)
        return loop

    def _begin_to_time(self, loop):
        mask = loop.live.array
        lanes = None if mask is None else int(np.count_nonzero(mask))
        loop.timed = lanes, loop.iterations, self.unit.seconds()
        loop.look_at_clock = perf_counter() + self.loop_seconds

    def _check_time(self, loop):
        """Stop a loop that has run for ``loop_seconds`` without any lane having left it."""
        lanes, iterations, since = loop.timed
        spent, many = self.unit.seconds() - since, loop.iterations - iterations >= FEW_ITERATIONS
        if spent < self.loop_seconds or not many:
            loop.look_at_clock = perf_counter() + max(self.loop_seconds - spent, 0.1)
            return
        self._begin_to_time(loop)
        if loop.timed[0] == lanes:
            _, block, thread = self.reporter.first_lane(loop.live)
            raise KernelStopped(
                f"the loop in line {loop.line} has run for {spent:.0f} s and {loop.iterations:,} iterations "
                f"without any thread having left it, {thread_name(thread, block)} among them: can its "
                "condition become false? If it needs longer, raise loop_seconds (--loop-seconds)."
            )

    def again(self, loop) -> bool:
        """Find the lanes that begin another iteration; return whether there are any."""
        mask = loop.live
        if loop.broken is not None:
            mask = mask.minus(loop.broken)
        if loop.frame is not None and loop.frame.returned is not None:
            mask = mask.minus(loop.frame.returned)
        loop.continued = None
        self.unit.mask = loop.live = mask
        return mask.any

    def test(self, loop, condition) -> bool:
        """Carry out the test of a ``while``: lanes in which it is false leave the loop."""
        condition = self.truth(condition)
        if condition is False:
            return False
        if condition is not True:
            self.unit.mask = loop.live = self.unit.mask.where(condition)
            if not self.unit.mask.any:
                return False
        self._count_iteration(loop)
        return True

    def _count_iteration(self, loop):
        loop.iterations += 1
        if loop.timed is not None and perf_counter() > loop.look_at_clock:
            self._check_time(loop)
        if loop.iterations == loop.look_at:
            loop.sparse = self.few_are_left(loop)
        if loop.iterations > self.step_limit:
            raise KernelStopped(
                f"the loop in line {loop.line} is still running after {self.step_limit:,} iterations; "
                "is its counter advanced, and can its condition become false?"
            )

    def break_(self, loop):
        loop.broken = self.unit.mask if loop.broken is None else loop.broken.plus(self.unit.mask)
        self.unit.mask = self.chunk.geometry.no_threads

    def continue_(self, loop):
        loop.continued = self.unit.mask if loop.continued is None else loop.continued.plus(self.unit.mask)
        self.unit.mask = self.chunk.geometry.no_threads

    def finish(self, loop):
        """End a loop: the lanes that entered it continue, except those that returned from the function."""
        self._gone_alone(loop)
        self.unit.mask = loop.entry
        if loop.frame is not None and loop.frame.returned is not None:
            self.unit.mask = loop.entry.minus(loop.frame.returned)

    def completed(self, loop) -> bool:
        """Begin the ``else`` of a loop, after :meth:`finish`: the lanes that left it without ``break``."""
        if loop.broken is not None:
            self.unit.mask = self.unit.mask.minus(loop.broken)
        return self.unit.mask.any

    def may_wait(self, loop):
        """Begin a loop whose condition depends on memory, so that it may wait for another thread."""
        loop.effects, loop.polls = (self.looks.changes,), self.looks.polls

    def idle(self, loop, site, *state):
        """End an iteration of a loop whose condition depends on memory: find out whether it has changed
        anything.

        If all is as it was an iteration ago, it can only end when another unit stores something. Return a
        generator that waits for that, or None.
        """
        if self.log is not None or self.warp_by_warp:
            return None
        loop.effects = (*loop.effects[-1:], self.looks.changes)
        polled, loop.polls = self.looks.polls > loop.polls, self.looks.polls
        seen = self.looks.seen() if self.apart else []
        if not polled:  # The loop has looked at nothing that others may change.
            loop.idle = None
            return None
        jumped = loop.broken, loop.frame and loop.frame.returned
        now = (self.looks.changes, loop.live, *jumped, *map(self.own, state))
        idle = loop.idle is not None and all(map(_alike, loop.idle, now))
        loop.idle = now
        if idle:
            return self._stand_still(site, seen)
        return self._let_others_run(loop) if loop.iterations % PATIENCE == 0 else None

    def _stand_still(self, site, seen):
        """Wait until another unit changes a memory that the loop has looked at; of chunks, any memory."""
        if self.scheduler is None:
            raise NeedsFinerUnits(WARPS)
        looks, before, polled = self.looks, self.looks.changes, self.looks.last_poll

        def changed():
            return looks.have_changed(seen) if self.apart else looks.changes != before

        return self.scheduler.wait(site, changed, lambda: looks.awaited(polled), polls=True)

    def _let_others_run(self, loop):
        if self.scheduler is not None:
            return self._others_first(loop)
        if loop.iterations >= (5 if self.looks.changes == loop.changes else 100) * PATIENCE:
            raise NeedsFinerUnits(WARPS)
        loop.changes = self.looks.changes
        return None

    def _others_first(self, loop):
        yield from self.scheduler.let_others_run()
        loop.changes = self.looks.changes

    def _gone_alone(self, loop):
        """Let a lane that has left a waiting loop by changing something go on alone."""
        if self.lanes_apart and loop.effects and self.looks.changes != loop.effects[0]:
            self.lane_counts.separate(self.unit, ("alone", self.looks.changes))

    def iterate(self, loop, name, values, touched=None):
        """Run the iterations of a ``for``.

        ``touched`` has the arrays of a body whose iterations may run at once.
        """
        if type(values) is TypedRange:
            for number in self.iterate(loop, name, values.numbers, touched):
                yield self.cast(values.dtype, number)
        elif isinstance(values, LaneRange):
            yield from self._lane_iterations(loop, values)
        elif touched is not None and self.may_batch(values, touched):
            yield from self._batched_iterations(loop, name, values)
        elif isinstance(values, range):
            yield from self._iterations(loop, values)
        else:
            yield from self._iterations_of(loop, iterable(self, values))

    def _iterations_of(self, loop, values):
        if type(values.length) is int:
            for position in self._iterations(loop, range(values.length)):
                yield values.at(self, position)
        else:
            for position in self._lane_iterations(loop, LaneRange(0, values.length, 1)):
                yield values.at(self, position)

    def _iterations(self, loop, values):
        position, length = 0, self._expected(loop, values)
        while position < length and self.again(loop):
            self._count_iteration(loop)
            loop.room = length - 1 - position
            yield values[position]
            position += 1 + loop.skip
            loop.skip = 0

    def _expected(self, loop, values) -> int:
        """Return how many values a loop runs over. With more than it may run, its time is limited as well."""
        length = _length(values)
        if length > self.step_limit:
            self._begin_to_time(loop)
        return length

    def _lane_iterations(self, loop, values):
        """Iterate over bounds that differ from lane to lane."""
        loop.items = values.start, values.stop
        forward = values.step > 0
        while self.again(loop):
            value, stop = loop.items
            inside = self.compare("<" if forward else ">", value, stop)
            if not self.test(loop, inside):
                return
            yield value
            # Narrowing may have shortened the loop's items in this iteration.
            value, stop = loop.items
            loop.items = self.add(None, value, values.step), stop

    # ---- loops whose iterations run at once ----

    def may_batch(self, values, touched) -> bool:
        """Return whether iterations may run at once: a uniform loop, in which no two names share an array."""
        if self.chunk.tracing or self.lanes_apart or not isinstance(values, range) or _length(values) < 2:
            return False
        arrays = list(_arrays_in(touched))
        if len({a.storage.serial for a in arrays if type(a) is DeviceArray}) != len(arrays):
            return False
        if any(a.storage.overlaps_itself for a in arrays):
            return False
        length = min(_length(values), BATCH_LENGTH)
        for other in self.unit.batch:
            length *= other
        return length * self.chunk.geometry.lanes <= BATCH_ELEMENTS

    def _batched_iterations(self, loop, name, values):
        level = len(self.unit.batch)
        for start in range(0, self._expected(loop, values), BATCH_LENGTH):
            if not self.again(loop):
                return
            part = values[start : start + BATCH_LENGTH]
            self._count_iteration(loop)
            if len(part) == 1:
                yield part[0]
                continue
            self.unit.open_batch(name, len(part))
            try:
                numbers = lanes.scaled(self.chunk.geometry.batch(len(part), level), part.step)
                yield Lanes(numbers, part.start, INT64)
            finally:
                self.unit.close_batch(name)

    def range_of(self, *bounds):
        """Return ``range(...)`` with bounds that may differ from lane to lane.

        Floats are truncated, as by Numba.
        """
        if all(type(bound) is int for bound in bounds):
            return self._numbers(bounds)
        types = [self._dtype(bound) for bound in bounds]
        dtype = type_of_range(types)
        # Numba casts these bounds to the range's type, in which they may wrap around.
        if dtype != INT64 or any(kind == UINT64 or kind.kind == "f" for kind in types):
            bounds = [self.cast(INT64, self.cast(dtype, bound)) for bound in bounds]
        numbers = self._numbers(bounds)
        return numbers if dtype == INT64 else TypedRange(numbers, dtype)

    def _numbers(self, bounds):
        start, stop, step = map(self._bound, _start_stop_step(bounds))
        if type(step) is Lanes:
            return self._with_steps_of_lanes(start, stop, step)
        if step == 0:
            raise KernelTypeError("the step of range() is 0")
        if type(start) is int and type(stop) is int:
            return range(start, stop, step)
        return LaneRange(self.cast(INT64, start), stop, step)

    def _with_steps_of_lanes(self, start, stop, step) -> Range:
        """Return a range whose step differs from lane to lane."""
        if self.unit.mask.where(as_lanes(self.compare("==", step, 0))).any:
            raise KernelTypeError("the step of range() is 0 in some threads")
        return Range(self, LaneRange(self.cast(INT64, start), stop, step))

    def _bound(self, value):
        if type(value) is Lanes:
            return int(value.low) if value.low == value.high else value
        return int(value)

    def counted(self, start, stop, step):
        """Return the range that ``while counter < stop`` covers; None if iterations must run one by one."""
        # A trace, lanes that run apart, and a launch that only counts need each iteration by itself.
        if self.chunk.tracing or self.lanes_apart or self.log is not None:
            return None
        stop, step = (int(bound) if isinstance(bound, np.integer) else bound for bound in (stop, step))
        if any(type(bound) is not int for bound in (start, stop, step)) or step <= 0:
            return None
        return range(start, max(start, stop), step)


def _alike(a, b) -> bool:
    """Return whether two values of a variable are the same in all lanes."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if type(a) is tuple:
        return len(a) == len(b) and all(map(_alike, a, b))
    if type(a) is lanes.Mask:
        return a.array is not None and b.array is not None and _same(a.array, b.array)
    if type(a) is Lanes:
        return a.offset == b.offset and (a.pattern is b.pattern or _same(a.pattern.array, b.pattern.array))
    if isinstance(a, (bool, int, float, complex, np.generic, np.ndarray)):
        return _same(a, b)
    if isinstance(a, DeviceArray):
        fixed = a.storage is b.storage and a.strides == b.strides
        return fixed and all(map(_alike, (_first_of(a), *a.shape), (_first_of(b), *b.shape)))
    if isinstance(a, ARRAYS):
        return all(map(_alike, (Lanes(a.which), a.arrays), (Lanes(b.which), b.arrays)))
    return False


def _first_of(array: DeviceArray) -> Lanes:
    """Return the position of the first element in each lane."""
    return Lanes(lanes.ZERO if array.pattern is None else array.pattern, array.offset)


def _same(a, b) -> bool:
    return np.array_equal(a, b, equal_nan=np.asarray(a).dtype.kind in "fc")


def _length(values: range) -> int:
    """Return the number of values. It may be too large for ``len``, whose result has 32 bits in a browser."""
    try:
        return len(values)
    except OverflowError:
        return -((values.start - values.stop) // values.step)


def _start_stop_step(bounds: tuple) -> tuple:
    """Return the arguments of ``range()``, with its defaults filled in."""
    if len(bounds) == 1:
        return 0, *bounds, 1
    return (*bounds, 1) if len(bounds) == 2 else bounds


def _arrays_in(values):
    """Return the arrays among values, also those in tuples."""
    for value in values:
        if isinstance(value, tuple):
            yield from _arrays_in(value)
        elif isinstance(value, RECORDS):
            yield value.starts
        elif isinstance(value, ARRAYS):
            yield value
