"""Control flow in lock-step: branches become masks, and a loop ends when no lane is left in it."""

from . import lanes
from .dtypes import INT64
from .errors import KernelStopped, KernelTypeError
from .lanes import Lanes

BATCH_LENGTH = 64  # most iterations of a loop that run at once
BATCH_ELEMENTS = 1 << 22  # most lanes times iterations that run at once


class Frame:
    """One call of a function: the lanes that have returned from it, and what they returned."""

    __slots__ = ("returned", "value")

    def __init__(self):
        self.returned = self.value = None


class Loop:
    """One execution of a loop statement."""

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
    )

    def __init__(self, line, frame, mask):
        self.line, self.frame, self.entry, self.live = line, frame, mask, mask
        self.broken = self.continued = self.fold = None
        self.iterations = self.skip = 0
        self.room = None


class Control:
    """The machine's control flow. ``self.mask`` always says which lanes execute the current statement."""

    # ---- branches ----

    def enter(self, condition) -> bool:
        """Begin the body of an ``if``: narrow the mask; is any lane in it?"""
        if type(condition) is bool:
            return condition
        self.mask = self.mask.where(condition)
        return self.mask.any

    def otherwise(self, saved, condition) -> bool:
        """Begin the ``else`` of an ``if`` that the lanes ``saved`` reached."""
        if type(condition) is bool:
            self.mask = saved
            return not condition
        self.mask = saved.where_not(condition)
        return self.mask.any

    def leave(self, saved, frame, loop):
        """End an ``if`` with jumps inside: the lanes ``saved`` continue, except those that jumped."""
        if frame is not None and frame.returned is not None:
            saved = saved.minus(frame.returned)
        if loop is not None:
            for gone in (loop.broken, loop.continued):
                if gone is not None:
                    saved = saved.minus(gone)
        self.mask = saved

    # ---- calls ----

    @staticmethod
    def frame() -> Frame:
        return Frame()

    def return_(self, frame, value):
        """``return value`` for the active lanes."""
        if frame.returned is None:
            frame.returned, frame.value = self.mask, value
        else:
            frame.returned = frame.returned.plus(self.mask)
            frame.value = self.merge(value, frame.value)
        self.mask = self.geometry.no_threads

    # ---- loops ----

    def loop(self, line, frame) -> Loop:
        return Loop(line, frame, self.mask)

    def again(self, loop) -> bool:
        """Before an iteration: find the lanes still in the loop; are there any?"""
        mask = loop.live
        if loop.broken is not None:
            mask = mask.minus(loop.broken)
        if loop.frame is not None and loop.frame.returned is not None:
            mask = mask.minus(loop.frame.returned)
        loop.continued = None
        self.mask = loop.live = mask
        return mask.any

    def test(self, loop, condition) -> bool:
        """The test of a ``while``: lanes in which it is false leave the loop."""
        condition = self.truth(condition)
        if condition is False:
            return False
        if condition is not True:
            self.mask = loop.live = self.mask.where(condition)
            if not self.mask.any:
                return False
        self._count_iteration(loop)
        return True

    def _count_iteration(self, loop):
        loop.iterations += 1
        if loop.iterations > self.step_limit:
            raise KernelStopped(
                f"the loop in line {loop.line} is still running after {self.step_limit:,} iterations; "
                "is its counter advanced, and can its condition become false?"
            )

    def break_(self, loop):
        loop.broken = self.mask if loop.broken is None else loop.broken.plus(self.mask)
        self.mask = self.geometry.no_threads

    def continue_(self, loop):
        loop.continued = self.mask if loop.continued is None else loop.continued.plus(self.mask)
        self.mask = self.geometry.no_threads

    def finish(self, loop):
        """After a loop: the lanes that entered it continue, except those that returned from the function."""
        self.mask = loop.entry
        if loop.frame is not None and loop.frame.returned is not None:
            self.mask = loop.entry.minus(loop.frame.returned)

    def iterate(self, loop, name, values, touched=None):
        """The iterations of a ``for``. ``touched``: the arrays of a body whose iterations may run at once."""
        if isinstance(values, LaneRange):
            yield from self._lane_iterations(loop, values)
        elif touched is not None and self.may_batch(values, touched):
            yield from self._batched_iterations(loop, name, values)
        else:
            yield from self._iterations(loop, values)

    def _iterations(self, loop, values):
        position, length = 0, len(values)
        while position < length and self.again(loop):
            self._count_iteration(loop)
            loop.room = length - 1 - position
            yield values[position]
            position += 1 + loop.skip
            loop.skip = 0

    def _lane_iterations(self, loop, values):
        """Iterate over bounds that differ from lane to lane."""
        value = values.start
        forward = values.step > 0
        while self.again(loop):
            inside = self.compare("<" if forward else ">", value, values.stop)
            if not self.test(loop, inside):
                return
            yield value
            value = self.add(None, value, values.step)

    # ---- loops whose iterations run at once ----

    def may_batch(self, values, touched) -> bool:
        """Iterations may run at once if the loop is uniform and no two names in its body share an array."""
        if self.tracing or not isinstance(values, range) or len(values) < 2:
            return False
        arrays = [a for a in touched if hasattr(a, "storage")]
        if len({a.storage.serial for a in arrays}) != len(arrays):
            return False
        length = min(len(values), BATCH_LENGTH)
        for other in self.batch:
            length *= other
        return length * self.geometry.lanes <= BATCH_ELEMENTS

    def _batched_iterations(self, loop, name, values):
        level = len(self.batch)
        for start in range(0, len(values), BATCH_LENGTH):
            if not self.again(loop):
                return
            part = values[start : start + BATCH_LENGTH]
            self._count_iteration(loop)
            if len(part) == 1:
                yield part[0]
                continue
            self._open_batch(name, level, len(part))
            try:
                numbers = lanes.scaled(self.geometry.batch(len(part), level), part.step)
                yield Lanes(numbers, part.start, INT64)
            finally:
                self._close_batch(name)

    def _open_batch(self, name, level, length):
        self.batch.append(length)
        self.batched[name] = level
        self.batch_key = tuple(self.batch)

    def _close_batch(self, name):
        self.batch.pop()
        del self.batched[name]
        self.batch_key = tuple(self.batch)

    def range_of(self, *bounds):
        """``range(...)`` with bounds that may differ from lane to lane."""
        start, stop, step = map(self._bound, _start_stop_step(bounds))
        if type(step) is not int or step == 0:
            raise KernelTypeError("the step of range() must be nonzero and the same for all threads")
        if type(start) is int and type(stop) is int:
            return range(start, stop, step)
        return LaneRange(start, stop, step)

    def _bound(self, value):
        if type(value) is int:
            return value
        if not self._integers(value):
            raise KernelTypeError(f"range() needs integers, not {self._dtype(value)}")
        if type(value) is Lanes:
            return int(value.low) if value.low == value.high else value
        return int(value)

    def counted(self, start, stop, step):
        """The range that ``while counter < stop`` covers, or None if iterations must run one by one."""
        if self.tracing or self.log is not None:  # both need to see single iterations
            return None
        if any(type(bound) is not int for bound in (start, stop, step)) or step <= 0:
            return None
        return range(start, max(start, stop), step)


def _start_stop_step(bounds: tuple) -> tuple:
    """The arguments of range() with its defaults filled in."""
    if len(bounds) == 1:
        return 0, *bounds, 1
    return (*bounds, 1) if len(bounds) == 2 else bounds


class LaneRange:
    """A range whose bounds differ from lane to lane."""

    __slots__ = ("start", "stop", "step")

    def __init__(self, start, stop, step):
        self.start, self.stop, self.step = start, stop, step
